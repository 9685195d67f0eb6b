"""What is known of a value while a program is read: all of it, a part, one of a few, or nothing.

Values are compared by what they hold, and never changed: a change of a variable gives it another value. Objects that
the program itself made (`Made`) are the exception, since two names can stand for one.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

MOST = 24  # values that one place may have before it counts as unknown
MOST_TEXT = 20_000  # characters of one text
HEAVIEST = 3_000  # values within one value, counted as often as they are in it, and pieces of their texts
PIECE = 250  # characters of a text that weigh as much as a value
# Stands, in a program within a program, for what is put into it while it runs. It is a letter, and so a name in any
# language where it stands alone.
PUT_IN = "\ua66e"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing is known. `hint` says, for a message, where it comes from. `unset`: it is a variable of the environment
    that a program isn't given, for which it has what it falls back to."""

    hint: str = ""
    unset: bool = False


class Member(str):
    """A member of an enumeration that is a text, too: written into another text it is something else."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Lit:
    """A plain value: text, number, bool, None or bytes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Form:
    """A form's or query's text, made from named values."""

    fields: Fields
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + self.fields.weight)


@dataclass(frozen=True, slots=True)
class Json:
    """The JSON text of a value."""

    value: Value
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + weight(self.value))


@dataclass(frozen=True, slots=True)
class Text:
    """A text of which parts are known: a part that isn't is None, and a `Form` stands for its own text."""

    parts: tuple[str | Form | None, ...]
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        characters = sum(len(part) for part in self.parts if isinstance(part, str))
        forms = sum(part.weight for part in self.parts if isinstance(part, Form))
        object.__setattr__(self, "weight", len(self.parts) + forms + characters // PIECE)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list or tuple. `more`: further items may be in it."""

    items: tuple[Value, ...]
    more: bool = False
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(map(weight, self.items)))


@dataclass(frozen=True, slots=True)
class Stream:
    """Any number of items, each like `of`."""

    of: Value
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + weight(self.of))


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping by texts. `more`: further names may be in it."""

    items: tuple[tuple[str, Value], ...] = ()
    more: bool = False
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(weight(value) for _, value in self.items))

    @classmethod
    def of(cls, items: Mapping[str, Value], more: bool = False) -> Fields:
        return cls(tuple(items.items()), more)

    def get(self, name: str) -> Value | None:
        return next((value for key, value in self.items if key == name), None)

    def merged(self, other: Fields) -> Fields:
        return Fields.of({**dict(self.items), **dict(other.items)}, self.more or other.more)

    def without(self, *names: str) -> Fields:
        return Fields(tuple(item for item in self.items if item[0] not in names), self.more)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few values."""

    values: tuple[Value, ...]
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(map(weight, self.values)))


@dataclass(frozen=True, slots=True)
class Named:
    """Something imported, by its full name: `requests.post`."""

    name: str


@dataclass(frozen=True, slots=True)
class Thing:
    """An object of a library that is known: its kind, and what is known of it."""

    kind: str
    facts: tuple[tuple[str, Any], ...] = ()
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(_weight_of_fact(value) for _, value in self.facts))

    def __getitem__(self, name: str) -> Any:
        return next((value for key, value in self.facts if key == name), None)

    def but(self, **facts: Any) -> Thing:
        return Thing(self.kind, tuple({**dict(self.facts), **facts}.items()))


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function that the program defines. `bound` are values for its first parameters, `defaults` those that were
    given where it was defined."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Any
    bound: tuple[Value, ...] = ()
    defaults: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class that the program defines: `body` are the variables of its body, `methods` the functions in it."""

    node: ast.ClassDef
    scope: Any
    body: Any
    bases: tuple[Value, ...] = ()
    methods: dict[str, Function] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Made:
    """An object of a class that the program defines."""

    of: Class
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that isn't the program's own: `text.format`, `client.chat_postMessage`."""

    of: Value
    name: str
    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + weight(self.of))


Value = (
    Unknown
    | Lit
    | Form
    | Json
    | Text
    | Listed
    | Stream
    | Fields
    | OneOf
    | Named
    | Thing
    | Function
    | Class
    | Made
    | Method
)

UNKNOWN = Unknown()
ANSWER = Unknown("an answer")  # what a service answered, or a part of it: no object that the program has made


def weight(value: Value) -> int:
    """How much there is to a value."""
    if isinstance(value, Lit):
        return 1 + len(value.value) // PIECE if isinstance(value.value, str | bytes) else 1
    if isinstance(value, Function):
        return 1 + len(value.bound)
    return 1 if isinstance(value, Unknown | Named | Class | Made) else value.weight


def _weight_of_fact(fact: Any) -> int:
    if isinstance(fact, tuple):
        return sum(map(_weight_of_fact, fact))
    return weight(fact) if isinstance(fact, Value) else 0


def bounded(value: Value) -> Value:
    """The value, or that nothing is known where it is too large to work with."""
    return value if weight(value) <= HEAVIEST else UNKNOWN


def text(parts: Iterable[str | Form | None]) -> Value:
    """The text that these parts make, in its simplest form. No more parts are asked for than one text may have."""
    made: list[str | Form | None] = []
    whole: list[str] = []  # what follows the last of them
    length = 0
    for part in parts:
        if isinstance(part, str):
            length += len(part)
            if length > MOST_TEXT:
                return UNKNOWN
            if part:
                whole.append(part)
            continue
        if whole:
            made.append("".join(whole))
            whole.clear()
        if part is not None or not made or made[-1] is not None:
            made.append(part)
            if len(made) > HEAVIEST:
                return UNKNOWN
    if whole:
        made.append("".join(whole))
    if not made:
        return Lit("")
    if len(made) == 1:
        if isinstance(made[0], str):
            return Lit(made[0])
        if isinstance(made[0], Form):
            return made[0]
    return Text(tuple(made))


