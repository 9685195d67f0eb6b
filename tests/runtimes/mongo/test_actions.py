"""Actions on MongoDB from the plan to undo and redo: in transactions, one by one, and over the wire."""

from __future__ import annotations

import pytest

from policies.actions import Mongo, Revert, UndoClass
from policies.errors import Conflict, InvalidInput, Unsupported
from policies.services import Risk
from policies.typed_json import to_json
from runtimes.mongo.backend import Collection
from runtimes.mongo.extjson import decode, exact
from runtimes.sql.reads_through import ANY
from tests.runtimes.mongo.fake import Server
from tests.runtimes.mongo.support import Ground, ejson, operation

ODD = ejson(
    '{"_id": {"$numberLong": "5"}, "z": {"b": 1, "a": {"$numberLong": "1"}}, "a": {"$numberDecimal": "1.50"},'
    ' "nan": {"$numberDouble": "NaN"}, "when": {"$date": {"$numberLong": "-62135596800001"}},'
    ' "re": {"$regularExpression": {"pattern": "a/b", "options": "im"}}, "n": null,'
    ' "bin": {"$binary": {"base64": "AAEC", "subType": "80"}}, "ts": {"$timestamp": {"t": 1, "i": 2}},'
    ' "min": {"$minKey": 1}, "list": [1, 1.0, {"$numberLong": "1"}, []], "open": true}'
)


@pytest.fixture(params=["transactions", "one by one", "one by one, fields alone"])
def server(request: pytest.FixtureRequest) -> Server:
    return Server(transactions=request.param == "transactions", can_compare="fields" not in request.param)


@pytest.fixture
def ground(server: Server) -> Ground:
    return Ground(connect=server.backend)


def orders(server: Server, count: int = 5) -> None:
    server.put("orders", *({"_id": number, "n": number, "open": True} for number in range(count)))


CHANGES = {
    "insert": [operation("insertMany", "orders", documents=[{"b": 1, "a": 2}, {"_id": "own", "x": None}])],
    "insert into a new collection": [operation("insertOne", "fresh", document={"x": 1})],
    "update many": [operation("updateMany", "orders", filter={"n": {"$gte": 2}}, update={"$set": {"open": False}})],
    "update one": [operation("updateOne", "orders", filter={}, update={"$inc": {"n": 1}}, sort={"n": -1})],
    "update all": [operation("updateMany", "orders", filter={}, update={"$unset": {"open": ""}})],
    "update by a pipeline": [operation("updateMany", "orders", filter={}, update=[{"$set": {"r": {"$rand": {}}}}])],
    "current date": [operation("updateMany", "orders", filter={}, update={"$currentDate": {"at": True}})],
    "replace": [operation("replaceOne", "orders", filter={"_id": 2}, replacement={"z": 1, "a": {"y": 1, "b": 2}})],
    "delete one": [operation("deleteOne", "orders", filter={"open": True}, sort={"n": -1})],
    "delete all": [operation("deleteMany", "orders", filter={})],
    "upsert that inserts": [operation("updateOne", "orders", filter={"n": 99}, update={"$set": {"x": 1}}, upsert=True)],
    "upsert with its own id": [
        operation("updateOne", "orders", filter={"_id": 77}, update={"$set": {"x": 1}}, upsert=True)
    ],
    "upsert whose filter bounds the id": [
        operation("updateOne", "orders", filter={"_id": {"$gt": 100}}, update={"$set": {"x": 1}}, upsert=True)
    ],
    "upsert by a pipeline": [
        operation("updateOne", "orders", filter={"n": 97}, update=[{"$set": {"x": 1}}], upsert=True)
    ],
    "upsert that names its id": [
        operation("updateOne", "orders", filter={"n": 96}, update={"$setOnInsert": {"_id": "mine"}}, upsert=True)
    ],
    "upsert that replaces": [operation("replaceOne", "orders", filter={"n": 98}, replacement={"n": 98}, upsert=True)],
    "upsert that updates": [operation("updateMany", "orders", filter={"n": 1}, update={"$set": {"x": 1}}, upsert=True)],
    "bulk": [
        operation(
            "bulkWrite",
            "orders",
            operations=[
                {"insertOne": {"document": {"_id": 50, "n": 50}}},
                {"updateOne": {"filter": {"_id": 50}, "update": {"$inc": {"n": 1}}}},
                {"deleteOne": {"filter": {"_id": 50}}},
                {"deleteOne": {"filter": {"_id": 1}}},
                {"insertOne": {"document": {"_id": 1, "again": True}}},
            ],
        )
    ],
    "several": [
        operation("updateMany", "orders", filter={"n": {"$lt": 3}}, update={"$set": {"n": 10}}),
        operation("deleteMany", "orders", filter={"n": 10}),
        operation("insertOne", "other", document={"_id": 1}),
    ],
    "found and changed": [
        operation("findOneAndUpdate", "orders", filter={"n": 2}, update={"$inc": {"n": 5}}),
        operation("findOneAndReplace", "orders", filter={"n": 3}, replacement={"z": 1}, returnDocument="after"),
        operation("findOneAndDelete", "orders", filter={}, sort={"n": -1}),
    ],
    "commands": [
        operation("insert", "orders", documents=[{"_id": 50}, {}]),
        operation(
            "update",
            "orders",
            updates=[{"q": {"n": 1}, "u": {"a": 2}}, {"q": {}, "u": {"$set": {"x": 1}}, "multi": True}],
        ),
        operation("delete", "orders", deletes=[{"q": {"n": 2}, "limit": 1}]),
    ],
    "its own id set again": [
        operation("updateOne", "orders", filter={"_id": 1}, update={"$set": {"_id": 1, "x": 1}}),
        operation("updateOne", "orders", filter={"_id": "new"}, update={"$set": {"_id": "new", "x": 1}}, upsert=True),
    ],
    "references": [
        operation("updateMany", "orders", filter={}, update={"$set": {"by": {"$ref": "people", "$id": 5, "$db": "x"}}}),
        operation("deleteOne", "orders", filter={"_id": 1}),
    ],
    "nothing found": [operation("deleteMany", "orders", filter={"n": 1000})],
}


