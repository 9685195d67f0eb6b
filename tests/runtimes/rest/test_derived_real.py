"""Derived ways back through container and gateway, against a server that keeps state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.actions import Revert, UndoClass
from policies.errors import Conflict, Unsupported
from policies.reversions import Result, Use
from runtimes.rest.records import CallRecord
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.undo import planned_steps
from tests.runtimes.rest.derived import (
    Kept,
    made_catalog,
    names,
    run,
    service,
    take_back,
)
from tests.runtimes.rest.support import Bench, Hit, account, calls, serving
from tests.services.apis.notes import Notes


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return made_catalog(tmp_path_factory.mktemp("catalog"))


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    made = service()
    with serving(made, tmp_path):
        yield made


@pytest.fixture
def bench(notes: Notes, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "records", (account("notes", notes.url, ca_pem=notes.ca_pem, private=True),))


@pytest.fixture
def runtime(runtime: RestRuntime, catalog: Catalog) -> RestRuntime:
    return replace(runtime, catalog=catalog, reversions=Kept())


REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("notes.post", {"body": {"title": "new", "text": "x"}}),
    "patch": ("notes.patch", {"id": "n1", "body": {"title": "new", "labels": []}}),
    "put": ("notes.put", {"id": "n1", "body": {"title": "new"}}),
    "delete": ("notes.delete", {"id": "n1"}),
    "archive": ("notes.archive.post", {"id": "n1"}),
    "unstar": ("user.starred.delete", {"owner": "o", "repo": "a"}),
}


@pytest.mark.sampled(4)
@pytest.mark.docker
@pytest.mark.parametrize("name", sorted(REAL))
async def test_through_the_container(name: str, runtime: RestRuntime, notes: Notes, bench: Bench) -> None:
    before = notes.state()
    plan = await run(runtime, bench, *REAL[name])
    assert notes.state() != before
    outcome = await take_back(runtime, bench, plan)
    assert outcome.ok, outcome.summary
    assert notes.state() == before
    (undo,) = plan.undo["calls"]
    kept = runtime.reversions
    assert isinstance(kept, Kept)
    assert kept.uses == [Use(pair=undo["pair"], action="u1", call=0, result=Result.WORKED)]


@pytest.mark.docker
async def test_a_third_party_in_between_is_a_conflict(runtime: RestRuntime, notes: Notes, bench: Bench) -> None:
    plan = await run(runtime, bench, *REAL["patch"])
    notes.change("n1", title="somebody else's")
    left, sent = notes.state(), len(notes.writes())
    with pytest.raises(Conflict) as caught:
        await take_back(runtime, bench, plan)
    assert any("somebody else's" in line for line in caught.value.difference)
    assert (notes.state(), len(notes.writes())) == (left, sent)
    assert isinstance(runtime.reversions, Kept) and runtime.reversions.uses == []  # the pair isn't to blame


@pytest.mark.docker
async def test_a_pair_that_fails_once_is_never_used_again(runtime: RestRuntime, notes: Notes, bench: Bench) -> None:
    """The service takes the undo and doesn't do it: the read-back sees it, and that was the last time."""
    plan = await run(runtime, bench, *REAL["archive"])
    notes.override = lambda hit: (200, notes.notes["n1"]) if hit.path.endswith("unarchive") else None
    outcome = await take_back(runtime, bench, plan)
    assert not outcome.ok and "read-back" in outcome.summary
    kept = runtime.reversions
    assert isinstance(kept, Kept)
    assert [use.result for use in kept.uses] == [Result.FAILED]
    notes.override = lambda hit: None
    sent = len(notes.hits)
    with pytest.raises(Unsupported, match="failed once"):
        await take_back(runtime, bench, plan, by="u2")
    assert len(notes.hits) == sent
    again = await runtime.assess(
        calls((f"notes.{names(runtime.catalog)['notes.archive.post']}", {"id": "n2"})), bench.context("a2")
    )
    assert again.undo_class is UndoClass.IRREVERSIBLE


HOSTILE: dict[str, Any] = {
    "a huge text": {"title": "x" * 300_000},
    "a number": {"title": 7},
    "an object": {"title": {"$ref": ["call-0", "$.id"]}},
    "a reference": {"title": {"$from": 0, "path": "$.id"}},
    "control characters": {"text": "\x1b[2J\u202e"},
    "a template": {"title": "$request.id"},
}


@pytest.mark.sampled(4)
@pytest.mark.docker
@pytest.mark.parametrize("name", sorted(HOSTILE))
async def test_what_was_read_before_is_only_ever_a_value(
    name: str, runtime: RestRuntime, notes: Notes, bench: Bench
) -> None:
    """What can't be put back by its own schema isn't changed at all: an undo was promised."""
    notes.notes["n1"].update(HOSTILE[name])
    before = notes.state()
    if name in ("a huge text", "a number", "an object", "a reference"):
        await refused_before_it_left(
            runtime, bench, "notes.patch", {"id": "n1", "body": {"title": "new", "text": "new"}}
        )
        assert (notes.state(), notes.writes()) == (before, [])
        return
    plan = await run(runtime, bench, "notes.patch", {"id": "n1", "body": {"title": "new", "text": "new"}})
    outcome = await take_back(runtime, bench, plan)
    assert outcome.ok and notes.state() == before


