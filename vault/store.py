"""The vault: every secret that GoEx keeps, sealed on disk, opened for one lease at a time.

Rules: sealed, it shows which accounts there are, unproven, and nothing else. Unsealed, it holds the master key, the
root secret and the wrapping key in memory, and no record's secret. Each write is one transaction: old state or new.
A row that isn't the one that the record index knows is never used, and is told apart from a wrong key and a broken
file. What can't be noticed is the whole file put back as it was at an earlier time: `generation` lets the caller
compare.

All calls are safe from several threads. `create`, `unlock`, `rotate` and the approval passphrase take as long as
Argon2id or the keyring does, and others write to disk: call them from a thread, never on an event loop. `lease` reads
one row and runs no Argon2id.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, insert

from policies.accounts import Account
from policies.errors import GoexError, InvalidInput
from vault import errors, schema
from vault.aead import Random
from vault.backup import Kept, restore
from vault.credential_file import token_of
from vault.database import DatabaseSecret
from vault.errors import AccountExists, RecordAltered
from vault.key_maintenance import Clock, utc_now
from vault.keys import Cost, KeyedBy, Protector
from vault.lease import Lease
from vault.record import Damage, Record, SealedRecord, by_name, check_account, check_secret, choose_account
from vault.record_update import Renewing
from vault.schema import VaultFile
from vault.secret import Secret
from vault.unsealed import (
    LiveLease,
    delete_rows,
    header_of,
    make,
    read_rows,
    unlock_file,
)

_log = logging.getLogger("goex.vault")


class Vault(Renewing):
    """One vault file. Made by `create` or `open`."""

    # ---- making, opening, sealing ----

    @classmethod
    def create(
        cls,
        path: Path,
        protector: Protector,
        approval_passphrase: Secret,
        *,
        clock: Clock = utc_now,
        random: Random = os.urandom,
        approval_cost: Cost | None = None,
    ) -> Vault:
        """A new vault, unsealed. The file appears whole or not at all; its folder is made with mode 0700.

        Raises VaultExists, InvalidInput (a poor passphrase, or one for both uses), VaultExposed, VaultUnwritable,
        KeyringError.
        """
        fresh = make(path, protector, approval_passphrase, cost=approval_cost or Cost(), random=random)
        made = cls(path, fresh.header, clock=clock, random=random)
        made._unsealed = fresh
        return made

    @classmethod
    def open(cls, path: Path, *, clock: Clock = utc_now, random: Random = os.urandom) -> Vault:
        """An existing vault, sealed. Raises VaultAbsent, VaultBroken, VaultTooNew, VaultExposed, VaultUnwritable."""
        return cls(path, header_of(path), clock=clock, random=random)

    @classmethod
    def restore(
        cls,
        path: Path,
        kept: Kept,
        protector: Protector,
        *,
        floor: int = 0,
        by: str = "",
        aside: Path | None = None,
        clock: Clock = utc_now,
        random: Random = os.urandom,
    ) -> Vault:
        """The vault of a backup, unsealed, at `path`; what `vault.backup.restore` says."""
        fresh = restore(path, kept, protector, floor=floor, by=by, at=clock(), aside=aside, random=random)
        made = cls(path, fresh.header, clock=clock, random=random)
        made._unsealed = fresh
        return made

    @property
    def state(self) -> Literal["sealed", "unsealed"]:
        return "sealed" if self._unsealed is None else "unsealed"

    @property
    def keyed_by(self) -> KeyedBy:
        return self._header.keyed_by

    @property
    def generation(self) -> int:
        """Grows with every write. A file whose number is smaller than one seen before was put back."""
        return self._header.generation

    def unlock(self, protector: Protector) -> tuple[Damage, ...]:
        """Unseal. Returns the records that were altered outside of GoEx: they stay unusable until put again or removed.

        Raises WrongPassphrase, WrongKey, VaultBroken and what `open` raises, KeyringError, InvalidInput when the
        vault is keyed by something else. Unlocking an unsealed vault checks the key and changes nothing.
        """
        fresh = unlock_file(self._path, protector, self._random)
        try:
            with self._lock:
                if self._unsealed is None:
                    fresh.catch_up()
                    damage = fresh.compared()[1]
                    self._unsealed, self._header = fresh, fresh.header
                    return damage
                return self.damage()
        finally:
            if self._unsealed is not fresh:
                fresh.file.close()

    def seal(self) -> None:
        """Forget the keys and end the leases' listing. Idempotent; never fails."""
        with self._lock:
            if self._unsealed is None:
                return
            try:
                self.flush_uses()
            except GoexError as error:
                _log.warning("the times of last use weren't written: %s", error.message)
            for work in self._unsealed.parting:
                try:
                    work()
                except GoexError as error:
                    _log.warning("something is lost with the keys: %s", error.message)
            file, self._unsealed = self._unsealed.file, None
            file.close()

    # ---- records ----

    def put(self, account: Account, secret: Secret, *, replace: bool = False) -> None:
        """Store a secret, together with where it may go (origins come back sorted). On disk when it returns.

        Raises AccountExists without `replace`; InvalidInput for what can't be stored; VaultUnwritable (nothing has
        changed then); VaultSealed, VaultChanged.
        """
        check_account(account)
        check_secret(account, secret)
        with self._lock:
            now = self._need()
            known = now.record_index.find(account.service, account.name)
            good, damage = now.compared(account.service)
            there = known is not None or any(each.names(account.service, account.name) for each in damage)
            if there and not replace:
                raise AccountExists(
                    f"There is an account {account.id} already.",
                    next_step="Use --replace, or another account: --account NAME.",
                )
            record_id, version = (known[0], known[1].version + 1) if known else (self._random(16).hex(), 1)
            at = self._clock().astimezone(UTC).isoformat()
            row = SealedRecord.make(
                account,
                secret,
                now.master,
                vault_id=now.header.vault_id,
                record_id=record_id,
                version=version,
                created=good[record_id].created if record_id in good else at,
                updated=at,
                random=self._random,
            )
            entry = row.entry(known[1].last_used if known else None)
            record_index = dataclasses.replace(now.record_index, entries={**now.record_index.entries, record_id: entry})

            def work(connection: Connection) -> None:
                delete_rows(connection, record_id, account.service, account.name)
                connection.execute(insert(schema.records), row.to_row())

            self._write(now, record_index, work)

    def remove(self, service: str, name: str) -> None:
        """Remove an account and its secret (also an altered one). A lease that was handed out isn't recalled by this:
        end its action. Raises NoAccount, VaultUnwritable, VaultSealed."""
        with self._lock:
            now = self._need()
            known = now.record_index.find(service, name)
            damage = now.compared(service)[1]
            if known is None and not any(each.names(service, name) for each in damage):
                raise errors.no_account(service, name)
            record_id = known[0] if known else ""
            entries = {key: entry for key, entry in now.record_index.entries.items() if key != record_id}
            self._write(
                now,
                dataclasses.replace(now.record_index, entries=entries),
                lambda connection: delete_rows(connection, record_id, service, name),
            )

    def records(self) -> tuple[Record, ...]:
        """Every account, by service and name. Sealed, nothing of it is proven (`Record.verified`). Altered records are
        left out, sealed those that make no sense: `damage` names them, once it is unsealed."""
        with self._lock:
            now = self._unsealed
            if now is None:
                return self._unproven()
            good = now.compared()[0]
            record_index = now.record_index.used(now.uses)
            shown = [
                row.show(last_used=record_index.entries[key].last_used, verified=True) for key, row in good.items()
            ]
        return by_name(shown)

    def damage(self) -> tuple[Damage, ...]:
        """The records that aren't what the vault wrote. Raises VaultSealed."""
        with self._lock:
            now = self._need()
            return now.compared()[1]

    def resolve(self, service: str, name: str = "") -> Account:
        """The account of that name, or the service's only one. Proven: raises VaultSealed while sealed.

        Raises NoAccount, AccountUnclear (it lists them), RecordAltered.
        """
        with self._lock:
            now = self._need()
            good, damage = now.compared(service)
        return choose_account(service, name, good.values(), damage)

    # ---- leases ----

    def lease(self, service: str, name: str, *, action_id: str, expires: datetime) -> Lease:
        """The account's secret, for one action, until `expires`. The time of use is noted in memory, and written with
        the next write, by `flush_uses`, or when the vault is sealed.

        Raises VaultSealed, NoAccount, RecordAltered, VaultChanged; InvalidInput for an end that has passed, and for an
        account whose secret isn't itself the credential: those are leased by their broker (vault.oauth.broker).
        """
        with self._lock:
            now = self._need()
            at = self._clock()
            if expires.tzinfo is None or expires <= at:
                raise InvalidInput("A lease must end in the future, at a time with a zone.")
            record = now.fetch(service, name)
            if record.account.format not in ("string", "file", "database"):
                raise InvalidInput(f"The secret of {record.account.id} isn't a credential by itself.")
            secret, terms = record.open(now.master, now.header.vault_id), None
            if record.account.format == "database":
                opened = DatabaseSecret.from_secret(secret)
                secret, terms = opened.password, opened.terms
            elif record.account.format == "file":
                secret = token_of(secret)
            lease = Lease(action_id=action_id, account=record.account, secret=secret, expires=expires, terms=terms)
            now.uses[record.id] = at
            now.leases.append(LiveLease(action_id=action_id, service=service, name=name, expires=expires))
            return lease

    def end_leases(self, action_id: str) -> None:
        """The action has ended, and so have its leases. Idempotent."""
        with self._lock:
            if self._unsealed is not None:
                self._unsealed.leases = [each for each in self._unsealed.leases if each.action_id != action_id]

    def live_leases(self) -> tuple[LiveLease, ...]:
        """The leases that neither ended nor expired, oldest first."""
        with self._lock:
            if self._unsealed is None:
                return ()
            at = self._clock()
            self._unsealed.leases = [each for each in self._unsealed.leases if each.expires > at]
            return tuple(self._unsealed.leases)

    def flush_uses(self) -> None:
        """Write the times of last use. Raises VaultUnwritable, VaultSealed, VaultChanged."""
        with self._lock:
            now = self._need()
            if now.uses:
                self._write(now, now.record_index)

    # ---- inside ----

    def _unproven(self) -> tuple[Record, ...]:
        file = VaultFile(self._path)
        try:
            rows = read_rows(file)
        finally:
            file.close()
        found = []
        for row in rows.values():
            with contextlib.suppress(RecordAltered):
                found.append(SealedRecord.from_row(row).show(last_used=None, verified=False))
        return by_name(found)
