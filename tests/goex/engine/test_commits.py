"""Commits of several: what is kept, what is in doubt, and what one that makes no sense is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goex.engine.core import Core, Lost, Request
from goex.engine.recovery import recover
from goex.engine.timeline import MOST_STEPS
from goex.journal.actions import ActionRow
from goex.journal.errors import JournalBroken, JournalFailed
from goex.journal.states import Event, State
from policies.actions import Outcome, Plan, Revert
from policies.errors import Conflict, GoexError, InvalidInput, Unavailable
from policies.grants import PERSON
from policies.jsonvalue import parse
from runtimes.base import Context
from tests.goex.engine.conftest import ASKER, THE_PERSON, Desk, HeldRuntime, on


async def test_one_commit_keeps_several(desk: Desk) -> None:
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    for id in ids:
        desk.core.records(desk.core.actions.get(id)).put("kept", b"what undo needs")
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    lines = desk.core.actions.get(question.action_id).the_plan().lines
    assert all(any(line.startswith(f"{id}:") for line in lines) for id in ids)
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    assert [desk.core.actions.get(id).state for id in ids] == [State.COMMITTED] * 3
    assert all(desk.core.records(desk.core.actions.get(id)).get("kept") is None for id in ids)


async def test_a_commit_of_several_that_fails_for_one_says_so_and_keeps_its_undo(desk: Desk) -> None:
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    for id in ids:
        desk.core.records(desk.core.actions.get(id)).put("kept", b"what undo needs")
    desk.runtime.failing.add(ids[0])
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    desk.answer(question)
    row = await desk.until(question.action_id, State.PARTIAL, State.FAILED)
    assert parse(row.problem)["message"] == "1 of 3 commits failed: It stayed."
    assert len(parse(row.outcome)["changes"]) == 2
    states = [desk.core.actions.get(id).state for id in ids]
    assert states == [State.DONE, State.COMMITTED, State.COMMITTED]
    assert desk.core.records(desk.core.actions.get(ids[0])).get("kept") == b"what undo needs"


async def test_a_commit_of_several_says_of_each_that_failed_why_and_how_it_is_kept(desk: Desk) -> None:
    desk.runtime = runtime = _Committing(Unavailable("The server is away.", next_step="Start it."))
    desk.core.runtimes = {"files": runtime}
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    runtime.target = ids[0]
    runtime.failing.add(ids[2])
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    desk.answer(question)
    problem = parse((await desk.until(question.action_id, State.PARTIAL)).problem)
    assert problem["message"] == "2 of 3 commits failed: The server is away."
    assert problem["details"] == [f"{ids[0]}: The server is away.", f"{ids[2]}: It stayed."]
    assert problem["next_step"] == f"Start it; then: goex commit {ids[0]}"


class _Committing(HeldRuntime):
    """Meets `error` at the commit of `target`, or, without one, waits there for good."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error, self.target, self.there = error, "", asyncio.Event()

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        if revert.target == self.target:
            self.there.set()
            if self.error is None:
                await asyncio.Event().wait()
            else:
                raise self.error
        return await super().execute_revert(revert, revert_plan, plan, target, context)


_KEPT, _STAYS, _UNKNOWN = State.COMMITTED, State.DONE, State.UNKNOWN
ENDS = [
    ("one is refused", Conflict("The entry leads elsewhere."), 0, State.PARTIAL, [_STAYS, _KEPT, _KEPT]),
    ("the last is refused", Conflict("The entry leads elsewhere."), 2, State.PARTIAL, [_KEPT, _KEPT, _STAYS]),
    ("one is in doubt", Lost("The connection broke."), 0, State.PARTIAL, [_UNKNOWN, _KEPT, _KEPT]),
    ("it is cancelled", None, 1, _UNKNOWN, [_KEPT, _UNKNOWN, _STAYS]),
    ("one meets a defect", OSError("Half of it is gone."), 1, _UNKNOWN, [_KEPT, _UNKNOWN, _STAYS]),
    ("the journal fails", JournalFailed("The disk is full."), 1, _UNKNOWN, [_KEPT, _UNKNOWN, _STAYS]),
    ("the journal is broken", JournalBroken("A row was altered."), 1, _UNKNOWN, [_KEPT, _UNKNOWN, _STAYS]),
]


@pytest.mark.sampled(5)
@pytest.mark.promise(63)
@pytest.mark.parametrize(
    ("error", "where", "ends", "states"), [case[1:] for case in ENDS], ids=[case[0] for case in ENDS]
)
async def test_a_commit_of_several_is_unknown_for_the_one_in_doubt_alone(
    desk: Desk, error: Exception | None, where: int, ends: State, states: list[State]
) -> None:
    desk.runtime = runtime = _Committing(error)
    desk.core.runtimes = {"files": runtime}
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    runtime.target = ids[where]
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    desk.answer(question)
    await runtime.there.wait()
    if error is None:
        await desk.engine.cancel(question.action_id, why="a test")
    row = await desk.until(question.action_id, ends)
    assert not isinstance(error, GoexError) or error.message in row.problem
    assert [desk.core.actions.get(id).state for id in ids] == states


