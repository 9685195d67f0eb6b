"""Attacks on the places in which actions run: an agent keeps all of them, and the person is to wait for it. Each is
refused by the daemon that is shipped, and succeeds in its control, where the person has no places of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.engine.execution import MOST_AT_ONCE
from tests.adversarial.grant_scene import Scene, call, scene, several
from tests.support.journey import Journey, decide, shell

pytestmark = pytest.mark.docker

SLOW, QUICK = "C0SLOW", "C0LUNCH"
_FOREVER = 60.0  # seconds that the service takes for an agent's call; nobody waits for all of them
_PATIENCE = 5.0  # seconds that the control's person waits
Ask = Callable[[], Any]


def history(channel: str) -> Any:
    return several(call("slack.conversations.history", channel=channel, limit=1))


@contextmanager
def hoarded(scene: Scene) -> Iterator[None]:
    """All places are taken by an agent's reads, which it was allowed for good, and as many wait for one."""
    scene.new_agent()
    answer, go_on = scene.service.answer, threading.Event()
    taken = threading.Semaphore(0)

    def hanging(verb: str, path: str, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("channel") == SLOW:
            taken.release()
            go_on.wait(_FOREVER)
        return answer(verb, path, given)

    scene.service.answer = hanging  # type: ignore[method-assign]
    scene.allow(history(QUICK), "permanent")
    journeys = [scene.ask(history(SLOW)) for _ in range(2 * MOST_AT_ONCE)]
    try:
        for _ in range(MOST_AT_ONCE):
            assert taken.acquire(timeout=_FOREVER), "the agent's reads don't run"
        yield
    finally:
        go_on.set()
        for journey in journeys:
            journey.finished()
        scene.service.answer = answer  # type: ignore[method-assign]


def waits(scene: Scene, request: Any, seconds: float) -> bool:
    """Whether what the person asks for and allows hasn't ended after so long."""
    journey = Journey(scene.daemon, request, person=True, seconds=seconds)
    try:
        finished = journey.approve()
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return True
    assert finished.action.state == "done", finished
    return False


def of_a_call(scene: Scene, folder: Path, seconds: float) -> bool:
    """The person reads something."""
    return waits(scene, history(QUICK), seconds)


def of_a_folder(scene: Scene, folder: Path, seconds: float) -> bool:
    """The person works in a folder in which an agent's program waits for a place."""
    asked = scene.ask(shell(folder, "ls"))
    decide(scene.daemon, asked.asked())
    while asked.states()[-1:] != ["allowed"]:
        asked.until("state")
    try:
        return waits(scene, shell(folder, "ls -a"), seconds)
    finally:
        asked.leave()


ATTACKS = {"of_a_call": of_a_call, "of_a_folder": of_a_folder}


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("places") as made:
        yield made


@pytest.mark.promise(16)
@pytest.mark.parametrize("name", ATTACKS)
def test_the_person_has_places(shipped: Scene, name: str, tmp_path: Path) -> None:
    with hoarded(shipped):
        assert not ATTACKS[name](shipped, tmp_path, _FOREVER / 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(control: Scene, name: str, tmp_path: Path) -> None:
    with hoarded(control):
        assert ATTACKS[name](control, tmp_path, _PATIENCE)
