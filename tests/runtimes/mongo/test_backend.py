"""One contract for the stand-in, a server over the wire, and a real replica set where GOEX_TEST_MONGODB_URI names one.

The server over the wire knows few of BSON's types and isolates nothing, so that part is asked of the others alone.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from bson.timestamp import Timestamp

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.mongo.backend import Backend, Duplicate, Facts, Transient
from runtimes.mongo.extjson import decode, encode
from runtimes.mongo.guards import Guards, whole_guard
from runtimes.mongo.operations import parse
from runtimes.sql.contract import Limits
from tests.runtimes.mongo.fake import Server
from tests.runtimes.mongo.test_actions import ODD
from tests.services.nx import Nx, find_binary
from vault.secret import Secret

REAL = os.environ.get("GOEX_TEST_MONGODB_URI", "")


@pytest.fixture(scope="module")
def nx() -> Iterator[Nx]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        yield server


@pytest.fixture(params=["stand-in", "wire", "replica set"])
def opened(request: pytest.FixtureRequest) -> Iterator[Callable[[], Backend]]:
    """Opens connections to one database; all are closed at the end."""
    made: list[Backend] = []
    if request.param == "stand-in":
        server = Server()
        yield server.backend
        return
    if request.param == "replica set":
        if not REAL:
            pytest.skip("GOEX_TEST_MONGODB_URI names no replica set")
        yield from real(made)
        return
    from runtimes.mongo.connection import connect

    account = request.getfixturevalue("nx").account()

    def open() -> Backend:
        made.append(connect(account, Secret(""), Limits()))
        return made[-1]

    yield open
    for backend in made:
        backend.close()


def real(made: list[Backend]) -> Iterator[Callable[[], Backend]]:
    """A database of its own on the server that the environment names, dropped at the end."""
    from pymongo import MongoClient

    from policies.databases import Address
    from runtimes.mongo.connection import look
    from runtimes.mongo.wire import WireBackend

    name = f"test_{secrets.token_hex(4)}"

    def open() -> Backend:
        client: MongoClient[Any] = MongoClient(REAL, serverSelectionTimeoutMS=5000)
        try:
            facts = look(client, Address(engine="mongodb", database=name))
        except Unsupported:  # a user that may do everything makes the tests' databases
            facts = Facts(transactions=True, version=client.server_info()["version"])
        made.append(WireBackend(client, name, facts, Limits()))
        return made[-1]

    yield open
    for backend in made:
        backend.close()
    client: MongoClient[Any] = MongoClient(REAL)
    client.drop_database(name)
    client.close()


@pytest.fixture
def backend(opened: Callable[[], Backend]) -> Backend:
    return opened()


@pytest.fixture
def name() -> str:
    return f"t{secrets.token_hex(4)}"


def ids(found: Iterator[bytes]) -> list[Any]:
    return [decode(raw)["_id"] for raw in found]


def filled(backend: Backend, name: str, count: int = 4) -> list[bytes]:
    documents = [
        encode({"_id": number, "n": count - number, "z": {"b": 1, "a": 2}, "s": "x"}) for number in range(count)
    ]
    backend.plain().insert(name, documents)
    return documents


def test_bytes_come_back_as_they_were_sent(backend: Backend, name: str) -> None:
    sent = filled(backend, name)
    assert list(backend.plain().find(name, {})) == sent


def test_every_type_comes_back(request: pytest.FixtureRequest, backend: Backend, name: str) -> None:
    if "wire" in request.node.name:
        pytest.skip("nx-27017 knows few of BSON's types")
    backend.plain().insert(name, [encode(ODD)])
    assert list(backend.plain().find(name, {})) == [encode(ODD)]


def test_finding_sorting_counting(backend: Backend, name: str) -> None:
    filled(backend, name)
    unit = backend.plain()
    assert ids(unit.find(name, {"_id": {"$in": [1, 3]}})) == [1, 3]
    assert ids(unit.find(name, {"n": {"$gte": 2}}, sort={"n": 1}, limit=2)) == [2, 1]
    assert unit.count(name, {}, 100) == 4 and unit.count(name, {}, 2) == 2
    [count] = unit.read(parse([f'{{"count": "{name}", "filter": {{"n": 1}}}}']).operations[0], 1)  # type: ignore[arg-type]
    assert decode(count) == {"count": 1}
    [values] = unit.read(parse([f'{{"distinct": "{name}", "key": "s"}}']).operations[0], 1)  # type: ignore[arg-type]
    assert decode(values) == {"values": ["x"]}


def test_an_id_that_is_taken(backend: Backend, name: str) -> None:
    filled(backend, name)
    with pytest.raises(Duplicate):
        backend.plain().insert(name, [encode({"_id": 2})])
    assert backend.plain().count(name, {}, 100) == 4


def test_changing(backend: Backend, name: str) -> None:
    filled(backend, name)
    unit = backend.plain()
    unit.update(name, {"_id": {"$in": [0, 1]}}, {"$set": {"s": "y"}})
    assert ids(unit.find(name, {"s": "y"})) == [0, 1]
    made = unit.change(name, {"_id": 9, "s": "new"}, {"$set": {"n": 5}}, upsert=True)
    assert made is not None and decode(made) == {"_id": 9, "s": "new", "n": 5}
    assert list(unit.find(name, {"_id": {"$eq": 9}})) == [made]
    after = unit.change(name, {"_id": {"$eq": 2}}, {"$inc": {"n": 10}})
    assert after is not None and decode(after)["n"] == 12
    assert unit.change(name, {"_id": {"$eq": 99}}, {"$inc": {"n": 10}}) is None
    document = encode({"_id": 3, "b": 1, "a": {"y": 1, "x": 2}})
    assert unit.change(name, {"_id": {"$eq": 3}}, document) == document
    assert list(unit.find(name, {"_id": {"$eq": 3}})) == [document]
    assert unit.change(name, {"_id": {"$eq": 99}}, document) is None


def test_an_upsert_that_may_only_insert(backend: Backend, name: str) -> None:
    unit = backend.plain()
    never = {"_id": 7, "k": {"$eq": 1}, "$nor": [{"_id": {"$exists": True}}]}
    made = unit.change(name, never, {"$set": {"n": 1}}, upsert=True)
    assert made is not None and decode(made) == {"_id": 7, "k": 1, "n": 1}
    with suppress(Duplicate):  # or nothing: the server over the wire says it so
        assert unit.change(name, never, {"$set": {"n": 2}}, upsert=True) is None
    assert list(unit.find(name, {})) == [made]


def test_what_breaks_a_rule_is_found(backend: Backend, name: str) -> None:
    filled(backend, name)
    broken = {"_id": {"$in": [0, 1, 2]}, "$nor": [{"n": {"$gte": 3}}]}
    assert ids(backend.plain().find(name, broken)) == [2]


def test_an_empty_timestamp_is_filled_in(request: pytest.FixtureRequest, backend: Backend, name: str) -> None:
    if "wire" in request.node.name:
        pytest.skip("nx-27017 knows few of BSON's types")
    unit, empty = backend.plain(), Timestamp(0, 0)
    unit.insert(name, [encode({"_id": 1, "t": empty, "in": {"t": empty}})])
    assert unit.replace(name, {"_id": {"$eq": 1}}, encode({"_id": 1, "u": empty})) == 1
    [replaced] = unit.find(name, {})
    assert decode(replaced)["u"] != empty
    unit.update(name, {"_id": {"$eq": 1}}, {"$set": {"v": empty}})
    [changed] = unit.find(name, {})
    assert decode(changed)["v"] == empty


def test_a_statement_is_no_larger_than_a_document(backend: Backend, name: str) -> None:
    large, larger = encode({"_id": 1, "b": "x" * 6_900_000}), encode({"_id": 1, "b": "x" * 13_800_000})
    unit = backend.plain()
    unit.insert(name, [larger])
    with pytest.raises(InvalidInput):
        unit.replace(name, whole_guard(larger), large)
    assert list(unit.find(name, {})) == [larger]


def test_what_is_interrupted_begins_nothing_but_what_must_end(backend: Backend, name: str) -> None:
    filled(backend, name)
    unit = backend.plain()
    backend.interrupt()
    with pytest.raises(Conflict, match="cancelled"):
        unit.delete(name, {"_id": {"$eq": 1}})
    assert backend.plain(through=True).delete(name, {"_id": {"$eq": 1}}) == 1


def test_replacing_and_deleting(backend: Backend, name: str) -> None:
    filled(backend, name)
    unit = backend.plain()
    document = encode({"_id": 1, "b": 1, "a": {"y": 1, "x": 2}})
    assert unit.replace(name, {"_id": {"$eq": 1}}, document) == 1
    assert list(unit.find(name, {"_id": {"$eq": 1}})) == [document]
    assert unit.replace(name, {"_id": {"$eq": 77}}, encode({"_id": 77})) == 0
    assert unit.delete(name, {"_id": {"$in": [0, 1, 77]}}) == 2
    assert ids(unit.find(name, {})) == [2, 3]


def test_a_guard_finds_the_document_only_while_it_is_unchanged(backend: Backend, name: str) -> None:
    documents = filled(backend, name)
    guards = Guards(backend.plain())
    assert backend.plain().delete(name, guards.of(name, documents[0])) == 1
    backend.plain().update(name, {"_id": {"$eq": 1}}, {"$set": {"s": "changed"}})
    assert backend.plain().delete(name, guards.of(name, documents[1])) == 0
    assert backend.plain().replace(name, guards.of(name, documents[1]), documents[2]) == 0
    assert guards.whole is not None


def test_what_is_there_is_listed(backend: Backend, name: str) -> None:
    filled(backend, name)
    assert backend.collections([name])[name].refusal == ""
    backend.make(f"{name}_more")
    backend.make(f"{name}_more")
    assert f"{name}_more" in backend.collections()


def test_a_transaction_is_seen_when_it_is_committed(opened: Callable[[], Backend], name: str) -> None:
    one, other = opened(), opened()
    if not one.facts.transactions:
        pytest.skip("this server has no transactions")
    filled(one, name)
    unit = one.begin()
    unit.update(name, {"_id": {"$eq": 1}}, {"$set": {"s": "held"}})
    unit.delete(name, {"_id": {"$eq": 2}})
    assert other.plain().count(name, {"s": "held"}, 5) == 0
    other.plain().update(name, {"_id": {"$eq": 3}}, {"$set": {"s": "other"}})
    assert ids(unit.find(name, {})) == [0, 1, 3] and unit.count(name, {"s": "other"}, 5) == 0
    unit.commit()
    unit.commit()
    unit.abort()
    assert ids(other.plain().find(name, {})) == [0, 1, 3]


def test_a_transaction_that_is_aborted_leaves_nothing(opened: Callable[[], Backend], name: str) -> None:
    one = opened()
    if not one.facts.transactions:
        pytest.skip("this server has no transactions")
    sent = filled(one, name)
    unit = one.begin()
    unit.insert(name, [encode({"_id": 50})])
    unit.update(name, {}, {"$set": {"s": "held"}})
    unit.abort()
    unit.abort()
    assert list(one.plain().find(name, {})) == sent


def test_a_transaction_that_is_ended_from_elsewhere(opened: Callable[[], Backend], name: str) -> None:
    one, other = opened(), opened()
    if not one.facts.transactions:
        pytest.skip("this server has no transactions")
    sent = filled(one, name)
    unit = one.begin()
    unit.update(name, {"_id": {"$eq": 1}}, {"$set": {"s": "held"}})
    other.end(unit.session)
    other.plain().change(name, {"_id": {"$eq": 9}, "s": "x"}, {"$set": {"n": 0}}, upsert=True)
    assert other.plain().delete(name, {"_id": {"$eq": 9}}) == 1
    with pytest.raises(Transient):
        unit.commit()
    unit.abort()
    assert list(other.plain().find(name, {})) == sent


def test_two_transactions_on_one_document(opened: Callable[[], Backend], name: str) -> None:
    one, other = opened(), opened()
    if not one.facts.transactions:
        pytest.skip("this server has no transactions")
    filled(one, name)
    first, second = one.begin(), other.begin()
    assert first.count(name, {}, 9) == second.count(name, {}, 9) == 4
    first.update(name, {"_id": {"$eq": 1}}, {"$set": {"s": "first"}})
    with pytest.raises(Transient):
        second.update(name, {"_id": {"$eq": 1}}, {"$set": {"s": "second"}})
        second.commit()
    second.abort()
    first.commit()
    [found] = one.plain().find(name, {"_id": {"$eq": 1}})
    assert decode(found)["s"] == "first"
