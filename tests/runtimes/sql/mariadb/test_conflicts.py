"""Somebody else was there: nothing is touched, and what differs is said; nothing hangs."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import pymysql
import pytest

from policies.errors import Conflict, Unavailable
from runtimes.sql.contract import Job, Limits
from tests.runtimes.sql.mariadb.support import Base
from tests.support.interrupting import interrupting
from tests.support.waiting import until

FAMILY = """
CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE, s VARCHAR(20)) COLLATE utf8mb4_general_ci;
CREATE TABLE c (id INT PRIMARY KEY, p INT, s VARCHAR(20), FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE);
INSERT INTO p VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'); INSERT INTO c VALUES (1, 1, 'x'), (2, 2, 'y');
"""

# what is done, and what somebody else does then: undo has to refuse
CHANGES = {
    "changed": ("UPDATE p SET s = 'n' WHERE id = 1", "UPDATE p SET s = 'm' WHERE id = 1"),
    "another-column": ("UPDATE p SET s = 'n' WHERE id = 1", "UPDATE p SET u = 9 WHERE id = 1"),
    "only-the-case": ("UPDATE p SET s = 'n' WHERE id = 1", "UPDATE p SET s = 'N' WHERE id = 1"),
    "only-a-space": ("UPDATE p SET s = 'n' WHERE id = 1", "UPDATE p SET s = 'n ' WHERE id = 1"),
    "gone": ("UPDATE p SET s = 'n' WHERE id = 3", "DELETE FROM p WHERE id = 3"),
    "back-already": ("DELETE FROM p WHERE id = 3", "INSERT INTO p VALUES (3, 30, 'other')"),
    "unique-taken": ("DELETE FROM p WHERE id = 3", "INSERT INTO p VALUES (4, 3, 'other')"),
    "inserted-changed": ("INSERT INTO p VALUES (9, 9, 'n')", "UPDATE p SET s = 'z' WHERE id = 9"),
    "inserted-pointed-to": ("INSERT INTO p VALUES (9, 9, 'n')", "INSERT INTO c VALUES (9, 9, 'theirs')"),
    "cascaded-changed": ("DELETE FROM p WHERE id = 1", "INSERT INTO c VALUES (1, 2, 'theirs')"),
    "parent-gone": ("UPDATE c SET p = 2 WHERE id = 1", "DELETE FROM p WHERE id = 1"),
    "altered": ("UPDATE p SET s = 'n' WHERE id = 1", "ALTER TABLE p ADD COLUMN x INT"),
    "dropped": ("UPDATE c SET s = 'n' WHERE id = 1", "DROP TABLE c"),
}


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("which", sorted(CHANGES))
def test_undo_refuses_and_touches_nothing(base: Base, which: str) -> None:
    base.run(FAMILY)
    sql, theirs = CHANGES[which]
    job = base.job(sql)
    with base.session() as session:
        session.run(job)
        base.run(theirs)
        left = base.dump()
        with pytest.raises(Conflict) as refused:
            session.revert(job, "undo")
        assert base.dump() == left
        assert refused.value.difference or which == "unique-taken"
        again = base.run("SELECT @@sql_mode")
        assert again
        assert session.settle(job).state == "done"


def test_redo_refuses_when_the_rows_changed(base: Base) -> None:
    base.run(FAMILY)
    job = base.job("UPDATE p SET s = 'n' WHERE id < 3")
    with base.session() as session:
        session.run(job)
        session.revert(job, "undo")
        base.run("UPDATE p SET s = 'theirs' WHERE id = 2")
        left = base.dump()
        with pytest.raises(Conflict) as refused:
            session.revert(job, "redo")
        assert base.dump() == left
        assert any("theirs" in line and "p id=2" in line for line in refused.value.difference)


def test_a_definition_that_changed_since_the_plan(base: Base) -> None:
    base.run(FAMILY)
    job = base.job("UPDATE p SET s = 'n'")
    base.run("ALTER TABLE p MODIFY s VARCHAR(30)")
    before = base.dump()
    with base.session() as session, pytest.raises(Conflict, match="defined"):
        session.run(job)
    assert base.dump() == before
    assert base.held() == []


def test_more_rows_than_planned(base: Base) -> None:
    base.run(FAMILY)
    for sql in ("UPDATE p SET s = 'n'", "DELETE FROM p WHERE id < 3", "INSERT INTO c SELECT id + 50, id, 'n' FROM p"):
        before = base.dump()
        job = replace(base.job(sql), rows=2)
        with base.session() as session, pytest.raises(Conflict, match="more than 2"):
            session.run(job)
        assert base.dump() == before
    assert base.held() == []


def test_an_image_that_is_too_large(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, b BLOB)")
    base.run("INSERT INTO t SELECT seq, RANDOM_BYTES(1000) FROM seq_1_to_200")
    before = base.dump()
    job = base.job("DELETE FROM t", limits=Limits(lock_seconds=1, seconds=30, image_bytes=50_000))
    with base.session() as session, pytest.raises(Conflict, match="larger"):
        session.run(job)
    assert base.dump() == before
    assert base.held() == []


def test_a_row_too_large_to_hand_over(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB); INSERT INTO t VALUES (1, REPEAT('x', 9000000))")
    job = base.job("DELETE FROM t")
    with base.session() as session, pytest.raises(Conflict, match="max_allowed_packet"):
        session.run(job)
    assert base.run("SELECT LENGTH(b) FROM t") == [(9_000_000,)]


def test_somebody_elses_lock_ends(base: Base) -> None:
    base.run(FAMILY)
    job = base.job("UPDATE p SET s = 'n' WHERE id = 1")
    with base.server.connect(base.name, autocommit=False) as theirs, theirs.cursor() as cursor:
        cursor.execute("UPDATE p SET s = 'theirs' WHERE id = 1")
        began = time.monotonic()
        with base.session() as session:
            with pytest.raises(Conflict, match="somebody else"):
                session.run(job)
            assert time.monotonic() - began < 30
        theirs.rollback()
    assert base.held() == []
    with base.session() as session:
        session.run(job)


def test_what_another_action_holds_is_named(base: Base) -> None:
    base.run(FAMILY)
    first = base.job("DELETE FROM p WHERE id = 1", "versioning")
    other = base.job("UPDATE p SET s = 'o' WHERE id = 3", "versioning")
    before = base.dump()
    with base.session() as session:
        session.run(first)
    for sql in ("UPDATE p SET s = 'n' WHERE id = 1", "UPDATE c SET s = 'n' WHERE id = 1"):
        second = base.job(sql)
        with base.session() as session, pytest.raises(Conflict) as refused:
            session.run(second)
        assert first.id in refused.value.message
        assert first.id in refused.value.next_step
        assert refused.value.difference == (f"held by the action {first.id}",)
    with base.session() as session:
        session.run(other)
    with base.session() as session:
        assert session.settle(first).state == session.settle(other).state == "held"
        session.revert(first, "undo")
        session.commit(other)
    assert base.dump()["c"] == before["c"]
    assert base.held() == []


def test_commit_of_what_somebody_ended_is_a_conflict(base: Base) -> None:
    base.run(FAMILY)
    job = base.job("DELETE FROM p WHERE id = 1", "versioning")
    before = base.dump()
    with base.session() as session:
        session.run(job)
    ((form, one, two, data),) = base.server.run("XA RECOVER")
    rollback = f"XA ROLLBACK X'{data[:one].hex()}',X'{data[one : one + two].hex()}',{form}"

    def rolled_back() -> bool:
        with suppress(pymysql.err.OperationalError):  # unknown, until the server knows that its connection has ended
            base.server.run(rollback)
            return True
        return False

    until(rolled_back)
    with base.session() as session:
        with pytest.raises(Conflict, match="held"):
            session.commit(job)
        assert session.settle(job).state == "nothing"
    assert base.dump() == before


@pytest.mark.promise(73)
def test_data_errors_tell_no_data(base: Base) -> None:
    base.run(FAMILY)
    base.run("INSERT INTO p VALUES (77, 4242, 'needle'); ALTER TABLE p ADD CONSTRAINT k CHECK (u < 5000)")
    before = base.dump()
    for sql in (
        "INSERT INTO p VALUES (5, 4242, 'needle')",
        "UPDATE p SET u = 4242 WHERE id = 1",
        "INSERT INTO c VALUES (5, 4242, 'needle')",
        "UPDATE p SET u = u * 100000000 WHERE s = 'needle'",
        "UPDATE p SET u = 6000 WHERE s = 'needle'",
        "UPDATE p SET u = s WHERE s = 'needle'",
    ):
        job = base.job(sql)
        with base.session() as session, pytest.raises(Conflict) as refused:
            session.run(job)
        assert "needle" not in str(refused.value)
        assert "4242" not in str(refused.value)
        assert base.dump() == before
    assert base.held() == []


def slowly(job: Job) -> Job:
    """The same write, choosing its rows for minutes."""
    sql = "UPDATE t SET a = a + 1 WHERE (SELECT COUNT(*) FROM t x JOIN t y ON x.a = y.a WHERE x.id + y.id > t.id) > 0"
    return replace(job, program=replace(job.program, statements=(replace(job.program.statements[0], sql=sql),)))


def test_an_interrupt_rolls_back(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t SELECT seq, 1 FROM seq_1_to_3000")
    before = base.dump()
    job = slowly(base.job("UPDATE t SET a = 2", rows=5000))
    with base.session() as session:
        began = time.monotonic()
        with interrupting(session, after=0.5), pytest.raises(Conflict, match="stopped"):
            session.run(job)
        assert time.monotonic() - began < 15
    assert base.dump() == before
    assert base.held() == []


def test_it_takes_too_long(base: Base) -> None:
    base.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t SELECT seq, 1 FROM seq_1_to_3000")
    before = base.dump()
    slow = replace(base, limits=Limits(lock_seconds=1, seconds=1))
    job = slowly(base.job("UPDATE t SET a = 2", rows=5000))
    with slow.session() as session, pytest.raises(Conflict, match="too long"):
        session.run(job)
    assert base.dump() == before


def test_a_frozen_server_does_not_hang_for_ever(base: Base) -> None:
    base.run(FAMILY)
    quick = replace(base, limits=Limits(lock_seconds=0.5, seconds=0.5))
    with quick.session() as session:
        session._wire._raw._read_timeout = 1.0  # type: ignore[attr-defined]
        base.server.freeze()
        try:
            with pytest.raises(Unavailable):
                session.schema()
        finally:
            base.server.thaw()
