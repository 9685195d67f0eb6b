"""What came after what: which actions are independent, and the way back to a point."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from goex.daemon import undo_to
from goex.engine.core import Request
from goex.engine.tasks import TaskRuntime
from goex.engine.timeline import meeting
from goex.journal.chain import stamp
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from policies.actions import Action, Outcome, Plan, Revert, UndoClass
from policies.errors import Conflict, Denied
from policies.services import Risk
from policies.tasks import READ_SCOPE, Allowance, Task
from runtimes.base import Context, Footprint
from runtimes.files.plans import SCOPE as FILES_SCOPE
from tests.goex.engine.conftest import ASKER, THE_PERSON, Desk, HeldRuntime, on


def steps(*reads_and_writes: str) -> Footprint:
    """`r:` and `w:` before each path; a path without is both."""
    reads = {path.removeprefix("r:") for path in reads_and_writes if not path.startswith("w:")}
    writes = {path.removeprefix("w:") for path in reads_and_writes if not path.startswith("r:")}
    return Footprint(reads=frozenset(reads), writes=frozenset(writes))


async def taken_back(desk: Desk, target: str, **more: object) -> str:
    """Run an undo of `target` to its end; returns its id."""
    question = await desk.asked(Revert(verb="undo", target=target, **more), THE_PERSON)  # type: ignore[arg-type]
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    return question.action_id


async def refused(desk: Desk, revert: Revert) -> str:
    """Why a revert isn't even asked about; the difference with it."""
    id = desk.ask(revert, THE_PERSON)
    row = await desk.until(id, State.FAILED)
    return row.problem


CASES = [  # the earlier one, the later one, whether it then stands in the way
    ("another file", ("files/a",), ("files/b",), False),
    ("the same", ("files/a",), ("files/a",), True),
    ("below", ("files/a",), ("files/a/b/c",), True),
    ("above", ("files/a/b/c",), ("files/a",), True),
    ("a name that begins alike", ("files/a",), ("files/ab",), False),
    ("it read what was written", ("w:db/shop/orders",), ("r:db/shop/orders", "w:db/shop/bills"), True),
    ("it only read", ("w:db/shop/orders",), ("r:db/shop/orders",), False),
    ("it wrote what was read", ("r:db/shop/orders", "w:db/shop/bills"), ("w:db/shop/orders",), False),
    ("another row", ("db/shop/orders/id=1",), ("db/shop/orders/id=2",), False),
    ("the whole table", ("db/shop/orders/id=1",), ("r:db/shop", "w:db/shop/x"), True),
]


@pytest.mark.promise(62)
async def test_a_later_action_stands_in_the_way_only_where_their_footprints_meet(desk: Desk) -> None:
    found = {}
    for name, earlier, later, _ in CASES:
        first, second = await desk.done(on("/x")), await desk.done(on("/x"))
        desk.runtime.footprints |= {first: steps(*earlier), second: steps(*later)}
        undo = desk.ask(Revert(verb="undo", target=first), THE_PERSON)
        row = await desk.until(undo, State.ASKING, State.FAILED)
        for question in desk.core.approvals.of_action(undo):
            desk.answer(question)
            await desk.until(undo, State.DONE, State.FAILED)
        told = second in row.problem and f"goex undo --to {first}" in row.problem
        found[name] = (row.state, told, desk.core.actions.get(first).state)
    assert found == {
        name: (State.FAILED, True, State.DONE) if stands else (State.ASKING, False, State.UNDONE)
        for name, _, _, stands in CASES
    }


async def test_what_changed_nothing_stands_on_nothing(desk: Desk) -> None:
    first = await desk.done(on("/x"))
    desk.runtime.touches = False
    idle = await desk.done(on("/x"))
    way = await desk.engine.timeline.back([desk.core.actions.get(id) for id in (first, idle)])
    assert [step.row.id for step in way] == [first]
    await taken_back(desk, first)
    assert desk.core.actions.get(first).state is State.UNDONE


async def test_the_later_one_goes_first_and_then_the_earlier_one_can_go(desk: Desk) -> None:
    first, second = await desk.done(on("/x")), await desk.done(on("/x"))
    await taken_back(desk, second)
    await taken_back(desk, first)
    assert desk.core.actions.get(first).state is State.UNDONE


