"""A GraphQL API that nobody here knew: a query run as a read, a mutation asked about and sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.runtimes.rest.graphql_service import SCHEMA, Tracker
from tests.runtimes.rest.support import TOKEN, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.person import QUESTION


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracker]:
    service = Tracker()
    with serving(service, tmp_path_factory.mktemp("tls"), base="/api"):
        yield service


@pytest.fixture(scope="module")
def account(daemon: Daemon, tracker: Tracker, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("api") / "tracker.graphql"
    file.write_text(SCHEMA)
    endpoint = f"{tracker.url}/graphql"
    done = daemon.goex("catalog", "import", "graphql", str(file), "--endpoint", endpoint, "--name", "tracker", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["imported"][0]["service"], said["methods"], said["problems"]) == ("tracker", 5, [])
    put: pb.AccountView = daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="tracker", account="mine", format="string", secret=TOKEN.encode(), private=True,
            ca_pem=tracker.ca_pem, passphrase=APPROVAL_PASSPHRASE,
        ),
    )  # fmt: skip
    assert put.base_url == tracker.url


def run(daemon: Daemon, *arguments: str) -> tuple[int, str, bool]:
    """`goex exec` on a terminal, the person saying yes once: its exit, the screen, whether a passphrase was needed."""
    with daemon.terminal("exec", *arguments) as terminal:
        for typed in ("?", "once"):
            terminal.expect(QUESTION, seconds=300)
            terminal.type(typed)
        found = terminal.expect(r"Approval passphrase: |went well|failed", seconds=300)[0]
        if found.startswith("Approval"):
            terminal.type(APPROVAL_PASSPHRASE)
        return terminal.wait(seconds=300), terminal.text, found.startswith("Approval")


@pytest.mark.docker
def test_a_query_is_a_read_and_a_mutation_is_asked_about(daemon: Daemon, tracker: Tracker, account: None) -> None:
    code, screen, asked = run(daemon, "--call", "tracker.issue", "number:=1")
    assert code == 0, screen
    assert not asked and "First" in screen and "answers with: issue.id" in screen
    assert "It only reads" in screen or "only reads" in screen

    title = 'Ünïcode "}) mutation'
    code, screen, asked = run(daemon, "--call", "tracker.createIssue", f"input:={json.dumps({'title': title})}")
    assert code == 0, screen
    assert asked and "can't be taken back" in screen.replace("\r\n", " ")
    assert tracker.issues[2]["title"] == title
    query, mutation = tracker.got[-2:]
    assert query["variables"] == {"number": 1} and query["query"].startswith("query issue($number: Int!) {")
    assert mutation["variables"] == {"input": {"title": title}}
    assert title not in mutation["query"] and set(mutation) == {"query", "variables"}
    assert TOKEN not in screen


@pytest.mark.docker
def test_errors_without_data_are_a_failure(daemon: Daemon, tracker: Tracker, account: None) -> None:
    code, screen, _ = run(daemon, "--call", "tracker.issue", "number:=99")
    assert code != 0
    assert "There is no issue 99." in screen


def test_a_schema_needs_an_endpoint(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "schema.graphql"
    file.write_text(SCHEMA)
    assert daemon.goex("catalog", "import", "graphql", str(file)).returncode == 2
    done = daemon.goex("catalog", "import", "graphql", str(file), "--endpoint", "api.example.com", "--json")
    assert json.loads(done.stdout)["problem"]["next_step"].startswith("Name the API's address")
