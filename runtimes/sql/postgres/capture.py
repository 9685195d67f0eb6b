"""Running a program so that every row it changes is caught as it was and as it becomes, in the same transaction.

An image is lines of COPY's text form: the table's number, "b" (a row that was) or "a" (a row that became), the row as
PostgreSQL writes it. Order means nothing: what was there before is what has more "b" than "a", and the other way
round; so a row that is written five times leaves its first and its last form. Proof that nothing is missing is the
server's own count of rows written by the transaction, table by table, cascades and triggers and all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from policies.errors import Conflict
from runtimes.sql.bounds import beyond
from runtimes.sql.contract import Job, Reached, Result, RowChange, Statement, Verb
from runtimes.sql.postgres.connection import PUBLIC
from runtimes.sql.postgres.errors import translated
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.relations import Catalog, Relation, quoted
from runtimes.sql.postgres.rows import Gathered, Sample, escaped
from runtimes.sql.postgres.strategy import Strategy, catching

_CAUGHT = "pg_temp.goex_caught"
_UNSEEN = "A table that GoEx's user can't see was written on the way. Nothing was touched."

_MAKE = f"""
CREATE TEMPORARY TABLE goex_caught (k pg_catalog.int4, side pg_catalog.text, image pg_catalog.text) ON COMMIT DROP;
CREATE FUNCTION pg_temp.goex_catch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = {PUBLIC}
AS $goex$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO {_CAUGHT} SELECT TG_ARGV[0]::pg_catalog.int4, 'a', (n.*)::pg_catalog.text FROM goex_new n;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO {_CAUGHT} SELECT TG_ARGV[0]::pg_catalog.int4, 'b', (o.*)::pg_catalog.text FROM goex_old o;
  ELSE
    INSERT INTO {_CAUGHT} SELECT TG_ARGV[0]::pg_catalog.int4, 'b', (o.*)::pg_catalog.text FROM goex_old o;
    INSERT INTO {_CAUGHT} SELECT TG_ARGV[0]::pg_catalog.int4, 'a', (n.*)::pg_catalog.text FROM goex_new n;
  END IF;
  RETURN NULL;
END $goex$;
"""

_COUNTS = """
SELECT c.oid::pg_catalog.int8, pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid),
  pg_catalog.pg_stat_get_xact_tuples_updated(c.oid), pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid),
  coalesce(pg_catalog.pg_relation_filenode(c.oid), 0)::pg_catalog.int8
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND n.nspname !~ '^pg_(toast_)?temp_' AND c.relpersistence <> 't'
"""
# What the transaction wrote in the server's own tables: definitions, privileges, comments, large objects.
_OWN = """
SELECT coalesce(pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid)
  + pg_catalog.pg_stat_get_xact_tuples_updated(c.oid) + pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid)), 0)
