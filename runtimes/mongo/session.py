"""What the runtime does with a connected backend; all of it blocks. Apart from the runtime, which is loaded with the
daemon: BSON and MongoDB's driver are only needed once somebody works on a MongoDB."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast
from urllib.parse import quote

from bson import ObjectId

from policies.actions import Mongo, Outcome, Plan
from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from runtimes.base import Context, DryLine, DryRun, Footprint, Settlement
from runtimes.database_overview import Seen, SeenTable
from runtimes.mongo import plan_text, records
from runtimes.mongo.atomic import MARKS, Atomic
from runtimes.mongo.backend import Backend, Collection
from runtimes.mongo.extjson import decode, exact
from runtimes.mongo.job import Budget, Job, Ran, counts_of
from runtimes.mongo.operations import Program, Read, Write, equal_id, lacking_ids, named_ids, parse, with_ids
from runtimes.mongo.plans import behind
from runtimes.mongo.reads import read
from runtimes.mongo.records import DOCUMENTS, is_kept, kept
from runtimes.mongo.stepwise import Stepwise
from runtimes.sql.contract import Limits

_MOST_COUNTED = 1_000_000
_MOST_SAMPLED = 50
_MOST_NAMED = 1000  # documents of which a footprint names each


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What assessing found: `rows` documents may be changed."""

    collections: dict[str, Collection]
    rows: int


def survey(backend: Backend, program: Program) -> Found:
    """What a program is about, found without any effect. Raises Unsupported for what couldn't be taken back."""
    collections = _usable(backend, program)
    rows = plan_text.inserted(program)
    for one in program.operations:
        if isinstance(one, Write):
            rows += _at_most(backend, one) if one.many else 1
    return Found(collections=collections, rows=min(rows, _MOST_COUNTED))


def _usable(backend: Backend, program: Program) -> dict[str, Collection]:
    """The collections as they are now. Raises Unsupported when one is written whose documents can't be put back, or a
    view is read that runs JavaScript."""
    collections = dict(backend.collections(program.written))
    for name in {*(name for name, _ in program.uses()), *behind(program, collections)}:
        if name in collections and collections[name].script:
            raise Unsupported(f"{name} can't be read here: its definition runs JavaScript on the server.")
    for name in program.written:
        found = collections.get(name)
        if found is not None and found.refusal:
            raise Unsupported(f"Documents of {name} can't be written here: {found.refusal}.")
    return collections


def _at_most(backend: Backend, write: Write) -> int:
    """How many documents it may find. Nobody has allowed it yet, so its filter is tried on none: what it demands of
    `_id` says it, or else how many there are."""
    named = named_ids(write.filter)
    if named is not None:
        return named
    try:
        return backend.plain().count(write.collection, {}, _MOST_COUNTED)
    except Unavailable:
        raise
    except GoexError:
        return _MOST_COUNTED


def program_of(plan: Plan) -> Program:
    """The program of a plan, parsed anew from the text that was decided on."""
    return parse(cast(Mongo, plan.action).operations)


def prepare(plan: Plan, context: Context, backend: Backend) -> None:
    """Look whether the server is as it was, and make the marker's collection where there will be one."""
    program = program_of(plan)
    if program.reads_only:
        return
    if backend.facts.transactions != plan.resolved["transactions"]:
        raise Conflict(
            "The server isn't as it was when this was planned: it has transactions now, or has them no more.",
            next_step="Ask for it again.",
        )
    if backend.facts.transactions:
        backend.make(MARKS)


def job_of(plan: Plan, context: Context, limits: Limits) -> Job:
    """What is to be done. Ids that are lacking are made here, before anything is written: the images hold them."""
    program = program_of(plan)
    ids = [ObjectId() for _ in range(lacking_ids(program))]
    return Job(
        id=context.action_id,
        program=with_ids(program, ids),
        rows=plan.bounds.get("rows", 0),
        limits=limits,
        records=context.records,
        progress=context.progress,
    )


