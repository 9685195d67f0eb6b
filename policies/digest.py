"""The digest: one hash over everything that was shown and will run.

A *once* approval is for a digest. Execution recomputes it from the plan it is about to run; any difference,
however small, is another action and is asked for anew.
"""

from __future__ import annotations

import hashlib

from policies.actions import Plan
from policies.jsonvalue import canonical
from policies.typed_json import to_json

_DOMAIN = b"goex.v1.action\0"


def digest(plan: Plan, *, agent: str) -> str:
    """SHA-256 (hex) over agent, account, resolved request, catalog entry, program bytes, image id, folder,
    limits, undo and previewed bounds.

    The session isn't part of it: an approval outlives a reconnect of the same agent.
    """
    facts = {"agent": agent, **to_json(plan)}
    return hashlib.sha256(_DOMAIN + canonical(facts)).hexdigest()
