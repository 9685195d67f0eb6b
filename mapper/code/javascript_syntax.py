"""JavaScript's syntax as Python's: statements and expressions that do the same, as far as reading them goes.

Rules: what a construct may do beyond its counterpart makes what it gives unknown, never known wrongly; every line keeps
its number. A function that is more than an expression gets a name of its own before the statement that it stands in.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mapper.code.javascript_names import SHARED, Names
from mapper.code.javascript_nodes import (
    decorated,
    field_name,
    given_to,
    loaded,
    method_name,
    number_value,
    parameters_of,
    pattern_pairs,
    placed,
    required_module,
    source_text,
    string_value,
    unescaped,
    unexported,
)
from mapper.code.sent_requests import Seen

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 150  # constructs within constructs
MODULE = "js:"  # what the full names of imported things begin with
_HIDING = frozenset({"child_process", "net", "tls", "vm", "worker_threads", "http2", "dgram", "cluster"})
_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod, "**": ast.Pow
}  # fmt: skip
_COMPARED: dict[str, type[ast.cmpop]] = {"===": ast.Is, "!==": ast.IsNot, "==": ast.Eq, "!=": ast.NotEq}
_RENAMED = {"push": "append"}  # methods that change what they are called on, by Python's names
_UNKNOWN = "js:unknown"  # a name that nothing has


class Translation:
    """One program's."""

    def __init__(self, seen: Seen, root: Node) -> None:
        self._seen = seen
        self._names = Names(root, seen)
        self._before: list[list[ast.stmt]] = []  # by block: what has to stand before the statement that is made
        self.assigned = {""} if self._names.lends else set()  # fields that are given a value; "" is any
        self._made = 0
        self._depth = 0
        self._line = 1

    # ---- statements

    def block(self, node: Node) -> list[ast.stmt]:
        """A block's statements, its functions first, as they are hoisted."""
        children = node.named_children if node.type in ("program", "statement_block", "class_body") else [node]
        hoisted = [one for one in children if unexported(one).type.endswith("function_declaration")]
        rest = [one for one in children if one not in hoisted]
        made: list[ast.stmt] = []
        for child in (*hoisted, *rest):
            made.extend(self.statement(child))
        return made

    def statement(self, node: Node) -> list[ast.stmt]:
        """What one statement is, with what has to stand before it."""
        self._seen.spend(1)
        self._depth += 1
        self._line = line = node.start_point[0] + 1
        self._before.append([])
        try:
            if self._depth > MAX_DEPTH:
                raise RecursionError
            found = self._statement(unexported(node))
            made = [*self._before[-1], *found]
        finally:
            self._before.pop()
            self._depth -= 1
        for one in made:
            placed(one, line)
        return made

    def _statement(self, node: Node) -> list[ast.stmt]:
        made: list[ast.stmt]
        match node.type:
            case "import_statement":
                return self._import(node)
            case "lexical_declaration" | "variable_declaration":
                return [one for child in node.named_children for one in self._declared(child)]
            case "expression_statement":
                return self._expression_statement(node.named_children[0]) if node.named_children else []
            case "function_declaration" | "generator_function_declaration":
                return [self._function(node, self._names.own(node.child_by_field_name("name")))]
            case "class_declaration":
                return [self._class(node)]
            case "return_statement":
                return [ast.Return(self.expression(node.named_children[0]) if node.named_children else None)]
            case "throw_statement":
                return [ast.Raise(self.expression(node.named_children[0]) if node.named_children else None, None)]
            case "if_statement":
                other = node.child_by_field_name("alternative")
                otherwise = self._block(other.named_children[0]) if other and other.named_children else []
                body = self._body(node.child_by_field_name("consequence"))
                return [ast.If(self._field(node, "condition"), body, otherwise)]
            case "for_in_statement":
                return self._for_in(node)
            case "for_statement":
                first = node.child_by_field_name("initializer")
                begun = self._block(first) if first is not None and first.is_named else []
                change = node.child_by_field_name("increment")
                body = self._body(node.child_by_field_name("body"))
                return [*begun, ast.While(self._unknown(), [*body, *(self._block(change) if change else [])], [])]
            case "while_statement" | "do_statement":
                body = self._body(node.child_by_field_name("body"))
                loop = ast.While(self._unknown(), body, [])
                condition = ast.Expr(self._field(node, "condition"))
                return [condition, loop] if node.type == "while_statement" else [loop, condition]
            case "labeled_statement":
                made = self._block(node.child_by_field_name("body"))
                loops = any(isinstance(one, ast.For | ast.While) for one in made[-1:])
                return made if loops else [ast.While(self._unknown(), made or [ast.Pass()], [])]  # `break` leaves it
            case "statement_block":
                return [one for child in node.named_children for one in self._block(child)]
            case "try_statement":
                return [self._try(node)]
            case "switch_statement":
                made = [ast.Expr(self._field(node, "value"))]
                for case in node.child_by_field_name("body").named_children:  # type: ignore[union-attr] # the grammar's
                    body = [one for child in case.children_by_field_name("body") for one in self._block(child)]
                    kept = [one for one in body if not isinstance(one, ast.Break)]
                    made.append(ast.If(self._unknown(), kept or [ast.Pass()], []))
                return made
            case "break_statement":
                return [ast.Break()]
            case "continue_statement":
                return [ast.Continue()]
            case "comment" | "empty_statement" | "hash_bang_line" | "debugger_statement" | "export_statement":
                return []
        return self._expression_statement(node)

    def _block(self, node: Node | None) -> list[ast.stmt]:
        if node is None:
            return []
        return self.block(node) if node.type == "statement_block" else self.statement(node)

    def _body(self, node: Node | None) -> list[ast.stmt]:
        return self._block(node) or [ast.Pass()]

    def _expression_statement(self, node: Node) -> list[ast.stmt]:
        match node.type:
            case "assignment_expression":
                return self._assigned(node.child_by_field_name("left"), self._field(node, "right"))
            case "augmented_assignment_expression":
                operator = source_text(node.child_by_field_name("operator")).removesuffix("=")
                target = self._target(node.child_by_field_name("left"))
                value = self._field(node, "right")
                if target is None:
                    return [ast.Expr(value)]
                if operator in _BINARY:
                    return [ast.AugAssign(target, _BINARY[operator](), value)]
                return [ast.Assign([target], ast.IfExp(self._unknown(), value, loaded(target)))]
            case "update_expression":
                target = self._target(node.child_by_field_name("argument"))
                return [ast.Assign([target], self._unknown())] if target is not None else []
            case "sequence_expression" | "parenthesized_expression":
                return [one for child in node.named_children for one in self._expression_statement(child)]
        return [ast.Expr(self.expression(node))]

    def _import(self, node: Node) -> list[ast.stmt]:
        source = string_value(node.child_by_field_name("source"))
        clause = next((one for one in node.named_children if one.type == "import_clause"), None)
        made: list[ast.stmt] = []
        for child in clause.named_children if clause is not None else ():
            if child.type == "identifier":
                made.append(self._from(source, "default", source_text(child)))
            elif child.type == "namespace_import":
                made.append(self._whole(source, source_text(child.named_children[0])))
            for one in child.named_children if child.type == "named_imports" else ():
                name = source_text(one.child_by_field_name("name"))
                made.append(self._from(source, name, source_text(one.child_by_field_name("alias")) or name))
        return made

    def _from(self, source: str, name: str, own: str) -> ast.stmt:
        return ast.ImportFrom(self._module(source), [ast.alias(name, own)], 0)

    def _whole(self, source: str, own: str) -> ast.stmt:
        return ast.Import([ast.alias(self._module(source), own)])

    def _module(self, source: str) -> str:
        name = source.removeprefix("node:")
        if name.partition("/")[0] in _HIDING:
            self._seen.note(f"Line {self._line}: {name} opens connections or runs programs of its own.")
        return MODULE + name.replace(".", "_")

    def _declared(self, node: Node) -> list[ast.stmt]:
        if node.type != "variable_declarator":
            return []
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if value is None or name is None:
            return [ast.Assign([ast.Name(self._names.own(name), ast.Store())], ast.Constant(None))]
        module = required_module(value)
        if module is not None and name.type == "identifier":
            return [self._whole(module, self._names.own(name))]
        if module is not None and name.type == "object_pattern":
            return [self._from(module, key, self._names.own(own)) for key, own in pattern_pairs(name)]
        if name.type == "identifier" and value.type in ("arrow_function", "function_expression", "generator_function"):
            return [self._function(value, self._names.own(name))]
        return self._assigned(name, self.expression(value))

    def _assigned(self, target: Node | None, value: ast.expr) -> list[ast.stmt]:
        """`target = value`, whose names may be taken out of an object or a list."""
        if target is None:
            return [ast.Expr(value)]
        if target.type not in ("object_pattern", "array_pattern"):
            found = self._target(target)
            return [ast.Assign([found], value)] if found is not None else [ast.Expr(value)]
        whole = self._name()
        made: list[ast.stmt] = [ast.Assign([ast.Name(whole, ast.Store())], value)]
        for place, child in enumerate(target.named_children):
            inner: ast.expr = ast.Name(whole, ast.Load())
            to: Node | None = child
            default: ast.expr | None = None
            match child.type:
                case "pair_pattern":
                    inner = self._member(inner, child.child_by_field_name("key"))
                    to = child.child_by_field_name("value")
                case "shorthand_property_identifier_pattern":
                    inner = ast.Attribute(inner, source_text(child), ast.Load())
                case "object_assignment_pattern":
                    to = child.child_by_field_name("left")
                    inner = ast.Attribute(inner, source_text(to), ast.Load())
                    default = self._field(child, "right")
                case "rest_pattern":
                    to, inner = child.named_children[0], self._unknown()
                case _:
                    inner = ast.Subscript(inner, ast.Constant(place), ast.Load())
            if to is not None and to.type == "assignment_pattern":
                default = self._field(to, "right")
                to = to.child_by_field_name("left")
            inner = ast.Call(ast.Name("js:taken", ast.Load()), [inner, *([default] if default is not None else [])], [])
            made.extend(self._assigned(to, inner))
        return made

    def _target(self, node: Node | None) -> ast.Name | ast.Attribute | ast.Subscript | None:
        if node is None:
            return None
        match node.type:
            case "identifier" | "shorthand_property_identifier_pattern":
                return ast.Name(self._names.own(node), ast.Store())
            case "member_expression" | "subscript_expression":
                owner = self._field(node, "object")
                self.assigned |= self._names.given_field(node)
                if isinstance(owner, ast.Name) and owner.id == "this":
                    return ast.Attribute(owner, source_text(node.child_by_field_name("property")), ast.Store())
                place = node.child_by_field_name("property")
                key: ast.expr = ast.Constant(source_text(place)) if place is not None else self._field(node, "index")
                return ast.Subscript(owner, key, ast.Store())
        return None

    def _for_in(self, node: Node) -> list[ast.stmt]:
        name, left = self._name(), node.child_by_field_name("left")
        through = self._field(node, "right")
        if source_text(node.child_by_field_name("operator")) == "in":
            through = ast.Call(ast.Attribute(ast.Name("Object", ast.Load()), "keys", ast.Load()), [through], [])
        begun = self._assigned(left, ast.Name(name, ast.Load()))
        body = self._body(node.child_by_field_name("body"))
        return [ast.For(ast.Name(name, ast.Store()), through, [*begun, *body], [], None)]

    def _try(self, node: Node) -> ast.stmt:
        caught, last = node.child_by_field_name("handler"), node.child_by_field_name("finalizer")
        handlers = []
        if caught is not None:
            name = caught.child_by_field_name("parameter")
            begun = self._assigned(name, self._unknown()) if name is not None else []
            body = [*begun, *self._body(caught.child_by_field_name("body"))]
            handlers.append(ast.ExceptHandler(None, None, body))
        end = self._block(last.child_by_field_name("body")) if last is not None else []
        return ast.Try(
            self._body(node.child_by_field_name("body")), handlers, [], end or ([] if handlers else [ast.Pass()])
        )

    # ---- functions and classes

    def _function(self, node: Node, name: str, method: bool = False) -> ast.FunctionDef:
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        arguments = ast.arguments([], [ast.arg("this")] if method else [], None, [], [], None, [])
        begun: list[ast.stmt] = []
        for one in parameters_of(parameters):
            default: ast.expr | None = None
            target: Node | None = one
            if one.type == "assignment_pattern":
                target, default = one.child_by_field_name("left"), self._field(one, "right")
            if one.type == "rest_pattern":
                arguments.vararg = ast.arg(self._names.own(one.named_children[0]))
                continue
            named = target is not None and target.type == "identifier" and SHARED not in self._names.own(target)
            own = self._names.own(target) if named else self._name()
            arguments.args.append(ast.arg(own))
            arguments.defaults.append(default if default is not None else ast.Constant(None))
            if target is not None and not named:
                begun.extend(self._assigned(target, ast.Name(own, ast.Load())))
        body = node.child_by_field_name("body")
        if body is not None and body.type != "statement_block":
            self._before.append([])
            value = self.expression(body)
            inner: list[ast.stmt] = [*self._before.pop(), ast.Return(value)]
        else:
            inner = self._block(body)
        return ast.FunctionDef(name, arguments, [*begun, *inner] or [ast.Pass()], [], None)

    def _class(self, node: Node) -> ast.stmt:
        bases: list[ast.expr] = []
        for one in node.named_children:
            if one.type == "class_heritage" and one.named_children:
                bases.append(self.expression(one.named_children[0]))
        body: list[ast.stmt] = []
        for one in node.child_by_field_name("body").named_children:  # type: ignore[union-attr] # the grammar's
            if one.type == "method_definition":
                body.append(decorated(self._function(one, method_name(one), method=True), one))
            elif one.type == "field_definition" and (value := one.child_by_field_name("value")) is not None:
                name = source_text(one.child_by_field_name("property"))
                body.append(ast.Assign([ast.Name(name, ast.Store())], self.expression(value)))
        return ast.ClassDef(
            self._names.own(node.child_by_field_name("name")) or self._name(), bases, [], body or [ast.Pass()], []
        )

    # ---- expressions

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
                return ast.List([self._item(one) for one in node.named_children if one.type != "comment"], ast.Load())
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

    def _item(self, node: Node) -> ast.expr:
        value = self.expression(node)
        return ast.Starred(value, ast.Load()) if node.type == "spread_element" else value

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
        if name in ("eval", "Function"):
            self._seen.note(f"Line {self._line}: {name} runs text as a program.")
        if (module := required_module(node)) is not None:
            own = self._name()
            self._before[-1].append(self._whole(module, own))
            return ast.Name(own, ast.Load())
        tagged = [self._unknown()] if arguments is not None and arguments.type == "template_string" else []
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
        if operator in _BINARY:
            return ast.BinOp(left, _BINARY[operator](), right)
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
