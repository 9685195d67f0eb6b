"""Statements that define, which MariaDB commits at once: one alone, with the statement that takes it back.

Rules: what is taken back is tried beforehand on an empty temporary copy of the table, and has to give the same
definition again, to the letter. The record is written before the statement runs, and holds the definition as it was;
the definition that it left is added when it has run. Undo and redo lock the table, compare its definition with the
recorded one, look for rows that would be lost, and only then run.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Job, Policy, Ran, Reached, Schema, Settled, Statement, Table, turned
from runtimes.sql.mariadb import errors, settle
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError, Wire

_COPY = "goex_try"
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_BACKUP = "Leave it to somebody with a backup."
_MISSING = 1146


@dataclass(frozen=True, slots=True)
class Definition:
    """`undo` takes the statement back; `lost` is a SELECT that gives a row where undo would lose one ("": never)."""

    table: str
    undo: str
    lost: str
    lock: bool  # whether undo locks it: a view has no rows


def planned(wire: Wire, schema: Schema, statements: tuple[Statement, ...], policy: Policy) -> Definition:
    """How that statement is taken back. Raises Unsupported."""
    only = statements[0]
    verb = only.verb.upper()
    if policy == "versioning":
        raise Unsupported(f"MariaDB commits {verb} at once, so it can't be held.", next_step="Use --policy reversal.")
    if len(statements) > 1:
        raise Unsupported(
            f"MariaDB commits {verb} at once, so it can't be one of several statements that are undone together.",
            next_step="Make it an action of its own.",
        )
    (tree,) = read(only.sql, Dialect.MARIADB)
    found = _inverse(tree, only, schema)
    if found is None:
        raise Unsupported(f"MariaDB commits {verb} at once, and it can't be taken back exactly.", next_step=_BACKUP)
    if only.verb == "alter":
        _try(wire, tree, found)
    return found


def _inverse(tree: exp.Expr, statement: Statement, schema: Schema) -> Definition | None:
    name = statement.table
    if isinstance(tree, exp.Create) and statement.verb == "create":
        return _created(tree, name, schema)
    table = schema.tables[name]
    if table.facts["engine"] != "InnoDB" or table.facts["versioned"] or table.facts["partitioned"]:
        return None
    if isinstance(tree, exp.Create):
        index = tree.this
        columns = [part.this.name.lower() for part in index.args["params"].args.get("columns") or () if part.this]
        linked = {key.columns[0].lower() for key in table.foreign_keys}
        if linked & set(columns[:1]):
            return None  # the server may drop the index that it made for the foreign key
        return Definition(name, f"DROP INDEX {quoted(index.name)} ON {quoted(name)}", "", True)
    if not isinstance(tree, exp.Alter) or len(tree.args["actions"]) != 1:
        return None
    (action,) = tree.args["actions"]
    if isinstance(action, exp.RenameColumn) and not table.triggers:
        old, new = quoted(action.this.name), quoted(action.args["to"].name)
        return Definition(name, f"ALTER TABLE {quoted(name)} RENAME COLUMN {new} TO {old}", "", True)
    if isinstance(action, exp.ColumnDef) and _plain(action, table):
        column = quoted(action.name)
        lost = f"SELECT 1 FROM {quoted(name)} WHERE NOT {column} <=> DEFAULT({column}) LIMIT 1"
        return Definition(name, f"ALTER TABLE {quoted(name)} DROP COLUMN {column}", lost, True)
    return None


def _created(tree: exp.Create, name: str, schema: Schema) -> Definition | None:
    kind = str(tree.args.get("kind")).upper()
    if name.lower() in (one.lower() for one in schema.tables) or tree.args.get("replace"):
        raise Unsupported(f"{name} is there already.", next_step="Choose another name.")
    if kind == "VIEW":
        return Definition(name, f"DROP VIEW {quoted(name)}", "", False)
    engine = tree.find(exp.EngineProperty)
    if tree.args.get("expression") is not None or (engine is not None and engine.name.upper() != "INNODB"):
        return None
    return Definition(name, f"DROP TABLE {quoted(name)}", f"SELECT 1 FROM {quoted(name)} LIMIT 1", True)


def _plain(column: exp.ColumnDef, table: Table) -> bool:
    """Whether every row that is there gets one value, and the same one that DEFAULT() gives later."""
    kinds = [one.args.get("kind") for one in column.args.get("constraints") or ()]
    if any(not isinstance(one, _CONSTRAINTS) for one in kinds):
        return False
    defaults = [one.this for one in kinds if isinstance(one, exp.DefaultColumnConstraint)]
    if any(not isinstance(one, exp.Literal | exp.Null | exp.Boolean) for one in defaults):
        return False
    required = any(isinstance(one, exp.NotNullColumnConstraint) and not one.args.get("allow_null") for one in kinds)
    return bool(defaults) or not (required or "timestamp" in str(column.args.get("kind")).lower())


_CONSTRAINTS = (
    exp.NotNullColumnConstraint,
    exp.DefaultColumnConstraint,
    exp.CommentColumnConstraint,
    exp.CharacterSetColumnConstraint,
    exp.CollateColumnConstraint,
)


def _try(wire: Wire, tree: exp.Expr, found: Definition) -> None:
    """Run it and what takes it back on an empty copy, and compare. Raises Unsupported."""
    copy = tree.copy()
    for node in copy.find_all(exp.Table):
        if node.name.lower() == found.table.lower():
            node.set("this", exp.to_identifier(_COPY, quoted=True))
    undo = found.undo.replace(quoted(found.table), quoted(_COPY))
    try:
        wire.run(f"CREATE TEMPORARY TABLE {quoted(_COPY)} LIKE {quoted(found.table)}")
        try:
            before = _shown(wire, _COPY)
            wire.run(write(copy, Dialect.MARIADB))
            wire.run(undo)
            same = _shown(wire, _COPY) == before
        finally:
            with contextlib.suppress(GoexError, ServerError):
                wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(_COPY)}")
    except ServerError as error:
        raise Unsupported(
            f"Taking it back was tried on an empty copy, and failed: {error.said.message}", next_step=_BACKUP
        ) from None
    if not same:
        raise Unsupported(f"{found.table} wouldn't be defined exactly as it was after an undo.", next_step=_BACKUP)


def _shown(wire: Wire, name: str) -> str:
    """The definition as the server writes it, without the counter; "": there is none."""
    try:
        row = wire.one(f"SHOW CREATE TABLE {quoted(name)}")
    except ServerError as error:
        if error.number == _MISSING:
            return ""
        raise
    return _COUNTER.sub("", str(row[1]))


# ---- run


def is_one(job: Job) -> bool:
    return any(one.verb in ("create", "alter", "drop") for one in job.program.statements)


def run(wire: Wire, job: Job, found: Definition) -> Ran:
    """Run it. Raises ServerError where it failed, and Doubtful where its answer never came."""
    (statement,) = job.program.statements
    with _locked(wire, found if statement.verb == "alter" else None):
        definition = {"table": found.table, "undo": found.undo, "lost": found.lost, "lock": found.lock, "after": ""}
        note = Note(
            at="committing",
            connection=wire.id,
            started=settle.started(wire),
            exact=False,
            reached=(Reached(table=found.table, verb=statement.verb, rows=0),),
            definition={**definition, "before": _shown(wire, found.table)},
        )
        note.put(job.records)
        _do(wire, statement.sql)
        note = replace(note, at="committed", definition={**note.definition, "after": _shown(wire, found.table)})
        note.put(job.records)
    return note.ran


def _do(wire: Wire, sql: str) -> None:
    try:
        wire.run(sql)
    except ServerError as error:
        if isinstance(error.said, Unavailable):
            wire.drop()
            raise errors.doubtful() from None
        raise


@contextlib.contextmanager
def _locked(wire: Wire, found: Definition | None) -> Iterator[None]:
    """Inside, nobody else writes the table, nor defines it."""
    if found is None or not found.lock:
        yield
        return
    wire.run(f"LOCK TABLES {quoted(found.table)} WRITE")
    try:
        yield
    finally:
        if not wire.broken:
            wire.calm()
            with contextlib.suppress(GoexError, ServerError):
                wire.run("UNLOCK TABLES")


# ---- afterwards


def look(wire: Wire, note: Note) -> Settled:
    """See `Session.settle`: what the definition says."""
    table, before, after = (str(note.definition[part]) for part in ("table", "before", "after"))
    now = _shown(wire, table)
    if now == before:
        return Settled(state="undone" if note.reverting else "nothing")
    if after and now == after:
        return Settled(state="done", ran=note.ran)
    if not after:
        return Settled(state="unknown", evidence=(f"{table} isn't defined as it was before, and GoEx wasn't told why",))
    return Settled(state="done", ran=note.ran, evidence=(f"{table} was defined otherwise since",))


def compare(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.compare`. Raises Conflict."""
    if _is_so(wire, note, verb):
        return Ran(reached=(), notes=("It is so already: nothing was changed.",))
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def revert(wire: Wire, job: Job, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.revert`. Raises Conflict."""
    found = Definition(*(note.definition[part] for part in ("table", "undo", "lost", "lock")))
    there = bool(_shown(wire, found.table))
    with _locked(wire, found if there else None):
        if _is_so(wire, note, verb):
            return Ran(reached=(), notes=("It is so already: nothing was changed.",))
        note.begin(verb, job.records)
        _do(wire, found.undo if verb == "undo" else job.program.statements[0].sql)
        wanted = str(note.definition["before" if verb == "undo" else "after"])
        if _shown(wire, found.table) != wanted:
            raise Conflict(f"{found.table} was changed, and isn't defined exactly as it was.", next_step="Look at it.")
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def _is_so(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> bool:
    """Whether nothing is to be done. Raises Conflict unless the definition is as recorded, and nothing gets lost."""
    table, before, after, lost = (str(note.definition[part]) for part in ("table", "before", "after", "lost"))
    now = _shown(wire, table)
    if now == (before if verb == "undo" else after):
        return True
    if now != (after if verb == "undo" else before):
        raise Conflict(
            "The table isn't defined as it was left. Nothing was changed.",
            next_step="Look at what differs, and mend it by hand.",
            difference=(f"{table}: {'is defined otherwise' if now else 'is gone'}",),
        )
    if verb == "undo" and lost and wire.rows(lost):
        raise Conflict(
            f"{table} holds what was written since, and undo would lose it. Nothing was changed.",
            next_step="Look at its rows, and mend it by hand.",
            difference=(f"{table}: has rows, or values, of its own",),
        )
    return False
