"""Plans and results of statements in plain words. Pure; foreign text is escaped, nothing is cut.

A statement's text stands behind a bar, line by line, so that none of it can pass for a line of GoEx's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policies.display_text import counted, escape, escape_name
from runtimes.base import DryLine
from runtimes.database_overview import SeenColumn, SeenTable
from runtimes.sql.bounds import stepped
from runtimes.sql.contract import (
    Dialect,
    ForeignKey,
    Place,
    Policy,
    Program,
    Ran,
    Reached,
    RowChange,
    Schema,
    Statement,
    Survey,
    Table,
    Use,
)
from runtimes.sql.reads_through import behind, parts

NAMES: Mapping[Dialect, str] = {
    Dialect.POSTGRESQL: "PostgreSQL",
    Dialect.MARIADB: "MariaDB",
    Dialect.SQLITE: "SQLite",
}
DONE: Mapping[str, str] = {
    "insert": "inserted",
    "update": "updated",
    "delete": "deleted",
    "truncate": "removed by TRUNCATE",
    "create": "created",
    "alter": "altered",
    "drop": "dropped",
    "select": "read",
}
# Of an undo. A redo does again what the action did, so it has the words above.
BACK: Mapping[str, str] = {
    "insert": "put back",
    "update": "set back",
    "delete": "removed",
    "create": "put back",
    "alter": "set back",
    "drop": "removed",
}
_DEFINES = frozenset({"create", "alter", "drop"})
_WHY = {"statement": "", "cascade": ", by a foreign key's cascade", "trigger": ", by a trigger"}


def where(name: str, place: Place) -> str:
    """`shop (PostgreSQL at db.example.org:5432, database shop, as app)`."""
    if place.path:
        return escape_name(f"{name} (SQLite, the file {place.path})")
    at = place.socket or f"{place.host}:{place.port}"
    tls = "" if place.socket or place.tls == "verify" else ", not encrypted"
    return escape_name(f"{name} ({NAMES[place.dialect]} at {at}{tls}, database {place.database}, as {place.user})")


def program_lines(program: Program, schema: Schema) -> Iterator[str]:
    """Every statement as it will run, and what each does to which columns."""
    several = len(program.statements) > 1
    for number, statement in enumerate(program.statements, start=1):
        yield f"Statement {number} of {len(program.statements)}:" if several else "Statement:"
        yield from barred(statement.sql)
        yield from _uses(statement, schema)


def payload_lines(program: Program) -> tuple[str, ...]:
    """Every statement as it will run."""
    several = len(program.statements) > 1
    lines: list[str] = []
    for number, statement in enumerate(program.statements, start=1):
        lines += [f"Statement {number} of {len(program.statements)}:"] if several else []
        lines += barred(statement.sql)
    return tuple(lines)


def warning_lines(program: Program) -> tuple[str, ...]:
    """The statements without a condition."""
    tables = dict.fromkeys(name for one in program.statements if one.everywhere for name in (one.table, *one.others))
    return tuple(escape_name(f"THERE IS NO WHERE: every row of {table}.") for table in tables)


def barred(text: str) -> Iterator[str]:
    for line in escape(text, newlines=True).replace("\t", "    ").split("\n"):
        yield f"    | {line}"


def _uses(statement: Statement, schema: Schema) -> Iterator[str]:
    for use in statement.uses:
        columns = f" (columns {', '.join(use.columns)})" if use.columns else " (all columns)"
        if use.verb in ("delete", "truncate", *_DEFINES):
            columns = ""
        yield escape_name(f"  {_VERBS[use.verb]} {use.table}{_children(use, schema)}{columns}")
    through = behind(statement, schema)
    for view in dict.fromkeys(through.values()):
        yield escape_name(f"  reads {', '.join(one for one in through if through[one] == view)} (through {view})")
    if statement.everywhere:
        tables = ", ".join((statement.table, *statement.others))
        yield escape_name(f"  THERE IS NO WHERE: it is for every row of {tables}.")


def _children(use: Use, schema: Schema) -> str:
    """How many tables its permission covers besides."""
    found = [name for name, _ in parts((use,), schema)]
    tables = (schema.tables.get(name) for name in found)
    what = "partition" if all(table and table.facts.get("partition") for table in tables) else "child table"
    return f" (and its {counted(len(found), what)})" if found else ""


_VERBS = {
    "select": "reads",
    "insert": "inserts into",
    "update": "updates",
    "delete": "deletes rows of",
    "truncate": "empties",
    "create": "creates",
    "alter": "changes the definition of",
    "drop": "drops",
}


def survey_lines(survey: Survey, schema: Schema, bound: int, *, uncounted: bool) -> Iterator[str]:
    """How many rows of which tables at most, what else is set in motion, and what stays moved. `uncounted`: a table's
    size is the bound of what a condition finds."""
    for one in survey.reached:
        yield escape_name(f"At most {bounded(one)}.")
    written = dict.fromkeys(one.table for one in survey.reached)
    for name in written:
        table = schema.tables.get(name)
        if table is not None and table.triggers:
            yield escape_name(f"Triggers of {name} run with it: {', '.join(table.triggers)}.")
    if survey.counters:
        yield escape(f"These counters move, and undo doesn't set them back: {', '.join(survey.counters)}.")
    yield from (escape(note) for note in survey.notes)
    if uncounted:
        yield "Which rows its condition finds isn't looked at before you allow it; a dry run shows them."
    if survey.reached:
        rows = f"{bound} row{'s' if bound != 1 else ''}"
        yield f"All of it is one transaction; should it reach more than {rows}, none of it stays."


def reading(tables: Iterable[str]) -> Iterator[str]:
    """What triggers, rules, defaults, CHECKs and row security of its tables may read."""
    if names := ", ".join(tables):
        yield escape_name(f"What runs with it may read {names}.")


def departing(tables: Iterable[str], policy: Policy) -> Iterator[str]:
    """That the entry would have it held."""
    yield escape_name(f"The entry asks for versioning of {', '.join(tables)}: this is by {policy} all the same.")


def bounded(one: Reached, how: Mapping[str, str] = DONE) -> str:
    if one.verb in _DEFINES and not one.rows:
        return f"the table {one.table} {how[one.verb]}{_WHY[one.why]}"
    count = stepped(one.rows)
    return f"{count} row{'s' if count != 1 else ''} of {one.table} {how[one.verb]}{_WHY[one.why]}"


def undo_text(policy: Policy, hold_hours: int, survey: Survey, dialect: Dialect) -> str:
    """What undo will do and needs, in words."""
    match policy:
        case "versioning" if dialect is Dialect.SQLITE:
            said = (
                "The file is changed at once: nothing is held, everybody sees it, and other actions and programs can "
                "write to it. A copy of the file as it is before this is kept. Undo puts it back, and is refused when "
                "anything in the database was changed since. Commit drops the copy."
            )
        case "versioning":
            said = (
                "The transaction is held, also over a crash of GoEx or of the server: nobody else sees what it did, "
                "and others wait for the rows that it locked. Undo rolls it back, commit makes it last; when neither "
                f"is asked for within {counted(hold_hours, 'hour')}, GoEx rolls it back."
            )
        case "reversal":
            said = (
                "The rows are kept as they are before and after. Undo puts them back as they were, and is refused, "
                "with the difference, when one of them was changed since."
            )
        case "pairs":
            said = (
                "It is taken back by the statements below, which a model wrote and GoEx tried on a copy with made-up "
                "rows: that makes up for it, and isn't known to restore it exactly."
            )
    if survey.counters and policy != "versioning":
        said += f" Not set back: {', '.join(survey.counters)}."
    return escape(said)


# ---- what there is


def seen(table: Table) -> SeenTable:
    """A table for a person to look at."""
    return SeenTable(
        name=table.name,
        kind=table.kind,
        columns=tuple(
            SeenColumn(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                generated=column.generated,
                counter=column.counter,
            )
            for column in table.columns
        ),
        key=table.key,
        references=tuple(_reference(key) for key in table.foreign_keys),
        triggers=table.triggers,
    )


def _reference(key: ForeignKey) -> str:
    follows = [
        f"on {what} {rule.lower()}"
        for what, rule in (("delete", key.on_delete), ("update", key.on_update))
        if rule.upper() not in ("NO ACTION", "RESTRICT")
    ]
    said = f"{', '.join(key.columns)} -> {key.parent}({', '.join(key.parent_columns)})"
    return ", ".join((said, *follows))


# ---- what happened


def changes(ran: Ran, verb: str = "") -> tuple[str, ...]:
    """`orders: 3 rows updated`, table by table; then what GoEx has to say of it. `verb`: the revert that did it."""
    how = BACK if verb == "undo" else DONE
    lines = [f"{one.table}: {_counted(one, how)}{_WHY[one.why]}" for one in ran.reached]
    lines += [f"{counter} moved, and isn't set back by an undo" for counter in ran.counters]
    return tuple(escape(line) for line in (*lines, *ran.notes))


def changes_bounded(ran: Ran, verb: str) -> tuple[str, ...]:
    """The same for the plan of a revert, which says bounds and no counts."""
    how = BACK if verb == "undo" else DONE
    return tuple(escape(f"At most {bounded(one, how)}.") for one in ran.reached)


def _counted(one: Reached, how: Mapping[str, str]) -> str:
    if one.verb in _DEFINES and not one.rows:
        return how[one.verb]
    return _number(one.rows, "row", how[one.verb])


def _number(count: int, noun: str, how: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''} {how}"


def tally(ran: Ran, verb: str = "") -> str:
    """All of it in a few words: of a revert (`verb`) what it does, of an action how many rows it changes."""
    how = BACK if verb == "undo" else DONE
    counts: dict[tuple[str, str], int] = {}
    for one in ran.reached:
        defined = one.verb in _DEFINES and not one.rows
        key = ("table", how[one.verb]) if defined else ("row", how[one.verb] if verb else "changed")
        counts[key] = counts.get(key, 0) + (1 if defined else one.rows)
    parts = [_number(count, noun, done) for (noun, done), count in counts.items()]
    if ran.results:
        parts.append(_number(sum(len(result.rows) + result.cut for result in ran.results), "row", "read"))
    return ", ".join(parts) or "nothing changed"


# ---- dry runs


def dry_lines(ran: Ran, verb: str = "") -> Iterator[DryLine]:
    """What a trial found: counts, then rows as they were and would be. `verb`: of a revert."""
    for line in changes(ran, verb):
        yield DryLine("change", line)
    for result in ran.results:
        yield DryLine("same", escape(" | ".join(result.columns)))
        for row in result.rows:
            yield DryLine("same", escape(" | ".join("NULL" if value is None else str(value) for value in row)))
        if result.cut:
            yield DryLine("note", f"{counted(result.cut, 'more row')} left out.")
    table = ""
    for change in ran.sample:
        if change.table != table:
            table = change.table
            yield DryLine("hunk", escape(table))
        yield from _row(change)
    shown, all_of_them = len(ran.sample), sum(one.rows for one in ran.reached)
    if ran.sample and shown < all_of_them:
        yield DryLine("note", f"{shown} of {all_of_them} rows are shown.")


def _row(row: RowChange) -> Iterator[DryLine]:
    if row.before is not None:
        yield DryLine("removed", escape(_values(row.before)))
    if row.after is not None:
        yield DryLine("added", escape(_values(row.after)))


def _values(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in values.items())
