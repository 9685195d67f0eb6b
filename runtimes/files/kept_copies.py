"""Copies that programs worked on, kept for the next program on the same folder, which then needs no other.

Rules:

* A copy is kept only where its program has ended and all that it left was recorded. It is taken out before it is used
  again, so that whatever goes wrong meanwhile leaves none.
* What a copy holds is known here, in memory alone: nothing on the disk says it, so there is nothing to forge, and a
  daemon that starts again removes what is left of an earlier one's. Before its next use a copy is walked anyhow (see
  `tree`), and whatever isn't as it should be is made anew from the snapshot.
* They lie where only GoEx's user can enter, go when an action on their folder is given up, and are few: a copy takes as
  much of the disk as the folder.
"""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Lock

from policies.errors import Unavailable
from runtimes.files.handles import remove_path
from runtimes.files.snapshot import make_private
from runtimes.files.tree import Manifest

_MOST = 2  # copies
_LARGEST = 4 * 10**9  # bytes


class KeptCopies:
    """The copies below `place`, by the folder that they are of. Methods block; each folder has one user at once."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._held: OrderedDict[str, tuple[Path, Manifest]] = OrderedDict()
        self._lock = Lock()

    def take(self, folder: str, work: Path) -> Manifest | None:
        """Move the copy of that folder to `work`, where nothing is. Returns what it held; None when there is none."""
        make_private(work.parent)
        with self._lock:
            found = self._held.pop(folder, None)
            if found is None:
                return None
            with suppress(FileNotFoundError):
                found[0].rename(work)
                return found[1]
        return None

    def keep(self, folder: str, work: Path, held: Manifest) -> None:
        """Keep the copy in `work`, which is as `held` says, for the next one; or remove it where that isn't worth the
        room, or its file system doesn't keep change times."""
        if not held.settled or held.bytes > _LARGEST or _free(work) < held.bytes:
            remove_path(work)
            return
        self.drop(folder)
        place = self._place / secrets.token_hex(16)
        try:
            make_private(self._place)
            work.rename(place)
        except (OSError, Unavailable):
            remove_path(work)
            return
        with self._lock:
            self._held[folder] = place, held
            old = list(self._held)[:-_MOST]
        for each in old:
            self.drop(each)

    def drop(self, folder: str) -> None:
        """Remove the copy of that folder. Idempotent."""
        with self._lock:  # once it isn't known any more nobody takes it while it is being removed
            found = self._held.pop(folder, None)
        if found is not None:
            remove_path(found[0])

    def clear(self) -> None:
        """Remove all, and what an earlier process has left."""
        with self._lock:
            self._held.clear()
        remove_path(self._place)


def _free(folder: Path) -> int:
    at = os.statvfs(folder)
    return at.f_bavail * at.f_frsize
