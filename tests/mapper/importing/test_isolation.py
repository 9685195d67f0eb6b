"""One document never makes another service unusable: what it costs is bounded, and what can't be read is its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.importing import install, openapi, pointers, reader_process
from mapper.importing.document_files import Source
from mapper.importing.files import import_openapi
from mapper.importing.import_report import BadPart
from mapper.importing.install import Nothing, remove
from mapper.importing.pointers import TooMuch
from mapper.importing.reader_process import Apart
from mapper.lint import lint
from mapper.method_search import search
from mapper.store.blobs import pack
from mapper.store.catalog_writer import Writer
from mapper.store.database import ServiceUnreadable
from policies.errors import InvalidInput
from tests.mapper.importing.openapi_documents import document, sending
from tests.mapper.test_store import document as stored
from tests.mapper.test_store import operation

TEXT = {"type": "string"}
NEEDS_B = {"type": "object", "required": ["b"]}
PART = {"type": "object", "properties": {"a": TEXT}}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


# Each names in `required` what only another part has, or what no part has.
POISON: dict[str, tuple[Any, dict[str, Any]]] = {
    "a name that only a member could have": ({"allOf": [PART, NEEDS_B]}, {}),
    "beside allOf": ({"allOf": [PART], "required": ["date"]}, {}),
    "by references": ({"allOf": [ref("A"), ref("B")]}, {"A": PART, "B": {"type": "object", "required": ["z"]}}),
    "in a branch": ({"properties": {"a": TEXT}, "anyOf": [{"type": "object", "required": ["q"]}, PART]}, {}),
    "in oneOf within allOf": ({"allOf": [PART, {"oneOf": [NEEDS_B, {**NEEDS_B, "required": ["a"]}]}]}, {}),
    "nested": ({"properties": {"n": {"allOf": [PART, NEEDS_B]}}}, {}),
    "in a list": ({"type": "array", "items": {"allOf": [PART, NEEDS_B]}}, {}),
    "read only in one, needed in another": (
        {"allOf": [{"properties": {"id": {**TEXT, "readOnly": True}}}, {"type": "object", "required": ["id"]}]}, {}
    ),
    "twice": ({"allOf": [{"allOf": [PART, NEEDS_B]}, {"allOf": [{**NEEDS_B, "required": ["c"]}, PART]}]}, {}),
    "nullable": ({"allOf": [ref("A"), {"type": "object", "required": ["b"], "nullable": True}]}, {"A": PART}),
    "without a type": ({"type": "object", "required": ["b"], "allOf": [{"properties": {}}]}, {}),
}  # fmt: skip


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def put(folder: Path, made: Any, name: str = "svc") -> Any:
    file = folder / f"{name}.json"
    file.write_text(json.dumps(made))
    return import_openapi(folder / "catalog.db", file, name)


@pytest.mark.parametrize(("schema", "schemas"), POISON.values(), ids=POISON)
def test_a_legal_document_is_read_back(tmp_path: Path, no_index: None, schema: Any, schemas: dict[str, Any]) -> None:
    report = put(tmp_path, sending(schema, schemas))
    assert [problem for problem in report.problems if "read back" in problem.what] == []
    catalog = Catalog.open(tmp_path / "catalog.db")
    assert catalog.method("svc.send").parameters
    assert [entry.name for entry in catalog.entries()] == ["send"]


def test_what_others_need_is_needed(tmp_path: Path, no_index: None) -> None:
    put(tmp_path, sending({"allOf": [PART, NEEDS_B]}))
    body = Catalog.open(tmp_path / "catalog.db").method("svc.send").parameters["properties"]["body"]
    assert body["required"] == ["b"] and set(body["properties"]) == {"a", "b"}


def test_what_couldnt_be_read_back_is_left_out_when_it_is_written(tmp_path: Path) -> None:
    """Whatever an importer hands over: the writer asks the reader's own question."""
    bad = {
        "required": {"properties": {"it": {"properties": {}, "required": ["x"]}}, "locations": {"it": "query"}},
        "unknown": {"properties": {"it": {"$dynamicRef": "#x"}}, "locations": {"it": "query"}},
        "lost": {"properties": {"it": {"$ref": "#/$defs/Lost"}}, "locations": {"it": "query"}},
        "place": {"properties": {"it": TEXT}, "locations": {"it": "anywhere"}},
        "path": {"path": "/v1/../admin"},
        "deep": {"properties": {"it": {"$ref": "#/$defs/Bad"}}, "locations": {"it": "query"}},
        "pattern": {"properties": {"it": {"pattern": "("}}, "locations": {"it": "query"}},
        "form": {"properties": {"it": 5}, "locations": {"it": "query"}},
    }
    methods = (operation("good"), *(operation(name, **more) for name, more in bad.items()))
    schemas = {"Bad": {"type": "object", "properties": {"b": {"type": "cat"}}}}
    with Writer(tmp_path / "catalog.db") as writer:
        left_out = writer.put(stored("api", methods=methods, schemas=schemas))
        writer.commit()
    assert {name for name, _ in left_out} == bad.keys() and all(why for _, why in left_out)
    catalog = Catalog.open(tmp_path / "catalog.db")
    assert list(catalog.service("api").methods) == ["good"] and catalog.method("api.good")


@pytest.mark.parametrize("text", ["half \ud800", "x" * 40_000_000])
def test_what_cant_be_written_is_that_documents_problem(tmp_path: Path, text: str) -> None:
    with Writer(tmp_path / "catalog.db") as writer:
        with pytest.raises(InvalidInput):
            writer.put(stored("bad", methods=(operation("one", description=text),)))
        writer.put(stored("good", methods=(operation("one"),)))
        writer.commit()
    assert Catalog.open(tmp_path / "catalog.db").method("good.one")


