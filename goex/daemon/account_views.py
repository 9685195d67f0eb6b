"""Accounts and what a login could ask for, as the wire's messages. No token, key or password can be reached here."""

from __future__ import annotations

from collections.abc import Mapping

from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.login_options import Found, client_of, server_view, wanted
from goex.engine.consent import login_facts, own_scopes
from goex.engine.core import Core
from goex.journal.chain import stamp
from goex.rpc import accounts_pb2 as ab
from mapper.least_scopes import plain
from policies.accounts import Account
from policies.errors import GoexError
from policies.grants import PERSON
from policies.services import Service
from vault.oauth.token_requests import opens
from vault.oauth.token_set import Narrows, TokenSet
from vault.record import Record

_HOLDERS: Mapping[Narrows, str] = {"refresh": "token", "exchange": "token", "no": "gateway", "unknown": ""}


def offer_view(core: Core, service: Service, account: Account, earlier: TokenSet | None, found: Found) -> ab.OfferReply:
    """What a login would use, and what it could ask for."""
    facts = login_facts(service)
    held = facts.held(own_scopes(service), earlier.granted) if earlier is not None else frozenset()
    client = client_of(service, earlier, found, "", b"")
    refused = wanted(core, service.name, account.name)
    scopes = []
    for name in own_scopes(service):
        by = [(action, agent) for scope, action, agent in refused if scope == name]
        scopes.append(
            ab.ScopeOffer(
                name=name,
                description=plain(core.catalog, service.name, name),
                risk=service.scopes[name].risk.word,
                granted=name in held,
                wanted_by=[f"{action} of {agent}" for action, agent in by],
                wanted=any(agent == PERSON for _, agent in by),
            )
        )
    return ab.OfferReply(
        service=service.name,
        account=account.name,
        server=server_view(found.provider),
        said_by=found.said_by,
        confirm=found.confirm,
        client_id=client.client_id if client is not None else "",
        registers=client is None and found.provider.registers,
        scopes=scopes,
        base_urls=[str(origin) for origin in account.origins],
        basic=service.placement.format.lower().startswith("basic "),
        header=service.placement.header,
        client=facts.client,
    )


def connected_account(record: Record, service: Service | None, broker: CredentialBroker) -> ab.ConnectedAccount:
    """One account, as far as it can be looked at now."""
    account = record.account
    made = ab.ConnectedAccount(
        service=account.service,
        account=account.name,
        kind=_kind(account, service),
        last_used=stamp(record.last_used) if record.last_used else "",
        narrowed="gateway",
        origins=[str(origin) for origin in account.origins],
        created=stamp(record.created),
        updated=stamp(record.updated),
    )
    if account.format != "oauth":
        return made
    try:
        tokens = broker.tokens(account.service, account.name)
    except GoexError as error:
        made.narrowed, made.trouble = "", str(error)
        return made
    if tokens is None:
        return made
    made.kind = "client credentials" if tokens.flow == "client_credentials" else "login"
    made.scopes.extend(sorted(opens(tokens.granted)))
    made.refused.extend(sorted(opens(tokens.dropped)))
    made.expires = stamp(tokens.expires) if tokens.expires else ""
    made.renews = tokens.renews and not tokens.ended
    made.narrowed = _HOLDERS[tokens.narrows]
    made.issuer = tokens.provider.issuer
    made.subject = tokens.subject
    if tokens.ended:
        made.trouble = (
            f"{tokens.ended.rstrip('.')}. Log in again: goex auth login {account.service} --account {account.name}"
        )
    return made


def _kind(account: Account, service: Service | None) -> str:
    match account.format:
        case "oauth":
            return "login"
        case "basic" | "file":
            return account.format
    return "api key" if service is not None and service.placement.header.lower() != "authorization" else "token"
