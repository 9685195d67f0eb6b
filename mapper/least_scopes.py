"""Least scopes: the smallest permission that suffices, by what each scope says, opens and reaches.

Counting scopes isn't the measure, what they open is. Of the scopes that a provider lists for a call, those are looked
at that are likeliest to reach what the call is about (`mapper.scope_fit`). Of the sets of these, one is better than
another when its worst new scope is less risky; then when what its new scopes open, over everything that their provider
offers, weighs less (`mapper.reach`), whatever a provider lets only look counting as looking; then when it has fewer of
them; then when all of them together are less risky. Services of one provider share scopes, so that
they are covered together. What is granted already costs nothing new, so it is preferred wherever it suffices.
Everything is decided by the catalog and the call, never by a model; a person's own words only choose between kinds of
data that open as much as each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mapper.catalog import Catalog
from mapper.reach import SHARING, Reach, of_methods
from mapper.scope_fit import REFUSED, candidates, doubts
from mapper.scope_text import Limit, bare_name, said
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method, Risk, Scope, Service

ScopeId = tuple[str, str, str]  # service, account, scope

# Beyond this many partial covers the search stops being exact and takes the best single step each time.
_EXACT = 20_000

_LISTED = 24  # methods beside the used ones that are each named to the person
_NAMED = 4  # of each risk, where there are more
_SHORT = 90  # characters of one of these

_KINDS = {
    Risk.READ: ("thing to read", "things to read"),
    Risk.WRITE: ("change", "changes"),
    Risk.DELETE: ("deletion", "deletions"),
    Risk.ADMIN: ("change of who has access", "changes of who has access"),
}
_WORST = {
    Risk.READ: "see things",
    Risk.WRITE: "change things",
    Risk.DELETE: "delete things",
    Risk.ADMIN: "change who has access",
}
_LIMITS = {
    Limit.ROLE: "It is meant for administrators, partners, add-ons or apps on their own behalf.",
    Limit.OWN: "It reaches only what the app made itself.",
    Limit.SELF: "It reaches only what is the signed-in person's own.",
    Limit.METADATA: "It reaches what is said about things, not what is in them.",
    Limit.USED: "It reaches only what was made or opened with the app.",
}

_NEXT_TO_NOTHING = 0.1  # the part of a scope's methods that a wider one of its name may lack


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What a set of scopes costs; smaller is better. The first difference decides, the names make it total."""

    risk: int  # of the worst new scope; 0: nothing new
    weight: int  # of what the new scopes open
    new: int  # how many are new
    risks: int  # of all new scopes: of two that add nothing to the others, the one that only looks
    granted_risk: int
    granted_weight: int
    count: int
    length: int  # of the names: of two that open the same, the plain name is the plain thing
    names: tuple[str, ...]


def least_scopes(
    catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId], *, words: str = ""
) -> tuple[ScopeId, ...]:
    """The least set of scopes under which every call is allowed, sorted; any one scope of a method suffices for it.

    `granted` are those that standing grants cover already. Accounts are kept apart. `words` are the person's request:
    they choose between kinds of data where calls don't say (of `sleep` and `location`, say), and nothing else. Raises
    UnknownName for what isn't in the catalog, InvalidInput for a method that no scope allows.
    """
    return tuple(sorted(set(scopes_of_calls(catalog, calls, granted, words=words))))


def scopes_of_calls(
    catalog: Catalog, calls: Sequence[Call], granted: frozenset[ScopeId], *, words: str = ""
) -> tuple[ScopeId, ...]:
    """For each call the scope that it is made under: together the least set. Arguments and errors of `least_scopes`."""
    groups: dict[tuple[str, str], list[tuple[int, Method, Call]]] = {}
    for place, call in enumerate(calls):
        method = catalog.method(call.id)
        if not method.scopes:
            raise InvalidInput(f"No scope allows {method.id}, so it can't be called.")
        provider = catalog.service(call.service).provider
        together = provider if provider in SHARING else call.service
        groups.setdefault((together, call.account), []).append((place, method, call))
    found: dict[int, ScopeId] = {}
    for (_, account), placed in groups.items():
        members = [(method, call) for _, method, call in placed]
        search = _Search(catalog, members[0][0].service, _held(catalog, members, granted), words)
        chosen = search.best(members)
        for place, method, call in placed:
            able = chosen & search.ways(method, call)
            scope = min(able, key=lambda scope: (scope not in search.granted, search.cost(frozenset((scope,)))))
            found[place] = (method.service, account, scope)
    return tuple(found[place] for place in range(len(calls)))


