"""Every step of an action and of its undo, ended there: by a crash, a lost connection, or the server's own no.

A point is the moment before or after one call of the server or one write of the records. What is found afterwards must
be all or nothing in a transaction; one by one it may be a part, which is said, and which undo takes back to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from policies.errors import Conflict, Unavailable, Unsupported
from runtimes.mongo.backend import CommitUnknown, Transient, Vanished
from runtimes.sql.contract import Doubtful, Limits
from tests.runtimes.mongo.fake import Crash, Documents, Server
from tests.runtimes.mongo.support import Ground, Kept, operation

PROGRAM = [
    operation("updateMany", "orders", filter={"n": {"$gte": 1}}, update={"$inc": {"n": 10}}),
    operation("deleteMany", "orders", filter={"_id": {"$lt": 2}}),
    operation("insertMany", "other", documents=[{"x": 1}, {"x": 2}]),
    operation("replaceOne", "orders", filter={"_id": 3}, replacement={"gone": True}),
    operation("updateOne", "other", filter={"k": 1}, update={"$set": {"y": 1}}, upsert=True),
]
READS = ("find", "count", "collections")


class Points:
    """Counts the points of a run, and does something at one of them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.at = -1
        self.act: Callable[[], None] = lambda: None

    def __call__(self, moment: str, name: str) -> None:
        self.seen.append((moment, name))
        if len(self.seen) - 1 == self.at:
            self.act()


def crash() -> None:
    raise Crash


def scene(transactions: bool, unique: bool = False) -> tuple[Server, Ground, Points, Documents]:
    server = Server(transactions=transactions)
    if unique:
        server.unique["orders"] = ["n"]
    server.put("orders", *({"_id": number, "n": 7 - number, "z": {"b": 1, "a": number}} for number in range(5)))
    points = Points()
    ground = Ground(connect=server.backend, limits=Limits(seconds=60, lock_seconds=0.5))
    ground.records["a-1"] = Kept(hook=points)
    server.hook = points
    return server, ground, points, server.all()


async def planned(ground: Ground, points: Points) -> None:
    ground.plans["a-1"] = await ground.plan(*PROGRAM)
    await ground.runtime.prepare(ground.plans["a-1"], ground.context("a-1"))
    points.seen.clear()


async def executed(ground: Ground) -> object:
    return await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))


def over(server: Server, points: Points) -> None:
    """The crash is over: clients are gone, and nothing fails any more."""
    points.at = -1
    server.drop_clients()


async def whole(transactions: bool) -> tuple[int, Documents]:
    """How many points a whole run has, and what it ends with; ids that GoEx makes differ from run to run."""
    server, ground, points, _ = scene(transactions)
    await planned(ground, points)
    await executed(ground)
    return len(points.seen), server.all()


def shape(documents: Documents) -> list[tuple[str, int]]:
    return sorted((key[0], len(raw)) for key, raw in documents.items())


@pytest.mark.promise(78)
@pytest.mark.parametrize("transactions", [True, False])
async def test_a_crash_at_every_point_of_an_action(transactions: bool) -> None:
    count, after = await whole(transactions)
    assert count > (25 if transactions else 60)
    ends: set[str] = set()
    for at in range(count):
        server, ground, points, before = scene(transactions)
        await planned(ground, points)
        points.at, points.act = at, crash
        with pytest.raises(Crash):
            await executed(ground)
        where = points.seen[at]
        over(server, points)
        found = (await ground.settle()).outcome
        assert found is not None, where
        again = (await ground.settle()).outcome
        assert again == found, where
        if transactions:
            ends.add("done" if found.ok else "nothing")
            assert found.touched is found.ok, where
            assert (shape(server.all()) == shape(after)) if found.ok else (server.all() == before), where
        else:
            ends.add("part" if found.touched else "nothing")
        if not found.touched:
            assert server.all() == before, where
            continue
        there = server.all()
        assert (await ground.revert("undo")).ok, where
        assert server.all() == before, where
        assert (await ground.revert("redo")).ok, where
        assert server.all() == there, where
    assert ends == ({"done", "nothing"} if transactions else {"part", "nothing"})


