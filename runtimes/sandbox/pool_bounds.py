"""How many containers wait for a job: plain numbers, which the configuration reads without loading Docker."""

from __future__ import annotations

from dataclasses import dataclass

POOLED_BYTES = 10 * 2**20  # what one that waits takes, at most;
LIBRARIES_BYTES = 40 * 2**20  # and one of another image than the base, which loads its libraries meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBounds:
    """How many containers of a profile wait, at least and at most. `most` 0: none do. All that wait together take at
    most `memory` bytes, as far as can be said beforehand."""

    least: int = 2
    most: int = 16
    memory: int = 256 * 2**20


def takes(image: str) -> int:
    """The bytes that a container of that image takes while it waits, at most."""
    return POOLED_BYTES if image == "base" else LIBRARIES_BYTES


NO_POOL = PoolBounds(least=0, most=0)
