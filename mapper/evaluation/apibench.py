"""APIBench: is the call in a completion one that exists, and the right one?

Rules: a call matches a reference when the reference is a sub-tree of it: the same function, each positional argument
of the reference among its arguments, each named one under its name. Values are compared as syntax, so quotes and
spaces don't matter. Where the database holds one call under several domains, the first entry decides. Three classes,
which sum to 100 %:

* accuracy: it matches, and the reference's domain is the question's;
* error: it matches a reference of another domain;
* hallucination: it matches nothing in the database. What can't be read counts here, since nothing contains it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mapper import syntax
from mapper.evaluation import lines
from mapper.evaluation.completions import MAX_CALL, Finder
from mapper.syntax import Shape
from policies.errors import InvalidInput

Klass = Literal["accuracy", "hallucination", "error"]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Score:
    """Shares of `n` responses, in percent."""

    n: int
    accuracy_pct: float
    hallucination_pct: float
    error_pct: float
    apis: int
    apis_unreadable: int  # entries whose call isn't Python: nothing can match them


class Database:
    """The reference calls, with their domains."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        """`entries` are (call, domain), in the order of the file."""
        self._references: list[tuple[Shape, str]] = []
        for source, domain in entries:
            shape = Shape.of(syntax.expression(source.strip(), MAX_CALL))
            if shape is not None:
                self._references.append((shape, domain))
        self.size, self.unreadable = len(entries), len(entries) - len(self._references)
        self._finder = Finder({shape.function for shape, _ in self._references})

    def classify(self, completion: str, domain: str) -> Klass:
        """The class of a completion for a question of `domain`."""
        found = self.domain(completion)
        if found is None:
            return "hallucination"
        return "accuracy" if found == domain else "error"

    def domain(self, completion: str) -> str | None:
        """The domain of the first reference that the completion's calls match."""
        if not self._references:
            return None
        calls: list[Shape] = []
        literals: list[str] = []
        for node in self._finder.find(completion):
            shape = Shape.of(node)
            if shape is not None:
                calls.append(shape)
            elif isinstance(node, ast.Constant):
                literals.append(ast.dump(node))
        for reference, domain in self._references:
            if any(map(reference.within, calls)) or any(map(reference.is_literal, literals)):
                return domain
        return None


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
