"""What the linear models see: of a request, a family, a method, and a whole ranking. Pure, vectorised with numpy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mapper.ranking.terms import form_terms, marked_words, terms

UNKNOWN_RARITY = 8.0
"""How rare a word counts that no example has."""

FAMILY_NAMES = ("words", "title", "example", "popular", "connected", "asks")

NAMES = (
    "resource", "tail", "own", "described", "named", "nearest", "near", "main", "asks", "path", "path_exact",
    "path_missing", "mood", "depth", "root", "batch", "located", "item_named", "item_unnamed", "several_named", "whole",
)  # fmt: skip

RANKING_NAMES = (
    "bias", "share", "family_share", "within", "margin", "served", "refused", "refused_more", "refused_here", "unknown",
    "covered", "family_covered", "elsewhere", "length",
)  # fmt: skip

_ROOTS = {"folders/": 1, "organizations/": 2, "billingaccounts/": 3}
_READS_TEXT = """
what which who whose whom where when how is are was were do does did have has had am show list read find look fetch
display view check see tell give pull any search anything
"""
_READS = frozenset(_READS_TEXT.split())
_NAMING = frozenset(
    ("<hexid>", "<fileid>", "<videoid>", "<channelid>", "<playlistid>", "<id1>", "<id2>", "<id3>", "<uuid>", "<email>",
     "<robot>", "<quoted>", "<number>", "<placeid>", "<orderid>", "<billingid>", "<package>", "<file>", "<domain>")
)  # fmt: skip
_POLITE_TEXT = "please hey hi ok now can could would will you i want need to pls kindly just me"
_POLITE = frozenset(_POLITE_TEXT.split())


@dataclass(slots=True)
class Request:
    """A request as terms, and what its form says."""

    terms: dict[str, float]
    form: dict[str, float]
    asks: bool  # wants to know, rather than to change
    roots: frozenset[int]
    paths: int
    names: bool  # names one thing: an id, an address, a name in quotes
    scale: float
    known: dict[str, float] = field(default_factory=dict)  # terms that the index has, with their rarity

    @classmethod
    def of(cls, text: str) -> Request:
        marked = list(marked_words(text))
        found = terms(marked)
        plain = [word for word, quoted in marked if not quoted]
        first = next((word for word in plain if word not in _POLITE), "")
        return cls(
            terms=found,
            form=form_terms(marked),
            asks=first in _READS or text.rstrip().endswith("?"),
            roots=frozenset(number for path, number in _ROOTS.items() if path in found),
            paths=sum(term.endswith("/") for term in found),
            names=any(term in _NAMING for term in found),
            scale=max(sum(found.values()), 1.0) ** 0.5,
        )


@dataclass(slots=True)
class Evidence:
    """What a request's terms say: a sum for every family, resource, last word and method; the nearest examples."""

    family: Any
    title: Any
    resource: Any
    tail: Any
    own: Any
    described: Any
    named: Any
    path: Any
    asks: Any  # numbers of the nearest examples, nearest first
    similar: Any  # how near they are, 0 to 1
    connected: list[int]
    rows: dict[str, tuple[Any, ...]]  # what the tables say of each term
    refusal: Any  # of each family: the log odds, by the words, that none of its methods serves the request


def of_families(request: Request, found: Evidence, arrays: dict[str, Any]) -> Any:
    """`FAMILY_NAMES` for each family."""
    count = len(found.family)
    words = found.family / request.scale
    example = _family_near(found, arrays, count)
    connected = np.zeros(count)
    connected[found.connected] = 1.0
    title = found.title / request.scale
    return np.stack(
        [words, title, example, arrays["family_popular"], connected, np.log1p(arrays["family_asks"])], axis=1
    )


