"""Three comparisons that don't trust sqlglot with its own output.

`compare_words`: every name, value, type and operator that was sent is in the text that was made of it, so no clause is
dropped and nothing becomes another type or operator. Only what `synonyms` lists counts as the same.
`compare_grouping`: that text, read again, is the tree that was read first, and holds no bracket and no NOT in a place
where sqlglot's reading of what binds to what would be told to the server, whose own is what counts.
`compare_tree`: that text, read by the server's own rules for quotes (written here, from the servers' manuals), holds
the strings and names of the tree and nothing else: no comment, no second statement, no string that ends early.
"""

from __future__ import annotations

import re
from collections import Counter

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from policies.errors import Unsupported
from runtimes.sql.checking.nodes import UNITS
from runtimes.sql.checking.synonyms import MAY_BE_ADDED, MAY_GO, plainly
from runtimes.sql.contract import Dialect

_SPAN = re.compile(r"([-+]?[0-9.]+)\s*([a-z]+)")  # of an interval: '1 day' may be made of '1' DAY
_STRINGS = {  # the token of a quoted value: what marks it
    TokenType.STRING: "'", TokenType.BYTE_STRING: "'", TokenType.RAW_STRING: "'", TokenType.HEREDOC_STRING: "'",
    TokenType.NATIONAL_STRING: "n'", TokenType.HEX_STRING: "x'", TokenType.BIT_STRING: "b'",
}  # fmt: skip
_PUNCTUATION = {"(", ")", ","}
_BEFORE_VALUES = {"=", "<", ">", "<=", ">=", "<>", "!=", "*", "(", ",", "AND", "BETWEEN", "DEFAULT", "INTERVAL"}
_PLAINER = "Write it in a plainer way."


def compare_words(sent: list[Token], made: list[Token], dialect: Dialect) -> None:
    """Raises Unsupported when something that was sent isn't in what was made, or the other way round."""
    shown: dict[str, str] = {}
    before, after = _words(sent, dialect, shown), _words(made, dialect, shown)
    lost, added = before - after, after - before
    if dialect is not Dialect.POSTGRESQL:  # AS 'name'
        for word in [word for word in lost if word.startswith("'")]:
            name = _name(shown[word].casefold(), {})
            lost[word] -= min(lost[word], added[name])
            added[name] -= min(before[word] - after[word], added[name])
    if dialect is Dialect.MARIADB:
        _rewritten(sent, before, lost, added)
    lost, added = +lost, +added
    for words, what, may in ((lost, "lost", MAY_GO), (added, "added", MAY_BE_ADDED[dialect])):
        odd = [shown.get(word, word) for word in words if word not in may]
        if odd:
            raise Unsupported(f"“{min(odd)[:60]}” would be {what} when the statement is made anew.", next_step=_PLAINER)


def _rewritten(sent: list[Token], before: Counter[str], lost: Counter[str], added: Counter[str]) -> None:
    """Take away what MariaDB's own ways to say something are written in words of others."""
    if sent[0].text.upper() in ("INSERT", "REPLACE") and added["values"]:  # INSERT … SET
        lost.subtract({"set": lost["set"], "=": lost["="]})
        added["values"] -= 1
    for word in ("from", "for"):  # SUBSTRING(a FROM 1 FOR 2)
        lost[word] -= min(lost[word], before["substring"])
    using = min(lost["using"], sum(token.text.upper() == "CONVERT" for token in sent))  # CONVERT(a USING utf8mb4)
    lost["using"] -= using
    for word in ("char", "character", "set"):
        added[word] -= min(added[word], using)


def _words(tokens: list[Token], dialect: Dialect, shown: dict[str, str]) -> Counter[str]:
    """Everything but commas and round brackets, with one word for synonyms. `shown`: what the marks stand for."""
    units: list[str] = []
    ordered = any(token.text.upper().startswith(("ORDER", "GROUP")) for token in tokens)  # BY 1 is a column, +1 none
    for at, token in enumerate(tokens):
        text, kind = token.text.casefold(), token.token_type
        before = tokens[at - 1] if at else None
        if kind is TokenType.PLUS and not ordered and _is_sign(tokens, at):
            continue
        if kind is TokenType.NUMBER and before is not None and before.token_type is TokenType.DOT:
            units[-1:] = [f"0.{text}"]  # .5
        elif kind in _STRINGS:
            value = text if kind in (TokenType.HEX_STRING, TokenType.BIT_STRING) else token.text
            interval = before is not None and before.token_type is TokenType.INTERVAL
            following = tokens[at + 1].text.upper() if at + 1 < len(tokens) else ""
            units += (_interval(value, following, dialect) if interval else []) or [
                _marked(_STRINGS[kind], value, shown)
            ]
        elif kind is TokenType.IDENTIFIER:
            units.append(_name(text, shown))
        else:
            units += text.split()
    found = Counter(plainly(" ".join(units), dialect).split())
    for mark in _PUNCTUATION:
        del found[mark]
    return found