@pytest.mark.parametrize("name", CHANGES)
async def test_undo_restores_every_byte_and_redo_too(server: Server, ground: Ground, name: str) -> None:
    orders(server)
    server.put("orders", ODD)
    before = server.all()
    done = await ground.do(*CHANGES[name])
    assert done.ok
    if server.can_compare:
        assert not any("can't compare" in line for line in done.changes)
    after = server.all()
    assert (after != before) is (name != "nothing found")
    assert (await ground.revert("undo")).ok
    assert server.all() == before
    assert (await ground.revert("redo")).ok
    assert server.all() == after
    assert (await ground.revert("undo")).ok
    assert server.all() == before


async def test_an_id_of_another_type_than_the_filter_s_stays_as_it_is(server: Server, ground: Ground) -> None:
    """1 finds 1.0, and a server takes the one for the other."""
    server.put("orders", ejson('{"_id": 1.0, "n": 1}'))
    before = server.all()
    same = {"filter": {"_id": 1}, "update": {"$set": {"_id": 1, "n": 2}}}
    done = await ground.do(
        operation("updateOne", "orders", **same),
        operation("findOneAndUpdate", "orders", returnDocument="after", **same),
    )
    assert [exact(decode(one)) for one in server.all().values()] == [exact({"_id": 1.0, "n": 2})]
    assert done.results[0]["documents"] == [{"_id": 1.0, "n": 2}]
    assert (await ground.revert("undo")).ok and server.all() == before


async def test_what_is_found_and_changed_is_given_back(server: Server, ground: Ground) -> None:
    orders(server, 3)
    change = {"update": {"$inc": {"n": 10}}}
    done = await ground.do(
        operation("findOneAndUpdate", "orders", filter={"_id": 1}, **change),
        operation(
            "findOneAndUpdate", "orders", filter={"n": {"$lt": 10}}, sort={"n": -1}, returnDocument="after", **change
        ),
        operation("findOneAndUpdate", "orders", filter={"_id": 7}, upsert=True, returnNewDocument=True, **change),
        operation("findAndModify", "orders", query={"_id": 8}, upsert=True, **change),
        operation("findOneAndReplace", "orders", filter={"_id": 0}, replacement={"z": 1}, returnDocument="after"),
        operation("findOneAndDelete", "orders", filter={"_id": 0}),
        operation("findOneAndDelete", "orders", filter={"_id": 99}),
    )
    assert [one["documents"] for one in done.results] == [
        [{"_id": 1, "n": 1, "open": True}],
        [{"_id": 2, "n": 12, "open": True}],
        [{"_id": 7, "n": 10}],
        [],
        [{"_id": 0, "z": 1}],
        [{"_id": 0, "z": 1}],
        [],
    ]


