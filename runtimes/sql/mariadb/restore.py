"""Brings recorded rows back: compare first, then set, in one transaction.

Every row is compared by its bytes with what was recorded; one that differs, and nothing is touched. Rows are taken out
and put in anew rather than changed, so that keys and unique values may swap between them. Foreign keys are switched
off meanwhile, so that nothing cascades and the order doesn't matter; what they promise is looked up afterwards, and so
is every row that was set. Statements on tables with triggers fire them: what they would change shows there, too.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.errors import Conflict, InvalidInput
from policies.jsonvalue import canonical, parse
from runtimes.base import Records
from runtimes.sql.contract import ForeignKey, Reached, RowChange, Schema, Table, Verb
from runtimes.sql.mariadb import errors
from runtimes.sql.mariadb.capture import WHOLE
from runtimes.sql.mariadb.errors import cut, quoted
from runtimes.sql.mariadb.kept import Kept
from runtimes.sql.mariadb.orphans import Loose
from runtimes.sql.mariadb.rows import LOCK, NULL, Form, batches, select_all, select_keys
from runtimes.sql.mariadb.wire import LENIENT, STRICT, ServerError, Wire
from runtimes.sql.records import read_image

_ABSENT = "~"
_SHARE = " LOCK IN SHARE MODE"
_MANY = 10**9
_TOLD = 20  # differences that are listed


@dataclass(slots=True)
class Rows:
    """One table's rows that differ between two states, by what names them."""

    form: Form
    expect: dict[str, str | None] = field(default_factory=dict)
    want: dict[str, str | None] = field(default_factory=dict)
    brief: int = 0  # as it is kept: how many fields there are of the lines after it; 0: all
    loose: Loose = field(default_factory=dict)  # what rows pointed to in vain before, and may again

    @property
    def gone(self) -> list[str]:
        """Keys of rows that won't be there."""
        return [key for key, line in self.expect.items() if line is not None and self.want.get(key) is None]


Image = list[Rows]


# ---- as kept in the records


def pack(kept: Iterable[Kept], loose: Mapping[str, Loose]) -> Iterator[bytes]:
    """The image of what a capture kept, in pieces. `loose`: what `dangling` found, by table."""
    tables = [one for one in kept if one.changed()]
    forms = [
        {
            **one.form.as_json(),
            "brief": one.brief,
            "loose": {link: sorted(map(list, values)) for link, values in loose.get(one.form.table, {}).items()},
        }
        for one in tables
    ]
    yield canonical({"version": 1, "forms": forms}) + b"\n"
    for number, one in enumerate(tables):
        changed, keyless = one.changed(), not one.form.key
        for start in range(0, len(changed), 5000):
            some = changed.part(start, start + 5000)
            if not one.absent and not keyless:
                head = f"{number}|"
                yield "".join([f"{head}{was}|{now}\n" for _, was, now in some]).encode("ascii")
                continue
            yield "".join(
                f"{number}|{_ABSENT if was is None else was}|{_ABSENT if now is None else now}"
                f"{'|' + key.rpartition('#')[2] if keyless else ''}\n"
                for key, was, now in some
            ).encode("ascii")


def unpack(records: Records, verb: Literal["undo", "redo"]) -> Image:
    """What has to be there now, and what is to be. Raises Conflict when the image isn't whole."""
    head, waiting = b"", b""
    image: Image | None = None
    for piece in read_image(records, "rows"):
        waiting += piece
        if image is None:
            head, found, rest = waiting.partition(b"\n")
            if not found:
                continue
            image, waiting = _forms(head), rest
        whole, _, waiting = waiting.rpartition(b"\n")
        if whole:
            _add(image, whole.decode("ascii"), verb)
    if image is None or waiting:
        raise Conflict("What undo needs isn't as it was written.", next_step="goex log --verify")
    return image


def _forms(head: bytes) -> Image:
    try:
        told = parse(head)
        if told["version"] != 1:
            raise ValueError
        return [
            Rows(
                Form.from_json(form),
                brief=int(form["brief"]),
                loose={link: {tuple(value) for value in values} for link, values in form.get("loose", {}).items()},
            )
            for form in told["forms"]
        ]
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise Conflict("What undo needs was written by another version.", next_step="goex log --verify") from error


