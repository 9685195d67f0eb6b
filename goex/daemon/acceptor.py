"""Our own accept in front of gRPC, because gRPC doesn't say who is at the other end of a Unix socket.

Each connection's SO_PEERCRED is read and held against the users that this socket is for; then it is joined to gRPC's
private socket from an abstract address with a fresh nonce, which gRPC shows as the peer of every call. A connection to
the private socket that didn't come through here has no such address and is refused (`Registry.peer`). The nonce alone
is no secret: /proc/net/unix shows it, and whoever makes a network namespace can take that address there. So the private
socket has no name in the file system any more once it listens (`private`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from goex.engine.peers import Peer, look_up
from policies.errors import Unavailable

log = logging.getLogger("goex.daemon")

_CREDENTIALS = struct.Struct("3i")
_CHUNK = 256 * 1024
MOST_CONNECTIONS = 256
_PREFIX = "unix-abstract:goex-"


def private(path: Path) -> str:
    """Take a listening socket's name away, and return an address at which this process alone still reaches it.

    It leads through a descriptor of ours: others of our user can't open those, since the daemon can't be traced.
    """
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    path.unlink()
    return f"/proc/self/fd/{handle}"


@dataclass(slots=True)
class Registry:
    """Who is behind each joined connection."""

    ended: Callable[[str], None]
    _peers: dict[str, Peer] = field(default_factory=dict)

    def peer(self, address: str) -> Peer | None:
        """The peer of a gRPC call, by `context.peer()`; None for one that nobody accepted."""
        if not address.startswith(_PREFIX):
            return None
        return self._peers.get(address.removeprefix(_PREFIX))

    def add(self, peer: Peer) -> None:
        self._peers[peer.connection] = peer

    def drop(self, connection: str) -> None:
        if self._peers.pop(connection, None) is not None:
            self.ended(connection)


@dataclass(slots=True)
class Acceptor:
    """One public socket. `uids` may connect; everybody else is closed at once and told to the log."""

    path: Path
    kind: Literal["agent", "user"]
    uids: frozenset[int]
    backend: str
    registry: Registry
    refused: Callable[[str], None]
    mode: int = 0o600
    _server: asyncio.Server | None = None
    _joined: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Listen, replacing a stale socket. Call it only while the daemon's lock is held. Raises Unavailable."""
        try:
            listener = self._listener()
            self._server = await asyncio.start_unix_server(self._accepted, sock=listener, backlog=128)
        except OSError as error:
            raise Unavailable(
                f"The socket {self.path} can't be made: {error.strerror}.", next_step="goex doctor"
            ) from error

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
        listener.setblocking(False)
        return listener

    def stop_accepting(self) -> None:
        """Nobody new; who is connected stays, so that the last answers still arrive."""
        if self._server is not None:
            self._server.close()
            with suppress(FileNotFoundError):
                self.path.unlink()

    def hang_up(self) -> None:
        """End every connection."""
        for task in tuple(self._joined):
            task.cancel()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._joined.add(task)
        try:
            await self._join(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._joined.discard(task)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        front: socket.socket = writer.get_extra_info("socket")
        pid, uid, gid = _CREDENTIALS.unpack(front.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if uid not in self.uids:
            self.refused(f"user {uid} (process {pid}) on the {self.kind} socket")
            return
        if len(self._joined) > MOST_CONNECTIONS:  # for each socket: agents never keep the person out
            self.refused(f"more than {MOST_CONNECTIONS} connections on the {self.kind} socket")
            return
        connection = secrets.token_hex(16)
        back = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        back.setblocking(False)
        back.bind(f"\0goex-{connection}")
        self.registry.add(look_up(self.kind, pid, uid, gid, connection))
        try:
            await asyncio.get_running_loop().sock_connect(back, self.backend)
            listening, *_ = _CREDENTIALS.unpack(
                back.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            if listening != os.getpid():  # put in the place of ours while it was made
                raise ConnectionRefusedError(f"process {listening} listens there")
            back_reader, back_writer = await asyncio.open_unix_connection(sock=back)
            pumps = {
                asyncio.create_task(_pump(reader, back_writer)),
                asyncio.create_task(_pump(back_reader, writer)),
            }
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                self.registry.drop(connection)  # before the address is free again
                back_writer.close()
        except OSError as error:
            log.warning("gRPC's private socket can't be reached: %s", error)
        finally:
            self.registry.drop(connection)
            back.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
