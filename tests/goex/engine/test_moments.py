"""What changes between a yes and the moment at which something would run by it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goex.daemon.tool_calls import judged
from goex.engine.approvals import AlreadySettled
from goex.engine.core import Request
from goex.engine.events import Finished
from goex.engine.grant_issue import Choice
from goex.engine.recovery import recover
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from mapper.code.folder_shell import FolderShell
from policies.actions import Action, Plan
from policies.errors import Conflict, Denied
from policies.grants import Grant, Width
from policies.limits import Confinement
from runtimes.base import Context
from runtimes.code.reader import Reader
from tests.goex.engine.conftest import ACTION, Desk, HeldRuntime

NEVER = '@id("never") forbid (principal == Agent::"bot", action, resource);'
ASKS = '@id("asks") @effect("ask") forbid (principal == Agent::"bot", action, resource);'


class TwoNeeds(HeldRuntime):
    """What it is asked for needs `kept` and `other` as well."""

    def plan(self, action: Action) -> Plan:
        plan = super().plan(action)
        return replace(plan, needs=tuple(replace(plan.needs[0], scope=scope) for scope in ("kept", "other")))


class SlowRuntime(HeldRuntime):
    """Waits where actions are looked at again: after the `first` times. `looked`: all of them are."""

    def __init__(self) -> None:
        super().__init__()
        self.looked, self.go_on = asyncio.Event(), asyncio.Event()
        self.times, self.first = 0, 1

    async def assess(self, action: Action, context: Context) -> Plan:
        self.times += 1
        if self.times > self.first:
            if self.times == 2 * self.first:
                self.looked.set()
            await self.go_on.wait()
        return self.plan(action)


def use(desk: Desk, runtime: Any) -> None:
    desk.core.runtimes = {"files": runtime}


@pytest.fixture
def slow(desk: Desk) -> SlowRuntime:
    desk.runtime = made = SlowRuntime()
    use(desk, made)
    return made


@pytest.mark.promise(23)
async def test_a_rule_that_comes_while_it_is_looked_at_again_still_forbids(desk: Desk, slow: SlowRuntime) -> None:
    question = await desk.asked()
    desk.answer(question)
    await slow.looked.wait()
    desk.core.rules.apply({"a.cedar": NEVER}, by="the person")
    slow.go_on.set()
    row = await desk.until(question.action_id, State.DENIED, State.DONE)
    assert (row.state, slow.ran) == (State.DENIED, [])
    assert "never" in row.problem


@pytest.mark.promise(23)
async def test_a_grant_whose_time_ends_while_it_is_looked_at_again_isnt_used(desk: Desk, slow: SlowRuntime) -> None:
    question = await desk.asked()
    desk.answer(question)
    await slow.looked.wait()
    now = desk.core.clock()
    desk.core.clock = lambda: now + timedelta(minutes=11)
    slow.go_on.set()
    row = await desk.until(question.action_id, State.DENIED, State.DONE)
    assert (row.state, slow.ran) == (State.DENIED, [])


async def test_a_cap_holds_also_for_actions_that_are_looked_at_again_together(desk: Desk, slow: SlowRuntime) -> None:
    desk.core.rules.confinement = Confinement(session_actions=1)
    slow.first = 2
    first, second = await desk.asked(), await desk.asked()
    desk.answer(first)
    desk.answer(second)
    await slow.looked.wait()
    slow.go_on.set()
    states = [(await desk.until(one.action_id, State.DENIED, State.DONE)).state for one in (first, second)]
    assert sorted(states) == [State.DENIED, State.DONE]
    assert len(slow.ran) == 1


@pytest.mark.sampled(1)
@pytest.mark.promise(23)
@pytest.mark.parametrize("choice", [Choice.ONCE, Choice.PERMANENT])
async def test_a_yes_after_the_deadline_is_none_though_no_timer_has_fired(desk: Desk, choice: Choice) -> None:
    """As after a suspension, which a timer doesn't count."""
    question = await desk.asked()
    now = desk.core.clock()
    desk.core.clock = lambda: now + timedelta(days=1)
    with pytest.raises(AlreadySettled):
        desk.answer(question, choice=choice)
    row = await desk.until(question.action_id, State.DENIED, State.DONE)
    assert (row.state, desk.runtime.ran) == (State.DENIED, [])
    assert desk.core.approvals.get(question.id).state == "expired"
    assert not desk.core.grant_store.grants(everything=True)


