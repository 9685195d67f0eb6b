"""How a command ends that was interrupted, or whose daemon was killed: with the action's id and what to do. And what
doctor says without Docker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import folder
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.person import QUESTION
from tests.support.terminal import Terminal

__all__ = ["folder"]
ID = r"(a-[0-9a-f]{12})"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


def running(daemon: Daemon, folder: Path) -> Terminal:
    """A program that runs until it is ended, allowed at a terminal."""
    terminal = daemon.terminal("exec", "--shell", "echo begun; sleep 600", "--folder", str(folder))
    terminal.expect(QUESTION)
    terminal.type("once")
    terminal.expect("Approval passphrase: ")
    terminal.type(APPROVAL_PASSPHRASE)
    terminal.expect("begun")
    return terminal


@pytest.mark.docker
def test_an_interrupt_while_it_runs_names_the_action(daemon: Daemon, folder: Path) -> None:
    with running(daemon, folder) as terminal:
        os.write(terminal._screen, b"\x03")
        id = terminal.expect(rf"Cancelled {ID}, which is (\w+) now\.")[1]
        terminal.expect(f"See what it did with: goex show {id}")
        assert terminal.wait() == 130
    assert daemon.goex("show", id).returncode == 0


@pytest.mark.docker
def test_a_killed_daemon_ends_with_the_action_and_what_to_do(daemon: Daemon, folder: Path) -> None:
    with running(daemon, folder) as terminal:
        daemon.kill()
        id = terminal.expect(rf"The action is {ID}\. See what became of it with: goex show (\1)")[1]
        terminal.expect("goex vault unlock|goex daemon start")
        assert terminal.wait() != 0
    daemon.goex("daemon", "stop")
    daemon.start()
    daemon.unlock()
    assert daemon.goex("show", id).returncode == 0


@pytest.mark.docker
def test_an_interrupt_at_the_question_names_the_action(daemon: Daemon, folder: Path) -> None:
    with daemon.terminal("exec", "--shell", "true", "--folder", str(folder)) as terminal:
        terminal.expect(QUESTION)
        os.kill(terminal.pid, signal.SIGINT)
        id = terminal.expect(rf"\nWithdrew {ID}: it was not run\.")[1]
        assert terminal.wait() == 130
        assert "goex show" not in terminal.text
    assert daemon.person_action(id) == "withdrawn"


@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1"])
def test_doctor_without_docker_never_names_itself(daemon: Daemon, host: str) -> None:
    env = {**daemon.env, "DOCKER_HOST": host}
    with Terminal([*daemon.terminal("--version")._argv[:1], "doctor"], env=env, cwd=daemon.home) as terminal:
        assert terminal.wait() == 8
    said = terminal.text.replace("\n", " ")
    assert "goex doctor" not in said, terminal.text
    assert f"Start the Docker engine at {host}" in " ".join(said.split())
