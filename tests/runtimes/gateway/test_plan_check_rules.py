"""Rules that can't be held to are refused before a socket exists; and the wire keeps them whole."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.typed_json import from_json, to_json
from runtimes.gateway.plan import GatewayPlan, MethodRule, Refusal, SentRequest, Slot, TokenEndpoint
from runtimes.gateway.plan_check import check_opening
from tests.runtimes.gateway.ruled import AUTH, CHAT, HOME, MARKS, PLAN, POST, RULES, SECRETS, WORK, leases
from tests.runtimes.gateway.support import account, lease, planned
from vault.secret import Secret

NOW = datetime.now(UTC)


def opens(plan: GatewayPlan = PLAN) -> None:
    check_opening(plan, leases(), NOW)


def test_good_ones_open() -> None:
    opens()
    check_opening(GatewayPlan(action_id="a1", code=True), [], NOW)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": "rule 0"}, "an id"),
        ({"account": ("chat", "nobody")}, "no lease"),
        ({"origin": Origin("https", "evil.example", 443)}, "isn't an origin"),
        ({"origin": Origin("https", CHAT.host, 8443)}, "isn't an origin"),
        ({"origin": Origin("http", CHAT.host, 443)}, "isn't an origin"),
        ({"method": "TRACE"}, "method"),
        ({"method": "post"}, "method"),
        ({"path": ("a", "..")}, "path"),
        ({"path": ("", "a")}, "path"),
        ({"base_path": ("..",)}, "path"),
        ({"path": (Slot("a", ("..",)),)}, "path"),
        ({"path": (Slot("a", ("x/../y",)),)}, "path"),
        ({"path": (Slot("a", end="/../b"),)}, "path"),
        ({"others": (("a", ".."),)}, "path"),
        ({"path": (Slot("a", many=True), "x", Slot("b", many=True))}, "several ways"),
        ({"others": ((Slot("a", many=True), "x", Slot("b", many=True)),)}, "several ways"),
        ({"path": (Slot("a"), Slot("a"))}, "twice"),
        ({"query": {"_method": ()}}, "would change"),
        ({"query": {"": ()}}, "would change"),
        ({"query": {"a" * 201: ()}}, "would change"),
        ({"query": {"$.xgafv": ()}}, "would change"),
        ({"fields": {"_METHOD": ()}, "must": ()}, "would change"),
        ({"fields": {"a": (object(),)}, "must": ()}, "JSON"),
        ({"must": ("nothing",)}, "let stand"),
        ({"headers": ("Host",)}, "can't be sent"),
        ({"headers": ("Authorization",)}, "can't be sent"),
        ({"headers": ("X-Forwarded-Host",)}, "can't be sent"),
        ({"headers": ("X-HTTP-Method-Override",)}, "can't be sent"),
        ({"headers": ("X A",)}, "can't be sent"),
        ({"calls": 0}, "limits"),
        ({"calls": 10**9}, "limits"),
        ({"request_bytes": -1}, "limits"),
        ({"response_bytes": 0}, "limits"),
        ({"websocket": True}, "WebSocket"),
        ({"credential_format": "Bearer"}, "no place"),
        ({"credential_format": "{secret}{secret}"}, "no place"),
        ({"credential_format": "{secret}\r\nX-A: 1"}, "can't be written"),
        ({"credential_name": "X A"}, "no place"),
        ({"credential_name": "Host"}, "isn't for credentials"),
        ({"credential_name": "Content-Type"}, "isn't for credentials"),
        ({"credential_at": "query", "credential_name": "pretty"}, "let"),
        ({"credential_at": "body", "credential_name": "text"}, "let"),
        ({"credential_at": "body", "credential_name": "token", "body_format": "any"}, "isn't read"),
        ({"credential_at": "cookie"}, "no place"),
        ({"credential_at": "query", "credential_name": "a b"}, "no place"),
    ],
)  # fmt: skip
def test_rules_that_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        opens(replace(PLAN, rules=(replace(POST, **changes),)))


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": (POST, POST)},
        {"rules": tuple(replace(POST, id=f"rule-{number}") for number in range(501))},
        {"requests": (planned(CHAT),)},
        {"placeholders": {}},
        {"placeholders": {MARKS[HOME]: HOME}, "tokens": ()},
        {"placeholders": {**PLAN.placeholders, "short": WORK}},
        {"placeholders": {**PLAN.placeholders, "with space-abcdefghijklmnopqrst": WORK}},
        {"placeholders": {**PLAN.placeholders, MARKS[WORK] + "x": WORK}},
        {"placeholders": {**PLAN.placeholders, MARKS[WORK][:-1]: WORK}},
        {"placeholders": {**PLAN.placeholders, "z" * 30: ("chat", "nobody")}},
        {"placeholders": {**PLAN.placeholders, SECRETS[WORK]: WORK}},
        {"placeholders": {**PLAN.placeholders, SECRETS[WORK] + "-and-more": WORK}},
        {"tokens": (TokenEndpoint(account=("chat", "nobody"), origin=AUTH, path=("token",)),)},
        {"tokens": (TokenEndpoint(account=WORK, origin=AUTH, path=("..",)),)},
        {"seconds": 0.0},
    ],
)
def test_plans_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        opens(replace(PLAN, **changes))


def test_a_short_password_may_stand_in_a_placeholder() -> None:
    held = [replace(one, redact=(Secret("goex"),)) for one in leases()]
    check_opening(PLAN, held, NOW)


def test_leases_that_are_refused() -> None:
    good = leases()
    for bad in (
        [],
        [*good, good[0]],
        [replace(one, action_id="a2") for one in good],
        [replace(one, expires=NOW) for one in good],
        [replace(one, secret=Secret("a\nb")) for one in good],
    ):
        with pytest.raises(InvalidInput):
            check_opening(PLAN, bad, NOW)


def test_plain_http_needs_a_private_account() -> None:
    plain = Origin("http", CHAT.host, 80)
    one = replace(POST, origin=plain, account=("demo", "me"))
    plan = GatewayPlan(action_id="a1", rules=(one,), placeholders={MARKS[WORK]: ("demo", "me")})
    private = account(plain)
    check_opening(plan, [lease(private)], NOW)
    object.__setattr__(private, "private", False)  # what the account's own check doesn't let anyone build
    with pytest.raises(InvalidInput, match="plain http"):
        check_opening(plan, [lease(private)], NOW)


def test_the_wire_keeps_rules_whole() -> None:
    odd = MethodRule(
        id="rule-99", method_id="a.b", account=WORK, origin=CHAT, base_path=("x", "y"), method="GET",
        path=("a", Slot("s", ("1", "b/c"), many=True, end=":x", verbs=False), "z"),
        query={"q": ("a", "b"), "r": ()}, fields={"f": (1, None, True, {"a": [1.5]}), "g": ()}, must=("q", "f"),
        closed=("h",), headers=("X-A",), others=(("o", Slot("p")), ()), body_format="form", calls=3, request_bytes=4,
        response_bytes=5, websocket=True, credential_at="query", credential_name="k", credential_format="{secret}",
        written={"prefer": ("a=b", "c"), "version": ("1",)}, shown=("id", "etag"),
    )  # fmt: skip
    plan = replace(PLAN, rules=(*RULES, odd), code=True, seconds=9.5)
    assert from_json(GatewayPlan, json.loads(json.dumps(to_json(plan))), "It") == plan
    passed = SentRequest(
        rule="rule-1",
        slots={"a": "b"},
        query=(("q", "1"), ("q", "2")),
        body={"x": [None]},
        size=-1,
        file=True,
        keys=("k",),
    )
    assert from_json(SentRequest, json.loads(json.dumps(to_json(passed))), "It") == passed
    refusal = Refusal(reason="r", method="GET", target="t", kind="path", method_id="a.b")
    assert from_json(Refusal, json.loads(json.dumps(to_json(refusal))), "It") == refusal
