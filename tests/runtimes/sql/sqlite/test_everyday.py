"""What scripts for a media library are made of: random values, values of WITH, savepoints, settings, EXPLAIN of writes.
Done, undone, done again and undone: each exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Policy
from tests.support.databases import BACK_AND_FORTH, Asked, SqliteGround

LIBRARY = (
    "CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL COLLATE NOCASE UNIQUE, mbid BLOB)",
    "CREATE TABLE track (id INTEGER PRIMARY KEY, artist INTEGER NOT NULL REFERENCES artist ON DELETE CASCADE, title"
    " TEXT, rating INTEGER CHECK (rating BETWEEN 0 AND 10), plays INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE play (at TEXT, track INTEGER REFERENCES track ON DELETE CASCADE)",
    "CREATE TRIGGER played AFTER INSERT ON play BEGIN UPDATE track SET plays = plays + 1 WHERE id = new.track; END",
    "INSERT INTO artist (name) VALUES ('Nina'), ('Harbor'), ('Orbit')",
    "INSERT INTO track (artist, title, rating) VALUES (1, 'Evening', 8), (1, 'Rain', NULL), (2, 'Tide', 3)",
    "INSERT INTO play VALUES ('2024-01-01', 1), ('2024-01-02', 1), ('2024-01-02', 3)",
)
FORMS = {
    "random bytes": "UPDATE artist SET mbid = randomblob(16) WHERE mbid IS NULL",
    "random text": "UPDATE artist SET mbid = lower(hex(randomblob(8)))",
    "values of WITH": "WITH new(id, rating) AS (VALUES (1, 9), (3, 1)) UPDATE track SET rating = (SELECT rating FROM"
    " new WHERE new.id = track.id) WHERE id IN (SELECT id FROM new)",
    "a savepoint": "SAVEPOINT a; DELETE FROM track WHERE rating IS NULL; RELEASE a",
    "savepoints in a transaction": "BEGIN IMMEDIATE; SAVEPOINT a; INSERT INTO play VALUES ('x', 2); SAVEPOINT b;"
    " DELETE FROM artist WHERE id = 2; RELEASE SAVEPOINT b; RELEASE a; COMMIT",
    "statistics": "ANALYZE",
    "statistics of one": "ANALYZE track",
    "statistics and rows": "DELETE FROM play WHERE track = 3; ANALYZE; UPDATE track SET plays = 0",
    "a number of the file": "PRAGMA user_version = 12",
    "a number of the file, and what a trigger writes": "BEGIN; INSERT INTO play VALUES ('z', 1);"
    " PRAGMA user_version = 4; COMMIT",
    "a migration": "BEGIN; ALTER TABLE track ADD COLUMN bitrate INTEGER; UPDATE track SET bitrate = 320; PRAGMA"
    " user_version = 13; COMMIT",
    "foreign keys on": "PRAGMA foreign_keys = ON; DELETE FROM artist WHERE name = 'nina'",
}


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    made.execute(*LIBRARY)
    return made


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_taken_back_and_done_again(ground: SqliteGround, form: str) -> None:
    before = ground.dump()
    asked = Asked(ground, FORMS[form])
    asked.run()
    after = ground.dump()
    assert after != before
    for verb, wanted in zip(BACK_AND_FORTH, (before, after, before), strict=True):
        asked.revert(verb)
        assert ground.dump() == wanted


@pytest.mark.parametrize("form", ["random bytes", "statistics", "a number of the file"])
def test_what_others_did_since_is_left_alone(ground: SqliteGround, form: str) -> None:
    asked = Asked(ground, FORMS[form])
    asked.run()
    ground.execute("UPDATE artist SET mbid = x'01' WHERE id = 2")
    there = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == there


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT randomblob(100000)", "up to 10000"),
        ("UPDATE artist SET mbid = randomblob(id)", "up to 10000"),
        ("SAVEPOINT a; DELETE FROM track; ROLLBACK TO a; RELEASE a", "ROLLBACK"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM artist", "PRAGMA"),
        ("EXPLAIN VACUUM", "."),
        ("ANALYZE sqlite_schema", "no table and no index"),
        ("REINDEX NOCASE", "no table and no index"),
        ("PRAGMA schema_version = 5", "PRAGMA"),
        ("VACUUM", "VACUUM"),
    ],
)
def test_what_cant_be_kept_is_refused_beforehand(ground: SqliteGround, text: str, said: str) -> None:
    before = ground.dump()
    with pytest.raises((Unsupported, InvalidInput), match=said) as caught:
        Asked(ground, text).plan()
    assert caught.value.next_step
    assert ground.dump() == before


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", ["ANALYZE", "REINDEX", "REINDEX by_title", "PRAGMA application_id = 7"])
@pytest.mark.parametrize("policy", ["reversal", "versioning"])
def test_upkeep_puts_the_files_pages_back(ground: SqliteGround, text: str, policy: Policy) -> None:
    """Byte by byte: what SQLite keeps of its statistics is in no dump of tables."""
    ground.execute("CREATE INDEX by_title ON track (title)", "ANALYZE")
    ground.execute("UPDATE sqlite_stat1 SET stat = '99 9' WHERE idx = 'by_title'")
    before, pages = ground.dump(), _content(ground)
    asked = Asked(ground, text, policy)
    ran = asked.run()
    assert {one.verb for one in ran.reached} <= {"alter"}
    if text == "ANALYZE":
        assert ground.rows("SELECT stat FROM sqlite_stat1 WHERE idx = 'by_title'") == [("3 1",)]
    asked.revert("undo")
    assert ground.dump() == before and _content(ground) == pages


def _content(ground: SqliteGround) -> bytes:
    """The file's pages but for the counters of its header, which each commit, or each definition, moves."""
    content = ground.path.read_bytes()
    return content[:24] + content[28:40] + content[44:92] + content[100:]


