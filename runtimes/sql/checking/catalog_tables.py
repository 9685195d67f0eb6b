"""The servers' own tables of names and types that a statement may read, and what stands for SHOW, DESCRIBE and PRAGMA.

Rules: they hold definitions, never rows of anybody's. They are read under their own names, so a permission for a table
of the database doesn't cover them. Tables that tell of sessions, users, settings or statistics aren't here.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtimes.sql.checking.functions import CHECKS, PRAGMAS, SETS
from runtimes.sql.contract import Column, Dialect, Table

_STANDARD = {
    "tables": "table_catalog table_schema table_name table_type",
    "columns": "table_catalog table_schema table_name column_name ordinal_position column_default is_nullable data_type"
    " character_maximum_length character_octet_length numeric_precision numeric_scale datetime_precision"
    " character_set_name collation_name is_generated generation_expression",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_schema table_name constraint_type",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name"
    " column_name ordinal_position position_in_unique_constraint",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name unique_constraint_catalog"
    " unique_constraint_schema unique_constraint_name match_option update_rule delete_rule",
}
_MORE: Mapping[Dialect, Mapping[str, str]] = {
    Dialect.POSTGRESQL: {
        "tables": "is_insertable_into",
        "columns": "udt_schema udt_name is_identity identity_generation is_updatable",
        "constraint_column_usage": "table_catalog table_schema table_name column_name constraint_catalog"
        " constraint_schema constraint_name",
        "table_constraints": "table_catalog is_deferrable initially_deferred",
    },
    Dialect.MARIADB: {
        "tables": "engine row_format table_collation create_options table_comment",
        "columns": "column_type column_key extra column_comment",
        "key_column_usage": "referenced_table_schema referenced_table_name referenced_column_name",
        "referential_constraints": "table_name referenced_table_name",
        "statistics": "table_catalog table_schema table_name non_unique index_schema index_name seq_in_index"
        " column_name collation sub_part nullable index_type",
    },
}


def _tables(dialect: Dialect) -> dict[str, Table]:
    if dialect is Dialect.SQLITE:
        columns = tuple(Column(name=name, type="text") for name in ("type", "name", "tbl_name", "rootpage", "sql"))
        return {name: Table(name=name, kind="view", columns=columns) for name in ("sqlite_master", "sqlite_schema")}
    more = _MORE[dialect]
    return {
        f"information_schema.{name}": Table(
            name=f"information_schema.{name}",
            kind="view",
            columns=tuple(
                Column(name=column, type="text") for column in f"{_STANDARD.get(name, '')} {more.get(name, '')}".split()
            ),
        )
        for name in {**_STANDARD, **more}
    }


CATALOG: Mapping[Dialect, Mapping[str, Table]] = {dialect: _tables(dialect) for dialect in Dialect}

# A default is an expression there: the word NULL where there is none, a literal with its quotes.
_COLUMNS = (
    "SELECT column_name, column_type, is_nullable, column_key, NULLIF(column_default, 'NULL') AS column_default,"
    " extra{} FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{}'"
    " ORDER BY ordinal_position"
)
_FULL = ", collation_name, column_comment"

_DEFINITION = "SELECT {} FROM pragma_{}({})"  # read and checked like any other text


_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE(){} ORDER BY table_name"
_INDEXES = (
    "SELECT index_name, non_unique, seq_in_index, column_name, collation, sub_part, nullable, index_type"
    " FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{}'"
    " ORDER BY index_name, seq_in_index"
)
_OF_COLUMNS = {"COLUMNS": "", "FIELDS": "", "FULL COLUMNS": _FULL, "FULL FIELDS": _FULL}


def instead(words: list[str], dialect: Dialect, *, quoted: bool = False) -> str:
    """The query that stands for MariaDB's SHOW TABLES, SHOW COLUMNS and SHOW INDEX FROM, and DESCRIBE, and for those of
    SQLite's PRAGMAs that say how something is defined, or look whether it is whole; "" for anything else. `quoted`: the
    last word is a text."""
    upper = [word.upper() for word in words]
    if dialect is Dialect.SQLITE:
        alone = len(words) == 2
        if upper[:1] != ["PRAGMA"] or not (alone or (len(words) == 5 and (words[2], words[4]) == ("(", ")"))):
            return ""
        columns = PRAGMAS.get(words[1].lower(), "").split()
        if words[1].lower() not in ((*CHECKS, "table_list", "user_version") if alone else PRAGMAS.keys() - SETS):
            return ""
        listed = ", ".join(f'"{column}"' for column in columns)
        named = "" if alone else "'{}'".format(words[3].replace("'", "''"))
        return _DEFINITION.format(listed, words[1].lower(), named) if columns else ""
    if dialect is not Dialect.MARIADB:
        return ""
    if upper == ["SHOW", "TABLES"]:
        return _TABLES.format("")
    named = words[-1].replace("\\", "\\\\").replace("'", "''") if words else ""
    if upper[:3] == ["SHOW", "TABLES", "LIKE"] and len(words) == 4 and quoted:
        return _TABLES.format(f" AND table_name LIKE '{named}'")
    if len(upper) == 2 and upper[0] in ("DESCRIBE", "DESC"):
        return _COLUMNS.format("", named)
    what = " ".join(upper[1:-2]) if upper[:1] == ["SHOW"] and upper[-2:-1] in (["FROM"], ["IN"]) else ""
    if what in _OF_COLUMNS:
        return _COLUMNS.format(_OF_COLUMNS[what], named)
    return _INDEXES.format(named) if what in ("INDEX", "INDEXES", "KEYS") else ""
