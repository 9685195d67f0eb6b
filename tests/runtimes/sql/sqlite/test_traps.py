"""What SQLite does that others don't: each of these is exact, or refused with its reason."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import apsw
import pytest

from policies.errors import Conflict, InvalidInput, Unavailable, Unsupported
from runtimes.sql.contract import Dialect, Job, Limits, Policy, Program, Statement, Use
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.location import find
from tests.support.databases import LIMITS, Asked, SqliteGround, session
from tests.support.sqlite_journal import naming


@pytest.fixture
def ground(tmp_path: Path) -> SqliteGround:
    made = SqliteGround(tmp_path)
    made.empty()
    return made


def there_and_back(ground: SqliteGround, text: str, policy: Policy = "reversal") -> Asked:
    before = ground.dump()
    asked = Asked(ground, text, policy)
    asked.run()
    after = ground.dump()
    asked.revert("undo")
    assert ground.dump() == before
    assert asked.state == "undone"
    asked.revert("redo")
    assert ground.dump() == after
    assert ground.rows("PRAGMA integrity_check") == [("ok",)]
    return asked


def kind(asked: Asked) -> object:
    return asked.planned().strategy["kind"]


def test_rows_without_a_primary_key(ground: SqliteGround) -> None:
    """Twins are told apart by their rowid."""
    ground.execute("CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 2), (1, 2), (1, 2)")
    asked = there_and_back(ground, "DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (1, 2)")
    assert kind(asked) == "rows"


def test_a_key_that_holds_null(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v)", "INSERT INTO t VALUES (NULL, 1), (NULL, 1), ('a', 2)")
    there_and_back(ground, "UPDATE t SET v = 5; DELETE FROM t WHERE k IS NULL; INSERT INTO t VALUES (NULL, 9)")


def test_rowids_come_back(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (k TEXT PRIMARY KEY)", "INSERT INTO t(rowid, k) VALUES (77, 'a'), (5, 'b')")
    there_and_back(ground, "DELETE FROM t")


def test_a_rowid_that_is_used_again(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES ('last')")
    there_and_back(ground, "DELETE FROM t; INSERT INTO t VALUES ('other')")


def test_without_rowid_and_a_key_of_two_columns(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE t (v, q INTEGER, p TEXT COLLATE NOCASE, PRIMARY KEY (p, q)) WITHOUT ROWID",
        "INSERT INTO t VALUES (1, 1, 'A'), (2, 2, 'a'), (3, 3, 'b')",
    )
    there_and_back(ground, "UPDATE t SET p = lower(p); UPDATE t SET q = q + 1 WHERE p = 'b'; DELETE FROM t WHERE v = 2")


def test_replace_takes_away_rows_of_every_unique_key(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u UNIQUE, w UNIQUE)",
        "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    )
    asked = Asked(ground, "INSERT OR REPLACE INTO t VALUES (1, 2, 3)")
    asked.plan()
    there_and_back(ground, asked.text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (5, 5); DELETE FROM t",
        "INSERT INTO t VALUES (5, 5); UPDATE t SET v = 6",
        "INSERT INTO t VALUES (1, 5)",
        "UPDATE t SET k = 2 WHERE k = 1",
        "INSERT INTO t VALUES (5, 5); INSERT INTO t SELECT k + 10, v FROM t",
    ],
)
def test_what_a_statement_adds_counts_for_the_next_one(ground: SqliteGround, text: str) -> None:
    """The survey's number is never too small for the same rows: the action could never run."""
    ground.execute(
        "CREATE TABLE t (k INTEGER PRIMARY KEY ON CONFLICT REPLACE, v)", "INSERT INTO t VALUES (1, 1), (2, 2)"
    )
    there_and_back(ground, text)


def test_columns_that_are_computed_when_read(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b AS (a + 1), c)", "INSERT INTO t(a, c) VALUES (1, 2)")
    assert kind(there_and_back(ground, "UPDATE t SET c = 9")) == "pages"


