"""What the server and its driver say, as GoEx's errors. No value of a row is in them: details and triggers' own texts
are left out, names of constraints, tables and columns stay. The server's own text is told only where it is about the
statement as it was written, which has a position then: while it runs, a cast or a function of the server's quotes what
it was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.contract import FOREIGN_KEY

_UNTOUCHED = "Nothing was touched."
_MEND = "Mend the rows, or ask for it otherwise."
# Where the server itself finds that a lock, a time or another transaction is in the way: RAISE stands elsewhere.
_WAITS = {"ProcessInterrupts", "DeadLockReport", "ExecUpdate", "ExecDelete", "ExecLockRows", "heap_lock_tuple"}
# These say who may not do what with which table, or name its policy.
_NAMES_ONLY = {"aclcheck_error", "aclcheck_error_col", "ExecWithCheckOptions"}
# What the server runs or reads by itself, and nothing around it: a foreign key, a text that is to be JSON. What a
# function or a trigger raises has that function first, and what one of their statements meets has it below.
_SERVED = re.compile(r'SQL statement "(?:UPDATE|DELETE FROM|SELECT 1 FROM) ONLY [^\n]*"|JSON data, line \d+: [^\n]*')
_CANNOT = {
    "0A000": "it doesn't do such a thing",
    "2BP01": "other things depend on it",
    "3F000": "there is no such schema",
    "42601": "the syntax of something is wrong",
    "42701": "there is such a column already",
    "42703": "there is no such column",
    "42704": "something that it names isn't there",
    "42710": "there is such a thing already",
    "42804": "its types don't go together",
    "42830": "a foreign key can't be like that",
    "42883": "there is no such function or operator",
    "42P01": "there is no such table",
    "42P07": "there is such a table or index already",
    "42P10": "there is no unique key of the columns that it names",
    "42P16": "a table can't be defined like that",
}


class Lost(Unavailable):
    """The connection broke. Whoever was committing doesn't know what became of it."""


class Again(Conflict):
    """Somebody else's change came in between; the same transaction may do the next time."""


class Misfit(Conflict):
    """A value that its type doesn't take, or that breaks a constraint."""


class Locked(Conflict):
    """Somebody holds what was needed for longer than was waited."""


@contextmanager
def translated(*, prepares: bool = False) -> Iterator[None]:
    """Turn what the libraries raise inside into GoEx's errors. `prepares`: inside, a statement is only read."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise translate(error.orig, prepares=prepares) from None
        raise Unavailable("The database's driver failed.") from None
    except SQLAlchemyError:
        raise Unavailable("The database's driver failed.") from None
    except psycopg.Error as error:
        raise translate(error, prepares=prepares) from None


def translate(error: psycopg.Error, *, prepares: bool = False) -> GoexError:
    """One error of the driver. `from None` where it is raised: its own text may hold rows."""
    code, diag = error.sqlstate or "", error.diag
    said = (diag.message_primary or "").rstrip(".")
    # A function or a trigger chooses code, text and names, and may put rows into them. It is in the context.
    own = not diag.context or diag.context.startswith("COPY ")
    served = _SERVED.fullmatch(diag.context or "") is not None
    where = _where(error) if own else ""
    # PANIC and FATAL end the server, or its connection, wherever that was: also in the middle of a commit.
    ended = diag.severity_nonlocalized in ("FATAL", "PANIC")
    if ended or not code or (own and (code[:2] == "08" or code in ("57P01", "57P02", "57P03", "25P03", "57P05"))):
        return Lost("The connection to the database broke.", next_step="See whether the server runs, and try again.")
    if not own and not served and diag.source_function not in _WAITS:
        return Conflict(f"It was refused by the server (possibly by a trigger or a function). {_UNTOUCHED}")
    if code == "55P03":
        return Locked(f"Somebody else holds what this would change. {_UNTOUCHED}", next_step="Try again later.")
    if code in ("40001", "40P01", "40003"):
        return Again(f"Somebody else changed the same rows meanwhile. {_UNTOUCHED}", next_step="Try again.")
    if code == "57014":
        return Conflict(f"It was stopped, or took longer than it may. {_UNTOUCHED}", next_step="Change fewer rows.")
    written = prepares or diag.statement_position is not None
    if code == "42501" and own:
        what = f": {said}" if written or diag.source_function in _NAMES_ONLY else ""
        return Unsupported(f"GoEx's user may not do that{what}.", next_step="GRANT it what this needs.")
    if own and (code[:2] == "42" or code in ("0A000", "2BP01", "3F000", "0LP01")):
        kind = Unsupported if code[:2] in ("0A", "2B") else InvalidInput
        return kind(f"The server can't run this: {said if written else _CANNOT.get(code, f'it refuses it ({code})')}.")
    if code == "23514" and not diag.constraint_name and diag.table_name:  # a function raises it without a table
        step = "Make a partition for it, or mend the row."
        return Conflict(f"One of its rows fits no partition{where}. {_UNTOUCHED}", next_step=step)
    if code[:2] == "23":
        kinds = {"23505": "a unique", "23503": "a foreign key", "23502": "a NOT NULL", "23514": "a CHECK"}
        step = FOREIGN_KEY if code == "23503" else _MEND
        return Misfit(f"It breaks {kinds.get(code, 'a')} constraint{where}. {_UNTOUCHED}", next_step=step)
    if code[:2] == "22":
        said = f"A value doesn't fit its type, or can't be computed{where}. {_UNTOUCHED}"
        return Misfit(said, next_step=_MEND)
    if code[:2] in ("P0", "09", "27", "38", "39"):
        return Conflict(f"A trigger or a function of the database refused it{where}. {_UNTOUCHED}")
    if code[:2] == "44":
        return Conflict(f"It would leave its view's own rows{where}. {_UNTOUCHED}")
    if code[:2] == "53" or code[:2] in ("54", "58"):
        return Unavailable(f"The server has no room or no more connections for this ({code}). {_UNTOUCHED}")
    return Conflict(f"The server refused it ({code}){where}. {_UNTOUCHED}")


def _where(error: psycopg.Error) -> str:
    diag = error.diag
    names = [
        f"{kind} {name}"
        for kind, name in (
            ("constraint", diag.constraint_name),
            ("column", diag.column_name),
            ("table", diag.table_name),
        )
        if name
    ]
    return f" ({', '.join(names)})" if names else ""
