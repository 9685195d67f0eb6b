"""Many rows at once: the whole content before and the pages that changed are kept, and rows are told from them later.

Catching rows one by one costs many times what changing them does. Where a statement writes a good part of a file, its
content before and after is copied instead, as fast as memory goes. Undo makes both sides out of it again, in memory,
finds the rows that differ, and then compares and puts back row by row as ever: what others wrote elsewhere stays.
Where a table holds text that isn't valid UTF-8, rows can't be told: the pages are put back while nobody wrote since.
"""

# SQL here is made of quoted names of the schema.
# ruff: noqa: S608

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import apsw

from runtimes.sql.contract import Limits, Schema
from runtimes.sql.records import damaged
from runtimes.sql.sqlite import restore
from runtimes.sql.sqlite.errors import Row, quoted
from runtimes.sql.sqlite.pages import in_memory, memory, page_size
from runtimes.sql.sqlite.restore import Change, Identity, identity_of
from runtimes.sql.sqlite.schema import Shape, shapes

ROWS = 5000  # fewer are caught one by one
BYTES = 1000  # of the file, for each row that is written


def fits(schema: Schema, tables: set[str], rows: int, size: int, limits: Limits) -> bool:
    """Whether this is the way for that many rows of a file of that `size`, in bytes."""
    known = [schema.tables.get(name) for name in tables]
    plain = all(table is not None and not table.facts.get("without_rowid") for table in known)
    return plain and rows >= ROWS and size <= rows * BYTES and 2 * size <= limits.image_bytes


class Packer:
    """Compresses the content before while the statement runs, on a thread, and then what it left."""

    def __init__(self, before: bytes) -> None:
        self._before = before
        self._pool = ThreadPoolExecutor(2)
        self._first = self._pool.submit(zlib.compress, before, 1)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def pieces(self, after: bytes) -> list[bytes]:
        """The image: a line of facts, the content before, and the pages that are another after, in two parts."""
        page = page_size(after or self._before)
        old = self._before
        numbers = [at // page for at in range(0, len(after), page) if old[at : at + page] != after[at : at + page]]
        middle = len(numbers) // 2
        parts = [
            b"".join([after[number * page : (number + 1) * page] for number in part])
            for part in (numbers[:middle], numbers[middle:])
        ]
        packed = [self._first, *(self._pool.submit(zlib.compress, part, 1) for part in parts)]
        done = [one.result() for one in packed]
        facts = {"page": page, "size": len(after), "after": numbers, "parts": [len(one) for one in done]}
        return [json.dumps(facts, separators=(",", ":")).encode() + b"\n", *done]


def sides(pieces: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The content before and after. Raises Conflict when this isn't an image."""
    head, _, rest = b"".join(pieces).partition(b"\n")
    try:
        facts = json.loads(head)
        page, at, parts = int(facts["page"]), 0, []
        for length in facts["parts"]:
            parts.append(zlib.decompress(rest[at : at + length]))
            at += length
        before, changed = parts[0], b"".join(parts[1:])
        after = bytearray(before[: facts["size"]].ljust(facts["size"], b"\0"))
        if at != len(rest) or len(changed) != page * len(facts["after"]):
            raise ValueError("cut off")
        for place, number in enumerate(facts["after"]):
            after[number * page : (number + 1) * page] = changed[place * page : (place + 1) * page]
    except (ValueError, KeyError, TypeError, IndexError, zlib.error) as error:
        raise damaged() from error
    return before, bytes(after)


def changes(
    before: bytes, after: bytes, tables: list[str], *, most: int = -1, moved: bool = True
) -> tuple[dict[str, Shape], list[Change]]:
    """The rows of `tables` that differ, and the shapes of the tables. `most` of each kind of difference: -1 is all;
    without `moved` only those that are there on both sides."""
    found: list[Change] = []
    with closing(memory(before)) as db:
        db.execute("ATTACH ':memory:' AS later")
        db.deserialize("later", in_memory(after))
        kept = shapes(db, tables)
        for shape in kept.values():
            found += _differences(db, shape, most, moved=moved)
    return kept, found


def rehearse(
    before: bytes, after: bytes, kept: dict[str, Shape], limit_time: Callable[[apsw.Connection], None]
) -> None:
    """As `restore.rehearse`, of all rows of these tables that aren't what they were."""
    with restore.rehearsal(kept.values(), limit_time) as db:
        for side, content in (("earlier", before), ("later", after)):
            db.execute(f"ATTACH ':memory:' AS {side}")
            db.deserialize(side, in_memory(content))
        for shape in kept.values():
            table, rowid, differs = quoted(shape.table), quoted(shape.rowid), _differs(shape)
            names = ((shape.rowid,) if shape.hidden else ()) + shape.written(shape.names)
            rows = (
                f"SELECT {', '.join(f'b.{quoted(name)}' for name in names)} FROM earlier.{table} AS b"
                f" LEFT JOIN later.{table} AS a ON a.{rowid} = b.{rowid} WHERE a.{rowid} IS NULL OR {differs}"
            )
            db.execute(restore.insert_into(shape, names, rows))
            tried = f"SELECT 1 FROM main.{table} AS a JOIN earlier.{table} AS b ON a.{rowid} = b.{rowid}"
            if db.execute(f"{tried} WHERE {differs} LIMIT 1").fetchone():
                raise restore.never_back()


def _differs(shape: Shape) -> str:
    """Whether the rows `a` and `b` of a table aren't the same, bit by bit, as SQL."""
    return " OR ".join(
        f"b.{name} COLLATE BINARY IS NOT a.{name} OR typeof(b.{name}) <> typeof(a.{name})"
        f" OR (b.{name} = 0.0 AND printf('%g', b.{name}) <> printf('%g', a.{name}))"
        for name in map(quoted, shape.names)
    )


def _differences(db: apsw.Connection, shape: Shape, most: int, *, moved: bool) -> list[Change]:
    table, rowid = quoted(shape.table), quoted(shape.rowid)
    names = [quoted(name) for name in shape.names]
    old, new = (", ".join(f"{side}.{name}" for name in names) for side in ("b", "a"))
    differs = _differs(shape)
    width, limit = len(names), f"LIMIT {most}"
    both = f"main.{table} AS b JOIN later.{table} AS a ON a.{rowid} = b.{rowid}"
    sides: tuple[dict[Identity, tuple[int, Row]], dict[Identity, tuple[int, Row]]] = ({}, {})

    def add(side: int, at: int, row: Row) -> None:
        sides[side][identity_of(shape, at, row)] = (at, row)

    for row in db.execute(f"SELECT b.{rowid}, {old}, {new} FROM {both} WHERE {differs} {limit}"):
        add(0, row[0], tuple(row[1 : 1 + width]))
        add(1, row[0], tuple(row[1 + width :]))
    for mine, other, is_old in () if not moved else (("main", "later", True), ("later", "main", False)):
        rows = db.execute(
            f"SELECT o.{rowid}, {', '.join(f'o.{name}' for name in names)} FROM {mine}.{table} AS o WHERE NOT EXISTS"
            f" (SELECT 1 FROM {other}.{table} AS x WHERE x.{rowid} = o.{rowid}) {limit}"
        )
        for row in rows:
            add(0 if is_old else 1, row[0], tuple(row[1:]))
    found = []
    for identity in dict.fromkeys((*sides[0], *sides[1])):
        (was_at, before), (at, after) = (side.get(identity, (None, None)) for side in sides)
        known = shape.hidden and isinstance(identity, tuple)
        found.append(Change(shape.table, identity, before, after, (was_at, at) if known else (None, None)))
    return found
