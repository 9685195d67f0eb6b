"""Where the body of an HTTP/1.1 message ends, and its content when it is chunked or compressed. No I/O.

Pieces in, pieces out, nothing is kept but a line. Chunks are read strictly: what two parsers could read in two ways is
an error. Trailers are read and dropped, or an error where nothing may stand (a request).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from policies.errors import GoexError

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}:[\t\x20-\x7e\x80-\xff]*")
_LONGEST_LINE = 4096
_MOST_TRAILERS = 64
_FREE_FRAMING = 2**20  # bytes between chunks that may come whatever is in the chunks
_FRAMING_RATIO = 16  # times the content: chunks of one byte make five
_LINES_AT_ONCE = 1024  # that are read before others have their turn

_FREE = 32 * 2**20  # bytes that may be unpacked whatever they were packed into
_RATIO = 250  # times: gzip of the same letter makes 1,030, of anything that means something rarely 100
_UNPACKED = 256 * 1024


class BrokenBody(GoexError):
    """The body isn't framed, or compressed, as it says."""

    code = "body"


class Body:
    """The content of one message's body. `length` None: until the connection ends."""

    def __init__(self, length: int | None) -> None:
        self.left = length
        self.done = length == 0
        self.rest = b""  # of what was taken last: what is after the end, or is to be taken in another turn

    def take(self, data: bytes) -> bytes:
        """The content in the next bytes of the connection. Raises BrokenBody."""
        if self.left is None:
            return data
        if len(data) > self.left:
            data, self.rest = data[: self.left], data[self.left :]
        self.left -= len(data)
        self.done = self.left == 0
        return data

    def end(self) -> None:
        """The connection ended. Raises BrokenBody within a body."""
        if self.left is not None and not self.done:
            raise BrokenBody("the connection ended within a body")
        self.done = True


class Chunked(Body):
    """A body in chunks. `strict`: neither extensions nor trailers, as nobody needs them in a request."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__(None)
        self._strict = strict
        self._line = bytearray()
        self._chunk = 0  # bytes of the chunk that are still to come
        self._framing = _FREE_FRAMING  # bytes that may still come between chunks
        self._closing = False  # the end of a chunk's line is next
        self._trailers = -1  # -1: not there yet

    def take(self, data: bytes) -> bytes:
        found: list[bytes | memoryview] = []
        view, at, lines = memoryview(data), 0, 0
        while at < len(data) and not self.done and lines < _LINES_AT_ONCE:
            if self._chunk:
                piece = view[at : at + self._chunk]
                found.append(piece)
                at += len(piece)
                self._chunk -= len(piece)
                self._closing = not self._chunk
                continue
            end = data.find(b"\n", at)
            self._line += view[at : end + 1 if end >= 0 else len(data)]
            if len(self._line) > _LONGEST_LINE:
                raise BrokenBody("a line between chunks is too long")
            at = end + 1 if end >= 0 else len(data)
            if end >= 0:
                lines += 1
                line, self._line = bytes(self._line), bytearray()
                self._framing -= len(line)
                if self._framing < 0:
                    raise BrokenBody("there is far more between the chunks than in them")
                if not line.endswith(b"\r\n"):
                    raise BrokenBody("a line between chunks doesn't end with CR LF")
                self._read(line[:-2])
        self.rest = data[at:]
        return b"".join(found)

    def end(self) -> None:
        if not self.done:
            raise BrokenBody("the connection ended within a body")

    def _read(self, line: bytes) -> None:
        if self._closing:
            if line:
                raise BrokenBody("a chunk is longer than it says")
            self._closing = False
        elif self._trailers >= 0:
            self._trailers += 1
            self.done = not line
            if line and (self._strict or self._trailers > _MOST_TRAILERS or not _TRAILER.fullmatch(line)):
                raise BrokenBody("trailers after the body")
        else:
            match = _SIZE.fullmatch(line)
            if match is None or (self._strict and len(match[1]) != len(line)):
                raise BrokenBody("a chunk's size isn't a number")
            self._chunk = int(match[1], 16)
            self._framing += _FRAMING_RATIO * self._chunk
            if not self._chunk:
                self._trailers = 0


class Unpacking:
    """Undoes a content coding while it flows. Raises BrokenBody for codings that weren't asked for."""

    def __init__(self, codings: list[str]) -> None:
        codings = [coding for coding in codings if coding not in ("", "identity")]
        if codings not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            raise BrokenBody("it is compressed in a way that wasn't asked for")
        self.packed = bool(codings)
        self._deflate = codings == ["deflate"]
        self._engine: zlib._Decompress | None = None
        self._in = 0
        self._out = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What `data` unpacks to, in bounded pieces, one by one. Raises BrokenBody."""
        if not self.packed:
            yield data
            return
        self._in += len(data)
        while data:
            if self._engine is None:
                self._engine = self._begin(data[0])
            try:
                piece = self._engine.decompress(data, _UNPACKED)
            except zlib.error as error:
                raise BrokenBody("its compression is broken") from error
            self._out += len(piece)
            if self._out > _FREE and self._out > _RATIO * self._in:
                raise BrokenBody(f"it unpacks to more than {_RATIO} times its size")
            yield piece
            data = self._engine.unconsumed_tail
            if self._engine.eof:
                data, self._engine = self._engine.unused_data, None
                if data and self._deflate:
                    raise BrokenBody("its compression is broken")

    def end(self) -> None:
        """Raise BrokenBody where the compressed data isn't complete."""
        if self._engine is not None:
            raise BrokenBody("its compression is broken")

    def _begin(self, first: int) -> zlib._Decompress:
        # "deflate" is sent with zlib's header, as it should be, or without.
        raw = self._deflate and first & 0x0F != 8
        return zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
