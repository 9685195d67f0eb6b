"""Rows of PostgreSQL, set back exactly, whatever table, type, key, trigger or constraint; or refused beforehand."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator

import pytest

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from runtimes.sql.contract import Policy
from runtimes.sql.postgres.errors import translated
from runtimes.sql.postgres.session import PostgresSession
from tests.runtimes.sql.postgres.support import job, session, state
from tests.services.postgres import Made, Postgres


class Shop:
    """A database of one test's own, with a session on it."""

    def __init__(self, made: Made, on: PostgresSession) -> None:
        self.made, self.on = made, on

    def there_and_back(self, sql: str, *, changes: bool = True) -> None:
        """Do, undo, redo, undo: each time exactly the one state or the other."""
        before = state(self.made)
        work = job(self.on, sql)
        self.on.trial(work)
        assert state(self.made) == before
        self.on.run(work)
        after = state(self.made)
        assert (after != before) is changes
        for verb, wanted, said in (("undo", before, "undone"), ("redo", after, "done"), ("undo", before, "undone")):
            self.on.compare(work, verb)
            self.on.revert(work, verb)
            assert state(self.made) == wanted, verb
            assert self.on.settle(work).state == said
            assert self.on.revert(work, verb).notes, "a second time it is so already"
            assert state(self.made) == wanted


@pytest.fixture(scope="module")
def made(postgres: Postgres) -> Made:
    """One database for this file: making one takes longer than a test."""
    return postgres.make()


def again(made: Made, *statements: str) -> Made:
    """The same database with nothing in it but what those statements make."""
    made.empty()
    with made.connect() as owner:
        for statement in statements:
            owner.execute(statement.encode())
    return made


