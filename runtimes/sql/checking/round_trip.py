"""Two comparisons that don't trust sqlglot with its own output.

`compare_words`: every name and every value that was sent is in the text that was made of it, so no clause is dropped.
`compare_tree`: that text, read by the server's own rules for quotes (written here, from the servers' manuals), holds
the strings and names of the tree and nothing else: no comment, no second statement, no string that ends early.
"""

from __future__ import annotations

import re
from collections import Counter

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from policies.errors import Unsupported
from runtimes.sql.checking.nodes import names
from runtimes.sql.contract import Dialect

# Words that may go, since the text means the same without them (or with another word for the same type).
_NOISE = names(
    """
    as inner outer asc all default key column to into table work row rows only int integer int4 int8 int2 bigint
    smallint numeric decimal dec bool boolean text varchar character varying char precision double float float4 float8
    real set value values and on from for index type data using unique first next fetch limit offset signed unsigned
    true false serial serial4 serial8 timestamp with without time zone timestamptz timestamptz now current_timestamp
    localtimestamp bytea blob json jsonb nchar national restrict constraint primary not null is in insert replace
    rename add modify change charset distinct distinctrow materialized mod regexp rlike isnull notnull div binary
    datetime date always generated stored virtual persistent current_date no action begin then when end
    """
)
# Words that sqlglot writes out where something shorter was sent: `::`, `||`, a comma between tables, REPLACE.
_MAY_GO = _NOISE | {"convert", "dual", "nulls", "last"}
_WRITTEN_OUT = _NOISE | {"cast", "or", "and", "cross", "join", "interval"}
_SPAN = re.compile(r"^([-+]?[0-9.]+)\s*([a-z]+)$")  # of an interval: '1 day' may be made of '1' DAY
_WHOLE = {
    TokenType.STRING, TokenType.NUMBER, TokenType.BYTE_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING,
    TokenType.NATIONAL_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING, TokenType.IDENTIFIER,
}  # fmt: skip


def compare_words(sent: list[Token], made: list[Token]) -> None:
    """Raises Unsupported when something that was sent isn't in what was made, or the other way round."""
    before, after = _words(sent), _words(made)
    for words, what, may in ((before - after, "lost", _MAY_GO), (after - before, "added", _WRITTEN_OUT)):
        odd = [word for word in words if word not in may]
        if odd:
            raise Unsupported(
                f"“{min(odd)[:60]}” would be {what} when the statement is made anew.",
                next_step="Write it in a plainer way.",
            )


def _words(tokens: list[Token]) -> Counter[str]:
    found: Counter[str] = Counter()
    for at, token in enumerate(tokens):
        text = token.text.casefold()
        if token.token_type is TokenType.NUMBER and at and tokens[at - 1].token_type is TokenType.DOT:
            text = f"0.{text}"  # .5
        if span := _SPAN.match(text):
            found.update(span.groups())
        elif token.token_type in _WHOLE:
            found[text] += 1
        elif re.search(r"\w", text):
            found.update(text.split())
    return found


# ---- the text as the server reads it


def compare_tree(made: str, tree: exp.Expr, dialect: Dialect) -> None:
    """Raises Unsupported when the quoted parts of `made` aren't the tree's."""
    strings, names = quoted(made, dialect)
    wanted_strings: Counter[str] = Counter()
    wanted_names: Counter[str] = Counter()
    for node in tree.walk():
        if isinstance(node, exp.Interval) and dialect is Dialect.POSTGRESQL and isinstance(node.this, exp.Literal):
            unit = node.args.get("unit")
            if isinstance(unit, exp.Var):  # it is made into one string
                wanted_strings[f"{node.this.this} {unit.this}"] += 1
                wanted_strings[str(node.this.this)] -= 1
        if (isinstance(node, exp.Literal) and node.is_string) or isinstance(
            node, exp.National | exp.HexString | exp.BitString
        ):
            wanted_strings[str(node.this)] += 1
        elif isinstance(node, exp.Identifier) and node.args.get("quoted"):
            wanted_names[str(node.this)] += 1
    if +strings != +wanted_strings or wanted_names - names:
        raise Unsupported("What the statement quotes isn't what was read.", next_step="Write it in a plainer way.")


def quoted(sql: str, dialect: Dialect) -> tuple[Counter[str], Counter[str]]:
    """The strings and the quoted names of one statement. Raises Unsupported for a comment, for a `;`, and for a quote
    that doesn't end."""
    strings: Counter[str] = Counter()
    names: Counter[str] = Counter()
    name_quote = "`" if dialect is Dialect.MARIADB else '"'
    at, end = 0, len(sql)
    while at < end:
        char = sql[at]
        if char in "'\"`":
            text, at = _quote(sql, at, backslash=dialect is Dialect.MARIADB and char != "`")
            if char == "'":
                strings[text] += 1
            elif char == name_quote:
                names[text] += 1
            else:
                raise _odd()
            continue
        if char == ";" or sql.startswith(("--", "/*"), at) or (char == "#" and dialect is Dialect.MARIADB):
            raise _odd()
        if char == "$" and dialect is Dialect.POSTGRESQL:
            raise _odd()
        at += 1
    return strings, names


_MARIADB_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _quote(sql: str, at: int, *, backslash: bool) -> tuple[str, int]:
    mark, at, text = sql[at], at + 1, []
    while at < len(sql):
        char = sql[at]
        if char == "\\" and backslash:
            if at + 1 >= len(sql):
                raise _odd()
            text.append(_MARIADB_ESCAPES.get(sql[at + 1], sql[at + 1]))
            at += 2
        elif char == mark:
            if sql.startswith(mark * 2, at):
                text.append(mark)
                at += 2
            else:
                return "".join(text), at + 1
        else:
            text.append(char)
            at += 1
    raise _odd()


def _odd() -> Unsupported:
    return Unsupported("The statement can't be made anew safely.", next_step="Write it in a plainer way.")
