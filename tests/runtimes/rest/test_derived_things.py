"""Derived ways back of what is made: it is deleted where it stands, as long as it is as it was left."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.actions import Plan
from policies.errors import Unsupported
from runtimes.rest.records import CallRecord
from runtimes.rest.undo import UndoImpossible, check_promise, planned_steps, undo_steps
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.derived import (
    ACCOUNT,
    carry,
    catalog_of,
    do,
)
from tests.runtimes.rest.support import Bench, Hit
from tests.services.apis.notes import Notes

# ---- things that stand elsewhere than below their collection, and things that every call names


class Projects(Notes):
    """Columns by an id of the service's, labels by the name that they are given."""

    def __init__(self, *labels: str) -> None:
        super().__init__()
        self.columns: dict[str, dict[str, Any]] = {}
        self.labels: dict[str, dict[str, Any]] = {name: {"name": name, "color": "red"} for name in labels}

    def state(self) -> Any:
        return copy.deepcopy((self.columns, self.labels))

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        match hit.method, parts:
            case "POST", ["projects", _, "columns"]:
                self.columns["c1"] = {"id": "c1", "name": hit.body["name"]}
                return 201, self.columns["c1"]
            case "POST", ["projects", _, "labels"]:  # an upsert, which doesn't say so
                self.labels[hit.body["name"]] = {"color": "blue", **hit.body}
                return 201, self.labels[hit.body["name"]]
            case method, ["projects", "columns", id]:
                return self._item(method, self.columns, id)
            case method, ["projects", _, "labels", name]:
                return self._item(method, self.labels, name)
        return 404, {}

    def _item(self, method: str, of: dict[str, dict[str, Any]], id: str) -> tuple[int, Any]:
        if id not in of:
            return 404, {}
        return (204, of.pop(id) and None) if method == "DELETE" else (200, of[id])


@pytest.mark.promise(65)
@pytest.mark.parametrize("changed", [False, True], ids=["alone", "changed"])
@pytest.mark.parametrize("what", ["columns", "labels"])
def test_what_was_made_is_deleted_where_it_stands(what: str, changed: bool, tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "elsewhere")
    name = next(one.name for one in catalog.methods() if one.origin_id == f"POST /projects/{{project}}/{what}")
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), Projects("old")
    before = to.state()
    plan, call_record = do([(name, {"project": "p", "body": {"name": "new"}})], to, catalog, bench)
    if changed and what == "columns":
        to.columns["c1"]["name"] = "somebody else's"
    elif changed:
        to.labels["new"]["color"] = "somebody else's"
    left = to.state()
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
    assert (stopped.role if stopped is not None else "") == ("guard" if changed else "")
    assert to.state() == (left if changed else before)


# ---- a PUT that makes what it doesn't find


class Flags(Notes):
    """Flags by the caller's key. `empty`: a flag that isn't there is answered with 200 and null; `shut`: with 403;
    `stays`: what is deleted is still there."""

    def __init__(self, there: bool, manner: str) -> None:
        super().__init__()
        self.flags = {"old": {"key": "old", "on": False, "seen": 0}}
        if there:
            self.flags["f"] = {"key": "f", "on": False, "text": "first", "seen": 3}
        self.manner, self.sent = manner, 0

    def state(self) -> Any:
        return copy.deepcopy(self.flags)

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        key = parts[1]
        match hit.method:
            case "PUT":
                self.sent += 1
                status = 200 if key in self.flags else 201
                self.flags[key] = {"key": key, "seen": self.flags.get(key, {}).get("seen", 0), **hit.body}
                return (status, self.flags[key]) if parts[0] == "flags" else (204, None)
            case "DELETE" if self.manner != "stays":
                return 204, self.flags.pop(key, None) and None
            case "GET" if key in self.flags:
                return 200, self.flags[key]
            case "GET":
                return {"empty": (200, None), "shut": (403, {})}.get(self.manner, (404, {"error": "not found"}))
        return 204, None


def put_flag(tmp_path: Path, to: Flags, what: str) -> tuple[Plan, CallRecord, Catalog, Bench]:
    catalog, bench = catalog_of(tmp_path, "upserts"), Bench(tmp_path / "records", (ACCOUNT,))
    name = next(one.name for one in catalog.methods() if one.origin_id == f"PUT /{what}/{{key}}")
    plan, call_record = do([(name, {"key": "f", "body": {"on": True, "text": "mine"}})], to, catalog, bench)
    return plan, call_record, catalog, bench


