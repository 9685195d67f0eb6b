"""Our own accept in front of gRPC, because gRPC doesn't say who is at the other end of a Unix socket.

Each connection's SO_PEERCRED is read and held against the users that this socket is for; then it is joined to gRPC's
private socket from an abstract address with a fresh nonce, which gRPC shows as the peer of every call. A connection to
the private socket that didn't come through here has no such address and is refused (`Registry.peer`). The nonce alone
is no secret: /proc/net/unix shows it, and whoever makes a network namespace can take that address there. So the private
socket has no name in the file system any more once it listens (`private`).

A socket has `MOST_CONNECTIONS`; beyond them not who comes is refused, but a connection ends of whoever has most: looked
at by agent (by user, of those that showed no token), then by process. Of several it is one that doesn't wait for an
answer, idle longest; but who has just come has time to ask for something, as long as few have.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from goex.engine.peers import Peer, look_up
from policies.errors import Unavailable
from runtimes.turns import Counts

log = logging.getLogger("goex.daemon")

_CREDENTIALS = struct.Struct("3i")
_SO_PEERPIDFD = 77  # asm-generic/socket.h, since Linux 6.5
_CHUNK = 64 * 1024  # more would be mapped and unmapped at each reading
_PAUSE = 0.1  # seconds after there was no descriptor for one that came
MOST_CONNECTIONS = 256
FEW_SILENT = 16  # of those that would end next: connections that asked for nothing yet, and are spared
TOLD_EVERY = 600.0  # seconds in which one user is told of once, who may come again at once
_MOST_TOLD = 100  # users that are remembered
_PREFIX = "unix-abstract:goex-"


def private(path: Path) -> str:
    """Take a listening socket's name away, and return an address at which this process alone still reaches it.

    It leads through a descriptor of ours: others of our user can't open those, since the daemon can't be traced.
    """
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    path.unlink()
    return f"/proc/self/fd/{handle}"


@dataclass(slots=True, eq=False)
class Connection:
    """One that was joined, and what was seen of it since. `end` ends it."""

    peer: Peer
    end: Callable[[], object] = lambda: None
    agent: str = ""  # whose token a call showed; "": none did
    asked: bool = False  # whether a call was let in
    calls: int = 0  # that wait for their answers
    idle_since: float = field(default_factory=time.monotonic)

    @property
    def who(self) -> tuple[str, str]:
        """Whose it is: the agent's, or of one without a name its user's; and the process's."""
        return self.agent or f"user {self.peer.uid}", f"{self.peer.pid} {self.peer.started}"

    def answered(self) -> None:
        """One of its calls is over."""
        self.calls -= 1
        self.idle_since = time.monotonic()


def _least_missed(connections: Collection[Connection]) -> Connection:
    """Which of them, oldest first, is to end where there are too many."""
    counts = Counts()
    for one in connections:
        counts.add(one.who)
    most = max(counts.rank(one.who) for one in connections)
    found = [one for one in connections if counts.rank(one.who) == most]
    silent = [one for one in found if not one.asked]
    if len(silent) > FEW_SILENT or len(silent) == len(found):
        return silent[0]
    asked = [one for one in found if one.asked]
    return min((one for one in asked if not one.calls), key=lambda one: one.idle_since, default=asked[-1])


@dataclass(slots=True)
class Registry:
    """The joined connections, and who is behind each."""

    ended: Callable[[str], None]
    _connections: dict[str, Connection] = field(default_factory=dict)

    def peer(self, address: str) -> Peer | None:
        """The peer of a gRPC call, by `context.peer()`; None for one that nobody accepted."""
        found = self.connection(address)
        return found.peer if found else None

    def connection(self, address: str) -> Connection | None:
        """That of a gRPC call, by `context.peer()`; None for one that nobody accepted."""
        return self._connections.get(address.removeprefix(_PREFIX)) if address.startswith(_PREFIX) else None

    def add(self, connection: Connection) -> None:
        self._connections[connection.peer.connection] = connection

    def hang_up(self, address: str) -> None:
        """End the connection of a gRPC call, by `context.peer()`."""
        if (found := self.connection(address)) is not None:
            found.end()

    def drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.peer.connection, None) is not None:
            self.ended(connection.peer.connection)


