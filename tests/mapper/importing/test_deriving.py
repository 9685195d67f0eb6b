"""Derived ways back: right where they are derived, on a labelled set and on a sample of Google's documents."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from mapper.importing.google import package_folder
from mapper.store.catalog_reader import Store
from policies.errors import InvalidInput
from policies.reversions import undo_from_json, undo_to_json
from policies.services import Method, Risk, UndoTemplate
from tests import google
from tests.mapper.importing.undo_ops import ID, TEXT, WHOLE, op, thing, written
from tests.mapper.importing.undo_specs import SPECS, document

SAMPLE = 300  # of Google's derived pairs


def imported(folder: Path, name: str) -> Catalog:
    (folder / f"{name}.json").write_text(json.dumps(document(name)))
    import_openapi(folder / "catalog.db", folder / f"{name}.json", name, index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


def changes(catalog: Catalog) -> Iterator[Method]:
    return (method for method in catalog.methods() if method.risk is not Risk.READ)


def called(catalog: Catalog, method: Method) -> str:
    """The operation that takes a method back; "" where none is derived."""
    if method.undo is None:
        return ""
    return catalog.method(f"{method.service}.{method.undo.calls[-1].method}").origin_id


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_labelled_set(name: str, tmp_path: Path) -> None:
    catalog = imported(tmp_path, name)
    labels = {key: label for key, (label, _) in SPECS[name][1].items()}
    found = {method.origin_id: called(catalog, method) for method in changes(catalog)}
    wrong = {key: (labels[key], got) for key, got in found.items() if got and got != labels[key]}
    missed = {key: label for key, label in labels.items() if label and not found.get(key)}
    assert not wrong  # every one that is derived is right
    assert not missed
    assert all(method.undo is None or method.undo.source == "derived" for method in changes(catalog))


def test_the_labelled_set_holds_both_kinds() -> None:
    labels = [label for _, ops in SPECS.values() for key, (label, _) in ops.items() if not key.startswith("GET ")]
    assert (len(labels), sum(map(bool, labels))) == (323, 129)


def test_what_is_derived_is_read_back_as_it_was(tmp_path: Path) -> None:
    catalog = imported(tmp_path, "notes")
    for method in changes(catalog):
        if method.undo is not None:
            assert undo_from_json(undo_to_json(method.undo), "derived") == method.undo


def test_only_what_was_made_is_deleted_again(tmp_path: Path) -> None:
    catalog = imported(tmp_path, "shop")
    undo = next(m.undo for m in catalog.methods() if m.origin_id == "POST /product")
    assert undo is not None
    assert undo.unless == "body.id"


def test_an_undo_has_a_key_of_its_own(tmp_path: Path) -> None:
    """With the action's, a service would answer with what it answered then, and take nothing back."""
    catalog = imported(tmp_path, "more")
    keyed = [method for method in catalog.methods() if method.idempotency]
    assert len(keyed) == 3
    for method in keyed:
        assert method.undo is not None and method.idempotency not in method.parameters["properties"]
        assert not any(
            "idempotency" in str(each.arguments).lower() for each in (*method.undo.calls, *method.undo.reads)
        )
    assert not any(
        "dempotency" in name for entry in Store(tmp_path / "catalog.db").entries() for name in entry.parameters
    )


def test_a_new_import_takes_the_old_ways_back_with_it(tmp_path: Path) -> None:
    catalog = imported(tmp_path, "notes")
    made = document("notes")
    del made["paths"]["/notes/{id}"]["get"]
    (tmp_path / "notes.json").write_text(json.dumps(made))
    assert any(method.undo for method in catalog.methods())
    import_openapi(tmp_path / "catalog.db", tmp_path / "notes.json", "notes", index=False)
    assert not any(method.undo for method in catalog.methods())


# ---- Google's documents: what is derived is held against the documents themselves, by rules of this test's own


@pytest.fixture(scope="module")
def documents() -> dict[tuple[str, str], dict[str, Any]]:
    pytest.importorskip("googleapiclient")
    found = {}
    for file in sorted(package_folder().glob("*.json")):
        raw = json.loads(file.read_text())
        if "name" in raw:
            found[raw["name"], raw["version"]] = raw
    return found


def test_a_sample_of_googles(documents: dict[tuple[str, str], dict[str, Any]]) -> None:
    rows = _derived(google.imported()[0])
    sample = random.Random(5).sample(sorted(rows), min(SAMPLE, len(rows)))
    doubtful = [row for row in sample if not _is_right(documents[row[0], row[1]], row[2], json.loads(row[3]))]
    assert len(rows) > 500
    assert not doubtful


def _derived(path: Path) -> list[tuple[str, str, str, str]]:
    store = Store(path)
    with store._reading() as db:
        assert db is not None
        rows = db.execute(
            "SELECT d.provider_name, d.version, w.origin_id, w.undo FROM way_back w"
            " JOIN document d ON d.id = w.document_id"
        ).fetchall()
    store.close()
    return rows


