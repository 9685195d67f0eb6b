"""Bringing a folder from one state into another, exactly.

Rules:

* New contents and folders are made first, attributes and all, in a staging folder inside the root whose name nobody
  can guess, and brought to the disk; only then does anything of the person's move. A full disk touches nothing, but
  for the attributes of what stays.
* Then: remove what is too much, deepest first; rename the staged into place, folders first; set mode, owner, times.
* Before a name is replaced or removed it is looked at once more; if it isn't what the walk saw, everything stops.
* Each step leaves a name in its old or its new state, so a restore that was cut off is finished by running it again.
* An inode that is also linked from elsewhere is never written to: it is replaced. So is one that would get another
  owner or more rights: somebody may hold it open for writing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field

from policies.display_text import counted
from runtimes.files.descriptors import PROC, Reading, opened
from runtimes.files.handles import Handles, Moved, check_own, expect, look, put_new, remove_flat, set_metadata, sync
from runtimes.files.manifest import apart
from runtimes.files.tree import KINDS, UNLISTED, Entry, Manifest, read_xattrs
from runtimes.open_files import FileId, Hold, files_of

Copy = Callable[[str, Callable[[bytes], object]], None]
_BLOCK = 1 << 16
_ZEROS = bytes(_BLOCK)
_OPEN = {"d": 0o700, "f": 0o400}
_FOLDER = b"folder-%d"  # in the staging folder, where other contents have their numbers
_FS_IOC_GETFLAGS = 0x80086601  # linux/fs.h
FIXED = 0x10 | 0x20  # immutable, append only
_CHANGED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT)  # of a folder that somebody changed meanwhile
_FEW = 40  # names that are brought to the disk one by one, and looked at once more alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What has to be done, in this order. Paths; `links` maps a path to the one whose inode it becomes."""

    remove: tuple[bytes, ...]
    folders: tuple[bytes, ...]
    stage: tuple[bytes, ...]
    links: tuple[tuple[bytes, bytes], ...]
    settle: tuple[bytes, ...]  # kept, but with another mode, owner, time or attributes

    def __bool__(self) -> bool:
        return bool(self.remove or self.folders or self.stage or self.links or self.settle)

    @property
    def few(self) -> bool:
        """Whether it is little in itself, however large the folder."""
        names = (self.remove, self.folders, self.stage, self.links, self.settle)
        return sum(len(paths) for paths in names) <= _FEW


def steps(now: Manifest, goal: Manifest) -> Steps:
    """Compare two manifests. Pure."""
    lost = _unlisted(now.entries, goal.entries)
    old = {path: entry for path, entry in now.entries.items() if path not in lost} if lost else now.entries
    # What is the same and has one name alone needs nothing, and is nothing that the rest could build on.
    new, missing = apart(old, goal.entries)
    changed = dict(new)
    new |= {path: entry for path, entry in goal.entries.items() if entry.group}
    gone = lost | missing | {path for path, entry in changed.items() if path in old and _turned(old[path], entry)}
    settle = [
        path
        for path, entry in sorted(changed.items())
        if entry.kind == "d" and path in old and path not in gone and entry.essence != old[path].essence
    ]
    stage: list[bytes] = []
    links: list[tuple[bytes, bytes]] = []
    members: dict[int, int] = {}
    for entry in old.values():
        if entry.group:
            members[entry.inode] = members.get(entry.inode, 0) + 1
    claimed: set[int] = set()
    for paths in _clusters(dict(sorted(new.items()))):
        anchor = next((path for path in paths if _keeps(old.get(path), new[path], members, claimed)), None)
        if anchor is None:
            stage.append(paths[0])
            links += [(path, paths[0]) for path in paths[1:]]
            continue
        inode = old[anchor].inode
        claimed.add(inode)
        if _plain(old[anchor]) != _plain(new[anchor]):
            settle.append(anchor)
        links += [
            (path, anchor) for path in paths if path not in old or old[path].kind == "d" or old[path].inode != inode
        ]
    return Steps(
        remove=tuple(sorted(gone, reverse=True)),
        folders=tuple(
            path for path, entry in sorted(changed.items()) if entry.kind == "d" and (path not in old or path in gone)
        ),
        stage=tuple(stage),
        links=tuple(links),
        settle=tuple(settle),
    )


