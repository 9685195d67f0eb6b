"""What breaks around a run: the disk, the journal, the gateway, the container, the person who cancels."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from docker import APIClient

from policies.actions import ApiCalls, Ended, Outcome, Plan, Revert
from policies.errors import Conflict, Denied, GoexError, InvalidInput, Unavailable
from policies.jsonvalue import JsonObject
from runtimes.gateway.client import GatewayClient
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Limits, Profile
from tests.runtimes.rest.support import Bench, FakeSlack, Hit, calls

pytestmark = pytest.mark.docker

POST = calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"}))
TWO = calls(*(("slack.chat.postMessage", {"channel": "#ops", "text": text}) for text in ("one", "two")))
UNDO = Revert(verb="undo", target="a1")


async def prepared(runtime: RestRuntime, bench: Bench, action: ApiCalls) -> tuple[Plan, Any]:
    context = bench.context("a1")
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return plan, context


async def execute(runtime: RestRuntime, bench: Bench, action: ApiCalls) -> tuple[Plan, Outcome]:
    plan, context = await prepared(runtime, bench, action)
    return plan, await runtime.execute(plan, context)


def full_disk() -> Exception:
    return Unavailable("The disk is full.")


async def test_nothing_is_sent_that_could_not_be_recorded(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, context = await prepared(runtime, slack_bench, POST)
    records = slack_bench.records["a1"]
    records.fail_at, records.error = records.writes + 1, full_disk

    outcome = await runtime.execute(plan, context)

    assert not outcome.ok
    assert not outcome.touched
    assert "disk is full" in outcome.summary
    assert slack.hits == []
    assert slack_bench.kinds("a1") == ["refused"]


async def test_an_answer_that_could_not_be_recorded_stops_what_follows(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, context = await prepared(runtime, slack_bench, TWO)
    records = slack_bench.records["a1"]
    records.fail_at, records.error = records.writes + 2, full_disk

    outcome = await runtime.execute(plan, context)

    assert not outcome.ok
    assert outcome.touched
    assert list(slack.messages.values()) == ["one"]
    assert "1 of 2 calls went well" in outcome.summary


async def test_an_answer_that_could_not_be_kept_is_kept_afterwards_or_said_to_be_lost(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, context = await prepared(runtime, slack_bench, POST)
    records = slack_bench.records["a1"]
    records.fail_at, records.error = records.writes + 2, full_disk

    outcome = await runtime.execute(plan, context)

    assert outcome.ok, outcome.summary
    assert (await runtime.assess_revert(UNDO, plan, context)).bounds == {"requests": 3}

    context = slack_bench.context("a9")
    await runtime.prepare(plan, context)
    put = slack_bench.records["a9"].put

    def failing(name: str, data: bytes) -> None:
        if b'"status":200' in data:
            raise full_disk()
        put(name, data)

    context.records.put = failing  # type: ignore[method-assign]
    lost = await runtime.execute(plan, context)
    assert lost.ok
    assert "can't be taken back" in lost.summary


async def test_a_journal_that_says_no_stops_the_second_call(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    """A grant that is revoked while the action runs: the engine's note raises."""

    def revoked(kind: str, facts: JsonObject) -> None:
        if kind == "request" and facts["request"] == "call-1":
            raise Denied("The grant was revoked.")

    slack_bench.on_note = revoked
    plan, outcome = await execute(runtime, slack_bench, TWO)

    assert not outcome.ok
    assert "revoked" in outcome.summary
    assert list(slack.messages.values()) == ["one"]
    undo_plan = await runtime.assess_revert(UNDO, plan, slack_bench.context("a1"))
    assert undo_plan.bounds == {"requests": 3}


