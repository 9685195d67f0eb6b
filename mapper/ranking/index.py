"""Ranking: a request in words to services and methods, from the tables that `mapper.ranking.index_tables` made.

A request's terms are looked up once; what they say for families, resources, last words, methods and examples is summed
(`reading`); a linear model over `features.FAMILY_NAMES` says how likely each family is, another over
`features.NAMES` how likely each method is within its family. `tools.ranking.fit_weights` fits their weights.
Deterministic. Safe to share between threads. Each question is answered from one state of the tables.
"""

from __future__ import annotations

import math
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mapper.ranking import clauses, document_match, features, index_tables
from mapper.ranking.companions import MOST, accompanied
from mapper.ranking.features import Evidence, Request
from mapper.ranking.index_reader import Reader
from mapper.ranking.method_documents import ELSEWHERE
from mapper.ranking.weights import Weights
from mapper.store.catalog_reader import Store
from mapper.store.database import open_reading, translated
from policies.services import Service

ServiceChooser = Callable[[str, Sequence[tuple[str, str]]], Sequence[str]]
"""Chooses services for a request: (text, [(service, title), best first]) to the names of the chosen ones."""

_OFFERED = 40  # families that a chooser chooses among
_TEMPERED = 0.75  # how far the odds between two rankings are trusted where their methods take turns
_LEAST = 0.05  # the probability that either has at least there
_STEEP = 1.5  # the lexicon's right method is among its first few or nowhere: its later places wait longer for a turn
_TELLING = 0.15  # likeness from which an example is named as a reason
_FAMILIES = 10  # likeliest families whose methods are scored


@dataclass(frozen=True, slots=True)
class Hit:
    """One method and how well it fits. Scores are log odds within one ranking; `why` says which words spoke for it."""

    method_id: str
    service: str
    score: float
    why: tuple[str, ...] = ()
    origin_id: str = ""

    @property
    def method(self) -> str:
        """The method's name below its service."""
        return self.method_id[len(self.service) + 1 :]


@dataclass(frozen=True, slots=True)
class Found:
    """A ranking: hits best first; `confidence`, the probability that the first is right if any method is (and that the
    request is for the lexicon's services at all, where documents compete with these); `nothing`,
    the probability that no method serves the request; `features.TRAITS` of the first, none where only the documents of
    its service speak of it (`by_documents`)."""

    hits: tuple[Hit, ...]
    confidence: float
    nothing: float
    traits: Mapping[str, float] = field(default_factory=dict)
    by_documents: bool = False


@dataclass(frozen=True, slots=True)
class Competition:
    """What competes: `features.FAMILY_NAMES` of every family, `features.NAMES` of the likeliest families' methods."""

    families: Any
    numbers: Any
    family_of: Any
    rows: Any


@dataclass(frozen=True, slots=True)
class _Ranked:
    """What competes for a request, best first."""

    request: Request
    found: Evidence
    families: Any  # scores of all families
    numbers: Any
    scores: Any


@dataclass(frozen=True, slots=True)
class _ByDocuments:
    """What competes where only documents speak, best first; scores are log shares."""

    numbers: Any
    scores: Any
    signs: Any  # `document_match.SIGNS`


