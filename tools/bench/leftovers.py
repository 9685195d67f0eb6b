"""What there is of everything that an action takes, looked at from outside while a daemon runs: to see what is left.

Rules: what an engine or the kernel keeps is looked for by its name, so that what is left can be said, and what others
do on this machine meanwhile isn't counted. A container that waits for its job isn't left, nor is what belongs to it.
Only root can look into the daemon and the gateway.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker

from runtimes.sandbox import container_pool
from runtimes.sandbox.spec import STATE_LABEL
from tests.adversarial.hunting import family
from tests.support.daemon import Daemon

# What pools of threads and connections may still add after the first actions, whatever the number of actions.
ALLOWED = {"daemon descriptors": 8, "daemon threads": 24, "gateway threads": 8}
LEAK = 1.0  # kB of memory an action, from which on it is a leak;
NOISE = 4096.0  # and kB by which memory comes and goes, which few actions can't be told from


@dataclass(frozen=True, slots=True)
class Seen:
    """What there was after so many actions: `things` by their names, `numbers` of what has none (memory and the state
    database in kB)."""

    actions: int
    things: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]

    def line(self) -> str:
        counted = {name: len(found) for name, found in self.things.items()} | dict(self.numbers)
        return ", ".join(f"{name} {count}" for name, count in counted.items())


class Looker:
    """Looks at one daemon. `marker` stands in the command line of what programs leave running."""

    def __init__(self, daemon: Daemon, marker: str) -> None:
        self._daemon, self.marker = daemon, marker
        self._label = f"{STATE_LABEL}={(daemon.state_dir / 'id').read_text().strip()}"
        self._client = docker.APIClient()
        self._before = {"networks": self._networks(), "mounts": frozenset(self._mounts())}

    def close(self) -> None:
        self._client.close()

    def look(self, actions: int) -> Seen:
        relatives = family(self._daemon.pid)[1:]
        processes = {"daemon": self._daemon.pid, "gateway": _gateway(relatives)}
        pool_dir = self._daemon.run_dir / "waiting"
        containers = {
            name.lstrip("/")
            for found in self._client.containers(all=True, filters={"label": self._label})
            for name in found["Names"]
        }
        waiting = containers & {path.name for path in pool_dir.glob("*/*")} - container_pool.bound(pool_dir).keys()
        things = {
            "containers": frozenset(containers - waiting),
            "networks": self._networks() - self._before["networks"],
            "mounts": self._new_mounts(),
            "files": frozenset(self._files(pool_dir, waiting)),
            "programs": frozenset(_marked(self.marker.encode())),
            "children": frozenset(map(str, relatives)),
        }
        numbers = {}
        for name, pid in processes.items():
            status = _status(pid)
            numbers[f"{name} descriptors"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            numbers[f"{name} threads"] = status["Threads"]
            numbers[f"{name} memory"] = status["VmRSS"]
        numbers["daemon descriptors"] -= len(waiting)  # each has a connection
        numbers["state"] = sum(file.stat().st_size for file in self._daemon.state_dir.glob("state.db*")) // 1024
        return Seen(actions, things, numbers)

    def _networks(self) -> frozenset[str]:
        return frozenset(f"{found['Name']} {found['Id']}" for found in self._client.networks())

    def _new_mounts(self) -> frozenset[str]:
        """Those that came since the start, and belong to no container that lives, ours or another's."""
        new = {place: line for place, line in self._mounts().items() if place not in self._before["mounts"]}
        living: list[str] = []
        for container in self._client.containers(all=True) if new else ():  # one that starts has some already
            with suppress(docker.errors.NotFound):
                found = self._client.inspect_container(container["Id"])
                layers = ((found.get("GraphDriver") or {}).get("Data") or {}).get("MergedDir")
                network = Path(found["NetworkSettings"].get("SandboxKey") or "").name
                living += filter(None, (container["Id"], layers, network))
        return frozenset(place for place, line in new.items() if not any(known in line for known in living))

    def _mounts(self) -> dict[str, str]:
        """Those of the daemon's home and of the engine, by their places: others mount elsewhere meanwhile."""
        ours = (f"{self._daemon.home}/", f"{self._client.info()['DockerRootDir']}/", "/run/docker/")
        lines = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
        return {line[4]: " ".join(line) for line in lines if line[4].startswith(ours)}

    def _files(self, pool_dir: Path, waiting: Set[str]) -> Iterator[str]:
        """All that lies in the daemon's home, but for the folders of containers that wait."""
        home = self._daemon.home
        for folder, folders, names in os.walk(home):  # what goes meanwhile is left out
            for path in (Path(folder) / name for name in (*folders, *names)):
                parts = path.relative_to(pool_dir).parts if path.is_relative_to(pool_dir) else ()
                if not set(parts[1:2]) & waiting:
                    yield str(path.relative_to(home))


def remaining(first: Seen, last: Seen) -> list[str]:
    """What there is more of than there was, in words. Memory is for `growing`."""
    said = []
    for name, found in last.things.items():
        if new := sorted(found - first.things[name]):
            said.append(f"{len(new)} {name}: {', '.join(new[:5])}{', …' if len(new) > 5 else ''}")
    for name, count in last.numbers.items():
        if name.endswith(("descriptors", "threads")) and count > first.numbers[name] + ALLOWED.get(name, 0):
            said.append(f"{name}: {first.numbers[name]} before, {count} after")
    return said


def slopes(marks: Sequence[Seen]) -> dict[str, float]:
    """By how many kB an action the memory of each process grew over the second half of the marks: least squares."""
    half = marks[len(marks) // 2 :]
    if len(half) < 2:
        return {}
    middle = sum(mark.actions for mark in half) / len(half)
    spread = sum((mark.actions - middle) ** 2 for mark in half)
    names = [name for name in half[0].numbers if name.endswith("memory")]
    return {name: sum((mark.actions - middle) * mark.numbers[name] for mark in half) / spread for name in names}


def growing(marks: Sequence[Seen]) -> list[str]:
    """Whose memory grows with the actions, in words."""
    if len(marks) < 2:
        return []
    actions = marks[-1].actions - marks[len(marks) // 2].actions
    return [
        f"{name}: grows by {slope:.2f} kB an action"
        for name, slope in slopes(marks).items()
        if slope > LEAK and slope * actions > NOISE
    ]


def _gateway(relatives: Sequence[int]) -> int:
    for pid in relatives:
        with suppress(OSError):
            if b"runtimes.gateway.process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    raise AssertionError("the gateway's process is gone")


def _status(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) for name in ("Threads", "VmRSS")}


def _marked(marker: bytes) -> list[str]:
    """The processes with the marker in their command line, wherever they run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(marker):
                found.append(path.parent.name)
    return found
