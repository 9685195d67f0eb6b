"""Discovery schemas as ours, and which patterns of strangers are kept."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.importing.google_schemas import bounded, converted, searched
from mapper.importing.import_report import BadPart
from mapper.json_schema import problem
from tests.support.pace import pace

NAMES: dict[str, Any] = {"Thing": {}, "Other": {}}

GOOD: list[tuple[Any, Any]] = [
    ({"type": "string"}, {"type": "string"}),
    ({"type": "any"}, {}),
    ({}, {}),
    ({"$ref": "Thing", "description": "A [link](http://x)."}, {"$ref": "#/$defs/Thing", "description": "A link."}),
    ({"type": "string", "format": "int64"}, {"type": ["string", "integer"], "format": "int64"}),
    ({"type": "integer", "minimum": "1", "maximum": "5"}, {"type": "integer", "minimum": 1, "maximum": 5}),
    ({"type": "integer", "minimum": "x", "maximum": "9" * 40}, {"type": "integer"}),
    ({"type": "boolean", "default": "true"}, {"type": "boolean", "default": True}),
    ({"type": "string", "default": "me", "required": True}, {"type": "string", "default": "me"}),
    ({"type": "string", "enum": ["a", "b", "a"], "enumDescriptions": ["x"]}, {"type": "string", "enum": ["a", "b"]}),
    ({"type": "integer", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
    ({"type": "string", "repeated": True, "description": "D."},
     {"type": "array", "items": {"type": "string"}, "description": "D."}),
    ({"type": "array", "items": {"$ref": "Other"}}, {"type": "array", "items": {"$ref": "#/$defs/Other"}}),
    ({"type": "object", "properties": {"a": {"type": "string", "readOnly": True}}},
     {"type": "object", "properties": {"a": {"type": "string", "readOnly": True}}, "additionalProperties": False}),
    ({"type": "object", "additionalProperties": {"type": "string"}},
     {"type": "object", "additionalProperties": {"type": "string"}}),
    ({"type": "object"}, {"type": "object"}),
    ({"type": "string", "description": "a\0b\x1b[31m\n\nc"}, {"type": "string", "description": "a b [31m c"}),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "made"), GOOD)
def test_good(given_: Any, made: Any) -> None:
    assert converted(given_, NAMES, ()) == made
    assert problem(made, defs=NAMES) == ""


BAD: list[tuple[Any, str]] = [
    ([], "must be an object"),
    ("x", "must be an object"),
    ({"type": "strin"}, "isn't a type"),
    ({"type": ["string"]}, "isn't a type"),
    ({"$ref": "Nothing"}, "isn't a schema of this document"),
    ({"$ref": 3}, "isn't a schema of this document"),
    ({"type": "string", "enum": []}, "list of texts"),
    ({"type": "string", "enum": [1]}, "list of texts"),
    ({"type": "string", "enum": [str(n) for n in range(3000)]}, "3000 choices"),
    ({"type": "integer", "enum": ["one"]}, "whole numbers"),
    ({"type": "object", "properties": []}, "must be an object"),
    ({"type": "object", "properties": {"a": 1}}, "must be an object"),
    ({"type": "array", "items": []}, "must be an object"),
]


@pytest.mark.parametrize(("given_", "says"), BAD)
def test_bad(given_: Any, says: str) -> None:
    with pytest.raises(BadPart) as caught:
        converted(given_, NAMES, ("here",))
    assert says in caught.value.what and caught.value.keys[0] == "here"


def test_a_deep_schema_ends() -> None:
    deep: Any = {"type": "string"}
    for _ in range(400):
        deep = {"type": "array", "items": deep}
    with pytest.raises(BadPart, match="deeper"):
        converted(deep, NAMES, ())


KEPT = [
    (r"^projects/[^/]+/locations/[^/]+$", r"^projects/[^/]+/locations/[^/]+$"),
    (r"^operations/.*$", r"^operations/.*$"),
    (r"^[^/]+/[^/]+$", r"^[^/]+/[^/]+$"),
    (r"\d+", r"^(?:\d+)$"),
    (r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", r"^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"),
    (r"(\d\d\d\d)-(\d\d)|today", r"^(?:(\d\d\d\d)-(\d\d)|today)$"),
]
DROPPED = [
    r"(a+)+$",
    r"(.+[<,>].+,)*(.+[<,>].+)",
    r"(?:[a-z]{1,60})*",
    r"([a-z]+){2,40}",
    r".*.*.*x",
    r"(a)\1",
    r"(?=a+)b",
    r"(?i)abc",
    "(",
    "a" * 400,
    "[",
    "(?P<x>a)(?(x)b|c)",
]


@pytest.mark.parametrize("pattern", ["a{0,20}a{0,20}a{0,20}b", "[^b]{0,60}[^b]{0,60}b"])
def test_a_pattern_that_may_begin_anywhere_has_few_ways(pattern: str) -> None:
    """At each of a text's 200,000 letters it would try all of them."""
    assert searched(pattern) == "" and searched(f"^{pattern}") == f"^{pattern}"
    assert searched("[0-9]{1,3}-[a-z]{1,63}") != ""


@pytest.mark.parametrize(("pattern", "made"), KEPT)
def test_quick_patterns_are_kept(pattern: str, made: str) -> None:
    assert bounded(pattern) == made


@pytest.mark.parametrize("pattern", DROPPED)
def test_patterns_that_may_be_slow_are_dropped(pattern: str) -> None:
    assert bounded(pattern) == ""


@given(st.text(alphabet="ab()[]{}+*?|^$.\\/-,0123", max_size=24))
def test_what_is_kept_is_quick(pattern: str) -> None:
    made = bounded(pattern)
    if made:
        began = time.process_time()
        for text in ("a" * 3000, "ab" * 1500, "a" * 2999 + "!", "a/" * 1500):
            re.search(made, text)
        assert time.process_time() - began < 400 * pace()
