"""Derived ways back that rest on a look: a list before and right after shows what was made, and a read of which no
document says what it shows is believed only for what it showed. With servers that answer otherwise."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Plan, Revert, UndoClass
from policies.errors import Unsupported
from policies.reversions import Result
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import CallRecord
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.undo import UndoImpossible, check_promise, planned_steps, undo_steps
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.derived import ACCOUNT, Kept, carry, catalog_of, do
from tests.runtimes.rest.support import Bench, Hit, Service, account, calls, serving

MADE = {"host": "h", "body": {"text": "mine", "on": True}}


class Rules(Service):
    """Rules of a host. A creation says nothing of what it made; `manner` is what is otherwise."""

    def __init__(self, manner: str = "") -> None:
        super().__init__()
        self.rules = [{"id": "r1", "text": "first", "on": False}, {"id": "r2", "text": "mine", "on": True}]
        self.manner, self.made, self.sent = manner, 2, 0

    def state(self) -> Any:
        return copy.deepcopy(self.rules)

    def handle(self, hit: Hit) -> tuple[int, Any]:
        match hit.method:
            case "GET":
                return self._shown()
            case "POST":
                self.sent += 1
                self._add(hit.body)
                return 201, None
        at = next((one for one in self.rules if one["id"] == hit.path.rpartition("/")[2]), None)
        if at is None:
            return 404, {}
        if self.manner != "stays":
            self.rules.remove(at)
        return 204, None

    def _add(self, body: dict[str, Any]) -> None:
        if self.manner == "known":  # it was there already, and nothing is new
            return
        self.made += 1
        text = body["text"].upper() if self.manner == "otherwise" else body["text"]
        self.rules.append({"id": f"r{self.made}", **body, "text": text})
        if self.manner == "both":
            self.rules.append({"id": "r9", "text": "mine", "on": True})
        if self.manner == "gone":
            del self.rules[0]

    def _shown(self) -> tuple[int, Any]:
        if self.manner == "down" and self.sent:
            return 500, {}
        if self.manner == "no list":
            return 200, {"rules": {"r1": "first"}}
        if self.manner == "long":
            return 200, {"rules": [*self.rules, {"id": "x", "text": "x" * 300_000, "on": True}]}
        return 200, {"rules": copy.deepcopy(self.rules)}


def _do(to: Service, document: str, operation: str, arguments: dict[str, Any], tmp_path: Path) -> Any:
    catalog, bench = catalog_of(tmp_path, document), Bench(tmp_path / "records", (ACCOUNT,))
    name = next(one.name for one in catalog.methods() if one.origin_id == operation)
    plan, call_record = do([(name, arguments)], to, catalog, bench)
    return plan, call_record, catalog, bench.context("a1").accounts


def _make(to: Rules, tmp_path: Path) -> Any:
    return _do(to, "unnamed", "POST /hosts/{host}/rules", MADE, tmp_path)


@pytest.mark.promise(65)
def test_what_a_list_shows_to_be_new_is_deleted(tmp_path: Path) -> None:
    """One of the same words was there before, and stays."""
    to = Rules()
    before = to.state()
    plan, call_record, catalog, accounts = _make(to, tmp_path)
    assert plan.undo_class is UndoClass.COMPENSATING
    assert [step.role for step in planned_steps(plan)] == ["pre", "call", "after"]
    steps = undo_steps(plan, call_record, catalog, accounts)
    assert next(step for step in steps if step.role == "undo").arguments == {"host": "h", "rule_id": "r3"}
    assert carry(steps, to, CallRecord()) is None and to.state() == before


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("manner", "why"),
    [
        ("known", "0 things of its list are new"),
        ("both", "2 things of its list are new"),
        ("gone", "something else in its list changed"),
        ("otherwise", "isn't what was sent"),
        ("down", "wasn't read after it"),
    ],
)
def test_where_it_isnt_sure_which_one_it_made_nothing_is_taken_back(manner: str, why: str, tmp_path: Path) -> None:
    to = Rules(manner)
    plan, call_record, catalog, accounts = _make(to, tmp_path)
    left = to.state()
    with pytest.raises(Unsupported, match=why):
        undo_steps(plan, call_record, catalog, accounts)
    assert to.state() == left


@pytest.mark.promise(65)
@pytest.mark.parametrize(("manner", "why"), [("no list", "isn't answered as a list"), ("long", "too long")])
def test_a_list_that_shows_nothing_is_seen_beforehand(manner: str, why: str, tmp_path: Path) -> None:
    to = Rules(manner)
    plan, call_record, catalog, _ = _make(to, tmp_path)
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    del call_record.answers["after-0"]
    with pytest.raises(UndoImpossible, match=why):  # as it is asked before the call leaves
        check_promise(call, plan, call_record, catalog)


@pytest.mark.promise(65)
def test_what_was_made_and_changed_since_stays(tmp_path: Path) -> None:
    to = Rules()
    plan, call_record, catalog, accounts = _make(to, tmp_path)
    to.rules[-1]["on"] = False
    left = to.state()
    stopped = carry(undo_steps(plan, call_record, catalog, accounts), to, CallRecord())
    assert stopped is not None and stopped.role == "guard" and to.state() == left


@pytest.mark.promise(65)
def test_what_is_still_listed_is_said(tmp_path: Path) -> None:
    to = Rules("stays")
    plan, call_record, catalog, accounts = _make(to, tmp_path)
    stopped = carry(undo_steps(plan, call_record, catalog, accounts), to, CallRecord())
    assert stopped is not None and stopped.role == "verify"


def test_what_tells_nothing_apart_has_no_undo(tmp_path: Path) -> None:
    catalog, bench = catalog_of(tmp_path, "unnamed"), Bench(tmp_path / "records", (ACCOUNT,))
    name = next(one.name for one in catalog.methods() if one.origin_id == "POST /masks")
    for text, has in (("", UndoClass.IRREVERSIBLE), ("x", UndoClass.COMPENSATING)):
        action = calls((f"notes.{name}", {"body": {"text": text}}))
        plan = assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x")
        assert plan.undo_class is has


# ---- reads of which the document doesn't say what they show


class Looks(Service):
    """One look. `show` makes of it what a read answers with."""

    def __init__(self, show: Callable[[dict[str, Any]], Any]) -> None:
        super().__init__()
        self.look: dict[str, Any] = {"color": "red", "size": 1}
        self.show = show

    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.method != "GET":
            self.look = {**(self.look if hit.method == "PATCH" else {}), **hit.body}
        return (204, None) if hit.method == "PATCH" else (200, self.show(self.look))


WRITES = [
    ("PUT /looks/{id}", {"id": "1", "body": {"color": "blue", "size": 2}}),
    ("PATCH /looks/{id}", {"id": "1", "body": {"size": 2}}),
]


@pytest.mark.promise(65)
@pytest.mark.parametrize(("operation", "arguments"), WRITES, ids=["put", "patch"])
def test_what_a_read_showed_is_written_back(operation: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    to = Looks(dict)
    plan, call_record, catalog, accounts = _do(to, "untold", operation, arguments, tmp_path)
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    check_promise(call, plan, call_record, catalog)
    assert to.look["size"] == 2
    assert carry(undo_steps(plan, call_record, catalog, accounts), to, CallRecord()) is None
    assert to.look == {"color": "red", "size": 1}


@pytest.mark.promise(65)
@pytest.mark.parametrize("shown", [lambda look: {"data": look}, lambda look: None, lambda look: [look]],
                         ids=["around", "nothing", "list"])  # fmt: skip
@pytest.mark.parametrize(("operation", "arguments"), WRITES, ids=["put", "patch"])
def test_what_a_read_doesnt_show_is_seen_beforehand(
    operation: str, arguments: dict[str, Any], shown: Callable[[Any], Any], tmp_path: Path
) -> None:
    plan, call_record, catalog, _ = _do(Looks(shown), "untold", operation, arguments, tmp_path)
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    with pytest.raises(UndoImpossible):
        check_promise(call, plan, call_record, catalog)


@pytest.mark.promise(65)
@pytest.mark.parametrize("shown", [lambda look: {"color": "red", "size": 7}], ids=["another thing"])
@pytest.mark.parametrize(("operation", "arguments"), WRITES, ids=["put", "patch"])
def test_a_read_of_something_else_is_seen_before_anything_is_sent(
    operation: str, arguments: dict[str, Any], shown: Callable[[Any], Any], tmp_path: Path
) -> None:
    to = Looks(shown)
    plan, call_record, catalog, accounts = _do(to, "untold", operation, arguments, tmp_path)
    left = copy.deepcopy(to.look)
    stopped = carry(undo_steps(plan, call_record, catalog, accounts), to, CallRecord())
    assert stopped is not None and stopped.role == "guard" and to.look == left


def test_a_put_that_leaves_out_a_field_has_no_undo(tmp_path: Path) -> None:
    """What it leaves out may become anything, and nothing says what it became."""
    catalog, bench = catalog_of(tmp_path, "untold"), Bench(tmp_path / "records", (ACCOUNT,))
    name = next(one.name for one in catalog.methods() if one.origin_id == "PUT /looks/{id}")
    action = calls((f"notes.{name}", {"id": "1", "body": {"color": "blue"}}))
    plan = assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x")
    assert plan.undo_class is UndoClass.IRREVERSIBLE


# ---- through container and gateway

REAL: dict[str, tuple[str, str, dict[str, Any], Callable[[], Service]]] = {
    "list": ("unnamed", "POST /hosts/{host}/rules", MADE, Rules),
    "put": ("untold", *WRITES[0], lambda: Looks(dict)),
    "patch": ("untold", *WRITES[1], lambda: Looks(dict)),
}
OTHERWISE: dict[str, tuple[str, str, dict[str, Any], Callable[[], Service]]] = {
    "no list": ("unnamed", "POST /hosts/{host}/rules", MADE, lambda: Rules("no list")),
    "put": ("untold", *WRITES[0], lambda: Looks(lambda look: {"data": look})),
    "patch": ("untold", *WRITES[1], lambda: Looks(lambda look: {"data": look})),
}


class _Scene:
    """A runtime that speaks to a server of the tests."""

    def __init__(self, runtime: RestRuntime, tmp_path: Path) -> None:
        self.runtime, self.tmp_path, self.kept = runtime, tmp_path, Kept()

    async def done(self, case: Any, to: Service) -> tuple[Any, RestRuntime, Plan, Bench]:
        document, operation, arguments, _ = case
        catalog = catalog_of(self.tmp_path, document)
        method = next(one for one in catalog.methods() if one.origin_id == operation)
        owner = account("notes", to.url, ca_pem=to.ca_pem, private=True)
        bench = Bench(self.tmp_path / "records", (owner,))
        runtime = replace(self.runtime, catalog=catalog, reversions=self.kept)
        plan = await runtime.assess(calls((method.id, arguments)), bench.context("a1"))
        await runtime.prepare(plan, bench.context("a1"))
        return await runtime.execute(plan, bench.context("a1")), runtime, plan, bench


def _state(to: Service) -> Any:
    return copy.deepcopy(to.rules if isinstance(to, Rules) else to.look if isinstance(to, Looks) else None)


@pytest.mark.docker
@pytest.mark.promise(65)
@pytest.mark.parametrize("name", sorted(REAL))
async def test_it_is_taken_back_for_real(name: str, runtime: RestRuntime, tmp_path: Path) -> None:
    case, scene = REAL[name], _Scene(runtime, tmp_path)
    to = case[3]()
    with serving(to, tmp_path):
        before = _state(to)
        outcome, runtime, plan, bench = await scene.done(case, to)
        assert outcome.ok and _state(to) != before, outcome.summary
        revert = Revert(verb="undo", target="a1")
        revert_plan = await runtime.assess_revert(revert, plan, bench.context("a1"))
        ended = await runtime.execute_revert(revert, revert_plan, plan, bench.context("a1"), bench.context("u1"))
        assert ended.ok and _state(to) == before, ended.summary
        assert [use.result for use in scene.kept.uses] == [Result.WORKED]


@pytest.mark.docker
@pytest.mark.promise(65)
@pytest.mark.parametrize("name", sorted(OTHERWISE))
async def test_a_server_that_shows_otherwise_is_sent_nothing(name: str, runtime: RestRuntime, tmp_path: Path) -> None:
    case, scene = OTHERWISE[name], _Scene(runtime, tmp_path)
    to = case[3]()
    with serving(to, tmp_path):
        before = _state(to)
        outcome, _, _, _ = await scene.done(case, to)
        assert not outcome.ok and not outcome.touched and _state(to) == before
        assert "couldn't be taken back as promised" in outcome.summary
        assert [use.result for use in scene.kept.uses] == [Result.FAILED]


@pytest.mark.docker
async def test_an_action_whose_second_look_fails_is_done_all_the_same(runtime: RestRuntime, tmp_path: Path) -> None:
    scene, to = _Scene(runtime, tmp_path), Rules("down")
    with serving(to, tmp_path):
        outcome, runtime, plan, bench = await scene.done(REAL["list"], to)
        assert outcome.ok and to.sent == 1, outcome.summary
        with pytest.raises(Unsupported, match="wasn't read after it"):
            await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, bench.context("a1"))
