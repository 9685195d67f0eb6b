"""Which permissions a list of steps needs. Pure.

Rules: the least scopes are chosen first over what must be granted for the plan to run, and then, given those, over what
its undo needs beside that: a scope that only the undo has a use for never stands in for a lesser one that the action
can do with. Each need says what for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mapper.catalog import Catalog
from mapper.scopes import ScopeId, least_scopes
from policies.actions import Call, Need
from policies.jsonvalue import JsonObject, canonical
from runtimes.rest.steps import Role, Step
from runtimes.rest.values import plain

Why = Literal["action", "pre-read", "read-back", "undo", "probe"]

_WHY: dict[Role, Why] = {
    "call": "action",
    "pre": "pre-read",
    "guard": "read-back",
    "verify": "read-back",
    "undo": "undo",
    "probe": "probe",
}

# What a plan shows of its way back and doesn't ask for (`Plan.required`).
LATER: frozenset[Why] = frozenset({"read-back", "undo"})


def needs_of(steps: Iterable[Step], catalog: Catalog, granted: frozenset[ScopeId]) -> tuple[Need, ...]:
    """One need for each account, scope and purpose, in the order in which they first come up."""
    steps = tuple(steps)
    now = least_scopes(catalog, _calls(step for step in steps if _WHY[step.role] not in LATER), granted)
    held = granted | frozenset(now)
    later = least_scopes(catalog, _calls(step for step in steps if _WHY[step.role] in LATER), held)
    groups: dict[tuple[ScopeId, Why], list[Step]] = {}
    for step in steps:
        chosen, given = (later, held) if _WHY[step.role] in LATER else (now, granted)
        groups.setdefault((_scope_of(step, catalog, chosen, given), _WHY[step.role]), []).append(step)
    return tuple(_need(scope, why, members, catalog) for (scope, why), members in groups.items())


def _calls(steps: Iterable[Step]) -> tuple[Call, ...]:
    return tuple(Call(service=s.service, method=s.method, arguments={}, account=s.account) for s in steps)


def _scope_of(step: Step, catalog: Catalog, chosen: tuple[ScopeId, ...], granted: frozenset[ScopeId]) -> ScopeId:
    able = [
        scope
        for scope in chosen
        if scope[:2] == (step.service, step.account) and scope[2] in catalog.method(step.method_id).scopes
    ]
    return min(able, key=lambda scope: (scope not in granted, catalog.scope(step.service, scope[2]).risk, scope))


def _need(scope: ScopeId, why: Why, steps: list[Step], catalog: Catalog) -> Need:
    service, account, name = scope
    return Need(
        service=service,
        account=account,
        scope=name,
        risk=max(catalog.method(step.method_id).risk for step in steps),
        methods=tuple(dict.fromkeys(step.method for step in steps)),
        arguments=_distinct([_arguments(step, catalog) for step in steps]),
        why=why,
    )


def _distinct(arguments: list[JsonObject]) -> tuple[JsonObject, ...]:
    return tuple({canonical(each): each for each in arguments}.values())


def _arguments(step: Step, catalog: Catalog) -> JsonObject:
    """The arguments that a caller gives, so that a standing grant can be bound to their values."""
    own = catalog.method(step.method_id).parameters["properties"]
    return {name: plain(value) for name, value in step.arguments.items() if name in own}
