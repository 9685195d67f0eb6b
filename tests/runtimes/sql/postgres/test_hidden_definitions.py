"""What a trigger's helper does past the rows that are watched, and its text doesn't tell: none of it may stay behind an
undo. What its text tells is refused beforehand (test_triggers.py)."""

from __future__ import annotations

import pytest

from policies.errors import Conflict
from runtimes.sql.contract import Policy
from tests.runtimes.sql.postgres.support import session
from tests.services.postgres import Postgres
from tests.support.databases import Asked, PostgresGround

_TABLE = "CREATE TABLE p (id int PRIMARY KEY, v text); INSERT INTO p VALUES (1, 'a'), (2, 'b')"
_TRIGGER = (
    "CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM helps(); RETURN NULL; END$$;"
    "CREATE TRIGGER fires AFTER UPDATE ON p FOR EACH STATEMENT EXECUTE FUNCTION fires()"
)
_HELPERS = {
    "grant": "EXECUTE 'GR' || 'ANT ALL ON p TO public'",
    "comment": "EXECUTE 'COM' || 'MENT ON TABLE p IS ''seen'''",
    "function": "EXECUTE 'CRE' || 'ATE FUNCTION made() RETURNS int LANGUAGE sql AS ''SELECT 1'''",
    "large object": "EXECUTE 'SELECT l' || 'o_create(0)'",
}


@pytest.fixture(scope="module")
def ground(postgres: Postgres) -> PostgresGround:
    return PostgresGround(postgres)


def _state(ground: PostgresGround) -> list[object]:
    return [
        *ground.rows("SELECT relacl::text, obj_description(oid) FROM pg_class WHERE relname = 'p'"),
        *ground.rows("SELECT count(*) FROM pg_largeobject_metadata"),
        *ground.rows("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1"),
        *ground.rows("SELECT * FROM p ORDER BY id"),
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("helper", _HELPERS)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_nothing_is_done_where_a_helper_writes_beside_the_tables(
    ground: PostgresGround, helper: str, policy: Policy
) -> None:
    ground.empty()
    body = f"CREATE FUNCTION helps() RETURNS void LANGUAGE plpgsql AS $$BEGIN {_HELPERS[helper]}; END$$"
    ground.execute(_TABLE, body, _TRIGGER)
    before = _state(ground)
    asked = Asked(ground, "UPDATE p SET v = 'z' WHERE id = 1", policy)
    with pytest.raises(Conflict, match="definition"):
        asked.run()
    assert _state(ground) == before and asked.state == "nothing"


@pytest.mark.parametrize("put", ["PREPARE goex_schema AS SELECT ''::text", "SELECT 1"], ids=["another", "none"])
def test_the_reading_of_the_schema_is_the_one_that_goex_prepared(ground: PostgresGround, put: str) -> None:
    """Functions run on the same connection: one could show GoEx a schema of its own, and one may drop what it likes."""
    ground.empty()
    ground.execute(_TABLE)
    with session(ground.made) as on:
        before = on.schema()
        on._link.do("DEALLOCATE goex_schema")
        on._link.do(put)
        assert on.schema() == before
    assert "p" in before.tables


@pytest.mark.parametrize("looks", ["PERFORM count(*) FROM p", "EXECUTE 'DEALL' || 'OCATE ALL'"])
def test_a_helper_that_only_looks_is_no_hindrance(ground: PostgresGround, looks: str) -> None:
    ground.empty()
    ground.execute(
        _TABLE,
        f"CREATE FUNCTION helps() RETURNS void LANGUAGE plpgsql AS $$BEGIN {looks}; END$$",
        _TRIGGER,
    )
    before = ground.dump()
    asked = Asked(ground, "UPDATE p SET v = 'z' WHERE id = 1")
    asked.run()
    asked.revert("undo")
    assert ground.dump() == before


def test_rows_that_no_trigger_of_goex_sees_take_everything_back(ground: PostgresGround) -> None:
    """A helper writes a partition by its own name, past the table that is watched: the server's count tells."""
    ground.empty()
    ground.execute(
        "CREATE TABLE m (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF m FOR VALUES FROM (0) TO (10)",
        "INSERT INTO m VALUES (1, 'a'), (2, 'b')",
        "CREATE FUNCTION helps() RETURNS void LANGUAGE plpgsql AS "
        "$$BEGIN EXECUTE 'UPDATE l' || 'ow SET v = ''hidden'' WHERE id = 2'; END$$",
        _TRIGGER.split(";CREATE TRIGGER")[0],
        "CREATE TRIGGER fires AFTER UPDATE ON m FOR EACH STATEMENT EXECUTE FUNCTION fires()",
    )
    before = ground.dump()
    asked = Asked(ground, "UPDATE m SET v = 'z' WHERE id = 1", rows=100)
    with pytest.raises(Conflict, match="caught"):
        asked.run()
    assert ground.dump() == before and asked.state == "nothing"
