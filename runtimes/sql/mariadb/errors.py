"""Names as SQL, and the server's errors in words of our own.

A trigger's SIGNAL chooses the number and the text of an error, and may put rows into either: where one may have run,
all that is told is the same words. Elsewhere a number chooses the words, and one name of the statement's own is told.
"""

from __future__ import annotations

import datetime
import re

from sqlglot import exp

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import FOREIGN_KEY, Dialect, Doubtful

LOST = frozenset({0, 1053, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055})
LOCKED = 1205
DEADLOCK = 1213
DUPLICATE = 1062
UNKNOWN_XID = 1397
TRIGGERED = 0  # which number it had is told nobody: a trigger may have chosen it

# What the statement says wrongly, or may not do.
_WRONG = {
    1005: "the table can't be made so, mostly because a foreign key doesn't fit",
    1050: "there is such a table already",
    1046: "no database is chosen",
    1051: "there is no such table",
    1052: "a column could be one of several tables'",
    1054: "there is no such column",
    1055: "a column is neither grouped nor in a group function",
    1059: "a name is too long",
    1060: "two columns have one name",
    1061: "two keys have one name",
    1063: "a column of its type can't be like that",
    1064: "its syntax is wrong",
    1066: "two tables have one name",
    1067: "a column's default isn't of its type",
    1068: "it has two primary keys",
    1069: "it has too many keys",
    1070: "a key is of too many columns",
    1071: "a key is too long",
    1072: "a key is of a column that isn't there",
    1074: "a column is too long",
    1075: "its counter (AUTO_INCREMENT) is no key, or isn't the only one",
    1090: "a table can't lose all of its columns",
    1091: "there is no such column or key to drop",
    1101: "a column of its type can't have a default",
    1103: "a table can't have such a name",
    1109: "there is no such table in it",
    1110: "a column is given twice",
    1111: "a group function stands where none can",
    1118: "its rows would be too long",
    1136: "it gives more or fewer values than there are columns",
    1140: "it mixes columns and group functions without GROUP BY",
    1146: "there is no such table",
    1170: "a key of texts has no length",
    1171: "a column of its primary key may be NULL",
    1193: "there is no such variable",
    1215: "a foreign key doesn't fit the table that it points to",
    1221: "two of its clauses don't go together",
    1222: "the parts of a UNION have different numbers of columns",
    1235: "this server doesn't have that",
    1241: "it has another number of columns than is wanted there",
    1248: "a derived table has no name of its own",
    1253: "a collation isn't one of the character set",
    1273: "there is no such collation",
    1305: "there is no such function or procedure",
    1318: "a function or procedure is given more or fewer values than it takes",
    1327: "there is no such variable",
    1353: "a view names more or fewer columns than its SELECT gives",
    1356: "a view of it names what isn't there, or what its owner may not use",
    1425: "a number has more decimals than it may",
    1426: "a number has more digits than it may",
    1439: "a column is wider than it may be",
    1443: "a view of it is made of the table that it writes",
    1463: "HAVING names a column that isn't grouped",
    1470: "a name is too long",
    1582: "a function is given more or fewer values than it takes",
    1826: "there is a foreign key of that name already",
    1831: "there is such an index already",
    1846: "a table can't be altered like that",
    1901: "an expression stands where it isn't allowed",
    1906: "a column that is computed can't be given a value",
    4078: "its values are of types that don't go together",
}
# Of these a temporary table has as many as another: what the server says of a copy it says of the table.
OF_COLUMNS = frozenset(
    {1059, 1060, 1061, 1063, 1067, 1068, 1069, 1070, 1071, 1072, 1074, 1075, 1101, 1118, 1170, 1171, 1253, 1425, 1426}
    | {1439}
)
_DENIED = frozenset({1044, 1142, 1143, 1227, 1370})
_ROWS = {
    DUPLICATE: "A value that has to be unique is there already.",
    1586: "A value that has to be unique is there already.",
    1048: "A column that has to have a value would have none.",
    1364: "A column that has to have a value would have none.",
    1451: "Other rows still point to one of these rows.",
    1217: "Other rows still point to one of these rows.",
    1452: "A row would point to one that isn't there.",
    1216: "A row would point to one that isn't there.",
    1553: "A foreign key needs that index.",
    **dict.fromkeys((1828, 1829, 1830, 1832, 1833), "A foreign key needs that column."),
    1834: "A foreign key points to that table.",
    4025: "A CHECK refused a row.",
    1264: "A number is out of its column's range.",
    1406: "A value is too long for its column.",
    1265: "A value doesn't fit its column.",
    1292: "A value isn't of its column's type.",
    1366: "A value isn't of its column's type.",
    1365: "Something was divided by zero.",
    1242: "A subquery gave more than one row.",
    1690: "A number is out of range.",
}
_POINTS = frozenset({1451, 1217, 1452, 1216})
_NOTHING = "Nothing was changed."


class Unexplained(Conflict):
    """The server's error is none of those that there are words for."""


