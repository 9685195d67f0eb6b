"""What a program would do to a SQLite file, found without writing to it, and how it will be taken back.

*rows*: every changed row is kept and compared. *pages*: the file's pages are kept, and undo works only while nobody
wrote to the file since. Rows are chosen wherever they tell everything; versioning always means pages, since SQLite
can't hold a transaction open for days: what was done is there for everybody, and its before-state is kept.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import apsw

from policies.errors import GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.sql.bounds import COUNT_SECONDS, EXACT, UNCOUNTED, Sizes
from runtimes.sql.checking.nodes import lower
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Dialect, Limits, Policy, Program, Reached, Schema, Statement, Survey, Table, Verb
from runtimes.sql.sqlite import wholes
from runtimes.sql.sqlite.connection import Connection, Write, limited
from runtimes.sql.sqlite.errors import quoted, refused_text
from runtimes.sql.sqlite.location import swapped
from runtimes.sql.sqlite.schema import cascades, replaced

_DEFINE = frozenset({"create", "alter", "drop"})
_TRIED = 1000  # looks at a trial of definitions while it runs, every 10,000 instructions
_ROW_BYTES = 5  # that a row takes of a file at least


@dataclass(frozen=True, slots=True)
class Reach:
    """The tables that a program can write. `pages`: why rows wouldn't do, "" if they do."""

    writes: frozenset[Write]
    cascades: frozenset[tuple[str, str]]
    pages: str
    all_writes: frozenset[tuple[str, str]] = frozenset()
    replaces: bool = False  # rows can go by a table's own ON CONFLICT REPLACE
    reads: frozenset[str] = frozenset()  # by triggers and views

    def plain(self, statement: Statement) -> bool:
        """Whether it does one thing to one table, and nothing follows from that."""
        own = [use for use in statement.uses if use.verb != "select"]
        follows = self.cascades or self.replaces or any(inside for _, _, inside in self.writes)
        return len(own) == 1 and not follows


def reach(connection: Connection, program: Program, schema: Schema) -> Reach:
    """What the engine itself says that the statements would write. Raises InvalidInput for one that it can't run."""
    if any(statement.verb in _DEFINE for statement in program.statements):
        return _reach_of_definitions(connection, program, schema)
    writes: set[Write] = set()
    reads: set[str] = set()
    for statement in program.statements:
        found = _explained(connection.db, connection, statement, reads)
        if statement.sql.startswith("EXPLAIN "):  # what is explained isn't run
            continue
        if statement.verb == "select" and found:
            raise Unsupported("This statement writes, and its text didn't say so.", next_step="Write it plainly.")
        writes |= found | _replacing(schema, statement, found)
    # What foreign keys do is told without the name of a trigger, and follows from the schema.
    pairs = {(verb, table) for verb, table, inside in writes if inside}
    for statement in program.statements:
        pairs |= {(use.verb, use.table) for use in statement.uses if use.verb in ("insert", "update", "delete")}
        pairs |= {("delete", use.table) for use in statement.uses if use.verb == "truncate"}
    more = replaced(schema, pairs)
    pairs |= more
    follow = cascades(schema, pairs) | _inner(schema, {table for _, table in pairs})
    why = _why_pages(connection, schema, pairs)
    return Reach(frozenset(writes), follow, why, frozenset(pairs | follow), replaces=bool(more), reads=frozenset(reads))


def _replacing(schema: Schema, statement: Statement, found: set[Write]) -> set[Write]:
    """The deletes within triggers: OR REPLACE holds for what these write, too; without it their tables' own ON CONFLICT
    does."""
    everywhere = statement.verb != "delete" and any(use.verb == "delete" for use in statement.uses)
    return {
        ("delete", table, inside)
        for verb, table, inside in found
        if inside and verb != "delete" and (everywhere or replaced(schema, {(verb, table)}))
    }


