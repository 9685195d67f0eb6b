"""What an untrusted service can do with its answers: fill a value, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from policies.actions import Outcome, Revert
from policies.errors import Conflict, Unsupported
from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import Bench, FakeGitHub, FakeSlack, Hit, calls

pytestmark = pytest.mark.docker

# Each would be another request than the one that was shown, or no value of its kind.
WEIRD: dict[str, Any] = {
    "traversal": "../../admin",
    "dot": "..",
    "encoded": "..%2f..%2fadmin",
    "slash": "7/comments",
    "query": "7?admin=1",
    "line end": "7\r\nX-Evil: 1",
    "nul": "7\u0000",
    "empty": "",
    "object": {"number": 7},
    "list": [7],
    "reference": {"$from": 0, "path": "$.number"},
    "ref": {"$ref": ["call-0", "$.title"]},
    "bool": True,
    "null": None,
    "float": 7.5,
    "huge": "7" * 100_000,
    "zero": 0,
    "negative": -7,
}


def chain() -> Any:
    return calls(
        ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "A"}),
        (
            "github.issues.setTitle",
            {"owner": "acme", "repo": "tool", "issue_number": {"$from": 0, "path": "$.number"}, "title": "B"},
        ),
    )


async def execute(runtime: RestRuntime, bench: Bench, action: Any) -> tuple[Any, Outcome]:
    context = bench.context("a1")
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return plan, await runtime.execute(plan, context)


@pytest.mark.promise(46)
@pytest.mark.parametrize("kind", ["traversal", "object", "reference", "bool"])
async def test_a_weird_id_never_becomes_part_of_a_request(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench, kind: str
) -> None:
    github.override = lambda hit: (201, {"number": WEIRD[kind], "title": "A"}) if hit.method == "POST" else None

    _, outcome = await execute(runtime, github_bench, chain())

    assert not outcome.ok
    assert outcome.touched
    assert "1 of 2 calls went well" in outcome.summary
    assert [hit.method for hit in github.hits] == ["POST"]


async def test_the_same_chain_goes_through_with_a_decent_id(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    _, outcome = await execute(runtime, github_bench, chain())

    assert outcome.ok, outcome.summary
    assert github.issues[8]["title"] == "B"


async def test_an_undo_is_not_made_from_a_weird_answer(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    post = calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"}))
    slack.override = lambda hit: (200, {"ok": True, "channel": {"id": "C0OPS"}, "ts": "1.1"})
    plan, outcome = await execute(runtime, slack_bench, post)
    assert outcome.ok

    with pytest.raises(Unsupported, match="channel"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, slack_bench.context("a1"))


async def test_an_answer_without_what_undo_needs_makes_no_undo(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.override = lambda hit: (200, {"ok": True})
    plan, _ = await execute(runtime, slack_bench, calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"})))

    with pytest.raises(Unsupported, match=r"\$\.channel"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, slack_bench.context("a1"))


@pytest.mark.promise(46)
async def test_what_an_answer_adds_is_never_called(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    """Links, calls and instructions in an answer stay text."""
    slack.override = lambda hit: (200, {"ok": True, "members": [], "next": f"{slack.url}/chat.delete", "calls": [{}]})

    _, outcome = await execute(runtime, slack_bench, calls(("slack.users.list", {})))

    assert outcome.ok
    assert len(slack.hits) == 1


async def test_a_large_answer_keeps_what_undo_needs(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    def padded(hit: Hit) -> tuple[int, Any] | None:
        if not hit.path.endswith("chat.postMessage"):
            return None
        status, body = slack.handle(hit)
        return status, {**body, "padding": ["x" * 1000] * 1500}

    slack.override = padded
    plan, outcome = await execute(
        runtime, slack_bench, calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"}))
    )
    assert outcome.ok
    assert outcome.results[0] == {"status": 200, "body": None, "cut": True}
    assert len(slack_bench.records["a1"].get("answers") or b"") < 10_000

    undo = Revert(verb="undo", target="a1")
    target = slack_bench.context("a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)
    assert (await runtime.execute_revert(undo, undo_plan, plan, target, slack_bench.context("a2"))).ok
    assert slack.messages == {}


async def test_an_answer_that_is_not_json_is_an_answer_without_values(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.override = lambda hit: (200, b"<html>maintenance</html>")

    _, outcome = await execute(runtime, slack_bench, calls(("slack.users.list", {})))

    assert not outcome.ok
    assert "maintenance" in outcome.results[0]["text"]


async def test_a_conflict_shows_foreign_text_escaped(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    plan, _ = await execute(
        runtime, github_bench, calls(("github.issues.create", {"owner": "acme", "repo": "tool", "title": "A"}))
    )
    github.issues[8]["title"] = "\x1b[2Jgone\u202e"
    undo = Revert(verb="undo", target="a1")
    target = github_bench.context("a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)

    with pytest.raises(Conflict) as conflict:
        await runtime.execute_revert(undo, undo_plan, plan, target, github_bench.context("a2"))

    text = "\n".join(conflict.value.difference)
    assert "title was changed" in text
    assert "gone" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert github.issues[8]["state"] == "open"
