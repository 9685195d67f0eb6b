"""Files that were prepared unluckily, or to mislead: what a plan says holds of them, and undo is exact or refused."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Schema
from runtimes.sql.sqlite import wholes
from runtimes.sql.sqlite.location import find
from tests.support.databases import BACK_AND_FORTH, LIMITS, Asked, SqliteGround, session

KELVIN = "\u212aid"  # SQLite, which folds A to Z alone, takes it for another name than kid
_TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, a{}, n)"


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    return made


def schema(ground: SqliteGround) -> Schema:
    with session(ground) as at:
        return at.schema()


def redefined(ground: SqliteGround, name: str, sql: str) -> None:
    """Define a table otherwise and leave its rows as they are, as SQLite's manual describes it."""
    with closing(ground.connect()) as db:
        db.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))


def checked_later(ground: SqliteGround) -> None:
    ground.execute(_TABLE.format(""), "INSERT INTO t VALUES (1, -1, 0), (2, 5, 0)")
    redefined(ground, "t", _TABLE.format(" CHECK (a > 0)"))


def required_later(ground: SqliteGround) -> None:
    ground.execute(_TABLE.format(""), "INSERT INTO t VALUES (1, NULL, 0), (2, 5, 0)")
    redefined(ground, "t", _TABLE.format(" NOT NULL"))


def typed_later(ground: SqliteGround) -> None:
    ground.execute(_TABLE.format(" TEXT"), "INSERT INTO t VALUES (1, '007', 0), (2, 'x', 0)")
    redefined(ground, "t", _TABLE.format(" INTEGER"))


def strict_later(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a ANY, n ANY)", "INSERT INTO t VALUES (1, 'x', 0)")
    redefined(ground, "t", "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, n ANY) STRICT")


def computed_otherwise(ground: SqliteGround) -> None:
    with closing(ground.connect()) as db:
        db.create_scalar_function("lower", lambda text: f"its own {text}", 1, deterministic=True)
        db.execute(_TABLE.format(", b AS (lower(a)) STORED"))
        db.execute("INSERT INTO t (id, a, n) VALUES (1, 'A', 0), (2, 'B', 0)")


@pytest.mark.parametrize("made", [required_later, typed_later, strict_later, computed_otherwise])
@pytest.mark.parametrize("text", ["UPDATE t SET a = 8 WHERE id = 1", "DELETE FROM t"])
def test_rows_that_could_not_be_put_back_are_refused_before_anything_is_changed(
    ground: SqliteGround, made: Callable[[SqliteGround], None], text: str
) -> None:
    made(ground)
    before = ground.dump()
    with pytest.raises(Unsupported, match="couldn't be put back exactly") as refused:
        Asked(ground, text).run()
    assert ground.dump() == before and "--policy versioning" in refused.value.next_step
    asked = Asked(ground, text, "versioning")
    asked.run()
    asked.revert("undo")
    assert ground.dump() == before


@pytest.mark.parametrize("text", ["UPDATE t SET a = 8 WHERE id = 1", "UPDATE t SET n = 8", "DELETE FROM t"])
def test_rows_that_are_older_than_a_check_come_back(ground: SqliteGround, text: str) -> None:
    checked_later(ground)
    before = ground.dump()
    asked = Asked(ground, text)
    asked.run()
    after = ground.dump()
    for verb, wanted in zip(BACK_AND_FORTH, (before, after, before), strict=True):
        asked.revert(verb)
        assert ground.dump() == wanted
    assert asked.planned().strategy["kind"] == "rows"


def test_a_stored_column_is_recorded_and_compared(ground: SqliteGround) -> None:
    ground.execute(_TABLE.format(", b AS (a || '!') STORED"), "INSERT INTO t (id, a, n) VALUES (1, 'A', 0)")
    before = ground.dump()
    asked = Asked(ground, "UPDATE t SET a = 'B'; INSERT INTO t (a) VALUES ('C')")
    ran = asked.run()
    assert [one.after["b"] for one in ran.sample if one.after is not None] == ["B!", "C!"]
    after = ground.dump()
    for verb, wanted in zip(BACK_AND_FORTH, (before, after, before), strict=True):
        asked.revert(verb)
        assert ground.dump() == wanted


@pytest.mark.parametrize("shown", ["", " ON DELETE CASCADE"])
def test_names_are_told_apart_as_sqlite_does(ground: SqliteGround, shown: str) -> None:
    ground.execute(
        "CREATE TABLE p (id INTEGER PRIMARY KEY)",
        "CREATE TABLE kid (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE)",
        f'CREATE TABLE "{KELVIN}" (id INTEGER PRIMARY KEY, p REFERENCES p{shown})',
        "INSERT INTO p VALUES (1)",
        "INSERT INTO kid VALUES (5, 1)",
    )
    before = ground.dump()
    asked = Asked(ground, "DELETE FROM p")
    program = asked.plan().program
    with session(ground) as at:
        at.schema()
        assert ("kid", "delete", 1) in {
            (o.table, o.verb, o.rows) for o in at.survey(program, "reversal", LIMITS).reached
        }
    asked.run()
    assert ground.rows("SELECT * FROM kid") == []
    asked.revert("undo")
    assert ground.dump() == before


