"""Which single row a statement is about, where its text names one by the whole primary key. Pure.

Rules: only whole numbers name a row: of texts and decimals it depends on the column and its collation which of them are
one. A statement that looks into another table, asks a question within, or changes the key itself names none.
"""

from __future__ import annotations

from sqlglot import exp

from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Schema, Statement


def named_row(statement: Statement, schema: Schema) -> str:
    """`id=5`, or `order=5,line=2`; "" where it names none."""
    table = schema.tables.get(statement.table)
    if table is None or not table.key or table.triggers or statement.verb not in ("update", "delete"):
        return ""
    if any(use.table != statement.table for use in statement.uses):
        return ""
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
