"""The triggers and views of a database that stand on a definition: the server lets it be taken from under them.

A view stands on it where its text has the name of the table, and of a column or index of those that it is about. A
trigger does where it is on the table and its text has the name of one of them, and where its text has the table's name:
it may mean all columns of a row. A text that can't be read may have any name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from policies.jsonvalue import JsonValue
from runtimes.sql.contract import Schema
from runtimes.sql.mariadb.errors import NAME, QUOTED
from runtimes.sql.mariadb.wire import Wire

_PLAIN, _QUOTED = re.compile(rf"{NAME}++"), re.compile(QUOTED)


def standing(
    wire: Wire, names: tuple[str, ...], tables: tuple[str, ...], *, views: bool = True
) -> dict[str, JsonValue]:
    """Return what stands on `names`, the table's first, where the table is, or was, called as in `tables`: the name of
    each as a person reads it, and the digest of its text. {} without names. Without `views` only triggers."""
    found: dict[str, JsonValue] = {}
    if not names:
        return found
    on = {one.lower() for one in tables}
    for name, table, text in _rows(
        wire,
        "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS"
        " WHERE TRIGGER_SCHEMA = DATABASE()",
    ):
        if (table.lower() in on and _has(text, names[1:])) or _has(text, names[:1]):
            found[f"trigger {name}"] = _digest(text)
    if not views:
        return found
    for name, _, text in _rows(
        wire,
        "SELECT TABLE_NAME, '', VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()",
    ):
        if name.lower() != names[0].lower() and _has(text, names[:1]) and _has(text, names[1:]):
            found[f"view {name}"] = _digest(text)
    return found


def named(schema: Schema, tables: Iterable[str]) -> set[str]:
    """The tables that triggers of these name, and triggers of those in turn."""
    found: set[str] = set()
    waiting = [name for name in tables if name in schema.tables]
    while waiting:
        texts = [str(trigger[3]) for trigger in schema.tables[waiting.pop()].facts["triggers"]]
        held = set().union(*map(names, texts))
        new = {name for name in schema.tables if name not in found and name.lower() in held}
        found |= new
        waiting += new
    return found


def triggers(wire: Wire, table: str) -> list[str]:
    """The names of those on a table."""
    query = "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, '' FROM information_schema.TRIGGERS"
    found = _rows(wire, f"{query} WHERE TRIGGER_SCHEMA = DATABASE()")
    return sorted(name for name, on, _ in found if on.lower() == table.lower())


def _rows(wire: Wire, query: str) -> list[tuple[str, str, str]]:
    return [(str(name), str(table), str(text or "")) for name, table, text in wire.rows(query)]


def _has(text: str, wanted: tuple[str, ...]) -> bool:
    return not text or not wanted or not names(text).isdisjoint(name.lower() for name in wanted)


def names(text: str) -> set[str]:
    """All that may be a name there, in small letters; also in strings and comments, where a quote may stand alone."""
    text = text.lower()
    quoted = (one[1:-1].replace("``", "`") for one in _QUOTED.findall(text))
    return {*_PLAIN.findall(text), *text.split("`"), *quoted}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
