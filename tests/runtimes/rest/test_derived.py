"""Derived ways back at work: undo(do(x)) leaves a stateful service as it was, and a third party's change is never lost.

By a small interpreter in place of container and gateway, which judges as the gateway does, for many sequences.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.actions import Plan, UndoClass
from policies.errors import Unsupported
from policies.reversions import Standing
from runtimes.rest.outcomes import forward
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import CallRecord
from runtimes.rest.run import Report
from runtimes.rest.undo import planned_steps, undo_steps, why_left
from runtimes.sandbox.contract import Profile
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.derived import (
    ACCOUNT,
    Kept,
    carry,
    catalog_of,
    do,
    made_catalog,
    names,
    service,
)
from tests.runtimes.rest.support import Bench, Hit, calls
from tests.services.apis.notes import Notes


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return made_catalog(tmp_path_factory.mktemp("catalog"))


# ---- many sequences, by an interpreter

TEXTS = st.text(alphabet='abcé\n$"{}', max_size=6)
FIELDS = st.fixed_dictionaries(
    {}, optional={"title": TEXTS, "text": TEXTS, "labels": st.lists(st.sampled_from("xyz"), max_size=3)}
)
IDS = st.sampled_from(["n1", "n2"])
CALLS = st.one_of(
    st.tuples(st.just("notes.post"), TEXTS.map(lambda title: {"body": {"title": title, "text": "t"}})),
    st.tuples(st.just("notes.patch"), st.builds(lambda id, body: {"id": id, "body": body}, IDS, FIELDS)),
    st.tuples(
        st.just("notes.put"),
        st.builds(lambda id, title, rest: {"id": id, "body": {**rest, "title": title}}, IDS, TEXTS, FIELDS),
    ),
    st.tuples(st.just("notes.delete"), IDS.map(lambda id: {"id": id})),
    st.tuples(st.sampled_from(["notes.archive.post", "notes.unarchive.post"]), IDS.map(lambda id: {"id": id})),
    st.tuples(
        st.sampled_from(["user.starred.put", "user.starred.delete"]),
        st.sampled_from("ab").map(lambda repo: {"owner": "o", "repo": repo}),
    ),
)


@settings(max_examples=60)
@given(made=st.lists(CALLS, min_size=1, max_size=5))
def test_undo_brings_back_what_could_be_seen(made: Any, catalog: Catalog, tmp_path_factory: Any) -> None:
    """Whole, or nothing of it: an action whose undo can't be planned or compared leaves all as it is."""
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    before = to.state()
    plan, call_record = do([(spelled[name], arguments) for name, arguments in made], to, catalog, bench)
    between = to.state()
    try:
        steps = undo_steps(plan, call_record, catalog, bench.context("a1").accounts)
    except Unsupported:
        assert to.state() == between
        return
    own = CallRecord()
    stopped = carry(steps, to, own)
    if stopped is not None and stopped.role == "guard":
        # Two calls on one thing: the newer is taken back, the older compares and stays. Never a wrong value.
        assert own.sent or to.state() == between
        return
    assert stopped is None
    assert to.state() == before


@settings(max_examples=60)
@given(one=CALLS, field=st.sampled_from(["title", "text"]))
def test_one_call_is_always_taken_back_or_refused(
    one: Any, field: str, catalog: Catalog, tmp_path_factory: Any
) -> None:
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    before = to.state()
    plan, call_record = do([(spelled[one[0]], one[1])], to, catalog, bench)
    with suppress(Unsupported):
        assert carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord()) is None
        assert to.state() == before


class Finding(Notes):
    """A POST with the title of a note that is there answers with that one, and with 200."""

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        if hit.method == "POST" and parts == ["notes"]:
            for id, note in self.notes.items():
                if note.get("title") == hit.body.get("title"):
                    self.change(id, text=hit.body["text"])
                    return 200, self.notes[id]
        return super()._handle(hit, parts)


def finding() -> Finding:
    made = Finding()
    made.add(title="one", text="first")
    return made