def _inner(schema: Schema, names: set[str]) -> set[tuple[str, str]]:
    """The tables in which a module keeps its own (of a full-text index, of an R-tree): written whenever that is."""
    owners = {name for name in names if name in schema.tables and schema.tables[name].facts.get("virtual")}
    return {
        (verb, table.name)
        for table in schema.tables.values()
        if table.facts.get("shadow") and table.name.rpartition("_")[0] in owners
        for verb in ("insert", "update", "delete")
    }


def _explained(
    db: apsw.Connection, connection: Connection, statement: Statement, reads: set[str] | None = None
) -> set[Write]:
    writes: set[Write] = set()
    try:
        with connection.noting(writes, set() if reads is None else reads):
            _explain(db, statement)
    except apsw.InterruptError:
        raise
    except apsw.Error as error:
        raise refused_text(error) from error
    return writes


def _explain(db: apsw.Connection, statement: Statement) -> None:
    """Have SQLite prepare it. What it answers isn't read: bytes that stand in the statement are text there."""
    db.execute("EXPLAIN " + statement.sql.removeprefix("EXPLAIN ").removeprefix("QUERY PLAN ")).close(True)


def _reach_of_definitions(connection: Connection, program: Program, schema: Schema) -> Reach:
    """Definitions are tried in memory, on the tables without their rows; no query of them is run."""
    trial = apsw.Connection(":memory:")
    limited(trial)
    looks = iter(range(_TRIED))
    trial.set_progress_handler(lambda: next(looks, None) is None, 10_000)
    trial.authorizer = connection.in_time
    complete = True
    for (sql,) in connection.db.execute(
        "SELECT sql FROM main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY type = 'table' DESC, rowid"
    ).fetchall():
        try:
            trial.execute(str(sql))
        except apsw.Error:
            connection.check_time()
            complete = False
    if complete:
        for statement in program.statements:
            try:
                if statement.verb not in _DEFINE or (statement.verb == "create" and _fills(statement)):
                    _explain(trial, statement)
                else:
                    trial.execute(statement.sql)
            except apsw.InterruptError as error:
                raise InvalidInput(
                    "This definition takes too long even without rows.", next_step="Define less at a time."
                ) from error
            except apsw.Error as error:
                raise refused_text(error) from error
    pairs = {
        ("delete" if use.verb == "drop" else str(use.verb), use.table)
        for statement in program.statements
        for use in statement.uses
        if use.verb not in ("select", "create", "alter")
    }
    fired: set[Write] = set()
    reads: set[str] = set()
    for statement in program.statements:
        if statement.verb in ("insert", "update", "delete"):
            with suppress(GoexError):  # it writes what an earlier one makes: in a new table, which has no triggers
                found = _explained(connection.db, connection, statement, reads)
                fired |= {write for write in found | _replacing(schema, statement, found) if write[2]}
    pairs |= {(verb, table) for verb, table, _ in fired}
    follow = cascades(schema, pairs) | _inner(schema, {table for _, table in pairs})
    return Reach(frozenset(fired), follow, "definitions change", reads=frozenset(reads))


def _fills(statement: Statement) -> bool:
    """Whether it makes a table of a query: then nothing that follows may name that table."""
    (tree,) = read(statement.sql, Dialect.SQLITE)
    return str(tree.args.get("kind")).upper() == "TABLE" and tree.args.get("expression") is not None


def _why_pages(connection: Connection, schema: Schema, writes: set[tuple[str, str]]) -> str:
    if str(connection.db.pragma("encoding")) != "UTF-8":
        return "its text isn't kept as UTF-8"
    by_name = {lower(name): table for name, table in schema.tables.items()}
    names = {table for _, table in writes} | {table for _, table in cascades(schema, writes)}
    for name in sorted(names):
        table = by_name.get(lower(name))
        if table is None or table.kind == "view":
            continue
        if table.kind == "other":
            return f"{name} is kept by a module of SQLite"
        if table.facts.get("virtual_columns"):
            return f"{name} has columns that are computed when they are read"
        if _unnamed(table):
            return f"{name} has columns with the names of the rowid"
    if broken(connection.db, related(schema, names)):
        return "rows point to others that aren't there"
    return ""


