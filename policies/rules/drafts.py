"""The person's own files of rules, and how two sets of rules differ.

A file is a draft: reading it puts nothing in force.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from policies.display_text import escape
from policies.errors import InvalidInput
from policies.rules.source import MAX_BYTES, Policy

MAX_FILES = 200
_CHECK = "Check its name and its mode."


@dataclass(frozen=True, slots=True)
class Change:
    """One rule that is added, removed or changed. `before` and `after` are its text."""

    kind: str
    name: str
    effect: str
    before: str
    after: str


def read_folder(folder: Path) -> dict[str, str]:
    """The `*.cedar` files in a folder, name -> text; none where there is no folder. Raises InvalidInput."""
    try:
        names = sorted(one.name for one in folder.iterdir() if one.suffix == ".cedar" and not one.name.startswith("."))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidInput(f"{folder} can't be read: {error.strerror}.", next_step=_CHECK) from error
    if len(names) > MAX_FILES:
        raise InvalidInput(f"{folder} holds more than {MAX_FILES} files of rules.", next_step="Join some.")
    return {name: read_file(folder / name) for name in names}


def write_draft(path: Path, text: str) -> None:
    """Put a file of rules into the person's folder, in the place of what is there. Raises InvalidInput."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(fresh, "w", encoding="utf-8", opener=_only_ours) as file:
            file.write(text)
        fresh.replace(path)
    except OSError as error:
        raise InvalidInput(f"{escape(str(path))} can't be written: {error.strerror}.") from error


def _only_ours(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_file(path: Path) -> str:
    """One file of rules. Raises InvalidInput for what isn't UTF-8 text of at most 4 MB in an ordinary file."""
    shown = escape(str(path))
    try:
        # A pipe in the place of a file would keep whoever opens it waiting.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise InvalidInput(f"{shown} isn't a file.", next_step="Move it away.")
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{shown} can't be read: {error.strerror}.", next_step=_CHECK) from error
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{shown} is longer than {MAX_BYTES} bytes.", next_step="Make several files of it.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown} isn't UTF-8 text (byte {error.start}).", next_step="Save it as UTF-8.") from error


def changes(before: Iterable[Policy], after: Iterable[Policy]) -> tuple[Change, ...]:
    """What differs, by name; a rule without @id is known by its text, wherever it stands."""
    old, new = {_key(policy): policy for policy in before}, {_key(policy): policy for policy in after}
    return tuple(sorted(_changes(old, new), key=lambda change: (change.name, change.kind)))


def _changes(old: dict[str, Policy], new: dict[str, Policy]) -> Iterator[Change]:
    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None:
            if was.text != now.text:
                yield Change("changed", now.name, now.effect.value, was.text, now.text)
        elif now is not None:
            yield Change("added", now.name, now.effect.value, "", now.text)
        elif was is not None:
            yield Change("removed", was.name, was.effect.value, was.text, "")


def _key(policy: Policy) -> str:
    return f"id {policy.name}" if policy.named else f"text {policy.text}"
