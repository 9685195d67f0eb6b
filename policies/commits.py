"""A commit of several actions: one plan, which holds what the plan of each is, so that each is judged as it would be by
itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policies.actions import Need, Plan, Revert
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from policies.typed_json import from_json, to_json


def together(plans: Mapping[str, Plan]) -> JsonObject:
    """What the plan of several commits holds of each of these, by target: what `each_of` reads."""
    return {
        id: {
            "needs": [to_json(need) for need in one.needs],
            "resolved": dict(one.resolved),
            "bounds": dict(one.bounds),
        }
        for id, one in plans.items()
    }


def each_of(plan: Plan) -> tuple[Plan, ...]:
    """The plan of each of several commits; none for any other plan. Raises InvalidInput where it doesn't say them."""
    if not isinstance(plan.action, Revert) or not plan.action.also:
        return ()
    each = plan.resolved.get("each")
    if not isinstance(each, Mapping) or set(each) != set(plan.action.targets):
        raise InvalidInput("This commit doesn't say what it is of.", next_step="Ask for it again.")
    return tuple(
        replace(
            plan,
            action=replace(plan.action, target=id, also=()),
            needs=from_json(tuple[Need, ...], one.get("needs"), "The plan of this commit"),
            resolved=one["resolved"],
            bounds=one["bounds"],
        )
        for id, one in ((id, each[id]) for id in plan.action.targets)
    )
