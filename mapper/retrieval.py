"""Which methods may be meant: lexical ranking over the catalog, the service first.

BM25 over short weighted documents (how people ask for it, description, name, parameters). Words that speak of a
service raise its methods, a service named outright raises them above all others, and a connected one is preferred
among equals. Deterministic, without any model, and built once for a catalog.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from mapper.catalog import Catalog
from policies.catalog import Method, Risk, Service

_K1, _B = 1.2, 0.5
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[._\-/]")

# Words that say nothing about which method is meant.
_STOP = """
a an the of in on at to for from by with and or as is are was were be been it its it's this that these those there
i am me my we our us you your he she they them their his her please can could would will shall should want need
like just now then so some any into about via using called named titled saying says which what how when where do
does did has have had all if not no up out also
"""
STOP = frozenset(_STOP.split())

# One spelling for words that people use alike; applied to requests and documents both.
_SAME = {
    "msg": "message", "msgs": "message", "dm": "message", "repo": "repository", "pr": "pull_request",
    "prs": "pull_request", "mr": "pull_request", "ticket": "issue", "bug": "issue", "mail": "email", "e": "email",
    "erase": "delete", "trash": "delete", "drop": "delete", "wipe": "delete", "publish": "post", "write": "post",
    "tell": "post", "say": "post", "announce": "post", "notify": "post", "ping": "post", "shout": "post",
    "display": "show", "view": "show", "see": "show", "get": "show", "fetch": "show", "give": "show", "print": "show",
    "enumerate": "list", "make": "create", "new": "create", "start": "create", "add": "add", "people": "member",
    "person": "member", "user": "member", "participant": "member", "everyone": "member", "title": "name",
    "rename": "name", "subject": "topic", "discussion": "comment", "reply": "comment", "convo": "channel",
    "conversation": "channel", "modify": "change", "edit": "change", "update": "change", "set": "change",
    "throw": "kick", "eject": "kick", "resolve": "close", "emoji": "reaction", "react": "reaction",
    "latest": "recent", "last": "recent", "newest": "recent",
}  # fmt: skip

# Fields of a method's document and how much a word in them counts.
_WEIGHTS = {"words": 3, "description": 2, "name": 2, "parameters": 1}

_SERVICE_NAMED = 6.0
_SERVICE_WORD = 0.6
_CONNECTED = 0.4
_PHRASE = 3.0
_MOOD = 2.0

# How requests that only want to know something begin; what is ordered otherwise changes something.
_POLITE = re.compile(
    r"^\W*(?:(?:please|hey|hi|ok|now|(?:can|could|would|will) you|i (?:want|need) (?:you )?to)\W+)+", re.I
)
_ASKS = re.compile(
    r"(?:what|which|who|whose|where|when|how|is|are|was|were|do|does|did|have|has|am|can|show|list|read|get|find|look|"
    r"fetch|display|view|check|see|tell me|give me|catch me)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One method and how well it fits; scores compare within one ranking only."""

    method: Method
    score: float


def tokens(text: str) -> list[str]:
    """The words of `text` that can mean something, stemmed and brought to one spelling."""
    found = []
    text = text.lower().replace("pull request", "pull_request").replace("merge request", "pull_request")
    for word in re.findall(r"pull_requests?|[a-z0-9]+(?:'[a-z]+)?", text):
        if word not in STOP:
            stemmed = stem(word)
            found.append(_SAME.get(word, _SAME.get(stemmed, stemmed)))
    return found