def _unlisted(old: Mapping[bytes, Entry], goal: Mapping[bytes, Entry]) -> set[bytes]:
    """The folders whose attributes can't be taken off one by one, and what they hold: they are made anew."""
    tops = [
        path + b"/"
        for path, entry in old.items()
        if path and entry.kind == "d" and UNLISTED in entry.xattrs and _essence(goal.get(path)) != entry.essence
    ]
    return {path for path in old for top in tops if path + b"/" == top or path.startswith(top)}


def _essence(entry: Entry | None) -> tuple[object, ...]:
    return () if entry is None else entry.essence


def unreachable(todo: Steps, now: Manifest, goal: Manifest) -> list[bytes]:
    """The paths that these steps can't bring to their goal: a state has more attributes than the system lists."""
    lacking = [path for path in (*todo.stage, *todo.folders) if UNLISTED in goal.entries[path].xattrs]
    kept = ((path, now.entries[path].xattrs, goal.entries[path].xattrs) for path in todo.settle)
    return lacking + [path for path, old, new in kept if old != new and UNLISTED in (*old, *new)]


def _turned(old: Entry, new: Entry) -> bool:
    """Whether a folder has become something else, or the other way round."""
    return (old.kind == "d") != (new.kind == "d")


def _clusters(entries: Mapping[bytes, Entry]) -> list[list[bytes]]:
    """The paths that are one inode, for every inode that isn't a folder."""
    made: dict[bytes, list[bytes]] = {}
    for path, entry in entries.items():
        if entry.kind != "d":
            made.setdefault(entry.group or path, []).append(path)
    return list(made.values())


def _plain(entry: Entry) -> Entry:
    return entry._replace(group=b"", inode=0, ctime=0, links=1)


def _keeps(there: Entry | None, goal: Entry, members: Mapping[int, int], claimed: set[int]) -> bool:
    """Whether the inode that is there can stay, at most with other metadata."""
    if there is None or there.kind == "d" or there.body != goal.body or there.inode in claimed:
        return False
    return _plain(there) == _plain(goal) or (
        there.links <= members.get(there.inode, 1) and _rights(there) == _rights(goal)
    )


def _rights(entry: Entry) -> tuple[object, ...]:
    """What lends an owner's or the system's rights to a content, and what can't be taken off it."""
    kept = tuple(pair for pair in entry.xattrs if pair[0].startswith(("security.", "trusted.")) or pair == UNLISTED)
    return entry.uid, entry.gid, entry.mode & 0o6000, kept


