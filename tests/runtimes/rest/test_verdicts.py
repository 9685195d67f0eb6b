"""After a crash at every write of the record, and the faults that leave a request without its answer."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Outcome, Plan, Revert
from policies.errors import ExitStatus, GoexError, Unsupported
from policies.services import Expect
from runtimes.base import Context
from runtimes.rest.records import Answer
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.undo import planned_steps
from runtimes.rest.verdicts import Verdict, judge, unmet
from tests.runtimes.rest.support import Bench, FakeGitHub, FakeSlack, Hit, calls

pytestmark = pytest.mark.docker

POST = calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"}))
TITLE = calls(("github.issues.setTitle", {"owner": "acme", "repo": "tool", "issue_number": 7, "title": "New"}))


async def execute(runtime: RestRuntime, bench: Bench, action: Any) -> tuple[Plan, Outcome, list[Path]]:
    """Run it, with a copy of the record as it was on disk after each write: what a crash there would leave."""
    context = bench.context("a1")
    copies: list[Path] = []
    records = bench.records["a1"]
    put = records.put

    def copying(name: str, data: bytes) -> None:
        put(name, data)
        copies.append(bench.folder / f"crash-{len(copies)}" / "a1")
        shutil.copytree(records.folder, copies[-1])

    records.put = copying  # type: ignore[method-assign]
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return plan, await runtime.execute(plan, context), copies


def after_crash(bench: Bench, copy: Path, *, leased: bool = True) -> Context:
    return Bench(copy.parent, bench.accounts, bench.secrets).context("a1", leased=leased)


async def test_every_crash_point_of_a_post_is_settled_or_unknown(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, outcome, copies = await execute(runtime, slack_bench, POST)
    assert outcome.ok
    prepared, sent, answered = copies
    hits = len(slack.hits)

    before = await runtime.settle(plan, after_crash(slack_bench, prepared))
    assert before.outcome is not None
    assert not before.outcome.touched

    between = await runtime.settle(plan, after_crash(slack_bench, sent))
    assert between.outcome is None
    assert "chat.postMessage" in between.evidence[0]

    context = after_crash(slack_bench, answered)
    for _ in range(2):
        after = await runtime.settle(plan, context)
        assert after.outcome is not None
        assert after.outcome.ok
        assert after.outcome.results == outcome.results
    assert len(slack.hits) == hits


async def test_a_probe_finds_what_happened(runtime: RestRuntime, github: FakeGitHub, github_bench: Bench) -> None:
    plan, outcome, copies = await execute(runtime, github_bench, TITLE)
    assert outcome.ok
    sent = copies[-2]

    found = await runtime.settle(plan, after_crash(github_bench, sent))
    assert found.outcome is not None
    assert found.outcome.ok


async def test_a_probe_that_says_no_means_nothing_was_touched(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    plan, _, copies = await execute(runtime, github_bench, TITLE)
    github.issues[7]["title"] = "Old title"

    settlement = await runtime.settle(plan, after_crash(github_bench, copies[-2]))

    assert settlement.outcome is not None
    assert not settlement.outcome.ok
    assert not settlement.outcome.touched
    assert [hit.method for hit in github.writes()] == ["PATCH"]


async def test_a_probe_that_cannot_ask_leaves_it_unknown(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    plan, _, copies = await execute(runtime, github_bench, TITLE)
    for status in (500, 401, 429):
        github.override = lambda hit, status=status: (status, {})  # type: ignore[misc]
        settlement = await runtime.settle(plan, after_crash(github_bench, copies[-2]))
        assert settlement.outcome is None
        assert "settles nothing" in "\n".join(settlement.evidence)


async def test_without_leases_the_person_is_told_to_unlock(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    plan, _, copies = await execute(runtime, github_bench, TITLE)
    hits = len(github.hits)

    settlement = await runtime.settle(plan, after_crash(github_bench, copies[-2], leased=False))

    assert settlement.outcome is None
    assert "goex vault unlock" in settlement.evidence[-1]
    assert len(github.hits) == hits


async def test_a_sealed_record_is_unknown_until_the_vault_is_open(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    class Sealed(GoexError):
        exit_status = ExitStatus.SEALED

    plan, _, copies = await execute(runtime, github_bench, TITLE)
    context = after_crash(github_bench, copies[-2])

    def sealed(name: str) -> bytes | None:
        raise Sealed("The vault is sealed.")

    context.records.get = sealed  # type: ignore[method-assign]
    settlement = await runtime.settle(plan, context)

    assert settlement.outcome is None
    assert "sealed" in settlement.evidence[0]


async def test_a_lost_answer_is_asked_about_at_once(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    github.drop = lambda hit: hit.method == "PATCH"

    plan, outcome, _ = await execute(runtime, github_bench, TITLE)

    assert outcome.ok, outcome.summary
    assert github.issues[7]["title"] == "New"
    undo = Revert(verb="undo", target="a1")
    # Its undo compares with the answer, which never came: it isn't guessed.
    with pytest.raises(GoexError):
        await runtime.assess_revert(undo, plan, github_bench.context("a1"))


async def test_a_lost_answer_without_a_probe_is_said_to_be_unknown(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.drop = lambda hit: True

    plan, outcome, _ = await execute(runtime, slack_bench, POST)

    assert not outcome.ok
    assert outcome.touched
    assert "can't be known" in outcome.summary
    settlement = await runtime.settle(plan, slack_bench.context("a1"))
    assert settlement.outcome is None
    with pytest.raises(Unsupported, match="can't be known"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, slack_bench.context("a1"))


async def test_a_half_taken_back_action_is_not_settled_as_done(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    two = calls(*(("slack.chat.postMessage", {"channel": "#ops", "text": text}) for text in ("one", "two")))
    plan, _, _ = await execute(runtime, slack_bench, two)
    undo = Revert(verb="undo", target="a1")
    target = slack_bench.context("a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)
    seen: list[str] = []

    def fail_second(hit: Hit) -> tuple[int, Any] | None:
        seen.append(hit.path)
        return (500, {}) if seen.count("/api/chat.delete") == 2 and hit.method == "POST" else None

    slack.override = fail_second
    outcome = await runtime.execute_revert(undo, undo_plan, plan, target, slack_bench.context("a2"))

    assert not outcome.ok
    assert outcome.touched
    assert outcome.summary.startswith("1 of 2 calls were taken back.")
    assert list(slack.messages.values()) == ["one"]
    settlement = await runtime.settle(plan, slack_bench.context("a1"))
    assert settlement.outcome is None
    assert [line.split(":")[0] for line in settlement.evidence] == [
        "Its undo was sent, and not confirmed",
        "Taken back since",
    ]

    slack.override = lambda hit: None
    rest = await runtime.assess_revert(undo, plan, target)
    assert (await runtime.execute_revert(undo, rest, plan, target, slack_bench.context("a3"))).ok
    assert slack.messages == {}


async def test_an_undo_that_crashed_is_finished_and_nothing_is_sent_twice(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    """The undo ran; its own record is put back to each earlier state, and it is run again."""
    plan, _, _ = await execute(runtime, slack_bench, POST)
    undo = Revert(verb="undo", target="a1")
    target = slack_bench.context("a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)
    done = (slack_bench.records["a1"].folder / "answers").read_bytes()
    context = slack_bench.context("a2")
    copies: list[bytes] = []
    records = slack_bench.records["a2"]
    put = records.put

    def copying(name: str, data: bytes) -> None:
        put(name, data)
        copies.append(data)

    records.put = copying  # type: ignore[method-assign]
    assert (await runtime.execute_revert(undo, undo_plan, plan, target, context)).ok
    deletes = [hit.path for hit in slack.hits].count("/api/chat.delete")

    for data in copies[1:]:  # from the sending of the delete on
        put("answers", data)
        slack_bench.records["a1"].put("answers", done)
        again = await runtime.execute_revert(undo, undo_plan, plan, target, context)
        assert again.ok, again.summary
    assert [hit.path for hit in slack.hits].count("/api/chat.delete") == deletes == 1


async def test_a_redo_that_crashed_does_not_post_twice(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _, _ = await execute(runtime, slack_bench, POST)
    target = slack_bench.context("a1")
    undo, redo = Revert(verb="undo", target="a1"), Revert(verb="redo", target="a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)
    await runtime.execute_revert(undo, undo_plan, plan, target, slack_bench.context("a2"))
    redo_plan = await runtime.assess_revert(redo, plan, target)
    context = slack_bench.context("a3")
    assert (await runtime.execute_revert(redo, redo_plan, plan, target, context)).ok

    again = await runtime.execute_revert(redo, redo_plan, plan, target, context)

    assert again.ok
    assert len(slack.messages) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("status", "body"), [(502, {}), (504, {"error": "late"}), (408, {}), (200, None), (302, None)])
async def test_an_answer_that_leaves_it_open_is_not_taken_for_a_no(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench, status: int, body: Any
) -> None:
    """The message was posted, and what came back (from a proxy, say) is no refusal: nobody may say that it wasn't."""
    slack.override = lambda hit: (slack.handle(hit), (status, body))[1] if hit.method == "POST" else None
    plan, outcome, _ = await execute(runtime, slack_bench, POST)
    assert len(slack.messages) == 1
    assert not outcome.ok and outcome.touched
    assert "can't be known whether it happened" in outcome.summary

    settlement = await runtime.settle(plan, slack_bench.context("a1"))
    assert settlement.outcome is None
    with pytest.raises(Unsupported, match="can't be known"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, slack_bench.context("a1"))


