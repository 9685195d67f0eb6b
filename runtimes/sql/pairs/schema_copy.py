"""The small copy of a schema that a pair is tried on: which tables, and the statements that make them. No row of the
person's is in it, and no name of anything that the pair doesn't touch.

Whatever a copy couldn't have is refused, with the reason: triggers, generated columns, views, statements that change
definitions. What the copy lacks since nobody told GoEx (CHECK constraints, exclusion) can only refuse more on the real
database, never less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from policies.errors import Unsupported
from runtimes.sql.contract import WRITES, Column, Dialect, Program, Schema, Table

_INSTEAD = "Use --policy reversal: it keeps the rows themselves."
_MOST_TABLES = 30
_NAMED_TYPE = re.compile(r'^(?:"?\w+"?\.)?"?\w+"?$')
_BUILT_IN = re.compile(
    r"^(?:bigint|integer|smallint|int\d?|numeric|decimal|real|double precision|float\d?|money|text|citext|character"
    r"(?: varying)?|varchar|char|bpchar|bytea|boolean|bool|date|time|timestamp|timestamptz|timetz|interval|uuid|json"
    r"|jsonb|inet|cidr|macaddr|bit|varbit|tsvector|name|oid)\b",
    re.I,
)


def tables(action: Program, undo: Program, schema: Schema) -> tuple[Table, ...]:
    """The tables that the copy needs, parents before the tables that point to them. Raises Unsupported."""
    for program in (action, undo):
        for statement in program.statements:
            if statement.verb in ("create", "alter", "drop", "truncate"):
                raise Unsupported("A pair of statements can't change definitions.", next_step=_INSTEAD)
    names = {use.table for program in (action, undo) for one in program.statements for use in one.uses}
    written = {
        use.table for program in (action, undo) for one in program.statements for use in one.uses if use.verb in WRITES
    }
    while True:
        more = {
            key.parent for name in names for key in schema.tables[name].foreign_keys if key.parent in schema.tables
        } | {
            table.name
            for table in schema.tables.values()
            if any(key.parent in written for key in table.foreign_keys)  # what a cascade reaches
        }
        reached = {
            table.name
            for table in schema.tables.values()
            for key in table.foreign_keys
            if key.parent in written and {key.on_delete, key.on_update} & {"CASCADE", "SET NULL", "SET DEFAULT"}
        }
        if more <= names and reached <= written:
            break
        names |= more
        written |= reached
    if len(names) > _MOST_TABLES:
        raise Unsupported(
            f"The pair reaches {len(names)} tables; a copy has at most {_MOST_TABLES}.", next_step=_INSTEAD
        )
    found = [schema.tables[name] for name in sorted(names)]
    for table in found:
        _refuse(table)
    return _ordered(found)


def _refuse(table: Table) -> None:
    why = ""
    if table.kind != "table":
        why = f"{table.name} isn't a plain table"
    elif table.triggers:
        why = f"{table.name} has triggers, which a copy doesn't"
    elif any(column.generated for column in table.columns):
        why = f"{table.name} has computed columns, which a copy can't have"
    elif table.facts.get("replaces") or table.facts.get("ignores"):
        why = f"{table.name} has an ON CONFLICT clause, which a copy doesn't"
    if why:
        raise Unsupported(f"A pair of statements can't be tried out: {why}.", next_step=_INSTEAD)


def _ordered(found: list[Table]) -> tuple[Table, ...]:
    made: list[Table] = []
    waiting = list(found)
    names = {table.name for table in found}
    while waiting:
        ready = [
            table
            for table in waiting
            if all(
                key.parent == table.name or key.parent not in names or key.parent in {one.name for one in made}
                for key in table.foreign_keys
            )
        ]
        if not ready:
            raise Unsupported("The tables point to each other in a circle.", next_step=_INSTEAD)
        made += ready
        waiting = [table for table in waiting if table not in ready]
    return tuple(made)


# ---- the statements that make them


def definitions(found: Iterable[Table], schema: Schema, enums: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """CREATE statements in their order. `enums` are types of the person's own, with the values that are known."""
    made = [f"CREATE SCHEMA {quote(name, schema.dialect)}" for name in _homes(found, schema.dialect)]
    for name, values in sorted(enums.items()):
        home = name.rpartition(".")[0]
        if home and f"CREATE SCHEMA {quote(home, schema.dialect)}" not in made and home != "public":
            made.insert(0, f"CREATE SCHEMA {quote(home, schema.dialect)}")
        made.append(f"CREATE TYPE {name} AS ENUM ({', '.join(literal(value) for value in values)})")
    return (*made, *(_table(table, schema.dialect) for table in found))


