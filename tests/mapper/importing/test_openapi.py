"""OpenAPI documents as services: addresses, arguments, scopes, names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mapper.catalog import Catalog
from mapper.importing import install, openapi
from mapper.importing import security as security_of
from mapper.importing.files import import_openapi
from mapper.importing.import_report import BadPart, Report
from mapper.least_scopes import least_scopes
from mapper.lint import lint
from policies.actions import Call
from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.services import Method, Risk
from tests.mapper.importing import undo_specs as notes
from tests.mapper.importing.openapi_documents import PETS, document, sending

TEXT = {"type": "string"}


class Bench:
    """A catalog of its own, and documents imported into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "catalog.db"

    def put(self, raw: Any, name: str = "", file: str = "document.json") -> Report:
        place = self.folder / file
        place.write_text(raw if isinstance(raw, str) else json.dumps(raw, indent=1), encoding="utf-8")
        return import_openapi(self.path, place, name)

    @property
    def catalog(self) -> Catalog:
        return Catalog.open(self.path)

    def method(self, raw: Any) -> Method:
        """The one method of a document."""
        report = self.put(raw)
        service = self.catalog.service(report.imported[0].service)
        (name,) = service.methods
        return service.methods[name]

    def callable(self) -> list[str]:
        """The methods of `things` that can be called."""
        return [name for name, one in self.catalog.service("things").methods.items() if not one.unsupported]

    def check(self, method: Method, arguments: dict[str, Any]) -> str:
        """What is wrong with these arguments; "" when nothing is."""
        try:
            self.catalog.validate(Call(service=method.service, method=method.name, arguments=arguments, account=""))
        except GoexError as error:
            return str(error)
        return ""


NAMED = {"name": "q", "in": "query", "schema": {"type": "string"}}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The search index is made over all services, ours too; nothing here searches, so it isn't made."""
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    return Bench(tmp_path)


def problems(report: Report) -> list[str]:
    return [f"{one.line}: {one.what}" for one in report.problems]


def test_a_whole_document(bench: Bench) -> None:
    report = bench.put(PETS, file="pets.yaml")
    (one,) = report.imported
    assert (one.service, one.version, one.methods, one.scopes) == ("petshop", "1.2.0", 5, 3)
    assert problems(report) == [
        "22: a cookie isn't sent",
        "37: the path doesn't name {ident}",
    ]
    service = bench.catalog.service("petshop")
    assert service.base_url == "https://eu.pets.example.com/v1"
    listing = service.methods["pets.list"]
    assert (listing.http, listing.path, listing.risk) == ("GET", "/pets", Risk.READ)
    assert listing.description == "List pets [shelf]"
    assert dict(listing.locations) == {"limit": "query", "tag": "repeat", "filter": "deep"}
    assert service.methods["pets.add"].locations == {"body": "whole"}
    assert service.methods["pets.delete"].risk is Risk.DELETE
    with pytest.raises(Unsupported, match="multipart/mixed"):
        bench.catalog.validate(Call(service="petshop", method="pets.photo", arguments={"id": "1"}, account=""))


def test_the_same_in_json_and_yaml_is_the_same(bench: Bench) -> None:
    bench.put(PETS, "a", "pets.yaml")
    bench.put(json.dumps(yaml.safe_load(PETS)), "b", "pets.json")
    first, second = bench.catalog.service("a"), bench.catalog.service("b")
    for name in first.methods:
        assert first.methods[name].parameters == second.methods[name].parameters
    assert first.scopes.keys() == second.scopes.keys()


# ---- security


def scopes(bench: Bench, security: Any, schemes: Any, *, top: Any = ()) -> Method:
    operation = {"operationId": "go", **({"security": security} if security is not None else {})}
    raw = document({"/go": {"get": operation}}, security=list(top))
    raw["components"]["securitySchemes"] = schemes
    return bench.method(raw)


def oauth(*names: str) -> dict[str, Any]:
    return {
        "type": "oauth2",
        "flows": {"password": {"tokenUrl": "https://x", "scopes": dict.fromkeys(names, "Words.")}},
    }


def test_the_list_is_alternatives_and_each_needs_all_it_names(bench: Bench) -> None:
    made = scopes(bench, [{"o": ["a", "b"]}, {"o": ["c"]}], {"o": oauth("a", "b", "c")})
    assert made.scopes == ("a+b", "c")
    described = bench.catalog.scope(made.service, "a+b").description
    assert described == "All of these at once: a: Words.; b: Words."


def test_https_own_schemes_named_together_are_alternatives(bench: Bench) -> None:
    """As one generator writes them; a key elsewhere is needed with each. OAuth beside basic stays two credentials."""
    schemes = {"basic": {"type": "http", "scheme": "basic"}, "bearer": {"type": "http", "scheme": "bearer"},
               "key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "o": oauth("a")}  # fmt: skip
    assert not scopes(bench, [{"basic": [], "bearer": []}], schemes).unsupported
    assert scopes(bench, [{"basic": [], "o": ["a"]}], schemes).unsupported
    made = scopes(bench, [{"basic": [], "bearer": [], "key": []}], schemes)
    places = bench.catalog.service(made.service).placement.places
    assert not made.unsupported and [one.header for one in places] == ["Authorization", "X-Key"]


def test_one_of_several_that_are_needed_together_never_suffices(bench: Bench) -> None:
    """Over two methods: neither part alone allows the one that needs both; the whole allows what needs a part."""
    raw = document(
        {
            "/both": {"get": {"operationId": "both", "security": [{"o": ["a", "b"]}]}},
            "/one": {"get": {"operationId": "one", "security": [{"o": ["a"]}]}},
        }
    )
    raw["components"]["securitySchemes"] = {"o": oauth("a", "b")}
    bench.put(raw)
    catalog = bench.catalog
    both, one = (Call(service="things", method=name, arguments={}, account="x") for name in ("both", "one"))
    assert least_scopes(catalog, [both], frozenset()) == (("things", "x", "a+b"),)
    parts = frozenset({("things", "x", "a"), ("things", "x", "b")})
    assert least_scopes(catalog, [both], parts) == (("things", "x", "a+b"),)
    assert least_scopes(catalog, [one], frozenset()) == (("things", "x", "a"),)
    assert least_scopes(catalog, [one], frozenset({("things", "x", "a+b")})) == (("things", "x", "a+b"),)


def test_two_services_with_one_scope_name_are_two(bench: Bench) -> None:
    for name in ("first", "second"):
        raw = document({"/x": {"get": {"operationId": "look", "security": [{"o": ["all"]}]}}})
        raw["components"]["securitySchemes"] = {"o": oauth("all")}
        bench.put(raw, name)
    calls = [Call(service=name, method="look", arguments={}, account="x") for name in ("first", "second")]
    held = frozenset({("first", "x", "all")})
    assert least_scopes(bench.catalog, calls, held) == (("first", "x", "all"), ("second", "x", "all"))


@pytest.mark.parametrize(
    ("scheme", "header", "form"),
    [
        ({"type": "http", "scheme": "bearer"}, "Authorization", "Bearer {secret}"),
        ({"type": "http", "scheme": "Basic"}, "Authorization", "Basic {secret}"),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, "X-Key", "{secret}"),
        ({"type": "openIdConnect", "openIdConnectUrl": "https://x"}, "Authorization", "Bearer {secret}"),
        ({"type": "apiKey", "in": "header", "name": "WM_SEC.TOKEN"}, "WM_SEC.TOKEN", "{secret}"),
        ({"type": "apiKey", "in": "query", "name": "k"}, "k", "{secret}"),
        ({"type": "apiKey", "in": "query", "name": "_key"}, "_key", "{secret}"),
        ({"type": "apiKey", "in": "cookie", "name": "k"}, "k", "{secret}"),
    ],
)
def test_where_the_credential_goes(bench: Bench, scheme: Any, header: str, form: str) -> None:
    made = scopes(bench, [{"s": []}], {"s": scheme})
    placement = bench.catalog.service(made.service).placement
    assert (placement.header, placement.format, placement.at) == (header, form, scheme.get("in", "header"))
    assert made.scopes == ("read",)
    assert bench.catalog.scope(made.service, "read").virtual
    assert not made.unsupported


