"""A table of actions that somebody edited under a real daemon: each reader is told so, and how to go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from policies.errors import ExitStatus
from tests.support.daemon import Daemon
from tools.bench import journals

ID = "a-000000000001"
COLUMNS = (
    ("state", "nope"),
    ("state", b"\x01\xff"),
    ("kind", b"\x01\xff"),
    ("created", "nope"),
    ("updated", ""),
    ("number", "x"),
    ("outcome", "{"),
    ("problem", "{}"),
    ("plan", "{"),
)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        with journals.behind(made) as journal:
            journals.fill(journal, 30)
        yield made


def put(daemon: Daemon, column: str, value: Any) -> Any:
    """Write a column of one action; returns what was there."""
    with closing(sqlite3.connect(daemon.state_dir / "state.db", timeout=30, isolation_level=None)) as database:
        (was,) = database.execute(f"SELECT {column} FROM actions WHERE id = ?", (ID,)).fetchone()
        database.execute(f"UPDATE actions SET {column} = ? WHERE id = ?", (value, ID))
    return was


@pytest.mark.sampled(5)
@pytest.mark.promise(81)
@pytest.mark.parametrize(("column", "value"), COLUMNS)
def test_an_altered_column_is_told_by_command_and_call(daemon: Daemon, column: str, value: Any) -> None:
    was = put(daemon, column, value)
    try:
        told = f"Action {ID} isn't what was written: its {column} was altered."
        done = daemon.goex("show", ID)
        assert done.returncode == ExitStatus.CONFLICT, done
        assert told in done.stderr and "goex log --verify" in done.stderr
        with pytest.raises(grpc.RpcError) as caught:
            daemon.actions("Get", pb.ActionId(id=ID), socket=daemon.user_socket)
        assert caught.value.details() == told
        verified = daemon.goex("log", "--verify")
        assert verified.returncode == 1 and f"action {ID}" in verified.stdout.lower(), verified
    finally:
        put(daemon, column, was)
    assert daemon.goex("show", ID).returncode == 0
    assert daemon.goex("log", "--verify").returncode == 0


@pytest.mark.promise(81)
def test_an_altered_state_is_told_by_the_log_and_undo_and_a_daemon_starts_with_it(daemon: Daemon) -> None:
    was = put(daemon, "state", "nope")
    try:
        for again in (False, True):
            if again:
                daemon.restart()
            for arguments in (("log",), ("undo", ID), ("log", "--agent", "agent-1")):
                done = daemon.goex(*arguments)
                assert done.returncode == ExitStatus.CONFLICT, done
                assert "its state was altered" in done.stderr and "goex log --verify" in done.stderr
            assert daemon.person_action("a-000000000002") == "done", "the others are read"
            assert daemon.goex("log", "--verify").returncode == 1
    finally:
        put(daemon, "state", was)
    assert daemon.goex("log").returncode == 0
