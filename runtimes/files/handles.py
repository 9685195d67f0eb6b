"""Folders reached from an open root, and the metadata of what lies in them.

Rules: each step down is one `openat` with O_NOFOLLOW on the same device; the descriptors are O_PATH, so nothing is
read by reaching it. Calls that know no descriptor go through /proc/self/fd, which names an inode and not a path.
"""

# Descriptors and bytes, which pathlib knows nothing of.
# ruff: noqa: PTH101, PTH208

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from policies.display_text import counted
from policies.errors import Conflict, Unavailable
from runtimes.files.descriptors import PROC, beside, opened
from runtimes.files.path_text import shown
from runtimes.files.rights import ACCESS
from runtimes.files.tree import KINDS, UNLISTED, Entry, read_xattrs
from runtimes.open_files import OPEN_FILES, files_of

_libc = ctypes.CDLL(None, use_errno=True)
# What an attribute is refused with that doesn't fit: the kernel says so also where there is much free space.
_NO_PLACE = (errno.ENOSPC, errno.E2BIG, errno.ERANGE, errno.EOPNOTSUPP)
_RENAME_NOREPLACE = 1  # linux/fs.h


class Moved(Conflict):
    """A name isn't any more what it was when the folder was looked at."""

    def __init__(self, path: bytes) -> None:
        super().__init__(
            f"{shown(path)} was changed by someone else meanwhile.",
            next_step="Wait until nothing else writes to this folder, then run it again.",
            difference=(f"changed meanwhile: {shown(path)}",),
        )


class Unkept(Unavailable):
    """An attribute that the disk, or its file system, doesn't take."""


class Handles:
    """The chain of open folders down to the one used last. A context manager.

    A mode that keeps its own user out is lifted while its folder is in the chain: to be passed through, or with
    `writes` to be worked in. It is put back when the folder leaves the chain, unless `keep`; `lifted` collects these
    folders, for whoever keeps them so to set their metadata last.
    """

    def __init__(self, root: int, *, writes: bool = False, keep: bool = False) -> None:
        self._device = os.fstat(root).st_dev
        self._needed = 0o300 if writes else 0o100
        self._keep = keep
        self._modes: dict[int, tuple[int, int]] = {}  # by descriptor: as it was, and as it was lifted
        self.lifted: set[bytes] = set()
        fd = os.open(f"{PROC}/{root}", os.O_PATH | os.O_DIRECTORY)
        self._chain: list[tuple[bytes, int]] = [(b"", fd)]
        try:
            self._lift(b"", fd)
        except BaseException:
            os.close(fd)
            raise

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        failed: OSError | None = None
        while self._chain:
            try:
                self._leave()
            except OSError as error:
                failed = error
        if failed is not None and kind is None:
            raise failed

    def folder(self, path: bytes) -> int:
        """A descriptor of the folder at `path`, good until the next call. Raises Moved when it isn't one."""
        while not _within(path, self._chain[-1][0]):
            self._leave()
        top, fd = self._chain[-1]
        rest = path[len(top) :].lstrip(b"/") if top else path
        for name in rest.split(b"/") if rest else ():
            top = top + b"/" + name if top else name
            try:
                fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise Moved(top) from error
            self._chain.append((top, fd))
            if os.fstat(fd).st_dev != self._device:
                raise Moved(top)
            self._lift(top, fd)
        return fd

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """The folder that holds `path`, and its name there; the root is "." in itself."""
        above, _, name = path.rpartition(b"/")
        return self.folder(above), name or b"."

    def _lift(self, path: bytes, fd: int) -> None:
        at = os.fstat(fd)
        if os.geteuid() != 0 and at.st_uid == os.geteuid() and at.st_mode & self._needed != self._needed:
            mode = stat.S_IMODE(at.st_mode)
            os.chmod(f"{PROC}/{fd}", mode | self._needed)
            self.lifted.add(path)
            if not self._keep:
                self._modes[fd] = mode, mode | self._needed

    def _leave(self) -> None:
        """Close the last folder of the chain; a mode that was set meanwhile isn't put back."""
        _, fd = self._chain.pop()
        try:
            mode, lifted = self._modes.pop(fd, (0, -1))
            if stat.S_IMODE(os.fstat(fd).st_mode) == lifted:
                os.chmod(f"{PROC}/{fd}", mode)
        finally:
            os.close(fd)


def _within(path: bytes, top: bytes) -> bool:
    return not top or path == top or path.startswith(top + b"/")


