"""Attacks through the MCP server: by another agent, a web page, a client that lies or dies. Each has its control.

The daemon and `goex mcp --http` are the shipped ones; a control sends the same with the one thing in place, or taken
away, that the refusal rests on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon, folder
from tests.support import mcp
from tests.support.daemon import GOEX, Daemon
from tests.support.journey import decide
from tests.support.waiting import until

__all__ = ["daemon", "folder"]

POST: dict[str, Any] = {"method": "slack.chat.postMessage", "arguments": {"channel": "C0123456789", "text": "hi"}}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MEGABYTE = 2**20
START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture(scope="module")
def tokens(daemon: Daemon) -> tuple[str, str]:
    mcp.connect_slack(daemon)
    return daemon.add_agent("one"), daemon.add_agent("two")


@pytest.fixture(scope="module")
def address(daemon: Daemon) -> Iterator[str]:
    with mcp.serving(daemon) as served:
        yield served


async def initialize(address: str, token: str = "", **headers: str) -> httpx2.Response:
    """A first request, as it is sent by hand."""
    given = {"Authorization": f"Bearer {token}"} if token else {}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
    async with httpx2.AsyncClient(timeout=300, verify=mcp.NO_AUTHORITY) as client:
        return await client.post(address, json=message, headers={**HEADERS, **given, **headers})


async def waiting(address: str, token: str) -> str:
    """An action of this agent's that waits for the person."""
    async with mcp.http(address, token) as session:
        result = await session.call_tool("goex_call", {"calls": [POST], "wait_seconds": 0})
    return str((result.structured_content or {})["action"])


async def status(address: str, token: str, tool: str, action: str) -> str:
    """What a tool tells this agent of an action."""
    async with mcp.http(address, token) as session:
        result = await session.call_tool(tool, {"action": action, **({"seconds": 0} if tool == "goex_wait" else {})})
    return mcp.text_of(result)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tool", ["goex_wait", "goex_result", "goex_undo", "goex_cancel"])
async def test_neighbour(address: str, tokens: tuple[str, str], tool: str) -> None:
    action = await waiting(address, tokens[0])
    assert "There is no action" in await status(address, tokens[1], tool, action)
    assert "waiting" in await status(address, tokens[0], "goex_wait", action)
    await status(address, tokens[0], "goex_cancel", action)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tool", ["goex_wait", "goex_result", "goex_undo", "goex_cancel"])
async def test_control_neighbour(address: str, tokens: tuple[str, str], tool: str) -> None:
    action = await waiting(address, tokens[0])
    assert "There is no action" not in await status(address, tokens[0], tool, action)
    await status(address, tokens[0], "goex_cancel", action)


async def test_listing(address: str, tokens: tuple[str, str]) -> None:
    action = await waiting(address, tokens[0])
    async with mcp.http(address, tokens[1]) as session:
        assert action not in mcp.text_of(await session.call_tool("goex_actions", {}))
    await status(address, tokens[0], "goex_cancel", action)


async def test_control_listing(address: str, tokens: tuple[str, str]) -> None:
    action = await waiting(address, tokens[0])
    async with mcp.http(address, tokens[0]) as session:
        assert action in mcp.text_of(await session.call_tool("goex_actions", {}))
    await status(address, tokens[0], "goex_cancel", action)


async def _in_session_of(address: str, owner: str, sender: str) -> int:
    begun = await initialize(address, owner)
    session = begun.headers["mcp-session-id"]
    message = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    headers = {**HEADERS, "Authorization": f"Bearer {sender}", "Mcp-Session-Id": session}
    async with httpx2.AsyncClient(timeout=300, verify=mcp.NO_AUTHORITY) as client:
        return (await client.post(address, json=message, headers=headers)).status_code


async def test_session(address: str, tokens: tuple[str, str]) -> None:
    assert await _in_session_of(address, tokens[0], tokens[1]) == 404


async def test_control_session(address: str, tokens: tuple[str, str]) -> None:
    assert await _in_session_of(address, tokens[0], tokens[0]) == 200


@pytest.mark.parametrize("token", ["", "goex_guessed", "person", "anonymous"])
async def test_token(address: str, tokens: tuple[str, str], token: str) -> None:
    assert (await initialize(address, token)).status_code == 401


