"""Definitions that lose rows or values: exactly back, nobody's row lost, and whole again after a cut at any moment."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Literal

import pytest

from policies.errors import Conflict, GoexError, Unsupported
from runtimes.sql.contract import Job
from runtimes.sql.mariadb import definitions_kept, errors
from runtimes.sql.mariadb.wire import ServerError, Wire
from tests.runtimes.sql.mariadb.support import Base, Killed, Notes, Unnoted

TABLES = (
    "CREATE TABLE up (id INT PRIMARY KEY, name VARCHAR(9)); INSERT INTO up VALUES (1, 'a'), (2, 'b');"
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(9) NOT NULL COMMENT 'why?', n INT DEFAULT 5,"
    " twice INT AS (n * 2) STORED, up_id INT, at TIMESTAMP NOT NULL DEFAULT NOW() ON UPDATE NOW(), body TEXT, f FLOAT,"
    " UNIQUE KEY once (code), KEY by_n (n), FULLTEXT KEY words (body), CONSTRAINT few CHECK (n < 100),"
    " CONSTRAINT t_up FOREIGN KEY (up_id) REFERENCES up (id)) AUTO_INCREMENT = 40;"
    "INSERT INTO t (id, code, n, up_id, at, body, f) VALUES (3, 'x', 1, 1, '2020-02-02 02:02:02', 'one', 0.1),"
    " (4, 'Y ', NULL, NULL, '2021-01-01', NULL, NULL), (9, 'ü', -7, 2, '2022-02-02', 'two', 1e20);"
    "CREATE TABLE plain (a INT, b VARCHAR(9)); INSERT INTO plain VALUES (1, 'x'), (1, 'y'), (1, 'y'), (NULL, NULL);"
    "CREATE TABLE tree (id INT PRIMARY KEY, above INT, FOREIGN KEY (above) REFERENCES tree (id));"
    "INSERT INTO tree VALUES (1, NULL); INSERT INTO tree VALUES (2, 1), (3, 2)"
)
EXACT = (
    "DROP TABLE t",
    "DROP TABLE IF EXISTS plain",
    "DROP TABLE tree",
    "CREATE TABLE made AS SELECT * FROM t WHERE id > 3",
    "CREATE TABLE made (id BIGINT PRIMARY KEY, more INT DEFAULT 7) AS SELECT id, n FROM t ORDER BY n LIMIT 2",
    "CREATE TABLE made SELECT UUID() AS u, NOW(6) AS at, COUNT(*) AS many FROM t GROUP BY n",
    "CREATE TABLE made (code VARCHAR(9)) AS SELECT u.*, t.code, t.body FROM up u LEFT JOIN t ON t.up_id = u.id",
    "CREATE TABLE made LIKE t; INSERT INTO made (id, code, up_id) SELECT id, code, up_id FROM t",
    "CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(9)); INSERT INTO made (s) VALUES ('a'), ('b');"
    " INSERT IGNORE INTO made VALUES (1, 'c'), (8, 'd')",
    "ALTER TABLE up ADD COLUMN more INT NOT NULL; UPDATE up SET more = id * 2 WHERE name <> 'a'",
    "ALTER TABLE tree ADD COLUMN at DATETIME, ADD COLUMN b INT AS (id) STORED; UPDATE tree SET tree.at = NOW();"
    " UPDATE tree SET above = 1 WHERE id = 3",
    "ALTER TABLE up ADD COLUMN more INT, DROP COLUMN name; UPDATE up SET more = 7",
    "ALTER TABLE plain ADD COLUMN c INT; UPDATE plain SET plain.c = 1, a = 3",
    "ALTER TABLE t DROP COLUMN code",  # its unique index has to wait for its values
    "ALTER TABLE t DROP COLUMN f, DROP COLUMN at",
    "ALTER TABLE t DROP COLUMN body",
    "ALTER TABLE t DROP FOREIGN KEY t_up, DROP INDEX t_up, DROP COLUMN up_id",
    "ALTER TABLE t AUTO_INCREMENT = 5000",
    "ALTER TABLE t AUTO_INCREMENT = 4",  # which the server makes the one behind the last row
    "ALTER TABLE plain DROP COLUMN b",  # nothing tells its rows apart
    "ALTER TABLE plain ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST",
    "ALTER TABLE t MODIFY COLUMN code VARCHAR(3) COLLATE latin1_general_ci NOT NULL",
    "ALTER TABLE t MODIFY COLUMN f DOUBLE NOT NULL DEFAULT 0, DROP COLUMN body",
)
ORPHAN = "SET foreign_key_checks = 0; UPDATE t SET up_id = 77 WHERE id = 3; SET foreign_key_checks = 1"
FILLED = "ALTER TABLE plain ADD COLUMN more INT, DROP COLUMN a; UPDATE plain SET more = 1, b = 'x'"
LOSING = ("ALTER TABLE t DROP COLUMN code", "DROP TABLE t", "CREATE TABLE made AS SELECT * FROM t")
LATER = "ALTER TABLE t MODIFY COLUMN f DOUBLE NOT NULL DEFAULT 0, DROP COLUMN body"
EVERY = 18  # of so many statements one


def _state(base: Base) -> tuple[Any, ...]:
    """All definitions, with their counters, and all rows."""
    return base.definitions(), base.dump()


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize("sql", EXACT)
def test_it_is_taken_back_with_every_row_and_done_again(base: Base, sql: str) -> None:
    base.run(TABLES)
    if sql == LATER:
        base.run("UPDATE t SET f = 3.5, at = at WHERE f IS NULL")
    before, job = _state(base), base.job(sql)
    with base.session() as session:
        ran = session.run(job)
        after = _state(base)
        assert after != before and ran.reached and session.settle(job).state == "done"
        assert any(one.rows for one in ran.reached) == ("AUTO_INCREMENT = " not in sql)
    with base.session() as session:
        assert session.compare(job, "undo").reached
        session.revert(job, "undo")
        assert _state(base) == before and session.settle(job).state == "undone"
        assert session.revert(job, "undo").notes == ("It is so already: nothing was changed.",)
    with base.session() as session:
        session.revert(job, "redo")
        assert _state(base) == after and session.settle(job).state == "done"
        session.revert(job, "undo")
        assert _state(base) == before


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("sql", "theirs", "back", "said"),
    [
        ("ALTER TABLE t DROP COLUMN f", "INSERT INTO t (code) VALUES ('z')", "DELETE FROM t WHERE code = 'z'", "left"),
        ("ALTER TABLE t DROP COLUMN f", "UPDATE t SET n = 2, at = at WHERE id = 3", "UPDATE t SET n = 1, at = at"
         " WHERE id = 3", "left"),
        ("ALTER TABLE t DROP COLUMN f", "ALTER TABLE t ADD COLUMN g INT", "ALTER TABLE t DROP COLUMN g", "defined"),
        ("ALTER TABLE plain DROP COLUMN b", "INSERT INTO plain VALUES (8)", "DELETE FROM plain WHERE a = 8", "left"),
        ("ALTER TABLE t AUTO_INCREMENT = 5000", "INSERT INTO t (code) VALUES ('z')",
         "DELETE FROM t WHERE code = 'z'; ALTER TABLE t AUTO_INCREMENT = 5000", "defined"),
        ("CREATE TABLE made AS SELECT * FROM up", "INSERT INTO made VALUES (8, 'x')", "DELETE FROM made WHERE id = 8",
         "left"),
        ("CREATE TABLE made AS SELECT * FROM up", "CREATE VIEW v AS SELECT id FROM made", "DROP VIEW v", "break"),
        ("DROP TABLE plain", "CREATE TABLE plain (id INT)", "DROP TABLE plain", "defined"),
        ("DROP TABLE plain", "CREATE TABLE plain (a INT, b VARCHAR(9))", "DROP TABLE plain", "left"),
        ("DROP TABLE t", "DELETE FROM up WHERE id = 2", "INSERT INTO up VALUES (2, 'b')", "aren't there"),
        ("ALTER TABLE t DROP FOREIGN KEY t_up, DROP INDEX t_up, DROP COLUMN up_id", "DELETE FROM up WHERE id = 2",
         "INSERT INTO up VALUES (2, 'b')", "Nothing was changed"),
    ],
)  # fmt: skip
def test_what_somebody_wrote_since_stays(base: Base, sql: str, theirs: str, back: str, said: str) -> None:
    base.run(TABLES)
    before, job = base.dump(), base.job(sql)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = _state(base)
        with pytest.raises(Conflict, match=said) as refused:
            session.revert(job, "undo")
        assert refused.value.next_step and _state(base) == left
        assert session.settle(job).state == "done"
        base.run(back)
        session.revert(job, "undo")
    assert base.dump() == before


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("sql", "theirs"),
    [
        ("ALTER TABLE t DROP COLUMN f", "UPDATE t SET f = 9 WHERE id = 3"),
        ("DROP TABLE plain", "INSERT INTO plain VALUES (8, 'x')"),
        ("CREATE TABLE made AS SELECT * FROM up", "CREATE TABLE made (id INT)"),
    ],
)
def test_doing_it_again_loses_nothing_that_was_written_since_its_undo(base: Base, sql: str, theirs: str) -> None:
    base.run(TABLES)
    job = base.job(sql)
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
        base.run(theirs)
        left = _state(base)
        with pytest.raises(Conflict):
            session.revert(job, "redo")
        assert _state(base) == left


def _cut(wire: Wire, at: int, *, after: bool) -> None:
    """The process dies at that statement of its connection, before it is sent or right after it ran."""
    real, count = wire.run, 0

    def run(sql: str, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count != at:
            return real(sql, **more)
        with contextlib.suppress(GoexError):
            if after:
                real(sql, **more)
        wire.drop()
        raise Killed

    wire.run = run  # type: ignore[method-assign]


def _reverted(base: Base, job: Job, verb: Literal["undo", "redo"], at: int, *, after: bool) -> bool:
    """Whether it came to its end, and wasn't cut at that statement."""
    with base.session() as session:
        _cut(session._wire, at, after=after)  # type: ignore[attr-defined]
        try:
            session.revert(job, verb)
        except Killed:
            return False
    return True


