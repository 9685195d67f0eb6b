"""What a provider says, in the words about a parameter, that a scope refuses. Pure.

Google's documents have it in prose alone ("Parameter cannot be used when accessing the api using the X scope"), about
a parameter or about one of its values. It becomes `x-refused-scopes`: each scope's name with the values that it
refuses, none of them meaning any.
"""

from __future__ import annotations

import re
from typing import Any

_REFUSES = re.compile(
    r"\b(?:cannot|can't|can not|may not|must not|not (?:allowed|supported|available))\b[^.;]{0,120}?"
    r"\b(?:using|under|with)\s+(?:the\s+|only\s+)*[`'\"]?([A-Za-z][\w.:/-]{2,200}?)[`'\"]?\s+(?:oauth\s+)?scope\b",
    re.IGNORECASE,
)
_MOST = 2000  # characters of a description that are read


def refused_scopes(about: Any) -> dict[str, list[str]]:
    """The scopes that refuse a parameter of a discovery document, each with the values refused; [] is any value."""
    if not isinstance(about, dict):
        return {}
    found: dict[str, list[str]] = {name: [] for name in _named(about.get("description"))}
    values, described = about.get("enum"), about.get("enumDescriptions")
    if isinstance(values, list) and isinstance(described, list):
        for value, text in zip(values, described, strict=False):
            for name in _named(text):
                if isinstance(value, str) and (name not in found or found[name]):
                    found.setdefault(name, []).append(value)
    return found


def _named(text: Any) -> list[str]:
    return _REFUSES.findall(text[:_MOST]) if isinstance(text, str) else []
