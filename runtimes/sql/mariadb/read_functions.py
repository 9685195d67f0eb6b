"""What reading may do besides: what the views call that a statement or a trigger reads, and tables that lead elsewhere.

A transaction that only reads keeps functions from writing tables. What they do beside these (a file, a setting of the
server's, its other connections, its end) stays, and no plan names it. In one that writes they may write anything. So a
view that calls one is read only where GoEx's user sees what that does, and nothing is written beside it. Functions of
libraries may do anything, and sequences move whatever becomes of the transaction: no view that calls them is read.
"""

# ruff: noqa: S608 (names are given as literals made of their bytes)

from __future__ import annotations

import re
from collections.abc import Iterable

from policies.errors import Unsupported
from runtimes.sql.checking.functions import FUNCTIONS, MARIADB_SINCE
from runtimes.sql.checking.nodes import names
from runtimes.sql.checking.views import tables
from runtimes.sql.contract import Dialect, Schema
from runtimes.sql.mariadb import built_on
from runtimes.sql.mariadb.errors import NAME, QUOTED
from runtimes.sql.mariadb.privileges import Grants
from runtimes.sql.mariadb.routines import numbers
from runtimes.sql.mariadb.trigger_text import elsewhere, only_looks, read_tables, without_texts
from runtimes.sql.mariadb.wire import ServerError, Wire

Name = tuple[str, str]  # of a database, and of what is in it

# Engines that keep their rows themselves; others ask another server, or run what a column says.
_LOCAL = names(
    """innodb myisam mrg_myisam aria memory csv archive blackhole sequence rocksdb tokudb mroonga columnstore oqgraph
    s3"""
)
# The server's own functions that its list of functions leaves out, and other words that it writes so in a view.
_SYNTAX = names(
    """avg binary cast charset collation column_add column_check column_create column_delete column_exists column_get
    column_json column_list convert current_role current_user default exists get_format isnull json_table lastval
    mbrdisjoint mbrequals mbroverlaps old_password on password regexp rlike row_count rownum session_user srid
    st_boundary st_convexhull st_difference st_dimension st_exteriorring st_geometryn st_interiorringn st_intersection
    st_isclosed st_isring st_issimple st_numgeometries st_numinteriorrings st_pointonsurface st_relate st_symdifference
    st_union system_user user values weight_string
    bigint bit blob datetime decimal double enum float int mediumint set smallint text tinyint varbinary varchar"""
)
_MOVING = names("nextval setval")
_NUMBERS = re.compile(r"(?i)seq_\d++_to_\d++(?:_step_\d++)?")  # a table of numbers, where there is none of that name
# In a view as the server writes it its own functions' names are in no quotes, and what opens their brackets follows at
# once, as it does behind the name of a WITH that names its columns. Names in quotes are written as "`" by then.
_WITH = re.compile(rf"(?<!{NAME}){NAME}++\((?:`,?)++\) as \(")
_CALL = re.compile(rf"(?<![`.@])(?<!{NAME})({NAME}++)\(")
_STORED = re.compile(rf"(?:({QUOTED})\.)?({QUOTED})\(")


def refuse(wire: Wire, rights: Grants, schema: Schema, read: Iterable[str], *, writing: bool) -> None:
    """Raises Unsupported where reading those tables and views of the database may do more than read. `writing`: in a
    transaction that writes."""
    _Reading(wire, rights, schema, writing).follow(read)


def by_triggers(wire: Wire, rights: Grants, schema: Schema, tables: Iterable[str]) -> set[str]:
    """All that triggers of these tables name, in small letters. Raises Unsupported for one that may read what GoEx
    doesn't follow."""
    found: set[str] = set()
    for name in tables:
        for _, _, trigger, body, _ in schema.tables[name].facts["triggers"]:
            if elsewhere(str(body), wire.place.database, schema, unseen=not rights.everywhere):
                raise Unsupported(
                    f"The trigger {trigger} of {name} may read a table of another database, or one that GoEx's user"
                    " doesn't see, and what that calls isn't known.",
                    next_step="Have it read tables of this database that GoEx's user sees.",
                )
            found |= built_on.names(str(body))
    return found


def views(schema: Schema, names: Iterable[str]) -> list[str]:
    """The views among these names, which are in small letters."""
    wanted = set(names)
    return [name for name, table in schema.tables.items() if table.kind == "view" and name.lower() in wanted]


