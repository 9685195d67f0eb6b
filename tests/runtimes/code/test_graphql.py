"""Programs that use an imported GraphQL service: held to the documents that are written in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_graphql
from mapper.pairs import read_file
from policies.actions import UndoClass
from policies.errors import Unsupported
from policies.grants import Grant, Width
from policies.reversions import NoReversions
from policies.services import Risk
from runtimes.base import Context
from runtimes.code.document_rule import DOCUMENT
from runtimes.code.record import answer_of, arguments_of, permits_of
from runtimes.code.runtime import CodeRuntime
from runtimes.gateway.admission import Admission, AskedHead, Ready
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import Exchange, GatewayPlan, SentRequest
from runtimes.gateway.rule_match import RulePolicy
from runtimes.sandbox.docker import DockerSandbox
from tests.runtimes.code.support import code, plan, rules
from tests.runtimes.rest.graphql_service import SCHEMA, Tracker
from tests.runtimes.rest.support import Bench, account, serving

URL = "https://tracker.example.com/api"
READ = "query($n: Int!) { issue(number: $n) { title author { login } } }"
CHANGE = (
    "mutation($t: String!) { made: createIssue(input: {title: $t}) { issue { ...F } } } fragment F on Issue { number }"
)
BOTH = "{ issue(number: 1) { title } issues { nodes { number } } }"


def program(*documents: str, url: str = URL) -> str:
    lines = [
        f"print(requests.post('{url}/graphql', headers=H, json={{'query': {one!r}, 'variables': V}}).json())"
        for one in documents
    ]
    return "\n".join(
        [
            "import os, requests",
            "H = {'Authorization': 'Bearer ' + os.environ['TRACKER_TOKEN']}",
            "V = {'n': int(os.environ.get('N', '1')), 't': os.environ.get('T', 'made by a program')}",
            *lines,
        ]
    )


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "tracker.graphql").write_text(SCHEMA)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        import_graphql(folder / "catalog.db", folder / "tracker.graphql", f"{URL}/graphql", "tracker")
    yield Catalog.open(folder / "catalog.db")


def planned(catalog: Catalog, *documents: str, **more: Any) -> Any:
    return plan(program(*documents), accounts=(account("tracker", URL),), catalog=catalog, **more)


def test_a_program_is_held_to_its_documents(catalog: Catalog) -> None:
    made = planned(catalog, READ, CHANGE)
    found = rules(made)
    assert set(found) == {"tracker.issue", "tracker.createIssue"}
    for name, document in (("issue", READ), ("createIssue", CHANGE)):
        rule = found[f"tracker.{name}"]
        assert rule["fields"] == {"query": [document], "variables": [], "operationName": []}
        assert (rule["must"], rule["only"], rule["method"], rule["path"]) == (["query"], True, "POST", ["graphql"])
    needs = {(need.service, need.scope): need for need in made.needs}
    assert needs["tracker", "issue"].risk is Risk.READ and needs["tracker", "createIssue"].risk is Risk.WRITE
    assert needs["tracker", "createIssue"].arguments[0][DOCUMENT] == CHANGE
    assert made.undo_class is UndoClass.IRREVERSIBLE and "createIssue can't be taken back" in made.undo_text
    shown = "\n".join(made.lines)
    assert f"{DOCUMENT}: " in shown and "issue(number: $n)" in shown
    assert "variables: whatever the program makes it" in shown


def test_a_document_of_several_queries_needs_each(catalog: Catalog) -> None:
    made = planned(catalog, BOTH)
    assert {need.scope for need in made.needs if need.service == "tracker"} == {"issue", "issues"}
    assert all(rule["fields"]["query"] == [BOTH] for rule in rules(made).values())


def test_what_leads_on_has_no_permit(catalog: Catalog) -> None:
    made = planned(catalog, "{ issue(number: 1) { author { issues { title } } } }")
    assert rules(made) == {}
    assert any("issue.author.issues.title, which isn't among what" in line for line in made.lines), made.lines


def test_a_method_cant_be_named_for_a_program(catalog: Catalog) -> None:
    with pytest.raises(Unsupported, match="can't be named"):
        plan(program(READ), "tracker.issue", accounts=(account("tracker", URL),), catalog=catalog)


@pytest.mark.parametrize("name", ["number", "query", "variables"])
def test_a_grant_for_one_argument_is_none_for_a_document(catalog: Catalog, name: str) -> None:
    """What a document's variables stand for isn't known, so that no value of an argument is claimed."""
    (need,) = [need for need in planned(catalog, READ).needs if need.service == "tracker"]
    from datetime import UTC, datetime

    now = datetime(2026, 1, 1, tzinfo=UTC)
    grant = Grant(
        id="g", agent="a", service="tracker", account="work", scope="issue", width=Width.PERMANENT, created=now,
        expires=None, by="user", why="a-1", constraints={name: READ if name == "query" else 1},
        only=True, free=tuple(set().union(*need.arguments)),
    )  # fmt: skip
    assert not grant.covers(need, agent="a", digest="", session="", now=now)
    assert replace(grant, constraints={}).covers(need, agent="a", digest="", session="", now=now)


def test_no_pair_takes_a_documents_change_back(catalog: Catalog) -> None:
    """A pair is filled from arguments, and what a document sends isn't a method's arguments."""
    text = """
