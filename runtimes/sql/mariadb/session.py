"""One action on one connection: surveyed, run, settled, taken back.

Both policies run in an XA transaction. It is prepared once the image is in the records; then it is committed
(reversal) or held (versioning). So after a crash the server says whether it was committed: it is listed as prepared,
or the note "committing" was written before it was told to commit.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from runtimes.sql.contract import (
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
from runtimes.sql.image_records import has_image, write_image
from runtimes.sql.mariadb import errors, held, privileges, records, restore, schema
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.survey import Looked, refuse, survey
from runtimes.sql.mariadb.wire import ServerError, Wire
from runtimes.sql.mariadb.work import Work
from vault.secret import Secret

_GONE_SECONDS = 5.0  # until a connection that was ended is gone


class MariaDbSession:
    """See `runtimes.sql.contract.Session`."""

    def __init__(self, place: Place, password: Secret, limits: Limits) -> None:
        self._wire = Wire(place, password, limits)
        self._place = place
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
            return schema.read(self._wire)

    def survey(self, program: Program, policy: Policy, limits: Limits) -> Survey:
        with self._plainly(), self._reading():
            return survey(self._wire, self._rights, schema.read(self._wire), program, policy, limits)

    # ---- running

    def trial(self, job: Job) -> Ran:
        with self._plainly(), self._wire.deadline():
            self._wire.run("START TRANSACTION")
            try:
                now, looked = self._planned(job)
                work = Work(self._wire, now, looked, job)
                work.run()
                notes_ = tuple(f"{name} has moved on all the same." for name in work.counters)
                return work.ran(notes_)
            except ServerError as error:
                raise self._who(error, job) from None
            finally:
                self._rollback()

    def run(self, job: Job) -> Ran:
        with self._plainly():
            if job.program.reads_only:
                return self._read(job)
            return self._write(job)

    def _read(self, job: Job) -> Ran:
        with self._wire.deadline():
            self._wire.run("START TRANSACTION READ ONLY")
            try:
                now, looked = self._planned(job)
                work = Work(self._wire, now, looked, job)
                work.run()
                return work.ran()
            finally:
                self._rollback()

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
                if work.capture is not None:
                    write_image(
                        job.records,
                        "rows",
                        restore.pack(work.capture.kept.values(), work.loose),
                        most=job.limits.image_bytes,
                    )
                note = Note(
                    at="running",
                    connection=wire.id,
                    started=_started(wire),
                    exact=work.capture is not None,
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
        except (ServerError, GoexError):
            self._wire.drop()
            raise errors.doubtful() from None

    def _planned(self, job: Job) -> tuple[Schema, Looked]:
        """The schema, which can't change any more in this transaction, and what is to be done. Raises Conflict when it
        isn't the one that was planned with."""
        for name in dict.fromkeys(use.table for one in job.program.statements for use in one.uses):
            if not any(
                use.verb == "create" and use.table == name for one in job.program.statements for use in one.uses
            ):
                try:
                    self._wire.run(f"SELECT 1 FROM {errors.quoted(name)} LIMIT 0")
                except ServerError as error:
                    if error.number == 1146:
                        raise _altered() from None
                    raise
        now = schema.read(self._wire)
        if now.hash != job.schema_hash:
            raise _altered()
        return now, refuse(self._wire, self._rights, now, job.program, job.policy)

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

    def _rollback(self) -> None:
        self._wire.calm()
        with contextlib.suppress(GoexError):
            self._wire.run("ROLLBACK")
            return
        self._wire.drop()

    def _who(self, error: ServerError, job: Job) -> GoexError:
        """The error in words; of a lock, who may hold it."""
        if error.number != errors.LOCKED:
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
        return errors.locked(tuple(name for name in found if name != job.id))

    # ---- after a crash

    def settle(self, job: Job) -> Settled:
        with self._plainly():
            return self._settle(job)

    def _settle(self, job: Job) -> Settled:
        note = records.get(job.records)
        if note is not None:
            self._end_other(note)
        xid = held.find(self._wire, job.id, self._place.database)
        if xid is not None:
            whole = note is not None and (not note.exact or has_image(job.records, "rows"))
            if whole and note is not None and job.policy == "versioning" and note.at in ("running", "committing"):
                return Settled(state="held", ran=note.ran, again=note.exact)
            # Reversal that didn't come to its commit, an undo that didn't come to its end, or one without records.
            if note is not None and note.at == "committing":
                note = note.now("running", job.records)  # else the next look would take it for committed
            held.end(self._wire, xid, "ROLLBACK")
            if note is not None and (note.at == "ending" or note.reverting):
                return Settled(state="undone")
            return Settled(state="nothing")
        if note is None:
            return Settled(state="nothing")
        return self._by_rows(job, note)

    def _by_rows(self, job: Job, note: Note) -> Settled:
        """Nothing is prepared: what the rows and the note say."""
        compared, named = None, True
        if note.exact and has_image(job.records, "rows"):
            image = restore.unpack(job.records, "undo")
            named = restore.named(image)
            with self._reading():
                compared = restore.compare(self._wire, image, schema.read(self._wire))
        if note.at in ("committing", "committed"):
            sure = named or note.reverting != ""  # a revert that was begun stood on the other side
            if compared is not None and compared.state == "wanted" and note.reached and sure:
                return Settled(state="undone", ran=note.ran)
            return Settled(state="done", ran=note.ran, evidence=compared.differences if compared else ())
        if note.at == "ending":
            if compared is not None and compared.state == "expected" and note.reached:
                return Settled(state="done", ran=note.ran)
            return Settled(state="undone")
        if note.reverting == "redo":  # it was about to be held again
            return Settled(state="undone")
        if compared is not None and compared.state == "expected" and note.reached:
            # Never told to commit by us, and the rows are as it would have left them.
            evidence = ("The rows are as the action would have left them, and GoEx never committed it.",)
            return Settled(state="unknown", evidence=evidence)
        return Settled(state="nothing")

    def _end_other(self, note: Note) -> None:
        """End the connection that ran it, if it still lives: it may still be about to prepare or to commit."""
        if note.connection == self._wire.id or abs(_started(self._wire) - note.started) > 2:
            return
        until = time.monotonic() + _GONE_SECONDS
        while self._wire.rows(f"SELECT 1 FROM information_schema.processlist WHERE id = {note.connection:d}"):
            with contextlib.suppress(ServerError):
                self._wire.run(f"KILL CONNECTION {note.connection:d}")
            if time.monotonic() > until:
                raise Unavailable("The connection that ran this doesn't end.", next_step="Try again in a minute.")
            time.sleep(0.02)

    # ---- taking back

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        with self._plainly():
            note = self._noted(job)
            if self._held(job) is not None:
                if verb == "redo":
                    return Ran(reached=(), notes=("It is held: its after-state is there for you to commit.",))
                return Ran(reached=turned(note.reached), notes=("It is held, and would be rolled back.",))
            image = self._image(job, note, verb)
            with self._reading():
                found = restore.compare(self._wire, image, schema.read(self._wire))
            if _elsewise(found, image, note, verb):
                raise _changed(found.differences)
            if found.state == "wanted" and image:
                return Ran(reached=(), notes=(_already(verb),))
            return Ran(reached=restore.reached(image), sample=restore.sample(image))

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        with self._plainly():
            note = self._noted(job)
            xid = self._held(job)
            if xid is not None:
                if verb == "redo":
                    return Ran(reached=(), notes=("It is held: its after-state is there for you to commit.",))
                self._end_other(note)
                note.now("ending", job.records)
                self._decide(xid, "ROLLBACK")
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
                    self._abandon(xid) if held_again else self._rollback()
                    return Ran(reached=(), notes=(_already(verb),))
                if held_again:
                    note = replace(note, connection=wire.id, started=_started(wire), reverting=verb)
                    note.now("running", job.records)
                    wire.run(f"XA END {xid.sql}")
                else:
                    note.begin(verb, job.records)
        except BaseException as error:
            self._abandon(xid) if held_again else self._rollback()
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
            except GoexError:
                wire.drop()
                raise errors.doubtful() from None
        return Ran(reached=restore.reached(image), sample=restore.sample(image))

    def _set(self, image: restore.Image, note: Note, verb: Literal["undo", "redo"]) -> bool:
        """Compare, and set the rows in the transaction that has begun; False: it is so already. Raises Conflict."""
        wire = self._wire
        for rows in image:
            try:
                wire.run(f"SELECT 1 FROM {errors.quoted(rows.form.table)} LIMIT 0")
            except ServerError as error:
                if error.number != 1146:
                    raise
        now = schema.read(wire)
        found = restore.compare(wire, image, now, " FOR UPDATE")
        if _elsewise(found, image, note, verb):
            raise _changed(found.differences)
        if found.state == "wanted" and image:
            return False
        restore.restore(wire, image, now)
        return True

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
                raise _not_held()
            if note.at == "ending":
                raise Conflict("It is being rolled back.", next_step="goex undo again finishes that.")
            self._end_other(note)
            note = note.now("committing", job.records)
            if not self._decide(xid, "COMMIT"):
                raise _not_held()

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
    def _reading(self) -> Iterator[None]:
        self._wire.run("START TRANSACTION")  # READ ONLY would refuse EXPLAIN of a write
        try:
            yield
        finally:
            self._rollback()

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


def _started(wire: Wire) -> int:
    """When the server started, in seconds since 1970, give or take one: another start is another server."""
    ((_, uptime),) = wire.rows("SHOW GLOBAL STATUS LIKE 'Uptime'")
    return int(time.time()) - int(uptime)


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
