"""The defences of a container, by name, and what each one's absence means to the engine.

Every job has all of them. An attack that is refused proves little unless it succeeds where its defence is missing:
so the tests, and only they, run a container without some (`DockerSandbox(unsafe_without=…)`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Defence(StrEnum):
    """One thing that stands between a job and everything else."""

    NETWORK = "own network namespace with loopback alone"
    NON_ROOT = "a user other than root"
    CAPABILITIES = "no capabilities"
    NO_NEW_PRIVILEGES = "no new privileges by running a program"
    SECCOMP = "the system call allow-list"
    READ_ONLY_ROOT = "a read-only root filesystem"
    MASKED_PATHS = "masked files in /proc and /sys"
    READ_ONLY_PATHS = "read-only files in /proc and /sys"
    DEVICES = "no devices but the harmless ones"
    IPC = "own shared memory and queues"
    PROCESSES = "own process ids"
    CGROUPS = "own view of control groups"
    HOSTNAME = "a host name that says nothing"
    NO_EXEC = "nothing in /tmp can be run as a program"
    READ_ONLY_JOB = "the job's own files can't be changed"
    SUBMOUNTS = "what is mounted below the folder stays outside"
    MEMORY = "a memory limit, swap included"
    PIDS = "a limit of processes"
    CPUS = "a share of the processors"
    TMP_SIZE = "a size limit of /tmp and /dev/shm"
    FILE_SIZE = "a size limit for each file"
    OPEN_FILES = "a limit of open files"
    SIGNALS = "a limit of pending signals"
    CORE = "no core dumps"
    LOG = "no log of the engine's"


def apply(missing: frozenset[Defence], config: dict[str, Any]) -> None:
    """Take the `missing` defences out of a container's configuration. For controls in tests alone."""
    if not missing:
        return
    host = config["HostConfig"]
    # The host's AppArmor profile, where there is one, is no part of what a control measures.
    host["SecurityOpt"].append("apparmor=unconfined")
    if Defence.SECCOMP in missing:
        _without_option(host, "seccomp=")
        host["SecurityOpt"].append("seccomp=unconfined")
    if Defence.NO_NEW_PRIVILEGES in missing:
        _without_option(host, "no-new-privileges")
    if Defence.NETWORK in missing:
        config["NetworkDisabled"] = False
    if Defence.NON_ROOT in missing:
        config["User"] = "0:0"
    if Defence.HOSTNAME in missing:
        del config["Hostname"]
    for defence, change in _CHANGES.items():
        if defence in missing:
            host.update(change)
    if Defence.NO_EXEC in missing:
        host["Tmpfs"] = {path: options.replace(",noexec", ",exec") for path, options in host["Tmpfs"].items()}
    if Defence.TMP_SIZE in missing:
        host["Tmpfs"] = dict.fromkeys(host["Tmpfs"], "rw,nosuid,nodev,noexec,mode=1777")
        host["ShmSize"] = 2**30
    if Defence.SECCOMP in missing:
        # The kernel counts locked memory by user over all containers, so others' would refuse an io_uring instead.
        host["Ulimits"] = [item for item in host["Ulimits"] if item["Name"] != "memlock"]
    for defence, limit, most in (
        (Defence.FILE_SIZE, "fsize", -1),
        (Defence.OPEN_FILES, "nofile", 8192),
        (Defence.SIGNALS, "sigpending", 8192),
        (Defence.CORE, "core", -1),
    ):
        if defence in missing:
            host["Ulimits"] = [item for item in host["Ulimits"] if item["Name"] != limit]
            host["Ulimits"].append({"Name": limit, "Soft": most, "Hard": most})
    for mount in host["Mounts"]:
        if Defence.READ_ONLY_JOB in missing:
            mount["ReadOnly"] = False
        if Defence.SUBMOUNTS in missing:
            mount["BindOptions"]["NonRecursive"] = False


# Not ALL: an engine that lacks one itself couldn't give it.
_STRONG = [
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "MKNOD", "NET_ADMIN", "NET_RAW", "SETFCAP",
    "SETGID", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_CHROOT", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME",
]  # fmt: skip

_CHANGES: dict[Defence, dict[str, Any]] = {
    Defence.NETWORK: {"NetworkMode": "host"},
    Defence.CAPABILITIES: {"CapDrop": [], "CapAdd": _STRONG},
    Defence.READ_ONLY_ROOT: {"ReadonlyRootfs": False},
    Defence.MASKED_PATHS: {"MaskedPaths": []},
    Defence.READ_ONLY_PATHS: {"ReadonlyPaths": []},
    Defence.DEVICES: {"DeviceCgroupRules": ["a *:* rwm"]},
    Defence.IPC: {"IpcMode": "host"},
    Defence.PROCESSES: {"PidMode": "host"},
    Defence.CGROUPS: {"CgroupnsMode": "host"},
    Defence.HOSTNAME: {"UTSMode": "host"},
    Defence.MEMORY: {"Memory": 0, "MemorySwap": 0},
    Defence.PIDS: {"PidsLimit": 0},
    Defence.CPUS: {"NanoCpus": 0},
    Defence.LOG: {"LogConfig": {"Type": "json-file", "Config": {}}},
}


def _without_option(host: dict[str, Any], start: str) -> None:
    host["SecurityOpt"] = [option for option in host["SecurityOpt"] if not option.startswith(start)]
