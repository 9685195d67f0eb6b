"""Which permissions a list of steps needs. Pure.

Rules: the least scopes are chosen first over what must be granted for the plan to run, and then, given those, over what
its undo needs beside that: a scope that only the undo has a use for never stands in for a lesser one that the action
can do with. Each need says what for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mapper.catalog import Catalog
from mapper.least_scopes import ScopeId, scopes_of_calls
from policies.actions import Call, Need
from policies.jsonvalue import JsonObject, canonical
from policies.services import believed_risk
from runtimes.rest.references import plain, refs_in
from runtimes.rest.steps import Role, Step

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


def needs_of(steps: Iterable[Step], catalog: Catalog, granted: frozenset[ScopeId], words: str = "") -> tuple[Need, ...]:
    """One need for each account, scope and purpose, in the order in which they first come up. `words`: the person's
    request, if there is one."""
    steps = tuple(steps)
    first = [step for step in steps if _WHY[step.role] not in LATER]
    now = scopes_of_calls(catalog, _calls(first), granted, words=words)
    rest = [step for step in steps if _WHY[step.role] in LATER]
    later = scopes_of_calls(catalog, _calls(rest), granted | frozenset(now), words=words)
    under = {id(step): scope for step, scope in zip((*first, *rest), (*now, *later), strict=True)}
    groups: dict[tuple[ScopeId, Why], list[Step]] = {}
    for step in steps:
        groups.setdefault((under[id(step)], _WHY[step.role]), []).append(step)
    return tuple(_need(scope, why, members, catalog) for (scope, why), members in groups.items())


def _calls(steps: Iterable[Step]) -> tuple[Call, ...]:
    return tuple(
        Call(service=s.service, method=s.method, arguments=plain(s.arguments), account=s.account) for s in steps
    )


def _need(scope: ScopeId, why: Why, steps: list[Step], catalog: Catalog) -> Need:
    service, account, name = scope
    return Need(
        service=service,
        account=account,
        scope=name,
        risk=max(believed_risk(catalog.service(step.service), catalog.method(step.method_id)) for step in steps),
        methods=tuple(dict.fromkeys(step.method for step in steps)),
        arguments=_distinct([_arguments(step, catalog) for step in steps]),
        why=why,
    )


def _distinct(arguments: list[JsonObject]) -> tuple[JsonObject, ...]:
    return tuple({canonical(each): each for each in arguments}.values())


def _arguments(step: Step, catalog: Catalog) -> JsonObject:
    """The arguments that a caller gives, so that a standing grant can be bound to their values; and whatever an answer
    fills in."""
    own = catalog.method(step.method_id).parameters["properties"]
    return {name: plain(value) for name, value in step.arguments.items() if name in own or refs_in(value)}
