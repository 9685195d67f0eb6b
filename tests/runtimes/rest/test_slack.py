"""End to end with a stateful service over TLS: post, undo by delete, conflict, references, failures."""

from __future__ import annotations

import pytest

from policies.actions import ApiCalls, Outcome, Plan, Revert, UndoClass
from policies.errors import Conflict, Unsupported
from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import TOKEN, Bench, FakeSlack, calls

pytestmark = pytest.mark.docker

TEXT = 'Deployed — ünïcode "quotes" & all?'
POST = calls(("slack.chat.postMessage", {"channel": "#ops", "text": TEXT}))


async def run(runtime: RestRuntime, bench: Bench, action: ApiCalls, id: str = "a1") -> tuple[Plan, Outcome]:
    context = bench.context(id)
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return plan, await runtime.execute(plan, context)


async def revert(runtime: RestRuntime, bench: Bench, plan: Plan, verb: str, id: str) -> Outcome:
    wanted = Revert(verb=verb, target="a1")  # type: ignore[arg-type]
    target = bench.context("a1")
    revert_plan = await runtime.assess_revert(wanted, plan, target)
    return await runtime.execute_revert(wanted, revert_plan, plan, target, bench.context(id))


def sent(slack: FakeSlack) -> list[str]:
    return [hit.path.rpartition("/")[2] for hit in slack.hits]


