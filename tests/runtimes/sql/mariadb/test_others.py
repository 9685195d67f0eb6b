"""What somebody else did between an action and its undo or redo: none of it is lost, an undo isn't refused for what has
nothing to do with its rows, and no action can neither be undone nor done again."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import Conflict, GoexError
from tests.runtimes.sql.mariadb.support import Base

CHANGES = [
    ("UPDATE t SET v = 2 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 1"),
    ("INSERT INTO t VALUES (5, 5)", "DELETE FROM t WHERE id = 5"),
    ("DELETE FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 1)"),
]


@pytest.mark.promise(60)
@pytest.mark.parametrize(("text", "back"), CHANGES)
def test_others_who_do_what_an_undo_or_a_redo_would_leave_both_possible(base: Base, text: str, back: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)")
    before = base.dump()
    job = base.job(text)
    with base.session() as session:
        session.run(job)
        after = base.dump()
        base.run(back)
        assert session.settle(job).state == "done"
        assert session.revert(job, "undo").notes and session.settle(job).state == "undone"
        session.revert(job, "redo")
        assert base.dump() == after and session.settle(job).state == "done"
        session.revert(job, "undo")
        base.run(text)
        assert session.settle(job).state == "undone"
        assert session.revert(job, "redo").notes and session.settle(job).state == "done"
        session.revert(job, "undo")
        assert base.dump() == before and session.settle(job).state == "undone"


@pytest.mark.promise(63)
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_a_revert_whose_end_isnt_known_isnt_guessed_from_rows_that_others_changed(base: Base, verb: str) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 1)")
    job = base.job("UPDATE t SET v = 2")
    records = job.records
    with base.session() as session:
        session.run(job)
        if verb == "redo":
            session.revert(job, "undo")
        put, notes = records.put, []

        def stopped(name: str, data: bytes) -> None:
            """The process ends right after the COMMIT: the note of it is never written."""
            notes.append(name)
            if len(notes) == 2:
                raise GoexError("killed")
            put(name, data)

        records.put = stopped  # type: ignore[method-assign]
        with pytest.raises(GoexError):
            session.revert(job, verb)  # type: ignore[arg-type]
        records.put = put  # type: ignore[method-assign]
    with base.session() as session:
        assert session.settle(job).state == ("undone" if verb == "undo" else "done")
        base.run("UPDATE t SET v = 7 WHERE id = 2")
        found = session.settle(job)
        assert (found.state, bool(found.evidence)) == ("unknown", True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "theirs",
    [
        "CREATE INDEX i ON t (v)",
        "CREATE UNIQUE INDEX i ON t (w)",
        "CREATE UNIQUE INDEX i ON t (id, v)",
        "DROP INDEX old ON t",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES up (id)",
        "ALTER TABLE up ADD COLUMN tid INT, ADD FOREIGN KEY (tid) REFERENCES t (id)",
        "CREATE FULLTEXT INDEX i ON t (x)",
    ],
)
def test_an_index_or_a_foreign_key_of_others_is_in_no_undos_way(base: Base, theirs: str) -> None:
    base.run(
        "CREATE TABLE up (id INT PRIMARY KEY); INSERT INTO up VALUES (1), (2);"
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT, x TEXT, KEY old (w));"
        "INSERT INTO t VALUES (1, 1, 10, 'a'), (2, 2, 20, 'b')"
    )
    job, rows = base.job("DELETE FROM t WHERE id = 1"), base.run("SELECT * FROM t ORDER BY id")
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        session.revert(job, "undo")
        assert base.run("SELECT * FROM t ORDER BY id") == rows
        session.revert(job, "redo")
        session.revert(job, "undo")
        assert base.run("SELECT * FROM t ORDER BY id") == rows and session.settle(job).state == "undone"


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ("CREATE UNIQUE INDEX i ON t (w); INSERT INTO t VALUES (3, 2, 10)", "unique value"),
        ("INSERT INTO t VALUES (3, 2, 10); ALTER TABLE t ADD UNIQUE (w)", "unique value"),
        ("DELETE FROM up WHERE id = 1; ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES up (id)", "would point to rows"),
        ("ALTER TABLE t DROP PRIMARY KEY", "aren't as they were left"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)", "aren't as they were left"),
        ("ALTER TABLE t MODIFY w BIGINT", "aren't as they were left"),
        ("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.w = 0", "aren't as they were left"),
    ],
)
def test_what_others_defined_that_rows_depend_on_is_(base: Base, theirs: str, said: str) -> None:
    base.run(
        "CREATE TABLE up (id INT PRIMARY KEY); INSERT INTO up VALUES (1), (2);"
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT); INSERT INTO t VALUES (1, 1, 10), (2, 2, 20)"
    )
    job = base.job("DELETE FROM t WHERE id = 1")
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = base.dump()
        with pytest.raises(Conflict, match=said):
            session.revert(job, "undo")
        assert base.dump() == left and session.settle(job).state == "done"


def test_of_equal_rows_without_a_key_others_may_take_one(base: Base) -> None:
    base.run("CREATE TABLE t (n INT, x TEXT); INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    job = base.job("DELETE FROM t WHERE n = 1 LIMIT 1")
    with base.session() as session:
        session.run(job)
        base.run("DELETE FROM t WHERE n = 1")
        session.revert(job, "undo")
        assert base.run("SELECT * FROM t ORDER BY n") == [(1, "a"), (2, "b")]
        assert session.settle(job).state == "undone"


@pytest.mark.promise(60)
@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("DELETE FROM t WHERE n = 1 LIMIT 1", "INSERT INTO t VALUES (1, 'a')"),
        ("INSERT INTO t VALUES (1, 'a')", "DELETE FROM t WHERE n = 1 LIMIT 1"),
    ],
)
def test_of_equal_rows_without_a_key_none_is_doubled_or_taken_twice(base: Base, text: str, theirs: str) -> None:
    base.run("CREATE TABLE t (n INT, x TEXT); INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    job = base.job(text)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = base.dump()
        with pytest.raises(Conflict):
            session.revert(job, "undo")
        assert base.dump() == left
