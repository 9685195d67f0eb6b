"""Finding a method for a person who looks through the catalog: by its name, or by what it does in words.

Rules: whoever writes a name, or a piece of one, gets the methods of that name first, main versions before others; words
are left to the ranking that also maps requests, so that both find the same. Two to four words may be either ("gmail
send"): the ranking's best stays first, and the methods whose names are made of these words come up behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from mapper.catalog import Catalog
from mapper.named_services import ServiceNames, named_first
from mapper.store.database import ServiceUnreadable
from policies.errors import InvalidInput
from policies.services import Method, Risk

if TYPE_CHECKING:
    from mapper.ranking.index import Index

MAX_TEXT = 1000  # characters that are looked at
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHORT = 4  # words that may be parts of a name
_LIMIT = 50  # names that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One method that may be meant."""

    id: str
    description: str
    risk: Risk
    unsupported: str  # why it can't be called; "": it can


def search(catalog: Catalog, text: str, *, limit: int = 20, index: Index | None = None) -> tuple[Found, ...]:
    """The methods that fit `text`, best first; `index` is the catalog's, if it is at hand. Raises InvalidInput for no
    words, StoreUnreadable."""
    text = text[:MAX_TEXT].strip()
    if not re.search(r"\w", text):
        raise InvalidInput("There is no word to search for.", next_step="Search like: goex catalog search send mail")
    found = list(_named(catalog, text)[:limit])
    if len(found) < limit:
        found += _behind_the_best(list(_ranked(catalog, text, limit, index)), made_of(catalog, text))
    found = list(dict.fromkeys(found))[:limit]
    methods = list(readable(catalog, found))
    return tuple(Found(id=m.id, description=m.description, risk=m.risk, unsupported=m.unsupported) for m in methods)


def readable(catalog: Catalog, names: list[str]) -> Iterator[Method]:
    """The methods of these names; those of a service that can't be read aren't found."""
    for name in names:
        with suppress(ServiceUnreadable):
            yield catalog.method(name)


def _named(catalog: Catalog, text: str) -> tuple[str, ...]:
    """Methods whose name has `text` in it, if it is a name at all."""
    # A word in small letters without a dot is rather one of the language.
    if not _NAME.fullmatch(text) or (text.islower() and "." not in text):
        return ()
    return _containing(catalog, (text.lower(),), _LIMIT)


def made_of(catalog: Catalog, text: str) -> list[str]:
    """Methods whose full name has each word of a short `text` among its parts, as one or as several."""
    words = {_one(word) for word in text.lower().split()}
    if not 2 <= len(words) <= _SHORT or catalog.trouble is not None:
        return []
    return [
        name
        for name in _containing(catalog, tuple(sorted(words)), _LIMIT * 10)
        if words <= {_one(part) for part in _parts(name)}
    ]


def _containing(catalog: Catalog, texts: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """The full names that have all of `texts` in them, the bundled services' first, short ones before long ones."""
    bundled = {name: service for name, service in Catalog.bundled().services.items() if name in catalog.services}
    own = [
        method.id
        for service in bundled.values()
        for method in service.methods.values()
        if all(text in method.id.lower() for text in texts)
    ]
    own.sort(key=lambda each: (len(each), each))
    if catalog.store is None:
        return tuple(own)
    imported = catalog.store.containing(*texts, limit=limit)
    return (*own, *(each for each in imported if each.partition(".")[0] not in bundled))


def _parts(name: str) -> set[str]:
    """The parts of a full name, whole and as the words that they are written of: copyTo is copyto, copy and to."""
    labels = re.split(r"[._-]", name)
    return {part.lower() for label in labels for part in (label, *_WORDS.findall(label))}


def _one(word: str) -> str:
    return word.removesuffix("s") or word


def _behind_the_best(ranked: list[str], named: list[str]) -> list[str]:
    """The best of the ranking; what both have; then each in turn."""
    both = [each for each in ranked[1:] if each in named]
    rest = [each for each in ranked[1:] if each not in both]
    turns = (each for pair in zip_longest((n for n in named if n not in both), rest) for each in pair if each)
    return [*ranked[:1], *both, *turns]


def _ranked(catalog: Catalog, text: str, limit: int, index: Index | None) -> Iterator[str]:
    from mapper.ranking.index import Index  # numpy with it, which takes a moment

    if index is not None:
        pass
    elif catalog.store is not None and catalog.trouble is None:
        index = Index.open(catalog.store.path)
    else:
        index = Index.bundled()
    named = ServiceNames(catalog).of(text)
    yield from (hit.method_id for hit in named_first(index, named, text, limit=limit))
