"""The function-calling checker on the published questions: each reference accepted, each change to one rejected."""

from __future__ import annotations

import itertools
import json
import keyword
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mapper.evaluation import bfcl
from mapper.evaluation.bfcl import Question, check

Arguments = dict[str, Any]
FILES = [("simple_python", 400), ("multiple", 200)]
# Values that no published answer has.
NOVEL: dict[type, Any] = {str: "zzq nothing like it", int: 1_000_003, float: 1_000_003.25}


@pytest.fixture(params=FILES, ids=[name for name, _ in FILES])
def questions(request: pytest.FixtureRequest, data: Callable[[str], Path]) -> dict[str, Question]:
    name, count = request.param
    found = bfcl._questions(data(f"bfcl/BFCL_v4_{name}.json"), data(f"bfcl/BFCL_v4_{name}.answers.json"))
    assert len(found) == count
    assert all(question.expected for question in found.values())
    return found


def references(question: Question) -> list[tuple[str, Arguments]]:
    """What a perfect model would call: the first possible value of everything."""
    return [(name, given(possible)) for name, possible in question.expected]


def given(possible: Any) -> Arguments:
    chosen = {key: next((one for one in values if one != ""), "") for key, values in possible.items()}
    return {key: plain(one) for key, one in chosen.items() if one != ""}


def plain(value: Any) -> Any:
    """A possible value as a value: each key of an object has possible values of its own."""
    if isinstance(value, dict):
        return given(value)
    return [plain(one) for one in value] if isinstance(value, list) else value


