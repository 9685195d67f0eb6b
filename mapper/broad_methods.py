"""Methods that change everything of a kind at once, and requests that name one thing.

Rules: who names a file doesn't want the trash emptied. Where a request names one thing and doesn't speak of all, a
method that deletes or changes all of a kind is behind every other; one that needs no argument can't be about the thing
that was named, and isn't offered. A method whose own word the request says ("wipe the phone p-17") isn't broad for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from mapper.importing.risks import words
from mapper.slots import Slots
from policies.services import Method, Risk

_BROAD = frozenset({"empty", "clear", "purge", "truncate", "wipe", "flush", "reset", "all", "everything"})
_ALL = re.compile(
    r"\b(?:all|every|everything|empty|entire|whole|each|any|trash\s*can|the\s+(?:trash|bin)|clear|purge|flush|reset)\b",
    re.I,
)
# A file's name, an id, or a name that somebody gave: one thing. Slots are what else a request can name.
_ONE = re.compile(
    r"(?<![\w.-])[\w-]+\.[A-Za-z][A-Za-z0-9]{1,4}(?![\w.])|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,}|"
    r"\b[a-z]+[-_][a-z0-9_-]{2,}\b|#?\b\d+\b"
)


class _Read(Protocol):
    @property
    def method(self) -> Method: ...


_R = TypeVar("_R", bound=_Read)


def narrowed(readings: Sequence[_R], found: Slots) -> tuple[_R, ...]:
    """The readings, without those that are too broad for the one thing that a request names, or with these behind the
    others where an argument could say that one thing; the first is never a broad one."""
    if not names_one(found):
        return tuple(readings)
    said = frozenset(words(found.phrase))
    broad = [reading for reading in readings if is_broad(reading.method, said)]
    kept = [reading for reading in readings if not is_broad(reading.method, said)]
    return (*kept, *(reading for reading in broad if reading.method.parameters.get("required"))) if kept else ()


def names_one(found: Slots) -> bool:
    """Whether a request names one thing, and doesn't speak of all."""
    return not _ALL.search(found.phrase) and bool(found.slots or found.said or _ONE.search(found.phrase))


def is_broad(method: Method, said: frozenset[str] = frozenset()) -> bool:
    """Whether a method changes everything of a kind at once, by its name; the words in `said` don't count."""
    if method.risk < Risk.WRITE:
        return False
    return bool((_BROAD - said) & set(words(method.name.rpartition(".")[2])))
