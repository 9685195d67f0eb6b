"""Databases as others made them: triggers that lean on a role's search_path, functions of extensions, functions that
have the name of one of the server's own."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policies.errors import GoexError, Unsupported
from runtimes.sql.contract import Ran, Verb
from runtimes.sql.postgres import helpers, reach
from runtimes.sql.postgres.helpers import Function, Functions
from tests.services.postgres import Postgres
from tests.support.databases import BACK_AND_FORTH, Asked, PostgresGround, verbs

MUSIC = """
CREATE SCHEMA music;
CREATE TYPE music.kind AS ENUM ('one', 'two');
CREATE TABLE music.artist (id serial PRIMARY KEY, name text NOT NULL, kind music.kind, credits int NOT NULL DEFAULT 0);
CREATE TABLE music.credit (artist int REFERENCES music.artist, name text);
CREATE TABLE music.log (what text, at regclass);
CREATE TABLE public.log (what text);
CREATE FUNCTION music.clean(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT btrim($1) $$;
CREATE FUNCTION music.counts() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN UPDATE artist SET credits = credits + 1, name = clean(name) WHERE id = NEW.artist;
  INSERT INTO log VALUES (NEW.name, 'artist'); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER counts AFTER INSERT ON music.credit DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION music.counts();
INSERT INTO music.artist (name) VALUES (' a '), ('b');
INSERT INTO music.log VALUES ('before', 'music.artist');
"""
CREDIT = "INSERT INTO music.credit VALUES (1, 'x'), (2, 'y')"


@pytest.fixture(scope="module")
def shared(postgres: Postgres) -> PostgresGround:
    return PostgresGround(postgres)


@pytest.fixture
def ground(shared: PostgresGround) -> PostgresGround:
    shared.empty()
    user, database = shared.made.user, shared.made.database
    for whose in (f"ROLE {user}", f"DATABASE {database}", f"ROLE {user} IN DATABASE {database}"):
        shared.made.observer().execute(f"ALTER {whose} RESET ALL".encode())
    return shared


@pytest.fixture
def music(ground: PostgresGround) -> Iterator[PostgresGround]:
    ground.execute(MUSIC)
    yield ground
    ground.execute("DROP SCHEMA music CASCADE")


def _exact(ground: PostgresGround, sql: str) -> Ran:
    """Do, undo, redo, undo: each exactly."""
    before = ground.dump()
    asked = Asked(ground, sql)
    asked.plan()
    ran = asked.run()
    after = ground.dump()
    assert asked.planned().program.reads_only or after != before
    for verb in BACK_AND_FORTH:
        asked.revert(verb)
        assert ground.dump() == (after if verb == "redo" else before), verb
    return ran


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["music, public", "pg_catalog, music", '"$user", nowhere, music'])
@pytest.mark.parametrize("whose", ["ROLE {user}", "DATABASE {database}", "ROLE {user} IN DATABASE {database}"])
def test_a_trigger_finds_what_its_role_or_database_lets_it_find(music: PostgresGround, path: str, whose: str) -> None:
    made = music.made
    with made.admin() as admin:
        admin.execute(f"ALTER {whose.format(user=made.user, database=made.database)} SET search_path = {path}".encode())
    ran = _exact(music, CREDIT)
    assert {one.table for one in ran.reached if one.rows} == {"music.credit", "music.artist", "music.log"}
    assert music.rows("SELECT count(*) FROM public.log") == [(0,)]


def test_a_sequence_is_named_with_its_schema_where_triggers_have_another_path(music: PostgresGround) -> None:
    """What was approved as one of `public` would move on one of `music`."""
    made = music.made
    with made.admin() as admin:
        admin.execute(f"ALTER ROLE {made.user} SET search_path = music".encode())
    music.execute("CREATE SEQUENCE public.counts; CREATE SEQUENCE music.counts")
    text = "INSERT INTO music.credit SELECT 1, nextval({})::text"
    for name in ("'counts'", "U&'c\\006funts'"):
        with pytest.raises(Unsupported, match="counts may be a sequence of music"):
            Asked(music, text.format(name)).plan()
    _exact(music, text.format("'public.counts'"))
    assert music.rows("SELECT is_called FROM music.counts") == [(False,)]


def test_a_type_may_be_named_with_its_schema(music: PostgresGround) -> None:
    _exact(
        music, "UPDATE music.artist SET kind = 'two'::music.kind WHERE kind IS DISTINCT FROM CAST('one' AS music.kind)"
    )
    with pytest.raises(Unsupported, match="The type"):
        Asked(music, "SELECT 'x'::music.artist FROM music.artist").plan()


def test_without_such_a_setting_it_is_refused(music: PostgresGround) -> None:
    before = music.dump()
    with pytest.raises(GoexError):
        Asked(music, CREDIT).run()
    assert music.dump() == before


def test_each_text_is_searched_once_for_each_table(music: PostgresGround, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred tables whose triggers call one function are a hundred tables, not ten thousand searches."""
    music.execute(
        "CREATE FUNCTION music.moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE t1 SET id = 1; UPDATE t2 SET"
        " id = 1; UPDATE t3 SET id = 1; UPDATE t4 SET id = 1; RETURN NULL; END $$",
        *(
            f"CREATE TABLE music.t{n} (id int); CREATE TRIGGER moves AFTER UPDATE ON music.t{n} FOR EACH ROW EXECUTE"
            " FUNCTION music.moves()"
            for n in range(1, 5)
        ),
    )
    asked: list[tuple[str, str]] = []
    known = reach.writes

    def counted(source: str, plain: str) -> Iterator[Verb]:
        asked.append((source, plain))
        return known(source, plain)

    monkeypatch.setattr(reach, "writes", counted)
    Asked(music, "UPDATE music.t1 SET id = 2").plan()
    of_one = [plain for source, plain in asked if "UPDATE t1" in source]
    assert sorted(of_one) == sorted(["artist", "credit", "log", "log", "t1", "t2", "t3", "t4"])


def test_what_a_function_calls_is_read_once_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred triggers that call a chain of functions are that chain, not a hundred of them."""
    chain = [Function(n, f"link{n}", "plpgsql", "v", f"BEGIN PERFORM link{n + 1}(1); END", "") for n in range(50)]
    functions = Functions({one.oid: one for one in chain}, {one.name: (one,) for one in chain})
    asked: list[str] = []
    known = helpers.shortened

    def counted(name: str) -> str:
        asked.append(name)
        return known(name)

    monkeypatch.setattr(helpers, "shortened", counted)
    for one in chain:
        assert functions.reached(oids=[one.oid]) == tuple(chain[one.oid :])
    assert len(asked) <= len(chain)


GUARDS = """
CREATE TABLE member (id int PRIMARY KEY, name text);
CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN IF NEW.name = 'root' THEN RAISE EXCEPTION 'cannot create user "%" -- of that name', NEW.name; END IF; {}
  RETURN NEW; END $$;
CREATE TRIGGER refuses BEFORE INSERT ON member FOR EACH ROW EXECUTE FUNCTION refuses();
"""


def test_a_message_of_a_trigger_defines_nothing(ground: PostgresGround) -> None:
    ground.execute(GUARDS.format(""))
    _exact(ground, "INSERT INTO member VALUES (1, 'a')")


@pytest.mark.parametrize("more", ["EXECUTE 'create table x ()';", "CREATE TABLE x ();", "DROP TABLE member; -- don't"])
def test_what_runs_texts_or_defines_is_refused_as_ever(ground: PostgresGround, more: str) -> None:
    ground.execute(GUARDS.format(more))
    with pytest.raises(Unsupported, match="reaches outside of the tables"):
        Asked(ground, "INSERT INTO member VALUES (1, 'a')").plan()


SHADOWED = """
CREATE TABLE tagged (id int PRIMARY KEY, name text, tags text[]);
INSERT INTO tagged VALUES (1, 'One', '{A,B}'), (2, 'TWO', NULL);
CREATE FUNCTION public.lower(text[]) RETURNS text[] LANGUAGE sql AS $$ SELECT $1 || '{evil}'::text[] $$;
CREATE FUNCTION public.count(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1';
"""


def test_the_servers_own_function_is_named_where_somebody_has_one_of_that_name(ground: PostgresGround) -> None:
    ground.execute(SHADOWED)
    _exact(ground, "UPDATE tagged SET name = lower(name) WHERE lower(name) = 'one'")
    asked = Asked(ground, "SELECT lower(name), count(*) FROM tagged GROUP BY 1 ORDER BY 1")
    assert asked.run().results[0].rows == (("one", 1), ("two", 1))
    assert "pg_catalog.lower(" in asked.planned().program.statements[0].sql
    with pytest.raises(GoexError):  # there is no such function of the server's own
        Asked(ground, "UPDATE tagged SET tags = lower(tags)").plan()


def test_the_servers_own_function_may_be_named_with_its_schema(ground: PostgresGround) -> None:
    ground.execute("CREATE TABLE tagged (id int PRIMARY KEY, name text); INSERT INTO tagged VALUES (1, 'One')")
    _exact(ground, "UPDATE tagged SET name = pg_catalog.upper(name) || pg_catalog.now()::text")
    for sql in ("public.upper(name)", "pg_catalog.pg_sleep(1)::text", "pg_catalog.coalesce(name, '')", "(tagged).name"):
        with pytest.raises(Unsupported, match="isn't on the list"):
            Asked(ground, f"UPDATE tagged SET name = {sql}").plan()


EXTENSIONS = """
CREATE EXTENSION pg_trgm; CREATE EXTENSION pgcrypto; CREATE EXTENSION "uuid-ossp"; CREATE EXTENSION ltree;
CREATE SCHEMA elsewhere; CREATE EXTENSION unaccent SCHEMA elsewhere;
CREATE TABLE page (id uuid PRIMARY KEY, name text, path ltree, secret bytea);
INSERT INTO page VALUES ('8a1a9c1c-1111-4111-8111-111111111111', 'hello', 'a.b.c', NULL);
"""


def test_listed_functions_of_extensions_compute(ground: PostgresGround) -> None:
    ground.execute(EXTENSIONS)
    try:
        ran = _exact(
            ground,
            "UPDATE page SET secret = digest(name, 'sha256'), path = subpath(path, 0, 1), name ="
            " elsewhere.unaccent('h\u00e9') WHERE similarity(name, 'hallo') > 0.1 AND nlevel(path) = 3;"
            " INSERT INTO page (id, name) VALUES (uuid_generate_v4(), 'x');"
            " UPDATE page SET name = 'y' WHERE name = 'x' AND uuid_generate_v4() IS NOT NULL",
        )
        assert verbs(ran) == {("page", "update"): 2, ("page", "insert"): 1}
        for sql in ("unaccent('x')", "elsewhere.similarity('a', 'b')", "set_limit(0.1)", "elsewhere.lower(name)"):
            with pytest.raises(Unsupported, match="isn't on the list"):
                Asked(ground, f"SELECT {sql} FROM page").plan()
        ground.execute("CREATE FUNCTION elsewhere.similarity(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        with pytest.raises(Unsupported, match="similarity"):
            Asked(ground, "SELECT similarity('a', 'b')").plan()
    finally:
        ground.execute("DROP SCHEMA elsewhere CASCADE")
