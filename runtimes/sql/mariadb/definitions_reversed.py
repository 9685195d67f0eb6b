"""How a statement that defines is taken back: the opposite statement, and what has to be so for it to be exact."""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Schema, Statement, Table
from runtimes.sql.mariadb import definitions_altered as altered
from runtimes.sql.mariadb import definitions_filled, definitions_kept, definitions_whole
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb.column_room import beyond
from runtimes.sql.mariadb.definitions_foreseen import BACKUP, shown
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import Wire


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
    counts: bool = False  # it sets AUTO_INCREMENT, which says nothing of a definition else
    planned_on: str = ""  # the definition that it changes; "": there is none yet
    widens: bool = False  # a column gets room for more, so only triggers that write into it stand on that
    unknown: str = ""  # a SELECT that gives a row where one is there that undo couldn't put back ("": never)
    names: tuple[str, ...] = ()  # that undo takes away, a table's own first; (): none that others can stand on
    keeps: Literal["", "rows", "dropped", "made"] = ""  # the table's rows, which undo brings back or compares
    late: str = ""  # what takes it back once the values of `fills` are there
    on_copy: tuple[str, str] = ("", "")  # `undo` and `late` of a copy, which has no foreign keys
    between: str = ""  # the definition until then
    forth: str = ""  # what leads back from there to what the statement left
    fills: tuple[str, ...] = ()  # columns whose values undo may have to bring back
    recounts: bool = False  # whether AUTO_INCREMENT comes back, whose value has to be added


def planned(wire: Wire, schema: Schema, only: Statement, more: tuple[Statement, ...] = ()) -> Definition:
    """How a statement that stands alone is taken back, or with those that fill its table. Raises Unsupported."""
    verb = only.verb.upper()
    (tree,) = read(only.sql, Dialect.MARIADB)
    if only.table.lower() in (foreseen.COPY, definitions_kept.VALUES):
        raise Unsupported(f"GoEx makes a table {only.table} itself for a moment.", next_step="Use another name for it.")
    alters = not isinstance(tree, exp.Create) or str(tree.args.get("kind")).upper() == "INDEX"
    planned_on = shown(wire, only.table) if alters else ""
    refused = Unsupported(f"MariaDB commits {verb} at once, and it can't be taken back exactly.", next_step=BACKUP)
    try:
        found = None if more and alters else _inverse(wire, tree, only, schema, bool(more))
        if found is not None:
            found = replace(found, planned_on=planned_on)
            refuse_unknown(wire, found)
            if found.keeps or found.counts:
                return found
            if found.tried:
                return replace(found, expected=foreseen.tried(wire, tree, found.table, found.undo))
            return replace(found, expected=foreseen.untried(wire, tree, found.table, schema))
    except foreseen.NotText:
        raise
    except Unsupported as error:
        refused = error
    found = _altered(wire, tree, only, schema, more)
    if found is None:
        raise refused
    found = replace(found, planned_on=planned_on)
    refuse_unknown(wire, found)
    return found


def _altered(
    wire: Wire, tree: exp.Expr, statement: Statement, schema: Schema, more: tuple[Statement, ...]
) -> Definition | None:
    """An ALTER that has no opposite statement of its own: back by the difference of the definitions. Raises
    Unsupported."""
    table = schema.tables.get(statement.table)
    if table is None or not _ours(table) or statement.verb == "create":
        return None
    if isinstance(tree, exp.Drop) and str(tree.args.get("kind")).upper() != "INDEX":
        return None
    written = definitions_filled.columns(table, schema, more) if more else frozenset[str]()
    found = altered.inverse(wire, tree, table, schema, _plain, written)
    if found is None:
        return None
    if found.keeps:
        definitions_kept.refuse_many(wire, table.name)
        definitions_kept.refuse(table, schema, found.fills if found.dropped else ())
    return Definition(
        table.name,
        found.undo,
        found.lost,
        True,
        expected=found.expected,
        widens=set(found.names[1:]) <= {column.name for column in table.columns},
        unknown=found.unknown,
        names=found.names,
        keeps="rows" if found.keeps else "",
        late=found.late,
        on_copy=found.tried,
        between=found.between,
        forth=found.forth,
        fills=found.fills,
        recounts=found.recounts,
    )


