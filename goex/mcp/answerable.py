"""Refuses a request over HTTP that the SDK would take and never answer, in a session.

Rules: of two requests under way whose ids the SDK takes for one (77 and "77") it would give the answer of the first to
the second, and let the first wait for ever: the second is refused. So is one with an id that the protocol doesn't have
(`null`, 77.0), which it takes for a notification. A stream has no ids of events, so none is resumed: it begins anew.
Anything else is passed on as it came, and so is what is no message, which the SDK refuses.
"""

from __future__ import annotations

import mcp_types as types
from mcp.server.streamable_http import LAST_EVENT_ID_HEADER, MCP_SESSION_ID_HEADER
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
from mcp.shared.dispatcher import coerce_request_id
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goex.mcp.request_ids import NO_ID, UNDER_WAY, lacks_id


class Answerable:
    """Passes on what can be answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way: set[tuple[str, types.RequestId]] = set()  # session and id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if scope["method"] == "GET":
            kept = [each for each in scope["headers"] if each[0].lower() != LAST_EVENT_ID_HEADER.lower().encode()]
            scope = {**scope, "headers": kept}
        if scope["method"] != "POST" or session is None:
            await self._app(scope, receive, send)
            return
        message, again = await _read(receive)
        if message is not None and lacks_id(message):
            await _refused(NO_ID)(scope, receive, send)
            return
        if not isinstance(message, types.JSONRPCRequest):
            await self._app(scope, again, send)
            return
        own = (session, coerce_request_id(message.id))
        if own in self._under_way:
            await _refused(UNDER_WAY)(scope, receive, send)
            return
        self._under_way.add(own)
        try:
            await self._app(scope, again, send)
        finally:
            self._under_way.discard(own)


async def _read(receive: Receive) -> tuple[types.JSONRPCMessage | None, Receive]:
    """The message of a request's body, if it is one, and the body to be read once more. What is longer than the SDK
    takes isn't read to its end."""
    parts: list[Message] = []
    length, more = 0, True
    while more and length <= DEFAULT_MAX_REQUEST_BODY_SIZE:
        parts.append(await receive())
        length += len(parts[-1].get("body", b""))
        more = parts[-1].get("more_body", False)
    message = None
    if not more:
        try:
            whole = b"".join(part.get("body", b"") for part in parts)
            message = types.jsonrpc_message_adapter.validate_json(whole, by_name=False)
        except ValidationError:
            pass
    parts.reverse()

    async def again() -> Message:
        return parts.pop() if parts else await receive()

    return message, again


def _refused(why: types.ErrorData) -> JSONResponse:
    error = types.JSONRPCError(jsonrpc="2.0", id=None, error=why)
    return JSONResponse(error.model_dump(mode="json", exclude_unset=True), status_code=400)
