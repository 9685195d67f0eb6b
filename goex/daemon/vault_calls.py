"""The person's calls about the vault: make, open, seal it; put credentials in and take them out."""

from __future__ import annotations

from typing import Any

from goex.daemon.action_views import account_view
from goex.daemon.entries import Format, Place, end_grants, end_users, entry, record, refuse_database, refuse_unknown
from goex.daemon.person_context import DeskCalls, SecretDue
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import unary
from goex.daemon.vault_views import vault_status
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account
from policies.errors import InvalidInput
from vault.credential_file import CredentialFile
from vault.record import check_account
from vault.secret import Secret


class VaultCalls(DeskCalls):
    """The vault and its accounts."""

    @unary
    async def VaultInit(self, request: pb.VaultInitRequest, context: Any) -> pb.VaultStatus:
        self._desk.callers.peer(context)
        await self._desk.custody.init(request.keyed_by, Secret(request.passphrase), Secret(request.approval_passphrase))
        return vault_status(self._desk.custody.vault)

    @unary
    async def VaultUnlock(self, request: pb.VaultUnlockRequest, context: Any) -> pb.VaultStatus:
        peer = self._desk.callers.peer(context)

        async def present() -> str:
            await self._desk.present(context, request.approval_passphrase, "Accepting the log")
            return peer.describe()

        await self._desk.custody.unlock(Secret(request.passphrase), present if request.accept_log else None)
        return vault_status(self._desk.custody.vault)

    @unary
    async def VaultSeal(self, request: pb.VaultSealRequest, context: Any) -> pb.VaultStatus:
        peer = self._desk.callers.peer(context)
        await self._desk.daemon.seal(peer.describe())
        return vault_status(self._desk.custody.vault)

    @unary
    async def VaultPut(self, request: pb.VaultPutRequest, context: Any) -> pb.AccountView:
        self._desk.custody.require_open()
        account = self._account(request)
        check_account(account)
        if not request.secret:
            raise SecretDue(account)
        secret = Secret(request.secret)
        if account.format == "file":
            secret = CredentialFile.of(request.secret, request.file_name, request.file_variable).to_secret()
        peer = await self._desk.present(context, request.passphrase, "Adding an account")
        await in_thread(self._desk.custody.vault.put, account, secret, replace=request.replace)
        await end_users(self._desk, account.service, account.name, "its credential was replaced")
        facts = {
            **self._desk.custody.noted(),
            "account": account.id,
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
        }
        self._desk.engine.core.journal.append("account-put", facts=facts)
        return account_view(record(self._desk, account.service, account.name))

    @unary
    async def VaultList(self, request: pb.VaultListRequest, context: Any) -> pb.VaultListReply:
        self._desk.callers.peer(context)
        return pb.VaultListReply(accounts=[account_view(one) for one in self._desk.custody.vault.records()])

    @unary
    async def VaultRemove(self, request: pb.VaultRemoveRequest, context: Any) -> pb.VaultRemoveReply:
        self._desk.custody.require_open()
        name = request.account or self._desk.custody.vault.resolve(request.service).name
        refuse_database(request.service, name)
        refuse_unknown(self._desk, request.service, name)
        peer = await self._desk.present(context, request.passphrase, "Removing an account")
        await in_thread(self._desk.custody.vault.remove, request.service, name)
        end_grants(self._desk, request.service, name, peer.describe())
        await end_users(self._desk, request.service, name, "its account was removed")
        facts = {"account": f"{request.service}/{name}", "by": peer.describe(), **self._desk.custody.noted()}
        self._desk.engine.core.journal.append("account-remove", facts=facts)
        return pb.VaultRemoveReply()

    # ---- inside

    def _account(self, request: pb.VaultPutRequest) -> Account:
        if request.format not in ("", "string", "file"):
            raise InvalidInput("That isn't a secret's format.", next_step="It is `string` or `file`.")
        self._desk.engine.core.catalog.check_connectable(request.service)
        place = Place(
            base_url=request.base_url,
            origins=tuple(request.origins),
            private=request.private,
            ca_pem=request.ca_pem,
        )
        kind: Format = "file" if request.format == "file" else "string"
        return entry(self._desk, request.service, request.account, place, kind, replace=request.replace)
