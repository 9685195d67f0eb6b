"""What is refused of one statement that writes several tables: the server counts their rows together."""

from __future__ import annotations

from policies.errors import Unsupported
from runtimes.sql.contract import Schema
from runtimes.sql.mariadb.capture import cascades, whole
from runtimes.sql.mariadb.steps import Step

_EACH = "Write one statement for each table."


def refuse(schema: Schema, step: Step) -> None:
    """Raises Unsupported where those rows can't be followed table by table."""
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
