"""Nobody opens a SQLite file by hand in a process that may have it open: closing any descriptor of it drops the locks
that SQLite holds there, and the next process to end removes the write-ahead log under it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from mapper.store.database import open_reading, open_writing
from policies.errors import ExitStatus
from tests.mapper.importing.documents import discovery, method, write
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.entries import Asked, Client
from tests.support.journey import decide, shell

# Python tells its audit hooks of each file that it opens, and SQLite's own openings not among them.
# A folder action opens one by the descriptor that it looked at: then it counts when SQLite has the file open.
HOOK = """\
import os, sys, traceback
def open_already(path):
    found = os.stat(path)
    if not path.endswith((".db", "-shm")):
        return False
    for each in os.listdir("/proc/self/fd"):
        try:
            at = os.stat(f"/proc/self/fd/{each}")
            with open(f"/proc/self/fdinfo/{each}") as facts:
                looking = int(facts.read().split("flags:")[1].split()[0], 8) & os.O_PATH
        except OSError:
            continue
        if not looking and (at.st_dev, at.st_ino) == (found.st_dev, found.st_ino):
            return True
    return False
def hook(event, arguments):
    if event != "open":
        return
    path, _, flags = arguments
    if not isinstance(path, (str, bytes)) or (flags or 0) & os.O_PATH:
        return
    path = os.fsdecode(path)
    if path.startswith("/proc/self/fdinfo/"):
        return
    if path.startswith("/proc/self/fd/"):
        path = os.readlink(path)
        noted = open_already(path)
    else:
        noted = path.endswith(".db")
    if noted:
        place = " < ".join(f"{one.filename}:{one.lineno}" for one in reversed(traceback.extract_stack()[-6:-1]))
        handle = os.open(os.environ["OPENED_BY_HAND"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{path} by {place}\\n".encode())
        os.close(handle)
sys.addaudithook(hook)
"""


def watching(folder: Path, *, fresh: bool = False) -> Daemon:
    """A daemon, and commands, that note which databases they open by hand; one that is `fresh` makes its vault."""
    (folder / "sitecustomize.py").write_text(HOOK)
    return Daemon(env={"PYTHONPATH": str(folder), "OPENED_BY_HAND": str(folder / "opened")}, fresh=fresh)


def documents(daemon: Daemon, name: str) -> Path:
    folder = daemon.home / f"documents-{name}"
    folder.mkdir()
    made = {"create": method(f"{name}.create", "POST", f"v1/{name}"), "list": method(f"{name}.list", path=f"v1/{name}")}
    write(folder, discovery(name, resources={name: {"methods": made}}))
    return folder


def said(daemon: Daemon, *command: str, sure: bool = True) -> str:
    ran = daemon.goex(*command)
    assert ran.returncode in ((0,) if sure else (0, ExitStatus.AMBIGUOUS)), (command, ran.stdout, ran.stderr)
    return ran.stdout


def imported(daemon: Daemon, name: str) -> None:
    said(daemon, "catalog", "import", "google", "--from", str(documents(daemon, name)))


def mapped(daemon: Daemon, text: str) -> str:
    return json.dumps(json.loads(said(daemon, "map", text, "--json", sure=False)))


@pytest.mark.thorough
def test_a_running_daemon_keeps_its_catalog_through_imports_and_removals() -> None:
    with Daemon() as daemon:
        imported(daemon, "gadgets")
        mapped(daemon, "create a gadget")
        imported(daemon, "widgets")
        mapped(daemon, "create a widget")
        said(daemon, "catalog", "remove", "gadgets")
        mapped(daemon, "list the widgets")
        said(daemon, "catalog", "search", "widget")
        imported(daemon, "sprockets")
        assert "candidates" in mapped(daemon, "create a sprocket in sprockets")
        assert "sprockets.create" in said(daemon, "catalog", "search", "create sprockets")
        assert "candidates" in mapped(daemon, "list the widgets")
        assert "malformed" not in daemon.tail()


def test_nobody_opens_a_database_by_hand(tmp_path: Path) -> None:
    """Over the whole of a daemon's life: the vault, the log, the catalog, and a database of the person's."""
    noted = tmp_path / "opened"
    shop = tmp_path / "shop.db"
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
        database.execute("INSERT INTO orders VALUES (1, 5)")
    shop.chmod(0o600)
    with watching(tmp_path, fresh=True) as watched:
        imported(watched, "gadgets")
        mapped(watched, "create a gadget")
        imported(watched, "widgets")
        mapped(watched, "create a widget")
        said(watched, "catalog", "remove", "gadgets")
        watched.add_agent("scout")
        client = Client(watched)
        client.add("shop", f"sqlite:///{shop}")
        finished = client.run("shop", "UPDATE orders SET total = 6 WHERE id = 1")
        assert finished.action.state == "done", finished
        put = pb.VaultPutRequest(service="slack", secret=b"xoxb-1", passphrase=APPROVAL_PASSPHRASE)
        watched.person("VaultPut", put)
        watched.restart()
        said(watched, "log", "--verify")
        assert not noted.exists(), noted.read_text()
        # The control: that hook sees what is opened by hand.
        subprocess.run([sys.executable, "-c", f"open({str(shop)!r}, 'rb').close()"], env=watched.env, check=True)
        assert str(shop) in noted.read_text()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Daemon]:
    with watching(tmp_path) as daemon:
        yield daemon


@pytest.mark.docker
def test_a_folder_action_opens_no_database_that_an_action_has_open(watched: Daemon, tmp_path: Path) -> None:
    """Both at once, of one daemon: the file isn't opened by hand while it is open, and both do it or say why not."""
    noted = tmp_path / "opened"
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = folder / "shop.db"
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
        database.executemany("INSERT INTO orders VALUES (?, 5)", [(number,) for number in range(10_000)])
    shop.chmod(0o600)
    client = Client(watched)
    client.add("shop", f"sqlite:///{shop}")
    refused: list[str] = []
    written: list[bool] = []

    def tried(asked: Asked) -> None:
        question = next((event for event in asked._events if event.WhichOneof("what") in ("asking", "finished")), None)
        assert question is not None
        if question.WhichOneof("what") == "asking":
            decide(watched, question.asking)
            question = next(event for event in asked._events if event.WhichOneof("what") == "finished")
        if question.finished.action.state != "done":
            refused.append(question.finished.problem.message or question.finished.action.outcome.summary)

    def write() -> None:
        for total in range(3):
            tried(client.sql("shop", f"UPDATE orders SET total = {total}"))
            written.append(True)

    writing = threading.Thread(target=write)
    writing.start()
    while writing.is_alive():
        tried(Asked(watched, shell(folder, "date > today"), person=True))
    writing.join()
    assert len(written) == 3
    why = ("in use", "changed", "isn't what was approved any more", "isn't what it should be after this")
    assert all(any(words in said.lower() for words in why) for said in refused), "\n".join(refused)
    assert not noted.exists(), noted.read_text()
    # The control: what is open already, and opened by its descriptor, is noted.
    opened = (
        "import os, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1]); database.execute('SELECT count(*) FROM orders').fetchall()\n"
        "looked = os.open(sys.argv[1], os.O_PATH)\n"
        "os.close(os.open(f'/proc/self/fd/{looked}', os.O_RDONLY))\n"
    )
    subprocess.run([sys.executable, "-c", opened, str(shop)], env=watched.env, check=True)
    assert str(shop) in noted.read_text()


def test_a_writer_of_the_catalog_leaves_a_readers_locks(tmp_path: Path) -> None:
    """As a daemon does whose index is made anew while it has the catalog open: another process must still see that."""
    path = tmp_path / "catalog.db"
    open_writing(path).close()
    reader = open_reading(path)
    try:
        reader.execute("SELECT count(*) FROM service").fetchone()
        open_writing(path).close()
        locks = [line for line in Path("/proc/locks").read_text().splitlines() if f" {os.getpid()} " in line]
        inode = f":{path.stat().st_ino} "
        assert any(inode in line for line in locks), locks
    finally:
        reader.close()


def test_the_catalogs_file_is_made_private_and_once(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    for _ in range(2):
        open_writing(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["catalog.db"]
