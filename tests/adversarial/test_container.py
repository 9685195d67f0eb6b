"""Attacks on the container: each refused, and each successful where exactly its defences are missing.

`ATTACKS` names for each attack the defences that stand in its way. With all of them taken away it must succeed
(the control: else it proves nothing); with all of them but one taken away it must still be refused, so that each of
them is enough on its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtimes.sandbox.contract import Job, Limits, Profile, SandboxFailed
from runtimes.sandbox.defences import Defence
from runtimes.sandbox.docker import DockerSandbox

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the probes know x86-64's system calls"),
    pytest.mark.skipif(os.geteuid() != 0, reason="setting the traps takes root"),
]

PROBES = Path(__file__).with_name("container_probes.py")
LIMITS = Limits(memory=128 * 2**20, pids=48, tmp=16 * 2**20, file_size=8 * 2**20, seconds=60)

RIGHTS = frozenset({Defence.SECCOMP, Defence.CAPABILITIES, Defence.NON_ROOT})
CALLS = frozenset({Defence.SECCOMP})


def only(*defences: Defence) -> frozenset[Defence]:
    return frozenset(defences)


ATTACKS: dict[str, frozenset[Defence]] = {
    "mount_tmpfs": RIGHTS,
    "new_user_namespace": CALLS,
    "new_mount_namespace": RIGHTS,
    "clone_new_user_namespace": CALLS,
    "change_root": RIGHTS,
    "make_device": RIGHTS,
    "trace_a_process": CALLS,
    "read_a_process": CALLS,
    "take_a_descriptor": CALLS,
    "kernel_key": CALLS,
    "bpf_map": RIGHTS,
    "page_fault_handler": CALLS,
    "io_uring": CALLS,
    "performance_events": CALLS,
    "file_watches": CALLS,
    "socket_netlink": CALLS,
    "socket_vsock": CALLS,
    "socket_packet": RIGHTS,
    "socket_raw": RIGHTS,
    "no_address_randomisation": CALLS,
    "program_in_memory": CALLS,
    "calls_of_32_bit": CALLS,
    "kernel_log": RIGHTS,
    "host_name_change": RIGHTS,
    "file_by_handle": RIGHTS,
    "sysctl_write": only(Defence.NON_ROOT, Defence.READ_ONLY_PATHS),
    "sysrq": only(Defence.NON_ROOT, Defence.READ_ONLY_PATHS),
    "kernel_memory": only(Defence.NON_ROOT, Defence.CAPABILITIES, Defence.MASKED_PATHS),
    "kernel_command_line": only(Defence.MASKED_PATHS),
    "boot_id": only(Defence.MASKED_PATHS),
    "write_outside_tmp": only(Defence.READ_ONLY_ROOT),
    "program_in_tmp": only(Defence.NO_EXEC),
    "many_processes": only(Defence.PIDS),
    "much_memory": only(Defence.MEMORY),
    "much_in_tmp": only(Defence.TMP_SIZE),
    "large_file": only(Defence.FILE_SIZE),
    "many_open_files": only(Defence.OPEN_FILES),
    "core_dump": only(Defence.CORE),
    "host_abstract_socket": only(Defence.NETWORK),
    "host_loopback": only(Defence.NETWORK),
    "host_interfaces": only(Defence.NETWORK),
    "host_shared_memory": only(Defence.IPC, Defence.SECCOMP),
    "host_processes": only(Defence.PROCESSES),
    "host_groups": only(Defence.CGROUPS),
    "host_name": only(Defence.HOSTNAME),
    "plant_setuid_by_mode": CALLS,
    "plant_setuid_by_open": CALLS,
    "change_the_job": only(Defence.READ_ONLY_JOB, Defence.NON_ROOT),
    "folder_setuid_program": only(Defence.NO_NEW_PRIVILEGES, Defence.SECCOMP),
    "folder_device": only(Defence.DEVICES),
    "folder_socket": CALLS,
    "folder_submount": only(Defence.SUBMOUNTS),
}

GROUPS = sorted(set(ATTACKS.values()), key=sorted)
LAYERED = [(group, last) for group in GROUPS if len(group) > 1 for last in sorted(group)]


def named(value: frozenset[Defence] | Defence) -> str:
    return value.name if isinstance(value, Defence) else "+".join(sorted(item.name for item in value))


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
    for file, attack in (("/proc/sysrq-trigger", "sysrq"), ("/proc/kcore", "kernel_memory")):
        if not Path(file).exists():
            left_out.add(attack)
    (folder / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder / "mounted"], check=True)
    (folder / "mounted" / "inside").write_text("x")
    abstract = f"goex-host-{secrets.token_hex(4)}"
    listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    for listener, address in zip(listeners, (f"\0{abstract}", str(folder / "socket"), ("127.0.0.1", 0)), strict=True):
        listener.bind(address)
        listener.listen(64)
    (folder / "socket").chmod(0o666)
    libc = ctypes.CDLL(None, use_errno=True)
    shared = libc.shmget(0, 4096, 0o1666)
    env = {
        "HOST_ABSTRACT": abstract,
        "HOST_PORT": str(listeners[2].getsockname()[1]),
        "HOST_SHM": str(shared),
        "HOST_PID": str(os.getpid()),
        "HOST_COMM": Path("/proc/self/comm").read_text(),
        "HOST_NAME": os.uname().nodename,
    }
    yield Ground(folder=folder, env=env, left_out=frozenset(left_out))
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


async def outcomes(ground: Ground, names: list[str], missing: frozenset[Defence] = frozenset()) -> dict[str, str]:
    """What comes of these attacks in containers without the `missing` defences."""
    sandbox = DockerSandbox(f"adversarial-{os.getpid()}", unsafe_without=missing)
    found: dict[str, str] = {}
    try:
        for folder in (None, str(ground.folder)):
            chosen = [name for name in names if name.startswith("folder_") == (folder is not None)]
            if not chosen:
                continue
            job = Job(
                action_id="attack",
                argv=["python3", "-I", "/goex/job/probes.py", *chosen],
                files={"probes.py": PROBES.read_bytes(), "victim": b""},
                env=ground.env,
                folder=folder,
            )
            result = await sandbox.run(job, Profile(limits=LIMITS))
            assert result.exit_code == 0, result
            found |= json.loads(result.stdout)
    finally:
        await sandbox.close()
    assert set(found) == set(names)
    return found


async def test_every_attack_is_refused(ground: Ground) -> None:
    found = await outcomes(ground, [name for name in ATTACKS if name not in ground.left_out])
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}
    assert len(found) >= 40


@pytest.mark.parametrize("missing", GROUPS, ids=named)
async def test_control_without_its_defences_each_attack_succeeds(ground: Ground, missing: frozenset[Defence]) -> None:
    names = [name for name, group in ATTACKS.items() if group == missing and name not in ground.left_out]
    if not names:
        pytest.skip("this machine's kernel has no place for these attacks")
    found = await outcomes(ground, names, missing)
    assert {name: said for name, said in found.items() if said != "succeeded"} == {}


@pytest.mark.parametrize(("group", "last"), LAYERED, ids=named)
async def test_each_layer_is_enough(ground: Ground, group: frozenset[Defence], last: Defence) -> None:
    names = [name for name, layers in ATTACKS.items() if layers == group]
    if group - {last} == {Defence.NO_NEW_PRIVILEGES}:
        # The filter then comes before the engine's last steps, which it refuses: nothing starts at all.
        with pytest.raises(SandboxFailed, match="start the container"):
            await outcomes(ground, names, group - {last})
        return
    found = await outcomes(ground, names, group - {last})
    assert {name: said for name, said in found.items() if not said.startswith("refused")} == {}


def test_every_defence_has_an_attack() -> None:
    assert set(Defence) == frozenset().union(*ATTACKS.values())


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
