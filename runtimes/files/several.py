"""One program on several folders: everything for each of them as for a single one, and all of it or nothing.

Rules:

* Each folder has its own snapshot, records and states, those of an action of its own (`FilesRuntime` on a sub-plan);
  what they share is the run: it begins when all folders have arrived at it, and none is left out (`Meeting`).
* Folders that lie in one another, by whichever paths they are reached, or belong to different users, are refused.
* An undo compares all folders before it moves anything in the first; where a later one can't be moved, what was moved
  already is moved back. Cut off by a crash it is finished by running it again: each folder knows how far it is. Where
  that can't be, because one has changed meanwhile, what was moved before the crash is moved back.
* All folders are taken at once: two that wait for each other's never meet, and nobody else waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol, Self, TypeVar

from policies.actions import Files, Outcome, Plan, Revert, UndoClass
from policies.display_text import escape
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from policies.grants import PERSON
from runtimes.base import Context, DryLine, DryRun, Footprint, Records, Runtime, Settlement
from runtimes.files import plan_text, plans, records, reverts
from runtimes.files.action_folder import stopped
from runtimes.files.folder import Folder
from runtimes.files.location import locate
from runtimes.files.meeting import Meeting
from runtimes.files.run import interrupted
from runtimes.files.workers import FolderLocks, in_thread
from runtimes.sandbox.contract import WORK, Sandbox, SandboxFailed

MOST = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Own:
    """The records of one of an action's folders."""

    records: Records
    number: int

    def put(self, name: str, data: bytes) -> None:
        self.records.put(f"{name}.{self.number}", data)

    def get(self, name: str) -> bytes | None:
        return self.records.get(f"{name}.{self.number}")


class FolderRuntime(Runtime, Protocol):
    """What `Several` needs of `FilesRuntime`, which stands on it."""

    @property
    def sandbox(self) -> Sandbox: ...

    def at(self, sandbox: Sandbox) -> Self:
        """This runtime, running programs elsewhere."""
        ...

    def holding(self) -> Self:
        """This runtime for whoever holds the folders already: it waits for none."""
        ...

    async def folder(self, plan: Plan) -> Folder:
        """The folder of a plan as it is there now. Raises Conflict when it isn't."""
        ...


