"""Term statistics: what each term says for each family, resource, last word, method and example.

The weight of a term for a *context* c is log(1 + P(t|c) / P(t)): how much likelier the term is where people speak of c
than anywhere. P(t|c) mixes what the context's sources say (examples, words for things, names, documentation). A sum of
such weights over a request's terms is a log likelihood ratio, so sums of different contexts can be compared and added.
All of it is computed in closed form, so that it costs one pass whatever is imported.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SCALE = 16.0
"""Weights are kept as bytes: the weight times this, so at most 15.9."""


@dataclass(slots=True)
class Vocabulary:
    """Numbers for terms."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, term: str) -> int:
        return self.numbers.setdefault(term, len(self.numbers))

    def __len__(self) -> int:
        return len(self.numbers)


class Counts:
    """How often terms occur with each of `contexts` contexts."""

    def __init__(self, vocabulary: Vocabulary, contexts: int) -> None:
        self._vocabulary = vocabulary
        self.contexts = contexts
        self._terms = array("q")
        self._at = array("q")  # for so many terms
        self._many = array("q")
        self._weights = array("d")

    def add(self, context: int, terms: Mapping[str, float], weight: float = 1.0, *, known: bool = False) -> None:
        """Count `terms` for a context. `known`: pairs of words only where something else has them, too."""
        numbers = self._vocabulary.numbers
        if known:
            terms = {term: each for term, each in terms.items() if each >= 1.0 or term in numbers}
        self._terms.extend([numbers.setdefault(term, len(numbers)) for term in terms])
        self._weights.extend([each * weight for each in terms.values()])
        self._at.append(context)
        self._many.append(len(terms))

    def matrix(self) -> Matrix:
        """The sums for each (term, context)."""
        return Matrix.of(
            np.frombuffer(self._terms, np.int64),
            np.repeat(np.frombuffer(self._at, np.int64), np.frombuffer(self._many, np.int64)),
            np.frombuffer(self._weights, np.float64),
            self.contexts,
        )


@dataclass(frozen=True, slots=True)
class Matrix:
    """A sparse matrix as triples, sorted by term and then context, without doubles."""

    terms: Any
    at: Any
    values: Any
    contexts: int

    @classmethod
    def of(cls, terms: Any, at: Any, values: Any, contexts: int) -> Matrix:
        if not len(terms):
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), contexts)
        keys, inverse = np.unique(terms * max(contexts, 1) + at, return_inverse=True)
        sums = np.bincount(inverse, weights=values, minlength=len(keys))
        return cls(keys // max(contexts, 1), keys % max(contexts, 1), sums, contexts)

    def shares(self, prior: float = 0.0, power: float = 1.0, length: float = 1.0) -> Matrix:
        """Each context's counts as shares of its sum and `prior` more, so that little evidence weighs little.

        `power` below 1 damps what is repeated, as documentation repeats its words. `length` below 1 makes up for the
        fact that what much is said of has smaller shares of each word.
        """
        values = self.values**power if power != 1.0 else self.values
        sums = np.bincount(self.at, weights=values, minlength=self.contexts) + prior
        if length != 1.0:
            usual = float(sums[sums > prior].mean()) if (sums > prior).any() else 1.0
            sums = usual * (sums / usual) ** length
        return Matrix(self.terms, self.at, values / np.maximum(sums[self.at], 1e-9), self.contexts)

    def sums(self, terms: int) -> Any:
        """The sum for each term."""
        return np.bincount(self.terms, weights=self.values, minlength=terms)


def mixed(parts: Iterable[tuple[float, Matrix]]) -> Matrix:
    """The weighted sum of matrices over the same contexts."""
    found = [(weight, part) for weight, part in parts]
    return Matrix.of(
        np.concatenate([part.terms for _, part in found]),
        np.concatenate([part.at for _, part in found]),
        np.concatenate([part.values * weight for weight, part in found]),
        found[0][1].contexts,
    )


def background(parts: Iterable[tuple[float, Matrix]], terms: int) -> Any:
    """P(t): how likely each term is anywhere, never 0."""
    total = np.full(terms, 0.02)
    for weight, part in parts:
        total += weight * part.sums(terms)
    return total / total.sum()


def likelihoods(part: Matrix, anywhere: Any) -> Matrix:
    """The weights of terms for contexts, as bytes; those that round to nothing are left out."""
    weights = np.log1p(part.values / anywhere[part.terms]) * SCALE
    kept = weights >= 1.0
    return Matrix(part.terms[kept], part.at[kept], np.minimum(weights[kept], 255).astype(np.uint8), part.contexts)


def leanings(found: Matrix, terms: int, few: Any) -> Any:
    """How much each term speaks for or against each context, as signed bytes of 1/`SCALE`: terms x contexts.

    log P(t|c) / P(t), smoothed towards 0 where a term is rare. `few` marks terms that are left out: all 0.
    """
    sums = np.bincount(found.at, weights=found.values, minlength=found.contexts)
    totals = found.sums(terms)
    expected = totals[:, None] * (sums / max(sums.sum(), 1.0))[None, :]
    seen = np.zeros((terms, found.contexts))
    seen[found.terms, found.at] = found.values
    made = np.log((seen + _SMOOTH) / (expected + _SMOOTH)) * SCALE
    made[few] = 0.0
    return np.clip(np.rint(made), -64, 96).astype(np.int8)


_SMOOTH = 1.5  # occurrences that a term has to show beyond what is expected before it says much


def packed(part: Matrix, terms: int, kind: str) -> list[bytes | None]:
    """For each term, its contexts (numbers of the array type `kind`) followed by their weights, a byte each."""
    edges = np.searchsorted(part.terms, np.arange(terms + 1))
    numbers = part.at.astype(kind)
    values = part.values.astype(np.uint8)
    return [
        numbers[start:end].tobytes() + values[start:end].tobytes() if end > start else None
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def kind_for(count: int) -> str:
    """The smallest array type that numbers `count` things."""
    return "<u2" if count <= 0xFFFF else "<u4"


def rarity(found: Matrix, terms: int, documents: int) -> Any:
    """How much rarer than usual each term is among examples: the inverse document frequency, at least 0."""
    frequency = np.bincount(found.terms, minlength=terms)
    return np.maximum(np.log((documents + 200) / (frequency + 1.0)), 0.0)


def unit(found: Matrix, weights: Any) -> Matrix:
    """Each context's vector, weighted by term and brought to length 1, as bytes of 255 parts."""
    values = found.values * weights[found.terms]
    lengths = np.sqrt(np.bincount(found.at, weights=values**2, minlength=found.contexts))
    scaled = values / np.maximum(lengths[found.at], 1e-9) * 255
    kept = scaled >= 1.0
    return Matrix(found.terms[kept], found.at[kept], np.minimum(scaled[kept], 255).astype(np.uint8), found.contexts)
