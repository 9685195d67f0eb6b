"""A program in one transaction: all of it happens, or nothing.

In the transaction, in this order: the marker (so that the commit can be known of later: it is there exactly when the
transaction was committed), each operation with its documents read before and after, the images into the records, the
commit. A commit whose answer was lost is asked for again, which can't commit twice; what still isn't known is
`Doubtful`. Probing (`settle`) takes the marker's place itself: when that works, the transaction can't be committed any
more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, Unavailable
from policies.jsonvalue import JsonValue
from runtimes.mongo import records
from runtimes.mongo.backend import Backend, CommitUnknown, Duplicate, Transient, Unit
from runtimes.mongo.extjson import decode, encode, has_dollar
from runtimes.mongo.job import (
    Budget,
    Job,
    Ran,
    changed_meanwhile,
    chunks,
    counts_of,
    ids_filter,
    now,
    pinned,
    upserting,
)
from runtimes.mongo.operations import Insert, Read, Write
from runtimes.mongo.reads import read, returned
from runtimes.mongo.records import DOCUMENTS, Change, Touched, id_of, is_kept, keep, kept
from runtimes.mongo.restore import apart, move_at_once, refuse_difference
from runtimes.sql.contract import Doubtful

MARKS = "goex_marks"
_TRIES = 6
Marked = Literal["done", "undone", "void"]


@dataclass(slots=True)
class Atomic:
    """Runs jobs on a server that has transactions."""

    backend: Backend
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)

    # ---- doing

    def run(self, job: Job) -> Ran:
        """Raises Conflict and others, having touched nothing; Doubtful when that isn't known."""
        return self._tried(job, lambda unit: self._run(unit, job))

    def trial(self, job: Job) -> Ran:
        """As `run`, and rolled back. Nothing is recorded."""

        def once(unit: Unit) -> Ran:
            budget, results = self._perform(unit, job)
            return _ran(budget.touched, results)

        return self._tried(job, once)

    def _run(self, unit: Unit, job: Job) -> Ran:
        job.records.put("db.session", unit.session)
        try:
            unit.insert(MARKS, [_mark(job.id, "done")])
        except Duplicate:
            unit.abort()
            return self._already(job)
        budget, results = self._perform(unit, job)
        changes = budget.touched.changed()
        keep(job.records, DOCUMENTS, changes, most=job.limits.image_bytes)
        self._commit(unit, job)
        ran = _ran(budget.touched, results)
        records.write_state(job.records, records.State(at="done", counts=ran.counts))
        return ran

    def _already(self, job: Job) -> Ran:
        """An earlier try was committed, though its answer was lost."""
        settled = self.settle(job)
        if settled != "done":
            raise Doubtful("It isn't known whether this was done.", next_step="Ask again: GoEx looks first.")
        changes = kept(job.records, DOCUMENTS)
        return Ran(counts=counts_of(changes), changes=changes)

    def _perform(self, unit: Unit, job: Job) -> tuple[Budget, list[JsonValue]]:
        budget = Budget.of(job)
        results: list[JsonValue] = []
        left = [job.limits.result_bytes]
        for operation in job.program.operations:
            if isinstance(operation, Read):
                results.append(read(unit, operation, job.limits, left))
            elif isinstance(operation, Insert):
                _insert(unit, operation, budget)
            else:
                budget.last = None
                _write(unit, operation, budget)
                if operation.returns:
                    results.append(returned(operation, budget.last, job.limits, left))
        return budget, results

    # ---- what became of it

    def settle(self, job: Job) -> Literal["done", "undone", "nothing"]:
        """Which it is, for certain. Raises Unavailable, Conflict while it can't be known."""
        noted = records.read_state(job.records).at
        if noted == "nothing":
            return "nothing"
        if noted == "done" or noted == "undone":  # and the marker knows it better: a revert may have been cut off
            marked = _marked(self.backend.plain(), job.id)
            return noted if marked is None or marked == "void" else marked
        return self._fenced(job)

    def _fenced(self, job: Job) -> Literal["done", "undone", "nothing"]:
        if not is_kept(job.records, DOCUMENTS):
            return "nothing"  # the images come before the commit
        if session := job.records.get("db.session"):
            self.backend.end(session)  # its process is gone, and it would hold the documents for a minute more
        unit = self.backend.plain()
        marked: Marked | None = "void"
        try:
            unit.insert(MARKS, [_mark(job.id, "void")])
        except Duplicate:
            marked = _marked(unit, job.id)
        if marked == "void":
            # Its own transaction has ended without a commit: it could not have held the same key.
            records.write_state(job.records, records.State(at="nothing"))
            unit.delete(MARKS, {"_id": {"$eq": job.id}, "state": "void"})
            return "nothing"
        if marked is None:
            raise Unavailable("The marker of this action was there, and isn't any more.", next_step="Ask again.")
        records.write_state(job.records, records.State(at=marked, counts=counts_of(kept(job.records, DOCUMENTS))))
        return marked

    # ---- taking back

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """What a revert would do. Only reads. Raises Conflict."""
        changes = goals(job, verb)
        refuse_difference(self.backend.plain(), changes)
        return Ran(counts=counts_of(changes), changes=changes)

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """All of it, or nothing: raises Conflict, having touched nothing. Idempotent. Doubtful: it isn't known."""
        changes = goals(job, verb)
        goal: Literal["done", "undone"] = "undone" if verb == "undo" else "done"
        lift = any(change.before and change.after and has_dollar(change.after) for change in changes)

        def once(unit: Unit) -> Ran:
            if not self._turn(unit, job, goal, changes):
                return Ran(counts=(), notes=("It was so already.",))
            refuse_difference(unit, changes)
            move_at_once(unit, changes, lift=lift)
            if apart(unit, changes):
                raise Conflict("The server doesn't take the documents as they were; nothing was touched.")
            self._commit(unit, job)
            return Ran(counts=counts_of(changes), changes=changes)

        try:
            ran = self._tried(job, once)
        except Duplicate:
            lift = True  # keys that were exchanged: taken out first, then put back
            try:
                ran = self._tried(job, once)
            except Duplicate as error:
                raise Conflict(
                    "A document that somebody made since has a key that is unique and that this would bring back; "
                    "nothing was touched.",
                    next_step="Change or remove that document, then ask again.",
                    difference=(error.message,),
                ) from error
        records.write_state(job.records, records.State(at=goal, counts=records.read_state(job.records).counts))
        return ran

    def _turn(self, unit: Unit, job: Job, goal: Marked, changes: tuple[Change, ...]) -> bool:
        """Turn the marker, as the first write of a revert; False when it stands there already."""
        other: Marked = "done" if goal == "undone" else "undone"
        if unit.replace(MARKS, {"_id": job.id, "state": other}, _mark(job.id, goal)):
            return True
        marked = _marked(unit, job.id)
        if marked == goal or (marked is None and not apart(unit, changes)):
            return False
        if marked is None:  # somebody emptied GoEx's collection: then the documents tell
            unit.insert(MARKS, [_mark(job.id, goal)])
            return True
        raise Conflict("The server knows this action as one that never took place.", next_step="goex log --verify")

    # ---- parts

    def _tried(self, job: Job, once: Callable[[Unit], Ran]) -> Ran:
        """In a transaction that ends with this, tried again where that is what the server wants."""
        until = self.clock() + job.limits.seconds
        waited_until = self.clock() + job.limits.lock_seconds
        for number in range(_TRIES):
            unit = self.backend.begin()
            try:
                return once(unit)
            except Transient:
                if number + 1 == _TRIES or self.clock() >= min(until, waited_until):
                    break
            finally:
                unit.abort()
            self.pause(0.05 * 2**number)
        raise Conflict(
            "Somebody else is changing the same documents, or the server is changing its primary; nothing was touched.",
            next_step="Ask again in a moment.",
        )

    def _commit(self, unit: Unit, job: Job) -> None:
        until = self.clock() + job.limits.seconds
        number = 0
        while True:
            try:
                unit.commit()
                return
            except CommitUnknown as error:
                if self.clock() >= until or number >= 2 * _TRIES:
                    raise Doubtful(
                        "The connection was lost while this was committed.",
                        next_step="GoEx looks what became of it when the server is back.",
                    ) from error
            self.pause(min(0.05 * 2**number, 2.0))
            number += 1


