"""Finding a method for a person who looks through the catalog: by its name, or by what it does in words.

Rules: whoever writes a name, or a part of one, gets the methods of that name first, main versions before others; words
are left to the ranking that also maps requests, so that both find the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mapper.catalog import Catalog
from policies.catalog import Risk
from policies.errors import InvalidInput

MAX_TEXT = 1000  # characters that are looked at
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One method that may be meant."""

    id: str
    description: str
    risk: Risk
    unsupported: str  # why it can't be called; "": it can


def search(catalog: Catalog, text: str, *, limit: int = 20) -> tuple[Found, ...]:
    """The methods that fit `text`, best first. Raises InvalidInput for no words, StoreUnreadable."""
    text = text[:MAX_TEXT].strip()
    if not re.search(r"\w", text):
        raise InvalidInput("There is no word to search for.", next_step="Search like: goex catalog search send mail")
    found: dict[str, None] = {}
    for method_id in (*_named(catalog, text), *_ranked(catalog, text, limit)):
        found[method_id] = None
        if len(found) == limit:
            break
    methods = (catalog.method(method_id) for method_id in found)
    return tuple(Found(id=m.id, description=m.description, risk=m.risk, unsupported=m.unsupported) for m in methods)


def _named(catalog: Catalog, text: str) -> Iterator[str]:
    """Methods whose name has `text` in it, if it is a name at all: the shortest, which is the nearest, first."""
    # A word in small letters without a dot is rather one of the language.
    if not _NAME.fullmatch(text) or (text.islower() and "." not in text):
        return
    wanted = text.lower()
    own = [
        method.id
        for service in Catalog.bundled().services.values()
        for method in service.methods.values()
        if wanted in method.id.lower()
    ]
    yield from sorted(own, key=lambda each: (len(each), each))
    if catalog.store is not None:
        taken = Catalog.bundled().services
        yield from (each for each in catalog.store.containing(text) if each.partition(".")[0] not in taken)


def _ranked(catalog: Catalog, text: str, limit: int) -> Iterator[str]:
    from mapper.ranking.index import Index  # numpy with it, which takes a moment

    if catalog.store is not None and catalog.trouble is None:
        index = Index.open(catalog.store.path)
    else:
        index = Index.of(Catalog.bundled().services.values())
    yield from (hit.method_id for hit in index.search(text, limit=limit))
