"""A rule that forbids a table, and who reads its rows by another name: a view, a partition, an inherited table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.test_rules import apply
from tests.goex.databases.conftest import Shop
from tests.goex.databases.servers import Served, on_mariadb, on_postgres
from tests.services.mariadb import MariaDb
from tests.support.entries import Client, results

RULES = """
@id("no-{table}") forbid (principal, action == Action::"sql", resource) when {{ context.tables.contains("{table}") }};
@id("reads") permit (principal, action == Action::"sql", resource == Method::"db.select");
"""
VIEWS = (
    "CREATE VIEW people AS SELECT name, secret FROM customers",
    "CREATE VIEW outer_people AS SELECT p.secret FROM people p JOIN orders o ON o.id > 0",
)
THROUGH_VIEWS = (
    "SELECT * FROM people",
    "SELECT * FROM outer_people",
    "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM people)",
    "WITH found AS (SELECT secret FROM people) SELECT * FROM found",
    "SELECT id FROM orders UNION SELECT length(secret) FROM people",
    "EXPLAIN SELECT * FROM people",
    "INSERT INTO orders (id, status) SELECT 50 + length(secret), secret FROM people",
    "UPDATE orders SET status = (SELECT max(secret) FROM people)",
    "DELETE FROM orders WHERE status IN (SELECT secret FROM people)",
)


@contextmanager
def forbidding(client: Client, table: str) -> Iterator[None]:
    """What reads that table is denied; any other reading isn't asked about."""
    apply(client.daemon, RULES.format(table=table))
    try:
        yield
    finally:
        apply(client.daemon, "")


def denied(shop: Shop | Served, table: str, sql: str) -> None:
    """By the rule, with nothing run or asked."""
    ended: pb.Finished = shop.sql(sql).ended()
    assert ended.problem.code == "denied" and f"Rule no-{table}" in ended.problem.message, (sql, ended)


def read(shop: Shop | Served, sql: str) -> None:
    """Unasked."""
    assert results(shop.sql(sql).ended()), sql


def check_views(shop: Shop | Served) -> None:
    with forbidding(shop.client, "customers"):
        for sql in ("SELECT * FROM customers", *THROUGH_VIEWS):
            denied(shop, "customers", sql)
        read(shop, "SELECT * FROM orders")
    with forbidding(shop.client, "elsewhere"):
        read(shop, "SELECT * FROM outer_people")


@pytest.fixture
def on_server(postgres: object, client: Client) -> Iterator[Served]:
    with on_postgres(postgres, client) as made:  # type: ignore[arg-type]
        made.add()
        yield made


def test_views_of_sqlite(shop: Shop) -> None:
    shop.change(*VIEWS)
    check_views(shop)


def test_a_full_text_index_of_sqlite_on_a_table_and_what_it_is_kept_in(shop: Shop) -> None:
    shop.change(
        "CREATE VIRTUAL TABLE words USING fts5(secret, content='customers', content_rowid='id')",
        "CREATE VIRTUAL TABLE notes USING fts5(text)",
    )
    with forbidding(shop.client, "customers"):
        denied(shop, "customers", "SELECT * FROM words")
        read(shop, "SELECT * FROM notes")


def test_views_of_mariadb(mariadb: MariaDb, client: Client) -> None:
    with on_mariadb(mariadb, client) as shop:
        shop.change(*VIEWS)
        shop.add()
        check_views(shop)


def test_a_view_of_mariadb_that_calls_a_function_counts_as_every_table(mariadb: MariaDb, client: Client) -> None:
    with on_mariadb(mariadb, client) as shop:
        shop.change(
            "CREATE FUNCTION told() RETURNS text READS SQL DATA RETURN (SELECT max(secret) FROM customers)",
            "CREATE VIEW called AS SELECT told() AS secret",
            "CREATE VIEW plain AS SELECT upper(status) AS status FROM orders",
        )
        shop.add()
        with forbidding(client, "customers"):
            denied(shop, "customers", "SELECT * FROM called")
            read(shop, "SELECT * FROM plain")


def test_views_of_postgresql(on_server: Served) -> None:
    on_server.change(*VIEWS)
    check_views(on_server)


def test_other_ways_to_a_table_of_postgresql(on_server: Served) -> None:
    on_server.change(
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM customers",
        "CREATE SCHEMA hidden",
        "CREATE VIEW hidden.inner_view AS SELECT * FROM customers",
        "CREATE VIEW twice AS SELECT secret FROM hidden.inner_view",
        "CREATE FUNCTION told() RETURNS SETOF varchar LANGUAGE sql AS 'SELECT secret FROM customers'",
        "CREATE VIEW called AS SELECT * FROM told() AS t (secret)",
        "CREATE VIEW quoted AS SELECT query_to_xml('SELECT * FROM customers', true, false, '')::text AS secret",
        "CREATE MATERIALIZED VIEW others AS SELECT upper(status) AS status FROM orders",
    )
    with forbidding(on_server.client, "customers"):
        for view in ("kept", "twice", "called", "quoted"):
            denied(on_server, "customers", f"SELECT * FROM {view}")
        read(on_server, "SELECT * FROM others")


def test_children_and_partitions_of_postgresql_both_ways(on_server: Served) -> None:
    on_server.change(
        "CREATE TABLE parent (id int, note text)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE TABLE parts (id int, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE part_one PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE part_two PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "CREATE VIEW over_one AS SELECT * FROM part_one",
    )
    for forbidden, refused, allowed in (
        ("child", ("child", "parent"), ("parts",)),
        ("parent", ("child", "parent"), ("part_one",)),
        ("part_one", ("part_one", "parts", "over_one"), ("part_two", "parent")),
        ("parts", ("part_one", "parts", "over_one"), ("child",)),
    ):
        with forbidding(on_server.client, forbidden):
            for table in refused:
                denied(on_server, forbidden, f"SELECT * FROM {table}")
            for table in allowed:
                read(on_server, f"SELECT * FROM {table}")


def test_the_question_names_the_tables_behind_a_view(shop: Shop) -> None:
    shop.change(*VIEWS)
    question = (asked := shop.sql("SELECT * FROM people")).question()
    assert "  reads customers (through people)" in question.lines
    assert asked.deny_known(question.id).action.state == "denied"
