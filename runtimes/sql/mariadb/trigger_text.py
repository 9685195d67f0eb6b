"""What a trigger's text does, as far as it can be seen: read without its strings and comments, in one pass.

Rules: what isn't known to stay in its row doesn't, and what isn't known to roll back doesn't. The server tells a text
of a string with a backslash otherwise than it was written, so that one is read in both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtimes.sql.checking.functions import FUNCTIONS, MARIADB_GEOMETRIES, MARIADB_SINCE
from runtimes.sql.checking.nodes import names
from runtimes.sql.contract import Dialect, Schema
from runtimes.sql.mariadb.errors import NAME, QUOTED

# Strings and comments; a name in quotes first, which may hold what looks like one. `1--2` is no comment. What begins
# one that doesn't end is kept with all that follows.
_BOUND = re.compile(
    r"(`(?:[^`]|``)*+`)|'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|--(?=[\x00-\x20]|\Z)[^\n]*|#[^\n]*|/\*.*?\*/"
    r"|([`'\"].*|/\*.*)",
    re.DOTALL,
)
# The same where a backslash is a character like another.
_UNESCAPED = re.compile(_BOUND.pattern.replace(r"'\\]|\\.|", "']|").replace(r"\"\\]|\\.|", r"\"]|"), re.DOTALL)
# A sequence's next value, which no rollback takes back; UNTIL is a function's name elsewhere.
_NEXT = re.compile(rf"(?i)(?<!{NAME})NEXT\s++VALUE(?!{NAME})")
_UNTIL = re.compile(rf"(?i);\s*+UNTIL(?!{NAME})")
_WORD = re.compile(rf"{QUOTED}|@?{NAME}++")
_CALL = re.compile(rf"({QUOTED}|{NAME}++)(\s*+\()?")  # each name, and what opens its brackets
_AWAY = re.compile(rf"\.\s*+(?:{QUOTED}|{NAME}++)\s*+\(")  # a call in another database
# Functions that are the server's only where the bracket follows at once; else a stored one of that name is called.
_TIGHT = names(
    """ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT JSON_ARRAYAGG
    JSON_OBJECTAGG MAX MID MIN NOW POSITION SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR SUBSTRING SUM
    SYSDATE SYSTEM_USER TRIM VARIANCE VAR_POP VAR_SAMP"""
)
_TARGET = re.compile(r"(?i)\binto\s++[`\w.$]++\s*+\(")  # a table and its columns, which is no call
_OTHER_QUOTES = ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE")  # modes in which a trigger's text reads otherwise
_QUALIFIED = re.compile(  # a number is no name
    rf"({QUOTED}|(?<!{NAME})(?!\d++(?!{NAME})){NAME}++)\s*+\.\s*+(?:{QUOTED}|{NAME}++)"
)
# What stands where a statement names the tables that it writes.
_TABLE = rf"(?:(?:{QUOTED}|{NAME}++)?\s*+\.\s*+)?(?:{QUOTED}|{NAME}++)"
_PART = re.compile(rf"`((?:[^`]|``){{1,64}})`|({NAME}++)")
_MORE = rf"(?:\s++(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|QUICK|IGNORE|INTO|FROM)(?!{NAME}))*+"
_WRITTEN = re.compile(
    rf"(?i)(?<![`.])(?<!{NAME})(?:(?:INSERT|REPLACE|DELETE)(?!{NAME}){_MORE}\s*+|(?:UPDATE(?!{NAME}){_MORE}"
    rf"|(?:STRAIGHT_)?JOIN(?!{NAME}))[\s(]*+)({_TABLE}(?:\s*+,\s*+{_TABLE})*)"
)
_NO_TABLE = re.compile(rf"(?i)(?<!{NAME})(?:KEY\s++UPDATE(?!{NAME})|FOR\s++UPDATE(?=\s*+(?:[;)]|\Z|NOWAIT|WAIT|SKIP)))")
# Names and marks; words that end the tables of a statement, and words between which and a comma none stand.
_TOKEN = re.compile(rf"`(?:[^`]|``)*+`|@?{NAME}++|[(),;.]")  # an alias in quotes may be long
_ENDS = names("WHERE GROUP HAVING ORDER LIMIT SET INTO")
_MARK = re.compile(r"(?i)(?<![\w$`@])SET(?![\w$`])|[();,]")
_ASSIGNS = re.compile(r"(?i)\s*(NEW\s*\.|(MESSAGE_TEXT|MYSQL_ERRNO)\s*=)")
_WRITES = {"INSERT", "UPDATE", "DELETE", "REPLACE", "TRUNCATE", "LOAD", "MERGE"}
# What acts beside the tables, or on what other connections see, where it is no column's name.
_ACTS = names(
    """OUTFILE DUMPFILE KILL SHUTDOWN PURGE BINLOG MASTER SLAVE SLAVES REPLICA REPLICAS CREATE ALTER DROP INSTALL
    UNINSTALL"""
)
_BARE = rf"(?<![.@])(?<!{NAME}){NAME}++"  # a word that isn't a part of another name
_STANDING, _ALONE = re.compile(_BARE), re.compile(rf"{_BARE}(?!\s*+\.)")
_OUT = {"CALL", "EXECUTE", "PREPARE", "GLOBAL", "SESSION", "HANDLER", "LOCK", "NEXTVAL", "SETVAL"}
_NOT_CALLS = names(
    """IF ELSEIF IN AND OR NOT XOR WHEN THEN ELSE VALUES WHERE ON BETWEEN RETURN WHILE SELECT EXISTS ANY ALL CASE
    VARCHAR CHAR DECIMAL INT DATETIME TIMESTAMP TIME BINARY VARBINARY SET FROM JOIN BY HAVING LIKE IS INTERVAL
    DIV MOD DEFAULT INTO AS CAST CONVERT EXTRACT"""
)
# The server's own too, on each version: they tell of the session. Undo would write another one's, so none of them stays
# in its row; held they do no harm.
_SESSION = names(
    """CONNECTION_ID CURRENT_ROLE CURRENT_USER FOUND_ROWS LAST_INSERT_ID ROW_COUNT SCHEMA SESSION_USER SYSTEM_USER USER
    VERSION"""
)
# With two arguments it is the server's own.
_POINT = re.compile(rf"(?i)(?<!{NAME})(?<![`.])point\([^(),]++,[^(),]++\)")


def stays_in_row(body: str, mode: str = "") -> bool:
    """Whether a trigger only looks, refuses, and sets columns of its own row. What isn't known doesn't. `mode`: the
    sql_mode that it was made in."""
    if not _plainly_read(body, mode) or "@@" in body:
        return False
    text = _unbound(body)
    words = [word.upper() for word in _WORD.findall(text)]
    if set(words) & (_WRITES | _OUT) or _acts(text):
        return False
    return all(_ASSIGNS.match(one) for one in _assignments(text)) and _known_calls(text)


def only_looks(body: str, mode: str, functions: frozenset[str]) -> bool:
    """Whether a function does nothing but compute, read and write tables, by itself and by these `functions`, in small
    letters."""
    text = _unbound(body)
    return (
        _plainly_read(body, mode)
        and "@@" not in body
        and not {word.upper() for word in _WORD.findall(text)} & _OUT
        and not _acts(text)
        and _known_calls(_TARGET.sub("into (", text), frozenset(name.upper() for name in functions) | _SESSION)
    )


def elsewhere(body: str, database: str, schema: Schema, *, unseen: bool = False) -> bool:
    """Whether a text may read a table of another database, which may be a view that calls anything. `unseen`: also one
    of this database that GoEx's user doesn't see."""
    text = _unbound(body)
    homes = {"new", "old", database.lower()} | {name.lower() for name in schema.tables}
    aliases = {word.lower() for word in _ALONE.findall(re.sub(QUOTED, _alias, text))}
    if not {one.strip("`").lower() for one in _QUALIFIED.findall(text)} <= homes | aliases:
        return True
    for _, names_ in read_tables(text):
        *of, name = (one.lower() for one in names_)
        if any(one != database.lower() for one in of) or (unseen and name not in homes | {"dual"}):
            return True
    return "{" in text  # {OJ …}


def read_tables(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What stands where a text without strings names the tables that it reads or updates: the word that begins these,
    and the parts of each name. A word that isn't known to end such a place doesn't."""
    tokens = [*_TOKEN.findall(_NO_TABLE.sub(" ", text)), ";"]
    levels = [("", False)]  # by brackets: the word that began tables there, and whether a SELECT stands there
    due = ""  # the word, where a table has to follow
    at = 0
    while at < len(tokens) - 1:
        mark, word = tokens[at], tokens[at].upper()
        before = (
            tokens[at - 1].upper() if at and tokens[at - 2 : at - 1] != ["."] else ""
        )  # a part of a name is no word
        part = before == "." and not (at > 1 and tokens[at - 2].isdigit())  # of a name, not behind `1.`
        began, selects = levels[-1]
        at += 1
        if mark == ";":
            levels, due = [("", False)], ""
        elif mark == "(":
            levels.append((due, False))  # joined tables or a query where a table is due
        elif mark == ")":
            due = ""
            if len(levels) > 1:
                levels.pop()
        elif mark == ",":
            due = began
        elif mark == "." or (part and not due):
            pass
        elif word == "SELECT":
            levels[-1], due = ("", True), ""
        elif word in ("FROM", "JOIN", "STRAIGHT_JOIN", "UPDATE"):
            inside = word == "FROM" and not selects and len(levels) > 1  # EXTRACT(YEAR FROM d)
            if before != "FOR" and not inside:  # FOR JOIN (k)
                levels[-1], due = (word, selects), word
        elif word in _ENDS and before != "FOR":  # FOR ORDER BY (k)
            levels[-1], due = ("", selects), ""
        elif due and word not in ("IGNORE", "LOW_PRIORITY"):
            name = [mark]
            while tokens[at] == "." and at + 1 < len(tokens) - 1:
                name.append(tokens[at + 1])
                at += 2
            if tokens[at] != "(" or len(name) > 1:  # JSON_TABLE( is none
                yield due, tuple(each[1:-1].replace("``", "`") if each[0] == "`" else each for each in name)
            due = ""


