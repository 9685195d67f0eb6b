"""Real ends for the gateway's tests: TLS servers on loopback with a CA of their own, and a client in the container's
place, which speaks to the action's socket as code in the sandbox could: properly, or in raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import h11

from policies.accounts import Account, Origin
from runtimes.gateway.certificates import Authority
from runtimes.gateway.contract import Observer
from runtimes.gateway.listener import SocketFolder
from runtimes.gateway.plan import Exchange, GatewayPlan, PlannedRequest, Refusal, SentRequest
from runtimes.gateway.plan_check import check_opening
from runtimes.gateway.server import ActionServer
from tests.runtimes.gateway.authority import TestCA as TestCA
from vault.lease import Lease
from vault.secret import Secret

CANARY = "goexcanary-7Qf3+Zr/9xW-2kLmP0aa"
SERVICE = ("demo", "me")


@dataclass(frozen=True)
class Seen:
    """A request as a server under test got it."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


Reply = tuple[int, dict[str, str], bytes] | bytes | None
Answering = Callable[[Seen], Reply]


def ok(seen: Seen) -> Reply:
    return json_reply({"ok": True, "id": "m-1"})


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"content-type": "application/json", **named}, json.dumps(value).encode()


@dataclass
class Server:
    """A server under test. `answer` gives (status, headers, body), raw bytes and a close, or a close."""

    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    answer: Answering = ok


