"""JavaScript for node, read by its grammar (tree-sitter's) and never run.

Rules: its syntax is written anew as Python's (`javascript_syntax`), and that is followed as any Python is, with the
names that JavaScript gives things (`javascript_libraries`). What has no such counterpart is unknown.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mapper.code import javascript_libraries as own
from mapper.code import javascript_requests as requests
from mapper.code import javascript_services as services
from mapper.code import javascript_texts as js_texts
from mapper.code import texts
from mapper.code.abstract_values import (
    ANSWER,
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
from mapper.code.interpreter import REPLACES, Scope
from mapper.code.javascript_changes import Given, changes_given, gives_text
from mapper.code.javascript_names import LOOSE, MOVED, SHARED
from mapper.code.javascript_syntax import FIELDS, Translation
from mapper.code.python import TOO_MUCH, Reader, mentioned
from mapper.code.sent_requests import Enough, Seen

if TYPE_CHECKING:
    from tree_sitter import Tree

LONGEST = 100_000  # characters
# What an object has without having it written, or what is promised in its place.
_OF_ANY_OBJECT = frozenset({
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
    "then", "catch", "finally",
})  # fmt: skip

# By which fields may be given to objects that aren't named there, or their names written otherwise.
_REACHING = ("prototype", "PrototypeOf", "__proto__", "Proxy", "eval", "with (", "with(", "\\u", "\\x")

# By which a class's methods may be others.
_OVERRIDING = re.compile(r"\bprototype\b\s*(?:(?:\.\s*\w+|\[[^\]\n]{0,200}\])\s*=|,)|__proto__|PrototypeOf")

_EXPORTS = ("builtins.module", "builtins.exports")  # what others may call of it
_CALLING = ("call", "apply", "bind")  # functions of a function, by which it is called
_LATER = ("builtins.setTimeout", "builtins.setInterval", "builtins.setImmediate")


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
        translation = Translation(seen, tree.root_node)
        body = translation.block(tree.root_node)
        reader = _JavaScript(seen, mentioned(body))
        reader.assigned = translation.assigned
        reader.sure = not any(word in program for word in _REACHING)
        reader.overridden = _OVERRIDING.search(program) is not None
        reader.module(body)
    except (Enough, RecursionError):
        seen.note(TOO_MUCH)


def _parsed(program: str) -> Tree:
    import tree_sitter
    import tree_sitter_javascript

    language = tree_sitter.Language(tree_sitter_javascript.language())
    return tree_sitter.Parser(language).parse(program.encode("utf-8", "replace"))


class _JavaScript(Reader):
    """Follows one program: an object's fields are its attributes, and an empty object or list is true."""

    assigned: set[str]  # the names of fields that are given a value anywhere; "" where any may be
    overridden: bool  # a class's methods may be others
    sure: bool  # a field that isn't known isn't there

    def _value(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Name(id=name) if name.startswith(SHARED):
                return self._name(node, scope)
            case ast.Call(func=ast.Name(id=(("js:loose" | "js:asked" | "js:moved") as how)), args=[inner]):
                there = self.value(inner, scope)
                moved = how == MOVED and js_texts.may_be_address(there)
                return UNKNOWN if moved else own.apart(there, asked=how != LOOSE)
            case ast.Call(func=ast.Name(id="js:taken"), args=[inner, *defaults]):
                return self._taken(inner, defaults, scope)
            case ast.Call(func=ast.Name(id="js:else"), args=[left, right]):
                first = self.value(left, scope)
                absent = isinstance(first, Unknown) and first.unset
                left_over = [] if absent else [one for one in choices(first) if one != Lit(None)]
                if left_over and all(map(_is_there, left_over)) and len(left_over) == len(choices(first)):
                    return first
                return self.either([*left_over, *self._maybe(right, scope)])
        found = super()._value(node, scope)
        match node:
            case ast.Yield() | ast.YieldFrom():
                self.sure = self.sure and _is_plain(scope.yielded[-1][1])
            case ast.Attribute(value=place, attr="searchParams"):
                of = joined(one.of if isinstance(one, Method) else UNKNOWN for one in choices(found))
                if js_texts.may_be_address(of):
                    self.assign_back(
                        place, js_texts.asked_anew(of), scope
                    )  # whoever has it may change the address by it
        return found

    def _taken(self, inner: ast.expr, defaults: list[ast.expr], scope: Scope) -> Value:
        """What a pattern takes out of an object: where that has no such field, the default."""
        if not isinstance(inner, ast.Attribute):
            found = self.value(inner, scope)
            return found if not defaults or _is_there(found) else self.either([found, *self._maybe(defaults[0], scope)])
        made: list[Value] = []
        for owner in choices(self.value(inner.value, scope)):
            found = self.attribute(owner, inner.attr)
            lacks = isinstance(owner, Fields) and found == Lit(None) and owner.get(inner.attr) is None
            made += [found] if not lacks or not defaults else []
            if defaults and not _is_there(found):
                made += self._maybe(defaults[0], scope)
        return self.either(made)

    def _spread(self, value: Value) -> Fields:
        nothing = isinstance(value, Lit) and not isinstance(value.value, str | bytes)
        return Fields() if nothing else super()._spread(value)

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        if node.id.startswith(SHARED):
            found = scope.find(node.id)
            return found if found is not None else UNKNOWN
        return super()._name(node, scope)

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Fields):
            found = owner.get(name)
            sure = self.sure and not owner.more and not self.assigned & {name, ""}
            if found is None and sure and name not in _OF_ANY_OBJECT:
                return Lit(None)  # undefined
            return found if found is not None else Method(owner, name)
        if owner == Lit(None):
            return owner  # `?.`; without it nothing follows
        if isinstance(owner, Lit):
            return Method(owner, name)
        if isinstance(owner, Named):
            return own.attribute(owner, name)
        if isinstance(owner, Unknown):
            return owner
        if isinstance(owner, Function) and name in _CALLING:
            return Method(owner, name)
        if isinstance(owner, Function | Method) and name == "constructor":
            self.note("the constructor of functions runs text as a program, which isn't followed")
        found = None
        if isinstance(owner, Thing):
            found = requests.attribute(self, owner, name) or services.attribute(owner, name)
        return found if found is not None else super().attribute(owner, name)

    def operate(self, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            return super().operate(op, left, right)  # each of them, one by one
        if isinstance(op, ast.Add) and (texts.is_text(left) or texts.is_text(right)):
            return text((*parts_of(js_texts.written(left)), *parts_of(js_texts.written(right))))
        return own.computed(op, left, right)

    def equal(self, op: ast.cmpop, one: Any, other: Any) -> bool | None:
        strict = isinstance(op, ast.Is | ast.IsNot)
        if one is None or other is None:  # null, or undefined
            return False if one is not other else None if strict else True
        kinds = [float if type(each) is int else type(each) for each in (one, other)]
        return bool(one == other) if kinds[0] is kinds[1] else False if strict else None

    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        requests.given(self, function, args)
        if (through := _through(function, args)) is not None:
            of, how, passed = through
            self.seen.spend(1 + len(passed))
            if how != "bind":
                return self.call(of, passed, given)
            return of if not passed else Thing("partial", (("of", of), ("args", tuple(passed)), ("given", given)))
        if function == Named("builtins.Reflect.get") and len(args) > 1 and isinstance(args[1], Lit):
            return self.attribute(args[0], str(args[1].value))
        if self.overridden and isinstance(function, Method) and isinstance(function.of, Made):
            super().call(function, args, given)
            self.objects.forget(function.of)
            return UNKNOWN
        if function == ANSWER and all(map(_is_plain, args)):
            self.step()
            return function  # `res.json()`
        if isinstance(function, Named | Thing) or (
            isinstance(function, Method)
            and isinstance(function.of, Method | Fields | Listed | Stream | Thing | Named | Text | Lit | Form | Json)
        ):
            self.step()
            # Others may be spread into it.
            found = own.called(self, function, [*args, UNKNOWN] if given.more else args)
            if found is not None:
                self.handed_on(args, given)
                return found
        return super().call(function, args, given)

    def made(self, made_of: Class, args: list[Value], given: Fields) -> Value:
        bases = [base for one in self._line(made_of) for base in self._bases(one)]
        if any(isinstance(base, Named) and base.name.endswith(".Octokit") for base in bases):
            self.seen.unread.append((self.line, "a class that comes from Octokit, which may change what is asked for"))
        return super().made(made_of, args, given)

    def replaced(self, old: Value, new: Value) -> int:
        return 0  # what has several names isn't known (`javascript_names`)

    def constructed(self, made: Made, made_of: Class, args: list[Value], given: Fields) -> Function | None:
        own = made_of.methods.get("__init__")
        if own is None or not any(isinstance(one, Class) for one in made_of.bases):
            self.constructed_above(made, made_of, args, given)
        if own is not None:
            self.enter(replace(own, bound=(made,)), tuple(args), given)
        return own if own is not None else self._of_class(made_of, "__init__")

    def constructed_above(self, made: Made, made_of: Class, args: list[Value], given: Fields) -> bool:
        for one in made_of.bases:
            if isinstance(one, Class):
                self.constructed(made, one, args, given)
        fields = made_of.methods.get(FIELDS)
        if fields is not None:
            self.enter(replace(fields, bound=(made,)), (), Fields())
        return all(isinstance(one, Class) for one in made_of.bases)

    def given_each(self, value: Value, made: Made) -> Value:
        return value

    def lent(self, function: Value, node: ast.Call, made: Value, scope: Scope) -> None:
        """What is given to somebody who isn't followed may be changed by them; that it is shows what it was before."""
        changes = [changes_given(one) for one in choices(function)]
        if any(isinstance(one, Method) and isinstance(one.of, Fields | Listed | Stream) for one in choices(function)):
            called = [self.value(one, scope) for one in node.args if isinstance(one, ast.Name)]
            if Given.ALL in changes or any(changes_given(one) for each in called for one in choices(each)):
                self.sure = False  # whoever is called gets what it is a method of
        if isinstance(function, Named) and function.name in _LATER and len(node.args) > 2:
            self.sure = False
        waiting = list(node.args if Given.ALL in changes else node.args[:1] if any(changes) else ())
        while waiting:
            self.step()
            place = waiting.pop()
            if isinstance(place, ast.List | ast.Tuple):
                waiting += place.elts
            elif isinstance(place, ast.Dict):
                waiting += place.values
            elif isinstance(place, ast.IfExp):
                waiting += [place.body, place.orelse]
            elif isinstance(place, ast.BoolOp):
                waiting += place.values
            elif isinstance(place, ast.Starred):
                waiting.append(place.value)
            elif isinstance(place, ast.Call):
                if not self._gives_text(place.func, scope):
                    self.sure = False  # what it gives may be an object that has a name, too
            elif isinstance(place, ast.Name | ast.Attribute | ast.Subscript):
                if any(isinstance(one, ast.Call) for one in ast.walk(place)):
                    self.sure = False
                    continue
                holder = self.value(place, scope)
                if isinstance(holder, Made) and Given.ALL in changes:
                    self.sure = False
                if any(isinstance(one, Fields | Listed | Stream) for one in choices(holder)):
                    if changes == [Given.ASSIGNED] and isinstance(made, Fields) and not made.more:
                        self.assigned |= {name for name, _ in made.items}
                        self.assign_back(place, made, scope)
                    else:
                        self.sure = False
                        self.assign_back(place, own.apart(holder, asked=False), scope)

    def _gives_text(self, function: ast.expr, scope: Scope) -> bool:
        """Whether a call of it gives a text or a number; asked without following anything."""
        if isinstance(function, ast.Name):
            return gives_text(self._name(function, scope))
        named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        return named and gives_text(self.value(function, scope))

    def truth(self, value: Value) -> bool | None:
        if isinstance(value, Named):
            return None  # NaN is named, too, and what is imported may be anything
        if isinstance(value, Json):
            return True if _is_there(value.value) else None  # of undefined there is no text
        return True if isinstance(value, Fields | Listed) else super().truth(value)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        if self.sure and isinstance(target, ast.Attribute | ast.Subscript) and not _is_plain(value):
            owners = choices(self.value(target.value, scope))
            self.sure = all(isinstance(one, Fields | Made) for one in owners)  # else it has a name that isn't followed
        if isinstance(target, ast.Attribute):
            requests.assigned(self, self.value(target.value, scope), Lit(target.attr), value)
        elif isinstance(target, ast.Subscript):
            holder = self.value(target.value, scope)
            requests.assigned(self, holder, self.value(target.slice, scope), value)
            exports = isinstance(holder, Named) and holder.name.startswith(_EXPORTS)
            if isinstance(holder, Named) and not exports and isinstance(value, Function | Class | Method | Named):
                self.note(REPLACES)
        match target:
            case ast.Name(id=name) if name.startswith(SHARED):
                if value == Lit(None):
                    return  # what it has before it is given something
                # In which order functions run isn't known: it is anything that it is ever given.
                called = value if isinstance(value, Thing | Function | Class | Made | Named) else UNKNOWN
                there = scope.module.attributes.get(name)
                self.objects.put(scope.module, name, called if there is None else joined([there, called]))
                return
            case ast.Attribute(value=place, attr="searchParams") if js_texts.may_be_address(self.value(place, scope)):
                return  # its address is asked anew already
            case ast.Subscript(value=ast.Name() | ast.Subscript() | ast.Attribute() as place, slice=key):
                holder = self.value(place, scope)
                if js_texts.may_be_address(holder):
                    searched = isinstance(key, ast.Constant) and key.value == "search"
                    self.assign_back(place, js_texts.asked_anew(holder) if searched else UNKNOWN, scope)
                    return
        super().assign(target, value, scope)

    def _changing(
        self, function: Value, node: ast.expr, args: list[Value], given: Fields, scope: Scope
    ) -> Value | None:
        match function, node:
            case Method(of=of, name=name), ast.Attribute(value=place) if (
                name in js_texts.QUERY_CHANGES and js_texts.may_be_address(of)
            ):
                self.assign_back(place, Form(Fields(more=True)), scope)
                return UNKNOWN
        changed = super()._changing(function, node, args, given, scope)
        return UNKNOWN if changed is not None else None  # `sort` gives the list, `push` its length

    def _piece(self, node: ast.expr, scope: Scope) -> Value:
        return js_texts.written(super()._piece(node, scope))

    def item(self, owner: Value, index: ast.expr, scope: Scope) -> Value:
        found = super().item(owner, index, scope)
        if isinstance(found, Unknown) and any(services.is_client(one) for one in choices(owner)):
            self.seen.unread.append((self.line, "a function of a library, by a name that isn't written there"))
        return found

    def _item(self, owner: Value, key: Value) -> Value:
        if isinstance(owner, Listed) and isinstance(key, Lit) and isinstance(key.value, int) and key.value < 0:
            return UNKNOWN  # counted from the end in Python alone
        if owner == ANSWER:
            return owner
        if isinstance(owner, Thing | Named) and isinstance(key, Lit) and isinstance(key.value, str):
            return self.attribute(owner, key.value)
        return super()._item(owner, js_texts.written(key) if isinstance(owner, Fields) else key)


def _is_there(value: Value) -> bool:
    """Whether a value is sure to be neither null nor undefined."""
    if isinstance(value, Lit):
        return value.value is not None
    return isinstance(value, Text | Form | Json | Fields | Listed | Stream | Function | Class | Made | Thing)


def _through(function: Value, args: list[Value]) -> tuple[Value, str, list[Value]] | None:
    """What `f.call(…)`, `f.apply(…)`, `f.bind(…)` and `Reflect.apply(f, …)` call, how, and with which arguments."""
    of: Value
    match function:
        case Method(of=Function() | Method() as owner, name=how) if how in _CALLING:
            of = owner
        case Named(name="builtins.Reflect.apply") if args:
            of, how, args = args[0], "apply", args[1:]
        case Named(name=name) if name.rpartition(".")[2] in _CALLING and ".prototype." not in name:
            name, _, how = name.rpartition(".")
            of = Named(name)
        case _:
            return None
    if how != "apply":
        return of, how, args[1:]
    listed = args[1] if len(args) > 1 else Listed(())
    return of, how, [*listed.items, *([UNKNOWN] if listed.more else [])] if isinstance(listed, Listed) else [UNKNOWN]


def _is_plain(value: Value) -> bool:
    """Whether a value is sure to be no object that the program may change under another name."""
    return all(isinstance(one, Lit | Text | Json | Form | Thing | Named) or one == ANSWER for one in choices(value))
