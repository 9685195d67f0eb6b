"""What people and agents write, for the tables of any schema: rows to begin with, and statements on them.

`cases(schema, filled)` gives named cases. Each is one action; `setup` are statements of somebody else's before it (a
trigger, a view, a partitioned table). The same words are said of every schema, with its own tables and columns.
"""

# ruff: noqa: E501 (one statement is one line, made of the schema's names)

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table

ROWS = 5
_TABLES = 14  # that are filled of one schema


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    setup: tuple[str, ...] = ()


@dataclass
class Filled:
    """The rows of the tables that were filled: by table, by column, SQL literals."""

    schema: Schema
    values: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def inserts(self) -> Iterator[tuple[str, list[str]]]:
        """INSERTs by table, parents first; say `keep` for those that went through."""
        wanted: list[str] = []

        def add(name: str, on_the_way: tuple[str, ...]) -> None:
            table = self.schema.tables[name]
            for key in table.foreign_keys:
                if key.parent in self.schema.tables and key.parent not in (*on_the_way, name):
                    add(key.parent, (*on_the_way, name))
            if name not in wanted:
                wanted.append(name)

        linked = sorted(
            (name for name, table in self.schema.tables.items() if table.kind == "table" and table.foreign_keys),
            key=lambda name: (-len(self.schema.tables[name].columns), name),
        )
        plain = sorted(name for name, table in self.schema.tables.items() if table.kind == "table" and table.columns)
        for name in (*linked, *plain):
            if len(wanted) < _TABLES:
                add(name, ())
        for name in wanted:
            rows = [row for number in range(1, ROWS + 1) if (row := self.row(self.schema.tables[name], number))]
            self.values[name] = rows
            yield name, [insert(self.schema.dialect, name, row) for row in rows]

    def row(self, table: Table, number: int, *, base: int = 9000) -> dict[str, str] | None:
        made: dict[str, str] = {}
        links = {column: (key, at) for key in table.foreign_keys for at, column in enumerate(key.columns)}
        for column in table.columns:
            if column.generated:
                continue
            link = links.get(column.name)
            if link is None:
                made[column.name] = literal(self.schema.dialect, column, base + number, self._unique(table, column))
                continue
            key, at = link
            above = self.values.get(key.parent, [])
            if key.parent == table.name or not above:
                if not column.nullable:
                    return None
                made[column.name] = "NULL"
            else:
                made[column.name] = above[(number - 1) % len(above)].get(key.parent_columns[at], "NULL")
        return made

    @staticmethod
    def _unique(table: Table, column: Column) -> bool:
        return column.name in table.key or any(column.name in one for one in table.unique)


def name_of(dialect: Dialect, name: str) -> str:
    if dialect is Dialect.MARIADB:
        return f"`{name}`"
    return ".".join(f'"{part}"' for part in name.split(".")) if dialect is Dialect.POSTGRESQL else f'"{name}"'


def insert(dialect: Dialect, table: str, row: dict[str, str]) -> str:
    names = ", ".join(name_of(dialect, column) for column in row)
    return f"INSERT INTO {name_of(dialect, table)} ({names}) VALUES ({', '.join(row.values())})"


def literal(dialect: Dialect, column: Column, number: int, unique: bool) -> str:
    kind = column.type.lower()
    width = int(found[1]) if (found := re.search(r"(?:char|character varying|character|bpchar)\((\d+)\)", kind)) else 60
    if "bool" in kind or kind.startswith("tinyint(1)"):
        return ("true" if number % 2 else "false") if dialect is Dialect.POSTGRESQL else str(number % 2)
    if kind.startswith(("tinyint", "smallint")):
        return str(number % 100 + 1)
    if kind == "uuid":
        return f"'00000000-0000-4000-8000-{number:012d}'"
    if "[]" in kind:
        return "'{}'"
    if "json" in kind:
        return f"'{{\"n\": {number}}}'"
    if "range" in kind:
        return "NULL"
    if "interval" in kind:
        return "'1 day'"
    if kind.startswith(("timestamp", "datetime")):
        return f"'2024-01-{number % 27 + 1:02d} 10:00:00'"
    if kind.startswith("date"):
        return f"'2024-02-{number % 27 + 1:02d}'"
    if kind.startswith("time"):
        return f"'10:{number % 60:02d}:00'"
    if kind in ("inet", "cidr"):
        return f"'10.0.0.{number % 250}'"
    if "int" in kind or "serial" in kind:
        return str(number)
    if re.match(r"numeric|decimal|real|double|float", kind):
        scale = re.search(r"\((\d+)\s*,\s*(\d+)\)", kind)
        return f"{number % 10}.5" if scale is None or int(scale[2]) else str(number % 10)
    if kind.startswith("enum"):
        return kind[kind.index("'") : kind.index("'", kind.index("'") + 1) + 1]
    if re.match(r"bytea|.*blob|.*binary", kind):
        return "'\\x6162'" if dialect is Dialect.POSTGRESQL else "x'6162'"
    if kind.startswith("tsvector"):
        return "'a b'"
    if width >= 32 and kind == "char(32)":
        return f"'{number:032d}'"
    return f"'{f'{column.name}-{number}'[-width:]}'"