def of_methods(request: Request, found: Evidence, numbers: Any, arrays: dict[str, Any], flags: dict[str, Any]) -> Any:
    """`NAMES` for each of the methods."""
    nearest, near = _examples(found, numbers, arrays, len(arrays["method_family"]))
    path = np.rint(found.path[numbers])
    item = flags["item"][numbers].astype(bool)
    exact = (path == request.paths) & (flags["collections"][numbers] == request.paths) & bool(request.paths)
    root = flags["root"][numbers]
    wanted = np.zeros(len(numbers))
    for number in (1, 2, 3):
        wanted += (root == number) * (1.0 if number in request.roots else -1.0)
    columns = (
        found.resource[arrays["method_resource"][numbers]] / request.scale,
        found.tail[arrays["method_tail"][numbers]],
        found.own[numbers] / request.scale,
        found.described[numbers] / request.scale,
        found.named[numbers] / request.scale,
        nearest * 5,
        np.log1p(near * 3),
        flags["main"][numbers],
        np.minimum(arrays["method_asks"][numbers], 5) / 5,
        path,
        exact,
        (request.paths - np.minimum(path, request.paths)) if request.paths else np.zeros(len(numbers)),
        flags["read"][numbers].astype(bool) != request.asks,
        flags["depth"][numbers] / 3,
        wanted,
        flags["batch"][numbers],
        flags["located"][numbers],
        item & request.names,
        item & (not request.names),
        ~item & request.names & flags["read"][numbers].astype(bool),
        flags["whole"][numbers],
    )
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


@dataclass(slots=True)
class Ranking:
    """What is known once methods are ranked: of the first one, and of all."""

    families: Any  # scores of all families
    elsewhere: int  # the number of the family that is none
    scores: Any  # of the competing methods, best first
    families_of: Any
    covered: float  # share of the request's words that speak for the first method
    family_covered: float  # and for its family


def of_ranking(request: Request, found: Evidence, ranking: Ranking, arrays: dict[str, Any]) -> Any:
    """`RANKING_NAMES`: what tells whether the first method is right, and whether any is."""
    scores, first = ranking.scores, int(ranking.families_of[0])
    shares = np.exp(scores - scores[0])
    shares /= shares.sum()
    own = ranking.families_of == first
    likely = ranking.families - log_sum(ranking.families)
    start = arrays["ask_start"]
    with_methods = start[found.asks + 1] > start[found.asks]
    here = arrays["ask_family"][found.asks] == first
    served = _most(found.similar[with_methods])
    refused = _most(found.similar[~with_methods])
    words = {term: weight for term, weight in request.terms.items() if weight == 1.0 and term[0] not in "<^"}
    rare = {term: request.known.get(term, UNKNOWN_RARITY) for term in words}
    unknown = sum(value for term, value in rare.items() if term not in request.known)
    return np.array(
        [
            1.0,
            float(shares[0]),
            float(np.exp(likely[first])),
            float(shares[0] / shares[own].sum()),
            min(float(scores[0] - scores[1]), 4.0) if len(scores) > 1 else 4.0,
            served,
            refused,
            max(refused - served, 0.0),
            max(_most(found.similar[here & ~with_methods]) - _most(found.similar[here & with_methods]), 0.0),
            unknown / max(sum(rare.values()), 1.0),
            ranking.covered,
            ranking.family_covered,
            float(np.clip(likely[ranking.elsewhere] - likely[first], -4.0, 4.0)),
            min(len(words), 12) / 12,
        ]
    )


TRAITS = ("unexplained", "refused_near", "refused_here", "nearest_here", "nearest_own", "refusal")
"""What the lexicon's examples say of a request and its first method, beside the ranking."""

_NEAREST, _NEAREST_HERE = 8, 5  # examples that are looked at
_NEAREST_OF_ALL = 5  # examples that have a say in the service
_SUREST = 8.0  # log odds


