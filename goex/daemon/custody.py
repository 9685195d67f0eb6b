"""The vault as the daemon holds it: absent, sealed or unsealed; and what unlocking sets in motion.

Until the first unlock nothing can be journaled, so nothing is done. Sealing drops the vault's keys and the leases;
the key that MACs the journal stays, so that what is asked of a sealed daemon is still written down. Argon2 and the
keyring are waited for in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from policies.accounts import Account
from policies.errors import Denied, InvalidInput
from vault.errors import VaultAbsent, VaultSealed
from vault.keys import KeyringProtector, PassphraseProtector, Protector
from vault.lease import Lease
from vault.secret import Secret
from vault.store import Vault

Opened = Callable[[], Awaitable[None]]


class WrongApproval(Denied):
    """That isn't the approval passphrase: presence is still due."""

    code = "presence"


class Custody:
    """Holds the vault, and stands for it before the engine. `opened` is awaited after each unlock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._vault: Vault | None = None
        self._changing = asyncio.Lock()
        self.opened: Opened | None = None

    @property
    def state(self) -> str:
        """`absent`, `sealed` or `unsealed`."""
        vault = self._found()
        return vault.state if vault else "absent"

    @property
    def keyed_by(self) -> str:
        vault = self._found()
        return vault.keyed_by if vault else ""

    @property
    def vault(self) -> Vault:
        """The vault, sealed or not. Raises VaultAbsent."""
        found = self._found()
        if found is None:
            raise VaultAbsent("There is no vault yet.", next_step="Make one with: goex vault init")
        return found

    async def init(self, keyed_by: str, passphrase: Secret, approval: Secret) -> None:
        """Make the vault and open it. Raises VaultExists, KeyringError, InvalidInput."""
        async with self._changing:
            protector = _protector(keyed_by, passphrase)
            self._vault = await asyncio.to_thread(Vault.create, self._path, protector, approval)
            await self._tell()

    async def unlock(self, passphrase: Secret) -> None:
        """Unseal. Raises WrongPassphrase, KeyringError, VaultAbsent."""
        async with self._changing:
            vault = self.vault
            await asyncio.to_thread(vault.unlock, _protector(vault.keyed_by, passphrase))
            await self._tell()

    async def rotate(self, passphrase: Secret) -> None:
        """A new master key; with a passphrase also a new passphrase."""
        async with self._changing:
            vault = self.vault
            if passphrase and vault.keyed_by != "passphrase":
                raise InvalidInput(
                    "This vault is keyed by the keyring, so it has no passphrase to change.",
                    next_step="Rotate it without one: goex vault rotate",
                )
            protector: Protector | None = PassphraseProtector(passphrase) if passphrase else None
            if vault.keyed_by == "keyring":
                protector = KeyringProtector()
            await asyncio.to_thread(vault.rotate, protector)

    def seal(self) -> None:
        """Forget the keys. Idempotent."""
        if self._vault is not None:
            self._vault.seal()

    async def prove(self, passphrase: Secret) -> None:
        """Raises WrongApproval unless this is the approval passphrase; ApprovalBackoff after many mistakes."""
        if not passphrase or not await asyncio.to_thread(self.vault.check_approval, passphrase):
            raise WrongApproval("That isn't the approval passphrase.", next_step="Try again.")

    # What the engine and the runtimes see of it.

    def require_open(self) -> None:
        if self.vault.state != "unsealed":
            raise VaultSealed("The vault is sealed.", next_step="Unlock it: goex vault unlock")

    def resolve(self, service: str, name: str = "") -> Account:
        return self.vault.resolve(service, name)

    def lease(self, service: str, name: str, *, action_id: str, expires: datetime) -> Lease:
        return self.vault.lease(service, name, action_id=action_id, expires=expires)

    def end_leases(self, action_id: str) -> None:
        if self._vault is not None:
            self._vault.end_leases(action_id)

    def seal_payload(self, name: str, data: bytes) -> bytes:
        return self.vault.seal_payload(name, data)

    def open_payload(self, name: str, sealed: bytes) -> bytes:
        return self.vault.open_payload(name, sealed)

    def connected(self) -> frozenset[str]:
        """The services that have an account; none without a vault, so that mapping works before there is one."""
        if self.state == "absent":
            return frozenset()
        return frozenset(record.account.service for record in self.vault.records())

    def generation(self) -> dict[str, int]:
        """How often the vault was written, for the journal."""
        return {"generation": self._vault.generation} if self._vault is not None else {}

    def flush_uses(self) -> None:
        """Write the times of last use. Does nothing while sealed."""
        if self._vault is not None and self._vault.state == "unsealed":
            self._vault.flush_uses()

    async def _tell(self) -> None:
        if self.opened is not None:
            await self.opened()

    def _found(self) -> Vault | None:
        if self._vault is None and self._path.exists():
            self._vault = Vault.open(self._path)
        return self._vault


def _protector(keyed_by: str, passphrase: Secret) -> Protector:
    match keyed_by:
        case "keyring":
            return KeyringProtector()
        case "passphrase":
            if not passphrase:
                raise InvalidInput("This vault is opened by its passphrase.", next_step="goex vault unlock")
            return PassphraseProtector(passphrase)
    raise InvalidInput("That can't key a vault.", next_step="It is keyed by `keyring` or by `passphrase`.")
