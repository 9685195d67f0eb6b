"""What a program would do, without doing it: the server reads its text, and counts its tables' rows. Only reads.

Nothing of it is planned: to tell how many rows a condition finds, the planner tries it on the samples of columns that
ANALYZE keeps, and what that takes tells them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.sql.bounds import COUNT_SECONDS, EXACT, UNCOUNTED, Sizes
from runtimes.sql.checking.parse import unexplained
from runtimes.sql.contract import Dialect, Policy, Program, Reached, Statement, Survey, Verb
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.outside import refuse_outside
from runtimes.sql.postgres.reach import Why, reads
from runtimes.sql.postgres.relations import Catalog, literal
from runtimes.sql.postgres.strategy import Strategy, choose

_CAST = re.compile(r"::|\bcast\b", re.IGNORECASE)
_ROW_BYTES = 28  # that a row takes of its page at least: its header and its line pointer


def survey(link: Link, catalog: Catalog, program: Program, policy: Policy) -> Survey:
    """See `Session.survey`; in a transaction that only reads."""
    strategy = choose(catalog, program, policy)
    made = {use.table for one in program.statements for use in one.uses if use.verb in ("create", "alter", "drop")}
    for statement in program.statements:
        if statement.verb in ("select", "insert", "update", "delete") and not made & {u.table for u in statement.uses}:
            _read(link, statement)
    _permitted(link, catalog, program, made)
    refuse_outside(link, catalog, program, strategy.foreseen)
    sizes = _Sizes(link, catalog)
    sized = _reached(strategy, sizes, program, [sizes.at_most(one) for one in program.statements])
    reached = _reached(strategy, sizes, program, [sizes.counted(one) for one in program.statements])
    notes = list(strategy.notes)
    if strategy.counters:
        notes.append(f"Counters move on and aren't set back: {', '.join(strategy.counters)}.")
    return Survey(
        reached=reached,
        bound=sum(one.rows for one in sized),
        counters=strategy.counters,
        notes=tuple(notes),
        reads=tuple(reads(catalog, program, strategy.reaches)),
        strategy=strategy.facts(),
    )


def _read(link: Link, statement: Statement) -> None:
    """Raises InvalidInput for what the server can't run: names, types and values of its text are looked at."""
    link.do("SAVEPOINT goex_read")
    try:
        sql = unexplained(statement.sql, Dialect.POSTGRESQL) if statement.sql.startswith("EXPLAIN ") else statement.sql
        link.do(f"PREPARE goex_read AS {sql}", prepares=True)
        link.do("DEALLOCATE goex_read")
    except InvalidInput:
        raise
    except GoexError as error:
        if error.code == "unsupported":
            raise
        raise InvalidInput("The server can't read this statement: a value in it doesn't fit.") from None
    finally:
        with suppress(GoexError):
            link.do("ROLLBACK TO goex_read")


def _permitted(link: Link, catalog: Catalog, program: Program, made: set[str]) -> None:
    """Raises Unsupported for a table that GoEx's user may not use so, on all of it or on the columns."""
    for use in {use for statement in program.statements for use in statement.uses}:
        relation = catalog.relations.get(use.table)
        right = _RIGHTS.get(use.verb)
        if relation is None or right is None or use.table in made:
            continue
        held = f"pg_catalog.has_table_privilege({relation.oid}::pg_catalog.oid, {literal(right)})"
        if right == "SELECT" and not use.columns:  # all of them, or none: count(*)
            held += f" OR pg_catalog.has_any_column_privilege({relation.oid}::pg_catalog.oid, 'SELECT')"
        elif right != "DELETE" and use.columns:
            each = (
                f"pg_catalog.has_column_privilege({relation.oid}::pg_catalog.oid, {literal(name)}, {literal(right)})"
                for name in use.columns
            )
            held += f" OR ({' AND '.join(each)})"
        if link.ask(f"SELECT {held}") != [(True,)]:
            raise Unsupported(
                f"GoEx's user may not do that: permission denied for table {use.table} ({right}).",
                next_step="GRANT it what this needs.",
            )


_RIGHTS: Mapping[Verb, str] = {"select": "SELECT", "insert": "INSERT", "update": "UPDATE", "delete": "DELETE"}


