"""An undo that by now would do something outside of the tables is refused beforehand: it is looked at again."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Unsupported
from tests.services.postgres import Postgres
from tests.support.databases import Asked, PostgresGround

_ACTS = "PERFORM dblink_exec('URL', 'INSERT INTO left_behind VALUES (1)'); "
_HIDDEN = "EXECUTE 'SELECT db' || $q$link_exec('URL', 'INSERT INTO left_behind VALUES (1)')$q$; "
_UPDATE = "UPDATE t SET n = 5 WHERE id = 1"
_INSERT = "INSERT INTO t VALUES (7, 7)"
_EVENT = "CREATE EVENT TRIGGER watches ON ddl_command_end EXECUTE FUNCTION public.event()"


def _function(head: str, does: str, more: str = "") -> str:
    return f"CREATE OR REPLACE FUNCTION {head} LANGUAGE plpgsql {more} AS $$ BEGIN {does} END $$"


def _check(does: str = "") -> str:
    return _function("fits(int) RETURNS bool", f"{does}RETURN true;")


def _number(does: str = "") -> str:
    return _function("number(int) RETURNS int", f"{does}RETURN 1;", "IMMUTABLE")


def _fires(does: str = "") -> str:
    return _function("fires() RETURNS trigger", f"{does}RETURN NULL;")


def _child(does: str, rows: int = 5) -> tuple[str, ...]:
    return (
        "CREATE TABLE child (n int REFERENCES t (n) ON UPDATE CASCADE ON DELETE CASCADE)",
        _fires(does),
        "CREATE TRIGGER fires AFTER UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION fires()",
        f"INSERT INTO child VALUES ({rows})",
    )


WAYS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "a CHECK": (_UPDATE, (_check(), "ALTER TABLE t ADD CHECK (fits(n))"), (_check(_ACTS),)),
    "a domain": (
        _UPDATE,
        (_check(), "CREATE DOMAIN fit AS int CHECK (fits(VALUE)); ALTER TABLE t ALTER n TYPE fit"),
        (_check(_ACTS),),
    ),
    "a generated column": (
        _UPDATE,
        (_number(), "ALTER TABLE t ADD g int GENERATED ALWAYS AS (number(n)) STORED"),
        (_number(_ACTS),),
    ),
    "an index": (_UPDATE, (_number(), "CREATE INDEX ON t (number(n))"), (_number(_ACTS),)),
    "a trigger of a table that a key reaches": (
        _UPDATE,
        _child("")[:3],
        ("INSERT INTO child VALUES (5)", _fires(_ACTS)),
    ),
    "a text of such a trigger": (_UPDATE, _child("")[:3], ("INSERT INTO child VALUES (5)", _fires(_HIDDEN))),
    "a table that came since": (_INSERT, (), _child(_ACTS, 7)),
    "a default that a key sets": (
        _INSERT,
        (),
        (
            _function("far() RETURNS int", f"{_ACTS}RETURN 1;"),
            "CREATE TABLE child (n int DEFAULT far() REFERENCES t (n) ON DELETE SET DEFAULT)",
            "INSERT INTO child VALUES (7)",
        ),
    ),
    "an event trigger": (_UPDATE, (), (f"@{_function('event() RETURNS event_trigger', _ACTS)}", f"@{_EVENT}")),
    "an event trigger, where a table was made": (
        "CREATE TABLE made (id int)",
        (),
        (f"@{_function('event() RETURNS event_trigger', _ACTS)}", f"@{_EVENT.replace('ddl_command_end', 'sql_drop')}"),
    ),
}
HARMLESS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "a trigger of its own, which is kept off": (
        _UPDATE,
        (_fires(), "CREATE TRIGGER fires AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fires()"),
        (_fires(_ACTS),),
    ),
    "a default, since each column is given its value": (
        "DELETE FROM t WHERE id = 1",
        (_function("far() RETURNS int", f"{_ACTS}RETURN 1;"), "ALTER TABLE t ALTER n SET DEFAULT far()"),
        (),
    ),
    "a trigger of a table that no key reaches by that": (
        _UPDATE,
        tuple(one.replace("t (n)", "t (id)").replace("(5)", "(1)") for one in _child(_ACTS)),
        (),
    ),
    "another CHECK": (_UPDATE, (_check(), "ALTER TABLE t ADD CHECK (fits(n))"), (_check("PERFORM 1; "),)),
    "an event trigger that only looks": (
        _UPDATE,
        (),
        (f"@{_function('event() RETURNS event_trigger', 'PERFORM 1;')}", f"@{_EVENT}"),
    ),
}


@pytest.fixture
def ground(postgres: Postgres) -> PostgresGround:
    made = PostgresGround(postgres)
    _execute(made, "@CREATE EXTENSION dblink", "CREATE TABLE left_behind (id int)")
    _execute(made, "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2)")
    return made


def _execute(ground: PostgresGround, *statements: str) -> None:
    """`@`: as the superuser."""
    for statement in statements:
        text = statement.replace("URL", ground.made.url)
        if text.startswith("@"):
            with ground.made.admin() as admin:
                admin.execute(text[1:].encode())
        else:
            ground.execute(text)
    if "left_behind (id int)" not in statements[-1]:
        ground.execute("DELETE FROM left_behind")


@pytest.mark.promise(75)
@pytest.mark.parametrize("way", WAYS)
def test_an_undo_that_would_reach_out_by_now_is_refused(ground: PostgresGround, way: str) -> None:
    text, before, since = WAYS[way]
    _execute(ground, *before, "SELECT 1")
    asked = Asked(ground, text, rows=9)
    asked.run()
    _execute(ground, *since)
    left = ground.dump()
    for look in (asked.compare, asked.revert):
        with pytest.raises(Unsupported, match="outside of the tables that nothing takes back") as refused:
            look("undo")
        assert "then try again" in refused.value.next_step
    assert ground.rows("SELECT * FROM left_behind") == [] and ground.dump() == left
    assert asked.state == "done"


@pytest.mark.parametrize("way", HARMLESS)
def test_what_an_undo_doesnt_run_is_no_hindrance(ground: PostgresGround, way: str) -> None:
    text, before, since = HARMLESS[way]
    _execute(ground, *before, "SELECT 1")
    rows = ground.rows("SELECT * FROM t ORDER BY id")
    asked = Asked(ground, text, rows=9)
    asked.run()
    _execute(ground, *since, "SELECT 1")
    asked.compare("undo")
    asked.revert("undo")
    assert ground.rows("SELECT * FROM t ORDER BY id") == rows and ground.rows("SELECT * FROM left_behind") == []
