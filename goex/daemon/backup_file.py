"""A backup as a file: written whole or not at all, never over another one, read back before it is called done."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from policies.errors import InvalidInput, Unavailable
from vault.backup import LONGEST, Kept, open_backup
from vault.secret import Secret

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def write(path: Path, data: bytes, passphrase: Secret) -> Kept:
    """Write it, mode 0600, and open what lies there then. Raises InvalidInput where something is there already,
    Unavailable when the disk refuses or doesn't give back what it got; nothing stays there then."""
    _check(path)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    placed = False
    try:
        try:
            _fill(fresh, data)
            try:
                os.link(fresh, path)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                _fill(path, data)  # a file system without links; it is still never written over
            placed = True
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            fresh.unlink(missing_ok=True)
        there = read(path)
        if there != data:
            raise Unavailable(f"{path} doesn't hold what was written.", next_step="Use another disk.")
        return open_backup(there, passphrase)
    except FileExistsError:
        raise InvalidInput(
            f"{path} is there already; a backup overwrites nothing.", next_step="Name another file, or move it away."
        ) from None
    except OSError as error:
        if placed:
            with contextlib.suppress(OSError):
                path.unlink()
        raise Unavailable(
            f"The backup can't be written to {path}: {error.strerror}.", next_step="Check the folder and the disk."
        ) from None
    except Unavailable:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def read(path: Path) -> bytes:
    """A backup's bytes. Raises InvalidInput."""
    _check(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
                raise InvalidInput(f"{path} isn't a backup of a vault.", next_step="Name the right file.")
            return file.read(LONGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", next_step="Name another file.") from None


def _check(path: Path) -> None:
    """Raises InvalidInput for what can't be a file's path."""
    if not path.is_absolute() or not path.name or "\0" in str(path):
        raise InvalidInput("A backup's path must be absolute, and name a file.", next_step="Name the file from / on.")


def _fill(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