@dataclass(slots=True, kw_only=True)
class Restore:
    """One restore of the folder open as `root` from `now` to `goal`.

    `name` is the staging folder's, hidden and unguessable. `contents` opens what contents are copied from. First
    `stage`, which touches nothing but that folder (and the root's time, which `unstage` puts back), then `apply`.
    `clone(oid, file)` may share a content with where it comes from instead of copying it; False: it couldn't.
    Without `durable` nothing is brought to the disk: for a copy that nobody misses after a crash.
    """

    root: int
    now: Manifest
    goal: Manifest
    name: bytes
    contents: Callable[[], AbstractContextManager[Copy]]
    progress: Callable[[str], None] = lambda text: None
    clone: Callable[[str, int], bool] = lambda oid, file: False
    durable: bool = True
    held: Hold | None = None  # while it lasts, no database action opens what is touched
    removed: set[bytes] = field(default_factory=set)
    made: dict[bytes, int] = field(default_factory=dict)  # inodes of new folders

    def fixed(self, todo: Steps) -> list[bytes]:
        """What these steps would change and the file system won't let anybody change (chattr +i, +a). Only looks."""
        paths = {*todo.remove, *todo.stage, *todo.settle, *(path for path, _ in todo.links)} & self.now.entries.keys()
        paths |= {_above(path) for path in self._touched(todo)} & self.now.entries.keys()
        found = []
        with Handles(self.root) as handles:
            for path in sorted(paths):
                if self.now.entries[path].kind in "fd":
                    folder, name = handles.parent(path)
                    with suppress(OSError), opened(folder, name, os.O_RDONLY) as file:
                        if flags_of(file) & FIXED:
                            found.append(path)
        return found

    def keep_out(self, todo: Steps) -> None:
        """Keep databases out of what these steps touch while `held` lasts. Raises Conflict when one is open."""
        if self.held is None:
            return
        files: list[FileId] = []
        with Handles(self.root) as handles:
            for path in self._touched(todo):
                with suppress(Moved):  # its folder isn't there yet
                    folder, name = handles.parent(path)
                    files += files_of(folder, name, look(folder, name))
        self.held.add(files)

    def stage(self, todo: Steps) -> None:
        """Make all new contents. Raises OSError (disk full), Unavailable (a snapshot is damaged)."""
        with Handles(self.root, writes=True) as handles:
            remove_flat(self.root, self.name)
            os.mkdir(self.name, 0o700, dir_fd=handles.folder(b""))
            folder = handles.folder(self.name)
            check_own(folder, self.name, self.root)  # from here on nobody else can put anything into it
            for number, path in enumerate(todo.folders):
                with _named(path):
                    self._make_folder(folder, _FOLDER % number, path)
            with self.contents() as copy:
                for number, path in enumerate(todo.stage):
                    with _named(path):
                        self._make(folder, b"%d" % number, path, copy, todo.few)
                    if self.held is not None:
                        self.held.add(files_of(folder, b"%d" % number, look(folder, b"%d" % number)))
                    if number % 500 == 499:
                        self.progress(f"Restored the contents of {number + 1} of {counted(len(todo.stage), 'file')}.")
            if todo.few:
                self._fsync(handles, self.name)
        if not todo.few:
            self._sync()

    def unstage(self) -> None:
        """Take `stage` back."""
        with Handles(self.root) as handles:
            if look(handles.folder(b""), self.name) is None:
                return
        with Handles(self.root, writes=True):
            remove_flat(self.root, self.name)
            set_metadata(self.root, b".", self.now.entries[b""], self.now.entries[b""].inode)

    def apply(self, todo: Steps) -> None:
        """Bring everything into place. Raises Moved when a name isn't what the walk saw; run again, with a new
        walk, it goes on."""
        touched: set[bytes] = {b""}
        whole = not todo.few
        with Handles(self.root, writes=True, keep=True) as handles:
            for path in todo.remove:
                with _named(path):
                    self._remove(handles, path, touched)
                self.removed.add(path)
            handles.folder(self.name)  # a default ACL may keep its own user out
            with opened(self.root, self.name, os.O_PATH | os.O_DIRECTORY) as stage:
                check_own(stage, self.name, self.root)
                for number, path in enumerate(todo.folders):
                    with _named(path):
                        self._place_folder(handles, stage, path, _FOLDER % number)
                    touched.update((path, _above(path)))
                for number, path in enumerate(todo.stage):
                    with _named(path):
                        self._place(handles, stage, path, b"%d" % number, touched)
                for path, anchor in todo.links:
                    with _named(path):
                        self._link(handles, stage, path, anchor, touched)
            for path in todo.settle:
                if self.goal.entries[path].kind != "d":
                    folder, name = handles.parent(path)
                    if look(folder, name) is None:
                        raise Moved(path)
                    with _named(path):
                        set_metadata(folder, name, self.goal.entries[path], self.now.entries[path].inode, path)
            handles.folder(b"")
            remove_flat(self.root, self.name)
            self._folders(handles, touched | handles.lifted | set(todo.settle))
            whole = whole or bool(handles.lifted)
        if not whole:
            with Handles(self.root) as handles:  # closed folders are closed again
                for path in sorted(touched | set(todo.settle)):
                    if path in self.goal.entries and self.goal.entries[path].kind in "fd":
                        self._fsync(handles, path)  # a link is brought by the folder that holds it
                whole = bool(handles.lifted)
        if whole:
            self._sync()

    def strays(self, todo: Steps, name: Callable[[int, os.stat_result, bytes], str]) -> list[bytes]:
        """The paths that these steps have touched and that aren't what the goal says. Only looks; `name` gives a
        content's. Everything else was compared right before."""
        paths = self._touched(todo)
        inodes: dict[bytes, int] = {}
        with Handles(self.root) as handles:
            for path in sorted(paths, reverse=True):
                goal = self.goal.entries.get(path)
                try:
                    folder, inner = handles.parent(path)
                except Moved:
                    if goal is not None:
                        return [path]
                    continue
                at = look(folder, inner)
                if goal is None and at is not None and not _listed(folder, inner):
                    continue
                if (at is None) != (goal is None):
                    return [path]
                if at is None or goal is None:
                    continue
                anchor = goal.group or path
                if inodes.setdefault(anchor, at.st_ino) != at.st_ino or not _is(folder, inner, path, at, goal, name):
                    return [path]
        return []

    def plain(self, todo: Steps) -> bool:
        """Whether `strays` can look at what these steps touch: little, and nothing that a mode closes to its owner."""
        if not todo.few:
            return False
        ways = {path[:end] for path in self._touched(todo) for end, byte in enumerate(path + b"/") if byte == 0x2F}
        found = (self.goal.entries.get(path) for path in ways | {b""})
        return all(entry is None or entry.mode & (needed := _OPEN.get(entry.kind, 0)) == needed for entry in found)

    def _touched(self, todo: Steps) -> set[bytes]:
        paths = {path for paths in (todo.remove, todo.folders, todo.stage, todo.settle) for path in paths}
        paths |= {path for link in todo.links for path in link} | {b""}
        return paths | {_above(path) for path in paths}

    def _fsync(self, handles: Handles, path: bytes) -> None:
        """Bring one name to the disk; where its mode forbids that, all."""
        if not self.durable:
            return
        folder, name = handles.parent(path)
        try:
            with opened(folder, name, os.O_RDONLY) as file:
                os.fsync(file)
        except OSError:
            self._sync()

    def _sync(self) -> None:
        if self.durable:
            sync(self.root)

    def _make_folder(self, folder: int, name: bytes, path: bytes) -> None:
        """Make one with the attributes that it is to have, which may not fit; still GoEx's alone."""
        os.mkdir(name, 0o700, dir_fd=folder)
        at = os.stat(name, dir_fd=folder, follow_symlinks=False)
        goal = self.goal.entries[path]._replace(mode=stat.S_IMODE(at.st_mode) | 0o700, uid=at.st_uid, gid=at.st_gid)
        set_metadata(folder, name, goal, at.st_ino, path)
        self.made[path] = at.st_ino

    def _make(self, folder: int, name: bytes, path: bytes, copy: Copy, alone: bool) -> None:
        goal = self.goal.entries[path]
        if goal.kind == "f":
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(name, flags, 0o600, dir_fd=folder)
            try:
                if not (goal.size and self.clone(goal.oid, file)):
                    _fill(file, goal, copy)
                set_metadata(folder, name, goal, os.fstat(file).st_ino, path)
                if alone and self.durable:
                    os.fsync(file)
            finally:
                os.close(file)
            return
        if goal.kind == "l":
            os.symlink(goal.target, name, dir_fd=folder)
            inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
        else:
            kind = next(number for number, letter in KINDS.items() if letter == goal.kind)
            os.mknod(name, kind | 0o600, goal.rdev, dir_fd=folder)
            inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
        set_metadata(folder, name, goal, inode, path)

    def _remove(self, handles: Handles, path: bytes, touched: set[bytes]) -> None:
        folder, name = handles.parent(path)
        entry = self.now.entries[path]
        expect(folder, name, path, entry)
        if entry.kind == "d":
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as error:
                if error.errno not in _CHANGED:
                    raise
                raise Moved(path) from error
        else:
            os.unlink(name, dir_fd=folder)
        touched.add(_above(path))

    def _place_folder(self, handles: Handles, stage: int, path: bytes, staged: bytes) -> None:
        folder, name = handles.parent(path)
        try:
            put_new(stage, staged, folder, name)
            with opened(folder, name, os.O_PATH | os.O_DIRECTORY) as new:
                check_own(new, path, folder)
                if os.fstat(new).st_ino != self.made[path]:  # another one was put in its place
                    raise Moved(path)
        except OSError as error:
            if error.errno not in _CHANGED:
                raise
            raise Moved(path) from error

    def _place(self, handles: Handles, stage: int, path: bytes, staged: bytes, touched: set[bytes]) -> None:
        folder, name = handles.parent(path)
        there = self.now.entries.get(path) if path not in self.removed else None
        expect(folder, name, path, there)
        if there is None:
            try:
                put_new(stage, staged, folder, name)
            except FileExistsError as error:
                raise Moved(path) from error
        else:
            os.rename(staged, name, src_dir_fd=stage, dst_dir_fd=folder)
        touched.add(_above(path))

    def _link(self, handles: Handles, stage: int, path: bytes, anchor: bytes, touched: set[bytes]) -> None:
        folder, name = handles.parent(anchor)
        os.link(name, b"link", src_dir_fd=folder, dst_dir_fd=stage, follow_symlinks=False)
        self._place(handles, stage, path, b"link", touched)
        if look(stage, b"link") is not None:  # two names of one inode: a rename between them does nothing
            os.unlink(b"link", dir_fd=stage)

    def _folders(self, handles: Handles, paths: set[bytes]) -> None:
        for path in sorted(paths, reverse=True):
            goal = self.goal.entries.get(path)
            if goal is not None and goal.kind == "d":
                folder, name = handles.parent(path)
                with _named(path):
                    set_metadata(folder, name, goal, self.made.get(path) or self.now.entries[path].inode, path)


