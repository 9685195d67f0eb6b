"""What an earlier action answered, in a later one's calls: by its id, as data, of the asker's own actions alone."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.runtimes.rest.support import FakeSlack
from tests.support import mcp
from tests.support.daemon import Daemon
from tests.support.journey import Journey, as_the_person_sees, decide, problem

pytestmark = pytest.mark.docker
CHANNEL = {"channel": "C0OPS"}


@pytest.fixture(scope="module")
def token(daemon: Daemon, slack: FakeSlack) -> str:
    mcp.connect_fake_slack(daemon, slack)
    return daemon.add_agent("refers")


@pytest.fixture(scope="module")
def posted(daemon: Daemon, token: str) -> str:
    """An action that posted a message, for which the agent has a grant for good."""
    journey = Journey(daemon, calls("chat.postMessage", **CHANNEL, text="hi"), token=token)
    decide(daemon, journey.asked(), width="permanent")
    assert journey.finished().action.state == "done"
    return journey.action_id


def calls(method: str, **arguments: Any) -> pb.ExecuteRequest:
    one = pb.Call(service="slack", method=method, arguments_json=json.dumps(arguments))
    return pb.ExecuteRequest(calls=pb.Calls(calls=[one]))


def of(action: str, path: str) -> dict[str, str]:
    return {"$from": action, "path": path}


def test_its_value_is_asked_about_and_sent(daemon: Daemon, slack: FakeSlack, token: str, posted: str) -> None:
    journey = Journey(daemon, calls("chat.delete", **CHANNEL, ts=of(posted, "$.ts")), token=token)
    asked = as_the_person_sees(daemon, journey.asked())
    ((channel, ts),) = slack.messages
    assert ts in str(asked)
    decide(daemon, asked)
    assert journey.finished().action.state == "done"
    assert slack.messages == {} and channel == "C0OPS"


def test_no_grant_of_before_covers_it(daemon: Daemon, slack: FakeSlack, token: str, posted: str) -> None:
    """The control: the same with a text of the agent's own runs on the grant."""
    given = Journey(daemon, calls("chat.postMessage", **CHANNEL, text="hi"), token=token)
    assert given.finished().action.state == "done"
    assert not any(event.HasField("asking") for event in given.seen)
    filled = Journey(daemon, calls("chat.postMessage", **CHANNEL, text=of(posted, "$.message.text")), token=token)
    filled.asked()
    filled.leave()


@pytest.mark.promise(74)
def test_another_agent_s_answer_is_nowhere(daemon: Daemon, posted: str) -> None:
    said = []
    for id in (posted, "a-000000000000"):
        with pytest.raises(grpc.RpcError) as refused:
            request = calls("chat.postMessage", **CHANNEL, text=of(id, "$.ts"))
            Journey(daemon, request, token=daemon.add_agent(f"neighbour-{id}")).finished()
        said.append(problem(refused.value).message.replace(id, "ID"))
    assert said[0] == said[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("path", "says"),
    [("$.nothing", "nothing"), ("no path", "path"), ("$.odd", "reads as a reference"), ("$.items[?@.n>1].n", "")],
)
def test_what_isnt_there_or_isnt_one_value_begins_nothing(
    daemon: Daemon, slack: FakeSlack, token: str, path: str, says: str
) -> None:
    odd = {"ok": True, "members": [], "odd": {"$from": 0, "path": "$.ts"}, "items": [{"n": 2}, {"n": 3}]}
    slack.override = lambda hit: (200, odd) if hit.path.endswith("users.list") else None
    listed = Journey(daemon, calls("users.list"), token=token)
    listed.approve()
    slack.override = lambda _: None
    with pytest.raises(grpc.RpcError) as refused:
        Journey(daemon, calls("chat.postMessage", **CHANNEL, text=of(listed.action_id, path)), token=token).finished()
    assert says in problem(refused.value).message
    assert problem(refused.value).who == "agent"


def test_what_has_no_answer_yet_is_said(daemon: Daemon, token: str) -> None:
    waiting = Journey(daemon, calls("chat.delete", **CHANNEL, ts="1700000001.000100"), token=token)
    waiting.asked()
    with pytest.raises(grpc.RpcError) as refused:
        request = calls("chat.postMessage", **CHANNEL, text=of(waiting.action_id, "$.ts"))
        Journey(daemon, request, token=token).finished()
    waiting.leave()
    assert "has no result" in problem(refused.value).message


def test_a_preview_shows_its_value(daemon: Daemon, token: str, posted: str) -> None:
    request = calls("chat.postMessage", **CHANNEL, text=of(posted, "$.message.text"))
    reply = daemon.actions("Preview", pb.PreviewRequest(request=request), token=token)
    assert any("hi" in line.text for line in reply.lines)
