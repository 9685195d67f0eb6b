"""Undo of what was never recorded: nobody can tell what in the folder is the program's and what others did since.

Rules: what was there before the action is put back, and whatever isn't as it was is moved into one kept folder beside,
under its own path; nothing is removed or written over. Moving needs no room on the disk. Cut off, it is finished by
running it again, which moves what isn't as it was then.
"""

# Descriptors and bytes, which pathlib knows nothing of.
# ruff: noqa: PTH101, PTH208

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count

from policies.errors import Conflict, GoexError, Unavailable
from runtimes.files import manifest as manifests
from runtimes.files import plan_text, records
from runtimes.files.action_folder import ActionFolder, Halted
from runtimes.files.descriptors import PROC, opened
from runtimes.files.handles import Handles, Moved, check_own, look, sync
from runtimes.files.path_text import shown
from runtimes.files.restore import FIXED, Restore, Steps, flags_of, steps, unreachable
from runtimes.files.tree import Bounds, Manifest
from runtimes.files.workers import in_thread, teller
from runtimes.open_files import OPEN_FILES, files_of

INTERRUPTED = "undoing it was interrupted."
_BEGIN = ".goex-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How the folder differs from what it was: `now` is what is as it was (of folders, what is there), `aside` what
    isn't."""

    now: Manifest
    aside: tuple[bytes, ...]

    @property
    def mark(self) -> str:
        """A hash of it, to see whether it is the same later on."""
        entries = [(path, entry.kind, entry.mode, entry.uid, entry.gid) for path, entry in self.now.entries.items()]
        return hashlib.sha256(repr((entries, self.aside)).encode("ascii")).hexdigest()

    def told(self, before: Manifest) -> list[str]:
        """What putting back does, in words."""
        moved = [f"moved aside {shown(path)}" for path in self.aside]
        return [*moved, *plan_text.changes(self.now.entries, before.entries)]


async def found(action_folder: ActionFolder, before: Manifest) -> Found:
    """How the folder differs from `before`. Only looks. Raises Conflict where something is being written to."""
    name = records.read_state(action_folder.records).name
    return await in_thread(
        lambda: _look(action_folder, before, name),
        saying="Comparing the folder with what it was…",
        progress=action_folder.progress,
    )


async def put_back(action_folder: ActionFolder, before: Manifest, mark: str) -> tuple[list[str], str]:
    """Bring the folder back to `before`. Returns what was done, in words, and the folder that holds what isn't from
    before ("": nothing was moved).

    Raises Conflict when it isn't any more what `mark` was made of, or some of it can't be moved or changed, Unavailable
    when the snapshot or the disk doesn't do (nothing was touched in any of these cases), Halted when it stopped half
    way.
    """
    state = records.read_state(action_folder.records)
    resumed = state.at == "between"
    name = state.name if resumed else f"{_BEGIN}{secrets.token_hex(16)}"
    at_first = await found(action_folder, before)
    if not resumed and at_first.mark != mark:
        raise Conflict(
            "The folder has changed since it was looked at; nothing was touched.",
            next_step="Wait until nothing else writes to it, then ask for the undo again.",
        )
    todo = steps(at_first.now, before)
    contents = {oid for path in todo.stage if (oid := before.entries[path].oid)}
    if await in_thread(lambda: action_folder.repository.missing(contents)):
        raise Unavailable("The snapshot lacks contents that this needs.", next_step="Nothing was touched.")
    restore = Restore(
        root=action_folder.root,
        now=at_first.now,
        goal=before,
        name=name.encode("ascii"),
        contents=action_folder.repository.contents,
        clone=action_folder.repository.clone,
        progress=teller(action_folder.progress),
    )
    if blocked := await in_thread(lambda: _blocked(restore, todo, at_first.aside)):
        lines, _ = plan_text.capped([f"can't be moved: {shown(path)}" for path in blocked], 20)
        raise Conflict(
            "Some of this can't be moved or changed.",
            next_step="Move these away, or take chattr's flags off (chattr -i -a), then ask again.",
            difference=lines,
        )

    def move() -> None:
        if at_first.aside:
            _Aside(action_folder.root, left_folder(name).encode("ascii")).move(at_first.aside)
        now = _look(action_folder, before, name)
        then = steps(now.now, before)
        if now.aside or (then.folders, then.stage, then.links) != (todo.folders, todo.stage, todo.links):
            raise _interfered(now)
        replace(restore, now=now.now).apply(then)
        sync(action_folder.root)
        reached = _look(action_folder, before, name)
        if reached.aside or not manifests.equal(reached.now, before):
            raise _interfered(reached)

    with OPEN_FILES.hold("folder") as held:
        restore.held = held

        def keep_out() -> None:
            restore.keep_out(todo)
            with Handles(action_folder.root) as handles:
                for path in at_first.aside:
                    folder, inner = handles.parent(path)
                    held.add(files_of(folder, inner, look(folder, inner)))

        await in_thread(keep_out, saying="Waiting for a database…", progress=action_folder.progress)
        was = state.was if resumed else state.at
        records.write_state(action_folder.records, records.State(at="between", name=name, was=was))
        try:
            await in_thread(
                lambda: restore.stage(todo),
                saying="Restoring contents…",
                progress=action_folder.progress,
                writes=action_folder.folder.path,
            )
        except GoexError:
            with suppress(GoexError):  # else it stays noted that an undo was cut off
                await in_thread(restore.unstage)
                if not resumed:
                    records.write_state(action_folder.records, state)
            raise
        try:
            await in_thread(
                move,
                saying="Putting everything into place…",
                progress=action_folder.progress,
                writes=action_folder.folder.path,
            )
            records.write_state(action_folder.records, records.State(at="before"))
        except GoexError as error:
            raise Halted(error) from error
    return at_first.told(before), left_in(action_folder.root, name)