def test_a_table_whose_columns_hide_the_rowid(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (rowid, oid, _rowid_)", "INSERT INTO t VALUES (1, 1, 1), (1, 1, 1)")
    assert kind(there_and_back(ground, "DELETE FROM t")) == "pages"
    ground.execute("CREATE TABLE u (_rowid_ TEXT, x)", "INSERT INTO u VALUES ('a', 1), ('a', 1)")
    assert kind(there_and_back(ground, "UPDATE u SET x = 2")) == "rows"


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_utf_16(tmp_path: Path, encoding: str) -> None:
    ground = SqliteGround(tmp_path)
    ground.execute(f"PRAGMA encoding = '{encoding}'; CREATE TABLE t (a); INSERT INTO t VALUES ('\u00e4\U0001f600')")
    ground.execute("INSERT INTO t VALUES (CAST(x'00d8' AS TEXT))")  # half a character
    assert kind(there_and_back(ground, "UPDATE t SET a = 'x'")) == "pages"


def test_text_that_is_not_utf_8_is_refused_by_rows_and_kept_by_pages(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a, b)", "INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), 1)")
    before = ground.dump()
    with pytest.raises(Unsupported, match="versioning"):
        Asked(ground, "UPDATE t SET b = 2").run()
    assert ground.dump() == before
    there_and_back(ground, "UPDATE t SET b = 2", "versioning")


def test_values_that_look_like_others(ground: SqliteGround) -> None:
    """1, 1.0, '1' and x'31' are four values, and -0.0 isn't 0.0."""
    ground.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
        "INSERT INTO t(a) VALUES (1), (1.0), ('1'), (x'31'), (0.0), (-0.0), (9e999), (-9e999), (9223372036854775807),"
        " ('a' || char(0) || 'b'), (x''), ('')",
    )
    there_and_back(ground, "UPDATE t SET a = 1")
    asked = Asked(ground, "UPDATE t SET a = 2.0 WHERE id = 1")
    asked.run()
    ground.execute("UPDATE t SET a = 2 WHERE id = 1")
    with pytest.raises(Conflict):
        asked.revert("undo")


def test_full_text_and_r_trees(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text)",
        "INSERT INTO words VALUES ('one two'), ('three')",
        "CREATE VIRTUAL TABLE boxes USING rtree(id, x1, x2)",
        "INSERT INTO boxes VALUES (1, 0, 1)",
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, t TEXT)",
        "INSERT INTO docs VALUES (1, 'a')",
    )
    for text, table in (
        ("UPDATE docs SET t = 'b'", "docs"),
        ("DELETE FROM words", "words"),
        ("DELETE FROM boxes", "boxes"),
    ):
        program = _program(text, table)
        before = ground.dump()
        asked = _by_hand(ground, program)
        assert kind(asked) == ("rows" if table == "docs" else "pages")
        asked.run()
        after = ground.dump()
        assert after != before
        asked.revert("undo")
        assert ground.dump() == before
        asked.revert("redo")
        assert ground.dump() == after
        assert ground.rows("PRAGMA integrity_check") == [("ok",)]


def _program(text: str, table: str) -> Program:
    verb = text.split()[0].lower()
    statement = Statement(
        sql=text,
        verb=verb,  # type: ignore[arg-type]
        table=table,
        uses=(Use(table=table, verb=verb),),  # type: ignore[arg-type]
        count_sql=f"SELECT count(*) FROM {table}",
    )
    return Program(dialect=Dialect.SQLITE, statements=(statement,))


def _by_hand(ground: SqliteGround, program: Program, policy: Policy = "reversal") -> Asked:
    """An action with a program that no check has seen."""
    asked = Asked(ground, "", policy)
    with session(ground) as at:
        found = at.survey(program, policy, LIMITS)
        asked.job = Job(
            id=asked.id,
            program=program,
            policy=policy,
            rows=1000,
            limits=LIMITS,
            records=asked.records,
            schema_hash=at.schema().hash,
            strategy=found.strategy,
        )
    return asked


def test_a_trigger_on_a_view(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
        "INSERT INTO t VALUES (1, 'x')",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TRIGGER on_v INSTEAD OF UPDATE ON v BEGIN UPDATE t SET a = new.a WHERE id = old.id; END",
    )
    before = ground.dump()
    asked = _by_hand(ground, _program("UPDATE v SET a = 'y'", "v"))
    asked.run()
    assert ground.rows("SELECT a FROM t") == [("y",)]
    asked.revert("undo")
    assert ground.dump() == before


