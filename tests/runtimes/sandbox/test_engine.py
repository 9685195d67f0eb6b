"""Docker missing, refusing, hanging, dying: each a clear error that names what mends it, never a library's own.

A relay between us and the real engine is cut or held where the real engine can't be made to fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from runtimes.sandbox.contract import Job, Limits, Profile, Result, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox, require_runtime
from runtimes.sandbox.engine import Engine, connect, refused, translate

REAL = "/var/run/docker.sock"


class Relay:
    """Passes bytes on to the engine until `cut` (connections break) or `hold` (nothing passes any more)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._holding = threading.Event()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                theirs = socket.socket(socket.AF_UNIX)
                theirs.connect(REAL)
                self._open += [ours, theirs]
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                while self._holding.is_set():
                    threading.Event().wait(0.05)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def hold(self) -> None:
        self._holding.set()

    def cut(self) -> None:
        self._listener.close()
        self.path.unlink(missing_ok=True)
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    made = Relay(tmp_path / "docker.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.path}")
    yield made
    made.cut()


def test_no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    with pytest.raises(SandboxFailed, match="isn't there") as caught:
        connect()
    assert "goex doctor" in caught.value.next_step
    assert not caught.value.began


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "left.sock"))
    left.close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/left.sock")
    with pytest.raises(SandboxFailed, match="isn't running"):
        connect()


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:2375", "ssh://host", "http://x", "npipe:////./pipe/x", "/x.sock"])
def test_another_machines_engine_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(SandboxFailed, match="this machine alone"):
        connect()


def test_an_engine_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = socket.socket(socket.AF_UNIX)
    deaf.bind(str(tmp_path / "deaf.sock"))
    deaf.listen()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/deaf.sock")
    with pytest.raises(SandboxFailed, match="didn't answer in time"):
        connect(1)
    deaf.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_a_user_who_may_not(tmp_path: Path) -> None:
    """Root passes every check, so another user asks: in a child process."""
    server = socket.socket(socket.AF_UNIX)
    folder = Path("/tmp", f"goex-engine-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    try:
        server.bind(str(folder / "docker.sock"))
        server.listen()
        (folder / "docker.sock").chmod(0o660)
        child = os.fork()
        if child == 0:
            code = 9
            with contextlib.suppress(BaseException):
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                os.environ["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
                try:
                    connect()
                except SandboxFailed as error:
                    code = 0 if "may not speak" in error.message and "goex doctor" in error.next_step else 1
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        server.close()
        (folder / "docker.sock").unlink()
        folder.rmdir()


def test_what_the_engine_says_is_escaped_and_shortened() -> None:
    error = docker.errors.APIError("x", explanation="bad \x1b[31m" + "y" * 2000)
    message = translate(error, "start the container").message
    assert "\x1b" not in message
    assert len(message) < 600
    assert "more characters" in message
    assert refused(error)


@pytest.mark.promise(49)
def test_a_runtime_is_honoured_or_refused() -> None:
    with pytest.raises(SandboxFailed, match="runsc, which Docker doesn't have"):
        require_runtime("runsc", {"runc": {}}, with_socket=False)
    with pytest.raises(SandboxFailed, match="allow-list") as caught:
        require_runtime("runsc", {"runsc": {"path": "runsc"}}, with_socket=False)
    assert "--oci-seccomp" in caught.value.next_step
    filtered = ["--oci-seccomp"]
    require_runtime("runsc", {"runsc": {"runtimeArgs": filtered}}, with_socket=False)
    with pytest.raises(SandboxFailed, match="gateway's socket") as caught:
        require_runtime("runsc", {"runsc": {"runtimeArgs": filtered}}, with_socket=True)
    assert "--host-uds=open" in caught.value.next_step
    require_runtime("runsc", {"runsc": {"runtimeArgs": [*filtered, "--host-uds=open"]}}, with_socket=True)


@pytest.mark.docker
async def test_a_missing_runtime_runs_nothing(sandbox_image: str) -> None:
    if "runsc" in docker.from_env().info()["Runtimes"]:
        pytest.skip("this engine has runsc")
    sandbox = DockerSandbox(f"test-engine-{os.getpid()}")
    with pytest.raises(SandboxFailed, match="runsc") as caught:
        await sandbox.run(Job(action_id="a", argv=["true"]), Profile(runtime="runsc"))
    assert not caught.value.began
    await sandbox.close()


@pytest.mark.docker
@pytest.mark.parametrize("how", ["cut", "hold"])
async def test_an_engine_that_dies_under_a_job(
    sandbox_image: str, relay: Relay, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's fate isn't known then: the error says that it began, and a later daemon reaps what is left."""
    state = f"engine-{how}-{os.getpid()}"
    sandbox = DockerSandbox(state, engine=Engine(lambda: connect(2)))
    begun = asyncio.Event()
    job = Job(action_id="a", argv=["sh", "-c", "echo begun; sleep 60"])
    profile = Profile(limits=Limits(seconds=3.0))
    task = asyncio.create_task(sandbox.run(job, profile, lambda *_: begun.set()))
    await first(begun, task)
    getattr(relay, how)()
    with pytest.raises(SandboxFailed) as caught:
        await asyncio.wait_for(task, 300)
    assert caught.value.began
    assert "goex doctor" in caught.value.next_step
    monkeypatch.setenv("DOCKER_HOST", f"unix://{REAL}")
    later = DockerSandbox(state)
    assert set(await later.reap()) <= {"a"}
    assert await later.reap() == ()
    await later.close()


@pytest.mark.docker
async def test_an_engine_that_comes_back_is_used_again(
    sandbox_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "later.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    sandbox = DockerSandbox(f"test-engine-{os.getpid()}")
    job = Job(action_id="a", argv=["echo", "well"])
    with pytest.raises(SandboxFailed, match="isn't there"):
        await sandbox.run(job, Profile())
    relay = Relay(path)
    assert (await sandbox.run(job, Profile())).stdout == b"well\n"
    relay.cut()
    with pytest.raises(SandboxFailed):
        await sandbox.run(job, Profile())
    second = Relay(path)
    assert (await sandbox.run(job, Profile())).stdout == b"well\n"
    await sandbox.close()
    second.cut()


async def first(event: asyncio.Event, task: asyncio.Task[Result]) -> None:
    """Wait for the event, but not beyond the end of the task that would set it."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert event.is_set(), task.exception() or task.result()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.docker
async def test_no_descriptor_and_no_thread_is_left(sandbox_image: str) -> None:
    sandbox = DockerSandbox(f"test-engine-{os.getpid()}")
    job = Job(action_id="a", argv=["true"], files={"f": b"x"})
    for _ in range(4):
        await sandbox.run(job, Profile())
    before = descriptors()
    for _ in range(10):
        await sandbox.run(job, Profile())
    assert descriptors() <= before + 8  # the library's pool breathes; one left by each run would be 10
    await sandbox.close()
