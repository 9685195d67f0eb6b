"""What a model reads when something doesn't run: who decided, whether anything changed, and what it may do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import ClientSession

from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.adversarial.state_scene import rules
from tests.support import mcp
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

CHANNEL = {"channel": "C0123456789"}
POST: dict[str, Any] = {"method": "slack.chat.postMessage", "arguments": {**CHANNEL, "text": "hi"}}
ARCHIVE: dict[str, Any] = {"method": "slack.conversations.archive", "arguments": CHANNEL}
RULE = """@id("no-archiving")
forbid (principal, action == Action::"call", resource == Method::"slack.conversations.archive");"""


@pytest.fixture(scope="module")
def own() -> Iterator[Daemon]:
    """A daemon whose questions end after eight seconds, with a rule."""
    with Daemon(config="[ask]\nseconds = 8\n") as made:
        mcp.connect_slack(made)
        files = [rb.RuleFile(name="mine.cedar", text=RULE)]
        checked = rules(made, "CheckRules", rb.CheckRulesRequest(files=files))
        applied = rb.ApplyRulesRequest(files=files, compared_with=checked.hash, passphrase=APPROVAL_PASSPHRASE)
        rules(made, "ApplyRules", applied)
        yield made


@pytest.fixture(scope="module")
def token(own: Daemon) -> str:
    return own.add_agent("bot")


async def asked(session: ClientSession, call: dict[str, Any], **more: Any) -> tuple[dict[str, Any], list[str]]:
    """The facts of an answer, and the lines that a model reads. None of these is an error that it could mend."""
    result = await session.call_tool("goex_call", {"calls": [call], **more})
    assert not result.is_error
    return dict(result.structured_content or {}), mcp.text_of(result).splitlines()


async def test_what_waits_says_until_when(own: Daemon, token: str) -> None:
    async with mcp.stdio(own, token) as session:
        waiting, (_, then) = await asked(session, POST, wait_seconds=0)
        await session.call_tool("goex_cancel", {"action": waiting["action"]})
    assert (waiting["status"], waiting["changed"], waiting["who"]) == ("waiting", "no", "person")
    until = waiting["deadline"].partition(".")[0].removesuffix("Z")
    wait = f"Do other work or wait for {waiting['action']}; don't send it again."
    assert then == f"Nothing has run. The person has until {until}Z. {wait}"


async def test_a_no_with_a_reason_may_be_followed(own: Daemon, token: str) -> None:
    async with mcp.stdio(own, token) as session:
        waiting, _ = await asked(session, POST, wait_seconds=0)
        await mcp.decided(own, waiting["action"], approve=False, reason="use #random")
        first, then = mcp.text_of(await session.call_tool("goex_wait", {"action": waiting["action"]})).splitlines()
    assert first.endswith("The person denied it: use #random.")
    assert then == (
        "Nothing ran. Don't repeat it or reach the same by another way; a proposal that follows this reason may be "
        "made."
    )


async def test_a_no_isnt_asked_again(own: Daemon, token: str) -> None:
    async with mcp.stdio(own, token) as session:
        waiting, _ = await asked(session, POST, wait_seconds=0)
        await mcp.decided(own, waiting["action"], approve=False)
        first, then = mcp.text_of(await session.call_tool("goex_wait", {"action": waiting["action"]})).splitlines()
    assert first.endswith(": denied; changed: no; undo: none. The person denied it.")
    assert then == "Nothing ran. Ask the user before proposing it again."


async def test_a_rule_is_named_and_nobody_was_asked(own: Daemon, token: str) -> None:
    async with mcp.stdio(own, token) as session:
        facts, (first, then) = await asked(session, ARCHIVE)
    assert (facts["status"], facts["changed"], facts["retry"]) == ("forbidden", "no", "no")
    assert "no-archiving" in first
    assert then == "Nobody was asked, and nothing ran. Don't repeat it; tell the user what stands against it."


async def test_a_time_out_is_no_opinion(own: Daemon, token: str) -> None:
    async with mcp.stdio(own, token) as session:
        facts, (_, then) = await asked(session, POST)
    assert (facts["status"], facts["changed"], facts["retry"], facts["who"]) == ("timed-out", "no", "later", "person")
    assert then.endswith("Nothing ran. This isn't an opinion; tell the user, and retry when they are there.")


async def test_a_sealed_vault_is_the_persons_to_open(own: Daemon, token: str) -> None:
    own.person("VaultSeal", pb.VaultSealRequest())
    try:
        async with mcp.stdio(own, token) as session:
            facts, (first, then) = await asked(session, POST)
    finally:
        own.unlock()
    assert (facts["status"], facts["changed"], facts["retry"], facts["who"]) == ("failed", "no", "later", "person")
    assert first.endswith("The vault is sealed.") and "Only the person can mend this; tell them, and stop" in then


@pytest.mark.parametrize("words", ["knit me a sweater", "knit"])
def test_words_that_nothing_fits_send_no_agent_to_a_command_line(own: Daemon, token: str, words: str) -> None:
    """The person is told the command: the control."""
    said = {}
    for who in ("agent", "person"):
        journey = Journey(own, pb.ExecuteRequest(intent=words), token=token, person=who == "person")
        said[who] = journey.finished().problem
    assert said["agent"].code == said["person"].code == "nothing-fits"
    assert "goex" not in said["agent"].next_step
    assert said["person"].next_step == "See what there is: goex catalog list"
