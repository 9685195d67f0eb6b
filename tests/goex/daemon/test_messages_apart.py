"""What was done to one message keeps no other from being undone, over the agent's socket to a service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, call, scene, several
from tests.support.journey import Journey, undo

pytestmark = pytest.mark.docker


@pytest.fixture
def agent() -> Iterator[Scene]:
    with scene() as made:
        made.new_agent()
        yield made


def post(agent: Scene, channel: str) -> tuple[str, str]:
    """Post there with a yes. Return the action, and the message's `ts`, which is made of the request's number."""
    finished = agent.allow(several(call("slack.chat.postMessage", channel=channel, text="hello")), "once")
    number = max(at for at, (_, path, _) in enumerate(agent.service.got, 1) if path == "/chat.postMessage")
    return str(finished.action.id), f"1700000000.{number:06}"


@pytest.mark.thorough
@pytest.mark.promise(62)
def test_an_update_of_one_message_keeps_no_other_from_being_undone(agent: Scene) -> None:
    first, ts = post(agent, "C0OPS")
    second, other = post(agent, "C0ALL")
    change = call("slack.chat.update", channel="C0ALL", ts=other, text="hello, all")
    update = agent.allow(several(change), "once").action.id

    # What was changed since isn't taken back alone ...
    refused = Journey(agent.daemon, undo(second), token=agent.token).finished()
    assert refused.problem.code == "conflict" and not agent.service.deleted
    assert f"depend on it ({update})" in refused.problem.message

    # ... and the message in the other channel is.
    finished = Journey(agent.daemon, undo(first), token=agent.token).approve()
    assert finished.action.state == "done" and agent.service.deleted == {ts}, finished


SAY = """curl -sS --fail -X POST "$GOEX_URL_SLACK/chat.postMessage" -H "Authorization: Bearer $GOEX_TOKEN_SLACK" \\
  -H 'Content-Type: application/json' -d '{"channel": "C0ALL", "text": "hello, all"%s}'"""


@pytest.mark.promise(62)
def test_a_program_keeps_from_being_undone_what_it_named_and_no_more(agent: Scene) -> None:
    def program(more: str = "") -> str:
        asked = pb.CodeProgram(
            language="shell", program=SAY % more, services=["slack/work"], methods=["slack.chat.postMessage"]
        )
        return str(agent.allow(pb.ExecuteRequest(code=asked), "once").action.id)

    first, ts = post(agent, "C0OPS")
    second, other = post(agent, "C0OPS")
    program()
    reply = program(f', "thread_ts": "{other}"')

    refused = Journey(agent.daemon, undo(second), token=agent.token).finished()
    assert refused.problem.code == "conflict" and f"depend on it ({reply})" in refused.problem.message
    finished = Journey(agent.daemon, undo(first), token=agent.token).approve()
    assert finished.action.state == "done" and agent.service.deleted == {ts}, finished