@pytest.fixture
def shop(made: Made, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """What the test's `tables(...)` make, with a session on it."""
    again(made, *request.param)
    with session(made) as on:
        yield Shop(made, on)


def tables(*statements: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shop", [statements], indirect=True, ids=["db"])


# ---- types

_TYPES = {
    "float8": ["0.1", "'NaN'", "'-Infinity'", "'-0'", "5e-324", "1.7976931348623157e308", "123456789.123456789"],
    "float4": ["0.1", "3.4028235e38", "1e-45"],
    "numeric": ["1.10", "1.1000", "'NaN'", "'Infinity'", "-0.00", "1e-300", "123456789012345678901234567890.5"],
    "int8": ["-9223372036854775808", "0"],
    "bytea": ["'\\x'", "'\\x00ff0a5c27'"],
    "text": ["''", "' '", "'it''s \\ \" , ( ) {}'", "E'a\\tb\\nc\\r\\\\N'", "'NULL'", "'ä中😀'"],
    "char(5)": ["'a'", "'     '"],
    "json": ['\'{"a" : 1, "a":2 }\'', "'  [1 ,2]'", "'null'"],
    "jsonb": ['\'{"b": 1.10, "a": [1, null]}\'', "'null'"],
    "int[]": ["'{}'", "'{1,NULL,3}'", "'[2:3]={5,6}'", "'{{1,2},{3,4}}'"],
    "text[]": ['\'{"",NULL,"NULL","a,b","c\\"d"}\''],
    "timestamptz": ["'infinity'", "'-infinity'", "'2024-02-29 12:00:00.123456+05:30'", "'0044-03-15 BC'"],
    "timestamp": ["'294276-12-31 23:59:59.999999'", "'infinity'"],
    "date": ["'infinity'", "'4713-01-01 BC'", "'2024-02-29'"],
    "timetz": ["'04:05:06.789-08'", "'24:00:00+00'"],
    "interval": ["'1 year -2 mons 3 days -04:05:06.789'", "'-1 mon +1 day'", "'178000000 years'"],
    "int4range": ["'empty'", "'[1,5)'", "'(,3)'"],
    "nummultirange": ["'{[1.0,2.0),[3,4.00]}'", "'{}'"],
    "tstzrange": ["'[2024-01-01,infinity)'"],
    "mood": ["'sad'", "'very ''happy'''"],
    "price": ["1.50", "0"],
    "pair": ["ROW(1, 'a,\"b')::pair", "ROW(NULL, NULL)::pair", "ROW(NULL, '')::pair"],
    "pair[]": ["ARRAY[ROW(1, 'x y')::pair, NULL]"],
    "citext": ["'MiXed'"],
    "tsvector": ["'a:1A ''b c'':2'"],
    "tsquery": ["'a & !b <2> c'"],
    "inet": ["'::1'", "'192.0.2.0/24'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "bit varying": ["B''", "B'0101'"],
    "money": ["'-12.34'"],
    "point": ["'(0.1,-1e-300)'"],
    "polygon": ["'((0,0),(0.1,1),(1,0))'"],
    "hstore": ['\'a=>NULL, "b c"=>"=>"\''],
    "boolean": ["true", "false"],
    '"char"': ["'x'"],
    "oid": ["4294967295"],
    "pg_lsn": ["'16/B374D848'"],
}


@pytest.mark.promise(75)
def test_every_type_comes_back_as_it_was(made: Made) -> None:
    again(made)
    with made.admin() as admin:
        admin.execute("CREATE EXTENSION citext; CREATE EXTENSION hstore")
    with made.connect() as owner:
        owner.execute("CREATE TYPE mood AS ENUM ('sad', 'very ''happy''')")
        owner.execute("CREATE DOMAIN price AS numeric CHECK (VALUE >= 0)")
        owner.execute("CREATE TYPE pair AS (a int, b text)")
        columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(_TYPES))
        owner.execute(f"CREATE TABLE kinds (id serial PRIMARY KEY, {columns})")
        owner.execute(f"CREATE TABLE plain ({columns})")
        for table in ("kinds", "plain"):
            owner.execute(f'ALTER TABLE {table} ADD COLUMN gone int, ADD COLUMN "Odd ""name" text, ADD COLUMN t text')
            owner.execute(f"ALTER TABLE {table} DROP COLUMN gone")
            for i, values in enumerate(_TYPES.values()):
                for value in values:
                    owner.execute(f"INSERT INTO {table} (c{i}, \"Odd \"\"name\", t) VALUES ({value}, 'x', 'y')")
            owner.execute(f"INSERT INTO {table} DEFAULT VALUES")
    with session(made) as on:
        shop = Shop(made, on)
        nothing = ", ".join(f"c{i} = NULL" for i in range(len(_TYPES)))
        shop.there_and_back(f"UPDATE kinds SET {nothing}")
        shop.there_and_back("DELETE FROM kinds")
        shop.there_and_back("TRUNCATE kinds")
        shop.there_and_back("DELETE FROM plain")
        shop.there_and_back(f"UPDATE plain SET {nothing}")


# ---- keys and constraints


@tables(
    "CREATE TABLE people (id int PRIMARY KEY, boss int REFERENCES people, rank int UNIQUE)",
    "INSERT INTO people VALUES (1, NULL, 3), (2, 1, 2), (3, 2, 1)",
    "CREATE TABLE a (id int PRIMARY KEY, b int)",
    "CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a)",
    "INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1)",
    "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b DEFERRABLE INITIALLY DEFERRED",
)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM people",
        "UPDATE people SET id = id + 10, boss = boss + 10",
        "UPDATE people SET rank = NULL; UPDATE people SET rank = id",
        "INSERT INTO people VALUES (5, 4, 9), (4, 5, 8)",
        "DELETE FROM people WHERE id = 3; INSERT INTO people VALUES (3, 1, 77); "
        "UPDATE people SET boss = 3 WHERE id = 2",
        "DELETE FROM b; DELETE FROM a",
        "INSERT INTO a VALUES (2, 2); INSERT INTO b VALUES (2, 2)",
    ],
)
def test_rows_that_point_to_each_other(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE parents (id int PRIMARY KEY, n int UNIQUE)",
    "CREATE TABLE restricts (id int PRIMARY KEY, p int REFERENCES parents ON DELETE RESTRICT ON UPDATE CASCADE)",
    "CREATE TABLE defaults (id int PRIMARY KEY, p int DEFAULT 9 REFERENCES parents ON DELETE SET DEFAULT)",
    "CREATE TABLE deep (id int PRIMARY KEY, p int REFERENCES defaults ON DELETE CASCADE)",
    "INSERT INTO parents VALUES (1, 1), (2, 2), (9, 9)",
    "INSERT INTO restricts VALUES (1, 1); INSERT INTO defaults VALUES (1, 2), (2, 9); INSERT INTO deep VALUES (1, 1)",
)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM parents WHERE id = 2",
        "UPDATE parents SET id = 100 WHERE id = 1",
        "DELETE FROM defaults",
        "DELETE FROM restricts; UPDATE parents SET n = 5 WHERE n = 1",
        "UPDATE parents SET n = NULL; UPDATE parents SET n = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE 9 END",
    ],
)
def test_cascades_of_every_kind(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE seats (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place int NOT NULL UNIQUE, who text, "
    "upper_who text GENERATED ALWAYS AS (upper(who)) STORED, EXCLUDE USING btree (who WITH =))",
    "INSERT INTO seats (place, who) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE seats SET place = -place; UPDATE seats SET place = 4 + place",
        "UPDATE seats SET who = who || '!' WHERE place < 3",
        "DELETE FROM seats WHERE place = 2; INSERT INTO seats (place, who) VALUES (2, 'd')",
        "INSERT INTO seats (place, who) VALUES (1, 'z') ON CONFLICT (place) DO UPDATE SET who = 'up'",
        "INSERT INTO seats (place, who) VALUES (1, 'z') ON CONFLICT DO NOTHING; DELETE FROM seats WHERE place = 3",
    ],
)
def test_unique_values_identities_and_computed_columns(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


_CARDS = "CREATE TABLE cards (id int PRIMARY KEY, pos int NOT NULL{}, name varchar(9) NOT NULL DEFAULT 'x', half int)"
_SWAP = "UPDATE cards SET {0} = {1} WHERE id = 1; UPDATE cards SET {0} = {2} WHERE id = 2; "
_SWAP += "UPDATE cards SET {0} = {3} WHERE id = 1"
_SWAPPED = _SWAP.format("pos", -1, 1, 2)
_FILLED = "INSERT INTO cards VALUES (1, 1, 'a', 1), (2, 2, 'b', 2), (3, 3, 'c', 3); INSERT INTO notes VALUES (1), (2)"
_NOTES = "CREATE TABLE notes (card int DEFAULT 1 REFERENCES cards ON DELETE {})"


@pytest.mark.promise(75)
@pytest.mark.parametrize("action", ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"])
@pytest.mark.parametrize(
    "sql",
    [
        _SWAPPED,
        "UPDATE cards SET pos = pos + 10; UPDATE cards SET pos = 14 - pos",
        "UPDATE cards SET pos = pos + 10 WHERE id = 3; UPDATE cards SET pos = 3 WHERE id = 2",
        "DELETE FROM notes; DELETE FROM cards WHERE id < 3; INSERT INTO cards VALUES (1, 2, 'a', 1), (2, 1, 'b', 2)",
    ],
)
def test_unique_values_change_places_below_what_points_there(made: Made, action: str, sql: str) -> None:
    again(made, _CARDS.format(" UNIQUE"), _NOTES.format(action), _FILLED)
    with session(made) as on:
        Shop(made, on).there_and_back(sql)


CROWDED = {
    "a short text": ("ALTER TABLE cards ADD UNIQUE (name)", _SWAP.format("name", "'-'", "'a'", "'b'")),
    "a partial index": ("CREATE UNIQUE INDEX ON cards (pos) WHERE pos > 0", _SWAPPED),
    "an expression": ("CREATE UNIQUE INDEX ON cards (abs(half))", _SWAP.format("half", 9, 1, 2)),
    "a check that leaves no room": (
        "ALTER TABLE cards ADD UNIQUE (pos), ADD CHECK (pos BETWEEN 0 AND 3)",
        _SWAP.format("pos", 0, 1, 2),
    ),
    "NULLS NOT DISTINCT": (
        "ALTER TABLE cards ADD UNIQUE NULLS NOT DISTINCT (half)",
        _SWAP.format("half", "NULL", 1, 2),
    ),
    "an identity": (
        "ALTER TABLE cards ALTER pos ADD GENERATED ALWAYS AS IDENTITY (START 50)",
        "UPDATE cards SET pos = DEFAULT",
    ),
    "a trigger's": (
        "ALTER TABLE cards ADD UNIQUE (name); CREATE FUNCTION turn() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.name := substr('.ba', NEW.half + 1, 1); RETURN NEW; END $$; "
        "CREATE TRIGGER turns BEFORE UPDATE ON cards FOR EACH ROW EXECUTE FUNCTION turn()",
        _SWAP.format("half", 0, 2, 1),
    ),
}


@pytest.mark.promise(75)
@pytest.mark.parametrize("which", CROWDED)
def test_unique_values_that_could_not_change_back_are_refused(made: Made, which: str) -> None:
    index, sql = CROWDED[which]
    again(made, _CARDS.format(""), _NOTES.format("CASCADE"), _FILLED, index)
    before = state(made)
    with session(made) as on:
        work = job(on, sql)
        with pytest.raises(Unsupported, match="Undo couldn't put back") as caught:
            on.run(work)
        assert "versioning" in caught.value.next_step
        assert state(made) == before and on.settle(work).state == "nothing"
        alone = "UPDATE cards SET name = 'z', half = 0, pos = 0 WHERE id = 3"
        Shop(made, on).there_and_back(alone if which != "an identity" else "UPDATE cards SET half = 9")


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, m int GENERATED ALWAYS AS (n) STORED UNIQUE)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
)
def test_computed_unique_values_change_places(shop: Shop) -> None:
    shop.there_and_back(
        "UPDATE t SET n = -1 WHERE id = 1; UPDATE t SET n = 1 WHERE id = 2; UPDATE t SET n = 2 WHERE id = 1"
    )


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("text", "a", "b"),
        ("varchar(60)", "a", "b"),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"),
        ("date", "2024-02-28", "2024-02-29"),
        ("numeric(9,2)", "1.50", "2.50"),
        ("smallint", "1", "2"),
    ],
)
def test_values_that_change_places_wait_at_ones_that_are_free(made: Made, kind: str, first: str, second: str) -> None:
    again(
        made,
        f"CREATE TABLE cards (id int PRIMARY KEY, pos {kind} NOT NULL UNIQUE)",
        _NOTES.format("RESTRICT"),
        f"INSERT INTO cards VALUES (1, '{first}'), (2, '{second}'); INSERT INTO notes VALUES (1)",
    )
    with session(made) as on:
        Shop(made, on).there_and_back(
            f"DELETE FROM notes; DELETE FROM cards; INSERT INTO cards VALUES (1, '{second}'), (2, '{first}')"
        )


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)",
    "CREATE UNIQUE INDEX one_n ON t (n)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
)
def test_an_index_that_was_never_finished_keeps_rows_out_all_the_same(shop: Shop) -> None:
    with shop.made.admin() as admin:
        admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'one_n'::regclass")
    shop.there_and_back(
        "UPDATE t SET n = -1 WHERE id = 1; UPDATE t SET n = 1 WHERE id = 2; UPDATE t SET n = 2 WHERE id = 1"
    )


