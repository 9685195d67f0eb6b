"""What servers say, read: whatever comes, it is either taken as the protocol means it or refused in words."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as some

from policies.errors import GoexError, InvalidInput
from tests.support.examples import sized
from tests.vault.oauth.support import scopes
from vault.oauth.discovery import from_metadata
from vault.oauth.errors import AuthorizationServerBroken, MixUp
from vault.oauth.http import _object
from vault.oauth.http_request import Reply
from vault.oauth.idtoken import _claims
from vault.oauth.provider import Client, Provider
from vault.oauth.responses import read_device, read_scopes, read_token
from vault.oauth.token_set import Access, Pending, TokenSet
from vault.secret import Secret

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=30),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
TOKEN_KEYS = ["access_token", "token_type", "expires_in", "refresh_token", "scope", "id_token", "issued_token_type"]
DEVICE_KEYS = ["device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval"]
META_KEYS = [
    "issuer",
    "token_endpoint",
    "authorization_endpoint",
    "jwks_uri",
    "grant_types_supported",
    "authorization_response_iss_parameter_supported",
]
VISIBLE = some.text(some.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
SCOPE = some.text(
    some.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='"\\,'), min_size=1, max_size=20
)


def objects(keys: list[str], good: dict[str, Any]) -> some.SearchStrategy[dict[str, Any]]:
    """Objects that are nearly right: each key is as it should be, anything at all, or absent."""
    return some.fixed_dictionaries({}, optional={key: some.just(good.get(key)) | JSON for key in keys})


@sized(20, 60, objects(TOKEN_KEYS, {"access_token": "abc", "token_type": "Bearer", "expires_in": 60, "scope": "a b"}))
def test_a_token_answer_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        made = read_token(body)
    except GoexError as error:
        assert not isinstance(error, InvalidInput)  # the server's fault, not the person's
        return
    token = made.token.reveal()
    assert token == body["access_token"].encode() and token.isascii()
    assert all(0x20 < byte < 0x7F for byte in token + made.refresh.reveal())
    assert str(body["token_type"]).lower() == "bearer"
    assert made.expires_in is None or made.expires_in > 0
    assert made.scopes is None or all(" " not in each for each in made.scopes)


@sized(
    20,
    60,
    objects(
        DEVICE_KEYS,
        {
            "device_code": "d",
            "user_code": "AB-CD",
            "verification_uri": "https://example.org/device",
            "expires_in": 60,
            "interval": 5,
        },
    ),
)
def test_a_device_answer_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        made = read_device(body, private=False)
    except GoexError as error:
        assert not isinstance(error, InvalidInput)
        return
    assert made.verification_url.startswith("https://") and made.interval >= 1 and made.expires_in > 0
    assert made.user_code.isprintable() and made.user_code.isascii()


def test_the_browser_is_led_to_no_other_origin_than_the_page_that_is_shown() -> None:
    page = "https://example.org/device"
    body = {"device_code": "d", "user_code": "AB-CD", "verification_uri": page, "expires_in": 60}
    for complete, led in (
        (f"{page}?user_code=AB-CD", True),
        ("https://other.example.org/device?user_code=XX-YY", False),
    ):
        made = read_device({**body, "verification_uri_complete": complete}, private=False)
        assert (made.verification_url, made.verification_url_complete) == (page, complete if led else "")


@sized(20, 60, objects(META_KEYS, {"issuer": "https://example.org", "token_endpoint": "https://example.org/t"}))
def test_metadata_is_read_or_refused(body: dict[str, Any]) -> None:
    try:
        made = from_metadata(body, "https://example.org", private=False)
    except GoexError as error:
        assert isinstance(error, AuthorizationServerBroken)
        assert isinstance(error, MixUp) == (body.get("issuer") != "https://example.org")
        return
    assert made.issuer == body["issuer"]
    assert all(url.startswith("https://") for url in (made.issuer, made.token_endpoint))
    assert Provider.from_json(json.loads(json.dumps(dict(made.to_json())))) == made


@sized(20, 60, some.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_object_or_refused(data: bytes) -> None:
    try:
        made = _object("https://example.org", Reply(200, "application/json", "", data))
    except AuthorizationServerBroken as error:
        assert error.__context__ is None and error.__cause__ is None
        return
    assert isinstance(made, dict)


@sized(
    20,
    60,
    some.text(max_size=120) | some.binary(max_size=60).map(lambda raw: f"a.{base64.urlsafe_b64encode(raw).decode()}.c"),
)
def test_any_text_is_claims_or_refused(text: str) -> None:
    try:
        assert isinstance(_claims(text), dict)
    except AuthorizationServerBroken as error:
        assert error.__context__ is None


@sized(20, 60, some.frozensets(SCOPE, max_size=8))
def test_scopes_come_back_as_they_were_said(wanted: frozenset[str]) -> None:
    assert read_scopes(" ".join(sorted(wanted))) == wanted
    assert read_scopes(sorted(wanted)) == wanted
    assert read_scopes(",".join(sorted(wanted)), separator=",") == wanted


def test_silence_about_scopes_is_not_a_statement() -> None:
    assert read_scopes(None) is None
    assert read_scopes("") == frozenset()


def test_a_comma_within_a_scope_that_was_asked_for_stays() -> None:
    assert read_scopes("a,b", asked=scopes("a,b")) == {"a,b"}
    assert read_scopes("a,b", asked=scopes("a b")) == {"a", "b"}


@pytest.mark.parametrize(("said", "seconds"), [(3600, 3600), ("3600", 3600), (60.0, 60), (10**12, 10 * 366 * 86_400)])
def test_a_life_is_read_as_servers_write_it(said: Any, seconds: int) -> None:
    assert read_token({"access_token": "a", "token_type": "bearer", "expires_in": said}).expires_in == seconds


TIMES = some.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1), timezones=some.just(UTC))
SECRETS = VISIBLE.map(Secret)


@sized(
    20,
    60,
    some.builds(
        TokenSet,
        provider=some.builds(Provider, issuer=VISIBLE, token_endpoint=VISIBLE, grant_types=some.tuples(VISIBLE)),
        client=some.builds(Client, client_id=VISIBLE, client_secret=SECRETS | some.just(Secret(b""))),
        flow=some.sampled_from(["code", "device", "client_credentials"]),
        family=VISIBLE,
        access=some.builds(
            Access, token=SECRETS, scopes=some.frozensets(SCOPE), obtained=TIMES, expires=some.none() | TIMES
        ),
        refresh=SECRETS | some.just(Secret(b"")),
        asked=some.frozensets(SCOPE),
        granted=some.frozensets(SCOPE),
        subject=VISIBLE | some.just(""),
        private=some.booleans(),
        ca_pem=some.text(some.characters(exclude_categories=["Cs"]), max_size=30),
        narrows=some.sampled_from(["unknown", "refresh", "exchange", "no"]),
        pending=some.none() | some.builds(Pending, at=TIMES, deposit=some.binary(max_size=32).map(Secret)),
        ended=some.text(some.characters(exclude_categories=["Cs"]), max_size=30),
    ),
)
def test_what_is_sealed_reads_back_whole(made: TokenSet) -> None:
    assert TokenSet.from_secret(made.to_secret()) == made
    assert repr(made.access.token) == "Secret(…)"  # looked for in it, a token of one letter could be found


@sized(20, 60, some.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_what_is_not_a_login_is_refused_without_being_quoted(data: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        TokenSet.from_secret(Secret(data))
    assert caught.value.__context__ is None and str(caught.value).count("\n") == 0


@sized(
    20, 60, some.timedeltas(timedelta(seconds=1), timedelta(days=30)), some.timedeltas(timedelta(0), timedelta(days=60))
)
def test_a_fresh_token_outlives_half_its_life_or_what_is_wanted(life: timedelta, age: timedelta) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    access = Access(token=Secret("a"), scopes=frozenset(), obtained=start, expires=start + life)
    wanted = timedelta(minutes=10)
    left = life - age
    assert access.fresh(start + age, wanted) == (left > min(wanted, life / 2))
    assert not access.fresh(start + life)
