"""Random documents and operations: undo(do(x)) == x, redo(undo(do(x))) == do(x), to the byte; and with somebody else's
change in between: refused, nothing touched."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from bson.int64 import Int64
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.errors import GoexError
from runtimes.mongo.extjson import decode, encode, exact, read
from tests.runtimes.mongo.fake import Server
from tests.runtimes.mongo.support import Ground

SOME = settings(max_examples=20, suppress_health_check=list(HealthCheck))
MANY = settings(SOME, max_examples=3000)

names = st.sampled_from(["a", "b", "c", "n", "z.y", "list"])
keys = st.sampled_from(["a", "b", "c", "n", "z", "list", "é"])
ids = st.one_of(st.integers(0, 6), st.sampled_from(["x", "y"]), st.just({"$oid": "0123456789abcdef01234567"}))
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: {"$numberLong": str(number)}),
    st.sampled_from(["NaN", "Infinity", "-0.0", "1.0", "1e300"]).map(lambda text: {"$numberDouble": text}),
    st.sampled_from(["1.50", "1.5", "NaN", "-0E+3", "1E6144"]).map(lambda text: {"$numberDecimal": text}),
    st.integers(-(2**62), 2**62).map(lambda number: {"$date": {"$numberLong": str(number)}}),
    st.tuples(st.binary(max_size=4), st.sampled_from(["00", "02", "04", "80"])).map(
        lambda pair: exact_binary(pair[0], pair[1])
    ),
    st.sampled_from(["", "text", "\u0000", "ü"]),
    st.sampled_from(["", "i", "im"]).map(lambda options: {"$regularExpression": {"pattern": "a", "options": options}}),
    st.integers(1, 2**32 - 1).map(lambda number: {"$timestamp": {"t": number, "i": 1}}),
    st.sampled_from([{"$minKey": 1}, {"$maxKey": 1}]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=5,
)
documents = st.dictionaries(keys, values, max_size=4)
numbers = st.integers(-3, 3)
filters = st.one_of(
    st.just({}),
    st.builds(lambda id: {"_id": id}, ids),
    st.builds(lambda name, number: {name: {"$gte": number}}, names, numbers),
    st.builds(lambda name, value: {name: value}, names, scalars),
    st.builds(lambda name, there: {name: {"$exists": there}}, names, st.booleans()),
    st.builds(lambda one, other: {"$or": [{"a": one}, {"_id": other}]}, numbers, ids),
)
updates = st.one_of(
    st.builds(lambda name, value: {"$set": {name: value}}, names, values),
    st.builds(lambda name: {"$unset": {name: ""}}, names),
    st.builds(lambda name, number: {"$inc": {name: number}}, names, numbers),
    st.builds(lambda value: {"$push": {"list": {"$each": [value]}}}, values),
    st.just({"$rename": {"a": "renamed"}}),
    st.just({"$currentDate": {"at": True}, "$setOnInsert": {"made": 1}}),
    st.builds(lambda name: [{"$set": {"copy": f"${name}"}}, {"$unset": "b"}], names),
    st.just([{"$set": {"r": {"$rand": {}}}}]),
)
operations = st.one_of(
    st.builds(lambda d: {"insertOne": "orders", "document": d}, documents),
    st.builds(lambda i, d: {"insertOne": "orders", "document": {"_id": i, **d}}, ids, documents),
    st.builds(lambda d: {"insertMany": "other", "documents": d}, st.lists(documents, min_size=1, max_size=3)),
    st.builds(
        lambda f, u, up, many: {
            "updateMany" if many else "updateOne": "orders",
            "filter": f,
            "update": u,
            "upsert": up,
        },
        filters,
        updates,
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda f, d, up: {"replaceOne": "orders", "filter": f, "replacement": d, "upsert": up},
        filters,
        documents,
        st.booleans(),
    ),
    st.builds(lambda f: {"deleteOne": "orders", "filter": f, "sort": {"n": 1}}, filters),
    st.builds(lambda f: {"deleteMany": "orders", "filter": f}, filters),
)
stores = st.dictionaries(st.integers(0, 6), documents, max_size=5)
programs = st.lists(operations, min_size=1, max_size=4)


def exact_binary(data: bytes, kind: str) -> dict[str, Any]:
    import base64

    if kind == "04":
        data = (data + bytes(16))[:16]
    return {"$binary": {"base64": base64.b64encode(data).decode(), "subType": kind}}


def filled(transactions: bool, store: dict[int, dict[str, Any]]) -> tuple[Server, Ground]:
    server = Server(transactions=transactions)
    for id, document in store.items():
        server.put("orders", read(json.dumps({"_id": id, **document})))
    return server, Ground(connect=server.backend)


@pytest.mark.promise(75)
@pytest.mark.parametrize("transactions", [True, False])
def test_undo_and_redo_of_anything(transactions: bool, thorough: bool) -> None:
    ran: list[bool] = []
    size = MANY if thorough else SOME

    @size
    @given(store=stores, program=programs)
    def check(store: dict[int, dict[str, Any]], program: list[dict[str, Any]]) -> None:
        asyncio.run(both(store, program))

    async def both(store: dict[int, dict[str, Any]], program: list[dict[str, Any]]) -> None:
        server, ground = filled(transactions, store)
        before = server.all()
        try:
            await ground.do(*map(json.dumps, program))
        except GoexError:
            assert server.all() == before
            return
        after = server.all()
        ran.append(after != before)
        await ground.revert("undo")
        assert server.all() == before
        await ground.revert("redo")
        assert server.all() == after
        await ground.revert("undo")
        assert server.all() == before

    check()
    assert sum(ran) >= size.max_examples / 4  # else the strategies would make nothing that runs


@pytest.mark.parametrize("transactions", [True, False])
def test_somebody_elses_change_is_never_lost(transactions: bool, thorough: bool) -> None:
    refused: list[bool] = []

    @(MANY if thorough else SOME)
    @given(store=stores, program=programs, pick=st.integers(0, 100), change=values)
    def check(store: dict[int, dict[str, Any]], program: list[dict[str, Any]], pick: int, change: Any) -> None:
        asyncio.run(third(store, program, pick, change))

    async def third(store: dict[int, dict[str, Any]], program: list[dict[str, Any]], pick: int, change: Any) -> None:
        server, ground = filled(transactions, store)
        before = server.all()
        try:
            await ground.do(*map(json.dumps, program))
        except GoexError:
            return
        after = server.all()
        touched = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        if not touched:
            return
        key = touched[pick % len(touched)]
        now = after.get(key)
        if now is None:
            server.write(key, encode({**decode(before[key]), "mine": read(json.dumps({"v": change}))["v"]}))
        elif pick % 3 == 0:
            server.write(key, None)
        else:
            made = decode(now)
            server.write(key, encode({**made, "mine": read(json.dumps({"v": change}))["v"]}))
        there = server.all()
        for way in (ground.revert, ground.rerun):
            try:
                await way("undo")
            except GoexError:
                refused.append(True)
            else:
                raise AssertionError("it was undone over somebody else's change")
            assert server.all() == there

    check()
    assert refused


def test_extended_json_keeps_every_type_and_the_order(thorough: bool) -> None:
    @(MANY if thorough else SOME)
    @given(document=st.builds(lambda i, d: {"_id": i, **d}, ids, documents))
    def check(document: dict[str, Any]) -> None:
        raw = encode(read(json.dumps(document)))
        assert encode(read(exact(decode(raw)))) == raw
        assert list(decode(raw)) == list(document)

    check()


def test_numbers_that_are_equal_have_one_key_and_others_do_not() -> None:
    from bson.decimal128 import Decimal128

    from runtimes.mongo.records import id_key

    same = {id_key(encode({"_id": value})) for value in (1, 1.0, Int64(1), Decimal128("1"), Decimal128("1.00"))}
    other = {id_key(encode({"_id": value})) for value in (True, "1", 1.5, Decimal128("NaN"), float("inf"), 2, None)}
    assert len(same) == 1 and len(other) == 7 and not same & other