def _held(catalog: Catalog, members: Sequence[tuple[Method, Call]], granted: frozenset[ScopeId]) -> frozenset[str]:
    """The scopes that are granted for each of the members' services that has them."""
    account = members[0][1].account
    services = {method.service for method, _ in members}
    names = {scope for service, owner, scope in granted if owner == account and service in services}
    return frozenset(
        name
        for name in names
        if all((each, account, name) in granted for each in services if name in catalog.service(each).scopes)
    )


def narrower(catalog: Catalog, service: str, a: str, b: str) -> bool:
    """Whether scope `a` allows strictly less than `b`: the partial order. Raises UnknownName.

    It opens a part of what `b` opens, and doesn't say that it may do worse; or it is named below `b` and opens next to
    nothing that `b` doesn't; or it opens just the same, and says that it changes less, or reaches only what the app
    made, the person's own, what is said about things. Two scopes may well not be comparable.
    """
    if a == b:
        return False
    first, second = catalog.scope(service, a), catalog.scope(service, b)
    mine, theirs = reach_of(catalog, service, a), reach_of(catalog, service, b)
    here, there = said(a, first.description), said(b, second.description)
    milder = here.risk <= there.risk or here.looks
    if not mine.within(theirs):
        below = here.base.startswith(f"{there.base}.") and mine.weight < theirs.weight
        return below and milder and mine.besides(theirs) <= mine.methods * _NEXT_TO_NOTHING
    if not theirs.within(mine):
        return milder
    if here.risk != there.risk:
        return here.risk < there.risk
    return here.limits > there.limits


def reach_of(catalog: Catalog, service: str, scope: str) -> Reach:
    """What a scope opens over the whole catalog of its provider. Raises UnknownName."""
    return _reaches(catalog, service, (scope,))[scope]


def risk_of(catalog: Catalog, service: str, scope: str) -> Risk:
    """A scope's risk: the worst of what the catalog holds it for, what it opens anywhere and, where it is the
    provider's own, what it says. Raises UnknownName."""
    known = catalog.scope(service, scope)
    opened = reach_of(catalog, service, scope)
    worst_of = max(known.risk, opened.risk)
    return worst_of if known.virtual or not _speaks(known) else max(worst_of, said(scope, known.description).risk)


def also(catalog: Catalog, service: str, scope: str, used: Collection[str]) -> tuple[str, ...]:
    """What else the scope would allow beside the methods named in `used`, in plain words, worst risk first.

    A few are listed each; of many, some of each risk are named and all are counted, those in other services of the
    provider, too: nothing is left out uncounted. Each line begins with its risk. Raises UnknownName.
    """
    unlocked = opened(catalog, service, scope)
    here = [method for method in unlocked if method[0] not in used]
    reach = reach_of(catalog, service, scope)
    elsewhere = max(reach.services.bit_count() - 1, 0)
    # A version that isn't looked at here is opened all the same. Virtual scopes are held to in this one.
    more = reach.methods > len(unlocked) and not catalog.scope(service, scope).virtual
    if not more and len(here) <= _LISTED:
        here.sort(key=lambda method: (-method[2], method[0]))
        return tuple(f"{risk.word}: {_sentence(text)}" for _, text, risk in here)
    lines = []
    for risk in sorted(Risk, reverse=True):
        mine = sorted((each for each in here if each[2] is risk), key=lambda each: (each[0].count("."), each[0]))
        others = max(reach.count(risk) - sum(each[2] is risk for each in unlocked), 0) if more else 0
        if mine or others:
            lines.append(f"{risk.word}: {_counted(risk, mine, others, elsewhere)}")
    return tuple(lines)


def opened(catalog: Catalog, service: str, scope: str) -> list[tuple[str, str, Risk]]:
    """(name, description, risk) of the service's own methods that the scope suffices for."""
    known = catalog.scope(service, scope)
    unlocked = catalog.unlocks(service, scope)
    below = {name for name, _, risk in catalog.outlines(service) if risk < known.risk} if known.virtual else set()
    return [
        (name, text or name, risk)
        for name, text, risk in catalog.outlines(service)
        if name in unlocked or (name in below and suffices(catalog, service, name, scope))
    ]


