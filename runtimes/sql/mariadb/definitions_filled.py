"""UPDATEs of the same table behind an ALTER TABLE, which are undone together with it.

Rules: the table's rows are kept, and undo brings the ones back that were there before the ALTER. The UPDATEs run in one
transaction, under the lock that the ALTER was under. They do to the same rows the same each time, since they name
nothing but the table and the moment, which is recorded: so they run again for a redo, and what they leave is compared.
"""

from __future__ import annotations

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.nodes import names
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Job, Schema, Statement, Table
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb.capture import cascades
from runtimes.sql.mariadb.definitions_kept import transaction
from runtimes.sql.mariadb.wire import Wire

_VARIES = names(
    """BENCHMARK CONNECTION_ID CURRENT_ROLE CURRENT_USER FOUND_ROWS GET_LOCK LAST_INSERT_ID LASTVAL NEXTVAL RAND RANDOM
    RANDOM_BYTES RELEASE_LOCK ROWNUM ROW_COUNT SESSION_USER SETVAL SLEEP SYS_GUID SYSDATE SYSTEM_USER USER UUID
    UUID_SHORT UUID_V4 UUID_V7"""
)


def is_one(statements: tuple[Statement, ...]) -> bool:
    """Whether it is an ALTER TABLE with UPDATEs of that table, which look at nothing else."""
    first, *rest = statements
    return (
        first.verb == "alter"
        and first.sql.upper().startswith("ALTER TABLE")
        and all(
            one.verb == "update"
            and not one.others
            and not one.returns_rows
            and all(use.table == first.table and use.verb in ("update", "select") for use in one.uses)
            for one in rest
        )
    )


def columns(table: Table, schema: Schema, updates: tuple[Statement, ...]) -> frozenset[str]:
    """The columns that those write, as they are called then. Raises Unsupported for what couldn't be done again."""
    found: set[str] = set()
    for one in updates:
        (tree,) = read(one.sql, Dialect.MARIADB)
        called = {
            str(node.this if isinstance(node, exp.Anonymous) else node.sql_name()).upper()
            for node in tree.find_all(exp.Func)
        }
        if called & _VARIES or tree.find(exp.Parameter, exp.PropertyEQ) or tree.args.get("limit") is not None:
            raise Unsupported(
                "What that UPDATE writes may be something else each time, so it can't follow a definition.",
                next_step="Make it an action of its own.",
            )
        if "DEFAULT" in called or any(
            node.name.upper() == "DEFAULT"
            for node in tree.find_all(exp.Var, exp.Identifier)
            if not node.args.get("quoted")
        ):
            raise Unsupported(
                "What DEFAULT stands for may be something else each time, so it can't follow a definition.",
                next_step="Write the value itself.",
            )
        if any(node.alias for node in tree.find_all(exp.Table)) or len(list(tree.find_all(exp.Table))) > 1:
            raise Unsupported(
                f"{table.name} is locked by that name alone while it is defined.",
                next_step="Write the UPDATE without another name for it, and without a query of its own.",
            )
        found |= {column for use in one.uses if use.verb == "update" for column in use.columns}
    fires = any(str(event) == "UPDATE" for _, event, *_ in table.facts["triggers"])
    if fires or any(True for _ in cascades(schema, table, "update", frozenset(found))):
        raise Unsupported(
            f"That UPDATE would fire triggers of {table.name}, or write tables that point to it.",
            next_step="Make it an action of its own.",
        )
    if table.facts["moving"]:  # a copy that was altered doesn't set it, so what undo needs couldn't be seen
        raise Unsupported(
            f"{table.facts['moving'][0]} would be set to the moment, so that can't follow a definition.",
            next_step="Make it an action of its own.",
        )
    return frozenset(found)


def run(wire: Wire, job: Job, moment: str, *, copy: str = "") -> None:
    """Run them, as of that moment: on the table, or on the copy of it. Raises ServerError and Conflict, and leaves
    nothing then."""
    wire.run(f"SET SESSION timestamp = {moment}")
    try:
        with transaction(wire):
            for one in job.program.statements[1:]:
                wire.run(_on_copy(one, copy) if copy else one.sql)
            wire.run("COMMIT")
    finally:
        if not wire.broken:
            wire.run("SET SESSION timestamp = DEFAULT")


def _on_copy(statement: Statement, table: str) -> str:
    (tree,) = read(statement.sql, Dialect.MARIADB)
    for node in tree.find_all(exp.Table):
        if node.name.lower() == table.lower():
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
            node.set("this", exp.to_identifier(foreseen.COPY, quoted=True))
    return write(tree, Dialect.MARIADB)
