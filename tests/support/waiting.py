"""Waiting for what comes: five minutes, which only a hang reaches, however busy the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 300.0
_BETWEEN = 0.02  # seconds
Found = TypeVar("Found")


def until(holds: Callable[[], Found], what: str = "it", seconds: float = SECONDS) -> Found:
    """What `holds()` gives, as soon as that is true. Raises AssertionError after `seconds`; `what` should have come."""
    ends = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < ends, f"{what} didn't come within {seconds:g} s"
        time.sleep(_BETWEEN)
    return found


async def until_async(holds: Callable[[], Found], what: str = "it", seconds: float = SECONDS) -> Found:
    """The same while others run in this loop. What blocks for long: `await asyncio.to_thread(until, holds)`."""
    ends = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < ends, f"{what} didn't come within {seconds:g} s"
        await asyncio.sleep(_BETWEEN)
    return found
