"""What is refused beforehand, with the reason; and how many rows a program may write.

Reversal has to know every row that is written. Versioning only has to roll back: so what reversal can't follow may
still be held, as long as every table is one that rolls back.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from policies.errors import Conflict, Unsupported
from runtimes.sql.bounds import COUNT_SECONDS, EXACT, UNCOUNTED, Sizes
from runtimes.sql.contract import Limits, Policy, Program, Reached, Schema, Statement, Survey, Table, Verb
from runtimes.sql.mariadb import built_on, definitions, privileges, read_functions, routines, several
from runtimes.sql.mariadb.capture import WHOLE, cascades, check_link, whole
from runtimes.sql.mariadb.definitions_reversed import Definition, needed, planned
from runtimes.sql.mariadb.errors import NAME, quoted
from runtimes.sql.mariadb.rows import Form
from runtimes.sql.mariadb.steps import Step, counts, explains_write, steps
from runtimes.sql.mariadb.trigger_text import named, rolls_back, stays_in_row
from runtimes.sql.mariadb.wire import ServerError, Wire

_HOLD = "Use --policy versioning: it is held until you commit or undo it."
_ROW_BYTES = 19  # that a row takes of InnoDB's pages at least
_EITHER: tuple[Verb, ...] = ("delete", "update")


@dataclass(slots=True)
class Looked:
    """What a program would touch. `exact`: it can be followed row by row."""

    steps: list[Step]
    tables: dict[str, None] = field(default_factory=dict)  # that it writes, by itself and through cascades
    notes: list[str] = field(default_factory=list)
    reads: tuple[str, ...] = ()  # tables that triggers name
    by_triggers: dict[str, None] = field(default_factory=dict)  # tables that triggers may write
    exact: bool = True
    definition: Definition | None = None  # of one that defines


def refuse(wire: Wire, rights: privileges.Grants, schema: Schema, program: Program, policy: Policy) -> Looked:
    """Raises Unsupported for what couldn't be taken back as that policy promises."""
    routines.refuse(wire, schema, program)
    definitions.refuse(program.statements, policy)
    first, *rest = program.statements
    filled = tuple(rest) if definitions.is_filled(program.statements) else ()  # they run with the definition
    found = Looked(steps((first,) if filled else program.statements, schema))
    writing = [part for step in found.steps if step.kind != "select" for part in step.parts]
    read = {use.table for one in program.statements for use in one.uses}
    for step in writing:
        if step.kind == "ddl":
            _refuse_truncate(step)
            if filled or step.statement.sql.upper().startswith("CREATE TABLE"):
                read_functions.refuse(wire, rights, schema, read, writing=True)
            found.definition = planned(wire, schema, step.statement, filled)
            if filled and step.table is not None:
                _refuse_hidden_links(wire, schema, step.table, "update", frozenset())
            privileges.refuse_missing(rights, wire.place, needed(found.definition, schema))
            if found.definition.keeps and step.table is not None and not rights.may(step.table.name, "TRIGGER"):
                raise privileges.no_trigger_right(wire.place, step.table.name)
            fires = step.table is not None and any(event == "UPDATE" for _, event, *_ in step.table.facts["triggers"])
            if found.definition.fills and fires and step.table is not None:  # they are rehearsed, and rolled back
                _refuse_triggers_held(wire, rights, schema, step.table, Looked([]))
                named_ = built_on.named(schema, (step.table.name,)) | {step.table.name}
                read |= read_functions.by_triggers(wire, rights, schema, named_)
                read_functions.refuse(wire, rights, schema, read, writing=True)
            found.tables[step.statement.table] = None
            return found
        assert step.table is not None
        for table, _ in _closure(schema, step):
            found.tables[table.name] = None
            _refuse_engine(table)
            if not rights.may(table.name, "TRIGGER"):
                raise privileges.no_trigger_right(wire.place, table.name)
            if policy == "versioning":
                _refuse_triggers_held(wire, rights, schema, table, found)
        try:
            _refuse_reversal(wire, schema, step, len(writing))
        except Unsupported as error:
            if policy != "versioning":
                raise
            found.exact = False
            found.notes.append(f"Redo after an undo isn't there for this: {error.message}")
    named_ = built_on.named(schema, found.tables)
    found.reads = tuple(sorted(named_ - found.tables.keys()))
    # Under reversal triggers write nothing, so none of another table fires.
    fired = found.tables.keys() | named_ if policy == "versioning" else found.tables.keys()
    read |= read_functions.by_triggers(wire, rights, schema, fired)
    writes = bool(writing) or any(explains_write(one) for one in program.statements)
    read_functions.refuse(wire, rights, schema, read, writing=writes)
    return found


