"""What names mean at one place of a statement: what FROM offers there, and around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from runtimes.sql.contract import Table


@dataclass(slots=True)
class Source:
    """What FROM offers under one name. `columns` None: they aren't known."""

    columns: tuple[str, ...] | None
    table: Table | None = None
    _names: frozenset[str] | None = None

    def has(self, name: str) -> bool:
        if self._names is None:
            self._names = frozenset(self.columns or ())
        return name in self._names


@dataclass(slots=True)
class Scope:
    sources: dict[str, Source] = field(default_factory=dict)
    parent: Scope | None = None
    aliases: frozenset[str] = frozenset()  # output names that ORDER BY and its like may use


def names_of_values(node: exp.Values) -> tuple[str, ...]:
    """The names that engines give to the columns of VALUES."""
    first = node.expressions[0] if node.expressions else None
    count = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return tuple(f"column{number}" for number in range(1, count + 1))
