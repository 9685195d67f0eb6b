"""One record: an account and its secret, sealed together.

Rules: each record has a data key of its own, wrapped by the master key and bound to the record's id and version. The
secret is sealed under it, bound to everything that says where it may go. A record that doesn't open, or whose row
isn't the one that the record index knows, is `RecordAltered`: its parts are never used. What may be stored is decided
here, before it is sealed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from policies.accounts import Account, Format, Origin
from policies.display_text import escape
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import canonical, parse
from vault.aead import Random, Unopened, bound_to_data_key, bound_to_record, new_key, seal, unseal
from vault.basic import Basic
from vault.database import DatabaseSecret
from vault.errors import AccountUnclear, RecordAltered, no_account, pasteable
from vault.header import Entry, row_digest
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

LONGEST_STRING = 65_536  # bytes
_FORMATS: tuple[str, ...] = get_args(Format)
LONGEST_FILE = 1_000_000
_LONGEST_NAME = 100
_LONGEST_CA = 262_144
_LONGEST_URL = 2000
_MOST_ORIGINS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What can be shown of a record. Times are UTC.

    `verified` is False while the vault is sealed: then everything here is what the file says, unproven, and
    `last_used` (which is sealed) is None.
    """

    account: Account
    created: datetime
    updated: datetime
    last_used: datetime | None
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A record that isn't what the vault wrote. `what` says how, in words."""

    service: str
    name: str
    what: str

    def names(self, service: str, name: str) -> bool:
        return (self.service, self.name) == (service, name)

    def error(self) -> GoexError:
        return altered(self.service, self.name, self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedRecord:
    """A record's row, parsed."""

    id: str
    version: int
    account: Account
    created: str
    updated: str
    wrapped_key: bytes
    sealed: bytes

    @classmethod
    def make(
        cls,
        account: Account,
        secret: Secret,
        master: Secret,
        *,
        vault_id: str,
        record_id: str,
        version: int,
        created: str,
        updated: str,
        random: Random = os.urandom,
    ) -> SealedRecord:
        """Seal `secret` under a fresh data key."""
        key = new_key(random)
        return cls(
            id=record_id,
            version=version,
            account=account,
            created=created,
            updated=updated,
            wrapped_key=seal(master, key, bound_to_data_key(vault_id, record_id, version), random),
            sealed=seal(key, secret, bound_to_record(vault_id, record_id, version, account, created, updated), random),
        )

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> SealedRecord:
        """Parse a row. Raises RecordAltered when it isn't one that `to_row` made."""
        types = (str, int, str, str, str, str, str, int, str, str, str, bytes, bytes)
        record_id, version, service, name, kind, base_url, origins, private, ca_pem, created, updated, key, sealed = row
        try:
            if any(type(value) is not kind for value, kind in zip(row, types, strict=True)) or private not in (0, 1):
                raise ValueError
            account = Account(
                service=service,
                name=name,
                origins=tuple(Origin.parse(origin) for origin in parse(origins)),
                base_url=base_url,
                format=kind,
                private=bool(private),
                ca_pem=ca_pem,
            )
            datetime.fromisoformat(created), datetime.fromisoformat(updated)
        except (InvalidInput, ValueError, TypeError, AttributeError):
            raise altered(service, name, "its row makes no sense") from None
        return cls(
            id=record_id,
            version=version,
            account=account,
            created=created,
            updated=updated,
            wrapped_key=key,
            sealed=sealed,
        )

    def to_row(self) -> dict[str, Any]:
        account = self.account
        return {
            "id": self.id,
            "version": self.version,
            "service": account.service,
            "name": account.name,
            "format": account.format,
            "base_url": account.base_url,
            "origins": canonical(sorted(str(origin) for origin in account.origins)).decode("utf-8"),
            "private": int(account.private),
            "ca_pem": account.ca_pem,
            "created": self.created,
            "updated": self.updated,
            "wrapped_key": self.wrapped_key,
            "sealed": self.sealed,
        }

    def open(self, master: Secret, vault_id: str) -> Secret:
        """The secret. Raises RecordAltered when anything about it was changed."""
        bound = bound_to_record(vault_id, self.id, self.version, self.account, self.created, self.updated)
        try:
            return unseal(self._data_key(master, vault_id), self.sealed, bound)
        except Unopened:
            raise altered(self.account.service, self.account.name, "it doesn't open under its own key") from None

    def rewrap(self, master: Secret, new_master: Secret, vault_id: str, random: Random = os.urandom) -> SealedRecord:
        """The same record for another master key. Raises RecordAltered."""
        try:
            key = self._data_key(master, vault_id)
        except Unopened:
            raise altered(self.account.service, self.account.name, "its data key doesn't open") from None
        wrapped = seal(new_master, key, bound_to_data_key(vault_id, self.id, self.version), random)
        return SealedRecord(
            id=self.id,
            version=self.version,
            account=self.account,
            created=self.created,
            updated=self.updated,
            wrapped_key=wrapped,
            sealed=self.sealed,
        )

    def reseal(self, master: Secret, new_master: Secret, vault_id: str, random: Random = os.urandom) -> SealedRecord:
        """The same account and secret under a new data key, as the next version. Raises RecordAltered."""
        return SealedRecord.make(
            self.account,
            self.open(master, vault_id),
            new_master,
            vault_id=vault_id,
            record_id=self.id,
            version=self.version + 1,
            created=self.created,
            updated=self.updated,
            random=random,
        )

    def entry(self, last_used: datetime | None) -> Entry:
        """What the record index keeps of this row."""
        return Entry(
            service=self.account.service,
            name=self.account.name,
            version=self.version,
            digest=row_digest(tuple(self.to_row().values())),
            last_used=last_used,
        )

    def show(self, *, last_used: datetime | None, verified: bool) -> Record:
        return Record(
            account=self.account,
            created=datetime.fromisoformat(self.created),
            updated=datetime.fromisoformat(self.updated),
            last_used=last_used,
            verified=verified,
        )

    def _data_key(self, master: Secret, vault_id: str) -> Secret:
        return unseal(master, self.wrapped_key, bound_to_data_key(vault_id, self.id, self.version))


def by_name(records: Iterable[Record]) -> tuple[Record, ...]:
    return tuple(sorted(records, key=lambda record: (record.account.service, record.account.name)))


def choose_account(service: str, name: str, good: Iterable[SealedRecord], damage: Iterable[Damage]) -> Account:
    """The account of that name, or the service's only one. A damaged record of the service counts as there: no other
    account is taken in its stead. Raises NoAccount, AccountUnclear, RecordAltered."""
    for each in damage:
        if each.service == service and name in ("", each.name):
            raise each.error()
    found = {row.account.name: row.account for row in good if row.account.service == service}
    if name in found:
        return found[name]
    if not found or name:
        raise no_account(service, name, tuple(sorted(found)))
    if len(found) > 1:
        first = min(found)
        raise AccountUnclear(
            f"There are several accounts for {service}: {', '.join(sorted(found))}.",
            next_step=f"Name one of them: --account {first}, or --service {service}/{first} for a program.",
        )
    return next(iter(found.values()))


def altered(service: object, name: object, what: str) -> RecordAltered:
    """The error for a record that isn't what the vault wrote."""
    label = escape(f"{service}/{name}"[:200])
    return RecordAltered(
        f"The vault's record for {label} was altered outside of GoEx: {what}. It isn't used.",
        next_step="Find out who can write to vault.db; then put the secret again: "
        f"goex vault put {pasteable(str(service))} --account {pasteable(str(name))} --replace",
    )


def check_account(account: Account) -> None:
    """What an account must be like to be stored. Raises InvalidInput. Everything in it is kept in clear."""
    for what, text in (("service", account.service), ("account", account.name)):
        if not text or len(text) > _LONGEST_NAME or "/" in text or text != text.strip() or escape(text) != text:
            raise InvalidInput(
                f"{escape(text[:40])!r} can't be the name of an {what}."
                if what == "account"
                else f"{escape(text[:40])!r} can't be the name of a {what}.",
                next_step=f"Use 1 to {_LONGEST_NAME} visible characters without a slash.",
            )
    if account.format not in _FORMATS:
        raise InvalidInput(f"A secret's format is one of {', '.join(_FORMATS)}.")
    if len(account.base_url) > _LONGEST_URL or len(account.origins) > _MOST_ORIGINS:
        raise InvalidInput(
            f"An account has a base URL of at most {_LONGEST_URL} characters, and at most {_MOST_ORIGINS} origins.",
            next_step="Give the service's own address alone.",
        )
    marks = "#" if account.format == "database" else "?#"
    if any(mark in account.base_url for mark in marks) or escape(account.base_url) != account.base_url:
        raise InvalidInput(
            "A base URL has no query, no fragment and no hidden characters.",
            next_step="Give the part that all of the service's addresses begin with.",
        )
    if account.ca_pem:
        _check_ca(account.ca_pem)


def _check_ca(pem: str) -> None:
    if "PRIVATE KEY" in pem:
        raise InvalidInput(
            "The CA file holds a private key, which would be stored in clear.", next_step="Give the certificate alone."
        )
    if len(pem) > _LONGEST_CA:
        raise InvalidInput(
            f"The CA file is longer than {_LONGEST_CA} bytes.", next_step="Give the authority's certificate alone."
        )
    from cryptography.x509 import load_pem_x509_certificates  # few records have one

    try:
        load_pem_x509_certificates(pem.encode("utf-8"))
    except ValueError:
        raise InvalidInput(
            "The CA file isn't a PEM certificate.", next_step="It begins with -----BEGIN CERTIFICATE-----."
        ) from None


def check_secret(account: Account, secret: Secret) -> None:
    """What a secret must be like for its format. Raises InvalidInput, which doesn't quote it."""
    if not secret:
        raise InvalidInput("The secret is empty.", next_step="Give it again.")
    if account.format == "file":
        if len(secret) > LONGEST_FILE:
            raise InvalidInput(f"The credential file is longer than {LONGEST_FILE} bytes.")
        return
    if account.format == "oauth":
        TokenSet.from_secret(secret)
    elif account.format == "basic":
        Basic.from_secret(secret).check()
    elif account.format == "database":
        DatabaseSecret.from_secret(secret)
    if len(secret) > LONGEST_STRING:
        raise InvalidInput(
            f"The secret is longer than {LONGEST_STRING} bytes.", next_step="Is it a file? Then use --file."
        )
    if any(byte < 0x20 or byte == 0x7F for byte in secret.reveal()):
        raise InvalidInput(
            "The secret has a line break or another control character in it.",
            next_step="Give the token alone; for a credential file use --file.",
        )
    if secret.reveal().strip() != secret.reveal():
        raise InvalidInput("The secret begins or ends with a space.", next_step="Give the token alone.")
