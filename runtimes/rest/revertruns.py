"""Running an undo and a redo: compare and set, read back, and finish what a crash cut off.

Rules: an undo that is run again skips what its target's record says is taken back; what was begun and not confirmed is
read back before anything is sent a second time. A conflict is raised only while nothing was changed; later it is an
outcome. A pair that didn't do what it promised is noted as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mapper.catalog import Catalog
from policies.actions import Outcome, Plan
from policies.errors import Conflict, GoexError
from policies.text import escape
from runtimes.base import Context
from runtimes.rest.answers import Ledger
from runtimes.rest.binding import bind
from runtimes.rest.outcomes import forward, why_not
from runtimes.rest.reverting import difference, planned_steps
from runtimes.rest.run import Report, Runner, wanted_paths
from runtimes.rest.steps import Step
from runtimes.rest.values import refs_in


async def undo(runner: Runner, revert_plan: Plan, done: Ledger, target: Context, context: Context) -> Outcome:
    """Take back what `done` (the target's record) says was done. Raises Conflict with the difference."""
    steps = planned_steps(revert_plan)
    own = Ledger.load(context.records) or Ledger()
    if own.sent:
        await _confirm_begun(runner, steps, own, done, target, context)
    pending = [step for step in steps if step.call not in done.undone]

    def note_undone(request: str) -> None:
        call = next(step.call for step in steps if step.id == request)
        if call not in done.undone and all(own.done(step.id) for step in steps if step.call == call):
            _mark_undone(call, done, target)

    report = Report()
    if pending:
        report = await runner.run(pending, context, own, context.records, answered=note_undone)
    failing = next((step for step in pending if not own.done(step.id)), None)
    if failing is None:
        return Outcome(ok=True, summary=_taken_back(steps), ended=report.ended, exit_code=report.exit_code)
    begun = {step.call for step in steps if step.id in own.sent} - set(done.undone)
    if begun - set(done.doubtful):
        done.doubtful = sorted({*done.doubtful, *begun})
        with suppress(GoexError):  # what was sent must be said, whether or not it can be kept
            done.save(target.records)
    if failing.role == "guard" and not own.sent:
        _raise_conflict(failing, own, runner.catalog)
    if failing.role != "guard":
        pair = {"call": failing.call, "request": failing.id, "method": failing.method_id}
        context.note("undo-failed", {**pair, "why": why_not(failing, own, report)})
    return _failed(steps, failing, own, report, done, runner.catalog)


async def redo(runner: Runner, revert_plan: Plan, own: Ledger, target: Context, context: Context) -> Outcome:
    """Make the calls again. What was answered becomes the target's record, so that a later undo takes *it* back."""
    steps = planned_steps(revert_plan)
    own.turn, own.undo = int(revert_plan.resolved["turn"]), revert_plan.undo["calls"]
    # What follows a call that didn't go well isn't sent, whether or not a crash came in between.
    stopped = any(not answer.well for answer in own.answers.values())
    rest = [] if stopped else [step for step in steps if step.id not in own.answers]
    pending = [_bound(step, own, target, runner.catalog) for step in rest]

    def keep(_: str = "") -> None:
        if own.sent:
            own.save(target.records)

    report = Report()
    if pending:
        wanted = wanted_paths(revert_plan.resolved, revert_plan.undo)
        report = await runner.run(pending, context, own, context.records, wanted=wanted, answered=keep)
    outcome = forward(steps, own, report)
    try:
        keep()
    except GoexError as error:
        return replace(outcome, ok=False, summary=f"{outcome.summary} It couldn't be kept: {error.message}")
    return replace(outcome, summary=f"Done again. {outcome.summary}") if outcome.ok else outcome


async def _confirm_begun(
    runner: Runner, steps: Sequence[Step], own: Ledger, done: Ledger, target: Context, context: Context
) -> None:
    """After a crash: read back what was sent, so that it isn't sent again when it was taken back already."""
    for call in dict.fromkeys(step.call for step in steps if step.id in own.sent):
        verify = next((step for step in steps if step.call == call and step.role == "verify"), None)
        if call not in done.undone and all(own.done(step.id) for step in steps if step.call == call):
            _mark_undone(call, done, target)
        if call in done.undone or verify is None:
            continue
        await runner.run((verify,), context, own, None)
        if own.done(verify.id):
            _mark_undone(call, done, target)


def _mark_undone(call: int, done: Ledger, target: Context) -> None:
    done.undone.append(call)
    done.doubtful = [other for other in done.doubtful if other != call]
    done.save(target.records)


def _bound(step: Step, own: Ledger, target: Context, catalog: Catalog) -> Step:
    """References to answers of an earlier run can't be filled by this run's gateway, so they are filled here."""
    refs = refs_in(step.arguments)
    if refs and all(ref.request in own.answers for ref in refs):
        return bind(step, own.answers, catalog, target.accounts[step.service, step.account])
    return step


def _differs(guard: Step, own: Ledger, catalog: Catalog) -> tuple[str, ...] | None:
    answer = own.answers.get(guard.id)
    return difference(guard, answer, catalog.service(guard.service)) if answer is not None else None


def _raise_conflict(guard: Step, own: Ledger, catalog: Catalog) -> None:
    lines = _differs(guard, own, catalog)
    if lines is None:
        return
    raise Conflict(
        f"What {guard.method_id} shows isn't what the action left, so nothing was taken back.",
        next_step="Look at it in the service, and take it back there if you still want to.",
        difference=lines,
    )


def _taken_back(steps: Sequence[Step]) -> str:
    by = ", ".join(dict.fromkeys(step.method_id for step in steps if step.role == "undo"))
    calls = {step.call for step in steps}
    confirmed = calls <= {step.call for step in steps if step.role == "verify"}
    words = "and read back: it is gone or as it was before" if confirmed else "without a read-back for all of it"
    return escape(f"Took back {len(calls)} call{'s' if len(calls) > 1 else ''} by {by}, {words}.")


def _failed(
    steps: Sequence[Step], failing: Step, own: Ledger, report: Report, done: Ledger, catalog: Catalog
) -> Outcome:
    why = why_not(failing, own, report).rstrip(".")
    lines = _differs(failing, own, catalog) if failing.role == "guard" else None
    if failing.role == "verify":
        said = f"The read-back did not confirm it: {failing.method_id} {why}."
    elif lines is not None:
        said = f"The rest isn't what the action left ({'; '.join(lines)}), and stays."
    elif failing.role == "guard":
        said = f"It couldn't be compared with what the action left: {failing.method_id} {why}."
    else:
        said = f"{failing.method_id} {why}."
    calls = tuple(dict.fromkeys(step.call for step in steps))
    back = [call for call in calls if call in done.undone]
    summary = f"{len(back)} of {len(calls)} calls were taken back. {said}"
    return Outcome(
        ok=False, summary=escape(summary), ended=report.ended, exit_code=report.exit_code, touched=bool(own.sent)
    )
