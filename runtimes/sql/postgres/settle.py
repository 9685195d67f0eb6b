"""What became of an action after a crash, by the transactions' numbers, their names where they are held, and the rows.

Rules: a number that the server says was committed is only believed where the server wasn't started anew since it was
given: after a crash it may be somebody else's. Then the rows say it, or nobody does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Job, Settled, State
from runtimes.sql.postgres import held, records, schema
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.outside import refuse_setting
from runtimes.sql.postgres.records import IMAGE, Step
from runtimes.sql.postgres.relations import Catalog, Relation
from runtimes.sql.postgres.restore import UNTOUCHED, Restoring
from runtimes.sql.records import has_image, read_image

_PATIENCE = 5.0  # seconds for a transaction that nobody waits for any more to end


def server(link: Link) -> str:
    """When the server was started."""
    return str(link.ask("SELECT pg_catalog.pg_postmaster_start_time()::pg_catalog.text")[0][0])


def recorded_rows(
    link: Link, job: Job, state: records.State, verb: Literal["undo", "redo"], *, held: bool = False
) -> Restoring:
    """The recorded rows, brought to the server in the transaction that has begun (`held`: and is to be prepared).
    Raises Conflict and Unsupported."""
    if not state.image:
        again = "taken back" if verb == "undo" else "done again"
        raise Unsupported(
            f"{state.why or 'Its rows were not kept.'} It can't be {again}.",
            next_step="Ask for a new action.",
        )
    catalog = schema.load(link)
    relations = _prepared_for(catalog, state.tables, state.shapes, state.keys)
    refuse_setting(link, catalog, state.tables)
    loose = frozenset(state.loose) if verb == "undo" else frozenset()
    made = Restoring(link, catalog, relations, verb == "undo", held, loose)
    made.load(read_image(job.records, IMAGE))
    return made


@dataclass(frozen=True, slots=True)
class Settling:
    """One look at one action."""

    link: Link
    job: Job

    def look(self) -> Settled:
        """See `Session.settle`. It may leave a transaction open, which only reads."""
        job = self.job
        state = records.read_state(job.records)
        steps = records.steps(job.records)
        if state is None or not steps:
            return Settled(state="nothing", evidence=("No transaction was about to be made permanent.",))
        while steps:
            *before, step = steps
            status, evidence = self._status(step)
            if status == "held":
                return Settled(state="held", evidence=evidence, ran=state.ran, again=state.image)
            if status == "committed":
                found: State = "undone" if step.did == "undo" and not step.gid else "done"
                if step.did in ("run", "hold") and all(each.did in ("run", "hold") for each in before):
                    return self._confirmed(job, state, step, evidence)
                if (step.did == "redo" and step.gid) or (not step.gid and server(self.link) != step.server):
                    sure = self._confirmed(job, state, step, evidence)
                    return sure if sure.state != "nothing" else Settled(state="undone", evidence=evidence)
                return Settled(state=found, evidence=evidence, ran=state.ran if found == "done" else None)
            if status == "unknown":
                return self._by_rows(job, state, evidence)
            if step.did == "undo" and step.gid:
                return Settled(state="undone", evidence=evidence)
            steps = tuple(before)
        return Settled(state="nothing", evidence=evidence)

    def _status(self, step: Step) -> tuple[str, tuple[str, ...]]:
        """ "held", "committed", "aborted" or "unknown", of one recorded transaction."""
        number = f"transaction {step.xid}"
        if step.gid and held.held(self.link, step.gid) is not None:
            return "held", (f"{number} is held as {step.gid}",)
        until = time.monotonic() + _PATIENCE
        ended = False
        while True:
            try:
                found = self.link.ask("SELECT pg_catalog.pg_xact_status(%s::pg_catalog.xid8)", str(step.xid))[0][0]
            except (InvalidInput, Conflict):  # a number that this server hasn't given yet: what had it was lost
                return "aborted", (f"{number} never became permanent",)
            if found in ("committed", "aborted"):
                return str(found), (f"{number} was {found}",)
            if found is None:
                return "unknown", (f"the server doesn't remember {number} any more",)
            if step.gid and held.held(self.link, step.gid) is not None:
                return "held", (f"{number} is held as {step.gid}",)
            if time.monotonic() > until:
                if ended:
                    return "unknown", (f"{number} is still running",)
                # Nobody waits for its answer any more; what it did can't be recorded.
                self.link.ask(
                    "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity "
                    "WHERE backend_xid = %s::pg_catalog.text::pg_catalog.xid AND usename = current_user",
                    str(step.xid % 2**32),
                )
                ended, until = True, time.monotonic() + _PATIENCE
            time.sleep(0.05)

    def _confirmed(self, job: Job, state: records.State, step: Step, evidence: tuple[str, ...]) -> Settled:
        """The server says that the first transaction was committed. After a crash of the server that number may have
        been given to somebody else's: then the rows have to say it."""
        done = Settled(state="done", evidence=evidence, ran=state.ran)
        by_number = step.did != "hold" or not state.image  # of what was held the rows say more, where there are any
        if by_number and server(self.link) == step.server:
            return done
        return self._by_rows(job, state, evidence, step)

    def _by_rows(self, job: Job, state: records.State, evidence: tuple[str, ...], step: Step | None = None) -> Settled:
        """What the rows themselves say."""
        if state.made:
            made = schema.load(self.link).relations.get(state.made)
            if made is None:
                return Settled(state="nothing", evidence=(*evidence, f"{state.made} isn't there"))
            same = made.definition == state.definition
            said = (*evidence, f"{state.made} is there" + ("" if same else ", and not as it was made"))
            return Settled(state="done" if same else "unknown", evidence=said, ran=state.ran if same else None)
        if not (state.image and has_image(job.records, IMAGE)):
            return Settled(state="unknown", evidence=(*evidence, "its rows weren't recorded"))
        for verb, found in (("undo", "done"), ("redo", "nothing")):
            self.link.rollback()
            self.link.begin()
            try:
                rows = recorded_rows(self.link, self.job, state, verb)  # type: ignore[arg-type]
                if step is not None and step.did != "undo" and verb == "undo" and rows.written_by(step.xid):
                    said = (*evidence, "rows carry its number")
                    return Settled(state="done", evidence=said, ran=state.ran)
                rows.compare()
            except (Conflict, Unsupported):
                continue
            if not rows.done:
                said = (*evidence, f"its rows are as {'after' if found == 'done' else 'before'} it")
                return Settled(
                    state="done" if found == "done" else "nothing",
                    evidence=said,
                    ran=state.ran if found == "done" else None,
                )
        return Settled(state="unknown", evidence=(*evidence, "its rows are neither as before it nor as after it"))


