"""The connection between us and process 1 of a container that waits: made once, from inside, to a place that goes.

Rules: the place is a socket in the container's own folder, which nobody else can reach, and it is removed as soon as
process 1 has connected: a job finds nothing to connect to. The kernel says who connected.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

CONTROL = "control"
_PEER = struct.Struct("3i")  # process, user, group


class Place:
    """A socket at `folder`/CONTROL that one connection is made to."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CONTROL
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        # By the folder's descriptor: a socket's path has at most 107 bytes.
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            self.listener.bind(f"/proc/self/fd/{handle}/{CONTROL}")
            self.path.chmod(0o666)  # whoever can see it may connect: process 1, of another user, alone
            self.listener.listen(1)
        except OSError:
            self.listener.close()
            raise
        finally:
            os.close(handle)

    def close(self) -> None:
        """Remove it. Idempotent."""
        self.listener.close()
        self.path.unlink(missing_ok=True)


def peer(stream: socket.socket) -> int:
    """The process that made the connection, as this process numbers it; 0 when it can't be seen from here."""
    return int(_PEER.unpack(stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0])