def _ours(table: Table) -> bool:
    other = table.kind != "table" or table.facts["versioned"] or table.facts["partitioned"]
    return table.facts["engine"] == "InnoDB" and not other


def needed(found: Definition, schema: Schema) -> Iterator[tuple[str, str]]:
    """The rights that undo needs, each with its table; "*": of any name."""
    if found.keeps in ("dropped", "made"):  # by a table of another name
        yield from (("*", right) for right in ("SELECT", "CREATE", "INSERT", "ALTER", "DROP"))
    if found.was:
        yield from ((found.was, right) for right in ("CREATE", "INSERT"))
        yield from ((found.table, right) for right in ("ALTER", "DROP"))
    elif found.undo:
        begins = {"ALTER TABLE": "ALTER", "DROP INDEX": "INDEX"}
        yield found.table, begins.get(" ".join(found.undo.split(" ", 2)[:2]), "DROP")
    table = schema.tables.get(found.table)
    if table is not None and found.fills:
        events = ("UPDATE",) if definitions_kept.has_key(table, found.fills) else ("INSERT", "DELETE")
        yield from ((found.table, right) for right in events)
    if table is not None and (found.keeps == "dropped" or " REFERENCES " in found.undo + found.late):
        yield from ((link.parent, "REFERENCES") for link in table.foreign_keys if link.parent in schema.tables)


def refuse_unknown(wire: Wire, found: Definition) -> None:
    """Raises Unsupported where a row holds what undo couldn't put back."""
    if found.unknown and wire.rows(found.unknown):
        raise Unsupported(f"{found.table} holds values that undo couldn't put back.", next_step=BACKUP)
    if found.keeps or " CHECK (" not in found.undo:
        return
    for table, clause in wire.rows(
        "SELECT TABLE_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE()"
    ):
        if str(table).lower() != found.table.lower():
            continue
        refused = wire.rows(f"SELECT 1 FROM {quoted(found.table)} WHERE NOT ({clause}) LIMIT 1")
        if refused or wire.rows("SHOW WARNINGS"):  # of a text that isn't a number, which an ALTER doesn't take
            raise Unsupported(
                f"{found.table} holds rows that its own CHECK refuses, or can't compare, so undo can't restore it.",
                next_step="Mend those rows first.",
            )


def _inverse(wire: Wire, tree: exp.Expr, statement: Statement, schema: Schema, filled: bool) -> Definition | None:
    name = statement.table
    if isinstance(tree, exp.Create) and statement.verb == "create":
        return _created(tree, name, schema, filled)
    table = schema.tables[name]
    if isinstance(tree, exp.Drop) and statement.verb == "drop" and str(tree.args["kind"]).upper() == "TABLE":
        return _dropped(wire, table, schema)
    if not _ours(table):
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
        return _without_index(wire, tree, name)
    if not isinstance(tree, exp.Alter):
        return None
    if tree.args.get("options"):
        return _counted(tree, table)
    added = _added(tree.args["actions"], table)
    if added is not None or len(tree.args["actions"]) != 1:
        return added
    (action,) = tree.args["actions"]
    if isinstance(action, exp.RenameColumn) and not table.triggers:
        old, new = quoted(action.this.name), quoted(action.args["to"].name)
        undo = f"ALTER TABLE {quoted(name)} RENAME COLUMN {new} TO {old}"
        return Definition(name, undo, "", True, True, names=(name, action.args["to"].name))
    if isinstance(action, exp.AlterRename):
        new = action.this.name
        _free(new, schema)
        undo = f"ALTER TABLE {quoted(new)} RENAME {quoted(name)}"
        return Definition(new, undo, "", False, was=name, names=(new,))
    if isinstance(action, exp.AddConstraint):
        return _linked(action, table)
    if isinstance(action, exp.ModifyColumn) and action.args.get("rename_from") is None:
        return _widened(wire, tree, action.this, table, schema)
    if isinstance(action, exp.AlterColumn):
        return _defaulted(wire, action, table, schema)
    if isinstance(action, exp.Drop) and str(action.args.get("kind")).upper() == "INDEX":
        return _without_index(wire, action, name)
    return None


