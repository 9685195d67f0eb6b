"""The keys by which a service knows that a request was sent before."""

from __future__ import annotations

import hashlib
import re

# A parameter, or a field of a body, that is such a key.
_KEY = re.compile(
    r"idempoten(t|cy)[-_]?(key|token|id)|(client[-_]?)?request[-_]?(id|token)|client[-_]?token|enforce[-_]?nonce"
    r"|dedup(e|lication)[-_]?(id|key)",
    re.IGNORECASE,
)


def action_key(action_id: str, call: int, turn: str = "") -> str:
    """A key for one call of one action: the same after a restart, at most 40 characters, not a secret.

    `turn` tells repetitions and undos apart: a service must not take a second sending for the first.
    """
    text = f"goex.action.key\0{action_id}\0{call}\0{turn}"
    return f"goex-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def is_key(name: str) -> bool:
    """Whether a service may know by a value of that name that a request was sent before: it then answers with what is
    there already."""
    return _KEY.fullmatch(name) is not None
