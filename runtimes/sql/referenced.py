"""What must fail on a foreign key, as the definitions say it: nothing of the rows is looked at.

A DROP of a table that another one points to fails on PostgreSQL and MariaDB whatever is in them; on SQLite once there
are rows, unless the key takes them along. Where an earlier statement of the same program could make it work, it isn't
judged.
"""

from __future__ import annotations

from policies.errors import Unsupported
from runtimes.sql.contract import Dialect, Program, Schema, Use

_FOLLOWS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


def refuse_referenced(program: Program, schema: Schema) -> None:
    """Raise Unsupported for a DROP TABLE that a foreign key of another table stands against."""
    earlier: set[tuple[str, str]] = set()  # verb, table
    for statement in program.statements:
        name = statement.table.casefold()
        if statement.verb == "drop" and not statement.sql.upper().rstrip(" ;").endswith(" CASCADE"):
            for child in _pointing(name, schema):
                if not any(_helps(schema.dialect, verb, table, name, child) for verb, table in earlier):
                    raise Unsupported(
                        f"{child} points to {statement.table} by a foreign key, so {statement.table} can't be dropped.",
                        next_step=f"Drop {child} first, in the same request.",
                    )
        earlier |= {(use.verb, use.table.casefold()) for use in statement.uses if _writes(use)}


def _pointing(name: str, schema: Schema) -> list[str]:
    """The other tables whose keys stand against a DROP of that one."""
    return [
        table.name
        for table in schema.tables.values()
        if table.name.casefold() != name
        and any(
            key.parent.casefold() == name
            and not (schema.dialect is Dialect.SQLITE and key.on_delete.upper() in _FOLLOWS)
            for key in table.foreign_keys
        )
    ]


def _helps(dialect: Dialect, verb: str, table: str, parent: str, child: str) -> bool:
    """Whether what an earlier statement did may let the DROP work."""
    if dialect is Dialect.SQLITE and table == parent:
        return True
    return table == child.casefold() and (dialect is Dialect.SQLITE or verb in ("drop", "alter"))


def _writes(use: Use) -> bool:
    return use.verb != "select"
