"""Attacks by references to answers: each is a few letters, and stands for a long text or a search through many items.
Each is refused, and succeeds in its control, where the bound is taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from goex.daemon.request_parser import MOST_METHODS, Earlier, parse_execute
from goex.rpc import goex_pb2 as pb
from policies import jsonpath, stages
from policies.actions import Call, Code
from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.stages import MOST_FILLED, MOST_REFERENCES, earlier_actions, with_earlier, with_values
from tests.adversarial.grant_scene import SAID, Scene, call, scene, several

LONG = "x" * 60_000
MANY = 10 * MOST_REFERENCES
ENOUGH = 10**9  # as a bound, none


def calls(value: Any) -> list[Call]:
    return [Call(service="s", method="write", arguments={"body": value})]


def written(value: Any) -> int:
    """The bytes of a call whose argument this is, with what an earlier action answered; 0 where that is refused."""
    try:
        earlier_actions(calls(value))
        (made,) = with_earlier(calls(value), {"a-1": {"text": LONG}})
    except InvalidInput:
        return 0
    return len(canonical(made.arguments))


def staged(most: int, times: int) -> int:
    """The same with what was read first, for each of so many items."""
    read = Call(service="s", method="read", arguments={})
    each = {"$each": 0, "path": "$.items[*].text", "most": most}
    try:
        made = with_values([read, *calls([each] * times)], 1, [{"items": [{"text": LONG}] * most}], {})
    except InvalidInput:
        return 0
    return sum(len(canonical(call.arguments)) for call in made)


def looked_at(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many items are looked at for one action that searches a list again and again, each time for another one."""
    looks = 0
    resolve = jsonpath.FilterSelector.resolve

    def counted(self: Any, node: Any) -> Any:
        nonlocal looks
        looks += len(node.value)
        return resolve(self, node)

    monkeypatch.setattr(jsonpath.FilterSelector, "resolve", counted)
    answer = {"items": [{"id": number} for number in range(5000)]}
    wanted = [{"$from": "a-1", "path": f"$.items[?@.id=={number}].id"} for number in range(20)]
    with suppress(InvalidInput):
        with_earlier(calls(wanted), {"a-1": answer})
    return looks


OF_ACTION = {"$from": "a-1", "path": "$.text"}


@pytest.mark.promise(16)
def test_many_references() -> None:
    with pytest.raises(InvalidInput, match=f"{MANY} times"):
        earlier_actions(calls([OF_ACTION] * MANY))
    read = Call(service="s", method="read", arguments={})
    with pytest.raises(InvalidInput, match=f"{MANY} times"):
        stages.first_stage([read, *calls([{"$from": 0, "path": "$.id"}] * MANY)], lambda call: call.method == "read")


@pytest.mark.promise(16)
def test_long_values() -> None:
    assert written([OF_ACTION] * (MOST_REFERENCES // 2)) == 0
    assert staged(50, 20) == 0
    assert 0 < written([OF_ACTION] * 10) < MOST_FILLED  # what fits is filled


@pytest.mark.thorough
def test_control_long_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MOST_FILLED", ENOUGH)
    monkeypatch.setattr(stages, "MOST_REFERENCES", ENOUGH)
    assert written([OF_ACTION] * MANY) > 100 * len(json.dumps([OF_ACTION] * MANY))
    assert staged(50, 20) > 50 * MOST_FILLED


@pytest.mark.promise(16)
def test_many_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(monkeypatch) <= jsonpath.MAX_WORK


def test_control_many_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each search has a bound of its own."""
    value_at = jsonpath.value_at
    monkeypatch.setattr(jsonpath, "value_at", lambda value, path, work=None: value_at(value, path))
    assert looked_at(monkeypatch) == 20 * 5000


def test_one_search_many_times_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"items": [{"id": number} for number in range(15_000)]}
    one = {"$from": "a-1", "path": "$.items[?@.id==7].id"}
    (made,) = with_earlier(calls([one] * 10), {"a-1": answer})
    assert made.arguments["body"] == [7] * 10


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("bounds of references") as made:
        yield made


def kept(scene: Scene) -> int:
    """How many bytes the daemon's files grow by one small request of an agent that may do nothing."""
    scene.new_agent()
    SAID["C0LONG"] = LONG
    journey = scene.ask(several(call("slack.conversations.history", channel="C0LONG", limit=1)))
    journey.approve()
    reference = {"$from": journey.action_id, "path": "$.messages[0].text"}
    request = several(call("slack.chat.postMessage", channel="C0ALL", text=[reference] * 2 * MOST_REFERENCES))

    def size() -> int:
        return sum(file.stat().st_size for file in scene.daemon.state_dir.glob("state.db*"))

    before = size()
    try:
        assert scene.ask(request).finished().action.state == "failed"
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    return size() - before


@pytest.mark.docker
@pytest.mark.promise(16)
def test_the_log_keeps_no_more_than_was_sent(shipped: Scene) -> None:
    assert kept(shipped) < 2 * MOST_FILLED


@pytest.mark.thorough
@pytest.mark.docker
def test_control_the_log_keeps_more(control: Scene) -> None:
    assert kept(control) > 10 * MOST_FILLED


# ---- a program that is asked for again, with more methods each time


def named(times: int) -> int:
    """How many methods a program has that was asked for again so often, each time with others."""
    action = Code(language="python", program="1", services=("slack",), methods=(), profile="code")
    for time in range(times):
        names = [f"slack.m{time}-{number}" for number in range(MOST_METHODS // 2)]
        try:
            request = pb.ExecuteRequest(code=pb.CodeProgram(again="a-1", methods=names))
            made = parse_execute(request, Earlier(action)).action
        except InvalidInput:
            break
        assert isinstance(made, Code)
        action = made
    return len(action.methods)


@pytest.mark.promise(16)
def test_a_program_grows_by_no_repetition() -> None:
    assert named(10) == MOST_METHODS


def test_control_a_program_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goex.daemon.request_parser.MOST_METHODS", ENOUGH)
    assert named(10) == 10 * (MOST_METHODS // 2)
