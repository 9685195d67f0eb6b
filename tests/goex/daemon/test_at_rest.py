"""What a daemon doesn't load before somebody needs it: each of these costs megabytes for as long as it runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.entries import Client

# Python tells its audit hooks of each module that it is about to load.
HOOK = """\
import os, sys
def hook(event, arguments):
    if event == "import":
        handle = os.open(os.environ["LOADED_MODULES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{arguments[0]}\\n".encode())
        os.close(handle)
if "goex.daemon" in sys.orig_argv:
    sys.addaudithook(hook)
"""
# Never in the daemon: they are commands', or a child's.
NEVER = ("typer", "rich", "pydantic", "goex.cli", "mapper.evaluation", "tree_sitter", "bashlex", "lxml", "babel")
# Not before the first action that needs them.
LATE = ("numpy", "openai", "sqlglot", "apsw", "psycopg", "pymysql", "pymongo", "google.auth", "googleapiclient")


@pytest.fixture
def noting(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that writes down which modules it loads."""
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    with Daemon(env={"PYTHONPATH": str(tmp_path), "LOADED_MODULES": str(tmp_path / "loaded")}) as daemon:
        yield daemon


def loaded(noted: Path, names: tuple[str, ...]) -> set[str]:
    found = noted.read_text().split()
    return {name for name in names if any(each == name or each.startswith(f"{name}.") for each in found)}


def test_a_daemon_at_rest_has_loaded_nothing_heavy(noting: Daemon, tmp_path: Path) -> None:
    noting.restart()
    noting.person("Status", pb.StatusRequest())
    noted = tmp_path / "loaded"
    assert not loaded(noted, NEVER + LATE)
    # The control, and what stays so after actions.
    shop = tmp_path / "shop.db"
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
    shop.chmod(0o600)
    client = Client(noting)
    client.add("shop", f"sqlite:///{shop}")
    assert client.run("shop", "INSERT INTO orders VALUES (1, 5)").action.state == "done"
    assert loaded(noted, LATE) == {"sqlglot", "apsw"}
    noting.goex("map", "send slack msg hi to #ops")
    assert "numpy" in loaded(noted, LATE)
    assert not loaded(noted, NEVER)
