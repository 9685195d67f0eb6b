"""Made-up rows that a pair of statements meets: values that its conditions name and their neighbours, boundaries, NULL.

From a seed alone, so that a proof can be made again. No value of the person's data is known here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal

from policies.errors import Unsupported
from runtimes.sql.contract import Column, Table

ROWS = 14  # of each table and seed
_WHOLE = 8  # of them: rows in which every column, but at most one, is as the statements ask for

Value = str | int | None
Kind = Literal[
    "int", "number", "text", "bool", "date", "time", "stamp", "json", "bytes", "uuid", "interval", "enum", ""
]

_TEXTS = ("", "a", "Zoë", "it's", "x y", "new", "100%", "back\\slash", "日本")
_INTS = (0, 1, 2, -1, 3, 7, 42, 1000, 32767)
_NUMBERS = ("0", "1.5", "-2.25", "99.99", "10", "0.01")
_JSON = ("{}", '{"a": 1}', '{"a": {"b": [1, 2]}}', '{"name": "x"}')
_START = datetime(2024, 1, 1, 12, 0, 0)


def kind_of(type_: str, own: Iterable[str] = ()) -> Kind:
    """What values a column's type takes, from how its engine spells it; "" where that isn't known."""
    name = type_.lower().strip()
    if type_ in own or name.startswith("enum("):
        return "enum"
    if name.startswith(("tinyint(1)", "bool")):
        return "bool"
    for kind, pattern in (
        ("interval", r"^interval"),
        ("int", r"int|serial|^year"),
        ("number", r"numeric|decimal|real|doub|float|money"),
        ("json", r"json"),
        ("stamp", r"timestamp|datetime"),
        ("date", r"^date"),
        ("time", r"^time"),
        ("uuid", r"^uuid"),
        ("text", r"char|text|clob|citext|^name$|^set\("),
        ("bytes", r"bytea|blob|binary"),
    ):
        if re.search(pattern, name):
            return kind  # type: ignore[return-value] # each is one of them
    return "text" if name == "" else ""


def make(
    tables: Iterable[Table],
    named: Mapping[tuple[str, str], tuple[str, ...]],
    own: Mapping[str, tuple[str, ...]],
    seed: int,
) -> list[tuple[Table, dict[str, Value]]]:
    """Rows for all tables, parents first. `named`: values that the statements say, by table and column (their text);
    `own`: the values of the person's own types. Raises Unsupported for a column that nothing can be made for."""
    dice = random.Random(seed)  # noqa: S311 (test data)
    made: list[tuple[Table, dict[str, Value]]] = []
    found = list(tables)
    kept: dict[str, list[dict[str, Value]]] = {}
    for table in found:
        rows: list[dict[str, Value]] = []
        for number in range(ROWS):
            row = {column.name: _value(column, table, named, own, number, seed, dice) for column in table.columns}
            for key in table.foreign_keys:
                parents = kept.get(key.parent, rows)
                nullable = all(_column(table, name).nullable for name in key.columns)
                asked = any((table.name, name) in named for name in key.columns) and number < _WHOLE
                if not parents or (nullable and not asked and dice.random() < 0.15):
                    row.update(dict.fromkeys(key.columns))
                    continue
                wanted = [
                    one
                    for one in parents
                    if all(
                        str(one.get(parent)) in _asked(table, column, named, number, seed)
                        for column, parent in zip(key.columns, key.parent_columns, strict=True)
                    )
                ]
                parent = dice.choice(wanted if wanted and (number < _WHOLE or dice.random() < 0.6) else parents)
                row.update({column: parent.get(of) for column, of in zip(key.columns, key.parent_columns, strict=True)})
            rows.append(row)
        dice.shuffle(rows)
        kept[table.name] = rows
        made += [(table, row) for row in rows]
    return made


def _asked(
    table: Table, column: str, named: Mapping[tuple[str, str], tuple[str, ...]], number: int, seed: int
) -> tuple[str, ...]:
    """Of the values that the statements say of a column: the one that meets its conditions, in all columns of the
    first rows but one, which takes its others in turn from row to row and seed to seed. Any of them for later rows."""
    values = named.get((table.name, column), ())
    if not values or number >= _WHOLE:
        return values
    columns = [one.name for one in table.columns if (table.name, one.name) in named]
    turn, varied = divmod(seed * (_WHOLE - 1) + number - 1, len(columns))
    if number == 0 or columns[varied] != column:
        return values[:1]
    return (values[(1 + turn) % len(values)],)


def _column(table: Table, name: str) -> Column:
    found = table.column(name)
    if found is None:
        raise Unsupported(f"{table.name} has no column {name}.")
    return found


def _value(
    column: Column,
    table: Table,
    named: Mapping[tuple[str, str], tuple[str, ...]],
    own: Mapping[str, tuple[str, ...]],
    number: int,
    seed: int,
    dice: random.Random,
) -> Value:
    values = named.get((table.name, column.name), ())
    kind = kind_of(column.type, own)
    alone = table.key == (column.name,) or (column.name,) in table.unique
    if alone and number < len(values):  # of a key each value is there once
        return _fit(values[number], kind, column)
    if values and not alone and (number < _WHOLE or dice.random() < 0.4):
        return _fit(dice.choice(_asked(table, column.name, named, number, seed)), kind, column)
    if column.nullable and column.name not in table.key and dice.random() < 0.12:
        return None
    if kind == "":
        if column.nullable and column.name not in table.key:
            return None
        raise Unsupported(f"No value can be made up for {table.name}.{column.name} ({column.type}).")
    return _made(kind, column, own, number, dice, alone=alone or column.name in table.key)


def _made(
    kind: Kind, column: Column, own: Mapping[str, tuple[str, ...]], number: int, dice: random.Random, *, alone: bool
) -> Value:
    match kind:
        case "int":
            small = re.match(r"tinyint|smallint", column.type, re.I) is not None
            if alone:
                return 20 + number * 3 if not small else 20 + number
            value = dice.choice(_INTS[:7] if small else _INTS)
            return abs(value) if "unsigned" in column.type.lower() else value
        case "number":
            return str(number + 20) if alone else _fit(dice.choice(_NUMBERS), kind, column)
        case "text":
            return _fit(f"row {number}" if alone else dice.choice(_TEXTS), kind, column)
        case "bool":
            return number % 2
        case "date":
            return (_START + timedelta(days=dice.randrange(-400, 400))).date().isoformat()
        case "time":
            return f"{number % 24:02}:30:00"
        case "stamp":
            return (_START + timedelta(days=number, minutes=dice.randrange(-600000, 600000))).isoformat(sep=" ")
        case "json":
            return dice.choice(_JSON)
        case "uuid":
            return f"00000000-0000-4000-8000-{dice.randrange(16**12):012x}"
        case "interval":
            return f"{number} days"
        case "enum":
            return dice.choice(own.get(column.type) or _enum_values(column.type) or ("",))
        case _:
            return f"{number}"


def _enum_values(type_: str) -> tuple[str, ...]:
    return tuple(value.replace("''", "'") for value in re.findall(r"'((?:[^']|'')*)'", type_))


def _fit(value: str, kind: Kind, column: Column) -> Value:
    """A value as the column takes it, in its length."""
    if kind == "int":
        whole = re.fullmatch(r"[-+]?\d{1,18}", value.strip())
        return int(value) if whole else 5
    if kind == "bool":
        return int(value.lower() in ("true", "t", "1"))
    if kind == "text" and (found := re.search(r"char(?:acter)?(?: varying)?\((\d+)\)", column.type, re.I)):
        return value[: int(found.group(1))]
    return value
