"""Reading very many rows of one column of plain text, each ending in a line feed: PyMySQL makes a packet object and a
tuple of each, which takes longer than the server takes to find them. Here the packets are taken apart as they lie on
the connection's own buffered stream.

The wire's format: three bytes of length, one of order, then the row: the length of its text in one byte, or FC and two,
or FD and three, and the text. FB is NULL, FE in a short packet is the end, FF an error.
"""

from __future__ import annotations

import re
from typing import Any

import pymysql
from pymysql.cursors import Cursor

_FULL = 0xFFFFFF  # a longer row comes in several packets
_CHUNK = 1 << 20
_HEAD = r"(?s:....)(?:[^\xfb-\xff]|\xfc(?s:..)|\xfd(?s:...))"
_RUN = re.compile(rf"(?:{_HEAD}[0-9A-Za-z,.:+\- ]*\n)*")
_ROW = re.compile(rf"{_HEAD}(.*)\n")

MARK = "/* lines */ "  # in front of a query whose rows are read so


class TooLarge(Exception):
    """A row became NULL, since it is more than the server hands over."""


class LineCursor(Cursor):
    """A cursor whose marked queries give `lines`."""

    lines: list[str]

    def _query(self, q: Any) -> int:
        text = q if isinstance(q, str) else bytes(q).decode("utf-8", "replace")
        if not text.startswith(MARK):
            return int(super()._query(q))  # type: ignore[misc]
        connection: Any = self._get_db()  # type: ignore[attr-defined]
        self._clear_result()  # type: ignore[attr-defined]
        connection.query(q, unbuffered=True)
        result = connection._result
        try:
            self.lines = _read(connection) if result.unbuffered_active else []
        except BaseException:
            connection._force_close()
            raise
        finally:
            result.unbuffered_active, result.connection = False, None
        result.affected_rows, result.rows = len(self.lines), ()
        self._do_get_result()  # type: ignore[attr-defined]
        return len(self.lines)


def _read(connection: Any) -> list[str]:
    read = connection._rfile.read1
    found: list[str] = []
    waiting = b""
    while True:
        more = read(_CHUNK)
        if not more:
            raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
        waiting += more
        text = waiting.decode("latin1")
        run = _RUN.match(text)
        end = run.end() if run is not None else 0
        if end:
            found += _ROW.findall(text, 0, end)
            waiting = waiting[end:]
        while len(waiting) >= 4:  # what isn't a whole row of one packet
            size = int.from_bytes(waiting[:3], "little")
            if size == _FULL:
                whole = _joined(waiting)
                if whole is None:
                    break
                row, waiting = whole
                found += _ROW.findall("\0\0\0\0" + row.decode("latin1"))
                continue
            if len(waiting) < 4 + size:
                break
            first = waiting[4]
            if first == 0xFE and size < 9:
                return found
            if first == 0xFF:
                pymysql.err.raise_mysql_exception(waiting[4 : 4 + size])
            if first == 0xFB:
                raise TooLarge
            if _RUN.match(waiting[: 4 + size].decode("latin1")).end() == 4 + size:  # type: ignore[union-attr]
                break  # a row, which the next turn takes with those behind it
            raise pymysql.err.OperationalError(2027, "Malformed packet")


def _joined(waiting: bytes) -> tuple[bytes, bytes] | None:
    """The first row of several packets and what is behind it; None while it isn't all there."""
    row, at = b"", 0
    while True:
        if len(waiting) < at + 4:
            return None
        size = int.from_bytes(waiting[at : at + 3], "little")
        if len(waiting) < at + 4 + size:
            return None
        row += waiting[at + 4 : at + 4 + size]
        at += 4 + size
        if size < _FULL:
            return row, waiting[at:]
