"""Functions that people made, which may write any table: no statement that GoEx runs reaches one.

By its own text a statement may reach one where the server has no function of a listed name (an older server, a
geometry with another number of arguments): the name then means a function of a library, which no user's grants guard,
or a stored one. What it may reach through a view is in `read_functions`.
"""

from __future__ import annotations

import re

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.functions import MARIADB_GEOMETRIES, MARIADB_SINCE
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Dialect, Program, Schema
from runtimes.sql.mariadb.wire import Wire

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


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
        if name in MARIADB_SINCE and numbers(schema.version) < MARIADB_SINCE[name]:
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


def numbers(version: str) -> tuple[int, ...]:
    """A server's version; () where it can't be read."""
    found = _VERSION.match(version)
    return tuple(int(part) for part in found.groups()) if found else ()


def _stored(wire: Wire) -> set[str]:
    """The stored functions of this database that GoEx's user may call."""
    rows = wire.rows(
        "SELECT routine_name FROM information_schema.routines"
        " WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'"
    )
    return {str(name).lower() for (name,) in rows}
