"""A secret that doesn't show itself.

`repr`, `str`, formatting, pickling, copying into JSON: none of them gives the value. `.reveal()` does, it is easy
to grep for, and few call it. Python can't promise that memory is wiped; SECURITY.md says so.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Collection, Mapping
from typing import Any, NoReturn, final

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse

_LONGEST = 8192  # characters of one of several values


@final
class Secret:
    """Bytes that only `.reveal()` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes | str) -> None:
        self._value = value.encode("utf-8") if isinstance(value, str) else bytes(value)

    def reveal(self) -> bytes:
        """The value itself. Each caller is a place to review."""
        return self._value

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> NoReturn:
        raise TypeError("a Secret isn't hashable: its hash would tell")

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret can't be pickled")


def hex_of(secret: Secret) -> str:
    """Its bytes as hexadecimal digits, to be sealed."""
    return secret.reveal().hex()


def of_hex(digits: str) -> Secret:
    return Secret(bytes.fromhex(digits))


def text_of(secret: Secret) -> str:
    """It as text, to be sealed."""
    return secret.reveal().decode("utf-8")


def values_of(secret: Secret, names: Collection[str]) -> Mapping[str, Secret]:
    """Return the value for each of `names`, of several that are one credential: a JSON object. Raises InvalidInput,
    which quotes nothing, unless it has exactly these."""
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