def look(fd: int, name: bytes) -> os.stat_result | None:
    """What is there, without following; None when nothing is."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def expect(fd: int, name: bytes, path: bytes, entry: Entry | None) -> None:
    """Raise Moved unless the name is still what the walk saw (`None`: nothing)."""
    at = look(fd, name)
    if (at is None) != (entry is None):
        raise Moved(path)
    if at is None or entry is None:
        return
    same = at.st_ino == entry.inode and KINDS[stat.S_IFMT(at.st_mode)] == entry.kind
    if same and entry.kind != "d":
        same = at.st_mtime_ns == entry.mtime
        if entry.links == 1:  # links and unlinks of ours move the change time of the others
            same = same and at.st_ctime_ns == entry.ctime
    if not same:
        raise Moved(path)


def put_new(fd: int, name: bytes, into: int, new: bytes) -> None:
    """Rename something to where nothing is. Raises FileExistsError where something is.

    Where the file system can't tell, an empty folder is made there first for a folder, which replaces nothing, and is
    replaced; anything else replaces what came there since its caller looked.
    """
    rename = getattr(_libc, "renameat2", None)  # not every C library has it
    number = errno.ENOSYS
    if rename is not None:
        number = ctypes.get_errno() if rename(fd, name, into, new, _RENAME_NOREPLACE) else 0
    if number in (errno.EINVAL, errno.ENOSYS):
        if _is_folder(fd, name):
            os.mkdir(new, 0o700, dir_fd=into)
        os.rename(name, new, src_dir_fd=fd, dst_dir_fd=into)
    elif number:
        raise OSError(number, os.strerror(number), new)


def set_metadata(fd: int, name: bytes, goal: Entry, inode: int, path: bytes = b"") -> None:
    """Owner, attributes, mode, time, in the order in which none undoes another; closed to others between an owner or
    an ACL and the mode, which one of them would read by the other's. `path` is what errors call it.

    Raises Moved unless the name is that inode's: whoever owns the folder could put the name of something else there,
    which would be given away, or given rights. Raises Unkept for an attribute that doesn't fit.
    """
    path = path or name
    at = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if at.st_ino != inode or KINDS[stat.S_IFMT(at.st_mode)] != goal.kind:
        raise Moved(path)
    if goal.kind == "l":
        if (at.st_uid, at.st_gid) != (goal.uid, goal.gid):
            os.chown(name, goal.uid, goal.gid, dir_fd=fd, follow_symlinks=False)
        _set_xattrs(beside(fd, name), goal, path, follow=False)
        os.utime(name, ns=(at.st_atime_ns, goal.mtime), dir_fd=fd, follow_symlinks=False)
        return
    with opened(fd, name, os.O_PATH) as handle:
        there = f"{PROC}/{handle}"
        now = os.fstat(handle)
        if (now.st_dev, now.st_ino) != (at.st_dev, inode):
            raise Moved(path)
        if (now.st_uid, now.st_gid) != (goal.uid, goal.gid):
            if now.st_mode & 0o077:
                os.chmod(there, stat.S_IMODE(now.st_mode) & 0o7700)
            os.chown(there, goal.uid, goal.gid)
        _set_xattrs(there, goal, path, follow=True)
        if stat.S_IMODE(os.fstat(handle).st_mode) != goal.mode:
            os.chmod(there, goal.mode)
        os.utime(there, ns=(now.st_atime_ns, goal.mtime))


def _set_xattrs(path: str | bytes, goal: Entry, called: bytes, *, follow: bool) -> None:
    mode = 0o700 if goal.kind == "d" else 0o600  # user attributes are read and written as contents are
    lifts = follow and os.geteuid() != 0
    if lifts and os.stat(path).st_mode & 0o600 != 0o600:  # noqa: PTH116 (of a descriptor)
        os.chmod(path, mode)
        lifts = False
    there = dict(read_xattrs(path, follow=follow))
    wanted = dict(goal.xattrs)
    if there == wanted:
        return
    if UNLISTED in (*there.items(), *wanted.items()):
        raise OSError(errno.E2BIG, f"{UNLISTED[0]}, which can't be restored")
    if lifts or there.get(ACCESS) != wanted.get(ACCESS):
        os.chmod(path, mode)
    for name in there.keys() - wanted.keys():
        os.removexattr(path, name, follow_symlinks=follow)
    for name, value in wanted.items():
        if there.get(name) != value:
            try:
                os.setxattr(path, name, value, follow_symlinks=follow)
            except OSError as error:
                if error.errno not in _NO_PLACE:
                    raise
                size = counted(len(value), "byte")
                raise Unkept(
                    f"The attribute {name} of {shown(called)} ({size}) can't be kept: {error.strerror}.",
                    next_step="The disk is full, or its file system doesn't take this attribute: free some space, then "
                    "try again.",
                ) from error


def sync(fd: int) -> None:
    """Bring the whole file system of `fd` to the disk."""
    if _libc.syncfs(fd) != 0:
        os.sync()


def remove_tree(fd: int, name: bytes) -> None:
    """Remove whatever `name` is, however deep and whatever its modes say. Idempotent.

    Folders in it are first hoisted to its top, so that depth costs neither descriptors nor stack. What is mounted in
    it isn't entered: Moved.
    """
    at = look(fd, name)
    if at is None:
        return
    if not stat.S_ISDIR(at.st_mode):
        _unlink(fd, name)
        return
    number = 0
    with _unlocked(fd, name) as top:
        if os.fstat(top).st_dev != os.fstat(fd).st_dev:
            raise Moved(name)
        while waiting := [os.fsencode(listed) for listed in os.listdir(top)]:
            for outer in waiting:
                if not _is_folder(top, outer):
                    _unlink(top, outer)
                    continue
                with _unlocked(top, outer) as inner:
                    if os.fstat(inner).st_dev != at.st_dev:
                        raise Moved(outer)
                    for listed in os.listdir(inner):
                        lower = os.fsencode(listed)
                        if not _is_folder(inner, lower):
                            _unlink(inner, lower)
                            continue
                        with _unlocked(inner, lower):  # a folder that moves is written to
                            while look(top, b"goex-%d" % number) is not None:
                                number += 1
                            os.rename(lower, b"goex-%d" % number, src_dir_fd=inner, dst_dir_fd=top)
                os.rmdir(outer, dir_fd=top)
    os.rmdir(name, dir_fd=fd)


def _unlink(fd: int, name: bytes) -> None:
    """Remove a name, unless a database action has it open; SQLite itself may remove what lies beside a database."""
    with OPEN_FILES.hold("folder", files_of(fd, name, look(fd, name))), suppress(FileNotFoundError):
        os.unlink(name, dir_fd=fd)


def remove_path(path: Path) -> None:
    """Remove a file or folder of GoEx's own. Idempotent."""
    with suppress(FileNotFoundError), opened_path(path.parent) as fd:
        remove_tree(fd, os.fsencode(path.name))