def _is(
    folder: int,
    name: bytes,
    path: bytes,
    at: os.stat_result,
    goal: Entry,
    content: Callable[[int, os.stat_result, bytes], str],
) -> bool:
    """Whether a name is what the goal says, down to its content."""
    kind = KINDS[stat.S_IFMT(at.st_mode)]
    same = (kind, stat.S_IMODE(at.st_mode), at.st_uid, at.st_gid, at.st_mtime_ns)
    if same != (goal.kind, goal.mode, goal.uid, goal.gid, goal.mtime):
        return False
    if kind == "f":
        with Reading(folder, name, at, path, 0, force=True) as file:
            return content(file, at, path) == goal.oid and read_xattrs(file) == goal.xattrs
    if kind == "l":
        return os.readlink(name, dir_fd=folder) == goal.target
    if kind == "d":
        with opened(folder, name, os.O_PATH | os.O_DIRECTORY) as inner:
            return read_xattrs(f"{PROC}/{inner}") == goal.xattrs
    return at.st_rdev == goal.rdev if kind in "cb" else True


def _listed(folder: int, name: bytes) -> bool:
    """Whether that very name is there: a file system that minds no case finds "A" by "a"."""
    return name in os.listdir(os.fsencode(f"{PROC}/{folder}"))  # noqa: PTH208 (bytes)


def flags_of(file: int) -> int:
    """The file system's own flags of an open file; 0 where it has none."""
    try:
        return int.from_bytes(fcntl.ioctl(file, _FS_IOC_GETFLAGS, bytes(8))[:4], sys.byteorder)
    except OSError:
        return 0


@contextmanager
def _named(path: bytes) -> Iterator[None]:
    """Have an error of the operating system name the path, and not what it was called in the staging folder."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _fill(file: int, goal: Entry, copy: Copy) -> None:
    """Write a content; runs of zeros become holes."""

    def write(chunk: bytes) -> None:
        for start in range(0, len(chunk), _BLOCK):
            part = chunk[start : start + _BLOCK]
            if part == _ZEROS:
                os.lseek(file, _BLOCK, os.SEEK_CUR)
            else:
                view = memoryview(part)
                while view:
                    view = view[os.write(file, view) :]

    copy(goal.oid, write)
    os.ftruncate(file, goal.size)
