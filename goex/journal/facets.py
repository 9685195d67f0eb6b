"""What an action is found by, as its stored plan says it."""

from __future__ import annotations

import json

from policies.services import Risk


def facets(plan: str) -> tuple[int, tuple[str, ...]]:
    """The risk of a stored plan, and the services that it touches, sorted; (0, ()) for none, or one that can't be read.

    As `Plan.risk` has it: what undoing would need doesn't count, except for a revert.
    """
    try:
        value = json.loads(plan) if plan else None
        if value is None:
            return 0, ()
        undoing = value["action"]["kind"] == "revert"
        needs = [need for need in value["needs"] if undoing or need["why"] not in ("undo", "read-back")]
        services = tuple(sorted({str(need["service"]) for need in needs}))
        return max((int(need["risk"]) for need in needs), default=int(Risk.DELETE)), services
    except (ValueError, TypeError, KeyError):
        return 0, ()