@dataclass(frozen=True, slots=True)
class Several:
    """What `FilesRuntime` does for an action on several folders; the methods are those of `Runtime`."""

    runtime: FolderRuntime
    locks: FolderLocks

    async def assess(self, action: Files, context: Context) -> Plan:
        if len(action.more) >= MOST:
            raise InvalidInput(f"A program works on at most {MOST} folders at once.")
        if action.preview:
            raise InvalidInput("What a dry run of several folders made can't be applied.", next_step="Run it.")
        if action.reads:  # one container would mount some read-only, and copies of others for writing
            raise InvalidInput("A program that only reads has one folder.", next_step="Name one, or ask for each.")
        found = []
        for number, folder in enumerate((action.folder, *action.more)):
            single = replace(action, folder=folder, more=())
            found.append(await self.runtime.assess(single, _part(context, number)))
        await _refuse_overlap([str(plan.resolved["folder"]) for plan in found])
        first = found[0]
        if len({(plan.resolved["uid"], plan.resolved["gid"]) for plan in found}) > 1:
            raise InvalidInput(
                "These folders belong to different users, and a program runs as one.",
                next_step="Choose folders of one owner and group.",
            )
        names = _names([str(plan.resolved["folder"]) for plan in found])
        where = [f"In {WORK}/{name}: {plan.lines[0]}" for name, plan in zip(names, found, strict=True)]
        also = [each for plan in found for each in plan.resolved.get("also", ())]
        own = [line for plan in found for line in plan.lines[1:5:3]]
        return replace(
            first,
            action=action,
            needs=tuple(need for plan in found for need in plan.needs),
            undo_text=f"For all {len(found)} folders, or none: {first.undo_text}",
            resolved={
                **first.resolved,
                **({"also": also} if also else {}),
                "more": [plan.resolved["folder"] for plan in found[1:]],
                "parts": [dict(plan.resolved) for plan in found],
                "names": names,
            },
            lines=(*where, *own, *first.lines[2:4], *first.lines[5:]),
        )

    async def prepare(self, plan: Plan, context: Context) -> None:
        for number, part in enumerate(_parts(plan)):
            await self.runtime.prepare(part, _part(context, number))

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        parts = _parts(plan)
        async with self._all(plan, context.agent) as held:
            await _refuse_overlap([str(part["folder"]) for part in plan.resolved["parts"]])
            meeting = Meeting(self.runtime.sandbox, context.action_id, plan.resolved["names"])
            runtime = held.runtime.at(meeting)
            runs = (runtime.execute(part, _part(context, number)) for number, part in enumerate(parts))
            done = await _all_of(runs, meeting)
            return await held._ended(plan, context, done)

    async def _ended(self, plan: Plan, context: Context, done: Sequence[Outcome | BaseException]) -> Outcome:
        """What all of them make. Where one has been taken back, or couldn't be applied, so are the others."""
        outcomes = {number: each for number, each in enumerate(done) if isinstance(each, Outcome)}
        errors = [each for each in done if isinstance(each, BaseException)]
        if not outcomes:
            told = [error for error in errors if not isinstance(error, SandboxFailed) or error.began]
            raise (told or errors)[0]
        apart = bool(errors) or any(
            records.read_state(_part(context, number).records).at != "after" for number in range(len(done))
        )
        unrecorded = any(
            part.resolved["mode"] == "direct" and records.read_state(_part(context, number).records).at == "running"
            for number, part in enumerate(_parts(plan))
        )
        if not apart or (unrecorded and not errors):  # what can't be recorded is left, until an undo
            return _together(plan, outcomes)
        why = [str(error) for error in errors] or [each.summary for each in outcomes.values() if not each.ok]
        cause = getattr(errors[0], "message", why[0]) if errors else why[0]  # of what is left, no "try again"
        if unrecorded:  # to take it back is to move whatever is there aside, which somebody has to ask for
            left = _together(plan, outcomes)
            said = f"{cause} What the program left elsewhere was left as it is, until an undo. {left.summary}"
            return replace(left, ok=False, summary=said, touched=True)
        try:
            if self._waiting(Revert(verb="undo", target=context.action_id), plan, context):
                back = await self._back(plan, context, "undo")
                if not back.ok:
                    said = f"{cause} The other folders couldn't be taken back: {back.summary}"
                    return replace(back, summary=said, touched=True)
        except GoexError as error:
            said = f"{cause} The other folders couldn't be taken back: {error.message}"
            return Outcome(ok=False, summary=said, touched=True)
        with suppress(GoexError):  # else what would bring it back is kept for a while, for nobody
            for number in range(len(done)):
                records.write_state(_part(context, number).records, records.State(at="prepared"))
        return Outcome(ok=False, summary=f"{why[0]} So the other folders were taken back.", touched=False)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        async with self._all(plan, context.agent) as held:
            found = [
                await held.runtime.settle(part, _part(context, number)) for number, part in enumerate(_parts(plan))
            ]
        evidence = tuple(line for each in found for line in each.evidence)
        outcomes = {number: each.outcome for number, each in enumerate(found) if each.outcome is not None}
        if len(outcomes) < len(found):
            return Settlement(outcome=None, evidence=evidence)
        if not any(each.touched for each in outcomes.values()):
            return Settlement(outcome=interrupted())
        return Settlement(outcome=_together(plan, outcomes))

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        if context.keep:
            raise InvalidInput(
                "What a dry run of several folders makes can't be kept, to be applied; nothing ran.",
                next_step="Leave out --keep, or name one folder.",
            )
        parts = _parts(plan)
        meeting = Meeting(self.runtime.sandbox, context.action_id, plan.resolved["names"])
        runtime = self.runtime.at(meeting)
        # Each holds its folder while that is copied, and none while it runs.
        runs = (runtime.dry_run(part, _part(context, number)) for number, part in enumerate(parts))
        done = await _all_of(runs, meeting)
        errors = [each for each in done if isinstance(each, BaseException)]
        if errors:
            told = [error for error in errors if not isinstance(error, SandboxFailed) or error.began]
            raise (told or errors)[0]
        found = {number: each for number, each in enumerate(done) if isinstance(each, DryRun)}
        return _dry(plan, found, [f"{WORK}/{name}" for name in plan.resolved["names"]])

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        if revert_plan.resolved.get("returns"):
            said = "What was cut off half way can't be finished: what it had moved would be moved back."
            return DryRun(ok=False, summary=said, lines=tuple(DryLine("note", line) for line in revert_plan.lines))
        found: dict[int, DryRun] = {}
        async with self._all(plan, target.agent) as held:
            for number in self._waiting(revert, plan, target):
                part, own = _parts(plan)[number], _part(target, number)
                made = await held.runtime.assess_revert(revert, part, own)
                pinned = replace(_parts(revert_plan)[number], lines=made.lines)
                found[number] = await held.runtime.dry_revert(revert, pinned, part, own)
        if not found:
            raise Unavailable("Nothing is left to do.")
        return _dry(plan, found, [str(part["folder"]) for part in plan.resolved["parts"]])

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        if records.read_state(_part(context, 0).records).at == "forgotten":
            raise Unsupported("This action was committed: what undo needs is gone.")
        parts = _parts(plan)
        if revert.verb == "commit":
            made = [plans.commit_plan(revert, part) for part in parts]
        else:
            made, nothing = [], None
            for number, part in enumerate(parts):
                try:
                    made.append(await self.runtime.assess_revert(revert, part, _part(context, number)))
                except Unsupported as error:
                    if number in self._waiting(revert, plan, context):
                        raise
                    nothing = error  # this one is there already, or was never touched
                    made.append(plans.revert_plan(revert, part, await self.runtime.folder(part), ()))
                except Conflict as error:
                    return await self._assess_return(revert, plan, context, error)
            if nothing is not None and not self._waiting(revert, plan, context):
                raise nothing
        worst = next((part for part in made if part.undo_class is UndoClass.IRREVERSIBLE), made[0])
        lines = tuple(line for part in made for line in part.lines)
        first = replace(made[0], undo_class=worst.undo_class, undo_text=worst.undo_text, lines=lines)
        return _reverting(first, plan, made)

    async def _assess_return(self, revert: Revert, plan: Plan, context: Context, refused: Conflict) -> Plan:
        """The plan where a revert was cut off half way, and what is left of it is refused: what it moved is moved back.
        Raises `refused` where nothing was moved, or it can't be moved back either."""
        moved = self._moved(revert, plan, context)
        if not moved:
            raise refused
        parts = _parts(plan)
        said = {"verb": revert.verb, "target": revert.target}
        made = [replace(part, action=revert, resolved={**part.resolved, **said}) for part in parts]
        lines = [f"The {revert.verb} of these folders was cut off half way, and can't be finished: {refused.message}"]
        lines += refused.difference
        lines.append("So what it had moved is moved back, and it is refused as a whole.")
        for number in moved:
            try:
                found = await self.runtime.assess_revert(_opposite(revert), parts[number], _part(context, number))
            except GoexError:
                raise refused from None
            made[number] = replace(found, action=revert, resolved={**found.resolved, **said})
            lines += found.lines
        first = made[moved[0]]
        first = replace(first, lines=tuple(lines), resolved={**first.resolved, "returns": True})
        return _reverting(first, plan, made)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        if revert.verb == "commit":
            await self.forget(plan, target)
            return Outcome(ok=True, summary="Committed: the snapshots of this action are deleted.", touched=True)
        async with self._all(plan, context.agent) as held:
            return await held._back(plan, target, revert.verb, revert_plan)

    @asynccontextmanager
    async def _all(self, plan: Plan, agent: str) -> AsyncIterator[Several]:
        """This for whoever holds all folders of the plan, which it does meanwhile."""
        folders = [str(part["folder"]) for part in plan.resolved["parts"]]
        async with self.locks.hold(*folders, first=agent == PERSON):
            yield replace(self, runtime=self.runtime.holding())

    async def _back(self, plan: Plan, target: Context, verb: Any, revert_plan: Plan | None = None) -> Outcome:
        """Move every folder that isn't there yet, once all were compared. Where one can't be, move back what was moved,
        also before an interruption, and raise why."""
        revert = Revert(verb=verb, target=target.action_id)
        pinned = plan if revert_plan is None else revert_plan
        outcomes: dict[int, Outcome] = {}
        moved = self._moved(revert, plan, target)
        parts = _parts(plan)
        waiting = self._waiting(revert, plan, target)
        waiting.sort(key=lambda number: reverts.unrecorded(parts[number], _part(target, number)))  # can't be moved back
        try:
            for number in waiting:  # nothing moves in the first if the last has changed
                await self.runtime.assess_revert(revert, parts[number], _part(target, number))
            if pinned.resolved.get("returns"):
                raise Conflict("It could be finished now, which wasn't asked for.", next_step="Ask for it again.")
            for number in waiting:
                outcome = await self._one(revert, pinned, plan, target, number)
                if not outcome.ok:
                    return outcome  # half way: run again, it goes on
                moved.append(number)
                outcomes[number] = outcome
        except GoexError as error:
            try:
                for number in sorted(set(moved), reverse=True):
                    back = await self._one(_opposite(revert), pinned, plan, target, number)
                    if not back.ok:
                        raise Unavailable(back.summary)
            except GoexError as stuck:
                said = f"{error} What was moved in the other folders couldn't be moved back; run it again to finish it."
                return stopped(said, stuck)
            raise
        if not outcomes:
            raise Unavailable("Nothing is left to do.")
        return _together(plan, outcomes)

    async def _one(self, revert: Revert, pinned: Plan, plan: Plan, target: Context, number: int) -> Outcome:
        part = _part(target, number)
        return await self.runtime.execute_revert(revert, _parts(pinned)[number], _parts(plan)[number], part, part)

    def _waiting(self, revert: Revert, plan: Plan, context: Context) -> list[int]:
        """The folders that such a revert still has to move."""
        found = []
        for number in range(len(_parts(plan))):
            state = records.read_state(_part(context, number).records)
            there = ("before", "prepared") if revert.verb == "undo" else ("after", "prepared", "running")
            if state.at not in there:
                found.append(number)
        return found

    def _moved(self, revert: Revert, plan: Plan, context: Context) -> list[int]:
        """The folders that such a revert, or what moves them back, has moved or begun to move."""
        states = [records.read_state(_part(context, number).records) for number in range(len(_parts(plan)))]
        goal = "before" if revert.verb == "undo" else "after"
        return [
            number
            for number, state in enumerate(states)
            if state.at == goal or (state.at == "between" and state.was in ("before", "after"))
        ]

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        each = [await self.runtime.footprint(part, _part(context, n)) for n, part in enumerate(_parts(plan))]
        return Footprint(
            reads=frozenset().union(*(one.reads for one in each)),
            writes=frozenset().union(*(one.writes for one in each)),
        )

    async def forget(self, plan: Plan, context: Context) -> None:
        for number, part in enumerate(_parts(plan)):
            await self.runtime.forget(part, _part(context, number))


