"""Plans, leases and what was seen, as JSON for the socket pair.

A value that may hold a `Ref` is tagged (`{"r": …}` a reference, `{"m": …}` a mapping, `{"l": …}` a list), so that no
literal of a plan can pose as a reference. Secrets cross as base64, here and nowhere else.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from policies.accounts import Account, Origin
from policies.catalog import Expect
from policies.errors import InvalidInput
from runtimes.gateway.plan import Exchange, GatewayPlan, PlannedRequest, Ref, Refusal
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
    }


def plan_from_json(raw: Mapping[str, Any]) -> GatewayPlan:
    return GatewayPlan(
        action_id=raw["action_id"],
        requests=tuple(_request_from_json(request) for request in raw["requests"]),
        max_request_bytes=raw["max_request_bytes"],
        max_response_bytes=raw["max_response_bytes"],
        seconds=raw["seconds"],
    )


def _request_to_json(request: PlannedRequest) -> dict[str, Any]:
    return {
        "id": request.id,
        "account": list(request.account),
        "origin": _origin_to_json(request.origin),
        "base_path": list(request.base_path),
        "method": request.method,
        "path": [_tag(part) for part in request.path],
        "query": _tag(request.query),
        "headers": dict(request.headers),
        "body": _tag(request.body),
        "body_format": request.body_format,
        "credential_header": request.credential_header,
        "credential_format": request.credential_format,
        "expect": [[one.op, one.path, _tag(one.value), one.says] for one in request.expect],
        "attempts": request.attempts,
        "optional": request.optional,
    }


def _request_from_json(raw: Mapping[str, Any]) -> PlannedRequest:
    service, account = raw["account"]
    return PlannedRequest(
        id=raw["id"],
        account=(service, account),
        origin=Origin(*raw["origin"]),
        base_path=tuple(raw["base_path"]),
        method=raw["method"],
        path=tuple(_untag(part) for part in raw["path"]),
        query=_untag(raw["query"]),
        headers=raw["headers"],
        body=_untag(raw["body"]),
        body_format=raw["body_format"],
        credential_header=raw["credential_header"],
        credential_format=raw["credential_format"],
        expect=tuple(
            Expect(op=op, path=path, value=_untag(value), says=says) for op, path, value, says in raw["expect"]
        ),
        attempts=raw["attempts"],
        optional=raw["optional"],
    )


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
    )


def refusal_to_json(refusal: Refusal) -> dict[str, Any]:
    return {"reason": refusal.reason, "method": refusal.method, "target": refusal.target}


def refusal_from_json(raw: Mapping[str, Any]) -> Refusal:
    return Refusal(reason=str(raw["reason"]), method=str(raw["method"]), target=str(raw["target"]))


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
