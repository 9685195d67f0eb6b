"""Functions that people made, which may write any table: no statement that GoEx runs reaches one.

By its own text a statement may reach one where the server has no function of a listed name (an older server, a
geometry with another number of arguments): the name then means a function of a library, which no user's grants guard,
or a stored one. Through a view it may reach any: in a transaction that only reads those can't write, else they could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.functions import MARIADB_GEOMETRIES, MARIADB_SINCE
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Dialect, Program, Schema
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import Wire

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_STORED = re.compile(r"`\(")  # in a view as the server writes it: its own functions' names are in no quotes


def refuse(wire: Wire, schema: Schema, program: Program) -> None:
    """Raises Unsupported for a program that may call one."""
    called: dict[str, None] = {}
    for statement in program.statements:
        for tree in read(statement.sql, Dialect.MARIADB):
            for call in tree.find_all(exp.Anonymous):
                name = str(call.name).lower()
                called[name] = None
                least, most = MARIADB_GEOMETRIES.get(name, (0, None))
                if len(call.expressions) < least or (most is not None and len(call.expressions) > most):
                    raise _unknown(f"{name} of so many arguments")
    for name in called:
        if name in MARIADB_SINCE and _numbers(schema.version) < MARIADB_SINCE[name]:
            raise _unknown(name)
    shadowing = _stored(wire) & called.keys() if called else set()
    if shadowing:
        raise Unsupported(
            f"The database has a function {min(shadowing)} of its own, which may stand in for the server's.",
            next_step="Have it renamed, or write the value itself.",
        )


def _unknown(what: str) -> Unsupported:
    return Unsupported(
        f"This server has no function {what}, so it may be anybody's.", next_step="Write the value itself."
    )


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(int(part) for part in found.groups()) if found else ()


def _stored(wire: Wire) -> set[str]:
    """The stored functions of this database that GoEx's user may call."""
    rows = wire.rows(
        "SELECT routine_name FROM information_schema.routines"
        " WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'"
    )
    return {str(name).lower() for (name,) in rows}


def refuse_views(wire: Wire, schema: Schema, names: Iterable[str]) -> None:
    """Raises Unsupported for a view among those names that calls one, itself or through another, where something is
    written: the function may write then, too."""
    wanted = {name.lower() for name in names}
    views_ = [name for name, table in schema.tables.items() if table.kind == "view" and name.lower() in wanted]
    waiting = [(wire.place.database, name) for name in views_]
    if not waiting:
        return
    rows = wire.rows("SELECT table_schema, table_name, view_definition FROM information_schema.views")
    views: Mapping[tuple[str, str], str] = {(str(of), str(name)): str(text or "") for of, name, text in rows}
    seen: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        text = views.get(one, "")
        if not text or _STORED.search(text):
            raise Unsupported(
                f"The view {one[1]} calls a function that somebody made, which may write beside this."
                if text
                else f"GoEx's user can't see whether the view {one[1]} calls functions that write.",
                next_step="Read the tables that it stands on." if text else "GRANT SHOW VIEW on it.",
            )
        waiting += [other for other in views if ".".join(map(quoted, other)) in text]
