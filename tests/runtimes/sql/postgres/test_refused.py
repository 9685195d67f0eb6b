"""What undo couldn't take back is refused beforehand; errors, bounds, definitions."""

from __future__ import annotations

import threading

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from tests.runtimes.sql.postgres.support import Shop, again, job, session, state, tables
from tests.services.postgres import Made, Postgres

# ---- refused beforehand


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("statements", "sql", "reason"),
    [
        (("CREATE TABLE t (id int)", "CREATE TABLE kid () INHERITS (t)"), "DELETE FROM t", "inherit"),
        (
            ("CREATE TABLE t (id int) PARTITION BY LIST (id)", "CREATE TABLE p PARTITION OF t DEFAULT"),
            "DELETE FROM p",
            "partition",
        ),
        (("CREATE TABLE t (id int, x xml)",), "DELETE FROM t", "xml"),
        (
            ("CREATE TABLE t (id int)", "CREATE RULE r AS ON DELETE TO t DO ALSO INSERT INTO t VALUES (1)"),
            "DELETE FROM t",
            "rules",
        ),
        (
            (
                "CREATE TABLE t (id int)",
                "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE t FORCE ROW LEVEL SECURITY",
            ),
            "DELETE FROM t",
            "row level security",
        ),
        (
            ("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE k (t int REFERENCES t)"),
            "TRUNCATE t CASCADE",
            "point to",
        ),
        (("CREATE TABLE t (id serial)",), "TRUNCATE t RESTART IDENTITY", "counter"),
        (("CREATE TABLE t (id int)",), "TRUNCATE t; INSERT INTO t VALUES (1)", "alone"),
        (("CREATE TABLE t (id int)",), "ALTER TABLE t ADD COLUMN n int", "definitions"),
        (("CREATE TABLE t (id int)",), "DROP TABLE t", "definitions"),
        (
            (
                "CREATE TABLE t (id int)",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM dblink_exec('x'); RETURN NULL; END $$",
                "CREATE TRIGGER far AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            ),
            "DELETE FROM t",
            "outside",
        ),
        (
            (
                "CREATE TABLE t (id int)",
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN GRANT SELECT ON t TO PUBLIC; RETURN NULL; END $$",
                "CREATE TRIGGER opens AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            ),
            "DELETE FROM t",
            "outside",
        ),
    ],
)
def test_refused_beforehand_with_the_reason(made: Made, statements: tuple[str, ...], sql: str, reason: str) -> None:
    again(made, *statements)
    with session(made) as on, pytest.raises((Unsupported, InvalidInput)) as caught:
        job(on, sql)
    assert reason in str(caught.value).lower()


def test_views_and_tables_of_other_servers_are_refused(postgres: Postgres) -> None:
    made = postgres.make(
        "CREATE TABLE t (id int)", "CREATE VIEW v AS SELECT * FROM t", "CREATE MATERIALIZED VIEW m AS SELECT 1 AS id"
    )
    with made.admin() as admin:
        admin.execute("CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        admin.execute("CREATE FOREIGN TABLE f (id int) SERVER files OPTIONS (filename '/dev/null')")
        admin.execute(f"GRANT ALL ON f TO {made.user}")
    with session(made) as on:
        for name in ("v", "m", "f"):
            with pytest.raises((Unsupported, InvalidInput)):
                job(on, f"DELETE FROM {name}")


def test_event_triggers_and_missing_rights(postgres: Postgres) -> None:
    made = postgres.make("CREATE TABLE p (id int PRIMARY KEY)", "CREATE TABLE k (p int REFERENCES p ON DELETE CASCADE)")
    guest = postgres.make()
    with made.admin() as admin:
        admin.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {made.database} TO {guest.user}")
        admin.execute(
            f"GRANT SELECT, INSERT, DELETE ON p, k TO {guest.user}; INSERT INTO p VALUES (1); INSERT INTO k VALUES (1)"
        )
    visitor = Made(postgres, made.database, guest.user, guest.password)
    with session(visitor) as on:
        with pytest.raises(Unsupported, match="catch") as caught:
            job(on, "DELETE FROM p")
        assert "GRANT TRIGGER" in caught.value.next_step
        with pytest.raises((Unsupported, InvalidInput)):
            job(on, "UPDATE p SET id = 2")
        with made.admin() as admin:
            admin.execute(f"GRANT TRIGGER ON p, k TO {guest.user}")
        Shop(made, on).there_and_back("DELETE FROM p")
    with made.admin() as admin:
        admin.execute("CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN END $$")
        admin.execute("CREATE EVENT TRIGGER watch ON ddl_command_end EXECUTE FUNCTION watch()")
    with session(visitor) as on:
        with pytest.raises(Unsupported, match="Event triggers"):
            job(on, "DELETE FROM p")
        Shop(made, on).there_and_back("DELETE FROM k")


# ---- errors, bounds, definitions


@pytest.mark.sampled(2)
@pytest.mark.promise(73)
@tables("CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n < 100), s text)", "INSERT INTO t VALUES (1, 1, 'sesame')")
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, 2, 'x')",
        "UPDATE t SET n = 100 + n",
        "UPDATE t SET n = CAST(s AS int)",
        "UPDATE t SET n = 1 / (n - 1)",
        "UPDATE t SET n = 2; INSERT INTO t VALUES (2, 2, (SELECT s FROM t)), (2, 2, 'y')",
    ],
)
def test_errors_hold_no_rows(shop: Shop, sql: str) -> None:
    before = state(shop.made)
    with pytest.raises(GoexError) as caught:
        shop.on.run(job(shop.on, sql))
    assert "sesame" not in str(caught.value) and "(1" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert state(shop.made) == before


