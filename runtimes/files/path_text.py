"""A path as people read it."""

from __future__ import annotations

from policies.display_text import escape_name


def shown(path: bytes) -> str:
    """A path as it can be shown: escaped, "." for the root; bytes that aren't UTF-8 as their escapes."""
    return escape_name(path.decode("utf-8", "surrogateescape")) or "."
