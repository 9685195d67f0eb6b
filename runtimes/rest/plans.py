"""The four plans of this runtime: do, undo, do again, commit. Pure: what is shown, granted and digested."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mapper.catalog import Catalog
from policies.actions import ApiCalls, Plan, Revert, UndoClass
from policies.errors import Unsupported
from policies.jsonvalue import JsonObject
from policies.reversions import ReversionSet
from runtimes.base import Context, dropping
from runtimes.rest.needs import LATER, needs_of
from runtimes.rest.plan_text import call_lines, source_lines, step_lines, undo_text
from runtimes.rest.planner import PlannedCalls, plan_calls
from runtimes.rest.records import Ledger
from runtimes.rest.steps import Step
from runtimes.rest.undo import done_calls, planned_steps, undo_steps
from runtimes.sandbox.contract import Profile

AGAIN = "It is sent again as something new: replies and reactions to the first one don't come back."


def assess_calls(
    action: ApiCalls,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan of some calls, each with the undo that the reversion set has for it. Raises InvalidInput."""
    planned = plan_calls(action, context.accounts, catalog, context.action_id, reversions=reversions)
    return _forward_plan(planned, context, catalog, profile, image_id)


def assess_undo(
    revert: Revert,
    plan: Plan,
    ledger: Ledger,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan that takes back what was done, with the values that were answered. Raises Unsupported."""
    steps = undo_steps(plan, ledger, catalog, context.accounts, reversions)
    lines = [line for step in steps for line in step_lines(step)]
    for request in ledger.unsettled:
        lines.append(f"{request} was sent, and it isn't known whether it happened: this doesn't take it back.")
    return Plan(
        action=revert,
        needs=needs_of(steps, catalog, context.granted, context.intent),
        undo_class=UndoClass.COMPENSATING,
        undo_text=f"goex redo {revert.target} would send the calls again. {AGAIN}",
        resolved={"verb": "undo", "turn": ledger.turn, "steps": [step.to_json() for step in steps], "probes": []},
        bounds={"requests": len(steps)},
        catalog_hash=_entries(catalog, steps),
        image_id=image_id,
        limits=_limits(profile),
        lines=tuple(lines),
    )


def assess_redo(
    revert: Revert,
    plan: Plan,
    ledger: Ledger,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan that makes the same calls once more, as far as they went well. Raises Unsupported, InvalidInput."""
    assert isinstance(plan.action, ApiCalls)
    if done_calls(plan, ledger):
        raise Unsupported("What it did is still there, so there is nothing to do again.")
    done = [step for step in planned_steps(plan) if step.role == "call" and ledger.done(step.id)]
    if not done:
        raise Unsupported("No call of it went well, so there is nothing to do again.")
    again = ApiCalls(calls=plan.action.calls[: len(done)])
    turn = ledger.turn + 1
    planned = plan_calls(
        again, context.accounts, catalog, context.action_id, turn=f"redo-{turn}", reversions=reversions
    )
    made = _forward_plan(planned, context, catalog, profile, image_id)
    return replace(
        made,
        action=revert,
        # A revert must be granted all that it needs, and doing again needs no way back.
        needs=tuple(need for need in made.needs if need.why not in LATER),
        lines=(*made.lines, AGAIN),
        resolved={**made.resolved, "verb": "redo", "turn": turn},
    )


def assess_commit(revert: Revert, plan: Plan) -> Plan:
    """The plan of a commit. It sends nothing; what it takes away is the way back."""
    return Plan(
        action=revert,
        needs=(dropping(revert),),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="What undo would need is dropped, and can't be brought back.",
        resolved={"verb": "commit", "steps": [], "probes": []},
        bounds={"requests": 0},
        catalog_hash=plan.catalog_hash,
        image_id="",
        limits={},
        lines=(f"Drop what undo of {revert.target} would need.",),
    )


def _forward_plan(planned: PlannedCalls, context: Context, catalog: Catalog, profile: Profile, image_id: str) -> Plan:
    undo = [step for each in planned.undos for step in each.steps]
    shown = (*planned.steps, *undo, *planned.probes)
    services = (catalog.service(name) for name in dict.fromkeys(step.service for step in shown))
    return Plan(
        action=planned.action,
        needs=needs_of(shown, catalog, context.granted, context.intent),
        undo_class=planned.undo_class,
        undo_text=undo_text(planned),
        resolved={
            "verb": "do",
            "turn": 0,
            "steps": [step.to_json() for step in planned.steps],
            "probes": [step.to_json() for step in planned.probes],
        },
        bounds={"requests": len(planned.steps)},
        catalog_hash=_entries(catalog, shown),
        image_id=image_id,
        limits=_limits(profile),
        lines=(*call_lines(planned), *source_lines(services)),
        undo={"calls": [each.to_json() for each in planned.undos]},
    )


def _entries(catalog: Catalog, steps: Iterable[Step]) -> str:
    return catalog.entry_hash(dict.fromkeys(step.method_id for step in steps))


def _limits(profile: Profile) -> JsonObject:
    return {**profile.limits.to_json(), "image": profile.image, "runtime": profile.runtime}
