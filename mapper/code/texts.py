"""Texts that are known in part: what their operators and methods give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus, urlencode, urljoin

from mapper.code.abstract_values import (
    MOST_TEXT,
    UNKNOWN,
    Fields,
    Form,
    Json,
    Listed,
    Lit,
    Member,
    OneOf,
    Text,
    Value,
    parts_of,
    plain,
    text,
)

_LARGEST = 10_000  # characters or items that an operator may make
_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z_0-9]*+)([^{}]*+)\}")
_PERCENT = re.compile(r"%(?:\(([^()]*+)\))?([#0\- +]*+[\d*]*+(?:\.[\d*]*+)?[hlL]?[a-zA-Z%])?")
_WHOLE = {"lower", "upper", "title", "capitalize", "strip", "lstrip", "rstrip", "replace", "removeprefix",
          "removesuffix", "zfill"}  # fmt: skip


def is_text(value: Value) -> bool:
    return isinstance(value, Text | Form | Json) or (isinstance(value, Lit) and isinstance(value.value, str))


def work(*values: Value) -> int:
    """How much there is to do for a text, whatever is made of it or found in it."""
    done = 0
    for value in values:
        match value:
            case Lit(value=str() as known):
                done += len(known) // 100 + (known.count("%") + known.count("{")) // 8  # each may be a place
            case Lit(value=bytes() as raw):
                done += len(raw) // 100
            case Text():
                done += 2 * value.weight
            case OneOf(values=several):
                done += work(*several)
    return done


def percent(left: Value, right: Value) -> Value:
    """`left % right`."""
    if not (isinstance(left, Lit) and isinstance(left.value, str)):
        return UNKNOWN
    given = list(right.items) if isinstance(right, Listed) else [right]
    named = dict(right.items) if isinstance(right, Fields) else {}
    formats = list(_PERCENT.finditer(left.value))
    if any(match[2] is None or "*" in match[2] for match in formats):
        return UNKNOWN  # no format, or one whose width is given
    places = iter(given)

    def made() -> Iterator[Any]:
        end = 0
        for match in formats:
            yield left.value[end : match.start()]
            end = match.end()
            if match[2] == "%":
                yield "%"
                continue
            one = named.get(match[1], UNKNOWN) if match[1] is not None else next(places, UNKNOWN)
            known = match[2] == "s" or (match[2] == "d" and isinstance(one, Lit) and type(one.value) is int)
            yield from parts_of(one) if known else (None,)
        yield left.value[end:]

    return text(made())


def formatted(owner: str, args: list[Value], given: Fields) -> Value:
    """`owner.format(*args, **given)`."""

    def made() -> Iterator[Any]:
        end = next_place = 0
        for match in _PIECE.finditer(owner):
            yield owner[end : match.start()]
            end = match.end()
            if match[0] in ("{{", "}}"):
                yield match[0][0]
                continue
            name = match[1]
            if not name:
                name, next_place = str(next_place), next_place + 1
            place = int(name) if name.isdigit() and len(name) < 6 else len(args)
            found = given.get(name) if not name.isdigit() else args[place] if place < len(args) else None
            yield from parts_of(found) if found is not None and not match[2] else (None,)
        yield owner[end:]

    return text(made())


def computed(op: ast.operator, one: Any, other: Any) -> Value:
    """What an operator makes of two plain values."""
    numbers = all(isinstance(each, int | float) and abs(each) < 1e12 for each in (one, other))
    try:
        match op:
            case ast.Add() if numbers:
                return Lit(one + other)
            case ast.Add() if isinstance(one, bytes) and isinstance(other, bytes):
                return Lit(one + other) if len(one) + len(other) <= MOST_TEXT else UNKNOWN
            case ast.Sub() if numbers:
                return Lit(one - other)
            case ast.Mult() if numbers:
                return Lit(one * other)
            case ast.Mult() if isinstance(one, str) and isinstance(other, int) and other * len(one) <= _LARGEST:
                return Lit(one * other)
            case ast.FloorDiv() if numbers:
                return Lit(one // other)
            case ast.Mod() if numbers:
                return Lit(one % other)
    except (ArithmeticError, ValueError):
        return UNKNOWN
    return UNKNOWN


def method(owner: Value, name: str, args: list[Value], given: Fields) -> Value:
    """What a text's own method gives."""
    if name in ("encode", "decode"):
        return owner if not (isinstance(owner, Lit) and isinstance(owner.value, bytes)) else text(parts_of(owner))
    known = [plain(arg) for arg in args]
    all_known = all(ok for ok, _ in known)
    if name == "join" and args:
        items = args[0]
        if not isinstance(items, Listed) or items.more:
            return UNKNOWN
        return text(
            part for place, item in enumerate(items.items) for one in ((owner, item) if place else (item,))
            for part in parts_of(one)
        )  # fmt: skip
    if isinstance(owner, Lit) and isinstance(owner.value, str):
        if name == "format_map" and len(args) == 1 and isinstance(mapping := args[0], Fields):
            return formatted(owner.value, [], mapping)
        if name == "format":
            return formatted(owner.value, args, given)
        if all_known and name in _WHOLE and not given.items:
            return _whole(owner.value, name, [value for _, value in known])
        if all_known and name in ("split", "rsplit", "splitlines", "partition", "rpartition"):
            try:
                found = getattr(owner.value, name)(*[value for _, value in known])
            except (TypeError, ValueError):
                return UNKNOWN
            return Listed(tuple(Lit(each) for each in found)) if len(found) <= 200 else UNKNOWN
        if all_known and name in ("startswith", "endswith"):
            try:
                return Lit(getattr(owner.value, name)(*[value for _, value in known]))
            except TypeError:
                return UNKNOWN
        if name == "replace" and known and known[0][0] and isinstance(known[0][1], str) and len(args) == 2:
            return text(
                one for place, part in enumerate(owner.value.split(known[0][1]) if known[0][1] else [owner.value])
                for one in (*(parts_of(args[1]) if place else ()), part)
            )  # fmt: skip
    if isinstance(owner, Text) and name in ("rstrip", "strip", "removesuffix") and all_known:
        last = owner.parts[-1]
        if isinstance(last, str):
            try:
                shorter = getattr(last, "rstrip" if name == "strip" else name)(*[value for _, value in known])
            except TypeError:
                return UNKNOWN
            return text((*owner.parts[:-1], shorter))
        return owner
    if isinstance(owner, Text) and name in ("lstrip", "removeprefix") and all_known:
        first = owner.parts[0]
        if isinstance(first, str):
            try:
                shorter = getattr(first, name)(*[value for _, value in known])
            except TypeError:
                return UNKNOWN
            return text((shorter, *owner.parts[1:]))
        return owner
    return UNKNOWN


