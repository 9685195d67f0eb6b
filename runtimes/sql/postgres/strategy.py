"""How the rows of the tables that a program reaches can be caught, and what refuses it beforehand. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from policies.errors import Unsupported
from policies.jsonvalue import JsonObject
from runtimes.sql.checking.allowlist import of_schema
from runtimes.sql.checking.parse import write
from runtimes.sql.contract import Dialect, Policy, Program, Statement, Verb
from runtimes.sql.postgres.helpers import COMPUTING, KNOWN_C, Function
from runtimes.sql.postgres.reach import (
    DATA,
    MAKES_TEXTS,
    Reach,
    Why,
    closure,
    fired,
    stated,
    tree_of,
    without_comments,
    without_texts,
    writes,
)
from runtimes.sql.postgres.relations import TRUNCATE, Catalog, Relation, Trigger, literal, quoted

Method = Literal["none", "returning", "triggers"]

_LANGUAGES = ("plpgsql", "sql", "internal")
_OUTSIDE = re.compile(
    r"\b(dblink\w*|lo_\w+|pg_read_\w+|pg_write_\w+|pg_file_\w+|copy|program|http(?!s?://)\w*|pg_terminate_backend)\b",
    re.I,
)
_DEFINES = re.compile(
    r"\b(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:\w+\s+)?(?:table|function|procedure|view|sequence|index|schema|"
    r"type|trigger|role|user|extension|policy|rule|domain)\b|\b(?:grant|revoke)\s|\bcomment\s+on\b|\bsetval\s*\(",
    re.I,
)
_NOTIFIES = re.compile(r"\b(pg_notify|notify|listen)\b", re.I)
_VOLATILE = re.compile(
    r"\b(random|clock_timestamp|timeofday|gen_random_uuid|statement_timestamp|"
    r"uuid_generate_\w+|gen_salt|gen_random_bytes|pgp_sym_encrypt)\b",
    re.I,
)
# Words that the server looks up as operators.
_MEANT = {
    "LIKE": ("~~", "!~~"),
    "ILIKE": ("~~*", "!~~*"),
    "SIMILAR": ("~", "!~"),
    "BETWEEN": ("<", "<=", ">", ">="),
    "IN": ("=", "<>"),
    **dict.fromkeys(("DISTINCT", "NULLIF", "CASE", "USING", "NATURAL"), ("=",)),
}
_CALLED = re.compile(r"(?<![a-z_0-9])(?<!pg_catalog\.)[0-9]*+([a-z_][a-z_0-9]*+)(?=\s*+\()")
_SEQUENCE = re.compile(r"(?i)\b(?:nextval|currval|pg_get_serial_sequence)\('([^']*)'")
_IN_QUOTES = re.compile(r'"[^"]*"')
_HOLD = "Ask for it with --policy versioning: its transaction is then held, and undo rolls it back."
_LEAVE = "Leave it to somebody with a backup."
_REVERSE = "Ask for it with --policy reversal."


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one program's rows are caught. `tables` are numbered by their place here in images."""

    method: Method
    foreseen: tuple[Reach, ...]  # all that it may write
    reaches: tuple[Reach, ...]  # of these, what can be caught
    tables: tuple[str, ...]
    definitions: bool  # it creates, alters or drops
    triggers: bool  # somebody's triggers fire
    notes: tuple[str, ...]
    counters: tuple[str, ...]

    def facts(self) -> JsonObject:
        return {"method": self.method, "tables": list(self.tables), "triggers": self.triggers}

    def why(self, table: str, verb: str) -> Why:
        found = [each.why for each in self.reaches if each.table == table]
        exact = [each.why for each in self.reaches if each.table == table and each.verb == verb]
        for each in (*exact, *found):
            return each
        return "trigger"


