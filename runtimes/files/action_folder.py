"""The folder of one action at hand: its open root, its snapshots, its states, and how it is moved between them.

Everything here is synchronous work for a thread, apart from `bring`, which puts the records between the steps.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass, replace

from policies.actions import Files, Outcome, Plan
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable
from runtimes.base import Records
from runtimes.files import manifest as manifests
from runtimes.files import plan_text, previews, records
from runtimes.files.folder import Folder
from runtimes.files.path_text import shown
from runtimes.files.rebase import orphans, own_paths, rebased
from runtimes.files.records import Label, Place, State
from runtimes.files.restore import Restore, Steps, steps, unreachable
from runtimes.files.snapshot import Repository
from runtimes.files.tree import UNLISTED, Bounds, Manifest, Walk
from runtimes.files.workers import in_thread, teller
from runtimes.open_files import OPEN_FILES


class Halted(Exception):
    """A restore stopped after it had begun to move things. `cause` says why; run again it goes on."""

    def __init__(self, cause: GoexError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True, kw_only=True)
class ActionFolder:
    """One action's folder. `root` is open and stays open as long as it is used."""

    action_id: str
    folder: Folder
    root: int
    repository: Repository
    records: Records
    bounds: Bounds
    progress: Callable[[str], None]

    # ---- looking ----

    def manifest(self, label: Label) -> Manifest | None:
        """That state's manifest; None when it was never noted."""
        noted = records.read_manifest(self.records, label)
        return None if noted is None else self.repository.load(noted[0])

    def before(self) -> Manifest:
        """The state before the action. Raises Unavailable when it isn't kept."""
        found = self.manifest("before")
        if found is None:
            raise Unavailable("The state before this action isn't kept.")
        return found

    def preview(self, plan: Plan) -> previews.Preview:
        """The preview that the plan applies. Raises Conflict when it isn't the one that was shown."""
        action = plan.action
        if not isinstance(action, Files):
            raise InvalidInput("This isn't an action on files.")
        found = previews.find(self.repository, action.preview, action, str(plan.resolved["program_sha256"]))
        if found.after != plan.resolved["preview_after"]:
            raise Conflict("The preview isn't the one that was shown.", next_step="Ask for the action again.")
        return found

    def sides(self) -> tuple[Manifest, Manifest]:
        """The states before and after the action; after one whose changes were only partly applied, what they would
        have made. Raises Unavailable when one isn't kept."""
        after = self.manifest("after") or self.manifest("target")
        if after is None:
            raise Unavailable("The state after this action was never recorded.")
        return self.before(), after

    def walk(self, *, known: Manifest | None, skip: str = "", tell: Callable[[str], None] | None = None) -> Manifest:
        """The tree as it is now, with content hashes."""
        return self.walker(known=known, skip=skip, tell=tell).run(self.root)

    def walker(
        self, *, known: Manifest | None, skip: str = "", force: bool = True, tell: Callable[[str], None] | None = None
    ) -> Walk:
        return Walk(
            bounds=self.bounds.grown() if force else self.bounds,
            read=self.repository.hash,
            known=known,
            skip=skip.encode("ascii"),
            force=force,
            trusted=self.folder.settles,
            progress=lambda seen: tell(f"Looked at {seen} files.") if tell is not None else None,
        )

    # ---- moving ----

    async def bring(
        self,
        goal: Manifest,
        *,
        now: Manifest,
        arrive: Place | None,
    ) -> list[str]:
        """Bring the folder from `now`, what it holds, to `goal`. Returns what changed, in words.

        `arrive` is the state that is noted at the end (None: the caller has something to write first).

        Raises Conflict when the file system lets nobody change a file, Unavailable when the snapshot or the disk
        doesn't do (nothing was touched in either case), Halted when it stopped half way.
        """
        state = records.read_state(self.records)
        resumed = state.at == "between"
        name = state.name if resumed else f".goex-{secrets.token_hex(16)}"
        tell = teller(self.progress)
        todo = steps(now, goal)
        contents = {goal.entries[path].oid for path in todo.stage if goal.entries[path].oid}
        if await in_thread(lambda: self.repository.missing(contents)):
            raise Unavailable("The snapshot lacks contents that this needs.", next_step="Nothing was touched.")
        if lost := unreachable(todo, now, goal):
            raise Unavailable(
                f"{shown(lost[0])} has {UNLISTED[0]}: what it was can't be restored.",
                next_step="Nothing was touched.",
            )
        lines = plan_text.changes(now.entries, goal.entries)
        restore = Restore(
            root=self.root,
            now=now,
            goal=goal,
            name=name.encode("ascii"),
            contents=self.repository.contents,
            clone=self.repository.clone,
            progress=tell,
        )
        if todo or resumed:
            # Before the first look, which may lift modes of folders: between the two states they count as ours.
            records.write_state(self.records, State(at="between", name=name, was=state.was if resumed else state.at))
            with OPEN_FILES.hold("folder") as restore.held:
                await self._stage(restore, todo, None if resumed else state)
                await self._apply(restore, todo, goal, tell, whole=resumed or not restore.plain(todo))
        if arrive is not None:
            try:
                records.write_state(self.records, State(at=arrive))
            except GoexError as error:
                raise Halted(error) from error
        return lines

    async def compare(self, before: Manifest, after: Manifest) -> Manifest:
        """The tree as it is now, once it is sure that nobody else has changed it. Raises Conflict."""
        now, expected = await self._looked_at((before, after))
        refuse_difference(now, expected, (before, after))
        return now

    async def compare_own(
        self, sides: tuple[Manifest, Manifest], goal: Place
    ) -> tuple[Manifest, tuple[Manifest, Manifest]]:
        """The tree as it is now, and the two sides among what others did in it since, once it is sure that nobody has
        changed what the action changed. Raises Conflict."""
        now, expected = await self._looked_at(sides)
        return now, own_sides(now, sides, expected, goal)

    async def _looked_at(self, sides: tuple[Manifest, Manifest]) -> tuple[Manifest, Manifest | None]:
        """The tree as it is now, and which of the two it should be; None: a restore between them was cut off. What the
        action changed, and what may be written over, is read anew: what is written through a mapping moves no time at
        first."""
        state = records.read_state(self.records)
        expected = None if state.at == "between" else sides[1] if state.at == "after" else sides[0]
        tell = teller(self.progress)
        known = without(expected or sides[1], own_paths(sides[0].entries, sides[1].entries))
        now = await in_thread(
            lambda: self.walk(known=known, skip=state.name, tell=tell),
            saying="Comparing the folder with what it should be…",
            progress=self.progress,
        )
        return now, expected

    async def _stage(self, restore: Restore, todo: Steps, state: State | None) -> None:
        """Look whether these steps can be taken, and make what they need; where not, all is as it was and `state` is
        noted again. Where that fails too, it stays noted that a restore was cut off."""
        try:
            if fixed := await in_thread(lambda: restore.fixed(todo)):
                raise Conflict(
                    "The file system lets nobody change some of these files; nothing was touched.",
                    next_step="Take that off (chattr -i -a FILE), then try again.",
                    difference=tuple(f"can't be changed: {shown(path)}" for path in fixed[:20]),
                )
            await in_thread(lambda: restore.keep_out(todo), saying="Waiting for a database…", progress=self.progress)
            await in_thread(
                lambda: restore.stage(todo),
                saying="Restoring contents beside the folder's own…",
                progress=self.progress,
                writes=self.folder.path,
            )
        except GoexError as error:
            with suppress(GoexError):
                await in_thread(restore.unstage)
                if state is not None:
                    records.write_state(self.records, state)
            raise error

    async def _apply(
        self, restore: Restore, todo: Steps, goal: Manifest, tell: Callable[[str], None], *, whole: bool
    ) -> None:
        """Bring everything into place and look whether it is what it should be: at all of it, or, after little was
        done to what had just been compared, at that."""

        def apply_and_look() -> list[str]:
            restore.apply(todo)
            if not whole:
                return [shown(path) for path in restore.strays(todo, self.repository.hash)]
            reached = self.walk(known=restore.now, tell=tell)
            return (
                [] if manifests.equal(reached, goal) else plan_text.changes(goal.entries, reached.entries) or ["times"]
            )

        try:
            saying = "Putting everything into place…"
            strange = await in_thread(apply_and_look, saying=saying, progress=self.progress, writes=self.folder.path)
        except GoexError as error:
            raise Halted(error) from error
        if strange:
            difference, _ = plan_text.capped(strange, 20)
            raise Halted(Conflict("The folder isn't what it should be after this.", difference=difference))


