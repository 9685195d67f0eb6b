"""Rows as PostgreSQL writes them: an image's lines, the text of a whole row, and results as JSON values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import psycopg

from policies.jsonvalue import JsonValue
from runtimes.sql.bounds import ResultRows
from runtimes.sql.contract import Limits, RowChange
from runtimes.sql.postgres.relations import Relation

SHOWN = 50  # rows of a sample
_LONGEST = 200  # characters of one shown value

_UNESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_FIELD = re.compile(r'"((?:[^"\\]++|""|\\\\)*+)"|([^,]*)')


def line(data: bytes) -> tuple[int, str, str]:
    """One line of an image: the table's number, "b" (before) or "a" (after), and the row."""
    number, side, text = data.rstrip(b"\n").split(b"\t")
    return int(number), side.decode(), unescaped(text).decode()


def unescaped(data: bytes) -> bytes:
    """A value of COPY's text form as it was."""
    if b"\\" not in data:
        return data
    return _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[1]), data)


def escaped(text: str) -> bytes:
    """A value for COPY's text form."""
    plain = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return plain.encode()


def values(text: str) -> list[str | None]:
    """The columns of a row's text, as record_out writes it: in parentheses, quotes and backslashes doubled."""
    found: list[str | None] = []
    place, end = 1, len(text) - 1
    while place <= end:
        if place == end or text[place] == ",":
            found.append(None)
        else:
            field = _FIELD.match(text, place, end)
            assert field is not None  # its second way takes anything
            quoted, plain = field.groups()
            found.append(plain if quoted is None else quoted.replace('""', '"').replace("\\\\", "\\"))
            place = field.end()
        place += 1
        if place == end + 1:
            break
    return found


class Sample:
    """The first rows that changed, for a person: pairs of before and after by key."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], list[str]] = {}

    def add(self, number: int, side: str, text: str) -> None:
        kept = self._found.setdefault((number, side), [])
        if len(kept) < SHOWN:
            kept.append(text)

    def full(self, number: int, side: str) -> bool:
        return len(self._found.get((number, side), ())) >= SHOWN

    def take(self, piece: bytes, number: int, side: str) -> None:
        """Lines that are all of one table and one side."""
        for each in piece.splitlines(keepends=True):
            if self.full(number, side):
                return
            self.add(*line(each))

    def changes(self, relations: list[Relation]) -> tuple[RowChange, ...]:
        made: list[RowChange] = []
        for number, relation in enumerate(relations):
            before = [_named(relation, text) for text in self._found.get((number, "b"), ())]
            after = [_named(relation, text) for text in self._found.get((number, "a"), ())]
            made += _paired(relation, before, after)
        return tuple(made[:SHOWN])


def _named(relation: Relation, text: str) -> Mapping[str, str | None]:
    found = values(text)
    if len(found) < len(relation.columns):  # a row of one column that is NULL is written as ()
        found += [None] * (len(relation.columns) - len(found))
    return {column.name: value for column, value in zip(relation.columns, found, strict=False)}


def _paired(
    relation: Relation, before: list[Mapping[str, str | None]], after: list[Mapping[str, str | None]]
) -> list[RowChange]:
    def key(row: Mapping[str, str | None]) -> tuple[str | None, ...]:
        return tuple(row[name] for name in relation.key)

    changes = []
    lacking = dict.fromkeys(range(len(after)))
    by_key = {key(row): index for index, row in enumerate(after)} if relation.key else {}
    unpaired = []
    for row in before:
        index = by_key.get(key(row)) if relation.key else None
        if index is None:
            unpaired.append(row)
            continue
        lacking.pop(index, None)
        if row != after[index]:
            changes.append(_change(relation, row, after[index]))
    # Where each side was cut, one that has no partner here may have one further on.
    whole = len(before) < SHOWN and len(after) < SHOWN
    if whole or not after:
        changes += [_change(relation, row, None) for row in unpaired]
    if whole or not before:
        changes += [_change(relation, None, after[index]) for index in lacking]
    return changes


def _change(
    relation: Relation, before: Mapping[str, str | None] | None, after: Mapping[str, str | None] | None
) -> RowChange:
    def short(row: Mapping[str, str | None] | None) -> Mapping[str, str | None] | None:
        if row is None:
            return None
        return {
            name: value if value is None or len(value) <= _LONGEST else value[:_LONGEST] + "…"
            for name, value in row.items()
        }

    return RowChange(table=relation.name, before=short(before), after=short(after))


# ---- results


class Gathered(ResultRows):
    """The rows of one statement, as libpq holds them."""

    def __init__(self, cursor: psycopg.Cursor[Any], limits: Limits, leave_out: int = 0) -> None:
        found = cursor.pgresult
        assert found is not None
        self._width = found.nfields - leave_out
        self._types = [found.ftype(index) for index in range(self._width)]
        columns = tuple((found.fname(index) or b"").decode() for index in range(self._width))
        super().__init__(columns, limits)

    def take(self, cursor: psycopg.Cursor[Any]) -> None:
        found = cursor.pgresult
        assert found is not None
        for index in range(found.ntuples):
            raw = [found.get_value(index, column) for column in range(self._width)]
            if self.fits(sum(len(value) for value in raw if value is not None)):
                self.rows.append(tuple(_json(kind, value) for kind, value in zip(self._types, raw, strict=True)))


def _json(kind: int, value: bytes | None) -> JsonValue:
    if value is None:
        return None
    text = bytes(value).decode("utf-8", "replace")
    if kind == 16:
        return text == "t"
    if kind in (20, 21, 23):
        return int(text)
    if kind in (700, 701):
        number = float(text)
        return number if math.isfinite(number) else text
    if kind in (114, 3802):
        try:
            return json.loads(text, parse_constant=str)
        except (ValueError, RecursionError):
            return text
    return text
