"""A backup: the whole vault as one sealed file, under a passphrase of its own; and a vault made from it again.

The file: 8 bytes of magic, the format (2 bytes), the whole length (8), the header's length (4), the header (canonical
JSON: how the passphrase is stretched), the sealed content, and SHA-256 over everything before it. Numbers are
big-endian. Magic, format, length and the digest at the end stay where they are in every later format.

Rules: nothing of the content is in clear, not even how many accounts there are. The digest, which anyone can compute,
tells a damaged file from a wrong passphrase, and is looked at before anything is spent on the passphrase; what proves
the content is AES-GCM, which is bound to the header. A restored vault has a new id, a new master key and new data keys:
no file of before passes for it. What hangs on the root secret (the log, grants, payloads) stays valid.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, insert

from policies.accounts import Account
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import JsonValue, canonical, parse
from policies.typed_json import from_json, to_json
from vault import errors, schema
from vault.aead import KEY_BYTES, Random, Unopened, bound_to_backup, bound_to_master, new_key, seal, unseal
from vault.approval import Approval
from vault.atomic_file import place
from vault.errors import BackupBroken, BackupCut, BackupTooNew, VaultBroken, WrongPassphrase
from vault.header import Header, RecordIndex, Restored
from vault.keys import SALT_BYTES, Cost, Protector, read_stretch_parameters, stretch, stretch_parameters
from vault.passkeys import NONE, Passkeys
from vault.record import SealedRecord, check_account, check_secret
from vault.schema import VaultFile
from vault.secret import Secret
from vault.unsealed import Unsealed, discard_unused

MAGIC = b"GoExBkup"
FORMAT = 1
LONGEST = 256 * 2**20  # bytes
_FIXED = len(MAGIC) + 2 + 8 + 4
_DIGEST = 32
_LONGEST_HEADER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecord:
    """One account with its secret, as a backup holds it. Times are UTC."""

    account: Account
    secret: Secret
    created: str
    updated: str
    last_used: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a backup holds: everything of a vault but the keys that its file is sealed under."""

    made: datetime
    generation: int
    root: Secret
    payload: tuple[Secret, ...]
    approval: Approval
    records: tuple[KeptRecord, ...]
    passkeys: Passkeys = NONE

    def to_secret(self) -> Secret:
        return Secret(
            canonical(
                {
                    "made": self.made.isoformat(),
                    "generation": self.generation,
                    "root": self.root.reveal().hex(),
                    "payload": [key.reveal().hex() for key in self.payload],
                    "approval": to_json(self.approval),
                    **({"passkeys": to_json(self.passkeys)} if self.passkeys != NONE else {}),
                    "records": [
                        {
                            "account": to_json(each.account),
                            "secret": base64.b64encode(each.secret.reveal()).decode("ascii"),
                            "created": each.created,
                            "updated": each.updated,
                            "last_used": each.last_used.isoformat() if each.last_used else None,
                        }
                        for each in self.records
                    ],
                }
            )
        )

    @classmethod
    def from_secret(cls, secret: Secret) -> Kept:
        """Raises KeyError, TypeError, ValueError or InvalidInput for anything else than `to_secret` made."""
        read = parse(secret.reveal(), limit=LONGEST, what="The backup")
        root = Secret(bytes.fromhex(read["root"]))
        payload = tuple(Secret(bytes.fromhex(key)) for key in read["payload"])
        if any(len(key) != KEY_BYTES for key in (root, *payload)):
            raise ValueError("that isn't a key")
        return cls(
            made=datetime.fromisoformat(read["made"]),
            generation=int(read["generation"]),
            root=root,
            payload=payload,
            approval=from_json(Approval, read["approval"], "The backup"),
            passkeys=from_json(Passkeys, read["passkeys"], "The backup") if "passkeys" in read else NONE,
            records=tuple(
                KeptRecord(
                    account=_account_from_json(each["account"]),
                    secret=Secret(base64.b64decode(each["secret"], validate=True)),
                    created=each["created"],
                    updated=each["updated"],
                    last_used=datetime.fromisoformat(each["last_used"]) if each["last_used"] else None,
                )
                for each in read["records"]
            ),
        )


def keep(now: Unsealed, at: datetime) -> Kept:
    """Everything of an unsealed vault. Raises RecordAltered: what isn't proven isn't backed up."""
    good, damage = now.compared()
    for each in damage:
        raise each.error()
    record_index = now.record_index.used(now.uses)
    return Kept(
        made=at.astimezone(UTC),
        generation=now.header.generation,
        root=record_index.root,
        payload=record_index.payload,
        approval=record_index.approval.proved(),
        passkeys=record_index.passkeys,
        records=tuple(
            KeptRecord(
                account=row.account,
                secret=row.open(now.master, now.header.vault_id),
                created=row.created,
                updated=row.updated,
                last_used=record_index.entries[key].last_used,
            )
            for key, row in good.items()
        ),
    )


def seal_backup(kept: Kept, passphrase: Secret, *, cost: Cost, random: Random = os.urandom) -> bytes:
    """The bytes of a backup file."""
    salt = random(SALT_BYTES)
    header = canonical(stretch_parameters(salt, cost))
    sealed = seal(stretch(passphrase, salt, cost), kept.to_secret(), bound_to_backup(FORMAT, header.decode()), random)
    whole = _FIXED + len(header) + len(sealed) + _DIGEST
    if whole > LONGEST:
        raise InvalidInput(f"The vault is larger than a backup can be ({LONGEST} bytes).")
    begin = MAGIC + FORMAT.to_bytes(2, "big") + whole.to_bytes(8, "big") + len(header).to_bytes(4, "big")
    body = begin + header + sealed
    return body + hashlib.sha256(body).digest()


