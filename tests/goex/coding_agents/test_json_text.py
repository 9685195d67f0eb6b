"""Edits of a JSON text keep everything else, and leave nothing when they are taken back."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
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


GAPS = st.sampled_from(["", "", " ", "\n  ", "\r\n", "// a, } comment\n", " // b\r\n\t", "/* c ] */", "/* d\n*/ //\n"])


@st.composite
def texts(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> str:
    """A value as a person writes it: with comments and blanks anywhere, and commas at the end."""

    def gap() -> str:
        return str(draw(GAPS))

    def written(value: Any) -> str:
        if isinstance(value, dict):
            parts = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{written(one)}{gap()}" for key, one in value.items()]
        elif isinstance(value, list):
            parts = [f"{gap()}{written(one)}{gap()}" for one in value]
        else:
            return json.dumps(value)
        end = f",{gap()}" if parts and draw(st.booleans()) else ""
        inside = ",".join(parts) + end if parts else gap()
        return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"

    return gap() + written(value) + gap()


@given(st.data(), objects.filter(bool))
def test_whatever_is_removed_nothing_else_is(data: st.DataObject, value: dict[str, Any]) -> None:
    text = data.draw(texts(value))
    assert json_text.read(text) == value
    key = data.draw(st.sampled_from(list(value)))
    path: tuple[str | int, ...] = (key,)
    inner = value[key]
    if isinstance(inner, dict) and inner:
        path = (key, data.draw(st.sampled_from(list(inner))))
    elif isinstance(inner, list) and inner:
        path = (key, data.draw(st.integers(0, len(inner) - 1)))
    assert json_text.read(json_text.remove(text, path)) in (without(value, path), without(value, path[:1]))
    added = json_text.put(text, ("put by us", "x"), 1)
    assert json_text.read(json_text.remove(added, ("put by us", "x"))) == value


def without(value: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    made = copy.deepcopy(value)
    holder: Any = made
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  // Servers of this project\n  "servers": {}\n}', "{\n  // Servers of this project\n}"),
        ('{"a": 1, // one\n"servers": {}}', '{"a": 1 // one\n}'),
        ('{"a": 1, // one\r\n"servers": {}}', '{"a": 1 // one\r\n}'),
        ('{"a": 1, /* one */ "servers": {}}', '{"a": 1 /* one */}'),
    ],
)
def test_a_line_comment_still_ends(text: str, expected: str) -> None:
    assert json_text.remove(text, ("servers",)) == expected


def test_what_would_break_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_without", lambda text, holder, node: text[: node.start])
    with pytest.raises(InvalidInput, match="removed"):
        json_text.remove('{"a": 1, "b": 2}', ("b",))
    monkeypatch.setattr(json_text, "_without", lambda text, holder, node: "{}")
    with pytest.raises(InvalidInput, match="removed"):
        json_text.remove('{"a": 1, "b": 2}', ("b",))


@pytest.mark.parametrize(
    "text", ["{", "[1", '{"a": 1 "b": 2}', '{"a": 1, "a": 2}', "{'a': 1}", "{} x", "nul", "[" * 99]
)
def test_what_isnt_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="isn't JSON at line 1"):
        json_text.put(text, ("x",), 1)