def goals(job: Job, verb: Literal["undo", "redo"]) -> tuple[Change, ...]:
    """The changes that a revert makes: from what is expected now to what there shall be."""
    changes = kept(job.records, DOCUMENTS)
    return tuple(change.reversed for change in reversed(changes)) if verb == "undo" else changes


def _ran(touched: Touched, results: list[JsonValue]) -> Ran:
    counts = tuple((collection, how, number) for (collection, how), number in touched.counts.items())
    return Ran(counts=counts, changes=touched.changed(), results=tuple(results))


def _insert(unit: Unit, operation: Insert, budget: Budget) -> None:
    budget.check(len(operation.documents))
    for part in chunks([encode(document) for document in operation.documents]):
        unit.insert(operation.collection, part)
        made = [Change(collection=operation.collection, id=id_of(one), before=None, after=one) for one in part]
        after = now(unit, made)
        for change in made:
            if (found := after.get(change.key)) is None:
                raise changed_meanwhile()
            budget.add(replace(change, after=found), "inserted")


def _write(unit: Unit, write: Write, budget: Budget) -> None:
    matched = budget.matched(unit, write)
    if not matched:
        if write.upsert:
            _upsert(unit, write, budget)
        return
    for part in chunks(matched):
        changes = [Change(collection=write.collection, id=id_of(one), before=one, after=None) for one in part]
        condition = pinned(ids_filter(change.id for change in changes), write.filter)
        if write.deletes:
            if unit.delete(write.collection, condition) != len(part):
                raise changed_meanwhile()
        elif write.document is not None:
            if unit.replace(write.collection, condition, replaced(write, part[0])) != 1:
                raise changed_meanwhile()
        else:
            unit.update(write.collection, condition, write.change or {}, array_filters=write.array_filters)
        after = {} if write.deletes else now(unit, changes)
        if not write.deletes and len(after) != len(part):
            raise changed_meanwhile()
        for change in changes:
            budget.add(replace(change, after=after.get(change.key)), "deleted" if write.deletes else "updated")


