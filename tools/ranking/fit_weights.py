"""Fits the ranking's weights to requests of our own, and writes `mapper/ranking/weights.json`. A developer's tool.

Two conditional logits: among all families, those that serve a request should have all the probability; among the
methods of such a family, the acceptable ones should. Weights that say how well words fit can't be negative, so that
no accident of the sample turns evidence around. Then how sure the whole is (`sureness`). What is printed is measured
by ten-fold cross-validation over the requests; what is written uses all of them.

    python -m tools.ranking.fit_weights --catalog CATALOG.DB INTENTS.txt [--check REQUESTS.jsonl] [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapper.evaluation.retrieval import Wanted, read
from mapper.ranking import features
from mapper.ranking.index import Competition, Index
from mapper.ranking.weights import Weights

_FOLDS = 10
_PULL = 0.002  # towards 0, in units of standard deviations
_FREE = frozenset(
    ("mood", "depth", "root", "batch", "located", "path_missing", "item_named", "item_unnamed", "several_named",
     "whole", "bias", "unknown", "length", "nearest_refused",
     "family", "margin", "family_margin")
)  # fmt: skip
_FIXED = {"connected": 0.4}  # our requests have no connected services to learn this from


@dataclass(frozen=True, slots=True)
class Rows:
    """What competes, and which of it is right."""

    rows: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Example:
    """The competition for one request that something serves."""

    wanted: Wanted
    competition: Competition
    families: Rows
    within: Rows  # the methods of the right families; none right where no right method competes


def examples(index: Index, requests: Sequence[Wanted]) -> list[Example]:
    """The competition of each request that something serves."""
    found = []
    for wanted in requests:
        if not wanted.sets:
            continue
        competition = index.competition(wanted.text)
        numbers = sorted({n for name in wanted.methods for n in index.numbers_of(name)})
        families = np.unique(index.families_of(numbers))
        own = np.flatnonzero(np.isin(competition.family_of, families))
        right = np.flatnonzero(np.isin(competition.numbers[own], numbers))
        found.append(
            Example(wanted, competition, Rows(competition.families, families), Rows(competition.rows[own], right))
        )
    return found


@dataclass(frozen=True, slots=True)
class Fit:
    """The weights of both steps."""

    family: Any
    method: Any


def fit(found: Sequence[Example]) -> Fit:
    """Both steps fitted, each for itself."""
    return Fit(
        fitted([each.families for each in found], features.FAMILY_NAMES),
        fitted([each.within for each in found], features.NAMES),
    )


def fitted(
    found: Sequence[Rows], names: Sequence[str], *, pull: float = _PULL, rounds: int = 250,
    free: frozenset[str] = _FREE, fixed: Mapping[str, float] | None = None,
) -> Any:  # fmt: skip
    """The weights that make the right rows likeliest, found by projected gradient steps (Adam). Deterministic."""
    fixed_here = _FIXED if fixed is None else fixed
    usable = [each for each in found if len(each.right)]
    spread = np.concatenate([each.rows[:200] for each in usable]).std(axis=0)
    spread[spread < 1e-6] = 1.0
    scaled = [(each.rows / spread, each.right) for each in usable]
    bound = np.array([name not in free for name in names])
    held = np.array([fixed_here.get(name, np.nan) for name in names]) * spread
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
        weights = np.where(np.isnan(held), weights, held)
    return weights / spread


@dataclass(frozen=True, slots=True)
class Signs:
    """What tells how sure a ranking is, for many requests: whether the first method was right, and whether any is."""

    rows: Any
    right: Any
    served: Any
    weight: Any


_REFUSED = 100.0  # requests that all the lexicon's refused examples count for together


def signs(index: Index, requests: Sequence[Wanted], *, lexicon: bool) -> Signs:
    """The signs of these requests, and with `lexicon` those of the examples that nothing serves, each unseen."""
    rows, right, served, weight = [], [], [], []
    for wanted in requests:
        row, hit = index.signs(wanted.text)
        rows.append(row)
        right.append(hit is not None and hit.origin_id in wanted.methods)
        served.append(bool(wanted.sets))
        weight.append(1.0)
    refused = index.refused() if lexicon else []
    for number, text in refused:
        rows.append(index.signs(text, without=number)[0])
        right.append(False)
        served.append(False)
        weight.append(_REFUSED / len(refused))
    return Signs(np.array(rows), np.array(right), np.array(served), np.array(weight))


# Which way each sign can speak for a right first method; for "nothing serves it", the other way. 0: either.
_WAYS = {"bias": 0, "length": 0, "refused": -1, "refused_more": -1, "refused_here": -1, "unknown": -1, "elsewhere": -1}


def signed(rows: Any, truth: Any, weight: Any, way: int) -> Any:
    """Logistic regression without the signs that would speak the wrong way, which only a small sample can make them."""
    ways = np.array([_WAYS.get(name, 1) * way for name in features.RANKING_NAMES])
    kept = np.ones(len(ways), bool)
    while True:
        weights = np.zeros(len(ways))
        weights[kept] = logistic(rows[:, kept], truth, weight)
        wrong = kept & (weights * ways < 0)
        if not wrong.any():
            return weights
        kept &= ~wrong


def logistic(rows: Any, truth: Any, weight: Any, *, pull: float = 0.01, rounds: int = 60) -> Any:
    """Logistic regression by Newton's steps, pulled towards 0 in units of standard deviations (not the bias)."""
    spread = rows.std(axis=0)
    spread[spread < 1e-6] = 1.0
    scaled = rows / spread
    weights = np.zeros(rows.shape[1])
    total = weight.sum()
    ridge = np.full(rows.shape[1], pull)
    ridge[0] = 1e-6
    for _ in range(rounds):
        likely = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        slope = scaled.T @ (weight * (likely - truth)) / total + ridge * weights
        curve = (scaled * (weight * likely * (1 - likely))[:, None]).T @ scaled / total + np.diag(ridge)
        weights = weights - np.linalg.solve(curve, slope)
    return weights / spread


