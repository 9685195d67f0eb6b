"""The rows of a table whose values a definition loses or changes: kept before it runs, compared and put back after.

Rules: all of it is tried beforehand on a temporary copy with the table's rows, under the lock: what the statement
leaves, and that taking it back gives every row as it was. Taking it back has three steps, each of which the server does
whole or not at all: an ALTER, the values, another ALTER for what looks at the values. How far it came is seen by the
definition and a digest of all rows, so an undo that was cut off goes on where it stood; rows that are in none of these
states were written by somebody else, and nothing is touched.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject, canonical, parse
from runtimes.base import Records
from runtimes.sql.checking.parse import read as trees
from runtimes.sql.contract import Dialect, Job, Schema, Settled, Table
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb import errors, restore
from runtimes.sql.mariadb.capture import WHOLE
from runtimes.sql.mariadb.definitions_foreseen import BACKUP, COPY
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.rows import KNOWN, Form, batches, select_lines
from runtimes.sql.mariadb.wire import LENIENT, STRICT, ServerError, Wire
from runtimes.sql.records import read_image, write_image

IMAGE = "table"
VALUES = "goex_values"


# ---- what can't be kept


def refuse_many(wire: Wire, table: str) -> None:
    """Raises Unsupported for a table of more rows than can be kept, or of types that can't."""
    formed(wire, table)
    (number,) = wire.one(f"SELECT COUNT(*) FROM (SELECT 1 FROM {quoted(table)} LIMIT {WHOLE + 1}) t")
    if int(number) > WHOLE:
        raise Unsupported(f"{table} has more than {WHOLE} rows, which are too many to keep.", next_step=BACKUP)


def refuse(table: Table, schema: Schema, fills: Sequence[str]) -> None:
    """Raises Unsupported for a table of which these columns couldn't be filled again: it has triggers that would fire,
    or nothing tells its rows apart."""
    if not fills or _filler(table, schema, fills) is not None:
        return
    events = "UPDATE" if _key(table, fills) else "INSERT or DELETE"
    raise Unsupported(
        f"What {table.name} would lose can't be put back without its triggers, or the tables that point to it.",
        next_step=f"Drop its triggers for {events} first, or leave it to somebody with a backup.",
    )


@dataclass(frozen=True, slots=True)
class _Filler:
    """How columns are filled. `key` (): nothing tells the rows apart, so all are taken out and put in anew."""

    key: tuple[str, ...]
    moving: tuple[str, ...]  # columns that an UPDATE would set by itself
    fires: bool = False  # triggers, which have to write nothing then


def _filler(table: Table, schema: Schema, fills: Sequence[str]) -> _Filler | None:
    """None: it would fire triggers, or cascade."""
    key = _key(table, fills)
    bodies = [str(body) for _, event, _, body, _ in table.facts["triggers"] if str(event) == "UPDATE"]
    if any(names_one(body, fills) for body in bodies) or (table.triggers and not key):
        return None
    links = [link for one in schema.tables.values() for link in one.foreign_keys if link.parent == table.name]
    if not key and (links or table.foreign_keys):
        return None
    return _Filler(key, tuple(name for name in table.facts["moving"] if name not in fills), bool(bodies))


def names_one(text: str, names: Iterable[str]) -> bool:
    """Whether a trigger's text has one of those names; it may have one that isn't a plain word."""
    words = {one.lower() for one in re.findall(r"[\w$]+", text)}
    return any(not re.fullmatch(r"[\w$]+", name) or name.lower() in words for name in names)


def has_key(table: Table, fills: Sequence[str]) -> bool:
    """Whether something tells its rows apart without those columns."""
    return bool(_key(table, fills))


def _key(table: Table, fills: Sequence[str]) -> tuple[str, ...]:
    """What names a row without those columns; (): nothing does."""
    never = {column.name for column in table.columns if not column.nullable}
    for parts in table.facts["uniques"].values():
        named = tuple(str(name) for name, part in parts if part is None)
        virtual = any(table.facts["forms"][name][3] for name in named)
        if len(named) == len(parts) and set(named) <= never and not set(named) & set(fills) and not virtual:
            return named
    return ()


# ---- rows, and what is kept of them


def formed(wire: Wire, name: str) -> Form:
    """How the rows of a table are written down, of a temporary one too. Raises Unsupported for a type that isn't
    known."""
    columns: list[str] = []
    kinds: list[tuple[str, str]] = []
    stored: list[str] = []
    for column, type_, collation, _, _, _, extra, *_ in wire.rows(f"SHOW FULL COLUMNS FROM {quoted(name)}"):
        if "VIRTUAL" in str(extra).upper():
            continue
        kind = re.split(r"\W", str(type_).lower(), maxsplit=1)[0]
        if kind not in KNOWN:
            raise Unsupported(f"{name}.{column} is of the type {kind[:40]}, which GoEx can't keep.", next_step=BACKUP)
        columns.append(str(column))
        kinds.append((kind, str(collation or "").partition("_")[0]))
        stored += [str(column)] if "GENERATED" in str(extra).upper() else []
    return Form(table=name, columns=tuple(columns), kinds=tuple(kinds), stored=frozenset(stored), key=(), shape="-")