def _prepared_for(
    catalog: Catalog, tables: tuple[str, ...], shapes: tuple[str, ...], keys: tuple[tuple[str, ...], ...]
) -> list[Relation]:
    """The tables that images number, where rows can still be set. Raises Conflict where a definition changed since."""
    found, lines = [], []
    for name, shape, key in zip(tables, shapes, keys, strict=True):
        relation = catalog.relations.get(name)
        if relation is None:
            lines.append(f"{name}: isn't there")
        elif relation.kind not in "rp":
            lines.append(f"{name}: isn't a table any more")
        elif relation.shape != shape:
            lines.append(f"{name}: its columns changed")
        elif relation.key != key:
            lines.append(f"{name}: its primary key changed")
        elif relation.partition:
            lines.append(f"{name}: is a partition of {catalog.root(relation).name} now")
        else:
            found.append(relation)
    if lines:
        step = "Define them as they were, then try again."
        raise Conflict(f"Tables were changed since. {UNTOUCHED}", next_step=step, difference=tuple(lines))
    for relation in found:
        firing = catalog.firing(relation)
        if relation.rules or relation.row_security or relation.recast or any(not one.owned for one, _ in firing):
            raise Unsupported(
                f"{relation.name} has rules, triggers, policies or casts now that don't let its rows be set back.",
                next_step="Take them off it, then try again.",
            )
        if firing and catalog.events:
            raise Unsupported("Event triggers watch this database now: triggers can't be kept off.")
    return found