@tables("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE kid () INHERITS (t)", "DROP TABLE kid")
def test_a_table_that_nothing_inherits_from_any_more(shop: Shop) -> None:
    shop.there_and_back("INSERT INTO t VALUES (1)")


@tables(
    "CREATE TABLE bag (a int, b text)", "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (1, 'x'), (NULL, NULL), (2, 'y')"
)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM bag WHERE a = 1",
        "UPDATE bag SET b = 'x', a = 1",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x')",
        "TRUNCATE bag",
    ],
)
def test_without_a_key_every_equal_row_counts(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE logs (at date NOT NULL, id int, what text, PRIMARY KEY (at, id)) PARTITION BY RANGE (at)",
    "CREATE TABLE logs_23 PARTITION OF logs FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')",
    "CREATE TABLE logs_24 (what text, id int NOT NULL, at date NOT NULL, PRIMARY KEY (at, id))",
    "ALTER TABLE logs ATTACH PARTITION logs_24 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
    "INSERT INTO logs VALUES ('2023-05-05', 1, 'a'), ('2024-05-05', 2, 'b')",
    "CREATE TABLE lines (at date, id int, n int, "
    "FOREIGN KEY (at, id) REFERENCES logs ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO lines VALUES ('2023-05-05', 1, 7)",
)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE logs SET what = 'c'",
        "UPDATE logs SET at = '2024-06-06' WHERE id = 1",
        "DELETE FROM logs",
        "INSERT INTO logs VALUES ('2024-01-01', 9, 'z')",
    ],
)
def test_partitioned_tables(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE)",
    "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, NULL)",
    "CREATE TABLE halves (id int PRIMARY KEY) PARTITION BY RANGE (id)",
    "CREATE TABLE low PARTITION OF halves FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE high PARTITION OF halves FOR VALUES FROM (10) TO (20)",
    "INSERT INTO halves VALUES (1), (2)",
)
@pytest.mark.parametrize("sql", ["DELETE FROM tree WHERE id = 1", "UPDATE halves SET id = id + 10"])
def test_what_the_survey_foresees_is_enough_to_run(shop: Shop, sql: str) -> None:
    work = job(shop.on, sql)
    found = shop.on.survey(work.program, "reversal", work.limits)
    shop.on.run(dataclasses.replace(work, rows=sum(one.rows for one in found.reached)))
    shop.on.revert(work, "undo")


