"""A rowid that is no column of its own says little of a row: it goes to another row, and VACUUM changes it."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from pathlib import Path

import pytest

from policies.errors import Conflict
from tests.support.databases import Asked, SqliteGround

ROWS = ("INSERT INTO u VALUES ('ann', 1)", "INSERT INTO u VALUES ('bob', 2)")


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    return made


def rows(ground: SqliteGround) -> list[tuple[object, ...]]:
    return ground.rows("SELECT * FROM u ORDER BY 1, 2")


@pytest.mark.promise(60)
@pytest.mark.parametrize("key", ["name TEXT PRIMARY KEY", "name TEXT COLLATE NOCASE PRIMARY KEY"])
def test_a_rowid_that_went_to_another_row_is_in_no_undos_way(ground: SqliteGround, key: str) -> None:
    ground.execute(f"CREATE TABLE u ({key}, v)", *ROWS)
    asked = Asked(ground, "DELETE FROM u WHERE name = 'bob'")
    asked.run()
    ground.execute("INSERT INTO u VALUES ('cyd', 3)")
    ran = asked.revert("undo")
    assert any("another rowid" in note for note in ran.notes)
    assert rows(ground) == [("ann", 1), ("bob", 2), ("cyd", 3)] and asked.state == "undone"
    asked.revert("redo")
    assert rows(ground) == [("ann", 1), ("cyd", 3)] and asked.state == "done"
    asked.revert("undo")
    assert rows(ground) == [("ann", 1), ("bob", 2), ("cyd", 3)]


@pytest.mark.promise(60)
@pytest.mark.parametrize("columns", ["name, v", "name UNIQUE, v"])
def test_a_row_without_a_key_comes_back_under_another_rowid(ground: SqliteGround, columns: str) -> None:
    ground.execute(f"CREATE TABLE u ({columns})", *ROWS)
    asked = Asked(ground, "DELETE FROM u WHERE name = 'bob'")
    asked.run()
    ground.execute("INSERT INTO u VALUES ('cyd', 3)")
    assert any("another rowid" in note for note in asked.revert("undo").notes)
    assert rows(ground) == [("ann", 1), ("bob", 2), ("cyd", 3)] and asked.state == "undone"


@pytest.mark.promise(60)
def test_a_row_whose_rowid_vacuum_changed_isnt_taken_for_gone(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE u (name, v)", *ROWS, "DELETE FROM u WHERE name = 'ann'")
    asked = Asked(ground, "INSERT INTO u VALUES ('new', 3)")
    asked.run()
    ground.execute("VACUUM")
    assert ground.rows("SELECT rowid FROM u WHERE name = 'new'") == [(2,)], "it is another one now"
    for _ in range(2):
        with pytest.raises(Conflict):
            asked.revert("undo")
    assert rows(ground) == [("bob", 2), ("new", 3)] and asked.state == "done"


@pytest.mark.parametrize("text", ["INSERT INTO u VALUES ('new', 3)", "UPDATE u SET v = 7 WHERE name = 'bob'"])
def test_with_a_key_vacuum_is_in_no_undos_way(ground: SqliteGround, text: str) -> None:
    ground.execute("CREATE TABLE u (name TEXT PRIMARY KEY, v)", *ROWS, "DELETE FROM u WHERE name = 'ann'")
    before = rows(ground)
    asked = Asked(ground, text)
    asked.run()
    after = rows(ground)
    ground.execute("VACUUM")
    asked.revert("undo")
    assert rows(ground) == before
    asked.revert("redo")
    assert rows(ground) == after


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM u",
        "UPDATE u SET name = name || 'x'",
        "UPDATE u SET v = v + 1",
        "REPLACE INTO u VALUES ('bob', 2)",
        "REPLACE INTO u VALUES ('bob', 9), ('ann', 8), ('bob', 7)",
        "DELETE FROM u WHERE name = 'ann'; INSERT INTO u VALUES ('ann', 1)",
        "UPDATE u SET name = name || '2'; UPDATE u SET name = 'bob' WHERE v = 1; UPDATE u SET name = 'ann' WHERE v = 2",
        "INSERT INTO u VALUES (NULL, 5), (NULL, 6), (NULL, 6)",
        "UPDATE u SET name = NULL WHERE name = 'bob'",
        "DELETE FROM u WHERE name IS NULL",
        "UPDATE u SET name = 'was null' || v WHERE name IS NULL",
    ],
)
@pytest.mark.parametrize("columns", ["name TEXT PRIMARY KEY, v", "name TEXT, v", "name TEXT, v, PRIMARY KEY (name, v)"])
def test_rowids_come_back_where_they_are_free(ground: SqliteGround, text: str, columns: str) -> None:
    if "REPLACE" in text and "PRIMARY" not in columns:
        pytest.skip("nothing is replaced")
    ground.execute(f"CREATE TABLE u ({columns})", *ROWS, "INSERT INTO u VALUES (NULL, 4), (NULL, 5)")
    before = ground.dump()
    asked = Asked(ground, text)
    asked.run()
    after = ground.dump()
    asked.revert("undo")
    assert ground.dump() == before
    asked.revert("redo")
    assert ground.dump() == after
    asked.revert("undo")
    assert ground.dump() == before and asked.state == "undone"


@pytest.mark.parametrize("text", ["UPDATE u SET v = v + 1", "UPDATE u SET name = name || 'x'", "DELETE FROM u"])
def test_many_rows_that_are_told_from_two_copies_are_known_by_their_key_too(
    ground: SqliteGround, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtimes.sql.sqlite.wholes.ROWS", 500)
    ground.execute(
        "CREATE TABLE u (name TEXT PRIMARY KEY, v)",
        "INSERT INTO u WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 800)"
        " SELECT 'name ' || i, i FROM n",
        "DELETE FROM u WHERE v % 3 = 0",
    )
    before = ground.dump()
    asked = Asked(ground, text)
    assert asked.plan().strategy["kind"] == "whole"
    asked.run()
    ground.execute("INSERT INTO u VALUES ('cyd', 3)", "VACUUM")
    asked.revert("undo")
    ground.execute("DELETE FROM u WHERE name = 'cyd'")
    assert ground.rows("SELECT * FROM u ORDER BY v") != []
    assert [row[:2] for row in ground.dump()["rows of u"]] == [row[:2] for row in before["rows of u"]]


@pytest.mark.promise(60)
@pytest.mark.parametrize("theirs", ["UPDATE u SET v = 9", "UPDATE u SET name = 'other', v = 9 WHERE v = 3"])
def test_a_row_without_a_key_that_others_changed_isnt_taken_for_gone(ground: SqliteGround, theirs: str) -> None:
    ground.execute("CREATE TABLE u (name, v)", *ROWS)
    asked = Asked(ground, "INSERT INTO u VALUES ('new', 3)")
    asked.run()
    ground.execute(theirs)
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left and asked.state == "done"
