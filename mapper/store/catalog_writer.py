"""Writing the catalog's file: documents in, services named, documents out.

Rules: everything between opening and `commit` is one transaction, so that whoever stops an import leaves what was
there; a document replaces the one of the same provider, name and version; the generation grows with each commit, by
which readers see that there is something new. Names are decided over everything that is there. A name that somebody
has or ever had is never given to anybody else, since accounts and grants that stand under it outlive the service.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from mapper.store import login_rows, reaches, records, service_names, waysback
from mapper.store.blobs import pack
from mapper.store.database import ServiceUnreadable, of_service, open_writing, translated
from mapper.store.import_rows import Document, DocumentMethod, Kept
from mapper.store.tools import tool_name, tool_number
from policies.errors import InvalidInput
from policies.services import Risk

_STEP = 500  # methods between two signs of progress
_OWNERS = """
CREATE TABLE IF NOT EXISTS owner (
    name TEXT PRIMARY KEY COLLATE NOCASE,
    provider TEXT NOT NULL,
    provider_name TEXT NOT NULL
) WITHOUT ROWID
"""
_UNWRITABLE = (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)  # a value, not the file
_SPARE_PAGES = 0.2  # the part of the file that may lie idle before it is written anew


class Writer:
    """One transaction on the catalog's file. Use it in a `with`; leaving that without `commit` changes nothing.

    `taken` are the names that no import may have: those of the services that come with GoEx.
    """

    def __init__(self, path: Path, *, taken: Collection[str] = ()) -> None:
        self.path = path
        self._taken = {name.casefold() for name in (*taken, *service_names.RESERVED)}
        self._db = open_writing(path)
        self._now = datetime.now(UTC).isoformat(timespec="seconds")
        self._touched: set[tuple[str, str]] = set()
        self._preferred: dict[tuple[str, str, str], bool | None] = {}
        self.kept: list[Kept] = []  # of what was named
        with translated(path):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(_OWNERS)
            login_rows.make(self._db)
            waysback.make(self._db)
            self._db.execute("INSERT OR IGNORE INTO owner SELECT name, provider, provider_name FROM service")

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self._db.close()

    # ---- documents

    def put(self, document: Document, written: Callable[[int], None] = lambda count: None) -> list[tuple[str, str]]:
        """Take in a document, in place of its earlier self; returns the methods that were left out since they couldn't
        be read back, and why. `written` is told now and then how many methods are. Raises InvalidInput, and then
        nothing of it is kept."""
        with translated(self.path):
            self._db.execute("SAVEPOINT document")
            try:
                return self._put(document, written)
            except (UnicodeError, RecursionError, OverflowError, ValueError, TypeError, *_UNWRITABLE) as error:
                self._db.execute("ROLLBACK TO document")
                raise InvalidInput(f"{document.file} holds what can't be written: {str(error)[:100]}.") from error
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it
                    self._db.execute("ROLLBACK TO document")
                raise
            finally:
                if self._db.in_transaction:
                    self._db.execute("RELEASE document")

    def base_url(self, document: Document) -> str:
        """The base URL of the document's earlier self; "" when there was none."""
        with translated(self.path):
            found = self._db.execute(
                "SELECT base_url FROM document WHERE (provider, provider_name, version) = (?, ?, ?)", _key(document)
            ).fetchone()
        return str(found[0]) if found else ""

    def remove(self, service: str) -> bool:
        """Remove one service, by its name; False when the file has no such service."""
        with translated(self.path):
            found = self._db.execute("SELECT id FROM service WHERE name = ?", (service,)).fetchone()
            if found is None:
                return False
            for (document,) in self._db.execute("SELECT id FROM document WHERE service_id = ?", found).fetchall():
                self._remove_document(document)
            self._db.execute("DELETE FROM service WHERE id = ?", found)
        return True

    def services_of(self, provider: str) -> tuple[str, ...]:
        """The names of a provider's services."""
        with translated(self.path):
            rows = self._db.execute("SELECT name FROM service WHERE provider = ? ORDER BY name", (provider,)).fetchall()
        return tuple(str(name) for (name,) in rows)

    def services_of_versions(self, provider: str, keys: Collection[tuple[str, str]]) -> tuple[str, ...]:
        """The names of the services that these (provider's name, version) are in, sorted."""
        found: set[str] = set()
        with translated(self.path):
            for key in keys:
                rows = self._db.execute(
                    "SELECT s.name FROM service s JOIN document d ON d.service_id = s.id"
                    " WHERE (d.provider, d.provider_name, d.version) = (?, ?, ?)",
                    (provider, *key),
                ).fetchall()
                found.update(str(name) for (name,) in rows)
        return tuple(sorted(found))

    def versions_of(self, provider: str) -> frozenset[tuple[str, str]]:
        """(provider's name, version) of each document of a provider."""
        with translated(self.path):
            rows = self._db.execute("SELECT provider_name, version FROM document WHERE provider = ?", (provider,))
            return frozenset((str(name), str(version)) for name, version in rows.fetchall())

    def name_services(self) -> dict[tuple[str, str, str], tuple[str, bool]]:
        """Name everything that was put: (provider, provider's name, version) to its service, and whether it is main.

        Raises InvalidInput when no name is left for one.
        """
        named: dict[tuple[str, str, str], tuple[str, bool]] = {}
        with translated(self.path):
            for provider, provider_name in sorted(self._touched):
                named.update(self._name(provider, provider_name))
        self._touched.clear()
        return named

    def commit(self) -> int:
        """Make it so; what was put is named first. Returns the new generation."""
        self.name_services()
        with translated(self.path):
            self._check_services()
            self._db.execute(
                "DELETE FROM blob WHERE id NOT IN (SELECT blob_id FROM schema UNION ALL SELECT detail FROM method)"
            )
            reaches.rebuild(self._db)
            self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
            (generation,) = self._db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
            self._db.execute("COMMIT")
            self._tidy()
        return int(generation)

    # ---- inside

    def _check_services(self) -> None:
        """Raise InvalidInput where what was put couldn't be read back as a service."""
        for (name,) in self._db.execute(
            "SELECT DISTINCT s.name FROM service s JOIN document d ON d.service_id = s.id WHERE d.imported = ?",
            (self._now,),
        ).fetchall():
            try:
                records.service_of(self._db, name, {})
            except ServiceUnreadable as error:
                raise InvalidInput(f"{name} can't be imported: {error.__cause__}.") from error

    def _put(self, document: Document, written: Callable[[int], None]) -> list[tuple[str, str]]:
        key = _key(document)
        service: int | None = None
        earlier = self._db.execute(
            "SELECT id, service_id FROM document WHERE (provider, provider_name, version) = (?, ?, ?)", key
        ).fetchone()
        if earlier is not None:
            service = earlier[1]
            self._remove_document(earlier[0])
        cursor = self._db.execute(
            "INSERT INTO document (service_id, provider, provider_name, version, title, description, base_url,"
            " placement, file, sha256, imported) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (service or 0, *key, document.title, document.description, document.base_url,
             json.dumps(asdict(document.placement)), document.file, document.sha256, self._now),
        )  # fmt: skip
        document_id = cursor.lastrowid
        for name, schema in document.schemas.items():
            self._db.execute("INSERT INTO schema VALUES (?, ?, ?)", (document_id, name, self._blob(schema)))
        login_rows.put(self._db, document_id or 0, document.oauth)
        waysback.put(self._db, document_id or 0, document.undos)
        scopes = self._scopes(document, document_id)
        for number, method in enumerate(document.methods):
            if number % _STEP == 0:
                written(number)
            self._method(document, document_id, method, scopes)
        self._touched.add(key[:2])
        self._preferred[key] = document.preferred
        return self._left_out(document_id or 0)

    def _left_out(self, document: int) -> list[tuple[str, str]]:
        """Remove the methods of a document that a reader would refuse: their names, and why."""
        schemas = records.Schemas(self._db, document)
        wrong: dict[int, tuple[str, str]] = {}
        with_undo = waysback.origins(self._db, document)
        rows = self._db.execute(f"{records.METHOD} WHERE m.document_id = ?", (document,)).fetchall()
        ids = dict(self._db.execute("SELECT name, id FROM method WHERE document_id = ?", (document,)).fetchall())
        for row in rows:
            try:
                with of_service(""):
                    why = records.wrong_with(schemas, row)
            except ServiceUnreadable as error:
                why = str(error.__cause__)[:200]
            if why:
                wrong[ids[row[0]]] = row[0], why
        for number in wrong:
            self._db.execute("DELETE FROM unlocks WHERE method_id = ?", (number,))
            self._db.execute("DELETE FROM method WHERE id = ?", (number,))
        for origin in with_undo:
            try:
                with of_service(""):
                    waysback.of_method(self._db, document, origin)
            except ServiceUnreadable:
                waysback.forget(self._db, document, origin)
        return list(wrong.values())

    def _scopes(self, document: Document, document_id: int | None) -> dict[str, int]:
        risks: dict[str, Risk] = {}
        for method in document.methods:
            for name in method.scopes:
                risks[name] = max(method.risk, risks.get(name, Risk.READ))
        numbers: dict[str, int] = {}
        for scope in document.scopes:
            # What a scope that unlocks nothing here may do elsewhere isn't known, which counts as deleting.
            row = (document_id, scope.name, scope.description, int(risks.get(scope.name, Risk.DELETE)), scope.virtual)
            cursor = self._db.execute(
                "INSERT INTO scope (document_id, name, description, risk, virtual) VALUES (?, ?, ?, ?, ?)", row
            )
            numbers[scope.name] = cursor.lastrowid or 0
        return numbers

    def _method(
        self, document: Document, document_id: int | None, method: DocumentMethod, scopes: dict[str, int]
    ) -> None:
        detail = {
            "locations": dict(method.locations),
            "properties": dict(method.properties),
            "required": list(method.required),
            **({"media": method.media} if method.media else {}),
            **({"document": method.document} if method.document else {}),
        }
        try:
            cursor = self._db.execute(
                "INSERT INTO method (document_id, name, origin_id, description, http, path, risk, body, unsupported,"
                " tool, scopes, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
                (document_id, method.name, method.origin_id, method.description, method.http, method.path,
                 int(method.risk), method.body, method.unsupported,
                 " ".join(str(scopes[scope]) for scope in sorted(method.scopes)), self._blob(detail)),
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            raise InvalidInput(f"{document.file}: two methods are called {method.name[:80]!r}.") from error
        self._db.executemany(
            "INSERT INTO unlocks VALUES (?, ?)", [(scopes[scope], cursor.lastrowid) for scope in method.scopes]
        )

    def _blob(self, value: Any) -> int:
        number, data = pack(value)
        found = self._db.execute("SELECT data FROM blob WHERE id = ?", (number,)).fetchone()
        if found is None:
            self._db.execute("INSERT INTO blob VALUES (?, ?)", (number, data))
        elif found[0] != data:
            raise InvalidInput("Two different schemas have one number, which doesn't happen by chance.")
        return number

    def _remove_document(self, document: int) -> None:
        self._db.execute(
            "DELETE FROM unlocks WHERE scope_id IN (SELECT id FROM scope WHERE document_id = ?)", (document,)
        )
        for table in ("method", "scope", "schema"):
            self._db.execute(f"DELETE FROM {table} WHERE document_id = ?", (document,))  # noqa: S608 # names of ours
        login_rows.remove(self._db, document)
        waysback.remove(self._db, document)
        self._db.execute("DELETE FROM document WHERE id = ?", (document,))

    def _name(self, provider: str, provider_name: str) -> dict[tuple[str, str, str], tuple[str, bool]]:
        """Group the documents of one API into services, and name these anew."""
        db = self._db
        documents = {
            row[1]: row
            for row in db.execute(
                "SELECT d.id, d.version, d.title, d.description, d.base_url, d.placement, coalesce(s.main, 0)"
                " FROM document d LEFT JOIN service s ON s.id = d.service_id"
                " WHERE d.provider = ? AND d.provider_name = ? ORDER BY d.version",
                (provider, provider_name),
            ).fetchall()
        }
        known = {
            version: service_names.Version(
                self._methods(row[0], provider_name), self._preferred.get((provider, provider_name, version))
            )
            for version, row in documents.items()
        }
        # What has the plain name keeps it, since accounts and grants may stand under it, until it is removed.
        kept = tuple(version for version, row in documents.items() if row[6])
        wanted = service_names.main_versions(known, kept)
        main = self._mergeable((*kept, *(version for version in wanted if version not in kept)), documents)
        groups = [(main, True), *(((version,), False) for version in documents if version not in main)]
        db.execute("DELETE FROM service WHERE provider = ? AND provider_name = ?", (provider, provider_name))
        named: dict[tuple[str, str, str], tuple[str, bool]] = {}
        for versions, is_main in groups:
            version = "+".join(versions)
            wishes = service_names.wishes(provider, provider_name, version, main=is_main)
            name = service_names.service_name(wishes, partial(self._is_taken, owner=(provider, provider_name)))
            if not name:
                raise InvalidInput(f"No name is left for {provider_name[:60]} {version[:60]}.")
            first = documents[versions[0]]
            title, description = self._described(provider_name, [documents[v] for v in versions])
            service = db.execute(
                "INSERT INTO service (name, provider, provider_name, version, main, title, description, base_url,"
                " placement, methods) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (name, provider, provider_name, version, is_main, title, description, first[4], first[5]),
            ).lastrowid
            db.execute("INSERT OR IGNORE INTO owner VALUES (?, ?, ?)", (name, provider, provider_name))
            ids = [documents[v][0] for v in versions]
            db.executemany("UPDATE document SET service_id = ? WHERE id = ?", [(service, each) for each in ids])
            self._count(service, name, ids)
            named.update({(provider, provider_name, v): (name, is_main) for v in versions})
        self._say_kept(named, (provider, provider_name), main, service_names.main_versions(known))
        return named

    def _say_kept(
        self,
        named: dict[tuple[str, str, str], tuple[str, bool]],
        api: tuple[str, str],
        main: tuple[str, ...],
        wanted: tuple[str, ...],
    ) -> None:
        """Note where another version would be the main one, had none been so before."""
        for version in wanted:
            older = [each for each in main if service_names.part_of(each) == service_names.part_of(version)]
            if version not in main and older:
                self.kept.append(
                    Kept(
                        service=named[*api, older[0]][0],
                        version=older[0],
                        newer=version,
                        newer_service=named[*api, version][0],
                    )
                )

    def _methods(self, document: int, provider_name: str) -> frozenset[str]:
        rows = self._db.execute("SELECT origin_id FROM method WHERE document_id = ?", (document,)).fetchall()
        return frozenset(str(origin_id).removeprefix(f"{provider_name}.") for (origin_id,) in rows)

    def _described(self, provider_name: str, documents: list[Any]) -> tuple[str, str]:
        titles = list(dict.fromkeys(document[2] for document in documents))
        descriptions = list(dict.fromkeys(document[3] for document in documents))
        if len(titles) == 1:
            return titles[0], " ".join(descriptions)
        return f"{provider_name}: {', '.join(titles)}"[:200], " ".join(descriptions)

    def _count(self, service: int | None, name: str, documents: list[int]) -> None:
        total = 0
        for document in documents:
            rows = self._db.execute("SELECT id, name FROM method WHERE document_id = ?", (document,)).fetchall()
            total += len(rows)
            self._db.executemany(
                "UPDATE method SET tool = ? WHERE id = ?",
                [(tool_number(tool_name(f"{name}.{method}")), number) for number, method in rows],
            )
        self._db.execute("UPDATE service SET methods = ? WHERE id = ?", (total, service))

    def _mergeable(self, versions: tuple[str, ...], documents: dict[str, Any]) -> tuple[str, ...]:
        """Those of `versions` that can be one service, sorted: with the first one's base URL and placement, and no
        method name twice.

        A name that several of them have gets the part before it in each (`directory.channels.stop`).
        """
        first = documents[versions[0]]
        kept = [version for version in versions if documents[version][4:6] == first[4:6]]
        if len(kept) == 1:
            return tuple(kept)
        methods = {version: self._own_names(documents[version][0], version) for version in kept}
        count = Counter(name for own in methods.values() for name in own.values())
        seen: set[str] = set()
        merged = []
        for version, own in methods.items():
            part = service_names.part_of(version)
            spelled = {number: f"{part}.{name}" if count[name] > 1 else name for number, name in own.items()}
            if seen & set(spelled.values()) or len(set(spelled.values())) < len(spelled):
                continue
            seen |= set(spelled.values())
            merged.append(version)
            self._db.executemany(
                "UPDATE method SET name = ?1 WHERE id = ?2 AND name <> ?1", [(n, i) for i, n in spelled.items()]
            )
        return tuple(sorted(merged))

    def _own_names(self, document: int, version: str) -> dict[int, str]:
        """A document's methods by number, each by the name that it had before any merging."""
        part = service_names.part_of(version)
        (api,) = self._db.execute("SELECT provider_name FROM document WHERE id = ?", (document,)).fetchone()
        found = {}
        for number, name, origin_id in self._db.execute(
            "SELECT id, name, origin_id FROM method WHERE document_id = ? ORDER BY id", (document,)
        ).fetchall():
            own = origin_id.removeprefix(f"{api}.")
            found[number] = own if name == f"{part}.{own}" else name
        return found

    def _is_taken(self, name: str, owner: tuple[str, str]) -> bool:
        if name.casefold() in self._taken:
            return True
        row = self._db.execute("SELECT provider, provider_name FROM owner WHERE name = ?", (name,)).fetchone()
        if row is not None and tuple(row) != owner:
            return True
        return self._db.execute("SELECT 1 FROM service WHERE name = ? COLLATE NOCASE", (name,)).fetchone() is not None

    def _tidy(self) -> None:
        """Keep the file small. What can't be tidied now, since somebody reads, is tidied by the next."""
        with suppress(sqlite3.OperationalError):
            (spare,) = self._db.execute("PRAGMA freelist_count").fetchone()
            (pages,) = self._db.execute("PRAGMA page_count").fetchone()
            if spare > pages * _SPARE_PAGES:
                self._db.execute("VACUUM")
            self._db.execute("PRAGMA optimize")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _key(document: Document) -> tuple[str, str, str]:
    return document.provider, document.provider_name, document.version
