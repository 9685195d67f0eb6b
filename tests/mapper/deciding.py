"""Fits how the embedded proposer decides: is its likeliest reading right, does nothing serve the request?

Two logistic regressions over `mapper.embedded.SIGNS`, written to `mapper/deciding.json`. They learn from requests of
our own over Google's catalog alone (`tests/vectors/requests.jsonl`, and those that the ranking's weights learned from),
and from phrasings over the bundled services (`tests/mapper/phrasings.py`, those for training). A developer's tool; what
it prints is measured by ten-fold cross-validation, what it writes uses all of them.

    python -m tests.mapper.deciding [--check REQUESTS.jsonl] [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

import mapper
from mapper.catalog import Catalog
from mapper.embedded import DECLINES, SIGNS, SURE, EmbeddedProposer
from mapper.evaluation import alone
from mapper.evaluation.retrieval import read
from tests.mapper.phrasings import TRAINING, UNANSWERABLE
from tests.mapper.phrasings_more import TRAINING_MORE, UNANSWERABLE_MORE
from tools.ranking.fit_weights import logistic

VECTORS = Path(__file__).parent.parent / "vectors"
INTENTS = Path(__file__).parent / "ranking" / "intents.txt"

_FOLDS = 10
_PULL = 0.02
_UNSERVED_PHRASING = 0.3  # there are far more of them than people ask


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: the signs of its likeliest reading, and what is true of it."""

    signs: tuple[float, ...]
    right: bool
    served: bool
    runs: bool  # complete, and everything that was named is used
    weight: float  # in the question whether nothing serves it
    bar: float  # of its risk


def requests(path: Path, proposer: EmbeddedProposer) -> Iterator[Seen]:
    """What the proposer sees in a file of requests with their acceptable calls."""
    for wanted in read(path):
        right = frozenset(wanted.methods)
        seen = _seen(
            proposer, wanted.text, bool(wanted.sets), lambda method, right=right: method.origin_id in right, 1.0
        )
        if seen is not None:
            yield seen


def phrasings(proposer: EmbeddedProposer) -> Iterator[Seen]:
    """The same for phrasings over the bundled services."""
    served = [(words, method) for words, method, _ in (*TRAINING, *TRAINING_MORE)]
    for text, wanted in (*served, *((words, "") for words in (*UNANSWERABLE, *UNANSWERABLE_MORE))):
        weight = 1.0 if wanted else _UNSERVED_PHRASING
        seen = _seen(proposer, text, bool(wanted), lambda method, wanted=wanted: method.id == wanted, weight)
        if seen is not None:
            yield seen


def _seen(proposer: EmbeddedProposer, text: str, served: bool, is_right: Any, weight: float) -> Seen | None:
    readings, signs = proposer.readings(text)
    if not readings:
        return None
    best = readings[0]
    return Seen(
        signs=tuple(signs[name] for name in SIGNS),
        right=served and bool(is_right(best.method)),
        served=served,
        runs=bool(best.calls) and not best.unused,
        weight=weight,
        bar=SURE[best.method.risk],
    )


def traded(seen: Sequence[Seen], weights: Sequence[dict[str, Any]]) -> list[tuple[float, float, float]]:
    """What a bar for declining costs: (bar, unserved declined %, served declined %)."""
    nothing = [
        float(1 / (1 + np.exp(-np.array(each.signs) @ own["nothing"]))) for each, own in zip(seen, weights, strict=True)
    ]
    unserved = [score for score, each in zip(nothing, seen, strict=True) if not each.served]
    served = [score for score, each in zip(nothing, seen, strict=True) if each.served]
    return [
        (bar, *(round(100 * float(np.mean(np.array(scores) >= bar)), 1) for scores in (unserved, served)))
        for bar in (0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5)
    ]


def fit(seen: Sequence[Seen]) -> dict[str, Any]:
    """The weights of both questions."""
    rows = np.array([each.signs for each in seen])
    weight = np.array([each.weight for each in seen])
    return {
        "right": logistic(rows, np.array([each.right for each in seen], float), np.ones(len(seen)), pull=_PULL),
        "nothing": logistic(rows, np.array([not each.served for each in seen], float), weight, pull=_PULL),
    }


def judged(seen: Sequence[Seen], weights: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What would come of it: `weights` holds those that each request is judged by."""
    done = wrong = declined = wrongly = 0
    for each, own in zip(seen, weights, strict=True):
        right, nothing = (1 / (1 + np.exp(-np.array(each.signs) @ own[what])) for what in ("right", "nothing"))
        if nothing >= DECLINES:
            declined += not each.served
            wrongly += each.served
        elif right >= each.bar and each.runs:
            done += 1
            wrong += not each.right
    unserved = sum(not each.served for each in seen)
    return {
        "n": len(seen),
        "done": done,
        "done_wrong": wrong,
        "unserved": unserved,
        "declined_pct": round(100 * declined / max(unserved, 1), 1),
        "declined_wrongly_pct": round(100 * wrongly / max(len(seen) - unserved, 1), 1),
    }


def crossed(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """For each request, weights fitted without its fold."""
    folds = [fit([each for number, each in enumerate(seen) if number % _FOLDS != fold]) for fold in range(_FOLDS)]
    return [folds[number % _FOLDS] for number in range(len(seen))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print, and write what was found if that is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.mapper.deciding")
    parser.add_argument("--cache", type=Path, default=Path(gettempdir()), help="where Google's catalog is built")
    parser.add_argument("--check", type=Path)
    parser.add_argument("--write", action="store_true")
    wanted = parser.parse_args(arguments)
    bundled = EmbeddedProposer(Catalog.bundled())
    with alone.of_package(wanted.cache) as google:
        proposer = google.proposer()
        own = list(requests(VECTORS / "requests.jsonl", proposer))
        near = [*phrasings(bundled), *requests(INTENTS, proposer)]
        held = list(requests(wanted.check, proposer)) if wanted.check else []
    seen = own + near
    by_fold = crossed(seen)
    weights = fit(seen)
    report = {
        "requests": judged(own, by_fold[: len(own)]),
        "others": judged(near, by_fold[len(own) :]),
        "traded": traded(own, by_fold[: len(own)]),
        "check": judged(held, [weights] * len(held)),
        "check_traded": traded(held, [weights] * len(held)) if held else [],
        **{what: {name: round(float(w), 3) for name, w in zip(SIGNS, weights[what], strict=True)} for what in weights},
    }
    for name, value in report.items():
        print(name, json.dumps(value))
    if wanted.write:
        made = {what: report[what] for what in ("right", "nothing")}
        path = Path(mapper.__file__).parent / "deciding.json"
        path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
