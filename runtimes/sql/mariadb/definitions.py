"""Statements that define, which MariaDB commits at once: one alone, with the statement that takes it back.

Rules: what is taken back is tried beforehand on an empty temporary copy of the table, and has to give the same
definition again, to the letter. The record is written before the statement runs, and holds the definition as it was
and, where a temporary table can show it, as it is going to be: so what became of it is known though nobody lived to
note it. The definition that it left is added when it has run. Undo and redo lock the table, compare its definition
with the recorded one, look for rows that would be lost, and only then run.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from policies.errors import Conflict, GoexError, Unsupported
from runtimes.base import Records
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Job, Policy, Ran, Reached, Schema, Settled, Statement, Table, turned
from runtimes.sql.mariadb import built_on, errors, settle
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb.definitions_foreseen import BACKUP, shown
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError, Wire


@dataclass(frozen=True, slots=True)
class Definition:
    """`undo` takes the statement back; `lost` is a SELECT that gives a row where undo would lose one ("": never)."""

    table: str
    undo: str
    lost: str
    lock: bool  # whether undo locks it: a view has no rows
    tried: bool = False  # both ways, on an empty copy
    expected: str = ""  # the definition that it is going to leave; "": not known, or not yet
    was: str = ""  # the name that a table has before it is renamed; "": it isn't
    view: bool = False  # it makes one: what it leaves can be foreseen afterwards alone
    names: tuple[str, ...] = ()  # that undo takes away, a table's own first; (): none that others can stand on


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
    found = _inverse(wire, tree, only, schema)
    if found is None:
        raise Unsupported(f"MariaDB commits {verb} at once, and it can't be taken back exactly.", next_step=BACKUP)
    if found.tried:
        return replace(found, expected=foreseen.tried(wire, tree, found.table, found.undo))
    return replace(found, expected=foreseen.untried(wire, tree, found.table, schema))


def _inverse(wire: Wire, tree: exp.Expr, statement: Statement, schema: Schema) -> Definition | None:
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
        undo = f"DROP INDEX {quoted(index.name)} ON {quoted(name)}"
        return Definition(name, undo, "", True, True, names=(name, index.name))
    if isinstance(tree, exp.Drop):
        line = _line(wire, name, f"KEY {quoted(tree.args['tables'][0].name)} ")
        return Definition(name, f"ALTER TABLE {quoted(name)} ADD {line}", "", True, True) if line else None
    if not isinstance(tree, exp.Alter) or len(tree.args["actions"]) != 1:
        return None
    (action,) = tree.args["actions"]
    if isinstance(action, exp.RenameColumn) and not table.triggers:
        old, new = quoted(action.this.name), quoted(action.args["to"].name)
        undo = f"ALTER TABLE {quoted(name)} RENAME COLUMN {new} TO {old}"
        return Definition(name, undo, "", True, True, names=(name, action.args["to"].name))
    if isinstance(action, exp.ColumnDef) and _plain(action, table):
        column = quoted(action.name)
        # By value and by every byte: a collation may call different texts the same, and bytes alone round a float.
        same = f"{column} <=> DEFAULT({column}) AND CAST({column} AS BINARY) <=> CAST(DEFAULT({column}) AS BINARY)"
        lost = f"SELECT 1 FROM {quoted(name)} WHERE NOT ({same}) LIMIT 1"
        undo = f"ALTER TABLE {quoted(name)} DROP COLUMN {column}"
        return Definition(name, undo, lost, True, True, names=(name, action.name))
    if isinstance(action, exp.AlterRename):
        new = action.this.name
        _free(new, schema)
        undo = f"ALTER TABLE {quoted(new)} RENAME {quoted(name)}"
        return Definition(new, undo, "", False, was=name, names=(new,))
    if isinstance(action, exp.AddConstraint):
        return _linked(action, table)
    if isinstance(action, exp.ModifyColumn) and action.args.get("rename_from") is None:
        return _widened(wire, tree, action.this, table)
    return None


def _linked(action: exp.AddConstraint, table: Table) -> Definition | None:
    """A foreign key with a name, on columns that an index leads with: the server makes none for it, to be left over."""
    constraint = action.expressions[0]
    if len(action.expressions) != 1 or not isinstance(constraint, exp.Constraint):
        return None
    keys = constraint.expressions
    if len(keys) != 1 or not isinstance(keys[0], exp.ForeignKey):
        return None
    columns = [one.name.lower() for one in keys[0].expressions]
    whole = [[str(name).lower() if part is None else "" for name, part in one] for one in _indexes(table)]
    leading = [index[: len(columns)] for index in whole]
    if columns not in leading or any(one.name.lower() == constraint.name.lower() for one in table.foreign_keys):
        return None
    undo = f"ALTER TABLE {quoted(table.name)} DROP FOREIGN KEY {quoted(constraint.name)}"
    return Definition(table.name, undo, "", True)


def _indexes(table: Table) -> list[list[tuple[str, int | None]]]:
    """The columns of its unique indexes, each with the length of its prefix where only that is indexed."""
    found: dict[str, list[tuple[str, int | None]]] = table.facts["uniques"]
    return list(found.values())


def _widened(wire: Wire, tree: exp.Alter, column: exp.ColumnDef, table: Table) -> Definition | None:
    """A column of characters that gets room for more, as long as none of its values changes: of the same collation,
    and no NULL of it becomes another value."""
    was = next(one for one in table.columns if one.name.lower() == column.name.lower())
    width = re.fullmatch(r"varchar\((\d+)\)", was.type.lower())
    line = _line(wire, table.name, f"{quoted(was.name)} ")
    if not width or was.generated or not line or table.triggers:
        return None
    kind, collation, nullable = _written(wire, tree, table.name, was.name)
    new = re.fullmatch(r"varchar\((\d+)\)|(medium|long)?text", kind.lower())
    if new is None or int(width[1]) > (int(new[1]) if new[1] else _MOST_OF_TEXT):
        return None
    if collation != table.facts["forms"][was.name][2] or (was.nullable and nullable != "YES"):
        return None
    lost = f"SELECT 1 FROM {quoted(table.name)} WHERE CHAR_LENGTH({quoted(was.name)}) > {width[1]}"
    lost += "" if was.nullable else f" OR {quoted(was.name)} IS NULL"
    undo = f"ALTER TABLE {quoted(table.name)} MODIFY COLUMN {line}"
    return Definition(table.name, undo, f"{lost} LIMIT 1", True, True)


_MOST_OF_TEXT = 16_383  # characters of four bytes in 64 kB


def _line(wire: Wire, table: str, begins: str) -> str:
    """The line of a table's definition that begins so, as the server writes it; "": there is none."""
    lines = (line.strip().removesuffix(",") for line in shown(wire, table).split("\n"))
    return next((line for line in lines if line.startswith(begins)), "")