FROM pg_catalog.pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'pg_catalog'::pg_catalog.regnamespace
"""


@dataclass(slots=True)
class Counts:
    """Rows that the transaction wrote in one table (its partitions' with it)."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(slots=True)
class Books:
    """What the server has counted when the transaction began: since this connection's last transactions."""

    rows: dict[int, tuple[int, int, int]]
    files: dict[int, int]

    @staticmethod
    def open(link: Link) -> Books:
        found = link.ask(_COUNTS)
        return Books({row[0]: (row[1], row[2], row[3]) for row in found}, {row[0]: row[4] for row in found})

    def since(self, link: Link, catalog: Catalog) -> dict[str, Counts]:
        """By table. Raises Conflict where a table was emptied or rewritten, or one that isn't known was written."""
        made: dict[str, Counts] = {}
        for oid, inserted, updated, deleted, file in link.ask(_COUNTS):
            before = self.rows.get(oid, (0, 0, 0))
            delta = inserted - before[0], updated - before[1], deleted - before[2]
            relation = catalog.by_oid.get(oid)
            if self.files.get(oid) != file and _held_alone(link, oid):
                name = relation.name if relation and relation.usable else "a table"
                raise Conflict(f"Something emptied, rewrote or made {name} on the way. Nothing was touched.")
            if not any(delta):
                continue
            if relation is None:
                raise Conflict(_UNSEEN)
            counts = made.setdefault(catalog.root(relation).name, Counts())
            counts.inserted += delta[0]
            counts.updated += delta[1]
            counts.deleted += delta[2]
        return made


def _held_alone(link: Link, oid: int) -> bool:
    """Whether this very transaction holds the table as only TRUNCATE and definitions do (it may be somebody else's)."""
    sql = (
        "SELECT 1 FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' "
        "AND relation = %s AND mode = 'AccessExclusiveLock' AND granted"
    )
    return bool(link.ask(sql, oid))


@dataclass
class Running:
    """One run of a program in a transaction that has begun. `pieces` runs it and gives the image as it comes."""

    link: Link
    catalog: Catalog
    strategy: Strategy
    job: Job
    books: Books
    results: list[Result] = field(default_factory=list)
    sample: Sample = field(default_factory=Sample)
    counts: dict[str, Counts] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)
    _lines: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def relations(self) -> list[Relation]:
        return [self.catalog.relations[name] for name in self.strategy.tables]

    def pieces(self) -> Generator[bytes, None, None]:
        """Raises what any statement raises, and Conflict beyond the bounds: the caller rolls back."""
        method = self.strategy.method
        if method == "triggers":
            self._watch()
        own = self._own()
        if self.strategy.triggers and self.catalog.path != ("public",):
            self.link.do(f"SET LOCAL search_path = {', '.join(map(quoted, self.catalog.path))}, pg_temp")
        for number, statement in enumerate(self.job.program.statements, 1):
            self.job.progress(f"Statement {number} of {len(self.job.program.statements)}")
            yield from self._run(statement, method == "returning")
        self.link.do("SET CONSTRAINTS ALL IMMEDIATE")  # what was put off to the end happens where it is still caught
        self.link.do(f"SET LOCAL search_path = {PUBLIC}")
        if self._own() != own:
            raise Conflict(
                "A trigger or a function of the database changed definitions, privileges or large objects on the way,"
                " which can't be taken back. Nothing was touched.",
                next_step="Leave it to somebody with a backup.",
            )
        self._count()
        if method == "triggers":
            for index, side in ((index, side) for index in range(len(self.relations)) for side in "ba"):
                copy = f"COPY (SELECT k, side, image FROM {_CAUGHT} WHERE k = {index} AND side = '{side}') TO STDOUT"
                yield from self._taking(self.link.copy_out(copy), index, side)
            self.link.do("DROP FUNCTION pg_temp.goex_catch() CASCADE; DROP TABLE pg_temp.goex_caught")
        if method != "none":
            self._prove()

    def reached(self) -> tuple[Reached, ...]:
        return reached(self.strategy, self.counts, self.truncated)

    def changes(self) -> tuple[RowChange, ...]:
        return self.sample.changes(self.relations)

    # ---- one statement

    def _run(self, statement: Statement, giving: bool) -> Iterator[bytes]:
        if statement.verb == "select":
            self.results.append(select(self.link, statement.sql, self.job))
            return
        if statement.verb == "truncate" and statement.table in self.strategy.tables:
            yield from self._truncate(statement)
            return
        index = self.strategy.tables.index(statement.table) if giving else 0
        way = catching(statement, index) if giving else None
        if way is None:
            self._plain(statement)
            return
        if way.before:
            yield from self._taking(self.link.copy_out(f"COPY ({way.before}) TO STDOUT"), index, "b", bounded=True)
        if not statement.returns_rows:
            yield from self._taking(self.link.copy_out(f"COPY ({way.sql}) TO STDOUT"), index, way.side, bounded=True)
            return
        cursor = self.link.do(way.sql)
        found = cursor.pgresult
        gathered = Gathered(cursor, self.job.limits, leave_out=3)
        gathered.take(cursor)
        self.results.append(gathered.result())
        if found is not None:
            texts = [(found.get_value(row, found.nfields - 1) or b"").decode() for row in range(found.ntuples)]
            lines = (f"{index}\t{way.side}\t".encode() + escaped(text) + b"\n" for text in texts)
            yield from self._taking(lines, index, way.side, bounded=True)

    def _plain(self, statement: Statement) -> None:
        cursor = self.link.do(statement.sql)
        if statement.returns_rows and cursor.pgresult is not None and cursor.pgresult.nfields:
            gathered = Gathered(cursor, self.job.limits)
            gathered.take(cursor)
            self.results.append(gathered.result())

    def _truncate(self, statement: Statement) -> Iterator[bytes]:
        relation = self.catalog.relations[statement.table]
        index = self.strategy.tables.index(statement.table)
        before = self._lines.get((index, "b"), 0)
        if self.strategy.method != "none":
            image = f"SELECT {index}, 'b', (t.*)::pg_catalog.text FROM {relation.sql} t"
            yield from self._taking(self.link.copy_out(f"COPY ({image}) TO STDOUT"), index, "b", bounded=True)
            rows = self._lines.get((index, "b"), 0) - before
        else:
            rows = self._size(relation)
        emptied = {statement.table: rows}
        for reach in self.strategy.reaches:  # by CASCADE
            if reach.verb == "truncate" and reach.why == "cascade" and reach.table not in emptied:
                emptied[reach.table] = self._size(self.catalog.relations[reach.table])
        self._plain(statement)
        self.truncated.update(emptied)
        # Their rows went without being counted, into new files: the books begin again for them, and their partitions.
        for oid, *_, file in self.link.ask(_COUNTS):
            known = self.catalog.by_oid.get(oid)
            if known is not None and self.catalog.root(known).name in emptied:
                self.books.files[oid] = file

    def _size(self, relation: Relation) -> int:
        return int(self.link.ask(f"SELECT pg_catalog.count(*) FROM {relation.sql}")[0][0])

    def _taking(
        self, pieces: Generator[bytes, None, None], index: int, side: str, *, bounded: bool = False
    ) -> Iterator[bytes]:
        """Hand lines on, counted, the first of them kept for a sample."""
        counted = 0
        with closing(pieces):
            for piece in pieces:
                if not self.sample.full(index, side):
                    self.sample.take(piece, index, side)
                counted += piece.count(b"\n")
                if bounded and counted > self.job.rows:
                    raise beyond(self.job.rows)
                yield piece
        self._lines[index, side] = self._lines.get((index, side), 0) + counted

    # ---- all of them

    def _watch(self) -> None:
        made = [_MAKE]
        for index, relation in enumerate(self.relations):
            verbs = {each.verb for each in self.strategy.reaches if each.table == relation.name}
            for event, tables in (
                ("INSERT", "NEW TABLE AS goex_new"),
                ("UPDATE", "OLD TABLE AS goex_old NEW TABLE AS goex_new"),
                ("DELETE", "OLD TABLE AS goex_old"),
            ):
                # A partition's row that moves is an UPDATE of its table; one that a trigger turns is caught by count.
                if event.lower() in verbs or self.strategy.triggers:
                    # Triggers of one kind fire by name: after all others that a person would have.
                    made.append(
                        f'CREATE TRIGGER "~goex_{event.lower()}" AFTER {event} ON {relation.sql} REFERENCING {tables} '
                        f"FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.goex_catch('{index}');"
                    )
        self.link.do("\n".join(made))

    def _own(self) -> int:
        """Rows that were written in the server's own tables, where no statement itself does that."""
        if self.strategy.definitions or any(one.verb == "truncate" for one in self.job.program.statements):
            return 0
        return int(self.link.ask(_OWN)[0][0])

    def _count(self) -> None:
        if self.strategy.definitions:
            return
        self.counts = self.books.since(self.link, self.catalog)
        stray = sorted(set(self.counts) - set(self.strategy.tables))
        if not all(self.catalog.relations[name].usable for name in stray):
            raise Conflict(_UNSEEN)
        total = sum(each.inserted + each.updated + each.deleted for each in self.counts.values())
        total += sum(self.truncated.values())
        if total > self.job.rows:
            raise beyond(self.job.rows)
        if stray:
            raise Conflict(
                f"A trigger or a default wrote to {', '.join(stray[:5])}, which wasn't foreseen. Nothing was touched.",
                next_step="Name what it writes in the trigger's own text, or leave that to the person.",
            )

    def _prove(self) -> None:
        """As many rows were caught as the server counted."""
        for index, name in enumerate(self.strategy.tables):
            counts = self.counts.get(name, Counts())
            was = self._lines.get((index, "b"), 0) - self.truncated.get(name, 0)
            became = self._lines.get((index, "a"), 0)
            if name in self.truncated and not any((counts.inserted, counts.updated)) and was == 0 and became == 0:
                continue
            if was != counts.updated + counts.deleted or became != counts.updated + counts.inserted:
                raise Conflict(f"Not every row that was changed in {name} could be caught. Nothing was touched.")


