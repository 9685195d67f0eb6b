"""The head of the chain, kept outside the database and MACed with a key of the vault.

Two slots in one file, written in turn and synced: a torn write hurts one slot only. The head is written right after
the rows are committed, so it is at most one transaction behind them; a database that is shorter than the head, or
that has another hash where the head points, was edited or cut.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Unavailable

_SLOT = struct.Struct(">8sQ32s32s")  # magic, rows, hash of the newest, MAC
_MAGIC = b"goexhd1\0"
SLOT_BYTES = 128


@dataclass(frozen=True, slots=True)
class Mark:
    """`count` rows were in the chain, and the newest had `hash`."""

    count: int
    hash: bytes


class Head:
    """The file. Without a key it can be read but not believed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._slot = 0  # the one to be written next: never the one that holds the newest mark

    def write(self, mark: Mark, key: bytes) -> None:
        """Durably replace the older slot. Raises Unavailable when the disk refuses."""
        body = _MAGIC + struct.pack(">Q32s", mark.count, mark.hash)
        slot = body + hmac.digest(key, body, hashlib.sha256)
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.pwrite(handle, slot.ljust(SLOT_BYTES, b"\0"), self._slot * SLOT_BYTES)
                os.fdatasync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(f"The journal's head can't be written: {error.strerror}.") from error
        self._slot = 1 - self._slot

    def read(self, key: bytes) -> Mark | None:
        """The newest slot whose MAC is right, or None when there is none."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        found: list[tuple[Mark, int]] = []
        for number in (0, 1):
            slot = data[number * SLOT_BYTES :][: _SLOT.size]
            if len(slot) < _SLOT.size:
                continue
            magic, count, row_hash, mac = _SLOT.unpack(slot)
            if magic == _MAGIC and hmac.compare_digest(mac, hmac.digest(key, slot[:-32], hashlib.sha256)):
                found.append((Mark(count, row_hash), number))
        if not found:
            return None
        newest, number = max(found, key=lambda item: item[0].count)
        self._slot = 1 - number
        return newest

    def exists(self) -> bool:
        return self._path.exists()
