"""Recorded rows: their image, compared with what is there, and put back.

The image is lines of JSON: one for each table, then the rows in parts. Integers, floats, text and blobs come back as
they were, bit by bit. Text that isn't valid UTF-8 can't be held so, and is refused while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import apsw

from policies.display_text import counted
from policies.errors import Unsupported
from runtimes.sql.contract import RowChange
from runtimes.sql.records import damaged
from runtimes.sql.sqlite.errors import Row, Value, key_words, quoted, shown
from runtimes.sql.sqlite.schema import Shape

_PART = 500  # rows in one line of the image
SAMPLE = 50
_LISTED = 20  # differences that are listed

Identity = int | Row


@dataclass(frozen=True, slots=True)
class Change:
    """One row: before and after, None where there was none. `identity` is its rowid, or its key; `hidden` are the
    rowids, before and after, of a row that is known by its key and has one that is no column of its own."""

    table: str
    identity: Identity
    before: Row | None
    after: Row | None
    hidden: tuple[int | None, int | None] = (None, None)

    def sides(self, verb: str) -> tuple[Row | None, Row | None]:
        """What has to be there, and what will be."""
        return (self.after, self.before) if verb == "undo" else (self.before, self.after)


# ---- as bytes


def encode(shapes: Iterable[Shape], changes: list[Change]) -> Iterator[bytes]:
    """The image, piece by piece."""
    numbers = {}
    for number, shape in enumerate(shapes):
        numbers[shape.table] = number
        yield _line(
            {
                "table": shape.table,
                "sql": shape.sql,
                "names": shape.names,
                "places": shape.places,
                "rowid": shape.rowid,
                "key": shape.key,
                "stored": shape.stored,
            }
        )
    parts = iter(changes)
    while part := list(islice(parts, _PART)):
        yield _line([[numbers[c.table], c.identity, c.before, c.after, *_told(c.hidden)] for c in part])


def decode(pieces: Iterable[bytes]) -> tuple[dict[str, Shape], list[Change]]:
    """The whole image. Raises Conflict when it isn't one."""
    shapes: list[Shape] = []
    changes: list[Change] = []
    try:
        for line in _lines(pieces):
            held = json.loads(line, object_hook=_bytes)
            if isinstance(held, dict):
                shapes.append(
                    Shape(
                        table=held["table"],
                        sql=held["sql"],
                        names=tuple(held["names"]),
                        places=tuple(held["places"]),
                        rowid=held["rowid"],
                        key=tuple(held["key"]),
                        stored=tuple(held.get("stored", ())),  # older images have none
                    )
                )
                continue
            for number, identity, before, after, *hidden in held:
                changes.append(
                    Change(
                        shapes[number].table,
                        tuple(identity) if isinstance(identity, list) else identity,
                        None if before is None else tuple(before),
                        None if after is None else tuple(after),
                        (hidden[0], hidden[1]) if hidden else (None, None),
                    )
                )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise damaged() from error
    return {shape.table: shape for shape in shapes}, changes


def _told(hidden: tuple[int | None, int | None]) -> tuple[int | None, ...]:
    return () if hidden == (None, None) else hidden


def _line(held: object) -> bytes:
    return json.dumps(held, default=lambda blob: {"x": blob.hex()}, separators=(",", ":")).encode("ascii") + b"\n"


def _bytes(held: dict[str, Any]) -> object:
    return bytes.fromhex(held["x"]) if held.keys() == {"x"} else held


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        raise ValueError("cut off")


# ---- compared, and put back


class Mismatch(Exception):
    """Rows that aren't as recorded, in words."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__(lines)
        self.lines = lines


def compare(
    db: apsw.Connection,
    shapes: dict[str, Shape],
    now: dict[str, Shape],
    changes: list[Change],
    verb: str,
    *,
    already: bool = False,
) -> None:
    """Raise Mismatch unless every row is what `verb` starts from. `already`: it is asked whether the opposite was done;
    then a row that is known by a hidden rowid alone, and isn't there, must not be anywhere else."""
    lines = []
    for name, shape in shapes.items():
        if name not in now:
            lines.append(f"the table {name} isn't there any more")
        elif now[name].sql != shape.sql:
            lines.append(f"the table {name} is defined otherwise now")
    if lines:
        raise Mismatch(tuple(lines))
    left = 0
    for change in changes:
        shape = shapes[change.table]
        wanted, other = change.sides(verb)
        try:
            found = _find(db, shape, change.identity)
        except UnicodeDecodeError:
            found = ()
        if shape.hidden and isinstance(change.identity, int) and wanted is None and other is not None:
            # Another row may have got its rowid meanwhile: it comes back with another one then. But a row that is there
            # may also be the one that is looked for, changed.
            if not same(found, other) and not (already and (found is not None or _is_anywhere(db, shape, other))):
                continue
        elif same(found, wanted):
            continue
        if len(lines) == _LISTED:
            left += 1
        else:
            lines.append(f"{_which(shape, change)} {_how(shape, wanted, found)}")
    if lines:
        raise Mismatch((*lines, *((f"and {counted(left, 'more row')}",) if left else ())))


