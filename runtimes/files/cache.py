"""Manifests that are at hand, so that a small change in a large folder needs no reading of what is known."""

from __future__ import annotations

from collections import OrderedDict

from runtimes.files.tree import Manifest

_CACHED = 300_000  # entries


class Cache:
    """Manifests that were read or written last, by their object ids, up to a number of entries in all."""

    def __init__(self, most: int = _CACHED) -> None:
        self._most = most
        self._held: OrderedDict[str, tuple[Manifest, int]] = OrderedDict()

    def get(self, oid: str) -> tuple[Manifest, int] | None:
        """A manifest, and how many it is made of."""
        found = self._held.get(oid)
        if found is not None:
            self._held.move_to_end(oid)
        return found

    def put(self, oid: str, manifest: Manifest, depth: int) -> None:
        self._held[oid] = manifest, depth
        self._held.move_to_end(oid)
        while sum(len(kept.entries) for kept, _ in self._held.values()) > self._most:
            self._held.popitem(last=False)
