"""A program on a server without transactions: document by document, in an order that a crash can be recovered from.

Before an operation its documents are read and written down; then each is written only if it is still as it was read
(the comparison is part of the write), and what an update made of it comes back with the same statement. How far it
came is written down every few documents, and what a crash left in between is told by comparing. A failure in the
middle, or a cancellation, takes back what was done; what stays all the same is said, and kept for undo whatever its
size. The promise is weaker than a transaction's: others see it half done, and may write in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from policies.display_text import counted
from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.mongo import records
from runtimes.mongo.atomic import goals, replaced
from runtimes.mongo.backend import Backend, Duplicate, Unit, Vanished
from runtimes.mongo.extjson import decode, encode
from runtimes.mongo.guards import Guards
from runtimes.mongo.job import Budget, Job, Ran, changed_meanwhile, counts_of, now, pinned, upserting
from runtimes.mongo.operations import Insert, Read, Write
from runtimes.mongo.reads import read, returned
from runtimes.mongo.records import DOCUMENTS, Change, Lifted, Touched, id_of, is_kept, keep, kept
from runtimes.mongo.restore import OneByOne, apart, refuse_difference
from runtimes.sql.contract import Doubtful

_FLUSH = 20  # documents; after a crash so many may be in doubt
_LARGEST = 7 * 2**20  # bytes: a document stands twice in the statement that compares and replaces it
_NOT_KNOWN = b""  # what an update makes of a document, beforehand


def _lost() -> Doubtful:
    return Doubtful("The connection was lost while documents were written.", next_step="GoEx looks what became of it.")


@dataclass(slots=True)
class Stepwise:
    """Runs jobs on a server that has no transactions."""

    backend: Backend

    def run(self, job: Job) -> Ran:
        """Raises Conflict and others when nothing remains of it; Doubtful when `settle` has to look."""
        unit = self.backend.plain()
        budget = Budget.of(job)
        results: list[JsonValue] = []
        left = [job.limits.result_bytes]
        guards = Guards(unit)
        try:
            for step, operation in enumerate(job.program.operations):
                if isinstance(operation, Read):
                    results.append(read(unit, operation, job.limits, left))
                else:
                    budget.last = None
                    self._step(guards, job, step, operation, budget)
                    if isinstance(operation, Write) and operation.returns:
                        results.append(returned(operation, budget.last, job.limits, left))
            self._keep(job, budget.touched, whole=True)
        except GoexError as error:
            at = records.read_state(job.records).at
            if at == "prepared":
                raise
            if at != "writing" or isinstance(error, Vanished | Unavailable):
                raise _lost() from error
            try:
                stayed = self._take_back(job, budget.touched)
            except GoexError as lost:
                raise _lost() from lost
            if not stayed:
                raise
            why = f"It stopped part of the way, and what it had done can't all be taken back: {error.message}"
            return Ran(counts=counts_of(stayed), changes=stayed, notes=(why,), whole=False)
        return replace(_ran(budget.touched, results), notes=guards.notes)

    def _step(self, guards: Guards, job: Job, step: int, operation: Insert | Write, budget: Budget) -> None:
        planned = _planned(guards.unit, operation, budget)
        keep(job.records, f"step{step}", planned, most=job.limits.image_bytes)
        records.write_state(job.records, records.State(at="writing", step=step, written=0))
        fresh: list[Change] = []
        flushed = 0
        for number, change in enumerate(planned, 1):
            made = self._do(guards, operation, change)
            budget.add(made, _how(operation, made))
            if not _has_planned_id(made, change):  # said after it was noted: so it is taken back
                raise Conflict(
                    "The server gave a new document another _id than the one that was planned.",
                    next_step='Name it: {"$setOnInsert": {"_id": …}}.',
                )
            if made != change:
                fresh.append(made)
            last = number == len(planned)
            if fresh and (last or number % _FLUSH == 0):
                keep(job.records, f"step{step}.{flushed}", fresh, most=None)
                flushed += 1
                fresh = []
            if number % _FLUSH == 0 and not last:  # after the last comes the next step's
                records.write_state(job.records, records.State(at="writing", step=step, written=number))

    def _do(self, guards: Guards, operation: Insert | Write, change: Change) -> Change:
        """Write one document, if it is still as it was; as the server has it then."""
        unit = guards.unit
        if change.before is None:
            return self._insert(unit, operation, change)
        if change.after is None:
            if unit.delete(change.collection, guards.of(change.collection, change.before)) != 1:
                raise changed_meanwhile()
            return change
        guard = guards.of(change.collection, change.before)
        if change.after != _NOT_KNOWN:
            after = unit.change(change.collection, guard, change.after)
        else:
            assert isinstance(operation, Write) and operation.change is not None
            condition = pinned(guard, operation.filter)
            after = unit.change(change.collection, condition, operation.change, array_filters=operation.array_filters)
        if after is None:
            raise changed_meanwhile()
        return replace(change, after=after)

    def _insert(self, unit: Unit, operation: Insert | Write, change: Change) -> Change:
        """Make one document, if none has its `_id`."""
        if change.after:
            unit.insert(change.collection, [change.after])
            return self._seen(change, decode(change.after))
        assert isinstance(operation, Write) and operation.change is not None
        made = unit.change(
            change.collection,
            pinned(upserting(operation), {"$nor": [{"_id": {"$exists": True}}]}),  # finds nothing: it can only insert
            operation.change,
            array_filters=operation.array_filters,
            upsert=True,
        )
        if made is None:
            raise changed_meanwhile()
        return replace(change, id=id_of(made), after=made)

    def _seen(self, change: Change, sent: dict[str, Any]) -> Change:
        """What was inserted, as the server has it: some servers store a number as another type than was sent. Any other
        difference is somebody else's, who was quick: undo then says it."""
        try:
            found = next(iter(self.backend.plain(through=True).find(change.collection, change.filter, limit=1)), None)
        except GoexError as error:
            raise Vanished("A document was written, and can't be read.") from error
        alike = found is not None and _alike(decode(found), sent)
        return replace(change, id=id_of(found), after=found) if found is not None and alike else change

    def _take_back(self, job: Job, touched: Touched) -> tuple[Change, ...]:
        """Put back what was changed; what is left of it all the same. It isn't known when this raises."""
        unit, changes = self.backend.plain(through=True), touched.changed()
        lifted = Lifted(job.records)
        if changes:
            self._keep(job, touched, whole=False)
            _moving(job, records.read_state(job.records), lifted)
        mover = OneByOne(unit, lifted, Guards(unit))
        try:
            mover.move([change.reversed for change in reversed(changes)])
        except (Vanished, Unavailable):
            raise
        except GoexError:
            pass  # what is there says what stayed
        there = now(unit, changes)
        out = {change.key for change in mover.lifted} - there.keys()
        stayed = tuple(
            replace(change, after=None) if change.key in out else change
            for change in changes
            if there.get(change.key) != change.before
        )
        if stayed:
            keep(job.records, DOCUMENTS, stayed, most=None)
            records.write_state(job.records, records.State(at="done", whole=False, counts=counts_of(stayed)))
        else:
            records.write_state(job.records, records.State(at="nothing"))
        return stayed

    def _keep(self, job: Job, touched: Touched, *, whole: bool, doubts: int = 0) -> Ran:
        ran = _ran(touched, [])
        keep(job.records, DOCUMENTS, ran.changes, most=None)
        records.write_state(job.records, records.State(at="done", whole=whole, doubts=doubts, counts=ran.counts))
        return ran

    # ---- what became of it

    def settle(self, job: Job) -> Ran:
        """What is there of it now; no counts: nothing. It writes down what it finds, so that undo can take it back."""
        state = records.read_state(job.records)
        if state.at in ("done", "undone", "moving"):
            changes = kept(job.records, DOCUMENTS)
            return Ran(counts=state.counts, changes=changes, whole=state.whole, notes=_in_doubt(state.doubts))
        if state.at != "writing":
            return Ran(counts=())
        unit = self.backend.plain()
        touched = Touched()
        doubtful = 0
        for step, operation in enumerate(job.program.operations[: state.step + 1]):
            if isinstance(operation, Read):
                continue
            made, doubts = self._found(unit, job, step, state)
            for change in made:
                touched.add(change, _how(operation, change))
            doubtful += doubts
        ran = self._keep(job, touched, whole=False, doubts=doubtful)
        return replace(ran, whole=False, notes=_in_doubt(doubtful))

    def _found(self, unit: Unit, job: Job, step: int, state: records.State) -> tuple[list[Change], int]:
        """What an operation did: as written down, and for the few documents after that as it looks now."""
        planned = kept(job.records, f"step{step}")
        known: dict[tuple[str, bytes], Change] = {}
        number = 0
        while is_kept(job.records, f"step{step}.{number}"):
            known |= {change.key: change for change in kept(job.records, f"step{step}.{number}")}
            number += 1
        until = len(planned)
        written = until if step < state.step else state.written or 0
        if state.written is not None:
            until = written + _FLUSH
        sure = [change for change in planned[:written] if change.key not in known and change.after != _NOT_KNOWN]
        rest = [change for change in planned[written:until] if change.key not in known]
        there = now(unit, rest)
        found = [*known.values(), *sure]
        doubts = 0
        for change in rest:
            current = there.get(change.key)
            if current == change.before or (change.after is None) != (current is None):
                continue  # as it was, or somebody else's: a deletion leaves nothing, and no other write takes it out
            found.append(replace(change, after=current) if change.after == _NOT_KNOWN else change)
            doubts += 1
        return found, doubts

    # ---- taking back

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """What a revert would do. Only reads. Raises Conflict."""
        changes = goals(job, verb)
        begun = records.read_state(job.records).at == "moving"
        out = Lifted(job.records).keys if begun else ()
        left = tuple(refuse_difference(self.backend.plain(), changes, begun=begun, lifted=out))
        return Ran(counts=counts_of(left), changes=left)

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """Raises Conflict, having touched nothing. `whole` False: it stopped, and run again it goes on. Idempotent."""
        state = records.read_state(job.records)
        goal: records.At = "undone" if verb == "undo" else "done"
        if state.at == goal:
            return Ran(counts=(), notes=("It was so already.",))
        unit = self.backend.plain()
        changes = goals(job, verb)
        begun, lifted = state.at == "moving", Lifted(job.records)
        left = refuse_difference(unit, changes, begun=begun, lifted=lifted.keys if begun else ())
        if begun:
            lifted.back(*lifted.keys - {change.key for change in left if change.before is None})
        else:
            _moving(job, state, lifted)
        mover = OneByOne(unit, lifted, Guards(unit))
        try:
            mover.move(left)
            if apart(unit, left):
                raise Conflict("The server doesn't hold the documents as they were put back.")
        except (Vanished, Unavailable) as error:
            raise _lost() from error
        except GoexError as error:
            if begun:
                return _stopped(mover, error)
            mover.unit = mover.guards.unit = self.backend.plain(through=True)
            try:
                mover.back()
            except GoexError:
                return _stopped(mover, error)
            records.write_state(job.records, state)
            raise
        records.write_state(job.records, replace(state, at=goal))
        return Ran(counts=counts_of(changes), changes=changes, notes=mover.guards.notes)


