"""Files with one JSON object a line, read as a stream.

Rules: a file is never held whole; a line is bounded and strict JSON (no key twice, no NaN); whatever is wrong is an
InvalidInput that names the file, the line and what to do. Empty lines are skipped, but they count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import parse

MAX_LINE = 2_000_000  # bytes

_SHAPE = "Give a file with one JSON object a line, in UTF-8."


@dataclass(frozen=True)
class Line:
    """One object, and where it stood (1-based)."""

    file: Path
    number: int
    value: dict[str, Any]

    def text(self, key: str) -> str:
        """A field that must be text. Raises InvalidInput."""
        found = self.value.get(key)
        if not isinstance(found, str):
            raise self.wrong(f"{key!r} must be there, as text.")
        return found

    def objects(self, key: str) -> list[dict[str, Any]]:
        """A field that must be a list of objects, not empty. Raises InvalidInput."""
        found = self.value.get(key)
        if not isinstance(found, list) or not found or not all(isinstance(item, dict) for item in found):
            raise self.wrong(f"{key!r} must be there, as a list of objects.")
        return found

    def wrong(self, what: str) -> InvalidInput:
        """The error to raise about this line."""
        return InvalidInput(
            f"{self.file}, line {self.number}: {what}",
            next_step="Correct that line, or see that the files aren't interchanged.",
        )


def read(file: Path) -> Iterator[Line]:
    """The objects of `file`, in order. Raises InvalidInput (at the line where it comes to it)."""
    seen = False
    try:
        with file.open("rb") as stream:
            number = 0
            while raw := stream.readline(MAX_LINE + 1):
                number += 1
                if raw.strip():
                    seen = True
                    yield _line(file, number, raw)
    except OSError as error:
        raise InvalidInput(f"{file} can't be read: {error.strerror}.", next_step="Check the path.") from error
    if not seen:
        raise InvalidInput(f"{file} is empty.", next_step=_SHAPE)


def _line(file: Path, number: int, raw: bytes) -> Line:
    what = f"{file}, line {number}"
    if len(raw) > MAX_LINE:
        raise InvalidInput(f"{what} is longer than {MAX_LINE} bytes.", next_step=_SHAPE)
    try:
        value = parse(raw.decode("utf-8-sig" if number == 1 else "utf-8"), limit=MAX_LINE, what=what)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} isn't UTF-8.", next_step=_SHAPE) from error
    except InvalidInput as error:
        message = error.message if error.message.startswith(what) else f"{what}: {error.message}"
        raise InvalidInput(message, next_step=_SHAPE) from error
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} isn't a JSON object.", next_step=_SHAPE)
    return Line(file, number, value)
