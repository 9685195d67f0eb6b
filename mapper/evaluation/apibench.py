"""APIBench: is the call in a completion one that exists, and the right one?

Rules: a call matches a reference when the reference is a sub-tree of it, as each hub's published script has it:

* TensorFlow Hub (`hub.…`): the same function, each positional argument of the reference among its arguments, each named
  one under its name. Values are compared as syntax, so quotes and spaces don't matter.
* TorchHub (`torch.hub.load`): the same function, and the values of `repo_or_dir` and `model` in its arguments, whether
  they are named there or not: `load('o/r:v1', 'm')` matches `load(repo_or_dir='o/r', model='m', pretrained=True)`.
* others (Hugging Face): the same function, and the value of each argument in its arguments.

The first entry that matches decides. Three classes, which sum to 100 %:

* accuracy: it matches, and the reference's domain is the question's;
* error: it matches a reference of another domain; on TorchHub also where the completion names no call at all;
* hallucination: it matches nothing in the database. What can't be read counts here, since nothing contains it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mapper.evaluation import lines
from mapper.evaluation.completions import Finder, expression, has_field
from mapper.syntax import Shape
from policies.errors import InvalidInput

Klass = Literal["accuracy", "hallucination", "error"]
Progress = Callable[[int], None]

_WHOLE = "hub."  # TensorFlow Hub's functions
_TORCH = "torch.hub.load"
_TORCH_ARGUMENTS = ("repo_or_dir", "model")


@dataclass(frozen=True)
class Score:
    """Shares of `n` responses, in percent."""

    n: int
    accuracy_pct: float
    hallucination_pct: float
    error_pct: float
    apis: int
    apis_unreadable: int  # entries whose call isn't Python: nothing can match them


@dataclass(frozen=True)
class _Reference:
    """One entry: `shape` must be a sub-tree of a call, or else `values` stand in a call of its function."""

    shape: Shape
    domain: str
    values: tuple[str, ...] | None

    @classmethod
    def of(cls, source: str, domain: str) -> _Reference | None:
        """An entry; None for one that isn't a call."""
        node = expression(source.strip())
        shape = Shape.of(node)
        if shape is None or not isinstance(node, ast.Call):
            return None
        return cls(shape, domain, None if shape.function.startswith(_WHOLE) else tuple(_values(node, shape.function)))

    def matches(self, call: Shape) -> bool:
        """Whether this is a sub-tree of `call`."""
        return self.values is None and self.shape.within(call)

    def stands_in(self, call: str) -> bool:
        """Whether the values stand in a call of the same function, as it is written."""
        function, _, arguments = call.partition("(")
        return bool(self.values) and function == self.shape.function and all(v in arguments for v in self.values or ())


class Database:
    """The reference calls, with their domains."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        """`entries` are (call, domain), in the order of the file."""
        found = (_Reference.of(source, domain) for source, domain in entries)
        self._references = [each for each in found if each is not None]
        self.size, self.unreadable = len(entries), len(entries) - len(self._references)
        functions = {each.shape.function for each in self._references}
        self._finder = Finder(functions)
        self._field_or_nothing = functions == {_TORCH}

    def classify(self, completion: str, domain: str) -> Klass:
        """The class of a completion for a question of `domain`."""
        if self._field_or_nothing and not has_field(completion):
            return "error"
        found = self.domain(completion)
        if found is None:
            return "hallucination"
        return "accuracy" if found == domain else "error"

    def domain(self, completion: str) -> str | None:
        """The domain of the first reference that the completion's calls match."""
        if not self._references:
            return None
        calls: list[Shape] = []
        written = self._finder.unread(completion)
        literals: list[str] = []
        for node in self._finder.find(completion):
            shape = Shape.of(node)
            if shape is not None:
                calls.append(shape)
                written.append(ast.unparse(node))
            elif isinstance(node, ast.Constant):
                literals.append(ast.dump(node))
        for reference in self._references:
            if (
                any(map(reference.matches, calls))
                or any(map(reference.stands_in, written))
                or any(map(reference.shape.is_literal, literals))
            ):
                return reference.domain
        return None


def _values(node: ast.Call, function: str) -> Iterator[str]:
    """What stands in each argument that counts, without its quotes."""
    for argument in (*node.args, *node.keywords):
        named = isinstance(argument, ast.keyword | ast.NamedExpr)
        if function == _TORCH and not (named and any(name in ast.unparse(argument) for name in _TORCH_ARGUMENTS)):
            continue
        value = argument.value if isinstance(argument, ast.keyword | ast.NamedExpr) else argument
        yield value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ast.unparse(value)


def evaluate(api: Path, questions: Path, responses: Path, progress: Progress = lambda done: None) -> Score:
    """Score `responses` (`{"question_id", "text"}` a line, ids from 1) against the database and the questions.

    Raises InvalidInput, which names the file and the line.
    """
    database = Database([(line.text("api_call"), line.text("domain")) for line in lines.read(api)])
    if database.size == database.unreadable:
        raise InvalidInput(f"No call in {api} is Python.", next_step="Give the API database, as JSON lines.")
    domains = [_question(line) for line in lines.read(questions)]
    counted: Counter[Klass] = Counter()
    seen: set[int] = set()
    for line in lines.read(responses):
        number = line.value.get("question_id")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(domains):
            raise line.wrong(f"'question_id' must be a number from 1 to {len(domains)}, a question of {questions}.")
        if number in seen:
            raise line.wrong(f"question {number} is answered a second time.")
        seen.add(number)
        counted[database.classify(line.text("text"), domains[number - 1])] += 1
        progress(len(seen))
    n = len(seen)
    return Score(
        n=n,
        accuracy_pct=100 * counted["accuracy"] / n,
        hallucination_pct=100 * counted["hallucination"] / n,
        error_pct=100 * counted["error"] / n,
        apis=database.size,
        apis_unreadable=database.unreadable,
    )


def _question(line: lines.Line) -> str:
    data = line.value.get("api_data")
    if not isinstance(data, dict) or not isinstance(data.get("domain"), str):
        raise line.wrong("a question needs 'api_data' with a 'domain', as text.")
    return str(data["domain"])
