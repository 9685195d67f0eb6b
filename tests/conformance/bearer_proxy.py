"""Adds an agent's token to each request, for clients that have no place for one: the conformance suite has none.

One request a connection, all else as it came, so that Host, Origin and what streams are what the client sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

# How a connection ends: one of its sides does, or the proxy, whose streams nobody waits for.
ENDS = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError)


@contextlib.asynccontextmanager
async def adding(token: str, port: int) -> AsyncIterator[int]:
    """Serve on a port of 127.0.0.1, which is given, what `port` answers to this token."""

    running: set[asyncio.Task[None] | None] = set()

    async def passed(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        running.add(asyncio.current_task())
        with contextlib.suppress(*ENDS):
            head = await client.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            rest = re.sub(rb"(?im)^connection:[^\r]*\r\n", b"", rest)
            server, out = await asyncio.open_connection("127.0.0.1", port)
            out.write(line + b"\r\nAuthorization: Bearer " + token.encode() + b"\r\nConnection: close\r\n" + rest)
            sending = asyncio.create_task(_copy(client, out))
            await _copy(server, back)
            sending.cancel()
            out.close()
        back.close()

    served = await asyncio.start_server(passed, "127.0.0.1", 0)
    async with served:
        yield served.sockets[0].getsockname()[1]
    for task in running:
        if task is not None:
            task.cancel()
    await asyncio.gather(*filter(None, running), return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