# ---- triggers

_AUDITED = (
    "CREATE TABLE t (id int PRIMARY KEY, n int, touched int DEFAULT 0)",
    "CREATE TABLE audit (id serial PRIMARY KEY, what text)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO audit (what) VALUES ('old')",
)


@pytest.mark.promise(75)
@tables(
    *_AUDITED,
    "CREATE FUNCTION before_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.touched := OLD.touched + 1; "
    "IF NEW.id = 3 THEN RETURN NULL; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER a_before BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION before_()",
    "CREATE FUNCTION after_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit (what) VALUES (TG_OP); "
    "IF TG_OP = 'UPDATE' AND NEW.n < 100 THEN UPDATE t SET n = 100 WHERE id = NEW.id; END IF; RETURN NULL; END $$",
    "CREATE TRIGGER b_after AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "CREATE TRIGGER c_each AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION after_()",
    "CREATE CONSTRAINT TRIGGER d_late AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t ENABLE ALWAYS TRIGGER a_before",
    "CREATE TRIGGER e_off AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t DISABLE TRIGGER e_off",
    "CREATE TRIGGER f_replica AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
    "ALTER TABLE t ENABLE REPLICA TRIGGER f_replica",
)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = n + 1", "DELETE FROM t WHERE id < 3", "INSERT INTO t VALUES (4, 4)"])
def test_what_triggers_write_is_taken_back_and_they_are_as_they_were(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
    "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (10) TO (20)",
    "CREATE TABLE audit (what text)",
    "INSERT INTO t VALUES (1, 1), (11, 2)",
    "CREATE FUNCTION after_() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (TG_OP); "
    "RETURN NULL; END $$",
    "CREATE TRIGGER each AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION after_()",
)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 9", "UPDATE t SET id = id + 11 WHERE id = 1", "DELETE FROM t"])
def test_triggers_of_partitions(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@pytest.mark.promise(75)
@tables(
    *_AUDITED,
    "CREATE FUNCTION hidden() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "EXECUTE 'INSERT INTO ' || 'aud' || 'it (what) VALUES (''hidden'')'; RETURN NULL; END $$",
    "CREATE TRIGGER hides AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION hidden()",
    "CREATE FUNCTION emptied() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN EXECUTE 'TRUNCATE ' || 'audit'; RETURN NULL; END $$",
    "CREATE TRIGGER empties AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION emptied()",
    "CREATE FUNCTION defines() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN EXECUTE 'CRE' || 'ATE TABLE x' || NEW.id || '()'; RETURN NULL; END $$",
    "CREATE TRIGGER defines AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION defines()",
)
@pytest.mark.parametrize(
    "sql", ["UPDATE t SET n = 5 WHERE id = 1", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 7)"]
)
def test_what_a_trigger_hides_rolls_everything_back(shop: Shop, sql: str) -> None:
    before = state(shop.made)
    work = job(shop.on, sql)
    with pytest.raises(Conflict, match="Nothing was touched"):
        shop.on.run(work)
    assert state(shop.made) == before
    assert shop.on.settle(work).state == "nothing"


@tables(
    "CREATE TABLE counted (id int PRIMARY KEY, n int)",
    "INSERT INTO counted VALUES (1, 0)",
    "CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE counted SET n = n + 1; RETURN 5; END $$",
    "CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT sneaky())",
)
def test_a_default_that_writes_rolls_everything_back(shop: Shop) -> None:
    before = state(shop.made)
    with pytest.raises(Conflict, match="counted"):
        shop.on.run(job(shop.on, "INSERT INTO t (id) VALUES (1)"))
    assert state(shop.made) == before


_HELPER = "CREATE FUNCTION {} LANGUAGE plpgsql AS $$ BEGIN {}; END $$"
_FIRES = (
    _HELPER.format("fires() RETURNS trigger", "PERFORM helps(); RETURN NULL"),
    "CREATE TRIGGER fires AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION fires()",
)
_DEEPER = (_HELPER.format("helps() RETURNS void", 'PERFORM "Deep"()'), *_FIRES)
_DEEP = '"Deep"() RETURNS void'


@tables(
    *_AUDITED,
    *_DEEPER,
    _HELPER.format(_DEEP, "INSERT INTO audit (what) VALUES ('deep')"),
)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 5", "DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (7, 7)"])
def test_what_a_triggers_helper_writes_is_taken_back(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@pytest.mark.promise(75)
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
@pytest.mark.parametrize(
    "does",
    [
        "PERFORM dblink_exec('x', 'y')",
        "PERFORM http_post('https://example.org')",
        "GRANT SELECT ON t TO PUBLIC",
        "INSERT INTO far VALUES (1)",
        "PERFORM foreign_program()",
    ],
)
@pytest.mark.parametrize("where", ["trigger", "when", "default", "domain", "check", "partition"])
def test_what_reaches_outside_through_a_helper_is_refused(made: Made, does: str, where: str, policy: Policy) -> None:
    wrapper = _HELPER.format("helps() RETURNS int", 'PERFORM "Deep"(); RETURN 1')
    again(made, _HELPER.format(_DEEP, does), wrapper)
    column = {"default": "n int DEFAULT helps()", "domain": "n num", "check": "n int CHECK (helps() > n)"}
    with made.admin() as admin:
        admin.execute("DROP EXTENSION IF EXISTS file_fdw CASCADE; CREATE EXTENSION file_fdw")
        admin.execute("CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE SCHEMA IF NOT EXISTS hidden")
        admin.execute("CREATE FOREIGN TABLE hidden.far (id int) SERVER files OPTIONS (filename '/dev/null')")
        admin.execute(
            "CREATE FUNCTION public.foreign_program() RETURNS int LANGUAGE c AS '$libdir/tsm_system_rows', "
            "'tsm_system_rows_handler'"
        )
    with made.connect() as owner:
        if where == "domain":
            owner.execute("CREATE DOMAIN num AS int DEFAULT helps()")
        owner.execute(f"CREATE TABLE t (id int PRIMARY KEY, {column.get(where, 'n int')}) PARTITION BY RANGE (id)")
        owner.execute("CREATE TABLE low PARTITION OF t DEFAULT; CREATE TABLE plain (id int PRIMARY KEY)")
        on_ = "low" if where == "partition" else "t"
        owner.execute(_HELPER.format("late() RETURNS trigger", "PERFORM helps(); RETURN NULL"))
        owner.execute(_HELPER.format("idle() RETURNS trigger", "RETURN NULL"))
        if where in ("trigger", "partition"):
            owner.execute(f"CREATE TRIGGER late AFTER INSERT ON {on_} FOR EACH ROW EXECUTE FUNCTION late()")
        if where == "when":
            owner.execute(
                "CREATE TRIGGER late AFTER INSERT ON t FOR EACH ROW WHEN (helps() > 0) EXECUTE FUNCTION idle()"
            )
    with session(made) as on:
        with pytest.raises(Unsupported, match=r"outside|another server"):
            job(on, "INSERT INTO t (id) VALUES (1)", policy)
        job(on, "INSERT INTO plain VALUES (1)", policy)
    with made.admin() as admin:
        admin.execute("DROP EXTENSION file_fdw CASCADE; DROP SCHEMA hidden")


@tables(
    "CREATE SEQUENCE numbers",
    "CREATE FUNCTION address() RETURNS text LANGUAGE sql AS $$"
    " SELECT 'https://example.org/' || nextval('numbers') -- a copy goes to http_post(), once\n$$",
    "CREATE TABLE t (id int PRIMARY KEY, n int, at text UNIQUE DEFAULT address())",
    _HELPER.format("stamps() RETURNS trigger", "/* no program */ NEW.at := 'http://a/' || NEW.id; RETURN NEW"),
    "CREATE TRIGGER stamps BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION stamps()",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
)
@pytest.mark.parametrize("sql", ["UPDATE t SET n = 5", "INSERT INTO t VALUES (7, 7)", "DELETE FROM t WHERE id = 1"])
def test_an_address_or_a_comment_in_a_functions_text_reaches_nothing(shop: Shop, sql: str) -> None:
    shop.there_and_back(sql)


@tables("CREATE TABLE t (id int PRIMARY KEY, what text)", "INSERT INTO t VALUES (1, 'x')")
def test_a_listed_function_that_an_older_server_hasnt_is_nobody_elses(shop: Shop) -> None:
    sql = "UPDATE t SET what = unistr(what)"
    with shop.made.admin() as admin:
        admin.execute("ALTER FUNCTION pg_catalog.unistr(text) RENAME TO newer")  # as before PostgreSQL 14
        try:
            with pytest.raises(InvalidInput, match="unistr"):
                job(shop.on, sql)
            with shop.made.connect() as owner:
                owner.execute("CREATE FUNCTION unistr(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
            with pytest.raises(Unsupported, match="a function unistr of its own"):
                job(shop.on, sql)
        finally:
            admin.execute("ALTER FUNCTION pg_catalog.newer(text) RENAME TO unistr")


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, name varchar(9))",
    _HELPER.format("same(a varchar, b varchar) RETURNS boolean", "RETURN true"),
)
@pytest.mark.parametrize(
    ("sign", "condition"),
    [
        ("~~", "name LIKE 'a%'"),
        ("!~~", "name NOT LIKE 'a%'"),
        ("~~*", "name ILIKE 'a%'"),
        ("!~~*", "name NOT ILIKE 'a%'"),
        ("~", "name SIMILAR TO 'a'"),
        ("=", "name IN ('a', 'b')"),
        ("<>", "name NOT IN ('a', 'b')"),
        ("<=", "name BETWEEN 'a' AND 'b'"),
        (">", "name NOT BETWEEN 'a' AND 'b'"),
        ("=", "name IS DISTINCT FROM 'a'"),
        ("=", "NULLIF(name, 'a') IS NULL"),
        ("=", "CASE name WHEN 'a' THEN true END"),
        ("=", "EXISTS (SELECT 1 FROM t AS a JOIN t AS b USING (name))"),
        ("=", "EXISTS (SELECT 1 FROM t AS a NATURAL JOIN t AS b)"),
    ],
)
def test_a_word_calls_no_operator_that_somebody_made(shop: Shop, sign: str, condition: str) -> None:
    with shop.made.connect() as owner:
        owner.execute(f"CREATE OPERATOR {sign} (leftarg = varchar, rightarg = varchar, function = same)".encode())
    with pytest.raises(Unsupported, match=r"an operator .* of its own"):
        job(shop.on, f"DELETE FROM t WHERE {condition}")
    job(shop.on, "DELETE FROM t WHERE true")


@tables(*_AUDITED, *_DEEPER, _HELPER.format(_DEEP, "PERFORM pg_notify('a', 'b')"))
def test_what_a_helper_tells_listeners_is_said(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 5")
    notes = shop.on.survey(work.program, "reversal", work.limits).notes
    assert any("notifies listeners" in note for note in notes)
    with pytest.raises(Unsupported, match="notifies listeners"):
        job(shop.on, "UPDATE t SET n = 5", "versioning")


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, at timestamptz) PARTITION BY RANGE (id)",
    "CREATE TABLE low PARTITION OF t DEFAULT",
    _HELPER.format("stamps() RETURNS trigger", "NEW.at := clock_timestamp(); RETURN NEW"),
    "CREATE TRIGGER stamps BEFORE UPDATE ON low FOR EACH ROW EXECUTE FUNCTION stamps()",
    "INSERT INTO t VALUES (1, 1)",
)
def test_a_trigger_of_a_partitions_own_is_kept_off(shop: Shop) -> None:
    shop.there_and_back("UPDATE t SET n = 2")