async def test_what_gives_a_document_back_needs_that_it_may_be_read(server: Server, ground: Ground) -> None:
    """And what is read is no deletion because its filter is empty."""
    orders(server)
    plan = await ground.plan(operation("findOneAndUpdate", "orders", filter={}, update={"$set": {"x": 1}}))
    assert {need.scope: need.risk for need in plan.needs} == {"orders:update": Risk.DELETE, "orders:find": Risk.READ}
    assert "\n".join(plan.lines).count("THE FILTER IS EMPTY") == 1
    plan = await ground.plan(operation("updateOne", "orders", filter={}, update={"$set": {"x": 1}}))
    assert {need.scope for need in plan.needs} == {"orders:update"}


async def test_all_types_survive_replacing_and_deleting(server: Server, ground: Ground) -> None:
    server.put("orders", ODD)
    before = server.all()
    await ground.do(
        operation("updateMany", "orders", filter={"open": True}, update={"$rename": {"z": "y"}, "$push": {"list": 2}}),
        operation("deleteMany", "orders", filter={"open": True}),
    )
    assert not server.all()
    await ground.revert("undo")
    assert server.all() == before
    [raw] = before.values()
    assert list(decode(raw)) == list(ODD)


async def test_a_server_that_can_not_compare_is_said_to_be_one() -> None:
    server = Server(transactions=False, can_compare=False)
    ground = Ground(connect=server.backend)
    orders(server)
    done = await ground.do(operation("deleteOne", "orders", filter={"_id": 1}))
    assert done.changes[0] == "orders: 1 document deleted" and "can't compare whole documents" in done.changes[1]


async def test_the_order_of_keys_in_what_is_inserted_is_kept(server: Server, ground: Ground) -> None:
    await ground.do('{"insertOne": "orders", "document": {"z": 1, "a": {"y": 1, "b": {"$numberLong": "2"}}}}')
    [raw] = server.all().values()
    made = decode(raw)
    assert list(made) == ["_id", "z", "a"] and list(made["a"]) == ["y", "b"]
    assert '"$numberLong": "2"' in exact(made)


@pytest.mark.promise(75)
@pytest.mark.parametrize("how", ["changed", "removed", "order of keys", "type of a number", "key taken"])
async def test_what_somebody_else_changed_since_is_refused_and_nothing_is_touched(
    server: Server, ground: Ground, how: str
) -> None:
    orders(server)
    server.put("orders", {"_id": 9, "a": 1, "b": 2})
    await ground.do(
        operation("updateMany", "orders", filter={}, update={"$set": {"x": 1}}),
        operation("deleteOne", "orders", filter={"_id": 3}),
    )
    match how:
        case "changed":
            server.put("orders", {"_id": 2, "n": 2, "open": "secret value", "x": 1})
        case "removed":
            server.remove("orders", 2)
        case "order of keys":
            server.put("orders", {"_id": 9, "b": 2, "a": 1, "x": 1})
        case "type of a number":
            server.put("orders", {"_id": 9, "a": 1.0, "b": 2, "x": 1})
        case "key taken":
            server.put("orders", {"_id": 3, "n": "secret value"})
    there = server.all()
    with pytest.raises(Conflict) as refused:
        await ground.revert("undo")
    assert refused.value.difference and "secret value" not in str(refused.value.difference)
    assert "orders _id" in refused.value.difference[0]
    with pytest.raises(Conflict):
        await ground.rerun("undo")
    assert server.all() == there


async def test_a_change_elsewhere_is_nobodys_matter(server: Server, ground: Ground) -> None:
    orders(server)
    await ground.do(operation("updateOne", "orders", filter={"_id": 1}, update={"$set": {"x": 1}}))
    server.put("orders", {"_id": 2, "n": "mine"})
    await ground.revert("undo")
    assert "x" not in decode(server.documents["orders", b"number 1"])
    assert decode(server.documents["orders", b"number 2"])["n"] == "mine"


async def test_redo_refuses_what_was_changed_after_the_undo(server: Server, ground: Ground) -> None:
    orders(server)
    await ground.do(operation("deleteMany", "orders", filter={"n": {"$gt": 2}}))
    await ground.revert("undo")
    server.put("orders", {"_id": 4, "n": "other"})
    there = server.all()
    with pytest.raises(Conflict):
        await ground.revert("redo")
    assert server.all() == there


