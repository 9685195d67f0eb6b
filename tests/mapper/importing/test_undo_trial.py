"""The trial of derived ways back: it passes what is right, and none of many that are made wrong, nor any on services
that do otherwise than their document says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from mapper.importing import derived_undo, operation_shapes, simulated_service
from mapper.importing.openapi import read_document
from mapper.importing.operation import Op
from mapper.importing.simulated_service import Service
from mapper.importing.undo_evidence import Evidence
from mapper.importing.undo_trial import Trial, holds, run
from policies.jsonvalue import JsonObject
from policies.services import Expect, UndoTemplate
from tests.mapper.importing.undo_ops import ID, TEXT, YES, op, thing, written
from tests.mapper.importing.undo_specs import SPECS, document

Pair = tuple[Op, UndoTemplate, Mapping[str, Op]]


def tell() -> Iterator[int]:
    return simulated_service.numbers()


def derived(raw: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """A document's derived ways back, before they are tried."""
    found: list[Pair] = []

    def derive(ops: Any) -> dict[str, UndoTemplate]:
        known = Evidence(tuple(ops))
        changes = [(one, derived_undo._of(known, one)) for one in known.ops if one.http != "GET"]
        found.extend((one, undo, known.read_as(one)) for one, undo in changes if undo is not None)
        return {}

    monkeypatch.setattr(operation_shapes, "derive", derive)
    read_document(raw, "x", "x.json", "0" * 64)
    return found


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    return [pair for name in sorted(SPECS) for pair in derived(document(name), monkeypatch)]


def test_those_of_the_labelled_set_pass(pairs: list[Pair]) -> None:
    assert len(pairs) > 60
    assert [one.id for one, undo, by in pairs if not holds(one, undo, by, tell())] == []


# ---- made wrong


def _no_guard(undo: UndoTemplate) -> UndoTemplate | None:
    if undo.guard is None or undo.restores:
        return None
    return replace(undo, guard=replace(undo.guard, expect=(Expect(op="status", value=[200, 204, 404, 410]),)))


def _no_look(undo: UndoTemplate) -> UndoTemplate | None:
    if undo.verify is None or undo.restores:
        return None
    return replace(undo, verify=replace(undo.verify, expect=(Expect(op="status", value=[200, 204, 404, 410]),)))


def _another(undo: UndoTemplate) -> UndoTemplate | None:
    """It aims at something else."""
    (call,) = undo.calls
    aimed = {name: "another" for name, value in call.arguments.items() if isinstance(value, str) and name != "site"}
    return replace(undo, calls=(replace(call, arguments={**call.arguments, **aimed}),)) if aimed else None


def _nothing(undo: UndoTemplate) -> UndoTemplate | None:
    (call,) = undo.calls
    return replace(undo, calls=(replace(call, arguments={}),)) if call.arguments else None


def _one_less(undo: UndoTemplate) -> UndoTemplate | None:
    """A field isn't written back."""
    (call,) = undo.calls
    body = call.arguments.get("body")
    if not isinstance(body, dict) or len(body) < 2:
        return None
    return replace(undo, calls=(replace(call, arguments={**call.arguments, "body": dict(list(body.items())[1:])}),))


def _elsewhere(undo: UndoTemplate) -> UndoTemplate | None:
    """The thing is looked for in an envelope that no answer has."""
    return replace(undo, around="nowhere.") if undo.restores else None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "wrong", [_no_guard, _no_look, _another, _nothing, _one_less, _elsewhere], ids=lambda one: one.__name__.strip("_")
)
def test_what_is_made_wrong_does_not_pass(
    wrong: Callable[[UndoTemplate], UndoTemplate | None], pairs: list[Pair]
) -> None:
    made = [(one, bad, by) for one, undo, by in pairs if (bad := wrong(undo)) is not None]
    assert len(made) >= 5
    assert [one.id for one, bad, by in made if holds(one, bad, by, tell())] == []


# ---- services that do otherwise: the undo must see it


