"""The columns of SQLite's tables that no list of columns names."""

from __future__ import annotations

from runtimes.sql.checking.nodes import lower
from runtimes.sql.contract import Table

_ROWID = {"rowid", "oid", "_rowid_"}


def rowids(table: Table) -> set[str]:
    """The names that SQLite knows the rowid of a table by, where no column has them."""
    module = table.facts.get("module")
    if not (table.kind == "table" or module) or table.facts.get("without_rowid"):
        return set()
    return _ROWID | {"docid"} if module in ("fts3", "fts4") else _ROWID


def unlisted(table: Table) -> tuple[str, ...]:
    """Columns of a full-text index: its own name, for MATCH, and the rank."""
    return (lower(table.name), "rank") if str(table.facts.get("module", "")).startswith("fts") else ()
