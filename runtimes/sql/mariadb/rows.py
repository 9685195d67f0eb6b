"""A row as one line of plain text that loses nothing, made by the server; and the way back into SQL.

Each column becomes a field: "N" for NULL; integers, decimals, floats (as the double that they are), bits, years, and
the numbers of ENUM and SET as digits; dates and times as they are written (zero dates too, time zone UTC); all else as
the hex of its bytes, in the column's own character set. So two rows are the same exactly when their lines are, also
where a collation takes 'a' for 'A'. The columns that name a row come first.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypeVar

from policies.errors import Conflict, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.sql.contract import Table
from runtimes.sql.mariadb import bulk
from runtimes.sql.mariadb.errors import cut, quoted, string
from runtimes.sql.mariadb.wire import Wire

_WHOLE = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal"}
_FLOAT = {"float", "double"}
_NUMBERED = {"year", "bit", "enum", "set"}  # adding 0 gives their number
_TIMES = {"date", "datetime", "timestamp", "time"}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_SHAPES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
           "geometrycollection"}  # fmt: skip
_WRITTEN = {"uuid", "inet4", "inet6"}
KNOWN = _WHOLE | _FLOAT | _NUMBERED | _TIMES | _TEXTS | _BYTES | _SHAPES | _WRITTEN
_CODECS = {"utf8mb3": "utf8", "utf8mb4": "utf8", "ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le",
           "utf32": "utf-32-be", "latin1": "cp1252", "sjis": "shift_jis"}  # fmt: skip
NULL = "N"
BATCH = 1000
MANY = 20_000  # rows from which on reading all of a table is thought of
LOCK = " FOR UPDATE"


@dataclass(frozen=True)
class Form:
    """How the rows of one table are written down. `key` (): a row is named by all that it holds."""

    table: str
    columns: tuple[str, ...]  # the ones that name a row first; virtual ones aren't kept
    kinds: tuple[tuple[str, str], ...]  # of each: data type, character set
    stored: frozenset[str]  # generated ones that are kept: they are compared, never written
    key: tuple[str, ...]
    shape: str  # a digest of the table's definition, as far as rows depend on it
    filled: frozenset[str] = frozenset()  # columns that are never NULL, as far as that is known

    @classmethod
    def of(cls, table: Table, early: frozenset[str] = frozenset()) -> Form:
        """`early` are columns that come right behind the key. Raises Unsupported for a type that isn't known."""
        forms, key = table.facts["forms"], tuple(table.facts["identity"])
        kept = [column.name for column in table.columns if forms[column.name][3] != "virtual"]
        for name in kept:
            if forms[name][0] not in KNOWN:
                raise Unsupported(f"{table.name}.{name} is of the type {forms[name][0][:40]}, which GoEx can't keep.")
        kept.sort(key=lambda name: name not in early)
        columns = (*key, *(name for name in kept if name not in key))
        return cls(
            table=table.name,
            columns=columns,
            kinds=tuple((forms[name][0], forms[name][1]) for name in columns),
            stored=frozenset(name for name in kept if forms[name][3] == "stored"),
            key=key,
            shape=str(table.facts["shape"]),
            filled=frozenset(column.name for column in table.columns if not column.nullable),
        )

    def fits(self, table: Table) -> bool:
        """Whether its rows are still written down so, and named so: other indexes and foreign keys may be there."""
        whole = [[name for name, part in index if part is None] for index in table.facts["uniques"].values()]
        defined = (table.facts["shape"], table.facts["digest"])
        return self.shape in defined and (not self.key or list(self.key) in whole)

    # ---- reading

    def line(self, alias: str = "") -> str:
        """The SQL expression of a row's line."""
        fields = []
        for name, (kind, _) in zip(self.columns, self.kinds, strict=True):
            column = (f"{quoted(alias)}." if alias else "") + quoted(name)
            # Not IFNULL, nor CONCAT_WS: a value that is too large for one packet becomes NULL on the way, and so has
            # the whole line to.
            read = _read(column, kind)
            fields.append(read if name in self.filled else f"IF({column} IS NULL,'{NULL}',{read})")
        between = ",',',"
        return f"CONCAT({between.join(fields)})"

    def prefix(self, width: int) -> str:
        """The expression of a row's first `width` fields, with the comma behind them."""
        head = replace(self, columns=self.columns[:width], kinds=self.kinds[:width]).line()
        return f"{head[:-1]},',\\n')"

    def ended(self, alias: str = "") -> str:
        """The same with a line feed behind it, as `select` reads it."""
        return f"{self.line(alias)[:-1]},'\\n')"

    def key_of(self, line: str) -> str:
        """The part of a line that names its row."""
        width = len(self.key)
        if width == 1:
            return line.partition(",")[0]
        return ",".join(line.split(",", width)[:width]) if width else line

    def keys_of(self, lines: Sequence[str]) -> list[str]:
        if len(self.key) == 1:  # the most frequent, and as fast as Python can
            return [line.partition(",")[0] for line in lines]
        return [self.key_of(line) for line in lines]

    def value(self, line: str, names: Iterable[str]) -> tuple[str, ...]:
        """Fields of a line."""
        fields = line.split(",")
        return tuple(fields[self._places[name]] for name in names)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}

    def many(self, wire: Wire, keys: int) -> bool:
        """Whether reading all rows is quicker than naming so many. Only where keys that are the same have the same
        bytes: else the row of another key may be meant."""
        whole = {"tinyint", "smallint", "mediumint", "int", "bigint"}
        if keys < MANY or not all(kind in whole for kind, _ in self.kinds[: len(self.key)]):
            return False
        (guess,) = wire.one(
            "SELECT table_rows FROM information_schema.tables"
            f" WHERE table_schema = DATABASE() AND table_name = {string(self.table)}"
        )
        return int(guess or 0) < 1.3 * keys

    # ---- writing

    def literal(self, name: str, field: str) -> str:
        """A field as SQL."""
        return _write(field, *self.kinds[self._places[name]])

    def among(self, names: tuple[str, ...], values: Iterable[tuple[str, ...]], alias: str = "") -> str:
        """The SQL condition that those columns hold one of those values. None of the values is NULL."""
        columns = [(f"{quoted(alias)}." if alias else "") + quoted(name) for name in names]
        made = [tuple(self.literal(name, field) for name, field in zip(names, one, strict=True)) for one in values]
        if len(columns) == 1:
            return f"{columns[0]} IN ({','.join(one[0] for one in made)})"
        return f"({','.join(columns)}) IN ({','.join('(' + ','.join(one) + ')' for one in made)})"

    def by_keys(self, keys: Iterable[str]) -> Iterator[str]:
        """Conditions for rows of those keys, some at a time."""
        for some in batches(keys):
            yield self.among(self.key, [tuple(key.split(",")) for key in some])

    @cached_property
    def written(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.stored)

    def values(self, line: str) -> str:
        """A whole row as SQL, for `written`."""
        fields = line.split(",")
        return (
            "("
            + ",".join(
                _write(field, *kind)
                for name, field, kind in zip(self.columns, fields, self.kinds, strict=True)
                if name not in self.stored
            )
            + ")"
        )

    # ---- for a person

    def shown(self, line: str | None) -> dict[str, str | None] | None:
        if line is None:
            return None
        return {
            name: _shown(field, *kind)
            for name, field, kind in zip(self.columns, line.split(","), self.kinds, strict=True)
        }

    def called(self, key: str) -> str:
        """Which row: "orders id=5"."""
        names = self.key or self.columns
        fields = key.split(",")
        told = ", ".join(
            f"{name}={_shown(field, *self.kinds[self._places[name]])}"
            for name, field in zip(names, fields, strict=False)
        )
        return f"{self.table} {cut(told)}"

    # ---- as kept

    def as_json(self) -> JsonObject:
        return {
            "table": self.table,
            "columns": list(self.columns),
            "kinds": [list(kind) for kind in self.kinds],
            "stored": sorted(self.stored),
            "key": list(self.key),
            "shape": self.shape,
        }

    @classmethod
    def from_json(cls, kept: JsonObject) -> Form:
        return cls(
            table=str(kept["table"]),
            columns=tuple(kept["columns"]),
            kinds=tuple((kind[0], kind[1]) for kind in kept["kinds"]),
            stored=frozenset(kept["stored"]),
            key=tuple(kept["key"]),
            shape=str(kept.get("shape") or kept["digest"]),  # which older versions kept instead
        )


