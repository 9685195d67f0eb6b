"""A service account's file, from the command line to a program that reads it with Google's own library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.code.conftest import Scene
from tests.runtimes.rest.support import TOKEN
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import Journey
from tests.vault.oauth.test_credential_files import KEY, TokenServer, service_account, serving_tokens

PROGRAM = """\
import google.auth
from google.auth.transport.requests import AuthorizedSession
credentials, project = google.auth.default(scopes=["chat:write"])
session = AuthorizedSession(credentials)
answer = session.post("URL/chat.postMessage", json={"channel": "#ops", "text": "by a robot"})
print(answer.json()["ok"], project, open(__import__("os").environ["GOOGLE_APPLICATION_CREDENTIALS"]).read())
"""


@pytest.fixture
def endpoint() -> Iterator[TokenServer]:
    with serving_tokens() as made:
        yield made


@pytest.mark.promise(55)
def test_a_program_reads_a_service_accounts_file_and_never_its_key(
    scene: Scene, code_image: str, endpoint: TokenServer
) -> None:
    endpoint.token = TOKEN
    scene.daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack",
            account="robot",
            format="file",
            base_url=f"{scene.slack.url}/api",
            private=True,
            ca_pem=scene.slack.ca_pem,
            secret=service_account(endpoint.url),
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )
    program = PROGRAM.replace("URL", f"{scene.slack.url}/api")
    code = pb.CodeProgram(language="python", program=program, services=["slack/robot"], profile="code")
    finished = Journey(scene.daemon, pb.ExecuteRequest(code=code), person=True).approve("once")
    made: dict[str, Any] = json.loads(finished.action.outcome_json)
    assert scene.texts == ["by a robot"], made
    assert made["stdout"].startswith("True barn"), made
    assert [form["scope"] for form in endpoint.seen] == [
        "chat:write"
    ]  # the daemon's own request, and none of the code's
    assert [hit.headers["authorization"] for hit in scene.slack.hits] == [f"Bearer {TOKEN}"]
    key = KEY.replace("\n", "\\n")
    assert not any(key[at : at + 24] in made["stdout"] for at in range(160, len(key) - 80, 8))
    assert TOKEN not in made["stdout"]
