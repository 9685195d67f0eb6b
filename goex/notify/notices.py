"""Notifications of plain words, which nobody has to answer: through desktop-notifier.

Whatever fails here is only logged: a notice decides nothing, and what it says is in `goex log`, too.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from desktop_notifier import DesktopNotifier, Icon, Urgency

from goex.notify.card import Card
from goex.notify.freedesktop import APP, ICON

log = logging.getLogger("goex.notify")

_SECONDS = 10.0
_LAST_SECONDS = 2.0
_SHOWN_SECONDS = 8
_URGENCIES = {"low": Urgency.Low, "normal": Urgency.Normal, "critical": Urgency.Critical}


class Notices:
    """One-way notifications. `send` is for when a notification server is there."""

    def __init__(self) -> None:
        # Made at the first notice, since it opens a connection of its own.
        self._notifier: DesktopNotifier | None = None

    async def send(self, card: Card, *, markup: bool) -> None:
        """Show it for a few seconds. `markup`: whether the server reads it, which the library doesn't ask."""
        if self._notifier is None:
            self._notifier = DesktopNotifier(app_name=APP, app_icon=Icon(path=ICON))
        try:
            async with asyncio.timeout(_SECONDS):
                await self._notifier.send(
                    title=card.title,
                    message=card.body(markup=markup),
                    urgency=_URGENCIES[card.urgency],
                    timeout=_SHOWN_SECONDS,
                )
        except TimeoutError:
            log.warning("The notification server took too long for a notice.")

    async def clear(self) -> None:
        """Take down what is still shown."""
        if self._notifier is not None:
            with suppress(Exception):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._notifier.clear_all()