@pytest.mark.sampled(5)
@pytest.mark.promise(78)
@pytest.mark.parametrize("verb", ["undo", "redo"])
@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("transactions", [True, False])
async def test_a_crash_at_every_point_of_a_revert_which_is_then_run_again(
    transactions: bool, unique: bool, verb: str
) -> None:
    async def ready() -> tuple[Server, Ground, Points, Documents]:
        server, ground, points, before = scene(transactions, unique)
        await planned(ground, points)
        await executed(ground)
        after = server.all()
        if verb == "redo":
            await ground.rerun("undo")
        points.seen.clear()
        return server, ground, points, before if verb == "undo" else after

    server, ground, points, goal = await ready()
    await ground.rerun(verb)
    assert server.all() == goal
    for at in range(len(points.seen)):
        server, ground, points, goal = await ready()
        points.at, points.act = at, crash
        with pytest.raises(Crash):
            await ground.rerun(verb)
        where = points.seen[at]
        over(server, points)
        assert (await ground.rerun(verb)).ok, where
        assert shape(server.all()) == shape(goal), where
        if verb == "undo":
            assert server.all() == goal, where


SWAP = [
    operation("updateOne", "orders", filter={"_id": 0}, update={"$set": {"n": 100}}),
    operation("updateOne", "orders", filter={"_id": 1}, update={"$set": {"n": 7}}),
    operation("updateOne", "orders", filter={"_id": 0}, update={"$set": {"n": 6}}),
]


@pytest.mark.parametrize("transactions", [True, False])
async def test_a_crash_while_unique_keys_change_places(transactions: bool) -> None:
    async def ready() -> tuple[Server, Ground, Points, Documents]:
        server, ground, points, before = scene(transactions, unique=True)
        await ground.do(*SWAP)
        points.seen.clear()
        return server, ground, points, before

    server, ground, points, before = await ready()
    await ground.rerun("undo")
    assert server.all() == before
    for at in range(len(points.seen)):
        server, ground, points, before = await ready()
        points.at, points.act = at, crash
        with pytest.raises(Crash):
            await ground.rerun("undo")
        over(server, points)
        assert (await ground.rerun("undo")).ok, points.seen[at]
        assert server.all() == before, points.seen[at]


@pytest.mark.parametrize("transactions", [True, False])
async def test_a_crash_while_a_failure_is_taken_back(transactions: bool) -> None:
    fails = [*PROGRAM[:2], operation("updateOne", "orders", filter={"_id": 4}, update={"$set": {"n": 17}})]

    async def ready() -> tuple[Server, Ground, Points, Documents]:
        server, ground, points, before = scene(transactions, unique=True)
        ground.plans["a-1"] = await ground.plan(*fails)
        await ground.runtime.prepare(ground.plans["a-1"], ground.context("a-1"))
        points.seen.clear()
        return server, ground, points, before

    server, ground, points, before = await ready()
    server.put("orders", {"_id": 9, "n": 13, "z": 1})
    with pytest.raises(Conflict):
        await executed(ground)
    ends: set[bool] = set()
    for at in range(len(points.seen)):
        server, ground, points, _ = await ready()
        server.put("orders", {"_id": 9, "n": 13, "z": 1})
        before = server.all()
        points.at, points.act = at, crash
        with pytest.raises(Crash):
            await executed(ground)
        over(server, points)
        found = (await ground.settle()).outcome
        assert found is not None and not found.ok, points.seen[at]
        ends.add(found.touched)
        if found.touched:
            await ground.revert("undo")
        assert server.all() == before, points.seen[at]
    assert ends == ({False} if transactions else {False, True})


