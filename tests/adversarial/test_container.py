"""Attacks on the container: each refused, and each successful where exactly its defences are missing.

`ATTACKS` of container_attacks.py names for each attack the defences that stand in its way. Attacks with the same
defences share a container, which starts once in a run.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import os
import platform
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from runtimes.sandbox.container_pool import Kind, kind_of
from runtimes.sandbox.contract import Job, Limits, Profile, SandboxFailed
from runtimes.sandbox.defences import Defence
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.adversarial.container_attacks import ATTACKS, only

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the probes know x86-64's system calls"),
    pytest.mark.skipif(os.geteuid() != 0, reason="setting the traps takes root"),
]

SHARED = "from tests.adversarial.container_probes import call, must, sleeper, text\n"
PROGRAM = "\n".join(
    Path(__file__).with_name(name).read_text().replace(SHARED, "")
    for name in ("container_probes.py", "kernel_probes.py")
)
LIMITS = Limits(memory=128 * 2**20, pids=48, tmp=16 * 2**20, file_size=8 * 2**20, seconds=60)

GROUPS = sorted(set(ATTACKS.values()), key=sorted)
LAYERED = [(group, last) for group in GROUPS if len(group) > 1 for last in sorted(group)]
NOTHING = frozenset[Defence]()
Outcomes = Callable[..., str]


def named(value: frozenset[Defence] | Defence) -> str:
    return value.name if isinstance(value, Defence) else "+".join(sorted(item.name for item in value))


# What an attack is on; a kernel without it has no place for that attack.
FILES = {
    "sysrq": "/proc/sysrq-trigger",
    "kernel_memory": "/proc/kcore",
    "uncover_a_masked_file": "/proc/keys",
    "keys_of_others": "/proc/keys",
    "interrupts": "/proc/interrupts",
    "module_parameters": "/sys/module/kernel",
    "firmware_tables": "/sys/firmware",
    "kernel_notes": "/sys/kernel/notes",
    "disks_of_the_host": "/proc/partitions",
    "compare_kernel_objects": "/proc/self/ns",
    "socket_mptcp": "/proc/sys/net/mptcp",
    "kernel_configuration": "/proc/config.gz",
    "count_the_containers": "/proc/cgroups",
    "pressure_of_neighbours": "/proc/pressure/cpu",
}


@dataclass(frozen=True)
class Ground:
    """What is there to be found: the host's listeners and memory, and a person's folder full of traps."""

    folder: Path
    env: dict[str, str]
    left_out: frozenset[str]  # attacks that this machine's kernel doesn't know


@pytest.fixture(scope="module")
def ground(sandbox_image: str) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="goex-traps-"))
    folder.chmod(0o755)
    left_out = set()
    shutil.copy("/usr/bin/id", folder / "setuid-id")
    (folder / "setuid-id").chmod(0o4755)
    if not make_openable_device(folder / "device"):
        left_out.add("folder_device")
    if Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"):
        left_out.add("core_dump")  # a program on the host gets it, whatever the limit says
    left_out |= {attack for attack, path in FILES.items() if not Path(path).exists()}
    (folder / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder / "mounted"], check=True)
    (folder / "mounted" / "inside").write_text("x")
    abstract = f"goex-host-{secrets.token_hex(4)}"
    listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    for listener, address in zip(listeners, (f"\0{abstract}", str(folder / "socket"), ("127.0.0.1", 0)), strict=True):
        listener.bind(address)
        listener.listen(64)
    (folder / "socket").chmod(0o666)
    (folder / "others").write_text("another's file")
    in_memory = Path("/dev/shm") / f"goex-{secrets.token_hex(4)}"
    in_memory.write_text("another's")
    neighbour = subprocess.Popen(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", 'exec 3<"$0"; exec sleep 600',
         folder / "others"],
        env={"NEIGHBOURS_OWN": "x", "PATH": os.environ["PATH"]},
    )  # fmt: skip
    libc = ctypes.CDLL(None, use_errno=True)
    shared = libc.shmget(0, 4096, 0o1666)
    env = {
        "HOST_ABSTRACT": abstract,
        "HOST_PORT": str(listeners[2].getsockname()[1]),
        "HOST_SHM": str(shared),
        "HOST_PID": str(os.getpid()),
        "HOST_COMM": Path("/proc/self/comm").read_text(),
        "HOST_NAME": os.uname().nodename,
        "NEIGHBOUR": str(neighbour.pid),
        "NEIGHBOUR_FILE": str(folder / "others"),
        "NEIGHBOUR_SHM": in_memory.name,
    }
    yield Ground(folder=folder, env=env, left_out=frozenset(left_out))
    neighbour.kill()
    neighbour.wait()
    in_memory.unlink()
    libc.shmctl(shared, 0, None)
    for listener in listeners:
        listener.close()
    subprocess.run(["umount", folder / "mounted"], check=True)
    shutil.rmtree(folder)


def make_openable_device(path: Path) -> bool:
    """A device that the host lets anybody open, and that is none of those every container may open."""
    disk = Path("/").stat().st_dev
    for kind, device in (
        (stat.S_IFCHR, os.makedev(10, 229)),
        (stat.S_IFCHR, os.makedev(10, 237)),
        (stat.S_IFBLK, disk),
    ):
        os.mknod(path, kind, device)
        path.chmod(0o666)
        as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", ': < "$0"', path]
        if subprocess.run(as_nobody, stderr=subprocess.DEVNULL).returncode == 0:
            return True
        path.unlink()
    return False


async def outcomes(
    ground: Ground, names: list[str], missing: frozenset[Defence], *, waited: bool = False
) -> dict[str, str]:
    """What comes of these attacks in containers without the `missing` defences."""
    bounds = PoolBounds(least=1, most=1) if waited else PoolBounds(least=0, most=0)
    sandbox = DockerSandbox(f"adversarial-{os.getpid()}", bounds=bounds, unsafe_without=missing)
    found: dict[str, str] = {}
    try:
        for kind in sorted({_kind(name) for name in names}):
            chosen = [name for name in names if _kind(name) == kind]
            job = Job(
                action_id="attack",
                argv=["/usr/bin/python3", "-I", "-S", "/goex/job/probes.py", *chosen],
                files={"probes.py": f"{PROGRAM}\n\nmain()\n".encode(), "victim": b""},
                env=ground.env,
                folder=str(ground.folder) if kind == "folder" else None,
            )
            profile = Profile(limits=dataclasses.replace(LIMITS, cpus=0.1 if kind == "processors" else LIMITS.cpus))
            if waited:
                await prepared(sandbox, profile)
            result = await sandbox.run(job, profile)
            assert result.exit_code == 0, result
            found |= json.loads(result.stdout)
    finally:
        await sandbox.close()
    assert set(found) == set(names)
    return found


async def prepared(sandbox: DockerSandbox, profile: Profile, job: Job | None = None) -> None:
    """Have one container wait, for that job or for any without a folder."""
    kind = kind_of(job, profile) if job is not None else Kind(profile)
    assert kind is not None
    sandbox._pool.want(kind)
    for _ in range(6_000):
        if sandbox.pooled(profile, job):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("none waits")


def _kind(name: str) -> str:
    """What container an attack wants: one with a person's folder, one with a small share of the processors, any."""
    return name.partition("_")[0] if name.startswith("folder_") or name == "processors" else ""


