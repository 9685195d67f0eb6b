"""Expectations, read by the daemon: to say what differs, and what a probe found.

The gateway is who enforces them; here they are only explained, on the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from policies.display_text import escape, shorten
from policies.jsonvalue import JsonValue, MissingValue, canonical, find
from policies.services import Expect
from runtimes.gateway.response_values import holds_of_list

_MISSING: Any = object()


def unmet(expects: Iterable[Expect], status: int, body: JsonValue) -> tuple[str, ...]:
    """A line for each expectation that doesn't hold, escaped: what it means, what was expected, what is there."""
    return tuple(_difference(expect, status, body) for expect in expects if not holds(expect, status, body))


def holds(expect: Expect, status: int, body: JsonValue) -> bool:
    """Whether one expectation (its value literal) holds. An unknown operation doesn't."""
    if expect.op == "status":
        return isinstance(expect.value, list | tuple) and status in expect.value
    found = _found(expect, body)
    match expect.op:
        case "exists":
            return found is not _MISSING
        case "absent":
            return found is _MISSING
        case "equals":
            return found is not _MISSING and canonical(found) == canonical(expect.value)
        case "not_equals":
            return found is _MISSING or canonical(found) != canonical(expect.value)
        case "contains" | "lacks":
            return body is not None and holds_of_list(expect.op, [] if found is _MISSING else found, expect.value)
    return False


def _found(expect: Expect, body: JsonValue) -> Any:
    try:
        return find(body, expect.path)
    except MissingValue:
        return _MISSING


def _difference(expect: Expect, status: int, body: JsonValue) -> str:
    says = f"{expect.says}: " if expect.says else ""
    if expect.op == "status":
        return escape(f"{says}expected status {_shown(expect.value)}, and it is {status}")
    found = _found(expect, body)
    there = "nothing is there" if found is _MISSING else f"{_shown(found)} is there"
    wanted = {
        "exists": "something was expected",
        "absent": "nothing was expected",
        "equals": f"{_shown(expect.value)} was expected",
        "not_equals": f"anything but {_shown(expect.value)} was expected",
        "contains": f"every one of {_shown(expect.value)} was expected",
        "lacks": f"none of {_shown(expect.value)} was expected",
    }[expect.op]
    return escape(f"{says}at {expect.path} {wanted}, {there}")


def _shown(value: JsonValue) -> str:
    text, cut = shorten(json.dumps(value, ensure_ascii=False), 300)
    return f"{text}… ({cut} more characters)" if cut else text