@pytest.mark.parametrize("title", ["new", "one"])
def test_what_a_call_only_found_is_not_deleted(catalog: Catalog, tmp_path: Path, title: str) -> None:
    """Its document says 201 of what it makes."""
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), finding()
    before = to.state()
    body = {"title": title, "text": "t"}
    plan, call_record = do([(names(catalog)["notes.post"], {"body": body})], to, catalog, bench)
    assert plan.undo_class is UndoClass.COMPENSATING, "nobody knows beforehand"
    if title == "new":
        carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
        assert to.state() == before
        return
    with pytest.raises(Unsupported, match="may have been there before"):
        undo_steps(plan, call_record, catalog, bench.context("a1").accounts)
    assert [note["title"] for note in to.notes.values()] == ["one"]


@pytest.mark.parametrize("title", ["new", "one"])
def test_the_outcome_says_that_it_was_only_found(catalog: Catalog, tmp_path: Path, title: str) -> None:
    plan, call_record = do(
        [(names(catalog)["notes.post"], {"body": {"title": title, "text": "t"}})],
        finding(), catalog, Bench(tmp_path / "records", (ACCOUNT,)),
    )  # fmt: skip
    left = why_left(plan, call_record)
    assert bool(left) is (title == "one")
    outcome = forward(planned_steps(plan), call_record, Report(), catalog, left=left)
    assert outcome.ok and outcome.left is (title == "one")
    assert ("It can't be taken back: " in outcome.summary) is (title == "one")


# ---- the same service, with its things in envelopes and a slash behind its paths


class Enveloped(Notes):
    """Takes and answers notes as `{"data": …}`; archiving and PATCH take what they did."""

    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.method in ("POST", "PUT") and isinstance(hit.body, dict) and "data" in hit.body:
            hit = replace(hit, body=hit.body["data"])
        status, said = super().handle(hit)
        return status, {"data": said, "meta": {"at": self.clock}} if isinstance(said, dict) and "id" in said else said


