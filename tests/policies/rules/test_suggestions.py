"""Suggested rules: as narrow as what was approved, and never what was denied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.decisions import Allow, Request, decide
from policies.rules import cases
from policies.rules.book import RuleBook
from policies.rules.cedar_text import leaves
from policies.rules.rule_errors import check
from policies.rules.suggestions import FILE, Answer, Asked, Suggested, suggested

CATALOG = Catalog.bundled()
POST, READ = "slack.chat.postMessage", "slack.conversations.history"
START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def asked(call: str, answer: Answer = "yes", *, day: int = 0, agent: str = "bot", **more: Any) -> Asked:
    arguments = more.pop("arguments")
    case = {"agent": agent, "call": call, "account": "work", "undo": "compensating", "arguments": arguments, **more}
    request, _, _ = cases.read(case, CATALOG)
    return Asked(agent=agent, plan=request.plan, answer=answer, at=START + timedelta(days=day))


def post(text: str = "hi", channel: str = "#ops", answer: Answer = "yes", **more: Any) -> Asked:
    return asked(POST, answer, arguments={"channel": channel, "text": text}, **more)


def found(*history: Asked, files: dict[str, str] | None = None) -> Suggested:
    return suggested(history, files or {}, CATALOG)


def runs(made: Suggested, one: Asked) -> bool:
    """Whether it would run unasked, were these rules in force."""
    request = Request(agent=one.agent, session="", digest="x", plan=one.plan)
    return isinstance(decide(request, (), RuleBook.of({FILE: made.text}, CATALOG), one.at), Allow)


def test_what_recurs_is_suggested_and_nothing_beside_it() -> None:
    made = found(post(), post(), post("other"), post("late", answer=""))
    (rule,) = made.rules
    assert (rule.answers, rule.free, rule.new, made.asked, made.answered) == (2, (), 0, 4, 2)
    assert not [one for one in check({FILE: made.text}, CATALOG, {"bot"})[1] if one.error]
    assert runs(made, post())
    for other in (
        post("never approved"),
        post(channel="#board"),
        post(agent="another"),
        asked(POST, arguments={"channel": "#ops", "text": "hi", "thread_ts": "1.1"}),
        asked(POST, arguments={"channel": "#ops", "text": "hi"}, undo="irreversible"),
        asked("slack.chat.delete", arguments={"channel": "#ops", "ts": "1.1"}),
    ):
        assert not runs(made, other), other


def test_another_spelling_of_a_recipient_is_no_other_yes() -> None:
    """Each text was approved once, so that no rule is held to it."""
    assert found(*(post(text, channel="＃ops") for text in ("a", "b"))).rules == ()


def test_a_folder_s_other_paths_suggest_nothing() -> None:
    """Calls of an MCP server there: by another path nothing is permitted, so that no rule would be for it."""
    there = {"folder": "/a/docs", "also": [{"folder": "/a/docs", "mount": "/a", "paths": ["/b/docs", "/c/docs"]}]}
    one = post()
    one = replace(one, plan=replace(one.plan, resolved={**one.plan.resolved, **there}))
    assert not found(one).rules
    (rule,) = found(one, one).rules
    assert (rule.answers, rule.risk) == (2, "write")


def test_how_much_a_read_gives_may_be_anything_after_several_days_and_never_what_it_reads() -> None:
    history = [asked(READ, arguments={"channel": "C1", "limit": day}, day=day) for day in range(4)]
    (rule,) = found(*history).rules
    assert (rule.free, dict(rule.values), rule.answers) == (("limit",), {"channel": ('"C1"',)}, 4)
    assert "may be anything" not in rule.text and rule.text.count("limit") == 1
    assert not found(*(asked(READ, arguments={"channel": f"C{day}", "limit": 5}, day=day) for day in range(9))).rules


def test_combinations_that_nobody_approved_are_counted() -> None:
    ones = [post(text, channel) for text, channel in [("a", "#x"), ("b", "#y")] for _ in range(2)]
    (rule,) = found(*ones).rules
    assert rule.new == 2 and sorted(rule.values["text"]) == ['"a"', '"b"']


@pytest.mark.parametrize(
    "one",
    [
        lambda: asked("slack.chat.delete", arguments={"channel": "#ops", "ts": "1.1"}),
        lambda: post(agent="person"),
        lambda: post(agent="anonymous"),
        lambda: asked(POST, arguments={"channel": "#ops", "text": "hi"}, undo="irreversible"),
        lambda: asked(POST, arguments={"channel": "#ops", "text": {"$from": 0, "path": "$.a"}}),
        lambda: post("x" * 1000),
    ],
)
def test_what_is_never_suggested(one: Callable[[], Asked]) -> None:
    assert not found(one(), one(), one()).rules


PATCH = "google_calendar.events.patch"
EVENT = {"calendarId": "primary", "eventId": "e1", "summary": "Standup"}
ISSUE = {"owner": "o", "repo": "r", "title": "t"}


@pytest.mark.promise(14)
def test_null_runs_by_no_suggestion_of_calls_without_it() -> None:
    made = found(*(asked(PATCH, arguments=EVENT) for _ in range(3)))
    assert len(made.rules) == 1 and runs(made, asked(PATCH, arguments=EVENT))
    for name in ("attendees", "location", "description"):
        assert not runs(made, asked(PATCH, arguments={**EVENT, name: None})), name


def test_null_is_suggested_to_nobody() -> None:
    for more in ({"location": None}, {"start": {"date": "2026-05-03", "dateTime": None}}):
        history = [asked(PATCH, arguments={**EVENT, **more}) for _ in range(3)]
        assert not found(*history).rules, more


def test_lists_are_suggested_where_no_other_list_would_pass_for_them() -> None:
    create = "github.issues.create"
    one = [asked(create, arguments={**ISSUE, "labels": ["bug"]}) for _ in range(3)]
    made = found(*one)
    assert runs(made, one[0])
    assert not runs(made, asked(create, arguments={**ISSUE, "labels": ["bug", "bug"]}))
    assert not found(*(asked(create, arguments={**ISSUE, "labels": ["bug", "p1"]}) for _ in range(3))).rules


EITHER = {"anyOf": [{"type": "string"}, {"type": "integer"}]}


@pytest.mark.parametrize(
    ("schema", "value", "seen"),
    [
        (EITHER, 5, None),
        (EITHER, "5", None),
        (EITHER, " 5", '" 5"'),
        (EITHER, "five", '"five"'),
        ({"type": ["string", "null"]}, "5", '"5"'),
        ({"type": "array", "items": EITHER}, ["5"], None),
        ({"type": "array", "items": EITHER}, ["five"], '["five"]'),
        ({"type": "array"}, [5, 5], '"[5,5]"'),
    ],
)
def test_what_rules_would_take_for_another_value_is_not_suggested(schema: Any, value: Any, seen: str | None) -> None:
    """A text and a number that a rule sees alike, where the method takes either."""
    parameters = {"properties": {"a": schema}, "additionalProperties": False}
    assert leaves(parameters, {"a": value}) == ({("a",): seen} if seen is not None else None)


def test_nothing_is_suggested_of_a_method_with_an_argument_that_no_rule_can_name() -> None:
    """A call of it may have that argument, whatever the suggested permit says of the others."""
    text = {"type": "string"}
    assert leaves({"properties": {"a": text}, "additionalProperties": False}, {"a": "x"})
    assert leaves({"properties": {"a": text, "__extn": text}, "additionalProperties": False}, {"a": "x"}) is None


def test_what_a_rule_answers_already_is_not_suggested_again() -> None:
    first = found(post(), post())
    assert not found(post(), post(), files={FILE: first.text}).rules
