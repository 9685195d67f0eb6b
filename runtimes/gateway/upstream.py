"""Connections to servers: look up once, check, pin, verify, keep for the next request.

A name is looked up once an action; if any address found must not be connected to, none is. The connection goes to an
address that was checked, and the certificate must be the name's. Failures say whether anything was sent: `NotSent`
means that the server has certainly not seen the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from policies.accounts import Account, Origin
from policies.addresses import refusal
from policies.errors import GoexError, Unavailable
from policies.tls import client_context
from runtimes.gateway.http_client import UpstreamRequest
from runtimes.gateway.streams import SocketStream, Stream, TlsStream

Resolve = Callable[[str, int], Awaitable[list[str]]]

_CONNECT_SECONDS = 15.0
_KEEP_SECONDS = 5.0
_KEPT = 8
_MAX_ADDRESSES = 4


class NotSent(Unavailable):
    """The server can't be reached: it has not seen the request."""

    code = "unreachable"


class RefusedAddress(GoexError):
    """The name leads where no request may go. Nothing was sent."""

    code = "address"


Terms = tuple[Origin, bool, str]
"""An origin on an account's terms: whether a private address will do, and whose certificates count besides."""


@dataclass(slots=True)
class Connection:
    """One connection to a server, made on the terms of an account."""

    terms: Terms
    stream: Stream
    below: SocketStream
    fresh: bool = True
    idle_since: float = 0.0

    def close(self) -> None:
        self.below.close()


async def system_resolve(host: str, port: int) -> list[str]:
    """Every address of a name, by the system's resolver. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Upstream:
    """The servers of one action. Several connections may be in use at once."""

    def __init__(self, resolve: Resolve = system_resolve) -> None:
        self._resolve = resolve
        # By an account's terms: one that trusts more opens nothing for another account at the same origin.
        self._pinned: dict[Terms, list[str]] = {}
        self._idle: dict[Terms, list[Connection]] = {}

    async def connect(self, origin: Origin, account: Account, *, fresh: bool = False) -> Connection:
        """A connection to `origin`, ready for a request. Raises NotSent, RefusedAddress."""
        now = asyncio.get_running_loop().time()
        while idle := self._idle.get(_terms(origin, account)):
            kept = idle.pop()
            # A kept connection says nothing unasked; if it does, or has ended, it isn't used.
            if not fresh and now - kept.idle_since < _KEEP_SECONDS and kept.stream.ready() is None:
                kept.fresh = False
                return kept
            kept.close()
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

    def request(self, connection: Connection, origin: Origin) -> UpstreamRequest:
        """The next request on a connection, not sent yet."""
        return UpstreamRequest(connection.stream, origin)

    def keep(self, connection: Connection) -> None:
        """Keep a connection whose last answer was read to its end. Nobody else uses it any more."""
        idle = self._idle.setdefault(connection.terms, [])
        if len(idle) >= _KEPT:
            connection.close()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        idle.append(connection)

    def close(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()

    async def addresses(self, origin: Origin, account: Account) -> list[str]:
        """The addresses of `origin`, each checked; looked up once. Raises NotSent, RefusedAddress."""
        terms = _terms(origin, account)
        if terms not in self._pinned:
            try:
                ip_address(origin.host)
                found = [origin.host]
            except ValueError:
                found = await self._look_up(origin)
            for address in found:
                reason = self.refusal(address, origin, account)
                if reason:
                    raise RefusedAddress(f"{origin.host} leads to an address that isn't connected to: {reason}")
            self._pinned[terms] = found
        return self._pinned[terms]

    def refusal(self, address: str, origin: Origin, account: Account) -> str:
        _, private, _ = _terms(origin, account)
        return refusal(address, host=origin.host, private=private)

    async def _look_up(self, origin: Origin) -> list[str]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                found = await self._resolve(origin.host, origin.port)
        except (OSError, TimeoutError, UnicodeError) as error:
            raise NotSent(f"{origin.host} has no address.") from error
        if not found:
            raise NotSent(f"{origin.host} has no address.")
        return found

    async def _open(self, address: str, origin: Origin, account: Account) -> Connection:
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
                return Connection(_terms(origin, account), below, below)
            tls = TlsStream(below, context, name=origin.host)
            await tls.handshake()
            return Connection(_terms(origin, account), tls, below)
        except BaseException:
            sock.close()
            raise


def _terms(origin: Origin, account: Account) -> Terms:
    return origin, account.private and origin in account.origins, account.ca_pem
