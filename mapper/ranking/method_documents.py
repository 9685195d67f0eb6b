"""What is ranked: every method once, with the words that speak of it.

Rules: the versions of one API are one *family*; a method that several versions have counts once, as its newest stable
version has it. An imported method that a bundled manifest has too (same host, verb and path) counts as the bundled
one, and lends it its words. Nothing here needs the arguments' schemas.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mapper.catalog import Catalog
from mapper.ranking import lexicon
from mapper.ranking.lexicon import ServiceLexicon
from mapper.store import service_names
from mapper.store.catalog_reader import ServiceUnreadable, Store
from policies.services import Risk, Scope, Service

ELSEWHERE = ""
"""The name of the family that stands for everything that no service here does."""


@dataclass(slots=True, kw_only=True)
class Family:
    """The services that are one API to a person."""

    name: str  # of its main service
    provider_name: str
    provider: str = ""  # who speaks of it: "" for what comes with GoEx
    title: str
    description: str
    scopes: tuple[str, ...] = ()  # their descriptions
    lexicon: ServiceLexicon = field(default_factory=ServiceLexicon)
    popular: int = 0


@dataclass(slots=True, kw_only=True)
class Ranked:
    """One method as the ranking sees it."""

    service: str
    name: str
    origin_id: str
    family: int
    description: str
    http: str
    path: str
    read: bool
    main: bool  # of the main or a stable version
    bundled: bool = False
    parameters: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    known_as: str = ""  # its name in the lexicon, where that is another

    def take(self, twin: Ranked) -> None:
        """Learn what an imported twin says of itself. The first twin is the newest version's."""
        if not self.known_as:
            self.known_as, self.origin_id = twin.name, twin.origin_id
            self.parameters = tuple(dict.fromkeys((*self.parameters, *twin.parameters)))
            self.fields = twin.fields
            self.description = f"{self.description} {twin.description}"

    @property
    def id(self) -> str:
        return f"{self.service}.{self.name}"


@dataclass(slots=True)
class Sources:
    """Everything that is ranked. Methods are in the order of their families."""

    families: list[Family] = field(default_factory=list)
    methods: list[Ranked] = field(default_factory=list)
    generation: int = 0


def gather(store: Store | None, bundled: Iterable[Service]) -> Sources:
    """The methods of the store and of the bundled services. Raises StoreUnreadable."""
    found = Sources(generation=store.generation if store is not None else 0)
    own = list(bundled)
    imported = list(_imported(store)) if store is not None else []
    ranked = {service.name: _bundled_methods(service) for service in own}
    duplicates = {
        _place(service.base_url, method.http, method.path): method for service in own for method in ranked[service.name]
    }
    joined: dict[str, int] = {}  # bundled service -> the imported family that it is part of
    by_family: dict[int, list[Ranked]] = {}
    for family, base_urls, methods in imported:
        number = len(found.families)
        found.families.append(family)
        kept: list[Ranked] = []
        for method in methods:
            method.family = number
            twin = duplicates.get(_place(base_urls[method.service], method.http, method.path))
            if twin is None:
                kept.append(method)
            else:
                joined[twin.service] = number
                twin.take(method)
        by_family[number] = _once(kept)
    for service in own:
        number = joined.get(service.name, len(found.families))
        if number == len(found.families):
            found.families.append(_bundled_family(service))
        else:
            family = found.families[number]
            family.name = service.name
            family.lexicon = _with_words(family.lexicon, service.words)
        for method in ranked[service.name]:
            method.family = number
        by_family.setdefault(number, []).extend(ranked[service.name])
    found.families.append(_elsewhere({family.name for family in found.families}))
    for number in range(len(found.families)):
        found.methods.extend(by_family.get(number, ()))
    return found


def _once(methods: Iterable[Ranked]) -> list[Ranked]:
    """Each of the provider's ids once; those without an id each for itself."""
    kept: dict[str, Ranked] = {}
    for method in methods:
        kept.setdefault(method.origin_id or method.id, method)
    return sorted(kept.values(), key=lambda method: method.id)


