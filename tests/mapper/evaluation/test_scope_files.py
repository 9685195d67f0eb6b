"""The files of the evaluation of scopes: what is wrong with one is said with its line, or the request's id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mapper.evaluation import recorded, request_sets
from policies.errors import InvalidInput

Lines = Callable[..., Path]

GOOD: dict[str, Any] = {
    "id": "a", "prompt": "list my labels", "service": "gmail", "version": "v1", "args": {},
    "acceptable_apis": [["gmail.users.labels.list"]], "min_scopes": [["s1"], ["s2"]],
}  # fmt: skip


def test_a_request_is_read(lines: Lines) -> None:
    readings = [{"reading": "r", "apis": ["x"], "min_scopes": [["s1"]]}, {"apis": ["x"], "min_scopes": [["s2"]]}]
    (one, two) = request_sets.read(
        lines("data", GOOD | {"ambiguous": True, "readings": readings}, {"id": "b", "prompt": "sing", "apis": []})
    )
    assert one.ways == (frozenset({"gmail.users.labels.list"}),)
    assert one.least == (frozenset({"s1"}), frozenset({"s2"}))
    assert one.least_of == ((frozenset({"x"}), (frozenset({"s1"}), frozenset({"s2"}))),)
    assert one.ambiguous and one.answerable
    assert not two.answerable and two.least == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": 7}, "'id'"),
        ({"prompt": ""}, "'prompt'"),
        ({"prompt": "x" * 10_001}, "'prompt'"),
        ({"prompt": "a\0b"}, "'prompt'"),
        ({"acceptable_apis": "gmail"}, "'acceptable_apis'"),
        ({"acceptable_apis": [["a", 1]]}, "'acceptable_apis'"),
        ({"min_scopes": [[None]]}, "'min_scopes'"),
        ({"readings": [1]}, "'readings'"),
        ({"readings": [{"apis": 1}]}, "'apis'"),
        ({"service": 1}, "'service'"),
        ({"args": []}, "'args'"),
    ],
)
def test_a_line_that_is_no_request(lines: Lines, change: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_sets.read(lines("data", GOOD, GOOD | {"id": "b"} | change))
    assert "line 2" in caught.value.message
    assert says in caught.value.message
    assert caught.value.next_step


def test_an_id_twice(lines: Lines) -> None:
    with pytest.raises(InvalidInput, match="line 2: the id 'a' is there already"):
        request_sets.read(lines("data", GOOD, GOOD))


def test_a_line_that_is_too_long_is_not_held(tmp_path: Path) -> None:
    file = tmp_path / "long"
    with file.open("wb") as stream:
        stream.write(b'{"id": "')
        for _ in range(100):
            stream.write(b"x" * 1_000_000)
    with pytest.raises(InvalidInput, match="line 1 is longer than"):
        request_sets.read(file)
    with pytest.raises(InvalidInput, match="line 1 is longer than"):
        recorded.read(file, {"a"})


def test_completions_are_read_by_their_samples_numbers(lines: Lines) -> None:
    file = lines(
        "responses",
        {"id": "a", "sample": 2, "completion": "two"},
        {"id": "a", "completion": "none"},
        {"id": "a", "sample": 1, "completion": {"choices": [{"message": {"content": "one"}}],
                                                "usage": {"prompt_tokens": 5, "completion_tokens": 2}}},
        {"id": "b", "completion": {"tool_calls": []}, "usage": {"prompt_tokens": True}, "milliseconds": 12},
    )  # fmt: skip
    found = recorded.read(file, {"a", "b"})
    assert [one.value for one in found["a"]] == ["none", {"message": {"content": "one"}}, "two"]
    assert (found["a"][1].prompt_tokens, found["a"][1].completion_tokens) == (5, 2)
    assert (found["b"][0].prompt_tokens, found["b"][0].milliseconds) == (None, 12.0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"id": "c", "completion": ""}, "no request of the data has the id 'c'"),
        ({"id": "a", "completion": "", "sample": -1}, "'sample'"),
        ({"id": "a", "completion": "", "sample": True}, "'sample'"),
        ({"id": "a", "completion": "", "sample": "1"}, "'sample'"),
        ({"id": "a", "sample": 1}, "'completion'"),
        ({"id": "a", "completion": ""}, "sample 0 of 'a' is there already"),
        ('{"id": "a", "id": "a", "completion": ""}', "line 2"),
        ("{", "line 2"),
    ],
)
def test_a_line_that_is_no_completion(lines: Lines, line: object, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        recorded.read(lines("responses", {"id": "a", "completion": "x"}, line), {"a"})
    assert "line 2" in caught.value.message
    assert says in caught.value.message