@tables("CREATE TABLE t (id int PRIMARY KEY)")
def test_a_table_that_was_created_goes_while_it_is_as_it_was_made(shop: Shop) -> None:
    shop.there_and_back("CREATE TABLE fresh (id serial PRIMARY KEY, t int REFERENCES t, n int DEFAULT 5 CHECK (n > 0))")
    work = job(shop.on, "CREATE TABLE fresh (id int)")
    shop.on.run(work)
    for theirs in ("INSERT INTO fresh VALUES (1)", "TRUNCATE fresh; ALTER TABLE fresh ADD COLUMN n int"):
        with shop.made.connect() as other:
            other.execute(theirs)
        with pytest.raises(Conflict):
            shop.on.revert(work, "undo")
    assert "public.fresh" in state(shop.made)


@tables("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1)")
def test_a_definition_that_changed_since_it_was_planned(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 2")
    with shop.made.connect() as other:
        other.execute("ALTER TABLE t ADD COLUMN m int")
    with pytest.raises(Conflict, match="changed since"):
        shop.on.run(work)


@tables("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1)")
def test_somebody_in_between_is_waited_for_and_it_is_tried_again(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = n + 1")
    with shop.made.connect(autocommit=False) as other:
        other.execute("UPDATE t SET n = 40")
        later = threading.Timer(0.3, other.commit)
        later.start()
        shop.on.run(work)
        later.join()
    assert state(shop.made)["public.t"] == ["(1,41)"]
    shop.on.revert(work, "undo")
    assert state(shop.made)["public.t"] == ["(1,40)"]


def test_the_count_that_proves_it_isnt_there(postgres: Postgres) -> None:
    """Without the server's count of rows nothing is proven, so nothing runs."""
    made = postgres.make("CREATE TABLE t (id int PRIMARY KEY)")
    with made.admin() as admin:
        admin.execute(f"ALTER ROLE {made.user} SET track_counts = off")
    with session(made) as on, pytest.raises(Unsupported, match="track_counts"):
        job(on, "DELETE FROM t")


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 7, m text DEFAULT 'none')",
    "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 3, 'x')",
)
def test_a_default_behind_on_conflict(shop: Shop) -> None:
    upsert = "INSERT INTO t VALUES ({0}, 2, 'y'), ({0} + 10, 5, 'z') ON CONFLICT (id) DO UPDATE SET"
    shop.there_and_back(
        f"{upsert.format(1)} n = DEFAULT, m = excluded.m; {upsert.format(2)} (n, m) = (DEFAULT, DEFAULT);"
        " UPDATE t SET (n, m) = (DEFAULT, 'new') WHERE id = 3"
    )
