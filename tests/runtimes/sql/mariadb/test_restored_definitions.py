"""Undo of a definition: counters, zeros, indexes of foreign keys, and triggers and keys that were made since."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from typing import Any

import pytest

from policies.errors import Conflict, GoexError, Unsupported
from policies.jsonvalue import canonical, parse
from tests.runtimes.sql.mariadb.support import Base, Notes

ZERO = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; "
COUNTED = "CREATE TABLE t (i INT PRIMARY KEY AUTO_INCREMENT, n INT) AUTO_INCREMENT = 500"
WORDS = (
    "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(40) DEFAULT 'x AUTO_INCREMENT=5', n INT COMMENT 'AUTO_INCREMENT=1',"
    " e ENUM('a AUTO_INCREMENT=1', 'b')); INSERT INTO t VALUES (1, 'q', 3, 1)"
)
LINKED = (
    "CREATE TABLE up (id INT PRIMARY KEY, k INT UNIQUE); INSERT INTO up VALUES (1, 10);"
    "CREATE TABLE t (id INT PRIMARY KEY, u INT, k INT, n INT, KEY own (n), CONSTRAINT f1 FOREIGN KEY (u) REFERENCES"
    " up (id), FOREIGN KEY (k) REFERENCES up (k)); INSERT INTO t VALUES (1, 1, 10, 5)"
)
NAMED = LINKED.replace(" FOREIGN KEY (k)", " CONSTRAINT f2 FOREIGN KEY (k)")
CHECKED = "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9), CONSTRAINT c CHECK (n < {}));"
ROWS = "INSERT INTO t VALUES (1, 10, 'a')"
EVENT = "CREATE TABLE log (x INT); CREATE TRIGGER g {} ON t FOR EACH ROW {}"


def _state(base: Base) -> tuple[Any, ...]:
    """All definitions, with their counters, all rows, and the triggers."""
    return base.definitions(), base.dump(), [str(row[0]) for row in base.run("SHOW TRIGGERS")]


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("made", "sql"),
    [
        (WORDS, "ALTER TABLE t DROP COLUMN c"),
        (WORDS, "ALTER TABLE t ALTER COLUMN c SET DEFAULT 'z'"),
        (WORDS, "ALTER TABLE t MODIFY COLUMN n BIGINT"),
        (WORDS, "ALTER TABLE t DROP COLUMN e"),
        (WORDS, "DROP TABLE t"),
        (ZERO + "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (0, 1), (5, 2)",
         "ALTER TABLE t MODIFY COLUMN id INT AUTO_INCREMENT"),
        (ZERO + "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT); INSERT INTO t VALUES (0), (5)",
         "ALTER TABLE t MODIFY COLUMN id INT"),
        (COUNTED, "ALTER TABLE t MODIFY COLUMN i INT"),
        (COUNTED + "; INSERT INTO t (n) VALUES (1), (2); DELETE FROM t WHERE n = 2",
         "ALTER TABLE t MODIFY COLUMN i BIGINT, DROP COLUMN n"),
        (LINKED, "ALTER TABLE t DROP FOREIGN KEY f1"),
        (LINKED, "ALTER TABLE t DROP FOREIGN KEY t_ibfk_1"),
        (LINKED, "ALTER TABLE t DROP FOREIGN KEY f1, DROP FOREIGN KEY t_ibfk_1, DROP COLUMN n"),
        (LINKED, "ALTER TABLE t DROP FOREIGN KEY f1, ADD COLUMN z INT"),
        (NAMED, "ALTER TABLE t ADD CONSTRAINT more FOREIGN KEY (n) REFERENCES t (id)"),
    ],
)  # fmt: skip
def test_it_is_taken_back_with_its_counter_and_indexes(base: Base, made: str, sql: str) -> None:
    base.run(made)
    if "more FOREIGN" in sql:
        base.run("UPDATE t SET n = 1")
    before, job = _state(base), base.job(sql)
    with base.session() as session:
        session.run(job)
        after = _state(base)
        for verb, wanted, state in (("undo", before, "undone"), ("redo", after, "done"), ("undo", before, "undone")):
            session.revert(job, verb)  # type: ignore[arg-type]
            assert _state(base) == wanted and session.settle(job).state == state


@pytest.mark.sampled(5)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("made", "sql", "said"),
    [
        (NAMED, "ALTER TABLE t ADD CONSTRAINT f9 FOREIGN KEY (u) REFERENCES up (k)", "replace an index"),
        ("CREATE TABLE t (a INT, i INT NOT NULL AUTO_INCREMENT, KEY (i))", "ALTER TABLE t DROP COLUMN i",
         "AUTO_INCREMENT has come to"),
        ("CREATE TABLE t (id INT PRIMARY KEY, m INT)", "ALTER TABLE t DROP COLUMN m, ADD COLUMN m INT",
         "defined as before"),
        ("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NULL)", "ALTER TABLE t MODIFY COLUMN at TIMESTAMP NOT NULL",
         "put the moment"),
        ("CREATE TABLE t (id INT PRIMARY KEY, at TIME)", "ALTER TABLE t MODIFY COLUMN at DATETIME", "put the moment"),
        ("CREATE TABLE t (id INT PRIMARY KEY, u UUID DEFAULT UUID())",
         "ALTER TABLE t ADD COLUMN x INT; UPDATE t SET u = DEFAULT, x = 1", "What DEFAULT stands for"),
        (CHECKED.format(3) + "SET check_constraint_checks = 0;" + ROWS, "ALTER TABLE t DROP CONSTRAINT c",
         "its own CHECK refuses"),
        (CHECKED.format("s") + "SET check_constraint_checks = 0;" + ROWS, "ALTER TABLE t DROP CONSTRAINT c",
         "can't compare"),
        ("CREATE TABLE goex_values (id INT PRIMARY KEY, n INT)", "ALTER TABLE goex_values DROP COLUMN n",
         "makes a table"),
        ("SET sql_mode = 'IGNORE_BAD_TABLE_OPTIONS'; CREATE TABLE t (id INT PRIMARY KEY) foo = 1", "DROP TABLE t",
         "defined exactly as it was"),
    ],
)  # fmt: skip
def test_what_undo_or_redo_could_not_do_is_refused_before_it_runs(base: Base, made: str, sql: str, said: str) -> None:
    base.run(made)
    before = _state(base)
    with pytest.raises(Unsupported, match=said) as refused:
        base.job(sql)
    assert refused.value.next_step and _state(base) == before


@pytest.mark.sampled(3)
@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("key", "theirs", "gone"),
    [
        ("PRIMARY KEY", EVENT.format("BEFORE UPDATE", "SET NEW.s = 'q'"), "DROP TRIGGER g"),
        ("PRIMARY KEY", EVENT.format("AFTER UPDATE", "INSERT INTO log VALUES (1)"), "DROP TRIGGER g"),
        ("", EVENT.format("BEFORE INSERT", "SET NEW.s = 'q'"), "DROP TRIGGER g"),
        ("", EVENT.format("AFTER DELETE", "INSERT INTO log VALUES (1)"), "DROP TRIGGER g"),
        ("", "CREATE TABLE ch (i INT, FOREIGN KEY (i) REFERENCES t (id) ON DELETE CASCADE); INSERT INTO ch VALUES (1)",
         "DROP TABLE ch"),
    ],
)  # fmt: skip
def test_triggers_and_keys_that_came_since_write_nothing(base: Base, key: str, theirs: str, gone: str) -> None:
    base.run(f"CREATE TABLE t (id INT {key}, n INT, s VARCHAR(9), KEY own (id)); INSERT INTO t VALUES (1, 10, 'a')")
    before, job = base.dump()["t"], base.job("ALTER TABLE t DROP COLUMN n")
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = _state(base)
        with pytest.raises(Conflict, match="these came since"):
            session.compare(job, "undo")
        with pytest.raises(Conflict, match="these came since") as refused:
            session.revert(job, "undo")
        assert refused.value.difference and _state(base) == left and session.settle(job).state == "done"
        base.run(gone)
        session.revert(job, "undo")
    assert base.dump()["t"] == before


@pytest.mark.promise(60)
@pytest.mark.parametrize("sql", ["DROP TABLE t", "ALTER TABLE t ADD COLUMN x INT; UPDATE t SET x = 1"])
def test_a_redo_beside_a_trigger_that_came_since_is_refused(base: Base, sql: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9));" + ROWS)
    job = base.job(sql)
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
        base.run(EVENT.format("AFTER UPDATE", "INSERT INTO log VALUES (NEW.id)"))
        left = _state(base)
        with pytest.raises(Conflict, match="since") as refused:
            session.revert(job, "redo")
        assert refused.value.next_step and refused.value.difference and _state(base) == left
        base.run("DROP TRIGGER g")
        session.revert(job, "redo")
        assert session.settle(job).state == "done"


@pytest.mark.promise(60)
def test_rows_whose_value_stays_are_in_no_triggers_way(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, f FLOAT); INSERT INTO t VALUES (1, 1, 0.1), (2, NULL, NULL)")
    base.run("CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW SET @count = @count + 1")
    before, job = _state(base), base.job("ALTER TABLE t DROP COLUMN f")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert _state(base) == before


def test_many_long_values_are_put_back_in_several_statements(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, body MEDIUMTEXT, n INT)")
    base.run("INSERT INTO t SELECT seq, REPEAT(seq MOD 10, 20000), seq FROM seq_1_to_450")  # 18 MB as SQL
    digest = "SELECT COUNT(*), SUM(CRC32(CONCAT(id, '.', body, '.', n))) FROM t"
    before, job = base.run(digest), base.job("ALTER TABLE t DROP COLUMN body")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
    assert base.run(digest) == before


@pytest.mark.promise(60)
def test_a_redo_that_left_other_rows_can_be_undone(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9));" + ROWS)
    before, job = _state(base), base.job("ALTER TABLE t DROP COLUMN n")
    records = job.records
    assert isinstance(records, Notes)
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
        for name, data in records.kept.items():
            if b'"committed"' in data:
                note = parse(data)
                note["definition"]["kept"]["rows"]["after"] = "0" * 64  # as if it had left others then
                records.kept[name] = canonical(note)
        with pytest.raises(Conflict, match="aren't exactly as they were") as refused:
            session.revert(job, "redo")
        assert "goex undo" in str(refused.value.next_step) and session.settle(job).state == "done"
        session.revert(job, "undo")
    assert _state(base) == before


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("rights", "sql", "said"),
    [
        ("SELECT, DROP", "DROP TABLE t", "CREATE in this database"),
        ("SELECT, ALTER", "ALTER TABLE t DROP COLUMN n", "UPDATE on t"),
        ("SELECT, CREATE", "CREATE TABLE u (id INT)", "DROP on u"),
        ("SELECT, INDEX", "DROP INDEX own ON t", "ALTER on t"),
    ],
)
def test_rights_that_undo_needs_are_asked_for_before_it_runs(base: Base, rights: str, sql: str, said: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9), KEY own (n));" + ROWS)
    base.run(f"REVOKE ALL PRIVILEGES ON `{base.name}`.* FROM {base.user}@`%`")
    base.run(f"GRANT {rights}, LOCK TABLES, CREATE TEMPORARY TABLES, TRIGGER ON `{base.name}`.* TO {base.user}@`%`")
    before = _state(base)
    with pytest.raises(GoexError, match=f"no right to {said}") as refused:
        base.job(sql)
    assert "GRANT" in str(refused.value.next_step) and _state(base) == before