# A character of a name that stands in no quotes; and a name in quotes, none of which is longer.
NAME = r"[0-9A-Za-z$_\x80-\U0010ffff]"
QUOTED = r"`(?:[^`]|``){1,64}`"


def quoted(name: str) -> str:
    """A name as SQL."""
    return "`" + name.replace("`", "``") + "`"


def string(text: str) -> str:
    """A text as SQL, for sessions whose backslash escapes: used for names alone, never for values of rows."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def lost() -> Unavailable:
    return Unavailable("The connection to the database was lost.", next_step="Look whether it runs, then try again.")


def locked(who: tuple[str, ...] = ()) -> Conflict:
    """Somebody's transaction holds what this needs. `who` are actions of GoEx that may be the ones."""
    if not who:
        return Conflict(
            f"Rows or tables that this needs are locked by somebody else. {_NOTHING}",
            next_step="Wait until they have finished, then try again.",
        )
    names = ", ".join(who)
    return Conflict(
        f"Rows or tables that this needs are held by the action {names}. {_NOTHING}",
        next_step=f"goex commit {who[0]}, or goex undo {who[0]}",
        difference=tuple(f"held by the action {name}" for name in who),
    )


def doubtful() -> Doubtful:
    """The connection ended in a way that leaves the end of the transaction open."""
    return Doubtful("Whether the database took this isn't known yet.", next_step="goex show ID says what was found.")


def stopped() -> Conflict:
    return Conflict(f"It was stopped. {_NOTHING}", next_step="Ask for it again.")


def refused(who: tuple[str, ...] = ()) -> Conflict:
    """Whatever a statement that may fire triggers was answered. `who` are actions of GoEx that hold rows there."""
    return Conflict(
        f"It was refused by the server (possibly by a trigger). {_NOTHING}",
        next_step=f"It may wait for {', '.join(who)}: goex commit {who[0]}, or goex undo {who[0]}"
        if who
        else "Look at the triggers of its tables, and whether somebody else holds these rows; then try again.",
        difference=tuple(f"may be held by the action {name}" for name in who),
    )


def translated(number: int, text: str = "", statement: str = "") -> GoexError:
    """The error of a statement that fires no trigger."""
    if number in LOST:
        return lost()
    if number == LOCKED:
        return locked()
    if number == DEADLOCK:
        return Conflict(f"Another transaction was in the way. {_NOTHING}", next_step="Try again.")
    if number in (1969, 3024):
        return Conflict(f"It took too long. {_NOTHING}", next_step="Change fewer rows at a time.")
    if number == 1317:
        return stopped()
    if number == 1020:
        return Conflict(f"Rows were changed meanwhile. {_NOTHING}", next_step="Try again.")
    if number in (1114, 1021, 1030, 3, 28):
        return Unavailable(f"The server has no room, or its disk fails. {_NOTHING}", next_step="Look at its disk.")
    if number == 1792:
        return Unsupported(
            f"What this reads calls a function that would write. {_NOTHING}",
            next_step="Read the tables that it stands on.",
        )
    if number in (1290, 1836):
        return Unsupported("The database can't be written to.", next_step="Choose another server.")
    if number in _DENIED:
        return Unsupported(
            f"GoEx's user may not do this{_named(text, statement)}.",
            next_step="Grant it, or leave it to somebody who may.",
        )
    if number in _WRONG:
        return InvalidInput(
            f"MariaDB doesn't take this: {_WRONG[number]}{_named(text, statement)}.", next_step="Mend the statement."
        )
    if number in _ROWS:
        step = FOREIGN_KEY if number in _POINTS else "Mend the rows, or ask for it otherwise."
        return Conflict(f"{_ROWS[number]} {_NOTHING}", next_step=step)
    return Unexplained(f"The server refused it. {_NOTHING}", next_step="Mend the statement.")


def is_refusal(said: GoexError) -> bool:
    """Whether an error surely says that nothing was done: of one that has no words of its own that isn't known."""
    return not isinstance(said, Unavailable | Unexplained)


def _named(text: str, statement: str) -> str:
    """The first name in a text of the server's, where it is an identifier of the statement: ` (a)`."""
    try:
        nodes = [node for tree in read(statement, Dialect.MARIADB) for node in tree.walk()]
    except GoexError:
        return ""
    own = {node.name for node in nodes if isinstance(node, exp.Identifier | exp.Anonymous)} - {""}
    # Neither the user nor the clause where it stands.
    what = re.sub(r"'[^']*'@'[^']*'", "", text[:1000]).partition(" in '")[0]
    for said in re.findall(r"['`]([^'`]+)['`]|(?:FUNCTION|PROCEDURE) (\S+) does", what):
        dotted = "." + "".join(said).lower()
        if found := [name for name in own if dotted.endswith("." + name.lower())]:
            return f" ({max(found, key=len)})"
    return ""


def cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def duration(value: datetime.timedelta) -> str:
    """A TIME as MariaDB writes it."""
    micro = abs(value) // datetime.timedelta(microseconds=1)
    sign = "-" if value < datetime.timedelta() else ""
    seconds, micro = divmod(micro, 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{micro:06}" if micro else text
