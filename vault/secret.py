"""A secret that doesn't show itself.

`repr`, `str`, formatting, pickling, copying into JSON: none of them gives the value. `.reveal()` does, it is easy
to grep for, and few call it. Python can't promise that memory is wiped; SECURITY.md says so.
"""

from __future__ import annotations

import hmac
from typing import NoReturn, final


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