@pytest.mark.promise(24)
async def test_what_an_agent_had_asked_for_goes_when_it_is_removed(desk: Desk) -> None:
    """Whoever gets its name later isn't the one that asked."""
    desk.core.grant_store.add_agent("bot", by="the person")
    question = await desk.asked()
    await desk.engine.remove_agent("bot", by="the person")
    row = await desk.until(question.action_id, State.DENIED, State.WITHDRAWN)
    with pytest.raises(AlreadySettled):
        desk.answer(question, choice=Choice.PERMANENT)
    assert not desk.runtime.ran
    assert desk.core.actions.get(row.id).state is row.state


async def granted(desk: Desk, scope: str) -> Grant:
    now = desk.core.clock()
    grant = Grant(
        id=f"g-{scope}", agent="bot", service="files", account="/x", scope=scope, width=Width.PERMANENT, created=now,
        expires=now + timedelta(days=1), by="the person", why="earlier",
    )  # fmt: skip
    with desk.core.grant_store.changing() as transaction:
        desk.core.grant_store.grant(transaction, (grant,), by="the person")
    return grant


@pytest.mark.sampled(1)
@pytest.mark.promise(23)
@pytest.mark.parametrize("choice", [Choice.SESSION, Choice.PERMANENT])
async def test_a_standing_yes_gives_nothing_back_that_was_revoked_meanwhile(desk: Desk, choice: Choice) -> None:
    """Its words were of what was missing then; what was revoked since isn't among them."""
    use(desk, TwoNeeds())
    kept = await granted(desk, "kept")
    question = await desk.asked()
    desk.core.grant_store.revoke([kept.id], by="the person")
    with pytest.raises(Conflict, match="files:kept isn't granted any more"):
        desk.answer(question, choice=choice)
    assert not desk.core.grant_store.grants()
    assert desk.core.approvals.get(question.id).state == "pending"
    desk.answer(question)  # once: that is for what is shown, whatever it needs
    assert (await desk.until(question.action_id, State.DONE)).state is State.DONE
    assert not desk.core.grant_store.grants()


async def test_a_standing_yes_gives_what_was_missing_and_no_more(desk: Desk) -> None:
    use(desk, TwoNeeds())
    await granted(desk, "kept")
    question = await desk.asked()
    desk.answer(question, choice=Choice.PERMANENT)
    assert [grant.scope for grant in desk.core.grant_store.grants()] == ["other", "kept"]


@pytest.mark.promise(24)
async def test_a_name_that_is_given_again_has_none_of_the_grants_of_who_had_it(desk: Desk) -> None:
    desk.core.grant_store.add_agent("bot", by="the person")
    await granted(desk, "run")
    await desk.engine.remove_agent("bot", by="the person")
    assert not desk.core.grant_store.grants()
    desk.core.grant_store.add_agent("bot", by="the person")
    await desk.asked()  # it isn't allowed by itself


# ---- between the decision and the turn to run


async def waiting_for_their_turn(desk: Desk, count: int) -> list[str]:
    """So many actions on one folder that were allowed, of which the first runs and is held there."""
    desk.runtime.running.clear()
    ids = [desk.ask() for _ in range(count)]
    await desk.until(ids[0], State.RUNNING)
    for id in ids[1:]:
        await desk.until(id, State.ALLOWED)
    return ids


