"""What a program or a call may ask of an answer: one that its way back can't read isn't asked for, or no way back is
promised. What libraries say in headers is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.actions import UndoClass
from runtimes.rest.planner import plan_calls
from tests.runtimes.code.support import GITHUB, SLACK, plan
from tests.runtimes.code.test_promised import ISSUE, admitted, opened, told
from tests.runtimes.rest.derived import ACCOUNT, catalog_with_query
from tests.runtimes.rest.support import calls, declaring


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("line", "header", "passes"),
    [
        ("from stripe import X\nX.create(stripe_account='acct_1')", "Stripe-Account: acct_1", True),
        ("import stripe\nX.create({}, {'stripe_account': 'acct_1'})", "Stripe-Account: acct_2", False),
        ("X.create(stripe_account='acct_1')", "Stripe-Account: acct_1", False),
        ("from openai import OpenAI\nOpenAI(organization='org-1')", "OpenAI-Organization: org-1", True),
        ("from openai import OpenAI\nOpenAI(project='p_1')", "OpenAI-Project: p_1", True),
        ("from openai import OpenAI\nOpenAI(project='p_' + it)", "OpenAI-Project: p_", False),
        ("import discord\nkick(reason='was rude, twice')", "X-Audit-Log-Reason: was rude, twice", True),
        ("import discord\nkick(reason='was rude')", "X-Audit-Log-Reason: all is well", False),
    ],
)
def test_an_argument_that_a_library_says_in_a_header_is_told_and_passes(line: str, header: str, passes: bool) -> None:
    name, _, value = header.partition(": ")
    made = plan(f"H = {{}}\n{line}\n{ISSUE}", accounts=(GITHUB,))
    assert (opened(made, header) == "") is passes
    assert (f'{name}: "{value}", or left out' in told(made)) is passes


def test_a_reason_for_the_log_is_told_and_keeps_the_way_back() -> None:
    made = plan(f"H = {{'X-Audit-Log-Reason': 'was rude'}}\n{ISSUE}", accounts=(GITHUB,))
    assert made.undo_class is UndoClass.COMPENSATING
    assert 'X-Audit-Log-Reason: "was rude", or left out' in told(made)
    assert opened(made, "X-Audit-Log-Reason: was rude") == "" != opened(made, "X-Audit-Log-Reason: b")


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("application/xml", "application/json"),
        ("text/html, image/png", "application/json"),
        ("text/event-stream", "application/json"),
        ("application/json;q=0, text/html", "application/json"),
        ("application/json;q=0.1, */*", "*/*"),
        ("application/json;odata.metadata=none", "application/json"),
        ("application/vnd.github.raw", "application/json"),
        ("application/hal+json", "application/json"),
        ("application/vnd.github+json", "application/vnd.github+json"),
        ("application/vnd.github.v3+json", "application/vnd.github.v3+json"),
        ("application/json;odata.metadata=minimal", "application/json;odata.metadata=minimal"),
        ("application/json, text/plain, */*", "application/json, */*"),
        ("*/*", "*/*"),
    ],
)
def test_the_answer_that_a_way_back_reads_is_one_that_it_can_read(asked: str, given: str) -> None:
    """The program chooses its headers while it runs, when its way back was promised."""
    made = plan(ISSUE, accounts=(GITHUB,))
    assert made.undo_class is UndoClass.COMPENSATING
    found = admitted(made, GITHUB, "/repos/o/r/issues", f"Accept: {asked}").admission
    assert dict(found.headers)["Accept"] == given
    assert ("accept" in found.dropped) is (given == "application/json")


@pytest.mark.parametrize("accept", ["application/vnd.github.raw", "text/event-stream", "text/csv"])
def test_an_answer_that_no_way_back_reads_is_what_the_program_wants(accept: str) -> None:
    """Files that are fetched, streams of words."""
    said = plan(f"H = {{'X-App': 'true'}}\n{ISSUE}", accounts=(GITHUB,))
    assert said.undo_class is UndoClass.IRREVERSIBLE
    found = admitted(said, GITHUB, "/repos/o/r/issues", f"Accept: {accept}").admission
    assert dict(found.headers)["Accept"] == accept and not found.dropped


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("name", "value", "promised"),
    [
        ("_fields", "title", False),
        ("_fields", "id,title", False),
        ("_fields", "*", True),
        ("sysparm_fields", "title", False),
        ("opt_fields", "title", False),
        ("fields[notes]", "title", False),
        ("select", "title", False),
        ("_envelope", "1", False),
        ("callback", "json", False),
        ("_envelope", "false", True),
        ("format", "false", False),
        ("format", "xml", False),
        ("format", "json", True),
        ("output", "JSON", True),
        ("excludeFields", "id", False),
        ("notify", "true", True),
    ],
)
def test_a_query_by_which_an_answer_is_another_leaves_no_way_back(
    name: str, value: str, promised: bool, tmp_path: Path
) -> None:
    catalog = catalog_with_query(tmp_path, name)

    def made(params: str) -> UndoClass:
        post = f"requests.post('https://notes.example.org/notes', params={params}, json={{'title': 'a'}})"
        return plan(f"import requests\n{post}", accounts=(ACCOUNT,), catalog=catalog).undo_class

    assert made("{}") is UndoClass.COMPENSATING
    assert (made(repr({name: value})) is UndoClass.COMPENSATING) is promised
    assert (made(f"{{{name!r}: it}}") is UndoClass.COMPENSATING) is (name == "notify")


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("wanted", "promised"),
    [
        ("application/xml", False),
        ("application/json;q=0, text/html", False),
        ("application/json", True),
        ("*/*", True),
    ],
)
def test_a_way_back_that_reads_the_answer_wants_it_as_json(wanted: str, promised: bool) -> None:
    posting = calls(("slack.chat.postMessage", {"channel": "C", "text": "t", "Accept": wanted}))
    planned = plan_calls(posting, {(SLACK.service, SLACK.name): SLACK}, declaring("Accept"), "a1").calls[0]
    assert (planned.undo is not None) is promised


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("name", "value", "promised"),
    [
        ("_fields", "title", False),
        ("opt_fields", "title", False),
        ("fields[notes]", "title", False),
        ("select", "title", False),
        ("_envelope", "1", False),
        ("callback", "f", False),
        ("format", "xml", False),
        ("excludeId", "true", False),
        ("format", "json", True),
        ("notify", "true", True),
    ],
)
def test_a_query_of_a_call_by_which_an_answer_is_another_leaves_no_way_back(
    name: str, value: str, promised: bool, tmp_path: Path
) -> None:
    catalog = catalog_with_query(tmp_path, name)
    post = next(one.name for one in catalog.methods() if one.origin_id == "POST /notes")
    wanted = calls((f"notes.{post}", {"body": {"title": "a"}, name: value}))
    planned = plan_calls(wanted, {("notes", ACCOUNT.name): ACCOUNT}, catalog, "a1").calls[0]
    assert (planned.undo is not None) is promised
    assert (f"{name} may leave out" in planned.no_undo) is not promised
