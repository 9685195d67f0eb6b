"""Reading the index's tables: what a request's terms say for families, resources, last words, methods and examples.

Postings are read for each request and summed; only small arrays stay in memory, some 30 bytes a method. Safe to share
between threads: each use of the connection holds the lock.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from mapper.ranking import document_match, features, index_tables, postings, refusal_model
from mapper.ranking.document_index import Documents
from mapper.ranking.features import Evidence, Request
from mapper.ranking.terms import stem

_FORM = 0.5  # how much the form of a request tells about its family
_NEAR = 60  # nearest examples that are looked at
_LONG = 5  # letters from which a word may be a slip of the keyboard, where only documents speak
_RESPELLED = 6  # unknown words that are tried as misspelt ones
_KNOWN_BETTER = 0.8  # how much a respelt word counts


class Reader:
    """The tables behind `db`, which `mapper.ranking.index_tables.write` made."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._lock = threading.RLock()
        self._version = -1
        self.stamp = ""
        with self.snapshot():
            pass

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One state of the tables for as long as this lasts, read anew if somebody has changed them since."""
        with self._lock:
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                (version,) = self._db.execute("PRAGMA data_version").fetchone()
                if version != self._version:
                    self._load(self._db)
                    self._version = version
                yield
            finally:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")

    def _load(self, db: sqlite3.Connection) -> None:
        kinds = dict(db.execute("SELECT key, value FROM rank_meta"))
        self.stamp = str(kinds["stamp"])
        self._kinds: dict[str, str] = json.loads(kinds["kinds"])
        self.arrays: dict[str, Any] = {
            name: np.frombuffer(data, np.dtype(kind)) for name, kind, data in db.execute("SELECT * FROM rank_array")
        }
        self.families: list[tuple[str, str]] = [
            (name, title) for name, title in db.execute("SELECT name, title FROM rank_family ORDER BY number")
        ]
        self.documents = Documents(self.arrays)
        self._spelling: dict[str, int] | None = None  # read when something is misspelt: the most frequent word is 0
        flags = self.arrays["method_flags"].reshape(-1, len(index_tables.FLAGS))
        self.flags = {name: flags[:, number] for number, name in enumerate(index_tables.FLAGS)}
        self._sizes = {
            "family": len(self.families),
            "title": len(self.families),
            "resource": int(self.arrays["method_resource"].max(initial=0)) + 1,
            "tail": int(self.arrays["method_tail"].max(initial=0)) + 1,
            "ask": len(self.arrays["ask_family"]),
        }

    def by_documents(self, wanted: document_match.Query, families: Collection[int]) -> tuple[Any, Any]:
        """The numbers of these families' methods, and `document_match.FEATURES` of each."""
        words = [concept.word for concept in wanted.concepts if concept.weight == 1.0]
        unknown = [word for word in words if len(word) >= _LONG and features.may_be_misspelt(word)]
        unknown = [word for word in unknown if not self.documents.known(self._db, (word,)) and not self.has((word,))]
        better = {word: self.documents.known(self._db, features.light_slips(word)) for word in unknown[:_RESPELLED]}
        mended = {word: found for word, found in better.items() if found}
        if mended:
            wanted = document_match.respelled(wanted, mended)
        return self.documents.features(self._db, wanted, families)

    def asked(self, text: str, connected: Collection[str], without: int = -1) -> tuple[Request, Evidence]:
        """The request, its slips of the keyboard mended, and what the tables say of it. `without`: an example to leave
        out."""
        request = Request.of(text)
        rows = self._rows([*request.terms, *request.form])
        unknown = [term for term in request.terms if term not in rows and features.may_be_misspelt(term)]
        for term in unknown[:_RESPELLED]:
            better = self._respelled(term)
            if better:
                weight = request.terms.pop(term) * _KNOWN_BETTER
                request.terms[better] = max(request.terms.get(better, 0.0), weight)
                rows.update(self._rows([better]))
        near = [n for n, (name, _) in enumerate(self.families) if name in connected] if connected else []
        return request, self._evidence(request, rows, near, without)

    def _rows(self, terms: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        marks = ",".join("?" * len(terms))
        found = self._db.execute(f"SELECT * FROM rank_term WHERE term IN ({marks})", terms)  # noqa: S608 # only marks
        return {row[0]: row[1:] for row in found}

    def has(self, words: Iterable[str]) -> bool:
        """Whether something that is ranked is spoken of with each of these words."""
        wanted = {stem(word) for word in words}
        marks = ",".join("?" * len(wanted))
        query = f"SELECT COUNT(*) FROM rank_term WHERE term IN ({marks})"  # noqa: S608 # only marks
        return bool(self._db.execute(query, [*wanted]).fetchone()[0] == len(wanted))

    def _respelled(self, term: str) -> str:
        """The known word that is one slip of the keyboard away and occurs most; "" when there is none."""
        if self._spelling is None:
            words = bytes(self.arrays["words"]).decode("utf-8").split("\n")
            self._spelling = {word: place for place, word in enumerate(words)}
        known = self._spelling
        return min((word for word in features.slips(term) if word in known), key=known.__getitem__, default="")

    def _evidence(
        self, request: Request, rows: dict[str, tuple[Any, ...]], connected: list[int], without: int = -1
    ) -> Evidence:
        methods = len(self.arrays["method_family"])
        columns = [(number + 1, column) for number, column in enumerate(index_tables.COLUMNS) if column != "refusal"]
        sums = {column: np.zeros(self._sizes.get(column, methods), np.float32) for _, column in columns}
        request.known = {term: row[0] for term, row in rows.items()}
        length = 0.0
        for term, weight in request.terms.items():
            row = rows.get(term)
            if row is None:
                length += (weight * features.UNKNOWN_RARITY) ** 2
                continue
            length += (weight * row[0]) ** 2
            for number, column in columns:
                cell = row[number]
                if cell is None:
                    continue
                if column == "tail":
                    sums[column] += np.frombuffer(cell, np.int8) * np.float32(weight / postings.SCALE)
                    continue
                at, values = self._unpacked(cell, column)
                factor = weight * row[0] / 255 if column == "ask" else weight / postings.SCALE
                sums[column][at] += values * np.float32(factor)
        tail, family = index_tables.COLUMNS.index("tail") + 1, index_tables.COLUMNS.index("family") + 1
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
            refusal=self._refusal(request, rows),
        )  # fmt: skip

    def _refusal(self, request: Request, rows: dict[str, tuple[Any, ...]]) -> Any:
        """Of each family, the log odds that none of its methods serves the request: as `refusals` learnt it."""
        place = index_tables.COLUMNS.index("refusal") + 1
        sums = np.zeros(len(self.families) + 1, np.float32)  # the last: what counts everywhere
        length = 0.0
        for term, weight in (*request.terms.items(), *request.form.items()):
            length += weight**2
            row = rows.get(term)
            if row is not None and row[place] is not None:
                at, values = self._unpacked(row[place], "refusal")
                sums[at] += (values.astype(np.float32) - refusal_model.ZERO) * np.float32(weight / postings.SCALE)
        told = (sums[:-1] + sums[-1]) / max(length, 1e-9) ** 0.5
        return self.arrays["family_refusal"] + np.where(self.arrays["family_judged"].astype(bool), told, 0.0)

    def _unpacked(self, cell: bytes, column: str) -> tuple[Any, Any]:
        kind = self._kinds[column]
        count = len(cell) // (int(kind[-1]) + 1)
        return np.frombuffer(cell, kind, count), np.frombuffer(cell, np.uint8, count, count * int(kind[-1]))

    def _nearest(self, similar: Any) -> Any:
        if len(similar) <= _NEAR:
            return np.lexsort((np.arange(len(similar)), -similar))
        best = np.argpartition(-similar, _NEAR)[:_NEAR]
        return best[np.lexsort((best, -similar[best]))]

    def named(self, numbers: list[int]) -> list[tuple[str, str, str]]:
        """(service, name, provider's id) of methods by their numbers."""
        marks = ",".join("?" * len(numbers))
        query = f"SELECT number, service, name, origin FROM rank_method WHERE number IN ({marks})"  # noqa: S608
        rows = self._db.execute(query, numbers).fetchall()
        named = {row[0]: row[1:] for row in rows}
        return [named[number] for number in numbers]

    def speaking(self, terms: Mapping[str, float], found: Evidence, column: str, at: int) -> dict[str, float]:
        """Those of the terms, each with its weight, that speak for one context, with how much."""
        number = index_tables.COLUMNS.index(column) + 1
        spoken: dict[str, float] = {}
        for term, weight in terms.items():
            row = found.rows.get(term)
            if row is None or row[number] is None:
                continue
            contexts, values = self._unpacked(row[number], column)
            place = int(np.searchsorted(contexts, at))
            if place < len(contexts) and contexts[place] == at:
                spoken[term] = float(values[place]) * weight / postings.SCALE
        return spoken

    def acting(self, terms: Iterable[str], found: Evidence, tail: int, least: float = 0.5) -> set[str]:
        """Those of the terms that speak for a method's last word."""
        number = index_tables.COLUMNS.index("tail") + 1
        spoken = set()
        for term in terms:
            row = found.rows.get(term)
            if row is not None and row[number] is not None and _leaning(row[number], tail) > least:
                spoken.add(term)
        return spoken

    def words_for(self, request: Request, found: Evidence, column: str, at: int) -> tuple[str, ...]:
        """The request's words that speak for one context, the most telling first."""
        spoken = self.speaking(request.terms, found, column, at)
        best = sorted(spoken, key=lambda term: (-spoken[term], term))
        return tuple(dict.fromkeys(term.removeprefix("^") for term in best if spoken[term] > 1.0))[:6]

    def numbers_of(self, origin_id: str) -> list[int]:
        """The numbers of the methods that have this provider's id."""
        rows = self._db.execute("SELECT number FROM rank_method WHERE origin = ?", (origin_id,)).fetchall()
        return [int(row[0]) for row in rows]

    def ask(self, number: int) -> str:
        """An example's words."""
        row = self._db.execute("SELECT text FROM rank_ask WHERE number = ?", (number,)).fetchone()
        return str(row[0]) if row else ""

    def refused(self) -> list[tuple[int, str]]:
        """The examples that no method serves, with their numbers."""
        start = self.arrays["ask_start"]
        return [(number, self.ask(number)) for number in np.flatnonzero(start[1:] == start[:-1]).tolist()]


def _leaning(cell: bytes, tail: int) -> float:
    return float(np.frombuffer(cell, np.int8)[tail]) / postings.SCALE