def choose(catalog: Catalog, program: Program, policy: Policy) -> Strategy:
    """Raises Unsupported with the reason, and the policy that would do."""
    _not_shadowed(catalog, program)
    reaches = foreseen = tuple(closure(catalog, stated(program)))
    if policy != "versioning":  # no row is set back there: what is written there all the same is counted, and refused
        reaches = tuple(each for each in reaches if _usable(catalog, each.table))
    tables = tuple(sorted({each.table for each in reaches if each.verb in DATA and each.table in catalog.relations}))
    definitions = any(each.verb not in DATA for each in reaches)
    firing = _firing(catalog, reaches)
    notes = [
        f"The trigger {trigger.name} of {table} fires; what it writes is taken back too, and where that would reach a "
        "table that isn't named here, nothing is done."
        for table, trigger in firing
    ]
    if firing:
        _one_sequence(catalog, program)
    for table, trigger in _firing(catalog, foreseen):
        _known(catalog, table, trigger)
    computing = _computing(catalog, foreseen)
    for table, function in computing:
        _harmless(catalog, f"A default, CHECK, rule or partition key of {table}", function)
    texts = (*(text for _, trigger in firing for text in trigger.texts), *(each.source for _, each in computing))
    counters = _counters(catalog, program, reaches, texts)
    if any(map(MAKES_TEXTS.search, texts)):
        notes.append(
            "A trigger, default or CHECK runs SQL that it makes: what that tells listeners, how far it moves counters, "
            "and what it does to locks and to other sessions of GoEx's user can't be taken back."
        )
    if definitions and catalog.events:
        notes.append(
            "Event triggers watch this database: they run with what changes definitions. What they tell listeners, and "
            "how far they move counters, can't be taken back."
        )
    if policy == "versioning":
        method = _held(catalog, program, reaches, tables, firing, definitions)
        if method == "none" and not definitions:
            notes.append("After it was rolled back it can't be done again by redo: only a new action does.")
        return Strategy(method, foreseen, reaches, tables, definitions, bool(firing), tuple(notes), counters)
    if definitions:
        _definitions(catalog, program)
        return Strategy("none", foreseen, reaches, tables, True, False, tuple(notes), counters)
    _refuse_unrestorable(catalog, program, reaches, tables)
    method = "returning" if _simple(catalog, program, reaches, bool(firing)) else "triggers"
    if method == "triggers":
        _catchable(catalog, tables)
    notes += _unproven(catalog, reaches)
    if any(_notifies(trigger) for _, trigger in firing):
        notes.append("A trigger notifies listeners when this is committed; that can't be taken back.")
    if any(_NOTIFIES.search(function.source) for _, function in computing):
        notes.append("A default or a CHECK notifies listeners when this is committed; that can't be taken back.")
    return Strategy(method, foreseen, reaches, tables, False, bool(firing), tuple(notes), counters)


def _usable(catalog: Catalog, name: str) -> bool:
    return name not in catalog.relations or catalog.relations[name].usable


def _not_shadowed(catalog: Catalog, program: Program) -> None:
    """A function or an operator that somebody made may stand in for the server's own of the same name."""
    if not catalog.shadows and not catalog.operators:
        return
    for statement in program.statements:
        tree = tree_of(statement)
        calls = tree.find_all(exp.Anonymous) if tree is not None else ()
        names = {str(node.this).lower() for node in calls if of_schema(node) is None}
        words = set(_CALLED.findall(statement.sql.lower()))
        found = sorted((names | words) & catalog.shadows)
        if found:
            raise Unsupported(
                f"The schema public has a function {found[0]} of its own, which may stand in for the server's.",
                next_step="Have it moved to another schema, or renamed.",
            )
        signs = set(re.findall(r"[-+*/<>=~!@#%^&|`?]+", statement.sql))
        signs.update(*(_MEANT.get(word, ()) for word in re.findall(r"\w+", statement.sql.upper())))
        if signs & catalog.operators:
            raise Unsupported(
                f"The schema public has an operator {sorted(signs & catalog.operators)[0]} of its own.",
                next_step="Have it moved to another schema.",
            )


def _one_sequence(catalog: Catalog, program: Program) -> None:
    """Raises Unsupported for a sequence without its schema where the path of the triggers, which statements then run
    with, may lead to another one than the one of `public`."""
    for name in (name for one in program.statements for name in _SEQUENCE.findall(one.sql)):
        if catalog.path[0] != "public" and "." not in _IN_QUOTES.sub("", name):
            raise Unsupported(
                f"{name} may be a sequence of {catalog.path[0]}, too, where triggers fire.",
                next_step=f"Name it with its schema: 'public.{name}'.",
            )


def _firing(catalog: Catalog, reaches: tuple[Reach, ...]) -> list[tuple[str, Trigger]]:
    """The triggers that may fire, each with the table that has it."""
    ordered = sorted(reaches, key=lambda each: each.table)
    return list(dict.fromkeys((one.name, trigger) for each in ordered for one, trigger in fired(catalog, each)))


