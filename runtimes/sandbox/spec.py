"""From a job to the configuration of its container: a pure function, so that a test can read every line of it.

Rules: everything is stated, also where the engine's default is the same today; what can't be honoured is refused,
never left out; nothing in the configuration is a secret (whoever may ask the engine can read it).

The order inside: `timeout` is process 1, which the job can neither stop, kill nor write to, so that the deadline is
kept even when nobody outside does; below it tini reaps what the job orphans, and `supervise` (of the image) keeps the
deadline a little earlier. The job can kill those two, since they are of its own user; then process 1 ends, and with it
the kernel ends everything in the container.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from policies.display_text import escape
from policies.errors import InvalidInput
from runtimes.sandbox import container_pool, defences, seccomp
from runtimes.sandbox.contract import OPEN_FILES, WORK, Job, Limits, Profile
from runtimes.sandbox.defences import Defence

STATE_LABEL = "org.goex.state"
ACTION_LABEL = "org.goex.action"
INSTANCE_LABEL = "org.goex.instance"
PROFILE_LABEL = "org.goex.profile"  # its image, as the profile names it

_LAST = ["/goex/last", "-s", "KILL"]  # `timeout`, in a file that can't be read: so the job can't write its memory
_LATER = 1.0  # seconds after the deadline, when the supervisors, which the job can stop, didn't keep it
_SUPERVISORS = ["/usr/bin/tini", "-s", "--", "/goex/supervise"]
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108
_SHM = 16 * 2**20
_TMP_FILES = 32768  # inodes of /tmp; an empty file costs kernel memory too
_PENDING_SIGNALS = 1024  # and timers, which the kernel counts by user too: see OPEN_FILES
_RUNSC_TASKS = 192  # what runsc's own kernel takes of the machine's; with less it panics

# The engine's own lists, and what else would tell of the machine, of its keys, or of what others do on it just now.
_MASKED = [
    "/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/cgroups", "/proc/cmdline", "/proc/config.gz",
    "/proc/consoles", "/proc/diskstats", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms",
    "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/latency_stats", "/proc/locks", "/proc/modules",
    "/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi",
    "/proc/slabinfo", "/proc/softirqs", "/proc/sys/kernel/random/boot_id", "/proc/timer_list", "/proc/timer_stats",
    "/proc/vmallocinfo", "/proc/zoneinfo", "/sys/class/dmi", "/sys/devices", "/sys/firmware", "/sys/kernel",
    "/sys/module",
]  # fmt: skip
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose container it is: labels that a later daemon of the same state finds it by."""

    state_id: str
    instance: str

    def labels(self, job: Job | None, profile: Profile) -> dict[str, str]:
        named = {ACTION_LABEL: job.action_id} if job is not None else {}
        whose = {STATE_LABEL: self.state_id, INSTANCE_LABEL: self.instance, PROFILE_LABEL: profile.image}
        return {**whose, **named}


def check(job: Job, profile: Profile) -> None:
    """Raise InvalidInput for a job that no container may be made for."""
    if job.uid <= 0 or job.gid <= 0 or max(job.uid, job.gid) >= 2**32 - 1:
        raise InvalidInput("A job never runs as root or in root's group.")
    texts = [
        *job.argv,
        *job.env.values(),
        *job.folders.values(),
        job.action_id,
        job.folder or "",
        job.socket_dir or "",
    ]
    if not job.argv or not job.argv[0] or any("\0" in text for text in texts):
        raise InvalidInput("A job needs a command, and no text of it may hold a NUL character.")
    for name in job.files:
        if not _FILE_NAME.match(name):
            raise InvalidInput(f"{escape(name[:60])!r} isn't a plain file name.")
    for name in job.env:
        if not _ENV_NAME.match(name):
            raise InvalidInput(f"{escape(name[:60])!r} isn't a variable name.")
    for name in job.folders:
        if not _FILE_NAME.match(name) or job.folder is not None:
            raise InvalidInput(f"{escape(name[:60])!r} isn't a plain name, or there is another folder at /work.")
    for path in (job.folder, job.socket_dir, *job.folders.values()):
        if path is not None and not path.startswith("/"):
            raise InvalidInput(f"{escape(path[:100])!r} isn't an absolute path.")
    _check_limits(profile.limits)


def _check_limits(limits: Limits) -> None:
    whole = (limits.memory, limits.pids, limits.tmp, limits.file_size, limits.output)
    if min(whole) <= 0 or not all(math.isfinite(value) and value > 0 for value in (limits.cpus, limits.seconds)):
        raise InvalidInput("Each limit of a job must be above zero: zero would mean none.")


