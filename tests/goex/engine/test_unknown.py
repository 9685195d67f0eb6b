"""Of what can't be known: looked at again when the person asks, and never by anything else than a look."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

import goex.journal.actions
import policies.digest
from goex.daemon.action_views import action_view
from goex.daemon.agent_views import asks_data, asks_folder, shown_action
from goex.daemon.audit_views import logged
from goex.engine.core import Lost
from goex.engine.events import Problem
from goex.engine.recovery import look_again, recover
from goex.journal.actions import ActionRow
from goex.journal.chain import Transaction
from goex.journal.errors import JournalBroken, JournalFailed
from goex.journal.schema import actions
from goex.journal.states import Event, State
from goex.journal.story import Decided
from policies.actions import Action, Files, Outcome, Plan, Revert
from policies.errors import Conflict, GoexError, Unavailable, Unsupported
from policies.jsonvalue import canonical, parse
from policies.typed_json import to_json
from runtimes.base import Context, Settlement
from tests.goex.engine.conftest import ACTION, ASKER, THE_PERSON, Desk


def lost(desk: Desk) -> str:
    """An action that was running when its daemon died, and of which nothing could be found out."""
    row = desk.stranded()
    desk.engine.end(row, Problem.of(Lost("It can't be known.", ("one request was sent",))), Event.LOSE)
    assert desk.core.actions.get(row.id).state is State.UNKNOWN
    return row.id


def finds(desk: Desk, monkeypatch: pytest.MonkeyPatch, settled: Settlement | Exception) -> None:
    async def settle(plan: Plan, context: Context) -> Settlement:
        await desk.runtime.looking.wait()
        if isinstance(settled, Exception):
            raise settled
        return settled

    monkeypatch.setattr(desk.runtime, "settle", settle)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome(ok=True, summary="It did."), State.DONE),
        (Outcome(ok=False, summary="Half of it."), State.PARTIAL),
        (Outcome(ok=False, summary="It never began.", touched=False), State.FAILED),
    ],
    ids=["done", "partial", "failed"],
)
async def test_what_is_found_out_later_is_then_known(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, state: State
) -> None:
    id = lost(desk)
    finds(desk, monkeypatch, Settlement(outcome=outcome))
    assert (await look_again(desk.engine, id, by="the person")).state is state
    assert any(row.kind == "look" for row in desk.core.journal.rows(action_id=id))


@pytest.mark.promise(63)
async def test_what_is_still_not_known_stays_unknown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    id = lost(desk)
    for found in (Settlement(outcome=None, evidence=("nobody answers",)), Unavailable("Nobody is there.")):
        finds(desk, monkeypatch, found)
        if isinstance(found, GoexError):
            with pytest.raises(Unavailable):
                await look_again(desk.engine, id, by="the person")
        else:
            await look_again(desk.engine, id, by="the person")
        assert desk.core.actions.get(id).state is State.UNKNOWN


@pytest.mark.promise(63)
@pytest.mark.parametrize("error", [Unavailable("The account is gone."), OSError("No such folder.")])
async def test_what_cannot_be_looked_at_after_a_crash_is_unknown_and_can_be_looked_at_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    id = desk.stranded().id
    finds(desk, monkeypatch, error)
    for _ in range(2):  # also at the next start
        await recover(desk.engine)
        row = desk.core.actions.get(id)
        assert row.state is State.UNKNOWN
        assert ("The account is gone." in row.problem) is isinstance(error, GoexError)
    finds(desk, monkeypatch, Settlement(outcome=Outcome(ok=True, summary="It did.")))
    assert (await look_again(desk.engine, id, by="the person")).state is State.DONE


async def test_only_what_is_unknown_is_looked_at_and_once_at_a_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await desk.done()
    with pytest.raises(Conflict, match="nothing to find out"):
        await look_again(desk.engine, done, by="the person")
    id = lost(desk)
    finds(desk, monkeypatch, Settlement(outcome=Outcome(ok=True, summary="It did.")))
    desk.runtime.looking.clear()
    first = asyncio.create_task(look_again(desk.engine, id, by="the person"))
    await asyncio.sleep(0.05)
    with pytest.raises(Conflict, match="already"):
        await look_again(desk.engine, id, by="the person")
    desk.runtime.looking.set()
    assert (await first).state is State.DONE


@pytest.mark.promise(63)
async def test_an_undo_of_what_was_found_to_have_failed_meanwhile_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = lost(desk)
    question = await desk.asked(Revert(verb="undo", target=id), THE_PERSON)
    finds(desk, monkeypatch, Settlement(outcome=Outcome(ok=False, summary="It never began.", touched=False)))
    await look_again(desk.engine, id, by="the person")
    desk.answer(question)
    row = await desk.until(question.action_id, State.FAILED)
    assert f"{id} is failed, so undo isn't possible" in row.problem and not desk.runtime.ran


@pytest.mark.promise(63)
async def test_while_it_is_taken_back_that_alone_says_what_became_of_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undo that a crash cut off leaves what a look takes for an action that never began."""
    id = await desk.done()
    desk.core.stepped(desk.core.actions.get(id), Event.LOSE)
    undo = desk.stranded(Revert(verb="undo", target=id)).id
    finds(desk, monkeypatch, Settlement(outcome=Outcome(ok=False, summary="It never began.", touched=False)))
    with pytest.raises(Conflict, match=f"taken through {undo} now"):
        await look_again(desk.engine, id, by="the person")
    await recover(desk.engine)
    assert [desk.core.actions.get(one).state for one in (undo, id)] == [State.DONE, State.UNDONE]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("error", [JournalBroken("It isn't what was written."), JournalFailed("It can't be read.")])
