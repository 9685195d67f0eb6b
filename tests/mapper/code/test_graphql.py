"""GraphQL documents in programs: which are taken as calls of an imported service's methods, and why others aren't."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.code import method_match
from mapper.code.found_calls import Finding
from mapper.code.graphql_documents import NotTaken, read
from mapper.code.method_finder import find
from mapper.importing import install
from tests.mapper.importing.graphql_schemas import TRACKER, put

URL = "https://tracker.example.com/api/graphql"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        _, made = put(tmp_path_factory.mktemp("schema"), TRACKER)
    return made


def look(catalog: Catalog, program: str, language: str = "python") -> Finding:
    return find(language, program, catalog, ("tracker",))  # type: ignore[arg-type]


def posting(body: str, url: str = URL) -> str:
    return f"import requests\nrequests.post({url!r}, json={body})\n"


def of(document: str) -> str:
    return posting(f"{{'query': {document!r}}}")


ISSUE = 'query($n: Int!) { issue(project: "a", number: $n) { id title author { login } } }'


@pytest.mark.promise(52)
@pytest.mark.parametrize(
    ("document", "methods"),
    [
        (ISSUE, ["issue"]),
        ("{ version }", ["version"]),
        ("{ __typename version }", ["version"]),
        ("{ v: version, w: version }", ["version"]),
        ("{ version issue(project: \"a\", number: 1) { number } }", ["issue", "version"]),
        ("{ ...F } fragment F on Query { version }", ["version"]),
        ("{ ... on Query { version } }", ["version"]),
        ("{ issues(project: \"a\") { nodes { id ...I } totalCount } } fragment I on Issue { __typename }", ["issues"]),
        ("{ search(query: \"x\") { edges { node { ... on Issue { title } ... on User { login } } } } }", ["search"]),
        ("query Q($b: Boolean!) { version @include(if: $b) }", ["version"]),
        ("mutation { createIssue(input: {project: \"a\", title: \"x\"}) { issue { id } } }", ["createIssue"]),
        ("mutation { made: createIssue(input: {project: \"a\", title: \"x\"}) { issue { id } } }", ["createIssue"]),
        ("mutation { version }", ["mutation.version"]),
    ],
)  # fmt: skip
def test_a_written_document_is_a_call_of_its_root_fields(catalog: Catalog, document: str, methods: list[str]) -> None:
    found = look(catalog, of(document))
    assert sorted(call.method_id for call in found.calls) == [f"tracker.{name}" for name in methods], found.unknown
    assert found.unknown == ()
    assert {call.fields["query"] for call in found.calls} == {document}


@pytest.mark.promise(52)
@pytest.mark.parametrize(
    ("document", "why"),
    [
        # A root field doesn't confine: its answer leads on.
        ("{ issue(project: \"a\", number: 1) { comments { nodes { text } } } }", "issue.comments.nodes.text"),
        ("{ issue(project: \"a\", number: 1) { x: rendered(theme: \"t\") } }", "issue.rendered"),
        ("{ issue(project: \"a\", number: 1) { title: old } }", "issue.old"),
        ("{ issue(project: \"a\", number: 1) { author { ... on User { email } } } }", "issue.author.email"),
        ("{ issue(project: \"a\", number: 1) { ...F } } fragment F on Issue { parent { parent { parent { id } } } }",
         "issue.parent.parent.parent.id"),
        ("{ version: deleteSomething }", "the query deleteSomething"),
        ("mutation { deleteIssue(number: 1) deleteIssue2: deleteIssue(number: 2) }", "exactly one mutation"),
        ("mutation { a: deleteIssue(number: 1) ...F } fragment F on Mutation { version }", "exactly one mutation"),
        ("mutation { issue(project: \"a\", number: 1) { id } }", "the mutation issue"),
        ("query a { version } mutation b { deleteIssue(number: 1) }", "one operation"),
        ("query a { version } query b { version }", "one operation"),
        ("subscription { issueMade { id } }", "a subscription"),
        ("{ __schema { types { name } } }", "the query __schema"),
        ("{ ...F } fragment F on Query { ...F version }", "holds itself"),
        ("{ ...G }", "isn't there"),
        ("{ version @live }", "the directive @live"),
        ("type Query { a: Int }", "one operation"),
        ("{ version", "that can be read"),
        ("", "that can be read"),
        ("{ " + "a " * 5000 + "}", "that can be read"),
        ("{ issue(project: \"a\", number: 1) " + "{ parent " * 50 + "{ id }" + " }" * 51, "nested deeper"),
        ("{ ...F0 } " + " ".join(
            f"fragment F{n} on Query {{ ...F{n + 1} a: __typename ...F{n + 1} }}" for n in range(25)
        ) + " fragment F25 on Query { version }", "more than 2,000 fields"),
    ],
)  # fmt: skip
def test_what_isnt_taken_says_why(catalog: Catalog, document: str, why: str) -> None:
    found = look(catalog, of(document))
    assert found.calls == ()
    assert any(why in one.text for one in found.unknown), found.unknown


@pytest.mark.promise(52)
@pytest.mark.parametrize(
    "program",
    [
        posting(f"[{{'query': {ISSUE!r}}}]"),
        posting(f"[{{'query': {ISSUE!r}}}, {{'query': 'mutation {{ deleteIssue(number: 1) }}'}}]"),
        posting("{'extensions': {'persistedQuery': {'version': 1, 'sha256Hash': '0' * 64}}}"),
        posting(f"{{'query': {ISSUE!r}, 'extensions': {{'persistedQuery': {{'sha256Hash': '0'}}}}}}"),
        posting(f"{{'query': {ISSUE!r}, 'id': 'saved'}}"),
        posting("{'variables': {'n': 1}}"),
        posting("{'query': input()}"),
        posting("{'query': 'query { ' + input() + ' }'}"),
        posting("{}"),
        f"import requests\nrequests.get({URL!r}, params={{'query': {ISSUE!r}}})\n",
        f"import requests\nrequests.post({URL!r}, params={{'query': {ISSUE!r}}}, json={{'query': {ISSUE!r}}})\n",
        f"import requests\nrequests.post({URL!r}, data={{'query': {ISSUE!r}}})\n",
        f"import requests\nrequests.post({URL!r}, data={ISSUE!r}, headers={{'Content-Type': 'application/graphql'}})\n",
    ],
)
def test_what_could_stand_for_another_document_is_no_call(catalog: Catalog, program: str) -> None:
    found = look(catalog, program)
    assert found.calls == ()
    assert any("GraphQL document" in one.text or "GraphQL request" in one.text for one in found.unknown), found.unknown


def test_of_several_documents_each_is_judged(catalog: Catalog) -> None:
    program = (
        "import requests, sys\n"
        "GOOD = '{ version }'\nBAD = '{ issue(project: \"a\", number: 1) { old } }'\n"
        f"for document in (GOOD, BAD):\n    requests.post({URL!r}, json={{'query': document, 'variables': {{}}}})\n"
    )
    found = look(catalog, program)
    assert [(call.method_id, call.fields) for call in found.calls] == [
        ("tracker.version", {"query": "{ version }", "variables": {}})
    ]
    assert len(found.unknown) == 1


def test_a_document_counts_whole_or_not_at_all(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many calls, none of its root fields is left to allow the others."""
    both = '{ version issue(project: "a", number: 1) { number } }'
    for most, kept in ((2, 2), (1, 0)):
        monkeypatch.setattr(method_match, "MAX_CALLS", most)
        found = look(catalog, of(both))
        assert (len(found.calls), len(found.unknown)) == (kept, 0 if kept else 1)


def test_other_languages_and_other_paths(catalog: Catalog) -> None:
    body = json.dumps({"query": "{ version }"})
    shell = f"curl -X POST {URL} -H 'Content-Type: application/json' -d '{body}'\n"
    assert [call.method_id for call in look(catalog, shell, "shell").calls] == ["tracker.version"]
    assert look(catalog, posting("{'query': '{ version }'}", "https://tracker.example.com/api/other")).calls == ()


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read(text)
    except NotTaken:
        return
