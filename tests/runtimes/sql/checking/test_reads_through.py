"""What a checked statement reads through the names that it has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtimes.sql.checking.check import check
from runtimes.sql.checking.views import reads
from runtimes.sql.contract import Dialect
from runtimes.sql.reads_through import ANY, behind, beside, closure, parts
from tests.runtimes.sql.checking.schemas import shop

DIALECTS = [Dialect.POSTGRESQL, Dialect.MARIADB, Dialect.SQLITE]


def read_behind(dialect: Dialect, sql: str, *stands_on: str) -> dict[str, str]:
    schema = shop(dialect)
    schema = replace(schema, tables={**schema.tables, "v": replace(schema.tables["v"], stands_on=stands_on)})
    (statement,) = check(sql, schema, database="shop").statements
    return behind(statement, schema)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM v",
        "SELECT count(*) FROM v",
        "EXPLAIN SELECT id FROM v",
        "SELECT id FROM users WHERE id IN (SELECT id FROM v)",
        "WITH found AS (SELECT id FROM v) SELECT id FROM found",
        "INSERT INTO archive (id) SELECT id FROM v",
        "UPDATE archive SET status = 'x' WHERE id IN (SELECT id FROM v)",
        "DELETE FROM archive WHERE EXISTS (SELECT 1 FROM v)",
    ],
)
def test_a_view_is_read_with_what_it_stands_on(dialect: Dialect, sql: str) -> None:
    assert read_behind(dialect, sql, "orders") == {"orders": "v"}
    assert read_behind(dialect, sql) == {}


def test_a_table_that_is_named_as_well_is_told_once() -> None:
    assert read_behind(Dialect.SQLITE, "SELECT v.id FROM v, orders", "orders") == {}


def test_what_isnt_known_is_every_table() -> None:
    found = read_behind(Dialect.SQLITE, "SELECT id FROM v", ANY, "far.away")
    assert found == dict.fromkeys((ANY, "far.away", "users", "orders", "archive"), "v")


def test_a_child_that_is_read_through_its_parent_is_a_part_of_it() -> None:
    schema = shop(Dialect.POSTGRESQL)
    parent = replace(schema.tables["v"], stands_on=("orders", "archive"), parts=("archive",))
    schema = replace(schema, tables={**schema.tables, "v": parent})
    (statement,) = check("SELECT id FROM v", schema, database="shop").statements
    assert behind(statement, schema) == {"orders": "v"}
    assert list(parts(statement.uses, schema)) == [("archive", "select")]
    assert beside(["v", "users"], schema) == ["v", "users", "orders", "archive"]


def test_siblings_of_a_partition_arent_read_with_it() -> None:
    down, up = {"all": ["one", "two"], "view": ["one"]}, {"one": ["all"], "two": ["all"]}
    assert closure("one", down, up) == ["all"]
    assert closure("view", down, up) == ["all", "one"]
    assert closure("all", down, up) == ["one", "two"]
    assert closure("a", {"a": ["b"], "b": ["a"]}) == ["b"]


@pytest.mark.parametrize(
    ("definition", "names"),
    [
        ("select `shop`.`c`.`id` AS `id` from `shop`.`c`", ("c",)),
        ("select `c`.`id` AS `id` from (`shop`.`c` join `shop`.`d` on(`c`.`id` = `shop`.`d`.`id`))", ("c", "d")),
        ("with q as (select `shop`.`c`.`id` AS `id` from `shop`.`c`)select `q`.`id` AS `id` from `q`", ("c",)),
        ("select (select count(0) from `shop`.`d`) AS `n` from `shop`.`c`", ("c", "d")),
        ("select `far`.`c`.`id` AS `id` from `far`.`c`", ("far.c", ANY)),
        ("select `shop`.`f`(1) AS `x`", (ANY,)),
        ("select `f`(1) AS `x`", (ANY,)),
        ("select 'a' AS `x` from", (ANY,)),
        ("select octet_length('`far`.`c`') AS `x`", ()),
    ],
)
def test_the_tables_of_a_definition_of_mariadb(definition: str, names: tuple[str, ...]) -> None:
    assert sorted(reads(definition, "shop")) == sorted(names)
