"""One action on one connection: surveyed, run, settled, taken back.

Both policies run in an XA transaction. It is prepared once the image is in the records; then it is committed
(reversal) or held (versioning). So after a crash the server says whether it was committed: it is listed as prepared,
or the note "committing" was written before it was told to commit.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from runtimes.sql.checking.catalog_tables import CATALOG
from runtimes.sql.contract import (
    Dialect,
    Job,
    Limits,
    Place,
    Policy,
    Program,
    Ran,
    Schema,
    Settled,
    Survey,
    turned,
)
from runtimes.sql.mariadb import definitions, errors, held, privileges, read_functions, records, restore, schema, settle
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.steps import explains_write
from runtimes.sql.mariadb.survey import Looked, refuse, survey
from runtimes.sql.mariadb.wire import ServerError, Wire
from runtimes.sql.mariadb.work import Work
from runtimes.sql.records import write_image
from vault.secret import Secret


class MariaDbSession:
    """See `runtimes.sql.contract.Session`."""

    def __init__(self, place: Place, password: Secret, limits: Limits) -> None:
        self._wire = Wire(place, password, limits)
        self._place = place
        self._seen: Schema | None = None  # what `schema` read last
        try:
            self._rights = privileges.read(self._wire, place)
        except ServerError as error:
            self._wire.close()
            raise error.said from None
        except BaseException:
            self._wire.close()
            raise

    # ---- looking

    def schema(self) -> Schema:
        with self._plainly():
            self._seen = schema.read(self._wire)
            return self._seen

    def survey(self, program: Program, policy: Policy, limits: Limits) -> Survey:
        with self._plainly(), self._wire.reading():
            seen = self._seen if self._seen is not None else schema.read(self._wire)
            return survey(self._wire, self._rights, seen, program, policy, limits)

    # ---- running

    def trial(self, job: Job) -> Ran:
        if definitions.is_one(job):
            raise Unsupported(
                "MariaDB commits this at once, so it can't be tried in a transaction that is rolled back.",
                next_step="Its undo was tried on an empty copy when it was planned.",
            )
        with self._plainly(), self._wire.deadline():
            self._begin(job.program)
            try:
                now, looked = self._planned(job)
                work = Work(self._wire, now, looked, job)
                work.run()
                notes_ = tuple(f"{name} has moved on all the same." for name in work.counters)
                return work.ran(notes_)
            except ServerError as error:
                raise self._who(error, job) from None
            finally:
                self._wire.rollback()

    def run(self, job: Job) -> Ran:
        with self._plainly():
            if job.program.reads_only:
                return self._read(job)
            return self._define(job) if definitions.is_one(job) else self._write(job)

    def _read(self, job: Job) -> Ran:
        with self._wire.deadline():
            self._begin(job.program)
            try:
                now, looked = self._planned(job)
                work = Work(self._wire, now, looked, job)
                work.run()
                return work.ran()
            finally:
                self._wire.rollback()

    def _begin(self, program: Program) -> None:
        """Begin a transaction that is rolled back: one that can't write, where nothing is to be written."""
        writing = not program.reads_only or any(explains_write(one) for one in program.statements)
        self._wire.run("START TRANSACTION" if writing else "START TRANSACTION READ ONLY")

    def _define(self, job: Job) -> Ran:
        """A statement that the server commits at once."""
        try:
            with self._wire.deadline():
                _, looked = self._planned(job)
                assert looked.definition is not None
                return definitions.run(self._wire, job, looked.definition)
        except ServerError as error:
            raise self._who(error, job) from None

    def _write(self, job: Job) -> Ran:
        wire = self._wire
        tables = [use.table for one in job.program.statements for use in one.uses if use.verb != "select"]
        tables += [str(name) for name in job.strategy.get("tables", ())]
        xid = held.name(job.id, self._place.database, tables)
        wire.run(f"XA START {xid.sql}")
        try:
            with wire.deadline():
                now, looked = self._planned(job)
                work = Work(wire, now, looked, job)
                work.run()
                ran = work.ran()
                if work.exact and work.capture is not None:
                    write_image(
                        job.records,
                        "rows",
                        restore.pack(work.capture.kept.values(), work.loose),
                        most=job.limits.image_bytes,
                    )
                note = Note(
                    at="running",
                    connection=wire.id,
                    started=settle.started(wire),
                    exact=work.exact,
                    reached=ran.reached,
                    counters=ran.counters,
                )
                note.put(job.records)
                wire.run(f"XA END {xid.sql}")
        except BaseException as error:
            self._abandon(xid)
            if isinstance(error, ServerError):
                raise self._who(error, job) from None
            raise
        self._prepare(xid)
        if job.policy == "versioning" and (ran.reached or not note.exact):
            wire.drop()  # what is prepared outlives its connection, and is free for others then
            return ran
        self._finish(xid, note, job)
        return ran

    def _prepare(self, xid: held.Xid) -> None:
        try:
            self._wire.run(f"XA PREPARE {xid.sql}")
        except ServerError as error:
            if isinstance(error.said, Unavailable):
                self._wire.drop()
                raise errors.doubtful() from None
            self._abandon(xid)
            raise
        except BaseException:
            self._wire.drop()
            raise

    def _finish(self, xid: held.Xid, note: Note, job: Job) -> None:
        """Commit what is prepared on this connection."""
        note = note.now("committing", job.records)
        try:
            self._wire.calm()
            self._wire.run(f"XA COMMIT {xid.sql}")
            note.now("committed", job.records)
        except (ServerError, GoexError, OSError):
            self._wire.drop()
            raise errors.doubtful() from None

    def _planned(self, job: Job) -> tuple[Schema, Looked]:
        """The schema, which can't change any more in this transaction, and what is to be done. Raises Conflict when it
        isn't the one that was planned with."""
        uses = [use for one in job.program.statements for use in one.uses]
        made = {use.table for use in uses if use.verb == "create"}
        try:
            self._lock(name for use in uses if (name := use.table) not in CATALOG[Dialect.MARIADB] and name not in made)
        except ServerError as error:
            if error.number == 1146:
                raise _altered() from None
            raise
        now = self._unaltered(job)
        looked = refuse(self._wire, self._rights, now, job.program, job.policy)
        if within := [name for name in looked.reads if now.tables[name].kind == "view"]:
            self._lock(within)  # views that triggers read may be others by now
            now = self._unaltered(job)
            looked = refuse(self._wire, self._rights, now, job.program, job.policy)
        return now, looked

    def _lock(self, names: Iterable[str]) -> None:
        """Keep what these are from being defined otherwise in this transaction, by statements that compute nothing of
        them: a SELECT of a view may call its functions though it is to give no row."""
        for name in dict.fromkeys(names):
            self._wire.run(f"SET @goex_there = FALSE AND EXISTS (SELECT 1 FROM {errors.quoted(name)})")

    def _unaltered(self, job: Job) -> Schema:
        now = schema.read(self._wire)
        if now.hash != job.schema_hash and job.program.reads_only:
            # Where only reading is allowed the server says nothing of a view whose functions write.
            with contextlib.closing(self._wire.peer()) as other:
                now = schema.read(other)
        if now.hash != job.schema_hash:
            raise _altered()
        return now

    def _abandon(self, xid: held.Xid) -> None:
        """Roll back what wasn't prepared."""
        wire = self._wire
        if wire.interrupted:
            wire.calm()
        for verb in ("END", "ROLLBACK"):
            try:
                wire.run(f"XA {verb} {xid.sql}")
            except ServerError as error:
                if isinstance(error.said, Unavailable):
                    break
            except GoexError:
                break
        else:
            return
        wire.drop()

    def _who(self, error: ServerError, job: Job) -> GoexError:
        """The error in words; of a lock, who may hold it. What a trigger may have said may be a lock all the same."""
        if error.number not in (errors.LOCKED, errors.TRIGGERED):
            return error.said
        tables = {use.table for one in job.program.statements for use in one.uses}
        tables |= {str(name) for name in job.strategy.get("tables", ())}
        # A wait that ended while rows were being read took the connection with it: another one asks.
        try:
            with (
                contextlib.closing(self._wire.peer())
                if self._wire.broken
                else contextlib.nullcontext(self._wire) as asking
            ):
                near = _linked(schema.read(asking), tables)
                found = held.holders(asking, self._place.database, near)
        except GoexError:
            found = ()
        who = tuple(name for name in found if name != job.id)
        return errors.locked(who) if error.number == errors.LOCKED else errors.refused(who)

    # ---- after a crash

    def settle(self, job: Job) -> Settled:
        with self._plainly():
            note = records.get(job.records)
            if note is not None and note.definition:
                settle.end_other(self._wire, note)
                return definitions.look(self._wire, note, job.records)
            return settle.look(self._wire, self._place.database, job)

    # ---- taking back

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        with self._plainly():
            note = self._noted(job)
            if note.definition:
                return definitions.compare(self._wire, note, verb)
            if self._held(job) is not None:
                if verb == "redo":
                    return Ran(reached=(), notes=("It is held: its after-state is there for you to commit.",))
                return Ran(reached=turned(note.reached), notes=("It is held, and would be rolled back.",))
            image = self._image(job, note, verb)
            with self._wire.reading():
                found = restore.compare(self._wire, image, schema.read(self._wire))
            if _elsewise(found, image, note, verb):
                raise _changed(found.differences)
            if found.state == "wanted" and image:
                return Ran(reached=(), notes=(_already(verb),))
            return Ran(reached=restore.reached(image), sample=restore.sample(image))

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        with self._plainly():
            note = self._noted(job)
            settle.end_other(self._wire, note)
            if note.definition:
                try:
                    with self._wire.deadline():
                        self._refuse_read(schema.read(self._wire), (str(note.definition["table"]),))
                        return definitions.revert(self._wire, job, note, verb)
                except ServerError as error:
                    raise self._who(error, job) from None
            xid = self._held(job)
            if xid is not None:
                if verb == "redo":
                    return Ran(reached=(), notes=("It is held: its after-state is there for you to commit.",))
                if not self._end_held(job, xid, note):
                    raise _not_held()
                return Ran(reached=turned(note.reached), notes=("It was held, and was rolled back.",))
            if verb == "undo" and note.at == "ending" and note.reverting != "redo":  # rolled back, whatever came since
                return Ran(reached=(), notes=(_already(verb),))
            return self._restore(job, note, verb)

    def _restore(self, job: Job, note: Note, verb: Literal["undo", "redo"]) -> Ran:
        """Set the recorded rows, and commit that; a redo of what was held is held again."""
        image, wire = self._image(job, note, verb), self._wire
        committed = note.at in ("committing", "committed")
        held_again = verb == "redo" and job.policy == "versioning" and not committed and bool(image)
        xid = held.name(job.id, self._place.database, [rows.form.table for rows in image])
        wire.run(f"XA START {xid.sql}" if held_again else "START TRANSACTION")
        try:
            with wire.deadline():
                if not self._set(image, note, verb):
                    self._abandon(xid) if held_again else self._wire.rollback()
                    if committed:  # by somebody else: from here on it is undone, or done again, all the same
                        replace(note, reverting=verb, ended=True).put(job.records)
                    return Ran(reached=(), notes=(_already(verb),))
                if held_again:
                    running = replace(note, at="running")
                    running.begin(verb, job.records, connection=wire.id, started=settle.started(wire))
                    wire.run(f"XA END {xid.sql}")
                else:
                    note = note.begin(verb, job.records, connection=wire.id, started=settle.started(wire))
        except BaseException as error:
            self._abandon(xid) if held_again else self._wire.rollback()
            if isinstance(error, ServerError):
                raise self._who(error, job) from None
            raise
        if held_again:
            self._prepare(xid)
            wire.drop()
        else:
            try:
                wire.calm()
                wire.run("COMMIT")
                replace(note, ended=True).put(job.records)
            except (GoexError, OSError):
                wire.drop()
                raise errors.doubtful() from None
        return Ran(reached=restore.reached(image), sample=restore.sample(image))

    def _set(self, image: restore.Image, note: Note, verb: Literal["undo", "redo"]) -> bool:
        """Compare, and set the rows in the transaction that has begun; False: it is so already. Raises Conflict."""
        wire = self._wire
        for rows in image:
            try:
                self._lock((rows.form.table,))
            except ServerError as error:
                if error.number != 1146:
                    raise
        now = schema.read(wire)
        self._refuse_read(now, [rows.form.table for rows in image])
        found = restore.compare(wire, image, now, " FOR UPDATE")
        if _elsewise(found, image, note, verb):
            raise _changed(found.differences)
        if found.state == "wanted" and image:
            return False
        restore.restore(wire, image, now)
        return True

    def _refuse_read(self, now: Schema, tables: Iterable[str]) -> None:
        """Raises Unsupported where triggers of these tables read what may do more than be read by now."""
        there = [name for name in tables if name in now.tables]
        if read := read_functions.by_triggers(self._wire, self._rights, now, there):
            self._lock(read_functions.views(now, read))
            read_functions.refuse(self._wire, self._rights, schema.read(self._wire), read, writing=True)

    def commit(self, job: Job) -> None:
        with self._plainly():
            if job.policy != "versioning":
                return
            note = records.get(job.records)
            if note is None:
                raise _not_held()
            xid = held.find(self._wire, job.id, self._place.database)
            if xid is None:
                if note.at in ("committing", "committed"):
                    return
                if settle.look(self._wire, self._place.database, job, was_held=True).state in ("done", "unknown"):
                    return
                raise _not_held()
            if note.at == "ending":
                raise Conflict("It is being rolled back.", next_step="goex undo again finishes that.")
            settle.end_other(self._wire, note)
            note.now("committing", job.records)
            if not self._decide(xid, "COMMIT"):
                note.put(job.records)  # or the next look would take it for committed
                raise _not_held()
            with contextlib.suppress(GoexError, OSError):  # what isn't listed any more was committed
                note.now("committed", job.records)

    def roll_back(self, job: Job) -> Settled:
        with self._plainly():
            note = records.get(job.records)
            if note is not None:
                settle.end_other(self._wire, note)
            xid = self._held(job)
            if xid is not None and self._end_held(job, xid, note):
                return Settled(state="undone")
            return settle.look(self._wire, self._place.database, job, was_held=True)

    def _end_held(self, job: Job, xid: held.Xid, note: Note | None) -> bool:
        """Roll back what is held. False: somebody else ended it just before, and what was noted of it stays."""
        if note is not None:
            note.now("ending", job.records)
        done = self._decide(xid, "ROLLBACK")
        if not done and note is not None:
            note.put(job.records)
        return done

    def _decide(self, xid: held.Xid, verb: str) -> bool:
        try:
            return held.end(self._wire, xid, verb)
        except ServerError as error:
            if isinstance(error.said, Unavailable):
                self._wire.drop()
                raise errors.doubtful() from None
            raise

    # ---- inside

    def _held(self, job: Job) -> held.Xid | None:
        return held.find(self._wire, job.id, self._place.database) if job.policy == "versioning" else None

    def _noted(self, job: Job) -> Note:
        note = records.get(job.records)
        if note is None:
            raise Conflict("Nothing is recorded of this action.", next_step="goex show ID")
        return note

    def _image(self, job: Job, note: Note, verb: Literal["undo", "redo"]) -> restore.Image:
        if not note.exact:
            if note.at == "ending":
                raise Unsupported(
                    "This was held and rolled back; its rows couldn't be recorded, so redo has nothing to bring back.",
                    next_step="Run the action again.",
                )
            raise Unsupported(
                "This was held without a record of its rows, and was committed: it can't be taken back any more."
            )
        return restore.unpack(job.records, verb)

    @contextlib.contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except ServerError as error:
            if isinstance(error.said, Unavailable):
                self._wire.drop()
            raise error.said from None

    def interrupt(self) -> None:
        self._wire.interrupt()

    def close(self) -> None:
        self._wire.close()


