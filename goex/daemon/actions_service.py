"""`goex.v1.Actions`, on both sockets: what agents may do, and the person too. Nothing here can decide anything.

Rules: an action that somebody at the public page begins is the person's, and rules and grants may let it run unasked;
so a passkey confirms that very call before anything is begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from goex import __version__
from goex.daemon.action_views import action_view, mapping_view, problem_view, without_texts
from goex.daemon.agent_views import shown_action, shown_event
from goex.daemon.approval_views import approval_view
from goex.daemon.brief_views import BriefViews, brief_view
from goex.daemon.find_views import by_service, found
from goex.daemon.request_parser import (
    LONGEST_KEY,
    checked_answer,
    checked_intent,
    checked_names,
    earlier_program,
    owned,
    parse_execute,
    parse_revert,
    parse_sent,
)
from goex.daemon.result_pages import answer, page
from goex.daemon.rpc_context import Callers, streaming, unary
from goex.daemon.vault_state import VaultState
from goex.engine.core import Principal, Request
from goex.engine.engine import Engine
from goex.engine.events import Approval, Asked, Event, Finished, Mapped, Printed, Progressed, Stepped
from goex.engine.keys import KeyTaken, KeyUnknown
from goex.engine.peers import sees_our_files
from goex.engine.quota import JUDGEMENTS, Exhausted
from goex.journal.actions import ActionRow
from goex.journal.states import UNDER_WAY, State
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.actions import Action, ApiCalls, Revert
from policies.errors import GoexError, InvalidInput
from policies.grants import ANONYMOUS
from policies.jsonvalue import canonical, parse
from policies.stages import earlier_actions, with_earlier

if TYPE_CHECKING:
    from runtimes.code.reader import Reader

MOST_OUTCOME = 64 * 2**20  # our own texts are read whole
MOST_LISTED = 1000
LONGEST_LIST = 2 * 2**20  # bytes of what an agent is told at once: below what any client takes
MOST_EARLIER = 8  # actions whose answers one action refers to
MOST_COMPARED = 16 * 1024  # bytes of a refused request that is held against what its key began, at the cost of a look
_REVERTING = {"undo": "Undoing", "redo": "Redoing", "commit": "Keeping for good"}


class ActionsService(rpc.ActionsServicer):
    """One instance for each socket's server; who is calling comes with each call."""

    def __init__(
        self,
        engine: Engine,
        callers: Callers,
        vault_state: VaultState,
        present: Callable[[Any, str], Awaitable[object]],
    ) -> None:
        """`present` gets a call's context and what it does in words; it raises unless the person showed presence."""
        self._present = present
        self._engine = engine
        self._callers = callers
        self._vault_state = vault_state
        self._leaving: set[asyncio.Task[None]] = set()
        self._reader: Reader | None = None
        self._looking = asyncio.Lock()
        self._briefs = BriefViews(engine.core)

    @unary
    async def Find(self, request: pb.FindRequest, context: Any) -> pb.FindReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        checked_names(request.query, request.service, request.method)
        accounts = by_service((one.account.service, one.account.name) for one in self._vault_state.records())
        async with core.quotas.doing(principal.agent, principal.session):
            index = await self._engine.mapping.ranking() if request.query else None
            reply = await asyncio.to_thread(found, core.catalog, request, accounts, index)
        reply.vault = self._vault_state.state
        reply.folders.extend(core.settings.confinement.folders)
        return reply

    @unary
    async def Map(self, request: pb.MapRequest, context: Any) -> pb.MapReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        core.rules.counts.refuse_resting(principal.agent, principal.session)
        intent = checked_intent(request.intent)
        async with core.quotas.doing(principal.agent, principal.session):
            reply = mapping_view(await self._engine.mapping.map(intent, principal, checked_answer(request.answer)))
            if request.explain:
                reply.explanation.extend(await self._engine.mapping.explain(intent, principal))
        return reply

    @streaming
    async def Execute(self, request: pb.ExecuteRequest, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        async for event in self._known(request, principal, self._execute(request, context, principal)):
            yield event

    async def _execute(self, request: pb.ExecuteRequest, context: Any, principal: Principal) -> AsyncIterator[pb.Event]:
        quotas = self._engine.core.quotas
        quotas.take(principal.agent, principal.session, request.ByteSize())
        if (earlier := earlier_program(self._engine, request, principal)) is not None:
            quotas.more(principal.agent, principal.session, len(earlier.action.program))
        parsed = parse_execute(request, earlier)
        await self._confirm_away(context, parsed, principal, "Running this")
        async for event in self._journey(
            replace(parsed, action=await self._filled(parsed.action, principal)), principal
        ):
            yield event

    @streaming
    async def Revert(self, request: pb.RevertRequest, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        async for event in self._known(request, principal, self._revert(request, context, principal)):
            yield event

    async def _revert(self, request: pb.RevertRequest, context: Any, principal: Principal) -> AsyncIterator[pb.Event]:
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        parsed = parse_revert(request)
        await self._confirm_away(context, parsed, principal, f"{_REVERTING[request.verb]} {request.action_id}")
        async for event in self._journey(parsed, principal):
            yield event

    @unary
    async def WayBack(self, request: pb.WayBackRequest, context: Any) -> pb.WayBackReply:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        from goex.daemon.undo_to import way_back  # loaded by its first call

        async with self._engine.core.quotas.doing(principal.agent, principal.session):
            return await way_back(self._engine, principal, request)

    @streaming
    async def Watch(self, request: pb.ActionId, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        row = await self._looked_at(request.id, principal)
        with self._engine.core.quotas.watching(principal.agent, principal.session):
            async for event in self._follow(row.id, principal):
                yield event

    @unary
    async def Get(self, request: pb.ActionId, context: Any) -> pb.ActionView:
        principal = self._callers.principal(context)
        return shown_action(self._engine.core, await self._looked_at(request.id, principal), principal)

    @unary
    async def Result(self, request: pb.ResultRequest, context: Any) -> pb.ResultReply:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        row = await self._read(request.id, principal)
        view = shown_action(self._engine.core, row, principal)
        if not view.outcome_json:
            raise InvalidInput(f"{row.id} has no result; it is {view.state}.", next_step="Get says how it stands.")
        # Apart: it may be long, and the person's calls come in between.
        return await asyncio.to_thread(lambda: page(parse(view.outcome_json, limit=MOST_OUTCOME), view.kind, request))

    @unary
    async def List(self, request: pb.ListRequest, context: Any) -> pb.ListReply:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        before = (await self._read(request.before, principal)).number if request.before else 0
        limit = min(request.limit or 50, MOST_LISTED)
        views: list[pb.ActionView] = []
        size = 0
        for id in self._engine.core.actions.newest_ids(principal.own, before=before, limit=limit):
            try:
                row = await self._read(id, principal)
            except Exhausted:
                if not views:
                    raise
                break  # the next page begins with it
            view = shown_action(self._engine.core, row, principal)
            if request.brief:
                without_texts(view)
            size += view.ByteSize()
            if views and size > LONGEST_LIST and not principal.owns_all:
                break  # the next page begins with it
            views.append(view)
        return pb.ListReply(actions=views)

    @unary
    async def Cancel(self, request: pb.ActionId, context: Any) -> pb.ActionView:
        principal = self._callers.principal(context)
        row = await self._looked_at(request.id, principal)
        ended = await self._engine.cancel(row.id, why="cancelled by who asked")
        return shown_action(self._engine.core, ended, principal)

    @unary
    async def Whoami(self, request: pb.WhoamiRequest, context: Any) -> pb.WhoamiReply:
        peer, principal = self._callers.peer(context), self._callers.principal(context)
        self._engine.core.quotas.look(principal.agent, principal.session)
        return pb.WhoamiReply(
            agent=principal.agent,
            session=principal.session,
            uid=peer.uid,
            pid=peer.pid,
            socket=peer.socket,
            version=__version__,
        )

    @unary
    async def Judge(self, request: pb.JudgeRequest, context: Any) -> pb.JudgeReply:
        peer, principal = self._callers.peer(context), self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        async with core.quotas.doing(principal.agent, principal.session, JUDGEMENTS):
            from goex.daemon.tool_calls import judged  # it reads programs, which few daemons are asked for
            from runtimes.code.reader import Reader

            self._reader = self._reader or Reader()
            looks = principal.agent != ANONYMOUS and sees_our_files(peer)
            return await judged(core, self._reader, request, principal, looks=looks)

    @unary
    async def Preview(self, request: pb.PreviewRequest, context: Any) -> pb.DryRunReply:
        from goex.daemon.preview_calls import asked_for, preview  # loaded by its first call

        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        action: Action | None = None
        match request.WhichOneof("what"):
            case "request":
                action = await self._filled(parse_execute(request.request).action, principal)
            case "revert":
                action = parse_revert(request.revert).action
            case "action_id":
                action = asked_for(await self._read(request.action_id, principal))
        target = await self._read(action.target, principal) if isinstance(action, Revert) else None
        async with core.quotas.doing(principal.agent, principal.session):
            return await preview(self._engine, action, target, principal)

    async def _confirm_away(self, context: Any, parsed: Request, principal: Principal, what: str) -> None:
        """Raise PasskeyDue for a call from the public page until a passkey has confirmed that very call, and what
        `Engine.wanted` raises: no passkey is asked for what would be refused."""
        if self._callers.peer(context).away:
            self._engine.wanted(parsed, principal)
            await self._present(context, what)

    async def _looked_at(self, id: str, principal: Principal) -> ActionRow:
        """An action that is shown now."""
        self._engine.core.quotas.look(principal.agent, principal.session)
        return await self._read(id, principal)

    async def _read(self, id: str, principal: Principal) -> ActionRow:
        """An action of the principal's. Agents' are read one after the other, with the person's calls in between, and
        counted by their size."""
        quotas = self._engine.core.quotas
        async with nullcontext() if principal.owns_all else self._looking:
            await asyncio.sleep(0)  # each may be long
            quotas.look(principal.agent, principal.session, 0)
            row = owned(self._engine, id, principal)
            quotas.read(principal.agent, principal.session, row.size)
            return row

    async def _filled(self, action: Action | None, principal: Principal) -> Action | None:
        """Calls with what earlier actions of the same asker answered, where they refer to it: as who asked was shown
        it, and as data, which no grant and no rule of before covers."""
        if not isinstance(action, ApiCalls) or not (ids := earlier_actions(action.calls)):
            return action
        if len(ids) > MOST_EARLIER:
            raise InvalidInput(f"These refer to more than {MOST_EARLIER} actions.", next_step="Make two actions of it.")
        answers = {}
        for id in ids:
            row = await self._looked_at(id, principal)
            view = shown_action(self._engine.core, row, principal)
            if not view.outcome_json:
                raise InvalidInput(f"{row.id} has no result; it is {view.state}.", next_step="Get says how it stands.")
            answers[id] = answer(parse(view.outcome_json, limit=MOST_OUTCOME), view.kind)
        try:
            # Apart, and agents' one after the other: the person's calls come in between.
            async with nullcontext() if principal.owns_all else self._looking:
                calls = await asyncio.to_thread(with_earlier, action.calls, answers)
        except GoexError as error:
            raise InvalidInput(error.message, next_step=error.next_step or "Result shows what it answered.") from error
        size = sum(len(canonical(call.arguments)) for call in calls if call.filled)
        self._engine.core.quotas.more(principal.agent, principal.session, size)
        return ApiCalls(calls=calls)

    async def _known(
        self, request: pb.ExecuteRequest | pb.RevertRequest, principal: Principal, events: AsyncIterator[pb.Event]
    ) -> AsyncIterator[pb.Event]:
        """The events of a request. What it began before, by the same key, is told whatever it is refused for now: else
        whoever asks would take it that nothing was begun. Raises KeyUnknown, KeyTaken."""
        told = False
        try:
            async for event in events:
                told = True
                yield event
        except (KeyTaken, KeyUnknown):
            raise
        except Exception as error:
            if not told and (id := self._earlier(request, principal, error)):
                yield pb.Event(action_id=id)
            raise

    def _earlier(self, request: pb.ExecuteRequest | pb.RevertRequest, principal: Principal, error: Exception) -> str:
        """The id of what a request that is refused began before, by the same key; "" where it began nothing. Raises
        KeyUnknown, and KeyTaken where that was another request."""
        if len(request.key) > LONGEST_KEY or not (id := self._engine.keys.keyed(request.key, principal)):
            return ""
        parsed = None
        if request.ByteSize() <= MOST_COMPARED:
            with suppress(GoexError):
                self._engine.core.quotas.look(principal.agent, principal.session)
                parsed = parse_sent(request)
        if parsed is None:
            why = error.message if isinstance(error, GoexError) else "Internal error."
            raise KeyUnknown(f"{why} What its key began is {id}, perhaps by this request: see how that stands.")
        self._engine.keys.check_same(id, parsed, principal)
        return id

    async def _journey(self, request: Request, principal: Principal) -> AsyncIterator[pb.Event]:
        if id := self._engine.keys.already(request, principal):
            yield pb.Event(action_id=id)  # whatever the rest is refused for
            await self._read(id, principal)  # it is answered whole, as often as it is asked for
            async for event in self._follow(id, principal):
                yield event
            return
        id, told = self._engine.begin(request, principal), False
        try:
            async for event in self._follow(id, principal, new=True):  # it begins when this first waits
                told = True
                yield event
        except Exception:
            if not told:
                yield pb.Event(action_id=id)  # it is begun, whatever keeps it from being told
            raise

    async def _follow(self, id: str, principal: Principal, *, new: bool = False) -> AsyncIterator[pb.Event]:
        """Events until the action has ended: that it was received, or (not `new`) how it stands now, and what comes
        then. Leaving early is told to the engine."""
        hub = self._engine.core.hub
        # The person who looks at an agent's action doesn't keep its question open when the agent is gone.
        watcher = hub.watch(id, asked=new or self._engine.core.actions.get(id).agent == principal.agent)
        try:
            if new:
                watcher.put(Stepped("", "receive", State.RECEIVED))
            for so_far in () if new else self._so_far(id, principal):
                yield so_far
                if so_far.HasField("finished"):
                    return
            while True:
                event = await watcher.get()
                if (told := self._told(id, event, principal)) is not None:
                    yield told
                if isinstance(event, Finished):
                    return
        finally:
            hub.unwatch(id, watcher)
            if watcher.asked:
                task = asyncio.ensure_future(self._engine.left(id))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    def _so_far(self, id: str, principal: Principal) -> list[pb.Event]:
        """How an action stands: its state, and its end or the questions that are open."""
        row = self._engine.core.actions.get(id)
        found: list[pb.Event | None] = []
        found.append(self._told(id, Stepped("", "", shown_action(self._engine.core, row, principal).state), principal))
        if not self._engine.is_under_way(id) and row.state not in UNDER_WAY:
            found.append(self._told(id, Finished(row=row, problem=self._engine.problem(row)), principal))
        elif row.state in (State.ALLOWED, State.PREPARED, State.RUNNING) and not self._engine.is_under_way(id):
            # An earlier daemon began it, and its end is found out with the vault's keys: waiting would tell nothing.
            self._engine.core.vault.require_open()
        elif row.state is State.ASKING:
            open_ = [one.id for one in self._engine.core.approvals.of_action(id) if one.state == "pending"]
            found += [self._told(id, Asked(question), principal) for question in open_]
        return [event for event in found if event is not None]

    def _told(self, id: str, event: Event, principal: Principal) -> pb.Event | None:
        """An event for whoever follows; None for one that they aren't told."""
        made = self._event(id, event)
        if principal.owns_all or isinstance(event, Printed | Mapped):
            return made
        core = self._engine.core
        return shown_event(core, made, event.row if isinstance(event, Finished) else core.actions.get(id), principal)

    def _event(self, id: str, event: Event) -> pb.Event:
        made = pb.Event(action_id=id)
        match event:
            case Stepped(before, name, after):
                made.state.CopyFrom(pb.StateChange(event=name, to=after, **{"from": before}))
            case Printed(stream, data):
                made.output.CopyFrom(pb.Output(stream=stream, data=data))
            case Progressed(text):
                made.progress = text
            case Mapped(mapping):
                made.mapped.CopyFrom(mapping_view(mapping))
            case Asked(question):
                made.asking.CopyFrom(self.approval(question))
            case Finished():
                finished = pb.Finished(action=action_view(event.row, event.plan), answer=event.answer)
                if event.problem is not None:
                    finished.problem.CopyFrom(problem_view(event.problem))
                made.finished.CopyFrom(finished)
        return made

    def approval(self, question: str, *, brief: bool = False) -> pb.Approval:
        """A question with all that the person is shown; `brief`: as a list shows it."""
        (made,) = self.approvals((self._engine.core.approvals.get(question),), brief=brief)
        return made

    def approvals(self, found: Sequence[Approval], *, brief: bool = False) -> Iterator[pb.Approval]:
        """Several, each made when it is taken, of actions that are read at once."""
        actions = self._engine.core.actions
        rows = actions.those(self._briefs.missing(found) if brief else [approval.action_id for approval in found])
        for approval in found:
            if brief:
                yield self._briefs.view(approval, rows.get(approval.action_id))
            else:
                yield self._whole(approval, rows[approval.action_id])

    def _whole(self, approval: Approval, row: ActionRow) -> pb.Approval:
        plan = row.readable_plan()  # a long one isn't kept of what never ran
        if plan is None:
            return brief_view(self._engine.core, approval, row, plan)
        decision = self._engine.asking.decision(row, plan)
        return approval_view(self._engine.core, approval, row, plan, decision)
