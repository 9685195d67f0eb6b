"""The Berkeley function-calling questions: are a model's calls the expected ones?

Rules: there are exactly as many calls as expected, and each expected call is met by another one, in any order (which
covers simple, multiple, parallel and parallel multiple). A question without an answer is one that no function fits:
any call is wrong there, also one that can't be read. A question without an output is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapper.evaluation import lines
from mapper.evaluation.expected_calls import mismatch
from mapper.evaluation.outputs import Unreadable, read

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Question:
    """A question's functions, and the expected calls (none: no function fits)."""

    functions: Mapping[str, Mapping[str, Any]]
    expected: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True)
class Verdict:
    """One question's result; the reason is "" when it is accepted."""

    id: str
    accepted: bool
    reason: str


def check(output: Any, question: Question) -> str:
    """Why `output` isn't right; "" when it is."""
    try:
        calls = read(output, question.functions)
    except Unreadable as error:
        if question.expected or _mentions_call(output, question.functions):
            return f"unreadable: {error}"
        return ""
    if not question.expected:
        return f"no function fits, but {calls[0].name[:60]} is called" if calls else ""
    if len(calls) != len(question.expected):
        return f"wrong number of calls: {len(calls)}, not {len(question.expected)}"
    reasons = [[mismatch(call, question.functions[name], given) for call in calls] for name, given in question.expected]
    return _unmet(reasons)


def evaluate(
    questions: Path, answers: Path | None, outputs: Path, progress: Progress = lambda done: None
) -> list[Verdict]:
    """The verdict on each question, in the questions' order.

    Without `answers` no question has a function that fits. Raises InvalidInput, which names the file and the line.
    """
    asked = _questions(questions, answers)
    reasons: dict[str, str] = {}
    for line in lines.read(outputs):
        name = line.text("id")
        if name not in asked:
            raise line.wrong(f"{name[:60]!r} is no question of {questions}.")
        if name in reasons:
            raise line.wrong(f"{name[:60]!r} is answered a second time.")
        if "output" not in line.value:
            raise line.wrong("'output' must be there.")
        reasons[name] = check(line.value["output"], asked[name])
        progress(len(reasons))
    return [Verdict(name, reasons.get(name) == "", reasons.get(name, "no output")) for name in asked]


def _questions(questions: Path, answers: Path | None) -> dict[str, Question]:
    expected: dict[str, tuple[lines.Line, list[dict[str, Any]]]] = {}
    for line in lines.read(answers) if answers is not None else ():
        if line.text("id") in expected:
            raise line.wrong("this question has an answer already.")
        expected[line.text("id")] = (line, line.objects("ground_truth"))
    asked: dict[str, Question] = {}
    for line in lines.read(questions):
        name = line.text("id")
        if name in asked:
            raise line.wrong(f"{name[:60]!r} is asked a second time.")
        functions = {str(one.get("name")): _function(line, one) for one in line.objects("function")}
        if answers is None:
            asked[name] = Question(functions, ())
        elif name in expected:
            asked[name] = Question(functions, _expected(*expected.pop(name), functions))
        else:
            raise line.wrong(f"{name[:60]!r} has no answer in {answers}.")
    for name, (line, _) in expected.items():
        raise line.wrong(f"{name[:60]!r} is no question of {questions}.")
    return asked


def _function(line: lines.Line, function: dict[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters")
    properties = parameters.get("properties", {}) if isinstance(parameters, dict) else None
    if not isinstance(function.get("name"), str) or not isinstance(properties, dict):
        raise line.wrong("a function needs a 'name', and 'parameters' with 'properties'.")
    if not all(isinstance(schema, dict) for schema in properties.values()):
        raise line.wrong("a parameter of a function must be an object.")
    return function


def _expected(
    line: lines.Line, calls: list[dict[str, Any]], functions: Mapping[str, Any]
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    made: list[tuple[str, Mapping[str, Any]]] = []
    for call in calls:
        ((name, possible),) = call.items() if len(call) == 1 else [("", None)]
        if name not in functions:
            raise line.wrong(f"{name[:60]!r} isn't one of the question's functions.")
        if not isinstance(possible, dict) or not all(isinstance(values, list) for values in possible.values()):
            raise line.wrong(f"each parameter of {name[:60]!r} needs a list of possible values.")
        made.append((name, possible))
    return tuple(made)


def _unmet(reasons: Sequence[Sequence[str]]) -> str:
    """ "" when each expected call (a row) can be given a call (a column) of its own; else why not."""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, reason in enumerate(reasons[row]):
            if reason or column in tried:
                continue
            tried.add(column)
            if column not in taken or place(taken[column], tried):
                taken[column] = row
                return True
        return False

    for row, columns in enumerate(reasons):
        if not place(row, set()):
            # The nearest call tells most: one of another function says little about this one.
            near = [reason for reason in columns if reason and not reason.startswith("wrong function")]
            return next(iter(near or [reason for reason in columns if reason]), "two expected calls are met by one")
    return ""


def _mentions_call(output: Any, functions: Mapping[str, Any]) -> bool:
    """Whether an output that can't be read calls an offered function all the same."""
    if not isinstance(output, str):
        return True
    names = {form for name in functions for form in (name, name.replace(".", "_"))}
    return any(re.search(rf"(?<![\w.]){re.escape(name)}\s*\(|\"{re.escape(name)}\"\s*[:,]", output) for name in names)
