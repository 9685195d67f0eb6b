"""Least scopes: the smallest permission that suffices, by what each scope unlocks.

Counting scopes isn't the measure, what they open is. A set of scopes is better than another when its worst new scope
is less risky; then when its new scopes unlock fewer methods; then when it has fewer of them. What is granted already
costs nothing new, so it is preferred wherever it suffices. Everything is decided by the catalog, never by a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mapper.catalog import Catalog
from policies.actions import Call
from policies.catalog import Method, Risk
from policies.errors import InvalidInput

ScopeId = tuple[str, str, str]  # service, account, scope

# Beyond this many partial covers the search stops being exact and takes the best single step each time.
_EXACT = 20_000


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What a set of scopes costs; smaller is better. The first difference decides, the names make it total."""

    risk: int  # of the worst new scope; 0: nothing new
    unlocked: int  # methods that the new scopes unlock
    new: int  # how many are new
    granted_risk: int
    granted_unlocked: int
    count: int
    names: tuple[str, ...]


def least_scopes(catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId]) -> tuple[ScopeId, ...]:
    """The least set of scopes under which every call is allowed, sorted; any one scope of a method suffices for it.

    `granted` are those that standing grants cover already. Accounts are kept apart. Raises UnknownName for what isn't
    in the catalog, InvalidInput for a method that no scope allows.
    """
    groups: dict[tuple[str, str], dict[str, Method]] = {}
    for call in calls:
        method = catalog.method(call.id)
        if not method.scopes:
            raise InvalidInput(f"No scope allows {method.id}, so it can't be called.")
        groups.setdefault((call.service, call.account), {})[method.name] = method
    found: list[ScopeId] = []
    for (service, account), methods in groups.items():
        owned = frozenset(scope for s, a, scope in granted if (s, a) == (service, account))
        best = _Search(catalog, service, owned).best(list(methods.values()))
        found.extend((service, account, scope) for scope in best)
    return tuple(sorted(found))


def also(catalog: Catalog, service: str, scope: str, used: set[str]) -> tuple[str, ...]:
    """What else the scope would allow beside the methods named in `used`, in plain words, worst risk first."""
    methods = catalog.service(service).methods
    others = [methods[name] for name in catalog.unlocks(service, scope) if name not in used]
    others.sort(key=lambda method: (-method.risk, method.name))
    return tuple(f"{method.risk.word}: {_sentence(method.description)}" for method in others)


def worst(catalog: Catalog, scopes: Sequence[ScopeId]) -> Risk:
    """The worst risk among these scopes; DELETE when there is none, since absence of knowledge isn't safety."""
    return max((catalog.scope(service, scope).risk for service, _, scope in scopes), default=Risk.DELETE)


def _sentence(text: str) -> str:
    first, dot, _ = text.partition(". ")
    first = first.rstrip(".") if dot else text.rstrip(".")
    return first[:1].lower() + first[1:]


class _Search:
    """Exact set cover by branching on the first method that isn't covered yet.

    Every cost grows with the set, so some best set has no scope to spare; and each such set is reached by choosing,
    for one uncovered method after another, a scope that is in it.
    """

    def __init__(self, catalog: Catalog, service: str, granted: frozenset[str]) -> None:
        self._risk = {name: int(scope.risk) for name, scope in catalog.service(service).scopes.items()}
        self._granted = granted
        self._catalog = catalog
        self._service = service
        self._unlocks: dict[str, frozenset[str]] = {}

    def unlocks(self, scope: str) -> frozenset[str]:
        if scope not in self._unlocks:
            self._unlocks[scope] = self._catalog.unlocks(self._service, scope)
        return self._unlocks[scope]

    def cost(self, scopes: frozenset[str]) -> Cost:
        new, old = scopes - self._granted, scopes & self._granted
        return Cost(
            risk=max((self._risk[scope] for scope in new), default=0),
            unlocked=len(frozenset().union(*(self.unlocks(scope) for scope in new))),
            new=len(new),
            granted_risk=max((self._risk[scope] for scope in old), default=0),
            granted_unlocked=len(frozenset().union(*(self.unlocks(scope) for scope in old))),
            count=len(scopes),
            names=tuple(sorted(scopes)),
        )

    def best(self, methods: list[Method]) -> frozenset[str]:
        # The methods with the fewest ways first: they decide most, and the tree stays narrow.
        methods.sort(key=lambda method: (len(method.scopes), method.name))
        found: tuple[Cost, frozenset[str]] | None = None
        stack: list[frozenset[str]] = [frozenset()]
        seen: set[frozenset[str]] = {frozenset()}
        while stack:
            if len(seen) > _EXACT:
                return self._greedy(methods)
            chosen = stack.pop()
            cost = self.cost(chosen)
            if found is not None and cost >= found[0]:
                continue
            open_method = next((method for method in methods if not chosen & set(method.scopes)), None)
            if open_method is None:
                found = cost, chosen
                continue
            for scope in open_method.scopes:
                longer = chosen | {scope}
                if longer not in seen:
                    seen.add(longer)
                    stack.append(longer)
        return found[1] if found is not None else frozenset()

    def _greedy(self, methods: list[Method]) -> frozenset[str]:
        chosen: frozenset[str] = frozenset()
        for method in methods:
            if not chosen & set(method.scopes):
                chosen |= {min(method.scopes, key=lambda scope: self.cost(chosen | {scope}))}
        return chosen
