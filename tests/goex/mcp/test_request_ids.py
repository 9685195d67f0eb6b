"""Requests whose ids look alike, in one session: each is answered with the id that it was sent with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest

from goex.mcp.request_ids import RequestIds
from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import Daemon

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Wire:
    """A `goex mcp` that is spoken to by lines."""

    def __init__(self, daemon: Daemon, token: str) -> None:
        self._process = mcp.begun(daemon, token)

    def send(self, method: str, params: dict[str, Any] | None = None, **id: Any) -> None:
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", **id, "method": method, **({} if params is None else {"params": params})}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    async def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return dict(json.loads(await asyncio.to_thread(self._process.stdout.readline)))

    async def ended(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await asyncio.to_thread(self._process.wait, 300)


@asynccontextmanager
async def wire(daemon: Daemon, token: str) -> AsyncIterator[Wire]:
    made = Wire(daemon, token)
    made.send("initialize", START, id="begin")
    assert (await made.read())["id"] == "begin"
    made.send("notifications/initialized")
    try:
        yield made
    finally:
        code = await made.ended()
    assert code == 0


def call(text: str) -> dict[str, Any]:
    one = {"method": "slack.chat.postMessage", "arguments": {"channel": "C0123456789", "text": text}}
    return {"name": "goex_call", "arguments": {"calls": [one], "wait_seconds": 50}}


async def the_waiting(daemon: Daemon, count: int) -> set[str]:
    """The actions that wait for the person, once so many do."""
    while True:
        asked = (await asyncio.to_thread(daemon.person, "Approvals", pb.ApprovalsRequest())).approvals
        if len(asked) == count:
            return {each.action_id for each in asked}
        await asyncio.sleep(0.1)


async def test_each_is_answered_with_its_own_id(daemon: Daemon, token: str) -> None:
    async with wire(daemon, token) as spoken:
        for id in (77, "77", 10**30, -1, "", "begin"):
            spoken.send("ping", id=id)
            assert await spoken.read() == {"jsonrpc": "2.0", "id": id, "result": {}}


async def test_a_request_that_is_cancelled_is_no_other(daemon: Daemon, token: str) -> None:
    async with wire(daemon, token) as spoken:
        spoken.send("tools/call", call("one"), id=77)
        (first,) = await the_waiting(daemon, 1)
        spoken.send("tools/call", call("two"), id="77")
        (second,) = await the_waiting(daemon, 2) - {first}
        spoken.send("notifications/cancelled", {"requestId": 77})
        for action in (first, second):
            await mcp.decided(daemon, action, approve=False)
        answered = await spoken.read()
        spoken.send("ping", id="last")
        last = await spoken.read()
    assert (answered["id"], answered["result"]["structuredContent"]["action"]) == ("77", second)
    assert last["id"] == "last"  # the other is answered no more


async def test_the_id_of_one_under_way_is_refused_and_begins_nothing(daemon: Daemon, token: str) -> None:
    async with wire(daemon, token) as spoken:
        spoken.send("tools/call", call("one"), id=78)
        (action,) = await the_waiting(daemon, 1)
        spoken.send("tools/call", call("two"), id=78)
        refused = await spoken.read()
        assert await the_waiting(daemon, 1) == {action}
        await mcp.decided(daemon, action, approve=False)
        answered = await spoken.read()
        spoken.send("ping", id=78)
        assert (await spoken.read())["id"] == 78
    assert (refused["id"], refused["error"]["code"]) == (None, types.INVALID_REQUEST)
    assert (answered["id"], answered["result"]["structuredContent"]["action"]) == (78, action)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("id", [None, 77.0, 1.5, True, [1], {"a": 1}], ids=str)
async def test_a_request_with_no_id_of_the_protocol_is_answered(daemon: Daemon, token: str, id: Any) -> None:
    async with wire(daemon, token) as spoken:
        spoken.send("ping", id=id)
        refused = await spoken.read()
    assert (refused["id"], refused["error"]["code"]) == (None, types.INVALID_REQUEST)


@pytest.mark.parametrize("id", [None, True, 7.5, "1", [1], 2])
def test_what_cancels_nothing_cancels_nothing(id: Any) -> None:
    ids = RequestIds()
    began = ids.read(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
    cancels = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": id})
    passed = ids.read(cancels)
    assert isinstance(began, types.JSONRPCRequest) and isinstance(passed, types.JSONRPCNotification)
    assert passed.params and passed.params["requestId"] != began.id
    answered = ids.written(types.JSONRPCResponse(jsonrpc="2.0", id=began.id, result={}))
    assert isinstance(answered, types.JSONRPCResponse) and answered.id == 1
