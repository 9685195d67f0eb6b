"""Words for a program: a model writes it, and it is read, shown and decided on like one that somebody typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.goex.code.conftest import Scene, connected
from tests.runtimes.rest.support import TOKEN, FakeSlack, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide


class Model:
    """Says each of these programs in turn."""

    def __init__(self) -> None:
        self.programs: tuple[str, ...] = ("",)
        self.given = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        said = self.programs[self.given % len(self.programs)]
        self.given += 1
        if "tools" not in body:  # the answer in words
            return Reply(content="It was posted.")
        name = body["tools"][0]["function"]["name"]
        return Reply(tool_calls=((name, json.dumps({"language": "python", "code": said})),))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server(model: Model) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(by=model) as running:
        yield running


@pytest.fixture(scope="module")
def scene(
    sandbox_image: str, code_image: str, server: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    slack = FakeSlack()
    config = f'[model]\nbase_url = "{server.url}"\nname = "fake"\naccount = "default"\n'
    with serving(slack, tmp_path_factory.mktemp("slack")), Daemon(config=config) as daemon:
        request = pb.VaultPutRequest(service="model", account="default", secret=b"key", base_url=server.url)
        request.private, request.passphrase = True, APPROVAL_PASSPHRASE
        daemon.person("VaultPut", request)
        yield connected(daemon, slack)


def words(text: str) -> pb.ExecuteRequest:
    return pb.ExecuteRequest(intent=text, code_services=["slack"])


def test_words_become_a_program_that_is_shown_and_decided_on(scene: Scene, model: Model, server: FakeOpenAI) -> None:
    model.programs = (scene.post("written by a model"), "# as well\n" + scene.post("written by a model"))
    journey = Journey(scene.daemon, words("tell #ops something"), person=True)
    asked = journey.asked()
    assert any("written by a model" in line for line in asked.lines)
    assert any(line.startswith("slack.chat.postMessage as work") for line in asked.lines)
    decide(scene.daemon, asked)
    finished = journey.finished()
    assert finished.action.state == "done", finished
    assert finished.action.kind == "code"
    assert scene.texts == ["written by a model"]
    assert finished.answer == "It was posted."
    sent = "".join(request.text for request in server.requests)
    assert "chat.postMessage" in sent
    assert TOKEN not in sent


def test_samples_that_call_different_things_never_run(scene: Scene, model: Model) -> None:
    model.programs = (scene.post("one", "#ops"), scene.post("two", "#general"))
    ended = Journey(scene.daemon, words("tell somebody something"), person=True).finished()
    assert ended.problem.code == "ambiguous"
    assert ended.problem.next_step
    assert scene.slack.hits == []


def test_nothing_fits_is_said(scene: Scene, model: Model) -> None:
    model.programs = ("",)
    ended = Journey(scene.daemon, words("fly to the moon"), person=True).finished()
    assert ended.problem.code == "ambiguous"
    assert "nothing here fits" in ended.problem.message


def test_an_agent_s_words_become_a_program_that_the_person_decides_on(scene: Scene, model: Model) -> None:
    model.programs = (scene.post("for an agent"),)
    journey = Journey(scene.daemon, words("tell #ops something"), token=scene.agent)
    finished = journey.approve()
    assert finished.action.state == "done"
    assert scene.texts == ["for an agent"]
