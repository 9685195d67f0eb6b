"""For random schemas, rows and statements, on real databases: undo(do(x)) == x, redo(undo(do(x))) == do(x), and a
change of somebody else's in between is refused with nothing touched.

An engine may refuse a statement, beforehand or while it runs; then everything is as it was. How many were refused is
bounded, so that a driver that refuses everything fails.
"""

# SQL here is made of the tests' own names.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw
import psycopg
import pymysql
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from runtimes.sql.contract import Dialect, Policy
from runtimes.sql.sqlite import wholes
from tests.contracts.test_sql import engine  # noqa: F401
from tests.support.databases import Asked, Dump, Ground

# Of the same examples each time, until there are many.
SOME = settings(
    max_examples=6,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
    phases=[Phase.generate],
)
MANY = settings(SOME, max_examples=300, derandomize=False, phases=[Phase.generate, Phase.shrink])

TYPES = {
    Dialect.SQLITE: {"int": "INTEGER", "text": "TEXT", "real": "REAL", "blob": "BLOB", "any": ""},
    Dialect.POSTGRESQL: {"int": "bigint", "text": "text", "real": "double precision", "blob": "bytea", "any": "text"},
    Dialect.MARIADB: {"int": "bigint", "text": "varchar(60)", "real": "double", "blob": "varbinary(60)", "any": "text"},
}
VALUES: dict[str, list[object]] = {
    "int": [0, 1, 2, 3, 7, -5, 2**53 + 1, None],
    "text": ["", "a", "A", "b", "it's", "50% :x ?", "\u00e9\u4e2d\U0001f600", " pad ", None],
    "real": [0.5, -1.25, 1e300, 0.1, None],
    "blob": [b"", b"\x00\xff", b"abc", None],
    "any": ["x", "12", "", None],
}
MARK: dict[str, object] = {"int": 987_654, "text": "theirs", "real": 98.5, "blob": b"theirs", "any": "theirs"}
NAMES = ["a", "b", "order", "D d", "value"]


@dataclass(frozen=True)
class Column:
    name: str
    kind: str
    required: bool


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: str
    parent: str  # "" for none; it is pointed to by its first column
    on_delete: str
    on_update: str
    computed: bool
    without: bool


@dataclass(frozen=True)
class Where:
    column: Column
    how: str
    value: object


@dataclass(frozen=True)
class Step:
    """A statement to be. `sets` are of an UPDATE ("+": ten more), `rows` of an INSERT."""

    kind: str
    table: Table
    where: Where | None = None
    sets: tuple[tuple[Column, object], ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()


@dataclass(frozen=True)
class World:
    tables: tuple[Table, ...]
    rows: tuple[tuple[int, tuple[object, ...]], ...]
    statements: tuple[Step, ...]


@st.composite
def worlds(draw: DrawFn) -> World:
    tables: list[Table] = []
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 4))
        kinds = draw(st.lists(st.sampled_from(sorted(TYPES[Dialect.SQLITE])), min_size=size, max_size=size))
        keyed = draw(st.sampled_from(["", "first", "both"]))
        parents = [table for table in tables if len(table.key) == 1]
        parent = None
        if draw(st.booleans()) and parents:
            parent = draw(st.sampled_from(parents))
        if keyed and not (kinds[0] == "text" and draw(st.booleans())):
            kinds[0] = "int"
        key: tuple[str, ...] = ("k",) if keyed else ()
        if keyed == "both" and size > 1:
            kinds[1], key = "int", ("k", NAMES[1])
        names = ["k" if keyed else NAMES[0], *NAMES[1:size]]
        columns = [Column(name, kind, name in key) for name, kind in zip(names, kinds, strict=True)]
        if parent is not None:
            columns.append(Column("parent", parent.columns[0].kind, required=False))
        others = [column.name for column in columns if column.name not in key and column.kind == "int"]
        tables.append(
            Table(
                name=f"t{number}" if number != 1 else "T two",
                columns=tuple(columns),
                key=key,
                unique=draw(st.sampled_from(["", *others])),
                parent=parent.name if parent else "",
                on_delete=draw(st.sampled_from(["NO ACTION", "CASCADE", "SET NULL"])),
                on_update=draw(st.sampled_from(["NO ACTION", "CASCADE", "SET NULL"])),
                computed=any(c.name == "value" and c.kind == "int" for c in columns) and draw(st.booleans()),
                without=bool(key) and draw(st.booleans()),
            )
        )
    rows = []
    for number, table in enumerate(tables):
        for _ in range(draw(st.integers(0, 5))):
            rows.append((number, tuple(draw(st.sampled_from(VALUES[column.kind])) for column in table.columns)))
    statements = draw(st.lists(_statement(tables), min_size=1, max_size=3))
    return World(tuple(tables), tuple(rows), tuple(statements))


