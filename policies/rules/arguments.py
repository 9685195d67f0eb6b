"""Arguments of calls as Cedar types and values: by the method's own JSON Schema where that can be said, else as text.

Rules: text is String, whole numbers are Long, numbers `decimal` (four places), true and false Boolean, a list of one
kind a Set, an object with named properties a Record; anything else is String, holding the text itself or its JSON.
What a type can't hold exactly is `Unjudgeable`, as is what an answer will fill in later: a forbid that reads it denies,
a permit that reads it doesn't permit. That is null, which is sent and clears a field with many services, so it isn't as
absent; a list with equal elements, which a Set holds once; and an object with a member that its schema doesn't name. No
key of an argument can be taken for Cedar's own (`__entity`, `__extn`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from policies.actions import ANY_VALUE, refers
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from policies.services import Method

STRING: Mapping[str, Any] = {"type": "String"}
LONG: Mapping[str, Any] = {"type": "Long"}
BOOLEAN: Mapping[str, Any] = {"type": "Boolean"}
DECIMAL: Mapping[str, Any] = {"type": "Extension", "name": "decimal"}
_DEEPEST = 6
_CEDARS_OWN = frozenset({"__entity", "__extn", "__expr"})
_LEAST, _MOST = -(2**63), 2**63 - 1


class Unjudgeable(Exception):
    """An argument's value isn't one that a rule can look at. The text says why."""


def types_of(parameters: JsonObject) -> dict[str, dict[str, Any]]:
    """Cedar types (of its JSON schema format) of a method's arguments, each with `required`."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    wanted = _required(parameters)
    return {
        str(name): {**_type(schema, parameters, 0), "required": name in wanted}
        for name, schema in properties.items()
        if str(name) not in _CEDARS_OWN
    }


class TypesOf:
    """Cedar types of a method's arguments, kept as long as it is the same method."""

    def __init__(self, most: int = 512) -> None:
        self._known: dict[str, tuple[Method, Mapping[str, Any]]] = {}
        self._most = most

    def __call__(self, method: Method | None) -> Mapping[str, Any]:
        if method is None:
            return {}
        known = self._known.get(method.id)
        if known is None or known[0] is not method:
            if len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)))
            known = self._known[method.id] = method, types_of(method.parameters)
        return known[1]


def value_of(kind: Mapping[str, Any], value: JsonValue) -> Any:
    """The value as Cedar's JSON reads it. Raises Unjudgeable."""
    if is_open(value):
        raise Unjudgeable("the program may set it to anything, or leave it out")
    if refers(value):
        raise Unjudgeable("it is filled in from an answer, which nobody knows yet")
    return _value(kind, value)


def hides_members(parameters: JsonObject, name: str) -> bool:
    """Whether a value of this argument may have members that its Cedar type doesn't, so that no rule sees them."""
    properties = parameters.get("properties")
    return not isinstance(properties, Mapping) or _hides(properties.get(name), parameters, 0)


def is_ambiguous(parameters: JsonObject, name: str, value: JsonValue) -> bool:
    """Whether rules may take another value of this argument for this one: 5 and "5", where it may be either."""
    properties = parameters.get("properties")
    return not isinstance(properties, Mapping) or _ambiguous(properties.get(name), parameters, value, 0)


def is_open(value: JsonValue) -> bool:
    """Whether it is a program's to choose while it runs (`ANY_VALUE`)."""
    return isinstance(value, Mapping) and dict(value) == ANY_VALUE


def _type(schema: Any, root: JsonObject, depth: int) -> Mapping[str, Any]:
    schema = _followed(schema, root)
    if schema is None or depth > _DEEPEST:
        return STRING
    match _kind(schema):
        case "integer":
            return LONG
        case "number":
            return DECIMAL
        case "boolean":
            return BOOLEAN
        case "array" if isinstance(schema.get("items"), Mapping):
            return {"type": "Set", "element": dict(_type(schema["items"], root, depth + 1))}
        case "object":
            properties = schema.get("properties")
            if not isinstance(properties, Mapping) or not properties or _CEDARS_OWN & properties.keys():
                return STRING
            wanted = _required(schema)
            return {
                "type": "Record",
                "attributes": {
                    str(name): {**_type(one, root, depth + 1), "required": name in wanted}
                    for name, one in properties.items()
                },
            }
    return STRING


