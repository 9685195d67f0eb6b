"""What came after what: which actions are independent, the way back to a point, and commits of several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goex.engine.core import Request
from goex.engine.timeline import MOST_STEPS, meeting
from goex.journal.chain import stamp
from goex.journal.states import State
from policies.actions import Files, Revert, UndoClass
from policies.errors import Conflict, Denied, GoexError, InvalidInput
from policies.grants import PERSON
from runtimes.base import Footprint
from tests.goex.engine.conftest import ASKER, Desk

THE_PERSON = replace(ASKER, agent=PERSON, session="tty-1")


def on(folder: str, program: str = "true") -> Files:
    return Files(folder=folder, language="shell", program=program)


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
@pytest.mark.parametrize(("earlier", "later", "stands"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_a_later_action_stands_in_the_way_only_where_their_footprints_meet(
    desk: Desk, earlier: tuple[str, ...], later: tuple[str, ...], stands: bool
) -> None:
    first, second = await desk.done(on("/x")), await desk.done(on("/x"))
    desk.runtime.footprints |= {first: steps(*earlier), second: steps(*later)}
    if stands:
        said = await refused(desk, Revert(verb="undo", target=first))
        assert second in said and f"goex undo --to {first}" in said
        assert desk.core.actions.get(first).state is State.DONE
    else:
        await taken_back(desk, first)
        assert desk.core.actions.get(first).state is State.UNDONE


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


# ---- a watermark


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
    assert "It stayed." in row.problem
    states = [desk.core.actions.get(id).state for id in ids]
    assert states == [State.DONE, State.COMMITTED, State.COMMITTED]
    assert desk.core.records(desk.core.actions.get(ids[0])).get("kept") == b"what undo needs"


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