@pytest.mark.parametrize(
    ("security", "schemes", "why"),
    [
        ([{"s": []}], {"s": {"type": "apiKey", "in": "header", "name": "Host"}}, "couldn't be read"),
        ([{"s": []}], {"s": {"type": "apiKey", "in": "header", "name": "Content_Length"}}, "couldn't be read"),
        ([{"s": []}], {"s": {"type": "apiKey", "in": "cookie", "name": "a; b"}}, "couldn't be read"),
        ([{"s": []}], {"s": {"type": "apiKey", "in": "query", "name": "_Method"}}, "couldn't be read"),
        ([{"s": []}], {"s": {"type": "apiKey", "in": "query", "name": "_method[x]"}}, "couldn't be read"),
        ([{"s": []}], {"s": {"type": "http", "scheme": "digest"}}, "digest"),
        ([{"s": []}], {"s": {"type": "mutualTLS"}}, "certificate"),
        ([{"t": []}], {"s": oauth("a")}, "doesn't have"),
        ([{"s": [], "t": []}], {"s": {"type": "http", "scheme": "basic"}, "t": oauth()}, "several credentials in one"),
        ([{"s": [str(n) for n in range(30)]}], {"s": oauth()}, "30 permissions at once"),
    ],
)
def test_what_cant_be_authenticated_cant_be_called(bench: Bench, security: Any, schemes: Any, why: str) -> None:
    made = scopes(bench, security, schemes)
    assert why in made.unsupported
    assert made.scopes == ("read",)


def test_several_credentials_at_once_have_a_place_each(bench: Bench) -> None:
    schemes = {"a": {"type": "apiKey", "in": "header", "name": "X-Id"}, "b": oauth("r")}
    made = scopes(bench, [{"a": [], "b": ["r"]}], schemes)
    placement = bench.catalog.service(made.service).placement
    assert [(one.at, one.header, one.format) for one in placement.places] == [
        ("header", "Authorization", "Bearer {secret}"),
        ("header", "X-Id", "{secret}"),
    ]
    assert made.scopes == ("r",) and not made.unsupported


def test_one_method_with_two_credentials_doesnt_make_everybody_give_two(bench: Bench) -> None:
    raw = document({f"/{name}": {"get": {"operationId": name, "security": [{"a": []}]}} for name in "abcdefgh"})
    raw["paths"]["/odd"] = {"get": {"operationId": "odd", "security": [{"a": [], "b": []}]}}
    raw["components"]["securitySchemes"] = {
        name: {"type": "apiKey", "in": "header", "name": f"X-{name}"} for name in ("a", "b")
    }
    bench.put(raw)
    service = bench.catalog.service("things")
    assert [one.header for one in service.placement.places] == ["X-a"]
    assert not service.methods["a"].unsupported and "one place" in service.methods["odd"].unsupported


def test_a_parameter_that_is_the_credential_is_no_argument(bench: Bench) -> None:
    key = {"name": "api_key", "in": "query", "required": True, "schema": TEXT}
    page = {"name": "token", "in": "query", "schema": TEXT, "description": "Where the next page begins."}
    made = bench.method(document({"/x": {"get": {"operationId": "look", "parameters": [key, page]}}}))
    placement = bench.catalog.service(made.service).placement
    assert (placement.at, placement.header) == ("query", "api_key")
    assert list(made.parameters["properties"]) == ["token"] and not made.unsupported


def test_parameters_that_are_the_credential_together_have_a_place_each(bench: Bench) -> None:
    """An operation that can't do without either: with one of them alone it couldn't be called."""
    keys = [{"name": name, "in": "header", "required": True, "schema": TEXT} for name in ("apiKey", "apiSecret")]
    made = bench.method(document({"/x": {"get": {"operationId": "look", "parameters": [*keys, NAMED]}}}))
    placement = bench.catalog.service(made.service).placement
    assert [(one.at, one.header) for one in placement.places] == [("header", "apiKey"), ("header", "apiSecret")]
    assert list(made.parameters["properties"]) == ["q"] and not made.unsupported


def test_scopes_in_one_text_are_all_needed(bench: Bench) -> None:
    """As OAuth itself writes several."""
    assert scopes(bench, [{"o": ["a b", "c"]}], {"o": oauth("a b", "c")}).scopes == ("a+b+c",)
    assert scopes(bench, [{"o": ["a  b ", "\tc"]}], {"o": oauth("a  b", "c ")}).scopes == ("a+b+c",)
    for text in (" ", "", "a é", "a" + " " * 5000):  # none is never fewer than were asked for
        paths = {"/x": {"get": {"operationId": "go", "security": [{"o": [text]}]}}, "/good": {"get": {}}}
        raw = document(paths)
        raw["components"]["securitySchemes"] = {"o": oauth("a")}
        report = bench.put(raw)
        assert bench.callable() == ["good.get"]
        assert "isn't a scope" in problems(report)[0]


