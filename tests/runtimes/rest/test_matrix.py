"""End to end with a real homeserver: sent, seen in the room, redacted, read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.actions import ApiCalls, Outcome, Plan, Revert, UndoClass
from policies.errors import Conflict
from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import Bench, account, calls
from tests.services.synapse import Synapse

pytestmark = [pytest.mark.docker, pytest.mark.synapse]

UNDO = Revert(verb="undo", target="a1")


class Room:
    """A room with its owner, and what GoEx has of it."""

    def __init__(self, server: Synapse, folder: Path) -> None:
        self.server = server
        self.name = f"user{abs(hash(str(folder)))}"
        self.token = server.register(self.name)
        self.id = server.create_room(self.token, "ops", public=True)
        made = account("matrix", server.url, private=True)
        self.bench = Bench(folder / "records", (made,), secrets={"matrix": self.token})

    @property
    def user(self) -> str:
        return f"@{self.name}:goex.test"

    @property
    def texts(self) -> list[str]:
        return self.server.texts(self.token, self.id)

    def say(self, text: str) -> ApiCalls:
        return calls(("matrix.rooms.send", {"roomId": self.id, "body": text}))


@pytest.fixture
def room(synapse: Synapse, tmp_path: Path) -> Room:
    return Room(synapse, tmp_path)


async def run(runtime: RestRuntime, bench: Bench, action: ApiCalls) -> tuple[Plan, Outcome]:
    context = bench.context("a1")
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    return plan, await runtime.execute(plan, context)


async def undo(runtime: RestRuntime, bench: Bench, plan: Plan, id: str = "a2") -> Outcome:
    target = bench.context("a1")
    revert_plan = await runtime.assess_revert(UNDO, plan, target)
    return await runtime.execute_revert(UNDO, revert_plan, plan, target, bench.context(id))


async def test_a_message_is_sent_seen_and_redacted(runtime: RestRuntime, room: Room) -> None:
    plan, outcome = await run(runtime, room.bench, room.say("Lunch at noon? 🍜 “quoted”\nsecond line"))

    assert outcome.ok, outcome.summary
    assert plan.undo_class is UndoClass.COMPENSATING
    assert room.texts == ["Lunch at noon? 🍜 “quoted”\nsecond line"]

    undone = await undo(runtime, room.bench, plan)

    assert undone.ok, undone.summary
    assert "read back" in undone.summary
    assert room.texts == []


async def test_a_redo_is_a_new_message_for_the_server_too(runtime: RestRuntime, room: Room) -> None:
    """The server answers a repeated transaction id with the old, redacted event: a redo needs another."""
    plan, _ = await run(runtime, room.bench, room.say("again"))
    await undo(runtime, room.bench, plan)
    redo = Revert(verb="redo", target="a1")
    target = room.bench.context("a1")
    redo_plan = await runtime.assess_revert(redo, plan, target)

    outcome = await runtime.execute_revert(redo, redo_plan, plan, target, room.bench.context("a3"))

    assert outcome.ok, outcome.summary
    assert room.texts == ["again"]
    assert (await undo(runtime, room.bench, plan, "a4")).ok
    assert room.texts == []


async def test_a_message_that_someone_redacted_is_a_conflict(runtime: RestRuntime, room: Room) -> None:
    plan, outcome = await run(runtime, room.bench, room.say("hello"))
    room.server.redact(room.token, room.id, outcome.results[0]["body"]["event_id"])

    with pytest.raises(Conflict) as conflict:
        await undo(runtime, room.bench, plan)

    assert any("removed already" in line for line in conflict.value.difference)


@pytest.mark.promise(60)
async def test_a_message_that_someone_edited_is_a_conflict_and_stays(runtime: RestRuntime, room: Room) -> None:
    plan, outcome = await run(runtime, room.bench, room.say("hello"))
    event = outcome.results[0]["body"]["event_id"]
    room.server.send(
        room.token,
        room.id,
        "* hello!",
        **{
            "m.new_content": {"msgtype": "m.text", "body": "hello!"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": event},
        },
    )

    with pytest.raises(Conflict):
        await undo(runtime, room.bench, plan)

    assert "unsigned" in room.server.event(room.token, room.id, event)
    assert len(room.texts) == 2


async def test_a_new_name_is_taken_back_to_the_old_one(runtime: RestRuntime, room: Room) -> None:
    plan, outcome = await run(
        runtime, room.bench, calls(("matrix.rooms.setName", {"roomId": room.id, "name": "war room"}))
    )
    assert outcome.ok, outcome.summary

    undone = await undo(runtime, room.bench, plan)

    assert undone.ok, undone.summary
    _, shown = await run(runtime, Bench(room.bench.folder / "again", room.bench.accounts, room.bench.secrets),
                         calls(("matrix.rooms.name", {"roomId": room.id})))  # fmt: skip
    assert shown.results[0]["body"] == {"name": "ops"}


async def test_create_then_send_into_it_by_reference(runtime: RestRuntime, room: Room) -> None:
    action = calls(
        ("matrix.rooms.create", {"name": "fresh"}),
        ("matrix.rooms.send", {"roomId": {"$from": 0, "path": "$.room_id"}, "body": "first!"}),
    )
    plan, outcome = await run(runtime, room.bench, action)

    assert outcome.ok, outcome.summary
    made = outcome.results[0]["body"]["room_id"]
    assert room.server.texts(room.token, made) == ["first!"]

    undone = await undo(runtime, room.bench, plan)
    assert undone.ok, undone.summary


async def test_a_read_has_nothing_to_take_back(runtime: RestRuntime, room: Room) -> None:
    plan, outcome = await run(runtime, room.bench, calls(("matrix.rooms.messages", {"roomId": room.id, "limit": 5})))

    assert outcome.ok, outcome.summary
    assert plan.undo_class is UndoClass.NOTHING
    assert not outcome.touched
    assert room.bench.records["a1"].get("answers") is None


async def test_no_access_fails_and_says_what_the_server_said(runtime: RestRuntime, room: Room) -> None:
    other = room.server.register(f"{room.name}x")
    private = room.server.create_room(other, "closed")

    _, outcome = await run(runtime, room.bench, calls(("matrix.rooms.send", {"roomId": private, "body": "hi"})))

    assert not outcome.ok
    assert "403" in outcome.summary
