"""A reader's connection to the catalog's file: one state of it at a time, and what is kept of it.

Rules: each question is answered from one state of the file, and what another process commits is seen by the next
question; what is kept in memory is bounded. A file that isn't there is an empty catalog; one that can't be used raises
StoreUnreadable from whatever needs it. Safe to share between threads.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from mapper.store.database import open_reading, translated

_T = TypeVar("_T")

LONGEST = 15.0  # seconds that one question may take, whatever somebody wrote into the file
_STEPS = 1_000_000  # of SQLite's machine between two looks at the clock
LEAST = 500  # what anything that is kept counts for
_CACHED = 4_000_000  # roughly bytes of JSON that are kept in memory, parsed


class Session:
    """The file at `path`, opened when it is first asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] = (0, 0)  # device and inode
        self._version = -1
        self._until = 0.0
        self._cache: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._cached = 0
        self._lock = threading.RLock()

    def close(self) -> None:
        """Let the file go. Asking again opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None
            self._forget()

    def _generation(self, db: sqlite3.Connection) -> int:
        row = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that sees one state of the file while this lasts; None where there is no file."""
        with self._lock, translated(self.path):
            db = self._connection()
            if db is None:
                yield None
                return
            if db.in_transaction:  # a question within a question
                yield db
                return
            self._until = time.monotonic() + LONGEST
            db.execute("BEGIN")
            try:
                (version,) = db.execute("PRAGMA data_version").fetchone()
                if version != self._version:
                    self._forget()
                    self._version = version
                yield db
            except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
                # No import writes what can't be read back, so somebody else did.
                raise sqlite3.DatabaseError(f"it holds something that no import writes ({error!r:.100})") from error
            finally:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection | None:
        try:
            found = os.lstat(self.path)
        except OSError:
            if self._db is not None:
                self.close()
            return None
        if self._db is not None and (found.st_dev, found.st_ino) != self._file:
            self.close()  # somebody put another file in its place
        if self._db is None:
            try:
                self._db = open_reading(self.path)
            except FileNotFoundError:
                return None
            self._db.text_factory = _text
            self._db.set_progress_handler(lambda: time.monotonic() > self._until, _STEPS)
            self._file = (found.st_dev, found.st_ino)
            self._version = -1
        return self._db

    # ---- what is kept

    def _keep(self, key: Hashable, make: Callable[[], _T], cost: int = LEAST) -> _T:
        kept: _T | None = self._kept(key)
        if kept is None:
            kept = make()
            if kept is not None:
                self._put(key, kept, cost)
        return kept

    def _kept(self, key: Hashable) -> Any:
        found = self._cache.get(key)
        if found is None:
            return None
        self._cache.move_to_end(key)
        return found[0]

    def _put(self, key: Hashable, value: Any, cost: int) -> None:
        cost = max(cost, LEAST)
        if (before := self._cache.pop(key, None)) is not None:
            self._cached -= before[1]
        self._cache[key] = (value, cost)
        self._cached += cost
        while self._cached > _CACHED and len(self._cache) > 1:
            _, (_, spared) = self._cache.popitem(last=False)
            self._cached -= spared

    def _forget(self) -> None:
        self._cache.clear()
        self._cached = 0


def _text(raw: bytes) -> str | bytes:
    """A cell's text; its bytes where they are none, so that one such row doesn't hide the others."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