async def refused_before_it_left(runtime: RestRuntime, bench: Bench, name: str, arguments: dict[str, Any]) -> None:
    plan = await runtime.assess(calls((f"notes.{names(runtime.catalog)[name]}", arguments)), bench.context("a1"))
    assert plan.undo_class is UndoClass.COMPENSATING
    await runtime.prepare(plan, bench.context("a1"))
    outcome = await runtime.execute(plan, bench.context("a1"))
    assert (outcome.ok, outcome.touched) == (False, False)
    assert "wasn't sent" in outcome.summary and "couldn't be taken back as promised" in outcome.summary


@pytest.mark.docker
async def test_a_delete_whose_undo_cannot_be_made_is_not_sent(runtime: RestRuntime, notes: Notes, bench: Bench) -> None:
    """Asked for again, it is asked for as what can't be taken back."""
    notes.notes["n1"]["labels"] = {"of": "another type than the document says"}
    before = notes.state()
    await refused_before_it_left(runtime, bench, "notes.delete", {"id": "n1"})
    assert (notes.state(), notes.writes()) == (before, [])
    again = await runtime.assess(
        calls((f"notes.{names(runtime.catalog)['notes.delete']}", {"id": "n1"})), bench.context("a2")
    )
    assert again.undo_class is UndoClass.IRREVERSIBLE


@pytest.mark.docker
async def test_what_is_made_again_is_said_to_be_another_object(
    runtime: RestRuntime, notes: Notes, bench: Bench
) -> None:
    for name, anew in (("delete", True), ("patch", False), ("create", False)):
        plan = await run(runtime, bench, *(REAL[name][0], {**REAL[name][1], **({"id": "n2"} if anew else {})}), id=name)
        said = (await take_back(runtime, bench, plan, id=name, by=f"u-{name}")).summary
        assert ("a new object" in said, "as it was before" in said) == (anew, not anew), said


@pytest.mark.docker
async def test_what_the_service_refused_changed_nothing(runtime: RestRuntime, notes: Notes, bench: Bench) -> None:
    action = calls((f"notes.{names(runtime.catalog)['notes.archive.post']}", {"id": "gone"}))
    plan = await runtime.assess(action, bench.context("a1"))
    await runtime.prepare(plan, bench.context("a1"))
    outcome = await runtime.execute(plan, bench.context("a1"))
    assert (outcome.ok, outcome.touched) == (False, False) and "404" in outcome.summary


@pytest.mark.docker
async def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    runtime: RestRuntime, notes: Notes, bench: Bench
) -> None:
    lost: list[Hit] = []

    def drops(hit: Hit) -> bool:
        first = hit.method == "POST" and not lost
        if first:
            lost.append(hit)
        return first

    notes.drop = drops
    plan = await run(runtime, bench, *REAL["create"])
    posts = [hit for hit in notes.hits if hit.method == "POST"]
    assert len(posts) == 2 and len({hit.headers["idempotency-key"] for hit in posts}) == 1
    assert len(notes.notes) == 3  # made once
    assert (await take_back(runtime, bench, plan)).ok
    assert len(notes.notes) == 2


@pytest.mark.docker
async def test_without_a_key_a_lost_answer_is_not_asked_for_again(
    runtime: RestRuntime, notes: Notes, bench: Bench
) -> None:
    notes.drop = lambda hit: hit.method == "PATCH"
    action = calls((f"notes.{names(runtime.catalog)['notes.patch']}", {"id": "n1", "body": {"title": "new"}}))
    plan = await runtime.assess(action, bench.context("a1"))
    outcome = await runtime.execute(plan, bench.context("a1"))
    assert not outcome.ok and outcome.touched
    assert len(notes.writes()) == 1


@pytest.mark.docker
@pytest.mark.parametrize("keyed", [True, False])
async def test_what_is_made_again_is_not_made_twice(
    keyed: bool, runtime: RestRuntime, notes: Notes, bench: Bench, tmp_path: Path
) -> None:
    """The undo of a deletion was killed between its POST and the answer: run again, it makes the note once."""
    runtime = runtime if keyed else replace(runtime, catalog=made_catalog(tmp_path, keyed=False))
    plan = await run(runtime, bench, *REAL["delete"])
    revert = Revert(verb="undo", target="a1")
    revert_plan = await runtime.assess_revert(revert, plan, bench.context("a1"))
    post = next(step.request for step in planned_steps(revert_plan) if step.role == "undo")
    notes.handle(Hit("POST", "/notes", {}, post.body, {name.lower(): value for name, value in post.headers.items()}))
    CallRecord(sent=["undo-0-0"]).save(bench.context("u1").records)
    outcome = await runtime.execute_revert(revert, revert_plan, plan, bench.context("a1"), bench.context("u1"))
    assert [note["title"] for note in notes.notes.values()].count("one") == 1
    assert outcome.ok is keyed
    assert keyed or "could do it twice" in outcome.summary
