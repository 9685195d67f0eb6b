"""Peers that send without end: whoever else uses the gateway's process is answered, and what is closed ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.accounts import Origin
from runtimes.gateway import client as gateway_client
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.report import MAX_REFUSALS
from runtimes.gateway.streams import SocketStream
from runtimes.sandbox import engine
from tests.runtimes.gateway.proxied import BEARER, answering, proxied, rules
from tests.runtimes.gateway.running import HI, Up, begin, client_fixture, upstream_fixture  # noqa: F401  fixtures
from tests.runtimes.gateway.support import Box, Container, Watch, account, lease
from tests.support.freezing import freeze
from tests.support.waiting import SECONDS, until_async

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_FLOODS = {
    "content": (_HEAD + b"\r\n", b"x" * 65_536),  # the control
    "interim answers": (b"", b"HTTP/1.1 103 \r\n\r\n" * 4000),
    "extensions of chunks": (_CHUNKED, (b"1;" + b"a" * 4000 + b"\r\nx\r\n") * 60),
    "small chunks": (_CHUNKED, b"1\r\nx\r\n" * 40_000),
}


@contextlib.contextmanager
def _flooding(first: bytes, then: bytes) -> Iterator[tuple[Origin, threading.Event]]:
    """A service that answers a request for /api/quick; all others without end, which the event tells of."""
    under_way = threading.Event()

    def serve(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(4096)
            if b"/quick" in head:
                sock.sendall(_OK)
                return
            try:
                sock.sendall(first)
                for number in range(10**9):
                    sock.sendall(then)
                    if number == 8:
                        under_way.set()
            finally:
                under_way.set()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield Origin("http", "127.0.0.1", listening.getsockname()[1]), under_way
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _drink(container: Container, origin: Origin) -> None:
    """Ask for the flood, and read it to its end."""
    with container.connect() as sock, contextlib.suppress(OSError):
        sock.settimeout(None)
        sock.sendall(_request(origin, "flood"))
        while sock.recv(2**20):
            pass


def _request(origin: Origin, name: str) -> bytes:
    fields = "".join(f"{key}: {value}\r\n" for key, value in BEARER.items())
    return f"GET {origin}/api/{name} HTTP/1.1\r\nHost: {origin.host}:{origin.port}\r\n{fields}\r\n".encode()


@pytest.mark.parametrize("kind", _FLOODS)
async def test_others_are_answered_while_a_service_sends_without_end(client: GatewayClient, kind: str) -> None:
    with _flooding(*_FLOODS[kind]) as (origin, under_way):
        folders = [
            await client.open(
                dataclasses.replace(rules(origin), action_id=action_id),
                [lease(account(origin), action_id)],
                Watch().observer(),
            )
            for action_id in ("a1", "a2")
        ]
        flooded, other = (Container(folder, client.ca_pem) for folder in folders)
        pid = client.pid
        drinking = asyncio.create_task(asyncio.to_thread(_drink, flooded, origin))
        await until_async(under_way.is_set, "the flood")
        for _ in range(3):
            got = await Box(other).request("GET", f"{origin}/api/quick", headers=BEARER)
            assert (got.status, got.body) == (200, b"hi")
        await client.close("a1")
        await drinking
        assert client.pid == pid


@pytest.mark.parametrize(("interim", "status"), [(16, 200), (17, 502)])
async def test_so_many_interim_answers_are_read(tmp_path: Path, interim: int, status: int) -> None:
    answer = b"HTTP/1.1 103 \r\n\r\n" * interim + _OK
    async with proxied(answering(answer, goes_on=False), tmp_path, plain=True) as (box, watch, said):
        got = await box.request("GET", f"{said.origin}/api/a", headers=BEARER)
    assert got.status == status
    assert ("interim" in watch.exchanges[0].failed) == (status == 502)


async def test_the_last_refusal_that_is_reported_ends_the_connection(tmp_path: Path) -> None:
    async with proxied(answering(_OK), tmp_path, plain=True) as (box, watch, said):

        def ask(times: int) -> bytes:
            got = b""
            with box.container.connect() as sock:
                sock.sendall(_request(said.origin, "").replace(b"/api/", b"/nothing") * times)
                with contextlib.suppress(ConnectionResetError):
                    while data := sock.recv(2**16):
                        got += data
            return got

        assert (await asyncio.to_thread(ask, MAX_REFUSALS + 50)).count(b"HTTP/1.1 ") == MAX_REFUSALS
        assert (await asyncio.to_thread(ask, 5)).count(b"HTTP/1.1 409 ") == 1
    assert len(watch.refusals) == MAX_REFUSALS


async def test_a_gateway_that_does_not_answer_is_ended(
    client: GatewayClient, upstream: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = client.pid
    for action_id in ("a0", "a1"):
        await begin(client, upstream, Watch(), action_id)
    await client.close("a0")
    assert client.pid == pid is not None  # the control: one that answers goes on
    freeze(pid)
    with monkeypatch.context() as patched:
        patched.setattr(gateway_client, "_ANSWER_SECONDS", 0.1, raising=False)
        await asyncio.wait_for(client.close("a1"), SECONDS)
    await until_async(lambda: not Path(f"/proc/{pid}").exists(), "its end")
    box, _ = await begin(client, upstream, Watch(), "a2")
    assert (await box.request("POST", f"{upstream[1]}/api/messages", HI)).status == 200


async def test_what_is_there_is_read_with_turns_for_others() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.setblocking(False)
        stream = SocketStream(_blocked(one))

        def fill() -> None:
            with contextlib.suppress(BlockingIOError):
                while other.send(bytes(4096)):
                    pass

        for _ in range(10_000):
            fill()
            if stream.ready() is None:
                break
        else:
            raise AssertionError("it reads without end")
        fill()
        await stream.readable()
        assert stream.ready()


async def test_output_of_a_container_is_read_with_turns_for_others() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"x")
        turn: list[int] = []
        loop = asyncio.get_running_loop()
        loop.call_soon(turn.append, 1)
        assert await engine.receive(loop, _blocked(one)) == b"x"
        assert turn


def _blocked(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock
