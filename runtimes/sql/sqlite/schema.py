"""What a SQLite file holds: names, types, keys, triggers. No rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import apsw

from policies.jsonvalue import JsonValue, canonical
from runtimes.sql.checking.functions import PRAGMAS, ROW_FUNCTIONS
from runtimes.sql.checking.nodes import lower
from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table
from runtimes.sql.reads_through import ANY, closure
from runtimes.sql.sqlite.errors import quoted

_ROWID = ("_rowid_", "rowid", "oid")
_HIDDEN, _VIRTUAL, _STORED = 1, 2, 3  # `hidden` of PRAGMA table_xinfo
# What is in quotes, and comments.
_BOUND = re.compile(
    r"""('[^']*+'?|"[^"]*+"?|`[^`]*+`?|\[[^\]]*+\]?)|--[^\n]*|/\*.*?(?:\*/|\Z)""",
    re.DOTALL,
)
_MODULE = re.compile(r'create\s++virtual\s++table\s*+(?:(?:"")++|[^\s"]++)\s*+using\s++(\w++)', re.IGNORECASE)
_CONFLICT = re.compile(r"\bon\s++conflict\s++(replace|ignore)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the rows of one table are told apart, read and written. `names` are the columns whose values are kept, at
    `places` among all that SQLite hands to a hook; `rowid` is a name that means the rowid, "" where a table has none;
    `key` are the places of the primary key in `names`, `reals` those of the columns of REAL affinity, `stored` those
    of computed columns, which can't be written."""

    table: str
    sql: str
    names: tuple[str, ...]
    places: tuple[int, ...]
    rowid: str
    key: tuple[int, ...]
    reals: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether a row has a rowid that is no column of its own: VACUUM may give it another, and one that was given
        up is given to another row."""
        return bool(self.rowid) and self.rowid not in self.names

    @property
    def columns(self) -> str:
        """The columns as SQL."""
        return ", ".join(quoted(name) for name in self.names)

    def written(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of `names`, or of a row's values, those of columns that can be written."""
        if not self.stored:
            return values
        return tuple(one for place, one in enumerate(values) if place not in self.stored)


def read_schema(db: apsw.Connection) -> Schema:
    """Everything in the file. Raises apsw.Error."""
    kinds = {
        str(name): (str(kind), bool(without))
        for _, name, kind, _, without, _ in db.execute("PRAGMA main.table_list")
        if not lower(str(name)).startswith("sqlite_")
    }
    rows = db.execute("SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name").fetchall()
    text = [[str(part) if part is not None else "" for part in row] for row in rows]
    encoding = str(db.execute("PRAGMA main.encoding").fetchone()[0])  # type: ignore[index]
    definitions = {name: sql for kind, name, _, sql in text if kind in ("table", "view")}
    triggers: dict[str, list[str]] = {}
    for kind, name, table, _ in text:
        if kind == "trigger":
            triggers.setdefault(lower(table), []).append(name)
    tables = {
        name: _table(db, name, kind, tuple(triggers.get(lower(name), ())), definitions.get(name, ""), without)
        for name, (kind, without) in sorted(kinds.items())
    }
    others = [one for one in tables.values() if one.kind != "table"]
    beneath = {one.name: _beneath(db, one, definitions.get(one.name, ""), tables) for one in others}
    tables |= {one.name: replace(one, stands_on=tuple(closure(one.name, beneath))) for one in others}
    return Schema(
        dialect=Dialect.SQLITE,
        version=apsw.sqlite_lib_version(),
        tables=tables,
        hash=hashlib.sha256(canonical([encoding, text])).hexdigest(),
    )


# What each option says: FTS5 also takes the beginning of `content` for it.
_OPTION = re.compile(r"""=\s*+("(?:[^"]|"")*+"?|'(?:[^']|'')*+'?|`(?:[^`]|``)*+`?|\[[^\]]*+\]?|[^\s,)]*)""")


def _beneath(db: apsw.Connection, table: Table, sql: str, tables: Mapping[str, Table]) -> tuple[str, ...]:
    """What a view or a virtual table shows rows of."""
    if table.kind == "view":
        return _read_by(db, table.name, tables)
    module = str(table.facts.get("module", ""))
    if table.facts.get("shadow"):  # it holds the rows of the table that it is of
        whole = [one for one in tables if lower(table.name).startswith(f"{lower(one)}_")]
        return tuple(one for one in whole if tables[one].facts.get("virtual"))
    if module.startswith(("rtree", "geopoly")):
        return ()
    if module in ("fts3", "fts4", "fts5"):
        shown = {one for text in _OPTION.findall(sql) for one in _said(lower(text))}
        return tuple(one for one in tables if lower(one) in shown)
    return (ANY,)


def _said(text: str) -> tuple[str, str]:
    """A value that may stand in quotes."""
    return text.strip("\"'`[]"), text[1:-1].replace(text[:1] * 2, text[:1])


def _read_by(db: apsw.Connection, view: str, tables: Mapping[str, Table]) -> tuple[str, ...]:
    """What SQLite itself asks to read for a view, all the way down; nothing of it runs."""
    found: dict[str, None] = {}
    calls = {f"pragma_{name}" for name in PRAGMAS} | set(ROW_FUNCTIONS[Dialect.SQLITE])
    calls -= {lower(name) for name in tables}  # a table of that name comes first

    def note(code: int, first: str | None, *more: str | None) -> int:
        if before is not None and before(code, first, *more) != apsw.SQLITE_OK:
            return apsw.SQLITE_DENY
        if code == apsw.SQLITE_READ and first and lower(first) not in (lower(view), *calls):
            found[first] = None
        return apsw.SQLITE_OK

    before, db.authorizer = db.authorizer, note
    length = db.limit(apsw.SQLITE_LIMIT_LENGTH, 2**20)  # a planner may compute what a view's text says
    try:
        db.execute(f"EXPLAIN SELECT * FROM main.{quoted(view)}", can_cache=False).fetchall()  # noqa: S608
    except (apsw.SQLError, apsw.TooBigError):
        return (ANY,)
    finally:
        db.authorizer = before
        db.limit(apsw.SQLITE_LIMIT_LENGTH, length)
    return tuple(found)


def _table(db: apsw.Connection, name: str, kind: str, triggers: tuple[str, ...], sql: str, without: bool) -> Table:
    # A table of a module that isn't in this SQLite can't be looked into.
    try:
        info = db.execute(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
    except apsw.SQLError:
        info = []
    key = tuple(str(row[1]) for row in sorted((row for row in info if row[5]), key=lambda row: int(str(row[5]))))
    alias = kind == "table" and not without and len(key) == 1 and _is_alias(db, name, info)
    columns = tuple(
        Column(
            name=str(column),
            type=str(declared),
            nullable=not (required or (place and (without or alias))),
            generated=hidden in (_VIRTUAL, _STORED),
            default=str(default) if default is not None else "",
            counter=bool(place) and alias,
        )
        for _, column, declared, required, default, place, hidden in info
        if hidden != _HIDDEN
    )
    facts: dict[str, JsonValue] = {"without_rowid": without}
    if kind != "table":
        facts |= {"virtual": kind == "virtual", "shadow": kind == "shadow"}
        # Neither a name nor a comment says which module it is.
        module = _MODULE.match(_BOUND.sub(lambda found: '""' if found[1] else " ", sql))
        facts["module"] = lower(module[1]) if module else ""
    facts["virtual_columns"] = any(row[6] == _VIRTUAL for row in info)
    bare = _BOUND.sub(lambda found: found[1] or " ", sql)
    conflicts = {word.lower() for word in _CONFLICT.findall(bare)}
    facts["replaces"], facts["ignores"] = "replace" in conflicts, "ignore" in conflicts
    indexes = db.execute(f"PRAGMA main.index_list({quoted(name)})").fetchall() if kind == "table" else []
    facts["indexes"] = sorted(str(row[1]) for row in indexes if row[3] == "c")
    # What a row can be in the way of others by: unique indexes, and the rowid.
    facts["uniques"] = sum(bool(row[2]) for row in indexes) + (kind == "table" and not without)
    facts["autoincrement"] = alias and "autoincrement" in lower(sql)
    return Table(
        name=name,
        kind="table" if kind == "table" else "view" if kind == "view" else "other",
        columns=columns,
        key=key,
        unique=_unique(db, name) if kind == "table" else (),
        foreign_keys=_foreign_keys(db, name) if kind == "table" else (),
        triggers=triggers,
        facts=facts,
    )


def _is_alias(db: apsw.Connection, name: str, info: list[tuple[object, ...]]) -> bool:
    """Whether the one column of the key is the rowid itself: then no index stands for the key."""
    declared = next(str(row[2]) for row in info if row[5])
    origins = {row[3] for row in db.execute(f"PRAGMA main.index_list({quoted(name)})")}
    return declared.upper() == "INTEGER" and "pk" not in origins


def _unique(db: apsw.Connection, name: str) -> tuple[tuple[str, ...], ...]:
    found = []
    for _, index, unique, origin, partial in db.execute(f"PRAGMA main.index_list({quoted(name)})").fetchall():
        if unique and not partial and origin != "pk":
            parts = [row[2] for row in db.execute(f"PRAGMA main.index_info({quoted(str(index))})")]
            if all(part is not None for part in parts):
                found.append(tuple(str(part) for part in parts))
    return tuple(found)


def _foreign_keys(db: apsw.Connection, name: str) -> tuple[ForeignKey, ...]:
    parts: dict[int, list[tuple[object, ...]]] = {}
    for row in db.execute(f"PRAGMA main.foreign_key_list({quoted(name)})"):
        parts.setdefault(int(str(row[0])), []).append(row)
    found = []
    for number, rows in sorted(parts.items()):
        parent = str(rows[0][2])
        to = tuple(str(row[4]) if row[4] is not None else "" for row in rows)
        if not all(to):  # the parent's key is meant
            info = db.execute(f"PRAGMA main.table_xinfo({quoted(parent)})").fetchall()
            to = tuple(str(row[1]) for row in sorted((row for row in info if row[5]), key=lambda row: int(str(row[5]))))
        found.append(
            ForeignKey(
                name=str(number),
                columns=tuple(str(row[3]) for row in rows),
                parent=parent,
                parent_columns=to,
                on_update=str(rows[0][5]),
                on_delete=str(rows[0][6]),
            )
        )
    return tuple(found)


def shapes(db: apsw.Connection, names: list[str]) -> dict[str, Shape]:
    """The shapes of those tables, as they are now. A table that isn't there has none."""
    found = {}
    for name in names:
        row = db.execute("SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", (name,)).fetchone()
        if row is None:
            continue
        info = db.execute(f"PRAGMA main.table_xinfo({quoted(name)})").fetchall()
        own = [number for number, column in enumerate(info) if column[6] in (0, _STORED)]
        taken = {lower(str(column[1])) for column in info}
        without = any(
            bool(entry[4]) for entry in db.execute("PRAGMA main.table_list") if lower(str(entry[1])) == lower(name)
        )
        key = sorted((number for number in own if info[number][5]), key=lambda number: int(str(info[number][5])))
        alias = not without and len(key) == 1 and _is_alias(db, name, info)
        free = next((word for word in _ROWID if word not in taken), "")
        found[name] = Shape(
            table=name,
            sql=str(row[0]),
            names=tuple(str(info[number][1]) for number in own),
            places=tuple(own),
            rowid="" if without else str(info[key[0]][1]) if alias else free,
            key=tuple(own.index(number) for number in key),
            reals=tuple(place for place, number in enumerate(own) if _is_real(str(info[number][2]))),
            stored=tuple(place for place, number in enumerate(own) if info[number][6] == _STORED),
        )
    return found


def _is_real(declared: str) -> bool:
    """Whether a column of that type has REAL affinity (https://www.sqlite.org/datatype3.html, 3.1)."""
    kind = declared.upper()
    others = ("INT", "CHAR", "CLOB", "TEXT", "BLOB")
    return not any(word in kind for word in others) and any(word in kind for word in ("REAL", "FLOA", "DOUB"))


def replaced(schema: Schema, writes: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The deletes that a table's own ON CONFLICT REPLACE can add to `writes`."""
    replacing = {lower(name) for name, table in schema.tables.items() if table.facts.get("replaces")}
    return {("delete", table) for verb, table in writes if verb in ("insert", "update") and lower(table) in replacing}


def cascades(schema: Schema, writes: set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """(verb, table) that declared foreign keys can add to `writes`, and to what ON CONFLICT REPLACE adds to these.
    Their own actions replace nothing: SQLite runs them with ABORT."""
    by_name = {lower(name): table for name, table in schema.tables.items()}
    seen = writes | replaced(schema, writes)
    todo = list(seen)
    found: set[tuple[str, str]] = set()
    while todo:
        verb, parent = todo.pop()
        for table in by_name.values():
            for key in table.foreign_keys:
                if lower(key.parent) != lower(parent):
                    continue
                action = key.on_delete if verb == "delete" else key.on_update if verb == "update" else "NO ACTION"
                follows = {"CASCADE": verb, "SET NULL": "update", "SET DEFAULT": "update"}.get(action)
                if follows:
                    found.add((follows, table.name))
                    if (follows, table.name) not in seen:
                        seen.add((follows, table.name))
                        todo.append((follows, table.name))
    return frozenset(found)