def native(calls: list[tuple[str, Arguments]]) -> Any:
    return [{"type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for n, a in calls]


def as_python(calls: list[tuple[str, Arguments]]) -> str:
    return "[" + ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls) + "]"


FORMS: dict[str, Callable[[list[tuple[str, Arguments]]], Any]] = {
    "native": native,
    "message": lambda calls: {"role": "assistant", "content": None, "tool_calls": native(calls)},
    "underscores": lambda calls: native([(name.replace(".", "_"), a) for name, a in calls]),
    "blocks": lambda calls: [{"type": "tool_use", "id": "x", "name": n, "input": a} for n, a in calls],
    "short": lambda calls: [{n: a} for n, a in calls],
    "json": lambda calls: json.dumps([{"name": n, "arguments": a} for n, a in calls]),
    "fenced": lambda calls: f"Sure:\n```json\n{json.dumps([{'name': n, 'parameters': a} for n, a in calls])}\n```\nOK?",
    "tagged": lambda calls: "\n".join(
        f"<tool_call>\n{json.dumps({'name': n, 'arguments': a})}\n</tool_call>" for n, a in calls
    ),
    "python": as_python,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_reference_is_accepted_in_every_form(questions: dict[str, Question], form: str) -> None:
    rejected = {}
    for name, question in questions.items():
        calls = references(question)
        if form == "python" and any(keyword.iskeyword(key) for _, arguments in calls for key in arguments):
            continue  # Python can't say it
        reason = check(FORMS[form](calls), question)
        if reason:
            rejected[name] = reason
    assert rejected == {}


def test_every_possible_value_is_accepted(questions: dict[str, Question]) -> None:
    tried = 0
    for question in questions.values():
        ((name, possible),) = question.expected
        (call,) = references(question)
        required = question.functions[name]["parameters"]["required"]
        for key, values in possible.items():
            for one in values:
                changed = {**call[1], key: plain(one)}
                if one == "":
                    del changed[key]
                    if key in required:
                        continue
                assert check(native([(name, changed)]), question) == "", (name, key, one)
                tried += 1
    assert tried > 800


def novel(value: Any) -> Any:
    """Another value of the same type, which no answer has."""
    if isinstance(value, list):
        return [*value, novel(value[0])]
    if isinstance(value, dict):
        key = next(iter(value))
        return {**value, key: novel(value[key])}
    return NOVEL[type(value)]


def mistyped(value: Any, declared: str) -> Iterator[Any]:
    """The value in other types than the declared one."""
    if declared == "integer":
        yield from (float(value), str(value), True)
    elif declared == "float":
        yield from (str(value), True)
    elif declared == "boolean":
        yield from (str(value), int(value))
    elif declared == "string":
        yield from (12345, [value], None)
    elif declared in ("array", "tuple"):
        yield from (json.dumps(value), {"0": value}, tuple(value) if declared == "array" else 7, [*map(repr, value), 1])
    elif declared == "dict":
        yield from (json.dumps(value), [value], list(value))
    yield from (None, {"zzq": 1}, [[["zzq"]]])


def dropped(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    for key in question.functions[name]["parameters"]["required"]:
        yield [(name, {k: v for k, v in arguments.items() if k != key})]


def extra(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    yield [(name, {**arguments, "zzq": 1})]
    yield [(name, {**arguments, "": ""})]


def wrong_type(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    for key, value in arguments.items():
        for other in mistyped(value, question.functions[name]["parameters"]["properties"][key]["type"]):
            yield [(name, {**arguments, key: other})]


def wrong_value(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    possible = dict(question.expected)[name]
    for key, value in arguments.items():
        if isinstance(value, bool):
            other = not value
            if other in possible[key]:
                continue
        elif value == []:
            items = question.functions[name]["parameters"]["properties"][key]["items"]["type"]
            other = [{"string": "zzq", "integer": 1}[items]]
        else:
            other = novel(value)
        yield [(name, {**arguments, key: other})]


def wrong_function(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    for other in (f"{name}_x", name[:-1], name.upper() if name.islower() else name.lower(), *question.functions):
        if other != name:
            yield [(other, arguments)]


def missing(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    yield []


def doubled(name: str, arguments: Arguments, question: Question) -> Iterator[Any]:
    yield [(name, arguments)] * 2
    yield [(name, arguments), (name, {})]


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (dropped, {"missing argument"}),
        (extra, {"extra argument"}),
        (wrong_type, {"wrong type", "wrong value"}),  # of a variable or a text that says a number, it is the value
        (wrong_value, {"wrong value"}),
        (wrong_function, {"wrong function"}),
        (missing, {"wrong number of calls"}),
        (doubled, {"wrong number of calls"}),
    ],
)
def test_every_change_is_rejected(questions: dict[str, Question], change: Any, reasons: set[str]) -> None:
    changed = 0
    for identity, question in questions.items():
        (call,) = references(question)
        before = changed
        for calls in change(*call, question):
            reason = check([{"name": n, "input": a} for n, a in calls], question)
            assert reason.partition(":")[0] in reasons, (identity, calls, reason)
            changed += 1
        # A question where nothing could be changed proves nothing: only bools may be so.
        possible = dict(question.expected)[call[0]]
        assert changed > before or all(
            isinstance(call[1][key], bool) or values == [""] for key, values in possible.items()
        )
    assert changed >= len(questions)


def together(first: Question, second: Question) -> Question | None:
    """Two questions as one that expects both calls; None when they name the same functions."""
    if set(first.functions) & set(second.functions):
        return None
    return Question({**first.functions, **second.functions}, first.expected + second.expected)


def test_parallel(questions: dict[str, Question]) -> None:
    """The published parallel sets have this shape: several expected calls, in any order, each once."""
    all_of_them = list(questions.values())
    made = 0
    for one, two in itertools.pairwise(all_of_them):
        both = together(one, two)
        if both is None:
            continue
        a, b = references(both)
        made += 1
        assert check(native([a, b]), both) == check(native([b, a]), both) == ""
        for calls in ([a], [b], [a, a], [b, b], [a, b, a], []):
            assert check(native(calls), both) != "", calls
        if a[1] != b[1]:
            assert check(native([(b[0], a[1]), (a[0], b[1])]), both) != ""
        for change in (dropped, extra, wrong_value, wrong_function):
            for (changed,) in change(*a, one):
                assert check(native([b, changed]), both) != "", changed
    assert made > 100


def test_irrelevance(data: Callable[[str], Path]) -> None:
    asked = bfcl._questions(data("bfcl/BFCL_v4_irrelevance.json"), None)
    assert len(asked) == 240
    for question in asked.values():
        name = next(iter(question.functions))
        for nothing in ("", None, [], "[]", {"tool_calls": []}, "None of these functions can do that, sorry."):
            assert check(nothing, question) == ""
        calls = [(name, {})]
        for form in FORMS.values():
            assert check(form(calls), question).startswith("no function fits")
        for broken in (f"I would use {name}(x=1 for it", f'{{"name": "{name}", "arguments": {{'):
            assert check(broken, question) != ""
        assert check(native([("something_else", {})]), question) != ""


@pytest.mark.parametrize(("name", "count"), FILES)
def test_files(data: Callable[[str], Path], lines: Callable[..., Path], name: str, count: int) -> None:
    files = data(f"bfcl/BFCL_v4_{name}.json"), data(f"bfcl/BFCL_v4_{name}.answers.json")
    asked = bfcl._questions(*files)
    outputs = lines("outputs", *({"id": one, "output": native(references(q))} for one, q in asked.items()))
    done: list[int] = []
    verdicts = bfcl.evaluate(*files, outputs, done.append)
    assert len(verdicts) == count == done[-1]
    assert all(verdict.accepted and not verdict.reason for verdict in verdicts)
