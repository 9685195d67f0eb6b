"""Dry runs: what an action would do, found out without any effect, for the person who is to decide on it.

Rules: only the person asks for one. It decides nothing and consumes nothing: no grant, no lease, no record, no action.
For a question it is of the very plan that was shown. It takes one of the slots that real runs take, and the journal
says who asked for it, of what, and how it ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from goex.engine.core import Core, Principal, Request
from goex.engine.engine import Engine
from goex.journal.actions import ActionRow
from goex.journal.chain import stamp
from goex.journal.states import State
from policies.actions import ApiCalls, Plan, Revert
from policies.digest import digest
from policies.errors import Conflict, Denied, GoexError
from policies.grants import PERSON
from policies.jsonvalue import JsonObject
from policies.stages import at_once
from runtimes.base import Context, DryLine, DryRun

Progress = Callable[[str], None]


class _NothingKept:
    """Records of a dry run: there are none."""

    def put(self, name: str, data: bytes) -> None:
        raise Conflict(f"A dry run records nothing, and something wanted to record {name!r}.")

    def get(self, name: str) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class DryRuns:
    """Makes dry runs, on the event loop."""

    engine: Engine

    async def of_question(self, question: str, shown: str, *, by: str, progress: Progress) -> DryRun:
        """What a pending question's action would do. Raises Conflict unless it is what was shown and still waits."""
        core = self._ready()
        approval = core.approvals.get(question)
        row = core.actions.get(approval.action_id)
        if not shown == approval.digest == row.digest:
            raise Conflict("What was shown isn't what would run.", next_step="Look at it again: goex approve")
        if approval.state != "pending":
            raise Conflict(
                f"This request isn't open any more: it was {approval.state}.",
                next_step="See how it ended with: goex log",
            )
        return await self._run(row, row.the_plan(), PERSON, by=by, question=question, progress=progress)

    async def of_request(
        self, request: Request, principal: Principal, *, by: str, progress: Progress, keep: bool = False
    ) -> tuple[Plan, DryRun]:
        """Plan what is asked for, and what it would do. Raises what planning raises; nothing is asked or begun.

        With `keep` what a program made of its copy is kept for a while, to be applied."""
        core = self._ready()
        action = self.engine.wanted(request, principal)
        now = stamp(core.clock())
        row = ActionRow(
            id=f"dry-{secrets.token_hex(6)}",
            number=0,
            agent=principal.agent,
            session=principal.session,
            kind=action.kind if action else "intent",
            state=State.RECEIVED,
            created=now,
            updated=now,
            intent=request.intent,
            request="",
            plan="",
            digest="",
            outcome="",
            problem="",
            target=getattr(action, "target", ""),
            source=principal.source,
            detached=False,
        )
        if action is None:
            action = await self.engine.mapping.action_for(row, request)
        _, plan = await self.engine.assess(row, at_once(action) if isinstance(action, ApiCalls) else action)
        return plan, await self._run(row, plan, row.agent, by=by, question="", progress=progress, keep=keep)

    async def _run(
        self,
        row: ActionRow,
        plan: Plan,
        takes_slot_of: str,
        *,
        by: str,
        question: str,
        progress: Progress,
        keep: bool = False,
    ) -> DryRun:
        core, slots = self.engine.core, self.engine.running.slots(takes_slot_of)
        id = f"dry-{secrets.token_hex(6)}"
        facts = {"dry_run": id, "by": by, "question": question, "digest": digest(plan, agent=row.agent)}
        core.journal.append("dry-run", action_id=row.id, agent=row.agent, facts=facts)
        try:
            if slots.locked():
                progress("Waiting until another action has ended…")
            async with slots:
                found = await self._found(row, plan, id, progress, keep)
        except GoexError as error:
            self._ended(row, {"dry_run": id, "ok": False, "problem": error.code})
            raise
        self._ended(row, {"dry_run": id, "ok": found.ok, "lines": len(found.lines)})
        return found

    async def _found(self, row: ActionRow, plan: Plan, id: str, progress: Progress, keep: bool) -> DryRun:
        core = self._ready()  # it may have been sealed while this waited
        runtime = core.runtime_of(core.subject(plan.action))
        if isinstance(plan.action, Revert):
            if plan.action.also:
                lines = tuple(DryLine("note", line) for line in plan.lines)
                return DryRun(ok=True, summary="What undo would need of them would be dropped.", lines=lines)
            target = core.target_of(plan.action)
            context = replace(core.context(target), progress=progress)
            return await runtime.dry_revert(plan.action, plan, target.the_plan(), context)
        return await runtime.dry_run(plan, replace(self._context(row, plan, id, progress), keep=keep))

    def _context(self, row: ActionRow, plan: Plan, id: str, progress: Progress) -> Context:
        return replace(
            self.engine.core.context(row, plan.action),
            action_id=id,
            records=_NothingKept(),
            note=_nothing_noted,
            progress=progress,
            output=lambda stream, data: None,
        )

    def _ended(self, row: ActionRow, facts: JsonObject) -> None:
        self.engine.core.journal.append("dry-run-ended", action_id=row.id, agent=row.agent, facts=facts)

    def _ready(self) -> Core:
        if self.engine.draining:
            raise Denied("The daemon is stopping.", next_step="Ask again when it is back: goex daemon start")
        self.engine.core.vault.require_open()
        return self.engine.core


def _nothing_noted(kind: str, facts: JsonObject) -> None:
    return None
