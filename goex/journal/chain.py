"""Appending to the chain, and verifying it.

Rules: one writer; a row and whatever it speaks of (a state, a consumed grant, a sealed record) are one transaction
with `synchronous=FULL`; the head announces each commit; when the head can't be written, nothing is committed. Row n's
hash covers row n-1's hash and every column, so an edit, a gap or another order shows. Without the vault's key rows can
be read, and nothing can be appended.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, desc, event, insert, select
from sqlalchemy.exc import SQLAlchemyError

from goex.journal.head import Head, Mark, Span
from goex.journal.schema import journal, migrate
from goex.journal.walk import GENESIS, Walk, sealed
from policies.errors import ExitStatus, GoexError, Unavailable
from policies.jsonvalue import JsonObject, canonical

_APPEND = insert(journal)  # made once: building a statement costs more than running it


class JournalBroken(GoexError):
    """The journal isn't what was written. Nothing is appended to it any more."""

    code = "journal-broken"
    exit_status = ExitStatus.CONFLICT


class JournalFailed(Unavailable):
    """The disk or the database refused: the step wasn't written."""

    code = "state"


class JournalLocked(Unavailable):
    """No key yet: the vault hasn't been unlocked since the daemon started."""

    code = "sealed"
    exit_status = ExitStatus.SEALED


def utc_now() -> datetime:
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds: sorts as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    number: int
    at: str
    action_id: str
    agent: str
    kind: str
    from_state: str
    to_state: str
    facts: str
    hash: bytes

    def seal(self, previous: bytes) -> bytes:
        """The hash that this row must have after a row with `previous`."""
        body = [self.number, self.at, self.action_id, self.agent, self.kind, self.from_state, self.to_state, self.facts]
        return hashlib.sha256(previous + canonical(body)).digest()


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole chain found. `authenticated`: the head's MAC was checked too."""

    good: bool
    rows: int
    head: str
    problem: str
    authenticated: bool


class Transaction:
    """One transaction of the journal: rows, and the changes that they speak of."""

    def __init__(self, connection: Connection, mark: Mark, now: str) -> None:
        self.connection = connection
        self.now = now
        self.mark = mark

    def append(
        self,
        kind: str,
        *,
        action_id: str = "",
        agent: str = "",
        facts: JsonObject | None = None,
        from_state: str = "",
        to_state: str = "",
    ) -> int:
        """Append a row; returns its number."""
        text = canonical(dict(facts or {})).decode("utf-8")
        number = self.mark.count + 1
        row = Row(number, self.now, action_id, agent, kind, from_state, to_state, text, b"")
        row_hash = row.seal(self.mark.hash)
        self.connection.execute(
            _APPEND,
            {
                "number": number,
                "at": self.now,
                "action_id": action_id,
                "agent": agent,
                "kind": kind,
                "from_state": from_state,
                "to_state": to_state,
                "facts": text,
                "hash": row_hash,
            },
        )
        self.mark = Mark(number, row_hash)
        return number


