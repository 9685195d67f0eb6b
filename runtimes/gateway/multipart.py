"""Bodies of multipart/form-data (RFC 7578), read strictly and written anew. Pure.

Refused is what two parsers could split in two ways: a boundary that stands anywhere but at the beginning of its line,
lines that end otherwise than in CR LF, headers other than the few of a part, a name or parameter twice, an encoded
name, anything before the first or after the last part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from policies.errors import GoexError
from policies.jsonvalue import parse

MAX_PART_HEAD = 4096
MAX_PARTS = 1000
MAX_FIRST_PART = 2**20

_BOUNDARY = re.compile(r"""multipart/form-data\s*;\s*boundary=(?:"([^"\\]+)"|([^\s;"]+))\s*""", re.IGNORECASE)
_RELATED = re.compile(
    r"""multipart/related(?:\s*;\s*type=(?:"[\w./+-]{1,100}"|[\w./+-]{1,100}))?\s*;\s*boundary=(?:"([^"\\]+)"|([^\s;"]+))"""
    r"""(?:\s*;\s*type=(?:"[\w./+-]{1,100}"|[\w./+-]{1,100}))?\s*""",
    re.IGNORECASE,
)
_CHARS = re.compile(r"[A-Za-z0-9'()+_,\-./:=?]{1,70}")
_DISPOSITION = re.compile(
    r'form-data; ?name="([^"\\\x00-\x1f%]{1,256})"(?:; ?filename="([^"\\\x00-\x1f]{0,512})")?'
    r"(; ?filename\*=(?:UTF-8|utf-8)''[A-Za-z0-9!#$&+.^_`|~%\-]{0,1000})?"
)
_TYPE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,200}")
_OTHER_CHARSET = re.compile(r"""charset(?!\s*=\s*(?:"utf-8"|utf-8)\s*(?:;(?!.*charset)|\Z))""", re.IGNORECASE)
_START, _HEAD, _DATA, _END = range(4)


class BadParts(GoexError):
    """The body isn't one that can be split in exactly one way."""

    code = "multipart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field or file. `data` is b"" where the body is streamed."""

    name: str
    file: bool
    filename: str = ""
    type: str = ""
    data: bytes = b""

    def text(self) -> str:
        """Of a field. Raises BadParts where it isn't UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadParts("a field that isn't UTF-8") from error


def boundary_of(content_type: str) -> bytes:
    """The boundary that a content-type names, and nothing beside it. Raises BadParts."""
    match = _BOUNDARY.fullmatch(content_type.strip())
    boundary = (match[1] or match[2]) if match else ""
    if not _CHARS.fullmatch(boundary):
        raise BadParts("the content-type of a multipart body names one boundary and nothing else")
    return boundary.encode("ascii")


class PartReader:
    """Splits a body that comes in pieces. `begun` is told of each part before its data; `ended` of its data."""

    def __init__(
        self, boundary: bytes, begun: Callable[[Part], None], ended: Callable[[bytes], None] | None = None
    ) -> None:
        self._mark = b"--" + boundary
        self._begun = begun
        self._ended = ended
        self._buffer = b""
        self._state = _START
        self._count = 0
        self._kept: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the next piece. Raises BadParts."""
        self._buffer += data
        while self._step():
            pass

    def close(self) -> None:
        """The body has ended. Raises BadParts where it ended early."""
        if self._state != _END:
            raise BadParts("a multipart body without its end")

    def _step(self) -> bool:
        if self._state == _END:
            if self._buffer not in (b"", b"\r", b"\r\n"):
                raise BadParts("something after the last part")
            return False
        if self._state == _HEAD:
            return self._head()
        return self._border()

    def _border(self) -> bool:
        """At the next boundary: the data before it is over."""
        at = self._buffer.find(self._mark)
        room = len(self._mark) + 4
        if at < 0:
            if self._state == _START and len(self._buffer) >= len(self._mark):
                raise BadParts("something before the first part")
            self._keep(len(self._buffer) - room)
            return False
        after = at + len(self._mark)
        if len(self._buffer) < after + 2:
            return False
        before = self._buffer[max(0, at - 2) : at]
        if self._state == _START and at != 0:
            raise BadParts("something before the first part")
        if self._state == _DATA and before != b"\r\n":
            raise BadParts("the boundary stands within a part")
        tail = self._buffer[after : after + 2]
        if tail not in (b"\r\n", b"--"):
            raise BadParts("the boundary isn't followed by a line's end")
        if self._state == _DATA:
            self._kept.append(self._buffer[: at - 2])
            if self._ended is not None:
                self._ended(b"".join(self._kept))
            self._kept.clear()
        self._buffer = self._buffer[after + 2 :]
        if tail == b"--" and self._state == _START:
            raise BadParts("a multipart body without a part")
        self._state = _END if tail == b"--" else _HEAD
        return True

    def _keep(self, count: int) -> None:
        """Let go of data that can't be part of a border."""
        if count > 0:
            if self._ended is not None:
                self._kept.append(self._buffer[:count])
            self._buffer = self._buffer[count:]

    def _head(self) -> bool:
        if self._buffer.startswith(b"\r\n"):
            raise BadParts("a part without a header line")
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_PART_HEAD:
                raise BadParts("the head of a part is too long")
            return False
        self._count += 1
        if end > MAX_PART_HEAD or self._count > MAX_PARTS:
            raise BadParts("too many parts, or a head that is too long")
        self._begun(_part(self._buffer[:end]))
        self._buffer = self._buffer[end + 4 :]
        self._state = _DATA
        return True


