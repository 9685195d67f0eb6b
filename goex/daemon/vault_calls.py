"""The person's calls about the vault: make, open, seal it; put credentials in and take them out."""

from __future__ import annotations

from typing import Any

from goex.daemon.action_views import account_view
from goex.daemon.entries import (
    Format,
    Place,
    end_grants,
    end_moved,
    end_users,
    entry,
    record,
    refuse_database,
    refuse_unknown,
    to_remove,
)
from goex.daemon.person_context import PersonCalls, SecretDue
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import unary
from goex.daemon.server_tools import agreed
from goex.daemon.vault_views import vault_status
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account
from policies.errors import Denied, InvalidInput
from vault.credential_file import CredentialFile
from vault.record import check_account
from vault.secret import Secret


class VaultCalls(PersonCalls):
    """The vault and its accounts."""

    @unary
    async def VaultInit(self, request: pb.VaultInitRequest, context: Any) -> pb.VaultStatus:
        self._person.callers.peer(context)
        await self._person.vault_state.init(
            request.keyed_by, Secret(request.passphrase), Secret(request.approval_passphrase)
        )
        return vault_status(self._person.vault_state.vault)

    @unary
    async def VaultUnlock(self, request: pb.VaultUnlockRequest, context: Any) -> pb.VaultStatus:
        peer = self._person.callers.peer(context)
        if peer.away:
            raise Denied("The vault isn't opened from the public page.", next_step="Unlock it where GoEx runs.")

        async def present() -> str:
            # It takes away what was allowed, and no passkey: those are in the vault.
            await self._person.present_with_passphrase(context, request.approval_passphrase, "Accepting the log")
            return peer.describe()

        await self._person.vault_state.unlock(Secret(request.passphrase), present if request.accept_log else None)
        return vault_status(self._person.vault_state.vault)

    @unary
    async def VaultSeal(self, request: pb.VaultSealRequest, context: Any) -> pb.VaultStatus:
        peer = self._person.callers.peer(context)
        await self._person.daemon.seal(peer.describe())
        return vault_status(self._person.vault_state.vault)

    @unary
    async def VaultPut(self, request: pb.VaultPutRequest, context: Any) -> pb.AccountView:
        self._person.vault_state.require_open()
        vault = self._person.vault_state.vault
        if request.keep:
            shown = vault.open_record(request.service, request.account).account
            account = agreed(shown, request.origins)
            check_account(account)
            peer = await self._person.present(context, request.passphrase, "Adding an account")
            # Of an MCP server: its grants are bound to its tools as they were. The secret is the one that is there now:
            # while the person was asked, a login may have been renewed.
            await in_thread(vault.change_account, shown, account)
        else:
            account = self._account(request)
            secret = Secret(request.secret)
            check_account(account)
            if not secret:
                raise SecretDue(account)
            if account.format == "file":
                secret = CredentialFile.of(request.secret, request.file_name, request.file_variable).to_secret()
            peer = await self._person.present(context, request.passphrase, "Adding an account")
            end_moved(self._person, account, peer.describe())
            await in_thread(vault.put, account, secret, replace=request.replace)
        await end_users(self._person, account.service, account.name, "its credential was replaced")
        facts = {
            **self._person.vault_state.noted(),
            "account": account.id,
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
        }
        self._person.engine.core.journal.append("account-put", facts=facts)
        return account_view(record(self._person, account.service, account.name))

    @unary
    async def VaultList(self, request: pb.VaultListRequest, context: Any) -> pb.VaultListReply:
        self._person.callers.peer(context)
        return pb.VaultListReply(accounts=[account_view(one) for one in self._person.vault_state.vault.records()])

    @unary
    async def VaultRemove(self, request: pb.VaultRemoveRequest, context: Any) -> pb.VaultRemoveReply:
        self._person.vault_state.require_open()
        name = request.account or to_remove(self._person, request.service, "").name
        refuse_database(request.service, name)
        refuse_unknown(self._person, request.service, name)
        peer = await self._person.present(context, request.passphrase, "Removing an account")
        await in_thread(self._person.vault_state.vault.remove, request.service, name)
        end_grants(self._person, request.service, name, peer.describe())
        await end_users(self._person, request.service, name, "its account was removed")
        facts = {"account": f"{request.service}/{name}", "by": peer.describe(), **self._person.vault_state.noted()}
        self._person.engine.core.journal.append("account-remove", facts=facts)
        return pb.VaultRemoveReply()

    # ---- inside

    def _account(self, request: pb.VaultPutRequest) -> Account:
        if request.format not in ("", "string", "file"):
            raise InvalidInput("That isn't a secret's format.", next_step="It is `string` or `file`.")
        self._person.engine.core.catalog.check_connectable(request.service)
        place = Place(
            base_url=request.base_url,
            origins=tuple(request.origins),
            private=request.private,
            ca_pem=request.ca_pem,
        )
        kind: Format = "file" if request.format == "file" else "string"
        return entry(self._person, request.service, request.account, place, kind, replace=request.replace)
