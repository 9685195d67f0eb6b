"""Rows before and after, caught while they change.

SQLite calls a hook with the old and the new row before each change of a row, whatever causes it: the statement itself,
a trigger, a cascade, REPLACE. (Its session extension stands on the same hook. It was tried and measured: it leaves out
rows whose key holds NULL and columns that didn't change, so that a later change of those wouldn't show, and it isn't
faster for 200,000 rows.) A row is known by its rowid, or by its key where a table has no rowids. What happened to it in
between doesn't matter: its first before and its last after are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from policies.errors import Conflict, GoexError, Unsupported
from runtimes.sql.bounds import beyond
from runtimes.sql.sqlite.errors import Row
from runtimes.sql.sqlite.restore import Change, Identity, identity_of, same
from runtimes.sql.sqlite.schema import Shape

_VERBS = {apsw.SQLITE_INSERT: "insert", apsw.SQLITE_UPDATE: "update", apsw.SQLITE_DELETE: "delete"}
_EACH = 200  # bytes that one caught row takes at least


class Recorder:
    """Catches and counts every row that changes in a connection. `keep` False: counts alone, and not the rows of
    `inner`, the tables in which a module keeps its own: what is kept then is pages, which hold them too."""

    def __init__(
        self,
        shapes: Callable[[str], Shape | None],
        *,
        keep: bool,
        most_rows: int,
        most_bytes: int,
        inner: frozenset[str] = frozenset(),
    ) -> None:
        self.counts: Counter[tuple[str, str, int]] = Counter()  # table, verb, 0 for the statement itself
        self.rows = 0
        self.trouble: GoexError | None = None
        self._shapes, self._keep, self._inner = shapes, keep, frozenset() if keep else inner
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._caught: list[tuple[str, int, int, tuple[Any, ...] | None, tuple[Any, ...] | None]] = []
        self._held = 0

    @contextmanager
    def on(self, db: apsw.Connection) -> Iterator[None]:
        db.preupdate_hook(self._hook)
        try:
            yield
        finally:
            db.preupdate_hook(None)

    def count(self, table: str, verb: str, rows: int) -> None:
        """Rows that were counted otherwise."""
        self.counts[table, verb, 0] += rows
        self.rows += rows

    def moved(self) -> bool:
        """Whether rows came or went."""
        return any(verb != "update" for _, verb, _ in self.counts)

    def _hook(self, row: Any) -> None:
        if self.trouble is not None or row.database_name != "main":
            return
        table = row.table_name
        if table.startswith("sqlite_") or table in self._inner:
            return
        self.counts[table, _VERBS[row.opcode], min(row.depth, 1)] += 1
        self.rows += 1
        if self.rows > self._most_rows:
            self.trouble = beyond(self._most_rows)
        elif self._keep:
            try:
                self._caught.append((table, row.rowid, row.rowid_new, row.old, row.new))
            except UnicodeDecodeError:
                self.trouble = Unsupported(
                    f"A row of {table} holds text that isn't valid UTF-8.",
                    next_step="Choose versioning, which keeps the file's pages as they are: --policy versioning.",
                )
            if len(self._caught) * _EACH > self._most_bytes:
                self.trouble = Conflict(
                    f"What undo needs of this is larger than {self._most_bytes // 2**20} MB.",
                    next_step="Change fewer rows at a time, or raise [databases] image_mb in config.toml.",
                )

    def changes(self) -> list[Change]:
        """The rows that aren't what they were, each once."""
        known: dict[str, Shape] = {}
        net: dict[tuple[str, Identity], list[Any]] = {}  # before and after, then the rowids

        def went(
            table: str, identity: Identity, before: Row | None, after: Row | None, was_at: int | None, at: int | None
        ) -> None:
            seen = net.get((table, identity))
            if seen is None:
                net[table, identity] = [before, after, was_at, at]
            else:
                seen[1], seen[3] = after, at

        for table, rowid, rowid_new, old, new in self._caught:
            shape = known.get(table)
            if shape is None:
                found = self._shapes(table)
                assert found is not None, "a row of a table that isn't there"
                shape = known[table] = found
            before, after = _values(shape, old), _values(shape, new)
            was, now = identity_of(shape, rowid, before or ()), identity_of(shape, rowid_new, after or ())
            if before is not None and after is not None and was == now:
                went(table, was, before, after, rowid, rowid_new)
                continue
            if before is not None:
                went(table, was, before, None, rowid, None)
            if after is not None:
                went(table, now, None, after, None, rowid_new)
        changes = []
        for (table, identity), (before, after, was_at, at) in net.items():
            hidden = (was_at, at) if known[table].hidden and isinstance(identity, tuple) else (None, None)
            if not same(before, after) or hidden[0] != hidden[1]:
                changes.append(Change(table, identity, before, after, hidden))
        return changes


def _values(shape: Shape, row: tuple[Any, ...] | None) -> Row | None:
    """A row of the hook as a SELECT gives it. Of a row that is older than an ALTER TABLE ADD COLUMN the hook says the
    column's default as it was written, `0`; read from a column of REAL affinity it is 0.0."""
    if row is None:
        return None
    values = [row[place] for place in shape.places]
    for place in shape.reals:
        if type(values[place]) is int:
            values[place] = float(values[place])
    return tuple(values)
