"""Values and conditions as Cedar's text, made so that no value can be taken for anything but itself.

Rules: a text keeps its printable ASCII; every other character is written as its code point, so that it neither ends the
literal nor looks like another. An argument is always named in quotation marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from policies.jsonvalue import JsonObject, JsonValue
from policies.rules.arguments import Unjudgeable, hides_members, is_ambiguous, types_of, value_of

LONGEST_VALUE = 300  # characters of one literal
Path = tuple[str, ...]  # an argument, and the member of it


def quoted(text: str) -> str:
    """A text as Cedar's literal."""
    return (
        '"'
        + "".join(one if one.isascii() and one.isprintable() and one not in '"\\' else _point(one) for one in text)
        + '"'
    )


def literal(value: Any) -> str:
    """A value of Cedar's JSON as Cedar writes it. Raises Unjudgeable for one that is too long."""
    made = _literal(value)
    if len(made) > LONGEST_VALUE:
        raise Unjudgeable("it is too long for a rule")
    return made


def leaves(parameters: JsonObject, arguments: JsonObject) -> dict[Path, str] | None:
    """Each argument (of an object each member) as a literal; None where rules can't see all that is there, or would
    take something else for it: null, a list of several elements (whose order they don't see), 5 for "5"."""
    types = types_of(parameters)
    names = set(parameters.get("properties") or ())
    if not arguments.keys() <= types.keys() == names or parameters.get("additionalProperties") is not False:
        return None
    if any(hides_members(parameters, name) or is_ambiguous(parameters, name, arguments[name]) for name in arguments):
        return None
    try:
        return dict(_leaves(types, arguments, ()))
    except Unjudgeable:
        return None


def held_to(name: Path, values: tuple[str, ...]) -> str:
    """That an argument is there and is one of these; with none of them, that it is there."""
    there = " && ".join(f"{_at(name[:depth])} has {quoted(name[depth])}" for depth in range(len(name)))
    if not values:
        return there
    at = _at(name)
    return f"{there} && " + (f"{at} == {values[0]}" if len(values) == 1 else f"[{', '.join(values)}].contains({at})")


def has(parameters: JsonObject, names: Iterable[Path]) -> list[str]:
    """For each argument and member that isn't among these names: that it is there."""
    return [f"{_at(name[:-1])} has {quoted(name[-1])}" for name in _absent(types_of(parameters), frozenset(names), ())]


def _absent(types: Mapping[str, Any], names: frozenset[Path], above: Path) -> Iterator[Path]:
    for name, kind in sorted(types.items()):
        path = (*above, name)
        if path in names:
            continue
        if any(one[: len(path)] == path for one in names):
            yield from _absent(kind["attributes"], names, path)
        else:
            yield path


def _leaves(types: Mapping[str, Any], arguments: Mapping[str, JsonValue], above: Path) -> Iterator[tuple[Path, str]]:
    for name, value in arguments.items():
        kind, path = types[name], (*above, name)
        if kind["type"] == "Record" and isinstance(value, Mapping) and value.keys() <= kind["attributes"].keys():
            value_of(kind, value)  # or it is an answer's, or a member is missing
            inside = tuple(_leaves(kind["attributes"], value, path))
            if not inside:
                raise Unjudgeable("it is empty")
            yield from inside
        else:
            made = value_of(kind, value)
            if _has_order(made):
                raise Unjudgeable("it holds a list of several elements, whose order a rule doesn't see")
            yield path, literal(made)


def _has_order(made: Any) -> bool:
    """Whether a value of Cedar's JSON is or holds a list of more than one element."""
    if isinstance(made, list):
        return len(made) > 1 or any(map(_has_order, made))
    return isinstance(made, Mapping) and any(map(_has_order, made.values()))


def _at(name: Path) -> str:
    return "context.arguments" + "".join(f"[{quoted(one)}]" for one in name)


def _point(one: str) -> str:
    code = ord(one)
    if 0xD800 <= code < 0xE000:
        raise Unjudgeable("it holds half a character")
    return {'"': '\\"', "\\": "\\\\"}.get(one) or f"\\u{{{code:x}}}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(sorted({_literal(one) for one in value}))}]"
    if isinstance(value, Mapping) and set(value) == {"__extn"}:
        return f"decimal({quoted(str(value['__extn']['arg']))})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quoted(name)}: {_literal(one)}" for name, one in sorted(value.items())) + "}"
    raise Unjudgeable("it isn't a value that a rule can hold")
