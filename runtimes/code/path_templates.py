"""Paths of methods as a program's rules have them: words, and slots that are held to values or to a form. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mapper.catalog import Catalog
from policies.jsonvalue import JsonValue, canonical
from policies.services import Method
from runtimes.gateway.plan import MethodRule, Slot

HOLE = re.compile(r"\{(?P<several>\+?)(?P<name>[^{}]+)\}(?P<end>[^{}]*)")
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_REFERENCES = 5  # that lead to an argument's schema
_FORMS_OF_KINDS = {
    "integer": r"\A-?[0-9]{1,20}\Z",
    "number": r"\A-?[0-9]{1,20}(?:\.[0-9]{1,20})?\Z",
    "boolean": r"\A(?:true|false)\Z",
}
_UUID = r"\A[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z"


def as_text(value: Any) -> str:
    """A value as it stands in a path or a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else canonical(value).decode("utf-8")


def in_query(value: Any) -> str:
    """A value as it stands in a query: a list's only item stands there by itself."""
    return as_text(value[0] if isinstance(value, list) and len(value) == 1 else value)


def template(method: Method, held: Mapping[str, tuple[JsonValue, ...]]) -> tuple[str | Slot, ...]:
    """The path as a rule has it: its words, and slots with the values that they are held to."""
    made: list[str | Slot] = []
    segments = [segment for segment in method.path.removeprefix("/").split("/") if segment]
    for place, segment in enumerate(segments, 1):
        hole = HOLE.fullmatch(segment)
        if hole is None:
            made.append(segment)
            continue
        custom = bool(method.origin_id) and place == len(segments) and not hole["end"]
        if hole["several"] and hole["name"] in held:
            *first, last = as_text(held[hole["name"]][0]).split("/")
            made += [*first, last + hole["end"]]
            continue
        shape = shape_of(method, hole["name"]) if hole["several"] else ()
        if shape:
            made += _shaped(hole["name"], shape, hole["end"], verbs=not custom)
            continue
        made.append(
            Slot(
                hole["name"],
                tuple(as_text(value) for value in held.get(hole["name"], ())),
                many=bool(hole["several"]),
                end=hole["end"],
                verbs=not custom,
                form="" if hole["several"] else form_of(method, hole["name"]),
            )
        )
    return tuple(made)


def form_of(method: Method, name: str) -> str:
    """A pattern for a segment that is the value of this argument; "" where the catalog doesn't say what it looks like.
    (An imported document's pattern is in the catalog only where matching it is quick.)"""
    schema: Any = method.parameters.get("properties", {}).get(name)
    for _ in range(_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = method.parameters.get("$defs", {}).get(str(schema["$ref"]).removeprefix("#/$defs/"))
    if not isinstance(schema, Mapping):
        return ""
    choices = schema.get("enum")
    if isinstance(choices, list | tuple) and all(isinstance(one, str | int | bool) for one in choices):
        return rf"\A(?:{'|'.join(re.escape(as_text(one)) for one in choices)})\Z"
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else ""
    if kind in _FORMS_OF_KINDS:
        return _FORMS_OF_KINDS[str(kind)]
    if kind != "string":
        return ""
    if isinstance(pattern := schema.get("pattern"), str) and pattern:
        # As arguments are held to it: `$` is the end, and not also a line's end before it.
        return pattern[:-1] + r"\Z" if re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) else pattern
    return _UUID if schema.get("format") == "uuid" else ""


def shape_of(method: Method, name: str) -> tuple[str, ...]:
    """The segments of a name that the catalog knows the form of: "" where any may stand; () when it doesn't say.

    Google's `{+name}` is `^projects/[^/]+/topics/[^/]+$`: without it, GET /v1/{+name} would be every such method.
    """
    pattern = method.parameters.get("properties", {}).get(name, {}).get("pattern")
    if not isinstance(pattern, str) or not (pattern.startswith("^") and pattern.endswith("$")):
        return ()
    parts = pattern[1:-1].replace("[^/]+", "\0").split("/")
    if not all(part == "\0" or _WORD.fullmatch(part) for part in parts):
        return ()
    return tuple("" if part == "\0" else part for part in parts)


def _shaped(name: str, shape: Sequence[str], end: str, *, verbs: bool) -> list[str | Slot]:
    """The parts of a path where such a name stands: its free segments are `name/0`, `name/1`, …"""
    made: list[str | Slot] = []
    for place, word in enumerate(shape):
        last = place == len(shape) - 1
        tail = end if last else ""
        made.append(word + tail if word else Slot(f"{name}/{place}", end=tail, verbs=verbs or not last))
    return made


def name_from(shape: Sequence[str], name: str, slots: Mapping[str, str]) -> str:
    """The whole name, of the segments that a request had."""
    return "/".join(word or slots.get(f"{name}/{place}", "") for place, word in enumerate(shape))


def without_others(rule: MethodRule, method: Method, catalog: Catalog) -> MethodRule:
    """The rule without the paths that are another method's, whatever its verb: `/files/{id}` isn't
    `/files/generateIds`, and what a service takes a POST at is no id that it would take a GET for."""
    if all(isinstance(part, str) for part in rule.path):
        return rule
    others = []
    for other in catalog.service(method.service).methods.values():
        if other.id != method.id:
            path = template(other, {})
            if _meets(path, rule.path) and sum(isinstance(part, Slot) and part.many for part in path) < 2:
                others.append(path)
    return replace(rule, others=tuple(others))


def _meets(one: Sequence[str | Slot], other: Sequence[str | Slot]) -> bool:
    """Whether a path can fit both templates, and the first has words in the place of a slot of the other's."""
    many = next((place for place, part in enumerate(other) if isinstance(part, Slot) and part.many), None)
    if many is None:
        if len(one) != len(other) and not any(isinstance(part, Slot) and part.many for part in one):
            return False
        pairs = list(zip(one, other, strict=False))
    else:
        behind = len(other) - many - 1
        if len(one) < len(other):
            return False
        pairs = [
            *zip(one[:many], other[:many], strict=True),
            *((part, other[many]) for part in one[many : -behind or None]),
        ]
        pairs += list(zip(one[len(one) - behind :], other[many + 1 :], strict=True))
    if any(isinstance(mine, str) and isinstance(theirs, str) and mine != theirs for mine, theirs in pairs):
        return False
    return any(isinstance(theirs, Slot) and (isinstance(mine, str) or mine.end != theirs.end) for mine, theirs in pairs)