EDITS = {
    "a schema": "UPDATE method SET detail = (SELECT id FROM blob WHERE id = 7) WHERE name = 'send'",
    "bytes": "UPDATE method SET description = cast(x'ff' AS text) WHERE name = 'send'",
    "a scope": "UPDATE method SET scopes = '777' WHERE name = 'send'",
    "its service": "UPDATE service SET placement = '[]' WHERE name = 'svc'",
    "its title": "UPDATE service SET title = cast(x'ff' AS text) WHERE name = 'svc'",
    "its scopes": "UPDATE scope SET name = x'00' WHERE document_id ="
    " (SELECT document_id FROM method WHERE name = 'send')",
}


@pytest.fixture(scope="module")
def two_services(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of a kennel's service and of `svc`, to be copied."""
    folder = tmp_path_factory.mktemp("two", numbered=True)
    pets = {"/pets": {"post": {"operationId": "addPet", "summary": "Add a pet to the kennel"}}}
    put(folder, document(pets, info={"title": "Kennel", "version": "1"}), "kennel")
    put(folder, sending({"properties": {"a": TEXT}}))
    return folder / "catalog.db"


@pytest.mark.sampled(5)
@pytest.mark.promise(12)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_row_that_cant_be_read_disables_its_service_alone(two_services: Path, tmp_path: Path, edit: str) -> None:
    """As an older import left it: another service is mapped to, listed and called; this one says its name."""
    shutil.copy(two_services, tmp_path / "catalog.db")
    number, data = pack(
        {"locations": {}, "properties": {"body": {"properties": {}, "required": ["x"]}}, "required": []}
    )
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        db.execute("INSERT INTO blob VALUES (?, ?)", (number, data))
        db.execute(edit.replace("id = 7", f"id = {number}"))
        db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    catalog = Catalog.open(tmp_path / "catalog.db")
    with pytest.raises(ServiceUnreadable, match="service svc can't be read") as caught:
        catalog.check_callable("svc.send")
    assert "goex catalog remove svc" in caught.value.next_step and "rm " not in caught.value.next_step
    assert catalog.method("kennel.addPet") and catalog.trouble is None
    proposed = EmbeddedProposer(catalog).propose("add a pet to the kennel")
    assert proposed.readings[0].method.id == "kennel.addPet"
    assert "kennel.addPet" in [one.id for one in search(catalog, "add a pet to the kennel")]
    assert [one.name for one in lint(catalog) if one.kind == "unreadable"] in (["svc"], [])
    assert remove(tmp_path / "catalog.db", "svc", index=edit == EDITS["a schema"]) == ("svc",)  # it takes a moment
    assert "svc" not in Catalog.open(tmp_path / "catalog.db").services


def test_a_path_takes_time_by_its_length(tmp_path: Path, no_index: None) -> None:
    """It took time by the power of two: thirty letters for a second, three hundred for ever."""
    paths = {f"/{'a' * 480}{n};x": {"get": {}} for n in range(20)} | {"/good": {"get": {"operationId": "good"}}}
    report = put(tmp_path, document(paths))
    assert report.imported[0].methods == 21 and len(report.problems) == 20
    methods = Catalog.open(tmp_path / "catalog.db").service("svc").methods.values()
    assert [method.name for method in methods if not method.unsupported] == ["good"]


def test_work_that_multiplies_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths that share three hundred parameters are refused by count, not by the clock."""
    monkeypatch.setattr(pointers, "MAX_STEPS", 20_000)
    shared = {"get": {"parameters": [{"$ref": f"#/p/{n}"} for n in range(300)]}}
    made = document({f"/a{n}": {"$ref": "#/x"} for n in range(200)}, x=shared)
    made["p"] = [{"name": f"q{n}", "in": "query", "schema": TEXT} for n in range(300)]
    with pytest.raises(BadPart, match="more work than a document may"):
        openapi.read_document(made, "svc", "svc.json", "")
    assert issubclass(TooMuch, Exception) and not issubclass(TooMuch, BadPart)


@pytest.mark.promise(12)
@pytest.mark.usefixtures("real_readers", "no_index")
def test_a_document_that_doesnt_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader's process is stopped, so that it can't answer: it is killed, and the import says so."""
    monkeypatch.setattr(reader_process, "SECONDS", 0.0001)
    with pytest.raises(Nothing) as caught:
        put(tmp_path, sending(TEXT))
    assert "seconds to read" in caught.value.details[0]
    monkeypatch.undo()
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    assert put(tmp_path, sending(TEXT)).imported


@pytest.mark.usefixtures("real_readers")
def test_a_document_that_takes_the_memory_is_ended() -> None:
    text = '{"a": [' + ",".join(['{"b": [1]}'] * 1_500_000) + "]}"
    with Apart(memory=400 << 20) as reader:
        with pytest.raises(BadPart, match="memory"):
            reader.read("openapi", Source("big.json", text, ""), "svc")
        title, made, _ = reader.read("openapi", Source("small.json", json.dumps(sending(TEXT)), ""), "svc")
    assert title == "Things" and made.methods[0].name == "send"


@pytest.mark.usefixtures("real_readers")
def test_whatever_a_reader_raises_ends_with_its_document() -> None:
    with Apart() as reader:
        with pytest.raises(BadPart, match="can't be read"):
            reader.read("openapi", None, "svc")  # type: ignore[arg-type] # what a fault would be
        assert reader.read("openapi", Source("small.json", json.dumps(sending(TEXT)), ""), "svc")[0] == "Things"
