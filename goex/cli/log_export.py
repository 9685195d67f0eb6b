"""`goex log --export FILE`: the journal as lines of JSON into a file of its own, or onto stdout.

Rules: a file is never overwritten, nor left half written under its name: the lines go into a file beside it, which
nobody else can read, and which gets the name only when it is whole and on disk.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goex.cli.output import Output
from policies.display_text import counted
from policies.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import audit_pb2 as audit

STDOUT = "-"
_SAID_EVERY = 2.0  # seconds


def export(client: Client, wanted: audit.Wanted, to: str, out: Output) -> int:
    """Write what is wanted to the file `to` ("-": stdout); returns how many rows. Raises GoexError."""
    if to == STDOUT:
        return _copy(client, wanted, sys.stdout.buffer, out)
    path = Path(to)
    with _whole(path) as file:
        return _copy(client, wanted, file, out)


def _copy(client: Client, wanted: audit.Wanted, file: Any, out: Output) -> int:
    from goex.rpc import audit_pb2 as audit

    rows, said = 0, time.monotonic()
    for chunk in client.streamed("Audit/Export", wanted, audit.ExportChunk):
        file.write(chunk.lines)
        rows = chunk.rows
        if time.monotonic() - said >= _SAID_EVERY:
            said = time.monotonic()
            out.progress(f"{counted(rows, 'row')} so far; the journal has {chunk.of}.")
    file.flush()
    return rows


@contextmanager
def _whole(path: Path) -> Iterator[Any]:
    """A file that has `path`'s name only once the block has ended well. Raises GoexError."""
    folder = path.parent
    scratch = folder / f".{path.name[:100]}.{secrets.token_hex(6)}.partial"
    try:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "it is there already")
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(scratch, path)
            _sync(folder)
        finally:
            with suppress(FileNotFoundError):
                scratch.unlink()
    except FileExistsError as error:
        raise InvalidInput(
            f"{path} is there already, and is not overwritten.", next_step="Choose another name, or move it away."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Unavailable(
                f"There is no space for {path}: nothing was left of it.",
                next_step="Free some space, or write elsewhere.",
            ) from error
        raise Unavailable(
            f"{path} can't be written: {error.strerror or error}.", next_step="Write it where you may write."
        ) from error


def _name(scratch: Path, path: Path) -> None:
    """Give the file its name, unless another has it. Raises FileExistsError, OSError."""
    try:
        os.link(scratch, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        # A file system without links: take the name first, so that nobody else's file is replaced.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        scratch.replace(path)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def verify_file(path: str, head: str) -> tuple[bool, str, dict[str, Any]]:
    """Whether an exported file is whole; in words; and as JSON. Raises GoexError when it can't be read."""
    from dataclasses import asdict

    from goex.journal.verify import Altered, check, in_words

    try:
        if path == STDOUT:
            found = check(sys.stdin.buffer, head)
        else:
            with Path(path).open("rb") as file:
                found = check(file, head)
    except Altered as error:
        return False, f"The export was altered: {error}", {"good": False, "problem": str(error)}
    except OSError as error:
        raise InvalidInput(
            f"{path} can't be read: {error.strerror or error}.", next_step="Name another file."
        ) from error
    return True, in_words(found), {"good": True, "problem": "", **asdict(found)}