class Index:
    """Ranks the methods of one catalog."""

    def __init__(self, db: sqlite3.Connection, weights: Weights | None = None) -> None:
        self._reader = Reader(db)
        self._weights = weights or Weights.bundled()

    @property
    def stamp(self) -> str:
        """What the index was made of."""
        return self._reader.stamp

    @classmethod
    def open(cls, path: Path, weights: Weights | None = None) -> Index:
        """The index of the catalog at `path`; made anew first where it is missing or stale. Raises StoreUnreadable."""
        store = Store(path)
        if not path.exists():
            return cls.bundled(weights)
        wanted = index_tables.stamp(store.generation)
        store.close()
        db = open_reading(path)
        if _stamp_of(db) != wanted:
            db.close()
            index_tables.rebuild(path)
            db = open_reading(path)
        with translated(path):
            return cls(db, weights)

    @classmethod
    def of(cls, services: Iterable[Service], weights: Weights | None = None) -> Index:
        """An index in memory over these services alone."""
        return cls(index_tables.in_memory(services), weights)

    @classmethod
    def bundled(cls, weights: Weights | None = None) -> Index:
        """That over the services that come with GoEx. Made once a process."""
        return cls(index_tables.bundled(), weights)

    # ---- questions

    def search(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20, explain: bool = False,
        chooser: ServiceChooser | None = None, names: Collection[str] = frozenset(),
    ) -> list[Hit]:  # fmt: skip
        """The methods that fit best, best first. See `find`."""
        found = self.find(text, connected=connected, limit=limit, explain=explain, chooser=chooser, names=names)
        return list(found.hits)

    def find(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20, explain: bool = False,
        chooser: ServiceChooser | None = None, names: Collection[str] = frozenset(),
    ) -> Found:  # fmt: skip
        """The methods that fit best, and how sure that is.

        `connected`: services that have an account, preferred among equals. `explain` fills `Hit.why`, which costs
        some time. `chooser` takes the service step: only methods of the services that it names are ranked (all, if it
        names none that there are); `names` are the stems of the words that name these. Where more than `clauses.KEPT`
        are wanted, each thing that a request asks for has a say in the later places, and so have methods that the first
        ones need beside them (`companions`).
        """
        with self._reader.snapshot():
            ranked = self._ranked(text, connected, chooser)
            told = self._by_documents(text, chooser, names)
            if ranked is None and told is None:
                return Found((), 0.0, 1.0)
            hits, found = self._by_lexicon(text, ranked, connected, chooser, limit, explain) if ranked else ((), None)
            if told is None:
                return replace(found, hits=hits) if found else Found((), 0.0, 1.0)
            others = self._document_hits(told, limit)
            confidence = _logistic(told.signs @ self._weights.document_sure)
            nothing = _logistic(told.signs @ self._weights.document_nothing)
            if found is None or ranked is None:
                return Found(others, confidence, nothing, by_documents=True)
            sided = self._sides(told, ranked) @ self._weights.document_side
            merged = _merged(hits, others, float(sided), limit)
            if any(merged[0].method_id == hit.method_id for hit in others):
                return Found(merged, confidence, nothing, by_documents=True)
            return replace(found, hits=merged, confidence=round(found.confidence * _logistic(-sided), 4))

    def _by_lexicon(
        self, text: str, ranked: _Ranked, connected: Collection[str], chooser: ServiceChooser | None, limit: int,
        explain: bool,
    ) -> tuple[tuple[Hit, ...], Found]:  # fmt: skip
        signs, traits = self._signs(ranked)
        best = ranked.numbers[:limit].tolist()
        scores = ranked.scores[:limit]
        if limit > clauses.KEPT:
            best, scores = self._shared(text, ranked, connected, chooser, limit)
        reasons = [self._why(ranked, number) if explain else () for number in best]
        hits = tuple(
            Hit(f"{service}.{name}", service, round(float(score), 4), why, origin)
            for (service, name, origin), score, why in zip(self._reader.named(best), scores, reasons, strict=True)
        )
        confidence, nothing = _logistic(signs @ self._weights.sure), _logistic(signs @ self._weights.nothing)
        return hits, Found((), confidence, nothing, traits)

    def _by_documents(self, text: str, chooser: ServiceChooser | None, names: Collection[str]) -> _ByDocuments | None:
        """The methods of services that only their documents speak of; None where none competes."""
        families = self._reader.documents.families
        if chooser is not None and families:
            known = self._reader.families
            wanted = set(chooser(text, [known[number] for number in sorted(families)]))
            families = frozenset(number for number in families if known[number][0] in wanted)
        if not families:
            return None
        asked = document_match.query(text, names)
        numbers, rows = self._reader.by_documents(asked, families)
        if not asked.concepts or not len(numbers):
            return None
        if chooser is None and not rows[:, document_match.FEATURES.index("covered")].any():
            return None  # no document says any of these words
        scores = rows @ self._weights.document
        order = np.lexsort((numbers, -scores))
        scores = scores[order] - features.log_sum(scores)
        signs = document_match.signs(asked, rows[order[:2]], scores, chooser is not None)
        return _ByDocuments(numbers[order], scores, signs)

    def _document_hits(self, told: _ByDocuments, limit: int) -> tuple[Hit, ...]:
        best = told.numbers[:limit].tolist()
        return tuple(
            Hit(f"{service}.{name}", service, round(float(score), 4), (), origin)
            for (service, name, origin), score in zip(self._reader.named(best), told.scores, strict=False)
        )

    def _sides(self, told: _ByDocuments, ranked: _Ranked) -> Any:
        """`document_match.SIDES`."""
        mine = dict(zip(document_match.SIGNS, told.signs.tolist(), strict=True))
        names = document_match.SIDES[1 : -len(features.RANKING_NAMES) + 1]
        return np.array([1.0, *(mine[name] for name in names), *self._signs(ranked)[0].tolist()[1:]])

    def services(
        self, text: str, limit: int = 5, *, connected: Collection[str] = frozenset()
    ) -> list[tuple[str, float, tuple[str, ...]]]:
        """The services that fit best, best first: (name, score, the words that speak for it)."""
        with self._reader.snapshot():
            request, found = self._reader.asked(text, connected)
            scores = features.of_families(request, found, self._reader.arrays) @ self._weights.family
            return [
                (
                    self._reader.families[number][0],
                    round(float(scores[number]), 4),
                    self._reader.words_for(request, found, "family", number),
                )
                for number in self._likeliest(found, scores, limit)
            ]

    def knows(self, words: Iterable[str]) -> bool:
        """Whether each of these is a word that some method or example is spoken of with."""
        with self._reader.snapshot():
            return self._reader.has(words)

    def untold(self, services: Collection[str]) -> frozenset[str]:
        """Those of the services that only their documents speak of."""
        known, told = self._reader.families, self._reader.documents.families
        return frozenset(services) & {known[number][0] for number in told}

    def family_of(self, origin_id: str) -> str:
        """The main service of the API that has a method of this provider's id; "" where none has."""
        with self._reader.snapshot():
            numbers = self._reader.numbers_of(origin_id)
            return self._reader.families[int(self._reader.arrays["method_family"][numbers[0]])][0] if numbers else ""

    def candidates(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20,
        chooser: ServiceChooser | None = None, names: Collection[str] = frozenset(),
    ) -> list[Hit]:  # fmt: skip
        """Methods for a model to choose among: mostly the best, and of the next services some in any case."""
        hits = self.search(text, connected=connected, limit=limit * 4, chooser=chooser, names=names)
        return interleaved(hits, limit)

    # ---- for fitting

    def documents_of(
        self, text: str, services: Collection[str] = (), names: Collection[str] = frozenset()
    ) -> tuple[list[str], Any]:
        """The methods of services (all, where none is given) that only their documents speak of, with
        `document_match.FEATURES`."""
        with self._reader.snapshot():
            known, told = self._reader.families, self._reader.documents.families
            families = [number for number in told if not services or known[number][0] in services]
            numbers, rows = self._reader.by_documents(document_match.query(text, names), families)
            return [f"{own}.{name}" for own, name, _ in self._reader.named(numbers.tolist())], rows

    def document_signs(
        self, text: str, chooser: ServiceChooser | None, names: Collection[str] = frozenset()
    ) -> tuple[Any, Any, str]:
        """`document_match.SIGNS`, `document_match.SIDES` and the first method by documents; "" where none competes."""
        with self._reader.snapshot():
            told = self._by_documents(text, chooser, names)
            ranked = self._ranked(text, (), chooser)
            if told is None:
                return np.zeros(len(document_match.SIGNS)), np.zeros(len(document_match.SIDES)), ""
            first = self._document_hits(told, 1)[0].method_id
            if ranked is None:
                return told.signs, np.zeros(len(document_match.SIDES)), first
            return told.signs, self._sides(told, ranked), first

    def competition(self, text: str) -> Competition:
        """What competes for a request, as the linear models see it."""
        with self._reader.snapshot():
            request, found = self._reader.asked(text, ())
            families = features.of_families(request, found, self._reader.arrays)
            chosen = self._likeliest(found, families @ self._weights.family, _FAMILIES)
            numbers, rows = self._competing(request, found, chosen)
            return Competition(families, numbers, self._reader.arrays["method_family"][numbers], rows)

    def signs(self, text: str, *, without: int = -1) -> tuple[Any, Hit | None]:
        """`features.RANKING_NAMES` for a request, and the first method. `without`: an example that is left out."""
        with self._reader.snapshot():
            ranked = self._ranked(text, (), None, without)
            if ranked is None:
                return np.zeros(len(features.RANKING_NAMES)), None
            service, name, origin = self._reader.named([int(ranked.numbers[0])])[0]
            hit = Hit(f"{service}.{name}", service, round(float(ranked.scores[0]), 4), (), origin)
            return self._signs(ranked)[0], hit

    def refused(self) -> list[tuple[int, str]]:
        """The examples that no method serves, with their numbers."""
        with self._reader.snapshot():
            return self._reader.refused()

    def numbers_of(self, origin_id: str) -> list[int]:
        """The numbers of the methods that have this provider's id."""
        with self._reader.snapshot():
            return self._reader.numbers_of(origin_id)

    def families_of(self, numbers: Sequence[int]) -> Any:
        """The numbers of the families of methods, by their numbers."""
        return self._reader.arrays["method_family"][list(numbers)]

    def origin_of(self, number: int) -> str:
        """The provider's id of a method, by its number."""
        with self._reader.snapshot():
            return self._reader.named([number])[0][2]

    # ---- inside

    def _shared(
        self, text: str, ranked: _Ranked, connected: Collection[str], chooser: ServiceChooser | None, limit: int
    ) -> tuple[list[int], Any]:
        """The first `limit` methods with their scores, clauses and companions having had their say."""
        whole = ranked.numbers.tolist()
        parts = [self._ranked(clause, connected, chooser) for clause in clauses.clauses(text)]
        rankings = [part.numbers[:limit].tolist() for part in parts if part is not None]
        best = clauses.merged(whole, rankings, limit) if rankings else whole[:limit]
        beside = self._reader.arrays["method_companions"].reshape(-1, MOST)
        best = accompanied(best, [beside[number].tolist() for number in best])
        scored = dict(zip(whole[:limit], ranked.scores[:limit].tolist(), strict=False))
        last = float(ranked.scores[-1])
        for number in best:
            if number not in scored:
                at = np.flatnonzero(ranked.numbers == number)
                scored[number] = float(ranked.scores[at[0]]) if len(at) else last
        scores = np.array([scored[number] for number in best])
        return best, np.minimum.accumulate(scores)  # what was brought in stands where it was put

    def _ranked(
        self, text: str, connected: Collection[str], chooser: ServiceChooser | None, without: int = -1
    ) -> _Ranked | None:
        """All that competes, best first; None when nothing does."""
        request, found = self._reader.asked(text, connected, without)
        arrays = self._reader.arrays
        families = features.of_families(request, found, arrays) @ self._weights.family
        numbers, rows = self._competing(request, found, self._chosen(text, found, families, chooser))
        if not len(numbers):
            return None
        scores = features.combined(families, arrays["method_family"][numbers], rows @ self._weights.method)
        order = np.lexsort((numbers, -scores))
        return _Ranked(request, found, families, numbers[order], scores[order])

    def _likeliest(self, found: Evidence, scores: Any, limit: int) -> list[int]:
        """The families that something speaks for, likeliest first."""
        order = np.lexsort((np.arange(len(scores)), -scores))
        some = [int(n) for n in order[: limit + 1 + len(self._reader.documents.families)] if found.family[n] > 0]
        told = self._reader.documents.families
        return [n for n in some if self._reader.families[n][0] != ELSEWHERE and n not in told][:limit]

    def _chosen(self, text: str, found: Evidence, scores: Any, chooser: ServiceChooser | None) -> list[int]:
        best = self._likeliest(found, scores, _FAMILIES)
        if chooser is None:
            return best
        known, told = self._reader.families, self._reader.documents.families
        wanted = set(chooser(text, [known[n] for n in self._likeliest(found, scores, _OFFERED)]))
        here = [n for n, (name, _) in enumerate(known) if name in wanted and name != ELSEWHERE]
        return [n for n in here if n not in told] if here else best

    def _competing(self, request: Request, found: Evidence, families: list[int]) -> tuple[Any, Any]:
        start = self._reader.arrays["family_start"]
        parts = [np.arange(start[n], start[n + 1]) for n in sorted(families)]
        numbers = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return numbers, features.of_methods(request, found, numbers, self._reader.arrays, self._reader.flags)

    def _signs(self, ranked: _Ranked) -> tuple[Any, dict[str, float]]:
        """`features.RANKING_NAMES` and `features.TRAITS` of a ranking."""
        request, found, reader = ranked.request, ranked.found, self._reader
        own = reader.arrays["method_family"][ranked.numbers]
        first = int(ranked.numbers[0])
        words = {term: weight for term, weight in request.terms.items() if weight == 1.0 and term[0] not in "<^"}
        rare = {term: request.known.get(term, features.UNKNOWN_RARITY) for term in words}
        total = max(sum(rare.values()), 1e-9)
        acts = reader.acting(words, found, int(reader.arrays["method_tail"][first]))
        for_family = acts | reader.speaking(words, found, "family", int(own[0])).keys()
        for_method = (
            acts | reader.speaking(words, found, "resource", int(reader.arrays["method_resource"][first])).keys()
        )
        for column in ("own", "described", "named"):
            for_method |= reader.speaking(words, found, column, first).keys()
        ranking = features.Ranking(
            families=ranked.families,
            elsewhere=len(reader.families) - 1,
            scores=ranked.scores,
            families_of=own,
            covered=sum(value for term, value in rare.items() if term in for_method) / total,
            family_covered=sum(value for term, value in rare.items() if term in for_family) / total,
        )
        traits = features.traits(found, first, int(own[0]), len(words.keys() - for_method), reader.arrays)
        return features.of_ranking(request, found, ranking, reader.arrays), traits

    # ---- explaining

    def _why(self, ranked: _Ranked, number: int) -> tuple[str, ...]:
        request, found, reader = ranked.request, ranked.found, self._reader
        lines = []
        for column, at, says in (
            ("family", int(reader.arrays["method_family"][number]), "service"),
            ("resource", int(reader.arrays["method_resource"][number]), "thing"),
            ("own", number, "asked like"),
            ("described", number, "description"),
        ):
            words = reader.words_for(request, found, column, at)
            if words:
                lines.append(f"{says}: {', '.join(words)}")
        verbs = sorted(reader.acting(request.terms, found, int(reader.arrays["method_tail"][number])))
        if verbs:
            lines.insert(min(len(lines), 2), f"verb: {', '.join(verbs[:6])}")
        example = self._example(found, number)
        if example:
            lines.append(f"example: {example}")
        return tuple(lines)

    def _example(self, found: Evidence, number: int) -> str:
        offsets, methods = self._reader.arrays["ask_start"], self._reader.arrays["ask_methods"]
        for ask, near in zip(found.asks.tolist(), found.similar.tolist(), strict=True):
            if near > _TELLING and number in methods[offsets[ask] : offsets[ask + 1]]:
                return self._reader.ask(ask)
        return ""


