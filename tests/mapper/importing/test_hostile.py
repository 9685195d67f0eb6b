"""Documents that are meant to harm: each ends in a report or in a classed error, soon, and nothing of it is run."""

from __future__ import annotations

import copy
import json
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.document_files import Source
from mapper.importing.files import import_functions, import_openapi
from mapper.importing.install import Nothing
from mapper.importing.readers import READERS
from mapper.lint import lint
from policies.actions import Call
from policies.errors import GoexError
from tests.mapper.importing.openapi_documents import PETS, TOOLS, document, sending

LONG = 10_000  # links of a chain
SECONDS = 120.0  # what goes wrong takes hours; and the machine does other things, too


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search index is made over all services, ours too; nothing here searches, so it isn't made."""
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def chain(link: Any, last: Any) -> dict[str, Any]:
    return {**{f"A{n}": link(n) for n in range(LONG)}, f"A{LONG}": last}


TEXT = {"type": "string"}
RINGS = {
    "itself": {"A0": ref("A0")},
    "each other": {"A0": ref("B"), "B": ref("A0")},
    "allOf": {"A0": {"allOf": [ref("A0"), {"properties": {"x": TEXT}}]}},
    "allOf of each other": {"A0": {"allOf": [ref("B")], "title": "A"}, "B": {"allOf": [ref("A0"), {"type": "object"}]}},
    "anyOf": {"A0": {"anyOf": [ref("A0"), ref("B")]}, "B": {"oneOf": [ref("A0")]}},
    "properties": {"A0": {"properties": {"c": ref("A0"), "d": {"items": ref("A0")}}}},
    "additionalProperties": {"A0": {"type": "object", "additionalProperties": ref("A0")}},
    "a chain": chain(lambda n: ref(f"A{n + 1}"), TEXT),
    "a chain of properties": chain(lambda n: {"properties": {"c": ref(f"A{n + 1}")}}, TEXT),
    "a chain of allOf": chain(lambda n: {"allOf": [ref(f"A{n + 1}"), {"properties": {f"p{n}": {}}}]}, {}),
    "a chain of anyOf": chain(lambda n: {"anyOf": [ref(f"A{n + 1}"), {"type": "null"}]}, TEXT),
    "allOf doubling": {f"A{n}": {"allOf": [ref(f"A{n + 1}")] * 2} for n in range(60)} | {"A60": {"type": "object"}},
    "anyOf doubling": {f"A{n}": {"anyOf": [{"properties": {"c": ref(f"A{n + 1}")}}] * 2} for n in range(60)}
    | {"A60": TEXT},
    "a net": {f"A{n}": {"properties": {"q": {"allOf": [ref(f"A{(n * 7 + m) % 200}") for m in range(9)]}}}
              for n in range(200)},
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("schemas", RINGS.values(), ids=RINGS)
def test_references_in_rings_and_chains(tmp_path: Path, schemas: dict[str, Any]) -> None:
    """The import ends; and so does judging arguments, deep ones too, by what came of it."""
    began = time.monotonic()
    report = _openapi(tmp_path, json.dumps(sending(ref("A0"), schemas)))
    assert report.imported[0].methods == 1
    catalog = Catalog.open(tmp_path / "catalog.db")
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"c": deep}
    for body in (deep, None, "x", {}, {"x": 1}):
        try:
            catalog.validate(Call(service="things", method="send", arguments={"body": body}, account=""))
        except GoexError as error:
            assert error.exit_status == 2
    assert not [one for one in lint(catalog, "things") if one.kind == "schema"]
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize(
    "where", ["https://evil.example.com/x.json", "file:///etc/passwd", "other.yaml#/A", "//evil/x", "/etc/passwd", ""]
)
def test_nothing_outside_is_read(tmp_path: Path, where: str) -> None:
    report = _openapi(tmp_path, json.dumps(sending({"properties": {"x": {"$ref": where}}}), indent=1))
    (one,) = report.problems
    assert "outside of this document" in one.what
    assert one.where.endswith("properties.x.$ref")
    assert one.line > 10