def _part(context: Context, number: int) -> Context:
    return replace(context, action_id=f"{context.action_id}-{number}", records=_Own(context.records, number))


def _parts(plan: Plan) -> list[Plan]:
    """The plan of each folder, as if it were alone."""
    action = plan.action
    return [
        replace(
            plan,
            action=replace(action, folder=part["folder"], more=()) if isinstance(action, Files) else action,
            needs=(need,),
            resolved=part,
        )
        for part, need in zip(plan.resolved["parts"], plan.needs, strict=True)
    ]


async def _all_of(runs: Iterable[Awaitable[T]], meeting: Meeting) -> list[T | BaseException]:
    """What each of the runs gave or raised. At the meeting nobody waits for one that has ended."""

    async def one(run: Awaitable[T]) -> T:
        try:
            return await run
        finally:
            meeting.call_off()

    return await asyncio.gather(*map(one, runs), return_exceptions=True)


def _together(plan: Plan, outcomes: Mapping[int, Outcome]) -> Outcome:
    """One outcome of those of its folders, by their numbers."""
    each = {escape(plan.resolved["names"][number]): outcome for number, outcome in sorted(outcomes.items())}
    kept = {
        name: plan_text.capped(list(outcome.changes), plan_text.MOST_CHANGES // len(each))
        for name, outcome in each.items()
    }
    return replace(
        next(iter(each.values())),
        ok=all(outcome.ok for outcome in each.values()),
        summary=" ".join(f"{name}: {outcome.summary}" for name, outcome in each.items()),
        changes=tuple(f"{name}: {line}" for name, (lines, _) in kept.items() for line in lines),
        changes_cut=sum(more for _, more in kept.values()) + sum(outcome.changes_cut for outcome in each.values()),
        touched=any(outcome.touched for outcome in each.values()),
        unsure=any(outcome.unsure for outcome in each.values()),
    )


def _opposite(revert: Revert) -> Revert:
    return replace(revert, verb="redo" if revert.verb == "undo" else "undo")


def _reverting(first: Plan, plan: Plan, parts: Sequence[Plan]) -> Plan:
    """The plan of a revert of all folders; `first` says in words what it does."""
    also = [each for part in parts for each in part.resolved.get("also", ())]
    return replace(
        first,
        needs=tuple(need for part in parts for need in part.needs),
        resolved={
            **{name: value for name, value in first.resolved.items() if name != "also"},
            **({"also": also} if also else {}),
            **({"more": plan.resolved["more"]} if "more" in plan.resolved else {}),
            "names": plan.resolved["names"],
            "parts": [dict(part.resolved) for part in parts],
        },
    )


def _dry(plan: Plan, found: Mapping[int, DryRun], places: Sequence[str]) -> DryRun:
    """One dry run of those of its folders, by their numbers; `places` says where each is."""
    lines: list[DryLine] = []
    said = []
    for number, each in found.items():
        lines += [DryLine("note", f"In {escape(places[number])}:"), *each.lines]
        said.append(f"{escape(plan.resolved['names'][number])}: {each.summary}")
    return DryRun(ok=all(each.ok for each in found.values()), summary=" ".join(said), lines=tuple(lines))


async def _refuse_overlap(paths: Sequence[str]) -> None:
    """Raise InvalidInput where two of them are one folder, or one lies in the other, however they are reached."""
    found = await in_thread(lambda: [locate(path) for path in paths])
    for one, other in combinations(found, 2):
        if one.overlaps(other):
            raise InvalidInput(
                f"{escape(other.path)} and {escape(one.path)} lie in one another, or are one folder.",
                next_step="Name the outer one alone.",
            )
        if one.may_overlap(other):
            raise InvalidInput(
                f"{escape(other.path)} and {escape(one.path)} may be one folder: both are mounted from a network.",
                next_step="Work on one after the other.",
            )


def _names(paths: Sequence[str]) -> list[str]:
    """What each folder is called below /work: its own name, with a number where that is taken."""
    made: list[str] = []
    for path in paths:
        plain = "".join(each if each.isalnum() or each in "._-" else "_" for each in path.rpartition("/")[2])[:60]
        plain = plain.lstrip(".") or "folder"
        name, number = plain, 2
        while name in made:
            name, number = f"{plain}-{number}", number + 1
        made.append(name)
    return made
