"""One agent floods `goex mcp --http` with open streams and with sessions, and another one is answered all the same. The
server is the real one; in the daemon's place is what knows two agents."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from goex.loopback import listening
from goex.mcp import person_page, shares, transports
from goex.mcp.daemon_link import Caller
from goex.mcp.server import Door, server
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
OPENS: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


class Link:
    """A daemon that knows whose the tokens are, and nothing else."""

    async def call(self, method: str, request: object, reply: object, caller: Caller) -> pb.WhoamiReply:
        if caller.token not in ("one", "two"):
            raise Denied("Nobody has this token.")
        return pb.WhoamiReply(agent=caller.token)


@dataclass(frozen=True)
class Line:
    """Requests of either agent, by hand."""

    address: str
    client: httpx2.AsyncClient

    def headers(self, agent: str, session: str = "", **more: str) -> dict[str, str]:
        own = {"Mcp-Session-Id": session} if session else {}
        accept = {"Accept": "application/json, text/event-stream"}
        return {"Authorization": f"Bearer {agent}", **accept, **own, **more}

    async def post(self, agent: str, session: str = "", **more: str) -> httpx2.Response:
        """Open a session, or look whether one is there."""
        body = PING if session else OPENS
        return await self.client.post(self.address, json=body, headers=self.headers(agent, session, **more))

    async def followed(self, agent: str, session: str) -> httpx2.Response:
        """A session's stream, which stays open: as soon as the server has seen the end of what it answered before."""
        while True:
            asks = self.client.build_request("GET", self.address, headers=self.headers(agent, session))
            answer = await self.client.send(asks, stream=True)
            if answer.status_code == 200:
                return answer
            await answer.aclose()
            assert answer.status_code == 429

    async def opened(self, agent: str) -> str:
        return str((await self.post(agent)).headers["mcp-session-id"])


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    link: Any = Link()
    said = asyncio.Queue[str]()
    with listening(0) as listener:
        made = server(Door(link, transports.bearer, {}))
        serving = asyncio.create_task(transports.serve(made, link, listener, said.put_nowait))
        async with httpx2.AsyncClient(timeout=120) as client:
            yield Line(await said.get(), client)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@pytest.mark.promise(17)
async def test_open_streams_of_one_agent_leave_room_for_another(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [await line.opened("one") for _ in range(2)]
    monkeypatch.setattr(shares, "MOST_OPEN", len(sessions))
    async with contextlib.AsyncExitStack() as streams:
        for session in sessions:
            follows = await line.followed("one", session)
            streams.push_async_callback(follows.aclose)
        refused = await line.post("one", sessions[0])
        assert refused.status_code == 429 and "close a stream" in refused.text
        assert (await line.post("two")).status_code == 200
    status = 429
    while status == 429:  # until it hears of their end
        status = (await line.post("one", sessions[0])).status_code
    assert status == 200


@pytest.mark.promise(17)
@pytest.mark.parametrize("more", [{}, {"Host": "elsewhere.example"}], ids=["ends", "ends-whatever-it-says"])
async def test_a_session_too_many_ends_the_agents_own_oldest(
    line: Line, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    monkeypatch.setattr(shares, "MOST_SESSIONS", 3)
    other = await line.opened("two")
    first, oldest, _ = [await line.opened("one") for _ in range(3)]
    assert (await line.post("one", first)).status_code == 200  # now it isn't the oldest any more
    last = await line.opened("one")
    await line.post("one", last, **more)  # whatever comes next ends what is too much
    status = {session: (await line.post("one", session)).status_code for session in (first, oldest, last)}
    assert status == {first: 200, oldest: 404, last: 200}
    assert (await line.post("two", other)).status_code == 200


@pytest.mark.promise(17)
def test_one_agents_states_push_out_no_other_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_page, "MOST_STATES", 2)
    states = person_page.States()
    other = states.issue("two", "a-2")
    first, *_, last = [states.issue("one", "a-1") for _ in range(3)]
    for state in (first, other):
        with pytest.raises(MCPError):
            states.take("one", state)
    assert (states.take("one", last), states.take("two", other)) == ("a-1", "a-2")