def test_a_text_of_scopes_is_one_problem_and_no_document_has_any_number(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {" " * 100_000: "", "a é é é": "", "b" * 201: "", "c d": "Both."}
    security = [{"o": ["c d x y"]}]
    raw = document({"/x": {"get": {"operationId": "go", "security": security}}, "/good": {"get": {}}})
    flow = {"authorizationUrl": "https://a.example.com/", "tokenUrl": "https://a.example.com/", "scopes": texts}
    raw["components"]["securitySchemes"] = {"o": {"type": "oauth2", "flows": {"authorizationCode": flow}}}
    said = [one.what for one in bench.put(raw).problems]
    assert [one.endswith("isn't a scope") for one in said] == [False] + [True] * 3
    assert said[0] == "'x' isn't among the scheme's scopes"
    assert bench.catalog.service("things").scopes["d"].description == "Both."
    monkeypatch.setattr(security_of, "MAX_SCOPES", 3)
    made, found = openapi.read_document(raw, "things", "things.json", "")
    assert made is not None and [one.name for one in made.methods if not one.unsupported] == ["good.get"]
    assert "more than 3 scopes aren't taken" in [one.what for one in found]


def test_an_operation_overrides_the_documents_security(bench: Bench) -> None:
    schemes = {"o": oauth("a")}
    assert scopes(bench, None, schemes, top=[{"o": ["a"]}]).scopes == ("a",)
    assert scopes(bench, [], schemes, top=[{"o": ["a"]}]).scopes == ("read",)
    assert scopes(bench, [{}, {"o": ["a"]}], schemes).scopes == ("a", "read")


def test_a_scope_of_the_documents_own_is_never_taken_for_a_virtual_one(bench: Bench) -> None:
    raw = document(
        {
            "/a": {"get": {"operationId": "look"}, "delete": {"operationId": "drop"}},
            "/b": {"get": {"operationId": "read", "security": [{"o": ["write"]}]}},
        }
    )
    raw["components"]["securitySchemes"] = {"o": oauth("write")}
    bench.put(raw)
    methods = bench.catalog.service("things").methods
    assert methods["look"].scopes == ("goex-delete", "goex-read")  # the worse class suffices, too
    assert methods["drop"].scopes == ("goex-delete",)
    assert methods["read"].scopes == ("write",)


def test_an_undeclared_scope_is_wanted_all_the_same(bench: Bench) -> None:
    report = bench.put(
        {
            **document({"/a": {"get": {"operationId": "look", "security": [{"o": ["hidden"]}]}}}),
            "components": {"securitySchemes": {"o": oauth("a")}},
        }
    )
    assert bench.catalog.method("things.look").scopes == ("hidden",)
    assert "'hidden' isn't among the scheme's scopes" in problems(report)[0]


# ---- servers


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "http://a.example.com"}, {"url": "https://b.example.com/v1/"}], "https://b.example.com/v1"),
        ([{"url": "https://{r}.example.com", "variables": {"r": {"default": "eu"}}}], "https://eu.example.com"),
        ([{"url": "https://{r}.example.com"}], ""),
        ([{"url": "/v1"}], ""),
        (None, ""),
        ([{"url": "http://127.0.0.1:8080/api"}], "http://127.0.0.1:8080/api"),
        ([{"url": "http://localhost:8080"}], "http://localhost:8080"),
        ([{"url": "http://192.168.1.1"}], ""),
        ([{"url": "https://user:secret@example.com"}], ""),
        ([{"url": "https://example.com/a/../b"}], ""),
        ([{"url": "https://example.com/?x=1"}], ""),
        ([{"url": "ftp://example.com"}], ""),
        ([{"url": "https://example.com/a%2fb"}], ""),
        ([{"url": "https://files.mcp.invalid/"}], ""),
        ([7, {"url": 5}, {"url": "https://c.example.com"}], "https://c.example.com"),
    ],
)
def test_servers(bench: Bench, servers: Any, url: str) -> None:
    report = bench.put({**document({"/a": {"get": {}}}), "servers": servers})
    assert bench.catalog.service("things").base_url == url
    if servers and not url:
        assert report.problems


@pytest.mark.parametrize(
    ("own", "its", "called"),
    [
        (["https://a.test", "https://sandbox.test"], ["https://sandbox.test"], False),
        (["https://a.test", "https://sandbox.test"], ["https://sandbox.test", "https://a.test"], True),
        (["/v1"], ["/v2"], False),
        (["/v1"], ["/v1"], True),
        (["/v1", "https://a.test/v1"], ["/v1"], False),
        ([], ["/v2"], True),
    ],
)
def test_what_is_at_one_of_several_addresses_alone_isnt_sent_to_another(
    own: list[str], its: list[str], called: bool
) -> None:
    there, other = ([{"url": url} for url in urls] for urls in (its, own))
    made, _ = openapi.read_document({**document({"/a": {"get": {"servers": there}}}), "servers": other}, "a", "f", "")
    assert made is not None and [not method.unsupported for method in made.methods] == [called]


def test_what_says_nothing_new_leaves_its_operation() -> None:
    """A parameter said twice, a security that is nothing, a name for a name with an extension beside it."""
    query = {"name": "q", "in": "query", "schema": {"type": "string"}}
    named = {"$ref": "#/components/parameters/Other", "x-internal": True}
    raw = document(
        {
            "/a": {"get": {"parameters": [query, {**query}], "security": None}},
            "/b": {"get": {"parameters": [{"$ref": "#/components/parameters/One"}]}},
        },
        components={"parameters": {"One": named, "Other": query}},
        security=None,
    )
    made, bad = openapi.read_document(raw, "a", "f", "")
    assert made is not None and not bad
    assert [(method.unsupported, dict(method.locations)) for method in made.methods] == [("", {"q": "query"})] * 2


def test_openapi_3_2() -> None:
    body = {"content": {"application/json": {"$ref": "#/components/mediaTypes/Pet"}}}
    raw = {
        **document(
            {
                "/pets": {"post": {"requestBody": body}, "query": {}, "additionalOperations": {"LINK": {}}},
                "/all": {"get": {"parameters": [{"name": "q", "in": "querystring", "content": {}}]}},
            },
            components={"mediaTypes": {"Pet": {"schema": {"type": "object", "properties": {"name": {}}}}}},
        ),
        "openapi": "3.2.0",
    }
    made, bad = openapi.read_document(raw, "a", "f", "")
    assert made is not None
    assert {method.origin_id: method.unsupported for method in made.methods} == {
        "POST /pets": "", "GET /all": "'querystring' isn't a place for a parameter.",
    }  # fmt: skip
    assert "name" in made.methods[0].properties["body"]["properties"]
    assert [each.what for each in bad] == [
        "a QUERY isn't sent", "another method isn't sent", "'querystring' isn't a place for a parameter",
    ]  # fmt: skip


