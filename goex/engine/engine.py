"""The engine: one path from a request to its outcome, for every kind of action and every way in.

    receive -> map -> assess -> decide (and ask) -> lease -> prepare -> run -> outcome

Rules: a step is on disk before its effect begins, and with it all steps before it, of which none has an effect;
nothing runs whose digest isn't the one that was decided on; what fails before `run` has changed nothing, and what
fails after it is an outcome or unknown. Undo, redo and commit are actions too (`Revert`) and take the same path.
Everything here is called on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from goex.engine.agent_threads import work_for
from goex.engine.authorize import Asking, next_step
from goex.engine.core import Core, Lost, Principal, Request
from goex.engine.events import Asked, Finished, Printed, Problem, Progressed
from goex.engine.execution import Running
from goex.engine.intents import Mappings
from goex.engine.keys import Keys, asked
from goex.engine.reverts import Reverting
from goex.engine.stages import ReadsFailed, Stages
from goex.engine.tasks import plan_of
from goex.engine.timeline import Timeline
from goex.engine.undo_policy import as_rules_want
from goex.journal.actions import ActionRow
from goex.journal.errors import JournalBroken, JournalFailed
from goex.journal.states import BEFORE_DECISION, UNDER_WAY, Event, State
from policies.actions import Action, ApiCalls, Files, Plan, Revert, Sql
from policies.decisions import Deny
from policies.digest import digest
from policies.errors import Denied, ExitStatus, GoexError, InvalidInput
from policies.grants import PERSON
from policies.jsonvalue import JsonValue, parse
from policies.services import Risk
from policies.stages import at_once
from policies.tasks import Task
from policies.typed_json import from_json, to_json
from runtimes.base import Runtime
from runtimes.files.plans import unseen

log = logging.getLogger("goex.engine")
BEAT = 0.5  # seconds; an agent is refused a folder at a multiple of it


_AGENT_REMOVED = "its agent was removed"
_STOPPING = "the daemon is stopping"

# A request that ends so isn't an attempt that failed: the machine wasn't ready, or the words have several meanings.
_NOBODYS_DOING = (ExitStatus.SEALED, ExitStatus.UNAVAILABLE, ExitStatus.AMBIGUOUS)


class Defect(GoexError):
    """An exception that nobody expected."""

    code = "defect"


@dataclass(frozen=True, slots=True)
class Arrived:
    """An action at its end, its plan as it was decided on, and the answer in words, if there is one."""

    row: ActionRow
    plan: Plan
    answer: str = ""


@dataclass(slots=True)
class _Journey:
    task: asyncio.Task[None]
    effect: bool = False  # `run` was written: from here cancelling kills, it doesn't withdraw
    begun: bool = False
    ending: str = ""  # why; one that hadn't begun ends when it does: a task that is cancelled before never begins

    def end(self, why: str) -> None:
        """Once: the first reason stays, and what it waits for on its way out goes on."""
        if not self.ending:
            self.ending = why
            if self.begun:
                self.task.cancel(why)


@dataclass(slots=True)
class Engine:
    """Starts, follows and ends journeys."""

    core: Core
    mapping: Mappings
    asking: Asking = field(init=False)
    running: Running = field(init=False)
    stages: Stages = field(init=False)
    timeline: Timeline = field(init=False)
    reverting: Reverting = field(init=False)
    keys: Keys = field(init=False)
    draining: bool = False
    _journeys: dict[str, _Journey] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asking = Asking(self.core)
        self.timeline = Timeline(self.core)
        self.reverting = Reverting(self.core, self.timeline)
        self.running = Running(self.core, self.reverting)
        self.stages = Stages(self.core, self._read)
        self.keys = Keys(self.core)

    # ---- in

    def begin(self, request: Request, principal: Principal) -> str:
        """Record a wish and start it on its path; returns the action's id. Raises before anything is recorded."""
        if self.draining:
            raise Denied("The daemon is stopping.", next_step="Ask again when it is back: goex daemon start")
        id = self.keys.id(request, principal)
        action = self.wanted(request, principal)
        with self.core.journal.transaction(lasting=False) as transaction:
            row = self.core.actions.create(
                transaction,
                id=id,
                agent=principal.agent,
                session=principal.session,
                intent=request.intent,
                action=action,
                source=principal.source,
                process=principal.process,
                detached=request.detach,
                asked=asked(request, principal.session) if request.key else "",
            )
        self.start(row, self._travel(row, request))
        return row.id

    def wanted(self, request: Request, principal: Principal) -> Action | None:
        """The action that a wish is for; None for one in words. Raises for what can't be wished for, and for an agent
        that was removed since its call came."""
        self.core.check_named(principal)
        self.core.rules.counts.refuse_resting(principal.agent, principal.session)
        action = self.mapping.proposed(request.proposal) if request.proposal else request.action
        if isinstance(action, ApiCalls) and not action.calls:
            raise InvalidInput("There is no call in this request.", next_step="goex exec --call SERVICE.METHOD …")
        if action is None and not request.intent.strip():
            raise InvalidInput("There is nothing to do in this request.", next_step='goex exec "send …"')
        if isinstance(action, Revert):
            self.reverting.check(action, principal)
        return action

    def start(self, row: ActionRow, journey: Coroutine[Any, Any, Arrived]) -> None:
        """Let a journey run by itself to its end."""
        self._journeys[row.id] = _Journey(asyncio.create_task(self._whole(row, journey), name=row.id))

    def is_under_way(self, id: str) -> bool:
        return id in self._journeys

    @staticmethod
    def problem(row: ActionRow) -> Problem | None:
        """Why an action didn't end well; None when it did, or hasn't ended."""
        return from_json(Problem, parse(row.problem), "The problem") if row.problem else None

    async def cancel(self, id: str, *, why: str) -> ActionRow:
        """Withdraw what hasn't begun; kill what runs. Idempotent."""
        journey = self._withdraw(id, why)
        if journey is not None:
            await asyncio.wait({journey.task})
        return self.core.actions.get(id)

    def _withdraw(self, id: str, why: str) -> _Journey | None:
        """Tell a journey to end, and return it while it hasn't."""
        journey = self._journeys.get(id)
        if journey is not None:
            journey.end(why)
        return journey

    async def left(self, id: str) -> None:
        """A client that waited for this action has gone: what nobody decided yet is then a denial."""
        if not self.is_under_way(id):
            return
        row = self.core.actions.get(id)
        if not row.detached and not self.core.hub.awaited(id) and row.state in {*BEFORE_DECISION, State.ASKING}:
            await self.cancel(id, why="whoever asked has gone")

    async def remove_agent(self, name: str, *, by: str) -> None:
        """Forget an agent, and withdraw what it asked for, and what the person would have allowed it, of which nothing
        has begun: whoever gets its name later isn't the one that was meant. Raises InvalidInput."""
        self.core.grant_store.remove_agent(name, by=by)
        self.stages.forget(name)
        self.mapping.forget(name)
        states = {*BEFORE_DECISION, State.ASKING, State.ALLOWED, State.PREPARED}
        found = [row.id for row in self.core.actions.in_states(states) if not self.core.is_named(row)]
        for id in found:  # all of them before any is waited for: the others would go on meanwhile
            self._withdraw(id, _AGENT_REMOVED)
        for id in found:
            await self.cancel(id, why=_AGENT_REMOVED)

    async def drain(self, seconds: float) -> None:
        """Take nothing new; give what runs `seconds` to end, then kill it. Open questions stay open on disk."""
        self.draining = True
        acting = [journey.task for journey in self._journeys.values() if journey.effect]
        if acting:
            await asyncio.wait(acting, timeout=seconds)
        left = [*self._journeys.values()]
        for journey in left:
            journey.end(_STOPPING)
        if left:
            await asyncio.wait([journey.task for journey in left], timeout=30)

    # ---- the path

    async def _travel(self, row: ActionRow, request: Request) -> Arrived:
        self.core.vault.require_open()
        asked = row.action()
        staged = self.stages.answered(row, request)
        async with self.core.quotas.turn(row.agent, row.session):
            action: Action = staged.action if staged else asked or await self.mapping.action_for(row, request)
            lead = self.stages.lead(action) if staged is None and isinstance(action, ApiCalls) else 0
            if lead and isinstance(action, ApiCalls):
                self._check_whole(row, request, (await self.assess(row, at_once(action)))[1])
        if lead and isinstance(action, ApiCalls):
            staged = await self.stages.run(row, action, lead)
            action = staged.action
        async with self.core.quotas.turn(row.agent, row.session):
            if staged or asked is None:
                row = self.core.stepped(row, Event.MAP, lasting=False, action=action)
            if isinstance(action, Files) and row.agent != PERSON:
                runtime, plan = await self._assess_unseen(row, action)
            else:
                runtime, plan = await self.assess(row, action)
        self._check_reads(request, plan)
        row = self.core.stepped(row, Event.ASSESS, lasting=False, plan=plan)
        self.core.check_consent(plan)  # before the person is asked: what they allow must be able to run
        row = await self.asking.settle(row, plan, lambda: self._plan_again(row, action), request.ask_seconds)
        return await self.go_on(row, runtime, plan, before=staged.results if staged else ())

    def _check_whole(self, row: ActionRow, request: Request, plan: Plan) -> None:
        """Nothing is read for a request that would be refused, whatever the answers are."""
        self._check_reads(request, plan)
        self.core.check_consent(plan)
        decision = self.asking.decision(replace(row, digest=digest(plan, agent=row.agent)), plan)
        if isinstance(decision, Deny):
            raise Denied(decision.reason, next_step=next_step(decision, row.agent))

    @staticmethod
    def _check_reads(request: Request, plan: Plan) -> None:
        if request.reads_only and plan.risk > Risk.READ:
            raise InvalidInput("This doesn't only read.", next_step="Ask for it as what it is: a change.")

    async def _read(self, row: ActionRow, calls: ApiCalls, answers: dict[str, JsonValue]) -> ActionRow:
        """Carry out what `row` reads first, as an action of the same asker; whoever follows `row` is told of it."""
        id = f"a-{secrets.token_hex(6)}"
        with self.core.journal.transaction(lasting=False) as transaction:
            reads = self.core.actions.create(
                transaction,
                id=id,
                agent=row.agent,
                session=row.session,
                intent="",
                action=calls,
                source=row.source,
                detached=False,
            )
            transaction.append("reads", action_id=row.id, agent=row.agent, facts={"action": id})
        watcher = self.core.hub.watch(id)
        self.start(reads, self._read_journey(reads, calls, answers))
        try:
            while not isinstance(event := await watcher.get(), Finished):
                if isinstance(event, Asked | Progressed | Printed):
                    self.core.hub.publish(row.id, event)
            return event.row
        except asyncio.CancelledError:
            await self.cancel(id, why="what it was read for was withdrawn")
            raise
        finally:
            self.core.hub.unwatch(id, watcher)

    async def _read_journey(self, row: ActionRow, calls: ApiCalls, answers: dict[str, JsonValue]) -> Arrived:
        async with self.core.quotas.turn(row.agent, row.session):
            runtime, plan = await self.assess(row, calls)
        row = self.core.stepped(row, Event.ASSESS, lasting=False, plan=plan)
        row = await self.asking.settle(row, plan, lambda: self._plan_again(row, calls))
        return await self.go_on(row, runtime, plan, answers=answers)

    async def go_on(
        self,
        row: ActionRow,
        runtime: Runtime,
        plan: Plan,
        *,
        before: tuple[JsonValue, ...] = (),
        answers: dict[str, JsonValue] | None = None,
    ) -> Arrived:
        """The rest of the path after the decision."""
        if row.state is not State.ALLOWED:
            return Arrived(row, plan)
        row = await self.running.carry_out(
            row,
            runtime,
            plan,
            lambda: self._note_effect(row.id),
            lambda: self.asking.check_still_allowed(row, plan),
            before=before,
            answers=answers,
        )
        # What stands in a person's database is never told to a model: it gets names and types alone.
        if not row.intent or row.state is not State.DONE or plan.action.kind in ("sql", "mongo"):
            return Arrived(row, plan)
        self.core.hub.publish(row.id, Progressed("putting the result into words"))
        with suppress(GoexError):  # the action is done; a model that can't be reached doesn't change that
            return Arrived(row, plan, await self.mapping.words(row))
        return Arrived(row, plan)

    async def assess(self, row: ActionRow, action: Action) -> tuple[Runtime, Plan]:
        """What it will touch and need. Has no effect, and is done again after an approval."""
        if isinstance(action, Revert):
            return await self.reverting.plan(action, row.agent)
        runtime = self.core.runtime_of(action)
        if isinstance(action, Task):
            return runtime, plan_of(self.core, action, row)
        action = self.core.resolved(action)
        plan = await runtime.assess(action, self.core.context(row, action))
        if isinstance(action, Sql):
            plan = await as_rules_want(self.core, row, action, runtime, plan)
        return runtime, plan

    async def _assess_unseen(self, row: ActionRow, action: Files) -> tuple[Runtime, Plan]:
        """`assess` for an agent's program on a folder. What was asked for is decided on first: a denial of that says
        nothing of what is there. What is refused after a look is refused at a beat, for the same reason."""
        plan = unseen(action)
        if self.asking.denies(row, plan):
            return self.core.runtime_of(action), plan
        began = asyncio.get_running_loop().time()
        refused = True
        try:
            runtime, plan = await self.assess(row, action)
            refused = self.asking.denies(row, plan)
            return runtime, plan
        finally:
            if refused:
                await asyncio.sleep(BEAT - (asyncio.get_running_loop().time() - began) % BEAT)

    async def _plan_again(self, row: ActionRow, action: Action) -> Plan:
        return (await self.assess(row, action))[1]

    def _note_effect(self, id: str) -> None:
        if id in self._journeys:
            self._journeys[id].effect = True

    # ---- ends

    async def _whole(self, row: ActionRow, journey: Coroutine[Any, Any, Arrived]) -> None:
        """Run a journey to its end, whatever end that is, and say so to whoever watches."""
        work_for(row.agent, row.source, row.session)
        problem: Problem | None = None
        arrived: Arrived | None = None
        own = self._journeys[row.id]
        own.begun = True
        try:
            if own.ending:
                journey.close()
                raise asyncio.CancelledError
            arrived = await journey
        except asyncio.CancelledError:
            problem = self._withdrawn(row.id, own.ending or _STOPPING)
        except GoexError as error:
            problem = self._stopped(row.id, error)
        except Exception:
            log.exception("action %s met a defect", row.id)
            problem = self._stopped(
                row.id, Defect("Internal error.", next_step="See daemon.log; goex doctor names its folder.")
            )
        finally:
            self._journeys.pop(row.id, None)
            self.asking.forget(row.id)
            with suppress(GoexError):
                self.core.vault.end_leases(row.id)
        if arrived is not None:
            problem = self.problem(arrived.row)
            ended = Finished(row=arrived.row, plan=arrived.plan, problem=problem, answer=arrived.answer)
        else:
            with suppress(GoexError):  # it can't be read any more: whoever watches is told all the same
                row = self.core.actions.get(row.id)
            ended = Finished(row=row, problem=problem or self.problem(row))
        self.core.hub.publish(row.id, ended)

    def _withdrawn(self, id: str, why: str) -> Problem:
        row = self.core.actions.get(id)
        if self.draining and why == _STOPPING and row.state is State.ASKING:  # it is taken up again at the next start
            said = "Nothing is changed, and the question stays open."
            if any(question.state == "approved" for question in self.core.approvals.of_action(id)[-1:]):
                said = "Nothing is changed; it was allowed, and goes on at the next start."
            elif not row.detached:
                within = "within a minute of the next start"
                said = f"Nothing is changed. It is withdrawn unless whoever asked follows it {within}."
            return Problem(
                code="stopping",
                message=f"The daemon is stopping. {said}",
                next_step=f"When the daemon is back: goex show {id}",
                exit_status=ExitStatus.UNAVAILABLE,
            )
        problem = Problem(code="withdrawn", message=f"Withdrawn: {why}.", exit_status=ExitStatus.DENIED)
        never_begun = {State.ALLOWED: Event.FAIL, State.PREPARED: Event.FAIL, State.RUNNING: Event.LOSE}
        return self.end(row, problem, never_begun.get(row.state, Event.WITHDRAW))

    def _stopped(self, id: str, error: GoexError) -> Problem:
        row = self.core.actions.get(id)
        by_state = {
            State.RECEIVED: Event.REJECT,
            State.MAPPED: Event.REJECT,
            State.ASSESSED: Event.DENY,
            State.ASKING: Event.DENY,
            # A runtime raises while it runs only when nothing was touched. These say nothing of the kind.
            State.RUNNING: Event.LOSE if _says_nothing(error) else Event.FAIL,
        }
        mine = row.state in (State.RECEIVED, State.MAPPED) and row.request and not isinstance(error, ReadsFailed)
        if mine and error.exit_status not in _NOBODYS_DOING:
            # Nobody was asked about it: without this an agent could try for ever, and nobody would hear of it.
            self.core.rules.counts.denied(row.agent, row.session)
        return self.end(row, Problem.of(error), by_state.get(row.state, Event.FAIL))

    def end(self, row: ActionRow, problem: Problem, event: Event) -> Problem:
        """Write the end of an action that has none yet, and close its question."""
        if row.state not in UNDER_WAY:
            return problem
        question = next((q.id for q in self.core.approvals.of_action(row.id) if q.state == "pending"), "")
        try:
            with self.core.journal.transaction() as transaction:
                if question:
                    self.core.approvals.settle(transaction, question, "withdrawn", by="goex")
                self.core.step(transaction, row, event, facts={"by": "goex"}, problem=to_json(problem))
                if event is Event.LOSE:  # any other end leaves a revert's target as it is
                    self.reverting.step_target(transaction, row.reverts()[1], event, row.id)
            # A yes that came before this end, and wasn't used, isn't kept for later.
            self.core.grant_store.revoke(self.core.grant_store.unused(row.id), by="goex", why="it didn't run")
        except GoexError as error:
            log.error("action %s stays %s until the next start: %s", row.id, row.state, error)
            return Problem.of(error)
        if question:
            self.core.approvals.announce(question)
        return problem


def _says_nothing(error: GoexError) -> bool:
    """Whether an error leaves open what was touched."""
    return error.exit_status is ExitStatus.UNKNOWN or isinstance(error, Lost | Defect | JournalFailed | JournalBroken)
