"""What every part of the reader of Python shares: variables, bounds, and what is known of a value's items and truth."""

from __future__ import annotations

import ast
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from mapper.code.abstract_values import (
    ANSWER,
    UNKNOWN,
    Class,
    Fields,
    Function,
    Json,
    Listed,
    Lit,
    Made,
    Named,
    OneOf,
    Stream,
    Text,
    Thing,
    Value,
    bounded,
    choices,
    contents,
    joined,
    sends,
    weight,
)
from mapper.code.objects import Changes, Names, Objects, Touched
from mapper.code.sent_requests import Enough, Seen

ARGUMENTS = "sys.argv"  # no variable is called like that: the outermost scope keeps there what the program is run with
REPLACES = "replaces a function of a library, and what that does from then on isn't followed"
MAX_STEPS = 60_000
UNROLLED = 24  # items of a written list that a loop goes through one by one


class Left(Exception):
    """The statements that follow in this block aren't reached."""


@dataclass(slots=True, eq=False)
class Scope(Names):
    """The variables of a module, a function, a class or a comprehension."""

    outer: Scope | None = None
    kind: Literal["function", "class", "comprehension", "round"] = "function"
    own: frozenset[str] = frozenset()  # of a round: the variables that it has
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    # A generator's items, and whether each is written there.
    yielded: list[tuple[bool, Value]] = field(default_factory=list)

    def find(self, name: str) -> Value | None:
        holder = self.holder(name)
        return holder.attributes.get(name) if holder is not None else None

    def holder(self, name: str) -> Scope | None:
        """The scope whose variable a name is; None where there is none. A class's are its own body's alone."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.globals:
                return self.module
            if name in scope.attributes and (scope is self or scope.kind != "class"):
                return scope
            scope = scope.outer
        return None

    def share(self) -> None:
        """Something is made here that may read these variables, and those around them, after the scope has ended."""
        scope: Scope | None = self
        while scope is not None and not scope.shared:
            scope.shared = True
            scope = scope.outer

    @property
    def module(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def within(self, own: frozenset[str]) -> Scope:
        """A round of a loop, which has these variables of its own."""
        return Scope(outer=self, kind="round", own=own, returned=self.returned, yielded=self.yielded)

    def given(self, name: str) -> Scope:
        """The scope whose variable a name is that is given a value here."""
        if self.kind == "round" and name not in self.own and self.outer is not None:
            return self.outer.given(name)
        if name in self.globals:
            return self.module
        if name in self.nonlocals and self.outer is not None:
            return self.outer.holder(name) or self.outer
        return self


@dataclass(frozen=True, slots=True)
class Argument:
    """One `add_argument` of argparse. `switch`: what it is where it is given, of one that takes no value."""

    dest: str
    names: tuple[str, ...]
    switch: Value | None
    type: Value | None


class Following(ABC):
    """One program that is followed: its variables are in scopes, what it sends goes into `seen`."""

    def __init__(self, seen: Seen, mentioned: frozenset[str]) -> None:
        self.seen = seen
        self.top = Scope()  # the program's own variables
        self.line = 0
        self.steps = 0
        self.depth = 0
        self.nesting = 0
        self.mentioned = mentioned  # every name that is read anywhere in it
        self.stored: dict[str, int] = {}  # how often each name is given a value, as far as that can be told
        self.defaults: dict[str, Value] = {}  # what a library is told to take where it is given nothing else
        self.arguments: list[Argument | None] = []  # of its command line; None for what isn't known of one
        self.running: list[ast.AST] = []
        self.entering: ast.expr | None = None  # a call whose generator or coroutine is gone through at once
        self.at_once = False  # what is called next is begun before anything else is done
        self.frames: list[tuple[ast.AST, dict[str, Value], Touched]] = []  # what runs, what it was given, what changed
        self.handed: set[tuple[object, ...]] = set()  # functions of which is known what they change at any time
        self.ended = False  # what is followed now is followed again at the end
        self.later: list[Callable[[], object]] = []  # what goes on, or begins, at a time that isn't known
        self.followed: set[ast.AST] = set()
        self.objects = Objects()
        self.changed: set[tuple[ast.ClassDef, str]] = set()  # attributes of classes that are given another value
        self._members: dict[Class, dict[str, Value] | None] = {}
        self._lines: dict[Class, list[Class]] = {}
        self._implicit: dict[Class, list[Function]] = {}
        self.loose: list[Function] = []  # functions that were handed on, which anybody may call
        self.unmade: list[Function] = []  # methods that are called without their names, of whichever object

    def put(self, scope: Scope, name: str, value: Value | None) -> None:
        """A name in a scope is given a value."""
        self.objects.put(scope.given(name), name, value)

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
    def assign_back(self, owner: ast.expr, value: Value, scope: Scope, old: Value | None = None) -> None:
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
    def entered(self, manager: Value, at_once: bool = False) -> Value:
        """What `with manager as …` gives; `at_once`: it is waited for, as `async with` does."""

    @abstractmethod
    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, at: Scope, scope: Scope) -> Function:
        """A function that is defined `at` a place, in a scope."""

    @abstractmethod
    def handed_on(self, args: Iterable[Value], given: Fields) -> None:
        """A function given to somebody who isn't followed may be called by them."""

    @abstractmethod
    def given_away(self, values: Sequence[Value]) -> None:
        """Somebody who isn't followed has these, and may call what they have."""

    @abstractmethod
    def assigned_to(self, made: Made, name: str, value: Value) -> None:
        """`made.name = value`."""

    @abstractmethod
    def stays(self, function: Function, given: Sequence[Value]) -> bool:
        """Whether nothing that a generator reads can be another by the time that its items are asked for."""

    @abstractmethod
    def members(self, made_of: Class) -> dict[str, Value] | None:
        """The members of an enumeration, by their names; None for another class."""

    @abstractmethod
    def attribute(self, owner: Value, name: str) -> Value:
        """`owner.name`."""

    def shared(self, value: Value) -> Value:
        """What something imported holds that the program may change: `sys.argv`."""
        return self.top.attributes.get(ARGUMENTS, value) if value == Named(ARGUMENTS) else value

    def leave(self) -> NoReturn:
        """The program ends here, unless somebody catches that."""
        self.seen.spend(self.objects.end("function"))
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
        with contextlib.suppress(Left):
            made.append(way())
        changes = self.objects.taken_back(mark)
        if again:
            changes = dict.fromkeys(changes, UNKNOWN)
        self.seen.spend(self.objects.meet([{}, changes]) if made else 0)
        return made

    def let_go(self, values: Iterable[Value], inner: bool = False) -> None:
        """Somebody who isn't followed has these, or what is `inner` of them, and may change it at any time. What sends
        requests stays what it is: of something unknown none would be told."""
        waiting = [one for value in values for one in choices(value)]
        waiting = [one for each in waiting for one in contents(each)] if inner else waiting
        self.seen.spend(len(waiting) // 8)
        done = set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) in done or not isinstance(one, Made | Listed | Fields | Stream):
                continue
            done.add(id(one))
            waiting += contents(one)
            if isinstance(one, Made):
                self.objects.loosen([(one, name) for name in one.attributes if not name.startswith("\0")])
            left = _loosened(one)
            self.seen.spend(1 if left is one else 1 + self.objects.replaced(one, left))

    def beside(self, way: Callable[[], object]) -> None:
        """Follow what runs beside the rest of the program: when it does isn't known, and so isn't what it changes."""
        if not self.ended:
            self.later.append(way)
        mark, ended = self.objects.mark(), self.ended
        self.ended = True  # what begins in it is followed again with it
        with contextlib.suppress(Left):
            way()
        self.ended = ended
        changes = self.objects.taken_back(mark)
        self.seen.spend(len(changes))
        self.objects.loosen(changes)

    def note(self, what: str) -> None:
        self.seen.note(f"Line {self.line}: {what}.")

    def step(self) -> None:
        self.seen.spend(1)
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Enough


def _loosened(value: Value) -> Value:
    """What is known of a list, a mapping or an object that others may change."""
    if not sends(value):
        return UNKNOWN
    match value:
        case Listed(items=items):  # in whatever order, and how many of each
            found = joined(filter(sends, items))
            return value if found == UNKNOWN else Stream(found)
        case Fields(items=pairs) if not all(sends(one) for _, one in pairs):
            return replace(value, items=tuple((name, one if sends(one) else UNKNOWN) for name, one in pairs))
    return value
