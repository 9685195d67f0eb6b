"""How much room all snapshots may take, and what goes first when it is used up.

Rules:

* What an undo needs is never deleted to make room. What only a redo would need, of actions that are undone, may be:
  the oldest goes first, and is said in the journal. Committed actions keep nothing anyway.
* Room is asked for before an action runs. The state that a program has left is kept even where it goes beyond, since
  the action's undo needs it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Unavailable
from runtimes.files import plan_text
from runtimes.files.snapshot import Repository, fsync, plain

_MARKS = "undone"


class Full(Unavailable):
    """The snapshots would take more room than they may."""

    def __init__(self, used: int, most: int) -> None:
        super().__init__(
            f"Snapshots may take {plan_text.size(most)} in all and take {plan_text.size(used)}: this one has no room.",
            next_step="Commit actions that you won't take back (goex commit ID), or raise [files] quota.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An action that is undone: which, on which folder, in which repository, since when (nanoseconds)."""

    action: str
    folder: str
    repository: Path
    since: int


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

    def full(self) -> Full:
        return Full(self.used(), self.most)

    def undone(self) -> list[Undone]:
        """The actions whose snapshots may go, oldest first."""
        found = []
        for path in self.snapshots.glob(f"*.git/{_MARKS}/*"):
            action, _, folder = path.read_text("utf-8").partition("\n")
            if not folder:  # it was cut off
                continue
            since = path.stat().st_mtime_ns
            found.append(Undone(action=action, folder=folder, repository=path.parent.parent, since=since))
        return sorted(found, key=lambda each: each.since)


def mark(repository: Repository, action: str, folder: str) -> None:
    """Note that an action is undone: its snapshots may go when room is needed. Where it can't be noted they stay."""
    path = _mark(repository, action)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(f"{action}\n{folder}", "utf-8")


def unmark(repository: Repository, action: str) -> None:
    """Take that back, durably: from here on its snapshots stay."""
    path = _mark(repository, action)
    if path.exists():
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