def stem(word: str) -> str:
    """A light English stem: plural and verb endings, nothing cleverer."""
    if word.endswith("'s"):
        word = word[:-2]
    for ending, least in (("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            if ending == "ies":
                return cut + "y"
            if ending == "es" and not cut.endswith(("s", "x", "z", "ch", "sh")):
                return cut + "e"
            if ending in ("ing", "ed") and len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "ls":
                return cut[:-1]
            return cut
    return word


class Index:
    """The catalog's methods as documents, with how rare each word is."""

    def __init__(self, catalog: Catalog) -> None:
        self._methods: list[Method] = []
        self._postings: dict[str, list[tuple[int, float]]] = {}
        self._service_words: dict[str, set[str]] = {}
        self._names: dict[str, str] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._ways: dict[str, list[frozenset[str]]] = {}
        self._own_names = frozenset(token for s in catalog.services.values() for token in _names_of(s))
        documents: list[Counter[str]] = []
        for service in catalog.services.values():
            self._service_words[service.name] = set(_service_tokens(service))
            for spelling in (service.name, service.title):
                self._names[spelling.lower()] = service.name
            for method in service.methods.values():
                self._methods.append(method)
                documents.append(_document(method, _names_of(service)))
                self._ways[method.id] = [frozenset(tokens(way)) - _names_of(service) for way in method.words]
                self._words[method.id] = frozenset(documents[-1]) | self._service_words[service.name]
        lengths = [sum(document.values()) for document in documents]
        average = sum(lengths) / len(lengths) if lengths else 1.0
        frequency = Counter(word for document in documents for word in document)
        self.idf = {
            word: math.log(1 + (len(documents) - count + 0.5) / (count + 0.5)) for word, count in frequency.items()
        }
        for number, document in enumerate(documents):
            norm = _K1 * (1 - _B + _B * lengths[number] / average)
            for word, count in document.items():
                weight = self.idf[word] * count * (_K1 + 1) / (count + norm)
                self._postings.setdefault(word, []).append((number, weight))

    def words_of(self, method: Method) -> frozenset[str]:
        """Every word that speaks of this method or its service."""
        return self._words[method.id]

    def methods_of(self, services: Iterable[str], limit: int) -> list[Hit]:
        """Methods of these services without any ranking: for requests that name things and say no more."""
        wanted = frozenset(services)
        return [Hit(method, 0.0) for method in self._methods if method.service in wanted][:limit]

    def named(self, text: str) -> frozenset[str]:
        """The services that `text` names outright."""
        words = set(re.findall(r"[a-z0-9]+", text.lower()))
        return frozenset(service for spelling, service in self._names.items() if spelling in words)

    def search(
        self, text: str, *, connected: frozenset[str] = frozenset(), hinted: Iterable[str] = (), limit: int = 12
    ) -> list[Hit]:
        """The methods that fit best, best first. `hinted`: services that something else in the request points to."""
        words = Counter(tokens(text))
        scores: dict[int, float] = {}
        for word, count in words.items():
            for number, weight in self._postings.get(word, ()):
                scores[number] = scores.get(number, 0.0) + weight * min(count, 2)
        named, hints = self.named(text), frozenset(hinted)
        plain = _POLITE.sub("", text)
        asks = plain.rstrip().endswith("?") or _ASKS.match(plain) is not None
        hits = []
        for number, score in scores.items():
            method = self._methods[number]
            if method.service in named or (not named and method.service in hints):
                score += _SERVICE_NAMED
            score += _SERVICE_WORD * len(self._service_words[method.service] & words.keys())
            score += _PHRASE * self._likeness(method, words.keys())
            if (method.risk is Risk.READ) == asks:
                score += _MOOD
            if method.service in connected:
                score += _CONNECTED
            hits.append(Hit(method, score))
        hits.sort(key=lambda hit: (-hit.score, hit.method.id))
        return hits[:limit]

    def _likeness(self, method: Method, words: Collection[str]) -> float:
        """How like the request is to the most like way of asking for the method: shared words over all words."""
        wanted = set(words) - self._own_names
        return max((len(wanted & way) / len(wanted | way) for way in self._ways[method.id] if way), default=0.0)


def _service_tokens(service: Service) -> list[str]:
    return [token for text in (service.name, service.title, *service.words) for token in tokens(text)]


def _names_of(service: Service) -> frozenset[str]:
    """The words that name the service itself. They choose among services, so they say nothing within one."""
    return frozenset((*tokens(service.name), *tokens(service.title)))


def _document(method: Method, names: frozenset[str]) -> Counter[str]:
    fields = {
        "words": " ".join(method.words),
        "description": method.description.split(" Can't be taken back")[0],
        "name": " ".join(_CAMEL.split(method.name)),
        "parameters": " ".join(" ".join(_CAMEL.split(name)) for name in method.parameters["properties"]),
    }
    document: Counter[str] = Counter()
    for field, text in fields.items():
        for word in set(tokens(text)) - names:
            document[word] += _WEIGHTS[field]
    return document
