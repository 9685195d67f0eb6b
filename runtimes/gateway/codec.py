"""Plans, leases and what was seen, as JSON for the socket pair.

A value that may hold a `Ref` is tagged (`{"r": …}` a reference, `{"m": …}` a mapping, `{"l": …}` a list), so that no
literal of a plan can pose as a reference. Secrets cross as base64, here and nowhere else.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from policies.services import Expect
from runtimes.gateway.plan import (
    CredentialPlace,
    Exchange,
    GatewayPlan,
    MethodRule,
    PlannedRequest,
    Ref,
    Refusal,
    SentRequest,
    Slot,
    TokenEndpoint,
)
from vault.lease import Lease
from vault.secret import Secret

_PLAIN = (str, int, float, bool, type(None))


def plan_to_json(plan: GatewayPlan) -> dict[str, Any]:
    return {
        "action_id": plan.action_id,
        "requests": [_request_to_json(request) for request in plan.requests],
        "max_request_bytes": plan.max_request_bytes,
        "max_response_bytes": plan.max_response_bytes,
        "seconds": plan.seconds,
        "code": plan.code,
        "rules": [rule_to_json(rule) for rule in plan.rules],
        "placeholders": {placeholder: list(account) for placeholder, account in plan.placeholders.items()},
        "tokens": [[list(one.account), _origin_to_json(one.origin), list(one.path)] for one in plan.tokens],
    }


def plan_from_json(raw: Mapping[str, Any]) -> GatewayPlan:
    return GatewayPlan(
        action_id=raw["action_id"],
        requests=tuple(_request_from_json(request) for request in raw["requests"]),
        max_request_bytes=raw["max_request_bytes"],
        max_response_bytes=raw["max_response_bytes"],
        seconds=raw["seconds"],
        code=raw["code"],
        rules=tuple(rule_from_json(rule) for rule in raw["rules"]),
        placeholders={placeholder: _account(account) for placeholder, account in raw["placeholders"].items()},
        tokens=tuple(
            TokenEndpoint(account=_account(account), origin=Origin(*origin), path=tuple(path))
            for account, origin, path in raw["tokens"]
        ),
    )


def rule_to_json(rule: MethodRule) -> dict[str, Any]:
    """Every field of a rule: a plan's digest is taken over this too."""
    made = {each.name: getattr(rule, each.name) for each in fields(MethodRule)}
    for name in ("budget", "written", "read", "answered", "shown"):
        if not made[name]:
            del made[name]  # as a GoEx without it wrote rules
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in made.items()},
        "origin": str(rule.origin),
        "path": [_part_to_json(part) for part in rule.path],
        "others": [[_part_to_json(part) for part in other] for other in rule.others],
        "credential_more": [list(place) for place in rule.credential_more],
        "query": {name: list(values) for name, values in rule.query.items()},
        "fields": {name: list(values) for name, values in rule.fields.items()},
        **({"written": {name: list(values) for name, values in rule.written.items()}} if rule.written else {}),
    }


def rule_from_json(raw: Mapping[str, Any]) -> MethodRule:
    """The rule that `rule_to_json` wrote."""
    return MethodRule(**{
        **raw,
        "account": _account(raw["account"]),
        "origin": Origin.parse(raw["origin"]),
        "base_path": tuple(raw["base_path"]),
        "path": tuple(_part_from_json(part) for part in raw["path"]),
        "others": tuple(tuple(_part_from_json(part) for part in other) for other in raw["others"]),
        "query": {name: tuple(values) for name, values in raw["query"].items()},
        "fields": {name: tuple(values) for name, values in raw["fields"].items()},
        "must": tuple(raw["must"]),
        "credential_more": _places(raw),
        "closed": tuple(raw["closed"]),
        "headers": tuple(raw["headers"]),
        "shown": tuple(raw.get("shown", ())),
        "written": {name: tuple(values) for name, values in raw.get("written", {}).items()},
    })  # fmt: skip


def _part_to_json(part: str | Slot) -> Any:
    if isinstance(part, str):
        return part
    return {**{each.name: getattr(part, each.name) for each in fields(Slot)}, "values": list(part.values)}


def _part_from_json(part: Any) -> str | Slot:
    # An older GoEx had no `form`.
    return part if isinstance(part, str) else Slot(**{**part, "values": tuple(part["values"])})


def _places(raw: Mapping[str, Any]) -> tuple[CredentialPlace, ...]:
    # An older GoEx had one place alone.
    return tuple(CredentialPlace(*place) for place in raw.get("credential_more", ()))


def _account(raw: Any) -> tuple[str, str]:
    service, name = raw
    return str(service), str(name)


