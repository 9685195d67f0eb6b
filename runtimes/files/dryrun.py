"""A dry run: the very program, in a container of its own, on a copy of the folder; and what it made of that copy.

Rules:

* The person's folder is only read (`original`), never mounted, and none of its times moves.
* The copy lies in a private folder of GoEx's own and is removed however this ends; what a crash leaves is removed when
  the daemon starts again (`FilesRuntime.reap`).
* Limits and deadline are the real run's. A program that fills the disk is ended: what a copy may grow by is bounded.
* What is said is what happened on the copy. Nothing here decides anything, or is kept.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from policies.actions import Ended, Files, Plan
from policies.display_text import counted, escape, shorten
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable
from runtimes.base import Context, DryKind, DryLine, DryRun
from runtimes.files import plan_text, plans, previews, workcopy
from runtimes.files.difference import Difference
from runtimes.files.handles import opened_path, remove_path
from runtimes.files.original import Original
from runtimes.files.path_text import shown
from runtimes.files.quota import Full, Quota
from runtimes.files.snapshot import Repository, make_private
from runtimes.files.tree import Bounds, Manifest, Walk
from runtimes.files.workers import in_thread, teller
from runtimes.sandbox.contract import Job, Profile, Result, Sandbox, SandboxFailed

_OURS = "Undo doesn't use it: GoEx puts back the snapshot that it takes, exactly."
_LOOK = 0.25  # seconds between two looks at the disk
_OUTPUT_LINES = 200
_OUTPUT_LINE = 2000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a dry run may take of the disk: how much its program may write, and what must stay free. Bytes, entries."""

    grow: int = 10**9
    entries: int = 100_000
    keep: int = 500 * 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Dry:
    """One dry run of `plan`; `work` is where its copy lies, and doesn't exist yet."""

    plan: Plan
    context: Context
    sandbox: Sandbox
    profile: Profile
    work: Path
    bounds: Bounds
    room: Room
    repository: Repository  # what is kept goes there
    quota: Quota

    async def copied(self, root: int) -> tuple[Manifest, Manifest]:
        """Copy the folder open as `root`. Returns its state, and the copy's as the program gets it.

        Raises Conflict when the folder changes meanwhile, Unavailable when there is too little room.
        """
        tell = teller(self.context.progress)

        def copy() -> tuple[Manifest, Manifest]:
            look = Walk(
                bounds=self.bounds, read=self.repository.hash, progress=lambda seen: tell(f"Looked at {seen} files.")
            )
            before = look.run(root)
            self._require_room(before)
            original = Original(root, before)
            if self.plan.resolved["mode"] == "copy":
                handed = workcopy.given(before, self.plan.resolved["uid"], self.plan.resolved["gid"])
            else:
                if why := workcopy.special(before):
                    raise Conflict(f"The folder isn't as it was when it was looked at: {why}.", difference=(why,))
                handed = before
            workcopy.lay_out(self.work, handed, original.contents, clone=original.clone)
            return before, handed

        kept = str(self.repository.path.parent)
        return await in_thread(copy, saying="Copying the folder…", progress=self.context.progress, writes=kept)

    async def run(self, *, undo: bool = False) -> tuple[Result, str]:
        """Run the program, or its proposed undo, on the copy. Returns how it ended, and why it was ended by us ("": it
        wasn't)."""
        action = self._action
        name, argv = plans.command(action)
        job = Job(
            action_id=f"{self.context.action_id}-undo" if undo else self.context.action_id,
            argv=argv,
            files={name: (action.undo if undo else action.program).encode("utf-8")},
            env={"HOME": "/tmp"},  # noqa: S108 (the container's own tmpfs)
            folder=str(self.work / "tree"),
            read_only=action.reads and self.plan.resolved["mode"] == "direct",  # as in the real run
            uid=self.plan.resolved["uid"],
            gid=self.plan.resolved["gid"],
        )
        what = "what is said to undo it" if undo else "the program"
        self.context.progress(f"Running {what} on the copy…")
        reasons: list[str] = []
        guard = asyncio.create_task(self._guard(reasons, job.action_id))
        try:
            result = await self.sandbox.run(job, self.profile)
        except SandboxFailed as error:
            if not error.began:
                raise
            said = str(error).encode("utf-8", "replace")
            result = Result(ended=Ended.KILLED, exit_code=None, stdout=b"", stderr=said, cut=0, seconds=0.0)
        finally:
            guard.cancel()
            await asyncio.wait({guard})  # to await it would take a cancellation of this task for its own
            if not guard.cancelled():
                guard.result()
        return result, "".join(reasons)

    async def undone(self, handed: Manifest) -> tuple[DryLine, ...]:
        """Try the proposed undo on the copy that the program has worked on, and judge: is it what was handed out?"""
        if not self._action.undo:
            return ()
        result, why = await self.run(undo=True)

        def judge() -> tuple[DryLine, ...]:
            with opened_path(self.work / "tree") as copy:
                left = Walk(bounds=self._allowed(handed), read=self.repository.hash, force=True).run(copy)
            return verdict(handed, left, why or plans.ending(result), well=result.exit_code == 0 and not why)

        try:
            return await in_thread(judge, saying="Judging the undo…", progress=self.context.progress)
        except InvalidInput as error:
            said = f"The proposed undo left what GoEx doesn't take: {escape(str(error))}"
            return (DryLine("warning", said), DryLine("note", _OURS))

    async def compared(self, root: int, before: Manifest, handed: Manifest, result: Result, why: str) -> DryRun:
        """Say what the program made of the copy, and keep it where that is wanted."""
        try:
            return await in_thread(
                lambda: self._compared(root, before, handed, result, why),
                saying="Comparing the copy with the folder…",
                progress=self.context.progress,
            )
        except InvalidInput as error:  # it left more than is looked at
            said = f"{why}." if why else f"The program left what GoEx doesn't take: {escape(str(error))}"
            return DryRun(ok=False, summary=said, lines=(DryLine("warning", said), *printed(result)))

    def _compared(self, root: int, before: Manifest, handed: Manifest, result: Result, why: str) -> DryRun:
        ok = result.ended is Ended.EXITED and result.exit_code == 0 and not why
        keep = ok and self.context.keep
        with opened_path(self.work / "tree") as copy:
            walk = Walk(bounds=self._allowed(before), read=self.repository.hash, force=True)
            unkept: tuple[DryLine, ...] = ()
            if keep:
                had = frozenset(entry.oid for entry in before.entries.values() if entry.oid)
                storing = Walk(bounds=walk.bounds, force=True)
                try:
                    left = self.repository.store(storing, copy, room=self.quota.room(), skip=had)
                except Full as full:
                    keep, unkept = False, (DryLine("warning", f"It isn't kept, so it can't be applied. {full}"),)
            if not keep:
                left = walk.run(copy)
            if self.plan.resolved["mode"] == "copy":
                after, refused = workcopy.target(before, handed, left)
            else:
                after, refused = stripped(handed, left)
            difference = Difference(
                before=before, after=after, old=Original(root, before), new=Original(copy, left, force=True)
            )
            lines, changed = difference.run()
        ending = why or plans.ending(result)
        if keep:
            program = str(self.plan.resolved["program_sha256"])
            folder = str(self.plan.resolved["folder"])
            previews.keep(self.repository, self.context.action_id, folder, program, before, after)
        return DryRun(
            ok=ok,
            preview=self.context.action_id if keep else "",
            summary=f"{ending}: {plan_text.tally(changed)}.",
            lines=(
                *_said(datetime.now(UTC)),
                *unkept,
                *(DryLine("warning", line) for line in (*plans.beware(before, after)[0], *refused)),
                *(lines or [DryLine("note", "Nothing in the folder would change.")]),
                *printed(result),
            ),
        )

    @property
    def _action(self) -> Files:
        if not isinstance(self.plan.action, Files):
            raise InvalidInput("This isn't an action on files.")
        return self.plan.action

    def _allowed(self, before: Manifest) -> Bounds:
        return Bounds(
            files=len(before.entries) + self.room.entries,
            bytes=before.bytes + 2 * self.room.grow,
            depth=self.bounds.depth + 20,
        )

    async def clear(self) -> None:
        """Remove the copy. Idempotent."""
        await in_thread(lambda: remove_path(self.work))

    def _require_room(self, before: Manifest) -> None:
        above = self.work.parent.parent
        make_private(above)
        if free(above)[0] - before.bytes < self.room.keep:
            raise Unavailable(
                f"There is too little room on the disk for a copy of this folder ({plan_text.size(before.bytes)}).",
                next_step="Free some space, then try again.",
            )

    async def _guard(self, reasons: list[str], job: str) -> None:
        """End the program when the disk loses more than a copy may grow by."""
        space, entries = free(self.work)
        while True:
            await asyncio.sleep(_LOOK)
            now, names = free(self.work)
            if space - now > self.room.grow or (entries and entries - names > self.room.entries):
                reasons.append("The program was ended, because the copy grew too large")
            elif now < self.room.keep:
                reasons.append("The program was ended, because the disk was nearly full")
            else:
                continue
            with suppress(GoexError):
                await self.sandbox.kill(job)
            return