def test_triggers_that_write_do_not_run_again(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
        "CREATE TABLE log (what)",
        "CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('in'); END",
        "CREATE TRIGGER b AFTER DELETE ON t BEGIN INSERT INTO log VALUES ('out');"
        " DELETE FROM log WHERE what = 'in'; END",
        "INSERT INTO t VALUES (1, 1)",
    )
    there_and_back(ground, "INSERT INTO t VALUES (2, 2), (3, 3)")
    there_and_back(ground, "DELETE FROM t")


def test_autoincrement_is_told_and_stays(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a)", "INSERT INTO t(a) VALUES ('x')")
    asked = Asked(ground, "INSERT INTO t (a) VALUES ('y'), ('z')")
    assert asked.run().counters == ("t: AUTOINCREMENT went from 1 to 3",)
    asked.revert("undo")
    assert ground.rows("SELECT seq FROM sqlite_sequence") == [(3,)]
    ground.execute("INSERT INTO t(a) VALUES ('theirs')")
    asked.revert("redo")
    assert ground.rows("SELECT id, a FROM t ORDER BY id") == [(1, "x"), (2, "y"), (3, "z"), (4, "theirs")]


@pytest.mark.parametrize(
    "mode", ["delete", "wal", *(pytest.param(mode, marks=pytest.mark.thorough) for mode in ("truncate", "persist"))]
)
def test_definitions_in_every_journal_mode_with_somebody_reading(ground: SqliteGround, mode: str) -> None:
    ground.execute(f"PRAGMA journal_mode = {mode}", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)")
    with contextlib.closing(ground.connect()) as idle:
        idle.execute("SELECT * FROM t").fetchall()
        there_and_back(ground, "DROP TABLE t; CREATE TABLE u (b INTEGER PRIMARY KEY)")
        there_and_back(ground, "INSERT INTO u VALUES (5)", "versioning")
        assert idle.execute("SELECT b FROM u").fetchall() == [(5,)]
        there_and_back(ground, "ALTER TABLE u ADD COLUMN c TEXT DEFAULT 'x'")
        there_and_back(ground, "UPDATE u SET c = 'z'")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX fresh ON t (b)",
        "CREATE UNIQUE INDEX fresh ON t (b)",
        "DROP INDEX ix",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t RENAME COLUMN b TO d",
        "ALTER TABLE t DROP COLUMN c",
        "CREATE VIEW v AS SELECT b FROM t",
        "CREATE TABLE u AS SELECT a, b FROM t",
        "DROP VIEW w",
        "DROP TABLE t",
    ],
)
def test_every_kind_of_definition(ground: SqliteGround, text: str) -> None:
    ground.execute(
        "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b, c)",
        "INSERT INTO t VALUES (1, 2, 3), (5, 6, 7)",
        "CREATE INDEX ix ON t (b)",
        "CREATE TABLE other (x)",
        "CREATE VIEW w AS SELECT x FROM other",
    )
    there_and_back(ground, text)


def test_from_an_empty_file_and_back(ground: SqliteGround) -> None:
    ground.path.write_bytes(b"")
    there_and_back(ground, "CREATE TABLE t (a INTEGER PRIMARY KEY)")


def test_definitions_are_refused_back_once_anybody_wrote(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "CREATE TABLE other (b)")
    asked = Asked(ground, "ALTER TABLE t ADD COLUMN c TEXT")
    asked.run()
    ground.execute("INSERT INTO other VALUES (1)")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left
    assert asked.state == "done", "it was committed, whoever wrote since"


def test_a_later_definition_by_somebody_else_is_seen_by_connections_that_were_open(ground: SqliteGround) -> None:
    """The number of the schema goes on, so that nobody works with definitions that were taken back."""
    ground.execute("CREATE TABLE t (a)")
    asked = Asked(ground, "CREATE TABLE ours (x INTEGER PRIMARY KEY)")
    asked.run()
    with contextlib.closing(ground.connect()) as idle:
        idle.execute("SELECT * FROM ours").fetchall()
        asked.revert("undo")
        ground.execute("CREATE TABLE theirs (y TEXT, z TEXT)", "INSERT INTO theirs VALUES ('1', '2')")
        assert idle.execute("SELECT * FROM theirs").fetchall() == [("1", "2")]
        with pytest.raises(apsw.SQLError):
            idle.execute("SELECT * FROM ours")


