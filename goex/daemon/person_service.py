"""`goex.v1.Person`, on user.sock alone: decide, grant, revoke, unlock, read everything.

Rules: whatever lets more happen (approving a write, a standing grant, an agent, an account) needs *presence*: the
approval passphrase, given with the call or a few minutes ago on the same terminal. What lets less happen needs none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from goex.catalog_views import services_reply
from goex.daemon.actions_service import ActionsService
from goex.daemon.calls import Callers, streaming, unary
from goex.daemon.custody import Custody
from goex.daemon.views import account_view, grant_view, log_row
from goex.engine.engine import Engine
from goex.engine.peers import Peer, Presence
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.accounts import Account, Origin
from policies.errors import Denied, InvalidInput
from policies.grants import Width
from policies.text import escape
from vault.secret import Secret

MOST_ROWS = 10_000


class PresenceDue(Denied):
    """The approval passphrase is due, and wasn't given."""

    code = "presence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """What the person can do to the daemon as a whole."""

    status: Callable[[], Awaitable[pb.StatusReply]]
    seal: Callable[[], Awaitable[None]]
    stop: Callable[[], None]


class PersonService(rpc.PersonServicer):
    """Everything that only the person may do."""

    def __init__(
        self,
        engine: Engine,
        callers: Callers,
        custody: Custody,
        presence: Presence,
        actions: ActionsService,
        daemon: Daemon,
    ) -> None:
        self._engine = engine
        self._callers = callers
        self._custody = custody
        self._presence = presence
        self._actions = actions
        self._daemon = daemon

    # ---- presence

    async def _present(self, context: Any, passphrase: str, what: str) -> Peer:
        """Raises PresenceDue unless the person showed themselves here, now or lately."""
        peer = self._callers.peer(context)
        self._callers.sessions.of(peer, "person")
        if passphrase:
            await self._custody.prove(Secret(passphrase))
            self._presence.remember(peer)
        elif not self._presence.holds(peer):
            raise PresenceDue(f"{what} needs your approval passphrase.", next_step="Type it when you are asked.")
        return peer

    @unary
    async def Present(self, request: pb.PresentRequest, context: Any) -> pb.PresentReply:
        peer = self._callers.peer(context)
        await self._custody.prove(Secret(request.passphrase))
        return pb.PresentReply(seconds=self._presence.remember(peer))

    # ---- asking

    @unary
    async def Approvals(self, request: pb.ApprovalsRequest, context: Any) -> pb.ApprovalsReply:
        self._callers.peer(context)
        approvals = self._engine.core.approvals
        found = approvals.recent() if request.settled else approvals.pending()
        return pb.ApprovalsReply(approvals=[self._actions.approval(approval.id) for approval in found])

    @streaming
    async def WatchApprovals(self, request: pb.ApprovalsRequest, context: Any) -> AsyncIterator[pb.Approval]:
        self._callers.peer(context)
        approvals = self._engine.core.approvals
        queue = approvals.watch()
        try:
            for approval in approvals.pending():
                yield self._actions.approval(approval.id)
            while True:
                yield self._actions.approval(await queue.get())
        finally:
            approvals.unwatch(queue)

    @unary
    async def Decide(self, request: pb.DecideRequest, context: Any) -> pb.DecideReply:
        approval = self._engine.core.approvals.get(request.approval_id)
        width = _width(request.width) if request.approve else Width.ONCE
        peer = self._callers.peer(context)
        if request.approve and self._engine.asking.presence_due(approval.id, request.digest, width):
            peer = await self._present(context, request.passphrase, "Approving this")
        expires = timedelta(seconds=request.expires_seconds) if request.expires_seconds else None
        reason = escape(request.reason[:500])
        self._engine.asking.answer(
            approval.id,
            approve=request.approve,
            shown=request.digest,
            width=width,
            by=peer.describe(),
            reason=reason,
            expires=expires,
            bound=tuple(request.bind_arguments),
        )
        return pb.DecideReply(approval=self._actions.approval(approval.id))

    # ---- grants and agents

    @unary
    async def Grants(self, request: pb.GrantsRequest, context: Any) -> pb.GrantsReply:
        self._callers.peer(context)
        found = self._engine.core.ledger.grants(everything=request.all)
        return pb.GrantsReply(grants=[grant_view(grant) for grant in found])

    @unary
    async def Revoke(self, request: pb.RevokeRequest, context: Any) -> pb.RevokeReply:
        peer = self._callers.peer(context)
        ledger = self._engine.core.ledger
        ids = list(request.grant_ids)
        if request.agent:
            ids += [grant.id for grant in ledger.grants() if grant.agent == request.agent]
        done = ledger.revoke(ids, by=peer.describe())
        return pb.RevokeReply(grants=[grant_view(grant) for grant in done])

    @unary
    async def AddAgent(self, request: pb.AddAgentRequest, context: Any) -> pb.AddAgentReply:
        peer = await self._present(context, request.passphrase, "Naming an agent")
        token = self._engine.core.ledger.add_agent(request.name, by=peer.describe())
        return pb.AddAgentReply(name=request.name, token=token)

    @unary
    async def ListAgents(self, request: pb.ListAgentsRequest, context: Any) -> pb.ListAgentsReply:
        self._callers.peer(context)
        found = self._engine.core.ledger.agents()
        return pb.ListAgentsReply(agents=[pb.AgentView(name=agent.name, created=agent.created) for agent in found])

    @unary
    async def RemoveAgent(self, request: pb.RemoveAgentRequest, context: Any) -> pb.RemoveAgentReply:
        peer = self._callers.peer(context)
        self._engine.core.ledger.remove_agent(request.name, by=peer.describe())
        return pb.RemoveAgentReply()

    # ---- the vault

    @unary
    async def VaultInit(self, request: pb.VaultInitRequest, context: Any) -> pb.VaultStatus:
        self._callers.peer(context)
        await self._custody.init(request.keyed_by, Secret(request.passphrase), Secret(request.approval_passphrase))
        return self._vault_status()

    @unary
    async def VaultUnlock(self, request: pb.VaultUnlockRequest, context: Any) -> pb.VaultStatus:
        self._callers.peer(context)
        await self._custody.unlock(Secret(request.passphrase))
        return self._vault_status()

    @unary
    async def VaultSeal(self, request: pb.VaultSealRequest, context: Any) -> pb.VaultStatus:
        self._callers.peer(context)
        await self._daemon.seal()
        return self._vault_status()

    @unary
    async def VaultRotate(self, request: pb.VaultRotateRequest, context: Any) -> pb.VaultStatus:
        peer = await self._present(context, request.approval_passphrase, "Rotating the vault's keys")
        await self._custody.rotate(Secret(request.passphrase))
        facts = {"by": peer.describe(), "generation": self._custody.vault.generation}
        self._engine.core.journal.append("vault-rotate", facts=facts)
        return self._vault_status()

    @unary
    async def VaultPut(self, request: pb.VaultPutRequest, context: Any) -> pb.AccountView:
        account = self._account(request)
        peer = await self._present(context, request.passphrase, "Adding an account")
        await asyncio.to_thread(self._custody.vault.put, account, Secret(request.secret), replace=request.replace)
        await self._end_users(account.service, account.name, "its credential was replaced")
        facts = {
            "generation": self._custody.vault.generation,
            "account": account.id,
            "origins": [str(origin) for origin in account.origins],
            "private": account.private,
            "by": peer.describe(),
        }
        self._engine.core.journal.append("account-put", facts=facts)
        return account_view(self._record(account.service, account.name))

    @unary
    async def VaultList(self, request: pb.VaultListRequest, context: Any) -> pb.VaultListReply:
        self._callers.peer(context)
        return pb.VaultListReply(accounts=[account_view(record) for record in self._custody.vault.records()])

    @unary
    async def VaultRemove(self, request: pb.VaultRemoveRequest, context: Any) -> pb.VaultRemoveReply:
        peer = await self._present(context, request.passphrase, "Removing an account")
        name = request.account or self._custody.vault.resolve(request.service).name
        await asyncio.to_thread(self._custody.vault.remove, request.service, name)
        await self._end_users(request.service, name, "its account was removed")
        generation = self._custody.vault.generation
        facts = {"account": f"{request.service}/{name}", "by": peer.describe(), "generation": generation}
        self._engine.core.journal.append("account-remove", facts=facts)
        return pb.VaultRemoveReply()

    # ---- reading

    @unary
    async def Status(self, request: pb.StatusRequest, context: Any) -> pb.StatusReply:
        self._callers.peer(context)
        return await self._daemon.status()

    @unary
    async def Log(self, request: pb.LogRequest, context: Any) -> pb.LogReply:
        self._callers.peer(context)
        rows = self._engine.core.journal.rows(
            action_id=request.action_id,
            agent=request.agent,
            before=request.before,
            limit=min(request.limit or 50, MOST_ROWS),
        )
        return pb.LogReply(rows=[log_row(row) for row in rows])

    @unary
    async def VerifyLog(self, request: pb.VerifyLogRequest, context: Any) -> pb.VerifyLogReply:
        self._callers.peer(context)
        found = await asyncio.to_thread(self._engine.core.journal.verify)
        return pb.VerifyLogReply(
            good=found.good,
            rows=found.rows,
            head=found.head,
            problem=found.problem,
            authenticated=found.authenticated,
        )

    @unary
    async def Services(self, request: pb.ServicesRequest, context: Any) -> pb.ServicesReply:
        self._callers.peer(context)
        known = self._custody.vault.records() if self._custody.state != "absent" else ()
        accounts: dict[str, list[str]] = {}
        for record in known:
            accounts.setdefault(record.account.service, []).append(record.account.name)
        return services_reply(self._engine.core.catalog, request, accounts)

    @unary
    async def Shutdown(self, request: pb.ShutdownRequest, context: Any) -> pb.ShutdownReply:
        self._callers.peer(context)
        self._daemon.stop()
        return pb.ShutdownReply()

    # ---- inside

    def _vault_status(self) -> pb.VaultStatus:
        vault = self._custody.vault
        damage = vault.damage() if vault.state == "unsealed" else ()
        return pb.VaultStatus(
            state=vault.state,
            keyed_by=vault.keyed_by,
            records=len(vault.records()),
            damage=[f"{each.service}/{each.name}: {each.what}" for each in damage],
        )

    async def _end_users(self, service: str, name: str, why: str) -> None:
        """Kill what runs with a credential that isn't the account's any more: its lease can't be called back."""
        for row in self._engine.core.actions.in_states((State.ALLOWED, State.PREPARED, State.RUNNING)):
            if any((need.service, need.account) == (service, name) for need in row.the_plan().required):
                await self._engine.cancel(row.id, why=why)

    def _record(self, service: str, name: str) -> Any:
        for record in self._custody.vault.records():
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
            service = self._engine.core.catalog.service(request.service)  # raises, with close matches
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
        known = self._custody.vault.records() if self._custody.state != "absent" else ()
        mine = (record.account for record in known if record.account.service == service)
        return next((account for account in mine if account.name == name), None)


def _width(text: str) -> Width:
    try:
        return Width(text or "once")
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} isn't a width.", next_step="It is once, session or permanent.") from None
