"""Names, types, keys and triggers, as information_schema tells them. No rows.

`Table.facts` of MariaDB: `engine`, `versioned`, `partitioned`, `identity` (the columns that name a row: the primary
key, else a unique key without NULL; [] none), `forms` (column: [data type, character set, collation, kind of
generation]), `uniques` (name: [[column, prefix length], …]), `moving` (columns with ON
UPDATE CURRENT_TIMESTAMP), `triggers` ([timing, event, name, body, sql_mode]),
`view` (of a view: definition, CHECK OPTION, whether it can be written), `digest` (of all that this table is), `shape`
(a digest of it without indexes and foreign keys).
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import Any

from policies.jsonvalue import canonical
from runtimes.sql.checking.views import VIEW, reads
from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table
from runtimes.sql.mariadb.errors import string
from runtimes.sql.mariadb.wire import Wire
from runtimes.sql.reads_through import ANY, closure

Rows = dict[str, list[tuple[Any, ...]]]


def read(wire: Wire) -> Schema:
    """All of the database."""
    database = string(wire.place.database)
    tables = wire.rows(
        "SELECT table_name, table_type, engine, create_options, table_collation FROM information_schema.tables"
        f" WHERE table_schema = {database} ORDER BY table_name"
    )
    columns = _by_table(
        wire.rows(
            "SELECT table_name, column_name, column_type, is_nullable, column_default, extra, is_generated,"
            " generation_expression, data_type, character_set_name, collation_name FROM information_schema.columns"
            f" WHERE table_schema = {database} ORDER BY table_name, ordinal_position"
        )
    )
    indexes = _by_table(
        wire.rows(
            "SELECT table_name, index_name, non_unique, column_name, sub_part, nullable, index_type, ignored"
            f" FROM information_schema.statistics WHERE table_schema = {database}"
            " ORDER BY table_name, index_name, seq_in_index"
        )
    )
    keys = _by_table(
        wire.rows(
            "SELECT k.table_name, k.constraint_name, k.column_name, k.referenced_table_schema,"
            " k.referenced_table_name, k.referenced_column_name, r.delete_rule, r.update_rule"
            " FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r"
            " ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name"
            " AND r.table_name = k.table_name"
            f" WHERE k.table_schema = {database} AND r.constraint_schema = {database}"
            " AND k.referenced_table_name IS NOT NULL ORDER BY k.table_name, k.constraint_name, k.ordinal_position"
        )
    )
    triggers = _by_table(
        wire.rows(
            "SELECT event_object_table, action_timing, event_manipulation, trigger_name, action_statement, sql_mode"
            f" FROM information_schema.triggers WHERE event_object_schema = {database}"
            " ORDER BY event_object_table, trigger_name"
        )
    )
    checks = _by_table(
        wire.rows(
            "SELECT table_name, constraint_name, check_clause FROM information_schema.check_constraints"
            f" WHERE constraint_schema = {database} ORDER BY table_name, constraint_name"
        )
    )
    views = _by_table(
        wire.rows(
            "SELECT table_name, view_definition, check_option, is_updatable, collation_connection ="
            " @@collation_connection FROM information_schema.views"
            f" WHERE table_schema = {database}"
        )
        if any(str(one[1]) == "VIEW" for one in tables)
        else ()
    )
    found: dict[str, Table] = {}
    for name, kind, engine, options, collation in tables:
        found[name] = _table(
            name,
            (kind, engine, options, collation),
            columns[name],
            indexes[name],
            keys[name],
            triggers[name],
            checks[name],
            wire.place.database,
        )
        for definition, *about in views[name]:
            if definition:  # else the user may not see it
                facts = {**found[name].facts, VIEW: [definition, *map(str, about), wire.place.database]}
                found[name] = replace(found[name], facts=facts)
    wire.triggered = frozenset((name, one[1]) for name, table in found.items() for one in table.facts["triggers"])
    beneath = {name: _beneath(table, wire.place.database) for name, table in found.items()}
    for name, table in found.items():
        if beneath[name]:
            found[name] = replace(table, stands_on=tuple(closure(name, beneath)))
    digests = {name: [table.facts["digest"], *table.stands_on, table.facts.get(VIEW)] for name, table in found.items()}
    return Schema(
        dialect=Dialect.MARIADB,
        version=wire.version,
        tables=found,
        hash=hashlib.sha256(canonical(digests)).hexdigest(),
    )


def _beneath(table: Table, database: str) -> tuple[str, ...]:
    """What a view's definition names, or the tables that an engine shows."""
    if table.kind != "view":
        return (ANY,) if str(table.facts.get("engine", "")).upper() in _SHOWS_OTHERS else ()
    return reads(str(table.facts[VIEW][0]), database) if VIEW in table.facts else (ANY,)


