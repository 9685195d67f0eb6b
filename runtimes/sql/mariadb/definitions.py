"""Statements that define, which MariaDB commits at once: one alone, with the statement that takes it back.

Rules: what is taken back is tried beforehand on an empty temporary copy of the table, and has to give the same
definition again, to the letter. The record is written before the statement runs, and holds the definition as it was
and, where a temporary table can show it, as it is going to be: so what became of it is known though nobody lived to
note it. The definition that it left is added when it has run. All of them lock the table and compare its definition,
with the one that was planned with or the recorded one; undo also looks for rows that would be lost; only then they run.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, GoexError, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.base import Records
from runtimes.sql.contract import Job, Policy, Ran, Reached, Schema, Settled, Statement, turned
from runtimes.sql.mariadb import (
    built_on,
    definitions_filled,
    definitions_kept,
    definitions_whole,
    errors,
    schema,
    settle,
)
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb.definitions_foreseen import shown
from runtimes.sql.mariadb.definitions_reversed import Definition, refuse_unknown
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError, Wire


def refuse(statements: tuple[Statement, ...], policy: Policy) -> None:
    """Raises Unsupported for a definition that is to be held, or isn't alone."""
    verb = next((one.verb.upper() for one in statements if one.verb in ("create", "alter", "drop")), "")
    if verb and policy == "versioning":
        raise Unsupported(f"MariaDB commits {verb} at once, so it can't be held.", next_step="Use --policy reversal.")
    if verb and len(statements) > 1 and not is_filled(statements):
        raise Unsupported(
            f"MariaDB commits {verb} at once, so it can't be one of several statements that are undone together.",
            next_step="Make it an action of its own.",
        )


def is_filled(statements: tuple[Statement, ...]) -> bool:
    """Whether it is an ALTER TABLE with UPDATEs of that table, or a CREATE TABLE with INSERTs into it, which nothing
    else of it reads."""
    first, *rest = statements
    return definitions_filled.is_one(statements) or (
        first.verb == "create"
        and first.sql.upper().startswith("CREATE TABLE")
        and all(one.verb == "insert" and one.table == first.table and not one.returns_rows for one in rest)
        and not any(use.table == first.table and use.verb == "select" for one in rest for use in one.uses)
    )


# ---- run


def is_one(job: Job) -> bool:
    return any(one.verb in ("create", "alter", "drop") for one in job.program.statements)


def run(wire: Wire, job: Job, found: Definition) -> Ran:
    """Run it. Raises ServerError where it failed, and Doubtful where its answer never came."""
    if found.keeps == "made":
        return _make(wire, job, found)
    statement, *more = job.program.statements
    if found.keeps == "dropped" or " REFERENCES " in found.undo + found.late:
        definitions_whole.refuse_orphans(wire, found.table)
    with _locked(wire, found if found.planned_on else None):
        now = _same_as_planned(wire, job, found) if found.planned_on else None
        if found.recounts:
            counter = f", {foreseen.counter(wire, found.table)}"
            late = found.late + counter if found.late else ""
            found = replace(found, late=late, undo=found.undo + ("" if late else counter))
        kept = _keep(wire, job, found, now) if found.keeps and now is not None else {}
        note = Note(
            at="committing",
            connection=wire.id,
            started=settle.started(wire),
            exact=False,
            reached=(Reached(table=found.table, verb=statement.verb, rows=kept.get("number", 0)),),
            definition={
                "table": found.table,
                "undo": f"ALTER TABLE {quoted(found.table)} {foreseen.counter(wire, found.table)}"
                if found.counts
                else found.undo,
                "counts": found.counts,
                "lost": found.lost,
                "lock": found.lock,
                "before": shown(wire, found.table, counts=found.counts),
                "expected": found.expected,
                "after": "",
                "was": shown(wire, found.was) if found.was else "",
                "view": statement.sql if found.view else "",
                "names": list(found.names),
                "views": not found.widens,
                "standing": built_on.standing(wire, found.names, (found.table, found.was), views=not found.widens),
                **({"kept": kept} if kept else {}),
            },
        )
        note.put(job.records)
        _do(wire, statement.sql, note)
        if more:
            _fill(wire, job, note)
        with _committed(wire):
            note = _noted(wire, note, job.records)
    return note.ran


