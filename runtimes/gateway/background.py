"""What takes a while to build from secrets: made in a thread, once, from when it is foreseen or first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, Protocol, TypeVar


class Dropped(Protocol):
    """What holds secrets."""

    def drop(self) -> None:
        """Forget them."""
        ...


Made = TypeVar("Made", bound=Dropped)


class Later(Generic[Made]):
    """To be awaited, by as many as like; one of them that is cancelled takes nothing from the others."""

    def __init__(self, make: Callable[[list[bytes]], Made], secrets: list[bytes]) -> None:
        self._make: Callable[[list[bytes]], Made] | None = make
        self._secrets = secrets
        self._future: asyncio.Future[Made] | None = None

    def begin(self) -> None:
        """Start making it. Idempotent."""
        if self._future is None and self._make is not None:
            secrets, self._secrets = self._secrets, []
            self._future = asyncio.ensure_future(asyncio.to_thread(self._make, secrets))
            self._future.add_done_callback(lambda future: future.cancelled() or future.exception())

    def __await__(self) -> Generator[Any, None, Made]:
        self.begin()
        if self._future is None:
            raise asyncio.CancelledError("the action has ended")
        return asyncio.shield(self._future).__await__()

    def drop(self) -> None:
        """Make it no more, and have it forget what it holds, as soon as it is made."""
        self._make, self._secrets = None, []
        if self._future is not None:
            self._future.add_done_callback(_drop)


def _drop(made: asyncio.Future[Any]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().drop()
