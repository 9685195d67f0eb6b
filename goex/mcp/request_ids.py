"""Gives each request on standard input an id of the server's own, and its answer the client's id again.

Rules: 77 and "77" are two requests, which the SDK takes for one: it would cancel the one for the other. A request whose
id is that of one under way is refused, since no answer to it could be told from the other's. A request with an id that
the protocol doesn't have (`null`, 77.0) is answered, where the SDK takes it for a notification and says nothing.
"""

from __future__ import annotations

from itertools import count

import mcp_types as types

NO_ID = types.ErrorData(code=types.INVALID_REQUEST, message="A request's id is a text or a whole number.")
UNDER_WAY = types.ErrorData(
    code=types.INVALID_REQUEST, message="A request with this id is under way. Send each with an id of its own."
)


class RequestIds:
    """The requests that are under way, by the client's ids and by the server's own."""

    def __init__(self) -> None:
        self._new = count(1)
        self._own: dict[types.RequestId, int] = {}
        self._client: dict[int, types.RequestId] = {}

    def read(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage | types.ErrorData:
        """A client's message as the server gets it, or what its client is answered."""
        match message:
            case types.JSONRPCRequest(id=id) if id in self._own:
                return UNDER_WAY
            case types.JSONRPCRequest(id=id):
                own = self._own[id] = next(self._new)
                self._client[own] = id
                return message.model_copy(update={"id": own})
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": id}):
                cancelled = {**(message.params or {}), "requestId": self._cancelled(id)}
                return message.model_copy(update={"params": cancelled})
        return NO_ID if lacks_id(message) else message

    def written(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage | None:
        """A message of the server's as its client gets it. None: nobody waits for it any more."""
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError) or message.id is None:
            return message
        id = self._client.pop(int(message.id), None)
        if id is None:
            return None
        del self._own[id]
        return message.model_copy(update={"id": id})

    def _cancelled(self, id: object) -> int:
        """The own id of a request that its client cancelled, which isn't answered from now on; 0 when there is none."""
        own = self._own.pop(id, 0) if isinstance(id, int | str) and not isinstance(id, bool) else 0
        self._client.pop(own, None)
        return own


def lacks_id(message: types.JSONRPCMessage) -> bool:
    """Whether it is a request with an id that isn't one, or with none."""
    return isinstance(message, types.JSONRPCNotification) and not message.method.startswith("notifications/")
