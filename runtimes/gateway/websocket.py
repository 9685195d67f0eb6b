"""A WebSocket that a rule allows: both directions at once, message by message, each looked at whole. RFC 6455, without
extensions.

Fragments are put together before they are looked at, so nothing hides on their borders; a message that is longer than
`MAX_MESSAGE` ends the connection. What the server says is passed on without echoes of the secret; what the code says is
passed on unless it holds a placeholder, which only belongs into the opening. An echo that is cut in two by the borders
of messages isn't one that whoever reads message by message would see; it isn't looked for.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from policies.errors import GoexError
from runtimes.gateway.admission import Admission, No, Refused
from runtimes.gateway.http_client import BadAnswer, UpstreamRequest
from runtimes.gateway.http_server import ClientConnection
from runtimes.gateway.response_filter import redacted
from runtimes.gateway.stream_redactor import StreamRedactor
from runtimes.gateway.streams import Stream

MAX_MESSAGE = 2**20
_MOST_FRAGMENTS = 4096  # of a message: those of no length would have no end
_IN_A_THREAD = 65_536  # bytes of a message from which on other actions shouldn't wait for it
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
        self._fragments = 0

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
            self._fragments += 1
            if self._fragments > _MOST_FRAGMENTS:
                raise BrokenSocket(f"a message is in more than {_MOST_FRAGMENTS} fragments", 1009)
            if len(self._parts) > MAX_MESSAGE:
                raise BrokenSocket(f"a message is longer than {MAX_MESSAGE} bytes", 1009)
            if final:
                message = Message(self._opcode, bytes(self._parts))
                self._opcode, self._parts, self._fragments = 0, bytearray(), 0
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


class WebSocketProxy:
    """One open WebSocket. `count` is told the bytes of each message that came, and raises BadAnswer at the limit."""

    def __init__(
        self,
        call: UpstreamRequest,
        client: ClientConnection,
        admission: Admission,
        redactor: StreamRedactor,
        placeholders: Collection[str],
        count: Callable[[int], None],
    ) -> None:
        self._call = call
        self._client = client
        self._admission = admission
        self._redactor = redactor
        self._placeholders = [placeholder.encode() for placeholder in placeholders]
        self._count = count
        self._said = 0

    def agreed(self, headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The headers of the code's 101. Raises BadAnswer where the server agreed to something else."""
        asked = {name.lower(): value for name, value in self._admission.headers}
        named = dict(headers)
        accept = accepts(asked.get("sec-websocket-key", ""))
        if named.get("upgrade", "").lower() != "websocket" or named.get("sec-websocket-accept") != accept:
            raise BadAnswer(101, "The server changed the protocol, and not to the WebSocket that was asked for.")
        if "sec-websocket-extensions" in named:
            raise BadAnswer(101, "The server uses an extension that nobody asked for.")
        found = [("connection", "Upgrade"), ("upgrade", "websocket"), ("sec-websocket-accept", accept)]
        protocol = named.get("sec-websocket-protocol")
        if protocol is not None:
            if protocol not in [one.strip() for one in asked.get("sec-websocket-protocol", "").split(",")]:
                raise BadAnswer(101, "The server chose a protocol that nobody asked for.")
            found.append(("sec-websocket-protocol", protocol))
        return found

    async def run(self) -> None:
        """Until one end ends it. Raises Refused, BadAnswer."""
        tasks = {asyncio.create_task(self._from_code()), asyncio.create_task(self._from_server())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _from_code(self) -> None:
        stream, reading = self._client.stream, Messages(masked=True)
        try:
            while data := self._client.rest() or await _some(stream):
                for message in reading.feed(data):
                    self._said += len(message.payload)
                    self._check(message)
                    await self._call.send(written(message, masked=True))
                    await asyncio.sleep(0)  # many messages may be there at once, and others wait for their turn
        except BrokenSocket as error:
            await stream.write(written(closing(error.reason), masked=False))
            raise Refused(No(error.message, status=400, kind="framing")) from error

    def _check(self, message: Message) -> None:
        method_id = self._admission.rule.method_id
        if self._said > self._admission.limit:
            limit = self._admission.limit
            raise Refused(No(f"more than {limit} bytes were said", status=413, kind="size", method_id=method_id))
        if any(placeholder in message.payload for placeholder in self._placeholders):
            raise Refused(No(
                "a placeholder in a message of a WebSocket", kind="placeholder", method_id=method_id,
                hint="It belongs into the opening request.",
            ))  # fmt: skip

    async def _from_server(self) -> None:
        stream, reading = self._call.stream, Messages(masked=False)
        data = self._call.early() or await _some(stream)
        try:
            while data:
                for message in reading.feed(data):
                    self._count(len(message.payload))
                    clean = await self._cleaned(message)
                    await self._client.stream.write(written(clean, masked=False))
                    await asyncio.sleep(0)
                    if message.opcode == CLOSE:
                        return
                data = await _some(stream)
        except BrokenSocket as error:
            raise BadAnswer(101, f"The server broke the WebSocket: {error.message}.") from error

    async def _cleaned(self, message: Message) -> Message:
        payload, redactor = message.payload, self._redactor
        if message.opcode >= CLOSE:
            return Message(message.opcode, redactor.clean(payload)[:125])
        if len(payload) < _IN_A_THREAD:
            return Message(message.opcode, redacted(redactor, payload, MAX_MESSAGE)[0])
        body, _, _ = await asyncio.to_thread(redacted, redactor, payload, MAX_MESSAGE)
        return Message(message.opcode, body)


async def _some(stream: Stream) -> bytes:
    """What there is, b"" at the end, also where it was broken off."""
    try:
        while (data := stream.ready()) is None:
            await stream.readable()
    except OSError:
        return b""
    return data
