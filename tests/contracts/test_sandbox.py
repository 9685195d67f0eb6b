"""The sandbox contract, run against every provider and runtime that this machine has.

Each test asks the container itself what it can see and do. A profile's limits are small here, so that a bomb goes
off soon.
"""

# Short blocking steps disturb no test here, and the programs to run are kept as they are.
# ruff: noqa: ASYNC110, ASYNC220, ASYNC240, E501
from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import docker
import pytest

from policies.actions import Ended
from policies.errors import InvalidInput, Unavailable
from runtimes.sandbox import spec
from runtimes.sandbox.container_pool import kind_of
from runtimes.sandbox.contract import Job, Limits, Profile, Result, Sandbox, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.output_frames import Output
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.support.waiting import until

pytestmark = pytest.mark.docker

SMALL = Limits(memory=96 * 2**20, pids=32, tmp=16 * 2**20, file_size=8 * 2**20, seconds=100.0, output=20_000)


RUNTIMES = ["runc", *(["runsc"] if shutil.which("runsc") else [])]


@cache
def engine() -> docker.APIClient:
    return docker.from_env().api


@cache
def engines_runtimes() -> frozenset[str]:
    return frozenset(engine().info()["Runtimes"])


@pytest.fixture(params=RUNTIMES)
def profile(request: pytest.FixtureRequest) -> Profile:
    if request.param not in engines_runtimes():
        pytest.skip(f"this engine has no {request.param}")
    return Profile(limits=SMALL, runtime=request.param)


class Prepared(DockerSandbox):
    """Each job that can be given to a container that waits is given to one."""

    async def run(self, job: Job, profile: Profile, output: Output | None = None) -> Result:
        if job.folder is not None and Path(job.folder).is_dir():
            found = Path(job.folder).stat()
            job = replace(job, folder_id=(found.st_dev, found.st_ino))
        if (kind := kind_of(job, profile)) is not None:
            await self.image_id(profile)  # none waits of an image that there isn't
            for _ in range(15_000):
                if self.pooled(profile, job):
                    break
                self._pool._wanted[kind] = 1
                self._pool.want(kind)
                await asyncio.sleep(0.02)
            else:
                raise AssertionError("none waits")
            self._pool._wanted[kind] = 0  # none is made in the place of that one, for nobody
        return await super().run(job, profile, output)


# What is refused before it is given to any container.
COLD = pytest.mark.parametrize("sandbox", ["cold", pytest.param("warm", marks=pytest.mark.thorough)], indirect=True)


@pytest.fixture(params=["cold", "warm"])
async def sandbox(
    request: pytest.FixtureRequest, sandbox_image: str, state_id: str, tmp_path: Path
) -> AsyncIterator[Sandbox]:
    made = DockerSandbox(state_id, scratch_dir=tmp_path / "scratch")
    if request.param == "warm":
        bounds = PoolBounds(least=1, most=1)
        made = Prepared(state_id, scratch_dir=tmp_path / "scratch", pool_dir=tmp_path / "waiting", bounds=bounds)
    yield made
    await made.close()
    assert of_state(state_id) == [], "a container was left"
    for folder in ("scratch", "waiting"):
        assert not list((tmp_path / folder).glob("*/*")), "files of a job were left"


@pytest.fixture
def state_id(tmp_path: Path) -> str:
    return f"contract-{tmp_path.name}-{os.getpid()}"


def containers(state_id: str) -> list[str]:
    """Whose containers there are. One that waited for its job, or still does, has no name."""
    found = engine().containers(all=True, filters={"label": f"org.goex.state={state_id}"})
    return [item["Labels"]["org.goex.action"] for item in found if "org.goex.action" in item["Labels"]]


def of_state(state_id: str) -> list[str]:
    """The names of all the containers that there are."""
    found = engine().containers(all=True, filters={"label": f"org.goex.state={state_id}"})
    return [name for item in found for name in item["Names"]]


