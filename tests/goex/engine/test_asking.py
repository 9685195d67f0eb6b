"""A yes is for one action and is used once; the first answer wins; nobody can fill the queue for others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goex.engine import authorize
from goex.engine.approvals import AlreadySettled
from goex.engine.grant_issue import Choice
from goex.journal.states import State
from policies.actions import Files
from policies.decisions import Allow, Ask
from policies.errors import Conflict, InvalidInput
from policies.grants import ANONYMOUS, PERSON
from policies.services import Risk
from tests.goex.engine.conftest import ASKER, Desk


async def test_a_yes_is_for_the_action_that_it_was_given_to(desk: Desk) -> None:
    """Of two that are alike to the last byte, the other one still has to be asked for."""
    first, twin = await desk.asked(), await desk.asked()
    assert first.digest == twin.digest
    desk.answer(first)
    decided = {}
    for question in (first, twin):
        row = desk.core.actions.get(question.action_id)
        decided[question.id] = desk.engine.asking.decision(row, row.the_plan())
    assert isinstance(decided[first.id], Allow)
    assert isinstance(decided[twin.id], Ask)


async def test_a_yes_that_came_to_nothing_is_revoked(desk: Desk) -> None:
    question = await desk.asked()
    desk.runtime.risk = Risk.DELETE  # what is assessed after the approval is something else
    desk.answer(question)
    ended = await desk.until(question.action_id, State.DENIED)
    assert "(what it would do, the catalog," in ended.problem
    (row,) = (row for row in desk.core.journal.rows() if row.kind == "revoke")
    assert "didn't run" in row.facts
    assert not desk.core.grant_store.grants()
    assert not desk.runtime.ran


async def test_a_yes_that_came_to_nothing_takes_no_others_with_it(desk: Desk) -> None:
    """Two that are alike, both approved: the one that is withdrawn takes its own yes along, and only that."""
    first, twin = await desk.asked(), await desk.asked()
    desk.answer(first)
    desk.answer(twin)
    await desk.engine.cancel(first.action_id, why="withdrawn by a test")
    assert first.action_id not in [grant.why for grant in desk.core.grant_store.grants()]
    await desk.until(twin.action_id, State.DONE)
    assert desk.runtime.ran == [twin.action_id]


async def test_a_yes_is_used_once(desk: Desk) -> None:
    question = await desk.asked()
    desk.answer(question)
    (grant,) = desk.core.grant_store.grants()
    await desk.until(question.action_id, State.DONE)
    assert not desk.core.grant_store.grants()
    with pytest.raises(Conflict, match="used or revoked"), desk.core.grant_store.changing() as transaction:
        desk.core.grant_store.consume(transaction, (grant,))


@pytest.mark.parametrize("first", [True, False])
async def test_the_first_answer_is_the_only_one(desk: Desk, first: bool) -> None:
    question = await desk.asked()
    desk.answer(question, approve=first)
    for second in (True, False):
        with pytest.raises(AlreadySettled):
            desk.answer(question, approve=second)
    row = await desk.until(question.action_id, State.DONE, State.DENIED)
    assert (row.state is State.DONE) == first
    assert len(desk.core.grant_store.grants(everything=True)) == first


async def test_a_yes_names_what_was_shown(desk: Desk) -> None:
    question = await desk.asked()
    for shown in ("", "0" * 64):
        with pytest.raises(Conflict):
            desk.answer(question, shown=shown)
        with pytest.raises(Conflict):
            desk.engine.asking.presence_due(question.id, shown, Choice.ONCE)
    assert desk.core.approvals.get(question.id).state == "pending"


@pytest.mark.parametrize("table", ["actions", "approvals"])
async def test_a_digest_that_was_exchanged_is_not_answered(desk: Desk, table: str) -> None:
    """The question's and the action's digest are both the one that was shown, whichever row was written to."""
    question = await desk.asked()
    with desk.core.journal.transaction() as transaction:
        transaction.connection.exec_driver_sql(f"update {table} set digest = '{'0' * 64}'")
    for shown in (question.digest, "0" * 64):
        with pytest.raises(Conflict):
            desk.answer(question, shown=shown)


async def test_a_standing_yes_needs_the_passphrase_also_for_reading(desk: Desk) -> None:
    desk.runtime.risk = Risk.READ
    question = await desk.asked()
    due = desk.engine.asking.presence_due
    assert not due(question.id, question.digest, Choice.ONCE)
    assert due(question.id, question.digest, Choice.SESSION)
    assert due(question.id, question.digest, Choice.PERMANENT)


async def test_no_width_is_granted_that_was_not_offered(desk: Desk) -> None:
    question = await desk.asked(principal=replace(ASKER, agent=ANONYMOUS))
    for width in (Choice.SESSION, Choice.PERMANENT):
        with pytest.raises(InvalidInput, match="can't be granted as"):
            desk.answer(question, choice=width)
    assert desk.core.approvals.get(question.id).state == "pending"


# ---- the queue


def numbered(number: int) -> Files:
    return Files(folder="/x", language="shell", program=f"echo {number}")


async def test_one_agent_cannot_fill_the_queue(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorize, "MOST_OF_AN_AGENT", 2)
    for number in range(2):
        await desk.asked(numbered(number))
    row = await desk.until(desk.ask(numbered(2)), State.DENIED, State.ASKING)
    assert row.state is State.DENIED
    assert "2 requests of bot wait already" in row.problem
    assert '"code":"busy"' in row.problem  # no rule, and no opinion: it may be asked for again
    await desk.asked(principal=replace(ASKER, agent="other"))  # whom it doesn't concern


async def test_all_agents_together_cannot_fill_it_and_the_person_still_asks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorize, "MOST_WAITING", 2)
    for agent in ("one", "two"):
        await desk.asked(principal=replace(ASKER, agent=agent))
    row = await desk.until(desk.ask(principal=replace(ASKER, agent="three")), State.DENIED, State.ASKING)
    assert row.state is State.DENIED
    assert "2 requests wait for the person already" in row.problem
    await desk.asked(principal=replace(ASKER, agent=PERSON))
