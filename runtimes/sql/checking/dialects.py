"""How SQL is read and made anew: sqlglot's dialects, with what they rewrite switched off.

Functions keep the names that they were written with (sqlglot would turn many into others that mean nearly the same),
so a function is allowed by the name that the server will see.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite

from runtimes.sql.contract import Dialect

_SPECIAL = ("CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY")


def _parsers(of: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: parser for name, parser in of.items() if name in names}


class GoexPostgres(Postgres):
    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        return path

    class Parser(Postgres.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _parsers(Postgres.Parser.FUNCTION_PARSERS, *_SPECIAL[:1], "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY")

    class Generator(Postgres.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = dict(Postgres.Generator.TRANSFORMS)


class GoexMariaDB(MySQL):
    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        return path

    class Parser(MySQL.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _parsers(
            MySQL.Parser.FUNCTION_PARSERS, "CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "GROUP_CONCAT", "VALUES"
        )

    class Generator(MySQL.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = dict(MySQL.Generator.TRANSFORMS)


class GoexSQLite(SQLite):
    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        return path

    class Parser(SQLite.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _parsers(SQLite.Parser.FUNCTION_PARSERS, "CAST")

    class Generator(SQLite.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = dict(SQLite.Generator.TRANSFORMS)


GRAMMARS: dict[Dialect, Any] = {
    Dialect.POSTGRESQL: GoexPostgres(),
    Dialect.MARIADB: GoexMariaDB(),
    Dialect.SQLITE: GoexSQLite(),
}