def replaced(write: Write, before: bytes) -> bytes:
    """The document that takes the place of another: it keeps its `_id`."""
    return encode({"_id": decode(before)["_id"], **(write.document or {})})


def _upsert(unit: Unit, write: Write, budget: Budget) -> None:
    budget.check(1)
    if write.document is not None:
        unit.insert(write.collection, [sent := encode({"_id": write.upsert_id, **write.document})])
        after = _one(unit, write.collection, id_of(sent))
    else:
        found = unit.change(
            write.collection, upserting(write), write.change or {}, array_filters=write.array_filters, upsert=True
        )
        if found is None:
            raise changed_meanwhile()
        after = found
    budget.add(Change(collection=write.collection, id=id_of(after), before=None, after=after), "inserted")


def _one(unit: Unit, collection: str, id: bytes) -> bytes:
    found = next(iter(unit.find(collection, {"_id": {"$eq": decode(id)["_id"]}}, limit=1)), None)
    if found is None:
        raise changed_meanwhile()
    return found


def _mark(id: str, state: Marked) -> bytes:
    return encode({"_id": id, "state": state, "what": "GoEx knows by this whether an action took place"})


def _marked(unit: Unit, id: str) -> Marked | None:
    found = next(iter(unit.find(MARKS, {"_id": {"$eq": id}}, limit=1)), None)
    if found is None:
        return None
    state = decode(found).get("state")
    if state == "done" or state == "undone" or state == "void":
        return state  # type: ignore[no-any-return]
    raise Conflict("The marker of this action isn't GoEx's any more.", next_step="goex log --verify")