def test_columns_of_a_table_with_a_like_name_stand_for_no_other(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE kid (id INTEGER PRIMARY KEY, a, b AS (a + 1))",
        f'CREATE TABLE "{KELVIN}" (id INTEGER PRIMARY KEY, a)',
        "INSERT INTO kid VALUES (5, 1)",
    )
    asked = Asked(ground, "UPDATE kid SET a = 7")
    assert asked.plan().strategy["kind"] == "pages"
    asked.run()
    asked.revert("undo")
    assert ground.rows("SELECT a, b FROM kid") == [(1, 2)]


def test_a_table_whose_name_only_looks_like_sqlites_own_is_seen(ground: SqliteGround) -> None:
    ground.execute('CREATE TABLE "\u017fqlite_x" (a)')
    assert "\u017fqlite_x" in schema(ground).tables


@pytest.mark.parametrize(
    "made",
    [
        'CREATE VIRTUAL TABLE "x using rtree y" USING fts5(t, content=secret)',
        "CREATE VIRTUAL TABLE x /* using rtree */ USING fts5(t, content=secret)",
        'CREATE VIRTUAL TABLE "a""b using rtree c" USING fts5(t, content=secret)',
        "CREATE VIRTUAL TABLE [x using rtree(] USING fts5(t, content=secret)",
    ],
)
def test_what_a_table_shows_is_told_by_its_module_alone(ground: SqliteGround, made: str) -> None:
    ground.execute("CREATE TABLE secret (t)", made)
    (name,) = (one.name for one in schema(ground).tables.values() if one.facts.get("virtual"))
    table = schema(ground).tables[name]
    assert (table.facts["module"], table.stands_on) == ("fts5", ("secret",))


@pytest.mark.parametrize("name", ["json_each", "pragma_table_info", "JSON_Tree"])
def test_a_table_that_is_named_as_a_function_counts_as_read(ground: SqliteGround, name: str) -> None:
    ground.execute(f"CREATE TABLE {name} (a)", f"CREATE VIEW v AS SELECT a FROM {name}")
    assert schema(ground).tables["v"].stands_on == (name,)


def test_a_row_that_would_point_nowhere_isnt_hidden_by_one_that_does(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE p (id INTEGER PRIMARY KEY)",
        "CREATE TABLE c (k TEXT PRIMARY KEY, p REFERENCES p) WITHOUT ROWID",
    )
    asked = Asked(ground, "INSERT INTO p VALUES (2)")
    asked.run()
    ground.execute("INSERT INTO c VALUES ('x', 99), ('y', 2)")  # with no key enforced
    with pytest.raises(Conflict) as refused:
        asked.revert("undo")
    assert refused.value.difference == ("rows of c would point to rows of p that aren't there",)
    assert ground.rows("SELECT id FROM p") == [(2,)]


@pytest.mark.parametrize("text", ["UPDATE t SET n = 7", "DELETE FROM t"])
@pytest.mark.parametrize("late", [True, False])
def test_of_many_rows_none_is_left_out(ground: SqliteGround, text: str, late: bool) -> None:
    """What is caught as the file's whole content is tried as whole."""
    rows = f"WITH RECURSIVE g(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM g WHERE n < {wholes.ROWS + 500})"
    ground.execute(_TABLE.format(" TEXT"), f"INSERT INTO t {rows} SELECT n, n || '!', 0 FROM g")
    if late:
        ground.execute(f"UPDATE t SET a = '007' WHERE id = {wholes.ROWS}")
    redefined(ground, "t", _TABLE.format(" INTEGER"))
    before = ground.dump()
    asked = Asked(ground, text)
    assert asked.plan().strategy["kind"] == "whole"
    if late:
        with pytest.raises(Unsupported, match="couldn't be put back exactly"):
            asked.run()
    else:
        asked.run()
        asked.revert("undo")
    assert ground.dump() == before


def test_a_file_in_a_folder_where_an_acl_lets_others_write_is_refused(ground: SqliteGround) -> None:
    """They could put another file, or a journal, in its place; of the mode they have the group's bits."""
    entries = ((1, 7, -1), (2, 7, 1234), (4, 5, -1), (16, 7, -1), (32, 5, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, id & 0xFFFFFFFF) for tag, bits, id in entries)
    find(str(ground.path))
    os.setxattr(ground.folder, "system.posix_acl_access", acl)
    with pytest.raises(InvalidInput, match="other users may write"):
        find(str(ground.path))
