"""A task that the person would give to an agent ends with that agent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from goex.engine.approvals import AlreadySettled
from goex.engine.recovery import recover
from goex.engine.tasks import TaskRuntime, plan_of
from goex.journal.states import State
from goex.task_proposal import proposal
from policies.errors import InvalidInput
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


async def test_the_guides_line_for_a_folder_can_be_proposed(desk: Desk) -> None:
    """Without bounds it is told how they are written."""
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "tasks.md").read_text()
    written = json.loads(guide.partition("```json\n")[2].partition("```")[0])
    (folder,) = [line for line in proposal(written).task.allows if line.service == "files"]
    line = Allowance(
        service=folder.service,
        method=folder.method,
        account=folder.account,
        arguments=json.loads(folder.arguments_json),
        times=folder.times,
    )
    asked = await desk.asked(replace(GIVEN, agent="", allows=(line,)), ASKS)
    with pytest.raises(InvalidInput) as refused:
        plan_of(
            desk.core,
            replace(GIVEN, agent="", allows=(replace(line, arguments=None),)),
            desk.core.actions.get(asked.action_id),
        )
    assert '"arguments": {}, "times"' in refused.value.next_step


async def test_a_bound_of_changed_rows_is_none_of_what_is_read(desk: Desk) -> None:
    """The line would say "rows at most 10", and any number of rows would be read."""
    asked = await desk.asked(replace(GIVEN, agent=""), ASKS)
    line = Allowance(service="db", method="orders:select", account="shop", arguments={"rows": {"most": 10}}, times=1)
    with pytest.raises(InvalidInput, match="only reads") as refused:
        plan_of(desk.core, replace(GIVEN, agent="", allows=(line,)), desk.core.actions.get(asked.action_id))
    assert "Leave rows out" in refused.value.next_step


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
