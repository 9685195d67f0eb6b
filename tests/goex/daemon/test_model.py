"""With a model: it proposes, many samples vote, it answers over the outcome, and it never meets a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.services.synapse import Synapse
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

pytestmark = [pytest.mark.docker, pytest.mark.synapse]

KEY = "sk-the-key-of-the-model-in-tests"


class Model:
    """What the fake model says. `wrong` of ten samples, evenly among them, name another room; words when it is asked
    for words."""

    def __init__(self) -> None:
        self.arguments: dict[str, str] = {}
        self.wrong = 0
        self.given = 0
        self.words = "It is sent."

    def __call__(self, body: dict[str, Any]) -> Reply:
        if not body.get("tools"):
            return Reply(content=self.words)
        self.given += 1
        bad = self.given * self.wrong % 10 < self.wrong
        arguments = {**self.arguments, **({"roomId": "!elsewhere:evil.example"} if bad else {})}
        names = [tool["function"]["name"] for tool in body["tools"]]
        name = next(name for name in names if "rooms" in name and name.endswith("send"))
        return Reply(tool_calls=((name, json.dumps(arguments)),))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server(model: Model) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(by=model) as running:
        yield running


@pytest.fixture(scope="module")
def daemon(server: FakeOpenAI) -> Iterator[Daemon]:
    config = f'[model]\nbase_url = "{server.url}"\nname = "fake"\naccount = "default"\n'
    with Daemon(config=config) as running:
        put(running, "model", "default", KEY, server.url)
        yield running


def put(daemon: Daemon, service: str, account: str, secret: str, base_url: str, replace: bool = False) -> None:
    request = pb.VaultPutRequest(service=service, account=account, secret=secret.encode(), base_url=base_url)
    request.private = True
    request.replace = replace
    request.passphrase = APPROVAL_PASSPHRASE
    daemon.person("VaultPut", request)


def journaled(daemon: Daemon, action: str) -> dict[str, Any]:
    rows = daemon.person("Log", pb.LogRequest(action_id=action, limit=50)).rows
    return dict(json.loads(next(row.facts_json for row in rows if row.kind == "votes")))


@pytest.fixture(scope="module")
def room(daemon: Daemon, synapse: Synapse) -> tuple[str, str]:
    token = synapse.register("modelled")
    put(daemon, "matrix", "home", token, synapse.url)
    return token, synapse.create_room(token, "Model")


def test_a_request_in_words_ends_with_an_answer_in_words(
    daemon: Daemon, server: FakeOpenAI, model: Model, synapse: Synapse, room: tuple[str, str]
) -> None:
    token, room_id = room
    model.arguments = {"roomId": room_id, "body": "from the model"}
    model.wrong = 2
    journey = Journey(daemon, pb.ExecuteRequest(intent=f"tell {room_id} hello"), person=True)
    finished = journey.approve()
    assert finished.action.state == "done", finished
    assert finished.answer == "It is sent."
    assert synapse.texts(token, room_id) == ["from the model"]
    mapped = next(event.mapped for event in journey.seen if event.WhichOneof("what") == "mapped")
    # Three agree, and that settles it; ten could have been asked for.
    assert (mapped.samples, mapped.candidates[0].votes, mapped.proposer) == (3, 3, "fake")
    votes = journaled(daemon, finished.action.id)
    assert (votes["method"], votes["samples"], votes["samples_most"], votes["stopped"]) == (
        "adaptive",
        3,
        10,
        "settled",
    )
    assert votes["confidence"] >= 0.975 and len(set(votes["ballots"])) == 1 and votes["claims"] == []
    sent = "".join(request.text for request in server.requests)
    assert room_id in sent  # the control: what is in the prompts is found
    assert token not in sent
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


def test_a_vote_that_is_not_clear_asks_the_person_to_choose(
    daemon: Daemon, model: Model, synapse: Synapse, room: tuple[str, str]
) -> None:
    token, room_id = room
    model.arguments = {"roomId": room_id, "body": "chosen"}
    model.wrong, model.given = 5, 0
    words = f"maybe write something in {room_id}"
    journey = Journey(daemon, pb.ExecuteRequest(intent=words), person=True)
    finished = journey.finished()
    assert (finished.action.state, finished.problem.code, finished.problem.exit_status) == ("failed", "ambiguous", 5)
    mapped = next(event.mapped for event in journey.seen if event.WhichOneof("what") == "mapped")
    votes = journaled(daemon, finished.action.id)
    assert (votes["samples"], votes["stopped"], len(votes["ballots"])) == (10, "all asked", 10)
    rooms = [json.loads(candidate.calls[0].arguments_json)["roomId"] for candidate in mapped.candidates]
    choice = rooms.index(room_id) + 1
    chosen = Journey(daemon, pb.ExecuteRequest(intent=words, choice=choice), person=True).approve()
    assert chosen.action.state == "done"
    assert "chosen" in synapse.texts(token, room_id)


def test_a_model_that_fails_is_said(daemon: Daemon, server: FakeOpenAI) -> None:
    server.statuses = [500] * 40
    try:
        finished = Journey(daemon, pb.ExecuteRequest(intent="say hello"), person=True).finished()
    finally:
        server.statuses = []
    assert (finished.action.state, finished.problem.code, finished.problem.exit_status) == ("failed", "model", 8)


def test_the_key_goes_only_where_its_record_says(daemon: Daemon, server: FakeOpenAI) -> None:
    with FakeOpenAI(Reply(content="[]")) as elsewhere:
        daemon.configure(f'[model]\nbase_url = "{elsewhere.url}"\nname = "fake"\naccount = "default"\n')
        daemon.restart()
        try:
            finished = Journey(daemon, pb.ExecuteRequest(intent="say hello"), person=True).finished()
            assert finished.problem.code == "denied", finished
            assert not elsewhere.requests
            put(daemon, "model", "default", KEY, elsewhere.url, replace=True)  # the control
            Journey(daemon, pb.ExecuteRequest(intent="say hello"), person=True).finished()
            assert elsewhere.requests
        finally:
            daemon.configure(f'[model]\nbase_url = "{server.url}"\nname = "fake"\naccount = "default"\n')
            put(daemon, "model", "default", KEY, server.url, replace=True)
            daemon.restart()