BROKEN: dict[str, tuple[bytes, str]] = {
    "a comma": (b'{"openapi": "3.0.0",\n"paths": {,}}', "document.json:2: isn't JSON"),
    "a key twice": (b'{"openapi": "3.0.0",\n"a": 1,\n"a": 2}', "document.json:3: the key 'a' stands twice"),
    "not a number": (b'{"a": NaN}', "document.json:1: isn't JSON: NaN"),
    "too large a number": (b'{"a": 1e999}', "too large a number"),
    "half a character": (b'{"a":\n"\\ud800"}', "document.json:2: holds half a character"),
    "deep": (b"[" * 100_000, "nested deeper than 200 levels"),
    "deep and closed": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper than 200 levels"),
    "too long": (b'{"a": "' + b"x" * 70_000_000 + b'"}', "at most 64,000,000 are read"),
    "UTF-16": ("{}".encode("utf-16"), "isn't UTF-8 text"),
    "not UTF-8": (b'{"a": "\xe9"}', "isn't UTF-8 text: byte 7 on line 1"),
    "nothing": (b"", "is empty"),
    "another document": (b'{"swagger": "1.2"}', "document.json:1: swagger: '1.2' isn't a version that is read"),
    "a list": (b"[]", "must be an object"),
    "YAML, NUL": (b"openapi: \0", "document.yaml:1: isn't YAML"),
    "YAML, deep": (b"{a: " * 100_000, "document.yaml:1: is nested deeper"),
    "YAML, deep in blocks": (b"\n".join(b" " * n + b"a:" for n in range(1000)), "document.yaml:201: is nested deeper"),
    "YAML, an alias in itself": (b"a: &a\n  - *a", "document.yaml:2: the alias 'a' holds itself"),
    "YAML, a key twice": (b"a: 1\nb: 2\na: 3", "document.yaml:3: the key 'a' stands twice"),
    "YAML, two documents": (b"a: 1\n---\nb: 2", "document.yaml:2: holds a second document"),
    "YAML, a key that is a list": (b"? [a]\n: 1", "document.yaml:1: a key must be text"),
    "YAML, tabs": (b"a:\n\t- b", "document.yaml:2: isn't YAML"),
    "YAML, a bomb": (
        b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 30)),
        "document.yaml:7: unfolds to more than 3,000,000 values",
    ),
    "YAML, a bomb of merges": (
        b"a0: &a0 {%s}\n" % b", ".join(b"k%d: 1" % n for n in range(3000))
        + b"".join(b"b%d: {<<: *a0}\n" % n for n in range(3000)),
        "unfolds to more than 3,000,000 values",
    ),
}  # fmt: skip


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("data", "said"), BROKEN.values(), ids=BROKEN)
def test_broken_files(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / f"document.{'yaml' if said.startswith('document.yaml') or b'a0' in data[:4] else 'json'}"
    file.write_bytes(data)
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Nothing) as caught:
        import_openapi(tmp_path / "catalog.db", file)
    assert said in caught.value.details[0], caught.value.details
    assert time.monotonic() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB


def test_a_tag_makes_no_object(tmp_path: Path) -> None:
    marker = tmp_path / "run"
    text = f"""\
openapi: 3.0.0
info: {{title: Things}}
paths:
  /a:
    get: {{operationId: !!python/object/apply:os.system ["touch {marker}"]}}
    post: {{summary: !!python/name:os.system x, description: !!binary aGk=}}
"""
    report = _openapi(tmp_path, text, "document.yaml")
    assert not marker.exists()
    assert report.imported[0].methods == 2
    assert [one.line for one in report.problems if "the tag" in one.what] == [5, 6, 6]


