"""Documents in many files: a folder or an archive that a person names, and nothing outside of it."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import bundles, install
from mapper.importing.files import import_openapi
from mapper.importing.import_report import Report
from mapper.importing.install import Nothing
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Risk
from tests.mapper.importing.openapi_documents import document

TEXT = {"type": "string"}
PET = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "owner": {"$ref": "person.yaml#/Person"}}}
BODY = {"content": {"application/json": {"schema": {"$ref": "../schemas/pet.json"}}}}
FILES: dict[str, Any] = {
    "openapi.json": {
        **document({"/pets": {"$ref": "paths/pets.json"}, "/pets/{id}": {"$ref": "./paths/pet%20one.json#/it"}}),
        "components": {"responses": {"none": {"description": "Nothing"}}},
    },
    "paths/pets.json": {"post": {"operationId": "add", "requestBody": BODY}},
    "paths/pet one.json": {
        "it": {"get": {"operationId": "show", "parameters": [{"$ref": "#/parts/id"}], "responses": {
            "200": {"$ref": "../openapi.json#/components/responses/none"}}}},
        "parts": {"id": {"name": "id", "in": "path", "required": True, "schema": TEXT}},
    },
    "schemas/pet.json": PET,
    "schemas/person.yaml": "Person:\n  type: object\n  properties:\n    name: {type: string}\n"
                           "    pets: {type: array, items: {$ref: pet.json}}\n",
    "README.md": "no document",
    ".git/config.json": "{",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, what in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(what if isinstance(what, str) else json.dumps(what, indent=1))
    return folder


def packed(file: Path, files: dict[str, Any], kinds: dict[str, int] | None = None) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, what in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (kinds or {}).get(name, stat.S_IFREG | 0o644) << 16
            archive.writestr(info, what if isinstance(what, str) else json.dumps(what))
    return file


def put(tmp_path: Path, place: Path) -> tuple[Report, Catalog]:
    report = import_openapi(tmp_path / "catalog.db", place, "pets")
    return report, Catalog.open(tmp_path / "catalog.db", alone=True)


@pytest.mark.parametrize("how", ["folder", "zip"])
def test_files_that_refer_to_each_other_are_one_document(tmp_path: Path, how: str) -> None:
    below = {f"pets-main/{name}": what for name, what in FILES.items()}
    place = written(tmp_path / "pets", FILES) if how == "folder" else packed(tmp_path / "pets.zip", below)
    report, catalog = put(tmp_path, place)
    assert [one.what for one in report.problems] == []
    assert {method.name: method.unsupported for method in catalog.methods()} == {"add": "", "show": ""}
    good: Any = {"name": "Rex", "owner": {"name": "Ada", "pets": [{"name": "Tom"}]}}
    catalog.validate(Call(service="pets", method="add", arguments={"body": good}, account=""))
    good["owner"]["pets"][0]["name"] = 5
    with pytest.raises(InvalidInput, match="name"):
        catalog.validate(Call(service="pets", method="add", arguments={"body": good}, account=""))
    assert catalog.method("pets.show").parameters["required"] == ["id"]


def test_a_problem_says_its_file_and_line(tmp_path: Path) -> None:
    wrong = {
        **FILES,
        "paths/pets.json": {"post": {"operationId": "add", "parameters": [{"in": "nowhere", "name": "x"}]}},
    }
    report, _ = put(tmp_path, written(tmp_path / "pets", wrong))
    (one,) = report.problems
    assert (one.file, one.line > 1, one.where) == ("paths/pets.json", True, "post.parameters.0.in")


SECRET = {"type": "object", "properties": {"stolen": TEXT}}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "reference",
    ["../outside.json", "schemas/../../outside.json", "%2e%2e/outside.json", "{outside}", "file://{outside}",
     "link.json", "linked/outside.json", "https://example.com/outside.json", "..\\outside.json", "missing.json"],
)  # fmt: skip
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, reference: str) -> None:
    outside = tmp_path / "elsewhere" / "outside.json"
    written(tmp_path / "elsewhere", {"outside.json": SECRET, "folder/openapi.json": ""})
    folder = tmp_path / "elsewhere" / "folder"
    body = {"content": {"application/json": {"schema": {"$ref": reference.replace("{outside}", str(outside))}}}}
    made = document({"/a": {"post": {"operationId": "a", "requestBody": body}}, "/b": {"get": {"operationId": "b"}}})
    written(folder, {"openapi.json": made})
    (folder / "link.json").symlink_to(outside)
    (folder / "linked").symlink_to(outside.parent)
    report, catalog = put(tmp_path, folder)
    assert any("outside of this document" in one.what for one in report.problems)
    assert not any("stolen" in json.dumps(dict(method.parameters)) for method in catalog.methods())
    body["content"]["application/json"]["schema"]["$ref"] = "in.json"
    written(folder, {"openapi.json": made, "in.json": SECRET})
    _, catalog = put(tmp_path, folder)  # the same, from within: it is read
    assert "stolen" in json.dumps(dict(catalog.method("pets.a").parameters))


def test_an_archive_leads_nowhere_else(tmp_path: Path) -> None:
    made = document({"/a": {"get": {"operationId": "a", "parameters": [{"$ref": "../up.json"}]}},
                     "/b": {"get": {"operationId": "b", "parameters": [{"$ref": "link.json"}]}},
                     "/c": {"get": {"operationId": "c"}}})  # fmt: skip
    files = {"openapi.json": made, "../up.json": SECRET, "/up.json": SECRET, "link.json": "/etc/hostname"}
    report, catalog = put(tmp_path, packed(tmp_path / "pets.zip", files, {"link.json": stat.S_IFLNK | 0o777}))
    assert [one.what.partition(",")[2].split(";")[0].strip() for one in report.problems] == [
        "which is outside of this document", "which is outside of this document"]  # fmt: skip
    assert [method.name for method in catalog.methods() if not method.unsupported] == ["c"]


@pytest.mark.promise(12)
def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed it is small: what counts is what it unfolds to, in files and in bytes."""

    def why(place: Path) -> str:
        with pytest.raises(Nothing) as found:
            put(tmp_path, place)
        return " ".join(found.value.details)

    bomb = {"openapi.json": FILES["openapi.json"], "big.json": '"' + "x" * 70_000_000 + '"'}
    place = packed(tmp_path / "bomb.zip", bomb)
    assert place.stat().st_size < 1_000_000
    assert "of more than 64,000,000 bytes" in why(place)
    many = {"openapi.json": FILES["openapi.json"], **{f"{number}.json": "{}" for number in range(bundles.MAX_FILES)}}
    assert "more than 3,000 documents" in why(packed(tmp_path / "many.zip", many))
    assert "more than 3,000 documents" in why(written(tmp_path / "many", many))
    assert "isn't an archive" in why(written(tmp_path / "bad", {"bad.zip": "PK"}) / "bad.zip")
    assert "holds no OpenAPI document" in why(written(tmp_path / "none", {"a.json": "{}"}))
    assert "holds no OpenAPI document" in why(packed(tmp_path / "empty.zip", {}))
    two = {"a.yaml": "openapi: 3.0.0", "b.yaml": "swagger: '2.0'"}
    assert "holds 2 documents (a.yaml, b.yaml)" in why(written(tmp_path / "two", two))
    assert "in.yaml: isn't YAML" in why(
        written(tmp_path / "broken", {"openapi.json": document({"/a": {"$ref": "in.yaml"}}), "in.yaml": "a: [\n"})
    )


