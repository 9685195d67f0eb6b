"""Text to trees, and trees to the only text that runs.

Limits hold before anything is parsed. What a tree is made into is read again and has to give the same tree.
"""

from __future__ import annotations

import re
from typing import Any, cast

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking.dialects import GRAMMARS
from runtimes.sql.contract import Dialect

MAX_TEXT = 200_000  # characters
MAX_TOKENS = 40_000
MAX_DEPTH = 60  # brackets and CASEs within each other
MAX_STATEMENTS = 50
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_NEXT = "Send less at a time."


def read(text: str, dialect: Dialect) -> list[exp.Expr]:
    """The statements of a text as trees. Raises InvalidInput (can't be read, too long, too deep)."""
    if not text.strip():
        raise InvalidInput("There is no SQL statement.")
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"The SQL is longer than {MAX_TEXT} characters.", next_step=_NEXT)
    if found := _CONTROL.search(text):
        raise InvalidInput(f"The SQL holds the control character {ord(found.group()):#04x}.")
    grammar = GRAMMARS[dialect]
    try:
        tokens = grammar.tokenize(text)
        _limit(tokens)
        trees = grammar.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise InvalidInput(f"The SQL can't be read: {_why(error)}") from None
    found_trees = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if not found_trees:
        raise InvalidInput("There is no SQL statement.")
    if len(found_trees) > MAX_STATEMENTS:
        raise InvalidInput(f"There are more than {MAX_STATEMENTS} statements.", next_step=_NEXT)
    return cast("list[exp.Expr]", found_trees)


def write(tree: exp.Expr, dialect: Dialect) -> str:
    """The tree as text, without comments. Raises Unsupported when reading that gives another tree."""
    try:
        made = _made(tree, dialect)
        again = GRAMMARS[dialect].parser(error_level=ErrorLevel.IMMEDIATE).parse(GRAMMARS[dialect].tokenize(made), made)
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
        raise Unsupported(f"The statement can't be made anew from what was read: {_why(error)}") from None
    if len(again) != 1 or again[0] is None or again[0] != tree or _made(again[0], dialect) != made:
        raise Unsupported(
            "The statement reads differently once it is made anew, so it doesn't run.",
            next_step="Write it in a plainer way.",
        )
    return made


def _made(tree: exp.Expr, dialect: Dialect) -> str:
    made: Any = GRAMMARS[dialect].generate(
        tree, copy=True, comments=False, normalize_functions=False, unsupported_level=ErrorLevel.RAISE
    )
    return str(made)


def _limit(tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise InvalidInput(f"The SQL has more than {MAX_TOKENS} words.", next_step=_NEXT)
    depth = run = 0
    for token in tokens:
        for comment in token.comments:
            if comment.lstrip().startswith(("!", "M!", "+")):
                raise Unsupported(
                    "A comment that the server would run (/*! … */, /*+ … */) isn't allowed.",
                    next_step="Leave it out, or write it as plain SQL.",
                )
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        run = run + 1 if token.token_type in _PREFIX else 0
        if depth > MAX_DEPTH or run > MAX_DEPTH:
            raise InvalidInput(f"The SQL is nested more than {MAX_DEPTH} deep.", next_step=_NEXT)


def _why(error: Exception) -> str:
    """sqlglot's reason without its terminal colours and its quote of the text."""
    if isinstance(error, RecursionError):
        return "it is nested too deep."
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0].strip()
    return (text or type(error).__name__)[:200]
