"""Arguments against a method's schema: what reaches an action was checked here.

Rules: nothing is converted (a number in quotes isn't a number); what the caller may leave out and has a plain default
is filled in, so that the person sees it; `{"$from": N, "path": …}` may stand in place of any value and is checked for
its form alone, since the value isn't known yet; its path may filter (`policies.jsonpath`), and `$each` may stand for
`$from` (`policies.stages`). Sizes are bounded before anything is judged.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Hashable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from mapper import templates
from policies.errors import InvalidInput
from policies.jsonpath import check_path
from policies.jsonvalue import JsonObject, JsonValue, canonical
from policies.services import Method
from policies.stages import is_each, wrong_each

MAX_ARGUMENTS = 200_000  # bytes of canonical JSON
MAX_CALLS = 20  # in one action, as it is asked for
MAX_CHOICES = 20_000  # that are looked at for one call's arguments
_ITEMS, _LETTERS = 25, 50  # that cost as much as one more choice: in a value, and of a text that a pattern reads

_MOST_PROBLEMS = 100  # that are looked at to say the first one: each takes memory, and a list may hold one an item
_SHORT = 40  # characters of a value that is said back

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (str, "text"),
    (int, "a whole number"),
    (float, "a number"),
    (list, "a list"),
    (dict, "an object"),
    (type(None), "null"),
)
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class InvalidArguments(InvalidInput):
    """The arguments don't fit the method. The message names the argument, what is expected and what came."""

    code = "arguments"


class WrongForm(InvalidArguments):
    """A value isn't formed as `argument` wants it: a name stands where an id is wanted, most often."""

    argument = ""


def is_reference(value: JsonValue) -> bool:
    """Whether `value` stands for a value of an earlier answer. A malformed one is none (and fits no schema)."""
    if not isinstance(value, Mapping) or set(value) != {"$from", "path"}:
        return False
    index = value["$from"]
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MAX_CALLS:
        return False
    return not _wrong_path(value["path"])


def _wrong_path(path: JsonValue) -> str:
    """Why it isn't a path; "" when it is."""
    if not isinstance(path, str):
        return "a path is a text"
    try:
        check_path(path)
    except InvalidInput as error:
        return error.message.rstrip(".")
    return ""


def references(value: JsonValue) -> Iterator[tuple[int, str]]:
    """Every (call, path) that `value` refers to, at any depth."""
    if is_reference(value):
        yield value["$from"], value["path"]
    elif is_each(value):
        yield value["$each"], value["path"]
    elif isinstance(value, Mapping):
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def checker(method: Method) -> Any:
    """A compiled validator of the method's arguments: worth keeping."""
    return _Validator(dict(method.parameters))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As in JSON Schema, where `$` is the end alone; in Python it also stands before a line end that comes last."""
    if isinstance(instance, str):
        _spend(len(instance) // _LETTERS)
    whole = pattern[:-1] + r"\Z" if re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) else pattern
    if isinstance(instance, str) and not re.search(whole, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _any_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As in JSON Schema, and counted: choices within choices multiply, each looks at the whole value, and the schema
    may be a stranger's. Of each the first error alone is made: a list may have one for every item."""
    cost = 1 + _items(instance) // _ITEMS
    for branch in branches:
        _spend(cost)
        if next(_wrong(validator.descend(instance, branch)), None) is None:
            return
    yield ValidationError("it fits none of the choices")


def _spend(cost: int) -> None:
    _left.set(_left.get() - cost)
    if _left.get() < 0:
        raise _TooIntricate


def _items(value: Any) -> int:
    """How many values there are in a value, at any depth."""
    count, stack = 0, [value]
    while stack:
        each = stack.pop()
        if isinstance(each, list | dict):
            count += len(each)
            stack.extend(each if isinstance(each, list) else each.values())
    return count