async def test_a_journal_that_cant_be_read_while_it_runs_says_nothing_of_what_it_did(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: GoexError
) -> None:
    async def execute(plan: Plan, context: Context) -> Outcome:
        raise error

    monkeypatch.setattr(desk.runtime, "execute", execute)
    question = await desk.asked()
    desk.answer(question)
    await desk.until(question.action_id, State.UNKNOWN)


_RAN = (Event.ALLOW, Event.PREPARE, Event.RUN)
UNREAD = {
    State.ASSESSED: ((), State.WITHDRAWN),
    State.ASKING: ((Event.ASK,), State.WITHDRAWN),
    State.ALLOWED: (_RAN[:1], State.FAILED),
    State.PREPARED: (_RAN[:2], State.FAILED),
    State.RUNNING: (_RAN, State.UNKNOWN),
    State.UNKNOWN: ((*_RAN, Event.LOSE), State.UNKNOWN),
}


def left(desk: Desk, transaction: Transaction, id: str, action: Action, events: tuple[Event, ...]) -> ActionRow:
    """An action that had come so far when its daemon died."""
    who = {"agent": ASKER.agent, "session": ASKER.session, "source": ASKER.source}
    row = desk.core.actions.create(transaction, id=id, intent="", action=action, detached=True, **who)
    row = desk.core.step(transaction, row, Event.ASSESS, plan=desk.runtime.plan(action))
    for event in events:
        row = desk.core.step(transaction, row, event)
    return row


@pytest.mark.sampled(1)
@pytest.mark.promise(63)
@pytest.mark.parametrize("newer", [(Plan,), (Files, Revert)], ids=["plan", "request"])
async def test_what_a_newer_goex_planned_is_settled_told_and_not_called_altered(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, newer: tuple[type, ...]
) -> None:
    def as_it_writes(value: object) -> dict[str, Any]:
        made = to_json(value)
        if isinstance(value, newer):
            made["newer"] = True
        elif isinstance(value, Plan) and isinstance(value.action, newer):
            made["action"]["newer"] = True
        return made

    target, *several = [await desk.done() for _ in range(3)]
    reverts = {
        "a-undo": Revert(verb="undo", target=target),
        "a-commit": Revert(verb="commit", target=several[1], also=(several[0],)),
    }
    wanted: list[tuple[str, Action, tuple[Event, ...]]] = [(id, action, _RAN) for id, action in reverts.items()]
    wanted += [(f"a-{state}", ACTION, events) for state, (events, _) in UNREAD.items()]
    with monkeypatch.context() as patched, desk.core.journal.transaction() as transaction:
        for module in (goex.journal.actions, policies.digest):
            patched.setattr(module, "to_json", as_it_writes)
        made = {id: left(desk, transaction, id, action, events).plan for id, action, events in wanted}
    assert desk.engine.reverting.busy() == {target: "a-undo", **dict.fromkeys(several, "a-commit")}
    await recover(desk.engine)
    rows = {id: desk.core.actions.get(id) for id in (*made, target, *several)}
    assert {id: row.state for id, row in rows.items()} == {
        **{f"a-{state}": after for state, (_, after) in UNREAD.items()},
        **dict.fromkeys((*reverts, target, *several), State.UNKNOWN),
    }
    for id in made.keys() - {"a-unknown"}:
        assert "another version of GoEx" in parse(rows[id].problem)["details"][0]
        if newer != (Plan,):
            with pytest.raises(Unsupported):
                rows[id].action()
    running = rows["a-running"]
    assert "can't read its plan" in action_view(running).undo_text and not desk.engine.reverting.busy()
    listed = logged(running, Decided(), ())
    assert not listed.can_undo and not listed.undo_class
    assert {id: rows[id].plan for id in made} == made and desk.core.journal.verify().good
    again = desk.ask(Revert(verb="undo", target="a-running"), THE_PERSON)
    assert parse((await desk.until(again, State.FAILED)).problem)["code"] == Unsupported.code


async def test_calls_that_a_newer_goex_was_asked_for_are_told_an_agent_without_what_they_were(desk: Desk) -> None:
    row = desk.core.actions.get(await desk.done())
    newer = replace(row, kind="calls", state=State.FAILED, request='{"kind":"calls","newer":true}', plan="", outcome="")
    assert asks_data(desk.core, newer) and asks_folder(desk.core, newer)
    problem = to_json(Problem(code="conflict", message="What is in /secret was changed."))
    newer = replace(newer, problem=canonical(problem).decode())
    assert "/secret" not in str(shown_action(desk.core, newer, ASKER))


@pytest.mark.sampled(1)
@pytest.mark.promise(81)
@pytest.mark.parametrize("plan", ["", '{"lines":["%s"]}' % ("x" * 21_000)], ids=["none", "long"])
async def test_a_restart_ends_nothing_whose_plan_was_altered_so_that_verifying_finds_it(desk: Desk, plan: str) -> None:
    with desk.core.journal.transaction() as transaction:
        for state, (events, _) in UNREAD.items():
            left(desk, transaction, f"a-{state}", ACTION, events)
        transaction.connection.execute(update(actions).values(plan=plan))
    await recover(desk.engine)
    for state in UNREAD:
        row = desk.core.actions.get(f"a-{state}")
        assert row.state is (State.UNKNOWN if state is State.RUNNING else state) and row.plan == plan
        assert desk.core.journal.rows(action_id=row.id, kind="action-altered")
    found = desk.core.journal.verify()
    assert not found.good and "a-assessed" in found.problem
