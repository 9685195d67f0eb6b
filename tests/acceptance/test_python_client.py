"""A Python client, generated here from the proto alone, runs an action as an agent and can't decide one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance import clients
from tests.acceptance.clients import PROTO, Client
from tests.support.daemon import Daemon

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    stubs = tmp_path_factory.mktemp("stubs")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{PROTO.parent}",
            f"--python_out={stubs}",
            f"--grpc_python_out={stubs}",
            PROTO.name,
        ],
        check=True,
        timeout=300,
    )
    return Client([sys.executable, str(HERE / "python_client.py"), str(stubs), ""], {"PATH": os.environ["PATH"]})


@pytest.mark.docker
def test_runs_what_its_person_approves(client: Client, daemon: Daemon, folder: Path) -> None:
    clients.an_agent_runs_what_its_person_approves(client, daemon, folder)


@pytest.mark.promise(3)
def test_decides_nothing(client: Client, daemon: Daemon) -> None:
    clients.an_agent_decides_nothing(client, daemon)


def test_the_same_calls_reach_the_person_s_socket(client: Client, daemon: Daemon) -> None:
    clients.the_person_can_reach_what_an_agent_cannot(client, daemon)


@pytest.mark.docker
def test_what_nobody_approves_does_not_run(client: Client, daemon: Daemon, folder: Path) -> None:
    clients.what_nobody_approves_does_not_run(client, daemon, folder)


@pytest.mark.docker
def test_sees_its_own_actions_alone(client: Client, daemon: Daemon, folder: Path) -> None:
    clients.an_agent_sees_its_own_actions_alone(client, daemon, folder)


def test_a_wrong_token_is_refused(client: Client, daemon: Daemon) -> None:
    clients.a_wrong_token_is_refused(client, daemon)