def test_an_operation_elsewhere_cant_be_called(bench: Bench) -> None:
    raw = document(
        {
            "/a": {"get": {"operationId": "here", "servers": [{"url": "https://things.example.com/"}]}},
            "/b": {"get": {"operationId": "there", "servers": [{"url": "https://other.example.com"}]}},
            "/c": {"servers": [{"url": "https://other.example.com"}], "get": {"operationId": "below"}},
        }
    )
    bench.put(raw)
    methods = bench.catalog.service("things").methods
    assert [bool(methods[name].unsupported) for name in ("here", "there", "below")] == [False, True, True]


# ---- arguments


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("parameter", "place"),
    [
        ({"schema": TEXT}, "query"),
        ({"schema": {"type": "array", "items": TEXT}}, "repeat"),
        ({"schema": {"type": "array", "items": TEXT}, "explode": False}, "query"),
        ({"schema": {"type": "array"}, "style": "pipeDelimited", "explode": False}, "pipes"),
        ({"schema": {"type": "object"}, "style": "deepObject"}, "deep"),
        ({"schema": {"type": "object"}}, "spread"),
        ({"schema": {"type": "object"}, "explode": False}, None),
        ({"content": {"application/json": {"schema": {"type": "object"}}}}, "text"),
        ({"content": {"application/json": {"schema": {"type": "array"}}}}, "text"),
        ({"content": {"text/csv": {}}}, None),
        ({"in": "cookie", "schema": TEXT}, None),
        ({"in": "header", "schema": {"type": "integer"}}, "header"),
        ({"in": "header", "schema": {"type": "array"}}, "header"),
        ({"in": "header", "schema": {"type": "object"}}, None),
        ({"schema": {"$ref": "#/components/schemas/List"}}, "repeat"),
    ],
)
def test_how_parameters_are_sent(bench: Bench, parameter: dict[str, Any], place: str | None) -> None:
    lists = {"List": {"type": "array", "items": TEXT}}
    one = {"name": "X-p", "in": "query", **parameter}
    operation = {"operationId": "go", "parameters": [one]}
    made = bench.method(document({"/a": {"get": operation}}, lists))
    assert made.locations.get("X-p") == place
    if place is None:
        needed = document({"/a": {"get": {"operationId": "go", "parameters": [{**one, "required": True}]}}})
        assert bench.method(needed).unsupported.endswith("and the operation needs it.")
        assert "can't be called through GoEx" in bench.check(bench.method(needed), {})


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "name",
    ["Host", "cookie", "AUTHORIZATION", "Content-Length", "Proxy-Authorization", "X-HTTP-Method-Override", "A B"],
)
def test_the_gateways_headers_are_nobodys_arguments(bench: Bench, name: str) -> None:
    parameter = {"name": name, "in": "header", "schema": TEXT}
    report = bench.put(document({"/a": {"get": {"operationId": "go", "parameters": [parameter]}}}))
    assert bench.catalog.method("things.go").parameters["properties"] == {}
    assert len(report.problems) == 1


def test_accept_and_content_type_are_ignored_as_openapi_says(bench: Bench) -> None:
    parameters = [
        {"name": name, "in": "header", "required": True, "schema": TEXT} for name in ("Accept", "Content-Type")
    ]
    assert bench.put(document({"/a": {"get": {"parameters": parameters}}})).problems == ()


def test_an_optional_parameter_without_a_name_leaves_its_operation(bench: Bench) -> None:
    """As the published document of Notion has it."""
    nameless = {"name": "", "in": "header", "schema": TEXT}
    report = bench.put(document({"/a": {"get": {"operationId": "go", "parameters": [nameless, NAMED]}}}))
    assert list(bench.catalog.method("things.go").parameters["properties"]) == ["q"]
    assert [problem.what for problem in report.problems] == ["left out: it has no name"]


@pytest.mark.parametrize("needed", [{"name": "", "in": "query", "required": True}, {"name": "", "in": "path"}])
def test_a_parameter_that_is_needed_has_a_name(bench: Bench, needed: dict[str, Any]) -> None:
    report = bench.put(document({"/a": {"get": {"parameters": [needed]}}, "/good": {"get": {}}}))
    assert bench.callable() == ["good.get"]
    assert "must be a name" in problems(report)[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("parameters", "path", "why"),
    [
        ([{"name": "i", "in": "path"}], "/a", "the path doesn't name {i}"),
        ([], "/a/{i}", "which is no parameter of it"),
        ([{"name": "i", "in": "query"}], "/a/{i}", "which is no parameter of it"),
        ([{"name": "i", "in": "path"}, {"name": "i", "in": "path", "schema": {}}], "/a/{i}", "stands twice"),
        ([{"name": "i", "in": "path"}], "/a/{i}/{i}", "names a parameter twice"),
        ([{"name": "i", "in": "nowhere"}], "/a", "isn't a place"),
        ([{"$ref": "other.yaml#/x"}], "/a", "nothing else is read or fetched"),
        ([{"$ref": "#/components/parameters/x"}], "/a", "which isn't there"),
        ("x", "/a", "must be a list"),
        ([], "/a/../b", "isn't a path segment"),
        ([], "a", "begins with a slash"),
        ([], "/a\u202e", "isn't a path segment"),
        ([{"name": "i", "in": "path"}], "/a/{i}?i={i}", "names a parameter twice"),
    ],
)
def test_operations_that_cant_be_taken_leave_the_rest(bench: Bench, parameters: Any, path: str, why: str) -> None:
    raw = document({path: {"get": {"operationId": "bad", "parameters": parameters}}, "/good": {"get": {}}})
    report = bench.put(raw)
    assert bench.callable() == ["good.get"]
    assert why in problems(report)[0]
    assert report.problems[0].line > 1


