"""A Node client, made from the proto alone, runs an action as an agent and can't decide one.

Its two packages are installed once, into `.cache`, by the pins and hashes of node/package-lock.json.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.acceptance import clients
from tests.acceptance.clients import PROTO, Client
from tests.support.daemon import Daemon
from tests.support.npm import node_modules

SOURCE = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def client() -> Client:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node isn't installed")
    modules = node_modules(SOURCE, "node-client")
    env = {"PATH": os.environ["PATH"], "NODE_PATH": str(modules)}
    return Client([node, str(SOURCE / "client.cjs"), str(PROTO)], env)


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