def _is_full_at(event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no room for that step of one action; what is written together with others has it."""
    stepped = Core.stepped

    def full(core: Core, row: ActionRow, at: Event, **changes: Any) -> ActionRow:
        if at is event:
            raise JournalFailed("The disk is full.")
        return stepped(core, row, at, **changes)

    monkeypatch.setattr(Core, "stepped", full)


@pytest.mark.promise(63)
async def test_a_commit_of_several_drops_nothing_more_once_its_end_cannot_be_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    for id in ids:
        desk.core.records(desk.core.actions.get(id)).put("kept", b"what undo needs")
    _is_full_at(Event.COMMIT, monkeypatch)
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    desk.answer(question)
    await desk.until(question.action_id, _UNKNOWN)
    rows = [desk.core.actions.get(id) for id in ids]
    assert [row.state for row in rows] == [_UNKNOWN, _STAYS, _STAYS]
    assert [desk.core.records(row).get("kept") for row in rows] == [None, *[b"what undo needs"] * 2]


@pytest.mark.sampled(1)
@pytest.mark.promise(63)
@pytest.mark.parametrize(
    "error", [Lost("The connection broke."), OSError("Half of it is gone.")], ids=["lost", "defect"]
)
async def test_the_one_in_doubt_is_unknown_although_the_disk_was_full_when_that_was_to_be_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """There was space again when the end of the whole was written."""
    desk.runtime = runtime = _Committing(error)
    desk.core.runtimes = {"files": runtime}
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    runtime.target = ids[1]
    _is_full_at(Event.LOSE, monkeypatch)
    question = await desk.asked(Revert(verb="commit", target=ids[2], also=(ids[0], ids[1])), THE_PERSON)
    desk.answer(question)
    await desk.until(question.action_id, _UNKNOWN)
    assert [desk.core.actions.get(id).state for id in ids] == [_KEPT, _UNKNOWN, _STAYS]


@pytest.mark.sampled(1)
@pytest.mark.promise(63)
@pytest.mark.parametrize("ends", ["its login can't be renewed", "a defect", "the log is older"])
async def test_a_commit_of_several_that_cannot_be_finished_after_a_crash_leaves_each_in_doubt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    desk.runtime = runtime = _Committing(OSError("Half of it is gone.") if ends == "a defect" else None)
    desk.core.runtimes = {"files": runtime}
    ids = [await desk.done(on(f"/{number}")) for number in range(3)]
    alone = await desk.asked(Revert(verb="commit", target=ids[0]), THE_PERSON)
    desk.answer(alone)
    await desk.until(alone.action_id, State.DONE)
    runtime.target = ids[1]
    several = Revert(verb="commit", target=ids[2], also=(ids[0], ids[1]))
    row = desk.stranded(several, (await desk.engine.reverting.plan(several, PERSON))[1])
    if ends.startswith("its login"):

        async def leases(core: Core, row: ActionRow, plan: Plan) -> tuple[()]:
            raise Unavailable("The login can't be renewed.")

        monkeypatch.setattr(Core, "leases", leases)
    await recover(desk.engine, distrust=ends == "the log is older")
    assert desk.core.actions.get(row.id).state is _UNKNOWN
    assert [desk.core.actions.get(id).state for id in ids] == [_KEPT, _UNKNOWN, _UNKNOWN]


async def test_an_action_within_a_commit_of_several_is_taken(desk: Desk) -> None:
    ids = [await desk.done(on(f"/{number}")) for number in range(2)]
    await desk.asked(Revert(verb="commit", target=ids[1], also=(ids[0],)), THE_PERSON)
    for verb in ("undo", "commit"):
        with pytest.raises(Conflict, match="being taken through"):
            desk.engine.begin(Request(action=Revert(verb=verb, target=ids[0]), detach=True), THE_PERSON)  # type: ignore[arg-type]


BAD = [
    ("twice the same", lambda ids: Revert(verb="commit", target=ids[0], also=(ids[0],)), InvalidInput),
    ("one that isn't there", lambda ids: Revert(verb="commit", target=ids[0], also=("a-none",)), InvalidInput),
    (
        "too many",
        lambda ids: Revert(verb="commit", target=ids[0], also=tuple(f"a-{n}" for n in range(MOST_STEPS))),
        InvalidInput,
    ),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("make", "error"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
async def test_a_commit_of_several_that_makes_no_sense(desk: Desk, make: object, error: type[GoexError]) -> None:
    ids = [await desk.done(on("/x"))]
    with pytest.raises(error):
        desk.engine.begin(Request(action=make(ids), detach=True), THE_PERSON)  # type: ignore[operator]


async def test_an_agent_commits_only_its_own(desk: Desk) -> None:
    own = await desk.done(on("/x"))
    question = await desk.asked(on("/y"), THE_PERSON)
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    with pytest.raises(InvalidInput, match="no action"):
        desk.engine.begin(
            Request(action=Revert(verb="commit", target=own, also=(question.action_id,)), detach=True), ASKER
        )
