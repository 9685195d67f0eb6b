"""What can go wrong with the vault, each with its own name and next step.

Rules: no error carries a secret, a key or a passphrase; none is raised for two causes that need different next
steps. A wrong passphrase, a broken file and an altered record are three errors, since a person mends them in three
ways.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from difflib import get_close_matches

from policies.display_text import escape
from policies.errors import Conflict, Denied, ExitStatus, GoexError, InvalidInput, Unavailable

_NAMED = 5  # accounts that somebody may have meant


class VaultError(GoexError):
    """Root of the vault's own errors."""

    code = "vault"
    exit_status = ExitStatus.SEALED


class VaultAbsent(VaultError):
    """There is no vault at that path."""

    code = "vault-absent"


class VaultExists(InvalidInput):
    """A vault is there already; it is never overwritten."""

    code = "vault-exists"


class VaultSealed(VaultError):
    """The operation needs the keys, and the vault is sealed."""

    code = "vault-sealed"


class VaultBroken(VaultError):
    """The file isn't a vault, or its header was damaged or altered. Nothing in it is used."""

    code = "vault-broken"
    exit_status = ExitStatus.FAILED


class VaultTooNew(VaultError):
    """A newer GoEx wrote this vault."""

    code = "vault-too-new"
    exit_status = ExitStatus.UNSUPPORTED


class VaultExposed(VaultError):
    """Somebody else can read or change the vault's file or folder."""

    code = "vault-exposed"
    exit_status = ExitStatus.FAILED


class VaultChanged(Conflict):
    """Somebody else wrote to, or replaced, the vault's file while it was unsealed here. Nothing was written."""

    code = "vault-changed"


class VaultUnwritable(Unavailable):
    """The disk is full, the file is read-only or locked: the old state is intact."""

    code = "vault-unwritable"


class WrongKey(VaultError):
    """The key that was offered doesn't open this vault."""

    code = "wrong-key"


class WrongPassphrase(WrongKey):
    """The passphrase doesn't open this vault, or isn't the approval passphrase."""

    code = "wrong-passphrase"


class RecordAltered(VaultError):
    """A record isn't what the vault wrote: swapped, changed, put back from an earlier time, added or removed."""

    code = "record-altered"
    exit_status = ExitStatus.FAILED


class PayloadAltered(VaultError):
    """A sealed payload isn't what was sealed under that name."""

    code = "payload-altered"
    exit_status = ExitStatus.FAILED


class BackupBroken(VaultError):
    """The file isn't a backup, or its bytes aren't those that were written."""

    code = "backup-broken"
    exit_status = ExitStatus.FAILED


class BackupCut(BackupBroken):
    """The end of the backup is missing."""

    code = "backup-cut"


class BackupTooNew(VaultError):
    """A newer GoEx made this backup."""

    code = "backup-too-new"
    exit_status = ExitStatus.UNSUPPORTED


class NoAccount(VaultError):
    """There is no such account in the vault."""

    code = "no-account"


class RecordReplaced(Conflict):
    """The record was changed or removed since it was opened. Nothing was written."""

    code = "record-replaced"


class AccountUnclear(InvalidInput):
    """The service has several accounts, and none was named."""

    code = "account-unclear"


class AccountExists(InvalidInput):
    """That account is there already, and replacing it wasn't asked for."""

    code = "account-exists"


class ApprovalBackoff(Denied):
    """Too many wrong approval passphrases; `seconds` is how long to wait before the next is looked at."""

    code = "approval-backoff"

    def __init__(self, seconds: float) -> None:
        whole = max(1, round(seconds + 0.5))
        super().__init__(
            "The approval passphrase was wrong too often.", next_step=f"Wait {whole} seconds, then try again."
        )
        self.seconds = seconds


class KeyringError(VaultError):
    """Root of what can go wrong with the desktop's keyring."""

    code = "keyring"
    exit_status = ExitStatus.UNAVAILABLE


class KeyringAbsent(KeyringError):
    """There is no keyring service to be reached."""

    code = "keyring-absent"


class KeyringLocked(KeyringError):
    """The keyring is locked and wasn't unlocked in time."""

    code = "keyring-locked"
    exit_status = ExitStatus.SEALED


class KeyringHung(KeyringError):
    """The keyring didn't answer in time."""

    code = "keyring-hung"


class KeyringPlaintext(KeyringError):
    """The configured keyring would keep the key unencrypted, or in a plain file: refused."""

    code = "keyring-plaintext"


class KeyringUnknown(KeyringError):
    """The configured keyring isn't one of those known to keep secrets: refused."""

    code = "keyring-unknown"


class KeyringKeyMissing(KeyringError):
    """The keyring answers, and doesn't hold this vault's key."""

    code = "keyring-key-missing"
    exit_status = ExitStatus.SEALED


def vault_exists(path: object) -> VaultExists:
    return VaultExists(
        f"There is a vault at {path} already.", next_step="Unlock it with goex vault unlock, or move it away first."
    )


def one_passphrase_twice() -> InvalidInput:
    """Whoever learns the passphrase that unlocks must not be able to approve with it."""
    return InvalidInput(
        "The approval passphrase must be another one than the vault's.", next_step="Choose two different ones."
    )


def backup_is_approval() -> InvalidInput:
    """A backup's passphrase is typed and kept where backups are; whoever learns it must not be able to approve."""
    return InvalidInput(
        "The backup's passphrase must be another one than the approval passphrase.",
        next_step="Choose two different ones.",
    )


def wrong_key(keyed_by: str) -> WrongKey:
    if keyed_by == "passphrase":
        return WrongPassphrase("That passphrase doesn't open this vault.", next_step="Try again; nothing was changed.")
    return WrongKey(
        "The key in the keyring doesn't open this vault.",
        next_step="Restore the keyring or vault.db, so that both are of the same time.",
    )


def no_account(service: str, name: str = "", others: tuple[str, ...] = ()) -> NoAccount:
    said = escape(service[:100])
    what = f"{said} has no account {escape(name[:100])!r}" if name else f"There is no account for {said}"
    there = f" (there is: {', '.join(others)})" if others else ""
    named = f" --account {pasteable(name)}" if name else ""
    put = f"goex vault put {pasteable(service)}{' --base-url https://…' if service == 'model' else ''}{named}"
    login = f"goex auth login {pasteable(service)}{named}"
    add = f"Add it: {put}" if service == "model" else f"Connect it: {login}, or {put}"
    if service == "db":
        what, add = f"There is no database {escape(name[:60])!r}", "See which there are: goex db list"
    return NoAccount(f"{what} in the vault{there}.", next_step=add)


def nothing_to_remove(service: str, name: str, there: Iterable[str]) -> NoAccount:
    """What was to be removed isn't `there`, where accounts are named `SERVICE/NAME`: it was mistyped."""
    said = f"{service}/{name}" if name else service
    every = sorted(there)
    near = [one for one in every if one.partition("/")[0] == service]
    if not near:
        services = get_close_matches(service, {one.partition("/")[0] for one in every}, n=2)
        near = [one for one in every if one.partition("/")[0] in services]
    step = f"Did you mean {' or '.join(map(escape, near[:_NAMED]))}? " if near else ""
    step = f"{step}See which there are: goex vault list"
    return NoAccount(f"There is no account {escape(said[:200])} in the vault.", next_step=step)


def pasteable(word: str) -> str:
    """A word for a command that a person may paste into a shell, wherever the word came from."""
    return shlex.quote(escape(word[:100]))
