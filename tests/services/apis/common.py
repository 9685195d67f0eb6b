"""What these services share: routes, the credential, and a state that can be compared.

Rules: each refuses a wrong credential as the real one does, answers with the real one's shapes and errors as far as the
manifests use them, and shows all that it keeps by `state`. None of them knows the manifests.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote

from tests.runtimes.rest.support import TOKEN, Hit, Service

Said = tuple[int, Any]
NOTHING = b""  # an empty body


class Api(Service):
    """One service. `routes`: verb, pattern of the raw path below `base`, name of the method that answers."""

    base: ClassVar[str] = ""
    credential: ClassVar[str] = f"Bearer {TOKEN}"
    routes: ClassVar[list[tuple[str, str, str]]] = []

    def __init__(self) -> None:
        super().__init__()
        self.clock = 0
        self.kept: dict[str, Any] = {}

    def handle(self, hit: Hit) -> Said:
        if hit.headers.get("authorization") != self.credential:
            return self.error(401, "invalid credentials")
        for verb, pattern, name in self.routes:
            match = re.fullmatch(self.base + pattern, hit.path)
            if match and verb == hit.method:
                answer: Callable[..., Said] = getattr(self, name)
                return answer(hit, *(unquote(group) for group in match.groups()))
        return self.error(404, f"no such endpoint: {hit.method} {hit.path}")

    def error(self, status: int, message: str) -> Said:
        raise NotImplementedError

    def tick(self) -> int:
        """Another number at each call: for ids, versions and times."""
        self.clock += 1
        return self.clock

    def renew(self) -> None:
        """Give everything another version, as if somebody had changed it."""
        raise NotImplementedError

    def state(self) -> Any:
        """All that is kept, without what counts changes."""
        return copy.deepcopy(self.kept)


def values(hit: Hit, name: str) -> list[str]:
    """Every value that the query gives `name`."""
    return [value for key, value in parse_qsl(hit.raw_query, keep_blank_values=True) if key == name]


def merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """JSON merge patch (RFC 7396), as Google's PATCH works: null removes."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
