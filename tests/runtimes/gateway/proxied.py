"""Rules for a server under test that says exactly what a test wants, piece by piece, and a client that reads it so."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policies.accounts import Origin
from runtimes.gateway.plan import GatewayPlan, MethodRule, Slot
from runtimes.gateway.server import ActionServer
from tests.runtimes.gateway.support import CANARY, SERVICE, Box, TestCA, Watch, account, lease, opened

MARK = "demo-goex-demo-me-0123456789abcdefghijkl"
BEARER = {"Authorization": f"Bearer {MARK}"}


@dataclass
class Line:
    """One connection as the server has it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended: asyncio.Event

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Handler = Callable[[bytes, Line], Awaitable[bool | None]]


@dataclass
class Said:
    """The server: what it was asked, and how often it was connected to."""

    origin: Origin
    ca_pem: str
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@contextlib.asynccontextmanager
async def server(handler: Handler, *, plain: bool = False) -> AsyncIterator[Said]:
    """`handler(head, line)` is called for each request; what it returns says whether the connection goes on."""
    ca = TestCA()
    context: ssl.SSLContext | None = None if plain else ca.context("localhost")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.connections += 1
        line = Line(reader, writer, said.ended)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                said.heads.append(head)
                if not await handler(head, line):
                    break
        said.ended.set()
        with contextlib.suppress(OSError):
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    said = Said(Origin("http" if plain else "https", "localhost", port), "" if plain else ca.pem)
    try:
        yield said
    finally:
        listening.close()


def answering(data: bytes, *, goes_on: bool = True) -> Handler:
    async def handler(head: bytes, line: Line) -> bool:
        await read_body(head, line.reader)
        await line.say(data)
        return goes_on

    return handler


async def read_body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    """A request's body, as its head frames it."""
    fields = {
        name.lower(): value.strip()
        for name, _, value in (one.partition(b":") for one in head.split(b"\r\n")[1:] if one)
    }
    if b"content-length" in fields:
        return await reader.readexactly(int(fields[b"content-length"]))
    body = b""
    while b"transfer-encoding" in fields:
        size = int(await reader.readuntil(b"\r\n"), 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if not size:
            break
    return body


def rules(origin: Origin, **changes: Any) -> GatewayPlan:
    """Everything below /api, read and written, one rule a method."""
    common: dict[str, Any] = {"account": SERVICE, "origin": origin, "base_path": ("api",)}
    common["path"] = (Slot("rest", many=True),)
    live, seconds = changes.pop("websocket", False), changes.pop("seconds", 60.0)
    made = tuple(
        MethodRule(
            id=f"rule-{number}", method_id=f"demo.{method.lower()}", method=method,
            websocket=live and method == "GET", **{"read": method in ("GET", "HEAD"), **common, **changes},
        )
        for number, method in enumerate(("GET", "POST", "HEAD", "PUT"))
    )  # fmt: skip
    return GatewayPlan(action_id="a1", rules=made, placeholders={MARK: SERVICE}, seconds=seconds)


@contextlib.asynccontextmanager
async def proxied(
    handler: Handler,
    run_dir: Path,
    *,
    secret: str = CANARY,
    server_type: type[ActionServer] = ActionServer,
    plain: bool = False,
    **changes: Any,
) -> AsyncIterator[tuple[Box, Watch, Said]]:
    """A server, an action by rules within this process, and a client in the container's place."""
    async with server(handler, plain=plain) as said:
        leases = [lease(account(said.origin, ca_pem=said.ca_pem), secret=secret)]
        async with opened(rules(said.origin, **changes), leases, run_dir, server_type) as (box, watch):
            yield box, watch, said
