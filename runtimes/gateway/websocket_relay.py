"""A WebSocket between code and a server, once the server has agreed: both directions at once, message by message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from policies.errors import GoexError
from runtimes.gateway import websocket_rules
from runtimes.gateway.admission import Admission
from runtimes.gateway.http_client import Call
from runtimes.gateway.policy import No
from runtimes.gateway.response_filter import looked_at
from runtimes.gateway.stream_redactor import Flowing
from runtimes.gateway.tls_streams import Messages, Stream
from runtimes.gateway.upstream import BadAnswer
from runtimes.gateway.websocket_rules import BrokenSocket, Message

_IN_A_THREAD = 65_536  # bytes of a message from which on other actions shouldn't wait for it


class NotSaid(GoexError):
    """The code said something that isn't passed on: the connection ends."""

    code = "refused"

    def __init__(self, no: No) -> None:
        super().__init__(no.reason)
        self.no = no


class Talk:
    """One open WebSocket. `count` is told the bytes of each message that came, and raises BadAnswer at the limit."""

    def __init__(
        self,
        call: Call,
        messages: Messages,
        admission: Admission,
        flowing: Flowing,
        placeholders: Collection[str],
        count: Callable[[int], None],
    ) -> None:
        self._call = call
        self._messages = messages
        self._admission = admission
        self._flowing = flowing
        self._placeholders = [placeholder.encode() for placeholder in placeholders]
        self._count = count
        self._said = 0

    def agreed(self, headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The headers of the code's 101. Raises BadAnswer where the server agreed to something else."""
        asked = {name.lower(): value for name, value in self._admission.headers}
        named = dict(headers)
        accept = websocket_rules.accepts(asked.get("sec-websocket-key", ""))
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
        """Until one end ends it. Raises NotSaid, BadAnswer."""
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
        stream, reading = self._messages.stream, websocket_rules.Messages(masked=True)
        try:
            while data := self._messages.rest() or await _some(stream):
                for message in reading.feed(data):
                    self._said += len(message.payload)
                    self._check(message)
                    await self._call.send(websocket_rules.written(message, masked=True))
        except BrokenSocket as error:
            await stream.write(websocket_rules.written(websocket_rules.closing(error.reason), masked=False))
            raise NotSaid(No(error.message, status=400, kind="framing")) from error

    def _check(self, message: Message) -> None:
        method_id = self._admission.rule.method_id
        if self._said > self._admission.limit:
            limit = self._admission.limit
            raise NotSaid(No(f"more than {limit} bytes were said", status=413, kind="size", method_id=method_id))
        if any(placeholder in message.payload for placeholder in self._placeholders):
            raise NotSaid(No(
                "a placeholder in a message of a WebSocket", kind="placeholder", method_id=method_id,
                hint="It belongs into the opening request.",
            ))  # fmt: skip

    async def _from_server(self) -> None:
        stream, reading = self._call.wire.stream, websocket_rules.Messages(masked=False)
        data = self._call.early() or await _some(stream)
        try:
            while data:
                for message in reading.feed(data):
                    self._count(len(message.payload))
                    clean = await self._cleaned(message)
                    await self._messages.stream.write(websocket_rules.written(clean, masked=False))
                    if message.opcode == websocket_rules.CLOSE:
                        return
                data = await _some(stream)
        except BrokenSocket as error:
            raise BadAnswer(101, f"The server broke the WebSocket: {error.message}.") from error

    async def _cleaned(self, message: Message) -> Message:
        payload, flowing = message.payload, self._flowing
        if message.opcode >= websocket_rules.CLOSE:
            return Message(message.opcode, flowing.redactor.clean(payload)[:125])
        if len(payload) < _IN_A_THREAD:
            return Message(message.opcode, looked_at(flowing, payload, websocket_rules.MAX_MESSAGE)[0])
        body, _, _ = await asyncio.to_thread(looked_at, flowing, payload, websocket_rules.MAX_MESSAGE)
        return Message(message.opcode, body)


async def _some(stream: Stream) -> bytes:
    """What there is, b"" at the end, also where it was broken off."""
    try:
        while (data := stream.ready()) is None:
            await stream.readable()
    except OSError:
        return b""
    return data
