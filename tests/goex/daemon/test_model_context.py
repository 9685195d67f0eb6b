"""What a running daemon tells a model, read off the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

pytestmark = pytest.mark.docker

ABOUT = "my boss is hilda@meadow.example"
SECRET = "xoxb-the-token-of-the-scene"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(Reply(content='{"calls": []}')) as running:
        yield running


def config(server: FakeOpenAI, more: str = "") -> str:
    return f'[model]\nbase_url = "{server.url}"\nname = "fake"\nmethod = "retrieval"\nabout_me = "{ABOUT}"\n{more}'


@pytest.fixture(scope="module")
def daemon(server: FakeOpenAI) -> Iterator[Daemon]:
    with Daemon(config=config(server)) as running:
        request = pb.VaultPutRequest(service="slack", account="allotment", secret=SECRET.encode())
        request.passphrase = APPROVAL_PASSPHRASE
        running.person("VaultPut", request)
        yield running


def told(server: FakeOpenAI) -> dict[str, Any]:
    """The context in the latest prompt."""
    said = server.requests[-1].body["messages"][1]["content"].partition("\n")[2]
    return dict(json.loads(said).get("context", {}))


WORDS = pb.MapRequest(intent='send "hi" to #ops on slack')


@pytest.mark.promise(85)
def test_an_agent_has_the_time_and_the_person_their_own(daemon: Daemon, server: FakeOpenAI) -> None:
    daemon.actions("Map", WORDS, token=daemon.add_agent("maps"))
    of_the_agent = told(server)
    daemon.actions("Map", WORDS, socket=daemon.user_socket)
    of_the_person = told(server)
    assert "now" in of_the_agent and not {"accounts", "about_me"} & set(of_the_agent)
    assert (of_the_person["accounts"], of_the_person["about_me"]) == (["slack/allotment"], ABOUT)
    assert all(SECRET not in request.text for request in server.requests)


def test_it_can_be_switched_off(daemon: Daemon, server: FakeOpenAI) -> None:
    daemon.configure(config(server, "context = []\n"))
    daemon.restart()
    daemon.actions("Map", WORDS, socket=daemon.user_socket)
    assert told(server) == {}
