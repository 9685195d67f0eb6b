"""How SQL is read and made anew: sqlglot's dialects, with what they rewrite switched off.

Functions keep the names that they were written with (sqlglot would turn many into others that mean nearly the same),
so a function is allowed by the name that the server will see. Paths of JSON operators stay the text that they are.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.tokens import TokenType

from runtimes.sql.contract import Dialect

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it logs what it can't read: that is the person's data

# Parts of a CREATE TABLE that sqlglot doesn't read, and INSERT's other spelling: kept beside the tree.
TAIL = "goex_tail"


def _some(of: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: of[name] for name in names}


def _operator(kind: type[exp.Expr]) -> Any:
    return lambda self, this, path: self.expression(kind(this=this, expression=path))


class GoexPostgres(Postgres):
    """PostgreSQL as sqlglot reads it."""

    class Parser(Postgres.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            Postgres.Parser.FUNCTION_PARSERS, "CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY"
        )
        JSON_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **Postgres.Parser.JSON_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }
        PRIMARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **Postgres.Parser.PRIMARY_PARSERS,
            # E'…' and $$…$$ become plain strings: what they say is known once they are read.
            TokenType.BYTE_STRING: lambda self, token: exp.Literal.string(token.text),
            TokenType.RAW_STRING: lambda self, token: exp.Literal.string(token.text),
            TokenType.HEREDOC_STRING: lambda self, token: exp.Literal.string(token.text),
        }

    class Generator(Postgres.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: made for kind, made in Postgres.Generator.TRANSFORMS.items() if kind is not exp.ColumnDef},
            exp.Pow: lambda self, node: self.binary(node, "^"),
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }

        def altercolumn_sql(self, expression: exp.AlterColumn) -> str:
            args = expression.args
            if args.get("allow_null") is not None and not args.get("dtype") and not args.get("default"):
                return f"ALTER COLUMN {self.sql(expression, 'this')} {'DROP' if args.get('drop') else 'SET'} NOT NULL"
            return super().altercolumn_sql(expression)


class GoexMariaDB(MySQL):
    """MariaDB and MySQL as sqlglot reads MySQL."""

    class Tokenizer(MySQL.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = MySQL.Tokenizer.COMMANDS - {TokenType.REPLACE}

    class Parser(MySQL.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            MySQL.Parser.FUNCTION_PARSERS,
            *("CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "GROUP_CONCAT", "VALUES", "MATCH"),
        )
        COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **MySQL.Parser.COLUMN_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

    class Generator(MySQL.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **MySQL.Generator.TRANSFORMS,
            exp.RegexpLike: lambda self, node: self.binary(node, "RLIKE"),
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }

        def insert_sql(self, expression: exp.Insert) -> str:
            made = super().insert_sql(expression)
            return (
                made.replace("INSERT OR REPLACE INTO", "REPLACE INTO", 1)
                if expression.args.get("alternative")
                else made
            )


class GoexSQLite(SQLite):
    """SQLite as sqlglot reads it."""

    class Tokenizer(SQLite.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = SQLite.Tokenizer.COMMANDS - {TokenType.REPLACE}

    class Parser(SQLite.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(SQLite.Parser.FUNCTION_PARSERS, "CAST")
        CONCAT_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **SQLite.Parser.CONCAT_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

    class Generator(SQLite.Generator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: made for kind, made in SQLite.Generator.TRANSFORMS.items() if kind is not exp.Create},
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }


GRAMMARS: dict[Dialect, Any] = {
    Dialect.POSTGRESQL: GoexPostgres(),
    Dialect.MARIADB: GoexMariaDB(),
    Dialect.SQLITE: GoexSQLite(),
}
