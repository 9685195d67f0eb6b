"""A part of what an action answered, in a bounded size.

Rules: the bound holds whatever a service answered, and what is left out is counted, never dropped silently. Lists give
whole items while they fit, texts whole characters; what is too large within an item is cut there, and said to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goex.rpc import goex_pb2 as pb
from policies.display_text import counted
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, find

USUAL_BYTES = 6_400  # with what stands around it, below 2,000 tokens of 3.5 bytes
MOST_BYTES = 1_000_000
_LEAST_BYTES = 200
_MOST_FIELDS = 64


def page(outcome: JsonValue, kind: str, request: pb.ResultRequest) -> pb.ResultReply:
    """What is asked for of an outcome. Raises InvalidInput."""
    if len(request.fields) > _MOST_FIELDS or any(len(name) > 200 for name in request.fields):
        raise InvalidInput(f"At most {_MOST_FIELDS} fields are named.", next_step="Name fewer.")
    room = max(min(request.max_bytes or USUAL_BYTES, MOST_BYTES), _LEAST_BYTES)
    value = find(outcome, request.path) if request.path else answer(outcome, kind)
    value = _only(value, tuple(request.fields))
    if isinstance(value, list):
        return _items(value, request.offset, request.limit or len(value), room)
    if isinstance(value, str):
        return _text(value, request.offset, request.limit or len(value), room)
    shown, cut = shrunk(value, room)
    return pb.ResultReply(value_json=_json(shown), total=1, cut=cut)


def answer(outcome: JsonValue, kind: str) -> JsonValue:
    """What an agent waits for: of one call its body, of several each one's, of a program what it printed."""
    if not isinstance(outcome, Mapping):
        return outcome
    results = outcome.get("results") or []
    if kind == "calls" or (kind in ("sql", "mongo") and results):
        bodies = [_body(each) if isinstance(each, Mapping) else each for each in results]
        return bodies[0] if len(bodies) == 1 else bodies
    if outcome.get("stdout") or outcome.get("stderr"):
        kept = ("exit_code", "stdout", "stderr", "changes", "refused")
        said = {name: outcome[name] for name in kept if outcome.get(name)}
        return said["stdout"] if set(said) == {"stdout"} else said
    return {name: outcome[name] for name in ("summary", "changes", "refused") if outcome.get(name)}


def _body(result: Mapping[str, JsonValue]) -> JsonValue:
    """The body of one answer, or its text where that isn't JSON."""
    body = result.get("body", result)
    return result["text"] if body is None and result.get("text") else body


def shrunk(value: JsonValue, room: int) -> tuple[JsonValue, bool]:
    """`value` in at most about `room` bytes, and whether anything was left out."""
    if len(canonical(value)) <= room:
        return value, False
    for most, depth in ((room // 2, 8), (400, 6), (120, 5), (60, 4), (20, 3)):
        items = max(1, room // (most + 40))
        made = _cut(value, most, items, depth)
        if len(canonical(made)) <= room:
            return made, True
    return "… (left out: ask for its fields or by a path)", True


def _cut(value: JsonValue, most: int, items: int, depth: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}… ({counted(len(value) - most, 'more character')})"
    if isinstance(value, Mapping):
        if depth == 0:
            return f"… ({len(value)} fields)"
        made: dict[str, Any] = {k: _cut(v, most, items, depth - 1) for k, v in [*value.items()][: items * 2]}
        if len(value) > items * 2:
            made["…"] = f"{len(value) - items * 2} more fields"
        return made
    if isinstance(value, list | tuple):
        if depth == 0:
            return f"… ({len(value)} items)"
        left = len(value) - items
        shown = [_cut(each, most, items, depth - 1) for each in value[:items]]
        return [*shown, f"… ({left} more)"] if left > 0 else shown
    return value


def _only(value: JsonValue, fields: tuple[str, ...]) -> JsonValue:
    if not fields:
        return value
    if isinstance(value, list):
        return [_only(each, fields) for each in value]
    if isinstance(value, Mapping):
        return {name: value[name] for name in fields if name in value}
    return value


def _items(value: list[JsonValue], offset: int, limit: int, room: int) -> pb.ResultReply:
    made: list[JsonValue] = []
    left, cut = room - 2, False
    for each in value[offset : offset + limit]:
        size = len(canonical(each)) + 1
        if size > left and made:
            break
        if size > left:
            each, cut = shrunk(each, left - 1)
            size = len(canonical(each)) + 1
        made.append(each)
        left -= size
    end = offset + len(made)
    return pb.ResultReply(
        value_json=_json(made), total=len(value), next_offset=end if made and end < len(value) else 0, cut=cut
    )


def _text(value: str, offset: int, limit: int, room: int) -> pb.ResultReply:
    part = value[offset : offset + min(limit, room - 2)]
    while len(canonical(part)) > room:
        part = part[: max(1, len(part) * (room - 2) // len(canonical(part)))]
    end = offset + len(part)
    return pb.ResultReply(value_json=_json(part), total=len(value), next_offset=end if part and end < len(value) else 0)


def _json(value: JsonValue) -> str:
    return canonical(value).decode("utf-8")