def run(plan: Plan, job: Job, backend: Backend) -> Outcome:
    """Raises only when nothing was touched, and Doubtful."""
    job = _with_rules(plan, job, backend)
    if job.program.reads_only:
        ran = _read(job, backend)
        _with_rules(plan, job, backend)  # a view that was defined anew meanwhile may have shown something else
        return outcome(plan, ran)
    if plan.resolved["transactions"]:
        return outcome(plan, Atomic(backend).run(job))
    return outcome(plan, Stepwise(backend).run(job))


def _with_rules(plan: Plan, job: Job, backend: Backend) -> Job:
    """The job, and the rules of its collections as they are now. Raises as `_usable` does, and Conflict where views
    show more collections than the plan says."""
    collections = _usable(backend, job.program)
    if behind(job.program, collections).keys() - set(plan.resolved.get("through", ())):
        raise Conflict(
            "The views that it reads aren't defined any more as they were looked at.",
            next_step="Ask for the action again.",
        )
    return replace(job, rules={one.name: one.rule for one in collections.values() if one.rule})


def _read(job: Job, backend: Backend) -> Ran:
    unit = backend.plain()
    left = [job.limits.result_bytes]
    reads = [one for one in job.program.operations if isinstance(one, Read)]
    return Ran(counts=(), results=tuple(read(unit, one, job.limits, left) for one in reads))


def outcome(plan: Plan, ran: Ran) -> Outcome:
    name = plan.resolved["database"]
    reads = not plan.undo.get("policy")
    said = f"Done in {name}: {plan_text.tally(ran)}."
    if not ran.whole:
        said = f"It stopped part of the way in {name}: {plan_text.tally(ran)}."
    return Outcome(
        ok=ran.whole,
        summary=said,
        results=ran.results,
        changes=plan_text.changes(ran),
        touched=not reads and ran != _NOTHING,
    )


_NOTHING = Ran(counts=())


def settle(plan: Plan, job: Job, backend: Backend) -> Settlement:
    """What became of an action. See `Runtime.settle`."""
    if job.program.reads_only:
        said = "It was stopped; it only read, and nothing was changed."
        return Settlement(outcome=Outcome(ok=False, summary=said, touched=False))
    untouched = Outcome(
        ok=False, summary="It was stopped before anything was changed: nothing of it is there.", touched=False
    )
    try:
        if not plan.resolved["transactions"]:
            ran = Stepwise(backend).settle(job)
            return Settlement(outcome=outcome(plan, ran) if ran.changes or ran.counts else untouched)
        state = Atomic(backend).settle(job)
    except GoexError as error:
        return Settlement(outcome=None, evidence=(f"The database can't be asked: {error.message}",))
    if state == "nothing":
        return Settlement(outcome=untouched)
    if state == "undone":
        said = "What it changed is as it was before."
        return Settlement(outcome=Outcome(ok=False, summary=said, touched=False))
    changes = kept(job.records, DOCUMENTS)
    return Settlement(outcome=outcome(plan, Ran(counts=counts_of(changes), changes=changes)))


def dry_run(plan: Plan, job: Job, backend: Backend) -> DryRun:
    """In a transaction that is rolled back; without one, what would be found."""
    if job.program.reads_only:
        return DryRun(ok=True, summary="It only reads; it wasn't run.", lines=())
    job = _with_rules(plan, job, backend)
    if plan.resolved["transactions"]:
        ran = Atomic(backend).trial(job)
        said = f"It would do this, and was rolled back: {plan_text.tally(ran)}."
        return DryRun(ok=True, summary=said, lines=tuple(plan_text.dry_lines(ran)))
    unit = backend.plain()
    budget = Budget.of(job)
    found: list[tuple[str, bytes]] = []
    number = 0
    for one in job.program.operations:
        if isinstance(one, Write):
            matched = budget.matched(unit, one)
            number += len(matched)
            found.extend((one.collection, document) for document in matched[: _MOST_SAMPLED - len(found)])
    note = DryLine(
        "note",
        "The server has no transactions: what the documents would become isn't known beforehand. Each operation was "
        "looked at as if it were the first.",
    )
    added = plan_text.inserted(job.program)
    says = f"{plan_text.counted(number)} would be written" + (
        f", at most {plan_text.counted(added)} made" if added else ""
    )
    lines = (note, *plan_text.matched_lines(found, number - len(found)))
    return DryRun(ok=True, summary=f"{says}.", lines=lines)


