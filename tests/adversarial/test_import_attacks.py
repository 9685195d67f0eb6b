"""Documents that mean harm, imported by the command into a real daemon's catalog; each with its control."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from mapper import embedded
from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.importing import openapi, pointers, safe_methods, security
from mapper.importing.import_report import BadPart
from mapper.named_services import Named
from mapper.store import records
from mapper.store.catalog_writer import Writer
from policies.services import Risk
from tests.mapper.importing.openapi_documents import document
from tests.mapper.test_store import document as stored
from tests.mapper.test_store import operation
from tests.support.daemon import Daemon

REVOKE = {"/auth.revoke": {"get": {"operationId": "auth_revoke", "description": "Revokes a token.", "responses": {}}}}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        yield made


def put(daemon: Daemon, folder: Path, name: str, made: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(made))
    done: subprocess.CompletedProcess[str] = daemon.goex("catalog", "import", "openapi", str(file), "--name", name)
    return done


def risk(daemon: Daemon, method: str) -> str:
    service, _, name = method.partition(".")
    (found,) = daemon.person("Services", pb.ServicesRequest(service=service, method=name)).services
    return str(found.methods[0].risk)


def test_a_get_that_deletes_is_asked_for(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert put(daemon, tmp_path, "revoking", document(REVOKE)).returncode == 0
    assert risk(daemon, "revoking.auth_revoke") == "admin"
    # The control: without what its words say, it is a read.
    monkeypatch.setattr(safe_methods, "change_in", lambda *_: Risk.READ)
    made, _ = openapi.read_document(document(REVOKE), "svc", "svc.json", "")
    assert made is not None and made.methods[0].risk is Risk.READ


def test_a_flag_that_changes_is_asked_for(daemon: Daemon, tmp_path: Path) -> None:
    muted = {"name": "muted", "in": "query", "schema": {"$ref": "#/components/schemas/M"}}
    uuid = {"name": "uuid", "in": "path", "required": True, "schema": {"type": "string"}}
    schemas = {"M": {"type": "string", "enum": ["muted", "unmuted"]}}
    for parameters, name, expected in (([uuid, muted], "flags", "write"), ([uuid], "noflags", "read")):
        paths = {"/tag/{uuid}": {"get": {"operationId": "getTag", "summary": "Get a tag", "parameters": parameters}}}
        assert put(daemon, tmp_path, name, document(paths, schemas)).returncode == 0
        assert risk(daemon, f"{name}.getTag") == expected  # the control: the same without the flag


def test_a_signing_secret_is_not_taken(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = {"type": "apiKey", "name": "Authorization", "in": "header", "x-amazon-apigateway-authtype": "awsSigv4"}
    paths = {"/a": {"get": {"operationId": "list", "security": [{"hmac": []}], "responses": {}}}}
    made = document(paths, components={"securitySchemes": {"hmac": scheme}})
    taken = put(daemon, tmp_path, "signing", made)
    assert taken.returncode == 0 and "vault put" not in taken.stderr and "takes no credential" in taken.stderr
    done = daemon.goex("vault", "put", "signing", "--base-url", "https://x.example.com", stdin="AKIA-secret\n")
    assert done.returncode != 0 and "each request signed" in done.stderr
    listed = daemon.person("VaultList", pb.VaultListRequest()).accounts
    assert not [one for one in listed if one.service == "signing"]
    # The control: taken for a key, it would be sent as the header's whole value.
    monkeypatch.setattr(security, "signed", lambda _: "")
    read, _ = openapi.read_document(made, "svc", "svc.json", "")
    assert read is not None and (read.placement.header, read.placement.format) == ("Authorization", "{secret}")


def test_a_path_keeps_nobody_busy(daemon: Daemon, tmp_path: Path) -> None:
    paths = {f"/{'a' * 490}#x": {"get": {}}, "/good": {"get": {"operationId": "good"}}}
    assert put(daemon, tmp_path, "endless", document(paths)).returncode == 0
    assert risk(daemon, "endless.good") == "read"
    # The control: a pattern whose repetitions are within each other, in a process that is killed.
    nested = f"import re; re.fullmatch(r'(?:{openapi._LETTER}+|x)+', 'a' * 60 + '#x')".replace("&'(", "&(")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", nested], timeout=5, check=True)
    assert re.fullmatch(openapi._MIXED, "a" * 60 + "#x") is None


def test_work_that_multiplies_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"get": {"parameters": [{"$ref": f"#/p/{n}"} for n in range(300)]}}
    parameters = [{"name": f"q{n}", "in": "query", "schema": {"type": "string"}} for n in range(300)]

    def made(paths: int) -> dict[str, Any]:
        return document({f"/a{n}": {"$ref": "#/x"} for n in range(paths)}, x=shared, p=parameters)

    monkeypatch.setattr(pointers, "MAX_STEPS", 20_000)
    with pytest.raises(BadPart, match="more work than a document may"):
        openapi.read_document(made(200), "svc", "svc.json", "")
    # The control: nothing counts, and so small a part of it is read to its end that the whole is seen to be.
    monkeypatch.setattr(pointers.Pointers, "spend", lambda *_: None)
    read, _ = openapi.read_document(made(40), "svc", "svc.json", "")
    assert read is not None and sum(len(method.properties) for method in read.methods) == 40 * 300


def test_a_poisoned_row_stops_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = operation("things.send", properties={"it": {"properties": {}, "required": ["x"]}}, locations={"it": "query"})
    for name, expected in (("held", ["list"]), ("control", ["list", "things.send"])):
        path = tmp_path / f"{name}.db"
        with Writer(path) as writer:
            writer.put(stored("kennel", methods=(operation("pets.add", description="Add a pet to the kennel."),)))
            writer.put(stored("bad", methods=(operation("list"), bad)))
            writer.commit()
        assert sorted(Catalog.open(path).service("bad").methods) == expected
        # The control: written unread. Even then it is that service's trouble alone.
        monkeypatch.setattr(records, "wrong_with", lambda *_: "")
    monkeypatch.undo()
    proposed = EmbeddedProposer(Catalog.open(tmp_path / "control.db")).propose("add a pet to the kennel")
    assert proposed.readings[0].method.id == "kennel.pets.add"


def test_a_named_service_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    proposer = EmbeddedProposer(Catalog.bundled())
    assert proposer.propose("wipe the openai file file-abc").readings == ()
    # The control: names aren't looked at, and a file of Drive's is the first thing that is offered.
    monkeypatch.setattr(embedded.EmbeddedProposer, "named", lambda *_: Named())
    assert proposer.propose("wipe the openai file file-abc").readings[0].method.service == "google_drive"
