"""Which values the statements of a pair compare columns with: rows are made up around them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import ErrorLevel, exp

from runtimes.sql.checking.dialects import GRAMMARS
from runtimes.sql.contract import Program, Table

Named = dict[tuple[str, str], tuple[str, ...]]  # table and column -> values as text

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.NullSafeEQ, exp.Is)


def named_values(action: Program, undo: Program, tables: Iterable[Table]) -> Named:
    """What conditions and assignments say, with a whole number's neighbours. Values that the action inserts into a key
    are left out: rows that have them already would only make it fail."""
    found: dict[str, dict[str, None]] = {}
    inserted: set[tuple[str, str]] = set()
    known = list(tables)
    for program in (action, undo):
        for statement in program.statements:
            trees = GRAMMARS[program.dialect].parser(error_level=ErrorLevel.IMMEDIATE)
            (tree,) = trees.parse(GRAMMARS[program.dialect].tokenize(statement.sql), statement.sql)
            for column, value in _compared(tree):
                for each in (value, *_neighbours(value)):
                    found.setdefault(column, {})[each] = None
            if program is action and isinstance(tree, exp.Insert):
                inserted |= _inserted(tree, statement.table, known)
    named: Named = {}
    for table in known:
        unique = {name for columns in (table.key, *table.unique) for name in columns if len(columns) == 1}
        for column_ in table.columns:
            values = tuple(found.get(column_.name.lower(), ()))
            if column_.name in unique:
                values = tuple(value for value in values if (f"{table.name}.{column_.name}", value) not in inserted)
            if values:
                named[table.name, column_.name] = values
    return named


def _compared(tree: exp.Expr) -> Iterable[tuple[str, str]]:
    for node in tree.walk():
        if isinstance(node, _COMPARED):
            sides = (node.this, node.expression)
            for column, value in (sides, sides[::-1]):
                if isinstance(column, exp.Column) and (text := _text(value)) is not None:
                    yield (
                        column.name.lower(),
                        text.replace("%", "x").replace("_", "y") if isinstance(node, exp.Like | exp.ILike) else text,
                    )
        elif isinstance(node, exp.In) and isinstance(node.this, exp.Column):
            for value in node.expressions:
                if (text := _text(value)) is not None:
                    yield node.this.name.lower(), text
        elif isinstance(node, exp.Between) and isinstance(node.this, exp.Column):
            for value in (node.args.get("low"), node.args.get("high")):
                if (text := _text(value)) is not None:
                    yield node.this.name.lower(), text


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


def _neighbours(value: str) -> tuple[str, ...]:
    if value.lstrip("-").isdigit() and len(value) < 10:
        return str(int(value) - 1), str(int(value) + 1)
    return ()


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
