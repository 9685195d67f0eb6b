"""What one action on a database may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one action may take. Seconds; bytes of row images as they are kept; rows handed back."""

    lock_seconds: float = 3.0
    seconds: float = 60.0
    image_bytes: int = 512 * 2**20
    result_rows: int = 1000
    result_bytes: int = 1_000_000
