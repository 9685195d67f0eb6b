"""A port for one test, so that copies of the suite that run at once don't meet at a fixed one."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port on 127.0.0.1 that nobody has just now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
