"""What GoEx asks of a token endpoint without the person: renewing, narrowing, taking back, and a service's own login.

Rules: a token that was renewed with fewer scopes says nothing about the login's: those stay (RFC 6749 section 6), as
does its access token. Scopes never grow here: what a server adds unasked isn't counted as granted. Each call is one
request; whoever calls sees that what comes back is durable before the old is forgotten (`vault.oauth.broker`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from policies.errors import GoexError, InvalidInput
from vault.oauth import idtoken
from vault.oauth.errors import AuthorizationServerBroken, Refused, quoted
from vault.oauth.http import Form, Http
from vault.oauth.provider import EXCHANGE_GRANT, Client, Provider
from vault.oauth.responses import ACCESS_TOKEN_TYPE, TokenAnswer, check_scopes, read_token
from vault.oauth.token_set import PROTOCOL_SCOPES, Access, Flow, TokenSet
from vault.secret import Secret

_log = logging.getLogger("goex.vault")

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a renewal brought. `tokens` is the login as it is now, and must be kept; `access` is the token to use."""

    tokens: TokenSet
    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """Whether the server took the tokens back. `why` says what stood against it, "" when it did."""

    done: bool
    why: str = ""
    next_step: str = ""


def client_credentials(provider: Provider, client: Client, scopes: frozenset[str], http: Http) -> TokenSet:
    """A login of the client itself, without a person (RFC 6749 section 4.4). Raises what `Http.ask` does."""
    check_login(provider, client, scopes, http)
    if not client.client_secret:
        raise InvalidInput("Client credentials are an id and a secret.", next_step="Give the client secret.")
    now = utc_now()
    answer = _ask(provider, client, {"grant_type": "client_credentials"}, scopes, http)
    return begin(provider, client, "client_credentials", answer, scopes, http, now)


def begin(
    provider: Provider,
    client: Client,
    flow: Flow,
    answer: TokenAnswer,
    asked: frozenset[str],
    http: Http,
    now: datetime,
) -> TokenSet:
    """The tokens of a fresh login, of which nobody knows yet whose it is."""
    access = answer.access(now, asked)
    return TokenSet(
        provider=provider,
        client=client,
        flow=flow,
        family=secrets.token_hex(16),
        access=access,
        # A client that can prove itself needs none (RFC 6749 section 4.4.3), and one more secret to keep is no gain.
        refresh=Secret(b"") if flow == "client_credentials" else answer.refresh,
        asked=asked,
        # Nothing that wasn't asked for counts as granted, whatever the server adds.
        granted=access.scopes & asked if asked else access.scopes,
        private=http.private,
        ca_pem=http.ca_pem,
    )


def proven(
    tokens: TokenSet, http: Http, expected: str, who: Callable[[], str], *, alone: Callable[[], bool]
) -> TokenSet:
    """A fresh login with its subject, as `who` finds it out: the one who was `expected`, if anybody was.

    Raises what `who` does, and LoginDenied for somebody else: tokens that nobody keeps are then given back, where that
    ends no other login (`give_back`). Those that may be the expected person's never are.
    """
    subject = ""
    try:
        subject = who()
        idtoken.check_same(subject, expected)
    except GoexError as error:
        give_back(tokens, http, alone=alone() and bool(subject or not expected))
        failure = error
    else:
        return replace(tokens, subject=subject)
    raise failure.with_traceback(None)  # without the frames that hold the tokens


def give_back(tokens: TokenSet, http: Http, *, alone: bool) -> None:
    """Revoke fresh tokens that nobody keeps, where they are `alone`: no other login is at that server by that client.
    Else they are dropped and run out by themselves: many servers end all of a person's tokens with one of them."""
    if alone:
        revoke(tokens, http)
        return
    where = quoted(tokens.provider.issuer or tokens.provider.token_endpoint)
    _log.warning("a failed login's tokens weren't revoked at %s: that could end another login there", where)