async def test_an_undo_that_was_committed_and_not_noted_is_known_by_its_marker() -> None:
    server, ground, points, before = scene(True)
    await planned(ground, points)
    await executed(ground)
    after = server.all()
    server.hook = lambda moment, name: crash() if (moment, name) == ("after", "commit") else None
    with pytest.raises(Crash):
        await ground.rerun("undo")
    server.hook = lambda moment, name: None
    assert server.all() == before
    found = (await ground.settle()).outcome
    assert found is not None and not found.touched and "as it was before" in found.summary
    with pytest.raises(Unsupported, match="undone already"):
        await ground.revert("undo")
    await ground.revert("redo")
    assert server.all() == after


async def test_a_server_that_changes_what_is_put_back_is_not_believed() -> None:
    server, ground, points, _ = scene(True)
    await planned(ground, points)
    await executed(ground)
    there = server.all()
    server.stores = lambda document: document.replace(b"\x02x\x00", b"\x02y\x00").replace(b"\x10n\x00", b"\x10m\x00")
    with pytest.raises(Conflict, match="doesn't take the documents"):
        await ground.revert("undo")
    assert server.all() == there


async def test_a_server_that_rolls_back_at_every_point_is_asked_again() -> None:
    count, after = await whole(True)
    for at in range(count):
        server, ground, points, _ = scene(True)
        await planned(ground, points)

        def no(server: Server = server) -> None:
            server.drop_clients()
            raise Transient("rolled back")

        points.at, points.act = at, no
        try:
            await executed(ground)
        except Transient:
            name = points.seen[at][1]
            assert name.startswith("put ") or name == "collections" or points.seen[at] == ("after", "commit")
            continue
        assert shape(server.all()) == shape(after), points.seen[at]


@pytest.mark.parametrize("took_effect", [False, True])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_commit_without_an_answer_is_asked_for_again(took_effect: bool, times: int) -> None:
    server, ground, points, before = scene(True)
    await planned(ground, points)
    left = [times]

    def hook(moment: str, name: str) -> None:
        if name == "commit" and moment == ("after" if took_effect else "before") and left[0]:
            left[0] -= 1
            raise CommitUnknown("lost")

    server.hook = hook
    assert (await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))).ok
    assert server.all() != before
    await ground.revert("undo")
    assert server.all() == before


@pytest.mark.parametrize("took_effect", [False, True])
async def test_a_commit_that_stays_unknown_is_looked_after_at_once(
    took_effect: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, ground, points, before = scene(True)
    await planned(ground, points)
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def hook(moment: str, name: str) -> None:
        if name != "commit":
            return
        if moment == ("after" if took_effect else "before"):
            raise CommitUnknown("lost")

    server.hook = hook
    outcome = await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))
    assert outcome.ok is outcome.touched is took_effect
    assert (server.all() != before) is took_effect
    if took_effect:
        await ground.rerun("undo")
        server.hook = lambda moment, name: None
    assert server.all() == before