def without(known: Manifest, paths: Set[bytes]) -> Manifest:
    """What is known, but for these paths."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    return replace(
        known,
        entries={path: entry for path, entry in known.entries.items() if path not in paths},
        listings={folder: listing for folder, listing in known.listings.items() if folder not in folders},
    )


def refuse_difference(now: Manifest, expected: Manifest | None, sides: tuple[Manifest, Manifest]) -> None:
    """Raise Conflict, naming every path, when the folder isn't as expected (None: somewhere between the sides)."""
    if expected is not None:
        if manifests.equal(now, expected):
            return
        lines = plan_text.changes(expected.entries, now.entries) or plan_text.times(expected.entries, now.entries)
    else:
        lines = [f"changed {shown(path)}" for path in manifests.between(now, *sides)]
        if not lines:
            return
    difference, cut = plan_text.capped(lines)
    more = (f"… and {cut} more",) if cut else ()
    raise Conflict(
        "Someone changed files in this folder since; nothing was touched.",
        next_step="Look at the difference; put these files back or move them away, then try again.",
        difference=difference + more,
    )


def own_sides(
    now: Manifest, sides: tuple[Manifest, Manifest], expected: Manifest | None, goal: Place
) -> tuple[Manifest, Manifest]:
    """The two sides as they are among what others did since. Raises Conflict, naming every path, where that is in what
    the action changed, or where `goal` ("before" or "after") couldn't be reached beside it."""
    if manifests.equal(now, expected) if expected is not None else not manifests.between(now, *sides):
        return sides
    found, should = rebased(now, sides, expected)
    if should is None:
        lines = [f"changed {shown(path)}" for path in manifests.between(now, *found)]
    else:
        lines = plan_text.changes(should.entries, now.entries)
    side = found[0] if goal == "before" else found[1]
    for path in () if lines else orphans(side):
        above = path.rpartition(b"/")[0]
        lines.append(f"created {shown(path)}" if path in now.entries else f"deleted {shown(above)}")
    if not lines:
        return found
    difference, cut = plan_text.capped(list(dict.fromkeys(lines)))
    created = all(line.startswith("created ") for line in lines)
    raise Conflict(
        "Someone changed what this action had changed; nothing was touched.",
        next_step="Move these away, then try again."
        if created
        else "Put these back as the action left them (content, mode and time), then try again.",
        difference=difference + ((f"… and {cut} more",) if cut else ()),
    )