def _add(image: Image, text: str, verb: Literal["undo", "redo"]) -> None:
    for told in text.split("\n"):
        number, was, now, *ordinal = told.split("|")
        rows = image[int(number)]
        if rows.brief:
            now += was.split(",", rows.brief)[rows.brief]
        line = was if was != _ABSENT else now
        key = rows.form.key_of(line) if rows.form.key else f"{line}#{ordinal[0]}"
        before, after = (None if one == _ABSENT else one for one in (was, now))
        rows.expect[key], rows.want[key] = (after, before) if verb == "undo" else (before, after)


# ---- comparing


def named(image: Image) -> bool:
    """Whether every row has a name of its own: else that none is there may mean that somebody else changed them."""
    return all(rows.form.key for rows in image)


@dataclass(frozen=True, slots=True)
class Compared:
    """`state` "expected": it can be set; "wanted": it is so already; "other": `differences` says why not."""

    state: Literal["expected", "wanted", "other"]
    differences: tuple[str, ...] = ()
    current: tuple[dict[str, str], ...] = ()


def compare(wire: Wire, image: Image, schema: Schema, lock: str = "") -> Compared:
    """The recorded rows with the ones that are there."""
    told: list[str] = []
    current: list[dict[str, str]] = []
    expected = wanted = True
    for rows in image:
        form = rows.form
        table = schema.tables.get(form.table)
        if table is None or not form.fits(table):
            return Compared("other", (f"the table {form.table} was {'dropped' if table is None else 'altered'} since",))
        if not form.key:
            found = select_all(wire, form, WHOLE + len(rows.expect), lock)
            found = {key: line for key, line in found.items() if key in rows.expect}
        elif form.many(wire, len(rows.expect)):
            found = select_all(wire, form, _MANY, lock)
            found = {key: line for key, line in found.items() if key in rows.expect}
        else:
            found = select_keys(wire, form, rows.expect, _MANY, lock)
        current.append(found)
        expected = expected and found == {key: line for key, line in rows.expect.items() if line is not None}
        wanted = wanted and found == {key: line for key, line in rows.want.items() if line is not None}
        for key in rows.expect.keys() | found.keys():
            if len(told) < _TOLD and found.get(key) != rows.expect.get(key):
                told.append(_difference(form, key, rows.expect.get(key), found.get(key)))
    if expected:
        return Compared("expected", (), tuple(current))
    if wanted:
        return Compared("wanted", tuple(sorted(told)), tuple(current))
    return Compared("other", tuple(sorted(told)), tuple(current))


def _difference(form: Form, key: str, recorded: str | None, found: str | None) -> str:
    row = form.called(key.rpartition("#")[0] if not form.key else key)
    if found is None:
        return f"{row}: isn't there any more"
    if recorded is None:
        return f"{row}: is there now"
    was, now = form.shown(recorded) or {}, form.shown(found) or {}
    changes = [
        f"{name} is {cut(str(now[name]), 60)}, was {cut(str(was[name]), 60)}" for name in was if was[name] != now[name]
    ]
    return f"{row}: {'; '.join(changes) or 'its bytes are others'}"


# ---- setting


def restore(wire: Wire, image: Image, schema: Schema) -> None:
    """Set the wanted rows, in the open transaction, after `compare` with a lock found the expected ones. Raises
    Conflict; whoever called rolls back."""
    counts = [_counted(wire, rows) for rows in image]
    wire.run(f"SET SESSION sql_mode = '{LENIENT}', check_constraint_checks = 0")
    try:
        _take_out(wire, image, schema)
        wire.run("SET SESSION foreign_key_checks = 0")
        for rows in image:
            _delete(wire, rows, [key for key, line in rows.expect.items() if line and rows.want.get(key) is not None])
        for rows in image:
            _refuse_taken(wire, rows, schema.tables[rows.form.table])
            insert(wire, rows.form, (line for line in rows.want.values() if line is not None))
        wire.run("SET SESSION foreign_key_checks = 1")
        _check(wire, image, counts, schema)
    except ServerError as error:
        if error.number == errors.DUPLICATE:
            raise _taken() from None
        raise
    finally:
        if not wire.broken:
            wire.run(f"SET SESSION sql_mode = '{STRICT}', check_constraint_checks = 1, foreign_key_checks = 1")


