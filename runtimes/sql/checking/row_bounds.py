"""How many rows a write may reach, and which one its text names, without running it over data.

Rules: what a statement's own text and its table's primary key say needs no data at all. A count is made only of plain
comparisons of the written table's own columns with literals, and in a form whose work is the same whatever it finds:
every comparison is made for every row, none decides whether the next is, and no index leads to the rows that match. So
neither how long it takes, nor whether it runs out of time, tells what is in a column. For all else there is no count,
and the tables' sizes are the bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from runtimes.sql.checking.parse import read
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Column, Dialect, Schema, Statement, Table

_MOST_COMPARISONS = 20
_MOST_VALUES = 100  # of an IN
_LONGEST = 200  # characters of a literal
_COMPARES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_WHOLE_NUMBERS = re.compile(r"(tiny|small|medium|big)?int(eger|\d)?\b", re.IGNORECASE)
# One value for each row: PostgreSQL has functions that make several rows of one.
_SCALARS = frozenset(
    {"count", "sum", "min", "max", "avg", "coalesce", "lower", "upper", "concat", "abs", "round", "length", "now"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """`most`: at most so many rows, by the text and the key alone. `sources`: tables whose sizes, multiplied, are the
    bound of what a query gives. `count`: a SELECT of one number."""

    most: int | None = None
    sources: tuple[str, ...] = ()
    count: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The table that a statement writes, and the name that it has there. `alone`: no other table stands beside it."""

    table: Table
    name: str
    reads: Reads
    alone: bool

    def column(self, node: exp.Expr | None) -> Column | None:
        """The column of this table that a node names, and none else."""
        if not isinstance(node, exp.Column) or node.args.get("db") or not isinstance(node.this, exp.Identifier):
            return None
        owner = node.args.get("table")
        if self.reads.fold(owner) != self.name if owner is not None else not self.alone:
            return None
        named = self.reads.fold(node.this)
        return next((one for one in self.table.columns if self.reads.fold_column(one.name) == named), None)


def of_values(number: int) -> Bound:
    return Bound(most=number, count=exp.Select(expressions=[exp.Literal.number(number)]))


def of_query(query: exp.Expr, reads: Reads, *, with_: bool) -> Bound:
    """Of what an INSERT takes from a query. `with_`: names may be those of a WITH."""
    most = _whole(query.args.get("limit"))
    if most is not None:
        return Bound(most=most)
    if with_ or not isinstance(query, exp.Select) or query.args.get("with_") or not _one_value_each(query, reads):
        return Bound()
    source = query.args.get("from_")
    if source is None:
        return Bound(most=1)
    joins = query.args.get("joins") or []
    tables = [source.this, *(join.this for join in joins)]
    plain = all(isinstance(one, exp.Table) and isinstance(one.this, exp.Identifier) for one in tables)
    if not plain or any(str(join.side or "").upper() == "FULL" for join in joins):
        return Bound()
    inner = [join for one in tables for join in one.args.get("joins") or []]
    return Bound() if inner else Bound(sources=tuple(reads.table(one).name for one in tables))


def of_rows(tree: exp.Expr, base: exp.Expr, others: list[exp.Expr], table: Table, name: str, reads: Reads) -> Bound:
    """Of an UPDATE or DELETE of `table`, which is called `name` there."""
    written = Written(table, name, reads, alone=not (others or base.args.get("joins")))
    where = tree.args.get("where")
    found = [number for number in (_whole(tree.args.get("limit")), _named(where, written)) if number is not None]
    most = min(found) if found else None
    if most is not None or not written.alone or tree.args.get("with_") or where is None or table.kind != "table":
        return Bound(most=most)
    chosen = _chosen(where.this, written)
    if chosen is None or len(list(chosen.find_all(exp.Case))) > _MOST_COMPARISONS:
        return Bound()
    one = exp.Case(ifs=[exp.If(this=exp.GT(this=chosen, expression=_number(0)), true=_number(1))])
    counted = exp.Anonymous(this="count", expressions=[one])
    return Bound(count=exp.Select(expressions=[counted], from_=exp.From(this=base.copy())))


# ---- by the text alone


def _whole(node: exp.Expr | None) -> int | None:
    """The number of a LIMIT that is a plain whole one."""
    if not isinstance(node, exp.Limit) or node.args.get("offset") is not None:
        return None
    value = node.expression
    plain = isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit()
    return int(str(value.this)) if plain else None


