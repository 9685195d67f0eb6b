"""An API that nobody here knew: imported from its document, connected, called, and not to be led elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.notes_service import CA, NotesService, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey
from tests.support.person import QUESTION

SECRET = "notes-token-7f3a9c51d2"


@pytest.fixture(scope="module")
def service() -> Iterator[NotesService]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def account(daemon: Daemon, service: NotesService, tmp_path_factory: pytest.TempPathFactory) -> pb.AccountView:
    """The service, imported; and an account of it, whose address is the document's."""
    file = tmp_path_factory.mktemp("api") / "notes.yaml"
    file.write_text(service.document())
    done = daemon.goex("catalog", "import", "openapi", str(file), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["imported"][0]["service"], said["methods"], said["problems"]) == ("team_notes", 2, [])
    put: pb.AccountView = daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="team_notes", account="mine", format="string", secret=SECRET.encode(), private=True, ca_pem=CA.pem,
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )  # fmt: skip
    assert put.base_url == service.url
    return put


def run(daemon: Daemon, *arguments: str) -> tuple[int, str]:
    """`goex exec` on a terminal, the person saying yes once."""
    with daemon.terminal("exec", *arguments) as terminal:
        for typed in ("?", "once"):
            terminal.expect(QUESTION, seconds=300)
            terminal.type(typed)
        if terminal.expect(r"Approval passphrase: |went well", seconds=300)[0].startswith("Approval"):
            terminal.type(APPROVAL_PASSPHRASE)
        code = terminal.wait(seconds=300)
        return code, terminal.text


@pytest.mark.docker
def test_a_write_and_a_read_through_the_real_daemon_container_and_gateway(
    daemon: Daemon, service: NotesService, account: pb.AccountView
) -> None:
    body = json.dumps({"title": "Friday", "text": "ship it", "answers": [{"text": "yes"}]})
    code, screen = run(daemon, "--call", "team_notes.notes.create", "team=core", "X-Trace:=7", f"body:={body}")
    assert code == 0, screen
    assert "notes.read+notes.write" in screen
    method, target, headers = service.got[-1]
    assert (method, target) == ("POST", "/v1/teams/core/notes")
    assert (headers["authorization"], headers["x-trace"]) == (f"Bearer {SECRET}", "7")
    assert service.notes == [{"title": "Friday", "text": "ship it", "answers": [{"text": "yes"}], "id": 1}]

    arguments = ("team=core", 'tag:=["a","b"]', "ids:=[3,5]")
    code, screen = run(daemon, "--call", "team_notes.notes.list", *arguments)
    assert code == 0, screen
    assert "ship it" in screen
    assert "notes.read+notes.write" not in screen  # the least that suffices
    method, target, headers = service.got[-1]
    assert (method, urlsplit(target).path) == ("GET", "/v1/teams/core/notes")
    assert sorted(parse_qsl(urlsplit(target).query)) == [("ids", "3,5"), ("tag", "a"), ("tag", "b")]
    assert SECRET not in screen


def test_what_the_document_doesnt_allow_is_refused_before_anybody_is_asked(
    daemon: Daemon, service: NotesService, account: pb.AccountView
) -> None:
    before = len(service.got)
    for body, why in (
        ({"title": "no text"}, "text"),
        ({"text": "x", "extra": 1}, "extra"),
        ({"text": "x", "answers": [{"text": 5}]}, "must be text"),
    ):
        call = ("--call", "team_notes.notes.create", "team=core", f"body:={json.dumps(body)}")
        done = daemon.goex("exec", "--json", *call)
        assert done.returncode == 2
        assert why in done.stdout
    assert len(service.got) == before


def test_no_import_moves_the_credential(
    daemon: Daemon, service: NotesService, account: pb.AccountView, tmp_path: Path
) -> None:
    """The same name at another address: refused; and by force, with a plan that still leads to the account's place."""
    evil = tmp_path / "evil.yaml"
    evil.write_text(service.document("https://evil.example.com/v1"))
    refused = daemon.goex("catalog", "import", "openapi", str(evil), "--json")
    assert refused.returncode == 6
    assert json.loads(refused.stdout)["problem"]["code"] == "conflict"
    assert _shown(daemon)["base_url"] == service.url

    named = daemon.goex("catalog", "import", "openapi", str(evil), "--name", "team_notes")
    assert named.returncode == 6

    # The person takes the old one out, and a document that leads elsewhere comes in under its name.
    assert daemon.goex("catalog", "remove", "team_notes").returncode == 0
    assert daemon.goex("catalog", "import", "openapi", str(evil)).returncode == 0
    assert _shown(daemon)["base_url"] == "https://evil.example.com/v1"
    (kept,) = [one for one in daemon.person("VaultList", pb.VaultListRequest()).accounts if one.service == "team_notes"]
    assert list(kept.origins) == [service.url.removesuffix("/v1")]
    call = pb.Call(service="team_notes", method="notes.list", arguments_json='{"team": "core"}')
    journey = Journey(daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), person=True)
    asked = "\n".join(journey.asked().lines)
    journey.leave()
    assert f"{service.url}/teams/core/notes" in asked
    assert "evil.example.com" not in asked


def test_a_function_without_an_address_cant_be_run(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    area = {"type": "dict", "properties": {"side": {"type": "float"}}, "required": ["side"]}
    file.write_text(json.dumps([{"name": "shape.area", "description": "The area.", "parameters": area}]))
    assert daemon.goex("catalog", "import", "functions", str(file)).returncode == 0

    done = daemon.goex("exec", "--json", "--call", "tools.shape.area", "side:=2")

    assert done.returncode == 10, (done.stdout, done.stderr)
    assert "without an address" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr + daemon.tail()
    wrong = daemon.goex("exec", "--json", "--call", "tools.shape.area", "side=two")
    assert (wrong.returncode, "must be a number" in wrong.stdout) == (2, True)


def _shown(daemon: Daemon) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(daemon.goex("catalog", "show", "team_notes", "--json").stdout)
    return shown