@contextmanager
def opened_path(path: Path) -> Iterator[int]:
    """A folder of GoEx's own, opened."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _unlocked(fd: int, name: bytes) -> Iterator[int]:
    """A folder opened for listing and working in it, whatever its mode says; that is put back."""
    with opened(fd, name, os.O_PATH | os.O_DIRECTORY) as handle:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        lifts = os.geteuid() != 0 and mode & 0o700 != 0o700
        if lifts:
            os.chmod(f"{PROC}/{handle}", mode | 0o700)
        try:
            with opened(handle, b".", os.O_RDONLY | os.O_DIRECTORY) as inner:
                yield inner
        finally:
            if lifts:
                os.chmod(f"{PROC}/{handle}", mode)


def _is_folder(fd: int, name: bytes) -> bool:
    at = look(fd, name)
    return at is not None and stat.S_ISDIR(at.st_mode)


def check_own(fd: int, name: bytes, above: int) -> None:
    """Raise Moved unless the folder is GoEx's user's alone: the name is in a folder, `above`, that may not be.

    A file system that keeps no modes shows others' rights on what was made without any. That does where nobody else
    may write to either of the two: nobody else can have put this folder there.
    """
    at, held = os.fstat(fd), os.fstat(above)
    alone = held.st_uid == os.geteuid() != 0 and not (at.st_mode | held.st_mode) & 0o022
    if at.st_uid != os.geteuid() or (at.st_mode & 0o077 and not alone):
        raise Moved(name)


def remove_flat(root: int, name: bytes) -> bool:
    """Remove a folder of GoEx's own whose folders are empty. Returns False when it wasn't there. Raises Moved when it
    is another user's, or others may have put in what it holds."""
    try:
        with _unlocked(root, name) as fd:
            listed = os.listdir(fd)
            if listed or os.fstat(fd).st_uid != os.geteuid():
                check_own(fd, name, root)
            for inner in listed:
                with suppress(FileNotFoundError):
                    try:
                        os.unlink(inner, dir_fd=fd)
                    except IsADirectoryError:
                        os.rmdir(inner, dir_fd=fd)
    except FileNotFoundError:
        return False
    os.rmdir(name, dir_fd=root)
    return True
