"""The vault's passphrase from a systemd credential, for machines where nobody types it (systemd.exec(5), Credentials).

Rules: read at the daemon's start alone, from $CREDENTIALS_DIRECTORY/goex.vault-passphrase, which the service manager
made for this service: a regular file of root's or ours that nobody else can read or write. A passphrase in an ordinary
environment variable or an argument is not a thing that GoEx reads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from policies.errors import Denied
from vault.secret import Secret

NAME = "goex.vault-passphrase"
_LONGEST = 4096


class CredentialRefused(Denied):
    """The credential is there, and isn't one that only this service can read."""

    code = "credential"


def vault_passphrase(env: Mapping[str, str]) -> Secret | None:
    """The passphrase, or None where no such credential was given. Raises CredentialRefused."""
    folder = env.get("CREDENTIALS_DIRECTORY", "")
    if not folder:
        return None
    path = Path(folder) / NAME
    if not path.is_absolute():
        raise _refused(path, "its folder isn't an absolute path")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(path, f"it can't be opened ({error.strerror})") from None
    try:
        found = os.fstat(handle)
        _check(path, found)
        data = os.read(handle, _LONGEST + 1)
    finally:
        os.close(handle)
    passphrase = data.removesuffix(b"\n").removesuffix(b"\r")
    if not passphrase or len(data) > _LONGEST:
        raise _refused(path, f"it is empty, or longer than {_LONGEST} bytes")
    return Secret(passphrase)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "it isn't a regular file")
    if found.st_uid not in (0, os.geteuid()):
        raise _refused(path, "it belongs to another user")
    # systemd gives root's file to the service by an access list, whose mask shows as the group's right to read.
    masked = found.st_uid == 0 and found.st_gid == 0 and found.st_mode & 0o070 == 0o040
    if found.st_mode & 0o007 or (found.st_mode & 0o070 and not masked):
        raise _refused(path, "others can reach it")


def _refused(path: Path, why: str) -> CredentialRefused:
    return CredentialRefused(
        f"The credential {path} isn't used: {why}.",
        next_step=f"Give it with LoadCredential={NAME}:… or SetCredentialEncrypted= in the service's unit.",
    )
