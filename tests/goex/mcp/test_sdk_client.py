"""The SDK's own client in the revision of 2026-07-28, over HTTP and on standard input: it says what it can with each
request, is led to the person's page, and follows a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

import httpx2
import mcp_types as types
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import GOEX, Daemon


@asynccontextmanager
async def connected(address: str, token: str, **options: Any) -> AsyncIterator[Client]:
    """A client that begins with no handshake."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300) as http:
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, mode=mcp.REVISION, **options) as client:
            assert client.protocol_version == mcp.REVISION
            yield client


async def the_only_question(daemon: Daemon) -> str:
    """The action that waits for the person, once one does."""
    while True:
        asked = await asyncio.to_thread(daemon.person, "Approvals", pb.ApprovalsRequest())
        if asked.approvals:
            (question,) = asked.approvals
            return str(question.action_id)
        await asyncio.sleep(0.1)


def said(result: types.CallToolResult) -> dict[str, Any]:
    return dict(result.structured_content or {})


async def test_it_finds_calls_and_cancels(daemon: Daemon, address: str, token: str) -> None:
    async with connected(address, token) as client:
        assert "goex_call" in {tool.name for tool in (await client.list_tools()).tools}
        found = said(await client.call_tool("goex_find", {"method": "slack.chat.postMessage"}))
        begun = said(await client.call_tool("goex_call", {**mcp.CALL, "wait_seconds": 0}))
        assert await the_only_question(daemon) == begun["action"]
        waits = said(await client.call_tool("goex_wait", {"action": begun["action"], "seconds": 0}))
        read = await client.read_resource(f"goex://action/{waits['action']}")
        ended = said(await client.call_tool("goex_cancel", {"action": waits["action"]}))
    assert found["methods"][0]["risk"] == "write"
    assert '"status":"waiting"' in str(read.contents[0])
    assert (waits["status"], ended["status"]) == ("waiting", "withdrawn")


async def test_it_speaks_this_revision_on_standard_input(daemon: Daemon, token: str) -> None:
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    server = StdioServerParameters(command=str(GOEX), args=["mcp"], env=env)
    async with Client(server) as client:
        assert client.protocol_version == mcp.REVISION  # found by server/discover
        assert said(await client.call_tool("goex_find", {}))["services"][0]["name"] == "slack"


async def test_tools_that_are_called_in_parallel_are_all_answered(daemon: Daemon, token: str) -> None:
    async with Client(mcp.lines(daemon, token)) as client:
        asked = ({"query": f"post message {number} in a channel"} for number in range(50))
        answers = await asyncio.gather(*(client.call_tool("goex_find", each) for each in asked))
    assert [len(said(answer)["methods"]) > 0 for answer in answers] == [True] * 50


async def test_it_opens_the_page_and_comes_back_with_the_state(daemon: Daemon, address: str, token: str) -> None:
    opened: asyncio.Queue[str] = asyncio.Queue()

    async def accept(_: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        opened.put_nowait(params.url)
        return types.ElicitResult(action="accept")

    with mcp.page_runs(daemon) as link:
        async with connected(address, token, elicitation_callback=accept) as client:
            calling = asyncio.create_task(client.call_tool("goex_call", mcp.LONG))
            action = await the_only_question(daemon)
            assert await opened.get() == link.partition("#")[0] + "#waiting"
            assert not calling.done()  # what the client answered was no answer
            await mcp.decided(daemon, action, approve=False, reason="use #random")
            ended = said(await calling)
    assert opened.empty()
    assert (ended["action"], ended["status"], ended["retry"]) == (action, "denied", "changed")


class TaskResult(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int


class Task(types.Result):
    task_id: str
    status: str
    result: dict[str, Any] | None = None


class TaskParams(types.RequestParams):
    task_id: str


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param: ClassVar[str | None] = "taskId"


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param: ClassVar[str | None] = "taskId"


class Tasks(ClientExtension):
    """Follows a task to its end, as a client that declares tasks does."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.seen: asyncio.Queue[str] = asyncio.Queue()

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=TaskResult, resolve=self.follow),)

    async def follow(self, task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        while True:
            now = await get(context.session, task.task_id)
            self.seen.put_nowait(now.status)
            if now.status == "completed":
                return types.CallToolResult.model_validate(now.result)
            await asyncio.sleep(task.poll_interval_ms / 10_000)


async def get(session: ClientSession, id: str) -> Task:
    return await session.send_request(GetTask(params=TaskParams(task_id=id)), Task)


async def test_a_task_is_followed_to_its_end(daemon: Daemon, address: str, token: str) -> None:
    tasks = Tasks()
    async with connected(address, token, extensions=[tasks]) as client:
        calling = asyncio.create_task(client.call_tool("goex_call", mcp.CALL))
        action = await the_only_question(daemon)
        assert await tasks.seen.get() == "working"
        await mcp.decided(daemon, action, approve=False)
        ended = said(await calling)
    assert (ended["action"], ended["status"], ended["changed"]) == (action, "denied", "no")


async def test_a_task_is_cancelled_and_is_nobody_else_s(daemon: Daemon, address: str, token: str) -> None:
    other = daemon.add_agent("sdk-other")
    async with (
        connected(address, token, extensions=[Tasks()]) as client,
        connected(address, other, extensions=[Tasks()]) as neighbour,
    ):
        task = await client.session.call_tool("goex_call", mcp.CALL, allow_claimed=True)
        assert isinstance(task, TaskResult)
        with pytest.raises(MCPError, match="There is no such task"):
            await get(neighbour.session, task.task_id)
        await client.session.send_request(CancelTask(params=TaskParams(task_id=task.task_id)), types.Result)
        assert (await get(client.session, task.task_id)).status == "cancelled"
    assert await asyncio.to_thread(daemon.person_action, task.task_id) == "withdrawn"