def interleaved(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """`limit` hits: two of three places to the best ones as they come, the third to services not yet well shown."""
    taken: list[Hit] = []
    shown: dict[str, int] = {}
    left = list(hits)
    while left and len(taken) < limit:
        third = len(taken) % 3 == 2
        pick = next((hit for hit in left if shown.get(hit.service, 0) < 2), left[0]) if third else left[0]
        left.remove(pick)
        taken.append(pick)
        shown[pick.service] = shown.get(pick.service, 0) + 1
    return taken


def _merged(hits: Sequence[Hit], others: Sequence[Hit], sided: float, limit: int) -> tuple[Hit, ...]:
    """The lexicon's ranking and that by documents as one; `sided`: log odds that the request is for the latter.

    In turns: the next place goes to the side whose probability, divided by the place that its next has there (for the
    lexicon by more, `_STEEP`), is more;
    what is brought in stands where it was put. The likelier side's first stays first."""
    scores = np.array([hit.score for hit in hits])
    shares = (scores - features.log_sum(scores) - _odds(sided)).tolist()
    mine = [replace(hit, score=score) for hit, score in zip(hits, shares, strict=True)]
    theirs = [replace(hit, score=hit.score - _odds(-sided)) for hit in others]
    likely = min(max(1 / (1 + math.exp(-max(min(sided, 30.0), -30.0) * _TEMPERED)), _LEAST), 1 - _LEAST)
    order: list[Hit] = []
    left, right = deque(theirs), deque(mine)
    while (left or right) and len(order) < limit:
        places = (len(theirs) - len(left) + 1, len(mine) - len(right) + 1)
        turn = left if not right or (left and likely / places[0] >= (1 - likely) / places[1] ** _STEEP) else right
        order.append(turn.popleft())
    floor = np.minimum.accumulate([hit.score for hit in order]).round(4).tolist()
    return tuple(replace(hit, score=score) for hit, score in zip(order, floor, strict=True))


def _odds(value: float) -> float:
    """log(1 + exp(value)), bounded."""
    return math.log1p(math.exp(max(min(value, 30.0), -30.0)))


def _logistic(value: float) -> float:
    return round(1 / (1 + math.exp(-max(min(float(value), 30.0), -30.0))), 4)


def _stamp_of(db: sqlite3.Connection) -> str:
    try:
        row = db.execute("SELECT value FROM rank_meta WHERE key = 'stamp'").fetchone()
    except sqlite3.OperationalError:
        return ""
    return str(row[0]) if row else ""
