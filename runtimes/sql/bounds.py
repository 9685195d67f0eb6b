"""How many rows a statement may write, and that in steps of 1, 2, 5, 10, 20, 50, …: a plan says no exact number.

A count is an answer of the database to whoever chose the WHERE. The person is told a bound, the action is held to it,
and nobody learns more from either. Rows that a statement gives back are kept up to the limits, and counted beyond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from policies.errors import Conflict
from policies.jsonvalue import JsonValue
from runtimes.sql.contract import Limits, Result, Statement

MOST = 10**15
UNCOUNTED = 10**9  # stands for a number that isn't known
EXACT = 10_000  # rows of a table that are counted one by one, and that a condition's plain comparisons are made for
COUNT_SECONDS = 1.0  # for which a count may run


def stepped(rows: int) -> int:
    """The first step that isn't below `rows`; at least 1, since "none" is an answer too."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if rows <= factor * step or factor * step >= MOST:
                return factor * step
        step *= 10


class Sizes(ABC):
    """How many rows tables have, and what few conditions of statements may be asked for. Each is asked for once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, table: str) -> int:
        """All rows of a table: exactly, where it isn't large. What may take any time isn't asked, like a view."""
        if table not in self._known:
            self._known[table] = self._size(table)
        return self._known[table]

    def at_most(self, statement: Statement) -> int:
        """A bound that is known without a look at what its condition finds."""
        if statement.most is not None:
            return statement.most
        return self.of(statement.table) if statement.verb != "insert" else self.of_sources(statement)

    def of_sources(self, statement: Statement) -> int:
        """How many rows its query may give."""
        if not statement.sources:
            return UNCOUNTED
        number = 1
        for name in statement.sources:
            number = min(number * max(1, self.of(name)), MOST)
        return number

    def counted(self, statement: Statement) -> int:
        """The same, or what `count_sql` gives where that is less: only of a table that isn't large, so that it ends
        soon."""
        bound = self.at_most(statement)
        if statement.most is not None or not statement.count_sql or not 0 < bound <= EXACT:
            return bound
        found = self._number(statement.count_sql)
        return bound if found is None else min(found, bound)

    @abstractmethod
    def _size(self, table: str) -> int: ...

    @abstractmethod
    def _number(self, sql: str) -> int | None:
        """What a query of one number gives; None where it fails, or takes too long, which isn't told apart."""


def beyond(rows: int) -> Conflict:
    """The error of a program that changes more rows than it was planned with."""
    return Conflict(
        f"It would change more than {rows} rows. Nothing was changed.",
        next_step="Ask for the action again: its number of rows is looked at anew.",
        difference=(f"more than {rows} rows",),
    )


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
