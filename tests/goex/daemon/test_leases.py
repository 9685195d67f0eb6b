"""What is lent out is seen, and ends: with its action, with sealing, and with a daemon that is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from tests.adversarial.canary_scene import Scene, folder_fixture, scene_fixture  # noqa: F401  fixtures
from tests.goex.daemon.vault_calls import call, status
from tests.support.waiting import until

pytestmark = pytest.mark.docker


def lent(scene: Scene) -> list[vpb.LeaseView]:
    return list(call(scene.daemon, "Leases", vpb.LeasesRequest()).leases)


def view(scene: Scene, action: str) -> pb.ActionView:
    return scene.daemon.actions("Get", pb.ActionId(id=action), socket=scene.daemon.user_socket)


def test_a_lease_is_seen_while_its_action_runs_and_no_longer(scene: Scene) -> None:
    with scene.held() as (journey, _):
        (lease,) = lent(scene)
        assert lease.action_id == journey.action_id
        assert lease.expires > "2026"
    journey.finished()
    assert lent(scene) == []


@pytest.mark.promise(33)
def test_sealing_ends_the_lease_and_the_action(scene: Scene) -> None:
    with scene.held() as (journey, _):
        assert lent(scene)
        gateway = scene.gateway
        scene.daemon.person("VaultSeal", pb.VaultSealRequest())
        assert status(scene.daemon).vault == "sealed"
        assert not _is_gateway(gateway)
        assert lent(scene) == []
        until(lambda: view(scene, journey.action_id).state not in ("allowed", "prepared", "running"))
    scene.daemon.unlock()
    assert lent(scene) == []


@pytest.mark.promise(39)
def test_sealing_ends_the_process_that_held_tokens_and_the_next_action_starts_another(scene: Scene) -> None:
    """Its memory may hold what was lent to it until then, long after the lease."""
    with scene.held() as (journey, _):
        pass
    journey.finished()
    gateway = scene.gateway
    assert scene.daemon.goex("vault", "seal").returncode == 0
    assert not _is_gateway(gateway)
    scene.daemon.unlock()
    with scene.held() as (journey, _):
        assert scene.gateway != gateway
    assert not journey.finished().HasField("problem")


@pytest.mark.promise(33)
def test_a_killed_daemon_leaves_no_lease_behind(scene: Scene) -> None:
    with scene.held() as (journey, _):
        assert lent(scene)
        gateway = scene.gateway
        os.kill(scene.daemon.pid, signal.SIGKILL)
        scene.daemon.kill()
        # The process that held the credential is gone, and its memory with it.
        until(lambda: not Path(f"/proc/{gateway}/exe").exists() or not _is_gateway(gateway))
    scene.daemon.start()
    scene.daemon.unlock()
    assert lent(scene) == []
    assert view(scene, journey.action_id).state not in ("allowed", "prepared", "running")


def _is_gateway(pid: int) -> bool:
    try:
        return b"runtimes.gateway.process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
