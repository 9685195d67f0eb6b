"""A vault while it is unsealed: its keys and ledger in memory, and the transactions that move it forward.

Rules: nothing here takes the lock, the vault does. Memory follows the disk: what a transaction was to change is
adopted after it has been committed, never before. Before every write the header on disk must be the one in memory.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, or_, select, update

from policies.errors import GoexError, InvalidInput
from vault import errors, schema
from vault.aead import Random, Unopened, bound_to_master, new_key, seal
from vault.approval import Approval
from vault.atomic_file import place
from vault.errors import RecordAltered, VaultAbsent, VaultChanged
from vault.header import Entry, Header, RecordIndex, row_digest
from vault.keys import Cost, Protector, Wrapping, normal_passphrase
from vault.record import Damage, SealedRecord, altered
from vault.schema import VaultFile, broken
from vault.secret import Secret

_log = logging.getLogger("goex.vault")

Work = Callable[[Connection], None]
Rows = Mapping[str, tuple[Any, ...]]
Progress = Callable[[int, int], None]
Compared = tuple[dict[str, SealedRecord], tuple[Damage, ...]]


def nothing(_: Connection) -> None:
    """No work but the header's."""


def no_progress(done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLease:
    """A lease that hasn't ended, without its secret."""

    action_id: str
    service: str
    name: str
    expires: datetime


@dataclass(slots=True, kw_only=True)
class Unsealed:
    """What is in memory only while the vault is unsealed."""

    file: VaultFile
    header: Header
    master: Secret
    wrapping: Wrapping
    record_index: RecordIndex
    random: Random
    leases: list[LiveLease] = field(default_factory=list)
    uses: dict[str, datetime] = field(default_factory=dict)  # by record id; not yet on disk
    remembered: dict[str, Any] = field(default_factory=dict)  # a keeper's, see vault.record_update
    parting: list[Callable[[], None]] = field(default_factory=list)  # see `Renewing.before_sealing`
    known: dict[str, tuple[tuple[int, int], Compared]] = field(default_factory=dict)  # by service; of which version

    def compared(self, service: str | None = None) -> Compared:
        """The records (of one service, or all) that are as they were written, by id, and what is wrong with others."""
        if service is None:
            return compare(read_rows(self.file), self.record_index.entries)
        version = (self.file.version(), self.header.generation)
        known = self.known.get(service)
        if known is not None and known[0] == version:  # each step of an action asks for its accounts
            return known[1]
        entries = {key: entry for key, entry in self.record_index.entries.items() if entry.service == service}
        found = compare(read_rows(self.file, service, tuple(entries)), entries)
        if entries:
            self.known[service] = (version, found)
        return found

    def fetch(self, service: str, name: str) -> SealedRecord:
        """One record, proven by its row's digest. Raises NoAccount, RecordAltered, VaultChanged."""
        known = self.record_index.find(service, name)
        if known is None:
            raise errors.no_account(service, name)
        record_id, entry = known
        with self.file.reading() as connection:
            row = connection.execute(_ONE_RECORD, {"wanted": record_id}).one_or_none()
        if row is None or not hmac.compare_digest(row_digest(tuple(row)), entry.digest):
            self.check_header()
            raise altered(service, name, _GONE if row is None else _OTHER)
        return SealedRecord.from_row(tuple(row))

    def write(
        self,
        record_index: RecordIndex,
        work: Work = nothing,
        *,
        header: Header | None = None,
        master: Secret | None = None,
    ) -> None:
        """One transaction: `work`, and a header of the next generation with `record_index` and the noted uses in it."""
        record_index = record_index.used(self.uses)
        following = (header or self.header).next(master or self.master, record_index, self.random)
        with self.file.writing() as connection:
            self._check_header(connection)
            work(connection)
            connection.execute(update(schema.header), following.to_row())
            self.file.mark_format(connection)
        self.header = following
        self.record_index = record_index
        self.master = master or self.master
        self.uses.clear()

    def rotate(self, wrapping: Wrapping, *, anew: bool = False, progress: Progress = no_progress) -> None:
        """A new master key under `wrapping`; with `anew`, also a new data key for each record and a new payload key.

        Raises RecordAltered: a record that isn't proven isn't carried over.
        """
        good, damage = self.compared()
        for each in damage:
            raise each.error()
        master = new_key(self.random)
        vault_id = self.header.vault_id
        rows: dict[str, SealedRecord] = {}
        for key, row in good.items():
            carry = row.reseal if anew else row.rewrap
            rows[key] = carry(self.master, master, vault_id, self.random)
            progress(len(rows), len(good))
        record_index = replace(
            self.record_index,
            entries={key: row.entry(self.record_index.entries[key].last_used) for key, row in rows.items()},
            payload=(new_key(self.random), *self.record_index.payload_keys) if anew else self.record_index.payload,
        )
        bound = bound_to_master(vault_id, wrapping.keyed_by, dict(wrapping.parameters))
        header = replace(
            self.header,
            keyed_by=wrapping.keyed_by,
            parameters=wrapping.parameters,
            wrapped_master=seal(wrapping.key, master, bound, self.random),
        )

        def work(connection: Connection) -> None:
            for row in rows.values():
                connection.execute(update(schema.records).where(schema.records.c.id == row.id), row.to_row())

        self.write(record_index, work, header=header, master=master)
        self.wrapping = wrapping

    def check_header(self) -> None:
        """Raises VaultChanged when the file isn't as this memory left it."""
        with self.file.reading() as connection:
            self._check_header(connection)

    def catch_up(self) -> None:
        """Take over what was written under the same master key since the file was opened: deriving the key of a
        passphrase takes long enough for another process to write. Raises VaultChanged, VaultBroken."""
        with self.file.reading() as connection:
            header = read_header(connection)
        if replace(header, generation=0, record_index=b"") != replace(self.header, generation=0, record_index=b""):
            raise self._changed()
        self.record_index, self.header = header.open_record_index(self.master), header

    def _check_header(self, connection: Connection) -> None:
        if read_header(connection) != self.header:
            raise self._changed()

    def _changed(self) -> VaultChanged:
        return VaultChanged(
            f"{self.file.path} was written to by somebody else while the vault was in use.",
            next_step="Find out by whom; then seal and unlock it.",
        )


_GONE = "it is gone"
_OTHER = "its row isn't the one that was written"
_ONE_RECORD = select(schema.records).where(schema.records.c.id == schema.wanted)
_ALL_RECORDS = select(schema.records)
_SOME_RECORDS = _ALL_RECORDS.where(
    or_(
        schema.records.c.service == bindparam("service"), schema.records.c.id.in_(bindparam("ids", expanding=True))
    )
)  # fmt: skip
_HEADER = select(schema.header)


def compare(rows: Rows, entries: Mapping[str, Entry]) -> Compared:
    """Hold the rows against the record index's entries."""
    good: dict[str, SealedRecord] = {}
    damage: list[Damage] = []
    for record_id, entry in entries.items():
        row = rows.get(record_id)
        what = ""
        if row is None:
            what = _GONE
        elif not hmac.compare_digest(row_digest(row), entry.digest):
            what = _OTHER
        else:
            with contextlib.suppress(RecordAltered):
                good[record_id] = SealedRecord.from_row(row)
        if record_id not in good:
            damage.append(Damage(service=entry.service, name=entry.name, what=what or _OTHER))
    for record_id, row in rows.items():
        if record_id not in entries:
            columns = dict(zip(schema.records.c.keys(), row, strict=True))
            damage.append(
                Damage(service=str(columns["service"]), name=str(columns["name"]), what="the vault didn't write it")
            )
    return good, tuple(damage)


def read_header(connection: Connection) -> Header:
    """The header row. Raises VaultBroken."""
    rows = connection.execute(_HEADER).all()
    if len(rows) != 1:
        raise broken("The vault has no header.")
    return Header.from_row(tuple(rows[0]))


def read_rows(file: VaultFile, service: str | None = None, ids: tuple[str, ...] = ()) -> Rows:
    """Every record's row, by its id; or those that have one of the ids or say that they are of the service."""
    with file.reading() as connection:
        if service is None:
            rows = connection.execute(_ALL_RECORDS)
        else:
            rows = connection.execute(_SOME_RECORDS, {"service": service, "ids": ids})
        return {str(row[0]): tuple(row) for row in rows}


def delete_rows(connection: Connection, record_id: str, service: str, name: str) -> None:
    """Delete an account's row, by its id and by its name (they differ when someone altered it)."""
    columns = schema.records.c
    connection.execute(
        delete(schema.records).where(
            or_(columns.id == record_id, and_(columns.service == service, columns.name == name))
        )
    )


def make(path: Path, protector: Protector, approval_passphrase: Secret, *, cost: Cost, random: Random) -> Unsealed:
    """A new vault at `path`, where there must be none. What `Vault.create` raises."""
    if path.exists() or path.is_symlink():
        raise errors.vault_exists(path)
    approval = Approval.of(approval_passphrase, cost, random)
    if protector.rests_on(lambda known: normal_passphrase(known) == normal_passphrase(approval_passphrase)):
        raise errors.one_passphrase_twice()
    wrapping = protector.establish()
    try:
        vault_id = random(16).hex()
        master = new_key(random)
        bound = bound_to_master(vault_id, wrapping.keyed_by, dict(wrapping.parameters))
        record_index = RecordIndex(root=new_key(random), approval=approval)
        header = Header(
            vault_id=vault_id,
            generation=0,
            keyed_by=wrapping.keyed_by,
            parameters=wrapping.parameters,
            wrapped_master=seal(wrapping.key, master, bound, random),
            record_index=b"",
        ).next(master, record_index, random)
        place(path, header, random)
        file = VaultFile(path)
    except BaseException:
        discard_unused(path, wrapping)
        raise
    return Unsealed(
        file=file, header=header, master=master, wrapping=wrapping, record_index=record_index, random=random
    )


def header_of(path: Path) -> Header:
    """The header of the vault at `path`. Raises what opening and reading a vault's file does."""
    file = VaultFile(path)
    try:
        with file.reading() as connection:
            return read_header(connection)
    finally:
        file.close()


def unlock_file(path: Path, protector: Protector, random: Random) -> Unsealed:
    """Open the file and its keys. What `Vault.unlock` raises."""
    file = VaultFile(path)
    try:
        with file.reading() as connection:
            header = read_header(connection)
        if protector.keyed_by != header.keyed_by:
            raise InvalidInput(
                f"This vault is keyed by the {header.keyed_by}.",
                next_step="Run goex vault unlock, and type its passphrase there."
                if header.keyed_by == "passphrase"
                else "Run goex vault unlock without a passphrase.",
            )
        wrapping = protector.recall(header.parameters)
        try:
            master = header.open_master(wrapping.key)
        except Unopened:
            raise errors.wrong_key(header.keyed_by) from None
        record_index = header.open_record_index(master)
    except BaseException:
        file.close()
        raise
    return Unsealed(
        file=file, header=header, master=master, wrapping=wrapping, record_index=record_index, random=random
    )


def discard(wrapping: Wrapping) -> None:
    """Forget a wrapping that no vault uses. It may stay behind in a keyring that doesn't answer: it opens nothing of
    the present file."""
    try:
        wrapping.discard()
    except GoexError as error:
        _log.warning("an unused key stays in the keyring: %s", error.message)


def discard_unused(path: Path, wrapping: Wrapping) -> None:
    """Forget a new wrapping after an error, unless the vault at `path` is wrapped by it by now: a write may be there
    although it was told as an error. Where that can't be read it stays: it may be the only key."""
    try:
        header = header_of(path)
    except VaultAbsent:
        discard(wrapping)
    except GoexError as error:
        _log.warning("a key that may be in use stays: %s", error.message)
    else:
        if (header.keyed_by, dict(header.parameters)) != (wrapping.keyed_by, dict(wrapping.parameters)):
            discard(wrapping)
