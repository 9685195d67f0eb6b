"""The digest: one hash over everything that was shown and will run.

A *once* approval is for a digest. Execution recomputes it from the plan it is about to run; any difference,
however small, is another action and is asked for anew.
"""

from __future__ import annotations

import hashlib

from policies.actions import Plan
from policies.errors import GoexError
from policies.jsonvalue import JsonObject, canonical, parse
from policies.typed_json import to_json

_DOMAIN = b"goex.v1.action\0"
_LIMIT = 64 * 2**20  # stored plans come back whole


def digest(plan: Plan, *, agent: str) -> str:
    """SHA-256 (hex) over agent, account, resolved request, catalog entry, program bytes, image id, folder,
    limits, undo and previewed bounds.

    The session isn't part of it: an approval outlives a reconnect of the same agent.
    """
    return _digest(to_json(plan), agent)


def fits(text: str, wanted: str, *, agent: str) -> bool:
    """Whether `text` is a plan as it was stored, with this digest; it may be one that only another version of GoEx can
    read."""
    try:
        plan = parse(text, limit=_LIMIT)
        return isinstance(plan, dict) and "agent" not in plan and _digest(plan, agent) == wanted
    except GoexError:
        return False


def _digest(plan: JsonObject, agent: str) -> str:
    return hashlib.sha256(_DOMAIN + canonical({"agent": agent, **plan})).hexdigest()
