"""Attacks where two features meet. Each is refused by the daemon that is shipped, and succeeds in its control, a daemon
with the one defence taken away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import SECRET, Scene, answer_to, call, scene, serving, several
from tests.adversarial.test_between import lead
from tests.support.journey import Journey, decide, undo

pytestmark = pytest.mark.docker

POST = call("slack.chat.postMessage", channel="C0ALL", text="hello")
Attack = Callable[[Scene], bool]


def history(channel: str) -> pb.Call:
    return call("slack.conversations.history", channel=channel, limit=1)


def ended(scene: Scene, request: pb.ExecuteRequest, *, person: bool = False) -> str:
    """How it ended, where each question is answered with no; "" where it wasn't taken."""
    try:
        journey = Journey(scene.daemon, request, person=True) if person else scene.ask(request)
        for event in journey._events:
            if event.WhichOneof("what") == "asking":
                decide(scene.daemon, event.asking, approve=False)
            if event.WhichOneof("what") == "finished":
                return str(event.finished.action.state)
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    return ""


def read_for_a_change(scene: Scene) -> bool:
    """Something is sent for a request that says of itself that it only reads, and then posts what was read."""
    scene.allow(several(history("C0LUNCH")), "permanent")
    scene.service.got.clear()
    post = call("slack.chat.postMessage", channel="C0ALL", text=answer_to(0, "$.messages[0].text"))
    ended(scene, several(history("C0BOARD"), post, reads_only=True))
    return bool(scene.service.got)


def earlier_answer_in_a_task(scene: Scene) -> bool:
    """A task lets a text be anything, and an earlier action's answer comes to stand there."""
    journey = scene.ask(several(history("C0BOARD")))
    assert journey.approve().action.state == "done"
    bounds = json.dumps({"channel": {"is": "C0ALL"}, "text": {"any": True}})
    line = pb.Allowance(service="slack", method=POST.method, account="work", arguments_json=bounds, times=1)
    assert scene.ask(pb.ExecuteRequest(task=pb.Task(title="Tell", allows=[line]))).approve().action.state == "done"
    secret = {"$from": journey.action_id, "path": "$.messages[0].text"}
    posted = scene.unasked(several(call("slack.chat.postMessage", channel="C0ALL", text=secret)))
    return posted and SECRET in scene.service.posted()


def undone_elsewhere(scene: Scene) -> bool:
    """What was posted is taken back where its account leads to later: there it is somebody else's message."""
    journey = scene.ask(several(POST))
    assert journey.approve().action.state == "done"
    with serving() as elsewhere:
        lead(scene, elsewhere.url)
        try:
            taken = Journey(scene.daemon, undo(journey.action_id), person=True)
            for event in taken._events:
                if event.WhichOneof("what") == "asking":
                    decide(scene.daemon, event.asking)
            return any(path.endswith("chat.delete") for _, path, _ in elsewhere.got)
        finally:
            lead(scene, scene.service.url)


def answered_for_another(scene: Scene) -> bool:
    """A key under which something harmless was done is used for something else, which then counts as done."""
    first = scene.ask(several(history("C0LUNCH"), key="the-same"))
    assert first.approve().action.state == "done"
    return ended(scene, several(history("C0BOARD"), key="the-same")) == "done"


ATTACKS: dict[str, Attack] = {
    "read_for_a_change": read_for_a_change,
    "earlier_answer_in_a_task": earlier_answer_in_a_task,
    "undone_elsewhere": undone_elsewhere,
    "answered_for_another": answered_for_another,
}


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("references", "only reads", "where a plan led", "keys' requests") as made:
        yield made


@pytest.mark.promise(1, 46)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ATTACKS)
def test_refused(shipped: Scene, name: str) -> None:
    shipped.new_agent()
    assert not ATTACKS[name](shipped)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(control: Scene, name: str) -> None:
    control.new_agent()
    assert ATTACKS[name](control)
