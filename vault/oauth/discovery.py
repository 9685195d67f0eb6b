"""An authorization server's own metadata, read.

Rules: metadata counts only when it names the very issuer that was asked, to the byte (RFC 8414 section 3.3, OpenID
Connect Discovery section 4.3): whoever could answer for another issuer could have its codes sent to themselves. One
that is asked with a bare slash as its path, as libraries write URLs, may say itself without: the metadata of both is at
the same place, so who answers there answers for both, and how it writes itself is what counts from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from policies.errors import InvalidInput
from vault.oauth.errors import AuthorizationServerBroken, MixUp, quoted
from vault.oauth.http import Http
from vault.oauth.provider import Provider, check_url

_LONGEST_LIST = 200


def discover(issuer: str, http: Http) -> Provider:
    """What the issuer says of itself: RFC 8414 first, then OpenID Connect Discovery.

    Raises MixUp when the metadata is another issuer's, AuthorizationServerBroken when it makes no sense, Unreachable,
    InvalidInput for an issuer that can't be one.
    """
    check_url(issuer, private=http.private, what="The issuer")
    parts = urlsplit(issuer)
    if parts.query or "?" in issuer:
        raise InvalidInput("An issuer has no query.", next_step="Give it as the provider writes it.")
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [
        f"{root}/.well-known/oauth-authorization-server{path}",
        f"{root}{path}/.well-known/openid-configuration",
    ]
    if path:  # RFC 8414 section 5: the third place that some servers use
        places.append(f"{root}/.well-known/openid-configuration{path}")
    for place in places:
        found = http.metadata(place)
        if found is not None:
            plain = issuer == f"{root}/" and found.get("issuer") == root
            return from_metadata(found, root if plain else issuer, private=http.private)
    raise AuthorizationServerBroken(
        f"{quoted(issuer)} publishes no metadata.",
        next_step="Is the issuer written as the provider writes it? Else give its endpoints.",
    )


def from_metadata(found: Mapping[str, Any], issuer: str, *, private: bool) -> Provider:
    """Metadata, read for `issuer`. Raises MixUp, AuthorizationServerBroken."""
    said = found.get("issuer")
    if said != issuer:
        other = f"says that it is {quoted(said)}" if isinstance(said, str) else "doesn't say whose it is"
        raise MixUp(
            f"The metadata of {quoted(issuer)} {other}.",
            next_step="Give the issuer exactly as the provider writes it; if it was, don't log in there.",
        )
    made = Provider(
        issuer=issuer,
        authorization_endpoint=_text(found, "authorization_endpoint"),
        token_endpoint=_text(found, "token_endpoint"),
        device_endpoint=_text(found, "device_authorization_endpoint"),
        revocation_endpoint=_text(found, "revocation_endpoint"),
        registration_endpoint=_text(found, "registration_endpoint"),
        jwks_uri=_text(found, "jwks_uri"),
        iss_in_answer=found.get("authorization_response_iss_parameter_supported") is True,
        offline=isinstance(scopes := found.get("scopes_supported"), list) and "offline_access" in scopes,
        auth_methods=texts(found, "token_endpoint_auth_methods_supported"),
        grant_types=texts(found, "grant_types_supported"),
        pkce_methods=texts(found, "code_challenge_methods_supported"),
    )
    if not made.token_endpoint:
        raise AuthorizationServerBroken(f"The metadata of {quoted(issuer)} names no token endpoint.")
    try:
        made.check(private=private)
    except InvalidInput as error:
        raise AuthorizationServerBroken(
            f"The metadata of {quoted(issuer)} can't be used: {error.message}", next_step=error.next_step
        ) from None
    return made


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise AuthorizationServerBroken(f"The server's metadata has something else than a URL as {name}.")
    return value


def texts(found: Mapping[str, Any], name: str, most: int = _LONGEST_LIST) -> tuple[str, ...]:
    """A member of metadata that is a list of at most so many words. Raises AuthorizationServerBroken."""
    value = found.get(name, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(each, str) for each in value):
        raise AuthorizationServerBroken(f"The server's metadata has something else than a list of words as {name}.")
    return tuple(value)
