"""Which words say that nothing serves a request: learnt from examples, for each service and for all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.ranking import refusal_model
from mapper.ranking.index import Index
from mapper.ranking.postings import SCALE, Counts, Matrix, Vocabulary
from mapper.ranking.refusal_model import USUAL, ZERO, Refusals

Example = tuple[str, int, bool]  # words, family, refused

MAIL, TASKS, NEW = 0, 1, 2
EXAMPLES: list[Example] = [
    *((f"archive {thing}", MAIL, False) for thing in ("letter", "thread", "newsletter", "invoice", "message")),
    *((f"snooze {thing}", MAIL, True) for thing in ("letter", "thread", "newsletter", "invoice", "message")),
    *((f"snooze {thing}", TASKS, False) for thing in ("errand", "chore", "task", "reminder", "job")),
    *((f"colour {thing}", TASKS, True) for thing in ("errand", "chore", "task", "reminder", "job")),
    *((f"open {thing}", NEW, False) for thing in ("door", "gate", "window", "lid", "hatch")),
]


def learnt(examples: list[Example], families: int = 3) -> tuple[Refusals, Vocabulary]:
    vocabulary = Vocabulary()
    said = Counts(vocabulary, len(examples))
    for number, (words, _, _) in enumerate(examples):
        said.add(number, dict.fromkeys(words.split(), 1.0))
    family, refused = (np.array([each[part] for each in examples]) for part in (1, 2))
    plain = np.array([not word.startswith("~") for word in vocabulary.numbers])
    return refusal_model.fitted(said.matrix(), family, refused, families, plain), vocabulary


def odds(found: tuple[Refusals, Vocabulary], words: str, family: int) -> float:
    """The log odds of a request, as a reader of the index adds them up."""
    made, vocabulary = found
    total = 0.0
    for term in words.split():
        here = made.weights.terms == vocabulary.numbers.get(term, -1)
        for context in (family, made.weights.contexts - 1):
            total += float(((made.weights.values - ZERO) / SCALE)[here & (made.weights.at == context)].sum())
    return float(made.families[family]) + total / math.sqrt(len(words.split()))


def test_one_service_refuses_what_another_serves() -> None:
    found = learnt(EXAMPLES)
    assert odds(found, "snooze letter", MAIL) > 0 > odds(found, "archive letter", MAIL)
    assert odds(found, "colour chore", TASKS) > 0 > odds(found, "snooze chore", TASKS)


def test_a_word_that_one_service_never_heard_counts_as_it_does_everywhere() -> None:
    many = [*EXAMPLES, *((f"colour {thing}", MAIL, True) for thing in ("label", "folder", "star"))]
    found = learnt(many)
    told = learnt([each for each in many if not (each[0].startswith("colour") and each[1] == TASKS)])
    assert odds(found, "colour", TASKS) > odds(told, "snooze", TASKS)
    assert odds(told, "colour", TASKS) > odds(told, "unheard", TASKS)


def test_a_service_without_refused_examples_is_not_judged() -> None:
    made, _ = learnt(EXAMPLES)
    assert made.judged.tolist() == [True, True, False]
    assert made.families[NEW] == pytest.approx(USUAL) and not (made.weights.at == NEW).any()


@pytest.mark.parametrize("refused", [True, False])
def test_examples_of_one_kind_teach_nothing(refused: bool) -> None:
    made, _ = learnt([(words, family, refused) for words, family, _ in EXAMPLES])
    assert not made.judged.any() and not len(made.weights.terms) and made.families.tolist() == [USUAL] * 3


def test_a_form_is_the_same_in_every_service() -> None:
    made, vocabulary = learnt([(f"{words} ~?" if refused else words, f, refused) for words, f, refused in EXAMPLES])
    at = made.weights.at[made.weights.terms == vocabulary.numbers["~?"]]
    assert at.tolist() == [made.weights.contexts - 1]


def test_how_many_examples_are_refused_says_little() -> None:
    rare = learnt([*EXAMPLES, *((f"archive {number} letter", MAIL, False) for number in range(40))])
    assert odds(rare, "snooze letter", MAIL) > 0 > odds(rare, "archive letter", MAIL)


def test_weights_are_bytes_and_the_same_each_time() -> None:
    first, second = learnt(EXAMPLES)[0], learnt(EXAMPLES)[0]
    assert np.array_equal(first.weights.values, second.weights.values)
    assert first.weights.values.min() >= 0 and first.weights.values.max() <= 255


def test_the_slope_is_that_of_the_loss() -> None:
    rows, columns = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
    refused = np.array([True, False, True])
    loss: Any = refusal_model._loss(rows, columns, np.array([1.0, 0.5, 2.0, 0.7]), refused, np.array([1.0, 3.0, 0.5]))
    at = np.array([0.3, -0.2, 0.1])
    _, slope = loss(at)
    for number in range(3):
        step = np.eye(3)[number] * 1e-6
        assert slope[number] == pytest.approx((loss(at + step)[0] - loss(at - step)[0]) / 2e-6, rel=1e-4)


def test_it_goes_down_to_where_nothing_is_to_be_gained() -> None:
    rows = np.arange(6)
    loss: Any = refusal_model._loss(rows, rows % 2, np.ones(6), rows % 2 == 0, np.ones(6))
    found = refusal_model._descended(loss, 3)
    assert np.abs(loss(found)[1]).max() < 1e-2 and found[0] > 0 > found[1]


def test_no_example_is_needed() -> None:
    none: Any = np.zeros(0, np.int64)
    made = refusal_model.fitted(Matrix(none, none, none, 0), none, none.astype(bool), 2, none.astype(bool))
    assert made.families.tolist() == [USUAL] * 2


def test_a_reader_of_the_index_adds_up_what_was_learnt() -> None:
    index = Index.bundled()
    families = [name for name, _ in index._reader.families]

    def told(words: str, family: str) -> float:
        with index._reader.snapshot():
            _, found = index._reader.asked(words, ())
        return float(found.refusal[families.index(family)])

    assert told("snooze the newsletter until monday", "gmail") > told("archive the newsletter", "gmail") + 0.5
    assert told("snooze it", "spotify") == pytest.approx(USUAL)  # nobody wrote what it can't do
    _, served = EmbeddedProposer(Catalog.bundled(), index).readings("archive the newsletter in gmail")
    _, refused = EmbeddedProposer(Catalog.bundled(), index).readings("snooze the newsletter in gmail")
    assert refused["refusal"] > served["refusal"]