async def test_more_documents_than_planned_are_refused(server: Server, ground: Ground) -> None:
    orders(server, 2)
    plan = ground.plans["a-1"] = await ground.plan(
        operation("updateMany", "orders", filter={}, update={"$set": {"x": 1}})
    )
    assert plan.bounds["rows"] == 2
    server.put("orders", {"_id": 7})
    there = server.all()
    await ground.runtime.prepare(plan, ground.context("a-1"))
    with pytest.raises(Conflict, match=r"more documents than were planned with \(2\)"):
        await ground.runtime.execute(plan, ground.context("a-1"))
    assert server.all() == there


async def test_unique_keys_that_changed_places_are_undone(server: Server, ground: Ground) -> None:
    server.unique["orders"] = ["n"]
    orders(server, 4)
    before = server.all()
    await ground.do(
        operation("updateOne", "orders", filter={"_id": 0}, update={"$set": {"n": 100}}),
        operation("updateOne", "orders", filter={"_id": 1}, update={"$set": {"n": 0}}),
        operation("updateOne", "orders", filter={"_id": 2}, update={"$set": {"n": 1}}),
        operation("updateOne", "orders", filter={"_id": 0}, update={"$set": {"n": 2}}),
        operation("deleteOne", "orders", filter={"_id": 3}),
        operation("insertOne", "orders", document={"_id": 30, "n": 3}),
    )
    after = server.all()
    await ground.revert("undo")
    assert server.all() == before
    await ground.revert("redo")
    assert server.all() == after


async def test_a_unique_key_that_somebody_took_is_a_conflict_and_nothing_is_touched(
    server: Server, ground: Ground
) -> None:
    server.unique["orders"] = ["n"]
    orders(server, 4)
    await ground.do(
        operation("updateOne", "orders", filter={"_id": 0}, update={"$set": {"n": 50}}),
        operation("deleteOne", "orders", filter={"_id": 3}),
    )
    server.put("orders", {"_id": "new", "n": 3})
    there = server.all()
    with pytest.raises(Conflict):
        await ground.revert("undo")
    assert server.all() == there
    server.remove("orders", "new")
    await ground.revert("undo")
    assert decode(server.documents["orders", b"number 3"])["n"] == 3


@pytest.mark.parametrize("late", [False, True])
async def test_a_failure_in_the_middle_leaves_nothing(server: Server, ground: Ground, late: bool) -> None:
    server.unique["orders"] = ["n"]
    orders(server)
    before = server.all()
    first = operation("updateMany", "orders", filter={"n": {"$gte": 3}}, update={"$inc": {"n": 10}})
    fails = operation("updateOne", "orders", filter={"_id": 2}, update={"$set": {"n": 1}})
    with pytest.raises(Conflict, match="unique index"):
        await ground.do(*([first, fails] if late else [fails, first]))
    assert server.all() == before
    with pytest.raises(Unsupported, match="changed nothing"):
        await ground.revert("undo")


async def test_changing_an_id_fails_and_leaves_nothing(server: Server, ground: Ground) -> None:
    orders(server)
    before = server.all()
    with pytest.raises(InvalidInput, match="_id"):
        await ground.do(operation("updateMany", "orders", filter={}, update=[{"$set": {"_id": 1}}]))
    assert server.all() == before


async def test_undo_twice_and_redo_of_what_is_done_are_said_to_be_pointless(server: Server, ground: Ground) -> None:
    orders(server)
    await ground.do(operation("deleteOne", "orders", filter={"_id": 1}))
    with pytest.raises(Unsupported, match="isn't undone"):
        await ground.revert("redo")
    await ground.revert("undo")
    there = server.all()
    with pytest.raises(Unsupported, match="undone already"):
        await ground.revert("undo")
    assert (await ground.rerun("undo")).ok
    assert server.all() == there


async def test_a_commit_drops_what_undo_needs(server: Server, ground: Ground) -> None:
    orders(server)
    await ground.do(operation("deleteOne", "orders", filter={"_id": 1}))
    assert (await ground.revert("commit")).ok
    assert not [key for key in server.documents if key[0].startswith("goex_")]
    with pytest.raises(Unsupported, match="committed"):
        await ground.revert("undo")


