"""A real daemon, a real container, the real gateway; and a service on loopback that keeps what it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from runtimes.sandbox import images
from tests.runtimes.rest.support import TOKEN, FakeSlack, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

CALL = """\
import json, os, urllib.request
def send(method, url, fields):
    headers = {"Authorization": "Bearer " + os.environ["GOEX_TOKEN_SLACK"], "Content-Type": "application/json"}
    data = json.dumps(fields).encode() if fields is not None else None
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return {"status": error.code, "said": error.read().decode()}
    except urllib.error.URLError as error:
        return {"said": str(error)}
"""


@dataclass
class Scene:
    """A daemon with an account of a service that is `slack` to it."""

    daemon: Daemon
    slack: FakeSlack
    agent: str = ""

    def program(self, *lines: str) -> str:
        """A program whose lines call `send(method, URL/…, fields)`; URL stands for the service's address."""
        return CALL + "\n".join(lines).replace("URL", f"{self.slack.url}/api") + "\n"

    def post(self, text: str = "hi", channel: str = "#ops") -> str:
        """A program that posts one message."""
        fields = f'{{"channel": "{channel}", "text": "{text}"}}'
        return self.program(f'print(send("POST", "URL/chat.postMessage", {fields}))')

    def request(
        self, program: str, *methods: str, language: str = "python", profile: str = "base", detach: bool = False
    ) -> pb.ExecuteRequest:
        code = pb.CodeProgram(language=language, program=program, services=["slack"], methods=methods, profile=profile)
        return pb.ExecuteRequest(code=code, detach=detach)

    def run(self, program: str, *methods: str, width: str = "once", person: bool = True, **more: Any) -> pb.Finished:
        """Have a program run, the person saying yes. By the person's own command line, or by the agent."""
        journey = Journey(
            self.daemon, self.request(program, *methods, **more), token="" if person else self.agent, person=person
        )
        return journey.approve(width)

    def rows(self, id: str, kind: str) -> list[Any]:
        """An action's rows of one kind in the journal, newest first."""
        said = json.loads(self.daemon.goex("log", "--rows", "--action", id, "--kind", kind, "--json").stdout)
        return list(said["rows"])

    @property
    def texts(self) -> list[str]:
        return list(self.slack.messages.values())


def connected(daemon: Daemon, slack: FakeSlack) -> Scene:
    """A daemon that has an account of `slack`, and an agent."""
    daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack",
            account="work",
            base_url=f"{slack.url}/api",
            private=True,
            ca_pem=slack.ca_pem,
            secret=TOKEN.encode(),
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )
    return Scene(daemon, slack, daemon.add_agent("scout"))


@pytest.fixture(scope="module")
def scene(sandbox_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    slack = FakeSlack()
    with serving(slack, tmp_path_factory.mktemp("slack")), Daemon() as daemon:
        yield connected(daemon, slack)


@pytest.fixture(autouse=True)
def _fresh(scene: Scene) -> None:
    scene.slack.messages.clear()
    scene.slack.hits.clear()


@pytest.fixture(scope="session")
def code_image() -> str:
    """The content id of the image `code`, built when it isn't there."""
    return images.build("code")
