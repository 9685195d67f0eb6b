"""The path's last checks: before the effect, at a seal, and for two reverts of one action."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from goex.engine.core import Core, Request
from goex.journal.actions import ActionRow
from goex.journal.errors import JournalFailed
from goex.journal.states import State
from policies.actions import Outcome, Plan, Revert, UndoClass
from policies.errors import Conflict
from runtimes.base import Context
from tests.goex.engine.conftest import ACTION, ASKER, Desk
from vault.errors import VaultSealed


async def test_only_the_plan_that_was_decided_on_runs(desk: Desk) -> None:
    row, plan = desk.allowed()
    carry_out = desk.engine.running.carry_out
    with pytest.raises(Conflict, match="changed after it was decided on"):
        await carry_out(row, desk.runtime, replace(plan, lines=("another line",)), lambda: None, lambda: None)
    with pytest.raises(Conflict, match="changed after it was decided on"):
        await carry_out(replace(row, agent="other"), desk.runtime, plan, lambda: None, lambda: None)
    assert not desk.runtime.ran
    assert (await carry_out(row, desk.runtime, plan, lambda: None, lambda: None)).state is State.DONE  # the control


async def test_what_was_begun_beforehand_is_let_go_of_when_the_step_cannot_be_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, plan = desk.allowed()
    said: list[str] = []

    async def prepare(plan: Plan, context: Context) -> None:
        context.ending.callback(said.append, "let go")

    def full(*_: object, **__: object) -> ActionRow:
        raise JournalFailed("The disk is full.")

    monkeypatch.setattr(desk.runtime, "prepare", prepare)
    carry_out = desk.engine.running.carry_out
    with monkeypatch.context() as broken:
        broken.setattr(Core, "step", full)
        with pytest.raises(JournalFailed):
            await carry_out(row, desk.runtime, plan, lambda: None, lambda: None)
    assert (said, desk.runtime.ran) == (["let go"], [])
    assert (await carry_out(row, desk.runtime, plan, lambda: None, lambda: None)).state is State.DONE  # the control
    assert said == ["let go", "let go"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("undo_class", "named"),
    [
        (UndoClass.EXACT, True),
        (UndoClass.COMPENSATING, True),
        (UndoClass.IRREVERSIBLE, False),
        (UndoClass.NOTHING, False),
    ],
)
async def test_what_failed_half_way_is_said_to_be_taken_back_only_by_what_has_an_undo(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, undo_class: UndoClass, named: bool
) -> None:
    async def execute(plan: Plan, context: Context) -> Outcome:
        return Outcome(ok=False, summary="The second of two calls failed.", touched=True)

    desk.runtime.undo_class = undo_class
    monkeypatch.setattr(desk.runtime, "execute", execute)
    question = await desk.asked()
    desk.answer(question)
    row = await desk.until(question.action_id, State.PARTIAL, State.FAILED)
    assert row.state is State.PARTIAL
    assert ("goex undo" in json.loads(row.problem)["next_step"]) is named


async def test_a_stored_plan_that_was_exchanged_is_not_taken(desk: Desk) -> None:
    row, _ = desk.allowed()
    with pytest.raises(Conflict, match="isn't the one that was decided on"):
        replace(row, plan=row.plan.replace('"true"', '"false"')).the_plan()
    assert row.the_plan().action == ACTION  # the control


# ---- a sealed vault


async def test_what_was_allowed_before_a_seal_does_not_begin_after_it(desk: Desk) -> None:
    row, plan = desk.allowed()
    desk.app.vault_state.seal()
    with pytest.raises(VaultSealed):
        await desk.engine.running.carry_out(row, desk.runtime, plan, lambda: None, lambda: None)
    assert not desk.runtime.ran


async def test_what_is_asked_of_a_sealed_daemon_is_refused_at_once(desk: Desk) -> None:
    desk.app.vault_state.seal()
    row = await desk.until(desk.ask(), State.FAILED, State.ASKING)
    assert row.state is State.FAILED
    assert '"vault-sealed"' in row.problem


async def test_a_seal_ends_what_runs(desk: Desk) -> None:
    desk.runtime.running.clear()
    question = await desk.asked()
    desk.answer(question)
    await desk.until(question.action_id, State.RUNNING)
    await asyncio.wait_for(desk.app.seal(), 300)
    assert not desk.engine.is_under_way(question.action_id)


async def test_a_seal_also_ends_what_began_while_others_were_being_ended(desk: Desk) -> None:
    desk.runtime.running.clear()
    desk.runtime.looking.clear()  # the first one takes its time to end
    first, second = await desk.asked(), await desk.asked(replace(ACTION, folder="/y"))
    desk.answer(first)
    await desk.until(first.action_id, State.RUNNING)
    sealing = asyncio.create_task(desk.app.seal())
    await asyncio.sleep(0.05)
    desk.answer(second)
    await desk.until(second.action_id, State.RUNNING)
    assert desk.app.vault_state.state == "unsealed"  # the control: it began before the keys were forgotten
    desk.runtime.looking.set()
    await asyncio.wait_for(sealing, 300)
    assert not desk.engine.is_under_way(second.action_id)
    assert desk.core.actions.get(second.action_id).state is not State.RUNNING


async def test_what_works_on_one_folder_runs_one_after_the_other(desk: Desk) -> None:
    """A grant lets several begin at once: each would find that somebody changed its folder."""
    desk.runtime.running.clear()
    ids = [desk.ask(replace(ACTION, program=str(number))) for number in range(3)]
    elsewhere = desk.ask(replace(ACTION, folder="/y"))
    for id in (*ids, elsewhere):
        await desk.until(id, State.ASKING)
        (question,) = desk.core.approvals.of_action(id)
        desk.answer(question)
    await desk.until(elsewhere, State.RUNNING)
    await desk.until(ids[0], State.RUNNING)
    await asyncio.sleep(0.1)
    assert [desk.core.actions.get(id).state for id in ids] == [State.RUNNING, State.ALLOWED, State.ALLOWED]
    await desk.engine.cancel(ids[1], why="nobody waits for it")  # what only waits for its turn has done nothing
    desk.runtime.running.set()
    assert (await desk.until(ids[2], State.DONE, State.FAILED)).state is State.DONE
    assert desk.core.actions.get(ids[1]).state is State.FAILED
    assert desk.runtime.ran == [ids[0], elsewhere, ids[2]] or desk.runtime.ran == [elsewhere, ids[0], ids[2]]


# ---- two reverts of one action


@pytest.mark.parametrize("second", ["undo", "commit"])
async def test_an_action_is_reverted_by_one_revert_at_a_time(desk: Desk, second: str) -> None:
    target = await desk.done()
    question = await desk.asked(Revert(verb="undo", target=target))
    again = Revert(verb="commit" if second == "commit" else "undo", target=target)
    with pytest.raises(Conflict, match=f"being taken through {question.action_id}"):
        desk.engine.begin(Request(action=again, detach=True), ASKER)
    desk.answer(question, approve=False)
    await desk.until(question.action_id, State.DENIED)
    await asyncio.sleep(0)
    await desk.asked(again)  # the control: once that one has ended, it may be asked for


async def test_a_revert_from_before_a_restart_counts_as_well(desk: Desk) -> None:
    """It isn't under way in memory, and its row alone says that it hasn't ended."""
    target = await desk.done()
    question = await desk.asked(Revert(verb="undo", target=target))
    await desk.engine.drain(0)
    desk.engine.draining = False
    assert not desk.engine.is_under_way(question.action_id)
    with pytest.raises(Conflict, match=f"being taken through {question.action_id}"):
        desk.engine.begin(Request(action=Revert(verb="undo", target=target), detach=True), ASKER)
