"""What a login uses and asks for, found out before anything is sent or asked of the person.

Rules: what the person said goes before what an earlier login was sealed with, that before what comes with GoEx, and an
import's word counts only after the person was shown it, whole, and agreed; before that not even an imported issuer is
asked for its metadata. Nothing wider is asked for than what was named, was granted before, or the person's own actions
of the last hour were refused for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from goex.daemon.person_threads import in_thread
from goex.engine.consent import login_facts, own_scopes
from goex.engine.core import Core
from goex.journal.chain import moment
from goex.rpc import accounts_pb2 as ab
from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from policies.grants import PERSON
from policies.services import OAuth, Service
from vault.oauth.discovery import discover
from vault.oauth.errors import OAuthError
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import PROTOCOL_SCOPES, TokenSet
from vault.secret import Secret

ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "device_endpoint", "revocation_endpoint")
# Scopes of the protocols themselves, which no catalog lists: who logged in, and that tokens may be renewed.
_PROTOCOL = PROTOCOL_SCOPES | {"openid", "profile", "email"}
_LOOKED_AT = 200  # of the newest actions, for what was refused
_LATELY = timedelta(hours=1)  # what was refused longer ago isn't what is needed now


class Unconfirmed(OAuthError):
    """Only an import says where tokens would go, and the person hasn't agreed to that."""

    code = "unconfirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a login happens. `confirm`: the person must agree to `provider` first. `said_by` "": nobody knows."""

    provider: Provider
    said_by: str
    confirm: bool = False


async def find_server(
    service: Service,
    earlier: TokenSet | None,
    said: ab.AuthorizationServer,
    confirmed: ab.AuthorizationServer,
    http: Http,
) -> Found:
    """Where a login to `service` happens. Asks an issuer for its metadata where it must.

    Raises InvalidInput, MixUp, AuthorizationServerBroken, Unreachable.
    """
    facts = login_facts(service)
    places = {name: getattr(said, name) for name in ENDPOINTS}
    named = Provider(separator=facts.separator, resource=facts.resource, **places)
    if any(getattr(said, name) for name in ENDPOINTS):
        named.check(private=http.private)
        return Found(provider=await _completed(named, http), said_by="you")
    if earlier is not None:
        return Found(provider=earlier.provider, said_by="account")
    if service.oauth is None:
        return Found(provider=Provider(), said_by="")
    known = _of(facts)
    if facts.source != "imported":
        return Found(provider=await _completed(known, http), said_by="goex")
    if known.issuer and confirmed.issuer != known.issuer:
        return Found(provider=known, said_by="import", confirm=True)
    whole = _registering_where_agreed(await _completed(known, http))
    shown = all(getattr(confirmed, name) == getattr(whole, name) for name in ENDPOINTS)
    agreed = shown or (known.issuer != "" and _at_the_issuer(whole))
    return Found(provider=whole, said_by="import", confirm=not agreed)


def server_view(provider: Provider) -> ab.AuthorizationServer:
    """A provider as the person is shown it."""
    return ab.AuthorizationServer(**{name: getattr(provider, name) for name in ENDPOINTS})


def client_of(service: Service, earlier: TokenSet | None, found: Found, client_id: str, secret: bytes) -> Client | None:
    """What GoEx is at the server: as the person said, as it was, or as the service has for everybody; None where
    nobody knows, and for a client that GoEx had registered itself, for one login's redirect address."""
    if client_id or secret:
        kept = earlier.client if earlier is not None and found.said_by == "account" else None
        client_id = client_id or (kept.client_id if kept else "") or login_facts(service).client_id
        if kept is not None and client_id == kept.client_id and not secret:
            return kept
        return Client(client_id=client_id, client_secret=Secret(secret))
    if earlier is not None and (found.said_by == "account" or found.provider.issuer == earlier.provider.issuer != ""):
        if earlier.client.registered:
            return None
        if not earlier.client.client_secret or _same_places(found.provider, earlier.provider):
            return earlier.client
        # The secret was given for other places than these: the person gives it anew, or doesn't.
        return Client(client_id=earlier.client.client_id)
    known = login_facts(service).client_id
    return Client(client_id=known) if known else None


