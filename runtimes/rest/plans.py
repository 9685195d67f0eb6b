"""The four plans of this runtime: do, undo, do again, commit. Pure: what is shown, granted and digested.

Which permissions a plan needs: the least scopes are chosen first over what must be granted for it to run, and then,
given those, over what its undo needs beside that: a scope that only the undo has a use for never stands in for a lesser
one that the action can do with. Each need says what for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from mapper.catalog import Catalog
from mapper.least_scopes import ScopeId, scopes_of_calls
from policies.actions import ApiCalls, Call, Need, Plan, Revert, UndoClass
from policies.errors import Unsupported
from policies.jsonvalue import JsonObject, canonical
from policies.reversions import ReversionSet
from policies.services import believed_risk
from policies.typed_json import to_json
from runtimes.base import Context, dropping
from runtimes.rest.plan_text import call_lines, source_lines, step_lines, undo_text
from runtimes.rest.planner import PlannedCalls, plan_calls
from runtimes.rest.records import CallRecord
from runtimes.rest.references import plain, refs_in
from runtimes.rest.steps import Role, Step
from runtimes.rest.undo import done_calls, planned_steps, undo_steps
from runtimes.sandbox.contract import Profile

Why = Literal["action", "pre-read", "read-back", "undo", "probe"]

_WHY: dict[Role, Why] = {
    "call": "action",
    "pre": "pre-read",
    "after": "pre-read",
    "guard": "read-back",
    "verify": "read-back",
    "undo": "undo",
    "probe": "probe",
}

# What a plan shows of its way back and doesn't ask for (`Plan.required`).
LATER: frozenset[Why] = frozenset({"read-back", "undo"})

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
    call_record: CallRecord,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan that takes back what was done, with the values that were answered. Raises Unsupported."""
    steps = undo_steps(plan, call_record, catalog, context.accounts, reversions)
    lines = [line for step in steps for line in step_lines(step)]
    for request in call_record.unsettled:
        lines.append(f"{request} was sent, and it isn't known whether it happened: this doesn't take it back.")
    return Plan(
        action=revert,
        needs=needs_of(steps, catalog, context.granted, context.intent),
        undo_class=UndoClass.COMPENSATING,
        undo_text=f"goex redo {revert.target} would send the calls again. {AGAIN}",
        resolved={"verb": "undo", "turn": call_record.turn, "steps": [to_json(step) for step in steps], "probes": []},
        bounds={"requests": len(steps)},
        catalog_hash=_entries(catalog, steps),
        image_id=image_id,
        limits=_limits(profile),
        lines=tuple(lines),
    )


def assess_redo(
    revert: Revert,
    plan: Plan,
    call_record: CallRecord,
    context: Context,
    catalog: Catalog,
    profile: Profile,
    image_id: str,
    reversions: ReversionSet | None = None,
) -> Plan:
    """The plan that makes the same calls once more, as far as they went well. Raises Unsupported, InvalidInput."""
    assert isinstance(plan.action, ApiCalls)
    if done_calls(plan, call_record):
        raise Unsupported("What it did is still there, so there is nothing to do again.")
    done = [step for step in planned_steps(plan) if step.role == "call" and call_record.done(step.id)]
    if not done:
        raise Unsupported("No call of it went well, so there is nothing to do again.")
    again = ApiCalls(calls=plan.action.calls[: len(done)])
    turn = call_record.turn + 1
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
        needs=needs_of(
            shown,
            catalog,
            context.granted,
            context.intent,
            filled={call.index: call.call.filled for call in planned.calls if call.call.filled},
        ),
        undo_class=planned.undo_class,
        undo_text=undo_text(planned),
        resolved={
            "verb": "do",
            "turn": 0,
            "steps": [to_json(step) for step in planned.steps],
            "probes": [to_json(step) for step in planned.probes],
        },
        bounds={"requests": len(planned.steps)},
        catalog_hash=_entries(catalog, shown),
        image_id=image_id,
        limits=_limits(profile),
        lines=(*call_lines(planned), *source_lines(services)),
        undo={"calls": [to_json(each) for each in planned.undos]},
    )


def _entries(catalog: Catalog, steps: Iterable[Step]) -> str:
    return catalog.entry_hash(dict.fromkeys(step.method_id for step in steps))


def _limits(profile: Profile) -> JsonObject:
    return {**to_json(profile.limits), "image": profile.image, "runtime": profile.runtime}


def needs_of(
    steps: Iterable[Step],
    catalog: Catalog,
    granted: frozenset[ScopeId],
    words: str = "",
    *,
    filled: Mapping[int, tuple[str, ...]] | None = None,
) -> tuple[Need, ...]:
    """One need for each account, scope and purpose, in the order in which they first come up. `words`: the person's
    request, if there is one; `filled`: the arguments of each call whose values came from answers."""
    steps = tuple(steps)
    first = [step for step in steps if _WHY[step.role] not in LATER]
    now = scopes_of_calls(catalog, _calls(first), granted, words=words)
    rest = [step for step in steps if _WHY[step.role] in LATER]
    later = scopes_of_calls(catalog, _calls(rest), granted | frozenset(now), words=words)
    under = {id(step): scope for step, scope in zip((*first, *rest), (*now, *later), strict=True)}
    groups: dict[tuple[ScopeId, Why], list[Step]] = {}
    for step in steps:
        groups.setdefault((under[id(step)], _WHY[step.role]), []).append(step)
    needs = (_need(scope, why, members, catalog) for (scope, why), members in groups.items())
    if not filled:
        return tuple(needs)
    named = {key: (name for step in members for name in filled.get(step.call, ())) for key, members in groups.items()}
    return tuple(
        need if key[1] in LATER else replace(need, filled=tuple(dict.fromkeys(named[key])))
        for key, need in zip(groups, needs, strict=True)
    )


def _calls(steps: Iterable[Step]) -> tuple[Call, ...]:
    return tuple(
        Call(service=s.service, method=s.method, arguments=plain(s.arguments), account=s.account) for s in steps
    )


def _need(scope: ScopeId, why: Why, steps: list[Step], catalog: Catalog) -> Need:
    service, account, name = scope
    return Need(
        service=service,
        account=account,
        scope=name,
        risk=max(believed_risk(catalog.service(step.service), catalog.method(step.method_id)) for step in steps),
        methods=tuple(dict.fromkeys(step.method for step in steps)),
        arguments=_distinct([_arguments(step, catalog) for step in steps]),
        why=why,
    )


def _distinct(arguments: list[JsonObject]) -> tuple[JsonObject, ...]:
    return tuple({canonical(each): each for each in arguments}.values())


def _arguments(step: Step, catalog: Catalog) -> JsonObject:
    """The arguments that a caller gives, so that a standing grant can be bound to their values; and whatever an answer
    fills in."""
    own = catalog.method(step.method_id).parameters["properties"]
    return {name: plain(value) for name, value in step.arguments.items() if name in own or refs_in(value)}
