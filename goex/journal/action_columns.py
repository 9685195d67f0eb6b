"""Whether a row of the table of actions can be what GoEx wrote, as far as the row itself tells.

Rules: that it is what was written only the chain says (`goex log --verify`). Here is refused, by name, what couldn't be
read as what its column holds: so whoever reads rows relies on their types, and an altered one is told as such.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from goex.journal.errors import JournalBroken
from goex.journal.states import State

_STATES = frozenset(State)
_NUMBERS = ("number", "risk")
_STAMPS = ("created", "updated")
_STAMP_LENGTH = len("2026-11-01T09:30:00.000000Z")
_Shape = Mapping[str, type | tuple[type, ...]]
_PROBLEM: _Shape = {"code": str, "message": str, "next_step": str, "exit_status": int, "details": list}
_OUTCOME: _Shape = {
    "ok": bool,
    "summary": str,
    "ended": str,
    "exit_code": (int, type(None)),
    "results": list,
    "stdout": str,
    "stderr": str,
    "cut": int,
    "changes": list,
    "changes_cut": int,
    "refused": list,
    "touched": bool,
    "unsure": bool,
}


def altered(id: str, column: str) -> JournalBroken:
    """The error for a row whose `column` isn't what GoEx wrote."""
    return JournalBroken(
        f"Action {id} isn't what was written: its {column} was altered.",
        next_step="See what else was: goex log --verify. Then put back the newest copy of the whole state folder.",
    )


def check(values: Mapping[str, Any], *, whole: bool) -> None:
    """Raise JournalBroken for a row, by its columns, that GoEx didn't write. `whole`: its outcome, which may be long,
    is read too."""
    for column, value in values.items():
        if not _fits(column, value, whole):
            raise altered(str(values["id"])[:60], column)


def _fits(column: str, value: Any, whole: bool) -> bool:
    if column in _NUMBERS:
        return type(value) is int and value >= 0
    if column == "detached":
        return value in (0, 1)
    if not isinstance(value, str):
        return False
    if column == "state":
        return value in _STATES
    if column in _STAMPS:
        return _is_stamp(value)
    if column == "problem":
        return not value or _holds(value, _PROBLEM, ("code", "message", "details"), closed=True)
    if column == "outcome" and whole:
        return not value or _holds(value, _OUTCOME, ("ok", "summary"))
    return True


def _is_stamp(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == _STAMP_LENGTH and text[10] == "T" and text[19] == "." and text[-1] == "Z"


def _holds(text: str, shape: _Shape, needed: tuple[str, ...], *, closed: bool = False) -> bool:
    """Whether a text is a JSON object whose fields are of these types, the `needed` ones there; `closed`: no others."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or any(name not in found for name in needed):
        return False
    if closed and not found.keys() <= shape.keys():
        return False
    for name, kind in shape.items():
        if name in found and not (
            isinstance(found[name], kind) and (kind is bool or not isinstance(found[name], bool))
        ):
            return False
    return all(isinstance(each, str) for name in ("details", "changes") for each in found.get(name, ()))
