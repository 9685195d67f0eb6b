"""Attacks by an agent that got the name of another that was removed: what that one asked for, and what came of it. In
the control the daemon doesn't look when a name was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import unsafe
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

WORDS = "what the first of this name asked for"
KEY = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Scene:
    daemon: Daemon
    first: str
    second: str
    action: str


def _scene(*without: str) -> Iterator[Scene]:
    with Daemon(env=unsafe(*without)) as daemon:
        first = daemon.add_agent("helper")
        journey = Journey(daemon, pb.ExecuteRequest(intent=WORDS, key=KEY), token=first)
        journey.finished()
        daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="helper"))
        second = daemon.person("AddAgent", pb.AddAgentRequest(name="helper", passphrase=APPROVAL_PASSPHRASE)).token
        yield Scene(daemon, first, second, journey.action_id)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    yield from _scene()


@pytest.fixture(scope="module")
def unguarded() -> Iterator[Scene]:
    yield from _scene("names' times")


def _asked(scene: Scene, method: str, request: Any) -> str:
    return str(scene.daemon.actions(method, request, token=scene.second))


def _followed(scene: Scene, request: Any) -> str:
    journey = Journey(scene.daemon, request, token=scene.second)
    finished = journey.finished()
    return f"{finished} {journey.action_id}"


WAYS: dict[str, Callable[[Scene], str]] = {
    "get": lambda scene: _asked(scene, "Get", pb.ActionId(id=scene.action)),
    "list": lambda scene: _asked(scene, "List", pb.ListRequest()),
    "watch": lambda scene: _followed(scene, pb.ActionId(id=scene.action)),
    "cancel": lambda scene: _asked(scene, "Cancel", pb.ActionId(id=scene.action)),
    "key": lambda scene: _followed(scene, pb.ExecuteRequest(intent=WORDS, key=KEY)),
}


def learned(scene: Scene, way: str) -> bool:
    """Whether the second one has the first one's action."""
    try:
        return scene.action in WAYS[way](scene)
    except grpc.RpcError as error:
        assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION), error
        return False


@pytest.mark.promise(24)
@pytest.mark.parametrize("way", WAYS)
def test_what_the_first_had_is_not_the_seconds(scene: Scene, way: str) -> None:
    assert not learned(scene, way)


@pytest.mark.parametrize("way", WAYS)
def test_control(unguarded: Scene, way: str) -> None:
    assert learned(unguarded, way)


def test_the_persons_log_has_both(scene: Scene) -> None:
    found = scene.daemon.actions("List", pb.ListRequest(), socket=scene.daemon.user_socket).actions
    assert scene.action in {one.id for one in found}
