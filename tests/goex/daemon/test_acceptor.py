"""The acceptor alone, before a backend of the test's own: who is joined to it, how many, and under which address."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from goex.daemon import acceptor as module
from goex.daemon.acceptor import Acceptor, Connection, Registry
from goex.engine.peers import Peer, Terminal, look_up
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.waiting import until_async

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
        return await asyncio.wait_for(reader.read(1000), 300), writer
    except ConnectionError:
        return b"", writer


@pytest.fixture
def impostor(place: Path) -> Iterator[Path]:
    """Where another process listens."""
    path = place / "theirs.sock"
    with subprocess.Popen([sys.executable, "-c", ECHO, str(path)]) as process:
        yield path
        process.kill()


async def test_whoever_listens_in_our_place_is_told_nothing(place: Path, impostor: Path) -> None:
    """The private socket's name is there for a moment at the start, and another process could take it."""
    await until_async(impostor.exists)
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
        for _ in range(5):
            word, writer = await answered(agents.path)
            assert word == b"hello"
            held.append(writer)
        await until_async(lambda: len(agents._joined) == 3)
        word, writer = await answered(user.path)
        assert word == b"hello" and len(agents._joined) == 3
        for each in (*held, writer):
            each.close()
        await until_async(lambda: not agents._joined)
        word, writer = await answered(agents.path)
        assert word == b"hello"  # who leaves makes room
        writer.close()
    server.close()


def _connection(number: int, *, uid: int = 1, process: int = 0, agent: str = "", calls: int = -1) -> Connection:
    """One of a process of its own; `calls`: that are open, -1: it asked for nothing yet."""
    peer = Peer(
        socket="agent", uid=uid, gid=uid, pid=process or 1000 + number, connection="", terminal=None, program=""
    )
    return Connection(peer, agent=agent, asked=calls >= 0, calls=max(0, calls), idle_since=float(number))


@pytest.mark.promise(16)
def test_of_too_many_one_ends_of_the_agent_and_the_process_that_has_most() -> None:
    flood = [_connection(n, process=7, calls=1) for n in range(60)]
    honest = [_connection(100 + n, process=8, agent="good") for n in range(55)] + [_connection(200, calls=0)]
    assert module._least_missed([*honest, *flood]) in flood
    swarm = [_connection(n, process=300 + n) for n in range(60)]
    assert module._least_missed([*honest, *swarm]) in swarm  # and none of the agent's, whose process has most
    others = [_connection(n, uid=2) for n in range(70)]
    assert module._least_missed([*honest, *swarm, *others]) in others


@pytest.mark.promise(16)
def test_of_equal_ones_who_waits_for_an_answer_goes_last_and_who_has_just_come_is_spared() -> None:
    waits, idle, fresh = _connection(1, calls=1), _connection(2, calls=0), _connection(3)
    assert module._least_missed([waits, idle, _connection(4, calls=0), fresh]) is idle
    later = _connection(5, calls=2)
    assert module._least_missed([waits, later, fresh]) is later
    silent = [_connection(10 + n) for n in range(module.FEW_SILENT + 1)]
    assert module._least_missed([waits, idle, *silent]) is silent[0]
    assert module._least_missed(silent[:2]) is silent[0]


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
    registry.add(known := Connection(peer))
    assert registry.peer(address) is None
    assert registry.peer("unix-abstract:goex-known") == peer  # the control
    registry.drop(known)
    assert registry.peer("unix-abstract:goex-known") is None


# Connects, leaves the connection to a child, and (of "gone") ends.
LEFT = """
import os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
if os.fork() and sys.argv[2] == "gone":
    os._exit(0)
link.recv(1)
"""


