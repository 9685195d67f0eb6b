"""What became of an action: as it was noted; after a crash the mark of its transaction tells whether it was committed.

Rows alone don't tell it: somebody else may have made the same change since, or have put it back. Only where a revert
was cut off and its mark tells nothing they do: they are what was asked for then, whoever made them so.
"""

from __future__ import annotations

from contextlib import suppress

from policies.errors import GoexError
from policies.jsonvalue import JsonObject
from runtimes.sql.contract import Job, Settled
from runtimes.sql.records import has_image, put_state, ran_from_json
from runtimes.sql.sqlite import commit_mark, pages, records, restore
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.pages import Pages
from runtimes.sql.sqlite.restore import Mismatch
from runtimes.sql.sqlite.schema import shapes


def look(connection: Connection, job: Job) -> Settled:
    """See `Session.settle`."""
    with connection.within(job.limits.seconds), connection.transaction("DEFERRED"):
        note = resolved(connection, job)
        if note is None or not (note["phase"] or records.commit_under_way(note)):
            return Settled(state="nothing")
        ran = ran_from_json(note["ran"])
        if records.commit_under_way(note):
            return Settled(state="unknown", evidence=_evidence(connection, job, note), ran=ran)
    if note["phase"] == "undo":
        return Settled(state="undone")
    return Settled(state="held" if job.policy == "versioning" and note["phase"] != "committed" else "done", ran=ran)


def resolved(connection: Connection, job: Job) -> JsonObject | None:
    """Return the note, without what was begun where it is known how that ended: this is noted, too. None where nothing
    was recorded. Called in a transaction."""
    note = records.noted(job.records)
    if note is None or not has_image(job.records, records.IMAGE):
        return None
    begun = records.commit_under_way(note)
    if begun is None:
        return note
    phase, mark = begun
    known = None if mark is None else commit_mark.committed(connection, mark)
    if known is None and note["phase"]:
        at, _ = _stands(connection, job, note)
        known = (at == ("before" if phase == "undo" else "after")) if at else None
    if known is None:
        return note
    note = records.ended(note, phase if known else str(note["phase"]))
    with suppress(GoexError):  # it is found out again
        put_state(job.records, note)
    return note


def _evidence(connection: Connection, job: Job, note: JsonObject) -> tuple[str, ...]:
    at, seen = _stands(connection, job, note)
    if note["phase"]:
        return seen
    there = {"after": "What is there is as it would be afterwards.", "before": "What is there is as it was before."}
    return (
        "It was stopped while it was committed, and others wrote to the file since: nothing tells whether it was done.",
        *((there[at],) if at else seen),
    )


def _stands(connection: Connection, job: Job, note: JsonObject) -> tuple[str, tuple[str, ...]]:
    """ "after", "before" or "" of the file, and what was seen."""
    image = records.image(job.records, note)
    if isinstance(image, Pages):
        at = pages.stands(image, pages.snapshot(connection, job.limits))
        return at, () if at else ("the file holds neither what was there before nor what was left",)
    kept, changes = image
    evidence: tuple[str, ...] = ()
    for at, verb in (("after", "undo"), ("before", "redo")):
        try:
            now = shapes(connection.db, list(kept))
            restore.compare(connection.db, kept, now, changes, verb, already=True)
        except Mismatch as found:
            evidence = evidence or found.lines
        else:
            return at, ()
    return "", evidence
