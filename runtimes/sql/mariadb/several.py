"""What is refused of one statement of several tables: the server counts their rows together."""

from __future__ import annotations

from policies.errors import Unsupported
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Dialect, Schema
from runtimes.sql.mariadb.capture import cascades, whole
from runtimes.sql.mariadb.steps import Step

_EACH = "Write one statement for each table."


def refuse(schema: Schema, step: Step) -> None:
    """Raises Unsupported where those rows can't be followed table by table."""
    if step.statement.sql.startswith("UPDATE IGNORE "):
        (tree,) = read(step.statement.sql, Dialect.MARIADB)
        if tree.this.args.get("joins"):
            raise Unsupported(
                f"UPDATE IGNORE beside another table counts the rows that it leaves, so those of {step.statement.table}"
                " can't be told apart.",
                next_step="Leave IGNORE out, or choose the rows by a query within WHERE.",
            )
    names = {part.table.name for part in step.parts if part.table is not None}
    for part in step.parts if step.others else ():
        table = part.table
        assert table is not None
        if whole(part):
            raise Unsupported(
                f"The rows of {table.name} can't be told apart beside those of other tables: it has no key, or its key"
                " is changed.",
                next_step=_EACH,
            )
        if step.kind == "update" and any(
            child.name in names for child, _ in cascades(schema, table, "update", part.columns)
        ):
            raise Unsupported(
                f"A foreign key that follows {table.name} writes what the statement writes itself.", next_step=_EACH
            )