def read_parts(body: bytes, boundary: bytes) -> tuple[Part, ...]:
    """Every part of a whole body. Raises BadParts."""
    heads: list[Part] = []
    data: list[bytes] = []
    reader = PartReader(boundary, heads.append, data.append)
    reader.feed(body)
    reader.close()
    return tuple(
        Part(name=head.name, file=head.file, filename=head.filename, type=head.type, data=each)
        for head, each in zip(heads, data, strict=True)
    )


def write_parts(parts: tuple[Part, ...]) -> tuple[bytes, str]:
    """A body of these parts, and its content-type."""
    number = 0
    while any(f"goex-{number}".encode() in part.data for part in parts):
        number += 1
    mark = f"goex-{number}"
    out: list[bytes] = []
    for part in parts:
        name = f'form-data; name="{part.name}"' + (f'; filename="{part.filename}"' if part.file else "")
        kind = f"Content-Type: {part.type}\r\n" if part.type else ""
        out.append(f"--{mark}\r\nContent-Disposition: {name}\r\n{kind}\r\n".encode() + part.data + b"\r\n")
    return b"".join(out) + f"--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


def _part(head: bytes) -> Part:
    try:
        lines = head.decode("utf-8").split("\r\n")
    except UnicodeDecodeError as error:
        raise BadParts("the head of a part isn't UTF-8") from error
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name, value = name.lower(), value.strip(" ")
        if not colon or name in found or name not in ("content-disposition", "content-type", "content-length"):
            raise BadParts(f"a part with a header line {name[:40]!r}")
        found[name] = value
    match = _DISPOSITION.fullmatch(found.get("content-disposition", ""))
    if match is None:
        raise BadParts("a part without a plain name")
    kind = found.get("content-type", "")
    if kind and not _TYPE.fullmatch(kind):
        raise BadParts("a part's content-type isn't one")
    file = match[2] is not None or match[3] is not None
    if not file and _OTHER_CHARSET.search(kind):
        raise BadParts("a field in a charset other than UTF-8")
    return Part(name=match[1], file=file, filename=match[2] or "file", type=kind)


class FirstPart:
    """The first part of a multipart/related body (RFC 2387), as APIs take what is said about a file before the file
    itself: an object's names are given once, when that part is over."""

    def __init__(self, content_type: str) -> None:
        found = _RELATED.fullmatch(content_type.strip())
        boundary = found[1] or found[2] if found else ""
        self._mark = b"--" + boundary.encode("ascii") if _CHARS.fullmatch(boundary) else b""
        self._border = re.compile(rb"\r?\n" + re.escape(self._mark) + rb"(?:--)?[ \t]*\r?\n")
        self._buffer = bytearray()
        self._looked = 0

    def feed(self, data: bytes) -> tuple[str, ...] | None:
        """Take the next piece; None while the part isn't over. Raises BadParts where it isn't an object in JSON."""
        if not self._mark:
            raise BadParts("a multipart/related body names one boundary, and nothing else but a type")
        self._buffer += data
        room = len(self._mark) + 2
        begun = bytes(self._buffer[:room])
        if not (self._mark + b"\r\n").startswith(begun) and not begun.startswith(self._mark + b"\n"):
            raise BadParts("something before the first part")
        end = self._border.search(self._buffer, max(len(self._mark), self._looked))
        self._looked = max(0, len(self._buffer) - room - 8)
        if end is None:
            if len(self._buffer) > MAX_FIRST_PART:
                raise BadParts(f"a first part of more than {MAX_FIRST_PART} bytes")
            return None
        part = bytes(self._buffer[len(self._mark) : end.start()]).replace(b"\r\n", b"\n")
        head, _, text = part.partition(b"\n\n")
        try:
            value = parse(text.decode("utf-8"), limit=MAX_FIRST_PART, what="The first part")
        except (GoexError, UnicodeDecodeError) as error:
            raise BadParts("a first part that isn't JSON") from error
        if not isinstance(value, dict) or b"encoding" in head.lower():
            raise BadParts("a first part that isn't an object in JSON")
        return tuple(value)
