"""Finding a method by words, for a person who looks through the catalog: plain, without a model, in one pass.

Rules: a word counts more the fewer methods hold it, and more in a name than in a description; a word that begins like
one of the document's is enough. Methods that GoEx can't call come after those that it can.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mapper.catalog import Catalog
from policies.catalog import Risk
from policies.errors import InvalidInput

MAX_WORDS = 12
_WORD = re.compile(r"[a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME, _SERVICE, _TEXT = 3.0, 2.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One method, and how well it fits; scores compare within one search only."""

    service: str
    name: str
    description: str
    risk: Risk
    unsupported: str
    score: float

    @property
    def id(self) -> str:
        return f"{self.service}.{self.name}"


def search(catalog: Catalog, text: str, *, limit: int = 20, main: bool = True) -> tuple[Found, ...]:
    """The methods that fit `text` best, best first. Raises InvalidInput for no words, StoreUnreadable."""
    words = [_stem(word) for word in dict.fromkeys(_WORD.findall(_CAMEL.sub(" ", text).lower()))][:MAX_WORDS]
    if not words:
        raise InvalidInput("There is no word to search for.", next_step="Search like: goex catalog search send mail")
    patterns = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}") for word in words]
    hits: list[tuple[list[float], tuple[str, str, str, str, Risk, str]]] = []
    holds = [0] * len(words)
    total = 0
    for row in _rows(catalog, main=main):
        total += 1
        service, title, name, description, _, _ = row
        fields = (
            (_CAMEL.sub(" ", name).lower(), _NAME),
            (f"{service} {title}".lower(), _SERVICE),
            (description.lower(), _TEXT),
        )
        weights = [
            max((weight for field, weight in fields if pattern.search(field)), default=0.0) for pattern in patterns
        ]
        if any(weights):
            hits.append((weights, row))
            holds = [count + bool(weight) for count, weight in zip(holds, weights, strict=True)]
    rare = [math.log(1 + total / (count + 1)) for count in holds]
    found = [
        Found(
            service=row[0],
            name=row[2],
            description=row[3],
            risk=row[4],
            unsupported=row[5],
            score=round(sum(w * r for w, r in zip(weights, rare, strict=True)) * sum(map(bool, weights)), 3),
        )
        for weights, row in hits
    ]
    found.sort(key=lambda one: (bool(one.unsupported), -one.score, len(one.name), one.id))
    return tuple(found[:limit])


def _rows(catalog: Catalog, *, main: bool) -> Iterator[tuple[str, str, str, str, Risk, str]]:
    own = Catalog.bundled().services
    for service in own.values():
        for method in service.methods.values():
            yield service.name, service.title, method.name, method.description, method.risk, method.unsupported
    if catalog.store is not None:
        stored: Iterable[tuple[str, str, str, str, Risk, str]] = catalog.store.texts(main=main)
        yield from (row for row in stored if row[0] not in own)


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