def _alias(quoted: re.Match[str]) -> str:
    """A name in quotes that may be an alias, without them."""
    return f" {quoted[0][1:-1]} " if re.fullmatch(rf"{NAME}++", quoted[0][1:-1]) else " "


def _acts(text: str) -> bool:
    return not _ACTS.isdisjoint(word.upper() for word in _STANDING.findall(re.sub(QUOTED, " ", text)))


def without_texts(view: str) -> str:
    """A view's definition without its strings, which the server writes with backslashes that escape."""
    return _BOUND.sub(lambda found: found[1] or found[2] or " ", view)


def _plainly_read(body: str, mode: str) -> bool:
    return "/*!" not in body and "/*M!" not in body and not any(word in mode for word in _OTHER_QUOTES)


def _unbound(body: str) -> str:
    """A trigger's text without its strings and comments. With a backslash it is there as it reads in both ways: the
    server tells a string of one backslash as such, not as it was written."""
    ways = (_BOUND, _UNESCAPED) if "\\" in body else (_BOUND,)
    text = " ; ".join(way.sub(lambda found: found[1] or found[2] or " ", body) for way in ways)
    return _UNTIL.sub("; ", _NEXT.sub("NEXTVAL", text))


def _assignments(text: str) -> Iterator[str]:
    """What stands between SET, its commas and its end: `SET NEW.a = 1, foreign_key_checks = 0` has two."""
    at, depth = -1, 0
    for mark in _MARK.finditer(text):
        one = mark[0].upper()
        if at >= 0 and (one in ("SET", ";") or (one == "," and depth <= 0)):
            yield text[at : mark.start()]
            at = mark.end() if one == "," else -1
        if one == "SET":
            at, depth = mark.end(), 0
        depth += (one == "(") - (one == ")")
    if at >= 0:
        yield text[at:]


