"""Mappings that a person decided on, as fine-tuning data in RAFT's form (Zhang et al. 2024, arXiv:2403.10131).

An example is a question, documents (catalog entries: the right ones, and distractors from retrieval), and an answer
that reasons with a quotation from the right document and ends with the calls. In a share of the examples the right
documents are left out, so that a model also learns to know them. Keys are those of the paper's own data sets:
`question`, `context`, `oracle_context`, `cot_answer`, `instruction`; ours are `label`, `methods`, `rejected_methods`,
`rejected_answer`.

Nothing of the person's is in it (`mapper.redaction`), and nothing of accounts, grants or outcomes is even looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from mapper.catalog import Catalog
from mapper.redaction import Redactor
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method

Label = Literal["approved", "corrected", "denied"]

MAX_DISTRACTORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One mapping and what the person said of it. `instead_of`: the methods of the reading that was put first, where
    the person chose another one."""

    words: str
    calls: tuple[Call, ...]
    label: Label
    instead_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How examples are made. `with_answer`: per cent of them whose documents hold the right ones. Raises
    InvalidInput."""

    with_answer: int = 80
    distractors: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.with_answer <= 100 or not 0 <= self.distractors <= MAX_DISTRACTORS:
            raise InvalidInput(
                f"Examples need 0 to 100 % with their answer, and 0 to {MAX_DISTRACTORS} distractors.",
                next_step="Correct --with-answer or --distractors.",
            )


def examples(
    decided: Sequence[Decided], catalog: Catalog, candidates: Callable[[str], Sequence[Method]], recipe: Recipe
) -> Iterator[dict[str, Any]]:
    """One example for each different mapping, in a fixed order. `candidates` retrieves methods for a request. Every
    method must be in the catalog (UnknownName)."""
    made: dict[str, tuple[Decided, str, list[dict[str, Any]]]] = {}
    for one in decided:
        methods = [catalog.method(call.id) for call in one.calls]
        question, calls = Redactor(catalog).redact(one.words, one.calls, methods)
        key = json.dumps([one.label, question, calls, one.instead_of], sort_keys=True)
        made.setdefault(key, (one, question, calls))
    chosen = [made[key] for key in sorted(made)]
    chance = Random(recipe.seed)  # noqa: S311 # it decides what a model learns from, and no secret
    order = list(range(len(chosen)))
    chance.shuffle(order)
    kept = set(order[: round(len(chosen) * recipe.with_answer / 100)])
    for number, (one, question, calls) in enumerate(chosen):
        right = list({call.id: catalog.method(call.id) for call in one.calls}.values())
        wrong = [method for method in candidates(one.words) if method not in right][: recipe.distractors]
        shown = [*(right if number in kept else ()), *wrong]
        chance.shuffle(shown)
        yield _example(f"goex-{number}", one, question, calls, right, [document(method) for method in shown])


def document(method: Method) -> str:
    """A catalog entry as a document."""
    arguments = {
        name: f"{_kind(schema)}{', needed' if name in method.parameters.get('required', ()) else ''}"
        f"{'. ' if schema.get('description') else ''}{schema.get('description', '')}"
        for name, schema in method.parameters["properties"].items()
    }
    lines = [f"Method: {method.id}", f"What: {_said(method)}", f"Risk: {method.risk.word}"]
    lines += [f"Argument {name}: {said}" for name, said in arguments.items()]
    return "\n".join(lines)


def _example(
    name: str, one: Decided, question: str, calls: list[dict[str, Any]], right: list[Method], documents: list[str]
) -> dict[str, Any]:
    answer = _answer(right, calls)
    blocks = "".join(f"<DOCUMENT>{text}</DOCUMENT>\n" for text in documents)
    found: dict[str, Any] = {
        "id": name,
        "type": "api call",
        "label": one.label,
        "question": question,
        "context": {"title": [["catalog entry"] * len(documents)], "sentences": [documents]},
        "oracle_context": "\n\n".join(document(method) for method in right),
        "instruction": f"{blocks}{question}",
        "methods": [call.id for call in one.calls],
    }
    if one.label == "denied":
        return {**found, "rejected_answer": answer}
    return {**found, "cot_answer": answer, "rejected_methods": list(one.instead_of)}


def _answer(right: list[Method], calls: list[dict[str, Any]]) -> str:
    steps = [
        f"The entry of {method.id} says ##begin_quote## {_said(method)} ##end_quote##, which is what is asked for."
        for method in right
    ]
    return f"##Reason: {' '.join(steps)}\n##Answer: {json.dumps({'calls': calls}, ensure_ascii=False)}"


def _said(method: Method) -> str:
    """What the entry says of the method; its name where it says nothing."""
    return " ".join(method.description.split()) or method.id


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


__all__ = ("MAX_DISTRACTORS", "Decided", "Label", "Recipe", "document", "examples")
