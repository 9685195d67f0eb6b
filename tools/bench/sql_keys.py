"""`sql.undo_fk_ms_per_row` (MariaDB) and `….postgresql`: taking back a statement on tables with foreign keys, a row.

2,000 orders have five lines each, and a line names its order and its product. The statement deletes all lines; its undo
inserts 10,000 rows, each of which the database checks against two tables. The value is the undo as GoEx runs it, with
its comparison of what is there, its images in sealed records and its commit, in milliseconds over the rows. The floor
inserts the same rows from a copy beside the table, with one plain statement and its commit, in turn with it.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.bench.databases import Ground, on_mariadb, on_postgres, sealed_records
from tools.bench.measure import Row, Timings, row, timed

NAME = "sql.undo_fk_ms_per_row"
ORDERS, LINES = 2_000, 5
_DELETE = "DELETE FROM order_lines WHERE id > 0"
_TABLES = (
    "CREATE TABLE products (id integer PRIMARY KEY, name varchar(60) NOT NULL)",
    "CREATE TABLE orders (id integer PRIMARY KEY, note varchar(60) NOT NULL)",
    "CREATE TABLE order_lines (id integer PRIMARY KEY, order_id integer NOT NULL, product_id integer NOT NULL, "
    "amount integer NOT NULL, FOREIGN KEY (order_id) REFERENCES orders (id), "
    "FOREIGN KEY (product_id) REFERENCES products (id))",
    "CREATE TABLE kept (id integer PRIMARY KEY, order_id integer, product_id integer, amount integer)",
)


async def measure(*, orders: int = ORDERS, rounds: int = 5) -> tuple[Row, ...]:
    return await asyncio.to_thread(_measure, orders, rounds)


def _measure(orders: int, rounds: int) -> tuple[Row, ...]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goex-bench-")))
        records = stack.enter_context(sealed_records(folder))
        mariadb, postgres = (stack.enter_context(make(folder, 1)) for make in (on_mariadb, on_postgres))
        return (
            _undone(NAME, mariadb, records, orders, rounds),
            _undone(f"{NAME}.postgresql", postgres, records, orders, rounds),
        )


def _undone(name: str, ground: Ground, records: Callable[[str], Any], orders: int, rounds: int) -> Row:
    _fill(ground, orders)
    rows = orders * LINES
    values: list[float] = []
    floors: list[float] = []
    with closing(ground.open()) as session:
        job = replace(ground, session=session).job(_DELETE, "reversal", records("a-t"), "a-t", 2 * rows)
    for _ in range(rounds + 1):
        id = f"a-{secrets.token_hex(6)}"
        made = replace(job, id=id, records=records(id))
        with closing(ground.open()) as session:
            ran = session.run(made)
            assert sum(one.rows for one in ran.reached) == rows, ran.reached
        with closing(ground.open()) as session, timed(values, rows):
            session.revert(made, "undo")
        ground.plain(_DELETE)
        with timed(floors, rows):
            ground.plain("INSERT INTO order_lines SELECT * FROM kept")
    value, floor = Timings(tuple(values[1:])), Timings(tuple(floors[1:]))
    return row(name, value, f"the same rows by one plain INSERT, {ground.name}", floor)


def _fill(ground: Ground, orders: int) -> None:
    for statement in _TABLES:
        ground.plain(statement)
    ground.plain("INSERT INTO products VALUES " + ", ".join(f"({n}, 'product {n}')" for n in range(1, 101)))
    for start in range(0, orders, 500):
        some = range(start, min(start + 500, orders))
        ground.plain("INSERT INTO orders VALUES " + ", ".join(f"({n}, 'order {n}')" for n in some))
        lines = (f"({n * LINES + k}, {n}, {n % 100 + 1}, {k})" for n in some for k in range(1, LINES + 1))
        ground.plain("INSERT INTO order_lines VALUES " + ", ".join(lines))
    ground.plain("INSERT INTO kept SELECT * FROM order_lines")
