"""Fits the ranking's weights to requests of our own, and writes `mapper/ranking/weights.json`. A developer's tool.

A conditional logit: among the methods that are scored for a request, the acceptable ones should have all the
probability. Weights that say how well words fit can't be negative, so that no accident of the sample turns evidence
around. What is printed is measured by ten-fold cross-validation over the requests; what is written uses all of them.

    python -m mapper.evaluation.fitting --catalog CATALOG.DB INTENTS.txt [--check REQUESTS.jsonl] [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapper.evaluation.retrieval import Wanted, read
from mapper.ranking import features
from mapper.ranking.index import Index
from mapper.ranking.weights import Weights

_FOLDS = 10
_PULL = 0.002  # towards 0, in units of standard deviations
_FREE = frozenset(
    ("family_gap", "mood", "depth", "root", "batch", "located", "path_missing", "main", "bias", "unknown", "length",
     "nearest_refused", "family", "margin", "family_margin", "asks")
)  # fmt: skip
_FIXED = {"connected": 0.4}  # our requests have no connected services to learn this from


@dataclass(frozen=True, slots=True)
class Example:
    """The rows that compete for one request, and which of them are right."""

    wanted: Wanted
    rows: Any
    right: Any
    numbers: Any


def examples(index: Index, requests: Sequence[Wanted]) -> list[Example]:
    """The competition of each request that something serves; `right` is empty where no right method competes."""
    found = []
    for wanted in requests:
        if wanted.sets:
            numbers, rows = index.competition(wanted.text)
            right = np.isin(numbers, sorted(n for name in wanted.methods for n in index.numbers_of(name)))
            found.append(Example(wanted, rows, np.flatnonzero(right), numbers))
    return found


def fitted(found: Sequence[Example], names: Sequence[str], *, pull: float = _PULL, rounds: int = 400) -> Any:
    """The weights that make the right rows likeliest, found by projected gradient steps (Adam). Deterministic."""
    usable = [each for each in found if len(each.right)]
    spread = np.concatenate([each.rows[:200] for each in usable]).std(axis=0)
    spread[spread < 1e-6] = 1.0
    scaled = [(each.rows / spread, each.right) for each in usable]
    bound = np.array([name not in _FREE for name in names])
    fixed = np.array([_FIXED.get(name, np.nan) for name in names]) * spread
    weights = np.full(len(names), 0.1)
    first, second = np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, rounds + 1):
        slope = 2 * pull * weights
        for rows, right in scaled:
            scores = rows @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            aim = np.zeros(len(shares))
            aim[right] = shares[right] / max(shares[right].sum(), 1e-12)
            slope += rows.T @ (shares - aim) / len(scaled)
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        rate = 0.08 * (1 - step / (rounds + 1))
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        weights = np.where(bound, np.maximum(weights, 0.0), weights)
        weights = np.where(np.isnan(fixed), weights, fixed)
    return weights / spread


def accuracy(found: Sequence[Example], weights: Any, index: Index) -> dict[str, float]:
    """Method first, whole set within twenty, service first: per cent of the examples."""
    first = within = service = 0
    for each in found:
        scores = each.rows @ weights
        order = np.lexsort((each.numbers, -scores))
        first += bool(np.isin(order[0], each.right))
        names = [index.origin_of(int(each.numbers[n])) for n in order[:20]]
        within += any(set(calls) <= set(names) for calls in each.wanted.sets)
        families = {index.family_of(name) for name in each.wanted.methods}
        service += index.family_of(names[0]) in families
    count = max(len(found), 1)
    return {
        "service_top1_pct": round(100 * service / count, 1),
        "method_first_pct": round(100 * first / count, 1),
        "within_20_pct": round(100 * within / count, 1),
    }


def crossed(found: Sequence[Example], names: Sequence[str], index: Index) -> dict[str, float]:
    """Accuracy by cross-validation: each example judged with weights fitted without its fold."""
    total: dict[str, float] = {}
    for fold in range(_FOLDS):
        kept = [each for n, each in enumerate(found) if n % _FOLDS != fold]
        left = [each for n, each in enumerate(found) if n % _FOLDS == fold]
        for name, value in accuracy(left, fitted(kept, names), index).items():
            total[name] = total.get(name, 0.0) + value * len(left) / len(found)
    return {name: round(value, 1) for name, value in total.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, report, and write when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--check", type=Path, help="requests that nothing is fitted to")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("intents", type=Path)
    options = parser.parse_args(arguments)
    index = Index.open(options.catalog)
    found = examples(index, read(options.intents))
    weights = fitted(found, features.NAMES)
    out: dict[str, Any] = {"crossed": crossed(found, features.NAMES, index)}
    out["fitted"] = accuracy(found, weights, index)
    if options.check:
        out["check"] = accuracy(examples(index, read(options.check)), weights, index)
        out["check_as_committed"] = accuracy(examples(index, read(options.check)), Weights.bundled().method, index)
    out["weights"] = {name: round(float(value), 3) for name, value in zip(features.NAMES, weights, strict=True)}
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    if options.write:
        path = Path(__file__).parent.parent / "ranking" / "weights.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        whole["method"] = out["weights"]
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
