"""Going through the catalog's file: methods in short, names that hold a text, schemas, scopes that unlock nothing.

Rules: what goes through everything does so in pieces, each of one state of the file, and never holds all of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from mapper.json_schema import REF
from mapper.store.blobs import unpack
from mapper.store.catalog_session import Session
from mapper.store.database import ServiceUnreadable, of_service
from mapper.store.import_rows import Entry, own_keys
from policies.services import Risk

_CHUNK = 500  # rows that are read at a time

_ENTRY = (
    "SELECT m.id, s.name, m.name, m.origin_id, m.description, m.http, m.path, m.risk, m.document_id, m.scopes, b.data,"
    " m.unsupported FROM method m JOIN document d ON d.id = m.document_id JOIN service s ON s.id = d.service_id"
    " LEFT JOIN blob b ON b.id = m.detail WHERE "
)
_CONTAINING = (
    "SELECT s.name, m.name FROM method m JOIN document d ON d.id = m.document_id JOIN service s ON s.id = d.service_id"
    " WHERE {} ORDER BY s.main DESC, length(m.name), s.name, m.name LIMIT ?"
)
_HAS = "(instr(lower(s.name || '.' || m.name), ?) OR instr(lower(m.origin_id), ?))"


class Listing(Session):
    """What `mapper.store.catalog_reader.Store` can list."""

    def names(self) -> tuple[str, ...]:
        """The names of all services, sorted. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return ()
            return self._keep(
                "names", lambda: tuple(n for (n,) in db.execute("SELECT name FROM service ORDER BY name"))
            )

    def entries(self, *, main: bool = True) -> Iterator[Entry]:
        """Every method in short (of main versions alone, unless said otherwise), by number; without those that can't
        be read. Raises StoreUnreadable.

        One state of the file only as long as nobody writes it: whoever keeps what this gives compares `generation`.
        """
        after = 0
        while True:
            where = "m.id > ? AND s.main >= ? ORDER BY m.id LIMIT ?"
            with self._reading() as db:
                found = list(self._rows(db, where, (after, int(main), _CHUNK))) if db is not None else []
            if not found:
                return
            yield from (entry for _, entry in found if entry is not None)
            after = found[-1][0]

    def entries_of(self, service: str) -> tuple[Entry, ...]:
        """Every method of one service in short, by name. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return ()
            rows = list(self._rows(db, "s.name = ? ORDER BY m.name", (service,)))
        return tuple(entry for _, entry in rows if entry is not None)

    def routes_of(self, service: str) -> tuple[tuple[str, str, str, str], ...]:
        """(name, provider's id, HTTP method, path) of each method that can be called. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(service):
                return ()
            rows = db.execute(
                "SELECT m.name, m.origin_id, m.http, m.path FROM method m JOIN document d ON d.id = m.document_id"
                " JOIN service s ON s.id = d.service_id WHERE s.name = ? AND m.unsupported = '' ORDER BY m.name",
                (service,),
            ).fetchall()
        return tuple((name, origin, http, path) for name, origin, http, path in rows)

    def paths_of(self, service: str) -> tuple[tuple[str, str, str], ...]:
        """(name, HTTP method, path) of each method, those that can't be called too. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None or not possible(service):
                return ()
            rows = db.execute(
                "SELECT m.name, m.http, m.path FROM method m JOIN document d ON d.id = m.document_id"
                " JOIN service s ON s.id = d.service_id WHERE s.name = ? ORDER BY m.name",
                (service,),
            ).fetchall()
        return tuple((name, http, path) for name, http, path in rows)

    def containing(self, *texts: str, limit: int = 50) -> tuple[str, ...]:
        """Full names, or providers' ids, that have all of `texts` in them: main versions and short ones first."""
        with self._reading() as db:
            if db is None or not texts or not possible(*texts):
                return ()
            wanted = _CONTAINING.format(" AND ".join([_HAS] * len(texts)))
            values = [text.lower() for text in texts for _ in range(2)]
            rows = db.execute(wanted, (*values, limit)).fetchall()
        return tuple(f"{service}.{method}" for service, method in rows)

    def idle_scopes(self) -> tuple[tuple[str, str], ...]:
        """(service, scope) of the scopes that unlock no method. Raises StoreUnreadable."""
        with self._reading() as db:
            if db is None:
                return ()
            return tuple(
                (service, scope)
                for service, scope in db.execute(
                    "SELECT s.name, c.name FROM scope c JOIN document d ON d.id = c.document_id"
                    " JOIN service s ON s.id = d.service_id"
                    " WHERE c.id NOT IN (SELECT scope_id FROM unlocks) ORDER BY s.name, c.name"
                )
            )

    def schemas(self, service: str = "") -> Iterator[tuple[str, str, Any, frozenset[str]]]:
        """(service, name, schema, names of its document's schemas) of one service, or all. Raises StoreUnreadable."""
        for name in (service,) if service else self.names():
            with self._reading() as db:
                if db is None:
                    return
                rows = db.execute(
                    "SELECT c.document_id, c.name, b.data FROM schema c JOIN document d ON d.id = c.document_id"
                    " JOIN service s ON s.id = d.service_id LEFT JOIN blob b ON b.id = c.blob_id WHERE s.name = ?",
                    (name,),
                ).fetchall()
            known: dict[int, set[str]] = {}
            for document, schema, _ in rows:
                known.setdefault(document, set()).add(schema)
            names = {document: frozenset(found) for document, found in known.items()}
            for document, schema, blob in rows:
                with of_service(name):
                    found = unpacked(blob)
                yield name, schema, found, names[document]

    def arguments(self, service: str = "") -> Iterator[tuple[str, str, str, Any]]:
        """(service, method, argument, schema) of one service, or of all; what schemas refer to isn't followed.

        Raises StoreUnreadable.
        """
        for name in (service,) if service else self.names():
            with self._reading() as db:
                if db is None:
                    return
                rows = db.execute(
                    "SELECT m.name, b.data FROM method m JOIN document d ON d.id = m.document_id"
                    " JOIN service s ON s.id = d.service_id LEFT JOIN blob b ON b.id = m.detail WHERE s.name = ?",
                    (name,),
                ).fetchall()
            for method, blob in rows:
                with of_service(name):
                    properties = unpacked(blob)["properties"]
                    pairs = list(properties.items())
                for argument, schema in pairs:
                    yield name, method, argument, schema

    # ---- inside

    def _rows(self, db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> Iterator[tuple[int, Entry | None]]:
        """Methods in short by their numbers; None for one that can't be read, which others don't suffer for."""
        scopes: dict[int, dict[int, str]] = {}
        for row in db.execute(_ENTRY + where, values).fetchall():
            try:
                with of_service(str(row[1])):
                    yield row[0], self._entry(db, row, scopes)
            except ServiceUnreadable:
                yield row[0], None

    def _entry(self, db: sqlite3.Connection, row: Any, scopes: dict[int, dict[int, str]]) -> Entry:
        document, numbers, blob = row[8:11]
        if document not in scopes:
            found = db.execute("SELECT id, name FROM scope WHERE document_id = ?", (document,)).fetchall()
            scopes[document] = dict(found)
        detail = unpacked(blob)
        properties, keys = detail["properties"], own_keys(detail["locations"])
        if not all(isinstance(text, str) for text in (*row[1:7], row[11], *scopes[document].values())):
            raise sqlite3.DatabaseError("it holds bytes where text belongs")
        return Entry(
            number=row[0],
            service=row[1],
            name=row[2],
            origin_id=row[3],
            description=row[4],
            http=row[5],
            path=row[6],
            risk=risk_of(row[7], row[5]),
            scopes=tuple(sorted(scopes[document][int(each)] for each in numbers.split())),
            parameters=tuple(name for name in properties if name not in keys),
            fields=self._fields(db, document, properties.get("body")),
            unsupported=row[11],
        )

    def _fields(self, db: sqlite3.Connection, document: int, body: Any) -> tuple[str, ...]:
        if not isinstance(body, dict):
            return ()
        target = body.get("$ref", "")
        if target.startswith(REF):
            row = db.execute(
                "SELECT b.data FROM schema c JOIN blob b ON b.id = c.blob_id WHERE c.document_id = ? AND c.name = ?",
                (document, target[len(REF) :]),
            ).fetchone()
            body = unpack(row[0]) if row is not None else {}
        properties = body.get("properties", {})
        return tuple(name for name, schema in properties.items() if not schema.get("readOnly"))


def possible(*names: str) -> bool:
    """Whether these could be names at all: what isn't can't be asked for in SQL, and is nobody's name."""
    return all(len(name) <= 300 and name.isprintable() for name in names)


def unpacked(blob: bytes | None) -> dict[str, Any]:
    if blob is None:
        raise sqlite3.DatabaseError("a method has lost its parameters")
    found: dict[str, Any] = unpack(blob)
    return found


_LEAST = {"PUT": Risk.WRITE, "PATCH": Risk.WRITE, "DELETE": Risk.DELETE}


def risk_of(number: int, http: str = "") -> Risk:
    """A stored risk; what isn't one deletes, and none is below what its HTTP method says."""
    try:
        return max(Risk(number), _LEAST.get(http, Risk.READ))
    except ValueError:
        return Risk.DELETE
