"""Running an undo and a redo: compare and set, read back, and finish what a crash cut off.

Rules: an undo that is run again skips what its target's record says is taken back; what was begun and not confirmed is
read back before anything is sent a second time. A conflict is raised only while nothing was changed; later it is an
outcome. What became of each pair is recorded before anything else is said of it. An undo that makes something, whose
answer its read-back needs, isn't sent a second time unless the service takes a key for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mapper.catalog import Catalog
from policies.actions import ApiCalls, Outcome, Plan
from policies.display_text import counted, escape
from policies.errors import Conflict, GoexError
from policies.reversions import ReversionSet
from policies.services import Risk
from runtimes.base import Context
from runtimes.gateway.plan import Ref
from runtimes.rest.outcomes import forward, said_of, why_not
from runtimes.rest.planner import read_undos
from runtimes.rest.records import CallRecord
from runtimes.rest.references import refs_in
from runtimes.rest.requests import bind
from runtimes.rest.run import Report, Runner, wanted_paths
from runtimes.rest.steps import Step
from runtimes.rest.undo import check_promise, difference, differing, planned_steps, why_left
from runtimes.rest.verdicts import record_uses, uses_of


async def undo(
    runner: Runner,
    revert_plan: Plan,
    plan: Plan,
    done: CallRecord,
    target: Context,
    context: Context,
    reversions: ReversionSet,
) -> Outcome:
    """Take back what `done` (the target's record) says was done. Raises Conflict with the difference."""
    steps = planned_steps(revert_plan)
    own = CallRecord.load(context.records) or CallRecord()
    if own.sent:
        await _confirm_sent(runner, steps, own, done, target, context)
    pending = _pending(steps, own, done, target, runner.catalog)
    lost = next((step for step in pending if _cant_repeat(step, steps, own, runner.catalog)), None)
    if lost is not None:
        return _lost(steps, lost, done)

    def note_undone(request: str) -> None:
        call = next(step.call for step in steps if step.id == request)
        if call not in done.undone and all(own.done(step.id) for step in steps if step.call == call):
            _mark_undone(call, done, target)

    report = Report()
    if pending:
        report = await runner.run(pending, context, own, context.records, answered=note_undone)
    failing = next((step for step in pending if not own.done(step.id)), None)
    undos = read_undos(done.undo or plan.undo["calls"])
    record_uses(uses_of(context.action_id, undos, steps, own, failing, runner.catalog), reversions)
    if failing is None:
        return Outcome(
            ok=True,
            summary=_taken_back(
                steps, planned_steps(plan) if isinstance(plan.action, ApiCalls) else None, runner.catalog
            ),
            ended=report.ended,
            exit_code=report.exit_code,
        )
    begun = {step.call for step in steps if step.id in own.sent} - set(done.undone)
    if begun - set(done.doubtful):
        done.doubtful = sorted({*done.doubtful, *begun})
        with suppress(GoexError):  # what was sent must be said, whether or not it can be kept
            done.save(target.records)
    if failing.role == "guard" and not own.sent:
        _raise_conflict(failing, own, runner.catalog)
    if failing.role != "guard":
        pair = {"call": failing.call, "request": failing.id, "method": failing.method_id}
        why = "; ".join((why_not(failing, own, report, runner.catalog), *said_of(failing, own, report)))
        context.note("undo-failed", {**pair, "why": why})
    return _failed(steps, failing, own, report, done, runner.catalog)


async def redo(runner: Runner, revert_plan: Plan, own: CallRecord, target: Context, context: Context) -> Outcome:
    """Make the calls again. What was answered becomes the target's record, so that a later undo takes *it* back."""
    steps = planned_steps(revert_plan)
    own.turn, own.undo = int(revert_plan.resolved["turn"]), revert_plan.undo["calls"]
    # What follows a call that didn't go well isn't sent, whether or not a crash came in between.
    drop_repeatable(own, steps, runner.catalog)
    stopped = any(not answer.well for answer in own.answers.values())
    rest = [] if stopped else [step for step in steps if step.id not in own.answers]
    pending = [_bound(step, own, target, runner.catalog) for step in rest]

    def keep(_: str = "") -> None:
        if own.sent:
            own.save(target.records)

    def leaving(step: Step) -> None:
        check_promise(step, revert_plan, own, runner.catalog)

    report = Report()
    if pending:
        wanted = wanted_paths(revert_plan.resolved, revert_plan.undo)
        report = await runner.run(pending, context, own, context.records, wanted=wanted, answered=keep, leaving=leaving)
    outcome = forward(steps, own, report, runner.catalog, left=why_left(revert_plan, own))
    try:
        keep()
    except GoexError as error:
        return replace(outcome, ok=False, summary=f"{outcome.summary} It couldn't be kept: {error.message}")
    return replace(outcome, summary=f"Done again. {outcome.summary}") if outcome.ok else outcome


def repeatable(own: CallRecord, steps: Sequence[Step], catalog: Catalog) -> tuple[str, ...]:
    """Requests of which it isn't known whether they happened, and that can be sent again: their key is the same."""
    by_id = {step.id: step for step in steps}
    return tuple(id for id in own.unsettled if id in by_id and catalog.method(by_id[id].method_id).idempotency)


def drop_repeatable(own: CallRecord, steps: Sequence[Step], catalog: Catalog) -> bool:
    """Forget what was said of such requests, so that they are sent again. Returns whether there were any."""
    found = repeatable(own, steps, catalog)
    for id in found:
        own.answers.pop(id, None)
    return bool(found)


async def _confirm_sent(
    runner: Runner, steps: Sequence[Step], own: CallRecord, done: CallRecord, target: Context, context: Context
) -> None:
    """After a crash: read back what was sent, so that it isn't sent again when it was taken back already."""
    for call in dict.fromkeys(step.call for step in steps if step.id in own.sent):
        verify = next((step for step in steps if step.call == call and step.role == "verify"), None)
        if call not in done.undone and all(own.done(step.id) for step in steps if step.call == call):
            _mark_undone(call, done, target)
        if call in done.undone or verify is None or any(ref.request not in own.answers for ref in _later(verify)):
            continue
        await runner.run((_bound(verify, own, target, runner.catalog),), context, own, None)
        if own.done(verify.id):
            _mark_undone(call, done, target)


def _pending(steps: Sequence[Step], own: CallRecord, done: CallRecord, target: Context, catalog: Catalog) -> list[Step]:
    """What is still to be sent, with what was answered meanwhile."""
    made = []
    for step in steps:
        sent_well = step.role == "undo" and own.done(step.id) and _is_needed(step, steps)
        if step.call not in done.undone and not sent_well:
            made.append(_bound(step, own, target, catalog))
    return made


def _later(step: Step) -> tuple[Ref, ...]:
    return refs_in([step.arguments, [expect.value for expect in step.request.expect]])


def _is_needed(step: Step, steps: Sequence[Step]) -> bool:
    """Whether another step needs the answer to this one: it made something."""
    return any(ref.request == step.id for other in steps for ref in _later(other))


def _cant_repeat(step: Step, steps: Sequence[Step], own: CallRecord, catalog: Catalog) -> bool:
    """Whether a request left, isn't known to have been answered, and would make the thing a second time."""
    unsettled = step.id in own.sent and (step.id not in own.answers or own.answers[step.id].doubtful)
    return unsettled and _is_needed(step, steps) and not catalog.method(step.method_id).idempotency


def _lost(steps: Sequence[Step], lost: Step, done: CallRecord) -> Outcome:
    calls = tuple(dict.fromkeys(step.call for step in steps))
    back = [call for call in calls if call in done.undone]
    said = f"{lost.method_id} was sent, and it isn't known whether it happened: sent again, it could do it twice."
    summary = f"{len(back)} of {counted(len(calls), 'call')} {'was' if len(calls) == 1 else 'were'} taken back. {said}"
    return Outcome(ok=False, summary=escape(summary), touched=True)


def _mark_undone(call: int, done: CallRecord, target: Context) -> None:
    done.undone.append(call)
    done.doubtful = [other for other in done.doubtful if other != call]
    done.save(target.records)


def _bound(step: Step, own: CallRecord, target: Context, catalog: Catalog) -> Step:
    """References to answers of an earlier run can't be filled by this run's gateway, so they are filled here."""
    refs = _later(step)
    if refs and all(ref.request in own.answers for ref in refs):
        return bind(step, own.answers, catalog, target.accounts[step.service, step.account])
    return step


def _differs(guard: Step, own: CallRecord, catalog: Catalog) -> tuple[str, ...] | None:
    answer = own.answers.get(guard.id)
    return difference(guard, answer, catalog.service(guard.service)) if answer is not None else None


def _at(step: Step, own: CallRecord, catalog: Catalog) -> str:
    """Where its answer isn't as expected, by names of fields alone."""
    answer = own.answers.get(step.id)
    fields = differing(step, answer, catalog.service(step.service)) if answer is not None else ()
    return f" (at {', '.join(fields)})" if fields else ""


def _raise_conflict(guard: Step, own: CallRecord, catalog: Catalog) -> None:
    lines = _differs(guard, own, catalog)
    if lines is None:
        return
    fields = _at(guard, own, catalog)
    raise Conflict(
        f"What {guard.method_id} shows isn't what the action left{fields}, so nothing was taken back.",
        next_step="Look at it in the service, and take it back there if you still want to.",
        difference=lines,
    )


def _taken_back(steps: Sequence[Step], done: Sequence[Step] | None, catalog: Catalog) -> str:
    """What the undo did, in words. `done` are the steps of what it took back; None where they aren't known, as of a
    program's requests: what such an undo makes may then be new."""
    by = ", ".join(dict.fromkeys(step.method_id for step in steps if step.role == "undo"))
    calls = {step.call for step in steps}
    confirmed = calls <= {step.call for step in steps if step.role == "verify"}
    anew = [step.method_id for step in steps if _makes_anew(step, done or (), catalog)]
    made = done is None and any(step.role == "undo" and step.request.method == "POST" for step in steps)
    words = ", and read back" if confirmed else ", without a read-back for all of it"
    if anew:
        words += f". What {', '.join(dict.fromkeys(anew))} made is a new object: its id and the links to it are others"
    elif confirmed and not made:
        words += ": it is gone or as it was before"
    return escape(f"Took back {len(calls)} call{'s' if len(calls) > 1 else ''} by {by}{words}.")


def _makes_anew(step: Step, done: Sequence[Step], catalog: Catalog) -> bool:
    """Whether an undo makes another object in the place of one that was deleted: it names none that there was."""
    if step.role != "undo" or step.request.method != "POST":
        return False
    call = next((each for each in done if each.role == "call" and each.call == step.call), None)
    if call is None or catalog.method(call.method_id).risk < Risk.DELETE or not call.request.path:
        return False
    own = call.request.path[-1]
    return own not in step.request.path and own not in step.arguments.values()


def _failed(
    steps: Sequence[Step], failing: Step, own: CallRecord, report: Report, done: CallRecord, catalog: Catalog
) -> Outcome:
    why = why_not(failing, own, report, catalog).rstrip(".")
    lines = _differs(failing, own, catalog) if failing.role == "guard" else None
    if failing.role == "verify":
        said = f"The read-back did not confirm it: {failing.method_id} {why}{_at(failing, own, catalog)}."
    elif lines is not None:
        said = f"The rest isn't what the action left{_at(failing, own, catalog)}, and stays."
    elif failing.role == "guard":
        said = f"It couldn't be compared with what the action left: {failing.method_id} {why}."
    else:
        said = f"{failing.method_id} {why}."
    calls = tuple(dict.fromkeys(step.call for step in steps))
    back = [call for call in calls if call in done.undone]
    summary = f"{len(back)} of {counted(len(calls), 'call')} {'was' if len(calls) == 1 else 'were'} taken back. {said}"
    return Outcome(
        ok=False,
        summary=escape(summary),
        ended=report.ended,
        exit_code=report.exit_code,
        touched=bool(own.sent),
        details=lines if lines is not None else said_of(failing, own, report),
    )