def test_whether_a_file_is_whole_is_read_with_the_rights_of_all_its_tables(ground: SqliteGround) -> None:
    ground.execute("PRAGMA user_version = 3", "PRAGMA foreign_keys = OFF; INSERT INTO play VALUES ('x', 99)")
    before = ground.dump()
    found = {}
    for text in ("PRAGMA integrity_check", "PRAGMA quick_check", "PRAGMA foreign_key_check", "PRAGMA user_version"):
        asked = Asked(ground, text)
        (statement,) = asked.plan().program.statements
        assert asked.planned().program.reads_only
        named = {use.table for use in statement.uses}
        assert text.endswith("user_version") or {"artist", "track", "play"} <= named
        found[text.split()[1]] = asked.run().results[0].rows
    assert found["integrity_check"] == found["quick_check"] == (("ok",),)
    assert found["foreign_key_check"] == (("play", 4, "track", 0),)
    assert found["user_version"] == ((3,),)
    assert ground.dump() == before


@pytest.mark.parametrize("text", ["SELECT * FROM pragma_user_version(9)", "SELECT * FROM pragma_user_version('main')"])
def test_no_pragma_sets_what_it_is_asked_for(ground: SqliteGround, text: str) -> None:
    before = ground.dump()
    with pytest.raises((Unsupported, InvalidInput, Conflict)):
        Asked(ground, text).run()
    assert ground.dump() == before


def test_explain_of_a_write_writes_nothing(ground: SqliteGround) -> None:
    before = ground.dump()
    for text in (
        "EXPLAIN QUERY PLAN DELETE FROM artist WHERE id IN (SELECT artist FROM track)",
        "EXPLAIN INSERT INTO play VALUES ('x', 1)",
        "EXPLAIN QUERY PLAN UPDATE OR IGNORE track SET rating = 1",
        "EXPLAIN REPLACE INTO artist (id, name) VALUES (1, 'x')",
    ):
        asked = Asked(ground, text)
        assert asked.plan().program.reads_only
        ran = asked.run()
        assert ran.results[0].rows and not ran.reached
    assert ground.dump() == before
