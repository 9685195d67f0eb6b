"""Interrupting what a session of a database runs, as the daemon does: again and again until it has ended. A server
drops an interrupt that arrives between two statements, and on a busy machine the slow one may not have begun."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from runtimes.sql.session_thread import Session

_AGAIN = 0.2  # seconds, as runtimes.sql.session_thread has it


@contextmanager
def interrupting(session: Session, after: float) -> Iterator[None]:
    """Until what is inside ends, the session is interrupted from another thread, first after that many seconds."""
    ended = threading.Event()

    def again() -> None:
        wait = after
        while not ended.wait(wait):
            session.interrupt()
            wait = _AGAIN

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