def verdict(handed: Manifest, left: Manifest, ending: str, *, well: bool) -> tuple[DryLine, ...]:
    """What is to be said of an undo that made `left` of a copy that was `handed` at the beginning. Pure."""
    lines = plan_text.changes(handed.entries, left.entries)
    apart = [line for line in lines if not line.startswith("touched ")]
    if not well:
        said = DryLine("warning", f"The proposed undo was tried on the copy and failed. {ending}.")
    elif apart:
        said = DryLine(
            "warning", f"The proposed undo doesn't put everything back: {plan_text.tally(apart)} on the copy."
        )
    elif lines or plan_text.times(handed.entries, left.entries):
        said = DryLine("note", "The proposed undo puts everything back on the copy, but for times.")
    else:
        said = DryLine("note", "The proposed undo puts everything back on the copy, exactly.")
    shown, cut = plan_text.capped(apart, 20)
    more = (DryLine("warning", f"… and {cut} more."),) if cut else ()
    return (said, *(DryLine("change", line) for line in shown), *more, DryLine("note", _OURS))


def stripped(handed: Manifest, left: Manifest) -> tuple[Manifest, list[str]]:
    """What a run on the folder itself would be recorded as: set-user-id and set-group-id bits only where they were."""
    made, refused = dict(left.entries), []
    for path, entry in left.entries.items():
        old = handed.entries.get(path)
        kept = old.mode if old is not None and old.kind == "f" and old.body == entry.body else 0
        if entry.kind == "f" and entry.mode & 0o6000 & ~kept:
            made[path] = entry._replace(mode=entry.mode & (0o1777 | (kept & 0o6000)))
            refused.append(f"not applied: the set-user-id or set-group-id bit of {shown(path)}")
    return Manifest(entries=made, taken=left.taken, settled=False), refused


