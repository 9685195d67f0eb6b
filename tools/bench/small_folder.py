"""`exec.folder.p50_ms`: a Python program that reads a folder of 100 files and 1 MB and writes one, at a gRPC client.

The value is the whole action, from `Execute` to the last event, in a real daemon, on a standing grant, with the machine
at rest before it: as when an agent thinks between two programs, a container waits for the folder. In `….cold` none
waits. `….owned_by_root` is the same on a folder that belongs to root, so that the program works on a copy. The floor is
a bare Python that runs the same program in the same folder.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from goex.rpc import goex_pb2 as pb
from runtimes.sandbox import images
from tests.support.daemon import Daemon
from tests.support.journey import Journey
from tools.bench.measure import Row, Timings, in_turn, quiet, row

NAME = "exec.folder.p50_ms"
FILES, BYTES = 100, 10**6
_OWNER = 1000
_PROGRAM = """\
from pathlib import Path
from zlib import crc32
sums = [crc32(file.read_bytes()) for file in sorted(Path().glob("*.dat"))]
Path("sum.txt").write_text(str(sum(sums)))
print(len(sums))
"""


async def measure(*, rounds: int = 30, rest: float = 5.0) -> tuple[Row, ...]:
    """`rest`: seconds, at most, in which the machine is waited for before each."""
    await asyncio.to_thread(images.build, "base")
    found = [
        await _one(NAME, _OWNER, rounds, rest),
        await _one(f"{NAME}.cold", _OWNER, rounds, rest, "[sandbox]\nwaiting = 0\n"),
    ]
    if os.geteuid() == 0:
        found.append(await _one(f"{NAME}.owned_by_root", 0, rounds, rest))
    return tuple(found)


async def _one(name: str, owner: int, rounds: int, rest: float, config: str = "") -> Row:
    values: list[float] = []
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as place, Daemon(config=config) as daemon:
        folder = Path(place) / "work"
        folder.mkdir()
        chance = random.Random(13)
        for number in range(FILES):
            (folder / f"f{number:03d}.dat").write_bytes(chance.randbytes(BYTES // FILES))
        if os.geteuid() == 0:
            for path in (folder.parent, folder, *folder.iterdir()):
                os.chown(path, owner, owner)
        token = daemon.add_agent("bench")
        program = pb.FilesProgram(folder=str(folder), language="python", program=_PROGRAM)
        request = pb.ExecuteRequest(files=program)
        granted = Journey(daemon, request, token=token).approve("permanent")
        assert granted.action.state == "done", granted

        def execute() -> None:
            finished = Journey(daemon, request, token=token).finished()
            assert finished.action.state == "done", finished

        async def value() -> None:
            await quiet(rest)
            began = time.perf_counter_ns()
            await asyncio.to_thread(execute)
            values.append((time.perf_counter_ns() - began) / 1e6)

        async def floor() -> None:
            argv = [sys.executable, "-I", "-c", _PROGRAM]
            await asyncio.to_thread(subprocess.run, argv, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        _, floors = await in_turn(value, floor, rounds=rounds, seconds=40)
    taken = Timings(tuple(values[-len(floors.each) :]))
    return row(name, taken, "a bare python, the same program", floors)