def _is_right(raw: dict[str, Any], id: str, undo: dict[str, Any]) -> bool:
    methods = dict(_walk(raw))
    action, back = methods[id], methods[undo["calls"][-1]["method"]]
    looks = [methods[undo[role]["method"]] for role in ("pre", "guard", "verify") if role in undo]
    path, there = action["path"].strip("/"), back["path"].strip("/")
    fine = bool(looks) and all(look["httpMethod"] == "GET" for look in looks)
    # One permission is enough for all of it, where the document has any.
    fine = fine and all(
        bool(set(one.get("scopes", ())) & set(action.get("scopes", ()))) or "scopes" not in {**one, **action}
        for one in (back, *looks)
    )
    match action["httpMethod"], back["httpMethod"]:
        case "PATCH", "PATCH":
            # It changes the thing that is read, at once, and is undone by itself.
            same = {look["path"].strip("/") for look in looks} == {path} and back is action
            return fine and same and all(look["response"] == action.get("response", look["response"]) for look in looks)
        case "PUT", "PUT":
            return fine and back is action and all(_holds(raw, action["response"], look["response"]) for look in looks)
        case "POST", "DELETE":
            deeper = [m["path"].strip("/") for m in methods.values() if m["httpMethod"] in ("POST", "PUT")]
            children = [p for p in deeper if _plain(p).startswith(_plain(there) + "/")]
            every = [_plain(method["path"]) for method in methods.values()]
            nested = [p for p in children if any(one.startswith(_plain(p) + "/{}") for one in every)]
            # What others may have put into it is looked at first.
            looked = {_plain(methods[guard["method"]]["path"]) for guard in undo.get("guards", ())}
            nested = [p for p in nested if "/".join(_plain(p).split("/")[: there.count("/") + 2]) not in looked]
            below = there.rpartition("/")[0] == path or _elsewhere(path, there)
            shown = looks[0]["response"] == action["response"] or _lists(raw, looks[0], undo["guard"], action)
            return fine and below and shown and not nested
        case "DELETE", "POST":
            body = raw["schemas"][back["request"]["$ref"]]["properties"]
            shown = raw["schemas"][looks[0]["response"]["$ref"]]["properties"]
            again = undo["calls"][-1]["arguments"]["body"]
            return fine and path.rpartition("/")[0] == there and set(again) <= set(body) & set(shown)
        case "POST", "POST":
            stem, verb = path.rpartition(":" if ":" in path else "/")[::2]
            return fine and there.startswith(stem) and verb in there.rpartition(stem)[2] + path and there != path
    return False


def _holds(raw: dict[str, Any], answer: dict[str, Any], thing: dict[str, Any]) -> bool:
    """Whether an answer is the thing itself, or holds it once and nothing else that is like it."""
    within = [each for each in raw["schemas"][answer["$ref"]].get("properties", {}).values() if each == thing]
    return answer == thing or len(within) == 1


def _lists(raw: dict[str, Any], look: dict[str, Any], guard: dict[str, Any], action: dict[str, Any]) -> bool:
    """Whether a read answers with a list of what an action answers with, in the collection itself."""
    (expect,) = guard["expect"]
    items = raw["schemas"][look["response"]["$ref"]]["properties"][expect["path"][2:]].get("items")
    return items == action["response"] and expect.get("contains") == ["$response"] and look["path"] == action["path"]


def _elsewhere(path: str, there: str) -> bool:
    """Whether `there` is where a thing of the collection `path` stands, by itself: `achievements/{id}` of
    `applications/{id}/achievements`, each of its words one of the collection's, in their order."""
    words, own = ([part for part in one.split("/") if "{" not in part] for one in (path, there.rpartition("/")[0]))
    rest = iter(words)
    return words[-1:] == own[-1:] and all(word in rest for word in own)


def _plain(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path.strip("/"))


