"""The chain: an edit, a gap, a cut tail, a forged row and a forged state all show; a crash's trace doesn't."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, inspect, select

from goex.journal.actions import Actions
from goex.journal.chain import Journal, Row, _mac
from goex.journal.errors import JournalBroken, JournalFailed, JournalLocked
from goex.journal.head import Head, Mark, Span
from goex.journal.schema import MIGRATIONS, migrate, schema_version
from goex.journal.schema import journal as journal_table
from goex.journal.states import LEGAL, Event, IllegalStep, State, render_table, step
from policies.actions import Files
from policies.errors import Unavailable

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


def add_row(folder: Path, mac: Callable[[bytes], bytes | None]) -> None:
    """Add row 6 to a chain of 5, with the hash that it must have."""
    with sqlite3.connect(folder / "state.db") as connection:
        last = connection.execute("select hash from journal where number = 5").fetchone()[0]
        row = Row(6, "2026-01-01T00:00:00.000000Z", "a-1", "tester", "note", "", "", "{}", b"")
        hash = row.seal(last)
        values = (row.number, row.at, row.action_id, row.agent, row.kind, "", "", row.facts, hash, mac(hash))
        connection.execute("insert into journal values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    connection.close()


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


@pytest.mark.promise(80)
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


@pytest.mark.promise(80)
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


@pytest.mark.promise(80)
def test_one_row_more_than_the_head_says_was_forged(folder: Path) -> None:
    """Whoever knows how a row's hash is made can add one; its MAC they can't make."""
    filled(folder)
    add_row(folder, lambda hash: b"")
    with pytest.raises(JournalBroken, match="1 row was added"):
        opened(folder)


@pytest.mark.promise(80)
@pytest.mark.parametrize("mac", ["none", "of another key", "of the row before", "of a number before"])
def test_a_row_with_a_mac_that_is_not_its_own_was_forged(folder: Path, mac: str) -> None:
    filled(folder)
    with sqlite3.connect(folder / "state.db") as connection:
        hashes = dict(connection.execute("select number, hash from journal"))
        macs = dict(connection.execute("select number, mac from journal"))
    connection.close()
    made = {
        "none": lambda hash: None,
        "of another key": lambda hash: _mac(Mark(6, hash), b"x" * 32),
        "of the row before": lambda hash: macs[5],
        "of a number before": lambda hash: _mac(Mark(5, hash), KEY),
    }
    assert macs[5] == _mac(Mark(5, hashes[5]), KEY)  # the control: so it is made
    add_row(folder, made[mac])
    with pytest.raises(JournalBroken, match="1 row was added"):
        opened(folder)


def test_a_row_that_we_wrote_and_no_head_tells_of_is_ours(folder: Path) -> None:
    """The control of the two above, and what a crash between a commit and its head leaves."""
    filled(folder)
    head = (folder / "journal.head").read_bytes()
    journal = opened(folder)
    journal.append("note", action_id="a-1")
    journal.close()
    (folder / "journal.head").write_bytes(head)
    again = opened(folder)
    assert (again.count, again.verify().good, again.head()[1]) == (6, True, True)


@pytest.mark.promise(80)
def test_a_longer_chain_of_before_a_restore_is_not_taken_for_this_one(folder: Path) -> None:
    """Both ends are ours; the head went another way at row 6."""
    filled(folder)
    shorter = (folder / "state.db").read_bytes()
    head = (folder / "journal.head").read_bytes()
    journal = opened(folder)
    for _ in range(5):
        journal.append("note", facts={"was": "before"})
    journal.close()
    longer = (folder / "state.db").read_bytes()
    (folder / "state.db").write_bytes(shorter)
    (folder / "journal.head").write_bytes(head)
    journal = opened(folder)
    journal.append("note", facts={"is": "now"})
    journal.close()
    (folder / "state.db").write_bytes(longer)
    with pytest.raises(JournalBroken, match="4 rows were added"):
        opened(folder)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.promise(80)
@pytest.mark.parametrize("when", ["before the commit", "before the head", "after the head"])
def test_a_crash_around_a_commit_of_several_rows_is_no_forgery(
    folder: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    filled(folder)
    journal = opened(folder)
    written = Head.write

    def write(self: Head, mark: Mark, key: bytes, *, sync: bool) -> None:
        if when == "after the head":
            written(self, mark, key, sync=sync)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Head, "write", write)
        with pytest.raises(Crash), journal.transaction() as transaction:
            for _ in range(3):
                transaction.append("note")
            if when == "before the commit":
                raise Crash
    journal.close()
    again = opened(folder)
    assert again.count == (5 if when == "before the commit" else 8)
    assert again.verify().good


@pytest.mark.promise(80)
def test_what_is_not_lasting_outlives_the_process_and_may_fall_to_a_power_failure(folder: Path, thorough: bool) -> None:
    """Whatever the disk kept of what wasn't synced: the chain is whole, and reaches as far as what was."""
    journal = opened(folder)
    journal.append("note")
    synced = (folder / "state.db-wal").stat().st_size
    for _ in range(3):
        journal.append("note", lasting=False)
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    wal = left["state.db-wal"]
    assert len(wal) > synced
    counts = set()
    for size in {*range(synced, len(wal), 512 if thorough else 2048), len(wal)}:
        lost = folder / f"lost-{size}"
        lost.mkdir()
        for name, data in left.items():
            if not name.endswith("-shm"):  # never on a disk
                (lost / name).write_bytes(data[:size] if name == "state.db-wal" else data)
        again = opened(lost)
        assert again.verify().good
        again.append("note")
        counts.add(again.count)
        assert opened(lost).verify().good
        again.close()
    assert counts == {2, 3, 4, 5}
    # The control: a head that told of what wasn't synced would make of it a journal that was cut.
    journal._vouch(KEY)
    ahead = folder / "ahead"
    ahead.mkdir()
    for name in ("state.db", "journal.head"):
        (ahead / name).write_bytes((folder / name).read_bytes())
    (ahead / "state.db-wal").write_bytes(wal[:synced])
    with pytest.raises(JournalBroken, match="cut"):
        opened(ahead)


