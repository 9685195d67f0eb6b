"""JavaScript for node, read by its grammar (tree-sitter's) and never run.

Rules: its syntax is written anew as Python's (`javascript_syntax`), and that is followed as any Python is, with the
names that JavaScript gives things (`javascript_libraries`). What has no such counterpart is unknown.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from mapper.code import javascript_libraries as own
from mapper.code import javascript_services as services
from mapper.code import texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Class,
    Fields,
    Form,
    Function,
    Json,
    Listed,
    Lit,
    Made,
    Method,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Unknown,
    Value,
    choices,
    joined,
    parts_of,
    text,
)
from mapper.code.interpreter import Scope
from mapper.code.javascript_names import ASKED, SHARED
from mapper.code.javascript_syntax import Translation
from mapper.code.python import TOO_MUCH, Reader, mentioned
from mapper.code.sent_requests import Enough, Seen

if TYPE_CHECKING:
    from tree_sitter import Tree

LONGEST = 100_000  # characters


def read_javascript(program: str, seen: Seen) -> None:
    """Add to `seen` what a JavaScript program sends."""
    if len(program) > LONGEST:
        seen.note(f"The JavaScript is {len(program)} characters long; at most {LONGEST} are read.")
        return
    tree = _parsed(program)
    if tree.root_node.has_error:
        seen.note("A part of the JavaScript can't be read, so that what it does isn't known.")
    try:
        seen.spend(len(program) // 10)
        body = Translation(seen, tree.root_node).block(tree.root_node)
        _JavaScript(seen, mentioned(body)).module(body)
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


def _parsed(program: str) -> Tree:
    import tree_sitter
    import tree_sitter_javascript

    language = tree_sitter.Language(tree_sitter_javascript.language())
    return tree_sitter.Parser(language).parse(program.encode("utf-8", "replace"))


class _JavaScript(Reader):
    """Follows one program: an object's fields are its attributes, and an empty object or list is true."""

    def _value(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Name(id=name) if name.startswith(SHARED):
                return self._name(node, scope)
            case ast.Call(func=ast.Name(id=(("js:loose" | "js:asked") as how)), args=[inner]):
                return own.apart(self.value(inner, scope), asked=how == ASKED)
        found = super()._value(node, scope)
        match node:
            case ast.Attribute(value=place, attr="searchParams"):
                of = joined(one.of if isinstance(one, Method) else UNKNOWN for one in choices(found))
                if own.may_be_address(of):
                    self.assign_back(place, own.asked_anew(of), scope)  # whoever has it may change the address by it
        return found

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        if node.id.startswith(SHARED):
            found = scope.find(node.id)
            return found if found is not None else UNKNOWN
        return super()._name(node, scope)

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Fields):
            found = owner.get(name)
            return found if found is not None else Method(owner, name)
        if isinstance(owner, Named):
            return own.attribute(owner, name)
        if isinstance(owner, Unknown):
            return owner
        found = services.attribute(owner, name) if isinstance(owner, Thing) else None
        return found if found is not None else super().attribute(owner, name)

    def operate(self, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            return super().operate(op, left, right)  # each of them, one by one
        if isinstance(op, ast.Add) and (texts.is_text(left) or texts.is_text(right)):
            return text((*parts_of(own.written(left)), *parts_of(own.written(right))))
        return own.computed(op, left, right)

    def equal(self, op: ast.cmpop, one: Any, other: Any) -> bool | None:
        strict = isinstance(op, ast.Is | ast.IsNot)
        if one is None or other is None:  # null, or undefined
            return False if one is not other else None if strict else True
        kinds = [float if type(each) is int else type(each) for each in (one, other)]
        return bool(one == other) if kinds[0] is kinds[1] else False if strict else None

    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        if isinstance(function, Method) and function.name == "bind" and isinstance(function.of, Method):
            return function.of if len(args) == 1 else UNKNOWN
        if isinstance(function, Named | Thing) or (
            isinstance(function, Method)
            and isinstance(function.of, Fields | Listed | Stream | Thing | Named | Text | Lit | Form | Json)
        ):
            self.step()
            found = own.called(self, function, args)
            if found is not None:
                self._handed_on(args, given)
                return found
        return super().call(function, args, given)

    def truth(self, value: Value) -> bool | None:
        if isinstance(value, Named):
            return None  # NaN is named, too, and what is imported may be anything
        return True if isinstance(value, Fields | Listed) else super().truth(value)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        match target:
            case ast.Name(id=name) if name.startswith(SHARED):
                if value == Lit(None):
                    return  # what it has before it is given something
                # In which order functions run isn't known: it is anything that it is ever given.
                called = value if isinstance(value, Thing | Function | Class | Made | Named) else UNKNOWN
                there = scope.module.names.get(name)
                scope.module.names[name] = called if there is None else joined([there, called])
                return
            case ast.Attribute(value=place, attr="searchParams") if own.may_be_address(self.value(place, scope)):
                return  # its address is asked anew already
            case ast.Subscript(value=ast.Name() | ast.Subscript() | ast.Attribute() as place, slice=key):
                holder = self.value(place, scope)
                if own.may_be_address(holder):
                    searched = isinstance(key, ast.Constant) and key.value == "search"
                    self.assign_back(place, own.asked_anew(holder) if searched else UNKNOWN, scope)
                    return
        super().assign(target, value, scope)

    def _changing(
        self, function: Value, node: ast.expr, args: list[Value], given: Fields, scope: Scope
    ) -> Value | None:
        match function, node:
            case Method(of=of, name=name), ast.Attribute(value=place) if (
                name in own.QUERY_CHANGES and own.may_be_address(of)
            ):
                self.assign_back(place, Form(Fields(more=True)), scope)
                return UNKNOWN
        changed = super()._changing(function, node, args, given, scope)
        return UNKNOWN if changed is not None else None  # `sort` gives the list, `push` its length

    def _piece(self, node: ast.expr, scope: Scope) -> Value:
        return own.written(super()._piece(node, scope))

    def _item(self, owner: Value, key: Value) -> Value:
        if isinstance(owner, Listed) and isinstance(key, Lit) and isinstance(key.value, int) and key.value < 0:
            return UNKNOWN  # counted from the end in Python alone
        return super()._item(owner, own.written(key) if isinstance(owner, Fields) else key)