@pytest.mark.parametrize("how", ["there", "gone"])
async def test_what_has_the_number_of_a_process_that_ended_is_not_who_connected(
    place: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Else a connection would be at the terminal of whatever gets that number next, which the person may have begun."""
    later = Terminal(device=34816, leader=1, started=2)
    monkeypatch.setattr(
        module, "look_up", lambda *facts: replace(look_up(*facts), terminal=later, program="sh", started=3)
    )
    server = await asyncio.start_unix_server(echo, place / "backend.sock")
    async with accepting(place / "front.sock", place / "backend.sock") as front:
        left = subprocess.Popen([sys.executable, "-c", LEFT, str(front.path), how])  # noqa: ASYNC220 (it blocks on purpose)
        if how == "gone":
            left.wait(300)  # nobody is accepted meanwhile
        await until_async(lambda: front._connections)
        (joined,) = front._connections
        gone = joined.peer.terminal, joined.peer.program, joined.peer.started, joined.peer.process
        assert gone == ((None, "", 0, "") if how == "gone" else (later, "sh", 3, joined.peer.process))
        front.hang_up()
    left.wait(300)
    server.close()


async def test_a_connection_that_ends_is_told_once(place: Path) -> None:
    """What was granted to its session ends with it."""
    backend = place / "backend.sock"
    server = await asyncio.start_unix_server(echo, backend)
    async with accepting(place / "front.sock", backend) as front:
        ended: list[str] = []
        front.registry = Registry(ended.append)
        _, writer = await answered(front.path)
        (connection,) = front.registry._connections
        assert ended == []
        writer.close()
        await until_async(lambda: not front.registry._connections and not front._joined)
        assert ended == [connection]
    server.close()


async def test_what_one_end_does_not_take_is_not_read_from_the_other(place: Path) -> None:
    backend, most = place / "backend.sock", 64 * 2**20
    taken = asyncio.Event()

    async def hesitates(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await taken.wait()
        await echo(reader, writer)

    server = await asyncio.start_unix_server(hesitates, backend)
    async with accepting(place / "front.sock", backend):
        reader, writer = await asyncio.open_unix_connection(place / "front.sock")
        said = os.urandom(2**20)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < most:
                writer.write(said)
                async with asyncio.timeout(1):
                    await writer.drain()
                sent += len(said)
        assert sent < most  # a few buffers of the kernel's and of this test's
        taken.set()
        for _ in range(sent // len(said)):
            assert await reader.readexactly(len(said)) == said
        writer.close()
    server.close()


async def test_what_was_said_before_an_end_arrives(place: Path) -> None:
    """More than a socket holds, for one who reads only then."""
    backend, said = place / "backend.sock", os.urandom(4 * 2**20)

    async def says(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_unix_server(says, backend)
    async with accepting(place / "front.sock", backend):
        reader, writer = await asyncio.open_unix_connection(place / "front.sock", limit=1000)
        await asyncio.sleep(0.3)
        assert await asyncio.wait_for(reader.read(-1), 300) == said
        writer.close()
    server.close()


@pytest.mark.parametrize("whose", ["client", "backend"])
async def test_whoever_breaks_off_ends_both(place: Path, whose: str) -> None:
    """While there is something that it doesn't take."""
    backend = place / "backend.sock"
    gone = asyncio.Event()

    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            if whose == "backend":
                await reader.readexactly(1)
                writer.transport.abort()
            else:
                while True:
                    writer.write(bytes(2**20))
                    await writer.drain()
        gone.set()

    server = await asyncio.start_unix_server(talks, backend)
    async with accepting(place / "front.sock", backend) as front:
        _, writer = await asyncio.open_unix_connection(place / "front.sock", limit=1000)
        if whose == "backend":
            writer.write(bytes(8 * 2**20))
        await asyncio.sleep(0.3)
        if whose == "client":
            writer.transport.abort()
        await asyncio.wait_for(gone.wait(), 300)
        await until_async(lambda: not front._joined and not front.registry._connections)
        writer.close()
    server.close()


def test_grpcs_threads_give_way_to_the_loop(daemon: Daemon) -> None:
    daemon.actions("Whoami", pb.WhoamiRequest())
    threads = {
        int(path.parent.name): path.read_text().strip() for path in Path(f"/proc/{daemon.pid}/task").glob("*/comm")
    }
    theirs = [number for number, name in threads.items() if name == "event_engine"]
    assert theirs
    assert {os.sched_getscheduler(number) for number in theirs} == {os.SCHED_BATCH}
    assert os.sched_getscheduler(daemon.pid) == os.SCHED_OTHER