def _reached(strategy: Strategy, sizes: _Sizes, program: Program, numbers: list[int]) -> tuple[Reached, ...]:
    """What is written, where `numbers` are the rows that each statement finds by itself."""
    rows: dict[tuple[str, Verb], int] = {}
    parts: dict[tuple[str, Verb, Why, str], int] = {}  # by what brings it, too: one row may come from several sides
    order: dict[tuple[str, Verb], tuple[Why, frozenset[str]]] = {}
    direct = _direct(sizes, program, numbers)
    for reach in strategy.reaches:
        key = reach.table, reach.verb
        if reach.why == "statement":
            found = sum(
                number if one.table == reach.table else UNCOUNTED if reach.verb == "insert" else sizes.of(reach.table)
                for one, number in zip(program.statements, direct, strict=True)
                if any(use.table == reach.table and use.verb == reach.verb for use in one.uses)
            )
        elif reach.why == "cascade":
            found = sizes.of(reach.table)
        else:
            found = sum(number for (table, _), number in rows.items() if table == reach.source)
        if reach.verb == "update" and sizes.partitioned(reach.table):
            found *= 2  # a row that moves to another partition counts as one that goes and one that comes
        part = (*key, reach.why, reach.source)
        parts[part] = max(parts.get(part, 0), found)
        rows[key] = sum(number for each, number in parts.items() if each[:2] == key)
        why, columns = order.get(key, (reach.why, frozenset()))
        order[key] = "trigger" if (why, reach.why) == ("cascade", "trigger") else why, columns | reach.columns
    return tuple(
        Reached(
            table=table, verb=verb, rows=number, why=order[table, verb][0], columns=tuple(sorted(order[table, verb][1]))
        )
        for (table, verb), number in rows.items()
    )


def _direct(sizes: _Sizes, program: Program, found: list[int]) -> list[int]:
    """Rows of each statement, at most: what an earlier one writes, a later one may find besides."""
    numbers: list[int] = []
    before: dict[str, int] = {}  # rows that were written, by table
    for statement, number in zip(program.statements, found, strict=True):
        if before and statement.verb in ("insert", "update", "delete"):
            reads = {use.table for use in statement.uses if use.verb == "select"} - {statement.table}
            mine = before.get(statement.table, 0)
            if reads & before.keys():
                number = sizes.of(statement.table) + sum(sizes.of(name) + before.get(name, 0) for name in reads)
            if statement.verb != "insert" or (mine and any(u.verb == "select" for u in statement.uses)):
                number += mine
        numbers.append(number)
        if statement.verb != "select":
            before[statement.table] = before.get(statement.table, 0) + number
    return numbers


class _Sizes(Sizes):
    """What isn't kept in pages here (a view, a table of another server) isn't asked."""

    def __init__(self, link: Link, catalog: Catalog) -> None:
        super().__init__()
        self._link, self._catalog = link, catalog

    def at_most(self, statement: Statement) -> int:
        if statement.verb in ("select", "create"):
            return 0
        return super().at_most(statement)

    def counted(self, statement: Statement) -> int:
        relation = self._catalog.relations.get(statement.table)
        if relation is None or relation.row_security or statement.verb not in ("update", "delete"):
            return self.at_most(statement)
        used = [self._catalog.relations.get(use.table) for use in statement.uses]
        plain = all(one is not None and one.kind in "rp" and not one.typed for one in used)
        if self._catalog.converts and (not plain or _CAST.search(statement.sql)):
            return self.at_most(statement)  # somebody's function, which a comparison may call for each row
        return super().counted(statement)

    def partitioned(self, table: str) -> bool:
        relation = self._catalog.relations.get(table)
        return relation is not None and relation.kind == "p"

    def _size(self, table: str) -> int:
        relation = self._catalog.relations.get(table)
        if relation is None:
            return 0
        if relation.kind not in "rp":
            return UNCOUNTED
        if not relation.row_security:  # whose policies would be tried on each row
            rows = self._number(
                f"SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {relation.sql} LIMIT {EXACT + 1}) goex_rows"
            )
            if rows is not None and rows <= EXACT:
                return rows
        bytes_ = self._number(
            "WITH RECURSIVE goex_all (id) AS ("
            f"SELECT {relation.oid}::pg_catalog.oid"
            " UNION SELECT inhrelid FROM pg_catalog.pg_inherits, goex_all WHERE inhparent = id)"
            " SELECT pg_catalog.sum(pg_catalog.pg_relation_size(id)) FROM goex_all"
        )
        return UNCOUNTED if bytes_ is None else bytes_ // _ROW_BYTES

    def _number(self, sql: str) -> int | None:
        self._link.do("SAVEPOINT goex_count")
        try:
            self._link.do(f"SET LOCAL statement_timeout = {int(COUNT_SECONDS * 1000)}")
            return int(self._link.ask(sql)[0][0])
        except (GoexError, IndexError, TypeError, ValueError):
            return None
        finally:
            with suppress(GoexError):
                self._link.do("ROLLBACK TO goex_count")