def put_back(
    db: apsw.Connection, shapes: dict[str, Shape], changes: list[Change], verb: str
) -> tuple[list[Change], int]:
    """Take away every row that `verb` starts from, then write every one that it ends at: so keys can change places.
    Triggers and foreign keys have to be off. OR ABORT, since without it a table's own ON CONFLICT REPLACE or IGNORE
    would hold, and take away rows that others wrote. Returns the changes as they can be found now, and how many rows
    got another hidden rowid than they had. Raises apsw.Error."""
    for shape in shapes.values():
        gone = [c.identity for c in changes if c.table == shape.table and c.sides(verb)[0] is not None]
        for where, kind in ((f"{quoted(shape.rowid)} = ?", int), (_by_key(shape), tuple)):
            some = [_bound(one) for one in gone if isinstance(one, kind)]
            if some:
                db.executemany(f"DELETE FROM main.{quoted(shape.table)} WHERE {where}", some)  # noqa: S608
    left, moved = [c for c in changes if c.sides(verb)[1] is None], 0
    for shape in shapes.values():
        back = [c for c in changes if c.table == shape.table and c.sides(verb)[1] is not None]
        if shape.hidden:
            back, others = _with_rowids(db, shape, back, verb)
            moved += others
        else:
            insert = insert_into(shape, shape.written(shape.names))
            db.executemany(insert, (shape.written(row) for c in back if (row := c.sides(verb)[1]) is not None))
        left += back
    return left, moved


def _with_rowids(db: apsw.Connection, shape: Shape, back: list[Change], verb: str) -> tuple[list[Change], int]:
    """Write those rows with the rowids that they had, and after them those whose rowid is another row's now."""
    insert = insert_into(shape, (shape.rowid, *shape.written(shape.names)))
    had = {id(c): c.identity if isinstance(c.identity, int) else c.hidden[verb != "undo"] for c in back}
    rowids = [one for one in had.values() if one is not None]
    taken: set[object] = set()
    for at in range(0, len(rowids), _PART):
        some = rowids[at : at + _PART]
        query = f"SELECT {quoted(shape.rowid)} FROM main.{quoted(shape.table)} WHERE {quoted(shape.rowid)} IN"  # noqa: S608
        taken |= {row[0] for row in db.execute(f"{query} ({', '.join('?' * len(some))})", tuple(some))}
    free = [c for c in back if had[id(c)] is not None and had[id(c)] not in taken]
    db.executemany(insert, ((had[id(c)], *shape.written(c.sides(verb)[1] or ())) for c in free))
    others = []
    for c in (c for c in back if had[id(c)] is None or had[id(c)] in taken):
        db.execute(insert, (None, *shape.written(c.sides(verb)[1] or ())))
        others.append(replace(c, identity=db.last_insert_rowid()) if isinstance(c.identity, int) else c)
    return free + others, len(others)


def insert_into(shape: Shape, names: tuple[str, ...], rows: str = "") -> str:
    """An INSERT of those columns: of `rows`, or of values that are bound."""
    columns, marks = ", ".join(quoted(name) for name in names), ", ".join("?" * len(names))
    return f"INSERT OR ABORT INTO main.{quoted(shape.table)} ({columns}) {rows or f'VALUES ({marks})'}"


@contextmanager
def rehearsal(shapes: Iterable[Shape], limit_time: Callable[[apsw.Connection], None]) -> Iterator[apsw.Connection]:
    """A connection with empty tables of the same definitions, in memory, to try on whether the rows that were there can
    be written, and are then what they were. Rows can be older than a type, a NOT NULL or a STRICT of their table, and
    the program that wrote them may compute a column otherwise. What a statement left has gone through all that. Raises
    Unsupported where SQLite refuses something inside."""
    with closing(apsw.Connection(":memory:")) as db:
        db.pragma("trusted_schema", False)
        db.pragma("ignore_check_constraints", True)
        limit_time(db)
        try:
            for shape in shapes:
                db.execute(shape.sql)
            yield db
        except apsw.InterruptError:
            raise
        except apsw.Error as error:
            raise never_back() from error


def never_back() -> Unsupported:
    return Unsupported(
        "A row isn't as its table's definition would have it, so it couldn't be put back exactly. Nothing was changed.",
        next_step="Choose versioning, which keeps the file's pages as they are: --policy versioning.",
    )


