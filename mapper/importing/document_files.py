"""Reading documents of others: files first, then their JSON, with the line of whatever is wrong.

Rules: only regular files, of a size that fits the memory, opened so that a pipe or a device can't hold us; UTF-8 only;
a key twice, a nesting without end and a number that is none are errors with a line.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapper.importing.import_report import BadPart, Problem
from policies.errors import InvalidInput
from policies.jsonvalue import parse

MAX_DOCUMENT = 64_000_000  # bytes; Microsoft Graph's beta has 47 million
MAX_PROBLEMS = 40  # of one document, after which they are only counted

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|\n|[^\s"{}\[\]:,]+')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_LINK = re.compile(r"\[([^\]\[]{1,200})\]\([^()\s]{1,500}\)")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name (for messages), bytes and text. Of a folder `files` are the texts by their names, of an archive
    `packed` is what it is; their own text is empty."""

    name: str
    text: str
    sha256: str
    files: Mapping[str, str] | None = None
    packed: bytes = b""

    @staticmethod
    def data(path: Path, *, follow: bool = False, within: int | None = None) -> bytes:
        """Read a file's bytes; `within` is a descriptor of the folder that `path` starts at. Raises as `read`."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
        try:
            with os.fdopen(os.open(path, flags, dir_fd=within), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise BadPart("isn't a regular file")
                if found.st_size > MAX_DOCUMENT:
                    raise BadPart(f"is {found.st_size:,} bytes long; at most {MAX_DOCUMENT:,} are read")
                data = file.read(MAX_DOCUMENT + 1)
        except OSError as error:
            if within is None and path.is_symlink():
                raise BadPart("is a link, and only regular files are read") from error
            raise BadPart(f"can't be read: {error.strerror}") from error
        if len(data) > MAX_DOCUMENT:
            raise BadPart(f"is longer than {MAX_DOCUMENT:,} bytes")
        return data

    @classmethod
    def read(cls, path: Path, *, follow: bool = False) -> Source:
        """Read a file. Raises BadPart for what isn't a regular file of text. `follow`: a link is taken, too."""
        data = cls.data(path, follow=follow)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise BadPart(f"isn't UTF-8 text: byte {error.start} on line {line}") from error
        return cls(path.name, text, hashlib.sha256(data).hexdigest())

    def json(self) -> dict[str, Any]:
        """The file's JSON object. Raises Broken, with the line."""
        try:
            value = parse(self.text, limit=MAX_DOCUMENT, what="it")
        except InvalidInput as error:
            cause = error.__cause__
            line = cause.lineno if isinstance(cause, json.JSONDecodeError) else 0
            raise Broken(error.message.rstrip("."), line) from error
        if not isinstance(value, dict):
            raise Broken("isn't a JSON object", 1)
        return value

    def problem(self, bad: BadPart) -> Problem:
        """The problem that a part of this file is, with its line."""
        line = bad.line if isinstance(bad, Broken) else line_of(self.text, bad.keys)
        return Problem(file=self.name, line=line, where=".".join(bad.keys), what=bad.what)


class Broken(BadPart):
    """The text itself can't be read, from this line on."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def line_of(text: str, keys: tuple[str, ...]) -> int:
    """The line (1-based) of the key at `keys` in a JSON text, or of the longest beginning that is there; 0 for none."""
    best, depth, line = 0, 0, 1
    path: list[str | int] = []
    key: str | None = None
    pending = ""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece == ":":
            key = pending
            try:
                path[-1] = json.loads(key)
            except (ValueError, IndexError):
                return best
            if len(path) > depth and [str(part) for part in path] == list(keys[: len(path)]):
                best, depth = line, len(path)
                if depth == len(keys):
                    return best
        elif piece in "{[":
            path.append(0 if piece == "[" else "")
        elif piece in "}]":
            if path:
                path.pop()
        elif piece == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        else:
            pending = piece
    return best


def plain(value: Any, most: int) -> str:
    """A description as one line of at most `most` characters, links as their words; "" for what isn't text."""
    if not isinstance(value, str):
        return ""
    text = " ".join(_CONTROL.sub(" ", _LINK.sub(r"\1", value[: most * 4 + 2000])).split())
    if len(text) <= most:
        return text
    cut = text[:most]
    end = max(cut.rfind(". "), cut.rfind("; "))
    return cut[: end + 1] if end > most // 3 else cut[: cut.rfind(" ") if " " in cut else most].rstrip(" ,") + "…"
