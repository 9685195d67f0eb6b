"""Programs on one folder: assessed, snapshotted, run in a container that sees that folder alone, taken back exactly.

Rules:

* Nothing outside the folder is touched. The program gets the folder itself, under its owner's uid, or a copy of it
  (`workcopy` says when); what it makes of a copy is applied by GoEx.
* The snapshot is on disk before the program runs. Right before it runs the folder is compared with the snapshot.
* Every step is in the records before it is taken (`notes`), so that a crash leaves something that can be finished.
* Undo and redo restore a state that was recorded; they never run the program.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path

from policies.actions import Action, Files, Outcome, Plan, Revert, other_paths_of
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from policies.grants import PERSON
from runtimes.base import Context, DryLine, DryRun, Footprint, Settlement
from runtimes.files import aside, plans, previews, records, reverts, workcopy
from runtimes.files.action_folder import ActionFolder, refuse_difference, refuse_unrestorable
from runtimes.files.dryrun import Dry, Room
from runtimes.files.folder import Folder, open_pinned, refuse_modeless, resolve
from runtimes.files.folder_names import names
from runtimes.files.handles import remove_path
from runtimes.files.kept_copies import KeptCopies
from runtimes.files.making_room import MakingRoom
from runtimes.files.manifest import Cache
from runtimes.files.quota import Full, Quota, unmark
from runtimes.files.read_only import ReadOnly
from runtimes.files.run import Run, interrupted
from runtimes.files.several import Several
from runtimes.files.snapshot import LARGE_FROM, Repository, plain
from runtimes.files.tree import Bounds, Manifest, Walk
from runtimes.files.workers import FolderLocks, HeldLocks, in_thread, teller
from runtimes.sandbox.contract import Profile, Sandbox


class FilesRuntime:
    """The runtime of `Files` actions.

    `snapshots` is a folder that only GoEx's user can enter (it is made so); `protected` are further folders that no
    program may work on (configuration, sockets). The folder above `snapshots` always is one of them.
    """

    kind = "files"

    def __init__(
        self,
        sandbox: Sandbox,
        snapshots: Path,
        profile: Profile | None = None,
        *,
        protected: Sequence[Path] = (),
        bounds: Bounds | None = None,
        room: Room | None = None,
        large: int = LARGE_FROM,
        quota: int = 0,
        keep_days: int = 0,
    ) -> None:
        self._sandbox = sandbox
        self._snapshots = snapshots
        self._profile = profile or Profile()
        self._protected = (snapshots, snapshots.parent, *protected)
        self._bounds = bounds or Bounds()
        self._room = room or Room()
        self._large = large
        self._keep_days = keep_days
        self._quota = Quota(snapshots=snapshots, most=quota)
        self._cache = Cache()
        self._copies = KeptCopies(snapshots / "copies")
        locks = FolderLocks()
        self._locks: FolderLocks | HeldLocks = locks
        self._several = Several(self, locks)

    # ---- the action ----

    async def assess(self, action: Action, context: Context) -> Plan:
        """See `Runtime.assess`. Raises InvalidInput for an unfit folder or program, Unavailable without an image."""
        if not isinstance(action, Files):
            raise InvalidInput("This isn't an action on files.")
        plans.check_program(action)
        if action.more:
            return await self._several.assess(action, context)
        if action.preview and action.undo:
            raise InvalidInput("A proposed undo is tried by a dry run; what is applied was made by one already.")
        folder = await in_thread(lambda: resolve(action.folder, protected=self._protected))
        if not action.reads:
            await in_thread(lambda: refuse_modeless(folder.path))
        image_id = await self._sandbox.image_id(self._profile)
        tell = teller(context.progress)
        walk = Walk(
            bounds=self._bounds,
            progress=lambda seen: tell(f"Looked at {seen} files."),
            known=self._repository(folder.path).remembered(),
            trusted=folder.settles,
        )

        def look() -> Manifest:
            root = open_pinned(folder.path, folder.device, folder.inode)
            try:
                return walk.run(root)
            finally:
                os.close(root)

        found = await in_thread(look)
        refuse_unrestorable(found)
        made = plans.plan(action, folder, found, self._profile, image_id, self._bounds, self._keep_days)
        if not action.preview:
            return made

        def previewed() -> Plan:
            repository = self._repository(folder.path)
            kept = previews.find(repository, action.preview, action, str(made.resolved["program_sha256"]))
            before, after = repository.load(kept.before), repository.load(kept.after)
            return plans.previewed(made, kept.after, kept.made, before, after)

        return await in_thread(previewed)

    # ---- dry runs ----

    async def names(self, folder: str) -> tuple[tuple[str, ...], int]:
        """The names in a folder, for words that a model turns into a program; and how many more there are at least.
        Raises InvalidInput for a folder that isn't worked on, Conflict."""
        return await in_thread(lambda: names(folder, self._protected))

    async def dry_run(self, plan: Plan, context: Context) -> DryRun:
        """See `Runtime.dry_run`: the program runs on a copy. Raises Conflict (the folder was swapped, or changes while
        it is copied), Unavailable (no room, no image), and what the sandbox raises before the program began."""
        if await self._sandbox.image_id(self._profile) != plan.image_id:
            raise Conflict("The sandbox's image isn't the one that was planned with.", next_step="Ask for it again.")
        if _is_several(plan):
            return await self._several.dry_run(plan, context)
        path = str(plan.resolved["folder"])
        root = await in_thread(lambda: open_pinned(path, plan.resolved["device"], plan.resolved["inode"]))
        dry = self._dry_run(plan, context)
        try:
            async with self._locks.hold(path, first=context.agent == PERSON):  # nothing of ours changes it meanwhile
                before, handed = await dry.copied(root)
            result, why = await dry.run()
            if not context.keep:
                found = await dry.compared(root, before, handed, result, why)
            else:
                async with self._locks.hold(path):
                    await in_thread(lambda: previews.expire(dry.repository))
                    found = await dry.compared(root, before, handed, result, why)
            return replace(found, lines=(*found.lines, *(await dry.undone(handed))))
        finally:
            os.close(root)
            await dry.clear()

    async def dry_revert(self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context) -> DryRun:
        """See `Runtime.dry_revert`. Raises Conflict naming every path that someone changed since."""
        if revert.verb == "commit":
            said = "The snapshots of this action would be deleted; the folder wouldn't be touched."
            return DryRun(ok=True, summary=said, lines=tuple(DryLine("note", line) for line in revert_plan.lines))
        if _is_several(plan):
            return await self._several.dry_revert(revert, revert_plan, plan, target)
        if revert.verb == "undo" and reverts.unrecorded(plan, target):
            said = "What was there before the action would be put back, all else moved aside; nothing would be deleted."
            now_said = "Nothing was touched. It will be refused when what is in the folder isn't the same by then."
            told = tuple(DryLine("note", line) for line in (now_said, *revert_plan.lines))
            return DryRun(ok=True, summary=said, lines=told)
        async with self._opened(revert_plan, target) as action_folder:
            return await reverts.dry_run(action_folder, revert.verb, self._bounds, target.progress)

    async def reap(self) -> None:
        """See `Runtime.reap`."""

        def clear() -> None:
            remove_path(self._dry)
            self._copies.clear()
            for path in self._snapshots.glob("*.git"):
                previews.expire(Repository(path, cache=self._cache, large=self._large))

        await in_thread(clear)

    # ---- doing ----

    async def prepare(self, plan: Plan, context: Context) -> None:
        """See `Runtime.prepare`. Raises Conflict (the folder was swapped, or changes while it is read), Unavailable
        (disk full, git missing), InvalidInput (too large, unreadable, not restorable)."""
        if _is_several(plan):
            await self._several.prepare(plan, context)
            return
        if _only_reads(plan):
            return
        async with self._opened(plan, context) as action_folder:

            def walker() -> Walk:
                return action_folder.walker(known=action_folder.repository.latest(), force=False, tell=tell)

            def save() -> tuple[str, Manifest]:
                oid, made = action_folder.repository.save(
                    f"{context.action_id}/before", walker(), action_folder.root, room=self._quota.room()
                )
                refuse_unrestorable(made)
                if plan.resolved["mode"] == "preview":
                    kept = action_folder.repository.load(action_folder.preview(plan).before)
                    refuse_difference(made, kept, (kept, kept))
                if plan.resolved["mode"] == "direct" and (why := workcopy.special(made)):
                    raise Conflict(f"The folder isn't as it was when it was looked at: {why}.", difference=(why,))
                return oid, made

            def drop() -> None:
                action_folder.repository.drop(context.action_id)
                action_folder.repository.collect()

            async def saved() -> tuple[str, Manifest]:
                try:
                    saying = "Taking a snapshot…"
                    return await in_thread(save, saying=saying, progress=context.progress, writes=str(self._snapshots))
                except asyncio.CancelledError:  # it is kept all the same, and nobody else will know
                    with suppress(GoexError):
                        await in_thread(drop)
                    raise

            tell = teller(context.progress)
            try:
                oid, made = await saved()
            except Full:
                making = MakingRoom(
                    quota=self._quota,
                    locks=self._locks,
                    repository=self._repository,
                    folder=action_folder.folder.path,
                    context=context,
                    asked=lambda: action_folder.repository.asked(walker(), action_folder.root),
                )
                if not await making.go():
                    raise
                oid, made = await saved()
            records.write_manifest(context.records, "before", oid)
            context.note("snapshot", {"state": "before", "manifest": oid, "files": made.files, "bytes": made.bytes})

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        """See `Runtime.execute`. Raises Conflict when the folder isn't as it was in the snapshot, and what the
        sandbox raises before the program began."""
        if _is_several(plan):
            return await self._several.execute(plan, context)
        if _only_reads(plan):
            return await self._read(plan, context)
        async with self._opened(plan, context) as action_folder:
            before = await in_thread(action_folder.before)
            tell = teller(context.progress)
            saying = "Comparing the folder with its snapshot…"
            now = await in_thread(
                lambda: action_folder.walk(known=before, tell=tell), saying=saying, progress=context.progress
            )
            refuse_difference(now, before, (before, before))
            return await self._run(plan, context, action_folder, before).go()

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        """See `Runtime.settle`. It records what it finds in the snapshot area; and where the changes of a copy were
        being applied it finishes that, since half of them would be worse. It takes nothing back. Idempotent."""
        if _is_several(plan):
            return await self._several.settle(plan, context)
        if _only_reads(plan):
            return Settlement(outcome=interrupted())
        try:
            return Settlement(outcome=await self._settled(plan, context))
        except GoexError as error:
            return Settlement(outcome=None, evidence=(str(error), *getattr(error, "difference", ())))

    async def _settled(self, plan: Plan, context: Context) -> Outcome:
        """What the action did. Raises GoexError where it can't be known."""
        if (known := records.finish_noting(context.records)) is not None:
            return known
        path = str(plan.resolved["folder"])
        async with self._locks.hold(path):
            await in_thread(self._repository(path).clean)
        if records.read_state(context.records).at == "prepared":
            await in_thread(lambda: remove_path(self._work(context.action_id)))  # a copy that was being removed
            return interrupted()
        async with self._opened(plan, context) as action_folder:
            if (known := records.finish_noting(context.records)) is not None:  # found out while this waited
                return known
            before = await in_thread(action_folder.before)
            return await self._run(plan, context, action_folder, before).settle()

    # ---- taking back ----

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """See `Runtime.assess_revert`. Raises Conflict naming every path that someone changed since."""
        if _is_several(plan):
            return await self._several.assess_revert(revert, plan, context)
        state = records.read_state(context.records)
        if state.at == "forgotten":
            raise Unsupported("This action was committed: what undo needs is gone.")
        if revert.verb == "commit":
            return plans.commit_plan(revert, plan)
        reverts.refuse_pointless(revert, state)
        if reverts.unrecorded(plan, context):
            return await self._assess_aside(revert, plan, context)
        if state.at == "running":  # nothing was applied yet, or all of it noted
            await self._settled(plan, context)
            reverts.refuse_pointless(revert, records.read_state(context.records))
        repository = self._repository(str(plan.resolved["folder"]))
        await in_thread(lambda: reverts.refuse_dropped(repository, context.action_id))
        folder = await in_thread(lambda: self._still_there(plan))
        pinned = plans.revert_plan(revert, plan, folder, ())
        async with self._opened(pinned, context) as action_folder:
            sides = await in_thread(action_folder.sides)
            now, sides = await action_folder.compare_own(sides, "before" if revert.verb == "undo" else "after")
        goal = sides[0] if revert.verb == "undo" else sides[1]
        return plans.revert_plan(revert, plan, folder, plans.told(now, goal))

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        """See `Runtime.execute_revert`. When it stops half way (disk error, someone interferes) the outcome says so,
        and running it again goes on."""
        if _is_several(plan):
            return await self._several.execute_revert(revert, revert_plan, plan, target, context)
        if revert.verb == "commit":
            await self.forget(plan, target)
            return Outcome(ok=True, summary="Committed: the snapshots of this action are deleted.", touched=True)
        moves_aside = revert.verb == "undo" and reverts.unrecorded(plan, target)
        async with self._opened(revert_plan, target, context) as action_folder:
            if moves_aside:
                return await reverts.put_aside(action_folder, target.records, str(revert_plan.resolved.get("seen", "")))
            return await reverts.execute(action_folder, revert.verb)

    async def _assess_aside(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        """An undo of what was never recorded. It isn't recorded now: what came since may be the person's."""
        if revert.verb == "redo":
            raise Unsupported("What the program left was never recorded, so it can't be done again.")
        between = records.read_state(context.records).at == "between"
        cut_off = aside.INTERRUPTED if between else "GoEx was stopped before it could be."
        why = records.read_unrecorded(context.records) or cut_off
        folder = await in_thread(lambda: self._still_there(plan))
        pinned = plans.revert_plan(revert, plan, folder, ())
        async with self._opened(pinned, context) as action_folder:
            before = await in_thread(action_folder.before)
            found = await aside.found(action_folder, before)
        return plans.aside_plan(revert, plan, folder, why, found.told(before), found.mark)

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        """See `Runtime.footprint`: a program may have read all of its folder, and changed it if it isn't as before."""
        if _is_several(plan):
            return await self._several.footprint(plan, context)
        path = str(plan.resolved["folder"])
        folder = frozenset(f"files{each}" for each in (path, *other_paths_of(plan, path)[1]))
        if _only_reads(plan):
            return Footprint(reads=folder, writes=frozenset())
        after = records.read_manifest(context.records, "after")
        same = after is not None and after[1] is not None and not after[1].touched
        if records.read_manifest(context.records, "before") is not None:  # else it was committed: nothing is known
            same = same or records.read_state(context.records).at == "prepared"
        return Footprint(reads=folder, writes=frozenset() if same else folder)

    async def forget(self, plan: Plan, context: Context) -> None:
        """See `Runtime.forget`. Deletes the snapshots of this action and what no other snapshot needs."""
        if _is_several(plan):
            await self._several.forget(plan, context)
            return
        path = str(plan.resolved["folder"])
        async with self._locks.hold(path):
            records.write_state(context.records, records.State(at="forgotten"))
            repository = self._repository(path)

            def drop() -> None:
                unmark(repository, context.action_id)
                repository.drop(context.action_id)
                remove_path(self._work(context.action_id))
                self._copies.drop(path)
                with suppress(Unavailable):  # on a full disk what is given up takes its room until the next time
                    repository.collect()

            await in_thread(drop, saying="Deleting snapshots…", progress=context.progress)

    # ---- parts ----

    @property
    def sandbox(self) -> Sandbox:
        return self._sandbox

    def at(self, sandbox: Sandbox, profile: Profile | None = None, keep_days: int | None = None) -> FilesRuntime:
        """This runtime, with its locks and all, running programs elsewhere, in another image, or with its own
        `keep_days`."""
        made = copy(self)
        made._sandbox = sandbox
        made._profile = profile or self._profile
        made._keep_days = self._keep_days if keep_days is None else keep_days
        return made

    def holding(self) -> FilesRuntime:
        """This runtime for whoever holds the folders already: it waits for none."""
        made = copy(self)
        made._locks = HeldLocks(self._locks)
        return made

    async def folder(self, plan: Plan) -> Folder:
        """The folder of a plan as it is there now. Raises Conflict when it isn't."""
        return await in_thread(lambda: self._still_there(plan))

    @asynccontextmanager
    async def _opened(self, plan: Plan, action: Context, by: Context | None = None) -> AsyncIterator[ActionFolder]:
        """The folder of `action`, locked; `by`: another action that waits for it, as an undo does."""
        by, path = by or action, str(plan.resolved["folder"])
        async with self._locks.hold(path, first=by.agent == PERSON):
            pinned = plan.resolved["device"], plan.resolved["inode"]
            root = await in_thread(lambda: open_pinned(path, *pinned, closed=True))
            try:
                folder = await in_thread(lambda: resolve(path, protected=self._protected, closed=True))
                yield ActionFolder(
                    action_id=action.action_id,
                    folder=folder,
                    root=root,
                    repository=self._repository(path),
                    records=action.records,
                    bounds=self._bounds,
                    progress=by.progress,
                )
            finally:
                os.close(root)

    async def _read(self, plan: Plan, context: Context) -> Outcome:
        path = str(plan.resolved["folder"])
        await in_thread(lambda: self._still_there(plan))
        async with self._locks.hold(path, first=context.agent == PERSON):  # nothing of ours changes it meanwhile
            root = await in_thread(lambda: open_pinned(path, plan.resolved["device"], plan.resolved["inode"]))
            try:
                return await ReadOnly(dry=self._dry_run(plan, context)).go(root)
            finally:
                os.close(root)

    def _dry_run(self, plan: Plan, context: Context) -> Dry:
        return Dry(
            plan=plan,
            context=context,
            sandbox=self._sandbox,
            profile=self._profile,
            work=self._dry / plain(context.action_id),
            bounds=self._bounds,
            room=self._room,
            repository=self._repository(str(plan.resolved["folder"])),
            quota=self._quota,
        )

    def _run(self, plan: Plan, context: Context, action_folder: ActionFolder, before: Manifest) -> Run:
        return Run(
            plan=plan,
            context=context,
            action_folder=action_folder,
            sandbox=self._sandbox,
            profile=self._profile,
            work=self._work(context.action_id),
            copies=self._copies,
            before=before,
        )

    def _still_there(self, plan: Plan) -> Folder:
        try:
            return resolve(str(plan.resolved["folder"]), protected=self._protected, closed=True)
        except InvalidInput as error:
            raise Conflict(
                "The folder isn't there as it was; nothing was touched.",
                next_step=error.next_step,
                difference=(error.message,),
            ) from error

    def _repository(self, path: str) -> Repository:
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
        return Repository(self._snapshots / f"{name}.git", cache=self._cache, large=self._large)

    @property
    def _dry(self) -> Path:
        return self._snapshots / "dry"

    def _work(self, action_id: str) -> Path:
        return self._snapshots / "work" / plain(action_id)


def _is_several(plan: Plan) -> bool:
    return "parts" in plan.resolved


def _only_reads(plan: Plan) -> bool:
    return isinstance(plan.action, Files) and plan.action.reads
