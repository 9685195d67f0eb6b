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
from sqlglot.generator import Generator
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
OR = "goex_or"  # what SQLite's UPDATE OR, and MariaDB's UPDATE IGNORE, says
SET = "SET"  # of MariaDB's variables: their names
INTO = "INTO"
UPKEEP = "goex_upkeep"  # SQLite's ANALYZE and the like, in place of a tree
OVERRIDING = "goex_overriding"  # SYSTEM or USER, of PostgreSQL's INSERT


def _some(of: dict[Any, Any], *names: Any) -> dict[Any, Any]:
    return {name: of[name] for name in names}


def _operator(kind: type[exp.Expr]) -> Any:
    return lambda self, this, path: self.expression(kind(this=this, expression=path))


_CLOCKS = (exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)


def _clock(self: Any, node: exp.Func) -> str:
    digits = self.sql(node, "this")
    return str(node.sql_name()) + (f"({digits})" if digits else "")


class GoexPostgres(Postgres):
    """PostgreSQL as sqlglot reads it."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.DESCRIBE}

    class Parser(PostgresParser):
        def _values_to_select(self, values: exp.Values) -> Any:
            return values  # WITH a AS (VALUES …) stays what it is

        def _parse_substring(self) -> Any:
            """substring(a, 1, 2) is a call; substring(a FROM 1 FOR 2) isn't."""
            start = self._index
            values = self._parse_csv(self._parse_disjunction)
            if len(values) > 1:
                return self.expression(exp.Anonymous(this="substring", expressions=values))
            self._retreat(start)
            return super()._parse_substring()

        FUNCTIONS: ClassVar[dict[str, Any]] = {kind.sql_name(): kind.from_arg_list for kind in _CLOCKS}  # with digits
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
            **dict.fromkeys(_CLOCKS, _clock),
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
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **MySQL.Tokenizer.KEYWORDS,
            "REAL": TokenType.DOUBLE,
            "INT8": TokenType.BIGINT,
        }

    class Parser(MySQLParser):
        def _values_to_select(self, values: exp.Values) -> Any:
            return values  # WITH a AS (VALUES …) stays what it is

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        LAMBDAS: ClassVar[dict[Any, Any]] = {}  # `f(a -> 'b')` is a path
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            MySQLParser.FUNCTION_PARSERS,
            *("CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "GROUP_CONCAT", "VALUES", "MATCH"),
            "JSON_TABLE",
        )
        TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {
            **MySQLParser.TYPE_LITERAL_PARSERS,
            # A cast to TIME would cut the fraction of its second.
            exp.DType.TIME: lambda self, text, _: self.expression(exp.Anonymous(this="TIME", expressions=[text])),
        }
        COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **MySQLParser.COLUMN_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

        def _parse_interval(self, *args: Any, **named: Any) -> Any:
            """INTERVAL(a, b, …) is a function; INTERVAL (a) DAY isn't."""
            start = self._index
            if self._match(TokenType.INTERVAL) and self._match(TokenType.L_PAREN):
                values = self._parse_csv(self._parse_disjunction)
                if len(values) > 1 and self._match(TokenType.R_PAREN):
                    return self.expression(exp.Anonymous(this="INTERVAL", expressions=values))
            self._retreat(start)
            return super()._parse_interval(*args, **named)

        def _parse_interval_span(self, this: Any, parse_function_unit: bool = True) -> exp.Interval:
            """A number stays one: MariaDB rounds 1.5 DAY, and cuts '1.5' DAY."""
            found = super()._parse_interval_span(this, parse_function_unit)
            if this is not None and this.is_number:
                found.set("this", this)
            return found

    class Generator(MySQLGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda self, node: self.binary(node, "RLIKE"),
            exp.PropertyEQ: lambda self, node: self.binary(node, ":="),
            exp.StrPosition: lambda self, node: f"POSITION({self.sql(node, 'substr')} IN {self.sql(node, 'this')})",
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
    """SQLite as sqlglot reads it. Types stay as they were written: their words say a column's affinity, and INTEGER
    alone makes a key the rowid."""

    class Tokenizer(SQLite.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = SQLite.Tokenizer.COMMANDS - {TokenType.REPLACE}
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**SQLite.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.DESCRIBE}

    class Parser(SQLiteParser):
        def _values_to_select(self, values: exp.Values) -> Any:
            return values  # WITH a AS (VALUES …) stays what it is

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        LAMBDAS: ClassVar[dict[Any, Any]] = {}  # `f(a -> 'b')` is a path
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(SQLiteParser.FUNCTION_PARSERS, "CAST")
        CONCAT_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            **SQLiteParser.CONCAT_OPERATORS,
            TokenType.ARROW: _operator(exp.JSONExtract),
            TokenType.DARROW: _operator(exp.JSONExtractScalar),
        }

        def _parse_hex_string(self, token: Any) -> exp.Expr:
            """0x1F is a number by now (`parse`); sqlglot's own looks for it in a text that isn't the one sent."""
            return self.expression(exp.HexString(this=token.text), token)

        def _parse_factor_operand(self) -> exp.Expr | None:
            """Without the brackets that sqlglot's own puts around `a || b` and `a -> b` for other dialects."""
            this = self._parse_concat_operand()
            while self._curr and (build := self.CONCAT_OPERATORS.get(self._curr.token_type)):
                self._advance()
                this = build(self, this, self._parse_concat_operand())
            return this

        def _parse_types(self, *args: Any, **named: Any) -> exp.Expr | None:
            start = self._index
            found = super()._parse_types(*args, **named)
            if isinstance(found, exp.DataType) and isinstance(found.this, exp.DType) and not found.args.get("kind"):
                words = [token.text for token in self._tokens[start : self._index]]
                end = words.index("(") if "(" in words else len(words)
                if end < len(words) - 1 and words.index(")") != len(words) - 1:
                    self.raise_error("Nothing may follow the brackets of a type")
                found.set("kind", " ".join(words[:end]))
            return found

    class Generator(SQLiteGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **{kind: made for kind, made in SQLiteGenerator.TRANSFORMS.items() if kind is not exp.Create},
            exp.JSONExtract: lambda self, node: self.binary(node, "->"),
            exp.JSONExtractScalar: lambda self, node: self.binary(node, "->>"),
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            kind = expression.args.get("kind")
            if not isinstance(kind, str):
                return str(super().datatype_sql(expression))
            length = self.expressions(expression, flat=True)
            return f"{kind}({length})" if length else kind

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            return Generator.cast_sql(self, expression, safe_prefix)  # SQLite's would call DATE() for AS DATE


GRAMMARS: dict[Dialect, Any] = {
    Dialect.POSTGRESQL: GoexPostgres(),
    Dialect.MARIADB: GoexMariaDB(),
    Dialect.SQLITE: GoexSQLite(),
}
