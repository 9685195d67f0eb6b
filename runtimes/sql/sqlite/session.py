"""One connection to a SQLite file, for one action at a time.

Order of `run`: BEGIN IMMEDIATE, the statements, the image into the records, "db.state" into the records with a mark of
the transaction, COMMIT, "db.state" again. So a transaction that is committed always has its image, and one without an
image never was committed: SQLite rolls it back when the file is opened next. In between the mark tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import apsw

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject
from runtimes.sql.bounds import ResultRows, beyond
from runtimes.sql.contract import (
    Job,
    Limits,
    Policy,
    Program,
    Ran,
    Reached,
    Result,
    RowChange,
    Schema,
    Settled,
    Statement,
    Survey,
    turned,
)
from runtimes.sql.records import put_state, ran_from_json, ran_to_json, write_image
from runtimes.sql.sqlite import pages, records, restore, settle, survey, wholes
from runtimes.sql.sqlite.capture import Recorder
from runtimes.sql.sqlite.commit_mark import Marker
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.errors import as_json, doubtful, refused_text, while_running
from runtimes.sql.sqlite.pages import Pages
from runtimes.sql.sqlite.restore import Change, Mismatch
from runtimes.sql.sqlite.schema import Shape, read_schema, shapes
from runtimes.sql.sqlite.survey import Reach

_SCHEMA_SECONDS = 20.0  # that looking at the definitions may take
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Done:
    """What a program did inside its transaction."""

    ran: Ran
    kind: str = "none"
    shapes: dict[str, Shape] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    copied: list[bytes] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


class SqliteSession:
    """See `runtimes.sql.contract.Session`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._db = connection.db
        self._seen: Schema | None = None  # what `schema` read last

    # ---- looking

    def schema(self) -> Schema:
        def look() -> Schema:
            with self._connection.within(_SCHEMA_SECONDS):
                return self._schema()

        self._seen = self._translated(look)
        return self._seen

    def _schema(self) -> Schema:
        try:
            with self._connection.ending():
                return read_schema(self._db)
        except apsw.InterruptError as error:
            raise Unsupported(
                "It takes too long to look at what this database's views read.",
                next_step="Have no view read others that read others in turn, many times over.",
            ) from error

    def survey(self, program: Program, policy: Policy, limits: Limits) -> Survey:
        def look() -> Survey:
            with self._connection.within(limits.seconds), self._connection.transaction("DEFERRED"):
                seen = self._seen if self._seen is not None else self._schema()
                return survey.survey(self._connection, program, policy, limits, seen)

        return self._translated(look)

    def trial(self, job: Job) -> Ran:
        def run() -> Ran:
            with self._connection.within(job.limits.seconds), self._connection.transaction("IMMEDIATE"):
                return self._perform(job).ran

        return self._translated(run)

    # ---- doing

    def run(self, job: Job) -> Ran:
        def run() -> Ran:
            with self._connection.within(job.limits.seconds):
                if job.program.reads_only:
                    with self._connection.transaction("DEFERRED"):
                        return self._perform(job).ran
                marker = Marker(self._connection)
                with self._connection.transaction("IMMEDIATE"):
                    marker.begin()
                    done = self._perform(job)
                    self._commit(job, self._keep(job, done), "done", marker)
                return done.ran

        return self._translated(run)

    def _perform(self, job: Job) -> _Done:
        schema = self._schema()
        if schema.hash != job.schema_hash:
            raise Conflict(
                "The tables aren't defined any more as they were looked at.", next_step="Ask for the action again."
            )
        kind = survey.check_strategy(self._connection, job.strategy)
        if job.program.reads_only:
            read = [self._statement(statement, frozenset(), job) for statement in job.program.statements]
            return _Done(Ran(reached=(), results=tuple(one for one in read if one is not None)))
        self._connection.writable()
        reach = survey.reach(self._connection, job.program, schema)
        if kind != "pages" and reach.pages:
            raise Conflict(
                f"Rows alone can't take this back now: {reach.pages}.", next_step="Ask for the action again."
            )
        copies = kind != "rows"
        before = pages.snapshot(self._connection, job.limits) if copies else b""
        packer = wholes.Packer(before) if kind == "whole" else None
        try:
            return self._statements(job, schema, reach, kind, before, packer)
        finally:
            if packer is not None:
                packer.close()

    def _statements(
        self, job: Job, schema: Schema, reach: Reach, kind: str, before: bytes, packer: wholes.Packer | None
    ) -> _Done:
        copies = kind != "rows"
        written = sorted({table for _, table in reach.all_writes})
        counters = self._counters()
        known: dict[str, Shape | None] = {}

        def shape(name: str) -> Shape | None:
            if name not in known:
                known[name] = shapes(self._db, [name]).get(name)
            return known[name]

        inner = frozenset(table.name for table in schema.tables.values() if table.facts.get("shadow"))
        most = job.limits.image_bytes
        recorder = Recorder(shape, keep=not copies, most_rows=job.rows, most_bytes=most, inner=inner)
        results: list[Result] = []
        virtual: list[Reached] = []
        self._db.set_last_insert_rowid(0)  # no key that another action got
        for statement in job.program.statements:
            total = self._db.total_changes()
            if kind == "whole" and reach.plain(statement):  # SQLite's own count tells it all
                result = self._statement(statement, reach.cascades, job, recorder)
                recorder.count(statement.table, statement.verb, self._db.total_changes() - total)
            else:
                with recorder.on(self._db):
                    result = self._statement(statement, reach.cascades, job, recorder)
            if result is not None:
                results.append(result)
            table = schema.tables.get(statement.table)
            if table is not None and table.kind == "other" and statement.verb in ("insert", "update", "delete"):
                rows = self._db.changes() if self._db.total_changes() != total else 0
                virtual.append(Reached(table=statement.table, verb=statement.verb, rows=rows))
            if recorder.rows + sum(one.rows for one in virtual) > job.rows:
                raise beyond(job.rows)
        reached = (*_reached(job.program, schema, recorder, reach.cascades), *virtual)
        changes = [] if copies else recorder.changes()
        _check_keys(changes)
        names = {change.table for change in changes}
        used = {name: found for name in sorted(names) if (found := shape(name)) is not None}
        kept: list[bytes] = []
        seen = used, changes
        if copies:
            self._db.execute("SAVEPOINT goex; RELEASE goex")  # full-text indexes write down what they hold back
            after = pages.snapshot(self._connection, job.limits)
            if packer is None:
                kept = list(pages.encode(pages.difference(before, after)))
            else:
                kept = packer.pieces(after)
                with suppress(UnicodeDecodeError):
                    seen = wholes.changes(before, after, written, most=restore.SAMPLE, moved=recorder.moved())
                    if any(verb != "insert" for _, verb, _ in recorder.counts):
                        wholes.rehearse(before, after, seen[0], self._connection.limit_time)
        if kind == "rows":
            restore.rehearse(*seen, self._connection.limit_time)
        ran = Ran(
            reached=reached,
            results=tuple(results),
            sample=restore.sample(*seen),
            counters=() if kind == "pages" else self._moved(counters),
            notes=(),
        )
        return _Done(ran, kind, used, changes, kept, written)

    def _statement(
        self, statement: Statement, follow: frozenset[tuple[str, str]], job: Job, recorder: Recorder | None = None
    ) -> Result | None:
        with self._connection.only(statement, follow):
            try:
                cursor = self._db.cursor()
                cursor.execute(statement.sql)
                columns = tuple(str(part[0]) for part in cursor.get_description()) if statement.returns_rows else ()
            except (apsw.ExecutionCompleteError, StopIteration):
                columns = ()
            except apsw.InterruptError:
                raise
            except apsw.Error as error:
                if recorder is not None and recorder.trouble is not None:
                    raise recorder.trouble from error
                raise _prepared_or_running(error) from error
            if recorder is not None and recorder.trouble is not None:
                raise recorder.trouble
            if not statement.returns_rows:
                return None
            return self._rows(cursor, columns, job.limits)

    def _rows(self, cursor: apsw.Cursor, columns: tuple[str, ...], limits: Limits) -> Result:
        found = ResultRows(columns, limits)
        try:
            for row in cursor:
                held = tuple(as_json(value) for value in row)
                if found.fits(sum(len(str(value)) for value in held)):
                    found.rows.append(held)
        except UnicodeDecodeError as error:
            raise Conflict(
                "A value isn't valid UTF-8 text. Nothing was changed.", next_step="Read it as hex(column)."
            ) from error
        except apsw.InterruptError:
            raise
        except apsw.Error as error:
            raise _prepared_or_running(error) from error
        return found.result()

    def _keep(self, job: Job, done: _Done) -> JsonObject:
        """Keep everything that undo needs, before the commit; returns the note of it."""
        pieces = restore.encode(done.shapes.values(), done.changes) if done.kind == "rows" else done.copied
        level = 0 if done.kind == "whole" else 1  # it is compressed already
        job.progress("Keeping what undo needs")
        write_image(job.records, records.IMAGE, pieces, most=job.limits.image_bytes, level=level)
        return {"phase": "", "kind": done.kind, "tables": done.written, "ran": ran_to_json(done.ran)}

    def _commit(self, job: Job, note: JsonObject, phase: str, marker: Marker) -> None:
        """COMMIT: what is being done is noted before it, and that it is done after it. Raises GoexError, having left
        things as `note` says, and Doubtful."""
        put_state(job.records, records.committing(note, phase, marker.mark()))
        try:
            self._connection.check_same()
            self._connection.check_time()
            self._db.execute("COMMIT")
        except (apsw.BusyError, apsw.ConstraintError) as error:  # of a deferred key: the transaction is still open
            self._note_again(job, note)
            raise while_running(error) from error
        except apsw.Error as error:
            raise doubtful() from error
        except GoexError:
            self._note_again(job, note)
            raise
        self._note_end(job, note, phase)
        with suppress(apsw.Error):
            marker.end()

    @staticmethod
    def _note_end(job: Job, note: JsonObject, phase: str) -> None:
        try:
            put_state(job.records, records.ended(note, phase))
        except GoexError as error:  # it is done, and that is found out
            raise doubtful() from error

    @staticmethod
    def _note_again(job: Job, note: JsonObject) -> None:
        with suppress(GoexError):  # it is found out, too
            put_state(job.records, note)

    # ---- taking back

    def settle(self, job: Job) -> Settled:
        return self._translated(lambda: settle.look(self._connection, job))

    def roll_back(self, job: Job) -> Settled:
        return self.settle(job)  # nothing is held here

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        def look() -> Ran:
            with self._connection.within(job.limits.seconds), self._connection.transaction("DEFERRED"):
                return self._check(job, verb)[0]

        return self._translated(look)

    def _check(self, job: Job, verb: str) -> tuple[Ran, dict[str, Shape], list[Change], Pages | None, bool]:
        """What a revert has to do: its rows or its pages, and whether there is anything left to do."""
        note = settle.resolved(self._connection, job)
        if note is None or not (note["phase"] or records.commit_under_way(note)):
            raise Conflict("It never changed anything.", next_step="goex show ID says what is known of it.")
        if not note["phase"]:
            raise Conflict(
                "Whether this was committed isn't known, so what is there may be somebody else's. Nothing was touched.",
                next_step="Look at the rows, and put them right yourself.",
            )
        if note["phase"] == "committed":
            raise Conflict("It was committed, and can't be taken back.", next_step="goex log shows when.")
        ran = ran_from_json(note["ran"])
        ready = "before" if verb == "undo" else "after"
        image = records.image(job.records, note)
        if isinstance(image, Pages):
            at = pages.stands(image, pages.snapshot(self._connection, job.limits))
            if not at:
                raise pages.changed()
            return _reverted(ran, (), verb, at == ready), {}, [], image, at == ready
        kept, changes = image
        now = shapes(self._db, list(kept))
        try:
            restore.compare(self._db, kept, now, changes, verb)
        except Mismatch as found:
            try:
                opposite = "redo" if verb == "undo" else "undo"
                restore.compare(self._db, kept, now, changes, opposite, already=True)
            except Mismatch:
                raise _differs(found.lines) from found
            return _reverted(ran, (), verb, True), kept, changes, None, True
        return _reverted(ran, restore.sample(kept, changes), verb, False), kept, changes, None, False

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        return self._translated(lambda: self._revert(job, verb))

    def _revert(self, job: Job, verb: str) -> Ran:
        db = self._db
        self._connection.writable()
        marker = Marker(self._connection)
        with self._connection.within(job.limits.seconds):
            db.pragma("foreign_keys", False)
            db.pragma("ignore_check_constraints", True)  # rows that were there may be older than a CHECK
            db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            try:
                with self._connection.transaction("IMMEDIATE"):
                    ran, kept, changes, image, ready = self._check(job, verb)
                    note = records.noted(job.records)
                    assert note is not None
                    if ready:
                        put_state(job.records, records.ended(note, verb))
                    elif image is None:
                        marker.begin()
                        moved = self._put_back(kept, changes, verb)
                        if moved:
                            said = f"Rows with another rowid than they had, which is another row's now: {moved}."
                            ran = replace(ran, notes=(*ran.notes, said))
                        self._commit(job, note, verb, marker)
                if image is not None and not ready:
                    self._put_pages_back(job, note, image, verb)
            finally:
                db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
                db.pragma("ignore_check_constraints", False)
                db.pragma("foreign_keys", True)
        return ran

    def _put_pages_back(self, job: Job, note: JsonObject, image: Pages, verb: str) -> None:
        put_state(job.records, records.committing(note, verb, None))
        try:
            pages.put_back(self._connection, image, verb, job.limits)
        except Conflict:
            self._note_again(job, note)
            raise
        self._note_end(job, note, verb)

    def _put_back(self, kept: dict[str, Shape], changes: list[Change], verb: str) -> int:
        """Set the rows; returns how many got another hidden rowid. Raises Conflict."""
        tables = survey.related(self._schema(), set(kept))
        before = survey.broken(self._db, tables)
        try:
            changes, moved = restore.put_back(self._db, kept, changes, verb)
        except apsw.ConstraintError as error:
            raise _differs(("a value that has to be unique is taken by another row now",)) from error
        new = survey.broken(self._db, tables) - before
        if new:
            lines = sorted({f"rows of {row[0]} would point to rows of {row[2]} that aren't there" for row in new})
            raise _differs(tuple(lines))
        try:
            restore.compare(self._db, kept, shapes(self._db, list(kept)), changes, "redo" if verb == "undo" else "undo")
        except Mismatch as found:
            raise _differs(found.lines) from found
        return moved

    def commit(self, job: Job) -> None:
        if job.policy != "versioning":
            return
        state = self.settle(job).state
        if state == "nothing":
            raise Conflict("It never changed anything.", next_step="goex show ID says what is known of it.")
        if state == "undone":
            raise Conflict("It was taken back.", next_step="goex redo ID first.")
        note = records.noted(job.records)
        if note is not None and note["phase"]:
            put_state(job.records, records.ended(note, "committed"))

    # ---- ending

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def _translated(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except apsw.Error as error:
            raise while_running(error) from error
        except MemoryError as error:
            raise Conflict("It needs more memory than there is.", next_step="Change fewer rows at a time.") from error
        except UnicodeDecodeError as error:
            raise InvalidInput("A name in this database isn't valid UTF-8.") from error

    def _counters(self) -> dict[str, int]:
        with suppress(apsw.SQLError):
            found = self._db.execute("SELECT name, seq FROM main.sqlite_sequence")
            return {str(name): int(str(seq)) for name, seq in found}
        return {}

    def _moved(self, before: dict[str, int]) -> tuple[str, ...]:
        now = self._counters()
        return tuple(
            f"{name}: AUTOINCREMENT went from {before.get(name, 0)} to {value}"
            for name, value in sorted(now.items())
            if value != before.get(name, 0)
        )


def _check_keys(changes: list[Change]) -> None:
    """Every changed row can be found again by what it is known by."""
    for change in changes:
        if change.after is not None and isinstance(change.identity, tuple) and None in change.identity:
            raise Conflict(f"A row of {change.table} has no key.", next_step="Give it one.")


def _prepared_or_running(error: apsw.Error) -> GoexError:
    """SQLError at prepare speaks of names; at a row it may quote what a trigger or a function says."""
    return refused_text(error) if isinstance(error, apsw.AuthError | apsw.BusyError) else while_running(error)


def _reached(
    program: Program, schema: Schema, recorder: Recorder, follow: frozenset[tuple[str, str]]
) -> tuple[Reached, ...]:
    columns = {(u.verb, u.table): u.columns for s in program.statements for u in s.uses}
    found = []
    for (name, verb, inner), rows in sorted(recorder.counts.items()):
        table = schema.tables.get(name)
        if table is not None and table.kind == "other":
            continue
        why: Literal["statement", "cascade", "trigger"] = "statement"
        if inner:
            why = "cascade" if (verb, name) in follow else "trigger"
        found.append(
            Reached(table=name, verb=verb, rows=rows, why=why, columns=columns.get((verb, name), ()))  # type: ignore[arg-type]
        )
    for statement in program.statements:
        if statement.verb in ("create", "alter", "drop"):
            found.append(Reached(table=statement.table, verb=statement.verb, rows=0))
    return tuple(found)


def _reverted(ran: Ran, sample: tuple[RowChange, ...], verb: str, ready: bool) -> Ran:
    if ready:
        return Ran(reached=(), notes=("It is so already.",))
    if verb == "undo":
        sample = tuple(RowChange(table=one.table, before=one.after, after=one.before) for one in sample)
        return Ran(reached=turned(ran.reached), sample=sample, counters=ran.counters)
    return Ran(reached=ran.reached, sample=sample, counters=ran.counters)


def _differs(lines: tuple[str, ...]) -> Conflict:
    return Conflict(
        "The database isn't as it was left: somebody changed it since.",
        next_step="Look at the difference; nothing was touched.",
        difference=lines,
    )
