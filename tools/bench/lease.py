"""`lease.p50_ms`: one credential out of a vault of twenty, for one action, with the record read from disk and proven: a
login whose token is fresh and holds what the action needs, as the daemon leases it. `lease.key.p50_ms` is a plain key
(until there were logins, that was `lease.p50_ms`).

The floor opens the same number of bytes as the key with AES-256-GCM once, under a key that is already there. A lease
opens twice (the data key, then the secret), and compares the row with the grant store.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from policies.accounts import Account, Origin
from policies.jsonvalue import canonical
from tools.bench.measure import Row, in_turn, row
from vault.aead import bound_to_record
from vault.keys import PassphraseProtector
from vault.lease import Lease
from vault.oauth.broker import LoginBroker
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import Access, TokenSet
from vault.secret import Secret
from vault.store import Vault

NAME = "lease.p50_ms"
RECORDS = 20
OPERATIONS = 10
_SECRET = b"xoxb-" + b"0123456789" * 5
_SCOPES = frozenset({"notes.read", "notes.write", "notes.delete"})
_ISSUER = "https://login.example.org"


async def measure(*, seconds: float = 5) -> tuple[Row, ...]:
    with tempfile.TemporaryDirectory(prefix="goex-bench-") as folder:
        place = Path(folder) / "private"
        place.mkdir(mode=0o700)
        vault = Vault.create(
            place / "vault.db",
            PassphraseProtector(Secret(b"the passphrase of a bench")),
            Secret(b"the approval passphrase of a bench"),
        )
        expires = datetime.now(UTC) + timedelta(hours=1)
        for number in range(RECORDS - 2):
            vault.put(_account("slack", f"account-{number}"), Secret(_SECRET))
        vault.put(_account("notes", "whole", "oauth"), _login(_SCOPES).to_secret())
        broker = LoginBroker(vault)
        bound = canonical(
            bound_to_record("0" * 32, "0" * 32, 1, _account("slack", "account-7"), str(expires), str(expires))
        )
        key, nonce = os.urandom(32), os.urandom(12)
        sealed = AESGCM(key).encrypt(nonce, _SECRET, bound)

        def leases(service: str, name: str, scopes: tuple[str, ...]) -> Callable[[], Awaitable[None]]:
            async def once() -> None:
                for _ in range(OPERATIONS):
                    lease = await broker.lease(service, name, action_id="a-1", expires=expires, scopes=scopes)
                    assert isinstance(lease, Lease)
                vault.end_leases("a-1")

            return once

        async def floor() -> None:
            for _ in range(OPERATIONS):
                AESGCM(key).decrypt(nonce, sealed, bound)

        rows = []
        for name, once in (
            (NAME, leases("notes", "whole", tuple(_SCOPES))),
            ("lease.key.p50_ms", leases("slack", "account-7", ())),
        ):
            timings = await in_turn(once, floor, rounds=200, seconds=seconds, operations=OPERATIONS)
            rows.append(row(name, timings[0], "one AES-256-GCM open", timings[1]))
        vault.seal()
    return tuple(rows)


def _login(scopes: frozenset[str]) -> TokenSet:
    now = datetime.now(UTC)
    return TokenSet(
        provider=Provider(issuer=_ISSUER, token_endpoint=f"{_ISSUER}/token"),
        client=Client(client_id="goex"),
        flow="code",
        family="f" * 32,
        access=Access(
            token=Secret(b"t" * 900), scopes=scopes, obtained=now, expires=now + timedelta(hours=2), stated=True
        ),
        refresh=Secret(b"r" * 400),
        asked=scopes,
        granted=scopes,
    )


def _account(service: str, name: str, format: Literal["string", "oauth"] = "string") -> Account:
    base = f"https://{service}.com/api"
    return Account(service=service, name=name, format=format, origins=(Origin.parse(base),), base_url=base)
