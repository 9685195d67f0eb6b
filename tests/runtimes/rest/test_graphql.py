"""Calls of a GraphQL service: planned as one printed document, sent through the real gateway to a real server, and what
its answers count for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_graphql
from mapper.pairs import read_file, why_unusable
from policies.actions import ApiCalls, Outcome, UndoClass
from policies.errors import GoexError, InvalidInput
from policies.graphql import NO_ERRORS, SOME_DATA, answers_well, operation_of
from runtimes.gateway.client import GatewayClient
from runtimes.rest.planner import plan_calls
from runtimes.rest.plans import assess_calls
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.runtimes.rest.graphql_service import SCHEMA, Tracker
from tests.runtimes.rest.support import TOKEN, Bench, account, calls, serving

NOT_JSON = b"<html>gone</html>"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "tracker.graphql").write_text(SCHEMA)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        import_graphql(
            folder / "catalog.db", folder / "tracker.graphql", "https://tracker.example.com/api/graphql", "tracker"
        )
    return Catalog.open(folder / "catalog.db")


def planned(catalog: Catalog, *made: tuple[str, dict[str, Any]]) -> Any:
    accounts = {("tracker", "work"): account("tracker", "https://tracker.example.com/api")}
    return plan_calls(calls(*made), accounts, catalog, "a1")


def test_a_call_is_the_printed_document_and_its_arguments_are_variables(catalog: Catalog) -> None:
    title = '"}) { id } } mutation evil { deleteIssue(number: 1) { id } } #'
    done = planned(catalog, ("tracker.createIssue", {"input": {"title": title}}))
    (step,) = done.steps
    request = step.request
    assert (request.method, request.base_path, request.path) == ("POST", ("api",), ("graphql",))
    document = catalog.method("tracker.createIssue").document
    assert request.body == {"query": document, "variables": {"input": {"title": title}}}
    assert title not in document and operation_of(document) == "mutation"
    assert (step.read, done.undo_class) == (False, UndoClass.IRREVERSIBLE)
    assert request.expect == (NO_ERRORS, SOME_DATA)


def test_a_query_is_a_read(catalog: Catalog) -> None:
    done = planned(catalog, ("tracker.issue", {"number": 1}))
    assert (done.steps[0].read, done.undo_class) == (True, UndoClass.NOTHING)
    assert done.steps[0].request.expect == (SOME_DATA,)
    # What is left out isn't sent, so that the service's default stands.
    assert planned(catalog, ("tracker.issues", {})).steps[0].request.body["variables"] == {}


def test_a_value_may_come_from_an_answer(catalog: Catalog) -> None:
    taken = {"$from": 0, "path": "$.data.createIssue.issue.number"}
    with pytest.raises(InvalidInput):
        planned(catalog, ("tracker.issue", {"number": {"$from": 0, "path": "$.data"}}))
    done = planned(
        catalog,
        ("tracker.createIssue", {"input": {"title": "x"}}),
        ("tracker.deleteIssue", {"number": taken}),
    )
    assert len(done.steps) == 2


PAIR = """
method = "tracker.createIssue"
[undo]
calls = [{ method = "deleteIssue", arguments = { number = "$response.data.createIssue.issue.number" } }]
verify = { method = "issues", arguments = {}, expect = [{ path = "$.data.issues", exists = true }] }
"""


def test_a_declared_pair_names_these_methods(catalog: Catalog) -> None:
    """A mutation can't be taken back unless its undo is declared, like any other method's."""
    (pair,) = read_file(PAIR, "pairs.toml", catalog)
    assert (pair.method_id, why_unusable(catalog, pair)) == ("tracker.createIssue", "")
    with pytest.raises(GoexError, match="must be a read"):
        read_file(PAIR.replace('"issues", arguments = {}', '"breakIssue", arguments = { number = 1 }'), "p", catalog)


def test_what_is_shown(catalog: Catalog, tmp_path: Path) -> None:
    bench = Bench(tmp_path, (account("tracker", "https://tracker.example.com/api"),))
    action = calls(("tracker.createIssue", {"input": {"title": "x"}}))
    plan = assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x")
    assert plan.lines[:3] == (
        "tracker.createIssue as work → POST https://tracker.example.com/api/graphql",
        '    input: {"title": "x"}',
        "    answers with: createIssue.issue.id, createIssue.issue.number, createIssue.issue.title,"
        " createIssue.issue.secret, createIssue.issue.author.login",
    )
    assert "can't be taken back" in plan.undo_text
    assert [(need.scope, need.risk.word) for need in plan.needs] == [("createIssue", "write")]


@pytest.mark.parametrize(
    ("body", "some", "whole"),
    [
        ({"data": {"a": 1}}, True, True),
        ({"data": {"a": None}}, True, True),
        ({"data": {"a": None}, "errors": []}, True, True),
        ({"data": {"a": None}, "errors": None}, True, True),
        ({"data": {"a": None}, "errors": [{"message": "x"}]}, False, False),
        ({"data": {"a": {"b": None}}, "errors": [{"message": "x"}]}, True, False),
        ({"data": None, "errors": [{"message": "x"}]}, False, False),
        ({"errors": [{"message": "x"}]}, False, False),
        ({"data": None}, False, False),
        ({}, False, False),
        ([{"data": {"a": 1}}], False, False),
        (None, False, False),
        ({"data": [1]}, False, False),
        ({"data": {"a": 1}, "errors": "x"}, True, False),
    ],
)
def test_which_answers_are_good(body: Any, some: bool, whole: bool) -> None:
    assert (answers_well(SOME_DATA, body), answers_well(NO_ERRORS, body)) == (some, whole)


# ---- sent


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    service = Tracker()
    with serving(service, tmp_path, base="/api"):
        yield service


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runtime(
    sandbox_image: str, tmp_path_factory: pytest.TempPathFactory, catalog: Catalog
) -> AsyncIterator[RestRuntime]:
    folder = tmp_path_factory.mktemp("runtime")
    sandbox = DockerSandbox(f"tests-rest-{os.getpid()}", scratch_dir=folder / "scratch")
    gateway = GatewayClient(folder / "gateway")
    try:
        yield RestRuntime(sandbox, gateway, catalog, Profile(limits=Limits(seconds=200)))
    finally:
        await gateway.stop()
        await sandbox.close()


async def run(runtime: RestRuntime, tracker: Tracker, folder: Path, action: ApiCalls, id: str = "a1") -> Outcome:
    bench = Bench(folder / "records", (account("tracker", tracker.url, ca_pem=tracker.ca_pem, private=True),))
    context = bench.context(id)
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return await runtime.execute(plan, context)


@pytest.mark.docker
async def test_through_the_real_gateway(runtime: RestRuntime, tracker: Tracker, tmp_path: Path) -> None:
    action = calls(
        ("tracker.createIssue", {"input": {"title": 'Ünïcode & "quotes"', "parent": {"title": "above"}}}),
        ("tracker.issue", {"number": {"$from": 0, "path": "$.data.createIssue.issue.number"}}),
        ("tracker.issues", {"first": 1}),
    )
    outcome = await run(runtime, tracker, tmp_path, action)
    assert outcome.ok, outcome.summary
    made, read, listed = (result["body"]["data"] for result in outcome.results)  # type: ignore[index,call-overload]
    assert made["createIssue"]["issue"]["title"] == 'Ünïcode & "quotes"'
    assert read["issue"] == {
        "id": "I2", "number": 2, "title": 'Ünïcode & "quotes"', "secret": None, "author": {"login": "ann"}
    }  # fmt: skip
    assert [one["number"] for one in listed["issues"]["nodes"]] == [1]
    assert [set(body) for body in tracker.got] == [{"query", "variables"}] * 3
    assert TOKEN not in str(outcome)


READ, CHANGE = ("tracker.issue", {"number": 1}), ("tracker.deleteIssue", {"number": 1})


@pytest.mark.sampled(4)
@pytest.mark.docker
@pytest.mark.parametrize(
    ("call", "answer", "ok", "touched", "unsure", "said"),
    [
        # Refused before it began: no `data` at all.
        (CHANGE, {"errors": [{"message": "Unknown field"}]}, False, False, False, "Unknown field"),
        # It began, and something went wrong then or later.
        (CHANGE, {"data": None, "errors": [{"message": "late"}]}, False, True, True, "can't be known"),
        (CHANGE, {"data": {"deleteIssue": None}, "errors": [{"message": "late"}]}, False, True, True, "can't be known"),
        (CHANGE, {"data": {"deleteIssue": {"id": "I1"}}, "errors": [{"message": "x"}]}, False, True, True,
         "can't be known"),
        (CHANGE, {"data": {"deleteIssue": {"id": "I1"}}}, True, True, False, "went well"),
        (READ, {"errors": [{"message": "Unknown field"}]}, False, False, False, "Unknown field"),
        (READ, {"data": {"issue": None}, "errors": [{"message": "no such"}]}, False, False, False, "no such"),
        (READ, {"data": {"issue": {"id": "I1"}}, "errors": [{"message": "a part"}]}, True, False, False, "went well"),
        (READ, {"data": {"issue": None}}, True, False, False, "went well"),
        (READ, {"message": "not GraphQL"}, False, False, False, "errors, or no data"),
        (CHANGE, NOT_JSON, False, True, True, "can't be known"),
    ],
)  # fmt: skip
async def test_what_an_answer_counts_for(
    runtime: RestRuntime, tracker: Tracker, tmp_path: Path, call: Any, answer: Any, ok: bool, touched: bool,
    unsure: bool, said: str,
) -> None:  # fmt: skip
    tracker.override = lambda hit: (200, answer)
    outcome = await run(runtime, tracker, tmp_path, calls(call))
    assert (outcome.ok, outcome.touched, outcome.unsure) == (ok, touched, unsure), outcome.summary
    assert said in "\n".join((outcome.summary, *outcome.details))
    assert "Unknown field" not in outcome.summary and "no such" not in outcome.summary


@pytest.mark.docker
async def test_a_real_servers_errors(runtime: RestRuntime, tracker: Tracker, tmp_path: Path) -> None:
    """The same from graphql-core itself: a read without data, one with a part of it, and a mutation that broke."""
    none = await run(runtime, tracker, tmp_path, calls(("tracker.issue", {"number": 9})), "none")
    assert not none.ok and not none.touched and "There is no issue 9." in str(none.details)
    assert "no issue" not in none.summary
    tracker.issues[3] = Tracker._issue(3, "Hidden")
    part = await run(runtime, tracker, tmp_path, calls(("tracker.issue", {"number": 3})), "part")
    assert part.ok and "You may not see this." in str(part.results) and "'title': 'Hidden'" in str(part.results)
    broke = await run(runtime, tracker, tmp_path, calls(("tracker.breakIssue", {"number": 1})), "broke")
    assert (broke.ok, broke.touched, broke.unsure) == (False, True, True), broke.summary
    assert tracker.issues[1]["title"] == "broken"