def _closure(schema: Schema, step: Step) -> list[tuple[Table, Verb]]:
    """The tables that a step writes, each with how: by itself first, then through foreign keys."""
    assert step.table is not None
    event: Verb = {"delete": "delete", "replace": "delete", "insert": "insert"}.get(step.kind, "update")  # type: ignore[assignment]
    found: list[tuple[Table, Verb]] = [(step.table, event)]
    seen: set[tuple[str, Verb]] = {(step.table.name, event)}
    waiting: list[tuple[Table, Verb, frozenset[str]]] = [(step.table, event, step.columns)]
    while waiting:
        parent, verb, columns = waiting.pop()
        if verb == "insert":
            continue
        for child, link in cascades(schema, parent, verb, columns):
            falls = verb == "delete" and link.on_delete == "CASCADE"
            next_verb: Verb = "delete" if falls else "update"
            if (child.name, next_verb) not in seen:
                seen.add((child.name, next_verb))
                found.append((child, next_verb))
                waiting.append((child, next_verb, frozenset() if falls else frozenset(link.columns)))
    return found


def _refuse_truncate(step: Step) -> None:
    """What `steps` couldn't make a DELETE of."""
    if step.statement.verb == "truncate":
        name = step.statement.table
        raise Unsupported(
            f"TRUNCATE commits at once, and what {name} held can't be brought back.",
            next_step=f"Use DELETE FROM {name}: that can be taken back.",
        )


def _refuse_engine(table: Table) -> None:
    if table.kind != "table":
        raise Unsupported(f"{table.name} isn't a plain table.", next_step="Write to the tables that it stands on.")
    engine = str(table.facts["engine"])
    if engine.lower() != "innodb":
        raise Unsupported(
            f"{table.name} is kept by {engine or 'another engine'}: its rows don't roll back.",
            next_step=f"ALTER TABLE {quoted(table.name)} ENGINE=InnoDB makes it one that does.",
        )


def _refuse_reversal(wire: Wire, schema: Schema, step: Step, writes: int) -> None:
    """What can't be followed row by row."""
    table = step.table
    assert table is not None
    several.refuse(schema, step)
    for one, _ in _closure(schema, step):
        if one.facts["versioned"]:
            raise Unsupported(f"{one.name} keeps the history of its rows, which undo would write to.", next_step=_HOLD)
        Form.of(one)
        by_itself = one.name == table.name
        for timing, trigger_event, name, body, mode in one.facts["triggers"]:
            # A cascade fires none; taking back puts rows in and takes them out.
            fires = trigger_event in ("INSERT", "DELETE") or by_itself
            if fires and not stays_in_row(str(body), str(mode)):
                raise Unsupported(
                    f"The trigger {name} ({timing} {trigger_event} of {one.name}) writes elsewhere, and that can't be"
                    " followed.",
                    next_step=_HOLD,
                )
        for either in _EITHER:
            for child, link in cascades(schema, one, either, frozenset()):
                check_link(one, child, link)
    if step.kind in ("upsert", "replace") and writes > 1:
        verb: Verb = "delete" if step.kind == "replace" else "update"
        if any(True for _ in cascades(schema, table, verb, step.columns)):
            raise Unsupported(
                f"REPLACE and ON DUPLICATE KEY UPDATE of {table.name} beside other statements can't be followed:"
                " other tables hang on it.",
                next_step="Make it an action of its own.",
            )
    if whole(step):
        (number,) = wire.one(f"SELECT COUNT(*) FROM (SELECT 1 FROM {quoted(table.name)} LIMIT {WHOLE + 1}) t")
        if int(number) > WHOLE:
            raise Unsupported(
                f"The rows of {table.name} can't be told apart through this: it has no key, or its key is changed.",
                next_step=_HOLD,
            )
    _refuse_hidden_links(wire, schema, table, "delete", frozenset())
    for one, verb in _closure(schema, step):
        if verb == "update":
            _refuse_hidden_links(wire, schema, one, verb, step.columns if one.name == table.name else frozenset())


def _refuse_hidden_links(wire: Wire, schema: Schema, table: Table, verb: Verb, columns: frozenset[str]) -> None:
    """Raises Unsupported where a foreign key of another database would follow a table's rows. `columns` that are
    updated; none: any."""
    if opened(wire, table, verb, columns) <= expected(schema, table.name, verb):
        return
    if columns and not table.triggers:
        made = {name for name, form in table.facts["forms"].items() if form[3]}
        moving = {str(name) for name in table.facts["moving"]}
        if not (columns | made | moving) & _indexed(wire, table.name):
            return  # nothing points to what is updated
    raise Unsupported(
        f"Something that GoEx's user can't see hangs on {table.name}: a foreign key of another database, or of this one"
        " where the user has its rights by table.",
        next_step=f"GRANT the rights on {quoted(wire.place.database)}.*, let the user read that other table, or use"
        " --policy versioning.",
    )


