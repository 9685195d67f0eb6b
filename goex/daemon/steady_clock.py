"""The daemon's time. It never goes back, so that nothing lasts longer because the machine's clock was set back.

Rules: it is ahead of the machine's clock by as much as that was set back since the daemon started, and goes on as fast.
It is of this process alone: one that starts anew has the machine's time again, and what was granted at a later time
doesn't hold until then (`policies.grants.Grant.is_over`). So a clock that was wrong for a while ends grants early at
most; one that was right, and was set back before the start, ends tasks (`goex.daemon.unlock`). What would be gone for
good, as the snapshots of an undo, goes by the `earliest` that it may be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

from goex.daemon.autoseal import boot_clock
from goex.journal.chain import utc_now

log = logging.getLogger("goex.daemon")

MUCH = timedelta(minutes=1)
_BELIEVED_AFTER = 3600.0  # seconds; a clock that is set wrong is put right before, or isn't soon
_NEVER = datetime.min.replace(tzinfo=UTC)


class SteadyClock:
    """Says what time it is, in UTC. `boot` are seconds that pass evenly, also while the machine sleeps."""

    def __init__(self, wall: Callable[[], datetime] = utc_now, boot: Callable[[], float] = boot_clock) -> None:
        self._wall = wall
        self._boot = boot
        self._lock = Lock()
        self._began = _NEVER  # when `boot` was 0, by the latest that the machine ever said
        self._began_last = _NEVER  # by what it said last
        self._began_before: list[tuple[float, datetime]] = []  # by what it said before it was set forward, at `boot`
        self._told = False

    def __call__(self) -> datetime:
        with self._lock:
            said = self._wall()
            boot = self._boot()  # after it: what passes in between never adds up
            since = timedelta(seconds=boot)
            began = said - since
            if self._began_last > _NEVER and began - self._began_last > MUCH:
                log.warning("the machine's clock was set forward by %s", began - self._began_last)
                self._began_before.append((boot, self._began_last))
            self._began_last = began
            self._began = max(self._began, began)
            now = self._began + since
            if now - said > MUCH and not self._told:
                self._told = True
                log.warning(
                    "the machine's clock was set back by %s; GoEx's goes on until the daemon is started anew",
                    now - said,
                )
            return now

    def earliest(self) -> datetime:
        """The earliest that it may be: by what the machine says, and what it said before it was set forward within
        the last hour."""
        self()
        with self._lock:
            boot = self._boot()
            self._began_before = [each for each in self._began_before if boot - each[0] < _BELIEVED_AFTER]
            return min([self._began_last, *(began for _, began in self._began_before)]) + timedelta(seconds=boot)
