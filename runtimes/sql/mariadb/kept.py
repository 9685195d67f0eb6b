"""The rows of one table as they were and as they are, by what names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import add, not_
from typing import cast

from runtimes.sql.mariadb.rows import Form, Lines


@dataclass(slots=True)
class Counts:
    """Of the rows that were looked at before and after one statement."""

    added: int = 0
    changed: int = 0
    gone: int = 0
    same: int = 0

    def add(self, other: Counts) -> None:
        self.added += other.added
        self.changed += other.changed
        self.gone += other.gone
        self.same += other.same


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows that aren't as they were, each at one place of three lists: what names it, before, after. Not a list of
    tuples: the garbage collector walks the whole process while so many of these are made."""

    keys: list[str]
    was: list[str | None]
    now: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[str, str | None, str | None]]:
        return zip(self.keys, self.was, self.now, strict=True)

    def part(self, start: int, end: int) -> Changed:
        return Changed(self.keys[start:end], self.was[start:end], self.now[start:end])


@dataclass(slots=True)
class Kept:
    """One table's rows by what names them: as they were before everything, and as they are now. None: no row."""

    form: Form
    before: dict[str, str | None] = field(default_factory=dict)
    now: dict[str, str | None] = field(default_factory=dict)
    brief: int = 0  # how many fields the lines after it have in `changed`; 0: all
    first: bool = True  # no statement has written it yet
    absent: bool = False  # whether any row wasn't there, before or now
    _changed: Changed | None = None

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
        self.now = found  # type: ignore[assignment]
        self._changed = self._differing()
        counted.changed, counted.same = len(self._changed), touched - len(self._changed)
        return True

    def follow_heads(self, lines: list[str], heads: list[str], width: int, counted: Counts) -> bool:
        """The same for `lines` that weren't met yet, of which only so many fields were read again: the key's, those
        that may have changed, a comma. Each of `heads` is of another row."""
        if len(heads) != len(lines):
            return False
        same = list(map(str.startswith, lines, heads))
        was, now = lines, heads
        if True in same:
            differ = list(map(not_, same))
            was, now = list(compress(lines, differ)), list(compress(heads, differ))
        keys = self.form.keys_of(now)
        if not all(map(str.startswith, was, map(add, keys, repeat(",")))):
            return False  # in another order, or other rows
        self._changed = Changed(keys, cast(list[str | None], was), cast(list[str | None], now))
        self.first, self.brief = False, width
        counted.changed, counted.same = len(keys), len(heads) - len(keys)
        return True

    def changed(self) -> Changed:
        if self._changed is None:
            self._changed = self._differing()
        return self._changed

    def _differing(self) -> Changed:
        now = self.now
        keys = [key for key, was in self.before.items() if was != now[key]]
        return Changed(keys, [self.before[key] for key in keys], [now[key] for key in keys])


@dataclass(slots=True)
class Touched:
    """What one statement may write in one table. `whole`: every row is in it."""

    keys: set[str] = field(default_factory=set)
    whole: bool = False
    unmet: list[str] = field(default_factory=list)  # lines as they were before it, each of another row, not named yet
