"""A Node client, made from the proto alone, runs an action as an agent and can't decide one.

Its two packages are installed once, into `.cache/node`, by the pins and hashes of node/package-lock.json.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance import clients
from tests.acceptance.clients import PROTO, ROOT, Client
from tests.support.daemon import Daemon

SOURCE = Path(__file__).parent / "node"
CACHE = ROOT / ".cache" / "node"


@pytest.fixture(scope="module")
def client() -> Client:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm aren't installed")
    lock = (SOURCE / "package-lock.json").read_bytes()
    stamp = CACHE / f".done-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not stamp.exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / name, CACHE)
        # No script of a package runs: none of these needs one, and it would run as whoever tests.
        subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=CACHE,
            check=True,
            timeout=550,
            stdin=subprocess.DEVNULL,
        )
        stamp.touch()
    env = {"PATH": os.environ["PATH"], "NODE_PATH": str(CACHE / "node_modules")}
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