def _unnamed(table: Table) -> bool:
    taken = {lower(column.name) for column in table.columns}
    counts = any(column.counter for column in table.columns)
    return not table.facts.get("without_rowid") and not counts and {"rowid", "oid", "_rowid_"} <= taken


def related(schema: Schema, names: set[str]) -> list[str]:
    """Tables whose foreign keys point from, or to, one of `names`."""
    wanted = {lower(name) for name in names}
    return [
        table.name
        for table in schema.tables.values()
        if table.foreign_keys
        and (lower(table.name) in wanted or any(lower(key.parent) in wanted for key in table.foreign_keys))
    ]


def broken(db: apsw.Connection, tables: list[str]) -> Tally[tuple[object, ...]]:
    """(table, rowid, parent, number of the foreign key) of rows that point nowhere, and how many are told so: a table
    WITHOUT ROWID has none to tell them apart by."""
    found: Tally[tuple[object, ...]] = Tally()
    for table in tables:
        found.update(tuple(row) for row in db.execute(f"PRAGMA main.foreign_key_check({quoted(table)})"))
    return found


def survey(connection: Connection, program: Program, policy: Policy, limits: Limits, schema: Schema) -> Survey:
    """See `Session.survey`."""
    strategy: JsonObject = {"device": connection.pinned.device, "inode": connection.pinned.inode}
    found = reach(connection, program, schema)
    if program.reads_only:
        return Survey(reached=(), strategy={**strategy, "kind": "none"})
    connection.writable()
    kind = "pages" if policy == "versioning" or found.pages else "rows"
    size = int(connection.db.pragma("page_count")) * int(connection.db.pragma("page_size"))
    notes = []
    if policy == "versioning":
        notes.append("Everybody who reads this file sees the change at once: SQLite can't hold it back.")
    if kind == "pages":
        if size > limits.image_bytes:
            raise Unsupported(
                f"Taking this back needs the whole file ({found.pages or 'versioning'}), and its {size // 2**20} MB are"
                f" more than the {limits.image_bytes // 2**20} MB that are kept.",
                next_step="Raise [databases] image_mb in config.toml."
                if found.pages
                else "Choose the policy reversal, which keeps rows: --policy reversal.",
            )
        why = f": {found.pages}" if found.pages else ""
        notes.append(f"Undo puts the whole file back, and works until anybody else writes to it{why}.")
    sizes = _Sizes(connection, schema, {u.table for s in program.statements for u in s.uses if u.verb == "create"})
    sized = _reached(sizes, program, schema, found, sizes.at_most)
    reached = _reached(sizes, program, schema, found, sizes.counted)
    tables = {table for _, table in found.all_writes}
    known = {lower(name): name for name in schema.tables}  # as they are called there, without table functions
    reads = {known[lower(name)] for name in found.reads if lower(name) in known}
    likely = sum(one.rows for one in reached)
    if any(
        one.verb in ("update", "delete") and not one.everywhere and one.most is None and not one.count_sql
        for one in program.statements
    ):
        likely = min(likely, wholes.ROWS)  # the table's size says little of what a condition finds
    if kind == "rows" and wholes.fits(schema, tables, likely, size, limits):
        kind = "whole"
    return Survey(
        reached=reached,
        bound=sum(one.rows for one in sized),
        counters=_counters(program, schema, kind),
        notes=tuple(notes),
        reads=tuple(sorted(reads - tables)),
        strategy={**strategy, "kind": kind},
    )