class Journal:
    """The daemon's state database, and the chain in it."""

    def __init__(self, path: Path, head: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """Open or create. Raises Unavailable when the file can't be used."""
        self.clock = clock
        self._head_path = head
        self._head = Head(head)
        self._key: bytes | None = None
        self._lock = threading.RLock()  # runtimes work in threads; rows are written one at a time
        self.engine = _open(path)
        try:
            migrate(self.engine)
            self._mark = self._last()
        except SQLAlchemyError as error:
            raise _translated(error, path) from error
        self._path = path

    @property
    def unlocked(self) -> bool:
        return self._key is not None

    @property
    def count(self) -> int:
        return self._mark.count

    def unlock(self, key: bytes) -> None:
        """Take the MAC key, and compare the head with the chain's end.

        Raises JournalBroken when rows are missing, or aren't the ones that the head speaks of.
        """
        span = self._head.read(key)
        if span is None and (self._head.exists() or self._mark.count):
            raise JournalBroken(
                "The journal's head is missing or isn't authentic.",
                next_step="See `goex log --verify`; restore the state folder from a backup, or move it away.",
            )
        end = self._last()
        problem = "" if span is None or end in (span.before, span.after) else _misfit(end, span)
        if problem:
            raise JournalBroken(problem, next_step="Restore the state folder from a backup, or move it away.")
        self._key, self._mark = key, end
        self._head.write(Span(self._mark, self._mark), key, sync=True)

    def fits(self, key: bytes) -> bool:
        """Whether this is the MAC key that the journal was written with; any is, before there is anything in it."""
        if self._key is not None:
            return hmac.compare_digest(self._key, key)
        return self._head.read(key) is not None or not (self._head.exists() or self._mark.count)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Rows and the changes that they speak of, all or nothing. Raises Unavailable when the disk refuses.

        When the block raises, nothing of it stays.
        """
        with self._lock:
            if self._key is None:
                raise JournalLocked(
                    "The vault hasn't been opened since the daemon started, so nothing can be written down.",
                    next_step="Open it: goex vault unlock (or, the first time, goex vault init)",
                )
            try:
                with self.engine.begin() as connection:
                    opened = Transaction(connection, self._mark, stamp(self.clock()))
                    yield opened
                    self._head.write(Span(self._mark, opened.mark), self._key, sync=True)
            except SQLAlchemyError as error:
                raise _translated(error, self._path) from error
            self._mark = opened.mark
            # Not synced: without it the head still says where the chain may end, if less exactly.
            self._head.write(Span(self._mark, self._mark), self._key, sync=False)

    def append(self, kind: str, **columns: Any) -> int:
        """One row in a transaction of its own."""
        with self.transaction() as transaction:
            return transaction.append(kind, **columns)

    def read(self) -> Connection:
        """A connection for reading; close it."""
        return self.engine.connect()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, whose errors are ours: JournalBroken for text that was never written."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _translated(error, self._path) from error

    def rows(
        self, *, action_id: str = "", agent: str = "", kind: str = "", before: int = 0, limit: int = 50
    ) -> tuple[Row, ...]:
        """The newest rows first."""
        query = select(journal).order_by(desc(journal.c.number)).limit(limit)
        if action_id:
            query = query.where(journal.c.action_id == action_id)
        if agent:
            query = query.where(journal.c.agent == agent)
        if kind:
            query = query.where(journal.c.kind == kind)
        if before:
            query = query.where(journal.c.number < before)
        with self.engine.connect() as connection:
            return tuple(Row(*row) for row in connection.execute(query))

    def authentic(self, since: int) -> tuple[Row, ...]:
        """The rows from number `since` on, recomputed up to the end that the head vouches for.

        Raises JournalBroken when one isn't what was written. Call it once the key is there.
        """
        found: list[Row] = []
        until = self._mark
        with self.reading() as connection:
            earlier = select(journal.c.hash).where(journal.c.number == since - 1)
            end = Mark(since - 1, connection.execute(earlier).scalar() or b"") if since > 1 else Mark(0, GENESIS)
            query = select(journal).where(journal.c.number.between(since, until.count)).order_by(journal.c.number)
            for raw in connection.execute(query):
                made = sealed(end.hash, tuple(raw))
                if raw.number != end.count + 1 or not made or made != raw.hash:
                    break
                end = Mark(raw.number, made)
                found.append(Row(*raw))
        if self._key is None or end != until:
            raise JournalBroken(
                f"The journal's row {end.count + 1} isn't what was written.", next_step="goex log --verify"
            )
        return tuple(found)

    def verify(self, progress: Callable[[int], None] | None = None) -> Verification:
        """Recompute the whole chain, compare its end with the head, and each action with what its rows say.

        May run in a thread: most of it goes beside the writer, and the last rows are read while it waits. `progress`
        is told how many rows were checked.
        """
        walk = Walk(progress)
        with self.reading() as connection:
            problem = walk.on(connection)
            connection.rollback()  # a new snapshot, for the rows that came meanwhile
            with self._lock:
                problem = problem or walk.on(connection) or walk.compare(connection)
                if not problem and self._key is not None:
                    span = Head(self._head_path).read(self._key)
                    if span is None:
                        problem = "The head is missing or isn't authentic."
                    elif walk.end not in (span.before, span.after):
                        problem = _misfit(walk.end, span)
        if problem:
            return Verification(False, walk.end.count, "", problem, self._key is not None)
        return Verification(True, walk.end.count, walk.end.hash.hex(), "", self._key is not None)

    def head(self) -> tuple[Mark, bool]:
        """Where the chain ends now, and whether the head outside the database vouches for that with its MAC.

        False when the vault hasn't been opened: then nothing can be vouched for. Raises JournalBroken when the head
        speaks of another end.
        """
        with self._lock:
            end = self._last()
            if self._key is None:
                return end, False
            span = Head(self._head_path).read(self._key)
            if span is None or end not in (span.before, span.after):
                problem = "The journal's head isn't authentic." if span is None else _misfit(end, span)
                raise JournalBroken(problem, next_step="goex log --verify")
            return end, True

    def close(self) -> None:
        self.engine.dispose()

    def _last(self) -> Mark:
        with self.engine.connect() as connection:
            newest = connection.execute(
                select(journal.c.number, journal.c.hash).order_by(desc(journal.c.number)).limit(1)
            ).first()
        return Mark(newest.number, newest.hash) if newest else Mark(0, GENESIS)


def _misfit(end: Mark, span: Span) -> str:
    if end.count > span.after.count:
        return f"{end.count - span.after.count} rows were added behind the journal's back."
    return f"The journal ends at row {end.count} and should end at row {span.after.count}: it was cut or edited."


def _open(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 5.0})

    # The driver would commit behind our back before DDL and begin only before DML; so it is told to do neither.
    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _: object) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _translated(error: SQLAlchemyError | sqlite3.Error, path: Path) -> GoexError:
    cause = getattr(error, "orig", None) or error
    text = str(cause)
    if "decode" in text:
        return JournalBroken("The state database holds text that GoEx never wrote.", next_step="goex log --verify")
    if "full" in text:
        return JournalFailed(
            "The disk that holds GoEx's state is full: nothing was written.",
            next_step=f"Free some space below {path.parent}, then ask again.",
        )
    if "locked" in text:
        return JournalFailed("Another process holds the state database.", next_step="goex daemon status")
    return JournalFailed(
        f"The state database can't be used: {text.splitlines()[0][:200]}.", next_step="goex doctor says what is wrong."
    )
