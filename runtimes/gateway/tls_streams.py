"""Byte streams to the container: plain, and TLS on top of it. And whole HTTP/1.1 messages over either.

TLS is done in memory over the plain stream, so that what comes before the handshake can never be taken for what
comes after it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol

import h11

from runtimes.gateway.head import MAX_HEAD, BadHead, Head

_CHUNK = 65_536
_MUCH = 262_144
_LATE_LF = (b"\n\n", b"\n\r\n")


class Stream(Protocol):
    async def read(self) -> bytes:
        """Some bytes; b"" at the end."""
        ...

    def ready(self) -> bytes | None:
        """Bytes that are there already; b"" at the end; None where it has to be waited for."""
        ...

    async def readable(self) -> None:
        """Until `ready` may have something. Nothing is lost where this is cancelled."""
        ...

    async def write(self, data: bytes) -> None: ...


class SocketStream:
    """A connected socket that doesn't block, for much at once: nothing is copied into buffers between."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()  # the bytes of two writers must not mix

    async def read(self) -> bytes:
        while (data := self.ready()) is None:
            await self.readable()
        return data

    async def readable(self) -> None:
        future = self._loop.create_future()
        self._loop.add_reader(self._socket, _done, future)
        try:
            await future
        finally:
            self._loop.remove_reader(self._socket)

    def ready(self) -> bytes | None:
        try:
            return self._socket.recv(_MUCH)
        except (BlockingIOError, InterruptedError):
            return None

    async def write(self, data: bytes) -> None:
        async with self._writing:
            await self._loop.sock_sendall(self._socket, data)

    def close(self) -> None:
        """At once, also where something is still to be written."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()


class PlainStream:
    """A Unix socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK)

    def ready(self) -> bytes | None:
        return None

    async def readable(self) -> None:
        raise NotImplementedError

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


class TlsStream:
    """TLS over another stream; client side where the server's name is given. Raises ssl.SSLError."""

    def __init__(self, below: Stream, context: ssl.SSLContext, early: bytes = b"", name: str | None = None) -> None:
        self._below = below
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._in.write(early)
        self._tls = context.wrap_bio(self._in, self._out, server_side=name is None, server_hostname=name)

    async def handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError:
                await self._flush()
                raise
            else:
                await self._flush()
                return

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def ready(self) -> bytes | None:
        found: list[bytes] = []
        size = 0
        while size < _MUCH:
            try:
                piece = self._tls.read(_CHUNK)
                found.append(piece)
                size += len(piece) or _MUCH
            except ssl.SSLWantReadError:
                data = self._below.ready()
                if data is None:
                    break
                if data:
                    self._in.write(data)
                else:
                    self._in.write_eof()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b"".join(found)
        return b"".join(found) if found else None

    async def readable(self) -> None:
        await self._below.readable()

    async def write(self, data: bytes) -> None:
        with memoryview(data) as view:
            for start in range(0, len(data), _CHUNK):
                self._tls.write(view[start : start + _CHUNK])
                await self._flush()

    async def _fill(self) -> None:
        data = await self._below.read()
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    async def _flush(self) -> None:
        if self._out.pending:
            await self._below.write(self._out.read())


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Messages:
    """Requests in, answers out, one after the other, on one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = b""
        self._http: h11.Connection | None = None

    @property
    def stream(self) -> Stream:
        return self._stream

    def rest(self) -> bytes:
        """What came after the last head, for whoever takes the stream over."""
        rest, self._buffer = self._buffer, b""
        return rest

    def give_back(self, data: bytes) -> int:
        """What was taken and isn't a part of what it was taken for. Returns how much is there now."""
        self._buffer += data
        return len(self._buffer)

    async def read_head(self) -> bytes | None:
        """The raw head of the next request with its empty line; None at the end. Raises BadHead."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end >= 0:
                raw, self._buffer = self._buffer[: end + 4], self._buffer[end + 4 :]
                return raw
            if any(ending in self._buffer for ending in _LATE_LF):
                raise BadHead("smuggling", "a line of the head doesn't end with CR LF")
            if len(self._buffer) > MAX_HEAD:
                raise BadHead("limits", "the head is too long")
            data = await self._stream.read()
            if not data:
                return None
            self._buffer += data

    async def read_body(self, raw: bytes, head: Head, limit: int) -> bytes:
        """The body that belongs to a head. Raises BadHead when it is too long or wrongly framed."""
        if head.length is not None and head.length > limit:
            raise BadHead("limits", f"the body is longer than {limit} bytes")
        self._http = http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        try:
            http.receive_data(raw)
            http.next_event()
            if head.continues and (head.length or head.chunked):
                await self._stream.write(http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            if self._buffer:
                http.receive_data(self._buffer)
                self._buffer = b""
            return await self._collect(http, limit)
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            raise BadHead("smuggling", f"the body isn't framed as its head says: {error}") from error

    async def _collect(self, http: h11.Connection, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await self._stream.read())
            elif isinstance(event, h11.Data):
                size += len(event.data)
                if size > limit:
                    raise BadHead("limits", f"the body is longer than {limit} bytes")
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                if list(event.headers):
                    raise BadHead("smuggling", "trailers after the body")
                self._buffer = http.trailing_data[0]
                return b"".join(parts)
            else:
                raise BadHead("syntax", "the connection ended within a body")

    async def respond(self, status: int, headers: list[tuple[str, str]], body: bytes, *, close: bool = False) -> bool:
        """Send an answer. Returns whether the connection can serve another request."""
        http, self._http = self._http, None
        if close or http is None or http.their_state is not h11.DONE:
            return await self._last_words(status, headers, body)
        if status not in (204, 304):
            headers = [*headers, ("Content-Length", str(len(body)))]
        sent = http.send(h11.Response(status_code=status, headers=headers))
        await self._stream.write((sent or b"") + (http.send(h11.Data(data=body)) or b""))
        http.send(h11.EndOfMessage())
        return http.states[h11.SERVER] is h11.DONE

    async def _last_words(self, status: int, headers: list[tuple[str, str]], body: bytes) -> bool:
        lines = [f"HTTP/1.1 {status} GoEx", *(f"{name}: {value}" for name, value in headers)]
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        await self._stream.write("\r\n".join(lines).encode("latin-1", "replace") + body)
        return False