@dataclass(slots=True)
class Acceptor:
    """One public socket. `uids` may connect; everybody else is closed at once. `refused` is told of it, but seldom: a
    row of the log for each would let whoever is refused fill the disk."""

    path: Path
    kind: Literal["agent", "user"]
    uids: frozenset[int]
    backend: str
    registry: Registry
    refused: Callable[[str], None]
    mode: int = 0o600
    _accepting: asyncio.Task[None] | None = None
    _joined: set[asyncio.Task[None]] = field(default_factory=set)
    _connections: list[Connection] = field(default_factory=list)  # oldest first, without those that are ending
    _told: dict[int, tuple[float, int]] = field(default_factory=dict)  # by user: when; and how many since

    async def start(self) -> None:
        """Listen, replacing a stale socket. Call it only while the daemon's lock is held. Raises Unavailable."""
        try:
            listener = self._listener()
        except OSError as error:
            raise Unavailable(
                f"The socket {self.path} can't be made: {error.strerror}.", next_step="goex doctor"
            ) from error
        self._accepting = asyncio.create_task(self._accept(listener))

    def _listener(self) -> socket.socket:
        if os.path.lexists(self.path):
            if not self.path.is_socket():
                raise Unavailable(f"{self.path} is there and isn't a socket.", next_step="Move it away.")
            self.path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        before = os.umask(0o777)  # nobody can connect before the mode is set
        try:
            listener.bind(str(self.path))
        finally:
            os.umask(before)
        self.path.chmod(self.mode)
        listener.listen(128)
        listener.setblocking(False)
        return listener

    def stop_accepting(self) -> None:
        """Nobody new; who is connected stays, so that the last answers still arrive."""
        if self._accepting is not None:
            self._accepting.cancel()
            with suppress(FileNotFoundError):
                self.path.unlink()

    def hang_up(self) -> None:
        """End every connection."""
        for task in tuple(self._joined):
            task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    front, _ = await loop.sock_accept(listener)
                except OSError:  # too many descriptors, or it broke off meanwhile
                    await asyncio.sleep(_PAUSE)
                    continue
                task = asyncio.create_task(self._accepted(front))
                self._joined.add(task)
                task.add_done_callback(self._joined.discard)

    async def _accepted(self, front: socket.socket) -> None:
        with front:
            pid, uid, gid = _CREDENTIALS.unpack(
                front.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            if uid not in self.uids:
                self._refuse(uid, f"user {uid} (process {pid}) on the {self.kind} socket")
                return
            name, ended = secrets.token_hex(16), asyncio.Event()
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as back:
                back.setblocking(False)
                back.bind(f"\0goex-{name}")
                peer = look_up(self.kind, pid, uid, gid, name)
                if _is_gone(front):  # another may have its number by now, and a terminal
                    peer = replace(peer, terminal=None, program="", started=0)
                connection = Connection(peer, ended.set)
                self.registry.add(connection)
                self._connections.append(connection)
                self._make_room()
                try:
                    await self._join(front, back, ended)
                except OSError as error:
                    log.warning("gRPC's private socket can't be reached: %s", error)
                finally:
                    self.registry.drop(connection)  # before the address is free again
                    with suppress(ValueError):
                        self._connections.remove(connection)

    def _make_room(self) -> None:
        """For each socket: agents never keep the person out."""
        if len(self._connections) > MOST_CONNECTIONS:
            found = _least_missed(self._connections)
            self._connections.remove(found)
            found.end()
            whose = f"{found.agent or 'no agent'} (user {found.peer.uid}, process {found.peer.pid})"
            self._refuse(found.peer.uid, f"a connection of {whose}: {MOST_CONNECTIONS} were on the {self.kind} socket")

    def _refuse(self, uid: int, who: str) -> None:
        now = time.monotonic()
        at, since = self._told.pop(uid, (now - TOLD_EVERY, 0))
        if now - at < TOLD_EVERY:
            self._told[uid] = at, since + 1
            return
        if len(self._told) >= _MOST_TOLD:
            del self._told[next(iter(self._told))]
        self._told[uid] = now, 0
        self.refused(f"{who}; {since} times more since the last time" if since else who)

    async def _join(self, front: socket.socket, back: socket.socket, ended: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(back, self.backend)
        listening, *_ = _CREDENTIALS.unpack(back.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if listening != os.getpid():  # put in the place of ours while it was made
            raise ConnectionRefusedError(f"process {listening} listens there")
        ways = (_Way(loop, front, back, ended.set), _Way(loop, back, front, ended.set))
        try:
            await ended.wait()
        finally:
            for way in ways:
                way.close()


def _is_gone(front: socket.socket) -> bool:
    """Whether the process that connected has ended: others may hold its connection. An older kernel doesn't say."""
    try:
        process = front.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno != errno.ENOPROTOOPT
    try:
        ended = select.poll()
        ended.register(process, select.POLLIN)
        return bool(ended.poll(0))
    finally:
        os.close(process)


class _Way:
    """What one end says goes to the other, and no more is read until all of it was taken. By hand: each event of an
    action passes here, and asyncio's streams take longer for it than gRPC takes to make it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, source: socket.socket, sink: socket.socket, ended: Callable[[], None]
    ) -> None:
        self._loop, self._source, self._sink, self._ended = loop, source, sink, ended
        self._left = memoryview(b"")  # read, and not written yet
        loop.add_reader(source, self._read)

    def close(self) -> None:
        """Nothing passes any more. Idempotent."""
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)

    def _read(self) -> None:
        try:
            data = self._source.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._ended()
        elif not self._taken(memoryview(data)):
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._write_on)

    def _write_on(self) -> None:
        if self._taken(self._left):
            self._loop.remove_writer(self._sink)
            self._loop.add_reader(self._source, self._read)

    def _taken(self, data: memoryview) -> bool:
        """Whether all of it was; what wasn't is `_left`."""
        try:
            self._left = data[self._sink.send(data) :]
        except BlockingIOError:
            self._left = data
        except OSError:
            self._ended()
        return not self._left