def _fill(wire: Wire, job: Job, note: Note) -> None:
    """Run what stands behind an ALTER that has run; where that fails, take both back."""
    try:
        definitions_filled.run(wire, job, str(note.definition["kept"]["moment"]))
    except (ServerError, Conflict) as error:
        if wire.broken or (isinstance(error, ServerError) and not errors.is_refusal(error.said)):
            wire.drop()
            raise errors.doubtful() from None
        with _committed(wire):
            back = functools.partial(_do, wire, note=note)
            definitions_kept.take_back(wire, job.records, note.definition, back, begun=False)
        raise


def _noted(wire: Wire, note: Note, records: Records) -> Note:
    """Note what the statement left."""
    table, kept = str(note.definition["table"]), note.definition.get("kept")
    after = shown(wire, table, counts=bool(note.definition["counts"]))
    if kept and after:
        kept = {**kept, "rows": {**kept["rows"], "after": definitions_kept.rows_digest(wire, table)}}
    more = {"after": after, **({"kept": kept} if kept else {})}
    note = replace(note, at="committed", definition={**note.definition, **more})
    note.put(records)
    return note


def _keep(wire: Wire, job: Job, found: Definition, schema: Schema) -> JsonObject:
    """Keep the rows that it loses or changes, before it runs."""
    if found.keeps == "dropped":
        return definitions_whole.before_drop(wire, job, found.table)
    moment = str(wire.one("SELECT UNIX_TIMESTAMP(SYSDATE(6))")[0]) if job.program.statements[1:] else "DEFAULT"
    more = functools.partial(definitions_filled.run, wire, job, moment, copy=found.table)
    table = schema.tables[found.table]
    kept = definitions_kept.prepare(wire, job, schema, table, found.on_copy, found.fills, more)
    return {**kept, "late": found.late, "between": found.between, "forth": found.forth, "moment": moment}


def _make(wire: Wire, job: Job, found: Definition) -> Ran:
    """Run a CREATE TABLE with what fills it: under another name, which it loses once its rows are kept."""
    definition: JsonObject = {
        "table": found.table,
        "undo": "",
        "lost": "",
        "lock": True,
        "before": "",
        "after": "",
        "expected": "",
        "names": list(found.names),
        "standing": built_on.standing(wire, found.names, (found.table,)),
    }
    name = definitions_whole.scratch(job.id)
    note = Note(
        at="committing",
        connection=wire.id,
        started=settle.started(wire),
        exact=False,
        definition={**definition, "kept": {"rows": {"before": "", "after": ""}, "scratch": name}},
    )
    note.put(job.records)
    expected, kept = definitions_whole.make_in_scratch(wire, job, found.table)
    reached = (Reached(table=found.table, verb="create", rows=kept["number"]),)
    note = replace(note, reached=reached, definition={**definition, "expected": expected, "kept": kept})
    try:
        note.put(job.records)
        _do(wire, definitions_whole.named(found.table, name), note)
    except GoexError:
        if not wire.broken:
            definitions_whole.clear(wire, name)
        raise
    with _committed(wire):
        note = replace(note, at="committed", definition={**note.definition, "after": shown(wire, found.table)})
        note.put(job.records)
    return note.ran


def _same_as_planned(wire: Wire, job: Job, found: Definition) -> Schema:
    """Raises Conflict where somebody defined it otherwise before it was locked, and Unsupported where rows came since
    that undo couldn't put back."""
    now = schema.read(wire)
    if shown(wire, found.was or found.table) != found.planned_on or now.hash != job.schema_hash:
        raise Conflict(
            "The table was defined otherwise meanwhile. Nothing was changed.", next_step="Ask for the action again."
        )
    refuse_unknown(wire, found)
    return now