@pytest.mark.promise(78)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t DROP COLUMN code",
        "ALTER TABLE plain DROP COLUMN b",
        "DROP TABLE t",
        "CREATE TABLE made AS SELECT * FROM t",
        FILLED,
    ],
)
def test_an_undo_that_is_cut_at_any_statement_is_finished_by_the_next(
    base: Base, sql: str, after: bool, thorough: bool
) -> None:
    base.run(TABLES)
    before, job = _state(base), base.job(sql)
    with base.session() as session:
        session.run(job)
    done = _state(base)
    for verb, wanted in (("undo", before), ("redo", done)):
        every = 1 if thorough else EVERY
        at, ended, cuts = 1 if thorough else 1 + 2 * after + (verb == "redo"), False, 0
        while not ended:
            ended = _reverted(base, job, verb, at, after=after)  # type: ignore[arg-type]
            at += every
            cuts += not ended
            with base.session() as session:
                state = session.settle(job).state
                assert state in ("done", "undone", "unknown")
                if not ended or _state(base) == wanted:
                    session.revert(job, verb)  # type: ignore[arg-type]
                assert _state(base) == wanted and session.settle(job).state == ("undone" if verb == "undo" else "done")
                assert not base.run("SHOW TABLES LIKE 'goex%'")
                if not ended:
                    session.revert(job, "redo" if verb == "undo" else "undo")
            base.run("ALTER TABLE plain FORCE")  # the server keeps columns that were dropped at once until then
        assert cuts > (4 if thorough else 0), (verb, at)


