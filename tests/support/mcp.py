"""`goex mcp` as its clients meet it: a process, spoken to with the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.journey import decide


@contextlib.asynccontextmanager
async def stdio(daemon: Daemon, token: str, *options: str) -> AsyncIterator[ClientSession]:
    """A session with a `goex mcp` of its own."""
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    parameters = StdioServerParameters(command=str(GOEX), args=["mcp", *options], env=env)
    async with stdio_client(parameters) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        yield session


@contextlib.contextmanager
def serving(daemon: Daemon, *options: str) -> Iterator[str]:
    """The address of a `goex mcp --http`."""
    command = (str(GOEX), "mcp", "--http", "--port", "0", *options)
    with subprocess.Popen(command, env=daemon.env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextlib.asynccontextmanager
async def http(address: str, token: str) -> AsyncIterator[ClientSession]:
    """A session with that server."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
        streamable_http_client(address, http_client=client) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session


def text_of(result: CallToolResult) -> str:
    return "\n".join(getattr(each, "text", "") for each in result.content)


async def decided(daemon: Daemon, action: str, **more: Any) -> None:
    """Answer the question of an action as the person."""

    def answer() -> None:
        (question,) = [
            one for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals if one.action_id == action
        ]
        decide(daemon, question, **more)

    await asyncio.to_thread(answer)


def connect_slack(daemon: Daemon) -> None:
    """An account of Slack's that nothing is ever sent with."""
    put = pb.VaultPutRequest(
        service="slack", account="work", secret=b"xoxb-canary", passphrase=APPROVAL_PASSPHRASE, replace=True
    )
    daemon.person("VaultPut", put)
