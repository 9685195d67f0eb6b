"""The file's pages before and after: for what rows can't tell (definitions, full-text indexes, UTF-16, …).

What is kept are the pages that differ, both sides of each. They are only ever put back onto a file that is, page by
page, what it was right after (or, for redo, right before). Left out of that comparison are the parts that SQLite itself
moves when nothing of the content does: the change counter, the version that wrote last, the journal's mode, the number
of the schema, and pages that are on the free list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import apsw

from policies.errors import Conflict, Unsupported
from runtimes.sql.contract import Limits
from runtimes.sql.records import damaged
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.errors import doubtful, locked

# Of the first page (https://www.sqlite.org/fileformat2.html): write and read version, change counter, schema cookie,
# version-valid-for and version number.
_TOGETHER = 256  # pages that are packed at once
_MOVING = ((18, 20), (24, 28), (40, 44), (92, 100))


@dataclass(frozen=True, slots=True)
class Pages:
    """Both sides of a change. `digests` are of the whole content, before and after; `sizes` in pages."""

    page: int  # bytes
    sizes: tuple[int, int]
    digests: tuple[str, str]
    before: dict[int, bytes]
    after: dict[int, bytes]


def snapshot(connection: Connection, limits: Limits) -> bytes:
    """The content as this connection sees it, its own uncommitted changes included. Raises Unsupported beyond the
    bound of images."""
    db = connection.db
    size = int(db.pragma("page_count")) * int(db.pragma("page_size"))
    if size > limits.image_bytes:
        raise Unsupported(
            f"Taking this back needs the whole file, and its {size // 2**20} MB are more than the"
            f" {limits.image_bytes // 2**20} MB that are kept.",
            next_step="Raise [databases] image_mb in config.toml.",
        )
    return db.serialize("main") or b""


def digest(content: bytes) -> str:
    """Of everything that counts."""
    if not content:
        return hashlib.sha256(b"").hexdigest()
    page = page_size(content)
    view = memoryview(content)
    free = _free(content, page)
    first = bytearray(view[:page])
    for start, end in _MOVING:
        first[start:end] = bytes(end - start)
    found = hashlib.sha256(first)
    at = 1
    for number in [*sorted(free), len(content) // page]:
        found.update(view[at * page : number * page])
        at = number + 1
    return found.hexdigest()


def difference(before: bytes, after: bytes) -> Pages:
    """What changed between two contents."""
    page = page_size(after or before)
    sizes = (len(before) // page, len(after) // page)
    old, new = memoryview(before), memoryview(after)
    ours: dict[int, bytes] = {}
    theirs: dict[int, bytes] = {}
    for number in range(max(sizes)):
        one, other = old[number * page : (number + 1) * page], new[number * page : (number + 1) * page]
        if one != other:
            if one:
                ours[number] = bytes(one)
            if other:
                theirs[number] = bytes(other)
    return Pages(page, sizes, (digest(before), digest(after)), ours, theirs)


def encode(pages: Pages) -> Iterator[bytes]:
    """The image, piece by piece."""
    facts = {
        "page": pages.page,
        "sizes": pages.sizes,
        "digests": pages.digests,
        "before": sorted(pages.before),
        "after": sorted(pages.after),
    }
    yield json.dumps(facts, separators=(",", ":")).encode() + b"\n"
    for side in (pages.before, pages.after):
        numbers = sorted(side)
        for at in range(0, len(numbers), _TOGETHER):
            yield b"".join(side[number] for number in numbers[at : at + _TOGETHER])


def decode(pieces: Iterable[bytes]) -> Pages:
    """The whole image. Raises Conflict when it isn't one."""
    whole = b"".join(pieces)
    head, _, rest = whole.partition(b"\n")
    try:
        facts = json.loads(head)
        page = int(facts["page"])
        numbers = [*((0, n) for n in facts["before"]), *((1, n) for n in facts["after"])]
        if len(rest) != page * len(numbers):
            raise ValueError("cut off")
        sides: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
        for place, (side, number) in enumerate(numbers):
            sides[side][number] = rest[place * page : (place + 1) * page]
        return Pages(page, tuple(facts["sizes"]), tuple(facts["digests"]), *sides)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged() from error


