"""References within one document. Nothing outside of it is ever looked at.

Rules: `#/a/b` and nothing else; a chain of references is followed to its end, however long, and a ring of them is an
error that names its place.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from mapper.importing.import_report import BadPart

Keys = tuple[str, ...]
MAX_STEPS = 2_000_000  # places of one document that are looked at


class TooMuch(Exception):
    """A document makes more work than any should: nothing of it is taken."""


class Pointers:
    """The places of one document."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._ends: dict[str, tuple[Any, str]] = {}
        self._left = MAX_STEPS

    def spend(self, steps: int = 1) -> None:
        """Count work that a document makes. Raises TooMuch."""
        self._left -= steps
        if self._left < 0:
            raise TooMuch

    def end(self, reference: Any, keys: Keys) -> tuple[Any, str]:
        """What a reference leads to in the end, and the pointer to it. `keys` lead to who refers. Raises BadPart."""
        if not isinstance(reference, str):
            raise BadPart("must be text", *keys, "$ref")
        passed: list[str] = []
        seen: set[str] = set()
        pointer = reference
        while pointer not in self._ends:
            if pointer in seen:
                raise BadPart(f"{reference[:80]!r} leads back to itself", *keys, "$ref")
            seen.add(pointer)
            passed.append(pointer)
            value = self._at(pointer, keys)
            # Beside a reference words and extensions change nothing; a schema with more than that is one of its own.
            if isinstance(value, dict) and isinstance(value.get("$ref"), str) and not _says(value):
                pointer = value["$ref"]
                continue
            self._ends[pointer] = value, pointer
        found = self._ends[pointer]
        for each in passed:
            self._ends[each] = found
        return found

    def object(self, value: Any, keys: Keys) -> tuple[dict[str, Any], Keys]:
        """The object that stands here, or that is referred to here, and the keys that lead to it. Raises BadPart."""
        self.spend()
        if isinstance(value, dict) and "$ref" in value:
            value, pointer = self.end(value["$ref"], keys)
            keys = parts(pointer)
            self.spend(len(keys))
        if not isinstance(value, dict):
            raise BadPart("must be an object", *keys)
        return value, keys

    def _at(self, pointer: str, keys: Keys) -> Any:
        if not pointer.startswith("#"):
            raise BadPart(
                f"refers to {pointer[:80]!r}, which is outside of this document; nothing else is read or fetched",
                *keys,
                "$ref",
            )
        value = self._root
        for part in parts(pointer):
            self.spend()
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif isinstance(value, list) and part.isdecimal() and len(part) < 8 and int(part) < len(value):
                value = value[int(part)]
            else:
                raise BadPart(f"refers to {pointer[:80]!r}, which isn't there", *keys, "$ref")
        return value


def parts(pointer: str) -> Keys:
    """The keys of a local pointer (`#/a/b~1c`)."""
    inner = unquote(pointer[1:]).strip("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in inner.split("/")) if inner else ()


def _says(value: dict[str, Any]) -> bool:
    return any(not key.startswith("x-") for key in value.keys() - {"$ref", "description", "summary", "title"})
