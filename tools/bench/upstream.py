"""A service for the measurements, in a process of its own: TLS, keep-alive, the same small answer to everything.

`python -m tools.bench.upstream` prints its port and its authority as one line of JSON, and ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.runtimes.gateway.authority import TestCA

_BODY = b'{"ok": true, "id": "m-1"}'
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where it is, and whom a client must trust for it."""

    port: int
    ca_pem: str

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/api"


def upstream() -> AbstractContextManager[Upstream]:
    """The service, while the block lasts."""
    return run_module(__name__)


@contextmanager
def run_module(name: str) -> Iterator[Upstream]:
    """A service in a process of its own, while the block lasts: the module that says on its output where it is."""
    process = subprocess.Popen([sys.executable, "-m", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Upstream(**json.loads(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


async def _connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
            )
            await reader.readexactly(length)
            writer.write(_ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


async def _serve() -> None:
    authority = TestCA()
    server = await asyncio.start_server(_connected, "127.0.0.1", 0, ssl=authority.context("127.0.0.1"))
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "ca_pem": authority.pem}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
