"""Taking back and doing again: which requests, in which order, and what their answers mean. Pure.

Rules: only calls that were done are taken back, newest first. Every comparison (guard) comes before the first request
that changes something, so that a conflict leaves all as it is. The exception: when an older call's guard asks for the
very thing that a newer call's guard asks for, the two calls changed the same object, and the older comparison can only
hold after the newer call was taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Plan
from policies.catalog import Service
from policies.errors import InvalidInput, Unsupported
from policies.text import escape, shorten
from runtimes.rest.answers import Answer, Ledger
from runtimes.rest.binding import bind
from runtimes.rest.expecting import unmet
from runtimes.rest.planning import PlannedUndo
from runtimes.rest.steps import Step

COMMITTED = "What undo would need was dropped when the action was committed."


def planned_steps(plan: Plan, key: str = "steps") -> tuple[Step, ...]:
    """The steps of a plan, as they were shown and digested."""
    return tuple(Step.from_json(step) for step in plan.resolved[key])


def done_calls(plan: Plan, ledger: Ledger) -> tuple[Step, ...]:
    """The calls that changed something and weren't taken back since, in order."""
    return tuple(
        step
        for step in planned_steps(plan)
        if step.role == "call" and not step.read and ledger.done(step.id) and step.call not in ledger.undone
    )


def undo_steps(
    plan: Plan, ledger: Ledger, catalog: Catalog, accounts: Mapping[tuple[str, str], Account]
) -> tuple[Step, ...]:
    """The requests that take back what was done, their values literal.

    Raises Unsupported when a call has no way back, or what the way back needs wasn't in the answer.
    """
    calls = done_calls(plan, ledger)
    if not calls and ledger.unsettled:
        raise Unsupported(
            "It can't be known whether it happened, so it isn't taken back blindly.",
            next_step="Look at the service, and take it back there if it did.",
        )
    if not calls:
        raise Unsupported("No call of it changed anything that is still there, so there is nothing to take back.")
    known = {undo.call: undo for undo in map(PlannedUndo.from_json, ledger.undo or plan.undo["calls"])}
    stuck = [step for step in calls if step.call not in known]
    if stuck:
        names = ", ".join(f"{step.method_id} (call {step.call + 1})" for step in stuck)
        raise Unsupported(f"{names} can't be taken back.", next_step=plan.undo_text)
    bound: list[list[Step]] = []
    for step in reversed(calls):
        account = accounts.get((step.service, step.account))
        if account is None:
            raise Unsupported(f"The account {step.service}/{step.account} is gone, so nothing can be taken back there.")
        try:
            bound.append([bind(each, ledger.answers, catalog, account) for each in known[step.call].steps])
        except InvalidInput as error:
            raise Unsupported(
                f"{step.method_id} (call {step.call + 1}) can't be taken back: {error.message}",
                next_step="Look at the service, and take it back there.",
            ) from error
    return _ordered(bound)


def _ordered(calls: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    first: list[Step] = []
    then: list[Step] = []
    looked_at: list[tuple[object, ...]] = []
    for steps in calls:
        for step in steps:
            if step.role == "guard" and _object(step) not in looked_at:
                looked_at.append(_object(step))
                first.append(step)
            else:
                then.append(step)
    return (*first, *then)


def _object(step: Step) -> tuple[object, ...]:
    request = step.request
    return request.account, request.origin, request.method, request.path, dict(request.query), request.body


def difference(step: Step, answer: Answer, service: Service) -> tuple[str, ...] | None:
    """What a guard found to differ; None when its answer isn't a comparison at all (the service failed)."""
    if answer.status in (401, 407, 429) or answer.status >= 500:
        return None
    own = [expect for expect in step.request.expect if expect not in service.success]
    if not 200 <= answer.status < 300 and not any(expect.op == "status" for expect in own):
        return (f"{step.method_id} answered {answer.status}: what was done isn't there any more, or can't be seen",)
    lines = unmet(own, answer.status, answer.body)
    refusal = unmet((expect for expect in step.request.expect if expect in service.success), answer.status, answer.body)
    if refusal and not lines:
        return None
    said = (_said(answer),) if refusal else ()
    return (*lines, *refusal, *said) or (escape(answer.failed or "it isn't as it was left"),)


def _said(answer: Answer) -> str:
    """The beginning of an answer: services that fail with status 200 give their reason there."""
    text, cut = shorten(json.dumps(answer.body, ensure_ascii=False), 300)
    return escape(f"the service answered {text}{'…' if cut else ''}")
