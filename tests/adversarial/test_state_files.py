"""Attacks by whoever could once write the daemon's files, to see or to have afterwards what others asked for."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import unsafe
from tests.support.daemon import Daemon, DaemonError
from tests.support.journey import Journey, shell

pytestmark = pytest.mark.docker

WORDS = "words-of-another-agent"
_NOBODY = 65534
Outside = Callable[[Path, Path], None]


def linked(file: Path, outside: Path) -> None:
    file.rename(outside)
    outside.chmod(0o666)
    file.symlink_to(outside)


def opened(file: Path, outside: Path) -> None:
    file.chmod(0o666)
    os.link(file, outside)


def another_users(file: Path, outside: Path) -> None:
    os.chown(file, _NOBODY, _NOBODY)
    os.link(file, outside)


PLACED: dict[str, Outside] = {
    "a_database_elsewhere": linked,
    "a_database_open_to_all": opened,
    "a_database_of_another_user": another_users,
}
_TRIGGER = "CREATE TRIGGER t AFTER INSERT ON actions BEGIN UPDATE actions SET agent = 'thief' WHERE id = NEW.id; END"


def read_by_another_user(daemon: Daemon, place: Outside, outside: Path, folder: Path) -> bool:
    """Whether another user reads what an agent asks for afterwards."""
    scout = daemon.add_agent("scout")
    daemon.stop()
    with closing(sqlite3.connect(daemon.state_dir / "state.db")) as database:  # else it is in the log beside it
        database.execute("PRAGMA journal_mode=DELETE")
    place(daemon.state_dir / "state.db", outside)
    try:
        daemon.start()
    except DaemonError as error:
        assert f"{daemon.state_dir / 'state.db'} " in str(error)
        return False
    daemon.unlock()
    journey = Journey(daemon, shell(folder, f"echo {WORDS}"), token=scout)
    journey.asked()
    journey.leave()
    daemon.stop()  # what is in the log beside it is in the file now
    seen = subprocess.run(
        ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "grep", "-c", WORDS, outside],
        check=False,
        capture_output=True,
    )
    return seen.returncode == 0


def given_by_a_trigger(daemon: Daemon) -> bool:
    """Whether an agent has what another asks for, by what it left in the file."""
    scout, thief = daemon.add_agent("scout"), daemon.add_agent("thief")
    daemon.stop()
    with closing(sqlite3.connect(daemon.state_dir / "state.db")) as database:
        database.execute(_TRIGGER)
        database.commit()
    try:
        daemon.start()
    except DaemonError as error:
        assert "which GoEx never made" in str(error)
        return False
    daemon.unlock()
    journey = Journey(daemon, pb.ExecuteRequest(intent=WORDS), token=scout)
    with suppress(grpc.RpcError):
        journey.finished()
    try:
        return WORDS in str(daemon.actions("Get", pb.ActionId(id=journey.action_id), token=thief))
    except grpc.RpcError:
        return False


def replaced_by_another_user(folder: Path, *without: str) -> bool:
    """Whether another user takes the place of the socket that agents give their tokens to."""
    folder.mkdir()
    folder.chmod(0o777)
    config = f'[[agent_socket]]\npath = "{folder}/agent.sock"\nusers = [{_NOBODY}]\n'
    try:
        with Daemon(config=config, env=unsafe(*without)):
            move = ["mv", f"{folder}/agent.sock", f"{folder}/moved"]
            moved = subprocess.run(["setpriv", f"--reuid={_NOBODY}", "--clear-groups", *move], check=False)
            return moved.returncode == 0
    except DaemonError as error:
        assert "may be replaced" in str(error)
        return False


@pytest.fixture
def outside() -> Iterator[Path]:
    """A name where everybody can look, on the same disk as the daemon's state."""
    made = Path(f"/tmp/goex-outside-{os.urandom(8).hex()}")
    yield made
    if made.is_dir():
        shutil.rmtree(made)
    made.unlink(missing_ok=True)


@pytest.mark.promise(84)
@pytest.mark.parametrize("name", PLACED)
def test_another_user_reads_nothing(outside: Path, tmp_path: Path, name: str) -> None:
    with Daemon() as daemon:
        assert not read_by_another_user(daemon, PLACED[name], outside, tmp_path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PLACED)
def test_control_another_user(outside: Path, tmp_path: Path, name: str) -> None:
    with Daemon(env=unsafe("private files")) as daemon:
        assert read_by_another_user(daemon, PLACED[name], outside, tmp_path)


@pytest.mark.promise(7)
def test_a_trigger_gives_nobody_anything() -> None:
    with Daemon() as daemon:
        assert not given_by_a_trigger(daemon)


def test_control_trigger() -> None:
    with Daemon(env=unsafe("own tables")) as daemon:
        assert given_by_a_trigger(daemon)


@pytest.mark.promise(84)
def test_nobody_replaces_the_agents_socket(outside: Path) -> None:
    assert not replaced_by_another_user(outside)


def test_control_replaced_socket(outside: Path) -> None:
    assert replaced_by_another_user(outside, "private files")