def _wrong(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    """Those that aren't about a value which an answer is to fill in."""
    return (error for error in errors if not (is_reference(error.instance) or is_each(error.instance)))


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As in JSON Schema; comparing each item with each would take minutes."""
    if wanted and isinstance(instance, list) and len(set(map(_key, instance))) < len(instance):
        yield ValidationError("two items are the same")


def _enum(validator: Any, choices: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As in JSON Schema; comparing each value of a list with each choice would take minutes."""
    keys = _choices.get()
    if id(choices) not in keys:
        keys[id(choices)] = frozenset(map(_key, choices))
    if _key(instance) not in keys[id(choices)]:
        yield ValidationError("it is none of the choices")


def _key(value: Any) -> Hashable:
    """What two values share if they are equal in JSON Schema: there 1 and 1.0 are, and 1 and true aren't."""
    if isinstance(value, list):
        return "list", tuple(map(_key, value))
    if isinstance(value, dict):
        return "object", frozenset((name, _key(each)) for name, each in value.items())
    return (value,) if isinstance(value, bool) else value  # else a text or a number


_choices: ContextVar[dict[int, frozenset[Hashable]]] = ContextVar("choices")  # of this check, by the list's id
_left: ContextVar[int] = ContextVar("left")  # choices that may still be looked at, in this check
_OWN = {"pattern": _pattern, "anyOf": _any_of, "uniqueItems": _unique_items, "enum": _enum}
_Validator: Any = extend(Draft202012Validator, _OWN)  # type: ignore[no-untyped-call] # the stubs lack it


class _TooIntricate(Exception):
    pass


def check(method: Method, arguments: JsonObject, validator: Draft202012Validator) -> dict[str, JsonValue]:
    """The arguments with plain defaults filled in. Raises InvalidArguments about the first thing that doesn't fit."""
    if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
        raise InvalidArguments(
            f"{method.id}: the arguments must be an object, but came as {kind_of(arguments)}.", next_step=_usage(method)
        )
    try:
        size = len(canonical(arguments))
    except InvalidInput as error:
        raise InvalidArguments(f"{method.id}: {error.message}", next_step=error.next_step) from error
    if size > MAX_ARGUMENTS:
        raise InvalidArguments(
            f"{method.id}: the arguments are {size} bytes long; at most {MAX_ARGUMENTS} are taken.",
            next_step="Make them shorter.",
        )
    _refuse_nul(method, arguments)
    whole = dict(arguments)
    for name, default in method.defaults.items():
        if name not in whole and name in method.parameters["properties"] and not any(templates.references(default)):
            whole[name] = templates.fill({name: default}, {})[name]
    if is_reference(whole) or is_each(whole):  # then an answer would choose the arguments' names
        raise InvalidArguments(
            f"{method.id}: an answer's value can't stand for all arguments.", next_step=_usage(method)
        )
    _left.set(MAX_CHOICES)
    _choices.set({})
    try:
        problems = [*islice(_wrong(validator.iter_errors(whole)), _MOST_PROBLEMS)]
    except (_TooIntricate, RecursionError) as error:
        raise InvalidArguments(
            f"{method.id}: the arguments are too intricate to be checked.", next_step="Make them flatter, or shorter."
        ) from error
    if problems:
        worst = min(problems, key=lambda error: ([str(part) for part in error.absolute_path], str(error.validator)))
        kind = WrongForm if worst.validator == "pattern" else InvalidArguments
        made = kind(f"{method.id}: {_words(worst)}.", next_step=f"{_usage(method)}{_as_json(worst)}")
        if isinstance(made, WrongForm) and worst.absolute_path:
            made.argument = str(worst.absolute_path[0])
        raise made
    return whole


def _refuse_nul(method: Method, value: JsonValue) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise InvalidArguments(f"{method.id}: an argument holds a NUL character.", next_step="Remove it.")
        elif isinstance(item, Mapping):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _words(error: ValidationError) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    name = f'"{where[:80]}"' if where else "the arguments"
    wanted: Any = error.validator_value
    instance: Any = error.instance
    got = shown(error.instance)
    if isinstance(instance, Mapping) and "$from" in instance and not is_reference(instance):
        form = '{"$from": N, "path": "$.a[0].b"}, where N is the number of an earlier call; $.a[?@.b=="x"].c filters'
        wrong = _wrong_path(instance.get("path"))
        got = f"an object that isn't a reference ({f'{wrong}; ' if wrong else ''}write {form})"
    if isinstance(instance, Mapping) and "$each" in instance and not is_each(instance):
        form = '{"$each": N, "path": "$.a[*].b", "most": 20}'
        got = f"an object that isn't a value of each item ({wrong_each(instance)}; write {form})"
    match error.validator:
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else list(wanted)
            return f"{name} must be {' or '.join(_TYPES.get(kind, kind) for kind in kinds)}, but is {got}"
        case "required":
            present = error.instance if isinstance(error.instance, Mapping) else {}
            return f"{_list(name_ for name_ in wanted if name_ not in present)} must be given"
        case "additionalProperties":
            known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
            return _unknown(sorted(set(instance) - set(known)), {} if error.absolute_path else known)
        case "enum":
            return f"{name} must be one of {_list(wanted)}, but is {got}"
        case "const":
            return f"{name} must be {shown(wanted)}, but is {got}"
        case "pattern":
            hint = error.schema.get("description", "") if isinstance(error.schema, Mapping) else ""
            return f"{name} has the wrong form ({hint or wanted}), it is {got}".replace(".)", ")")
        case "minLength" | "minItems" | "minProperties":
            return f"{name} must have a length of at least {wanted}, but is {got}"
        case "maxLength" | "maxItems" | "maxProperties":
            return f"{name} must have a length of at most {wanted}, but has {len(instance)}"
        case "minimum":
            return f"{name} must be at least {wanted}, but is {got}"
        case "maximum":
            return f"{name} must be at most {wanted}, but is {got}"
    return f"{name} doesn't fit ({error.validator}), it is {got}"


def _unknown(names: list[str], known: Any) -> str:
    are = "isn't an argument that is known here" if len(names) == 1 else "aren't arguments that are known here"
    body = known.get("body")
    fields = body.get("properties", {}) if isinstance(body, Mapping) else {}
    within = [f"body.{name}" for name in names if name in fields]
    return f"{_list(names)} {are}" + (f"; did you mean {_list(within)}?" if within else "")


def _as_json(error: ValidationError) -> str:
    """How a terminal writes what isn't text, where text stands for it."""
    value, place = error.instance, [*error.absolute_path]
    if error.validator != "type" or not isinstance(value, str) or len(place) != 1:
        return ""
    try:
        json.loads(value[:_SHORT])
    except ValueError:
        return f" In a terminal JSON is written {place[0]}:='…'."
    return f" In a terminal JSON is written like {place[0]}:={shlex.quote(value)}." if len(value) <= _SHORT else ""


def _list(names: Any) -> str:
    return ", ".join(f'"{str(name)[:60]}"' for name in list(names)[:12])


def _usage(method: Method) -> str:
    required = set(method.parameters["required"])
    names = [name if name in required else f"[{name}]" for name in method.parameters["properties"]]
    return f"It takes {', '.join(names)}." if names else "It takes no arguments."


def kind_of(value: JsonValue) -> str:
    """What kind of JSON value this is, in words."""
    return next((word for kind, word in _KINDS if isinstance(value, kind)), type(value).__name__)


def shown(value: JsonValue) -> str:
    """A short rendering of a value for an error message."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}{'…' if len(value) > 40 else ''}"
    if isinstance(value, bool) or value is None:
        return str(value).lower().replace("none", "null")
    if isinstance(value, int | float):
        return f"the number {str(value)[:40]}"
    return kind_of(value)