def python(code: str, **fields: Any) -> Job:
    return Job(action_id="a1", argv=["python3", "-I", "-c", code], **fields)


def shell(code: str, **fields: Any) -> Job:
    return Job(action_id="a1", argv=["sh", "-c", code], **fields)


def limited(profile: Profile, **limits: Any) -> Profile:
    values = {name: getattr(profile.limits, name) for name in Limits.__dataclass_fields__} | limits
    return Profile(limits=Limits(**values), runtime=profile.runtime)


def good(result: Result) -> str:
    assert (result.ended, result.exit_code, result.cut) == (Ended.EXITED, 0, 0), result
    return result.stdout.decode()


async def first(event: asyncio.Event, task: asyncio.Task[Result]) -> None:
    """Wait for the event, but not beyond the end of the task that would set it."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert event.is_set(), task.exception() or task.result()


async def test_arguments_environment_and_files_arrive(sandbox: Sandbox, profile: Profile) -> None:
    code = (
        "import json,os,sys;print(json.dumps([sys.argv[1:],dict(os.environ),open('/goex/job/in.bin','rb').read().hex(),"
        "os.getcwd(),sorted(os.listdir('/goex/job'))]))"
    )
    job = Job(
        action_id="a1",
        argv=["python3", "-I", "-c", code, "a b", "", "-x", "ü'\"$(id)\n"],
        env={"GREETING": "hello = world"},
        files={"in.bin": bytes(range(256)), "b": b""},
    )
    argv, env, data, cwd, names = json.loads(good(await sandbox.run(job, profile)))
    assert argv == ["a b", "", "-x", "ü'\"$(id)\n"]
    assert env.pop("HOSTNAME", "sandbox") == "sandbox"
    assert env == {
        "GREETING": "hello = world",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
    }
    assert bytes.fromhex(data) == bytes(range(256))
    assert (cwd, names) == ("/tmp", ["b", "in.bin"])


async def test_output_arrives_as_it_is_written(sandbox: Sandbox, profile: Profile) -> None:
    seen: list[tuple[str, bytes, float]] = []
    job = shell("printf one; sleep 0.7; printf two >&2; printf three")
    result = await sandbox.run(job, profile, lambda stream, data: seen.append((stream, data, time.monotonic())))
    assert (result.stdout, result.stderr) == (b"onethree", b"two")
    assert {(stream, data) for stream, data, _ in seen} == {
        ("stdout", b"one"),
        ("stderr", b"two"),
        ("stdout", b"three"),
    }
    assert seen[-1][2] - seen[0][2] > 0.4
    assert 0.7 < result.seconds < 90


async def test_exit_codes_and_signals(sandbox: Sandbox, profile: Profile) -> None:
    for code, expected in (("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)):
        result = await sandbox.run(shell(code), profile)
        assert (result.ended, result.exit_code) == (Ended.EXITED, expected), code
    missing = await sandbox.run(Job(action_id="a1", argv=["no-such-program"]), profile)
    assert (missing.ended, missing.exit_code) == (Ended.EXITED, 127)
    assert b"no-such-program" in missing.stderr


async def test_nothing_comes_in_by_standard_input(sandbox: Sandbox, profile: Profile) -> None:
    assert good(await sandbox.run(python("import sys;print(repr(sys.stdin.read()))"), profile)) == "''\n"


@pytest.mark.promise(43)
async def test_who_it_runs_as(sandbox: Sandbox, profile: Profile) -> None:
    code = "import os;print(os.getresuid(),os.getresgid(),os.getgroups());print(open('/proc/self/status').read())"
    first, _, status = good(await sandbox.run(python(code, uid=12345, gid=23456), profile)).partition("\n")
    assert first == "(12345, 12345, 12345) (23456, 23456, 23456) [23456]"
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(facts[name], 16) == 0, name
    if profile.runtime == "runc":
        assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


@COLD
@pytest.mark.parametrize("who", [{"uid": 0}, {"gid": 0}, {"uid": -1}, {"uid": 2**32 - 1}])
async def test_never_as_root(sandbox: Sandbox, profile: Profile, who: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="root"):
        await sandbox.run(shell("id", **who), profile)


@COLD
@pytest.mark.parametrize(
    "fields",
    [
        {"files": {"../x": b""}},
        {"files": {"a/b": b""}},
        {"files": {"": b""}},
        {"files": {".": b""}},
        {"files": {"a\n": b""}},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"env": {"A": "b\0c"}},
        {"folder": "relative"},
        {"socket_dir": "../x"},
    ],
)
async def test_malformed_jobs_are_refused(sandbox: Sandbox, profile: Profile, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await sandbox.run(shell("id", **fields), profile)


@pytest.mark.promise(43)
async def test_no_network_but_loopback(sandbox: Sandbox, profile: Profile) -> None:
    code = """
