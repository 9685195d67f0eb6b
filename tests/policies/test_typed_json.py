"""Types as JSON and back: nothing unknown, nothing missing, nothing converted; and what a person is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actions import Action
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import JsonValue, canonical
from policies.typed_json import NEWER, SPARSE, UNWRITTEN, from_json, to_json


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Pair(NamedTuple):
    at: Literal["here", "there"]
    name: str


PAIR = Pair("here", "x")


@dataclass(frozen=True)
class Text:
    text: str

    @classmethod
    def parse(cls, text: str) -> Text:
        if text.startswith("!"):
            raise InvalidInput("No text begins with it.")
        return cls(text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    name: str
    level: Level = Level.LOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    text: str = ""
    number: int = 0
    length: float = 1.0
    flag: bool = False
    any: JsonValue = None
    colour: Colour = Colour.RED
    word: Literal["a", "b"] = "a"
    maybe: int | None = None
    inner: Inner = field(default_factory=lambda: Inner(name="x"))
    several: tuple[Inner, ...] = ()
    named: Mapping[str, Inner] = field(default_factory=dict)
    either: tuple[str | Inner, ...] = ()
    pair: Pair = PAIR
    two: tuple[str, str] = ("a", "b")
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, Mapping[str, Any]] | None = None
    data: bytes = b""
    at: datetime | None = None
    parsed: Text = Text("")
    turned: Annotated[str, int, int, str] = "0"
    newer: int = field(default=7, metadata=NEWER)
    sparse: tuple[str, ...] = field(default=(), metadata=SPARSE)
    true: bool = field(default=True, metadata=SPARSE)
    names: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)
    own: str = field(default="", metadata=UNWRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    x: int
    kind: Literal["first"] = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    y: str = ""
    kind: Literal["second"] = "second"


WRITTEN: dict[str, Any] = to_json(Whole())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
INNERS = st.builds(Inner, name=st.text(), level=st.sampled_from(Level))
WHOLES = st.builds(
    Whole,
    text=st.text(),
    number=st.integers(),
    length=st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    flag=st.booleans(),
    any=VALUES,
    word=st.sampled_from(["a", "b"]),
    maybe=st.none() | st.integers(),
    inner=INNERS,
    several=st.lists(INNERS, max_size=3).map(tuple),
    named=st.dictionaries(st.text(), INNERS, max_size=3),
    either=st.lists(st.text() | INNERS, max_size=3).map(tuple),
    pair=st.builds(Pair, st.sampled_from(["here", "there"]), st.text()),
    two=st.tuples(st.text(), st.text()),
    texts=st.dictionaries(st.text(), st.lists(st.text(), max_size=3).map(tuple), max_size=3),
    bounds=st.none() | st.dictionaries(st.text(), st.dictionaries(st.text(), VALUES, max_size=2), max_size=2),
    data=st.binary(),
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
    parsed=st.text().filter(lambda text: not text.startswith("!")).map(Text),
    turned=st.integers().map(str),
    newer=st.integers(),
    sparse=st.lists(st.text(), max_size=2).map(tuple),
    true=st.booleans(),
    names=st.dictionaries(st.text(), st.text(), max_size=2),
)


@given(WHOLES)
def test_what_is_written_is_read_as_it_was(whole: Whole) -> None:
    made = to_json(whole)
    assert from_json(Whole, made, "It") == whole
    again = from_json(Whole, json.loads(json.dumps(made)), "It")
    assert again == whole and json.dumps(to_json(again)) == json.dumps(made)


def test_what_is_sparse_is_left_out_and_what_is_unwritten_is_never_there() -> None:
    assert not {"sparse", "true", "names", "own"} & WRITTEN.keys() and WRITTEN["newer"] == 7
    full = to_json(Whole(sparse=("a",), true=False, names={"a": "b"}, own="mine"))
    assert (full["sparse"], full["true"], full["names"], "own" in full) == (["a"], False, {"a": "b"}, False)
    assert from_json(Whole, {key: value for key, value in WRITTEN.items() if key != "newer"}, "It") == Whole()


def test_a_number_stays_the_number_that_it_was() -> None:
    assert json.dumps(to_json(from_json(Whole, {**WRITTEN, "length": 60}, "It"))["length"]) == "60"


@pytest.mark.parametrize("name", sorted(WRITTEN.keys() - {"newer"}))
def test_what_is_missing_is_an_error(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^It can't be read: Object missing required field `{name}`"):
        from_json(Whole, {key: value for key, value in WRITTEN.items() if key != name}, "It")


INNER = {"name": "x", "level": 1}


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"text": 1}, "Expected `str`, got `int` - at `$.text`"),
        ({"text": None}, "Expected `str`"),
        ({"text": b"a"}, "Expected `str`"),
        ({"number": True}, "Expected `int`, got `bool`"),
        ({"number": "1"}, "Expected `int`, got `str`"),
        ({"number": 1.0}, "Expected `int`, got `float`"),
        ({"length": True}, "got `bool`"),
        ({"length": "1"}, "got `str`"),
        ({"flag": 1}, "Expected `bool`, got `int`"),
        ({"flag": "true"}, "Expected `bool`, got `str`"),
        ({"colour": "blue"}, "Invalid enum value 'blue'"),
        ({"word": "c"}, "Invalid enum value 'c'"),
        ({"maybe": "1"}, "Expected `int | null`"),
        ({"inner": None}, "Expected `object`"),
        ({"inner": {**INNER, "level": True}}, "Expected `int`, got `bool`"),
        ({"inner": {**INNER, "level": 3}}, "Invalid enum value 3"),
        ({"inner": {**INNER, "more": 1}}, "unknown field `more` - at `$.inner`"),
        ({"several": [INNER, {"name": "x"}]}, "missing required field `level` - at `$.several[1]`"),
        ({"several": INNER}, "Expected `array`"),
        ({"several": "ab"}, "Expected `array`"),
        ({"named": {"a": []}}, "Expected `object`"),
        ({"named": {1: INNER}}, "Expected `str`"),
        ({"either": [1]}, "Expected `str | object`"),
        ({"either": "ab"}, "Expected `array`"),
        ({"pair": ["here"]}, "length 2"),
        ({"pair": ["where", "x"]}, "Invalid enum value 'where'"),
        ({"pair": {"at": "here", "name": "x"}}, "Expected `array`"),
        ({"two": ["a", "b", "c"]}, "length 2"),
        ({"two": "ab"}, "Expected `array`"),
        ({"texts": {"a": "bc"}}, "Expected `array`"),
        ({"bounds": {"a": 1}}, "Expected `object`"),
        ({"data": "0g"}, "ValueError"),
        ({"data": 5}, "Expected `str`"),
        ({"at": "yesterday"}, "ValueError"),
        ({"at": 5}, "Expected `str | null`"),
        ({"parsed": 5}, "Expected `str`"),
        ({"turned": "5"}, "Expected `int`"),
        ({"newer": None}, "Expected `int`"),
        ({"own": "mine"}, "unknown field `own`"),
        ({"other": 1}, "unknown field `other`"),
    ],
)
def test_nothing_is_converted_or_passed_over(changed: Any, where: str) -> None:
    with pytest.raises(InvalidInput, match=r"^It can't be read: ") as refused:
        from_json(Whole, {**WRITTEN, **changed}, "It")
    assert where in refused.value.message


def test_an_error_of_a_class_that_parses_is_its_own() -> None:
    with pytest.raises(InvalidInput, match=r"^No text begins with it\.$"):
        from_json(Whole, {**WRITTEN, "parsed": "!"}, "It")


def test_a_kind_tells_which_it_is() -> None:
    either: Any = First | Second
    for one in (First(x=1), Second()):
        assert from_json(either, to_json(one), "It") == one
    for wrong in (
        {"kind": "third"},
        {"kind": 1},
        {"kind": ["first"]},
        {"x": 1},
        {"kind": "second", "x": 1},
        {},
        [],
        None,
    ):
        with pytest.raises(InvalidInput):
            from_json(either, wrong, "It")
    with pytest.raises(InvalidInput):
        from_json(First, {"kind": "second", "x": 1}, "It")


def test_a_message_is_short_however_long_what_was_read_is() -> None:
    for value in ({**WRITTEN, "word": "c" * 10_000}, {**WRITTEN, "x" * 10_000: 1}, {**WRITTEN, "at": "c" * 10_000}):
        with pytest.raises(InvalidInput) as refused:
            from_json(Whole, value, "It")
        assert len(refused.value.message) < 300


def test_what_has_no_json_is_refused_when_its_type_is_first_used() -> None:
    @dataclass
    class Odd:
        found: set[str]

    for use in (lambda: to_json(Odd({"a"})), lambda: from_json(Odd, {"found": ["a"]}, "It")):
        with pytest.raises((TypeError, InvalidInput)):
            use()


@given(VALUES)
def test_anything_else_is_refused_in_words(value: Any) -> None:
    for kind in (Whole, Action, tuple[Inner, ...]):
        try:
            made: Any = from_json(kind, value, "It")
        except GoexError as error:
            assert error.message.startswith("It can't be read: ")
        else:
            assert kind == tuple[Inner, ...] and canonical([to_json(one) for one in made]) == canonical(value)


def test_what_is_nested_very_deep_is_passed_on_unread() -> None:
    """`policies.jsonvalue` bounds depth, before and after."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert to_json(from_json(Whole, {**WRITTEN, "any": deep}, "It"))["any"] is deep
    with pytest.raises(InvalidInput, match="deeper"):
        canonical(to_json(Whole(any=deep)))
    with pytest.raises(InvalidInput):
        from_json(Whole, {**WRITTEN, "several": deep}, "It")
    while deep:
        deep = deep.pop()
