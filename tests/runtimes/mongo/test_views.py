"""Views: what they have the server do, and what becomes of a plan when they are defined anew."""

from __future__ import annotations

from typing import Any

import pytest

from policies.errors import Conflict, Unsupported
from runtimes.mongo.backend import Collection
from runtimes.mongo.wire import runs_script
from tests.runtimes.mongo.fake import Server
from tests.runtimes.mongo.support import Ground, operation

SCRIPT: dict[str, Any] = {"body": "function () {}", "args": [], "lang": "js"}


@pytest.fixture(params=[True, False], ids=["transactions", "one by one"])
def server(request: pytest.FixtureRequest) -> Server:
    found = Server(transactions=request.param)
    found.put("orders", {"_id": 1})
    return found


@pytest.fixture
def ground(server: Server) -> Ground:
    return Ground(connect=server.backend)


def define(server: Server, name: str, *under: str, script: bool = False) -> None:
    server.special[name] = Collection(
        name=name, kind="view", refusal="it is a view", stands_on=frozenset(under), script=script
    )


READS = {
    "find": [operation("find", "people")],
    "aggregate": [operation("aggregate", "orders", pipeline=[{"$unionWith": "people"}])],
    "beside a write": [operation("deleteOne", "orders", filter={"_id": 1}), operation("find", "people")],
}


@pytest.mark.parametrize("operations", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("called", ["people", "inner"])
async def test_a_view_that_runs_javascript_is_not_read(
    server: Server, ground: Ground, operations: list[str], called: str
) -> None:
    define(server, "people", "inner", script=called == "people")
    define(server, "inner", "customers", script=called == "inner")
    with pytest.raises(Unsupported, match=f"{called} can't be read here: its definition runs JavaScript"):
        await ground.plan(*operations)


@pytest.mark.parametrize("operations", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("script", [False, True])
async def test_a_view_that_was_defined_anew_since_the_plan_is_not_read(
    server: Server, ground: Ground, operations: list[str], script: bool
) -> None:
    define(server, "people", "customers")
    before = dict(server.documents)
    plan = await ground.plan(*operations)
    define(server, "people", "customers" if script else "payroll", script=script)
    await ground.runtime.prepare(plan, ground.context("a-1"))
    with pytest.raises(Unsupported if script else Conflict):
        await ground.runtime.execute(plan, ground.context("a-1"))
    assert {key: raw for key, raw in server.documents.items() if key[0] == "orders"} == before


async def test_a_collection_that_a_view_took_the_place_of_is_not_read(server: Server, ground: Ground) -> None:
    plan = await ground.plan(operation("find", "orders"))
    define(server, "orders", "payroll")
    with pytest.raises(Conflict, match="aren't defined any more"):
        await ground.runtime.execute(plan, ground.context("a-1"))


@pytest.mark.parametrize(
    ("stage", "runs"),
    [
        ({"$set": {"a": {"$function": SCRIPT}}}, True),
        ({"$group": {"_id": 1, "a": {"$accumulator": {}}}}, True),
        ({"$facet": {"one": [{"$match": {"$expr": {"$not": [{"$function": SCRIPT}]}}}]}}, True),
        ({"$lookup": {"from": "b", "as": "x", "pipeline": [{"$match": {"$where": "1"}}]}}, True),
        ({"$set": {"a": {"$literal": {"$function": SCRIPT}}}}, False),
        ({"$set": {"a": {"$concat": ["$function", "$where"]}}}, False),
    ],
)
def test_where_javascript_hides(stage: dict[str, Any], runs: bool) -> None:
    assert runs_script({"viewOn": "a", "pipeline": [{"$match": {}}, stage]}) is runs


@pytest.mark.parametrize("anew", ["payroll", "script"])
async def test_a_view_that_is_defined_anew_while_it_is_read_shows_nothing(
    server: Server, ground: Ground, anew: str
) -> None:
    define(server, "people", "customers")
    plan = await ground.plan(operation("find", "people"))

    looks = iter(["before the read"])

    def hook(when: str, what: str) -> None:
        if what == "collections" and next(looks, None) is None:
            define(server, "people", "payroll" if anew == "payroll" else "customers", script=anew == "script")

    server.hook = hook
    with pytest.raises(Unsupported if anew == "script" else Conflict):
        await ground.runtime.execute(plan, ground.context("a-1"))
