"""The end of undo for programs on folders: their snapshots are kept for as many days as the plan said.

Rules: the person was told how long when the action was planned, so nobody is asked again; it is journaled before it is
done; the folder isn't touched. What is being reverted now is left alone until the next look.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from goex.engine.engine import Engine
from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow
from goex.journal.chain import moment
from goex.journal.states import UNDER_WAY, Event, State
from policies.errors import GoexError

log = logging.getLogger("goex.engine")

_KEPT = (State.DONE, State.PARTIAL, State.UNDONE)


def undo_ends(row: ActionRow) -> datetime | None:
    """When an action's undo (or redo) is given up; None: not before it is committed."""
    if row.kind != "files" or row.state not in _KEPT or '"keep_days"' not in row.plan:
        return None
    try:
        days = row.the_plan().undo.get("keep_days")
        return moment(row.updated) + timedelta(days=days) if isinstance(days, int) and days > 0 else None
    except (GoexError, ValueError):
        return None


@dataclass(slots=True)
class Retention:
    """Gives up what was kept for long enough."""

    engine: Engine
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def end_overdue(self) -> None:
        """Commit the actions whose undo was kept for as long as it was to be. What fails is tried at the next look."""
        core = self.engine.core
        async with self._ending:
            overdue = [row for row in core.actions.in_states(_KEPT, kind="files") if self._is_over(row)]
            if not overdue:
                return
            core.vault.require_open()
            believed = await asyncio.to_thread(confirmed, core.journal, tuple(overdue))
            for row in overdue:
                # While another one's folder was waited for, it may have been undone.
                now = core.actions.get(row.id)
                same = (now.state, now.updated) == (row.state, row.updated)
                if row.id in believed and same and self._is_over(now):
                    await self._end(now)

    async def _end(self, row: ActionRow) -> None:
        core = self.engine.core
        plan = row.the_plan()
        why = f"its undo was kept for {plan.undo['keep_days']} days"
        self.engine.reverting.giving_up.add(row.id)
        try:
            core.journal.append("undo-over", action_id=row.id, agent=row.agent, facts={"by": "goex", "why": why})
            await core.runtime_of(plan.action).forget(plan, core.context(row))
            core.records(row).forget()
            core.stepped(row, Event.COMMIT, facts={"by": "goex", "why": why})
        except GoexError as error:
            log.error("the snapshots of action %s can't be given up: %s", row.id, error)
        finally:
            self.engine.reverting.giving_up.discard(row.id)

    def _is_over(self, row: ActionRow) -> bool:
        until = undo_ends(row)
        if until is None or self.engine.core.clock() < until:
            return False
        return not any(
            self.engine.is_under_way(other.id) or other.state in UNDER_WAY
            for other in self.engine.core.actions.reverts_of(row.id)
        )