def _hides(schema: Any, root: JsonObject, depth: int) -> bool:
    kind = _type(schema, root, depth)
    schema = _followed(schema, root)
    if schema is None or kind["type"] not in ("Set", "Record"):
        return False  # text, which is all of it
    if kind["type"] == "Set":
        return _hides(schema["items"], root, depth + 1)
    properties = schema["properties"].values()
    return schema.get("additionalProperties") is not False or any(_hides(one, root, depth + 1) for one in properties)


def _ambiguous(schema: Any, root: JsonObject, value: JsonValue, depth: int) -> bool:
    kind = _type(schema, root, depth)
    schema = _followed(schema, root)
    if kind["type"] == "Set" and schema is not None:
        items = value if isinstance(value, list | tuple) else ()
        return any(_ambiguous(schema["items"], root, item, depth + 1) for item in items)
    if kind["type"] == "Record" and schema is not None:
        members = value.items() if isinstance(value, Mapping) else ()
        return any(_ambiguous(schema["properties"].get(name), root, item, depth + 1) for name, item in members)
    if kind["type"] != "String" or (schema is not None and _kind(schema) in ("string", "array", "object")):
        return False
    return not isinstance(value, str) or _stands_for_another(value)


def _stands_for_another(text: str) -> bool:
    """Whether a text is how a rule sees another value too: a number, a list."""
    try:
        value = parse(text)
        return not isinstance(value, str) and _text(value) == text
    except (InvalidInput, Unjudgeable):
        return False


def _followed(schema: Any, root: JsonObject) -> Mapping[str, Any] | None:
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            return None
        target = schema.get("$ref")
        if target is None:
            return schema
        schema = root
        for step in str(target).removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(step) if isinstance(schema, Mapping) else None
    return None


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    """What must be there. It may be null all the same: then no rule that reads it is evaluated."""
    wanted = schema.get("required")
    properties = schema.get("properties")
    if not isinstance(wanted, list | tuple) or not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(name for name in wanted if name in properties)


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        kinds = [one for one in kind if one != "null"]
        return str(kinds[0]) if len(kinds) == 1 else ""
    return str(kind) if isinstance(kind, str) else ""


def _value(kind: Mapping[str, Any], value: JsonValue) -> Any:
    if value is None:
        raise Unjudgeable("it is null or holds null, which isn't the same as leaving it out")
    match kind["type"]:
        case "Long":
            return _long(value)
        case "Boolean":
            if not isinstance(value, bool):
                raise Unjudgeable("it isn't true or false")
            return value
        case "Extension":
            return {"__extn": {"fn": "decimal", "arg": _decimal(value)}}
        case "Set":
            if not isinstance(value, list | tuple):
                raise Unjudgeable("it isn't a list")
            return _set(kind["element"], value)
        case "Record":
            return _record(kind["attributes"], value)
    return _text(value)


def _set(element: Mapping[str, Any], value: Sequence[JsonValue]) -> list[Any]:
    made = [_value(element, item) for item in value]
    if len(set(map(_as_compared, made))) < len(made):
        raise Unjudgeable("it holds a list with equal elements, which a rule sees as one")
    return made


def _as_compared(made: Any) -> Any:
    """A value of Cedar's JSON so that two are equal where Cedar finds them equal."""
    if isinstance(made, list):
        return frozenset(map(_as_compared, made))
    if isinstance(made, Mapping):
        return frozenset((name, _as_compared(one)) for name, one in made.items())
    return made


def _record(attributes: Mapping[str, Any], value: JsonValue) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Unjudgeable("it isn't an object")
    if not value.keys() <= attributes.keys():
        raise Unjudgeable("it has a member that the method's schema doesn't name")
    made = {name: _value(attributes[name], item) for name, item in value.items()}
    for name, one in attributes.items():
        if one.get("required") and name not in made:
            raise Unjudgeable(f"its {name} is missing")
    return made


def _text(value: JsonValue) -> str:
    text = value if isinstance(value, str) else canonical(value).decode("utf-8")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unjudgeable("it holds half a character") from None
    return text


def _long(value: JsonValue) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST <= value <= _MOST:
        raise Unjudgeable("it isn't a whole number of at most 64 bits")
    return value


def _decimal(value: JsonValue) -> str:
    try:
        number = Decimal(str(value)) if not isinstance(value, bool) else Decimal("nan")
        if not number.is_finite() or abs(number) > 10**14 or number != number.quantize(Decimal("0.0001")):
            raise InvalidOperation
    except InvalidOperation:
        raise Unjudgeable("it isn't a number of at most fourteen places before the point and four after it") from None
    return f"{number.quantize(Decimal('0.0001')) + 0:f}"  # there is one zero, without a sign