def _known_calls(text: str, more: frozenset[str] = frozenset()) -> bool:
    """Whether all that it calls are the server's own functions, on each version."""
    text = _POINT.sub(" ", text)
    allowed = {name.upper() for name in FUNCTIONS[Dialect.MARIADB] - MARIADB_SINCE.keys() - MARIADB_GEOMETRIES.keys()}
    # Some other letters have capitals that are ASCII.
    calls = [(name.upper() if name.isascii() else name, opens) for name, opens in _CALL.findall(text) if opens]
    if _AWAY.search(text) or any(name in _TIGHT and opens != "(" for name, opens in calls):
        return False
    return all(name in allowed | _NOT_CALLS | more for name, _ in calls)


def _all_seen(schema: Schema, database: str, text: str) -> bool:
    """Whether GoEx's user sees each table that a trigger's text writes: what doesn't roll back may be another's."""
    seen = {name.lower() for name in schema.tables}
    for tables in _WRITTEN.findall(_NO_TABLE.sub(" ", text)):
        for found in re.finditer(_TABLE, tables):
            *of, name = (part[0] or part[1] for part in _PART.findall(found[0]))
            if name.replace("``", "`").lower() not in seen or any(one.lower() != database.lower() for one in of):
                return False
    # Behind an alias, too: UPDATE a x, b SET …
    return all(name[-1].lower() in seen for began, name in read_tables(text) if began in ("UPDATE", "JOIN"))


def named(body: str) -> frozenset[str]:
    """All names in a trigger's text, in small letters: among them each table that it reads or writes."""
    return frozenset(word.strip("`").replace("``", "`").lower() for word in _WORD.findall(_unbound(body)))


def rolls_back(body: str, mode: str, schema: Schema, database: str) -> bool:
    """Whether all that a trigger writes is of tables that GoEx's user sees and that roll back."""
    text, words = _unbound(body), named(body)
    others = {one.name.lower() for one in schema.tables.values() if str(one.facts["engine"]).lower() != "innodb"}
    homes = {"new", "old", database.lower()} | {one.lower() for one in schema.tables}
    return (
        _plainly_read(body, mode)
        and not {word.upper() for word in words} & _OUT
        and not _acts(text)
        and _known_calls(_TARGET.sub("into (", text), _SESSION)
        and {one.strip("`").lower() for one in _QUALIFIED.findall(text)} <= homes
        and not words & others
        and _all_seen(schema, database, text)
    )