def scopes_for(
    core: Core, service: Service, name: str, named: Iterable[str], earlier: TokenSet | None, *, offline: bool
) -> tuple[tuple[str, ...], frozenset[str]]:
    """What is asked for: the scopes that are new, by the catalog's names, and all of them as the server spells them.
    With `offline` also the one that lets GoEx renew the login by itself: it opens nothing at the service.

    Raises InvalidInput where it can't be known what to ask for.
    """
    facts = login_facts(service)
    granted = earlier.granted if earlier is not None else frozenset()
    names = tuple(dict.fromkeys(named)) or tuple(sorted(wanted_by_person(core, service.name, name)))
    spelled: set[str] = set()
    for requested in names:
        if requested in _PROTOCOL and requested not in service.scopes:
            spelled.add(requested)
            continue
        scope = core.catalog.scope(service.name, requested)
        if scope.virtual:
            raise InvalidInput(
                f"{service.name}'s {requested} is cut by GoEx's gateway itself: no provider has it to grant.",
                next_step="Leave it out, or name another one.",
            )
        spelled.update(facts.spell(requested))
    if not names and not granted and own_scopes(service):
        raise InvalidInput(
            f"Which of {service.name}'s scopes should be asked for?",
            next_step="Name them with --scope; or run what you want to have done: GoEx asks for what that needs.",
        )
    return names, frozenset(spelled) | granted | frozenset(facts.always) | (PROTOCOL_SCOPES if offline else frozenset())


def wanted_by_person(core: Core, service: str, name: str) -> frozenset[str]:
    """The scopes that the person's own actions were refused for, and that the account still lacks."""
    return frozenset(scope for scope, _, agent in wanted(core, service, name) if agent == PERSON)


def wanted(core: Core, service: str, name: str) -> tuple[tuple[str, str, str], ...]:
    """(scope, action, agent) of what was refused lately for want of this account's consent, newest first."""
    found: dict[tuple[str, str, str], None] = {}
    for row in core.actions.newest(agent="", session="", before="", limit=_LOOKED_AT):
        if moment(row.created) < core.clock() - _LATELY:
            break
        if core.was_refused_for_consent(row) and (plan := row.readable_plan()) is not None:
            for consent in core.lacking(plan):
                if (consent.service, consent.account) == (service, name):
                    found.update(((scope, row.id, row.agent), None) for scope in consent.scopes)
    return tuple(found)


def http_for(account: Account) -> Http:
    """The way to an account's authorization server: private places and a CA as its entry has them."""
    return Http(private=account.private, ca_pem=account.ca_pem)


def lost(earlier: TokenSet | None, tokens: TokenSet) -> frozenset[str]:
    """What the earlier login was granted and the new one wasn't; nothing where the earlier one had ended."""
    if earlier is None or earlier.ended:
        return frozenset()
    return (earlier.granted - tokens.granted) - _PROTOCOL


def _at_the_issuer(provider: Provider) -> bool:
    """Whether every endpoint is at the issuer's own origin, so that who agreed to that agreed to all."""
    own = Origin.parse(provider.issuer)
    return all(Origin.parse(url) == own for name in ENDPOINTS if (url := getattr(provider, name)))


def _registering_where_agreed(provider: Provider) -> Provider:
    """The provider, without a place to register at that is no host's of those which the person is shown."""
    places = [url for name in ENDPOINTS if (url := getattr(provider, name))]
    wanted = provider.registration_endpoint
    if wanted and Origin.parse(wanted) not in {Origin.parse(url) for url in places}:
        return replace(provider, registration_endpoint="")
    return provider


def _same_places(one: Provider, other: Provider) -> bool:
    """Whether a client's secret would be sent to the same endpoints."""
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("token_endpoint", "device_endpoint", "revocation_endpoint")
    )


def _of(facts: OAuth) -> Provider:
    places = {name: getattr(facts, name) for name in ENDPOINTS}
    return Provider(separator=facts.separator, resource=facts.resource, **places)


async def _completed(named: Provider, http: Http) -> Provider:
    """With what the issuer's metadata says of all that wasn't said."""
    if not named.issuer or named.token_endpoint:
        return named
    found = await in_thread(discover, named.issuer, http)
    # The issuer is as it writes itself (`discover`).
    said = {name: getattr(named, name) for name in ENDPOINTS[1:] if getattr(named, name)}
    return replace(found, separator=named.separator, resource=named.resource, **said)
