"""Python, followed with values that are known in part (`mapper.code.values`), and never run.

Rules:
* Statements are followed in order; both ways of a condition, unless it is a constant; a loop's body twice, first as it
  begins, then with what its rounds may have changed. What two ways leave in a variable is one of both.
* A function is followed where it is called, with what it is given, and once with nothing known where its name stands
  for itself (as a callback, in another's list); never where nothing names it.
* What can't be followed is unknown, and whatever is done with something unknown is unknown again: `getattr` with a name
  that isn't written, `exec`, `eval`, `__import__` and their like are said in a note, and give no call.
* Steps, depth and sizes are bounded; at a bound reading ends, with a note.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from mapper import syntax
from mapper.code import libraries, texts
from mapper.code.sending import Seen
from mapper.code.values import (
    UNKNOWN,
    Class,
    Fields,
    Function,
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
    bounded,
    choices,
    each,
    joined,
    parts_of,
    plain,
    same,
    text,
)

MAX_STEPS = 60_000
MAX_DEPTH = 24  # calls within calls
MAX_NESTING = 80  # expressions within expressions
UNROLLED = 24  # items of a written list that a loop goes through one by one
LONGEST = 200_000  # characters

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
_PROGRAMS = ("subprocess", "os.system", "os.popen", "os.exec", "os.spawn", "pty.spawn", "asyncio.create_subprocess")


class _Enough(Exception):
    """A bound was reached."""


class _Left(Exception):
    """The statements that follow in this block aren't reached."""