@dataclass(frozen=True)
class Pair:
    """A table and one that it points to, with columns to write."""

    d: Dialect
    child: Table
    parent: Table
    link: ForeignKey
    filled: Filled

    @property
    def c(self) -> str:
        return name_of(self.d, self.child.name)

    @property
    def p(self) -> str:
        return name_of(self.d, self.parent.name)

    @property
    def fk(self) -> str:
        return name_of(self.d, self.link.columns[0])

    @property
    def pk(self) -> str:
        return name_of(self.d, self.link.parent_columns[0])

    @property
    def key(self) -> str:
        return name_of(self.d, self.child.key[0])

    def free(self, table: Table, pattern: str) -> str:
        """A column that is neither key nor link nor unique, of such a type; quoted."""
        taken = {*table.key, *(one for key in table.foreign_keys for one in key.columns)}
        taken |= {one for each in table.unique for one in each}
        for column in table.columns:
            if column.name not in taken and not column.generated and re.search(pattern, column.type, re.IGNORECASE):
                return name_of(self.d, column.name)
        return ""

    def new(self, table: Table, number: int) -> dict[str, str]:
        row = self.filled.row(table, number, base=9500)
        assert row is not None
        return row


TEXT = r"char|text"


def pairs(filled: Filled) -> list[Pair]:
    """The pairs of a schema that can be written, the widest first."""
    found, seen = [], set()
    for name, rows in filled.values.items():
        child = filled.schema.tables[name]
        for link in child.foreign_keys:
            parent = filled.schema.tables.get(link.parent)
            ready = parent is not None and len(rows) >= 3 and len(filled.values.get(link.parent, ())) >= 3
            if not ready or parent is None or parent.name == name or len(child.key) != 1 or len(link.columns) != 1:
                continue
            pair = Pair(filled.schema.dialect, child, parent, link, filled)
            if pair.free(child, TEXT) and pair.free(parent, TEXT) and name not in seen:
                seen.add(name)
                found.append(pair)
    return found


def cases(filled: Filled) -> list[Case]:
    from tools.acceptance import sql_dialects

    found = pairs(filled)
    if not found:
        return []
    made: list[Case] = []
    for number, pair in enumerate(found[:2]):
        own = {
            Dialect.POSTGRESQL: sql_dialects.postgresql,
            Dialect.MARIADB: sql_dialects.mariadb,
            Dialect.SQLITE: sql_dialects.sqlite,
        }[pair.d](pair)
        all_of_them = [*common(pair), *own]
        # Of the second pair only what stands on the schema's own tables.
        made += all_of_them if number == 0 else [one for one in all_of_them if not one.setup]
    return made