def read(wire: Wire, form: Form, most: int = WHOLE) -> list[str]:
    """All rows. Raises Conflict beyond `most`."""
    return select_lines(wire, f"SELECT {form.ended()} FROM {quoted(form.table)} LIMIT {most + 1}", most)


def digest(lines: Iterable[str]) -> str:
    """Of rows in whatever order."""
    found = hashlib.sha256()
    for line in sorted(lines):
        found.update(line.encode("ascii") + b"\n")
    return found.hexdigest()


def rows_digest(wire: Wire, name: str) -> str:
    return digest(read(wire, formed(wire, name)))


def keep(job: Job, form: Form, lines: list[str]) -> None:
    """Write the rows into the records. Raises Conflict where that takes too much room."""

    def pieces() -> Iterator[bytes]:
        yield canonical({"version": 1, "form": form.as_json()}) + b"\n"
        for some in batches(lines, 5000):
            yield "".join(f"{line}\n" for line in some).encode("ascii")

    write_image(job.records, IMAGE, pieces(), most=job.limits.image_bytes)


def kept(records: Records) -> tuple[Form, list[str]]:
    """What was written. Raises Conflict where it isn't as it was written."""
    head, _, rest = b"".join(read_image(records, IMAGE)).partition(b"\n")
    try:
        told = parse(head)
        if told["version"] != 1:
            raise ValueError
        return Form.from_json(told["form"]), rest.decode("ascii").split("\n")[:-1]
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise Conflict("What undo needs was written by another version.", next_step="goex log --verify") from error


@contextlib.contextmanager
def lenient(wire: Wire) -> Iterator[None]:
    """Inside, what was recorded can be written, whatever today's rules are, and the clock stands still: a new column
    that begins with the moment begins alike each time."""
    wire.run(f"SET SESSION sql_mode = '{LENIENT}', check_constraint_checks = 0, timestamp = 1000000000")
    try:
        yield
    finally:
        if not wire.broken:
            with contextlib.suppress(GoexError, ServerError):
                wire.run(f"SET SESSION sql_mode = '{STRICT}', check_constraint_checks = 1, timestamp = DEFAULT")


# ---- before it runs


def prepare(
    wire: Wire,
    job: Job,
    schema: Schema,
    table: Table,
    undo: tuple[str, str],
    fills: tuple[str, ...],
    more: Callable[[], None],
) -> JsonObject:
    """Try the statement, with what `more` does to the copy, and the two that take it back, on a copy with the table's
    rows, and keep these, under the table's lock: what a note says of them. Raises Conflict, Unsupported, and what the
    server says against the statement."""
    form = formed(wire, table.name)
    lines = read(wire, form, min(WHOLE, job.rows))
    rows = {"before": digest(lines)}
    filler = _filler(table, schema, fills)
    (tree,) = trees(job.program.statements[0].sql, Dialect.MARIADB)
    with foreseen.copied(wire, table.name, tree):
        # Where rows are kept, the statement does more than to drop foreign keys.
        own = ", ".join(quoted(name) for name in form.written)
        with lenient(wire):
            wire.run(f"INSERT INTO {quoted(COPY)} ({own}) SELECT {own} FROM {quoted(table.name)}")
        same = _on(form, COPY)
        alike = digest(read(wire, same)) == rows["before"]
        try:
            wire.run(foreseen.run_on_copy(tree, table.name, foreseen.shown(wire, table.name)))
            rows["middle"] = rows_digest(wire, COPY)
            more()
        except ServerError as error:
            raise error.said from None
        rows["after"] = rows_digest(wire, COPY)
        with lenient(wire):
            wire.run(foreseen.on_copy(undo[0], table.name))
            rows["blank"] = digest(read(wire, same))
            fills = () if rows["blank"] == rows["before"] else fills
            if fills:
                if filler is None:
                    refuse(table, schema, fills)
                    raise foreseen.not_as_it_was(table.name)
                _fill(wire, same, replace(filler, fires=False), fills, lines)  # a copy has no triggers
            if undo[1]:
                wire.run(foreseen.on_copy(undo[1], table.name))
        alike = alike and digest(read(wire, same)) == rows["before"]
    if not alike:
        raise Unsupported(f"The rows of {table.name} wouldn't be exactly as they were after an undo.", next_step=BACKUP)
    if fills:
        if filler is not None and filler.fires:
            _rehearse(wire, form, filler, fills, rows["before"])
        keep(job, form, lines)
    return {
        "rows": rows,
        "fills": list(fills),
        "key": list(filler.key) if filler is not None else [],
        "moving": list(filler.moving) if filler is not None else [],
        "fires": filler is not None and filler.fires,
        "links": list(_links(schema, table.name)),
        "number": len(lines),
    }