@dataclass(slots=True)
class Scope:
    """The variables of a module, a function or a class."""

    names: dict[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    globals: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)

    def find(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    @property
    def module(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def put(self, name: str, value: Value) -> None:
        if name in self.globals:
            scope: Scope | None = self.outer
            while scope is not None and scope.outer is not None and name not in scope.names:
                scope = scope.outer
            (scope or self).names[name] = value
        else:
            self.names[name] = value


def read_python(program: str, seen: Seen) -> None:
    """Add to `seen` what a Python program sends."""
    if len(program) > LONGEST:
        seen.note(f"The Python is {len(program)} characters long; at most {LONGEST} are read.")
        return
    body = syntax.statements(program, LONGEST)
    if body is None:
        seen.note("The Python in it can't be read: it isn't valid, or nested too deep.")
        return
    reader = Reader(seen, body)
    try:
        reader.module(body)
    except (_Enough, RecursionError):
        seen.note("The program is larger or more entangled than what is read; its end wasn't.")


class Reader:
    """Follows one program."""

    def __init__(self, seen: Seen, body: Sequence[ast.stmt]) -> None:
        self.seen = seen
        self.line = 0
        self._steps = 0
        self._depth = 0
        self._nesting = 0
        self._running: list[ast.AST] = []
        self._followed: set[ast.AST] = set()
        self._mentioned = _mentioned(body)
        self._loose: list[Function] = []
        self._once: set[tuple[int, str]] = set()

    # ---- statements

    def module(self, body: Sequence[ast.stmt]) -> None:
        scope = Scope({"__name__": Lit("__main__"), "__file__": UNKNOWN})
        with contextlib.suppress(_Left):
            self.block(body, scope)
        # What is handed on as a value may be called by anybody; what a class has that is named somewhere, too.
        for _ in range(3):
            waiting = [one for one in self._loose if one.node not in self._followed]
            self._loose.clear()
            for function in waiting:
                self._followed.add(function.node)
                self.enter(function, (), Fields(more=True), unknown=True)
            if not waiting:
                break

    def block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self.statement(statement, scope)

    def _way(self, body: Sequence[ast.stmt], scope: Scope, before: dict[str, Value]) -> dict[str, Value] | None:
        """What the variables are after one of several ways; None when nothing follows it."""
        scope.names = dict(before)
        try:
            self.block(body, scope)
        except _Left:
            return None
        return scope.names

    def _meet(self, scope: Scope, ways: Iterable[dict[str, Value] | None]) -> None:
        open_ways = [way for way in ways if way is not None]
        if not open_ways:
            raise _Left
        scope.names = _met(open_ways)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        self._step()
        self.line = node.lineno
        match node:
            case ast.Expr(value=value):
                self.value(value, scope)
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                for target in targets:
                    self.assign(target, found, scope)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                load = _as_load(target)
                old = self.value(load, scope)
                self.assign(target, self.operate(op, old, self.value(value, scope)), scope)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse, scope)
            case ast.For() | ast.AsyncFor():
                self._for(node, scope)
            case ast.While(test=test, body=body, orelse=orelse):
                known = self.truth(self.value(test, scope))
                if known is not False:
                    self._loop(body, scope, always=known is True)
                self.block(orelse, scope)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    manager = self.entered(self.value(item.context_expr, scope))
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, manager, scope)
                self.block(body, scope)
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                scope.put(node.name, Class(node, scope))
                inner = Scope(outer=scope)
                for decorator in node.decorator_list:
                    self.value(decorator, scope)
                self.block([one for one in node.body if not isinstance(one, _DEFINITIONS)], inner)
            case ast.Return(value=value):
                scope.returned.append(self.value(value, scope) if value is not None else Lit(None))
                raise _Left
            case ast.Raise(exc=exc):
                if exc is not None:
                    self.value(exc, scope)
                raise _Left
            case ast.Continue() | ast.Break():
                raise _Left
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    scope.put(alias.asname or root, Named(alias.name if alias.asname else root))
                    self._imported(alias.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    name = f"{module or ''}.{alias.name}"
                    scope.put(alias.asname or alias.name, UNKNOWN if level or alias.name == "*" else Named(name))
                    if alias.name == "*":
                        self.seen.note(f"Line {node.lineno}: names imported by * aren't followed.")
                    self._imported(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scope.globals.update(names)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        scope.put(target.id, UNKNOWN)
            case ast.Assert(test=test):
                self.value(test, scope)
            case ast.Match(subject=subject, cases=cases):
                self.value(subject, scope)
                before = scope.names
                ways: list[dict[str, Value] | None] = [dict(before)]
                for case in cases:
                    inside = dict(before)
                    for name in _bound_by(case.pattern):
                        inside[name] = UNKNOWN
                    ways.append(self._way(case.body, scope, inside))
                self._meet(scope, ways)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], scope: Scope) -> None:
        known = self.truth(self.value(test, scope))
        if known is not None:
            self.block(body if known else orelse, scope)
            return
        before = scope.names
        self._meet(scope, [self._way(body, scope, before), self._way(orelse, scope, before)])

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        before = dict(scope.names)
        whole = self._way([*node.body, *node.orelse], scope, before)
        # A handler may begin anywhere in the body: with what was there before, or what the body left.
        begun = _met([before, whole]) if whole is not None else {**before, **scope.names}
        ways = [whole]
        for handler in node.handlers:
            inside = dict(begun)
            if handler.name:
                inside[handler.name] = UNKNOWN
            ways.append(self._way(handler.body, scope, inside))
        try:
            self._meet(scope, ways)
        except _Left:
            scope.names = begun
            self.block(node.finalbody, scope)
            raise
        self.block(node.finalbody, scope)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        gone_through = self.value(node.iter, scope)
        items, more = self.items(gone_through)
        if not items and not more:
            self.block(node.orelse, scope)
            return
        kept = items if len(items) <= UNROLLED else ()
        if kept and not more and _is_simple(node.body):
            for item in kept:
                self.assign(node.target, item, scope)
                with contextlib.suppress(_Left):
                    self.block(node.body, scope)
            self.block(node.orelse, scope)
            return
        self.assign(node.target, self.element(gone_through), scope)
        self._loop(node.body, scope)
        self.block(node.orelse, scope)

    def _loop(self, body: Sequence[ast.stmt], scope: Scope, always: bool = False) -> None:
        """Two rounds: as it begins, and with what a round may have changed."""
        before = dict(scope.names)
        returned = len(scope.returned)
        first = self._way(body, scope, before)
        after = first if first is not None else scope.names
        changed = {name for name, value in after.items() if name not in before or not same(value, before[name])}
        moving = {**after, **{name: _widened(before.get(name), after[name]) for name in changed}}
        if changed:
            second = self._way(body, scope, moving)
            after = second if second is not None else scope.names
        left = [before] if not always else []
        scope.names = _met([*left, moving, after])
        if always and not _breaks(body) and len(scope.returned) >= returned:
            raise _Left

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope)
        wrapped: Value = function
        for decorator in reversed(node.decorator_list):
            made = self.value(decorator, scope)
            if isinstance(made, Function) and made.node is not node:
                returned = self.call(made, [wrapped], Fields())
                wrapped = returned if isinstance(returned, Function) else function
            else:
                self._loose.append(function)  # whoever decorates it may call it
        for default in (*node.args.defaults, *[one for one in node.args.kw_defaults if one is not None]):
            self.value(default, scope)
        scope.put(node.name, wrapped)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.put(name, value)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items, more = self.items(value)
                fits = not more and len(items) == len(elts) and not any(isinstance(e, ast.Starred) for e in elts)
                for place, element in enumerate(elts):
                    inner = element.value if isinstance(element, ast.Starred) else element
                    self.assign(inner, items[place] if fits else UNKNOWN, scope)
            case ast.Attribute(value=owner, attr=name):
                holder = self.value(owner, scope)
                if isinstance(holder, Made):
                    holder.attributes[name] = value
                elif isinstance(holder, Thing):
                    self.assign_back(owner, libraries.assigned(holder, name, value), scope)
            case ast.Subscript(value=owner, slice=index):
                holder = self.value(owner, scope)
                known, key = plain(self.value(index, scope))
                if isinstance(holder, Fields):
                    changed = (
                        holder.merged(Fields(((key, value),)))
                        if known and isinstance(key, str)
                        else Fields(holder.items, True)
                    )
                    self.assign_back(owner, bounded(changed), scope)
                elif isinstance(holder, (Listed, OneOf)):
                    self.assign_back(owner, UNKNOWN, scope)

    def assign_back(self, owner: ast.expr, value: Value, scope: Scope) -> None:
        """`value` in the place that an expression was read from."""
        if isinstance(owner, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(owner, ast.Name):
                holder: Scope | None = scope
                while holder is not None and owner.id not in holder.names:
                    holder = holder.outer
                (holder or scope).names[owner.id] = value
            else:
                self.assign(owner, value, scope)

    # ---- expressions

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression gives."""
        self._step()
        self._nesting += 1
        if self._nesting > MAX_NESTING * 4:
            raise _Enough
        try:
            return bounded(self._value(node, scope))
        finally:
            self._nesting -= 1

    def _value(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Constant(value=known):
                if known is ...:
                    return UNKNOWN
                if isinstance(known, str) and "://" in known[:12]:
                    self.seen.addresses.append(known[:500])
                return Lit(known) if not isinstance(known, complex) else UNKNOWN
            case ast.Name(id=name):
                found = scope.find(name)
                if found is None:
                    return Named(f"builtins.{name}")
                if isinstance(found, Function):
                    self._loose.append(found)
                return found
            case ast.JoinedStr(values=values):
                pieces = [self._piece(value, scope) for value in values]
                return joined(text(part for one in made for part in parts_of(one)) for made in each(*pieces))
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self.value(owner, scope), name)
            case ast.Call():
                return self._called(node, scope)
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, scope)
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                return self._list(elts, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operate(op, self.value(left, scope), self.value(right, scope))
            case ast.BoolOp(op=op, values=values):
                return self._either(op, values, scope)
            case ast.UnaryOp(op=op, operand=operand):
                found = self.value(operand, scope)
                if isinstance(op, ast.Not):
                    known = self.truth(found)
                    return Lit(not known) if known is not None else UNKNOWN
                if isinstance(op, ast.USub) and isinstance(found, Lit) and isinstance(found.value, int | float):
                    return Lit(-found.value)
                return UNKNOWN
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.truth(self.value(test, scope))
                if known is not None:
                    return self.value(body if known else orelse, scope)
                return joined([*self._maybe(body, scope), *self._maybe(orelse, scope)])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._compared(left, ops, comparators, scope)
            case ast.Subscript(value=owner, slice=index):
                return self.item(self.value(owner, scope), index, scope)
            case ast.Await(value=value):
                return self.value(value, scope)
            case ast.Starred(value=value):
                return self.value(value, scope)
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value, scope)
                self.assign(target, found, scope)
                return found
            case ast.Lambda():
                for default in (*node.args.defaults, *[one for one in node.args.kw_defaults if one is not None]):
                    self.value(default, scope)
                made = Function(node, scope)
                self._loose.append(made)
                return made
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehended(node, scope)
            case ast.DictComp():
                inner = self._generators(node.generators, scope)
                key, item = self.value(node.key, inner), self.value(node.value, inner)
                known, name = plain(key)
                single = known and isinstance(name, str) and len(node.generators) == 0
                return Fields(((name, item),)) if single else Fields(more=True)
            case ast.Yield(value=value):
                if value is not None:
                    scope.returned.append(Unknown("a generator"))
                    self.value(value, scope)
                return UNKNOWN
            case ast.YieldFrom(value=value):
                scope.returned.append(Unknown("a generator"))
                self.value(value, scope)
        return UNKNOWN

    def _piece(self, node: ast.expr, scope: Scope) -> Value:
        if not isinstance(node, ast.FormattedValue):
            return self.value(node, scope)
        found = self.value(node.value, scope)
        plainly = node.format_spec is None and node.conversion in (-1, 115)
        return found if plainly else UNKNOWN

    def _maybe(self, node: ast.expr, scope: Scope) -> list[Value]:
        """What an operand that is only perhaps reached gives; nothing where it ends the program."""
        try:
            return [self.value(node, scope)]
        except _Left:
            return []

    def leave(self) -> NoReturn:
        """The program ends here."""
        raise _Left

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: Scope) -> Value:
        made = Fields()
        for key, value in zip(keys, values, strict=True):
            if key is None:
                inner = self.value(value, scope)
                made = made.merged(inner if isinstance(inner, Fields) else Fields(more=True))
                continue
            known, name = plain(self.value(key, scope))
            found = self.value(value, scope)
            if known and isinstance(name, str | int) and not isinstance(name, bool):
                made = made.merged(Fields(((str(name), found),)))
            else:
                made = Fields(made.items, True)
        return made

    def _list(self, elts: Sequence[ast.expr], scope: Scope) -> Value:
        items: list[Value] = []
        more = False
        for element in elts:
            found = self.value(element, scope)
            if isinstance(element, ast.Starred):
                inner, further = self.items(found)
                items.extend(inner)
                more = more or further
            else:
                items.append(found)
        return Listed(tuple(items), more)

    def _either(self, op: ast.boolop, values: Sequence[ast.expr], scope: Scope) -> Value:
        found: list[Value] = []
        wanted = isinstance(op, ast.Or)
        for node in values:
            for one in [self.value(node, scope)] if node is values[0] else self._maybe(node, scope):
                known = self.truth(one)
                if known is wanted:  # `or` ends with what is true, `and` with what isn't
                    return joined([*found, one])
                if known is None or node is values[-1]:
                    found.append(one)
        return joined(found)

    def _compared(
        self, left: ast.expr, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr], scope: Scope
    ) -> Value:
        first = self.value(left, scope)
        others = [self.value(one, scope) for one in comparators]
        if len(ops) == 1 and isinstance(first, Lit) and isinstance(others[0], Lit):
            one, other = first.value, others[0].value
            if isinstance(ops[0], ast.Eq | ast.Is):
                return Lit(one == other)
            if isinstance(ops[0], ast.NotEq | ast.IsNot):
                return Lit(one != other)
        there = isinstance(first, Thing | Fields | Listed | Function | Class | Made | Text | Named)
        if len(ops) == 1 and others[0] == Lit(None) and there:
            return Lit(isinstance(ops[0], ast.IsNot | ast.NotEq))
        return UNKNOWN

    def item(self, owner: Value, index: ast.expr, scope: Scope) -> Value:
        """`owner[index]`."""
        if isinstance(index, ast.Slice):
            for part in (index.lower, index.upper, index.step):
                if part is not None:
                    self.value(part, scope)
            return owner if isinstance(owner, Stream) else UNKNOWN
        key = self.value(index, scope)
        if isinstance(owner, Stream):
            return owner.of
        known, place = plain(key)
        if not known:
            if isinstance(key, OneOf) and not isinstance(owner, Unknown):
                return joined(self._item(owner, one) for one in key.values)
            return (
                joined([value for _, value in owner.items])
                if isinstance(owner, Fields) and not owner.more and (owner.items)
                else UNKNOWN
            )
        return self._item(owner, Lit(place))

    def _item(self, owner: Value, key: Value) -> Value:
        known, place = plain(key)
        if isinstance(owner, OneOf):
            return joined(self._item(one, key) for one in owner.values)
        if isinstance(owner, Fields) and known:
            found = owner.get(str(place))
            return found if found is not None else UNKNOWN
        if isinstance(owner, Listed) and isinstance(place, int) and not isinstance(place, bool) and not owner.more:
            return owner.items[place] if -len(owner.items) <= place < len(owner.items) else UNKNOWN
        if isinstance(owner, Named | Thing) and known:
            return libraries.subscript(self, owner, place)
        return UNKNOWN

    def operate(self, op: ast.operator, left: Value, right: Value) -> Value:
        """`left op right`."""
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            if len(choices(left)) * len(choices(right)) > UNROLLED:
                return UNKNOWN
            return joined(self.operate(op, one, other) for one in choices(left) for other in choices(right))
        if isinstance(op, ast.Add):
            if isinstance(left, Listed) and isinstance(right, Listed):
                return Listed((*left.items, *right.items), left.more or right.more)
            if texts.is_text(left) or texts.is_text(right):
                return text((*parts_of(left), *parts_of(right)))
        if isinstance(op, ast.BitOr) and isinstance(left, Fields):
            return left.merged(right) if isinstance(right, Fields) else Fields(left.items, True)
        if isinstance(op, ast.Mod) and texts.is_text(left):
            return texts.percent(left, right)
        if isinstance(op, ast.Div) and isinstance(left, Thing):
            return UNKNOWN
        if isinstance(left, Lit) and isinstance(right, Lit):
            return texts.computed(op, left.value, right.value)
        return UNKNOWN

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        single = len(node.generators) == 1 and not node.generators[0].ifs
        if single:
            items, more = self.items(self.value(node.generators[0].iter, scope))
            if items and not more and len(items) <= UNROLLED:
                made = []
                for item in items:
                    inner = Scope(outer=scope)
                    self.assign(node.generators[0].target, item, inner)
                    made.append(self.value(node.elt, inner))
                return Listed(tuple(made))
        inner = self._generators(node.generators, scope)
        return Stream(self.value(node.elt, inner))

    def _generators(self, generators: Sequence[ast.comprehension], scope: Scope) -> Scope:
        inner = Scope(outer=scope)
        for one in generators:
            self.assign(one.target, self.element(self.value(one.iter, inner)), inner)
            for test in one.ifs:
                self.value(test, inner)
        return inner

    # ---- calls

    def _called(self, node: ast.Call, scope: Scope) -> Value:
        function = self.value(node.func, scope) if not isinstance(node.func, ast.Name) else self._name(node.func, scope)
        args: list[Value] = []
        more = False
        for arg in node.args:
            found = self.value(arg, scope)
            if isinstance(arg, ast.Starred):
                items, further = self.items(found)
                args.extend(items)
                more = more or further
            else:
                args.append(found)
        ways = [Fields(more=more)]
        for keyword in node.keywords:
            found = self.value(keyword.value, scope)
            if keyword.arg is not None:
                ways = [given.merged(Fields(((keyword.arg, found),))) for given in ways]
                continue
            several = [one if isinstance(one, Fields) else Fields(more=True) for one in choices(found)]
            if len(ways) * len(several) > UNROLLED:
                several = [Fields(more=True)]
            ways = [given.merged(one) for given in ways for one in several]
        self.line = node.lineno
        changed = self._changing(function, node.func, args, ways[0], scope) if len(ways) == 1 else None
        return changed if changed is not None else joined([self.call(function, args, given) for given in ways])

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        """A name that is called: naming it doesn't hand it on."""
        found = scope.find(node.id)
        return found if found is not None else Named(f"builtins.{node.id}")

    def _changing(
        self, function: Value, node: ast.expr, args: list[Value], given: Fields, scope: Scope
    ) -> Value | None:
        """What a method gives that changes what it is called on (`update`, `append`); None for any other."""
        if not isinstance(function, Method) or not isinstance(node, ast.Attribute):
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
            elif name in ("pop", "popitem", "clear") and args:
                known, key = plain(args[0])
                taken = owner.get(key) if known and isinstance(key, str) else None
                changed = owner.without(key) if known and isinstance(key, str) else Fields(more=True)
                self.assign_back(node.value, changed, scope)
                return taken if taken is not None else UNKNOWN
        elif isinstance(owner, Listed):
            if name == "append" and len(args) == 1:
                changed = Listed((*owner.items, args[0]), owner.more)
            elif name == "extend" and len(args) == 1:
                items, more = self.items(args[0])
                changed = Listed((*owner.items, *items), owner.more or more)
            elif name in ("insert", "remove", "pop", "clear"):
                changed = Listed((), True)
        elif isinstance(owner, Thing):
            changed = libraries.changed(owner, name, args, given)
        if changed is None:
            return None
        self.assign_back(node.value, bounded(changed), scope)
        return Lit(None)

    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        """What a call gives; whatever it sends is noted on the way."""
        self._step()
        match function:
            case Function():
                return self.enter(function, tuple(args), given)
            case Class():
                return self._make(function, args, given)
            case OneOf(values=values):
                return joined([self.call(value, args, given) for value in values])
            case Method(of=Made() as owner, name=name):
                found = self._of_class(owner.of, name)
                if found is None:
                    return UNKNOWN
                return self.enter(Function(found.node, found.scope, (owner,)), tuple(args), given)
            case Named() | Method() | Thing():
                self._handed_on(args, given)
                self._noted(function)
                return libraries.called(self, function, args, given)
        self._handed_on(args, given)
        return UNKNOWN

    def _handed_on(self, args: Iterable[Value], given: Fields) -> None:
        """A function given to somebody who isn't followed may be called by them."""
        for value in (*args, *[item for _, item in given.items]):
            if isinstance(value, Function):
                self._loose.append(value)

    def enter(self, function: Function, args: tuple[Value, ...], given: Fields, unknown: bool = False) -> Value:
        """Follow a function of the program's own."""
        node = function.node
        if self._depth >= MAX_DEPTH or sum(1 for one in self._running if one is node) > 1:
            return UNKNOWN
        inner = Scope(outer=function.scope)
        self._bind(node.args, (*function.bound, *args), given, inner, unknown)
        self._followed.add(node)
        self._depth += 1
        self._running.append(node)
        line = self.line
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, inner)
            open_end = True
            try:
                self.block(node.body, inner)
            except _Left:
                open_end = False
            returned = [*inner.returned, *([Lit(None)] if open_end else [])]
            return joined(returned) if returned else UNKNOWN
        finally:
            self.line = line
            self._depth -= 1
            self._running.pop()

    def _bind(self, wanted: ast.arguments, args: tuple[Value, ...], given: Fields, scope: Scope, unknown: bool) -> None:
        places = [*wanted.posonlyargs, *wanted.args]
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
            left = {name: value for name, value in named.items() if name not in {one.arg for one in places}}
            scope.names[wanted.kwarg.arg] = Fields.of(left, unknown or given.more)

    def _make(self, made_of: Class, args: list[Value], given: Fields) -> Value:
        made = Made(made_of)
        for name, value in self._class_values(made_of).items():
            made.attributes[name] = value
        found = self._of_class(made_of, "__init__")
        if found is not None:
            self.enter(Function(found.node, found.scope, (made,)), tuple(args), given)
        elif any(isinstance(one, ast.Name | ast.Attribute | ast.Call) for one in made_of.node.decorator_list):
            names = [one.target.id for one in made_of.node.body if isinstance(one, ast.AnnAssign)
                     and isinstance(one.target, ast.Name)]  # fmt: skip
            made.attributes.update(dict(zip(names, args, strict=False)))
            made.attributes.update(dict(given.items))
        # Others may call what this object has, as long as the program names it somewhere.
        for one in made_of.node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name in self._mentioned:
                self._loose.append(Function(one, made_of.scope, (made,)))
        return made

    def _class_values(self, made_of: Class) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for base in made_of.node.bases:
            inherited = self.value(base, made_of.scope)
            if isinstance(inherited, Class) and inherited is not made_of:
                found.update(self._class_values(inherited))
        inner = Scope(outer=made_of.scope)
        for one in made_of.node.body:
            if isinstance(one, ast.Assign | ast.AnnAssign):
                self.statement(one, inner)
        return {**found, **inner.names}

    def _of_class(self, made_of: Class, name: str, depth: int = 0) -> Function | None:
        for one in made_of.node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name:
                return Function(one, made_of.scope)
        if depth < 8:
            for base in made_of.node.bases:
                inherited = self.value(base, made_of.scope)
                if isinstance(inherited, Class):
                    found = self._of_class(inherited, name, depth + 1)
                    if found is not None:
                        return found
        return None

    def attribute(self, owner: Value, name: str) -> Value:
        """`owner.name`."""
        match owner:
            case Named(name=full):
                return Named(f"{full}.{name}")
            case Made(attributes=attributes):
                if name in attributes:
                    return attributes[name]
                found = self._of_class(owner.of, name)
                if found is not None and any(
                    isinstance(one, ast.Name) and one.id in ("property", "cached_property")
                    for one in getattr(found.node, "decorator_list", ())
                ):
                    return self.enter(Function(found.node, found.scope, (owner,)), (), Fields())
                if found is not None and any(
                    isinstance(one, ast.Name) and one.id == "staticmethod"
                    for one in getattr(found.node, "decorator_list", ())
                ):
                    return Function(found.node, found.scope)
                return Method(owner, name)
            case Class():
                values = self._class_values(owner)
                if name in values:
                    return values[name]
                found = self._of_class(owner, name)
                if found is None:
                    return UNKNOWN
                classly = any(
                    isinstance(one, ast.Name) and one.id == "classmethod"
                    for one in getattr(found.node, "decorator_list", ())
                )
                return Function(found.node, found.scope, (owner,) if classly else ())
            case Thing():
                return libraries.attribute(self, owner, name)
            case Unknown():
                return owner
            case OneOf(values=values):
                return joined([self.attribute(value, name) for value in values])
        return Method(owner, name)

    def entered(self, manager: Value) -> Value:
        """What `with manager as …` gives."""
        if isinstance(manager, Made):
            found = self._of_class(manager.of, "__enter__") or self._of_class(manager.of, "__aenter__")
            if found is not None:
                return self.enter(Function(found.node, found.scope, (manager,)), (), Fields())
        return manager

    # ---- small

    def items(self, value: Value) -> tuple[tuple[Value, ...], bool]:
        """The items that going through a value gives, and whether there may be others."""
        match value:
            case Listed(items=items, more=more):
                return items, more
            case Fields(items=pairs, more=more):
                return tuple(Lit(key) for key, _ in pairs), more
        return (), True

    def element(self, value: Value) -> Value:
        """What any one of a value's items is."""
        if isinstance(value, OneOf):
            return joined([self.element(one) for one in value.values])
        if isinstance(value, Stream):
            return value.of
        items, more = self.items(value)
        return joined(items) if items and not more and len(items) <= UNROLLED else UNKNOWN

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None where that isn't known."""
        match value:
            case Lit(value=known):
                return bool(known)
            case Text(parts=parts):
                return True if any(isinstance(part, str) for part in parts) else None
            case Thing(kind="table"):
                return None  # what an answer holds may be missing
            case Function() | Class() | Named() | Thing():
                return True
            case Fields(items=items, more=more) | Listed(items=items, more=more):
                return True if items else (None if more else False)
        return None

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

    def note(self, what: str) -> None:
        self.seen.note(f"Line {self.line}: {what}.")

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _Enough


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _as_load(target: ast.expr) -> ast.expr:
    return target


