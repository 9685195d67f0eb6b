"""Room for one more snapshot, made of previews that are over and of what only a redo would need.

Rules: nothing goes unless all that may go would be enough; then the oldest goes first, until it is enough, and the
journal says so. A folder that somebody holds just now is left alone, as is one whose snapshots can't be read, which
the log says once. Of an action on several folders all parts go, or none: while it isn't undone in all of them, those
that are may have to be moved back.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from policies.errors import GoexError
from runtimes.base import Context
from runtimes.files import previews
from runtimes.files.quota import Quota, Undone, unmark
from runtimes.files.snapshot import Repository
from runtimes.files.workers import FolderLocks, HeldLocks, in_thread

T = TypeVar("T")
log = logging.getLogger(__name__)
_damaged: set[str] = set()  # the repositories that the log has named


@dataclass(slots=True, kw_only=True)
class MakingRoom:
    """Makes room for the snapshot of `context`'s action on `folder`, which is held by whoever asks.

    `asked` says how many bytes it needs as things are now, and which contents (`Repository.asked`).
    """

    quota: Quota
    locks: FolderLocks | HeldLocks
    repository: Callable[[str], Repository]
    folder: str
    context: Context
    asked: Callable[[], tuple[int, frozenset[str]]]
    _held: AsyncExitStack = field(default_factory=AsyncExitStack)
    _holds: dict[str, bool] = field(default_factory=dict)

    async def go(self) -> bool:
        """Returns False, having given up nothing that is of use, where there can't be enough."""
        self._holds[self.folder] = True
        async with self._held:
            for folder in await in_thread(lambda: previews.overdue(self.quota.snapshots)):
                if await self._free(folder):
                    await in_thread(partial(self._or_pass, folder, previews.expire))
            for each in await in_thread(self.quota.undone):
                await self._free(each.folder)
            found = await in_thread(self.quota.undone)  # anew: while they weren't held something may be done again
            held = {each.action for each in found if self._holds.get(each.folder)}
            need, contents = await in_thread(self.asked)
            whole = [each for each in found if each.parts <= held]
            undone, free = await in_thread(partial(self._may_go, whole, contents))
            if await in_thread(partial(self.quota.lacks, need)) > free:
                return False
            begun, gone, damaged = set[str](), set[str](), set[str]()
            for each in undone:
                if each.action in gone or each.folder in damaged:
                    continue
                if each.action not in begun and not await in_thread(partial(self.quota.lacks, need)):
                    continue
                going = [each]
                if not await in_thread(partial(self._is_readable_without, each)):  # but it is without all of them
                    going = [other for other in undone if other.folder == each.folder and other.action not in gone]
                why = "room was needed, and it is undone"
                for one in going:  # before they go: cut off half way it is told still
                    begun |= one.parts
                    gone.add(one.action)
                    self.context.note("snapshots-dropped", {"action": one.action, "why": why})
                drop = partial(self._or_pass, each.folder, partial(_drop, actions=[one.action for one in going]))
                saying = "Making room for the snapshot…"
                if not await in_thread(drop, saying=saying, progress=self.context.progress):
                    damaged.add(each.folder)
                if each.folder == self.folder:  # it may have held what this needs as well
                    need, _ = await in_thread(self.asked)
            return not await in_thread(partial(self.quota.lacks, need))

    async def _free(self, folder: str) -> bool:
        """Whether nobody else holds that folder; from then on it is held here."""
        if folder not in self._holds:
            self._holds[folder] = await self._held.enter_async_context(self.locks.hold_now(folder))
        return self._holds[folder]

    def _may_go(self, undone: list[Undone], contents: frozenset[str]) -> tuple[list[Undone], int]:
        """Which of these can go, and how many bytes they take that nothing else needs, and this snapshot doesn't."""
        sizes: dict[tuple[str, frozenset[str]], int | None] = {}
        while True:
            actions = defaultdict[str, set[str]](set)
            for each in undone:
                actions[each.folder].add(each.action)
            going = {(folder, frozenset(found)) for folder, found in actions.items()}
            for folder, found in going - sizes.keys():
                kept = contents if folder == self.folder else frozenset[str]()
                measure = partial(Repository.reclaimable, actions=found, contents=kept)
                sizes[folder, found] = self._or_pass(folder, measure)
            damaged = {action for key in going if sizes[key] is None for action in key[1]}
            if not damaged:
                return undone, sum(sizes[key] or 0 for key in going)
            undone = [each for each in undone if each.parts.isdisjoint(damaged)]

    def _is_readable_without(self, each: Undone) -> bool:
        """Whether all that a collection reads once this went can be read."""
        try:
            self.repository(each.folder).reclaimable({each.action}, frozenset())
        except (GoexError, OSError, ValueError):
            return False
        return True

    def _or_pass(self, folder: str, do: Callable[[Repository], T]) -> T | None:
        """What that makes of the folder's repository; None, and the log says why, where it is damaged."""
        repository = self.repository(folder)
        try:
            return do(repository)
        except (GoexError, OSError, ValueError) as error:
            if str(repository.path) not in _damaged:
                _damaged.add(str(repository.path))
                log.error("the snapshots of %s in %s are passed over", folder, repository.path, exc_info=error)
            return None


def _drop(repository: Repository, *, actions: list[str]) -> bool:
    for action in actions:
        unmark(repository, action)
        repository.drop(action)
    repository.collect()
    return True