async def test_bringing_back_counts_as_the_later_moment(desk: Desk) -> None:
    first, second = await desk.done(on("/x")), await desk.done(on("/x"))
    await taken_back(desk, second)
    await taken_back(desk, first)
    question = await desk.asked(Revert(verb="redo", target=second), THE_PERSON)
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    # `second` is in effect since after the undo of `first`: bringing `first` back now would meet it.
    said = await refused(desk, Revert(verb="redo", target=first))
    assert second in said


async def test_two_are_brought_back_in_the_order_in_which_they_ran(desk: Desk) -> None:
    ids = [await desk.done(on("/x")) for _ in range(2)]
    for id in reversed(ids):
        await taken_back(desk, id)
    for id in ids:
        question = await desk.asked(Revert(verb="redo", target=id), THE_PERSON)
        desk.answer(question)
        await desk.until(question.action_id, State.DONE)
    assert [desk.core.actions.get(id).state for id in ids] == [State.DONE] * 2


async def test_what_was_not_there_when_it_ran_stands_in_the_way_of_a_redo(desk: Desk) -> None:
    other = await desk.done(on("/x"))
    await taken_back(desk, other)
    late = await desk.done(on("/x"))
    await taken_back(desk, late)
    question = await desk.asked(Revert(verb="redo", target=other), THE_PERSON)
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    assert other in await refused(desk, Revert(verb="redo", target=late))


