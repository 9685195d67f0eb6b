"""The decision on one action: on standing grants, or by the person.

Rules: the daemon owns the deadline; time-out, a lost client and a restart that nobody follows are denials; an answer is
for the digest that was shown; after an approval the action is assessed again, and if anything differs it doesn't run.
A yes is for one question, a standing grant that comes of it for every other one that it covers: those are settled by
it, and the journal says so. A no is for one question, and for the identical ones that are named with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from goex.engine.approvals import AlreadySettled
from goex.engine.core import Core
from goex.engine.events import Approval, Asked, Problem
from goex.engine.grant_issue import Choice, Yes, choices, made
from goex.engine.grant_lookup import changed, entries, held, standing_state
from goex.engine.tasks import given, plan_of
from goex.journal.actions import ActionRow
from goex.journal.chain import moment
from goex.journal.states import Event
from policies.actions import Need, Plan
from policies.decisions import Allow, Ask, Decision, Deny, Request, decide
from policies.digest import digest
from policies.errors import Conflict, Denied, ExitStatus, InvalidInput
from policies.grants import ANONYMOUS, PERSON, Grant, Width
from policies.jsonvalue import parse
from policies.rules.facts import Situation
from policies.services import Risk
from policies.tasks import Task
from policies.typed_json import to_json

# Who settled a question that no person answered. What a person is called begins otherwise (`Peer.describe`).
_BY_GRANT, _BY_RULES = "grant ", "the rules"
_BY_ITSELF = (_BY_GRANT, _BY_RULES)

MOST_WAITING = 2000
MOST_OF_AN_AGENT = 500
MOST_OF_UNNAMED = 100  # of one connection without a name

Assess = Callable[[], Awaitable[Plan]]


@dataclass(frozen=True, slots=True)
class Answered:
    """A question that was settled, and the others that were settled with it."""

    approval: Approval
    also: tuple[str, ...] = ()


@dataclass(slots=True)
class Asking:
    """Decides actions, and takes the person's answers."""

    core: Core
    _open: dict[str, tuple[ActionRow, Plan]] = field(default_factory=dict)  # questions whose action is waiting here
    _asked: dict[str, tuple[Need, ...]] = field(default_factory=dict)  # what each of them was asked for
    _allowed: dict[str, tuple[Allow, Situation]] = field(
        default_factory=dict
    )  # actions that wait for their turn to run
    _just: set[str] = field(default_factory=set)  # those of them since whose decision nothing else has run

    def decision(self, row: ActionRow, plan: Plan) -> Decision:
        """What rules and grants say now."""
        situation = self.core.rules.counts.situation(row.agent, row.session)
        return self._decision(row, plan, situation, held(self.core, row, plan))

    def _decision(self, row: ActionRow, plan: Plan, situation: Situation, grants: Iterable[Grant]) -> Decision:
        request = Request(agent=row.agent, session=row.session, digest=row.digest, plan=plan, situation=situation)
        return decide(request, grants, self.core.rules, self.core.clock())

    def denies(self, row: ActionRow, plan: Plan) -> bool:
        """Whether a plan, which needn't be the row's own yet, would be denied without a question."""
        decision = self.decision(replace(row, digest=digest(plan, agent=row.agent)), plan)
        return isinstance(decision, Deny) or (isinstance(decision, Ask) and self._full(row) is not None)

    def _full(self, row: ActionRow) -> Deny | None:
        """Why no further question is taken; the person is never kept from asking by an agent's flood."""
        queue = self.core.approvals.queue
        if row.agent == PERSON:
            return None
        if row.agent == ANONYMOUS and len(queue.of(agent=ANONYMOUS, session=row.session)) >= MOST_OF_UNNAMED:
            return Deny(f"{MOST_OF_UNNAMED} requests of this connection wait already.", code="busy")
        if queue.count(row.agent) >= MOST_OF_AN_AGENT:
            return Deny(f"{MOST_OF_AN_AGENT} requests of {row.agent} wait already.", code="busy")
        if queue.count() >= MOST_WAITING:
            return Deny(f"{MOST_WAITING} requests wait for the person already.", code="busy")
        return None

    def check_still_allowed(self, row: ActionRow, plan: Plan) -> None:
        """For an action that was allowed and had to wait, for its turn or until it was prepared. Raises Denied when the
        grants and rules that are there now wouldn't allow it. Its own yes was consumed and counts, and it doesn't count
        against itself."""
        allowed, situation = self._allowed[row.id]
        if row.id in self._just:
            return
        own = [replace(grant, expires=None) for grant in allowed.grants if grant.width is Width.ONCE]
        own += self._with_own_uses(allowed.grants)
        now = self._decision(row, plan, situation, (*own, *held(self.core, row, plan)))
        if not isinstance(now, Allow):
            raise Denied(f"It was allowed, and isn't any more, so it didn't run. {now.reason}", next_step="Ask again.")

    def _with_own_uses(self, used: Iterable[Grant]) -> list[Grant]:
        """Those of a task's grants that are still live, without the counts that this action took of them."""
        counts = Counter(grant.id for grant in used if grant.width is Width.TASK)
        live = ((self.core.grant_store.live(id), count) for id, count in counts.items())
        return [replace(grant, uses=grant.uses - count) for grant, count in live if grant is not None]

    def forget(self, action_id: str) -> None:
        """It has ended. Idempotent."""
        self._allowed.pop(action_id, None)

    def check_shown(self, question: str, shown: str) -> ActionRow:
        """The action of a question. Raises Conflict when it isn't the one that was shown."""
        row = self.core.actions.get(self.core.approvals.get(question).action_id)
        if shown != row.digest:
            raise _not_shown()
        return row

    def presence_due(self, question: str, shown: str, choice: Choice) -> bool:
        """Whether a yes needs the approval passphrase, by the plan that hashes to what was shown: the question's own
        row can be written by others. Raises Conflict when the action isn't the one that was shown."""
        return self.check_shown(question, shown).the_plan().risk > Risk.READ or choice is not Choice.ONCE

    async def settle(self, row: ActionRow, plan: Plan, assess: Assess, ask_seconds: float = 0) -> ActionRow:
        """Allow on standing grants, or ask and wait. Returns the row as ALLOWED or DENIED."""
        decision = self.decision(row, plan)
        if plan.resolved.get("unseen") and not isinstance(decision, Deny):
            return self._decided(row, self._full(row) or Deny("It wasn't looked at, so it doesn't run."))
        if not isinstance(decision, Ask):
            return self._decided(row, decision)
        if (full := self._full(row)) is not None:
            return self._decided(row, full)
        if why := changed(self.core, row, plan):
            decision = replace(decision, reason=f"{decision.reason} {why}")
        longest = self.core.settings.ask_seconds
        seconds = min(ask_seconds or longest, longest)
        with self.core.journal.transaction() as transaction:
            question = self.core.approvals.open(
                transaction,
                action_id=row.id,
                digest=row.digest,
                ask=decision,
                widths=choices(plan, decision),
                seconds=seconds,
            )
            facts = {"question": question, "rules": list(decision.rules), "standing": standing_state(self.core, plan)}
            row = self.core.step(transaction, row, Event.ASK, facts=facts)
        self.core.approvals.opened(question, row)
        self.core.hub.publish(row.id, Asked(question))
        return await self.await_answer(row, plan, assess, question)

    async def await_answer(
        self, row: ActionRow, plan: Plan, assess: Assess, question: str, *, resumed: bool = False
    ) -> ActionRow:
        """Wait for the answer to a question that is open; `resumed`: it was before a restart, since when a grant may
        have come."""
        deadline = moment(self.core.approvals.get(question).deadline)
        self._open[question], self._asked[question] = (row, plan), self._missing(row, plan)
        try:
            if resumed:
                self._settle_covered((question,))
            async with asyncio.timeout(max(0.0, (deadline - self.core.clock()).total_seconds())):
                approval = await self.core.approvals.settled(question)
        except TimeoutError:
            with suppress(Conflict):
                self._expire(row, question)
            approval = self.core.approvals.get(question)
        finally:
            del self._open[question], self._asked[question]
        if approval.state != "approved":
            return self.core.actions.get(row.id)
        decision = self.decision(row, plan)
        if isinstance(decision, Allow):
            # Minutes may have passed: what would run now must still be what was shown. To look takes its time, too, so
            # rules, caps, grants and expiries count as they are afterwards: nothing comes between that and its use.
            fresh = await assess()
            if digest(fresh, agent=row.agent) == row.digest:
                decision = self.decision(row, plan)
            else:
                other = [line for line in fresh.lines if line not in plan.lines]
                what = "; ".join(other[:3]) or "what it would do, the catalog, the image or the limits changed"
                decision = Deny(f"It isn't what was approved any more ({what}), so it didn't run. Ask again.")
        if isinstance(decision, Ask) and approval.settled_by.startswith(_BY_ITSELF):
            # Nobody has said yes to it: the grant that settled it is gone, or a rule wants so many asked for.
            again = self._ask_again(row, plan, decision, (deadline - self.core.clock()).total_seconds())
            return await self.await_answer(row, plan, assess, again)
        if isinstance(decision, Ask):
            decision = Deny(f"The approval doesn't cover all of it any more. {decision.reason}")
        return self._decided(row, decision)

    def _ask_again(self, row: ActionRow, plan: Plan, ask: Ask, seconds: float) -> str:
        """Another question for an action that still waits, with what is left of its time. Returns its id."""
        with self.core.journal.transaction() as transaction:
            question = self.core.approvals.open(
                transaction,
                action_id=row.id,
                digest=row.digest,
                ask=ask,
                widths=choices(plan, ask),
                seconds=max(seconds, 0.0),
            )
            facts = {
                "question": question,
                "by": "goex",
                "rules": list(ask.rules),
                "standing": standing_state(self.core, plan),
            }
            transaction.append("asked-again", action_id=row.id, agent=row.agent, facts=facts)
        self.core.approvals.opened(question, row)
        self.core.hub.publish(row.id, Asked(question))
        return question

    def approve(self, question: str, *, shown: str, yes: Yes) -> Answered:
        """Settle a question with yes. Raises AlreadySettled when another was first, Conflict when something else was
        shown, InvalidInput for a width that wasn't offered."""
        approval = self.core.approvals.get(question)
        row = self.core.actions.get(approval.action_id)
        if not shown == approval.digest == row.digest:
            raise _not_shown()
        if yes.choice.value not in approval.widths:
            raise InvalidInput(
                f"This can't be granted as {yes.choice}.",
                next_step=f"It can be granted as {' or '.join(approval.widths)}.",
            )
        if approval.state != "pending":
            raise AlreadySettled.of(question)
        if self._is_late(approval):
            self._expire(row, question)
            raise AlreadySettled.of(question)
        plan = row.the_plan()
        if yes.choice is not Choice.ONCE or isinstance(plan.action, Task):
            self._check_unmoved(question, row, plan)
        needs = self._missing(row, plan) if yes.choice is Choice.ONCE else self._as_asked(question, row, plan)
        grants = made(row, plan, needs, yes, self.core.clock(), self._entries)
        if isinstance(plan.action, Task):
            if digest(plan_of(self.core, plan.action, row), agent=row.agent) != row.digest:
                raise Conflict("The catalog changed since this was asked.", next_step="Deny it; it can be asked anew.")
            grants = (*grants, *given(self.core, row, plan, yes, self.core.clock()))
        elif yes.narrowed:
            raise InvalidInput("Only a task has lines that can be narrowed.")
        with self.core.grant_store.changing() as transaction:
            self.core.approvals.settle(transaction, question, "approved", by=yes.by)
            self.core.grant_store.grant(transaction, grants, by=yes.by, action_id=row.id, proof=yes.proof)
        self.core.approvals.announce(question)
        also = () if yes.choice is Choice.ONCE else self._settle_covered(self._concerned(grants))
        return Answered(self.core.approvals.get(question), also)

    def deny(self, question: str, *, by: str, reason: str = "", same_as: Iterable[str] = ()) -> Answered:
        """Settle a question with no, and with it those of `same_as` that are identical to it and still wait. Raises
        AlreadySettled when another was first."""
        duplicates = self.core.approvals.queue.duplicates(question)
        also = tuple(dict.fromkeys(id for id in same_as if id in duplicates and id != question))
        first = self.core.approvals.get(question)
        if first.state != "pending":
            raise AlreadySettled.of(question)
        done = self._deny((question, *also), by=by, reason=reason)
        return Answered(self.core.approvals.get(question), tuple(id for id in done if id != question))

    def deny_all(self, *, agent: str, session: str, by: str, reason: str = "") -> tuple[str, ...]:
        """Settle with no whatever an agent, a session, or an agent in a session waits for. Returns the questions."""
        if not agent and not session:
            raise InvalidInput("Whose requests?", next_step="Name an agent, or a session.")
        return self._deny(self.core.approvals.queue.of(agent=agent, session=session), by=by, reason=reason)

    def _deny(self, questions: Iterable[str], *, by: str, reason: str) -> tuple[str, ...]:
        asked = {question: self.core.approvals.get(question) for question in questions}
        rows = self.core.actions.those(approval.action_id for approval in asked.values())
        done = []
        with self.core.journal.transaction() as transaction:
            for question, approval in asked.items():
                if approval.state == "pending":
                    self.core.approvals.settle(transaction, question, "denied", by=by)
                    row = rows[approval.action_id]
                    who = "You" if row.agent == PERSON else "The person"
                    why = f"{who} denied it{f': {reason}' if reason else ''}."
                    problem = to_json(Problem(code="denied", message=why, exit_status=ExitStatus.DENIED))
                    self.core.step(transaction, row, Event.DENY, facts={"by": by}, problem=problem)
                    done.append(question)
        for question in done:
            self.core.approvals.announce(question)
        denied = [rows[asked[question].action_id] for question in done]
        for agent, session in {(row.agent, row.session if row.agent == ANONYMOUS else "") for row in denied}:
            self.core.rules.counts.denied(agent, session)
        return tuple(done)

    def _missing(self, row: ActionRow, plan: Plan) -> tuple[Need, ...]:
        """What isn't covered yet: no more than that is granted."""
        decision = self.decision(row, plan)
        return decision.needs if isinstance(decision, Ask) else plan.required

    def _as_asked(self, question: str, row: ActionRow, plan: Plan) -> tuple[Need, ...]:
        """What a standing yes gives: nothing that was granted when it was asked for and was taken back since, of which
        its words said nothing. Raises Conflict where that is missing now."""
        asked, decision = self._asked.get(question, ()), self.decision(row, plan)
        if not isinstance(decision, Ask):
            return asked
        if more := [need for need in decision.needs if need not in asked]:
            names = ", ".join(dict.fromkeys(f"{need.service}:{need.scope}" for need in more))
            raise Conflict(
                f"Since it was asked for, {names} isn't granted any more, so a standing yes isn't what it was.",
                next_step="Allow it once, or deny it and let it be asked anew.",
            )
        return decision.needs

    def _check_unmoved(self, question: str, row: ActionRow, plan: Plan) -> None:
        """Raise Conflict where an imported catalog, or where an account leads, changed since it was asked: a standing
        grant is for what is there when it is given, which nobody was shown. After a yes for once the action itself is
        compared."""
        kinds = ("asked-again", "ask")
        rows = [one for kind in kinds for one in self.core.journal.rows(action_id=row.id, kind=kind)]
        facts = (parse(one.facts) for one in rows)
        then = next((str(one.get("standing", "")) for one in facts if one.get("question") == question), "")
        if then != standing_state(self.core, plan):
            raise Conflict(
                "The imported catalog, or where an account leads, changed since this was asked.",
                next_step="Deny it, and let it be asked anew.",
            )

    def _entries(self, need: Need) -> Mapping[str, str]:
        return entries(self.core.catalog, need)

    def _concerned(self, grants: Iterable[Grant]) -> tuple[str, ...]:
        """The open questions that these grants could answer, oldest first."""
        given = {(grant.agent, grant.service, grant.account, grant.scope) for grant in grants}
        return tuple(
            question
            for agent in {grant.agent for grant in grants}
            for question in self.core.approvals.queue.of(agent=agent)
            if question in self._open
            and any((agent, n.service, n.account, n.scope) in given for n in self._open[question][1].required)
        )

    def _settle_covered(self, questions: Iterable[str]) -> tuple[str, ...]:
        """Settle those of these questions that need no answer any more, since grants cover all of it now."""
        covered: dict[str, tuple[ActionRow, Allow]] = {}
        for question in questions:
            row, plan = self._open[question]
            if self.core.approvals.queue.get(question) is not None:
                decision = self.decision(row, plan)
                if isinstance(decision, Allow) and not self._is_late(self.core.approvals.get(question)):
                    covered[question] = row, decision
        if not covered:
            return ()
        with self.core.journal.transaction() as transaction:
            for question, (row, decision) in covered.items():
                given = [grant.id for grant in decision.grants]
                by = f"{_BY_GRANT}{', '.join(given)}" if given else _BY_RULES
                self.core.approvals.settle(transaction, question, "approved", by=by)
                facts = {"question": question, "grants": given, "rules": list(decision.rules), "by": "goex"}
                transaction.append("covered", action_id=row.id, agent=row.agent, facts=facts)
        for question in covered:
            self.core.approvals.announce(question)
        return tuple(covered)

    def _is_late(self, approval: Approval) -> bool:
        """Whether its deadline is over, also where no timer has fired: timers stand still while the machine sleeps."""
        return self.core.clock() >= moment(approval.deadline)

    def _expire(self, row: ActionRow, question: str) -> None:
        problem = Problem(
            code="timed-out",
            message="Nobody answered in time; no answer denies.",
            next_step="Run it again when somebody is there to answer. What waits now: goex approve",
            exit_status=ExitStatus.TIMED_OUT,
        )
        with self.core.journal.transaction() as transaction:
            self.core.approvals.settle(transaction, question, "expired", by="the deadline")
            facts = {"by": "the deadline", "question": question}
            self.core.step(transaction, row, Event.EXPIRE, facts=facts, problem=to_json(problem))
        self.core.approvals.announce(question)

    def _decided(self, row: ActionRow, decision: Allow | Deny) -> ActionRow:
        if isinstance(decision, Deny):
            step = next_step(decision, row.agent)
            problem = Problem(
                code=decision.code, message=decision.reason, next_step=step, exit_status=ExitStatus.DENIED
            )
            facts = {"by": "the rules", "rules": list(decision.rules)} if decision.rules else {"by": "goex"}
            row = self.core.stepped(row, Event.DENY, facts=facts, problem=to_json(problem))
            if decision.rules and "breaker" not in decision.rules:
                self.core.rules.counts.denied(row.agent, row.session)
            # A yes that came too late to be used isn't kept for later.
            self.core.grant_store.revoke(self.core.grant_store.unused(row.id), by="goex", why="it didn't run")
            return row
        situation = self.core.rules.counts.situation(row.agent, row.session)
        with self.core.grant_store.changing(lasting=False) as transaction:  # it lasts before anything begins
            self.core.grant_store.consume(transaction, decision.grants)
            given = {"grants": [grant.id for grant in decision.grants], "rules": list(decision.rules)}
            row = self.core.step(
                transaction,
                row,
                Event.ALLOW,
                facts={**given, "ledger": self.core.grant_store.root()},
                anchored=any(grant.width in (Width.ONCE, Width.TASK) for grant in decision.grants),
            )
        self.core.rules.counts.allowed(row.agent, row.session)
        self._allowed[row.id] = decision, situation
        self._just.add(row.id)
        asyncio.get_running_loop().call_soon(self._just.discard, row.id)  # when its journey first waits for anything
        return row


def next_step(decision: Deny, agent: str) -> str:
    """What to do about a denial; "" for an agent's by a rule: the person alone sees and changes those."""
    if decision.code == "busy":
        return "Answer what waits, then let it be asked again: goex approve"
    if agent != PERSON or not decision.rules:
        return ""
    if "confine" in decision.rules:
        return "See what actions are confined to: goex rules. Only config.toml changes that."
    return "See where it stands: goex rules. Only you can change it: edit that file, then goex rules apply."


def _not_shown() -> Conflict:
    return Conflict("What was shown isn't what would run.", next_step="Look at it again: goex approve")
