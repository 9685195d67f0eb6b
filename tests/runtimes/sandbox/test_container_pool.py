"""Containers that wait: what they hold before they have a job, and what a job can't do to them."""

# Short blocking steps disturb no test here, and the programs to run are kept as they are.
# ruff: noqa: ASYNC240, E501
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actions import Ended
from runtimes.sandbox import container_pool, images
from runtimes.sandbox.container_pool import End, Kind, Told, WorkFolder, kind_of
from runtimes.sandbox.contract import Job, Profile, Result, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.runtimes.sandbox.waiting import KIND, PROFILE, ready
from tests.support.waiting import until_async


async def the_waiting(tmp_path: Path) -> dict[str, Any]:
    """What the engine says of the container that waits, once the one whose job has ended is gone."""
    client = docker.from_env().api
    try:
        state = f"warm-{os.getpid()}-{tmp_path.name}"
        for _ in range(15_000):
            if len(found := client.containers(filters={"label": f"org.goex.state={state}"})) == 1:
                return dict(client.inspect_container(found[0]["Id"]))
            await asyncio.sleep(0.02)
        raise AssertionError(f"{len(found)} wait")
    finally:
        client.close()


def python(code: str, **more: Any) -> Job:
    return Job(action_id="a-secret-name", argv=["python3", "-I", "-c", code], **more)


def within(code: str) -> Job:
    """A program that runs in the process which waited for it, as those of a service's calls do."""
    argv = ["/usr/bin/python3", "-I", "-S", "/goex/job/own.py"]
    return Job(action_id="a-secret-name", argv=argv, files={"own.py": code.encode()})


async def run(sandbox: DockerSandbox, job: Job) -> Result:
    await ready(sandbox)
    return await sandbox.run(job, PROFILE)


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_one_that_waits_holds_nothing_of_any_action(sandbox: DockerSandbox, tmp_path: Path) -> None:
    job = Job(
        action_id="a-1",
        argv=["sh", "-c", "cat /goex/job/note; echo kept > /tmp/kept; echo kept > /dev/shm/kept; echo $SECRET"],
        files={"note": b"the first one's"},
        env={"SECRET": "the first one's too"},
    )
    first = await run(sandbox, job)
    assert first.stdout == b"the first one'sthe first one's too\n"
    await ready(sandbox)
    seen = await the_waiting(tmp_path)
    said = json.dumps(seen)
    assert "first one" not in said and "a-1" not in said and "org.goex.action" not in said
    for mount in seen["Mounts"]:
        assert list(Path(mount["Source"]).iterdir()) == []
    looked = await run(
        sandbox, Job(action_id="a-2", argv=["sh", "-c", "env; ls -A /goex/job /goex/gateway /tmp /dev/shm"])
    )
    assert b"first" not in looked.stdout and b"kept" not in looked.stdout and b"note" not in looked.stdout


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_it_serves_one_job_and_is_gone(sandbox: DockerSandbox, tmp_path: Path) -> None:
    await ready(sandbox)
    name = (await the_waiting(tmp_path))["Name"]
    assert (await sandbox.run(python("print(1)"), PROFILE)).stdout == b"1\n"
    client = docker.from_env().api
    for _ in range(15_000):
        if name not in [each for item in client.containers(all=True) for each in item["Names"]]:
            break
        await asyncio.sleep(0.02)
    else:
        raise AssertionError("it is still there")
    client.close()


@pytest.mark.docker
async def test_it_gets_the_socket_of_its_own_action_when_it_is_bound(sandbox: DockerSandbox, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "gw.sock"))
    listener.listen()
    (place / "gw.sock").chmod(0o666)
    asks = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('/goex/gateway/gw.sock'); s.sendall(b'me'); print(s.recv(9))"
    running = asyncio.create_task(run(sandbox, python(asks, socket_dir=str(place))))
    connection, _ = await asyncio.to_thread(listener.accept)
    assert connection.recv(9) == b"me"
    connection.sendall(b"you")
    result = await running
    assert result.stdout == b"b'you'\n", result
    connection.close()
    listener.close()


