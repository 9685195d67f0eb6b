"""One request to a server at a time, its body and its answer streamed. Connections are kept for the next.

Addresses are looked up, checked and pinned by `Upstream`, and the certificate is verified by the same context. Heads
are written and read by h11; what follows them goes by `framing`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

import h11

from policies.accounts import Account, Origin
from policies.tls import client_context
from runtimes.gateway.http_framing import Body, BrokenBody, Chunked
from runtimes.gateway.tls_streams import SocketStream, Stream, TlsStream
from runtimes.gateway.upstream import BadAnswer, NoAnswer, NotSent, Upstream

_CONNECT_SECONDS = 15.0
_KEEP_SECONDS = 5.0
_KEPT = 8
_MAX_HEAD = 64 * 1024
_MAX_ADDRESSES = 4

Headers = Sequence[tuple[str, str]]


@dataclass(slots=True)
class Wire:
    """One connection to a server."""

    stream: Stream
    below: SocketStream
    fresh: bool = True
    idle_since: float = 0.0

    def close(self) -> None:
        self.below.close()


class Wires:
    """Connections to the servers of one action. Several may be in use at once."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._idle: dict[Origin, list[Wire]] = {}

    async def connect(self, origin: Origin, account: Account, *, fresh: bool = False) -> Wire:
        """A connection to `origin`, ready for a request. Raises NotSent, RefusedAddress."""
        now = asyncio.get_running_loop().time()
        while idle := self._idle.get(origin):
            wire = idle.pop()
            # A kept connection says nothing unasked; if it does, or has ended, it isn't used.
            if not fresh and now - wire.idle_since < _KEEP_SECONDS and wire.stream.ready() is None:
                wire.fresh = False
                return wire
            wire.close()
        error: Exception = OSError("no address")
        for address in (await self._upstream.addresses(origin, account))[:_MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await _open(address, origin, account)
            except ssl.SSLCertVerificationError as problem:
                raise NotSent(f"The certificate of {origin} isn't valid: {problem.verify_message}.") from problem
            except (OSError, TimeoutError) as problem:
                error = problem
        raise NotSent(f"{origin} can't be reached: {type(error).__name__}.") from error

    def keep(self, origin: Origin, wire: Wire) -> None:
        """A connection whose last answer was read to its end. Nobody else uses it any more."""
        idle = self._idle.setdefault(origin, [])
        if len(idle) >= _KEPT:
            wire.close()
            return
        wire.idle_since = asyncio.get_running_loop().time()
        idle.append(wire)

    def close(self) -> None:
        for idle in self._idle.values():
            for wire in idle:
                wire.close()
        self._idle.clear()


class Call:
    """One request on a connection, and its answer. Raises NoAnswer, BadAnswer."""

    def __init__(self, wire: Wire, origin: Origin) -> None:
        self.wire = wire
        self._origin = origin
        self.status = 0
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        self._chunked = False
        self._sent = False
        self._body = Body(0)
        self._early = b""  # bytes that came with those before them
        self._lasts = False
        self._method = ""

    async def begin(self, method: str, target: str, headers: Headers, length: int | None) -> None:
        """Send the head. `length` of the body; -1: it is sent in chunks; None: there is none."""
        default = {"https": 443, "http": 80}[self._origin.scheme]
        host = f"[{self._origin.host}]" if ":" in self._origin.host else self._origin.host
        fields = [("Host", host if self._origin.port == default else f"{host}:{self._origin.port}"), *headers]
        if length is not None:
            fields.append(("Transfer-Encoding", "chunked") if length < 0 else ("Content-Length", str(length)))
        self._method = method
        self._chunked = length is not None and length < 0
        self._sent = not length
        head = self._http.send(h11.Request(method=method, target=target, headers=fields))
        if length is None:
            self._http.send(h11.EndOfMessage())
        await self._write(head or b"")

    async def send(self, data: bytes) -> None:
        """Send some of the body."""
        if data:
            await self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def finish(self) -> None:
        """The body was sent."""
        if self._chunked:
            await self._write(b"0\r\n\r\n")
        self._sent = True

    async def head(self, *, upgrade: bool = False) -> tuple[int, list[tuple[str, str]]]:
        """Status and headers (names in lower case) of the answer."""
        try:
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self.wire.stream.read())
                elif isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                    if not upgrade:
                        raise BadAnswer(101, "The server changed the protocol, which nobody asked for.")
                    self._early = self._http.trailing_data[0]
                    return 101, _headers(event)
                elif isinstance(event, h11.Response):
                    self.status = event.status_code
                    return self._begin_body(event)
                elif not isinstance(event, h11.InformationalResponse):
                    raise OSError("the connection ended")
        except (OSError, h11.RemoteProtocolError) as error:
            raise self._nothing(error) from error

    def _begin_body(self, head: h11.Response) -> tuple[int, list[tuple[str, str]]]:
        headers = _headers(head)
        named = dict(headers)
        if self._method == "HEAD" or head.status_code in (204, 304):
            self._body = Body(0)
        elif "transfer-encoding" in named:
            self._body = Chunked(strict=False)
        else:
            self._body = Body(int(named["content-length"]) if "content-length" in named else None)
        framed = isinstance(self._body, Chunked) or "content-length" in named or self._body.done
        closes = "close" in named.get("connection", "").lower() or head.http_version != b"1.1"
        self._lasts = framed and not closes
        self._early = self._http.trailing_data[0]
        return head.status_code, headers

    @property
    def length(self) -> int | None:
        """Bytes of the answer's body that are still to come, where that is known."""
        return self._body.left

    def ready(self) -> bytes | None:
        """What is there of the body; b"" at its end; None where it has to be waited for."""
        while not self._body.done:
            try:
                data = self._early or self.wire.stream.ready()
            except OSError as error:
                raise self._broken("the connection broke off") from error
            if data is None:
                return None
            if content := self._take(data):
                return content
        return b""

    async def readable(self) -> None:
        """Until `ready` may have something."""
        await self.wire.stream.readable()

    @property
    def reusable(self) -> bool:
        """Whether the next request may go the same way."""
        return self._lasts and self._sent and self._body.done and not self._body.rest and not self._early

    def early(self) -> bytes:
        """What came after the head of a 101."""
        data, self._early = self._early, b""
        return data

    def _take(self, data: bytes) -> bytes:
        self._early = b""
        try:
            if data:
                return self._body.take(data)
            self._body.end()
        except BrokenBody as error:
            raise self._broken(error.message) from error
        return b""

    async def _write(self, data: bytes) -> None:
        try:
            await self.wire.stream.write(data)
        except OSError as error:
            raise self._nothing(error) from error

    def _nothing(self, error: Exception) -> NoAnswer:
        return NoAnswer(f"{self._origin} took the request and gave no answer: {type(error).__name__}.")

    def _broken(self, how: str) -> BadAnswer:
        return BadAnswer(self.status, f"The answer can't be read to its end: {how}.")


def _headers(head: h11.Response | h11.InformationalResponse) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]


async def _open(address: str, origin: Origin, account: Account) -> Wire:
    context = None
    if origin.scheme == "https":
        context = await asyncio.to_thread(client_context, account.ca_pem)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, (address, origin.port))
        below = SocketStream(sock)
        if context is None:
            return Wire(below, below)
        tls = TlsStream(below, context, name=origin.host)
        await tls.handshake()
        return Wire(tls, below)
    except BaseException:
        sock.close()
        raise