def test_a_file_that_is_larger_than_what_is_kept_is_refused_beforehand(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (randomblob(300000))")
    before = ground.dump()
    limits = Limits(image_bytes=100_000)
    with pytest.raises(Unsupported, match="image_mb"):
        Asked(ground, "DROP TABLE t", limits=limits).plan()
    with pytest.raises(Unsupported, match="reversal"):
        Asked(ground, "UPDATE t SET a = 1", "versioning", limits=limits).plan()
    assert ground.dump() == before


# ---- what the table itself does with a conflict


@pytest.mark.sampled(6)
@pytest.mark.parametrize("clause", ["REPLACE", "IGNORE", "FAIL", "ROLLBACK"])
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_a_tables_own_conflict_clause_takes_away_nobodys_row(ground: SqliteGround, clause: str, verb: str) -> None:
    ground.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT UNIQUE ON CONFLICT {clause})",
        "INSERT INTO t VALUES (1, 'a')",
    )
    asked = Asked(ground, "UPDATE t SET email = 'b' WHERE id = 1")
    asked.run()
    if verb == "redo":
        asked.revert("undo")
    ground.execute(f"INSERT INTO t VALUES (2, '{'a' if verb == 'undo' else 'b'}')")
    left = ground.dump()
    with pytest.raises(Conflict) as raised:
        asked.revert("undo" if verb == "undo" else "redo")
    assert raised.value.difference == ("a value that has to be unique is taken by another row now",)
    assert ground.dump() == left


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "clause", ["UNIQUE ON CONFLICT REPLACE", "UNIQUE ON\n/* what? */ CONFLICT -- so\n REPLACE", "NOT NULL UNIQUE"]
)
@pytest.mark.parametrize(
    ("text", "replaces"),
    [
        ("INSERT INTO t VALUES (9, 'a')", True),
        ("UPDATE t SET email = 'a' WHERE id = 2", True),
        ("INSERT INTO t VALUES (9, 'z')", False),
        ("INSERT INTO feed VALUES (1)", True),
        ("INSERT INTO grand (child) VALUES (NULL); INSERT INTO t SELECT 7, 'a'", True),
    ],
)
def test_what_a_replaced_row_takes_along_is_planned(
    ground: SqliteGround, clause: str, text: str, replaces: bool
) -> None:
    ground.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT {clause})",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, t REFERENCES t ON DELETE CASCADE)",
        "CREATE TABLE grand (child REFERENCES child ON DELETE SET NULL)",
        "CREATE TABLE feed (a)",
        "CREATE TRIGGER fed AFTER INSERT ON feed BEGIN INSERT INTO t VALUES (8, 'a'); END",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO child VALUES (10, 1), (20, 2)",
        "INSERT INTO grand VALUES (10)",
    )
    asked = Asked(ground, text)
    if replaces and "CONFLICT" not in clause:
        with pytest.raises(Conflict, match="unique"):
            asked.run()
        return
    with session(ground) as at:
        found = at.survey(asked.plan().program, "reversal", LIMITS)
    told = {(one.table, one.verb) for one in found.reached}
    assert {("t", "delete"), ("child", "delete"), ("grand", "update")} <= told or "CONFLICT" not in clause
    before = ground.dump()
    there_and_back(ground, text)
    ground.execute("UPDATE grand SET child = child")
    assert ground.dump() != before


def test_or_replace_holds_inside_of_triggers(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT UNIQUE)",
        "CREATE TABLE child (t REFERENCES t ON DELETE CASCADE)",
        "CREATE TABLE feed (a)",
        "CREATE TRIGGER fed AFTER INSERT ON feed BEGIN INSERT INTO t VALUES (8, 'a'); END",
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO child VALUES (1)",
    )
    with session(ground) as at:
        found = at.survey(Asked(ground, "REPLACE INTO feed VALUES (1)").plan().program, "reversal", LIMITS)
    assert {("t", "delete"), ("child", "delete")} <= {(one.table, one.verb) for one in found.reached}
    there_and_back(ground, "REPLACE INTO feed VALUES (1)")
    assert ground.rows("SELECT * FROM t") == [(8, "a")]
    assert ground.rows("SELECT * FROM child") == []