import socket, os, threading
print(sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 2).close()
print("loopback", socket.gethostbyname("localhost"))
for target in (("192.0.2.1", 80), ("169.254.169.254", 80), ("10.0.0.1", 53)):
    try:
        socket.create_connection(target, 2)
    except OSError as error:
        print(type(error).__name__, error.errno)
try:
    socket.getaddrinfo("example.org", 80)
except OSError as error:
    print(type(error).__name__)
"""
    lines = good(await sandbox.run(python(code), profile)).splitlines()
    assert lines == ["['lo']", "loopback 127.0.0.1", *["OSError 101"] * 3, "gaierror"]


async def test_only_tmp_is_writable(sandbox: Sandbox, profile: Profile) -> None:
    code = """
import os
for top in ("/", "/etc", "/usr/bin", "/var/tmp", "/run", "/goex", "/goex/bin", "/goex/job", "/goex/gateway", "/work",
            "/home", "/dev", "/proc", "/sys", "/tmp", "/dev/shm"):
    try:
        open(top + "/probe", "w").close()
        print("wrote", top)
    except OSError as error:
        pass
for existing in ("/goex/job/in", "/etc/passwd", "/usr/bin/python3", *("/goex/bin/" + f for f in os.listdir("/goex/bin"))):
    try:
        open(existing, "a").close()
        print("opened", existing)
    except OSError:
        pass
    try:
        os.unlink(existing)
        print("removed", existing)
    except OSError:
        pass
"""
    assert good(await sandbox.run(python(code, files={"in": b"x"}), profile)) == "wrote /tmp\nwrote /dev/shm\n"


async def test_the_folder_is_mounted_alone_and_writable(sandbox: Sandbox, profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("old")
    (tmp_path / "outside").write_text("secret")
    # Another user's folder where that can be had; only root can give one away.
    uid, gid = (1234, 1234) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(folder, uid, gid)
    os.chown(folder / "a", uid, gid)
    (folder / "out").symlink_to(tmp_path / "outside")
    job = shell("pwd; cat a; echo new > a; echo b > b; cat out ../outside", folder=str(folder), uid=uid, gid=gid)
    result = await sandbox.run(job, profile)
    assert result.stdout == b"/work\nold"
    assert ((folder / "a").read_text(), (folder / "b").read_text()) == ("new\n", "b\n")
    assert (folder / "b").stat().st_uid == uid
    assert result.exit_code == 1
    assert result.stderr.count(b"No such file") == 2


async def test_a_read_only_folder_is_not_written(sandbox: Sandbox, profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "a").write_text("old")
    (folder / "a").chmod(0o666)
    result = await sandbox.run(
        shell("cat a; echo new > a || echo new > b", folder=str(folder), read_only=True), profile
    )
    assert result.stdout == b"old" and result.stderr.count(b"Read-only file system") == 2
    assert (folder / "a").read_text() == "old" and not (folder / "b").exists()


async def test_a_folder_that_is_not_there(sandbox: Sandbox, profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(SandboxFailed, match="not exist") as caught:
        await sandbox.run(shell("true", folder=str(tmp_path / "nowhere")), profile)
    assert not caught.value.began
    assert not (tmp_path / "nowhere").exists()


async def test_the_gateways_socket_is_reached_and_its_folder_read_only(
    sandbox: Sandbox, profile: Profile, tmp_path: Path
) -> None:
    folder = tmp_path / "gateway"
    folder.mkdir()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello from outside")
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "gw.sock")
    (folder / "gw.sock").chmod(0o666)
    code = """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/goex/gateway/gw.sock")