@contextlib.asynccontextmanager
async def serving(
    context: ssl.SSLContext | None, answer: Answering = ok, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Server]:
    server = Server(0, answer=answer)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        with contextlib.suppress(OSError, h11.RemoteProtocolError):
            await _speak(server, reader, writer)
        writer.close()

    listening = await asyncio.start_server(connected, host, port, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


async def _speak(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        http = h11.Connection(h11.SERVER)
        seen: h11.Request | None = None
        body = b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                seen = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and seen is not None:
                break
            else:
                return
        headers = {name.decode(): value.decode() for name, value in seen.headers}
        request = Seen(seen.method.decode(), seen.target.decode(), headers, body)
        server.seen.append(request)
        reply = await asyncio.to_thread(server.answer, request)
        if reply is None or isinstance(reply, bytes):
            writer.write(reply or b"")
            with contextlib.suppress(OSError):
                await writer.drain()
            return
        status, fields, content = reply
        if "transfer-encoding" not in fields:
            fields = {**fields, "content-length": str(len(content))}
        writer.write(http.send(h11.Response(status_code=status, headers=list(fields.items()))) or b"")
        if request.method != "HEAD" and status not in (204, 304):
            writer.write(http.send(h11.Data(data=content)) or b"")
        writer.write(http.send(h11.EndOfMessage()) or b"")
        await writer.drain()


@dataclass
class Watch:
    """An observer that remembers, in order."""

    events: list[tuple[str, Any]] = field(default_factory=list)
    passed: list[tuple[str, SentRequest]] = field(default_factory=list)
    refuse_sending: bool = False
    hold: asyncio.Event | None = None
    server: ActionServer | None = None

    def observer(self) -> Observer:
        async def sending(request: str, text: str, sent: SentRequest | None) -> None:
            if sent is not None:
                self.passed.append((request, sent))
            self.events.append(("sending", (request, text)))
            if self.hold is not None:
                await self.hold.wait()
            if self.refuse_sending:
                raise RuntimeError("the journal is full")

        async def answered(exchange: Exchange) -> None:
            self.events.append(("answered", exchange))

        async def refused(refusal: Refusal) -> None:
            self.events.append(("refused", refusal))

        return Observer(sending=sending, answered=answered, refused=refused)

    @property
    def exchanges(self) -> list[Exchange]:
        return [what for kind, what in self.events if kind == "answered"]

    @property
    def refusals(self) -> list[Refusal]:
        return [what for kind, what in self.events if kind == "refused"]

    @property
    def sent(self) -> list[str]:
        return [what[1] for kind, what in self.events if kind == "sending"]


def account(*origins: Origin, ca_pem: str = "", private: bool = True) -> Account:
    return Account(
        service=SERVICE[0],
        name=SERVICE[1],
        origins=origins,
        base_url=str(origins[0]),
        private=private,
        ca_pem=ca_pem,
    )


def lease(of: Account, action_id: str = "a1", secret: str = CANARY, seconds: float = 600) -> Lease:
    return Lease(
        action_id=action_id,
        account=of,
        secret=Secret(secret),
        expires=datetime.now(UTC) + timedelta(seconds=seconds),
    )


def planned(origin: Origin, **changes: Any) -> PlannedRequest:
    given: dict[str, Any] = {
        "id": "call-0",
        "account": SERVICE,
        "origin": origin,
        "base_path": ("api",),
        "method": "POST",
        "path": ("messages",),
        "body": {"text": "hi"},
        "body_format": "json",
    }
    given.update(changes)
    if given["method"] in ("GET", "DELETE", "HEAD") and "body" not in changes:
        given.update(body=None, body_format="none")
    return PlannedRequest(**given)


def plan(*requests: PlannedRequest, **changes: Any) -> GatewayPlan:
    return GatewayPlan(**{"action_id": "a1", "requests": requests, "seconds": 30.0, **changes})


@dataclass(frozen=True)
class Got:
    """What the container got."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Container:
    """A client at the action's socket. Blocking: call its methods through `asyncio.to_thread`."""

    def __init__(self, folder: str, ca_pem: str) -> None:
        self.socket = f"{folder}/gw.sock"
        self.ca_pem = ca_pem
        self._folder = folder
        self._trust = ssl.create_default_context(cadata=ca_pem)
        self._tunnel: ssl.SSLSocket | None = None

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(300)
        handle = os.open(self._folder, os.O_PATH)
        try:
            sock.connect(f"/proc/self/fd/{handle}/gw.sock")
        finally:
            os.close(handle)
        return sock

    def tunnel(self, host: str, port: int, *, sni: str | None = None, extra: str = "") -> ssl.SSLSocket:
        """CONNECT and handshake. Raises ConnectionRefusedError with the answer when CONNECT isn't granted."""
        sock = self.connect()
        sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{extra}\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(1)
            if not data:
                break
            head += data
        if not head.startswith(b"HTTP/1.1 200"):
            with contextlib.suppress(OSError):
                head += sock.recv(65536)
            sock.close()
            raise ConnectionRefusedError(head.decode())
        trust = self._trust
        if sni is not None and sni != host:
            trust = ssl.create_default_context()
            trust.check_hostname = False
            trust.verify_mode = ssl.CERT_NONE
        return trust.wrap_socket(sock, server_hostname=sni or host)

    def raw(self, data: bytes, host: str = "", port: int = 0) -> bytes:
        """Send bytes, within a tunnel when a host is named; returns everything until the other side closes."""
        sock = self.tunnel(host, port) if host else self.connect()
        with sock:
            with contextlib.suppress(OSError):
                sock.sendall(data)
            got = b""
            with contextlib.suppress(OSError):
                while chunk := sock.recv(65536):
                    got += chunk
                    sock.settimeout(3)  # the first may take long; after it a connection that stays open says no more
            return got

    def request(
        self,
        method: str,
        url: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        keep: bool = False,
    ) -> Got:
        """One request, JSON body. With `keep` the tunnel is kept for the next."""
        origin = Origin.parse(url)
        target = "/" + url.split("://", 1)[1].partition("/")[2]
        host = origin.host if origin.port in (80, 443) else f"{origin.host}:{origin.port}"
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = {"Host": host, "Accept": "*/*", **(headers or {})}
        if data:
            fields.setdefault("Content-Type", "application/json")
            fields["Content-Length"] = str(len(data))
        if origin.scheme == "http":
            sock: socket.socket = self.connect()
            target = url
        elif self._tunnel is not None:
            sock = self._tunnel
        else:
            sock = self.tunnel(origin.host, origin.port)
        self._tunnel = sock if keep and isinstance(sock, ssl.SSLSocket) else None
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        sock.sendall(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + data)
        response = HTTPResponse(sock, method=method)
        try:
            response.begin()
            return Got(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            response.close()
            if not keep:
                sock.close()


@contextlib.asynccontextmanager
async def opened(
    what: GatewayPlan,
    leases: list[Lease],
    run_dir: Path,
    server_type: type[ActionServer] = ActionServer,
) -> AsyncIterator[tuple[Box, Watch]]:
    """One action's server within this process, so that a test can take a part of it away."""
    watch, certificates, place = Watch(), Authority(), SocketFolder(run_dir)
    server = server_type(what, check_opening(what, leases, datetime.now(UTC)), place, certificates, watch.observer())
    watch.server = server
    await server.start()
    try:
        yield Box(Container(str(place.path), certificates.ca_pem)), watch
    finally:
        await server.close()


@dataclass(frozen=True)
class Box:
    """A container whose methods can be awaited."""

    container: Container

    async def request(self, *args: Any, **kwargs: Any) -> Got:
        return await asyncio.to_thread(self.container.request, *args, **kwargs)

    async def raw(self, *args: Any, **kwargs: Any) -> bytes:
        return await asyncio.to_thread(self.container.raw, *args, **kwargs)

    async def tunnel(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        return await asyncio.to_thread(self.container.tunnel, *args, **kwargs)
