"""Which statements name a single row: what isn't sure is about the whole table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtimes.sql.bounds import stepped
from runtimes.sql.checking.check import check
from runtimes.sql.checking.row_bounds import named_row
from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table


def column(name: str, type: str = "integer") -> Column:
    return Column(name=name, type=type)


TABLES = (
    Table(name="orders", columns=(column("id"), column("status", "text"), column("total")), key=("id",)),
    Table(name="lines", columns=(column("a"), column("b"), column("n")), key=("a", "b")),
    Table(name="codes", columns=(column("code", "text"), column("n")), key=("code",)),
    Table(name="noted", columns=(column("id"), column("n")), key=("id",), triggers=("t",)),
    Table(name="bare", columns=(column("id"), column("n"))),
    Table(
        name="parts",
        columns=(column("id"), column("of")),
        key=("id",),
        foreign_keys=(ForeignKey(name="f", columns=("of",), parent="orders", parent_columns=("id",)),),
    ),
)
SCHEMA = Schema(dialect=Dialect.POSTGRESQL, version="15", tables={table.name: table for table in TABLES}, hash="h")


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("UPDATE orders SET total = 1 WHERE id = 5", "id=5"),
        ("UPDATE orders SET total = 1 WHERE id = 005", "id=5"),
        ("DELETE FROM orders WHERE id = 5 AND status = 'open'", "id=5"),
        ("DELETE FROM orders WHERE id = 5 AND (status = 'a' OR status = 'b')", "id=5"),
        ("UPDATE lines SET n = 1 WHERE a = 1 AND b = 2", "a=1,b=2"),
        ("UPDATE lines SET n = 1 WHERE b = 2 AND a = 1", "a=1,b=2"),
        ("UPDATE lines SET n = 1 WHERE a = 1", ""),
        ("UPDATE orders SET total = 1 WHERE id = 5 OR id = 6", ""),
        ("UPDATE orders SET total = 1 WHERE id = 5 AND id = 6", ""),
        ("UPDATE orders SET total = 1 WHERE id <> 5", ""),
        ("UPDATE orders SET total = 1 WHERE NOT id = 5", ""),
        ("UPDATE orders SET total = 1 WHERE id = 5.5", ""),
        ("UPDATE orders SET total = 1 WHERE id = '5'", ""),
        ("UPDATE orders SET id = 6 WHERE id = 5", ""),
        ("UPDATE orders SET total = (SELECT max(total) FROM orders) WHERE id = 5", ""),
        ("UPDATE orders SET total = (SELECT max(n) FROM codes) WHERE id = 5", ""),
        ("UPDATE codes SET n = 1 WHERE code = 'a'", ""),
        ("UPDATE noted SET n = 1 WHERE id = 5", ""),
        ("UPDATE bare SET n = 1 WHERE id = 5", ""),
        ("UPDATE orders SET total = 1", ""),
        ("INSERT INTO orders (id) VALUES (5)", ""),
        ("SELECT * FROM orders WHERE id = 5", ""),
    ],
)
def test_a_row_is_named_by_its_whole_key_in_whole_numbers(sql: str, row: str) -> None:
    (statement,) = check(sql, SCHEMA, database="shop").statements
    assert named_row(statement, SCHEMA) == row


@pytest.mark.parametrize(
    ("sql", "replaces", "row"),
    [
        ("UPDATE OR IGNORE orders SET total = 1 WHERE id = 5", False, "id=5"),
        ("UPDATE OR REPLACE orders SET total = 1 WHERE id = 5", False, ""),
        ("UPDATE orders SET total = 1 WHERE id = 5", True, ""),
    ],
)
def test_where_other_rows_may_go_with_it_none_is_named(sql: str, replaces: bool, row: str) -> None:
    orders = replace(TABLES[0], facts={"replaces": replaces})
    schema = replace(SCHEMA, dialect=Dialect.SQLITE, tables={"orders": orders})
    (statement,) = check(sql, schema, database="main").statements
    assert named_row(statement, schema) == row


def test_rows_are_bounded_in_steps_that_say_no_count() -> None:
    assert [stepped(rows) for rows in (0, 1, 2, 3, 5, 6, 10, 11, 49, 51, 200_000)] == [
        1, 1, 2, 5, 5, 10, 10, 20, 50, 100, 200_000,
    ]  # fmt: skip
    assert all(stepped(rows) >= rows for rows in range(2000))
