"""Several values that are one account's credential: sealed as one JSON object, each value under its place's name."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from vault.secret import Secret

_LONGEST = 8192  # characters of one value


def values_of(secret: Secret, names: Collection[str]) -> Mapping[str, Secret]:
    """The value for each of `names`. Raises InvalidInput, which quotes nothing, unless it is exactly these."""
    found: Any = None
    with contextlib.suppress(InvalidInput, ValueError):
        found = parse(secret.reveal().decode("utf-8"), what="The credential")
    if not isinstance(found, dict) or found.keys() != set(names) or not all(map(_is_value, found.values())):
        # Raised here, so that the error doesn't carry the one that quotes the secret.
        raise InvalidInput(
            f"This service wants {len(names)} values at once: {', '.join(sorted(names))}.",
            next_step=f"Give them as one JSON object: {canonical(dict.fromkeys(sorted(names), '…')).decode('utf-8')}",
        )
    return {name: Secret(value) for name, value in found.items()}


def _is_value(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST
