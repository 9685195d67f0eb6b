"""Published MCP servers inside, from their registries: added by the command, called, undone exactly or by a pair. What
they say of their environment, and where they can send something, is looked at, each with a control.

Their images are kept by the engine, by the hash of their packages, as every image is. Where a registry can't be
reached the tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.runtimes.rest.support import Hit, Service, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, undo
from tests.support.mcp_server import TOKEN
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(900)]
_OWN = {"NPM_CONFIG_USERCONFIG": ".npmrc", "npm_config_cache": ".npm", "PIP_CONFIG_FILE": ".config/pip/pip.conf"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One that finds this machine's registries."""
    env = {name: value for name, value in os.environ.items() if name.lower().startswith(("npm_", "pip_"))}
    env |= {name: str(Path.home() / file) for name, file in _OWN.items() if (Path.home() / file).exists()}
    with Daemon(env=env) as running:
        yield running


def add(daemon: Daemon, *arguments: str) -> str:
    """`goex mcp add` on a terminal. Returns what it said."""
    with daemon.terminal("mcp", "add", *arguments) as terminal:
        try:
            agree(terminal)
        except AssertionError:
            if "couldn't get" in terminal.text or "isn't there" in terminal.text:
                pytest.skip(f"no registry: {terminal.text[-300:]}")
            raise
        terminal.expect("assphrase", seconds=300)
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait(seconds=300) == 0, terminal.text
        return terminal.text


def agree(terminal: Terminal) -> None:
    """Turn the pages of what the server says of its tools, and agree to it."""
    while "y/N" not in terminal.expect(r"Enter shows more|\[y/N\] ", seconds=400)[0]:
        terminal.type()
    terminal.type("y")