def plain(catalog: Catalog, service: str, scope: str) -> str:
    """The scope in plain words: what it lets someone do, how far it reaches, its worst. Raises UnknownName."""
    known = catalog.scope(service, scope)
    words = said(scope, known.description)
    text = known.description.strip()
    if not text or text.lower().startswith("private service:"):
        text = f"The provider doesn't say what {bare_name(scope)} is."
    limits = [_LIMITS[limit] for limit in Limit if limit in words.limits] if _speaks(known) else []
    services = reach_of(catalog, service, scope).services.bit_count()
    if services > 1:
        limits.append(f"It opens {services} services of its provider.")
    worst_of = risk_of(catalog, service, scope)
    imported = catalog.service(service).source == "imported" and not known.virtual
    if (_speaks(known) or imported) and worst_of > words.risk:
        limits.append(f"At worst it can {_WORST[worst_of]}.")
    return " ".join([text if text.endswith(".") else f"{text}.", *limits])


def _counted(risk: Risk, here: Sequence[tuple[str, str, Risk]], others: int, elsewhere: int) -> str:
    """Some of these methods in words, and how many more there are, here, in the service's other versions, and in the
    provider's other services."""
    named: dict[str, None] = {}
    for _, text, _ in here:
        if len(named) == _NAMED:
            break
        named[_short(_sentence(text))] = None
    parts = list(named)
    more = len(here) - len(named)
    if more > 0:
        parts.append(f"{more} other {_kind(risk, more)}" if parts else f"{more} {_kind(risk, more)}")
    if others:
        where = f"{elsewhere} other service{'s' if elsewhere > 1 else ''}" if elsewhere else "its other versions"
        parts.append(f"{others} {_kind(risk, others)} in {where}")
    return "; ".join(parts)


def _kind(risk: Risk, many: int) -> str:
    one, several = _KINDS[risk]
    return one if many == 1 else several


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1].rsplit(' ', 1)[0]} …"


def worst(catalog: Catalog, scopes: Sequence[ScopeId]) -> Risk:
    """The worst risk among these scopes; DELETE when there is none, since absence of knowledge isn't safety."""
    return max((risk_of(catalog, service, scope) for service, _, scope in scopes), default=Risk.DELETE)


def suffices(catalog: Catalog, service: str, method: str, scope: str) -> bool:
    """Whether the scope alone allows the method; a virtual one also allows what is less risky. Raises UnknownName."""
    return scope in _allowing(catalog.method(f"{service}.{method}"), catalog.service(service).scopes)


def _allowing(method: Method, scopes: Mapping[str, Scope]) -> tuple[str, ...]:
    """The scopes any one of which suffices: those named, and the virtual ones of a worse class."""
    named = method.scopes
    virtual = [
        scopes[name].risk
        for name in named
        if name in scopes and scopes[name].virtual and name == scopes[name].risk.word
    ]
    if not virtual:
        return named
    least = min(virtual)
    more = [s.name for s in scopes.values() if s.virtual and s.name == s.risk.word and s.risk > least]
    return tuple(dict.fromkeys((*named, *sorted(more))))


def _bases(service: Service) -> tuple[frozenset[str], frozenset[str]]:
    """The bases of the service's scopes that change things, and of those whose names say that they only look."""
    found = [said(name, scope.description) for name, scope in service.scopes.items()]
    changing = frozenset(each.base for each in found if each.risk is not Risk.READ)
    return changing, frozenset(each.base for each in found if each.looks)


def _speaks(scope: Scope) -> bool:
    """Whether the words are the provider's own: a manifest of ours has said the risk itself, and was checked."""
    return "://" in scope.name


def _reaches(catalog: Catalog, service: str, names: Sequence[str]) -> dict[str, Reach]:
    stored = catalog.reaches(service, names)
    if stored is not None:
        return {name: stored.get(name, Reach()) for name in names}
    own = of_methods(catalog.service(service).methods.values())
    return {name: own.get(name, Reach()) for name in names}


def _sentence(text: str) -> str:
    first, dot, _ = text.partition(". ")
    first = first.rstrip(".") if dot else text.rstrip(".")
    return first[:1].lower() + first[1:]