def test_many_replaced_rows_are_counted(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE big (id INTEGER PRIMARY KEY ON CONFLICT REPLACE, n INTEGER)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) INSERT INTO big SELECT i, i"
        " FROM n",
    )
    asked = Asked(ground, "INSERT INTO big SELECT id + 4000, n FROM big")
    ran = asked.run()
    assert kind(asked) == "whole"
    assert {(one.verb, one.rows) for one in ran.reached} == {("insert", 8000), ("delete", 4000)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "declared", ["REAL", "FLOAT", "DOUBLE PRECISION", "real(5,2)", "NUMERIC", "INTEGER", "TEXT", ""]
)
@pytest.mark.parametrize("default", ["0", "-3", "2.0", "'7'", "1e3", "true", "9007199254740993"])
@pytest.mark.parametrize("tail", ["", " WITHOUT ROWID"])
def test_rows_that_are_older_than_a_column(ground: SqliteGround, declared: str, default: str, tail: str) -> None:
    """SQLite hands its hook the default as it was written, and a SELECT as the column has it."""
    ground.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, v){tail}",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        f"ALTER TABLE t ADD COLUMN price {declared} NOT NULL DEFAULT {default}",
    )
    asked = there_and_back(ground, "UPDATE t SET v = 'z' WHERE id = 1; DELETE FROM t WHERE id = 2")
    assert kind(asked) == "rows"
    there_and_back(ground, "UPDATE t SET price = 5 WHERE id = 3; INSERT INTO t VALUES (4, 'd', 1)")


def test_rows_that_pointed_nowhere_before(ground: SqliteGround) -> None:
    """Other programs don't enforce foreign keys: what was there before comes back, though it points nowhere."""
    ground.execute(
        "CREATE TABLE p (id INTEGER PRIMARY KEY)",
        "CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p(id) ON DELETE CASCADE)",
        "INSERT INTO c VALUES (1, 4711), (2, NULL)",
    )
    assert kind(there_and_back(ground, "DELETE FROM c")) == "pages"


def test_versioning_is_undone_until_somebody_writes_or_it_is_committed(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    asked = Asked(ground, "UPDATE t SET a = 2", "versioning")
    asked.run()
    assert asked.state == "held"
    assert ground.rows("SELECT a FROM t") == [(2,)]
    asked.commit()
    assert asked.state == "done"
    with pytest.raises(Conflict, match="committed"):
        asked.revert("undo")


# ---- many rows


def many(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE big (id INTEGER PRIMARY KEY, t TEXT, n REAL, b BLOB)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000) INSERT INTO big SELECT i,"
        " 'row ' || i, i / 3.0, randomblob(5) FROM n",
        "CREATE TABLE other (a)",
        "INSERT INTO other VALUES (1)",
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "text",
    [
        "UPDATE big SET t = t || '!', n = -n",
        "DELETE FROM big WHERE id > 100",
        "INSERT INTO big (t) SELECT t FROM big",
        "INSERT OR REPLACE INTO big SELECT id + 1, 'x', 0.0, NULL FROM big",
        "UPDATE big SET id = id + 100000",
        "UPDATE big SET n = 0.0; UPDATE big SET n = -0.0 WHERE id < 7000",
    ],
)
def test_many_rows_are_told_from_copies_and_undone_row_by_row(ground: SqliteGround, text: str) -> None:
    many(ground)
    asked = there_and_back(ground, text)
    assert kind(asked) == "whole"
    ground.execute("UPDATE other SET a = 2")
    left = ground.dump()
    asked.revert("undo")
    assert ground.rows("SELECT a FROM other") == [(2,)], "what others wrote elsewhere stays"
    asked.revert("redo")
    assert ground.dump() == left
    ground.execute("UPDATE big SET b = 'theirs' WHERE id = (SELECT max(id) FROM big)")
    left = ground.dump()
    if not text.startswith("DELETE"):  # it left that row alone
        with pytest.raises(Conflict):
            asked.revert("undo")
        assert ground.dump() == left


def test_many_rows_are_counted_and_bound(ground: SqliteGround) -> None:
    many(ground)
    before = ground.dump()
    asked = Asked(ground, "UPDATE big SET n = 1", rows=7999)
    with pytest.raises(Conflict):
        asked.run()
    assert ground.dump() == before
    ran = Asked(ground, "UPDATE big SET n = 1").run()
    assert [(one.table, one.verb, one.rows) for one in ran.reached] == [("big", "update", 8000)]
    assert len(ran.sample) == 50


