"""Checks of a plan's rules for code before a socket exists. Pure.

A rule that couldn't be held to, or that would send a secret anywhere but into its own account's one place, refuses the
whole plan; so does a placeholder that could be taken for another one, or for a secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from runtimes.gateway.head import OVERRIDES
from runtimes.gateway.plan import GatewayPlan, Rule, Slot, TokenEndpoint
from runtimes.gateway.plan_check import OURS, AccountKey, check_header_name, check_reach, credential_text
from runtimes.gateway.request_headers import OVERRIDE_NAMES
from runtimes.gateway.urls import BadTarget, check_segment
from vault.lease import Lease

MAX_CALLS = 100_000
MAX_BYTES = 2**40

_ID = re.compile(r"[a-z0-9][a-z0-9\-]{0,59}")
_PLACEHOLDER = re.compile(r"[A-Za-z0-9_.\-]{24,200}")
_LONG = 8  # characters; a shorter secret can stand in any text
_NAME = re.compile(r"[\x21-\x7e]{1,200}")
_HEADER = re.compile(r"[a-z0-9][a-z0-9_\-]{0,99}")


def check_rules(plan: GatewayPlan, held: Mapping[AccountKey, Lease]) -> None:
    """Raise InvalidInput for what can't be served safely."""
    if max(Counter(rule.id for rule in plan.rules).values(), default=0) > 1:
        raise InvalidInput("Two rules of a plan have one id.")
    _check_placeholders(plan, held)
    for rule in plan.rules:
        _check_rule(rule, held)
        if rule.account not in plan.placeholders.values():
            raise InvalidInput(f"{rule.id} has no placeholder that stands for {'/'.join(rule.account)}.")
    for token in plan.tokens:
        _check_token(token, plan)


def _check_placeholders(plan: GatewayPlan, held: Mapping[AccountKey, Lease]) -> None:
    secrets = [each.reveal().decode("latin-1") for lease in held.values() for each in (lease.secret, *lease.redact)]
    for placeholder, account in plan.placeholders.items():
        if not _PLACEHOLDER.fullmatch(placeholder) or account not in held:
            raise InvalidInput("A placeholder isn't one, or stands for an account without a lease.")
        others = [other for other in plan.placeholders if other != placeholder]
        if any(placeholder in other for other in (*others, *secrets)) or any(
            secret in placeholder for secret in secrets if len(secret) >= _LONG
        ):
            raise InvalidInput("A placeholder could be taken for something else.")


def _check_rule(rule: Rule, held: Mapping[AccountKey, Lease]) -> None:
    if not _ID.fullmatch(rule.id):
        raise InvalidInput("A rule has an id that isn't one.")
    lease = check_reach(rule, held)
    for template in ((*rule.base_path, *rule.path), *((*rule.base_path, *other) for other in rule.others)):
        _check_template(rule, template)
    for name in (*rule.query, *rule.fields):
        if name.lower() in OVERRIDE_NAMES or not name or len(name) > 200:
            raise InvalidInput(f"{rule.id} names {name[:60]!r}, which would change what a request means.")
    canonical({name: list(values) for name, values in rule.fields.items()})
    if not set(rule.must) <= rule.query.keys() | rule.fields.keys():
        raise InvalidInput(f"{rule.id} wants something in each request that it doesn't let stand there.")
    for header in rule.headers:
        if not _HEADER.fullmatch(header.lower()) or header.lower() in OURS | OVERRIDES | {"authorization"}:
            raise InvalidInput(f"{rule.id} lets a header {header[:60]!r} pass that can't be sent.")
    if not (0 < rule.calls <= MAX_CALLS and 0 <= rule.request_bytes <= MAX_BYTES and rule.response_bytes > 0):
        raise InvalidInput(f"The limits of {rule.id} are out of bounds.")
    if rule.websocket and rule.method != "GET":
        raise InvalidInput(f"{rule.id} would open a WebSocket by {rule.method}.")
    _check_credential(rule, lease)


def _check_template(rule: Rule, template: Sequence[str | Slot]) -> None:
    if sum(isinstance(part, Slot) and part.many for part in template) > 1:
        raise InvalidInput(f"{rule.id} has two slots of several segments, which could be divided in several ways.")
    names = [part.name for part in template if isinstance(part, Slot)]
    if len(set(names)) != len(names):
        raise InvalidInput(f"{rule.id} has one slot twice.")
    try:
        for place, part in enumerate(template):
            if isinstance(part, Slot):
                for value in part.values:
                    check_segment(value)
                check_segment(part.end, may_be_empty=True)
            else:
                check_segment(part, may_be_empty=place == len(template) - 1 and place > 0)
    except BadTarget as error:
        raise InvalidInput(f"The path of {rule.id} can't be sent: {error.message}.") from error


def _check_credential(rule: Rule, lease: Lease) -> None:
    if rule.credential_format.count("{secret}") != 1 or not _NAME.fullmatch(rule.credential_name):
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    if rule.credential_at == "header":
        check_header_name(rule, rule.credential_name)
    elif rule.credential_at == "query" and rule.credential_name in rule.query:
        raise InvalidInput(f"{rule.id} lets the code write where its credential goes.")
    elif rule.credential_at == "body" and rule.body_format not in ("json", "form"):
        raise InvalidInput(f"{rule.id} has its credential in a body that isn't read.")
    elif rule.credential_at == "body" and rule.credential_name in rule.fields:
        raise InvalidInput(f"{rule.id} lets the code write where its credential goes.")
    elif rule.credential_at not in ("header", "query", "body"):
        raise InvalidInput(f"{rule.id} has no place for its credential.")
    credential_text(rule.credential_format, lease)


def _check_token(token: TokenEndpoint, plan: GatewayPlan) -> None:
    if token.account not in plan.placeholders.values():
        raise InvalidInput(f"A token endpoint's account {'/'.join(token.account)} has no placeholder.")
    try:
        for place, part in enumerate(token.path):
            check_segment(part, may_be_empty=place == len(token.path) - 1 and place > 0)
    except BadTarget as error:
        raise InvalidInput(f"The path of a token endpoint isn't one: {error.message}.") from error
