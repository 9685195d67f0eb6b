"""Opening a file in whose place something else may have been put.

Rules: a link isn't followed, and nothing is waited for: a pipe would keep whoever opens it until somebody writes to it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_OTHER_KINDS = (errno.ELOOP, errno.ENXIO, errno.EISDIR)  # a link; a socket, or a pipe that nobody reads; a folder
_BESIDE = ("-journal", "-wal", "-shm")  # what SQLite opens, too
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # ends a journal of several databases; sqlite.org/fileformat2.html
_ENDING = 16  # bytes from which SQLite reads the name before them


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


def folder_below(place: Path, name: str) -> Path:
    """Return the folder `name` in `place`. Raises OSError for a link in the place of either."""
    for folder in (place, place / name):
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "A link, not a folder", str(folder))
    return place / name


def unfit_beside(database: Path) -> tuple[Path, str] | None:
    """Return a file that SQLite mustn't open with this database, and why; None when there is none."""
    beside = [database.with_name(f"{database.name}{end}") for end in _BESIDE]
    for path in beside:
        if _is_other(path):
            return path, "isn't a regular file"
    return (beside[0], "names a file that SQLite would delete") if names_another(beside[0]) else None


def names_another(journal: Path) -> bool:
    """Whether SQLite, once it has played this journal back, would delete the file that it names, whatever that is: of a
    transaction over several databases it is the list of their journals. Also where it can't be read."""
    try:
        with os.fdopen(open_regular(journal), "rb") as file:
            if os.fstat(file.fileno()).st_size < _ENDING:
                return False
            file.seek(-len(_MAGIC), os.SEEK_END)
            return file.read() == _MAGIC
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_other(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _not_regular(number: int, path: Path) -> OSError:
    return OSError(number, "Not a regular file", str(path))
