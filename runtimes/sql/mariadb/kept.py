"""The rows of one table as they were and as they are, by what names them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import cast

from runtimes.sql.mariadb.rows import Form, Lines


@dataclass(slots=True)
class Counts:
    """Of the rows that were looked at before and after one statement."""

    added: int = 0
    changed: int = 0
    gone: int = 0
    same: int = 0


@dataclass(slots=True)
class Kept:
    """One table's rows by what names them: as they were before everything, and as they are now. None: no row."""

    form: Form
    before: dict[str, str | None] = field(default_factory=dict)
    now: dict[str, str | None] = field(default_factory=dict)
    brief: int = 0  # how many fields the lines after it have in `changed`; 0: all
    first: bool = True  # no statement has written it yet
    absent: bool = False  # whether any row wasn't there, before or now
    _changed: list[tuple[str, str | None, str | None]] | None = None

    def full(self, was: str | None, now: str | None) -> str | None:
        """The line after it, of a row of `changed`."""
        if not self.brief or was is None or now is None:
            return now
        return now + was.split(",", self.brief)[self.brief]

    def stale(self) -> None:
        self._changed = None

    def meet(self, lines: Lines) -> None:
        """Rows as they are at this moment; what is known of before stays."""
        before, now = self.before, self.now
        if not before:
            self.before, self.now = lines.copy(), lines.copy()  # type: ignore[assignment]
            return
        for key, line in lines.items():
            if key not in before:
                before[key] = now[key] = line

    def follow(self, found: Lines, touched: int, counted: Counts) -> bool:
        """The quick way for very many rows, where the first statement only changed rows that are all still there."""
        if not self.first or self.absent or not len(found) == len(self.before) == touched:
            return False
        if list(found) != list(self.before):
            return False
        self.first = False
        self._changed = [
            (key, was, line)
            for (key, was), line in zip(self.before.items(), found.values(), strict=True)
            if was != line
        ]
        self.now = found  # type: ignore[assignment]
        counted.changed, counted.same = len(self._changed), touched - len(self._changed)
        return True

    def follow_heads(self, heads: list[str], width: int, counted: Counts) -> bool:
        """The same, of whose lines only so many fields were read: the key's, those that may have changed, a comma."""
        if len(heads) != len(self.before):
            return False
        lines = cast(list[str], list(self.before.values()))  # all of them are there, or it isn't asked (`absent`)
        differ = list(map(not_, map(str.startswith, lines, heads)))
        changed: list[tuple[str, str | None, str | None]] = list(
            compress(zip(self.before, lines, heads, strict=True), differ)
        )
        if not all(map(str.startswith, compress(heads, differ), (f"{key}," for key, _, _ in changed))):
            return False  # in another order, or other rows
        self.first, self.brief, self._changed = False, width, changed
        counted.changed, counted.same = len(changed), len(heads) - len(changed)
        return True

    def changed(self) -> list[tuple[str, str | None, str | None]]:
        """Rows that aren't as they were: what names them, before, after."""
        if self._changed is None:
            now = self.now
            self._changed = [(key, was, now[key]) for key, was in self.before.items() if was != now[key]]
        return self._changed


@dataclass(slots=True)
class Touched:
    """What one statement may write in one table. `whole`: every row is in it."""

    keys: set[str] = field(default_factory=set)
    whole: bool = False
