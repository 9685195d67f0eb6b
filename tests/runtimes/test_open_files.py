"""A database action and a folder action of one process on the same file. Another process is the witness: it can write
where the database's lock was lost."""

# Small files: blocking calls are fine.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from policies.errors import Conflict
from runtimes.files.content_ids import hash_file
from runtimes.files.handles import opened_path, remove_tree
from runtimes.files.original import Original
from runtimes.files.restore import Copy, Restore, steps
from runtimes.files.tree import Bounds, Manifest, Walk
from runtimes.open_files import OPEN_FILES, files_of
from runtimes.sql.contract import Limits
from runtimes.sql.sqlite import location
from runtimes.sql.sqlite.connection import Connection
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime

WRITES = """\
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    database.execute("UPDATE t SET a = 7")
except sqlite3.OperationalError as error:
    print(error)
else:
    print("written")
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPEN_FILES, "folder_seconds", 0.1)


@pytest.fixture(params=["delete", "wal"])
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA journal_mode = {request.param}")
        made.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    path.chmod(0o600)
    return path


@pytest.fixture
def writing(database: Path) -> Iterator[Connection]:
    """A transaction of this process that has written, and isn't committed."""
    connection = Connection(location.find(str(database)), Limits(lock_seconds=0.1))
    connection.db.execute("BEGIN IMMEDIATE")
    connection.db.execute("UPDATE t SET a = 2")
    yield connection
    connection.close()


def another_process_writes(database: Path) -> str:
    asked = [sys.executable, "-c", WRITES, str(database)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def walked(root: int) -> Manifest:
    return Walk(bounds=Bounds(), read=hash_file).run(root)


def looked(root: int) -> Manifest:
    return Walk(bounds=Bounds()).run(root)


def read_from_original(root: int) -> None:
    found = looked(root)
    for path, entry in found.entries.items():
        if entry.kind == "f":
            named = {**found.entries, path: entry._replace(oid="0" * 64)}
            Original(root, Manifest(entries=named, taken=found.taken, settled=False)).read(path)


def restoring(root: int) -> tuple[Restore, Manifest]:
    now = looked(root)
    empty = Manifest(entries={b"": now.entries[b""]}, taken=now.taken, settled=False)
    held = OPEN_FILES.hold("folder")
    return Restore(root=root, now=now, goal=empty, name=b".goex-stage", contents=_none, held=held), empty


def _none() -> AbstractContextManager[Copy]:
    return nullcontext(lambda oid, write: None)  # nothing is to be copied


def looks_at_flags(root: int) -> None:
    restore, empty = restoring(root)
    restore.fixed(steps(restore.now, empty))


def replaces(root: int) -> None:
    restore, empty = restoring(root)
    assert restore.held is not None
    with restore.held:
        todo = steps(restore.now, empty)
        restore.keep_out(todo)
        restore.stage(todo)
        restore.apply(todo)


def removes(root: int) -> None:
    for name in sorted(os.listdir(root), reverse=True):
        remove_tree(root, os.fsencode(name))


WORK: list[Callable[[int], object]] = [walked, read_from_original, looks_at_flags, replaces, removes]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("work", WORK)
def test_folder_work_leaves_the_locks_of_an_open_database(
    database: Path, writing: Connection, work: Callable[[int], object]
) -> None:
    with opened_path(database.parent) as root, pytest.raises(Conflict, match="in use by another action"):
        work(root)

    assert another_process_writes(database) == "database is locked"
    writing.db.execute("COMMIT")
    writing.close()
    assert another_process_writes(database) == "written"


@pytest.mark.parametrize("below", ["", "in/it"])
async def test_no_database_is_open_where_a_program_runs(tmp_path: Path, database: Path, below: str) -> None:
    """It could cut short what SQLite has mapped, which ends this process."""
    folder = database.parent
    if below:
        (folder / below).mkdir(parents=True)
        database = database.rename(folder / below / database.name)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, 4242, 4242)  # a program on a folder of root's works on a copy
    came: list[str] = []

    def deed(_: Path) -> None:
        with pytest.raises(Conflict, match="in use by another action"):
            Connection(location.find(str(database)), Limits(lock_seconds=0.1))
        came.append("refused")

    way = Way(runtime(tmp_path / "state", UnsafeNoSandbox(deed)), folder)
    assert (await way.do()).ok and came == ["refused"]
    with closing(Connection(location.find(str(database)), Limits())):
        with pytest.raises(Conflict, match="in use by another action"):
            await Way(runtime(tmp_path / "state", UnsafeNoSandbox(deed)), folder, action_id="a2").do()
        assert came == ["refused"], "no program ran"


