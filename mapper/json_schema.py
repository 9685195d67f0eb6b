"""The part of JSON Schema that catalog entries are written in.

A small, closed set of keywords: everything that bounds an argument, nothing that fetches, refers or computes. A
keyword that isn't in the table is refused where it is written, since a misspelt bound bounds nothing. Checking this
here costs microseconds; `jsonschema` then judges arguments against it. A schema of an imported service may refer to
another one of the same document by `#/$defs/NAME`, and to nothing else. `default`, `readOnly` and `deprecated` inform;
nothing acts on them. `format` names what kind of thing a string is
(`slack-channel`, `email`), for those who fill arguments; it isn't enforced. `x-lookup` says how a value of another
kind is turned into this one by a call: `{"pattern", "method", "argument", "path"}`. `x-refused-scopes` names the scopes
under which the provider refuses the parameter, each with the values that it refuses (`[]`: any).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import steps

TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

REF = "#/$defs/"  # how a reference to another schema of the document begins
LOOSENED = "x-loosened"  # in words, what an imported schema said that can't be said here; nothing acts on it

_MAX_DEPTH = 8
_MAX_DEPTH_IMPORTED = 24


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _types(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _choices(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return len(value) <= 300


def _lookup(value: Any) -> bool:
    if not isinstance(value, Mapping) or set(value) != {"pattern", "method", "argument", "path"}:
        return False
    if not all(isinstance(part, str) for part in value.values()) or not _pattern(value["pattern"]):
        return False
    try:
        steps(value["path"])
    except (InvalidInput, ValueError):
        return False
    return True


def _refusals(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(values, list) and _strings(values) for values in value.values()
    )


def _strings(values: list[Any]) -> bool:
    return all(isinstance(one, str) for one in values)


_KEYWORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_types, f"one of {', '.join(TYPES)}, or a list of them"),
    "description": (_text, "text"),
    "title": (_text, "text"),
    "format": (_text, "text"),
    "enum": (_choices, "a list with something in it"),
    "const": (lambda value: True, "a value"),
    "minLength": (_count, "a count"),
    "maxLength": (_count, "a count"),
    "pattern": (_pattern, "a regular expression of at most 300 characters"),
    "minimum": (_number, "a number"),
    "maximum": (_number, "a number"),
    "minItems": (_count, "a count"),
    "maxItems": (_count, "a count"),
    "uniqueItems": (_flag, "true or false"),
    "minProperties": (_count, "a count"),
    "maxProperties": (_count, "a count"),
    "required": (_names, "a list of names"),
    "x-refused-scopes": (_refusals, "a table of scopes, each with a list of texts"),
    "x-lookup": (_lookup, "a table with pattern, method, argument and path"),
}
# What only an imported document may say: a manifest that wrote `default` would wait for it in vain.
_IMPORTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "default": (lambda value: True, "a value"),
    "readOnly": (_flag, "true or false"),
    "deprecated": (_flag, "true or false"),
    LOOSENED: (_text, "text"),
}
_ALL = {**_KEYWORDS, **_IMPORTED}


def problem(schema: Any, where: str = "", depth: int = 0, defs: Container[str] | None = None) -> str:
    """What is wrong with `schema`, naming the place inside it; "" when it is good.

    `defs`: the schemas that a `$ref` may name, for an imported document; a manifest has none.
    """
    if not isinstance(schema, Mapping):
        return f"{where or 'the schema'} must be a table"
    deepest = _MAX_DEPTH if defs is None else _MAX_DEPTH_IMPORTED
    if depth > deepest:
        return f"{where} is nested deeper than {deepest} levels"
    known = _KEYWORDS if defs is None else _ALL
    for key, value in schema.items():
        place = f"{where}.{key}" if where else key
        found = _child_problem(key, value, place, depth, defs)
        if found is not None:
            if found:
                return found
        elif key not in known:
            return f"{place}: {key!r} isn't a schema keyword that is known here"
        else:
            check, wanted = known[key]
            if not check(value):
                return f"{place} must be {wanted}"
    missing = set(schema.get("required", ())) - set(schema.get("properties", {}))
    if missing and "properties" in schema:
        return f"{where or 'required'} names {sorted(missing)[0]!r}, which isn't among the properties"
    return ""


def _child_problem(key: str, value: Any, place: str, depth: int, defs: Container[str] | None) -> str | None:
    """The problem inside a keyword that holds schemas; None when `key` isn't such a keyword."""
    if key == "$ref" and defs is not None:
        if isinstance(value, str) and value.startswith(REF) and value[len(REF) :] in defs:
            return ""
        return f"{place} refers to {str(value)[:60]!r}, which isn't a schema of this document"
    if key == "properties":
        if not isinstance(value, Mapping):
            return f"{place} must be a table"
        return next(
            filter(None, (problem(item, f"{place}.{name}", depth + 1, defs) for name, item in value.items())), ""
        )
    if key == "items":
        return problem(value, place, depth + 1, defs)
    if key == "additionalProperties":
        return "" if isinstance(value, bool) else problem(value, place, depth + 1, defs)
    if key == "anyOf":
        if not isinstance(value, list) or not value:
            return f"{place} must be a list with something in it"
        return next(filter(None, (problem(item, f"{place}[{i}]", depth + 1, defs) for i, item in enumerate(value))), "")
    return None


def referred(schema: Any) -> set[str]:
    """The names of the document's schemas that `schema` refers to; what these refer to isn't followed."""
    found: set[str] = set()
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            target = item.get("$ref")
            if isinstance(target, str) and target.startswith(REF):
                found.add(target[len(REF) :])
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return found


def loosened(schema: Any) -> Iterator[tuple[str, str]]:
    """(where, as `.name` and `[]`; what) of each part of `schema` that holds less than its document says."""
    stack = [("", schema)]
    while stack:
        where, item = stack.pop()
        if not isinstance(item, Mapping):
            continue
        if isinstance(item.get(LOOSENED), str):
            yield where, item[LOOSENED]
        properties = item.get("properties")
        stack.extend((f"{where}.{name}", each) for name, each in (properties or {}).items())
        stack.extend((where + end, item.get(key)) for key, end in (("items", "[]"), ("additionalProperties", ".*")))
        stack.extend((where, each) for each in item.get("anyOf", ()))


# Written short: `string`, `string:email!`, `integer[]`. "!" means that it is required.
_SHORT = re.compile(r"(?P<type>[a-z]+)(?::(?P<format>[a-z0-9-]+))?(?P<list>\[\])?(?P<required>!)?")


def short_form(text: str) -> tuple[dict[str, Any], bool] | None:
    """The schema and whether it is required, from one word like `string:email!`; None when it isn't such a word."""
    match = _SHORT.fullmatch(text)
    if match is None or match["type"] not in TYPES or match["type"] == "null":
        return None
    schema: dict[str, Any] = {"type": match["type"]}
    if match["format"]:
        schema["format"] = match["format"]
    if match["list"]:
        schema = {"type": "array", "items": schema}
    return schema, match["required"] is not None