def rebuilt(pages: Pages, now: bytes, verb: str) -> bytes:
    """The content that `verb` ends at, out of the one that it starts from."""
    size, side = (pages.sizes[0], pages.before) if verb == "undo" else (pages.sizes[1], pages.after)
    content = bytearray(now[: size * pages.page].ljust(size * pages.page, b"\0"))
    for number, data in side.items():
        content[number * pages.page : (number + 1) * pages.page] = data
    found = digest(bytes(content))
    if found != pages.digests[0 if verb == "undo" else 1]:
        raise damaged()
    return bytes(content)


def stands(pages: Pages, content: bytes) -> str:
    """ "after", "before", or "" for neither."""
    found = digest(content)
    return "after" if found == pages.digests[1] else "before" if found == pages.digests[0] else ""


def put_back(connection: Connection, pages: Pages, verb: str, limits: Limits) -> None:
    """Write the whole content, all or nothing, onto a file that is compared under the same lock. Raises Conflict."""
    db = connection.db
    if str(db.pragma("journal_mode")) == "wal":
        _put_back_beside_readers(connection, pages, verb, limits)
        return
    # A backup can't be begun inside a transaction, so the lock is kept across the end of one.
    db.pragma("locking_mode", "exclusive")
    try:
        with connection.transaction("EXCLUSIVE"):
            now = snapshot(connection, limits)
            db.execute("COMMIT")
        _copy(db, rebuilt_from(pages, now, verb))
    finally:
        db.pragma("locking_mode", "normal")
        with suppress(apsw.Error):
            db.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # which lets go of it


def _put_back_beside_readers(connection: Connection, pages: Pages, verb: str, limits: Limits) -> None:
    """With a write-ahead log nobody gets the whole file, but a writer keeps out others, and can be read beside."""
    reader = Connection(connection.pinned, limits)
    try:
        source = memory(rebuilt_from(pages, snapshot(reader, limits), verb))
        with connection.db.backup("main", source, "main") as backup:
            try:
                backup.step(0)  # takes the writer's lock
            except apsw.BusyError as error:
                raise locked() from error
            rebuilt_from(pages, snapshot(reader, limits), verb)
            _finish(backup)
    finally:
        reader.close()


def rebuilt_from(pages: Pages, now: bytes, verb: str) -> bytes:
    """`rebuilt`, of a content that is what `verb` starts from. Raises Conflict when it isn't."""
    if stands(pages, now) != ("after" if verb == "undo" else "before"):
        raise changed()
    return rebuilt(pages, now, verb)


def changed() -> Conflict:
    """Somebody wrote to the file since."""
    return Conflict(
        "The database was written to since, and this kind of change can only be taken back while it isn't.",
        next_step="Look at what changed; nothing was touched.",
        difference=("the file holds something else than was left",),
    )


def _copy(db: apsw.Connection, content: bytes) -> None:
    with db.backup("main", memory(content), "main") as backup:
        _finish(backup)


def _finish(backup: apsw.Backup) -> None:
    """Write all pages, and commit them."""
    try:
        backup.step(-1)
    except (apsw.BusyError, apsw.LockedError) as error:
        raise locked() from error
    except apsw.Error as error:
        raise doubtful() from error


def in_memory(content: bytes) -> bytes:
    """The content as it can be opened in memory, where there is no write-ahead log; the file keeps its own mode."""
    return content if content[18:20] == b"\x01\x01" else content[:18] + b"\x01\x01" + content[20:]


def memory(content: bytes) -> apsw.Connection:
    """A database in memory with that content."""
    source = apsw.Connection(":memory:")
    if content:
        source.deserialize("main", in_memory(content))
    return source


def page_size(content: bytes) -> int:
    size = int.from_bytes(content[16:18], "big")
    return 65536 if size == 1 else size


def _free(content: bytes, page: int) -> set[int]:
    """The leaves of the free list (numbered from 0), whose bytes mean nothing."""
    trunk, found, seen = int.from_bytes(content[32:36], "big"), set[int](), set[int]()
    count = len(content) // page
    while 0 < trunk <= count and trunk not in seen:
        seen.add(trunk)
        at = (trunk - 1) * page
        leaves = min(int.from_bytes(content[at + 4 : at + 8], "big"), page // 4 - 2)
        for place in range(leaves):
            leaf = int.from_bytes(content[at + 8 + 4 * place : at + 12 + 4 * place], "big")
            if 1 < leaf <= count:
                found.add(leaf - 1)
        trunk = int.from_bytes(content[at : at + 4], "big")
    return found
