"""HTTP/1.1 towards the container: requests in, answers out, one after the other, while they flow."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from runtimes.gateway.head import MAX_HEAD, BadHead, Head
from runtimes.gateway.http_framing import Body, BrokenBody, Chunked
from runtimes.gateway.streams import Stream

_DRAINED = 1 << 20
_DRAIN_SECONDS = 2.0
_LATE_LF = (b"\n\n", b"\n\r\n")


class ClientConnection:
    """The requests that come on one stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._buffer = b""

    def rest(self) -> bytes:
        """Return what came after the last head, for whoever takes the stream over."""
        rest, self._buffer = self._buffer, b""
        return rest

    def give_back(self, data: bytes) -> int:
        """Keep what was taken and isn't a part of what it was taken for. Returns how much is there now."""
        self._buffer += data
        return len(self._buffer)

    async def read_head(self) -> bytes | None:
        """The raw head of the next request with its empty line; None at the end. Raises BadHead."""
        await asyncio.sleep(0)  # where requests are pipelined, nothing else waits between two of them
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end >= 0:
                raw, self._buffer = self._buffer[: end + 4], self._buffer[end + 4 :]
                return raw
            if any(ending in self._buffer for ending in _LATE_LF):
                raise BadHead("smuggling", "a line of the head doesn't end with CR LF")
            if len(self._buffer) > MAX_HEAD:
                raise BadHead("limits", "the head is too long")
            data = await self.stream.read()
            if not data:
                return None
            self._buffer += data


class RequestBody:
    """The body of one request. Raises BadHead for one that isn't framed as its head says, or is too long."""

    def __init__(self, client: ClientConnection, head: Head) -> None:
        self._client = client
        self._continues = head.continues
        self._body: Body = Chunked(strict=True) if head.chunked else Body(head.length or 0)
        self.size = 0

    @property
    def done(self) -> bool:
        return self._body.done

    async def read(self, limit: int) -> bytes:
        """Some of it; b"" at its end."""
        if self._continues and not self._body.done:
            self._continues = False
            await self._client.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self._body.done:
            await asyncio.sleep(0)
            data = self._client.rest() or self._client.stream.ready()
            if data is None:
                await self._client.stream.readable()
                continue
            try:
                if not data:
                    self._body.end()
                content = self._body.take(data)
            except BrokenBody as error:
                raise BadHead("smuggling", error.message) from error
            self._client.give_back(self._body.rest)
            self.size += len(content)
            if self.size > limit:
                raise BadHead("limits", f"the body is longer than {limit} bytes")
            if content:
                return content
        return b""

    async def whole(self, limit: int) -> bytes:
        parts = []
        while data := await self.read(limit):
            parts.append(data)
        return b"".join(parts)

    async def drain(self) -> None:
        """Take what is left of a refused body, so that the connection can go on; of a long one not even that."""
        if self._continues:
            return
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await self.read(_DRAINED):
                    pass
        except (BadHead, TimeoutError):
            pass

    async def gone(self) -> None:
        """Return when the container ends the connection, once the body is there. What it says meanwhile is kept."""
        stream = self._client.stream
        while (data := stream.ready()) != b"":
            if data is None:
                await stream.readable()
            elif self._client.give_back(data) > MAX_HEAD:
                await asyncio.Event().wait()  # it says more than anyone reads: enough to know that it is there


class ClientResponse:
    """One answer to the container."""

    def __init__(self, client: ClientConnection) -> None:
        self._stream = client.stream
        self._chunked = False
        self.began = False
        self.ended = False

    async def begin(self, status: int, headers: Sequence[tuple[str, str]], length: int | None, *, last: bool) -> None:
        """Send the head. `length` of the body; -1: not known yet; None: there is none. `last`: the connection ends."""
        self.began = True
        self._chunked = length == -1
        lines = [f"HTTP/1.1 {status} GoEx", *(f"{name}: {value}" for name, value in headers)]
        if length is not None:
            lines.append("transfer-encoding: chunked" if length < 0 else f"content-length: {length}")
        lines += ["connection: close"] * last + ["", ""]
        await self._stream.write("\r\n".join(lines).encode("latin-1", "replace"))

    async def send(self, data: bytes) -> None:
        if data and self._chunked:
            await self._stream.write(b"%x\r\n" % len(data))
        if data:
            await self._stream.write(data)
        if data and self._chunked:
            await self._stream.write(b"\r\n")

    async def finish(self) -> None:
        if self._chunked:
            await self._stream.write(b"0\r\n\r\n")
        self.ended = True

    async def whole(self, status: int, headers: Sequence[tuple[str, str]], body: bytes, *, last: bool) -> None:
        await self.begin(status, headers, len(body), last=last)
        await self.send(body)
        await self.finish()