def test_many_rows_with_text_that_is_not_utf_8(ground: SqliteGround) -> None:
    """Rows can't be told there: undo is of the pages, and refused once anybody wrote."""
    many(ground)
    ground.execute("UPDATE big SET t = CAST(x'ff41' AS TEXT) WHERE id = 9")
    asked = there_and_back(ground, "UPDATE big SET n = 1")
    assert kind(asked) == "whole"
    ground.execute("UPDATE other SET a = 2")
    left = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == left


# ---- the file itself


def opened(ground: SqliteGround) -> None:
    with session(ground) as at:
        at.schema()


def test_no_file_is_created(ground: SqliteGround) -> None:
    ground.path.unlink()
    with pytest.raises(Unavailable):
        opened(ground)
    assert list(ground.folder.iterdir()) == []


def test_a_link_is_refused(ground: SqliteGround) -> None:
    real = ground.folder / "real.db"
    ground.path.rename(real)
    ground.path.symlink_to(real)
    with pytest.raises(InvalidInput, match="link"):
        opened(ground)


def test_a_second_name_is_refused(ground: SqliteGround) -> None:
    (ground.folder / "other.db").hardlink_to(ground.path)
    with pytest.raises(InvalidInput, match="names"):
        opened(ground)


def test_what_is_no_database_is_refused(ground: SqliteGround) -> None:
    ground.path.write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(Unavailable, match="SQLite"):
        opened(ground)


def test_a_file_in_a_folder_that_everybody_may_write_to_is_refused(ground: SqliteGround) -> None:
    """Anybody could put a journal beside it, which SQLite would play back."""
    ground.folder.chmod(0o1777)
    with pytest.raises(InvalidInput, match="write to"):
        opened(ground)
    ground.folder.chmod(0o700)
    opened(ground)


def test_a_journal_that_is_a_link_is_refused(ground: SqliteGround) -> None:
    (ground.folder / "shop.db-journal").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInput, match="journal"):
        opened(ground)


def test_a_journal_that_is_another_file_as_well_is_refused(ground: SqliteGround) -> None:
    """SQLite would take it for what is left of itself, and write over it."""
    (ground.folder / "precious").write_text("precious")
    os.link(ground.folder / "precious", ground.folder / "shop.db-journal")
    with pytest.raises(InvalidInput, match="journal"):
        opened(ground)


