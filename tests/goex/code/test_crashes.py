"""The daemon is killed while a program runs: what it was let pass is on record, and what is said afterwards is true."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.code.conftest import Scene
from tests.runtimes.rest.support import Hit
from tests.support.journey import Journey, decide, undo

POST = '"URL/chat.postMessage", {"channel": "#ops", "text": '


@pytest.fixture
def held(scene: Scene) -> Iterator[threading.Event]:
    """A service that does what a message which begins with "hold" asks for, and doesn't answer until it is let go."""
    came, go = threading.Event(), threading.Event()

    def after(hit: Hit) -> None:
        if isinstance(hit.body, dict) and str(hit.body.get("text", "")).startswith("hold"):
            came.set()
            go.wait(300)

    scene.slack.after = after
    try:
        yield came
    finally:
        go.set()
        scene.slack.after = lambda hit: None


def killed(scene: Scene, program: str, until: Callable[[str], object]) -> pb.ActionView:
    """Run a program, kill the daemon once `until` holds of it, start it again: what is then said of the action."""
    journey = Journey(scene.daemon, scene.request(program, detach=True), person=True)
    decide(scene.daemon, journey.asked())
    end = time.monotonic() + 300
    id = journey.action_id
    while not until(id):
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)
    scene.daemon.kill()
    scene.daemon.start()
    scene.daemon.unlock()
    found: pb.ActionView
    while True:
        found = scene.daemon.actions("Get", pb.ActionId(id=id), socket=scene.daemon.user_socket)
        if found.state != "running":
            return found
        assert time.monotonic() < end, "it was never settled"
        time.sleep(0.05)


@pytest.mark.promise(57)
def test_a_request_that_left_unanswered_is_on_record_and_unknown(scene: Scene, held: threading.Event) -> None:
    program = scene.program(
        f'send("POST", {POST}"first"}})',
        f'send("POST", {POST}"hold it"}})',
    )
    found = killed(scene, program, lambda id: held.is_set())
    assert found.state == "unknown", found
    story = json.loads(scene.daemon.goex("show", found.id, "--json").stdout)
    assert [(each["call"], each["status"]) for each in story["requests"]] == [
        ("slack.chat.postMessage", 200),
        ("slack.chat.postMessage", 0),
    ]
    assert any("slack.chat.postMessage was sent" in line for line in story["problem"]["details"])


@pytest.mark.promise(57)
def test_what_was_answered_before_the_crash_is_taken_back(scene: Scene) -> None:
    program = scene.program(f'send("POST", {POST}"before"}})', "import time", "time.sleep(50)")
    found = killed(scene, program, lambda id: scene.rows(id, "answer"))
    assert found.state == "partial", found
    assert scene.texts == ["before"]
    back = Journey(scene.daemon, undo(found.id), person=True).approve()
    assert back.action.state == "done", back
    assert scene.texts == []


def test_a_program_that_changed_nothing_before_the_crash_changed_nothing(scene: Scene) -> None:
    program = scene.program('send("GET", "URL/users.list", None)', "import time", "time.sleep(50)")
    found = killed(scene, program, lambda id: scene.rows(id, "answer"))
    assert found.state == "failed", found
    assert json.loads(found.outcome_json)["touched"] is False
