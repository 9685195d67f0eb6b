"""Calls written as Python, read by their syntax and never run.

Taken: statements that are calls of dotted names with named, literal arguments, perhaps awaited, printed or assigned;
a variable that holds an earlier call's answer, followed by `["key"]`, `.key` or `[0]`, becomes a reference to it.
Anything else (imports, definitions, loops, operators, calls as arguments) rejects the whole text.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from typing import Any

from mapper import syntax
from mapper.syntax import MAX_CODE

MAX_STATEMENTS = 100

_OWN = "|".join(keyword.kwlist)
_RESERVED = re.compile(rf"[(,]\s*(?:{_OWN})\s*=(?!=)|\.\s*(?:{_OWN})\b")
_FREED = "__as_argument"
_CONSTANTS = {"true": True, "false": False, "null": None}


class NotCalls(Exception):
    """The text isn't just calls; the message says what else is in it."""


def parse(code: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls in `code`: dotted name and arguments. Raises NotCalls."""
    if len(code) > MAX_CODE:
        raise NotCalls(f"The code is {len(code)} characters long; at most {MAX_CODE} are read.")
    body = syntax.statements(code) or syntax.statements(_freed(code))
    if body is None:
        raise NotCalls("There is neither JSON nor a call in it.")
    if len(body) > MAX_STATEMENTS:
        raise NotCalls("The code has too many statements.")
    calls: list[tuple[str, dict[str, Any]]] = []
    answers: dict[str, int] = {}
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a string that stands alone is a comment
        value, names = _statement(statement)
        calls.append(_call(value, answers))
        for name in names:
            answers[name] = len(calls) - 1
    if not calls:
        raise NotCalls("There is no call in the code.")
    return calls


def _freed(code: str) -> str:
    """`code` with Python's own words made names where they name an argument or end a method's name: services have
    arguments like `from` and methods like `messages.import`."""
    if len(code) > MAX_CODE or _RESERVED.search(code) is None:
        return code
    found: list[tuple[int, int]] = []
    try:
        read = tokenize.generate_tokens(io.StringIO(code).readline)
        tokens = [token for token in read if token.type not in (tokenize.NL, tokenize.COMMENT)]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return code
    for before, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        named = before.string in ("(", ",") and after.string == "="
        if keyword.iskeyword(name.string) and (named or before.string == "."):
            found.append(name.end)
    lines = io.StringIO(code).readlines()  # ends lines where the tokenizer does, and nowhere else
    for row, column in reversed(found):
        lines[row - 1] = lines[row - 1][:column] + _FREED + lines[row - 1][column:]
    return "".join(lines)


def keywords(text: str) -> dict[str, Any]:
    """Named literal arguments alone, as between a call's brackets: `a=1, b="x"`. Raises NotCalls."""
    node = syntax.expression(f"f({text})") or syntax.expression(_freed(f"f({text})"))
    # Brackets in the text could close the call and go on.
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.keywords:
        raise NotCalls("These aren't named values.")
    return _call(node, {})[1]


def _statement(statement: ast.stmt) -> tuple[ast.Call, list[str]]:
    """The call in a statement, and the names that its answer gets."""
    names: list[str] = []
    value: ast.expr | None = None
    if isinstance(statement, ast.Expr):
        value = statement.value
    elif isinstance(statement, ast.Assign):
        value = statement.value
        for target in statement.targets:
            if not isinstance(target, ast.Name):
                raise NotCalls(f"Line {statement.lineno}: an answer can only be given to a name.")
            names.append(target.id)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        value, names = statement.value, [statement.target.id]
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Call) and syntax.dotted(value.func) == "print":
        value = value.args[0] if len(value.args) == 1 and not value.keywords else value
    if not isinstance(value, ast.Call):
        raise NotCalls(f"Line {statement.lineno}: {_kind(value or statement)} isn't a call of a method.")
    return value, names


def _call(call: ast.Call, answers: dict[str, int]) -> tuple[str, dict[str, Any]]:
    name = syntax.dotted(call.func)
    name = name.replace(_FREED, "") if name is not None else None
    if name is None:
        raise NotCalls(f"Line {call.lineno}: only methods are called here, by their full names.")
    if call.args:
        raise NotCalls(f"Line {call.lineno}: the arguments of {name[:60]} must be named.")
    arguments: dict[str, Any] = {}
    for given in call.keywords:
        if given.arg is None:
            raise NotCalls(f"Line {call.lineno}: the arguments of {name[:60]} must be named one by one.")
        argument = given.arg.removesuffix(_FREED)
        if argument in arguments:
            raise NotCalls(f"Line {call.lineno}: {argument[:60]} is given twice.")
        arguments[argument] = _value(given.value, answers)
    return name, arguments


def _value(node: ast.expr, answers: dict[str, int]) -> Any:
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as literal):
            return literal
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if number is not True:
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, answers) for item in items]
        case ast.Dict(keys=keys, values=values):
            made: dict[str, Any] = {}
            for key, value in zip(keys, values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or key.value in made:
                    raise NotCalls(f"Line {node.lineno}: keys must be texts, each once.")
                made[key.value] = _value(value, answers)
            return made
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
    reference = _reference(node, answers)
    if reference is None:
        raise NotCalls(f"Line {node.lineno}: {_kind(node)} isn't a plain value.")
    return reference


def _reference(node: ast.expr, answers: dict[str, int]) -> dict[str, Any] | None:
    """`answer["a"].b[0]` as a reference to an earlier call."""
    path = ""
    while True:
        match node:
            case ast.Attribute(value=inner, attr=name):
                path, node = f".{name}{path}", inner
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as name)):
                step = f".{name}" if name.isidentifier() and name.isascii() else f'["{_quoted(name)}"]'
                path, node = step + path, inner
            case ast.Subscript(value=inner, slice=ast.Constant(value=int() as index)) if index >= 0:
                path, node = f"[{int(index)}]{path}", inner
            case ast.Name(id=name) if name in answers:
                return {"$from": answers[name], "path": f"${path}"}
            case _:
                return None


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _kind(node: ast.AST) -> str:
    words: dict[type[ast.AST], str] = {
        ast.Import: "an import",
        ast.ImportFrom: "an import",
        ast.FunctionDef: "a definition",
        ast.ClassDef: "a definition",
        ast.Call: "a call",
        ast.Lambda: "a function",
        ast.Name: "a name",
        ast.JoinedStr: "a formatted text",
    }
    return words.get(type(node), type(node).__name__)
