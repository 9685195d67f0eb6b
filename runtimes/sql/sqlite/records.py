"""What the records of an action hold: a note of how far it got, and its image.

`phase` of the note is what was committed last: "done", "undo", "redo", "committed", or "" for nothing yet. `begun` is
there while a COMMIT is under way: the phase that it leads to, and the mark of its transaction, if it has one. `kind`
says what the image is: "rows", "pages" of the file, or "whole", the file before and after.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from policies.jsonvalue import JsonObject
from runtimes.base import Records
from runtimes.sql.records import ran_from_json, read_image, read_state
from runtimes.sql.sqlite import pages, restore, wholes
from runtimes.sql.sqlite.commit_mark import Mark
from runtimes.sql.sqlite.pages import Pages
from runtimes.sql.sqlite.restore import Change
from runtimes.sql.sqlite.schema import Shape

IMAGE = "rows"


def noted(records: Records) -> JsonObject | None:
    """Return the note, or None where nothing was recorded. Raises Conflict for one that isn't as it was written."""
    return read_state(records, _checked)


def _checked(note: Any) -> JsonObject:
    if note["kind"] not in ("rows", "pages", "whole") or not isinstance(note["phase"], str):
        raise KeyError("kind")
    ran_from_json(note["ran"])
    commit_under_way(note)
    return note  # type: ignore[no-any-return]


def committing(note: JsonObject, phase: str, mark: Mark | None) -> JsonObject:
    """The note while a COMMIT is under way."""
    return {**note, "begun": {"phase": phase, "mark": None if mark is None else mark.to_json()}}


def commit_under_way(note: JsonObject) -> tuple[str, Mark | None] | None:
    """The phase that a COMMIT leads to, and its mark; None where none is under way."""
    found: Any = note.get("begun")
    return None if found is None else (str(found["phase"]), Mark.from_json(found["mark"]) if found["mark"] else None)


def ended(note: JsonObject, phase: str) -> JsonObject:
    """The note once that is known."""
    return {**{name: value for name, value in note.items() if name != "begun"}, "phase": phase}


def image(records: Records, note: JsonObject) -> tuple[dict[str, Shape], list[Change]] | Pages:
    """The rows that an action changed, or the pages where rows can't be told."""
    kept = read_image(records, IMAGE)
    if note["kind"] == "rows":
        return restore.decode(kept)
    if note["kind"] == "pages":
        return pages.decode(kept)
    before, after = wholes.sides(kept)
    with suppress(UnicodeDecodeError):
        return wholes.changes(before, after, [str(name) for name in note["tables"]])
    return pages.difference(before, after)
