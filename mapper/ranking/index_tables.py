"""The index as tables in the catalog's file: building them, and what they hold.

Rules: one transaction; the tables say which generation of the catalog, which bundled manifests and which lexicon they
were made of, so that a stale index is noticed. Blobs are made by `postings.packed`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from mapper.catalog import Catalog
from mapper.ranking import document_index, lexicon, postings, refusal_model
from mapper.ranking.companions import companions
from mapper.ranking.method_documents import Ranked, Sources, gather
from mapper.ranking.postings import Counts, Matrix, Vocabulary
from mapper.ranking.terms import document_terms, form_terms, marked_words, request_terms, split_name, stem, terms
from mapper.store.catalog_reader import Store
from mapper.store.database import open_writing, translated
from policies.services import Service

FORMAT = 14

COLUMNS = ("family", "title", "resource", "tail", "own", "described", "named", "path", "ask", "refusal")

_TABLES = f"""
CREATE TABLE rank_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rank_array (name TEXT PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE rank_family (number INTEGER PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL);
CREATE TABLE rank_method (
    number INTEGER PRIMARY KEY, service TEXT NOT NULL, name TEXT NOT NULL, origin TEXT NOT NULL
);
CREATE INDEX rank_method_origin ON rank_method (origin);
CREATE TABLE rank_ask (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE rank_term (term TEXT PRIMARY KEY, rarity REAL NOT NULL, {", ".join(f"{c} BLOB" for c in COLUMNS)});
"""
_NAMES = ("meta", "array", "family", "method", "ask", "term")

_DESCRIBED = 600  # characters of a description that are read
_ROUTINE_TEXT = "alt fields key prettyPrint pageToken pageSize maxResults quotaUser body name parent"
_ROUTINE = frozenset(_ROUTINE_TEXT.split())  # parameters that say nothing
_COLLECTION = re.compile(r"([A-Za-z][A-Za-z0-9_]+)/\{")
_LEAST_ASKS = 12  # examples that a last word needs to count for itself
_SPREAD = 4  # families whose examples use a word before it can tell what is to be done


def rebuild(path: Path, progress: Callable[..., None] | None = None) -> None:
    """Make the index of the catalog's file anew. Raises StoreUnreadable."""
    report = progress or (lambda *_: None)
    report(0, 3, "reading the methods")
    sources = gather(Store(path), Catalog.bundled().services.values())
    report(1, 3, "weighing words")
    made = Made.of(sources)
    report(2, 3, "writing the index")
    db = open_writing(path)
    try:
        with translated(path):
            db.execute("BEGIN IMMEDIATE")
            write(db, made, stamp(sources.generation))
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()
    report(3, 3, "")


def bundled() -> sqlite3.Connection:
    """An index over the services that come with GoEx: a copy of one that is made once a process."""
    db = _empty()
    _bundled().backup(db)
    return db


@cache
def _bundled() -> sqlite3.Connection:
    return in_memory(Catalog.bundled().services.values())


def in_memory(services: Iterable[Service]) -> sqlite3.Connection:
    """A new index over these services alone."""
    db = _empty()
    write(db, Made.of(gather(None, services)), "")
    return db


def _empty() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def stamp(generation: int) -> str:
    """What an index is made of: equal stamps, equal index."""
    digest = hashlib.sha256(f"{FORMAT} {generation}".encode())
    package = files("mapper")
    for folder in ("services", "lexicon", "lexicon/google"):
        for entry in sorted(package.joinpath(folder).iterdir(), key=lambda each: each.name):
            if entry.name.endswith(".toml"):
                text = entry.read_bytes()
                digest.update(f"{entry.name} {len(text)} {hashlib.sha256(text).hexdigest()}".encode())
    return digest.hexdigest()


def write(db: sqlite3.Connection, made: Made, stamped: str) -> None:
    """Put the tables in place of any earlier ones."""
    for name in _NAMES:
        db.execute(f"DROP TABLE IF EXISTS rank_{name}")
    for statement in _TABLES.strip().split(";\n"):
        db.execute(statement)
    sources, terms = made.sources, len(made.vocabulary)
    db.executemany(
        "INSERT INTO rank_family VALUES (?, ?, ?)",
        [(number, family.name, family.title) for number, family in enumerate(sources.families)],
    )
    db.executemany(
        "INSERT INTO rank_method VALUES (?, ?, ?, ?)",
        [(number, method.service, method.name, method.origin_id) for number, method in enumerate(sources.methods)],
    )
    db.executemany("INSERT INTO rank_ask VALUES (?, ?)", list(enumerate(made.asks)))
    db.executemany(
        "INSERT INTO rank_array VALUES (?, ?, ?)",
        [(name, found.dtype.str, found.tobytes()) for name, found in made.arrays.items()],
    )
    kinds = {column: postings.kind_for(part.contexts) for column, part in made.columns.items()}
    columns = [
        postings.packed(made.columns[column], terms, kinds[column]) if column != "tail" else _rows(made.leanings)
        for column in COLUMNS
    ]
    db.executemany(
        f"INSERT INTO rank_term VALUES (?, ?{', ?' * len(COLUMNS)})",  # noqa: S608 # names of ours
        (
            (term, round(float(made.rarity[number]), 3), *(column[number] for column in columns))
            for term, number in sorted(made.vocabulary.numbers.items())
            if any(column[number] is not None for column in columns)
        ),
    )
    made.documents.write(db)
    meta = {"stamp": stamped, "kinds": json.dumps(kinds), "generation": str(sources.generation)}
    db.executemany("INSERT INTO rank_meta VALUES (?, ?)", meta.items())


@dataclass(slots=True)
class Made:
    """An index before it is written."""

    sources: Sources
    vocabulary: Vocabulary
    asks: list[str]
    columns: dict[str, Matrix]
    leanings: Any  # of each term for each last word
    arrays: dict[str, Any]
    rarity: Any
    documents: document_index.Made

    @classmethod
    def of(cls, sources: Sources) -> Made:
        return _Maker(sources).made()


# Prior counts, damping and length normalisation of each source of words (`postings.Matrix.shares`).
_SHARES: dict[str, tuple[float, ...]] = {
    "family_ask": (50, 0.8, 0.7), "family_doc": (0, 0.7), "names": (2,), "speaks": (2,), "nouns": (2,), "scopes": (2,),
    "resource_ask": (10,), "resource_noun": (2,), "resource_name": (2,), "resource_doc": (2, 0.7), "own": (5, 1.0, 0.6),
    "described": (10,), "parameters": (10,), "named": (2,),
}  # fmt: skip

# What each column's probabilities are mixed of.
_MIXES: dict[str, tuple[tuple[float, str], ...]] = {
    "family": ((1.0, "family_ask"), (0.5, "names"), (1.0, "speaks"), (0.6, "nouns"), (0.15, "family_doc"),
               (0.1, "scopes")),
    "title": ((1.0, "names"),),
    "resource": ((1.0, "resource_ask"), (1.0, "resource_noun"), (0.7, "resource_name"), (0.2, "resource_doc")),
    "own": ((1.0, "own"),),
    "described": ((1.0, "described"), (0.3, "parameters")),
    "named": ((1.0, "named"),),
}  # fmt: skip


class _Maker:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.vocabulary = Vocabulary()
        self.methods = sources.methods
        self.of_family: list[list[int]] = [[] for _ in sources.families]
        for number, method in enumerate(self.methods):
            self.of_family[method.family].append(number)
        self.resources: dict[tuple[int, str], int] = {}
        self.resource_of = [
            self.resources.setdefault((method.family, resource(method.name)), len(self.resources))
            for method in self.methods
        ]
        self.own_names = [
            frozenset(document_terms(f"{family.provider_name} . {family.name}")) for family in sources.families
        ]
        self.asks: list[tuple[str, int, list[int]]] = []  # text, family, methods (none: nothing serves it)
        self._gather_asks()
        self.marked = [list(marked_words(text)) for text, _, _ in self.asks]
        self.tails: dict[str, int] = {}
        self.tail_of = self._tails()

    def made(self) -> Made:
        counts = self._counts()
        shares = {name: counts[name].shares(*how) for name, how in _SHARES.items()}
        terms = len(self.vocabulary)
        anywhere = postings.background(
            [(1.0, shares["family_ask"]), (0.5, shares["family_doc"]), (0.3, shares["nouns"]), (0.3, shares["speaks"])],
            terms,
        )
        columns = {
            name: postings.likelihoods(postings.mixed([(w, shares[part]) for w, part in parts]), anywhere)
            for name, parts in _MIXES.items()
        }
        rarity = postings.rarity(counts["ask"], terms, len(self.asks))
        columns["ask"] = postings.unit(counts["ask"], rarity)
        columns["path"] = _present(counts["path"])
        form = np.array([term.startswith("~") for term in self.vocabulary.numbers])
        refused = self._refused(counts, ~form)
        columns["refusal"] = refused.weights
        spread = np.bincount(counts["family_ask"].terms, minlength=terms)
        few = ~((spread >= min(_SPREAD, len(self.sources.families))) | form | self._verbal())
        lean = postings.leanings(counts["tail_ask"], terms, few)
        documents = document_index.Made.of(self.sources, self._told())
        arrays = {
            **self._arrays(),
            **documents.arrays,
            "family_refusal": refused.families.astype("<f4"),
            "family_judged": refused.judged.astype(np.uint8),
        }
        asks = [text for text, _, _ in self.asks]
        return Made(self.sources, self.vocabulary, asks, columns, lean, arrays, rarity, documents)

    def _told(self) -> set[int]:
        """The families that the lexicon speaks of, or of whose provider's others it does."""
        told = {family for _, family, found in self.asks if found}
        families = self.sources.families
        providers = {families[number].provider for number in told if families[number].lexicon.asks} - {""}
        return told | {number for number, family in enumerate(families) if family.provider in providers}

    def _refused(self, counts: dict[str, Matrix], plain: Any) -> refusal_model.Refusals:
        family = np.array([family for _, family, _ in self.asks], np.int64)
        unserved = np.array([not found for _, _, found in self.asks], bool)
        said = postings.mixed([(1.0, counts["ask"]), (1.0, counts["form"])])
        return refusal_model.fitted(said, family, unserved, len(self.sources.families), plain)

    # ---- what is counted

    def _gather_asks(self) -> None:
        for number, family in enumerate(self.sources.families):
            own = self.of_family[number]
            for key, texts in family.lexicon.asks.items():
                wanted = lexicon.pattern(key)
                found = [method for method in own if wanted.fullmatch(self._known_as(method))]
                if found:
                    self.asks.extend((text, number, found) for text in texts)
            for method in own:
                self.asks.extend((text, number, [method]) for text in self.methods[method].asks)
            self.asks.extend((text, number, []) for text in family.lexicon.cannot)

    def _words(self) -> list[str]:
        """The words of examples and phrases, the most frequent first: what a misspelt word may be meant for."""
        said: Counter[str] = Counter()
        for marked in self.marked:
            said.update(word for word, _ in marked)
        for family in self.sources.families:
            for phrase in family.lexicon.speaks:
                said.update(word for word, _ in marked_words(phrase))
        stems: Counter[str] = Counter()
        for word, count in said.items():
            if word.isascii() and word.isalpha():
                stems[stem(word)] += count
        return [word for word, _ in sorted(stems.items(), key=lambda each: (-each[1], each[0])) if word]

    def _known_as(self, number: int) -> str:
        return self.methods[number].known_as or self.methods[number].name

    def _tails(self) -> list[int]:
        often = Counter(tail(self.methods[method].name) for _, _, found in self.asks for method in found[:1])
        own = {last for last, count in often.items() if count >= _LEAST_ASKS} | set(lexicon.general().verbs)
        found = []
        for method in self.methods:
            last = tail(method.name)
            if last not in own:
                last = tail(split_name(method.name.rpartition(".")[2]).split(" ")[0])
            if last not in own:
                last = _BY_HTTP.get(method.http, "other")
            found.append(self.tails.setdefault(last, len(self.tails)))
        return found

    def _verbal(self) -> Any:
        """Which terms are those of the general lexicon's verbs."""
        known = np.zeros(len(self.vocabulary), bool)
        for phrases in lexicon.general().verbs.values():
            for phrase in phrases:
                for term in request_terms(phrase):
                    if term in self.vocabulary.numbers:  # few services use few verbs
                        known[self.vocabulary.number(term)] = True
        return known

    def _counts(self) -> dict[str, Matrix]:
        families, resources, methods = len(self.sources.families), len(self.resources), len(self.methods)
        sizes = {
            "family_ask": families, "names": families, "speaks": families, "nouns": families, "scopes": families,
            "family_doc": families, "resource_ask": resources, "resource_noun": resources, "resource_name": resources,
            "resource_doc": resources, "tail_ask": len(self.tails), "own": methods,
            "described": methods, "parameters": methods, "named": methods, "path": methods, "ask": len(self.asks),
            "form": len(self.asks),
        }  # fmt: skip
        counts = {name: Counts(self.vocabulary, size) for name, size in sizes.items()}
        self._count_asks(counts)
        self._count_families(counts)
        self._count_methods(counts)
        return {name: each.matrix() for name, each in counts.items()}

    def _count_asks(self, counts: dict[str, Counts]) -> None:
        for number, (marked, (_, family, found)) in enumerate(zip(self.marked, self.asks, strict=True)):
            said, form = terms(marked), form_terms(marked)
            counts["ask"].add(number, said)
            counts["form"].add(number, form)
            counts["family_ask"].add(family, said)
            counts["family_ask"].add(family, form, _FORM)
            for each in {self.resource_of[method] for method in found}:
                counts["resource_ask"].add(each, said)
            for each in {self.tail_of[method] for method in found}:
                counts["tail_ask"].add(each, said)
                counts["tail_ask"].add(each, form)
            for method in found:
                counts["own"].add(method, said)
        for verb, phrases in lexicon.general().verbs.items():
            for phrase in phrases if verb in self.tails else ():
                marked = list(marked_words(phrase))
                counts["tail_ask"].add(self.tails[verb], terms(marked), _VERB)
                counts["tail_ask"].add(self.tails[verb], form_terms(marked), _VERB)

    def _count_families(self, counts: dict[str, Counts]) -> None:
        for number, family in enumerate(self.sources.families):
            title = re.sub(r"\bAPI\b", " ", family.title)
            for name in (title, family.name, family.provider_name):
                counts["names"].add(number, document_terms(name))
            hints = lexicon.general().hints.get(family.provider_name, ())
            counts["speaks"].add(number, phrase_terms((*family.lexicon.speaks, *hints)))
            for key, phrases in family.lexicon.nouns.items():
                wanted = lexicon.pattern(key)
                terms = phrase_terms(phrases)
                counts["nouns"].add(number, terms)
                for method in self.of_family[number]:
                    if wanted.fullmatch(resource(self._known_as(method))):
                        counts["resource_noun"].add(self.resource_of[method], terms)
            for description in family.scopes:
                counts["scopes"].add(number, document_terms(description), known=True)
            counts["family_doc"].add(number, document_terms(family.description), 3.0, known=True)
        for (owner, name), number in self.resources.items():
            counts["resource_name"].add(number, self._without_names(owner, document_terms(name.rpartition(".")[2])))

    def _count_methods(self, counts: dict[str, Counts]) -> None:
        for number, method in enumerate(self.methods):
            name = document_terms(method.name)
            described = document_terms(method.description[:_DESCRIBED])
            counts["named"].add(number, self._without_names(method.family, name))
            counts["named"].add(number, document_terms(method.name.rpartition(".")[2]))
            counts["described"].add(number, self._without_names(method.family, described), known=True)
            counts["family_doc"].add(method.family, name)
            counts["family_doc"].add(method.family, described, known=True)
            counts["resource_doc"].add(self.resource_of[number], described, known=True)
            parameters = [p for p in (*method.parameters, *method.fields) if p not in _ROUTINE]
            counts["parameters"].add(number, document_terms(" . ".join(parameters)), known=True)
            counts["path"].add(number, dict.fromkeys((f"{c.lower()}/" for c in collections(method)), 1.0))

    def _without_names(self, family: int, found: dict[str, float]) -> dict[str, float]:
        """Terms without those that name the family: they choose among families, so they say nothing within one."""
        names = self.own_names[family]
        return {term: weight for term, weight in found.items() if term not in names}

    # ---- what is known of each method

    def _arrays(self) -> dict[str, Any]:
        asked = Counter(method for _, _, found in self.asks for method in found)
        names = {(method.family, method.name) for method in self.methods}
        flags = np.array([_flags(method, names) for method in self.methods], np.uint8).reshape(-1, len(FLAGS))
        offsets = np.cumsum([0, *(len(found) for _, _, found in self.asks)])
        return {
            "words": np.frombuffer("\n".join(self._words()).encode(), np.uint8),
            "method_family": np.array([method.family for method in self.methods], "<u4"),
            "method_resource": np.array(self.resource_of, "<u4"),
            "method_tail": np.array(self.tail_of, "<u4"),
            "method_asks": np.array([min(asked[n], 255) for n in range(len(self.methods))], np.uint8),
            "method_flags": flags.reshape(-1),
            "method_companions": np.array(companions(self.methods), "<i4").reshape(-1),
            "family_start": np.array([0, *np.cumsum([len(own) for own in self.of_family])], "<u4"),
            "family_popular": np.array([family.popular for family in self.sources.families], np.uint8),
            "family_asks": np.bincount(
                [family for _, family, _ in self.asks], minlength=len(self.sources.families)
            ).astype("<u4"),
            "ask_family": np.array([family for _, family, _ in self.asks], "<u4"),
            "ask_start": offsets.astype("<u4"),
            "ask_methods": np.array([method for _, _, found in self.asks for method in found], "<u4"),
        }


def _present(found: Matrix) -> Matrix:
    """A weight of 1 wherever there is anything."""
    return Matrix(found.terms, found.at, np.full(len(found.terms), postings.SCALE), found.contexts)


def _rows(found: Any) -> list[bytes | None]:
    """A row of signed bytes for each term; None where all are 0."""
    some = found.any(axis=1)
    return [found[number].tobytes() if some[number] else None for number in range(len(found))]


FLAGS = ("main", "read", "bundled", "batch", "located", "depth", "root", "collections", "item", "whole")
_FORM = 0.5  # how much the form of a request counts for its family
_VERB = 6.0  # how many examples a phrase of the general lexicon counts for
_BY_HTTP = {"GET": "get", "DELETE": "delete", "PUT": "update", "PATCH": "update"}
_ITEM = re.compile(r"\}(?::[A-Za-z]+)?$")  # the path ends with the id of one thing
_ROOTS = {"folders": 1, "organizations": 2, "billingAccounts": 3}


def _flags(method: Ranked, names: set[tuple[int, str]]) -> list[int]:
    last = method.name.rpartition(".")[2].lower()
    plain = method.name.replace(".locations", "", 1)
    return [
        method.main,
        method.read,
        method.bundled,
        last.startswith(("batch", "bulk")),
        plain != method.name and (method.family, plain) in names,
        min(method.name.count("."), 9),
        _ROOTS.get(method.name.partition(".")[0], 0),
        min(len(collections(method)), 9),
        _ITEM.search(method.path) is not None,
        not _COLLECTION.search(method.path),
    ]


def collections(method: Ranked) -> list[str]:
    """The collections in a method's path: `keyRings` of "projects/{p}/keyRings/{k}"."""
    return _COLLECTION.findall(method.path)


def resource(name: str) -> str:
    """What a method is about: its name without the last part."""
    return name.rpartition(".")[0]


def tail(name: str) -> str:
    """What a method does: the last part of its name, words for the same thing brought to one."""
    last = name.rpartition(".")[2].lower()
    return _SAME.get(last, last)


_SAME = {"insert": "create", "add": "create", "patch": "update", "edit": "update", "remove": "delete",
         "fetch": "get", "read": "get", "show": "get"}  # fmt: skip


def phrase_terms(phrases: Iterable[str]) -> dict[str, float]:
    """The terms of phrases, which stand anywhere in a request."""
    found: dict[str, float] = {}
    for phrase in phrases:
        for term, weight in request_terms(phrase).items():
            if not term.startswith("^"):
                found[term] = found.get(term, 0.0) + weight
    return found