def test_a_token_that_is_said_twice_is_no_argument(bench: Bench) -> None:
    """As Slack's document has it: the token of the login is also listed as a parameter that is needed."""
    flow = {
        "authorizationUrl": "https://a.example.org",
        "tokenUrl": "https://a.example.org/t",
        "scopes": {"w": "Write"},
    }
    schemes = {
        "login": {"type": "oauth2", "flows": {"authorizationCode": flow}},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    }
    token = {"name": "token", "in": "header", "required": True, "description": "Authentication token.", "schema": TEXT}
    raw = document({"/a": {"post": {"operationId": "a", "parameters": [token], "security": [{"login": ["w"]}]}}})
    raw["components"]["securitySchemes"] = schemes
    made = bench.method(raw)
    assert (made.unsupported, dict(made.locations)) == ("", {})
    for name, scheme in (("api_key", "login"), ("token", "key")):  # another credential than that
        raw["paths"]["/a"]["post"] |= {"parameters": [{**token, "name": name}], "security": [{scheme: []}]}
        assert "goes elsewhere, and the operation needs it" in bench.method(raw).unsupported


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("path", "item", "row"),
    [
        ("/docs/trash", {"get": {"parameters": [NAMED, {**NAMED, "description": "x"}]}}, ("GET", "/docs/trash")),
        ("/docs/trash", {"get": {"parameters": "all"}}, ("GET", "/docs/trash")),
        ("/docs/trash", {"get": {"security": "none"}}, ("GET", "/docs/trash")),
        ("/docs/trash", {"get": "x"}, ("GET", "/docs/trash")),
        ("/docs/trash", {"get": {"requestBody": {"$ref": "other.yaml"}}}, ("GET", "/docs/trash")),
        ("docs/trash", {"get": {}}, ("GET", "/docs/trash")),
        ("/docs/müll", {"get": {}}, ("GET", "/docs/m%C3%BCll")),
        ("/docs/trash", {"$ref": "other.yaml"}, ("DELETE", "/docs/trash")),
    ],
)
def test_what_is_left_out_keeps_its_path_and_its_harm(bench: Bench, path: str, item: Any, row: tuple[str, str]) -> None:
    """An id may be its path's, and which operation would be sent then isn't told by what could be read."""
    if isinstance(item.get("get"), dict):
        item = {"get": {"operationId": "empty", "summary": "Deletes all docs.", **item["get"]}}
    bench.put(document({path: item, "/good": {"get": {}}}))
    assert bench.callable() == ["good.get"]
    (made,) = [one for one in bench.catalog.service("things").methods.values() if one.unsupported]
    assert (made.http, made.path) == row
    assert made.risk is (Risk.READ if item.get("get") == "x" else Risk.DELETE)
    assert (made.name, *row) in bench.catalog.paths("things")


def test_a_document_of_too_many_operations_isnt_taken_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rest does at its paths would be nobody's."""
    raw = document({f"/a{n}": {"get": {}} for n in range(3)})
    assert openapi.read_document(raw, "things", "things.json", "")[0] is not None
    monkeypatch.setattr(openapi, "MAX_METHODS", 2)
    with pytest.raises(BadPart, match="more than 2 operations"):
        openapi.read_document(raw, "things", "things.json", "")


def test_a_head_is_what_a_get_of_its_place_is(bench: Bench) -> None:
    """Servers do for a HEAD what they do for a GET."""
    deletes, looks = {"operationId": "go", "summary": "Deletes all."}, {"operationId": "look"}
    bench.put(document({"/a": {"get": deletes, "head": looks}, "/b/": {"head": deletes}, "/b": {"get": looks}}))
    assert {one.risk for one in bench.catalog.service("things").methods.values()} == {Risk.DELETE}
    raw = notes.document("notes")
    alone, _ = openapi.read_document(raw, "notes", "notes.json", "")
    for item in raw["paths"].values():
        item["head"] = {key: value for key, value in item.get("get", {}).items() if key == "parameters"}
    beside, _ = openapi.read_document(raw, "notes", "notes.json", "")
    assert alone is not None and beside is not None and alone.undos and alone.undos == beside.undos


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("http", "operation", "path", "why"),
    [
        ("get", {"parameters": [{"name": "i", "in": "path"}, {"name": "i", "in": "query", "required": True}]}, "/a/{i}",
         "in different places"),
        ("get", {}, "/a?x=1", "isn't a path segment"),
        ("get", {}, "/a?x={y}", "isn't a path segment"),
        ("get", {}, "/a/#b/c", "isn't a path segment"),
        ("get", {}, "/a?i={i}", "which is no parameter of it"),
        ("get", {"parameters": [{"name": "api_key", "in": "path", "required": True}], "security": [{"key": []}]},
         "/a?api_key={api_key}", "the account's goes elsewhere, and the operation needs it"),
        ("get", {"parameters": [{"name": "i", "in": "path", "content": {"application/json": {"schema": TEXT}}}]},
         "/a/{i}", "a value as JSON isn't sent in the path"),
        ("post", {"requestBody": {"content": {"multipart/form-data": {"schema": TEXT}}}}, "/a", "must list its fields"),
        ("get", {"requestBody": {"required": True, "content": {"application/json": {}}}}, "/a", "a GET with a body"),
        ("post", {"parameters": [{"name": "X-HTTP-Method-Override", "in": "header", "required": True}]}, "/a",
         "the gateway's alone, and the operation needs it"),
        ("post", {"parameters": [{"name": "api_key", "in": "query", "required": True}],
                  "security": [{"key": []}]}, "/a", "the account's goes elsewhere, and the operation needs it"),
    ],
)  # fmt: skip
def test_an_operation_that_cant_be_sent_is_shown_and_says_why(
    bench: Bench, http: str, operation: dict[str, Any], path: str, why: str
) -> None:
    raw = document({path: {http: {"operationId": "bad", **operation}}})
    raw["components"]["securitySchemes"] = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    report = bench.put(raw)
    made = bench.catalog.service("things").methods["bad"]
    assert (made.path, made.parameters["properties"]) == (path, {})
    assert why in made.unsupported
    assert any(why in one for one in problems(report))
    assert "can't be called through GoEx" in bench.check(made, {"i": "x"})


def test_a_path_of_names_side_by_side_cant_be_called(bench: Bench) -> None:
    parameters = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in "ab"]
    made = bench.method(document({"/x/{a}{b}": {"get": {"parameters": parameters}}}))
    assert "side by side" in made.unsupported


