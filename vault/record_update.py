"""A record whose secret changes by itself: opened for its broker, and replaced only where nobody else has since.

Rules: a renewal is compare-and-set on the record that it was made from. When the person has logged in anew, or removed
the account, meanwhile, nothing is written and the renewed secret is nobody's. What the broker wants to remember only
while the vault is unsealed is held beside the keys, and goes with them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from policies.accounts import Account
from policies.errors import InvalidInput
from vault import schema
from vault.errors import RecordReplaced
from vault.key_maintenance import Keeping
from vault.record import SealedRecord, check_account, check_secret
from vault.secret import Secret
from vault.unsealed import LiveLease, Unsealed, delete_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An account and its secret as they are in the vault now; `stamp` tells this state from any other."""

    account: Account
    secret: Secret
    stamp: tuple[str, int]


class Renewing(Keeping):
    """The part of a vault that a broker of logins needs."""

    @property
    def path(self) -> Path:
        """Where the vault's file is."""
        return self._path

    def open_record(self, service: str, name: str) -> Opened:
        """One account and its secret. Raises VaultSealed, NoAccount, RecordAltered, VaultChanged."""
        with self._lock:
            now = self._need()
            record = now.fetch(service, name)
            return Opened(
                account=record.account,
                secret=record.open(now.master, now.header.vault_id),
                stamp=(record.id, record.version),
            )

    def renew(self, opened: Opened, secret: Secret) -> Opened:
        """Replace the secret of the very record that was opened. On disk when it returns.

        Raises RecordReplaced when it is another one by now, VaultUnwritable, VaultSealed, VaultChanged, RecordAltered.
        """
        check_secret(opened.account, secret)
        with self._lock:
            now = self._need()
            account = opened.account
            record = now.fetch(account.service, account.name)
            if (record.id, record.version) != opened.stamp:
                raise RecordReplaced(f"{account.id} was changed meanwhile.", next_step="Try again.")
            return self._reseal(now, record, account, secret)

    def change_account(self, shown: Account, changed: Account) -> Opened:
        """Seal the secret that an account has now under other terms, in one step: one that was renewed meanwhile stays.

        Raises RecordReplaced when it isn't as it was `shown` any more, InvalidInput, NoAccount, VaultUnwritable,
        VaultSealed, VaultChanged, RecordAltered.
        """
        check_account(changed)
        if (changed.service, changed.name, changed.format) != (shown.service, shown.name, shown.format):
            raise InvalidInput("That would be another account.")
        with self._lock:
            now = self._need()
            record = now.fetch(shown.service, shown.name)
            if record.account != shown:
                raise RecordReplaced(f"{shown.id} was changed meanwhile.", next_step="Try again.")
            return self._reseal(now, record, changed, record.open(now.master, now.header.vault_id))

    def note_lease(self, opened: Opened, *, action_id: str, expires: datetime) -> None:
        """A lease was made of this record. Raises VaultSealed; InvalidInput for an end that has passed."""
        with self._lock:
            now = self._need()
            at = self._clock()
            if expires.tzinfo is None or expires <= at:
                raise InvalidInput("A lease must end in the future, at a time with a zone.")
            now.uses[opened.stamp[0]] = at
            account = opened.account
            now.leases.append(
                LiveLease(action_id=action_id, service=account.service, name=account.name, expires=expires)
            )

    def while_unsealed(self) -> dict[str, Any]:
        """A place for what may be remembered until the vault is sealed, and no longer. Raises VaultSealed."""
        with self._lock:
            return self._need().remembered

    def before_sealing(self, work: Callable[[], None]) -> None:
        """Do this once, just before the keys go: for what would otherwise be lost with them. What it raises is logged,
        and holds up nothing. Raises VaultSealed."""
        with self._lock:
            self._need().parting.append(work)

    def _reseal(self, now: Unsealed, record: SealedRecord, account: Account, secret: Secret) -> Opened:
        """The next version of a record, on disk."""
        row = SealedRecord.make(
            account,
            secret,
            now.master,
            vault_id=now.header.vault_id,
            record_id=record.id,
            version=record.version + 1,
            created=record.created,
            updated=self._clock().astimezone(UTC).isoformat(),
            random=self._random,
        )
        entry = row.entry(now.record_index.entries[record.id].last_used)
        record_index = dataclasses.replace(now.record_index, entries={**now.record_index.entries, record.id: entry})

        def work(connection: Connection) -> None:
            delete_rows(connection, record.id, account.service, account.name)
            connection.execute(insert(schema.records), row.to_row())

        self._write(now, record_index, work)
        return Opened(account=account, secret=secret, stamp=(record.id, record.version + 1))
