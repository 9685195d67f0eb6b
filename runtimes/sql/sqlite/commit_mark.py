"""How it is found out after a kill whether a transaction was committed, where rows can't tell it: somebody else may
have made the same change, or have put it back.

A mark is taken of the open transaction, right before its COMMIT, and noted. Nothing of it is in the database.

* With a rollback journal: SQLite begins each journal with a random number that the checksums of its pages depend on.
  The journal is kept (PERSIST): a commit blanks its head, and whoever writes next overwrites or removes it. A blanked
  journal that goes on as the mark says, of a file whose change counter is one higher, is that transaction's.
* With a write-ahead log: the transaction's pages go into the log before the COMMIT, which then adds the first page of
  the file behind them. The checksum of a frame continues the one before it; where SQLite writes its pages as it does by
  itself, the first page comes first, so that the frames are others.
* A change counter that didn't go on says that nothing was committed.

What isn't there any more proves nothing: the answer is None then.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import apsw

from policies.jsonvalue import JsonObject
from runtimes.sql.sqlite.connection import Connection

# https://www.sqlite.org/fileformat2.html: 3 and 4.1
_HEAD = 28  # bytes of a journal's head that a commit blanks
_FIRST, _FRAME = 32, 24  # bytes of the head of a log, and of a frame's


@dataclass(frozen=True, slots=True)
class Mark:
    """What a transaction is known by. `kind`: "journal", "log", or "" where it can't be marked; `counter`: the file's
    change counter before it; `at`: where in the journal or log, for `size` bytes, whose SHA-256 is `digest`."""

    kind: str
    counter: int
    at: int = 0
    size: int = 0
    digest: str = ""

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, facts: JsonObject) -> Mark:
        """Raises KeyError, TypeError, ValueError."""
        numbers = {name: int(facts[name]) for name in ("counter", "at", "size")}
        return cls(kind=str(facts["kind"]), digest=str(facts["digest"]), **numbers)


class Marker:
    """Made before a transaction begins; `begin` is called before it writes, `mark` right before its COMMIT."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._frames = connection, 0
        with_log = str(connection.db.pragma("journal_mode")) == "wal"
        if with_log:  # how many frames the log holds; it may hold more once the transaction begins
            self._frames = connection.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]

    def begin(self) -> None:
        """Have the journal kept. Within a transaction the file isn't taken out of WAL by this."""
        if str(self._connection.db.pragma("journal_mode")) != "wal":
            self._connection.db.pragma("journal_mode", "persist")

    def mark(self) -> Mark:
        """Raises apsw.Error."""
        if str(self._connection.db.pragma("journal_mode")) == "wal":
            return self._of_log()
        counter = _counter(self._connection.db)
        head = _read(self._connection, "-journal", 0, _HEAD)
        if len(head) < _HEAD:
            return Mark("", counter)  # it has written nothing
        sector, page = struct.unpack(">II", head[20:28])
        first = _read(self._connection, "-journal", _HEAD, sector + page + 8 - _HEAD)  # a page, its number and checksum
        return Mark("journal", counter, _HEAD, len(first), _digest(first))

    def _of_log(self) -> Mark:
        db = self._connection.db
        db.cache_flush()
        db.pragma("user_version", db.pragma("user_version"))  # so that the first page is written, with its counter
        log = _Log(self._connection)
        last = None
        for at, _ in log.frames(self._frames):
            last = at
        # What was written over in the log, for want of memory, gets its checksum only with the commit.
        if last is None or log.belongs(last + log.size):
            return Mark("", -1)
        return Mark("log", _counter(db), last, log.size, _digest(log.frame(last)))

    def end(self) -> None:
        """What the mark was of isn't needed any more."""
        if str(self._connection.db.pragma("journal_mode")) == "persist":
            self._connection.db.pragma("journal_mode", "delete")


def committed(connection: Connection, mark: Mark) -> bool | None:
    """Whether the marked transaction was committed; None where nothing tells it any more. Called in a transaction.
    Raises apsw.Error."""
    connection.db.execute("SELECT count(*) FROM main.sqlite_schema").fetchall()  # nobody commits from here on
    if mark.kind == "log":
        log = _Log(connection)
        # Behind a log that began anew the frames of its older turn are still there, and prove nothing.
        if log.size == mark.size and log.belongs(mark.at) and _digest(log.frame(mark.at)) == mark.digest:
            number = (mark.at - _FIRST) // log.size + 1
            return any(ends for _, ends in log.frames(number))
    if str(connection.db.pragma("journal_mode")) == "wal" and _read(connection, "-wal", 0, 1):
        return None  # the counter is in the log, perhaps
    now = _counter(connection.db)
    if now == mark.counter:
        return False
    if mark.kind == "journal" and now == mark.counter + 1 and _read(connection, "-journal", 0, _HEAD) == bytes(_HEAD):
        return True if _digest(_read(connection, "-journal", mark.at, mark.size)) == mark.digest else None
    return None


class _Log:
    """A write-ahead log as it is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._head = _read(connection, "-wal", 0, _FIRST)
        self.size = _FRAME + int.from_bytes(self._head[8:12], "big")  # bytes of a frame

    def frame(self, at: int) -> bytes:
        return _read(self._connection, "-wal", at, self.size)

    def belongs(self, at: int) -> bool:
        """Whether a frame is there that isn't of an older turn of the log."""
        found = self.frame(at)
        return len(found) == self.size and found[8:16] == self._head[16:24]

    def frames(self, after: int) -> Iterator[tuple[int, bool]]:
        """Where the frames after that many begin, as long as each continues the one before; and whether it ends a
        transaction."""
        if len(self._head) < _FIRST:
            return
        order = ">" if self._head[3] & 1 else "<"
        at = _FIRST + after * self.size
        before = self.frame(at - self.size)[16:24] if after else self._head[24:32]
        if len(before) < 8:
            return
        first, second = struct.unpack(">II", before)
        while self.belongs(at):
            frame = self.frame(at)
            summed = frame[:8] + frame[_FRAME:]
            parts = struct.unpack(f"{order}{len(summed) // 4}I", summed)
            for place in range(0, len(parts), 2):
                first = (first + parts[place] + second) & 0xFFFFFFFF
                second = (second + parts[place + 1] + first) & 0xFFFFFFFF
            if struct.unpack(">II", frame[16:24]) != (first, second):
                return
            yield at, frame[4:8] != bytes(4)
            at += self.size


def _counter(db: apsw.Connection) -> int:
    """The change counter in the file itself."""
    return int.from_bytes(db.read("main", 0, 0, 100)[1][24:28], "big")


def _read(connection: Connection, suffix: str, at: int, size: int) -> bytes:
    """That part of the journal or log, as much as there is of it."""
    try:
        file = os.open(connection.pinned.path + suffix, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(file, size, at)
    except OSError:
        return b""
    finally:
        os.close(file)


def _digest(part: bytes) -> str:
    return hashlib.sha256(part).hexdigest()