@pytest.fixture(scope="module")
def tried(ground: Ground) -> Outcomes:
    """What came of attacks, by what was missing; all that fit into one container are tried together, once."""
    known: dict[tuple[frozenset[Defence], bool], dict[str, str]] = {}

    def look(name: str, missing: frozenset[Defence] = NOTHING, *, waited: bool = False) -> str:
        if name in ground.left_out:
            pytest.skip("this machine's kernel has no place for this attack")
        if (missing, waited) not in known:
            names = [
                one for one, group in ATTACKS.items() if one not in ground.left_out and missing in (NOTHING, group)
            ]
            names = [one for one in names if not (waited and _kind(one))]
            known[missing, waited] = asyncio.run(outcomes(ground, names, missing, waited=waited))
        return known[missing, waited][name]

    return look


@pytest.mark.promise(44)
@pytest.mark.parametrize("name", ATTACKS)
def test_refused(tried: Outcomes, name: str) -> None:
    assert tried(name).startswith("refused")


@pytest.mark.parametrize("name", [name for name in ATTACKS if not _kind(name)])
def test_refused_in_one_that_waited(tried: Outcomes, name: str) -> None:
    assert tried(name, waited=True).startswith("refused")


@pytest.mark.promise(44)
@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(tried: Outcomes, name: str) -> None:
    assert tried(name, ATTACKS[name]) == "succeeded"


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("group", "last"), LAYERED, ids=named)
def test_each_layer_is_enough(ground: Ground, group: frozenset[Defence], last: Defence) -> None:
    names = [name for name, layers in ATTACKS.items() if layers == group and name not in ground.left_out]
    if group - {last} == {Defence.NO_NEW_PRIVILEGES}:
        # The filter then comes before the engine's last steps, which it refuses: nothing starts at all.
        with pytest.raises(SandboxFailed, match="start the container"):
            asyncio.run(outcomes(ground, names, group - {last}))
        return
    found = asyncio.run(outcomes(ground, names, group - {last}))
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}


def lies_in(folder: Path, said: bytes) -> bool:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files, f"{folder} can't be looked into"
    return any(said in file.read_bytes() for file in files if "config" not in file.name)  # which holds the command


async def kept_by_the_engine(missing: frozenset[Defence], said: str) -> bool:
    """Whether what a job prints lies in a file of the engine's while the job runs."""
    sandbox = DockerSandbox(f"adversarial-{os.getpid()}", unsafe_without=missing)
    client = docker.from_env().api
    begun = asyncio.Event()
    job = Job(action_id="prints", argv=["sh", "-c", f"echo {said}; sleep 60"])
    running = asyncio.create_task(sandbox.run(job, Profile(limits=LIMITS), lambda *_: begun.set()))
    try:
        await begun.wait()
        (found,) = client.containers(filters={"label": f"org.goex.state=adversarial-{os.getpid()}"})
        return lies_in(Path(client.info()["DockerRootDir"], "containers", found["Id"]), said.encode())
    finally:
        await sandbox.kill("prints")
        await running
        await sandbox.close()
        client.close()


async def test_what_is_printed_stays_in_no_log(sandbox_image: str) -> None:
    said = secrets.token_hex(8)
    assert not await kept_by_the_engine(NOTHING, said)
    assert await kept_by_the_engine(only(Defence.LOG), said), "the control"


def test_only_tests_take_defences_away() -> None:
    """The keyword is named for its danger, and nothing that runs actions may use it."""
    top = Path(__file__).parents[2]
    users = [
        file.relative_to(top).as_posix()
        for package in ("goex", "runtimes", "mapper", "policies", "vault")
        for file in (top / package).rglob("*.py")
        if "unsafe_without" in file.read_text()
    ]
    assert sorted(users) == ["runtimes/sandbox/defences.py", "runtimes/sandbox/docker.py"]
