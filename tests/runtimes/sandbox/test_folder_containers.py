"""A container that waits for the next program on a person's folder: what it has, whom it serves, how it ends."""

# Short blocking steps disturb no test here, and the programs to run are kept as they are.
# ruff: noqa: ASYNC240
from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from policies.actions import Ended
from runtimes.sandbox import container_pool, images, spec
from runtimes.sandbox.container_pool import kind_of
from runtimes.sandbox.contract import Job, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pooled_container import HEARD
from tests.runtimes.sandbox.waiting import PROFILE, ready
from tests.support.containers import job_on
from tests.support.waiting import until_async


async def ready_for(sandbox: DockerSandbox, job: Job) -> dict[str, Any]:
    """What the engine says of the one that waits for that job."""
    for _ in range(15_000):
        if sandbox.pooled(PROFILE, job):
            kind = kind_of(job, PROFILE)
            assert kind is not None
            with contextlib.closing(docker.from_env().api) as client:
                return dict(client.inspect_container(sandbox._pool._ready[kind][0].name))
        await asyncio.sleep(0.02)
    raise AssertionError("none waits")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


WHERE = ("sh", "-c", "hostname; pwd; id -u; cat /proc/sys/kernel/random/uuid >> said; ls /goex/job; stat -c %i .")


@pytest.mark.docker
@pytest.mark.promise(48)
async def test_after_a_program_on_a_folder_one_waits_for_the_next_there(sandbox: DockerSandbox, work: Path) -> None:
    job = job_on(work, *WHERE)
    assert (await sandbox.run(job, PROFILE)).exit_code == 0
    waits = await ready_for(sandbox, job)
    assert not [name for name in waits["Config"]["Labels"] if "action" in name]
    assert waits["Mounts"] and {mount["Destination"] for mount in waits["Mounts"]} == {"/goex/job", "/work"}
    second = replace(job, action_id="a-2", files={"note": b"of the second"})
    result = await sandbox.run(second, PROFILE)
    assert result.stdout.decode().split() == ["sandbox", "/work", str(job.uid), "note", str(work.stat().st_ino)]
    assert len((work / "said").read_text().split()) == 2
    assert (await ready_for(sandbox, job))["Id"] != waits["Id"]  # each is used once
    third = await sandbox.run(replace(second, action_id="a-3", files={}), PROFILE)
    assert b"note" not in third.stdout


@pytest.mark.docker
@pytest.mark.promise(48)
async def test_a_program_in_it_may_no_more_than_in_one_of_its_own(sandbox: DockerSandbox, work: Path) -> None:
    """The very same configuration, but for what starts the program; and process 1 can't be reached."""
    probe = "import os, socket\n"
    for attempt in (
        "socket.socket(socket.AF_UNIX)", "socket.socketpair()", "os.listdir('/proc/1/fd')", "open('/proc/1/mem')",
        "os.kill(1, 9)", "os.setuid(0)", "open('/goex/job/x', 'w')", "open('/goex/x', 'w')",
    ):  # fmt: skip
        probe += f"try:\n {attempt}\n print('did')\nexcept OSError as error: print(error.errno)\n"
    job = job_on(work, "python3", "-c", probe)
    cold = await sandbox.run(job, PROFILE)
    with contextlib.closing(docker.from_env().api) as client:
        waits = await ready_for(sandbox, job)
        alone = spec.container(job, PROFILE, waits["Image"], spec.Identity(state_id="", instance=""), None, frozenset())
        made = client.create_container_from_config(alone)["Id"]
        expected = client.inspect_container(made)
        client.remove_container(made)
    for part in expected["HostConfig"]:
        if part != "Mounts":
            assert waits["HostConfig"][part] == expected["HostConfig"][part], part
    for part in ("User", "WorkingDir", "Env", "Hostname"):
        assert waits["Config"][part] == expected["Config"][part], part
    warm = await sandbox.run(replace(job, action_id="a-2"), PROFILE)
    assert cold.exit_code == warm.exit_code == 0
    # Process 1 of the other kind is `timeout`, of the program's own user.
    assert warm.stdout.split() == [b"1", b"did", b"13", b"13", b"did", b"1", b"30", b"30"]
    assert (cold.stdout.split()[:2], cold.stdout.split()[5:]) == (warm.stdout.split()[:2], warm.stdout.split()[5:])