@pytest.mark.promise(23)
async def test_what_waits_for_its_turn_doesnt_run_on_a_grant_that_was_revoked(desk: Desk) -> None:
    grant = await granted(desk, "run")
    first, second, third = await waiting_for_their_turn(desk, 3)
    desk.core.grant_store.revoke([grant.id], by="the person")
    desk.runtime.running.set()
    assert (await desk.until(first, State.DONE)).state is State.DONE
    for id in (second, third):
        row = await desk.until(id, State.FAILED, State.DONE)
        assert row.state is State.FAILED
        assert "isn't any more" in row.problem
    assert desk.runtime.ran == [first]


@pytest.mark.promise(23)
@pytest.mark.parametrize("rule", [NEVER, ASKS])
async def test_what_waits_for_its_turn_doesnt_run_against_a_rule_that_came(desk: Desk, rule: str) -> None:
    await granted(desk, "run")
    first, second = await waiting_for_their_turn(desk, 2)
    desk.core.rules.apply({"a.cedar": rule}, by="the person")
    desk.runtime.running.set()
    assert (await desk.until(second, State.FAILED, State.DONE)).state is State.FAILED
    assert desk.runtime.ran == [first]


async def test_what_waits_for_its_turn_isnt_counted_against_itself(desk: Desk) -> None:
    """Nor does its own yes end while it waits: that was used when it was allowed."""
    desk.core.rules.confinement = Confinement(session_actions=2)
    first, second = await desk.asked(), await desk.asked()
    desk.runtime.running.clear()
    desk.answer(first)
    await desk.until(first.action_id, State.RUNNING)
    desk.answer(second)
    await desk.until(second.action_id, State.ALLOWED)
    now = desk.core.clock()
    desk.core.clock = lambda: now + timedelta(minutes=11)
    desk.runtime.running.set()
    await desk.until(second.action_id, State.DONE)
    assert desk.runtime.ran == [first.action_id, second.action_id]
    assert not desk.engine.asking._allowed


# ---- while it is prepared


class PreparingRuntime(HeldRuntime):
    """Is prepared until `go_on`, as a snapshot takes its time. `forgotten`: the actions whose snapshot was given up."""

    def __init__(self) -> None:
        super().__init__()
        self.preparing, self.go_on = asyncio.Event(), asyncio.Event()
        self.forgotten: list[str] = []

    async def prepare(self, plan: Plan, context: Context) -> None:
        self.preparing.set()
        await self.go_on.wait()

    async def forget(self, plan: Plan, context: Context) -> None:
        self.forgotten.append(context.action_id)


@pytest.fixture
def preparing(desk: Desk) -> PreparingRuntime:
    desk.runtime = made = PreparingRuntime()
    use(desk, made)
    return made


@pytest.mark.promise(23)
async def test_a_grant_that_is_revoked_while_it_is_prepared_isnt_used(desk: Desk, preparing: PreparingRuntime) -> None:
    grant = await granted(desk, "run")
    id = desk.ask()
    await preparing.preparing.wait()
    desk.core.grant_store.revoke([grant.id], by="the person")
    preparing.go_on.set()
    row = await desk.until(id, State.FAILED, State.DONE)
    assert (row.state, preparing.ran, preparing.forgotten) == (State.FAILED, [], [id])
    assert "isn't any more" in row.problem


@pytest.mark.promise(23)
@pytest.mark.parametrize("rule", [NEVER, ASKS])
async def test_a_rule_that_comes_while_it_is_prepared_still_counts(
    desk: Desk, preparing: PreparingRuntime, rule: str
) -> None:
    await granted(desk, "run")
    id = desk.ask()
    await preparing.preparing.wait()
    desk.core.rules.apply({"a.cedar": rule}, by="the person")
    preparing.go_on.set()
    row = await desk.until(id, State.FAILED, State.DONE)
    assert (row.state, preparing.ran, preparing.forgotten) == (State.FAILED, [], [id])