_SHOWS_OTHERS = frozenset({"MRG_MYISAM", "CONNECT", "FEDERATED", "SPIDER"})


def _by_table(rows: tuple[tuple[Any, ...], ...]) -> Rows:
    found: Rows = defaultdict(list)
    for name, *rest in rows:
        found[str(name)].append(tuple(rest))
    return found


def _table(
    name: str,
    about: tuple[Any, ...],
    columns: list[tuple[Any, ...]],
    indexes: list[tuple[Any, ...]],
    keys: list[tuple[Any, ...]],
    triggers: list[tuple[Any, ...]],
    checks: list[tuple[Any, ...]],
    database: str,
) -> Table:
    kind, engine, options, _ = (str(part or "") for part in about)
    made = tuple(
        Column(
            name=column,
            type=str(type_),
            nullable=nullable == "YES",
            generated=generated == "ALWAYS",
            default=str(default or ""),
            counter="auto_increment" in str(extra),
        )
        for column, type_, nullable, default, extra, generated, *_ in columns
    )
    forms: dict[str, list[str]] = {}
    for column, _, _, _, extra, generated, _, type_, charset, collation in columns:
        stored = "" if generated != "ALWAYS" else "stored" if "STORED" in extra or "PERSISTENT" in extra else "virtual"
        forms[column] = [str(type_).lower(), str(charset or ""), str(collation or ""), stored]
    uniques: dict[str, list[list[Any]]] = {}
    nullable_ones: set[str] = set()
    for index, non_unique, column, part, nullable, *_ in indexes:
        if not int(non_unique):
            uniques.setdefault(str(index), []).append([column, part])
            if nullable == "YES":
                nullable_ones.add(str(index))
    primary = tuple(str(column) for column, _ in uniques.get("PRIMARY", []))
    identity = primary
    if not identity:
        for index, parts in sorted(uniques.items(), key=lambda item: (len(item[1]), item[0])):
            named = [str(column) for column, _ in parts]
            if index not in nullable_ones and all(forms[one][3] != "virtual" for one in named):
                identity = tuple(named)
                break
    shown: dict[str, list[list[str]]] = {}
    for constraint, column, to_schema, to_table, to_column, on_delete, on_update in keys:
        parent = to_table if to_schema == database else f"{to_schema}.{to_table}"
        shown.setdefault(str(constraint), []).append([column, parent, to_column, on_delete, on_update])
    foreign = tuple(
        ForeignKey(
            name=constraint,
            columns=tuple(part[0] for part in parts),
            parent=parts[0][1],
            parent_columns=tuple(part[2] for part in parts),
            on_delete=parts[0][3],
            on_update=parts[0][4],
        )
        for constraint, parts in sorted(shown.items())
    )
    parts = [
        [[str(cell) if cell is not None else None for cell in row] for row in part]
        for part in ([about], columns, triggers, checks, indexes, keys)
    ]
    return Table(
        name=name,
        kind="view" if "VIEW" in kind else "table" if kind in ("BASE TABLE", "SYSTEM VERSIONED") else "other",
        columns=made,
        key=primary,
        unique=tuple(
            tuple(str(column) for column, _ in parts) for index, parts in sorted(uniques.items()) if index != "PRIMARY"
        ),
        foreign_keys=foreign,
        triggers=tuple(str(trigger[2]) for trigger in triggers),
        facts={
            "engine": engine,
            "versioned": kind == "SYSTEM VERSIONED",
            "partitioned": "partitioned" in options,
            "identity": list(identity),
            "forms": forms,
            "uniques": uniques,
            "moving": [str(row[0]) for row in columns if "on update" in str(row[4]).lower()],
            "triggers": [[str(part) for part in trigger[:5]] for trigger in triggers],
            "shape": hashlib.sha256(canonical(parts[:4])).hexdigest(),
            "digest": hashlib.sha256(canonical(parts)).hexdigest(),
        },
    )