def parts_of(value: Value) -> tuple[str | Form | None, ...]:
    """The parts of a value written as text."""
    match value:
        case Lit(value=Member()):
            return (None,)
        case Lit(value=str() as known):
            return (known if is_whole(known) else None,)
        case Lit(value=bool() | int() | float() | None as known):
            return (str(known),)
        case Lit(value=bytes() as known):
            try:
                return (known.decode("utf-8"),)
            except UnicodeDecodeError:
                return (None,)
        case Text(parts=parts):
            return parts
        case Form():
            return (value,)
    return (None,)


def of_source(written: str) -> Value:
    """A text that is written in a program: all of it, but for what is put in while it runs."""
    if PUT_IN not in written:
        return Lit(written)
    return text(part for at, piece in enumerate(written.split(PUT_IN)) for part in ([None] * bool(at) + [piece]))


def is_whole(known: str) -> bool:
    """Whether no character of a text is half of one."""
    try:
        return known.isascii() or bool(known.encode())
    except UnicodeEncodeError:
        return False


def joined(values: Iterable[Value]) -> Value:
    """What a place holds that may hold any of these."""
    found: list[Value] = []
    unknown: list[Unknown] = []
    for value in values:
        for each in value.values if isinstance(value, OneOf) else (value,):
            if each == ANSWER:
                unknown.append(ANSWER)
                continue
            if isinstance(each, Unknown):
                return each
            if len(found) > MOST and not isinstance(each, Fields):
                return UNKNOWN
            # Beyond MOST it doesn't matter which of them are the same: comparing takes the square of their number.
            if len(found) > MOST or not any(same(each, other) for other in found):
                found.append(each)
        if len(found) > MOST and not isinstance(found[0], Fields):
            return UNKNOWN
    if unknown:
        return ANSWER if all(isinstance(one, Lit | Text) for one in found) else UNKNOWN
    mappings = [one for one in found if isinstance(one, Fields)]
    if len(found) > MOST:
        return _common(mappings) if len(mappings) == len(found) else UNKNOWN
    if not found:
        return UNKNOWN
    return found[0] if len(found) == 1 else OneOf(tuple(found))


def _common(found: list[Fields]) -> Fields:
    """What several mappings share; others may be there."""
    kept = dict(found[0].items)
    for other in found[1:]:
        if not kept:
            break
        there = dict(other.items)
        kept = {name: value for name, value in kept.items() if name in there and same(value, there[name])}
    return Fields.of(kept, True)


def same(one: Value, other: Value) -> bool:
    """Whether two values are one; True and 1 are two."""
    if one is other:
        return True
    try:
        if isinstance(one, Lit) and isinstance(other, Lit) and type(one.value) is type(other.value):
            texts = isinstance(one.value, str | bytes)
            return one.value == other.value if texts else repr(one.value) == repr(other.value)
        return not isinstance(one, Lit) and one == other
    except RecursionError:
        return False


def choices(value: Value) -> tuple[Value, ...]:
    """What a value may be, one by one."""
    return value.values if isinstance(value, OneOf) else (value,)


def each(*values: Value) -> Iterator[tuple[Value, ...]]:
    """Every combination of what these may be; where there are too many, those that make too many are unknown."""
    counts = 1
    listed: list[tuple[Value, ...]] = []
    for value in values:
        found = choices(value)
        counts *= len(found)
        listed.append(found if counts <= MOST else (UNKNOWN,))
        counts = counts if counts <= MOST else counts // len(found)
    yield from product(*listed)


def plain(value: Value) -> tuple[bool, Any]:
    """Whether all of a value is known, and then the value as JSON has it (tuples are lists). What JSON can't hold
    (infinity, half a character) isn't known: libraries send it in ways of their own, or not at all."""
    match value:
        case Lit(value=float() as known) if not math.isfinite(known):
            return False, None
        case Lit(value=str() as known) if not is_whole(known):
            return False, None
        case Lit(value=bytes() as known):
            try:
                return True, known.decode("utf-8")
            except UnicodeDecodeError:
                return False, None
        case Lit(value=Member() as known):
            return True, str(known)
        case Lit(value=known):
            return True, known
        case Listed(items=items, more=False):
            found = [plain(item) for item in items]
            return all(ok for ok, _ in found), [item for _, item in found]
        case Fields(items=pairs, more=False):
            pairs_found = {key: plain(item) for key, item in pairs}
            return all(ok for ok, _ in pairs_found.values()), {key: item for key, (_, item) in pairs_found.items()}
    return False, None


def of_json(known: Any) -> Value:
    """A JSON value as one of ours."""
    if isinstance(known, dict):
        names = [key for key in map(str, known) if is_whole(key)]
        return Fields.of({key: of_json(known[key]) for key in names}, more=len(names) < len(known))
    if isinstance(known, list | tuple):
        return Listed(tuple(of_json(item) for item in known))
    return Lit(known)


def sends(value: Value, depth: int = 3) -> bool:
    """Whether it is, or holds, what may send requests when it is called."""
    if isinstance(value, OneOf):
        return any(sends(one, depth) for one in choices(value))
    if isinstance(value, Thing | Function | Class | Named | Method | Made):
        return True
    return depth > 0 and any(sends(one, depth - 1) for one in contents(value))


def contents(value: Value) -> list[Value]:
    """What is in a list, a mapping or an object."""
    match value:
        case Made(attributes=attributes):
            found = list(attributes.values())
        case Listed(items=items):
            found = list(items)
        case Fields(items=pairs):
            found = [one for _, one in pairs]
        case Stream(of=of):
            found = [of]
        case _:
            found = []
    return [one for each in found for one in choices(each)]