def _met(ways: Sequence[dict[str, Value]]) -> dict[str, Value]:
    """The variables where several ways meet: what isn't set on one of them is what it is on the others."""
    if len(ways) == 1:
        return dict(ways[0])
    met: dict[str, Value] = {}
    for name in dict.fromkeys(name for way in ways for name in way):
        found = [way[name] for way in ways if name in way]
        met[name] = found[0] if all(same(found[0], other) for other in found[1:]) else joined(found)
    return met


def _widened(before: Value | None, after: Value) -> Value:
    """A variable that a loop's round changes: what it is in any round."""
    if before is None or same(before, after):
        return after
    if isinstance(before, Fields) and isinstance(after, Fields):
        names = dict.fromkeys([name for name, _ in before.items] + [name for name, _ in after.items])
        kept: dict[str, Value] = {}
        for name in names:
            values = [value for value in (before.get(name), after.get(name)) if value is not None]
            kept[name] = values[0] if len(values) == 2 and same(values[0], values[1]) else UNKNOWN
        return Fields.of(kept, before.more or after.more)
    if isinstance(before, Listed) or isinstance(after, Listed):
        return Listed((), True)
    return UNKNOWN


def _is_simple(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body may be gone through once an item: it is small."""
    return sum(1 for statement in body for _ in ast.walk(statement)) <= 400


def _breaks(body: Sequence[ast.stmt]) -> bool:
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Break):
            return True
        if not isinstance(node, ast.For | ast.While | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _mentioned(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Every name that is read anywhere."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
    return frozenset(found)


def _bound_by(pattern: ast.pattern) -> list[str]:
    found = []
    for node in ast.walk(pattern):
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            found.append(name)
    return found