def _refuse_taken(wire: Wire, rows: Rows, table: Table) -> None:
    """Where triggers may speak, look for the unique values before they are written: what the server would say of them
    is told nobody."""
    form = rows.form
    for index in table.facts["uniques"].values() if table.triggers else ():
        names = tuple(str(name) for name, part in index if part is None)
        if len(names) < len(index) or not set(names) <= set(form.columns):
            continue
        values = {form.value(line, names) for line in rows.want.values() if line is not None}
        for some in batches(one for one in values if NULL not in one):
            if wire.rows(f"SELECT 1 FROM {quoted(table.name)} WHERE {form.among(names, some)} LIMIT 1"):
                raise _taken()


def _taken() -> Conflict:
    return Conflict(
        "A unique value of a row that would come back is another row's now. Nothing was changed.",
        next_step="Look at the rows; goex show ID has them.",
    )


def _take_out(wire: Wire, image: Image, schema: Schema) -> None:
    """The rows that won't be there. Where nothing that we see points to them the server checks for others, too."""
    for rows in image:
        gone = rows.gone
        if not gone:
            continue
        pointed = _pointed(wire, rows, gone, schema)
        wire.run(f"SET SESSION foreign_key_checks = {0 if pointed else 1}")
        try:
            _delete(wire, rows, gone)
        except ServerError as error:
            if error.number not in (1451, 1217):
                raise
            raise Conflict(
                f"Rows of another database point to rows of {rows.form.table} that would go. Nothing was changed.",
                next_step="Take those out first.",
            ) from None


def _pointed(wire: Wire, rows: Rows, gone: list[str], schema: Schema) -> bool:
    for child, link in _children(schema, rows.form.table):
        if not set(link.parent_columns) <= set(rows.form.columns):
            return True
        form = Form.of(child)
        for some in batches(gone):
            values = {rows.form.value(str(rows.expect[key]), link.parent_columns) for key in some}
            values = {one for one in values if NULL not in one}
            if not values:
                continue
            where = form.among(link.columns, values)
            if wire.rows(f"SELECT 1 FROM {quoted(child.name)} WHERE {where} LIMIT 1{_SHARE}"):
                return True
    return False


def _delete(wire: Wire, rows: Rows, keys: list[str]) -> None:
    form = rows.form
    if not form.key:
        lines: dict[str, int] = {}
        for key in keys:
            line = key.rpartition("#")[0]
            lines[line] = lines.get(line, 0) + 1
        for line, number in lines.items():
            did = wire.run(f"DELETE FROM {quoted(form.table)} WHERE {form.line()} = '{line}' LIMIT {number}")
            if did.affected != number:
                raise _meanwhile()
        return
    gone = 0
    for condition in form.by_keys(keys):
        gone += wire.run(f"DELETE FROM {quoted(form.table)} WHERE {condition}").affected
    if gone != len(keys):
        raise _meanwhile()


def insert(wire: Wire, form: Form, lines: Iterable[str]) -> None:
    """Put whole rows into the table of that form."""
    head = f"INSERT INTO {quoted(form.table)} ({','.join(quoted(name) for name in form.written)}) VALUES "
    insert_values(wire, head, (form.values(line) for line in lines))


def insert_values(wire: Wire, head: str, rows: Iterable[str]) -> None:
    """Put rows, as SQL, behind that head, in statements that no server finds too long."""
    waiting: list[str] = []
    size = 0
    for values in rows:
        if waiting and (size + len(values) > 2**20 or len(waiting) >= 1000):
            wire.run(head + ",".join(waiting))
            waiting, size = [], 0
        waiting.append(values)
        size += len(values)
    if waiting:
        wire.run(head + ",".join(waiting))


def _counted(wire: Wire, rows: Rows) -> Counter[str] | None:
    """How often each line is there, of rows without a key: others may have taken away, or added, equal ones."""
    if rows.form.key:
        return None
    return Counter(select_all(wire, rows.form, WHOLE + len(rows.expect), LOCK).values())


def _check(wire: Wire, image: Image, counts: list[Counter[str] | None], schema: Schema) -> None:
    """Every row is as wanted, or of rows without a key as many as wanted; every foreign key holds for what was set."""
    now = compare(wire, [Rows(rows.form, rows.want, rows.expect) for rows in image if rows.form.key], schema, LOCK)
    wrong = now.state != "expected"
    for rows, before in zip(image, counts, strict=True):
        if before is not None:
            before.update(line for line in rows.want.values() if line is not None)
            before.subtract(line for line in rows.expect.values() if line is not None)
            wrong = wrong or _counted(wire, rows) != before
    if wrong:
        raise Conflict(
            "What would come back wouldn't be exactly as it was. Nothing was changed.",
            next_step="Look at the triggers and the columns of the table.",
            difference=now.differences,
        )
    for rows in image:
        table = schema.tables[rows.form.table]
        for link in table.foreign_keys:
            _check_parents(wire, rows, table, link)
        for child, link in _children(schema, table.name):
            _check_children(wire, rows, table, child, link)


