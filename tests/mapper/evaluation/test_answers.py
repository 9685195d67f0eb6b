"""One call against one answer: tables of our own for each rule of types, values and names."""

from __future__ import annotations

from typing import Any

import pytest

from mapper.evaluation.bfcl import Question, check
from mapper.evaluation.expected_calls import mismatch, normalised
from mapper.evaluation.outputs import FunctionCall


def verdict(value: Any, possible: list[Any], **schema: Any) -> str:
    function = {"name": "a.f", "parameters": {"properties": {"x": schema}, "required": []}}
    return mismatch(FunctionCall("a.f", {"x": value}), function, {"x": possible}).partition(":")[0]


INTS = {"type": "array", "items": {"type": "integer"}}
FLOATS = {"type": "array", "items": {"type": "float"}}
PAIR = {"type": "tuple", "items": {"type": "float"}}
TEXTS = {"type": "array", "items": {"type": "string"}}
GRID = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
BOX = {"type": "dict", "properties": {"w": {"type": "integer"}, "unit": {"type": "string"}}}
BOXES = {"type": "array", "items": BOX}


@pytest.mark.parametrize(
    ("schema", "possible", "value"),
    [
        ({"type": "integer"}, [5], 5),
        ({"type": "integer"}, [4, 5], 5),
        ({"type": "float"}, [5.0], 5),
        ({"type": "float"}, [5], 5.0),
        ({"type": "number"}, [0.5], 0.5),
        ({"type": "boolean"}, [True], True),
        ({"type": "string"}, ["New York, NY"], "new york ny"),
        ({"type": "string"}, ["it's"], 'It"s'),
        ({"type": "string"}, ["x^2 - 3*x"], "x2-3x"),
        ({"type": "string"}, ["", "m"], ""),
        (INTS, [[1, 2]], [1, 2]),
        (FLOATS, [[1.0, 2.5]], [1, 2.5]),
        (TEXTS, [["AAPL"], ["Apple", "MSFT"]], ["apple", "msft"]),
        (PAIR, [[1.0, 2.0]], (1.0, 2.0)),
        (PAIR, [[1.0, 2.0]], [1, 2]),
        (GRID, [[[1], [2]]], [[1], [2]]),
        (BOX, [{"w": [1, 2], "unit": ["m", ""]}], {"w": 2}),
        (BOX, [{"w": [1, 2], "unit": ["m", ""]}], {"unit": "M", "w": 1}),
        (BOX, [{"w": [1]}, {"w": [2]}], {"w": 2}),
        (BOXES, [[{"w": [1]}, {"w": [2]}]], [{"w": 1}, {"w": 2}]),
        ({"type": "dict"}, [{"a": [["x", "y"]]}], {"a": ["X", "y"]}),
        ({"type": "dict"}, [{"a": [{"b": [1]}]}], {"a": {"b": 1}}),
        ({"type": "any"}, ["my_data"], "my_data"),
        (INTS, ["my_data"], "my_data"),  # a variable
        ({"type": "integer"}, ["n"], "n"),
        ({"type": "string"}, [True], True),
        ({}, [(1)], 1),
    ],
)
def test_accepted(schema: dict[str, Any], possible: list[Any], value: Any) -> None:
    assert verdict(value, possible, **schema) == ""


