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
from sqlglot.generators.mysql import MySQLGenerator
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.generators.sqlite import SQLiteGenerator
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.parsers.sqlite import SQLiteParser
from sqlglot.tokenizer_core import TokenType

from runtimes.sql.contract import Dialect

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it logs what it can't read: that is the person's data

# Parts of a CREATE TABLE that sqlglot doesn't read, and INSERT's other spelling: kept beside the tree.
TAIL = "goex_tail"
HEAD = "goex_head"  # EXPLAIN, which stands before the tree
OR_IGNORE = "goex_or_ignore"  # of SQLite's UPDATE
OVERRIDING = "goex_overriding"  # SYSTEM or USER, of PostgreSQL's INSERT


def _some(of: dict[Any, Any], *names: Any) -> dict[Any, Any]:
    return {name: of[name] for name in names}


def _operator(kind: type[exp.Expr]) -> Any:
    return lambda self, this, path: self.expression(kind(this=this, expression=path))


class GoexPostgres(Postgres):
    """PostgreSQL as sqlglot reads it."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.DESCRIBE}

    class Parser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        LAMBDAS: ClassVar[dict[Any, Any]] = _some(PostgresParser.LAMBDAS, TokenType.FARROW)  # `f(a -> 'b')` is a path
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            PostgresParser.FUNCTION_PARSERS,
            *("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY", "STRING_AGG"),
        )
        JSON_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **PostgresParser.JSON_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }
        PRIMARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **PostgresParser.PRIMARY_PARSERS,
            # E'…' and $$…$$ become plain strings: what they say is known once they are read.
            TokenType.BYTE_STRING: lambda self, token: exp.Literal.string(token.text),
            TokenType.RAW_STRING: lambda self, token: exp.Literal.string(token.text),
            TokenType.HEREDOC_STRING: lambda self, token: exp.Literal.string(token.text),
        }

    class Generator(PostgresGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: made for kind, made in PostgresGenerator.TRANSFORMS.items() if kind is not exp.ColumnDef},
            exp.Pow: lambda self, node: self.binary(node, "^"),
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }

        def insert_sql(self, expression: exp.Insert) -> str:
            made, whose = str(super().insert_sql(expression)), expression.meta.get(OVERRIDING)
            into = self.sql(expression, "this")
            return made.replace(into, f"{into} OVERRIDING {whose} VALUE", 1) if whose else made

        def altercolumn_sql(self, expression: exp.AlterColumn) -> str:
            args = expression.args
            if args.get("allow_null") is not None and not args.get("dtype") and not args.get("default"):
                return f"ALTER COLUMN {self.sql(expression, 'this')} {'DROP' if args.get('drop') else 'SET'} NOT NULL"
            return str(super().altercolumn_sql(expression))


class GoexMariaDB(MySQL):
    """MariaDB and MySQL as sqlglot reads MySQL."""

    class Tokenizer(MySQL.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = MySQL.Tokenizer.COMMANDS - {TokenType.REPLACE, TokenType.RENAME}

    class Parser(MySQLParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        LAMBDAS: ClassVar[dict[Any, Any]] = {}  # `f(a -> 'b')` is a path
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            MySQLParser.FUNCTION_PARSERS,
            *("CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "GROUP_CONCAT", "VALUES", "MATCH"),
        )
        COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **MySQLParser.COLUMN_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

    class Generator(MySQLGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **MySQLGenerator.TRANSFORMS,
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
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**SQLite.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.DESCRIBE}

    class Parser(SQLiteParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        LAMBDAS: ClassVar[dict[Any, Any]] = {}  # `f(a -> 'b')` is a path
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(SQLiteParser.FUNCTION_PARSERS, "CAST")
        CONCAT_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **SQLiteParser.CONCAT_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

    class Generator(SQLiteGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: made for kind, made in SQLiteGenerator.TRANSFORMS.items() if kind is not exp.Create},
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }


GRAMMARS: dict[Dialect, Any] = {
    Dialect.POSTGRESQL: GoexPostgres(),
    Dialect.MARIADB: GoexMariaDB(),
    Dialect.SQLITE: GoexSQLite(),
}
