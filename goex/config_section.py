"""One table of config.toml while it is read: each value with its kind and bounds, and nothing that is unknown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from policies.errors import InvalidInput


class BadConfig(InvalidInput):
    """config.toml says something that GoEx doesn't understand."""

    code = "config"


class Section:
    """One table: remembers which keys were asked for, so that the rest is unknown."""

    def __init__(self, table: Any, name: str, where: str) -> None:
        self._name, self._where = name, where
        if not isinstance(table, Mapping):
            raise BadConfig(f"[{name}] in {where} must be a table.", next_step=f"Write it as [{name}].")
        self._table = table
        self._known: list[str] = []

    def section(self, key: str) -> Section:
        self._known.append(key)
        return Section(self._table.get(key, {}), key, self._where)

    def tables(self, key: str) -> Iterable[tuple[str, Section]]:
        """The tables within a table, by their names."""
        self._known.append(key)
        within = self._table.get(key, {})
        if not isinstance(within, Mapping):
            raise self.wrong(key, "must be a table of tables")
        for name, table in within.items():
            yield name, Section(table, f"{self._name}.{key}.{name}", self._where)

    def sections(self, key: str) -> Iterable[Section]:
        for item in self.take(key, list, []):
            yield Section(item, key, self._where)

    def take(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        self._known.append(key)
        value = self._table.get(key, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            names = {str: "text", int: "a whole number", float: "a number", list: "a list", bool: "true or false"}
            raise self.wrong(key, "must be " + " or ".join(names.get(one, one.__name__) for one in kinds))
        return value

    def text(self, key: str) -> str:
        return str(self.take(key, str, ""))

    def either(self, key: str, default: str, names: tuple[str, ...]) -> str | bool:
        """One of the names, or true or false."""
        self._known.append(key)
        value = self._table.get(key, default)
        if isinstance(value, bool) or value in names:
            return cast(str | bool, value)
        raise self.wrong(key, f"must be true, false or one of: {', '.join(names)}")

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts, like a command and its options."""
        value = self.take(key, list, [])
        if not all(isinstance(word, str) and word and "\0" not in word for word in value):
            raise self.wrong(key, 'must be a list of words, like ["xterm", "-e"]')
        return tuple(value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) and value for value in values):
            raise self.wrong(key, "must be a list of texts")
        return tuple(values)

    def integer(self, key: str, default: int, least: int, most: int) -> int:
        value = int(self.take(key, int, default))
        if not least <= value <= most:
            raise self.wrong(key, f"must be between {least} and {most}")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        value = float(self.take(key, (int, float), default))
        if not least <= value <= most:
            raise self.wrong(key, f"must be between {least:g} and {most:g}")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        return bool(self.take(key, bool, default))

    def has(self, key: str) -> bool:
        return key in self._table

    def choice(self, key: str, default: str, among: tuple[str, ...]) -> str:
        value = str(self.take(key, str, default))
        if value not in among:
            raise self.wrong(key, "must be one of " + ", ".join(among))
        return value

    def size(self, key: str, default: int, least: int) -> int:
        """Bytes: a whole number, or text like "256 MiB"."""
        value = self.take(key, (int, str), default)
        if isinstance(value, str):
            match = re.fullmatch(r"(\d{1,12}) ?(KiB|MiB|GiB)", value)
            if match is None:
                raise self.wrong(key, 'must be bytes, or a size like "256 MiB"')
            value = int(match[1]) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[match[2]]
        if not least <= value <= 2**50:
            raise self.wrong(key, f"must be at least {least} bytes")
        return int(value)

    def wrong(self, key: str, says: str) -> BadConfig:
        return BadConfig(f"{self._spell(key)} in {self._where} {says}.", next_step="Change it, then try again.")

    def refuse_unknown(self) -> None:
        for key in self._table:
            if key not in self._known:
                close = difflib.get_close_matches(key, self._known, n=2)
                raise BadConfig(
                    f"{self._spell(key)} in {self._where} isn't a setting of GoEx.",
                    next_step=f"Did you mean {' or '.join(close)}?"
                    if close
                    else f"These are: {', '.join(self._known)}.",
                )

    def _spell(self, key: str) -> str:
        return f"[{self._name}] {key}" if self._name else key
