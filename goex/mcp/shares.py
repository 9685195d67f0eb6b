"""How much of the HTTP server one agent may hold, so that the others get theirs.

Rules: of an agent that has `MOST_OPEN` requests open the next is refused; of more than `MOST_SESSIONS` sessions the one
ends that it has used least lately. Nothing of another agent's ends, and no agent can keep its own from ending.
"""

from __future__ import annotations

from collections import Counter

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goex.loopback import IPV4

MOST_OPEN = 64  # a quarter of the connections that all together have
MOST_SESSIONS = 256  # of the SDK's 10,000


class Shares:
    """Passes an agent's requests on to the MCP server, within its share."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = Counter[str]()
        self._sessions: dict[str, dict[str, None]] = {}  # of each agent, in the order in which it used them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            await self._app(scope, receive, send)  # which refuses it
            return
        agent = user.access_token.client_id
        if self._open[agent] >= MOST_OPEN:
            said = f"{MOST_OPEN} requests of this agent are open. Wait for an answer, or close a stream."
            await PlainTextResponse(said, 429)(scope, receive, send)
            return
        sessions = self._sessions.setdefault(agent, {})

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                named = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if named is not None:
                    sessions.pop(named, None)
                    sessions[named] = None
            await send(message)

        self._open[agent] += 1
        try:
            while len(sessions) > MOST_SESSIONS:
                oldest = next(iter(sessions))
                del sessions[oldest]
                await self._end(scope, oldest)
            await self._app(scope, receive, noted)
        finally:
            self._open[agent] -= 1

    async def _end(self, scope: Scope, session: str) -> None:
        """End a session of whoever this request is of, as its client would."""
        headers = [(b"host", f"{IPV4}:0".encode()), (MCP_SESSION_ID_HEADER.encode(), session.encode())]

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Message) -> None:
            pass  # it may have ended by itself

        await self._app({**scope, "method": "DELETE", "headers": headers}, nothing, unheard)
