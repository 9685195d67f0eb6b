"""Undo, redo and commit, as actions: what may be taken back, its plan, its effect, and what its end does to targets.

Rules: a target that the journal doesn't confirm isn't touched; one that later actions stand on isn't taken back by
itself (`goex.engine.timeline`); a commit may be of several, each of which is kept for good as soon as it is its turn,
so that one that was interrupted goes on with the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from goex.engine.catalog_entries import is_as_planned
from goex.engine.core import Core, Principal, unknown_action
from goex.engine.timeline import MOST_STEPS, Timeline
from goex.engine.trust import confirmed
from goex.journal.actions import ActionRow
from goex.journal.chain import Transaction
from goex.journal.errors import JournalBroken, JournalFailed
from goex.journal.states import UNDER_WAY, Event, State
from policies.actions import MOVED, Need, Outcome, Plan, Revert, UndoClass
from policies.commits import together
from policies.errors import Conflict, Denied, ExitStatus, GoexError, InvalidInput
from policies.rules.facts import with_target
from runtimes.base import Context, Runtime

REVERTIBLE: Mapping[str, frozenset[State]] = {
    "undo": frozenset({State.DONE, State.PARTIAL, State.UNKNOWN}),
    "redo": frozenset({State.UNDONE}),
    "commit": frozenset({State.DONE, State.PARTIAL, State.UNDONE, State.UNKNOWN}),
}


# Bytes of what rules were asked about the target, in the plan of a redo or commit: less of each of several, since each
# question takes a millisecond.
_MOST_SAID = 4 * 2**20
_CATALOG_CHANGED = (
    "What GoEx knows of these methods changed since the action was done: look at where each of these requests goes."
)


@dataclass(frozen=True, slots=True)
class Reverting:
    """Plans and carries out what takes actions back, brings them back, or keeps them for good."""

    core: Core
    timeline: Timeline
    giving_up: set[str] = field(default_factory=set)  # actions whose time is over, while what is kept of them ends
    turns: dict[str, str] = field(default_factory=dict)  # by a commit of several: the target that it is at

    def check(self, revert: Revert, principal: Principal) -> None:
        """Raise unless each target is the asker's own, is in a fitting state, and isn't being reverted already."""
        if revert.regardless and not principal.owns_all:
            raise Denied("Only the person takes back what later actions stand on.", next_step="Take those back first.")
        if len(revert.targets) > MOST_STEPS or len(set(revert.targets)) != len(revert.targets):
            raise InvalidInput(f"One commit is of at most {MOST_STEPS} actions, each once.", next_step="Name fewer.")
        busy = self.busy()
        for id in revert.targets:
            found = self.core.actions.find(id, principal.own)
            if found is None or not principal.owns(found):
                raise unknown_action(id, principal)
            target = self.core.reverted(id)
            _refuse_state(revert.verb, target)
            if target.id in self.giving_up:
                raise Conflict(
                    f"{target.id} was kept for as long as it was to be: that is being ended just now.",
                    next_step=f"See what became of it: goex show {target.id}",
                )
            if target.id in busy:
                raise Conflict(
                    f"Action {target.id} is being taken through {busy[target.id]} already.",
                    next_step=f"Answer it: goex approve. How it stands: goex show {busy[target.id]}",
                )

    async def plan(self, revert: Revert, agent: str) -> tuple[Runtime, Plan]:
        """What it will do, for `agent`. Has no effect. Raises Conflict, Unsupported."""
        rows = self._rows(revert)
        believed = await asyncio.to_thread(confirmed, self.core.journal, rows)
        for row in rows:
            if row.id not in believed:
                raise Conflict(
                    f"Action {row.id} isn't what the journal says of it, so it isn't touched.",
                    next_step="goex log --verify",
                )
        await self.timeline.refuse_dependent(revert, rows[-1], agent)
        plans = []
        for row in rows:
            runtime, plan = self._of(row)
            one = replace(revert, target=row.id, also=())
            made = await runtime.assess_revert(one, plan, self.core.context(row))
            if revert.verb != "commit" and not is_as_planned(self.core.catalog, plan):
                made = replace(made, lines=(*made.lines, _CATALOG_CHANGED), resolved={**made.resolved, MOVED: True})
            most = _MOST_SAID // len(rows) ** 2
            plans.append(with_target(made, plan, most=most, catalog=self.core.catalog))
        made = plans[0] if len(plans) == 1 else _together(revert, plans)
        if revert.regardless:
            said = "Later actions may stand on what it did; that is disregarded."
            made = replace(made, lines=(*made.lines, said))
        return self._of(rows[-1])[0], made

    async def check_alone(self, row: ActionRow, plan: Plan) -> None:
        """Raise Conflict where what came since `row` was asked for, or runs now, stands on its target, or that isn't in
        a fitting state any more: the person may have had it looked at. Call it when its turn has come: what it waited
        for may be just that."""
        if isinstance(plan.action, Revert):
            await self.timeline.refuse_moved(plan.action, self.core.target_of(plan.action), row)
            for target in self._rows(plan.action):
                _refuse_state(plan.action.verb, target)

    async def effect(self, row: ActionRow, plan: Plan, context: Context) -> Outcome:
        """Carry it out, also after a crash, since reverts finish what they began. Raises Conflict, having touched
        nothing, when the state changed since."""
        assert isinstance(plan.action, Revert)
        revert = plan.action
        if revert.verb == "commit":
            if not revert.also:
                return await self._kept(revert.target, revert, plan, context, row.id)
            done = [await self._one_of_several(id, revert, plan, context, row.id) for id in revert.targets]
            return _all_of(dict(zip(revert.targets, done, strict=True)))
        target = self.core.target_of(revert)
        runtime, target_plan = self._of(target)
        return await runtime.execute_revert(revert, plan, target_plan, self.core.context(target), context)

    def step_target(
        self, transaction: Transaction, targets: tuple[str, ...], event: Event, by: str, verb: str = ""
    ) -> None:
        """What the end of a revert does to its target: its success steps it, a doubtful end makes it unknown, and a
        failure that touched nothing leaves it as it is. A commit of several steps each when it is its turn; in doubt is
        the one that it was at. `verb` is for its success alone."""
        at = targets[0] if len(targets) == 1 else self.turns.pop(by, "")
        if not at:
            return
        target = self.core.reverted(at)
        if event is Event.FINISH:
            done = {"undo": Event.UNDO, "redo": Event.REDO, "commit": Event.COMMIT}[verb]
            if target.state is not State.COMMITTED:  # a commit steps its target itself
                self.core.step(transaction, target, done, facts={"by": by})
        elif event in (Event.PART, Event.LOSE) and target.state not in (State.UNKNOWN, State.COMMITTED):
            self.core.step(transaction, target, Event.LOSE, facts={"by": by})

    async def _kept(self, id: str, revert: Revert, plan: Plan, context: Context, by: str) -> Outcome:
        """Commit one target, for good as soon as it is done."""
        target = self.core.reverted(id)
        if target.state is State.COMMITTED:  # before an interruption
            return Outcome(ok=True, summary=f"Committed {id}.")
        runtime, target_plan = self._of(target)
        of_target = self.core.context(target)
        context = replace(context, accounts=of_target.accounts)
        one = replace(revert, target=id, also=())
        outcome = await runtime.execute_revert(one, plan, target_plan, of_target, context)
        if outcome.ok:
            self.core.records(target).forget()
            self.core.stepped(target, Event.COMMIT, facts={"by": by})
        return outcome

    async def _one_of_several(self, id: str, revert: Revert, plan: Plan, context: Context, by: str) -> Outcome:
        """Commit one target. The others don't depend on it, so what fails is an outcome; whether it was committed then
        may be unknown. What says nothing of this one (a signal, a defect, the journal) ends all."""
        self.turns[by] = id
        try:
            outcome = await self._kept(id, revert, plan, context, by)
        except GoexError as error:
            if isinstance(error, JournalFailed | JournalBroken):
                raise
            outcome = Outcome(
                ok=False,
                summary=error.message,
                next_step=error.next_step,
                details=tuple(getattr(error, "difference", ())),
                touched=error.exit_status is ExitStatus.UNKNOWN,
            )
        if not outcome.ok and outcome.touched:
            self.lose(id, by)
        del self.turns[by]
        return outcome

    def lose(self, id: str, by: str) -> None:
        """Write that it can't be known what the revert `by` did to this target. Idempotent."""
        target = self.core.reverted(id)
        if target.state not in (State.UNKNOWN, State.COMMITTED):
            self.core.stepped(target, Event.LOSE, facts={"by": by})

    def busy(self, states: Set[State] = UNDER_WAY) -> dict[str, str]:
        """What is being reverted now, and by which action, of those that are in these states."""
        found: dict[str, str] = {}
        for row in self.core.actions.in_states(states):
            found |= dict.fromkeys(row.reverts()[1], row.id)
        return found

    def _rows(self, revert: Revert) -> tuple[ActionRow, ...]:
        return tuple(self.core.reverted(id) for id in revert.targets)

    def _of(self, row: ActionRow) -> tuple[Runtime, Plan]:
        plan = row.the_plan()
        return self.core.runtime_of(plan.action), plan


