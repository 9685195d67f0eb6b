"""What is read through a view, a partition or a table that others inherit from. Pure.

Rules: whoever reads a view reads all that it stands on; what isn't known of it counts as every table. Of partitions and
inheritance both names count: a parent has its children's rows, and a child's rows are its parents', too. As in
PostgreSQL, who may use a parent may use its children through it; a rule that forbids one of them forbids that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtimes.sql.contract import WRITES, Reached, Schema, Statement, Use, Verb

ANY = "(any table)"  # stands in `Table.stands_on` where it isn't known; no table of an entry is called so


def closure(
    name: str, beneath: Mapping[str, Iterable[str]], above: Mapping[str, Iterable[str]] | None = None
) -> list[str]:
    """All that is `beneath` a name, and all `above` each of those, without what is beneath that in turn."""
    found = _walk([name], beneath)
    return sorted(_walk(found, above or {}) - {name})


def _walk(names: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = set(names), list(names)
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def behind(statement: Statement, schema: Schema) -> dict[str, str]:
    """The tables that a statement reads without naming them, each with the name that it reads it through. Those that
    a parent's own permission covers aren't among them (`parts`)."""
    named = {use.table for use in statement.uses if use.verb == "select"}
    found: dict[str, str] = {}
    for use in statement.uses:
        table = schema.tables.get(use.table)
        if table is None or (use.verb in WRITES and not (table.kind == "view" and use.verb in ("update", "delete"))):
            continue  # an UPDATE or DELETE through a view chooses its rows by all that the view reads
        for name in everything((one for one in table.stands_on if one not in table.parts), schema.tables):
            if name not in named and name != use.table:
                found.setdefault(name, use.table)
    return found


def parts(uses: Iterable[Use | Reached], schema: Schema) -> dict[tuple[str, Verb], None]:
    """The partitions and other children that are used through their parents, or through views of these, and how."""
    tables = ((use, schema.tables.get(use.table)) for use in uses)
    return {(name, use.verb): None for use, table in tables if table is not None for name in table.parts}


def beside(names: Iterable[str], schema: Schema) -> list[str]:
    """Those tables, and what they stand on."""
    known = [schema.tables[name].stands_on for name in names if name in schema.tables]
    return everything(dict.fromkeys((*names, *(one for each in known for one in each))), schema.tables)


def everything(stands_on: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Those names; with every table where one of them isn't known."""
    names = dict.fromkeys(stands_on)
    return list(names | dict.fromkeys(tables)) if ANY in names else list(names)
