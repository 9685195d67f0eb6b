"""What a daemon doesn't tell isn't said to have changed nothing, nor not to be there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams

from goex.daemon.ending import guided
from goex.daemon.rpc_context import PROBLEM_KEY
from goex.mcp.daemon_link import Caller, DaemonLink
from goex.mcp.resources import PREFIX, ActionResources
from goex.mcp.results import of_error
from goex.mcp.server import Door
from goex.mcp.transports import Tokens
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.errors import ExitStatus, GoexError

CALLER = Caller("")
PROBLEMS = {
    "exhausted": pb.Problem(code="exhausted", message="Too many looks.", exit_status=ExitStatus.DENIED),
    "not there": pb.Problem(code="invalid", message="There is no action.", exit_status=ExitStatus.USAGE),
    "a key that isn't known": pb.Problem(
        code="unknown", message="Sealed.", next_step="goex vault unlock", exit_status=ExitStatus.UNKNOWN
    ),
}
CROWDED = guided(
    pb.Problem(code="crowded", message="Too many calls.", next_step="End some.", exit_status=ExitStatus.UNAVAILABLE)
)
SEALED = guided(
    pb.Problem(code="sealed", message="Sealed.", next_step="goex vault unlock", exit_status=ExitStatus.SEALED)
)
LARGEST = 10_000  # bytes of a request


class Daemon(rpc.ActionsServicer):
    """Ends each call as it is told to."""

    def __init__(self) -> None:
        self.problem = ""
        self.broken = False
        self.said: tuple[grpc.StatusCode, str] | None = None

    async def _end(self, context: Any) -> None:
        if self.problem:
            said = PROBLEMS[self.problem].SerializeToString()
            await context.abort(grpc.StatusCode.ABORTED, "no", trailing_metadata=((PROBLEM_KEY, said),))
        if self.said:
            await context.abort(*self.said)
        if self.broken:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")

    async def Execute(self, request: Any, context: Any) -> AsyncIterator[pb.Event]:
        await self._end(context)
        return
        yield

    async def Get(self, request: Any, context: Any) -> pb.ActionView:
        await self._end(context)
        return pb.ActionView(id=request.id)

    async def List(self, request: Any, context: Any) -> pb.ListReply:
        await self._end(context)
        return pb.ListReply()


@pytest.fixture
async def said(tmp_path: Path) -> AsyncIterator[tuple[Daemon, DaemonLink]]:
    server, daemon = grpc.aio.server(options=[("grpc.max_receive_message_length", LARGEST)]), Daemon()
    rpc.add_ActionsServicer_to_server(daemon, server)
    server.add_insecure_port(f"unix:{tmp_path / 's'}")
    await server.start()
    link = DaemonLink(tmp_path / "s")
    yield daemon, link
    await link.close()
    await server.stop(None)


async def begun(link: DaemonLink, **request: str) -> dict[str, Any]:
    """What a call is answered that couldn't be begun, as far as is known."""
    with pytest.raises(GoexError) as caught:
        await link.begin(pb.ExecuteRequest(**request), CALLER)
    return dict(of_error(caught.value).structured_content or {})


@pytest.mark.parametrize("broken", [False, True], ids=["nothing", "broken"])
async def test_a_request_that_nothing_is_heard_of_may_have_been_taken(
    said: tuple[Daemon, DaemonLink], broken: bool
) -> None:
    said[0].broken = broken
    told = await begun(said[1])
    assert (told["status"], told["changed"]) == ("unknown", "unknown") and "goex_actions" in told["next"]


async def test_a_problem_says_whether_it_was_taken(said: tuple[Daemon, DaemonLink], tmp_path: Path) -> None:
    changed = []
    for said[0].problem in PROBLEMS:
        changed.append((await begun(said[1]))["changed"])
    away = DaemonLink(tmp_path / "none")
    assert [*changed, (await begun(away))["changed"]] == ["no", "no", "unknown", "no"]
    told = await begun(away, key="k")  # it may have been sent before
    assert (told["status"], told["changed"], told["who"]) == ("unknown", "unknown", "person")
    assert "Don't send it without the same key." in told["next"]
    await away.close()


@pytest.mark.parametrize("token", ["goex_\xe9", "goex_\t", "goex_\0", "\u202e"])
async def test_what_no_token_can_be_is_none(said: tuple[Daemon, DaemonLink], token: str) -> None:
    """Whoever reaches the server can send it."""
    assert await Tokens(said[1]).verify_token(token) is None
    with pytest.raises(GoexError) as refused:
        await said[1].begin(pb.ExecuteRequest(), Caller(token))
    assert (of_error(refused.value).structured_content or {})["changed"] == "no"


