"""Byte streams: a socket, and TLS on top of it, towards the container and towards servers.

TLS is done in memory over the plain stream, so that what comes before the handshake can never be taken for what
comes after it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol

_CHUNK = 65_536
_MUCH = 262_144  # bytes; whoever took so many at once lets the others have their turn
_LEAST = 4096  # bytes that one piece counts for


class Stream(Protocol):
    async def read(self) -> bytes:
        """Some bytes; b"" at the end."""
        ...

    def ready(self) -> bytes | None:
        """Bytes that are there already; b"" at the end; None where it has to be waited for, or where so much was taken
        without a wait that it is the turn of others."""
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
        self._taken = 0  # bytes, in this turn of the event loop

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
        # A peer that sends without end must not keep the loop from its timers and its other tasks.
        if self._taken >= _MUCH:
            return None
        try:
            data = self._socket.recv(_MUCH)
        except (BlockingIOError, InterruptedError):
            return None
        if not self._taken:
            self._loop.call_soon(self._next_turn)
        self._taken += max(len(data), _LEAST)
        return data

    def _next_turn(self) -> None:
        self._taken = 0

    async def write(self, data: bytes) -> None:
        async with self._writing:
            await self._loop.sock_sendall(self._socket, data)

    def close(self) -> None:
        """At once, also where something is still to be written."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()


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