class _Reading:
    def __init__(self, wire: Wire, rights: Grants, schema: Schema, writing: bool) -> None:
        self._wire, self._rights, self._schema, self._writing = wire, rights, schema, writing
        self._home = wire.place.database
        self._views: dict[Name, str] | None = None
        self._functions: dict[Name, tuple[str, str]] | None = None  # their bodies, and the modes these were made in
        self._own: frozenset[str] = frozenset()
        self._seen: set[Name] = set()
        self._called: set[Name] = set()
        self._waiting: list[Name] = []

    def follow(self, read: Iterable[str]) -> None:
        self._add(read)
        while self._waiting:
            one = self._waiting.pop()
            if one not in self._seen:
                self._seen.add(one)
                self._one(one)

    def _add(self, read: Iterable[str]) -> None:
        wanted = {name.lower() for name in read}
        self._waiting += [(self._home, name) for name in self._schema.tables if name.lower() in wanted]

    def _one(self, one: Name) -> None:
        at, name = one
        table = self._schema.tables.get(name) if at == self._home else None
        if table is not None and table.kind != "view":
            _refuse_engine(name, str(table.facts["engine"]))
            return
        if at.lower() == "information_schema":
            return
        if self._views is None:
            rows = self._wire.rows("SELECT table_schema, table_name, view_definition FROM information_schema.views")
            self._views = {(str(of), str(view)): str(text or "") for of, view, text in rows}
            self._own = _own(self._wire, self._schema)
        text = self._views.get(one, "")
        if table is None and at == self._home and self._rights.everywhere and _NUMBERS.fullmatch(name):
            return
        if not text:
            if table is None and (engine := self._engine(one)):
                _refuse_engine(name, engine)
                return
            raise Unsupported(
                f"GoEx's user can't see whether {'the view ' if table is not None else ''}{name} calls functions that"
                " write.",
                next_step="GRANT SHOW VIEW on it." if table is not None else "GRANT SELECT, SHOW VIEW on it.",
            )
        behind = tables(text)
        if behind is None:  # the grammar doesn't read it; the server writes the database before each table
            behind = tuple((parts[0] if parts[1:] else "", parts[-1]) for _, parts in read_tables(without_texts(text)))
        if not all(of for of, _ in behind):
            raise Unsupported(
                f"What the view {name} reads can't be told.", next_step="Read the tables that it stands on."
            )
        self._waiting += behind
        self._calls(one, text)

    def _calls(self, view: Name, text: str) -> None:
        plain = without_texts(text)
        called = {name.lower() for name in _CALL.findall(_WITH.sub(" ", re.sub(QUOTED, "`", plain)))}
        for name in sorted(called):
            if name in _MOVING:
                raise _refused(f"The view {view[1]} moves a sequence, which nothing takes back.")
            if name not in self._own:
                raise _refused(f"The view {view[1]} calls {name}, which isn't a function of the server's own.")
        for at, name in _STORED.findall(plain):
            if self._writing:
                raise _refused(f"The view {view[1]} calls a function that somebody made, which may write beside this.")
            self._function(_unquoted(at) or view[0], _unquoted(name))

    def _function(self, at: str, name: str) -> None:
        """A stored function that is called where rows are only read, and what it calls and reads in turn."""
        if self._functions is None:
            rows = self._wire.rows(
                "SELECT routine_schema, routine_name, routine_definition, sql_mode FROM information_schema.routines"
                " WHERE routine_type = 'FUNCTION'"
            )
            self._functions = {(str(of), str(one).lower()): (str(body or ""), mode) for of, one, body, mode in rows}
        one = at, name.lower()
        if one in self._called:
            return
        self._called.add(one)
        body, mode = self._functions.get(one, ("", ""))
        here = {other for of, other in self._functions if of == at}
        if not body or at != self._home:
            raise _refused(
                f"GoEx's user can't see what the function {name} does, which is called where this is read: it may do"
                " more than read."
            )
        if not only_looks(body, mode, frozenset(here)) or elsewhere(
            body, at, self._schema, unseen=not self._rights.everywhere
        ):
            raise _refused(
                f"The function {name}, which is called where this is read, may do something outside of the tables."
            )
        words = built_on.names(body)
        for other in sorted(here & words):
            self._function(at, other)
        self._add(words)

    def _engine(self, one: Name) -> str:
        """The engine of a table of another database; "" for one that GoEx's user doesn't see."""
        rows = self._wire.rows(
            "SELECT engine FROM information_schema.tables WHERE table_type <> 'VIEW'"
            f" AND table_schema = {_text(one[0])} AND table_name = {_text(one[1])}"
        )
        return str(rows[0][0] or "") if rows else ""


def _own(wire: Wire, schema: Schema) -> frozenset[str]:
    """The names of that server's own functions."""
    try:
        listed = {str(name).lower() for (name,) in wire.rows("SELECT function FROM information_schema.sql_functions")}
    except ServerError:  # before 10.6
        listed = set()
    later = {name for name, since in MARIADB_SINCE.items() if since > numbers(schema.version)}
    return frozenset(listed | FUNCTIONS[Dialect.MARIADB] - later | _SYNTAX)


def _refuse_engine(name: str, engine: str) -> None:
    if engine.lower() not in _LOCAL:
        raise Unsupported(
            f"{name} is kept by {engine or 'another engine'}, which may do more than read where it is read.",
            next_step="Read the table that it leads to.",
        )


def _refused(what: str) -> Unsupported:
    return Unsupported(what, next_step="Read the tables that it stands on.")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`")


def _text(name: str) -> str:
    return f"CONVERT(x'{name.encode().hex()}' USING utf8mb4)"
