"""`goex.v1.Person`, on user.sock alone: decide, grant, revoke, unlock, read everything."""

from __future__ import annotations

from typing import Any

from goex.catalog_views import services_reply
from goex.daemon.action_views import action_view
from goex.daemon.approval_calls import AskingCalls
from goex.daemon.dryrun_calls import DryRunCalls
from goex.daemon.log_calls import LogCalls
from goex.daemon.person_context import PresenceDue
from goex.daemon.rpc_context import unary
from goex.daemon.vault_calls import VaultCalls
from goex.daemon.waiting_calls import PasskeyDue
from goex.daemon.webauthn import PasskeyRefused
from goex.engine.recovery import look_again
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc


class PersonService(AskingCalls, DryRunCalls, VaultCalls, LogCalls, rpc.PersonServicer):
    """Everything that only the person may do."""

    @unary
    async def Present(self, request: pb.PresentRequest, context: Any) -> pb.PresentReply:
        away = self._person.callers.peer(context).away
        if request.assertion_json:
            return await self._present_by_passkey(request.assertion_json, context)
        if self._person.passkeys.required or away:
            raise PasskeyDue("Showing that you are there")
        if not request.passphrase:  # what is remembered isn't remembered for longer by asking
            raise PresenceDue("Showing that you are there needs your approval passphrase.", next_step="Type it.")
        peer = await self._person.present(context, request.passphrase, "Showing that you are there")
        return pb.PresentReply(seconds=self._person.presence.remember(peer))

    async def _present_by_passkey(self, assertion: str, context: Any) -> pb.PresentReply:
        """Lets one call through that waits for it; or remembers presence at the caller's terminal."""
        what = "Showing that you are there"
        peer, shown = await self._person.shown(context, assertion, what, kind="presence")
        here = {"kind": "presence", "terminal": peer.place, "by": peer.describe()}
        if "waiting" not in shown.statement and here != shown.statement:
            raise PasskeyRefused("This assertion is for another terminal.", next_step="Look at it again on the page.")
        facts = {"by": peer.describe(), "assertion": dict(shown.facts)}
        self._person.engine.core.journal.append("presence", facts=facts)
        if "waiting" in shown.statement:
            return pb.PresentReply(seconds=self._person.waiting.confirm(shown.statement))
        return pb.PresentReply(seconds=self._person.presence.remember(peer))

    # ---- agents

    @unary
    async def AddAgent(self, request: pb.AddAgentRequest, context: Any) -> pb.AddAgentReply:
        self._person.vault_state.require_open()
        self._person.engine.core.grant_store.check_agent_name(request.name)
        peer = await self._person.present(context, request.passphrase, "Naming an agent")
        token = self._person.engine.core.grant_store.add_agent(request.name, by=peer.describe())
        return pb.AddAgentReply(
            name=request.name, token=token, rules=self._person.engine.core.rules.naming(request.name)
        )

    @unary
    async def ListAgents(self, request: pb.ListAgentsRequest, context: Any) -> pb.ListAgentsReply:
        self._person.callers.peer(context)
        found = self._person.engine.core.grant_store.agents()
        return pb.ListAgentsReply(agents=[pb.AgentView(name=agent.name, created=agent.created) for agent in found])

    @unary
    async def RemoveAgent(self, request: pb.RemoveAgentRequest, context: Any) -> pb.RemoveAgentReply:
        peer = self._person.callers.peer(context)
        await self._person.engine.remove_agent(request.name, by=peer.describe())
        return pb.RemoveAgentReply()

    # ---- what can't be known

    @unary
    async def LookAgain(self, request: pb.ActionId, context: Any) -> pb.ActionView:
        peer = self._person.callers.peer(context)
        return action_view(await look_again(self._person.engine, request.id, by=peer.describe()))

    # ---- reading

    @unary
    async def Status(self, request: pb.StatusRequest, context: Any) -> pb.StatusReply:
        self._person.callers.peer(context)
        return await self._person.daemon.status()

    @unary
    async def Services(self, request: pb.ServicesRequest, context: Any) -> pb.ServicesReply:
        self._person.callers.peer(context)
        known = self._person.vault_state.records()
        accounts: dict[str, list[str]] = {}
        for record in known:
            accounts.setdefault(record.account.service, []).append(record.account.name)
        return services_reply(self._person.engine.core.catalog, request, accounts)

    @unary
    async def Shutdown(self, request: pb.ShutdownRequest, context: Any) -> pb.ShutdownReply:
        self._person.callers.peer(context)
        self._person.daemon.stop()
        return pb.ShutdownReply()