@pytest.mark.promise(60)
def test_what_somebody_wrote_while_an_undo_was_cut_off_isnt_overwritten(base: Base) -> None:
    base.run(TABLES)
    job, at, theirs = base.job("ALTER TABLE t DROP COLUMN f"), 1, 0
    with base.session() as session:
        session.run(job)
    while not _reverted(base, job, "undo", at, after=True):
        at += 1
        columns = [name for (name, *_) in base.run("SHOW COLUMNS FROM t")]
        if "f" in columns and base.run("SELECT f FROM t WHERE id = 9") == [(None,)]:
            base.run("UPDATE t SET f = 7, at = at WHERE id = 9")
            left = _state(base)
            with base.session() as session, pytest.raises(Conflict, match="aren't as they were left"):
                session.revert(job, "undo")
            assert _state(base) == left
            with base.session() as session:
                assert session.settle(job).state == "unknown"
            base.run("UPDATE t SET f = NULL, at = at WHERE id = 9")
            theirs += 1
    assert theirs


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t DROP COLUMN code", "DROP TABLE t", "CREATE TABLE made AS SELECT * FROM t"]
)
def test_one_of_which_nobody_lived_to_note_the_end_is_taken_back(base: Base, sql: str) -> None:
    base.run(TABLES)
    before, dying, kept = _state(base), Unnoted(), Notes()
    job = replace(base.job(sql), records=dying)
    with base.session() as session, pytest.raises(Killed):
        session.run(job)
    kept.kept = dying.kept
    job = replace(job, records=kept)
    with base.session() as session:
        assert session.settle(job).state == "done"
        session.revert(job, "undo")
        assert session.settle(job).state == "undone"
    assert _state(base) == before


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t DROP COLUMN code", "DROP TABLE t", "CREATE TABLE made AS SELECT * FROM t"]
)
def test_one_that_is_cut_before_it_ran_leaves_nothing(base: Base, sql: str, thorough: bool) -> None:
    base.run(TABLES)
    before, at, ran = _state(base), 1, False
    while not ran:
        job = base.job(sql)
        with base.session() as session:
            _cut(session._wire, at, after=False)  # type: ignore[attr-defined]
            try:
                session.run(job)
                ran = True
            except (Killed, GoexError):
                at += 1 if thorough else EVERY
        with base.session() as session:
            state = session.settle(job).state
            assert (state == "nothing") == (_state(base) == before), (at, state)
            assert not base.run("SHOW TABLES LIKE 'goex%'")
            if state != "nothing":
                session.revert(job, "undo")
            assert _state(base) == before
    assert at > (5 if thorough else 1)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("more", "sql", "said"),
    [
        ("CREATE TRIGGER g BEFORE INSERT ON plain FOR EACH ROW SET NEW.a = 1", "DROP TABLE plain", "has triggers"),
        ("CREATE TABLE c (u INT, FOREIGN KEY (u) REFERENCES up (id))", "DROP TABLE up", "points to up"),
        ("CREATE TABLE m (id INT) ENGINE=MyISAM", "DROP TABLE m", "taken back exactly"),
        ("CREATE TABLE m (id INT) WITH SYSTEM VERSIONING", "DROP TABLE m", "taken back exactly"),
        ("CREATE TABLE m (s VARCHAR(9) DEFAULT '😀') CHARSET utf8mb4", "DROP TABLE m", "defined exactly as it was"),
        ("", "CREATE TABLE made ENGINE=MyISAM AS SELECT * FROM up", "taken back exactly"),
        ("CREATE TABLE m (id INT PRIMARY KEY, u UUID DEFAULT UUID())", "ALTER TABLE m DROP COLUMN u", "back exactly"),
        ("CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.f = OLD.f", "ALTER TABLE t DROP COLUMN f",
         "without its triggers"),
        ("CREATE TRIGGER g BEFORE DELETE ON plain FOR EACH ROW SET @a = 1", "ALTER TABLE plain DROP COLUMN b",
         "without its triggers"),
        ("", "ALTER TABLE t ADD COLUMN m INT; UPDATE t SET m = 1", "at would be set to the moment"),
        ("", "ALTER TABLE up ADD COLUMN m INT; UPDATE up u SET u.m = 1", "locked by that name alone"),
        ("", "ALTER TABLE up ADD COLUMN m INT; UPDATE up SET m = (SELECT MAX(id) FROM up)", "locked by that name"),
        ("", "ALTER TABLE t ADD COLUMN m INT; UPDATE t SET m = RAND()", "something else each time"),
        ("", "ALTER TABLE t ADD COLUMN m INT; UPDATE t SET m = 1 LIMIT 1", "something else each time"),
        ("", "ALTER TABLE t ADD COLUMN m INT; UPDATE up SET name = 'x'", "one of several"),
        ("", "ALTER TABLE t ADD COLUMN m INT; UPDATE t SET m = (SELECT MAX(id) FROM up)", "one of several"),
        ("CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW SET @a = 1", "ALTER TABLE t ADD m INT; UPDATE t SET m = 1",
         "fire triggers"),
        ("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = NEW.n", "ALTER TABLE t RENAME COLUMN n TO m",
         "names a column that is renamed"),
    ],
)  # fmt: skip
def test_what_could_not_be_put_back_is_refused_when_it_is_planned(base: Base, more: str, sql: str, said: str) -> None:
    base.run(TABLES)
    base.run(more or "SELECT 1")
    before = _state(base)
    with pytest.raises(Unsupported, match=said) as refused:
        base.job(sql)
    assert refused.value.next_step and _state(base) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("more", "sql", "said"),
    [
        ("CREATE TABLE log (id INT); CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
         "ALTER TABLE t DROP COLUMN f", "triggers of t would write"),
        ("CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.n = 8", "ALTER TABLE t DROP COLUMN f",
         "triggers of t would write"),
        (ORPHAN, "DROP TABLE t", "point to rows that aren't there"),
        (ORPHAN, "ALTER TABLE t DROP FOREIGN KEY t_up", "point to rows that aren't there"),
        ("ALTER TABLE plain ADD CHECK (a < 9)", "ALTER TABLE plain ADD COLUMN m INT; UPDATE plain SET m = 1, a = 10",
         "CHECK refused a row"),
        ("", "CREATE TABLE made AS SELECT u.*, t.code FROM up u LEFT JOIN t ON t.up_id = u.id", "have no default"),
        ("", "ALTER TABLE t MODIFY COLUMN n INT NOT NULL", "A value doesn't fit|column's type|would have none"),
        ("", "ALTER TABLE t MODIFY COLUMN code VARCHAR(1) NOT NULL", "doesn't fit"),
    ],
)  # fmt: skip
def test_what_could_not_be_put_back_is_refused_under_the_lock(base: Base, more: str, sql: str, said: str) -> None:
    base.run(TABLES)
    base.run(more or "SELECT 1")
    before, job = _state(base), base.job(sql)
    with base.session() as session:
        with pytest.raises(GoexError, match=said) as refused:
            session.run(job)
        assert refused.value.next_step and _state(base) == before
        assert session.settle(job).state == "nothing"
    base.run("UPDATE t SET n = n")  # nothing is locked any more


