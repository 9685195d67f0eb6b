"""A table that goes, or comes, with its rows: DROP TABLE, and CREATE TABLE with a SELECT, or INSERTs into it.

Rules: its definition and all of its rows are kept before it goes. It comes under another name first, is filled,
compared with what was kept, and then gets its own by RENAME TABLE, which the server does whole or not at all: so nobody
sees a part of it, nobody else's row is in it, and what a crash leaves of it is dropped by whoever looks next. It goes
only where its definition and its rows are as kept.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from policies.errors import Conflict, GoexError, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.base import Records
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Job, Schema, Settled, Table
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb import definitions_kept as rows
from runtimes.sql.mariadb import errors, restore
from runtimes.sql.mariadb.capture import WHOLE
from runtimes.sql.mariadb.definitions_foreseen import BACKUP, COPY, LINK, parted, shown
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError, Wire

_ENGINE = re.compile(r"(?m)^\) ENGINE=InnoDB\b")


def refuse(wire: Wire, table: Table, schema: Schema) -> None:
    """Raises Unsupported for a table that couldn't be made again as it is."""
    pointing = [
        one.name
        for one in schema.tables.values()
        if one.name != table.name and any(link.parent.lower() == table.name.lower() for link in one.foreign_keys)
    ]
    if pointing:
        raise Unsupported(
            f"{pointing[0]} points to {table.name} by a foreign key, so {table.name} can't be dropped.",
            next_step=f"Drop {pointing[0]} first.",
        )
    rows.refuse_many(wire, table.name)
    _refuse_unlike(wire, table.name, shown(wire, table.name))


def _refuse_unlike(wire: Wire, table: str, definition: str) -> None:
    """Raises Unsupported for a definition whose text makes another one."""
    try:
        with _copied(wire, definition, table):
            same = _bare(shown(wire, COPY)) == _bare(definition)
    except ServerError:
        same = False
    options = _uncommented(parted(definition)[1][-1])
    if not same or "?" in _uncommented(definition) or "/*" in options:  # the server ignores such an option
        raise foreseen.not_as_it_was(table)


def _bare(definition: str) -> list[str]:
    """What a copy has, too, of a table's definition."""
    return [line for line in parted(definition)[1][1:] if not line.startswith(") ENGINE=")]


def _uncommented(definition: str) -> str:
    """Without its comments: of a character of four bytes the server shows a question mark everywhere else."""
    return re.sub(r" COMMENT[ =]'(?:[^']|'')*'", "", definition)


@contextlib.contextmanager
def _copied(wire: Wire, definition: str, table: str) -> Iterator[None]:
    """Inside, an empty temporary table is there that was made of the text of the definition."""
    links, lines = parted(definition)
    if any(LINK.fullmatch(line) is None for line in links):
        raise foreseen.not_as_it_was(table)  # of another database
    head = lines[0].replace(f"CREATE TABLE {quoted(table)}", f"CREATE TEMPORARY TABLE {quoted(COPY)}", 1)
    end = next(at for at, line in enumerate(lines) if line.startswith(") "))
    text = "\n".join([head, ",\n".join(lines[1:end]), *lines[end:]])
    if any(line.startswith("  FULLTEXT KEY") for line in lines):
        text = _ENGINE.sub(") ENGINE=MyISAM", text)
    with rows.lenient(wire):
        wire.run(text)
    try:
        yield
    finally:
        with contextlib.suppress(GoexError, ServerError):
            wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(COPY)}")


# ---- what is kept


