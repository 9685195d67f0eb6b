"""What only reads and would do something outside of the tables is refused: through a view, a policy, a cast, or what
the server computes as it plans."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Unsupported
from tests.services.postgres import Postgres
from tests.support.databases import Asked, PostgresGround

_DELETES = "'URL', 'DELETE FROM people RETURNING id'"  # by another connection, which no transaction here holds back
_EXECUTES = "dblink_exec('URL', 'DELETE FROM people')"
_ACTS = f"RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN {_EXECUTES}; END $$"
_FAR = f"CREATE FUNCTION far() {_ACTS}"
_SURE = f"{_FAR} IMMUTABLE"  # it isn't: the server computes it as it plans
_SEEN = "CREATE TABLE seen (id int); INSERT INTO seen VALUES (1)"
_SIGN = (
    f"CREATE FUNCTION far(int, int) {_ACTS}",
    "CREATE OPERATOR === (FUNCTION = far, LEFTARG = int, RIGHTARG = int)",
)
_VIEW = "CREATE VIEW seen AS SELECT id, near() FROM people"
_NEAR = "CREATE FUNCTION near() RETURNS text LANGUAGE sql AS $$ SELECT far() $$"
WAYS: dict[str, tuple[str, ...]] = {
    "a view": (f"CREATE VIEW seen AS SELECT id FROM dblink({_DELETES}) AS t(id int)",),
    "a view's function": (_FAR, "CREATE VIEW seen AS SELECT id, far() FROM people"),
    "what its function calls, behind another view": (
        _FAR,
        _NEAR,
        "CREATE VIEW beneath AS SELECT id, near() FROM people",
        "CREATE VIEW seen AS SELECT id FROM beneath WHERE near <> ''",
    ),
    "a policy": (
        _FAR,
        "CREATE TABLE seen AS SELECT * FROM people",
        "ALTER TABLE seen ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE seen FORCE ROW LEVEL SECURITY",
        "CREATE POLICY held ON seen USING (far() <> '')",
    ),
    "a policy's view": (
        _FAR,
        "CREATE VIEW beneath AS SELECT far()",
        "CREATE TABLE seen AS SELECT * FROM people",
        "ALTER TABLE seen ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE seen FORCE ROW LEVEL SECURITY",
        "CREATE POLICY held ON seen USING (EXISTS (SELECT 1 FROM beneath))",
    ),
    "an operator": (*_SIGN, "CREATE VIEW seen AS SELECT id, id === 1 AS far FROM people"),
    "an operator in a function": (
        *_SIGN,
        "CREATE FUNCTION near() RETURNS text LANGUAGE sql AS 'SELECT 1 === 2'",
        _VIEW,
    ),
    "an aggregate": (
        f"CREATE FUNCTION far(text, int) {_ACTS}",
        "CREATE AGGREGATE all_of(int) (SFUNC = far, STYPE = text)",
        "CREATE VIEW seen AS SELECT all_of(id) AS id FROM people",
    ),
    "another view that a function names": (
        _FAR,
        "CREATE VIEW beneath AS SELECT far()",
        "CREATE FUNCTION near() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT far FROM beneath); END $$",
        _VIEW,
    ),
    "a text that is made and run": (
        "CREATE FUNCTION near() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN"
        f" EXECUTE 'SELECT db' || $q$link_exec{_EXECUTES.removeprefix('dblink_exec')}$q$; RETURN 1; END $f$",
        _VIEW,
    ),
    "the server's own that runs a text": (
        f"CREATE VIEW seen AS SELECT id, query_to_xml($q$SELECT {_EXECUTES}$q$, true, true, '') FROM people",
    ),
    "the server's own that acts": ("CREATE VIEW seen AS SELECT id, pg_terminate_backend(0) FROM people",),
    "a name in escapes": (
        "CREATE FUNCTION near() RETURNS text LANGUAGE sql AS"
        f' $f$ SELECT U&"\\0064blink_exec"{_EXECUTES.removeprefix("dblink_exec")} $f$',
        _VIEW,
    ),
    "a domain": (
        f"CREATE DOMAIN far AS text CHECK ({_EXECUTES} <> '')",
        "CREATE VIEW seen AS SELECT id, id::text::far AS far FROM people",
    ),
    "a call with a comment in it": (_FAR, _NEAR.replace("far()", "far/* */()"), _VIEW),
    "an index": (_SURE, _SEEN, "CREATE INDEX ON seen (id) WHERE far() IS NOT NULL"),
    "statistics": (_SURE, _SEEN, "CREATE STATISTICS of_seen ON (far() || id::text) FROM seen"),
    "a child's CHECK": (_SURE, _SEEN, "CREATE TABLE child (CHECK (far() IS NOT NULL)) INHERITS (seen)"),
    "a language whose texts say nothing": ("CREATE VIEW seen AS SELECT id, said() FROM people",),
    "a language that isn't trusted": ("CREATE VIEW seen AS SELECT id, shelled() FROM people",),
}


@pytest.fixture
def ground(postgres: Postgres) -> PostgresGround:
    made = PostgresGround(postgres)
    with made.made.admin() as admin:
        admin.execute("CREATE EXTENSION dblink")
        admin.execute(
            "CREATE TRUSTED LANGUAGE plperl HANDLER plpgsql_call_handler;"
            "CREATE FUNCTION public.said() RETURNS int LANGUAGE plperl AS 'BEGIN RETURN 1; END';"
            "CREATE LANGUAGE shell HANDLER plpgsql_call_handler;"
            "CREATE FUNCTION public.shelled() RETURNS int LANGUAGE shell AS 'BEGIN RETURN 1; END'"
        )
    made.execute("CREATE TABLE people (id int PRIMARY KEY)", "INSERT INTO people VALUES (1), (2)")
    return made


@pytest.mark.sampled(5)
@pytest.mark.promise(69)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "text", ["SELECT id FROM seen", "UPDATE people SET id = 3 WHERE id = 1 AND EXISTS (SELECT 1 FROM seen)"]
)
def test_a_read_that_reaches_out_is_refused(ground: PostgresGround, way: str, text: str) -> None:
    ground.execute(*(one.replace("URL", ground.made.url) for one in WAYS[way]))
    ground.execute("INSERT INTO people VALUES (1), (2) ON CONFLICT DO NOTHING")  # making an index plans, too
    with pytest.raises(Unsupported, match="outside of the tables that nothing takes back"):
        Asked(ground, text).plan()
    assert ground.rows("SELECT id FROM people ORDER BY id") == [(1,), (2,)]


@pytest.mark.sampled(1)
@pytest.mark.promise(69)
@pytest.mark.parametrize("text", ["SELECT id FROM printed", "SELECT id FROM seen", "SELECT id FROM parent"])
def test_a_foreign_table_that_runs_a_program_is_refused(ground: PostgresGround, text: str) -> None:
    ground.execute("CREATE TABLE parent (id int)")
    with ground.made.admin() as admin:
        admin.execute("CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw")
        admin.execute(
            "CREATE FOREIGN TABLE printed (id int) SERVER files OPTIONS (program 'echo 1');"
            "CREATE FOREIGN TABLE child (id int) INHERITS (parent) SERVER files OPTIONS (program 'echo 1');"
            "CREATE VIEW seen AS SELECT id FROM printed; GRANT SELECT ON printed, child, seen TO PUBLIC"
        )
    with pytest.raises(Unsupported, match=r"the program of .* outside of the tables"):
        Asked(ground, text).plan()


def test_functions_that_only_compute_are_no_hindrance(ground: PostgresGround) -> None:
    with ground.made.admin() as admin:
        admin.execute("CREATE EXTENSION pgcrypto; CREATE EXTENSION pg_buffercache")
        admin.execute("GRANT SELECT ON pg_buffercache TO PUBLIC")
    ground.execute(
        "CREATE FUNCTION next(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1 -- copy'",
        "CREATE VIEW seen AS SELECT next(id), gen_salt('md5') IS NULL AS none FROM people",
    )
    ground.execute(
        "CREATE FUNCTION fits(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN true; END $$",
        "CREATE TABLE held (id int PRIMARY KEY CHECK (fits(id)))",  # which runs where rows are written alone
    )
    Asked(ground, "SELECT id FROM held").plan()
    Asked(ground, "SELECT next FROM seen ORDER BY 1").plan()
    Asked(ground, "SELECT bufferid FROM pg_buffercache LIMIT 1").plan()


@pytest.mark.parametrize("text", ["SELECT id, far FROM seen", "DELETE FROM people WHERE id IN (SELECT id FROM seen)"])
def test_a_function_that_was_replaced_after_the_plan(ground: PostgresGround, text: str) -> None:
    ground.execute(
        "CREATE FUNCTION far() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "CREATE VIEW seen AS SELECT id, far() FROM people",
    )
    asked = Asked(ground, text)
    asked.plan()
    ground.execute(_FAR.replace("CREATE", "CREATE OR REPLACE").replace("URL", ground.made.url))
    with pytest.raises(Unsupported, match="outside of the tables that nothing takes back"):
        asked.run()
    assert ground.rows("SELECT id FROM people ORDER BY id") == [(1,), (2,)]


def test_what_others_added_to_an_extension_isnt_its_own(ground: PostgresGround) -> None:
    """Of a trusted extension its owner is no superuser, and may add functions of theirs."""
    made = ground.made
    with made.admin() as admin:
        admin.execute(f"GRANT CREATE ON DATABASE {made.database} TO {made.user}".encode())
    planted = ("similarity(varchar, text)", "lower(varchar)")
    ground.execute(
        "CREATE EXTENSION pg_trgm; CREATE TABLE page (id int PRIMARY KEY, name varchar(9));"
        "INSERT INTO page VALUES (1, 'X')",
        *(f"CREATE FUNCTION {one} {_ACTS.replace('URL', made.url)}" for one in planted),
        *(f"ALTER EXTENSION pg_trgm ADD FUNCTION {one}" for one in planted),
    )
    with pytest.raises(Unsupported, match="similarity"):
        Asked(ground, "SELECT similarity(name, 'x') FROM page").plan()
    assert Asked(ground, "SELECT lower(name) FROM page").run().results[0].rows == (("x",),)
    ground.execute("CREATE VIEW seen AS SELECT public.lower(name) FROM page")
    with pytest.raises(Unsupported, match="outside of the tables that nothing takes back"):
        Asked(ground, "SELECT * FROM seen").plan()
    assert ground.rows("SELECT id FROM people ORDER BY id") == [(1,), (2,)]
