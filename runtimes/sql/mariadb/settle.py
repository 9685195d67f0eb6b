"""What became of an action after a crash: by what the server lists as prepared, by the note, and by the rows.

Rules: what is listed as prepared was never committed. What isn't listed was committed only where the note says that the
server was told to; else the rows have to say it, or nobody does.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

import contextlib
import time

from policies.errors import Unavailable
from runtimes.sql.contract import Job, Settled
from runtimes.sql.mariadb import held, records, restore, schema
from runtimes.sql.mariadb.records import Note
from runtimes.sql.mariadb.wire import ServerError, Wire
from runtimes.sql.records import has_image

_GONE_SECONDS = 5.0  # until a connection that was ended is gone


def look(wire: Wire, database: str, job: Job, *, was_held: bool = False) -> Settled:
    """See `Session.settle`. `was_held`: it is known to have been prepared, so what isn't listed was ended by somebody,
    who may have committed it."""
    note = records.get(job.records)
    if note is not None:
        end_other(wire, note)
    xid = held.find(wire, job.id, database)
    if xid is not None:
        whole = note is not None and (not note.exact or has_image(job.records, "rows"))
        if whole and note is not None and job.policy == "versioning" and note.at in ("running", "committing"):
            return Settled(state="held", ran=note.ran, again=note.exact)
        # Reversal that didn't come to its commit, an undo that didn't come to its end, or one without records.
        if note is not None and note.at == "committing":
            note = note.now("running", job.records)  # else the next look would take it for committed
        held.end(wire, xid, "ROLLBACK")
        if note is not None and (note.at == "ending" or note.reverting):
            return Settled(state="undone")
        return Settled(state="nothing")
    if note is None:
        return Settled(state="nothing")
    return _by_rows(wire, job, note, was_held)


def _by_rows(wire: Wire, job: Job, note: Note, was_held: bool) -> Settled:
    """Nothing is prepared: what the rows and the note say."""
    compared, named = None, True
    if note.ended or (note.at == "committed" and not note.reverting):  # whatever others wrote since
        return Settled(state="undone" if note.reverting == "undo" and note.reached else "done", ran=note.ran)
    if note.exact and has_image(job.records, "rows"):
        image = restore.unpack(job.records, "undo")
        named = restore.named(image)
        with wire.reading():
            compared = restore.compare(wire, image, schema.read(wire))
    if note.at in ("committing", "committed"):
        evidence = compared.differences if compared else ()
        if note.reverting and (compared is None or compared.state == "other"):  # it was begun, and may have ended
            return Settled(state="unknown", ran=note.ran, evidence=evidence)
        sure = named or note.reverting != ""  # a revert that was begun stood on the other side
        if compared is not None and compared.state == "wanted" and note.reached and sure:
            return Settled(state="undone", ran=note.ran)
        return Settled(state="done", ran=note.ran, evidence=evidence)
    if note.at == "ending":
        if compared is not None and compared.state == "expected" and note.reached:
            return Settled(state="done", ran=note.ran)
        return Settled(state="undone")
    if was_held:
        if compared is not None and compared.state == "expected":
            return Settled(state="done", ran=note.ran, evidence=("Its rows are as after it.",))
        if compared is not None and compared.state == "wanted" and named:
            return Settled(state="nothing", evidence=("Its rows are as before it.",))
        return Settled(state="unknown", evidence=("It was ended at the server, and its rows don't say how.",))
    if note.reverting == "redo":  # it was about to be held again
        return Settled(state="undone")
    if compared is not None and compared.state == "expected" and note.reached:
        # Never told to commit by us, and the rows are as it would have left them.
        evidence = ("The rows are as the action would have left them, and GoEx never committed it.",)
        return Settled(state="unknown", evidence=evidence)
    return Settled(state="nothing")


def end_other(wire: Wire, note: Note) -> None:
    """End the connection that ran it or its last revert, if it still lives: it may still be about to prepare or to
    commit."""
    if note.connection == wire.id or abs(started(wire) - note.started) > 2:
        return
    until = time.monotonic() + _GONE_SECONDS
    while wire.rows(f"SELECT 1 FROM information_schema.processlist WHERE id = {note.connection:d}"):
        with contextlib.suppress(ServerError):
            wire.run(f"KILL CONNECTION {note.connection:d}")
        if time.monotonic() > until:
            raise Unavailable("The connection that ran this doesn't end.", next_step="Try again in a minute.")
        time.sleep(0.02)


def started(wire: Wire) -> int:
    """When the server started, in seconds since 1970, by its own clock: another start is another server."""
    # One statement: the server counts from the same moment for both, so that no step of a clock comes between them.
    ((since,),) = wire.rows(
        "SELECT UNIX_TIMESTAMP() - CAST(variable_value AS INT) FROM information_schema.global_status"
        " WHERE variable_name = 'UPTIME'"
    )
    return int(since)
