"""One program on several folders: everything for each of them as for a single one, and all of it or nothing.

Rules:

* Each folder has its own snapshot, records and states, those of an action of its own (`FilesRuntime` on a sub-plan);
  what they share is the run: it begins when all folders have arrived at it, and none is left out (`_Meeting`).
* Folders that lie in one another, or belong to different users, are refused.
* An undo compares all folders before it moves anything in the first; where a later one can't be moved, what was moved
  already is moved back. Cut off by a crash it is finished by running it again: each folder knows how far it is.
* All folders are taken at once: two that wait for each other's never meet, and nobody else waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from policies.actions import Files, Outcome, Plan, Revert, UndoClass
from policies.display_text import escape
from policies.errors import GoexError, InvalidInput, Unavailable, Unsupported
from policies.grants import PERSON
from runtimes.base import Context, DryLine, DryRun, Footprint, Records, Runtime, Settlement
from runtimes.files import plan_text, plans, records
from runtimes.files.folder import Folder
from runtimes.files.run import SAME_FOLDER, interrupted
from runtimes.files.workers import FolderLocks
from runtimes.sandbox.contract import WORK, Job, Profile, Result, Sandbox, SandboxFailed

MOST = 8
# The folders' paths and what they must be, up to --, and then the program.
_SAME_FOLDERS = (
    "sh",
    "-c",
    'while [ "$1" != -- ]; do if [ "$(stat -c %d:%i "$1/.")" != "$2" ]; then '
    'echo "goex: $1 isn\'t the folder that was meant" >&2; exit 126; fi; shift 2; done; shift; exec "$@"',
    "sh",
)


@dataclass(frozen=True, slots=True)
class _Own:
    """The records of one of an action's folders."""

    records: Records
    number: int

    def put(self, name: str, data: bytes) -> None:
        self.records.put(f"{name}.{self.number}", data)

    def get(self, name: str) -> bytes | None:
        return self.records.get(f"{name}.{self.number}")