def test_operations_at_one_path_are_told_apart_by_what_stands_behind_it(bench: Bench) -> None:
    """A query's names are the query's, whatever place they are said to have; words behind # aren't sent."""
    place = [{"name": name, "in": "path", "required": True, "schema": {"type": "number"}} for name in ("lat", "lon")]
    city = [{"name": "city", "in": "query", "required": True, "schema": TEXT}, NAMED]
    paths = {
        "/now?lat={lat}&lon={lon}": {"get": {"operationId": "here", "parameters": place}},
        "/now?city={city}": {"get": {"operationId": "there", "parameters": city}},
        "/now#all": {"get": {"parameters": [NAMED]}},
    }
    assert bench.put(document(paths)).problems == ()
    methods = bench.catalog.service("things").methods
    assert {name: (one.path, one.unsupported, one.parameters["required"]) for name, one in methods.items()} == {
        "here": ("/now", "", ["lat", "lon"]),
        "there": ("/now", "", ["city"]),
        "now.all.get": ("/now", "", []),
    }
    assert dict(methods["here"].locations) == {"lat": "query", "lon": "query"}
    assert "lon" in bench.check(methods["here"], {"lat": 1})


def test_operations_at_one_path_are_as_bad_as_the_worst(bench: Bench) -> None:
    """A program that was allowed the read could send the write: nothing in the request tells them apart."""
    paths = {
        "/notes#search": {"post": {"operationId": "search"}},
        "/notes": {"post": {"operationId": "add"}},
        "/tags#purge": {"post": {}},
        "/tags#search": {"post": {"operationId": "searchTags"}},
        "/lists#search": {"post": {"operationId": "searchLists"}},
    }
    bench.put(document(paths))
    risks = {name: one.risk for name, one in bench.catalog.service("things").methods.items()}
    assert risks == {
        "search": Risk.WRITE, "add": Risk.WRITE, "searchTags": Risk.DELETE, "tags.purge.post": Risk.DELETE,
        "searchLists": Risk.READ,
    }  # fmt: skip


def _path_named(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


_COOKIE = {"name": "c", "in": "cookie", "required": True, "schema": TEXT}
_ACTION = {"name": "action", "in": "query", "schema": {"$ref": "#/components/schemas/Act"}}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("path", "own", "other", "operation"),
    [
        ("/tags/{id}", {"parameters": [_path_named("id")]}, "/tags/{tag}#purge", {"parameters": [_path_named("tag")]}),
        ("/tags/{id}", {"parameters": [_path_named("id")]}, "/tags/{tag}/#purge", {"parameters": [_path_named("tag")]}),
        ("/tags/", {}, "/tags#purge", {}),
        ("/tags", {}, "/tags#purge", {"parameters": [_COOKIE]}),  # that can't be sent
        ("/tags", {}, "/tags#x", {"parameters": [_COOKIE, _ACTION]}),
        ("/tags", {}, "/tags#purge", {"parameters": [{"in": "query", "required": True}]}),  # nor read
        ("/tags", {}, "/tags#purge", {"security": "none"}),
        ("/tags", {}, "/tags?mode=purge", {}),
        ("/tags", {}, "/tags?mode=purge#{x}/y", {}),
        ("/tags", {}, "/tags?purge={purge}", {"parameters": [_path_named("purge")]}),
        ("/tags", {}, "/tags?purge={purge}&all={all}", {}),
        ("/tags", {}, "tags#purge", {}),
        ("/tags/a=b", {}, "/tags/a=b#purge", {}),
    ],
)
def test_a_place_is_what_is_sent_there(bench: Bench, path: str, own: Any, other: str, operation: Any) -> None:
    """Whatever its names are called, and whatever stands behind it, read or not."""
    paths = {path: {"get": {"operationId": "showTag", **own}}, other: {"get": operation}}
    bench.put(document(paths, {"Act": {"type": "string", "enum": ["purge"]}}))
    assert bench.catalog.service("things").methods["showTag"].risk is Risk.DELETE


def test_a_query_that_names_a_change_is_one(bench: Bench) -> None:
    asks = ("/cache?purge={purge}", "/session?logout={logout}", "/posts?sort={sort}&remove_all={remove_all}")
    paths = {
        path: {"get": {"parameters": [{"name": name, "in": "query", "required": True, "schema": TEXT}
                                      for name in re.findall(r"{(.*?)}", path)]}}
        for path in (*asks, "/now?lat={lat}&lon={lon}", "/now?search={search}")
    }  # fmt: skip
    paths["/notes?search={search}"] = {"post": {}}  # and one that names a question is none by that alone
    paths["/notes#search"] = {"post": {}}
    paths |= {"/a&b": {"get": {}}, "/a&c#purge": {"get": {}}}  # these signs are a path's own there
    bench.put(document(paths))
    risks = {name: one.risk for name, one in bench.catalog.service("things").methods.items()}
    assert risks == {
        "cache.purge.get": Risk.DELETE, "session.logout.get": Risk.WRITE, "posts.sort.remove_all.get": Risk.DELETE,
        "now.lat.lon.get": Risk.READ, "now.search.get": Risk.READ, "notes.search.post": Risk.WRITE,
        "notes.search.post_2": Risk.WRITE, "a_b.get": Risk.READ, "a_c.purge.get": Risk.DELETE,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["_method", "$httpMethod", "_Charset_", "_method[x]", "_http[method"])
def test_what_makes_another_request_of_it_is_no_argument(bench: Bench, name: str) -> None:
    listed = {"name": name, "in": "query", "schema": TEXT}
    form = {"type": "object", "properties": {"a": TEXT, name: TEXT}}
    body = {"content": {"application/x-www-form-urlencoded": {"schema": form}}}
    made = bench.method(document({"/a": {"post": {"parameters": [listed], "requestBody": body}}}))
    assert list(made.parameters["properties"]) == ["a"] and not made.unsupported
    made = bench.method(document({"/a": {"get": {"parameters": [{**listed, "required": True}]}}}))
    assert "isn't a name that is sent" in made.unsupported


def test_no_undo_is_derived_from_one_of_several_operations_at_a_path() -> None:
    raw = notes.document("notes")
    alone, _ = openapi.read_document(raw, "notes", "notes.json", "")
    raw["paths"]["/notes/{id}#again"] = raw["paths"]["/notes/{id}"]
    among, _ = openapi.read_document(raw, "notes", "notes.json", "")
    assert alone is not None and among is not None
    assert len(among.methods) > len(alone.methods) and not any(one.unsupported for one in among.methods)
    # What stands there besides can't be told from it, so that nothing is undone by it, either.
    assert {id for id in alone.undos if "{id}" in id} and not among.undos
    raw = notes.document("notes")
    raw["paths"]["/notes/{note}/"] = {"delete": {"parameters": [_path_named("note")]}}
    among, _ = openapi.read_document(raw, "notes", "notes.json", "")
    assert among is not None and "DELETE /notes/{id}" not in among.undos and "PATCH /notes/{id}" in among.undos


