"""Rows that break a rule of their table: they come back as they were, or aren't taken out."""

from __future__ import annotations

import pytest

from policies.errors import Unsupported
from tests.runtimes.sql.postgres.support import Shop, again, job, session, state, tables
from tests.services.postgres import Made

BROKEN = {
    "a check": (
        "CREATE TABLE t (id int PRIMARY KEY, n int, k int)",
        "INSERT INTO t VALUES (1, -1, 1), (2, 5, 1)",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0) NOT VALID",
        "COMMENT ON CONSTRAINT positive ON t IS 'it''s new'",
    ),
    "a check, beside another and a trigger": (
        "CREATE TABLE t (id int PRIMARY KEY, n int, k int CHECK (k < 9))",
        "INSERT INTO t VALUES (1, -1, 1), (2, 5, 1)",
        'ALTER TABLE t ADD CHECK (n > 0) NOT VALID, ADD CONSTRAINT "n\'s" CHECK (n <> -1) NOT VALID',
        "CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := NEW.k + 1; RETURN NEW; END $$",
        "CREATE TRIGGER add BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION add()",
    ),
    "NOT NULL by a check": (
        "CREATE TABLE t (id int PRIMARY KEY, n int, k int)",
        "INSERT INTO t VALUES (1, NULL, 1), (2, 5, 1)",
        "ALTER TABLE t ADD CONSTRAINT filled CHECK (n IS NOT NULL) NOT VALID",
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.promise(75)
@pytest.mark.parametrize("rule", BROKEN)
@pytest.mark.parametrize("sql", ["DELETE FROM t", "UPDATE t SET n = 7", "DELETE FROM t WHERE id = 1"])
def test_a_row_that_breaks_a_rule_comes_back_as_it_was(made: Made, rule: str, sql: str) -> None:
    again(made, *BROKEN[rule])
    with session(made) as on:
        Shop(made, on).there_and_back(sql)
        said = "SELECT conname, convalidated, pg_get_constraintdef(oid), obj_description(oid) FROM pg_constraint"
        with made.admin() as admin:
            found = admin.execute(f"{said} WHERE conrelid = 't'::regclass AND contype = 'c' ORDER BY 1").fetchall()
            admin.execute("CREATE SCHEMA twin; SET search_path = twin")
            for statement in BROKEN[rule]:
                admin.execute(statement.encode())
            wanted = admin.execute(f"{said} WHERE conrelid = 't'::regclass AND contype = 'c' ORDER BY 1").fetchall()
            admin.execute("DROP SCHEMA twin CASCADE")
        assert found == wanted and found


KEPT_OUT = {
    "a key": (
        "CREATE TABLE p (id int PRIMARY KEY)",
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        "INSERT INTO t VALUES (1, 99), (2, NULL)",
        "ALTER TABLE t ADD CONSTRAINT up FOREIGN KEY (n) REFERENCES p NOT VALID",
    ),
    "a domain": (
        "CREATE DOMAIN small AS int",
        "CREATE TABLE t (id int PRIMARY KEY, n small)",
        "INSERT INTO t VALUES (1, 99), (2, NULL)",
        "ALTER DOMAIN small ADD CONSTRAINT lesser CHECK (VALUE < 10) NOT VALID",
    ),
    "a domain in an array": (
        "CREATE DOMAIN small AS int",
        "CREATE TABLE t (id int PRIMARY KEY, n small[])",
        "INSERT INTO t VALUES (1, ARRAY[99]::small[]), (2, NULL)",
        "ALTER DOMAIN small ADD CONSTRAINT lesser CHECK (VALUE < 10) NOT VALID",
    ),
    "a function in a check": (
        "CREATE FUNCTION fits(n int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true'",
        "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (fits(n)))",
        "INSERT INTO t VALUES (1, 99), (2, NULL)",
        "CREATE OR REPLACE FUNCTION fits(n int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT n < 10'",
    ),
    "the clock in a check": (
        "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n = 0 OR n > extract(epoch FROM clock_timestamp())))",
        "INSERT INTO t VALUES (1, extract(epoch FROM clock_timestamp() + interval '0.2 seconds')::int + 1), (2, 0)",
        "SELECT pg_sleep(2)",
    ),
    "a function in a column": (
        "CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT n * 2'",
        "CREATE TABLE t (id int PRIMARY KEY, n int, m int GENERATED ALWAYS AS (twice(n)) STORED)",
        "INSERT INTO t VALUES (1, 99), (2, NULL)",
        "CREATE OR REPLACE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT n * 3'",
    ),
    "a check of a partition's": (
        "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (2)",
        "CREATE TABLE t2 PARTITION OF t DEFAULT",
        "INSERT INTO t VALUES (1, 99), (2, NULL)",
        "ALTER TABLE t1 ADD CHECK (n < 10) NOT VALID",
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("rule", KEPT_OUT)
def test_a_row_that_nothing_lets_in_again_isnt_taken_out(made: Made, rule: str) -> None:
    again(made, *KEPT_OUT[rule])
    before = state(made)
    with session(made) as on:
        for sql in ("DELETE FROM t WHERE id = 1", "UPDATE t SET n = NULL WHERE id = 1"):
            work = job(on, sql)
            with pytest.raises(Unsupported, match="Undo couldn't put back") as caught:
                on.run(work)
            assert "versioning" in caught.value.next_step
            assert state(made) == before and on.settle(work).state == "nothing"
        Shop(made, on).there_and_back("DELETE FROM t WHERE id = 2")
        held = job(on, "DELETE FROM t WHERE id = 1", "versioning")
        on.run(held)
        on.revert(held, "undo")
        assert state(made) == before


@tables(
    "CREATE TABLE p (id int PRIMARY KEY)",
    "CREATE TABLE t (id int PRIMARY KEY, n int REFERENCES p)",
    "INSERT INTO p VALUES (1)",
    "INSERT INTO t VALUES (1, 1)",
)
def test_a_key_that_was_broken_while_its_triggers_were_off(shop: Shop) -> None:
    with shop.made.admin() as admin:
        admin.execute("SET session_replication_role = replica; INSERT INTO t VALUES (2, 77)")
    before = state(shop.made)
    with pytest.raises(Unsupported, match="foreign key"):
        shop.on.run(job(shop.on, "DELETE FROM t"))
    assert state(shop.made) == before
    shop.there_and_back("DELETE FROM t WHERE id = 1")
    shop.there_and_back("DELETE FROM t WHERE id = 1; DELETE FROM p")


@tables(
    "CREATE TABLE p (id int PRIMARY KEY)",
    "CREATE TABLE t (id int PRIMARY KEY, n int)",
    "INSERT INTO t VALUES (1, 5)",
    "ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES p NOT VALID",
)
def test_what_a_broken_key_points_to_isnt_put_in(shop: Shop) -> None:
    before = state(shop.made)
    with pytest.raises(Unsupported, match="Undo couldn't put back"):
        shop.on.run(job(shop.on, "INSERT INTO p VALUES (5)"))
    assert state(shop.made) == before
    shop.there_and_back("INSERT INTO p VALUES (6)")


def test_what_was_never_validated_is_said_beforehand(made: Made) -> None:
    again(made, *KEPT_OUT["a key"])
    with session(made) as on:
        work = job(on, "DELETE FROM t WHERE id = 2")
        notes = on.survey(work.program, "reversal", work.limits).notes
    assert any("has up without having been validated" in note for note in notes), notes
