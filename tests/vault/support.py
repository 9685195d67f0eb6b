"""What the vault's tests share: a cheap cost for passphrases, accounts, a clock that is set by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from policies.accounts import Account, Origin
from vault.keys import Cost, PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

CHEAP = Cost(passes=1, memory=8 * 1024, lanes=1)
PASSPHRASE = "four words in a row"
APPROVAL = "yes it is really me"
CANARY = "canary-7f3a91d0c5e24b6f"
SOON = timedelta(minutes=5)


class HandClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def protector(passphrase: str = PASSPHRASE) -> PassphraseProtector:
    return PassphraseProtector(Secret(passphrase), cost=CHEAP)


def create(path: Path, clock: HandClock | None = None) -> Vault:
    return Vault.create(path, protector(), Secret(APPROVAL), clock=clock or HandClock(), approval_cost=CHEAP)


def reopen(path: Path, passphrase: str = PASSPHRASE, clock: HandClock | None = None) -> Vault:
    vault = Vault.open(path, clock=clock or HandClock())
    vault.unlock(protector(passphrase))
    return vault


def account(service: str = "slack", name: str = "work", **changed: object) -> Account:
    facts: dict[str, object] = {
        "service": service,
        "name": name,
        "origins": (Origin.parse("https://api.example.org"), Origin.parse("https://up.example.org:8443")),
        "base_url": "https://api.example.org/v1",
    }
    return Account(**{**facts, **changed})  # type: ignore[arg-type]


def ca_pem() -> str:
    """A fresh self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test CA")])
    at = datetime(2030, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(at).not_valid_after(at + timedelta(days=9))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def secret_of(vault: Vault, service: str = "slack", name: str = "work") -> bytes:
    lease = vault.lease(service, name, action_id="look", expires=vault._clock() + SOON)
    vault.end_leases("look")
    return lease.secret.reveal()


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection
