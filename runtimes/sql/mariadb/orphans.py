"""Rows that pointed to nothing before an action, against a foreign key: `foreign_key_checks = 0` leaves such.

Undo puts them back as they were, so their values are in the image beside them; any other value has to have its parent
when it comes back. What such rows point to can't be put in under reversal: undo couldn't take it out from under them.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

from collections.abc import Mapping

from policies.errors import Unsupported
from runtimes.sql.contract import ForeignKey, Schema, Table
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.kept import Kept
from runtimes.sql.mariadb.rows import NULL, Form, batches, select
from runtimes.sql.mariadb.wire import Wire

Values = set[tuple[str, ...]]
Loose = dict[str, Values]  # by foreign key: values that pointed to nothing
_AT_ONCE = 200


def dangling(wire: Wire, kept: Mapping[str, Kept], schema: Schema, *, held: bool) -> dict[str, Loose]:
    """By table, what the rows that a program changed or took out pointed to in vain before. Raises Unsupported where it
    put in what others pointed to in vain, unless it is to be held."""
    found: dict[str, Loose] = {}
    for name, one in kept.items():
        if not one.changed():
            continue
        table = schema.tables[name]
        for link in table.foreign_keys:
            values = _left(one, link.columns, before=True)
            values -= _left(kept[link.parent], link.parent_columns, before=True) if link.parent in kept else set()
            missing: Values = set()
            for some in batches(sorted(values), _AT_ONCE):
                missing |= _missing(wire, one.form, link, some, schema)
            if missing:
                found.setdefault(name, {})[link.name] = missing
        for child in schema.tables.values() if not held else ():
            for link in child.foreign_keys:
                if link.parent == name and set(link.parent_columns) <= set(one.form.columns):
                    _refuse_found(wire, kept, table, child, link)
    return found


def _left(one: Kept, columns: tuple[str, ...], *, before: bool) -> Values:
    """The values of those columns that rows had before and haven't now; or the other way round."""
    values: Values = set()
    for _, was, now in one.changed():
        now = one.full(was, now)
        here, there = (was, now) if before else (now, was)
        if here is not None:
            value = one.form.value(here, columns)
            if NULL not in value and (there is None or one.form.value(there, columns) != value):
                values.add(value)
    return values


def _missing(wire: Wire, form: Form, link: ForeignKey, some: list[tuple[str, ...]], schema: Schema) -> Values:
    """Those of the values that no parent has now."""
    if "." in link.parent and link.parent not in schema.tables:  # another database: undo looks there, too
        parent = ".".join(quoted(part) for part in link.parent.split(".", 1))
    elif link.parent not in schema.tables:
        return set(some)
    else:
        parent = quoted(link.parent)
    asked = []
    for number, value in enumerate(some):
        same = " AND ".join(
            f"p.{quoted(above)} = {form.literal(below, field)}"
            for above, below, field in zip(link.parent_columns, link.columns, value, strict=True)
        )
        asked.append(f"SELECT {number} AS n FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE {same})")
    return {some[int(number)] for (number,) in wire.rows(" UNION ALL ".join(asked))}


def _refuse_found(wire: Wire, kept: Mapping[str, Kept], table: Table, child: Table, link: ForeignKey) -> None:
    form = Form.of(child)
    known = kept.get(child.name)
    ours = {key for key, was, now in known.changed() if was != now} if known is not None and form.key else set()
    for some in batches(sorted(_left(kept[table.name], link.parent_columns, before=False)), _AT_ONCE):
        where = form.among(link.columns, some)
        lines = select(wire, form, f"SELECT {form.ended()} FROM {quoted(child.name)} WHERE {where}", 10**9)
        if set(lines) - ours and (form.key or known is None):
            raise Unsupported(
                f"Rows of {child.name} point to a row of {table.name} that wasn't there, and this puts it in: undo"
                f" couldn't take it out ({link.name}). Nothing was changed.",
                next_step=f"Mend those rows of {child.name} first, or use --policy versioning.",
            )
