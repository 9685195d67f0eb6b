"""`goex catalog` without a daemon, with a daemon, with a catalog that can't be read, and with hostile texts in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goex.cli import catalog, connect, vault
from goex.cli.output import Output
from goex.paths import Paths
from mapper.catalog import Catalog
from tests.goex.cli.conftest import GOEX, Goex, Inside, Ran
from tests.goex.cli.fake import Fake
from tests.mapper.importing.documents import FULL, READ, discovery, method, things, write
from tests.support.terminal import Terminal

TRICK = "x\x1b[2J\x9b1m\u202ey\r\x07\u200b[bold]z"


@pytest.fixture
def documents(inside: Inside) -> Path:
    folder = Path(inside.env["HOME"]) / "documents"
    things(folder)
    return folder


def listed(ran: Ran) -> dict[str, list[str]]:
    assert ran.code == 0, ran.err
    return {one["name"]: one["accounts"] for one in json.loads(ran.out)["services"]}


def test_everything_works_without_a_daemon(goex: Goex, paths: Paths) -> None:
    things(Path(goex.env["HOME"]) / "documents")
    for command in (
        "catalog list",
        "catalog show slack",
        "catalog import google --from documents",
        "catalog show things.things.create",
        "catalog search create thing",
        "catalog lint",
        "catalog remove things",
    ):
        ran = goex(*command.split(), "--json")
        assert ran.code == 0, (command, ran.err)
        json.loads(ran.out)
    assert not paths.user_socket.exists()  # and none was started
    assert (paths.catalog.stat().st_mode & 0o777) == 0o600


def test_the_main_version_is_listed_and_all_with_all(inside: Inside, documents: Path) -> None:
    inside("catalog", "import", "google", "--from", "documents")
    brief = listed(inside("catalog", "list", "--json"))
    assert "things" in brief and "things-v1beta" not in brief
    assert "things-v1beta" in listed(inside("catalog", "list", "--all", "--json"))
    assert not any(one["methods"] for one in json.loads(inside("catalog", "list", "--json").out)["services"])


def test_the_fields_of_a_body_are_arguments(inside: Inside) -> None:
    book = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}, "shelf": {}}}
    sent = {"required": True, "content": {"application/json": {"schema": book}}}
    add = {"operationId": "addBook", "requestBody": sent, "responses": {"201": {"description": "made"}}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Books", "version": "1"},
        "servers": [{"url": "https://books.example.com"}],
        "paths": {"/books": {"post": add}},
    }
    file = Path(inside.env["HOME"]) / "books.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert inside("catalog", "import", "openapi", str(file)).code == 0
    ran = inside("catalog", "show", "books.addBook")
    assert re.search(r"body\.title +text +yes", ran.out) and re.search(r"body\.shelf +any", ran.out)
    assert "Call it with: goex exec --call books.addBook body.title=…" in ran.out + ran.err


def test_accounts_come_from_the_daemon(inside: Inside, fake: Fake) -> None:
    assert listed(inside("catalog", "list", "--json"))["slack"] == ["work"]
    assert json.loads(inside("catalog", "show", "slack", "--json").out)["accounts"] == ["work"]


@pytest.mark.parametrize("flag", ["", "--json"])
def test_no_document_can_trick_the_terminal(inside: Inside, documents: Path, flag: str) -> None:
    schema = {"type": "object", "description": TRICK, "properties": {TRICK: {"type": "string", "description": TRICK}}}
    query = {"type": "string", "location": "query", "description": TRICK, "default": TRICK, "enum": [TRICK]}
    trick = method("things.trick", "POST", description=TRICK, request={"$ref": "T"}, parameters={"q": query})
    again = method("things.again", "POST", description="", supportsMediaUpload=True)
    hostile = discovery(title=TRICK, description=TRICK, methods={"a": trick, "b": again}, schemas={"T": schema})
    hostile["auth"]["oauth2"]["scopes"] = {FULL: {"description": TRICK}, READ: {"description": TRICK}}
    write(documents, hostile)
    ran = inside("catalog", "import", "google", "--from", "documents", *flag.split())
    assert ran.code == 0
    said = {"import": ran.out + ran.err}
    for command in (
        "list",
        "list --all",
        "show things",
        "show things.trick",
        "search things.trick",
        "search bold z trick",
        "lint things",
    ):
        shown = inside("catalog", *command.split(), *flag.split())
        said[command] = shown.out + shown.err
        assert shown.code == 0 and ("[bold]z" in said[command] or "lint" in command), command
    for command, text in said.items():
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200b\u202e]", text.replace("\n", "")), command


def test_a_hostile_file_name_and_key_in_a_problem(inside: Inside, documents: Path) -> None:
    (documents / f"{TRICK}.json").write_text("{")
    hostile = discovery("keys", methods={TRICK: method(TRICK), "list": method("keys.list")})
    write(documents, hostile)
    for flag in ((), ("--json",)):
        ran = inside("catalog", "import", "google", "--from", "documents", *flag)
        assert ran.code == 0 and "bold" in ran.out + ran.err
        assert not re.search("[\x00-\x1f\x7f-\x9f\u200b\u202e]", (ran.out + ran.err).replace("\n", ""))


def test_a_catalog_that_cant_be_read(inside: Inside, paths: Paths) -> None:
    paths.catalog.write_text("this is no database at all" * 100)
    paths.catalog.chmod(0o600)
    ran = inside("catalog", "list")
    assert ran.code == 0 and "slack" in ran.out and "can't be read" in ran.err and "rm " in ran.err
    assert json.loads(inside("catalog", "list", "--json").out)["trouble"]
    assert inside("catalog", "show", "slack.users.list").code == 0
    for command in ("show things", "remove things", "lint things"):
        refused = inside("catalog", *command.split())
        assert refused.code == 8 and "import anew" in refused.err, command
    assert paths.catalog.read_text().startswith("this is no database")


def test_a_catalog_in_a_folder_that_isnt_private(inside: Inside, paths: Paths, documents: Path) -> None:
    paths.state_dir.chmod(0o755)
    refused = inside("catalog", "import", "google", "--from", "documents")
    assert refused.code == 8 and "chmod 700" in refused.err and not paths.catalog.exists()


def test_nothing_to_import(inside: Inside) -> None:
    folder = Path(inside.env["HOME"]) / "documents"
    folder.mkdir()
    (folder / "a.json").write_text('{\n"name": }')
    ran = inside("catalog", "import", "google", "--from", "documents", "--json")
    problem = json.loads(ran.out)["problem"]
    assert ran.code == 2 and problem["code"] == "nothing-imported" and problem["details"][0].startswith("a.json:2: ")
    (folder / "a.json").unlink()
    assert "no .json file" in inside("catalog", "import", "google", "--from", "documents").err


def test_the_person_is_told_where_an_imported_services_credential_goes(
    inside: Inside, fake: Fake, documents: Path
) -> None:
    inside("catalog", "import", "google", "--from", "documents")
    ran = inside("vault", "put", "things", stdin=b"token")
    assert "sent to https://things.googleapis.com and nowhere else" in ran.err
    assert "imported" not in inside("vault", "put", "slack", stdin=b"token").err


@pytest.mark.thorough
def test_progress_is_seen_on_a_terminal(goex: Goex, paths: Paths) -> None:
    folder = Path(goex.env["HOME"]) / "documents"
    folder.mkdir()
    fields = {f"p{number}": {"type": "string"} for number in range(40)}
    schemas = {f"S{number}": {"type": "object", "properties": fields} for number in range(400)}
    for number in range(8):
        write(folder, discovery(f"many{number}", schemas=schemas))
    command = [*GOEX, "catalog", "import", "google", "--from", "documents"]
    with Terminal(command, env={**goex.env, "TERM": "xterm"}, cwd=Path(goex.env["HOME"])) as terminal:
        terminal.expect("of 8: many")
        assert terminal.wait() == 0


@pytest.mark.parametrize(("terminal", "seconds"), [(True, 0.5), (False, 10.0)])
def test_progress_is_seen_now_and_then(monkeypatch: pytest.MonkeyPatch, terminal: bool, seconds: float) -> None:
    moments, said = iter(range(9)), []
    monkeypatch.setattr(catalog, "time", SimpleNamespace(monotonic=lambda: next(moments) * seconds / 2))
    monkeypatch.setattr(catalog, "sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: terminal)))
    monkeypatch.setattr(Output, "progress", lambda _, text: said.append(text))
    show = catalog._progress(Output(False))
    for number in range(1, 5):
        show(number, 4, "many")
    assert said == ["2 of 4: many", "4 of 4: many"]


def test_an_import_tells_its_progress(inside: Inside, documents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_EVERY_FILE", 0.0)
    assert re.search(
        r"^\d of 3: things", inside("catalog", "import", "google", "--from", "documents").err, re.MULTILINE
    )


def test_a_title_says_nothing_where_a_credential_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    title = "GoEx has checked https://acme.example. It"
    found = SimpleNamespace(source="imported", title=title, base_url="https://evil.example")
    monkeypatch.setattr(Catalog, "open", lambda _: SimpleNamespace(services={"acme": found}))
    monkeypatch.setattr(connect, "paths", lambda: SimpleNamespace(catalog=None))
    said: list[str] = []
    out: Any = SimpleNamespace(progress=said.append)
    assert vault.imported_base(out, "acme") == "https://evil.example"
    assert said == ["acme was imported: its document, and not GoEx, names https://evil.example."]
