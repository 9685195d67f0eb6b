"""What became of an action after a crash: what wasn't committed was rolled back, and the rows or pages say the rest."""

from __future__ import annotations

from policies.jsonvalue import JsonObject
from runtimes.sql.contract import Job, Settled, State
from runtimes.sql.records import has_image, ran_from_json
from runtimes.sql.sqlite import pages, records, restore
from runtimes.sql.sqlite.connection import Connection
from runtimes.sql.sqlite.pages import Pages
from runtimes.sql.sqlite.restore import Mismatch
from runtimes.sql.sqlite.schema import shapes


def look(connection: Connection, job: Job) -> Settled:
    """See `Session.settle`."""
    note = records.noted(job.records)
    if note is None or not has_image(job.records, records.IMAGE):
        return Settled(state="nothing")
    phase, ran = str(note["phase"]), ran_from_json(note["ran"])
    with connection.within(job.limits.seconds), connection.transaction("DEFERRED"):
        at, evidence = _stands(connection, job, note)
    reverted = phase in ("undo", "redo")
    if at == "after":
        held = job.policy == "versioning" and phase != "committed"
        return Settled(state="held" if held else "done", ran=ran)
    if at == "before":
        state: State = "undone" if reverted else "nothing"
        return Settled(state=state)
    return Settled(state="unknown", evidence=evidence, ran=ran)


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
            restore.compare(connection.db, kept, shapes(connection.db, list(kept)), changes, verb)
        except Mismatch as found:
            evidence = evidence or found.lines
        else:
            return at, ()
    return "", evidence
