"""Text to trees, and trees to the only text that runs.

Limits hold before anything is parsed. What was read is made into text and read again before it is checked, so that
the tree that is checked is the one that the text which runs is read as; no word of what was sent is lost on the way.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking import escapes, upkeep, variables
from runtimes.sql.checking.catalog_tables import instead
from runtimes.sql.checking.dialects import GRAMMARS, HEAD, INTO, OR, OVERRIDING, SET, TAIL, UPKEEP
from runtimes.sql.checking.nodes import names
from runtimes.sql.checking.round_trip import compare_brackets, compare_grouping, compare_tree, compare_words
from runtimes.sql.contract import Dialect

MAX_TEXT = 200_000  # characters
MAX_TOKENS = 40_000
MAX_DEPTH = 60  # brackets and CASEs within each other
MAX_CHAIN = 2_000  # operators and set operations of one statement: their tree is that deep
MAX_STATEMENTS = 50
_BESIDE = (HEAD, TAIL, OR, OVERRIDING, SET, INTO, UPKEEP)  # of a tree's meta
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_LESS = "Send less at a time."
_FAULTS = (SqlglotError, RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError, AssertionError)
_PLAINER = "Write it in a plainer way."
_EMPTY = 'For example: goex exec --db NAME --sql "SELECT …"'


def read(text: str, dialect: Dialect) -> list[exp.Expr]:
    """The statements of a text as trees. Raises InvalidInput (can't be read, too long, too deep) and Unsupported."""
    if not text.strip():
        raise InvalidInput("There is no SQL statement.", next_step=_EMPTY)
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"The SQL is longer than {MAX_TEXT} characters.", next_step=_LESS)
    if found := _CONTROL.search(text):
        raise InvalidInput(f"The SQL holds the control character {ord(found.group()):#04x}.", next_step="Leave it out.")
    try:
        statements = _bare(_split(_tokens(text, dialect)), dialect)
        if not statements:
            raise InvalidInput("There is no SQL statement.", next_step=_EMPTY)
        if len(statements) > MAX_STATEMENTS:
            raise InvalidInput(f"There are more than {MAX_STATEMENTS} statements.", next_step=_LESS)
        return [_settled(_queried(_joined(tokens, dialect), dialect), dialect) for tokens in statements]
    except _FAULTS as error:
        raise InvalidInput(f"The SQL can't be read: {_why(error)}", next_step=_PLAINER) from None


def write(tree: exp.Expr, dialect: Dialect) -> str:
    """The tree as text, without comments. Raises Unsupported when reading that gives another tree."""
    try:
        made = _made(tree, dialect)
        again = _split(_tokens(made, dialect))
        if len(again) != 1:
            raise _otherwise()
        same = _parsed(again[0], dialect)
        beside = any(same.meta.get(part) != tree.meta.get(part) for part in _BESIDE)
        if same != tree or beside or _made(same, dialect) != made:
            raise _otherwise()
        compare_tree(made, tree, dialect)
    except _FAULTS as error:
        raise Unsupported(
            f"The statement can't be made anew from what was read: {_why(error)}", next_step=_PLAINER
        ) from None
    return made