def common(at: Pair) -> list[Case]:
    c, p, fk, pk, key = at.c, at.p, at.fk, at.pk, at.key
    t, pt = at.free(at.child, TEXT), at.free(at.parent, TEXT)
    n = at.free(at.child, r"int|numeric|decimal|double|real|float") or key
    keys = [row[at.child.key[0]] for row in at.filled.values[at.child.name]]
    made = [
        Case("insert", insert(at.d, at.child.name, at.new(at.child, 1))),
        Case("insert rows", "; ".join(insert(at.d, at.child.name, at.new(at.child, one)) for one in (2, 3))),
        Case("insert parent and child", "; ".join((insert(at.d, at.parent.name, at.new(at.parent, 4)),
                                                   insert(at.d, at.child.name, at.new(at.child, 4))))),
        Case("update by key", f"UPDATE {c} SET {t} = 'x' WHERE {key} = {keys[0]}"),
        Case("update where like", f"UPDATE {c} SET {t} = 'y' WHERE {t} LIKE '%9%'"),
        Case("update all", f"UPDATE {c} SET {t} = upper({t})"),
        Case("update case", f"UPDATE {c} SET {t} = CASE WHEN {key} = {keys[0]} THEN 'a' ELSE 'b' END"
                            f" WHERE {key} IN ({keys[0]}, {keys[1]})"),
        Case("update in subquery", f"UPDATE {c} SET {t} = 'z' WHERE {fk} IN (SELECT {pk} FROM {p} WHERE {pt} IS NOT NULL)"),
        Case("update from subquery", f"UPDATE {c} SET {t} = (SELECT substr(max({pt}), 1, 5) FROM {p} WHERE {p}.{pk} = {c}.{fk})"
                                     f" WHERE {key} = {keys[1]}"),
        Case("update coalesce", f"UPDATE {c} SET {t} = coalesce(nullif(trim({t}), ''), 'none')"),
        Case("update exists", f"UPDATE {p} SET {pt} = 'seen' WHERE EXISTS (SELECT 1 FROM {c} WHERE {c}.{fk} = {p}.{pk})"),
        Case("delete by key", f"DELETE FROM {c} WHERE {key} = {keys[0]}"),
        Case("delete in subquery", f"DELETE FROM {c} WHERE {fk} IN (SELECT {pk} FROM {p} WHERE {pt} = 'nobody')"),
        Case("delete not exists", f"DELETE FROM {c} WHERE NOT EXISTS (SELECT 1 FROM {p} WHERE {p}.{pk} = {c}.{fk})"),
        Case("delete parent", f"DELETE FROM {p} WHERE {pk} = {at.filled.values[at.parent.name][0][at.link.parent_columns[0]]}"),
        Case("delete all", f"DELETE FROM {c}"),
        Case("update and delete", f"UPDATE {c} SET {t} = 'w' WHERE {key} = {keys[1]}; DELETE FROM {c} WHERE {key} = {keys[2]}"),
        Case("select join", f"SELECT a.{key}, b.{pt} FROM {c} a LEFT JOIN {p} b ON b.{pk} = a.{fk} ORDER BY 1"),
        Case("select window", f"SELECT {key}, row_number() OVER (PARTITION BY {fk} ORDER BY {key}) FROM {c}"),
        Case("select cte", f"WITH x AS (SELECT {fk}, count(*) AS n FROM {c} GROUP BY {fk}) SELECT * FROM x WHERE n > 0"),
        Case("explain", f"EXPLAIN SELECT * FROM {c} WHERE {key} = {keys[0]}"),
        Case("create table", "CREATE TABLE notes_x (id integer PRIMARY KEY, body varchar(200) NOT NULL, n integer DEFAULT 0)"),
        Case("create index", f"CREATE INDEX notes_ix ON {c} ({n})"),
        Case("add column", f"ALTER TABLE {c} ADD COLUMN extra_x varchar(20)"),
        Case("add column default", f"ALTER TABLE {c} ADD COLUMN extra_y integer NOT NULL DEFAULT 7"),
        Case("rename column", f"ALTER TABLE {c} RENAME COLUMN {t} TO renamed_x"),
        Case("drop table", "DROP TABLE old_x", ("CREATE TABLE old_x (id integer PRIMARY KEY, body varchar(200))",
                                                 "INSERT INTO old_x VALUES (1, 'a'), (2, NULL)")),
        Case("create view", f"CREATE VIEW seen_x AS SELECT {key} FROM {c}"),
        Case("create table as", f"CREATE TABLE copy_x AS SELECT * FROM {c}"),
        Case("alter and fill", f"ALTER TABLE {c} ADD COLUMN extra_z integer; UPDATE {c} SET extra_z = 1"),
    ]  # fmt: skip
    return [one for one in made if one.sql]