def _on(form: Form, table: str) -> Form:
    return replace(form, table=table)


def _fill(wire: Wire, form: Form, filler: _Filler, fills: Sequence[str], lines: Sequence[str]) -> None:
    """Put the values of those columns back, in one statement, or all rows in one transaction."""
    name = quoted(form.table)
    if not filler.key:
        with transaction(wire):
            wire.run(f"DELETE FROM {name}")
            restore.insert(wire, form, lines)
            wire.run("COMMIT")
        return
    columns = (*filler.key, *fills)
    listed, key = (", ".join(map(quoted, names)) for names in (columns, filler.key))
    wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(VALUES)}")
    try:
        wire.run(
            f"CREATE TEMPORARY TABLE {quoted(VALUES)} (PRIMARY KEY ({key})) ENGINE=InnoDB"
            f" SELECT {listed} FROM {name} LIMIT 0"
        )
        there = set(read(wire, form))
        tuples = (_tuple(form, columns, line) for line in lines if line not in there)  # the others stay as they are
        restore.insert_values(wire, f"INSERT INTO {quoted(VALUES)} ({listed}) VALUES ", tuples)
        joined = " AND ".join(f"{name}.{quoted(one)} = {quoted(VALUES)}.{quoted(one)}" for one in filler.key)
        sets = [f"{name}.{quoted(one)} = {quoted(VALUES)}.{quoted(one)}" for one in fills]
        sets += [f"{name}.{quoted(one)} = {name}.{quoted(one)}" for one in filler.moving]
        update = f"UPDATE {name} JOIN {quoted(VALUES)} ON {joined} SET {', '.join(sets)}"
        if not filler.fires:
            wire.run(update)
            return
        with transaction(wire):
            if not _alone(wire, update) or digest(read(wire, form)) != digest(lines):
                raise Conflict(
                    f"A trigger of {form.table} writes when values are put back. Nothing was changed.",
                    next_step="Look at its triggers, then run goex undo again.",
                )
            wire.run("COMMIT")
    finally:
        if not wire.broken:
            wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(VALUES)}")


@contextlib.contextmanager
def transaction(wire: Wire) -> Iterator[None]:
    """Inside, a transaction that is rolled back unless it was committed. START TRANSACTION would let the lock go."""
    wire.run("SET SESSION autocommit = 0")
    try:
        yield
    finally:
        if not wire.broken:
            wire.run("ROLLBACK")
            wire.run("SET SESSION autocommit = 1")


def _rehearse(wire: Wire, form: Form, filler: _Filler, fills: Sequence[str], wanted: str) -> None:
    """Raises Unsupported where the triggers write something when only those columns are written: an UPDATE that changes
    nothing fires them, too, now and at another time."""
    sets = ", ".join(f"{quoted(name)} = {quoted(name)}" for name in (*fills, *filler.moving))
    for moment in ("DEFAULT", "UNIX_TIMESTAMP(SYSDATE(6)) + 34567.891"):
        wire.run(f"SET SESSION timestamp = {moment}")
        try:
            with transaction(wire):
                quiet = _alone(wire, f"UPDATE {quoted(form.table)} SET {sets}") and wanted == digest(read(wire, form))
        except ServerError as error:
            if error.number in errors.LOST:
                raise
            quiet = False
        finally:
            if not wire.broken:
                wire.run("SET SESSION timestamp = DEFAULT")
        if not quiet:
            raise Unsupported(
                f"The triggers of {form.table} would write when its values are put back, so undo wouldn't be exact."
                " Nothing was changed.",
                next_step=BACKUP,
            )


def _alone(wire: Wire, update: str) -> bool:
    """Run an UPDATE: whether nothing was written beside the rows that it changed itself."""
    before = _written(wire)
    changed = wire.run(update).affected
    return tuple(now - then for now, then in zip(_written(wire), before, strict=True)) == (0, changed, 0)


def _written(wire: Wire) -> tuple[int, ...]:
    """How many rows this session put in, changed, and took out."""
    names = ("Handler_write", "Handler_update", "Handler_delete")
    found = dict(wire.rows(f"SHOW SESSION STATUS WHERE variable_name IN ({', '.join(repr(one) for one in names)})"))
    return tuple(int(found[name]) for name in names)


def _tuple(form: Form, columns: Sequence[str], line: str) -> str:
    fields = zip(columns, form.value(line, columns), strict=True)
    return "(" + ",".join(form.literal(name, field) for name, field in fields) + ")"


# ---- afterwards


