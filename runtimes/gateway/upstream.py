"""The way to a server: resolve once, check, pin, verify, send, read back within bounds.

A name is looked up once an action; if any address found must not be connected to, none is. The connection goes to an
address that was checked, and the certificate must be the name's. Redirects aren't followed: they are answers.
Failures say whether anything was sent: `NotSent` means that the server has certainly not seen the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

import h11

from policies.accounts import Account, Origin
from policies.addresses import refusal
from policies.errors import GoexError, Unavailable
from policies.tls import client_context
from runtimes.gateway.policy import Composed

Resolve = Callable[[str, int], Awaitable[list[str]]]

_CONNECT_SECONDS = 15.0
_SILENCE_SECONDS = 60.0
_KEEP_SECONDS = 5.0
_MAX_HEAD = 64 * 1024
_MAX_ADDRESSES = 4
_CHUNK = 65_536


class NotSent(Unavailable):
    """The server can't be reached: it has not seen the request."""

    code = "unreachable"


class RefusedAddress(GoexError):
    """The name leads where no request may go. Nothing was sent."""

    code = "address"


class NoAnswer(Unavailable):
    """The request was sent, and what happened then isn't known."""

    code = "no-answer"


class BadAnswer(GoexError):
    """The server took the request, and its answer can't be passed on."""

    code = "bad-answer"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said. Nothing in it is redacted yet; the body is decoded."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(slots=True)
