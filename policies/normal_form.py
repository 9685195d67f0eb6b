"""Unicode's form NFKC in a time that grows with a text's length alone.

Rules: Python sorts the marks on one letter, which takes hours for a text of nothing but marks. So a run of more than
`_MARKS`, which no language has, is parted as UAX #15 says (stream-safe text); every other text is what Python makes it.
"""

from __future__ import annotations

import unicodedata

_MARKS = 30
_JOINER = "\u034f"  # which nobody sees, and nothing is sorted across
_OF_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")  # are no marks, and become nothing else


def nfkc(text: str) -> str:
    """The text with one letter for each that looks like several, or is written in several ways."""
    if text.isascii() or len(text) <= _MARKS:
        return unicodedata.normalize("NFKC", text)
    safe, run = [], 0
    for char in text:
        run = run + 1 if is_mark(char) else 0
        if run > _MARKS:
            safe.append(_JOINER)
            run = 1
        safe.append(char)
    return unicodedata.normalize("NFKC", "".join(safe))


def is_mark(char: str) -> bool:
    """Whether Python may sort it among its neighbours."""
    return unicodedata.combining(char) != 0 or char in _OF_MARKS