def _dropped(wire: Wire, table: Table, schema: Schema) -> Definition | None:
    """A table that goes with its rows."""
    if not _ours(table):
        return None
    if table.triggers:
        raise Unsupported(
            f"{table.name} has triggers, which would go with it, and can't be put back as they were.",
            next_step=f"Use DELETE FROM {table.name}, or leave it to somebody with a backup.",
        )
    definitions_whole.refuse(wire, table, schema)
    return Definition(table.name, "", "", True, keeps="dropped")


def _counted(tree: exp.Alter, table: Table) -> Definition | None:
    """Another value of AUTO_INCREMENT, and nothing else."""
    (option, *more) = tree.args["options"]
    counter = any(column.counter for column in table.columns)
    if more or tree.args.get("actions") or not isinstance(option, exp.AutoIncrementProperty) or not counter:
        return None
    return Definition(table.name, "", "", True, counts=True)


def _without_index(wire: Wire, drop: exp.Drop, table: str) -> Definition | None:
    line = _line(wire, table, f"KEY {quoted(drop.args['tables'][0].name)} ")
    return Definition(table, f"ALTER TABLE {quoted(table)} ADD {line}", "", True, True) if line else None


def _added(actions: list[exp.Expr], table: Table) -> Definition | None:
    """Columns and indexes that are added, also several at once."""
    undo: list[str] = []
    lost: list[str] = []
    names = [table.name]
    for action in actions:
        if isinstance(action, exp.ColumnDef) and _plain(action, table):
            column = quoted(action.name)
            # By value and by every byte: a collation may call different texts the same, and bytes alone round a float.
            same = f"{column} <=> DEFAULT({column}) AND CAST({column} AS BINARY) <=> CAST(DEFAULT({column}) AS BINARY)"
            lost.append(f"NOT ({same})")
            undo.append(f"DROP COLUMN {column}")
            names.append(action.name)
        elif isinstance(action, exp.AddConstraint) and (index := _index(action, table)):
            undo.append(f"DROP INDEX {quoted(index)}")
            names.append(index)
        else:
            return None
    return Definition(
        table.name,
        f"ALTER TABLE {quoted(table.name)} {', '.join(reversed(undo))}",
        f"SELECT 1 FROM {quoted(table.name)} WHERE {' OR '.join(lost)} LIMIT 1" if lost else "",
        True,
        True,
        names=tuple(names),
    )


def _index(action: exp.AddConstraint, table: Table) -> str:
    """The name of the index that is added; "": it is none, or the server may drop another one for it."""
    (node,) = action.expressions if len(action.expressions) == 1 else (None,)
    name = ""
    if isinstance(node, exp.Constraint) and len(node.expressions) == 1:
        name, node = node.name, node.expressions[0]
    if isinstance(node, exp.UniqueColumnConstraint) and isinstance(node.this, exp.Schema):
        node = node.this
    elif not isinstance(node, exp.IndexColumnConstraint):
        return ""
    name = (node.this.name if node.this is not None else "") or name  # the server takes the inner one
    if not name:
        raise Unsupported(
            "The server would choose a name for that index, so undo couldn't tell which it is.",
            next_step="Name it: ALTER TABLE … ADD INDEX name (…).",
        )
    first = node.expressions[0].find(exp.Identifier)
    linked = {key.columns[0].lower() for key in table.foreign_keys}
    return "" if first is None or first.name.lower() in linked else name


