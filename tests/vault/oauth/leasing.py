"""What a process does that renews a login again and again, until it is killed."""

from __future__ import annotations

from pathlib import Path

from tests.vault.oauth.support import http, soon
from tests.vault.support import protector
from vault.oauth.broker import LoginBroker
from vault.oauth.token_set import TokenSet
from vault.store import Vault


async def main(path: Path) -> None:
    vault = Vault.open(path)
    vault.unlock(protector())
    broker = LoginBroker(vault, connect=lambda _: http())
    while True:
        given = await broker.lease("notes", "work", action_id="a1", expires=soon())
        print(given.secret.reveal().decode(), flush=True)
        opened = vault.open_record("notes", "work")
        vault.renew(opened, TokenSet.from_secret(opened.secret).stale().to_secret())
