"""Function sets as services: the forms they come in, their looser types, and functions of one name."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_functions
from mapper.importing.import_report import Report
from mapper.importing.install import Nothing
from mapper.proposals import parse_proposal
from policies.actions import Call, Rejected
from policies.errors import GoexError, Unsupported
from policies.services import Risk

BFCL = Path(__file__).parents[4] / "shared" / "data" / "bfcl"

AREA = {"type": "object", "properties": {"side": {"type": "number"}}, "required": ["side"]}


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search index is made over all services, ours too; nothing here searches, so it isn't made."""
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def put(folder: Path, text: Any, name: str = "tools.json") -> tuple[Report, Catalog]:
    file = folder / name
    file.write_text(text if isinstance(text, str) else json.dumps(text, indent=1), encoding="utf-8")
    return import_functions(folder / "catalog.db", file), Catalog.open(folder / "catalog.db")


def checked(catalog: Catalog, method: str, **arguments: Any) -> str:
    try:
        catalog.validate(Call(service="tools", method=method, arguments=arguments, account=""))
    except GoexError as error:
        return str(error)
    return ""


PLAIN = {"name": "shape.area", "description": "The area.", "parameters": AREA}
MCP = {"name": "shape.area", "description": "The area.", "inputSchema": AREA}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        [PLAIN],
        [{"type": "function", "function": PLAIN}],
        [{"type": "function", **PLAIN}],
        {"tools": [{"type": "function", "function": PLAIN}]},
        {"functions": [PLAIN]},
        {"tools": [MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        [{"name": "shape.area", "description": "The area.", "input_schema": AREA}],
        {"id": "q", "question": [[{"role": "user", "content": "?"}]], "function": [PLAIN]},
        "\n".join(json.dumps({"id": f"q{n}", "function": [PLAIN]}) for n in range(3)),
        "\n\n".join(json.dumps(PLAIN) for _ in range(2)),
    ],
    ids=str,
)
def test_every_form_is_the_same_function(tmp_path: Path, text: Any) -> None:
    report, catalog = put(tmp_path, text)
    assert (report.problems, report.imported[0].service, report.imported[0].methods) == ((), "tools", 1)
    method = catalog.method("tools.shape.area")
    assert (method.description, method.http, method.parameters["required"]) == ("The area.", "", ["side"])
    assert catalog.service("tools").base_url == ""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("dict", {"a": 1}, [1]),
        ("float", 2, "2"),
        ("float", 2.5, True),
        ("tuple", [1, 2], {"a": 1}),
        ("any", None, None),
        ("list", [], {}),
        ("bool", True, 1),
        ("int", 3, 3.5),
        ("str", "x", 1),
        ("HashMap", {}, []),
        ("ArrayList", [], "x"),
        ("String", "x", 5),
    ],
)
def test_looser_types(tmp_path: Path, kind: str, good: Any, bad: Any) -> None:
    schema = {"type": "dict", "properties": {"x": {"type": kind}}, "required": ["x"]}
    _, catalog = put(tmp_path, [{"name": "f", "parameters": schema}])
    assert checked(catalog, "f", x=good) == ""
    if bad is not None:
        assert checked(catalog, "f", x=bad)


def test_a_type_that_is_none_is_told_and_anything_may_stand_there(tmp_path: Path) -> None:
    schema = {"type": "dict", "properties": {"x": {"type": "wibble"}, "y": {"type": "int"}}}
    report, catalog = put(tmp_path, [{"name": "f", "parameters": schema}])
    (one,) = report.problems
    assert (one.line, one.what) == (8, "'wibble' isn't a type")
    assert checked(catalog, "f", x=[1], y=2) == ""
    assert checked(catalog, "f", y="2")


def test_functions_of_one_name(tmp_path: Path) -> None:
    other = {**PLAIN, "description": "Another area."}
    report, catalog = put(tmp_path, [PLAIN, PLAIN, other, {**other, "name": "shape.area_2"}, other])
    assert sorted(catalog.service("tools").methods) == ["shape.area", "shape.area_2", "shape.area_2_2"]
    assert [one.what for one in report.problems] == [
        "another function is 'shape.area', too; it is called shape.area_2",
        "another function is 'shape.area_2', too; it is called shape.area_2_2",
    ]