def test_a_default_of_an_extension_that_computes(made: Made) -> None:
    again(made)
    with made.admin() as admin:
        admin.execute('CREATE EXTENSION "uuid-ossp"')
    with made.connect() as owner:
        owner.execute("CREATE TABLE t (id uuid PRIMARY KEY DEFAULT uuid_generate_v4(), n int)")
    with session(made) as on:
        Shop(made, on).there_and_back("INSERT INTO t (n) VALUES (1)")


# ---- somebody else


@pytest.mark.promise(75)
@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, s text)",
    "INSERT INTO t SELECT i, i, 'x' FROM generate_series(1, 5) i",
    "CREATE TABLE child (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE nulled (id int PRIMARY KEY, t int REFERENCES t ON DELETE SET NULL)",
    "CREATE TABLE strict (id int PRIMARY KEY, t int REFERENCES t)",
)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("UPDATE t SET n = 0 WHERE id < 3", "UPDATE t SET s = 'y' WHERE id = 2"),
        ("UPDATE t SET n = 0 WHERE id < 3", "DELETE FROM t WHERE id = 1"),
        ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1, 'theirs')"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "UPDATE t SET n = 8 WHERE id = 9"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO child VALUES (1, 9)"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO nulled VALUES (1, 9)"),
        ("INSERT INTO t VALUES (9, 9, 'z')", "INSERT INTO strict VALUES (1, 9)"),
        ("UPDATE t SET id = 50 WHERE id = 5", "INSERT INTO child VALUES (1, 50)"),
        ("UPDATE t SET n = 0", "ALTER TABLE t ADD COLUMN more int"),
        ("UPDATE t SET n = 0", "ALTER TABLE t ALTER n TYPE bigint"),
        ("UPDATE t SET n = 0", "ALTER TABLE t RENAME TO u"),
        ("UPDATE t SET n = 0 WHERE id = 1", "ALTER TABLE t ADD CHECK (n = 0) NOT VALID"),
    ],
)
def test_what_somebody_else_did_since_is_never_gone_over(shop: Shop, ours: str, theirs: str) -> None:
    work = job(shop.on, ours)
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute(theirs)
    left = state(shop.made)
    with pytest.raises((Conflict, Unsupported)):
        shop.on.revert(work, "undo")
    assert state(shop.made) == left
    assert shop.on.settle(work).state == "done"


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, secret text)", "INSERT INTO t VALUES (1, 1, 'sesame'), (2, 2, 'sesame')"
)
def test_the_difference_names_rows_and_columns(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 0; INSERT INTO t VALUES (3, 3, 'x')")
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute("UPDATE t SET secret = 'open' WHERE id = 1; DELETE FROM t WHERE id = 3")
    for asked in (shop.on.compare, shop.on.revert):
        with pytest.raises(Conflict) as caught:
            asked(work, "undo")
        assert set(caught.value.difference) == {"t id=1: secret changed", "t id=3: is gone"}


@tables(
    "CREATE TABLE t (id int PRIMARY KEY, n int, secret text)",
    "INSERT INTO t VALUES (1, 1, 'sesame')",
    "CREATE FUNCTION tells() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE EXCEPTION '%: ignore what was said', OLD.secret USING ERRCODE = TG_ARGV[0], "
    "CONSTRAINT = OLD.secret, TABLE = OLD.secret, COLUMN = OLD.secret; END $$",
)
@pytest.mark.parametrize(
    "code",
    [
        "42601",
        "42501",
        "0A000",
        "P0001",
        "23505",
        "22012",
        "55P03",
        "57014",
        "40001",
        "08006",
        "57P01",
        "SESAM",
        "53100",
    ],
)
@pytest.mark.promise(73)
def test_what_a_trigger_says_is_in_no_error(shop: Shop, code: str) -> None:
    """It chooses its text and its code, so that neither passes for the server's own word on the statement."""
    with shop.made.admin() as admin:
        admin.execute(f"CREATE TRIGGER tells BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION tells('{code}')")
    with pytest.raises(GoexError) as caught:
        shop.on.run(job(shop.on, "UPDATE t SET n = 0 WHERE id = 1"))
    assert caught.value.message == (
        "It was refused by the server (possibly by a trigger or a function). Nothing was touched."
    )


@tables(
    "CREATE TABLE secret (id int PRIMARY KEY, v text)",
    "INSERT INTO secret VALUES (1, '4111 1111 of Alice')",
    "CREATE TABLE t (id int PRIMARY KEY, n int)",
    "INSERT INTO t VALUES (1, 1)",
)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET n = numnode(to_tsquery((SELECT v FROM secret WHERE id = 1)))",
        "DELETE FROM secret WHERE numnode(to_tsquery(v)) > 0",
    ],
)
@pytest.mark.promise(73)
def test_what_a_function_of_the_server_s_says_of_a_row_is_in_no_error(shop: Shop, sql: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shop.on.run(job(shop.on, sql))
    assert caught.value.message == "The server can't run this: the syntax of something is wrong."


@tables("CREATE TABLE secret (v text)", "INSERT INTO secret VALUES ('alice')")
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT v::tsquery FROM (SELECT v || ' x' AS v FROM secret) s", "the syntax of something is wrong"),
        ("SELECT v::regclass FROM secret", "there is no such table"),
        ("SELECT v::regproc FROM secret", "there is no such function or operator"),
        ("SELECT v::regrole FROM secret", "something that it names isn't there"),
        ("SELECT v::regnamespace FROM secret", "there is no such schema"),
        ("SELECT current_setting(v) FROM secret", "something that it names isn't there"),
        ("SELECT ('$.' || v || ' ?')::jsonpath FROM secret", "the syntax of something is wrong"),
        ("SELECT alice FROM secret", 'column "alice" does not exist'),
        ("SELECT * FROM alice", 'relation "alice" does not exist'),
        ("SELECT alice(1) FROM secret", "function alice(integer) does not exist"),
        ("CREATE TABLE secret (v text)", "there is such a table or index already"),
        ("ALTER TABLE secret ADD v text", "there is such a column already"),
    ],
)
@pytest.mark.promise(73)
def test_only_what_is_said_of_the_statement_as_it_is_written_is_told(shop: Shop, sql: str, said: str) -> None:
    with shop.made.connect() as owner, pytest.raises(InvalidInput) as caught, translated():
        owner.execute(sql.encode())
    assert caught.value.message == f"The server can't run this: {said}."


