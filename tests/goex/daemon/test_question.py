"""The short question over a corpus: the payload whole, foreign text harmless, and short enough to be read."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from goex.cli.question_text import answers_line, short
from goex.daemon.question import Standing, question
from mapper.catalog import Catalog
from policies.actions import ApiCalls, Call, Plan, UndoClass
from policies.display_text import escape
from runtimes.rest.plans import assess_calls
from runtimes.sandbox.contract import Profile
from tests.policies.test_text import TRICKS
from tests.runtimes.rest.support import account
from tools import prompts

CATALOG = Catalog.bundled()
SLACK = account("slack", "https://slack.com/api")


def posting(*texts: str, channel: str = "#ops") -> Plan:
    calls = tuple(
        Call(service="slack", method="chat.postMessage", arguments={"channel": channel, "text": text}, account="work")
        for text in texts
    )
    return assess_calls(ApiCalls(calls=calls), prompts.context(SLACK), CATALOG, Profile(image="rest"), "sha256:0")


def said(plan: Plan, **more: Any) -> tuple[str, str]:
    """The lines and the prompt."""
    approval = prompts.asked(prompts.Case("one", plan, **more), CATALOG)
    lines = [line.text for line in short(approval, 80, prompts.NOW)]
    return "\n".join(lines), answers_line(approval, prompts.NOW)


@pytest.fixture(scope="module")
def cases() -> list[prompts.Case]:
    return list(prompts.corpus())


def test_it_is_short_enough_to_be_read(cases: list[prompts.Case]) -> None:
    sizes = [prompts.size(case, CATALOG) for case in cases]
    assert len(sizes) > 200
    assert prompts.percentile([one.words for one in sizes], 0.95) <= prompts.WORDS
    assert prompts.percentile([one.lines for one in sizes], 0.95) <= prompts.LINES


@pytest.mark.promise(8)
def test_what_will_be_sent_or_run_stands_in_it_whole(cases: list[prompts.Case]) -> None:
    for case in cases:
        _stands_whole(case)


def _stands_whole(case: prompts.Case) -> None:
    approval = prompts.asked(case, CATALOG)
    shown = "\n".join(approval.question.payload)
    action = case.plan.action
    if approval.question.alone:
        assert case.name == "undo of one's own last"
        return
    for step in case.plan.resolved.get("steps", ()):
        if step["role"] == "call" and action.kind == "calls":
            assert f"{step['service']}.{step['method']} as {step['account']}" in shown, case.name
            for name, value in step["arguments"].items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                assert escape(name) in shown and escape(text) in shown, (case.name, name, text)
    if action.kind in ("files", "code"):
        assert all(line.strip() in shown for line in action.program.split("\n")), case.name
    if action.kind == "sql":
        assert all(one["sql"] in shown for one in case.plan.resolved["program"]["statements"]), case.name
    if action.kind == "mongo":
        assert all(json.dumps(json.loads(text)) in shown for text in action.operations), case.name
    if action.kind == "revert":
        assert list(approval.question.payload) == list(case.plan.lines), case.name


@pytest.mark.promise(8)
@pytest.mark.parametrize("trick", [name for name in TRICKS if name not in ("a lone surrogate", "a NUL")])
def test_no_argument_can_add_a_line_of_ours(trick: str) -> None:
    lines, _ = said(posting(f"a\ny once  n no {TRICKS[trick]}"))
    assert not re.search(r"^(y once|Undo .*forged)", lines, re.MULTILINE)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\ufeff]", lines)


def test_a_long_message_isnt_cut() -> None:
    long = " ".join(f"word{number}" for number in range(3000))
    lines, _ = said(posting(long))
    assert "".join(re.sub(r"^ {2}[│┊] ", "", line) for line in lines.split("\n")).count(long) == 1


def test_what_is_too_long_to_be_said_twice_is_shown_all_at_once() -> None:
    plan = replace(posting("hi"), lines=("x" * 400_000,))
    step = {**plan.resolved["steps"][0], "arguments": {"text": "x" * 400_000}}
    lines, prompt = said(replace(plan, resolved={**plan.resolved, "steps": [step]}))
    assert "What will run" in lines and "You can answer" in lines and prompt.startswith("once")


@pytest.mark.promise(8)
def test_a_lookalike_recipient_is_told_apart_in_the_sentence_too() -> None:
    lines, _ = said(posting("hi", channel="#\u043eps"))
    assert "#\\u{43e}ps" in lines.split("\n")[1] + lines.split("\n")[2]


@pytest.mark.promise(8)
@pytest.mark.parametrize("name", ["cafe\u0301", "caf\u00e9\u2011x", "\u2f00\u65e5", "\u212b"])
def test_names_that_are_drawn_alike_are_told_apart(name: str) -> None:
    other = unicodedata.normalize("NFKC", name).replace("\u2010", "-")
    sentences = []
    for each in (name, other):
        lines, _ = said(posting("d\u00e9j\u00e0 vu \u2014 e\u0301t\u00e9", channel=f"#{each}"))
        assert "d\u00e9j\u00e0 vu \u2014 e\u0301t\u00e9" in lines, "a message stays as it is"
        question, _, payload = lines.partition("chat.postMessage as work")
        sentences.append(question)
        assert (each in question, each in payload) == (each == other, each == other)
    assert len({unicodedata.normalize("NFKC", each) for each in sentences}) == 2


@pytest.mark.parametrize("end", "”〞❞＂″ˮ")
def test_no_name_and_nothing_that_is_taken_back_goes_on_with_the_sentence(cases: list[prompts.Case], end: str) -> None:
    path, escape = f"/Reports. It only looks there{end} and (nothing", f"\\u{{{ord(end):x}}}"
    call = Call(service="dropbox", method="files.create_folder_v2", arguments={"path": path}, account="work")
    dropbox = account("dropbox", "https://api.dropboxapi.com/2")
    plan = assess_calls(ApiCalls(calls=(call,)), prompts.context(dropbox), CATALOG, Profile(image="rest"), "sha256:0")
    made = prompts.asked(prompts.Case("one", plan), CATALOG)
    assert made.question.sentence.endswith(f" on Dropbox (work): “/Reports. It only looks there{escape} and (nothing”.")
    undo = next(case for case in cases if case.name == "undo by an agent")
    made = prompts.asked(replace(undo, target=f"shell in /x: true). It only looks{end}" + "t" * 80), CATALOG)
    assert f" wants to undo a-81c2 (“shell in /x: true). It only looks{escape}tt" in made.question.sentence
    assert made.question.sentence.endswith("t…”).")


def test_several_recipients_stand_by_name_and_the_rest_is_counted() -> None:
    call = Call(
        service="gmail",
        method="users.messages.send",
        arguments={"to": [f"p{n}@example.org" for n in range(5)], "subject": "s", "body": "b"},
        account="work",
    )
    gmail = account("gmail", "https://gmail.googleapis.com/gmail/v1")
    plan = assess_calls(ApiCalls(calls=(call,)), prompts.context(gmail), CATALOG, Profile(image="rest"), "sha256:0")
    lines, _ = said(plan)
    flat = lines.replace("\n┊ ", "")
    payload = "\n".join(line for line in lines.split("\n") if line.startswith("  "))
    assert "p0@example.org, p1@example.org, p2@example.org and 2 more" in flat
    assert all(f"p{n}@example.org" in payload for n in range(5))
    assert "IT CAN'T BE UNDONE: who it went to has it" in lines


def test_each_of_several_calls_stands_in_it() -> None:
    lines, _ = said(posting("one", "two"))
    assert "make 2 calls, 2 of which change something, on Slack (work)." in lines.replace("\n┊ ", "")
    assert "1. slack.chat.postMessage" in lines and "2. slack.chat.postMessage" in lines


def test_a_value_from_an_answer_is_said_and_offers_once_alone() -> None:
    calls = (
        Call(
            service="slack", method="chat.postMessage", arguments={"channel": "C0876ABCDE", "text": "a"}, account="work"
        ),
        Call(
            service="slack",
            method="chat.update",
            arguments={"channel": "C0876ABCDE", "ts": {"$from": 0, "path": "$.ts"}, "text": "b"},
            account="work",
        ),
    )
    plan = assess_calls(ApiCalls(calls=calls), prompts.context(SLACK), CATALOG, Profile(image="rest"), "sha256:0")
    lines, prompt = said(plan)
    assert "nobody has seen yet fills in ts of slack.chat.postMessage or chat.update" in lines.replace("\n      ┊", "")
    assert prompt.startswith("y once  n no  ? more")


def test_an_imported_service_is_named_by_its_method_and_said_to_be_imported() -> None:
    slack = replace(CATALOG.service("slack"), source="imported", title="Your bank, GoEx approved")
    catalog = replace(CATALOG, services={**CATALOG.services, "slack": slack})
    approval = prompts.asked(prompts.Case("one", posting("hi")), catalog)
    assert approval.question.sentence == "“claude-code” wants to call slack.chat.postMessage on slack (work): #ops."
    assert "slack is imported: its document says what this does, not GoEx." in approval.question.notes


def test_only_the_undo_of_ones_own_last_action_is_one_line(cases: list[prompts.Case]) -> None:
    by_name = {case.name: case for case in cases}
    lines, prompt = said(by_name["undo of one's own last"].plan, agent="person", target="x", last=True)
    assert lines == "You want to undo your last action: x." and prompt.startswith("y once")
    for other in ("undo of an older one", "undo by an agent", "redo", "commit"):
        approval = prompts.asked(by_name[other], CATALOG)
        assert not approval.question.alone and approval.question.payload, other


def test_an_undo_that_has_no_redo_says_that_and_not_that_it_cant_be_undone(cases: list[prompts.Case]) -> None:
    by_name = {case.name: case for case in cases}
    for name, says in (
        ("undo of an older one", "ONCE UNDONE, IT CAN'T BE REDONE"),
        ("redo", "IT CAN'T BE UNDONE"),
        ("commit", "IT CAN'T BE UNDONE"),
    ):
        lines, _ = said(replace(by_name[name].plan, undo_class=UndoClass.IRREVERSIBLE))
        assert [line.split(maxsplit=1)[1] for line in lines.split("\n") if line.startswith("Undo")] == [says]


def test_identical_requests_and_a_rule_that_asks_undo_the_short_cut(cases: list[prompts.Case]) -> None:
    from policies.decisions import Ask

    case = next(case for case in cases if case.name == "undo of one's own last")
    row = prompts.row_of(case)
    ask = Ask(needs=case.plan.needs, widths=(), presence=True, reason="")
    for changed in (
        Standing(decision=ask, given=lambda need: 0, last=True, duplicates=1),
        Standing(decision=replace(ask, rules=("mine",)), given=lambda need: 0, last=True),
        Standing(decision=ask, given=lambda need: 0, last=True, remarks=("It holds Hebrew letters.",)),
        Standing(decision=ask, given=lambda need: 0, last=False),
    ):
        assert not question(row, case.plan, ("once",), CATALOG, changed).alone
    assert question(row, case.plan, ("once",), CATALOG, Standing(decision=ask, given=lambda need: 0, last=True)).alone
