"""Which item of a list an action made: what the list showed before it, and right after it. Pure.

Rules: all that was listed before is still there just as it was, one item is new, and that one has what was sent. Where
anything else is so, nobody knows which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, MissingValue, canonical, find

MOST = 10_000  # items of a list that are compared


def listed(answer: JsonValue, path: str) -> list[Any]:
    """The list at `path` of an answer. Raises InvalidInput where there is none, or one that is too long."""
    try:
        found = find(answer, path)
    except MissingValue:
        found = None
    if not isinstance(found, list):
        raise InvalidInput("what is there isn't answered as a list")
    if len(found) > MOST:
        raise InvalidInput(f"{len(found)} things are listed; at most {MOST} are compared")
    return found


def new_item(before: JsonValue, after: JsonValue, path: str, sent: Mapping[str, JsonValue]) -> JsonValue:
    """The item that the list at `path` of `after` has, and that of `before` hadn't. Raises InvalidInput."""
    known = {canonical(one) for one in listed(before, path)}
    now = {canonical(one): one for one in listed(after, path)}
    if len(now) != len(listed(after, path)) or not known <= now.keys():
        raise InvalidInput("something else in its list changed meanwhile, so that nobody knows which one it made")
    new = [one for text, one in now.items() if text not in known]
    if len(new) != 1:
        raise InvalidInput(f"{len(new)} things of its list are new, so that nobody knows which one it made")
    (made,) = new
    if not isinstance(made, Mapping) or any(
        name not in made or canonical(made[name]) != canonical(value) for name, value in sent.items()
    ):
        raise InvalidInput("what is new in its list isn't what was sent")
    return dict(made)
