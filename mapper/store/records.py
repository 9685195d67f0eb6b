"""Rows of the catalog's file as services and methods, judged alike when they are written and when they are read.

Rules: `wrong_with` is all that decides whether a method can be read, so that an import leaves out what a reader would
refuse; what is wrong with a row is wrong with its service alone (`mapper.store.database.of_service`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, get_args
from urllib.parse import urlsplit

from mapper.json_schema import problem, referred
from mapper.store import login_rows, waysback
from mapper.store.blobs import unpack
from mapper.store.catalog_lists import risk_of, unpacked
from mapper.store.database import of_service
from mapper.store.import_rows import own_keys
from policies.graphql import NO_ERRORS, SOME_DATA, operation_of
from policies.media_types import MEDIA
from policies.services import BodyFormat, CodeFacts, CredentialAt, Location, Method, OAuth, Placement, Scope, Service

METHOD = (
    "SELECT m.name, m.origin_id, m.description, m.http, m.path, m.risk, m.body, m.unsupported, m.scopes,"
    " m.document_id, b.data FROM method m JOIN document d ON d.id = m.document_id"
    " LEFT JOIN service s ON s.id = d.service_id LEFT JOIN blob b ON b.id = m.detail"
)
_VERBS = frozenset({"", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_BODIES, _LOCATIONS = frozenset(get_args(BodyFormat)), frozenset(get_args(Location))
_PLACE = re.compile(r"[A-Za-z0-9_.$\[\]-]{1,100}")
# Google's documents name their scopes alone; where its tokens come from is known without them.
_GOOGLE = OAuth(
    issuer="https://accounts.google.com",
    client="confidential",
    parameters=MappingProxyType({"access_type": "offline", "prompt": "consent"}),
)
# Google's own library adds these, and its documents leave them out of each method's arguments.
_GOOGLE_QUERY = ("alt", "prettyPrint", "quotaUser", "fields", "uploadType", "$alt")


class Schemas:
    """The schemas of one document, each read and judged once."""

    def __init__(self, db: sqlite3.Connection, document: int) -> None:
        self.db = db
        self.document = document
        self._found: dict[str, tuple[Any, frozenset[str]]] = {}  # with the names that it refers to
        self.size = 0  # bytes that were read
        self._good: set[str] = set()
        rows = db.execute("SELECT id, name FROM scope WHERE document_id = ?", (document,)).fetchall()
        self.scopes: dict[int, str] = dict(rows)

    def closed(self, wanted: Iterable[str]) -> dict[str, Any]:
        """The schemas named with all that they refer to."""
        found: dict[str, Any] = {}
        todo = sorted(wanted)
        while todo:
            name = todo.pop()
            if name not in found:
                found[name], below = self._read(name)
                todo.extend(below - found.keys())
        return found

    def wrong(self, wanted: Iterable[str]) -> str:
        """What is wrong with the schemas named, or with one that they refer to; "" when nothing is."""
        todo = sorted(wanted)
        passed: set[str] = set()
        while todo:
            name = todo.pop()
            if name in self._good or name in passed:
                continue
            passed.add(name)
            schema, below = self._read(name)
            for each in below:
                self._read(each)
            if found := problem(schema, defs=below):
                return found
            todo.extend(below - passed)
        self._good |= passed
        return ""

    def _read(self, name: str) -> tuple[Any, frozenset[str]]:
        if name not in self._found:
            row = self.db.execute(
                "SELECT b.data FROM schema c JOIN blob b ON b.id = c.blob_id WHERE c.document_id = ? AND c.name = ?",
                (self.document, name),
            ).fetchone()
            if row is None:
                raise sqlite3.DatabaseError(f"the schema {name!r} is missing")
            schema = unpack(row[0])
            self._found[name] = schema, frozenset(referred(schema))
            self.size += len(row[0])
        return self._found[name]


def wrong_with(schemas: Schemas, row: Any) -> str:
    """What makes a row of `METHOD` unreadable; "" when nothing does. Raises sqlite3.DatabaseError, or what values of
    another form than an import writes raise."""
    detail = unpacked(row[10])
    return _wrong(schemas, row, detail, referred(detail["properties"]))


def _wrong(schemas: Schemas, row: Any, detail: dict[str, Any], known: set[str]) -> str:
    if not isinstance(media := detail.get("media", ""), str) or (media and not MEDIA.fullmatch(media)):
        return "its body has no content type"
    if "document" in detail and not (isinstance(detail["document"], str) and operation_of(detail["document"])):
        return "its document isn't one operation"
    found = _odd(row[:8], detail["locations"], detail["required"]) or schemas.wrong(known)
    if found:
        return found
    return next((wrong for each in detail["properties"].values() if (wrong := problem(each, defs=known))), "")


def method_of(schemas: Schemas, service: str, row: Any) -> tuple[Method, int]:
    """The method of a row of `METHOD`, and what keeping it counts for beside its schemas. Raises as `wrong_with`."""
    (name, origin_id, description, http, path, risk, body, unsupported, scopes, document, blob) = row
    detail = unpacked(blob)
    known = referred(detail["properties"])
    if wrong := _wrong(schemas, row, detail, known):
        raise sqlite3.DatabaseError(f"{name}: {wrong}")
    locations = detail["locations"]
    keys = own_keys(locations)
    properties = {name: schema for name, schema in detail["properties"].items() if name not in keys}
    required = [name for name in detail["required"] if name not in keys]
    definitions = schemas.closed(known)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if definitions:
        parameters["$defs"] = definitions
    method = Method(
        service=service,
        name=name,
        description=description,
        http=http,
        path=path,
        parameters=parameters,
        locations=MappingProxyType(locations),
        scopes=tuple(sorted(schemas.scopes[int(number)] for number in scopes.split())),
        risk=risk_of(risk, http),
        body=body,
        media=detail.get("media", ""),
        document=detail.get("document", ""),
        origin_id=origin_id,
        unsupported=unsupported,
        undo=waysback.of_method(schemas.db, document, origin_id),
        defaults=dict.fromkeys(keys, "$action.key"),
        idempotency=keys[0] if keys else "",
    )
    return method, 20 * len(blob)


def service_of(db: sqlite3.Connection, name: str, methods: Mapping[str, Method]) -> Service | None:
    """The service of that name; None where there is none. Raises ServiceUnreadable."""
    with of_service(name):
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
        placement = Placement.from_json(json.loads(row[4]))
        if not all(_is_place(one) for one in placement.places):
            raise sqlite3.DatabaseError("it has no place for its credential")
        if not all(isinstance(text, str) for text in (*row[1:4], *row[5:8], *scopes)):
            raise sqlite3.DatabaseError("it holds bytes where text belongs")
        if row[5] == "google" and not _is_google(row[3]):
            # GoEx itself says where Google's logins are, so nobody would be asked where their tokens go.
            raise sqlite3.DatabaseError("it is said to be Google's, and isn't at Google's address")
        return Service(
            name=name,
            title=row[1],
            description=row[2],
            base_url=row[3],
            methods=methods,
            scopes=MappingProxyType(scopes),
            placement=placement,
            success=(NO_ERRORS, SOME_DATA) if row[5] == "graphql" else (),
            source="imported",
            provider=row[5],
            provider_name=row[6],
            version=row[7],
            main=bool(row[8]),
            oauth=_GOOGLE if row[5] == "google" else login_rows.of_service(db, row[0]),
            code=CodeFacts(query=_GOOGLE_QUERY) if row[5] == "google" else CodeFacts(),
        )


def _is_google(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return url.startswith("https://") and (host == "googleapis.com" or host.endswith(".googleapis.com"))


def _is_place(one: Placement) -> bool:
    return bool(_PLACE.fullmatch(one.header) and one.format.count("{secret}") == 1 and one.at in get_args(CredentialAt))


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
