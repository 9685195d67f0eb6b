"""Appending to the chain, and verifying it.

Rules: one writer; a row and whatever it speaks of (a state, a consumed grant, a sealed record) are one transaction.
Row n's hash covers row n-1's hash and every column, so an edit, a gap or another order shows. Each row's hash is MACed
with a key of the vault, so nobody else can add one; the head, outside the database, says how far the chain reached at
least, so that none can be cut. Without that key rows can be read, and nothing can be appended.

A transaction is synced when it returns, and with it all before it. One that nothing hangs on yet (`lasting=False`: a
step before anything has an effect, before anybody is asked) is left to the next that is: it outlives this process, and
may be gone after a power failure, together with whatever would have come of it. The head never speaks of such rows, or
a power failure would look like a cut.

The head lies beside the database, so an older copy of both fits. How far the chain has come is therefore noted in the
vault as well (goex.daemon.anchor): a chain that doesn't hold the row that the vault knows isn't unlocked.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, desc, insert, select
from sqlalchemy.exc import SQLAlchemyError

from goex.journal.errors import JournalBehind, JournalBroken, JournalFailed, JournalLocked
from goex.journal.head import Head, Mark, Span
from goex.journal.openable import Opener
from goex.journal.schema import ROW, Prepared, driver, journal, migrate, open_engine
from goex.journal.walk import GENESIS, Walk, sealed
from policies.display_text import counted
from policies.errors import GoexError, Unavailable
from policies.jsonvalue import JsonObject, canonical
from policies.regular_file import open_regular

log = logging.getLogger("goex.journal")

_APPEND = Prepared(insert(journal))
_END = select(journal.c.number, journal.c.hash, journal.c.mac).order_by(desc(journal.c.number)).limit(1)
_VOUCHED = struct.Struct(">8sQ32s")
_MAGIC = b"goexrow\0"


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
    """What a check of the whole chain found. `authenticated`: the head's MAC was checked too. Of one that is `good`
    `problem` says what is sealed that the vault can't open any more."""

    good: bool
    rows: int
    head: str
    problem: str
    authenticated: bool
    signed: int = 0  # rows that a passkey signed
    unproven: tuple[str, ...] = ()  # in words: what no passkey signed, though one is to be expected


@dataclass(frozen=True, slots=True)
class _End:
    """The newest row; `mac` is b"" on rows of a GoEx that made none."""

    mark: Mark
    mac: bytes


