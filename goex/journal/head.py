"""The head of the chain, kept outside the database and MACed with a key of the vault.

It says how far the chain reached when it had been synced last: a chain that ends before that was cut. It is written
after the database, so it is never ahead of it. Two slots are written in turn, so that a torn write hurts only the one
that is being written.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Unavailable
from policies.regular_file import open_regular, read_regular

_BODY = struct.Struct(">8sQQ32sQ32s")  # magic, sequence, rows and hash before, rows and hash after
_MAGIC = b"goexhd1\0"
_MAC_BYTES = 32
SLOT_BYTES = 128


@dataclass(frozen=True, slots=True)
class Mark:
    """`count` rows were in the chain, and the newest had `hash`."""

    count: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Span:
    """What a head says: the chain ended at `before` or at `after`. They are one, but in a head that a GoEx wrote which
    announced each commit beforehand, and was killed in the middle of one."""

    before: Mark
    after: Mark


class Head:
    """The file. Without a key it can't be believed, and isn't read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sequence = 0

    def write(self, mark: Mark, key: bytes, *, sync: bool) -> None:
        """Replace the older slot, durably if `sync`. Raises Unavailable when the disk refuses."""
        self._sequence += 1
        body = _BODY.pack(_MAGIC, self._sequence, mark.count, mark.hash, mark.count, mark.hash)
        slot = body + hmac.digest(key, body, hashlib.sha256)
        try:
            handle = open_regular(self._path, os.O_RDWR | os.O_CREAT)
            try:
                os.pwrite(handle, slot.ljust(SLOT_BYTES, b"\0"), (self._sequence % 2) * SLOT_BYTES)
                if sync:
                    os.fdatasync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(
                f"The journal's head can't be written: {error.strerror}.",
                next_step=f"Free some space below {self._path.parent}, then ask again.",
            ) from error

    def read(self, key: bytes) -> Span | None:
        """The newest slot whose MAC is right, or None when there is none."""
        try:
            data = read_regular(self._path, 2 * SLOT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(
                f"The journal's head can't be read: {error.strerror}.",
                next_step=f"Move {self._path} away and put the file back itself, from the newest copy of the folder.",
            ) from error
        found: dict[int, Span] = {}
        for start in (0, SLOT_BYTES):
            body = data[start : start + _BODY.size]
            mac = data[start + _BODY.size : start + _BODY.size + _MAC_BYTES]
            if len(mac) < _MAC_BYTES or not hmac.compare_digest(mac, hmac.digest(key, body, hashlib.sha256)):
                continue
            magic, sequence, *marks = _BODY.unpack(body)
            if magic == _MAGIC:
                found[sequence] = Span(Mark(*marks[:2]), Mark(*marks[2:]))
        if not found:
            return None
        self._sequence = max(found)
        return found[self._sequence]

    def exists(self) -> bool:
        return self._path.exists()
