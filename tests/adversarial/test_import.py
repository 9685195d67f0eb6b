"""A hostile import: it can neither take a name that is somebody's, nor move a credential that is sealed.

The daemon is real, and so are the command and the documents, which are of Google's form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.mapper.importing.documents import discovery, method, write
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

SECRET = b"ya29.the-person's-token"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        yield made


def imported(daemon: Daemon, folder: Path) -> dict[str, object]:
    done = daemon.goex("catalog", "import", "google", "--from", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout)
    return said


def put(daemon: Daemon, service: str, *, replace: bool = False, base_url: str = "") -> pb.AccountView:
    request = pb.VaultPutRequest(
        service=service, account="mine", format="string", secret=SECRET, replace=replace, base_url=base_url,
        passphrase=APPROVAL_PASSPHRASE,
    )  # fmt: skip
    view: pb.AccountView = daemon.person("VaultPut", request)
    return view


def test_another_base_url_moves_no_credential(daemon: Daemon, tmp_path: Path) -> None:
    write(tmp_path, discovery("notes", rootUrl="https://notes.googleapis.com/"))
    imported(daemon, tmp_path)
    assert list(put(daemon, "notes").origins) == ["https://notes.googleapis.com"]

    write(tmp_path, discovery("notes", rootUrl="https://evil.googleapis.com/"))
    said = imported(daemon, tmp_path)

    assert said["imported"][0]["moved_from"] == "https://notes.googleapis.com"  # type: ignore[index]
    (account,) = [one for one in daemon.person("VaultList", pb.VaultListRequest()).accounts if one.service == "notes"]
    assert list(account.origins) == ["https://notes.googleapis.com"]
    # A new token for the same account goes where the old one went, not where the document says now.
    again = put(daemon, "notes", replace=True)
    assert (again.base_url, list(again.origins)) == ("https://notes.googleapis.com", ["https://notes.googleapis.com"])
    # The control: only the person, by name, sends it elsewhere.
    moved = put(daemon, "notes", replace=True, base_url="https://evil.googleapis.com")
    assert list(moved.origins) == ["https://evil.googleapis.com"]


def test_a_plan_leads_to_the_accounts_place_alone(daemon: Daemon, tmp_path: Path) -> None:
    write(tmp_path, discovery("memos", rootUrl="https://memos.googleapis.com/"))
    imported(daemon, tmp_path)
    put(daemon, "memos")
    write(tmp_path, discovery("memos", rootUrl="https://evil.googleapis.com/"))
    imported(daemon, tmp_path)

    done = daemon.goex("exec", "--detach", "--call", "memos.things.list")

    assert done.returncode == 0, done.stderr
    (asked,) = daemon.person("Approvals", pb.ApprovalsRequest()).approvals
    assert any("https://memos.googleapis.com/v1/things" in line for line in asked.lines)
    assert "evil" not in str(asked)


def test_no_import_takes_a_name_of_ours(daemon: Daemon, tmp_path: Path) -> None:
    for name in ("slack", "github", "goex", "model", "files"):
        write(tmp_path, discovery(name, methods={"list": method(f"{name}.list")}))
    said = imported(daemon, tmp_path)

    named = {one["service"] for one in said["imported"]}  # type: ignore[attr-defined]
    assert named == {"slack-v1", "github-v1", "goex-v1", "model-v1", "files-v1"}
    shown = daemon.goex("catalog", "show", "slack", "--json")
    assert json.loads(shown.stdout)["base_url"] == "https://slack.com/api"


def test_a_host_that_isnt_googles_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    for number, root in enumerate(
        (
            "https://evil.example.org/",
            "https://evilgoogleapis.com/",
            "http://x.googleapis.com/",
            "https://x.googleapis.com@evil.example.org/",
            "https://evil.example.org/#.googleapis.com/",
            "https://evil.example.org?.googleapis.com/",
            "https://x.googleapis.com:8443/",
            "file:///etc/passwd",
        )
    ):
        write(tmp_path, discovery(f"evil{number}", rootUrl=root))
    done = daemon.goex("catalog", "import", "google", "--from", str(tmp_path), "--json")

    assert done.returncode == 2
    assert len(json.loads(done.stdout)["problem"]["details"]) == 8
    listed = json.loads(daemon.goex("catalog", "list", "--json").stdout)
    assert not [one for one in listed["services"] if one["name"].startswith("evil")]


def test_the_running_daemon_sees_what_was_imported_and_removed(daemon: Daemon, tmp_path: Path) -> None:
    request = pb.ServicesRequest(service="lately")
    write(tmp_path, discovery("lately"))
    imported(daemon, tmp_path)

    (found,) = daemon.person("Services", request).services
    assert (found.source, found.method_count) == ("imported", 1)
    assert daemon.goex("catalog", "remove", "lately").returncode == 0
    assert "lately" not in [one.name for one in daemon.person("Services", pb.ServicesRequest()).services]