def test_what_is_no_function_leaves_the_rest(tmp_path: Path) -> None:
    odd = [7, {"name": 5}, {"name": "__class__"}, {"name": "../.."}, {"name": "g", "parameters": 7}, {"hello": 1}]
    report, catalog = put(tmp_path, [*odd, PLAIN])
    assert list(catalog.service("tools").methods) == ["shape.area"]
    assert len(report.problems) == len(odd)
    assert all(one.line for one in report.problems)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"tools": []}', '{"tools": [7]}', "{", "- a\n- b"])
def test_nothing_in_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(Nothing):
        put(tmp_path, text)


def test_a_line_that_is_broken_leaves_the_others(tmp_path: Path) -> None:
    report, _ = put(tmp_path, json.dumps(PLAIN) + "\n{broken\n" + json.dumps({**PLAIN, "name": "g"}))
    assert (report.imported[0].methods, [one.line for one in report.problems]) == (2, [2])


def test_definitions_are_each_functions_own(tmp_path: Path) -> None:
    def tool(name: str, kind: str) -> dict[str, Any]:
        inner = {"type": "object", "properties": {"v": {"type": kind}, "next": {"$ref": "#/$defs/N"}}}
        return {"name": name, "parameters": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}},
                                             "$defs": {"N": inner}}}  # fmt: skip

    _, catalog = put(tmp_path, [tool("f", "integer"), tool("g", "string")])
    assert checked(catalog, "f", n={"next": {"v": 1}}) == ""
    assert checked(catalog, "f", n={"next": {"v": "x"}})
    assert checked(catalog, "g", n={"next": {"v": "x"}}) == ""


def test_a_tool_isnt_believed_to_be_harmless(tmp_path: Path) -> None:
    tools = [
        {"name": "delete_all", "inputSchema": {}, "annotations": {"readOnlyHint": True}},
        {"name": "tidy", "inputSchema": {}, "annotations": {"destructiveHint": True}},
        {"name": "get_time", "inputSchema": {}},
        {"name": "send", "inputSchema": {}, "annotations": {"readOnlyHint": True}},
    ]
    _, catalog = put(tmp_path, {"tools": tools})
    risks = {name: method.risk for name, method in catalog.service("tools").methods.items()}
    assert risks == {"delete_all": Risk.DELETE, "tidy": Risk.DELETE, "get_time": Risk.READ, "send": Risk.WRITE}


def test_a_function_can_be_proposed_and_not_called(tmp_path: Path) -> None:
    _, catalog = put(tmp_path, [PLAIN])
    found = parse_proposal("tools.shape.area(side=2)", catalog)
    assert not isinstance(found, Rejected)
    assert [(call.id, call.arguments) for call in found] == [("tools.shape.area", {"side": 2})]
    wrong = parse_proposal("tools.shape.area(side='two')", catalog)
    assert isinstance(wrong, Rejected)
    assert '"side" must be a number' in wrong.reason
    with pytest.raises(Unsupported, match="without an address"):
        catalog.check_callable("tools.shape.area")


@pytest.mark.skipif(not BFCL.is_dir(), reason="the evaluation data isn't there")
@pytest.mark.parametrize("name", ["simple_python", "multiple", "irrelevance"])
def test_the_function_calling_sets(tmp_path: Path, name: str) -> None:
    file = BFCL / f"BFCL_v4_{name}.json"
    different: dict[str, set[str]] = defaultdict(set)
    for line in file.read_text().splitlines():
        for one in json.loads(line)["function"]:
            different[one["name"]].add(json.dumps([one["description"], one["parameters"]], sort_keys=True))
    report = import_functions(tmp_path / "catalog.db", file, "bfcl")
    methods = Catalog.open(tmp_path / "catalog.db").service("bfcl").methods
    assert set(different) <= set(methods)
    assert report.imported[0].methods == sum(len(each) for each in different.values()) == len(methods)
    assert all("is called" in one.what for one in report.problems), report.problems
