"""The schemas of Google's discovery documents as ours (`mapper.json_schema`). Pure.

Rules: an object that lists its properties takes no others; a number that travels as text may be written as either;
a pattern is kept only where matching it takes time in proportion to the text, since both may be an attacker's.
"""

from __future__ import annotations

import re
from collections.abc import Container
from re import _constants as sre  # type: ignore[attr-defined] # the only way to look into a pattern
from re import _parser as sre_parse  # type: ignore[attr-defined]
from typing import Any

from mapper.importing.document_files import plain
from mapper.importing.import_report import BadPart
from mapper.json_schema import REF, TYPES

MAX_DEPTH = 24
MAX_CHOICES = 2000
_WORDS = 160  # characters of a field's description

_SEGMENTS = re.compile(r"\^(?:[A-Za-z0-9_/\-.:]|\[\^/\]\+(?=/|\$|:))*(?:\.\*)?\$")
_WAYS = 10_000
_WAYS_OPEN = 300  # where one repetition has no end, or the pattern may begin anywhere
_WIDE = frozenset({"int64", "uint64"})


def converted(schema: Any, names: Container[str], keys: tuple[str, ...], *, words: int = _WORDS) -> dict[str, Any]:
    """One schema. `names` are those of the document, which it may refer to; `keys` lead to it, for errors.

    Raises BadPart.
    """
    if not isinstance(schema, dict):
        raise BadPart("must be an object", *keys)
    if len(keys) > MAX_DEPTH * 2:
        raise BadPart(f"is nested deeper than {MAX_DEPTH} levels", *keys[:8])
    made: dict[str, Any] = {}
    description = plain(schema.get("description"), words)
    if description:
        made["description"] = description
    for flag in ("readOnly", "deprecated"):
        if schema.get(flag) is True:
            made[flag] = True
    target = schema.get("$ref")
    if target is not None:
        if not isinstance(target, str) or target not in names:
            raise BadPart(f"refers to {str(target)[:60]!r}, which isn't a schema of this document", *keys, "$ref")
        made["$ref"] = REF + target
        return made
    _typed(made, schema, names, keys)
    if schema.get("repeated") is True:
        inner = {name: value for name, value in made.items() if name not in ("description", "deprecated")}
        made = {name: value for name, value in made.items() if name in ("description", "deprecated")}
        made.update({"type": "array", "items": inner})
    return made


def _typed(made: dict[str, Any], schema: dict[str, Any], names: Container[str], keys: tuple[str, ...]) -> None:
    kind = schema.get("type", "any")
    if kind == "any":
        return
    if kind not in TYPES:
        raise BadPart(f"{str(kind)[:40]!r} isn't a type", *keys, "type")
    made["type"] = kind
    form = schema.get("format")
    if isinstance(form, str) and re.fullmatch(r"[A-Za-z0-9_.\-]{1,40}", form):
        made["format"] = form
        if form in _WIDE and kind == "string":
            made["type"] = ["string", "integer"]
    if "enum" in schema:
        made["enum"] = _choices(schema["enum"], kind, keys)
    for bound in ("minimum", "maximum"):
        number = _number(schema.get(bound))
        if number is not None and kind in ("integer", "number"):
            made[bound] = number
    if kind == "string" and isinstance(schema.get("pattern"), str):
        pattern = bounded(schema["pattern"])
        if pattern:
            made["pattern"] = pattern
    default = _default(schema.get("default"), kind)
    if default is not None:
        made["default"] = default
    if kind == "array":
        made["items"] = converted(schema.get("items", {}), names, (*keys, "items"))
    if kind == "object":
        _object(made, schema, names, keys)


def _object(made: dict[str, Any], schema: dict[str, Any], names: Container[str], keys: tuple[str, ...]) -> None:
    properties = schema.get("properties")
    if properties is not None:
        if not isinstance(properties, dict):
            raise BadPart("must be an object", *keys, "properties")
        made["properties"] = {
            name: converted(value, names, (*keys, "properties", name)) for name, value in properties.items()
        }
        made["additionalProperties"] = False
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        made["additionalProperties"] = converted(more, names, (*keys, "additionalProperties"))


