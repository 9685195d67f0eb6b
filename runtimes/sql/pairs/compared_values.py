"""Which values the statements of a pair compare columns with: rows are made up around them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal

from sqlglot import ErrorLevel, exp

from runtimes.sql.checking.dialects import GRAMMARS
from runtimes.sql.contract import Program, Table

Named = dict[tuple[str, str], tuple[str, ...]]  # table and column -> values as text

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.NullSafeEQ, exp.Is)


def named_values(action: Program, undo: Program, tables: Iterable[Table]) -> Named:
    """Values that meet the conditions, then those that just don't, then those that the statements bring there. Values
    that the action inserts into a key are left out: rows that have them already would only make it fail."""
    found: dict[str, dict[str, None]] = {}
    near: dict[str, dict[str, None]] = {}
    steps: dict[str, set[Decimal]] = {}
    inserted: set[tuple[str, str]] = set()
    known = list(tables)
    for program in (action, undo):
        for statement in program.statements:
            trees = GRAMMARS[program.dialect].parser(error_level=ErrorLevel.IMMEDIATE)
            (tree,) = trees.parse(GRAMMARS[program.dialect].tokenize(statement.sql), statement.sql)
            for column, value, meets in _compared(tree):
                below, above = _neighbours(value)
                first = {"=": value, ">": above, "<": below}[meets]
                found.setdefault(column, {})[first] = None
                for each in (value, below, above):
                    near.setdefault(column, {})[each] = None
            for column, step in _steps(tree):
                steps.setdefault(column, set()).add(step)
            if program is action and isinstance(tree, exp.Insert):
                inserted |= _inserted(tree, statement.table, known)
    named: Named = {}
    for table in known:
        unique = {name for columns in (table.key, *table.unique) for name in columns if len(columns) == 1}
        for column_ in table.columns:
            name = column_.name.lower()
            here = {**found.get(name, {}), **near.get(name, {})}
            there = {
                str(Decimal(value) - step): None for value in here if _is_number(value) for step in steps.get(name, ())
            }
            said: tuple[str, ...] = tuple({**here, **there})
            if column_.name in unique:
                said = tuple(value for value in said if (f"{table.name}.{column_.name}", value) not in inserted)
            if said:
                named[table.name, column_.name] = said
    for table in reversed(known):  # a value of a foreign key is one of its parent's, and of that one's parent
        for key in table.foreign_keys:
            for child, parent in zip(key.columns, key.parent_columns, strict=True):
                theirs = named.get((key.parent, parent), ())
                if any(one.name == key.parent for one in known) and (table.name, child) in named:
                    named[key.parent, parent] = tuple(dict.fromkeys((*theirs, *named[table.name, child])))
    return named


_MEETS = {exp.GT: ">", exp.LT: "<", exp.NEQ: ">"}  # which side of the value is true; of others: the value itself


def _compared(tree: exp.Expr) -> Iterable[tuple[str, str, str]]:
    """(column, value, what meets the comparison: "=" the value, ">" one above it, "<" one below it)."""
    for node in tree.walk():
        if isinstance(node, _COMPARED):
            for column, value, turned in (
                (node.this, node.expression, False),
                (node.expression, node.this, True),
            ):
                if isinstance(column, exp.Column) and (text := _text(value)) is not None:
                    meets = _MEETS.get(type(node), "=")
                    if turned:
                        meets = {">": "<", "<": ">"}.get(meets, meets)
                    if isinstance(node, exp.Like | exp.ILike):
                        text = text.replace("%", "x").replace("_", "y")
                    yield column.name.lower(), text, meets
        elif isinstance(node, exp.In) and isinstance(node.this, exp.Column):
            for value in node.expressions:
                if (text := _text(value)) is not None:
                    yield node.this.name.lower(), text, "="
        elif isinstance(node, exp.Between) and isinstance(node.this, exp.Column):
            for value in (node.args.get("low"), node.args.get("high")):
                if (text := _text(value)) is not None:
                    yield node.this.name.lower(), text, "="


def _steps(tree: exp.Expr) -> Iterable[tuple[str, Decimal]]:
    """By how much statements lift a column: what is that far below a value is at it afterwards."""
    for node in tree.find_all(exp.Add, exp.Sub):
        if isinstance(node.this, exp.Column) and (text := _text(node.expression)) is not None and _is_number(text):
            yield node.this.name.lower(), Decimal(text) if isinstance(node, exp.Add) else -Decimal(text)


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", value) is not None


def _text(node: object) -> str | None:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.this}"
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    return None


def _neighbours(value: str) -> tuple[str, str]:
    """The next below and above: of a number by one, of a day by one; of anything else itself."""
    if _is_number(value):
        number = Decimal(value)
        return str(number - 1), str(number + 1)
    if day := re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            at, rest = date.fromisoformat(day.group()), value[day.end() :]
            return f"{at - timedelta(days=1)}{rest}", f"{at + timedelta(days=1)}{rest}"
        except (ValueError, OverflowError):
            pass
    return value, value


def _inserted(tree: exp.Insert, table: str, known: list[Table]) -> set[tuple[str, str]]:
    """("table.column", value) of an INSERT's rows."""
    target = next((one for one in known if one.name == table), None)
    if target is None or not isinstance(tree.expression, exp.Values):
        return set()
    names = [column.name for column in target.columns if not column.generated]
    if isinstance(tree.this, exp.Schema):
        said = {column.name.lower(): column.name for column in target.columns}
        names = [said.get(column.name.lower(), column.name) for column in tree.this.expressions]
    found = set()
    for row in tree.expression.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row]
        for name, value in zip(names, values, strict=False):
            if (text := _text(value)) is not None:
                found.add((f"{table}.{name}", text))
    return found
