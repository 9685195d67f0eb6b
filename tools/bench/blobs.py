"""A service of large bodies for the measurements, in a process of its own: TLS, one thread a connection.

GET …/blob/N answers with N bytes that can't be compressed; POST …/sink takes a body and says how long it was.
`python -m tools.bench.blobs` prints its port and its authority as one line of JSON, and ends with its input.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import threading
from contextlib import AbstractContextManager

from tests.runtimes.gateway.authority import TestCA
from tools.bench.upstream import Upstream, run_module

_BLOCK = 262_144


def blobs() -> AbstractContextManager[Upstream]:
    """The service, while the block lasts."""
    return run_module(__name__)


def _answer(connection: socket.socket, context: ssl.SSLContext, blob: bytes) -> None:
    buffer = bytearray(_BLOCK)
    try:
        with context.wrap_socket(connection, server_side=True) as tls:
            head = b""
            while True:
                while b"\r\n\r\n" not in head:
                    data = tls.recv(65536)
                    if not data:
                        return
                    head += data
                line, _, rest = head.partition(b"\r\n")
                fields, _, head = rest.partition(b"\r\n\r\n")
                method, target, _ = line.split(b" ")
                if method == b"GET":
                    size = int(target.rpartition(b"/")[2])
                    kind = b"application/octet-stream"
                    tls.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (kind, size))
                    while size > 0:
                        tls.sendall(memoryview(blob)[: min(size, _BLOCK)])
                        size -= _BLOCK
                    continue
                length = int(
                    next(field[15:] for field in fields.split(b"\r\n") if field.lower()[:14] == b"content-length")
                )
                left = length - len(head)
                head = b""
                while left > 0:
                    left -= tls.recv_into(buffer, min(left, _BLOCK))
                body = b'{"length": %d}' % length
                tls.sendall(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                    % (len(body), body)
                )
    except OSError:
        pass


def _serve() -> None:
    authority, blob = TestCA(), os.urandom(_BLOCK)
    context = authority.context("127.0.0.1", "localhost")
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listener.getsockname()[1], "ca_pem": authority.pem}), flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_answer, args=(connection, context, blob), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