def rehearse(shapes: dict[str, Shape], changes: list[Change], limit_time: Callable[[apsw.Connection], None]) -> None:
    """Raise Unsupported unless the rows that were there can be put back."""
    with rehearsal(shapes.values(), limit_time) as db:
        for shape in shapes.values():
            if not _comes_back(db, shape, [c for c in changes if c.table == shape.table and c.before is not None]):
                raise never_back()


def _comes_back(db: apsw.Connection, shape: Shape, changes: list[Change]) -> bool:
    if shape.hidden:
        names = (shape.rowid, *shape.written(shape.names))
        had = (c.identity if isinstance(c.identity, int) else c.hidden[0] for c in changes)
        rows = [(rowid, *shape.written(c.before or ())) for rowid, c in zip(had, changes, strict=True)]
    else:
        names = shape.written(shape.names)
        rows = [shape.written(c.before or ()) for c in changes]
    db.executemany(insert_into(shape, names), rows)
    wanted = {c.identity: c.before for c in changes}
    at = quoted(shape.rowid) if shape.rowid else "0"
    for rowid, *values in db.execute(f"SELECT {at}, {shape.columns} FROM main.{quoted(shape.table)}"):  # noqa: S608
        row = tuple(values)
        if not same(wanted.get(identity_of(shape, rowid, row)), row):
            return False
    return True


def sample(shapes: dict[str, Shape], changes: list[Change]) -> tuple[RowChange, ...]:
    """Some of the rows, for a person."""
    return tuple(
        RowChange(
            table=change.table,
            before=_named(shapes[change.table], change.before),
            after=_named(shapes[change.table], change.after),
        )
        for change in changes[:SAMPLE]
    )


def _named(shape: Shape, row: Row | None) -> dict[str, str | None] | None:
    return None if row is None else {name: shown(value) for name, value in zip(shape.names, row, strict=True)}


def _find(db: apsw.Connection, shape: Shape, identity: Identity) -> Row | None:
    by_rowid = isinstance(identity, int)
    where = f"{quoted(shape.rowid)} = ?" if by_rowid else _by_key(shape)
    query = f"SELECT {shape.columns} FROM main.{quoted(shape.table)} WHERE {where}"  # noqa: S608
    found: Row | None = db.execute(query, _bound(identity)).fetchone()
    # A collation can take another key for this one.
    if found is None or by_rowid or same(key_of(shape, found), _bound(identity)):
        return found
    return None


def _is_anywhere(db: apsw.Connection, shape: Shape, row: Row) -> bool:
    """Whether a row that holds the same is there, under any rowid."""
    where = " AND ".join(f"{quoted(name)} IS ?" for name in shape.names)
    query = f"SELECT {shape.columns} FROM main.{quoted(shape.table)} WHERE {where}"  # noqa: S608
    return any(same(found, row) for found in db.execute(query, row))


def identity_of(shape: Shape, rowid: int, row: Row) -> Identity:
    """What a row is known by: its rowid where that is a column of its own, else its key, unless that holds NULL."""
    if shape.rowid and not shape.hidden:
        return rowid
    key = key_of(shape, row)
    return key if not shape.rowid or (key and None not in key) else rowid


def _bound(identity: Identity) -> Row:
    return identity if isinstance(identity, tuple) else (identity,)


def _by_key(shape: Shape) -> str:
    return " AND ".join(f"{quoted(shape.names[place])} = ?" for place in shape.key)


def key_of(shape: Shape, row: Row) -> Row:
    return tuple(row[place] for place in shape.key) if row else ()


def same(one: Row | None, other: Row | None) -> bool:
    """Equal bit by bit: 1 isn't 1.0, and 0.0 isn't -0.0."""
    if one is None or other is None:
        return one is other
    if one != other or [*map(type, one)] != [*map(type, other)]:
        return False
    return 0.0 not in one or [*map(repr, one)] == [*map(repr, other)]


def _which(shape: Shape, change: Change) -> str:
    if shape.key:
        row: Row = change.after or change.before or ()
        return f"{shape.table} {key_words(tuple(shape.names[n] for n in shape.key), key_of(shape, row))}:"
    identity: tuple[Value, ...] = (change.identity,) if isinstance(change.identity, int) else change.identity
    return f"{shape.table} rowid={shown(identity[0])}:"


def _how(shape: Shape, wanted: Row | None, found: Row | None) -> str:
    if found is None:
        return "the row isn't there any more"
    if wanted is None:
        return "a row is there"
    names = [name for name, one, other in zip(shape.names, wanted, found, strict=False) if not same((one,), (other,))]
    return f"{', '.join(names) or 'the row'} changed since"