def before_drop(wire: Wire, job: Job, table: str) -> JsonObject:
    """Keep the table, under its lock: what a note says of it. Raises Conflict and Unsupported."""
    form = rows.formed(wire, table)
    lines = rows.read(wire, form, min(WHOLE, job.rows))
    found = rows.digest(lines)
    with _copied(wire, shown(wire, table), table):
        copy = replace(form, table=COPY)
        with rows.lenient(wire):
            restore.insert(wire, copy, lines)
        if rows.digest(rows.read(wire, copy)) != found:
            raise Unsupported(f"The rows of {table} wouldn't be exactly as they were after an undo.", next_step=BACKUP)
    rows.keep(job, form, lines)
    return {
        "rows": {"before": found, "after": ""},
        "definition": _with_counter(wire, table),
        "scratch": scratch(job.id),
        "number": len(lines),
    }


def refuse_orphans(wire: Wire, table: str) -> None:
    """Raises Unsupported where a row points to none: it couldn't be put back. Before the lock, since it looks into
    other tables."""
    if _orphan(wire, table, shown(wire, table)):
        raise Unsupported(
            f"Rows of {table} point to rows that aren't there, so they couldn't be put back.",
            next_step="Mend those rows first.",
        )


def _orphan(wire: Wire, table: str, definition: str) -> str:
    """The table that a row of this one points to in vain; "": none."""
    for line in parted(definition)[0]:
        link = LINK.fullmatch(line)
        if link is None:
            continue
        columns, parents = (re.findall(r"`(?:[^`]|``)*`", link[part]) for part in ("columns", "parents"))
        joined = " AND ".join(f"c.{one} = p.{other}" for one, other in zip(columns, parents, strict=True))
        there = " AND ".join(f"c.{one} IS NOT NULL" for one in columns)
        if wire.rows(
            f"SELECT 1 FROM {quoted(table)} c LEFT JOIN {link['parent']} p ON {joined}"
            f" WHERE {there} AND p.{parents[0]} IS NULL LIMIT 1 LOCK IN SHARE MODE"
        ):
            return link["parent"][1:-1].replace("``", "`")
    return ""


def _with_counter(wire: Wire, table: str) -> str:
    """The definition with the value that AUTO_INCREMENT has come to."""
    ((_, written, *_),) = wire.undecoded(f"SHOW CREATE TABLE {quoted(table)}")
    return str(written.decode())


def scratch(action: str) -> str:
    """The name under which a table is made for that action."""
    return f"goex_back_{hashlib.sha256(action.encode()).hexdigest()[:20]}"


# ---- CREATE TABLE with rows


def make_in_scratch(wire: Wire, job: Job, table: str) -> tuple[str, JsonObject]:
    """Make the table under another name, and keep its rows: its definition, and what a note says of it. The name is the
    only word that isn't the statements' own. Raises Conflict and Unsupported, and leaves nothing."""
    name = scratch(job.id)
    clear(wire, name)
    try:
        for statement in job.program.statements:
            (tree,) = read(statement.sql, Dialect.MARIADB)
            made = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
            made.set("this", exp.to_identifier(name, quoted=True))
            wire.run(write(tree, Dialect.MARIADB))
        definition = shown(wire, name)
        if _ENGINE.search(definition) is None:
            raise Unsupported("The server would keep that table in an engine that doesn't roll back.", next_step=BACKUP)
        _refuse_without_default(table, definition)
        _refuse_unlike(wire, name, definition)
        form = replace(rows.formed(wire, name), table=table)
        lines = rows.read(wire, replace(form, table=name), min(WHOLE, job.rows))
        rows.keep(job, form, lines)
        counted = _with_counter(wire, name).replace(quoted(name), quoted(table), 1)
    except BaseException:
        if not wire.broken:
            clear(wire, name)
        raise
    return definition.replace(quoted(name), quoted(table), 1), {
        "rows": {"before": "", "after": rows.digest(lines)},
        "definition": counted,
        "scratch": name,
        "number": len(lines),
    }