def printed(result: Result) -> list[DryLine]:
    """What the program printed, bounded; what was left out is said."""
    lines: list[DryLine] = []
    kinds: tuple[tuple[DryKind, bytes, str], ...] = (
        ("output", result.stdout, "It printed:"),
        ("errors", result.stderr, "It printed as errors:"),
    )
    for kind, data, heading in kinds:
        if not data:
            continue
        lines.append(DryLine("note", heading))
        found = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
        for line in found[:_OUTPUT_LINES]:
            shown, cut = shorten(escape(line), _OUTPUT_LINE)
            lines.append(DryLine(kind, f"{shown}… ({counted(cut, 'more character')})" if cut else shown))
        if len(found) > _OUTPUT_LINES:
            lines.append(DryLine("warning", f"{counted(len(found) - _OUTPUT_LINES, 'more line')} of it left out."))
    if result.cut:
        lines.append(DryLine("warning", f"{counted(result.cut, 'byte')} of what it printed left out."))
    return lines


def free(folder: Path) -> tuple[int, int]:
    """Bytes and entries that the file system still takes; entries are 0 where it doesn't count them."""
    at = os.statvfs(folder)
    return at.f_bavail * at.f_frsize, at.f_favail


def _said(now: datetime) -> tuple[DryLine, ...]:
    when = now.strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        DryLine("note", f"This is what happened on a copy at {when}. Your folder wasn't touched."),
        DryLine(
            "note",
            "A later run may do otherwise: files may change until then, and a program can look at the clock, at chance,"
            " or at whether it works on a copy.",
        ),
    )