async def test_what_can_not_be_known_now_is_said_and_known_later(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ground, points, before = scene(True)
    await planned(ground, points)
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def hook(moment: str, name: str) -> None:
        if name == "commit":
            server.hook = gone
            raise CommitUnknown("lost")

    def gone(moment: str, name: str) -> None:
        raise CommitUnknown("lost") if name == "commit" else Unavailable("Nobody answers.")

    server.hook = hook
    with pytest.raises(Doubtful, match="Nobody answers"):
        await executed(ground)
    assert (await ground.settle()).outcome is None
    server.hook = lambda moment, name: None
    server.drop_clients()
    found = (await ground.settle()).outcome
    assert found is not None and not found.touched and server.all() == before


@pytest.mark.promise(78)
@pytest.mark.parametrize("ends", [True, False])
async def test_a_commit_under_way_can_not_slip_past_the_probe(ends: bool) -> None:
    """The process died after it had sent the commit, and the server hadn't come to it when the probe looked."""
    server, ground, points, before = scene(True)
    server.ends = ends
    await planned(ground, points)
    points.at, points.act = 10_000, crash
    server.hook = lambda moment, name: crash() if (moment, name) == ("before", "commit") else None
    with pytest.raises(Crash):
        await executed(ground)
    [open_unit] = server.opened
    server.hook = lambda moment, name: None
    if ends:  # it was ended by the probe: now the commit finds nothing
        found = (await ground.settle()).outcome
        assert found is not None and not found.touched
        with pytest.raises(Transient):
            open_unit.commit()
        assert server.all() == before and (await ground.settle()).outcome == found
        return
    assert (await ground.settle()).outcome is None  # its transaction holds the marker: it isn't known yet
    open_unit.commit()
    found = (await ground.settle()).outcome
    assert found is not None and found.ok and server.all() != before
    await ground.revert("undo")
    assert server.all() == before


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_connection_that_is_lost_at_every_write(moment: str) -> None:
    """One by one: nobody knows whether the write took effect, until it is looked at."""
    server, ground, points, _ = scene(False)
    await planned(ground, points)
    await executed(ground)
    writes = [at for at, (when, name) in enumerate(points.seen) if when == moment and not _aside(name)]
    assert len(writes) > 8
    for at in writes:
        server, ground, points, before = scene(False)
        await planned(ground, points)

        def lost() -> None:
            raise Vanished("lost")

        points.at, points.act = at, lost
        outcome = await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))
        assert not outcome.ok
        if outcome.touched:
            await ground.revert("undo")
        assert server.all() == before, points.seen[at]


def _aside(name: str) -> bool:
    return name.startswith((*READS, "put", "make"))


async def test_another_action_on_the_same_documents_waits_and_is_told() -> None:
    server, ground, points, _ = scene(True)
    await planned(ground, points)
    other = server.backend().begin()
    other.update("orders", {"_id": 2}, {"$set": {"x": 1}})
    with pytest.raises(Conflict, match="Somebody else is changing"):
        await executed(ground)
    other.commit()
    found = (await ground.settle()).outcome
    assert found is not None and not found.touched


async def test_somebody_who_writes_between_makes_it_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server, ground, points, before = scene(True)
    await planned(ground, points)
    done: list[int] = []

    def hook(moment: str, name: str) -> None:
        if (moment, name) == ("before", "update orders") and not done:
            done.append(1)
            server.put("orders", {"_id": 4, "n": 3, "mine": True})

    server.hook = hook
    assert (await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))).ok
    await ground.revert("undo")
    assert b"mine" in server.documents["orders", b"number 4"]
    assert {k: v for k, v in server.all().items() if k[1] != b"number 4"} == {
        k: v for k, v in before.items() if k[1] != b"number 4"
    }


@pytest.mark.parametrize("name", ["change orders", "delete orders", "replace orders"])
async def test_one_by_one_somebody_who_writes_between_is_never_overwritten(name: str) -> None:
    for nth in range(4):
        server, ground, points, before = scene(False)
        await planned(ground, points)
        seen: list[str] = []

        def hook(moment: str, called: str, seen: list[str] = seen, server: Server = server, nth: int = nth) -> None:
            if (moment, called) == ("before", name):
                seen.append(called)
                if len(seen) == nth + 1:
                    for id in range(5):
                        key = ("orders", b"number %d" % id)
                        if key in server.documents:
                            server.write(key, server.documents[key].replace(b"\x02b\x00", b"\x02b\x00"))
                    server.put("orders", {"_id": _target(name, nth), "n": 1000, "mine": nth})

        server.hook = hook
        try:
            outcome = await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))
        except Conflict:
            outcome = None
        server.hook = lambda moment, name: None
        if len(seen) <= nth:
            break
        mine = [raw for raw in server.all().values() if b"mine" in raw]
        assert mine, (name, nth)
        if outcome is None:
            others = {key: raw for key, raw in server.all().items() if b"mine" not in raw}
            assert all(before.get(key) == raw for key, raw in others.items())


def _target(name: str, nth: int) -> int:
    """The document that the nth such write of the program is about."""
    return {"change orders": (0, 1, 2, 3, 4), "delete orders": (0, 1, 0, 1), "replace orders": (3, 3, 3, 3)}[name][nth]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    yield