def _choices(value: Any, kind: str, keys: tuple[str, ...]) -> list[Any]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise BadPart("must be a list of texts", *keys, "enum")
    if len(value) > MAX_CHOICES:
        raise BadPart(f"has {len(value)} choices; at most {MAX_CHOICES} are taken", *keys, "enum")
    if kind == "integer":
        numbers = [_number(one) for one in value]
        if None in numbers:
            raise BadPart("must be a list of whole numbers", *keys, "enum")
        return numbers
    return list(dict.fromkeys(value))


def _number(text: Any) -> int | float | None:
    if isinstance(text, bool) or not isinstance(text, str | int | float) or len(str(text)) > 30:
        return None
    try:
        return int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if abs(number) < 1e300 else None
    except OverflowError:
        return None


def _default(text: Any, kind: str) -> Any:
    if not isinstance(text, str) or len(text) > 100 or not text.isprintable():
        return None
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind in ("integer", "number"):
        return _number(text)
    return text if kind == "string" else None


def bounded(pattern: str) -> str:
    """The pattern, for the whole text, where matching is sure to be quick; "" where it might not be, or is none."""
    if len(pattern) > 290:
        return ""
    if _SEGMENTS.fullmatch(pattern):
        return pattern
    try:
        tree = sre_parse.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return ""
    if not _quick(tree):
        return ""
    whole = f"^(?:{pattern})$"
    try:
        re.compile(whole)
    except re.error:  # flags, which stand at the beginning or nowhere
        return ""
    return whole


def searched(pattern: str) -> str:
    """The pattern, for any part of the text, where looking for it is sure to be quick; else ""."""
    if len(pattern) > 290 or re.search(r"\\[AZz]", pattern):  # letters alone, where the pattern was written for
        return ""
    try:
        tree = sre_parse.parse(pattern)
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return ""
    anchored = len(tree) > 0 and tree[0] == (sre.AT, sre.AT_BEGINNING)
    anywhere = not _open_ended(tree) and _ways(tree) <= _WAYS_OPEN  # it begins anew at each letter of a text
    return pattern if _quick(tree) and (anchored or anywhere) else ""


def _quick(tree: Any) -> bool:
    open_ended = _open_ended(tree)
    return open_ended <= 1 and _ways(tree) <= (_WAYS_OPEN if open_ended else _WAYS)


def _ways(tree: Any) -> int:
    """In how many ways at most the repetitions that have an end can share out a text."""
    found = 1
    for operator, value in tree:
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, inner = value
            within = _ways(inner)
            if most <= 64:
                found *= (most - least + 1) * (min(within, 2 * _WAYS) ** most if within > 1 else 1)
            else:
                found *= within
        elif operator is sre.BRANCH:
            found *= sum(_ways(part) for part in value[1])
        else:
            for part in _inner(operator, value):
                found *= _ways(part)
        found = min(found, 2 * _WAYS)
    return found


def _open_ended(tree: Any) -> int:
    """How many repetitions without a near end a pattern holds; 2 where one is within another, or it looks back."""
    found = 0
    for operator, value in tree:
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, inner = value
            within = _open_ended(inner)
            repeats = any(part[0] in (sre.MAX_REPEAT, sre.MIN_REPEAT) for part in _parts(inner))
            if most > 64:
                found += 2 if within or repeats or _ways(inner) > 1 else 1
            else:
                found += within * most
        elif operator in (sre.GROUPREF, sre.GROUPREF_EXISTS, sre.ASSERT, sre.ASSERT_NOT):
            return 2
        else:
            found += sum(_open_ended(part) for part in _inner(operator, value))
    return found


def _inner(operator: Any, value: Any) -> list[Any]:
    if operator is sre.SUBPATTERN:
        return [value[-1]]
    if operator is sre.BRANCH:
        return list(value[1])
    if operator is sre.ATOMIC_GROUP:
        return [value]
    return []


def _parts(tree: Any) -> list[Any]:
    found = []
    for operator, value in tree:
        found.append((operator, value))
        inner = [value[2]] if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT) else _inner(operator, value)
        for part in inner:
            found.extend(_parts(part))
    return found
