"""What a checked statement writes, as something to look at before it runs: which rows of its table it may reach.

More rows than it will write are no harm: they are locked and read, and drop out where they stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Column, Dialect, Schema, Statement, Table
from runtimes.sql.mariadb.errors import quoted

LIMIT = "\0"  # where a SELECT of `Step.reach` may be bounded by whoever runs it
Kind = Literal["select", "insert", "upsert", "replace", "update", "delete", "ddl"]
_VARIES = {"RAND", "UUID", "UUID_SHORT", "SYS_GUID", "SYSDATE", "NEXTVAL", "RANDOM_BYTES", "SLEEP",
           "ROW_COUNT", "FOUND_ROWS", "CONNECTION_ID", "BENCHMARK", "GET_LOCK", "RELEASE_LOCK", "LASTVAL",
           "SETVAL"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement. `reach(expression)` gives, for UPDATE and DELETE, the SELECTs whose rows hold all that it writes;
    the expression is made for each alias that the table has in it."""

    statement: Statement
    kind: Kind
    table: Table | None  # what is written
    columns: frozenset[str] = frozenset()  # that an UPDATE assigns, ON DUPLICATE KEY UPDATE too
    moves_keys: bool = False  # it may assign columns that name a row
    froms: tuple[tuple[str, str, str], ...] = ()  # (alias, text before, text after)
    returning: bool = False
    joined: bool = False  # a SELECT of `reach` may give a row more than once
    others: tuple[Step, ...] = ()  # the same statement, as far as it writes other tables

    @property
    def parts(self) -> tuple[Step, ...]:
        return self, *self.others

    def reach(self, line: dict[str, str]) -> list[str]:
        return [f"{before}{line[alias]}{after}" for alias, before, after in self.froms]

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(alias for alias, _, _ in self.froms)


def counts(column: Column) -> bool:
    """Whether a counter moves, which nothing sets back, where a row is given no value for it."""
    return column.counter or any(call in column.default.lower() for call in ("nextval(", "setval("))


def steps(statements: tuple[Statement, ...], schema: Schema) -> list[Step]:
    return [_step(statement, schema) for statement in statements]


def explains_write(statement: Statement) -> bool:
    """Whether it is EXPLAIN of a write, which the server doesn't do where only reading is allowed."""
    head = statement.sql.partition(" ")[0]
    return head in ("EXPLAIN", "DESCRIBE", "DESC") and isinstance(read(statement.sql, Dialect.MARIADB)[0], exp.DML)


def _step(statement: Statement, schema: Schema) -> Step:
    if statement.verb == "select":
        return Step(statement=statement, kind="select", table=None)
    table = schema.tables.get(statement.table)
    if statement.verb == "truncate" and table is not None and _alone(table, schema):
        statement = replace(statement, sql=f"DELETE FROM {quoted(table.name)}")  # noqa: S608 (a quoted name)
    elif statement.verb in ("truncate", "create", "alter", "drop"):
        return Step(statement=statement, kind="ddl", table=table)
    if table is None:
        raise Unsupported(f"There is no table {statement.table[:60]} any more.", next_step="Ask for the action again.")
    (tree,) = read(statement.sql, Dialect.MARIADB)
    columns = frozenset(
        column for use in statement.uses if use.verb == "update" and use.table == table.name for column in use.columns
    )
    moves = bool(columns & set(table.facts["identity"]))
    returning = tree.args.get("returning") is not None
    if isinstance(tree, exp.Insert):
        verbs = {use.verb for use in statement.uses if use.table == table.name}
        replaces = "delete" in verbs
        kind: Kind = "replace" if replaces else "upsert" if tree.args.get("conflict") is not None else "insert"
        return Step(statement=statement, kind=kind, table=table, columns=columns, moves_keys=moves, returning=returning)
    if isinstance(tree, exp.Update | exp.Delete):
        changed: Kind = "update" if isinstance(tree, exp.Update) else "delete"
        (base,) = tree.args.get("using") or [tree.this]
        return Step(
            statement=statement,
            kind=changed,
            table=table,
            columns=columns,
            moves_keys=moves,
            froms=_froms(tree, base, table),
            returning=returning,
            joined=not isinstance(base, exp.Table) or bool(base.args.get("joins")),
            others=tuple(_step(replace(statement, table=name, others=()), schema) for name in statement.others),
        )
    raise Unsupported(f"{type(tree).__name__.upper()} can't be taken back in MariaDB.")


