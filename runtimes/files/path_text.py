"""A path as text."""

from __future__ import annotations

from collections.abc import Iterable

from policies.display_text import escape

_NAMED = 3


def shown(path: bytes) -> str:
    """A path for people and programs: escaped, "." for the root; bytes that aren't UTF-8 as their escapes.

    An agent reads it in outcomes and errors, and looks for the file by it: what is marked for people alone, as other
    spellings are, is marked where a question is made (`plans.told`).
    """
    return escape(path.decode("utf-8", "surrogateescape")) or "."


def named(paths: Iterable[bytes]) -> str:
    """The first of these paths, and how many more there are."""
    found = [shown(path) for path in paths]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
