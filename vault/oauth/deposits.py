"""An answer that the vault couldn't take, since it was sealed meanwhile or couldn't be written to, put beside it until
it can.

Rules: it is sealed under a key that only the vault holds (in the announcement of that one renewal), and that was in
memory for as long as the request took. Without the vault it is noise. The file is the user's alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from policies.errors import InvalidInput, Unavailable
from policies.regular_file import read_regular
from vault.aead import Unopened, seal, unseal
from vault.errors import VaultUnwritable
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

_LIMIT = 200_000


def put(vault: Path, tokens: TokenSet, key: Secret) -> None:
    """Keep `tokens` until they can be taken. On disk when it returns. Raises VaultUnwritable."""
    place = _place(vault, tokens.family)
    fresh = place.with_name(place.name + ".new")
    data = seal(key, tokens.to_secret(), ["goex vault v1 late answer", tokens.family])
    try:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(place)
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise VaultUnwritable(
            f"A renewed login can't be kept beside the vault: {error.strerror}.",
            next_step="Check the folder and the disk.",
        ) from None


def take(vault: Path, family: str, key: Secret) -> TokenSet | None:
    """What was put for this login under this key; None where there is none. Raises Unavailable where that can't be
    found out: without the answer that lies there, the old refresh token would be used a second time."""
    if not key:
        return None
    try:
        data = read_regular(_place(vault, family), _LIMIT)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):  # a link isn't what was put
            return None
        raise Unavailable(
            f"Whether a renewed login is kept beside the vault can't be found out: {error.strerror}.",
            next_step="Check the folder and the disk, then retry.",
        ) from None
    with contextlib.suppress(Unopened, InvalidInput):
        found = TokenSet.from_secret(unseal(key, data, ["goex vault v1 late answer", family]))
        return found if found.family == family else None
    return None


def families(vault: Path) -> frozenset[str]:
    """The logins that something lies there for; none where that can't be found out."""
    prefix = _place(vault, "").name
    try:
        names = [one.name.removeprefix(prefix) for one in vault.parent.iterdir() if one.name.startswith(prefix)]
    except OSError:
        return frozenset()
    return frozenset(family for name in names if (family := name.removesuffix(".new")).isalnum())


def drop(vault: Path, family: str) -> None:
    """Forget what was put, and what was begun. Idempotent; never fails: without its key it is noise."""
    place = _place(vault, family)
    for one in (place, place.with_name(place.name + ".new")):
        with contextlib.suppress(OSError):
            one.unlink(missing_ok=True)


def _place(vault: Path, family: str) -> Path:
    if (family and not family.isalnum()) or len(family) > 64:
        raise InvalidInput("A login's name isn't one.")
    return vault.with_name(f"{vault.name}.late-{family}")
