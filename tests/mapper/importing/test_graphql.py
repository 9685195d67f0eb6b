"""GraphQL schemas as services: root fields as methods, the documents that are printed for them, what is left out."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, build_schema, parse, validate
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing import graphql_documents, install
from mapper.importing.install import Nothing
from mapper.store.blobs import pack, unpack
from policies.actions import Call
from policies.errors import Conflict, GoexError, InvalidInput
from policies.services import Risk, believed_risk
from tests.mapper.importing.graphql_schemas import ENDPOINT, READER, SHOP, TRACKER, introspected, put


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search index is made over all services, ours too; nothing here searches, so it isn't made."""
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def checked(catalog: Catalog, method: str, **arguments: Any) -> str:
    try:
        catalog.validate(Call(service="tracker", method=method, arguments=arguments, account=""))
    except GoexError as error:
        return str(error)
    return ""


# ---- methods


@pytest.mark.promise(12)
def test_a_query_whose_argument_says_what_is_done_is_a_change(tmp_path: Path) -> None:
    fields = "box(action: Act): Int  boxes(actions: [Act!]!): Int  show(kind: Act): Int"
    schema = f"enum Act {{ SHOW PURGE }} type Query {{ {fields} }}"
    _, catalog = put(tmp_path, schema)
    service = catalog.service("tracker")
    assert {name: believed_risk(service, method) for name, method in service.methods.items()} == {
        "box": Risk.DELETE, "boxes": Risk.DELETE, "show": Risk.READ,
    }  # fmt: skip


def test_root_fields_become_methods(tmp_path: Path) -> None:
    report, catalog = put(tmp_path, TRACKER)
    service = catalog.service("tracker")
    assert service.base_url == "https://tracker.example.com/api"
    assert {(m.http, m.path, m.body) for m in service.methods.values()} == {("POST", "/graphql", "json")}
    assert {name: believed_risk(service, method) for name, method in service.methods.items()} == {
        "issue": Risk.READ, "issues": Risk.READ, "search": Risk.READ, "version": Risk.READ, "node": Risk.READ,
        "accessToken": Risk.ADMIN, "deleteEverything": Risk.DELETE, "createIssue": Risk.WRITE,
        "closeIssue": Risk.WRITE, "deleteIssue": Risk.DELETE, "grantAccess": Risk.ADMIN,
        "mutation.version": Risk.WRITE,
    }  # fmt: skip
    # Each is a permission of its own.
    assert all(method.scopes == (name,) for name, method in service.methods.items())
    assert set(service.scopes) == set(service.methods) and all(scope.virtual for scope in service.scopes.values())
    assert catalog.method("tracker.issue").description == "One issue of a project."
    assert catalog.method("tracker.closeIssue").undo is None
    (left,) = report.problems
    assert (left.where, left.what) == ("Subscription", "its subscriptions (2) aren't imported: GoEx follows none")


@pytest.mark.promise(12)
def test_a_query_that_says_that_it_changes_something_is_no_read(tmp_path: Path) -> None:
    schema = """type Query {
      "Sends the invoice to the customer and marks it as sent."
      sendInvoice(id: ID!): Boolean
      "Marks notifications as read."
      markNotificationsRead: Boolean
      revokeToken(id: ID!): Boolean
      thing(id: ID!, delete: Boolean): String
      "A list of releases."
      releases(first: Int, includeDeleted: Boolean): [String]
      "Look up an archive."
      archive(id: ID!): String
    }"""
    _, catalog = put(tmp_path, schema)
    service = catalog.service("tracker")
    assert {name: believed_risk(service, method) for name, method in service.methods.items()} == {
        "sendInvoice": Risk.WRITE, "markNotificationsRead": Risk.WRITE, "revokeToken": Risk.ADMIN,
        "thing": Risk.DELETE, "releases": Risk.READ, "archive": Risk.READ,
    }  # fmt: skip


@pytest.mark.parametrize("text", [TRACKER, SHOP, READER], ids=["tracker", "shop", "reader"])
@pytest.mark.parametrize("bare", [False, True])
def test_an_introspection_says_the_same(tmp_path: Path, text: str, bare: bool) -> None:
    for folder in ("sdl", "json"):
        (tmp_path / folder).mkdir()
    _, one = put(tmp_path / "sdl", text)
    _, other = put(tmp_path / "json", introspected(text, bare=bare), "schema.json")
    assert {**one.service("tracker").methods} == {**other.service("tracker").methods}