@pytest.mark.parametrize("error", [Conflict("The records are damaged."), ValueError("Invalid IPv6 URL")])
async def test_what_cannot_be_known_stands_in_the_way(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first, second = await desk.done(on("/x")), await desk.done(on("/y"))
    told = desk.runtime.footprint

    async def unreadable(plan: object, context: object) -> Footprint:
        if context.action_id == second:  # type: ignore[attr-defined]
            raise error
        return await told(plan, context)  # type: ignore[arg-type]

    monkeypatch.setattr(desk.runtime, "footprint", unreadable)
    assert "isn't known" in await refused(desk, Revert(verb="undo", target=first))


@pytest.mark.promise(62)
async def test_only_the_person_disregards_what_came_later(desk: Desk) -> None:
    first, _ = await desk.done(on("/x")), await desk.done(on("/x"))
    with pytest.raises(Denied):
        desk.engine.begin(Request(action=Revert(verb="undo", target=first, regardless=True), detach=True), ASKER)
    question = await desk.asked(Revert(verb="undo", target=first, regardless=True), THE_PERSON)
    assert any("disregarded" in line for line in desk.core.actions.get(question.action_id).the_plan().lines)
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    assert desk.core.actions.get(first).state is State.UNDONE


# ---- what begins or ends while an undo waits


async def runs(desk: Desk, folder: str) -> str:
    """An action that runs, and is held there."""
    question = await desk.asked(on(folder))
    desk.runtime.running.clear()
    desk.answer(question)
    await desk.until(question.action_id, State.RUNNING)
    return question.action_id


@pytest.mark.sampled(1)
@pytest.mark.promise(62)
@pytest.mark.parametrize("began", ["before the undo was asked for", "while it was asked"])
async def test_what_ran_in_a_folder_while_an_undo_waited_for_it_stands_in_the_way(desk: Desk, began: str) -> None:
    first = await desk.done(on("/x"))
    second = await runs(desk, "/x") if began.startswith("before") else ""
    question = await desk.asked(Revert(verb="undo", target=first), THE_PERSON)
    second = second or await runs(desk, "/x")
    desk.answer(question)
    await desk.until(question.action_id, State.ALLOWED)
    desk.runtime.running.set()
    row = await desk.until(question.action_id, State.FAILED, State.DONE)
    assert row.state is State.FAILED and second in row.problem
    assert [desk.core.actions.get(id).state for id in (first, second)] == [State.DONE] * 2
    assert question.action_id not in desk.runtime.ran


@pytest.mark.sampled(2)
@pytest.mark.promise(62)
@pytest.mark.parametrize(
    ("wrote", "so_far", "meets"),
    [
        ("files/x", ("r:files/x", "w:files/y"), True),
        ("files/x", ("r:files/z", "w:files/y"), False),
        ("calls/s/h/5", ("r:calls/s/h/5", "calls/s/h"), True),
        ("calls/s/h/5", ("r:calls/s/h/6", "calls/s/h"), False),  # it may go anywhere yet, and hasn't named this
    ],
)
async def test_what_runs_elsewhere_stands_in_the_way_where_their_footprints_meet(
    desk: Desk, wrote: str, so_far: tuple[str, ...], meets: bool
) -> None:
    first, running = await desk.done(on("/x")), await runs(desk, "/y")
    desk.runtime.footprints |= {first: steps(wrote), running: steps(*so_far)}
    question = await desk.asked(Revert(verb="undo", target=first), THE_PERSON)
    desk.answer(question)
    row = await desk.until(question.action_id, State.FAILED, State.DONE)
    assert row.state is (State.FAILED if meets else State.DONE)
    assert (f"Wait until {running} has ended, then: goex undo --to {first}" in row.problem) is meets
    assert desk.core.actions.get(running).state is State.RUNNING


async def test_an_agent_is_told_that_what_runs_for_another_stands_in_the_way_of_its_undo(desk: Desk) -> None:
    first = await desk.done(on("/x"))
    question = await desk.asked(on("/y"), THE_PERSON)
    desk.runtime.running.clear()
    desk.answer(question)
    await desk.until(running := question.action_id, State.RUNNING)
    desk.runtime.footprints |= dict.fromkeys((first, running), steps("calls/s/h/5"))
    question = await desk.asked(Revert(verb="undo", target=first))
    desk.answer(question)
    row = await desk.until(question.action_id, State.FAILED, State.DONE)
    assert running not in row.problem
    assert "Ask again later; only the person can take it back alone." in row.problem


async def test_what_runs_stands_in_the_way_of_a_redo_also_once_it_has_ended(desk: Desk) -> None:
    first = await desk.done(on("/x"))
    await taken_back(desk, first)
    running = await runs(desk, "/y")
    desk.runtime.footprints |= dict.fromkeys((first, running), steps("calls/s/h/5"))
    question = await desk.asked(Revert(verb="redo", target=first), THE_PERSON)
    desk.answer(question)
    row = await desk.until(question.action_id, State.FAILED, State.DONE)
    assert running in row.problem and "Wait" not in row.problem


class _Telling(HeldRuntime):
    """Does `meanwhile` when what `at` read and wrote is asked for, and holds a redo until `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.at, self.meanwhile = "", lambda: asyncio.sleep(0)
        self.bringing, self.go_on = asyncio.Event(), asyncio.Event()

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        self.told.append(context.action_id)
        if context.action_id == self.at:
            self.at = ""
            await self.meanwhile()
        return await super().footprint(plan, context)

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        return replace(await super().assess_revert(revert, plan, context), needs=plan.needs)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        if revert.verb == "redo":
            self.bringing.set()
            await self.go_on.wait()
        return await super().execute_revert(revert, revert_plan, plan, target, context)


@pytest.fixture
def telling(desk: Desk) -> Iterator[_Telling]:
    desk.runtime = runtime = _Telling()
    desk.core.runtimes = {"files": runtime}
    yield runtime
    runtime.go_on.set()


@pytest.mark.sampled(1)
@pytest.mark.promise(62)
@pytest.mark.parametrize("again", [False, True], ids=["it ran later", "it ran before the other was brought back"])
async def test_what_is_being_brought_back_stands_in_the_way(desk: Desk, telling: _Telling, again: bool) -> None:
    first, second = await desk.done(on("/x")), await desk.done(on("/y"))
    telling.footprints |= dict.fromkeys((first, second), steps("calls/s/h/5"))
    await taken_back(desk, second)
    if again:
        telling.go_on.set()
        await taken_back(desk, first)
        question = await desk.asked(Revert(verb="redo", target=first), THE_PERSON)
        desk.answer(question)
        await desk.until(question.action_id, State.DONE)
        telling.go_on.clear()
        telling.bringing.clear()
    redo = await desk.asked(Revert(verb="redo", target=second), THE_PERSON)
    desk.answer(redo)
    await telling.bringing.wait()
    undo = await desk.asked(Revert(verb="undo", target=first), THE_PERSON)
    desk.answer(undo)
    row = await desk.until(undo.action_id, State.FAILED, State.DONE)
    assert row.state is State.FAILED and f"{second}: both changed" in row.problem
    assert f"Wait until {redo.action_id} has ended" in row.problem
    (step,) = await desk.engine.timeline.back([desk.core.actions.get(first)])
    assert not step.can and f"({second}), which hasn't ended yet, depends" in step.why
    telling.go_on.set()
    await desk.until(redo.action_id, State.DONE)
    assert [desk.core.actions.get(id).state for id in (first, second)] == [State.DONE] * 2


@pytest.mark.promise(62)
async def test_what_begins_while_an_undo_looks_once_more_stands_in_its_way(desk: Desk, telling: _Telling) -> None:
    first = await desk.done(on("/x"))
    undo = await desk.asked(Revert(verb="undo", target=first), THE_PERSON)
    looked_at = await desk.done(on("/y"))
    begun: list[str] = []

    async def begins() -> None:
        begun.append(await runs(desk, "/z"))
        telling.footprints[begun[0]] = steps("files/x")

    telling.at, telling.meanwhile = looked_at, begins
    row = desk.core.actions.get(undo.action_id)
    with pytest.raises(Conflict, match="later actions may depend on it") as refusal:
        await desk.engine.reverting.check_alone(row, row.the_plan())
    assert begun[0] in str(refusal.value)


async def test_an_undo_looks_once_more_only_at_what_moved_since(desk: Desk, telling: _Telling) -> None:
    first, before = await desk.done(on("/x")), await desk.done(on("/y"))
    undo = await desk.asked(Revert(verb="undo", target=first), THE_PERSON)
    since = await desk.done(on("/z"))
    telling.told.clear()
    row = desk.core.actions.get(undo.action_id)
    await desk.engine.reverting.check_alone(row, row.the_plan())
    assert since in telling.told and before not in telling.told


async def test_what_still_runs_is_a_step_that_stays_with_what_it_stands_on(desk: Desk) -> None:
    first, other, running = await desk.done(on("/x")), await desk.done(on("/y")), await runs(desk, "/x")
    desk.runtime.footprints[other] = steps("files/y")
    way = await desk.engine.timeline.back([desk.core.actions.get(id) for id in (first, other, running)])
    assert [(step.row.id, step.can) for step in way] == [(running, False), (other, True), (first, False)]
    assert way[0].why == "it hasn't ended yet" and f"({running}), which hasn't ended yet, depends" in way[2].why


class _TaskFolder(HeldRuntime):
    """Asks for what a task's line of a folder allows."""

    def plan(self, action: Action) -> Plan:
        plan = super().plan(action)
        scope = READ_SCOPE if self.risk is Risk.READ else FILES_SCOPE
        return replace(plan, needs=(replace(plan.needs[0], scope=scope),))


async def test_no_number_of_reads_hides_what_a_task_changed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo_to, "_MOST_LOOKED_AT", 1)
    desk.runtime = _TaskFolder()
    desk.core.runtimes = {"task": TaskRuntime(), "files": desk.runtime}
    desk.core.grant_store.add_agent(ASKER.agent, by="the person")
    lines = (
        Allowance(service="files", method=FILES_SCOPE, account="/x", arguments={}, times=1),
        Allowance(service="files", method=READ_SCOPE, account="/x"),
    )
    task = await desk.done(Task(title="", allows=lines))
    changed = desk.ask(on("/x"))
    await desk.until(changed, State.DONE)
    desk.runtime.risk, desk.runtime.undo_class = Risk.READ, UndoClass.NOTHING
    for _ in range(2):
        await desk.until(read := desk.ask(on("/x", "ls")), State.DONE)
    for point in (pb.WayBackRequest(verb="undo", task=task), pb.WayBackRequest(verb="commit", action_id=read)):
        way = await undo_to.way_back(desk.engine, THE_PERSON, point)
        assert [(step.action.id, step.can) for step in way.steps] == [(changed, True)]


