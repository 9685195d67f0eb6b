"""Reading a TOML file strictly, with errors that say where.

A `Table` hands out each key once and of the wanted type; `done()` refuses what nobody took. Errors name the file,
the key and, where it can be found, the line.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from policies.errors import InvalidInput

MAX_FILE = 1_000_000  # characters

_T = TypeVar("_T")
_WORDS = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


class ManifestError(InvalidInput):
    """A manifest says something that can't be meant. The message names the file and the key."""

    code = "manifest"


@dataclass(frozen=True, slots=True)
class File:
    """A manifest's name (for messages) and text."""

    name: str
    text: str

    def line(self, path: tuple[str, ...]) -> int:
        """The line (1-based) where the key at `path` is written, or its table's; 0 when neither is found."""
        best, depth = 0, 0
        header: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            if stripped.startswith("["):
                header = _header(stripped)
                if path[: len(header)] == header and len(header) > depth:
                    best, depth = number, len(header)
            elif stripped and path[: len(header)] == header and len(header) < len(path):
                key = _key(stripped)
                if key and path[len(header) : len(header) + len(key)] == key and len(header) + len(key) > depth:
                    best, depth = number, len(header) + len(key)
        return best


def _header(line: str) -> tuple[str, ...]:
    try:
        return _path(tomllib.loads(line))
    except tomllib.TOMLDecodeError:
        return ("\0",)  # the inside of a multi-line list: nothing below it is a key of ours


def _key(line: str) -> tuple[str, ...]:
    if "=" not in line:
        return ()
    try:
        return _path(tomllib.loads(line.split("=", 1)[0] + "= 0"))
    except tomllib.TOMLDecodeError:
        return ()


def _path(nested: Any) -> tuple[str, ...]:
    found: list[str] = []
    while True:
        if isinstance(nested, list):
            nested = nested[-1] if nested else None
        if not isinstance(nested, dict) or not nested:
            return tuple(found)
        key, nested = next(iter(nested.items()))
        found.append(key)


class Table:
    """One table of a manifest; `path` is where it stands in the file."""

    def __init__(self, file: File, data: dict[str, Any], path: tuple[str, ...] = ()) -> None:
        self.file = file
        self.path = path
        self._left = dict(data)

    @classmethod
    def read(cls, file: File) -> Table:
        """Parse the whole file. Raises ManifestError for what isn't TOML, or is too long."""
        if len(file.text) > MAX_FILE:
            raise ManifestError(f"{file.name}: longer than {MAX_FILE} characters.")
        try:
            return cls(file, tomllib.loads(file.text))
        except tomllib.TOMLDecodeError as error:
            raise ManifestError(f"{file.name}: not TOML: {error}.") from error
        except RecursionError as error:
            raise ManifestError(f"{file.name}: nested too deeply.") from error

    def fail(self, why: str, *keys: str) -> NoReturn:
        """Raise ManifestError about the key at `keys` below this table (or the table itself)."""
        path = (*self.path, *keys)
        line = self.file.line(path)
        place = f"{self.file.name}:{line}" if line else self.file.name
        where = ".".join(part if part.replace("_", "").isalnum() else f'"{part}"' for part in path)
        raise ManifestError(f"{place}: {where + ': ' if where else ''}{why}.")

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str, kind: type[_T], default: _T | None = None) -> _T:
        """The value of `key`, which must be of `kind`. Without a default the key must be there."""
        if key not in self._left:
            if default is None:
                self.fail(f"{key!r} is missing")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fail(f"must be {_WORDS[kind]}", key)
        return value

    def any(self, key: str) -> Any:
        """The value of `key`, whatever it is."""
        return self._left.pop(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; () when it isn't there."""
        values = self.take(key, list, [])
        if not all(isinstance(value, str) and value for value in values):
            self.fail("must be a list of texts", key)
        return tuple(values)

    def table(self, key: str) -> Table:
        """The table below `key`; empty when it isn't there."""
        return Table(self.file, self.take(key, dict, {}), (*self.path, key))

    def tables(self) -> list[tuple[str, Table]]:
        """Every key that is left, each of which must be a table."""
        return [(key, self.table(key)) for key in list(self._left)]

    def rest(self) -> dict[str, Any]:
        """Everything that is left, as it is."""
        left, self._left = self._left, {}
        return left

    def done(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._left:
            self.fail(f"{key!r} isn't a key that is known here", key)