def _named(where: exp.Expr | None, written: Written) -> int | None:
    """How many keys of whole numbers a condition names. Of texts and decimals the collation, or the column's type,
    decides how many rows one of them is, so they name none."""
    kinds = [column.type for key in written.table.key if (column := written.table.column(key)) is not None]
    if where is None or not kinds or not all(_WHOLE_NUMBERS.match(kind) for kind in kinds):
        return None
    named: dict[str, int] = {}
    for part in _parts(where.this):
        values = [part.expression] if isinstance(part, exp.EQ) else part.expressions if _listed(part) else []
        column = written.column(part.this) if values else None
        if column is not None and all(_whole_number(value) for value in values):
            named[column.name] = min(named.get(column.name, len(values)), len(values))
    if not set(written.table.key) <= set(named):
        return None
    most = 1
    for key in written.table.key:
        most *= named[key]
    return most


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What AND joins."""
    if isinstance(node, exp.Paren):
        yield from _parts(node.this)
    elif isinstance(node, exp.And):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    else:
        yield node


def _whole_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def _one_value_each(query: exp.Select, reads: Reads) -> bool:
    """Whether a query gives no more rows than those that it reads, multiplied."""
    group = query.args.get("group")
    if group is not None and (
        any(value for part, value in group.args.items() if part != "expressions")
        or not all(isinstance(one, exp.Column) for one in group.expressions)
    ):
        return False
    if reads.dialect is not Dialect.POSTGRESQL:
        return True
    calls: Iterable[exp.Expr] = (call for one in query.expressions for call in one.find_all(exp.Func))
    return all(_called(call) in _SCALARS for call in calls if not isinstance(call, exp.Case | exp.If | exp.Cast))


def _called(call: exp.Expr) -> str:
    return str(call.name if isinstance(call, exp.Anonymous) else call.key).lower()


# ---- by plain comparisons


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _chosen(node: exp.Expr, written: Written) -> exp.Expr | None:
    """A number above 0 for the rows that a condition finds; None for anything but plain comparisons. AND multiplies and
    OR adds: both sides are computed for every row, as AND and OR themselves wouldn't be."""
    if isinstance(node, exp.Paren):
        return _chosen(node.this, written)
    if isinstance(node, exp.And | exp.Or):
        left, right = _chosen(node.this, written), _chosen(node.expression, written)
        if left is None or right is None:
            return None
        joined = exp.Mul if isinstance(node, exp.And) else exp.Add
        return exp.Paren(this=joined(this=left, expression=right))
    if not _plain(node, written):
        return None
    return exp.Case(ifs=[exp.If(this=node.copy(), true=_number(1))], default=_number(0))


def _plain(node: exp.Expr, written: Written) -> bool:
    if isinstance(node, exp.Not) and isinstance(node.this, exp.In | exp.Between | exp.Is):
        node = node.this
    values: list[exp.Expr] = []
    left: exp.Expr = node.this
    if isinstance(node, _COMPARES):
        values = [node.expression]
        if _literal(left):
            left, values = node.expression, [left]
    elif isinstance(node, exp.Between):
        values = [node.args["low"], node.args["high"]]
    elif _listed(node):
        values = node.expressions
    elif not (isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)):
        return False
    column = written.column(left)
    return (
        column is not None and not column.generated and len(values) <= _MOST_VALUES and all(_literal(v) for v in values)
    )


def _listed(node: exp.Expr) -> bool:
    """Whether it is IN with a list, and not with a query."""
    return (
        isinstance(node, exp.In)
        and bool(node.expressions)
        and not any(value for part, value in node.args.items() if part not in ("this", "expressions"))
    )


def _literal(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg):
        node = node.this
    return isinstance(node, exp.Boolean) or (isinstance(node, exp.Literal) and len(str(node.this)) <= _LONGEST)


def named_row(statement: Statement, schema: Schema) -> str:
    """Return `id=5`, or `order=5,line=2`, where the text names one row by the whole primary key; else "".

    Only whole numbers name a row: of texts and decimals it depends on the column and its collation which of them are
    one. A statement that looks into another table, asks a question within, changes the key itself, or replaces rows
    names none.
    """
    table = schema.tables.get(statement.table)
    if table is None or not table.key or table.triggers or statement.verb not in ("update", "delete"):
        return ""
    if any(use.table != statement.table for use in statement.uses):
        return ""
    if table.facts.get("replaces") or len({use.verb for use in statement.uses} - {"select"}) > 1:
        return ""  # other rows may go with it
    kinds = [column.type for name in table.key if (column := table.column(name)) is not None]
    if not all("int" in kind.lower() or "serial" in kind.lower() for kind in kinds):
        return ""
    (tree,) = read(statement.sql, schema.dialect)
    where = tree.args.get("where")
    if where is None or any(found is not tree for found in tree.find_all(exp.Query, exp.DML)):
        return ""
    changed = {part.this.name for part in tree.args.get("expressions") or () if isinstance(part, exp.EQ)}
    if changed & set(table.key):
        return ""
    values: dict[str, str] = {}
    for part in where.this.flatten() if isinstance(where.this, exp.And) else (where.this,):
        name, value = _equal(part)
        if name in table.key and values.setdefault(name, value) != value:
            return ""
    if values.keys() != set(table.key):
        return ""
    return ",".join(f"{name}={values[name]}" for name in table.key)


def _equal(part: exp.Expr) -> tuple[str, str]:
    """The column and the whole number that it is to be; ("", "") for anything else."""
    if not (isinstance(part, exp.EQ) and isinstance(part.this, exp.Column)):
        return "", ""
    literal = part.expression
    if not isinstance(literal, exp.Literal) or literal.is_string or not str(literal.this).isdigit():
        return "", ""
    return str(part.this.name), str(int(literal.this))
