"""Derived ways back in the styles of several families of APIs: each is done and undone on a server that keeps state, by
the interpreter and through container and gateway, alone and with a third party's change in between."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Revert
from policies.errors import Unsupported
from runtimes.rest.records import CallRecord
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.undo import UndoImpossible, check_promise, planned_steps, undo_steps
from tests.runtimes.rest.derived import ACCOUNT, Kept, carry, catalog_of, do
from tests.runtimes.rest.support import Bench, Hit, Service, account, calls, serving


class Shelf(Service):
    """Things of several kinds by what they are called. What a PUT doesn't say is gone; `parts`: kinds that a PUT or a
    PATCH answers with a part of; `named`: kinds of which an answer says the id; a form's texts are what they say."""

    numbered = ("remarks", "rooms")
    parts = ("boxes",)
    named = ("labels", "kits")

    def __init__(self) -> None:
        super().__init__()
        self.made = 10
        self.kept: dict[str, dict[str, Any]] = {
            "customers": {"c1": {"id": "c1", "name": "one", "mail": "one@example.org", "vip": True}},
            "plans": {"p1": {"id": "p1", "name": "basic", "price": 3}},
            "remarks": {"1": {"id": 1, "text": "first"}},
            "maps": {"m1": {"metadata": {"name": "m1", "resourceVersion": "1"}, "data": {}}},
            "boxes": {"b1": {"id": "b1", "name": "one", "size": 2, "note": "keep"}},
            "rooms": {"1": {"id": 1, "name": "one"}},
            "tags": {"red": {"name": "red", "color": "#f00"}},
            "labels": {"l1": {"id": "l1", "name": "one", "size": 1}, "l2": {"id": "l2", "name": "two", "size": 2}},
            "kits": {},
            "doors": {"d1": {"id": "d1", "name": "front", "locked": False}},
        }

    def state(self) -> Any:
        """All of it, without ids that nobody chose."""
        return {
            kind: sorted(
                ({k: v for k, v in one.items() if k != "id"} for one in things.values()), key=lambda one: repr(one)
            )
            for kind, things in copy.deepcopy(self.kept).items()
        }

    def handle(self, hit: Hit) -> tuple[int, Any]:
        parts = hit.path.strip("/").split("/")
        if parts[0] == "teams":
            parts = parts[2:]
        kind, things = parts[0], self.kept[parts[0]]
        body = {name: _meant(value) for name, value in hit.body.items()} if isinstance(hit.body, dict) else {}
        if hit.method in ("PUT", "PATCH") and len(parts) == 1:
            parts = [kind, body["id"]]  # of the thing that its body names
        if len(parts) == 1:
            return (200, list(things.values())) if hit.method == "GET" else (201, self._add(kind, body))
        if parts[1] not in things:
            return 404, {}
        one = things[parts[1]]
        if parts[2:] == ["lock"]:
            one["locked"] = hit.method == "PUT"
            return 204, None
        match hit.method:
            case "DELETE":
                del things[parts[1]]
                return 204, None
            case "POST" | "PATCH":
                one.update(body)
            case "PUT":
                things[parts[1]] = one = {"id": one["id"], **body}
        if kind in self.named and hit.method != "GET":
            return 200, {"id": one["id"]}
        part = kind in self.parts and hit.method != "GET"
        return 200, {k: v for k, v in one.items() if k != "note"} if part else copy.deepcopy(one)

    def _add(self, kind: str, body: dict[str, Any]) -> Any:
        if kind in ("maps", "tags"):
            self.kept[kind][body["metadata"]["name"] if kind == "maps" else body["name"]] = body
            if kind == "maps":
                body["metadata"]["resourceVersion"] = "1"
            return copy.deepcopy(body)
        self.made += 1
        id: str | int = self.made if kind in self.numbered else f"x{self.made}"
        self.kept[kind][str(id)] = {"id": id, **body}
        if kind in self.named:
            return {"id": id}
        return copy.deepcopy(self.kept[kind][str(id)])


def _meant(value: Any) -> Any:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and value.isdecimal() else value


@dataclass(frozen=True)
class Case:
    """One call: of which document, on what, and how somebody else may change what it left."""

    document: str
    operation: str
    arguments: dict[str, Any]
    change: Callable[[dict[str, Any]], object]

    def changed(self, shelf: Shelf) -> None:
        """Somebody else changes whatever the call made or changed."""
        kind = next(part for part in self.operation.split("/") if part in shelf.kept)
        things = shelf.kept[kind]
        self.change(next(reversed(things.values())))


