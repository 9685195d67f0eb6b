"""The rows that one statement gave back, up to the limits: what is beyond them is counted and not kept."""

from __future__ import annotations

from policies.jsonvalue import JsonValue
from runtimes.sql.contract import Limits, Result


class ResultRows:
    """Collects rows until one doesn't fit; from then on it only counts."""

    def __init__(self, columns: tuple[str, ...], limits: Limits) -> None:
        self.columns, self._limits = columns, limits
        self.rows: list[tuple[JsonValue, ...]] = []
        self.seen = 0
        self._size = 0
        self._closed = False

    def fits(self, size: int) -> bool:
        """Count a row of so many bytes; whether it is to be kept, by `rows.append`."""
        self.seen += 1
        if self.full:
            return False
        self._size += size
        self._closed = self._size > self._limits.result_bytes
        return not self._closed

    @property
    def full(self) -> bool:
        return self._closed or len(self.rows) >= self._limits.result_rows

    def result(self, seen: int | None = None) -> Result:
        """`seen`: how many rows there were in all, where that was counted elsewhere."""
        total = self.seen if seen is None else seen
        return Result(columns=self.columns, rows=tuple(self.rows), cut=total - len(self.rows))
