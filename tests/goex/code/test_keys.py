"""A service that knows idempotency keys, and says of no answer that it gave it before."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.code.conftest import CALL
from tests.runtimes.rest.support import TOKEN, Hit, Service, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, undo


def issue(number: int, title: str) -> dict[str, Any]:
    return {"number": number, "id": number, "node_id": str(number), "title": title, "state": "open", "comments": 0}


class Hub(Service):
    """Two repositories. A key is remembered by itself, whatever it came with."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, tuple[int, Any]] = {}
        self.issues: dict[str, dict[int, dict[str, Any]]] = {"mine": {}, "theirs": {1: issue(1, "weekly report")}}

    def handle(self, hit: Hit) -> tuple[int, Any]:
        key = hit.headers.get("idempotency-key", "")
        if key in self.given:
            return self.given[key]
        parts = unquote(hit.path).strip("/").split("/")
        repo = self.issues[parts[2]]
        if hit.method == "POST":
            number = max(repo, default=0) + 1
            repo[number] = issue(number, hit.body["title"])
            if key:
                self.given[key] = 201, dict(repo[number])
            return 201, dict(repo[number])
        found = repo[int(parts[4])]
        if hit.method == "PATCH":
            found.update(hit.body)
        return 200, found


@pytest.mark.promise(57)
def test_undo_takes_back_what_each_request_made_and_nothing_of_others(sandbox_image: str, tmp_path: Path) -> None:
    """The program gives one key to all of its requests, and sends one of them twice."""
    hub = Hub()
    with serving(hub, tmp_path), Daemon() as daemon:
        account = pb.VaultPutRequest(
            service="github", account="work", base_url=hub.url, private=True, ca_pem=hub.ca_pem,
            secret=TOKEN.encode(), passphrase=APPROVAL_PASSPHRASE,
        )  # fmt: skip
        daemon.person("VaultPut", account)
        program = CALL.replace("GOEX_TOKEN_SLACK", "GOEX_TOKEN_GITHUB")
        program = program.replace('"Content-Type"', '"Idempotency-Key": "k", "Content-Type"')
        for repo in ("mine", "mine", "theirs"):
            program += f'send("POST", "{hub.url}/repos/acme/{repo}/issues", {{"title": "weekly report"}})\n'
        code = pb.CodeProgram(language="python", program=program, services=["github"], profile="base")
        finished = Journey(daemon, pb.ExecuteRequest(code=code), person=True).approve()
        assert finished.action.state == "done", finished
        assert {name: sorted(found) for name, found in hub.issues.items()} == {"mine": [1], "theirs": [1, 2]}
        back = Journey(daemon, undo(finished.action.id), person=True).approve()
        assert back.action.state == "done", back
        states = {(name, number): one["state"] for name, found in hub.issues.items() for number, one in found.items()}
        assert states == {("mine", 1): "closed", ("theirs", 1): "open", ("theirs", 2): "closed"}
