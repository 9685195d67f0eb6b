"""undo(do(x)) leaves the service as it was, for any sequence of reversible calls; and a foreign change is never undone.

The requests are carried to an in-memory service by a small interpreter with the gateway's own judgement, so that
thousands of sequences cost no container. The same plans run for real in the other tests.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog
from policies.actions import Plan
from runtimes.gateway.plan import Exchange
from runtimes.gateway.response_values import Answers, judge
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import literal
from runtimes.rest.steps import Step
from runtimes.rest.undo import planned_steps, undo_steps
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.support import Bench, FakeGitHub, Hit, account, calls

CATALOG = Catalog.bundled()
ACCOUNT = account("github", "https://api.github.com")
NUMBERS = (7, 8, 9)

edits = st.lists(st.tuples(st.sampled_from(NUMBERS), st.text(min_size=1, max_size=8)), min_size=1, max_size=8)


def service() -> FakeGitHub:
    made = FakeGitHub()
    for number in NUMBERS:
        made.issues[number] = {"number": number, "title": f"Issue {number}", "state": "open", "comments": 0}
    return made


def carry(steps: tuple[Step, ...], to: FakeGitHub, call_record: CallRecord) -> bool:
    """Send steps in order until one doesn't go well; returns whether all did."""
    for step in steps:
        request = step.request
        path = "/" + "/".join(str(literal(part, call_record.answers)) for part in request.path)
        body = literal(request.body, call_record.answers)
        status, value = to.handle(Hit(request.method, path, {}, copy.deepcopy(body), {}))
        value = copy.deepcopy(value)
        known = Answers()
        for id, answer in call_record.answers.items():
            known.keep(id, answer.body)
        failed = judge(request.expect, status, value, "json", known)
        exchange = Exchange(request=step.id, status=status, well=not failed, body=value, failed=failed)
        call_record.answers[step.id] = Answer.of(exchange, ())
        if failed:
            return False
    return True


def do(made: list[tuple[int, str]], to: FakeGitHub, bench: Bench) -> tuple[Plan, CallRecord]:
    action = calls(
        *(
            ("github.issues.setTitle", {"owner": "acme", "repo": "tool", "issue_number": number, "title": title})
            for number, title in made
        )
    )
    plan = assess_calls(action, bench.context("a1"), CATALOG, Profile(), "sha256:x")
    call_record = CallRecord()
    assert carry(planned_steps(plan), to, call_record)
    return plan, call_record


def titles(of: FakeGitHub) -> dict[int, Any]:
    return {number: issue["title"] for number, issue in of.issues.items()}


@settings(max_examples=30)
@given(made=edits)
def test_any_sequence_of_edits_is_taken_back(made: list[tuple[int, str]], tmp_path_factory: Any) -> None:
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    made = [(number, title.replace("\0", "x")) for number, title in made]
    plan, call_record = do(made, to, bench)
    steps = undo_steps(plan, call_record, CATALOG, bench.context("a1").accounts)

    assert carry(steps, to, CallRecord())

    assert titles(to) == titles(service())


@settings(max_examples=30)
@given(made=edits, victim=st.integers(0, 7))
def test_a_foreign_change_stops_the_undo_before_anything_is_sent(
    made: list[tuple[int, str]], victim: int, tmp_path_factory: Any
) -> None:
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    made = [(number, title.replace("\0", "x")) for number, title in made]
    plan, call_record = do(made, to, bench)
    number, _ = made[victim % len(made)]
    to.issues[number]["title"] = "somebody else's title"
    before = titles(to)
    steps = undo_steps(plan, call_record, CATALOG, bench.context("a1").accounts)

    assert not carry(steps, to, CallRecord())

    assert titles(to) == before
