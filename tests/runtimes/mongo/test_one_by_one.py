"""Without transactions: what is refused in the middle is taken back, or said; nothing of anybody else's is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bson import encode as bson
from bson.int64 import Int64
from bson.timestamp import Timestamp

from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import canonical, parse
from runtimes.mongo import records
from runtimes.mongo.backend import Collection, Duplicate
from runtimes.mongo.extjson import decode
from runtimes.sql.contract import Limits
from runtimes.sql.records import write_image
from tests.runtimes.mongo.fake import Crash, Documents, Server
from tests.runtimes.mongo.support import Ground, Kept, operation
from tests.runtimes.mongo.test_crashes import Points, crash, over

VALIDATOR = InvalidInput("The collection's own rules (its validator) refuse a document.")
NOT_ALLOWED = Unsupported("The server doesn't allow this to GoEx's user.")
ADD = operation("updateMany", "o", filter={}, update={"$inc": {"n": 100}})


def scene(count: int = 3, *, transactions: bool = False, limits: Limits | None = None) -> tuple[Server, Ground]:
    server = Server(transactions=transactions)
    if count:
        server.put("o", *({"_id": number, "n": number} for number in range(count)))
    return server, Ground(connect=server.backend, limits=limits or Limits(seconds=60, lock_seconds=0.5))


def documents(server: Server) -> list[dict[str, object]]:
    return [decode(raw) for raw in server.all().values()]


def at(moment: str, name: str, nth: int, act: Callable[[], None]) -> Callable[[str, str], None]:
    """A hook that acts at the nth such call, and never again."""
    seen = [0]

    def hook(when: str, called: str) -> None:
        if (when, called) == (moment, name):
            seen[0] += 1
            if seen[0] == nth:
                act()

    return hook


def refusing(error: GoexError) -> Callable[[], None]:
    def no() -> None:
        raise error

    return no


@pytest.mark.promise(78)
@pytest.mark.parametrize("transactions", [True, False])
async def test_what_grows_beyond_what_undo_may_keep_is_taken_back(transactions: bool) -> None:
    server, ground = scene(8, transactions=transactions, limits=Limits(seconds=60, image_bytes=300_000))
    before = server.all()
    blob = "".join(chr(33 + number * number % 90) for number in range(120_000))
    with pytest.raises(Conflict, match="larger than"):
        await ground.do(operation("updateMany", "o", filter={}, update={"$set": {"b": blob}}))
    assert server.all() == before
    settled = (await ground.settle()).outcome
    assert settled is not None and not settled.touched


@pytest.mark.parametrize("error", [VALIDATOR, NOT_ALLOWED, Conflict("It took too long.")])
async def test_what_can_not_be_taken_back_is_said_and_undone_later(error: GoexError) -> None:
    server, ground = scene()
    server.unique["o"] = ["n"]
    before = server.all()
    server.hook = at("before", "replace o", 2, refusing(error))
    clashes = operation("insertOne", "o", document={"_id": 9, "n": 101})
    outcome = await ground.do(ADD, clashes)
    assert not outcome.ok and outcome.touched
    assert any("can't all be taken back: The unique index" in line for line in outcome.changes), outcome.changes
    assert sum(one["n"] >= 100 for one in documents(server)) == 2  # type: ignore[operator]
    assert (await ground.settle()).outcome is not None
    assert (await ground.revert("undo")).ok
    assert server.all() == before


@pytest.mark.parametrize("error", [VALIDATOR, NOT_ALLOWED, Conflict("It took too long.")])
async def test_an_undo_that_is_refused_in_the_middle_touches_nothing(error: GoexError) -> None:
    server, ground = scene()
    before = server.all()
    await ground.do(ADD)
    there = server.all()
    server.hook = at("before", "replace o", 2, refusing(error))
    with pytest.raises(type(error), match=error.message[:20]):
        await ground.revert("undo")
    assert server.all() == there and records.read_state(ground.records["a-1"]).at == "done"
    assert (await ground.revert("undo")).ok
    assert server.all() == before


async def test_an_undo_that_is_refused_both_ways_goes_on_later() -> None:
    server, ground = scene()
    before = server.all()
    await ground.do(ADD)
    seen: list[str] = []

    def hook(moment: str, name: str) -> None:
        if (moment, name) == ("before", "replace o"):
            seen.append(name)
            if len(seen) > 1:
                raise VALIDATOR

    server.hook = hook
    outcome = await ground.revert("undo")
    assert not outcome.ok and outcome.touched and "run it again" in outcome.summary
    server.hook = lambda moment, name: None
    assert (await ground.rerun("undo")).ok
    assert server.all() == before


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_cancelled_action_is_taken_back(moment: str) -> None:
    server, ground = scene()
    before = server.all()
    backend = server.backend()
    ground.connect = lambda: backend
    server.hook = at(moment, "change o", 2, backend.interrupt)
    with pytest.raises(Conflict, match="cancelled"):
        await ground.do(ADD)
    assert server.all() == before


async def test_a_cancelled_undo_goes_back() -> None:
    server, ground = scene()
    await ground.do(ADD)
    there = server.all()
    backend = server.backend()
    ground.connect = lambda: backend
    server.hook = at("after", "replace o", 2, backend.interrupt)
    with pytest.raises(Conflict, match="cancelled"):
        await ground.revert("undo")
    assert server.all() == there and records.read_state(ground.records["a-1"]).at == "done"


@pytest.mark.promise(78)
async def test_an_upsert_never_overwrites_what_somebody_made_meanwhile() -> None:
    server, ground = scene(0)
    server.hook = at("before", "upsert o", 1, lambda: server.put("o", {"_id": 7, "n": 42}))
    with pytest.raises(Duplicate):
        await ground.do(operation("updateOne", "o", filter={"_id": 7}, update={"$set": {"n": 1}}, upsert=True))
    assert documents(server) == [{"_id": 7, "n": 42}]


async def test_what_was_put_back_is_looked_at_again() -> None:
    server, ground = scene()
    await ground.do(operation("deleteMany", "o", filter={"n": {"$gte": 1}}))
    server.stores = lambda document: document.replace(b"\x10n\x00", b"\x10m\x00")
    outcome = await ground.revert("undo")
    assert not outcome.ok and outcome.touched and any("doesn't hold" in line for line in outcome.changes)


async def test_what_is_taken_back_is_looked_at_again() -> None:
    server, ground = scene()

    def changed() -> None:
        server.stores = lambda document: document.replace(b"\x10n\x00", b"\x10m\x00")
        server.put("o", {"_id": 9})

    server.hook = at("before", "insert o", 1, changed)
    outcome = await ground.do(ADD, operation("insertOne", "o", document={"_id": 9}))
    assert not outcome.ok and outcome.touched


@pytest.mark.parametrize("name", ["insertOne", "replaceOne", "upsert"])
async def test_a_server_that_stores_another_type_is_undone_as_it_stores(name: str) -> None:
    server, ground = scene(1)
    before = server.all()
    server.stores = lambda raw: bson({key: int(v) if isinstance(v, Int64) else v for key, v in decode(raw).items()})
    large = {"n": {"$numberLong": "5"}}
    await ground.do(
        {
            "insertOne": operation("insertOne", "o", document={"_id": 5, **large}),
            "replaceOne": operation("replaceOne", "o", filter={"_id": 0}, replacement=large),
            "upsert": operation("replaceOne", "o", filter={"_id": 6}, replacement=large, upsert=True),
        }[name]
    )
    there = server.all()
    assert (await ground.revert("undo")).ok and server.all() == before
    assert (await ground.revert("redo")).ok and server.all() == there


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    ("called", "text", "id"),
    [
        ("insert o", operation("insertOne", "o", document={"_id": 5, "n": 1}), 5),
        ("insert o", operation("replaceOne", "o", filter={"_id": 5}, replacement={"n": 1}, upsert=True), 5),
        ("replace o", operation("replaceOne", "o", filter={"_id": 0}, replacement={"n": 1}), 0),
        ("upsert o", operation("updateOne", "o", filter={"_id": 5}, update={"$set": {"n": 1}}, upsert=True), 5),
    ],
)
async def test_what_somebody_writes_right_after_is_not_taken_for_the_action_s_own(
    called: str, text: str, id: int
) -> None:
    server, ground = scene(1)
    server.hook = at("after", called, 1, lambda: server.put("o", {"_id": id, "n": 99, "paid": True}))
    await ground.do(text)
    there = server.all()
    with pytest.raises(Conflict, match="changed since by somebody"):
        await ground.revert("undo")
    assert server.all() == there


@pytest.mark.parametrize("filter", [{"k": 1}, {"_id": 7}, {"_id": {"$gt": 100}}])
async def test_a_server_that_takes_no_id_from_within_a_condition(filter: dict[str, object]) -> None:
    server, ground = scene(1)
    server.looks_into_and = False
    before = server.all()
    upsert = operation("updateOne", "o", filter=filter, update={"$set": {"n": 50}}, upsert=True)
    if filter == {"_id": {"$gt": 100}}:
        with pytest.raises(Conflict, match="another _id"):
            await ground.do(upsert)
        assert server.all() == before
        return
    assert (await ground.do(upsert)).ok
    assert {"n": 50, **filter} in [{key: one[key] for key in ("n", *filter) if key in one} for one in documents(server)]
    assert (await ground.revert("undo")).ok and server.all() == before


async def test_what_was_written_and_can_not_be_read_is_looked_after() -> None:
    server, ground = scene(1)
    before = server.all()

    def blind() -> None:
        server.hook = at("before", "find o", 1, refusing(Conflict("It took too long.")))

    server.hook = at("after", "insert o", 1, blind)
    outcome = await ground.do(operation("insertOne", "o", document={"_id": 5, "n": 1}))
    assert not outcome.ok and outcome.touched
    await ground.revert("undo")
    assert server.all() == before


# ---- what somebody else has made, or deleted, is no part of it


NEW = [{"_id": number, "name": f"customer {number}"} for number in range(6)]


@pytest.mark.promise(78)
@pytest.mark.parametrize(
    "text",
    [
        operation("insertMany", "o", documents=NEW),
        operation("insertMany", "o", documents=[NEW[0], {**NEW[1], "_id": 0}]),
        operation("replaceOne", "o", filter={"_id": 4, "x": 1}, replacement={"name": "customer 4"}, upsert=True),
        operation("updateOne", "o", filter={"_id": 4, "x": 1}, update={"$set": {"n": 1}}, upsert=True),
    ],
)
async def test_a_document_that_is_there_already_is_seen_before_anything_is_written(text: str) -> None:
    server, ground = scene(0)
    server.put("o", *NEW[3:])
    before = server.all()
    server.hook = at("before", "insert o", 1, crash)
    with pytest.raises(Duplicate):
        await ground.do(text)
    assert server.all() == before
    settled = (await ground.settle()).outcome
    assert settled is not None and not settled.touched


@pytest.mark.promise(78)
async def test_what_was_made_after_a_crash_in_documents_that_were_not_reached_is_left_alone() -> None:
    """Of 50 documents 21 were made for certain and one more may have been; those beyond the next 20 were not."""
    server, ground = scene(0)
    new = [{"_id": number} for number in range(50)]
    server.hook = at("after", "insert o", 22, crash)
    with pytest.raises(Crash):
        await ground.do(operation("insertMany", "o", documents=new))
    server.hook = lambda moment, name: None
    server.put("o", *new[40:])
    settled = (await ground.settle()).outcome
    assert settled is not None and settled.changes[0] == "o: 22 documents inserted"
    assert settled.changes[1].startswith("2 documents were being written"), settled.changes
    assert (await ground.revert("undo")).ok and documents(server) == new[40:]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("delete o", operation("deleteMany", "o", filter={})),
        ("replace o", operation("replaceOne", "o", filter={"_id": 0}, replacement={"n": 1})),
        ("insert o", operation("insertOne", "o", document={"_id": 9})),
    ],
)
async def test_every_write_after_the_last_note_is_in_doubt(call: str, text: str) -> None:
    server, ground = scene(6)
    server.hook = at("after", call, 1, crash)
    with pytest.raises(Crash):
        await ground.do(text)
    server.hook = lambda moment, name: None
    settled = (await ground.settle()).outcome
    assert settled is not None and "1 document was being written when it stopped" in settled.changes[1]


async def test_a_deletion_by_somebody_is_no_part_of_an_update_that_stopped() -> None:
    server, ground = scene(3)
    server.hook = at("after", "change o", 1, crash)
    with pytest.raises(Crash):
        await ground.do(ADD)
    server.hook = lambda moment, name: None
    server.remove("o", 2)
    assert (await ground.settle()).outcome is not None
    assert (await ground.revert("undo")).ok and documents(server) == [{"_id": 0, "n": 0}, {"_id": 1, "n": 1}]


async def test_notes_of_an_older_version_leave_all_that_follows_in_doubt() -> None:
    server, ground = scene(0)
    before = server.all()
    server.hook = at("after", "insert o", 42, crash)
    with pytest.raises(Crash):
        await ground.do(operation("insertMany", "o", documents=[{"_id": number} for number in range(50)]))
    server.hook = lambda moment, name: None
    noted = parse(ground.records["a-1"].notes["db.state"])
    assert noted.pop("written") == 40
    ground.records["a-1"].notes["db.state"] = canonical(noted)
    settled = (await ground.settle()).outcome
    assert settled is not None and "42 documents were being written" in settled.changes[1]
    assert (await ground.revert("undo")).ok and server.all() == before


@pytest.mark.parametrize(("sent", "written"), [({"a": 1}, {"a": True}), ({"a": 1, "b": 2}, {"b": 2, "a": 1})])
async def test_what_python_holds_to_be_equal_is_another_s_all_the_same(
    sent: dict[str, object], written: dict[str, object]
) -> None:
    server, ground = scene(0)
    server.hook = at("after", "insert o", 1, lambda: server.put("o", {"_id": 5, "in": [written]}))
    await ground.do(operation("insertOne", "o", document={"_id": 5, "in": [sent]}))
    with pytest.raises(Conflict, match="changed since by somebody"):
        await ground.revert("undo")


# ---- documents that are taken out for a moment


GROWS = operation("updateOne", "o", filter={"_id": 1}, update=[{"$set": {"c": "$b"}}])


async def grown() -> tuple[Server, Ground, Points, Documents]:
    server, ground = scene(0)
    server.put("o", {"_id": 1, "b": "x" * 6_900_000})
    before = server.all()
    points = Points()
    ground.records["a-1"] = Kept(hook=points)
    await ground.do(GROWS)
    server.hook = points
    points.seen.clear()
    return server, ground, points, before


async def test_a_document_that_grew_beyond_one_statement_is_undone(thorough: bool) -> None:
    server, ground, points, before = await grown()
    there = server.all()
    assert (await ground.revert("undo")).ok and server.all() == before
    assert (await ground.revert("redo")).ok and server.all() == there
    count = next(number for number, point in enumerate(points.seen) if point == ("after", "insert o"))
    for number in range(count + 1) if thorough else sorted({count // 2, count}):
        server, ground, points, before = await grown()
        points.at, points.act = number, crash
        with pytest.raises(Crash):
            await ground.rerun("undo")
        over(server, points)
        assert (await ground.rerun("undo")).ok and server.all() == before, points.seen[number]


async def test_a_document_that_grew_is_taken_back_when_a_later_operation_fails() -> None:
    server, ground = scene(0)
    server.put("o", {"_id": 1, "b": "x" * 6_900_000})
    before = server.all()
    with pytest.raises(Duplicate):
        await ground.do(GROWS, operation("insertOne", "o", document={"_id": 1}))
    assert server.all() == before


TWO_SWAPS = [
    operation("updateOne", "o", filter={"_id": id}, update={"$set": {"n": value}})
    for id, value in ((0, 100), (1, 0), (0, 1), (2, 101), (3, 2), (2, 3))
]


@pytest.mark.promise(78)
async def test_a_crash_while_two_documents_are_taken_out_and_another_in_the_next_run() -> None:
    async def ready() -> tuple[Server, Ground, Points, Documents]:
        server, ground = scene(4)
        server.unique["o"] = ["n"]
        before = server.all()
        points = Points()
        ground.records["a-1"] = Kept(hook=points)
        await ground.do(*TWO_SWAPS)
        server.hook = points
        points.seen.clear()
        return server, ground, points, before

    server, ground, points, before = await ready()
    await ground.rerun("undo")
    assert server.all() == before
    first = len(points.seen)
    assert ("after", "put db.lifted.1") in points.seen
    for number in range(first):
        for again in (1, 4, 8, 12):
            server, ground, points, before = await ready()
            points.at, points.act = number, crash
            with pytest.raises(Crash):
                await ground.rerun("undo")
            where = points.seen[number]
            points.at = number + again
            try:
                await ground.rerun("undo")
            except Crash:
                over(server, points)
                assert (await ground.rerun("undo")).ok, (where, again)
            assert server.all() == before, (where, again)


@pytest.mark.promise(78)
@pytest.mark.parametrize("runs", [1, 2])
async def test_a_document_that_was_put_back_and_then_deleted_by_somebody_stays_deleted(runs: int) -> None:
    """`runs` 2: the first run crashed before it could note that the document is back."""
    server, ground = scene(4)
    server.unique["o"] = ["n"]
    await ground.do(*TWO_SWAPS)
    before_note = at("before" if runs == 2 else "after", "put db.lifted.0", 2, crash)
    ground.records["a-1"].hook = before_note
    with pytest.raises(Crash):
        await ground.revert("undo")
    ground.records["a-1"].hook = lambda moment, name: None
    if runs == 2:
        server.hook = at("before", "replace o", 1, crash)
        with pytest.raises(Crash):
            await ground.rerun("undo")
        server.hook = lambda moment, name: None
    back = next(number for number in range(4) if documents(server)[-1]["_id"] == number)
    server.remove("o", back)
    there = server.all()
    with pytest.raises(Conflict, match="changed since by somebody"):
        await ground.rerun("undo")
    assert server.all() == there


async def test_each_document_that_is_taken_out_is_noted_by_itself() -> None:
    server, ground = scene(40)
    server.unique["o"] = ["n"]
    before = server.all()
    swaps = [((a, 1000), (a + 1, a), (a, a + 1)) for a in range(0, 40, 2)]
    await ground.do(
        *(
            operation("updateOne", "o", filter={"_id": id}, update={"$set": {"n": value}})
            for swap in swaps
            for id, value in swap
        )
    )
    written: list[int] = []
    put = ground.records["a-1"].put

    def sized(name: str, data: bytes) -> None:
        if name.startswith("db.lifted"):
            written.append(len(data))
        put(name, data)

    ground.records["a-1"].put = sized  # type: ignore[method-assign]
    assert (await ground.revert("undo")).ok and server.all() == before
    assert len(written) == 40 and sum(written) < 20 * 100


async def test_the_list_of_an_older_version_is_read() -> None:
    server, ground = scene(4)
    server.unique["o"] = ["n"]
    before = server.all()
    await ground.do(*TWO_SWAPS)
    server.hook = at("after", "delete o", 1, crash)
    with pytest.raises(Crash):
        await ground.revert("undo")
    server.hook = lambda moment, name: None
    kept = ground.records["a-1"]
    out = kept.notes.pop("db.lifted.0")
    write_image(kept, "lifted", [out], most=None)
    assert (await ground.rerun("undo")).ok and server.all() == before


def test_the_list_of_an_older_version_is_taken_over_once() -> None:
    """A crash between its notes and its end leaves no note that is never cleared."""
    one = bson({"_id": 1})
    kept, taken = Kept(), records.Change(collection="o", id=one, before=one, after=None)
    records.keep(kept, "lifted", (taken,), most=None)
    kept.hook = at("after", "put db.lifted.0", 1, crash)
    with pytest.raises(Crash):
        records.Lifted(kept)
    records.Lifted(kept).back(taken.key)
    assert records.Lifted(kept).keys == frozenset()


async def test_a_document_that_was_taken_out_and_can_not_be_put_back_is_undone_later() -> None:
    """Taking back, it makes room for a key; then the server takes nothing any more."""
    server, ground = scene(4)
    server.unique["o"] = ["n"]
    before = server.all()

    def no_more(moment: str, name: str) -> None:
        if moment == "before" and name in ("replace o", "insert o"):
            raise VALIDATOR

    def taken_out() -> None:
        server.hook = no_more

    server.hook = at("after", "delete o", 1, taken_out)
    fails = operation("insertOne", "o", document={"_id": 0})
    outcome = await ground.do(*TWO_SWAPS, fails)
    assert not outcome.ok and outcome.touched and len(server.all()) == 3
    server.hook = lambda moment, name: None
    assert (await ground.revert("undo")).ok
    assert server.all() == before


async def test_a_document_that_could_not_be_taken_out_is_not_put_back() -> None:
    server, ground = scene(4)
    server.unique["o"] = ["n"]
    await ground.do(*TWO_SWAPS)
    there = server.all()
    server.hook = at("before", "delete o", 1, refusing(NOT_ALLOWED))
    with pytest.raises(Unsupported):
        await ground.revert("undo")
    assert server.all() == there and records.read_state(ground.records["a-1"]).at == "done"


async def test_a_document_whose_taking_out_could_not_be_noted_is_not_put_back() -> None:
    server, ground = scene(4)
    server.unique["o"] = ["n"]
    before = server.all()
    await ground.do(*TWO_SWAPS)
    there = server.all()
    ground.records["a-1"].hook = at("before", "put db.lifted.0", 1, refusing(Conflict("The disk is full.")))
    with pytest.raises(Conflict, match="disk is full"):
        await ground.revert("undo")
    assert server.all() == there and records.read_state(ground.records["a-1"]).at == "done"
    assert (await ground.revert("undo")).ok and server.all() == before


# ---- documents that the server wouldn't take again


@pytest.mark.parametrize("transactions", [True, False])
@pytest.mark.parametrize("change", ['{"$set": {"t": %s}}', '[{"$set": {"t": %s}}]', '{"$setOnInsert": {"t": %s}}'])
async def test_an_empty_timestamp_is_not_set(transactions: bool, change: str) -> None:
    _, ground = scene(transactions=transactions)
    empty = '{"$timestamp": {"t": 0, "i": 0}}'
    text = '{"updateOne": "o", "filter": {"_id": 1}, "update": %s}'
    with pytest.raises(Unsupported, match="empty timestamp"):
        await ground.do(text % (change % empty))
    assert (await ground.do(text % f'{{"$set": {{"a.t": {empty}}}}}')).ok


@pytest.mark.parametrize("transactions", [True, False])
async def test_a_document_with_an_empty_timestamp_is_left_alone(transactions: bool) -> None:
    server, ground = scene(transactions=transactions)
    server.put("o", {"_id": 8, "t": Timestamp(0, 0)}, {"_id": 9, "in": {"t": Timestamp(0, 0)}})
    server.put("o", {"_id": 10, "a.t": Timestamp(0, 0)})
    before = server.all()
    for text in (
        operation("deleteOne", "o", filter={"_id": 10}),
        operation("deleteMany", "o", filter={}),
        operation("updateOne", "o", filter={"_id": 9}, update=[{"$set": {"t": "$in.t"}}]),
    ):
        with pytest.raises(Unsupported, match="empty timestamp"):
            await ground.do(text)
        assert server.all() == before


async def test_a_document_that_the_server_only_inserts_is_taken_back_in_a_transaction() -> None:
    server, ground = scene(1, transactions=True)
    server.put("o", {"_id": 9, "$price": 5, "n": 3})
    before = server.all()
    await ground.do(ADD)
    after = server.all()
    assert (await ground.revert("undo")).ok and server.all() == before
    assert (await ground.revert("redo")).ok and server.all() == after


@pytest.mark.parametrize("transactions", [True, False])
async def test_a_document_that_breaks_the_rules_of_its_collection_is_left_alone(transactions: bool) -> None:
    server, ground = scene(transactions=transactions)
    server.rules["o"] = {"n": {"$lt": 2}}  # since then: document 2 is older than that
    before = server.all()
    deleting = operation("deleteMany", "o", filter={"n": {"$gte": 1}})
    with pytest.raises(Unsupported, match="older than the rules") as refused:
        await ground.do(deleting)
    assert "outside of GoEx" in refused.value.next_step
    if not transactions:
        with pytest.raises(Unsupported, match="older than the rules"):
            await ground.runtime.dry_run(ground.plans["a-1"], ground.context("a-1"))
    assert server.all() == before
    await ground.do(operation("deleteOne", "o", filter={"_id": 1}), id="a-2")
    assert (await ground.revert("undo", id="a-2")).ok and server.all() == before


async def test_a_collection_is_looked_at_again_before_it_is_written() -> None:
    server, ground = scene(transactions=True)
    plan = await ground.plan(operation("deleteMany", "o", filter={}))
    await ground.runtime.prepare(plan, ground.context("a-1"))
    before = server.all()
    server.special["o"] = Collection(name="o", refusal="it is capped")
    with pytest.raises(Unsupported, match="capped"):
        await ground.runtime.execute(plan, ground.context("a-1"))
    assert server.all() == before


@pytest.mark.parametrize("transactions", [True, False])
async def test_an_id_of_thousands_of_digits(transactions: bool) -> None:
    server, ground = scene(1, transactions=transactions)
    before = server.all()
    text = '{"insertOne": "o", "document": {"_id": {"$numberDecimal": "1E5000"}, "n": 5}}'
    assert (await ground.do(text)).ok and len(server.all()) == 2
    assert (await ground.revert("undo")).ok and server.all() == before
