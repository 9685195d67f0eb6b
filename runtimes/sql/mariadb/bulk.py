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
_HEAD = r"[\s\S]{4}(?:\xfc[\s\S]{2}|\xfd[\s\S]{3}|[^\xfb-\xff])"
_RUN = re.compile(rf"(?:{_HEAD}[0-9A-Za-z,.:+\- ]*\n)*")
_ROWS: dict[str, re.Pattern[str]] = {}

Pairs = list[tuple[str, str]]
ALONE = "/* lines -- */ "  # in front of a query whose rows are read without their keys


class TooLarge(Exception):
    """A row became NULL, since it is more than the server hands over."""


def mark(width: int) -> str:
    """In front of a query whose rows are read so; its key are the first `width` fields of a row."""
    return f"/* lines {width:02} */ "


class LineCursor(Cursor):
    """A cursor whose marked queries give `pairs`: each row's key and its line; or `alone`: its line."""

    pairs: Pairs
    alone: list[str]

    def _query(self, q: Any) -> int:
        text = q if isinstance(q, str) else bytes(q).decode("utf-8", "replace")
        found = re.match(r"/\* lines (\d\d|--) \*/ ", text)
        if found is None:
            return int(super()._query(q))  # type: ignore[misc]
        connection: Any = self._get_db()  # type: ignore[attr-defined]
        self._clear_result()  # type: ignore[attr-defined]
        connection.query(q, unbuffered=True)
        result = connection._result
        try:
            read = _read(connection, _pattern(found[1])) if result.unbuffered_active else []
        except BaseException:
            connection._force_close()
            raise
        finally:
            result.unbuffered_active, result.connection = False, None
        if found[1] == "--":
            self.alone = read
        else:
            self.pairs = read
        result.affected_rows, result.rows = len(read), ()
        self._do_get_result()  # type: ignore[attr-defined]
        return len(read)


def _pattern(width: str) -> re.Pattern[str]:
    if width not in _ROWS:
        fields = 0 if width == "--" else int(width)
        key = ",".join([r"[^,\n]*"] * fields) if fields else r"[^\n]*"
        _ROWS[width] = re.compile(rf"{_HEAD}{'' if width == '--' else f'(?=({key}))'}([^\n]*)\n")
    return _ROWS[width]


def _read(connection: Any, rows: re.Pattern[str]) -> list[Any]:
    read = connection._rfile.read1
    found: list[Any] = []
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
            found += rows.findall(text, 0, end)
            waiting = waiting[end:]
        while len(waiting) >= 4:  # what isn't a whole row of one packet
            size = int.from_bytes(waiting[:3], "little")
            if size == _FULL:
                whole = _joined(waiting)
                if whole is None:
                    break
                row, waiting = whole
                found += rows.findall("\0\0\0\0" + row.decode("latin1"))
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
