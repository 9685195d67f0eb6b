"""Reading the catalog's file: one service, one method at a time, never all of them at once (`mapper.store.session`)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args

from mapper.reach import Reach
from mapper.schemas import problem, referred
from mapper.store import logins, reaches, waysback
from mapper.store.blobs import unpack
from mapper.store.database import StoreUnreadable
from mapper.store.listing import Listing, possible, risk_of, unpacked
from mapper.store.rows import ServiceFacts
from mapper.store.session import LEAST
from mapper.store.tools import tool_name, tool_number
from policies.catalog import BodyFormat, CodeFacts, Location, Method, OAuth, Placement, Risk, Scope, Service

_METHOD = (
    "SELECT m.name, m.origin_id, m.description, m.http, m.path, m.risk, m.body, m.unsupported, m.scopes,"
    " m.document_id, b.data FROM method m JOIN document d ON d.id = m.document_id"
    " JOIN service s ON s.id = d.service_id LEFT JOIN blob b ON b.id = m.detail"
)
_VERBS = frozenset({"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BODIES, _LOCATIONS = frozenset(get_args(BodyFormat)), frozenset(get_args(Location))
_KEYS = frozenset({"idempotency-key", "x-idempotency-key"})  # headers that make a repetition harmless
_PLACE = re.compile(r"[A-Za-z0-9_-]{1,100}")
# Google's documents name their scopes alone; where its tokens come from is known without them.
_GOOGLE = OAuth(
    issuer="https://accounts.google.com",
    client="confidential",
    parameters=MappingProxyType({"access_type": "offline", "prompt": "consent"}),
)
# Google's own library adds these, and its documents leave them out of each method's arguments.
_GOOGLE_QUERY = ("alt", "prettyPrint", "quotaUser", "fields", "uploadType", "$alt")
_IDS = (
    "SELECT s.name, m.name FROM method m JOIN document d ON d.id = m.document_id JOIN service s ON s.id = d.service_id"
    " WHERE m.{} = ? ORDER BY s.main DESC, s.name LIMIT 50"
)
_BY_NAME, _BY_ORIGIN, _BY_TOOL = (_IDS.format(column) for column in ("name", "origin_id", "tool"))


class Store(Listing):
    """The imported services in the file at `path`."""

    # ---- questions

    @property
    def generation(self) -> int:
        """Grows with each change of the file; 0 while there is none. Raises StoreUnreadable."""
        with self._reading() as db:
            return self._keep("generation", lambda: self._generation(db)) if db is not None else 0

    def facts(self) -> tuple[ServiceFacts, ...]:
        """Every service without its methods. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return ()
            files: dict[int, list[tuple[str, str]]] = {}
            for service, file, imported in db.execute("SELECT service_id, file, imported FROM document ORDER BY file"):
                files.setdefault(service, []).append((file, imported))
            rows = db.execute(
                "SELECT id, name, provider, provider_name, version, main, title, description, base_url, methods"
                " FROM service ORDER BY name"
            ).fetchall()
            return tuple(
                ServiceFacts(
                    name=row[1],
                    provider=row[2],
                    provider_name=row[3],
                    version=row[4],
                    main=bool(row[5]),
                    title=row[6],
                    description=row[7],
                    base_url=row[8],
                    methods=row[9],
                    files=tuple(file for file, _ in files.get(row[0], ())),
                    imported=max((at for _, at in files.get(row[0], ())), default=""),
                )
                for row in rows
            )

    def service(self, name: str) -> Service | None:
        """The service of that name, its methods read when they are looked at. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(name):
                return None
            return self._keep(("service", name), lambda: self._service(db, name))

    def method(self, service: str, name: str) -> Method | None:
        """One method, its arguments' schemas complete. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(service, name):
                return None
            key = ("method", service, name)
            kept = self._kept(key)
            if kept is None:
                row = db.execute(f"{_METHOD} WHERE s.name = ? AND m.name = ?", (service, name)).fetchone()
                if row is None:
                    return None
                kept, cost = self._method(db, service, row)
                self._put(key, kept, cost)
            made: Method = kept
            return made

    def method_names(self, service: str) -> tuple[str, ...]:
        """The names of a service's methods, sorted. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return ()
            return self._keep(
                ("methods", service),
                lambda: tuple(
                    name
                    for (name,) in db.execute(
                        "SELECT m.name FROM method m JOIN document d ON d.id = m.document_id"
                        " JOIN service s ON s.id = d.service_id WHERE s.name = ? ORDER BY m.name",
                        (service,),
                    )
                ),
                LEAST * 20,
            )

    def count(self, service: str) -> int:
        """How many methods a service has. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return 0
            row = db.execute("SELECT methods FROM service WHERE name = ?", (service,)).fetchone()
            return int(row[0]) if row else 0

    def named(self, method: str) -> tuple[str, ...]:
        """The full names of methods that have this name in some service. Raises StoreUnreadable."""
        return self._ids(_BY_NAME, method)

    def of_origin(self, origin_id: str) -> tuple[str, ...]:
        """The full names of methods that their provider calls so, in whatever version. Raises StoreUnreadable."""
        return self._ids(_BY_ORIGIN, origin_id)

    def by_tool_name(self, name: str) -> Method | None:
        """The one method that models know by this name; None when there is none, or more than one."""
        found = [one for one in self._ids(_BY_TOOL, tool_number(name)) if tool_name(one) == name]
        if len(found) != 1:
            return None
        return self.method(*found[0].split(".", 1))

    def ways_back(self, service: str) -> dict[str, tuple[str, ...]]:
        """The methods of a service that have a derived way back, and what takes each back. Raises StoreUnreadable."""
        with self._reading() as db:
            return waysback.of_service(db, service) if db is not None else {}

    def unlocks(self, service: str, scope: str) -> frozenset[str]:
        """The names of the methods that the scope alone suffices for. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return frozenset()
            return self._keep(
                ("unlocks", service, scope),
                lambda: frozenset(
                    name
                    for (name,) in db.execute(
                        "SELECT m.name FROM scope c JOIN document d ON d.id = c.document_id"
                        " JOIN service s ON s.id = d.service_id JOIN unlocks u ON u.scope_id = c.id"
                        " JOIN method m ON m.id = u.method_id WHERE s.name = ? AND c.name = ?",
                        (service, scope),
                    )
                ),
                LEAST * 20,
            )

    def reaches(self, service: str, scopes: Iterable[str]) -> dict[str, Reach]:
        """What these scopes of a service open, over all that its provider offers; a virtual one, or one that isn't
        known elsewhere, over the service. Raises StoreUnreadable."""
        wanted = tuple(sorted(set(scopes)))
        with self._reading() as db:
            if db is None:
                return {}
            known = self._keep(("service", service), lambda: self._service(db, service))
            if known is None:
                return {}
            found: dict[str, Reach] = {}
            for scope in wanted:
                kept = self._kept(("reach", service, scope))
                if kept is None:
                    kept = reaches.read(db, known.provider, (scope,)).get(scope)
                    if kept is None:
                        kept = self._own_reach(service, known.scopes, scope)
                    self._put(
                        ("reach", service, scope), kept, LEAST + sum(bits.bit_length() for bits in kept.bits) // 8
                    )
                found[scope] = kept
            return found

    def _own_reach(self, service: str, scopes: Mapping[str, Scope], scope: str) -> Reach:
        bits = [0, 0, 0, 0]
        virtual = scope in scopes and scopes[scope].virtual
        for place, (name, _, risk) in enumerate(self.outlines(service)):
            if name in self.unlocks(service, scope) or (virtual and risk < scopes[scope].risk):
                bits[risk - 1] |= 1 << place
        return Reach((bits[0], bits[1], bits[2], bits[3]), 1)

    def outlines(self, service: str, scope: str = "") -> tuple[tuple[str, str, Risk], ...]:
        """(name, description, risk) of a service's methods, or of those that a scope unlocks: without schemas."""
        with self._reading() as db:
            if db is None:
                return ()
            rows = db.execute(
                "SELECT m.name, m.description, m.risk, m.http FROM method m JOIN document d ON d.id = m.document_id"
                " JOIN service s ON s.id = d.service_id WHERE s.name = ?1 AND (?2 = '' OR m.id IN (SELECT u.method_id"
                " FROM unlocks u JOIN scope c ON c.id = u.scope_id WHERE c.name = ?2 AND c.document_id = d.id))"
                " ORDER BY m.name",
                (service, scope),
            ).fetchall()
        return tuple((name, description, risk_of(risk, http)) for name, description, risk, http in rows)

    # ---- inside

    def _ids(self, query: str, value: str | int) -> tuple[str, ...]:
        with self._reading() as db:
            if db is None or not possible(str(value)):
                return ()
            rows = db.execute(query, (value,)).fetchall()
        return tuple(f"{service}.{method}" for service, method in rows)

    def _service(self, db: sqlite3.Connection, name: str) -> Service | None:
        row = db.execute(
            "SELECT id, title, description, base_url, placement, provider, provider_name, version, main"
            " FROM service WHERE name = ?",
            (name,),
        ).fetchone()
        if row is None:
            return None
        scopes: dict[str, Scope] = {}
        for scope, described, risk, virtual in db.execute(
            "SELECT c.name, c.description, c.risk, c.virtual FROM scope c JOIN document d ON d.id = c.document_id"
            " WHERE d.service_id = ? ORDER BY c.name",
            (row[0],),
        ).fetchall():
            worst = max(risk_of(risk), scopes[scope].risk) if scope in scopes else risk_of(risk)
            scopes[scope] = Scope(service=name, name=scope, description=described, risk=worst, virtual=bool(virtual))
        placement = Placement(**json.loads(row[4]))
        if not _PLACE.fullmatch(placement.header) or placement.format.count("{secret}") != 1:
            raise sqlite3.DatabaseError(f"{name} has no place for its credential")
        if not all(isinstance(text, str) for text in (*row[1:4], *row[5:8], *scopes)):
            raise sqlite3.DatabaseError(f"{name} holds bytes where text belongs")
        return Service(
            name=name,
            title=row[1],
            description=row[2],
            base_url=row[3],
            methods=StoredMethods(self, name),
            scopes=MappingProxyType(scopes),
            placement=placement,
            source="imported",
            provider=row[5],
            provider_name=row[6],
            version=row[7],
            main=bool(row[8]),
            oauth=_GOOGLE if row[5] == "google" else logins.of_service(db, row[0]),
            code=CodeFacts(query=_GOOGLE_QUERY) if row[5] == "google" else CodeFacts(),
        )

    def _method(self, db: sqlite3.Connection, service: str, row: Any) -> tuple[Method, int]:
        """The method of a row of `_METHOD`, and what keeping it counts for."""
        (name, origin_id, description, http, path, risk, body, unsupported, scopes, document, blob) = row
        detail = unpacked(blob)
        properties, required, locations = detail["properties"], detail["required"], detail["locations"]
        definitions, cost = self._definitions(db, document, referred(properties))
        wrong = _odd(row[:8], locations, required) or next(
            (
                found
                for schema in (*properties.values(), *definitions.values())
                if (found := problem(schema, defs=definitions))
            ),
            "",
        )
        if wrong:
            raise sqlite3.DatabaseError(f"{service}.{name}: {wrong}")
        parameters: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        if definitions:
            parameters["$defs"] = definitions
        numbers = [int(number) for number in scopes.split()]
        key = next((one for one, place in locations.items() if place == "header" and one.lower() in _KEYS), "")
        named = dict(db.execute("SELECT id, name FROM scope WHERE document_id = ?", (document,)).fetchall())
        method = Method(
            service=service,
            name=name,
            description=description,
            http=http,
            path=path,
            parameters=parameters,
            locations=MappingProxyType(locations),
            scopes=tuple(sorted(named[number] for number in numbers)),
            risk=risk_of(risk, http),
            body=body,
            origin_id=origin_id,
            unsupported=unsupported,
            undo=waysback.of_method(db, document, origin_id),
            defaults={key: "$action.key"} if key else {},
            idempotency=key,
        )
        return method, cost + 20 * len(blob)

    def _definitions(self, db: sqlite3.Connection, document: int, wanted: set[str]) -> tuple[dict[str, Any], int]:
        """The schemas named, and all that they refer to."""
        found: dict[str, Any] = {}
        cost = 0
        todo = sorted(wanted)
        while todo:
            name = todo.pop()
            if name in found:
                continue
            row = db.execute(
                "SELECT b.data FROM schema c JOIN blob b ON b.id = c.blob_id WHERE c.document_id = ? AND c.name = ?",
                (document, name),
            ).fetchone()
            if row is None:
                raise sqlite3.DatabaseError(f"the schema {name!r} is missing")
            found[name] = unpack(row[0])
            cost += 8 * len(row[0])
            todo.extend(referred(found[name]) - found.keys())
        return found, cost


