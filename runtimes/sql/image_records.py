"""Row images in the records: compressed, in pieces, and read back only when whole."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.base import Records

PIECE = 4 * 2**20  # bytes of one record, compressed
_LEVEL = 1  # rows of text shrink well enough, and the action waits for this


def write_image(records: Records, name: str, pieces: Iterable[bytes], *, most: int, level: int = _LEVEL) -> int:
    """Keep the joined `pieces` durably as `name`; returns how many bytes that took. Raises Conflict beyond `most`:
    what was written until then is never read, since the list that names it comes last. `level` 0 is for pieces that
    are compressed already."""
    packer = zlib.compressobj(level)
    digest, waiting, kept, size = hashlib.sha256(), bytearray(), 0, 0

    def put() -> None:
        nonlocal kept, size
        records.put(f"db.{name}.{kept:05}", bytes(waiting))
        size += len(waiting)
        kept += 1
        waiting.clear()

    def check() -> None:
        if size + len(waiting) > most:
            raise Conflict(
                f"What undo needs of this is larger than {most // 2**20} MB.",
                next_step="Change fewer rows at a time, or raise [databases] image_mb in config.toml.",
            )

    for piece in pieces:
        digest.update(piece)
        waiting += packer.compress(piece)
        check()
        if len(waiting) >= PIECE:
            put()
    waiting += packer.flush()  # what the packer held back: all of a small image
    check()
    put()
    records.put(f"db.{name}", canonical({"pieces": kept, "sha256": digest.hexdigest()}))
    return size


def has_image(records: Records, name: str) -> bool:
    """Whether a whole image of that name was written."""
    return records.get(f"db.{name}") is not None


def read_image(records: Records, name: str) -> Iterator[bytes]:
    """The bytes, piece by piece. Raises Conflict when they aren't all there as written: after the last piece at the
    latest, so nothing may be done for good with the pieces before the iterator has ended."""
    listed = records.get(f"db.{name}")
    if listed is None:
        raise Conflict("What undo needs isn't in the records.", next_step="goex log --verify")
    try:
        facts = parse(listed)
        count, expected = int(facts["pieces"]), str(facts["sha256"])
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise _damaged() from error
    unpacker, digest = zlib.decompressobj(), hashlib.sha256()
    for number in range(count):
        piece = records.get(f"db.{name}.{number:05}")
        if piece is None:
            raise _damaged()
        try:
            plain = unpacker.decompress(piece)
        except zlib.error as error:
            raise _damaged() from error
        digest.update(plain)
        yield plain
    if not unpacker.eof or unpacker.unused_data or digest.hexdigest() != expected:
        raise _damaged()


def _damaged() -> Conflict:
    return Conflict("What undo needs isn't as it was written.", next_step="goex log --verify")