def call(daemon: Daemon, method: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The action of one call, the person saying yes, and its outcome."""
    service, _, name = method.partition(".")
    one = pb.Call(service=service, method=name, arguments_json=json.dumps(arguments))
    journey = Journey(daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[one])), person=True)
    finished = journey.approve()
    return journey.action_id, json.loads(finished.action.outcome_json)


def take_back(daemon: Daemon, action: str) -> str:
    return str(Journey(daemon, undo(action), person=True).approve().action.state)


@pytest.fixture
def folder(daemon: Daemon, tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.txt").write_text("one")
    if os.geteuid() == 0:
        for file in (made, made / "a.txt"):
            os.chown(file, 65534, 65534)
    return made


def test_filesystem(daemon: Daemon, folder: Path) -> None:
    said = add(daemon, "filesystem", "--folder", str(folder), "--", *_npx("server-filesystem"), "/work")
    assert "write_file" in said
    action, outcome = call(daemon, "filesystem.write_file", path="/work/a.txt", content="two")
    assert outcome["ok"], outcome
    assert (folder / "a.txt").read_text() == "two"
    assert take_back(daemon, action) == "done"
    assert (folder / "a.txt").read_text() == "one"
    _, outcome = call(daemon, "filesystem.read_text_file", path="/etc/passwd")
    assert not outcome["ok"]
    assert outcome["results"][0]["status"] == 422
    listed = json.loads(daemon.goex("mcp", "list", "--json").stdout)["servers"]
    assert [(one["name"], one["folder"], one["changed"]) for one in listed] == [("filesystem", str(folder), False)]


def test_memory(daemon: Daemon, folder: Path) -> None:
    """What it keeps is a file in the folder that it was given, so that it remembers, and forgets by undo."""
    place = ("--folder", str(folder), "--env", "MEMORY_FILE_PATH=/work/memory.jsonl")
    add(daemon, "memory", *place, "--", *_npx("server-memory"))
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes engines"]}
    action, outcome = call(daemon, "memory.create_entities", entities=[entity])
    assert outcome["ok"], outcome
    assert "likes engines" in json.dumps(call(daemon, "memory.read_graph")[1]["results"])
    assert take_back(daemon, action) == "done"
    assert "likes engines" not in json.dumps(call(daemon, "memory.read_graph")[1]["results"])


def test_everything(daemon: Daemon) -> None:
    add(daemon, "everything", "--", *_npx("server-everything"))
    _, outcome = call(daemon, "everything.echo", message="hello")
    assert outcome["ok"], outcome
    assert "hello" in json.dumps(outcome["results"])


def test_a_credential_isnt_in_a_servers_environment(daemon: Daemon, other: _Page, tmp_path: Path) -> None:
    """The server itself shows all its variables: there is a placeholder, and the credential nowhere."""
    add_with_token(daemon, "shows", other, tmp_path, "--", *_npx("server-everything"))
    action, outcome = call(daemon, "shows.get-env")
    said = json.dumps(outcome["results"])
    placeholder = re.search(r"goex-shows-default-[A-Za-z0-9_-]{10,}", said)
    assert outcome["ok"] and "API_TOKEN" in said, outcome
    assert placeholder is not None
    rows = daemon.goex("log", "--rows", "--action", action, "--json").stdout
    assert TOKEN not in said and TOKEN not in rows and TOKEN not in daemon.log.read_text()


def test_control_a_credential_in_a_servers_environment(daemon: Daemon) -> None:
    """What does stand in its variables is shown."""
    add(daemon, "shown", "--env", f"API_TOKEN={TOKEN}", "--", *_npx("server-everything"))
    assert TOKEN in json.dumps(call(daemon, "shown.get-env")[1]["results"])


def test_time(daemon: Daemon) -> None:
    add(daemon, "time", "--", "uvx", "mcp-server-time")
    _, outcome = call(daemon, "time.get_current_time", timezone="Europe/Berlin")
    assert outcome["results"][0]["body"]["timezone"] == "Europe/Berlin"
    assert daemon.goex("mcp", "remove", "nobody").returncode == 2


def test_git(daemon: Daemon, folder: Path) -> None:
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*")
    for command in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "first"),
        ("config", "user.email", "a@example.org"),
    ):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "config", "user.name", "a"], check=True)
    if os.geteuid() == 0:
        for file in (folder, *folder.rglob("*")):
            os.chown(file, 65534, 65534)
    add(daemon, "git", "--folder", str(folder), "--package", "git", "--", "uvx", "mcp-server-git")
    _, outcome = call(daemon, "git.git_log", repo_path="/work")
    assert "first" in json.dumps(outcome["results"]), outcome
    before = (folder / ".git" / "HEAD").read_text()
    action, outcome = call(daemon, "git.git_create_branch", repo_path="/work", branch_name="other")
    assert outcome["ok"], outcome
    assert (folder / ".git" / "refs" / "heads" / "other").exists()
    assert take_back(daemon, action) == "done"
    assert not (folder / ".git" / "refs" / "heads" / "other").exists()
    assert (folder / ".git" / "HEAD").read_text() == before


def _npx(name: str) -> tuple[str, ...]:
    if shutil.which("npm") is None:
        pytest.skip("npm isn't installed")
    return ("npx", "-y", f"@modelcontextprotocol/{name}")


class _Page(Service):
    """A page that says something."""

    def handle(self, hit: Hit) -> tuple[int, Any]:
        return 200, {"said": "the page's own words"}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[_Page]:
    yield from _served(tmp_path / "other")


def _served(folder: Path) -> Iterator[_Page]:
    folder.mkdir()
    service = _Page()
    with serving(service, folder):
        yield service


def add_with_token(daemon: Daemon, name: str, place: Service, folder: Path, *command: str) -> None:
    """`goex mcp add` of a server that has a credential for one place."""
    (folder / "ca.crt").write_text(place.ca_pem)
    options = ("--origin", place.url, "--private", "--ca", str(folder / "ca.crt"), "--token", "API_TOKEN")
    with daemon.terminal("mcp", "add", name, *options, *command) as terminal:
        agree(terminal)
        terminal.expect("Credential for", seconds=300)
        terminal.type(TOKEN)
        terminal.expect("assphrase", seconds=300)
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait(seconds=300) == 0, terminal.text


class _Notion(Service):
    """Pages of one workspace, as far as two tools look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: dict[str, str] = {}
        self.archived: set[str] = set()

    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {"object": "error", "status": 401, "message": "API token is invalid."}
        page = hit.path.rpartition("/")[2]
        if hit.method == "PATCH" and hit.path.startswith("/v1/pages/"):
            gone = hit.body.get("in_trash", hit.body.get("archived"))
            (self.archived.add if gone else self.archived.discard)(page)
        elif hit.method != "GET":
            return 404, {"object": "error", "status": 404}
        return 200, {
            "object": "page",
            "id": page,
            "in_trash": page in self.archived,
            "echo": hit.headers["authorization"],
        }


_PAIR = """\
method = "notion.API-patch-page"

[undo]
calls = [{ method = "API-patch-page", arguments = { page_id = "$request.page_id", in_trash = false } }]
"""


def add_notion(daemon: Daemon, name: str, notion: Service, folder: Path, address: str) -> None:
    """`goex mcp add` of Notion's server, whose credential may go to `notion`, and which sends to `address`."""
    (folder / "ca.crt").write_text(notion.ca_pem)
    place = ("--origin", notion.url, "--private", "--ca", str(folder / "ca.crt"))
    options = (*place, "--token", "NOTION_TOKEN", "--env", f"BASE_URL={address}")
    with daemon.terminal("mcp", "add", name, *options, "--", "npx", "@notionhq/notion-mcp-server") as terminal:
        agree(terminal)
        terminal.expect("Credential for", seconds=300)
        terminal.type(TOKEN)
        terminal.expect("assphrase", seconds=300)
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait(seconds=300) == 0, terminal.text


def test_a_server_reaches_the_origins_of_its_account_alone(daemon: Daemon, other: _Page, tmp_path: Path) -> None:
    """Told to send elsewhere, Notion's server does, and nothing arrives; `test_notion` is the control."""
    _npx("")
    notion = _Notion()
    with serving(notion, tmp_path):
        add_notion(daemon, "strays", notion, tmp_path, other.url)
        action, outcome = call(daemon, "strays.API-patch-page", page_id="0" * 32, in_trash=True)
        assert not outcome["ok"], outcome
        assert other.hits == [] and notion.hits == []
        rows = json.loads(daemon.goex("log", "--rows", "--action", action, "--json").stdout)["rows"]
        refused = [row for row in rows if row["kind"] == "refused"]
        assert refused and other.url.removeprefix("https://") in json.dumps(refused), rows


def test_notion(daemon: Daemon, tmp_path: Path) -> None:
    """It sends to its own service, by the gateway, with the credential that it never has; a declared pair undoes."""
    _npx("")
    page = "0123456789abcdef0123456789abcdef"
    notion = _Notion()
    with serving(notion, tmp_path):
        add_notion(daemon, "notion", notion, tmp_path, notion.url)
        (tmp_path / "pair.toml").write_text(_PAIR)
        with daemon.terminal("undo-pairs", "add", str(tmp_path / "pair.toml")) as terminal:
            terminal.expect("Add this", seconds=300)
            terminal.type("y")
            terminal.expect("assphrase", seconds=300)
            terminal.type(APPROVAL_PASSPHRASE)
            assert terminal.wait(seconds=300) == 0, terminal.text
        action, outcome = call(daemon, "notion.API-patch-page", page_id=page, in_trash=True)
        assert outcome["ok"], json.dumps(outcome)
        assert notion.archived == {page}
        assert TOKEN not in json.dumps(outcome)
        assert take_back(daemon, action) == "done"
        assert notion.archived == set()
        rows = json.loads(daemon.goex("log", "--rows", "--action", action, "--json").stdout)
        assert TOKEN not in json.dumps(rows)
        assert f"{notion.url}/v1/pages/{page}" in json.dumps(rows)