def refresh(tokens: TokenSet, http: Http, scopes: frozenset[str] | None = None, *, clock: Clock = utc_now) -> Refreshed:
    """Renew the login's access token; with `scopes`, get one more that has those alone, and keep the login's own.

    Raises Refused (`invalid_grant`: the login has ended), Unreachable, AuthorizationServerBroken, InvalidInput.
    """
    if not tokens.renews:
        raise InvalidInput("This login has no refresh token.", next_step="Log in again.")
    wanted = tokens.granted if scopes is None else scopes
    check_scopes(wanted)
    form: dict[str, str | Secret] = {"grant_type": "client_credentials"}
    if tokens.flow != "client_credentials":
        form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    named = scopes if scopes is not None or tokens.flow != "client_credentials" else tokens.asked
    now = clock()
    answer = _ask(tokens.provider, tokens.client, form, named or frozenset(), http)
    idtoken.check_renewed(answer.id_token, tokens)
    access = answer.access(now, wanted)
    renewed = answer.refresh if answer.refresh and tokens.flow != "client_credentials" else tokens.refresh
    after = replace(tokens, refresh=renewed, pending=None, ended="")
    if scopes is None:
        after = replace(after, access=access, granted=tokens.granted & access.scopes)
    return Refreshed(tokens=after, access=access)


def exchange(tokens: TokenSet, http: Http, scopes: frozenset[str], *, clock: Clock = utc_now) -> Refreshed:
    """Exchange the login's present access token for one with `scopes` alone (RFC 8693). The login stays as it is.

    Raises Refused, Unreachable, AuthorizationServerBroken.
    """
    check_scopes(scopes)
    form: dict[str, str | Secret] = {
        "grant_type": EXCHANGE_GRANT,
        "subject_token": tokens.access.token,
        "subject_token_type": ACCESS_TOKEN_TYPE,
        "requested_token_type": ACCESS_TOKEN_TYPE,
    }
    now = clock()
    answer = _ask(tokens.provider, tokens.client, form, scopes, http)
    return Refreshed(tokens=tokens, access=answer.access(now, scopes))


def revoke(tokens: TokenSet, http: Http, others: Iterable[Secret] = ()) -> Revoked:
    """Take the login back at the server (RFC 7009): the refresh token, which ends the family, then the access token,
    then `others` of the login: not every server ends those with their family.

    Never raises a GoexError: the account is to be forgotten in any case, and what is left is said.
    """
    endpoint = tokens.provider.revocation_endpoint
    if not endpoint:
        return Revoked(
            done=False,
            why="the provider has no way to take tokens back",
            next_step="Remove GoEx's access on the provider's own page.",
        )
    trouble: GoexError | None = None
    given = [(tokens.refresh, "refresh_token"), *((each, "access_token") for each in (tokens.access.token, *others))]
    for token, hint in given:
        if not token:
            continue
        form: Form = {"token": token, "token_type_hint": hint}
        try:
            http.tell(endpoint, form, provider=tokens.provider, client=tokens.client)
        except Refused as error:
            # Some servers revoke one kind alone; the refresh token is the one that counts.
            if error.error != "unsupported_token_type" or hint == "refresh_token":
                trouble = trouble or error
        except GoexError as error:
            trouble = trouble or error
    if trouble is None:
        return Revoked(done=True)
    return Revoked(
        done=False, why=trouble.message.rstrip("."), next_step="Remove GoEx's access on the provider's own page."
    )


def check_login(provider: Provider, client: Client | None, scopes: frozenset[str], http: Http) -> None:
    """What every login needs; a client that is yet to be registered is checked then. Raises InvalidInput,
    Unsupported."""
    provider.check(private=http.private)
    if client is not None:
        client.check()
        client.method(provider)
    check_scopes(scopes)
    if not provider.token_endpoint:
        raise InvalidInput("A login needs a token endpoint.", next_step="Give the issuer, or the endpoints.")


def opens(scopes: frozenset[str]) -> frozenset[str]:
    """The scopes that open something at the service."""
    return scopes - PROTOCOL_SCOPES


def _ask(
    provider: Provider, client: Client, form: dict[str, str | Secret], scopes: frozenset[str], http: Http
) -> TokenAnswer:
    form = {**form, **provider.indicator}
    if scopes:
        form = {**form, "scope": provider.separator.join(sorted(scopes))}
    said = http.ask(provider.token_endpoint, form, provider=provider, client=client)
    try:
        return read_token(said, asked=scopes, separator=provider.separator)
    except AuthorizationServerBroken as error:
        failure = error
    raise failure.with_traceback(None)  # without the frames that hold the answer