def _indexed(wire: Wire, name: str) -> set[str]:
    rows = wire.rows(
        "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE()"
        f" AND table_name = CONVERT(x'{name.encode().hex()}' USING utf8mb4)"
    )
    return {str(column) for (column,) in rows}


def opened(wire: Wire, table: Table, verb: Verb, columns: frozenset[str]) -> int:
    """How many tables the server opens to delete from one, or to update it: itself, and what hangs on it by ON DELETE
    or ON UPDATE. Also those that the user may not see; nothing else tells of them."""
    sql = f"EXPLAIN DELETE FROM {quoted(table.name)} WHERE FALSE"
    if verb == "update":
        plain = [column.name for column in table.columns if not column.generated]
        column = quoted(next((name for name in plain if name in columns), plain[0]))
        sql = f"EXPLAIN UPDATE {quoted(table.name)} SET {column} = {column} WHERE FALSE"
    counts = []
    for _ in range(3):  # the first time it also opens its own tables of statistics
        before = _opened(wire)
        wire.run(sql)
        counts.append(_opened(wire) - before)
        if counts[-1] == 1:
            break
    return min(counts)


def _opened(wire: Wire) -> int:
    found = wire.rows("SHOW SESSION STATUS WHERE variable_name IN ('Table_open_cache_hits','Table_open_cache_misses')")
    return sum(int(value) for _, value in found)


def expected(schema: Schema, name: str, verb: Verb) -> int:
    """How many it opens for what the schema shows."""
    found = [(name, False)]
    at = 0
    while at < len(found):
        parent = found[at][0]
        for child in schema.tables.values():
            for link in child.foreign_keys:
                follows = link.on_delete if verb == "delete" else link.on_update
                hangs = link.parent == parent and follows in ("CASCADE", "SET NULL", "SET DEFAULT")
                if hangs and (child.name, True) not in found:
                    found.append((child.name, True))
        at += 1
    # What its triggers read is opened each time that they name it, and what stands behind it: at most these.
    texts = "\n".join(
        str(body).lower()
        for one, _ in found
        for _, event, _, body, _ in schema.tables[one].facts["triggers"]
        if str(event).lower() == verb
    )
    words = Counter(re.findall(rf"{NAME}++", texts))
    more = 0
    for name, table in schema.tables.items() if texts else ():
        plain = re.fullmatch(rf"{NAME}++", name)
        more += (words[name.lower()] if plain else texts.count(name.lower())) * (1 + len(table.stands_on))
    return len(found) + more


def _refuse_triggers_held(wire: Wire, rights: privileges.Grants, schema: Schema, table: Table, found: Looked) -> None:
    """A held transaction rolls back what its triggers write, and those of what they write, where all of those tables
    roll back."""
    waiting, seen = [table], {table.name}
    while waiting:
        table = waiting.pop()
        if not rights.may(table.name, "TRIGGER"):
            raise privileges.no_trigger_right(wire.place, table.name)
        for _, _, name, body, mode in table.facts["triggers"]:
            if stays_in_row(str(body), str(mode)):
                continue
            if not rolls_back(str(body), str(mode), schema, wire.place.database):
                raise Unsupported(
                    f"The trigger {name} of {table.name} does more than can be rolled back for sure.",
                    next_step="Leave this to somebody with a backup.",
                )
            note = f"The trigger {name} of {table.name} writes to other tables; that is held with it."
            if note not in found.notes:
                found.notes.append(note)
            words = named(str(body))
            waiting += [one for one in schema.tables.values() if one.name.lower() in words and one.name not in seen]
            seen |= {one.name for one in waiting}
            found.by_triggers.update(dict.fromkeys(one.name for one in waiting))


# ---- how many


def survey(
    wire: Wire, rights: privileges.Grants, schema: Schema, program: Program, policy: Policy, limits: Limits
) -> Survey:
    """See `Session.survey`."""
    looked = refuse(wire, rights, schema, program, policy)
    for step in looked.steps:
        _read(wire, step)
    sizes = _Sizes(wire, schema)
    sized = _reached(looked.steps, schema, sizes, sizes.at_most)
    reached = _reached(looked.steps, schema, sizes, sizes.counted)
    if looked.definition is not None:
        only = program.statements[0]
        number = _kept(sizes, program, looked.definition)
        sized = [Reached(table=only.table, verb=only.verb, rows=number)]
        reached = list(sized)
        columns = {name for one in program.statements[1:] for use in one.uses for name in use.columns}
        if only.verb == "alter" and columns:
            reached.append(Reached(table=only.table, verb="update", rows=number, columns=tuple(sorted(columns))))
    counters = {
        f"{step.table.name}.{column.name}": None
        for step in looked.steps
        if step.table is not None and step.kind in ("insert", "upsert", "replace")
        for column in step.table.columns
        if counts(column)
    }
    for name in looked.by_triggers:
        counters.update({f"{name}.{one.name}": None for one in schema.tables[name].columns if counts(one)})
    if any(one.kind not in ("select", "ddl") for one in looked.steps):
        for name in looked.tables:
            if schema.tables[name].facts["partitioned"]:
                looked.notes.append(f"{name} is partitioned.")
    return Survey(
        reached=tuple(reached),
        bound=sum(one.rows for one in sized),
        counters=tuple(counters),
        notes=tuple(dict.fromkeys(looked.notes)),
        reads=looked.reads,
        strategy={"exact": looked.exact, "tables": sorted(looked.tables)},
    )