async def test_the_plan_says_what_is_needed_and_how_it_is_taken_back(server: Server, ground: Ground) -> None:
    orders(server, 3)
    plan = await ground.plan(
        operation("find", "people", filter={"a": 1}),
        operation("updateMany", "orders", filter={"$and": [{}]}, update={"$set": {"x": 1}}),
        operation("updateOne", "things", filter={"_id": 1}, update={"$set": {"x": 1}}, upsert=True),
        operation("deleteOne", "things", filter={"_id": 2}),
    )
    assert {need.scope: need.risk for need in plan.needs} == {
        "people:find": Risk.READ,
        "orders:update": Risk.DELETE,
        "things:update": Risk.WRITE,
        "things:insert": Risk.WRITE,
        "things:delete": Risk.DELETE,
    }
    assert all(need.service == "db" and need.account == "shop" for need in plan.needs)
    assert plan.bounds == {"rows": 10}  # 3 + 1 + 1 + 1, in steps
    assert plan.resolved["tables"] == ["orders", "people", "things"]
    text = "\n".join(plan.lines)
    assert "THE FILTER IS EMPTY: it is for every document of orders." in text
    assert "no collection things yet" in text
    if server.transactions:
        assert plan.undo_class is UndoClass.EXACT and "one transaction" in plan.undo_text
    else:
        assert plan.undo_class is UndoClass.COMPENSATING and "NO TRANSACTIONS" in text
        assert "not all at once" in plan.undo_text


async def test_no_collection_s_name_makes_a_line_of_an_undo_s_plan(ground: Ground) -> None:
    name = "orders: put back\nAt most 0 documents of \u202epeople"
    await ground.do(operation("insertOne", name, document={"_id": 1}))
    undo = Revert(verb="undo", target="a-1")
    plan = await ground.runtime.assess_revert(undo, ground.plans["a-1"], ground.context("a-1", leased=False))
    assert not any("\n" in line or "\u202e" in line for line in plan.lines)


async def test_the_plan_says_that_documents_expire_by_themselves(server: Server, ground: Ground) -> None:
    server.special["sessions"] = Collection(name="sessions", expires=True)
    plan = await ground.plan(operation("deleteOne", "sessions", filter={"_id": 1}))
    assert any("deletes documents of sessions by itself" in line for line in plan.lines)


async def test_what_only_reads_has_nothing_to_take_back(server: Server, ground: Ground) -> None:
    orders(server)
    done = await ground.do(
        operation("find", "orders", filter={"n": {"$lt": 2}}, sort={"n": -1}),
        operation("count", "orders", filter={}),
        operation("distinct", "orders", key="open"),
    )
    found, count, distinct = done.results
    assert [one["_id"] for one in found["documents"]] == [1, 0]
    assert count == {"count": 5} and distinct == {"values": [True], "more": False}
    assert not done.touched and ground.plans["a-1"].undo_class is UndoClass.NOTHING
    with pytest.raises(Unsupported, match="only read"):
        await ground.revert("undo")


async def test_answers_are_bounded(server: Server) -> None:
    from runtimes.sql.contract import Limits

    ground = Ground(connect=server.backend, limits=Limits(result_rows=3, result_bytes=100))
    server.put("orders", *({"_id": number} for number in range(5)), {"_id": 9, "big": "x" * 200})
    done = await ground.do(
        operation("find", "orders", filter={"_id": {"$lt": 5}}), operation("find", "orders", filter={"_id": 9})
    )
    assert [len(one["documents"]) for one in done.results] == [3, 0]
    assert all(one["more"] for one in done.results)


async def test_a_document_that_is_deeper_than_an_answer_may_be_is_given_back_as_text(
    server: Server, ground: Ground
) -> None:
    from policies.jsonvalue import canonical

    deep: dict[str, object] = {}
    for _ in range(90):
        deep = {"a": deep}
    server.put("orders", {"_id": 1, "deep": deep})
    done = await ground.do(operation("find", "orders", filter={}))
    [found] = done.results[0]["documents"]
    assert isinstance(found, str) and found.startswith('{"_id": 1, "deep": {"a"')
    assert canonical(to_json(done))
    await ground.do(operation("deleteMany", "orders", filter={}), id="a-2")
    await ground.revert("undo", id="a-2")
    assert list(server.all()) == [("orders", b"number 1")]


