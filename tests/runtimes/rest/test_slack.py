"""End to end with a stateful service over TLS: post, undo by delete, conflict, references, failures."""

from __future__ import annotations

import pytest

from policies.actions import Revert, UndoClass
from policies.errors import Conflict, Unsupported
from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import TOKEN, Bench, FakeSlack, calls

pytestmark = pytest.mark.docker

POST = calls(("slack.chat.postMessage", {"channel": "#ops", "text": "Deployed — ünïcode \"quotes\" & all?"}))
UNDO = Revert(verb="undo", target="a1")


async def test_post_is_sent_and_taken_back(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    context = slack_bench.context("a1")
    plan = await runtime.assess(POST, context)
    assert slack.hits == []
    assert plan.undo_class is UndoClass.COMPENSATING
    await runtime.prepare(plan, context)

    outcome = await runtime.execute(plan, context)

    assert outcome.ok, outcome.summary
    assert list(slack.messages.values()) == ["Deployed — ünïcode \"quotes\" & all?"]
    assert outcome.results[0]["body"]["ok"] is True
    assert slack.hits[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert slack_bench.kinds("a1") == ["request", "answer"]

    revert_plan = await runtime.assess_revert(UNDO, plan, context)
    undone = await runtime.execute_revert(UNDO, revert_plan, plan, context, slack_bench.context("a2"))

    assert undone.ok, undone.summary
    assert slack.messages == {}
    sent = [hit.path.rpartition("/")[2] for hit in slack.hits[1:]]
    assert sent == ["chat.getPermalink", "chat.delete", "chat.getPermalink"]
