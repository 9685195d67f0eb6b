"""Which variable each name in a JavaScript program is, before its syntax is written anew as Python's.

Rules: a block's own variable gets a name of its own where another is called alike. One that an inner function assigns
has no known value, but for what may be called. An object or address that is changed under a second name, or where that
isn't followed in order, isn't known under its first either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from mapper.code.javascript_changes import HARMLESS_GLOBALS, HARMLESS_MODULES
from mapper.code.javascript_nodes import field_of, given_to, parameters_of, required_module, source_text, string_value
from mapper.code.sent_requests import Seen

if TYPE_CHECKING:
    from tree_sitter import Node

SHARED = "js:shared:"  # what the names begin with of variables that an inner function assigns
# An object whose fields aren't known; the same, or an address's query; the same, or an address.
LOOSE, ASKED, MOVED = "js:loose", "js:asked", "js:moved"

_FUNCTIONS = frozenset({
    "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "method_definition",
})  # fmt: skip
_BLOCKS = frozenset({"statement_block", "for_statement", "for_in_statement", "switch_body", "catch_clause"})
_MAYBE = frozenset({
    "if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement", "switch_statement",
    "try_statement", "ternary_expression", "binary_expression",
})  # fmt: skip
_NAMES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"})
_ASSIGNMENTS = ("assignment_expression", "augmented_assignment_expression")
_CHANGES = frozenset({
    "push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin", "set", "append", "delete",
})  # fmt: skip
_PASSING_ON = frozenset({
    "ternary_expression", "parenthesized_expression", "await_expression", "pair", "sequence_expression",
})  # fmt: skip
_QUERY = frozenset({"searchParams", "search", "hash", "set", "append", "delete", "sort"})
_ADDRESS = frozenset({"href", "pathname", "host", "hostname", "port", "protocol"})


@dataclass(eq=False, slots=True)
class _Variable:
    name: str
    scope: _Scope
    shared: bool = False
    changed: bool = False  # its object is
    deeply: bool = False  # what is within its object is
    how: set[str] = field(default_factory=lambda: {LOOSE})  # and what that makes of it: LOOSE, ASKED, MOVED
    again: bool = False  # it is given another value
    apart: set[str] = field(default_factory=set)  # the same, where it isn't followed
    by: set[_Variable] = field(default_factory=set)  # by whose changes it is apart
    library: bool = False  # what it is leaves the objects that it is given as they are
    functions: list[Node] = field(default_factory=list)
    of: list[tuple[_Variable, bool, _Of]] = field(default_factory=list)  # what it is a second name of; whether for long


class _Of(Enum):
    """What a variable's object is of another's."""

    SAME = "same"
    PART = "part"  # it may be within the other
    WHOLE = "whole"  # it has the other within it


@dataclass(eq=False, slots=True)
class _Scope:
    function: _Scope | None  # None: it is a function's own
    outer: _Scope | None
    names: dict[str, _Variable] = field(default_factory=dict)
    waiting: bool = False  # it is an async function's, or a generator's

    @property
    def whole(self) -> _Scope:
        return self.function or self

    def find(self, name: str) -> _Variable | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def waits(self, outer: _Scope) -> bool:
        """Whether it is in a function that may wait, which stands within an outer one."""
        scope: _Scope | None = self.whole
        while scope is not None and scope is not outer:
            if scope.waiting:
                return True
            scope = scope.outer.whole if scope.outer is not None else None
        return False

    def declare(self, name: str) -> _Variable:
        return self.names.setdefault(name, _Variable(name, self))


class Names:
    """The variables of one program: what each place that names one is called."""

    def __init__(self, root: Node, seen: Seen) -> None:
        self._seen = seen
        self._lends_this = re.search(rb"\b(?:call|apply|bind)\b", root.text or b"") is not None
        self.lends = False  # a function gives somebody the object of a variable that isn't its own
        self._uses: list[tuple[Node, _Scope, bool, bool]] = []  # whether it is assigned, and where that isn't sure
        self._scopes: list[_Scope] = []
        self._taken: set[str] = set()  # names of fields that are read, and not called there
        self._later: list[tuple[Node, _Scope, bool]] = []  # what is looked at when all variables are declared
        self._methods: dict[str, list[Node]] = {}
        self._bodies: dict[int, _Scope] = {}  # the scopes of functions, by their nodes
        self._own: dict[int, str] = {}
        self._as: dict[int, str] = {}
        self._walk(root, self._scope(None, None), False)
        self._resolve()

    def own(self, node: Node | None) -> str:
        """The name of the variable that a name stands for."""
        return self._own.get(node.start_byte, source_text(node)) if node is not None else ""

    def known_as(self, node: Node) -> str:
        """LOOSE or ASKED, where that is all that is known of what is read there; "" for anything."""
        return self._as.get(node.start_byte, "")

    def each_round(self, node: Node) -> frozenset[str]:
        """The variables of which each round of a loop has its own."""
        bound = [node.child_by_field_name("left")]
        waiting = [node.child_by_field_name("body")]
        while waiting:
            one = waiting.pop()
            if one is None or one.type in _FUNCTIONS:
                continue
            if one.type == "lexical_declaration":
                bound += [each.child_by_field_name("name") for each in one.named_children]
            waiting += one.named_children
        return frozenset(self.own(one) for each in bound for one in _bound(each))

    def given_field(self, place: Node) -> set[str]:
        """The field that an assignment gives to an object of any kind; none, where it is one of a class's own."""
        owner, inner = place.child_by_field_name("object"), place
        if owner is None or owner.type != "this" or self._lends_this:
            return {field_of(place)}
        while inner.parent is not None and (inner.type == "arrow_function" or inner.type not in _FUNCTIONS):
            inner = inner.parent
        in_class = inner.parent is not None and inner.parent.type == "class_body"
        lent = source_text(inner.child_by_field_name("name")) in self._taken  # another object may have it, too
        return set() if in_class and not lent else {field_of(place)}

    def _scope(self, function: _Scope | None, outer: _Scope | None) -> _Scope:
        self._scopes.append(_Scope(function, outer))
        return self._scopes[-1]

    # ---- variables, and where they are

    def _walk(self, node: Node, scope: _Scope, maybe: bool) -> None:
        self._seen.spend(1)
        kind = node.type
        if kind in _NAMES:
            self._uses.append((node, scope, False, maybe))
            if kind == "shorthand_property_identifier_pattern":
                self._taken.add(source_text(node))
            return
        if kind in ("member_expression", "subscript_expression"):
            above = node.parent
            if above is None or above.type not in ("call_expression", "new_expression") or above.children[0] != node:
                self._taken.add(field_of(node))
        elif kind == "pair_pattern":
            self._taken.add(source_text(node.child_by_field_name("key")))
        inner = scope
        if kind in _FUNCTIONS:
            name = node.child_by_field_name("name")
            inner, maybe = self._scope(None, scope), False
            self._bodies[node.id] = inner
            inner.waiting = any(one.type in ("async", "*") for one in node.children)
            if kind.endswith("declaration"):
                scope.whole.declare(source_text(name)).functions.append(node)
            elif kind == "method_definition":
                self._methods.setdefault(source_text(name), []).append(node)
            for one in parameters_of(node.child_by_field_name("parameters") or node.child_by_field_name("parameter")):
                self._declared(one, inner)
        elif kind in _BLOCKS and not (node.parent is not None and node.parent.type in _FUNCTIONS):
            inner = self._scope(scope.whole, scope)
        if kind == "catch_clause" and (caught := node.child_by_field_name("parameter")) is not None:
            self._declared(caught, inner)
        elif kind == "import_statement" and string_value(node.child_by_field_name("source")) in HARMLESS_MODULES:
            for child in node.named_children:
                for one in _bound(child):
                    scope.declare(source_text(one)).library = True
        elif kind in ("lexical_declaration", "variable_declaration"):
            for one in node.named_children:
                if one.type == "variable_declarator":
                    where = scope if kind[0] == "l" else scope.whole
                    self._declared(one.child_by_field_name("name"), where)
                    value = one.child_by_field_name("value")
                    known = value is not None and required_module(value) in HARMLESS_MODULES
                    for each in _bound(one.child_by_field_name("name")) if known else ():
                        where.declare(source_text(each)).library = True
        elif kind == "for_in_statement" and (word := node.child_by_field_name("kind")) is not None:
            where = inner.whole if source_text(word) == "var" else inner
            self._declared(node.child_by_field_name("left"), where)
        elif kind == "class_declaration":
            scope.declare(source_text(node.child_by_field_name("name")))
        elif kind in ("import_clause", "import_specifier", "namespace_import"):
            for one in node.named_children:
                self._declared(one, scope)
        if kind in (*_ASSIGNMENTS, "update_expression", "unary_expression", "call_expression", "new_expression",
                    "variable_declarator", "for_in_statement"):  # fmt: skip
            self._later.append((node, inner, maybe))
        maybe = maybe or kind in _MAYBE
        for child in node.named_children:
            self._walk(child, inner, maybe)

    def _declared(self, pattern: Node | None, scope: _Scope) -> None:
        for one in _bound(pattern):
            scope.declare(source_text(one))

    # ---- what is done with them

    def _resolve(self) -> None:
        for node, scope, maybe in self._later:
            self._done(node, scope, maybe)
        for node, scope, _ in self._later:
            if node.type in ("call_expression", "new_expression"):
                self._called(node, scope)
        self._spread()
        called: dict[str, int] = {}
        for each in self._scopes:
            for name in each.names:
                called[name] = called.get(name, 0) + 1
        for node, scope, _, _ in self._uses:  # when a function goes on that waits, it may have another value
            found = scope.find(source_text(node))
            if found is not None and found.again and scope.waits(found.scope.whole):
                found.shared = True
        numbers = {each: number for number, each in enumerate(self._scopes)}
        for node, scope, _, _ in self._uses:
            found = scope.find(source_text(node))
            if found is None:
                continue
            number = numbers[found.scope]
            if found.shared:
                self._own[node.start_byte] = f"{SHARED}{found.name}:{number}"
            elif found.scope.function is not None and called[found.name] > 1:
                self._own[node.start_byte] = f"js:{found.name}:{number}"
            if found.apart:
                self._as[node.start_byte] = next(how for how in (MOVED, ASKED, LOOSE) if how in found.apart)

    def _done(self, node: Node, scope: _Scope, maybe: bool) -> None:
        left = node.child_by_field_name("left") or node.child_by_field_name("name")
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        match node.type:
            case "update_expression":
                left = node.child_by_field_name("argument")
            case "unary_expression" if source_text(node.child_by_field_name("operator")) == "delete":
                self._changed(node.child_by_field_name("argument"), scope, maybe)
                return
            case "call_expression":
                self._change(node, scope, maybe)
                return
            case "unary_expression" | "new_expression":
                return
        declared = node.type == "variable_declarator" or (
            node.type == "for_in_statement" and node.child_by_field_name("kind") is not None
        )
        if left is not None and left.type in ("member_expression", "subscript_expression"):
            self._changed(left, scope, maybe)
            place: Node | None = left
            while place is not None and place.type in ("member_expression", "subscript_expression"):
                place = place.child_by_field_name("object")
            holder = scope.find(source_text(place)) if place is not None and place.type in _NAMES else None
            if holder is not None:
                holder.of.extend((other, True, _Of.WHOLE) for other, _ in self._aliased(right, scope))
            return
        for one in _bound(left):
            found = scope.find(source_text(one))
            if found is None:
                continue
            if not declared and found.scope.whole is not scope.whole:
                found.shared = True
            found.again = found.again or not declared
            if right is not None and right.type in _FUNCTIONS:
                found.functions.append(right)
            taken = node.type == "for_in_statement" or left is None or left.type not in _NAMES
            for other, what in self._aliased(right, scope):
                found.of.append((other, True, _Of.PART if taken else what))

    def _change(self, node: Node, scope: _Scope, maybe: bool) -> None:
        """A call that changes what it is called on, or `Object.assign`."""
        function = node.child_by_field_name("function")
        if function is None or function.type != "member_expression":
            return
        if source_text(function) == "Object.assign":
            given = node.child_by_field_name("arguments")
            if given is not None and given.named_children:
                self._changed(given.named_children[0], scope, maybe, itself=True)
        elif source_text(function.child_by_field_name("property")) in _CHANGES:
            self._changed(function, scope, maybe)

    def _changed(self, place: Node | None, scope: _Scope, maybe: bool, itself: bool = False) -> None:
        """A field is given a value, or (`itself`) the object of a place some of its fields."""
        names, steps = set(), int(itself)
        while place is not None and place.type in ("member_expression", "subscript_expression"):
            names.add(source_text(place.child_by_field_name("property")))
            steps += 1
            place = place.child_by_field_name("object")
        found = scope.find(source_text(place)) if place is not None and place.type in _NAMES else None
        if found is None:
            return
        found.how |= ({ASKED} if names & _QUERY else set()) | ({ASKED, MOVED} if names & _ADDRESS else set())
        self._change_of(found, scope, maybe, deeply=steps > 1)

    def _change_of(self, found: _Variable, scope: _Scope, maybe: bool, *, deeply: bool) -> None:
        found.changed = True
        found.deeply = found.deeply or deeply
        if maybe and found.scope.whole is not scope.whole:
            found.apart |= found.how

    def _called(self, node: Node, scope: _Scope) -> None:
        """What is given to the program's own functions has a second name there while they run; others may change it."""
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        given = given_to(arguments)
        texts = int(arguments is not None and arguments.type == "template_string")  # they come first
        if function is None:
            return
        followed: list[Node] = []
        if function.type in _NAMES:
            found = scope.find(source_text(function))
            followed = list(found.functions) if found is not None else []
        elif function.type == "member_expression":
            followed = self._methods.get(source_text(function.child_by_field_name("property")), [])
            for one in given:  # a callback gets items of what it is a method of
                named = scope.find(source_text(one)) if one.type in _NAMES else None
                for inner in [one] if one.type in _FUNCTIONS else named.functions if named is not None else ():
                    for parameter, _ in self._parameters(inner):
                        for variable in parameter:
                            of = self._aliased(function.child_by_field_name("object"), scope)
                            variable.of.extend((other, False, _Of.PART) for other, _ in of)
        elif function.type == "parenthesized_expression" and function.named_children:
            followed = [one for one in function.named_children if one.type in _FUNCTIONS]
        if node.type == "new_expression":
            followed = self._methods.get("constructor", [])
        root: Node | None = function
        while root is not None and root.type in ("member_expression", "call_expression", "subscript_expression"):
            root = root.child_by_field_name("object") or root.child_by_field_name("function")
        name = source_text(root) if root is not None and root.type in _NAMES else ""
        found = scope.find(name)
        harmless = found.library if found is not None else name in HARMLESS_GLOBALS
        for one in () if harmless or followed else given:
            for variable, _ in self._aliased(one, scope, fields=False):
                if root is function:
                    self._change_of(variable, scope, True, deeply=True)  # when it is, isn't known
                self.lends = self.lends or variable.scope.whole is not scope.whole
            self.lends = self.lends or (one.type in _FUNCTIONS and self._gives_others(one))
        for inner in followed:
            for (parameter, taken), one in zip(
                self._parameters(inner, texts + len(given))[texts:], given, strict=False
            ):
                for variable in parameter:
                    of = self._aliased(one, scope)
                    variable.of.extend((other, False, taken or what) for other, what in of)

    def _gives_others(self, function: Node) -> bool:
        """Whether a function may give the object of a variable that isn't its own."""
        own = self._bodies[function.id]
        waiting = [function.child_by_field_name("body")]
        while waiting:
            node = waiting.pop()
            self._seen.spend(1)
            if node is None:
                continue
            above = node.parent.type if node.parent is not None else ""
            gives = above == "return_statement" or (above == "arrow_function" and node.type != "statement_block")
            if gives and any(variable.scope.whole is not own for variable, _ in self._aliased(node, own)):
                return True
            waiting += node.named_children
        return False

    def _parameters(self, function: Node, given: int = 0) -> list[tuple[list[_Variable], _Of | None]]:
        """The variables of each parameter, and what they are of what is given, where that isn't the same."""
        self._seen.spend(1)
        scope = self._bodies[function.id]
        wanted = list(
            parameters_of(function.child_by_field_name("parameters") or function.child_by_field_name("parameter"))
        )
        if wanted and wanted[-1].type == "rest_pattern":
            wanted += wanted[-1:] * (given - len(wanted))
        kinds = {"identifier": None, "rest_pattern": _Of.WHOLE}
        return [
            (
                [scope.declare(source_text(name)) for name in _bound(one)],
                kinds.get((one.child_by_field_name("left") or one).type, _Of.PART),
            )
            for one in wanted
        ]

    def _aliased(self, value: Node | None, scope: _Scope, fields: bool = True) -> list[tuple[_Variable, _Of]]:
        """The variables whose objects (or, with `fields`, what is in those) a value may be, or have within it."""
        found: dict[_Variable, _Of] = {}
        waiting = [(value, _Of.SAME)]
        while waiting:
            node, what = waiting.pop()
            self._seen.spend(1)
            if node is None:
                continue
            if node.type in _NAMES:
                one = scope.find(source_text(node))
                if one is not None:
                    found[one] = what if found.get(one, what) is what else _Of.PART
            elif node.type in ("member_expression", "subscript_expression"):
                if fields:
                    waiting.append((node.child_by_field_name("object"), what if what is _Of.WHOLE else _Of.PART))
            elif node.type in ("array", "object"):
                waiting += [(one, _Of.WHOLE) for one in node.named_children]
            elif node.type == "binary_expression":
                if source_text(node.child_by_field_name("operator")) in ("||", "&&", "??"):  # the others make no object
                    waiting += [(one, what) for one in node.named_children]
            elif node.type in _PASSING_ON:
                waiting += [(one, what) for one in node.named_children]
            elif node.type in _ASSIGNMENTS:
                waiting.append((node.child_by_field_name("right"), what))
            elif node.type == "call_expression":
                function = node.child_by_field_name("function")
                own = scope.find(source_text(function)) if function is not None and function.type in _NAMES else None
                if own is not None and own.functions:
                    arguments = node.child_by_field_name("arguments")
                    waiting += [(one, _Of.PART) for one in arguments.named_children] if arguments is not None else []
        return list(found.items())

    def _spread(self) -> None:
        """What is changed under one name isn't known under the others."""
        variables = [one for each in self._scopes for one in each.names.values()]
        waiting = [(one, one, one.deeply) for one in variables if one.changed]
        been = set(waiting)
        while waiting:  # upwards: what it is a second name of
            one, cause, deeply = waiting.pop()
            self._seen.spend(1 + len(one.of))
            for other, _, what in one.of:
                if other is cause or (what is _Of.WHOLE and not deeply):
                    continue  # a field of its own is given another value, which leaves the old one as it is
                other.apart |= one.how | one.apart
                other.by.add(cause)
                then = (other, cause, deeply or what is _Of.PART)
                if then not in been:
                    been.add(then)
                    waiting.append(then)
        # downwards: second names of what is changed, that last
        again = True
        while again:
            again = False
            for one in variables:
                self._seen.spend(1 + len(one.of) + sum(len(other.by) for other, _, _ in one.of) // 8)
                for other, lasts, _ in one.of:
                    if not lasts or other is one or (other.by == {one} and not other.changed):
                        continue  # what is changed by this name is known by it
                    apart = other.apart | (other.how if other.changed else set())
                    by = (other.by | ({other} if other.changed else set())) - {one}
                    if not (apart <= one.apart and by <= one.by):
                        one.apart |= apart
                        one.by |= by
                        again = True


def _bound(pattern: Node | None) -> Iterator[Node]:
    """The names that a pattern gives values to."""
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if node.type in _NAMES:
            yield node
        elif node.type in ("object_pattern", "array_pattern", "import_clause", "named_imports", "namespace_import"):
            waiting += node.named_children
        elif node.type == "pair_pattern":
            waiting.append(node.child_by_field_name("value"))
        elif node.type in ("assignment_pattern", "object_assignment_pattern"):
            waiting.append(node.child_by_field_name("left"))
        elif node.type == "rest_pattern" and node.named_children:
            waiting.append(node.named_children[0])
        elif node.type == "import_specifier":
            waiting.append(node.child_by_field_name("alias") or node.child_by_field_name("name"))
