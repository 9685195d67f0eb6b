"""Checks of a plan and its leases before a socket exists. Pure.

The secret may go to the origins of its own account only, into one place, for one action, until the lease expires. A
rule that couldn't be held to, or would need more, refuses the whole plan; so does a placeholder that could be taken for
another one, or for a secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.media_types import MEDIA, format_of
from policies.services import overrides
from runtimes.gateway.credential import HEADER_VALUE, AccountKey, credential_texts, secrets_of
from runtimes.gateway.head import CREDENTIALS, OVERRIDES
from runtimes.gateway.plan import (
    CredentialPlace,
    GatewayPlan,
    MethodRule,
    PlannedRequest,
    Rule,
    Slot,
    TokenEndpoint,
)
from runtimes.gateway.response_values import PART_TEXT
from runtimes.gateway.urls import BadTarget, check_segment
from vault.lease import Lease

MAX_REQUESTS = 200
MAX_RULES = 500
MAX_ATTEMPTS = 20
MAX_PLACES = 4  # of one credential
MAX_CALLS = 100_000
MAX_BYTES = 32 * 2**20
MAX_STREAMED = 2**40
MAX_SECONDS = 3600.0

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_ID = re.compile(r"[a-z0-9][a-z0-9\-]{0,59}")
_PLACEHOLDER = re.compile(r"[A-Za-z0-9_.\-]{24,200}")
_LONG = 8  # characters; a shorter secret can stand in any text
_NAME = re.compile(r"[\x21-\x7e]{1,200}")
_PART_KEYS = frozenset({"name", "value", "file", "type", "text", "base64"})
_HEADER = re.compile(r"[a-z0-9][a-z0-9_.\-]{0,99}")
# What the gateway writes itself, or what would change how the message is read.
OURS = frozenset(
    {
        "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "expect", "accept-encoding", "proxy-authorization", "proxy-connection", "cookie",
        "x-http-method-override", "x-http-method", "x-method-override",
    }
)  # fmt: skip


def check_opening(plan: GatewayPlan, leases: Sequence[Lease], now: datetime) -> Mapping[AccountKey, Lease]:
    """The leases by account. Raises InvalidInput for a plan or lease that can't be served safely."""
    if plan.by_rules and (plan.requests or len(plan.rules) > MAX_RULES):
        raise InvalidInput(f"A plan for code has no list of requests, and at most {MAX_RULES} rules.")
    if not plan.by_rules and (not plan.requests or len(plan.requests) > MAX_REQUESTS):
        raise InvalidInput(f"A plan has 1 to {MAX_REQUESTS} requests.")
    if not (0 < plan.seconds <= MAX_SECONDS):
        raise InvalidInput("A plan's time limit must be between 0 and 3600 seconds.")
    if not (0 < plan.max_request_bytes <= MAX_BYTES and 0 < plan.max_response_bytes <= MAX_BYTES):
        raise InvalidInput("A plan's size limits are out of bounds.")
    if len({request.id for request in plan.requests}) != len(plan.requests):
        raise InvalidInput("Two requests of a plan have one id.")
    held: dict[AccountKey, Lease] = {}
    for lease in leases:
        key = (lease.account.service, lease.account.name)
        if lease.action_id != plan.action_id:
            raise InvalidInput("A lease of another action can't be used.")
        if key in held:
            raise InvalidInput(f"There are two leases of {lease.account.id}.")
        if lease.expires <= now:
            raise InvalidInput(f"The lease of {lease.account.id} has expired.")
        held[key] = lease
    if max(Counter(rule.id for rule in plan.rules).values(), default=0) > 1:
        raise InvalidInput("Two rules of a plan have one id.")
    _check_placeholders(plan, held)
    for request in plan.requests:
        _check_request(request, held)
    for rule in plan.rules:
        _check_rule(rule, held)
        if rule.account not in plan.placeholders.values():
            raise InvalidInput(f"{rule.id} has no placeholder that stands for {'/'.join(rule.account)}.")
    for token in plan.tokens:
        _check_token(token, plan)
    return held


