"""Waiting for what must have ended before anything else goes on, however often the one who waits is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def uninterrupted(work: Awaitable[T]) -> T:
    """What `work` gives. A cancellation is raised when it has ended, not before, and so is every further one: waiting
    in a `finally` behind one `shield` ends at the second. Raises what `work` raises."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()  # looked at: the cancellation is what is raised
        raise
