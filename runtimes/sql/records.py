"""What an action keeps for its undo: row images, and the record "db.state" of what ran.

Rules: an image is compressed, in pieces, and read back only when whole. "db.state" is written before the first effect
is durable; the rows that a statement gave back are not in it, since nobody may read them later. What can't be read is a
Conflict, never a guess.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from policies.errors import Conflict, GoexError, InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from runtimes.base import Records
from runtimes.sql.contract import Ran, Reached, RowChange

STATE = "db.state"
_BYTES = 64 * 2**20
PIECE = 4 * 2**20  # bytes of one record, compressed
_LARGE = 64 * 2**10  # bytes, whose compression takes longer than to hand them to a thread
_LEVEL = 1  # rows of text shrink well enough, and the action waits for this
T = TypeVar("T")


def write_image(records: Records, name: str, pieces: Iterable[bytes], *, most: int | None, level: int = _LEVEL) -> int:
    """Keep the joined `pieces` durably as `name`; returns how many bytes that took. Raises Conflict beyond `most`, if
    there is one: what was written until then is never read, since the list that names it comes last. Until then an
    image of that name from before stays whole; then its pieces are emptied. `level` 0 is for pieces that are
    compressed already. A piece doesn't change after it was given: a large one is compressed while the next is made, so
    that `most` is noticed one piece later."""
    before = records.get(f"db.{name}")
    old, count, _ = (0, 0, "") if before is None else _listed(before)
    first = old + count
    packer = zlib.compressobj(level)
    digest, waiting, kept, size = hashlib.sha256(), bytearray(), 0, 0

    def put() -> None:
        nonlocal kept, size
        records.put(f"db.{name}.{first + kept:05}", bytes(waiting))
        size += len(waiting)
        kept += 1
        waiting.clear()

    def check() -> None:
        if most is not None and size + len(waiting) > most:
            raise Conflict(
                f"What undo needs of this is larger than {most // 2**20} MB.",
                next_step="Change fewer rows at a time, or raise [databases] image_mb in config.toml.",
            )

    def take(packed: bytes) -> None:
        waiting.extend(packed)
        check()
        if len(waiting) >= PIECE:
            put()

    pending: tuple[Future[bytes], Future[None]] | None = None

    def finish() -> None:
        nonlocal pending
        if pending is not None:
            (packed, hashed), pending = pending, None
            hashed.result()
            take(packed.result())

    with ThreadPoolExecutor(2) as beside:  # a large piece is compressed, and hashed, while the next one is made
        for piece in pieces:
            finish()
            if len(piece) < _LARGE:
                digest.update(piece)
                take(packer.compress(piece))
            else:
                pending = beside.submit(packer.compress, piece), beside.submit(digest.update, piece)
        finish()
    waiting += packer.flush()  # what the packer held back: all of a small image
    check()
    put()
    records.put(f"db.{name}", canonical({"first": first, "pieces": kept, "sha256": digest.hexdigest()}))
    with suppress(GoexError):  # the image is whole, whether the old one's room is given back or not
        for number in range(old, first):
            records.put(f"db.{name}.{number:05}", b"")
    return size


def _listed(data: bytes) -> tuple[int, int, str]:
    """The number of an image's first piece, how many there are, and the digest; older lists begin at 0."""
    return decoded(data, lambda found: (int(found.get("first", 0)), int(found["pieces"]), str(found["sha256"])))


def has_image(records: Records, name: str) -> bool:
    """Whether a whole image of that name was written."""
    return records.get(f"db.{name}") is not None


def read_image(records: Records, name: str) -> Iterator[bytes]:
    """The bytes, piece by piece. Raises Conflict when they aren't all there as written: after the last piece at the
    latest, so nothing may be done for good with the pieces before the iterator has ended."""
    listed = records.get(f"db.{name}")
    if listed is None:
        raise Conflict("What undo needs isn't in the records.", next_step="goex log --verify")
    first, count, expected = _listed(listed)
    unpacker, digest = zlib.decompressobj(), hashlib.sha256()
    for number in range(first, first + count):
        piece = records.get(f"db.{name}.{number:05}")
        if piece is None:
            raise damaged()
        try:
            plain = unpacker.decompress(piece)
        except zlib.error as error:
            raise damaged() from error
        digest.update(plain)
        yield plain
    if not unpacker.eof or unpacker.unused_data or digest.hexdigest() != expected:
        raise damaged()


def put_state(records: Records, facts: JsonObject) -> None:
    """Write the record: on disk when this returns."""
    records.put(STATE, canonical(facts))


def read_state(records: Records, read: Callable[[Any], T]) -> T | None:
    """Return what `read` makes of the record; None where nothing was recorded. Raises Conflict for one that isn't as it
    was written."""
    data = records.get(STATE)
    return None if data is None else decoded(data, read)


def decoded(data: bytes, read: Callable[[Any], T]) -> T:
    """Return what `read` makes of a record's JSON. Raises Conflict for one that isn't as it was written."""
    try:
        return read(parse(data, limit=_BYTES))
    except (InvalidInput, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise damaged() from error


def damaged() -> Conflict:
    return Conflict("What undo needs isn't as it was written.", next_step="goex log --verify")


def reached_to_json(reached: Iterable[Reached]) -> list[JsonValue]:
    return [[one.table, one.verb, one.rows, one.why, list(one.columns)] for one in reached]


def reached_from_json(rows: Any) -> tuple[Reached, ...]:
    """Return what was written; PostgreSQL's records of older versions name no columns."""
    return tuple(
        Reached(
            table=str(table),
            verb=verb,
            rows=int(number),
            why=why,
            columns=tuple(map(str, columns[0] if columns else ())),
        )
        for table, verb, number, why, *columns in rows
    )


def ran_to_json(ran: Ran) -> JsonObject:
    return {
        "reached": reached_to_json(ran.reached),
        "sample": [[one.table, _row(one.before), _row(one.after)] for one in ran.sample],
        "counters": list(ran.counters),
        "notes": list(ran.notes),
    }


def ran_from_json(facts: JsonObject) -> Ran:
    return Ran(
        reached=reached_from_json(facts["reached"]),
        sample=tuple(RowChange(table=table, before=before, after=after) for table, before, after in facts["sample"]),
        counters=tuple(map(str, facts["counters"])),
        notes=tuple(map(str, facts["notes"])),
    )


def _row(row: Mapping[str, str | None] | None) -> JsonValue:
    return None if row is None else dict(row)
