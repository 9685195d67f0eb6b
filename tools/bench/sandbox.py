"""`sandbox.cold.p50_ms`: one job (`true`) in a fresh container, from the call until the container is gone.

The floor is `docker run --rm` with the same image and the same flags, waited for in the same way. Without that
command it is the engine's own four calls (create, start, wait, remove) with the same configuration. Two things have
no flag: masked paths beyond the engine's own, and `NetworkDisabled` beside `--network none`. The second saves the
engine much of a start (it runs no network hook), which is why this ratio can be below one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import docker

from runtimes.sandbox import images, spec
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.docker import DockerSandbox
from tools.bench.measure import Once, Row, in_turn, row

NAME = "sandbox.cold.p50_ms"
JOB = Job(action_id="a-1", argv=("true",))
STATE = f"bench-{os.getpid()}"


async def measure() -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        image_id = await asyncio.to_thread(images.build, "base")
        identity = spec.Identity(state_id=STATE, instance="floor")
        config = spec.container(JOB, Profile(), image_id, identity, None, frozenset())
        floor_name, floor = _by_command(config, Path(folder)) if shutil.which("docker") else _by_engine(config)
        sandbox = DockerSandbox(STATE, scratch_dir=Path(folder) / "scratch")

        async def value() -> None:
            result = await sandbox.run(JOB, Profile())
            assert result.exit_code == 0, result

        try:
            timings = await in_turn(value, floor, rounds=30, seconds=35)
        finally:
            await sandbox.close()
    return (row(NAME, timings[0], floor_name, timings[1]),)


def _by_command(config: dict[str, Any], folder: Path) -> tuple[str, Once]:
    argv = ["docker", *flags(config, folder)]

    async def floor() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL)
        assert await process.wait() == 0

    return "docker run, same flags", floor


def _by_engine(config: dict[str, Any]) -> tuple[str, Once]:
    client = docker.APIClient()

    def once() -> None:
        made = client.create_container_from_config(config)  # type: ignore[no-untyped-call] # the stubs lack it
        client.start(made)
        assert client.wait(made)["StatusCode"] == 0
        client.remove_container(made, force=True, v=True)

    async def floor() -> None:
        await asyncio.to_thread(once)

    return "create, start, wait, remove", floor


def flags(config: dict[str, Any], folder: Path) -> list[str]:
    """The configuration as arguments of `docker`. The seccomp profile is written to `folder`."""
    host = config["HostConfig"]
    seccomp = folder / "seccomp.json"
    found = ["run", "--rm", "--no-healthcheck"]
    for name, value in {
        "runtime": host["Runtime"],
        "network": host["NetworkMode"],
        "ipc": host["IpcMode"],
        "cgroupns": host["CgroupnsMode"],
        "log-driver": host["LogConfig"]["Type"],
        "restart": host["RestartPolicy"]["Name"],
        "oom-score-adj": host["OomScoreAdj"],
        "memory": host["Memory"],
        "memory-swap": host["MemorySwap"],
        "cpus": host["NanoCpus"] / 1e9,
        "pids-limit": host["PidsLimit"],
        "shm-size": host["ShmSize"],
        "user": config["User"],
        "workdir": config["WorkingDir"],
        "hostname": config["Hostname"],
        "entrypoint": config["Entrypoint"][0],
    }.items():
        found.append(f"--{name}={value}")
    found += [f"--cap-drop={name}" for name in host["CapDrop"]]
    for option, key in (("dns", "Dns"), ("dns-search", "DnsSearch"), ("dns-option", "DnsOptions")):
        found += [f"--{option}={value}" for value in host[key]]
    found += ["--read-only"] if host["ReadonlyRootfs"] else []
    for option in host["SecurityOpt"]:
        kind, _, profile = option.partition("=")
        if kind == "seccomp":
            seccomp.write_text(json.dumps(json.loads(profile)))
            option = f"seccomp={seccomp}"
        found.append(f"--security-opt={option}")
    found += [f"--tmpfs={path}:{options}" for path, options in host["Tmpfs"].items()]
    found += [f"--ulimit={each['Name']}={each['Soft']}:{each['Hard']}" for each in host["Ulimits"]]
    found += [f"--env={each}" for each in config["Env"]]
    found += [f"--label={name}={value}" for name, value in config["Labels"].items()]
    return [*found, config["Image"], *config["Entrypoint"][1:], *config["Cmd"]]
