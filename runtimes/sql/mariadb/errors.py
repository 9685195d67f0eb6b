"""Names as SQL, and the server's errors in words: nothing that the data caused is quoted."""

from __future__ import annotations

import datetime
import re

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.contract import Doubtful

LOST = frozenset({0, 1053, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055})
LOCKED = 1205
DEADLOCK = 1213
DUPLICATE = 1062
UNKNOWN_XID = 1397

# What the statement says wrongly, or may not do: their texts quote names, and no values.
_TEXTS = frozenset({1046, 1051, 1052, 1054, 1060, 1061, 1064, 1066, 1109, 1110, 1111, 1136, 1140, 1142, 1143, 1146,
                    1221,
                    1222, 1235, 1241, 1248, 1305, 1356, 1370, 1443, 1463, 1470, 1906, 4078})  # fmt: skip
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
    4025: "A CHECK refused a row.",
    1264: "A number is out of its column's range.",
    1406: "A value is too long for its column.",
    1265: "A value doesn't fit its column.",
    1292: "A value isn't of its column's type.",
    1366: "A value isn't of its column's type.",
    1365: "Something was divided by zero.",
    1242: "A subquery gave more than one row.",
    1644: "A trigger refused a row.",
    1690: "A number is out of range.",
}
_NOTHING = "Nothing was changed."


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


def translated(number: int, text: str) -> GoexError:
    """The error of a statement. What names no value is quoted."""
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
    if number in (1290, 1792, 1836):
        return Unsupported("The database can't be written to.", next_step="Choose another server.")
    if number in _DENIED:
        return Unsupported(
            f"GoEx's user may not do this: {_plain(text)}.", next_step="Grant it, or leave it to somebody who may."
        )
    if number in _TEXTS:
        return InvalidInput(f"MariaDB doesn't take this: {_plain(text)}.", next_step="Mend the statement.")
    if number in _ROWS:
        return Conflict(f"{_ROWS[number]} {_NOTHING}", next_step="Mend the statement, or the rows.")
    return Conflict(f"The server refused it (error {number}). {_NOTHING}", next_step="Mend the statement.")


def _plain(text: str) -> str:
    """The server's text, without the quote of the statement that a syntax error ends in."""
    return re.sub(r";? (check the manual|to use near).*", "", text, flags=re.DOTALL)[:300].rstrip(". ")


def cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def duration(value: datetime.timedelta) -> str:
    """A TIME as MariaDB writes it."""
    micro = abs(value) // datetime.timedelta(microseconds=1)
    sign = "-" if value < datetime.timedelta() else ""
    seconds, micro = divmod(micro, 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{micro:06}" if micro else text