def _whole(owner: str, name: str, given: list[Any]) -> Value:
    """What a method gives whose owner and arguments are known: no text that is much longer than the owner."""
    most = max(len(owner), MOST_TEXT)
    try:
        if name == "replace":
            return replaced(owner, *given)
        if name == "zfill" and given and given[0] > most:
            return UNKNOWN
        made = getattr(owner, name)(*given)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN
    return Lit(made) if len(made) <= most else UNKNOWN


def replaced(owner: str, old: str, new: str, count: int = -1) -> Value:
    """`owner.replace(old, new, count)`. Raises TypeError for what it doesn't take."""
    times = owner.count(old)
    times = times if count < 0 else min(times, count)
    longer = times * (len(new) - len(old))
    return Lit(owner.replace(old, new, count)) if len(owner) + longer <= max(len(owner), MOST_TEXT) else UNKNOWN


def quoted(value: Value, plus: bool, safe: Value) -> Value:
    """A text made fit for a URL, but for the `safe` characters, which stay as they are."""
    if not (isinstance(safe, Lit) and isinstance(safe.value, str)):
        return UNKNOWN
    if isinstance(value, Lit) and isinstance(value.value, str | int):
        return text(((quote_plus if plus else quote)(str(value.value), safe=safe.value, errors="replace"),))
    return text(
        quote(part, safe=safe.value, errors="replace") if isinstance(part, str) else None for part in parts_of(value)
    )


