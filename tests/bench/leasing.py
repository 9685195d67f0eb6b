"""`lease.p50_ms`: one credential out of a vault of twenty, for one action, with the record read from disk and proven.

The floor opens the same number of bytes with AES-256-GCM once, under a key that is already there. A lease opens
twice (the data key, then the secret), and compares the row with the ledger.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from policies.accounts import Account, Origin
from policies.jsonvalue import canonical
from tests.bench.measure import Row, in_turn, row
from vault.keys import PassphraseProtector
from vault.sealing import bound_to_record
from vault.secret import Secret
from vault.store import Vault

NAME = "lease.p50_ms"
RECORDS = 20
OPERATIONS = 10
_SECRET = b"xoxb-" + b"0123456789" * 5


async def measure() -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        place = Path(folder) / "private"
        place.mkdir(mode=0o700)
        vault = Vault.create(
            place / "vault.db",
            PassphraseProtector(Secret(b"the passphrase of a bench")),
            Secret(b"the approval passphrase of a bench"),
        )
        for number in range(RECORDS):
            vault.put(_account(f"account-{number}"), Secret(_SECRET))
        expires = datetime.now(UTC) + timedelta(hours=1)
        bound = canonical(bound_to_record("0" * 32, "0" * 32, 1, _account("account-7"), str(expires), str(expires)))
        key, nonce = os.urandom(32), os.urandom(12)
        sealed = AESGCM(key).encrypt(nonce, _SECRET, bound)

        async def value() -> None:
            for _ in range(OPERATIONS):
                vault.lease("slack", "account-7", action_id="a-1", expires=expires)
            vault.end_leases("a-1")

        async def floor() -> None:
            for _ in range(OPERATIONS):
                AESGCM(key).decrypt(nonce, sealed, bound)

        timings = await in_turn(value, floor, rounds=200, seconds=5, operations=OPERATIONS)
        vault.seal()
    return (row(NAME, timings[0], "one AES-256-GCM open", timings[1]),)


def _account(name: str) -> Account:
    base = "https://slack.com/api"
    return Account(service="slack", name=name, origins=(Origin.parse(base),), base_url=base)