def _request_to_json(request: PlannedRequest) -> dict[str, Any]:
    return {
        **{each.name: getattr(request, each.name) for each in fields(PlannedRequest)},
        "account": list(request.account),
        "origin": _origin_to_json(request.origin),
        "base_path": list(request.base_path),
        "path": [_tag(part) for part in request.path],
        "query": _tag(request.query),
        "headers": dict(request.headers),
        "body": _tag(request.body),
        "expect": [[one.op, one.path, _tag(one.value), one.says] for one in request.expect],
        "credential_more": [list(place) for place in request.credential_more],
    }


def _request_from_json(raw: Mapping[str, Any]) -> PlannedRequest:
    return PlannedRequest(**{
        **raw,
        "account": _account(raw["account"]),
        "origin": Origin(*raw["origin"]),
        "base_path": tuple(raw["base_path"]),
        "path": tuple(_untag(part) for part in raw["path"]),
        "query": _untag(raw["query"]),
        "body": _untag(raw["body"]),
        "credential_more": _places(raw),
        "expect": tuple(
            Expect(op=op, path=path, value=_untag(value), says=says) for op, path, value, says in raw["expect"]
        ),
    })  # fmt: skip


def lease_to_json(lease: Lease) -> dict[str, Any]:
    account = lease.account
    return {
        "action_id": lease.action_id,
        "account": {
            "service": account.service,
            "name": account.name,
            "origins": [_origin_to_json(origin) for origin in account.origins],
            "base_url": account.base_url,
            "format": account.format,
            "private": account.private,
            "ca_pem": account.ca_pem,
        },
        "secret": base64.b64encode(lease.secret.reveal()).decode("ascii"),
        "expires": lease.expires.isoformat(),
        "redact": [base64.b64encode(each.reveal()).decode("ascii") for each in lease.redact],
    }


def lease_from_json(raw: Mapping[str, Any]) -> Lease:
    account = dict(raw["account"])
    account["origins"] = tuple(Origin(*origin) for origin in account["origins"])
    return Lease(
        action_id=raw["action_id"],
        account=Account(**account),
        secret=Secret(base64.b64decode(raw["secret"], validate=True)),
        expires=datetime.fromisoformat(raw["expires"]),
        redact=tuple(Secret(base64.b64decode(each, validate=True)) for each in raw["redact"]),
    )


def exchange_to_json(exchange: Exchange) -> dict[str, Any]:
    return {
        "request": exchange.request,
        "status": exchange.status,
        "well": exchange.well,
        "body": exchange.body,
        "text": exchange.text,
        "failed": exchange.failed,
        "size": exchange.size,
        "replayed": exchange.replayed,
    }


def exchange_from_json(raw: Mapping[str, Any]) -> Exchange:
    return Exchange(
        request=str(raw["request"]),
        status=int(raw["status"]),
        well=raw["well"] is True,
        body=raw["body"],
        text=str(raw["text"]),
        failed=str(raw["failed"]),
        size=int(raw["size"]),
        replayed=raw["replayed"] is True,
    )


def sent_to_json(sent: SentRequest) -> dict[str, Any]:
    return {
        "rule": sent.rule,
        "slots": dict(sent.slots),
        "query": [list(pair) for pair in sent.query],
        "body": sent.body,
        "size": sent.size,
        "file": sent.file,
        "keys": list(sent.keys),
    }


def sent_from_json(raw: Mapping[str, Any]) -> SentRequest:
    return SentRequest(
        rule=str(raw["rule"]),
        slots={str(name): str(value) for name, value in raw["slots"].items()},
        query=tuple((str(name), str(value)) for name, value in raw["query"]),
        body=raw["body"],
        size=int(raw["size"]),
        file=raw["file"] is True,
        keys=tuple(str(key) for key in raw["keys"]),
    )


def refusal_to_json(refusal: Refusal) -> dict[str, Any]:
    return {each.name: getattr(refusal, each.name) for each in fields(Refusal)}


def refusal_from_json(raw: Mapping[str, Any]) -> Refusal:
    return Refusal(**{each.name: str(raw[each.name]) for each in fields(Refusal)})


def _origin_to_json(origin: Origin) -> list[Any]:
    return [origin.scheme, origin.host, origin.port]


def _tag(value: Any) -> Any:
    if isinstance(value, Ref):
        return {"r": [value.request, value.path]}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidInput("A plan holds an object whose key isn't a string.")
        return {"m": {key: _tag(child) for key, child in value.items()}}
    if isinstance(value, list | tuple):
        return {"l": [_tag(child) for child in value]}
    if isinstance(value, _PLAIN):
        return value
    raise InvalidInput(f"A plan holds a {type(value).__name__}, which isn't a JSON value.")


def _untag(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((tag, held),) = value.items()
    if tag == "r":
        return Ref(*held)
    if tag == "m":
        return {key: _untag(child) for key, child in held.items()}
    if tag == "l":
        return [_untag(child) for child in held]
    raise InvalidInput("A plan holds an unknown tag.")
