"""`goex mcp` as its clients meet it: a process, spoken to with the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from io import TextIOWrapper
from typing import Any

import anyio
import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult

from goex.loopback import listening
from goex.mcp import transports
from goex.mcp.daemon_link import DaemonLink
from goex.mcp.server import Door, server
from goex.rpc import goex_pb2 as pb
from tests.runtimes.rest.support import TOKEN, FakeSlack
from tests.support import command
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.forks import Fork
from tests.support.journey import decide
from tests.support.waiting import SECONDS, until

# For clients of this machine's own servers, which speak without TLS: no authority is read for each of them.
NO_AUTHORITY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def begun(daemon: Daemon, token: str, *options: str, err: int | None = 2) -> Fork | subprocess.Popen[bytes]:
    """A `goex mcp` with pipes for its streams."""
    env = {**daemon.env, **({"GOEX_AGENT_TOKEN": token} if token else {})}
    return command.piped([str(GOEX), "mcp", *options], env=env, folder=daemon.home, err=err)


@contextlib.asynccontextmanager
async def lines(daemon: Daemon, token: str, *options: str) -> AsyncIterator[tuple[Any, Any]]:
    """What a client speaks to a `goex mcp` of its own by: both ends of this transport are alike."""
    process = begun(daemon, token, *options)
    assert process.stdin and process.stdout
    incoming, outgoing = (anyio.wrap_file(TextIOWrapper(each, "utf-8")) for each in (process.stdout, process.stdin))
    async with stdio_server(incoming, outgoing) as streams:
        try:
            yield streams
        finally:
            await streams[1].aclose()
            process.stdin.close()
            await asyncio.to_thread(process.wait, SECONDS)


@contextlib.asynccontextmanager
async def stdio(daemon: Daemon, token: str, *options: str) -> AsyncIterator[ClientSession]:
    """A session with a `goex mcp` of its own."""
    async with lines(daemon, token, *options) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        yield session


@contextlib.contextmanager
def serving(daemon: Daemon, *options: str) -> Iterator[str]:
    """The address of a `goex mcp --http`."""
    process = begun(daemon, "", "--http", "--port", "0", *options)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.wait(SECONDS)


@contextlib.asynccontextmanager
async def http(address: str, token: str) -> AsyncIterator[ClientSession]:
    """A session with that server."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300, verify=NO_AUTHORITY) as client,
        streamable_http_client(address, http_client=client) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session


def text_of(result: CallToolResult) -> str:
    return "\n".join(getattr(each, "text", "") for each in result.content)


async def decided(daemon: Daemon, action: str, **more: Any) -> None:
    """Answer the question of an action as the person, as soon as it is there."""

    def asked() -> list[pb.Approval]:
        return [one for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals if one.action_id == action]

    def answer() -> None:
        (question,) = until(asked, "the question")
        decide(daemon, question, **more)

    await asyncio.to_thread(answer)


def connect_slack(daemon: Daemon) -> None:
    """An account of Slack's that nothing is ever sent with."""
    put = pb.VaultPutRequest(
        service="slack", account="work", secret=b"xoxb-canary", passphrase=APPROVAL_PASSPHRASE, replace=True
    )
    daemon.person("VaultPut", put)


def connect_fake_slack(daemon: Daemon, slack: FakeSlack) -> None:
    """An account of Slack's at a server of the tests."""
    account = pb.VaultPutRequest(service="slack", account="work", secret=TOKEN.encode(), private=True)
    account.base_url, account.ca_pem, account.passphrase = f"{slack.url}/api", slack.ca_pem, APPROVAL_PASSPHRASE
    daemon.person("VaultPut", account)


CALL: dict[str, Any] = {
    "calls": [{"method": "slack.chat.postMessage", "arguments": {"channel": "C0123456789", "text": "hi"}}]
}
LONG = {**CALL, "wait_seconds": 50}

clock = time.time
REVISION = "2026-07-28"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
ADDRESSES: dict[str, Any] = {"elicitation": {"url": {}, "form": {}}}


async def post(
    address: str, token: str, method: str, params: dict[str, Any], can: dict[str, Any] | None = None, **headers: str
) -> dict[str, Any]:
    """The answer to one request of the revision without sessions, sent by hand. `can`: the client's capabilities."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": can or {},
    }
    named = str(params.get("name") or params.get("uri") or params.get("taskId") or "")
    sent = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": REVISION,
        "Mcp-Method": method,
        **({"Mcp-Name": named} if named else {}),
        **headers,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    async with httpx2.AsyncClient(timeout=300, verify=NO_AUTHORITY) as client:
        answered = await client.post(address, json=body, headers=sent)
    if answered.headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:] for line in answered.text.splitlines() if line.startswith("data:")]
        return dict(next(found for found in map(json.loads, events) if "id" in found))
    return dict(answered.json())


async def call(address: str, token: str, name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a tool answers to such a request."""
    can = more.pop("can", None)
    answered = await post(address, token, "tools/call", {"name": name, "arguments": arguments, **more}, can)
    return dict(answered.get("result") or answered["error"])


@contextlib.contextmanager
def page_runs(daemon: Daemon) -> Iterator[str]:
    """The person's page, as `goex web` runs it; the link that it says first."""
    words = (str(GOEX), "web", "--no-browser", "--port", "0")
    with subprocess.Popen(words, env=daemon.env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
        finally:
            process.terminate()


@contextlib.asynccontextmanager
async def here(daemon: Daemon) -> AsyncIterator[str]:
    """The server in this process, whose clock the test sets."""
    link, said = DaemonLink(daemon.agent_socket), asyncio.Queue[str]()
    with listening(0) as listener:
        serving = asyncio.create_task(
            transports.serve(server(Door(link, transports.bearer, {})), link, listener, said.put_nowait)
        )
        yield await said.get()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    await link.close()
