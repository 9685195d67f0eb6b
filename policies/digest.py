"""The digest: one hash over everything that was shown and will run.

A *once* approval is for a digest. Execution recomputes it from the plan it is about to run; any difference,
however small, is another action and is asked for anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

from policies.actions import Need, Plan
from policies.jsonvalue import canonical

_DOMAIN = b"goex.v1.action\0"
_FIELDS = tuple(field.name for field in fields(Need))


def digest(plan: Plan, *, agent: str) -> str:
    """SHA-256 (hex) over agent, account, resolved request, catalog entry, program bytes, image id, folder,
    limits, undo and previewed bounds.

    The session isn't part of it: an approval outlives a reconnect of the same agent.
    """
    facts: dict[str, Any] = {
        "agent": agent,
        "action": plan.action.to_json(),
        "needs": [_need(need) for need in plan.needs],
        "undo_class": plan.undo_class.value,
        "undo_text": plan.undo_text,
        "undo": dict(plan.undo),
        "resolved": dict(plan.resolved),
        "bounds": dict(plan.bounds),
        "catalog_hash": plan.catalog_hash,
        "image_id": plan.image_id,
        "limits": dict(plan.limits),
        "lines": list(plan.lines),
    }
    return hashlib.sha256(_DOMAIN + canonical(facts)).hexdigest()


def _need(need: Need) -> dict[str, Any]:
    made = {name: getattr(need, name) for name in _FIELDS}
    made["risk"] = int(need.risk)
    if not need.filled:
        del made["filled"]  # plans of earlier versions have none
    return made
