"""MongoDB through the daemon, over the wire: an entry, operations, questions, undo and redo, and a daemon killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Thread
from time import sleep
from typing import Any

import grpc
import pytest
from pymongo import MongoClient

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.test_rules import apply
from tests.services.nx import Nx, find_binary
from tests.support.daemon import Daemon
from tests.support.entries import Asked, Client, changes, results
from tests.support.journey import decide, problem

PAID = '{"updateMany": "orders", "filter": {"open": true}, "update": {"$set": {"open": false, "by": "goex"}}}'


@pytest.fixture(scope="module")
def nx() -> Iterator[Nx]:
    if find_binary() is None:
        pytest.skip("nx-27017 isn't installed")
    with Nx() as server:
        yield server


@pytest.fixture(scope="module")
def client(nx: Nx) -> Iterator[Client]:
    with Daemon() as daemon:
        made = Client(daemon)
        made.add("shop", nx.url, no_tls=True)
        yield made


@pytest.fixture
def orders(nx: Nx) -> Iterator[Any]:
    """The collection itself, past GoEx, with four orders in it."""
    with MongoClient[Any]("127.0.0.1", nx.port) as client:
        collection = client["shop"]["orders"]
        collection.delete_many({})
        collection.insert_many([{"_id": id, "total": id * 10, "open": id < 3} for id in range(1, 5)])
        yield collection


def mongo(*operations: str) -> pb.ExecuteRequest:
    return pb.ExecuteRequest(mongo=pb.MongoProgram(database="shop", operations_json=operations))


def ask(client: Client, *operations: str, token: str = "") -> Asked:
    return Asked(client.daemon, mongo(*operations), token=token, person=not token)


def all_of(orders: Any) -> list[dict[str, Any]]:
    return list(orders.find().sort("_id", 1))


def test_do_undo_redo_commit(client: Client, orders: Any) -> None:
    before = all_of(orders)
    asked = ask(client, PAID)
    question = asked.question()
    lines = "\n".join(question.lines)
    assert "THIS SERVER HAS NO TRANSACTIONS" in lines and '"$set"' in lines and "updates" not in lines
    decide(client.daemon, question)
    done = asked.finished()
    assert changes(done)[0] == "orders: 2 documents updated"
    assert orders.count_documents({"by": "goex"}) == 2
    after = all_of(orders)
    undone = client.revert(asked.action_id).approve()
    assert changes(undone)[0] == "orders: 2 documents set back"
    assert "before the action: 2 documents set back." in undone.action.outcome_json
    assert all_of(orders) == before
    redone = client.revert(asked.action_id, "redo").approve()
    assert changes(redone)[0] == "orders: 2 documents changed"
    assert all_of(orders) == after
    client.revert(asked.action_id, "commit").approve()
    assert all_of(orders) == after


@pytest.mark.sampled(2)
@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("verb", "head"),
    [
        ("redo", 'action == Action::"mongo", resource)'),
        ("redo", 'action == Action::"redo", resource)'),
        ("commit", 'action == Action::"commit", resource == Method::"db.update")'),
    ],
)
def test_operations_are_brought_back_and_kept_as_what_they_were_asked_for(
    client: Client, orders: Any, verb: str, head: str
) -> None:
    asked = ask(client, PAID.replace('{"open": true}', "{}"))  # of all: as deleting
    assert asked.approve().action.state == "done"
    if verb == "redo":
        client.revert(asked.action_id).approve()
    before = all_of(orders)
    apply(client.daemon, f'@id("no") forbid (principal, {head} when {{ context.risk == Risk::"delete" }};')
    try:
        refused = client.revert(asked.action_id, verb).ended()
    finally:
        apply(client.daemon, "")
    assert refused.problem.code == "denied" and "Rule no" in refused.problem.message
    assert all_of(orders) == before


def test_somebody_elses_change_is_a_conflict_and_stays(client: Client, orders: Any) -> None:
    asked = ask(client, PAID)
    asked.approve()
    orders.update_one({"_id": 1}, {"$set": {"total": 999}})
    there = all_of(orders)
    undo = client.revert(asked.action_id)
    ended = undo.ended()
    assert ended.problem.code == "conflict"
    assert list(ended.problem.details) == ["orders _id 1: total"]
    assert all_of(orders) == there


def test_reading(client: Client, orders: Any) -> None:
    done = ask(client, '{"find": "orders", "filter": {"total": {"$gt": 20}}, "sort": {"_id": 1}}').approve()
    assert [one["_id"] for one in results(done)[0]["documents"]] == [3, 4]


def test_what_is_not_allowed_is_refused_before_anybody_is_asked(client: Client, orders: Any) -> None:
    for hostile in (
        '{"find": "orders", "filter": {"$where": "sleep(1)"}}',
        '{"aggregate": "orders", "pipeline": [{"$out": "orders"}]}',
        '{"deleteMany": "system.users", "filter": {}}',
        '{"drop": "orders"}',
    ):
        ended = ask(client, hostile).ended()
        assert ended.problem.code in ("unsupported", "invalid"), hostile
    assert orders.count_documents({}) == 4


@pytest.mark.promise(73)
def test_an_agent_asks_and_is_told_nothing_of_the_plan(client: Client, orders: Any) -> None:
    token = client.daemon.add_agent("ada")
    asked = ask(client, '{"deleteMany": "orders", "filter": {"total": {"$gte": 30}}}', token=token)
    question = asked.question()
    assert any("total" in line for line in question.lines)
    assert not any("total" in line for event in asked.seen for line in event.asking.lines)
    decide(client.daemon, question)
    done = asked.finished()
    assert changes(done)[0] == "orders: 2 documents deleted"
    undone = client.revert(asked.action_id).approve()
    assert changes(undone)[0] == "orders: 2 documents put back"
    assert orders.count_documents({}) == 4


def test_a_dry_run_shows_the_documents_and_leaves_them(client: Client, orders: Any) -> None:
    before = all_of(orders)
    asked = ask(client, PAID)
    question = asked.question()
    done = client.daemon.goex("approve", question.id, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "2 documents would be written" in done.stdout and '"total": 10' in done.stdout
    decide(client.daemon, question, approve=False)
    asked.finished()
    assert all_of(orders) == before


def test_the_command_line(client: Client, orders: Any) -> None:
    daemon = client.daemon
    listed = daemon.goex("db", "list", "--json")
    assert listed.returncode == 0 and "mongodb://" in listed.stdout
    shown = daemon.goex("db", "show", "shop")
    assert shown.returncode == 0 and "orders" in shown.stdout and "no transactions" in shown.stdout, shown
    twice = daemon.goex("exec", "--db", "shop", "--mongo", '{"find": "orders", "filter": {"a": 1, "a": 2}}')
    assert twice.returncode == 2 and "stands twice" in twice.stderr
    listed_twice = daemon.goex("exec", "--db", "shop", "--mongo", '[{"find": "orders", "filter": {"a": 1, "a": 2}}]')
    assert listed_twice.returncode == 2 and "stands twice" in listed_twice.stderr
    done = ask(client, PAID).approve()
    story = client.story(done.action.id)
    assert "orders: 2 documents updated" in story and '"$set"' in story
    assert json.loads(daemon.goex("log", "--json").stdout.splitlines()[0])


def test_a_daemon_that_is_killed_while_it_writes(client: Client, orders: Any) -> None:
    """The daemon dies by -9 in the middle; the next one looks, says what is there, and undo takes it back."""
    orders.insert_many([{"_id": id, "total": 0, "open": True} for id in range(100, 220)])
    before = all_of(orders)
    daemon = client.daemon
    asked = ask(client, PAID)
    question = asked.question()
    Thread(target=lambda: _quietly(lambda: decide(daemon, question)), daemon=True).start()
    while orders.count_documents({"by": "goex"}) < 30:
        sleep(0.01)
    daemon.kill()
    daemon.restart()
    done = daemon.actions("Get", pb.ActionId(id=asked.action_id), socket=daemon.user_socket)
    assert done.state == "partial", done
    client.revert(asked.action_id).approve()
    assert all_of(orders) == before


def _quietly(work: Any) -> None:
    try:
        work()
    except grpc.RpcError as error:
        problem(error)


def test_a_server_that_is_killed_while_it_is_written_to(client: Client, nx: Nx) -> None:
    """What became of it isn't known while the server is away: that is said, and undo looks when it is back."""
    with MongoClient[Any]("127.0.0.1", nx.port) as past:
        past["shop"]["orders"].delete_many({})
        past["shop"]["orders"].insert_many([{"_id": id, "total": id, "open": True} for id in range(120)])
        before = all_of(past["shop"]["orders"])
        asked = ask(client, PAID)
        question = asked.question()
        Thread(target=lambda: _quietly(lambda: decide(client.daemon, question)), daemon=True).start()
        while past["shop"]["orders"].count_documents({"by": "goex"}) < 30:
            sleep(0.01)
        nx.kill()
    ended = asked.finished()
    assert ended.action.state == "unknown" and ended.problem.exit_status == 9, ended
    nx.start()
    client.revert(asked.action_id).approve()
    with MongoClient[Any]("127.0.0.1", nx.port) as past:
        assert all_of(past["shop"]["orders"]) == before
