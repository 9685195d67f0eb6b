"""Permissions on databases in plain words: a scope is a table and what may be done with its rows. Pure."""

from __future__ import annotations

from mapper.scope_effects import Meaning
from policies.actions import Need
from policies.databases import OTHERWISE, SERVICE
from policies.display_text import escape_name

_DOING = {
    "select": "read any rows of",
    "find": "read any documents of",
    "insert": "add rows to",
    "update": "change any rows of",
    "delete": "delete any rows of",
    "truncate": "delete all rows of",
    "create": "create",
    "alter": "change the definition of",
    "drop": "drop",
}
_SEES = frozenset({"select", "find"})
_DESTROYS = frozenset({"delete", "truncate", "drop"})
_PAIRS = "have changes taken back by statements that a model wrote"
_OTHERWISE = "change rows at once, though the entry asks for versioning,"


def is_database(need: Need) -> bool:
    return need.service == SERVICE


def doing(scope: str, database: str) -> str:
    """`change any rows of orders in shop`."""
    table, _, verb = map(escape_name, scope.rpartition(":"))
    database = escape_name(database)
    if not table:
        return f"{_OTHERWISE if scope == OTHERWISE else _PAIRS} in {database}"
    return f"{_DOING.get(verb, f'{verb} in')} {table} in {database}"


def description(need: Need) -> str:
    said = doing(need.scope, need.account)
    return f"{said[:1].upper()}{said[1:]}."


def meaning(need: Need) -> Meaning:
    """What whoever holds the scope could see, change and destroy."""
    table, _, verb = need.scope.rpartition(":")
    if not table:
        when = "at once, and not only when you commit" if need.scope == OTHERWISE else "when something is undone"
        return Meaning(change=(f"rows of {need.account}, {when}",))
    where = (f"rows of {table} in {need.account}",)
    if verb in _SEES:
        return Meaning(see=where)
    if verb in _DESTROYS:
        return Meaning(destroy=where)
    if verb in ("create", "alter"):
        return Meaning(change=(f"the definition of {table} in {need.account}",))
    return Meaning(change=where)
