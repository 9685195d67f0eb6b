"""An action's socket: where it lies, and who connects to it.

It lies in a folder of its own, with a name that can't be guessed, in a folder closed to others. The container's uid is
any, so folder and socket let everyone through; the parent, which the container never sees, lets nobody through but its
owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from runtimes.gateway.contract import GatewayFailed

MAX_CONNECTIONS = 64
_PAUSE = 0.1  # seconds after there was no descriptor for one that came
SOCKET = "gw.sock"
_PREFIX = "gw-"
_LONGEST = 100  # bytes; the kernel's limit for a socket's path is 107


def private_folder(path: Path) -> Path:
    """Make `path`, or check that it is a folder of ours that nobody else can enter. Raises GatewayFailed."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise GatewayFailed(f"The gateway's folder {path} can't be made: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise GatewayFailed(
            f"The gateway's folder {path} isn't a private folder of this user.", next_step=f"Remove {path}."
        )
    return path


def sweep(run_dir: Path) -> None:
    """Remove what an earlier gateway left there."""
    for folder in run_dir.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


class SocketFolder:
    """One action's folder. Made at once."""

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / (_PREFIX + secrets.token_hex(16))
        self.path.mkdir(mode=0o700)

    def listen(self) -> socket.socket:
        """The bound and listening socket; anyone who reaches it may connect."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        name = self.path / SOCKET
        if len(os.fsencode(name)) <= _LONGEST:
            listener.bind(str(name))
        else:
            handle = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                listener.bind(f"/proc/self/fd/{handle}/{SOCKET}")
            finally:
                os.close(handle)
        name.chmod(0o666)
        self.path.chmod(0o711)
        listener.listen(128)  # code may open many connections at once; beyond this a connect fails at once
        listener.setblocking(False)
        return listener

    def remove(self) -> None:
        """Idempotent."""
        with contextlib.suppress(OSError):
            (self.path / SOCKET).unlink()
        with contextlib.suppress(OSError):
            self.path.rmdir()


class Listener:
    """Takes connections from `listener`, which is its own from now on: so many at once, the next when one has ended.

    `enter` gets each; call `left` when it ends."""

    def __init__(self, listener: socket.socket, enter: Callable[[socket.socket], None]) -> None:
        self._listener, self._enter = listener, enter
        self._loop = asyncio.get_running_loop()
        self._places = MAX_CONNECTIONS
        self._closed = False
        self._open()

    def left(self) -> None:
        """One of those that entered has ended."""
        self._places += 1
        if self._places == 1:
            self._open()

    def close(self) -> None:
        """Take no more. Idempotent."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener)
            self._listener.close()

    def _open(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # too many descriptors, or it broke off meanwhile
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_PAUSE, self._open)
            return
        accepted.setblocking(False)
        self._places -= 1
        if not self._places:
            self._loop.remove_reader(self._listener)
        self._enter(accepted)
