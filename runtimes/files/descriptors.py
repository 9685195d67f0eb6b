"""Descriptors of what lies in a person's folder: opened without following a link, and never under an open database.

Rules: a regular file is reached by O_PATH first, so it is sure which one it is before it is opened. It is registered
with `runtimes.open_files` while it is open, since closing it would drop the locks of a database of this process.
"""

# Descriptors and bytes, which pathlib knows nothing of.
# ruff: noqa: PTH101

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from policies.errors import Conflict
from runtimes.files.path_text import shown
from runtimes.open_files import OPEN_FILES, Hold, files_of

PROC = "/proc/self/fd"


@contextmanager
def opened(fd: int, name: bytes, flags: int) -> Iterator[int]:
    """`name` in the folder `fd`, opened without following links, and closed again. Raises Conflict when it is a file
    that a database action has open."""
    if flags & (os.O_PATH | os.O_DIRECTORY):
        file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        try:
            yield file
        finally:
            os.close(file)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        with OPEN_FILES.hold("folder", files_of(fd, name, os.fstat(handle))):
            file = os.open(f"{PROC}/{handle}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                yield file
            finally:
                os.close(file)
    finally:
        os.close(handle)


def beside(fd: int, name: bytes) -> bytes:
    """A path for calls that know no dir_fd: only its last part is the folder's, and the call mustn't follow it."""
    return os.fsencode(f"{PROC}/{fd}/") + name


class Reading:
    """`name` in the folder `fd` opened for reading, once it is sure that it is what `at` says. A context manager. "."
    is the folder `fd` itself.

    Its access time stays as it is. With `force`, a mode that keeps its own user out is lifted meanwhile, by a
    descriptor that reads nothing; `lifted` says so.
    """

    __slots__ = ("_at", "_handle", "_hold", "fd", "lifted")

    def __init__(self, fd: int, name: bytes, at: os.stat_result, path: bytes, flags: int, *, force: bool) -> None:
        self._at = at
        self._hold: Hold | None = None
        self._handle = -1
        bits = 0o500 if flags & os.O_DIRECTORY else 0o400
        euid = os.geteuid()
        lift = force and euid != 0 and at.st_uid == euid and at.st_mode & bits != bits
        self.lifted = False
        if flags & os.O_DIRECTORY and not lift:
            self.fd = _quietly(name, flags | os.O_NOFOLLOW, at, fd)
            try:
                same(os.fstat(self.fd), at, path)
            except BaseException:
                os.close(self.fd)
                raise
            return
        if name == b".":  # looking it up there wants the right to pass through, which its mode may not give
            self._handle = os.open(f"{PROC}/{fd}", flags | os.O_PATH | os.O_CLOEXEC)
        else:
            self._handle = os.open(name, flags | os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            now = os.fstat(self._handle)
            same(now, at, path)
            self._hold = OPEN_FILES.hold("folder", files_of(fd, name, now))
            if lift:
                os.chmod(f"{PROC}/{self._handle}", stat.S_IMODE(at.st_mode) | bits)
                self.lifted = True
            self.fd = _quietly(f"{PROC}/{self._handle}", flags, at)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        try:
            if self.lifted:
                os.chmod(f"{PROC}/{self._handle}", stat.S_IMODE(self._at.st_mode))
        finally:
            if self._handle >= 0:
                os.close(self._handle)
            if self._hold is not None:
                self._hold.release()

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        os.close(self.fd)
        self._end()


def _quietly(name: str | bytes, flags: int, at: os.stat_result, fd: int | None = None) -> int:
    """Open for reading so that no access time moves, which a file's owner, and root, may."""
    flags |= os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if os.geteuid() in (0, at.st_uid):
        try:
            return os.open(name, flags | os.O_NOATIME, dir_fd=fd)
        except PermissionError:  # root of a container may not, where the owner isn't one of its users
            pass
    return os.open(name, flags, dir_fd=fd)


def same(now: os.stat_result, at: os.stat_result, path: bytes) -> None:
    """Raise Conflict unless both are one thing's."""
    if (now.st_ino, stat.S_IFMT(now.st_mode)) != (at.st_ino, stat.S_IFMT(at.st_mode)):
        raise moving(path)


def moving(path: bytes) -> Conflict:
    return Conflict(
        f"{shown(path)} changed while it was being read.",
        next_step="Wait until nothing else writes to it, then try again.",
    )
