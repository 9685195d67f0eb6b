"""Sealed notes of one action: what its undo needs. The chain holds their hashes, the vault their key.

An older sealed version that is put back by hand decrypts well, and one that is deleted would read as if it had never
been, so `get` also asks the chain which version is current.
"""

from __future__ import annotations

import hashlib
import threading
from typing import Protocol

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from goex.journal.chain import Journal
from goex.journal.schema import journal, records
from policies.errors import Conflict
from policies.jsonvalue import parse

_INSERT = insert(records)  # made once: building a statement costs more than running it
_PUT = _INSERT.on_conflict_do_update(index_elements=["action_id", "name"], set_={"sealed": _INSERT.excluded.sealed})


class PayloadSealer(Protocol):
    """The part of the vault that seals payloads."""

    def seal_payload(self, name: str, data: bytes) -> bytes: ...

    def open_payload(self, name: str, sealed: bytes) -> bytes: ...


class SealedRecords:
    """`runtimes.base.Records` for one action."""

    def __init__(self, journal_: Journal, vault: PayloadSealer, action_id: str, agent: str) -> None:
        self._journal = journal_
        self._vault = vault
        self._action_id = action_id
        self._agent = agent
        self._hashes: dict[str, str] = {}  # of the current version of each name, as far as the chain was read
        self._seen = 0  # the number of the last row that was read
        self._reading = threading.Lock()

    def put(self, name: str, data: bytes) -> None:
        sealed = self._vault.seal_payload(f"{self._action_id}/{name}", data)
        with self._journal.transaction() as transaction:
            transaction.connection.execute(_PUT, {"action_id": self._action_id, "name": name, "sealed": sealed})
            transaction.append(
                "record",
                action_id=self._action_id,
                agent=self._agent,
                facts={"name": name, "sha256": hashlib.sha256(sealed).hexdigest()},
            )

    def get(self, name: str) -> bytes | None:
        with self._reading, self._journal.read() as connection:
            sealed = connection.execute(
                select(records.c.sealed).where(records.c.action_id == self._action_id, records.c.name == name)
            ).scalar()
            expected = self._current(connection, name)
        if sealed is None and expected is None:
            return None
        if sealed is None or hashlib.sha256(sealed).hexdigest() != expected:
            raise Conflict(
                f"What undo needs for action {self._action_id} ({name}) isn't what was written.",
                next_step="goex log --verify",
            )
        return self._vault.open_payload(f"{self._action_id}/{name}", sealed)

    def _current(self, connection: Connection, name: str) -> str | None:
        """The hash that the chain has of a name. Each row is read once: an action may keep thousands of records."""
        noted = connection.execute(
            select(journal.c.number, journal.c.kind, journal.c.facts)
            .where(
                journal.c.action_id == self._action_id,
                journal.c.kind.in_(("record", "forget")),
                journal.c.number > self._seen,
            )
            .order_by(journal.c.number)
        )
        for row in noted:
            if row.kind == "forget":
                self._hashes.clear()
            else:
                facts = parse(row.facts)
                self._hashes[facts["name"]] = facts["sha256"]
            self._seen = row.number
        return self._hashes.get(name)

    def forget(self) -> None:
        """Drop all of them (commit): the chain keeps their hashes."""
        with self._journal.transaction() as transaction:
            transaction.connection.execute(delete(records).where(records.c.action_id == self._action_id))
            transaction.append("forget", action_id=self._action_id, agent=self._agent)