# ---- the way back to a point


async def test_the_way_back_is_newest_first_and_takes_what_stands_on_it(desk: Desk) -> None:
    first, other, third = [await desk.done(on(folder)) for folder in ("/x", "/y", "/x")]
    desk.runtime.footprints[other] = steps("files/y")
    way = await desk.engine.timeline.back([desk.core.actions.get(first)])
    assert [(step.row.id, step.can) for step in way] == [(third, True), (first, True)]
    assert first in way[0].why and not way[1].why


async def test_since_a_point_is_everything_after_it(desk: Desk) -> None:
    ids = [await desk.done(on(f"/{number}")) for number in range(4)]
    await taken_back(desk, ids[2])
    since = desk.engine.timeline.since(desk.core.actions.get(ids[1]))
    assert since == tuple(reversed(ids[1:]))
    rows = [desk.core.actions.get(id) for id in since]
    way = await desk.engine.timeline.back(rows)
    assert [step.row.id for step in way] == [ids[3], ids[1]]  # what was undone isn't undone again
    assert [step.row.id for step in await desk.engine.timeline.again(rows)] == [ids[2]]


async def test_since_a_moment(desk: Desk) -> None:
    await desk.done(on("/a"))
    moment = stamp(desk.core.clock())
    later = await desk.done(on("/b"))
    assert desk.engine.timeline.after(moment) == (later,)
    assert desk.engine.timeline.after("9999-01-01T00:00:00.000000Z") == ()


