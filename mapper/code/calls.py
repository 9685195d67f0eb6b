"""Calls: of the program's own functions and classes, which are followed, and of others', which are known by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from functools import partial

from mapper.code import libraries, texts
from mapper.code.abstract_values import (
    UNKNOWN,
    Class,
    Fields,
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
    Value,
    choices,
    plain,
    weight,
)
from mapper.code.classes import Classes
from mapper.code.interpreter import UNROLLED, Left, Scope

MAX_DEPTH = 24  # calls within calls

_SECRETIVE = {
    "exec": "runs text as a program",
    "eval": "runs text as a program",
    "compile": "makes a program of text",
    "__import__": "imports by a name that is made while it runs",
    "globals": "reaches names by text",
    "locals": "reaches names by text",
    "vars": "reaches names by text",
}
_HIDING = {
    "importlib.import_module": "imports by a name that is made while it runs",
    "ctypes": "calls native code",
    "socket": "opens connections of its own",
    "ssl": "opens connections of its own",
    "marshal.loads": "makes a program of bytes",
    "pickle.loads": "makes objects of bytes",
    "builtins.exec": "runs text as a program",
    "builtins.eval": "runs text as a program",
}
# Methods after which a list isn't known any more; the last of them are JavaScript's.
_REORDERING = frozenset({
    "insert", "remove", "pop", "clear", "sort", "reverse", "appendleft", "extendleft", "rotate",
    "symmetric_difference_update", "shift", "unshift", "splice", "fill", "copyWithin",
})  # fmt: skip
_ADDING_ONE, _ADDING_ALL = frozenset({"append", "add", "appendleft"}), frozenset({"extend", "update", "extendleft"})
_ADDING = _ADDING_ONE | _ADDING_ALL | {"insert", "symmetric_difference_update", "unshift", "splice", "fill"}
# Of methods that change what they are called on, those that give nothing.
_GIVES_NONE = frozenset({
    "update", "append", "add", "extend", "insert", "clear", "remove", "sort", "reverse", "appendleft", "extendleft",
    "rotate", "symmetric_difference_update",
})  # fmt: skip
# What one of several values may be changed by; the last two are of JavaScript's queries.
_CHANGING = _REORDERING | _GIVES_NONE | {"setdefault", "popitem", "set", "delete"}
_PROGRAMS = ("subprocess", "os.system", "os.popen", "os.exec", "os.spawn", "pty.spawn", "asyncio.create_subprocess")


class Calling(Classes):
    """What calls give, and what they send."""

    def called(self, node: ast.Call, scope: Scope) -> Value:
        above = self.above(node, scope)
        if above is not None:
            self.lent(UNKNOWN if above == UNKNOWN else Lit(None), node, above, scope)
            return above
        function = self.value(node.func, scope) if not isinstance(node.func, ast.Name) else self._name(node.func, scope)
        args: list[Value] = []
        more = False
        for arg in node.args:
            found = self.value(arg, scope)
            if isinstance(arg, ast.Starred):
                items, further = self.items(found)
                self.seen.spend(len(items))
                args.extend(items)
                more = more or further
            else:
                args.append(found)
        ways = [Fields(more=more)]
        for keyword in node.keywords:
            found = self.value(keyword.value, scope)
            self.seen.spend(sum(len(given.items) for given in ways))
            if keyword.arg is not None:
                ways = [given.merged(Fields(((keyword.arg, found),))) for given in ways]
                continue
            several = [one if isinstance(one, Fields) else Fields(more=True) for one in choices(found)]
            if len(ways) * len(several) > UNROLLED:
                several = [Fields(more=True)]
            ways = [given.merged(one) for given in ways for one in several]
        self._headers(function, args, ways)
        self.line = node.lineno
        changed = self._changing(function, node.func, args, ways[0], scope) if len(ways) == 1 else None
        if changed is not None:
            return changed
        self.at_once = node is self.entering and isinstance(function, Function)
        made = (
            self.call(function, args, ways[0])
            if len(ways) == 1
            else self.several(partial(self.call, function, args, given) for given in ways)
        )
        self.lent(function, node, made, scope)
        return made

    def lent(self, function: Value, node: ast.Call, made: Value, scope: Scope) -> None:
        """After a call that gave `made`: what it was given may be another now."""

    def _headers(self, function: Value, args: list[Value], ways: Sequence[Fields]) -> None:
        """Note headers that a call sets (`headers.set(name, value)`), and the version that a client is made with."""
        if len(args) > 1 and isinstance(args[0], Lit):
            self.seen.header(args[0].value, args[1])
        own = re.split(r"[.\-/]", function.name.removeprefix("js:"))[0] if isinstance(function, Named) else ""
        for given in (*ways, *(arg for arg in args if own and isinstance(arg, Fields))):
            self.seen.spend(len(given.items) // 8)
            for name, value in given.items:
                self.seen.header(f"{own}-version" if own and name == "version" else name, value)

    def _changing(
        self, function: Value, node: ast.expr, args: list[Value], given: Fields, scope: Scope
    ) -> Value | None:
        """What a method gives that changes what it is called on (`update`, `append`); None for any other."""
        if not isinstance(node, ast.Attribute):
            return None
        several = function.values if isinstance(function, OneOf) and node.attr in _CHANGING else ()
        if any(isinstance(one, Method) and not isinstance(one.of, Made | Thing) for one in several):
            self.assign_back(node.value, UNKNOWN, scope)
        if not isinstance(function, Method):
            return None
        owner, name = function.of, function.name
        changed: Value | None = None
        if isinstance(owner, Fields):
            if name == "update":
                for arg in args:
                    owner = owner.merged(arg if isinstance(arg, Fields) else Fields(more=True))
                changed = owner.merged(given)
            elif name == "setdefault" and args:
                known, key = plain(args[0])
                if known and isinstance(key, str):
                    there = owner.get(key)
                    value = there if there is not None else (args[1] if len(args) > 1 else Lit(None))
                    self.assign_back(node.value, owner.merged(Fields(((key, value),))), scope)
                    return value
                changed = Fields(owner.items, True)
            elif name in ("popitem", "clear"):
                changed = Fields(more=True)
            elif name == "pop" and args:
                known, key = plain(args[0])
                taken = owner.get(key) if known and isinstance(key, str) else None
                changed = owner.without(key) if known and isinstance(key, str) else Fields(more=True)
                self.assign_back(node.value, changed, scope)
                return taken if taken is not None else UNKNOWN
        elif isinstance(owner, Listed):
            if name in ("append", "add"):
                changed = Listed((*owner.items, *args), owner.more or given.more)
            elif name in ("extend", "update"):
                changed = owner
                for arg in args:
                    items, more = self.items(arg)
                    changed = Listed((*changed.items, *items), changed.more or more or given.more)
            elif name in _REORDERING:
                changed = Listed((), True)
        elif isinstance(owner, Stream) and name in _ADDING:
            added = args if name in _ADDING_ONE else [self.element(one) for one in args]
            known = name in _ADDING_ONE | _ADDING_ALL and not given.more
            changed = Stream(self.either([owner.of, *added])) if known else Listed((), True)
        elif isinstance(owner, Thing):
            changed = libraries.changed(owner, name, args, given)
        if changed is None:
            return None
        self.assign_back(node.value, self.kept(changed), scope)
        return Lit(None) if name in _GIVES_NONE else UNKNOWN

    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        """What a call gives; whatever it sends is noted on the way."""
        self.step()
        match function:
            case Function():
                return self.enter(function, tuple(args), given)
            case Class():
                return self.made(function, args, given)
            case OneOf(values=values):
                return self.several(partial(self.call, one, args, given) for one in values)
            case Method(of=Made() as owner, name=name):
                found = self._of_class(owner.of, name)
                if found is None:
                    self._handed_on(args, given)
                    return self.of_library(owner, name, args, given)
                return self.enter(Function(found.node, found.scope, (owner,)), tuple(args), given)
            case Named() | Method() | Thing():
                handed = (function.of, *args) if isinstance(function, Method) else args
                self.seen.spend(sum(map(weight, handed)) // 8 + texts.work(*handed))
                self._handed_on(args, given)
                self._noted(function)
                return libraries.called(self, function, args, given)
        self._handed_on(args, given)
        for value in (*args, *[item for _, item in given.items]):
            if isinstance(value, Made):
                self.objects.forget(value)
        return UNKNOWN

    def _handed_on(self, args: Iterable[Value], given: Fields) -> None:
        """A function given to somebody who isn't followed may be called by them."""
        for value in (*args, *[item for _, item in given.items]):
            if isinstance(value, Function):
                self.loose.append(value)
                self._may_change(value, None, 0)

    def _may_change(self, function: Function, of: Made | None, depth: int) -> None:
        """What a function changes of objects that it knows, or of the one that it is a method of, may be either from
        now on."""
        node = function.node
        own = node.args.args[0].arg if of is not None and node.args.args else ""
        for one in ast.walk(node):
            self.seen.spend(1)
            match one:
                case ast.Attribute(value=ast.Name(id=place), attr=name, ctx=ast.Store()):
                    call = False
                case ast.Subscript(value=ast.Name(id=place), slice=ast.Constant(value=str() as name), ctx=ast.Store()):
                    call = False
                case ast.Call(func=ast.Attribute(value=ast.Name(id=place), attr=name)):
                    call = True
                case _:
                    continue
            holder = of if place == own else function.scope.find(place)
            if not isinstance(holder, Made):
                continue
            method = self._of_class(holder.of, name) if call and depth < 3 else None
            if method is not None:
                self._may_change(method, holder, depth + 1)
            elif not call:
                self.objects.put(holder, name, UNKNOWN)

    def enter(self, function: Function, args: tuple[Value, ...], given: Fields, unknown: bool = False) -> Value:
        """Follow a function of the program's own."""
        node = function.node
        at_once, self.at_once = self.at_once, False
        if self.depth >= MAX_DEPTH or sum(1 for one in self.running if one is node) > 1:
            return UNKNOWN
        inner = Scope(outer=function.scope)
        self._bind(node.args, (*function.bound, *args), given, inner, unknown)
        self.followed.add(node)
        self.depth += 1
        self.running.append(node)
        begun = self.objects.enter()
        line = self.line
        try:
            if isinstance(node, ast.Lambda):
                found = self.value(node.body, inner)
                return found if not inner.yielded else UNKNOWN
            open_end = True
            try:
                self.block(node.body, inner)
            except Left:
                open_end = False
            if inner.yielded:
                given_all = (*function.bound, *args, *[value for _, value in given.items])
                stays = at_once or (not (unknown or given.more) and self._stays(function, given_all))
                return Stream(self.either([one if written or stays else UNKNOWN for written, one in inner.yielded]))
            returned = [*inner.returned, *([Lit(None)] if open_end else [])]
            return self.either(returned) if returned else UNKNOWN
        finally:
            self.seen.spend(self.objects.leave(begun))
            self.line = line
            self.depth -= 1
            self.running.pop()

    def _stays(self, function: Function, given: Sequence[Value]) -> bool:
        """Whether nothing that a generator reads can be another by the time that its items are asked for."""
        node = function.node
        wanted = node.args
        defaults = (*wanted.defaults, *[one for one in wanted.kw_defaults if one is not None])
        if not all(isinstance(one, Lit | Text | Json) for one in given):
            return False
        if not all(isinstance(one, ast.Constant) for one in defaults):
            return False
        nodes = [each for one in (node.body if isinstance(node.body, list) else [node.body]) for each in ast.walk(one)]
        self.seen.spend(1 + len(nodes) // 8)
        own = {one.arg for one in ast.walk(wanted) if isinstance(one, ast.arg)}
        own |= {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        methods = {id(one.func) for one in nodes if isinstance(one, ast.Call)}
        for one in nodes:
            match one:
                case ast.Global() | ast.Nonlocal() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    return False
                case ast.Subscript(ctx=ast.Load()):
                    return False
                case ast.Attribute(value=owner):
                    named = isinstance(owner, ast.Name) and owner.id not in own
                    if not named and id(one) not in methods:
                        return False
                case ast.Name(id=name) if name not in own:
                    found = function.scope.find(name)
                    if not (found is None or isinstance(found, Lit | Text | Json | Named)):
                        return False
                    if self.stored.get(name, 0) > (0 if found is None else 1):
                        return False
        return True

    def _bind(self, wanted: ast.arguments, args: tuple[Value, ...], given: Fields, scope: Scope, unknown: bool) -> None:
        places = [*wanted.posonlyargs, *wanted.args]
        self.seen.spend(len(places) + len(wanted.kwonlyargs) + len(given.items) + len(args) // 8)
        defaults = dict(
            zip([one.arg for one in places[len(places) - len(wanted.defaults) :]], wanted.defaults, strict=True)
        )
        defaults.update(
            {one.arg: default for one, default in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True) if default}
        )
        named = dict(given.items)
        for place, one in enumerate([*places, *wanted.kwonlyargs]):
            if place < len(args) and place < len(places):
                value: Value = args[place]
            elif one.arg in named:
                value = named.pop(one.arg)
            elif unknown or given.more:
                value = UNKNOWN
            elif one.arg in defaults:
                value = self.value(defaults[one.arg], scope.outer or scope)
            else:
                value = UNKNOWN
            scope.names[one.arg] = value
        if wanted.vararg is not None:
            scope.names[wanted.vararg.arg] = Listed(args[len(places) :], unknown or given.more)
        if wanted.kwarg is not None:
            ours = {one.arg for one in places}
            left = {name: value for name, value in named.items() if name not in ours}
            scope.names[wanted.kwarg.arg] = Fields.of(left, unknown or given.more)

    def _imported(self, name: str) -> None:
        for hidden, what in _HIDING.items():
            if name == hidden or name.startswith(f"{hidden}."):
                self.note(f"imports {hidden}, which {what}")

    def _noted(self, function: Value) -> None:
        if not isinstance(function, Named):
            return
        name = function.name.removeprefix("builtins.")
        if function.name.startswith("builtins.") and name in _SECRETIVE:
            self.note(f"{name} {_SECRETIVE[name]}, which isn't followed")
        for hidden, what in _HIDING.items():
            if function.name == hidden:
                self.note(f"{hidden} {what}, which isn't followed")
        if function.name.startswith(_PROGRAMS):
            self.note(f"{function.name} runs another program")