@pytest.mark.parametrize("kind", ["view", "capped"])
async def test_collections_that_could_not_be_taken_back_are_refused(server: Server, ground: Ground, kind: str) -> None:
    server.special["odd"] = Collection(name="odd", refusal=f"it is {kind}")
    with pytest.raises(Unsupported, match=f"it is {kind}"):
        await ground.plan(operation("deleteMany", "odd", filter={"a": 1}))
    await ground.plan(operation("find", "odd"))


async def test_a_view_is_read_with_what_it_stands_on(server: Server, ground: Ground) -> None:
    orders(server)
    for name, under in (("people", {"customers"}), ("outer", {"people", "orders"}), ("blind", {ANY})):
        server.special[name] = Collection(name=name, kind="view", refusal="it is a view", stands_on=frozenset(under))
    for text, tables in (
        (operation("find", "orders"), ["orders"]),
        (operation("find", "people"), ["customers", "people"]),
        (
            operation("aggregate", "orders", pipeline=[{"$unionWith": "outer"}]),
            ["customers", "orders", "outer", "people"],
        ),
    ):
        plan = await ground.plan(text)
        assert plan.resolved["tables"] == tables
        assert sorted(need.scope for need in plan.needs) == [f"{name}:find" for name in tables]
    assert "It reads customers (through outer)." in plan.lines
    assert {ANY, "orders"} <= set((await ground.plan(operation("count", "blind"))).resolved["tables"])


async def test_a_dry_run_leaves_nothing(server: Server, ground: Ground) -> None:
    orders(server)
    before = dict(server.documents)
    plan = await ground.plan(operation("updateMany", "orders", filter={"n": 1}, update={"$set": {"x": "later"}}))
    dry = await ground.runtime.dry_run(plan, ground.context("d-1", leased=False))
    assert dry.ok and server.documents == before and not ground.records["d-1"].notes
    text = "\n".join(line.text for line in dry.lines)
    assert '"n": 1' in text
    assert ("later" in text) is server.transactions


async def test_a_dry_undo_shows_the_documents_and_only_reads(server: Server, ground: Ground) -> None:
    orders(server)
    await ground.do(operation("deleteOne", "orders", filter={"_id": 2}))
    there = dict(server.documents)
    revert = Revert(verb="undo", target="a-1")
    plan = await ground.runtime.assess_revert(revert, ground.plans["a-1"], ground.context("a-1"))
    assert [(need.scope, need.risk) for need in plan.needs] == [("orders:insert", Risk.WRITE)]
    dry = await ground.runtime.dry_revert(revert, plan, ground.plans["a-1"], ground.context("a-1"))
    assert server.documents == there
    assert any(line.kind == "added" and '"n": 2' in line.text for line in dry.lines)


async def test_footprints_tell_documents_apart(server: Server, ground: Ground) -> None:
    orders(server)
    one = operation("updateOne", "orders", filter={"_id": 1}, update={"$set": {"x": 1}})
    await ground.do(one)
    found = await ground.runtime.footprint(ground.plans["a-1"], ground.context("a-1"))
    assert found.reads == found.writes == {"db/shop/orders/_id=%7B%22%24numberInt%22%3A%20%221%22%7D"}
    await ground.do(operation("deleteMany", "orders", filter={"n": 2}), id="a-2")
    found = await ground.runtime.footprint(ground.plans["a-2"], ground.context("a-2"))
    assert found.reads == {"db/shop/orders"} and len(found.writes) == 1


async def test_another_place_under_the_same_name_is_refused(server: Server, ground: Ground) -> None:
    from dataclasses import replace

    from policies.databases import Address

    orders(server)
    await ground.do(operation("deleteOne", "orders", filter={"_id": 2}))
    ground.account = replace(ground.account, base_url=Address.parse("mongodb://127.0.0.1:27018/shop")[0].url)
    with pytest.raises(Conflict, match="another place"):
        await ground.revert("undo")
    with pytest.raises(Conflict, match="another place"):
        await ground.runtime.execute(ground.plans["a-1"], ground.context("a-1"))


async def test_planning_the_same_again_gives_the_same_plan(server: Server, ground: Ground) -> None:
    orders(server)
    texts = [operation("insertOne", "orders", document={"x": 1}), operation("deleteMany", "orders", filter={"n": 1})]
    assert await ground.plan(*texts) == await ground.plan(*texts)
    assert isinstance((await ground.plan(*texts)).action, Mongo)