print(s.recv(100).decode())
open("/goex/gateway/x", "w")
"""
    result = await sandbox.run(python(code, socket_dir=str(folder)), profile)
    server.close()
    assert result.stdout == b"hello from outside\n"
    assert b"Read-only file system" in result.stderr


async def test_memory_bomb(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(python("b = bytearray(10**9)"), profile)
    assert (result.ended, result.exit_code) == (Ended.OUT_OF_MEMORY, 137)


async def test_a_child_lost_to_the_memory_limit_is_said(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(shell("python3 -I -c 'b = bytearray(10**9)'; exit 0"), profile)
    assert (result.ended, result.exit_code) == (Ended.OUT_OF_MEMORY, 0)


async def test_tmp_counts_as_memory_and_has_a_size(sandbox: Sandbox, profile: Profile) -> None:
    code = """
import errno, os
def fill(folder):
    written = 0
    for n in range(100):
        try:
            with open(f"{folder}/{n}", "wb", buffering=0) as file:
                for _ in range(7):
                    written += file.write(bytes(2**20))
        except OSError as error:
            return errno.errorcode[error.errno], written // 2**20
print(fill("/tmp"), fill("/dev/shm"))
"""
    assert good(await sandbox.run(python(code), profile)) == "('ENOSPC', 16) ('ENOSPC', 16)\n"


async def test_a_file_has_a_largest_size(sandbox: Sandbox, profile: Profile, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    code = "f=open('/work/big','wb',buffering=0)\nfor _ in range(64): f.write(bytes(2**20))"
    result = await sandbox.run(python(code, folder=str(tmp_path)), profile)
    assert result.exit_code == 1
    assert b"File too large" in result.stderr
    assert (tmp_path / "big").stat().st_size == SMALL.file_size


async def test_processes_have_a_limit(sandbox: Sandbox, profile: Profile) -> None:
    code = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except OSError as error:
    print(count, error.errno)
"""
    count, number = good(await sandbox.run(python(code), profile)).split()
    assert (int(count) < 32, number) == (True, "11")


async def test_a_fork_bomb_ends_on_time(sandbox: Sandbox, profile: Profile) -> None:
    code = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    began = time.monotonic()
    result = await sandbox.run(python(code), limited(profile, seconds=1.5))
    assert result.ended is Ended.TIMEOUT
    assert time.monotonic() - began < 200


async def test_orphans_are_reaped(sandbox: Sandbox, profile: Profile) -> None:
    code = """
import os, time
for _ in range(200):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.002)
time.sleep(0.3)
print(sum(name.isdigit() for name in os.listdir("/proc")))
"""
    assert int(good(await sandbox.run(python(code), profile))) <= 5  # the supervisors, and itself


