"""Connections to the page, and to the MCP server: no stranger's hold up the person's, nor an agent's.

Rules: one without a whole request ends soon. Of more than `MOST` the one ends whose peer has let it wait longest, for a
request or by not reading the answer; one that is being answered never does. Every user of the machine can connect.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

import policies.http_heads  # noqa: F401  # it mends h11, by which uvicorn reads

SECONDS = 10.0  # for the first request, and for each one after an answer
MOST = 256  # far from the files that a process may have open
BACKLOG = 64  # of those the kernel holds: asyncio takes all of them at once, before any is counted


class Connection(H11Protocol):
    """One of HTTP/1.1, which doesn't wait for its peer for ever."""

    _waiting_since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST:
            idle = [one for one in self.connections if isinstance(one, Connection) and one.is_idle]
            longest = min(idle, key=lambda one: one._waiting_since)  # there is one: this, which was just made
            longest.transport.abort()
            self.connections.discard(longest)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._wait()
        self.scope = self.headers = self.cycle.scope = None  # type: ignore[assignment]  # the head may be large
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether what comes next, a request or reading an answer, is up to the peer."""
        return self._has_no_request or self.flow.write_paused

    @property
    def _has_no_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting_since = self.loop.time()
        self._timer = self.loop.call_later(SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        if self._has_no_request:
            self.transport.close()  # once its peer has read the answer to its last one
