"""Which of a request's addresses a parameter gets. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COPIES = ("cc", "bcc")
_LEAD = r"about|bcc|but|by|cc|except|from|not|of|regarding|than|without"
# Between two addresses of a list, with the second one's name: "<a@b.c>, Bob Ray <".
_TOGETHER = re.compile(
    r"(?!\s*[<(]\Z)[>)]?\s*(?:[,;&+/|]+\s*)?\(?(?:(?:and|plus|as\s+well\s+as)\s+)?(?:also\s+)?(?:to\s+)?"
    rf"(?:(?:(?!(?:{_LEAD}|never|no)\b)(?-i:[^\W\d_a-z])[\w.'’-]*\s+){{0,3}}[<(])?",
    re.IGNORECASE,
)
_LEADS = re.compile(rf"\b({_LEAD})(?:\s+to)?(?:(?:\s+(?!to\b)[\w.'’-]+){{1,3}}\s*[<(]|\W{{0,3}})\Z", re.IGNORECASE)
_OWNS = re.compile(
    r"[>)]?(?:['’]s\b|\s+(?:as|in|on)\s+(?:the\s+)?b?cc\b|\s*\((?:(?:as|in|on)\s+)?b?cc\b[^()@]{0,40}\))",
    re.IGNORECASE,
)


def addressed(phrase: str, values: Sequence[str], name: str) -> list[str]:
    """Of these addresses those that stand together where `name` gets its own: an address that something is about,
    comes from or isn't for gets nothing."""
    found: list[str] = []
    end = 0
    for value in values:
        start = phrase.find(value, end)
        if start < 0:
            return []
        before, end = phrase[end:start], start + len(value)
        if found and _TOGETHER.fullmatch(before) is None:
            break
        lead = _LEADS.search(before)
        told = lead[1].lower() if lead else ""
        if _OWNS.match(phrase, end) is None and (found or told == name or (not told and name not in _COPIES)):
            found.append(value)
    return found
