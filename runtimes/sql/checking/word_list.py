"""Lists of words, written as one text."""

from __future__ import annotations


def names(*texts: str) -> frozenset[str]:
    """The words of all the texts."""
    return frozenset(word for text in texts for word in text.split())