def _computing(catalog: Catalog, reaches: tuple[Reach, ...]) -> list[tuple[str, Function]]:
    """The functions that run where tables are written, beside triggers, each with a table that has it."""
    found = {
        function.oid: (one.name, function)
        for each in reaches
        if each.table in catalog.relations
        for one in catalog.members(catalog.relations[each.table])
        for function in one.computing(each.verb)
    }
    return list(found.values())


_NEXTVAL = re.compile(r"(?i)nextval\('([^']+)'")


def _counters(
    catalog: Catalog, program: Program, reaches: tuple[Reach, ...], texts: tuple[str, ...]
) -> tuple[str, ...]:
    found = {
        sequence
        for each in reaches
        if each.verb == "insert" and each.table in catalog.relations
        for sequence in catalog.relations[each.table].sequences
    }
    texts = (*(one.sql for one in program.statements), *texts)
    found |= {name for text in texts for name in _NEXTVAL.findall(text)}
    return tuple(sorted(name.removeprefix("public.") for name in found))


# ---- what refuses it


def _known(catalog: Catalog, table: str, trigger: Trigger) -> None:
    said = f"The trigger {trigger.name} of {table}"
    if trigger.language not in _LANGUAGES and trigger.function not in KNOWN_C:
        raise _unseen(f"{said} is written in {trigger.language}")
    runs = any(map(MAKES_TEXTS.search, trigger.texts))  # else what is in quotes is a message, or a value
    if trigger.language != "internal" and _reaches_out(catalog, trigger.source, runs):
        raise Unsupported(f"{said} reaches outside of the tables, which can't be taken back.", next_step=_LEAVE)
    for function in trigger.helpers:
        _harmless(catalog, said, function, runs)


def _harmless(catalog: Catalog, said: str, function: Function, runs: bool = True) -> None:
    """Raises Unsupported for a function that does what can't be taken back, or can't be seen to."""
    if function.language not in _LANGUAGES:
        computes = function.volatility in "is" or function.extension in COMPUTING or function.name in KNOWN_C
        if function.language != "c" or not computes:
            raise _unseen(f"{said} calls {function.name}, which is written in {function.language}")
    elif function.language != "internal" and _reaches_out(catalog, function.source, runs):
        raise Unsupported(
            f"{said} calls {function.name}, which reaches outside of the tables, and that can't be taken back.",
            next_step=_LEAVE,
        )


def _unseen(said: str) -> Unsupported:
    said = f"{said}: what it does outside of the tables can't be seen, nor taken back."
    return Unsupported(said, next_step=_LEAVE)


def _reaches_out(catalog: Catalog, source: str, runs: bool) -> bool:
    """`runs`: it, or what it calls, may run a text as SQL."""
    said = without_comments(source)
    if _OUTSIDE.search(said) or _DEFINES.search(said if runs else without_texts(source)):
        return True
    return any(True for name in catalog.far for _ in writes(source, name))  # nothing counts what is written there


def _notifies(trigger: Trigger) -> bool:
    return any(_NOTIFIES.search(text) for text in trigger.texts)


def _held(
    catalog: Catalog,
    program: Program,
    reaches: tuple[Reach, ...],
    tables: tuple[str, ...],
    firing: list[tuple[str, Trigger]],
    definitions: bool,
) -> Method:
    if catalog.prepared == 0:
        raise Unsupported(
            "This server holds no transactions (max_prepared_transactions is 0).",
            next_step=f"{_REVERSE} Or let its administrator set it to 10, and restart the server.",
        )
    for table in tables:
        if catalog.relations[table].persistence == "t":
            raise Unsupported("A transaction on a temporary table can't be held.", next_step=_REVERSE)
        if any(one.kind == "f" for one in catalog.relations.values() if catalog.root(one).name == table):
            raise Unsupported(
                f"{table} is kept by another server: nothing holds what is written there.",
                next_step=_LEAVE,
            )
    for table, trigger in firing:
        if _notifies(trigger):
            raise Unsupported(
                f"The trigger {trigger.name} of {table} notifies listeners, and a transaction that does can't be held.",
                next_step=_REVERSE,
            )
    if definitions or not _simple(catalog, program, reaches, bool(firing)):
        return "none"
    try:
        _refuse_unrestorable(catalog, program, reaches, tables)
    except Unsupported:
        return "none"
    return "returning"


