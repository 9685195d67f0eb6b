"""What the server and its driver say, as GoEx's errors. No value of a row is in them: details and triggers' own texts
are left out, names of constraints, tables and columns stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported

_UNTOUCHED = "Nothing was touched."


class Lost(Unavailable):
    """The connection broke. Whoever was committing doesn't know what became of it."""


class Again(Conflict):
    """Somebody else's change came in between; the same transaction may do the next time."""


class Locked(Conflict):
    """Somebody holds what was needed for longer than was waited."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn what the libraries raise inside into GoEx's errors."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise translate(error.orig) from None
        raise Unavailable("The database's driver failed.") from None
    except SQLAlchemyError:
        raise Unavailable("The database's driver failed.") from None
    except psycopg.Error as error:
        raise translate(error) from None


def translate(error: psycopg.Error) -> GoexError:
    """One error of the driver. `from None` where it is raised: its own text may hold rows."""
    code, diag = error.sqlstate or "", error.diag
    said = (diag.message_primary or "").rstrip(".")
    where = _where(error)
    # PANIC and FATAL end the server, or its connection, wherever that was: also in the middle of a commit.
    ended = diag.severity_nonlocalized in ("FATAL", "PANIC")
    if ended or not code or code[:2] == "08" or code in ("57P01", "57P02", "57P03", "25P03", "57P05"):
        return Lost("The connection to the database broke.", next_step="See whether the server runs, and try again.")
    if code == "55P03":
        return Locked(f"Somebody else holds what this would change. {_UNTOUCHED}", next_step="Try again later.")
    if code in ("40001", "40P01", "40003"):
        return Again(f"Somebody else changed the same rows meanwhile. {_UNTOUCHED}", next_step="Try again.")
    if code == "57014":
        return Conflict(f"It was stopped, or took longer than it may. {_UNTOUCHED}", next_step="Change fewer rows.")
    if code == "42501":
        return Unsupported(f"GoEx's user may not do that: {said}.", next_step="GRANT it what this needs.")
    if code[:2] == "42" or code in ("0A000", "2BP01", "3F000", "0LP01"):
        kind = Unsupported if code[:2] in ("0A", "2B") else InvalidInput
        return kind(f"The server can't run this: {said}.")
    if code[:2] == "23":
        kinds = {"23505": "a unique", "23503": "a foreign key", "23502": "a NOT NULL", "23514": "a CHECK"}
        return Conflict(f"It breaks {kinds.get(code, 'a')} constraint{where}. {_UNTOUCHED}")
    if code[:2] == "22":
        return Conflict(f"A value doesn't fit its type, or can't be computed{where}. {_UNTOUCHED}")
    if code[:2] == "P0" or code[:2] in ("09", "27", "38", "39"):
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
