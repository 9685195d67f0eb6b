"""Whatever code sends: what passes is within its rule, as parsers other than the gateway's own read it.

The standard library's parsers stand for a server's.
"""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.services import OVERRIDE_NAMES
from runtimes.gateway.admission import Admission, No, Ready, Refused
from runtimes.gateway.credential import with_credential
from runtimes.gateway.head import OVERRIDES, BadHead
from runtimes.gateway.plan import MethodRule, Slot
from runtimes.gateway.rule_match import RulePolicy
from tests.runtimes.gateway.ruled import MARKS, PLAN, SECRETS, WORK, asked, bearer, leases

GOOD = [
    ("POST", "/api/messages?pretty=1", "application/json", b'{"channel":"C1","count":3,"text":"hi"}'),
    ("POST", "/api/messages", "application/x-www-form-urlencoded", b"channel=C1&count=3&text=hi"),
    ("GET", "/api/channels/c9/messages?limit=2&kind=a", "", b""),
    ("GET", "/api/users/u1", "", b""),
    ("PUT", "/api/files/a/b/c?mode=safe", "text/plain", b"data"),
    ("DELETE", "/api/messages/a%2Fb", "", b""),
    ("POST", "/api/jobs/j1:cancel", "", b""),
    ("POST", "/api/things/t1", "application/json", b'{"a":[1,{"b":"c"}]}'),
    ("POST", "/api/uploads?dir=in", "application/x-www-form-urlencoded", b"note=x"),
    ("POST", "/api/act", "application/json", b'{"do":"list","of":"C1"}'),
    ("POST", "/api/graphql", "application/json", b'{"query":"{ viewer { login } }"}'),
]
NASTY = [
    "/", "//", "..", "/../", "%2e%2e", "%2f", "%2F", "%5c", "\\", ";", "%00", "%0d%0a", "?", "#", "&", "=", "&kind=b",
    "+", "%25", "%252f", "%c0%ae", "%ef%bc%8f", "me", "ME", ".json", ":secret", ":cancel", "graphql", "$batch", "[]",
    "[0]", "_method", "_method=DELETE", "&channel=C9", "channel", "Channel", "channel[]", '","channel":"C9',
    '","_method":"DELETE', '"', "{", "}", "[", "]", "\\u0063hannel", "as_user", "token", "access_token=a", "C9",
    "true", "1e999", "\x00", "\xe9", " ", "\t", MARKS[WORK], SECRETS[WORK],
]  # fmt: skip
HEADERS = [
    "X-HTTP-Method-Override: DELETE", "X-Method: DELETE", "X-Original-URL: /x", "X-Forwarded-Host: evil.example",
    "Cookie: a=b", "X-Api-Key: a", "Authorization: Bearer other", f"X-Note: {MARKS[WORK]}", "X-Amz-Date: 1", "DPoP: a",
    "Range: bytes=0-1", "Accept: a/b", "Accept: c/d", "X-Any: 1", "Notion-Version: 1",
    "Connection: close, authorization", "TE: trailers", "Transfer-Encoding: chunked", "Content-Encoding: gzip",
    "Expect: 100-continue", "Upgrade: websocket", "X-Wanted: 1", "Content-Disposition: inline", "If-Match: *",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
]  # fmt: skip

edits = st.lists(
    st.tuples(st.sampled_from(["target", "body"]), st.integers(0, 80), st.integers(0, 3), st.sampled_from(NASTY)),
    max_size=3,
)


requests = given(
    good=st.sampled_from(GOOD),
    edit=edits,
    headers=st.lists(st.sampled_from(HEADERS), max_size=2),
    mark=st.sampled_from([bearer(), bearer(), bearer(), f"Authorization: Bearer {SECRETS[WORK]}", "Accept: */*"]),
    verb=st.sampled_from(["", "", "", "DELETE", "PATCH", "HEAD"]),
)
twice = example(GOOD[0], [("body", 12, 0, '1","channel":"C9')], [], bearer(), "")


@pytest.mark.promise(51)
def test_what_passes_is_within_its_rule(thorough: bool) -> None:
    size = settings(max_examples=20_000 if thorough else 150)
    size(twice(requests(is_within_its_rule)))()


