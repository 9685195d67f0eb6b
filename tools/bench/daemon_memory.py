"""`daemon.rss_mb`: all the resident memory of a daemon after its first action, a program on a folder.

Libraries that other processes share are counted in full, in MB of 1,000,000 bytes. The daemon was started on a state
folder that is there already. The floor is an interpreter with the libraries that it can't do without: grpc, sqlalchemy,
cryptography, cedarpy.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from runtimes.sandbox import images
from tests.support.daemon import Daemon
from tests.support.journey import Journey, shell
from tools.bench.measure import Row, Timings, row

NAME = "daemon.rss_mb"
ROUNDS = 5
_LIBRARIES = (
    "import asyncio, cedarpy, grpc, grpc.aio, sqlalchemy, sys; "
    "import cryptography.hazmat.primitives.ciphers.aead; sys.stdin.read()"
)


async def measure(rounds: int = ROUNDS) -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "base")
    values, floors = await asyncio.to_thread(lambda: ([_after_an_action() for _ in range(rounds)], _floors(rounds)))
    return (row(NAME, Timings(tuple(values)), "its libraries", Timings(tuple(floors)), unit="MB"),)


def _after_an_action() -> float:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder, Daemon(fresh=True) as daemon:
        daemon.restart()
        finished = Journey(daemon, shell(Path(folder), "true"), person=True).approve()
        assert finished.action.state == "done", finished
        return resident(daemon.pid)


def _floors(rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        with subprocess.Popen([sys.executable, "-c", _LIBRARIES], stdin=subprocess.PIPE) as process:
            while "cedarpy" not in Path(f"/proc/{process.pid}/maps").read_text():
                pass
            found.append(resident(process.pid))
    return found


def resident(pid: int) -> float:
    """The process's resident memory, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / 1e6
