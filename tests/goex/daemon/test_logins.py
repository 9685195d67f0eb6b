"""Where a client's secret may go: only to the places that it was given for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.login_options import Found, client_of, find_server
from goex.rpc import accounts_pb2 as ab
from policies.services import OAuth, Service
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import Access, TokenSet
from vault.secret import Secret

THERE = Provider(
    issuer="https://login.example.org",
    authorization_endpoint="https://login.example.org/auth",
    token_endpoint="https://login.example.org/token",
    device_endpoint="https://login.example.org/device",
    revocation_endpoint="https://login.example.org/revoke",
)
SERVICE = Service(
    name="notes",
    title="Notes",
    description="",
    base_url="https://api.example.org",
    methods={},
    scopes={},
    oauth=OAuth(issuer=THERE.issuer, client_id="everybody"),
)
MINE = Client(client_id="mine", client_secret=Secret("of mine"))


def earlier(client: Client = MINE) -> TokenSet:
    now = datetime.now(UTC)
    access = Access(token=Secret("t"), scopes=frozenset(), obtained=now, expires=None)
    return TokenSet(
        provider=THERE, client=client, flow="code", family="f", access=access, asked=frozenset(), granted=frozenset()
    )


@pytest.mark.promise(36)
@pytest.mark.parametrize("place", ["token_endpoint", "device_endpoint", "revocation_endpoint"])
def test_a_clients_secret_isnt_sent_elsewhere_than_it_was_given_for(place: str) -> None:
    """Neither when the issuer's metadata changes nor when only one of its places is said anew."""
    changed: dict[str, Any] = {place: "https://elsewhere.example.org/x"}
    elsewhere = replace(THERE, **changed)
    found = client_of(SERVICE, earlier(), Found(provider=elsewhere, said_by="you"), "", b"")
    assert (found.client_id, bool(found.client_secret)) == ("mine", False)
    again = client_of(SERVICE, earlier(), Found(provider=elsewhere, said_by="you"), "", b"given again")
    assert again.client_secret == Secret("given again")


def test_a_client_stays_where_it_was_registered() -> None:
    moved = replace(THERE, authorization_endpoint="https://login.example.org/new")
    for found in (Found(provider=THERE, said_by="account"), Found(provider=moved, said_by="you")):
        assert client_of(SERVICE, earlier(), found, "", b"") == MINE
    public = Client(client_id="public")
    elsewhere = replace(THERE, token_endpoint="https://login.example.org/new")
    assert client_of(SERVICE, earlier(public), Found(provider=elsewhere, said_by="you"), "", b"") == public


def test_another_issuer_gets_neither_id_nor_secret() -> None:
    other = replace(THERE, issuer="https://other.example.org")
    found = client_of(SERVICE, earlier(), Found(provider=other, said_by="you"), "", b"")
    assert found == Client(client_id="everybody")


@pytest.mark.promise(40)
def test_goex_registers_at_no_place_that_only_an_import_leads_to() -> None:
    """The person agrees to the issuer, or to each place that they are shown; this one isn't among them."""
    issuer, elsewhere = THERE.issuer, "https://elsewhere.example.org"
    oauth = OAuth(issuer=issuer, resource="https://notes.example/mcp", source="imported")

    def registers_at(endpoint: str, said: ab.AuthorizationServer, **shown: str) -> str:
        places = {"issuer": issuer, "token_endpoint": THERE.token_endpoint, "registration_endpoint": endpoint, **shown}
        http: Any = SimpleNamespace(private=False, metadata=lambda url: places)
        agreed = ab.AuthorizationServer(issuer=issuer)
        found = asyncio.run(find_server(replace(SERVICE, oauth=oauth), None, said, agreed, http))
        return found.provider.registration_endpoint

    nothing, named = ab.AuthorizationServer(), ab.AuthorizationServer(issuer=issuer)
    assert registers_at(f"{elsewhere}/reg", nothing) == ""
    for endpoint, said, shown in (  # the controls: the issuer's own; one at a place that is shown; the person's own
        (f"{issuer}/reg", nothing, {}),
        (f"{elsewhere}/reg", nothing, {"authorization_endpoint": f"{elsewhere}/auth"}),
        (f"{elsewhere}/reg", named, {}),
    ):
        assert registers_at(endpoint, said, **shown) == endpoint
