"""A task that the person would give to an agent ends with that agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goex.engine.approvals import AlreadySettled
from goex.engine.recovery import recover
from goex.engine.tasks import TaskRuntime
from goex.journal.states import State
from policies.grants import PERSON
from policies.tasks import Allowance, Task
from tests.goex.engine.conftest import ASKER, Desk

GIVEN = Task(
    title="Look", allows=(Allowance(service="files", method="files.read", account="/x"),), seconds=600, agent="bot"
)
ASKS = replace(ASKER, agent=PERSON)


@pytest.fixture(autouse=True)
def tasks(desk: Desk) -> None:
    desk.core.runtimes = {"task": TaskRuntime()}


@pytest.mark.promise(24)
async def test_a_task_for_an_agent_that_is_removed_waits_for_no_other_of_its_name(desk: Desk) -> None:
    store = desk.core.grant_store
    for name in ("bot", "other"):
        store.add_agent(name, by="the person")
    question = await desk.asked(GIVEN, ASKS)
    others = await desk.asked(replace(GIVEN, agent="other"), ASKS)
    own = await desk.asked(replace(GIVEN, agent=""), ASKS)
    await desk.engine.remove_agent("bot", by="the person")
    store.add_agent("bot", by="the person")
    assert desk.core.actions.get(question.action_id).state is State.WITHDRAWN
    with pytest.raises(AlreadySettled):
        desk.answer(question)
    assert not [grant for grant in store.grants() if grant.agent == "bot"]
    for control in (others, own):
        desk.answer(control)
        await desk.until(control.action_id, State.DONE)


@pytest.mark.promise(24)
@pytest.mark.parametrize("removed", [True, False])
async def test_no_task_is_taken_up_for_an_agent_that_was_removed_just_before_the_daemon_ended(
    desk: Desk, removed: bool
) -> None:
    store = desk.core.grant_store
    store.add_agent("bot", by="the person")
    question = await desk.asked(GIVEN, ASKS)
    await desk.engine.drain(0)
    if removed:
        store.remove_agent("bot", by="the person")  # and the daemon ends before it withdraws anything
        store.add_agent("bot", by="the person")
    desk.engine.draining = False
    await recover(desk.engine)
    assert desk.core.actions.get(question.action_id).state is (State.WITHDRAWN if removed else State.ASKING)
