"""Transactions that are held by XA: named by their action, seen and ended from any connection, also after a crash.

The first part of a name is the action's id; the second tells the database and the tables that it writes, as short
hashes, so that whoever waits for a lock can be told who may hold it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from policies.errors import Unavailable
from runtimes.sql.mariadb import errors
from runtimes.sql.mariadb.wire import ServerError, Wire

_FORMAT = 0x476F
_MARK = "goex-"
_ANY = "*"
_MOST_TABLES = 8
_GONE = frozenset({errors.UNKNOWN_XID, 1402, 1613, 1614})  # rolled back, or never prepared
_FLUSH_SECONDS = 5.0  # InnoDB writes its log out once a second
_BUSY_SECONDS = 5.0  # until the server notices that the connection which prepared it has ended


@dataclass(frozen=True, slots=True)
class Xid:
    """A transaction's name."""

    action: str
    tables: str

    @property
    def sql(self) -> str:
        return f"X'{(_MARK + self.action).encode().hex()}',X'{self.tables.encode().hex()}',{_FORMAT}"


def name(action: str, database: str, tables: Iterable[str]) -> Xid:
    if len(action) > 56 or not action.isascii():
        action = hashlib.sha256(action.encode()).hexdigest()[:56]
    listed = sorted(set(tables))
    told = "".join(_short(table, 6) for table in listed) if len(listed) <= _MOST_TABLES else _ANY
    return Xid(action, _short(database, 8) + told)


def listed(wire: Wire) -> list[Xid]:
    """GoEx's transactions that are prepared on that server."""
    found = []
    for form, length, more, data in wire.rows("XA RECOVER"):
        raw = data if isinstance(data, bytes) else str(data).encode("latin1")
        action, tables = raw[: int(length)], raw[int(length) : int(length) + int(more)]
        if int(form) == _FORMAT and action.startswith(_MARK.encode()):
            found.append(Xid(action.decode("ascii", "replace").removeprefix(_MARK), tables.decode("ascii", "replace")))
    return found


def find(wire: Wire, action: str, database: str) -> Xid | None:
    """The prepared transaction of that action."""
    wanted = name(action, database, ())
    for xid in listed(wire):
        if xid.action == wanted.action and xid.tables[:8] == wanted.tables[:8]:
            return xid
    return None


def holders(wire: Wire, database: str, tables: Iterable[str]) -> tuple[str, ...]:
    """The actions that hold rows of those tables, or may."""
    home, wanted = _short(database, 8), {_short(table, 6) for table in tables}
    found = []
    for xid in listed(wire):
        told = xid.tables[8:]
        if xid.tables[:8] == home:
            parts = {told[at : at + 6] for at in range(0, len(told), 6)}
            if told == _ANY or not wanted or parts & wanted:
                found.append(xid.action)
    return tuple(sorted(found))


def end(wire: Wire, xid: Xid, verb: str) -> bool:
    """COMMIT or ROLLBACK a prepared transaction; False: it was gone. The connection that prepared it may have ended
    a moment ago, and until the server knows that nobody else can end it."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            wire.run(f"XA {verb} {xid.sql}")
            if verb == "ROLLBACK":
                _on_disk(wire)
            return True
        except ServerError as error:
            if error.number not in _GONE:
                raise
            there = any(other == xid for other in listed(wire))
            if not there:
                return error.number == 1402 and verb == "ROLLBACK"
            if time.monotonic() > until:
                raise Unavailable(
                    "The transaction is still bound to another connection.", next_step="Try again in a minute."
                ) from None
            time.sleep(0.02)


def _on_disk(wire: Wire) -> None:
    """Wait until what was done is on the server's disk. A commit is when it returns; a rollback isn't: a server that is
    killed within a second of it brings the transaction back, prepared, and its locks with it."""
    wanted = _log(wire, "current")
    until = time.monotonic() + _FLUSH_SECONDS
    while _log(wire, "flushed") < wanted and time.monotonic() < until:
        time.sleep(0.02)


def _log(wire: Wire, which: str) -> int:
    """A place in the server's log; 0 where it doesn't say."""
    rows = wire.rows(f"SHOW GLOBAL STATUS LIKE 'Innodb_lsn_{which}'")
    return int(rows[0][1]) if rows else 0


def _short(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