def _do(wire: Wire, sql: str, note: Note) -> None:
    """Run it. Raises ServerError where it surely didn't run, and Doubtful."""
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
    kept: JsonObject | None = note.definition.get("kept")
    if kept is not None and kept.get("scratch"):
        definitions_whole.clear(wire, str(kept["scratch"]))
    names = _names(wire, note)
    table, now, before, after = (getattr(names[0], part) for part in ("name", "now", "before", "after"))
    if kept is not None and kept.get("scratch") and before:
        return definitions_whole.look(wire, note, now)
    was_noted = bool(after)
    if not was_noted:
        after = _expected(wire, note, now)
    unchanged = all(foreseen.same(one.now, one.before) for one in names)
    between = kept is not None and bool(now) and foreseen.same(now, str(kept.get("between", "")))
    half = kept is not None and not kept.get("scratch") and note.reverting == "undo" and not note.ended
    if kept is not None and half and (unchanged or between):
        return definitions_kept.look(wire, note, between=between)
    if unchanged and after and foreseen.same(before, after):  # it says the same of both
        if not was_noted:
            said = f"{table} is defined after it as it was before, and GoEx wasn't told whether it ran"
            return Settled(state="unknown", evidence=(said,))
        return Settled(state="done", ran=note.ran)
    if unchanged:
        return Settled(state="undone" if note.reverting else "nothing")
    if foreseen.same(now, after):
        if (
            kept is not None
            and not (was_noted and note.reverting != "redo")
            and definitions_kept.is_unfilled(wire, note)
        ):
            return Settled(state="unknown", ran=note.ran, evidence=(f"{table} was altered, and not filled: undo it",))
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
    counts = bool(note.definition.get("counts", False))
    found = [_Named(table, shown(wire, table, counts=counts), before, after)]
    renamed = _RENAMES.fullmatch(str(note.definition["undo"]))
    if renamed is not None:
        old = renamed[1].replace("``", "`")
        now = shown(wire, old)
        was = str(note.definition.get("was") or now or "not noted")
        found.append(_Named(old, now, was, ""))
    return found


