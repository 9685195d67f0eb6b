"""The end of undo for programs on folders: their snapshots are kept for as many days as the plan said.

Rules: the person was told how long when the action was planned, so nobody is asked again; it is journaled before it is
done; the folder isn't touched. What failed can't be undone: what is kept of it goes at the next look, but for snapshots
where its own records don't say that it changed nothing: those go after as many days. What is being reverted now is left
alone until the next look, as is a failure on a folder that something works on, or the look would wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import select

from goex.engine.engine import Engine
from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow
from goex.journal.chain import moment
from goex.journal.schema import actions, records
from goex.journal.states import UNDER_WAY, Event, State
from policies.actions import Plan, Revert, folders_of
from policies.display_text import counted
from policies.errors import GoexError

log = logging.getLogger("goex.engine")

_KEPT = (State.DONE, State.PARTIAL, State.UNDONE)


def undo_ends(row: ActionRow) -> datetime | None:
    """When an action's undo (or redo) is given up; None: not before it is committed."""
    if row.kind != "files" or row.state not in _KEPT:
        return None
    return _kept_until(row)


def _kept_until(row: ActionRow) -> datetime | None:
    if '"keep_days"' not in row.plan:
        return None
    try:
        days = row.the_plan().undo.get("keep_days")
        return moment(row.updated) + timedelta(days=days) if isinstance(days, int) and days > 0 else None
    except (GoexError, ValueError):
        return None


def _days_over(plan: Plan) -> str:
    return f"its undo was kept for {counted(int(plan.undo['keep_days']), 'day')}"


@dataclass(slots=True)
class Retention:
    """Gives up what was kept for long enough; `clock` says the earliest that it may be now."""

    engine: Engine
    clock: Callable[[], datetime]
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _said: set[str] = field(default_factory=set)  # what fails does so at each look

    async def end_overdue(self) -> None:
        """Commit the actions whose undo was kept for as long as it was to be. What fails is tried at the next look."""
        core = self.engine.core
        async with self._ending:
            overdue = [row for row in core.actions.in_states(_KEPT, kind="files") if self._is_over(row)]
            keeping = self._failed()
            if not overdue and not keeping:
                return
            core.vault.require_open()
            # Before the chain is read, which may be long: what failed and has no end is looked at again and again.
            failed = [(row, why) for row in keeping if (why := await self._useless(row))]
            if not overdue and not failed:
                return
            believed = await asyncio.to_thread(confirmed, core.journal, (*overdue, *(row for row, _ in failed)))
            for row, why in failed:
                await asyncio.sleep(0)  # others' turn: there may be hundreds
                still = core.actions.get(row.id).state is State.FAILED
                busy = any(self.engine.running.is_busy(folder) for folder in folders_of(row.the_plan()))
                if row.id in believed and still and not busy and not self._is_reverted(row):
                    await self._give_up(row, why)
            for row in overdue:
                await asyncio.sleep(0)
                # While another one's folder was waited for, it may have been undone.
                now = core.actions.get(row.id)
                same = (now.state, now.updated) == (row.state, row.updated)
                if row.id in believed and same and self._is_over(now):
                    await self._give_up(now, _days_over(now.the_plan()))

    def _failed(self) -> tuple[ActionRow, ...]:
        """The failed actions of which something is kept still, oldest first."""
        core = self.engine.core
        query = (
            select(records.c.action_id)
            .distinct()
            .join(actions, actions.c.id == records.c.action_id)
            .where(actions.c.state == State.FAILED)
        )
        with core.journal.read() as connection:
            ids = list(connection.execute(query).scalars())
        found = core.actions.those(ids).values() if ids else ()
        return tuple(sorted((row for row in found if row.plan), key=lambda row: row.number))

    async def _useless(self, row: ActionRow) -> str:
        """Why nothing that is kept of a failed action is of use; "" where it may be."""
        await asyncio.sleep(0)
        core = self.engine.core
        try:
            plan = row.the_plan()
            if isinstance(plan.action, Revert):  # what it reverts keeps its own
                return "it failed, and another one doesn't go by it"
            if not core.journal.rows(action_id=row.id, kind=Event.RUN, limit=1):
                return "it failed before it began"
            if not folders_of(plan):
                return "it failed, and changed nothing"
            wrote = (await core.runtime_of(plan.action).footprint(plan, core.context(row))).writes
        except GoexError as error:
            self._say(f"whether the failed action {row.id} changed something can't be told: {error}")
            return ""
        if not wrote:
            return "it failed, and changed nothing"
        until = _kept_until(row)
        return "" if until is None or self.clock() < until else _days_over(plan)

    async def _give_up(self, row: ActionRow, why: str) -> None:
        """Delete what is kept of an action, and commit it; a failed one stays so."""
        core = self.engine.core
        plan = row.the_plan()
        self.engine.reverting.giving_up.add(row.id)
        try:
            if row.id not in self._said:
                core.journal.append("undo-over", action_id=row.id, agent=row.agent, facts={"by": "goex", "why": why})
                self._said.add(row.id)
            # Of all else, and of a revert, what is kept is in the records.
            if folders_of(plan) and not isinstance(plan.action, Revert):
                await core.runtime_of(plan.action).forget(plan, core.context(row))
            core.records(row).forget()
            if row.state is not State.FAILED:
                core.stepped(row, Event.COMMIT, facts={"by": "goex", "why": why})
            self._said.discard(row.id)
        except GoexError as error:
            self._say(f"the snapshots of action {row.id} can't be given up: {error}")
        finally:
            self.engine.reverting.giving_up.discard(row.id)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.error("%s", text)

    def _is_over(self, row: ActionRow) -> bool:
        until = undo_ends(row)
        return until is not None and self.clock() >= until and not self._is_reverted(row)

    def _is_reverted(self, row: ActionRow) -> bool:
        """Whether a revert of it is under way."""
        return any(
            self.engine.is_under_way(other.id) or other.state in UNDER_WAY
            for other in self.engine.core.actions.reverts_of(row.id)
        )
