"""How many containers wait for a job (`warm`): plain numbers, which the configuration reads without loading Docker."""

from __future__ import annotations

from dataclasses import dataclass

WAITING_BYTES = 10 * 2**20  # what one that waits takes, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many containers of a profile wait, at least and at most. `most` 0: none do."""

    least: int = 2
    most: int = 16


NONE_WAIT = Bounds(least=0, most=0)
