"""One program's run on its folder: directly or on a copy, recorded, and settled after a crash.

Rules: the folder was compared with its snapshot right before; whatever ends the program, what it left is recorded;
what can't be recorded is left as it is, since nobody can tell what in it is the program's and what the person's: an
undo moves it aside (`aside`). The changes of a copy are applied only while the folder is still what was copied; once
applying has begun it is finished, also after a crash.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from policies.actions import Ended, Files, Outcome, Plan
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable
from runtimes.base import Context
from runtimes.files import aside, plan_text, plans, records, workcopy
from runtimes.files import manifest as manifests
from runtimes.files.action_folder import ActionFolder, Halted, refuse_difference, stopped
from runtimes.files.folder import mount_of, open_pinned, refuse_mounts
from runtimes.files.handles import remove_path
from runtimes.files.kept_copies import KeptCopies
from runtimes.files.path_text import shown
from runtimes.files.tree import Manifest
from runtimes.files.workers import in_thread, teller
from runtimes.open_files import OPEN_FILES, Hold
from runtimes.sandbox.contract import Job, Profile, Result, Sandbox, SandboxFailed

# The engine finds the folder by its path once more, and its owner may have put a link there: what the program got is
# compared from within, before the program begins.
SAME_FOLDER = (
    "sh",
    "-c",
    'if [ "$(stat -c %d:%i .)" != "$0" ]; then echo "goex: this isn\'t the folder that was meant" >&2; exit 126; fi; '
    'exec "$@"',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run of `plan` at `action_folder`. `work` is where a copy would be made; it doesn't exist yet."""

    plan: Plan
    context: Context
    action_folder: ActionFolder
    sandbox: Sandbox
    profile: Profile
    work: Path
    copies: KeptCopies
    before: Manifest

    async def go(self) -> Outcome:
        """Run the program. Raises only when the folder wasn't touched."""
        records.write_state(self.action_folder.records, records.State(at="running"))
        if self.plan.resolved["mode"] == "copy":
            return await self._on_copy()
        if self.plan.resolved["mode"] == "preview":
            return await self._previewed()
        return await self._directly()

    async def _directly(self) -> Outcome:
        with OPEN_FILES.hold("folder") as held:
            result = await self._run(self.action_folder.folder.path, held)
        swapped = ""
        try:
            folder = self.action_folder.folder
            await in_thread(lambda: os.close(open_pinned(folder.path, folder.device, folder.inode, closed=True)))
        except GoexError as error:
            swapped = f" {error.message}"
        stripped: list[str] = []
        try:
            try:
                oid, after = await self._record_after(stripped)
            except (Conflict, Unavailable):  # it may be over by now
                oid, after = await self._record_after(stripped)
        except GoexError as error:
            return self._unrecorded(result, error)
        outcome = plans.outcome(result, self.before, after, list(dict.fromkeys(stripped)))
        outcome = replace(outcome, ok=outcome.ok and not swapped, summary=outcome.summary + swapped)
        return self._arrive(oid, after, outcome)

    async def _on_copy(self) -> Outcome:
        action_folder, progress = self.action_folder, self.action_folder.progress
        uid, gid = self.plan.resolved["uid"], self.plan.resolved["gid"]
        left: Manifest | None = None
        kept = str(action_folder.repository.path.parent)

        def hand_out() -> tuple[Manifest, Manifest | None]:
            copy = self.copies.take(action_folder.folder.path, self.work)
            return workcopy.hand_out(self.work, self.before, uid, gid, action_folder.repository, copy)

        def take_in() -> tuple[str, Manifest, list[str], Manifest]:
            return workcopy.take_in(
                self.work,
                self.before,
                handed,
                known,
                action_folder.repository,
                action_folder.action_id,
                action_folder.bounds,
            )

        def done() -> None:
            if left is None:
                remove_path(self.work)
            else:
                self.copies.keep(action_folder.folder.path, self.work, left)

        try:
            handed, known = await in_thread(hand_out, saying="Copying the folder…", progress=progress, writes=kept)
            result = await self._run(str(self.work / "tree"))
            oid, target, refused, left = await in_thread(
                take_in, saying="Recording what the program did…", progress=progress, writes=kept
            )
        except InvalidInput as error:
            records.write_state(action_folder.records, records.State(at="prepared"))
            return Outcome(ok=False, summary=f"What the program left is refused: {error}", touched=False)
        except GoexError:
            records.write_state(action_folder.records, records.State(at="prepared"))
            raise
        finally:
            await in_thread(done)
        outcome = plans.outcome(result, self.before, target, refused)
        records.write_manifest(action_folder.records, "target", oid, outcome)
        return await self._first_applied(target, outcome)

    async def _previewed(self) -> Outcome:
        """Apply what a dry run made; no program runs."""
        action_folder = self.action_folder

        def found() -> tuple[str, Manifest]:
            kept = action_folder.preview(self.plan)
            before = action_folder.repository.load(kept.before)
            refuse_difference(self.before, before, (before, before))
            target = action_folder.repository.load(kept.after)
            return action_folder.repository.keep(f"{action_folder.action_id}/after", target, latest=False), target

        try:
            oid, target = await in_thread(found)
        except GoexError:
            records.write_state(action_folder.records, records.State(at="prepared"))
            raise
        lines = plan_text.changes(self.before.entries, target.entries)
        first, said = plans.beware(self.before, target)
        shown, cut = plan_text.capped([*first, *lines])
        summary = f"What the dry run made was applied: {plan_text.tally(lines)}.{said}"
        outcome = Outcome(
            ok=True,
            summary=summary,
            changes=shown,
            changes_cut=cut,
            touched=not manifests.equal(self.before, target),
        )
        records.write_manifest(action_folder.records, "target", oid, outcome)
        return await self._first_applied(target, outcome)

    async def _first_applied(self, target: Manifest, outcome: Outcome) -> Outcome:
        """`_apply`, right after the run: what fails before anything was applied leaves the folder as it was."""
        try:
            return await self._apply(target, outcome)
        except GoexError as error:
            if records.read_state(self.action_folder.records).at != "running":  # what was begun is still there
                return _half_way(error)
            records.write_state(self.action_folder.records, records.State(at="prepared"))
            raise

    async def _apply(self, target: Manifest, outcome: Outcome) -> Outcome:
        """Bring what was made of a copy into the folder; the target and its outcome are noted already."""
        now = await self.action_folder.compare(self.before, target)
        try:
            await self.action_folder.bring(target, now=now, arrive=None)
        except Halted as halted:
            return _half_way(halted.cause)

        def keep() -> tuple[str, Manifest]:
            after = now if manifests.equal(now, target) else self.action_folder.walk(known=self.before)
            return self.action_folder.repository.keep(f"{self.action_folder.action_id}/after", after), after

        try:
            oid, after = await in_thread(keep)
        except GoexError as error:
            return _unnoted(outcome, error)
        return self._arrive(oid, after, outcome)

    async def _run(self, folder: str, held: Hold | None = None) -> Result:
        """Run the program. With `held`, on the folder itself: it is a use of the folder then, while that lasts."""
        action = self.plan.action
        if not isinstance(action, Files):
            raise InvalidInput("This isn't an action on files.")
        try:
            await in_thread(lambda: refuse_mounts(self.action_folder.folder.path))
            mount = await in_thread(lambda: mount_of(self.action_folder.root))
            if held is not None:
                meant = (self.action_folder.folder.device, self.action_folder.folder.inode)
                await in_thread(lambda: held.add([meant]))
        except GoexError:
            records.write_state(self.action_folder.records, records.State(at="prepared"))
            raise
        name, argv = plans.command(action)
        if self.plan.resolved["mode"] == "direct":
            argv = (*SAME_FOLDER, f"{self.action_folder.folder.device}:{self.action_folder.folder.inode}", *argv)
        job = Job(
            action_id=self.action_folder.action_id,
            argv=argv,
            files={name: action.program.encode("utf-8")},
            env={"HOME": "/tmp"},  # noqa: S108 (the container's own tmpfs)
            folder=folder,
            uid=self.plan.resolved["uid"],
            gid=self.plan.resolved["gid"],
            folder_id=(self.action_folder.folder.device, self.action_folder.folder.inode)
            if folder == self.action_folder.folder.path
            else None,
            folder_mount=mount,
        )
        try:
            return await self.sandbox.run(job, self.profile, self.context.output)
        except SandboxFailed as error:
            if not error.began:
                records.write_state(self.action_folder.records, records.State(at="prepared"))
                raise
            said = str(error).encode("utf-8", "replace")
            return Result(ended=Ended.KILLED, exit_code=None, stdout=b"", stderr=said, cut=0, seconds=0.0)

    # ---- recording ----

    async def _record_after(self, stripped: list[str]) -> tuple[str, Manifest]:
        """Snapshot what the program left, without the set-user-id bits that it made: `stripped` gets remarks on those,
        also where it fails after it took them off."""

        def kept(path: bytes, at: os.stat_result) -> bool:
            old = self.before.entries.get(path)
            bits = at.st_mode & 0o6000
            if old is not None and (old.inode, old.mode & bits) == (at.st_ino, bits):
                return True  # the kernel drops them when a content is written
            stripped.append(f"not applied: the set-user-id or set-group-id bit of {shown(path)}")
            return False

        walk = self.action_folder.walker(known=self.before, tell=teller(self.action_folder.progress))
        walk.strip = kept
        return await in_thread(
            lambda: self.action_folder.repository.save(
                f"{self.action_folder.action_id}/after", walk, self.action_folder.root
            ),
            saying="Recording what the program did…",
            progress=self.action_folder.progress,
            writes=str(self.action_folder.repository.path.parent),
        )

    def _unrecorded(self, result: Result, cause: GoexError) -> Outcome:
        """What the program left can't be recorded (too much, unreadable, disk full): it stays as it is."""
        with suppress(GoexError):
            records.write_unrecorded(self.action_folder.records, cause.message)
        summary = (
            f"{plans.ending(result)}. What it left can't be recorded: {cause.message} It was left as it is: an undo "
            "moves what isn't as it was before into a folder beside, and deletes nothing."
        )
        ended = plans.read_outcome(result)
        return replace(ended, ok=False, summary=summary, touched=True, unsure=isinstance(cause, Conflict))

    def _arrive(self, oid: str, after: Manifest, outcome: Outcome) -> Outcome:
        """Note what the folder is now. Where that fails the folder has changed all the same, and settling notes it."""
        try:
            records.write_manifest(self.action_folder.records, "after", oid, outcome)
            records.write_state(self.action_folder.records, records.State(at="after"))
            facts = {"state": "after", "manifest": oid, "files": after.files, "bytes": after.bytes}
            self.context.note("snapshot", facts)
        except GoexError as error:
            return _unnoted(outcome, error)
        return outcome

    # ---- after a crash ----

    async def settle(self) -> Outcome:
        """Find out what a run that was cut off has done, and record it. Idempotent. Raises Conflict, InvalidInput,
        Unavailable where that can't be recorded; nothing in the folder is taken back then."""
        state = records.read_state(self.action_folder.records)
        if state.at == "prepared":  # found out while this waited for the folder
            return interrupted()
        if self.plan.resolved["mode"] != "direct":
            return await self._settle_copy(state)
        if state.at == "before":
            raise Unavailable("It was undone, and what the program left was never recorded.")
        why = aside.INTERRUPTED if state.at == "between" else records.read_unrecorded(self.action_folder.records)
        if why:
            raise Unavailable(
                f"What the program left was never recorded: {why}",
                next_step="Undo it: what isn't as it was before is moved into a folder beside, nothing is deleted.",
            )
        stripped: list[str] = []
        try:
            oid, after = await self._record_after(stripped)
        except GoexError as error:
            with suppress(GoexError):  # what comes later may be the person's
                records.write_unrecorded(self.action_folder.records, error.message)
            raise
        if manifests.equal(self.before, after):
            records.write_state(self.action_folder.records, records.State(at="prepared"))
            return interrupted()
        lines = plan_text.changes(self.before.entries, after.entries)
        first, said = plans.beware(self.before, after)
        shown, cut = plan_text.capped([*first, *stripped, *lines])
        outcome = Outcome(
            ok=False,
            summary=f"Interrupted while the program ran: {plan_text.tally(lines)}.{said}",
            ended=Ended.KILLED,
            changes=shown,
            changes_cut=cut,
            touched=True,
        )
        return self._arrive(oid, after, outcome)

    async def _settle_copy(self, state: records.State) -> Outcome:
        await in_thread(lambda: remove_path(self.work))
        if state.at == "running":  # the folder isn't touched before the state says so
            records.write_state(self.action_folder.records, records.State(at="prepared"))
            return interrupted()
        noted = records.read_manifest(self.action_folder.records, "target")
        if noted is None or noted[1] is None or state.was != "running":
            what = "Doing it again" if state.was == "before" else "Undoing it"
            raise Unavailable(f"{what} was begun before it was known what it did.", next_step="Undo it.")
        target = await in_thread(lambda: self.action_folder.repository.load(noted[0]))
        return await self._apply(target, noted[1])


# The program has run: what the causes of these say to do, to try again, would run it once more. What comes next is an
# undo, which is said of every action that ended so.
def _half_way(cause: GoexError) -> Outcome:
    return stopped("The program ran, but applying its changes stopped half way.", cause, again=False)


def _unnoted(outcome: Outcome, error: GoexError) -> Outcome:
    summary = f"{outcome.summary} That couldn't be noted: {error.message}"
    return replace(outcome, ok=False, summary=summary, touched=True)


def interrupted() -> Outcome:
    """The outcome of a run that was cut off in time."""
    return Outcome(ok=False, summary="Interrupted before it changed anything.", ended=Ended.KILLED, touched=False)
