"""Attacks by another user of the machine on the page's connections. Each is one that asks for nothing."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
import uvicorn

from goex import http_connections as connections
from goex.http_connections import Connection
from goex.loopback import listening
from tests.support.daemon import Daemon
from tests.support.page import page_of

FILES = 512  # that a process may have open
GET = b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n"


@pytest.mark.promise(86)
def test_the_page_answers_while_another_user_holds_more_connections_than_it_may_have_files_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * FILES), hard))
    with Daemon() as daemon, ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        page = stack.enter_context(page_of(daemon))
        resource.prlimit(page.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        host, port = page.origin.partition("://")[2], page.port
        for _ in range(FILES + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 300))
        with socket.create_connection(("127.0.0.1", port), 300) as mine:
            mine.settimeout(300)
            mine.sendall(GET % host.encode())
            assert mine.recv(100).startswith(b"HTTP/1.1 200 ")


class Paced:
    """An application that answers `/` at once, and otherwise a line whenever it is told to."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"transfer-encoding", b"chunked")]})
        while scope["path"] != "/":
            await self.next.wait()
            self.next.clear()
            await send({"type": "http.response.body", "body": b"line\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"end\n"})


@asynccontextmanager
async def serving(app: Paced) -> AsyncIterator[int]:
    listener = listening(0)
    config = uvicorn.Config(
        app, http=Connection, ws="none", lifespan="off", log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listener]))
        yield int(listener.getsockname()[1])
        server.should_exit = True
    listener.close()


UNFINISHED = {
    "nothing": b"",
    "half a head": b"POST /x HTTP/1.1\r\nHost: localh",
    "half a body": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "half a second one": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
}


@pytest.mark.promise(86)
@pytest.mark.parametrize("sent", UNFINISHED)
async def test_a_connection_without_a_whole_request_ends_and_a_stream_goes_on(
    sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SECONDS", 0.3)
    app = Paced()
    async with asyncio.timeout(30), serving(app) as port:
        reads, writes = await asyncio.open_connection("127.0.0.1", port)
        writes.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reads.readuntil(b"\r\n\r\n")
        idle, sends = await asyncio.open_connection("127.0.0.1", port)
        sends.write(UNFINISHED[sent])
        await idle.read()  # to its end, which is of the page's making
        app.next.set()
        assert await reads.readuntil(b"line\n")  # this one is older
        writes.close()
        sends.close()
        app.next.set()


@pytest.mark.promise(86)
async def test_of_too_many_the_one_ends_that_was_waited_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    app = Paced()
    async with asyncio.timeout(30), serving(app) as port:
        reads, writes = await asyncio.open_connection("127.0.0.1", port)
        writes.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reads.readuntil(b"\r\n\r\n")
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        last, sends = await asyncio.open_connection("127.0.0.1", port)
        sends.write(GET % b"localhost")
        assert b"end" in await last.readuntil(b"end\n")
        assert await held[0][0].read() == b""
        held[1][1].write(GET % b"localhost")  # the control: the other one is there
        assert b"end" in await held[1][0].readuntil(b"end\n")
        app.next.set()
        assert await reads.readuntil(b"line\n")
        for each in (writes, sends, *(one for _, one in held)):
            each.close()
        app.next.set()


async def test_a_head_of_very_many_lines_is_refused_and_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    wait = Connection._wait
    monkeypatch.setattr(Connection, "_wait", lambda self: (made.append(self), wait(self))[1])
    head = GET.removesuffix(b"\r\n") % b"localhost"
    async with asyncio.timeout(30), serving(Paced()) as port:
        reads, writes = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writes.write(head + b"a:\r\n" * 200 + b"\r\n")
            assert b"200 OK" in await reads.readuntil(b"end\n")
            assert made[-1].scope is made[-1].headers is made[-1].cycle.scope is None
        writes.write(head + b"a:\r\n" * 300 + b"\r\n")
        assert b" 400 " in await reads.read()  # to its end
        writes.close()
