"""Calls: of the program's own functions and classes, which are followed, and of others', which are known by name."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any

from mapper.code import libraries, texts
from mapper.code.abstract_values import (
    PUT_IN,
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
    same,
    weight,
)
from mapper.code.classes import Classes
from mapper.code.interpreter import UNROLLED, Left, Scope
from mapper.code.objects import Names, Touched

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
    "pycurl": "opens connections of its own",
    "smtplib": "opens connections of its own",
    "ftplib": "opens connections of its own",
    "imaplib": "opens connections of its own",
    "websockets": "opens connections of its own",
    "paramiko": "opens connections of its own",
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
# What runs a coroutine that it is given, and what goes through items when it is asked for them.
_RUNNING = frozenset({"asyncio.run", "anyio.run", "run_until_complete", "asyncio.wait_for", "asyncio.shield"})
_LAZY = frozenset({
    "builtins.map", "builtins.filter", "builtins.zip", "builtins.enumerate", "builtins.iter", "itertools.chain",
    "itertools.islice", "submit", "append", "add", "put", "send",
})  # fmt: skip
# Methods that operators call, but those that give a text, a number or nothing.
_GIVING = re.compile(
    r"__(?!init__|repr__|str__|format__|bytes__|eq__|ne__|l[te]__|g[te]__|hash__|bool__|len__|contains__|int__|float__"
    r"|index__|fspath__|dir__|del|set|exit__|aexit__|post_init__|init_subclass__|new__)\w+__"
)
_PROGRAMS = ("subprocess", "os.system", "os.popen", "os.exec", "os.spawn", "pty.spawn", "asyncio.create_subprocess")


class Calling(Classes):
    """What calls give, and what they send."""

    def called(self, node: ast.Call, scope: Scope) -> Value:
        above = self.above(node, scope)
        if above is not None:
            self.lent(UNKNOWN if above == UNKNOWN else Lit(None), node, above, scope)
            return above
        at_once = node is self.entering
        function = self.value(node.func, scope) if not isinstance(node.func, ast.Name) else self._name(node.func, scope)
        goes_through = isinstance(function, Named | Method) and getattr(function, "name", "") not in _LAZY
        args: list[Value] = []
        more = False
        for arg in node.args:
            if goes_through and (isinstance(arg, ast.GeneratorExp) or getattr(function, "name", "") in _RUNNING):
                self.entering = arg
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
            if keyword.arg is not None and PUT_IN not in keyword.arg:
                ways = [given.merged(Fields(((keyword.arg, found),))) for given in ways]
                continue
            known = choices(found) if keyword.arg is None else (UNKNOWN,)
            several = [one if isinstance(one, Fields) else Fields(more=True) for one in known]
            if len(ways) * len(several) > UNROLLED:
                several = [Fields(more=True)]
            ways = [given.merged(one) for given in ways for one in several]
        self._headers(function, args, ways)
        self.line = node.lineno
        changed = self._changing(function, node.func, args, ways[0], scope) if len(ways) == 1 else None
        if changed is not None:
            return changed
        self.at_once = at_once and isinstance(function, Function | Method)
        made = (
            self.call(function, args, ways[0])
            if len(ways) == 1
            else self.several(partial(self.call, function, args, given) for given in ways)
        )
        self.lent(function, node, made, scope)
        return made

    def replaced(self, old: Value, new: Value) -> int:
        """A list, a mapping or a library's object is another now, wherever it is. Returns how much there was to do."""
        return self.objects.replaced(old, new)

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
            for one in choices(function):
                if isinstance(one, Method) and one.name in _CHANGING:
                    self.seen.spend(self.replaced(one.of, UNKNOWN))
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
                    self.assign_back(node.value, owner.merged(Fields(((key, value),))), scope, function.of)
                    return value
                changed = Fields(owner.items, True)
            elif name in ("popitem", "clear"):
                self.let_go([owner] if name == "popitem" else [], inner=True)
                changed = Fields(more=True)
            elif name == "pop" and args:
                known, key = plain(args[0])
                taken = owner.get(key) if known and isinstance(key, str) else None
                changed = owner.without(key) if known and isinstance(key, str) else Fields(more=True)
                self.assign_back(node.value, changed, scope, function.of)
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
                self.let_go([owner], inner=True)
                self.let_go(args)
                changed = Listed((), True)
        elif isinstance(owner, Stream) and name in _ADDING:
            added = args if name in _ADDING_ONE else [self.element(one) for one in args]
            known = name in _ADDING_ONE | _ADDING_ALL and not given.more
            changed = Stream(self.either([owner.of, *added])) if known else Listed((), True)
        elif isinstance(owner, Thing):
            changed = libraries.changed(owner, name, args, given)
        if changed is None:
            return None
        self.assign_back(node.value, self.kept(changed), scope, function.of)
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
            case Made() if (found := self._bound(function, "__call__")) is not None:
                return self.enter(found, tuple(args), given)
            case Method(of=Made() as owner, name=name):
                found = self._bound(owner, name)
                if found is None:
                    self.handed_on(args, given)
                    return self.of_library(owner, name, args, given)
                return self.enter(found, tuple(args), given)
            case Named() | Method() | Thing():
                if isinstance(function, Named):
                    self._reordered(function.name, args)
                handed = (function.of, *args) if isinstance(function, Method) else args
                self.seen.spend(sum(map(weight, handed)) // 8 + texts.work(*handed))
                self.handed_on(args, given)
                self._noted(function)
                made = libraries.called(self, function, args, given)
                libraries.passed(self, function, args, [item for _, item in given.items], made)
                return made
        self.handed_on(args, given)
        self.given_away([*args, *[item for _, item in given.items]])
        return UNKNOWN

    def given_away(self, values: Sequence[Value]) -> None:
        """Somebody who isn't followed has these, and may call what they have."""
        made = [one for value in values for one in choices(value) if isinstance(one, Made)]
        self.handed_on(
            [Method(one, name) for one in made for each in self._line(one.of) for name in each.methods], Fields()
        )
        self.let_go(values)

    def _reordered(self, name: str, args: list[Value]) -> None:
        """`random.shuffle(a)`, `list.sort(a)`: what changes lists and mappings that it is given."""
        root, _, leaf = name.rpartition(".")
        if root in ("heapq", "bisect", "random", "operator") or (root and leaf in _CHANGING | {"__setitem__"}):
            for one in (one for arg in args for one in choices(arg)):
                if isinstance(one, Listed | Fields | Stream):
                    self.seen.spend(self.replaced(one, UNKNOWN))

    def handed_on(self, args: Iterable[Value], given: Fields) -> None:
        """A function given to somebody who isn't followed may be called by them."""
        for value in (*args, *[item for _, item in given.items]):
            for one in choices(value):
                if isinstance(one, Method) and isinstance(one.of, Made):
                    one = self._bound(one.of, one.name) or one
                if isinstance(one, Function):
                    self.loose.append(one)
                    self._changes_of(one)
                elif isinstance(one, Method) and one.name in _CHANGING:
                    self.seen.spend(self.replaced(one.of, UNKNOWN))

    def _changes_of(self, function: Function) -> None:
        """What a function changes that somebody may call at any time isn't known from now on."""
        known = (function.node, function.scope, *map(id, function.bound))
        gives = _GIVING.fullmatch(getattr(function.node, "name", "")) is not None
        if known in self.handed or self.depth >= MAX_DEPTH or (not gives and self._changes_nothing(function.node)):
            return
        self.handed.add(known)
        seen, new = self.seen, function.node not in self.followed
        lists: list[list[Any]] = [seen.requests, seen.spoken, seen.unread, self.loose, self.later]
        before = list(map(len, lists))
        mark = self.objects.mark()
        with contextlib.suppress(Left):
            self.let_go([self.enter(function, (), Fields(more=True), unknown=True)])
        self.objects.loosen(self.objects.taken_back(mark))
        for one, length in zip(lists, before, strict=True):  # what it sends is found where it is called
            del one[length:]
        if new:
            self.followed.discard(function.node)

    def _changes_nothing(self, node: ast.AST) -> bool:
        """Whether what a function does is seen to change nothing but its own variables."""
        for one in ast.walk(node):
            self.seen.spend(1)
            match one:
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    return False
                case ast.Global() | ast.Nonlocal() | ast.AugAssign():
                    return False
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    if name in self.stored or name in _CHANGING or name in ("setattr", "delattr", "exec", "eval"):
                        return False
                case ast.Call():
                    return False
        return True

    def enter(self, function: Function, args: tuple[Value, ...], given: Fields, unknown: bool = False) -> Value:
        """Follow a function of the program's own."""
        at_once, self.at_once = self.at_once, False
        later = isinstance(function.node, ast.AsyncFunctionDef) or _yields(function.node)
        if at_once and _yields(function.node):
            return self._managed(function, args, given)
        if not later or at_once or unknown:
            return self._entered(function, args, given, unknown, at_once)
        made: list[Value] = []
        given_all = (*function.bound, *args, *[value for _, value in given.items])
        if not given.more and self.stays(function, given_all):
            return self._entered(function, args, given, unknown, False)
        self.beside(lambda: made.append(self._entered(function, args, given, unknown, False)))
        return made[0] if made else UNKNOWN

    def _managed(self, function: Function, args: tuple[Value, ...], given: Fields) -> Value:
        """What a generator yields to a `with`: the rest of it runs behind the body, and so when isn't known."""
        way = partial(self._entered, function, args, given, False, True)
        since, mark = self.objects.logged(), self.objects.mark()
        made = way()
        self.seen.spend((self.objects.logged() - since) // 2)
        self.objects.loosen(self.objects.since(mark))
        self.objects.loosen(self.objects.again(since))
        if not self.ended:
            self.later.append(way)
        return made

    def _entered(
        self, function: Function, args: tuple[Value, ...], given: Fields, unknown: bool, at_once: bool
    ) -> Value:
        node = function.node
        if self.depth >= MAX_DEPTH:
            self.seen.unread.append((self.line, "calls within calls that are too many to be followed"))
            return UNKNOWN
        inner = Scope(outer=function.scope)
        self.objects.enter(inner)
        self._bind(function, (*function.bound, *args), given, inner, unknown)
        above = next((one for one in reversed(self.frames) if one[0] is node), None)
        known = dict(inner.attributes)
        if above is not None:  # each call within itself may have other values than the one above it
            known = {name: value if same(value, above[1].get(name, UNKNOWN)) else UNKNOWN
                     for name, value in known.items()}  # fmt: skip
            self.seen.spend(self.objects.forget_since(above[2]))
            if all(map(same, known.values(), above[1].values())):
                self.seen.spend(self.objects.leave(True))
                return UNKNOWN
            for name, value in known.items():
                self.objects.put(inner, name, value)
        self.followed.add(node)
        self.depth += 1
        self.running.append(node)
        self.frames.append((node, known, Touched(self.objects.logged()) if above is None else above[2]))
        line = self.line
        open_end, gone = True, list[Value]()
        try:
            if isinstance(node, ast.Lambda):
                found = self.value(node.body, inner)
                return found if not inner.yielded else UNKNOWN
            try:
                self.block(node.body, inner)
            except Left:
                open_end = False
            if inner.yielded:
                given_all = (*function.bound, *args, *[value for _, value in given.items])
                stays = at_once or (not (unknown or given.more) and self.stays(function, given_all))
                gone += [one for written, one in inner.yielded if not (written or stays)]
                return Stream(self.either([one if written or stays else UNKNOWN for written, one in inner.yielded]))
            returned = [*inner.returned, *([Lit(None)] if open_end else [])]
            if any("cache" in ast.unparse(one) for one in node.decorator_list) and not self.stays(function, args):
                gone += returned
                return UNKNOWN  # what it gave when it was first asked
            return self.either(returned) if returned else UNKNOWN
        finally:
            self.seen.spend(self.objects.leave(open_end))
            self.let_go(gone)
            self.line = line
            self.depth -= 1
            self.running.pop()
            self.frames.pop()
            if above is not None:  # it may be changed again, in as many calls within each other as there are
                self.seen.spend(self.objects.forget_since(above[2]))

    def stays(self, function: Function, given: Sequence[Value]) -> bool:
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

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, at: Scope, scope: Scope) -> Function:
        """A function that is defined `at` a place, in a scope: what its parameters are by default is known by then."""
        scope.share()
        places, wanted = [*node.args.posonlyargs, *node.args.args], node.args
        pairs = [*zip(places[len(places) - len(wanted.defaults) :], wanted.defaults, strict=True),
                 *zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True)]  # fmt: skip
        defaults = self.objects.born(Names())
        for one, default in pairs:
            if default is not None:
                self.objects.put(defaults, one.arg, self.value(default, at))
        return Function(node, scope, (), defaults if defaults.attributes else None)

    def _bind(self, function: Function, args: tuple[Value, ...], given: Fields, scope: Scope, unknown: bool) -> None:
        wanted = function.node.args
        places = [*wanted.posonlyargs, *wanted.args]
        self.seen.spend(len(places) + len(wanted.kwonlyargs) + len(given.items) + len(args) // 8)
        defaults = function.defaults.attributes if function.defaults is not None else {}
        named = dict(given.items)
        for place, one in enumerate([*places, *wanted.kwonlyargs]):
            if place < len(args) and place < len(places):
                value: Value = args[place]
            elif one.arg in named:
                value = named.pop(one.arg)
            elif unknown or given.more:
                value = UNKNOWN
            elif one.arg in defaults:
                value = defaults[one.arg]
            else:
                value = UNKNOWN
            self.objects.put(scope, one.arg, value)
        if wanted.vararg is not None:
            self.objects.put(scope, wanted.vararg.arg, Listed(args[len(places) :], unknown or given.more))
        if wanted.kwarg is not None:
            ours = {one.arg for one in places}
            left = {name: value for name, value in named.items() if name not in ours}
            self.objects.put(scope, wanted.kwarg.arg, Fields.of(left, unknown or given.more))

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
        if function.name.endswith(".__getattribute__"):
            self.note("__getattribute__ reaches names by text, which isn't followed")
        for hidden, what in _HIDING.items():
            if function.name == hidden:
                self.note(f"{hidden} {what}, which isn't followed")
        if function.name.startswith(_PROGRAMS):
            self.note(f"{function.name} runs another program")


@cache
def _yields(node: ast.AST) -> bool:
    """Whether a function is a generator."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(one)
    return False
