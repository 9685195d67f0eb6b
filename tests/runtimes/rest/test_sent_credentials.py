"""Where credentials go, sent for real: in the query, in a cookie, several at once; and where they may not come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.errors import InvalidInput
from tests.mapper.importing.openapi_documents import document
from tests.runtimes.gateway.support import Reply, Seen, json_reply
from tests.runtimes.rest.sent import SECRET, Sent, account_at, imported, send, steps_of

ID = "canary-id-5520913"
BOTH = json.dumps({"PLAID-CLIENT-ID": ID, "PLAID-SECRET": SECRET})


def doc(security: Any, schemes: dict[str, Any], *parameters: Any) -> dict[str, Any]:
    raw = document({"/x": {"get": {"operationId": "look", "parameters": list(parameters)}}}, security=security)
    raw["components"]["securitySchemes"] = schemes
    return raw


def key(place: str, name: str) -> dict[str, Any]:
    return {"type": "apiKey", "in": place, "name": name}


PAIR = doc(
    [{"id": [], "secret": []}], {"id": key("header", "PLAID-CLIENT-ID"), "secret": key("header", "PLAID-SECRET")}
)


def told(sent: Sent) -> str:
    """All that the daemon (and with it the journal) and the container were told."""
    return f"{sent.watch.events!r} {sent.watch.passed!r} {sent.answers!r}"


def echo(seen: Seen) -> Reply:
    return json_reply({"target": seen.target, "headers": dict(seen.headers)})


@pytest.mark.parametrize(
    ("place", "target", "header", "value"),
    [
        ("query", f"/x?q=1&k.1={SECRET}", "authorization", None),
        ("cookie", "/x?q=1", "cookie", f"k.1={SECRET}"),
        ("header", "/x?q=1", "k.1", SECRET),
    ],
)
async def test_a_key_goes_to_its_place(tmp_path: Path, place: str, target: str, header: str, value: str | None) -> None:
    raw = doc([{"s": []}], {"s": key(place, "k.1")}, {"name": "q", "in": "query", "schema": {"type": "integer"}})
    sent = await send(tmp_path, raw, ("look", {"q": 1}), answer=echo)
    assert sent.well
    assert sent.only.target == target
    assert sent.only.headers.get(header) == value
    assert "authorization" not in sent.only.headers
    assert SECRET not in told(sent)
    assert sent.watch.sent[0].endswith("/x")  # the journal's line has no query


@pytest.mark.promise(54)
async def test_a_key_that_must_be_encoded_comes_back_in_no_spelling(tmp_path: Path) -> None:
    secret = "goex/canary+7Qf3 Zr=9xW2kLmP0"
    raw = doc([{"s": []}], {"s": key("query", "key")})
    sent = await send(tmp_path, raw, ("look", {}), answer=echo, secret=secret)
    assert sent.only.target == "/x?key=goex%2Fcanary%2B7Qf3%20Zr%3D9xW2kLmP0"
    assert "canary" not in told(sent)


@pytest.mark.promise(54)
async def test_two_credentials_go_to_their_places(tmp_path: Path) -> None:
    sent = await send(tmp_path, PAIR, ("look", {}), answer=echo, secret=BOTH)
    assert (sent.only.headers["plaid-client-id"], sent.only.headers["plaid-secret"]) == (ID, SECRET)
    assert "authorization" not in sent.only.headers
    assert SECRET not in told(sent) and ID not in told(sent)


async def test_a_user_and_password_among_them_become_basic(tmp_path: Path) -> None:
    raw = doc([{"b": [], "k": []}], {"b": {"type": "http", "scheme": "basic"}, "k": key("query", "key")})
    secret = json.dumps({"Authorization": f"me:{SECRET}", "key": ID})
    sent = await send(tmp_path, raw, ("look", {}), answer=echo, secret=secret)
    assert sent.only.headers["authorization"] == "Basic bWU6Z29leGNhbmFyeS03UWYzWnI5eFcya0xtUDBhYQ=="
    assert sent.only.target == f"/x?key={ID}"
    assert "bWU6Z29l" not in told(sent) and SECRET not in told(sent)


@pytest.mark.parametrize(
    "secret",
    [
        SECRET,
        json.dumps({"PLAID-SECRET": SECRET}),
        json.dumps({"PLAID-CLIENT-ID": ID, "PLAID-SECRET": SECRET, "X": "1"}),
        json.dumps({"PLAID-CLIENT-ID": ID, "PLAID-SECRET": ""}),
        json.dumps({"PLAID-CLIENT-ID": ID, "PLAID-SECRET": [SECRET]}),
        json.dumps({"PLAID-CLIENT-ID": ID, "PLAID-SECRET": f"{SECRET}\r\nX: y"}),
    ],
)
async def test_other_values_than_those_that_are_wanted_arent_sent(tmp_path: Path, secret: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await send(tmp_path, PAIR, ("look", {}), secret=secret)
    assert SECRET not in f"{caught.value} {caught.value.next_step}"


def test_a_dry_run_names_the_places(tmp_path: Path) -> None:
    from runtimes.rest.dryrun import headers

    (step,) = steps_of(imported(tmp_path, PAIR), account_at("https://things.example.com"), ("look", {}))
    assert headers(step.request) == [
        ("PLAID-CLIENT-ID", "‹the credential things/me›"),
        ("PLAID-SECRET", "‹the credential things/me›"),
    ]


def test_an_argument_cant_stand_in_the_credentials_place(tmp_path: Path) -> None:
    raw = doc([{"s": []}], {"s": key("query", "k")}, {"name": "k", "in": "query", "schema": {"type": "string"}})
    method = imported(tmp_path, raw).method("things.look")
    assert not method.parameters["properties"]