def _odd(row: Any, locations: Mapping[str, Any], required: Any) -> str:
    """What about a method isn't as every importer writes it; "" when nothing is."""
    texts = (*row[:5], row[6], row[7])
    http, path, body, unsupported = row[3], row[4], row[6], row[7]
    if not all(isinstance(text, str) for text in texts):
        return "it holds bytes where text belongs"
    if http not in _VERBS and not unsupported:
        return f"{http[:20]!r} isn't an HTTP method that is sent"
    if http and (not path.startswith("/") or {".", ".."} & set(path.split("/"))):
        return f"{path[:60]!r} isn't a path"
    if body not in _BODIES or not set(locations.values()) <= _LOCATIONS:
        return "an argument has no place"
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "what it needs isn't a list of names"
    return ""


class StoredMethods(Mapping[str, Method]):
    """The methods of one stored service by name: each is read when it is looked at, and names alone cost little."""

    def __init__(self, store: Store, service: str) -> None:
        self._store = store
        self._service = service

    def __getitem__(self, name: str) -> Method:
        found = self._store.method(self._service, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.method_names(self._service))

    def __len__(self) -> int:
        return self._store.count(self._service)

    def __contains__(self, name: object) -> bool:
        return name in self._store.method_names(self._service)


__all__ = ("Store", "StoreUnreadable", "StoredMethods")
