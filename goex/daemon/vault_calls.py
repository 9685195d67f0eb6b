"""The person's calls about the vault: make, open, seal it; put credentials in and take them out."""

from __future__ import annotations

import asyncio
from typing import Any

from goex.daemon.calls import unary
from goex.daemon.desk import DeskCalls
from goex.daemon.views import account_view
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from vault.secret import Secret


class VaultCalls(DeskCalls):
    """The vault and its accounts."""

    @unary
    async def VaultInit(self, request: pb.VaultInitRequest, context: Any) -> pb.VaultStatus:
        self._desk.callers.peer(context)
        await self._desk.custody.init(request.keyed_by, Secret(request.passphrase), Secret(request.approval_passphrase))
        return self._vault_status()

    @unary
    async def VaultUnlock(self, request: pb.VaultUnlockRequest, context: Any) -> pb.VaultStatus:
        self._desk.callers.peer(context)
        await self._desk.custody.unlock(Secret(request.passphrase))
        return self._vault_status()

    @unary
    async def VaultSeal(self, request: pb.VaultSealRequest, context: Any) -> pb.VaultStatus:
        self._desk.callers.peer(context)
        await self._desk.daemon.seal()
        return self._vault_status()

    @unary
    async def VaultRotate(self, request: pb.VaultRotateRequest, context: Any) -> pb.VaultStatus:
        peer = await self._desk.present(context, request.approval_passphrase, "Rotating the vault's keys")
        await self._desk.custody.rotate(Secret(request.passphrase))
        facts = {"by": peer.describe(), "generation": self._desk.custody.vault.generation}
        self._desk.engine.core.journal.append("vault-rotate", facts=facts)
        return self._vault_status()

    @unary
    async def VaultPut(self, request: pb.VaultPutRequest, context: Any) -> pb.AccountView:
        account = self._account(request)
        peer = await self._desk.present(context, request.passphrase, "Adding an account")
        await asyncio.to_thread(self._desk.custody.vault.put, account, Secret(request.secret), replace=request.replace)
        await self._end_users(account.service, account.name, "its credential was replaced")
        facts = {
            "generation": self._desk.custody.vault.generation,
            "account": account.id,
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
        }
        self._desk.engine.core.journal.append("account-put", facts=facts)
        return account_view(self._record(account.service, account.name))

    @unary
    async def VaultList(self, request: pb.VaultListRequest, context: Any) -> pb.VaultListReply:
        self._desk.callers.peer(context)
        return pb.VaultListReply(accounts=[account_view(record) for record in self._desk.custody.vault.records()])

    @unary
    async def VaultRemove(self, request: pb.VaultRemoveRequest, context: Any) -> pb.VaultRemoveReply:
        peer = await self._desk.present(context, request.passphrase, "Removing an account")
        name = request.account or self._desk.custody.vault.resolve(request.service).name
        await asyncio.to_thread(self._desk.custody.vault.remove, request.service, name)
        await self._end_users(request.service, name, "its account was removed")
        generation = self._desk.custody.vault.generation
        facts = {"account": f"{request.service}/{name}", "by": peer.describe(), "generation": generation}
        self._desk.engine.core.journal.append("account-remove", facts=facts)
        return pb.VaultRemoveReply()

    # ---- inside

    def _vault_status(self) -> pb.VaultStatus:
        vault = self._desk.custody.vault
        damage = vault.damage() if vault.state == "unsealed" else ()
        return pb.VaultStatus(
            state=vault.state,
            keyed_by=vault.keyed_by,
            records=len(vault.records()),
            damage=[f"{each.service}/{each.name}: {each.what}" for each in damage],
        )

    async def _end_users(self, service: str, name: str, why: str) -> None:
        """Kill what runs with a credential that isn't the account's any more: its lease can't be called back."""
        for row in self._desk.engine.core.actions.in_states((State.ALLOWED, State.PREPARED, State.RUNNING)):
            if any((need.service, need.account) == (service, name) for need in row.the_plan().required):
                await self._desk.engine.cancel(row.id, why=why)

    def _record(self, service: str, name: str) -> Any:
        for record in self._desk.custody.vault.records():
            if (record.account.service, record.account.name) == (service, name):
                return record
        raise InvalidInput(f"There is no account {service}/{name}.", next_step="See which there are: goex vault list")

    def _account(self, request: pb.VaultPutRequest) -> Account:
        """The account entry: the only place where a base URL, a private address or a CA comes from.

        Where the place of an account that is replaced isn't said anew, it stays: what the catalog says about the
        service may have changed since, and that must not send the credential elsewhere.
        """
        name = request.account or "default"
        service = None
        if request.service != "model":
            service = self._desk.engine.core.catalog.service(request.service)  # raises, with close matches
        kept = self._known(request.service, name) if request.replace and not request.base_url else None
        base_url = request.base_url or (kept.base_url if kept else service.base_url if service else "")
        if not base_url:
            raise InvalidInput(
                f"{request.service} has no address of its own.", next_step="Say where it is: --base-url https://…"
            )
        if request.format not in ("", "string", "file"):
            raise InvalidInput("That isn't a secret's format.", next_step="It is `string` or `file`.")
        origins = {Origin.parse(base_url), *(Origin.parse(origin) for origin in request.origins)}
        return Account(
            service=request.service,
            name=name,
            origins=tuple(sorted(origins | set(kept.origins if kept else ()))),
            base_url=base_url.rstrip("/"),
            format="file" if request.format == "file" else "string",
            private=request.private or (kept is not None and kept.private),
            ca_pem=request.ca_pem or (kept.ca_pem if kept else ""),
        )

    def _known(self, service: str, name: str) -> Account | None:
        known = self._desk.custody.vault.records() if self._desk.custody.state != "absent" else ()
        mine = (record.account for record in known if record.account.service == service)
        return next((account for account in mine if account.name == name), None)
