"""The vault as the daemon holds it: absent, sealed or unsealed; and what unlocking sets in motion.

Until the first unlock nothing can be journaled, so nothing is done. Sealing drops the vault's keys and the leases;
the key that MACs the journal stays, so that what is asked of a sealed daemon is still written down. Argon2 and the
keyring are waited for in threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from goex.daemon.person_threads import in_thread
from goex.daemon.rollback import noted
from policies.accounts import Account
from policies.errors import Denied, GoexError, InvalidInput
from policies.jsonvalue import JsonObject
from policies.regular_file import open_regular, read_regular
from vault.backup import Kept
from vault.errors import VaultAbsent, VaultSealed, one_passphrase_twice
from vault.keys import KeyedBy, KeyringProtector, PassphraseProtector, Protector, Wrapping
from vault.lease import Lease
from vault.record import Record
from vault.secret import Secret
from vault.store import Vault
from vault.unsealed import LiveLease, discard

log = logging.getLogger("goex.daemon")

Opened = Callable[[str], Awaitable[None]]  # with who accepts whatever log is there; "": nobody


class WrongApproval(Denied):
    """That isn't the approval passphrase: presence is still due."""

    code = "presence"


@dataclass(frozen=True, slots=True)
class Established:
    """A protector whose wrapping was made already: what may take long or fail has happened."""

    wrapping: Wrapping

    @classmethod
    def of(cls, protector: Protector, kept: Kept) -> Established:
        """Raises InvalidInput where it rests on the backup's approval passphrase, and what `establish` raises."""
        if protector.rests_on(kept.approval.matches):
            raise one_passphrase_twice()
        return cls(protector.establish())

    @property
    def keyed_by(self) -> KeyedBy:
        return self.wrapping.keyed_by

    def establish(self) -> Wrapping:
        return self.wrapping

    def recall(self, parameters: JsonObject) -> Wrapping:
        return self.wrapping

    def rests_on(self, matches: Callable[[Secret], bool]) -> bool:
        return False  # looked at by `of`