def test_an_operation_in_another_file_is_read_there(tmp_path: Path) -> None:
    """Not as one that takes nothing and says nothing: what it does, and what it needs, stands in that file."""
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    made = document({"/a/{id}": {"get": {"$ref": "ops/a.json"}}, "/b": {"get": {"$ref": "ops/none.json"}}})
    there = {"operationId": "wipe", "summary": "Deletes the thing.", "parameters": [{"$ref": "id.json"}]}
    report, catalog = put(
        tmp_path, written(tmp_path / "pets", {"openapi.json": made, "ops/a.json": there, "ops/id.json": id})
    )
    methods = {method.origin_id: method for method in catalog.methods()}
    assert (methods["GET /a/{id}"].name, methods["GET /a/{id}"].risk) == ("wipe", Risk.DELETE)
    assert not methods["GET /a/{id}"].unsupported and methods["GET /b"].unsupported
    assert any("outside of this document" in one.what for one in report.problems)


def test_an_operation_that_says_more_beside_a_reference_cant_be_called(tmp_path: Path) -> None:
    """What it does may stand in either place, also where a reference leads to another one."""
    wipes = {"operationId": "wipe", "summary": "Deletes the thing."}
    made = document({
        "/a": {"get": {"$ref": "ops.json#/reads", **wipes}}, "/b": {"get": {"$ref": "ops.json#/named"}},
        "/c": {"get": {"$ref": "ops.json#/alone"}},
    })  # fmt: skip
    ops = {
        "reads": {"operationId": "look", "summary": "Gets the thing."}, "wipes": wipes,
        "named": {"$ref": "#/wipes", "operationId": "look"}, "alone": {"$ref": "#/wipes"},
    }  # fmt: skip
    _, catalog = put(tmp_path, written(tmp_path / "pets", {"openapi.json": made, "ops.json": ops}))
    methods = {method.origin_id: method for method in catalog.methods()}
    assert methods["GET /a"].unsupported and methods["GET /a"].risk is Risk.DELETE and methods["GET /b"].unsupported
    assert not methods["GET /c"].unsupported and methods["GET /c"].risk is Risk.DELETE


def test_a_pipe_in_a_folder_holds_nobody_up(tmp_path: Path) -> None:
    folder = written(tmp_path / "pets", FILES)
    os.mkfifo(folder / "pipe.json")
    report, _ = put(tmp_path, folder)
    assert report.problems == ()
