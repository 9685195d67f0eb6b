"""MongoDB's errors in GoEx's words: none of them quotes a value, an address or a credential."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from bson.errors import BSONError
from pymongo import errors

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.mongo.backend import CommitUnknown, Duplicate, Transient, Vanished

_TIMED_OUT = frozenset({50, 262, 24})
_NOT_ALLOWED = frozenset({13, 31})
_TRANSACTIONS = frozenset({20, 263, 10107})


@contextmanager
def told(*, transaction: bool, writes: bool = False) -> Iterator[None]:
    """Raise what pymongo raises as the errors of `runtimes.mongo.backend`."""
    try:
        yield
    except errors.PyMongoError as error:
        raise translated(error, transaction=transaction, writes=writes) from None
    except (BSONError, OverflowError) as error:
        raise InvalidInput("This can't be sent to the server: it isn't BSON, or too large.") from error


def translated(error: errors.PyMongoError, *, transaction: bool, writes: bool) -> GoexError:
    """One error of pymongo's."""
    if transaction and error.has_error_label("TransientTransactionError"):
        return Transient("The transaction was rolled back by the server.", next_step="Ask again in a moment.")
    if isinstance(error, errors.ServerSelectionTimeoutError):
        return nobody()
    if isinstance(error, errors.BulkWriteError) and (first := _first(error.details)):
        return _of_code(first)
    if isinstance(error, errors.BulkWriteError | errors.WTimeoutError | errors.WriteConcernError) and writes:
        return Vanished("The server didn't confirm a write in time.", next_step="GoEx looks what became of it.")
    if isinstance(error, errors.OperationFailure):
        return _of_code({"code": error.code, **(error.details or {})})
    if isinstance(error, errors.ConnectionFailure):
        if writes and not transaction:
            return Vanished("The connection was lost while a document was written.")
        return Unavailable("The connection to the server was lost.", next_step="Ask again.")
    if isinstance(error, errors.InvalidOperation):
        return InvalidInput("The server can't be asked this: it is too large, or no statement of MongoDB's.")
    return Unavailable(f"MongoDB's driver refused ({type(error).__name__}).", next_step="See the entry: goex db show")


def commit_failed(error: errors.PyMongoError) -> NoReturn:
    """Raise what a failed commit means: rolled back for certain, or not known."""
    if error.has_error_label("TransientTransactionError"):
        raise Transient("The transaction was rolled back by the server.") from None
    raise CommitUnknown("It isn't known whether the transaction was committed.") from None


def nobody() -> Unavailable:
    return Unavailable(
        "No server answers that may be written to and that the entry names.",
        next_step="Look whether it runs, and what the entry says: goex db show NAME",
    )


def _first(details: Any) -> Mapping[str, Any]:
    found = details.get("writeErrors") if isinstance(details, Mapping) else None
    return found[0] if found else {}


def _of_code(details: Mapping[str, Any]) -> GoexError:
    code = details.get("code")
    name = str(details.get("codeName") or code)[:60]
    if code in (11000, 11001):
        return Duplicate(_index(details))
    if code in _TIMED_OUT:
        return Conflict(
            "The server took too long, or somebody else holds the documents; nothing of it was done.",
            next_step="Ask again, or ask for fewer documents at a time.",
        )
    if code == 112:
        return Conflict("Somebody else is changing the same documents.", next_step="Ask again in a moment.")
    if code == 18:
        return Unavailable("The server doesn't take the user's name and password.", next_step="goex db add it again.")
    if code in _NOT_ALLOWED:
        return Unsupported(
            "The server doesn't allow this to GoEx's user.", next_step="Give it readWrite on this database alone."
        )
    if code == 121:
        return InvalidInput("The collection's own rules (its validator) refuse a document.")
    if code == 66:
        return InvalidInput("A document's _id can't be changed.", next_step="Insert a new one, and delete the old one.")
    if code in _TRANSACTIONS:
        return Unsupported(f"The server doesn't do this in a transaction ({name}).")
    return InvalidInput(f"The server refused it: {name}.", next_step="Look at the operation, and what it is about.")


def _index(details: Mapping[str, Any]) -> str:
    pattern = details.get("keyPattern")
    if isinstance(pattern, Mapping):
        return ", ".join(map(str, pattern))[:100]
    found = re.search(r"index: (\S{1,100})", str(details.get("errmsg", "")))
    return found[1] if found else "unique"