def _defaulted(wire: Wire, action: exp.AlterColumn, table: Table, schema: Schema) -> Definition | None:
    """Another default, or none: no row has it yet. A foreign key may stand against writing its column down anew."""
    said = {part for part, value in action.args.items() if value}
    if said not in ({"this", "default"}, {"this", "drop"}):
        return None
    was = next(one for one in table.columns if one.name.lower() == action.name.lower())
    line = _column_line(wire, table.name, was.name)
    if was.generated or not line or was.name.lower() in altered.linked_columns(table, schema):
        return None
    return Definition(table.name, f"ALTER TABLE {quoted(table.name)} MODIFY COLUMN {line}", "", True, True)


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


def _widened(wire: Wire, tree: exp.Alter, column: exp.ColumnDef, table: Table, schema: Schema) -> Definition | None:
    """A column of characters that gets room for more, or one of an ENUM or SET that gets more values behind its own, as
    long as none of its values changes: of the same collation, and no NULL of it becomes another value."""
    was = next(one for one in table.columns if one.name.lower() == column.name.lower())
    line = _column_line(wire, table.name, was.name)
    if was.generated or not line or table.triggers or was.name.lower() in altered.linked_columns(table, schema):
        return None
    kind, collation, nullable = _written(wire, tree, table.name, was.name)
    lost = beyond(was.type, kind, quoted(was.name))
    if not lost or collation != table.facts["forms"][was.name][2] or (was.nullable and nullable != "YES"):
        return None
    lost = f"SELECT 1 FROM {quoted(table.name)} WHERE {lost}"
    unknown = f"{lost} LIMIT 1" if was.type.lower().startswith("enum(") else ""  # a number without a value
    lost += "" if was.nullable else f" OR {quoted(was.name)} IS NULL"
    undo = f"ALTER TABLE {quoted(table.name)} MODIFY COLUMN {line}"
    names = (table.name, was.name)
    return Definition(table.name, undo, f"{lost} LIMIT 1", True, True, widens=True, unknown=unknown, names=names)


def _column_line(wire: Wire, table: str, column: str) -> str:
    """A column's line; "": there is none, or it isn't sure: for a character of four bytes the server writes a question
    mark, but in comments, which can have none."""
    line = _line(wire, table, f"{quoted(column)} ")
    said = re.sub(r" COMMENT '(?:[^']|'')*'\Z", "", line[len(quoted(column)) :])
    return "" if "?" in said else line


def _line(wire: Wire, table: str, begins: str) -> str:
    """The line of a table's definition that begins so, as the server writes it; "": there is none."""
    lines = (line.strip().removesuffix(",") for line in shown(wire, table).split("\n"))
    return next((line for line in lines if line.lower().startswith(begins.lower())), "")


def _written(wire: Wire, tree: exp.Expr, table: str, column: str) -> tuple[str, str, str]:
    """Type, collation and nullability that a column has after a statement, seen on an empty copy."""
    with foreseen.copied(wire, table, tree):
        wire.run(write(foreseen.of_copy(tree, table), Dialect.MARIADB))
        for name, kind, collation, nullable, *_ in wire.rows(f"SHOW FULL COLUMNS FROM {quoted(foreseen.COPY)}"):
            if str(name) == column:
                return str(kind), str(collation or ""), str(nullable)
    return "", "", ""


def _created(tree: exp.Create, name: str, schema: Schema, filled: bool) -> Definition | None:
    kind = str(tree.args.get("kind")).upper()
    _free(name, schema)
    if tree.args.get("replace"):
        raise Unsupported("CREATE OR REPLACE can't be taken back.", next_step="Choose another name, and CREATE it.")
    if kind == "VIEW":
        return Definition(name, f"DROP VIEW {quoted(name)}", "", False, view=True, names=(name,))
    engine, like = tree.find(exp.EngineProperty), tree.find(exp.LikeProperty)
    if like is not None and schema.tables[like.this.name].facts["engine"] != "InnoDB":
        return None
    if engine is not None and engine.name.upper() != "INNODB":
        return None
    if tree.args.get("expression") is not None or filled:
        if tree.find(exp.Reference) is not None:
            return None
        return Definition(name, "", "", True, names=(name,), keeps="made")
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
