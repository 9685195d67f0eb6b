"""What single nodes of JavaScript's tree say, and what they are as Python's."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

SETTER = "js:set:"  # before a setter's name
_ESCAPE = re.compile(r"\\u(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{4})")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


LOOPS = frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"})
_FUNCTIONS = frozenset({
    "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "method_definition", "class_static_block",
})  # fmt: skip


def unexported(node: Node) -> Node:
    """What is exported, without that word."""
    if node.type != "export_statement":
        return node
    return node.child_by_field_name("declaration") or node.child_by_field_name("value") or node


def placed(node: ast.AST, line: int) -> None:
    """Give every node that has no line yet this one: what is within one that has, has one, too."""
    found = [node]
    while found:
        one = found.pop()
        if isinstance(one, ast.stmt | ast.expr | ast.arg | ast.alias | ast.ExceptHandler):
            if hasattr(one, "lineno"):
                continue
            one.lineno = one.end_lineno = line
            one.col_offset = one.end_col_offset = 0
        found.extend(ast.iter_child_nodes(one))


def loaded(target: ast.expr) -> ast.expr:
    """What is assigned to, as an expression that reads it."""
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=owner, attr=name):
            return ast.Attribute(owner, name, ast.Load())
        case ast.Subscript(value=owner, slice=place):
            return ast.Subscript(owner, place, ast.Load())
    return target


def parameters_of(node: Node | None) -> Sequence[Node]:
    """A function's parameters, also the one of an arrow function that stands without parentheses."""
    if node is None:
        return ()
    return [one for one in node.named_children if one.type != "comment"] if node.type == "formal_parameters" else [node]


def given_to(arguments: Node | None) -> Sequence[Node]:
    """What a call is given, also by a template whose tag it is (after its texts)."""
    if arguments is None:
        return ()
    if arguments.type == "template_string":
        return [
            one.named_children[0]
            for one in arguments.named_children
            if one.type == "template_substitution" and one.named_children
        ]
    return [one for one in arguments.named_children if one.type != "comment"]


def pattern_pairs(pattern: Node) -> list[tuple[str, Node]]:
    """The (key, own name) pairs of an object pattern; without those that have defaults or patterns of their own."""
    made = []
    for one in pattern.named_children:
        if one.type == "shorthand_property_identifier_pattern":
            made.append((source_text(one), one))
        elif one.type == "pair_pattern" and (own := one.child_by_field_name("value")) is not None:
            made.append((source_text(one.child_by_field_name("key")), own))
    return made


def required_module(node: Node) -> str | None:
    """The module that `require('…')` names; None for anything else."""
    if node.type != "call_expression" or source_text(node.child_by_field_name("function")) != "require":
        return None
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    return string_value(given[0]) if len(given) == 1 and given[0].type == "string" else None


def source_text(node: Node | None) -> str:
    """As it is written, a name's escape sequences replaced; "" for no node."""
    text = (node.text or b"").decode("utf-8", "replace") if node is not None else ""
    if "\\" in text and node is not None and node.type.endswith(("identifier", "identifier_pattern")):
        return _ESCAPE.sub(lambda found: unescaped(found[0]), text)
    return text


def string_value(node: Node | None) -> str:
    """A string literal's, with its escape sequences replaced."""
    if node is None:
        return ""
    parts = ((one.type, source_text(one)) for one in node.named_children)
    return "".join(unescaped(text) if kind == "escape_sequence" else text for kind, text in parts)


def field_name(key: Node | None) -> str:
    """What a field of an object is called."""
    return string_value(key) if key is not None and key.type == "string" else source_text(key)


def _words(method: Node) -> set[str]:
    return {one.type for one in method.children if not one.is_named}


def method_name(method: Node) -> str:
    """The name of a class's method, as Python's has it."""
    name = source_text(method.child_by_field_name("name"))
    return f"{SETTER}{name}" if "set" in _words(method) else "__init__" if name == "constructor" else name


def decorated(function: ast.FunctionDef, method: Node) -> ast.FunctionDef:
    """The function that a class's method is, with Python's decorators: a getter is a property."""
    kinds = {"static": "classmethod", "get": "property"}
    function.decorator_list = [ast.Name(kinds[one], ast.Load()) for one in sorted(_words(method) & set(kinds))]
    return function


def field_of(place: Node) -> str:
    """The name of the field that `owner.name` or `owner["name"]` is; "" where that isn't written there."""
    index = place.child_by_field_name("index")
    if index is not None:
        return string_value(index) if index.type == "string" else ""
    return source_text(place.child_by_field_name("property"))


def unescaped(text: str) -> str:
    """The character that an escape sequence stands for."""
    inner = text[1:]
    if inner[:1] in ("u", "x"):
        try:
            return chr(int(inner[1:].strip("{}"), 16))
        except (ValueError, OverflowError):
            return "\ufffd"
    return _ESCAPED.get(inner, inner)


def number_value(text: str) -> ast.expr | None:
    """A number literal's; None for a BigInt and the like."""
    plain = text.replace("_", "").lower()
    try:
        whole = plain[:2] == "0x" or not any(one in plain for one in ".en")
        return ast.Constant(exact(int(plain, 0) if whole else float(plain)))
    except (ValueError, OverflowError):
        return None


def exact(number: float) -> int | float:
    """A number as JavaScript has it and JSON writes it: there `5.0` is 5. Raises ValueError for one that is rounded, or
    infinite, and OverflowError."""
    found = float(number)
    if not abs(found) < 2**53:
        raise ValueError("it is rounded")
    return int(found) if found.is_integer() else found


def placed_items(node: Node) -> list[Node | None]:
    """The items of a list or a pattern, by their places: None for one that is left out."""
    found: list[Node | None] = []
    empty = True
    for one in node.children:
        if one.is_named and one.type != "comment":
            found.append(one)
            empty = False
        elif one.type == ",":
            found += [None] if empty else []
            empty = True
    return found


def rounds_out(node: Node) -> int:
    """How many loops lie between a `break` or `continue` and the one that it means; a `switch`, and what has a label
    and is no loop, is one that has one round."""
    label = source_text(node.child_by_field_name("label"))
    count = -1
    inner, one = node, node.parent
    while one is not None and one.type not in _FUNCTIONS:
        loops = one.type in LOOPS
        labels = one.type == "labeled_statement"
        named = labels and bool(label) and source_text(one.child_by_field_name("label")) == label
        if named and inner.type in LOOPS:
            return max(count, 0)
        count += loops or one.type == "switch_statement" or (labels and inner.type not in LOOPS)
        if named or (not label and (loops or (one.type == "switch_statement" and node.type[0] == "b"))):
            return max(count, 0)
        inner, one = one, one.parent
    return max(count, 0)
