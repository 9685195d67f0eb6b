"""JavaScript's syntax as Python's: statements and expressions that do the same, as far as reading them goes.

Rules: what a construct may do beyond its counterpart makes what it gives unknown, never known wrongly; every line keeps
its number. A function that is more than an expression gets a name of its own before the statement that it stands in.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mapper.code.javascript_expressions import BINARY, MAX_DEPTH, Expressions
from mapper.code.javascript_names import SHARED
from mapper.code.javascript_nodes import (
    LOOPS,
    decorated,
    loaded,
    method_name,
    parameters_of,
    pattern_pairs,
    placed,
    placed_items,
    required_module,
    rounds_out,
    source_text,
    string_value,
    unexported,
)
from mapper.code.sent_requests import Seen

if TYPE_CHECKING:
    from tree_sitter import Node

MODULE = "js:"  # what the full names of imported things begin with
_HIDING = frozenset({"child_process", "net", "tls", "vm", "worker_threads", "http2", "dgram", "cluster"})
FIELDS = "js:fields"  # the method that gives an object of a class its fields


class Translation(Expressions):
    """One program's."""

    def __init__(self, seen: Seen, root: Node) -> None:
        super().__init__(seen, root)
        self.assigned = {""} if self._names.lends else set()  # fields that are given a value; "" is any

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
                return [*self._class(node)]
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
                inner = node.child_by_field_name("body")
                made = self._block(inner)
                return made if inner is not None and inner.type in LOOPS else [self._once(made)]  # `break` leaves it
            case "statement_block":
                return [one for child in node.named_children for one in self._block(child)]
            case "try_statement":
                return [self._try(node)]
            case "switch_statement":
                made = [ast.Expr(self._field(node, "value"))]
                for case in node.child_by_field_name("body").named_children:  # type: ignore[union-attr] # the grammar's
                    kept = [one for child in case.children_by_field_name("body") for one in self._block(child)]
                    made.append(ast.If(self._unknown(), kept or [ast.Pass()], []))
                return [self._once(made)]
            case "break_statement" | "continue_statement":
                left: ast.stmt = ast.Break() if node.type[0] == "b" else ast.Continue()
                left.out = rounds_out(node)  # type: ignore[attr-defined] # `Statements` reads it
                return [left]
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
                if operator in BINARY:
                    return [ast.AugAssign(target, BINARY[operator](), value)]
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
        for place, child in enumerate(placed_items(target)):
            if child is None:
                continue
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
        loop = ast.For(ast.Name(name, ast.Store()), through, [*begun, *body], [], None)
        if left is not None and source_text(node.child_by_field_name("kind")) not in ("", "var"):
            loop.own = self._names.each_round(node)  # type: ignore[attr-defined] # `Statements` reads it
        return [loop]

    def _once(self, body: list[ast.stmt]) -> ast.stmt:
        """Statements that are left by `break`."""
        return ast.For(ast.Name(self._name(), ast.Store()), ast.List([ast.Constant(None)], ast.Load()),
                       body or [ast.Pass()], [], None)  # fmt: skip

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
        arguments = _this() if method else ast.arguments([], [], None, [], [], None, [])
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

    def _class(self, node: Node) -> tuple[ast.ClassDef, *tuple[ast.stmt, ...]]:
        bases: list[ast.expr] = []
        for one in node.named_children:
            if one.type == "class_heritage" and one.named_children:
                bases.append(self.expression(one.named_children[0]))
        own = self._names.own(node.child_by_field_name("name")) or self._name()
        body: list[ast.stmt] = []
        given: list[ast.stmt] = []  # to each object, when it is made
        after: list[ast.stmt] = []
        for one in node.child_by_field_name("body").named_children:  # type: ignore[union-attr] # the grammar's
            static = any(each.type == "static" for each in one.children)
            if one.type == "method_definition":
                body.append(decorated(self._function(one, method_name(one), method=True), one))
            elif one.type == "class_static_block":
                self._before.append([])
                block = [each for child in one.named_children for each in self._block(child)]
                made = ast.FunctionDef(self._name(), _this(), [*self._before.pop(), *block] or [ast.Pass()], [], None)
                after += [made, ast.Expr(ast.Call(ast.Name(made.name, ast.Load()), [ast.Name(own, ast.Load())], []))]
            elif one.type == "field_definition":
                name, value = one.child_by_field_name("property"), one.child_by_field_name("value")
                self._before.append([])
                found = self.expression(value)
                before = self._before.pop()
                if static:
                    body += [*before, ast.Assign([ast.Name(source_text(name), ast.Store())], found)]
                else:
                    place = ast.Attribute(ast.Name("this", ast.Load()), source_text(name), ast.Store())
                    given += [*before, ast.Assign([place], found)]
        if given:
            body.append(ast.FunctionDef(FIELDS, _this(), given, [], None))
        return ast.ClassDef(own, bases, [], body or [ast.Pass()], []), *after


def _this() -> ast.arguments:
    return ast.arguments([], [ast.arg("this")], None, [], [], None, [])
