"""How logins to imported services go: one row a document that says so, in the catalog's file.

Rules: what is read is checked as an import was, and is the document's word whatever the row says of itself; a file
from before this table simply has none.
"""

from __future__ import annotations

import json
import sqlite3
from types import MappingProxyType
from typing import Any

from policies.accounts import Origin
from policies.errors import InvalidInput
from policies.services import OAuth

_TABLE = """
CREATE TABLE IF NOT EXISTS login (document_id INTEGER PRIMARY KEY REFERENCES document, facts TEXT NOT NULL)
"""
_ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "device_endpoint")


def make(db: sqlite3.Connection) -> None:
    """The table, where it isn't there yet."""
    db.execute(_TABLE)


def put(db: sqlite3.Connection, document: int, oauth: OAuth | None) -> None:
    """Note what a document says; nothing where it says nothing."""
    if oauth is not None:
        facts: dict[str, Any] = {name: getattr(oauth, name) for name in _ENDPOINTS}
        facts["spelled"] = {name: list(all_of) for name, all_of in oauth.spelled.items()}
        facts |= {"resource": oauth.resource, "always": list(oauth.always)}
        db.execute("INSERT INTO login VALUES (?, ?)", (document, json.dumps(facts)))


def remove(db: sqlite3.Connection, document: int) -> None:
    """Forget what a document said."""
    db.execute("DELETE FROM login WHERE document_id = ?", (document,))


def of_service(db: sqlite3.Connection, service: int) -> OAuth | None:
    """What the documents of a service say, when they agree; None when they don't, or say nothing. Raises
    sqlite3.DatabaseError for what no import writes."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'login'").fetchone() is None:
        return None
    rows = db.execute(
        "SELECT facts FROM login WHERE document_id IN (SELECT id FROM document WHERE service_id = ?)", (service,)
    ).fetchall()
    found = [_read(facts) for (facts,) in rows]
    places = {tuple(getattr(one, name) for name in _ENDPOINTS) for one in found}
    if len(places) != 1:
        return None
    issuer, authorization, token, device = places.pop()
    spelled: dict[str, tuple[str, ...]] = {}
    for one in found:
        spelled.update(one.spelled)
    resources = {one.resource for one in found}
    if len(resources) != 1:
        return None
    return OAuth(
        issuer=issuer,
        authorization_endpoint=authorization,
        token_endpoint=token,
        device_endpoint=device,
        spelled=MappingProxyType(spelled),
        resource=resources.pop(),
        always=tuple(dict.fromkeys(scope for one in found for scope in one.always)),
        source="imported",
    )


def _read(text: Any) -> OAuth:
    try:
        facts = json.loads(text)
        spelled = {str(name): tuple(str(one) for one in all_of) for name, all_of in facts["spelled"].items()}
        places = {name: facts[name] for name in _ENDPOINTS}
        places["resource"] = str(facts.get("resource", ""))
        always = tuple(str(one) for one in facts.get("always", ()))
        for url in places.values():
            if url:
                Origin.parse(url)
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput) as error:
        raise sqlite3.DatabaseError("a login's place makes no sense") from error
    return OAuth(**places, spelled=spelled, always=always, source="imported")
