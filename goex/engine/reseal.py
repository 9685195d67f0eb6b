"""Seal anew what the vault sealed and the state database keeps, under the vault's newest payload key.

Each payload is one transaction with the row that notes its hash, while nobody else writes: it is the old one or the new
one, whenever this is interrupted. What isn't what was noted is left alone, as it is everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from sqlalchemy import Connection, desc, select, update

from goex.engine.records import PayloadSealer
from goex.journal.chain import Journal
from goex.journal.schema import journal as rows
from goex.journal.schema import records
from policies.errors import GoexError
from policies.jsonvalue import parse


def reseal(journal: Journal, vault: PayloadSealer, progress: Callable[[int, int], None]) -> int:
    """Returns how many couldn't be sealed anew, because they were altered. Raises VaultSealed, Unavailable."""
    with journal.read() as connection:
        every = [tuple(row) for row in connection.execute(select(records.c.action_id, records.c.name))]
    altered = 0
    for done, (action_id, name) in enumerate(every, start=1):
        altered += not _one(journal, vault, action_id, name)
        progress(done, len(every))
    return altered


def _one(journal: Journal, vault: PayloadSealer, action_id: str, name: str) -> bool:
    with journal.transaction() as transaction:
        this = (records.c.action_id == action_id, records.c.name == name)
        sealed = transaction.connection.execute(select(records.c.sealed).where(*this)).scalar()
        if sealed is None:
            return True  # forgotten meanwhile
        if hashlib.sha256(sealed).hexdigest() != _noted(transaction.connection, action_id, name):
            return False
        label = f"{action_id}/{name}"
        try:
            data = vault.open_payload(label, sealed)
        except GoexError as error:
            if error.code != "payload-altered":
                raise
            return False
        fresh = vault.seal_payload(label, data)
        transaction.connection.execute(update(records).where(*this).values(sealed=fresh))
        facts = {"name": name, "sha256": hashlib.sha256(fresh).hexdigest(), "anew": True}
        transaction.append("record", action_id=action_id, facts=facts)
    return True


def _noted(connection: Connection, action_id: str, name: str) -> str:
    """The hash that the chain holds of it."""
    found = connection.execute(
        select(rows.c.facts).where(rows.c.action_id == action_id, rows.c.kind == "record").order_by(desc(rows.c.number))
    ).scalars()
    return next((facts["sha256"] for facts in map(parse, found) if facts["name"] == name), "")
