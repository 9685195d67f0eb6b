"""`make soak`: thousands of jobs through the pool, one after the other and eight at a time; nothing of them is left.

Every job has a file, a socket, a variable, and leaves something running and written. In between are jobs that are
killed, time out, write too much or run out of memory. Counted before and after: this process's descriptors, threads and
memory, the engine's containers and networks, mounts, the sandbox's folders. Each mark is shown while it runs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import docker

from policies.actions import Ended
from runtimes.sandbox import images, spec
from runtimes.sandbox.bounds import Bounds
from runtimes.sandbox.contract import Job, Limits, Profile
from runtimes.sandbox.docker import DockerSandbox

AT_ONCE = 8
PROFILE = Profile(limits=Limits(memory=64 * 2**20, pids=32, tmp=16 * 2**20, seconds=20.0, output=4_000))
# What may grow, whatever the number of jobs: megabytes of this process, and the threads of its two small pools.
GROWTH = {"memory": 24.0, "threads": 24}
LEAVES = """\
import os, socket, sys, time
assert open('/goex/job/note').read() == os.environ['NUMBER'] == sys.argv[1]
s = socket.socket(socket.AF_UNIX); s.connect('/goex/gateway/gw.sock'); assert s.recv(9) == b'you'
open('/tmp/left', 'x').write('left'); open('/dev/shm/left', 'x').write('left')
if os.fork() == 0:
    os.setsid(); time.sleep(600)
print(sys.argv[1])
"""
ODD = {
    Ended.OUTPUT_CAP: "import sys\nwhile True: sys.stdout.write('x' * 4096)",
    Ended.OUT_OF_MEMORY: "x = bytearray(200 * 2**20)",
    Ended.KILLED: "import time; print('begun', flush=True); time.sleep(60)",
}


@dataclass(frozen=True)
class Mark:
    """What there is of each thing. Memory in megabytes."""

    containers: int
    networks: int
    mounts: int
    descriptors: int
    threads: int
    folders: int
    memory: float


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 when something is left."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--actions", type=int, default=10_000, help="how many jobs (default: 10000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long, whatever was reached")
    wanted = parser.parse_args(argv)
    done, problems = asyncio.run(soak(wanted.actions, wanted.minutes * 60))
    for problem in problems:
        print(f"left: {problem}")
    print(f"{done} actions; {'nothing of them is left' if not problems else 'see above'}")
    return 1 if problems else 0


async def soak(actions: int, seconds: float = 3600.0, say: bool = True) -> tuple[int, list[str]]:
    """Run so many jobs, fewer when the time is over. Returns how many ran, and what is left of them."""
    await asyncio.to_thread(images.build, "base")
    with tempfile.TemporaryDirectory(prefix="goex-soak-") as outer:
        folder, state = Path(outer), f"soak-{os.getpid()}"
        place = folder / "place"
        place.mkdir()
        sandbox = DockerSandbox(
            state, scratch_dir=folder / "scratch", waiting_dir=folder / "waiting", bounds=Bounds(least=2, most=4)
        )

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"you")
            writer.close()

        async with await asyncio.start_unix_server(answer, place / "gw.sock"):
            (place / "gw.sock").chmod(0o666)
            sandbox.prepare(PROFILE)
            await _some(sandbox, place, 2 * AT_ONCE, 0)  # what is loaded and opened once
            before = await _mark(sandbox, folder, state)
            if say:
                print(f"{0:6} {asdict(before)}", flush=True)
            done, until = 0, time.monotonic() + seconds
            while done < actions and time.monotonic() < until:
                step = min(500, actions - done)
                await _some(sandbox, place, step, done)
                done += step
                after = await _mark(sandbox, folder, state)
                if say:
                    print(f"{done:6} {asdict(after)}", flush=True)
        await sandbox.close()
        left = sorted(path.name for each in ("scratch", "waiting") for path in (folder / each).glob("*"))
    return done, grown(before, after) + [f"{name} of the sandbox's folders" for name in left]


def grown(before: Mark, after: Mark) -> list[str]:
    """What there is more of than there may be."""
    said = []
    for name, count in asdict(after).items():
        allowed = asdict(before)[name] + GROWTH.get(name, 0)
        if count > allowed:
            said.append(f"{name}: {asdict(before)[name]:g} before, {count:g} after")
    return said


async def _some(sandbox: DockerSandbox, place: Path, count: int, first: int) -> None:
    left = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with left:
            await (_odd(sandbox, number) if number % 50 == 49 else _plain(sandbox, place, number))

    await asyncio.gather(*(one(first + each) for each in range(count)))


async def _plain(sandbox: DockerSandbox, place: Path, number: int) -> None:
    job = Job(
        action_id=f"a-{number}",
        argv=("/usr/bin/python3", "-I", "-S", "/goex/job/code.py", str(number)),
        files={"code.py": LEAVES.encode(), "note": str(number).encode()},
        env={"NUMBER": str(number)},
        socket_dir=str(place),
    )
    result = await sandbox.run(job, PROFILE)
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, 0, f"{number}\n".encode()), result


async def _odd(sandbox: DockerSandbox, number: int) -> None:
    ended = tuple(ODD)[number // 50 % len(ODD)]
    job = Job(action_id=f"a-{number}", argv=("python3", "-I", "-S", "-c", ODD[ended]))

    def output(stream: str, data: bytes) -> None:
        if ended is Ended.KILLED:
            killing.append(asyncio.ensure_future(sandbox.kill(job.action_id)))

    killing: list[asyncio.Future[None]] = []
    result = await sandbox.run(job, PROFILE, output)
    assert result.ended is ended, result
    await asyncio.gather(*killing)


async def _mark(sandbox: DockerSandbox, folder: Path, state: str) -> Mark:
    """What there is when all is still: the pool is full again, the last removals are over."""
    until = time.monotonic() + 60
    while (seen := await asyncio.to_thread(_look, sandbox, folder, state)).containers != sandbox.waiting(PROFILE):
        assert time.monotonic() < until, f"{seen.containers} containers, {sandbox.waiting(PROFILE)} of them wait"
        await asyncio.sleep(0.2)
    extra = sandbox.waiting(PROFILE)
    # One that waits has a container, a folder, a connection; how many wait may differ.
    return Mark(
        containers=seen.containers - extra,
        networks=seen.networks,
        mounts=seen.mounts,
        descriptors=seen.descriptors - extra,
        threads=seen.threads,
        folders=seen.folders - extra,
        memory=seen.memory,
    )


def _look(sandbox: DockerSandbox, folder: Path, state: str) -> Mark:
    client = docker.APIClient()
    try:
        containers = len(client.containers(all=True, filters={"label": f"{spec.STATE_LABEL}={state}"}))
        networks = len(client.networks())
    finally:
        client.close()
    resident = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return Mark(
        containers=containers,
        networks=networks,
        mounts=sum(str(folder) in line for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        folders=len(list((folder / "waiting").glob("*/*"))) + len(list((folder / "scratch").glob("*/*"))),
        memory=int(resident.split()[1]) / 1024,
    )


if __name__ == "__main__":
    sys.exit(main())
