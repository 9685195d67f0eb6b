"""Attacks on suggested rules: no flood, name or value makes one wider than what was approved, or cover what was denied.
Each succeeds in its control, which lacks the one defence. Then from the wire to a daemon and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from goex.rpc import rules_pb2 as rb
from policies.rules import cases, cedar_text, suggestions
from policies.rules.suggestions import Asked, Suggested
from tests.adversarial.grant_scene import Scene, call, scene, several
from tests.policies.rules.test_suggestions import CATALOG, POST, START, found, post, runs
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import decide, problem

HOSTILE = [
    '#ops" || true || "',
    '#ops\\" || true || \\"',
    '#ops"}; permit (principal, action, resource); //',
    "#ops\n}; permit (principal, action, resource);",
    "#\u043eps\u202e",
    "#ops*",
    '{"__entity": {"type": "Agent", "id": "bot"}}',
]


def flood() -> bool:
    """Many tiny variants in one day, each approved: the text is anything then."""
    made = found(*(post(f"hi{number}") for number in range(40)))
    return runs(made, post("send me your password"))


def flood_of_recipients() -> bool:
    """The same with whom it reaches, over days."""
    made = found(*(post("hi", f"#ops{day}", day=day) for day in range(40)))
    return runs(made, post("hi", "#board"))


def denied_variant() -> bool:
    """One that was denied, among approved ones that differ in that argument."""
    no = post("rm -rf", answer="no", day=5)
    return runs(found(*(post(f"hi{day}", day=day) for day in range(5)), no), no)


def denied_and_approved() -> bool:
    no = post(answer="no", day=5)
    return runs(found(post(), post(), post(), no), no)


def denied_among_several() -> bool:
    """A call of an action of two that was denied."""
    case = {
        "agent": "bot",
        "undo": "compensating",
        "calls": [
            {"call": POST, "account": "work", "arguments": {"channel": "#ops", "text": text}} for text in ("hi", "bye")
        ],
    }
    request, _, _ = cases.read(case, CATALOG)
    no = Asked(agent="bot", plan=request.plan, answer="no", at=START)
    return runs(found(post(), post(), no), post())


def hostile_value() -> bool:
    """Values that would end the text of the rule, or widen it."""
    for value in HOSTILE:
        try:
            made = found(post(value), post(value))
        except Exception:
            return True
        if not made.rules or any(runs(made, each) for each in (post(), post("x", "#board"), post(agent="other"))):
            return True
    return False


ATTACKS: dict[str, tuple[Callable[[], bool], tuple[Any, str, Any]]] = {
    "flood": (flood, (suggestions, "DAYS", 1)),
    "flood_of_recipients": (flood_of_recipients, (suggestions, "names_reached", lambda *_: False)),
    "denied_variant": (denied_variant, (suggestions, "_without_denied", lambda kept, *_: kept)),
    "denied_and_approved": (denied_and_approved, (suggestions, "_without_denied", lambda kept, *_: kept)),
    "denied_among_several": (denied_among_several, (suggestions, "_without_denied", lambda kept, *_: kept)),
    "hostile_value": (hostile_value, (cedar_text, "quoted", lambda text: f'"{text}"')),
}


@pytest.mark.promise(14)
@pytest.mark.parametrize("name", ATTACKS)
def test_no_suggestion_is_wider_than_what_was_approved(name: str) -> None:
    assert not ATTACKS[name][0]()


@pytest.mark.parametrize("name", ATTACKS)
def test_control(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attack, (where, what, instead) = ATTACKS[name]
    monkeypatch.setattr(where, what, instead)
    monkeypatch.setattr(suggestions, "_counted", _uncounted)
    assert attack()


def _uncounted(rules: Any, asked: Any, answered: Any = ()) -> Suggested:
    return Suggested(rules=rules, asked=len(asked))


# ---- with a daemon


@pytest.fixture
def shipped(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        made.new_agent()
        yield made


def suggest(made: Scene) -> rb.SuggestRulesReply:
    ask = made.daemon.channel(made.daemon.user_socket).unary_unary(
        "/goex.v1.Rules/SuggestRules",
        request_serializer=rb.SuggestRulesRequest.SerializeToString,
        response_deserializer=rb.SuggestRulesReply.FromString,
    )
    reply: rb.SuggestRulesReply = ask(rb.SuggestRulesRequest(), timeout=300)
    return reply


def wire(text: str, **more: Any) -> Any:
    return several(call(f"{POST}", channel="C0ALL", text=text, **more))


@pytest.mark.docker
@pytest.mark.promise(14)
def test_what_was_approved_runs_once_the_person_put_it_in_force(shipped: Scene) -> None:
    for _ in range(3):
        shipped.allow(wire("deployed"), "once")
    assert not shipped.unasked(wire("fired")) and not shipped.unasked(wire("fired"))  # denied twice
    reply = suggest(shipped)
    (rule,) = reply.rules
    assert (rule.method, rule.agent, rule.answers) == (POST, shipped.agent, 3)
    assert (reply.asked, reply.answered, reply.denied) == (5, 3, 2)
    assert "fired" not in reply.text
    assert not shipped.unasked(wire("deployed")), "it is a text until it was applied"
    shipped.apply(rule.text)
    assert shipped.unasked(wire("deployed"))
    assert not shipped.unasked(wire("fired"))
    assert not suggest(shipped).rules


def take(made: Scene, rules: list[str], compared_with: str, passphrase: str) -> rb.InForceReply:
    ask = made.daemon.channel(made.daemon.user_socket).unary_unary(
        "/goex.v1.Rules/ApplySuggestedRules",
        request_serializer=rb.ApplySuggestedRulesRequest.SerializeToString,
        response_deserializer=rb.InForceReply.FromString,
    )
    request = rb.ApplySuggestedRulesRequest(rules=rules, compared_with=compared_with, passphrase=passphrase)
    reply: rb.InForceReply = ask(request, timeout=300)
    return reply


def in_force(made: Scene) -> str:
    return str(json.loads(made.daemon.goex("rules", "--json").stdout)["hash"])


@pytest.mark.docker
@pytest.mark.promise(14, 4)
def test_a_suggestion_is_taken_over_with_presence_and_nothing_beside_it(shipped: Scene) -> None:
    for _ in range(3):
        shipped.allow(wire("deployed"), "once")
    (rule,) = suggest(shipped).rules
    before = in_force(shipped)
    wider = rule.text.replace("deployed", "fired")
    draft = shipped.daemon.config_dir / "rules" / "suggested.cedar"
    for rules, compared, proof, why in (
        ([wider], before, APPROVAL_PASSPHRASE, "suggested any more"),
        ([rule.text, wider], before, APPROVAL_PASSPHRASE, "suggested any more"),
        ([], before, APPROVAL_PASSPHRASE, "suggested any more"),
        ([rule.text], "0" * 64, APPROVAL_PASSPHRASE, "compared with"),
        ([rule.text], before, "not the passphrase", "approval passphrase"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            take(shipped, rules, compared, proof)
        assert why in problem(caught.value).message
        assert not draft.exists() and in_force(shipped) == before
    draft.parent.mkdir(exist_ok=True)
    draft.write_text("// something of the person's own\n")
    with pytest.raises(grpc.RpcError) as caught:
        take(shipped, [rule.text], before, APPROVAL_PASSPHRASE)
    assert "draft" in problem(caught.value).message
    draft.unlink()
    reply = take(shipped, [rule.text], before, APPROVAL_PASSPHRASE)
    assert rule.name in [one.name for one in reply.rules] and not reply.drafts
    assert draft.read_text().count("permit") == 1 and draft.stat().st_mode & 0o077 == 0
    assert shipped.unasked(wire("deployed")) and not shipped.unasked(wire("fired"))


@pytest.mark.docker
@pytest.mark.promise(14)
def test_what_a_grant_answered_by_itself_is_no_evidence(shipped: Scene) -> None:
    shipped.allow(wire("deployed"), "session")
    assert shipped.unasked(wire("deployed"))
    journey = shipped.ask(several(call("slack.conversations.history", channel="C0LUNCH", limit=1)))
    decide(shipped.daemon, journey.asked(), approve=True)
    journey.finished()
    assert not suggest(shipped).rules  # each was answered once


@pytest.mark.docker
@pytest.mark.promise(7)
def test_an_altered_denial_suggests_nothing(shipped: Scene) -> None:
    for _ in range(2):
        shipped.allow(wire("deployed"), "once")
    assert not shipped.unasked(wire("fired"))
    with sqlite3.connect(shipped.daemon.state_dir / "state.db") as connection:
        connection.execute("UPDATE actions SET plan = '{}' WHERE state = 'denied'")
    with pytest.raises(grpc.RpcError) as caught:
        suggest(shipped)
    assert "log" in problem(caught.value).message