class Link:
    """One connection to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float
    fresh: bool = True


async def system_resolve(host: str, port: int) -> list[str]:
    """Every address of a name, by the system's resolver. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Upstream:
    """The servers of one action. Keeps one idle connection an origin."""

    def __init__(self, resolve: Resolve = system_resolve) -> None:
        self._resolve = resolve
        self._pinned: dict[Origin, list[str]] = {}
        self._idle: dict[Origin, Link] = {}

    async def connect(self, origin: Origin, account: Account) -> Link:
        """A connection to `origin`, ready for a request. Raises NotSent, RefusedAddress."""
        link = self._idle.pop(origin, None)
        if link is not None:
            age = asyncio.get_running_loop().time() - link.used
            if age < _KEEP_SECONDS and not link.reader.at_eof() and not link.writer.is_closing():
                link.fresh = False
                return link
            link.writer.close()
        error: Exception = OSError("no address")
        for address in (await self.addresses(origin, account))[:_MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await self._open(address, origin, account)
            except ssl.SSLCertVerificationError as problem:
                raise NotSent(f"The certificate of {origin} isn't valid: {problem.verify_message}.") from problem
            except (OSError, TimeoutError) as problem:
                error = problem
        raise NotSent(f"{origin} can't be reached: {type(error).__name__}.") from error

    async def addresses(self, origin: Origin, account: Account) -> list[str]:
        """The addresses of `origin`, each checked; looked up once. Raises NotSent, RefusedAddress."""
        if origin not in self._pinned:
            try:
                ip_address(origin.host)
                found = [origin.host]
            except ValueError:
                found = await self._look_up(origin)
            for address in found:
                reason = self.refusal(address, origin, account)
                if reason:
                    raise RefusedAddress(f"{origin.host} leads to an address that isn't connected to: {reason}")
            self._pinned[origin] = found
        return self._pinned[origin]

    def refusal(self, address: str, origin: Origin, account: Account) -> str:
        return refusal(address, host=origin.host, private=account.private and origin in account.origins)

    async def exchange(
        self, link: Link, origin: Origin, composed: Composed, secret: tuple[str, str], limit: int
    ) -> Answer:
        """Send a request and read its answer, at most `limit` bytes of it. Raises NoAnswer, BadAnswer."""
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        data = self.message(http, origin, composed, secret)
        kept = False
        try:
            link.writer.write(data)
            await link.writer.drain()
            answer = await self._read(http, link, limit)
            kept = http.our_state is h11.DONE and http.their_state is h11.DONE and not http.trailing_data[0]
        except (OSError, TimeoutError, h11.RemoteProtocolError) as error:
            raise NoAnswer(f"{origin} took the request and gave no answer: {type(error).__name__}.") from error
        finally:
            if kept and origin not in self._idle:
                link.used = asyncio.get_running_loop().time()
                self._idle[origin] = link
            else:
                link.writer.close()
        return answer

    def message(self, http: h11.Connection, origin: Origin, composed: Composed, secret: tuple[str, str]) -> bytes:
        """The bytes of a request; `http` refuses what wouldn't be exactly one."""
        default = {"https": 443, "http": 80}[origin.scheme]
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        headers = [("Host", host if origin.port == default else f"{host}:{origin.port}"), *composed.headers, secret]
        request = h11.Request(method=composed.planned.method, target=composed.target, headers=headers)
        parts = [http.send(request), http.send(h11.Data(data=composed.body)), http.send(h11.EndOfMessage())]
        return b"".join(part or b"" for part in parts)

    def close(self) -> None:
        for link in self._idle.values():
            link.writer.transport.abort()
        self._idle.clear()

    async def _look_up(self, origin: Origin) -> list[str]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                found = await self._resolve(origin.host, origin.port)
        except (OSError, TimeoutError, UnicodeError) as error:
            raise NotSent(f"{origin.host} has no address.") from error
        if not found:
            raise NotSent(f"{origin.host} has no address.")
        return found

    async def _open(self, address: str, origin: Origin, account: Account) -> Link:
        context: ssl.SSLContext | None = None
        if origin.scheme == "https":
            context = await asyncio.to_thread(client_context, account.ca_pem)
        reader, writer = await asyncio.open_connection(
            address, origin.port, ssl=context, server_hostname=origin.host if context else None
        )
        raw = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Link(reader, writer, 0.0)

    async def _read(self, http: h11.Connection, link: Link, limit: int) -> Answer:
        head: h11.Response | None = None
        parts: list[bytes] = []
        size = 0
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    http.receive_data(await link.reader.read(_CHUNK))
            elif isinstance(event, h11.InformationalResponse):
                if event.status_code == 101:
                    raise BadAnswer(101, "The server changed the protocol, which nobody asked for.")
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data) and head is not None:
                size += len(event.data)
                if size > limit:
                    raise BadAnswer(head.status_code, f"The answer is longer than {limit} bytes.")
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return self._answer(head, b"".join(parts), limit)
            else:
                raise OSError("the connection ended")

    def _answer(self, head: h11.Response, body: bytes, limit: int) -> Answer:
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
        codings = [value.strip().lower() for name, value in headers if name == "content-encoding"]
        try:
            return Answer(status=head.status_code, headers=headers, body=self.decoded(body, codings, limit))
        except ValueError as error:
            raise BadAnswer(head.status_code, f"The answer can't be decoded: {error}.") from error

    def decoded(self, body: bytes, codings: list[str], limit: int) -> bytes:
        """Undo one compression, never beyond `limit` bytes. Raises ValueError."""
        codings = [coding for coding in codings if coding not in ("", "identity")]
        if not codings or not body:
            return body
        if codings not in (["gzip"], ["x-gzip"], ["deflate"]):
            raise ValueError("it is compressed in a way that wasn't asked for")
        raw_deflate = codings == ["deflate"] and (body[0] & 0x0F != 8 or int.from_bytes(body[:2], "big") % 31)
        engine = zlib.decompressobj(-zlib.MAX_WBITS if raw_deflate else zlib.MAX_WBITS | 32)
        try:
            data = engine.decompress(body, limit + 1)
        except zlib.error as error:
            raise ValueError("its compression is broken") from error
        if len(data) > limit:
            raise ValueError(f"it unpacks to more than {limit} bytes")
        if not engine.eof or engine.unused_data:
            raise ValueError("its compression is broken")
        return data