async def test_control_token(address: str, tokens: tuple[str, str]) -> None:
    assert (await initialize(address, tokens[0])).status_code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_rebinding(address: str, tokens: tuple[str, str], headers: dict[str, str], code: int) -> None:
    assert (await initialize(address, tokens[0], **headers)).status_code == code


async def test_control_rebinding(address: str, tokens: tuple[str, str]) -> None:
    own = address.removesuffix("/mcp")
    assert (await initialize(address, tokens[0], Host=own.removeprefix("http://"), Origin=own)).status_code == 200


async def _sent(address: str, token: str, size: int) -> int:
    call = {**POST, "arguments": {"channel": "C0123456789", "text": "x" * size}}
    params = {"name": "goex_call", "arguments": {"calls": [call], "wait_seconds": 0}}
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    begun = await initialize(address, token)
    headers = {
        **HEADERS,
        "Authorization": f"Bearer {token}",
        "Mcp-Session-Id": begun.headers["mcp-session-id"],
        "Mcp-Protocol-Version": "2025-11-25",
    }
    async with httpx2.AsyncClient(timeout=300, verify=mcp.NO_AUTHORITY) as client:
        return (await client.post(address, json=message, headers=headers)).status_code


async def test_size(address: str, tokens: tuple[str, str]) -> None:
    assert await _sent(address, tokens[0], 10 * MEGABYTE) == 413
    assert (await initialize(address, tokens[0])).status_code == 200


async def test_control_size(address: str, tokens: tuple[str, str]) -> None:
    assert await _sent(address, tokens[0], 100_000) == 200


async def _claimed(daemon: Daemon, address: str, token: str, **claims: Any) -> tuple[str, str]:
    """Ask with claims in the arguments; what the tool says, and how the question then stands."""
    action = await waiting(address, token)
    async with mcp.http(address, token) as session:
        said = mcp.text_of(await session.call_tool("goex_wait", {"action": action, "seconds": 0, **claims}))
    state = await asyncio.to_thread(daemon.person_action, action)
    await status(address, token, "goex_cancel", action)
    return said, state


@pytest.mark.promise(3)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "claims",
    [
        {"approve": True},
        {"approved": "yes"},
        {"decision": {"approve": True, "width": "permanent"}},
        {"passphrase": "x"},
    ],
    ids=lambda claims: next(iter(claims)),
)
async def test_approval(daemon: Daemon, address: str, tokens: tuple[str, str], claims: dict[str, Any]) -> None:
    said, state = await _claimed(daemon, address, tokens[0], **claims)
    assert "Not begun" in said
    assert state == "asking"


async def test_control_approval(daemon: Daemon, address: str, tokens: tuple[str, str]) -> None:
    """The person's own answer settles the same question."""
    action = await waiting(address, tokens[0])
    await mcp.decided(daemon, action, approve=False)
    assert await asyncio.to_thread(daemon.person_action, action) == "denied"


@pytest.mark.promise(3)
@pytest.mark.parametrize("tool", ["goex_approve", "goex_decide", "Person/Decide", "../Person/Decide", "goex_grant"])
async def test_tool_name(address: str, tokens: tuple[str, str], tool: str) -> None:
    async with mcp.http(address, tokens[0]) as session:
        with pytest.raises(Exception, match="Unknown tool"):
            await session.call_tool(tool, {"approve": True})


async def test_control_tool_name(address: str, tokens: tuple[str, str]) -> None:
    async with mcp.http(address, tokens[0]) as session:
        assert not (await session.call_tool("goex_find", {})).is_error


@pytest.mark.promise(3)
async def test_form(daemon: Daemon, tokens: tuple[str, str]) -> None:
    """A client that answers every form with yes is never sent one."""
    asked: list[object] = []

    async def accept(*form: object) -> Any:
        asked.append(form)
        raise AssertionError("A form was sent.")

    from mcp import ClientSession, StdioServerParameters, stdio_client

    env = {**daemon.env, "GOEX_AGENT_TOKEN": tokens[0]}
    async with (
        stdio_client(StdioServerParameters(command=str(GOEX), args=["mcp"], env=env)) as (incoming, outgoing),
        ClientSession(incoming, outgoing, elicitation_callback=accept) as session,
    ):
        await session.initialize()
        result = await session.call_tool("goex_call", {"calls": [POST], "wait_seconds": 1})
        state = await asyncio.to_thread(daemon.person_action, (result.structured_content or {})["action"])
    assert (asked, state) == ([], "asking")


