"""Whether a call is one of a question's possible answers.

Rules, those of the Berkeley leaderboard's checker, with types held at every depth:

* the function's name is the expected one (a `.` may be `_`, since native tool names can't hold a dot);
* what the function requires is given; nothing is given that it, or the answer, doesn't know;
* a parameter that is left out has `""` among its possible values;
* a value has the declared type: an int where a float is declared, and a list where a tuple is, but neither the other
  way round, and never a bool for a number;
* a value is one of the possible ones: texts without case, spaces and `,./-_*^`, with either quote; lists in order;
  objects key by key, each key with possible values of its own;
* a possible value that isn't of the declared type itself stands for a variable, and is matched exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mapper.evaluation.outputs import FunctionCall

_IGNORED = re.compile(r"[ ,./\-_*^]")
_ALIASES = {"number": "float", "double": "float", "list": "array", "object": "dict", "bool": "boolean", "str": "string"}
_LEAVES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (float, int),
    "boolean": (bool,),
}
_NESTED: dict[str, tuple[type, ...]] = {"array": (list,), "tuple": (tuple, list), "dict": (dict,)}


def mismatch(call: FunctionCall, function: Mapping[str, Any], possible: Mapping[str, Any]) -> str:
    """Why `call` isn't the expected one of `function`; "" when it is.

    `possible` gives each parameter's possible values.
    """
    name = function["name"]
    if call.name not in (name, name.replace(".", "_")):
        return f"wrong function: {call.name[:60]}, not {name}"
    parameters = function["parameters"]
    properties = parameters.get("properties", {})
    for required in parameters.get("required", ()):
        if required not in call.arguments:
            return f"missing argument: {required}"
    for key, value in call.arguments.items():
        if key not in properties or key not in possible:
            return f"extra argument: {key[:60]}"
        if not any(_matches(value, one, properties[key]) for one in possible[key]):
            variable = any(
                type(value) is type(one) for one in possible[key] if one and not isinstance(one, list | dict)
            )
            kind = "value" if variable or _typed(value, properties[key]) else "type"
            return f"wrong {kind}: {key} is {_short(value)}"
    for key, values in possible.items():
        if key not in call.arguments and "" not in values:
            return f"missing argument: {key}"
    return ""


def normalised(text: str) -> str:
    """What is compared of a text."""
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _matches(value: Any, possible: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(possible, list):
        return _list_matches(value, possible, schema)
    if isinstance(possible, dict):
        return _dict_matches(value, possible, schema)
    if not _typed(possible, schema):  # a variable
        return type(value) is type(possible) and bool(value == possible)
    if not _typed(value, schema):
        return False
    if isinstance(possible, str):
        return isinstance(value, str) and normalised(value) == normalised(possible)
    return isinstance(value, bool) == isinstance(possible, bool) and bool(value == possible)


def _list_matches(value: Any, possible: list[Any], schema: Mapping[str, Any]) -> bool:
    kind = _kind(schema)
    # Where no type is declared for it, Python's two kinds of list are one.
    among: tuple[type, ...] = (list, tuple) if kind == "any" else _NESTED.get(kind, (list,))
    if not isinstance(value, list | tuple) or not isinstance(value, among):
        return False
    items = schema.get("items")
    inner = items if isinstance(items, dict) else {}
    return len(value) == len(possible) and all(
        _matches(one, other, inner) for one, other in zip(value, possible, strict=True)
    )


def _dict_matches(value: Any, possible: dict[str, Any], schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, dict) or not set(value) <= set(possible):
        return False
    properties = schema.get("properties")
    inner = properties if isinstance(properties, dict) else {}
    for key, among in possible.items():
        alternatives = among if isinstance(among, list) else [among]
        if key not in value:
            if "" not in alternatives:
                return False
        elif not any(_matches(value[key], one, inner.get(key, {})) for one in alternatives):
            return False
    return True


def _typed(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether `value` has the declared type, at every depth that declares one."""
    kind = _kind(schema)
    if kind in _LEAVES:
        return isinstance(value, _LEAVES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if kind not in _NESTED:
        return True
    if kind == "dict":
        properties = schema.get("properties")
        inner = properties if isinstance(properties, dict) else {}
        return isinstance(value, dict) and all(_typed(one, inner.get(key, {})) for key, one in value.items())
    if not isinstance(value, list | tuple) or not isinstance(value, _NESTED[kind]):
        return False
    items = schema.get("items")
    return all(_typed(one, items if isinstance(items, dict) else {}) for one in value)


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "any")
    return _ALIASES.get(kind, kind) if isinstance(kind, str) else "any"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