class _Search:
    """Exact set cover by branching on the first method that isn't covered yet.

    Every cost grows with the set, so some best set has no scope to spare; and each such set is reached by choosing,
    for one uncovered method after another, a scope that is in it.
    """

    def __init__(self, catalog: Catalog, service: str, granted: frozenset[str], words: str = "") -> None:
        self._catalog = catalog
        self._service = service
        self.granted = granted
        self._words = words
        self._scopes: dict[str, Scope] = {}
        self._reach: dict[str, Reach] = {}
        self._ways: dict[int, frozenset[str]] = {}

    def cost(self, scopes: frozenset[str]) -> Cost:
        self._look(scopes)
        new, old = scopes - self.granted, scopes & self.granted
        return Cost(
            risk=max((self._risk(scope) for scope in new), default=0),
            weight=self._opened(new).weight,
            new=len(new),
            risks=sum(self._risk(scope) for scope in new),
            granted_risk=max((self._risk(scope) for scope in old), default=0),
            granted_weight=self._opened(old).weight,
            count=len(scopes),
            length=sum(len(scope) for scope in scopes),
            names=tuple(sorted(scopes)),
        )

    def best(self, members: list[tuple[Method, Call]]) -> frozenset[str]:
        # The methods with the fewest ways first: they decide most, and the tree stays narrow.
        ways = sorted(
            (self.ways(method, call) for method, call in members), key=lambda found: (len(found), sorted(found))
        )
        wanted = list(dict.fromkeys(frozenset(each) for each in ways))
        found: tuple[Cost, frozenset[str]] | None = None
        stack: list[frozenset[str]] = [frozenset()]
        seen: set[frozenset[str]] = {frozenset()}
        while stack:
            if len(seen) > _EXACT:
                return self._greedy(wanted)
            chosen = stack.pop()
            cost = self.cost(chosen)
            if found is not None and cost >= found[0]:
                continue
            uncovered = next((each for each in wanted if not chosen & each), None)
            if uncovered is None:
                found = cost, chosen
                continue
            for scope in uncovered:
                longer = chosen | {scope}
                if longer not in seen:
                    seen.add(longer)
                    stack.append(longer)
        return found[1] if found is not None else frozenset()

    def ways(self, method: Method, call: Call) -> frozenset[str]:
        """The scopes that may be chosen for one call: of those that suffice, the ones least in doubt."""
        if id(call) not in self._ways:
            self._ways[id(call)] = self._able(method, call)
        return self._ways[id(call)]

    def _able(self, method: Method, call: Call) -> frozenset[str]:
        service = self._catalog.service(method.service)
        names = _allowing(method, service.scopes)
        self._look(names, method.service)
        if not any(_speaks(service.scopes[name]) for name in names if name in service.scopes):
            return frozenset(names)  # a manifest of ours lists a scope only where it does suffice
        among = candidates(
            service.scopes, names, self._reach.__getitem__, lambda name: len(self._catalog.unlocks(service.name, name))
        )
        changing, looking = _bases(service)
        doubt = doubts(method, call, among, changing, looking, home=service.provider_name, words=self._words)
        least = min(doubt.values())
        if least >= REFUSED:
            raise InvalidInput(
                f"No scope allows {method.id} with these arguments.",
                next_step="Leave out the argument that its scopes refuse; the method's description names it.",
            )
        return frozenset(name for name in names if doubt.get(name, REFUSED) == least)

    def _look(self, names: Iterable[str], service: str = "") -> None:
        missing = [name for name in names if name not in self._reach]
        if missing:
            self._reach.update(_reaches(self._catalog, service or self._service, missing))
            self._scopes.update({name: self._catalog.scope(service or self._service, name) for name in missing})

    def _risk(self, name: str) -> int:
        """The risk that decides. A provider's own word for only looking counts, since it is the provider's promise,
        though some method that it opens may set up a notification, say; what people are shown is `risk_of`."""
        scope = self._scopes[name]
        if not _speaks(scope):
            return int(scope.risk)
        words = said(name, scope.description)
        return int(Risk.READ if words.risk is Risk.READ else max(words.risk, self._reach[name].risk))

    def _opened(self, scopes: frozenset[str]) -> Reach:
        opened = Reach()
        for scope in scopes:
            found = self._reach[scope]
            opened = opened | (found.looked_at() if self._risk(scope) == Risk.READ else found)
        return opened

    def _greedy(self, wanted: list[frozenset[str]]) -> frozenset[str]:
        chosen: frozenset[str] = frozenset()
        for ways in wanted:
            if not chosen & ways:
                chosen |= {min(ways, key=lambda scope: self.cost(chosen | {scope}))}
        return chosen
