"""Where logins to a resource happen, as the resource itself says (RFC 9728).

Rules: it is asked at its own origin alone, without a credential, and no redirect is followed. What it says counts only
for itself: a resource of another origin, or one that it isn't below, is refused, since a token for that would be good
there (RFC 8707). Which authorization server it names is its own claim, and the person's to confirm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from policies.accounts import Origin
from policies.errors import InvalidInput
from vault.oauth.discovery import texts
from vault.oauth.errors import AuthorizationServerBroken, MixUp, quoted
from vault.oauth.http import Http
from vault.oauth.provider import check_url
from vault.oauth.responses import check_scopes

_MOST = 20  # authorization servers
_MOST_SCOPES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedResource:
    """What tokens are to be for, the issuer that gives them, and the scopes that the resource knows."""

    resource: str
    issuer: str
    scopes: tuple[str, ...] = ()


def find(url: str, http: Http) -> ProtectedResource | None:
    """What the resource at `url` says of itself; None where it says nothing.

    Raises MixUp when it speaks of another resource, AuthorizationServerBroken when it makes no sense, Unreachable,
    InvalidInput.
    """
    check_url(url, private=http.private, what="The server's address")
    parts = urlsplit(url)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    place = f"{root}/.well-known/oauth-protected-resource"
    for one in dict.fromkeys((f"{place}{path}", place)):
        found = http.metadata(one)
        if found is not None:
            return _read(found, url, private=http.private)
    return None


def _read(found: Mapping[str, Any], url: str, *, private: bool) -> ProtectedResource:
    resource = found.get("resource")
    if not isinstance(resource, str) or not _covers(resource, url, private=private):
        other = f"speaks of {quoted(resource)}" if isinstance(resource, str) else "doesn't say what it is about"
        raise MixUp(
            f"The metadata of {quoted(url)} {other}.",
            next_step="A token for that could be used there. Don't log in.",
        )
    issuers, scopes = texts(found, "authorization_servers", _MOST), texts(found, "scopes_supported", _MOST_SCOPES)
    if not issuers:
        raise AuthorizationServerBroken(f"The metadata of {quoted(url)} names no authorization server.")
    try:
        check_url(issuers[0], private=private, what="The authorization server")
        check_scopes(frozenset(scopes))
    except InvalidInput as error:
        raise AuthorizationServerBroken(
            f"The metadata of {quoted(url)} can't be used: {error.message}", next_step=error.next_step
        ) from None
    return ProtectedResource(resource=resource, issuer=issuers[0], scopes=scopes)


def _covers(resource: str, url: str, *, private: bool) -> bool:
    """Whether `url` is the resource, or below it."""
    try:
        check_url(resource, private=private, what="The resource")
        if Origin.parse(resource) != Origin.parse(url) or "?" in resource:
            return False
    except InvalidInput:
        return False
    own, asked = (urlsplit(one).path.rstrip("/").split("/") for one in (resource, url))
    return asked[: len(own)] == own
