"""Entries of the catalog that look wrong, each with what is odd about it. It changes nothing.

Rules: only what a person should look at is named; that an entry is named doesn't mean that it can't be used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass

from mapper.catalog import Catalog
from mapper.json_schema import loosened, problem
from mapper.store.catalog_reader import ServiceUnreadable, Store
from mapper.store.tools import tool_name
from policies.services import Risk, Service

KINDS = {
    "unreadable": "services that can't be read",
    "hidden": "services that can't be reached, since one that comes with GoEx has their name",
    "no-methods": "services without methods",
    "no-scope-description": "scopes without a description",
    "idle-scope": "scopes that unlock nothing",
    "no-description": "methods without a description",
    "same-path": "methods of one service with the same HTTP method and path",
    "risk": "methods whose risk disagrees with their HTTP method",
    "same-tool-name": "methods that a model can't tell apart by name",
    "schema": "schemas with something that isn't known here",
    "loosened": "arguments of which less is checked than their document says",
    "unsupported": "methods that GoEx can't call",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One odd entry: its kind (of `KINDS`), its name, and what is odd."""

    kind: str
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class _Row:
    service: str
    name: str
    description: str
    http: str
    path: str
    risk: Risk
    unsupported: str

    @property
    def id(self) -> str:
        return f"{self.service}.{self.name}"


def lint(catalog: Catalog, service: str = "") -> Iterator[Finding]:
    """Everything odd in the catalog, or in one service of it. Raises UnknownName, StoreUnreadable."""
    own = Catalog.bundled().services
    if service:
        catalog.service(service)
    wanted = [name for name in (own if not service else (service,)) if name in own]
    rows = [
        _Row(m.service, m.name, m.description, m.http, m.path, m.risk, m.unsupported)
        for name in wanted
        for m in own[name].methods.values()
    ]
    for name in wanted:
        yield from _service(own[name])
    store = catalog.store
    if store is not None and (not service or service not in own):
        yield from _stored(store, service, own)
        entries = store.entries_of(service) if service else store.entries(main=False)
        rows += [_Row(e.service, e.name, e.description, e.http, e.path, e.risk, e.unsupported) for e in entries]
    facts = store.facts() if store is not None else ()
    yield from _methods(rows, {fact.name for fact in facts if fact.provider == "graphql"})
    if store is not None and (not service or service not in own):
        for each in (service,) if service else store.names():
            with suppress(ServiceUnreadable):  # said already
                yield from _schemas(store, each)


def _schemas(store: Store, service: str) -> Iterator[Finding]:
    for name, schema_name, schema, known in store.schemas(service):
        wrong = problem(schema, defs=known)
        if wrong:
            yield Finding(kind="schema", name=f"{name}: {schema_name}", what=wrong)
        for where, what in loosened(schema):
            yield Finding(kind="loosened", name=f"{name}: {schema_name}{where}", what=what)
    for name, method, argument, schema in store.arguments(service):
        for where, what in loosened(schema):
            yield Finding(kind="loosened", name=f"{name}.{method}: {argument}{where}", what=what)


def _service(service: Service) -> Iterator[Finding]:
    if not len(service.methods):
        yield Finding(kind="no-methods", name=service.name, what="has no methods")
    for scope in service.scopes.values():
        if not scope.description:
            yield Finding(kind="no-scope-description", name=f"{service.name}: {scope.name}", what="has no description")


def _stored(store: Store, only: str, own: Container[str]) -> Iterator[Finding]:
    for fact in store.facts():
        if only and fact.name != only:
            continue
        if fact.name in own:
            yield Finding(kind="hidden", name=fact.name, what="comes with GoEx, too; import it anew, and it is renamed")
        try:
            service = store.service(fact.name)
            if service is not None:
                yield from _service(service)
            for name in store.method_names(only):
                store.method(only, name)
        except ServiceUnreadable as error:
            yield Finding(kind="unreadable", name=fact.name, what=f"{error.message} {error.next_step}")
    for name, scope in store.idle_scopes():
        if not only or name == only:
            yield Finding(kind="idle-scope", name=f"{name}: {scope}", what="unlocks no method")


def _methods(rows: list[_Row], graphql: Collection[str]) -> Iterator[Finding]:
    """`graphql` are the services whose methods share one address."""
    paths: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    tools: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.http and "{+" not in row.path:  # a name of several segments says by its form which method is meant
            paths[row.service, row.http, row.path].append(row.name)
        tools[tool_name(row.id)].append(row.id)
        if not row.description:
            yield Finding(kind="no-description", name=row.id, what="has no description")
        if row.unsupported:
            yield Finding(kind="unsupported", name=row.id, what=row.unsupported)
        read = row.risk is Risk.READ
        # A POST may be a read, a question; every other pair has to agree.
        if row.http not in ("POST", "") and (row.http in ("GET", "HEAD")) != read:
            yield Finding(kind="risk", name=row.id, what=f"{row.http}, but its risk is {row.risk.word}")
    for (service, http, path), names in paths.items():
        if len(names) > 1 and service not in graphql:
            yield Finding(kind="same-path", name=f"{service}.{names[0]}", what=f"{http} {path}: {', '.join(names)}")
    for names in tools.values():
        if len(names) > 1:
            yield Finding(kind="same-tool-name", name=names[0], what=f"the same tool name: {', '.join(names)}")
