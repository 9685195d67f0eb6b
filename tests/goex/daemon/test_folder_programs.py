"""Programs on a folder, one after the other, through the daemon: the second runs in a container that waited for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.containers import WAIT, one_waits_with, owned, waiting_with
from tests.support.daemon import Daemon
from tests.support.journey import Journey

pytestmark = pytest.mark.docker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    made = tmp_path / "notes"
    made.mkdir()
    return owned(made)


def run(daemon: Daemon, folder: Path, program: str) -> pb.Finished:
    files = pb.FilesProgram(folder=str(folder), language="shell", program=program)
    return Journey(daemon, pb.ExecuteRequest(files=files), person=True).approve()


@pytest.fixture
def own() -> Iterator[Daemon]:
    with Daemon(config=WAIT) as daemon:
        yield daemon


def test_the_next_program_there_runs_in_one_that_waited_and_is_undone_as_any(own: Daemon, folder: Path) -> None:
    first = run(own, folder, "echo one > a.txt")
    assert first.action.state == "done", first
    waits = one_waits_with(folder, own.run_dir)
    second = run(own, folder, "cat a.txt; echo two >> a.txt; pwd")
    assert json.loads(second.action.outcome_json)["stdout"] == "one\n/work\n"
    assert (folder / "a.txt").read_text() == "one\ntwo\n"
    assert (folder / "a.txt").stat().st_uid == folder.stat().st_uid
    assert waits not in waiting_with(folder, own.run_dir)  # it was used, and is used once
    undone = Journey(own, pb.RevertRequest(action_id=second.action.id, verb="undo"), person=True).approve()
    assert undone.action.state == "done" and (folder / "a.txt").read_text() == "one\n"
    last = one_waits_with(folder, own.run_dir)
    own.stop()
    with closing(docker.from_env().api) as client:
        assert last not in [each["Id"] for each in client.containers(all=True)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_folder_that_was_made_read_only_is_so_for_the_next(own: Daemon, folder: Path) -> None:
    """The same device and inode, reached by another mount: one that waited had the old one."""
    run(own, folder, "echo one > a.txt")
    one_waits_with(folder, own.run_dir)
    mount = ("mount", "--bind", str(folder), str(folder))
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mounting isn't permitted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        second = run(own, folder, "echo two >> a.txt")
        outcome = json.loads(second.action.outcome_json)
        assert not outcome["touched"] and "Read-only file system" in outcome["stderr"], outcome
        assert (folder / "a.txt").read_text() == "one\n"
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_that_was_put_in_its_place_has_none_waiting(own: Daemon, folder: Path) -> None:
    run(own, folder, "echo one > a.txt")
    one_waits_with(folder, own.run_dir)
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    owned(folder)
    ended = run(own, folder, "ls; echo two > b.txt")
    assert ended.action.state == "done" and json.loads(ended.action.outcome_json)["stdout"] == ""
    assert (folder / "b.txt").read_text() == "two\n"
    assert sorted(path.name for path in folder.with_name("moved").iterdir()) == ["a.txt"]