def test_a_body_of_no_kind_is_left_out_where_it_isnt_needed(bench: Bench) -> None:
    raw = document({"/a": {"post": {"operationId": "go", "requestBody": {"content": {}}}}, "/good": {"get": {}}})
    report = bench.put(raw)
    assert bench.catalog.service("things").methods["go"].body == "none"
    assert [one.what for one in report.problems] == ["left out: a body of no kind"]
    raw["paths"]["/a"]["post"]["requestBody"]["required"] = True
    bench.put(raw)
    assert bench.callable() == ["good.get"]


def test_webhooks_alone_are_nothing_to_call(bench: Bench) -> None:
    with pytest.raises(install.Nothing) as caught:
        bench.put(document({}, webhooks={"paid": {"post": {"responses": {}}}}))
    assert "has no operation; webhooks are sent by the service" in caught.value.details[0]


def test_forms(bench: Bench) -> None:
    schema = {"type": "object", "required": ["a"], "properties": {
        "a": TEXT, "b": {"type": "array", "items": TEXT}, "c": {"type": "object"},
    }}  # fmt: skip
    body = {"content": {"application/x-www-form-urlencoded": {"schema": schema}}}
    made = bench.method(document({"/a": {"post": {"requestBody": body}}}))
    assert (made.body, dict(made.locations)) == ("form", {"a": "body", "b": "body"})
    assert made.parameters["required"] == ["a"]


def test_swagger_2(bench: Bench) -> None:
    raw = {
        "swagger": "2.0",
        "info": {"title": "Old API", "version": "0.9"},
        "host": "old.example.com",
        "basePath": "/v2",
        "schemes": ["http", "https"],
        "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "api key"},
                                "o": {"type": "oauth2", "flow": "implicit", "scopes": {"w": "Write"}}},
        "definitions": {"Pet": {"type": "object", "properties": {"name": TEXT}}},
        "paths": {
            "/pets": {"post": {"operationId": "add", "security": [{"o": ["w"]}],
                               "parameters": [{"in": "body", "name": "pet", "required": True,
                                               "schema": {"$ref": "#/definitions/Pet"}}]},
                      "get": {"operationId": "find", "security": [{"o": ["w"]}], "parameters": [
                          {"in": "query", "name": "many", "type": "array", "items": TEXT, "collectionFormat": "multi"},
                          {"in": "query", "name": "csv", "type": "array", "items": TEXT}]}},
            "/pets/{id}": {"post": {"operationId": "form", "security": [{"o": ["w"]}], "parameters": [
                {"in": "path", "name": "id", "type": "integer", "required": True},
                {"in": "formData", "name": "status", "type": "string"}]}},
            "/up": {"post": {"operationId": "up", "security": [{"o": ["w"]}],
                             "parameters": [{"in": "formData", "name": "f", "type": "file"}]}},
        },
    }  # fmt: skip
    report = bench.put(raw)
    assert (report.imported[0].service, [one.what for one in report.problems]) == ("old", [
        "'api key' isn't a header for a credential"])  # fmt: skip
    service = bench.catalog.service("old")
    assert service.base_url == "https://old.example.com/v2"
    assert dict(service.methods["find"].locations) == {"many": "repeat", "csv": "query"}
    assert dict(service.methods["form"].locations) == {"id": "path", "status": "body"}
    assert (service.methods["up"].unsupported, service.methods["up"].body) == ("", "multipart")
    add = service.methods["add"]
    assert (add.scopes, add.parameters["required"]) == (("w",), ["body"])
    assert bench.check(add, {"body": {"name": "Rex"}}) == ""
    assert "extra" in bench.check(add, {"body": {"extra": 1}})


# ---- names


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("operation_id", "name"),
    [
        ("listThings", "listThings"),
        ("repos/list-issues", "repos.list-issues"),
        ("a.b.c", "a.b.c"),
        ("__class__", "class"),
        ("../..", "things.get"),
        ("", "things.get"),
        (None, "things.get"),
        (5, "things.get"),
        ("2fa enable", "op_2fa_enable"),
        ("Ünïcode", "n_code"),
        ("x" * 500, "x" * 200),
    ],
)
def test_names_of_methods(bench: Bench, operation_id: Any, name: str) -> None:
    operation = {} if operation_id is None else {"operationId": operation_id}
    assert bench.method(document({"/things": {"get": operation}})).name == name


def test_operations_with_one_id_get_different_names(bench: Bench) -> None:
    raw = document({f"/{each}": {"get": {"operationId": "same"}} for each in "abc"})
    report = bench.put(raw)
    assert sorted(bench.catalog.service("things").methods) == ["b.get", "c.get", "same"]
    assert len(report.problems) == 2


@pytest.mark.parametrize("title", ["Slack", "SLACK API", "goex", "Code", "files"])
def test_no_document_takes_a_name_of_ours(bench: Bench, title: str) -> None:
    raw = document({"/a": {"get": {}}})
    report = bench.put({**raw, "info": {"title": title, "version": "1"}})
    assert report.imported[0].service.startswith("openapi-")
    with pytest.raises(InvalidInput, match="taken"):
        bench.put(raw, title.split()[0])


def test_importing_again_replaces_and_elsewhere_is_refused(bench: Bench) -> None:
    bench.put(document({"/a": {"get": {}}}))
    newer = {**document({"/b": {"get": {}}}), "info": {"title": "Things", "version": "2"}}
    report = bench.put(newer)
    assert report.imported[0].service == "things"
    assert list(bench.catalog.service("things").methods) == ["b.get"]
    elsewhere = {**document({"/c": {"get": {}}}), "servers": [{"url": "https://evil.example.com"}]}
    with pytest.raises(Conflict, match=r"https://things\.example\.com"):
        bench.put(elsewhere)
    with pytest.raises(Conflict, match="no address"):
        bench.put({**elsewhere, "servers": []})
    assert list(bench.catalog.service("things").methods) == ["b.get"]
    assert bench.put(elsewhere, "other").imported[0].service == "other"
    assert {name for name in bench.catalog.services if name not in Catalog.bundled().services} == {"other", "things"}


# ---- schemas


