"""Expressions of Python, as values that are known in part."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from mapper.code import libraries, texts
from mapper.code.abstract_values import (
    ANSWER,
    PUT_IN,
    UNKNOWN,
    Class,
    Fields,
    Function,
    Listed,
    Lit,
    Made,
    Member,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Unknown,
    Value,
    choices,
    each,
    joined,
    of_source,
    parts_of,
    plain,
    text,
    weight,
)
from mapper.code.interpreter import UNROLLED, Following, Scope
from mapper.code.sent_requests import Enough

MAX_NESTING = 320  # expressions within expressions


class Expressions(Following):
    """What expressions give."""

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression gives."""
        self.step()
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise Enough
        try:
            return self.kept(self._value(node, scope))
        finally:
            self.nesting -= 1

    def _value(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Constant(value=known):
                if known is ...:
                    return UNKNOWN
                if isinstance(known, str) and "://" in known[:12] and PUT_IN not in known:
                    self.seen.addresses.append(known[:500])
                if isinstance(known, str):
                    return of_source(known)
                return Lit(known) if not isinstance(known, complex) else UNKNOWN
            case ast.Name(id=name) if PUT_IN in name:
                return UNKNOWN
            case ast.Name(id=name):
                found = scope.find(name)
                if found is None:
                    return Named(f"builtins.{name}")
                if isinstance(found, Function):
                    self.loose.append(found)
                return self.shared(found)
            case ast.JoinedStr(values=values):
                pieces = [self._piece(value, scope) for value in values]
                ways = [text(part for one in made for part in parts_of(one)) for made in each(*pieces)]
                self.seen.spend(len(ways) * texts.work(*pieces))
                return self.either(ways)
            case ast.Attribute(value=owner, attr=name):
                return self.shared(self.attribute(self.value(owner, scope), name))
            case ast.Call():
                return self.called(node, scope)
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, scope)
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return self._list(elts, scope)
            case ast.Set(elts=elts):
                return _unordered(self._list(elts, scope))
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
                tested = self.value(test, scope)
                known = False if isinstance(tested, Unknown) and tested.unset else self.truth(tested)
                if known is not None:
                    return self.value(body if known else orelse, scope)
                return self.either([*self._maybe(body, scope), *self._maybe(orelse, scope)])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._compared(left, ops, comparators, scope)
            case ast.Subscript(value=owner, slice=index):
                return self.item(self.value(owner, scope), index, scope)
            case ast.Await(value=value):
                self.entering = value
                return self.value(value, scope)
            case ast.Starred(value=value):
                return self.value(value, scope)
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value, scope)
                holder = scope
                while holder.kind == "comprehension" and holder.outer is not None:
                    holder = holder.outer
                self.assign(target, found, holder)
                return found
            case ast.Lambda():
                made = self.function(node, scope, scope)
                self.loose.append(made)
                return made
            case ast.GeneratorExp() if node is not self.entering:
                return self._generated(node, scope)
            case ast.SetComp():
                return _unordered(self._comprehended(node, scope))
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehended(node, scope)
            case ast.DictComp():
                inner = self._generators(node.generators, scope)
                key = self.either(self.perhaps(lambda: self.value(node.key, inner), again=True))
                item = self.either(self.perhaps(lambda: self.value(node.value, inner), again=True))
                known, name = plain(key)
                single = known and isinstance(name, str) and len(node.generators) == 0
                self.let_go([item])
                return Fields(((name, item),)) if single else Fields(more=True)
            case ast.Yield(value=value):
                found = self.value(value, scope) if value is not None else Lit(None)
                # Whoever is given a list or an object may change it before its generator goes on.
                plainly = isinstance(found, Lit | Text | Thing) or found == ANSWER
                changes = isinstance(value, ast.Name) and not plainly
                self.let_go([found] if changes else [])
                scope.yielded.append((_is_written(value), UNKNOWN if changes else found))
            case ast.YieldFrom(value=value):
                scope.yielded.append((_is_written(value), self.element(self.value(value, scope))))
        return UNKNOWN

    def _piece(self, node: ast.expr, scope: Scope) -> Value:
        if not isinstance(node, ast.FormattedValue):
            return self.value(node, scope)
        found = self.value(node.value, scope)
        plainly = node.format_spec is None and node.conversion in (-1, 115)
        return found if plainly else UNKNOWN

    def _maybe(self, node: ast.expr, scope: Scope) -> list[Value]:
        """What an operand that is only perhaps reached gives; nothing where it ends the program."""
        return self.perhaps(lambda: self.value(node, scope))

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: Scope) -> Value:
        ways = [Fields()]  # one for each of what may be within it
        for key, value in zip(keys, values, strict=True):
            if key is None:
                inner = self.value(value, scope)
                self.seen.spend((sum(made.weight for made in ways) + weight(inner)) // 8)
                several = [self._spread(one) for one in choices(inner)]
                if len(ways) * len(several) > UNROLLED:
                    several = [Fields(more=True)]
                ways = [made.merged(one) for made in ways for one in several]
                continue
            known, name = self.key(self.value(key, scope))
            found = self.value(value, scope)
            self.seen.header(name if known else None, found)
            if known and isinstance(name, str | int) and not isinstance(name, bool):
                self.seen.spend(sum(made.weight for made in ways) // 8 if len(ways) > 1 else 0)
                ways = [made.merged(Fields(((str(name), found),))) for made in ways]
            else:
                ways = [Fields(made.items, True) for made in ways]
        return self.either(ways)

    def _spread(self, value: Value) -> Fields:
        """What a mapping within another gives it."""
        return value if isinstance(value, Fields) else Fields(more=True)

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
        if len(items) == 2 and isinstance(items[0], Lit):
            self.seen.header(items[0].value, items[1])
        return Listed(tuple(items), more)

    def _either(self, op: ast.boolop, values: Sequence[ast.expr], scope: Scope) -> Value:
        found: list[Value] = []
        wanted = isinstance(op, ast.Or)
        for node in values:
            for one in [self.value(node, scope)] if node is values[0] else self._maybe(node, scope):
                known = self.truth(one)
                if known is wanted:  # `or` ends with what is true, `and` with what isn't
                    return self.either([*found, one])
                absent = wanted and isinstance(one, Unknown) and one.unset
                if (known is None and not absent) or node is values[-1]:
                    found.append(one)
        return self.either(found)

    def _compared(
        self, left: ast.expr, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr], scope: Scope
    ) -> Value:
        first = self.value(left, scope)
        others = [self.value(one, scope) for one in comparators]
        wanted = isinstance(ops[0], ast.Eq | ast.Is)
        compares = len(ops) == 1 and (wanted or isinstance(ops[0], ast.NotEq | ast.IsNot))
        if compares and isinstance(first, Lit) and isinstance(others[0], Lit):
            known = self.equal(ops[0], first.value, others[0].value)
            return Lit(known is wanted) if known is not None else UNKNOWN
        there = isinstance(first, Fields | Listed | Function | Class | Made | Text) or (
            isinstance(first, Thing) and self.truth(first) is True
        )
        there = there and not (isinstance(first, Made) and isinstance(ops[0], ast.Eq | ast.NotEq))  # by its `__eq__`
        if len(ops) == 1 and others[0] == Lit(None) and there:
            return Lit(isinstance(ops[0], ast.IsNot | ast.NotEq))
        return UNKNOWN

    def equal(self, op: ast.cmpop, one: Any, other: Any) -> bool | None:
        """Whether two plain values are equal, as `op` takes it; None where that isn't known."""
        return bool(one == other)

    def item(self, owner: Value, index: ast.expr, scope: Scope) -> Value:
        """`owner[index]`."""
        if isinstance(index, ast.Slice):
            bounds = [Lit(None) if one is None else self.value(one, scope)
                      for one in (index.lower, index.upper, index.step)]  # fmt: skip
            if isinstance(owner, Listed) and not owner.more:
                at = [one.value for one in bounds if isinstance(one, Lit) and type(one.value) in (int, type(None))]
                if len(at) == 3 and at[2] != 0:
                    return Listed(owner.items[slice(*at)])
            self.let_go([owner], inner=True)
            return owner if isinstance(owner, Stream) else UNKNOWN
        key = self.value(index, scope)
        if isinstance(owner, Stream):
            return owner.of
        known, place = self.key(key)
        if not known:
            if isinstance(key, OneOf) and not isinstance(owner, Unknown):
                return self.either(self._item(owner, one) for one in key.values)
            return (
                self.either([value for _, value in owner.items])
                if isinstance(owner, Fields) and not owner.more and (owner.items)
                else UNKNOWN
            )
        return self._item(owner, Lit(place))

    def key(self, value: Value) -> tuple[bool, Any]:
        """Whether what names an item of a mapping is known, and then its name."""
        return plain(value)

    def _item(self, owner: Value, key: Value) -> Value:
        known, place = plain(key)
        if isinstance(owner, Class):
            members = self.members(owner)
            found = (members or {}).get(str(place)) if known else None
            return found if found is not None else UNKNOWN
        if isinstance(owner, OneOf):
            return self.either(self._item(one, key) for one in owner.values)
        if isinstance(owner, Fields) and known:
            found = owner.get(str(place))
            return found if found is not None else UNKNOWN
        if isinstance(owner, Listed) and isinstance(place, int) and not isinstance(place, bool) and not owner.more:
            return owner.items[place] if -len(owner.items) <= place < len(owner.items) else UNKNOWN
        if isinstance(owner, Named | Thing) and known:
            return libraries.subscript(self, owner, place)
        self.let_go([owner], inner=True)
        return UNKNOWN

    def operate(self, op: ast.operator, left: Value, right: Value) -> Value:
        """`left op right`."""
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            if len(choices(left)) * len(choices(right)) > UNROLLED:
                return UNKNOWN
            return self.either(self.operate(op, one, other) for one in choices(left) for other in choices(right))
        self.seen.spend(texts.work(left, right))
        if isinstance(op, ast.Add):
            if isinstance(left, Listed) and isinstance(right, Listed):
                return Listed((*left.items, *right.items), left.more or right.more)
            if texts.is_text(left) or texts.is_text(right):
                left, right = (Lit(str(one.value)) if isinstance(one, Lit) and isinstance(one.value, Member) else one
                               for one in (left, right))  # fmt: skip
                return text((*parts_of(left), *parts_of(right)))
        if isinstance(op, ast.BitOr) and isinstance(left, Fields):
            return left.merged(right) if isinstance(right, Fields) else Fields(left.items, True)
        if isinstance(op, ast.Mod) and texts.is_text(left):
            return texts.percent(left, right)
        if isinstance(op, ast.Div) and isinstance(left, Thing):
            return UNKNOWN
        if isinstance(left, Lit) and isinstance(right, Lit):
            return texts.computed(op, left.value, right.value)
        self.let_go((left, right), inner=True)
        return UNKNOWN

    def _generated(self, node: ast.GeneratorExp, scope: Scope) -> Value:
        """A generator expression, of which it isn't known when its items are asked for."""
        made: list[Value] = []
        scope.share()
        self.beside(lambda: made.append(self._comprehended(node, scope)))
        bound = [one.id for each in node.generators for one in ast.walk(each.target) if isinstance(one, ast.Name)]
        given = ast.arguments([], [ast.arg(name) for name in bound], None, [], [], None, [])
        items = Function(ast.Lambda(given, node.elt), scope)
        if made and isinstance(node.generators[0].iter, ast.List | ast.Tuple) and self.stays(items, ()):
            return made[0]
        return Stream(self.element(made[0]) if made and self.stays(items, ()) else UNKNOWN)

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Value:
        single = len(node.generators) == 1 and not node.generators[0].ifs
        if single:
            items, more = self.items(self.value(node.generators[0].iter, scope))
            if items and not more and len(items) <= UNROLLED:
                made = []
                for item in items:
                    inner = self.objects.born(Scope(outer=scope, kind="comprehension"))
                    self.assign(node.generators[0].target, item, inner)
                    made.append(self.value(node.elt, inner))
                return Listed(tuple(made))
        inner = self._generators(node.generators, scope)
        return Stream(self.either(self.perhaps(lambda: self.value(node.elt, inner), again=True)))

    def _generators(self, generators: Sequence[ast.comprehension], scope: Scope) -> Scope:
        inner = self.objects.born(Scope(outer=scope, kind="comprehension"))
        for one in generators:
            self.assign(one.target, self.element(self.value(one.iter, inner)), inner)
            for test in one.ifs:
                self.value(test, inner)
        return inner


def _unordered(made: Value) -> Value:
    """A set of what is in a list."""
    if not isinstance(made, Listed) or len(made.items) + made.more < 2:
        return made
    return Stream(joined(made.items) if not made.more else UNKNOWN)


def _is_written(node: ast.expr | None) -> bool:
    """Whether an expression gives what is written there, whenever it is reached."""
    reads = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Await | ast.Yield | ast.YieldFrom
    return node is None or not any(isinstance(one, reads) for one in ast.walk(node))