def _refuse_state(verb: str, target: ActionRow) -> None:
    if target.state not in REVERTIBLE[verb]:
        raise Conflict(
            f"Action {target.id} is {target.state}, so {verb} isn't possible.",
            next_step=f"To do it again: goex redo {target.id}"
            if (verb, target.state) == ("undo", State.UNDONE)
            else f"See it with: goex show {target.id}",
        )


def _together(revert: Revert, plans: list[Plan]) -> Plan:
    """One plan of several commits."""
    ids = revert.targets
    lines = [f"Keep {len(plans)} actions for good, {ids[0]} to {ids[-1]}:"]
    for id, plan in zip(ids, plans, strict=True):
        lines += [f"{id}: {line}" for line in plan.lines]
    return replace(
        plans[-1],
        action=revert,
        needs=_distinct(need for plan in plans for need in plan.needs),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="None of them can be undone or redone after this.",
        resolved={"verb": "commit", "each": together(dict(zip(ids, plans, strict=True)))},
        bounds={},
        lines=tuple(lines),
        undo={},
    )


def _all_of(done: dict[str, Outcome]) -> Outcome:
    """One outcome of several commits, by target."""
    changes = tuple(each.summary for each in done.values() if each.ok)
    failed = {id: each for id, each in done.items() if not each.ok}
    if not failed:
        summary = f"{len(done)} actions are kept for good."
        return replace(next(reversed(done.values())), summary=summary, changes=changes)
    first = next(iter(failed.values()))
    steps = (*filter(None, (first.next_step.rstrip("."),)), f"goex commit {next(iter(failed))}")
    return replace(
        first,
        summary=f"{len(failed)} of {len(done)} commits failed: {first.summary}",
        next_step="; then: ".join(steps),
        details=tuple(f"{id}: {line}" for id, each in failed.items() for line in (each.summary, *each.details)),
        changes=changes,
        touched=bool(changes) or any(each.touched for each in failed.values()),
    )


def _distinct(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Each need once; they hold JSON, which can't be hashed."""
    kept: list[Need] = []
    for need in needs:
        if need not in kept:
            kept.append(need)
    return tuple(kept)
