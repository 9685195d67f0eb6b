"""A rule that forbids a table, and who reads its rows by another name: a view, a partition, an inherited table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import databases_pb2 as db
from goex.rpc import goex_pb2 as pb
from runtimes.sandbox import images
from tests.goex.daemon.test_rules import apply
from tests.goex.databases.conftest import SHOP, Shop
from tests.goex.databases.servers import Served, on_mariadb, on_postgres
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres
from tests.support.daemon import Daemon
from tests.support.entries import Client, changes, results

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


CHILDREN = (
    "CREATE TABLE parent (id int, note text)",
    "CREATE TABLE child () INHERITS (parent)",
    "CREATE TABLE parts (id int, note text) PARTITION BY RANGE (id)",
    "CREATE TABLE part_one PARTITION OF parts FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE part_two PARTITION OF parts FOR VALUES FROM (10) TO (20)",
    "CREATE VIEW over_one AS SELECT * FROM part_one",
    "CREATE VIEW over_parts AS SELECT * FROM parts",
)


def test_children_and_partitions_of_postgresql_both_ways(on_server: Served) -> None:
    on_server.change(*CHILDREN)
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


def test_a_permission_for_a_parent_covers_its_children(on_server: Served) -> None:
    on_server.change(*CHILDREN)
    on_server.change("INSERT INTO parts VALUES (1, 'one'), (11, 'two')")
    permit = '@id("{0}") permit (principal, action == Action::"sql", resource) when {{ context.scopes == ["{0}"] }};'
    scopes = (
        "parts:select",
        "parts:update",
        "parent:select",
        "over_parts:select",
        "over_one:select",
        "part_one:select",
    )
    apply(on_server.client.daemon, "\n".join(permit.format(one) for one in scopes[:-1]))
    try:
        for sql in ("SELECT * FROM parts", "SELECT * FROM over_parts", "TABLE parent"):
            read(on_server, sql)
        done: pb.Finished = on_server.sql("UPDATE parts SET note = 'new'").ended()
        assert changes(done) == ["parts: 2 rows updated"]
        undone: pb.Finished = on_server.client.revert(done.action.id).approve()
        assert not undone.HasField("problem"), undone.problem
        assert on_server.look("SELECT note FROM parts ORDER BY id") == [("one",), ("two",)]
        for sql, missing in (("SELECT * FROM part_one", "part_one"), ("SELECT * FROM over_one", "part_one")):
            question = (asked := on_server.sql(sql)).question()
            assert f"{missing}:select is not granted" in question.reason, question.reason
            assert asked.deny_known(question.id).action.state == "denied"
    finally:
        apply(on_server.client.daemon, "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("of", ["context.tables", "context.scopes"])
def test_a_partition_that_is_forbidden_isnt_used_through_its_parent(on_server: Served, of: str) -> None:
    on_server.change(*CHILDREN)
    done = on_server.run("INSERT INTO parts VALUES (1, 'one')")
    assert not on_server.client.revert(done.action.id).approve().HasField("problem")
    names = ["part_one"] if of == "context.tables" else [f"part_one:{verb}" for verb in ("select", "insert", "delete")]
    forbid = '@id("no-part_one") forbid (principal, action, resource) when {{ {0}.containsAny({1}) }};'
    apply(on_server.client.daemon, forbid.format(of, json.dumps(names)))
    try:
        for sql in (
            "SELECT count(*) FROM parts",
            "SELECT * FROM over_parts",
            "INSERT INTO parts VALUES (11, 'two')",
            "DELETE FROM parts",
        ):
            denied(on_server, "part_one", sql)
        again: pb.Finished = on_server.client.revert(done.action.id, "redo").ended()
        assert "Rule no-part_one" in again.problem.message, again
    finally:
        apply(on_server.client.daemon, "")


def test_a_partition_that_is_forbidden_forbids_none_of_the_others(on_server: Served) -> None:
    on_server.change(*CHILDREN)
    for of in ('context.tables.contains("part_two")', 'context.scopes.contains("part_two:insert")'):
        apply(on_server.client.daemon, f'@id("no-part_two") forbid (principal, action, resource) when {{ {of} }};')
        try:
            asks(on_server, "INSERT INTO part_one VALUES (1, 'one')", policy="versioning")
            denied(on_server, "part_two", "INSERT INTO parts VALUES (1, 'one')")
        finally:
            apply(on_server.client.daemon, "")


@pytest.mark.docker
def test_what_an_undo_by_statements_does_to_a_partition_may_be_forbidden(on_server: Served) -> None:
    images.build("postgresql")  # in which statements of an undo are tried
    on_server.change(
        "CREATE TABLE parts (id int PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE part_one PARTITION OF parts FOR VALUES FROM (0) TO (100000)",
    )
    forbid = '@id("no-part_one") forbid (principal, action, resource) when { context.scopes == ["part_one:delete"] };'
    sql, undo = "INSERT INTO parts VALUES (77123, 'x')", "DELETE FROM parts WHERE id = 77123"
    apply(on_server.client.daemon, forbid)
    try:
        asks(on_server, sql)
        ended: pb.Finished = on_server.sql(sql, policy="pairs", undo=undo).ended()
        assert "Rule no-part_one" in ended.problem.message, ended
    finally:
        apply(on_server.client.daemon, "")


def asks(shop: Shop | Served, sql: str, **more: Any) -> list[str]:
    """It is asked for, and denied then: what the question says."""
    question = (asked := shop.sql(sql, **more)).question()
    assert asked.deny_known(question.id).action.state == "denied"
    return [*question.lines, *(need.scope for need in question.needs)]


@pytest.fixture(scope="module")
def confined() -> Iterator[Client]:
    with Daemon(config='[confine]\ntables = ["parts", "orders"]\n') as daemon:
        yield Client(daemon)


def test_confinement_is_to_what_statements_name_not_to_what_triggers_read(postgres: Postgres, confined: Client) -> None:
    with on_postgres(postgres, confined) as served:
        served.change(
            *CHILDREN,
            "CREATE TABLE status (id int)",
            "CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := 'x'; RETURN NEW; END$$",
            "CREATE TRIGGER told BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION says()",
            "CREATE FUNCTION upper_status() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN NEW.status := upper(NEW.status); RETURN NEW; END$$",
            "CREATE TRIGGER told BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION upper_status()",
        )
        served.add()
        assert not [one for one in asks(served, "INSERT INTO parts VALUES (1, 'one')") if "may read" in one]
        assert "What runs with it may read status." in asks(served, "INSERT INTO orders (id) VALUES (50)")
        refused: pb.Finished = served.sql("SELECT * FROM customers").ended()
        assert "customers isn't one of the tables" in refused.problem.message


def test_confinement_knows_no_table_functions_of_sqlite(confined: Client, tmp_path: Path) -> None:
    shop = Shop(confined, "shop", tmp_path / "shop.db")
    shop.change(
        *SHOP,
        "CREATE TRIGGER told AFTER UPDATE OF status ON orders BEGIN UPDATE orders SET total ="
        " (SELECT sum(value) FROM json_each(NEW.status)) WHERE id = NEW.id; END",
    )
    shop.file.chmod(0o600)
    shop.client.add("shop", f"sqlite:///{shop.file}")
    assert not [one for one in asks(shop, "UPDATE orders SET status = '[1]' WHERE id = 1") if "json_each" in one]


def test_a_foreign_partition_needs_a_permission_of_its_own(postgres: Postgres, client: Client) -> None:
    with on_postgres(postgres, client) as served:
        served.change(*CHILDREN, "CREATE TABLE top (id int, note text) PARTITION BY LIST (id)")
        with postgres.connect(served.connect().info.dbname) as admin:
            admin.execute("CREATE FOREIGN DATA WRAPPER far")
            admin.execute("CREATE SERVER far FOREIGN DATA WRAPPER far")
            admin.execute("CREATE FOREIGN TABLE away PARTITION OF parts DEFAULT SERVER far")
            admin.execute("ALTER TABLE top ATTACH PARTITION parts DEFAULT")
        served.add()
        for table in ("parts", "over_parts", "top"):
            said = asks(served, f"SELECT * FROM {table}")
            assert "away:select" in said and "part_one:select" not in said, table


def check_triggers(shop: Shop | Served) -> None:
    sql = "INSERT INTO orders (id, status) VALUES (50, 'new') RETURNING status"
    with forbidding(shop.client, "customers"):
        denied(shop, "customers", sql)
    with forbidding(shop.client, "elsewhere"):
        question = (asked := shop.sql(sql)).question()
        (line,) = (one for one in question.lines if one.startswith("What runs with it may read "))
        assert "customers" in line
        assert [need.scope for need in question.needs] == ["orders:insert", "orders:select"]
        assert asked.deny_known(question.id).action.state == "denied"


def test_what_a_trigger_of_sqlite_reads_may_be_forbidden(shop: Shop) -> None:
    shop.change(
        "CREATE TRIGGER told AFTER INSERT ON orders BEGIN"
        " UPDATE orders SET status = (SELECT max(secret) FROM customers) WHERE id = NEW.id; END"
    )
    with forbidding(shop.client, "customers"):
        denied(shop, "customers", "INSERT INTO orders (id, status) VALUES (50, 'new')")
        denied(shop, "customers", "CREATE TABLE other (id int); INSERT INTO orders (id) VALUES (50)")


def test_a_trigger_of_sqlite_names_tables_in_any_case(shop: Shop) -> None:
    shop.change(
        "CREATE TRIGGER told AFTER INSERT ON orders BEGIN"
        " UPDATE orders SET total = (SELECT count(*) FROM CUSTOMERS) WHERE id = NEW.id; END"
    )
    with forbidding(shop.client, "customers"):
        denied(shop, "customers", "INSERT INTO orders (id, status) VALUES (50, 'new')")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("named", ["customers", "people"])
def test_what_a_trigger_of_mariadb_reads_may_be_forbidden(mariadb: MariaDb, client: Client, named: str) -> None:
    with on_mariadb(mariadb, client) as shop:
        shop.change(
            *VIEWS,
            "CREATE TRIGGER told BEFORE INSERT ON orders FOR EACH ROW"
            f" SET NEW.status = (SELECT max(secret) FROM {named})",
        )
        shop.add()
        check_triggers(shop)


def test_what_a_trigger_of_another_trigger_of_mariadb_reads_may_be_forbidden(mariadb: MariaDb, client: Client) -> None:
    with on_mariadb(mariadb, client) as shop:
        shop.change(
            "CREATE TABLE first (id int PRIMARY KEY)",
            "CREATE TRIGGER writes AFTER INSERT ON first FOR EACH ROW INSERT INTO orders (id) VALUES (NEW.id)",
            "CREATE TRIGGER told BEFORE INSERT ON orders FOR EACH ROW"
            " SET NEW.status = (SELECT max(secret) FROM customers)",
        )
        shop.add(terms=db.Terms(policy="versioning", hold_hours=1))
        for table in ("customers", "orders"):
            with forbidding(client, table):
                denied(shop, table, "INSERT INTO first VALUES (60)")


READING = "CREATE FUNCTION told() RETURNS text LANGUAGE sql STABLE AS 'SELECT max(secret) FROM customers'"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "statements",
    [
        (
            "CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN NEW.status := told(); RETURN NEW; END$$",
            "CREATE TRIGGER told BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION tells()",
        ),
        ("ALTER TABLE orders ADD COLUMN told text DEFAULT told()",),
        ("ALTER TABLE orders ADD CONSTRAINT told CHECK (status <> told())",),
    ],
    ids=["trigger", "default", "check"],
)
def test_what_runs_with_a_write_of_postgresql_may_be_forbidden(on_server: Served, statements: tuple[str, ...]) -> None:
    on_server.change(READING, *statements)
    check_triggers(on_server)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "body",
    [
        "DECLARE t text := '{\"'; BEGIN SELECT max(secret) INTO NEW.status FROM customers; t := '\"}'; RETURN NEW; END",
        "BEGIN EXECUTE 'SELECT max(secret) FROM cust' || 'omers' INTO NEW.status; RETURN NEW; END",
        "BEGIN NEW.status := query_to_xml('SELECT secret FROM cust' || 'omers', true, true, ''); RETURN NEW; END",
    ],
    ids=["quotes", "execute", "xml"],
)
def test_a_text_of_postgresql_hides_no_table(on_server: Served, body: str) -> None:
    on_server.change(
        f"CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $f${body}$f$",
        "CREATE TRIGGER told BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION tells()",
    )
    check_triggers(on_server)


def test_what_row_security_of_postgresql_reads_may_be_forbidden(on_server: Served) -> None:
    on_server.change(
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE orders FORCE ROW LEVEL SECURITY",
        "CREATE POLICY own ON orders USING (EXISTS (SELECT 1 FROM customers c WHERE c.id = customer AND name = 'one'))",
    )
    with forbidding(on_server.client, "customers"):
        denied(on_server, "customers", "SELECT id FROM orders")
    with forbidding(on_server.client, "elsewhere"):
        read(on_server, "SELECT id FROM orders")


def test_the_question_tells_how_many_partitions_are_read(on_server: Served) -> None:
    on_server.change(*CHILDREN)
    for sql, line in (
        ("SELECT id FROM parts", "  reads parts (and its 2 partitions) (columns id)"),
        ("DELETE FROM parts", "  deletes rows of parts (and its 2 partitions)"),
        ("SELECT * FROM parent", "  reads parent (and its 1 child table) (all columns)"),
        ("SELECT * FROM over_parts", "  reads over_parts (and its 2 partitions) (all columns)"),
    ):
        question = (asked := on_server.sql(sql)).question()
        assert line in question.lines, question.lines
        assert not [need.scope for need in question.needs if need.scope.startswith(("part_", "child"))]
        assert asked.deny_known(question.id).action.state == "denied"


def test_the_question_names_the_tables_behind_a_view(shop: Shop) -> None:
    shop.change(*VIEWS)
    question = (asked := shop.sql("SELECT * FROM people")).question()
    assert "  reads customers (through people)" in question.lines
    assert asked.deny_known(question.id).action.state == "denied"
