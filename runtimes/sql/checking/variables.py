"""MariaDB's own variables of a session (`@name`): what a program may set, and what it may read.

Rules: a name is letters, digits and `_`, and never GoEx's own. A variable is read only where the same program has set
it: before that it is NULL in each connection of GoEx's. `SET @a = …, @b = …` is read as the query of these values, and
`SELECT … INTO @a` as the query alone; the names are kept beside the tree. The server's variables (`@@name`) aren't
listed, so they are refused.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking.dialects import INTO, SET
from runtimes.sql.contract import Dialect

_NAME = re.compile(r"(?!goex)[a-z_]\w{0,63}", re.ASCII | re.IGNORECASE)
_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN
_EQUAL, _ASSIGN = TokenType.EQ, TokenType.COLON_EQ


def spelled(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """SET with `=` for each `:=` of its own."""
    if not _is_set(tokens, dialect):
        return tokens
    found = list(tokens)
    for at, _ in _parts(tokens):
        if len(tokens) > at + 2 and tokens[at + 2].token_type is _ASSIGN:
            old = tokens[at + 2]
            found[at + 2] = Token(_EQUAL, "=", line=old.line, col=old.col, start=old.start, end=old.end)
    return found


def taken(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], str, tuple[str, ...]]:
    """The query that they are read as, how it keeps its values ("" for no variable), and the names."""
    if _is_set(tokens, dialect):
        return _of_set(tokens)
    if dialect is Dialect.MARIADB and tokens and tokens[0].token_type in (TokenType.SELECT, TokenType.WITH):
        return _of_into(tokens)
    return tokens, "", ()


def refuse_more(tree: exp.Expr, how: str, names: tuple[str, ...]) -> None:
    """Raises Unsupported where a SET, or a SELECT … INTO, was read as something else than its values."""
    plain = isinstance(tree, exp.Query)
    if how == SET:
        plain = isinstance(tree, exp.Select) and [part for part, value in tree.args.items() if value] == ["expressions"]
        plain = plain and not any(isinstance(one, exp.Alias | exp.Star) for one in tree.expressions)
        plain = plain and len(tree.expressions) == len(names)
    if not plain:
        raise Unsupported(f"{how} of variables in that way isn't on the list of what GoEx runs.", next_step=_PLAINER)


def written(made: str, values: list[str], how: str, names: tuple[str, ...]) -> str:
    """The statement as text: of its query, and of each of its values."""
    if how == SET:
        return "SET " + ", ".join(f"@{name} = {value}" for name, value in zip(names, values, strict=True))
    return f"{made} INTO {', '.join(f'@{name}' for name in names)}"


def known(tree: exp.Expr, before: frozenset[str]) -> frozenset[str]:
    """The variables that a statement may read: what earlier ones have set, and what it sets itself by `:=`."""
    own = {str(node.this.name).casefold() for node in tree.find_all(exp.PropertyEQ)}
    return before | own


def after(tree: exp.Expr, before: frozenset[str]) -> frozenset[str]:
    """The variables that are set once it ran."""
    names = (*tree.meta.get(SET, ()), *tree.meta.get(INTO, ()))
    return known(tree, before) | {name.casefold() for name in names}


def check_read(node: exp.Parameter, variables: frozenset[str]) -> None:
    """Raises InvalidInput and Unsupported for one that isn't set."""
    name = str(node.this.this) if isinstance(node.this, exp.Var) else ""
    if not _NAME.fullmatch(name):
        raise _unnamed(name)
    if name.casefold() not in variables:
        raise InvalidInput(
            f"The variable @{name[:60]} isn't set in this request.",
            next_step=f"Set it there, in front of this statement: SET @{name[:60]} = …",
        )


def check_assigned(node: exp.PropertyEQ) -> None:
    """Raises Unsupported for `:=` with anything but a variable on its left, and where no value stands."""
    if not isinstance(node.this, exp.Parameter):
        raise _unnamed(node.this.sql())


_PLAINER = "Write SET @name = value, or SELECT value INTO @name."


def _unnamed(name: str) -> Unsupported:
    return Unsupported(f"“{name[:60]}” isn't a variable that a statement may have.", next_step=_PLAINER)


def _is_set(tokens: list[Token], dialect: Dialect) -> bool:
    kinds = [token.token_type for token in tokens[1:2]]
    return dialect is Dialect.MARIADB and tokens[0].text.upper() == "SET" and kinds == [TokenType.PARAMETER]


def _parts(tokens: list[Token]) -> list[tuple[int, int]]:
    """Where each assignment of a SET begins and ends."""
    found, depth, start = [], 0, 1
    for at, token in enumerate(tokens):
        depth += (token.token_type is _OPEN) - (token.token_type is _CLOSE)
        if token.token_type is TokenType.COMMA and not depth:
            found.append((start, at))
            start = at + 1
    return [*found, (start, len(tokens))]


def _of_set(tokens: list[Token]) -> tuple[list[Token], str, tuple[str, ...]]:
    found, names = [_token(tokens[0], TokenType.SELECT, "SELECT")], []
    for start, end in _parts(tokens):
        kinds = [token.token_type for token in tokens[start : start + 3]]
        if end - start < 4 or kinds[::2] != [TokenType.PARAMETER, _EQUAL]:
            raise Unsupported("SET of anything but variables isn't on the list.", next_step=_PLAINER)
        names.append(_name(tokens[start + 1]))
        if len(names) > 1:
            found.append(_token(tokens[start], TokenType.COMMA, ","))
        found += tokens[start + 3 : end]
    return found, SET, tuple(names)


def _of_into(tokens: list[Token]) -> tuple[list[Token], str, tuple[str, ...]]:
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.token_type is _OPEN) - (token.token_type is _CLOSE)
        if depth or token.token_type is not TokenType.INTO:
            continue
        names, end = [], at + 1
        while len(tokens) > end + 1 and tokens[end].token_type is TokenType.PARAMETER:
            names.append(_name(tokens[end + 1]))
            end += 2
            if len(tokens) <= end or tokens[end].token_type is not TokenType.COMMA:
                return [*tokens[:at], *tokens[end:]], INTO, tuple(names)
            end += 1
        return tokens, "", ()
    return tokens, "", ()


def _name(token: Token) -> str:
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or not _NAME.fullmatch(token.text):
        raise _unnamed(token.text)
    return token.text


def _token(at: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, line=at.line, col=at.col, start=at.start, end=at.end)
