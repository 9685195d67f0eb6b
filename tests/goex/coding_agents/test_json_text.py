"""Edits of a JSON text keep everything else, and leave nothing when they are taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.coding_agents import json_text
from policies.errors import InvalidInput

COMMENTED = """// mine
{
    "a": [1, 2, // two
    ],
    /* b */ "b": {"c": true},
}
"""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=4)


@given(objects, values, st.sampled_from([None, 2, "\t"]))
def test_put_then_remove_is_the_same_text(before: dict[str, Any], value: Any, indent: int | str | None) -> None:
    text = json.dumps(before, indent=indent, ensure_ascii=False) + "\n"
    after = json_text.put(text, ("new entry", "x"), value)
    assert json_text.read(after) == {**before, "new entry": {"x": value}}
    assert json_text.put(after, ("new entry", "x"), value) == after
    back = json_text.remove(after, ("new entry", "x"))
    assert json_text.read(back) == before
    if before:
        assert back == text or indent is None


@given(objects, st.lists(values, min_size=1, max_size=3), values)
def test_append_then_remove_keeps_the_items(before: dict[str, Any], items: list[Any], value: Any) -> None:
    text = json.dumps({**before, "list of": items}, indent=2)
    after = json_text.append(text, ("list of",), value)
    assert json_text.read(after) == {**before, "list of": [*items, value]}
    assert json_text.read(json_text.remove(after, ("list of", len(items)))) == {**before, "list of": items}


def test_comments_stay() -> None:
    after = json_text.append(json_text.put(COMMENTED, ("b", "d"), {"e": 1}), ("new", "list"), "x")
    assert json_text.read(after) == {"a": [1, 2], "b": {"c": True, "d": {"e": 1}}, "new": {"list": ["x"]}}
    assert "// mine" in after and "// two" in after and "/* b */" in after
    assert json_text.remove(json_text.remove(after, ("new", "list", 0)), ("b", "d")) == COMMENTED


@pytest.mark.parametrize(
    "text", ["{", "[1", '{"a": 1 "b": 2}', '{"a": 1, "a": 2}', "{'a': 1}", "{} x", "nul", "[" * 99]
)
def test_what_isnt_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="isn't JSON at line 1"):
        json_text.put(text, ("x",), 1)