async def test_what_nothing_changed_of_while_it_was_prepared_runs(desk: Desk, preparing: PreparingRuntime) -> None:
    """Its own yes was used and isn't looked for again."""
    question = await desk.asked()
    desk.answer(question)
    await preparing.preparing.wait()
    now = desk.core.clock()
    desk.core.clock = lambda: now + timedelta(minutes=11)
    preparing.go_on.set()
    await desk.until(question.action_id, State.DONE)
    assert (preparing.ran, preparing.forgotten) == ([question.action_id], [])


# ---- an agent that is removed while its call is under way

ALWAYS = '@id("always") permit (principal == Agent::"bot", action, resource);'


@pytest.mark.promise(24)
async def test_a_call_that_was_under_way_when_its_agent_was_removed_begins_nothing(desk: Desk) -> None:
    desk.core.rules.apply({"a.cedar": ALWAYS}, by="the person")
    desk.core.grant_store.add_agent("bot", by="the person")
    early = desk.asker()
    await desk.engine.remove_agent("bot", by="the person")
    with pytest.raises(Denied, match="was removed"):
        desk.ask(principal=early)
    desk.core.grant_store.add_agent("bot", by="the person")  # of that name, and another
    with pytest.raises(Denied, match="was removed"):
        desk.ask(principal=early)
    assert not desk.core.actions.newest()
    await desk.until(desk.ask(), State.DONE)  # the control


@pytest.mark.promise(24)
async def test_no_rule_permits_a_tool_to_an_agent_that_was_removed_while_its_program_was_read(desk: Desk) -> None:
    tools = '@id("tools") permit (principal == Agent::"bot", action == Action::"tool", resource);'
    desk.core.rules.apply({"a.cedar": tools}, by="the person")
    desk.core.grant_store.add_agent("bot", by="the person")
    request = pb.JudgeRequest(tool="Bash", kind="shell", folder="/x", program="make")

    class RemovingReader(Reader):
        async def read_folder_shell(self, program: str, folder: str, agent: str) -> FolderShell:
            await desk.engine.remove_agent("bot", by="the person")
            return FolderShell()

    with pytest.raises(Denied, match="was removed"):
        await judged(desk.core, RemovingReader(), request, desk.asker(), looks=True)
    desk.core.grant_store.add_agent("bot", by="the person")
    assert (await judged(desk.core, Reader(), request, desk.asker(), looks=True)).verdict == "permit"  # the control