def synced(folder: Path, *steps: str) -> list[list[str]]:
    """The files that a process synced in each of these steps, in order, as the kernel was asked to. It ends as if it
    had been killed."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace isn't here")
    lines = [
        "import os",
        "from pathlib import Path",
        "from goex.journal.chain import Journal",
        f"journal = Journal(Path({str(folder)!r}) / 'state.db', Path({str(folder)!r}) / 'journal.head')",
        *(line for step in steps for line in ("os.getppid()", step)),
        "os.getppid()",
        "os._exit(0)",
    ]
    command = [strace, "-f", "-y", "-e", "trace=getppid,fsync,fdatasync", sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    parts = done.stderr.split("getppid(")[1:-1]
    return [[Path(file).name for file in re.findall(r"sync\(\d+<([^>]*)>", part)] for part in parts]


@pytest.mark.promise(80)
def test_what_is_lasting_is_synced_and_what_is_not_goes_with_the_next_that_is(folder: Path) -> None:
    filled(folder)
    steps = ('journal.append("note")', 'journal.append("note", lasting=False)', 'journal.append("note")')
    unlocking, *asked = synced(folder, f"journal.unlock({KEY!r})", *steps)
    assert "journal.head" in unlocking
    assert [bool(files) for files in asked] == [True, False, True]
    assert asked[2][-1] == "state.db-wal"


def test_a_head_tells_of_what_a_killed_process_left_only_once_it_is_on_the_disk(folder: Path) -> None:
    filled(folder)
    synced(folder, f"journal.unlock({KEY!r})", 'journal.append("note")', 'journal.append("note", lasting=False)')
    (unlocking,) = synced(folder, f"journal.unlock({KEY!r})")
    assert unlocking.index("state.db-wal") < unlocking.index("journal.head")
    assert opened(folder).count == 7


def test_another_process_that_looks_and_goes_leaves_the_database_to_this_one(folder: Path) -> None:
    """The locks of a process on a file are lost with whatever descriptor of that file it closes first; the other would
    then think itself the last, and take what wasn't moved into the database with it."""
    filled(folder)
    journal = opened(folder)
    look = "import sqlite3 as s, sys; print(*s.connect(sys.argv[1]).execute('select count(*) from journal').fetchone())"
    for count in (5, 6, 7):
        shown = subprocess.run([sys.executable, "-c", look, str(folder / "state.db")], capture_output=True, text=True)
        assert shown.stdout == f"{count}\n", shown.stderr
        journal.append("note")
    assert journal.verify().good


def test_a_head_that_cannot_be_written_stops_the_next_transaction_not_this_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(folder)
    with monkeypatch.context() as patched:

        def refuse(*_: object, **__: object) -> None:
            raise Unavailable("The disk refuses.")

        patched.setattr(Head, "write", refuse)
        journal.append("note")
        with pytest.raises(Unavailable, match="refuses"):
            journal.append("note")
        assert journal.count == 1
    journal.append("note")
    assert (journal.count, opened(folder).verify().good) == (2, True)


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
    with journal.transaction() as transaction:  # the limit is the connection's own
        pages = transaction.connection.exec_driver_sql("pragma page_count").scalar_one()
        transaction.connection.exec_driver_sql(f"pragma max_page_count = {pages}")
    with pytest.raises(JournalFailed, match="full"):
        for _ in range(50):
            journal.append("note", facts={"filler": "x" * 4000})
    with journal.transaction() as transaction:
        transaction.connection.exec_driver_sql("pragma max_page_count = 100000")
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