# ---- taking back


def check_revertible(plan: Plan, context: Context, job: Job, backend: Backend, verb: Literal["undo", "redo"]) -> Ran:
    """What a revert would do. Raises Unsupported when there is nothing to do, Conflict."""
    state = records.read_state(context.records)
    if state.at == "forgotten":
        raise Unsupported("This action was committed: what undo needs is gone.")
    at: str = state.at
    if plan.resolved["transactions"]:
        at = Atomic(backend).settle(job)
    elif state.at in ("prepared", "writing"):
        Stepwise(backend).settle(job)
        at = records.read_state(context.records).at
    if at in ("nothing", "prepared"):
        raise Unsupported("This action changed nothing, so there is nothing to take back.")
    if verb == "undo" and at == "undone":
        raise Unsupported("This action is undone already.")
    if verb == "redo" and at == "done":
        raise Unsupported("This action isn't undone, so there is nothing to do again.")
    return _way(backend).compare(job, verb)


def revert(plan: Plan, job: Job, backend: Backend, verb: Literal["undo", "redo"]) -> Outcome:
    ran = _way(backend).revert(job, verb)
    state = "before" if verb == "undo" else "after"
    if not ran.whole:
        said = f"The {verb} stopped part of the way; run it again to finish it."
        return Outcome(ok=False, summary=said, changes=plan_text.changes(ran, verb), touched=True)
    said = f"{plan.resolved['database']} is as it was {state} the action: {plan_text.tally(ran, verb)}."
    return Outcome(ok=True, summary=said, changes=plan_text.changes(ran, verb))


def _way(backend: Backend) -> Atomic | Stepwise:
    return Atomic(backend) if backend.facts.transactions else Stepwise(backend)


def forget(plan: Plan, context: Context) -> None:
    records.write_state(context.records, records.State(at="forgotten"))


def unmark(job_id: str, backend: Backend) -> None:
    backend.plain().delete(MARKS, {"_id": {"$eq": job_id}})


def footprint(plan: Plan, context: Context) -> Footprint:
    """Documents where they are known one by one, else whole collections."""
    entry = quote(str(plan.resolved["database"]), safe="")

    def path(collection: str, id: object = None) -> str:
        whole = f"db/{entry}/{quote(collection, safe='.')}"
        return whole if id is None else f"{whole}/_id={quote(exact(id), safe='')}"

    program = program_of(plan)
    reads = {path(str(name)) for name in plan.resolved.get("through", ())}
    writes: set[str] = set()
    for one in program.operations:
        if isinstance(one, Read):
            reads |= {path(one.collection), *(path(other) for other in one.others)}
        elif isinstance(one, Write):
            id = equal_id(one.filter) if one.filter.keys() == {"_id"} else None
            reads.add(path(one.collection, id))
    if not is_kept(context.records, DOCUMENTS):
        writes |= {path(collection) for collection in program.written}
        return Footprint(reads=frozenset(reads), writes=frozenset(writes))
    changes = kept(context.records, DOCUMENTS)
    if len(changes) > _MOST_NAMED:
        writes |= {path(change.collection) for change in changes}
    else:
        writes |= {path(change.collection, decode(change.id)["_id"]) for change in changes}
    return Footprint(reads=frozenset(reads), writes=frozenset(writes))


# ---- looking


def look(backend: Backend) -> Seen:
    facts = backend.facts
    can = (
        "Changes are one transaction here, and undo is exact."
        if facts.transactions
        else "This server has no transactions: changes and their undo happen document by document. A replica set has "
        "them, and one server alone can be one.",
    )
    tables = tuple(
        SeenTable(name=one.name, kind=one.kind) for one in sorted(backend.collections().values(), key=lambda c: c.name)
    )
    return Seen(version=f"MongoDB {facts.version}", tables=tables, can=(*can, *facts.remarks))
