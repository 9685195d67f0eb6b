"""Slow work beside the event loop, and locks on folders.

Rules: work that has begun in a thread is waited for, also when its task is cancelled, since it holds descriptors and
locks; what lasts longer than a second is said; folders that lie in one another, by whichever path they are reached,
are one for the lock.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from policies.errors import Unavailable
from runtimes.files.location import Location, locate
from runtimes.files.path_text import shown
from runtimes.uninterrupted import uninterrupted

T = TypeVar("T")
_SLOW = 1.0  # seconds
_MANY = ("Too many files are open", "Wait until other actions are done, or raise the daemon's limit (ulimit -n).")
# What the operating system refuses for the sake of a whole file system or process, and what to do about it.
_REFUSED = {
    errno.ENOSPC: ("The disk is full", "Free some space, then try again."),
    errno.EDQUOT: ("The owner's disk quota is used up", "Free some space or raise the quota, then try again."),
    errno.EROFS: ("The file system is read-only", "Make it writable (mount -o remount,rw), then try again."),
    errno.EMFILE: _MANY,
    errno.ENFILE: _MANY,
}
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


async def in_thread(
    work: Callable[[], T], *, saying: str = "", progress: Callable[[str], None] | None = None, writes: str = ""
) -> T:
    """Run `work` in a thread and return what it returns; `saying` is shown when it takes more than a second.

    Raises what `work` raises; an operating system's error as Unavailable, which names where `work` writes.
    """
    loop = asyncio.get_running_loop()
    timer = loop.call_later(_SLOW, progress, saying) if saying and progress is not None else None
    try:
        return await uninterrupted(asyncio.to_thread(work))
    except OSError as error:
        raise translated(error, writes) from error
    finally:
        if timer is not None:
            timer.cancel()


def translated(error: OSError, writes: str = "") -> Unavailable:
    """An operating system's error in GoEx's own words; `writes` is the folder that was being written in."""
    if error.errno in _REFUSED:
        why, next_step = _REFUSED[error.errno]
        place = f" ({writes})" if writes and error.errno in _WRITING else ""
        return Unavailable(f"{why}{place}.", next_step=next_step)
    name = error.filename if isinstance(error.filename, str | bytes) else ""
    path = "" if not name or os.fsencode(name).startswith(b"/proc/") else f" ({shown(os.fsencode(name))})"
    next_step = "Look at the file or folder (ls -ld, lsattr -d) and at the system's log (dmesg), then try again."
    return Unavailable(f"The operating system refused: {error.strerror or error}{path}.", next_step=next_step)


def teller(progress: Callable[[str], None]) -> Callable[[str], None]:
    """A `progress` that a thread may call as often as it likes: at most a line a second reaches the loop."""
    loop = asyncio.get_running_loop()
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SLOW:
            last = time.monotonic()
            loop.call_soon_threadsafe(progress, text)

    return tell


@dataclass(eq=False, slots=True)
class _Turn:
    """Who holds some folders, or waits for them; `first`: before those who aren't."""

    folders: tuple[Location, ...]
    first: bool

    def overlaps(self, other: _Turn) -> bool:
        return any(one.may_overlap(two) for one in self.folders for two in other.folders)


class FolderLocks:
    """One action at a time for a folder, the folders in it and the folders it lies in.

    First come, first served: nobody passes another who waits for an overlapping folder, or those who take turns in two
    parts of it would keep it from who wants the whole. Of several folders all are taken at once, or none.
    """

    def __init__(self) -> None:
        self._held: list[_Turn] = []
        self._waiting: list[_Turn] = []
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, *paths: str, first: bool = False) -> AsyncIterator[None]:
        """Wait until it is their turn, then hold these folders; `first`: before all who wait and aren't. Raises
        Unavailable where it can't be found out which folders these are."""
        turn = _Turn(tuple(Location(path=path) for path in paths), first)
        self._waiting.append(turn)  # at once: how long it takes to find out where its folders are is nobody's gain
        try:
            turn.folders = await in_thread(lambda: tuple(map(locate, paths)))
            async with self._freed:
                await self._freed.wait_for(lambda: self._comes(turn))
                self._held.append(turn)
        except BaseException:
            self._waiting.remove(turn)
            self._wake()  # whoever waited behind one that went away
            raise
        self._waiting.remove(turn)
        try:
            yield
        finally:
            await self._release(turn)

    @asynccontextmanager
    async def hold_now(self, path: str) -> AsyncIterator[bool]:
        """Hold this folder if it can be found out which it is, and nobody holds an overlapping one or waits for it;
        yields whether that is so."""
        try:
            wanted = _Turn((await in_thread(lambda: locate(path)),), False)
        except Unavailable:
            yield False
            return
        if any(wanted.overlaps(other) for other in (*self._held, *self._waiting)):
            yield False
            return
        self._held.append(wanted)
        try:
            yield True
        finally:
            await self._release(wanted)

    def _comes(self, turn: _Turn) -> bool:
        at = self._waiting.index(turn)
        before = [other for other in self._waiting[:at] if other.first or not turn.first]
        if not turn.first:
            before += [other for other in self._waiting[at + 1 :] if other.first]
        return not any(turn.overlaps(other) for other in (*self._held, *before))

    async def _release(self, turn: _Turn) -> None:
        self._held.remove(turn)
        await asyncio.shield(self._wake())

    def _wake(self) -> asyncio.Task[None]:
        async def wake() -> None:
            async with self._freed:
                self._freed.notify_all()

        self._waking = asyncio.create_task(wake())  # a task that nobody holds may be collected
        return self._waking


class HeldLocks:
    """The locks for whoever holds the folders already: their own are waited for no more."""

    def __init__(self, locks: FolderLocks | HeldLocks) -> None:
        self._locks = locks

    @asynccontextmanager
    async def hold(self, *paths: str, first: bool = False) -> AsyncIterator[None]:
        """Nothing to wait for."""
        yield

    @asynccontextmanager
    async def hold_now(self, path: str) -> AsyncIterator[bool]:
        """Of another folder, as ever."""
        async with self._locks.hold_now(path) as held:
            yield held