class Soft(Service):
    """Deletes nothing, and says that it did."""

    def handle(self, op: Op, arguments: JsonObject) -> tuple[int, Any]:
        return (204, None) if op.http == "DELETE" else Service.handle(self, op, arguments)


class Lying(Service):
    """Answers a change well and changes nothing."""

    def handle(self, op: Op, arguments: JsonObject) -> tuple[int, Any]:
        there = {place: dict(thing) for place, thing in self.things.items()}
        said = Service.handle(self, op, arguments)
        if op.http in ("PUT", "PATCH", "POST") and there:
            self.things = there if len(there) == len(self.things) else self.things
        return said


class Resetting(Service):
    """Sets what a change doesn't name to something else."""

    def handle(self, op: Op, arguments: JsonObject) -> tuple[int, Any]:
        said = Service.handle(self, op, arguments)
        if op.http == "PATCH" or (op.http == "POST" and said[0] == 200):
            for place, thing in self.things.items():
                named = arguments.get("body", arguments)
                left = [name for name in thing if name not in named and not name.lower().endswith("id")]
                self.things[place] = {**thing, **{name: self._other(thing[name]) for name in left}}
        return said


class Renaming(Service):
    """Answers with another id than the one that it made."""

    def shown(self, op: Op, thing: dict[str, Any], names: Any = None) -> Any:
        said = Service.shown(self, op, thing, names)
        if op.http == "POST" and isinstance(said, dict) and "id" in said:
            said["id"] = f"other-{said['id']}"
        return said


class Forgetful(Service):
    """Shows a thing without the last of its fields, and loses that in each change."""

    def look(self, op: Op, place: str, arguments: JsonObject) -> tuple[int, Any]:
        status, said = Service.look(self, op, place, arguments)
        return status, dict(list(said.items())[:-1]) if isinstance(said, dict) and said else said


class Doubling(Service):
    """Makes two where one is asked for."""

    def make(self, op: Op, arguments: JsonObject, body: Mapping[str, Any]) -> tuple[int, Any]:
        Service.make(self, op, arguments, body)
        return Service.make(self, op, arguments, body)


class Hiding(Service):
    """Lists nothing of what it made."""

    def look(self, op: Op, place: str, arguments: JsonObject) -> tuple[int, Any]:
        status, said = Service.look(self, op, place, arguments)
        return status, said[:-1] if isinstance(said, list) else said


def _came(pairs: list[Pair], service: type[Service]) -> set[str]:
    """The operations whose undo believes that it worked, and left something else than what was there."""
    wrong = set()
    for one, undo, by in pairs:
        for on in (False, True):
            for whole in (True, False):
                seen = run(one, undo, by, tell(), service, on=on, whole=whole)
                if seen is Trial.WRONG and not _stopped(one, undo, by, service, on, whole):
                    wrong.add(one.id)
    return wrong


def _stopped(one: Op, undo: UndoTemplate, by: Mapping[str, Op], service: type[Service], on: bool, whole: bool) -> bool:
    """Whether the undo itself said that it didn't go well."""
    return run(one, undo, by, tell(), service, on=on, whole=whole, meanwhile="ignored") is Trial.REFUSED


@pytest.mark.parametrize("service", [Soft, Lying, Renaming, Forgetful])
def test_on_a_service_that_does_otherwise_it_is_seen(service: type[Service], pairs: list[Pair]) -> None:
    assert _came(pairs, service) == set()


def test_on_services_that_do_otherwise_not_everything_passes(pairs: list[Pair]) -> None:
    """The control: each of them does something that these ways back can't cope with."""
    for service in (Soft, Lying, Resetting, Renaming, Forgetful):
        assert any(not holds(one, undo, by, tell(), service) for one, undo, by in pairs), service


