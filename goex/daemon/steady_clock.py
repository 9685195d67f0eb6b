"""The daemon's time. It never goes back, so that nothing lasts longer because the machine's clock was set back.

Rules: it is ahead of the machine's clock by as much as that was set back since the daemon started, and goes on as fast.
It is of this process alone: one that starts anew has the machine's time again, and what was granted at a later time
doesn't hold until then (`policies.grants.Grant.is_over`). So a clock that was wrong for a while ends grants early at
most; one that was right, and was set back before the start, ends tasks (`goex.daemon.unlock`). What would be gone for
good, as the snapshots of an undo, waits while it is `doubtful`.
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
        self._told = False
        self._set_forward = float("-inf")  # what `boot` was then

    def __call__(self) -> datetime:
        with self._lock:
            said = self._wall()
            boot = self._boot()  # after it: what passes in between never adds up
            since = timedelta(seconds=boot)
            if self._began > _NEVER and said - since - self._began > MUCH:
                log.warning("the machine's clock was set forward by %s", said - since - self._began)
                self._set_forward = boot
            self._began = max(self._began, said - since)
            now = self._began + since
            if now - said > MUCH and not self._told:
                self._told = True
                log.warning(
                    "the machine's clock was set back by %s; GoEx's goes on until the daemon is started anew",
                    now - said,
                )
            return now

    def doubtful(self) -> bool:
        """Whether it is ahead of the machine's clock, or that was set forward within the last hour."""
        return self() - self._wall() > MUCH or self._boot() - self._set_forward < _BELIEVED_AFTER