CASES = {
    "form-create": Case(
        "forms", "POST /customers", {"name": "two", "vip": False}, lambda one: one.update(mail="new@example.org")
    ),
    "form-update": Case(
        "forms", "POST /customers/{customer}", {"customer": "c1", "vip": False}, lambda one: one.update(vip="perhaps")
    ),
    "form-put": Case("forms", "PUT /plans/{plan}", {"plan": "p1", "name": "pro"}, lambda one: one.update(price=9)),
    "listed": Case(
        "listed", "POST /teams/{team}/remarks", {"team": "t", "body": {"text": "new"}}, lambda one: one.update(text="x")
    ),
    "in-metadata": Case(
        "cluster",
        "POST /maps",
        {"body": {"metadata": {"name": "m2"}, "data": {"a": "b"}}},
        lambda one: one["metadata"].update(resourceVersion="2"),
    ),
    "part-put": Case(
        "cluster",
        "PUT /boxes/{id}",
        {"id": "b1", "body": {"name": "new", "size": 5, "note": "other"}},
        lambda one: one.update(note="theirs"),
    ),
    "number-in-path": Case(
        "cluster", "POST /rooms", {"body": {"name": "new"}}, lambda one: one.update(name="theirs")
    ),
    "id-in-body": Case(
        "answers",
        "PUT /labels",
        {"body": {"id": "l2", "name": "new", "size": 5}},
        lambda one: one.update(name="theirs"),
    ),
    "part-by-id-in-body": Case(
        "answers", "PATCH /labels", {"body": {"id": "l2", "size": 5}}, lambda one: one.update(size=9)
    ),
    "named-alone": Case(
        "answers", "POST /kits", {"body": {"name": "new", "size": 5}}, lambda one: one.update(size=9)
    ),
    "put-lock": Case("answers", "PUT /doors/{id}/lock", {"id": "d1"}, lambda one: one.update(locked=False)),
    "own-name": Case("cluster", "DELETE /tags/{name}", {"name": "red"}, lambda one: None),
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.promise(65)
@pytest.mark.parametrize("between", [False, True], ids=["alone", "changed"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_it_is_taken_back_or_left(name: str, between: bool, tmp_path: Path) -> None:
    case, shelf = CASES[name], Shelf()
    catalog = catalog_of(tmp_path, case.document)
    method = next(method for method in catalog.methods() if method.origin_id == case.operation)
    bench, before = Bench(tmp_path / "records", (ACCOUNT,)), shelf.state()
    plan, call_record = do([(method.name, case.arguments)], shelf, catalog, bench)
    assert shelf.state() != before
    if between and name == "own-name":
        shelf.kept["tags"]["red"] = {"name": "red", "color": "theirs"}
    elif between:
        case.changed(shelf)
    left = shelf.state()
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), shelf, CallRecord())
    assert (stopped.role if stopped is not None else "") == ("guard" if between else "")
    assert shelf.state() == (left if between else before)


@pytest.mark.sampled(5)
@pytest.mark.docker
@pytest.mark.promise(65)
@pytest.mark.parametrize("name", sorted(CASES))
async def test_it_is_taken_back_for_real(name: str, runtime: RestRuntime, tmp_path: Path) -> None:
    case, shelf = CASES[name], Shelf()
    catalog = catalog_of(tmp_path, case.document)
    method = next(method for method in catalog.methods() if method.origin_id == case.operation)
    with serving(shelf, tmp_path):
        owner = account("notes", shelf.url, ca_pem=shelf.ca_pem, private=True)
        bench, before = Bench(tmp_path / "records", (owner,)), shelf.state()
        runtime = replace(runtime, catalog=catalog, reversions=Kept())
        plan = await runtime.assess(calls((method.id, case.arguments)), bench.context("a1"))
        await runtime.prepare(plan, bench.context("a1"))
        outcome = await runtime.execute(plan, bench.context("a1"))
        assert outcome.ok and shelf.state() != before, outcome.summary
        revert = Revert(verb="undo", target="a1")
        revert_plan = await runtime.assess_revert(revert, plan, bench.context("a1"))
        ended = await runtime.execute_revert(revert, revert_plan, plan, bench.context("a1"), bench.context("u1"))
        assert ended.ok and shelf.state() == before, ended.summary


def test_a_change_that_drops_what_it_isnt_given_isnt_taken_back(tmp_path: Path) -> None:
    """A POST that writes the whole thing after all: what it dropped is seen before the undo."""

    class Replaces(Shelf):
        def handle(self, hit: Hit) -> tuple[int, Any]:
            if hit.method == "POST" and hit.path == "/customers/c1":
                hit.body.setdefault("mail", "")
            return super().handle(hit)

    shelf, catalog = Replaces(), catalog_of(tmp_path, "forms")
    method = next(method for method in catalog.methods() if method.origin_id == "POST /customers/{customer}")
    bench = Bench(tmp_path / "records", (ACCOUNT,))
    plan, call_record = do([(method.name, {"customer": "c1", "name": "new"})], shelf, catalog, bench)
    left = shelf.state()
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), shelf, CallRecord())
    assert stopped is not None and stopped.role == "guard" and shelf.state() == left


