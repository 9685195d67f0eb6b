"""What a client gets of a call that waits for the person: a task, the address of their page, or a handle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult

from tests.support import mcp
from tests.support.daemon import Daemon


@pytest.fixture
def page(daemon: Daemon) -> Iterator[str]:
    with mcp.page_runs(daemon) as link:
        yield link


async def state(daemon: Daemon, action: str) -> str:
    return await asyncio.to_thread(daemon.person_action, action)


async def test_a_declared_client_gets_a_task_whose_id_is_the_action_s(daemon: Daemon, address: str, token: str) -> None:
    task = await mcp.call(address, token, "goex_call", mcp.CALL, can=mcp.TASKS)
    assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
    assert "don't send it again" in task["statusMessage"]
    await mcp.decided(daemon, task["taskId"], approve=False, reason="use #random")
    ended = (await mcp.post(address, token, "tasks/get", {"taskId": task["taskId"]}, mcp.TASKS))["result"]
    assert (ended["status"], ended["result"]["structuredContent"]["status"]) == ("completed", "denied")
    assert ended["result"]["isError"] is False


async def test_a_task_is_cancelled_by_its_agent(daemon: Daemon, address: str, token: str) -> None:
    task = (await mcp.call(address, token, "goex_call", mcp.CALL, can=mcp.TASKS))["taskId"]
    for _ in range(2):
        acknowledged = (await mcp.post(address, token, "tasks/cancel", {"taskId": task}, mcp.TASKS))["result"]
        assert "status" not in acknowledged
    found = (await mcp.post(address, token, "tasks/get", {"taskId": task}, mcp.TASKS))["result"]
    assert (found["status"], await state(daemon, task)) == ("cancelled", "withdrawn")


async def test_a_client_that_opens_addresses_is_led_to_the_page_once(
    daemon: Daemon, address: str, token: str, page: str
) -> None:
    asked = await mcp.call(address, token, "goex_call", mcp.LONG, can=mcp.ADDRESSES)
    assert asked["resultType"] == "input_required"
    request = asked["inputRequests"]["person"]
    assert request["method"] == "elicitation/create"
    assert request["params"]["mode"] == "url"
    assert request["params"]["url"] == page.partition("#")[0] + "#waiting"
    action = request["params"]["message"].split()[0]
    await mcp.decided(daemon, action, approve=False)
    accepted = {"inputResponses": {"person": {"action": "accept"}}, "requestState": asked["requestState"]}
    ended = await mcp.call(address, token, "goex_call", mcp.LONG, can=mcp.ADDRESSES, **accepted)
    assert ended["structuredContent"]["action"] == action
    assert ended["structuredContent"]["status"] == "denied"


async def test_a_task_requires_input_until_its_client_was_led_to_the_page(
    daemon: Daemon, address: str, token: str, page: str
) -> None:
    can = {**mcp.TASKS, **mcp.ADDRESSES}
    task = {"taskId": (await mcp.call(address, token, "goex_call", mcp.CALL, can=can))["taskId"]}
    asked = (await mcp.post(address, token, "tasks/get", task, can))["result"]
    assert (asked["status"], list(asked["inputRequests"])) == ("input_required", ["person"])
    answer = {**task, "inputResponses": {"person": {"action": "accept"}}}
    await mcp.post(address, token, "tasks/update", answer, can)
    after = (await mcp.post(address, token, "tasks/get", task, can))["result"]
    assert (after["status"], await state(daemon, task["taskId"])) == ("working", "asking")
    await mcp.post(address, token, "tasks/cancel", task, can)


async def test_a_client_with_sessions_is_asked_to_open_the_page(
    daemon: Daemon, address: str, token: str, page: str
) -> None:
    opened: asyncio.Queue[str] = asyncio.Queue()

    async def accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        opened.put_nowait(params.url)
        return ElicitResult(action="accept")

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300) as client,
        streamable_http_client(address, http_client=client) as (incoming, outgoing),
        ClientSession(incoming, outgoing, elicitation_callback=accept) as session,
    ):
        await session.initialize()
        calling = asyncio.create_task(session.call_tool("goex_call", mcp.LONG))
        assert await opened.get() == page.partition("#")[0] + "#waiting"
        listed = (await session.call_tool("goex_actions", {"state": "waiting"})).structured_content
        action = (listed or {})["actions"][0]["action"]
        assert await state(daemon, action) == "asking"
        await mcp.decided(daemon, action, approve=False)
        assert ((await calling).structured_content or {})["status"] == "denied"


async def test_without_a_page_a_call_that_waits_answers_with_its_handle(address: str, token: str) -> None:
    short = {**mcp.CALL, "wait_seconds": 1.5}
    told = await mcp.call(address, token, "goex_call", short, can=mcp.ADDRESSES)
    assert told["structuredContent"]["status"] == "waiting"
    assert "page" not in told["structuredContent"]
    await mcp.call(address, token, "goex_cancel", {"action": told["structuredContent"]["action"]})


@pytest.mark.parametrize(("minutes", "lands"), [(54, True), (61, False)])
async def test_an_answer_lands_after_54_minutes(
    daemon: Daemon, token: str, page: str, monkeypatch: pytest.MonkeyPatch, minutes: int, *, lands: bool
) -> None:
    async with mcp.here(daemon) as address:
        asked = await mcp.call(address, token, "goex_call", mcp.LONG, can=mcp.ADDRESSES)
        action = asked["inputRequests"]["person"]["params"]["message"].split()[0]
        await mcp.decided(daemon, action, approve=False)
        now = mcp.clock() + 60 * minutes
        monkeypatch.setattr("mcp.server.request_state.time.time", lambda: now)
        ended = await mcp.call(
            address, token, "goex_call", mcp.LONG, can=mcp.ADDRESSES, requestState=asked["requestState"]
        )
        looked = await mcp.call(address, token, "goex_wait", {"action": action, "seconds": 0})
    assert ("structuredContent" in ended) is lands
    assert looked["structuredContent"]["status"] == "denied"


async def test_a_preview_says_what_would_be_sent_and_asks_nobody(daemon: Daemon, address: str, token: str) -> None:
    said = (await mcp.call(address, token, "goex_preview", mcp.CALL))["structuredContent"]
    assert "POST https://slack.com/api/chat.postMessage" in said["requests"]
    assert "xoxb" not in said["requests"]
    listed = (await mcp.call(address, token, "goex_actions", {"state": "waiting"}))["structuredContent"]
    assert listed["actions"] == []


@pytest.mark.promise(74)
async def test_a_preview_of_a_program_tells_nothing_of_the_folder(address: str, token: str, tmp_path: Path) -> None:
    program = {"language": "shell", "program": "ls", "folders": [str(tmp_path)], "wait_seconds": 0}
    action = (await mcp.call(address, token, "goex_program", program))["structuredContent"]["action"]
    refused = await mcp.call(address, token, "goex_preview", {"action": action})
    assert "Only calls have a preview" in str(refused) or "isn't calls" in str(refused)
    await mcp.call(address, token, "goex_cancel", {"action": action})


async def test_who_doesnt_wait_is_told_that_the_person_is_asked(address: str, token: str, tmp_path: Path) -> None:
    """However long it takes to see what it would do."""
    long = "".join(f"mkdir -p d{number} && date > d{number}/f\n" for number in range(3000))
    program = {"language": "shell", "program": long, "folders": [str(tmp_path)], "wait_seconds": 0}
    told = (await mcp.call(address, token, "goex_program", program))["structuredContent"]
    await mcp.call(address, token, "goex_cancel", {"action": told["action"]})
    assert (told["status"], told["who"]) == ("waiting", "person"), str(told)


async def test_an_action_is_a_resource_with_its_preview(daemon: Daemon, address: str, token: str) -> None:
    told = await mcp.call(address, token, "goex_call", {**mcp.CALL, "wait_seconds": 0})
    action = told["structuredContent"]["action"]
    uri = f"goex://action/{action}"
    listed = (await mcp.post(address, token, "resources/list", {}))["result"]["resources"]
    assert listed[0]["uri"] == uri
    read = {
        part: (await mcp.post(address, token, "resources/read", {"uri": uri + part}))
        for part in ("", "/preview", "/result")
    }
    await mcp.call(address, token, "goex_cancel", {"action": action})
    assert '"status":"waiting"' in read[""]["result"]["contents"][0]["text"]
    assert "chat.postMessage" in read["/preview"]["result"]["contents"][0]["text"]
    assert read["/result"]["error"]["code"] == -32602


async def test_nobody_is_led_to_a_login_that_isnt_there(address: str) -> None:
    """The token is the person's to give. Metadata would have to name who else gives one."""
    origin = address.removesuffix("/mcp")
    async with httpx2.AsyncClient() as client:
        refused = [await client.post(address, json={}, headers=each) for each in ({}, {"Authorization": "Bearer no"})]
        known = ("oauth-protected-resource", "oauth-authorization-server", "openid-configuration")
        places = [f"{origin}/.well-known/{name}{path}" for name in known for path in ("", "/mcp")]
        found = [(await client.get(place)).status_code for place in places]
    for answer in refused:
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer ")
        assert "resource_metadata" not in answer.headers["www-authenticate"]
    assert found == [404] * len(places)