def test_yaml_keeps_texts_that_look_like_something_else(tmp_path: Path) -> None:
    text = json.dumps(sending({"enum": ["NO"]})).replace('"NO"', "NO, on, 2001-01-01, 0x10, 1_000, .inf, '1', ~, 1.5")
    _openapi(tmp_path, text, "document.yaml")
    method = Catalog.open(tmp_path / "catalog.db").method("things.send")
    wanted = ["NO", "on", "2001-01-01", "0x10", "1_000", ".inf", "1", None, 1.5]
    assert method.parameters["properties"]["body"]["enum"] == wanted


def kinds(count: int) -> dict[str, Any]:
    """A document of so many operations."""
    return document({
        f"/kind{n}/{{id}}": {"get": {
            "operationId": f"getKind{n}", "summary": f"Get a thing of kind {n}",
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": TEXT}],
        }} for n in range(count)
    })  # fmt: skip


def parts(count: int) -> dict[str, Any]:
    """A document of so many operations, of parts of things that may be made by the PUT that changes them."""
    ids = [{"name": "id", "in": "path", "required": True, "schema": TEXT}]
    kept = {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": TEXT}}}}}
    shown, done = {"200": {"description": "", **kept}}, {"200": {"description": ""}}
    return document({
        f"/things/{{id}}/part{n}": {
            "parameters": ids, "get": {"responses": shown}, "delete": {"responses": done},
            "put": {"requestBody": kept, "responses": done | {"201": {"description": ""}}},
        } for n in range(count // 3)
    })  # fmt: skip


def elsewhere(count: int) -> dict[str, Any]:
    """A document of so many operations, of things of one kind that are deleted in another place than they are made."""
    kept = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}
    shown = {"responses": {"201": {"description": "", **kept}}}
    ids = [{"name": "id", "in": "path", "required": True, "schema": TEXT}]
    made = {f"/rooms{n}/things": {"post": {**shown, "requestBody": kept}} for n in range(count // 3)}
    gone = {f"/halls{n}/things/{{id}}": {"parameters": ids, "get": shown, "delete": shown} for n in range(count // 3)}
    return document(made | gone, {"Thing": {"type": "object", "properties": {"id": TEXT, "a": TEXT}}})


def calls_to_read(count: int, made_of: Any = kinds) -> int:
    """The calls of functions, Python's and C's, that reading a document of `count` operations takes."""
    source = Source("document.json", json.dumps(made_of(count)), "")
    made = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        _, found, problems = READERS["openapi"](source, "svc")
    finally:
        sys.setprofile(None)
    assert found is not None and len(found.methods) == count and problems == []
    return made


def test_an_operation_costs_as_many_steps_in_a_large_document_as_in_a_small_one(thorough: bool) -> None:
    count = 2000 if thorough else 800
    few, many = calls_to_read(count // 10), calls_to_read(count)
    assert many < 11 * few
    assert many < count * 700


@pytest.mark.parametrize("made_of", [parts, elsewhere])
def test_an_undo_costs_as_many_steps_in_a_large_document_as_in_a_small_one(made_of: Any) -> None:
    assert calls_to_read(1500, made_of) < 12 * calls_to_read(150, made_of)


def test_many_operations(tmp_path: Path, thorough: bool) -> None:
    """Within the steps that a document may take, and the processor's time of its reader: `reader_process.SECONDS`."""
    seen: list[int] = []
    file = tmp_path / "document.json"
    count = 30_000 if thorough else 6_000
    file.write_text(json.dumps(kinds(count)))
    report = import_openapi(tmp_path / "catalog.db", file, progress=lambda done, total, what: seen.append(done))
    assert (report.imported[0].methods, report.problems) == (count, ())
    assert len(seen) > count // 1000


def test_many_problems(tmp_path: Path, thorough: bool) -> None:
    count = 30_000 if thorough else 5_000
    paths = {f"/k{n}/{{id}}": {"get": {}} for n in range(count)} | {"/good": {"get": {}}}
    began = time.monotonic()
    report = _openapi(tmp_path, json.dumps(document(paths), indent=1))
    assert time.monotonic() - began < SECONDS
    assert report.imported[0].methods == count + 1
    assert report.problems[-1].what == f"and {count - 200:,} problems more"


# ---- fuzz

_ODD = st.sampled_from(
    [None, True, 0, -1, 1e300, "", "x", "#", "#/", "#/paths", "\0", "__class__", "../..", "{", "\U0001f4a5", "http://x",
     [], {}, [[]], [None], {"": None}, {"$ref": "#"}, {"$ref": 5}, {"$ref": "#/components/schemas/Pet"}, "array",
     "null", {"type": "object"}, {"type": []}, {"allOf": [{"$ref": "#"}]}, {"enum": []}, "9" * 400, "a" * 5000]
)  # fmt: skip


def _places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [before] if before else []
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += _places(each, (*before, key))
    return found


def _mutated(raw: Any, draw: Any, chance: random.Random) -> Any:
    made = copy.deepcopy(raw)
    for _ in range(chance.randint(1, 4)):
        places = _places(made)
        if not places:
            return made
        *outer, last = chance.choice(places)
        holder = made
        for key in outer:
            holder = holder[key]
        match chance.randint(0, 3):
            case 0:
                holder[last] = copy.deepcopy(draw(_ODD))  # the next change may be within it
            case 1:
                del holder[last]
            case 2:
                *inner, name = chance.choice(places)
                value = made
                for key in (*inner, name):
                    value = value[key]
                holder[last] = copy.deepcopy(value)
            case _ if isinstance(holder, dict):
                holder[str(draw(_ODD))[:600]] = holder.pop(last)
    return made


@pytest.mark.usefixtures("one_reader")
@settings(max_examples=50)
@given(data=st.data(), chance=st.randoms(use_true_random=False), form=st.sampled_from(["json", "yaml"]))
def test_no_mutation_of_a_document_raises_anything_else(
    tmp_path: Path, data: st.DataObject, chance: random.Random, form: str
) -> None:
    raw = _mutated(yaml.safe_load(PETS), data.draw, chance)
    text = json.dumps(raw) if form == "json" else yaml.safe_dump(raw, allow_unicode=True)
    _survives(tmp_path, import_openapi, text, f"document.{form}")


@pytest.mark.usefixtures("one_reader")
@settings(max_examples=30)
@given(data=st.data(), chance=st.randoms(use_true_random=False))
def test_no_mutation_of_a_function_set_raises_anything_else(
    tmp_path: Path, data: st.DataObject, chance: random.Random
) -> None:
    _survives(tmp_path, import_functions, json.dumps(_mutated(TOOLS, data.draw, chance)), "tools.json")


@pytest.mark.usefixtures("one_reader")
@settings(max_examples=30)
@given(place=st.integers(0, len(PETS)), length=st.integers(0, 40), more=st.text(max_size=20))
def test_no_cut_or_spliced_text_raises_anything_else(tmp_path: Path, place: int, length: int, more: str) -> None:
    _survives(tmp_path, import_openapi, PETS[:place] + more + PETS[place + length :], "document.yaml")


def _survives(folder: Path, take: Any, text: str, name: str) -> None:
    """It is imported, and then can be looked at and checked; or it is refused with a reason of ours."""
    for old in folder.glob("catalog.db*"):
        old.unlink(missing_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8", errors="replace")
    try:
        report = take(folder / "catalog.db", file)
    except GoexError as error:
        assert error.message
        assert error.exit_status in (2, 6)
        return
    catalog = Catalog.open(folder / "catalog.db")
    (one,) = report.imported
    assert not [found for found in lint(catalog, one.service) if found.kind == "schema"]
    for name in catalog.service(one.service).methods:
        assert catalog.method(f"{one.service}.{name}").scopes
        for arguments in ({}, {"id": "1"}, {"body": {"name": "Rex"}}, {"side": 2}):
            try:
                catalog.validate(Call(service=one.service, method=name, arguments=arguments, account=""))
            except GoexError as error:
                assert error.message


def _openapi(folder: Path, text: str, name: str = "document.json") -> Any:
    (folder / name).write_text(text, encoding="utf-8")
    return import_openapi(folder / "catalog.db", folder / name)