@pytest.mark.promise(43)
async def test_sleeping_forever(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(shell("echo begun; trap '' TERM INT HUP; sleep 99"), limited(profile, seconds=1.0))
    assert (result.ended, result.exit_code, result.stdout) == (Ended.TIMEOUT, None, b"begun\n")
    assert 1.0 <= result.seconds < 90


async def test_a_stopped_supervisor_stops_no_deadline(sandbox: Sandbox, profile: Profile) -> None:
    """Inside, the job can stop `timeout`, which runs as the same user; the deadline outside doesn't mind."""
    result = await sandbox.run(shell("kill -STOP $PPID; sleep 99"), limited(profile, seconds=1.0))
    assert result.ended is Ended.TIMEOUT
    assert result.seconds < 90


def test_a_deadline_is_kept_also_when_nobody_outside_keeps_it(sandbox_image: str, state_id: str) -> None:
    """As after the daemon's end: the job stops all that it can, and nobody follows it."""
    stops = (
        "for each in /proc/[0-9]*; do [ $each = /proc/1 ] || [ $each = /proc/$$ ] || kill -STOP ${each#/proc/}; done"
    )
    job = Job(action_id="a1", argv=["sh", "-c", f"{stops}; kill -STOP 1; kill -9 1; sleep 600"])
    whose = spec.Identity(state_id=state_id, instance="ended")
    alone = Profile(limits=replace(SMALL, seconds=1.0))
    config = spec.container(job, alone, sandbox_image, whose, None, frozenset())
    made = engine().create_container_from_config(config)  # type: ignore[no-untyped-call] # the stubs lack it
    try:
        engine().start(made["Id"])
        until(lambda: not engine().inspect_container(made["Id"])["State"]["Running"], "the end")
    finally:
        engine().remove_container(made["Id"], force=True)


async def test_a_job_writes_no_memory_of_the_first_process(sandbox: Sandbox, profile: Profile) -> None:
    """Else it could put another program in the place of the one that keeps the deadline."""
    tries = "for pid in $$ 1; do true 3<>/proc/$pid/mem && echo open || echo shut; done"
    assert good(await sandbox.run(shell(tries), profile)) == "open\nshut\n"


@pytest.mark.parametrize("sandbox", ["cold"], indirect=True)
async def test_killing_the_supervisor_ends_the_job(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(shell("(sleep 0.5; echo still here) & kill -9 $PPID; sleep 99"), profile)
    assert (result.ended, result.exit_code, result.stdout) == (Ended.EXITED, 137, b"")


@pytest.mark.parametrize("stream", [1, 2])
async def test_an_output_flood_is_cut_and_said(sandbox: Sandbox, profile: Profile, stream: int) -> None:
    seen = 0

    def output(_: str, data: bytes) -> None:
        nonlocal seen
        seen += len(data)

    result = await sandbox.run(shell(f"yes 0123456789 >&{stream}"), profile, output)
    kept = (result.stdout, result.stderr)[stream - 1]
    assert (result.ended, result.exit_code) == (Ended.OUTPUT_CAP, None)
    assert kept == (b"0123456789\n" * 2000)[:20_000]
    assert seen == 20_000
    assert result.cut > 0


async def test_exactly_the_cap_is_no_flood(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(python("import sys;sys.stdout.write('x'*20000);sys.stderr.write('y'*20000)"), profile)
    assert good(result) == "x" * 20_000
    assert result.stderr == b"y" * 20_000


async def test_one_byte_more_is_cut_and_said(sandbox: Sandbox, profile: Profile) -> None:
    result = await sandbox.run(python("import sys;sys.stdout.write('x'*20001)"), profile)
    assert (result.ended, result.cut, len(result.stdout)) == (Ended.OUTPUT_CAP, 1, 20_000)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("after", [0.0, 0.01, 0.05, 0.1, 0.2, 0.6])
async def test_cancelling_leaves_no_container(
    sandbox: Sandbox, profile: Profile, state_id: str, after: float, tmp_path: Path
) -> None:
    task = asyncio.create_task(sandbox.run(shell("sleep 99", files={"a": b""}), profile))
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert containers(state_id) == []


async def test_kill_ends_the_action_and_no_other(sandbox: Sandbox, profile: Profile, state_id: str) -> None:
    begun = asyncio.Event()
    job = shell("echo begun; sleep 99")
    task = asyncio.create_task(sandbox.run(job, profile, lambda *_: begun.set()))
    other = asyncio.create_task(sandbox.run(Job(action_id="a2", argv=["sh", "-c", "sleep 1.5; echo well"]), profile))
    await first(begun, task)
    await sandbox.kill("a1")
    assert "a1" not in containers(state_id)
    result = await task
    assert (result.ended, result.exit_code, result.stdout) == (Ended.KILLED, None, b"begun\n")
    assert good(await other) == "well\n"
    await sandbox.kill("a1")
    await sandbox.kill("never heard of")


@pytest.mark.parametrize("sandbox", ["cold"], indirect=True)
async def test_killed_before_it_began(sandbox: Sandbox, profile: Profile, state_id: str) -> None:
    task = asyncio.create_task(sandbox.run(shell("sleep 99"), profile))
    while not containers(state_id) and not task.done():
        await asyncio.sleep(0.001)
    await sandbox.kill("a1")
    assert (await task).ended is Ended.KILLED


@pytest.mark.promise(43)
async def test_two_jobs_do_not_see_each_other(sandbox: Sandbox, profile: Profile) -> None:
    mine = """
import os, socket, sys, time
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0goex-neighbour"); abstract.listen()
tcp = socket.create_server(("127.0.0.1", 5000))
open("/tmp/neighbour", "w").write("x"); open("/dev/shm/neighbour", "w").write("x")
"""
    look = """
import os, socket
def reached(family, address):
    try:
        socket.socket(family).connect(address)
        return True
    except OSError:
        return False
print(reached(socket.AF_UNIX, "\\0goex-neighbour"), reached(socket.AF_INET, ("127.0.0.1", 5000)),
      os.path.exists("/tmp/neighbour"), os.path.exists("/dev/shm/neighbour"),
      any(b"goex-neighbour" in open(f"/proc/{pid}/cmdline", "rb").read() and pid != str(os.getpid())
          for pid in os.listdir("/proc") if pid.isdigit() and pid not in str(os.getppid())),
      flush=True)
"""
    ready = asyncio.Event()
    holder = asyncio.create_task(sandbox.run(python(mine + look + "time.sleep(99)"), profile, lambda *_: ready.set()))
    await first(ready, holder)
    second = await sandbox.run(Job(action_id="a2", argv=["python3", "-I", "-c", look]), profile)
    await sandbox.kill("a1")
    own = (await holder).stdout.split()
    assert own[:4] == [b"True"] * 4, "the probe must find what is there"
    assert second.stdout.split()[:4] == [b"False"] * 4
    assert good(second)


async def test_many_at_once(sandbox: Sandbox, profile: Profile) -> None:
    async def one(number: int) -> str:
        job = Job(action_id=f"a{number}", argv=["sh", "-c", f"echo {number} > /tmp/x; sleep 0.3; cat /tmp/x"])
        return good(await sandbox.run(job, profile))

    assert await asyncio.gather(*(one(number) for number in range(8))) == [f"{number}\n" for number in range(8)]


@pytest.mark.parametrize("sandbox", ["cold"], indirect=True)
async def test_reap_takes_what_a_killed_daemon_left_and_nothing_else(
    sandbox: Sandbox, profile: Profile, state_id: str, tmp_path: Path
) -> None:
    script = tmp_path / "daemon.py"
    script.write_text(
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from runtimes.sandbox.contract import Job, Profile\nfrom runtimes.sandbox.docker import DockerSandbox\n"
        "job = Job(action_id='a-dead', argv=['sleep', '600'], files={'f': b'x'})\n"
        "asyncio.run(DockerSandbox(sys.argv[1], scratch_dir=Path(sys.argv[2])).run(job, Profile()))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    daemon = subprocess.Popen([sys.executable, script, state_id, tmp_path / "scratch"], env=environment)
    try:
        await asyncio.to_thread(until, lambda: running(state_id) == ["a-dead"], "the job never began")
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    assert containers(state_id) == ["a-dead"]
    assert list((tmp_path / "scratch").glob("*/*/f"))

    stranger = DockerSandbox(state_id + "-other", scratch_dir=tmp_path / "other")
    assert await stranger.reap() == ()
    await stranger.close()
    assert containers(state_id) == ["a-dead"]

    own = asyncio.create_task(sandbox.run(shell("sleep 1.5; echo well", files={"mine": b""}), profile))
    await asyncio.to_thread(until, lambda: sorted(running(state_id)) == ["a-dead", "a1"], "the second job never began")
    assert await sandbox.reap() == ("a-dead",)
    assert containers(state_id) == ["a1"]
    assert good(await own) == "well\n"
    assert not list((tmp_path / "scratch").glob("*/*"))
    assert await sandbox.reap() == ()


def running(state_id: str) -> list[str]:
    found = engine().containers(filters={"label": f"org.goex.state={state_id}"})
    return [item["Labels"].get("org.goex.action", "") for item in found]


async def test_what_programs_ordinarily_do_works(sandbox: Sandbox, profile: Profile) -> None:
    """The allow-list of system calls must not be so tight that honest programs fail."""
    code = """
import asyncio, concurrent.futures, ctypes, mmap, multiprocessing, os, shutil, signal, sqlite3, ssl, subprocess, tempfile
import threading, time, zipfile, tarfile, selectors
os.chdir("/tmp")
with concurrent.futures.ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, 2])) == [1, 2]
with concurrent.futures.ProcessPoolExecutor(2) as pool: assert list(pool.map(abs, [-1, 2])) == [1, 2]
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1]) == [1]
async def net():
    async def serve(r, w): w.write(await r.readline()); w.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b"hi\\n"); assert await r.read() == b"hi\\n"
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    assert (await process.communicate(b"x"))[0] == b"x"
    await asyncio.wait_for(asyncio.to_thread(time.sleep, 0.01), 1)
asyncio.run(net())
db = sqlite3.connect("/tmp/db"); db.execute("pragma journal_mode=wal"); db.execute("create table a(b)"); db.commit()
ssl.create_default_context()
m = mmap.mmap(-1, 4096); m[:1] = b"x"
open("a", "w").write("x" * 100000)
shutil.copy2("a", "b"); shutil.copytree("/etc/ssl/certs", "certs"); os.link("a", "c"); os.symlink("a", "d"); os.mkfifo("f")
os.chmod("a", 0o755); os.utime("a", (1, 1)); os.rename("b", "e"); os.chown("a", os.getuid(), os.getgid())
shutil.make_archive("z", "zip", "certs"); shutil.make_archive("t", "gztar", "certs"); shutil.rmtree("certs")
signal.setitimer(signal.ITIMER_REAL, 0.01)
try: signal.sigwait({signal.SIGALRM}) if signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}) is not None else None
finally: pass
os.nice(1); os.sched_getaffinity(0); os.getloadavg(); os.cpu_count(); os.urandom(8)
print(subprocess.run("seq 3 | sort -r | tr '\\\\n' ' ' ; ls -la /tmp | wc -l | grep -q . ; cp -a e g; mv g h; tar cf t.tar a h;"
      "tar xf t.tar; find . -name h; sed -i s/x/y/ h; date +%Z; head -c 3 /dev/urandom | wc -c; df /tmp >/dev/null; id -u",
      shell=True, capture_output=True, text=True, check=True))
"""
    roomy = limited(profile, memory=256 * 2**20, pids=64)
    result = await sandbox.run(python(code), roomy)
    assert result.stderr == b""
    assert "stderr=''" in good(result)


async def test_an_unknown_image_and_one_that_is_not_built(sandbox: Sandbox, profile: Profile) -> None:
    with pytest.raises(InvalidInput, match="no sandbox image"):
        await sandbox.run(shell("true"), Profile(image="../etc", limits=SMALL))
    assert (await sandbox.image_id(profile)).startswith("sha256:")
    with pytest.raises(Unavailable):
        raise SandboxFailed("the provider's failure is an Unavailable")