def encoded(value: Value) -> Value:
    """Named values as a form's text."""
    value = unwritten(value)
    if isinstance(value, Fields):
        known, found = plain(value)
        plainly = known and all(isinstance(each, str | int | float) for each in found.values())
        if plainly and sum(len(each) for each in found.values() if isinstance(each, str)) <= _LARGEST:
            return Lit(urlencode(found))
        return Form(value)
    if isinstance(value, Listed):
        pairs = [item for item in value.items if isinstance(item, Listed) and len(item.items) == 2]
        names = [plain(item.items[0]) for item in pairs]
        if len(pairs) == len(value.items) and all(ok and isinstance(name, str) for ok, name in names):
            return Form(Fields.of({name: pair.items[1] for (_, name), pair in zip(names, pairs, strict=True)},
                                  value.more))  # fmt: skip
    return Form(Fields(more=True))


def under(base: Value, path: Value) -> Value:
    """`urljoin(base, path)`."""
    if isinstance(base, Lit) and isinstance(path, Lit) and isinstance(base.value, str) and isinstance(path.value, str):
        try:
            return Lit(urljoin(base.value, path.value))
        except ValueError:
            return UNKNOWN
    if not isinstance(base, Lit) or not isinstance(base.value, str):
        return UNKNOWN
    parts = parts_of(path)
    if not isinstance(parts[0], str):
        return text((base.value.rpartition("/")[0] + "/", *parts)) if base.value.endswith("/") else UNKNOWN
    try:
        return text((urljoin(base.value, parts[0]), *parts[1:]))
    except ValueError:
        return UNKNOWN


def unwritten(value: Value) -> Value:
    """What is sent as text, without the members of enumerations in it: each library writes something else of them."""
    match value:
        case Lit(value=Member()):
            return UNKNOWN
        case Listed(items=items, more=more) if any(unwritten(one) is not one for one in items):
            return Listed(tuple(map(unwritten, items)), more)
        case Fields(items=pairs, more=more) if any(unwritten(one) is not one for _, one in pairs):
            return Fields(tuple((name, unwritten(one)) for name, one in pairs), more)
        case OneOf(values=values) if any(unwritten(one) is not one for one in values):
            return UNKNOWN
    return value


def fields_of(value: Value) -> Fields | None:
    """The named values of what is given as a query or a form; None where nothing is given."""
    match value := unwritten(value):
        case Lit(value=None):
            return None
        case Fields():
            return value
        case Form(fields=fields):
            return fields
        case Lit(value=str() | bytes() as known):
            from urllib.parse import parse_qsl

            raw = known if isinstance(known, str) else known.decode("utf-8", "replace")
            try:
                pairs = parse_qsl(raw, keep_blank_values=True, max_num_fields=200)
            except ValueError:
                return Fields(more=True)
            return Fields.of({name: Lit(found) for name, found in pairs})
        case Listed():
            made = encoded(value)
            return made.fields if isinstance(made, Form) else Fields(more=True)
    return Fields(more=True)


_NAMED = re.compile(r"\$(?:(\$)|(?P<plain>[_a-zA-Z][_a-zA-Z0-9]*)|\{(?P<held>[_a-zA-Z][_a-zA-Z0-9]*)\})", re.ASCII)


def templated(template: Value, given: Fields) -> Value:
    """What `string.Template(template).substitute(given)` gives."""
    if not isinstance(template, Lit) or not isinstance(template.value, str):
        return UNKNOWN
    made: list[str | Form | None] = []
    place = 0
    for found in _NAMED.finditer(template.value):
        made.append(template.value[place : found.start()])
        value = given.get(found["plain"] or found["held"] or "")
        made += ["$"] if found[1] else parts_of(value) if value is not None else [None]
        place = found.end()
    return text([*made, template.value[place:]])
