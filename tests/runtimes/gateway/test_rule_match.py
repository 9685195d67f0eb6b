"""Code's requests against rules: what passes is exactly what was allowed, and leaves as it was judged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from policies.accounts import Origin
from policies.errors import InvalidInput
from runtimes.gateway.admission import Admission, Local, No, Ready, refusal_body
from runtimes.gateway.bodies import same, same_text
from runtimes.gateway.credential import with_credential
from runtimes.gateway.head import BadHead, parse_head
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot
from runtimes.gateway.rule_match import MAX_HELD, MAX_INSPECTED, MAX_UNDER_WAY, RulePolicy
from tests.runtimes.gateway.ruled import (
    ACT_TOO,
    AUTH,
    CHAT,
    DROP,
    FORM,
    FORMS,
    HOME,
    HOME_POST,
    KEYED,
    MAPS,
    MARKS,
    MORE,
    OTHER,
    PLAN,
    POST,
    SECRETS,
    USER,
    WORK,
    admit,
    asked,
    basic,
    bearer,
    judge,
    leases,
    rule,
)  # fmt: skip
from tests.runtimes.gateway.test_rule_bodies import PARTS, parts

FORM_TYPE = "application/x-www-form-urlencoded"
W = bearer()
WS = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="


def dressed(ready: Ready | No, account: tuple[str, str] = WORK) -> tuple[str, dict[str, str], bytes | None]:
    assert isinstance(ready, Ready), ready
    lease = next(one for one in leases() if (one.account.service, one.account.name) == account)
    made = with_credential(ready, lease)
    return made.target, dict(made.headers), made.body


def passes(line: str, *headers: str) -> Admission:
    found = admit(line, *headers)
    assert isinstance(found, Admission), found
    return found


def test_what_is_allowed_leaves_with_the_credential_in_its_place() -> None:
    ready = judge("POST /api/messages?pretty=1", W, body=b'{"text": "hi", "channel": "C1"}')
    target, headers, body = dressed(ready)
    assert (target, body) == ("/api/messages?pretty=1", b'{"text":"hi","channel":"C1"}')
    assert headers == {"Content-Type": "application/json", "Authorization": f"Bearer {SECRETS[WORK]}"}
    assert isinstance(ready, Ready)
    assert ready.admission.id == "rule-0#1"
    assert ready.admission.line == "POST https://chat.example/api/messages"
    assert ready.sent.body == {"text": "hi", "channel": "C1"}
    assert (ready.sent.rule, ready.sent.query, ready.sent.size) == ("rule-0", (("pretty", "1"),), 28)


@pytest.mark.promise(53)
def test_the_placeholder_chooses_the_account() -> None:
    home = judge("POST /api/messages", bearer(HOME), body=b'{"channel":"H1"}')
    assert dressed(home, HOME)[1]["Authorization"] == f"Bearer {SECRETS[HOME]}"
    assert judge("POST /api/messages", bearer(HOME), body=b'{"channel":"C1"}') == No(
        'channel is held to "H1"', kind="field", method_id="chat.method0"
    )


@pytest.mark.parametrize(
    "header",
    [
        f"authorization: bearer {MARKS[WORK]}", f"Authorization: token {MARKS[WORK]}", f"Authorization: {MARKS[WORK]}",
        f"Authorization: Bot {MARKS[WORK]}", basic("somebody", MARKS[WORK]), basic(MARKS[WORK], ""),
        basic(MARKS[WORK], "x-oauth-basic"),
    ],
)  # fmt: skip
def test_a_placeholder_is_known_in_each_scheme(header: str) -> None:
    ready = judge("GET /api/users/u1", header)
    assert dressed(ready)[1] == {"Authorization": f"Bearer {SECRETS[WORK]}"}


def test_a_credential_goes_into_a_parameter_or_a_field_where_the_service_wants_it() -> None:
    found = judge(f"GET /search?key={MARKS[MAPS]}&q=a+b", origin=KEYED)
    assert dressed(found, MAPS)[0] == f"/search?q=a%20b&key={SECRETS[MAPS]}"
    assert isinstance(found, Ready)
    assert found.sent.query == (("q", "a b"),)
    form = judge("POST /send", body=f"to=ann&token={MARKS[FORM]}".encode(), kind=FORM_TYPE, origin=FORMS)
    assert dressed(form, FORM)[2] == f"to=ann&token={SECRETS[FORM]}".encode()
    said = judge("POST /send", body=json.dumps({"token": MARKS[FORM], "to": "ann"}).encode(), origin=FORMS)
    assert json.loads(dressed(said, FORM)[2] or b"") == {"to": "ann", "token": SECRETS[FORM]}
    assert isinstance(form, Ready)
    assert isinstance(said, Ready)
    assert form.sent.body == said.sent.body == {"to": "ann"}
    other = judge("GET /x", f"X-Api-Key: {MARKS[MORE]}", origin=OTHER)
    assert dressed(other, MORE)[1] == {"X-Api-Key": SECRETS[MORE]}


# Each line: why it is refused, then the request. Nothing else is wrong with it.
REFUSED: list[tuple[str, str, tuple[str, ...], bytes | None, str]] = [
    # Where it goes
    ("path", "GET /api/nothing", (W,), None, ""),
    ("path", "GET /users/u1", (W,), None, ""),
    ("path", "GET /api/users/u1/keys", (W,), None, ""),
    ("path", "GET /api/users/", (W,), None, ""),
    ("path", "GET /api/users/u1/", (W,), None, ""),
    ("path", "GET /API/users/u1", (W,), None, ""),
    ("path", "GET /api/users/../keys", (W,), None, ""),
    ("path", "GET /api/users/%2e%2e", (W,), None, ""),
    ("path", "GET /api//users/u1", (W,), None, ""),
    ("path", "GET /api/users/u1;v=2", (W,), None, ""),
    ("path", "GET /api/users/a%2Fb", (W,), None, ""),
    ("path", "GET /api/users/a%5Cb", (W,), None, ""),
    ("path", "GET /api/users/a%252Fb", (W,), None, ""),
    ("path", "GET /api/users/a%3Fb=c", (W,), None, ""),
    ("path", "GET /api/users/a%23b", (W,), None, ""),
    ("path", "GET /api/users/a%EF%BC%8Fb", (W,), None, ""),
    ("path", "GET /api/users/%EF%BC%8E%EF%BC%8E", (W,), None, ""),
    ("path", "GET /api/users/a%00b", (W,), None, ""),
    ("path", "GET /api/users/me", (W,), None, ""),
    ("path", "GET /api/users/ME", (W,), None, ""),
    ("path", "GET /api/users/me.json", (W,), None, ""),
    ("path", "GET /api/users/u1:secret", (W,), None, ""),
    ("path", "DELETE /api/messages/m2", (W,), None, ""),
    ("path", "PUT /api/files/a/..%2fb?mode=safe", (W,), b"x", "text/plain"),
    ("path", "POST /api/jobs/:cancel", (W,), None, ""),
    ("path", "PUT /api/files/a/?mode=safe", (W,), b"x", "text/plain"),
    ("path", "POST /api/jobs/j1:run", (W,), b"{}", "application/json"),
    ("path", "POST /api/things/graphql", (W,), b"{}", "application/json"),
    ("path", "POST /api/things/$batch", (W,), b"{}", "application/json"),
    ("path", "POST /api/things/%24BATCH", (W,), b"{}", "application/json"),
    ("method", "PATCH /api/users/u1", (W,), b"{}", "application/json"),
    ("method", "HEAD /api/users/u1", (W,), None, ""),
    ("method", "DELETE /api/users/u1", (W,), None, ""),
    # What it asks for
    ("query", "GET /api/users/u1?all=1", (W,), None, ""),
    ("query", "GET /api/channels/c/messages?LIMIT=1", (W,), None, ""),
    ("query", "GET /api/channels/c/messages?limit[]=1", (W,), None, ""),
    ("field", "GET /api/channels/c/messages?kind=c", (W,), None, ""),
    ("field", "GET /api/channels/c/messages?kind=a&kind=b", (W,), None, ""),
    ("path", "GET /api/channels/c/messages?limit=%zz", (W,), None, ""),
    ("credential", "GET /api/users/u1?access_token=abc", (W,), None, ""),
    ("credential", "GET /api/users/u1?api-key=abc", (W,), None, ""),
    ("field", "POST /api/messages", (W,), b'{"channel":"C3"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"text":"hi"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":["C1"]}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","Channel":"C3"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","Channel":"C1"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","channel[]":"C3"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","channel.id":"C3"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","_channel":"C3"}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","as_user":true}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","asUser":true}', "application/json"),
    ("field", "POST /api/messages", (W,), b'[{"channel":"C1"}]', "application/json"),
    ("field", "POST /api/messages", (W,), b"channel=C1&channel=C2", FORM_TYPE),
    ("field", "POST /api/messages", (W,), b"channel=C1&count=4", FORM_TYPE),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","count":4}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","count":3.5}', "application/json"),
    ("field", "POST /api/messages", (W,), b'{"channel":"C1","count":"3"}', "application/json"),
    ("body", "POST /api/messages", (W,), b'{"channel":"C1","channel":"C3"}', "application/json"),
    ("body", "POST /api/messages", (W,), b'{"channel":"C1"', "application/json"),
    ("body", "POST /api/messages", (W,), b'\xef\xbb\xbf{"channel":"C1"}', "application/json"),
    ("body", "POST /api/messages", (W,), b'{"channel":"C1","text":"\\ud800"}', "application/json"),
    ("body", "POST /api/messages", (W,), b'{"channel":"C1","text":1e999}', "application/json"),
    ("body", "POST /api/messages", (W,), b"channel=C1", "text/plain"),
    ("body", "POST /api/messages", (W,), b"channel=C1", ""),
    ("body", "POST /api/jobs/j1:cancel", (W,), b"{}", "application/json"),
    ("body", "GET /api/users/u1", (W,), b"{}", "application/json"),
    ("header", "POST /api/messages", (W,), b'{"channel":"C1"}', "application/json; charset=utf-7"),
    ("header", "POST /api/messages", (W,), b'{"channel":"C1"}', "json"),
    ("field", "POST /api/uploads?dir=in", (W,), b"dir=out", FORM_TYPE),
    ("field", "POST /api/uploads?dir=in", (W,), b'{"dir":"out"}', "application/json"),
    ("size", "PUT /api/files/a?mode=safe", (W,), b"x" * 1001, "text/plain"),
    # Whose credential
    ("placeholder", "GET /api/users/u1", (), None, ""),
    ("credential", "GET /api/users/u1", ("Authorization: Bearer xoxb-somebody-elses",), None, ""),
    ("credential", "GET /api/users/u1", (f"Authorization: Bearer {MARKS[WORK]}x",), None, ""),
    ("credential", "GET /api/users/u1", (f"Authorization: Bearer {MARKS[WORK]} {MARKS[WORK]}",), None, ""),
    ("credential", "GET /api/users/u1", (W, W), None, ""),
    ("credential", "GET /api/users/u1", (basic(MARKS[WORK], MARKS[HOME]),), None, ""),
    ("placeholder", "GET /api/users/u1", (bearer(HOME),), None, ""),
    ("placeholder", "GET /api/users/u1", (bearer(MAPS),), None, ""),
    ("credential", "GET /api/users/u1", (W, "X-Api-Key: abc"), None, ""),
    ("credential", "GET /api/users/u1", (W, "Cookie: a=b"), None, ""),
    ("credential", "GET /api/users/u1", (W, "X-Key: abc"), None, ""),
    ("credential", "GET /api/users/u1", (W, "X-Auth-Token: abc"), None, ""),
    ("credential", "GET /api/users/u1", (W, "Proxy-Authorization: Basic YTpi"), None, ""),
    ("placeholder", "GET /api/users/u1", (W, f"User-Agent: {MARKS[WORK]}"), None, ""),
    ("placeholder", "GET /api/users/u1", (W, f"X-Other: {MARKS[HOME]}"), None, ""),
    ("placeholder", f"GET /api/users/{MARKS[WORK]}", (W,), None, ""),
    ("placeholder", f"GET /api/channels/c/messages?after={MARKS[WORK]}", (W,), None, ""),
    ("placeholder", "POST /api/messages", (W,), json.dumps({"channel": "C1", "text": [MARKS[WORK]]}).encode(), ""),
    ("placeholder", "POST /api/messages", (W,), json.dumps({"channel": "C1", "text": {MARKS[WORK]: 1}}).encode(), ""),
    ("placeholder", "POST /api/messages", (W,), f"channel=C1&text={MARKS[HOME]}".encode(), FORM_TYPE),
    ("placeholder", "PUT /api/files/a?mode=safe", (W,), f"abc {MARKS[WORK]}".encode(), "text/plain"),
    ("credential", "POST /api/messages", (W,), b'{"channel":"C1","token":"abc"}', "application/json"),
    ("credential", "POST /api/messages", (W,), b"channel=C1&access_token=abc", FORM_TYPE),
    ("signed", "GET /api/users/u1", ("Authorization: AWS4-HMAC-SHA256 Credential=a, Signature=b",), None, ""),
    ("signed", "GET /api/users/u1", ('Authorization: OAuth oauth_signature="abc"',), None, ""),
    ("signed", "GET /api/users/u1", ('Authorization: Digest username="a"',), None, ""),
    ("signed", "GET /api/users/u1", ("Authorization: SharedKey account:abc",), None, ""),
    ("signed", "GET /api/users/u1", ("Authorization: Negotiate abc",), None, ""),
    ("signed", "GET /api/users/u1", (W, "X-Amz-Date: 20260101T000000Z"), None, ""),
    ("signed", "GET /api/users/u1", (W, "DPoP: abc"), None, ""),
    ("signed", "GET /api/users/u1", (W, "X-Hub-Signature-256: sha256=abc"), None, ""),
    ("signed", "GET /api/users/u1", (W, "Signature-Input: sig1=()"), None, ""),
    ("signed", "GET /api/users/u1?X-Amz-Signature=abc", (W,), None, ""),
    ("signed", "GET /api/users/u1?Signature=abc", (W,), None, ""),
    # What it would become
    ("override", "GET /api/users/u1", (W, "X-HTTP-Method-Override: DELETE"), None, ""),
    ("override", "GET /api/users/u1", (W, "X-Method: DELETE"), None, ""),
    ("override", "GET /api/users/u1", (W, "X-Original-URL: /admin"), None, ""),
    ("override", "GET /api/users/u1", (W, "X-Forwarded-Host: evil.example"), None, ""),
    ("override", "GET /api/users/u1?_method=DELETE", (W,), None, ""),
    ("override", "GET /api/users/u1?%24.xgafv=2", (W,), None, ""),
    ("override", "GET /api/users/u1?X-HTTP-Method-Override=DELETE", (W,), None, ""),
    ("override", "POST /api/messages", (W,), b"channel=C1&_method=DELETE", FORM_TYPE),
    ("override", "POST /api/messages", (W,), b'{"channel":"C1","_METHOD":"DELETE"}', "application/json"),
    ("override", "POST /api/uploads", (W,), b"_method=DELETE", FORM_TYPE),
    ("override", "GET /api/users/u1?_HttpMethod=DELETE", (W,), None, ""),
    ("override", "POST /api/messages", (W,), b"channel=C1&_http_method=DELETE", FORM_TYPE),
    ("override", "POST /api/messages", (W,), b'{"channel":"C1","X-Method-Override":"DELETE"}', "application/json"),
    ("batch", "POST /api/uploads", (W,), b"--x", "multipart/mixed; boundary=x"),
    ("batch", "POST /api/uploads", (W,), b"--x", "Multipart/Alternative; boundary=x"),
    ("batch", "POST /api/uploads", (W,), b"GET / HTTP/1.1", "application/http"),
    ("batch", "POST /api/uploads", (W,), b"{ viewer }", "application/graphql"),
    ("field", "POST /api/graphql", (W,), b'{"query":"{ secrets }"}', "application/json"),
    ("field", "POST /api/graphql", (W,), b'{"operationName":"a"}', "application/json"),
    ("graphql", "POST /api/graphql", (W,), b'{"query":"{ viewer { login } }","extensions":{}}', "application/json"),
    ("graphql", "POST /api/v2/graphql", (W,), b'{"query":"{ viewer { login } }"}', "application/json"),
    ("upgrade", "GET /api/users/u1", (W, *WS, KEY), None, ""),
    ("upgrade", "GET /api/live", (W, *WS), None, ""),
    ("upgrade", "GET /api/live", (W, *WS[:2], KEY), None, ""),
    ("credential", "GET /api/live", (W, *WS, KEY, "Sec-WebSocket-Protocol: rt, api-key.sk-abc"), None, ""),
    ("header", "GET /api/users/u1", (W, "Range: bytes=0-1", "Range: bytes=2-3"), None, ""),
    ("header", "GET /api/users/u1", (W, "If-Range: " + "a" * 3000), None, ""),
]  # fmt: skip


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("kind", "line", "headers", "body", "content_type"),
    REFUSED,
    ids=[f"{number}-{each[0]}-{each[1].partition('?')[0][-18:]}" for number, each in enumerate(REFUSED)],
)
def test_what_is_not_allowed_is_refused(
    kind: str, line: str, headers: tuple[str, ...], body: bytes | None, content_type: str
) -> None:
    sent = content_type or ("application/json" if kind == "placeholder" else "")
    found = judge(line, *headers, body=body, kind=sent)
    assert isinstance(found, No), found
    assert found.kind == kind, found
    assert found.status >= 400


@pytest.mark.parametrize(
    ("line", "headers", "body", "content_type"),
    [
        ("GET /api/users/u1", (W,), None, ""),
        ("GET /api/users/mean", (W,), None, ""),
        ("GET /api/users/u1:word", (W,), None, ""),
        ("GET /api/users/batch", (W,), None, ""),
        ("GET /api/users/caf%C3%A9", (W,), None, ""),
        ("GET /api/channels/c/messages?limit=2&kind=a&after=x%3D%3D&sig=1", (W,), None, ""),
        ("PUT /api/files/a/b%20c/d?mode=safe", (W,), b"x" * 1000, "text/plain"),
        ("PUT /api/files/a?mode=safe", (W,), b"\x00\xff", ""),
        ("PUT /api/files/a?mode=safe", (W,), b"\xff", "text/plain; charset=latin-1"),
        ("DELETE /api/messages/a%2Fb", (W,), None, ""),
        ("POST /api/jobs/j1:cancel", (W,), None, ""),
        ("POST /api/jobs/j1", (W,), b"{}", "application/json"),
        ("POST /api/things/graph", (W,), b"[1]", "application/json"),
        ("POST /api/messages", (W,), b"channel=C1&count=3", FORM_TYPE),
        ("POST /api/messages", (W,), b"channel=C2&count=True", FORM_TYPE),
        ("POST /api/messages", (W,), b'{"channel":"C1","count":3,"text":{"channel":"C9"}}', "application/json;v=2"),
        ("POST /api/graphql", (W,), b'{"query":"{ viewer { login } }","variables":{}}', "application/json"),
        ("GET /api/live", (W, *WS, KEY, "Sec-WebSocket-Protocol: rt.v1"), None, ""),
        ("GET /api/live", (W,), None, ""),
        ("POST /api/act", (W,), b"do=look", FORM_TYPE),
        ("POST /api/act", (W,), b'{"do":"list","of":"C1"}', "application/json"),
    ],
)
def test_what_is_allowed_passes(line: str, headers: tuple[str, ...], body: bytes | None, content_type: str) -> None:
    assert isinstance(judge(line, *headers, body=body, kind=content_type), Ready)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "held", [{"fields": {"channel": ("C1",)}}, {"query": {"channel": ("C1",)}}, {"closed": ("channel",)}], ids=str
)
def test_a_body_whose_fields_matter_is_read_whole_and_is_an_object(held: dict[str, Any]) -> None:
    one = rule(0, "POST", "messages", **held)
    policy = RulePolicy(replace(PLAN, rules=(one,)))
    admission = policy.admit(
        asked("POST /api/messages", W, "Content-Type: application/json", "Transfer-Encoding: chunked")
    )
    assert isinstance(admission, Admission)
    assert admission.inspect
    assert isinstance(policy.read(admission, b'{"text":"hi"}'), Ready)
    for body in (b'[{"channel":"C9"}]', b'"channel"', b'{"channel":"C9"}'):
        refused = policy.read(admission, body)
        assert isinstance(refused, No)
        assert refused.kind == "field"


@pytest.mark.parametrize(
    ("more", "headers", "whole"),
    [
        (
            {"fields": {"a": ("b",)}},
            ("Transfer-Encoding: chunked", "Content-Type: multipart/form-data; boundary=x"),
            True,
        ),
        ({"fields": {"a": ()}, "must": ("a",)}, ("Transfer-Encoding: chunked", "Content-Type: application/json"), True),
        ({"fields": {"a": ()}}, ("Transfer-Encoding: chunked", "Content-Type: application/json"), True),
        ({}, ("Content-Length: 10", "Content-Type: application/json"), True),
        ({}, ("Content-Length: 2000000", "Content-Type: application/json"), True),
        ({}, ("Transfer-Encoding: chunked", f"Content-Type: {FORM_TYPE}"), True),
        ({}, ("Content-Length: 10", "Content-Type: multipart/form-data; boundary=x"), False),
        ({}, ("Content-Length: 10", "Content-Type: image/png"), False),
    ],
)
def test_which_bodies_are_read_whole(more: dict[str, Any], headers: tuple[str, ...], whole: bool) -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", **more),))
    found = admit("POST /api/messages", W, *headers, plan=plan)
    assert isinstance(found, Admission)
    assert found.inspect == whole


def test_a_known_field_may_be_named_like_a_credential() -> None:
    for fields, passes in [({"token": (), "api_key": ("k",)}, True), ({}, False)]:
        plan = replace(PLAN, rules=(rule(0, "POST", "messages", fields=fields),))
        for body in (b'{"token":"device-1"}', b'{"api_key":"k"}'):
            assert isinstance(judge("POST /api/messages", W, body=body, plan=plan), Ready) == passes


@pytest.mark.parametrize(
    ("found", "allowed", "equal"),
    [
        ("a", "a", True), ("a", "A", False), ("5", 5, True), ("5.0", 5, False), ("2.5", 2.5, True),
        ("true", True, True), ("True", True, True), ("1", True, True), ("0", True, False), ("false", False, True),
        ("0", False, True), ("1", False, False), ("", None, False), ("a", {"a": 1}, False), ("null", None, False),
        ("a,b", ["a", "b"], True), ("a,c", ["a", "b"], False), ('["a","b"]', ["a", "b"], True),
        ('{"a": [1]}', {"a": [1]}, True), ('{"a": [2]}', {"a": [1]}, False), ("{", {"a": [1]}, False),
        ('{"a":1,"a":2}', {"a": 2}, False), ('{"a":"1"}', {"a": 1}, False),
        (None, "a", False), (None, None, False),  # a file
    ],
)  # fmt: skip
def test_a_text_is_the_allowed_value_as_a_form_writes_it(found: Any, allowed: Any, equal: bool) -> None:
    assert same_text(found, allowed) == equal


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("found", "allowed", "equal"),
    [
        (5, 5, True), ("5", 5, False), (5, "5", False), (6, "5", False), (5.0, "5.0", False), (1.0, 1, False),
        (True, True, True), (True, 1, False), (1, True, False), (True, "True", False), ("true", True, False),
        ("1", True, False), (None, None, True), ("", None, False), ("null", None, False), ("a,b", ["a", "b"], False),
        ('["a","b"]', ["a", "b"], False), (["a", "b"], ["a", "b"], True), (["b", "a"], ["a", "b"], False),
        (["a"], "a", False), ("a", ["a"], False), ([1], ["1"], False), ({"n": "1"}, {"n": 1}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ],
)  # fmt: skip
def test_a_value_in_json_is_the_allowed_one_with_its_type(found: Any, allowed: Any, equal: bool) -> None:
    assert same(found, allowed) == equal


def test_a_parameter_that_is_a_credential_is_none_of_the_rule_s() -> None:
    plan = replace(PLAN, rules=(rule(0, "GET", "x", query={"access_token": (), "api_key": ("k",), "token": ()}),))
    found = {
        query: admit(f"GET /api/x?{query}", W, plan=plan)
        for query in ("access_token=a", "key=a", "api_key=b", "api_key=k", "token=a")
    }
    kinds = {query: one.kind for query, one in found.items() if isinstance(one, No)}
    assert kinds == {"access_token=a": "credential", "key=a": "credential", "api_key=b": "field"}


@pytest.mark.parametrize(
    "name",
    ["appid", "APPID", "[appid]", "appid]", "app_id", "[access_token]", "_method]", ".method", "app[id", "c%5Bd"],
)
def test_a_free_query_has_no_name_that_a_server_takes_for_a_credential_or_an_override(name: str) -> None:
    one = rule(
        0, "GET", "x", any_query=True, credential_at="query", credential_name="appid", credential_format="{secret}"
    )  # fmt: skip
    plan, mine = replace(PLAN, rules=(one,)), f"appid={MARKS[WORK]}"
    assert isinstance(admit(f"GET /api/x?{mine}&[page]=2", plan=plan), Admission)
    assert isinstance(admit(f"GET /api/x?{mine}&{name}=other", plan=plan), No)


@pytest.mark.parametrize(
    ("at", "line", "body", "kind"),
    [
        ("query", f"POST /api/x?appid={MARKS[WORK]}", b"a=b&appid=other", FORM_TYPE),
        ("query", f"POST /api/x?appid={MARKS[WORK]}", b"a=b&AppId=other", FORM_TYPE),
        ("query", f"POST /api/x?appid={MARKS[WORK]}", parts("appid=other"), PARTS),
        ("body", "POST /api/x?appid=other", f"appid={MARKS[WORK]}".encode(), FORM_TYPE),
    ],
)
def test_the_credential_s_own_name_stands_in_its_own_place_alone(at: str, line: str, body: bytes, kind: str) -> None:
    one = rule(0, "POST", "x", any_query=True, credential_at=at, credential_name="appid", credential_format="{secret}")
    found = judge(line, body=body, kind=kind, plan=replace(PLAN, rules=(one,)))
    assert isinstance(found, No) and found.kind == "credential", found


@pytest.mark.parametrize("name", ["request_id", "idempotency.key", "c[d"])
def test_a_streamed_form_has_no_field_that_a_form_that_is_read_has_not(name: str) -> None:
    for known, passes in (((), False), (("request_id", "idempotency.key"), name != "c[d")):
        plan = replace(PLAN, rules=(rule(0, "POST", "x", fields=dict.fromkeys(known, ())),))
        found = judge("POST /api/x", W, body=parts(f"{name}=1"), kind=PARTS, plan=plan)
        assert isinstance(found, Ready) == passes, found


@pytest.mark.parametrize(
    "path", ["admin/graphql", "GraphQL", "graphql.json", "graphql.XML", "graphql.php", "gql", "graphql/", "/graphql"]
)
def test_graphql_by_each_of_its_names_needs_a_query(path: str) -> None:
    base, path = ("graphql" if path.startswith("/") else "api"), path.removeprefix("/graphql")
    segments = path.split("/") if path else []
    plan = replace(
        PLAN, rules=(rule(0, "POST", *segments, base_path=(base,), body_format="json", fields={"query": ()}),)
    )
    found = judge(f"POST /{'/'.join([base, *segments])}", W, body=b'{"query":"mutation{x}"}', plan=plan)
    assert isinstance(found, No)
    assert found.kind == "graphql"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"a":[' + b"[]," * 400_000 + b"1]}"),
        ("application/json", b'{"a":[' + b"{}," * 400_000 + b"1]}"),
        ("application/json", b"[" * 600_000),
        ("application/json", json.dumps({f"a{number}": 1 for number in range(10_001)}).encode()),
        (FORM_TYPE, b"a=1" + b"&a=1" * 10_001),
    ],
)
def test_a_body_of_too_many_values_is_not_looked_at(kind: str, body: bytes) -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", body_format="json"),))
    found = judge("POST /api/messages", W, body=body, kind=kind, plan=plan)
    assert isinstance(found, No)
    assert (found.kind, found.status) == ("size", 413)


def test_no_more_is_held_at_once_than_is_said() -> None:
    policy = RulePolicy(PLAN)
    later = ("Transfer-Encoding: chunked", "Content-Type: application/json")
    held = [policy.admit(asked("POST /api/messages", W, *later)) for _ in range(MAX_HELD // MAX_INSPECTED)]
    assert all(isinstance(one, Admission) for one in held)
    for more in (later, ("Content-Length: 1", later[1])):
        refused = policy.admit(asked("POST /api/messages", W, *more))
        assert isinstance(refused, No)
        assert (refused.kind, refused.status) == ("busy", 429)
    assert isinstance(policy.admit(asked("PUT /api/files/a?mode=safe", W, later[0])), Admission)
    assert isinstance(held[0], Admission)
    policy.settle(held[0], "")
    assert isinstance(policy.admit(asked("POST /api/messages", W, *later)), Admission)


def test_each_rule_of_one_path_has_its_own_limit() -> None:
    plan = replace(PLAN, rules=tuple(replace(one, request_bytes=20) if one is ACT_TOO else one for one in PLAN.rules))
    later = ("Transfer-Encoding: chunked", "Content-Type: application/json")
    policy = RulePolicy(plan)
    for body, kind in [(b'{"do":"list","of":"C1"}', "field"), (b'{"do":"look"        }', "")]:
        admission = policy.admit(asked("POST /api/act", W, *later))
        assert isinstance(admission, Admission)
        found = policy.read(admission, body)
        assert (found.kind if isinstance(found, No) else "") == kind


def test_a_known_field_is_not_taken_for_a_closed_one() -> None:
    one = rule(0, "POST", "messages", fields={"user_name": ()}, closed=("username",), body_format="json")
    plan = replace(PLAN, rules=(one,))
    assert isinstance(judge("POST /api/messages", W, body=b'{"user_name":"a"}', plan=plan), Ready)
    assert isinstance(judge("POST /api/messages", W, body=b'{"userName":"a"}', plan=plan), No)


@pytest.mark.promise(51)
def test_a_path_is_the_more_exact_method_s() -> None:
    def found(line: str, *rules: MethodRule, mark: str = W) -> bool:
        return isinstance(admit(line, mark, plan=replace(PLAN, rules=rules)), Admission)

    slot = rule(1, "GET", "users", Slot("id"))
    named = rule(2, "GET", "users", "me")
    assert found("GET /api/users/me", slot, named)
    # Were the named one to refuse it, the one with a slot doesn't stand in.
    assert not found("GET /api/users/me", slot, replace(named, calls=0))
    assert not found("GET /api/users/me", slot, replace(named, account=HOME))
    assert found("GET /api/users/me", slot, replace(named, account=HOME, method_id=slot.method_id))
    assert found("GET /api/users/me", slot, replace(named, method="PUT"))
    ended = replace(slot, path=("users", Slot("id"), ""), others=(("users", "me"),))
    assert found("GET /api/users/u1/", ended)
    assert not found("GET /api/users/me/", ended)
    assert not found("GET /api/users/all.json", replace(slot, others=(("users", "all.json"),)))
    assert not found("GET /api/users/x", replace(slot, others=((Slot("any"), "x"),)))
    many = replace(slot, path=("files", Slot("path", many=True)), others=(("files", Slot("on", many=True), "lock"),))
    assert found("GET /api/files/a/b", many)
    assert found("GET /api/files/lock", many)
    assert not found("GET /api/files/a/lock", many)
    assert not found("GET /api/files/a/b/c/lock", many)
    # Longer and shorter ones are none of it.
    assert found(
        "GET /api/users/u1", replace(slot, others=(("users", "u1", "x"), ("users",), ("users", "u1", "x", "y")))
    )
    assert not found("GET /api/users/u1", replace(slot, others=(("users", "u1", "x"), ("users", "u1"))))
    root = replace(slot, base_path=(), path=())
    assert found("GET /", root, replace(named, base_path=(), path=()))


def test_a_batch_that_was_allowed_by_name_passes() -> None:
    one = rule(0, "POST", "things", Slot("name", ("batch",)))
    assert isinstance(admit("POST /api/things/batch", W, plan=replace(PLAN, rules=(one,))), Admission)


@pytest.mark.promise(51)
def test_a_path_leaves_as_it_was_matched() -> None:
    for path in ("a%2Fb", "%61%2fb"):
        assert dressed(judge(f"DELETE /api/messages/{path}", W))[0] == "/api/messages/a%2Fb"
    assert passes("GET /%61pi/users/u%31", W).target == "/api/users/u1"
    found = passes("PUT /api/files/a/b%2Bc?mode=safe", W, "Content-Length: 1")
    assert (found.target, found.slots) == ("/api/files/a/b%2Bc?mode=safe", {"path": "a/b+c"})
    # A query too: in an order that says nothing, but for what one name says several times.
    query = passes("GET /api/channels/c/messages?limit=2&after=%78+y&limit=1&kind=a", W)
    assert query.target == "/api/channels/c/messages?after=x%20y&kind=a&limit=2&limit=1"


def test_headers_leave_in_one_order_and_by_a_list() -> None:
    mixed = ("X-Stainless-Lang: js", W, "If-Match: a", "Accept: text/a", "Accept: text/b", "X-Wanted: no")
    framing = ("Accept-Encoding: br", "Connection: close, authorization", "TE: trailers")
    one = passes("GET /api/users/u1", *mixed, "User-Agent: my/1", "Notion-Version: 2025-09-03", *framing)
    version = "Notion-Version: 2025-09-03"
    sorted_otherwise = (version, "User-Agent: my/1", "Accept: text/a", "Accept: text/b", "If-Match: a", W)
    other = passes("GET /api/users/u1", *sorted_otherwise)
    assert one.headers == other.headers == (
        ("Accept", "text/a, text/b"), ("User-Agent", "my/1"), ("If-Match", "a"), ("Notion-Version", "2025-09-03"),
    )  # fmt: skip
    assert one.dropped == ("x-stainless-lang", "x-wanted")
    wanted = judge("POST /api/messages", W, "X-Wanted: yes", "X-Token-Kind: a", body=b'{"channel":"C1"}')
    assert dressed(wanted)[1]["X-Wanted"] == "yes"
    assert dressed(wanted)[1]["X-Token-Kind"] == "a"
    assert passes("GET /api/users/u1", W, KEY, "User-Agent: mac 1").headers == (("User-Agent", "mac 1"),)
    opened = passes("GET /api/live", W, *WS, KEY, "X-Odd: 1", "Sec-WebSocket-Extensions: permessage-deflate")
    assert opened.websocket
    assert [name for name, _ in opened.headers] == ["Sec-Websocket-Key", "Sec-Websocket-Version"]


def test_a_body_that_says_nothing_of_its_kind_is_sent_as_bytes() -> None:
    assert dict(passes("PUT /api/files/a?mode=safe", W, "Content-Length: 1").headers) == {
        "Content-Type": "application/octet-stream"
    }


def test_an_inspected_body_is_written_anew() -> None:
    ready = judge("POST /api/messages", W, body=b'{ "text" : "a\\u002fb\\u00e9", "channel":"C1" }')
    assert dressed(ready)[2] == '{"text":"a/bé","channel":"C1"}'.encode()
    form = judge("POST /api/messages", W, body=b"text=a;b%2bc+d&channel=C1", kind=FORM_TYPE + "; charset=UTF-8")
    assert dressed(form)[2] == b"text=a%3Bb%2Bc%20d&channel=C1"
    assert dressed(form)[1]["Content-Type"] == FORM_TYPE
    repeated = judge("POST /api/uploads", W, body=b"note=1&x=a&note=2&note=3", kind=FORM_TYPE)
    assert isinstance(repeated, Ready)
    assert repeated.sent.body == {"note": ["1", "2", "3"], "x": "a"}


def test_what_must_be_there_may_be_in_the_query_too() -> None:
    one = replace(POST, query={"channel": ("C1",)}, fields={"text": ("hi",)}, must=("channel", "text"))
    plan = replace(PLAN, rules=(one,))
    assert isinstance(judge("POST /api/messages?channel=C1", W, body=b'{"text":"hi"}', plan=plan), Ready)
    for line, body in [("POST /api/messages", b'{"text":"hi"}'), ("POST /api/messages?channel=C1", b"{}")]:
        found = judge(line, W, body=body, plan=plan)
        assert isinstance(found, No)
        assert "is missing" in found.reason
    found = judge("POST /api/messages?channel=C1", W, plan=plan)
    assert isinstance(found, No)
    assert "text is missing" in found.reason


def test_a_body_chooses_among_the_rules_of_one_path() -> None:
    policy = RulePolicy(PLAN)
    head = ("Content-Type: application/json", "Content-Length: 24")
    for count in (1, 2):
        admission = policy.admit(asked("POST /api/act", W, *head))
        assert isinstance(admission, Admission)
        ready = policy.read(admission, b'{"do":"list","of":"C1"}')
        assert isinstance(ready, Ready)
        assert (ready.admission.rule, ready.admission.id) == (ACT_TOO, f"rule-13#{count}")
    admission = policy.admit(asked("POST /api/act", W, *head))
    assert isinstance(admission, Admission)
    refused = policy.read(admission, b'{"do":"list","of":"C2"}')
    assert isinstance(refused, No)
    assert (refused.kind, refused.method_id) == ("field", "chat.method12")  # what the first rule has against it


def test_a_rule_holds_so_many_times() -> None:
    policy = RulePolicy(PLAN)
    for count in (1, 2):
        admission = policy.admit(asked("DELETE /api/messages/m1", W))
        assert isinstance(admission, Admission)
        assert admission.id == f"{DROP.id}#{count}"
        policy.settle(admission, "")
    refused = policy.admit(asked("DELETE /api/messages/m1", W))
    assert isinstance(refused, No)
    assert (refused.kind, refused.method_id) == ("calls", DROP.method_id)


def test_a_rule_that_a_body_chose_holds_so_many_times() -> None:
    plan = replace(PLAN, rules=tuple(replace(one, calls=1) if one is ACT_TOO else one for one in PLAN.rules))
    policy = RulePolicy(plan)
    found = []
    for _ in range(2):
        admission = policy.admit(asked("POST /api/act", W, "Content-Type: application/json", "Content-Length: 24"))
        assert isinstance(admission, Admission)
        found.append(policy.read(admission, b'{"do":"list","of":"C1"}'))
    assert isinstance(found[0], Ready)
    assert isinstance(found[1], No)


def test_two_may_not_use_one_last_call_at_once() -> None:
    policy = RulePolicy(replace(PLAN, rules=tuple(replace(one, calls=1) for one in PLAN.rules)))
    head = asked("POST /api/act", W, "Content-Type: application/json", "Content-Length: 24")
    both = [policy.admit(head), policy.admit(head)]  # the second by the other rule, since the first took this one's
    found = [policy.read(one, b'{"do":"list","of":"C1"}') for one in both if isinstance(one, Admission)]
    assert sorted(type(one).__name__ for one in found) == ["No", "Ready"]


def test_what_a_body_did_not_use_can_be_used_again() -> None:
    policy = RulePolicy(replace(PLAN, rules=tuple(replace(one, calls=2) for one in PLAN.rules)))
    head = asked("POST /api/act", W, "Content-Type: application/json", "Content-Length: 24")
    bodies = [b"[]", b'{"do":"list","of":"C1"}', b"[]", b'{"do":"look"}', b'{"do":"list","of":"C1"}', b'{"do":"look"}']
    ids = []
    for body in bodies:
        admission = policy.admit(head)
        assert isinstance(admission, Admission)
        ready = policy.read(admission, body)
        ids.append(ready.admission.id if isinstance(ready, Ready) else "")
        if not ids[-1]:
            assert isinstance(policy.read(admission, body), No)  # asked again, it gives nothing more back
        policy.settle(admission, "")
    assert [name.partition("#")[0] for name in ids] == ["", "rule-13", "", "rule-12", "rule-13", "rule-12"]
    assert len({name for name in ids if name}) == 4
    assert isinstance(policy.admit(head), No)


def test_a_call_that_is_over_gives_nothing_back() -> None:
    policy = RulePolicy(replace(PLAN, rules=(replace(POST, calls=1),)))
    head = asked("POST /api/messages", W, "Content-Type: application/json", "Content-Length: 2")
    admission = policy.admit(head)
    assert isinstance(admission, Admission)
    policy.settle(admission, "")
    assert isinstance(policy.read(admission, b"[]"), No)
    assert isinstance(policy.admit(head), No)


@pytest.mark.parametrize("rules", [(POST, HOME_POST), (HOME_POST, POST)])
def test_the_reason_is_that_of_the_placeholder_s_account(rules: tuple[MethodRule, ...]) -> None:
    found = admit("POST /api/messages?odd=1", W, plan=replace(PLAN, rules=rules))
    assert isinstance(found, No)
    assert found.kind == "query"


def test_the_reason_is_the_first_rule_s() -> None:
    found = admit("POST /api/act", bearer(HOME), "Content-Type: application/json", "Content-Length: 2")
    assert isinstance(found, No)
    assert (found.kind, found.method_id) == ("placeholder", "chat.method12")
    slots = (rule(1, "GET", "users", Slot("id", ("a",))), rule(2, "GET", "users", Slot("id", ("b",))))
    found = admit("GET /api/users/c", W, plan=replace(PLAN, rules=slots))
    assert isinstance(found, No)
    assert (found.reason, found.method_id) == ("id is held to 'a'", "chat.method1")
    small = replace(HOME_POST, account=WORK, query={"odd": ()}, request_bytes=1)
    for rules, kind in [((POST, small), "query"), ((small, POST), "size")]:
        found = admit(
            "POST /api/messages?odd=1", W, "Content-Type: application/json", "Content-Length: 2",
            plan=replace(PLAN, rules=rules),
        )  # fmt: skip
        assert isinstance(found, No)
        assert found.kind == kind


def test_a_last_call_that_a_thread_has_just_taken_is_taken() -> None:
    class Meanwhile(RulePolicy):
        def _by(self, rule: MethodRule, *more: Any) -> Admission:
            found = super()._by(rule, *more)
            self._used[rule.id] += 1
            return found

    found = Meanwhile(replace(PLAN, rules=(replace(USER, calls=1),))).admit(asked("GET /api/users/u1", W))
    assert isinstance(found, No)
    assert found.kind == "calls"


def test_a_body_is_read_where_there_is_one() -> None:
    one = rule(0, "POST", "messages", body_format="json", request_bytes=20)
    policy = RulePolicy(replace(PLAN, rules=(one,)))
    none = policy.admit(asked("POST /api/messages", W, "Content-Length: 0"))
    assert isinstance(none, Admission)
    assert not none.inspect
    streamed = policy.stream(none, 0)
    assert not isinstance(streamed, No)
    assert streamed[0].sent is not None and streamed[0].sent.body is None
    later = ("Transfer-Encoding: chunked", "Content-Type: application/json")
    chunked = policy.admit(asked("POST /api/messages", W, *later))
    assert isinstance(chunked, Admission)
    assert chunked.inspect
    empty = policy.read(chunked, b"")
    assert isinstance(empty, Ready)
    assert (empty.body, empty.sent.body) == (b"", None)
    large = policy.read(chunked, b'{"a":"01234567890123"}')
    assert isinstance(large, No)
    assert (large.kind, large.status) == ("size", 413)
    silent = policy.admit(asked("POST /api/messages", W, later[0]))
    assert isinstance(silent, Admission)
    refused = policy.read(silent, b"[]")
    assert isinstance(refused, No)
    assert "without a content-type" in refused.reason
    other = policy.admit(asked("POST /api/messages", W, later[0], "Content-Type: text/plain"))
    assert isinstance(other, No)
    assert "is JSON or a form" in other.reason


def test_what_must_be_there_is_missing_from_an_empty_body_too() -> None:
    policy = RulePolicy(PLAN)
    later = ("Transfer-Encoding: chunked", "Content-Type: application/json")
    for line, mark, origin, kind in [
        ("POST /api/messages", W, CHAT, "field"),
        ("POST /send", "Accept: */*", FORMS, "placeholder"),
    ]:
        admission = policy.admit(asked(line, mark, *later, origin=origin))
        assert isinstance(admission, Admission)
        refused = policy.read(admission, b"")
        assert isinstance(refused, No)
        assert refused.kind == kind


@pytest.mark.parametrize(
    ("kind", "body", "content_type"),
    [
        ("placeholder", b"to=ann", FORM_TYPE),
        ("credential", b"to=ann&token=abc", FORM_TYPE),
        ("placeholder", f"to=ann&token={MARKS[WORK]}".encode(), FORM_TYPE),
        ("credential", f"to=ann&token={MARKS[FORM]}&token={MARKS[FORM]}".encode(), FORM_TYPE),
        ("credential", json.dumps({"to": "ann", "token": [MARKS[FORM]]}).encode(), "application/json"),
        ("placeholder", json.dumps({"to": "ann", "token": MARKS[FORM], "x": MARKS[FORM]}).encode(), "application/json"),
        ("credential", f"to=ann&token={MARKS[FORM]}&access_token=a".encode(), FORM_TYPE),
        ("field", f"to=bob&token={MARKS[FORM]}".encode(), FORM_TYPE),
        (
            "body",
            f'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n{MARKS[FORM]}\r\n--x--\r\n'.encode(),
            "multipart/form-data; boundary=x",
        ),
    ],
)
def test_a_credential_in_a_body_is_the_placeholder_of_its_account(kind: str, body: bytes, content_type: str) -> None:
    found = judge("POST /send", body=body, kind=content_type, origin=FORMS)
    assert isinstance(found, No)
    assert found.kind == kind


def test_so_many_are_under_way_at_once() -> None:
    policy = RulePolicy(PLAN)
    admissions = [policy.admit(asked("GET /api/users/u1", W)) for _ in range(MAX_UNDER_WAY)]
    assert all(isinstance(one, Admission) for one in admissions)
    refused = policy.admit(asked("GET /api/users/u1", W))
    assert isinstance(refused, No)
    assert (refused.status, refused.kind) == (429, "busy")
    assert isinstance(admissions[3], Admission)
    policy.settle(admissions[3], "")
    policy.settle(admissions[3], "")
    assert isinstance(policy.admit(asked("GET /api/users/u1", W)), Admission)
    assert isinstance(policy.admit(asked("GET /api/users/u1", W)), No)


def test_nothing_passes_when_it_is_stopped() -> None:
    policy = RulePolicy(PLAN)
    policy.stop("too much was refused")
    policy.stop("the action has ended")
    found = policy.admit(asked("GET /api/users/u1", W))
    assert isinstance(found, No)
    assert "too much was refused" in found.reason


def test_another_host_port_or_scheme_has_no_rule() -> None:
    policy = RulePolicy(PLAN)
    for origin in (
        Origin("https", "evil.example", 443),
        Origin("https", "chat.example", 8443),
        Origin("http", CHAT.host, 443),
    ):
        assert not policy.knows(origin)
        found = policy.admit(asked("GET /api/users/u1", W, origin=origin))
        assert isinstance(found, No)
        assert found.kind == "host"
    assert policy.knows(CHAT)
    assert policy.knows(AUTH)


def test_without_a_rule_nothing_passes() -> None:
    plan = GatewayPlan(action_id="a1", code=True)
    assert plan.by_rules
    assert not RulePolicy(plan).knows(CHAT)
    assert isinstance(admit("GET /", plan=plan), No)


def test_the_token_endpoint_is_answered_with_the_placeholder() -> None:
    policy = RulePolicy(PLAN)
    local = policy.admit(asked("POST /token", f"Content-Type: {FORM_TYPE}", "Content-Length: 10", origin=AUTH))
    assert isinstance(local, Local)
    for grant in ("urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer", "refresh_token", "client_credentials"):
        answered = policy.answer(local, f"grant_type={grant}&assertion=a.b.c&scope=x".encode())
        said = json.loads(answered.body)
        assert (answered.status, said["access_token"], said["token_type"]) == (200, MARKS[WORK], "Bearer")
        assert said["expires_in"] == 3600
    for body, error in [
        (b"grant_type=authorization_code&code=x", "unsupported_grant_type"),
        (b"grant_type=refresh_token&grant_type=refresh_token", "invalid_request"),
        (b"\xff", "invalid_request"),
        (b"", "unsupported_grant_type"),
        (b"grant_type=refresh_token&target_audience=x", "invalid_scope"),
    ]:
        answered = policy.answer(local, body)
        assert (answered.status, json.loads(answered.body)["error"]) == (400, error)
        assert MARKS[WORK].encode() not in answered.body
    for line, kind in [
        ("GET /token", FORM_TYPE), ("POST /token?x=1", FORM_TYPE), ("POST /other", FORM_TYPE), ("POST /token", "a/b"),
    ]:  # fmt: skip
        assert isinstance(admit(line, f"Content-Type: {kind}", "Content-Length: 10", origin=AUTH), No)


def test_a_token_is_asked_for_in_json_too() -> None:
    policy = RulePolicy(PLAN)
    local = policy.admit(asked("POST /token", "Content-Type: application/json", "Content-Length: 10", origin=AUTH))
    assert isinstance(local, Local)
    good = policy.answer(local, b'{"grant_type":"refresh_token","scope":"a"}')
    assert (good.status, json.loads(good.body)["scope"]) == (200, "a")
    assert "scope" not in json.loads(policy.answer(local, b'{"grant_type":"refresh_token"}').body)
    for body in (b'{"grant_type":["refresh_token"]}', b'{"grant_type":1}', b"{", b'["refresh_token"]'):
        assert policy.answer(local, body).status == 400


def test_a_refusal_says_to_the_code_what_was_refused_and_what_to_do() -> None:
    found = judge("GET /api/users/u1")
    assert isinstance(found, No)
    said = json.loads(refusal_body(found, "GET", "https://chat.example/api/users/u1\x1b[2J"))
    assert said["ok"] is False
    assert said["error"]["refused"].startswith("GET https://chat.example/api/users/u1")
    assert "\x1b" not in json.dumps(said, ensure_ascii=False)
    assert said["error"]["type"] == "goex-refused"
    assert (said["error"]["kind"], said["error"]["method"]) == ("placeholder", USER.method_id)
    assert said["error"]["next_step"] == "Send there what GOEX_TOKEN_CHAT holds."
    assert said["message"] == said["error"]["message"]
    assert said["error"]["reason"] in said["message"]


@pytest.mark.parametrize("secret", ["a\r\nX-Evil: 1", "", "a ", "é"])
def test_a_credential_that_is_not_one_value_is_not_sent(secret: str) -> None:
    from tests.runtimes.gateway.support import account, lease

    ready = judge("GET /api/users/u1", W)
    assert isinstance(ready, Ready)
    with pytest.raises(InvalidInput):
        with_credential(ready, lease(account(CHAT), secret=secret))


def test_an_upgrade_is_read_by_one_spelling_alone() -> None:
    good = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"
    assert parse_head(good, upgrades=True).upgrade == "websocket"
    for bad in (
        good.replace(b"Upgrade: WebSocket", b"Upgrade: h2c"),
        good.replace(b"Upgrade: WebSocket", b"Upgrade: websocket, h2c"),
        good.replace(b"Upgrade: WebSocket", b"Upgrade: websocket\r\nUpgrade: h2c"),
        good.replace(b"Upgrade: WebSocket", b"X-A: b"),
        good.replace(b"keep-alive, Upgrade", b"keep-alive"),
        good.replace(b"keep-alive, Upgrade", b"Upgrade, HTTP2-Settings"),
        good.replace(b"GET", b"POST"),
        good.replace(b"Upgrade: WebSocket", b"Upgrade: WebSocket\r\nContent-Length: 5"),
        good.replace(b"Upgrade: WebSocket", b"Upgrade: WebSocket\r\nHTTP2-Settings: a"),
    ):
        with pytest.raises(BadHead):
            parse_head(bad, upgrades=True)
    with pytest.raises(BadHead):
        parse_head(good)


def test_a_slot_of_several_segments_is_divided_in_one_way() -> None:
    one = rule(0, "GET", "a", Slot("middle", many=True), "z", Slot("last"))
    plan = replace(PLAN, rules=(one,))
    found = admit("GET /api/a/b/z/z/c", W, plan=plan)
    assert isinstance(found, Admission)
    assert found.slots == {"middle": "b/z", "last": "c"}
    assert isinstance(admit("GET /api/a/z/c", W, plan=plan), No)
