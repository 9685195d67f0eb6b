"""Statements of Python: assignments, ways that part and meet, loops, definitions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
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
    Named,
    OneOf,
    Stream,
    Thing,
    Value,
    same,
    weight,
)
from mapper.code.calls import Calling
from mapper.code.interpreter import UNROLLED, Left, Scope
from mapper.code.variables import Names, meet, met

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Statements(Calling):
    """Follows blocks of statements."""

    def block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self.statement(statement, scope)

    def _way(self, body: Sequence[ast.stmt], scope: Scope, before: Names) -> Names | None:
        """What the variables are after one of several ways; None when nothing follows it."""
        scope.names = before.layer()
        mark = self.objects.mark()
        try:
            self.block(body, scope)
            return scope.names
        except Left:
            self.seen.spend(self.objects.end())
            return None
        finally:
            scope.names.changes = self.objects.taken_back(mark)
            self.seen.spend(len(scope.names.changes))

    def _meet(self, scope: Scope, base: Names, ways: Sequence[Names | None]) -> None:
        """What the variables and objects are where ways meet that parted from `base`."""
        open_ways = [way for way in ways if way is not None]
        if not open_ways:
            raise Left
        self.seen.spend(self.objects.meet([way.changes for way in open_ways]))
        self.seen.spend(meet(base, open_ways))
        scope.names = base

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
                load = target
                old = self.value(load, scope)
                self.assign(target, self.kept(self.operate(op, old, self.value(value, scope))), scope)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(test, body, orelse, scope)
            case ast.For() | ast.AsyncFor():
                self._for(node, scope)
            case ast.While(test=test, body=body, orelse=orelse):
                known = self.truth(self.value(test, scope))
                if known is not False:
                    self._loop(body, scope, always=known is True and isinstance(test, ast.Constant))
                self.block(orelse, scope)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.entering = item.context_expr
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
                raise Left
            case ast.Raise(exc=exc):
                if exc is not None:
                    self.value(exc, scope)
                raise Left
            case ast.Continue() | ast.Break():
                raise Left
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
                ways: list[Names | None] = [before.layer()]
                for case in cases:
                    inside = before.layer()
                    for name in _bound_by(case.pattern):
                        inside[name] = UNKNOWN
                    ways.append(self._way(case.body, scope, inside))
                self._meet(scope, before, ways)

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], scope: Scope) -> None:
        known = self.truth(self.value(test, scope))
        if known is not None:
            self.block(body if known else orelse, scope)
            return
        before = scope.names
        self._meet(scope, before, [self._way(body, scope, before), self._way(orelse, scope, before)])

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        before = scope.names
        mark, ended = self.objects.mark(), len(self.objects.ended)
        whole = self._way([*node.body, *node.orelse], scope, before)
        tried = scope.names.changes
        # A handler may begin anywhere in the body: with what was there before, or what the body left.
        begun = before.layer()
        if whole is not None:
            begun.update(met(before, [before.layer(), whole])[0])
        else:
            begun.update(scope.names.since(before))
        self.seen.spend(self.objects.meet([{}, tried, *self.objects.ended[ended:]]))
        begun_with = self.objects.since(mark)
        ways = [whole]
        for handler in node.handlers:
            inside = begun.layer()
            if handler.name:
                inside[handler.name] = UNKNOWN
            ways.append(self._way(handler.body, scope, inside))
            scope.names.changes = begun_with | scope.names.changes
        self.objects.taken_back(mark)
        try:
            self._meet(scope, before, ways)
        except Left:
            scope.names = begun.settle(before)
            self.seen.spend(self.objects.meet([begun_with]))
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
                before = scope.names
                mark, ended = self.objects.mark(), len(self.objects.ended)
                try:
                    self.block(node.body, scope)
                except Left:
                    self.seen.spend(self.objects.end())
                scope.names = scope.names.settle(before)
                self.seen.spend(self.objects.rejoin(mark, ended))
            self.block(node.orelse, scope)
            return
        self.assign(node.target, self.element(gone_through), scope)
        self._loop(node.body, scope)
        self.block(node.orelse, scope)

    def _loop(self, body: Sequence[ast.stmt], scope: Scope, always: bool = False) -> None:
        """Two rounds: as it begins, and with what a round may have changed."""
        before = scope.names
        returned = len(scope.returned)
        mark, ended = self.objects.mark(), len(self.objects.ended)
        first = self._way(body, scope, before)
        after = first if first is not None else scope.names
        rounds = [after.changes, *self.objects.ended[ended:]]
        self.seen.spend(sum(map(len, rounds)))
        changed = self.objects.moved(rounds, _widened)
        moved = self.objects.since(mark)
        set_since = {name: value for name, value in after.since(before).items() if value is not None}
        self.seen.spend(sum(1 + weight(value) // 8 for value in set_since.values()))
        moving = after.layer()
        moving.changes = moved
        for name, value in set_since.items():
            old = before.get(name)
            if old is None or not same(value, old):
                moving[name], changed = _widened(old, value), True
        if changed:
            second = self._way(body, scope, moving)
            after = second if second is not None else scope.names
            after.changes = moved | after.changes
        else:
            after.changes = {}
        self.objects.taken_back(mark)
        left = [before.layer()] if not always else []
        self._meet(scope, before, [*left, moving, after])
        self.seen.spend(self.objects.rejoin(mark, ended))
        if always and not _breaks(body) and len(scope.returned) >= returned:
            raise Left

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope)
        wrapped: Value = function
        for decorator in reversed(node.decorator_list):
            made = self.value(decorator, scope)
            if isinstance(made, Function) and made.node is not node:
                returned = self.call(made, [wrapped], Fields())
                wrapped = returned if isinstance(returned, Function) else function
            else:
                self.loose.append(function)  # whoever decorates it may call it
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
                self.seen.header(name, value)
                if isinstance(holder, Made):
                    self.assigned_to(holder, name, value)
                elif isinstance(holder, Class):
                    self.changed.add((holder.node, name))
                elif isinstance(holder, Thing):
                    self.assign_back(owner, libraries.assigned(holder, name, value), scope)
                elif isinstance(holder, Fields):  # JavaScript's objects
                    self.assign_back(owner, self.kept(holder.merged(Fields(((name, value),)))), scope)
                elif isinstance(holder, OneOf):
                    for one in holder.values:
                        if isinstance(one, Made):
                            self.objects.put(one, name, UNKNOWN)
                    if not all(isinstance(one, Made) for one in holder.values):
                        self.assign_back(owner, UNKNOWN, scope)
            case ast.Subscript(value=owner, slice=index):
                holder = self.value(owner, scope)
                known, key = self.key(self.value(index, scope))
                self.seen.header(key if known else None, value)
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
                elif isinstance(holder, (Listed, Stream, OneOf)):
                    for one in holder.values if isinstance(holder, OneOf) else ():
                        if isinstance(one, Made):
                            self.objects.forget(one)
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


def _widened(before: Value | None, after: Value) -> Value:
    """A variable that a loop's round changes: what it is in any round."""
    if before is None or same(before, after):
        return after
    if isinstance(before, Fields) and isinstance(after, Fields):
        old, new = dict(before.items), dict(after.items)
        kept: dict[str, Value] = {}
        for name in {**old, **new}:
            values = [value for value in (old.get(name), new.get(name)) if value is not None]
            kept[name] = values[0] if len(values) == 2 and same(values[0], values[1]) else UNKNOWN
        return Fields.of(kept, before.more or after.more)
    if isinstance(before, Listed) or isinstance(after, Listed):
        return Listed((), True)
    return UNKNOWN


def _is_simple(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body may be gone through once an item: it is small."""
    most = 400
    return sum(1 for _ in islice((node for statement in body for node in ast.walk(statement)), most + 1)) <= most


def _breaks(body: Sequence[ast.stmt]) -> bool:
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Break):
            return True
        if not isinstance(node, ast.For | ast.While | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _bound_by(pattern: ast.pattern) -> list[str]:
    found = []
    for node in ast.walk(pattern):
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            found.append(name)
    return found
