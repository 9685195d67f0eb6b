"""What JavaScript programs use of node and of others' libraries: what they send with them, and how values are made.

`Named` is something global (`builtins.fetch`) or imported (`js:axios.default`). Whatever isn't here gives nothing
known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mapper.code import javascript_graphql as graphql
from mapper.code import javascript_requests as requests
from mapper.code import javascript_services as services
from mapper.code import texts
from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Fields,
    Form,
    Json,
    Listed,
    Lit,
    Made,
    Method,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Value,
    choices,
    joined,
    of_json,
    parts_of,
    plain,
    text,
)
from mapper.code.javascript_nodes import exact
from mapper.code.javascript_texts import address_of, asked_anew, query_of, written
from mapper.code.libraries import environment

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_MOST = 24  # items of a list that a function is followed for
_SPACES = "".join(map(chr, (*range(9, 14), 32, 160, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F)))
_SPACES += "\u3000\ufeff"


def attribute(owner: Named, name: str) -> Value:
    """`owner.name` of something global or imported."""
    if owner.name == "builtins.process.env":
        return environment(name)
    if owner.name == "builtins.globalThis":
        return Named(f"builtins.{name}")
    return Named(f"{owner.name}.{name}")


def called(reader: Following, function: Value, args: list[Value]) -> Value | None:
    """What a call gives, and what it sends is noted; None where it isn't known here."""
    found = requests.called(reader, function, args)
    if found is None:
        found = graphql.called(reader, function, args)
    if found is not None:
        return found
    if isinstance(function, Named):
        client = services.made(reader, function, args)
        return client if client is not None else _global(reader, function.name.removeprefix("builtins."), args)
    if isinstance(function, Thing):
        return services.called(reader, function, "", args)
    if isinstance(function, Method):
        if isinstance(function.of, Thing):
            return services.called(reader, function.of, function.name, args)
        return _of_value(reader, function.of, function.name, args)
    return None


def _global(reader: Following, name: str, args: list[Value]) -> Value | None:
    first = args[0] if args else UNKNOWN
    match name:
        case "JSON.stringify":
            return Json(first)
        case "JSON.parse":
            return _parsed(first)
        case "encodeURIComponent" | "encodeURI" | "escape":
            if name != "encodeURIComponent":
                return UNKNOWN
            parts = parts_of(written(first))
            return text(quote(one, safe="!'()*", errors="replace") if isinstance(one, str) else None for one in parts)
        case "URLSearchParams":
            return query_of(first)
        case "URL":
            return address_of(texts.under(args[1], first) if len(args) == 2 else first)
        case "String":
            return joined(text(parts_of(one)) for one in choices(written(first))) if args else Lit("")
        case "Promise.all" | "Promise.allSettled" | "Promise.resolve" | "Array.from" | "structuredClone":
            return first if len(args) == 1 else None
        case "Object.assign" if isinstance(first, Made):
            for other in args[1:]:
                known = dict(other.items) if isinstance(other, Fields) else {}
                if other != Lit(None) and (not isinstance(other, Fields) or other.more):
                    known = dict.fromkeys(first.attributes, UNKNOWN) | known  # any of them may be another
                for key, value in known.items():
                    reader.objects.put(first, key, value)
            return first
        case "Object.assign" if args:
            made = first if isinstance(first, Fields) else Fields(more=True)
            for other in args[1:]:
                if other != Lit(None):
                    made = made.merged(other if isinstance(other, Fields) else Fields(more=True))
            return made
        case "Object.keys" if isinstance(first, Fields):
            return Listed(tuple(Lit(key) for key, _ in first.items), first.more)
        case "Object.entries" if isinstance(first, Fields):
            return Listed(tuple(Listed((Lit(key), value)) for key, value in first.items), first.more)
        case "Object.values" if isinstance(first, Fields):
            return Listed(tuple(value for _, value in first.items), first.more)
        case "Request" | "globalThis.Request":
            return Thing("asked", (("url", first), ("options", args[1] if len(args) > 1 else Lit(None))))
        case "process.exit":
            reader.leave()
    return None