def traits(found: Evidence, first: int, family: int, unexplained: int, arrays: dict[str, Any]) -> dict[str, float]:
    """`TRAITS` of a ranking whose first method is `first`, of `family`; `unexplained` words don't speak for it.

    How much of the nearest examples is refused, in all services and in this one (by squared likeness); how like the
    nearest example of this service is, and of this very method; what the words say (`mapper.ranking.refusal_model`)."""
    start, similar = arrays["ask_start"].astype(np.int64), found.similar
    refused = start[found.asks + 1] == start[found.asks]
    here = arrays["ask_family"][found.asks] == family
    # The examples that hold this method's number in their part of `ask_methods`.
    places = np.flatnonzero(arrays["ask_methods"] == first)
    own = np.isin(found.asks, np.searchsorted(start, places, side="right") - 1)
    return {
        "unexplained": min(unexplained, 12) / 12,
        "refused_near": _share(similar[:_NEAREST], refused[:_NEAREST], 0.0),
        "refused_here": _share(similar[here][:_NEAREST_HERE], refused[here][:_NEAREST_HERE], 0.5),
        "nearest_here": _most(similar[here]),
        "nearest_own": _most(similar[own]),
        "refusal": float(np.clip(found.refusal[family], -_SUREST, _SUREST)),
    }


def _share(similar: Any, part: Any, unknown: float) -> float:
    total = float((similar**2).sum())
    return float((similar[part] ** 2).sum()) / total if total > 0 else unknown


def _most(values: Any) -> float:
    return float(values.max()) if len(values) else 0.0


def combined(families: Any, family_of: Any, methods: Any) -> Any:
    """Log odds of methods: how likely the family is, times how likely the method is within it.

    `families` are the scores of all families, `methods` those of the competing methods, `family_of` their families.
    Were every method's score counted in full against its family's others (`_WITHIN` of 1), a family's methods could
    say nothing about the family; were none, families with many methods would win by their number.
    """
    likely = families - log_sum(families)
    made = np.zeros(len(methods))
    for family in np.unique(family_of).tolist():
        own = family_of == family
        made[own] = likely[family] + methods[own] - _WITHIN * log_sum(methods[own])
    return made


_WITHIN = 0.8


def log_sum(scores: Any) -> float:
    """log of the sum of exponentials."""
    most = float(scores.max())
    return most + float(np.log(np.exp(scores - most).sum()))


def _family_near(found: Evidence, arrays: dict[str, Any], count: int) -> Any:
    """How much of the nearest examples is each family's: one of them alone may be near by an accident of words."""
    near = np.zeros(count)
    np.add.at(near, arrays["ask_family"][found.asks[:_NEAREST_OF_ALL]], found.similar[:_NEAREST_OF_ALL])
    return near


def _examples(found: Evidence, numbers: Any, arrays: dict[str, Any], count: int) -> tuple[Any, Any]:
    """How near the nearest example of each method is, and the sum of squares over all that are near."""
    nearest, near = np.zeros(count), np.zeros(count)
    start, methods = arrays["ask_start"].astype(np.int64), arrays["ask_methods"]
    lengths = start[found.asks + 1] - start[found.asks]
    if lengths.sum():
        # The places in `methods` of all the examples' methods, one example after the other.
        shift = np.repeat(start[found.asks] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        own = methods[np.arange(lengths.sum()) + shift]
        similar = np.repeat(found.similar, lengths)
        np.maximum.at(nearest, own, similar)
        np.add.at(near, own, similar**2)
    return nearest[numbers], near[numbers]


def may_be_misspelt(term: str) -> bool:
    """Whether an unknown term is a word that a slip of the keyboard could have made."""
    return 4 <= len(term) <= 14 and re.fullmatch(r"[a-z]+", term) is not None


def slips(word: str) -> set[str]:
    """All words that are one slip away: a letter dropped, doubled, swapped or mistaken."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    splits = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    found = {a + b[1:] for a, b in splits if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    found |= {a + c + b[1:] for a, b in splits if b for c in letters}
    found |= {a + c + b for a, b in splits for c in letters}
    return found - {word}


def light_slips(word: str) -> set[str]:
    """Those slips that leave all letters there, but for one too few or too many: one mistaken makes another word."""
    return {slip for slip in slips(word) if len(slip) != len(word) or sorted(slip) == sorted(word)}
