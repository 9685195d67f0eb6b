"""Requests for several things: "find the deck, then send it to bo". Each clause has a say in what is retrieved.

Only retrieval looks at clauses: who asks for twenty methods wants those of the second wish among them, and one ranking
over all the words favours the first. What a request as a whole is about, and how sure that is, they don't change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

KEPT = 14
"""The first places of a longer ranking, which the whole request decides alone."""

_MOST = 4
_LEAST_WORDS = 3
_BREAK = re.compile(
    r"[.;!?]\s+|,?\s+(?:and\s+then|then|after\s+that|afterwards|and\s+also|plus|also)\s+|,\s+(?:and|but)\s+|\s+and\s+"
    r"|,\s+|\s+[-–—]\s+|:\s+",
    re.IGNORECASE,
)


def clauses(text: str) -> tuple[str, ...]:
    """The clauses that may be wishes of their own, in order; () for a request of one."""
    parts = [part.strip() for part in _BREAK.split(text)]
    found = tuple(part for part in parts if len(part.split()) >= _LEAST_WORDS)[:_MOST]
    return found if len(found) > 1 else ()


def merged(whole: Sequence[int], each: Sequence[Sequence[int]], limit: int) -> list[int]:
    """`limit` of a whole request's ranking, its later places shared with the rankings of its clauses in turn."""
    taken = dict.fromkeys(whole[: min(KEPT, limit)])
    for place in range(max(map(len, each), default=0)):
        for ranking in each:
            if len(taken) < limit and place < len(ranking):
                taken.setdefault(ranking[place])
    for number in whole:
        if len(taken) >= limit:
            break
        taken.setdefault(number)
    return list(taken)
