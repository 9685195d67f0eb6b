"""What the records of an action hold: a note of how far it got ("done", "undo", "redo", "committed"), and its image.

`kind` of the note says what the image is: "rows", "pages" of the file, or "whole", the file before and after.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from policies.jsonvalue import JsonObject
from runtimes.base import Records
from runtimes.sql.records import put_state, ran_from_json, read_image, read_state
from runtimes.sql.sqlite import pages, restore, wholes
from runtimes.sql.sqlite.pages import Pages
from runtimes.sql.sqlite.restore import Change
from runtimes.sql.sqlite.schema import Shape

IMAGE = "rows"


def put_note(records: Records, facts: JsonObject) -> None:
    put_state(records, facts)


def noted(records: Records) -> JsonObject | None:
    """Return the note, or None where nothing was recorded. Raises Conflict for one that isn't as it was written."""
    return read_state(records, _checked)


def _checked(note: Any) -> JsonObject:
    if note["kind"] not in ("rows", "pages", "whole") or not isinstance(note["phase"], str):
        raise KeyError("kind")
    ran_from_json(note["ran"])
    return note  # type: ignore[no-any-return]


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
