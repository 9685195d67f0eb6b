"""`sandbox.warm.p50_ms`: one Python job, bound to a container that waits: its file, its command, its output, its end.

The floor is what the same file takes a bare interpreter on this machine (`python -I`), started as a process. The 95th
percentile is in the same row. `sandbox.idle_mb` is what one container that waits takes, as its control group counts;
its floor is a bare interpreter's private memory. `sandbox.sustained_per_s` is how many jobs a second run as fast as
they can, eight at a time, the making of the containers included; its floor is the engine's four calls (create, start,
wait, remove) with the same configuration, eight at a time, through its own library. Both go in turn, 24 at a time.
`sandbox.burst_ms` is until 32 that came at once have all ended; its floor is the library's.
"""

# Waiting by looking, and blocking calls, disturb nothing that is measured here.
# ruff: noqa: ASYNC110, ASYNC220, ASYNC221
from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import docker

from runtimes.sandbox import images, memory, spec
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tools.bench.measure import Once, Row, Timings, in_turn, row

NAME = "sandbox.warm.p50_ms"
IDLE, SUSTAINED, BURST = "sandbox.idle_mb", "sandbox.sustained_per_s", "sandbox.burst_ms"
LINE = "print(sum(range(10)))\n"
CODE = LINE.encode()
JOB = Job(action_id="a-1", argv=("/usr/bin/python3", "-I", "-S", "/goex/job/code.py"), files={"code.py": CODE})
TRUE = Job(action_id="a-1", argv=("true",))
AT_ONCE, ALL, ROUNDS = 8, 24, 5
BURSTING = 32
STATE = f"bench-{os.getpid()}"
LOADING = 0.3  # seconds in which one that waits loads what jobs are likely to need


async def measure() -> tuple[Row, ...]:
    await asyncio.to_thread(images.build, "base")
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        return (await _one(Path(folder)), await idle(Path(folder)), *await _sustained(Path(folder)))


@asynccontextmanager
async def pooled(folder: Path, bounds: PoolBounds) -> AsyncIterator[DockerSandbox]:
    made = DockerSandbox(STATE, scratch_dir=folder / "scratch", pool_dir=folder / "waiting", bounds=bounds)
    made.prepare(Profile())
    try:
        yield made
    finally:
        await made.close()


async def _waits(sandbox: DockerSandbox, count: int) -> None:
    while sandbox.pooled(Profile()) < count:
        await asyncio.sleep(0.02)


async def loaded(sandbox: DockerSandbox, count: int) -> None:
    """So many wait, have loaded what they load, and the engine's work on the last one is done."""
    await _waits(sandbox, count)
    await asyncio.sleep(LOADING)


async def _one(folder: Path) -> Row:
    code = folder / "code.py"
    code.write_bytes(CODE)
    taken: list[float] = []
    async with pooled(folder, PoolBounds(least=2, most=2)) as sandbox:

        async def value() -> None:
            await loaded(sandbox, 2)
            began = time.perf_counter_ns()
            result = await sandbox.run(JOB, Profile())
            taken.append((time.perf_counter_ns() - began) / 1e6)
            assert (result.exit_code, result.stdout) == (0, b"45\n"), result

        async def floor() -> None:
            await loaded(sandbox, 2)
            began = time.perf_counter_ns()
            subprocess.run([sys.executable, "-I", str(code)], check=True, stdout=subprocess.PIPE)
            floors.append((time.perf_counter_ns() - began) / 1e6)

        floors: list[float] = []
        timings, _ = await in_turn(value, floor, rounds=50, seconds=60)
        count = len(timings.each)
    return row(NAME, Timings(tuple(taken[-count:])), "a bare python process", Timings(tuple(floors[-count:])))


async def idle(folder: Path) -> Row:
    """The row `sandbox.idle_mb`, of four containers that wait."""
    async with pooled(folder, PoolBounds(least=4, most=4)) as sandbox:
        await _waits(sandbox, 4)
        await asyncio.sleep(3 * LOADING)
        client = docker.APIClient()
        found = client.containers(filters={"label": f"{spec.STATE_LABEL}={STATE}"})
        pids = [int(client.inspect_container(each["Id"])["State"]["Pid"]) for each in found]
        client.close()
        each = Timings(tuple(_usage(pid) / 2**20 for pid in pids))
    bare = subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        await asyncio.sleep(0.5)
        floor = Timings((_private(bare.pid),))
    finally:
        bare.communicate(b"\n")
    return row(IDLE, each, "a bare python process", floor, unit="MB")


def _usage(pid: int) -> int:
    """Bytes that the control group of that process is charged with, what could be given back at once left out. 0 where
    this machine doesn't show it."""
    file = memory.counter(pid)
    if file is None:
        return 0
    used = file.with_name("memory.current" if file.name == "memory.events" else "memory.usage_in_bytes")
    stat = dict(line.split() for line in file.with_name("memory.stat").read_text().splitlines())
    return int(used.read_text()) - int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))


def _private(pid: int) -> float:
    """Megabytes that belong to that process alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


async def _sustained(folder: Path) -> tuple[Row, Row]:
    image = await asyncio.to_thread(images.build, "base")
    identity = spec.Identity(state_id="bench", instance="floor")
    config = spec.container(TRUE, Profile(), image, identity, None, frozenset())
    client = docker.APIClient(num_pools=AT_ONCE * 2)

    def by_library() -> None:
        made = client.create_container_from_config(config)  # type: ignore[no-untyped-call] # the stubs lack it
        client.start(made)
        assert client.wait(made)["StatusCode"] == 0
        client.remove_container(made, force=True, v=True)

    async def floor() -> None:
        await asyncio.to_thread(by_library)

    rates: list[float] = []
    floors: list[float] = []
    async with pooled(folder, PoolBounds(least=2, most=16)) as sandbox:

        async def value() -> None:
            assert (await sandbox.run(TRUE, Profile())).exit_code == 0

        for _ in range(ROUNDS):
            await loaded(sandbox, 2)
            rates.append(ALL / await _taken(value, ALL, AT_ONCE))
            await loaded(sandbox, 2)
            floors.append(ALL / await _taken(floor, ALL, AT_ONCE))
        await loaded(sandbox, 2)
        burst = await _taken(value, BURSTING, BURSTING) * 1000
        await loaded(sandbox, 2)
        burst_floor = await _taken(floor, BURSTING, BURSTING) * 1000
    with contextlib.suppress(Exception):
        client.close()
    library = "docker-py, same configuration"
    return (
        row(SUSTAINED, Timings(tuple(rates)), library, Timings(tuple(floors)), unit="/s"),
        row(BURST, Timings((burst,)), library, Timings((burst_floor,))),
    )


async def _taken(once: Once, count: int, at_once: int) -> float:
    """The seconds until `count` have ended, so many at once."""
    left = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with left:
            await once()

    began = time.monotonic()
    await asyncio.gather(*(one() for _ in range(count)))
    return time.monotonic() - began
