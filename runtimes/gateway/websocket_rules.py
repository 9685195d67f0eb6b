"""A WebSocket that a rule allows: its messages, one by one, each looked at whole. RFC 6455, without extensions.

Fragments are put together before they are looked at, so nothing hides on their borders; a message that is longer than
`MAX_MESSAGE` ends the connection. What the server says is passed on without echoes of the secret; what the code says is
passed on unless it holds a placeholder, which only belongs into the opening. An echo that is cut in two by the borders
of messages isn't one that whoever reads message by message would see; it isn't looked for.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from policies.errors import GoexError

MAX_MESSAGE = 2**20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUES, _TEXT, _BINARY, CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_CONTROL = 125  # bytes at most


class BrokenSocket(GoexError):
    """The other end doesn't speak WebSocket as it should. `code` is why, as a close frame says it."""

    code = "websocket"

    def __init__(self, message: str, reason: int = 1002) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message, or a control frame."""

    opcode: int
    payload: bytes


def accepts(key: str) -> str:
    """What a server has to answer to a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode("ascii") + _GUID, usedforsecurity=False).digest()).decode("ascii")


def written(message: Message, *, masked: bool) -> bytes:
    """One frame; a client's are masked."""
    size, bit = len(message.payload), 0x80 if masked else 0
    head = bytes([0x80 | message.opcode])
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([bit | 127]) + size.to_bytes(8, "big")
    if not masked:
        return head + message.payload
    mask = os.urandom(4)
    return head + mask + _mask(message.payload, mask)


class Messages:
    """Bytes in, messages out. `masked`: they come from a client. Raises BrokenSocket."""

    def __init__(self, *, masked: bool) -> None:
        self._masked = masked
        self._buffer = bytearray()
        self._opcode = 0  # of the message that goes on
        self._parts = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        self._buffer += data
        while (frame := self._frame()) is not None:
            final, opcode, payload = frame
            if opcode >= CLOSE:
                yield Message(opcode, payload)
                continue
            if (opcode == _CONTINUES) != bool(self._opcode):
                raise BrokenSocket("a message begins within another")
            self._opcode = opcode or self._opcode
            self._parts += payload
            if len(self._parts) > MAX_MESSAGE:
                raise BrokenSocket(f"a message is longer than {MAX_MESSAGE} bytes", 1009)
            if final:
                message = Message(self._opcode, bytes(self._parts))
                self._opcode, self._parts = 0, bytearray()
                yield message

    def _frame(self) -> tuple[bool, int, bytes] | None:
        head = self._buffer
        if len(head) < 2:
            return None
        final, opcode, size = bool(head[0] & 0x80), head[0] & 0x0F, head[1] & 0x7F
        if head[0] & 0x70 or opcode not in (_CONTINUES, _TEXT, _BINARY, CLOSE, _PING, _PONG):
            raise BrokenSocket("a frame uses an extension that wasn't agreed on")
        if bool(head[1] & 0x80) != self._masked:
            raise BrokenSocket("a frame is masked on the wrong side")
        if opcode >= CLOSE and (size > _CONTROL or not final):
            raise BrokenSocket("a control frame is too long, or in fragments")
        more = {126: 2, 127: 8}.get(size, 0)
        start = 2 + more + 4 * self._masked
        if len(head) < start:
            return None
        if more:
            size = int.from_bytes(head[2 : 2 + more], "big")
        if size > MAX_MESSAGE:
            raise BrokenSocket(f"a message is longer than {MAX_MESSAGE} bytes", 1009)
        if len(head) < start + size:
            return None
        payload = bytes(head[start : start + size])
        if self._masked:
            payload = _mask(payload, bytes(head[start - 4 : start]))
        del head[: start + size]
        return final, opcode, payload


def closing(reason: int) -> Message:
    return Message(CLOSE, reason.to_bytes(2, "big"))


def _mask(data: bytes, mask: bytes) -> bytes:
    """`data` with `mask` laid over it, again and again. Twice is nothing."""
    size = len(data)
    over = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ over).to_bytes(size, "big")
