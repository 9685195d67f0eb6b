"""`sandbox.beside.*`: one line of Python in a container, in GoEx's way and in others', in turn in one run.

The value is ours: a container that waited, used once (`sandbox.warm.p50_ms`). The floors are what else there is: the
docker command with the same flags, the engine's library with the same configuration, `docker exec` into one container
that stays, and two peers in environments of their own (`make peers`): epicbox, a fresh container each, and swe-rex, one
container that is used again. A peer that isn't installed is left out, and that is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import docker

from runtimes.sandbox import images, spec
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.pool_bounds import PoolBounds
from tools.bench.measure import Row, Timings, row, timed
from tools.bench.sandbox import flags
from tools.bench.warm_container import LINE, loaded, pooled

NAME = "sandbox.beside"
ROUNDS, THROWN = 12, 2
PEERS = {"epicbox": "epicbox, fresh each time", "swe-rex": "swe-rex, used again"}
_HERE = Path(__file__).resolve().parent
_PLACE = _HERE.parents[1] / ".cache" / "peers"
_ARGV = ("/usr/bin/python3", "-I", "-S", "-c", LINE)

Peer = Callable[[], float | None]  # milliseconds; None: measured from outside


async def measure() -> tuple[Row, ...]:
    image = await asyncio.to_thread(images.build, "base")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goex-bench-")))
        peers = dict(_peers(image, folder, stack))
        ours: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in peers}
        job = Job(action_id="a-1", argv=("/usr/bin/python3", "-I", "-S", "/goex/job/code.py"),
                  files={"code.py": LINE.encode()})  # fmt: skip
        async with pooled(folder, PoolBounds(least=2, most=2)) as sandbox:
            for _ in range(ROUNDS):
                await loaded(sandbox, 2)
                with timed(ours):
                    result = await sandbox.run(job, Profile())
                assert (result.exit_code, result.stdout) == (0, b"45\n"), result
                await loaded(sandbox, 2)  # what is left of ours isn't theirs
                for name, peer in peers.items():
                    theirs[name].append(await asyncio.to_thread(_timed, peer))
    value = Timings(tuple(ours[THROWN:]))
    return tuple(
        row(f"{NAME}.{name.replace(' ', '_')}_ms", value, PEERS.get(name, name), Timings(tuple(each[THROWN:])))
        for name, each in theirs.items()
    )


def _timed(peer: Peer) -> float:
    began = time.perf_counter_ns()
    told = peer()
    return (time.perf_counter_ns() - began) / 1e6 if told is None else told


def _peers(image: str, folder: Path, stack: ExitStack) -> Iterator[tuple[str, Peer]]:
    config = spec.container(
        Job(action_id="a-1", argv=_ARGV), Profile(), image, spec.Identity(state_id="bench", instance="floor"),
        None, frozenset(),
    )  # fmt: skip
    yield "python", lambda: _run([sys.executable, "-I", "-c", LINE])
    if shutil.which("docker"):
        argv = ["docker", *flags(config, folder)]
        yield "docker run", lambda: _run(argv)
        stays = stack.enter_context(_stays(image))
        yield "docker exec", lambda: _run(["docker", "exec", stays, *_ARGV])
    client = docker.APIClient()
    stack.callback(client.close)

    def by_library() -> None:
        made = client.create_container_from_config(config)  # type: ignore[no-untyped-call] # the stubs lack it
        client.start(made)
        assert client.wait(made)["StatusCode"] == 0
        client.remove_container(made, force=True, v=True)

    yield "docker-py", by_library
    name = images.tag("base")
    for peer in PEERS:
        python = _PLACE / peer / "bin" / "python"
        if not python.exists():
            print(f"{peer} isn't installed (make peers), so it is left out …", end=" ", file=sys.stderr, flush=True)
            continue
        driver = _HERE / "peers" / f"{peer.replace('-', '_')}_driver.py"
        yield peer, stack.enter_context(_driven([str(python), str(driver), name]))


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


@contextmanager
def _stays(image: str) -> Iterator[str]:
    """A container that stays, for commands to be run in."""
    argv = ["docker", "run", "--rm", "--detach", "--network", "none", "--entrypoint", "sleep", image, "3600"]
    name = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["docker", "kill", name], check=False, stdout=subprocess.DEVNULL)


@contextmanager
def _driven(argv: list[str]) -> Iterator[Callable[[], float]]:
    """A peer's driver: a line in, one run, and its milliseconds out."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, said = process.stdin, process.stdout

        def once() -> float:
            told.write("\n")
            told.flush()
            return float(said.readline())

        try:
            yield once
        finally:
            with contextlib.suppress(BrokenPipeError):
                told.close()
            process.wait(30)