@pytest.mark.sampled(9)
@pytest.mark.promise(65)
@pytest.mark.parametrize("between", ["", "on", "text", "seen", "gone"])
@pytest.mark.parametrize("there", [False, True], ids=["made", "changed"])
@pytest.mark.parametrize("what", ["flags", "knobs"])
def test_what_a_put_made_is_deleted_and_what_it_changed_is_put_back(
    what: str, there: bool, between: str, tmp_path: Path
) -> None:
    to = Flags(there, "")
    before = to.state()
    plan, call_record, catalog, bench = put_flag(tmp_path, to, what)
    assert to.sent == 1 and "by notes.flags" in plan.undo_text.replace("knobs", "flags")
    assert "if nothing was there before" in plan.undo_text
    if between == "gone":
        del to.flags["f"]
    elif between:
        to.flags["f"][between] = {"on": False, "text": "theirs", "seen": 9}[between]
    left = to.state()
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
    if between in ("on", "text", "gone") or (between == "seen" and what == "flags"):
        assert stopped is not None and stopped.role == "guard" and to.state() == left
    else:
        assert stopped is None
        assert {**to.state().get("f", {}), "seen": 0} == {**before.get("f", {}), "seen": 0}
        assert to.state()["old"] == before["old"]


@pytest.mark.promise(65)
def test_whether_it_was_there_must_be_known(tmp_path: Path) -> None:
    shut = Flags(False, "shut")
    put_flag(tmp_path, shut, "flags")
    assert shut.sent == 0  # it stopped at the read before
    empty = Flags(False, "empty")
    plan, call_record, catalog, bench = put_flag(tmp_path, empty, "flags")
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    with pytest.raises(UndoImpossible, match="can't be told"):  # as it is asked before the call leaves
        check_promise(call, plan, call_record, catalog)
    left = empty.state()
    with pytest.raises(Unsupported, match="can't be told"):
        undo_steps(plan, call_record, catalog, bench.context("a1").accounts)
    assert empty.state() == left


@pytest.mark.promise(65)
def test_what_isnt_gone_after_all_is_said(tmp_path: Path) -> None:
    to = Flags(False, "stays")
    plan, call_record, catalog, bench = put_flag(tmp_path, to, "flags")
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
    assert stopped is not None and stopped.role == "verify"


@pytest.mark.promise(65)
def test_what_was_there_under_its_name_isnt_overwritten(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "elsewhere")
    name = next(one.name for one in catalog.methods() if one.origin_id == "POST /projects/{project}/labels")
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), Projects("old")
    before = to.state()
    _, call_record = do([(name, {"project": "p", "body": {"name": "old"}})], to, catalog, bench)
    assert not call_record.sent  # it stopped at the read before
    assert to.state() == before


class Boards(Notes):
    """Boards, and what is put into them."""

    def __init__(self) -> None:
        super().__init__()
        self.boards: dict[str, str] = {}
        self.cards: list[str] = []

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        match hit.method, parts:
            case "POST", ["boards"]:
                self.boards["b1"] = hit.body["name"]
            case "DELETE", ["boards", id]:
                del self.boards[id]
                return 204, None
            case "GET", ["boards", _, "cards"]:
                return 200, list(self.cards)
            case "GET", ["boards", _, "lanes"]:
                return 200, {"lanes": []}
        if "b1" not in self.boards:
            return 404, {}
        return 201 if hit.method == "POST" else 200, {"id": "b1", "name": self.boards["b1"]}


@pytest.mark.promise(65)
@pytest.mark.parametrize("cards", [[], ["somebody else's"]], ids=["empty", "filled"])
def test_what_others_put_into_it_isnt_deleted_with_it(cards: list[str], tmp_path: Path) -> None:
    (tmp_path / "boards.json").write_text(json.dumps(document("boards")))
    import_openapi(tmp_path / "catalog.db", tmp_path / "boards.json", "notes", index=False)
    catalog = Catalog.open(tmp_path / "catalog.db", alone=True)
    name = next(method.name for method in catalog.methods() if method.origin_id == "POST /boards")
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), Boards()
    plan, call_record = do([(name, {"body": {"name": "plans"}})], to, catalog, bench)
    to.cards += cards
    stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
    assert (stopped.role if stopped is not None else "") == ("guard" if cards else "")
    assert to.boards == ({"b1": "plans"} if cards else {})
