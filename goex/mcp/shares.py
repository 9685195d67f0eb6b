"""How much of the HTTP server one agent may hold, so that the others get theirs.

Rules: of an agent that has `MOST_OPEN` requests open the next is refused, and half of them may be streams that only
wait; whoever leaves is let through. Of more than `MOST_SESSIONS` sessions the one ends that it has used least recently
and that has no request open. Nothing of another agent's ends, and no agent can keep its own from ending.
"""

from __future__ import annotations

from collections import Counter

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goex.loopback import IPV4

MOST_OPEN = 32  # an eighth of the connections that all together have
MOST_SESSIONS = 64  # as many as the daemon keeps of one agent (`goex.engine.peers`)
PATH = "/mcp"
RETRY_SECONDS = 5


def refused(said: str, status: int) -> Response:
    """What a client reads of a refusal that ends by itself, and shows."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": said}}
    return JSONResponse(error, status_code=status, headers={"Retry-After": str(RETRY_SECONDS)})


class Shares:
    """Passes an agent's requests on to the MCP server, within its share."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = Counter[str]()
        self._streams = Counter[str]()
        self._busy = Counter[str]()  # requests that are open, of each session
        self._sessions: dict[str, dict[str, None]] = {}  # of each agent, in the order in which it used them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            await self._app(scope, receive, send)  # which refuses it
            return
        agent, method = user.access_token.client_id, scope["method"]
        if (refusal := self._refused(agent, method)) is not None:
            await refusal(scope, receive, send)
            return
        sessions = self._sessions.setdefault(agent, {})
        own = Headers(scope=scope).get(MCP_SESSION_ID_HEADER, "")
        held = [(self._open, agent), (self._busy, own), *([(self._streams, agent)] if method == "GET" else [])]

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                named = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if named is not None:
                    sessions.pop(named, None)
                    if method != "DELETE":
                        sessions[named] = None
            await send(message)

        for counter, name in held:
            counter[name] += 1
        try:
            while len(sessions) > MOST_SESSIONS:
                idle = next((each for each in sessions if not self._busy[each]), None)
                if idle is None:
                    break
                del sessions[idle]
                await self._end(scope, idle)
            await self._app(scope, receive, noted)
        finally:
            for counter, name in held:
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]

    def _refused(self, agent: str, method: str) -> Response | None:
        """What an agent that has its share is answered: an error that its client reads, and shows."""
        if method == "GET" and self._streams[agent] >= MOST_OPEN // 2:
            return Response(status_code=405, headers={"Allow": "POST, DELETE"})  # a client goes on without a stream
        if method == "DELETE" or self._open[agent] < MOST_OPEN:
            return None
        return refused(f"{MOST_OPEN} requests of this agent are open. Wait for an answer, or end a client.", 429)

    async def _end(self, scope: Scope, session: str) -> None:
        """End a session of whoever this request is of, as its client would."""
        headers = [(b"host", f"{IPV4}:0".encode()), (MCP_SESSION_ID_HEADER.encode(), session.encode())]

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Message) -> None:
            pass  # it may have ended by itself

        ends = {**scope, "method": "DELETE", "path": PATH, "raw_path": PATH.encode(), "headers": headers}
        await self._app(ends, nothing, unheard)
