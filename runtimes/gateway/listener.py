"""Where code connects: so many at once, and the next when one of them has left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

MAX_CODE_CONNECTIONS = 64
_PAUSE = 0.1  # seconds after there was no descriptor for one that came


class Doorway:
    """Takes connections from `listener`, which is its own from now on. `enter` gets each; call `left` when it ends."""

    def __init__(self, listener: socket.socket, enter: Callable[[socket.socket], None]) -> None:
        self._listener, self._enter = listener, enter
        self._loop = asyncio.get_running_loop()
        self._places = MAX_CODE_CONNECTIONS
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