def _refuse_without_default(table: str, definition: str) -> None:
    """Raises Unsupported for a column that may be NULL and has no default, as a SELECT makes of an outer join: by its
    own text it would have one."""
    for line in _bare(definition):
        column = re.match(r"  `((?:[^`]|``)*)` (.*)", _uncommented(line))
        if column and not re.search(r" (NOT NULL|DEFAULT|GENERATED|AUTO_INCREMENT)\b", column[2]):
            raise Unsupported(
                f"The column {column[1]} would have no default, and would get one when {table} is made again.",
                next_step=f"Write its type: CREATE TABLE {table} ({column[1]} {column[2]}) AS SELECT …",
            )


def named(table: str, name: str) -> str:
    return f"RENAME TABLE {quoted(name)} TO {quoted(table)}"


def clear(wire: Wire, name: str) -> None:
    """Drop what a table that wasn't finished left."""
    wire.run(f"DROP TABLE IF EXISTS {quoted(name)}")


# ---- afterwards


def look(wire: Wire, note: Note, now: str) -> Settled:
    """What became of a DROP TABLE, by what has the table's name."""
    table = str(note.definition["table"])
    if not now:
        return Settled(state="done", ran=note.ran)
    same = foreseen.same(now, str(note.definition["before"]))
    kept = note.definition["kept"]["rows"]["before"]
    if same and (note.ended or rows.rows_digest(wire, table) == kept):
        return Settled(state="undone" if note.reverting else "nothing")
    if note.reverting:
        return Settled(state="unknown", ran=note.ran, evidence=(f"{table} is there, and isn't as it was",))
    if note.at == "committed":
        return Settled(state="done", ran=note.ran, evidence=(f"{table} was made by somebody since",))
    return Settled(state="nothing" if same else "unknown", evidence=(f"{table} was changed since",))


# ---- bringing it back


def build(wire: Wire, records: Records, note: JsonObject) -> str:
    """Make the table under another name, with its rows: that name. Raises Conflict, and leaves nothing."""
    table, told = str(note["table"]), note["kept"]
    name, definition = str(told["scratch"]), str(told["definition"])
    form, lines = rows.kept(records)
    wanted = told["rows"]["before"] or told["rows"]["after"]
    clear(wire, name)
    try:
        with rows.lenient(wire):
            wire.run(_called(definition, table, name))
            wire.run("SET SESSION autocommit = 0, foreign_key_checks = 0")
            try:
                restore.insert(wire, replace(form, table=name), lines)
                orphan = _orphan(wire, name, shown(wire, name))
                if orphan:
                    raise Conflict(
                        f"Rows of {table} would point to rows of {orphan} that aren't there. Nothing was changed.",
                        next_step=f"Bring the rows of {orphan} back first.",
                        difference=(f"{orphan}: rows that {table} needs aren't there",),
                    )
                wire.run("COMMIT")
            finally:
                if not wire.broken:
                    wire.run("ROLLBACK")
                    wire.run("SET SESSION autocommit = 1, foreign_key_checks = 1")
        defined = foreseen.same(shown(wire, name), foreseen.uncounted(_called(definition, table, name)))
        if not defined or rows.rows_digest(wire, name) != wanted:
            raise Conflict("What would come back wouldn't be exactly as it was. Nothing was changed.", next_step=BACKUP)
    except BaseException as error:
        if not wire.broken:
            wire.calm()
            clear(wire, name)
        if isinstance(error, ServerError) and error.number not in errors.LOST:
            raise Conflict(
                f"{table} can't be made again as it was: {error.said.message}",
                next_step="Look at what stands against it: the names of its foreign keys, the tables that they name.",
            ) from None
        raise
    return name


def _called(definition: str, table: str, name: str) -> str:
    """The definition under another name, keys to itself too."""
    lines = definition.replace(quoted(table), quoted(name), 1).split("\n")
    for at, line in enumerate(lines):
        link = LINK.fullmatch(line.removesuffix(","))
        if link is not None and link["parent"] == quoted(table):
            ends = "," if line.endswith(",") else ""
            own = foreseen.link(link["name"], link["columns"], quoted(name), link["parents"], link["rest"])
            lines[at] = own + ends
    return "\n".join(lines)
