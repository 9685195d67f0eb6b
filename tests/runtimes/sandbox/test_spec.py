"""Every line of a container's configuration that a defence hangs on."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import pytest

from policies.errors import InvalidInput
from runtimes.sandbox import seccomp, spec
from runtimes.sandbox.contract import Job, Limits, Profile

IDENTITY = spec.Identity(state_id="s", instance="i")


def made(job: Job | None = None, **limits: Any) -> dict[str, Any]:
    job = job or Job(action_id="a", argv=["x"])
    return spec.container(job, Profile(limits=Limits(**limits)), "sha256:1", IDENTITY, "/host/job", frozenset())


def test_isolation() -> None:
    config = made()
    host = config["HostConfig"]
    assert config["NetworkDisabled"] is True
    assert config["User"] == "65534:65534"
    assert config["Labels"] == {
        "org.goex.state": "s",
        "org.goex.action": "a",
        "org.goex.instance": "i",
        "org.goex.profile": "base",
    }
    stated = {
        "NetworkMode": "none",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "ReadonlyRootfs": True,
        "Devices": [],
        "Binds": [],
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": False,
        "Runtime": "runc",
    }
    assert {name: host[name] for name in stated} == stated
    assert host["SecurityOpt"][0] == "no-new-privileges"
    assert json.loads(host["SecurityOpt"][1].removeprefix("seccomp=")) == seccomp.profile()
    assert len(host["SecurityOpt"]) == 2
    assert {"/proc/kcore", "/proc/keys", "/sys/firmware", "/proc/timer_list"} <= set(host["MaskedPaths"])
    assert "/sys/devices" in host["MaskedPaths"]  # the serial numbers of disks and of what is plugged in
    assert {"/proc/sys", "/proc/sysrq-trigger", "/proc/bus", "/proc/fs", "/proc/irq"} <= set(host["ReadonlyPaths"])


def test_bounds() -> None:
    host = made(memory=1000, cpus=0.5, pids=7, tmp=2000, file_size=3000)["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]) == (1000, 1000, 500_000_000, 7)
    assert host["ShmSize"] == 2000
    assert set(host["Tmpfs"]["/tmp"].split(",")) >= {"nosuid", "nodev", "noexec", "size=2000"}
    limits = {item["Name"]: (item["Soft"], item["Hard"]) for item in host["Ulimits"]}
    assert (limits["core"], limits["fsize"]) == ((0, 0), (3000, 3000))
    # Of one message 253 descriptors are in flight beyond the limit, and others of that user send while 1,024 are.
    assert limits["nofile"][1] + 253 < 1024 and limits["sigpending"] == (1024, 1024)


def test_runsc_has_room_for_its_own_kernel_within_the_limit_of_processes() -> None:
    def limit(runtime: Literal["runc", "runsc"]) -> int:
        profile = Profile(limits=Limits(pids=7), runtime=runtime)
        config = spec.container(Job(action_id="a", argv=["x"]), profile, "sha256:1", IDENTITY, None, frozenset())
        return int(config["HostConfig"]["PidsLimit"])

    assert (limit("runc"), limit("runsc")) == (7, 199)


def test_users_are_mapped_where_the_engine_maps_them_but_on_a_persons_folder() -> None:
    def mode(job: Job) -> str:
        return str(made(job)["HostConfig"]["UsernsMode"])

    assert mode(Job(action_id="a", argv=["x"], socket_dir="/g")) == ""
    assert mode(Job(action_id="a", argv=["x"], folder="/f")) == "host"
    assert mode(Job(action_id="a", argv=["x"], folders={"f": "/f"})) == "host"


def test_mounts_come_in_alone_and_read_only_but_the_folder() -> None:
    config = made(Job(action_id="a", argv=["x"], folder="/f,ro", socket_dir="/g"))
    mounts = {mount["Target"]: mount for mount in config["HostConfig"]["Mounts"]}
    assert {target: (mount["Source"], mount["ReadOnly"]) for target, mount in mounts.items()} == {
        "/goex/job": ("/host/job", True),
        "/goex/gateway": ("/g", True),
        "/work": ("/f,ro", False),
    }
    for mount in mounts.values():
        assert mount["Type"] == "bind"
        assert mount["BindOptions"] == {"Propagation": "private", "NonRecursive": True}
    assert config["WorkingDir"] == "/work"


def test_a_folder_without_a_gateway_means_no_unix_sockets() -> None:
    def families(job: Job) -> set[int]:
        option = made(job)["HostConfig"]["SecurityOpt"][1].removeprefix("seccomp=")
        rules = [rule for rule in json.loads(option)["syscalls"] if "socket" in rule["names"]]
        return {rule["args"][0]["value"] for rule in rules}

    assert families(Job(action_id="a", argv=["x"], folder="/f")) == {2, 10}
    assert families(Job(action_id="a", argv=["x"], folder="/f", socket_dir="/g")) == {1, 2, 10}
    assert families(Job(action_id="a", argv=["x"])) == {1, 2, 10}


@pytest.mark.parametrize(
    "limits",
    [{name: 0} for name in Limits.__dataclass_fields__]
    + [{"memory": -1}, {"seconds": math.inf}, {"seconds": math.nan}, {"cpus": math.nan}],
)
def test_a_limit_of_zero_would_be_none(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="above zero"):
        spec.check(Job(action_id="a", argv=["x"]), Profile(limits=Limits(**limits)))


@pytest.mark.parametrize("argv", [[], [""], ["a\0b"]])
def test_commands(argv: list[str]) -> None:
    with pytest.raises(InvalidInput):
        spec.check(Job(action_id="a", argv=argv), Profile())
