"""What a request wants done, as probabilities: to list, to look at one thing, to create, change, delete, or to act.

The weights are learned from the lexicon's requests by `tools.ranking.fit_deeds` and hold for any service: its words are
verbs, question words, and what kind of value stands in the request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from mapper.ranking.terms import STOP, stem

CLASSES = ("list", "get", "create", "update", "delete", "act")

_LOOKED_AT = 40  # words
_TOLD = frozenset(("<quoted>", "<email>", "<number>", "<url>", "<file>", "<date>", "<time>"))


def terms(marked: Iterable[tuple[str, bool]]) -> frozenset[str]:
    """What weights are for: stems, small words, kinds of values, how the request begins, whether things are many."""
    found: set[str] = set()
    plain = [word for word, quoted in marked if not quoted and not word.endswith("/")][:_LOOKED_AT]
    for place, word in enumerate(plain):
        special = word.startswith("<") or word == "?"
        stemmed = word if special else stem(word)
        if word.startswith("<") and word not in _TOLD:
            stemmed = "<id>"
        found.add(stemmed)
        if word not in STOP and word.endswith("s") and len(word) > 4 and not word.endswith(("ss", "us", "is")):
            found.add("~s")
        if place == 0:
            found.add(f"^{stemmed}")
        elif place == 1:
            found.add(f"^^{plain[0]} {stemmed}")
    return frozenset(found)


def likely(marked: Iterable[tuple[str, bool]]) -> tuple[float, ...]:
    """The log probability of each of `CLASSES`."""
    weights = _weights()
    rows = [weights[""], *(weights[term] for term in sorted(terms(marked)) if term in weights)]
    scores = [sum(column) for column in zip(*rows, strict=True)]
    most = max(scores)
    whole = most + math.log(sum(math.exp(score - most) for score in scores))
    return tuple(score - whole for score in scores)


@cache
def _weights() -> Mapping[str, tuple[float, ...]]:
    """For each term what it adds to each of `CLASSES`; "" for what every request has."""
    text = (files("mapper") / "ranking" / "deed_words.json").read_text(encoding="utf-8")
    return {term: tuple(row) for term, row in json.loads(text).items()}
