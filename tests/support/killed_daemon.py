"""Ends a daemon of the tests' with -9 at the point that the file GOEX_TEST_KILL_AT names holds, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any


def _reached(point: str) -> None:
    file = Path(os.environ["GOEX_TEST_KILL_AT"])
    if file.exists() and file.read_text() == point:
        file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def watch() -> None:
    """Begin, in the daemon's process."""
    from goex.engine.grant_store import GrantStore
    from runtimes.rest.runtime import RestRuntime

    consume, execute = GrantStore.consume, RestRuntime.execute

    def counting(self: GrantStore, *given: Any) -> None:
        consume(self, *given)
        _reached("counted, not written")

    async def effect(self: RestRuntime, *given: Any) -> Any:
        _reached("written, not sent")
        outcome = await execute(self, *given)
        _reached("sent, no outcome")
        return outcome

    GrantStore.consume = counting  # type: ignore[method-assign]
    RestRuntime.execute = effect  # type: ignore[method-assign]
