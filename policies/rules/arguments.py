"""Arguments of calls as Cedar types and values: by the method's own JSON Schema where that can be said, else as text.

Rules: text is String, whole numbers are Long, numbers `decimal` (four places), true and false Boolean, a list of one
kind a Set, an object with named properties a Record; anything else is String, holding the text itself or its JSON. null
is as absent. What a type can't hold exactly, and what an answer will fill in later, is `Unjudgeable`: whoever reads it
in a rule gets a denial. No key of an argument can be taken for Cedar's own (`__entity`, `__extn`).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from policies.actions import ANY_VALUE, refers
from policies.jsonvalue import JsonObject, JsonValue, canonical

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
    wanted = _required(parameters, parameters)
    return {
        str(name): {**_type(schema, parameters, 0), "required": name in wanted}
        for name, schema in properties.items()
        if str(name) not in _CEDARS_OWN
    }


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
            wanted = _required(schema, root)
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


def _required(schema: Mapping[str, Any], root: JsonObject) -> frozenset[str]:
    """What must be there, and can't be null, which is as absent."""
    wanted = schema.get("required")
    properties = schema.get("properties")
    if not isinstance(wanted, list | tuple) or not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(name for name in wanted if _never_null(_followed(properties.get(name), root)))


def _never_null(schema: Mapping[str, Any] | None) -> bool:
    kind = schema.get("type") if schema is not None else None
    return isinstance(kind, str) and kind != "null"


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        kinds = [one for one in kind if one != "null"]
        return str(kinds[0]) if len(kinds) == 1 else ""
    return str(kind) if isinstance(kind, str) else ""


def _value(kind: Mapping[str, Any], value: JsonValue) -> Any:
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
            return [_value(kind["element"], item) for item in value]
        case "Record":
            return _record(kind["attributes"], value)
    return _text(value)


def _record(attributes: Mapping[str, Any], value: JsonValue) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Unjudgeable("it isn't an object")
    made = {
        name: _value(attributes[name], item) for name, item in value.items() if name in attributes and item is not None
    }
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
    return f"{number.quantize(Decimal('0.0001')):f}"
