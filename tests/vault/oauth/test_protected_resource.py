"""Where logins to a resource happen, as it says itself: what counts, and what doesn't."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vault.oauth.support import Hostile, answer, http
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, MixUp
from vault.oauth.protected_resource import find

PLACE = "/.well-known/oauth-protected-resource"


def says(hostile: Hostile, place: str = f"{PLACE}/mcp", **changed: Any) -> str:
    """What the resource says; returns its address."""
    url = f"{hostile.issuer}/mcp"
    facts = {"resource": url, "authorization_servers": ["https://login.example"], "scopes_supported": ["notes.read"]}
    hostile.replies[place] = answer({**facts, **changed})
    return url


def test_a_resource_says_what_tokens_are_for_and_who_gives_them(hostile: Hostile) -> None:
    found = find(says(hostile), http())
    assert found is not None
    assert (found.resource, found.issuer, found.scopes) == (
        f"{hostile.issuer}/mcp",
        "https://login.example",
        ("notes.read",),
    )


@pytest.mark.parametrize("path", ["", "/", "/mcp"])
def test_its_origin_may_say_it_for_all_below(hostile: Hostile, path: str) -> None:
    url = says(hostile, PLACE, resource=f"{hostile.issuer}{path}")
    found = find(url, http())
    assert found is not None and found.resource == f"{hostile.issuer}{path}"


@pytest.mark.promise(91)
@pytest.mark.parametrize(
    "resource", ["https://elsewhere.example/mcp", "{own}/mc", "{own}/mcp/x", "{own}/mcp?x", "{own}/other", "", None, 7]
)
def test_what_speaks_of_another_resource_is_a_mix_up(hostile: Hostile, resource: Any) -> None:
    said = resource.format(own=hostile.issuer) if isinstance(resource, str) else resource
    with pytest.raises(MixUp):
        find(says(hostile, resource=said), http())


@pytest.mark.parametrize(
    "changed",
    [
        {"authorization_servers": []},
        {"authorization_servers": "https://login.example"},
        {"authorization_servers": ["ftp://login.example"]},
        {"authorization_servers": ["https://login.example"] * 21},
        {"scopes_supported": ["two words"]},
        {"scopes_supported": [5]},
    ],
)
def test_what_makes_no_sense_is_refused(hostile: Hostile, changed: dict[str, Any]) -> None:
    with pytest.raises(AuthorizationServerBroken):
        find(says(hostile, **changed), http())


def test_a_resource_that_says_nothing(hostile: Hostile) -> None:
    assert find(f"{hostile.issuer}/mcp", http()) is None


def test_an_issuer_with_a_bare_slash_is_found_as_it_writes_itself(hostile: Hostile) -> None:
    hostile.replies["/.well-known/oauth-authorization-server"] = answer(hostile.metadata())
    assert discover(f"{hostile.issuer}/", http()).issuer == hostile.issuer
