"""Which words and spellings of SQL mean the same, by dialect: all that a statement may change when it is made anew.

A line is a pattern over the words of a statement, which are in small letters with one space between them, and what it
is taken for. Types stand here only where the server's manual says that one is another name of the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runtimes.sql.contract import Dialect

_LENGTH = r"( \( \w+ \))?"  # of a type: (3)

_EVERYWHERE = (
    (r"!=", "<>"),
    (r"union distinct", "union"),
    (r"select all", "select"),
    (r"distinctrow", "distinct"),
    (r"fetch next", "fetch first"),
    (r"row only", "rows only"),
    (r"offset (\S+) rows?", r"offset \1"),
    (r"isnull", "is null"),
    (r"notnull", "is not null"),
    (r"rename to", "rename"),
)
_POSTGRES = (
    (r"int|int4", "integer"),
    (r"int8", "bigint"),
    (r"int2", "smallint"),
    (r"dec|decimal", "numeric"),
    (r"bool", "boolean"),
    (r"national char(?:acter)?|nchar", "char"),
    (r"char(?:acter)? varying", "varchar"),
    (r"character", "char"),
    (r"bit varying", "varbit"),
    (r"float|float8", "double precision"),
    (r"float4", "real"),
    (r"serial4", "serial"),
    (r"serial8", "bigserial"),
    (r"serial2", "smallserial"),
    (rf"timestamp{_LENGTH} with time zone", r"timestamptz\1"),
    (rf"time{_LENGTH} with time zone", r"timetz\1"),
    (rf"(time|timestamp){_LENGTH} without time zone", r"\1\2"),
    (r"set data type", "type"),
    (r"desc nulls first", "desc"),  # the greatest come first, and NULL is greater than all
    (r"(?<!desc )nulls last", ""),
    (r"::", "cast"),
    (r"!", "not"),  # !~
    (r"~~\*", "ilike"),
    (r"~~", "like"),
)
_MARIADB = (
    (r"constraint(?= (?:primary|unique|check|foreign) )", ""),  # without a name
    (r"default collate", "collate"),
    (r"lock in share mode", "for share"),
    (r"(?<!as )((?:tiny|small|medium|big)?int(?:eger)?(?: \( \w+ \))?) signed", r"\1"),
    (r"(convert \( (?:[^\s()]+ )+,) int(?:eger)?(?= \))", r"\1 signed"),
    (r"(convert \( (?:[^\s()]+ )+,) varchar(?= [()])", r"\1 char"),
    (r"integer|int4", "int"),
    (r"int8", "bigint"),
    (r"int2", "smallint"),
    (r"int1", "tinyint"),
    (r"(signed|unsigned) int", r"\1"),
    (r"as int", "as signed"),
    (r"as varchar", "as char"),
    (r"numeric|dec|fixed", "decimal"),
    (r"bool", "boolean"),
    (r"char(?:acter)? varying", "varchar"),
    (r"charset", "character set"),
    (r"character(?! set)", "char"),
    (r"double precision|float8|real", "double"),
    (r"float4", "float"),
    (r"unique (?:key|index)", "unique"),
    (r"key", "index"),
    (r"generated always as", "as"),
    (r"virtual", ""),  # what a generated column is unless it is stored
    (r"persistent", "stored"),
    (r"value", "values"),
    (r"regexp", "rlike"),
    (r"convert", "cast"),
    (r"mod", "%"),
    (r"&&", "and"),
    (r"\|\|", "or"),
    (r"!", "not"),
    (r"limit (\S+) , (\S+)", r"limit \2 offset \1"),
)
_SQLITE = (
    (r"==", "="),
    (r"is not distinct from", "is"),
    (r"is distinct from", "is not"),
    (r"(?<!is )not null", "is not null"),
    (r"insert or replace", "replace"),
    (r"on true", ""),  # of a JOIN that has no condition
    (r"generated always as", "as"),
    (r"virtual", ""),
    (r"desc nulls last", "desc"),  # the greatest come first, and NULL is less than all
    (r"(?<!desc )nulls first", ""),
    (r"limit (\S+) , (\S+)", r"limit \2 offset \1"),
)
_LINES: Mapping[Dialect, tuple[tuple[re.Pattern[str], str], ...]] = {
    dialect: tuple((re.compile(rf"(?<!\S)(?:{pattern})(?!\S)"), word) for pattern, word in (*_EVERYWHERE, *own))
    for dialect, own in ((Dialect.POSTGRESQL, _POSTGRES), (Dialect.MARIADB, _MARIADB), (Dialect.SQLITE, _SQLITE))
}

# Words that say what holds without them as well.
MAY_GO = frozenset({"as", "asc", "column", "inner", "outer"})
_WRITTEN_OUT = frozenset({"as", "column", "into", "table"})
MAY_BE_ADDED: Mapping[Dialect, frozenset[str]] = {
    Dialect.POSTGRESQL: _WRITTEN_OUT | {"cast"},  # date '2024-01-01'
    Dialect.MARIADB: _WRITTEN_OUT | {"cast", "="},  # BINARY name; ENGINE InnoDB
    Dialect.SQLITE: _WRITTEN_OUT | {"cross", "join", "offset"},  # a comma between tables, or behind LIMIT
}


def plainly(words: str, dialect: Dialect) -> str:
    """Return the words with one spelling for all that mean the same."""
    for pattern, word in _LINES[dialect]:
        words = pattern.sub(word, words)
    return words
