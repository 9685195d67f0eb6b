"""A process that is really killed around its COMMIT, and somebody who writes to the file then: what is said to be done
was done, and nobody else's row is taken away."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from policies.errors import Conflict
from runtimes.sql.contract import Policy
from tests.crash.points import DiskRecords
from tests.support.databases import Asked, SqliteGround

INSERT = "INSERT INTO t VALUES (5, 'mine')"
UPDATE = "UPDATE t SET b = 'sent' WHERE a = 1"
BACK = {INSERT: "DELETE FROM t WHERE a = 5", UPDATE: "UPDATE t SET b = 'open' WHERE a = 1"}
OTHER = "UPDATE t SET b = 'other' WHERE a = 2"

pytestmark = [pytest.mark.promise(60), pytest.mark.promise(63)]


@dataclass
class Killing(DiskRecords):
    """Ends its process at the note before a COMMIT, right after it is on disk, or at the one after it, right before."""

    where: Literal["before", "after", ""] = ""
    notes: int = 0

    def put(self, name: str, data: bytes) -> None:
        self.notes += name == "db.state"
        if name == "db.state" and self.where == "after" and self.notes == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        super().put(name, data)
        if name == "db.state" and self.where == "before" and self.notes == 1:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Killed:
    """A database, an action on it, and whether another program has it open all the while."""

    ground: SqliteGround
    asked: Asked
    records: Killing

    def step(self, where: Literal["before", "after"], step: Callable[[], object]) -> None:
        child = os.fork()
        if child == 0:
            try:
                self.records.where, self.records.notes = where, 0
                step()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "it wasn't killed"

    def rows(self) -> list[tuple[object, ...]]:
        return self.ground.rows("SELECT a, b FROM t ORDER BY a")


MODES = ("delete", "wal", "wal in use")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(tmp_path: Path, mode: str) -> Iterator[Callable[[str, Policy], Killed]]:
    folder = tmp_path / "db"
    folder.mkdir()
    numbers = itertools.count()
    ground = SqliteGround(folder)
    ground.empty()
    ground.execute(
        f"PRAGMA journal_mode = {mode.split()[0]}",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
        "INSERT INTO t VALUES (1, 'open'), (2, 'open')",
    )
    with contextlib.ExitStack() as stack:
        if mode == "wal in use":
            open_all_the_while = stack.enter_context(contextlib.closing(ground.connect()))
            open_all_the_while.execute("SELECT * FROM t").fetchall()

        def make(text: str, policy: Policy) -> Killed:
            records = Killing(tmp_path / f"records{next(numbers)}")
            records.folder.mkdir()
            asked = Asked(ground, text, policy, records=records)  # type: ignore[arg-type]
            asked.plan()
            return Killed(ground, asked, records)

        yield make


POLICIES = pytest.mark.parametrize("policy", ["reversal", "versioning"])
TEXTS = pytest.mark.parametrize("text", [INSERT, UPDATE])


@pytest.mark.sampled(6)
@POLICIES
@TEXTS
def test_a_kill_is_settled_where_nobody_wrote_since(
    made: Callable[[str, Policy], Killed], text: str, policy: Policy
) -> None:
    it = made(text, policy)
    before = it.rows()
    it.step("before", it.asked.run)
    assert it.asked.state == it.asked.state == "nothing" and it.rows() == before
    with pytest.raises(Conflict, match="never changed anything"):
        it.asked.revert("undo")
    it = made(text, policy)
    it.step("after", it.asked.run)
    assert it.asked.state == it.asked.state == ("held" if policy == "versioning" else "done")
    assert it.rows() != before
    it.asked.revert("undo")
    assert it.rows() == before and it.asked.state == "undone"


@pytest.mark.sampled(6)
@POLICIES
@TEXTS
def test_somebody_elses_same_change_is_never_taken_for_the_actions(
    made: Callable[[str, Policy], Killed], mode: str, text: str, policy: Policy
) -> None:
    it = made(text, policy)
    it.step("before", it.asked.run)
    it.ground.execute(text)
    left = it.rows()
    # With a log that nobody keeps open the file's own counter still tells that nothing was committed by GoEx.
    assert it.asked.state == ("nothing" if mode == "wal" else "unknown")
    with pytest.raises(Conflict):
        it.asked.revert("undo")
    assert it.rows() == left


@pytest.mark.sampled(6)
@POLICIES
@TEXTS
def test_what_was_committed_and_put_back_by_hand_isnt_said_to_have_been_rolled_back(
    made: Callable[[str, Policy], Killed], mode: str, text: str, policy: Policy
) -> None:
    it = made(text, policy)
    it.step("after", it.asked.run)
    it.ground.execute(BACK[text])
    done = "held" if policy == "versioning" else "done"
    assert it.asked.state == (done if mode == "wal in use" else "unknown")


@pytest.mark.sampled(3)
@POLICIES
def test_a_kill_and_another_change_are_unknown_or_as_it_was(
    made: Callable[[str, Policy], Killed], mode: str, policy: Policy
) -> None:
    it = made(UPDATE, policy)
    it.step("before", it.asked.run)
    it.ground.execute(OTHER)
    assert it.asked.state == ("nothing" if mode == "wal" else "unknown")


@pytest.mark.sampled(6)
@POLICIES
@TEXTS
def test_an_undo_and_a_redo_that_were_killed(made: Callable[[str, Policy], Killed], text: str, policy: Policy) -> None:
    it = made(text, policy)
    before = it.rows()
    it.asked.run()
    after, done = it.rows(), "held" if policy == "versioning" else "done"
    it.step("before", lambda: it.asked.revert("undo"))
    assert it.asked.state == done and it.rows() == after
    it.step("after", lambda: it.asked.revert("undo"))
    assert it.asked.state == "undone" and it.rows() == before
    it.step("before", lambda: it.asked.revert("redo"))
    assert it.asked.state == "undone" and it.rows() == before
    it.step("after", lambda: it.asked.revert("redo"))
    assert it.asked.state == done and it.rows() == after
    it.asked.revert("undo")
    assert it.rows() == before


@pytest.mark.sampled(3)
@TEXTS
def test_others_who_do_what_an_undo_or_a_redo_would_leave_both_possible(
    made: Callable[[str, Policy], Killed], text: str
) -> None:
    it = made(text, "reversal")
    before = it.rows()
    it.asked.run()
    after = it.rows()
    it.ground.execute(BACK[text])
    assert it.asked.state == "done"
    assert it.asked.revert("undo").notes == ("It is so already.",)
    assert it.asked.state == "undone"
    it.ground.execute(text)
    assert it.asked.state == "undone"
    assert it.asked.revert("redo").notes == ("It is so already.",)
    assert it.asked.state == "done" and it.rows() == after
    it.asked.revert("undo")
    assert it.rows() == before


def test_nothing_is_left_beside_the_file(made: Callable[[str, Policy], Killed], mode: str) -> None:
    it = made(INSERT, "reversal")
    it.asked.run()
    it.asked.revert("undo")
    names = {path.name for path in it.ground.path.parent.iterdir()}
    assert names == ({"shop.db", "shop.db-wal", "shop.db-shm"} if mode == "wal in use" else {"shop.db"})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("rows", [1, 3000, 60_000])
def test_large_transactions_are_marked_too(made: Callable[[str, Policy], Killed], rows: int) -> None:
    """Also one that is larger than SQLite's cache, so that some of its pages were written before."""
    text = (
        f"INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n LIMIT {rows})"
        " SELECT i, hex(zeroblob(200)) FROM n"
    )
    it = made(text, "reversal")
    it.asked.job = None
    it.asked.rows = rows
    it.asked.plan()
    before = it.rows()
    it.step("before", it.asked.run)
    assert it.asked.state == "nothing" and it.rows() == before
    it.step("after", it.asked.run)
    assert it.asked.state == "done" and len(it.rows()) == len(before) + rows


@pytest.mark.parametrize("mode", ["wal in use"], indirect=True)  # else whoever opens the file last ends the log
def test_a_log_that_began_anew_proves_nothing(made: Callable[[str, Policy], Killed]) -> None:
    """Its older frames stay in the file behind the new ones."""
    it = made(UPDATE, "reversal")
    with contextlib.closing(it.ground.connect()) as other:
        for number in range(20):
            other.execute("UPDATE t SET b = ? WHERE a = 2", (number,))
        it.step("after", it.asked.run)
        other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        other.execute(OTHER)
        assert it.rows()[0] == (1, "sent")
        assert it.asked.state == "unknown"