def enum_types(found: Iterable[Table], dialect: Dialect) -> frozenset[str]:
    """PostgreSQL's types of columns that aren't built in: they are made as enumerations."""
    if dialect is not Dialect.POSTGRESQL:
        return frozenset()
    types = {column.type.removesuffix("[]") for table in found for column in table.columns}
    own = frozenset(name for name in types if not _BUILT_IN.match(name))
    for name in own:
        if not _NAMED_TYPE.match(name):
            raise Unsupported(f"A copy can't have the type {name[:60]}.", next_step=_INSTEAD)
    return own


def _homes(found: Iterable[Table], dialect: Dialect) -> list[str]:
    if dialect is not Dialect.POSTGRESQL:
        return []
    return sorted({table.name.rpartition(".")[0] for table in found} - {"", "public"})


def _table(table: Table, dialect: Dialect) -> str:
    parts = [_column(column, table, dialect) for column in table.columns]
    inline = dialect is Dialect.SQLITE and len(table.key) == 1 and any("PRIMARY KEY" in part for part in parts)
    if table.key and not inline:
        parts.append(f"PRIMARY KEY ({_names(table.key, dialect)})")
    parts += [f"UNIQUE ({_names(columns, dialect)})" for columns in table.unique if columns != table.key]
    for key in table.foreign_keys:
        parts.append(
            f"FOREIGN KEY ({_names(key.columns, dialect)}) REFERENCES {qualified(key.parent, dialect)} "
            f"({_names(key.parent_columns, dialect)}) ON DELETE {_rule(key.on_delete)} ON UPDATE {_rule(key.on_update)}"
        )
    engine = " ENGINE=InnoDB" if dialect is Dialect.MARIADB else ""
    return f"CREATE TABLE {qualified(table.name, dialect)} ({', '.join(parts)}){engine}"


def _column(column: Column, table: Table, dialect: Dialect) -> str:
    name = quote(column.name, dialect)
    null = "" if column.nullable else " NOT NULL"
    if column.counter and dialect is Dialect.SQLITE and table.key == (column.name,):
        return f"{name} INTEGER PRIMARY KEY"
    if column.counter and dialect is Dialect.POSTGRESQL:
        return f"{name} {column.type} GENERATED BY DEFAULT AS IDENTITY"
    if column.counter and dialect is Dialect.MARIADB and column.name in {*table.key[:1], *_firsts(table)}:
        return f"{name} {column.type} NOT NULL AUTO_INCREMENT"
    default = f" DEFAULT {column.default}" if column.default and not column.counter else ""
    return f"{name} {column.type}{null}{default}"


def _firsts(table: Table) -> set[str]:
    return {columns[0] for columns in table.unique if columns}


def _rule(rule: str) -> str:
    return rule if rule in ("CASCADE", "RESTRICT", "SET NULL", "SET DEFAULT") else "NO ACTION"


def _names(names: Iterable[str], dialect: Dialect) -> str:
    return ", ".join(quote(name, dialect) for name in names)


def quote(name: str, dialect: Dialect) -> str:
    mark = "`" if dialect is Dialect.MARIADB else '"'
    return mark + name.replace(mark, mark * 2) + mark


def qualified(name: str, dialect: Dialect) -> str:
    """A table's name as statements say it."""
    if dialect is not Dialect.POSTGRESQL:
        return quote(name, dialect)
    home, _, last = name.rpartition(".")
    return f"{quote(home or 'public', dialect)}.{quote(last, dialect)}"


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
