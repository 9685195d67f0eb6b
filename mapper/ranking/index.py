"""Ranking: a request in words to services and methods, from the tables that `mapper.ranking.tables` made.

A request's terms are looked up once; what they say for families, resources, last words, methods and examples is summed
(`_evidence`); a linear model over `features.FAMILY_NAMES` says how likely each family is, another over
`features.NAMES` how likely each method is within its family. `mapper.evaluation.fitting` fits their weights.
Deterministic. Safe to share between threads. Memory: the arrays that say what belongs where, some 30 bytes a method;
postings are read for each request.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mapper.catalog import Catalog
from mapper.ranking import features, postings, tables
from mapper.ranking.embedding import Embedder
from mapper.ranking.features import Evidence, Request
from mapper.ranking.sources import ELSEWHERE, gather
from mapper.ranking.weights import Weights
from mapper.store.database import open_reading, translated
from mapper.store.reading import Store
from policies.catalog import Service

ServiceChooser = Callable[[str, Sequence[tuple[str, str]]], Sequence[str]]
"""Chooses services for a request: (text, [(service, title), best first]) to the names of the chosen ones."""

_FAMILIES = 10  # likeliest families whose methods are scored
_FORM = 0.5  # how much the form of a request tells about its family
_NEAR = 60  # nearest examples that are looked at


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
    """A ranking: hits best first; `confidence`, the probability that the first is right if any method is; `nothing`,
    the probability that no method serves the request."""

    hits: tuple[Hit, ...]
    confidence: float
    nothing: float


@dataclass(frozen=True, slots=True)
class Competition:
    """What competes: `features.FAMILY_NAMES` of every family, `features.NAMES` of the likeliest families' methods."""

    families: Any
    numbers: Any
    family_of: Any
    rows: Any