def remade(tree: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The tree that the text of a tree is read as: for trees that are put together here."""
    return _parsed(_split(_tokens(_made(tree, dialect), dialect))[0], dialect)


def _settled(tokens: list[Token], dialect: Dialect) -> exp.Expr:
    """The tree of what the first tree is made into: a spelling that sqlglot changes is changed by then."""
    tree = _parsed(tokens, dialect)
    if isinstance(tree, exp.Command):  # it is refused by its name
        return tree
    made = _made(tree, dialect)
    again = _split(_tokens(made, dialect))
    if len(again) != 1:
        raise _otherwise()
    compare_words(tokens, again[0], dialect)
    compare_brackets(tokens, again[0], dialect)
    settled = _parsed(again[0], dialect)
    compare_grouping(tree, settled)
    return settled


def _queried(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """SHOW, DESCRIBE, DO, some PRAGMAs and PostgreSQL's CREATE TABLE … AS TABLE are read as the queries that they are
    short for, and shown as these. MariaDB's RENAME TABLE of one table is an ALTER TABLE, and so is CREATE FULLTEXT
    INDEX."""
    words = [token.text.upper() for token in tokens]
    if dialect is Dialect.MARIADB and words[:2] == ["RENAME", "TABLE"] and len(words) == 5 and words[3] == "TO":
        alter, rename = _tokens("ALTER TABLE RENAME", dialect)[::2]
        return [alter, tokens[1], tokens[2], rename, tokens[4]]
    full_text = words[:3] == ["CREATE", "FULLTEXT", "INDEX"] and words[4:7:2] == ["ON", "("]
    if dialect is Dialect.MARIADB and full_text:
        alter, table, add = _tokens("ALTER TABLE ADD", dialect)
        return [alter, table, tokens[5], add, tokens[1], tokens[2], tokens[3], *tokens[6:]]
    if dialect is Dialect.MARIADB and words[:1] == ["DO"] and tokens[0].token_type is not TokenType.IDENTIFIER:
        return [*_tokens("SELECT", dialect), *tokens[1:]]
    if dialect is Dialect.POSTGRESQL and words[:1] == ["TABLE"] and _TABLE.fullmatch(" ".join(map(_shape, tokens))):
        return [*_tokens("SELECT * FROM", dialect), *tokens[1:]]
    if dialect is Dialect.POSTGRESQL and (made := _AS_TABLE.fullmatch(" ".join(map(_shape, tokens)))):
        at = len(made[1].split())
        return [*tokens[:at], *_tokens("SELECT * FROM", dialect), *tokens[at + 1 :]]
    quoted = bool(tokens) and tokens[-1].token_type is TokenType.STRING
    query = instead([token.text for token in tokens], dialect, quoted=quoted) if len(tokens) <= 5 else ""
    return _tokens(query, dialect) if query else variables.spelled(tokens, dialect)


# What a value begins behind, in MariaDB's queries and writes; behind anything else 'a' may be a name, or a DATE.
_BEFORE_TEXT = names("SELECT ( , = <=> <> != < > <= >= LIKE RLIKE REGEXP BETWEEN AND OR WHEN THEN ELSE")
_WRITTEN = ("SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH")


def _joined(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """'a' 'b' is one text in MariaDB, as 'ab' is, and so is N'a' 'b'. Where it isn't a value, it stays as it was
    sent."""
    if dialect is not Dialect.MARIADB:
        return tokens
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        first, end = tokens[at], at + 1
        if _takes_more(tokens, at, _shape(tokens[0]) in _WRITTEN):
            while end < len(tokens) and tokens[end].token_type is TokenType.STRING:
                end += 1
        if end > at + 1:
            text, last = "".join(token.text for token in tokens[at:end]), tokens[end - 1].end
            first = Token(first.token_type, text, line=first.line, col=first.col, start=first.start, end=last)
        found.append(first)
        at = end
    return found


def _takes_more(tokens: list[Token], at: int, values: bool) -> bool:
    """Whether it is a text to which the texts that follow it belong: N'a' and _utf8'a' anywhere."""
    if tokens[at].token_type is not TokenType.STRING or not at:
        return tokens[at].token_type is TokenType.NATIONAL_STRING
    before = tokens[at - 1]
    return before.token_type is TokenType.INTRODUCER or (values and _shape(before) in _BEFORE_TEXT)


_TABLE = re.compile(r"TABLE [^\s']+(?: \. [^\s']+)?")
_AS_TABLE = re.compile(r"(CREATE TABLE (?:IF NOT EXISTS )?\S+(?: \. \S+)? AS) TABLE [^\s']+(?: \. [^\s']+)?")


def _shape(token: Token) -> str:
    """A word in capitals; a quotation mark for what is in quotes."""
    quotes = {TokenType.STRING: "'", TokenType.IDENTIFIER: '"'}
    return quotes.get(token.token_type) or token.text.upper()


def _setting(token: Token) -> str:
    """A word in capitals, a text in its quotes."""
    return f"'{token.text.upper()}'" if token.token_type is TokenType.STRING else _shape(token)


def _tokens(text: str, dialect: Dialect) -> list[Token]:
    tokens: list[Token] = GRAMMARS[dialect].tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise InvalidInput(f"The SQL has more than {MAX_TOKENS} words.", next_step=_LESS)
    tokens = [escapes.plain(token, tokens[at + 1 : at + 2]) for at, token in enumerate(tokens)]
    return [_number(token, tokens[at + 1 : at + 2], text, dialect) for at, token in enumerate(tokens)]


def _number(token: Token, following: list[Token], text: str, dialect: Dialect) -> Token:
    """0x1F and 0b11 are numbers, which sqlglot takes for the strings x'1F' and b'11'. SQLite and MariaDB are told them
    as they were written (what they are depends on where they stand), PostgreSQL as a decimal number."""
    kind, written = token.token_type, text[token.start : token.end + 1]
    if kind in (TokenType.HEX_STRING, TokenType.BIT_STRING) and written[:1] == "0":
        if dialect is Dialect.POSTGRESQL:
            value = int(token.text, 16 if kind is TokenType.HEX_STRING else 2)
            if value >= 1 << 63:
                raise InvalidInput(f"The number {written[:60]} is too large.", next_step="Write it in decimal digits.")
            written = str(value)
        kind = TokenType.NUMBER
        token = Token(kind, written, line=token.line, col=token.col, start=token.start, end=token.end)
    glued = following and following[0].start == token.end + 1 and re.match(r"\w", text[token.end + 1 :])
    if kind is TokenType.NUMBER and glued and dialect is not Dialect.MARIADB:  # 1_000, which would be named _000
        raise InvalidInput(
            f"The number {written[:60]} is followed by other characters.", next_step="Write it in decimal digits alone."
        )
    return token


def _split(tokens: list[Token]) -> list[list[Token]]:
    """One list a statement, held to the limits of depth."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        for comment in token.comments:
            if comment.lstrip().startswith(("!", "M!", "m!", "+")):
                raise Unsupported(
                    "A comment that the server would run (/*! … */, /*+ … */) isn't allowed.",
                    next_step="Leave it out, or write it as plain SQL.",
                )
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    found = [statement for statement in found if statement]
    for statement in found:
        depth = run = chain = 0
        for token in statement:
            depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
            run = run + 1 if token.token_type in _PREFIX else 0
            chain = 0 if token.token_type in (TokenType.COMMA, TokenType.L_PAREN) else chain + 1
            if depth > MAX_DEPTH or run > MAX_DEPTH or chain > MAX_CHAIN:
                raise InvalidInput(f"The SQL is nested more than {MAX_DEPTH} deep.", next_step=_LESS)
    return found


_WORK = {
    Dialect.POSTGRESQL: (("BEGIN", "START"), ("COMMIT", "END"), ("", "WORK", "TRANSACTION")),
    Dialect.MARIADB: (("BEGIN", "START"), ("COMMIT",), ("", "WORK", "TRANSACTION")),
    Dialect.SQLITE: (
        ("BEGIN", "BEGIN DEFERRED", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"),
        ("COMMIT", "END"),
        ("", "TRANSACTION"),
    ),
}


# Settings at the head of scripts: of the connection's encoding, which is UTF-8; of how long to wait, which GoEx limits
# itself; and of foreign keys, which GoEx keeps.
_HOLDS_ANYWAY = {
    Dialect.POSTGRESQL: re.compile(
        r"SET (?:LOCAL |SESSION )?(?:STATEMENT_TIMEOUT|LOCK_TIMEOUT) (?:=|TO) (?:'[^']*'|[0-9]+)"
        r"|SET (?:NAMES|CLIENT_ENCODING (?:=|TO)) 'UTF-?8'"
    ),
    Dialect.MARIADB: re.compile("SET NAMES (?:UTF8MB4|'UTF8MB4')"),
    Dialect.SQLITE: re.compile(r"PRAGMA FOREIGN_KEYS (?:= (?:ON|1|TRUE|YES)|\( (?:ON|1) \))"),
}


def _bare(statements: list[list[Token]], dialect: Dialect) -> list[list[Token]]:
    """The statements without BEGIN in front of them all and COMMIT behind them all, without savepoints that are
    released again, and without settings that hold anyway: GoEx runs them in one transaction. Anywhere else, or one
    without the other, these mean something else. Raises Unsupported."""
    left = [one for one in statements if not _HOLDS_ANYWAY[dialect].fullmatch(" ".join(map(_setting, one)))]
    statements = left or statements
    begins, ends, more = _WORK[dialect]
    if len(statements) > 1 and _is(statements[0], begins, more) and _is(statements[-1], ends, more):
        statements = statements[1:-1]
    statements = _released(statements)
    if any(_is(one, (*begins, "COMMIT", "ROLLBACK"), more) for one in statements):
        raise Unsupported(
            "BEGIN, COMMIT and ROLLBACK are left to GoEx: it runs all statements of a request in one transaction.",
            next_step="Leave them out, and send what is to be taken back on its own as a request of its own.",
        )
    return statements


def _released(statements: list[list[Token]]) -> list[list[Token]]:
    """The statements without each SAVEPOINT that a later RELEASE ends, where nothing goes back to one."""
    found: list[list[Token]] = []
    open_: list[tuple[str, int]] = []  # its name, and how many statements stand before it
    for statement in statements:
        words = [token.text.upper() for token in statement]
        name = words[-1] if statement[-1].token_type is TokenType.VAR else ""
        if name and words == ["SAVEPOINT", name]:
            open_.append((name, len(found)))
        elif name and words in (["RELEASE", name], ["RELEASE", "SAVEPOINT", name]):
            if not open_ or open_[-1][0] != name or open_[-1][1] == len(found):
                return statements
            open_.pop()
        else:
            found.append(statement)
    return statements if open_ else found


def _is(statement: list[Token], words: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """Whether it is one of those words, by itself or with one more behind it, none of them in quotes."""
    quoted = any(token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) for token in statement)
    said = " ".join(token.text.upper() for token in statement)
    return not quoted and any(said == f"{word} {one}".rstrip() for word in words for one in more)


# ---- one statement


def _parsed(tokens: list[Token], dialect: Dialect) -> exp.Expr:
    kept = upkeep.taken(tokens, dialect)
    if kept is not None:
        return kept
    tokens, head = _explain(tokens, dialect)
    tokens, otherwise = _update_or(_of_insert(tokens, dialect), dialect)
    tokens, overriding = _overriding(tokens, dialect)
    tokens, replace = _replace(tokens, dialect)
    tokens, tail = _table_options(tokens, dialect)
    tokens, how, named = variables.taken(tokens, dialect)
    text = " ".join(token.text for token in tokens)
    trees: list[exp.Expr | None] = GRAMMARS[dialect].parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    if len(trees) != 1 or trees[0] is None:
        raise _otherwise()
    tree = trees[0]
    if isinstance(tree, exp.Create) and dialect is Dialect.MARIADB:
        _prefixes(tree)
    if isinstance(tree, exp.Update):
        _defaults(tree.expressions)
    elif isinstance(tree, exp.Insert) and isinstance(tree.args.get("conflict"), exp.OnConflict):
        _defaults(tree.args["conflict"].expressions)
    if replace:
        if not isinstance(tree, exp.Insert):
            raise _otherwise()
        tree.set("alternative", "REPLACE")
    if tail:
        if not isinstance(tree, exp.Create):
            raise _otherwise()
        tree.meta[TAIL] = tail
    if otherwise:
        tree.meta[OR] = otherwise
    if overriding:
        if not isinstance(tree, exp.Insert):
            raise _otherwise()
        tree.meta[OVERRIDING] = overriding
    if how:
        variables.refuse_more(tree, how, named)
        tree.meta[how] = named
    if head:
        _refuse_run(tree, head)
        tree.meta[HEAD] = head
    return tree


def _of_insert(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """ON CONFLICT behind the tables of INSERT … SELECT is no condition of a join."""
    if dialect is Dialect.MARIADB:
        return tokens
    words = [token.text.upper() for token in tokens]
    found = list(tokens)
    for at, token in enumerate(tokens):
        if token.token_type is not TokenType.ON or token.text.upper() != "ON":
            continue
        if words[at + 1 : at + 3] in _CONFLICTS and tokens[at + 1].token_type is not TokenType.IDENTIFIER:
            found[at] = Token(
                TokenType.ELSE, token.text, line=token.line, col=token.col, start=token.start, end=token.end
            )
    return found


_CONFLICTS = (["CONFLICT", "("], ["CONFLICT", "DO"], ["CONFLICT", "ON"])
_ORS = ("ABORT", "FAIL", "IGNORE", "REPLACE", "ROLLBACK")  # all but two end the request, with nothing changed


def _update_or(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], str]:
    """What SQLite's UPDATE OR …, and MariaDB's UPDATE IGNORE, does about a row that a constraint stands against."""
    words = [token.text.upper() for token in tokens[:3]]
    plain = len(tokens) > 1 and tokens[1].token_type is not TokenType.IDENTIFIER
    if dialect is Dialect.MARIADB and words[:2] == ["UPDATE", "IGNORE"] and plain:
        return [tokens[0], *tokens[2:]], "IGNORE"
    if dialect is Dialect.SQLITE and words[:2] == ["UPDATE", "OR"] and words[2:] and words[2] in _ORS:
        return [tokens[0], *tokens[3:]], words[2]
    return tokens, ""


def _overriding(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], str]:
    """PostgreSQL's INSERT … OVERRIDING SYSTEM VALUE, in front of VALUES or SELECT."""
    words = [token.text.upper() for token in tokens]
    if dialect is not Dialect.POSTGRESQL or words[:1] != ["INSERT"] or "OVERRIDING" not in words:
        return tokens, ""
    at = words.index("OVERRIDING")
    if words[at + 1 : at + 3] not in (["SYSTEM", "VALUE"], ["USER", "VALUE"]):
        return tokens, ""
    return [*tokens[:at], *tokens[at + 3 :]], words[at + 1]


_PLANNED = {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"}  # what EXPLAIN may stand before
_OPTIONS = names(
    "ANALYZE VERBOSE COSTS SETTINGS GENERIC_PLAN BUFFERS WAL TIMING SUMMARY FORMAT TEXT XML JSON YAML ON OFF"
)
_EXPLAINS = {
    Dialect.POSTGRESQL: re.compile(r"EXPLAIN( ANALYZE)?( VERBOSE)?"),
    Dialect.MARIADB: re.compile(
        r"(EXPLAIN|DESCRIBE|DESC)( EXTENDED| PARTITIONS)?( FORMAT = JSON)?|ANALYZE( FORMAT = JSON)?"
    ),
    Dialect.SQLITE: re.compile(r"EXPLAIN( QUERY PLAN)?"),
}


def _explain(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], str]:
    """EXPLAIN, and MariaDB's ANALYZE of a statement, which runs it, as PostgreSQL's EXPLAIN ANALYZE does."""
    words = [token.text.upper() for token in tokens[:40]]
    at = next((place for place, word in enumerate(words) if word in _PLANNED), 0)
    plain = not any(token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) for token in tokens[:at])
    said = " ".join(words[:at])
    if at and plain and _EXPLAINS[dialect].fullmatch(said):
        return tokens[at:], said
    if dialect is Dialect.POSTGRESQL and at > 3 and plain and (words[:2], words[at - 1]) == (["EXPLAIN", "("], ")"):
        options = " ".join(words[2 : at - 1]).split(" , ")
        if all(1 <= len(one.split()) <= 2 and set(one.split()) <= _OPTIONS for one in options):
            return tokens[at:], f"EXPLAIN ({', '.join(options)})"
    return tokens, ""


