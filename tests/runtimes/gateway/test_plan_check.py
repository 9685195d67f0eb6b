"""Plans and leases that can't be served safely are refused before a socket exists; and the wire keeps them whole."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.services import Expect
from policies.typed_json import from_json, to_json
from runtimes.gateway.credential import secrets_of
from runtimes.gateway.lease_json import (
    lease_from_json,
    lease_to_json,
)
from runtimes.gateway.plan import Exchange, GatewayPlan, Ref
from runtimes.gateway.plan_check import check_opening
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.rpc_frames import BrokenFrame, encode, read
from tests.runtimes.gateway.support import SERVICE, account, lease, plan, planned
from vault.secret import Secret

ORIGIN = Origin("https", "api.example", 443)
EVIL = Origin("https", "evil.example", 443)
NOW = datetime.now(UTC)


def test_a_good_one_opens() -> None:
    held = check_opening(plan(planned(ORIGIN)), [lease(account(ORIGIN))], NOW)
    assert list(held) == [("demo", "me")]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"origin": EVIL}, "isn't an origin"),
        ({"origin": Origin("https", "api.example", 8443)}, "isn't an origin"),
        ({"origin": Origin("http", "api.example", 443)}, "isn't an origin"),
        ({"account": ("demo", "other")}, "no lease"),
        ({"method": "TRACE"}, "method"),
        ({"method": "CONNECT"}, "method"),
        ({"method": "post"}, "method"),
        ({"attempts": 2}, "isn't a read"),
        ({"attempts": 0}, "attempts"),
        ({"method": "GET", "attempts": 1000}, "attempts"),
        ({"path": ("a", "..")}, "path"),
        ({"path": ("", "a")}, "path"),
        ({"path": ("a\r\nb",)}, "path"),
        ({"base_path": ("..",)}, "path"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "header"),
        ({"headers": {"X A": "1"}}, "header"),
        ({"headers": {"Host": "evil"}}, "header"),
        ({"headers": {"Cookie": "a=b"}}, "header"),
        ({"headers": {"X-Original-URL": "/admin"}}, "header"),
        ({"headers": {"x-forwarded-host": "evil"}}, "header"),
        ({"headers": {"DPoP": "x"}}, "header"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "header"),
        ({"headers": {"authorization": "x"}}, "twice"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "twice"),
        ({"credential_format": "Bearer"}, "place"),
        ({"credential_format": "{secret}{secret}"}, "place"),
        ({"credential_name": "Host"}, "isn't for credentials"),
        ({"credential_name": "X A"}, "place"),
        ({"body": {"x": 1}, "body_format": "none"}, "no format"),
        ({"body": ["x"], "body_format": "form"}, "form"),
    ],
)
def test_requests_that_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_opening(plan(planned(changes.pop("origin", ORIGIN), **changes)), [lease(account(ORIGIN))], NOW)


@pytest.mark.parametrize("secret", ["", "a\nb", "a\r\nX: y", "a\0b", "é", " a", "a ", "x" * 9000])
def test_secrets_that_cannot_be_one_header(secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_opening(plan(planned(ORIGIN, credential_format="{secret}")), [lease(account(ORIGIN), secret=secret)], NOW)
    assert len(secret) < 3 or secret not in str(caught.value)


def test_leases_that_are_refused() -> None:
    good = lease(account(ORIGIN))
    for leases in ([], [good, good], [lease(account(ORIGIN), "a2")], [lease(account(ORIGIN), seconds=-100_000)]):
        with pytest.raises(InvalidInput):
            check_opening(plan(planned(ORIGIN)), leases, NOW)


def test_plain_http_needs_a_private_account() -> None:
    plain = Origin("http", "api.example", 80)
    private = account(plain)
    check_opening(plan(planned(plain)), [lease(private)], NOW)
    public = dataclasses.replace(private, private=True)
    object.__setattr__(public, "private", False)  # what the account's own check doesn't let anyone build
    with pytest.raises(InvalidInput, match="plain http"):
        check_opening(plan(planned(plain)), [lease(public)], NOW)


@pytest.mark.parametrize(
    "changes",
    [{"requests": ()}, {"seconds": 0.0}, {"seconds": 1e9}, {"max_request_bytes": 0}, {"max_response_bytes": 2**40}],
)
def test_plans_that_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_opening(dataclasses.replace(plan(planned(ORIGIN)), **changes), [lease(account(ORIGIN))], NOW)
    with pytest.raises(InvalidInput, match="one id"):
        check_opening(plan(planned(ORIGIN), planned(ORIGIN)), [lease(account(ORIGIN))], NOW)


def test_the_wire_keeps_a_plan_whole() -> None:
    made = planned(
        ORIGIN,
        path=("a", Ref("x", "$.y")),
        query={"q": [Ref("x", "$"), 1, None, True]},
        body={"$ref": ["x", "$.y"], "r": {"m": [Ref("x", "$.z")]}, "l": 1.5},
        headers={"X-A": "1"},
        expect=(Expect(op="equals", path="$.a", value=Ref("x", "$.y"), says="no"), Expect(op="status", value=[1])),
    )
    sent = plan(made)
    assert from_json(GatewayPlan, to_json(sent), "It") == sent
    given = dataclasses.replace(
        lease(account(ORIGIN, ca_pem="pem")), redact=(Secret("the password"), Secret(b"\xff pair"))
    )
    assert lease_from_json(lease_to_json(given)) == given
    seen = Exchange(request="a", status=200, well=True, body={"r": [1]}, text="t", failed="f", size=7, replayed=True)
    assert from_json(Exchange, to_json(seen), "It") == seen
    with pytest.raises(InvalidInput):
        to_json(plan(planned(ORIGIN, body={"x": object()})))


async def test_frames() -> None:
    async def fed(data: bytes, limit: int = 100) -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read(reader, limit)

    frame = encode({"a": "é\0"})
    assert await fed(frame) == {"a": "é\0"}
    assert await fed(b"") is None
    for bad in (frame[:-1], frame[:3], encode({"a": "x" * 100}), b"\0\0\0\x02[]", b"\0\0\0\x01{"):
        with pytest.raises(BrokenFrame):
            await fed(bad)
    with pytest.raises(BrokenFrame):
        encode({"a": "x" * 100}, 50)
    with pytest.raises(BrokenFrame):
        encode({"a": float("nan")})


def test_what_a_lease_names_beside_its_secret_never_comes_back_either() -> None:
    given = dataclasses.replace(lease(account(ORIGIN)), redact=(Secret("the password"), Secret("ada:the password")))
    found = secrets_of(plan(planned(ORIGIN)), {SERVICE: given})
    assert Redactor(found).clean(b"ada:the password, the password, " + given.secret.reveal()).count(b"[redacted]") == 3
