"""Statements that define, which MariaDB commits at once: one alone, with the statement that takes it back.

Rules: what is taken back is tried beforehand on an empty temporary copy of the table, and has to give the same
definition again, to the letter. The record is written before the statement runs, and holds the definition as it was
and, where a temporary table can show it, as it is going to be: so what became of it is known though nobody lived to
note it. The definition that it left is added when it has run. All of them lock the table and compare its definition,
with the one that was planned with or the recorded one; undo also looks for rows that would be lost; only then they run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, GoexError, Unsupported
from runtimes.base import Records
from runtimes.sql.contract import Job, Policy, Ran, Reached, Settled, Statement, turned
from runtimes.sql.mariadb import built_on, errors, schema, settle
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
    if verb and len(statements) > 1:
        raise Unsupported(
            f"MariaDB commits {verb} at once, so it can't be one of several statements that are undone together.",
            next_step="Make it an action of its own.",
        )


# ---- run


def is_one(job: Job) -> bool:
    return any(one.verb in ("create", "alter", "drop") for one in job.program.statements)


def run(wire: Wire, job: Job, found: Definition) -> Ran:
    """Run it. Raises ServerError where it failed, and Doubtful where its answer never came."""
    (statement,) = job.program.statements
    with _locked(wire, found if found.planned_on else None):
        if found.planned_on:
            _same_as_planned(wire, job, found)
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
                "views": not found.widens,
                "standing": built_on.standing(wire, found.names, (found.table, found.was), views=not found.widens),
            },
        )
        note.put(job.records)
        _do(wire, statement.sql, note)
        with _committed(wire):
            note = replace(note, at="committed", definition={**note.definition, "after": shown(wire, found.table)})
            note.put(job.records)
    return note.ran


def _same_as_planned(wire: Wire, job: Job, found: Definition) -> None:
    """Raises Conflict where somebody defined it otherwise before it was locked, and Unsupported where rows came since
    that undo couldn't put back."""
    if shown(wire, found.was or found.table) != found.planned_on or schema.read(wire).hash != job.schema_hash:
        raise Conflict(
            "The table was defined otherwise meanwhile. Nothing was changed.", next_step="Ask for the action again."
        )
    refuse_unknown(wire, found)


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
    views = bool(note.definition.get("views", True))
    now = built_on.standing(wire, names, (str(note.definition["table"]),), views=views)
    return sorted(name for name, digest in now.items() if before.get(name) != digest)
