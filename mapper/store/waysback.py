"""Ways back that were derived from a document: one row a method that has one, in the catalog's file.

Rules: they name methods by the provider's ids, since merging versions may rename methods; what is read is taken by its
form, says `derived` whatever the row says, and calls methods of its own document alone. A file from before this table
simply has none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from policies.errors import InvalidInput
from policies.reversions import undo_from_json
from policies.services import CallTemplate, UndoTemplate

_TABLE = """
CREATE TABLE IF NOT EXISTS way_back (
    document_id INTEGER NOT NULL REFERENCES document,
    origin_id TEXT NOT NULL,
    undo TEXT NOT NULL,
    PRIMARY KEY (document_id, origin_id)
) WITHOUT ROWID
"""


def make(db: sqlite3.Connection) -> None:
    """The table, where it isn't there yet."""
    db.execute(_TABLE)


def put(db: sqlite3.Connection, document: int, undos: Mapping[str, Any]) -> None:
    """Note what was derived from a document."""
    rows = [(document, id, json.dumps(undo, sort_keys=True)) for id, undo in sorted(undos.items())]
    db.executemany("INSERT INTO way_back VALUES (?, ?, ?)", rows)


def remove(db: sqlite3.Connection, document: int) -> None:
    """Forget what was derived from a document."""
    db.execute("DELETE FROM way_back WHERE document_id = ?", (document,))


def origins(db: sqlite3.Connection, document: int) -> tuple[str, ...]:
    """The provider's ids of a document's methods that have a way back."""
    rows = db.execute("SELECT origin_id FROM way_back WHERE document_id = ?", (document,)).fetchall()
    return tuple(str(origin) for (origin,) in rows)


def forget(db: sqlite3.Connection, document: int, origin_id: str) -> None:
    """Forget what was derived for one method."""
    db.execute("DELETE FROM way_back WHERE document_id = ? AND origin_id = ?", (document, origin_id))


def of_method(db: sqlite3.Connection, document: int, origin_id: str) -> UndoTemplate | None:
    """What was derived for a method; None where nothing was. Raises sqlite3.DatabaseError for what no import writes."""
    try:
        row = db.execute(
            "SELECT undo FROM way_back WHERE document_id = ? AND origin_id = ?", (document, origin_id)
        ).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise
    if row is None:
        return None
    try:
        undo = undo_from_json(json.loads(row[0]), "derived")
    except (ValueError, TypeError, InvalidInput) as error:
        raise sqlite3.DatabaseError(f"a derived way back is damaged: {error}") from error

    def named(template: CallTemplate) -> CallTemplate:
        found = db.execute(
            "SELECT name FROM method WHERE document_id = ? AND origin_id = ?", (document, template.method)
        ).fetchone()
        if found is None:
            raise sqlite3.DatabaseError(f"a derived way back calls {template.method[:60]!r}, which isn't there")
        return replace(template, method=found[0])

    return replace(
        undo,
        calls=tuple(named(call) for call in undo.calls),
        pre=named(undo.pre) if undo.pre is not None else None,
        after=named(undo.after) if undo.after is not None else None,
        guard=named(undo.guard) if undo.guard is not None else None,
        guards=tuple(named(guard) for guard in undo.guards),
        verify=named(undo.verify) if undo.verify is not None else None,
        absent=named(undo.absent) if undo.absent is not None else None,
    )


def of_service(db: sqlite3.Connection, service: str) -> dict[str, tuple[str, ...]]:
    """The names of a service's methods that have a way back, and of what takes each back."""
    try:
        rows = db.execute(
            "SELECT m.name, w.undo, w.document_id FROM way_back w JOIN method m ON m.document_id = w.document_id"
            " AND m.origin_id = w.origin_id JOIN document d ON d.id = w.document_id"
            " JOIN service s ON s.id = d.service_id WHERE s.name = ?",
            (service,),
        ).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return {}
        raise
    found: dict[str, tuple[str, ...]] = {}
    for name, text, document in rows:
        try:
            ids = [call.method for call in undo_from_json(json.loads(text), "derived").calls]
        except (ValueError, TypeError, InvalidInput) as error:
            raise sqlite3.DatabaseError(f"a derived way back is damaged: {error}") from error
        query = "SELECT name FROM method WHERE document_id = ? AND origin_id = ?"
        named = [db.execute(query, (document, id)).fetchone() for id in ids]
        found[name] = tuple(str(one[0]) for one in named if one is not None)
    return found