def _is_sign(tokens: list[Token], at: int) -> bool:
    """Whether a plus is a number's sign, which says nothing: it stands behind what begins a value."""
    if not 0 < at < len(tokens) - 1 or tokens[at + 1].token_type is not TokenType.NUMBER:
        return False
    return tokens[at - 1].text.upper() in _BEFORE_VALUES


def _interval(text: str, following: str, dialect: Dialect) -> list[str]:
    """The number and the unit of an interval: '1 day' is '1' DAY. In PostgreSQL a unit behind the string cuts it: of
    '1.5' DAY it takes 1, of '1.5 DAY' all."""
    if dialect is not Dialect.POSTGRESQL:
        return []
    if re.fullmatch("[-+]?[0-9]+", text):
        return [text]
    if following in UNITS:
        return [f"{text.casefold()}/{following}".replace(" ", "_")]
    span = _SPAN.fullmatch(text.casefold())
    return list(span.groups()) if span is not None else []


def _name(text: str, shown: dict[str, str]) -> str:
    return text if re.fullmatch(r"\w+", text) else _marked('"', text, shown)


def _marked(mark: str, text: str, shown: dict[str, str]) -> str:
    word = mark + text.encode("utf-8", "surrogatepass").hex()
    shown[word] = text
    return word


# ---- what belongs together

# Written with brackets or without them, and read as one or the other.
_CALLS = (exp.Anonymous, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentUser, exp.Localtime)


_TIMESTAMPS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)


def compare_grouping(first: exp.Expr, again: exp.Expr) -> None:
    """Raises Unsupported when what was made is read as another tree than what was sent."""
    if _grouping(first) != _grouping(again) or _brackets(first) < _brackets(again) or any(map(_bound, first.walk())):
        raise _unclear()


def compare_brackets(sent: list[Token], made: list[Token], dialect: Dialect) -> None:
    """Raises Unsupported where SQLite would be told brackets that weren't sent: there is nothing that it needs them
    for."""
    if dialect is Dialect.SQLITE:
        before, after = (sum(token.token_type is TokenType.L_PAREN for token in tokens) for tokens in (sent, made))
        if after > before:
            raise _unclear()


def _unclear() -> Unsupported:
    return Unsupported(
        "Which parts of the statement belong together isn't clear enough to make it anew.",
        next_step="Put round brackets around what belongs together.",
    )


def _brackets(tree: exp.Expr) -> int:
    return sum(not isinstance(node.parent, exp.ComputedColumnConstraint) for node in tree.find_all(exp.Paren))


def _bound(node: exp.Expr) -> bool:
    """Whether it is a NOT that an operator takes: `a = b NOT IN (1)` would become `a = NOT b IN (1)`."""
    parent = node.parent
    if not isinstance(node, exp.Not) or isinstance(parent, exp.Connector | exp.Kwarg):
        return False
    assigned = isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update | exp.OnConflict | exp.Merge)
    takes = isinstance(parent, exp.Binary | exp.Between | exp.In | exp.Neg | exp.BitwiseNot | exp.AtTimeZone)
    return takes and not (assigned and node.arg_key == "expression") and node.arg_key != "expressions"


def _grouping(tree: exp.Expr) -> list[tuple[str, int]]:
    """The kinds of nodes within each other, without brackets: each with how many it holds, from the outside."""
    found: list[tuple[str, int]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        while isinstance(node, exp.Paren) or (isinstance(node, exp.Schema) and not node.expressions):
            node = node.this
        if isinstance(node, exp.DataType):
            found.append(("type", 0))
            continue
        if isinstance(node, exp.Cast) and node.to.this in _TIMESTAMPS:
            name, inner = "call", [node.this]  # MariaDB's TIMESTAMP '…'
        else:
            name = "call" if isinstance(node, _CALLS) else type(node).__name__
            inner = list(node.iter_expressions())
        found.append((name, len(inner)))
        waiting += inner
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
        raise Unsupported("What the statement quotes isn't what was read.", next_step=_PLAINER)


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
    return Unsupported("The statement can't be made anew safely.", next_step=_PLAINER)