@pytest.mark.parametrize("text", [TRACKER, SHOP, READER], ids=["tracker", "shop", "reader"])
def test_each_document_is_valid_and_one_operation_with_one_root_field(tmp_path: Path, text: str) -> None:
    schema = build_schema(text, assume_valid=True)
    _, catalog = put(tmp_path, text)
    for method in catalog.service("tracker").methods.values():
        parsed = parse(method.document)
        assert method.unsupported or not validate(schema, parsed), method.document
        (operation,) = parsed.definitions
        assert isinstance(operation, OperationDefinitionNode)
        assert f"{operation.operation.value}.{operation.selection_set.selections[0].name.value}" == method.origin_id  # type: ignore[attr-defined]
        assert len(operation.selection_set.selections) == 1


def test_a_document_asks_for_the_plain_values_nearby(tmp_path: Path) -> None:
    _, catalog = put(tmp_path, TRACKER)
    assert catalog.method("tracker.version").document == "query version {\n  version\n}"
    assert (
        catalog.method("tracker.createIssue").document
        == """\
mutation createIssue($input: CreateIssueInput!) {
  createIssue(input: $input) {
    issue {
      id
      number
      title
      body
      state
      createdAt
      author {
        __typename
        login
        avatarUrl
      }
      parent {
        id
        number
        title
        body
        state
        createdAt
      }
      labels {
        name
      }
    }
    errors {
      field
      message
    }
  }
}"""
    )
    # A connection's items, not its edges; a variable with a default may be left out.
    issues = catalog.method("tracker.issues").document
    assert issues.startswith("query issues($project: String!, $first: Int, $state: State, $filter: IssueFilter) {")
    assert "    nodes {\n      id\n" in issues and "pageInfo {\n      hasNextPage" in issues
    assert "edges" not in issues and "comments" not in issues
    # A union by its members; what two of them have with different types is asked for once.
    search = catalog.method("tracker.search").document
    assert all(f"... on {name} {{" in search for name in ("Issue", "User", "Label"))
    assert "rendered" not in search and "secretOf" not in search and "old" not in search


def test_a_document_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = " ".join(f"f{n}: String!  o{n}: Thing" for n in range(2000))
    text = f"type Query {{ thing: Thing }} type Thing {{ {many} }}"
    _, catalog = put(tmp_path, text)
    document = catalog.method("tracker.thing").document
    assert document.count("\n") < graphql_documents.MAX_VALUES + 2 * graphql_documents.MAX_OBJECTS + 5
    assert "f0" in document


# ---- arguments


@pytest.mark.sampled(14)
@pytest.mark.parametrize(
    ("method", "arguments", "wrong"),
    [
        ("issue", {"project": "a", "number": 1}, ""),
        ("issue", {"project": "a"}, "number"),
        ("issue", {"project": "a", "number": "1"}, "number"),
        ("issue", {"project": None, "number": 1}, "project"),
        ("issue", {"project": "a", "number": 2**31}, "number"),
        ("issue", {"project": "a", "number": 1, "id": 3}, "id"),
        ("issues", {"project": "a"}, ""),
        ("issues", {"project": "a", "first": None, "state": "OPEN"}, ""),
        ("issues", {"project": "a", "state": "open"}, "state"),
        ("issues", {"project": "a", "filter": {"and": [{"state": "CLOSED", "not": {"labels": ["x"]}}]}}, ""),
        ("issues", {"project": "a", "filter": {"and": [{"state": "CLOSED", "not": {"labels": [None]}}]}}, "filter"),
        ("issues", {"project": "a", "filter": {"and": [{"nothing": 1}]}}, "filter"),
        ("createIssue", {"input": {"project": "a", "title": "x"}}, ""),
        ("createIssue", {"input": {"project": "a"}}, "title"),
        ("createIssue", {"input": {"project": "a", "title": "x", "weight": 1.5, "body": None}}, ""),
        ("closeIssue", {"number": 1}, ""),
        ("node", {"id": "x"}, ""),
        ("node", {"id": 7}, ""),
    ],
)  # fmt: skip
def test_arguments_are_checked(tmp_path: Path, method: str, arguments: dict[str, Any], wrong: str) -> None:
    _, catalog = put(tmp_path, TRACKER)
    said = checked(catalog, method, **arguments)
    assert wrong in said if wrong else not said, said


