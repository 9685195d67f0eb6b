"""PostgreSQL's U&'…' as the plain text that it says."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

_ESCAPE = re.compile(r"\\(?:(\\)|([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6})|)")
_ODD = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # pairs of surrogates, too: they are refused as they were sent


def plain(token: Token, following: list[Token]) -> Token:
    """A string for U&'…' without UESCAPE; any other token, and one that can't be told, as it is."""
    if token.token_type is not TokenType.UNICODE_STRING or any(one.text.upper() == "UESCAPE" for one in following):
        return token
    try:
        text = _ESCAPE.sub(_said, token.text)
    except ValueError:
        return token
    if _ODD.search(text):
        return token
    return Token(TokenType.STRING, text, line=token.line, col=token.col, start=token.start, end=token.end)


def _said(found: re.Match[str]) -> str:
    backslash, four, six = found.groups()
    return backslash or chr(int(four or six or "", 16))
