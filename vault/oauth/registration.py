"""GoEx registers itself at an authorization server, for one login (RFC 7591).

Rules: a public, native client that may do the login it is made for and renew its tokens, nothing else; its redirect
address is that login's, port and all, since not every server leaves the port open (RFC 8252 section 7.3). No secret is
sent. An answer counts only where it is a client that this login can use: one with another redirect address, or another
way to prove itself than GoEx knows, is refused.
"""

from __future__ import annotations

from typing import Any

from policies.errors import InvalidInput
from vault.oauth.errors import AuthorizationServerBroken, quoted
from vault.oauth.http import Http
from vault.oauth.provider import AUTH_METHODS, Client, Provider
from vault.secret import Secret

_CODE, _REFRESH = "authorization_code", "refresh_token"


def register(provider: Provider, redirect_uri: str, http: Http) -> Client:
    """The client that `provider` makes of GoEx, for a login that ends at `redirect_uri`.

    Raises Refused, Unreachable, AuthorizationServerBroken, InvalidInput.
    """
    renews = not provider.grant_types or _REFRESH in provider.grant_types
    said = http.register(
        provider.registration_endpoint,
        {
            "client_name": "GoEx",
            "application_type": "native",
            "redirect_uris": [redirect_uri],
            "grant_types": [_CODE, _REFRESH] if renews else [_CODE],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        },
    )
    return _client(said, redirect_uri, provider)


def _client(said: dict[str, Any], redirect_uri: str, provider: Provider) -> Client:
    if redirect_uri not in _list(said.get("redirect_uris", [redirect_uri])):
        raise _broken(provider, "with another redirect address than this login's")
    if _CODE not in _list(said.get("grant_types", [_CODE])):
        raise _broken(provider, "for another kind of login")
    client_id, secret = said.get("client_id"), said.get("client_secret", "")
    if not isinstance(client_id, str) or not isinstance(secret, str):
        raise _broken(provider, "without an id")
    # RFC 7591 section 2: what isn't said is client_secret_basic; a client without a secret can't do that.
    method = said.get("token_endpoint_auth_method", AUTH_METHODS[0] if secret else "none")
    if method not in AUTH_METHODS or (method != "none" and not secret):
        raise _broken(provider, f"to prove itself by {quoted(str(method))}, which it can't")
    client = Client(
        client_id=client_id,
        client_secret=Secret(b"" if method == "none" else secret),
        auth_method=method,
        registered=True,
    )
    try:
        client.check()
    except InvalidInput as error:
        raise _broken(provider, f"in a way that can't be used: {error.message.rstrip('.')}") from None
    return client


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _broken(provider: Provider, how: str) -> AuthorizationServerBroken:
    return AuthorizationServerBroken(
        f"{quoted(provider.issuer)} registered GoEx {how}.",
        next_step="Register a desktop (native) app there yourself, and give its id: --client-id ID",
    )