def _reached(
    sizes: _Sizes, program: Program, schema: Schema, found: Reach, count: Callable[[Statement], int]
) -> tuple[Reached, ...]:
    reached: list[Reached] = []
    direct, upper = set(), 0
    inserted: Tally[str] = Tally()  # rows that are there only once an earlier statement has run
    for statement in program.statements:
        rows = count(statement)
        if statement.verb in ("update", "delete"):
            rows += inserted[statement.table]
        elif statement.verb == "insert":
            rows += sum(inserted[use.table] for use in statement.uses if use.verb == "select")
            inserted[statement.table] += rows
        for use in statement.uses:
            if use.verb == "select":
                continue
            direct.add((use.verb, lower(use.table)))
            number = 0 if use.verb in ("create", "alter") else rows
            if use.verb == "delete" and statement.verb != "delete":  # REPLACE: each new row can take away several
                number = min(rows * max(1, _uniques(schema, use.table)), sizes.of(use.table) + inserted[use.table])
            upper += number
            reached.append(Reached(table=use.table, verb=use.verb, rows=number, columns=use.columns))
            written = schema.tables.get(use.table)
            if use.verb in ("insert", "update") and written is not None and written.facts.get("replaces"):
                most = rows * _uniques(schema, use.table)
                reached.append(Reached(table=use.table, verb="delete", rows=most))
    followers: dict[tuple[str, str], str] = dict.fromkeys(sorted(found.cascades), "cascade")
    for verb, table, inside in sorted(found.writes):
        if inside and ((verb, lower(table)) in direct or (verb, table) not in followers):
            followers[verb, table] = "trigger"
    for (verb, table), why in followers.items():
        if schema.tables.get(table) is not None and schema.tables[table].kind == "other":
            continue
        whole = sizes.of(table)
        most = whole if why == "cascade" else upper + whole if verb != "insert" else max(upper, 1) * 10
        reached.append(
            Reached(table=table, verb=cast(Verb, verb), rows=most, why="cascade" if why == "cascade" else "trigger")
        )
    return tuple(reached)


class _Sizes(Sizes):
    """`made` are the tables that the program itself makes."""

    def __init__(self, connection: Connection, schema: Schema, made: set[str]) -> None:
        super().__init__()
        self._connection, self._made = connection, made
        self._kinds = {lower(table.name): table.kind for table in schema.tables.values()}

    def at_most(self, statement: Statement) -> int:
        if statement.verb in ("create", "alter") or (statement.table in self._made and statement.verb != "insert"):
            return 0  # it writes no row that is there already, and none of its own
        return super().at_most(statement)

    def _size(self, table: str) -> int:
        if self._kinds.get(lower(table)) == "view":
            return UNCOUNTED
        db = self._connection.db
        rows = self._number(f"SELECT count(*) FROM (SELECT 1 FROM main.{quoted(table)} LIMIT {EXACT + 1})")  # noqa: S608
        if rows is not None and rows <= EXACT:
            return rows
        return int(db.pragma("page_count")) * int(db.pragma("page_size")) // _ROW_BYTES

    def _number(self, sql: str) -> int | None:
        with suppress(apsw.Error), self._connection.reading(), self._connection.briefly(COUNT_SECONDS):
            row = self._connection.db.execute(sql).fetchone()
            return int(cast(int, row[0])) if row else 0
        return None


def _uniques(schema: Schema, name: str) -> int:
    table = schema.tables.get(name)
    return 1 if table is None else cast(int, table.facts["uniques"])


def _counters(program: Program, schema: Schema, kind: str) -> tuple[str, ...]:
    if kind == "pages":
        return ()
    tables: Mapping[str, Table] = schema.tables
    names = {
        use.table
        for statement in program.statements
        for use in statement.uses
        if use.verb in ("insert", "update") and use.table in tables and tables[use.table].facts.get("autoincrement")
    }
    return tuple(f"{name}: AUTOINCREMENT" for name in sorted(names))


def check_strategy(connection: Connection, strategy: JsonObject) -> str:
    """The kind of strategy that was planned: "rows", "pages" or "none". Raises Conflict for another file."""
    pinned = (connection.pinned.device, connection.pinned.inode)
    if strategy and (strategy.get("device"), strategy.get("inode")) != pinned:
        raise swapped(connection.pinned.path)
    kind = str(strategy.get("kind", "rows"))
    if kind not in ("rows", "whole", "pages", "none"):
        raise InvalidInput(f"There is no such way to take a change back: {kind[:40]}.")
    return kind
