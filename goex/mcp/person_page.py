"""How a client is led to the person's page while a question is open: by an address, never by a form.

Rules: the address gives no access, and what a client answers to it settles nothing, since clients answer by program. A
`requestState` names an action that waits; it is sealed by the SDK for one agent, one call's arguments and an hour, and
taken once.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goex.mcp.daemon_link import Caller
from goex.rpc import goex_pb2 as pb

STATE_SECONDS = 3600.0
MOST_STATES = 1000  # of one agent
KEY = "person"
Context = ServerRequestContext[Any, Any]


class States:
    """What `requestState` stands for: actions that wait, each until its state came back, by the agent's token."""

    def __init__(self) -> None:
        self._actions: dict[str, dict[str, str]] = {}

    def issue(self, token: str, action: str) -> str:
        """Return a new state for an action. The agent's oldest ends when it has too many."""
        state, own = secrets.token_urlsafe(24), self._actions.setdefault(token, {})
        own[state] = action
        while len(own) > MOST_STATES:
            own.pop(next(iter(own)))
        return state

    def take(self, token: str, state: str) -> str:
        """Return the action of a state, once. Raises MCPError."""
        action = self._actions.get(token, {}).pop(state, None)
        if action is None:
            raise refused_state()
        return action


def refused_state() -> MCPError:
    """The same as for one that isn't ours, so that a client needs one way to go on."""
    return MCPError(
        code=types.INVALID_PARAMS,
        message="Invalid or expired requestState",
        data={"reason": "invalid_request_state", "next": "goex_actions lists the actions that are under way."},
    )


def boundary(caller_of: Callable[[Context], Caller]) -> RequestStateBoundary:
    """Seals each state that goes out, with a key of this process, and checks each that comes back."""
    security = RequestStateSecurity(
        keys=[secrets.token_bytes(32)],
        ttl=STATE_SECONDS,
        bind_principal=lambda context: hashlib.sha256(caller_of(context).token.encode()).hexdigest(),
    )
    return RequestStateBoundary(security, default_audience="goex")


def modern(context: Context) -> bool:
    """Whether the client speaks a revision without sessions (2026-07-28)."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def opens_addresses(context: Context) -> bool:
    """Whether the client says that it can lead a person to an address."""
    capabilities = context.session.client_capabilities
    return bool(capabilities and capabilities.elicitation and capabilities.elicitation.url is not None)


def asked(view: pb.ActionView) -> dict[str, types.InputRequest]:
    """The address of an open question, as a request for input; empty when there is none."""
    if view.ending.status != "waiting" or not view.ending.page:
        return {}
    return {KEY: types.ElicitRequest(params=_address(view))}


def _address(view: pb.ActionView) -> types.ElicitRequestURLParams:
    return types.ElicitRequestURLParams(message=_message(view), url=view.ending.page, elicitation_id=view.id)


def _message(view: pb.ActionView) -> str:
    return f"{view.id} waits for your answer until {view.ending.deadline}. You answer on GoEx's own page."


async def led(context: Context, view: pb.ActionView) -> None:
    """Ask a client of a revision with sessions to open the address. Whatever it answers is dropped."""
    page = _address(view)
    with suppress(MCPError, asyncio.TimeoutError):
        await context.session.elicit_url(page.message, page.url, view.id, context.request_id)


async def led_no_more(context: Context, view: pb.ActionView) -> None:
    """Tell it that the question is settled."""
    with suppress(MCPError):
        await context.session.send_elicit_complete(view.id, context.request_id)