def _alone(table: Table, schema: Schema) -> bool:
    """Whether DELETE does to its rows what TRUNCATE, which commits at once, does: fires nothing, and no key to it."""
    pointed = any(key.parent == table.name for one in schema.tables.values() for key in one.foreign_keys)
    return not (pointed or any(event == "DELETE" for _, event, *_ in table.facts["triggers"]))


def _froms(tree: exp.Expr, base: exp.Expr, table: Table) -> tuple[tuple[str, str, str], ...]:
    """For each place where the table stands in the statement: the SELECT of what it reaches there, in two halves."""
    where, order, limit = (tree.args.get(part) for part in ("where", "order", "limit"))
    chosen = [base, where, order, limit, tree.args.get("with_"), *(tree.args.get("joins") or ())]
    assigned = {str(node.this.name).lower() for node in tree.find_all(exp.PropertyEQ)}
    for node in (node for part in chosen if isinstance(part, exp.Expr) for node in part.walk()):
        if isinstance(node, exp.Parameter) and str(node.name).lower() in assigned:
            raise Unsupported(
                f"Which rows this writes depends on @{node.name[:60]}, which it sets: they can't be kept beforehand.",
                next_step="Set the variable in a statement before it.",
            )
        if isinstance(node, exp.Func) and _named(node) in _VARIES:
            raise Unsupported(
                f"Which rows this writes depends on {_named(node)}(), so they can't be kept beforehand.",
                next_step="Leave it out, or name the rows.",
            )
    first = base.copy()
    joins = first.args.pop("joins", None) or []
    bounded = limit is not None and not joins and _total(order, table)
    found: list[tuple[str, str, str]] = []
    length = len(tree.sql("mysql"))  # sqlglot's common dialect can't write x''
    for alias in _aliases(base, table):
        mark = f"goex_{len(found)}_{length}"
        condition = _present(where, alias, table) if joins else where
        query = exp.Select(
            expressions=[exp.Column(this=exp.to_identifier(mark, quoted=True))],
            from_=exp.From(this=first.copy()),
            joins=[join.copy() for join in joins],
            **{
                name: part.copy()
                for name, part in (
                    ("where", condition),
                    ("with_", tree.args.get("with_")),
                    ("order", order if bounded else None),
                    ("limit", limit if bounded else None),
                )
                if part is not None
            },
        )
        text = write(query, Dialect.MARIADB)
        before, at, after = text.partition(quoted(mark))
        if not at or quoted(mark) in after:
            raise Unsupported("The rows that this writes can't be found beforehand.", next_step="Write it plainly.")
        found.append((alias, before, after if bounded else after + LIMIT))
    if not found:
        raise Unsupported("The rows that this writes can't be found beforehand.", next_step="Write it plainly.")
    return tuple(found)


def _named(node: exp.Func) -> str:
    name = node.this if isinstance(node, exp.Anonymous) else node.sql_name()
    return str(name).upper()


def _total(order: exp.Expr | None, table: Table) -> bool:
    """Whether an ORDER BY puts the rows into one order only: by all that names a row, each a plain column."""
    if order is None:
        return False
    named = set()
    for item in order.expressions:
        inner = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(inner, exp.Column):
            named.add(inner.name.lower())
    identity = {str(name).lower() for name in table.facts["identity"]}
    return bool(identity) and identity <= named


def _present(where: exp.Expr | None, alias: str, table: Table) -> exp.Expr | None:
    """WHERE, for rows of a join in which that table has one: an outer join gives others, too."""
    if not table.facts["identity"]:
        return where
    name = exp.Column(
        this=exp.to_identifier(str(table.facts["identity"][0]), quoted=True),
        table=exp.to_identifier(alias, quoted=True),
    )
    present: exp.Expr = exp.Not(this=exp.Is(this=name, expression=exp.Null()))
    if where is not None:
        present = exp.And(this=exp.Paren(this=where.this.copy()), expression=present)
    return exp.Where(this=present)


def _aliases(base: exp.Expr, table: Table) -> list[str]:
    found = []
    waiting: list[exp.Expr] = [base]
    while waiting:
        node = waiting.pop(0)
        waiting += [join.this for join in node.args.get("joins") or []]
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):  # a bracketed join
            waiting.append(node.this)
        if isinstance(node, exp.Table) and str(node.name).lower() == table.name.lower():
            found.append(node.alias or node.name)
    return found
