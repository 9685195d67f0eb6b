"""When the vault seals itself: after idleness, when the screen is locked, before the machine sleeps.

Rules: what counts as use is a credential that is lent out, an action under way, or the person at a terminal; never that
somebody asks again and again. Time goes on while the machine sleeps. A vault that sealed itself is opened by the person
alone: also a daemon that is started anew leaves it sealed.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from goex.config import Sealing
from goex.daemon.logind import Logind

log = logging.getLogger("goex.daemon")

Why = Literal["idle", "lock", "sleep", "asked"]
WORDS: dict[str, str] = {
    "idle": "it wasn't used for a while",
    "lock": "the screen was locked",
    "sleep": "the machine went to sleep",
    "asked": "you asked for it",
}
_LONGEST_NAP = 30.0  # seconds; a timer stands still while the machine sleeps


def boot_clock() -> float:
    """Seconds that also pass while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class AutoSeal:
    """Watches, and calls `seal` with the reason. `busy` says whether something is being used just now, `unsealed`
    whether there is anything to seal. `locked` is called on each lock, whether that seals or not."""

    def __init__(
        self,
        settings: Sealing,
        *,
        seal: Callable[[Why], Awaitable[None]],
        unsealed: Callable[[], bool],
        busy: Callable[[], bool],
        locked: Callable[[], None],
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        self._settings = settings
        self._seal = seal
        self._unsealed = unsealed
        self._busy = busy
        self._locked = locked
        self._clock = clock
        self._last = clock()
        self._idle: asyncio.Task[None] | None = None
        self.logind = Logind(self._on_lock, self._on_sleep)

    def used(self) -> None:
        """Something counts as use, now."""
        self._last = self._clock()

    def start(self) -> None:
        """Begin to watch, in the background."""
        if self._settings.seal_after and self._idle is None:
            self._idle = asyncio.create_task(self._watch())
        self.logind.start()  # also where it seals nothing: presence is forgotten on lock

    async def close(self) -> None:
        """Stop watching."""
        if self._idle is not None:
            self._idle.cancel()
        await self.logind.close()

    def describe(self) -> str:
        """When it seals itself, in words."""
        settings = self._settings
        when = [f"after {_span(settings.seal_after)} without use"] if settings.seal_after else []
        heard = self.logind.watching
        told = [*(["on lock"] if settings.seal_on_lock else []), *(["before sleep"] if settings.seal_on_sleep else [])]
        when += told if heard else []
        said = ", ".join(when) or "never by itself"
        if told and not heard:
            said += f"; not {' or '.join(told)}: {self.logind.state}"
        return said

    async def _watch(self) -> None:
        after = self._settings.seal_after
        while True:
            left = self._last + after - self._clock()
            await asyncio.sleep(min(_LONGEST_NAP, max(0.05, left)))
            try:
                if not self._unsealed() or self._busy():
                    self.used()
                elif self._clock() - self._last >= after:
                    await self._seal("idle")
            except Exception:
                log.exception("sealing after idleness failed")

    async def _on_lock(self) -> None:
        self._locked()
        if self._settings.seal_on_lock and self._unsealed():
            await self._seal("lock")

    async def _on_sleep(self) -> None:
        self._locked()
        if self._settings.seal_on_sleep and self._unsealed():
            await self._seal("sleep")


def _span(seconds: int) -> str:
    for size, name in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
