"""What a client of a session over HTTP sends that the SDK would never answer, and a stream that is to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import pytest

from goex.mcp.answerable import _read
from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import Daemon
from tests.support.waiting import until

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def begun(address: str, token: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that has begun a session."""
    headers = {**ACCEPT, "Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(timeout=300, headers=headers, verify=mcp.NO_AUTHORITY) as client:
        answered = await client.post(address, json=message("initialize", START, id=0))
        client.headers |= {
            "Mcp-Session-Id": answered.headers["mcp-session-id"],
            "Mcp-Protocol-Version": "2025-11-25",
        }
        assert (await client.post(address, json=message("notifications/initialized"))).status_code == 202
        yield client


def message(method: str, params: dict[str, Any] | None = None, **id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **id, "method": method, **({} if params is None else {"params": params})}


async def test_two_ids_that_look_alike_are_never_one_request(daemon: Daemon, address: str, token: str) -> None:
    calls = {"name": "goex_call", "arguments": mcp.LONG}

    def waiting() -> list[pb.Approval]:
        return list(daemon.person("Approvals", pb.ApprovalsRequest()).approvals)

    async with begun(address, token) as client:
        first = asyncio.create_task(client.post(address, json=message("tools/call", calls, id=77)))
        (asked,) = await asyncio.to_thread(until, waiting, "the question")
        for id in (77, "77", "077"):
            refused = await client.post(address, json=message("ping", id=id))
            assert (refused.status_code, refused.json()["id"]) == (400, None)
            assert refused.json()["error"]["code"] == types.INVALID_REQUEST
        assert '"id":78' in (await client.post(address, json=message("ping", id=78))).text
        async with begun(address, token) as other:
            assert '"id":77' in (await other.post(address, json=message("ping", id=77))).text
        await mcp.decided(daemon, asked.action_id, approve=False)
        answered = (await first).text
        again = (await client.post(address, json=message("ping", id="77"))).text
    assert '"id":77' in answered and asked.action_id in answered
    assert '"id":"77"' in again


@pytest.mark.parametrize("id", [None, 77.0, True, [1]], ids=str)
async def test_a_request_with_no_id_of_the_protocol_is_refused(address: str, token: str, id: Any) -> None:
    async with begun(address, token) as client:
        refused = await client.post(address, json=message("ping", id=id))
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, types.INVALID_REQUEST)


async def test_a_stream_that_is_to_go_on_begins_anew(address: str, token: str) -> None:
    async with begun(address, token) as client, client.stream("GET", address, headers={"Last-Event-ID": "5"}) as stream:
        assert (stream.status_code, stream.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")


async def test_what_is_no_message_is_passed_on_as_it_came() -> None:
    parts = [{"type": "http.request", "body": each, "more_body": more} for each, more in ((b"{", True), (b"x", False))]
    coming = iter([*parts, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(coming)

    read, again = await _read(receive)
    assert read is None
    assert [await again() for _ in range(3)] == [*parts, {"type": "http.disconnect"}]


async def test_what_is_too_long_is_not_read_to_its_end() -> None:
    count = 0

    async def receive() -> Any:
        nonlocal count
        count += 1
        return {"type": "http.request", "body": b" " * 1_000_000, "more_body": True}

    read, again = await _read(receive)
    assert (read, count) == (None, 5)
    assert [(await again())["more_body"] for _ in range(6)] == [True] * 6 and count == 6