def test_an_update_that_fails_behind_its_alter_takes_both_back(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.run(TABLES)
    before, job = _state(base), base.job(FILLED)
    with base.session() as session:
        wire = session._wire  # type: ignore[attr-defined]
        real = wire.run

        def run(sql: str, **more: Any) -> Any:
            if sql.startswith("UPDATE `plain` SET"):
                raise ServerError(errors.DUPLICATE, errors.translated(errors.DUPLICATE))
            return real(sql, **more)

        monkeypatch.setattr(wire, "run", run)
        with pytest.raises(Conflict, match="Nothing was changed"):
            session.run(job)
    assert _state(base) == before
    with base.session() as session:
        assert session.settle(job).state == "nothing"


def test_triggers_that_have_nothing_to_do_with_a_lost_column_are_in_no_ones_way(base: Base) -> None:
    base.run(TABLES + "; CREATE TABLE log (id INT)")
    base.run(
        "CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log SELECT NEW.id FROM up WHERE NEW.n <> OLD.n"
    )
    before, job = _state(base), base.job("ALTER TABLE t DROP COLUMN f")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
        assert _state(base) == before
        session.revert(job, "redo")
        base.run("DROP TRIGGER g; CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (1)")
        left = _state(base)
        with pytest.raises(Conflict, match="trigger of t writes when"):
            session.revert(job, "undo")
        assert _state(base) == left and session.settle(job).state == "done"
        base.run("DROP TRIGGER g")
        session.revert(job, "undo")
    assert _state(base) == before


def test_a_truncate_beside_triggers_that_it_fires_not(base: Base) -> None:
    base.run(TABLES)
    base.run("CREATE TRIGGER g BEFORE UPDATE ON plain FOR EACH ROW SET NEW.b = UPPER(NEW.b)")
    before, job = base.dump(), base.job("TRUNCATE TABLE plain")
    with base.session() as session:
        session.run(job)
        assert base.run("SELECT * FROM plain") == []
        session.revert(job, "undo")
    assert base.dump() == before
    base.run("CREATE TRIGGER d AFTER DELETE ON plain FOR EACH ROW SET @a = 1")
    with pytest.raises(Unsupported, match="TRUNCATE commits at once"):
        base.job("TRUNCATE TABLE plain")


@pytest.mark.parametrize("sql", ["ALTER TABLE t DROP COLUMN f", "DROP TABLE t", "CREATE TABLE made AS SELECT * FROM t"])
def test_more_rows_than_were_planned_with_are_refused(base: Base, sql: str) -> None:
    base.run(TABLES)
    before, job = _state(base), base.job(sql, rows=2)
    with base.session() as session:
        with pytest.raises(Conflict, match="more than 2 rows"):
            session.run(job)
        assert session.settle(job).state == "nothing"
    assert _state(base) == before


@pytest.mark.parametrize("sql", ["ALTER TABLE t DROP COLUMN f", "DROP TABLE t"])
def test_more_rows_than_can_be_kept_are_refused_when_it_is_planned(
    base: Base, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.run(TABLES)
    monkeypatch.setattr(definitions_kept, "WHOLE", 2)
    with pytest.raises(Unsupported, match="more than 2 rows"):
        base.job(sql)


def test_how_many_rows_are_lost_or_made_is_planned_with(base: Base) -> None:
    base.run(TABLES)
    for sql, rows in (
        ("DROP TABLE t", 3),
        ("ALTER TABLE t DROP COLUMN f", 3),
        ("CREATE TABLE made AS SELECT a.id FROM t a JOIN up b ON a.up_id = b.id", 6),
        ("CREATE TABLE made AS SELECT * FROM t LIMIT 2", 2),
        ("CREATE TABLE made LIKE t; INSERT INTO made SELECT * FROM t; INSERT INTO made (id) VALUES (70)", 4),
        ("ALTER TABLE t DROP INDEX by_n", 0),
    ):
        found = base.survey(sql)
        assert (found.bound, sum(one.rows for one in found.reached)) == (rows, rows)