def sureness(found: Signs, wanted: Signs) -> dict[str, Any]:
    """Fitted to `found`, judged on `wanted`: how well right and wrong, served and unserved are told apart."""
    sure = signed(found.rows[found.served], found.right[found.served], found.weight[found.served], 1)
    nothing = signed(found.rows, ~found.served, found.weight, -1)
    likely = 1 / (1 + np.exp(-wanted.rows @ sure))
    none = 1 / (1 + np.exp(-wanted.rows @ nothing))
    own = wanted.served
    bins = [
        (
            round(float(likely[own & part].mean()), 2),
            round(float(wanted.right[own & part].mean()), 2),
            int(part[own].sum()),
        )
        for low in (0.0, 0.25, 0.5, 0.75, 0.9)
        if (
            own & (part := (likely >= low) & (likely < {0.0: 0.25, 0.25: 0.5, 0.5: 0.75, 0.75: 0.9, 0.9: 1.1}[low]))
        ).any()
    ]
    return {
        "first_right_auc": _auc(likely[own], wanted.right[own]),
        "calibration": bins,  # said, true, how many
        "nothing_auc": _auc(none, ~own),
        "declined_pct_where_5_pct_of_served_are": _caught(none, own, 5),
        "declined_pct_where_10_pct_of_served_are": _caught(none, own, 10),
        "sure": sure,
        "nothing": nothing,
    }


def _auc(scores: Any, truth: Any) -> float:
    yes, no = scores[truth], scores[~truth]
    if not len(yes) or not len(no):
        return 0.0
    return round(float(((yes[:, None] > no[None, :]) + 0.5 * (yes[:, None] == no[None, :])).mean()), 3)


def _caught(none: Any, served: Any, pct: int) -> float:
    """Unserved requests above the level that `pct` % of the served ones reach."""
    level = np.quantile(none[served], 1 - pct / 100)
    return round(100 * float((none[~served] > level).mean()), 1)


def accuracy(found: Sequence[Example], weights: Fit | Weights, index: Index) -> dict[str, float]:
    """Service first (by the first method, and by the first step alone), method first, whole set within twenty."""
    hits = {"service_top1_pct": 0, "first_step_pct": 0, "method_first_pct": 0, "within_20_pct": 0}
    for each in found:
        competition = each.competition
        families = competition.families @ weights.family
        scores = features.combined(families, competition.family_of, competition.rows @ weights.method)
        order = np.lexsort((competition.numbers, -scores))[:20]
        names = [index.origin_of(int(competition.numbers[n])) for n in order]
        hits["service_top1_pct"] += int(competition.family_of[order[0]]) in each.families.right
        hits["first_step_pct"] += int(families.argmax()) in each.families.right
        hits["method_first_pct"] += names[0] in each.wanted.methods
        hits["within_20_pct"] += any(set(calls) <= set(names) for calls in each.wanted.sets)
    return {name: round(100 * count / max(len(found), 1), 1) for name, count in hits.items()}


def crossed(found: Sequence[Example], index: Index) -> dict[str, float]:
    """Accuracy by cross-validation: each example judged with weights fitted without its fold."""
    total: dict[str, float] = {}
    for fold in range(_FOLDS):
        kept = [each for n, each in enumerate(found) if n % _FOLDS != fold]
        left = [each for n, each in enumerate(found) if n % _FOLDS == fold]
        for name, value in accuracy(left, fit(kept), index).items():
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
    made = fit(found)
    out: dict[str, Any] = {"crossed": crossed(found, index), "fitted": accuracy(found, made, index)}
    if options.check:
        out["check"] = accuracy(examples(index, read(options.check)), made, index)
    told = signs(index, read(options.intents), lexicon=True)
    judged = sureness(told, signs(index, read(options.check), lexicon=False) if options.check else told)
    sure, nothing = judged.pop("sure"), judged.pop("nothing")
    out["sureness"] = judged
    for part, names, weights in (
        ("family", features.FAMILY_NAMES, made.family),
        ("method", features.NAMES, made.method),
        ("sure", features.RANKING_NAMES, sure),
        ("nothing", features.RANKING_NAMES, nothing),
    ):
        out[part] = {name: round(float(value), 3) for name, value in zip(names, weights, strict=True)}
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    if options.write:
        path = Path(__file__).parents[2] / "mapper" / "ranking" / "weights.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        whole.update({part: out[part] for part in ("family", "method", "sure", "nothing")})
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
