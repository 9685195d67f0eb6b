"""The least-scope rule alone: the right methods given, are the scopes the right ones?

A case (one JSON object a line) has `id`, `service`, `version`, `apis` or `acceptable_apis` (the provider's own ids of
methods), `args`, `min_scopes` (the sets of scopes that are least; several where it is a tie) and perhaps `prompt`.
Cases that no method fits are left out, since there is nothing to choose for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mapper.catalog import Catalog
from mapper.evaluation.scope_sets import Judged, claimed, judge
from mapper.least_scopes import least_scopes
from policies.actions import Call
from policies.errors import GoexError
from policies.services import Method


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case's result. `chosen` and `acceptable` hold scopes without the provider's address."""

    id: str
    judged: Judged
    apis: tuple[str, ...]
    chosen: tuple[str, ...]
    acceptable: tuple[tuple[str, ...], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """How often the rule was right, too wide, too narrow (per cent; they sum to 100), and where it wasn't right."""

    cases: int
    accepted_pct: float
    excessive_pct: float
    insufficient_pct: float
    failures: tuple[Outcome, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(catalog: Catalog, cases: Iterable[Mapping[str, Any]], *, alternatives: bool = False) -> Figures:
    """The rule over cases. With `alternatives`, over each acceptable set of methods of a case, not the first alone."""
    outcomes: list[Outcome] = []
    for case in cases:
        ways = tuple(tuple(way) for way in case.get("acceptable_apis") or ())
        first = tuple(case.get("apis") or ()) or (ways[0] if ways else ())
        if not first or not case.get("min_scopes"):
            continue
        wanted = dict.fromkeys((first, *ways)) if alternatives else (first,)
        outcomes.extend(outcome(catalog, case, apis) for apis in wanted)
    return figures(outcomes)


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """The percentages over outcomes; of none, 0."""
    share = {
        word: round(100 * sum(one.judged == word for one in outcomes) / len(outcomes), 2) if outcomes else 0.0
        for word in ("accepted", "excessive", "insufficient")
    }
    return Figures(
        cases=len(outcomes),
        accepted_pct=share["accepted"],
        excessive_pct=share["excessive"],
        insufficient_pct=share["insufficient"],
        failures=tuple(one for one in outcomes if one.judged != "accepted"),
    )


def outcome(catalog: Catalog, case: Mapping[str, Any], apis: Sequence[str]) -> Outcome:
    """The rule's choice for one case, judged."""
    sets = tuple(tuple(one) for one in case["min_scopes"])
    methods: list[Method] = []
    for api in apis:
        method = resolve(catalog, case, api)
        if method is None:
            return _made(case, "insufficient", apis, (), sets, f"{api} isn't in the catalog")
        methods.append(method)
    calls = [
        Call(service=method.service, method=method.name, arguments=arguments_of(case, api, len(apis)))
        for method, api in zip(methods, apis, strict=True)
    ]
    try:
        found = least_scopes(catalog, calls, frozenset(), words=str(case.get("prompt", "")))
    except GoexError as error:
        return _made(case, "insufficient", apis, (), sets, error.message)
    chosen = tuple(sorted(claimed(catalog, found)))
    return _made(case, judge(catalog, methods, chosen, sets), apis, chosen, sets)


def resolve(catalog: Catalog, case: Mapping[str, Any], api: str) -> Method | None:
    """The imported method that a case means by the provider's id: of its service and version, else of any service."""
    service, version = str(case.get("service") or ""), str(case.get("version") or "")
    found = catalog.of_origin(service, api, version) or catalog.of_origin(service, api)
    if found is None and catalog.store is not None:
        ids = catalog.store.of_origin(api)
        found = catalog.method(ids[0]) if ids else None
    return found


def arguments_of(case: Mapping[str, Any], api: str, methods: int) -> dict[str, Any]:
    """The arguments that a case gives for one of its methods; {} where it gives none for this one."""
    given = case.get("args") or {}
    if isinstance(given.get(api), Mapping):
        return dict(given[api])
    named = any(isinstance(value, Mapping) and "." in key for key, value in given.items())
    return {} if named else dict(given)


def _made(
    case: Mapping[str, Any],
    judged: Judged,
    apis: Sequence[str],
    chosen: Sequence[str],
    sets: Sequence[Sequence[str]],
    reason: str = "",
) -> Outcome:
    def bare(scope: str) -> str:
        return scope.rpartition("/auth/")[2] if "/auth/" in scope else scope

    return Outcome(
        id=str(case.get("id", "")),
        judged=judged,
        apis=tuple(apis),
        chosen=tuple(bare(scope) for scope in chosen),
        acceptable=tuple(tuple(sorted(bare(scope) for scope in one)) for one in sets),
        reason=reason,
    )
