"""Which words say that nothing serves a request: a logistic regression over the lexicon's examples.

The lexicon holds requests that a method of a service serves and requests near it that none does. "Snooze" and "archive
it" share nearly all their neighbours, so that likeness to an example hardly tells one from the other; a weight for
each term, learnt from all examples at once, does. A term has a weight for everywhere and one for each family whose
examples have it, so that "merge" may be refused by one service and served by another. It is fitted while the index is
made, from what the index holds, and never to an evaluation's requests. Deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapper.ranking.postings import SCALE, Matrix

ZERO = 128
"""What stands for a weight of 0 in a byte."""

USUAL = -1.4
"""The log odds that nothing serves a request of which nothing is known: about one in five examples."""

_PULL = 0.3  # of the weights towards 0, in examples
_OWN = 2.0  # how much easier a family's weights move than those for everywhere
_BIAS = 0.3  # how hard it is to move a family's refusing in general
_LEAST = 2  # examples that must have a term
_ROUNDS = 25
_KEPT = 8  # steps from which the curve is estimated
_WEIGHTS = (0.1, 10.0)  # what one refused example may count for, so that they count as `USUAL` says


@dataclass(frozen=True, slots=True)
class Refusals:
    """`weights`: for each term, of each family and (as the last context) everywhere, bytes around `ZERO` of 1/`SCALE`;
    `families`: of each family, where to begin; `USUAL`, and nothing is judged, for one without examples of
    both kinds."""

    weights: Matrix
    families: Any
    judged: Any  # which families have examples of both kinds


def fitted(said: Matrix, family: Any, refused: Any, families: int, plain: Any) -> Refusals:
    """What the examples teach. `said`: terms (with weights) of the examples; `family` and `refused` of each example;
    `plain`: which terms are words rather than a request's form, which is the same thing in every family."""
    start = np.full(families, USUAL)
    judged = np.isin(np.arange(families), np.intersect1d(family[~refused], family[refused]))
    if not judged.any():
        return Refusals(Matrix(*(np.zeros(0, np.int64),) * 3, families + 1), start, np.zeros(families, bool))
    terms = len(plain)
    lengths = np.sqrt(np.bincount(said.at, weights=said.values**2, minlength=len(family)))
    frequent = (np.bincount(said.terms, minlength=terms) >= _LEAST)[said.terms]
    term, at = said.terms[frequent], said.at[frequent]
    value = said.values[frequent] / lengths[at]
    own = plain[term] & judged[family[at]]
    # A column for each (term, context) that occurs, then one for each family's beginning.
    context = np.concatenate([np.full(len(term), families), family[at[own]]])
    keys, column = np.unique(np.concatenate([term, term[own]]) * (families + 1) + context, return_inverse=True)
    columns = np.concatenate([column, len(keys) + family])
    rows = np.concatenate([at, at[own], np.arange(len(family))])
    values = np.concatenate([value, value[own] * _OWN, np.where(judged[family], _BIAS, 0.0)])
    each = np.clip(np.exp(USUAL) * (~refused).sum() / refused.sum(), *_WEIGHTS)
    found = _descended(_loss(rows, columns, values, refused, np.where(refused, each, 1.0)), len(keys) + families + 1)
    places = keys % (families + 1)
    weights = found[: len(keys)] * np.where(places < families, _OWN, 1.0) * SCALE
    known = np.append(judged, True)[places] & (np.abs(weights) >= 0.5)
    bytes_ = np.clip(np.rint(weights[known]) + ZERO, 0, 255)
    start[judged] = (found[-1] + _BIAS * found[len(keys) : -1])[judged]
    return Refusals(Matrix(keys[known] // (families + 1), places[known], bytes_, families + 1), start, judged)


_Loss = Callable[[Any], tuple[float, Any]]


def _loss(rows: Any, columns: Any, values: Any, refused: Any, weight: Any) -> _Loss:
    """The loss of weights, the last of which is where all begin, and its slope."""
    truth = refused.astype(float)

    def loss(weights: Any) -> tuple[float, Any]:
        odds = np.bincount(rows, weights=values * weights[columns], minlength=len(truth)) + weights[-1]
        likely = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        missed = np.log(np.where(refused, likely, 1 - likely) + 1e-12)
        pulled = np.append(weights[:-1], 0.0)
        error = (likely - truth) * weight
        slope = np.bincount(columns, weights=values * error[rows], minlength=len(weights)) + _PULL * pulled
        slope[-1] += error.sum()
        return float(_PULL / 2 * _product(pulled, pulled) - _product(weight, missed)), slope

    return loss


def _product(one: Any, other: Any) -> Any:
    """The inner product, added up the same way on every machine: `@` shares it out among the processors that there are,
    which wait for each other longer than it takes."""
    return np.einsum("i,i", one, other)


def _descended(loss: _Loss, size: int) -> Any:
    """Weights near the least loss, by L-BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.4)."""
    here = np.zeros(size)
    here[-1] = USUAL
    least, slope = loss(here)
    steps: list[tuple[Any, Any]] = []
    for _ in range(_ROUNDS):
        way = slope.copy()
        parts = []
        for moved, turned in reversed(steps):
            part = _product(moved, way) / _product(turned, moved)
            parts.append(part)
            way -= part * turned
        way *= _product(*steps[-1]) / _product(steps[-1][1], steps[-1][1]) if steps else 1 / np.abs(slope).max()
        for (moved, turned), part in zip(steps, reversed(parts), strict=True):
            way += moved * (part - _product(turned, way) / _product(turned, moved))
        length = 1.0
        while True:
            there = here - length * way
            found, slope_there = loss(there)
            if found <= least - 1e-4 * length * _product(slope, way):
                break
            length /= 2
            if length < 1e-4:
                return here
        moved, turned = there - here, slope_there - slope
        if _product(moved, turned) > 0:
            steps = [*steps[-_KEPT + 1 :], (moved, turned)]
        here, least, slope = there, found, slope_there
    return here


__all__ = ("USUAL", "ZERO", "Refusals", "fitted")