def _check_parents(wire: Wire, rows: Rows, table: Table, link: ForeignKey) -> None:
    form = rows.form
    new = set()
    for key, line in rows.want.items():
        if line is not None:
            value = form.value(line, link.columns)
            was = rows.expect.get(key)
            if NULL not in value and (was is None or form.value(was, link.columns) != value):
                new.add(value)
    new -= rows.loose.get(link.name, set())
    parent = ".".join(quoted(part) for part in link.parent.split(".", 1)) if "." in link.parent else quoted(link.parent)
    joined = " AND ".join(
        f"c.{quoted(below)} = p.{quoted(above)}" for below, above in zip(link.columns, link.parent_columns, strict=True)
    )
    for some in batches(new):
        if wire.rows(
            f"SELECT 1 FROM {quoted(table.name)} c LEFT JOIN {parent} p ON {joined}"
            f" WHERE {form.among(link.columns, some, 'c')} AND p.{quoted(link.parent_columns[0])} IS NULL"
            f" LIMIT 1{_SHARE}"
        ):
            raise Conflict(
                f"Rows of {table.name} would point to rows of {link.parent} that aren't there. Nothing was changed.",
                next_step=f"Bring the rows of {link.parent} back first.",
                difference=(f"{link.parent}: rows that {table.name} needs aren't there",),
            )


def _check_children(wire: Wire, rows: Rows, table: Table, child: Table, link: ForeignKey) -> None:
    form = rows.form
    if not set(link.parent_columns) <= set(form.columns):
        raise Conflict(f"Whether {child.name} still fits {table.name} can't be told. Nothing was changed.")
    left = set()
    for key, line in rows.expect.items():
        if line is not None:
            value = form.value(line, link.parent_columns)
            will = rows.want.get(key)
            if NULL not in value and (will is None or form.value(will, link.parent_columns) != value):
                left.add(value)
    below = Form.of(child)
    joined = " AND ".join(
        f"p.{quoted(above)} = c.{quoted(under)}" for under, above in zip(link.columns, link.parent_columns, strict=True)
    )
    for some in batches(left):
        if wire.rows(
            f"SELECT 1 FROM {quoted(child.name)} c LEFT JOIN {quoted(table.name)} p ON {joined}"
            f" WHERE {below.among(link.columns, some, 'c')} AND p.{quoted(link.parent_columns[0])} IS NULL"
            f" LIMIT 1{_SHARE}"
        ):
            raise Conflict(
                f"Rows of {child.name} point to rows of {table.name} that would go. Nothing was changed.",
                next_step=f"Take those rows of {child.name} out first.",
                difference=(f"{child.name}: rows point to what would go",),
            )


def _children(schema: Schema, name: str) -> Iterator[tuple[Table, ForeignKey]]:
    for child in schema.tables.values():
        for link in child.foreign_keys:
            if link.parent == name:
                yield child, link


def _meanwhile() -> Conflict:
    return Conflict("Rows were changed meanwhile. Nothing was changed.", next_step="Try again.")


# ---- what it does, for a person


def reached(image: Image) -> tuple[Reached, ...]:
    found = []
    for rows in image:
        counts: dict[Verb, int] = {"insert": 0, "update": 0, "delete": 0}
        for key, line in rows.expect.items():
            want = rows.want.get(key)
            counts["insert" if line is None else "delete" if want is None else "update"] += 1
        found += [Reached(table=rows.form.table, verb=verb, rows=n) for verb, n in counts.items() if n]
    return tuple(found)


def sample(image: Image, most: int = 50) -> tuple[RowChange, ...]:
    found: list[RowChange] = []
    for rows in image:
        for key, line in rows.expect.items():
            if len(found) >= most:
                return tuple(found)
            found.append(
                RowChange(
                    table=rows.form.table, before=rows.form.shown(line), after=rows.form.shown(rows.want.get(key))
                )
            )
    return tuple(found)