async def test_a_refusal_is_a_no(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    plan, outcome, _ = await execute(
        runtime, slack_bench, calls(("slack.chat.postMessage", {"channel": "#no", "text": "x"}))
    )
    assert not outcome.ok
    assert "can't be known" not in outcome.summary
    settlement = await runtime.settle(plan, slack_bench.context("a1"))
    assert settlement.outcome is not None


async def test_a_probe_settles_what_an_answer_left_open(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench
) -> None:
    github.override = lambda hit: (github.handle(hit), (502, {}))[1] if hit.method == "PATCH" else None
    _, outcome, _ = await execute(runtime, github_bench, TITLE)
    assert outcome.ok
    assert github.issues[7]["title"] == "New"


@pytest.mark.parametrize("status", [302, 400, 403, 422])
async def test_a_probe_s_odd_answer_settles_nothing(
    runtime: RestRuntime, github: FakeGitHub, github_bench: Bench, status: int
) -> None:
    star = calls(("github.stars.add", {"owner": "acme", "repo": "tool"}))
    plan = await runtime.assess(star, github_bench.context("a1"))
    (probe,) = planned_steps(plan, "probes")
    answer = Answer(status=status, well=False, failed="x", body={}, text="")
    assert judge(probe, answer, runtime.catalog.service("github")) is Verdict.UNKNOWN


async def test_a_redo_that_crashed_after_a_failure_sends_nothing_more(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    two = calls(*(("slack.chat.postMessage", {"channel": "#ops", "text": text}) for text in ("one", "two")))
    plan, _, _ = await execute(runtime, slack_bench, two)
    target = slack_bench.context("a1")
    undo, redo = Revert(verb="undo", target="a1"), Revert(verb="redo", target="a1")
    undo_plan = await runtime.assess_revert(undo, plan, target)
    await runtime.execute_revert(undo, undo_plan, plan, target, slack_bench.context("a2"))
    redo_plan = await runtime.assess_revert(redo, plan, target)
    context = slack_bench.context("a3")
    slack.override = lambda hit: (200, {"ok": False, "error": "restricted_action"})
    assert not (await runtime.execute_revert(redo, redo_plan, plan, target, context)).ok

    slack.override = lambda hit: None
    again = await runtime.execute_revert(redo, redo_plan, plan, target, context)  # as the recovery does

    assert not again.ok
    assert slack.messages == {}


async def test_an_undo_does_not_follow_an_account_to_another_server(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _, _ = await execute(runtime, slack_bench, POST)
    target = slack_bench.context("a1")
    (known,) = slack_bench.accounts
    moved = replace(known, base_url=f"{known.base_url}/v2")
    elsewhere = replace(target, accounts={("slack", known.name): moved})

    with pytest.raises(Unsupported, match="another server"):
        await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, elsewhere)


def test_an_unmet_status_is_told_in_words() -> None:
    gone = Expect(op="status", value=[404, 410], says="It is there again.")
    assert unmet([gone], 200, None) == ("It is there again: expected status 404 or 410, and it is 200",)
