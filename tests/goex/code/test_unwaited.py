"""Programs that don't wait for the answer to a change, or get a large one: undo stands on the answer all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.code.conftest import Scene
from tests.runtimes.rest.support import Hit
from tests.support.journey import Journey, decide, undo

# The other request is answered once the change is at the service.
ASKS = 'send("GET", "URL/users.list", None)'
POSTS = '"POST", "URL/chat.postMessage", {"channel": "#ops", "text": "hi"}'
THREAD = (
    "import threading",
    f"threading.Thread(target=send, args=({POSTS}), daemon=True).start()",
    ASKS,
)
EXITS = (*THREAD, "os._exit(0)")
HANGS_UP = (
    "import http.client",
    "real = http.client.HTTPConnection.getresponse",
    "def gone(self, *more):",
    "    http.client.HTTPConnection.getresponse = real",
    f"    {ASKS}",
    "    self.sock.close()",
    '    raise OSError("bye")',
    "http.client.HTTPConnection.getresponse = gone",
    "try:",
    f"    send({POSTS})",
    "except OSError:",
    "    pass",
)


@dataclass
class Held:
    """A service that makes a message and doesn't answer until it is let go."""

    came: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    drop: bool = False  # there is nobody to be answered


@pytest.fixture
def held(scene: Scene) -> Iterator[Held]:
    made = Held()

    def answer(hit: Hit) -> tuple[int, Any] | None:
        scene.slack.hits.append(hit)
        said = scene.slack.handle(hit)
        if hit.path.endswith("chat.postMessage"):
            made.came.set()
            made.go.wait(120)
            if made.drop:
                return None
        elif hit.path.endswith("users.list"):
            made.came.wait(300)
        return said

    scene.slack.answer = answer  # type: ignore[method-assign]
    try:
        yield made
    finally:
        made.go.set()
        del scene.slack.answer


def waits(scene: Scene, *lines: str) -> Journey:
    """A program that has ended, and whose change is unanswered; the person sees what is waited for."""
    journey = Journey(scene.daemon, scene.request(scene.program(*lines)), person=True)
    asked = journey.asked()
    assert asked.undo_class == "compensating"
    decide(scene.daemon, asked)
    while "Waiting for the answer to slack.chat.postMessage" not in journey.until("progress"):
        pass
    return journey


@pytest.mark.promise(57)
@pytest.mark.parametrize("lines", [EXITS, HANGS_UP], ids=["exits", "hangs up"])
def test_what_is_answered_after_the_program_has_ended_is_taken_back(
    scene: Scene, held: Held, lines: tuple[str, ...]
) -> None:
    journey = waits(scene, *lines)
    assert scene.texts == ["hi"]
    held.go.set()
    finished = journey.finished()
    assert (finished.action.state, finished.action.can_undo) == ("done", True), finished
    assert Journey(scene.daemon, undo(finished.action.id), person=True).approve().action.state == "done"
    assert scene.texts == []


def test_a_cancel_ends_the_waiting(scene: Scene, held: Held) -> None:
    journey = waits(scene, *EXITS)
    held.drop = True
    scene.daemon.actions("Cancel", pb.ActionId(id=journey.action_id), socket=scene.daemon.user_socket)
    finished = journey.finished()
    assert not held.go.is_set()
    assert finished.action.state == "unknown", finished
    assert any("slack.chat.postMessage was sent" in line for line in finished.problem.details)


def test_a_read_is_not_waited_for(scene: Scene, held: Held) -> None:
    reads = ("import threading", f"threading.Thread(target=lambda: {ASKS}, daemon=True).start()")
    program = scene.program(*reads, "import time", "time.sleep(0.5)", "os._exit(0)")
    journey = Journey(scene.daemon, scene.request(program), person=True)
    decide(scene.daemon, journey.asked())
    finished = journey.finished()
    assert finished.action.state == "done", finished
    assert not any("Waiting" in event.progress for event in journey.seen)


@pytest.mark.promise(57)
@pytest.mark.parametrize("size", [400_000, 1_200_000])
def test_what_a_large_answer_says_is_known_to_undo(scene: Scene, size: int) -> None:
    """The service repeats the message, which is more than is kept, or than flows unread."""
    program = scene.program(
        f'said = send("POST", "URL/chat.postMessage", {{"channel": "#ops", "text": "x" * {size}}})',
        'print(len(said["message"]["text"]))',
    )
    finished = scene.run(program)
    assert finished.action.state == "done", finished
    assert f'"stdout":"{size}' in finished.action.outcome_json.replace(" ", "")
    assert [len(text) for text in scene.texts] == [size]
    assert Journey(scene.daemon, undo(finished.action.id), person=True).approve().action.state == "done"
    assert scene.texts == []
