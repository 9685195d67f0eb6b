"""Permits and rules as JSON and back: what a digest is taken over is what the gateway gets."""

from __future__ import annotations

from typing import Any

from policies.accounts import Origin
from policies.actions import Plan
from policies.errors import InvalidInput
from runtimes.code.permits import Permit
from runtimes.gateway.plan import MethodRule, Slot


def rule_to_json(rule: MethodRule) -> dict[str, Any]:
    """Every field of a rule."""
    return {
        "id": rule.id,
        "method_id": rule.method_id,
        "account": list(rule.account),
        "origin": str(rule.origin),
        "base_path": list(rule.base_path),
        "method": rule.method,
        "path": [_part(part) for part in rule.path],
        "query": {name: list(values) for name, values in rule.query.items()},
        "fields": {name: list(values) for name, values in rule.fields.items()},
        "must": list(rule.must),
        "closed": list(rule.closed),
        "only": rule.only,
        "headers": list(rule.headers),
        "others": [[_part(part) for part in other] for other in rule.others],
        "body_format": rule.body_format,
        "calls": rule.calls,
        "request_bytes": rule.request_bytes,
        "response_bytes": rule.response_bytes,
        "websocket": rule.websocket,
        "credential_at": rule.credential_at,
        "credential_name": rule.credential_name,
        "credential_format": rule.credential_format,
    }


def rule_from_json(value: Any) -> MethodRule:
    """The rule that `rule_to_json` wrote."""
    plain = ("id", "method_id", "method", "only", "body_format", "calls")
    bounds = ("request_bytes", "response_bytes", "websocket")
    credential = ("credential_at", "credential_name", "credential_format")
    return MethodRule(
        account=(value["account"][0], value["account"][1]),
        origin=Origin.parse(value["origin"]),
        base_path=tuple(value["base_path"]),
        path=tuple(_from(part) for part in value["path"]),
        query={name: tuple(values) for name, values in value["query"].items()},
        fields={name: tuple(values) for name, values in value["fields"].items()},
        must=tuple(value["must"]),
        closed=tuple(value["closed"]),
        headers=tuple(value["headers"]),
        others=tuple(tuple(_from(part) for part in other) for other in value["others"]),
        **{name: value[name] for name in (*plain, *bounds, *credential)},
    )


def permits_of(plan: Plan) -> tuple[Permit, ...]:
    """The permits of a plan, as they were shown and digested. Raises InvalidInput for what isn't one."""
    try:
        return tuple(
            Permit(
                rule=rule_from_json(one["rule"]),
                service=one["service"],
                method=one["method"],
                read=one["read"],
                lines=tuple(one["lines"]),
                held={name: tuple(values) for name, values in one["held"].items()},
                optional=tuple(one["optional"]),
                closed=tuple(one["closed"]),
                free=tuple(one["free"]),
            )
            for one in plan.resolved["permits"]
        )
    except (KeyError, TypeError, IndexError) as error:
        raise InvalidInput(f"This isn't what a program may call: {error!r}.") from error


def _part(part: str | Slot) -> Any:
    if isinstance(part, str):
        return part
    return {
        "name": part.name,
        "values": list(part.values),
        "many": part.many,
        "end": part.end,
        "verbs": part.verbs,
        "form": part.form,
    }


def _from(part: Any) -> str | Slot:
    if isinstance(part, str):
        return part
    return Slot(
        part["name"],
        tuple(part["values"]),
        many=part["many"],
        end=part["end"],
        verbs=part["verbs"],
        form=part.get("form", ""),  # an older GoEx had none
    )
