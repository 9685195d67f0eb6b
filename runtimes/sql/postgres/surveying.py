"""What a program would do, without doing it: the server plans it, and counts what it would write. Only reads."""

from __future__ import annotations

from contextlib import suppress

from sqlglot import exp

from policies.errors import GoexError, InvalidInput
from runtimes.sql.contract import Policy, Program, Reached, Statement, Survey, Verb
from runtimes.sql.postgres.catalog import Catalog, Foreign, quoted
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.strategy import Strategy, Why, choose, rows_of, tree_of

_DEEPEST = 8  # cascades over cascades that are counted exactly


def survey(link: Link, catalog: Catalog, program: Program, policy: Policy) -> Survey:
    """See `Session.survey`; in a transaction that only reads."""
    strategy = choose(catalog, program, policy)
    made = {use.table for one in program.statements for use in one.uses if use.verb in ("create", "alter", "drop")}
    for statement in program.statements:
        if statement.verb in ("select", "insert", "update", "delete") and not made & {u.table for u in statement.uses}:
            _plan(link, statement)
    counting = _Counting(link, catalog, program)
    reached = _reached(strategy, counting, program)
    notes = list(strategy.notes)
    if strategy.counters:
        notes.append(f"Counters move on and aren't set back: {', '.join(strategy.counters)}.")
    return Survey(reached=reached, counters=strategy.counters, notes=tuple(notes), strategy=strategy.facts())


def _plan(link: Link, statement: Statement) -> None:
    """Raises InvalidInput for what the server can't run. Planning reads no row."""
    link.do("SAVEPOINT goex_plan")
    try:
        link.do(f"EXPLAIN {statement.sql}")
    except InvalidInput:
        raise
    except GoexError as error:
        if error.code == "unsupported":
            raise
        raise InvalidInput("The server can't plan this statement: a value in it doesn't fit.") from None
    finally:
        with suppress(GoexError):
            link.do("ROLLBACK TO goex_plan")


def _reached(strategy: Strategy, counting: _Counting, program: Program) -> tuple[Reached, ...]:
    rows: dict[tuple[str, Verb], int] = {}
    parts: dict[tuple[str, Verb, Why, str], int] = {}  # by what brings it, too: one row may come from several sides
    order: dict[tuple[str, Verb], tuple[Why, frozenset[str]]] = {}
    direct = _direct(counting, program)
    for reach in strategy.reaches:
        key = reach.table, reach.verb
        if reach.why == "statement":
            found = sum(
                number
                for one, number in zip(program.statements, direct, strict=True)
                if one.table == reach.table and any(u.table == reach.table and u.verb == reach.verb for u in one.uses)
            )
        elif reach.why == "cascade":
            found = counting.cascade(reach.table, reach.source)
        else:
            found = sum(number for (table, _), number in rows.items() if table == reach.source)
        if reach.verb == "update" and counting.partitioned(reach.table):
            found *= 2  # a row that moves to another partition counts as one that goes and one that comes
        part = (*key, reach.why, reach.source)
        parts[part] = max(parts.get(part, 0), found)
        rows[key] = sum(number for each, number in parts.items() if each[:2] == key)
        why, columns = order.get(key, (reach.why, frozenset()))
        order[key] = why, columns | reach.columns
    return tuple(
        Reached(
            table=table, verb=verb, rows=number, why=order[table, verb][0], columns=tuple(sorted(order[table, verb][1]))
        )
        for (table, verb), number in rows.items()
    )


def _direct(counting: _Counting, program: Program) -> list[int]:
    """Rows of each statement, at most: what an earlier one writes, a later one may find besides."""
    numbers: list[int] = []
    before: dict[str, int] = {}  # rows that were written, by table
    for statement in program.statements:
        number = counting.statement(statement)
        if before and statement.verb in ("insert", "update", "delete"):
            reads = {use.table for use in statement.uses if use.verb == "select"} - {statement.table}
            mine = before.get(statement.table, 0)
            if reads & before.keys():
                number = counting.whole(statement.table) + sum(
                    counting.whole(name) + before.get(name, 0) for name in reads
                )
            if statement.verb != "insert" or (mine and any(u.verb == "select" for u in statement.uses)):
                number += mine
        numbers.append(number)
        if statement.verb != "select":
            before[statement.table] = before.get(statement.table, 0) + number
    return numbers


class _Counting:
    """Rows, asked of the server; where asking fails, all of the table's. What failed isn't said: it would tell."""

    def __init__(self, link: Link, catalog: Catalog, program: Program) -> None:
        self._link, self._catalog, self._program = link, catalog, program

    def statement(self, statement: Statement) -> int:
        if statement.verb not in ("insert", "update", "delete", "truncate"):
            return self.whole(statement.table) if statement.verb in ("alter", "drop") else 0
        found = self._number(statement.count_sql) if statement.count_sql else None
        return self.whole(statement.table) if found is None else found

    def cascade(self, child: str, parent: str) -> int:
        """Rows of `child` that point to what the program writes of `parent`."""
        number = 0
        for key in self._catalog.pointing_to(parent):
            if key.child != child:
                continue
            chosen = self._chosen(parent, key.parent_columns, 0)
            if not chosen:
                return self.whole(child)
            found = self._number(f"SELECT pg_catalog.count(*) FROM {self._pointing(key, chosen)}")
            number += self.whole(child) if found is None else found
        return number

    def _pointing(self, key: Foreign, chosen: list[str]) -> str:
        columns = ", ".join(f"c.{quoted(name)}" for name in key.columns)
        any_of = " OR ".join(f"({columns}) IN ({query})" for query in chosen)
        return f"{self._catalog.relations[key.child].sql} c WHERE {any_of}"

    def _chosen(self, table: str, columns: tuple[str, ...], depth: int) -> list[str]:
        """Queries of those columns of the rows of `table` that are written; []: it can't be said."""
        queries = []
        for statement in self._program.statements:
            if statement.table != table or statement.verb not in ("update", "delete"):
                continue
            tree = tree_of(statement)
            if tree is None or not isinstance(tree, exp.Update | exp.Delete):
                return []
            if any(tree.args.get(part) for part in ("from_", "with_", "using", "order", "limit")):
                return []
            listed = ", ".join(map(quoted, columns))
            queries.append(f"SELECT {listed} {rows_of(tree)}")
        if depth < _DEEPEST:
            for key in self._catalog.foreign:
                if key.child != table or key.parent == table or key.on_delete not in "c":
                    continue
                above = self._chosen(key.parent, key.parent_columns, depth + 1)
                if above:
                    listed = ", ".join(f"c.{quoted(name)}" for name in columns)
                    queries.append(f"SELECT {listed} FROM {self._pointing(key, above)}")
        # Rows that point to rows of the same table go on and on: no query of this kind reaches the end.
        if any(key.parent == table and key.on_delete in "cnd" for key in self._catalog.foreign if key.child == table):
            return []
        return queries

    def partitioned(self, table: str) -> bool:
        relation = self._catalog.relations.get(table)
        return relation is not None and relation.kind == "p"

    def whole(self, table: str) -> int:
        """All rows of a table."""
        relation = self._catalog.relations.get(table)
        if relation is None:
            return 0
        return self._number(f"SELECT pg_catalog.count(*) FROM {relation.sql}") or 0

    def _number(self, sql: str) -> int | None:
        self._link.do("SAVEPOINT goex_count")
        try:
            return int(self._link.ask(sql)[0][0])
        except (GoexError, IndexError, TypeError, ValueError):
            return None
        finally:
            with suppress(GoexError):
                self._link.do("ROLLBACK TO goex_count")