def test_a_journal_that_names_a_file_is_refused(ground: SqliteGround) -> None:
    """SQLite would delete that file with it; before 3.54 whatever it is."""
    precious = ground.folder / "precious"
    precious.write_text("precious")
    journal = ground.folder / "shop.db-journal"
    journal.write_bytes(naming(precious, ground.path.stat().st_size // 4096))
    with pytest.raises(InvalidInput, match="journal names a file"):
        opened(ground)
    assert precious.exists() and journal.exists()


def test_a_journal_that_came_after_the_file_was_looked_at_is_refused(ground: SqliteGround) -> None:
    """A program on its folder may leave one while the database waits for it to end."""
    pinned = find(str(ground.path))
    journal = ground.folder / "shop.db-journal"
    journal.write_bytes(naming(ground.folder / "precious", ground.path.stat().st_size // 4096))
    with pytest.raises(InvalidInput, match="journal names a file"):
        Connection(pinned, Limits())
    assert journal.exists()
    journal.unlink()
    Connection(pinned, Limits()).close()  # nothing is held


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_users_file_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:
        ground = SqliteGround(Path(name))
        ground.empty()
        ground.folder.chmod(0o755)
        os.seteuid(65534)
        try:
            with pytest.raises(InvalidInput, match="another user"):
                opened(ground)
        finally:
            os.seteuid(0)
        os.chown(ground.path, 65534, 65534)
        opened(ground)


def test_the_own_state_is_refused(ground: SqliteGround) -> None:
    from runtimes.sql.drivers import SqliteDriver

    with pytest.raises(InvalidInput, match="own"):
        SqliteDriver((ground.folder,)).open(ground.place, ground.secret, LIMITS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize(
    "what", ["the folder", "the file", "the folder above", "a link", "a descriptor", "another name"]
)
def test_the_own_state_is_refused_by_another_path(ground: SqliteGround, tmp_path: Path, what: str) -> None:
    own = ground.folder / "own"
    own.mkdir()
    database = own / "state.db"
    ground.path.rename(database)
    other, fd = tmp_path.parent / f"{tmp_path.name}-other", os.open(own, os.O_PATH)
    match what:
        case "the folder" | "the folder above":
            other.mkdir()
            mounted, path = (
                (own, other / "state.db") if what == "the folder" else (own.parent, other / "own" / "state.db")
            )
        case "the file":
            other.touch()
            mounted, path = database, other
        case "a link":
            other.symlink_to(own)
            mounted, path = None, other / "state.db"
        case "a descriptor":
            mounted, path = None, Path(f"/proc/self/fd/{fd}/state.db")
        case _:
            os.link(database, other)
            mounted, path = None, other
    if mounted is not None and subprocess.run(["mount", "--bind", str(mounted), str(other)], check=False).returncode:
        pytest.skip("may not mount here")
    try:
        with pytest.raises(InvalidInput, match="names" if what == "another name" else "GoEx's own"):
            find(str(path), protected=[own])
    finally:
        os.close(fd)
        if mounted is not None:
            subprocess.run(["umount", "--lazy", str(other)], check=True)


def test_another_file_at_the_same_path_is_refused(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    asked = Asked(ground, "UPDATE t SET a = 2")
    asked.plan()
    copy = ground.folder / "copy.db"
    copy.write_bytes(ground.path.read_bytes())
    copy.rename(ground.path)
    with pytest.raises(Conflict):
        asked.run()
    assert ground.rows("SELECT a FROM t") == [(1,)]


def test_a_file_that_is_swapped_while_it_runs_is_not_written(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    asked = Asked(ground, "UPDATE t SET a = 2")
    job = asked.plan()
    copy = ground.folder / "copy.db"
    copy.write_bytes(ground.path.read_bytes())
    with session(ground) as at:

        def swap(text: str) -> None:
            copy.rename(ground.path)

        swapped = Job(**{**{name: getattr(job, name) for name in job.__slots__}, "progress": swap})
        with pytest.raises(Conflict):
            at.run(swapped)
    (ground.folder / "shop.db-journal").unlink(missing_ok=True)
    assert ground.rows("SELECT a FROM t") == [(1,)]


def test_a_journal_that_a_crash_left_is_played_back(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    before = ground.dump()
    with contextlib.closing(ground.connect()) as db:
        db.execute("PRAGMA cache_size = 1; BEGIN; UPDATE t SET a = 2")
        db.execute("CREATE TABLE large (b); INSERT INTO large SELECT randomblob(5000) FROM (VALUES (1), (2), (3))")
        db.cache_flush()
        saved = {path.name: path.read_bytes() for path in ground.folder.iterdir()}
        db.execute("ROLLBACK")
    assert "shop.db-journal" in saved
    for name, data in saved.items():
        (ground.folder / name).write_bytes(data)
    opened(ground)
    assert ground.dump() == before


# ---- before it was approved

_DOUBLED = (
    "WITH RECURSIVE c(s, i) AS (SELECT 'aaaaaaaa', 0 UNION ALL SELECT s || s, i + 1 FROM c WHERE i < 23)"
    " SELECT max(length(s)) AS m FROM c"
)
_ENDLESS = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c"


@pytest.mark.parametrize("query", [_DOUBLED, _ENDLESS])
def test_no_query_of_a_definition_runs_before_it_is_approved(ground: SqliteGround, query: str) -> None:
    """What it may take holds when it runs."""
    ground.execute("CREATE TABLE t (a)")
    before = ground.dump()
    asked = Asked(ground, f"CREATE TABLE z AS {query}; CREATE INDEX i ON t (a)", limits=Limits(seconds=3.0))
    most = apsw.memory_high_water(True)
    job = asked.plan()
    assert apsw.memory_high_water() - most < 2**22
    assert [one.verb for one in job.program.statements] == ["create", "alter"]
    with pytest.raises(Conflict):
        asked.run()
    assert ground.dump() == before


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE z AS SELECT a, a AS b, a + 1 FROM t; INSERT INTO t (a) VALUES (1)",
        "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS x; INSERT INTO t VALUES (5)",
        "CREATE TABLE z AS VALUES (1, 2)",
    ],
)
def test_a_table_that_is_made_of_a_query(ground: SqliteGround, text: str) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    there_and_back(ground, text)


def test_a_connection_that_only_prepares_takes_no_large_value(ground: SqliteGround) -> None:
    with contextlib.closing(Connection(find(str(ground.path)), LIMITS)) as at:
        before = at.db.limit(apsw.SQLITE_LIMIT_LENGTH)
        with at.noting(set(), set()), pytest.raises(apsw.TooBigError):
            at.db.execute("SELECT zeroblob(2000000)").fetchall()
        assert at.db.limit(apsw.SQLITE_LIMIT_LENGTH) == before


# ---- the second line


@pytest.mark.parametrize(
    "text",
    [
        "ATTACH DATABASE ':memory:' AS other",
        "PRAGMA writable_schema = ON",
        "UPDATE t SET a = load_extension('x')",
        "DELETE FROM secret",
        "CREATE TEMP TABLE x (a)",
        "UPDATE sqlite_schema SET sql = ''",
        "INSERT INTO secret SELECT * FROM t",
        "VACUUM",
        "REINDEX",
        "SAVEPOINT x",
        "COMMIT",
        "DROP TABLE t",
        "ALTER TABLE t RENAME TO u",
    ],
)
def test_what_the_program_does_not_say_does_not_run(ground: SqliteGround, text: str) -> None:
    """A statement that claims to be an update of `t`, past every check."""
    ground.execute(
        "CREATE TABLE t (a)",
        "INSERT INTO t VALUES (1)",
        "CREATE TABLE secret (a UNIQUE)",
        "INSERT INTO secret VALUES (2)",
    )
    before = ground.dump()
    use = Use(table="t", verb="update", columns=("a",))
    program = Program(
        dialect=Dialect.SQLITE,
        statements=(Statement(sql=text, verb="update", table="t", uses=(use,), count_sql="SELECT 1"),),
    )
    with session(ground) as at:
        strategy = at.survey(_program("UPDATE t SET a = 3", "t"), "reversal", LIMITS).strategy
        asked = Asked(ground, "")
        asked.job = Job(
            id=asked.id,
            program=program,
            policy="reversal",
            rows=10,
            limits=LIMITS,
            records=asked.records,
            schema_hash=at.schema().hash,
            strategy=strategy,
        )
        with pytest.raises((Unsupported, Conflict, InvalidInput)):
            at.run(asked.job)
    assert ground.dump() == before
    assert asked.state == "nothing"


def test_a_select_writes_nothing(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    before = ground.dump()
    use = Use(table="t", verb="select")
    statement = Statement(sql="DELETE FROM t RETURNING a", verb="select", table="", uses=(use,), returns_rows=True)
    program = Program(dialect=Dialect.SQLITE, statements=(statement,))
    with session(ground) as at, pytest.raises(Unsupported):
        at.survey(program, "reversal", LIMITS)
    asked = Asked(ground, "SELECT a FROM t")
    job = asked.plan()
    with session(ground) as at, pytest.raises((Unsupported, Conflict)):
        at.run(Job(**{**{name: getattr(job, name) for name in job.__slots__}, "program": program}))
    assert ground.dump() == before


def test_what_an_insert_got_is_told_to_the_statements_behind_it(ground: SqliteGround) -> None:
    ground.execute(
        "CREATE TABLE pages (id INTEGER PRIMARY KEY, title TEXT)",
        "CREATE TABLE revisions (page INTEGER REFERENCES pages, body TEXT)",
        "CREATE TABLE log (id INTEGER PRIMARY KEY, what TEXT)",
        "CREATE TRIGGER logs AFTER INSERT ON pages BEGIN INSERT INTO log (id, what) VALUES (new.id + 900, 'made'); END",
        "INSERT INTO pages VALUES (7, 'first')",
    )
    made = "INSERT INTO pages (title) VALUES ('new'); INSERT INTO revisions VALUES (last_insert_rowid(), 'a')"
    there_and_back(ground, f"BEGIN; {made}; COMMIT")
    assert ground.rows("SELECT page, body FROM revisions") == [(8, "a")]


def test_the_last_key_of_an_earlier_action_isnt_told(ground: SqliteGround) -> None:
    ground.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, n UNIQUE)")
    with session(ground) as at:
        at.run(Asked(ground, "INSERT INTO pages VALUES (40, 1)").plan())
        text = "INSERT OR IGNORE INTO pages (n) VALUES (1); UPDATE pages SET n = last_insert_rowid()"
        at.run(Asked(ground, text).plan())
    assert ground.rows("SELECT * FROM pages") == [(40, 0)]
