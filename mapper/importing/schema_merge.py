"""What schemas of strangers are put together and cut apart with. Pure.

Rules: joining gives what both parts allow, and where that can't be said, no less; a reference that would judge one
value without end is cut, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeGuard

from mapper.json_schema import LOOSENED, REF

CHAIN = 24  # schemas that may judge one value, each by referring to the next


def joined(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """What both allow; where that can't be said, what the first allows."""
    made = dict(one)
    for key, value in two.items():
        if key not in made or made[key] == value or key == "description":
            made.setdefault(key, value)
        elif key == "properties":
            twice = {name: joined(made[key][name], each) for name, each in value.items() if name in made[key]}
            made[key] = {**made[key], **value, **twice}
        elif key == "required":
            made[key] = list(dict.fromkeys((*made[key], *value)))
        elif key == "type":
            both = [kind for kind in listed(made[key]) if kind in listed(value)]
            if "number" in listed(made[key]) and "integer" in listed(value) and "integer" not in both:
                both.append("integer")
            if both:
                made[key] = both[0] if len(both) == 1 else both
            else:
                made.pop(key)
                made = loosened(made, "types that exclude each other")
        elif key == "enum":
            made[key] = [choice for choice in made[key] if choice in value] or made[key]
        elif key.startswith("min"):
            made[key] = max(made[key], value)
        elif key.startswith("max"):
            made[key] = min(made[key], value)
        elif key == "additionalProperties":
            made[key] = value if value is True or made[key] is not True else True
        elif key == LOOSENED:
            made = loosened(made, value)
        elif key not in ("title", "format", "default", "readOnly", "deprecated"):
            made = loosened(made, f"{key} of several parts")
    return _listing(made)


def _listing(made: dict[str, Any]) -> dict[str, Any]:
    """The schema with each property that it needs among those that it lists: another part may need what this one has.
    One that only answers have can't be needed in what is sent."""
    needed, properties = made.get("required"), made.get("properties")
    if not needed or properties is None:
        return made
    kept = [name for name in needed if not properties.get(name, {}).get("readOnly")]
    missing: dict[str, Any] = {name: {} for name in kept if name not in properties}
    made = {**made, "required": kept, "properties": {**properties, **missing}}
    if not kept:
        del made["required"]
    return made


def listed(kind: Any) -> list[str]:
    return kind if isinstance(kind, list) else [kind]


def nullable(made: dict[str, Any]) -> None:
    if "type" in made:
        made["type"] = list(dict.fromkeys((*listed(made["type"]), "null")))
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]


def loosened(made: dict[str, Any], *what: str) -> dict[str, Any]:
    """The schema with a note of what it doesn't hold anymore."""
    if what:
        said = [part for text in (made.get(LOOSENED, ""), *what) for part in text.split("; ") if part]
        made[LOOSENED] = "; ".join(dict.fromkeys(said))[:200]
    return made


def number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def cut_rings(named: dict[str, Any]) -> None:
    """Cut references that judge one value without end, or by too long a chain: nothing could ever be judged by them."""
    heights: dict[str, int] = {}
    for first in named:
        if first in heights:
            continue
        stack: list[tuple[str, Iterator[dict[str, Any]]]] = [(first, iter(_judges(named[first])))]
        heights[first] = -1  # being looked at
        while stack:
            name, rest = stack[-1]
            holder = next(rest, None)
            if holder is None:
                below = [heights[_target(one)] for one in _judges(named[name])]
                heights[name] = 1 + max(below, default=0)
                if heights[name] > CHAIN:
                    for one in list(_judges(named[name])):
                        _cut(one, f"a chain of more than {CHAIN} references")
                    heights[name] = 1
                stack.pop()
                continue
            target = _target(holder)
            if target not in named or heights.get(target) == -1:
                _cut(holder, "a reference that leads back to itself")
            elif target not in heights:
                heights[target] = -1
                stack.append((target, iter(_judges(named[target]))))


def _judges(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The references that judge the same value as the schema itself does."""
    found, todo = [], [schema]
    while todo:
        one = todo.pop()
        if "$ref" in one:
            found.append(one)
        todo.extend(one.get("anyOf", ()))
    return found


def _target(holder: dict[str, Any]) -> str:
    return str(holder["$ref"]).removeprefix(REF)


def _cut(holder: dict[str, Any], why: str) -> None:
    del holder["$ref"]
    loosened(holder, why)