Lines = dict[str, str]
T = TypeVar("T")


def keyed(form: Form, lines: Sequence[str]) -> Lines:
    """Lines by what names their row. Rows without a key that are the same are counted: each gets a number."""
    if form.key:
        return dict(zip(form.keys_of(lines), lines, strict=True))
    found: Lines = {}
    seen: dict[str, int] = {}
    for line in lines:
        number = seen[line] = seen.get(line, -1) + 1
        found[f"{line}#{number}"] = line
    return found


def select(wire: Wire, form: Form, sql: str, most: int, lock: str = "") -> Lines:
    """The rows of a query of `form.ended()`. Raises as `select_lines`."""
    return keyed(form, select_lines(wire, sql + lock, most))


def select_lines(wire: Wire, sql: str, most: int) -> list[str]:
    """The lines of a query of one column of them. Raises Conflict beyond `most`, and for a row that the server can't
    give as one text."""
    try:
        lines = wire.lines(sql)
    except bulk.TooLarge:
        wire.drop()  # the rest of its rows is still on the way
        raise Conflict(
            "A row is too large for the server to hand over (max_allowed_packet). Nothing was changed.",
            next_step="Raise max_allowed_packet on the server.",
        ) from None
    if len(lines) > most:
        raise too_many(most)
    return lines


