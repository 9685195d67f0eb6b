"""What only reads and would do something outside of the tables, through a view, a policy or a cast, is refused."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Unsupported
from tests.services.postgres import Postgres
from tests.support.databases import Asked, PostgresGround

_DELETES = "'URL', 'DELETE FROM people RETURNING id'"  # by another connection, which no transaction here holds back
_FAR = f"CREATE FUNCTION far() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN dblink_exec({_DELETES}); END $$"
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
    "a language that isn't trusted": ("CREATE VIEW seen AS SELECT id, shelled() FROM people",),
}


@pytest.fixture
def ground(postgres: Postgres) -> PostgresGround:
    made = PostgresGround(postgres)
    with made.made.admin() as admin:
        admin.execute("CREATE EXTENSION dblink")
        admin.execute(
            "CREATE LANGUAGE shell HANDLER plpgsql_call_handler;"
            "CREATE FUNCTION public.shelled() RETURNS int LANGUAGE shell AS 'BEGIN RETURN 1; END'"
        )
    made.execute("CREATE TABLE people (id int PRIMARY KEY)", "INSERT INTO people VALUES (1), (2)")
    return made


@pytest.mark.promise(69)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "text", ["SELECT id FROM seen", "UPDATE people SET id = 3 WHERE id = 1 AND EXISTS (SELECT 1 FROM seen)"]
)
def test_a_read_that_reaches_out_is_refused(ground: PostgresGround, way: str, text: str) -> None:
    ground.execute(*(one.replace("URL", ground.made.url) for one in WAYS[way]))
    with pytest.raises(Unsupported, match="outside of the tables where rows are only read"):
        Asked(ground, text).plan()
    assert ground.rows("SELECT id FROM people ORDER BY id") == [(1,), (2,)]


def test_functions_that_only_compute_are_no_hindrance(ground: PostgresGround) -> None:
    with ground.made.admin() as admin:
        admin.execute("CREATE EXTENSION pgcrypto; CREATE EXTENSION pg_buffercache")
        admin.execute("GRANT SELECT ON pg_buffercache TO PUBLIC")
    ground.execute(
        "CREATE FUNCTION next(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1 -- copy'",
        "CREATE VIEW seen AS SELECT next(id), gen_salt('md5') IS NULL AS none FROM people",
    )
    Asked(ground, "SELECT next FROM seen ORDER BY 1").plan()
    Asked(ground, "SELECT bufferid FROM pg_buffercache LIMIT 1").plan()
