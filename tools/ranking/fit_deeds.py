"""Learns `mapper/ranking/deed_words.json`: what each word of a request says of what is to be done, for any service.

A multinomial logit over the lexicon's requests for Google's methods; the last word of a method's name says which of
`deed_model.CLASSES` a request is of. Services count by the root of how many requests they have. What is printed is
measured on a fifth of the services, left out whole; what is written uses all, without the words that say little.

    python -m tools.ranking.fit_deeds [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapper.ranking import deed_model, lexicon
from mapper.ranking.deed_model import CLASSES
from mapper.ranking.document_match import plainly
from mapper.ranking.terms import marked_words, split_name

_SEEN, _SERVICES = 6, 4  # requests and services that a word must be of
_PULL, _ROUNDS = 3e-4, 120
_TELLING = 0.3
_FOLDS = 5
_VERBS = {
    "list": "list search aggregated find lookup query",
    "get": "get read retrieve fetch check test export download count describe",
    "create": "insert create add import upload send generate append",
    "update": "patch update set modify edit replace move",
    "delete": "delete remove trash clear purge",
}
_CLASS_OF = {verb: CLASSES.index(name) for name, verbs in _VERBS.items() for verb in verbs.split()}
_FOLDER = Path(__file__).parents[2] / "mapper"


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of the lexicon."""

    service: str
    terms: frozenset[str]
    wanted: int  # of `CLASSES`


def samples() -> list[Sample]:
    """The lexicon's requests for Google's services."""
    found = []
    for path in sorted((_FOLDER / "lexicon" / "google").glob("*.toml")):
        for name, asks in lexicon.of_service("google", path.stem).asks.items():
            last = name.rpartition(".")[2]
            if "*" in last:
                continue
            verb = split_name(last).lower().split()[0]
            wanted = _CLASS_OF.get(verb, CLASSES.index("act"))
            found += [Sample(path.stem, deed_model.terms(plainly(marked_words(ask))), wanted) for ask in asks]
    return found


def learned(found: Sequence[Sample], vocabulary: Sequence[str]) -> Any:
    """The weights: a row for what every request has, one for each word, one of zeros. Deterministic."""
    number = {term: place for place, term in enumerate(vocabulary, 1)}
    nothing, count = len(vocabulary) + 1, len(CLASSES)
    rows = [[0, *sorted(number[term] for term in each.terms if term in number)] for each in found]
    width = max(map(len, rows))
    at = np.array([row + [nothing] * (width - len(row)) for row in rows])
    often = Counter(each.service for each in found)
    weight = np.array([often[each.service] ** -0.5 for each in found])
    weight = (weight / weight.sum())[:, None]
    aim = np.eye(count)[[each.wanted for each in found]]
    weights = np.zeros((nothing + 1, count))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _ROUNDS + 1):
        scores = weights[at].sum(axis=1)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        off = (shares - aim) * weight
        columns = [np.bincount(at.ravel(), np.repeat(off[:, c], width), nothing + 1) for c in range(count)]
        slope = np.stack(columns, axis=1) + _PULL * weights
        slope[nothing] = 0
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        rate = 0.1 * (1 - step / (_ROUNDS + 1))
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return weights


def right_pct(found: Sequence[Sample], vocabulary: Sequence[str], weights: Any) -> float:
    """How often the likeliest class is the right one."""
    number = {term: place for place, term in enumerate(vocabulary, 1)}
    hits = 0
    for each in found:
        scores = weights[[0, *(number[term] for term in each.terms if term in number)]].sum(axis=0)
        hits += int(scores.argmax()) == each.wanted
    return round(100 * hits / len(found), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, report, and write when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    found = samples()
    services = sorted({each.service for each in found})
    seen = Counter(term for each in found for term in each.terms)
    of = Counter(term for service, term in {(each.service, term) for each in found for term in each.terms})
    vocabulary = sorted(term for term, count in seen.items() if count >= _SEEN and of[term] >= _SERVICES)
    left = set(services[::_FOLDS])
    weights = learned([each for each in found if each.service not in left], vocabulary)
    held = right_pct([each for each in found if each.service in left], vocabulary, weights)
    weights = learned(found, vocabulary)
    weights -= weights.mean(axis=1, keepdims=True)
    kept = {
        term: [round(float(value), 2) for value in row]
        for term, row in zip(["", *vocabulary], weights, strict=False)
        if not term or abs(row).max() > _TELLING
    }
    out = {"requests": len(found), "words": len(kept), "right on services left out, %": held}
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    if options.write:
        lines = ",\n".join(f"{json.dumps(term)}: {json.dumps(row)}" for term, row in kept.items())
        (_FOLDER / "ranking" / "deed_words.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
