"""From ALLOWED to the outcome: prepare, run, finish; and what the end of a revert does to its target.

Rules: the inverse is durable before `run` is written, and `run` is written before the effect begins; whatever is raised
before that changed nothing; a run that was cancelled, or met a defect, is looked at as a crashed one is. What works on
one folder runs one after the other: a grant can let several begin at once, and each would find the others' changes. The
person stands in no agent's line: what they do has places of its own, and waits at a folder for what runs there and, at
most, for one more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from goex.engine.core import Core, Lost
from goex.engine.events import Problem
from goex.engine.reverts import Reverting
from goex.journal.actions import ActionRow
from goex.journal.states import Event
from policies.actions import Ended, Outcome, Plan, Revert, UndoClass, folders_of
from policies.digest import digest
from policies.errors import Conflict, ExitStatus, GoexError
from policies.grants import PERSON
from policies.jsonvalue import JsonValue
from policies.services import Risk
from policies.typed_json import to_json
from runtimes.base import Context, Runtime

log = logging.getLogger("goex.engine")

MOST_AT_ONCE = 8  # of all agents; and as many of the person's


@dataclass(slots=True)
class Running:
    """Carries out what was allowed."""

    core: Core
    reverting: Reverting
    _agents: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))
    _persons: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))
    _folders: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _lines: WeakValueDictionary[tuple[bool, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def is_busy(self, folder: str) -> bool:
        """Whether something works on that folder now."""
        return folder in self._folders and self._folders[folder].locked()

    def slots(self, agent: str) -> asyncio.Semaphore:
        """What bounds how much runs at once of what `agent` asks for."""
        return self._persons if agent == PERSON else self._agents

    async def carry_out(
        self,
        row: ActionRow,
        runtime: Runtime,
        plan: Plan,
        begun: Callable[[], None],
        still: Callable[[], None],
        *,
        before: tuple[JsonValue, ...] = (),
        answers: dict[str, JsonValue] | None = None,
    ) -> ActionRow:
        """Run an ALLOWED action to its outcome, which is on disk when this returns, as it ended. `begun` is called at
        `run`; `still` when its turn has come, and once more when it is prepared, which may take minutes: it raises
        when it isn't allowed any more. `before`: the results of what was read for it; `answers` is filled with what it
        reads."""
        async with AsyncExitStack() as turn:
            folders = sorted({*folders_of(plan), *(n.account for n in plan.needs if n.service == "files")})
            for folder in folders:
                line = row.agent == PERSON, folder
                await turn.enter_async_context(self._lines.setdefault(line, asyncio.Lock()))
            await turn.enter_async_context(self.slots(row.agent))
            for folder in folders:  # last, so that nobody has one who still waits for a place
                await turn.enter_async_context(self._folders.setdefault(folder, asyncio.Lock()))
            self.core.vault.require_open()  # it may have been sealed since the request, or while this waited
            if digest(plan, agent=row.agent) != row.digest:
                raise Conflict("The plan changed after it was decided on.")
            context = self.core.context(row, self.core.subject(plan.action), await self.core.leases(row, plan))
            context = replace(context, answers=answers)
            await turn.enter_async_context(context.ending)
            await self.reverting.check_alone(row, plan)
            still()
            if not isinstance(plan.action, Revert):
                try:
                    await runtime.prepare(plan, context)
                    self.core.vault.require_open()
                    still()
                except GoexError:  # not what was cancelled: to forget may be to wait for whoever has the folder
                    with suppress(GoexError):  # what is kept then is garbage, and nothing runs all the same
                        await runtime.forget(plan, context)
                    raise
            with self.core.journal.transaction() as transaction:  # nothing comes between the two
                row = self.core.step(transaction, row, Event.PREPARE)
                row = self.core.step(transaction, row, Event.RUN, anchored=plan.risk > Risk.READ)
            begun()
            try:
                await self.core.acknowledge()  # or an older log would give back what this uses, and have it run again
                if isinstance(plan.action, Revert):
                    outcome = await self.reverting.effect(row, plan, context)
                else:
                    outcome = await runtime.execute(plan, context)
            except asyncio.CancelledError:
                outcome = await self._look(runtime, plan, context, "It was cancelled while it ran")
                outcome = replace(outcome, ended=Ended.KILLED)
            except GoexError as error:
                if error.exit_status is not ExitStatus.UNKNOWN:
                    raise
                outcome = await self._look(runtime, plan, context, error.message.rstrip("."))
            except Exception:
                log.exception("action %s met a defect", row.id)
                outcome = await self._look(runtime, plan, context, "An internal error stopped it (see daemon.log)")
            return self.finish(row, plan, replace(outcome, results=(*before, *outcome.results)) if before else outcome)

    def finish(self, row: ActionRow, plan: Plan, outcome: Outcome) -> ActionRow:
        """Write the outcome, and in the same transaction what it does to a revert's target."""
        event = Event.FINISH if outcome.ok else Event.PART if outcome.touched else Event.FAIL
        problem = None
        if not outcome.ok:
            next_step = outcome.next_step or (_after_part(row.id, plan) if outcome.touched and not outcome.left else "")
            problem = to_json(
                Problem(code="failed", message=outcome.summary, next_step=next_step, details=outcome.details)
            )
        with self.core.journal.transaction() as transaction:
            row = self.core.step(transaction, row, event, outcome=outcome, problem=problem)
            if isinstance(plan.action, Revert):
                self.reverting.step_target(transaction, plan.action.targets, event, row.id, plan.action.verb)
        return row

    async def _look(self, runtime: Runtime, plan: Plan, context: Context, why: str) -> Outcome:
        """Find out what an effect did that ended otherwise than it should, as after a crash. Raises Lost."""
        if isinstance(plan.action, Revert):
            raise Lost(f"{why}.")
        settlement = await runtime.settle(plan, context)
        if settlement.outcome is None:
            raise Lost(f"{why}, and it can't be known what it did.", settlement.evidence)
        return replace(settlement.outcome, ok=False, summary=f"{why}. {settlement.outcome.summary}")


def _after_part(action_id: str, plan: Plan) -> str:
    """What to do about an action that failed after it may have changed something."""
    if isinstance(plan.action, Revert) or plan.undo_class is UndoClass.NOTHING:
        return ""
    if plan.undo_class is UndoClass.IRREVERSIBLE:
        return f"It may have changed something, and not all of it can be taken back. {plan.undo_text}"
    return f"It may have changed something; what it did is taken back by: goex undo {action_id}"
