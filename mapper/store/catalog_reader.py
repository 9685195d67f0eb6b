"""Reads the catalog's file: one service, one method at a time, never all of them (`mapper.store.catalog_session`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mapper.reach import Reach
from mapper.store import reaches, records, waysback
from mapper.store.catalog_lists import Listing, possible, risk_of
from mapper.store.catalog_session import LEAST
from mapper.store.database import ServiceUnreadable, StoreUnreadable, of_service
from mapper.store.import_rows import ServiceFacts
from mapper.store.tools import tool_name, tool_number
from policies.services import Method, Risk, Scope, Service

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
                if all(isinstance(text, str) for text in (*row[1:5], *row[6:9]))
            )

    def service(self, name: str) -> Service | None:
        """The service of that name, its methods read when they are looked at. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(name):
                return None
            return self._keep(("service", name), lambda: records.service_of(db, name, StoredMethods(self, name)))

    def method(self, service: str, name: str) -> Method | None:
        """One method, its arguments' schemas complete. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(service, name):
                return None
            key = ("method", service, name)
            kept = self._kept(key)
            if kept is None:
                with of_service(service):
                    row = db.execute(f"{records.METHOD} WHERE s.name = ? AND m.name = ?", (service, name)).fetchone()
                    if row is None:
                        return None
                    of_document = ("schemas", row[9])
                    schemas = self._kept(of_document) or records.Schemas(db, row[9])
                    kept, cost = records.method_of(schemas, service, row)
                self._put(of_document, schemas, 8 * schemas.size)
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

    def uncallable(self, service: str) -> str:
        """Why no method of a service can be called; "" when one can, or there is none. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(service):
                return ""
            rows = db.execute(
                "SELECT m.unsupported, count(*) FROM method m JOIN document d ON d.id = m.document_id"
                " JOIN service s ON s.id = d.service_id WHERE s.name = ? GROUP BY 1 ORDER BY 2 DESC",
                (service,),
            ).fetchall()
        return "" if not rows or any(not why for why, _ in rows) else str(rows[0][0])

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
            known = self._keep(
                ("service", service), lambda: records.service_of(db, service, StoredMethods(self, service))
            )
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


__all__ = ("ServiceUnreadable", "Store", "StoreUnreadable", "StoredMethods")
