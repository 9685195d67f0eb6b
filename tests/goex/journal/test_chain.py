"""The chain: an edit, a gap, a cut tail, a forged row and a forged state all show; a crash's trace doesn't."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, inspect, select

from goex.journal.actions import Actions
from goex.journal.chain import Journal, JournalBroken, JournalFailed, JournalLocked
from goex.journal.head import Head, Span
from goex.journal.schema import MIGRATIONS, migrate, schema_version
from goex.journal.schema import journal as journal_table
from goex.journal.states import LEGAL, Event, IllegalStep, State, render_table, step
from policies.actions import Files

KEY = b"k" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def opened(folder: Path, key: bytes | None = KEY) -> Journal:
    journal = Journal(folder / "state.db", folder / "journal.head")
    if key is not None:
        journal.unlock(key)
    return journal


def filled(folder: Path, rows: int = 5) -> None:
    journal = opened(folder)
    for number in range(rows):
        journal.append("note", action_id="a-1", agent="tester", facts={"n": number})
    journal.close()


def edit(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / "state.db") as connection:
        connection.execute(statement)
    connection.close()


def test_an_untouched_chain_verifies(folder: Path) -> None:
    filled(folder)
    found = opened(folder).verify()
    assert (found.good, found.rows, found.authenticated) == (True, 5, True)


def test_without_the_key_the_chain_is_checked_but_not_called_authentic(folder: Path) -> None:
    filled(folder)
    found = opened(folder, None).verify()
    assert found.good
    assert not found.authenticated


@pytest.mark.parametrize(
    "statement",
    [
        "update journal set facts = '{\"n\":7}' where number = 3",
        "update journal set at = '2020-01-01T00:00:00.000000Z' where number = 1",
        "update journal set agent = 'someone' where number = 5",
        "update journal set kind = 'grant' where number = 2",
        "update journal set to_state = 'done' where number = 2",
        "delete from journal where number = 3",
        "delete from journal where number = 1",
    ],
)
def test_an_edit_shows(folder: Path, statement: str) -> None:
    filled(folder)
    edit(folder, statement)
    assert not opened(folder, None).verify().good


def test_a_cut_tail_shows(folder: Path) -> None:
    filled(folder)
    edit(folder, "delete from journal where number > 3")
    assert opened(folder, None).verify().good  # the rows that are left are a chain; only the head knows better
    with pytest.raises(JournalBroken):
        opened(folder)


def test_a_tail_that_is_cut_while_it_runs_shows(folder: Path) -> None:
    journal = opened(folder)
    for _ in range(3):
        journal.append("note")
    edit(folder, "delete from journal where number = 3")
    found = journal.verify()
    assert not found.good
    assert "should end at row 3" in found.problem


def test_one_row_more_than_the_head_says_was_forged(folder: Path) -> None:
    filled(folder)
    head = (folder / "journal.head").read_bytes()
    journal = opened(folder)
    journal.append("note", action_id="a-1")
    journal.close()
    (folder / "journal.head").write_bytes(head)
    with pytest.raises(JournalBroken, match="1 rows were added"):
        opened(folder)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("when", ["before the head", "before the commit", "after the commit"])
def test_a_crash_around_a_commit_of_several_rows_is_no_forgery(
    folder: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    filled(folder)
    journal = opened(folder)
    written = Head.write

    def write(self: Head, span: Span, key: bytes, *, sync: bool) -> None:
        if when == "before the head" or (when == "after the commit" and not sync):
            raise Crash
        written(self, span, key, sync=sync)
        if when == "before the commit":
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Head, "write", write)
        with pytest.raises(Crash), journal.transaction() as transaction:
            for _ in range(3):
                transaction.append("note")
    journal.close()
    again = opened(folder)
    assert again.count == (8 if when == "after the commit" else 5)
    assert again.verify().good


@pytest.mark.parametrize("damage", ["gone", "another key", "one byte"])
def test_a_head_that_cannot_be_believed_stops_the_journal(folder: Path, damage: str) -> None:
    filled(folder)
    head = folder / "journal.head"
    if damage == "gone":
        head.unlink()
    elif damage == "one byte":
        data = bytearray(head.read_bytes())
        for start in (0, 128):
            data[start + 12] ^= 1
        head.write_bytes(data)
    with pytest.raises(JournalBroken):
        opened(folder, b"x" * 32 if damage == "another key" else KEY)


def test_a_torn_head_slot_costs_nothing(folder: Path) -> None:
    filled(folder)
    head = folder / "journal.head"
    before = head.read_bytes()
    journal = opened(folder)
    journal.append("note")
    journal.close()
    torn = bytearray(head.read_bytes())
    newest = max((0, 128), key=lambda start: torn[start + 8 : start + 16])
    assert before != bytes(torn)
    torn[newest + 20] ^= 0xFF
    head.write_bytes(torn)
    assert opened(folder).verify().good


def test_nothing_is_appended_without_a_key(folder: Path) -> None:
    with pytest.raises(JournalLocked):
        opened(folder, None).append("note")


def test_a_failing_transaction_leaves_neither_row_nor_head(folder: Path) -> None:
    journal = opened(folder)
    journal.append("note")
    with pytest.raises(ZeroDivisionError), journal.transaction() as transaction:
        transaction.append("note")
        raise ZeroDivisionError
    assert journal.count == 1
    journal.append("note")
    assert journal.verify().rows == 2


def test_a_full_disk_is_said_and_nothing_is_lost(folder: Path) -> None:
    journal = opened(folder)
    journal.append("note")
    with journal.engine.connect() as connection:
        pages = connection.exec_driver_sql("pragma page_count").scalar_one()
        connection.exec_driver_sql(f"pragma max_page_count = {pages}")
        connection.commit()
    with pytest.raises(JournalFailed, match="full"):
        for _ in range(50):
            journal.append("note", facts={"filler": "x" * 4000})
    with journal.engine.connect() as connection:
        connection.exec_driver_sql("pragma max_page_count = 100000")
    journal.append("note")
    assert journal.verify().good


def test_a_state_that_was_edited_in_the_table_shows(folder: Path) -> None:
    journal = opened(folder)
    create(journal)
    assert journal.verify().good
    edit(folder, "update actions set state = 'done'")
    assert not journal.verify().good


def test_a_newer_schema_is_refused(folder: Path) -> None:
    opened(folder).close()
    edit(folder, "update schema_version set version = 99")
    with pytest.raises(Exception, match="schema 99"):
        opened(folder)


def create(journal: Journal) -> str:
    with journal.transaction() as transaction:
        row = Actions(journal).create(
            transaction,
            id="a-1",
            agent="tester",
            session="s",
            intent="",
            action=Files(folder="/x", language="shell", program="true"),
            source="test",
            detached=False,
        )
    return row.id


def test_a_step_that_is_not_in_the_table_is_impossible(folder: Path) -> None:
    journal = opened(folder)
    actions = Actions(journal)
    row = actions.get(create(journal))
    with pytest.raises(IllegalStep), journal.transaction() as transaction:
        actions.step(transaction, row, Event.RUN)
    assert actions.get(row.id).state is State.RECEIVED


def test_two_steps_from_one_state_are_one_step(folder: Path) -> None:
    journal = opened(folder)
    actions = Actions(journal)
    row = actions.get(create(journal))
    with journal.transaction() as transaction:
        actions.step(transaction, row, Event.WITHDRAW)
    with pytest.raises(Exception, match="no longer received"), journal.transaction() as transaction:
        actions.step(transaction, row, Event.WITHDRAW)
    assert journal.verify().good


def reachable() -> set[State]:
    found, todo = set(), [State.RECEIVED]
    while todo:
        state = todo.pop()
        if state not in found:
            found.add(state)
            todo += LEGAL[state].values()
    return found


def test_the_table_names_every_state_and_reaches_it() -> None:
    assert set(LEGAL) == set(State) == reachable()
    for state in State:
        assert str(state) in render_table()


@pytest.mark.parametrize("state", [State.RECEIVED, State.MAPPED, State.ASSESSED, State.ASKING])
def test_nothing_runs_without_being_allowed(state: State) -> None:
    assert State.RUNNING not in LEGAL[state].values()
    assert step(State.ALLOWED, Event.PREPARE) is State.PREPARED


def test_an_older_schema_is_migrated_whole_or_not_at_all(folder: Path) -> None:
    filled(folder)
    engine = opened(folder, None).engine

    def add(connection: Connection) -> None:
        connection.exec_driver_sql("alter table agents add column note text not null default ''")

    def fail(connection: Connection) -> None:
        connection.exec_driver_sql("alter table agents add column other text")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        migrate(engine, (*MIGRATIONS, add, fail))
    with engine.connect() as connection:
        assert connection.execute(select(schema_version.c.version)).scalar_one() == len(MIGRATIONS)
    assert migrate(engine, (*MIGRATIONS, add)) == len(MIGRATIONS) + 1
    with engine.connect() as connection:
        columns = {column["name"] for column in inspect(connection).get_columns("agents")}
        assert "note" in columns
        assert "other" not in columns
        assert connection.execute(select(func.count()).select_from(journal_table)).scalar_one() == 5


def test_verifying_beside_the_writer_is_no_false_alarm(folder: Path) -> None:
    journal = opened(folder)
    create(journal)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with journal.transaction() as transaction:
                transaction.append("note")
                transaction.append("note")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [journal.verify() for _ in range(20)]
        while found[-1].rows <= found[0].rows:
            found.append(journal.verify())
    finally:
        stop.set()
        writer.join()
    assert [verification.problem for verification in found if not verification.good] == []
    assert found[-1].rows > found[0].rows


def test_nothing_is_written_between_the_last_row_and_the_head(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the head would speak of rows that the check hasn't read, and say that the journal was cut."""
    journal = opened(folder)
    journal.append("note")
    read = Head.read
    writers: list[threading.Thread] = []

    def late(self: Head, key: bytes) -> Span | None:
        writer = threading.Thread(target=lambda: [journal.append("note") for _ in range(2)])
        writers.append(writer)
        writer.start()
        writer.join(0.3)
        return read(self, key)

    with monkeypatch.context() as patched:
        patched.setattr(Head, "read", late)
        found = journal.verify()
    for writer in writers:
        writer.join()
    assert (found.problem, len(writers)) == ("", 1)
    assert journal.verify().rows == 3  # the control: they were written afterwards
