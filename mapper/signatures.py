"""Methods as a model reads them in few words: a line, and the shape of the arguments.

The shape is JSON that looks like the arguments themselves: a key that ends in "!" must be there, a text says a value's
type and what it means, `a|b` its choices, `[…]` a list of such. What must be there is shown in all of it however small
the room is: a shape that leaves it out would ask for calls that validation then refuses. What a catalog says is data,
perhaps a stranger's: it stays within JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mapper.prompts import resolved
from policies.services import Method

MAX_LINE = 100  # characters of a method's line
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_POINTER = re.compile(r"(?:For (?:more|details|an example|examples)|See|Learn more)\b")
_MARK = re.compile(r"(?:Required|Optional)\. ?")  # the "!" of its key, or none, says so
_UNSET = re.compile(r"\b(?:output[- ]only|read[- ]only|deprecated)\b", re.IGNORECASE)
_DEEPEST = 6
_CHOICES = 12
_MORE = "…"  # a key whose text names what else may be given
_NAMES = 24
# (levels of what may be left out, characters of a note), until it has room.
_ROOMS = ((3, 90), (2, 70), (2, 30), (1, 50), (1, 24), (1, 0), (0, 40), (0, 0))


def line(method: Method) -> str:
    """What it does: the sentences that have room, of the first as much as has; not where to read more."""
    made = ""
    for sentence in _SENTENCE_END.split(" ".join(method.description.split())):
        longer = f"{made} {sentence}".strip()
        if len(longer) > MAX_LINE:
            return made or cut(sentence, MAX_LINE)
        if not _POINTER.match(sentence):
            made = longer
    return made


def signature(method: Method, room: int) -> dict[str, Any]:
    """What it does and what it takes, in about `room` characters, or more where so much must be there."""
    definitions = method.parameters.get("$defs", {})
    for depth, note in _ROOMS:
        takes = _object(method.parameters, definitions, depth, note, 0)
        if len(json.dumps(takes, ensure_ascii=False)) <= room:
            break
    return {"about": line(method), "takes": takes}


def cut(text: str, most: int) -> str:
    """Its beginning, up to the end of a word."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rsplit(' ', 1)[0]}…"


def _object(schema: Any, definitions: Mapping[str, Any], depth: int, note: int, level: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = [name for name in schema.get("required", ()) if name in properties]
    made = {f"{name}!": _shape(properties[name], definitions, depth - 1, note, level + 1) for name in required}
    optional = [name for name in properties if name not in required and not _unset(properties[name])]
    if depth > 0:
        made |= {name: _shape(properties[name], definitions, depth - 1, note, level + 1) for name in optional}
    elif optional:
        made[_MORE] = " ".join(optional[:_NAMES])
    return made


def _shape(schema: Any, definitions: Mapping[str, Any], depth: int, note: int, level: int) -> Any:
    if not isinstance(schema, dict) or level > _DEEPEST:
        return "any"
    schema = resolved(schema, definitions)
    if "properties" in schema:
        return _object(schema, definitions, depth, note, level)
    if "items" in schema:
        return [_shape(schema["items"], definitions, depth, note, level + 1)]
    branches = [one for one in schema.get("anyOf", ()) if isinstance(one, dict) and one.get("type") != "null"]
    if branches:
        return _shape(branches[0], definitions, depth, note, level + 1)
    said = cut(_MARK.sub("", str(schema.get("description", "")), count=1), note) if note else ""
    return f"{_kind(schema)}: {said}" if said else _kind(schema)


def _kind(schema: Mapping[str, Any]) -> str:
    choices = schema.get("enum")
    if choices:
        more = f"|{_MORE}" if len(choices) > _CHOICES else ""
        return "|".join(map(str, choices[:_CHOICES])) + more
    kinds = schema.get("type", "any")
    kind = "|".join(kinds) if isinstance(kinds, list) else str(kinds)
    form = schema.get("format", "")
    if form and kind == "string":
        kind = f"string ({form})"
    if "minimum" in schema or "maximum" in schema:
        kind += f" {schema.get('minimum', '')}..{schema.get('maximum', '')}"
    return f"{kind} = {schema['default']}" if "default" in schema else kind


def _unset(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(_UNSET.search(str(schema.get("description", ""))))