def select(link: Link, sql: str, job: Job) -> Result:
    """Read rows up to the limits; what is beyond them is counted on the server."""
    if sql.startswith("EXPLAIN "):  # no cursor gives that
        cursor = link.do(sql)
        plan = Gathered(cursor, job.limits)
        plan.take(cursor)
        return plan.result()
    link.do(f"DECLARE goex_rows NO SCROLL CURSOR FOR {sql}")
    gathered: Gathered | None = None
    while gathered is None or not gathered.full:
        cursor = link.do("FETCH 200 FROM goex_rows")
        with translated():
            gathered = gathered or Gathered(cursor, job.limits)
            gathered.take(cursor)
        found = cursor.pgresult
        if found is None or found.ntuples < 200:
            break
    seen = gathered.seen
    if gathered.full:
        seen += link.rows("MOVE FORWARD ALL FROM goex_rows")
    link.do("CLOSE goex_rows")
    return gathered.result(seen)


def reached(strategy: Strategy, counts: dict[str, Counts], truncated: dict[str, int]) -> tuple[Reached, ...]:
    """What was written, as the server counted it."""
    made = []
    for name in sorted({*counts, *truncated}):
        each = counts.get(name, Counts())
        pairs: tuple[tuple[Literal["insert", "update", "delete"], int], ...] = (
            ("insert", each.inserted),
            ("update", each.updated),
            ("delete", each.deleted),
        )
        for verb, rows in pairs:
            if rows > 0:
                made.append(Reached(table=name, verb=verb, rows=rows, why=strategy.why(name, verb)))
        if name in truncated:
            gone: Verb = "truncate"
            made.append(Reached(table=name, verb=gone, rows=truncated[name]))
    return tuple(made)