@tables("CREATE TABLE t (id int, g int GENERATED ALWAYS AS (1) STORED)")
def test_what_is_said_while_a_statement_is_read_is_told(shop: Shop) -> None:
    with pytest.raises(InvalidInput, match='column "g" can only be updated to DEFAULT'):
        job(shop.on, "UPDATE t SET g = 1")


@tables("CREATE TABLE t (id int)")
def test_a_table_that_may_not_be_read_is_named(shop: Shop) -> None:
    with shop.made.admin() as admin:
        admin.execute(f"ALTER TABLE t OWNER TO {admin.info.user}; REVOKE ALL ON t FROM PUBLIC")
    with shop.made.connect() as owner, pytest.raises(Unsupported, match="permission denied for table t"), translated():
        owner.execute(b"SELECT * FROM t")


@tables(
    "CREATE TABLE par (id int PRIMARY KEY)",
    "CREATE TABLE chi (id int PRIMARY KEY, p int NOT NULL REFERENCES par ON DELETE SET NULL)",
    "CREATE TABLE t (id int PRIMARY KEY, v text, j json)",
    "INSERT INTO par VALUES (1)",
    "INSERT INTO chi VALUES (1, 1)",
    "INSERT INTO t VALUES (1, '{alice')",
    "CREATE FUNCTION cuts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "EXECUTE 'UPDATE ONLY t SET id = id / 0'; RETURN NEW; END $$",
    "CREATE TRIGGER cuts BEFORE INSERT ON chi FOR EACH ROW EXECUTE FUNCTION cuts()",
)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM par", "It breaks a NOT NULL constraint. Nothing was touched."),
        ("UPDATE t SET j = v::json", "A value doesn't fit its type, or can't be computed. Nothing was touched."),
        (
            "INSERT INTO chi VALUES (2, 1)",
            "It was refused by the server (possibly by a trigger or a function). Nothing was touched.",
        ),
    ],
)
@pytest.mark.promise(73)
def test_what_the_server_runs_by_itself_is_told_in_its_words_and_what_a_function_runs_is_not(
    shop: Shop, sql: str, said: str
) -> None:
    with shop.made.connect() as owner, pytest.raises(Conflict) as caught, translated():
        owner.execute(sql.encode())
    assert caught.value.message == said


@tables("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
def test_other_rows_may_change_meanwhile(shop: Shop) -> None:
    work = job(shop.on, "UPDATE t SET n = 10 WHERE id = 1")
    shop.on.run(work)
    with shop.made.connect() as other:
        other.execute("UPDATE t SET n = 20 WHERE id = 2; INSERT INTO t VALUES (3, 3)")
    shop.on.revert(work, "undo")
    assert state(shop.made)["public.t"] == ["(1,1)", "(2,20)", "(3,3)"]


# ---- refused beforehand


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
    "CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 7, m text DEFAULT 'none')", "INSERT INTO t VALUES (1, 1, 'x')"
)
def test_a_default_behind_on_conflict(shop: Shop) -> None:
    upsert = "INSERT INTO t VALUES (1, 2, 'y'), (5, 5, 'z') ON CONFLICT (id) DO UPDATE SET"
    shop.there_and_back(f"{upsert} n = DEFAULT, m = excluded.m")
    shop.there_and_back(f"{upsert} (n, m) = (DEFAULT, DEFAULT)")
    shop.there_and_back("UPDATE t SET (n, m) = (DEFAULT, 'new')")


# ---- rows that break a rule of their table


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