def _kept(sizes: Sizes, program: Program, definition: Definition) -> int:
    """How many rows a definition loses, changes or makes."""
    first, *filling = program.statements
    if definition.keeps != "made":
        return sizes.of(first.table) if definition.keeps else 0
    own = first.most if first.most is not None else sizes.of_sources(first) if not filling or first.sources else 0
    return own + sum(sizes.at_most(one) for one in filling)


def _reached(steps: list[Step], schema: Schema, sizes: _Sizes, count: Callable[[Statement], int]) -> list[Reached]:
    reached: list[Reached] = []
    more: dict[str, int] = {}
    for step in (part for one in steps for part in one.parts):
        if step.table is None or step.kind == "ddl":
            continue
        table, name = step.table, step.table.name
        rows = count(step.statement)
        if step.kind not in ("insert", "upsert", "replace"):
            rows += more.get(name, 0)
        else:
            more[name] = more.get(name, 0) + rows
        if step.moves_keys and len([one for one in steps if one.kind != "select"]) > 1:
            rows *= 2  # beside others, a row whose key changes counts as one that goes and one that comes
        if step.kind == "replace":
            rows *= 1 + len(table.facts["uniques"])
        for use in step.statement.uses:
            if use.table == name and use.verb != "select":
                reached.append(Reached(table=name, verb=use.verb, rows=rows, columns=use.columns))
        closure = _closure(schema, step)
        if step.kind != "insert" and any(
            child.name == name for parent, verb in closure for child, _ in cascades(schema, parent, verb, frozenset())
        ):  # it reaches itself again: at most all of it
            reached.append(Reached(table=name, verb=closure[0][1], rows=sizes.of(name), why="cascade"))
        # Also of a table without rows: else the permissions that are asked for would tell whether it has any.
        for child, verb in closure[1:]:
            reached.append(Reached(table=child.name, verb=verb, rows=sizes.of(child.name), why="cascade"))
    return reached


def _read(wire: Wire, step: Step) -> None:
    """Raises InvalidInput for a statement that the server can't run. It reads it, and no more: EXPLAIN also looks up
    the rows that a condition names by a key, and tries the rest of it on them."""
    if step.kind == "ddl":
        return
    text = step.statement.sql.encode().hex()
    try:
        wire.run(f"SET @goex_read = CONVERT(x'{text}' USING utf8mb4)")
        wire.run("PREPARE goex_read FROM @goex_read", prepares=step.statement.sql)
        wire.run("DEALLOCATE PREPARE goex_read")
    except ServerError as error:
        if not isinstance(error.said, Conflict):
            raise
    finally:
        if not wire.broken:
            wire.run("SET @goex_read = NULL")


class _Sizes(Sizes):
    def __init__(self, wire: Wire, schema: Schema) -> None:
        super().__init__()
        self._wire, self._schema = wire, schema

    def _size(self, name: str) -> int:
        table = self._schema.tables.get(name)
        if table is None or table.kind != "table":
            return UNCOUNTED
        rows = self._number(f"SELECT COUNT(*) FROM (SELECT 1 FROM {quoted(name)} LIMIT {EXACT + 1}) goex_rows")
        if rows is not None and rows <= EXACT:
            return rows
        found = self._wire.rows(
            "SELECT COALESCE(table_rows, 0), COALESCE(data_length, 0) FROM information_schema.tables"
            f" WHERE table_schema = DATABASE() AND table_name = CONVERT(x'{name.encode().hex()}' USING utf8mb4)"
        )
        if not found:
            return UNCOUNTED
        # InnoDB only guesses how many there are: wide enough for what a guess is wrong by.
        guessed, bytes_ = int(found[0][0]), int(found[0][1])
        return max(4 * guessed, bytes_ // _ROW_BYTES, EXACT + 1)

    def _number(self, sql: str) -> int | None:
        try:
            return int(self._wire.one(f"SET STATEMENT max_statement_time = {COUNT_SECONDS} FOR {sql}")[0])
        except ServerError as error:
            if not isinstance(error.said, Conflict):
                raise
        except TypeError:
            pass
        return None
