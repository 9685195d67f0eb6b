"""Attacks on containers that wait for their job: each refused, each successful in its control.

The controls of what process 1 does are runs of the same program with that one line changed; those of single use are a
container that is used twice.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest

from policies.actions import Ended
from runtimes.sandbox import container_pool, control
from runtimes.sandbox.contract import Job, Limits, Profile, Result
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.adversarial.pool_attacks import NEXT, ON_A_FOLDER, PROCESS_1
from tests.adversarial.test_container import prepared
from tests.support.containers import job_on

pytestmark = pytest.mark.docker

HERE = Path(__file__)
PROBES = HERE.with_name("pool_probes.py").read_bytes()
WAIT = (HERE.parents[2] / "sandbox-images/base/goex/wait.py").read_text()
DRAIN = "_DRAIN = 1.0"
PROFILE = Profile(limits=Limits(memory=96 * 2**20, pids=32, tmp=16 * 2**20, seconds=90.0))


def job(*names: str, **more: Any) -> Job:
    argv = ["/usr/bin/python3", "-I", "-S", "/goex/job/probes.py", *names]
    return Job(action_id="attack", argv=argv, files={"probes.py": PROBES}, **more)


@contextmanager
def gateway(folder: Path) -> Iterator[list[bytes]]:
    """The action's socket, and what was said to it."""
    folder.mkdir()
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "gw.sock"))
        (folder / "gw.sock").chmod(0o666)
        listener.listen()

        def hear() -> None:
            while True:
                try:
                    wire, _ = listener.accept()
                except OSError:
                    return
                with wire:
                    heard.append(wire.recv(100))

        threading.Thread(target=hear, daemon=True).start()
        yield heard
        listener.shutdown(socket.SHUT_RDWR)


async def in_one_that_waited(tmp_path: Path, *jobs: Job, until: float = 0.0) -> list[Result]:
    """Each job in a container that waited for it; the last of these is there until so many seconds after its end."""
    sandbox = DockerSandbox(
        f"pool-{os.getpid()}",
        scratch_dir=tmp_path / "scratch",
        pool_dir=tmp_path / "waiting",
        bounds=PoolBounds(least=1, most=1),
    )
    results = []
    try:
        for one in jobs:
            await prepared(sandbox, PROFILE, one)
            results.append(await sandbox.run(one, PROFILE))
        await asyncio.sleep(until)
    finally:
        await sandbox.close()
    return results


async def attacked_on_a_folder(name: str, tmp_path: Path) -> bool:
    """Whether the attack on a process 1 that is told its job over its standard input succeeded."""
    folder = tmp_path / "work"
    folder.mkdir()
    attack = job(name)
    (result,) = await in_one_that_waited(tmp_path, job_on(folder, *attack.argv, files=attack.files))
    return succeeded(name, result)


async def attacked(name: str, tmp_path: Path) -> bool:
    """Whether the attack on process 1 succeeded."""
    stays = 2.5 if name == "outlive_the_action" else 0.0
    with gateway(tmp_path / "place") as heard, pytest.MonkeyPatch.context() as patched:
        patched.setattr(container_pool, "BREATH", max(container_pool.BREATH, stays))
        (result,) = await in_one_that_waited(tmp_path, job(name, socket_dir=str(tmp_path / "place")), until=stays)
    if name == "outlive_the_action":
        assert (result.ended, result.exit_code) == (Ended.EXITED, 7), result
        return heard == [b"still here"]
    return succeeded(name, result)


def succeeded(name: str, result: Result) -> bool:
    if name in ("inherited_descriptors", "output_as_frames"):
        return (result.ended, result.exit_code) != (Ended.EXITED, 7)  # the end that was told isn't the real one
    assert (result.ended, result.exit_code) == (Ended.EXITED, 7), result
    assert re.search(rf"^{name} (succeeded|refused)".encode(), result.stdout, re.MULTILINE), result
    return f"{name} succeeded".encode() in result.stdout


@pytest.mark.promise(48)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROCESS_1)
async def test_refused(sandbox_image: str, tmp_path: Path, name: str) -> None:
    assert not await attacked(name, tmp_path)


@pytest.mark.promise(48)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROCESS_1)
async def test_control(sandbox_image: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "connect_as_process_1":
        kept: list[control.Place] = []
        monkeypatch.setattr(control.Place, "close", lambda self: kept.append(self))
    else:
        change_process_1(name, monkeypatch)
    assert await attacked(name, tmp_path)


def change_process_1(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the line that refuses the attack."""
    _, _, (line, instead) = PROCESS_1[name]
    assert (WAIT.count(line), WAIT.count(DRAIN)) == (1, 1)
    changed = WAIT.replace(line, instead).replace(DRAIN, "_DRAIN = 10.0")  # nobody is cut short by that
    monkeypatch.setattr(container_pool, "PROGRAM", (*container_pool.PROGRAM[:3], "-c", changed))


@pytest.mark.promise(48)
@pytest.mark.parametrize("name", ON_A_FOLDER)
async def test_refused_on_a_folder(sandbox_image: str, tmp_path: Path, name: str) -> None:
    assert not await attacked_on_a_folder(name, tmp_path)


@pytest.mark.promise(48)
@pytest.mark.parametrize("name", ON_A_FOLDER)
async def test_control_on_a_folder(
    sandbox_image: str, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_process_1(name, monkeypatch)
    assert await attacked_on_a_folder(name, tmp_path)


@pytest.fixture(scope="module")
def once(sandbox_image: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the second action finds, in a container of its own."""
    first, second = asyncio.run(in_one_that_waited(tmp_path_factory.mktemp("once"), job("leave"), job(*NEXT)))
    assert first.stdout == b"leave succeeded\n"
    return second.stdout


@pytest.fixture(scope="module")
def twice(sandbox_image: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the second action finds in the container of the first."""

    async def both() -> bytes:
        sandbox = DockerSandbox(f"twice-{os.getpid()}", scratch_dir=tmp_path_factory.mktemp("twice"))
        client = docker.from_env().api
        begun = asyncio.Event()
        program = ["sh", "-c", "python3 -I -S /goex/job/probes.py leave; sleep 60"]
        held = Job(action_id="held", argv=program, files={"probes.py": PROBES})
        running = asyncio.create_task(sandbox.run(held, PROFILE, lambda *_: begun.set()))
        try:
            await begun.wait()
            (found,) = client.containers(filters={"label": f"org.goex.state=twice-{os.getpid()}"})
            command = ["/usr/bin/python3", "-I", "-S", "/goex/job/probes.py", *NEXT]
            made = client.exec_create(found["Id"], command, user="65534:65534")
            said = await asyncio.to_thread(client.exec_start, made["Id"])
            return bytes(said)
        finally:
            await sandbox.kill("held")
            await running
            await sandbox.close()
            client.close()

    return asyncio.run(both())


@pytest.mark.promise(48)
@pytest.mark.parametrize("name", NEXT)
def test_nothing_is_left_for_the_next(once: bytes, name: str) -> None:
    assert f"{name} refused".encode() in once


@pytest.mark.promise(48)
@pytest.mark.parametrize("name", NEXT)
def test_control_a_container_that_is_used_twice(twice: bytes, name: str) -> None:
    assert f"{name} succeeded".encode() in twice