def unexplained(sql: str, dialect: Dialect) -> str:
    """The statement behind an EXPLAIN; any other as it is."""
    tokens = _split(_tokens(sql, dialect))[0]
    behind, head = _explain(tokens, dialect)
    return sql[behind[0].start :] if head else sql


def _refuse_run(tree: exp.Expr, head: str) -> None:
    """EXPLAIN runs no write."""
    if not isinstance(tree, exp.Query | exp.DML):
        raise Unsupported("EXPLAIN of anything but a query or a write isn't on the list of what GoEx runs.")
    if "ANALYZE" in head and tree.find(exp.DML):
        raise Unsupported(
            f"{head} of a statement that writes runs it, so it isn't on the list of what GoEx runs.",
            next_step="Leave ANALYZE out, or send the statement itself.",
        )


def _defaults(assignments: list[exp.Expr]) -> None:
    """`column = DEFAULT`, and `(column, …) = (DEFAULT, …)`, is a word, not a column of that name (which some dialects
    would then quote)."""
    for item in assignments:
        value: Any = item.args.get("expression")
        for one in list(value.expressions) if isinstance(value, exp.Tuple) else [value]:
            plain = isinstance(one, exp.Column) and not one.args.get("table") and isinstance(one.this, exp.Identifier)
            if plain and not one.this.args.get("quoted") and one.name.upper() == "DEFAULT":
                one.replace(exp.Var(this="DEFAULT"))