def _check_reach(what: Rule, held: Mapping[AccountKey, Lease]) -> Lease:
    """The lease of a request or rule. Raises InvalidInput where its credential may not go there."""
    lease = held.get(what.account)
    if lease is None:
        raise InvalidInput(f"{what.id} has no lease of {'/'.join(what.account)}.")
    if what.origin not in lease.account.origins:
        raise InvalidInput(f"{what.id} goes to {what.origin}, which isn't an origin of the account {lease.account.id}.")
    if what.origin.scheme == "http" and not lease.account.private:
        raise InvalidInput(f"{what.id} would send a credential over plain http.")
    if what.method not in _METHODS:
        raise InvalidInput(f"{what.id} has the method {what.method[:20]!r}, which isn't one that is sent.")
    return lease


def _check_credential(rule: Rule, lease: Lease) -> None:
    """Raise InvalidInput unless the credential can stand in its place, and there alone."""
    places = rule.credential_places
    if len({_alike(place.name) for place in places}) != len(places) or len(places) > MAX_PLACES:
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    if isinstance(rule, MethodRule) and len(places) > 1:
        raise InvalidInput(f"{rule.id} wants several credentials, and code has one placeholder for them.")
    for place in places:
        _check_place(rule, place)
    credential_texts(rule, lease)


def _check_place(rule: Rule, place: CredentialPlace) -> None:
    coded = isinstance(rule, MethodRule)
    if place.format.count("{secret}") != 1 or not _NAME.fullmatch(place.name):
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    if place.at not in (("header", "query", "body") if coded else ("header", "query", "cookie")):
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    if place.at in ("header", "cookie") and not _TOKEN.fullmatch(place.name):
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    if place.at == "header" and _alike(place.name) in OURS:
        raise InvalidInput(f"{rule.id} puts its credential into a header that isn't for credentials.")
    if place.at == "body" and isinstance(rule, MethodRule) and rule.body_format not in ("json", "form"):
        raise InvalidInput(f"{rule.id} has its credential in a body that isn't read.")
    written: Any = ()
    if place.at == "query" and isinstance(rule, MethodRule | PlannedRequest):
        written = rule.query
    elif place.at == "body" and isinstance(rule, MethodRule):
        written = rule.fields
    if place.name in written:
        raise InvalidInput(f"{rule.id} lets the code write where its credential goes.")


def _alike(name: str) -> str:
    """A header's name as servers may take it, which make one letter of several."""
    return name.lower().replace("_", "-").replace(".", "-")


def _check_request(request: PlannedRequest, held: Mapping[AccountKey, Lease]) -> None:
    lease = _check_reach(request, held)
    if not 1 <= request.attempts <= MAX_ATTEMPTS:
        raise InvalidInput(f"{request.id} has {request.attempts} attempts; 1 to {MAX_ATTEMPTS} are possible.")
    if request.attempts > 1 and request.method not in ("GET", "HEAD"):
        raise InvalidInput(f"{request.id} isn't a read, so it can't be tried more than once.")
    _check_path(request, (*request.base_path, *request.path))
    _check_credential(request, lease)
    names = [_alike(name) for name in request.headers]
    for name, value in request.headers.items():
        if (
            not _TOKEN.fullmatch(name)
            or not HEADER_VALUE.fullmatch(value)
            or _alike(name) in OURS | OVERRIDES | CREDENTIALS
        ):
            raise InvalidInput(f"{request.id} has a header {name[:60]!r} that can't be sent.")
    own = [_alike(place.name) for place in request.credential_places if place.at == "header"]
    if set(own) & set(names) or len(set(names)) != len(names):
        raise InvalidInput(f"{request.id} has one header twice.")
    if request.body_format == "form" and not isinstance(request.body, Mapping | None):
        raise InvalidInput(f"{request.id} has a form that isn't a flat object.")
    _check_body(request)
    if name := overriding(request):
        raise InvalidInput(f"{request.id} has a value {name[:60]!r}, which would change what the request means.")
    if request.body_format == "none" and request.body is not None:
        raise InvalidInput(f"{request.id} has a body and no format for it.")


def overriding(request: PlannedRequest) -> str:
    """The name of a value by which some servers take a request for one of another method (`_method`); "" without."""
    body = request.body
    names = [*request.query, *(body if isinstance(body, Mapping) and request.body_format != "multipart" else ())]
    if request.body_format == "multipart" and isinstance(body, list | tuple):
        names += [part["name"] for part in body if isinstance(part, Mapping) and isinstance(part.get("name"), str)]
    return next((name for name in names if isinstance(name, str) and overrides(name)), "")