@pytest.mark.parametrize(
    ("schema", "possible", "value", "kind"),
    [
        ({"type": "integer"}, [5], 5.0, "type"),
        ({"type": "integer"}, [1], True, "type"),
        ({"type": "integer"}, [5], "5", "type"),
        ({"type": "integer"}, [5], None, "type"),
        ({"type": "integer"}, [5], 6, "value"),
        ({"type": "float"}, [1.0], True, "type"),
        ({"type": "float"}, [1.0], 1.1, "value"),
        ({"type": "boolean"}, [True], 1, "type"),
        ({"type": "boolean"}, [True], False, "value"),
        ({"type": "string"}, ["5"], 5, "type"),
        ({"type": "string"}, ["York"], "New York", "value"),
        ({"type": "string"}, ["a"], "", "value"),
        ({"type": "string"}, ["a"], "a!", "value"),
        (INTS, [[1, 2]], [2, 1], "value"),
        (INTS, [[1, 2]], [1], "value"),
        (INTS, [[1, 2]], [1, 2, 2], "value"),
        (INTS, [[1, 2]], [1, 2.0], "type"),
        (INTS, [[1, 2]], (1, 2), "type"),
        (INTS, [[1, 2]], "[1, 2]", "type"),
        (FLOATS, [[1.0]], [True], "type"),
        (PAIR, [[1.0, 2.0]], (2.0, 1.0), "value"),
        (GRID, [[[1], [2]]], [[1], (2,)], "type"),
        (GRID, [[[1], [2]]], [[1, 2]], "value"),
        (BOX, [{"w": [1], "unit": ["m"]}], {"w": 1}, "value"),
        (BOX, [{"w": [1]}], {"w": 1, "h": 1}, "value"),
        (BOX, [{"w": [1]}], {"w": 1.0}, "type"),
        (BOX, [{"w": [1]}, {"unit": ["m"]}], {"w": 1, "unit": "m"}, "value"),
        (BOX, [{"w": [1]}], [{"w": 1}], "type"),
        (BOXES, [[{"w": [1]}, {"w": [2]}]], [{"w": 2}, {"w": 1}], "value"),
        (BOXES, [[{"w": [1]}]], {"w": 1}, "type"),
        ({"type": "dict"}, [{"a": [1]}], {"a": True}, "value"),
        ({"type": "any"}, ["my_data"], "other", "value"),
        (INTS, ["my_data"], "My_Data", "value"),  # a variable's name is exact
        (INTS, ["my_data"], ["my_data"], "type"),
        ({"type": "string"}, [True], "True", "value"),
        ({"type": "string"}, [True], 1, "type"),
    ],
)
def test_rejected(schema: dict[str, Any], possible: list[Any], value: Any, kind: str) -> None:
    assert verdict(value, possible, **schema) == f"wrong {kind}"


def test_what_is_compared_of_a_text() -> None:
    assert normalised("April 1, 2024") == normalised("april 1 2024") == normalised("APRIL-1/2024.") == "april12024"
    assert normalised("a:b") != normalised("ab")


FUNCTION = {"name": "a.f", "parameters": {"properties": {"x": {}, "y": {}, "z": {}}, "required": ["x"]}}


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("a.f", {"x": 1}, ""),
        ("a_f", {"x": 1, "y": 2}, ""),
        ("a.f", {}, "missing argument: x"),
        ("a.f", {"y": 2}, "missing argument: x"),
        ("a.f", {"x": 1, "z": 3}, "extra argument: z"),  # declared, but not in the answer
        ("a.f", {"x": 1, "q": 3}, "extra argument: q"),
        ("a.g", {"x": 1}, "wrong function: a.g, not a.f"),
        ("A.f", {"x": 1}, "wrong function: A.f, not a.f"),
        ("b.a.f", {"x": 1}, "wrong function: b.a.f, not a.f"),
    ],
)
def test_names(name: str, arguments: dict[str, Any], reason: str) -> None:
    assert mismatch(FunctionCall(name, arguments), FUNCTION, {"x": [1], "y": [2, ""]}) == reason


def test_an_answer_cant_add_an_argument_that_the_function_hasnt() -> None:
    assert mismatch(FunctionCall("a.f", {"x": 1, "q": 2}), FUNCTION, {"x": [1], "q": [2]}) == "extra argument: q"


def test_an_optional_argument_that_the_answer_wants() -> None:
    assert mismatch(FunctionCall("a.f", {"x": 1}), FUNCTION, {"x": [1], "y": [2]}) == "missing argument: y"


def test_each_expected_call_needs_a_call_of_its_own() -> None:
    """Taken in order, the first expected call would take the only one that the second can have."""
    function = {"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    question = Question({"f": function}, (("f", {"x": [1, 2]}), ("f", {"x": [1]})))
    assert check("f(x=1); f(x=2)", question) == ""
    assert check("f(x=2); f(x=1)", question) == ""
    assert check("f(x=1); f(x=1)", question) == ""
    assert check("f(x=2); f(x=2)", question) == "wrong value: x is 2"
    twice = Question({"f": function}, (("f", {"x": [1]}), ("f", {"x": [1]})))
    assert check("f(x=1); f(x=2)", twice) != ""