def _refuse_unrestorable(
    catalog: Catalog, program: Program, reaches: tuple[Reach, ...], tables: tuple[str, ...]
) -> None:
    for table in sorted(tables, key=lambda name: catalog.relations[name].kind in "rp"):  # no GRANT makes a view one
        _restorable(catalog, catalog.relations[table], {each.verb for each in reaches if each.table == table})
    for statement in program.statements:
        if statement.verb == "truncate":
            _truncates(catalog, program, statement)


def _restorable(catalog: Catalog, relation: Relation, verbs: set[Verb]) -> None:
    name = relation.name
    if relation.kind not in "rp":
        raise Unsupported(f"{name} isn't a table of this database: its rows can't be set back.", next_step=_HOLD)
    if relation.kind == "p" and relation.plain in catalog.far:
        raise Unsupported(f"{name} is kept by another server, too: nothing counts its rows there.", next_step=_LEAVE)
    if relation.partition:
        root = catalog.root(relation)
        if root is relation or not root.usable:
            raise Unsupported(f"{name} is a partition of a table that GoEx's user can't see.", next_step=_HOLD)
        raise Unsupported(f"{name} is a partition of {root.name}.", next_step=f"Name {root.name} itself, or: {_HOLD}")
    if relation.inherited and relation.kind == "r":
        raise Unsupported(f"Other tables inherit from {name}; their rows can't be caught exactly.", next_step=_HOLD)
    if relation.row_security:
        raise Unsupported(
            f"{name} hides rows from GoEx's user (row level security), so that undo couldn't see all it needs.",
            next_step=_HOLD,
        )
    if relation.rules:
        raise Unsupported(f"{name} has rules that rewrite what is done to it.", next_step=_HOLD)
    if relation.recast:
        raise Unsupported(f"{name} has casts of its rows, which stand for how the server writes them.", next_step=_HOLD)
    if any(column.type.startswith("xml") for column in relation.columns):
        raise Unsupported(f"{name} has xml, which PostgreSQL doesn't write out as it is kept.", next_step=_HOLD)
    wanted = {"SELECT"} | {"UPDATE" for verb in verbs if verb == "update"}
    if verbs & {"insert", "delete", "truncate"}:
        wanted |= {"INSERT", "DELETE"}
    if not relation.may(*wanted):
        missing = ", ".join(sorted(wanted - relation.privileges))
        raise Unsupported(
            f"GoEx's user may not set rows of {name} back.", next_step=f"GRANT {missing} ON {relation.sql} to it."
        )
    firing = catalog.firing(relation)
    if any(not one.owned for one, _ in firing):
        raise Unsupported(
            f"{name} has triggers, which would fire again while its rows are set back; only its owner keeps them off.",
            next_step=_HOLD,
        )
    if firing and catalog.events:
        raise Unsupported("Event triggers watch this database: its triggers can't be kept off.", next_step=_HOLD)
    if not catalog.counts:
        raise Unsupported("The server doesn't count rows (track_counts is off), so nothing is proven.", next_step=_HOLD)
    if not catalog.temporary:
        raise Unsupported(
            "GoEx's user may not make temporary tables, which undo needs.",
            next_step="GRANT TEMPORARY ON DATABASE … to it.",
        )


def _unproven(catalog: Catalog, reaches: tuple[Reach, ...]) -> Iterator[str]:
    """Rules that rows may break which are there all the same."""
    for table in sorted({each.table for each in reaches if each.verb in ("update", "delete", "truncate")}):
        relation = catalog.relations[table]
        names = [check.name for check in relation.checks if not check.valid and not relation.mendable]
        names += [key.name for key in catalog.foreign if key.child == table and not key.valid]
        if names:
            yield (
                f"{table} has {', '.join(names)} without having been validated: where this reaches a row that breaks "
                "that, it is rolled back, since undo couldn't put such a row back."
            )
        for check in relation.checks:
            if not check.steady and re.search(r"CURRENT_|LOCALTIME|\bnow\(|timestamp\(\)", check.definition):
                yield (
                    f"The CHECK {check.name} of {table} looks at the clock: "
                    "undo is refused where a row breaks it by then."
                )


def _catchable(catalog: Catalog, tables: tuple[str, ...]) -> None:
    if catalog.events:
        raise Unsupported("Event triggers watch this database: no rows can be caught by triggers.", next_step=_HOLD)
    for table in tables:
        relation = catalog.relations[table]
        if not relation.may("TRIGGER"):
            raise Unsupported(
                f"GoEx's user may not catch the rows of {table}, which this changes by cascades or triggers.",
                next_step=f"GRANT TRIGGER ON {relation.sql} to it, or: {_HOLD}",
            )