def _written(wire: Wire, tree: exp.Expr, table: str, column: str) -> tuple[str, str, str]:
    """Type, collation and nullability that a column has after a statement, seen on an empty copy."""
    with foreseen.copied(wire, table):
        wire.run(write(foreseen.of_copy(tree, table), Dialect.MARIADB))
        for name, kind, collation, nullable, *_ in wire.rows(f"SHOW FULL COLUMNS FROM {quoted(foreseen.COPY)}"):
            if str(name) == column:
                return str(kind), str(collation or ""), str(nullable)
    return "", "", ""


def _created(tree: exp.Create, name: str, schema: Schema) -> Definition | None:
    kind = str(tree.args.get("kind")).upper()
    _free(name, schema)
    if tree.args.get("replace"):
        raise Unsupported("CREATE OR REPLACE can't be taken back.", next_step="Choose another name, and CREATE it.")
    if kind == "VIEW":
        return Definition(name, f"DROP VIEW {quoted(name)}", "", False, view=True, names=(name,))
    engine, like = tree.find(exp.EngineProperty), tree.find(exp.LikeProperty)
    if like is not None and schema.tables[like.this.name].facts["engine"] != "InnoDB":
        return None
    if tree.args.get("expression") is not None or (engine is not None and engine.name.upper() != "INNODB"):
        return None
    return Definition(name, f"DROP TABLE {quoted(name)}", f"SELECT 1 FROM {quoted(name)} LIMIT 1", True, names=(name,))


