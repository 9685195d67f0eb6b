"""Opening the vault at the daemon's start, where nobody types: the desktop's keyring, or a systemd credential.

Rules: what was sealed (by the person, by idleness, by a lock) is not opened by the keyring again until the person asks.
A credential is different: the service manager gave it to this start. What fails is said in the log, and the vault stays
sealed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from goex.daemon.credential import vault_passphrase
from goex.daemon.custody import Custody
from policies.errors import GoexError
from vault.secret import Secret

log = logging.getLogger("goex.daemon")


async def open_at_start(custody: Custody, env: Mapping[str, str]) -> None:
    """Unseal the vault if that can be done. Never raises a GoexError."""
    if custody.trouble:
        log.error("the vault can't be used: %s", custody.trouble)
    if custody.state != "sealed":
        return
    try:
        if custody.keyed_by == "passphrase":
            passphrase = vault_passphrase(env)
            if passphrase is not None:
                await custody.unlock(passphrase)
                log.info("the vault was opened by the service's credential")
        elif custody.stays_sealed:
            log.info("the vault stays sealed until you run goex vault unlock: %s", custody.stays_sealed)
        else:
            await custody.unlock(Secret(b""))
    except GoexError as error:
        log.warning("the vault stays sealed: %s", error)