def _imported(store: Store) -> Iterator[tuple[Family, Mapping[str, str], list[Ranked]]]:
    general = lexicon.general()
    facts = {fact.name: fact for fact in store.facts()}
    of_service: dict[str, list[Ranked]] = {}
    for entry in store.entries(main=False):
        fact = facts.get(entry.service)
        if fact is None:
            continue  # its service can't be read
        of_service.setdefault(entry.service, []).append(
            Ranked(
                service=entry.service, name=entry.name, origin_id=entry.origin_id, family=0,
                description=entry.description, http=entry.http, path=entry.path, read=entry.risk is Risk.READ,
                main=fact.main, parameters=entry.parameters, fields=entry.fields,
            )
        )  # fmt: skip
    families: dict[tuple[str, str], list[str]] = {}
    for fact in facts.values():
        families.setdefault((fact.provider, fact.provider_name), []).append(fact.name)
    for (provider, provider_name), services in sorted(families.items()):
        services.sort(key=lambda name: _rank(facts[name].version, facts[name].main), reverse=True)
        main = next((name for name in services if facts[name].main), services[0])
        best = facts[services[0]]
        words = [scope.description for scope in _scopes(store, main)]
        family = Family(
            name=main, provider_name=provider_name, provider=provider, title=best.title, description=best.description,
            scopes=tuple(words), lexicon=lexicon.of_service(provider, provider_name),
            popular=general.popular.get(provider_name, 0),
        )  # fmt: skip
        methods = [method for name in services for method in of_service.get(name, ())]
        newest = facts[services[0]].name
        for method in methods:
            method.main = method.main or method.service == newest
        yield family, {name: facts[name].base_url for name in services}, methods


def _scopes(store: Store, name: str) -> Iterable[Scope]:
    try:
        service = store.service(name)
    except ServiceUnreadable:
        return ()
    return service.scopes.values() if service is not None else ()


def _rank(version: str, main: bool) -> tuple[bool, int, bool]:
    """Newest stable version first."""
    numbers = re.findall(r"\d+", version)
    return service_names.stable(version.split("+")[0]), int(numbers[0][:9]) if numbers else 0, main


def _bundled_family(service: Service) -> Family:
    general = lexicon.general()
    provider, _, name = general.lexicons.get(service.name, "").partition("/")
    words = lexicon.of_service(provider, name) if name else ServiceLexicon()
    return Family(
        name=service.name, provider_name=service.name, title=service.title, description=service.description,
        scopes=tuple(scope.description for scope in service.scopes.values()),
        lexicon=_with_words(words, service.words), popular=general.popular.get(name or service.name, 2),
    )  # fmt: skip


def _elsewhere(here: Collection[str]) -> Family:
    """What people ask of assistants and no service `here` does: a family without methods, so that it can be likeliest.

    Services that come with GoEx are worlds of their own where they are left out of the catalog."""
    general = lexicon.general()
    absent = {world: asks for world, asks in general.worlds.items() if world not in here}
    ours = Catalog.bundled().services.keys() & absent.keys()
    words = ServiceLexicon(
        speaks=(*general.foreign, *sorted(ours)),
        cannot=(*general.elsewhere, *(ask for asks in absent.values() for ask in asks)),
    )
    return Family(name=ELSEWHERE, provider_name=ELSEWHERE, title="", description="", lexicon=words)


def _with_words(found: ServiceLexicon, words: Iterable[str]) -> ServiceLexicon:
    return ServiceLexicon(speaks=(*found.speaks, *words), cannot=found.cannot, nouns=found.nouns, asks=found.asks)


def _bundled_methods(service: Service) -> list[Ranked]:
    return [
        Ranked(
            service=service.name, name=method.name, origin_id=method.id, family=0,
            description=method.description.split(" Can't be taken back")[0], http=method.http, path=method.path,
            read=method.risk is Risk.READ, main=True, bundled=True,
            parameters=tuple(method.parameters["properties"]), asks=method.words,
        )
        for method in service.methods.values()
    ]  # fmt: skip


def _place(base_url: str, http: str, path: str) -> tuple[str, str, str]:
    """Where a call goes, whatever its path parameters are called."""
    parts = urlsplit(base_url)
    whole = re.sub(r"\{[^}]*\}", "{}", f"{parts.path.rstrip('/')}/{path.lstrip('/')}")
    return (parts.hostname or "").lower(), http.upper(), whole
