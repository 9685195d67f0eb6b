"""The tables for services that nobody wrote words for: what their documents say, term by term, and reading them.

Rules: a service is here when the lexicon has no example of a request for it; all others are ranked by the lexicon. The
tables stand in the catalog's file beside those of `index_tables` and are made with them, in the same transaction.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mapper.ranking import document_match
from mapper.ranking.document_match import DEEDS, FEATURES, FIELDS, Query
from mapper.ranking.method_documents import Family, Ranked, Sources
from mapper.ranking.terms import document_terms

TABLES = f"CREATE TABLE rank_document (term TEXT PRIMARY KEY, {', '.join(f'{f} BLOB' for f in FIELDS)}) WITHOUT ROWID"

_DESCRIBED = 600  # characters of a description beside the title that are read
_LONG_TITLE = 4  # words
_TITLE_END = re.compile(r"(?<=[a-z0-9)])\. ")
_VERSION = re.compile(r"\b[vV]\d+\b")
_HOLE = re.compile(r"\{[^}]*\}")
_ID_WORD = re.compile(r"(?:[_-]?[iI][dD]|[_-]?(?:gid|slug|key|name|number))$")
_ABOUT = 1500  # characters of a service's description that are read
_ITEM = re.compile(r"\}(?:\.\w+)?/?$")
_FULL = 255
FACTS = ("deed", "item", "many", "deprecated", "holes", "heads")
"""What is known of each method beside its words: see `document_match.matched`."""


@dataclass(slots=True)
class Made:
    """The tables before they are written."""

    rows: dict[str, list[list[tuple[int, int]]]]  # term -> for each field, (place, value)
    arrays: dict[str, Any]

    @classmethod
    def of(cls, sources: Sources, told: Collection[int]) -> Made:
        """The documents of the families that aren't in `told`."""
        rows: dict[str, list[list[tuple[int, int]]]] = {}
        methods = [
            (number, method)
            for number, method in enumerate(sources.methods)
            if method.family not in told and not method.bundled
        ]
        facts = np.zeros((len(methods), len(FACTS)), np.uint8)
        before = -1
        for place, (_, method) in enumerate(methods):
            fields = _fields(method)
            if method.family != before:
                fields.append(_about(sources.families[method.family]))
                before = method.family
            for at, found in enumerate(fields):
                for term, value in found.items():
                    rows.setdefault(term, [[] for _ in FIELDS])[at].append((place, round(value * _FULL)))
            own = {term for found in fields[:2] for term, value in found.items() if value == 1.0}
            facts[place] = (
                DEEDS.index(document_match.deed(method.name, method.http, method.path)),
                _ITEM.search(method.path) is not None,
                min(len(own), 255),
                method.description.lower().startswith("deprecated"),
                min(len(_HOLE.findall(method.path)), 255),
                min(sum(value == 1.0 for value in fields[4].values()), 255),
            )
        arrays = {
            "document_method": np.array([number for number, _ in methods], "<u4"),
            "document_family": np.array([method.family for _, method in methods], "<u4"),
            "document_facts": facts.reshape(-1),
        }
        return cls(rows, arrays)

    def write(self, db: sqlite3.Connection) -> None:
        """Put the table in place of any earlier one."""
        db.execute("DROP TABLE IF EXISTS rank_document")
        db.execute(TABLES)
        db.executemany(
            f"INSERT INTO rank_document VALUES (?{', ?' * len(FIELDS)})",  # noqa: S608 # names of ours
            ((term, *map(_packed, cells)) for term, cells in sorted(self.rows.items())),
        )


def _fields(method: Ranked) -> list[dict[str, float]]:
    """The terms of each of `FIELDS`; a long title's and text's words count less."""
    title = _TITLE_END.split(method.description, maxsplit=1)[0]
    rest = method.description[len(title) :][:_DESCRIBED]
    named = document_terms(_VERSION.sub("", method.name))
    path = document_terms(_VERSION.sub("", _HOLE.sub(" ", method.path)))
    said = document_terms(title)
    text = document_terms(" . ".join((rest, *method.parameters, *method.fields)))
    fixed = [part for part in _VERSION.sub("", method.path).split("/") if part and not _HOLE.search(part)]
    head = document_terms(fixed[-1] if fixed else method.name)
    items = document_terms(" . ".join(_owners(method.path)))
    return [named, path, _damped(said, 0.05, _LONG_TITLE), _damped(text, 0.02, 0), head, items]