def _prefixes(tree: exp.Create) -> None:
    """The first characters of a column in MariaDB's CREATE INDEX, `name(10)`, aren't a call."""
    params = tree.this.args.get("params") if isinstance(tree.this, exp.Index) else None
    for part in (params.args.get("columns") or ()) if params is not None else ():
        call = part.this
        if isinstance(call, exp.Anonymous) and len(call.expressions) == 1:
            (length,) = call.expressions
            if isinstance(length, exp.Literal) and str(length.this).isdigit():
                name = call.this if isinstance(call.this, exp.Identifier) else exp.to_identifier(str(call.this))
                call.replace(exp.ColumnPrefix(this=exp.Column(this=name), expression=length))


def _replace(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], bool]:
    """REPLACE INTO is read as an INSERT."""
    if dialect is Dialect.POSTGRESQL or not tokens or tokens[0].text.upper() != "REPLACE":
        return tokens, False
    first = tokens[0]
    insert = Token(TokenType.INSERT, "INSERT", line=first.line, col=first.col, start=first.start, end=first.end)
    return [insert, *tokens[1:]], True


def _table_options(tokens: list[Token], dialect: Dialect) -> tuple[list[Token], str]:
    """SQLite's WITHOUT ROWID and STRICT behind a CREATE TABLE, which sqlglot doesn't read."""
    words = [token.text.upper() for token in tokens]
    if dialect is not Dialect.SQLITE or words[:1] != ["CREATE"] or "TABLE" not in words[:3] or ")" not in words:
        return tokens, ""
    at = len(words) - words[::-1].index(")")
    tail = " ".join(words[at:]).replace(" ,", ",")
    if tail in ("WITHOUT ROWID", "STRICT", "WITHOUT ROWID, STRICT", "STRICT, WITHOUT ROWID"):
        return tokens[:at], tail
    return tokens, ""