async def test_what_is_sent_is_noted_before_it_leaves(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    order: list[str] = []
    slack_bench.on_note = lambda kind, facts: order.append(kind)

    def seen(hit: Hit) -> tuple[int, Any] | None:
        order.append("hit")
        kept = slack_bench.records["a1"].get("answers") or b""
        assert b'"sent":["call-0"]' in kept
        return None

    slack.override = seen
    _, outcome = await execute(runtime, slack_bench, POST)

    assert outcome.ok, outcome.summary
    assert order == ["request", "hit", "answer"]
    (facts,) = [facts for _, kind, facts in slack_bench.notes if kind == "request"]
    assert facts == {
        "request": "call-0",
        "call": "slack.chat.postMessage",
        "method": "POST",
        "url": f"{slack.url}/chat.postMessage",
    }


async def test_a_gateway_that_dies_after_sending_leaves_it_unknown(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    gateway = runtime.gateway
    assert isinstance(gateway, GatewayClient)

    def die(hit: Hit) -> None:
        assert gateway.pid is not None
        os.kill(gateway.pid, signal.SIGKILL)

    slack.after = die
    plan, outcome = await execute(runtime, slack_bench, POST)

    assert not outcome.ok
    assert outcome.touched
    assert "can't be known" in outcome.summary
    assert (await runtime.settle(plan, slack_bench.context("a1"))).outcome is None

    slack.after = lambda hit: None
    other = Bench(slack_bench.folder / "other", slack_bench.accounts)
    _, next_one = await execute(runtime, other, POST)
    assert next_one.ok, next_one.summary


async def test_a_service_that_hangs_ends_at_the_deadline(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(hit: Hit) -> tuple[int, Any] | None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(300)
        return None

    slack.override = hang
    short = replace(runtime, profile=Profile(limits=Limits(seconds=2)))
    try:
        _, outcome = await execute(short, slack_bench, POST)
    finally:
        release.set()

    assert not outcome.ok
    assert outcome.touched
    assert "can't be known" in outcome.summary


async def test_a_cancelled_run_leaves_no_container_and_can_be_settled(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, context = await prepared(runtime, slack_bench, TWO)
    arrived = asyncio.Event()
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(hit: Hit) -> tuple[int, Any] | None:
        if hit.body["text"] == "two":
            loop.call_soon_threadsafe(arrived.set)
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(300)
            return 500, {}
        return None

    slack.override = hang
    task = asyncio.create_task(runtime.execute(plan, context))
    try:
        await asyncio.wait_for(arrived.wait(), 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        release.set()

    settlement = await runtime.settle(plan, slack_bench.context("a1"))
    assert settlement.outcome is None
    assert settlement.evidence[0].startswith("Call 2 was sent")
    assert APIClient().containers(all=True, filters={"label": f"org.goex.state=tests-rest-{os.getpid()}"}) == []
    with pytest.raises(GoexError, match="died"):
        runtime.gateway.check("a1")  # type: ignore[attr-defined]  # it isn't served any more


async def test_a_missing_lease_raises_before_anything_runs(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await prepared(runtime, slack_bench, POST)

    with pytest.raises(InvalidInput, match="lease"):
        await runtime.execute(plan, slack_bench.context("a1", leased=False))

    assert slack.hits == []
    assert slack_bench.records["a1"].get("answers") is None


async def test_an_image_that_is_not_there_is_said_before_anything_is_asked(
    runtime: RestRuntime, slack_bench: Bench
) -> None:
    other = replace(runtime, profile=Profile(image="nothing"))
    with pytest.raises(GoexError):
        await other.assess(POST, slack_bench.context("a1"))


async def test_a_container_without_memory_is_a_failed_outcome(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    small = replace(runtime, profile=Profile(limits=Limits(seconds=20, memory=8 * 2**20)))
    plan, context = await prepared(small, slack_bench, POST)
    try:
        outcome = await small.execute(plan, context)
    except Unavailable:
        return  # an engine may refuse to start it at all; then nothing was sent either
    finally:
        assert slack.hits == []
    assert not outcome.ok
    assert not outcome.touched
    assert outcome.ended in (Ended.OUT_OF_MEMORY, Ended.KILLED, Ended.EXITED)


async def test_only_values_go_into_the_container(runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench) -> None:
    """What the container prints is not what counts: a lying program changes nothing in the outcome."""
    lying = replace(runtime, sandbox=_Lying(runtime.sandbox))
    _, outcome = await execute(lying, slack_bench, POST)

    assert not outcome.ok
    assert not outcome.touched
    assert outcome.results == ()
    assert slack.messages == {}


async def test_a_second_use_of_a_request_is_refused_and_noted(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    """A program that sends its request twice: the first goes through, the second doesn't, and the outcome stands."""
    twice = replace(runtime, sandbox=_Twice(runtime.sandbox))
    _, outcome = await execute(twice, slack_bench, POST)

    assert outcome.ok, outcome.summary
    assert list(slack.messages.values()) == ["x"]
    assert slack_bench.kinds("a1") == ["request", "answer", "refused"]


async def test_a_conflict_of_an_older_call_comes_before_anything_is_taken_back(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, _ = await execute(runtime, slack_bench, TWO)
    oldest = min(slack.messages)
    del slack.messages[oldest]
    target = slack_bench.context("a1")
    undo_plan = await runtime.assess_revert(UNDO, plan, target)

    with pytest.raises(Conflict):
        await runtime.execute_revert(UNDO, undo_plan, plan, target, slack_bench.context("a2"))

    assert list(slack.messages.values()) == ["two"]


class _Lying:
    """Runs another program in the container, which claims success."""

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, job: Any, profile: Any, output: Any = None) -> Any:
        lie = """print('{"id": "call-0", "status": 200, "well": true}')"""
        return await self._sandbox.run(replace(job, argv=("/usr/bin/python3", "-c", lie)), profile, output)


class _Twice(_Lying):
    """Runs the program, and then its requests once more."""

    async def run(self, job: Any, profile: Any, output: Any = None) -> Any:
        script = "/usr/bin/python3 -I /goex/bin/run_calls.py; /usr/bin/python3 -I /goex/bin/run_calls.py; true"
        return await self._sandbox.run(replace(job, argv=("/bin/sh", "-c", script)), profile, output)
