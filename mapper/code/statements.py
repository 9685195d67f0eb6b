"""Statements of Python: assignments, ways that part and meet, loops, definitions."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from mapper.code import libraries
from mapper.code.abstract_values import (
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
    Thing,
    Unknown,
    Value,
    choices,
    same,
    weight,
)
from mapper.code.calls import Calling
from mapper.code.interpreter import ARGUMENTS, REPLACES, UNROLLED, Left, Scope
from mapper.code.objects import Changes, Endings

_ROUNDS = 6  # of a loop, after which nothing is known of what another would change
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Statements(Calling):
    """Follows blocks of statements."""

    def block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self.statement(statement, scope)

    def _way(self, way: Callable[[], object], given: Changes | None = None) -> Changes | None:
        """What is changed on one of several ways, which begins with what is `given`; None when nothing follows it."""
        mark = self.objects.mark()
        for (made, name), value in (given or {}).items():
            self.objects.put(made, name, value)
        open_end = False
        with contextlib.suppress(Left):
            way()
            open_end = True
        self.seen.spend((self.objects.mark() - mark) // 4)
        changes = self.objects.taken_back(mark)
        self.seen.spend(len(changes))
        return changes if open_end else None

    def _meet(self, ways: Sequence[Changes | None]) -> None:
        """Go on where ways meet that parted here."""
        open_ways = [way for way in ways if way is not None]
        if not open_ways:
            raise Left
        self.seen.spend(self.objects.meet(open_ways))

    def _ever(self, since: int) -> Changes:
        """What places may have held at some time since then."""
        self.seen.spend((self.objects.logged() - since) // 4)
        return self.objects.ever(since)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        self.step()
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
                old = self.value(target, scope)
                made = self.kept(self.operate(op, old, self.value(value, scope)))
                for one in choices(old):
                    if isinstance(one, Listed | Fields | Stream):  # of lists, those that have other names are changed
                        self.seen.spend(self.replaced(one, UNKNOWN))
                self.assign(target, made, scope)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse, scope)
            case ast.For() | ast.AsyncFor():
                self._for(node, scope)
            case ast.While(test=test, body=body, orelse=orelse):
                if self.truth(self.value(test, scope)) is False:
                    self.block(orelse, scope)
                    return

                def round_() -> None:
                    self.block(body, scope)
                    self.value(test, scope)

                self._loop(round_, orelse, scope, always=isinstance(test, ast.Constant))
            case ast.With() | ast.AsyncWith():
                self._with(node, scope)
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                decorators = [self.value(one, scope) for one in node.decorator_list]
                plainly = [
                    base.value if isinstance(base, ast.Subscript) else base for base in node.bases
                ]  # `Generic[T]`
                bases = tuple(self.value(base, scope) for base in plainly)
                inner = self.objects.born(Scope(outer=scope, kind="class"))
                made_of = Class(node, scope, inner, bases, {})
                for each in node.body:
                    if isinstance(each, _DEFINITIONS):
                        how = [one.attr for one in each.decorator_list if isinstance(one, ast.Attribute)]
                        name = f"js:set:{each.name}" if "setter" in how else each.name
                        name = f"del:{each.name}" if "deleter" in how else name
                        made_of.methods[name] = self._wrapped(each, inner, scope)
                        self.put(inner, each.name, None)
                    else:
                        self.statement(each, inner)
                        for name in made_of.methods.keys() & inner.attributes.keys():
                            del made_of.methods[name]
                decorated: Value = made_of
                for one in reversed([one for one in decorators if isinstance(one, Function)]):
                    decorated = self.call(one, [decorated], Fields())
                self.put(scope, node.name, decorated if isinstance(decorated, Class) else made_of)
                for function in self.implicit(made_of):
                    self.unmade.append(function)
                    self._changes_of(function)
            case ast.Return(value=value):
                scope.returned.append(self.value(value, scope) if value is not None else Lit(None))
                self.leave()
            case ast.Raise(exc=exc):
                if exc is not None:
                    self.value(exc, scope)
                self.leave()
            case ast.Continue() | ast.Break():
                out = getattr(node, "out", 0)  # loops of JavaScript's have names
                self.seen.spend(self.objects.end("loop" if isinstance(node, ast.Break) else "round", out))
                raise Left
            case ast.Import(names=names):
                for alias in names:
                    root = alias.name.partition(".")[0]
                    self.put(scope, alias.asname or root, Named(alias.name if alias.asname else root))
                    self._imported(alias.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    name = f"{module or ''}.{alias.name}"
                    found = UNKNOWN if level or alias.name == "*" else Named(name)
                    self.put(scope, alias.asname or alias.name, found)
                    if alias.name == "*":
                        self.seen.note(f"Line {node.lineno}: names imported by * aren't followed.")
                    self._imported(name)
            case ast.Global(names=names):
                scope.globals.update(names)
            case ast.Nonlocal(names=names):
                scope.nonlocals.update(names)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._deleted(target, scope)
            case ast.Assert(test=test):
                self.value(test, scope)
            case ast.Match(subject=subject, cases=cases):
                self.let_go([self.value(subject, scope)])  # what is bound to its parts may change them
                ways: list[Changes | None] = [{}]
                for case in cases:
                    bound: Changes = {(scope.given(name), name): UNKNOWN for name in _bound_by(case.pattern)}
                    if (guard := case.guard) is not None:  # what is bound, and asked for, stays where it doesn't hold
                        for holder, name in bound:
                            self.objects.put(holder, name, UNKNOWN)
                        self.perhaps(partial(self.value, guard, scope))
                    ways.append(self._way(partial(self.block, case.body, scope), bound))
                self._meet(ways)

    def _deleted(self, target: ast.expr, scope: Scope) -> None:
        """`del target`."""
        if isinstance(target, ast.Subscript):
            holder = self.value(target.value, scope)
            known, key = self.key(self.value(target.slice, scope))
            plainly = isinstance(holder, Fields) and known and isinstance(key, str)
            self.assign_back(target.value, holder.without(key) if plainly else UNKNOWN, scope)  # type: ignore[union-attr, arg-type] # as `plainly` says
        else:
            for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                self.assign(one, UNKNOWN, scope)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], scope: Scope) -> None:
        known = self.truth(self.value(test, scope))
        if known is not None:
            self.block(body if known else orelse, scope)
            return
        self._meet([self._way(partial(self.block, one, scope)) for one in (body, orelse)])

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        since, before = self.objects.logged(), (self.objects.endings(), len(scope.returned))
        ways = [self._way(partial(self.block, [*node.body, *node.orelse], scope))]
        # A handler may begin anywhere in the body.
        begun = self._ever(since) if node.handlers or node.finalbody else {}
        for handler in node.handlers:
            named: Changes = {(scope.given(handler.name), handler.name): UNKNOWN} if handler.name else {}
            ways.append(self._way(partial(self.block, handler.body, scope), begun | named))
        open_ways = [way for way in ways if way is not None]
        if not node.finalbody:
            self._meet(open_ways)
            return
        self._finally(partial(self.block, node.finalbody, scope), open_ways, since, before, scope)

    def _finally(
        self,
        last: Callable[[], object],
        open_ways: Sequence[Changes],
        since: int,
        before: tuple[Endings, int],
        scope: Scope,
    ) -> None:
        """What follows several ways; `last` is done in any case, wherever they were left since then, and on those that
        left the function or a loop after `before`."""
        ever = self._ever(since)
        ended, returned = before
        left = len(scope.returned)
        now = self.objects.endings()
        after = self._way(last, ever)
        changed = {key: value for key, value in (after or {}).items() if key not in ever or value is not ever[key]}
        self.seen.spend(self.objects.ended_with(changed, ended, now))
        for place in range(returned, left if changed else 0):
            if any(isinstance(one, Listed | Fields | Stream | Thing) for one in choices(scope.returned[place])):
                scope.returned[place] = UNKNOWN  # it may be another by then
        self._meet(open_ways if after is not None else [])
        for (made, name), value in changed.items():
            self.objects.put(made, name, value)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        managers: list[Value] = []
        swallows = False
        for item in node.items:
            self.entering = item.context_expr
            managers.append(self.value(item.context_expr, scope))
            swallows = swallows or not self._passes_on(item.context_expr, managers[-1], scope)
            manager = self.entered(managers[-1], isinstance(node, ast.AsyncWith))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, manager, scope)
        since, before = self.objects.logged(), (self.objects.endings(), len(scope.returned))
        way = self._way(partial(self.block, node.body, scope))
        ways = [one for one in (way, self._ever(since) if swallows else None) if one is not None]
        made = [one for manager in managers for one in choices(manager) if isinstance(one, Made)]
        ends = [found for one in made for name in ("__exit__", "__aexit__") if (found := self._bound(one, name))]
        if not ends:
            self._meet(ways)
            return
        self._finally(lambda: [self.enter(one, (UNKNOWN,) * 3, Fields()) for one in ends], ways, since, before, scope)

    def _passes_on(self, node: ast.expr, manager: Value, scope: Scope) -> bool:
        """Whether a manager is sure to pass on what is raised in its body."""
        function = self._name(node.func, scope) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else 0
        return isinstance(manager, Thing) or function == Named("builtins.open")

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        gone_through = self.value(node.iter, scope)
        items, more = self.items(gone_through)
        if not items and not more:
            self.block(node.orelse, scope)
            return

        def round_of(item: Value) -> None:
            own: frozenset[str] = getattr(node, "own", frozenset())  # each of JavaScript's rounds has variables
            inner = self.objects.born(scope.within(own)) if own else scope
            self.assign(node.target, item, inner)
            self.block(node.body, inner)

        if more or len(items) > UNROLLED or not _is_simple(node.body):
            self._loop(lambda: round_of(self.element(gone_through)), node.orelse, scope)
            return
        self.objects.begin("loop")
        try:
            for item in items:
                self.objects.begin("round")
                way = self._way(partial(round_of, item))
                self._meet([way, *self.objects.left("round")])
        except Left:  # the rounds after this one aren't reached
            self._meet(self.objects.left("loop"))
            return
        now = self.value(node.iter, scope) if isinstance(node.iter, ast.Name | ast.Attribute) else gone_through
        if self.items(now) != (items, False):  # others were added on the way
            self._loop(lambda: round_of(UNKNOWN), [], scope)
        self._after(node.orelse, scope, self.objects.left("loop"))

    def _loop(
        self, round_: Callable[[], object], orelse: Sequence[ast.stmt], scope: Scope, always: bool = False
    ) -> None:
        """As many rounds as one may change what another begins with."""
        self.objects.begin("loop")
        for number in range(_ROUNDS + 1):
            self.objects.begin("round")
            way = self._way(round_)
            rounds = [*([way] if way is not None else []), *self.objects.left("round")]
            self.seen.spend(sum(1 + weight(value) // 8 for one in rounds for value in one.values() if value))
            if number == _ROUNDS - 1:
                rounds = [dict.fromkeys(one, UNKNOWN) for one in rounds]
            if not self.objects.moved(rounds, _widened):
                break
        self._after(orelse, scope, self.objects.left("loop"), always)

    def _after(self, orelse: Sequence[ast.stmt], scope: Scope, broken: Sequence[Changes], always: bool = False) -> None:
        """After a loop: `orelse`, or what was left by `break`."""
        self._meet([*broken, *([] if always else [self._way(partial(self.block, orelse, scope))])])

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self.put(scope, node.name, self._wrapped(node, scope, scope))

    def _wrapped(self, node: ast.FunctionDef | ast.AsyncFunctionDef, at: Scope, scope: Scope) -> Function:
        """A function that is defined `at` a place, in a scope, as its decorators leave it."""
        function = wrapped = self.function(node, at, scope)
        given: Value = function  # what the next decorator is given
        for decorator in reversed(node.decorator_list):
            made = self.value(decorator, at)
            if isinstance(made, Function) and made.node is not node:
                given = self.call(made, [wrapped], Fields())
                wrapped = given if isinstance(given, Function) else function
            elif isinstance(made, Class) and at is scope:
                instead = self.call(made, [wrapped], Fields())
                wrapped = (self._bound(instead, "__call__") if isinstance(instead, Made) else None) or wrapped
            elif at is scope:
                if isinstance(made, Thing) and made.kind == "slack.listener":
                    self.call(made, [function], Fields())
                self.handed_on([function], Fields())  # whoever decorates it may call it
                if not isinstance(given, Function):
                    given = self.call(made, [given], Fields())
        return wrapped

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self.put(scope, name, value)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items, more = self.items(value)
                fits = not more and len(items) == len(elts) and not any(isinstance(e, ast.Starred) for e in elts)
                if not fits:
                    self.let_go([value], inner=True)
                for place, element in enumerate(elts):
                    inner = element.value if isinstance(element, ast.Starred) else element
                    self.assign(inner, items[place] if fits else UNKNOWN, scope)
            case ast.Attribute(value=owner, attr=name):
                holder = self.value(owner, scope)
                self.seen.header(name, value)
                if isinstance(holder, Made):
                    self.assigned_to(holder, name, value)
                elif isinstance(holder, Class):
                    self.changed.add((holder.node, name))
                elif isinstance(holder, Thing):
                    self.assign_back(owner, libraries.assigned(holder, name, value), scope)
                elif isinstance(holder, Fields):  # JavaScript's objects
                    self.assign_back(owner, self.kept(holder.merged(Fields(((name, value),)))), scope)
                elif holder == Named("sys") and name == "argv":
                    self.objects.put(self.top, ARGUMENTS, value)
                elif isinstance(holder, Unknown | Named | Function):
                    self.let_go([value])
                    if isinstance(holder, Named) and isinstance(value, Function | Class | Method | Named):
                        self.note(REPLACES)
                elif isinstance(holder, OneOf):
                    for one in holder.values:
                        if isinstance(one, Made):
                            self.objects.put(one, name, UNKNOWN)
                            setter = self._bound(one, f"js:set:{name}")
                            self.handed_on([setter] if setter is not None else [], Fields())
                    if not all(isinstance(one, Made) for one in holder.values):
                        self.assign_back(owner, UNKNOWN, scope)
            case ast.Subscript(value=owner, slice=index):
                holder = self.value(owner, scope)
                known, key = self.key(self.value(index, scope))
                self.seen.header(key if known else None, value)
                if not (known and isinstance(key, str)):
                    self.let_go([value])
                if isinstance(holder, Fields):
                    changed = (
                        holder.merged(Fields(((key, value),)))
                        if known and isinstance(key, str)
                        else Fields(holder.items, True)
                    )
                    self.assign_back(owner, self.kept(changed), scope)
                elif isinstance(holder, Made) and known and isinstance(key, str):  # a field of JavaScript's
                    self.assigned_to(holder, key, value)
                elif isinstance(holder, Made):
                    self.objects.forget(holder)
                elif isinstance(holder, Class):
                    self.changed.add((holder.node, key if known and isinstance(key, str) else ""))
                elif isinstance(holder, Unknown):
                    self.let_go([value])
                elif isinstance(holder, (Listed, Stream, OneOf)):
                    self.let_go([value])
                    for one in holder.values if isinstance(holder, OneOf) else ():
                        if isinstance(one, Made):
                            self.objects.forget(one)
                    self.assign_back(owner, UNKNOWN, scope)

    def assign_back(self, owner: ast.expr, value: Value, scope: Scope, old: Value | None = None) -> None:
        """`value` in the place that an expression was read from, and wherever the same list or mapping is."""
        if isinstance(owner, ast.Name):
            old = self.shared(scope.find(owner.id) or UNKNOWN)
        elif old is None or not isinstance(owner, ast.Call):  # which isn't called twice
            old = self.value(owner, scope)
        for one in choices(old):
            self.seen.spend(self.replaced(one, value if one is old else UNKNOWN))
        if isinstance(owner, ast.Name):
            self.objects.put(scope.holder(owner.id) or scope, owner.id, value)
        elif isinstance(owner, ast.Attribute | ast.Subscript) and self.value(owner, scope) is not value:
            self.assign(owner, value, scope)


def _widened(before: Value | None, after: Value) -> Value:
    """A variable that a loop's round changes: what it is in any round."""
    if before is None or same(before, after):
        return after
    if _alike(before, after):
        return before
    if isinstance(before, Fields) and isinstance(after, Fields):
        old, new = dict(before.items), dict(after.items)
        kept: dict[str, Value] = {}
        for name in {**old, **new}:
            values = [value for value in (old.get(name), new.get(name)) if value is not None]
            kept[name] = values[0] if len(values) == 2 and same(values[0], values[1]) else UNKNOWN
        return Fields.of(kept, before.more or after.more)
    return Listed((), True) if isinstance(before, Listed) and isinstance(after, Listed) else UNKNOWN


def _alike(one: Value, other: Value, depth: int = 0) -> bool:
    """Whether two values are one, or what two rounds of a loop made in the same way."""
    match one, other:
        case Function(), Function():
            return one.node is other.node and one.scope is other.scope and one.bound == other.bound and not one.defaults
        case Made(), Made() if depth < 3 and one.of is other.of and one.attributes.keys() == other.attributes.keys():
            return all(_alike(each, other.attributes[name], depth + 1) for name, each in one.attributes.items())
    return same(one, other)


def _is_simple(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body may be gone through once an item: it is small."""
    most = 400
    return sum(1 for _ in islice((node for statement in body for node in ast.walk(statement)), most + 1)) <= most


def _bound_by(pattern: ast.pattern) -> list[str]:
    found = []
    for node in ast.walk(pattern):
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            found.append(name)
    return found