@st.composite
def _statement(draw: DrawFn, tables: list[Table]) -> Step:
    table = draw(st.sampled_from(tables))
    columns = list(table.columns)
    where = draw(st.one_of(st.none(), _where(columns)))
    kind = draw(st.sampled_from(["update", "update", "delete", "insert", "replace", "copy"]))
    if kind == "update":
        chosen = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
        sets = tuple((c, draw(st.sampled_from([*VALUES[c.kind], *(["+"] if c.kind == "int" else [])]))) for c in chosen)
        return Step(kind, table, where, sets=sets)
    if kind in ("delete", "copy"):
        return Step(kind, table, where)
    count = draw(st.integers(1, 2))
    rows = tuple(tuple(draw(st.sampled_from(VALUES[c.kind])) for c in columns) for _ in range(count))
    return Step(kind, table, rows=rows)


@st.composite
def _where(draw: DrawFn, columns: list[Column]) -> Where:
    column = draw(st.sampled_from(columns))
    value: object = draw(st.sampled_from(VALUES[column.kind]))
    return Where(column, draw(st.sampled_from(["=", ">=", "<>"])), value)


# ---- as SQL


def quoted(ground: Ground, name: str) -> str:
    return f"`{name}`" if ground.dialect is Dialect.MARIADB else f'"{name}"'


def build(ground: Ground, world: World) -> None:
    types = TYPES[ground.dialect]
    for table in world.tables:
        parts = []
        for column in table.columns:
            parts.append(
                f"{quoted(ground, column.name)} {types[column.kind]}{' NOT NULL' if column.name in table.key else ''}"
            )
        if table.computed:
            source = quoted(ground, "value")
            parts.append(f"{quoted(ground, 'twice')} {types['int']} GENERATED ALWAYS AS ({source} * 2) STORED")
        if table.key:
            parts.append(f"PRIMARY KEY ({', '.join(quoted(ground, name) for name in table.key)})")
        if table.unique:
            parts.append(f"UNIQUE ({quoted(ground, table.unique)})")
        if table.parent:
            parts.append(
                f"FOREIGN KEY ({quoted(ground, 'parent')}) REFERENCES {quoted(ground, table.parent)}"
                f" ({quoted(ground, 'k')}) ON DELETE {table.on_delete} ON UPDATE {table.on_update}"
            )
        more = " WITHOUT ROWID" if table.without and ground.dialect is Dialect.SQLITE else ""
        ground.execute(f"CREATE TABLE {quoted(ground, table.name)} ({', '.join(parts)}){more}")
    for number, values in world.rows:
        try:
            ground.execute(_insert(ground, world.tables[number], (values,)))
        except (apsw.ConstraintError, psycopg.IntegrityError, pymysql.err.MySQLError):
            continue  # its own table doesn't take it


def _insert(ground: Ground, table: Table, rows: tuple[tuple[object, ...], ...], word: str = "INSERT") -> str:
    names = ", ".join(quoted(ground, column.name) for column in table.columns)
    values = ", ".join(f"({', '.join(ground.literal(value) for value in row)})" for row in rows)
    return f"{word} INTO {quoted(ground, table.name)} ({names}) VALUES {values}"


def as_sql(ground: Ground, step: Step) -> str:
    table = step.table
    name = quoted(ground, table.name)
    if step.kind == "update":
        sets = ", ".join(
            f"{quoted(ground, column.name)} = "
            + (f"{quoted(ground, column.name)} + 10" if value == "+" else ground.literal(value))
            for column, value in step.sets
        )
        return f"UPDATE {name} SET {sets}{_condition(ground, step.where)}"
    if step.kind == "delete":
        return f"DELETE FROM {name}{_condition(ground, step.where)}"
    if step.kind == "copy":
        chosen = ", ".join(quoted(ground, column.name) for column in table.columns)
        shifted = ", ".join(
            f"{quoted(ground, c.name)} + 100" if c.kind == "int" and c.name != "parent" else quoted(ground, c.name)
            for c in table.columns
        )
        return f"INSERT INTO {name} ({chosen}) SELECT {shifted} FROM {name}{_condition(ground, step.where)}"
    word = "INSERT OR REPLACE" if step.kind == "replace" and ground.dialect is Dialect.SQLITE else "INSERT"
    return _insert(ground, table, step.rows, word)