def _made(tree: exp.Expr, dialect: Dialect) -> str:
    if kept := tree.meta.get(UPKEEP):
        return upkeep.written(kept)
    made: Any = _text(tree, dialect)
    for how in (SET, INTO):
        if named := tree.meta.get(how):
            values = [_text(one, dialect) for one in tree.expressions] if how == SET else []
            made = variables.written(made, values, how, named)
    if word := tree.meta.get(OR):
        made = str(made).replace("UPDATE ", f"UPDATE {'OR ' if dialect is Dialect.SQLITE else ''}{word} ", 1)
    head, tail = tree.meta.get(HEAD), tree.meta.get(TAIL)
    return f"{head + ' ' if head else ''}{made}{' ' + tail if tail else ''}"


def _text(tree: exp.Expr, dialect: Dialect) -> str:
    made: Any = GRAMMARS[dialect].generate(
        tree, copy=True, comments=False, normalize_functions=False, unsupported_level=ErrorLevel.RAISE
    )
    return str(made)


def _otherwise() -> Unsupported:
    return Unsupported("The statement reads differently once it is made anew, so it doesn't run.", next_step=_PLAINER)


def _why(error: BaseException) -> str:
    """sqlglot's reason without its terminal colours and its quote of the text."""
    if isinstance(error, RecursionError):
        return "it is nested too deep."
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0].split(" but got <Token")[0].strip()
    return (text or type(error).__name__)[:200]