def refuse_unrestorable(found: Manifest) -> None:
    """Raise InvalidInput for what GoEx, or GoEx without root, could take away but not put back."""
    for path, entry in found.entries.items():
        if UNLISTED in entry.xattrs:
            raise InvalidInput(
                f"{shown(path)} has {UNLISTED[0]}: it couldn't be restored exactly.",
                next_step="Take some off (setfattr -x NAME FILE), or choose another folder.",
            )
    if os.geteuid() == 0:
        return
    groups = {os.getegid(), *os.getgroups()}
    for path, entry in found.entries.items():
        foreign = entry.uid != os.geteuid() or entry.gid not in groups
        privileged = any(name.startswith(("security.", "trusted.")) for name, _ in entry.xattrs)
        if foreign or privileged or entry.kind in "cb":
            raise InvalidInput(
                f"{shown(path)} belongs to another user or group, or is privileged: it couldn't be restored exactly.",
                next_step="Choose a folder whose files are all your own.",
            )


def stopped(outcome: str, cause: GoexError, *, again: bool = True) -> Outcome:
    """The outcome of a restore that stopped half way; `again`: whether to run it again once its cause is mended."""
    paths = ["the folder itself" if each == "." else each for each in getattr(cause, "difference", ())[:3]]
    detail = f" ({'; '.join(paths)})" if paths else ""
    mend = f" {cause.next_step}" if again and cause.next_step else ""
    return Outcome(ok=False, summary=f"{outcome} {cause.message}{detail}{mend}", touched=True)
