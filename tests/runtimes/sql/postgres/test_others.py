"""What somebody else did between an action and its undo or redo: none of it is lost, and it leaves no action that can
neither be undone nor done again."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policies.errors import Conflict, Unsupported
from runtimes.sql.checking.check import check
from runtimes.sql.postgres.reach import without_comments
from runtimes.sql.reads_through import ANY
from tests.policies.test_http_heads import said
from tests.runtimes.sql.postgres.support import LIMITS, job, session
from tests.services.postgres import Postgres
from tests.support.databases import PostgresGround

LONG = """
from runtimes.sql.postgres.helpers import _called
from runtimes.sql.postgres.reach import without_comments, writes
from runtimes.sql.postgres.strategy import _CALLED, _DEFINES, _OUTSIDE
wanted = {"far", 'o"k', "a$b", "near"}
called = 'far (1) + "o""k"(2) + $$a$b(3)$$ + 12near(4)'
for odd in ("a" * many, '"' * (many + 1), "$a" * (many // 2), "/* " * (many // 3), "into t " * (many // 6)):
    assert wanted <= _called(f"{odd} {called}") and "secret" in without_comments(f"{odd} secret")
    upsert = f"{odd}; INSERT INTO t SELECT 1 ON CONFLICT DO UPDATE SET n = 2; INTO u; DO UPDATE"
    assert (list(writes(upsert, "t")), list(writes(upsert, "u"))) == (["insert", "update"], [])
    assert "near" in _CALLED.findall(f"{odd} 12near (1)") and not _DEFINES.search(odd) and not _OUTSIDE.search(odd)
    print("read")
"""
CREATE = "CREATE TABLE made (id int PRIMARY KEY, n serial, t text CHECK (t <> ''))"


@pytest.fixture
def ground(shared: PostgresGround) -> PostgresGround:
    shared.empty()
    shared.execute(*(f"ALTER DEFAULT PRIVILEGES REVOKE ALL ON {kind} FROM PUBLIC" for kind in ("TABLES", "SEQUENCES")))
    return shared


@pytest.fixture(scope="module")
def shared(postgres: Postgres) -> Iterator[PostgresGround]:
    yield PostgresGround(postgres)


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    "theirs",
    [
        "GRANT SELECT ON made TO PUBLIC",
        "GRANT SELECT (t) ON made TO PUBLIC",
        "GRANT USAGE ON SEQUENCE made_n_seq TO PUBLIC",
        "COMMENT ON TABLE made IS 'what it is for'",
        "COMMENT ON COLUMN made.t IS 'text'",
        "COMMENT ON CONSTRAINT made_t_check ON made IS 'why'",
        "COMMENT ON INDEX made_pkey IS 'key'",
        "CREATE POLICY mine ON made USING (id > 1)",
        "ALTER TABLE made FORCE ROW LEVEL SECURITY",
        "CREATE STATISTICS mine ON id, t FROM made",
        "ALTER TABLE made SET (fillfactor = 70)",
        "ALTER TABLE made SET (toast.autovacuum_enabled = off)",
        "ALTER TABLE made ALTER COLUMN t SET STORAGE EXTERNAL",
        "ALTER TABLE made ALTER COLUMN t SET STATISTICS 500",
        "ALTER TABLE made ALTER COLUMN t SET (n_distinct = 5)",
        "ALTER TABLE made REPLICA IDENTITY FULL",
        "ALTER TABLE made CLUSTER ON made_pkey",
        "CREATE PUBLICATION mine FOR TABLE made",
    ],
)
def test_what_others_gave_a_table_that_was_made_keeps_it(ground: PostgresGround, theirs: str) -> None:
    with session(ground.made) as on:
        work = job(on, CREATE)
        on.run(work)
        with ground.made.admin() as admin:
            admin.execute(theirs.encode())
        left = ground.dump()
        for asked in (on.compare, on.revert):
            with pytest.raises(Conflict, match="belongs to the table") as caught:
                asked(work, "undo")
            assert caught.value.difference[0].startswith("made:")
        assert ground.dump() == left and on.settle(work).state == "done"
        with ground.made.admin() as admin:
            admin.execute(b"DROP PUBLICATION IF EXISTS mine")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "theirs",
    [
        "CREATE TABLE other (id int); GRANT SELECT ON other TO PUBLIC; COMMENT ON TABLE other IS 'x'",
        "ANALYZE made",
        "VACUUM made",
        "INSERT INTO made (id) VALUES (1); DELETE FROM made",
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO PUBLIC",
    ],
)
def test_a_table_that_was_made_is_dropped_and_made_again_as_it_was(ground: PostgresGround, theirs: str) -> None:
    ground.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
    with session(ground.made) as on:
        work = job(on, CREATE)
        on.run(work)
        after = ground.dump()["made"]
        for statement in theirs.split("; ") if "SEQUENCES" not in theirs else ():
            ground.execute(statement)
        on.revert(work, "undo")
        assert "made" not in ground.dump()
        on.revert(work, "redo")
        assert ground.dump()["made"] == after
        on.revert(work, "undo")
        if "SEQUENCES" in theirs:  # it would be granted to others now
            ground.execute(theirs)
            with pytest.raises(Conflict, match="wouldn't be as it was"):
                on.revert(work, "redo")
            assert "made" not in ground.dump()


CHANGES = [
    ("UPDATE t SET v = 2 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 1"),
    ("INSERT INTO t VALUES (5, 5)", "DELETE FROM t WHERE id = 5"),
    ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1)"),
]


@pytest.mark.sampled(1)
@pytest.mark.promise(60)
@pytest.mark.parametrize(("text", "back"), CHANGES)
def test_others_who_do_what_an_undo_or_a_redo_would_leave_both_possible(
    ground: PostgresGround, text: str, back: str
) -> None:
    ground.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
    before = ground.dump()
    with session(ground.made) as on:
        work = job(on, text)
        on.run(work)
        after = ground.dump()
        ground.execute(back)
        assert on.settle(work).state == "done"
        assert on.revert(work, "undo").notes and on.settle(work).state == "undone"
        on.revert(work, "redo")
        assert ground.dump() == after and on.settle(work).state == "done"
        on.revert(work, "undo")
        ground.execute(text)
        assert on.settle(work).state == "undone"
        assert on.revert(work, "redo").notes and on.settle(work).state == "done"
        on.revert(work, "undo")
        assert ground.dump() == before and on.settle(work).state == "undone"


@pytest.mark.promise(60)
def test_rows_without_a_key_that_look_as_before_arent_taken_for_an_undo(ground: PostgresGround) -> None:
    ground.execute("CREATE TABLE t (n int, t text)", "INSERT INTO t VALUES (1, 'x')")
    with session(ground.made) as on:
        work = job(on, "UPDATE t SET t = 'q' WHERE t = 'x'")
        on.run(work)
        ground.execute("UPDATE t SET t = 'z' WHERE t = 'q'", "INSERT INTO t VALUES (1, 'x')")
        left = ground.dump()
        for asked in (on.compare, on.revert):
            with pytest.raises(Conflict, match="Nothing was touched"):
                asked(work, "undo")
        assert ground.dump() == left and on.settle(work).state == "done"
        ground.execute("DELETE FROM t WHERE t = 'x'", "UPDATE t SET t = 'q' WHERE t = 'z'")
        on.revert(work, "undo")
        assert ground.rows("SELECT * FROM t") == [(1, "x")]


@pytest.mark.sampled(2)
@pytest.mark.promise(60)
@pytest.mark.parametrize("type", ["pair", "pair[]", "outer_pair", "of_pair", "pairs"])
def test_fields_of_a_composite_that_were_taken_and_added_keep_their_values_apart(
    ground: PostgresGround, type: str
) -> None:
    value = {"pair[]": "ARRAY[ROW(1, 2)::pair]", "outer_pair": "ROW(ROW(1, 2), 3)", "pairs": "'empty'"}
    ground.execute(
        "CREATE TYPE pair AS (x int, y int)",
        "CREATE TYPE outer_pair AS (p pair, z int)",
        "CREATE DOMAIN of_pair AS pair",
        "CREATE TYPE pairs AS RANGE (subtype = pair)",
        f"CREATE TABLE t (id int PRIMARY KEY, p {type})",
        f"INSERT INTO t VALUES (1, {value.get(type, 'ROW(1, 2)')}::{type})",
    )
    before = ground.dump()
    with session(ground.made) as on:
        work = job(on, "DELETE FROM t WHERE id = 1")
        on.run(work)
        on.revert(work, "undo")
        assert ground.dump() == before
        on.revert(work, "redo")
        ground.execute("ALTER TYPE pair DROP ATTRIBUTE x", "ALTER TYPE pair ADD ATTRIBUTE x int")
        with pytest.raises(Conflict, match="Tables were changed since"):
            on.revert(work, "undo")
        assert ground.rows("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.promise(60)
def test_what_others_made_of_a_table_is_told_as_that(ground: PostgresGround) -> None:
    par = "CREATE TABLE par (id int PRIMARY KEY) PARTITION BY RANGE (id)"
    ground.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", par)
    with session(ground.made) as on:
        work = job(on, "DELETE FROM t WHERE id = 1")
        on.run(work)
        ground.execute("ALTER TABLE par ATTACH PARTITION t FOR VALUES FROM (0) TO (9)")
        with pytest.raises(Conflict) as caught:
            on.compare(work, "undo")
        assert caught.value.difference == ("t: is a partition of par now",)
        ground.execute("INSERT INTO par VALUES (1)")
        work = job(on, "DELETE FROM par WHERE id = 1")
        on.run(work)
        ground.execute("ALTER TABLE par DETACH PARTITION t")
        with pytest.raises(Conflict, match=r"One of its rows fits no partition \(table par\)"):
            on.revert(work, "undo")
        ground.execute("CREATE TABLE plain (n int)", "INSERT INTO plain VALUES (1)")
        work = job(on, "DELETE FROM plain WHERE n = 1")
        on.run(work)
        ground.execute("ALTER TABLE plain RENAME TO old", "CREATE VIEW plain AS SELECT n FROM old")
        with pytest.raises(Conflict) as caught:
            on.compare(work, "undo")
        assert caught.value.difference == ("plain: isn't a table any more",)


@pytest.mark.parametrize(
    ("theirs", "back"),
    [
        ("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'", "ALTER TYPE mood RENAME VALUE 'blue' TO 'sad'"),
        ("ALTER DOMAIN price ADD CONSTRAINT more CHECK (VALUE > 5)", "ALTER DOMAIN price DROP CONSTRAINT more"),
    ],
    ids=["label", "domain"],
)
def test_a_type_that_takes_a_recorded_row_no_more_is_told_as_that(
    ground: PostgresGround, theirs: str, back: str
) -> None:
    ground.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN price AS int",
        "CREATE TABLE t (id int PRIMARY KEY, m mood, p price)",
        "INSERT INTO t VALUES (1, 'sad', 3)",
    )
    before = ground.dump()
    with session(ground.made) as on:
        work = job(on, "DELETE FROM t WHERE id = 1")
        on.run(work)
        ground.execute(theirs)
        with pytest.raises(Conflict, match="don't fit the types of t ") as caught:
            on.compare(work, "undo")
        assert "Set those types back" in caught.value.next_step
        ground.execute(back)
        on.revert(work, "undo")
        assert ground.dump() == before


LABEL = "CREATE FUNCTION label(t) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1.name'"


def test_a_cast_of_a_tables_rows_stands_for_no_row(ground: PostgresGround) -> None:
    """Two rows of one label would count as the same: an UPDATE of the rest as nothing."""
    ground.execute("CREATE TABLE t (id int PRIMARY KEY, name text, n int)", "INSERT INTO t VALUES (1, 'a', 5)", LABEL)
    with session(ground.made) as on:
        work = job(on, "UPDATE t SET n = 9")
        on.run(work)
        ground.execute("CREATE CAST (t AS text) WITH FUNCTION label(t)")
        with pytest.raises(Unsupported, match="casts now") as caught:
            on.revert(work, "undo")
        assert caught.value.next_step
        with pytest.raises(Unsupported, match="casts of its rows") as caught:
            job(on, "UPDATE t SET n = 10")
        assert "versioning" in caught.value.next_step
        ground.execute("DROP CAST (t AS text)")
        on.revert(work, "undo")
    assert ground.rows("SELECT n FROM t") == [(5,)]


def test_a_cast_of_a_columns_type_hides_no_change(ground: PostgresGround) -> None:
    ground.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE t (id int PRIMARY KEY, m mood)",
        "INSERT INTO t VALUES (1, 'sad')",
        "CREATE FUNCTION same(mood) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'x'$$",
        "CREATE CAST (mood AS text) WITH FUNCTION same(mood)",
    )
    with session(ground.made) as on:
        work = job(on, "UPDATE t SET m = 'glad'")
        on.run(work)
        on.revert(work, "undo")
    assert ground.rows("SELECT m = 'sad' FROM t") == [(True,)]


def _policy(table: str, using: str) -> tuple[str, ...]:
    held = "ENABLE", "FORCE"
    return (
        *(f"ALTER TABLE {table} {how} ROW LEVEL SECURITY" for how in held),
        f"CREATE POLICY {table} ON {table} USING ({using})",
    )


SECRET = "EXISTS (SELECT 1 FROM secret WHERE n = 1)"
TOLD = f"CREATE FUNCTION told(int) RETURNS bool STABLE LANGUAGE sql AS 'SELECT {SECRET}'"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("statements", "sql"),
    [
        ((TOLD, *_policy("t", "told(id)")), "SELECT id FROM t"),
        (
            (TOLD, "CREATE OPERATOR =? (RIGHTARG = int, FUNCTION = told)", *_policy("t", "=? id")),
            "SELECT id FROM t",
        ),
        ((*_policy("t", "EXISTS (SELECT 1 FROM other)"), *_policy("other", SECRET)), "SELECT id FROM t"),
        ((TOLD, *_policy("t", "EXISTS (SELECT 1 FROM other)"), *_policy("other", "told(n)")), "SELECT id FROM t"),
        (
            (*_policy("t", SECRET), "CREATE VIEW v AS SELECT id FROM t", "CREATE VIEW w AS SELECT id FROM v"),
            "SELECT id FROM w",
        ),
        ((TOLD, "CREATE DOMAIN guess AS int CHECK (told(VALUE))", "ALTER TABLE other ADD g guess"), "SELECT 1::guess"),
        (
            (TOLD, "CREATE TYPE m AS ENUM ('a')", "CREATE FUNCTION f(m) RETURNS int STABLE LANGUAGE sql AS"
             " 'SELECT told(1)::int'", "CREATE CAST (m AS int) WITH FUNCTION f(m)", "ALTER TABLE t ADD m m"),
            "SELECT m::int FROM t",
        ),
        (
            ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", f"CREATE POLICY t ON t USING ({SECRET})",
             "CREATE VIEW v AS SELECT id FROM t"),
            "SELECT v.id FROM v, t",
        ),
    ],
    ids=["function", "operator", "chain", "chain of functions", "views", "domain", "cast", "beside its view"],
)  # fmt: skip
def test_what_is_read_unseen_is_found(ground: PostgresGround, statements: tuple[str, ...], sql: str) -> None:
    ground.execute("CREATE TABLE secret (n int)", "CREATE TABLE other (n int)", "CREATE TABLE t (id int)", *statements)
    with session(ground.made) as on:
        program = check(sql, on.schema(), database="")
        found = on.survey(program, "reversal", LIMITS).reads
    assert "secret" in found and ANY not in found


@pytest.mark.parametrize(
    ("statements", "sql"),
    [
        (("CREATE RULE r AS ON DELETE TO t DO ALSO INSERT INTO other SELECT 1 WHERE told(OLD.id)",), "DELETE FROM t"),
        (
            (
                "CREATE FUNCTION part(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT told($1)::int'",
                "CREATE TABLE parted (id int) PARTITION BY LIST (part(id))",
            ),
            "INSERT INTO parted VALUES (1)",
        ),
    ],
    ids=["rule", "partition key"],
)
def test_what_a_write_reads_unseen_is_found(ground: PostgresGround, statements: tuple[str, ...], sql: str) -> None:
    ground.execute("CREATE TABLE secret (n int)", "CREATE TABLE other (n int)", "CREATE TABLE t (id int)", TOLD)
    ground.execute(*statements)
    with session(ground.made) as on:
        program = check(sql, on.schema(), database="")
        found = on.survey(program, "versioning", LIMITS).reads
    assert "secret" in found and ANY not in found


def test_an_aggregate_in_a_policy_may_read_every_table(ground: PostgresGround) -> None:
    ground.execute(
        "CREATE TABLE secret (n int)",
        "CREATE TABLE t (id int)",
        TOLD,
        "CREATE FUNCTION step(int, int) RETURNS int STABLE LANGUAGE sql AS 'SELECT told(1)::int'",
        "CREATE AGGREGATE total(int) (SFUNC = step, STYPE = int)",
        *_policy("t", "(SELECT total(n) FROM generate_series(1, 2) AS n) = 1"),
    )
    with session(ground.made) as on:
        program = check("SELECT id FROM t", on.schema(), database="")
        assert ANY in on.survey(program, "reversal", LIMITS).reads


COMMENTED = "CREATE FUNCTION c(int) RETURNS bool STABLE LANGUAGE sql AS 'SELECT true -- secret\n /* EXECUTE */'"


@pytest.mark.parametrize(
    "statements",
    [
        (TOLD, *_policy("secret", "told(n)"), "ALTER TABLE t ADD n int DEFAULT 1 CHECK (n > 0)"),
        (
            "CREATE TYPE far AS (n int)",
            "CREATE FUNCTION near(far) RETURNS int LANGUAGE plpgsql AS 'BEGIN EXECUTE $$SELECT 1$$; RETURN 1; END'",
            "CREATE CAST (far AS int) WITH FUNCTION near(far)",
        ),
        (COMMENTED, "CREATE DOMAIN d AS int CHECK (c(VALUE))", "CREATE TABLE other (d d)"),
    ],
    ids=["beside it", "a type that no column holds", "a comment"],
)
def test_what_isnt_read_isnt_found(ground: PostgresGround, statements: tuple[str, ...]) -> None:
    ground.execute("CREATE TABLE secret (n int)", "CREATE TABLE t (id int)", *statements)
    with session(ground.made) as on:
        program = check("SELECT id FROM t", on.schema(), database="")
        assert on.survey(program, "reversal", LIMITS).reads == ()


@pytest.mark.parametrize(
    "body",
    [
        "-- it's all\rSELECT n FROM secret",
        "/* /* */ ' */ SELECT 'a', '-- ', (SELECT n FROM secret)",
        "SELECT $☃$ -- $☃$, n FROM secret",
    ],
)
def test_what_only_looks_like_a_comment_is_read(body: str) -> None:
    assert "secret" in without_comments(body)


def test_long_texts_of_functions_are_read_in_a_time_in_proportion_to_their_length(thorough: bool) -> None:
    """Some hundred thousand characters of one would take minutes otherwise."""
    assert said(f"many = {300_000 if thorough else 100_000}\n{LONG}") == ["read"] * 5


def test_what_indexes_and_casts_of_others_compute_is_in_nobodys_way(ground: PostgresGround) -> None:
    ground.execute(
        "CREATE TABLE t (id int PRIMARY KEY, url text)",
        "INSERT INTO t VALUES (1, 'http://a'), (2, 'b'), (3, 'c')",
        "CREATE FUNCTION host(text) RETURNS text IMMUTABLE LANGUAGE sql AS"
        " $$SELECT pg_catalog.regexp_replace($1, '^https?://', '')$$",
        "CREATE INDEX ON t (host(url))",
        "CREATE FUNCTION number(t) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1.id'",
        "CREATE TABLE other (id int)",
        "CREATE FUNCTION number(other) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1.id'",
        "CREATE CAST (other AS int) WITH FUNCTION number(other)",
    )
    before = ground.dump()
    with session(ground.made) as on:
        program = check("UPDATE t SET url = 'x' WHERE id = 1", on.schema(), database="")
        assert [one.rows for one in on.survey(program, "reversal", LIMITS).reached] == [1]
        ground.execute("CREATE CAST (t AS int) WITH FUNCTION number(t)")
        work = job(on, "UPDATE t SET url = 'x' WHERE id = 1")
        on.run(work)
        on.revert(work, "undo")
        ground.execute("DROP CAST (t AS int)")
        assert ground.dump() == before
