"""Opening a file in whose place something else may have been put.

Rules: a link isn't followed, and nothing is waited for: a pipe would keep whoever opens it until somebody writes to it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

_OTHER_KINDS = (errno.ELOOP, errno.ENXIO, errno.EISDIR)  # a link; a socket, or a pipe that nobody reads; a folder
_BESIDE = ("-journal", "-wal", "-shm")  # what SQLite opens, too


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; one that `flags` create has mode 0600. Raises OSError."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _OTHER_KINDS:
            raise _not_regular(error.errno, path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(errno.EINVAL, path)
    return handle


def read_regular(path: Path, most: int = -1) -> bytes:
    """Return what a regular file holds, at most `most` bytes of it. Raises OSError."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(most)


def not_regular_beside(database: Path) -> Path | None:
    """Return a file that SQLite would open with this database and that isn't a regular one; None when there is none."""
    return next(filter(_is_other, _beside(database)), None)


def _beside(database: Path) -> Iterable[Path]:
    return (database.with_name(f"{database.name}{end}") for end in _BESIDE)


def _is_other(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _not_regular(number: int, path: Path) -> OSError:
    return OSError(number, "Not a regular file", str(path))
