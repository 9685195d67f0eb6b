"""Attacks by messages that are almost MCP, sent by hand to `goex mcp --http`: none begins an action, ends another's
session or the server. The control is the message that each was made of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon
from tests.adversarial.test_mcp import HEADERS, POST, address, initialize, tokens
from tests.support import mcp
from tests.support.daemon import Daemon

__all__ = ["address", "daemon", "tokens"]

CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "goex_call", "arguments": {"calls": [POST], "wait_seconds": 0}},
}


def _with(**changed: Any) -> str:
    return json.dumps({**CALL, **changed})


# What is sent in the first agent's session.
MUTATIONS: dict[str, str | bytes] = {
    "several-at-once": json.dumps([CALL, CALL]),
    "another-version": _with(jsonrpc="1.0"),
    "parameters-in-a-list": _with(params=["goex_call", CALL["params"]["arguments"]]),
    "id-of-nothing": _with(id=None),
    "id-between-numbers": _with(id=1.5),
    "id-of-an-object": _with(id={"a": 1}),
    "progress-of-an-object": _with(params={**CALL["params"], "_meta": {"progressToken": {"a": 1}}}),
    "method-in-other-letters": _with(method="tools/Call"),
    "wide-letters": _with().encode("utf-16"),
    "answer-to-no-question": json.dumps({"jsonrpc": "2.0", "id": 1, "result": CALL["params"]}),
}
# What another agent does with that session: a method of HTTP.
FOREIGN: dict[str, str] = {"session-ended-by-another": "DELETE", "session-followed-by-another": "GET"}


@dataclass(frozen=True, slots=True)
class Line:
    """A session of the first agent's."""

    daemon: Daemon
    address: str
    tokens: tuple[str, str]
    session: str
    client: httpx2.AsyncClient

    async def send(self, body: str | bytes, *, method: str = "POST", token: str = "") -> httpx2.Response:
        headers = {**HEADERS, "Authorization": f"Bearer {token or self.tokens[0]}", "Mcp-Session-Id": self.session}
        if method == "GET":
            headers["Accept"] = "text/event-stream"
        data = body.encode() if isinstance(body, str) else body
        return await self.client.request(method, self.address, content=data, headers=headers)

    def actions(self) -> dict[str, str]:
        """Every action, and how it stands."""
        found = self.daemon.actions("List", pb.ListRequest(limit=500), socket=self.daemon.user_socket).actions
        return {one.id: one.state for one in found}

    async def lives(self) -> bool:
        answer = await self.send(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "ping"}))
        return answer.status_code == 200


@pytest.fixture
async def line(daemon: Daemon, address: str, tokens: tuple[str, str]) -> AsyncIterator[Line]:
    begun = await initialize(address, tokens[0])
    async with httpx2.AsyncClient(timeout=300, verify=mcp.NO_AUTHORITY) as client:
        made = Line(daemon, address, tokens, begun.headers["mcp-session-id"], client)
        await made.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        yield made


async def changed(line: Line, do: Callable[[], Any]) -> bool:
    """Whether it begins or ends an action, or the session."""
    before = line.actions()
    await do()
    return line.actions() != before or not await line.lives()


@pytest.mark.promise(3)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTATIONS)
async def test_mutated(line: Line, name: str) -> None:
    assert not await changed(line, lambda: line.send(MUTATIONS[name]))


@pytest.mark.promise(10)
@pytest.mark.parametrize("name", FOREIGN)
async def test_of_another(line: Line, name: str) -> None:
    assert not await changed(line, lambda: line.send(b"", method=FOREIGN[name], token=line.tokens[1]))


async def test_cancelled_when_it_was_answered(line: Line) -> None:
    """The action waits on: it is ended by goex_cancel, not by a notice about a request that has its answer."""
    await line.send(_with())
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": CALL["id"]}}
    assert not await changed(line, lambda: line.send(json.dumps(cancelled)))


async def test_control(line: Line) -> None:
    assert await changed(line, lambda: line.send(_with()))


async def test_control_of_its_own(line: Line) -> None:
    assert await changed(line, lambda: line.send(b"", method="DELETE"))