def is_within_its_rule(
    good: tuple[str, str, str, bytes], edit: list[tuple[str, int, int, str]], headers: list[str], mark: str, verb: str
) -> None:
    method, target, kind, body = good
    said = body.decode()
    for where, at, cut, text in edit:
        if where == "target":
            target = target[:at] + text + target[at + cut :]
        else:
            said = said[:at] + text + said[at + cut :]
    body = said.encode()
    more = [f"Content-Length: {len(body)}"] if body else []
    more += [f"Content-Type: {kind}"] if kind else []
    try:
        head = asked(f"{verb or method} {target}", mark, *headers, *more)
    except BadHead:
        return
    policy = RulePolicy(PLAN)
    admission = policy.admit(head)
    if not isinstance(admission, Admission):
        return
    assert mark == bearer()
    if admission.inspect:
        ready = policy.read(admission, body)
        if isinstance(ready, Ready):
            _within(ready, verb or method, body)
        return
    streamed = policy.stream(admission, len(body))
    if isinstance(streamed, No):
        return
    try:
        streamed[1].feed(body)
        streamed[1].finish()
    except Refused:
        return
    _within(streamed[0], verb or method, body)


def _within(ready: Ready, method: str, streamed: bytes) -> None:
    rule = ready.admission.rule
    assert isinstance(rule, MethodRule)
    made = with_credential(ready, leases()[0])
    assert method == rule.method
    target = urlsplit(made.target)
    assert not target.scheme
    assert not target.netloc
    assert not target.fragment
    raw = target.path.split("/")[1:]
    _fits(rule, [unquote(segment) for segment in raw])
    again = target.path
    for _ in range(3):
        again = unquote(again)
        assert not set(again.split("/")) & {".", ".."}
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(target.query, keep_blank_values=True, strict_parsing=bool(target.query)):
        values.setdefault(name, []).append(value)
    assert values.keys() <= rule.query.keys()
    for name, allowed in rule.query.items():
        assert not allowed or set(values.get(name, [])) <= set(allowed)
    names = [name.lower() for name, _ in made.headers]
    assert len(set(names)) == len(names)
    assert not set(names) & (OVERRIDES | {"cookie", "x-api-key", "transfer-encoding", "connection", "host", "upgrade"})
    assert [value for name, value in made.headers if name == "Authorization"] == [f"Bearer {SECRETS[WORK]}"]
    body = made.body if made.body is not None else streamed
    everything = repr((made.target, made.headers, body))
    assert not any(mark in everything for mark in MARKS.values())
    if made.body:
        _holds(rule, dict(made.headers)["Content-Type"], made.body)


def _fits(rule: MethodRule, segments: list[str]) -> None:
    """By a regular expression over the decoded segments, written from the rule's template."""
    parts = []
    for part in (*rule.base_path, *rule.path):
        if isinstance(part, Slot):
            held = "|".join(re.escape(value) for value in part.values)
            any_one = r"(?:(?!%[0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4})[^/\\?#;\x00])+"
            free = f"{any_one}(?:/{any_one})*" if part.many else any_one
            parts.append(f"(?:{held or free}){re.escape(part.end)}")
        else:
            parts.append(re.escape(part))
    assert re.fullmatch("/".join(parts), "/".join(segments)), (rule.id, segments)
    if rule.id == "rule-2":
        assert segments[-1].lower().partition(".")[0] != "me" or not segments[-1].endswith(".json")
        assert segments[-1].lower() != "me"
        assert not segments[-1].lower().endswith(":secret")


def _holds(rule: MethodRule, kind: str, body: bytes) -> None:
    if kind.startswith("application/json"):
        found = json.loads(body)
        pairs = list(found.items()) if isinstance(found, dict) else []
    else:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    names = [name for name, _ in pairs]
    for name, allowed in rule.fields.items():
        if allowed:
            assert names.count(name) <= 1
            written = {str(value) for value in allowed} | {str(value).lower() for value in allowed} | {"1"}
            assert {str(value) for one, value in pairs if one == name} <= written
            lookalikes = [one for one in names if one.lower().partition("[")[0] == name]
            assert lookalikes in ([], [name])
    assert set(rule.must) <= {*names, *rule.query}
    assert not set(rule.closed) & set(names)
    assert not {name.lower() for name in names} & (OVERRIDE_NAMES | {"token", "access_token"})
