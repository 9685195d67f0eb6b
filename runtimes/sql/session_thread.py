"""A database's session in a thread of its own: calls block there, and cancelling interrupts them.

Rules: work that has begun is waited for, also when its task is cancelled, since it may hold a transaction; it is
interrupted until it ends, and then rolls back by itself. Each session is closed by the thread that opened it.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from policies.errors import Conflict, GoexError


class Session(Protocol):
    """What a thread holds of a database while it works there."""

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


T = TypeVar("T")
S = TypeVar("S", bound=Session)
_AT_ONCE = 16
_AGAIN = 0.2  # seconds until what was interrupted is interrupted once more

_threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="goex-db")


# What opens a database, or checks a statement, isn't told by which name the person added it.
_ENTRY = re.compile(r"(?<=goex db show )NAME\b|(?<=goex db add )NAME\b|(?<=goex exec --db )NAME\b")


async def in_session(entry: str, opened: Callable[[], S], work: Callable[[S], T]) -> T:
    """Run `work` on a session of its own, of the database that was added as `entry`. Raises what opening and the work
    raise, with that name in its next step."""
    running: list[S] = []
    given_up = threading.Event()

    def run() -> T:
        session = opened()
        try:
            running.append(session)
            if given_up.is_set():
                raise Conflict("It was cancelled before it began.")
            return work(session)
        finally:
            running.clear()
            session.close()

    def run_named() -> T:
        try:
            return run()
        except GoexError as error:
            error.next_step = _ENTRY.sub(lambda _: shlex.quote(entry), error.next_step)
            raise

    task = asyncio.wrap_future(_threads.submit(run_named))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        given_up.set()
        while not task.done():
            for session in tuple(running):
                session.interrupt()
            try:
                await asyncio.wait({task}, timeout=_AGAIN)
            except asyncio.CancelledError:
                continue
        if not task.cancelled():
            task.exception()
        raise
