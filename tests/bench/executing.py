"""`exec.p50_ms`: a whole action as an agent's gRPC client sees it, from `Execute` to the last event.

It runs the program `true` on a folder of three small files, on a standing grant, in a real daemon with its journal:
received, assessed, decided, snapshot, container, recorded. The floor is the sandbox alone with the same program on the
same folder.

`exec.warm.p50_ms` is the same for one line of Python that may use a service (`exec --code`), in a container that
waited, with the gateway opened for it. Its floor is a bare interpreter with the same line, started as a process.
"""

# Waiting by looking, and a process that is waited for, disturb nothing that is measured here.
# ruff: noqa: ASYNC110, ASYNC221
from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goex.rpc import goex_pb2 as pb
from runtimes.sandbox import images
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.bench.measure import Row, Timings, in_turn, row
from tests.support.containers import waiting
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, shell

NAME, WARM = "exec.p50_ms", "exec.warm.p50_ms"
NOBODY = 65534
LINE = "print(sum(range(10)))"
_SETTLED = 1.5  # seconds after one says that it waits, in which it loads what jobs are likely to need


async def measure() -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "base")
    with _folder() as folder, Daemon() as daemon, tempfile.TemporaryDirectory(prefix="goex-bench-") as scratch:
        token = daemon.add_agent("bench")
        request = shell(folder, "true")
        granted = Journey(daemon, request, token=token).approve("permanent")
        assert granted.action.state == "done", granted
        sandbox = DockerSandbox("bench", scratch_dir=Path(scratch) / "scratch")
        owner = folder.stat()
        job = Job(action_id="a-1", argv=("sh", "-c", "true"), folder=str(folder), uid=owner.st_uid, gid=owner.st_gid)

        def execute() -> None:
            finished = Journey(daemon, request, token=token).finished()
            assert finished.action.state == "done", finished

        async def value() -> None:
            await asyncio.to_thread(execute)

        async def floor() -> None:
            result = await sandbox.run(job, Profile())
            assert result.exit_code == 0, result

        try:
            timings = await in_turn(value, floor, rounds=30, seconds=50)
        finally:
            await sandbox.close()
    return (row(NAME, timings[0], "the sandbox alone", timings[1]),)


async def measure_warm() -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "code")
    values: list[float] = []
    floors: list[float] = []
    with Daemon() as daemon:
        token = daemon.add_agent("bench")
        account = pb.VaultPutRequest(service="slack", account="work", secret=b"xoxb-1", passphrase=APPROVAL_PASSPHRASE)
        daemon.person("VaultPut", account)
        program = pb.CodeProgram(language="python", program=LINE, services=["slack/work"])
        request = pb.ExecuteRequest(code=program)
        granted = Journey(daemon, request, token=token).approve("permanent")
        assert granted.action.state == "done", granted

        async def settled() -> None:
            while waiting(daemon.run_dir) < 2:
                await asyncio.sleep(0.05)
            await asyncio.sleep(_SETTLED)

        async def value() -> None:
            await settled()
            began = time.perf_counter_ns()
            finished = Journey(daemon, request, token=token).finished()
            values.append((time.perf_counter_ns() - began) / 1e6)
            assert finished.action.state == "done", finished

        async def floor() -> None:
            began = time.perf_counter_ns()
            subprocess.run([sys.executable, "-I", "-c", LINE], check=True, stdout=subprocess.PIPE)
            floors.append((time.perf_counter_ns() - began) / 1e6)

        timings, _ = await in_turn(value, floor, rounds=30, seconds=60)
        count = len(timings.each)
    return (row(WARM, Timings(tuple(values[-count:])), "a bare python process", Timings(tuple(floors[-count:]))),)


@contextmanager
def _folder() -> Iterator[Path]:
    """A small folder that belongs to an ordinary user."""
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as outer:
        folder = Path(outer) / "work"
        folder.mkdir()
        for name in ("one", "two", "three"):
            (folder / f"{name}.txt").write_text(f"{name}\n")
        if os.geteuid() == 0:
            for path in (folder.parent, folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        yield folder