@pytest.fixture(scope="module")
def enveloped(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("enveloped")
    made = document("notes")
    schemas = made["components"]["schemas"]
    for name in ("Note", "NoteInput"):
        inner = {"$ref": f"#/components/schemas/{name}"}
        schemas[f"One{name}"] = {"type": "object", "required": ["data"], "properties": {"data": inner}}
    text = json.dumps(made["paths"])
    for name in ("Note", "NoteInput"):
        text = text.replace(f'schemas/{name}"', f'schemas/One{name}"')
    made["paths"] = {f"{path}/": item for path, item in json.loads(text).items()}
    (folder / "notes.json").write_text(json.dumps(made))
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


IN_ENVELOPES = st.one_of(
    st.tuples(st.just("POST /notes/"), TEXTS.map(lambda title: {"body": {"data": {"title": title, "text": "t"}}})),
    st.tuples(
        st.just("PUT /notes/{id}/"),
        st.builds(lambda id, title, rest: {"id": id, "body": {"data": {**rest, "title": title}}}, IDS, TEXTS, FIELDS),
    ),
    st.tuples(st.just("PATCH /notes/{id}/"), st.builds(lambda id, body: {"id": id, "body": body}, IDS, FIELDS)),
    st.tuples(st.just("DELETE /notes/{id}/"), IDS.map(lambda id: {"id": id})),
    st.tuples(
        st.sampled_from(["POST /notes/{id}/archive/", "POST /notes/{id}/unarchive/"]), IDS.map(lambda id: {"id": id})
    ),
)


@settings(max_examples=60)
@given(one=IN_ENVELOPES, other=st.sampled_from(["n1", "n2"]), between=st.booleans())
def test_things_in_envelopes_are_taken_back_or_refused(
    one: Any, other: str, between: bool, enveloped: Catalog, tmp_path_factory: Any
) -> None:
    spelled = {method.origin_id: method for method in enveloped.methods()}
    assert spelled[one[0]].undo is not None
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = Enveloped()
    to.add(title="one", text="first", labels=["x"])
    to.add(title="two")
    before = to.state()
    plan, call_record = do([(spelled[one[0]].name, one[1])], to, enveloped, bench)
    if between and other in to.notes:
        to.change(other, text="somebody else's")
    with suppress(Unsupported):
        stopped = carry(undo_steps(plan, call_record, enveloped, bench.context("a1").accounts), to, CallRecord())
        assert stopped is None or stopped.role in ("guard", "pre")
        if stopped is None and not between:
            assert to.state() == before
        if between and other in to.notes:
            assert to.notes[other]["text"] == "somebody else's"


# ---- settings: put as a whole, with an answer or without one


class Alarms(Notes):
    """One user's settings and alarm. What a PUT doesn't say becomes its default."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"theme": "dark", "mail": True, "version": 1}
        self.alarm: dict[str, Any] = {"sound": "bell", "on": True}

    def state(self) -> Any:
        return {name: self.settings[name] for name in ("theme", "mail")}, dict(self.alarm)

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        name = parts[-1]
        if hit.method == "PUT" and name == "settings":
            version = self.settings["version"] + 1
            self.settings = {"theme": hit.body["theme"], "mail": hit.body.get("mail", False), "version": version}
        elif hit.method == "PUT":
            self.alarm = {"sound": hit.body.get("sound", "none"), "on": hit.body.get("on", False)}
            return 204, None
        return 200, self.settings if name == "settings" else self.alarm


@pytest.fixture(scope="module")
def alarms(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("settings")
    (folder / "settings.json").write_text(json.dumps(document("settings")))
    import_openapi(folder / "catalog.db", folder / "settings.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


PUTS = st.one_of(
    st.tuples(
        st.just("PUT /users/{user}/settings"),
        st.fixed_dictionaries({"theme": TEXTS}, optional={"mail": st.booleans()}),
    ),
    st.tuples(
        st.just("PUT /users/{user}/alarm"),
        st.fixed_dictionaries({}, optional={"sound": st.sampled_from(["bell", "horn"]), "on": st.booleans()}),
    ),
)


@pytest.mark.promise(65)
@settings(max_examples=80)
@given(one=PUTS, between=st.sampled_from(["", "theme", "mail", "sound", "on"]))
def test_settings_are_put_back_or_left(one: Any, between: str, alarms: Catalog, tmp_path_factory: Any) -> None:
    spelled = {method.origin_id: method for method in alarms.methods()}
    bench, to = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,)), Alarms()
    before = to.state()
    plan, call_record = do([(spelled[one[0]].name, {"user": "u", "body": one[1]})], to, alarms, bench)
    mine = to.settings if one[0].endswith("settings") else to.alarm
    other = {"theme": "other", "mail": not to.settings["mail"], "sound": "other", "on": not to.alarm["on"]}
    if between in mine:
        mine[between] = other[between]  # somebody else's
    left = to.state()
    try:
        stopped = carry(undo_steps(plan, call_record, alarms, bench.context("a1").accounts), to, CallRecord())
    except Unsupported:
        # Without an answer, a call that doesn't say all of it has no way back, and that is said before it runs.
        assert one[0].endswith("alarm") and len(one[1]) < 2
        assert to.state() == left
        return
    if between in mine:
        assert stopped is not None and stopped.role == "guard" and to.state() == left
    else:
        assert stopped is None and to.state() == before


# ---- reads that show what they are asked for, and bodies that must name a type


class Letters(Notes):
    """Letters as OData serves them: a note is shown only where it is asked for by name."""

    def __init__(self, note: str | None) -> None:
        super().__init__()
        self.letter: dict[str, Any] = {"id": "l1", "subject": "first", "seen": False, "note": note}
        self.asked: list[Any] = []

    def state(self) -> Any:
        return dict(self.letter)

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        if hit.method == "PATCH":
            assert hit.body["@odata.type"] == "#mail.letter"
            self.letter.update({name: value for name, value in hit.body.items() if name != "@odata.type"})
            return 200, {"@odata.type": "#mail.letter", **self.letter}
        asked = hit.query.get("$select")
        self.asked.append(asked)
        names = asked.split(",") if isinstance(asked, str) else asked or ["id", "subject", "seen"]
        return 200, {name: self.letter[name] for name in names if name in self.letter}


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return catalog_of(tmp_path_factory.mktemp("mail"), "mail")


LETTER = st.fixed_dictionaries(
    {}, optional={"subject": TEXTS, "note": st.none() | TEXTS, "seen": st.booleans(), "files": st.just([])}
)


@pytest.mark.promise(65)
@settings(max_examples=60)
@given(written=LETTER, note=st.none() | TEXTS, between=st.sampled_from(["", "subject", "note"]))
def test_what_is_shown_only_when_asked_for_is_put_back(
    written: dict[str, Any], note: str | None, between: str, letters: Catalog, tmp_path_factory: Any
) -> None:
    name = next(method.name for method in letters.methods() if method.origin_id == "PATCH /letters/{letter-id}")
    bench, to = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,)), Letters(note)
    before = to.state()
    body = {"@odata.type": "#mail.letter", **written}
    plan, call_record = do([(name, {"letter-id": "l1", "body": body})], to, letters, bench)
    if between:
        to.letter[between] = "somebody else's"
    left = to.state()
    try:
        stopped = carry(undo_steps(plan, call_record, letters, bench.context("a1").accounts), to, CallRecord())
    except Unsupported:
        assert not written or "files" in written  # nothing of it, or what no read shows
        assert to.state() == left
        return
    assert all(asked for asked in to.asked)
    if between in written:
        assert stopped is not None and stopped.role == "guard" and to.state() == left
    elif not between:
        assert stopped is None and to.state() == before


@pytest.mark.promise(65)
@settings(max_examples=60)
@given(one=CALLS)
def test_a_third_partys_change_in_between_stays(one: Any, catalog: Catalog, tmp_path_factory: Any) -> None:
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    plan, call_record = do([(spelled[one[0]], one[1])], to, catalog, bench)
    changed = False
    for id, note in to.notes.items():  # another writes what this one wrote, and more
        to.change(id, title="somebody else's", text="somebody else's", labels=["w"], archived=not note["archived"])
        changed = True
    if one[0] == "notes.delete":
        return  # nothing is there to be changed
    to.stars ^= {("o", "a"), ("o", "b")}
    left = to.state()
    with suppress(Unsupported):
        stopped = carry(undo_steps(plan, call_record, catalog, bench.context("a1").accounts), to, CallRecord())
        assert stopped is not None and stopped.role == "guard" and changed
    assert to.state() == left


# ---- what the prompt says


def test_the_prompt_says_where_it_comes_from(catalog: Catalog, tmp_path: Path) -> None:
    bench, spelled, kept = Bench(tmp_path, (ACCOUNT,)), names(catalog), Kept()

    def plan(name: str, arguments: dict[str, Any]) -> Plan:
        action = calls((f"notes.{spelled[name]}", arguments))
        return assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x", kept)

    first = plan("notes.patch", {"id": "n1", "body": {"title": "x"}})
    assert first.undo_class is UndoClass.COMPENSATING
    assert "derived from the service's document, unproven" in first.undo_text
    assert any("$.title (if it is there)" in line for line in first.lines)
    assert {need.why for need in first.needs} == {"action", "pre-read", "read-back", "undo"}
    (undo,) = first.undo["calls"]
    kept.known[undo["pair"]] = Standing.PROVEN
    second = plan("notes.patch", {"id": "n1", "body": {"title": "x"}})
    assert "derived from the service's document, and is proven" in second.undo_text
    kept.known[undo["pair"]] = Standing.FAILED
    third = plan("notes.patch", {"id": "n1", "body": {"title": "x"}})
    assert (third.undo_class, third.undo["calls"]) == (UndoClass.IRREVERSIBLE, [])
    assert "failed once, so it isn't used again" in third.undo_text
    gone = plan("notes.delete", {"id": "n1"})
    assert "with another id" in gone.undo_text and "archived" in gone.undo_text