def _truncates(catalog: Catalog, program: Program, statement: Statement) -> None:
    table = statement.table
    if sum(use.table == table for one in program.statements for use in one.uses) > 1:
        raise Unsupported(f"TRUNCATE of {table} goes alone.", next_step="Use DELETE, or make two actions of it.")
    text = statement.sql.upper()
    if text.endswith(" RESTART IDENTITY"):
        raise Unsupported("RESTART IDENTITY sets a counter back, which undo doesn't.", next_step=_HOLD)
    if text.endswith(" CASCADE") or " CASCADE " in text or catalog.pointing_to(table):
        raise Unsupported(f"Other tables point to {table}.", next_step=f"Use DELETE, or: {_HOLD}")
    if any(trigger.events & TRUNCATE for _, trigger in catalog.firing(catalog.relations[table])):
        raise Unsupported(f"{table} has a trigger on TRUNCATE.", next_step=_HOLD)


def _definitions(catalog: Catalog, program: Program) -> None:
    only = program.statements[0]
    tree = tree_of(only)
    plain = (
        len(program.statements) == 1
        and only.verb == "create"
        and isinstance(tree, exp.Create)
        and str(tree.args.get("kind")).upper() == "TABLE"
        and tree.args.get("expression") is None
    )
    if not plain:
        raise Unsupported(
            "What changes definitions can't be set back row by row (only a CREATE TABLE alone can).", next_step=_HOLD
        )
    if only.table in catalog.relations:
        raise Unsupported(f"{only.table} is there already.")
    if catalog.events:
        raise Unsupported("Event triggers watch this database: a table isn't all that would be made.", next_step=_HOLD)


# ---- what is caught without triggers


def _simple(catalog: Catalog, program: Program, reaches: tuple[Reach, ...], firing: bool) -> bool:
    if firing or any(each.why != "statement" for each in reaches):
        return False
    return all(
        one.verb in ("select", "truncate") or catching(one, 0) is not None
        for one in program.statements
        if one.verb == "select" or one.table in catalog.relations
    )


@dataclass(frozen=True, slots=True)
class Catching:
    """A statement that gives its own rows. `before`: read first, in the same snapshot; `sql` runs it."""

    before: str
    sql: str
    side: str  # of the rows that `sql` gives


@lru_cache(maxsize=256)
def catching(statement: Statement, number: int) -> Catching | None:
    """How the rows of `statement` come out of it; None: only triggers catch them all."""
    tree = tree_of(statement)
    with_ = tree.args.get("with_") if tree is not None else None
    if tree is None or (with_ is not None and with_.find(exp.DML)):
        return None
    if isinstance(tree, exp.Insert):
        if any(use.verb == "update" for use in statement.uses):
            return None
        node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        return Catching("", _returning(statement, _name(node), number, "a"), "a")
    if isinstance(tree, exp.Delete):
        return Catching("", _returning(statement, _name(tree.this), number, "b"), "b")
    if not isinstance(tree, exp.Update) or any(tree.args.get(part) for part in ("from_", "with_", "order", "limit")):
        return None
    if tree.find(exp.Lock):  # SKIP LOCKED may find other rows a moment later
        return None
    chosen = rows_of(tree)
    if _VOLATILE.search(chosen) or tree.this.args.get("joins"):
        return None
    before = f"SELECT {number}, 'b', ({_name(tree.this)}.*)::pg_catalog.text {chosen}"
    return Catching(before, _returning(statement, _name(tree.this), number, "a"), "a")


def rows_of(tree: exp.Update | exp.Delete) -> str:
    """FROM and WHERE of the rows that it writes."""
    where = tree.args.get("where")
    query = exp.Select(
        expressions=[exp.Literal.number(1)],
        from_=exp.From(this=tree.this.copy()),
        where=where.copy() if where is not None else None,
    )
    return write(query, Dialect.POSTGRESQL).removeprefix("SELECT 1 ")


def _returning(statement: Statement, name: str, number: int, side: str) -> str:
    more = ", " if statement.returns_rows else " RETURNING "
    return f"{statement.sql}{more}{number}, {literal(side)}, ({name}.*)::pg_catalog.text"


def _name(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    if alias is not None:
        return quoted(alias.this.name)
    db = node.args.get("db")
    return f"{quoted(db.name)}.{quoted(node.this.name)}" if db is not None else quoted(node.this.name)
