"""What is done with an unsealed vault's own keys: rotated, sealed anew, derived from, backed up; and the approval
passphrase.

The half of `vault.store.Vault` that isn't about accounts. `create`, `rotate` and everything that takes a passphrase run
Argon2id or ask the keyring: call them from a thread.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from vault import errors
from vault.aead import Random, Unopened, derive, open_payload, seal_payload
from vault.approval import Approval
from vault.backup import Kept, keep, seal_backup
from vault.errors import ApprovalBackoff, PayloadAltered, VaultSealed, WrongPassphrase
from vault.header import Header, Reached, RecordIndex, Restored
from vault.keys import Cost, Protector, check_passphrase, same_passphrase
from vault.passkeys import Passkeys
from vault.secret import Secret
from vault.unsealed import Progress, Unsealed, Work, discard, discard_unused, no_progress, nothing

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


class Keeping:
    """What `Vault` inherits: the lock, the unsealed state, and the calls about keys."""

    def __init__(self, path: Path, header: Header, *, clock: Clock = utc_now, random: Random = os.urandom) -> None:
        self._path = path
        self._clock = clock
        self._random = random
        self._header = header
        self._unsealed: Unsealed | None = None
        self._lock = threading.RLock()
        self._approving = threading.Lock()

    # ---- keys ----

    def rotate(
        self, protector: Protector | None = None, *, anew: bool = False, progress: Progress = no_progress
    ) -> None:
        """A new master key; every data key is wrapped anew, in one transaction. With a protector it also gets a new
        wrapping (another passphrase, another keyring entry, or from one to the other).

        With `anew` each record also gets a new data key, its secret is sealed under it, and payloads are sealed with a
        new key from now on; those that there are open until `forget_payload_keys`. `progress` is told how many of how
        many records are done.

        Raises RecordAltered when any record was altered, InvalidInput for a poor passphrase or the approval
        passphrase, KeyringError, VaultUnwritable (then everything is as before). Whoever calls this has checked the
        approval passphrase: being told that the new one equals it would otherwise be a guess without a wait.
        """
        with self._lock:
            approval = self._need().record_index.approval
        if protector is not None and protector.rests_on(approval.matches):
            raise errors.one_passphrase_twice()
        established = protector.establish() if protector is not None else None
        try:
            with self._lock:
                now = self._need()
                old = now.wrapping
                now.rotate(established or old, anew=anew, progress=progress)
                self._header = now.header
        except BaseException:
            if established is not None:
                discard_unused(self._path, established)
            raise
        if established is not None:
            discard(old)

    def derive(self, purpose: str) -> bytes:
        """A 32-byte key for `purpose`: the same for the life of the vault, over every rotation."""
        with self._lock:
            return derive(self._need().record_index.root, purpose)

    def seal_payload(self, name: str, data: bytes) -> bytes:
        """Seal bytes that are kept elsewhere, bound to `name`; they open over every rotation."""
        with self._lock:
            key = self._need().record_index.payload_keys[0]
        return seal_payload(key, name, data, self._random)

    def open_payload(self, name: str, sealed: bytes) -> bytes:
        """Open what `seal_payload` made for the same name. Raises PayloadAltered, VaultSealed."""
        with self._lock:
            keys = self._need().record_index.payload_keys
        for key in keys:
            try:
                return open_payload(key, name, sealed)
            except Unopened:
                continue
        raise PayloadAltered(f"The sealed data {name!r} was altered, or isn't this vault's.")

    def forget_payload_keys(self) -> None:
        """Keep only the newest: what was sealed with an older one, and not sealed anew since, is lost."""
        with self._lock:
            now = self._need()
            if len(now.record_index.payload_keys) > 1:
                self._write(now, dataclasses.replace(now.record_index, payload=now.record_index.payload_keys[:1]))

    # ---- backups ----

    def backup(self, passphrase: Secret, *, cost: Cost | None = None) -> bytes:
        """The whole vault as one sealed file's bytes, under a passphrase of its own (see vault.backup).

        Raises InvalidInput for a poor passphrase or the approval passphrase, RecordAltered when any record was altered,
        VaultSealed.
        """
        check_passphrase(passphrase, "backup passphrase")
        with self._lock:
            approval = self._need().record_index.approval
        if approval.matches(passphrase):
            raise errors.backup_is_approval()
        with self._lock:
            kept = keep(self._need(), self._clock())
        return seal_backup(kept, passphrase, cost=cost or Cost(), random=self._random)

    def fits(self, kept: Kept) -> bool:
        """Whether a backup is of this vault: then whatever hangs on its keys (log, grants, undo data) stays valid."""
        with self._lock:
            return self._need().record_index.root == kept.root

    @property
    def id(self) -> str:
        """What this vault, as it was made or restored, is called. Unproven while sealed."""
        return self._header.vault_id

    @property
    def restored(self) -> Restored | None:
        """How this vault came back from a backup, if it did. Raises VaultSealed."""
        with self._lock:
            return self._need().record_index.restored

    # ---- the log ----

    @property
    def reached(self) -> Reached | None:
        """How far the log had come when it was noted last. Raises VaultSealed."""
        with self._lock:
            return self._need().record_index.reached

    def note_reached(self, reached: Reached) -> None:
        """Note how far the log has come. On disk when it returns. Raises VaultUnwritable, VaultSealed, VaultChanged."""
        with self._lock:
            now = self._need()
            self._write(now, dataclasses.replace(now.record_index, reached=reached))

    # ---- the approval passphrase ----

    def check_approval(self, passphrase: Secret) -> bool:
        """Whether this is the approval passphrase. Counted on disk before it is looked at.

        Raises ApprovalBackoff after repeated mistakes, VaultUnwritable when the attempt can't be counted,
        VaultSealed.
        """
        with self._approving:
            return self._approves(passphrase)

    def change_approval(self, current: Secret, new: Secret, *, cost: Cost | None = None) -> None:
        """Replace the approval passphrase. Raises WrongPassphrase, InvalidInput, and what `check_approval` raises."""
        check_passphrase(new, "approval passphrase")
        with self._approving:  # to the end: a check that began with the old one must not end after it is replaced
            if not self._approves(current):
                raise WrongPassphrase("That isn't the approval passphrase.", next_step="Try again.")
            with self._lock:
                wrapping = self._need().wrapping
            if same_passphrase(wrapping, new):
                raise errors.one_passphrase_twice()
            approval = Approval.of(new, cost or Cost(), self._random)
            with self._lock:
                now = self._need()
                self._write(now, dataclasses.replace(now.record_index, approval=approval))

    def _approves(self, passphrase: Secret) -> bool:
        """`check_approval`, by whoever holds `_approving`."""
        with self._lock:
            now = self._need()
            at = self._clock()
            wait = now.record_index.approval.wait(at)
            if wait > 0:
                raise ApprovalBackoff(wait)
            approval = now.record_index.approval.attempted(at)
            self._write(now, dataclasses.replace(now.record_index, approval=approval))
        if not approval.matches(passphrase):
            return False
        with self._lock:
            now = self._need()
            present = now.record_index.approval
            if present.verifier != approval.verifier:  # what was looked at isn't the approval passphrase any more
                return False
            self._write(now, dataclasses.replace(now.record_index, approval=present.proved()))
        return True

    # ---- passkeys ----

    @property
    def passkeys(self) -> Passkeys:
        """The registered passkeys. Raises VaultSealed."""
        with self._lock:
            return self._need().record_index.passkeys

    def change_passkeys(self, change: Callable[[Passkeys], Passkeys]) -> Passkeys:
        """Change them, on disk when it returns. Raises VaultUnwritable, VaultSealed, VaultChanged, and what `change`
        raises: then nothing was changed."""
        with self._lock:
            now = self._need()
            passkeys = change(now.record_index.passkeys)
            if passkeys != now.record_index.passkeys:
                self._write(now, dataclasses.replace(now.record_index, passkeys=passkeys))
            return passkeys

    def _need(self) -> Unsealed:
        if self._unsealed is None:
            raise VaultSealed("The vault is sealed.", next_step="Run: goex vault unlock.")
        return self._unsealed

    def _write(self, now: Unsealed, record_index: RecordIndex, work: Work = nothing) -> None:
        now.write(record_index, work)
        self._header = now.header