def _free(name: str, schema: Schema) -> None:
    if name.lower() in (one.lower() for one in schema.tables):
        raise Unsupported(f"{name} is there already.", next_step="Choose another name.")


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


# ---- run


def is_one(job: Job) -> bool:
    return any(one.verb in ("create", "alter", "drop") for one in job.program.statements)


def run(wire: Wire, job: Job, found: Definition) -> Ran:
    """Run it. Raises ServerError where it failed, and Doubtful where its answer never came."""
    (statement,) = job.program.statements
    with _locked(wire, found if statement.verb == "alter" else None):
        note = Note(
            at="committing",
            connection=wire.id,
            started=settle.started(wire),
            exact=False,
            reached=(Reached(table=found.table, verb=statement.verb, rows=0),),
            definition={
                "table": found.table,
                "undo": found.undo,
                "lost": found.lost,
                "lock": found.lock,
                "before": shown(wire, found.table),
                "expected": found.expected,
                "after": "",
                "was": shown(wire, found.was) if found.was else "",
                "view": statement.sql if found.view else "",
                "names": list(found.names),
                "standing": dict(built_on.standing(wire, found.names, (found.table, found.was))),
            },
        )
        note.put(job.records)
        _do(wire, statement.sql, note)
        with _committed(wire):
            note = replace(note, at="committed", definition={**note.definition, "after": shown(wire, found.table)})
            note.put(job.records)
    return note.ran


def _do(wire: Wire, sql: str, note: Note) -> None:
    there = _names(wire, note)
    try:
        wire.run(sql)
    except ServerError as error:
        # A definition commits by itself, and the server may have failed after it had (its disk, its log).
        sure = errors.is_refusal(error.said)
        if not sure and error.number not in errors.LOST:
            with contextlib.suppress(GoexError):
                sure = _names(wire, note) == there
        if not sure:
            wire.drop()
            raise errors.doubtful() from None
        raise


@contextlib.contextmanager
def _committed(wire: Wire) -> Iterator[None]:
    """Inside, the statement has run: what fails now doesn't mean that nothing was changed. Raises Doubtful."""
    try:
        yield
    except (GoexError, OSError):
        wire.drop()
        raise errors.doubtful() from None


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


def look(wire: Wire, note: Note, records: Records) -> Settled:
    """See `Session.settle`: what the definition says."""
    names = _names(wire, note)
    table, now, before, after = (getattr(names[0], part) for part in ("name", "now", "before", "after"))
    was_noted = bool(after)
    if not was_noted:
        after = _expected(wire, note, now)
    unchanged = all(one.now == one.before for one in names)
    if unchanged and after and foreseen.same(before, after):  # it says the same of both
        if not was_noted:
            said = f"{table} is defined after it as it was before, and GoEx wasn't told whether it ran"
            return Settled(state="unknown", evidence=(said,))
        return Settled(state="done", ran=note.ran)
    if unchanged:
        return Settled(state="undone" if note.reverting else "nothing")
    if foreseen.same(now, after):
        if not was_noted:
            replace(note, at="committed", definition={**note.definition, "after": now}).put(records)
        return Settled(state="done", ran=note.ran)
    if not was_noted:
        return Settled(state="unknown", evidence=(f"{table} isn't defined as it was before, and GoEx wasn't told why",))
    return Settled(state="done", ran=note.ran, evidence=(f"{table} was defined otherwise since",))


