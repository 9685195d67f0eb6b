"""What a person is shown of a database when they add it or ask for it: names and types, never a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vault.lease import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenColumn:
    """`type` as the database spells it."""

    name: str
    type: str
    nullable: bool = True
    generated: bool = False
    counter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTable:
    """`kind`: "table", "view", "collection" or "other". `references` and `triggers` in words."""

    name: str
    kind: str
    columns: tuple[SeenColumn, ...] = ()
    key: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """`can`: what GoEx will be able to do there, and what not, a sentence each."""

    version: str
    tables: tuple[SeenTable, ...]
    can: tuple[str, ...] = ()


class Looks(Protocol):
    """A runtime that works on databases."""

    async def look(self, lease: Lease) -> Seen:
        """Connect and look. Raises Unavailable, Unsupported (a user that may do too much), InvalidInput."""
        ...
