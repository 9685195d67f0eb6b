"""Access tokens for credential files: asked for by the daemon, kept in memory while the vault is unsealed.

Rules: a service account's token is asked for by a signed statement (RFC 7523) with the scopes of the action that wants
it, and no more; a token that is good for another action of the same scopes is used again. What the private key signs is
only ever sent to the address that the file itself names. Where a server rotates a file's refresh token, the new one is
sealed in the old one's place before what came with it is used, also when nobody waits for it any more. Unlike a login's
it isn't announced: where the vault is sealed, can't be written to, or GoEx dies, while the answer is on its way, it is
lost, and a server that takes the old one only once wants the file anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from policies.errors import InvalidInput
from vault.credential_file import CredentialFile, stand_in_key
from vault.lease import FileTemplate
from vault.oauth.errors import AuthorizationServerBroken
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider
from vault.oauth.responses import check_scopes, read_token
from vault.oauth.token_set import Access
from vault.secret import Secret

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFE = timedelta(hours=1)  # of a signed statement; the most that Google takes
_EARLY = timedelta(seconds=30)  # a clock that is a little ahead of theirs is forgiven


@dataclass(slots=True)
class Stand:
    """The key that code gets to see: one for this process, made when it is first wanted."""

    key: str = ""

    def pem(self) -> str:
        self.key = self.key or stand_in_key()
        return self.key


@dataclass(slots=True)
class Tokens:
    """What a broker remembers of one file's tokens, by their scopes."""

    stamp: tuple[str, int]
    known: dict[frozenset[str], Access] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """An access token; and the file with its new refresh token, where the server gave another one: to be sealed before
    the access token is used."""

    access: Access
    file: CredentialFile | None = None


def ask(file: CredentialFile, scopes: frozenset[str], http: Http, *, clock: Callable[[], datetime]) -> Asked:
    """An access token for `scopes` (as the server spells them), by one request.

    Raises Refused, Unreachable, AuthorizationServerBroken, InvalidInput.
    """
    check_scopes(scopes)
    provider = Provider(token_endpoint=file.endpoint)
    now = clock()
    form: dict[str, str | Secret]
    refresh = ""
    if file.kind == "service_account":
        client = Client(client_id="")
        form = {"grant_type": JWT_BEARER, "assertion": _statement(file, scopes, now)}
    else:
        client_id, client_secret, refresh = file.facts("client_id", "client_secret", "refresh_token")
        client = Client(client_id=client_id, client_secret=Secret(client_secret), auth_method="client_secret_post")
        form = {"grant_type": "refresh_token", "refresh_token": Secret(refresh)}
        if scopes:
            form["scope"] = " ".join(sorted(scopes))
    said = http.ask(file.endpoint, form, provider=provider, client=client)
    try:
        answer = read_token(said, asked=scopes)
        rotated = bool(refresh) and bool(answer.refresh) and answer.refresh != Secret(refresh)
        return Asked(answer.access(now, scopes), file.renewed(answer.refresh) if rotated else None)
    except AuthorizationServerBroken as error:
        failure = error
    raise failure.with_traceback(None)  # without the frames that hold the answer


def template(file: CredentialFile, stand: Stand) -> FileTemplate:
    """What code gets to see of the file."""
    return file.template(stand.pem() if file.kind == "service_account" else "")


def _statement(file: CredentialFile, scopes: Iterable[str], now: datetime) -> Secret:
    """What the service account says, signed (RFC 7523 section 3)."""
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    email, endpoint, pem = file.facts("client_email", "token_uri", "private_key")
    named = sorted(scopes)
    if not named:
        raise InvalidInput(
            "A service account's token is for named scopes, and this needs none.",
            next_step="Import the service's catalog, whose methods say their scopes.",
        )
    issued = now - _EARLY
    claims: dict[str, Any] = {
        "iss": email,
        "scope": " ".join(named),
        "aud": endpoint,
        "iat": int(issued.timestamp()),
        "exp": int((issued + _LIFE).timestamp()),
        "jti": secrets.token_hex(16),
    }
    header: dict[str, Any] = {"alg": "RS256", "typ": "JWT"}
    known = file.optional("private_key_id")
    if known:
        header["kid"] = known
    return Secret(jwt.encode(header, claims, RSAKey.import_key(pem), algorithms=["RS256"]))