def open_backup(data: bytes, passphrase: Secret) -> Kept:
    """What is in a backup file. Raises BackupCut, BackupBroken, BackupTooNew, WrongPassphrase, InvalidInput."""
    header, sealed = _parts(data)
    salt, cost = _stretching(header)
    try:
        content = unseal(stretch(passphrase, salt, cost), sealed, bound_to_backup(FORMAT, header.decode("utf-8")))
    except Unopened:
        raise WrongPassphrase(
            "That passphrase doesn't open this backup.",
            next_step="Try again: it is the one that was given when the backup was made. Nothing was changed.",
        ) from None
    try:
        return Kept.from_secret(content)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidInput):
        raise _broken("What is in the backup makes no sense") from None


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The header and the sealed content of a file that is whole."""
    start = data[: len(MAGIC)]
    if start != MAGIC[: len(start)] or not data:
        raise _broken("This isn't a backup of a vault, or its beginning is damaged")
    if len(data) < _FIXED + _DIGEST:
        raise _cut(len(data), None)
    said = int.from_bytes(data[10:18], "big")
    if said != len(data):
        # Whether the length was damaged, or the file's end is gone: with the true length the digest fits again.
        mended = data[:10] + len(data).to_bytes(8, "big") + data[18:-_DIGEST]
        if said < len(data) or hashlib.sha256(mended).digest() == data[-_DIGEST:]:
            raise _broken("The backup is damaged: it isn't as long as it says")
        raise _cut(len(data), said)
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise _broken("The backup is damaged: its bytes aren't those that were written")
    number = int.from_bytes(data[8:10], "big")
    if number != FORMAT:
        raise BackupTooNew(
            f"This backup has format {number}; this GoEx reads format {FORMAT}.", next_step="Update GoEx."
        )
    length = int.from_bytes(data[18:22], "big")
    if length > min(_LONGEST_HEADER, len(data) - _FIXED - _DIGEST):
        raise _broken("The backup's header makes no sense")
    return data[_FIXED : _FIXED + length], data[_FIXED + length : -_DIGEST]


def _stretching(header: bytes) -> tuple[bytes, Cost]:
    try:
        read = parse(header, limit=_LONGEST_HEADER)
        if not isinstance(read, dict) or canonical(read) != header:
            raise _broken("The backup's header makes no sense")
        return read_stretch_parameters(read)
    except (InvalidInput, VaultBroken, UnicodeDecodeError):
        raise _broken("The backup's header makes no sense") from None


def restore(
    path: Path,
    kept: Kept,
    protector: Protector,
    *,
    floor: int,
    by: str,
    at: datetime,
    aside: Path | None = None,
    random: Random = os.urandom,
) -> Unsealed:
    """Make the vault of a backup at `path`: whole or not at all. Its generation is above `floor` and the backup's.

    `aside` None: there must be no vault (VaultExists). Otherwise what is there is kept at `aside`, and replaced in one
    step. Raises InvalidInput (one passphrase for two uses; what can't be stored), KeyringError, VaultUnwritable.
    """
    if protector.rests_on(kept.approval.matches):
        raise errors.one_passphrase_twice()
    wrapping = protector.establish()
    try:
        vault_id, master = random(16).hex(), new_key(random)
        rows: dict[str, SealedRecord] = {}
        last_used: dict[str, datetime | None] = {}
        for each in kept.records:
            check_account(each.account)
            check_secret(each.account, each.secret)
            row = SealedRecord.make(
                each.account,
                each.secret,
                master,
                vault_id=vault_id,
                record_id=random(16).hex(),
                version=1,
                created=each.created,
                updated=each.updated,
                random=random,
            )
            rows[row.id], last_used[row.id] = row, each.last_used
        record_index = RecordIndex(
            root=kept.root,
            payload=kept.payload,
            approval=kept.approval,
            passkeys=dataclasses.replace(kept.passkeys, reset_at=None),
            entries={key: row.entry(last_used[key]) for key, row in rows.items()},
            restored=Restored(at=at.astimezone(UTC), by=by, generation=kept.generation),
        )
        header = Header(
            vault_id=vault_id,
            generation=max(floor, kept.generation),
            keyed_by=wrapping.keyed_by,
            parameters=wrapping.parameters,
            wrapped_master=seal(
                wrapping.key, master, bound_to_master(vault_id, wrapping.keyed_by, dict(wrapping.parameters)), random
            ),
            record_index=b"",
        ).next(master, record_index, random)

        def work(connection: Connection) -> None:
            for row in rows.values():
                connection.execute(insert(schema.records), row.to_row())

        place(path, header, random, work=work, aside=aside)
        file = VaultFile(path)
    except BaseException:
        discard_unused(path, wrapping)
        raise
    return Unsealed(
        file=file, header=header, master=master, wrapping=wrapping, record_index=record_index, random=random
    )


def _account_from_json(value: Mapping[str, JsonValue]) -> Account:
    known = {field.name for field in dataclasses.fields(Account)}
    if set(value) - known:
        raise BackupTooNew("This backup says more of an account than this GoEx knows.", next_step="Update GoEx.")
    return from_json(Account, value, "An account of the backup")


def _broken(what: str) -> GoexError:
    return BackupBroken(f"{what}. Nothing was changed.", next_step="Use another copy of the backup.")


def _cut(there: int, said: int | None) -> GoexError:
    of = f" of {said}" if said is not None else ""
    return BackupCut(
        f"The backup was cut off: {there}{of} bytes are there. Nothing was changed.",
        next_step="Copy it again, whole, from where it was kept.",
    )