async def _after_a_session_grant(daemon: Daemon, address: str, token: str, folder: Path, *, same: bool) -> str:
    """How a program stands that another client of the same token, or the same client, asks for once more after it was
    allowed for the session."""
    program = {"language": "shell", "program": "date > x", "folders": [str(folder)]}
    async with mcp.http(address, token) as first, mcp.http(address, token) as second:
        asked = await first.call_tool("goex_program", {**program, "wait_seconds": 0})
        action = (asked.structured_content or {})["action"]
        await asyncio.to_thread(_allowed_for_the_session, daemon, action)
        done = await first.call_tool("goex_wait", {"action": action, "seconds": 50})
        assert (done.structured_content or {})["status"] == "done"
        again = await (first if same else second).call_tool(
            "goex_program", {**program, "wait_seconds": 50 if same else 3}
        )
        ended = again.structured_content or {}
        if not same:
            await second.call_tool("goex_cancel", {"action": ended["action"]})
    return str(ended["status"])


def _allowed_for_the_session(daemon: Daemon, action: str) -> None:
    waiting = daemon.person("WatchApprovals", pb.ApprovalsRequest())
    asked = next(each for each in waiting if each.action_id == action and each.state == "pending")
    waiting.cancel()
    decide(daemon, asked, width="session")


@pytest.mark.docker
@pytest.mark.promise(6)
async def test_grant_of_session(daemon: Daemon, address: str, tokens: tuple[str, str], folder: Path) -> None:
    assert await _after_a_session_grant(daemon, address, tokens[0], folder, same=False) in ("waiting", "running")


@pytest.mark.docker
async def test_control_grant_of_session(daemon: Daemon, address: str, tokens: tuple[str, str], folder: Path) -> None:
    assert await _after_a_session_grant(daemon, address, tokens[0], folder, same=True) == "done"


def test_death(orphaned: tuple[str, str]) -> None:
    assert orphaned[1] == "withdrawn"


def test_control_death(orphaned: tuple[str, str]) -> None:
    assert orphaned[0] == "asking"


@pytest.fixture(scope="module")
def orphaned(daemon: Daemon, tokens: tuple[str, str]) -> tuple[str, str]:
    """How a question stands while the process that asked lives, and when it was killed."""
    return asyncio.run(_orphaned(daemon, tokens[0]))


async def _orphaned(daemon: Daemon, token: str) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        str(GOEX),
        "mcp",
        env={**daemon.env, "GOEX_AGENT_TOKEN": token},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    call = {"name": "goex_call", "arguments": {"calls": [POST], "wait_seconds": 0}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    try:
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        await process.stdin.drain()
        answer: dict[str, Any] = {}
        while answer.get("id") != 2:
            answer = json.loads(await asyncio.wait_for(process.stdout.readline(), 300))
        action = answer["result"]["structuredContent"]["action"]
        lives = await asyncio.to_thread(daemon.person_action, action)
    finally:
        process.kill()
        await process.wait()
    await asyncio.to_thread(_until_settled, daemon)
    return lives, await asyncio.to_thread(daemon.person_action, action)


def _until_settled(daemon: Daemon) -> None:
    """Until no question of an agent is open any more."""
    until(lambda: not daemon.person("Approvals", pb.ApprovalsRequest()).approvals, "the last answer")


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"[]", b'{"jsonrpc":"2.0"}', b"[" * 100_000, b'{"jsonrpc":"2.0","id":{},"method":7}'],
    ids=["cut", "bytes", "empty", "nothing", "deep", "types"],
)
async def test_garbage(address: str, tokens: tuple[str, str], body: bytes) -> None:
    headers = {**HEADERS, "Authorization": f"Bearer {tokens[0]}"}
    async with httpx2.AsyncClient(timeout=300, verify=mcp.NO_AUTHORITY) as client:
        answered = await client.post(address, content=body, headers=headers)
    assert 400 <= answered.status_code < 500
    assert (await initialize(address, tokens[0])).status_code == 200


async def test_control_garbage(address: str, tokens: tuple[str, str]) -> None:
    assert (await initialize(address, tokens[0])).status_code == 200
