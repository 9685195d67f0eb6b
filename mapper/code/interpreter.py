"""What every part of the reader of Python shares: variables, bounds, and what is known of a value's items and truth."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Class,
    Fields,
    Function,
    Json,
    Listed,
    Lit,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Value,
    bounded,
    joined,
    weight,
)
from mapper.code.objects import Changes, Objects
from mapper.code.sent_requests import Enough, Seen
from mapper.code.variables import Names

MAX_STEPS = 60_000
UNROLLED = 24  # items of a written list that a loop goes through one by one


class Left(Exception):
    """The statements that follow in this block aren't reached."""


@dataclass(slots=True)
class Scope:
    """The variables of a module, a function or a class."""

    names: Names = field(default_factory=Names)
    outer: Scope | None = None
    globals: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    # A generator's items, and whether each is written there.
    yielded: list[tuple[bool, Value]] = field(default_factory=list)

    def find(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
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


class Following(ABC):
    """One program that is followed: its variables are in scopes, what it sends goes into `seen`."""

    def __init__(self, seen: Seen, mentioned: frozenset[str]) -> None:
        self.seen = seen
        self.line = 0
        self.steps = 0
        self.depth = 0
        self.nesting = 0
        self.mentioned = mentioned  # every name that is read anywhere in it
        self.stored: dict[str, int] = {}  # how often each name is given a value, as far as that can be told
        self.defaults: dict[str, Value] = {}  # what a library is told to take where it is given nothing else
        self.running: list[ast.AST] = []
        self.entering: ast.expr | None = None  # the manager of a `with` that is about to be entered
        self.at_once = False  # what is called next is begun before anything else is done
        self.followed: set[ast.AST] = set()
        self.objects = Objects()
        self.changed: set[tuple[ast.ClassDef, str]] = set()  # attributes of classes that are given another value
        self._members: dict[Class, dict[str, Value] | None] = {}
        self.loose: list[Function] = []  # functions that were handed on, which anybody may call

    @abstractmethod
    def block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Follow statements. Raises Left where what comes after them isn't reached."""

    @abstractmethod
    def statement(self, node: ast.stmt, scope: Scope) -> None:
        """Follow one statement. Raises Left."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """`target = value`."""

    @abstractmethod
    def assign_back(self, owner: ast.expr, value: Value, scope: Scope) -> None:
        """`value` in the place that an expression was read from."""

    @abstractmethod
    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression gives."""

    @abstractmethod
    def called(self, node: ast.Call, scope: Scope) -> Value:
        """What a call gives, as it is written."""

    @abstractmethod
    def call(self, function: Value, args: list[Value], given: Fields) -> Value:
        """What a call gives; whatever it sends is noted on the way."""

    @abstractmethod
    def key(self, value: Value) -> tuple[bool, object]:
        """Whether what names an item of a mapping is known, and then its name."""

    @abstractmethod
    def enter(self, function: Function, args: tuple[Value, ...], given: Fields, unknown: bool = False) -> Value:
        """Follow a function of the program's own."""

    @abstractmethod
    def entered(self, manager: Value) -> Value:
        """What `with manager as …` gives."""

    @abstractmethod
    def members(self, made_of: Class) -> dict[str, Value] | None:
        """The members of an enumeration, by their names; None for another class."""

    @abstractmethod
    def attribute(self, owner: Value, name: str) -> Value:
        """`owner.name`."""

    def leave(self) -> NoReturn:
        """The program ends here."""
        raise Left

    def items(self, value: Value) -> tuple[tuple[Value, ...], bool]:
        """The items that going through a value gives, and whether there may be others."""
        match value:
            case Listed(items=items, more=more):
                return items, more
            case Fields(items=pairs, more=more):
                return tuple(Lit(key) for key, _ in pairs), more
            case Class():
                members = self.members(value)
                return (tuple(members.values()), False) if members is not None else ((), True)
        return (), True

    def element(self, value: Value) -> Value:
        """What any one of a value's items is."""
        if isinstance(value, OneOf):
            return self.either(self.element(one) for one in value.values)
        if isinstance(value, Stream):
            return value.of
        if value == ANSWER:
            return value
        items, more = self.items(value)
        return self.either(items) if items and not more and len(items) <= UNROLLED else UNKNOWN

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None where that isn't known."""
        match value:
            case Lit(value=known):
                return bool(known)
            case Text(parts=parts):
                return True if any(isinstance(part, str) for part in parts) else None
            case Thing(kind="table" | "axios.answer" | "axios.sent"):
                return None  # what an answer holds may be missing
            case Function() | Class() | Named() | Thing() | Json():
                return True
            case Fields(items=items, more=more) | Listed(items=items, more=more):
                return True if items else (None if more else False)
        return None

    def kept(self, made: Value) -> Value:
        """A value that was made or found, which takes as long as it is large; nothing is known of one that is too
        large."""
        self.seen.spend(weight(made) // 8)
        return bounded(made)

    def either(self, values: Iterable[Value]) -> Value:
        """What a place holds that may hold any of these: all of them are looked at."""
        found = list(values)
        self.seen.spend(sum(map(weight, found)) // 8)
        return joined(found)

    def several(self, ways: Iterable[Callable[[], Value]]) -> Value:
        """What one of several ways gives; objects have what any of them left them."""
        made: list[Value] = []
        changes: list[Changes] = []
        for way in ways:
            mark = self.objects.mark()
            made.append(way())
            changes.append(self.objects.taken_back(mark))
        self.seen.spend(self.objects.meet(changes))
        return self.either(made)

    def perhaps(self, way: Callable[[], Value], again: bool = False) -> list[Value]:
        """What is only perhaps reached gives, or `again` and again; nothing where it ends the program."""
        mark = self.objects.mark()
        made: list[Value] = []
        try:
            made.append(way())
        except Left:
            self.seen.spend(self.objects.end())
        changes = self.objects.taken_back(mark)
        if again:
            changes = dict.fromkeys(changes, UNKNOWN)
        self.seen.spend(self.objects.meet([{}, changes]) if made else 0)
        return made

    def note(self, what: str) -> None:
        self.seen.note(f"Line {self.line}: {what}.")

    def step(self) -> None:
        self.seen.spend(1)
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Enough
