"""What a model answered to a function-calling question, as calls. All of it is untrusted.

Rules: nothing is evaluated; sizes and nesting are bounded before anything is parsed; an output is taken whole or not
at all. Read are native tool calls (OpenAI's, Anthropic's, and `{"function": arguments}`), the same as JSON text, and
Python calls, alone or in a list; fenced, in `<tool_call>` tags, or JSON among words. Unlike a proposal, which is about
to be run, an output is also read where a tuple isn't a list, and a bare name is the text of a variable.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mapper import syntax
from mapper.proposals import MAX_NESTING, MAX_PROPOSAL
from mapper.python_calls import MAX_STATEMENTS
from mapper.syntax import MAX_CODE
from policies.errors import InvalidInput
from policies.jsonvalue import parse

_FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_+-]*[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPERS = ("tool_calls", "calls", "actions", "function_call")
_ARGUMENTS = ("arguments", "args", "parameters", "input")
_CONSTANTS = {"true": True, "false": False, "null": None}
_JSON_TRIES = 20


class Unreadable(Exception):
    """There is no call in the output, or something that isn't one; the message says what."""


@dataclass(frozen=True)
class FunctionCall:
    """One call: unlike `policies.actions.Call` of any function, not of a catalogued method."""

    name: str
    arguments: Mapping[str, Any]


def read(output: Any, offered: Collection[str] = ()) -> list[FunctionCall]:
    """The calls in `output`: text, an object or a list. [] when it says that there are none.

    `offered` are the functions that may be called, which tells `{"name": …}` of a call from `{function: arguments}`.
    Raises Unreadable.
    """
    return _read(output, frozenset(offered), 0)


def _read(output: Any, offered: frozenset[str], depth: int) -> list[FunctionCall]:
    if depth > 6:
        raise Unreadable("The output is wrapped too often.")
    if output is None:
        return []
    if isinstance(output, str):
        return _text(output, offered, depth)
    if isinstance(output, list):
        return [call for item in output for call in _read(item, offered, depth + 1)]
    if isinstance(output, dict):
        return _object(output, offered, depth)
    raise Unreadable("The output is neither text, an object nor a list.")


def _object(item: dict[str, Any], offered: frozenset[str], depth: int) -> list[FunctionCall]:
    if item and set(item) <= offered | {name.replace(".", "_") for name in offered}:
        return [FunctionCall(name, _arguments(given)) for name, given in item.items()]
    for wrapper in _WRAPPERS:
        if item.get(wrapper) is not None:
            return _read(item[wrapper], offered, depth + 1)
    if isinstance(item.get("function"), dict):
        return _object(item["function"], offered, depth + 1)
    name = next((item[key] for key in ("name", "tool", "function", "method") if isinstance(item.get(key), str)), None)
    if name is not None:
        return [FunctionCall(name, _arguments(next((item[key] for key in _ARGUMENTS if key in item), {})))]
    if item.get("type") == "text" or any(wrapper in item for wrapper in _WRAPPERS):
        return []  # words beside the calls, or a message without any
    if "content" in item:
        return _read(item["content"], offered, depth + 1)
    raise Unreadable("There is an object that isn't a call.")


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = parse(given or "{}", limit=MAX_PROPOSAL, what="The arguments")
        except InvalidInput as error:
            raise Unreadable(error.message) from error
    if not isinstance(given, dict):
        raise Unreadable("The arguments aren't an object.")
    return given


def _text(text: str, offered: frozenset[str], depth: int) -> list[FunctionCall]:
    if len(text) > MAX_PROPOSAL:
        raise Unreadable(f"The output is longer than {MAX_PROPOSAL} characters.")
    if not text.strip():
        return []
    tagged = [match[1].strip() for match in _TAG.finditer(text)]
    if tagged:
        return [call for part in tagged[:MAX_STATEMENTS] for call in _part(part, offered, depth)]
    fenced = [match[1].strip() for match in list(_FENCE.finditer(text))[:5]]
    reason = "There is no call in the output."
    for part in fenced or [text.strip()]:
        try:
            return _part(part, offered, depth)
        except Unreadable as error:
            reason = str(error)
    for value in _embedded(text):
        try:
            return _read(value, offered, depth + 1)
        except Unreadable as error:
            reason = str(error)
    raise Unreadable(reason)


def _part(part: str, offered: frozenset[str], depth: int) -> list[FunctionCall]:
    if part[:1] in ("{", "["):
        try:
            value = parse(part, limit=MAX_PROPOSAL, what="The output")
        except InvalidInput:
            if part[:1] == "{":
                raise Unreadable("There is an object that isn't JSON.") from None
        else:
            return _read(value, offered, depth + 1)
    return python(part)


def _embedded(text: str) -> Iterator[Any]:
    """JSON objects and lists of objects among words."""
    decoder = json.JSONDecoder()
    for match in list(re.finditer(r"\[\s*\{|\{", text))[:_JSON_TRIES]:
        try:
            yield decoder.raw_decode(text, match.start())[0]
        except (ValueError, RecursionError):
            continue


def python(code: str) -> list[FunctionCall]:
    """The calls in Python text: statements that are calls, or lists of them. Raises Unreadable."""
    if len(code) > MAX_CODE:
        raise Unreadable(f"The code is longer than {MAX_CODE} characters.")
    body = syntax.statements(code)
    if body is None:
        raise Unreadable("There is no call in the output.")
    if len(body) > MAX_STATEMENTS:
        raise Unreadable("The code has too many statements.")
    calls: list[FunctionCall] = []
    for statement in body:
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            if not isinstance(node, ast.Call):
                raise Unreadable(f"Line {statement.lineno} isn't a call.")
            calls.append(_call(node))
    if not calls:
        raise Unreadable("There is no call in the output.")
    return calls


def _call(node: ast.Call) -> FunctionCall:
    name = syntax.dotted(node.func)
    if name is None:
        raise Unreadable("Only functions are called, by their names.")
    if node.args:
        raise Unreadable(f"The arguments of {name[:60]} aren't named.")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise Unreadable(f"The arguments of {name[:60]} aren't named one by one.")
        arguments[keyword.arg] = _value(keyword.value, 0)
    return FunctionCall(name, arguments)


def _value(node: ast.expr, depth: int) -> Any:
    if depth > MAX_NESTING:
        raise Unreadable(f"A value is nested deeper than {MAX_NESTING} levels.")
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as literal):
            return literal
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if number is not True:
            return -number
        case ast.List(elts=items):
            return [_value(item, depth + 1) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item, depth + 1) for item in items)
        case ast.Dict(keys=keys, values=values):
            made: dict[str, Any] = {}
            for key, value in zip(keys, values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or key.value in made:
                    raise Unreadable("The keys of an object aren't texts, each once.")
                made[key.value] = _value(value, depth + 1)
            return made
        case ast.Name(id=name):
            return _CONSTANTS.get(name, name)
        case ast.Attribute():
            dotted = syntax.dotted(node)
            if dotted is not None:
                return dotted
    raise Unreadable(f"{type(node).__name__} isn't a plain value.")