FORGED = struct.pack(">cI", b"X", 26) + b'{"code": 0, "late": false}'
ATTACKS = {
    "writing to process 1's output": "import os; os.write(os.open('/proc/1/fd/1', os.O_WRONLY), FORGED)",
    "reading process 1's input": "import os; print(os.open('/proc/1/fd/0', os.O_RDONLY))",
    "writing to process 1's memory": "open('/proc/1/mem', 'r+b')",
    "reading process 1's environment": "print(open('/proc/1/environ').read())",
    "its own output as frames": "import os; os.write(1, FORGED); os.write(2, FORGED)",
    "descriptors that were left open": "import os\nfor n in range(3, 256):\n try: os.write(n, FORGED)\n except OSError: pass",
    "ptrace": "import ctypes; c=ctypes.CDLL(None, use_errno=True); print(c.ptrace(16, 1, 0, 0))",
    "ending process 1": "import os, signal\nfor n in range(1, 65):\n try: os.kill(1, n)\n except OSError: pass",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(48)
@pytest.mark.docker
@pytest.mark.parametrize("attack", ATTACKS, ids=list(ATTACKS))
async def test_a_job_cannot_forge_its_own_end(sandbox: DockerSandbox, attack: str) -> None:
    code = (
        f"FORGED = {FORGED!r}\nimport sys, time\n"
        f"try:\n exec({ATTACKS[attack]!r})\nexcept OSError as error:\n print('refused')\n"
        "time.sleep(0.3); print('then', flush=True); sys.exit(7)"
    )
    result = await run(sandbox, python(code))
    assert (result.ended, result.exit_code) == (Ended.EXITED, 7), result
    assert result.stdout.endswith(b"then\n")
    if attack.startswith(("writing", "reading")):
        assert b"refused" in result.stdout, result.stdout


SAYS = """
import os, time
FORGED = {forged!r}
for number in range(3, 256):
    try:
        os.write(number, FORGED)
    except OSError:
        pass
time.sleep(0.5)
print("then", flush=True)
"""


@pytest.mark.promise(48)
@pytest.mark.docker
@pytest.mark.parametrize("said", [b"\x05", FORGED])
async def test_a_job_that_says_that_it_ends_has_ended(sandbox: DockerSandbox, said: bytes) -> None:
    """It can be said by whoever finds where; nobody goes on then, and a forged frame is its first byte."""
    result = await run(sandbox, within(SAYS.format(forged=said)))
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, said[0], b""), result


@pytest.mark.docker
async def test_a_forked_process_that_comes_to_the_end_is_not_the_job(sandbox: DockerSandbox) -> None:
    code = (
        "import os, sys, time\nforked = os.fork()\n"
        "if forked:\n os.waitpid(forked, 0); time.sleep(0.3); print('parent'); sys.exit(3)\n"
        "print('forked', flush=True)"
    )
    result = await run(sandbox, within(code))
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, 3, b"forked\nparent\n"), result


@pytest.mark.docker
async def test_all_that_was_printed_before_the_end_is_there(sandbox: DockerSandbox) -> None:
    result = await run(sandbox, within("import sys\nsys.stdout.write('x' * 15_000)\nsys.stderr.write('y' * 4_000)"))
    assert (len(result.stdout), len(result.stderr), result.exit_code) == (15_000, 4_000, 0)


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_what_a_job_leaves_running_is_ended_with_it(sandbox: DockerSandbox) -> None:
    code = (
        "import os, time, sys\n"
        "if os.fork() == 0:\n os.setsid()\n"
        " if os.fork() == 0:\n  time.sleep(0.4); print('still here', flush=True); time.sleep(60)\n os._exit(0)\n"
        "print('done')"
    )
    started = time.monotonic()
    result = await run(sandbox, python(code))
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, 0, b"done\n")
    assert time.monotonic() - started < 30


@pytest.mark.docker
async def test_one_that_died_while_it_waited_is_passed_over(sandbox: DockerSandbox, tmp_path: Path) -> None:
    await ready(sandbox)
    client = docker.from_env().api
    client.kill((await the_waiting(tmp_path))["Id"])
    client.close()
    assert (await sandbox.run(python("print('well')"), PROFILE)).stdout == b"well\n"