class VaultState:
    """Holds the vault, and stands for it before the engine. `opened` is awaited after each unlock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = path.with_name("sealed")
        self._vault: Vault | None = None
        self._changing = asyncio.Lock()
        self._believed = False  # what lies there was opened, and nobody objected
        self.opened: Opened | None = None
        self.used: Callable[[], None] = lambda: None

    @property
    def state(self) -> str:
        """`absent`, `sealed`, `unsealed`, or `broken`: a file is there, and can't be used (`trouble` says why)."""
        try:
            vault = self._found()
        except GoexError:
            return "broken"
        return vault.state if vault else "absent"

    @property
    def trouble(self) -> str:
        """Why the file that is there can't be used; "" when it can, or there is none."""
        try:
            self._found()
        except GoexError as error:
            return error.message
        return ""

    @property
    def keyed_by(self) -> str:
        with suppress(GoexError):
            vault = self._found()
            return vault.keyed_by if vault else ""
        return ""

    @property
    def vault(self) -> Vault:
        """The vault, sealed or not. Raises VaultAbsent."""
        found = self._found()
        if found is None:
            raise VaultAbsent("There is no vault yet.", next_step="Make it with: goex vault init")
        return found

    async def init(self, keyed_by: str, passphrase: Secret, approval: Secret) -> None:
        """Make the vault and open it. Raises VaultExists, KeyringError, InvalidInput."""
        async with self._changing:
            protector = _protector(keyed_by, passphrase)
            self._vault = await in_thread(Vault.create, self._path, protector, approval)
            await self._tell()

    @property
    def stays_sealed(self) -> str:
        """Why the vault isn't opened by itself at the daemon's start; "" when it may be."""
        try:
            return read_regular(self._mark, 400).decode("utf-8", "replace")[:100] or "it was sealed"
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{self._mark} can't be read: {error.strerror}"

    async def unlock(self, passphrase: Secret, present: Callable[[], Awaitable[str]] | None = None) -> None:
        """Unseal. With `present`, which proves that the person is there and returns who that is, a log that isn't the
        one that the vault knows is accepted. Raises WrongPassphrase, KeyringError, VaultAbsent."""
        async with self._changing:
            vault = self.vault
            was = vault.state
            await in_thread(vault.unlock, _protector(vault.keyed_by, passphrase))
            try:
                by = await present() if present is not None else ""
            except BaseException:
                if was == "sealed":
                    vault.seal()
                raise
            await self._tell(by)

    async def rotate(
        self,
        *,
        keyed_by: str,
        passphrase: Secret,
        current: Secret,
        anew: bool,
        progress: Callable[[int, int], None],
    ) -> None:
        """A new master key; `keyed_by` another, or a new `passphrase`, if they are said. Whoever changes a passphrase
        shows the `current` one, so that a terminal that was left doesn't lock its owner out.

        Raises InvalidInput, WrongPassphrase, KeyringError, and what `Vault.rotate` raises.
        """
        async with self._changing:
            self.require_open()
            vault = self.vault
            wanted = keyed_by or vault.keyed_by
            if passphrase and wanted != "passphrase":
                raise InvalidInput(
                    "This vault is keyed by the keyring, so it has no passphrase to change.",
                    next_step="Give it one instead: goex vault rotate --passphrase",
                )
            changes = bool(passphrase) or wanted != vault.keyed_by
            if changes and vault.keyed_by == "passphrase":
                await in_thread(vault.unlock, _protector("passphrase", current))
            protector = _protector(wanted, passphrase) if changes or wanted == "keyring" else None
            await in_thread(vault.rotate, protector, anew=anew, progress=progress)

    async def restore(
        self,
        kept: Kept,
        *,
        keyed_by: str,
        passphrase: Secret,
        floor: Callable[[], int],
        by: str,
        seal: Callable[[], Awaitable[None]],
    ) -> Path | None:
        """The vault of a backup takes this one's place, and is opened. Returns where the file that was there is kept,
        None when there was none. `seal` is called for a vault that is unsealed, once the new one's key is there: until
        then nothing has changed. `floor` is asked for after that: sealing writes, too. Raises what
        `vault.backup.restore` raises."""
        async with self._changing:
            protector = await in_thread(Established.of, _protector(keyed_by, passphrase), kept)
            try:
                if self.state == "unsealed":
                    await seal()
                self.seal()
            except BaseException:
                await in_thread(discard, protector.establish())
                raise
            aside = _aside(self._path)
            self._vault = await in_thread(Vault.restore, self._path, kept, protector, floor=floor(), by=by, aside=aside)
            await self._tell()
            return aside

    def seal(self, why: str = "") -> None:
        """Forget the keys. Idempotent. With a reason it stays sealed until the person opens it, over restarts too."""
        if why:
            try:
                handle = open_regular(self._mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                with os.fdopen(handle, "w") as file:
                    file.write(why)
            except OSError as error:
                log.warning("a restarted daemon may open the vault again: %s: %s", self._mark, error.strerror)
        if self._vault is not None:
            self._vault.seal()

    async def prove(self, passphrase: Secret) -> None:
        """Raises WrongApproval unless this is the approval passphrase; ApprovalBackoff after many mistakes."""
        if not passphrase or not await in_thread(self.vault.check_approval, passphrase):
            raise WrongApproval("That isn't the approval passphrase.", next_step="Try again.")

    # What the engine and the runtimes see of it.

    def require_open(self) -> None:
        if self.vault.state != "unsealed":
            raise VaultSealed("The vault is sealed.", next_step="Unlock it: goex vault unlock")

    def resolve(self, service: str, name: str = "") -> Account:
        return self.vault.resolve(service, name)

    def lease(self, service: str, name: str, *, action_id: str, expires: datetime) -> Lease:
        self.used()
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
        return frozenset(record.account.service for record in self.records())

    def records(self) -> tuple[Record, ...]:
        """Every account; none where there is no vault that can be read."""
        return () if self.state in ("absent", "broken") else self.vault.records()

    def live_leases(self) -> tuple[LiveLease, ...]:
        """What is lent out now."""
        return self._vault.live_leases() if self._vault is not None else ()

    def noted(self) -> dict[str, object]:
        """Which vault this is and how often it was written, for the journal; nothing of one that was refused."""
        return noted(self._vault) if self._vault is not None and self._believed else {}

    def flush_uses(self) -> None:
        """Write the times of last use. Does nothing while sealed."""
        if self._vault is not None and self._vault.state == "unsealed":
            self._vault.flush_uses()

    async def _tell(self, by: str = "") -> None:
        self._believed = False
        if self.opened is not None:
            await self.opened(by)
        self._believed = True
        self.used()
        with suppress(OSError):
            self._mark.unlink()

    def _found(self) -> Vault | None:
        if self._vault is None and os.path.lexists(self._path):
            self._vault = Vault.open(self._path)
        return self._vault


def _aside(path: Path) -> Path | None:
    """Where the file that is at `path` is kept when another takes its place; None when there is none."""
    if not os.path.lexists(path):
        return None
    return path.with_name(f"{path.name}.replaced-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}")


def _protector(keyed_by: str, passphrase: Secret) -> Protector:
    match keyed_by:
        case "keyring":
            return KeyringProtector()
        case "passphrase":
            if not passphrase:
                raise InvalidInput("This vault is opened by its passphrase.", next_step="goex vault unlock")
            return PassphraseProtector(passphrase)
    raise InvalidInput("Unknown key source.", next_step="Use `keyring` or `passphrase`.")