def apart(value: Value, *, asked: bool) -> Value:
    """What is known of a value that is changed where it isn't followed; with `asked` also where it is an address."""
    match value:
        case OneOf(values=values):
            return joined(apart(one, asked=asked) for one in values)
        case Fields():
            return Fields(more=True)
        case Listed() | Stream():
            return Listed((), True)
        case Form():
            return Form(Fields(more=True))
        case Lit() | Text() if asked and texts.is_text(value):
            return asked_anew(value)
    return value


def computed(op: ast.operator, left: Value, right: Value) -> Value:
    """What an operator makes of two numbers; of anything else it isn't known."""
    match left, right:
        case Lit(value=int() | float() as one), Lit(value=int() | float() as other):
            if isinstance(one, bool) or isinstance(other, bool):
                return UNKNOWN
        case _:
            return UNKNOWN
    first, second = float(one), float(other)
    try:
        match op:
            case ast.Add():
                return Lit(exact(first + second))
            case ast.Sub():
                return Lit(exact(first - second))
            case ast.Mult():
                return Lit(exact(first * second))
    except (ValueError, OverflowError):
        return UNKNOWN
    return UNKNOWN


def _parsed(value: Value) -> Value:
    import json

    if isinstance(value, Json):
        return value.value
    if isinstance(value, Lit) and isinstance(value.value, str) and len(value.value) < 100_000:
        try:
            return of_json(json.loads(value.value, parse_int=_number, parse_float=_number))
        except (ValueError, OverflowError, RecursionError):
            return UNKNOWN
    return ANSWER if value == ANSWER else UNKNOWN


def _number(text: str) -> int | float:
    return exact(float(text))


def _of_value(reader: Following, owner: Value, name: str, args: list[Value]) -> Value | None:
    """A method of a list or a text."""
    if isinstance(owner, Lit | Text | Form | Json):
        return _of_text(owner, name, args)
    if not isinstance(owner, Listed | Stream) or name == "append":
        return None
    items, more = reader.items(owner)
    followed: tuple[Value, ...] = (*items[:_MOST], *([reader.element(owner)] if more or len(items) > _MOST else []))
    if name in ("map", "forEach", "flatMap") and args:
        made = tuple(reader.call(args[0], [item], Fields()) for item in followed)
        return Lit(None) if name == "forEach" else Listed(made, name == "flatMap") if not more else Stream(joined(made))
    if name in ("filter", "find", "findLast", "some", "every") and args:
        for item in followed:
            reader.call(args[0], [item], Fields())
        one = joined(followed) if followed else UNKNOWN
        return Stream(one) if name == "filter" else one if name.startswith("find") else UNKNOWN
    if name == "join" and isinstance(owner, Listed) and not more and args:
        known, between = plain(args[0])
        if known and isinstance(between, str):
            parts: list[Any] = []
            for place, item in enumerate(items):
                parts += [*([between] if place else []), *parts_of(written(item))]
            return text(parts) if parts else Lit("")
    return None


def _of_text(owner: Lit | Text | Form | Json, name: str, args: list[Value]) -> Value:
    if name in ("toString", "valueOf") and not args:
        return owner if name == "valueOf" or texts.is_text(owner) else text(parts_of(written(owner)))
    if name == "trim" and isinstance(owner, Lit | Text) and texts.is_text(owner):
        first, *rest = parts_of(owner)
        parts = [first.lstrip(_SPACES) if isinstance(first, str) else first, *rest]
        last = parts.pop()
        return text([*parts, last.rstrip(_SPACES) if isinstance(last, str) else last])
    given = [plain(one) for one in args]
    if not isinstance(owner, Lit) or not isinstance(owner.value, str):
        return UNKNOWN
    match name, given:
        case "split", [(True, str() as between)] if between:
            found = owner.value.split(between)
            return Listed(tuple(map(Lit, found))) if len(found) <= _MOST else UNKNOWN
        case (("replace" | "replaceAll"), [(True, str() as old), (True, str() as new)]) if "$" not in new:
            return texts.replaced(owner.value, old, new, 1 if name == "replace" else -1)
    return UNKNOWN