class Transaction:
    """One transaction of the journal: rows, and the changes that they speak of."""

    def __init__(self, connection: Connection, mark: Mark, now: str, key: bytes) -> None:
        self.connection = connection
        self.now = now
        self.mark = mark
        self.anchored = False  # whether a row has to be
        self._key = key

    def append(
        self,
        kind: str,
        *,
        action_id: str = "",
        agent: str = "",
        facts: JsonObject | None = None,
        from_state: str = "",
        to_state: str = "",
        anchored: bool = False,
    ) -> int:
        """Append a row; returns its number. `anchored`: the vault has to know of it before it is acknowledged, since
        whoever could put back the journal of before would undo it."""
        self.anchored |= anchored
        text = canonical(dict(facts or {})).decode("utf-8")
        number = self.mark.count + 1
        row = Row(number, self.now, action_id, agent, kind, from_state, to_state, text, b"")
        row_hash = row.seal(self.mark.hash)
        _APPEND.run(
            self.connection,
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
                "mac": _mac(Mark(number, row_hash), self._key),
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
        self.engine = open_engine(path)
        self._path = path
        try:
            migrate(self.engine)
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise _translated(error, path) from error
        self._mark = self._end().mark
        self._synced = self._mark  # how far the disk is known to have it
        self._owed = 0
        self._refused = ""
        self._writer: Connection | None = None
        self._behind = False  # whether the head couldn't be told of that

    @property
    def unlocked(self) -> bool:
        return self._key is not None

    @property
    def count(self) -> int:
        return self._mark.count

    @property
    def synced(self) -> Mark:
        """How far the disk has it: no power failure makes it end before that."""
        return self._synced

    @property
    def owed(self) -> int:
        """The newest row that the vault has to know of before it is acknowledged; 0 when there was none."""
        return self._owed

    def unlock(self, key: bytes, reached: Mark | None = None) -> None:
        """Take the MAC key, and compare the head with the chain's end, and the chain with how far it had `reached`.

        Raises JournalBroken when rows are missing, or aren't the ones that the head speaks of; JournalBehind when the
        chain isn't the one that had reached that.
        """
        try:
            self._unlock(key, reached)
        except JournalBroken as error:
            self._refused = error.message
            raise
        self._refused = ""

    def lock(self) -> None:
        """Forget the key: nothing is appended until it is unlocked again."""
        with self._lock:
            self._key = None

    def _unlock(self, key: bytes, reached: Mark | None) -> None:
        span = self._head.read(key)
        if span is None and (self._head.exists() or self._mark.count):
            raise JournalBroken(
                "The journal's head is missing or isn't authentic.",
                next_step="See `goex log --verify`; restore the state folder from a backup, or move it away.",
            )
        end = self._end()
        problem = "" if span is None else self._misfit(end, span, key)
        if problem:
            raise JournalBroken(problem, next_step="Restore the state folder from a backup, or move it away.")
        if reached is not None and (problem := self._behind_what(end.mark, reached)):
            raise JournalBehind(
                problem,
                next_step="Put back the newest copy of the whole state folder. To go on with the log as it is, without "
                "any grant, agent or rule of before: goex vault unlock --accept-log",
            )
        self._sync()
        self._key, self._mark, self._synced = key, end.mark, end.mark
        self._head.write(self._synced, key, sync=True)

    def fits(self, key: bytes) -> bool:
        """Whether this is the MAC key that the journal was written with; any is, before there is anything in it."""
        if self._key is not None:
            return hmac.compare_digest(self._key, key)
        return self._head.read(key) is not None or not (self._head.exists() or self._mark.count)

    def secret_hash(self, text: bytes) -> str:
        """A hash that nobody makes without the key. Raises JournalLocked."""
        return hmac.digest(self._held(), b"goex.v1.text\0" + text, hashlib.sha256).hex()

    def _held(self) -> bytes:
        if self._key is None:
            raise JournalLocked(
                "The vault hasn't been opened since the daemon started, so nothing can be written down.",
                next_step="Open it: goex vault unlock (or, the first time, goex vault init)",
            )
        return self._key

    @contextmanager
    def transaction(self, *, lasting: bool = True) -> Iterator[Transaction]:
        """Rows and the changes that they speak of, all or nothing: synced when this returns, if `lasting`. Raises
        Unavailable when the disk refuses.

        When the block raises, nothing of it stays.
        """
        with self._lock:
            key = self._held()
            if self._behind:
                self._head.write(self._synced, key, sync=False)
                self._behind = False
            try:
                with self._writing(lasting) as connection:
                    opened = Transaction(connection, self._mark, stamp(self.clock()), key)
                    yield opened
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise _translated(error, self._path) from error
            grown, self._mark = opened.mark != self._mark, opened.mark
            if lasting and grown:  # without a row nothing was written, so nothing may have been synced
                self._vouch(key)
            if opened.anchored:
                self._owed = self._mark.count

    @contextmanager
    def _writing(self, lasting: bool) -> Iterator[Connection]:
        if self._writer is None:
            self._writer = self.engine.connect()  # kept: to get one takes as long as to write a row
        below = driver(self._writer)
        if not lasting:
            below.execute("PRAGMA synchronous=NORMAL")
        try:
            below.execute("BEGIN")  # by the driver: SQLAlchemy's own way takes longer than the rows
            yield self._writer
            below.commit()
        finally:
            below.rollback()  # what wasn't committed
            self._writer.rollback()  # SQLAlchemy's account of it
            if not lasting:
                below.execute("PRAGMA synchronous=FULL")

    def _vouch(self, key: bytes) -> None:
        """Tell the head, which is outside, that all there is has been synced."""
        self._synced = self._mark
        try:
            # Not synced: what an older head says is true as well.
            self._head.write(self._synced, key, sync=False)
        except Unavailable as error:
            self._behind = True  # it was committed all the same; nothing more is, until the head can be written
            log.error("%s", error)

    def append(self, kind: str, *, lasting: bool = True, **columns: Any) -> int:
        """One row in a transaction of its own."""
        with self.transaction(lasting=lasting) as transaction:
            return transaction.append(kind, **columns)

    @contextmanager
    def read(self) -> Iterator[Connection]:
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
        named = {"action_id": action_id, "agent": agent, "kind": kind}
        wanted = [journal.c[name] == value for name, value in named.items() if value]
        if before:
            wanted.append(journal.c.number < before)
        query = select(*ROW).where(*wanted).order_by(desc(journal.c.number)).limit(limit)
        with self.read() as connection:
            return tuple(Row(*row) for row in connection.execute(query))

    def authentic(self, since: int) -> tuple[Row, ...]:
        """The rows from number `since` on, recomputed up to the end that the head vouches for.

        Raises JournalBroken when one isn't what was written. Call it once the key is there.
        """
        until = self._mark
        found, end = self._recomputed(since, until.count)
        if self._key is None or end != until:
            raise JournalBroken(
                f"The journal's row {end.count + 1} isn't what was written.", next_step="goex log --verify"
            )
        return found

    def _recomputed(self, since: int, until: int) -> tuple[tuple[Row, ...], Mark]:
        """The rows from `since` to `until` as far as each follows from the one before, and where that ends."""
        found: list[Row] = []
        with self.read() as connection:
            earlier = select(journal.c.hash).where(journal.c.number == since - 1)
            end = Mark(since - 1, connection.execute(earlier).scalar() or b"") if since > 1 else Mark(0, GENESIS)
            query = select(*ROW).where(journal.c.number.between(since, until)).order_by(journal.c.number)
            for raw in connection.execute(query):
                made = sealed(end.hash, tuple(raw))
                if raw.number != end.count + 1 or not made or made != raw.hash:
                    break
                end = Mark(raw.number, made)
                found.append(Row(*raw))
        return tuple(found), end

    def verify(self, progress: Callable[[int], None] | None = None, opener: Opener | None = None) -> Verification:
        """Recompute the whole chain, compare its end with the head, and each action, and what is sealed of it, with
        what its rows say. With `opener` it also looks whether what is sealed can be opened.

        May run in a thread: most of it goes beside the writer, and the last rows are read while it waits. `progress`
        is told how many rows were checked.
        """
        walk, lost = Walk(progress), ""
        with self.read() as connection:
            connection.begin()  # one snapshot, of the rows and of what they speak of
            problem = walk.on(connection) or walk.compare_records(connection) or walk.compare_plans(connection)
            if not problem and opener is not None:
                lost = walk.unopened(connection, opener)
            connection.rollback()  # a new one, for the rows that came meanwhile
            with self._lock:
                problem = problem or walk.on(connection) or walk.compare_records(connection)
                problem = problem or walk.compare_plans(connection) or walk.compare(connection)
                if not problem and self._key is not None:
                    span = Head(self._head_path).read(self._key)
                    if span is None:
                        problem = "The head is missing or isn't authentic."
                    else:
                        problem = self._misfit(self._end(), span, self._key) or self._another()
        problem = problem or (self._refused if self._key is None else "")
        if problem:
            return Verification(False, walk.end.count, "", problem, self._key is not None)
        return Verification(
            True,
            walk.end.count,
            walk.end.hash.hex(),
            lost,
            self._key is not None,
            walk.signatures.signed,
            tuple(walk.signatures.unproven),
        )

    def head(self) -> tuple[Mark, bool]:
        """Where the chain ends now, and whether the head outside the database vouches for that with its MAC.

        False when the vault hasn't been opened: then nothing can be vouched for. Raises JournalBroken when the head
        speaks of another end.
        """
        with self._lock:
            end = self._end()
            if self._key is None:
                return end.mark, False
            span = Head(self._head_path).read(self._key)
            problem = "The journal's head isn't authentic." if span is None else self._misfit(end, span, self._key)
            if problem := problem or self._another():
                raise JournalBroken(problem, next_step="goex log --verify")
            return end.mark, True

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.engine.dispose()

    def _end(self) -> _End:
        with self.read() as connection:
            newest = connection.execute(_END).first()
        return _End(Mark(newest.number, newest.hash), newest.mac or b"") if newest else _End(Mark(0, GENESIS), b"")

    def _misfit(self, end: _End, span: Span, key: bytes) -> str:
        """Why the chain can't end there, as far as its last row and the head tell; "" when it can."""
        if end.mark in (span.before, span.after):
            return ""
        if end.mark.count <= span.after.count:
            return (
                f"The journal ends at row {end.mark.count} and should end at row {span.after.count}: it was cut or"
                " edited."
            )
        # The head is told of a row after it was synced, if at all: we may have written more.
        if self._mark_at(span.after.count) == span.after and hmac.compare_digest(end.mac, _mac(end.mark, key)):
            return ""
        added = end.mark.count - span.after.count
        return f"{'1 row was' if added == 1 else f'{added} rows were'} added behind the journal's back."

    def _another(self) -> str:
        """Why the file isn't the one that this process wrote; "" when it is."""
        return "" if self._end().mark == self._mark else "The journal was replaced while the daemon ran."

    def _behind_what(self, end: Mark, reached: Mark) -> str:
        """Why this isn't the chain that had `reached` that row, as the vault knows; "" when it is."""
        if not end.count:
            return f"The log is gone: the vault knows {counted(reached.count, 'row')} of it."
        if end.count < reached.count:
            return f"The log ends at row {end.count}, and the vault knows {reached.count}: an older copy was put back."
        found, last = self._recomputed(reached.count, end.count)
        if last != end or not found or found[0].hash != reached.hash:
            return f"The log isn't the one that the vault knows: its row {reached.count} is another one."
        return ""

    def _mark_at(self, number: int) -> Mark:
        if number == 0:
            return Mark(0, GENESIS)
        with self.read() as connection:
            found = connection.execute(select(journal.c.hash).where(journal.c.number == number)).scalar()
        return Mark(number, found or b"")

    def _sync(self) -> None:
        """Bring to the disk what a process that was killed left with the kernel. Raises Unavailable."""
        # Of the database itself no descriptor may be closed here: this process's locks on it would go with it.
        log_ahead = self._path.with_name(f"{self._path.name}-wal")
        try:
            handle = open_regular(log_ahead)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalFailed(
                f"The state database can't be synced: {error.strerror}.",
                next_step="goex doctor says what is wrong.",
            ) from error


def _mac(mark: Mark, key: bytes) -> bytes:
    return hmac.digest(key, _VOUCHED.pack(_MAGIC, mark.count, mark.hash), hashlib.sha256)


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