def compare(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.compare`. Raises Conflict."""
    if _stage(wire, note, verb) == "so":
        return Ran(reached=(), notes=("It is so already: nothing was changed.",))
    _refuse_fired(wire, note, verb)
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def revert(wire: Wire, job: Job, note: Note, verb: Literal["undo", "redo"]) -> Ran:
    """See `Session.revert`. Raises Conflict."""
    found = Definition(*(note.definition[part] for part in ("table", "undo", "lost", "lock")))
    kept = note.definition.get("kept")
    there = bool(shown(wire, found.table))
    with _locked(wire, found if there else None):
        stage = _stage(wire, note, verb)
        if stage == "so":
            if kept and note.reverting == verb:
                replace(note, ended=True).put(job.records)
            return Ran(reached=(), notes=("It is so already: nothing was changed.",))
        _refuse_fired(wire, note, verb)
        note = note.begin(verb, job.records, connection=wire.id, started=settle.started(wire))
        if kept:
            _turn(wire, job, note, verb, there=there, begun=stage == "begun")
        else:
            _do(wire, found.undo if verb == "undo" else job.program.statements[0].sql, note)
        with _committed(wire):
            left = _names(wire, note)
        if any(not foreseen.same(one.now, one.before if verb == "undo" else one.after) for one in left):
            raise Conflict(f"{found.table} was changed, and isn't defined exactly as it was.", next_step="Look at it.")
        if kept:
            replace(note, ended=True).put(job.records)
    return Ran(reached=turned(note.reached) if verb == "undo" else note.reached)


def _turn(wire: Wire, job: Job, note: Note, verb: Literal["undo", "redo"], *, there: bool, begun: bool) -> None:
    """Take back, or do again, what rows are kept of, under the lock of a table that is there."""
    kept, table = note.definition["kept"], str(note.definition["table"])
    if not kept.get("scratch"):
        if verb == "undo":
            take = functools.partial(_do, wire, note=note)
            definitions_kept.take_back(wire, job.records, note.definition, take, begun=begun)
        else:
            _do_again(wire, job, note, begun=begun)
    elif there:
        _do(wire, f"DROP TABLE {quoted(table)}", note)
    else:
        name = definitions_whole.build(wire, job.records, note.definition)
        try:
            _do(wire, definitions_whole.named(table, name), note)
        except GoexError:
            if not wire.broken:
                definitions_whole.clear(wire, name)
            raise


def _do_again(wire: Wire, job: Job, note: Note, *, begun: bool) -> None:
    """Run the statements again, on the rows that they ran on."""
    kept = note.definition["kept"]
    if not begun:
        _do(wire, job.program.statements[0].sql, note)
    if job.program.statements[1:]:
        _fill(wire, job, note)
    with _committed(wire):
        found = definitions_kept.rows_digest(wire, str(note.definition["table"]))
    if found != kept["rows"]["after"]:
        kept = {**kept, "rows": {**kept["rows"], "after": found}}  # so that it can be undone all the same
        replace(note, definition={**note.definition, "kept": kept}).put(job.records)
        raise Conflict(
            f"{note.definition['table']} was changed, and its rows aren't exactly as they were.",
            next_step="Look at them; goex undo brings those back that were there before.",
        )


def _stage(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> Literal["so", "ready", "begun"]:
    """Whether nothing is to be done, all, or the rest of an undo that was cut off. Raises Conflict unless definition
    and rows are as recorded."""
    kept = note.definition.get("kept")
    if not kept:
        return "so" if _is_so(wire, note, verb) else "ready"
    table, rows = str(note.definition["table"]), kept["rows"]
    now, before, after = shown(wire, table), str(note.definition["before"]), str(note.definition["after"])
    after = after or str(note.definition["expected"])
    wanted, left = ("before", "after") if verb == "undo" else ("after", "before")
    to, at = (before, after) if verb == "undo" else (after, before)
    resumes = verb == "undo" and note.reverting == "undo"
    if resumes and now and foreseen.same(now, kept.get("between", "")):
        return "begun"
    if foreseen.same(now, to):
        if (note.ended and note.reverting == verb) or (verb == "redo" and not note.reverting):
            return "so"
        found = definitions_kept.rows_digest(wire, table) if now else ""
        if found == rows[wanted]:
            return "so"
        if resumes and not kept.get("between") and found == rows.get("blank"):
            return "begun"
        if verb == "redo" and note.reverting == "redo" and found == rows.get("middle"):
            return "begun"
        if not foreseen.same(now, at):
            raise definitions_kept.written_since(table)
    if not foreseen.same(now, at):
        raise _defined_otherwise(table, now, at)
    _refuse_built_since(wire, note, verb)
    # Where what fills it never ran, the rows are as its ALTER left them.
    fitting = {rows[left]} | ({rows.get("middle", rows[left])} if verb == "undo" else set())
    if now and definitions_kept.rows_digest(wire, table) not in fitting:
        raise definitions_kept.written_since(table)
    return "ready"


def _is_so(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> bool:
    """Whether nothing is to be done. Raises Conflict unless the definition is as recorded, and nothing gets lost."""
    table, lost = str(note.definition["table"]), str(note.definition["lost"])
    names = _names(wire, note)
    if all(foreseen.same(one.now, one.before if verb == "undo" else one.after) for one in names):
        return True
    for one in names:
        wanted = one.after if verb == "undo" else one.before
        if not foreseen.same(one.now, wanted):
            raise _defined_otherwise(one.name, one.now, wanted)
    _refuse_built_since(wire, note, verb)
    if verb == "undo" and lost and wire.rows(lost):
        raise Conflict(
            f"{table} holds what was written since, and undo would lose it. Nothing was changed.",
            next_step="Look at its rows, and mend it by hand.",
            difference=(f"{table}: has rows, or values, of its own",),
        )
    return False


def _defined_otherwise(name: str, now: str, wanted: str) -> Conflict:
    return Conflict(
        "The table isn't defined as it was left. Nothing was changed.",
        next_step="Look at what differs, and mend it by hand.",
        difference=(f"{name}: {'is gone' if not now else 'is defined otherwise' if wanted else 'is there now'}",),
    )


def _refuse_fired(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> None:
    kept = note.definition.get("kept")
    if kept and not kept.get("scratch"):
        definitions_kept.refuse_fired(schema.read(wire), note.definition, verb, more=kept["moment"] != "DEFAULT")


def _refuse_built_since(wire: Wire, note: Note, verb: Literal["undo", "redo"]) -> None:
    theirs = _built_since(wire, note) if verb == "undo" else []
    drops = verb == "redo" and bool(note.definition.get("kept", {}).get("scratch")) and not note.definition["after"]
    if drops and (fired := built_on.triggers(wire, str(note.definition["table"]))):
        raise Conflict(
            f"{note.definition['table']} got triggers since, which would go with it. Nothing was changed.",
            next_step="Look at these, and drop them first if they aren't needed.",
            difference=tuple(f"trigger {one}: was made since" for one in fired),
        )
    if theirs:
        raise Conflict(
            f"{note.definition['table']} is used by what was made since, and undo would break it. Nothing was changed.",
            next_step="Look at these, and drop them first if they aren't needed.",
            difference=tuple(f"{one}: was made, or made anew, since" for one in theirs),
        )


def _built_since(wire: Wire, note: Note) -> list[str]:
    """The triggers and views that stand on what undo takes away, and didn't when it was made."""
    names = tuple(str(one) for one in note.definition.get("names", ()))
    before: dict[str, str] = note.definition.get("standing", {})
    views = bool(note.definition.get("views", True))
    now = built_on.standing(wire, names, (str(note.definition["table"]),), views=views)
    return sorted(name for name, digest in now.items() if before.get(name) != digest)
