"""The header: what must be read before there is a key, and the sealed record index behind it.

Rules: the checksum tells a damaged header from a wrong passphrase (anyone can compute it, so it proves nothing more).
What must not change is bound by keys: the parameters to the wrapped master key, everything else in the record index,
which is sealed under the master key for one generation of the file. The record index lists every record with a
digest of its row, so that a row that was changed, put back, added or removed shows when the vault is unlocked.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from policies.typed_json import from_json, to_json
from vault.aead import KEY_BYTES, Random, Unopened, bound_to_master, bound_to_record_index, seal, unseal
from vault.approval import Approval
from vault.keys import KeyedBy
from vault.passkeys import NONE, Passkeys
from vault.schema import broken
from vault.secret import Secret

_INDEX_LIMIT = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header row, parsed."""

    vault_id: str
    generation: int
    keyed_by: KeyedBy
    parameters: JsonObject
    wrapped_master: bytes
    record_index: bytes

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Header:
        """Parse and check the row. Raises VaultBroken."""
        one, vault_id, generation, keyed_by, parameters, wrapped, record_index, checksum = row
        types = (int, str, int, str, str, bytes, bytes, bytes)
        if one != 1 or any(type(value) is not kind for value, kind in zip(row, types, strict=True)):
            raise broken("The vault's header is damaged.")
        if not hmac.compare_digest(_checksum(row[:-1]), checksum):
            raise broken("The vault's header is damaged.")
        try:
            read = parse(parameters, limit=10_000)
        except InvalidInput:
            read = None
        if not isinstance(read, dict) or keyed_by not in ("keyring", "passphrase"):
            raise broken("The vault's header makes no sense.")
        return cls(
            vault_id=vault_id,
            generation=generation,
            keyed_by=keyed_by,
            parameters=read,
            wrapped_master=wrapped,
            record_index=record_index,
        )

    def to_row(self) -> dict[str, Any]:
        """The row's columns, checksum included."""
        columns: dict[str, Any] = {
            "id": 1,
            "vault_id": self.vault_id,
            "generation": self.generation,
            "keyed_by": self.keyed_by,
            "parameters": canonical(dict(self.parameters)).decode("utf-8"),
            "wrapped_master": self.wrapped_master,
            "ledger": self.record_index,
        }
        return {**columns, "checksum": _checksum(tuple(columns.values()))}

    def open_master(self, key: Secret) -> Secret:
        """The master key. Raises Unopened when `key` isn't the one that wrapped it."""
        return unseal(key, self.wrapped_master, bound_to_master(self.vault_id, self.keyed_by, self.parameters))

    def open_record_index(self, master: Secret) -> RecordIndex:
        """Raises VaultBroken: with the right master key only an altered record index stays closed."""
        try:
            return RecordIndex.from_secret(
                unseal(master, self.record_index, bound_to_record_index(self.vault_id, self.generation))
            )
        except (Unopened, InvalidInput, KeyError, TypeError, ValueError):
            raise broken("The vault's record index was altered.") from None

    def next(self, master: Secret, record_index: RecordIndex, random: Random) -> Header:
        """The header of the next generation, with `record_index` in it."""
        number = self.generation + 1
        sealed = seal(master, record_index.to_secret(), bound_to_record_index(self.vault_id, number), random)
        return replace(self, generation=number, record_index=sealed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the record index knows of one record: whose it is, which version, a digest of its row, its last use."""

    service: str
    name: str
    version: int
    digest: str
    last_used: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """That a vault came back from a backup: when, on whose word, and the generation that the backup was made of."""

    at: datetime
    by: str
    generation: int


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a log outside the vault had come: it has `rows` at least, and the hash of that row is `hash`."""

    rows: int
    hash: bytes

    def to_json(self) -> JsonValue:
        return [self.rows, self.hash.hex()]

    @classmethod
    def from_json(cls, value: JsonValue) -> Reached:
        """Raises TypeError or ValueError for anything else than `to_json` made."""
        rows, text = value
        return cls(int(rows), bytes.fromhex(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIndex:
    """The sealed state of a vault: the root secret, what shows the person's presence (the approval passphrase's
    verifier, passkeys), and every record's entry.

    `payload` are the keys of payloads, newest first; while there is none, it is the root secret's work. `reached` is
    how far the log had come when it was noted last; None in a vault that was never told.
    """

    root: Secret
    approval: Approval
    entries: Mapping[str, Entry] = field(default_factory=dict)  # by record id
    payload: tuple[Secret, ...] = ()
    restored: Restored | None = None
    reached: Reached | None = None
    passkeys: Passkeys = NONE

    @property
    def payload_keys(self) -> tuple[Secret, ...]:
        """What payloads may be sealed with, the newest first."""
        return self.payload or (self.root,)

    def find(self, service: str, name: str) -> tuple[str, Entry] | None:
        """The entry of an account, with its record id."""
        for record_id, entry in self.entries.items():
            if (entry.service, entry.name) == (service, name):
                return record_id, entry
        return None

    def used(self, uses: Mapping[str, datetime]) -> RecordIndex:
        """The record index with last uses noted."""
        if not uses:
            return self
        noted = {
            record_id: replace(entry, last_used=uses.get(record_id, entry.last_used))
            for record_id, entry in self.entries.items()
        }
        return replace(self, entries=noted)

    def to_secret(self) -> Secret:
        return Secret(
            canonical(
                {
                    **({"payload": [key.reveal().hex() for key in self.payload]} if self.payload else {}),
                    **({"passkeys": to_json(self.passkeys)} if self.passkeys != NONE else {}),
                    **({"reached": self.reached.to_json()} if self.reached else {}),
                    **({"restored": to_json(self.restored)} if self.restored else {}),
                    "root": self.root.reveal().hex(),
                    "approval": to_json(self.approval),
                    "entries": {
                        record_id: [
                            entry.service,
                            entry.name,
                            entry.version,
                            entry.digest,
                            entry.last_used.isoformat() if entry.last_used else None,
                        ]
                        for record_id, entry in self.entries.items()
                    },
                }
            )
        )

    @classmethod
    def from_secret(cls, secret: Secret) -> RecordIndex:
        read = parse(secret.reveal(), limit=_INDEX_LIMIT, what="The record index")
        root = Secret(bytes.fromhex(read["root"]))
        payload = tuple(Secret(bytes.fromhex(key)) for key in read.get("payload", ()))
        if any(len(key) != KEY_BYTES for key in (root, *payload)):
            raise ValueError("that isn't a key")
        return cls(
            root=root,
            payload=payload,
            restored=from_json(Restored, read["restored"], "The record index") if "restored" in read else None,
            reached=Reached.from_json(read["reached"]) if "reached" in read else None,
            passkeys=from_json(Passkeys, read["passkeys"], "The record index") if "passkeys" in read else NONE,
            approval=from_json(Approval, read["approval"], "The record index"),
            entries={
                record_id: Entry(
                    service=service,
                    name=name,
                    version=version,
                    digest=digest,
                    last_used=datetime.fromisoformat(last_used) if last_used else None,
                )
                for record_id, (service, name, version, digest, last_used) in read["entries"].items()
            },
        )


def row_digest(row: Sequence[Any]) -> str:
    """A digest over a row as it lies in the file: each value with its type and length, so that none can pass for
    another."""
    return _hash(row).hex()


def _checksum(row: Sequence[Any]) -> bytes:
    return _hash(("goex vault v1 header", *row))


def _hash(values: Sequence[Any]) -> bytes:
    made = hashlib.sha256()
    for value in values:
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        made.update(f"{type(value).__name__} {len(raw)} ".encode())
        made.update(raw)
    return made.digest()
