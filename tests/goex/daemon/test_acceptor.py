"""The acceptor alone, before a backend of the test's own: who is joined to it, how many, and under which address."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goex.daemon import acceptor as module
from goex.daemon.acceptor import Acceptor, Registry
from goex.engine.peers import look_up

# A backend: what it is told, it says again.
ECHO = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(5)
while True:
    near, _ = listener.accept()
    while data := near.recv(1000):
        near.sendall(data)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:
        yield Path(name)


@asynccontextmanager
async def accepting(path: Path, backend: Path, uids: frozenset[int] | None = None) -> AsyncIterator[Acceptor]:
    refused: list[str] = []
    found = frozenset({os.geteuid()}) if uids is None else uids
    made = Acceptor(path, "agent", found, str(backend), Registry(lambda _: None), refused.append)
    await made.start()
    try:
        yield made
    finally:
        made.stop_accepting()
        made.hang_up()
        await asyncio.sleep(0)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
    writer.close()


async def answered(path: Path) -> tuple[bytes, asyncio.StreamWriter]:
    """What a client gets back for a word; nothing when it is closed."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"hello")
    try:
        return await asyncio.wait_for(reader.read(1000), 10), writer
    except ConnectionError:
        return b"", writer


@pytest.fixture
def impostor(place: Path) -> Iterator[Path]:
    """Where another process listens."""
    path = place / "theirs.sock"
    with subprocess.Popen([sys.executable, "-c", ECHO, str(path)]) as process:
        yield path
        process.kill()


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("It didn't come about in time.")


async def test_whoever_listens_in_our_place_is_told_nothing(place: Path, impostor: Path) -> None:
    """The private socket's name is there for a moment at the start, and another process could take it."""
    await until(impostor.exists)
    async with accepting(place / "front.sock", impostor):
        word, writer = await answered(place / "front.sock")
        assert word == b""
        writer.close()
    ours = place / "ours.sock"
    server = await asyncio.start_unix_server(echo, ours)
    async with accepting(place / "other.sock", ours):  # the control: a backend of our own
        word, writer = await answered(place / "other.sock")
        assert word == b"hello"
        writer.close()
    server.close()


async def test_each_socket_has_its_own_number_of_connections(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    backend = place / "backend.sock"
    server = await asyncio.start_unix_server(echo, backend)
    async with accepting(place / "agents.sock", backend) as agents, accepting(place / "user.sock", backend) as user:
        user.registry = agents.registry  # as in the daemon
        held = []
        for _ in range(3):
            word, writer = await answered(agents.path)
            assert word == b"hello"
            held.append(writer)
        for _ in range(2):
            word, writer = await answered(agents.path)
            assert word == b""
            writer.close()
        word, writer = await answered(user.path)
        assert word == b"hello"
        for each in (*held, writer):
            each.close()
        await until(lambda: not agents._joined)
        word, writer = await answered(agents.path)
        assert word == b"hello"  # who leaves makes room
        writer.close()
    server.close()


async def test_another_user_is_closed_before_a_word(place: Path) -> None:
    backend = place / "backend.sock"
    server = await asyncio.start_unix_server(echo, backend)
    async with accepting(place / "front.sock", backend, frozenset({os.geteuid() + 1})):
        word, writer = await answered(place / "front.sock")
        assert word == b""
        writer.close()
    server.close()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "unix:",
        "unix:/tmp/x",
        "unix-abstract:",
        "unix-abstract:goex-",
        "unix-abstract:goex-ffff",
        "known",
        "goex-known",
    ],
)
def test_an_address_that_nobody_was_given_is_nobodys(address: str) -> None:
    registry = Registry(lambda _: None)
    peer = look_up("user", os.getpid(), os.geteuid(), os.getegid(), "known")
    registry.add(peer)
    assert registry.peer(address) is None
    assert registry.peer("unix-abstract:goex-known") == peer  # the control
    registry.drop("known")
    assert registry.peer("unix-abstract:goex-known") is None


async def test_a_connection_that_ends_is_told_once(place: Path) -> None:
    """What was granted to its session ends with it."""
    backend = place / "backend.sock"
    server = await asyncio.start_unix_server(echo, backend)
    async with accepting(place / "front.sock", backend) as front:
        ended: list[str] = []
        front.registry = Registry(ended.append)
        _, writer = await answered(front.path)
        (connection,) = front.registry._peers
        assert ended == []
        writer.close()
        await until(lambda: not front.registry._peers and not front._joined)
        assert ended == [connection]
    server.close()