def body(bench: Bench, schema: Any, schemas: Any = None, **more: Any) -> Method:
    return bench.method(sending(schema, schemas, **more))


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, [None, "x"], [1]),
        ({"type": ["string", "null"]}, [None, "x"], [1]),
        ({"type": "string", "enum": ["a"], "nullable": True}, [None, "a"], ["b"]),
        ({"type": "integer", "exclusiveMinimum": 3}, [4], [3]),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, [4], [3]),
        ({"type": "number", "exclusiveMaximum": 3}, [2.9, 3], [4]),
        ({"oneOf": [TEXT, {"type": "integer"}]}, ["x", 1], [[]]),
        ({"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]}, [None, {"x": "1"}], [{"y": 1}, 1]),
        ({"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"y": TEXT}, "required": ["y"]}]},
         [{"x": "1", "y": "2"}], [{"x": "1"}, {"y": "2", "z": "3"}]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "x"}]),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": True}, [{"b": 1}], [{"a": 1}]),
        ({"type": "object", "properties": {"a": TEXT}}, [{}, {"a": "x"}], [{"b": 1}]),
        ({"type": "object"}, [{"b": 1}], [[]]),
        ({"properties": {"id": {"readOnly": True, "type": "integer"}, "n": TEXT}, "required": ["id", "n"]},
         [{"n": "x"}], [{}]),
        ({"type": "object", "properties": {"k": TEXT}, "oneOf": [
            {"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}, "required": ["b"]}]},
         [{"k": "x", "a": "y"}, {"b": "z"}], [{"k": "x"}]),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[1, 2]], [[1, 2, 3], ["x"]]),
        ({"const": 7}, [7], [8]),
        ({"$ref": "#/components/schemas/A", "nullable": True}, [None, {}], [5]),
        ({"type": "string", "pattern": "^[a-z]+$"}, ["abc"], ["ABC"]),
        ({"type": "string", "pattern": "b"}, ["abc"], ["ac"]),
        ({}, [1, "x", None, {}], []),
        (True, [1, "x"], []),
    ],
)  # fmt: skip
def test_what_a_schema_allows(bench: Bench, schema: Any, good: list[Any], bad: list[Any]) -> None:
    method = body(bench, schema, {"A": {"type": "object", "properties": {"x": TEXT}}})
    for value in good:
        assert bench.check(method, {"body": value}) == "", value
    for value in bad:
        assert bench.check(method, {"body": value}), value


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string", "pattern": r"^\p{L}+$"}, "pattern"),
        ({"type": "string", "pattern": "(a+)+$"}, "pattern"),
        ({"type": "string", "pattern": "[a-z]+x"}, "pattern"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "patternProperties"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "array", "prefixItems": [TEXT]}, "prefixItems"),
        ({"type": "array", "items": [TEXT]}, "items of several kinds"),
        ({"type": "integer", "multipleOf": 5}, "multipleOf"),
        ({"oneOf": [TEXT, TEXT]}, "oneOf"),
        ({"oneOf": [TEXT], "discriminator": {"propertyName": "x"}}, "discriminator"),
        ({"if": {}, "then": {}}, "if; then"),
    ],
)
def test_what_cant_be_said_is_loosened_and_told(bench: Bench, schema: Any, said: str) -> None:
    method = body(bench, schema)
    found = [one.what for one in lint(bench.catalog, method.service) if one.kind == "loosened"]
    assert len(found) == 1
    assert said in found[0]


def test_a_schema_that_holds_itself_stays_one(bench: Bench) -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/T"}}}}
    method = body(bench, {"$ref": "#/components/schemas/T"}, {"T": tree})
    assert method.parameters["$defs"].keys() == {"T"}
    assert bench.check(method, {"body": {"kids": [{"kids": []}]}}) == ""
    wrong = bench.check(method, {"body": {"kids": [{"kids": [{"x": 1}]}]}})
    assert wrong == 'things.send: "x" isn\'t an argument that is known here. It takes [body].'


def test_a_field_of_the_body_is_said_to_be_one(bench: Bench) -> None:
    method = body(bench, {"type": "object", "properties": {"title": TEXT, "shelf": TEXT}})
    wrong = bench.check(method, {"title": "Dune", "shelf": "A1"})
    assert '"shelf", "title" aren\'t arguments that are known here; did you mean "body.shelf", "body.title"?' in wrong
    assert "did you mean" not in bench.check(method, {"body": {"body": "x"}})


GET = {"get": {"responses": {"200": {"description": "ok"}}}}


@pytest.mark.parametrize(
    "paths", [{"/a": {"$ref": "./a.yaml"}, "/b": None}, {"/a": {"get": None}}, {"/a": {"get": {}, "$ref": "#/nope"}}]
)
def test_a_document_of_which_no_operation_is_known_is_refused(paths: dict[str, Any]) -> None:
    made, problems = openapi.read_document(document(paths), "things", "things.json", "")
    assert made is None and problems
    beside, again = openapi.read_document(document(paths | {"/z": GET}), "things", "things.json", "")
    assert beside is not None and len(beside.methods) == len(paths) + 1
    assert len(again) == len(problems)


def test_what_can_not_be_read_takes_no_name_from_what_can(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    gone = {"delete": GET["get"]}
    bench.put(document({"": GET, "/": GET, "/a": {"$ref": "./a.yaml"}, "/a/": gone, "/b": {"delete": 5}, "/b/": gone}))
    methods = bench.catalog.service("things").methods
    assert {name: one.path for name, one in methods.items() if not one.unsupported} == {
        "get": "/", "a.delete": "/a/", "b.delete": "/b/",
    }  # fmt: skip
    assert {"get_2", "a.delete_2", "b.delete_2"} < set(methods)


def test_a_path_that_no_server_takes_is_not_kept() -> None:
    made, problems = openapi.read_document(document({"/ok": GET, "/" + "b" * 30_000: GET}), "things", "", "")
    assert made is not None and [each.path for each in made.methods] == ["/ok"] and len(problems) == 1


def test_why_something_can_not_be_read_is_one_sentence() -> None:
    odd = {"get": {**GET["get"], "security": "nope"}, "put": {**GET["get"], "security": [5]}, "post": 5}
    lost = {"$ref": "#/nope"}
    made, _ = openapi.read_document(document({"/a": odd, "/b": None, "/c/{id}": lost, "/ok": GET}), "things", "", "")
    assert made is not None
    said = {each.origin_id: each.unsupported for each in made.methods}
    assert said.pop("GET /ok") == "" and said["DELETE /c/{id}"] == "refers to '#/nope', which isn't there."
    assert len(said) == 5 and all(re.fullmatch(r".*[^.]\.", each) for each in said.values()), said
