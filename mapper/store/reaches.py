"""What each provider-wide scope opens, worked out once an import: a table that choosing least scopes reads by name.

Rules: a method counts once in however many versions, with the worst risk of any; methods are numbered service by
service, so that the bits of most scopes lie close together and press to nothing. Virtual scopes, and those of
providers whose services share none, are a document's own and have no row here.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable

from mapper.reach import SHARING, Reach
from policies.services import Risk

TABLE = """
CREATE TABLE IF NOT EXISTS reach (
    provider TEXT NOT NULL,
    scope TEXT NOT NULL,
    home TEXT NOT NULL,
    services BLOB NOT NULL,
    reads BLOB NOT NULL,
    writes BLOB NOT NULL,
    deletes BLOB NOT NULL,
    admins BLOB NOT NULL,
    PRIMARY KEY (provider, scope)
) WITHOUT ROWID
"""
_MOST = 1 << 16  # bytes that one set of bits may take, opened


def rebuild(db: sqlite3.Connection) -> None:
    """Make the table anew from what the file holds now, within the caller's transaction."""
    db.execute(TABLE)
    db.execute("DELETE FROM reach")
    for provider in sorted(SHARING):
        methods: dict[tuple[str, str], list[int]] = {}  # (service, method) to its number and worst risk
        for service, origin_id, risk in db.execute(
            "SELECT d.provider_name, m.origin_id, max(m.risk) FROM method m JOIN document d ON d.id = m.document_id"
            " WHERE d.provider = ? GROUP BY 1, 2 ORDER BY 1, 2",
            (provider,),
        ):
            methods[service, origin_id] = [len(methods), risk]
        numbers = {name: place for place, name in enumerate(dict.fromkeys(service for service, _ in methods))}
        opened: dict[str, dict[str, set[str]]] = {}
        for scope, service, origin_id in db.execute(
            "SELECT DISTINCT c.name, d.provider_name, m.origin_id FROM unlocks u JOIN scope c ON c.id = u.scope_id"
            " JOIN method m ON m.id = u.method_id JOIN document d ON d.id = m.document_id"
            " WHERE d.provider = ? AND c.virtual = 0",
            (provider,),
        ):
            opened.setdefault(scope, {}).setdefault(service, set()).add(origin_id)
        for scope, services in opened.items():
            bits = [0, 0, 0, 0]
            for service, ids in services.items():
                for origin_id in ids:
                    number, risk = methods[service, origin_id]
                    bits[Risk(risk) - 1] |= 1 << number
            total = sum(len(ids) for ids in services.values())
            most = max(services, key=lambda name: (len(services[name]), name))
            home = most if 2 * len(services[most]) >= total else ""
            used = sum(1 << numbers[service] for service in services)
            db.execute(
                "INSERT INTO reach VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (provider, scope, home, _packed(used), *(_packed(each) for each in bits)),
            )


def read(db: sqlite3.Connection, provider: str, scopes: Iterable[str]) -> dict[str, Reach]:
    """The rows of these scopes; what has none is left out. Raises sqlite3.DatabaseError for damaged ones."""
    found: dict[str, Reach] = {}
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'reach'").fetchone() is None:
        return found  # the next import makes it
    for scope in scopes:
        row = db.execute(
            "SELECT home, services, reads, writes, deletes, admins FROM reach WHERE provider = ? AND scope = ?",
            (provider, scope),
        ).fetchone()
        if row is not None:
            home, services, *bits = row
            reads, writes, deletes, admins = (_unpacked(each) for each in bits)
            found[scope] = Reach((reads, writes, deletes, admins), _unpacked(services), home)
    return found


def _packed(bits: int) -> bytes:
    return zlib.compress(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), 6)


def _unpacked(data: bytes) -> int:
    try:
        opener = zlib.decompressobj()
        raw = opener.decompress(data, _MOST + 1)
    except zlib.error as error:
        raise sqlite3.DatabaseError(f"what a scope opens is damaged: {error}") from error
    if len(raw) > _MOST or opener.unconsumed_tail:
        raise sqlite3.DatabaseError("what a scope opens is longer than any that was written")
    return int.from_bytes(raw, "little")