def test_shops(tmp_path: Path) -> None:
    report, catalog = put(tmp_path, SHOP)
    assert not checked(catalog, "product", by={"id": "1"})
    assert "by" in checked(catalog, "product", by={"id": "1", "slug": "x"})
    assert not checked(catalog, "products", ids=["1"], sort="NONE")  # from an extension
    assert [(one.where, one.what) for one in report.problems] == [("Query._service", "can't be a method's name")]
    assert "is a file" in checked(catalog, "setImage", id="1")
    assert list(catalog.method("tracker.setNote").parameters["properties"]) == ["id", "note"]


# ---- what can't be taken


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type Query { a: }", "schema.graphql:1: isn't a GraphQL schema"),
        ("type Thing { a: Int }", "has neither a type Query nor a type Mutation"),
        ("{ viewer { login } }", "schema.graphql"),
        ("query { viewer { login } }", "has neither a type Query"),
        ("", "schema.graphql"),
        ('{"data": null}', "isn't the answer to an introspection query"),
        ('{"errors": [{"message": "off"}]}', "isn't the answer to an introspection query"),
        ('{"__schema": {"types": 7}}', "isn't the answer to an introspection query"),
        ("schema { subscription: S } type S { a: Int }", "has neither a type Query"),
        (f"type Query {{ a: {'[' * 5000}Int{']' * 5000} }}", "schema.graphql"),
        (f"type Query {{ a: {'[' * 12}Int{']' * 12} }}", "has a type with more than 8 lists around it"),
        (f"type Query {{ a(x: Int = {'[' * 20_000}): Int }}", "schema.graphql"),
    ],
    ids=range(12),
)
def test_what_is_no_schema_is_an_error_that_says_so(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises((Nothing, InvalidInput)) as raised:
        put(tmp_path, text)
    assert any(said in line for line in getattr(raised.value, "details", ())), raised.value.details
    assert raised.value.next_step


EVIL = ["x){a} mutation y{z", "a b", "a\n}\nmutation b{c", "", "a#", "é", "1a", "$zz", "a" * 500]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_that_is_none_is_never_printed(tmp_path: Path, name: str) -> None:
    """In an introspection a name is any text; one that isn't a name could end the document that it is printed into."""
    plain = {"kind": "SCALAR", "name": "Int"}

    def field(own: str, **more: Any) -> dict[str, Any]:
        return {"name": own, "args": [], "type": plain, **more}

    types = [
        {"kind": "OBJECT", "name": "Query", "fields": [
            field("good", type={"kind": "OBJECT", "name": "Thing"}), field(name),
            field("argued", args=[{"name": name, "type": plain}]),
            field("typed", args=[{"name": "a", "type": {"kind": "INPUT_OBJECT", "name": name}}]),
            field("picked", args=[{"name": "a", "type": {"kind": "ENUM", "name": "E"}}]),
            field("either", type={"kind": "UNION", "name": "U"}),
        ]},
        {"kind": "OBJECT", "name": "Thing", "fields": [field(name), field("fine")]},
        {"kind": "OBJECT", "name": name, "fields": [field("a")]},
        {"kind": "UNION", "name": "U", "possibleTypes": [{"name": name}]},
        {"kind": "ENUM", "name": "E", "enumValues": [{"name": name}]},
    ]  # fmt: skip
    _, catalog = put(tmp_path, json.dumps({"__schema": {"queryType": {"name": "Query"}, "types": types}}), "s.json")
    methods = catalog.service("tracker").methods
    assert catalog.method("tracker.good").document == "query good {\n  good {\n    fine\n  }\n}"
    for method in methods.values():
        assert not name or name not in method.document
        assert len(parse(method.document).definitions) == 1
    assert "argued" not in methods and "typed" not in methods


@given(st.text(max_size=200))
def test_whatever_is_given_ends_in_a_report_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    from mapper.importing.document_files import Source
    from mapper.importing.import_report import BadPart
    from mapper.importing.readers import read_graphql

    try:
        read_graphql(Source("s.graphql", text, ""), "s", ENDPOINT)
    except BadPart:
        return


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "type Query {" + " ".join(f"f{n}: T{n}" for n in range(5000)) + "}"
        + "".join(f"type T{n} {{a: T{n + 1} b: T{n} c: Int}}" for n in range(5_000)),
        "type Query {a(i: I0): Int}" + "".join(f"input I{n} {{a: I{n + 1} b: [I{n}!]}}" for n in range(5_000)),
        "type Query { a: Int } # " + "x" * 10_000_000,
        "type Query {" + " ".join(f"f{n}(a: E): Int" for n in range(200)) + "} enum E {"
        + " ".join(f"V{n}" for n in range(200_000)) + "}",
    ],
    ids=["types", "inputs", "a comment", "an enum"],
)  # fmt: skip
def test_large_schemas_end_within_what_one_document_may_cost(tmp_path: Path, text: str) -> None:
    """The reader's process is ended at its bounds; these end well before, with all that can be taken."""
    report, catalog = put(tmp_path, text)
    assert report.imported[0].methods >= 1
    assert not checked(catalog, "a") or "f0" in catalog.service("tracker").methods