class LingeringRuntime(HeldRuntime):
    """Looks at three actions until `go_on`; one that is cancelled lets the others go on, and takes its time to end."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on, self.looked, self.all = asyncio.Event(), 0, asyncio.Event()

    async def assess(self, action: Action, context: Context) -> Plan:
        self.looked += 1
        if self.looked == 3:
            self.all.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.go_on.set()
            await asyncio.sleep(0.1)
            raise
        return self.plan(action)


@pytest.mark.promise(24)
async def test_nothing_of_a_removed_agent_begins_while_another_of_its_actions_ends(desk: Desk) -> None:
    desk.runtime = runtime = LingeringRuntime()
    use(desk, runtime)
    desk.core.rules.apply({"a.cedar": ALWAYS}, by="the person")
    desk.core.grant_store.add_agent("bot", by="the person")
    ids = [desk.ask(replace(ACTION, folder=f"/{each}")) for each in "abc"]
    await runtime.all.wait()
    await desk.engine.remove_agent("bot", by="the person")
    assert [desk.core.actions.get(id).state for id in ids] == [State.WITHDRAWN] * len(ids)
    assert not runtime.ran


@pytest.mark.promise(24)
@pytest.mark.parametrize(("removed", "named"), [(True, False), (True, True), (False, True)])
async def test_no_question_is_taken_up_of_an_agent_that_was_removed_just_before_the_daemon_ended(
    desk: Desk, removed: bool, named: bool
) -> None:
    store = desk.core.grant_store
    store.add_agent("bot", by="the person")
    question = await desk.asked()
    await desk.engine.drain(0)
    if removed:
        store.remove_agent("bot", by="the person")  # and the daemon ends before it withdraws anything
    if removed and named:
        store.add_agent("bot", by="the person")
    desk.engine.draining = False
    await recover(desk.engine)
    assert desk.core.actions.get(question.action_id).state is (State.WITHDRAWN if removed else State.ASKING)


async def _stopped(desk: Desk, id: str) -> Finished:
    """What is told of an action by a stop."""
    watcher = desk.core.hub.watch(id)
    await desk.engine.drain(0)
    while not isinstance(told := await watcher.get(), Finished):
        pass
    return told


async def test_a_stop_says_what_becomes_of_a_question(desk: Desk, slow: SlowRuntime) -> None:
    """Whoever isn't detached has to be back, and what was allowed goes on whoever is there."""
    slow.first = 2
    followed = desk.engine.begin(Request(action=ACTION), desk.asker())
    await desk.until(followed, State.ASKING)
    allowed = await desk.asked()
    desk.answer(allowed)
    await asyncio.sleep(0.05)  # it is being looked at again
    watcher = desk.core.hub.watch(allowed.action_id)
    told = await _stopped(desk, followed)
    assert told.problem is not None and "unless whoever asked follows it within a minute" in told.problem.message
    while not isinstance(other := await watcher.get(), Finished):
        pass
    assert other.problem is not None and "it was allowed, and goes on at the next start" in other.problem.message
    assert {desk.core.actions.get(id).state for id in (followed, allowed.action_id)} == {State.ASKING}


async def test_a_question_that_was_withdrawn_when_a_stop_came_stays_withdrawn(desk: Desk) -> None:
    question = await desk.asked()
    left = asyncio.ensure_future(desk.engine.cancel(question.action_id, why="whoever asked has gone"))
    await asyncio.sleep(0)
    assert desk.engine.is_under_way(question.action_id)
    await desk.engine.drain(0)
    row = await left
    assert row.state is State.WITHDRAWN and "whoever asked has gone" in row.problem


async def test_of_two_ends_before_it_began_the_first_reason_stays(desk: Desk) -> None:
    id = desk.ask()
    first = asyncio.ensure_future(desk.engine.cancel(id, why="the first"))
    desk.engine._withdraw(id, "one before")
    await desk.engine.cancel(id, why="another")
    assert "one before" in (await first).problem


async def test_a_question_that_stays_open_isnt_said_to_be_withdrawn(desk: Desk) -> None:
    """Whoever asked is told what the log says of it, before and after a restart."""
    desk.core.grant_store.add_agent("bot", by="the person")
    question = await desk.asked()
    told = await _stopped(desk, question.action_id)
    assert (told.row.state, told.problem and told.problem.code) == (State.ASKING, "stopping")
    # What it reads first, to be asked about with the values, may have run.
    assert told.problem is not None and "Nothing is changed" in told.problem.message
    desk.engine.draining = False
    await recover(desk.engine)
    assert desk.core.approvals.get(question.id).state == "pending"
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)


@pytest.mark.parametrize("way", ["cancel", "drain", "remove"])
async def test_what_ends_before_it_began_is_withdrawn(desk: Desk, way: str) -> None:
    """In the same turn of the loop as it was begun, in which its task hasn't run yet."""
    desk.core.grant_store.add_agent("bot", by="the person")
    id = desk.ask()
    if way == "cancel":
        await desk.engine.cancel(id, why="a test")
    elif way == "drain":
        await desk.engine.drain(0)
    else:
        await desk.engine.remove_agent("bot", by="the person")
    assert desk.core.actions.get(id).state is State.WITHDRAWN
    assert not desk.engine.is_under_way(id) and not desk.runtime.ran
