"""JSON values: the one canonical form, its limits, and the small path language.

The canonical form (sorted keys, no spaces, UTF-8, no NaN) is what digests, hashes and seals are taken over.
The path language is deliberately small: `$.a.b[0]`, nothing that searches, filters or computes, because paths
are used where an answer of an untrusted service fills a value (`policies.jsonpath` has the one that filters).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from policies.errors import InvalidInput

JsonValue: TypeAlias = Any  # None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]
JsonObject: TypeAlias = Mapping[str, JsonValue]

MAX_DEPTH = 64
MAX_BYTES = 1_000_000
MAX_PATH = 400  # characters

_LEAVES = frozenset({str, int, float, bool, type(None), bytes})
_FLATTER = f"At most {MAX_DEPTH} levels are read: make it flatter."
_PATHS = "Write it like $.channel.id or $.items[0]."

_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_\-]*)|\[(\d{1,6})\]|\[\"((?:[^\"\\]|\\.)*)\"\]")


class MissingValue(InvalidInput):
    """A path leads nowhere in the value that it was applied to."""

    code = "missing-value"


def canonical(value: JsonValue) -> bytes:
    """The canonical bytes of a JSON value: equal values give equal bytes.

    Raises InvalidInput for what JSON can't hold (NaN, infinities, bytes, lone surrogates, too deep).
    """
    check_depth(value)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
            "utf-8"
        )
    except UnicodeEncodeError as error:
        raise InvalidInput("A text of this value holds half a character.", next_step="Send valid Unicode.") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"This value isn't JSON: {error}.", next_step="Send plain JSON values.") from error


def parse(text: str | bytes, *, limit: int = MAX_BYTES, what: str = "This text") -> JsonValue:
    """Parse JSON strictly: size and depth bounded, duplicate keys and NaN refused."""
    if len(text) > limit:
        raise InvalidInput(f"{what} is {len(text)} long; at most {limit} is read.", next_step="Make it shorter.")
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except RecursionError as error:
        raise InvalidInput(f"{what} is nested too deeply.", next_step=_FLATTER) from error
    except ValueError as error:
        raise InvalidInput(f"{what} isn't JSON: {error}.", next_step="Write it as strict JSON.") from error
    check_depth(value)
    return value


def check_depth(value: JsonValue, limit: int = MAX_DEPTH) -> None:
    """Raise InvalidInput when containers are nested deeper than `limit` (without recursing)."""
    level: list[JsonValue] = [value]
    for _ in range(limit + 1):
        below: list[JsonValue] = []
        for item in level:
            if type(item) in _LEAVES:  # nearly all, and asking what else they are takes long
                continue
            if type(item) is dict or isinstance(item, Mapping):
                below.extend(item.values())
            elif type(item) is list or (isinstance(item, Sequence) and not isinstance(item, str | bytes)):
                below.extend(item)
        if not below:
            return
        level = below
    raise InvalidInput(f"This value is nested deeper than {limit} levels.", next_step=_FLATTER)


def find(value: JsonValue, path: str) -> JsonValue:
    """The value at `path` (`$`, `$.a.b`, `$.a[0]`, `$["odd key"]`). Raises MissingValue when it isn't there."""
    for step in steps(path):
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                raise MissingValue(f"There is nothing at {path}.")
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                raise MissingValue(f"There is nothing at {path}.")
            value = value[step]
    return value


def steps(path: str) -> tuple[str | int, ...]:
    """Parse a path into its steps. Raises InvalidInput when it isn't one."""
    if not path.startswith("$") or len(path) > MAX_PATH:
        raise InvalidInput(f"{path[:60]!r} isn't a path.", next_step=_PATHS)
    found: list[str | int] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise InvalidInput(f"{path[:60]!r} isn't a path.", next_step=_PATHS)
        name, index, quoted = match.groups()
        if index is not None:
            found.append(int(index))
        elif quoted is not None:
            found.append(json.loads(f'"{quoted}"'))
        else:
            found.append(name)
        position = match.end()
    return tuple(found)


def _no_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _no_constants(name: str) -> JsonValue:
    raise ValueError(f"{name} isn't JSON")
