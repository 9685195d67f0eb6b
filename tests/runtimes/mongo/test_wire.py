"""Actions over MongoDB's wire protocol: on nx-27017, one by one and in transactions, and on a real replica set where
GOEX_TEST_MONGODB_URI names one. Also: the server killed in the middle."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import monitoring

from policies.actions import UndoClass
from policies.errors import Conflict, Unavailable
from runtimes.mongo import connection
from runtimes.mongo.backend import Backend
from runtimes.mongo.connection import connect
from runtimes.mongo.extjson import decode, encode
from runtimes.mongo.wire import WireBackend
from runtimes.sql.contract import Doubtful, Limits
from tests.runtimes.mongo.support import Ground, Kept, operation
from tests.runtimes.mongo.test_backend import REAL, real
from tests.services.nx import Nx, find_binary
from vault.secret import Secret


@pytest.fixture(scope="module")
def nx() -> Iterator[Nx]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        yield server


def forced(server: Nx, transactions: bool) -> Callable[[], Backend]:
    """Connections to it. It doesn't say that it has transactions, though it takes them."""

    def open() -> Backend:
        backend = connect(server.account(), Secret(""), Limits())
        backend._facts = dataclasses.replace(backend.facts, transactions=transactions)
        return backend

    return open


@pytest.fixture(params=["one by one", "transactions", "replica set"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "replica set":
        if not REAL:
            pytest.skip("GOEX_TEST_MONGODB_URI names no replica set")
        made: list[Backend] = []
        for open in real(made):
            yield Ground(connect=open)
        return
    server: Nx = request.getfixturevalue("nx")
    yield Ground(connect=forced(server, request.param == "transactions"), account=server.account())


@pytest.fixture
def name() -> str:
    return f"t{secrets.token_hex(4)}"


def there(ground: Ground, name: str) -> dict[Any, bytes]:
    backend = ground.connect()
    try:
        return {decode(raw)["_id"]: raw for raw in backend.plain().find(name, {})}
    finally:
        backend.close()


def fill(ground: Ground, name: str, count: int = 6) -> dict[Any, bytes]:
    backend = ground.connect()
    documents = [{"_id": number, "n": number, "z": {"b": 1, "a": [number]}, "s": "x"} for number in range(count)]
    backend.plain().insert(name, [encode(one) for one in documents])
    backend.close()
    return there(ground, name)


def program(name: str) -> list[str]:
    return [
        operation("updateMany", name, filter={"n": {"$gte": 3}}, update={"$set": {"s": "y"}, "$inc": {"n": 10}}),
        operation("replaceOne", name, filter={"_id": 0}, replacement={"b": 1, "a": 2}),
        operation("deleteMany", name, filter={"_id": {"$in": [1, 2]}}),
        operation("insertMany", name, documents=[{"_id": "new", "k": 1}, {"k": 2}]),
        operation("updateOne", name, filter={"k": 9}, update={"$set": {"made": True}}, upsert=True),
    ]


async def test_do_undo_redo(ground: Ground, name: str) -> None:
    before = fill(ground, name)
    done = await ground.do(*program(name))
    assert done.ok, done
    after = there(ground, name)
    assert decode(after[5]) == {"_id": 5, "n": 15, "z": {"b": 1, "a": [5]}, "s": "y"} and 1 not in after
    assert len(after) == 7
    transactions = ground.plans["a-1"].resolved["transactions"]
    assert ground.plans["a-1"].undo_class is (UndoClass.EXACT if transactions else UndoClass.COMPENSATING)
    await ground.revert("undo")
    assert there(ground, name) == before
    await ground.revert("redo")
    assert there(ground, name) == after
    await ground.revert("undo")
    await ground.revert("commit")
    assert there(ground, name) == before and "a-1" not in there(ground, "goex_marks")


async def test_somebody_elses_change(ground: Ground, name: str) -> None:
    fill(ground, name)
    await ground.do(*program(name))
    backend = ground.connect()
    backend.plain().update(name, {"_id": {"$eq": 4}}, {"$set": {"z": "mine"}})
    backend.close()
    now = there(ground, name)
    with pytest.raises(Conflict) as refused:
        await ground.revert("undo")
    assert refused.value.difference == (f"{name} _id 4: z",)
    assert there(ground, name) == now


async def test_reading(ground: Ground, name: str) -> None:
    fill(ground, name)
    done = await ground.do(
        operation("find", name, filter={"n": {"$lt": 2}}, projection={"n": 1}, sort={"n": -1}),
        operation("count", name, filter={}),
        operation("aggregate", name, pipeline=[{"$match": {"n": {"$gt": 3}}}, {"$count": "many"}]),
    )
    assert done.results[0]["documents"] == [{"_id": 1, "n": 1}, {"_id": 0, "n": 0}]
    assert done.results[1] == {"count": 6} and done.results[2]["documents"] == [{"many": 2}]


async def test_an_action_of_an_id_happens_once(nx: Nx, name: str) -> None:
    """The marker: a transaction whose answer was lost, tried again, finds that it was committed."""
    ground = Ground(connect=forced(nx, True), account=nx.account())
    fill(ground, name)
    text = operation("updateMany", name, filter={}, update={"$inc": {"n": 100}})
    await ground.do(text, id="a-once")
    after = there(ground, name)
    plan = ground.plans["a-once"]
    assert (await ground.runtime.execute(plan, ground.context("a-once"))).ok
    assert there(ground, name) == after


def test_what_a_transaction_says_on_the_wire(nx: Nx, name: str) -> None:
    """As the drivers' specification wants it: snapshot with its start, the write concern with the commit alone."""
    said: list[tuple[str, dict[str, Any]]] = []

    class Heard(monitoring.CommandListener):
        def started(self, event: monitoring.CommandStartedEvent) -> None:
            said.append((event.command_name, dict(event.command)))

        def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

        def failed(self, event: monitoring.CommandFailedEvent) -> None: ...

    from pymongo import MongoClient

    from runtimes.mongo.backend import Facts

    client: MongoClient[Any] = MongoClient("127.0.0.1", nx.port, event_listeners=[Heard()])
    backend = WireBackend(client, "shop", Facts(transactions=True, version="8.0"), Limits())
    backend.plain().insert(name, [encode({"_id": 0})])
    said.clear()
    unit = backend.begin()
    unit.insert(name, [encode({"_id": 1})])
    unit.count(name, {}, 9)
    list(unit.find(name, {}))
    unit.delete(name, {"_id": {"$eq": 1}})
    unit.commit()
    backend.close()
    commands = [(called, sent) for called, sent in said if called not in ("endSessions", "killCursors")]
    assert [called for called, _ in commands] == [
        "insert",
        "aggregate",
        "find",
        "delete",
        "commitTransaction",
    ]
    first = commands[0][1]
    assert first["startTransaction"] is True and first["readConcern"]["level"] == "snapshot"
    assert all(sent["autocommit"] is False and sent["txnNumber"] == first["txnNumber"] for _, sent in commands)
    assert all("writeConcern" not in sent for called, sent in commands[:4])
    assert all("readConcern" not in sent and "startTransaction" not in sent for _, sent in commands[1:])
    assert all(sent["writeConcern"]["w"] == "majority" for _, sent in commands[4:])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", ["put db.step0", "put db.step0.0", "put db.step2", "put db.docs"])
async def test_the_server_is_killed_in_the_middle(name: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SECONDS", 0.5)
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        ground = Ground(
            connect=lambda: connect(server.account(), Secret(""), Limits(seconds=60)), account=server.account()
        )
        before = fill(ground, name)

        def hook(moment: str, called: str) -> None:
            if (moment, called) == ("after", at):
                kept.hook = lambda moment, called: None
                server.kill()

        kept = ground.records["a-1"] = Kept()
        plan = ground.plans["a-1"] = await ground.plan(*program(name))
        await ground.runtime.prepare(plan, ground.context("a-1"))
        kept.hook = hook
        if at == "put db.docs":  # nothing more is asked of the server
            assert (await ground.runtime.execute(plan, ground.context("a-1"))).ok
        else:
            with pytest.raises((Doubtful, Unavailable)):
                await ground.runtime.execute(plan, ground.context("a-1"))
            assert (await ground.settle()).outcome is None
        server.start()
        found = (await ground.settle()).outcome
        assert found is not None
        if found.touched:
            await ground.revert("undo")
        assert there(ground, name) == before