def look(wire: Wire, note: Note, *, between: bool) -> Settled:
    """What became of one whose undo was begun, and whose table is as before, or as `between` two steps of that."""
    table, told = str(note.definition["table"]), note.definition["kept"]["rows"]
    found = "" if between else rows_digest(wire, table)
    if between or (found == told["blank"] and told["before"] != found):
        return Settled(state="done", ran=note.ran, evidence=(f"{table}: its undo was cut off; undo it again",))
    if found == told["before"]:
        return Settled(state="undone")
    return Settled(state="unknown", ran=note.ran, evidence=(f"{table}: rows were written since its undo was begun",))


def is_unfilled(wire: Wire, note: Note) -> bool:
    """Whether its ALTER ran, and the UPDATEs behind it didn't."""
    told = note.definition["kept"]
    if told.get("moment", "DEFAULT") == "DEFAULT" or told["rows"]["middle"] == told["rows"]["after"]:
        return False
    return rows_digest(wire, str(note.definition["table"])) == str(told["rows"]["middle"])


def refuse_fired(schema: Schema, note: JsonObject, verb: Literal["undo", "redo"], *, more: bool) -> None:
    """Raises Conflict where triggers, or foreign keys, that came since would write when rows are written: in an undo
    those of `fills`, in a redo those of the statements behind it (`more`)."""
    told, table = note["kept"], schema.tables.get(str(note["table"]))
    if table is None or not (told["fills"] if verb == "undo" else more):
        return
    updates = bool(told["key"]) or verb == "redo"
    found = [
        f"trigger {name}"
        for _, event, name, *_ in table.facts["triggers"]
        if (str(event) == "UPDATE") == updates and not told["fires"]
    ]
    links = _links(schema, table.name)
    found += [
        f"foreign key {name}"
        for name, follows in links.items()
        if name not in told.get("links", ()) and (follows or not updates)  # the server holds the others
    ]
    if found:
        raise Conflict(
            f"Rows of {table.name} would be written, and these came since: {', '.join(found)}. Nothing was changed.",
            next_step=f"Drop them, run goex {verb} again, and make them anew.",
            difference=tuple(f"{one}: was made since" for one in found),
        )


def _links(schema: Schema, table: str) -> dict[str, bool]:
    """The foreign keys that point to a table, and whether each follows an UPDATE."""
    keys = ((one.name, link) for one in schema.tables.values() for link in one.foreign_keys)
    return {
        f"{link.name} of {child}": link.on_update not in ("NO ACTION", "RESTRICT")
        for child, link in keys
        if link.parent.lower() == table.lower()
    }


# ---- taking back


def take_back(wire: Wire, records: Records, note: JsonObject, do: Callable[[str], None], *, begun: bool) -> None:
    """Undo it, under the table's lock; `do` runs its first ALTER, unless that has been done (`begun`). Raises Conflict
    where rows aren't as recorded, having touched nothing more."""
    table, told = str(note["table"]), note["kept"]
    fills = tuple(str(one) for one in told["fills"])
    form, lines = kept(records) if fills else (None, [])
    if not begun:
        with lenient(wire):
            do(str(note["undo"]))
    try:
        with lenient(wire):
            if form is not None:
                now = digest(read(wire, form))
                if begun and now not in (told["rows"]["blank"], told["rows"]["before"]):
                    raise written_since(table)
                if now != told["rows"]["before"]:
                    filler = _Filler(tuple(told["key"]), tuple(told["moving"]), bool(told["fires"]))
                    _fill(wire, form, filler, fills, lines)
            if told["late"]:
                wire.run(str(told["late"]))
    except (ServerError, Conflict) as error:
        if isinstance(error, ServerError) and error.number in errors.LOST:
            wire.drop()
            raise errors.doubtful() from None
        said = error.said if isinstance(error, ServerError) else error
        gone_back = not wire.broken and bool(told["forth"]) and not begun
        if not begun and not (gone_back and _gone_back(wire, table, str(told["forth"]), told["rows"]["after"])):
            raise Conflict(
                f"The undo stopped after its first step: {table} is defined as before, without its values."
                f" {said.message.replace(' Nothing was changed.', '')}",
                next_step="Mend that, then run goex undo again: it goes on from there.",
            ) from None
        raise said from None


def _gone_back(wire: Wire, table: str, forth: str, wanted: str) -> bool:
    """Go back to what the statement left: whether every row is as it was then."""
    try:
        with lenient(wire):
            wire.run(forth)
        return rows_digest(wire, table) == wanted
    except (ServerError, Conflict, Unsupported):
        return False


def written_since(table: str) -> Conflict:
    return Conflict(
        f"The rows of {table} aren't as they were left. Nothing was changed.",
        next_step="Look at what differs, and mend it by hand.",
        difference=(f"{table}: rows were written since",),
    )