def container(
    job: Job, profile: Profile, image_id: str, identity: Identity, job_dir: str | None, missing: frozenset[Defence]
) -> dict[str, Any]:
    """The container as the engine's create call takes it. `missing` is empty but in tests' controls."""
    limits = profile.limits
    config: dict[str, Any] = {
        "Image": image_id,
        "Entrypoint": [*_LAST, f"{limits.seconds + _LATER:.3f}", *_SUPERVISORS, f"{limits.seconds:.3f}"],
        "Cmd": list(job.argv),
        "Env": [f"{name}={value}" for name, value in environment(job).items()],
        "User": f"{job.uid}:{job.gid}",
        "WorkingDir": "/tmp" if job.folder is None and not job.folders else "/work",  # noqa: S108
        "Hostname": "sandbox",
        "Domainname": "",
        "Labels": identity.labels(job, profile),
        "NetworkDisabled": True,
        "AttachStdin": False,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": False,
        "Tty": False,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": _isolation(job, profile) | _bounds(profile) | {"Mounts": _mounts(job, job_dir)},
    }
    defences.apply(missing, config)
    return config


def pooled(
    kind: container_pool.Kind, image_id: str, identity: Identity, folder: str, missing: frozenset[Defence]
) -> dict[str, Any]:
    """The container of a job that isn't known yet: the same but for its command, which comes over its connection to
    us, for its own folders, which are empty, and for its name, which it hasn't."""
    work = kind.folder
    program: tuple[str, ...] = container_pool.PROGRAM
    if work is None:
        unknown = Job(action_id="", argv=program, socket_dir=f"{folder}/{container_pool.GATEWAY}")
    else:
        program = (*program, container_pool.STREAMS)
        unknown = Job(action_id="", argv=program, folder=work.path, uid=work.uid, gid=work.gid)
    config = container(unknown, kind.profile, image_id, identity, f"{folder}/{container_pool.JOB}", missing)
    return config | {
        "Entrypoint": list(program),  # process 1, which the job can't signal
        "Cmd": [],
        "Labels": identity.labels(None, kind.profile),
        "AttachStdin": work is not None,
        "OpenStdin": work is not None,
        "StdinOnce": work is not None,  # its end is the connection's
        "AttachStdout": work is not None,
        "AttachStderr": False,
    }


def environment(job: Job) -> dict[str, str]:
    """The variables that a job sees."""
    return _ENVIRONMENT | dict(job.env)


def _isolation(job: Job, profile: Profile) -> dict[str, Any]:
    filtered = seccomp.profile(
        unix_sockets=(job.folder is None and not job.folders) or job.socket_dir is not None,
        shared_memory=profile.shared_memory,
        own_kernel=profile.runtime == "runsc",
    )
    return {
        "Runtime": profile.runtime,
        "NetworkMode": "none",
        # Names lead to loopback, if anywhere; left out, the engine copies what the machine asks.
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "DnsOptions": ["timeout:2", "attempts:2"],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "PidMode": "",
        "UTSMode": "",
        # An engine that maps users does so here, but for a person's folder, whose owner the job then has to be.
        "UsernsMode": "host" if job.folder is not None or job.folders else "",
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "SecurityOpt": ["no-new-privileges", f"seccomp={json.dumps(filtered)}"],
        "ReadonlyRootfs": True,
        "MaskedPaths": _MASKED,
        "ReadonlyPaths": _READ_ONLY,
        "Devices": [],
        "Binds": [],
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "Init": False,
        "OomScoreAdj": 500,  # when the whole machine runs out of memory, jobs go first
    }


def _bounds(profile: Profile) -> dict[str, Any]:
    limits = profile.limits
    hard = {
        "core": 0, "fsize": limits.file_size, "nofile": OPEN_FILES, "sigpending": _PENDING_SIGNALS, "memlock": 65536,
        "msgqueue": 0, "rtprio": 0,
    }  # fmt: skip
    return {
        "Memory": limits.memory,
        "MemorySwap": limits.memory,  # the sum of both: so no swap
        "NanoCpus": int(limits.cpus * 1e9),
        "PidsLimit": limits.pids + (_RUNSC_TASKS if profile.runtime == "runsc" else 0),
        "ShmSize": min(_SHM, limits.tmp),
        "Tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={limits.tmp},nr_inodes={_TMP_FILES},mode=1777"},  # noqa: S108
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in hard.items()],
    }


def _mounts(job: Job, job_dir: str | None) -> list[dict[str, Any]]:
    own = job.read_only
    folders = [(job.folder, WORK, own), *((path, f"{WORK}/{name}", own) for name, path in job.folders.items())]
    places = [(job_dir, "/goex/job", True), (job.socket_dir, "/goex/gateway", True), *folders]
    # A bind can't be given nosuid or nodev here; no-new-privileges and the device rules make both moot.
    return [
        {
            "Type": "bind",
            "Source": source,
            "Target": target,
            "ReadOnly": read_only,
            "BindOptions": {"Propagation": "private", "NonRecursive": True},
        }
        for source, target, read_only in places
        if source is not None
    ]
