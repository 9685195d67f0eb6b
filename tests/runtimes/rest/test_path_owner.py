"""Calls whose values would make them calls of another method: by the path, by `_method`, by what an answer says."""

from __future__ import annotations

import json
import random
import re
import sys
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.accounts import Account
from policies.actions import ApiCalls, Call
from policies.errors import InvalidInput
from runtimes.gateway.plan import GatewayPlan, PlannedRequest
from runtimes.gateway.plan_check import check_opening
from runtimes.gateway.routes import visible, without_suffix
from runtimes.rest import requests
from runtimes.rest.path_owner import _DOTLESS, _Paths, _Template
from runtimes.rest.planner import plan_calls
from runtimes.rest.records import Answer
from runtimes.rest.requests import check_values
from runtimes.rest.steps import Step
from tests.runtimes.gateway.support import lease
from tests.runtimes.rest.support import account

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
ANY = {"content": {"application/json": {"schema": {"type": "object"}}}}
FORM = {
    "content": {
        "multipart/form-data": {
            "schema": {"type": "object", "properties": {"title": {"type": "string"}, "_method": {"type": "string"}}}
        }
    }
}


def operation(name: str, *parameters: Any, body: Any = None, summary: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"operationId": name, "summary": summary, "responses": {"200": {"description": "ok"}}}
    return {**made, "parameters": list(parameters), **({"requestBody": body} if body else {})}


def slot(name: str) -> dict[str, Any]:
    return {**ID, "name": name}


FILTERS = {"name": "filters", "in": "query", "style": "form", "explode": True, "schema": {"type": "object"}}
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Things", "version": "1"},
    "servers": [{"url": "https://things.example/v1"}],
    "paths": {
        "/items": {"get": operation("listItems", FILTERS)},
        "/items/{id}": {
            "get": operation("getItem", ID),
            "post": operation("updateItem", ID, body=ANY),
            "patch": operation("patchItem", ID, body=ANY),
        },
        "/items/purge": {"get": operation("purgeItems", summary="Deletes all items."), "post": operation("purgeAll")},
        "/items/me": {"get": operation("getMe")},
        "/items/{id}/delete": {"post": operation("deleteItem", ID)},
        "/items/report-{day}": {"get": operation("deleteReport", slot("day"), summary="Deletes the day's report.")},
        "/groups/{group}/items/{id}": {"get": operation("groupItem", slot("group"), ID)},
        "/groups/{group}/items/all": {"delete": operation("deleteGroupItems", slot("group"))},
        "/posts/{id}": {"put": operation("putPost", ID)},
        "/posts/{id}.json": {"get": operation("postAsJson", ID)},
        "/docs/{id}": {"get": operation("getDoc", ID)},
        "/docs/{id}.pdf": {"get": operation("docAsPdf", ID)},
        "/docs/trash": {"get": operation("emptyDocs", summary="Deletes all docs.")},
        # Of these none can be called.
        "/docs/bin": {"get": operation("emptyBin", FILTERS, FILTERS, summary="Deletes all docs.")},
        "/docs/all?sure=yes": {"get": operation("emptyAll", summary="Deletes all docs.")},
        "/docs/none{?sure,now}": {"get": operation("emptyNone", summary="Deletes all docs.")},
        "/docs/m%C3%BCll": {"get": operation("emptyMüll", summary="Deletes all docs.")},
        "/docs/old docs": {"get": operation("emptyOld", summary="Deletes all docs.")},
        "/docs/{open": {"get": operation("openDoc")},
        "/docs/rest": {"$ref": "other.yaml#/rest"},
        "/items/{id}/users": {"get": operation("usersOfItem", ID)},
        "/photos/{id}": {"post": operation("updatePhoto", ID, body=FORM)},
    },
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("things")
    (folder / "things.json").write_text(json.dumps(DOCUMENT))
    import_openapi(folder / "catalog.db", folder / "things.json", "things", index=False)
    return Catalog.open(folder / "catalog.db")


THINGS = account("things", "https://things.example/v1")
DRIVE = account("google_drive", "https://www.googleapis.com/drive/v3")


def planned(catalog: Catalog, *calls: Call, on: Account = THINGS) -> PlannedRequest:
    """The last call's request."""
    return steps(catalog, *calls, on=on)[-1].request


def steps(catalog: Catalog, *calls: Call, on: Account = THINGS) -> list[Step]:
    action = ApiCalls(calls=catalog.validate_all(calls))
    made = plan_calls(action, {(on.service, on.name): on}, catalog, "a-1")
    return [each.step for each in made.calls]


def call(method: str, service: str = "things", **arguments: Any) -> Call:
    return Call(service=service, method=method, arguments=arguments)