def _moving(job: Job, state: records.State, lifted: Lifted) -> None:
    lifted.back(*lifted.keys)  # of an earlier move
    records.write_state(job.records, replace(state, at="moving", was=state.at))


def _planned(unit: Unit, operation: Insert | Write, budget: Budget) -> list[Change]:
    """The documents that an operation is about to write, as they are now. Raises Duplicate where one that it makes is
    there already: after a crash that one would count as its own."""
    planned = _changes(unit, operation, budget)
    new = [change for change in planned if change.before is None]
    keys = {change.key for change in new}
    if len(keys) < len(new) or keys & now(unit, new).keys():
        raise Duplicate("_id")
    return planned


def _changes(unit: Unit, operation: Insert | Write, budget: Budget) -> list[Change]:
    if isinstance(operation, Insert):
        budget.check(len(operation.documents))
        return [_new(operation.collection, encode(document)) for document in operation.documents]
    matched = budget.matched(unit, operation)
    if any(len(document) > _LARGEST for document in matched):
        raise Unsupported(
            "A document is larger than 7 MB, which a server without transactions can't compare while it writes.",
            next_step="Use a replica set: one server alone can be one.",
        )
    if not matched and operation.upsert:
        budget.check(1)
        if operation.document is not None:
            return [_new(operation.collection, encode({"_id": operation.upsert_id, **operation.document}))]
        id = encode({"_id": operation.upsert_id})
        return [Change(collection=operation.collection, id=id, before=None, after=_NOT_KNOWN)]
    return [
        Change(collection=operation.collection, id=id_of(before), before=before, after=_after(operation, before))
        for before in matched
    ]