@pytest.mark.parametrize("database", ["delete"], indirect=True)  # where nothing beside it goes as it is closed
@pytest.mark.parametrize("work", [walked, replaces, removes])
def test_folder_work_goes_on_when_the_database_is_closed(
    database: Path, work: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Connection(location.find(str(database)), Limits())
    monkeypatch.setattr(OPEN_FILES, "folder_seconds", 60)
    waits = OPEN_FILES._changed.wait
    waiting = threading.Event()

    def noted(timeout: float | None = None) -> bool:
        waiting.set()
        return waits(timeout)

    monkeypatch.setattr(OPEN_FILES._changed, "wait", noted)
    closing_it = threading.Thread(target=lambda: waiting.wait(300) and reading.close())
    closing_it.start()
    with opened_path(database.parent) as root:
        work(root)
    closing_it.join()
    assert waiting.is_set()


def test_a_name_that_leads_to_the_shared_memory_is_refused_too(tmp_path: Path, database: Path) -> None:
    """Closing it by another name drops the same locks."""
    connection = Connection(location.find(str(database)), Limits(lock_seconds=0.1))
    try:
        shared = database.with_name("shop.db-shm")
        if not shared.exists():
            pytest.skip("this journal mode has none")
        os.link(shared, database.parent / "harmless")
        with opened_path(database.parent) as root, pytest.raises(Conflict, match="in use"):
            at = os.stat("harmless", dir_fd=root)
            OPEN_FILES.hold("folder", files_of(root, b"harmless", at))
    finally:
        connection.close()


def test_a_database_isn_t_opened_while_a_folder_action_reads_it(database: Path) -> None:
    pinned = location.find(str(database))
    held = OPEN_FILES.hold("folder", [(pinned.device, pinned.inode)])
    with held, pytest.raises(Conflict, match="in use by another action"):
        Connection(pinned, Limits(lock_seconds=0.05))
    Connection(pinned, Limits(lock_seconds=0.05)).close()
    with OPEN_FILES.hold("folder", [(pinned.device, pinned.inode)]):
        pass


def test_what_lies_beside_a_database_is_the_database(database: Path) -> None:
    own = database.stat()
    with opened_path(database.parent) as root:
        for end in ("-journal", "-wal", "-shm"):
            name = os.fsencode(f"{database.name}{end}")
            assert (own.st_dev, own.st_ino) in files_of(root, name, None)
        assert files_of(root, b"-wal", None) == files_of(root, b"else-wal", None) == []


def test_nothing_stays_registered(database: Path) -> None:
    connection = Connection(location.find(str(database)), Limits())
    with pytest.raises(Conflict), opened_path(database.parent) as root:
        walked(root)
    connection.close()
    with opened_path(database.parent) as root:
        walked(root)
    assert not any(OPEN_FILES._users.values())


def test_the_control_a_descriptor_that_is_closed_drops_the_lock(database: Path, writing: Connection) -> None:
    for path in database.parent.iterdir():
        os.close(os.open(path, os.O_RDONLY))
    assert another_process_writes(database) == "written"
    writing.db.execute("ROLLBACK")
