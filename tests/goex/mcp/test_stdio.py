"""`goex mcp` on standard input, by the SDK's client: what an agent does from finding to undoing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from goex.rpc import goex_pb2 as pb
from tests.support import mcp
from tests.support.daemon import GOEX, Daemon
from tests.support.waiting import until

POST: dict[str, Any] = {"method": "slack.chat.postMessage", "arguments": {"channel": "C0123456789", "text": "hi"}}


def said(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def test_tools_have_titles_schemas_and_all_annotations(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    for tool in tools.values():
        hints = tool.annotations
        assert tool.title and tool.description and tool.output_schema and hints is not None
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    assert reading == {"goex_find", "goex_preview", "goex_read", "goex_wait", "goex_result", "goex_actions"}


async def test_a_service_s_methods_are_tools_annotated_by_risk(daemon: Daemon, token: str, thorough: bool) -> None:
    async with mcp.stdio(daemon, token, "--service", "slack") as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        calling = asyncio.create_task(session.call_tool("slack_chat_postMessage", POST["arguments"]))
        (asked,) = await asyncio.to_thread(until, lambda: daemon.person("Approvals", pb.ApprovalsRequest()).approvals)
        if not thorough:  # else it is answered after 25 seconds
            await mcp.decided(daemon, asked.action_id, approve=False)
        answered = said(await calling)
        await session.call_tool("goex_cancel", {"action": answered["action"]})
    post, delete, listed = (
        tools[f"slack_{name}"] for name in ("chat_postMessage", "chat_delete", "conversations_list")
    )
    assert post.input_schema["required"] == ["channel", "text"]
    assert [tool.annotations.read_only_hint for tool in (post, delete, listed) if tool.annotations] == [
        False,
        False,
        True,
    ]
    assert delete.annotations and delete.annotations.destructive_hint
    assert (answered["action"], answered["status"]) == (asked.action_id, "waiting" if thorough else "denied")


async def test_a_read_that_isnt_one_is_refused_before_anybody_is_asked(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        refused = await session.call_tool("goex_read", {"calls": [POST]})
    assert refused.is_error
    assert said(refused)["summary"] == "This doesn't only read."
    assert not daemon.person("Approvals", pb.ApprovalsRequest()).approvals


async def test_waiting_gives_a_handle_and_plain_words(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        result = await session.call_tool("goex_call", {"calls": [POST], "wait_seconds": 0})
        waiting = said(result)
        assert (waiting["status"], waiting["who"], result.is_error) == ("waiting", "person", False)
        assert "don't send it again" in waiting["next"]
        assert len(mcp.text_of(result)) < 300  # characters: 75 tokens
        await mcp.decided(daemon, waiting["action"], approve=False, reason="use #random")
        denied = await session.call_tool("goex_wait", {"action": waiting["action"]})
    assert (said(denied)["status"], said(denied)["retry"], denied.is_error) == ("denied", "changed", False)
    assert mcp.text_of(denied).splitlines()[0].endswith("The person denied it: use #random.")


async def test_progress_is_told(daemon: Daemon, token: str) -> None:
    told: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with mcp.stdio(daemon, token) as session:
        arguments = {"calls": [POST], "wait_seconds": 2}
        result = await session.call_tool("goex_call", arguments, progress_callback=note)
        await session.call_tool("goex_cancel", {"action": said(result)["action"]})
    assert told and all("is running" in (one or "") or "is waiting" in (one or "") for one in told)


async def test_wrong_arguments_say_where(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        wrong = await session.call_tool("goex_call", {"calls": [{"method": 7}]})
        unknown = await session.call_tool("goex_call", {"calls": [{"method": "slack.chat.nosuch"}]})
        assert wrong.is_error and "$.calls[0].method" in mcp.text_of(wrong)
        assert unknown.is_error and said(unknown)["retry"] == "changed"
        with pytest.raises(MCPError, match="Unknown tool"):
            await session.call_tool("nosuch", {})


async def test_a_service_that_isnt_connected_is_the_person_s(daemon: Daemon, token: str) -> None:
    call = {"method": "github.issues.create", "arguments": {"owner": "o", "repo": "r", "title": "t"}}
    async with mcp.stdio(daemon, token) as session:
        result = await session.call_tool("goex_call", {"calls": [call]})
    assert not result.is_error
    assert (said(result)["who"], said(result)["retry"]) == ("person", "later")


async def test_a_key_asks_once(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        asked = [
            said(await session.call_tool("goex_call", {"calls": [POST], "wait_seconds": 0, "key": "k1"}))["action"]
            for _ in range(2)
        ]
        await session.call_tool("goex_cancel", {"action": asked[0]})
    assert asked[0] == asked[1]


@pytest.mark.docker
async def test_a_program_runs_is_read_in_pieces_and_undone(daemon: Daemon, folder: Path, token: str) -> None:
    program = {"language": "shell", "program": "echo made > file; seq 1 20000", "folders": [str(folder)]}
    async with mcp.stdio(daemon, token) as session:
        waiting = said(await session.call_tool("goex_program", {**program, "wait_seconds": 0}))
        await mcp.decided(daemon, waiting["action"])
        result = await session.call_tool("goex_wait", {"action": waiting["action"], "seconds": 50})
        done = said(result)
        assert (done["status"], done["changed"], done["undo"]) == ("done", "yes", "exact")
        assert len(mcp.text_of(result)) < 8_000  # characters: 2,000 tokens
        assert done["cut"]
        asked = {"action": done["action"], "path": "$.stdout", "offset": 100, "limit": 20}
        assert len(said(await session.call_tool("goex_result", asked))["data"]) == 20
        undo = said(await session.call_tool("goex_undo", {"action": done["action"], "wait_seconds": 0}))
        await mcp.decided(daemon, undo["action"])
        assert said(await session.call_tool("goex_wait", {"action": undo["action"]}))["status"] == "done"
        listed = said(await session.call_tool("goex_actions", {"state": "undone"}))["actions"]
    assert [one["action"] for one in listed] == [done["action"]]
    assert not (folder / "file").exists()


@pytest.mark.docker
async def test_a_folder_is_read_without_a_question_about_deleting(daemon: Daemon, folder: Path, token: str) -> None:
    (folder / "a.txt").write_text("one\n")
    asked = {"folder": str(folder), "program": "cat a.txt; rm a.txt"}
    async with mcp.stdio(daemon, token) as session:
        waiting = said(await session.call_tool("goex_read", {**asked, "wait_seconds": 0}))
        assert daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0].risk == "read"
        await mcp.decided(daemon, waiting["action"])
        done = said(await session.call_tool("goex_wait", {"action": waiting["action"], "seconds": 50}))
    assert (done["status"], done["changed"]) == ("failed", "no") and "one" in str(done["data"])
    assert (folder / "a.txt").exists()


@pytest.mark.docker
async def test_an_answer_is_kept_though_its_client_gave_up(daemon: Daemon, folder: Path, token: str) -> None:
    program = {"language": "shell", "program": "echo late", "folders": [str(folder)], "key": "patient"}
    async with mcp.stdio(daemon, token) as session:
        asking = asyncio.create_task(session.call_tool("goex_program", program))
        waiting: list[dict[str, Any]] = []
        while not waiting:
            waiting = said(await session.call_tool("goex_actions", {"state": "waiting"}))["actions"]
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await mcp.decided(daemon, waiting[0]["action"])
        done = said(await session.call_tool("goex_wait", {"action": waiting[0]["action"], "seconds": 50}))
    assert (done["status"], done["data"]) == ("done", "late\n")


START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def test_broken_json_is_answered_and_doesnt_end_it(daemon: Daemon, token: str) -> None:
    process = await asyncio.create_subprocess_exec(
        str(GOEX),
        "mcp",
        env={**daemon.env, "GOEX_AGENT_TOKEN": token},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    deep = b"[" * 3000 + b"]" * 3000
    call = b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"goex_call","arguments":' + deep + b"}}"
    broken = {b"{not json": -32700, call: -32700, b'{"jsonrpc":"1.0","id":1}': -32600, b"[]": -32600}
    initialize = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": START}
    process.stdin.write(b"\n".join([*broken, json.dumps(initialize).encode()]) + b"\n")
    await process.stdin.drain()
    said = []
    while not said or said[-1]["id"] != 7:
        said.append(json.loads(await asyncio.wait_for(process.stdout.readline(), 300)))
    assert [each["error"]["code"] for each in said[:-1]] == [*broken.values()]
    assert {each["id"] for each in said[:-1]} == {None} and "protocolVersion" in said[-1]["result"]
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 300) == 0


async def test_what_is_too_long_is_said_to_be(daemon: Daemon, token: str) -> None:
    async with mcp.stdio(daemon, token) as session:
        wrong = await session.call_tool("goex_find", {"query": "x" * 10_000_000})
    assert wrong.is_error and said(wrong)["summary"].endswith("is too long")
    assert len(mcp.text_of(wrong)) < 600


async def test_no_next_step_of_an_agent_is_a_command_line(daemon: Daemon, token: str) -> None:
    """What isn't there and what is another's are told in the same words."""
    other = daemon.add_agent("other")
    async with mcp.stdio(daemon, token) as session, mcp.stdio(daemon, other) as neighbour:
        theirs = said(await neighbour.call_tool("goex_call", {"calls": [POST], "wait_seconds": 0}))["action"]
        for tool in ("goex_wait", "goex_undo", "goex_cancel"):
            none = await session.call_tool(tool, {"action": "a-000000000000"})
            hidden = await session.call_tool(tool, {"action": theirs})
            assert mcp.text_of(hidden) == mcp.text_of(none).replace("a-000000000000", theirs)
            assert (said(none)["who"], said(none)["next"]) == ("agent", "See the list of your actions.")
        await neighbour.call_tool("goex_cancel", {"action": theirs})


async def test_a_daemon_that_dies_is_no_reason_to_send_it_again() -> None:
    """Neither while its question stands, nor afterwards; and once the daemon is back, its agent finds the action."""
    with Daemon() as own:
        token = own.add_agent("bot")
        mcp.connect_slack(own)
        async with mcp.stdio(own, token) as session:
            asking = asyncio.create_task(session.call_tool("goex_call", {"calls": [POST], "wait_seconds": 50}))
            listing: list[Any] = []
            while not listing:
                listing = said(await session.call_tool("goex_actions", {"state": "waiting"}))["actions"]
            own.kill()
            lost = await asking
            later = await session.call_tool("goex_wait", {"action": said(lost)["action"], "seconds": 0})
            for one in (said(lost), said(later)):
                assert (one["status"], one["changed"], one["retry"]) == ("unknown", "unknown", "no")
                assert one["action"] in one["next"] and "Don't send it again" in one["next"]
            own.start()
            own.unlock()
            found = said(lost)
            while found["status"] == "unknown":  # the connection is tried again after a moment
                found = said(await session.call_tool("goex_wait", {"action": found["action"], "seconds": 0}))
            assert found["status"] in ("waiting", "withdrawn") and found["changed"] == "no"


@pytest.mark.parametrize("more", ["", "not JSON\n" * 10], ids=("one message", "bad lines"))
def test_a_client_that_dies_before_it_reads_is_no_defect(daemon: Daemon, tmp_path: Path, more: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    asked = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": START}) + "\n" + more
    command = [GOEX, "mcp", "--socket", tmp_path / "none"]
    with os.fdopen(writes, "wb") as nobody:
        done = subprocess.run(
            command, env=daemon.env, input=asked, stdout=nobody, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 0 and "The client went away" in done.stderr and "Internal error" not in done.stderr


def test_the_command_without_the_sdk_says_how_to_get_it(daemon: Daemon) -> None:
    code = "import sys; sys.modules['mcp'] = None; sys.argv = ['goex', 'mcp']; import goex.cli.main as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], env=daemon.env, capture_output=True, text=True, check=False)
    assert done.returncode == 8
    assert "pip install 'goex[mcp]'" in done.stderr