def _new(collection: str, document: bytes) -> Change:
    return Change(collection=collection, id=id_of(document), before=None, after=document)


def _after(write: Write, before: bytes) -> bytes | None:
    if write.deletes:
        return None
    return _NOT_KNOWN if write.document is None else replaced(write, before)


def _alike(found: Any, sent: Any) -> bool:
    """Whether a value is the one that was sent, but for the type of its numbers. Python alone holds 1 and true to be
    equal, and documents whose fields stand in another order."""
    if isinstance(found, dict) and isinstance(sent, dict):
        return list(found) == list(sent) and all(_alike(found[key], sent[key]) for key in sent)
    if isinstance(found, list) and isinstance(sent, list):
        return len(found) == len(sent) and all(map(_alike, found, sent))
    numbers = isinstance(found, int | float) and isinstance(sent, int | float)
    if numbers and not isinstance(found, bool) and not isinstance(sent, bool):
        return bool(found == sent)
    return encode({"": found}) == encode({"": sent})


def _has_planned_id(made: Change, planned: Change) -> bool:
    """Some servers store an ObjectId as text: that is the same."""
    return made.key == planned.key or str(decode(made.id)["_id"]) == str(decode(planned.id)["_id"])


def _how(operation: Insert | Write, change: Change) -> str:
    return "inserted" if change.before is None else "deleted" if change.after is None else "updated"


def _ran(touched: Touched, results: list[JsonValue]) -> Ran:
    counts = tuple((collection, how, number) for (collection, how), number in touched.counts.items())
    return Ran(counts=counts, changes=touched.changed(), results=tuple(results))


def _in_doubt(number: int) -> tuple[str, ...]:
    if not number:
        return ()
    what = "1 document was" if number == 1 else f"{number} documents were"
    return (f"{what} being written when it stopped: what others changed there since counts as the action's own.",)


def _stopped(mover: OneByOne, error: GoexError) -> Ran:
    difference = error.difference if isinstance(error, Conflict) else ()
    said = (f"It stopped after {counted(len(mover.moved), 'document')}: {error.message}", *difference)
    return Ran(counts=counts_of(mover.moved), changes=tuple(mover.moved), notes=said, whole=False)
