"""JavaScript's expressions as Python's (`mapper.code.javascript_syntax`)."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mapper.code.javascript_names import Names
from mapper.code.javascript_nodes import (
    field_name,
    given_to,
    number_value,
    placed_items,
    required_module,
    source_text,
    string_value,
    unescaped,
)
from mapper.code.sent_requests import Seen

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 150  # constructs within constructs
BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod, "**": ast.Pow
}  # fmt: skip
_COMPARED: dict[str, type[ast.cmpop]] = {"===": ast.Is, "!==": ast.IsNot, "==": ast.Eq, "!=": ast.NotEq}
_RENAMED = {"push": "append"}  # methods that change what they are called on, by Python's names
_UNKNOWN = "js:unknown"  # a name that nothing has


class Expressions(ABC):
    """The expressions of one program."""

    def __init__(self, seen: Seen, root: Node) -> None:
        self._seen = seen
        self._names = Names(root, seen)
        self._before: list[list[ast.stmt]] = []  # by block: what has to stand before the statement that is made
        self._made = 0
        self._depth = 0
        self._line = 1

    @abstractmethod
    def _function(self, node: Node, name: str, method: bool = False) -> ast.FunctionDef:
        """A function of that name."""

    @abstractmethod
    def _class(self, node: Node) -> tuple[ast.ClassDef, *tuple[ast.stmt, ...]]:
        """A class, and what is done as soon as it is there."""

    @abstractmethod
    def _target(self, node: Node | None) -> ast.Name | ast.Attribute | ast.Subscript | None:
        """What a value is assigned to."""

    @abstractmethod
    def _whole(self, source: str, own: str) -> ast.stmt:
        """The import of a whole module."""

    def expression(self, node: Node | None) -> ast.expr:
        """What an expression is."""
        self._seen.spend(1)
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise RecursionError
            return self._expression(node) if node is not None else ast.Constant(None)
        finally:
            self._depth -= 1

    def _expression(self, node: Node) -> ast.expr:
        match node.type:
            case "super":
                above = ast.Call(ast.Name("super", ast.Load()), [], [])
                called = node.parent is not None and node.parent.type == "call_expression"
                return ast.Attribute(above, "__init__", ast.Load()) if called else above
            case "identifier" | "this" | "shorthand_property_identifier":
                read = ast.Name(self._names.own(node), ast.Load())
                known_as = self._names.known_as(node)
                return ast.Call(ast.Name(known_as, ast.Load()), [read], []) if known_as else read
            case "undefined" | "null":
                return ast.Constant(None)
            case "true" | "false":
                return ast.Constant(node.type == "true")
            case "number":
                return number_value(source_text(node)) or self._unknown()
            case "string":
                return ast.Constant(string_value(node))
            case "template_string":
                return self._template(node)
            case "parenthesized_expression" | "await_expression" | "non_null_expression":
                return self.expression(node.named_children[-1] if node.named_children else None)
            case "sequence_expression":
                for one in node.named_children[:-1]:
                    self._before[-1].append(ast.Expr(self.expression(one)))
                return self.expression(node.named_children[-1])
            case "object":
                return self._object(node)
            case "array":
                return ast.List([self._item(one) for one in placed_items(node)], ast.Load())
            case "member_expression":
                return self._member(self._field(node, "object"), node.child_by_field_name("property"))
            case "subscript_expression":
                return ast.Subscript(self._field(node, "object"), self._field(node, "index"), ast.Load())
            case "call_expression" | "new_expression":
                return self._call(node)
            case "arrow_function" | "function_expression" | "generator_function":
                function = self._function(node, self._name())
                self._before[-1].append(function)
                return ast.Name(function.name, ast.Load())
            case "class":
                made = self._class(node)
                self._before[-1] += made
                return ast.Name(made[0].name, ast.Load())
            case "binary_expression":
                return self._binary(node)
            case "unary_expression":
                value = self._field(node, "argument")
                operator = source_text(node.child_by_field_name("operator"))
                if operator == "!":
                    return ast.UnaryOp(ast.Not(), value)
                self._before[-1].append(ast.Expr(value))
                if operator == "delete" and (target := self._target(node.child_by_field_name("argument"))) is not None:
                    self._before[-1].append(ast.Assign([target], self._unknown()))
                return self._unknown()
            case "ternary_expression":
                return ast.IfExp(*(self._field(node, name) for name in ("condition", "consequence", "alternative")))
            case "assignment_expression" | "augmented_assignment_expression" | "update_expression":
                # It may not be reached: what the name holds afterwards isn't known.
                value = self._field(node, "right") if node.child_by_field_name("right") else self._unknown()
                target = self._target(node.child_by_field_name("left") or node.child_by_field_name("argument"))
                if target is not None:
                    self._before[-1].append(ast.Assign([target], self._unknown()))
                return value
            case "spread_element" | "computed_property_name":
                return self.expression(node.named_children[0])
            case "yield_expression":
                value = self.expression(node.named_children[0]) if node.named_children else ast.Constant(None)
                return ast.YieldFrom(value) if any(one.type == "*" for one in node.children) else ast.Yield(value)
        for one in node.named_children:  # whatever it does, its parts may send something
            if one.type not in ("comment", "regex_pattern", "regex_flags", "class_body"):
                self._before[-1].append(ast.Expr(self.expression(one)))
        return self._unknown()

    def _field(self, node: Node, name: str) -> ast.expr:
        return self.expression(node.child_by_field_name(name))

    def _item(self, node: Node | None) -> ast.expr:
        value = self.expression(node)
        return ast.Starred(value, ast.Load()) if node is not None and node.type == "spread_element" else value

    def _member(self, owner: ast.expr, name: Node | None) -> ast.expr:
        if name is None:
            return self._unknown()
        if name.type == "computed_property_name":
            return ast.Subscript(owner, self.expression(name.named_children[0]), ast.Load())
        text = string_value(name) if name.type == "string" else source_text(name)
        return ast.Attribute(owner, _RENAMED.get(text, text), ast.Load())

    def _call(self, node: Node) -> ast.expr:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if function is not None and function.type == "import":
            self._seen.note(f"Line {self._line}: imports by a name that is made while it runs.")
            return self._unknown()
        name = source_text(function)
        if name in ("eval", "Function") or name.rstrip(")").endswith(".constructor"):
            what = name if name in ("eval", "Function") else "a constructor by its attribute"
            self._seen.note(f"Line {self._line}: {what} runs text as a program.")
        if (module := required_module(node)) is not None:
            own = self._name()
            self._before[-1].append(self._whole(module, own))
            return ast.Name(own, ast.Load())
        tagged = [self._texts(arguments)] if arguments is not None and arguments.type == "template_string" else []
        args = [*tagged, *[self._item(one) for one in given_to(arguments)]]
        return ast.Call(self.expression(function), args, [])

    def _object(self, node: Node) -> ast.expr:
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for one in node.named_children:
            match one.type:
                case "pair":
                    keys.append(self._key(one.child_by_field_name("key")))
                    values.append(self._field(one, "value"))
                case "shorthand_property_identifier":
                    keys.append(ast.Constant(source_text(one)))
                    values.append(self.expression(one))
                case "spread_element":
                    keys.append(None)
                    values.append(self.expression(one.named_children[0]))
                case "method_definition":
                    function = self._function(one, self._name())
                    self._before[-1].append(function)
                    keys.append(self._key(one.child_by_field_name("name")))
                    values.append(ast.Name(function.name, ast.Load()))
        return ast.Dict(keys, values)

    def _key(self, key: Node | None) -> ast.expr:
        return self.expression(key) if key and key.type == "computed_property_name" else ast.Constant(field_name(key))

    def _texts(self, node: Node) -> ast.expr:
        """The texts of a template, of which its tag gets a list."""
        made = [""]
        for one in node.named_children:
            if one.type == "template_substitution":
                made.append("")
            else:
                made[-1] += unescaped(source_text(one)) if one.type == "escape_sequence" else source_text(one)
        return ast.List([ast.Constant(one) for one in made], ast.Load())

    def _template(self, node: Node) -> ast.expr:
        parts: list[ast.expr] = []
        for one in node.named_children:
            if one.type == "template_substitution":
                inner = self.expression(one.named_children[0] if one.named_children else None)
                parts.append(ast.FormattedValue(inner, -1, None))
            else:
                part = source_text(one)
                parts.append(ast.Constant(unescaped(part) if one.type == "escape_sequence" else part))
        return ast.JoinedStr(parts)

    def _binary(self, node: Node) -> ast.expr:
        operator = source_text(node.child_by_field_name("operator"))
        left, right = self._field(node, "left"), self._field(node, "right")
        if operator in BINARY:
            return ast.BinOp(left, BINARY[operator](), right)
        if operator in ("&&", "||"):
            return ast.BoolOp(ast.And() if operator == "&&" else ast.Or(), [left, right])
        if operator == "??":
            return ast.Call(ast.Name("js:else", ast.Load()), [left, right], [])
        if operator in _COMPARED:
            return ast.Compare(left, [_COMPARED[operator]()], [right])
        self._before[-1] += [ast.Expr(left), ast.Expr(right)]
        return self._unknown()

    def _unknown(self) -> ast.expr:
        return ast.Call(ast.Name(_UNKNOWN, ast.Load()), [], [])

    def _name(self) -> str:
        self._made += 1
        return f"js:{self._made}"