def _check_body(request: PlannedRequest) -> None:
    """Raise InvalidInput for a body whose parts or type couldn't be written in exactly one way."""
    if request.body_type and format_of(request.body_type) != request.body_format:
        raise InvalidInput(f"{request.id} has a body of {request.body_type[:60]!r}, which isn't sent so.")
    if request.body_format != "multipart" or request.body is None:
        return
    if not isinstance(request.body, list | tuple) or not all(_is_part(part) for part in request.body):
        raise InvalidInput(f"{request.id} has a part of its body that can't be written.")


def _is_part(part: Any) -> bool:
    if not isinstance(part, Mapping) or set(part) - _PART_KEYS or ("file" in part) == ("value" in part):
        return False
    texts = [part.get("name"), *(part[key] for key in ("file",) if key in part)]
    if not all(isinstance(one, str) and PART_TEXT.fullmatch(one) for one in texts):
        return False
    return "file" not in part or bool(MEDIA.fullmatch(str(part.get("type"))))


def _check_rule(rule: MethodRule, held: Mapping[AccountKey, Lease]) -> None:
    if not _ID.fullmatch(rule.id):
        raise InvalidInput("A rule has an id that isn't one.")
    lease = _check_reach(rule, held)
    for template in ((*rule.base_path, *rule.path), *((*rule.base_path, *other) for other in rule.others)):
        _check_slots(rule, template)
        _check_path(rule, template)
    for name in (*rule.query, *rule.fields):
        if overrides(name) or not name or len(name) > 200:
            raise InvalidInput(f"{rule.id} names {name[:60]!r}, which would change what a request means.")
    canonical({name: list(values) for name, values in rule.fields.items()})
    if not set(rule.must) <= rule.query.keys() | rule.fields.keys():
        raise InvalidInput(f"{rule.id} wants something in each request that it doesn't let stand there.")
    for header in rule.headers:
        if not _HEADER.fullmatch(header.lower()) or _alike(header) in OURS | OVERRIDES | {"authorization"}:
            raise InvalidInput(f"{rule.id} lets a header {header[:60]!r} pass that can't be sent.")
    if not (0 < rule.calls <= MAX_CALLS and 0 <= rule.request_bytes <= MAX_STREAMED and rule.response_bytes > 0):
        raise InvalidInput(f"The limits of {rule.id} are out of bounds.")
    if rule.websocket and rule.method != "GET":
        raise InvalidInput(f"{rule.id} would open a WebSocket by {rule.method}.")
    _check_credential(rule, lease)


def _check_slots(rule: MethodRule, template: Sequence[str | Slot]) -> None:
    slots = [part for part in template if isinstance(part, Slot)]
    if sum(slot.many for slot in slots) > 1:
        raise InvalidInput(f"{rule.id} has two slots of several segments, which could be divided in several ways.")
    if len({slot.name for slot in slots}) != len(slots):
        raise InvalidInput(f"{rule.id} has one slot twice.")


def _check_path(rule: Rule | TokenEndpoint, template: Sequence[Any]) -> None:
    """Raise InvalidInput for a segment, or a slot's value, that couldn't be one segment. A Ref's is seen later."""
    try:
        for place, part in enumerate(template):
            if isinstance(part, Slot):
                for value in part.values:
                    check_segment(value)
                check_segment(part.end, may_be_empty=True)
            elif isinstance(part, str):
                check_segment(part, may_be_empty=place == len(template) - 1 and place > 0)
    except BadTarget as error:
        name = rule.id if isinstance(rule, Rule) else "a token endpoint"
        raise InvalidInput(f"The path of {name} can't be sent: {error.message}.") from error


def _check_placeholders(plan: GatewayPlan, held: Mapping[AccountKey, Lease]) -> None:
    secrets = [each.decode("latin-1") for each in secrets_of(plan, held)]
    for placeholder, account in plan.placeholders.items():
        if not _PLACEHOLDER.fullmatch(placeholder) or account not in held:
            raise InvalidInput("A placeholder isn't one, or stands for an account without a lease.")
        others = [other for other in plan.placeholders if other != placeholder]
        if any(placeholder in other for other in (*others, *secrets)) or any(
            secret in placeholder for secret in secrets if len(secret) >= _LONG
        ):
            raise InvalidInput("A placeholder could be taken for something else.")


def _check_token(token: TokenEndpoint, plan: GatewayPlan) -> None:
    if token.account not in plan.placeholders.values():
        raise InvalidInput(f"A token endpoint's account {'/'.join(token.account)} has no placeholder.")
    _check_path(token, token.path)
