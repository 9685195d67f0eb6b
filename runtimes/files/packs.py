"""Writing many contents at once as one of git's packs, with its index.

git itself hashes what it stores four times over, without the processor's SHA instructions, and sets up a compressor
for each small file: that was most of a snapshot's time. So contents are laid into a pack as they are (git's format,
version 2, SHA-256), hashed by the system's library; only what is large and shrinks well is compressed. Everything else
in a repository is git's own doing.

Rules: a pack counts once its index is there under its final name, and both are on disk by then; until then it is a
`tmp_pack_*`, as git's own would be, and is cleaned away like those.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Self

COMMIT, TREE, BLOB = 1, 2, 3
_STORED = 65_535  # the most bytes of a stored block
_SAMPLE = 1 << 16
_CHUNK = 1 << 20
_BUFFER = 1 << 20
_FAR = 1 << 31
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC


class PackWriter:
    """One pack that is being written into `folder`. A context manager: what isn't finished is removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"tmp_pack_{os.getpid()}_{os.urandom(6).hex()}"
        self._file = os.open(self._path, _NEW, 0o600)
        self._held: list[bytes] = []
        self._holding = 0
        self._at = 12
        self._rows: list[tuple[bytes, int, int]] = []  # object id, checksum, offset
        _all(self._file, b"PACK" + struct.pack(">II", 2, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)
        self._path.unlink(missing_ok=True)

    def add(self, oid: str, data: bytes, kind: int = BLOB) -> None:
        """An object whose id the caller has computed."""
        size = len(data)
        if size <= _STORED:
            # A stored block as zlib would write it; setting up a compressor takes longer than all the rest.
            body = b"\x78\x01\x01%b%b%b" % (
                struct.pack("<HH", size, size ^ 0xFFFF),
                data,
                zlib.adler32(data).to_bytes(4, "big"),
            )
        else:
            body = zlib.compress(data, _level(data))
        record = _head(size, kind) + body
        self._rows.append((bytes.fromhex(oid), zlib.crc32(record), self._at))
        self._write(record)

    def stream(self, size: int, read: Callable[[int], bytes]) -> str:
        """A content that comes piece by piece from `read(most)`. Returns its id, "" (and keeps nothing of it) when it
        ends early."""
        began, crc = self._at, 0
        digest = hashlib.sha256(b"blob %d\0" % size)
        chunk = read(min(_CHUNK, size))
        press = zlib.compressobj(_level(chunk))
        left = size
        parts = [_head(size)]
        while chunk:
            left -= len(chunk)
            digest.update(chunk)
            parts.append(press.compress(chunk))
            for part in parts:
                crc = zlib.crc32(part, crc)
                self._write(part)
            parts = []
            chunk = read(min(_CHUNK, left)) if left else b""
        if left:
            self._back(began)
            return ""
        end = press.flush()
        self._rows.append((digest.digest(), zlib.crc32(end, crc), began))
        self._write(end)
        return digest.hexdigest()

    def drop_last(self) -> None:
        """Forget the content that came last: its object stays out of the index, and out of the pack."""
        _, _, began = self._rows.pop()
        self._back(began)

    def finish(self) -> None:
        """Bring the pack and its index to the disk, under their names. Without a content there is none."""
        if not self._rows:
            return
        self._flush()
        os.pwrite(self._file, struct.pack(">I", len(self._rows)), 8)
        os.lseek(self._file, 0, os.SEEK_SET)
        digest = hashlib.sha256()
        while chunk := os.read(self._file, _CHUNK):
            digest.update(chunk)
        checksum = digest.digest()
        _all(self._file, checksum)
        os.fchmod(self._file, 0o400)
        os.fsync(self._file)
        name = self._folder / f"pack-{checksum.hex()}"
        index = self._path.with_name(f"{self._path.name}_idx")
        try:
            file = os.open(index, _NEW, 0o400)
            try:
                _all(file, _index(self._rows, checksum))
                os.fsync(file)
            finally:
                os.close(file)
            self._path.rename(name.with_suffix(".pack"))
            index.rename(name.with_suffix(".idx"))  # last: with it the pack counts
        finally:
            index.unlink(missing_ok=True)
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _write(self, data: bytes) -> None:
        self._at += len(data)
        self._holding += len(data)
        self._held.append(data)
        if self._holding >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        held, self._held, self._holding = b"".join(self._held), [], 0
        _all(self._file, held)

    def _back(self, to: int) -> None:
        """Cut off what was written from there on."""
        self._flush()
        self._at = to
        os.lseek(self._file, to, os.SEEK_SET)
        os.ftruncate(self._file, to)


def stored(folder: Path) -> set[bytes]:
    """The ids of all objects in the packs of `folder`, read from their indexes."""
    found: set[bytes] = set()
    for index in folder.glob("pack-*.idx"):
        data = index.read_bytes()
        count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
        names = data[8 + 256 * 4 : 8 + 256 * 4 + count * 32]
        found.update(names[start : start + 32] for start in range(0, len(names), 32))
    return found


def _level(data: bytes) -> int:
    """1 where compressing a sample pays, 0 where it doesn't."""
    sample = data[:_SAMPLE]
    return 1 if len(zlib.compress(sample, 1)) * 2 < len(sample) else 0


def _head(size: int, kind: int = BLOB) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    if not size:
        return bytes((first,))
    made = [first | 0x80]
    while size > 0x7F:
        made.append(size & 0x7F | 0x80)
        size >>= 7
    made.append(size)
    return bytes(made)


def _index(rows: list[tuple[bytes, int, int]], checksum: bytes) -> bytes:
    rows.sort()
    fan, counts = array("I"), [0] * 256
    for oid, _, _ in rows:
        counts[oid[0]] += 1
    total = 0
    for count in counts:
        total += count
        fan.append(total)
    near, far = array("I"), array("Q")
    for _, _, offset in rows:
        if offset < _FAR:
            near.append(offset)
        else:
            near.append(_FAR | len(far))
            far.append(offset)
    checksums = array("I", [crc for _, crc, _ in rows])
    if sys.byteorder == "little":
        for column in (fan, near, far, checksums):
            column.byteswap()
    made = b"".join(
        (
            b"\377tOc" + struct.pack(">I", 2) + fan.tobytes(),
            *(oid for oid, _, _ in rows),
            checksums.tobytes() + near.tobytes() + far.tobytes() + checksum,
        )
    )
    return made + hashlib.sha256(made).digest()


def _all(file: int, data: bytes) -> None:
    """Write all of it: a call may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
