"""The ID token: who logged in, and proof that the answer belongs to this login (OpenID Connect Core 3.1.3.7).

Rules: signed by a key of the issuer's, with an asymmetric algorithm, never `none` and never with the client's secret;
for this issuer, this client, this nonce, now. Anything missing or odd is refused. It isn't kept.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
from datetime import datetime
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import parse
from vault.oauth.errors import AuthorizationServerBroken, LoginDenied, MixUp, quoted
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
KINDS = ("RSA", "EC", "OKP")  # a set may hold others, which nobody here could use
_SKEW = 60  # seconds
_OLDEST = 600
_LONGEST_SUBJECT = 255


def check(
    token: str, *, provider: Provider, client: Client, nonce: str | None, access: Secret, http: Http, now: datetime
) -> str:
    """The subject. `nonce` None: the flow has none, and its answer came straight from the token endpoint.

    Raises MixUp for another issuer's, AuthorizationServerBroken for anything else, Unreachable."""
    if not token:
        raise _refused("there is none, although openid was granted")
    if not provider.jwks_uri:
        raise _refused("the issuer publishes no keys to check it with")
    algorithm, claims = _verified(token, http.keys(provider.jwks_uri))
    if claims.get("iss") != provider.issuer:
        raise MixUp(
            f"The ID token is of {quoted(str(claims.get('iss')))}, not of {quoted(provider.issuer)}.",
            next_step="Don't log in there. Nothing was stored.",
        )
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if client.client_id not in audiences or not all(isinstance(each, str) for each in audiences):
        raise _refused("it is meant for another client")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client.client_id:
        raise _refused("it was given to another client")
    at = now.timestamp()
    expires, issued = claims.get("exp"), claims.get("iat")
    if not isinstance(expires, int | float) or not isinstance(issued, int | float):
        raise _refused("it doesn't say when it is good")
    if at > expires + _SKEW:
        raise _refused("it has expired; is this machine's clock right?")
    if issued > at + _SKEW or issued < at - _OLDEST:
        raise _refused("it isn't from now; is this machine's clock right?")
    if nonce is not None and (
        not isinstance(claims.get("nonce"), str)
        or not hmac.compare_digest(claims["nonce"].encode("utf-8", "replace"), nonce.encode())
    ):
        raise _refused("it belongs to another login")
    if "at_hash" in claims and not _matches(claims["at_hash"], algorithm, access):
        raise _refused("it doesn't belong to the access token")
    return _subject(claims)


def check_same(subject: str, expected: str) -> None:
    """Who logged in (`subject`, "" where the server didn't say) is who was expected, if anybody was.

    Raises LoginDenied: what can't be known isn't taken for the same person.
    """
    if expected and subject != expected:
        who = "Somebody else logged in than the one" if subject else "The provider didn't say whether it was the one"
        raise LoginDenied(
            f"{who} whom this account belongs to.",
            next_step="Log in as the same person, or connect this one as another account.",
        )


def check_renewed(token: str, tokens: TokenSet) -> None:
    """An ID token that came with a renewal is of the same person (OpenID Connect Core 12.2). It came from the token
    endpoint over TLS, and nothing else in it is used, so that its signature isn't asked for. Raises MixUp."""
    if not token or not tokens.subject:
        return
    claims = _claims(token)
    if claims.get("sub") != tokens.subject or (tokens.provider.issuer and claims.get("iss") != tokens.provider.issuer):
        raise MixUp(
            "The renewed token is of somebody else than the one who logged in.",
            next_step="Log in again; if it repeats, tell the provider.",
        )


def _verified(token: str, keys: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    payload: bytes | None = None
    algorithm = ""
    try:
        usable = [each for each in keys.get("keys", []) if isinstance(each, dict) and each.get("kty") in KINDS]
        known = KeySet.import_key_set({"keys": usable})
        read = jws.deserialize_compact(token.encode("ascii"), known, algorithms=list(ALGORITHMS))
        payload, algorithm = read.payload, str(read.headers().get("alg"))
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        pass  # the error may hold the token
    if payload is None:
        raise _refused("its signature isn't the issuer's")
    return algorithm, _object(payload)


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise _refused("it isn't one")
    raw: bytes | None = None
    with contextlib.suppress(ValueError):
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    if raw is None:
        raise _refused("it isn't one")
    return _object(raw)


def _object(payload: bytes) -> dict[str, Any]:
    read: Any = None
    with contextlib.suppress(InvalidInput, UnicodeError):  # which hold the text
        read = parse(payload.decode("utf-8"), what="The ID token")
    if not isinstance(read, dict):
        raise _refused("it isn't one")
    return read


def _subject(claims: dict[str, Any]) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isascii():
        raise _refused("it doesn't say who logged in")
    return subject


def _matches(said: object, algorithm: str, access: Secret) -> bool:
    digest = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}.get(algorithm[-3:], hashlib.sha512)(
        access.reveal()
    ).digest()
    half = base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode("ascii").rstrip("=")
    return isinstance(said, str) and hmac.compare_digest(said.encode("utf-8", "replace"), half.encode())


def _refused(why: str) -> AuthorizationServerBroken:
    return AuthorizationServerBroken(f"The ID token isn't taken: {why}.", next_step="Nothing was stored. Log in again.")
