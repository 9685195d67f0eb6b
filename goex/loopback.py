"""Listening on this machine alone."""

from __future__ import annotations

import errno
import socket

from policies.errors import Unavailable

IPV4 = "127.0.0.1"
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # switched off on this machine


def listening(port: int) -> socket.socket:
    """Return a listening socket on 127.0.0.1; 0: any port that is free. Raises Unavailable."""
    return _bound(socket.AF_INET, IPV4, port)


def listening_on_localhost(port: int) -> list[socket.socket]:
    """Return listening sockets on every address that browsers take `localhost` for, so that nobody else can answer on
    one of them. Raises Unavailable."""
    first = listening(port)
    if not socket.has_ipv6:
        return [first]
    try:
        return [first, _bound(socket.AF_INET6, "::1", first.getsockname()[1])]
    except Unavailable as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_IPV6:
            return [first]
        first.close()
        raise


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise Unavailable(
            f"Port {port} of {address} can't be used: {error.strerror}.", next_step="Name another --port."
        ) from error
    return listener
