"""What takes other rows' places, names rowids itself, and definitions beside statistics and modules: done, undone, done
again and undone, each exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.errors import Conflict
from tests.support.databases import BACK_AND_FORTH, LIMITS, Asked, SqliteGround, session

PEOPLE = (
    "CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT UNIQUE, nick TEXT NOT NULL DEFAULT 'none', alive INTEGER)",
    "CREATE UNIQUE INDEX by_nick ON person (lower(nick)) WHERE alive",
    "CREATE TABLE post (id INTEGER PRIMARY KEY, person REFERENCES person ON DELETE CASCADE)",
    "CREATE TABLE likes (who TEXT PRIMARY KEY, n INTEGER UNIQUE) WITHOUT ROWID",
    "CREATE TABLE loose (a TEXT)",
    "CREATE TABLE log (a TEXT)",
    "CREATE TRIGGER logged AFTER UPDATE ON likes BEGIN INSERT INTO log VALUES (old.who || new.who); END",
    "CREATE TABLE feed (a)",
    "CREATE TRIGGER fed AFTER INSERT ON feed BEGIN INSERT INTO person VALUES (9, 'a', 'zz', 1); END",
    "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)",
    "CREATE VIRTUAL TABLE words USING fts5(body)",
    "CREATE VIRTUAL TABLE old_words USING fts4(body)",
    "CREATE VIRTUAL TABLE box USING rtree(id, low, high)",
    "CREATE TRIGGER noted AFTER UPDATE ON note BEGIN UPDATE words SET body = new.body WHERE rowid = old.id; END",
    "CREATE INDEX by_body ON note (body)",
    "CREATE TABLE tag (id INTEGER PRIMARY KEY, a, b)",
    "CREATE UNIQUE INDEX by_a ON tag (a) WHERE a IS NOT NULL",
    "CREATE UNIQUE INDEX by_b ON tag (lower(b))",
    "CREATE TABLE void (id INTEGER PRIMARY KEY)",
    "INSERT INTO tag VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z')",
    "INSERT INTO person VALUES (1, 'a', 'Ann', 1), (2, 'b', 'Bob', 1), (3, 'c', 'Cy', 0), (4, 'd', 'Di', 1)",
    "INSERT INTO post VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO likes VALUES ('a', 1), ('b', 2), ('c', 3)",
    "INSERT INTO loose VALUES ('first'), ('second')",
    "INSERT INTO note VALUES (1, 'one word'), (2, 'two words')",
    "INSERT INTO words (rowid, body) SELECT id, body FROM note",
    "INSERT INTO old_words (docid, body) SELECT id, body FROM note",
    "INSERT INTO box VALUES (1, 0, 1), (2, 5, 6)",
    "ANALYZE",
)
REPLACING = {
    "a unique column": "UPDATE OR REPLACE person SET email = 'a' WHERE id = 2",
    "several unique keys": "UPDATE OR REPLACE person SET email = 'a', nick = 'BOB' WHERE id = 4",
    "all of them": "UPDATE OR REPLACE person SET email = 'same'",
    "the key": "UPDATE OR REPLACE person SET id = 2 WHERE id = 4; UPDATE person SET nick = 'x' WHERE id = 2",
    "a default": "UPDATE OR REPLACE person SET nick = NULL WHERE id = 1",
    "without rowids": "UPDATE OR REPLACE likes SET n = 1 WHERE who = 'b'",
    "a key of text": "UPDATE OR REPLACE likes SET who = 'a'",
    "an insert": "REPLACE INTO person VALUES (9, 'a', 'BOB', 1)",
    "unique indexes of some rows, and of expressions": "REPLACE INTO tag VALUES (3, 'a', 'Y')",
    "a row of its own": "REPLACE INTO void VALUES (1), (1)",
}
OTHERS = {
    "abort": "UPDATE OR ABORT person SET alive = 0",
    "fail": "UPDATE OR FAIL person SET alive = 0; INSERT OR FAIL INTO log VALUES ('x')",
    "rollback": "UPDATE OR ROLLBACK person SET alive = 0; INSERT OR ROLLBACK INTO log VALUES ('x')",
    "a rowid": "INSERT INTO loose (rowid, a) VALUES (77, 'r')",
    "a rowid that is taken": "INSERT OR REPLACE INTO loose (_rowid_, a) VALUES (1, 'r'), (9, 's')",
    "a rowid that is the key": "INSERT INTO note (oid, body) VALUES (50, 'q')",
    "rowids of a full-text index": "INSERT INTO words (rowid, body) SELECT id + 10, body FROM note",
    "docids": "INSERT INTO old_words (docid, body) VALUES (7, 'x'); DELETE FROM old_words WHERE docid = 1",
    "an index with statistics": "DROP INDEX by_body",
    "a table with statistics": "DROP TABLE note",
    "a full-text index": "DROP TABLE old_words",
    "an R-tree": "DROP TABLE box",
    "a definition, and rows of modules": "ALTER TABLE log ADD COLUMN z TEXT; DELETE FROM box WHERE id = 1;"
    " INSERT INTO words (body) VALUES ('new')",
    "a definition, and a trigger into a module": "ALTER TABLE note ADD COLUMN z TEXT; UPDATE note SET body = 'm'",
}


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    made.execute(*PEOPLE)
    return made


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("text", [*REPLACING.values(), *OTHERS.values()], ids=[*REPLACING, *OTHERS])
def test_it_is_taken_back_and_done_again(ground: SqliteGround, text: str) -> None:
    before = ground.dump()
    asked = Asked(ground, text)
    asked.run()
    after = ground.dump()
    assert after != before
    for verb, wanted in zip(BACK_AND_FORTH, (before, after, before), strict=True):
        asked.revert(verb)
        assert ground.dump() == wanted
        assert ground.rows("PRAGMA integrity_check") == [("ok",)]


def test_the_rows_that_go_are_asked_for_and_told(ground: SqliteGround) -> None:
    asked = Asked(ground, REPLACING["a unique column"])
    (statement,) = asked.plan().program.statements
    assert {(use.verb, use.table) for use in statement.uses} >= {("update", "person"), ("delete", "person")}
    told = {(one.table, one.verb): one.rows for one in asked.run().reached}
    assert told == {("person", "update"): 1, ("person", "delete"): 1, ("post", "delete"): 1}


def test_a_rowid_that_is_taken_counts_beside_the_unique_keys(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE pair (a UNIQUE, b UNIQUE)", "INSERT INTO pair VALUES (1, 1), (2, 2), (3, 3)")
    before = ground.dump()
    asked = Asked(ground, "REPLACE INTO pair (rowid, a, b) VALUES (1, 2, 3)")
    assert {(one.table, one.verb): one.rows for one in asked.run().reached} == {
        ("pair", "insert"): 1,
        ("pair", "delete"): 3,
    }
    asked.revert("undo")
    assert ground.dump() == before


@pytest.mark.parametrize("first", ["", "ALTER TABLE log ADD COLUMN z TEXT; "], ids=["alone", "behind a definition"])
def test_or_replace_within_a_trigger_is_asked_for(ground: SqliteGround, first: str) -> None:
    asked = Asked(ground, f"{first}REPLACE INTO feed VALUES (1)")
    with session(ground) as at:
        found = at.survey(asked.plan().program, "reversal", LIMITS)
    assert {("person", "delete"), ("post", "delete")} <= {(one.table, one.verb) for one in found.reached}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("word", ["ABORT", "FAIL", "ROLLBACK"])
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE OR {} person SET email = 'b'",
        "INSERT INTO log VALUES ('x'); UPDATE OR {} person SET email = 'z' || id / 3; INSERT INTO log VALUES ('y')",
        "INSERT INTO log VALUES ('x'); INSERT OR {} INTO person (id) VALUES (8), (1); INSERT INTO log VALUES ('y')",
    ],
)
def test_a_conflict_ends_the_request_with_nothing_changed(ground: SqliteGround, word: str, text: str) -> None:
    before = ground.dump()
    asked = Asked(ground, text.format(word))
    with pytest.raises(Conflict, match="Nothing was changed"):
        asked.run()
    assert ground.dump() == before
    assert asked.state == "nothing"


def test_a_rowid_names_the_key_that_it_is(ground: SqliteGround) -> None:
    asked = Asked(ground, "INSERT INTO note (rowid, body) VALUES (50, 'q')")
    (statement,) = asked.plan().program.statements
    assert statement.uses[0].columns == ("id", "body")