@pytest.mark.parametrize(
    ("endpoint", "base_url", "path"),
    [
        ("https://a.example/graphql", "https://a.example", "/graphql"),
        ("https://a.example", "https://a.example", "/"),
        ("https://a.example/", "https://a.example", "/"),
        ("https://a.example/admin/api/2026-01/graphql.json", "https://a.example/admin/api/2026-01", "/graphql.json"),
        ("https://a.example/graphql/", "https://a.example/graphql", "/"),
        ("http://127.0.0.1:8000/graphql", "http://127.0.0.1:8000", "/graphql"),
    ],
)
def test_the_endpoint_is_the_persons(tmp_path: Path, endpoint: str, base_url: str, path: str) -> None:
    _, catalog = put(tmp_path, READER, endpoint=endpoint)
    assert (catalog.service("tracker").base_url, catalog.method("tracker.me").path) == (base_url, path)


@pytest.mark.parametrize(
    "endpoint", ["", "a.example/graphql", "http://a.example/graphql", "https://a.example/graphql?x=1", "https://u:p@a.example/g",
                 "https://a.example/../g", "ftp://a.example/g", "https://a.example/{x}"],
)  # fmt: skip
def test_an_endpoint_that_cant_be_one(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        put(tmp_path, READER, endpoint=endpoint)
    assert "--endpoint" in raised.value.next_step


def test_its_name_is_the_endpoints_and_it_isnt_moved(tmp_path: Path) -> None:
    report, _ = put(tmp_path, READER, name="")
    assert report.imported[0].service == "tracker_example_com"
    put(tmp_path, TRACKER, name="")
    with pytest.raises(Conflict):
        put(tmp_path, READER, endpoint="https://evil.example.com/graphql", name="tracker_example_com")


# ---- what is in the catalog's file


@pytest.mark.parametrize(
    "document",
    [
        "query me { me { name } } mutation x { y }",
        "query me {\n  me\n}\nmutation x {\n  y\n}",
        "query me {\n  me\n  you\n}",
        "query me {\n  me {\n    name\n  }\n  you {\n    name\n  }\n}",
        "query me {\n  me {\n    name\n    }\n  }\n}",
        "query me {\n  other: me\n}",
        'query me {\n  me(id: "x")\n}',
        "subscription me {\n  me\n}",
        "{ me }",
        7,
        "",
    ],
)
def test_a_document_that_isnt_one_operation_isnt_read(tmp_path: Path, document: Any) -> None:
    """Whoever wrote into the catalog's file can't have a mutation pass as a read."""
    put(tmp_path, READER)
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        ((id, blob),) = db.execute(
            "SELECT m.id, b.data FROM method m JOIN blob b ON b.id = m.detail WHERE m.name = 'me'"
        ).fetchall()
        detail = unpack(blob)
        assert detail["document"].startswith("query me {\n  me {\n")
        number, data = pack({**detail, "document": document})
        db.execute("INSERT INTO blob VALUES (?, ?)", (number, data))
        db.execute("UPDATE method SET detail = ? WHERE id = ?", (number, id))
    with pytest.raises(GoexError):
        Catalog.open(tmp_path / "catalog.db").method("tracker.me")


def test_the_document_is_part_of_what_a_grant_is_bound_to(tmp_path: Path) -> None:
    _, catalog = put(tmp_path, READER)
    before = catalog.entry_hash(["tracker.me"])
    _, catalog = put(tmp_path, READER.replace("type Person {", "type Person { secret: String! "))
    assert catalog.entry_hash(["tracker.me"]) != before
