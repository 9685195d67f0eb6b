"""What a model reads of an action that ran, or that a service, a folder or its own arguments refused: against a service
that keeps state, real folders and real containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.rest.support import FakeSlack
from tests.support import mcp
from tests.support.daemon import Daemon

pytestmark = pytest.mark.docker
CHANNEL = {"channel": "C0OPS"}
POST: dict[str, Any] = {"method": "slack.chat.postMessage", "arguments": {**CHANNEL, "text": "hi"}}
Read = tuple[dict[str, Any], str, str]


@pytest.fixture(scope="module")
def token(daemon: Daemon, slack: FakeSlack) -> str:
    mcp.connect_fake_slack(daemon, slack)
    return daemon.add_agent("reader")


@pytest.fixture(autouse=True)
def as_ever(slack: FakeSlack) -> Iterator[None]:
    yield
    slack.override, slack.drop = lambda _: None, lambda _: False


@pytest.fixture(scope="module")
def agent(daemon: Daemon, token: str) -> Iterator[Agent]:
    with mcp.serving(daemon) as address:
        yield Agent(daemon, address, token)


class Agent:
    """Asks, while the person says yes, and reads how it ended: the facts, and the two lines for the model."""

    def __init__(self, daemon: Daemon, address: str, token: str) -> None:
        self.daemon, self.address, self.token = daemon, address, token

    async def read(self, tool: str, **arguments: Any) -> Read:
        said = await mcp.call(self.address, self.token, tool, {**arguments, "wait_seconds": 0})
        while (facts := said["structuredContent"])["status"] in ("running", "waiting"):
            if facts["status"] == "waiting":
                await mcp.decided(self.daemon, facts["action"])
            said = await mcp.call(self.address, self.token, "goex_wait", {"action": facts["action"], "seconds": 50})
        first, _, rest = said["content"][0]["text"].partition("\n")
        assert said["isError"] == (facts["status"] in ("failed", "partial") and facts.get("who") == "agent")
        return facts, first, rest

    async def call(self, method: str, **arguments: Any) -> Read:
        return await self.read("goex_call", calls=[{"method": method, "arguments": arguments}])

    async def run(self, folder: Path, program: str) -> Read:
        return await self.read("goex_program", language="shell", program=program, folders=[str(folder)])


def facts_of(facts: dict[str, Any]) -> tuple[str, str, str, str]:
    return facts["status"], facts["changed"], facts["retry"], facts.get("who", "")


async def test_a_scope_that_is_missing_is_named(agent: Agent, slack: FakeSlack) -> None:
    slack.override = lambda _: (200, {"ok": False, "error": "missing_scope", "needed": "reactions:write"})
    facts, first, then = await agent.call("slack.chat.postMessage", **CHANNEL, text="hi")
    assert facts_of(facts) == ("failed", "no", "no", "person")
    assert first.endswith("It was refused (status 200): the credential lacks reactions:write.")
    assert then == (
        "Nothing was changed. Only the person can mend this; tell them, and stop: "
        "Give the account slack/work a credential that has it."
    )


async def test_arguments_name_the_method_that_lists_such_ids(agent: Agent) -> None:
    facts, first, then = await agent.call("slack.conversations.archive", channel="ops")
    assert facts_of(facts) == ("failed", "no", "changed", "agent")
    assert "\"channel\" has the wrong form (The channel's id, like C0123456789), it is the text 'ops'" in first
    assert then.endswith("Find it: slack.conversations.list.")


async def test_what_cant_be_undone_isnt_imitated(agent: Agent) -> None:
    posted, _, _ = await agent.call("slack.chat.postMessage", **CHANNEL, text="gone soon")
    facts, _, then = await agent.call("slack.chat.delete", **CHANNEL, ts=posted["data"]["ts"])
    assert (facts["status"], facts["changed"], facts["undo"]) == ("done", "yes", "none")
    assert then.startswith("It can't be undone: ") and then.endswith("Tell the user; don't imitate an undo.")


async def test_a_conflict_at_a_service_shows_the_difference(agent: Agent, slack: FakeSlack) -> None:
    made, _, _ = await agent.call("slack.conversations.setTopic", **CHANNEL, topic="mine")
    slack.channels["C0OPS"]["topic"]["value"] = "theirs"
    facts, first, then = await agent.read("goex_undo", action=made["action"])
    assert facts_of(facts) == ("failed", "no", "no", "person")
    assert "Changed since: " in first and "theirs" in first
    assert then == "Nothing was touched. Tell the user; don't imitate an undo."
    assert slack.channels["C0OPS"]["topic"]["value"] == "theirs"


async def test_a_conflict_in_a_folder_tells_nothing_of_it_and_sends_nobody_to_a_command_line(
    agent: Agent, folder: Path
) -> None:
    made, _, _ = await agent.run(folder, "echo one > changed")
    (folder / "changed").write_text("theirs\n")
    facts, first, then = await agent.read("goex_undo", action=made["action"])
    assert facts_of(facts) == ("failed", "no", "no", "person")
    assert "it was changed since, or a later action stands on it" in first and "theirs" not in first
    assert then == "Nothing was touched. Tell the user; don't imitate an undo."
    assert (folder / "changed").read_text() == "theirs\n"


async def test_a_part_offers_its_undo(agent: Agent, folder: Path) -> None:
    (folder / "setup.exe").write_text("x")
    facts, first, then = await agent.run(folder, "rm setup.exe; exit 1")
    assert facts_of(facts) == ("partial", "yes", "no", "agent")
    assert first.endswith("The program ended with exit status 1: 1 deleted.")
    assert facts["data"]["changes"] == ["deleted setup.exe"]
    assert then == f"Undo {facts['action']} (exact), or go on from here."


async def test_what_cant_be_known_is_neither_repeated_nor_undone(agent: Agent, slack: FakeSlack) -> None:
    slack.drop = lambda hit: hit.method == "POST"
    facts, _, then = await agent.call("slack.chat.postMessage", **CHANNEL, text="lost")
    assert (*facts_of(facts), facts["undo"]) == ("unknown", "unknown", "no", "person", "none")
    assert then == "It can't be known whether it was done. Don't repeat it; the person decides."
    undone, _, then = await agent.read("goex_undo", action=facts["action"])
    assert facts_of(undone) == ("failed", "no", "no", "person")
    assert then == "Nothing was touched. Tell the user; don't imitate an undo."


async def test_what_is_known_to_be_done_is_undone_though_the_rest_isnt_known(agent: Agent, slack: FakeSlack) -> None:
    """The control of the above: one of two calls is known to be done."""
    slack.drop = lambda hit: hit.body == {**CHANNEL, "text": "lost"}
    calls = [{**POST, "arguments": {**CHANNEL, "text": text}} for text in ("known", "lost")]
    facts, first, _ = await agent.read("goex_call", calls=calls)
    assert (*facts_of(facts), facts["undo"]) == ("partial", "yes", "no", "agent", "compensating")
    assert "1 of 2 calls went well" in first and "can't be known" in first


async def test_what_isnt_connected_is_the_persons(agent: Agent) -> None:
    facts, first, then = await agent.call("gmail.users.messages.list")
    assert facts_of(facts) == ("failed", "no", "later", "person")
    assert "gmail/default isn't connected; this needs https://www.googleapis.com/auth/gmail.metadata." in first
    assert "Only the person can mend this; tell them, and stop" in then
