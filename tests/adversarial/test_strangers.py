"""Attacks by another user of the machine, whom no socket is for: what it costs to refuse them again and again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import unsafe
from tests.adversarial.test_state_files import outside
from tests.support.daemon import Daemon

__all__ = ["outside"]

_NOBODY, _SOMEBODY = 65534, 65533
_TIMES = 300
_KNOCK = f"""
import socket, sys
for _ in range({_TIMES}):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(sys.argv[1])
        made.recv(1)
"""


def knocked(place: Path, *without: str) -> int:
    """How many rows of the log it costs that somebody, whom the socket isn't for, connects again and again."""
    place.mkdir(mode=0o755)
    config = f'[[agent_socket]]\npath = "{place}/agent.sock"\nusers = [{_SOMEBODY}]\n'
    with Daemon(config=config, env=unsafe(*without)) as daemon:
        before = daemon.person("Log", pb.LogRequest(limit=1)).rows[0].number
        as_nobody = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        done = subprocess.run([*as_nobody, sys.executable, "-I", "-c", _KNOCK, f"{place}/agent.sock"], check=False)
        assert done.returncode == 0
        return int(daemon.person("Log", pb.LogRequest(limit=1)).rows[0].number - before)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")


@needs_root
@pytest.mark.promise(16)
def test_it_costs_nothing(outside: Path) -> None:
    assert 1 <= knocked(outside) <= 2


@needs_root
def test_control(outside: Path) -> None:
    assert knocked(outside, "told seldom") >= _TIMES