def _expected(wire: Wire, note: Note, now: str) -> str:
    """The definition that it was going to leave; "": not known. Of a view it is seen on another, made for a moment."""
    view = str(note.definition.get("view", ""))
    if not view:
        return str(note.definition.get("expected", ""))
    scratch = f"{foreseen.COPY}_{note.connection}_{note.started}"
    return foreseen.of_view(wire, view, str(note.definition["table"]), scratch) if now else ""


_RENAMES = re.compile(r"ALTER TABLE `(?:[^`]|``)*` RENAME `((?:[^`]|``)*)`")


@dataclass(frozen=True, slots=True)
class _Named:
    """What a name stands for ("": nothing): now, before the statement, and after it."""

    name: str
    now: str
    before: str
    after: str


def _names(wire: Wire, note: Note) -> list[_Named]:
    """The table, and where it was renamed also the name that it had."""
    table, before, after = (str(note.definition[part]) for part in ("table", "before", "after"))
    found = [_Named(table, shown(wire, table), before, after)]
    renamed = _RENAMES.fullmatch(str(note.definition["undo"]))
    if renamed is not None:
        old = renamed[1].replace("``", "`")
        now = shown(wire, old)
        was = str(note.definition.get("was") or now or "not noted")
        found.append(_Named(old, now, was, ""))
    return found


def compare(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.compare`. Raises Conflict."""
    if _is_so(wire, note, verb):
        return Ran(reached=(), notes=("It is so already: nothing was changed.",))
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def revert(wire: Wire, job: Job, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.revert`. Raises Conflict."""
    found = Definition(*(note.definition[part] for part in ("table", "undo", "lost", "lock")))
    there = bool(shown(wire, found.table))
    with _locked(wire, found if there else None):
        if _is_so(wire, note, verb):
            return Ran(reached=(), notes=("It is so already: nothing was changed.",))
        note.begin(verb, job.records, connection=wire.id, started=settle.started(wire))
        _do(wire, found.undo if verb == "undo" else job.program.statements[0].sql, note)
        with _committed(wire):
            left = _names(wire, note)
        if any(one.now != (one.before if verb == "undo" else one.after) for one in left):
            raise Conflict(f"{found.table} was changed, and isn't defined exactly as it was.", next_step="Look at it.")
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def _is_so(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> bool:
    """Whether nothing is to be done. Raises Conflict unless the definition is as recorded, and nothing gets lost."""
    table, lost = str(note.definition["table"]), str(note.definition["lost"])
    names = _names(wire, note)
    if all(one.now == (one.before if verb == "undo" else one.after) for one in names):
        return True
    for one in names:
        wanted = one.after if verb == "undo" else one.before
        if one.now != wanted:
            raise Conflict(
                "The table isn't defined as it was left. Nothing was changed.",
                next_step="Look at what differs, and mend it by hand.",
                difference=(
                    f"{one.name}: {'is gone' if not one.now else 'is defined otherwise' if wanted else 'is there now'}",
                ),
            )
    theirs = _built_since(wire, note) if verb == "undo" else []
    if theirs:
        raise Conflict(
            f"{table} is used by what was made since, and undo would break it. Nothing was changed.",
            next_step="Look at these, and drop them first if they aren't needed.",
            difference=tuple(f"{one}: was made, or made anew, since" for one in theirs),
        )
    if verb == "undo" and lost and wire.rows(lost):
        raise Conflict(
            f"{table} holds what was written since, and undo would lose it. Nothing was changed.",
            next_step="Look at its rows, and mend it by hand.",
            difference=(f"{table}: has rows, or values, of its own",),
        )
    return False


def _built_since(wire: Wire, note: Note) -> list[str]:
    """The triggers and views that stand on what undo takes away, and didn't when it was made."""
    names = tuple(str(one) for one in note.definition.get("names", ()))
    before: dict[str, str] = note.definition.get("standing", {})
    now = built_on.standing(wire, names, (str(note.definition["table"]),))
    return sorted(name for name, digest in now.items() if before.get(name) != digest)