async def test_who_can_mend_what_isnt_known_is_told(said: tuple[Daemon, DaemonLink]) -> None:
    said[0].problem = "a key that isn't known"
    told = await begun(said[1])
    assert told["who"] == "person" and told["next"].endswith("tell them: goex vault unlock")


async def test_before_it_was_read_nothing_says_whether_its_key_was_used(
    said: tuple[Daemon, DaemonLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROBLEMS, "crowded", CROWDED)
    monkeypatch.setitem(PROBLEMS, "sealed", SEALED)
    said[0].problem = "crowded"
    told = await begun(said[1])
    assert (told["changed"], told["retry"], told["who"], told["next"]) == ("no", "later", "agent", "End some.")
    told = await begun(said[1], key="k")
    assert (told["changed"], told["who"]) == ("unknown", "agent") and "same key" in told["next"]
    said[0].problem = "sealed"
    assert (await begun(said[1]))["changed"] == "no"
    told = await begun(said[1], key="k")
    assert (told["changed"], told["who"]) == ("unknown", "person") and told["next"].endswith("goex vault unlock")
    said[0].problem, said[0].said = "", (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    assert (await begun(said[1], key="k"))["changed"] == "unknown"


@pytest.mark.parametrize(
    ("token", "code", "same"),
    [("t", "sealed", True), ("", "sealed", False), ("", "crowded", True), ("t", "unauthenticated", False)],
)
async def test_only_an_agent_with_a_name_is_told_to_send_it_with_the_same_key(
    said: tuple[Daemon, DaemonLink], monkeypatch: pytest.MonkeyPatch, token: str, code: str, same: bool
) -> None:
    """Without one, or with one that was removed, the key would begin another action."""
    problem = pb.Problem(code=code, message="No.", exit_status=ExitStatus.DENIED)
    monkeypatch.setitem(PROBLEMS, code, problem)
    said[0].problem = code
    door, call = Door(said[1], lambda _: Caller(token), {}), {"method": "slack.chat.postMessage", "arguments": {}}
    params = CallToolRequestParams(name="goex_call", arguments={"calls": [call], "key": "k"})
    told: Any = await door.call_tool(SimpleNamespace(), params)  # type: ignore[arg-type]
    told = told.structured_content
    assert (told["status"], told["changed"]) == ("unknown", "unknown") and ("same key" in told["next"]) is same
    assert told["who"] == ("agent" if same else "person")


async def test_what_is_too_large_to_be_taken_wasnt(said: tuple[Daemon, DaemonLink]) -> None:
    told = await begun(said[1], intent="x" * LARGEST)
    assert (told["status"], told["changed"], told["retry"]) == ("failed", "no", "changed") and "less" in told["next"]
    assert (await begun(said[1], intent="x" * LARGEST, key="k"))["changed"] == "no"  # nor was it before
    said[0].said = grpc.StatusCode.UNIMPLEMENTED, "Method not found!"
    assert (await begun(said[1]))["changed"] == "no"
    # As the client's own side says it of an answer that is too long: that may be of what was begun.
    said[0].said = grpc.StatusCode.RESOURCE_EXHAUSTED, "Stream removed (CLIENT: Received message larger than max)"
    told = await begun(said[1])
    assert (told["changed"], told["who"]) == ("unknown", "agent") and "less" not in told["next"]


@pytest.mark.parametrize(("problem", "words"), [("exhausted", "Too many looks."), ("not there", "no such task")])
async def test_a_task_that_cant_be_looked_at_isnt_an_unknown_one(
    said: tuple[Daemon, DaemonLink], problem: str, words: str
) -> None:
    said[0].problem = problem
    door = Door(said[1], lambda _: CALLER, {})
    with pytest.raises(MCPError, match=words):
        await door.task(SimpleNamespace(), "a-1")  # type: ignore[arg-type]


async def test_nor_is_a_resource(said: tuple[Daemon, DaemonLink]) -> None:
    resources, context = ActionResources(said[1], lambda _: CALLER), SimpleNamespace()
    for said[0].problem, words in (("exhausted", r"^Too many looks\."), ("not there", "not found")):
        with pytest.raises(MCPError, match=words):
            await resources.read(context, SimpleNamespace(uri=f"{PREFIX}a-1"))  # type: ignore[arg-type]
    said[0].problem = "exhausted"
    with pytest.raises(MCPError, match="Too many looks"):
        await resources.list(context, SimpleNamespace())  # type: ignore[arg-type]