def _condition(ground: Ground, where: Where | None) -> str:
    if where is None:
        return ""
    name = quoted(ground, where.column.name)
    if where.value is None:
        return f" WHERE {name} IS {'NOT ' if where.how == '<>' else ''}NULL"
    return f" WHERE {name} {where.how} {ground.literal(where.value)}"


# ---- the properties


@pytest.mark.parametrize("policy", ["reversal", "versioning", "many rows"])
def test_there_and_back(
    engine: Ground,  # noqa: F811
    policy: Any,
    thorough: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if policy == "many rows":  # what SQLite does with many rows, done with each few
        if engine.dialect is not Dialect.SQLITE:
            pytest.skip("one way for any number of rows")
        monkeypatch.setattr(wholes, "ROWS", 1)
        monkeypatch.setattr(wholes, "BYTES", 10**9)
        policy = "reversal"
    if policy == "versioning" and engine.dialect is not Dialect.SQLITE:
        pytest.skip("held there: its tests are in test_sql.py")
    seen: list[bool] = []

    @(MANY if thorough else SOME)
    @given(world=worlds())
    def prove(world: World) -> None:
        seen.append(there_and_back(engine, world, policy))

    prove()
    assert sum(seen) * 4 >= len(seen), f"only {sum(seen)} of {len(seen)} ran"


def there_and_back(ground: Ground, world: World, policy: Policy) -> bool:
    """Whether it ran."""
    ground.empty()
    build(ground, world)
    before = ground.dump()
    asked = Asked(ground, "; ".join(as_sql(ground, step) for step in world.statements), policy)
    try:
        asked.run()
    except (Conflict, Unsupported, InvalidInput):
        assert ground.dump() == before
        return False
    after = ground.dump()
    assert asked.state in ("done", "held")
    asked.revert("undo")
    assert ground.dump() == before
    assert asked.state == "undone" or after == before
    asked.revert("redo")
    assert ground.dump() == after
    changed = _written_by_them(ground, world, before, after)
    if changed:
        left = ground.dump()
        try:
            asked.revert("undo")
        except Conflict:
            assert ground.dump() == left
            return True
        raise AssertionError(f"undo went over what somebody else wrote: {changed}")
    asked.revert("undo")
    assert ground.dump() == before
    return True


def _written_by_them(ground: Ground, world: World, before: Dump, after: Dump) -> str:
    """Somebody else writes into each row of a table that has rows of ours. "" where there is no such table."""
    for table in world.tables:
        if not _has_ours(ground, table, before, after):
            continue
        for column in table.columns:
            if column.name in table.key or column.name in (table.unique, "parent"):
                continue
            text = (
                f"UPDATE {quoted(ground, table.name)} SET {quoted(ground, column.name)} ="
                f" {ground.literal(MARK[column.kind])}"
            )
            ground.execute(text)
            return text
    return ""


def _has_ours(ground: Ground, table: Table, before: Dump, after: Dump) -> bool:
    """Whether the action left a row in the table that wasn't there like that."""
    names = (f"rows of {table.name}", f"rows of {quoted(ground, table.name)}")
    name = next(name for name in names if name in after)
    old, new = list(before[name]), list(after[name])
    return any(new.count(row) > old.count(row) for row in new)


def test_an_error_is_always_of_ours(engine: Ground, thorough: bool) -> None:  # noqa: F811
    """Whatever a statement meets, it ends with an error that says what to do, and nothing is touched."""

    @(MANY if thorough else settings(SOME, max_examples=4))
    @given(world=worlds())
    def prove(world: World) -> None:
        engine.empty()
        build(engine, world)
        before = engine.dump()
        for step in world.statements:
            asked = Asked(engine, as_sql(engine, step))
            try:
                asked.trial()
            except GoexError as error:
                assert error.message
            assert engine.dump() == before

    prove()
