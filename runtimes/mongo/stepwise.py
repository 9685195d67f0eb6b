"""A program on a server without transactions: document by document, in an order that a crash can be recovered from.

Before an operation its documents are read and written down; then each is written only if it is still as it was read
(the comparison is part of the write), and what an update made of it comes back with the same statement. How far it
came is written down every few documents, and what a crash left in between is told by comparing. A failure in the
middle takes back what was done. The promise is weaker than a transaction's: others see it half done, and may write
in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.mongo import records
from runtimes.mongo.atomic import goals, replaced
from runtimes.mongo.backend import Backend, Unit, Vanished
from runtimes.mongo.extjson import encode
from runtimes.mongo.guards import Guards
from runtimes.mongo.job import Budget, Job, Ran, changed_meanwhile, counts_of, now, pinned, upserting
from runtimes.mongo.operations import Insert, Read, Write
from runtimes.mongo.reads import read
from runtimes.mongo.records import DOCUMENTS, Change, Touched, id_of, is_kept, keep, kept
from runtimes.mongo.restore import OneByOne, refuse_difference
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
        budget = Budget(rows=job.rows, most=job.limits.image_bytes)
        results: list[JsonValue] = []
        left = [job.limits.result_bytes]
        guards = Guards(unit)
        try:
            for step, operation in enumerate(job.program.operations):
                if isinstance(operation, Read):
                    results.append(read(unit, operation, job.limits, left))
                else:
                    self._step(guards, job, step, operation, budget)
        except (Vanished, Unavailable) as error:
            if records.read_state(job.records).at != "writing":
                raise
            raise _lost() from error
        except GoexError as error:
            return self._take_back(unit, job, budget.touched, error)
        self._keep(job, budget.touched, whole=True)
        return replace(_ran(budget.touched, results), notes=guards.notes)

    def _step(self, guards: Guards, job: Job, step: int, operation: Insert | Write, budget: Budget) -> None:
        planned = _planned(guards.unit, operation, budget)
        keep(job.records, f"step{step}", planned, most=job.limits.image_bytes)
        records.write_state(job.records, records.State(at="writing", step=step))
        fresh: list[Change] = []
        flushed = 0
        for change in planned:
            made = _do(guards, operation, change)
            budget.touched.add(made, _how(operation, made))
            if change.after == _NOT_KNOWN:
                fresh.append(made)
            if len(fresh) == _FLUSH:
                keep(job.records, f"step{step}.{flushed}", fresh, most=job.limits.image_bytes)
                flushed += 1
                fresh = []
        if fresh:
            keep(job.records, f"step{step}.{flushed}", fresh, most=job.limits.image_bytes)

    def _take_back(self, unit: Unit, job: Job, touched: Touched, error: GoexError) -> Ran:
        """Nothing of it stays, if that can be: then raises `error`."""
        changes = touched.changed()
        if changes:
            self._keep(job, touched, whole=False)
            self._moving(job, records.read_state(job.records))
            mover = OneByOne(unit, lambda lifted: self._lifting(job, lifted), Guards(unit))
            try:
                mover.move([change.reversed for change in reversed(changes)])
            except (Vanished, Unavailable) as lost:
                raise _lost() from lost
            except Conflict:
                moved = {change.key for change in mover.moved}
                stayed = tuple(change for change in changes if change.key not in moved)
                keep(job.records, DOCUMENTS, stayed, most=job.limits.image_bytes)
                records.write_state(job.records, records.State(at="done", whole=False, counts=counts_of(stayed)))
                why = f"It stopped part of the way, and what it had done can't all be taken back: {error.message}"
                return Ran(counts=counts_of(stayed), changes=stayed, notes=(why,), whole=False)
        records.write_state(job.records, records.State(at="nothing"))
        raise error

    def _keep(self, job: Job, touched: Touched, *, whole: bool, doubts: int = 0) -> Ran:
        ran = _ran(touched, [])
        keep(job.records, DOCUMENTS, ran.changes, most=job.limits.image_bytes)
        records.write_state(job.records, records.State(at="done", whole=whole, doubts=doubts, counts=ran.counts))
        return ran

    def _moving(self, job: Job, state: records.State) -> None:
        if is_kept(job.records, "lifted"):
            self._lifting(job, ())  # of an earlier move
        records.write_state(job.records, replace(state, at="moving", was=state.at))

    def _lifting(self, job: Job, lifted: Sequence[Change]) -> None:
        keep(job.records, "lifted", lifted, most=job.limits.image_bytes)

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
            made, doubts = self._found(unit, job, step, last=step == state.step)
            for change in made:
                touched.add(change, _how(operation, change))
            doubtful += doubts
        ran = self._keep(job, touched, whole=False, doubts=doubtful)
        return replace(ran, whole=False, notes=_in_doubt(doubtful))

    def _found(self, unit: Unit, job: Job, step: int, *, last: bool) -> tuple[list[Change], int]:
        """What an operation did: as written down, and for the rest as it looks now."""
        planned = kept(job.records, f"step{step}")
        known: dict[tuple[str, bytes], Change] = {}
        number = 0
        while is_kept(job.records, f"step{step}.{number}"):
            known |= {change.key: change for change in kept(job.records, f"step{step}.{number}")}
            number += 1
        rest = [change for change in planned if change.key not in known]
        if not last:
            return [*known.values(), *(change for change in rest if change.after != _NOT_KNOWN)], 0
        there = now(unit, rest)
        found = list(known.values())
        doubts = 0
        for change in rest:
            current = there.get(change.key)
            if current == change.before:
                continue
            if change.after == _NOT_KNOWN:
                found.append(replace(change, after=current))
                doubts += 1
            elif change.after is not None or current is None:  # its own; or another's, which undo then says
                found.append(change)
        return found, doubts

    # ---- taking back

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """What a revert would do. Only reads. Raises Conflict."""
        changes = goals(job, verb)
        begun, lifted = self._interrupted(job)
        left = tuple(refuse_difference(self.backend.plain(), changes, begun=begun, lifted=lifted))
        return Ran(counts=counts_of(left), changes=left)

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        """Raises Conflict, having touched nothing. `whole` False: it stopped, and run again it goes on. Idempotent."""
        state = records.read_state(job.records)
        goal: records.At = "undone" if verb == "undo" else "done"
        if state.at == goal:
            return Ran(counts=(), notes=("It was so already.",))
        unit = self.backend.plain()
        changes = goals(job, verb)
        begun, lifted = self._interrupted(job)
        left = refuse_difference(unit, changes, begun=begun, lifted=lifted)
        if not begun:
            self._moving(job, state)
        mover = OneByOne(unit, lambda lifted: self._lifting(job, lifted), Guards(unit))
        try:
            mover.move(left)
        except (Vanished, Unavailable) as error:
            raise _lost() from error
        except Conflict as error:
            if begun:
                return _stopped(mover, error)
            try:
                mover.back()
            except GoexError:
                return _stopped(mover, error)
            records.write_state(job.records, state)
            raise
        records.write_state(job.records, replace(state, at=goal))
        return Ran(counts=counts_of(changes), changes=changes, notes=mover.guards.notes)

    def _interrupted(self, job: Job) -> tuple[bool, frozenset[tuple[str, bytes]]]:
        if records.read_state(job.records).at != "moving":
            return False, frozenset()
        lifted = kept(job.records, "lifted") if is_kept(job.records, "lifted") else ()
        return True, frozenset(change.key for change in lifted)


def _planned(unit: Unit, operation: Insert | Write, budget: Budget) -> list[Change]:
    """The documents that an operation is about to write, as they are now."""
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


def _do(guards: Guards, operation: Insert | Write, change: Change) -> Change:
    """Write one document, if it is still as it was."""
    unit = guards.unit
    if change.after is None:
        assert change.before is not None
        if unit.delete(change.collection, guards.of(change.collection, change.before)) != 1:
            raise changed_meanwhile()
        return change
    if change.after != _NOT_KNOWN:
        if change.before is None:
            unit.insert(change.collection, [change.after])
        elif unit.replace(change.collection, guards.of(change.collection, change.before), change.after) != 1:
            raise changed_meanwhile()
        return change
    assert isinstance(operation, Write) and operation.change is not None
    if change.before is None:
        made = unit.update(
            change.collection,
            upserting(operation),
            operation.change,
            array_filters=operation.array_filters,
            upsert=True,
        )
        found = None if made is None else replace(change, id=made).filter
        after = None if found is None else next(iter(unit.find(change.collection, found, limit=1)), None)
    else:
        condition = pinned(guards.of(change.collection, change.before), operation.filter)
        after = unit.change(change.collection, condition, operation.change, array_filters=operation.array_filters)
    if after is None:
        raise changed_meanwhile()
    return replace(change, id=id_of(after), after=after)


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


def _stopped(mover: OneByOne, error: Conflict) -> Ran:
    said = (f"It stopped after {len(mover.moved)} documents: {error.message}", *error.difference)
    return Ran(counts=counts_of(mover.moved), changes=tuple(mover.moved), notes=said, whole=False)
