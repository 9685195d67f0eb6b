"""Slow work beside the event loop, and locks on folders.

Rules: work that has begun in a thread is waited for, also when its task is cancelled, since it holds descriptors and
locks; what lasts longer than a second is said; folders that lie in one another are one for the lock.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from policies.errors import Unavailable

T = TypeVar("T")
_SLOW = 1.0  # seconds


async def in_thread(work: Callable[[], T], *, saying: str = "", progress: Callable[[str], None] | None = None) -> T:
    """Run `work` in a thread and return what it returns; `saying` is shown when it takes more than a second.

    Raises what `work` raises; an operating system's error as Unavailable.
    """
    loop = asyncio.get_running_loop()
    timer = loop.call_later(_SLOW, progress, saying) if saying and progress is not None else None
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise
    except OSError as error:
        raise translated(error) from error
    finally:
        if timer is not None:
            timer.cancel()


def translated(error: OSError) -> Unavailable:
    """An operating system's error in GoEx's own words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable("The disk is full.", next_step="Free some space, then try again.")
    return Unavailable(f"The operating system refused: {error.strerror or error}.")


def teller(progress: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> Callable[[str], None]:
    """A `progress` that a thread may call as often as it likes: at most a line a second reaches the loop."""
    loop = asyncio.get_running_loop()
    last = clock()

    def tell(text: str) -> None:
        nonlocal last
        if clock() - last >= _SLOW:
            last = clock()
            loop.call_soon_threadsafe(progress, text)

    return tell


class FolderLocks:
    """One action at a time for a folder, the folders in it and the folders it lies in."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, path: str) -> AsyncIterator[None]:
        """Wait until no other action holds an overlapping folder, then hold this one."""
        async with self._freed:
            await self._freed.wait_for(lambda: not any(_overlap(path, held) for held in self._held))
            self._held.add(path)
        try:
            yield
        finally:
            self._held.discard(path)
            waking = asyncio.ensure_future(self._wake())
            self._waking = waking  # a task that nobody holds may be collected
            await asyncio.shield(waking)

    @asynccontextmanager
    async def hold_now(self, path: str) -> AsyncIterator[bool]:
        """Hold this folder if nobody holds an overlapping one; yields whether that is so. Waits for nobody."""
        if any(_overlap(path, held) for held in self._held):
            yield False
            return
        async with self.hold(path):
            yield True

    async def _wake(self) -> None:
        async with self._freed:
            self._freed.notify_all()


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")
