"""How much room all snapshots may take, and what goes first when it is used up.

Rules:

* What an undo needs is never deleted to make room. What only a redo would need, of actions that are undone, may be
  (`making_room`). Committed actions keep nothing anyway.
* Room is asked for before an action runs, and before a preview is kept; what is kept already needs none. The state that
  a program has left is kept even where it goes beyond, since the action's undo needs it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Unavailable
from policies.regular_file import read_regular
from runtimes.files import plan_text
from runtimes.files.large import fsync, replace_file
from runtimes.files.location import is_absolute
from runtimes.files.snapshot import Repository, Room, plain

_MARKS = "undone"
_PART = re.compile(r"(.+)-[0-9]")  # as `several` names the part of one folder


class Full(Unavailable):
    """The snapshots would take more room than they may."""

    def __init__(self, used: int, most: int) -> None:
        super().__init__(
            f"Snapshots may take {plan_text.size(most)} in all and take {plan_text.size(used)}: this one has no room.",
            next_step="Commit actions that you won't take back (goex commit ID), or raise [files] quota.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An action that is undone: which, on which folder, in which repository, since when (nanoseconds). One on several
    folders is one for each of them, and `parts` are all of it that keep something."""

    action: str
    folder: str
    repository: Path
    since: int
    parts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """All snapshots below `snapshots` may take `most` bytes; 0: as much as there is."""

    snapshots: Path
    most: int

    def used(self) -> int:
        """What they take on the disk now, in bytes. Copies that programs work on aren't snapshots."""
        return sum(_taken(repository) for repository in self.snapshots.glob("*.git"))

    def left(self) -> int | None:
        """How many bytes more may be kept; None: as many as there are."""
        return max(0, self.most - self.used()) if self.most else None

    def room(self) -> Room:
        """What hears how many bytes are about to be kept (of less than none: they weren't needed). Raises Full where
        they are more than are left, now and later."""
        left = self.left()

        def room(size: int) -> None:
            nonlocal left
            if left is not None and size > left:
                raise Full(self.used(), self.most)
            left = None if left is None else left - size

        room(1 if left == 0 else 0)
        return room

    def lacks(self, size: int) -> int:
        """How many bytes are missing to keep so many more."""
        return max(0, max(1, size) + self.used() - self.most) if self.most else 0

    def undone(self) -> list[Undone]:
        """The actions whose snapshots may go, oldest first."""
        found = []
        for path in self.snapshots.glob(f"*.git/{_MARKS}/*"):
            try:
                action, _, folder = read_regular(path).decode("utf-8").partition("\n")
                since = path.stat().st_mtime_ns
            except (OSError, ValueError):  # of a damaged repository: what isn't known to be undone stays
                continue
            if path.name != plain(action) or not is_absolute(folder):  # it was cut off, or is damaged
                continue
            parts = self._parts(action)
            found.append(Undone(action=action, folder=folder, repository=path.parent.parent, since=since, parts=parts))
        return sorted(found, key=lambda each: each.since)

    def _parts(self, action: str) -> frozenset[str]:
        part = _PART.fullmatch(action)
        if part is None:
            return frozenset({action})
        return frozenset(label.parent.name for label in self.snapshots.glob(f"*.git/refs/goex/{part[1]}-[0-9]/*"))


def mark(repository: Repository, action: str, folder: str) -> None:
    """Note that an action is undone: its snapshots may go when room is needed. Where it can't be noted they stay."""
    path = _mark(repository, action)
    with suppress(OSError, Unavailable):
        repository.check()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, f"{action}\n{folder}".encode())


def unmark(repository: Repository, action: str) -> None:
    """Take that back, durably: from here on its snapshots stay."""
    path = _mark(repository, action)
    if path.exists():
        repository.check()
        path.unlink()
        fsync(path.parent)


def _mark(repository: Repository, action: str) -> Path:
    return repository.path / _MARKS / plain(action)


def _taken(top: Path) -> int:
    total = 0
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except FileNotFoundError:  # somebody collects meanwhile
                continue
    return total