async def test_post_is_sent_and_taken_back(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    plan, outcome = await run(runtime, slack_bench, POST)

    assert outcome.ok, outcome.summary
    assert plan.undo_class is UndoClass.COMPENSATING
    assert list(slack.messages.values()) == [TEXT]
    assert outcome.results[0]["body"]["ok"] is True
    assert slack.hits[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert slack_bench.kinds("a1") == ["request", "answer"]

    undone = await revert(runtime, slack_bench, plan, "undo", "a2")

    assert undone.ok, undone.summary
    assert slack.messages == {}
    assert sent(slack)[1:] == ["chat.getPermalink", "chat.delete", "chat.getPermalink"]
    with pytest.raises(Unsupported):
        await revert(runtime, slack_bench, plan, "undo", "a3")


async def test_undo_of_what_someone_deleted_is_a_conflict(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await run(runtime, slack_bench, POST)
    slack.messages.clear()

    with pytest.raises(Conflict) as conflict:
        await revert(runtime, slack_bench, plan, "undo", "a2")

    assert any("isn't there any more" in line for line in conflict.value.difference)
    assert any("message_not_found" in line for line in conflict.value.difference)
    assert sent(slack)[1:] == ["chat.getPermalink"]


async def test_a_scope_that_the_credential_lacks_is_named(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.override = lambda _: (200, {"ok": False, "error": "missing_scope", "needed": "chat:write,chat:\u202ewrite"})
    _, outcome = await run(runtime, slack_bench, POST)
    assert not outcome.ok and not outcome.touched
    lacking = "the credential lacks chat:write"  # the other isn't a scope that GoEx knows
    assert any("chat:\\u{202e}write" in line for line in outcome.details)
    assert outcome.summary == f"slack.chat.postMessage failed. It was refused (status 200): {lacking}."
    assert not slack.messages


async def test_undo_that_a_failing_service_keeps_from_comparing_is_no_conflict(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await run(runtime, slack_bench, POST)
    slack.override = lambda hit: (503, {}) if hit.method == "GET" else None

    outcome = await revert(runtime, slack_bench, plan, "undo", "a2")

    assert not outcome.ok
    assert not outcome.touched
    assert "503" in outcome.summary
    assert len(slack.messages) == 1


async def test_a_read_back_that_does_not_confirm_is_said(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await run(runtime, slack_bench, POST)
    slack.override = lambda hit: (200, {"ok": True}) if hit.path.endswith("chat.delete") else None

    outcome = await revert(runtime, slack_bench, plan, "undo", "a2")

    assert not outcome.ok
    assert outcome.touched
    assert "read-back did not confirm" in outcome.summary
    assert slack_bench.kinds("a2").count("undo-failed") == 1
    assert sent(slack).count("chat.delete") == 1
    assert len(slack.messages) == 1


async def test_redo_sends_a_new_message_and_undo_takes_back_that_one(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await run(runtime, slack_bench, POST)
    (first,) = slack.messages
    await revert(runtime, slack_bench, plan, "undo", "a2")

    again = await revert(runtime, slack_bench, plan, "redo", "a3")

    assert again.ok, again.summary
    (second,) = slack.messages
    assert second != first
    with pytest.raises(Unsupported):
        await runtime.assess_revert(Revert(verb="redo", target="a1"), plan, slack_bench.context("a1"))
    assert (await revert(runtime, slack_bench, plan, "undo", "a4")).ok
    assert slack.messages == {}


async def test_commit_drops_the_way_back(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    plan, _ = await run(runtime, slack_bench, POST)

    assert (await revert(runtime, slack_bench, plan, "commit", "a2")).ok
    assert (await revert(runtime, slack_bench, plan, "commit", "a3")).ok

    assert b"1700000001" not in (slack_bench.records["a1"].get("answers") or b"")
    with pytest.raises(Unsupported, match="committed"):
        await revert(runtime, slack_bench, plan, "undo", "a4")


async def test_a_later_call_uses_the_answer_to_an_earlier_one(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    action = calls(
        ("slack.conversations.create", {"name": "launch"}),
        ("slack.chat.postMessage", {"channel": {"$from": 0, "path": "$.channel.id"}, "text": "Welcome"}),
        ("slack.conversations.setTopic", {"channel": {"$from": 0, "path": "$.channel.id"}, "topic": "T-1"}),
    )
    plan, outcome = await run(runtime, slack_bench, action)

    assert outcome.ok, outcome.summary
    assert list(slack.messages) == [("C0LAUNCH", "1700000001.000100")]
    assert len(outcome.results) == 3

    undone = await revert(runtime, slack_bench, plan, "undo", "a2")

    assert undone.ok, undone.summary
    writes = [hit.path.rpartition("/")[2] for hit in slack.writes()][3:]
    assert writes == ["conversations.setTopic", "chat.delete", "conversations.archive"]
    assert slack.channels["C0LAUNCH"] == {
        "id": "C0LAUNCH", "name": "launch", "is_archived": True, "topic": {"value": ""},
    }  # fmt: skip


async def test_a_failing_second_call_leaves_the_first_to_be_taken_back(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    action = calls(
        ("slack.chat.postMessage", {"channel": "#ops", "text": "one"}),
        ("slack.chat.postMessage", {"channel": "#nowhere", "text": "two"}),
        ("slack.chat.postMessage", {"channel": "#ops", "text": "three"}),
    )
    plan, outcome = await run(runtime, slack_bench, action)

    assert not outcome.ok
    assert outcome.touched
    assert "1 of 3 calls went well" in outcome.summary
    assert "(call 2)" in outcome.summary
    assert list(slack.messages.values()) == ["one"]
    assert [result["body"]["ok"] for result in outcome.results] == [True, False]

    assert (await revert(runtime, slack_bench, plan, "undo", "a2")).ok
    assert slack.messages == {}


async def test_two_calls_on_one_object_are_taken_back_in_turn(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    action = calls(
        ("slack.conversations.setTopic", {"channel": "C0OPS", "topic": "B"}),
        ("slack.conversations.setTopic", {"channel": "C0OPS", "topic": "C"}),
    )
    plan, outcome = await run(runtime, slack_bench, action)
    assert outcome.ok, outcome.summary

    undone = await revert(runtime, slack_bench, plan, "undo", "a2")

    assert undone.ok, undone.summary
    assert slack.channels["C0OPS"]["topic"] == {"value": "calm"}


async def test_the_first_call_refused_by_the_service_is_said_with_its_reason(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, outcome = await run(
        runtime, slack_bench, calls(("slack.chat.postMessage", {"channel": "#nowhere", "text": "x"}))
    )

    assert not outcome.ok
    assert any("Slack answered that it didn't do it" in line for line in outcome.details)
    assert any("channel_not_found" in line for line in outcome.details) and "_not_" not in outcome.summary
    with pytest.raises(Unsupported, match="nothing to take back"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, slack_bench.context("a1"))


async def test_the_token_is_nowhere_in_what_is_kept_or_said(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.override = lambda hit: (200, {"ok": True, "channel": "C0OPS", "ts": "1.1", "echo": hit.headers})
    plan, outcome = await run(runtime, slack_bench, POST)

    kept = slack_bench.records["a1"].get("answers") or b""
    assert b"echo" in kept
    for place in (kept, repr(outcome).encode(), repr(slack_bench.notes).encode(), repr(plan).encode()):
        assert TOKEN.encode() not in place