def left_in(root: int, name: str) -> str:
    """`left_folder`, where it is there; else ""."""
    left = left_folder(name)
    return left if look(root, left.encode("ascii")) is not None else ""


def left_folder(name: str) -> str:
    """What the folder is called that holds what isn't from before, by the name of the staging folder."""
    return f"{_BEGIN}left-{name.removeprefix(_BEGIN)[:12]}"


def _look(action_folder: ActionFolder, before: Manifest, name: str) -> Found:
    walk = action_folder.walker(known=before)
    walk.only = before.entries
    walk.bounds = Bounds(files=len(before.entries) + 1, bytes=sys.maxsize, depth=sys.maxsize)
    seen = walk.run(action_folder.root)
    own = {name.encode("ascii"), left_folder(name).encode("ascii")} if name else set()
    other = {
        path
        for path, entry in seen.entries.items()
        if entry.kind != "d" and entry.essence != before.entries[path].essence
    }
    entries = {path: entry for path, entry in seen.entries.items() if path not in other}
    aside = tuple(sorted(other.union(walk.unknown) - own))
    return Found(now=Manifest(entries=entries, taken=seen.taken, settled=False), aside=aside)


def _blocked(restore: Restore, todo: Steps, aside: tuple[bytes, ...]) -> list[bytes]:
    """What keeps these steps from being taken, or these paths from being moved. Only looks."""
    found = {*restore.fixed(todo), *unreachable(todo, restore.now, restore.goal)}
    euid = os.geteuid()
    if euid != 0:
        found |= {path for path in todo.settle if restore.now.entries[path].uid != euid}
    with Handles(restore.root) as handles:
        above = {path.rpartition(b"/")[0] for path in aside}
        for path in sorted(above | set(aside)):
            folder, name = handles.parent(path)
            at = look(folder, name)
            if at is None or not (stat.S_ISDIR(at.st_mode) or stat.S_ISREG(at.st_mode)):
                continue
            if stat.S_ISDIR(at.st_mode) and euid not in (0, at.st_uid) and not _writable(folder, name):
                found.add(path)  # a folder that moves is written to, and so is the one that it is moved from
            with suppress(OSError), opened(folder, name, os.O_RDONLY) as file:
                if flags_of(file) & FIXED:
                    found.add(path)
    return sorted(found)


def _writable(folder: int, name: bytes) -> bool:
    return os.access(name, os.W_OK, dir_fd=folder, effective_ids=True, follow_symlinks=False)


def _interfered(there: Found) -> Conflict:
    lines, _ = plan_text.capped([f"changed meanwhile: {shown(path)}" for path in there.aside], 20)
    return Conflict(
        "Somebody changed files in this folder meanwhile.",
        next_step="Wait until nothing else writes to it, then run it again.",
        difference=lines,
    )


class _Aside:
    """The kept folder, which belongs to the owner of the folder that it lies in."""

    def __init__(self, root: int, name: bytes) -> None:
        self._root = root
        self._name = name
        at = os.fstat(root)
        self._owner = at.st_uid, at.st_gid

    def move(self, paths: tuple[bytes, ...]) -> None:
        """Move these away from where they are, each below its own path. Over nothing."""
        with Handles(self._root, writes=True) as handles:
            for path in paths:
                folder, name = handles.parent(path)
                at = look(folder, name)
                if at is None:
                    continue
                with ExitStack() as lifted, self._free(path) as into:
                    if stat.S_ISDIR(at.st_mode) and os.geteuid() == at.st_uid != 0 and not at.st_mode & stat.S_IWUSR:
                        mode = stat.S_IMODE(at.st_mode)
                        moved = lifted.enter_context(opened(folder, name, os.O_PATH | os.O_DIRECTORY))
                        lifted.callback(os.chmod, f"{PROC}/{moved}", mode)
                        os.chmod(f"{PROC}/{moved}", mode | stat.S_IWUSR)  # a folder that moves is written to
                    os.rename(name, name, src_dir_fd=folder, dst_dir_fd=into)

    @contextmanager
    def _free(self, path: bytes) -> Iterator[int]:
        """The open folder in which that path's own name is free, made if need be."""
        *above, name = path.split(b"/")
        try:
            os.close(self._made([self._name]))
        except NotADirectoryError as error:
            raise Moved(self._name) from error
        for number in count(1):
            parts = [self._name, *([b"also-%d" % number] if number > 1 else []), *above]
            try:
                fd = self._made(parts)
            except NotADirectoryError:
                continue
            try:
                if look(fd, name) is None:
                    yield fd
                    return
            finally:
                os.close(fd)

    def _made(self, parts: list[bytes]) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(f"{PROC}/{self._root}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                new = look(fd, part) is None
                if new:
                    os.mkdir(part, 0o700, dir_fd=fd)
                inner = os.open(part, flags, dir_fd=fd)
                try:
                    if new and os.geteuid() == 0:
                        check_own(inner, part, fd)
                        if os.listdir(inner):  # another one was put in its place
                            raise Moved(part)
                        os.chown(inner, *self._owner)
                except BaseException:
                    os.close(inner)
                    raise
                os.close(fd)
                fd = inner
        except BaseException:
            os.close(fd)
            raise
        return fd