def _linked(now: Schema, tables: set[str]) -> set[str]:
    """Those tables, and the ones whose rows a statement on them looks at for a foreign key."""
    links = {(table.name, link.parent) for table in now.tables.values() for link in table.foreign_keys}
    return tables | {to for at, to in links if at in tables} | {at for at, to in links if to in tables}


def _elsewise(found: restore.Compared, image: restore.Image, note: Note, verb: str) -> bool:
    """Whether the rows aren't as recorded. Rows without a key that aren't there any more may have been changed by
    somebody else, so that counts as done only where it was begun."""
    if found.state == "wanted" and not restore.named(image):
        return note.reverting != verb
    return found.state == "other"


def _already(verb: str) -> str:
    return "It is so already: nothing was changed." if verb == "undo" else "It is there already: nothing was changed."


def _changed(differences: tuple[str, ...]) -> Conflict:
    return Conflict(
        "The rows aren't as they were left. Nothing was changed.",
        next_step="Look at what differs, and mend it by hand.",
        difference=differences,
    )


def _altered() -> Conflict:
    return Conflict("The tables aren't defined any more as they were planned with.", next_step="Ask for it again.")


def _not_held() -> Conflict:
    return Conflict(
        "Its transaction isn't held any more: somebody ended it.", next_step="Look at the rows; goex show ID."
    )