TAKEN = {
    "a_word": (call("getItem", id="purge"), "things.purgeItems"),
    "upper_case": (call("getItem", id="PURGE"), "things.purgeItems"),
    "an_ending": (call("getItem", id="purge.json"), "things.purgeItems"),
    "a_wide_letter": (call("getItem", id="ｐurge"), "things.purgeItems"),
    "encoded": (call("getItem", id="%70urge"), "things.purgeItems"),
    "encoded_with_an_ending": (call("getItem", id="%70urge.json"), "things.purgeItems"),
    "a_segments_parameter": (call("getItem", id="purge;v=1"), "things.purgeItems"),
    "an_ending_of_ours": (call("docAsPdf", id="trash"), "things.emptyDocs"),
    "a_pattern": (call("getItem", id="report-5"), "things.deleteReport"),
    "a_post": (call("updateItem", id="purge", body={}), "things.purgeAll"),
    "a_slash": (call("updateItem", id="5/delete", body={}), "things.deleteItem"),
    "a_slash_and_an_ending": (call("updateItem", id="5/delete.json", body={}), "things.deleteItem"),
    "an_encoded_slash": (call("updateItem", id="5%2Fdelete", body={}), "things.deleteItem"),
    "encoded_twice": (call("updateItem", id="5%252fdelete", body={}), "things.deleteItem"),
    "more_harm": (call("groupItem", group="g", id="all"), "things.deleteGroupItems"),  # a DELETE, of a GET
    "left_out": (call("getDoc", id="bin"), "things.emptyBin"),
    "a_query_behind_it": (call("getDoc", id="all"), "things.emptyAll"),
    "a_querys_template_behind_it": (call("getDoc", id="none"), "things.emptyNone"),
    "encoded_in_the_document": (call("getDoc", id="müll"), "things.emptyM"),
    "a_blank_in_the_document": (call("getDoc", id="old docs"), "things.emptyOld"),
    "nothing_is_known_of_it": (call("getDoc", id="rest"), "things.docs.rest.delete"),
    "a_read": (call("getItem", id="me"), "things.getMe"),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize(("asked", "other"), TAKEN.values(), ids=TAKEN)
def test_a_value_makes_no_other_methods_path(
    catalog: Catalog, asked: Call, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="another method") as refused:
        planned(catalog, asked)
    assert other in refused.value.next_step
    # Without the check it is planned, and asked for as what it isn't.
    monkeypatch.setattr(requests, "check_path_owner", lambda *_: None)
    assert steps(catalog, asked)[0].method_id == asked.id


@pytest.mark.promise(11)
def test_deleting_a_file_empties_no_trash() -> None:
    with pytest.raises(InvalidInput, match="emptyTrash"):
        planned(Catalog.bundled(), call("files.delete", "google_drive", fileId="trash"), on=DRIVE)


@pytest.mark.parametrize(
    "asked",
    [
        call("getItem", id="5"),
        call("getItem", id="purged"),
        call("getItem", id="group/project"),  # one encoded segment, as a code host names a project
        call("updateItem", id="me", body={}),  # only a GET is said to be there, which does less
        call("groupItem", group="all", id="5"),
        call("deleteItem", id="purge"),
        call("purgeItems"),
        call("postAsJson", id="5"),
        call("docAsPdf", id="5"),
        call("getItem", id="acme/users"),  # a project of a code host that is called like a collection
    ],
    ids=lambda asked: f"{asked.method} {asked.arguments}",
)
def test_its_own_path_is(catalog: Catalog, asked: Call) -> None:
    assert planned(catalog, asked).path


def test_a_broken_catalog_stops_no_service_that_comes_with_goex(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database")
    broken = Catalog.open(tmp_path / "catalog.db")
    assert planned(broken, call("files.get", "google_drive", fileId="abc"), on=DRIVE).path
    with pytest.raises(InvalidInput, match="emptyTrash"):
        planned(broken, call("files.delete", "google_drive", fileId="trash"), on=DRIVE)


@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("purge", "what a service supplied for id doesn't fit"),
        ("5:cancel", "ends like another method of the same path"),
    ],
    ids=["a_word", "a_verb"],
)
def test_an_answer_makes_no_other_methods_path(
    catalog: Catalog, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = (call("getItem", id="5"), call("updateItem", id={"$from": 0, "path": "$.id"}, body={}))
    step = steps(catalog, *calls)[1]

    def answered(id: str) -> dict[str, Answer]:
        return {"call-0": Answer(status=200, well=True, failed="", body={"id": id}, text="")}

    assert check_values(step, answered("7"), catalog)["id"] == "7"
    with pytest.raises(InvalidInput, match=says) as caught:
        check_values(step, answered(value), catalog)
    assert value not in str(caught.value)  # an agent reads it
    if value == "purge":
        monkeypatch.setattr(requests, "check_path_owner", lambda *_: None)
        assert check_values(step, answered(value), catalog)["id"] == value


OVERRIDDEN = {
    "a_field": call("updateItem", id="5", body={"_method": "DELETE"}),
    "a_headers_name": call("updateItem", id="5", body={"X-HTTP-Method-Override": "DELETE"}),
    "a_free_query": call("listItems", filters={"_method": "DELETE"}),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("asked", OVERRIDDEN.values(), ids=OVERRIDDEN)
def test_no_value_says_another_http_method(catalog: Catalog, asked: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="another method"):
        planned(catalog, asked)
    # The gateway holds the plan to it once more.
    monkeypatch.setattr(requests, "overriding", lambda _: "")
    request = planned(catalog, asked)
    with pytest.raises(InvalidInput, match="change what the request means"):
        opened(request)
    opened(replace(request, query={}, body=None, body_format="none", body_type=""))


@pytest.mark.promise(11)
def test_a_part_that_says_another_http_method_is_no_argument(catalog: Catalog) -> None:
    request = planned(catalog, call("updatePhoto", id="5", title="x"))
    assert isinstance(request.body, list | tuple)
    opened(request)
    with pytest.raises(InvalidInput, match="change what the request means"):  # nor may the gateway be handed one
        opened(replace(request, body=[{**part, "name": "_method"} for part in request.body]))
    with pytest.raises(InvalidInput, match=r"\"_method\" isn't an argument"):
        planned(catalog, call("updatePhoto", id="5", _method="DELETE"))


def opened(request: PlannedRequest) -> None:
    check_opening(GatewayPlan(action_id="a1", requests=(request,)), [lease(THINGS)], datetime.now(UTC))


def test_no_key_of_a_free_query_is_a_credentials_name(catalog: Catalog) -> None:
    assert planned(catalog, call("listItems", filters={"state": "open"})).query == {"state": "open"}
    with pytest.raises(InvalidInput, match="credential"):
        planned(catalog, call("listItems", filters={"access_token": "x"}))


@pytest.mark.promise(16)
@pytest.mark.parametrize("part", [".", " ", ".json", "; ", ". "])
def test_a_long_end_of_a_path_keeps_nobody_busy(part: str) -> None:
    text = "purge" + part * 50_000
    assert without_suffix(text) == "purge"
    assert without_suffix(text.rstrip() + "x").startswith("purge")


@pytest.mark.promise(16)
@pytest.mark.parametrize("between", ["-", ""])
def test_many_names_in_one_part_of_a_path_keep_nobody_busy(between: str) -> None:
    template = _Template.of("m", "GET", "/a/v" + between.join(f"{{n{n}}}" for n in range(40)) + "x")
    assert template is not None and not template.fits(["a", "v" + "-" * 5_000])
    assert template.fits(["a", "v" + "-" * 5_000 + "x"])


def by_pattern(template: _Template, path: list[str]) -> bool:
    spare = len(path) - len(template.exact)
    return (spare >= 0 if template.many >= 0 else spare == 0) and bool(template.pattern.fullmatch("\n".join(path)))


def test_the_tree_finds_what_each_template_by_itself_would() -> None:
    some = random.Random(11)
    plain = "items Items ıtems İtems a ß é É σ ς v1 x%0Ay"
    words = f"{plain} {{id}} {{id}}.json {{a}}:{{b}} pre{{id}} {{x}}{{y}} {{+name}} {{+n}}.x".split()
    values = ["items", "ITEMS", "ıtems", "İTEMS", "a", "A", "ß", "ẞ", "é", "É", "σ", "Σ", "ς", "x\ny", "7.json", "a:b"]
    found = 0
    for _ in range(400):
        rows = [(f"m{n}", "GET", "/".join(some.choices(words, k=some.randint(1, 4)))) for n in range(12)]
        templates = [_Template.of(*row) for row in rows]
        for _ in range(10):
            path = some.choices(values, k=some.randint(1, 5))
            each = {t.name for t in templates if t is not None and by_pattern(t, path)}
            assert {template.name for template, _ in _Paths(templates).fitting(path)} == each, (rows, path)
            found += len(each)
    assert found > 500


def test_no_other_letter_is_an_ascii_one_but_for_case() -> None:
    """What the tree's words are found by; the patterns behind it know each such letter."""
    alike = re.compile("[a-z]", re.IGNORECASE)
    letters = map(chr, (code for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000))
    plain = (each for each in letters if alike.match(each) and visible(unicodedata.normalize("NFKC", each)) == each)
    assert {ord(each) for each in plain} == {*_DOTLESS}


@pytest.mark.promise(16)
def test_of_many_templates_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    fits = _Template.fits

    def counted(self: _Template, path: list[str]) -> re.Match[str] | None:
        compared.append(self.name)
        return fits(self, path)

    monkeypatch.setattr(_Template, "fits", counted)
    rows = [(f"m{n}", "GET", f"/things{n}/{{id}}/parts/{{part}}/sub-{n % 97}") for n in range(5_000)]
    paths = _Paths(_Template.of(*row) for row in rows)
    assert [each.name for each, _ in paths.fitting(["THINGS5", "a", "parts", "b", "sub-5"])] == ["m5"]
    assert compared == ["m5"]