async def test_what_cannot_be_taken_back_stays_and_blocks_what_it_stood_on(desk: Desk) -> None:
    first = await desk.done(on("/x"))
    desk.runtime.undo_class = UndoClass.IRREVERSIBLE
    sent, elsewhere = await desk.done(on("/x")), await desk.done(on("/y"))
    rows = [desk.core.actions.get(id) for id in (first, sent, elsewhere)]
    for chosen in (rows, rows[:1]):  # whether it was asked for or not
        way = {step.row.id: step for step in await desk.engine.timeline.back(chosen)}
        assert not way[first].can and sent in way[first].why
    way = {step.row.id: step for step in await desk.engine.timeline.back(rows)}
    assert [way[id].why for id in (sent, elsewhere)] == ["it can't be taken back"] * 2


async def test_nothing_is_taken_back_for_what_stays_anyway(desk: Desk) -> None:
    desk.runtime.undo_class = UndoClass.IRREVERSIBLE
    sent = await desk.done(on("/x"))
    desk.runtime.undo_class = UndoClass.COMPENSATING
    await desk.done(on("/x"))
    way = await desk.engine.timeline.back([desk.core.actions.get(sent)])
    assert [(step.row.id, step.can) for step in way] == [(sent, False)]


async def test_what_stands_on_something_that_stays_stays_with_all_below_it(desk: Desk) -> None:
    low, middle = await desk.done(on("/x")), await desk.done(on("/x"))
    desk.runtime.undo_class = UndoClass.IRREVERSIBLE
    sent = await desk.done(on("/x"))
    desk.runtime.footprints |= {
        low: steps("files/a"),
        middle: steps("files/a", "files/b"),
        sent: steps("r:files/b", "w:files/c"),
    }
    way = {step.row.id: step for step in await desk.engine.timeline.back([desk.core.actions.get(low)])}
    assert sent in way[middle].why and middle in way[low].why
    assert not way[low].can and not way[middle].can


async def test_reads_are_no_step_of_the_way(desk: Desk) -> None:
    first = await desk.done(on("/x"))
    desk.runtime.undo_class = UndoClass.NOTHING
    read = await desk.done(on("/x"))
    way = await desk.engine.timeline.back([desk.core.actions.get(id) for id in (first, read)])
    assert [step.row.id for step in way] == [first]


async def test_the_way_forward_says_what_came_since_and_what_stood_on_it(desk: Desk) -> None:
    ids = [await desk.done(on("/x")) for _ in range(2)]
    for id in reversed(ids):
        await taken_back(desk, id)
    rows = [desk.core.actions.get(id) for id in ids]
    assert [(step.row.id, step.can) for step in await desk.engine.timeline.again(rows)] == [(id, True) for id in ids]
    late = await desk.done(on("/x/y"))
    desk.runtime.footprints |= {
        late: steps("files/x/y"),
        ids[0]: steps("files/x"),
        ids[1]: steps("files/x/z"),
    }
    way = await desk.engine.timeline.again(rows)
    assert [step.can for step in way] == [False, False]
    assert late in way[0].why and ids[0] in way[1].why
    desk.runtime.footprints[ids[1]] = steps("files/elsewhere")
    assert [step.can for step in await desk.engine.timeline.again(rows)] == [False, True]


# ---- paths


@pytest.mark.parametrize(
    ("some", "others", "at"),
    [
        ({"files/a/b"}, {"files/a"}, "files/a/b"),
        ({"files/a"}, {"files/a/b"}, "files/a/b"),
        ({"files/a"}, {"files/ab", "db/a"}, ""),
        ({"files/"}, {"files/x"}, "files/x"),
        (set(), {"files"}, ""),
    ],
)
def test_paths_meet_at_the_deeper_one(some: set[str], others: set[str], at: str) -> None:
    assert meeting(frozenset(some), frozenset(others)) == at
