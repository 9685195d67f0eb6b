"""Errors and values of SQLite in words: nothing that the data caused is quoted."""

from __future__ import annotations

import math

import apsw

from policies.errors import Conflict, ExitStatus, GoexError, InvalidInput, Unavailable, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.sql.contract import FOREIGN_KEY, Doubtful

Value = None | int | float | str | bytes
Row = tuple[Value, ...]

_LONG = 200  # characters of a value that a person sees


class NoDatabase(Unavailable):
    """The file isn't a database at all, which waiting doesn't mend: another one was named, or put in its place."""

    code = "invalid"
    exit_status = ExitStatus.USAGE


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def shown(value: Value) -> str | None:
    """A value as a person reads it."""
    if value is None:
        return None
    if isinstance(value, bytes):
        text = f"x'{value[:_LONG].hex()}'"
        return text if len(value) <= _LONG else f"{text}… ({len(value)} bytes)"
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text)} characters)"


def as_json(value: Value) -> JsonValue:
    """A value as JSON: blobs as x'…', what JSON has no number for as text."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def key_words(columns: tuple[str, ...], values: Row) -> str:
    """Which row: "id=5"."""
    return ", ".join(f"{column}={shown(value)}" for column, value in zip(columns, values, strict=True))


def locked(who: str = "") -> Conflict:
    """Somebody else writes to the file, or reads it without an end."""
    by = f"the action {who}" if who else "another program"
    return Conflict(
        f"The database is locked by {by}.",
        next_step=f"Wait until {by} has finished, then try again.",
        difference=(f"locked by {by}",),
    )


def refused_text(error: apsw.Error) -> GoexError:
    """Why a statement can't be prepared: it speaks of the statement and of the schema alone."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return locked()
    if isinstance(error, apsw.AuthError):
        return Unsupported("This statement does something that its text didn't say.", next_step="Write it plainly.")
    if isinstance(error, apsw.SQLError | apsw.TooBigError | apsw.RangeError):
        text = str(error).removeprefix("SQLError: ")
        return InvalidInput(f"SQLite doesn't take this: {text[:300]}.", next_step="Mend the statement.")
    return while_running(error)


def while_running(error: apsw.Error) -> GoexError:
    """What went wrong at the rows. It was rolled back."""
    code = int(getattr(error, "extendedresult", 0) or 0)
    if isinstance(error, apsw.ConstraintError):
        what = _CONSTRAINTS.get(code, "A rule of the table refused a row.")
        step = FOREIGN_KEY if code == apsw.SQLITE_CONSTRAINT_FOREIGNKEY else "Mend the rows, or ask for it otherwise."
        return Conflict(f"{what} Nothing was changed.", next_step=step)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return locked()
    if isinstance(error, apsw.ReadOnlyError):
        return Unsupported("The database can't be written to.", next_step="Check the file's mode.")
    if isinstance(error, apsw.FullError):
        return Unavailable("The disk is full. Nothing was changed.", next_step="Make room, then try again.")
    if isinstance(error, apsw.NotADBError):
        return NoDatabase("The file isn't a SQLite database.", next_step="Name a database's file.")
    if isinstance(error, apsw.CorruptError):
        return Unavailable(
            "The file isn't a whole SQLite database.",
            next_step='See what is wrong with it: sqlite3 FILE "PRAGMA integrity_check"',
        )
    if isinstance(error, apsw.IOError | apsw.CantOpenError):
        return Unavailable("The file can't be read or written.", next_step="Look at the disk, then try again.")
    if isinstance(error, apsw.AuthError):
        return Unsupported("This statement does something that its text didn't say.", next_step="Write it plainly.")
    if isinstance(error, apsw.SchemaChangeError):
        return Conflict("The tables were changed meanwhile.", next_step="Ask for the action again.")
    if isinstance(error, apsw.TooBigError):
        return Conflict("A value became too large. Nothing was changed.", next_step="Write smaller values.")
    # The text may hold a value (of RAISE, or of JSON), so only its kind is told.
    return Conflict(
        f"The statement failed at a row ({type(error).__name__}). Nothing was changed.", next_step="Mend the statement."
    )


def doubtful() -> Doubtful:
    """The commit failed in a way that leaves its end open."""
    return Doubtful("Whether the database took this isn't known yet.", next_step="goex show ID says what was found.")


_CONSTRAINTS = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: "A value that has to be unique is there already.",
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: "A key is there already.",
    apsw.SQLITE_CONSTRAINT_ROWID: "A key is there already.",
    apsw.SQLITE_CONSTRAINT_NOTNULL: "A column that has to have a value would have none.",
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: "A row would point to one that isn't there.",
    apsw.SQLITE_CONSTRAINT_CHECK: "A CHECK refused a row.",
    apsw.SQLITE_CONSTRAINT_TRIGGER: "A trigger refused a row.",
    apsw.SQLITE_CONSTRAINT_DATATYPE: "A value isn't of its column's type.",
}
