"""`make soak` with eighty actions, one of each sort at least; what could be left is seen, and memory that grows."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import docker
import pytest

from runtimes.sandbox.spec import STATE_LABEL
from tools.bench.leftovers import ALLOWED, Seen, growing, remaining
from tools.bench.mixture import ODD
from tools.bench.soak import Soak, settled, soaking, still

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can count what a daemon has open")


@pytest.fixture(scope="module")
def soak() -> Iterator[Soak]:
    with soaking(agents=2) as made:
        yield made


@pytest.mark.thorough
@root
@pytest.mark.docker
def test_nothing_is_left_of_eighty_actions(soak: Soak) -> None:
    marks, problems = soak.run(10 * len(ODD), first=16)
    assert problems == []
    assert marks[-1].numbers["state"] > 0


@contextmanager
def container(soak: Soak) -> Iterator[None]:
    client = docker.from_env()
    label = {STATE_LABEL: (soak.daemon.state_dir / "id").read_text().strip()}
    image = client.images.list("goex/base")[0]
    kept = client.containers.create(image, "true", labels=label, network_mode="none")
    yield
    kept.remove()
    client.close()


@contextmanager
def network(soak: Soak) -> Iterator[None]:
    client = docker.from_env()
    kept = client.networks.create(soak.looker.marker, internal=True)
    yield
    kept.remove()
    client.close()


@contextmanager
def mount(soak: Soak) -> Iterator[None]:
    place = soak.daemon.home / "cache"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    yield
    subprocess.run(["umount", place], check=True)
    place.rmdir()


@contextmanager
def file(soak: Soak) -> Iterator[None]:
    kept = soak.daemon.run_dir / "gateway" / "kept"
    kept.touch()
    yield
    kept.unlink()


@contextmanager
def folder_of_a_container(soak: Soak) -> Iterator[None]:
    """As it is after its container has gone."""
    kept = next((soak.daemon.run_dir / "waiting").glob("*")) / "goex-kept"
    kept.mkdir()
    yield
    kept.rmdir()


@contextmanager
def program(soak: Soak) -> Iterator[None]:
    kept = subprocess.Popen([soak.looker.marker, "600"], executable="/bin/sleep")
    yield
    kept.kill()
    kept.wait()


@contextmanager
def connections(soak: Soak) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(ALLOWED["daemon descriptors"] + 1):
            kept = stack.enter_context(socket.socket(socket.AF_UNIX))
            kept.connect(str(soak.daemon.agent_socket))
        yield


@pytest.mark.thorough
@root
@pytest.mark.docker
def test_whatever_stays_is_seen(soak: Soak) -> None:
    kept: dict[Callable[[Soak], AbstractContextManager[None]], str] = {
        container: "1 containers",
        network: soak.looker.marker,  # others' networks and mounts come meanwhile
        mount: f"{soak.daemon.home}/cache",
        file: "run/goex/gateway/kept",
        folder_of_a_container: "/goex-kept",
        program: "1 programs",
        connections: "daemon descriptors",
    }
    first = still(soak.looker, 0)
    with ExitStack() as stack:
        for keep in kept:
            stack.enter_context(keep(soak))
        left = remaining(first, settled(soak.looker, 0, first, 1.0))
    assert [said for said in kept.values() if not any(said in line for line in left)] == [], left
    assert remaining(first, settled(soak.looker, 0, first, 20.0)) == []


@pytest.mark.thorough
@root
@pytest.mark.docker
def test_what_others_mount_meanwhile_is_not_counted(soak: Soak, tmp_path: Path) -> None:
    first = still(soak.looker, 0)
    subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], check=True)
    try:
        assert remaining(first, soak.looker.look(0)) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("name", ["daemon threads", "gateway threads", "gateway descriptors"])
def test_more_than_its_pools_may_open_is_seen(name: str) -> None:
    first = _seen(200)
    more = ALLOWED.get(name, 0)
    assert remaining(first, _seen(400, **{name: first.numbers[name] + more})) == []
    assert remaining(first, _seen(400, **{name: first.numbers[name] + more + 1})) == [
        f"{name}: 20 before, {20 + more + 1} after"
    ]


@pytest.mark.parametrize("child", [frozenset({"8"}), frozenset({"7", "8"})], ids=["another", "one more"])
def test_another_child_is_seen(child: frozenset[str]) -> None:
    last = Seen(400, {"children": child}, _seen(400).numbers)
    assert remaining(_seen(200), last) == ["1 children: 8"]


@pytest.mark.parametrize("kilobytes", [0.0, 0.5, 2.0, 10.0])
def test_memory_that_grows_with_the_actions_is_seen(kilobytes: float) -> None:
    """Among what comes and goes: a megabyte up or down, and 20 that came in the first half and stay."""
    chance = random.Random(7)
    marks = []
    for actions in range(200, 10_001, 250):
        memory = 100_000 + 20_000 * (actions > 3000) + chance.randint(-1000, 1000) + kilobytes * actions
        marks.append(_seen(actions, **{"gateway memory": int(memory)}))
    said = growing(marks)
    assert [line.partition(":")[0] for line in said] == (["gateway memory"] if kilobytes > 1 else [])


def test_a_few_actions_say_nothing_of_memory() -> None:
    assert growing([_seen(200)]) == []
    assert growing([_seen(200), _seen(450, **{"daemon memory": 101_000})]) == []


def _seen(actions: int, **numbers: int) -> Seen:
    usual = {f"{who} {what}": 20 for who in ("daemon", "gateway") for what in ("descriptors", "threads")}
    usual |= {"daemon memory": 100_000, "gateway memory": 100_000}
    return Seen(actions, {"children": frozenset({"7"})}, usual | numbers)
