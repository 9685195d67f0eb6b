"""GoEx registers itself for a login: at a server that nobody here wrote, and at one that answers as it likes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from policies.errors import GoexError, InvalidInput
from policies.typed_json import from_json, to_json
from tests.services.oidc import OidcServer
from tests.vault.oauth.conftest import started
from tests.vault.oauth.support import Hostile, answer, http, scopes, visiting
from vault.oauth.code import CodeLogin
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, Refused
from vault.oauth.provider import Client, Provider
from vault.oauth.registration import register

RESOURCE = "https://notes.example/mcp"
REDIRECT = "http://127.0.0.1:4711/callback"


@pytest.fixture(scope="module")
def registering() -> Iterator[OidcServer]:
    yield from started(registration=True, resources={RESOURCE: "notes.read"})


def at(hostile: Hostile, said: Any, status: int = 201) -> Provider:
    hostile.replies["/reg"] = answer(said, status=status)
    return hostile.provider(registration_endpoint=f"{hostile.issuer}/reg", resource=RESOURCE)


def test_a_login_of_a_client_that_was_made_for_it(registering: OidcServer) -> None:
    from dataclasses import replace

    provider = replace(discover(registering.issuer, http()), resource=RESOURCE)
    assert provider.registers
    made = []
    for _ in range(2):
        login = CodeLogin.begin(provider, None, scopes("notes.read"), http())
        with visiting(registering, login.url):
            tokens = login.wait(300)
        assert tokens.granted == scopes("notes.read") and tokens.client.registered
        assert not tokens.client.client_secret and tokens.client.method(provider) == "none"
        made.append(tokens.client.client_id)
        assert from_json(Client, to_json(tokens.client), "It") == tokens.client
    assert made[0] != made[1]  # each has its own login's redirect address
    assert [each["status"] for each in registering.asked("/reg")] == [201, 201]


def test_what_is_asked_for(hostile: Hostile) -> None:
    provider = at(hostile, {"client_id": "made"})
    assert register(provider, REDIRECT, http()).client_id == "made"
    visit = hostile.visits[-1]
    assert json.loads(visit.body) == {
        "application_type": "native",
        "client_name": "GoEx",
        "grant_types": ["authorization_code", "refresh_token"],
        "redirect_uris": [REDIRECT],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    assert "authorization" not in {name.lower() for name in visit.headers}


def test_a_secret_that_comes_unasked_is_used_as_it_says(hostile: Hostile) -> None:
    said = {"client_id": "made", "client_secret": "s3cret-of-theirs"}
    client = register(at(hostile, said), REDIRECT, http())
    assert client.auth_method == "client_secret_basic" and client.client_secret.reveal() == b"s3cret-of-theirs"
    public = register(at(hostile, {**said, "token_endpoint_auth_method": "none"}), REDIRECT, http())
    assert public.auth_method == "none" and not public.client_secret


@pytest.mark.promise(91)
@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uris": ["https://elsewhere.example/callback"]},
        {"redirect_uris": "http://127.0.0.1:4711/callback"},
        {"redirect_uris": []},
        {"grant_types": ["client_credentials"]},
        {"client_id": None},
        {"client_id": ""},
        {"client_id": "line\nbreak"},
        {"client_id": "x" * 3000},
        {"client_id": 7},
        {"client_secret": 7},
        {"client_secret": "line\nbreak"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"token_endpoint_auth_method": 5},
    ],
)
def test_a_client_that_this_login_cannot_use_is_refused(hostile: Hostile, changed: dict[str, Any]) -> None:
    said = {"client_id": "made", "redirect_uris": [REDIRECT], "grant_types": ["authorization_code"]}
    assert register(at(hostile, said), REDIRECT, http()).client_id == "made"  # the control
    with pytest.raises(AuthorizationServerBroken, match="--client-id"):
        register(at(hostile, {**said, **changed}), REDIRECT, http())


def test_a_refusal_says_what_to_do(hostile: Hostile) -> None:
    provider = at(hostile, {"error": "invalid_redirect_uri", "error_description": "no loopback"}, status=400)
    with pytest.raises(Refused, match=r"no loopback.*--client-id"):
        register(provider, REDIRECT, http())
    for status in (301, 403, 500):
        with pytest.raises(GoexError):
            register(at(hostile, {}, status=status), REDIRECT, http())


def test_only_where_the_resource_named_the_server(hostile: Hostile) -> None:
    provider = hostile.provider(registration_endpoint=f"{hostile.issuer}/reg")
    assert not provider.registers
    with pytest.raises(InvalidInput, match="client id"):
        CodeLogin.begin(provider, None, scopes("notes.read"), http())
    assert hostile.visits == []


@pytest.mark.parametrize("endpoint", ["http://elsewhere.example/reg", "https://u:p@host.example/reg", "/reg", 5])
def test_an_endpoint_that_cannot_be_one(hostile: Hostile, endpoint: Any) -> None:
    from vault.oauth.discovery import from_metadata

    issuer = "https://login.example"
    found = {"issuer": issuer, "token_endpoint": f"{issuer}/token", "registration_endpoint": f"{issuer}/reg"}
    assert from_metadata(found, issuer, private=False).registration_endpoint == f"{issuer}/reg"  # the control
    with pytest.raises(AuthorizationServerBroken):
        from_metadata({**found, "registration_endpoint": endpoint}, issuer, private=False)


HALF = "\ud800"  # half a character, which JSON can write and UTF-8 can't


@pytest.mark.parametrize("name", ["client_id", "client_secret", "token_endpoint_auth_method"])
def test_half_a_character_is_refused_in_words(hostile: Hostile, name: str) -> None:
    said = {"client_id": "made", "client_secret": "theirs", "token_endpoint_auth_method": "client_secret_post"}
    assert register(at(hostile, said), REDIRECT, http()).client_id == "made"  # the control
    with pytest.raises(AuthorizationServerBroken):
        register(at(hostile, {**said, name: HALF}), REDIRECT, http())


def test_half_a_character_in_metadata_is_refused_before_it_would_be_kept(hostile: Hostile) -> None:
    places = hostile.metadata(token_endpoint_auth_methods_supported=["none"])
    hostile.replies["/.well-known/oauth-authorization-server"] = answer(places)
    assert discover(hostile.issuer, http()).auth_methods == ("none",)  # the control
    places["token_endpoint_auth_methods_supported"] = [HALF]
    hostile.replies["/.well-known/oauth-authorization-server"] = answer(places)
    with pytest.raises(AuthorizationServerBroken):
        discover(hostile.issuer, http())
