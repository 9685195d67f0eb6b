"""What is read of an output, what isn't, and that nothing in it runs or takes long."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.evaluation.bfcl import Question, Verdict, check, evaluate
from mapper.evaluation.outputs import FunctionCall, Unreadable, read
from policies.errors import InvalidInput
from tests.support.pace import pace

OFFERED = ("a.f", "name")
ONE = [FunctionCall("a.f", {"x": 1})]


@pytest.mark.parametrize(
    "output",
    [
        "a.f(x=1)",
        "[a.f(x=1)]",
        "(a.f(x=1),)",
        "result = a.f(x=1)",
        "```python\na.f(x=1)\n```",
        'I call it: {"name": "a.f", "arguments": {"x": 1}}. Done.',
        'It is [ {"name": "a.f", "arguments": {"x": 1}} ]',
        '{"a.f": {"x": 1}}',
        '[{"a.f": "{\\"x\\": 1}"}]',
        '<tool_call>{"name": "a.f", "arguments": {"x": 1}}</tool_call>',
        '<TOOL_CALL>{"name": "a.f", "arguments": {"x": 1}}',
        {"name": "a.f", "parameters": {"x": 1}},
        {"function_call": {"name": "a.f", "arguments": '{"x": 1}'}},
        {"role": "assistant", "content": [{"type": "text", "text": "Yes"}, {"name": "a.f", "input": {"x": 1}}]},
        {"role": "assistant", "content": "a.f(x=1)"},
        ["a.f(x=1)"],
    ],
)
def test_one_call(output: Any) -> None:
    assert read(output, OFFERED) == ONE


def test_a_function_called_name() -> None:
    assert read({"name": {"x": 1}}, OFFERED) == [FunctionCall("name", {"x": 1})]
    assert read({"name": "a.f", "arguments": {"x": 1}}, OFFERED) == ONE


def test_values() -> None:
    code = "f(a=-1.5, b='x', c=[1, (2, 3)], d={'k': True}, e=None, g=data, h=pkg.data, i=true)"
    values = {"a": -1.5, "b": "x", "c": [1, (2, 3)], "d": {"k": True}, "e": None, "g": "data", "h": "pkg.data"}
    assert read(code) == [FunctionCall("f", {**values, "i": True})]


@pytest.mark.parametrize("output", ["", "  ", None, [], "[]", {"tool_calls": []}, {"content": "", "tool_calls": None}])
def test_no_call(output: Any) -> None:
    assert read(output, OFFERED) == []


@pytest.mark.sampled(14)
@pytest.mark.parametrize(
    "output",
    [
        "I can't.",
        "a.f(1)",
        "a.f(**x)",
        "a.f(x=1",
        "a.f(x=1) + 1",
        "a.f(x=g())",
        "a.f(x=1 + 1)",
        "a.f(x=f'{y}')",
        "a.f(x=lambda: 1)",
        "import os\na.f(x=1)",
        "a.f()(x=1)",
        "a.f(x={1: 2})",
        "a.f(x={'k': 1, 'k': 2})",
        "a.f(x={**y})",
        "a.f(x=b'')",
        "a.f(x=1j)",
        '{"name": "a.f", "arguments": [1]}',
        '{"name": "a.f", "arguments": "{"}',
        '{"what": 1}',
        "{",
        3,
        True,
        [3],
        {"name": 3},
        {"calls": {"calls": {"calls": {"calls": {"calls": {"calls": {"calls": {"calls": []}}}}}}}},
        "x" * 300_000,
        "<tool_call>a.f(x=1)</tool_call>" + " " * 300_000,
        "a.f(x=1)\n" * 1000,
        "(" * 100_000,
        "[" * 100_000,
        "{" * 100_000,
        '[{"a":' * 30_000,
        "a.f(x=" + "-" * 40_000 + "1)",
        "a.f(x=" + "[" * 90 + "]" * 90 + ")",
        "a.f(x=" + "a." * 20_000 + "a())",
        "<tool_call>" * 10_000,
        "```\n" * 40_000,
        "\0",
        "\ud800",
    ],
)
def test_unreadable(output: Any) -> None:
    began = time.process_time()
    with pytest.raises(Unreadable):
        read(output, OFFERED)
    assert time.process_time() - began < 600 * pace()


def test_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        read(f"a.f(x=open({str(tmp_path / 'ran')!r}, 'w'))", OFFERED)
    assert not (tmp_path / "ran").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["a.f(x=1)", "name", "{}", "[]"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "a.f", "tool_calls", "arguments", "content", "function"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(JSON | st.text(alphabet="[]{}()\"'a.f=x1,: \n<`", max_size=60))
def test_anything_is_read_or_refused(output: Any) -> None:
    question = Question({"a.f": {"name": "a.f", "parameters": {"properties": {"x": {}}}}}, (("a.f", {"x": [1]}),))
    try:
        calls = read(output, question.functions)
    except Unreadable:
        assert check(output, question).startswith("unreadable: ")
    else:
        assert all(isinstance(call.name, str) and isinstance(call.arguments, dict) for call in calls)
        assert isinstance(check(output, question), str)


# ---- files

FUNCTION = {"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
ASKED = {"id": "q1", "function": [FUNCTION]}
ANSWER = {"id": "q1", "ground_truth": [{"f": {"x": [1]}}]}


def test_a_question_without_an_output_is_wrong(lines: Callable[..., Path]) -> None:
    verdicts = evaluate(
        lines("questions", ASKED, {**ASKED, "id": "q2"}, {**ASKED, "id": "q3"}),
        lines("answers", *({**ANSWER, "id": f"q{n}"} for n in (3, 2, 1))),
        lines("outputs", {"id": "q3", "output": "f(x=1)"}, {"id": "q1", "output": "f(x=2)"}),
    )
    assert verdicts == [
        Verdict("q1", False, "wrong value: x is 2"),
        Verdict("q2", False, "no output"),
        Verdict("q3", True, ""),
    ]


@pytest.mark.parametrize(
    ("which", "value", "says"),
    [
        ("questions", {"id": "q2", "function": [FUNCTION]}, "questions, line 2: 'q2' has no answer in "),
        ("questions", ASKED, "questions, line 2: 'q1' is asked a second time"),
        ("questions", {"id": "q2", "function": []}, "questions, line 2: 'function' must be there"),
        ("questions", {"id": "q2", "function": [{"name": "f"}]}, "questions, line 2: a function needs"),
        ("questions", "nonsense", "questions, line 2 isn't JSON"),
        ("answers", ANSWER, "answers, line 2: this question has an answer already"),
        ("answers", {**ANSWER, "id": "q2"}, "answers, line 2: 'q2' is no question of "),
        ("answers", {"id": "q2"}, "answers, line 2: 'ground_truth' must be there"),
        ("outputs", {"id": "q2", "output": ""}, "outputs, line 2: 'q2' is no question of "),
        ("outputs", {"id": "q1", "output": ""}, "outputs, line 2: 'q1' is answered a second time"),
        ("outputs", {"output": ""}, "outputs, line 2: 'id' must be there"),
    ],
)
def test_a_broken_line_is_named(lines: Callable[..., Path], which: str, value: object, says: str) -> None:
    contents: dict[str, list[object]] = {
        "questions": [ASKED],
        "answers": [ANSWER],
        "outputs": [{"id": "q1", "output": "f(x=1)"}],
    }
    contents[which].append(value)
    files = {name: lines(name, *values) for name, values in contents.items()}
    with pytest.raises(InvalidInput) as caught:
        evaluate(files["questions"], files["answers"], files["outputs"])
    assert says in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize("truth", [[{"g": {}}], [{"f": {"x": 1}}], [{"f": {}, "g": {}}], [{}], [{"f": 1}]])
def test_a_broken_answer_is_named(lines: Callable[..., Path], truth: object) -> None:
    files = lines("questions", ASKED), lines("answers", {"id": "q1", "ground_truth": truth})
    with pytest.raises(InvalidInput, match="answers, line 1: "):
        evaluate(*files, lines("outputs", {"id": "q1", "output": ""}))


def test_an_output_line_without_output_is_named(lines: Callable[..., Path]) -> None:
    with pytest.raises(InvalidInput, match="outputs, line 1: 'output' must be there"):
        evaluate(lines("questions", ASKED), lines("answers", ANSWER), lines("outputs", {"id": "q1"}))
