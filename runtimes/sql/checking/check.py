"""The one way from SQL text to what may run: read it, refuse what isn't listed, name every table, make it anew."""

from __future__ import annotations

from sqlglot import exp

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking import definitions, statements
from runtimes.sql.checking.allowlist import allow, refused
from runtimes.sql.checking.known_tables import KnownTables
from runtimes.sql.checking.parse import read, remade, write
from runtimes.sql.checking.statements import Found
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Dialect, Program, Schema, Statement


def check(text: str, schema: Schema, *, database: str) -> Program:
    """What `text` would run on the database of that `schema`. `database` is its own name on the server: a table named
    with another one is refused.

    Each `Statement.sql` is made from the checked tree and runs alone, as it is: it has no parameters, so `%` and `:`
    in it mean nothing (psycopg: no parameters at all; SQLAlchemy: `exec_driver_sql`). In PostgreSQL tables are named
    with their schema. Raises InvalidInput (can't be read, unknown name) and Unsupported (read, but not allowed).
    """
    try:
        known, made = KnownTables(schema, database), []
        for tree in read(text, schema.dialect):
            made.append(_statement(tree, known.schema, database))
            known.follow(tree, made[-1])
        return Program(dialect=schema.dialect, statements=tuple(made))
    except RecursionError:
        raise InvalidInput("The SQL is nested too deep.", next_step="Send less at a time.") from None
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):  # a tree of a shape that nobody thought of
        raise Unsupported(
            "The statement isn't of a kind that GoEx can check.", next_step="Write it in a plainer way."
        ) from None


def _statement(tree: exp.Expr, schema: Schema, database: str) -> Statement:
    statements.unlock(tree)
    allow(tree, schema)
    found = _found(tree, Reads(schema, database))
    count = ""
    if found.bound.count is not None:
        counting = remade(found.bound.count, schema.dialect)
        allow(counting, schema)
        count = write(counting, schema.dialect)
    return Statement(
        sql=write(tree, schema.dialect),
        verb=found.verb,
        table=found.table,
        uses=found.uses,
        everywhere=found.everywhere,
        most=found.bound.most,
        sources=found.bound.sources,
        count_sql=count,
        returns_rows=found.returns_rows,
    )


def _found(tree: exp.Expr, reads: Reads) -> Found:
    if reads.dialect is Dialect.POSTGRESQL:
        reads.root, reads.write = tree, lambda inner, ctes: statements.written_in(inner, reads, ctes)
    found = _statement_of(tree, reads)
    return found if not reads.written else statements.with_writes(found, reads)


def _statement_of(tree: exp.Expr, reads: Reads) -> Found:
    if isinstance(tree, exp.Insert):
        return statements.insert(tree, reads)
    if isinstance(tree, exp.Merge) and reads.dialect is Dialect.POSTGRESQL:
        return statements.merge(tree, reads)
    if isinstance(tree, exp.Update):
        return statements.update(tree, reads)
    if isinstance(tree, exp.Delete):
        return statements.delete(tree, reads)
    if isinstance(tree, exp.TruncateTable):
        return definitions.truncate(tree, reads)
    if isinstance(tree, exp.Drop):
        return definitions.drop(tree, reads)
    if isinstance(tree, exp.Create):
        return definitions.create(tree, reads)
    if isinstance(tree, exp.Alter):
        return definitions.alter(tree, reads)
    if isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        return statements.select(tree, reads)
    raise refused(type(tree).__name__.upper())
