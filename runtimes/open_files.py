"""Which SQLite files this process has open, which files its folder actions read or replace, and in which folders
programs run.

A process that closes any descriptor of a file loses every POSIX lock that it holds on it. SQLite takes such locks on a
database and on its -shm file, so a folder action that reads or replaces them would leave an open transaction without a
lock, and another program would write into it.

Rules: a file is used by databases or by folders at a time, never by both, and known by device and inode. Whoever comes
second waits for a bounded time, then is refused. Databases register before they open a file and until they have
closed it; folders before they open one, which they reach by O_PATH first, since closing such a descriptor drops no
lock. A file that SQLite keeps beside a database counts as the database. A program that runs on a folder uses it whole,
and a database each folder that it lies in: a program that cut a -shm file short would end the process that maps it.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

from policies.errors import Conflict

User = Literal["database", "folder"]
FileId = tuple[int, int]  # device, inode; also a folder's
BESIDE = ("-journal", "-wal", "-shm")
_FOLDER_SECONDS = 30.0  # how long a folder action waits for databases
_BESIDE = tuple(end.encode("ascii") for end in BESIDE)


class OpenFiles:
    """The files in use in this process. Safe for threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.folder_seconds = _FOLDER_SECONDS
        self._users: dict[User, dict[FileId, int]] = {"database": {}, "folder": {}}

    def hold(self, user: User, files: Collection[FileId] = (), *, seconds: float | None = None) -> Hold:
        """Register a use of all these files, to be released. Raises Conflict when the other user has one for longer
        than that."""
        held = Hold(self, user)
        try:
            self.take(held, files, seconds)
        except BaseException:
            held.release()
            raise
        return held

    def take(self, held: Hold, files: Collection[FileId], seconds: float | None) -> None:
        """Add files to a hold. Raises Conflict as `hold`; then none is added."""
        own = self._users[held.user]
        others = self._users["folder" if held.user == "database" else "database"]
        with self._changed:
            if others and not others.keys().isdisjoint(files):
                until = time.monotonic() + (self.folder_seconds if seconds is None else seconds)
                while not others.keys().isdisjoint(files):
                    left = until - time.monotonic()
                    if left <= 0:
                        raise in_use()
                    self._changed.wait(left)
            for file in files:
                own[file] = own.get(file, 0) + 1
            held.files += files

    def drop(self, held: Hold) -> None:
        """End a hold. Idempotent."""
        own = self._users[held.user]
        with self._changed:
            for file in held.files:
                own[file] -= 1
                if not own[file]:
                    del own[file]
            held.files.clear()
            self._changed.notify_all()


class Hold:
    """A use of some files; a context manager that ends it."""

    __slots__ = ("_registry", "files", "user")

    def __init__(self, registry: OpenFiles, user: User) -> None:
        self._registry = registry
        self.user: User = user
        self.files: list[FileId] = []

    def add(self, files: Collection[FileId], *, seconds: float | None = None) -> None:
        """Use these files too. Raises Conflict."""
        self._registry.take(self, files, seconds)

    def release(self) -> None:
        """End the use. Idempotent."""
        self._registry.drop(self)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.release()


OPEN_FILES = OpenFiles()  # locks are the process's, so there is one


def in_use() -> Conflict:
    """What is said when the wait is over."""
    return Conflict(
        "A file is in use by another action of this daemon; nothing was changed.",
        next_step="Wait until that action is done, then try again.",
    )


def file_id(at: os.stat_result) -> FileId:
    """What a file is known by."""
    return at.st_dev, at.st_ino


def files_of(folder: int, name: bytes, at: os.stat_result | None) -> list[FileId]:
    """The files that are in use when that name in the folder is: its own (`at`; None: there is none), and the
    database that it lies beside."""
    found = [] if at is None or not stat.S_ISREG(at.st_mode) else [file_id(at)]
    for end in _BESIDE:
        if name.endswith(end) and len(name) > len(end):
            with suppress(FileNotFoundError):
                found.append(file_id(os.stat(name[: -len(end)], dir_fd=folder, follow_symlinks=False)))
    return found


def above(path: str) -> list[FileId]:
    """The folders in which the database at that path, which has no link in it, lies now."""
    found = []
    for folder in Path(path).parents:
        with suppress(FileNotFoundError):
            found.append(file_id(folder.stat()))
    return found


def beside(path: str) -> list[FileId]:
    """The files that lie beside the database at that path now."""
    found = []
    for end in BESIDE:
        with suppress(FileNotFoundError):
            found.append(file_id(os.lstat(path + end)))
    return found
