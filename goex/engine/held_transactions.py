"""Held transactions: which there are, and their end when nobody asks for it in time.

Rules: the plan that was allowed said how long it would be held and what happens then, so nobody is asked again; it is
journaled before it is done. Only what the server still holds is rolled back; nothing is committed, and no row is set:
what was committed there already stays, and is noted as that. It has ended only when the database says so; what can't be
asked or rolled back now stays listed, is said, and is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from goex.engine.engine import Engine
from goex.engine.timeline import untouched
from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow
from goex.journal.chain import moment
from goex.journal.states import Event, State
from policies.actions import Plan
from policies.display_text import counted
from policies.errors import Conflict, GoexError

if TYPE_CHECKING:
    from runtimes.sql.runtime import SqlRuntime

log = logging.getLogger("goex.engine")

IN_EFFECT = (State.DONE, State.PARTIAL, State.UNKNOWN)


def hold_ends(row: ActionRow) -> datetime | None:
    """When a held transaction has been held long enough; None for what isn't held (one that changed nothing never is),
    and for a row that was altered: that is verifying's to tell."""
    if row.kind != "sql" or row.state not in IN_EFFECT or '"hold_hours"' not in row.plan:
        return None
    try:
        if untouched(row):
            return None
        hours = row.the_plan().undo.get("hold_hours")
        return moment(row.updated) + timedelta(hours=hours) if isinstance(hours, int) else None
    except (GoexError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A transaction that waits for commit or undo."""

    row: ActionRow
    plan: Plan
    database: str
    since: datetime
    until: datetime
    trouble: str = ""  # why it couldn't be rolled back when its time was over


@dataclass(slots=True)
class Holds:
    """Looks after what is held."""

    engine: Engine
    _trouble: dict[str, str] = field(default_factory=dict)
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def held(self, database: str = "") -> tuple[Held, ...]:
        """What is held (in one database, or in all), oldest first."""
        return tuple(each for each in self._held() if database in ("", each.database))

    async def end_overdue(self) -> None:
        """Roll back what was held for as long as it was to be. Never raises for what can't be rolled back."""
        core = self.engine.core
        async with self._ending:
            overdue = [each for each in self._held() if core.clock() >= each.until and not self._is_reverted(each.row)]
            if not overdue:
                return
            core.vault.require_open()
            believed = await asyncio.to_thread(confirmed, core.journal, tuple(each.row for each in overdue))
            for each in overdue:
                # While others were rolled back, it may have been committed or undone, or somebody may be at it.
                now = core.actions.get(each.row.id)
                if now.id in believed and now == each.row and not self._is_reverted(now):
                    await self._end(each)

    async def _end(self, held: Held) -> None:
        core, row = self.engine.core, held.row
        why = f"it was held for {counted(int(held.plan.undo['hold_hours']), 'hour')}"
        self.engine.reverting.giving_up.add(row.id)  # nobody commits or undoes it meanwhile
        try:
            if row.id not in self._trouble:
                facts = {"by": "goex", "why": why, "database": held.database}
                core.journal.append("hold-over", action_id=row.id, agent=row.agent, facts=facts)
            leases = await core.leases(row, held.plan)
            runtime = cast("SqlRuntime", core.runtime_of(held.plan.action))
            found = await runtime.roll_back(held.plan, core.context(row, held.plan.action, leases))
            match found.state:
                case "undone":
                    self._stepped(row, Event.UNDO, why)
                case "nothing":
                    self._stepped(row, Event.UNDO, f"{why}, and was rolled back at the server already")
                case "done":
                    self._stepped(row, Event.COMMIT, f"{why}, and was committed at the server already")
                    core.records(row).forget()
                case _:
                    seen = "; ".join(found.evidence) or found.state
                    raise Conflict(
                        f"It can't be known what became of its transaction: {seen}.",
                        next_step=f"Look at its rows, then let go of it with: goex commit {row.id}",
                    )
        except GoexError as error:
            if self._trouble.get(row.id) != error.message:
                log.error("action %s is still held: %s", row.id, error)
                said = {"code": error.code, "message": error.message}
                core.journal.append(
                    "hold-stays", action_id=row.id, agent=row.agent, facts={"by": "goex", "problem": said}
                )
            self._trouble[row.id] = error.message
        finally:
            core.vault.end_leases(row.id)
            self.engine.reverting.giving_up.discard(row.id)

    def _stepped(self, row: ActionRow, event: Event, why: str) -> None:
        self._trouble.pop(row.id, None)
        self.engine.core.stepped(row, event, facts={"by": "goex", "why": why})

    def _held(self) -> Iterator[Held]:
        for row in self.engine.core.actions.in_states(IN_EFFECT, kind="sql"):
            until = hold_ends(row)
            if until is None:
                continue
            plan = row.the_plan()
            yield Held(
                row=row,
                plan=plan,
                database=str(plan.resolved.get("database", "")),
                since=moment(row.updated),
                until=until,
                trouble=self._trouble.get(row.id, ""),
            )

    def _is_reverted(self, row: ActionRow) -> bool:
        """Whether somebody is at it already, be it together with others."""
        return row.id in self.engine.reverting.busy() or any(
            self.engine.is_under_way(other.id) for other in self.engine.core.actions.reverts_of(row.id)
        )