method = "tracker.createIssue"
[undo]
calls = [{ method = "deleteIssue", arguments = { number = "$response.data.createIssue.issue.number" } }]
"""
    (pair,) = read_file(text, "pairs.toml", catalog)

    class Known(NoReversions):
        def pairs(self, service: str, method: str) -> Any:
            return (pair,)

    made = planned(catalog, CHANGE, reversions=Known())
    assert made.undo_class is UndoClass.IRREVERSIBLE
    (permit,) = permits_of(made)
    sent = SentRequest(
        rule="rule-0", slots={}, query=(), body={"query": CHANGE, "variables": {"input": {"title": "x"}}}
    )
    assert arguments_of(sent, permit, catalog) == ({}, False)


@pytest.mark.parametrize(
    ("document", "body", "well", "doubtful"),
    [
        (CHANGE, {"data": {"made": {"issue": {"number": 2}}}}, True, False),
        (CHANGE, {"data": {"made": None}, "errors": [{"message": "late"}]}, False, True),
        (CHANGE, {"errors": [{"message": "refused"}]}, False, False),
        (READ, {"data": {"issue": {"title": "x"}}, "errors": [{"message": "a part"}]}, True, False),
        (READ, {"data": {"issue": None}, "errors": [{"message": "none"}]}, False, True),
    ],
)
def test_what_an_answer_counts_for(catalog: Catalog, document: str, body: Any, well: bool, doubtful: bool) -> None:
    (permit,) = permits_of(planned(catalog, document))
    answer = answer_of(Exchange(request="rule-0#1", status=200, well=True, body=body), permit, catalog)
    assert (answer.well, answer.doubtful) == (well, doubtful)


# ---- run


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    service = Tracker()
    with serving(service, tmp_path, base="/api"):
        yield service


@pytest.mark.docker
async def test_through_the_real_gateway(catalog: Catalog, tracker: Tracker, tmp_path: Path, code_image: str) -> None:
    """The two documents pass; another one, a batch and a stored one, made while it runs, don't."""
    work = account("tracker", tracker.url, ca_pem=tracker.ca_pem, private=True)
    more = "\n".join(
        f"print(requests.post('{tracker.url}/graphql', headers=H, json={body}).status_code)"
        for body in (
            "{'query': open('/proc/self/comm').read()[:0] + 'mutation { deleteIssue(number: 1) { id } }'}",
            f"[{{'query': {READ!r}, 'variables': V}}]",
            f"{{'query': {READ!r}, 'variables': V, 'extensions': {{'persistedQuery': {{'version': 1}}}}}}",
        )
    )
    action = code(f"{program(READ, CHANGE, url=tracker.url)}\n{more}", services=(work.id,))
    gateway = GatewayClient(tmp_path / "gw")
    sandbox = DockerSandbox(f"tests-graphql-{os.getpid()}", scratch_dir=tmp_path / "scratch")
    try:
        runtime = CodeRuntime(sandbox, gateway, catalog)
        context: Context = Bench(tmp_path / "records", (work,)).context("a1")
        made = await runtime.assess(action, context)
        await runtime.prepare(made, context)
        outcome = await runtime.execute(made, context)
        await context.ending.aclose()
    finally:
        await gateway.stop()
        await sandbox.close()
    lines = outcome.stdout.splitlines()
    assert "'title': 'First'" in lines[0] and "'made': {'issue': {'number': 2}}" in lines[1], outcome
    assert lines[2:] == ["403", "403", "403"], outcome
    assert [body["query"] for body in tracker.got] == [READ, CHANGE]
    assert tracker.issues[2]["title"] == "made by a program"
    assert 1 in tracker.issues


@pytest.mark.promise(57)
def test_a_document_with_a_change_is_a_change_by_whichever_permit_it_leaves(tmp_path: Path) -> None:
    queries = "type Query { issue(number: Int!): Issue deleteIssue(number: Int!): Issue other(number: Int!): Issue }"
    (tmp_path / "tracker.graphql").write_text(f"{queries} type Issue {{ title: String }}")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        import_graphql(tmp_path / "catalog.db", tmp_path / "tracker.graphql", f"{URL}/graphql", "tracker")
    mixed = "{ issue(number: 1) { title } deleteIssue(number: 2) { title } }"
    reads = "{ issue(number: 1) { title } other(number: 2) { title } }"
    for document, changes in ((mixed, True), (reads, False)):
        permits = permits_of(planned(Catalog.open(tmp_path / "catalog.db"), document))
        assert len(permits) == 2
        assert {permit.read for permit in permits} == {not changes}
        (budget,) = {permit.rule.budget for permit in permits}
        assert budget
        policy = RulePolicy(
            GatewayPlan(
                action_id="a-1",
                rules=tuple(replace(permit.rule, calls=3) for permit in permits),
                placeholders={"xx-goex-mark-abcdefghijklmnopqrstuv": ("tracker", "work")},
                code=True,
            )
        )
        body = json.dumps({"query": document}).encode()
        lines = ["POST /api/graphql HTTP/1.1", "Host: tracker.example.com", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", "Authorization: Bearer xx-goex-mark-abcdefghijklmnopqrstuv", "", ""]
        head = parse_head("\r\n".join(lines).encode())
        passed = []
        for _ in range(5):
            admitted = policy.admit(AskedHead(origin=permits[0].rule.origin, head=head, target="/api/graphql"))
            passed.append(isinstance(admitted, Admission) and isinstance(policy.read(admitted, body), Ready))
        assert passed == [True] * 3 + [False] * 2


def test_documents_apart_are_counted_apart(catalog: Catalog) -> None:
    permits = permits_of(planned(catalog, READ, CHANGE))
    assert {permit.rule.budget for permit in permits} == {""}
    assert {permit.read for permit in permits} == {True, False}
