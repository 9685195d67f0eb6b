"""The attacks against other ways to run a container: `runsc`, and an engine that maps users (`userns-remap`).

Both run on an engine of the tests' own. They take minutes: `make attacks` runs them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.cli import doctor
from policies.actions import Ended
from runtimes.sandbox.contract import Job, Profile, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.engine import Engine
from tests.adversarial.container_attacks import ATTACKS
from tests.adversarial.test_container import LIMITS, PROGRAM
from tests.services.engine import PrivateEngine, can_run

pytestmark = [
    pytest.mark.docker,
    pytest.mark.thorough,
    pytest.mark.skipif(not can_run(), reason="this user can't run an engine of its own"),
    pytest.mark.timeout(600),
]

# No attack on runsc: what its own kernel answers with is neither the host's nor another's; and its /tmp has a
# size alone, no count of files.
HARMLESS = {"kernel_command_line", "many_files_in_tmp"}
# Its limits count what its own kernel takes too, and end all of it: by class, below.
BY_CLASS = {"much_memory", "many_processes"}
NOT_IN_A_FOLDER = [name for name in ATTACKS if not name.startswith("folder_") and name != "processors"]
IN_RUNSC = [name for name in NOT_IN_A_FOLDER if name not in BY_CLASS]
ENV = {
    "HOST_ABSTRACT": "x",
    "HOST_PORT": "1",
    "HOST_SHM": "0",
    "HOST_PID": str(os.getpid()),
    "HOST_COMM": Path("/proc/self/comm").read_text(),
    "HOST_NAME": os.uname().nodename,
    "NEIGHBOUR": str(os.getpid()),
    "NEIGHBOUR_FILE": __file__,
    "NEIGHBOUR_SHM": "x",
}


@pytest.fixture(scope="module")
def short() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="goex-e-", dir="/var/tmp"))  # an overlay can't hold another
    folder.chmod(0o711)  # mapped users go through it
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def sandbox(engine: PrivateEngine) -> DockerSandbox:
    return DockerSandbox(f"deep-{os.getpid()}", scratch_dir=engine.folder / "scratch", engine=Engine(engine.client))


def job(*names: str) -> Job:
    return Job(
        action_id="attack",
        argv=["/usr/bin/python3", "-I", "-S", "/goex/job/probes.py", *names],
        files={"probes.py": f"{PROGRAM}\n\nmain()\n".encode(), "victim": b""},
        env=ENV,
    )


async def outcomes(engine: PrivateEngine, profile: Profile, names: list[str]) -> dict[str, str]:
    made = sandbox(engine)
    try:
        result = await made.run(job(*names), profile)
        assert result.exit_code == 0, result
        found: dict[str, str] = json.loads(result.stdout)
        return found
    finally:
        await made.close()


# ---- runsc

RUNSC: dict[str, Any] = {
    "path": shutil.which("runsc"),
    "runtimeArgs": ["--host-uds=open", "--network=none", "--oci-seccomp"],
}


ROOMY = dataclasses.replace(LIMITS, memory=400 * 2**20)


@pytest.fixture(scope="module")
def with_runsc(short: Path, sandbox_image: str) -> Iterator[PrivateEngine]:
    if RUNSC["path"] is None:
        pytest.skip("no runsc: apt-get install runsc")
    with PrivateEngine(short / "g", runtimes={"runsc": RUNSC}) as engine:
        engine.give(sandbox_image)
        yield engine


@pytest.fixture(scope="module")
def in_runsc(with_runsc: PrivateEngine) -> dict[str, str]:
    return asyncio.run(outcomes(with_runsc, Profile(limits=ROOMY, runtime="runsc"), IN_RUNSC))


@pytest.mark.promise(49)
@pytest.mark.parametrize("name", [name for name in IN_RUNSC if name not in HARMLESS])
def test_refused_by_runsc(in_runsc: dict[str, str], name: str) -> None:
    assert in_runsc[name].startswith("refused")


async def test_a_job_in_runsc_reaches_its_gateway_and_nothing_of_the_host(with_runsc: PrivateEngine) -> None:
    made = sandbox(with_runsc)
    place = with_runsc.folder / "place"
    place.mkdir()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_unix_server(serve, place / "gw.sock")
    (place / "gw.sock").chmod(0o666)
    code = (
        "import socket,os;s=socket.socket(socket.AF_UNIX);s.connect('/goex/gateway/gw.sock');print(s.recv(9).decode(),"
        "os.uname().release,os.getuid())"
    )
    try:
        given = Job(action_id="a", argv=["python3", "-I", "-c", code], socket_dir=str(place))
        result = await made.run(given, Profile(limits=LIMITS, runtime="runsc"))
        said, release, uid = result.stdout.decode().split()
        assert (said, uid) == ("hello", "65534")
        assert release != os.uname().release
    finally:
        server.close()
        await made.close()


async def test_threads_start_in_runsc(with_runsc: PrivateEngine) -> None:
    made = sandbox(with_runsc)
    code = "import threading; one = threading.Thread(target=print, args=('in a thread',)); one.start(); one.join()"
    try:
        job = Job(action_id="a", argv=["python3", "-I", "-c", code])
        result = await made.run(job, Profile(limits=LIMITS, runtime="runsc"))
        assert result.stdout == b"in a thread\n"
    finally:
        await made.close()


async def test_runsc_is_honoured_or_refused(with_runsc: PrivateEngine, sandbox_image: str, tmp_path: Path) -> None:
    made = DockerSandbox(f"deep-{os.getpid()}", scratch_dir=tmp_path)
    try:  # the machine's engine may have it; then this says nothing
        with pytest.raises(SandboxFailed, match="runsc"):
            await made.run(Job(action_id="a", argv=["true"]), Profile(limits=LIMITS, runtime="runsc"))
    finally:
        await made.close()


BOMBS = {
    "while True: pass": Ended.TIMEOUT,
    "import time; time.sleep(99)": Ended.TIMEOUT,
    "while True: print('x' * 9999)": Ended.OUTPUT_CAP,
    "b = bytearray(2 * 10**9)": Ended.OUT_OF_MEMORY,
}


@pytest.mark.parametrize("code", BOMBS)
async def test_bombs_end_on_time_in_runsc(with_runsc: PrivateEngine, code: str) -> None:
    made = sandbox(with_runsc)
    limits = dataclasses.replace(LIMITS, seconds=4.0, output=20_000)
    try:
        job = Job(action_id="a", argv=["python3", "-I", "-c", code])
        result = await made.run(job, Profile(limits=limits, runtime="runsc"))
        assert result.ended is BOMBS[code]
    finally:
        await made.close()


async def test_a_fork_bomb_ends_in_runsc(with_runsc: PrivateEngine) -> None:
    """Its own kernel may end first, which ends the job."""
    made = sandbox(with_runsc)
    code = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    try:
        job = Job(action_id="a", argv=["python3", "-I", "-c", code])
        result = await made.run(job, Profile(limits=dataclasses.replace(LIMITS, seconds=4.0), runtime="runsc"))
        assert (result.ended, result.exit_code) != (Ended.EXITED, 0)
    finally:
        await made.close()


# ---- users that aren't the host's


@pytest.fixture(scope="module")
def mapping(short: Path, sandbox_image: str) -> Iterator[PrivateEngine]:
    if not Path("/etc/subuid").exists() or "dockremap:" not in Path("/etc/subuid").read_text():
        pytest.skip("no users to map to: /etc/subuid and /etc/subgid have no line for dockremap")
    with PrivateEngine(short / "u", options=["--userns-remap=dockremap"]) as engine:
        engine.give(sandbox_image)
        yield engine


def test_refused_where_users_are_mapped(mapping: PrivateEngine) -> None:
    found = asyncio.run(outcomes(mapping, Profile(limits=LIMITS), NOT_IN_A_FOLDER))
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}


async def test_a_jobs_user_is_nobody_of_the_hosts_where_users_are_mapped(mapping: PrivateEngine) -> None:
    made = sandbox(mapping)
    code = "print(open('/proc/self/uid_map').read())"
    try:
        result = await made.run(Job(action_id="a", argv=["python3", "-I", "-c", code]), Profile(limits=LIMITS))
        inside, outside, _ = result.stdout.split()
        assert inside == b"0"
        assert int(outside) >= 65536
    finally:
        await made.close()


async def test_a_folders_owner_works_on_it_where_users_are_mapped(mapping: PrivateEngine) -> None:
    made = sandbox(mapping)
    folder = mapping.folder / "work"
    folder.mkdir(exist_ok=True)
    os.chown(folder, 1234, 1234)
    try:
        job = Job(action_id="a", argv=["sh", "-c", "echo x > made; id -u"], folder=str(folder), uid=1234, gid=1234)
        result = await made.run(job, Profile(limits=LIMITS))
        assert result.stdout == b"1234\n"
        assert (folder / "made").stat().st_uid == 1234
    finally:
        await made.close()


def test_doctor_says_whether_users_are_mapped(mapping: PrivateEngine) -> None:
    client = mapping.client()
    try:
        assert doctor._users(client.info()).says.startswith("mapped")
    finally:
        client.close()
