"""What is too much and what is too little: the two ways in which a set of scopes can be wrong.

The thesis's table 4.1 counts both; these are its columns' definitions here, and `goex eval scopes` uses no others.
Scopes are named as the provider names them, since a token holds them whatever service asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from mapper.catalog import Catalog
from mapper.least_scopes import ScopeId, reach_of, risk_of, suffices
from mapper.reach import Reach
from policies.services import Method, Risk

Judged = Literal["accepted", "excessive", "insufficient"]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a set of scopes opens, and the worst risk of one of them."""

    reach: Reach
    risk: Risk


def judge(
    catalog: Catalog, methods: Iterable[Method], chosen: Collection[str], acceptable: Iterable[Collection[str]]
) -> Judged:
    """How a chosen set of scopes compares with the acceptable ones, each of which is a least set for `methods`.

    *Accepted*: it is one of them. *Excessive*: it isn't, and allows all that some acceptable set allows, or more; or
    one of its scopes is riskier than the worst of every acceptable set. *Insufficient*: neither; it leaves a method
    uncovered, or is narrower than every acceptable set, or beside them. A set that covers too little and yet allows
    too much is excessive: that is the worse mistake.
    """
    methods = tuple(methods)
    sets = [frozenset(one) for one in acceptable]
    mine = frozenset(chosen)
    if mine in sets and covers(catalog, methods, mine):
        return "accepted"
    return "excessive" if mine and excessive(catalog, methods, mine, sets) else "insufficient"


def claimed(catalog: Catalog, chosen: Iterable[ScopeId]) -> frozenset[str]:
    """The scopes that a login would be asked for: virtual ones, which a method without any has, are no provider's."""
    return frozenset(name for service, _, name in chosen if not catalog.scope(service, name).virtual)


def covers(catalog: Catalog, methods: Iterable[Method], scopes: Collection[str]) -> bool:
    """Whether each method has a scope among these that alone suffices for it, or needs none."""
    return all(
        not claimed(catalog, ((method.service, "", scope) for scope in method.scopes))
        or any(suffices(catalog, method.service, method.name, scope) for scope in scopes)
        for method in methods
    )


def excessive(
    catalog: Catalog, methods: Iterable[Method], chosen: Collection[str], acceptable: Iterable[Collection[str]]
) -> bool:
    """Whether `chosen` allows all that some acceptable set does, or is riskier than each of them."""
    methods = tuple(methods)
    mine = opened(catalog, methods, chosen)
    theirs = [opened(catalog, methods, one) for one in acceptable]
    if any(one.reach.within(mine.reach) for one in theirs):
        return True
    return mine.risk > max((one.risk for one in theirs), default=Risk.READ)


def opened(catalog: Catalog, methods: Iterable[Method], scopes: Collection[str]) -> Opened:
    """What these scopes open together; a scope that none of the methods' services knows deletes and opens nothing."""
    services = sorted({method.service for method in methods})
    found = Opened(Reach(), Risk.READ)
    for scope in scopes:
        at = next((service for service in services if scope in catalog.service(service).scopes), None)
        one = Opened(reach_of(catalog, at, scope), risk_of(catalog, at, scope)) if at else Opened(Reach(), Risk.DELETE)
        found = Opened(found.reach | one.reach, max(found.risk, one.risk))
    return found
