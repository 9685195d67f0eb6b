"""`exec.p50_ms`: a whole action as an agent's gRPC client sees it, from `Execute` to the last event.

It runs the program `true` on a folder of three small files, on a standing grant, in a real daemon with its journal:
received, assessed, decided, snapshot, container, recorded. The floor is the sandbox alone with the same program on the
same folder.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtimes.sandbox import images
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.support.daemon import Daemon
from tests.support.journey import Journey, shell
from tools.bench.measure import Row, in_turn, row

NAME = "exec.p50_ms"
NOBODY = 65534


async def measure() -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "base")
    with _folder() as folder, Daemon() as daemon, tempfile.TemporaryDirectory(prefix="goex-bench-") as scratch:
        token = daemon.add_agent("bench")
        request = shell(folder, "true")
        granted = Journey(daemon, request, token=token).approve("permanent")
        assert granted.action.state == "done", granted
        sandbox = DockerSandbox(f"bench-{os.getpid()}", scratch_dir=Path(scratch) / "scratch")
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