class _Meeting:
    """A sandbox for the parts of one action: their jobs become one, which sees all their folders."""

    def __init__(self, sandbox: Sandbox, action_id: str, names: Sequence[str]) -> None:
        self._sandbox = sandbox
        self._action_id = action_id
        self._names = names
        self._jobs: dict[str, Job] = {}
        self._result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._off = False

    async def image_id(self, profile: Profile) -> str:
        return await self._sandbox.image_id(profile)

    def prepare(self, profile: Profile) -> None:
        """Jobs on folders start cold."""

    async def run(self, job: Job, profile: Profile, output: Callable[[str, bytes], None] | None = None) -> Result:
        """Wait for the others, and for the end of the one run. Raises SandboxFailed when one of them won't come."""
        if self._off:
            raise SandboxFailed("Another folder of this action isn't ready.", began=False)
        result = self._result
        self._jobs[job.action_id] = job
        if len(self._jobs) == len(self._names):
            jobs = [self._jobs[id] for id in sorted(self._jobs, key=_number)]
            self._jobs, self._result = {}, asyncio.get_running_loop().create_future()
            try:
                result.set_result(await self._sandbox.run(self._together(jobs), profile, output))
            except BaseException as error:
                result.set_exception(
                    error if isinstance(error, Exception) else SandboxFailed("It was left.", began=True)
                )
                result.exception()  # it may be that nobody else waits
                raise
        return await asyncio.shield(result)

    def call_off(self) -> None:
        """One part won't come: whoever waits for it gets away with nothing begun."""
        self._off = True
        if self._jobs and not self._result.done():
            self._result.set_exception(SandboxFailed("Another folder of this action isn't ready.", began=False))
            self._result.exception()

    def _together(self, jobs: Sequence[Job]) -> Job:
        first = jobs[0]
        checks: list[str] = []
        argv = list(first.argv)
        for name, job in zip(self._names, jobs, strict=True):
            if tuple(job.argv[:3]) == SAME_FOLDER:
                checks += [f"{WORK}/{name}", job.argv[3]]
                argv = list(job.argv[4:])
        if checks:
            argv = [*_SAME_FOLDERS, *checks, "--", *argv]
        folders = {name: str(job.folder) for name, job in zip(self._names, jobs, strict=True)}
        undo = "-undo" if first.action_id.endswith("-undo") else ""
        return replace(first, action_id=self._action_id + undo, argv=argv, folder=None, folders=folders)

    async def kill(self, action_id: str) -> None:
        await self._sandbox.kill(self._action_id + ("-undo" if action_id.endswith("-undo") else ""))

    async def reap(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        return None


def _number(id: str) -> int:
    return int(id.removesuffix("-undo").rpartition("-")[2])


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
        found = []
        for number, folder in enumerate((action.folder, *action.more)):
            single = replace(action, folder=folder, more=())
            found.append(await self.runtime.assess(single, _part(context, number)))
        _refuse_overlap([str(plan.resolved["folder"]) for plan in found])
        first = found[0]
        if len({(plan.resolved["uid"], plan.resolved["gid"]) for plan in found}) > 1:
            raise InvalidInput(
                "These folders belong to different users, and a program runs as one.",
                next_step="Choose folders of one owner and group.",
            )
        names = _names([str(plan.resolved["folder"]) for plan in found])
        where = [f"In {WORK}/{name}: {plan.lines[0]}" for name, plan in zip(names, found, strict=True)]
        own = [line for plan in found for line in plan.lines[1:5:3]]
        return replace(
            first,
            action=action,
            needs=tuple(need for plan in found for need in plan.needs),
            undo_text=f"For all {len(found)} folders, or none: {first.undo_text}",
            resolved={
                **first.resolved,
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
            meeting = _Meeting(self.runtime.sandbox, context.action_id, plan.resolved["names"])
            runtime = held.runtime.at(meeting)

            async def one(number: int) -> Outcome:
                try:
                    return await runtime.execute(parts[number], _part(context, number))
                except BaseException:
                    meeting.call_off()
                    raise

            done = await asyncio.gather(*(one(number) for number in range(len(parts))), return_exceptions=True)
            return await held._ended(plan, context, done)

    async def _ended(self, plan: Plan, context: Context, done: Sequence[Outcome | BaseException]) -> Outcome:
        """What all of them make. Where one has been taken back, or couldn't be applied, so are the others."""
        outcomes = [each for each in done if isinstance(each, Outcome)]
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
        why = [str(error) for error in errors] or [each.summary for each in outcomes if not each.ok]
        if unrecorded:  # to take it back is to move whatever is there aside, which somebody has to ask for
            left = _together(plan, outcomes)
            said = f"{why[0]} What the program left elsewhere was left as it is, until an undo. {left.summary}"
            return replace(left, ok=False, summary=said, touched=True)
        try:
            await self._back(plan, context, "undo")
        except GoexError as error:
            return Outcome(
                ok=False, summary=f"{why[0]} The other folders couldn't be taken back: {error}", touched=True
            )
        return Outcome(ok=False, summary=f"{why[0]} So the other folders were taken back.", touched=False)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        async with self._all(plan, context.agent) as held:
            found = [
                await held.runtime.settle(part, _part(context, number)) for number, part in enumerate(_parts(plan))
            ]
        evidence = tuple(line for each in found for line in each.evidence)
        outcomes = [each.outcome for each in found if each.outcome is not None]
        if len(outcomes) < len(found):
            return Settlement(outcome=None, evidence=evidence)
        if not any(each.touched for each in outcomes):
            return Settlement(outcome=interrupted())
        return Settlement(outcome=_together(plan, outcomes))

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        parts = _parts(plan)
        meeting = _Meeting(self.runtime.sandbox, context.action_id, plan.resolved["names"])
        runtime = self.runtime.at(meeting)

        async def one(number: int) -> DryRun:  # each holds its folder while that is copied, and none while it runs
            try:
                return await runtime.dry_run(parts[number], _part(replace(context, keep=False), number))
            except BaseException:
                meeting.call_off()
                raise

        done = await asyncio.gather(*(one(number) for number in range(len(parts))), return_exceptions=True)
        errors = [each for each in done if isinstance(each, BaseException)]
        if errors:
            told = [error for error in errors if not isinstance(error, SandboxFailed) or error.began]
            raise (told or errors)[0]
        return _dry(plan, [each for each in done if isinstance(each, DryRun)])

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
                except Unsupported as error:  # this one is there already, or was never touched
                    nothing = error
                    made.append(plans.revert_plan(revert, part, await self.runtime.folder(part), ()))
            if nothing is not None and not self._waiting(revert, plan, context):
                raise nothing
        first = made[0]
        worst = next((part for part in made if part.undo_class is UndoClass.IRREVERSIBLE), first)
        return replace(
            first,
            undo_class=worst.undo_class,
            undo_text=worst.undo_text,
            needs=tuple(need for part in made for need in part.needs),
            lines=tuple(line for part in made for line in part.lines),
            resolved={
                **first.resolved,
                "more": plan.resolved["more"],
                "names": plan.resolved["names"],
                "parts": [dict(part.resolved) for part in made],
            },
        )

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        if revert.verb == "commit":
            await self.forget(plan, target)
            return Outcome(ok=True, summary="Committed: the snapshots of this action are deleted.", touched=True)
        async with self._all(plan, context.agent) as held:
            for number in self._waiting(revert, plan, target):  # nothing moves in the first if the last has changed
                await held.runtime.assess_revert(revert, _parts(plan)[number], _part(target, number))
            return await held._back(plan, target, revert.verb, revert_plan)

    @asynccontextmanager
    async def _all(self, plan: Plan, agent: str) -> AsyncIterator[Several]:
        """This for whoever holds all folders of the plan, which it does meanwhile."""
        folders = [str(part["folder"]) for part in plan.resolved["parts"]]
        async with self.locks.hold(*folders, first=agent == PERSON):
            yield replace(self, runtime=self.runtime.holding())

    async def _back(self, plan: Plan, target: Context, verb: Any, revert_plan: Plan | None = None) -> Outcome:
        """Move every folder that isn't there yet; put back what was moved when one can't be."""
        revert = Revert(verb=verb, target=target.action_id)
        pinned = plan if revert_plan is None else revert_plan
        outcomes: list[Outcome] = []
        moved: list[int] = []
        for number in self._waiting(revert, plan, target):
            try:
                outcome = await self._one(revert, pinned, plan, target, number)
            except GoexError as error:
                other = Revert(verb="redo" if verb == "undo" else "undo", target=target.action_id)
                try:
                    for again in reversed(moved):
                        await self._one(other, pinned, plan, target, again)
                except GoexError as stuck:
                    said = f"{error.message} What was moved in the other folders couldn't be moved back: {stuck}"
                    return Outcome(ok=False, summary=said, touched=True)
                raise
            if not outcome.ok:
                return outcome  # half way: run again, it goes on
            moved.append(number)
            outcomes.append(outcome)
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


def _together(plan: Plan, outcomes: Sequence[Outcome]) -> Outcome:
    first = outcomes[0]
    if len(outcomes) < len(plan.resolved["names"]):
        names = [""] * len(outcomes)
    else:
        names = [f"{name}: " for name in plan.resolved["names"]]
    kept = [plan_text.capped(list(each.changes), plan_text.MOST_CHANGES // len(outcomes)) for each in outcomes]
    shown = tuple(f"{escape(name)}{line}" for name, (lines, _) in zip(names, kept, strict=True) for line in lines)
    cut = sum(more for _, more in kept)
    return replace(
        first,
        ok=all(each.ok for each in outcomes),
        summary=" ".join(dict.fromkeys(f"{escape(n)}{each.summary}" for n, each in zip(names, outcomes, strict=True))),
        changes=shown,
        changes_cut=cut + sum(each.changes_cut for each in outcomes),
        touched=any(each.touched for each in outcomes),
        unsure=any(each.unsure for each in outcomes),
    )


def _dry(plan: Plan, found: Sequence[DryRun]) -> DryRun:
    lines: list[DryLine] = []
    for name, each in zip(plan.resolved["names"], found, strict=True):
        lines += [DryLine("note", f"In {WORK}/{escape(name)}:"), *each.lines]
    names = plan.resolved["names"]
    return DryRun(
        ok=all(each.ok for each in found),
        summary=" ".join(f"{escape(name)}: {each.summary}" for name, each in zip(names, found, strict=True)),
        lines=tuple(lines),
    )


def _refuse_overlap(paths: Sequence[str]) -> None:
    for number, path in enumerate(paths):
        for other in paths[:number]:
            if path == other or path.startswith(other + "/") or other.startswith(path + "/"):
                raise InvalidInput(
                    f"{escape(path)} and {escape(other)} lie in one another.", next_step="Name the outer one alone."
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