@pytest.mark.docker
@pytest.mark.promise(48)
async def test_it_serves_that_folder_and_that_user_alone(sandbox: DockerSandbox, work: Path) -> None:
    job = job_on(work, *WHERE)
    await sandbox.run(job, PROFILE)
    await ready_for(sandbox, job)
    work.rename(work.with_name("moved"))
    work.mkdir()
    put = job_on(work, *WHERE, action_id="a-2")
    assert put.folder == job.folder and not sandbox.pooled(PROFILE, put)
    assert not sandbox.pooled(PROFILE, replace(job, uid=4243))
    assert (await sandbox.run(put, PROFILE)).stdout.split()[-1] == str(work.stat().st_ino).encode()
    assert sandbox.pooled(PROFILE, job) == 1


@pytest.mark.docker
async def test_its_end_is_told_when_nobody_is_left_who_could_write_there(
    sandbox: DockerSandbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is killed may finish a write. Here nothing is killed, so that it takes long enough to be seen."""
    wait = (Path(images.__file__).parents[2] / "sandbox-images/base/goex/wait.py").read_text()
    assert wait.count("os.kill(-1, signal.SIGKILL)") == 1
    changed = wait.replace("os.kill(-1, signal.SIGKILL)", "pass")
    monkeypatch.setattr(container_pool, "PROGRAM", (*container_pool.PROGRAM[:3], "-c", changed))
    job = job_on(work, "sh", "-c", "(sleep 2; echo late > said) >/dev/null 2>&1 &")
    await sandbox.run(replace(job, argv=["true"]), PROFILE)
    await ready_for(sandbox, job)
    assert (await sandbox.run(job, PROFILE)).ended is Ended.EXITED
    assert (work / "said").read_text() == "late\n"


@pytest.mark.docker
@pytest.mark.promise(48)
@pytest.mark.parametrize("heard", [True, False])
async def test_it_begins_nothing_before_it_is_heard_that_it_does(
    sandbox: DockerSandbox, work: Path, heard: bool
) -> None:
    """Between us is the engine: what it loses would have run, and run once more elsewhere."""
    job = job_on(work, "sh", "-c", "echo ran > said")
    await sandbox.run(replace(job, argv=["true"]), PROFILE)
    await ready_for(sandbox, job)
    kind = kind_of(job, PROFILE)
    assert kind is not None
    found = sandbox._pool.take(kind, None)
    assert found is not None
    found.bind(job)
    found.stream.setblocking(True)
    found.stream.sendall(container_pool.message(job, {"PATH": "/usr/bin:/bin"}, 60.0))
    assert found.stream.recv(100)[8:9] == b"B"
    if heard:
        found.stream.sendall(HEARD)
        assert found.stream.recv(100)[8:9] == b"X"
    found.stream.shutdown(socket.SHUT_RDWR)
    with contextlib.closing(docker.from_env().api) as client:
        assert client.wait(found.name, timeout=300)["StatusCode"] == (0 if heard else 1)
    assert (work / "said").exists() is heard
    await sandbox._maker.drop(found)


@pytest.mark.docker
@pytest.mark.promise(48)
async def test_one_that_got_another_folder_waits_for_nothing(sandbox: DockerSandbox, work: Path) -> None:
    """The engine finds the folder by its path, and its owner may have put another one there meanwhile."""
    job = job_on(work, "true")
    kind = kind_of(replace(job, folder_id=(1, 2)), PROFILE)
    assert kind is not None
    with pytest.raises(SandboxFailed, match="Another folder"):
        await sandbox._maker.make(kind)
    kind = kind_of(job, PROFILE)
    assert kind is not None
    await sandbox._maker.drop(await sandbox._maker.make(kind))


@pytest.mark.docker
@pytest.mark.promise(48)
async def test_a_program_in_it_ends_with_the_daemon(sandbox: DockerSandbox, work: Path) -> None:
    job = job_on(work, "sleep", "60")
    await sandbox.run(replace(job, argv=["true"]), PROFILE)
    waits = await ready_for(sandbox, job)
    running = asyncio.create_task(sandbox.run(job, PROFILE))
    await until_async(lambda: bool(sandbox._running.get("a-1")))
    (run,) = sandbox._running["a-1"]
    await until_async(lambda: run.began)
    assert run.stream is not None
    run.stream.shutdown(socket.SHUT_RDWR)
    with contextlib.closing(docker.from_env().api) as client:
        assert client.wait(waits["Id"], timeout=300)["StatusCode"] == 1
    await running


@pytest.mark.docker
async def test_a_folder_that_is_gone_is_no_failure_of_the_engine(sandbox: DockerSandbox, work: Path) -> None:
    await ready(sandbox)
    job = job_on(work, "true")
    await sandbox.run(job, PROFILE)
    work.rmdir()
    kind = kind_of(job, PROFILE)
    await until_async(lambda: kind in sandbox._pool._wanted or sandbox._pool._keeper is None)
    await until_async(lambda: kind not in sandbox._pool._wanted)
    assert not sandbox.pooled(PROFILE, job)
    await ready(sandbox)
