"""The decision on one action: on standing grants, or by the person.

Rules: the daemon owns the deadline; time-out, a lost client and a restart that nobody follows are denials; an answer is
for the digest that was shown; after an approval the action is assessed again, and if anything differs it doesn't run.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from goex.engine.core import Core
from goex.engine.events import Approval, Asked, Problem
from goex.engine.peers import LONGEST
from goex.journal.actions import ActionRow
from goex.journal.chain import moment
from goex.journal.states import Event
from policies.actions import Need, Plan
from policies.catalog import Risk
from policies.decisions import DEFAULT_RULES, Allow, Ask, Decision, Deny, Request, decide
from policies.digest import digest
from policies.errors import Conflict, ExitStatus, InvalidInput
from policies.grants import PERSON, Grant, Width
from policies.jsonvalue import canonical

ONCE_LASTS = timedelta(minutes=10)  # from the approval to its use
PERMANENT_LASTS = timedelta(days=365)
MOST_WAITING = 2000
MOST_OF_AN_AGENT = 500

Assess = Callable[[], Awaitable[Plan]]


@dataclass(slots=True)
class Asking:
    """Decides actions, and takes the person's answers."""

    core: Core

    def decision(self, row: ActionRow, plan: Plan) -> Decision:
        """What rules and grants say now. A once-grant is for the action that it was given to: not for a twin of it,
        and not for asking the same again after that one was withdrawn."""
        return decide(
            Request(agent=row.agent, session=row.session, digest=row.digest, plan=plan),
            [
                grant
                for grant in self.core.ledger.matching(row.agent, plan.required)
                if grant.width is not Width.ONCE or grant.why == row.id
            ],
            DEFAULT_RULES,
            self.core.clock(),
        )

    def presence_due(self, question: str, shown: str, width: Width) -> bool:
        """Whether a yes needs the approval passphrase, by the plan that hashes to what was shown: the question's own
        row can be written by others. Raises Conflict when the action isn't the one that was shown."""
        row = self.core.actions.get(self.core.approvals.get(question).action_id)
        if shown != row.digest:
            raise _not_shown()
        return row.the_plan().risk > Risk.READ or width is not Width.ONCE

    async def settle(self, row: ActionRow, plan: Plan, assess: Assess, ask_seconds: float = 0) -> ActionRow:
        """Allow on standing grants, or ask and wait. Returns the row as ALLOWED or DENIED."""
        decision = self.decision(row, plan)
        if not isinstance(decision, Ask):
            return self._decided(row, decision)
        if row.agent != PERSON:  # whom no agent's flood keeps from asking
            if self.core.approvals.waiting(row.agent) >= MOST_OF_AN_AGENT:
                return self._decided(row, Deny(f"{MOST_OF_AN_AGENT} requests of {row.agent} wait already."))
            if self.core.approvals.waiting() >= MOST_WAITING:
                return self._decided(row, Deny(f"{MOST_WAITING} requests wait for the person already."))
        longest = self.core.settings.ask_seconds
        seconds = min(ask_seconds or longest, longest)
        with self.core.journal.transaction() as transaction:
            question = self.core.approvals.open(
                transaction, action_id=row.id, digest=row.digest, ask=decision, seconds=seconds
            )
            row = self.core.step(transaction, row, Event.ASK, facts={"question": question})
        self.core.approvals.announce(question)
        self.core.hub.publish(row.id, Asked(question))
        return await self.await_answer(row, plan, assess, question)

    async def await_answer(self, row: ActionRow, plan: Plan, assess: Assess, question: str) -> ActionRow:
        """Wait for the answer to a question that is open, also one from before a restart."""
        deadline = moment(self.core.approvals.get(question).deadline)
        try:
            async with asyncio.timeout(max(0.0, (deadline - self.core.clock()).total_seconds())):
                approval = await self.core.approvals.settled(question)
        except TimeoutError:
            with suppress(Conflict):
                self._expire(row, question)
            approval = self.core.approvals.get(question)
        if approval.state != "approved":
            return self.core.actions.get(row.id)
        decision = self.decision(row, plan)
        if isinstance(decision, Ask):
            decision = Deny(f"The approval doesn't cover all of it any more. {decision.reason}")
        elif isinstance(decision, Allow):
            # Minutes may have passed: what would run now must still be what was shown.
            fresh = await assess()
            if digest(fresh, agent=row.agent) != row.digest:
                changed = [line for line in fresh.lines if line not in plan.lines]
                what = "; ".join(changed[:3]) or "the catalog, the image or the limits changed"
                decision = Deny(f"It isn't what was approved any more ({what}), so it didn't run. Ask again.")
        return self._decided(row, decision)

    def answer(
        self,
        question: str,
        *,
        approve: bool,
        shown: str,
        width: Width,
        by: str,
        reason: str = "",
        expires: timedelta | None = None,
        bound: tuple[str, ...] = (),
    ) -> Approval:
        """Settle a question. Raises AlreadySettled when another was first, Conflict when something else was shown."""
        approval = self.core.approvals.get(question)
        row = self.core.actions.get(approval.action_id)
        if approve and not shown == approval.digest == row.digest:
            raise _not_shown()
        if approve and width.value not in approval.widths:
            raise InvalidInput(
                f"This can't be granted as {width}.", next_step=f"It can be granted as {' or '.join(approval.widths)}."
            )
        with self.core.ledger.changing() as transaction:
            self.core.approvals.settle(transaction, question, "approved" if approve else "denied", by=by)
            if approve:
                made = self._grants(row, width, by=by, expires=expires, bound=bound)
                self.core.ledger.grant(transaction, made, by=by)
            else:
                why = f"The person said no{f': {reason}' if reason else ''}."
                problem = Problem(code="denied", message=why, exit_status=ExitStatus.DENIED)
                self.core.step(transaction, row, Event.DENY, facts={"by": by}, problem=problem.to_json())
        self.core.approvals.announce(question)
        return self.core.approvals.get(question)

    def _grants(
        self, row: ActionRow, width: Width, *, by: str, expires: timedelta | None, bound: tuple[str, ...]
    ) -> tuple[Grant, ...]:
        """What an approval grants: each need that isn't covered yet, no wider than was chosen."""
        plan, now = row.the_plan(), self.core.clock()
        decision = self.decision(row, plan)
        needs = decision.needs if isinstance(decision, Ask) else plan.required
        longest = {Width.ONCE: ONCE_LASTS, Width.SESSION: LONGEST, Width.PERMANENT: PERMANENT_LASTS}[width]
        lasts = ONCE_LASTS if width is Width.ONCE else min(expires or longest, longest)
        made: dict[tuple[str, str, str], Grant] = {}
        for need in needs:
            made[need.service, need.account, need.scope] = Grant(
                id=f"g-{secrets.token_hex(6)}",
                agent=row.agent,
                service=need.service,
                account=need.account,
                scope=need.scope,
                width=width,
                created=now,
                expires=now + lasts,
                by=by,
                why=row.id,
                constraints={} if width is Width.ONCE else _constraints(need, bound),
                digest=row.digest if width is Width.ONCE else "",
                session=row.session if width is Width.SESSION else "",
            )
        return tuple(made.values())

    def _expire(self, row: ActionRow, question: str) -> None:
        problem = Problem(
            code="timed-out",
            message="Nobody answered in time, which is a no.",
            next_step="Ask again when someone is there; `goex approve` shows what waits.",
            exit_status=ExitStatus.TIMED_OUT,
        )
        with self.core.journal.transaction() as transaction:
            self.core.approvals.settle(transaction, question, "expired", by="the deadline")
            self.core.step(transaction, row, Event.EXPIRE, problem=problem.to_json())
        self.core.approvals.announce(question)

    def _decided(self, row: ActionRow, decision: Allow | Deny) -> ActionRow:
        if isinstance(decision, Deny):
            problem = Problem(code="denied", message=decision.reason, exit_status=ExitStatus.DENIED)
            row = self.core.stepped(row, Event.DENY, problem=problem.to_json())
            # A yes that came too late to be used isn't kept for later.
            self.core.ledger.revoke(self.core.ledger.unused(row.id), by="goex", why="it didn't run")
            return row
        with self.core.ledger.changing() as transaction:
            self.core.ledger.consume(transaction, decision.grants)
            facts = {"grants": [grant.id for grant in decision.grants], "ledger": self.core.ledger.root()}
            return self.core.step(transaction, row, Event.ALLOW, facts=facts)


def _not_shown() -> Conflict:
    return Conflict("What was shown isn't what would run.", next_step="Look at it again: goex approve")


def bindable(plan: Plan) -> tuple[str, ...]:
    """The arguments that a standing grant can be bound to: those with one value in every need."""
    names: list[set[str]] = []
    for need in plan.required:
        if not need.arguments:
            return ()
        same = set.intersection(*(set(arguments) for arguments in need.arguments))
        names.append({n for n in same if len({canonical(arguments[n]) for arguments in need.arguments}) == 1})
    return tuple(sorted(set.intersection(*names))) if names else ()


def _constraints(need: Need, bound: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in bound:
        values = {canonical(arguments[name]): arguments[name] for arguments in need.arguments if name in arguments}
        if len(values) != 1 or not all(name in arguments for arguments in need.arguments):
            raise InvalidInput(
                f"A standing grant can't be bound to {name[:60]!r}: {need.scope} isn't used with one value of it.",
                next_step="Grant it once, or bind it to another argument.",
            )
        found[name] = next(iter(values.values()))
    return found