def test_what_a_list_shows_otherwise_does_not_pass(pairs: list[Pair]) -> None:
    listed = [(one, undo, by) for one, undo, by in pairs if undo.made]
    assert len(listed) >= 3 and all(holds(one, undo, by, tell()) for one, undo, by in listed)
    assert [one.id for one, undo, by in listed if holds(one, undo, by, tell(), Doubling)] == []
    hidden = [(one, undo, by) for one, undo, by in listed if undo.made == "$"]
    assert hidden and [one.id for one, undo, by in hidden if holds(one, undo, by, tell(), Hiding)] == []


# ---- what a document says of values in values


def test_what_is_read_must_be_what_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers are read as people, and written by their names: written back as they are read, they'd be refused."""
    person = thing(id=ID, name=TEXT)
    schemas = {
        "Tag": thing(id=ID, name=TEXT, color=TEXT, followers={"type": "array", "items": person}),
        "TagInput": thing(["name"], name=TEXT, color=TEXT, followers={"type": "array", "items": TEXT}),
        "Post": thing(id=ID, name=TEXT, owner=person, open=YES),
        "PostInput": thing(["name"], name=TEXT, owner=thing(name=TEXT), open=YES),
    }
    ops = {
        "GET /tags/{id}": op(answer="Tag"),
        "PUT /tags/{id}": op(body="TagInput", answer="Tag", codes=[200, 404]),
        "PATCH /tags/{id}": op(body="TagInput", answer="Tag"),
        "GET /posts/{id}": op(answer="Post"),
        "PUT /posts/{id}": op(body="PostInput", answer="Post", codes=[200, 404]),
    }
    found = {one.id: undo for one, undo, _ in derived(written("tags", schemas, ops), monkeypatch)}
    assert "PUT /tags/{id}" not in found
    assert found["PATCH /tags/{id}"].fields == ("color", "name")  # one of the followers has no way back
    assert "PUT /posts/{id}" in found  # the parts that can be written are all shown


def test_an_object_with_a_type_of_its_own_hides_no_other_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts can't be put back one by one, so that a call with it has no way back. One without it has."""
    tag = "@odata.type"
    schemas = {
        "Post": thing([tag], **{tag: TEXT, "id": ID, "body": thing([tag], **{tag: TEXT, "text": TEXT}), "title": TEXT})
    }
    ops = {"GET /posts/{id}": op(answer="Post"), "PATCH /posts/{id}": op(body="Post", answer="Post")}
    ((one, undo, by),) = derived(written("posts", schemas, ops), monkeypatch)
    assert holds(one, undo, by, tell())
    assert not holds(one, replace(undo, fields=(tag, "body")), by, tell())


def test_what_a_service_sets_is_no_part_of_what_a_patch_puts_back(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = {"Post": thing(id=ID, created=TEXT, title=TEXT)}
    ops = {"GET /posts/{id}": op(answer="Post"), "PATCH /posts/{id}": op(body="Post", answer="Post")}
    ((_, undo, _),) = derived(written("posts", schemas, ops), monkeypatch)
    assert undo.fields == ("title",)


def test_a_field_that_is_not_written_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kind` is what services set by themselves, as a rule. Where a PUT takes it, leaving it out would lose it."""
    schemas = {"Box": thing(id=ID, kind=TEXT, size=TEXT), "BoxInput": thing(kind=TEXT, size=TEXT)}
    ops = {
        "GET /boxes/{id}": op(answer="Box"),
        "PUT /boxes/{id}": op(body="BoxInput", answer="Box", codes=[200, 404]),
    }
    ((one, undo, by),) = derived(written("boxes", schemas, ops), monkeypatch)
    kept = {"body": {"size": "$pre.size?-"}, "id": "$request.id"}
    assert holds(one, undo, by, tell())
    assert not holds(one, replace(undo, calls=(replace(undo.calls[0], arguments=kept),)), by, tell())


def test_a_document_that_makes_too_much_work_gets_no_way_back(pairs: list[Pair]) -> None:
    one, undo, by = pairs[0]
    assert holds(one, undo, by, iter(range(10_000))) and not holds(one, undo, by, iter(range(3)))