class Index:
    """Ranks the methods of one catalog."""

    def __init__(self, db: sqlite3.Connection, weights: Weights | None = None) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._weights = weights or Weights.bundled()
        kinds = dict(db.execute("SELECT key, value FROM rank_meta"))
        self.stamp = kinds["stamp"]
        self._kinds: dict[str, str] = json.loads(kinds["kinds"])
        self._arrays: dict[str, Any] = {
            name: np.frombuffer(data, np.dtype(kind)) for name, kind, data in db.execute("SELECT * FROM rank_array")
        }
        self._families: list[tuple[str, str]] = [
            (name, title) for name, title in db.execute("SELECT name, title FROM rank_family ORDER BY number")
        ]
        flags = self._arrays["method_flags"].reshape(-1, len(tables.FLAGS))
        self._flags = {name: flags[:, number] for number, name in enumerate(tables.FLAGS)}
        self._sizes = {
            "family": len(self._families),
            "title": len(self._families),
            "resource": int(self._arrays["method_resource"].max(initial=0)) + 1,
            "tail": int(self._arrays["method_tail"].max(initial=0)) + 1,
            "ask": len(self._arrays["ask_family"]),
        }

    @classmethod
    def open(cls, path: Path, weights: Weights | None = None) -> Index:
        """The index of the catalog at `path`; made anew first where it is missing or stale. Raises StoreUnreadable."""
        store = Store(path)
        if not path.exists():
            return cls.of(Catalog.bundled().services.values(), weights)
        wanted = tables.stamp(store.generation)
        store.close()
        db = open_reading(path)
        if _stamp_of(db) != wanted:
            db.close()
            tables.rebuild(path)
            db = open_reading(path)
        with translated(path):
            return cls(db, weights)

    @classmethod
    def of(cls, services: Iterable[Service], weights: Weights | None = None) -> Index:
        """An index in memory over these services alone."""
        db = sqlite3.connect(":memory:", check_same_thread=False)
        tables.write(db, tables.Made.of(gather(None, services)), "")
        return cls(db, weights)

    # ---- questions

    def search(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20, explain: bool = False,
        chooser: ServiceChooser | None = None, embedder: Embedder | None = None,
    ) -> list[Hit]:  # fmt: skip
        """The methods that fit best, best first. See `find`."""
        return list(
            self.find(text, connected=connected, limit=limit, explain=explain, chooser=chooser, embedder=embedder).hits
        )

    def find(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20, explain: bool = False,
        chooser: ServiceChooser | None = None, embedder: Embedder | None = None,
    ) -> Found:  # fmt: skip
        """The methods that fit best, and how sure that is.

        `connected`: services that have an account, preferred among equals. `explain` fills `Hit.why`, which costs
        some time. `chooser` takes the service step: only methods of the services that it names are ranked (all, if it
        names none that there are). `embedder` blends in how near the request is in meaning.
        """
        request, found = self._asked(text, connected)
        families = features.of_families(request, found, self._arrays) @ self._weights.family
        chosen = self._chosen(text, found, families, chooser)
        numbers, matrix = self._competing(request, found, chosen)
        if not len(numbers):
            return Found((), 0.0, 1.0)
        scores = features.combined(families, self._arrays["method_family"][numbers], matrix @ self._weights.method)
        if embedder is not None:
            from mapper.ranking.embedding import blended

            scores = blended(embedder, text, scores, lambda best: self._described([int(numbers[n]) for n in best]))
        order = np.lexsort((numbers, -scores))
        signs = self._signs(request, found, families, numbers[order], scores[order])
        confidence, nothing = _logistic(signs @ self._weights.sure), _logistic(signs @ self._weights.nothing)
        best = [int(number) for number in order[:limit]]
        named = self._named([int(numbers[number]) for number in best])
        hits = []
        for number, (service, name, origin) in zip(best, named, strict=True):
            why = self._why(request, found, int(numbers[number])) if explain else ()
            hits.append(Hit(f"{service}.{name}", service, round(float(scores[number]), 4), why, origin))
        return Found(tuple(hits), confidence, nothing)

    def services(
        self, text: str, limit: int = 5, *, connected: Collection[str] = frozenset()
    ) -> list[tuple[str, float, tuple[str, ...]]]:
        """The services that fit best, best first: (name, score, the words that speak for it)."""
        request, found = self._asked(text, connected)
        scores = features.of_families(request, found, self._arrays) @ self._weights.family
        order = np.lexsort((np.arange(len(scores)), -scores))[:limit]
        return [
            (self._families[int(n)][0], round(float(scores[n]), 4), self._words_for(request, found, "family", int(n)))
            for n in order
            if found.family[n] > 0 and self._families[int(n)][0] != ELSEWHERE
        ]

    def family_of(self, origin_id: str) -> str:
        """The main service of the API that has a method of this provider's id; "" where none has."""
        with self._lock:
            row = self._db.execute("SELECT number FROM rank_method WHERE origin = ?", (origin_id,)).fetchone()
        return self._families[int(self._arrays["method_family"][row[0]])][0] if row else ""

    def candidates(
        self, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20,
        chooser: ServiceChooser | None = None, embedder: Embedder | None = None,
    ) -> list[Hit]:  # fmt: skip
        """Methods for a model to choose among: mostly the best, and of the next services some in any case."""
        hits = self.search(text, connected=connected, limit=limit * 4, chooser=chooser, embedder=embedder)
        return interleaved(hits, limit)

    # ---- for fitting

    def competition(self, text: str) -> Competition:
        """What competes for a request, as the linear models see it."""
        request, found = self._asked(text, ())
        families = features.of_families(request, found, self._arrays)
        chosen = self._chosen(text, found, families @ self._weights.family, None)
        numbers, rows = self._competing(request, found, chosen)
        return Competition(families, numbers, self._arrays["method_family"][numbers], rows)

    def signs(self, text: str, *, without: int = -1) -> tuple[Any, Hit | None]:
        """`features.RANKING_NAMES` for a request, and the first method. `without`: an example that is left out."""
        request, found = self._asked(text, (), without)
        families = features.of_families(request, found, self._arrays) @ self._weights.family
        numbers, matrix = self._competing(request, found, self._chosen(text, found, families, None))
        if not len(numbers):
            return np.zeros(len(features.RANKING_NAMES)), None
        scores = features.combined(families, self._arrays["method_family"][numbers], matrix @ self._weights.method)
        order = np.lexsort((numbers, -scores))
        service, name, origin = self._named([int(numbers[order[0]])])[0]
        hit = Hit(f"{service}.{name}", service, round(float(scores[order[0]]), 4), (), origin)
        return self._signs(request, found, families, numbers[order], scores[order]), hit

    def refused(self) -> list[tuple[int, str]]:
        """The examples that no method serves, with their numbers."""
        start = self._arrays["ask_start"]
        none = np.flatnonzero(start[1:] == start[:-1]).tolist()
        with self._lock:
            texts = dict(self._db.execute("SELECT number, text FROM rank_ask").fetchall())
        return [(number, texts[number]) for number in none]

    def numbers_of(self, origin_id: str) -> list[int]:
        """The numbers of the methods that have this provider's id."""
        with self._lock:
            rows = self._db.execute("SELECT number FROM rank_method WHERE origin = ?", (origin_id,)).fetchall()
        return [int(row[0]) for row in rows]

    def families_of(self, numbers: Sequence[int]) -> Any:
        """The numbers of the families of methods, by their numbers."""
        return self._arrays["method_family"][list(numbers)]

    def origin_of(self, number: int) -> str:
        """The provider's id of a method, by its number."""
        return self._named([number])[0][2]

    # ---- inside

    def _asked(self, text: str, connected: Collection[str], without: int = -1) -> tuple[Request, Evidence]:
        request = Request.of(text)
        wanted = [*request.terms, *request.form]
        rows: dict[str, tuple[Any, ...]] = {}
        with self._lock:
            rows.update(self._rows(wanted))
            unknown = [term for term in request.terms if term not in rows and features.may_be_misspelt(term)]
            for term in unknown[:6]:
                better = self._respelled(term)
                if better:
                    request.terms[better] = max(request.terms.get(better, 0.0), request.terms.pop(term) * 0.8)
                    rows.update(self._rows([better]))
        near = [n for n, (name, _) in enumerate(self._families) if name in connected] if connected else []
        return request, self._evidence(request, rows, near, without)

    def _rows(self, terms: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        marks = ",".join("?" * len(terms))
        found = self._db.execute(f"SELECT * FROM rank_term WHERE term IN ({marks})", terms)  # noqa: S608 # only marks
        return {row[0]: row[1:] for row in found}

    def _respelled(self, term: str) -> str:
        """The known word that is one slip of the keyboard away and occurs most; "" when there is none."""
        candidates = features.slips(term)
        best, most = "", 0
        for start in range(0, len(candidates), 900):
            part = candidates[start : start + 900]
            for found, size in self._db.execute(
                "SELECT term, length(family) FROM rank_term WHERE rarity > 0 AND ask IS NOT NULL AND term IN"  # noqa: S608
                f" ({','.join('?' * len(part))})",
                part,
            ):
                if (size or 0) > most:
                    best, most = found, size
        return best

    def _evidence(
        self, request: Request, rows: dict[str, tuple[Any, ...]], connected: list[int], without: int = -1
    ) -> Evidence:
        methods = len(self._arrays["method_family"])
        sums = {column: np.zeros(self._sizes.get(column, methods), np.float32) for column in tables.COLUMNS}
        request.known = {term: row[0] for term, row in rows.items()}
        length = 0.0
        for term, weight in request.terms.items():
            row = rows.get(term)
            if row is None:
                length += (weight * features.UNKNOWN_RARITY) ** 2
                continue
            length += (weight * row[0]) ** 2
            for number, column in enumerate(tables.COLUMNS):
                cell = row[number + 1]
                if cell is None:
                    continue
                if column == "tail":
                    sums[column] += np.frombuffer(cell, np.int8) * np.float32(weight / postings.SCALE)
                    continue
                at, values = self._unpacked(cell, column)
                factor = weight * row[0] / 255 if column == "ask" else weight / postings.SCALE
                sums[column][at] += values * np.float32(factor)
        tail, family = tables.COLUMNS.index("tail") + 1, tables.COLUMNS.index("family") + 1
        for term, weight in request.form.items():
            row = rows.get(term)
            if row is not None and row[family] is not None and _FORM:
                at, values = self._unpacked(row[family], "family")
                sums["family"][at] += values * np.float32(_FORM * weight / postings.SCALE)
            if row is not None and row[tail] is not None:
                sums["tail"] += np.frombuffer(row[tail], np.int8) * np.float32(weight / postings.SCALE)
        sums["ask"] /= max(length, 1e-9) ** 0.5
        if without >= 0:
            sums["ask"][without] = 0.0
        near = self._nearest(sums["ask"])
        return Evidence(
            family=sums["family"],
            title=sums["title"], resource=sums["resource"], tail=sums["tail"], own=sums["own"],
            described=sums["described"], named=sums["named"], path=sums["path"], asks=near,
            similar=sums["ask"][near], connected=connected, rows=rows,
        )  # fmt: skip

    def _unpacked(self, cell: bytes, column: str) -> tuple[Any, Any]:
        kind = self._kinds[column]
        count = len(cell) // (int(kind[-1]) + 1)
        return np.frombuffer(cell, kind, count), np.frombuffer(cell, np.uint8, count, count * int(kind[-1]))

    def _nearest(self, similar: Any) -> Any:
        if len(similar) <= _NEAR:
            return np.lexsort((np.arange(len(similar)), -similar))
        best = np.argpartition(-similar, _NEAR)[:_NEAR]
        return best[np.lexsort((best, -similar[best]))]

    def _chosen(self, text: str, found: Evidence, scores: Any, chooser: ServiceChooser | None) -> list[int]:
        order = np.lexsort((np.arange(len(scores)), -scores))
        usable = [int(n) for n in order if found.family[n] > 0 and self._families[int(n)][0] != ELSEWHERE]
        best = usable[:_FAMILIES]
        if chooser is None:
            return best
        offered = [self._families[n] for n in usable[: _FAMILIES * 4]]
        wanted = set(chooser(text, offered))
        return [n for n, (name, _) in enumerate(self._families) if name in wanted] or best

    def _competing(self, request: Request, found: Evidence, families: list[int]) -> tuple[Any, Any]:
        start = self._arrays["family_start"]
        parts = [np.arange(start[n], start[n + 1]) for n in sorted(families)]
        numbers = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return numbers, features.of_methods(request, found, numbers, self._arrays, self._flags)

    def _signs(self, request: Request, found: Evidence, families: Any, numbers: Any, scores: Any) -> Any:
        """`features.RANKING_NAMES` of a ranking; `numbers` and `scores` are best first."""
        own = self._arrays["method_family"][numbers]
        places = {
            "resource": int(self._arrays["method_resource"][numbers[0]]),
            **dict.fromkeys(("own", "described", "named"), int(numbers[0])),
        }
        spoken = {column: self._speaking(request, found, column, at) for column, at in places.items()}
        words = {
            term: request.known.get(term, features.UNKNOWN_RARITY)
            for term, weight in request.terms.items()
            if weight == 1.0 and term[0] not in "<^"
        }
        total = max(sum(words.values()), 1e-9)
        tail = int(self._arrays["method_tail"][numbers[0]])
        acts = self._acting(request, found, tail)
        for_method = {term for terms in spoken.values() for term in terms} | acts
        for_family = self._speaking(request, found, "family", int(own[0])).keys() | acts
        ranking = features.Ranking(
            families=families,
            elsewhere=len(self._families) - 1,
            scores=scores,
            families_of=own,
            covered=sum(value for term, value in words.items() if term in for_method) / total,
            family_covered=sum(value for term, value in words.items() if term in for_family) / total,
        )
        return features.of_ranking(request, found, ranking, self._arrays)

    def _named(self, numbers: list[int]) -> list[tuple[str, str, str]]:
        marks = ",".join("?" * len(numbers))
        with self._lock:
            rows = self._db.execute(
                f"SELECT number, service, name, origin FROM rank_method WHERE number IN ({marks})",  # noqa: S608
                numbers,
            ).fetchall()
        named = {row[0]: row[1:] for row in rows}
        return [named[number] for number in numbers]

    def _described(self, numbers: list[int]) -> list[str]:
        """Each method in words, for an embedder."""
        marks = ",".join("?" * len(numbers))
        with self._lock:
            query = f"SELECT number, says FROM rank_method WHERE number IN ({marks})"  # noqa: S608 # only marks
            said = dict(self._db.execute(query, numbers).fetchall())
        return [said[number] for number in numbers]

    # ---- explaining

    def _speaking(self, request: Request, found: Evidence, column: str, at: int) -> dict[str, float]:
        """The request's terms that speak for one context, with how much."""
        number = tables.COLUMNS.index(column) + 1
        spoken: dict[str, float] = {}
        for term, weight in request.terms.items():
            row = found.rows.get(term)
            if row is None or row[number] is None:
                continue
            contexts, values = self._unpacked(row[number], column)
            place = int(np.searchsorted(contexts, at))
            if place < len(contexts) and contexts[place] == at:
                spoken[term] = float(values[place]) * weight / postings.SCALE
        return spoken

    def _acting(self, request: Request, found: Evidence, tail: int, least: float = 0.5) -> set[str]:
        """The request's terms that speak for a method's last word."""
        number = tables.COLUMNS.index("tail") + 1
        spoken = set()
        for term in request.terms:
            row = found.rows.get(term)
            if row is not None and row[number] is not None and _leaning(row[number], tail) > least:
                spoken.add(term)
        return spoken

    def _words_for(self, request: Request, found: Evidence, column: str, at: int) -> tuple[str, ...]:
        """The request's words that speak for one context, the most telling first."""
        spoken = self._speaking(request, found, column, at)
        best = sorted(spoken, key=lambda term: (-spoken[term], term))
        return tuple(dict.fromkeys(term.removeprefix("^") for term in best if spoken[term] > 1.0))[:6]

    def _why(self, request: Request, found: Evidence, number: int) -> tuple[str, ...]:
        arrays = self._arrays
        lines = []
        for column, at, says in (
            ("family", int(arrays["method_family"][number]), "service"),
            ("resource", int(arrays["method_resource"][number]), "thing"),
            ("own", number, "asked like"),
            ("described", number, "description"),
        ):
            words = self._words_for(request, found, column, at)
            if words:
                lines.append(f"{says}: {', '.join(words)}")
        verbs = sorted(self._acting(request, found, int(arrays["method_tail"][number])))
        if verbs:
            lines.insert(min(len(lines), 2), f"verb: {', '.join(verbs[:6])}")
        example = self._example(found, number)
        if example:
            lines.append(f"example: {example}")
        return tuple(lines)

    def _example(self, found: Evidence, number: int) -> str:
        offsets, methods = self._arrays["ask_start"], self._arrays["ask_methods"]
        for ask, near in zip(found.asks.tolist(), found.similar.tolist(), strict=True):
            if near > 0.15 and number in methods[offsets[ask] : offsets[ask + 1]]:
                with self._lock:
                    row = self._db.execute("SELECT text FROM rank_ask WHERE number = ?", (ask,)).fetchone()
                return str(row[0]) if row else ""
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


def _leaning(cell: bytes, tail: int) -> float:
    return float(np.frombuffer(cell, np.int8)[tail]) / postings.SCALE


def _logistic(value: float) -> float:
    return round(1 / (1 + math.exp(-max(min(float(value), 30.0), -30.0))), 4)


def _stamp_of(db: sqlite3.Connection) -> str:
    try:
        row = db.execute("SELECT value FROM rank_meta WHERE key = 'stamp'").fetchone()
    except sqlite3.OperationalError:
        return ""
    return str(row[0]) if row else ""