def test_what_a_read_doesnt_show_isnt_taken_for_nothing(tmp_path: Path) -> None:
    """A read that may show a part: a field that it doesn't show can't be put back, and nothing of it is sent."""

    class Hides(Service):
        def handle(self, hit: Hit) -> tuple[int, Any]:
            return 200, {"task_id": "t1", "name": "old"}

    catalog = catalog_of(tmp_path, "office")
    method = next(method for method in catalog.methods() if method.origin_id == "PATCH /files/{task_id}")
    bench = Bench(tmp_path / "records", (ACCOUNT,))
    for body in ({"done": True}, {"name": "new", "done": True}):
        plan, call_record = do([(method.name, {"task_id": "t1", "body": body})], Hides(), catalog, bench)
        with pytest.raises(Unsupported, match="can't be taken back"):
            undo_steps(plan, call_record, catalog, bench.context("a1").accounts)


def test_a_list_that_shows_it_no_more_is_a_conflict(tmp_path: Path) -> None:
    """In another part of the list it isn't found: nothing is deleted that wasn't compared."""
    shelf, catalog = Shelf(), catalog_of(tmp_path, "listed")
    case = CASES["listed"]
    method = next(method for method in catalog.methods() if method.origin_id == case.operation)
    bench = Bench(tmp_path / "records", (ACCOUNT,))
    plan, call_record = do([(method.name, case.arguments)], shelf, catalog, bench)
    made = shelf.kept["remarks"].pop("11")
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), shelf, CallRecord())
    assert made["text"] == "new" and stopped is not None and stopped.role == "guard"


@pytest.mark.promise(65)
@pytest.mark.parametrize("there", [True, False], ids=["there", "nothing"])
def test_what_a_put_would_make_and_nothing_deletes_isnt_promised(there: bool, tmp_path: Path) -> None:
    """A PUT whose document doesn't say that it makes nothing: only what was there before is put back."""

    class Profiles(Shelf):
        def __init__(self) -> None:
            super().__init__()
            self.kept = {"profiles": {"u1": {"id": "u1", "name": "old"}}}

        def handle(self, hit: Hit) -> tuple[int, Any]:
            if hit.method == "PUT":
                user = hit.path.rpartition("/")[2]
                self.kept["profiles"].setdefault(user, {"id": user})
            return super().handle(hit)

    shelf, catalog = Profiles(), catalog_of(tmp_path, "settings")
    before = shelf.state()
    method = next(method for method in catalog.methods() if method.origin_id == "PUT /profiles/{user}")
    bench = Bench(tmp_path / "records", (ACCOUNT,))
    arguments = {"user": "u1" if there else "u2", "body": {"name": "new"}}
    plan, call_record = do([(method.name, arguments)], shelf, catalog, bench)
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    if not there:
        with pytest.raises(UndoImpossible, match="nothing was there before"):  # as it is asked before the call leaves
            check_promise(call, plan, call_record, catalog)
        with pytest.raises(Unsupported, match="nothing was there before"):
            undo_steps(plan, call_record, catalog, bench.context("a1").accounts)
        return
    check_promise(call, plan, call_record, catalog)
    assert carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), shelf, CallRecord()) is None
    assert shelf.state() == before