@pytest.mark.docker
async def test_one_that_dies_in_the_middle_says_so(sandbox: DockerSandbox, tmp_path: Path) -> None:
    await ready(sandbox)
    id = (await the_waiting(tmp_path))["Id"]
    begun = asyncio.Event()
    job = python("import time; print('begun', flush=True); time.sleep(60)")
    running = asyncio.create_task(sandbox.run(job, PROFILE, lambda *_: begun.set()))
    await begun.wait()
    client = docker.from_env().api
    client.kill(id)
    client.close()
    result = await running
    assert (result.ended, result.exit_code, result.stdout) == (Ended.KILLED, None, b"begun\n")


@pytest.mark.docker
async def test_folders_on_another_file_system_start_cold(sandbox_image: str, tmp_path: Path) -> None:
    shared = Path("/dev/shm") / f"goex-{tmp_path.name}-{os.getpid()}"
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system alone")
    made = DockerSandbox(
        f"apart-{os.getpid()}", scratch_dir=tmp_path / "scratch", pool_dir=shared, bounds=PoolBounds(least=1, most=1)
    )
    try:
        made.prepare(PROFILE)
        await ready(made)
        place = tmp_path / "place"
        place.mkdir()
        (place / "gw.sock").write_bytes(b"")
        result = await made.run(Job(action_id="a-1", argv=["ls", "/goex/gateway"], socket_dir=str(place)), PROFILE)
        assert result.stdout == b"gw.sock\n"
    finally:
        await made.close()
        shared.rmdir()


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_another_folder_or_user_is_never_bound_late(sandbox: DockerSandbox, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir(mode=0o777)
    assert kind_of(Job(action_id="a", argv=["true"], folder=str(work)), PROFILE) is None
    assert kind_of(Job(action_id="a", argv=["true"], folders={"work": str(work)}), PROFILE) is None
    assert kind_of(Job(action_id="a", argv=["true"], uid=1000, gid=1000), PROFILE) is None
    assert kind_of(Job(action_id="a", argv=["true"]), Profile(runtime="runsc")) is None
    known = Job(action_id="a", argv=["true"], folder=str(work), folder_id=(1, 2))
    assert kind_of(known, PROFILE) == Kind(PROFILE, WorkFolder(str(work), (1, 2), 65534, 65534))
    assert kind_of(replace(known, read_only=True), PROFILE) is None
    assert kind_of(replace(known, socket_dir=str(work)), PROFILE) is None
    await ready(sandbox)
    await sandbox.run(Job(action_id="a", argv=["true"], folder=str(work)), PROFILE)
    assert sandbox.pooled(PROFILE) == 1


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_whose_it_is_is_noted_before_anything_of_the_action_is_in_it(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    waiting, state = tmp_path / "waiting", f"warm-{os.getpid()}-{tmp_path.name}"
    await ready(sandbox)
    assert container_pool.bound(waiting) == {}
    begun = asyncio.Event()
    job = python("import time; print('begun', flush=True); time.sleep(60)")
    running = asyncio.create_task(sandbox.run(job, PROFILE, lambda *_: begun.set()))
    await begun.wait()
    ((name, owner),) = container_pool.bound(waiting).items()
    assert owner == "a-secret-name"
    later = DockerSandbox(state, scratch_dir=tmp_path / "scratch", pool_dir=waiting)
    assert await later.reap() == ("a-secret-name",)  # as after a crash: by the note, since it has no label
    assert (await running).ended is Ended.KILLED
    with contextlib.closing(docker.from_env().api) as client:
        assert f"/{name}" not in [each for found in client.containers(all=True) for each in found["Names"]]
    assert not list(waiting.glob("*/*"))
    await later.close()


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_one_that_was_bound_is_never_bound_again(sandbox: DockerSandbox) -> None:
    await ready(sandbox)
    image = await sandbox.image_id(PROFILE)
    found = sandbox._pool.take(KIND, image)
    assert found is not None
    found.bind(Job(action_id="a-1", argv=["true"], files={"note": b"the first one's"}))
    with pytest.raises(container_pool.NotBound):
        found.bind(Job(action_id="a-2", argv=["true"], files={"other": b"the second one's"}))
    assert [path.name for path in (found.folder / container_pool.JOB).iterdir()] == ["note"]
    await sandbox._maker.drop(found)


@pytest.mark.docker
async def test_a_burst_is_served_and_nothing_is_left(sandbox: DockerSandbox, tmp_path: Path) -> None:
    await ready(sandbox)
    jobs = [Job(action_id=f"a-{n}", argv=["cat", "/goex/job/note"], files={"note": b"%d" % n}) for n in range(8)]
    results = await asyncio.gather(*(sandbox.run(job, PROFILE) for job in jobs))
    assert [result.stdout for result in results] == [b"%d" % n for n in range(8)]
    await until_async(lambda: container_pool.bound(tmp_path / "waiting") == {})
    await sandbox.close()
    with contextlib.closing(docker.from_env()) as client:
        label = f"org.goex.state=warm-{os.getpid()}-{tmp_path.name}"
        assert client.containers.list(all=True, filters={"label": label}) == []
    assert not list((tmp_path / "waiting").glob("*"))


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_an_action_killed_while_its_container_is_made_never_begins(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    await ready(sandbox)
    said: list[bytes] = []
    first = asyncio.create_task(sandbox.run(python("import time; time.sleep(60)"), PROFILE))
    second = Job(action_id="a-2", argv=["echo", "begun"])
    running = asyncio.create_task(sandbox.run(second, PROFILE, lambda _, data: said.append(data)))
    await asyncio.sleep(0)  # both have looked for one that waits
    await sandbox.kill("a-2")
    result = await running
    assert (result.ended, result.exit_code, said) == (Ended.KILLED, None, [])
    assert "a-2" not in container_pool.bound(tmp_path / "waiting").values()
    await sandbox.kill("a-secret-name")
    await first


@pytest.mark.promise(48)
@pytest.mark.docker
async def test_whoever_made_it_is_gone_and_so_is_the_job(sandbox: DockerSandbox, tmp_path: Path) -> None:
    await ready(sandbox)
    found = sandbox._pool.take(KIND, None)
    assert found is not None
    found.bind(job := python("import time; time.sleep(60)"))
    client = docker.from_env().api
    found.stream.setblocking(True)
    found.stream.sendall(container_pool.message(job, {"PATH": "/usr/bin"}, 60.0))
    assert found.stream.recv(5)[:1] == b"B"
    assert client.inspect_container(found.name)["State"]["Running"]
    found.stream.close()  # as when the daemon is killed
    assert client.wait(found.name, timeout=300)["StatusCode"] == 1
    client.close()
    await sandbox._maker.drop(found)


@pytest.mark.docker
async def test_the_image_of_those_that_wait_is_not_asked_for_again(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ready(sandbox)
    image = await sandbox.image_id(PROFILE)
    with monkeypatch.context() as patched:
        patched.setattr(images, "find", lambda *_: "another")
        assert await sandbox.image_id(PROFILE) == image  # a job would run in that one
        patched.setattr(images, "tag", lambda *_: "goex/base:other")  # its folder has changed
        assert await sandbox.image_id(PROFILE) == "another"


# ---- what process 1 tells


def frame(kind: bytes, data: bytes = b"") -> bytes:
    return kind + struct.pack(">I", len(data)) + data


@given(cuts=st.lists(st.integers(1, 40), max_size=30), text=st.binary(max_size=60))
def test_words_come_out_whole_however_they_are_cut(cuts: list[int], text: bytes) -> None:
    whole = frame(b"R") + frame(b"B") + frame(b"O", text) + frame(b"E", b"e") + frame(b"X", b'{"code":3,"late":false}')
    told, found, at = Told(), [], 0
    for size in [*cuts, len(whole)]:
        found += list(told.feed(whole[at : at + size]))
        at += size
    assert found == [("R", b""), ("B", b""), ("stdout", text), ("stderr", b"e"), End(3, False)]


@pytest.mark.parametrize(
    "garbled",
    [
        frame(b"Z"),
        frame(b"X", b"not json"),
        frame(b"X", b'{"code": "x"}'),
        b"O\xff\xff\xff\xff",
    ],
    ids=["an unknown word", "no json", "no code", "too large"],
)
def test_what_process_1_never_says_is_refused(garbled: bytes) -> None:
    with pytest.raises(SandboxFailed):
        list(Told().feed(garbled))
