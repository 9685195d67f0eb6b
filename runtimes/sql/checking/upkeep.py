"""SQLite's ANALYZE and REINDEX, and the two numbers that a file keeps for its program: no row of a table changes by
them, and they are taken back with the file's pages.

sqlglot reads none of them, so each is kept beside a tree that says nothing. VACUUM isn't one: no transaction holds it.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from runtimes.sql.checking.dialects import UPKEEP
from runtimes.sql.checking.functions import FILE_NUMBERS
from runtimes.sql.contract import Dialect

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def taken(tokens: list[Token], dialect: Dialect) -> exp.Expr | None:
    """The tree of such a statement; None for any other."""
    words = [token.text.upper() for token in tokens]
    if dialect is not Dialect.SQLITE or len(tokens) not in (1, 2, 4) or tokens[0].token_type is TokenType.IDENTIFIER:
        return None
    if words[0] in ("ANALYZE", "REINDEX") and len(tokens) < 4:
        named = tokens[1] if len(tokens) == 2 else None
        if named is not None and named.token_type not in _NAMES:
            return None
        return _kept(words[0], named.text if named is not None else "")
    number = words[:1] == ["PRAGMA"] and len(tokens) == 4 and words[1].lower() in FILE_NUMBERS and words[2] == "="
    if number and re.fullmatch(r"[0-9]{1,9}", words[3]) and tokens[3].token_type is TokenType.NUMBER:
        return _kept(f"PRAGMA {words[1].lower()} =", words[3])
    return None


def _kept(what: str, of: str) -> exp.Expr:
    tree = exp.Select(expressions=[exp.Literal.number(1)])
    tree.meta[UPKEEP] = (what, of)
    return tree


def written(kept: tuple[str, str]) -> str:
    """The statement as text."""
    what, of = kept
    if not what.startswith("PRAGMA"):
        of = exp.to_identifier(of, quoted=True).sql("sqlite") if of else ""
    return f"{what} {of}".rstrip()