def _walk(holder: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for method in holder.get("methods", {}).values():
        yield method["id"], method
    for below in holder.get("resources", {}).values():
        yield from _walk(below)


def test_undo_of_a_bad_form_is_refused() -> None:
    bads: tuple[Any, ...] = ({}, {"calls": []}, {"calls": [{"method": "x"}]}, {"calls": "x"}, {"calls": [1]})
    for bad in bads:
        with pytest.raises(InvalidInput):
            undo_from_json(bad, "derived")
    made = undo_from_json({"calls": [{"method": "x", "arguments": {}}]}, "derived")
    assert isinstance(made, UndoTemplate)


@pytest.mark.parametrize(("field", "says"), [("part", True), ("part_id", True), ("partIds", True), ("party", False)])
def test_it_says_that_what_refers_to_a_thing_may_go_with_it(tmp_path: Path, field: str, says: bool) -> None:
    """Where things stand side by side, and another one names it in its body."""
    schemas = {"Part": thing(id=ID, name=TEXT), "Stock": thing(id=ID, amount=TEXT, **{field: TEXT})}
    ops = {}
    for kind, place in (("Part", "/parts"), ("Stock", "/stock")):
        ops[f"POST {place}"] = op(body=kind, answer=kind, codes=[201])
        ops[f"GET {place}/{{id}}"] = op(answer=kind, codes=[200, 404])
        ops[f"DELETE {place}/{{id}}"] = op(codes=[204])
    (tmp_path / "shop.json").write_text(json.dumps(written("shop", schemas, ops)))
    import_openapi(tmp_path / "catalog.db", tmp_path / "shop.json", "shop", index=False)
    notes = {
        one.origin_id: one.undo.note for one in Catalog.open(tmp_path / "catalog.db", alone=True).methods() if one.undo
    }
    assert ("may go with it" in notes["POST /parts"]) is says
    assert not notes["POST /stock"]  # the control: nothing refers to it


def undone(
    folder: Path, schemas: dict[str, Any], ops: dict[str, tuple[str, dict[str, Any]]]
) -> dict[str, UndoTemplate]:
    """What is derived of a document with these operations, by their ids."""
    (folder / "shop.json").write_text(json.dumps(written("shop", schemas, ops)))
    import_openapi(folder / "catalog.db", folder / "shop.json", "shop", index=False)
    methods = Catalog.open(folder / "catalog.db", alone=True).methods()
    return {method.origin_id: method.undo for method in methods if method.undo is not None}


def test_a_list_by_other_names_is_none_of_what_was_made(tmp_path: Path) -> None:
    """`/rates/{from}/{to}` holds what a POST made there, and isn't what is in the rate that another one made."""
    schemas = {"Rate": thing(id=ID, value=TEXT), "Rates": thing(rates={"type": "array", "items": TEXT})}
    ops = {
        "POST /rates": op(body="Rate", answer="Rate", codes=[201]),
        "GET /rates/{id}": op(answer="Rate", codes=[200, 404]),
        "PATCH /rates/{id}": op(body="Rate", answer="Rate"),
        "DELETE /rates/{id}": op(codes=[204]),
        "POST /rates/{from}/{to}": op(body="Rate", answer="Rate", codes=[201]),
        "GET /rates/{from}/{to}": op(answer="Rates"),
    }
    assert undone(tmp_path, schemas, ops).keys() == {"PATCH /rates/{id}"}


OWNED = thing(id=WHOLE, url=TEXT, name=TEXT)


@pytest.mark.parametrize(
    ("owner", "back"),
    [
        ({"oneOf": [WHOLE, thing(["name"], name=TEXT)]}, False),  # refused, with an id and a url in it
        ({"anyOf": [WHOLE, TEXT]}, False),
        ({"oneOf": [WHOLE, OWNED]}, True),
        ({"oneOf": [WHOLE, {"type": "object"}]}, True),
        ({"oneOf": [WHOLE, {"anyOf": [TEXT, {"type": "integer"}]}]}, False),
        ({}, True),
    ],
)
def test_an_object_is_only_written_as_it_is_read_where_one_alternative_takes_it(
    tmp_path: Path, owner: dict[str, Any], back: bool
) -> None:
    schemas = {"Thing": thing(id=ID, name=TEXT, owner=OWNED), "Input": thing(name=TEXT, owner=owner)}
    ops = {
        "GET /things/{id}": op(answer="Thing", codes=[200, 404]),
        "PUT /things/{id}": op(body="Input", answer="Thing", codes=[200, 404]),
        "PATCH /things/{id}": op(body="Input", answer="Thing", codes=[200, 404]),
    }
    found = undone(tmp_path, schemas, ops)
    assert ("PUT /things/{id}" in found) is back
    assert ("owner" in found["PATCH /things/{id}"].fields) is back


@pytest.mark.parametrize(
    ("items", "back"),
    [(TEXT, False), (thing(["name"], name=TEXT), False), (OWNED, True), ({"type": "object"}, True), ({}, True)],
)
def test_a_list_is_only_written_as_it_is_read_where_one_alternative_takes_it(
    tmp_path: Path, items: dict[str, Any], back: bool
) -> None:
    owners = {"oneOf": [TEXT, {"type": "array", "items": items}]}
    schemas = {
        "Thing": thing(id=ID, name=TEXT, owners={"type": "array", "items": OWNED}),
        "Input": thing(name=TEXT, owners=owners),
    }
    ops = {
        "GET /things/{id}": op(answer="Thing", codes=[200, 404]),
        "PATCH /things/{id}": op(body="Input", answer="Thing", codes=[200, 404]),
    }
    assert ("owners" in undone(tmp_path, schemas, ops)["PATCH /things/{id}"].fields) is back
