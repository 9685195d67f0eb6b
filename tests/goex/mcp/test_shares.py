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

from goex.client import NotRunning, Refused
from goex.loopback import listening
from goex.mcp import person_page, shares, transports
from goex.mcp.daemon_link import Caller
from goex.mcp.server import Door, server
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied, ExitStatus, InvalidInput

START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
OPENS: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


REFUSED = {
    "spent": Refused(pb.Problem(code="exhausted", message="one asked for too much.", exit_status=ExitStatus.DENIED)),
    "locked": Refused(pb.Problem(code="sealed", message="Nobody is known yet.", exit_status=ExitStatus.SEALED)),
    "away": NotRunning("It went away."),
    "large": InvalidInput("The request or its answer is too large."),  # what gRPC itself says may be no word on it
}


class Link:
    """A daemon that knows whose the tokens are, and nothing else."""

    async def call(self, method: str, request: object, reply: object, caller: Caller) -> pb.WhoamiReply:
        if caller.token in REFUSED:
            raise REFUSED[caller.token]
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

    @contextlib.asynccontextmanager
    async def stream(self, agent: str, session: str) -> AsyncIterator[httpx2.Response]:
        """A session's stream, which stays open."""
        asks = self.client.build_request("GET", self.address, headers=self.headers(agent, session))
        answer = await self.client.send(asks, stream=True)
        try:
            yield answer
        finally:
            await answer.aclose()

    @contextlib.asynccontextmanager
    async def unended(self, agent: str) -> AsyncIterator[None]:
        """A request whose end doesn't come."""
        ends = asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield b"{"
            await ends.wait()
            yield b"}"

        sent = asyncio.create_task(self.client.post(self.address, content=body(), headers=self.headers(agent)))
        try:
            yield
        finally:
            ends.set()
            await sent

    async def until(self, agent: str, session: str, status: int) -> httpx2.Response:
        """What the server says when it has seen how others began, or ended."""
        while (answer := await self.post(agent, session)).status_code != status:
            pass
        return answer

    async def opened(self, agent: str) -> str:
        return str((await self.post(agent)).headers["mcp-session-id"])


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    link: Any = Link()
    said = asyncio.Queue[str]()
    with listening(0) as listener:
        made = server(Door(link, transports.bearer, {}))
        serving = asyncio.create_task(transports.serve(made, link, listener, said.put_nowait))
        async with httpx2.AsyncClient(timeout=300) as client:
            yield Line(await said.get(), client)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@pytest.mark.promise(17)
async def test_open_requests_of_one_agent_leave_room_for_another(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    session, leaves = await line.opened("one"), await line.opened("one")
    monkeypatch.setattr(shares, "MOST_OPEN", 2)
    async with line.stream("one", session), line.unended("one"):
        refused = await line.until("one", session, 429)
        assert "Wait for an answer" in refused.json()["error"]["message"]  # which a client shows
        assert (await line.post("two")).status_code == 200
        left = await line.client.delete(line.address, headers=line.headers("one", leaves))
        assert left.status_code == 200
    await line.until("one", session, 200)


@pytest.mark.promise(17)
async def test_half_of_them_may_be_streams(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_OPEN", 4)
    sessions = [await line.opened("one") for _ in range(3)]
    async with line.stream("one", sessions[0]), line.stream("one", sessions[1]):
        async with line.stream("one", sessions[2]) as third:
            assert third.status_code == 405
        assert (await line.post("one", sessions[2])).status_code == 200


@pytest.mark.promise(17)
@pytest.mark.parametrize(("path", "host"), [("", "elsewhere.example"), ("/", ""), ("x", ""), ("", "")])
async def test_a_session_too_many_ends_the_agents_own_oldest(
    line: Line, monkeypatch: pytest.MonkeyPatch, path: str, host: str
) -> None:
    monkeypatch.setattr(shares, "MOST_SESSIONS", 3)
    other = await line.opened("two")
    first, oldest, _ = [await line.opened("one") for _ in range(3)]
    assert (await line.post("one", first)).status_code == 200  # now it isn't the oldest any more
    last = await line.opened("one")
    headers = line.headers("one", last, **({"Host": host} if host else {}))
    await line.client.post(line.address + path, json=PING, headers=headers)  # whatever comes next ends what is too much
    status = {session: (await line.post("one", session)).status_code for session in (first, oldest, last)}
    assert status == {first: 200, oldest: 404, last: 200}
    assert (await line.post("two", other)).status_code == 200


async def test_neither_a_session_in_use_ends_nor_do_those_count_that_their_clients_ended(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MOST_SESSIONS", 3)
    followed, idle = await line.opened("one"), await line.opened("one")
    async with line.stream("one", followed):
        for _ in range(4):
            ends = await line.opened("one")
            await line.client.delete(line.address, headers=line.headers("one", ends))
        assert (await line.post("one", idle)).status_code == 200
        last = [await line.opened("one") for _ in range(2)][-1]
        for session, status in ((followed, 200), (idle, 404), (last, 200)):
            assert (await line.post("one", session)).status_code == status


@pytest.mark.parametrize(
    ("token", "status", "said"),
    [("spent", 429, "too much"), *((token, 503, "Try later") for token in ("locked", "away", "large"))],
)
async def test_a_token_that_isnt_looked_at_now_isnt_called_unknown(
    line: Line, token: str, status: int, said: str
) -> None:
    """Whoever hears 401 throws it away, or looks for a login."""
    answer = await line.post(token)
    assert answer.status_code == status and said in answer.json()["error"]["message"]
    assert int(answer.headers["retry-after"]) > 0 and "www-authenticate" not in answer.headers
    assert (await line.post("guessed")).status_code == 401  # the control


async def test_no_browser_lets_a_page_of_another_port_send_a_token(line: Line) -> None:
    """Origin is looked at, too; but whoever serves a page on this machine may have any port."""
    page = {"Origin": "http://localhost:1"}
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    answers = [await line.client.options(line.address, headers={**page, **asks}), await line.post("one", **page)]
    assert [name for answer in answers for name in answer.headers if name.startswith("access-control-")] == []
    assert (await line.client.post(line.address, content="{}", headers=page)).status_code == 401


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