def select_all(wire: Wire, form: Form, most: int, lock: str = LOCK) -> Lines:
    """Every row of a table; locked, so are the gaps between them."""
    return select(wire, form, f"SELECT {form.ended()} FROM {quoted(form.table)} LIMIT {most + 1}", most, lock)


def select_keys(wire: Wire, form: Form, keys: Iterable[str], most: int, lock: str) -> Lines:
    """The rows of those keys."""
    found: Lines = {}
    for condition in form.by_keys(keys):
        sql = f"SELECT {form.ended()} FROM {quoted(form.table)} WHERE {condition}"
        found.update(select(wire, form, sql, most, lock))
    return found


def too_many(most: int) -> Conflict:
    return Conflict(
        f"It would change, or has to lock, more than {most} rows. Nothing was changed.",
        next_step="Change fewer rows at a time, or ask for the action again.",
    )


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _read(column: str, kind: str) -> str:
    if kind in _FLOAT:
        return f"({column}*1e0)"  # a FLOAT alone would be rounded to six digits; adding 0 would lose -0
    if kind in _NUMBERED:
        return f"({column}+0)"
    if kind in _WHOLE or kind in _TIMES:
        return column
    if kind in _WRITTEN:
        return f"HEX(CAST({column} AS CHAR))"
    return f"HEX({column})"


def _write(field: str, kind: str, charset: str) -> str:
    if field == NULL:
        return "NULL"
    if kind in _FLOAT:
        return field if "e" in field else f"{field}e0"
    if kind in _WHOLE or kind in _NUMBERED:
        return field
    if kind in _TIMES:
        return f"'{field}'"
    if kind in _TEXTS:
        return f"_{charset} X'{field}'"
    if kind in _WRITTEN:
        return f"_latin1 X'{field}'"
    return f"X'{field}'"


def _shown(field: str, kind: str, charset: str) -> str | None:
    if field == NULL:
        return None
    if kind in _TEXTS or kind in _WRITTEN:
        raw = bytes.fromhex(field)
        return cut(raw.decode(_CODECS.get(charset, "latin1"), errors="backslashreplace"))
    if kind in _BYTES or kind in _SHAPES:
        return cut(f"x'{field.lower()}'")
    return field
