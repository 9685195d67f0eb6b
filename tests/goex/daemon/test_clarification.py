"""A model's question about a request's words, over the wire: asked once, answered, and never an approval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

pytestmark = pytest.mark.docker

WORDS = 'tell them "hi" on slack'
QUESTION = {
    "question": "Which channel?",
    "choices": [
        {"answer": "the one called ops", "methods": ["slack.chat.postMessage"]},
        {"answer": "none, just \x1b[31mlist them", "methods": ["slack.conversations.list"]},
    ],
}


def model(body: dict[str, Any]) -> Reply:
    """Asks, again and again where the words want it to; proposes what the answer says."""
    data = json.loads(body["messages"][1]["content"].partition("\n")[2])
    asked = data.get("context", {}).get("asked")
    if asked is None or "for ever" in data["request"]:
        return Reply(tool_calls=(("ask", json.dumps(QUESTION)),))
    arguments = {"channel": "#ops", "text": asked["answer"]}
    calls = {"calls": [{"name": "slack.chat.postMessage", "arguments": arguments}]}
    return Reply(tool_calls=(("propose", json.dumps(calls)),))


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with FakeOpenAI(by=model) as server:
        config = f'[model]\nbase_url = "{server.url}"\nname = "fake"\nmethod = "conversation"\n'
        with Daemon(config=config) as running:
            request = pb.VaultPutRequest(service="slack", account="default", secret=b"xoxb-of-the-scene")
            request.passphrase = APPROVAL_PASSPHRASE
            running.person("VaultPut", request)
            yield running


def mapped(daemon: Daemon, words: str = WORDS, answer: str = "") -> pb.MapReply:
    reply: pb.MapReply = daemon.actions("Map", pb.MapRequest(intent=words, answer=answer), socket=daemon.user_socket)
    return reply


def test_a_question_travels_and_its_answer_maps(daemon: Daemon) -> None:
    reply = mapped(daemon)
    assert not reply.sure and not reply.candidates and reply.clarification.text == "Which channel?"
    assert [list(one.methods) for one in reply.clarification.options] == [
        ["slack.chat.postMessage"],
        ["slack.conversations.list"],
    ]
    assert "\x1b" not in reply.clarification.options[1].answer
    answered = mapped(daemon, answer="the one called ops")
    assert answered.sure and not answered.HasField("clarification")
    assert json.loads(answered.candidates[0].calls[0].arguments_json)["text"] == "the one called ops"


def test_it_asks_once(daemon: Daemon) -> None:
    assert mapped(daemon, "say it for ever on slack").HasField("clarification")
    reply = mapped(daemon, "say it for ever on slack", answer="again")
    assert not reply.HasField("clarification") and not reply.candidates
    assert all("asked already" in one.reason for one in reply.rejected) and len(reply.rejected) >= 3


def test_an_answer_to_nothing_is_refused(daemon: Daemon) -> None:
    with pytest.raises(grpc.RpcError, match="Nothing was asked"):
        mapped(daemon, "something that nobody asked about", answer="ops")


def test_an_answer_approves_nothing(daemon: Daemon) -> None:
    asked = Journey(daemon, pb.ExecuteRequest(intent=WORDS), person=True).finished()
    assert (asked.action.state, asked.problem.code) == ("failed", "ambiguous")
    assert "Which channel?" in asked.problem.message
    answered = Journey(daemon, pb.ExecuteRequest(intent=WORDS, answer="the one called ops"), person=True)
    approval = answered.asked()
    assert approval.state == "pending" and daemon.person_action(approval.action_id) == "asking"
    rows = daemon.person("Log", pb.LogRequest(action_id=approval.action_id, limit=50)).rows
    votes = json.loads(next(row.facts_json for row in rows if row.kind == "votes"))
    assert votes["answer"] == "the one called ops" and votes["method"] == "conversation"


def test_the_command_line_shows_it(daemon: Daemon) -> None:
    done = daemon.goex("map", WORDS)
    assert done.returncode == 5
    assert "The model asks: Which channel?" in done.stdout and "2. none, just" in done.stdout
    assert "\x1b" not in done.stdout


def test_on_a_terminal_the_answer_is_asked_for_and_approves_nothing(daemon: Daemon) -> None:
    raw: list[str] = []
    with daemon.terminal("exec", WORDS, shown=raw.append) as terminal:
        terminal.expect("The model asks: Which channel")
        terminal.expect(r"2\. none, just")
        terminal.expect(r"Your answer \(1-2, or words\) \[none\]: ")
        terminal.type("1")
        # What the first option says went to the model, and its calls are asked for like any others.
        terminal.expect("the one called ops")
        terminal.expect(r"y once .*\[no\]: ")
        terminal.type()
        assert terminal.wait() != 0
    assert "\x1b[31mlist" not in "".join(raw)


def test_no_answer_on_a_terminal_does_nothing(daemon: Daemon) -> None:
    with daemon.terminal("exec", WORDS) as terminal:
        terminal.expect(r"Your answer \(1-2, or words\) \[none\]: ")
        terminal.type()
        assert terminal.wait() == 5