def _owners(path: str) -> Iterator[str]:
    """What a path has ids of: the part before each hole, and the hole's own name without its last word."""
    before = ""
    for part in path.split("/"):
        if hole := _HOLE.search(part):
            yield before
            yield _ID_WORD.sub("", hole[0].strip("{+}"))
        before = part


def _about(family: Family) -> dict[str, float]:
    """The terms of what a service says of itself."""
    return document_terms(f"{family.title} . {family.description[:_ABOUT]}")


def _damped(found: Mapping[str, float], rate: float, free: int) -> dict[str, float]:
    many = sum(weight == 1.0 for weight in found.values())
    return {term: weight / (1 + rate * max(many - free, 0)) for term, weight in found.items()}


def _packed(cell: list[tuple[int, int]]) -> bytes | None:
    if not cell:
        return None
    return np.array([place for place, _ in cell], "<u4").tobytes() + bytes(value for _, value in cell)


def _unpacked(cell: bytes) -> tuple[Any, Any]:
    count = len(cell) // 5
    return np.frombuffer(cell, "<u4", count), np.frombuffer(cell, np.uint8, count, count * 4)


class Documents:
    """Reads the tables. `arrays` are those of the index; not safe to share without the reader's lock."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.methods = arrays["document_method"].astype(np.int64)
        self.family_of = arrays["document_family"].astype(np.int64)
        facts = arrays["document_facts"].reshape(-1, len(FACTS))
        self._facts = {name: facts[:, at].astype(np.int64) for at, name in enumerate(FACTS)}
        self._facts["family"] = self.family_of
        self.families = frozenset(np.unique(self.family_of).tolist())
        self._sizes: dict[str, int] | None = None

    def known(self, db: sqlite3.Connection, terms: Iterable[str]) -> str:
        """That of the terms which most methods are named or spoken of with; "" where none is."""
        if self._sizes is None:  # read when a word is unknown for the first time
            size = " + ".join(f"coalesce(length({field}), 0)" for field in FIELDS)
            self._sizes = dict(db.execute(f"SELECT term, {size} FROM rank_document"))  # noqa: S608 # names of ours
        sizes = self._sizes
        return min((term for term in terms if term in sizes), key=lambda term: (-sizes[term], term), default="")

    def features(self, db: sqlite3.Connection, wanted: Query, families: Collection[int]) -> tuple[Any, Any]:
        """The numbers of the methods of `families`, and `document_match.FEATURES` of each."""
        places = np.flatnonzero(np.isin(self.family_of, list(families)))
        if not len(places):
            return np.zeros(0, np.int64), np.zeros((0, len(FEATURES)))
        terms = wanted.terms
        marks = ",".join("?" * len(terms))
        rows = db.execute(f"SELECT * FROM rank_document WHERE term IN ({marks})", terms)  # noqa: S608 # only marks
        at = np.full(len(self.methods), -1, np.int64)
        at[places] = np.arange(len(places))
        postings: dict[tuple[str, str], Any] = {}
        for term, *cells in rows:
            for field, cell in zip(FIELDS, cells, strict=True):
                if cell is None:
                    continue
                numbers, values = _unpacked(cell)
                here = at[numbers]
                kept = here >= 0
                if kept.any():
                    column = np.zeros(len(places), np.float32)
                    column[here[kept]] = values[kept] / np.float32(_FULL)
                    postings[term, field] = column
        facts = {name: each[places] for name, each in self._facts.items()}
        return self.methods[places], document_match.matched(wanted, postings, facts)


__all__ = ("TABLES", "Documents", "Made")
