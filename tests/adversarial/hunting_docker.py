"""Where a container, its engine or its image may hold a value: each place is a search of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

import docker.errors
from docker import APIClient

from tests.adversarial.hunting import Found, Hunt, family, memory, told
from tests.support import containers

_KERNELS = {"proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay"}


@dataclass(frozen=True)
class ContainerHunt:
    """A running container. `searches` names its places."""

    client: APIClient
    id: str

    @property
    def searches(self) -> dict[str, Callable[[Hunt], Found]]:
        return {
            "environment": lambda hunt: hunt.pieces(*(told(pid, "environ") for pid in self.processes)),
            "arguments": lambda hunt: hunt.pieces(*(told(pid, "cmdline") for pid in self.processes)),
            "mounts": lambda hunt: hunt.pieces(*(told(pid, "mountinfo") for pid in self.processes)),
            "the rest of /proc": lambda hunt: hunt.pieces(*(told(pid) for pid in self.processes)),
            "memory": lambda hunt: hunt.merge(*(hunt.chunks(memory(pid)) for pid in self.processes)),
            "mounted filesystems": lambda hunt: hunt.merge(*(hunt.tree(top) for top in self.mounted())),
            "exported filesystem": lambda hunt: hunt.chunks(self.client.export(self.id)),
            "archive of the job's files": lambda hunt: hunt.chunks(self.client.get_archive(self.id, "/goex")[0]),
            "inspect": lambda hunt: hunt.pieces(dumps(self.inspected).encode()),
            "logs": lambda hunt: hunt.pieces(self.logs()),
            "the engine's folder": lambda hunt: hunt.tree(self.engine_folder),
        }

    @property
    def inspected(self) -> Any:
        return self.client.inspect_container(self.id)

    @property
    def processes(self) -> list[int]:
        found = family(int(self.inspected["State"]["Pid"]))
        assert found[0] > 0, "the container doesn't run"
        return found

    def mounted(self) -> Iterator[Path]:
        """Where files lie that the image doesn't hold: temporary and bound ones, seen through the first process."""
        first = self.processes[0]
        for line in Path(f"/proc/{first}/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            if after.split()[0] not in _KERNELS:
                place = Path(f"/proc/{first}/root{before.split()[4]}".encode().decode("unicode_escape"))
                if place.is_dir():
                    yield place

    def logs(self) -> bytes:
        with suppress(docker.errors.APIError):  # a log driver that keeps nothing can't be read
            return bytes(self.client.logs(self.id))
        return b""

    @property
    def engine_folder(self) -> Path:
        folder = Path(self.client.info()["DockerRootDir"], "containers", self.inspected["Id"])
        assert folder.is_dir(), f"{folder} can't be looked into from here"
        return folder


def of_action(client: APIClient, action: str, run_dir: Path) -> ContainerHunt:
    """The container of an action under way in the daemon of that folder."""
    found = containers.of_action(client, action, run_dir)
    assert len(found) == 1, found
    return ContainerHunt(client, found[0])


def image(client: APIClient, id: str) -> Callable[[Hunt], Found]:
    """A search of every layer of an image and of what is said about it."""

    def search(hunt: Hunt) -> Found:
        looked: Any = client  # the stubs leave these untyped
        said = dumps([looked.inspect_image(id), looked.history(id)]).encode()
        return hunt.merge(hunt.pieces(said), hunt.chunks(client.get_image(id)))

    return search
