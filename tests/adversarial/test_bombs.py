"""Programs that take all that they can get: each ends on time with its class, and a neighbour doesn't notice.

The neighbour does what ordinary programs do (files, processes, memory, output) again and again meanwhile, and says
after each round that all of it worked. In the control it shares the container of a bomb, and notices.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from policies.actions import Ended
from runtimes.sandbox.contract import Job, Limits, Profile, Result
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.adversarial.test_container import prepared

pytestmark = pytest.mark.docker

LIMITS = Limits(memory=96 * 2**20, cpus=0.5, pids=32, tmp=16 * 2**20, file_size=8 * 2**20, seconds=4.0, output=20_000)
PROFILE = Profile(limits=LIMITS)
LONG = Profile(limits=dataclasses.replace(LIMITS, seconds=240.0))  # for what ends before, by another class
ROOMY = Profile(limits=dataclasses.replace(LIMITS, seconds=240.0, output=10**6))
LATE = 30.0  # seconds after its limit: what a busy machine needs to end it, and far less than any of them would take

NEIGHBOUR = """
import os, sys, time
held = b"x" * (48 * 2**20)  # half of what it may have, as a program with data has: so the kernel would take it first
for number in range(ROUNDS):
    with open("/tmp/neighbour", "w") as file:
        file.write("x" * 2**20)
    with open("/tmp/neighbour") as file:
        assert len(file.read()) == 2**20
    assert len(bytearray(8 * 2**20)) == 8 * 2**20
    child = os.fork()
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    print("round", number, flush=True)
    time.sleep(0.05)
print("well", flush=True)
"""

TAKING = "import os, time\nwhile True:\n try: os.fork()\n except OSError: pass"
FULL = """
import time
for number in range(10**6):
    try:
        with open(f"/tmp/{number}", "wb", buffering=0) as file:
            file.write(bytes(2**20))
    except OSError as error:
        print(error.errno, flush=True)
        time.sleep(99)
"""
ZOMBIES = "import os, time\nfor _ in range(20):\n if os.fork() == 0: os._exit(0)\ntime.sleep(99)"
BOMBS: dict[str, tuple[str, Ended]] = {
    "zombies that nobody takes": (ZOMBIES, Ended.TIMEOUT),
    "a fork bomb": (TAKING, Ended.TIMEOUT),
    "a memory bomb": ("b = []\nwhile True: b.append(bytearray(2**20))", Ended.OUT_OF_MEMORY),
    "a disk bomb": (FULL, Ended.TIMEOUT),
    "a log bomb": ("while True: print('x' * 4000)", Ended.OUTPUT_CAP),
    "a log bomb on stderr": ("import os\nwhile True: os.write(2, b'x' * 4000)", Ended.OUTPUT_CAP),
    "sleeping for ever": ("import time; time.sleep(10**6)", Ended.TIMEOUT),
    "never idle": ("while True: pass", Ended.TIMEOUT),
    "deaf to signals": (
        "import signal, time\nfor n in range(1, 65):\n try: signal.signal(n, signal.SIG_IGN)\n"
        " except (OSError, ValueError): pass\ntime.sleep(99)",
        Ended.TIMEOUT,
    ),
}


def python(code: str, action: str = "a1") -> Job:
    return Job(action_id=action, argv=["python3", "-I", "-c", code])


@pytest.fixture(params=[pytest.param("cold", marks=pytest.mark.thorough), "warm"])
async def sandbox(request: pytest.FixtureRequest, sandbox_image: str, tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    bounds = PoolBounds(least=2, most=4) if request.param == "warm" else PoolBounds(least=0, most=0)
    made = DockerSandbox(f"bombs-{os.getpid()}", scratch_dir=tmp_path / "s", pool_dir=tmp_path / "w", bounds=bounds)
    if request.param == "warm":
        await prepared(made, PROFILE)
    yield made
    await made.close()


@pytest.mark.promise(49)
async def test_each_ends_with_its_class_and_the_neighbour_does_not_notice(sandbox: DockerSandbox) -> None:
    said: list[bytes] = []
    began = asyncio.Event()

    def hears(_: str, data: bytes) -> None:
        said.append(data)
        began.set()

    beside = python(NEIGHBOUR.replace("ROUNDS", "150"), "neighbour")
    neighbour = asyncio.create_task(sandbox.run(beside, ROOMY, hears))
    await began.wait()
    places = asyncio.Semaphore(3)

    async def explode(name: str) -> tuple[str, Result]:
        async with places:
            code, end = BOMBS[name]
            return name, await sandbox.run(python(code, name), PROFILE if end is Ended.TIMEOUT else LONG)

    killed = asyncio.create_task(sandbox.run(python("import time; time.sleep(99)", "killed"), ROOMY))
    results = dict(await asyncio.gather(*(explode(name) for name in BOMBS)))
    await sandbox.kill("killed")
    assert (await killed).ended is Ended.KILLED
    assert {name: result.ended for name, result in results.items()} == {name: end for name, (_, end) in BOMBS.items()}
    late = {name for name, result in results.items() if result.seconds > LIMITS.seconds + LATE}
    assert not late & {name for name, (_, end) in BOMBS.items() if end is Ended.TIMEOUT}
    assert results["a log bomb"].cut > 0 and len(results["a log bomb"].stdout) == LIMITS.output
    assert results["a disk bomb"].stdout == b"28\n"  # ENOSPC
    result = await neighbour
    assert (result.ended, result.exit_code, result.stderr) == (Ended.EXITED, 0, b"")
    assert b"".join(said).endswith(b"round 149\nwell\n")


@pytest.mark.promise(49)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["a fork bomb", "a memory bomb", "a disk bomb"])
async def test_control_within_one_container_the_neighbour_notices(
    sandbox_image: str, tmp_path: Path, name: str
) -> None:
    made = DockerSandbox(f"bombs-{os.getpid()}", scratch_dir=tmp_path)
    # Memory is taken from whoever has most of it by then; of the rest whoever comes later finds nothing left.
    bomb, beside = ("sleep 0.5; ", "") if name == "a memory bomb" else ("", "sleep 0.5; ")
    job = Job(
        action_id="a1",
        argv=[
            "sh",
            "-c",
            f"({bomb}exec python3 -I /goex/job/bomb.py) & {beside}exec python3 -I /goex/job/neighbour.py",
        ],
        files={"bomb.py": BOMBS[name][0].encode(), "neighbour.py": NEIGHBOUR.replace("ROUNDS", "60").encode()},
    )
    try:
        result = await made.run(job, PROFILE)
    finally:
        await made.close()
    assert (result.ended, result.exit_code) != (Ended.EXITED, 0)
    assert b"well" not in result.stdout
