"""Rows of PostgreSQL, set back exactly, whatever table, type, key or constraint; or refused beforehand."""

from __future__ import annotations

import dataclasses

import pytest

from policies.errors import Unsupported
from tests.runtimes.sql.postgres.support import Shop, again, job, session, state, tables
from tests.services.postgres import Made

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
def test_every_type_comes_back_as_it_was(made: Made, thorough: bool) -> None:
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
        shop.there_and_back(f"UPDATE kinds SET {nothing}; DELETE FROM plain")
        shop.there_and_back(f"DELETE FROM kinds; UPDATE plain SET {nothing}")
        if thorough:
            shop.there_and_back("TRUNCATE kinds")


# ---- keys and constraints


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(8)
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


@pytest.mark.sampled(5)
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


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(2)
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
