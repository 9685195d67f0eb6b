"""Which file a SQLite database may be, and how it is known to be the same one later.

Rules:

* It is there already and is a plain file with one name: nothing is created by accident, and a second name would have
  a journal of its own.
* Its path is resolved, and it is pinned by device and inode. SQLite opens it following no link, and what SQLite holds
  is then compared with what was looked at.
* Whoever may write to its folder can put a journal beside it that SQLite plays back: that is root, GoEx's user and the
  file's owner, or it is refused. GoEx running without root opens its own user's files alone.
* What SQLite deletes when it plays a journal back is the journal alone: one that names another file is refused.
* GoEx's own state is nobody's database, by whichever path it is reached.
* The file itself is only looked at by name or with O_PATH: closing a descriptor of it would drop the locks that SQLite
  holds in this process.
"""

# Descriptors and names, which pathlib knows nothing of.
# ruff: noqa: PTH120

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Conflict, InvalidInput, Unavailable
from policies.regular_file import names_another
from runtimes.files.folder import others_may_write
from runtimes.files.location import locate, mounts
from runtimes.open_files import BESIDE

_SYSTEM = ("/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A file that was found fit to be opened."""

    path: str
    device: int
    inode: int


def find(asked: str, *, protected: Sequence[Path] = ()) -> Pinned:
    """Find out which file is meant. Raises InvalidInput when it isn't fit, Unavailable when it isn't there."""
    if "\0" in asked or not asked.startswith("/") or len(os.fsencode(asked)) > 4000:
        raise InvalidInput(
            "A SQLite database is named by the absolute path of its file.", next_step="Name it from / on."
        )
    above, _, name = asked.rpartition("/")
    if name in ("", ".", ".."):
        raise InvalidInput(f"{asked!r} doesn't end in a file's name.", next_step="Name the file itself.")
    try:
        folder = os.path.realpath(above or "/", strict=True)
        path = f"{folder.rstrip('/')}/{name}"
        at = os.lstat(path)
    except OSError as error:
        raise Unavailable(
            f"{asked!r} can't be found: {error.strerror}.", next_step="Check its name; GoEx creates no database file."
        ) from error
    if stat.S_ISLNK(at.st_mode):
        raise InvalidInput(f"{asked!r} is a link.", next_step=f"Name the file itself: {os.path.realpath(path)}")
    if not stat.S_ISREG(at.st_mode):
        raise InvalidInput(f"{asked!r} isn't a file.", next_step="Name the database's file.")
    if at.st_nlink != 1:
        raise InvalidInput(
            f"{asked!r} has {at.st_nlink} names: under each of them SQLite would keep another journal.",
            next_step="Make a copy with one name.",
        )
    _refuse_by_name(path, protected)
    _refuse_by_location(path, protected)
    _refuse_by_owner(path, at)
    return Pinned(path=path, device=at.st_dev, inode=at.st_ino)


def check_same(pinned: Pinned) -> os.stat_result:
    """Raise Conflict when another file, or none, is at the path now."""
    try:
        at = os.lstat(pinned.path)
    except OSError as error:
        raise swapped(pinned.path) from error
    if (at.st_dev, at.st_ino) != (pinned.device, pinned.inode) or not stat.S_ISREG(at.st_mode) or at.st_nlink != 1:
        raise swapped(pinned.path)
    return at


def swapped(path: str) -> Conflict:
    """What is said when the file isn't the one that was looked at."""
    return Conflict(
        f"{path} isn't the file any more that was looked at.",
        next_step="Ask for the action again.",
        difference=(f"{path} was moved, replaced or removed",),
    )


def _refuse_by_name(path: str, protected: Sequence[Path]) -> None:
    for system in _SYSTEM:
        if _inside(path, system):
            raise _refused(path, "it belongs to the system")
    for own in protected:
        if _inside(path, os.path.realpath(own)):
            raise _refused(path, "it is GoEx's own")


def _refuse_by_location(path: str, protected: Sequence[Path]) -> None:
    """What is GoEx's own, by another path: where the file, or a folder above it, is mounted a second time."""
    try:
        table = mounts()
        here = locate(path, table)
        if any(here.overlaps(locate(os.path.realpath(own), table)) for own in protected):
            raise _refused(path, "by another path it is GoEx's own")
    except OSError as error:
        raise Unavailable(f"Where {path} is can't be found out: {error.strerror}.") from error


def _refuse_by_owner(path: str, at: os.stat_result) -> None:
    euid = os.geteuid()
    if euid not in (0, at.st_uid):
        raise _refused(path, "it belongs to another user", "Run GoEx as that user, or choose a file of your own.")
    if at.st_mode & stat.S_IWOTH:
        raise _refused(path, "every user may write to it", f"chmod o-w {path}")
    check_beside(path, at)
    trusted = {0, euid, at.st_uid}
    above, nearest = os.path.dirname(path), True
    while True:
        found = os.lstat(above)
        if found.st_uid not in trusted:
            raise _refused(path, f"{above} belongs to another user, who could swap it")
        if (nearest or not found.st_mode & stat.S_ISVTX) and others_may_write(above, found):
            raise _refused(path, f"other users may write to {above}", f"Move it to a folder of its own: {above} isn't.")
        if above == "/":
            return
        above, nearest = os.path.dirname(above), False


def check_beside(path: str, at: os.stat_result) -> None:
    """Raise InvalidInput when what lies beside the file isn't for SQLite to open; once more when no program works there
    any more."""
    trusted = {0, os.geteuid(), at.st_uid}
    for suffix in BESIDE:
        try:
            beside = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(beside.st_mode) or beside.st_nlink != 1 or beside.st_uid not in trusted:
            raise _refused(path, f"{path + suffix} isn't a plain file of its owner", "Find out who put it there.")
    if names_another(Path(f"{path}-journal")):
        raise _refused(
            path,
            f"{path}-journal names a file that SQLite would delete",
            "If a transaction over several databases was cut off, have the program that made it open them.",
        )


def _inside(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder + "/")


def _refused(path: str, why: str, next_step: str = "Choose another file.") -> InvalidInput:
    return InvalidInput(f"GoEx doesn't open {path}: {why}.", next_step=next_step)
