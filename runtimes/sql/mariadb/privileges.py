"""What GoEx's user may do: refused when it is more than one database's worth.

What nobody can see can't be taken back: triggers are shown only to who may TRIGGER, so that right is asked for.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from policies.errors import Unsupported
from runtimes.sql.contract import Place
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import ServerError, Wire

# On the whole server these let nobody out of a database, nor into others' rows.
_HARMLESS = frozenset({"USAGE", "SHOW DATABASES"})
NEEDED = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, TRIGGER, SHOW VIEW, "
    "CREATE TEMPORARY TABLES, LOCK TABLES"
)
_LINE = re.compile(r"^GRANT (?P<what>.+?) ON (?P<where>.+?) TO (?P<to>.+)$", re.DOTALL)
_COLUMNS = re.compile(r"\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Grants:
    """What the session's user, its role and PUBLIC were given. `tables`: what each table, or "*" all, allows."""

    tables: dict[str, frozenset[str]]

    def may(self, table: str, right: str) -> bool:
        for rights in (self.tables.get("*", frozenset()), self.tables.get(table, frozenset())):
            if right in rights or "ALL PRIVILEGES" in rights or "ALL" in rights:
                return True
        return False

    @property
    def everywhere(self) -> bool:
        """Whether each table of the database is shown to the user."""
        return bool(self.tables.get("*"))


def read(wire: Wire, place: Place) -> Grants:
    """The grants of this session. Raises Unsupported for a user who may do more than GoEx can hold it to."""
    lines = [str(row[0]) for row in wire.rows("SHOW GRANTS")]
    with contextlib.suppress(ServerError):  # before 10.11 there is no PUBLIC
        lines += [str(row[0]) for row in wire.rows("SHOW GRANTS FOR PUBLIC")]
    tables: dict[str, frozenset[str]] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue  # a role, or PROXY of nobody: what a role allows is listed by itself
        rights = frozenset(part.strip().upper() for part in _COLUMNS.sub("", found["what"]).split(","))
        where = found["where"]
        if where == "*.*":
            more = sorted(rights - _HARMLESS)
            if more:
                raise _too_much(place, f"{', '.join(more[:6])} on the whole server")
            if "WITH GRANT OPTION" in found["to"].upper():
                raise _too_much(place, "giving rights on to others")
            continue
        if rights == {"PROXY"} or where.startswith("'"):
            raise _too_much(place, "acting as another user")
        kind = re.match(r"^(PROCEDURE|FUNCTION|PACKAGE(?: BODY)?) ", where)
        if kind:
            continue  # no statement that GoEx runs can call it: see `routines`
        names = _names(where)
        if names is None:
            continue
        database, table = names
        if table != "*":
            if database == place.database:
                tables[table] = tables.get(table, frozenset()) | rights
        elif _like(database, place.database):
            tables["*"] = tables.get("*", frozenset()) | rights
        if _like(database, "mysql") or database in ("sys",):
            raise _too_much(place, f"{', '.join(sorted(rights)[:3])} on the server's own tables")
    return Grants(tables)


def _names(where: str) -> tuple[str, str] | None:
    found = re.match(r"^`((?:[^`]|``)*)`\.(?:\*|`((?:[^`]|``)*)`)$", where)
    if found is None:
        return None
    return found[1].replace("``", "`"), "*" if found[2] is None else found[2].replace("``", "`")


def _like(pattern: str, name: str) -> bool:
    """Whether a grant's database pattern means that database."""
    made = ""
    position = 0
    while position < len(pattern):
        one = pattern[position]
        if one == "\\" and position + 1 < len(pattern):
            position += 1
            made += re.escape(pattern[position])
        else:
            made += {"%": ".*", "_": "."}.get(one, re.escape(one))
        position += 1
    return re.fullmatch(made, name, re.DOTALL) is not None


def _too_much(place: Place, what: str) -> Unsupported:
    return Unsupported(
        f"The database's user may do more than GoEx can hold it to: {what}.",
        next_step=f"Make one for GoEx: CREATE USER goex@'%' IDENTIFIED BY '…'; "
        f"GRANT {NEEDED} ON {quoted(place.database)}.* TO goex@'%';",
    )


def refuse_missing(rights: Grants, place: Place, needed: Iterable[tuple[str, str]]) -> None:
    """Raises Unsupported where one of these rights on a table, which undo needs, isn't there."""
    for table, right in needed:
        if not rights.may(table, right):
            raise Unsupported(
                f"GoEx's user has no right to {right} {'in this database' if table == '*' else f'on {table}'}, which"
                " undo needs.",
                next_step=f"GRANT {NEEDED} ON {quoted(place.database)}.* TO {quoted(place.user)}@'%'",
            )


def no_trigger_right(place: Place, table: str) -> Unsupported:
    return Unsupported(
        f"GoEx's user can't see whether {table} has triggers, so what they write couldn't be taken back.",
        next_step=f"GRANT TRIGGER ON {quoted(place.database)}.* TO {quoted(place.user)}@'%'",
    )
