"""A path as text."""

from __future__ import annotations

from policies.display_text import escape


def shown(path: bytes) -> str:
    """A path for people and programs: escaped, "." for the root; bytes that aren't UTF-8 as their escapes.

    An agent reads it in outcomes and errors, and looks for the file by it: what is marked for people alone, as other
    spellings are, is marked where a question is made (`plans.told`).
    """
    return escape(path.decode("utf-8", "surrogateescape")) or "."
