"""Derived ways back at work: undo(do(x)) leaves a stateful service as it was, and a third party's change is never lost.

First with a small interpreter in place of container and gateway, which judges as the gateway does, for many sequences;
then some of the same for real.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.actions import Plan, Revert, UndoClass
from policies.errors import Conflict, Unsupported
from policies.reversions import Result, Standing, Use
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.plan import Exchange
from runtimes.gateway.response_values import Answers, judge
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, Ledger
from runtimes.rest.references import literal
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.steps import Step
from runtimes.rest.undo import UndoImpossible, check_promise, planned_steps, undo_steps
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.support import Bench, Hit, account, calls, serving
from tests.services.apis.notes import Notes

KEYED = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}


def made_catalog(folder: Path, *, keyed: bool = True) -> Catalog:
    """The documents of the labelled set as one service, whose POST of notes takes a key (unless not `keyed`)."""
    made = document("notes")
    forge = document("forge")
    made["paths"] |= {path: item for path, item in forge["paths"].items() if path.startswith("/user/starred")}
    made["paths"]["/notes"]["post"]["parameters"] += [KEYED] * keyed
    (folder / "notes.json").write_text(json.dumps(made))
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes")
    return Catalog.open(folder / "catalog.db", alone=True)


def catalog_of(folder: Path, name: str) -> Catalog:
    """A document of the labelled set as the service `notes`."""
    (folder / f"{name}.json").write_text(json.dumps(document(name)))
    import_openapi(folder / "catalog.db", folder / f"{name}.json", "notes")
    return Catalog.open(folder / "catalog.db", alone=True)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return made_catalog(tmp_path_factory.mktemp("catalog"))


class Kept:
    """A reversion set in memory."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.known: dict[str, Standing] = {}

    def added(self, method_id: str) -> tuple[Any, ...]:
        return ()

    def standing(self, pair: str) -> Standing:
        return self.known.get(pair, Standing.UNPROVEN)

    def used(self, use: Use) -> None:
        self.uses.append(use)
        if use.result is Result.FAILED:
            self.known[use.pair] = Standing.FAILED
        elif use.result is Result.WORKED:
            self.known.setdefault(use.pair, Standing.PROVEN)


# ---- many sequences, by an interpreter

ACCOUNT = account("notes", "https://notes.example.org")
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


def service() -> Notes:
    made = Notes()
    made.add(title="one", text="first", labels=["x"])
    made.add(title="two")
    made.stars.add(("o", "a"))
    return made


def carry(steps: tuple[Step, ...], to: Notes, ledger: Ledger) -> Step | None:
    """Send steps in order until one doesn't go well, which is returned."""
    for step in steps:
        request = step.request
        path = "/" + "/".join(str(literal(part, ledger.answers)) for part in request.path)
        body = literal(request.body, ledger.answers)
        query = literal(request.query, ledger.answers)
        status, value = to.handle(Hit(request.method, path, query, copy.deepcopy(body), dict(request.headers)))
        known = Answers()
        for id, answer in ledger.answers.items():
            known.keep(id, answer.body)
        failed = judge(request.expect, status, copy.deepcopy(value), "json" if value is not None else "empty", known)
        ledger.answers[step.id] = Answer.of(
            Exchange(request=step.id, status=status, well=not failed, body=value, failed=failed), ()
        )
        if not step.read:
            ledger.sent.append(step.id)
        if failed:
            return step
    return None


def do(made: list[tuple[str, Any]], to: Notes, catalog: Catalog, bench: Bench) -> tuple[Plan, Ledger]:
    action = calls(*((f"notes.{name}", arguments) for name, arguments in made))
    plan = assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x")
    ledger = Ledger()
    carry(planned_steps(plan), to, ledger)
    return plan, ledger


def names(catalog: Catalog) -> dict[str, str]:
    """The names that the calls above stand for."""
    found = {method.origin_id: method.name for method in catalog.methods()}
    return {
        "notes.post": found["POST /notes"],
        "notes.patch": found["PATCH /notes/{id}"],
        "notes.put": found["PUT /notes/{id}"],
        "notes.delete": found["DELETE /notes/{id}"],
        "notes.archive.post": found["POST /notes/{id}/archive"],
        "notes.unarchive.post": found["POST /notes/{id}/unarchive"],
        "user.starred.put": found["PUT /user/starred/{owner}/{repo}"],
        "user.starred.delete": found["DELETE /user/starred/{owner}/{repo}"],
    }


@settings(max_examples=60, deadline=None)
@given(made=st.lists(CALLS, min_size=1, max_size=5))
def test_undo_brings_back_what_could_be_seen(made: Any, catalog: Catalog, tmp_path_factory: Any) -> None:
    """Whole, or nothing of it: an action whose undo can't be planned or compared leaves all as it is."""
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    before = to.state()
    plan, ledger = do([(spelled[name], arguments) for name, arguments in made], to, catalog, bench)
    between = to.state()
    try:
        steps = undo_steps(plan, ledger, catalog, bench.context("a1").accounts)
    except Unsupported:
        assert to.state() == between
        return
    own = Ledger()
    stopped = carry(steps, to, own)
    if stopped is not None and stopped.role == "guard":
        # Two calls on one thing: the newer is taken back, the older compares and stays. Never a wrong value.
        assert own.sent or to.state() == between
        return
    assert stopped is None
    assert to.state() == before


@settings(max_examples=60, deadline=None)
@given(one=CALLS, field=st.sampled_from(["title", "text"]))
def test_one_call_is_always_taken_back_or_refused(
    one: Any, field: str, catalog: Catalog, tmp_path_factory: Any
) -> None:
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    before = to.state()
    plan, ledger = do([(spelled[one[0]], one[1])], to, catalog, bench)
    with suppress(Unsupported):
        assert carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger()) is None
        assert to.state() == before


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
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes")
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


@settings(max_examples=60, deadline=None)
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
    plan, ledger = do([(spelled[one[0]].name, one[1])], to, enveloped, bench)
    if between and other in to.notes:
        to.change(other, text="somebody else's")
    with suppress(Unsupported):
        stopped = carry(undo_steps(plan, ledger, enveloped, bench.context("a1").accounts), to, Ledger())
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
    import_openapi(folder / "catalog.db", folder / "settings.json", "notes")
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
@settings(max_examples=80, deadline=None)
@given(one=PUTS, between=st.sampled_from(["", "theme", "mail", "sound", "on"]))
def test_settings_are_put_back_or_left(one: Any, between: str, alarms: Catalog, tmp_path_factory: Any) -> None:
    spelled = {method.origin_id: method for method in alarms.methods()}
    bench, to = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,)), Alarms()
    before = to.state()
    plan, ledger = do([(spelled[one[0]].name, {"user": "u", "body": one[1]})], to, alarms, bench)
    mine = to.settings if one[0].endswith("settings") else to.alarm
    other = {"theme": "other", "mail": not to.settings["mail"], "sound": "other", "on": not to.alarm["on"]}
    if between in mine:
        mine[between] = other[between]  # somebody else's
    left = to.state()
    try:
        stopped = carry(undo_steps(plan, ledger, alarms, bench.context("a1").accounts), to, Ledger())
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
@settings(max_examples=60, deadline=None)
@given(written=LETTER, note=st.none() | TEXTS, between=st.sampled_from(["", "subject", "note"]))
def test_what_is_shown_only_when_asked_for_is_put_back(
    written: dict[str, Any], note: str | None, between: str, letters: Catalog, tmp_path_factory: Any
) -> None:
    name = next(method.name for method in letters.methods() if method.origin_id == "PATCH /letters/{letter-id}")
    bench, to = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,)), Letters(note)
    before = to.state()
    body = {"@odata.type": "#mail.letter", **written}
    plan, ledger = do([(name, {"letter-id": "l1", "body": body})], to, letters, bench)
    if between:
        to.letter[between] = "somebody else's"
    left = to.state()
    try:
        stopped = carry(undo_steps(plan, ledger, letters, bench.context("a1").accounts), to, Ledger())
    except Unsupported:
        assert not written or "files" in written  # nothing of it, or what no read shows
        assert to.state() == left
        return
    assert all(asked for asked in to.asked)
    if between in written:
        assert stopped is not None and stopped.role == "guard" and to.state() == left
    elif not between:
        assert stopped is None and to.state() == before


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
    plan, ledger = do([(name, {"project": "p", "body": {"name": "new"}})], to, catalog, bench)
    if changed and what == "columns":
        to.columns["c1"]["name"] = "somebody else's"
    elif changed:
        to.labels["new"]["color"] = "somebody else's"
    left = to.state()
    stopped = carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger())
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


def put_flag(tmp_path: Path, to: Flags, what: str) -> tuple[Plan, Ledger, Catalog, Bench]:
    catalog, bench = catalog_of(tmp_path, "upserts"), Bench(tmp_path / "records", (ACCOUNT,))
    name = next(one.name for one in catalog.methods() if one.origin_id == f"PUT /{what}/{{key}}")
    plan, ledger = do([(name, {"key": "f", "body": {"on": True, "text": "mine"}})], to, catalog, bench)
    return plan, ledger, catalog, bench


@pytest.mark.promise(65)
@pytest.mark.parametrize("between", ["", "on", "text", "seen", "gone"])
@pytest.mark.parametrize("there", [False, True], ids=["made", "changed"])
@pytest.mark.parametrize("what", ["flags", "knobs"])
def test_what_a_put_made_is_deleted_and_what_it_changed_is_put_back(
    what: str, there: bool, between: str, tmp_path: Path
) -> None:
    to = Flags(there, "")
    before = to.state()
    plan, ledger, catalog, bench = put_flag(tmp_path, to, what)
    assert to.sent == 1 and "by notes.flags" in plan.undo_text.replace("knobs", "flags")
    assert "if nothing was there before" in plan.undo_text
    if between == "gone":
        del to.flags["f"]
    elif between:
        to.flags["f"][between] = {"on": False, "text": "theirs", "seen": 9}[between]
    left = to.state()
    stopped = carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger())
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
    plan, ledger, catalog, bench = put_flag(tmp_path, empty, "flags")
    (call,) = (step for step in planned_steps(plan) if step.role == "call")
    with pytest.raises(UndoImpossible, match="can't be told"):  # as it is asked before the call leaves
        check_promise(call, plan, ledger, catalog)
    left = empty.state()
    with pytest.raises(Unsupported, match="can't be told"):
        undo_steps(plan, ledger, catalog, bench.context("a1").accounts)
    assert empty.state() == left


@pytest.mark.promise(65)
def test_what_isnt_gone_after_all_is_said(tmp_path: Path) -> None:
    to = Flags(False, "stays")
    plan, ledger, catalog, bench = put_flag(tmp_path, to, "flags")
    stopped = carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger())
    assert stopped is not None and stopped.role == "verify"


@pytest.mark.promise(65)
def test_what_was_there_under_its_name_isnt_overwritten(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path, "elsewhere")
    name = next(one.name for one in catalog.methods() if one.origin_id == "POST /projects/{project}/labels")
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), Projects("old")
    before = to.state()
    _, ledger = do([(name, {"project": "p", "body": {"name": "old"}})], to, catalog, bench)
    assert not ledger.sent  # it stopped at the read before
    assert to.state() == before


@pytest.mark.promise(65)
@settings(max_examples=60, deadline=None)
@given(one=CALLS)
def test_a_third_partys_change_in_between_stays(one: Any, catalog: Catalog, tmp_path_factory: Any) -> None:
    spelled = names(catalog)
    bench = Bench(tmp_path_factory.mktemp("records"), (ACCOUNT,))
    to = service()
    plan, ledger = do([(spelled[one[0]], one[1])], to, catalog, bench)
    changed = False
    for id, note in to.notes.items():  # another writes what this one wrote, and more
        to.change(id, title="somebody else's", text="somebody else's", labels=["w"], archived=not note["archived"])
        changed = True
    if one[0] == "notes.delete":
        return  # nothing is there to be changed
    to.stars ^= {("o", "a"), ("o", "b")}
    left = to.state()
    with suppress(Unsupported):
        stopped = carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger())
        assert stopped is not None and stopped.role == "guard" and changed
    assert to.state() == left


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
    import_openapi(tmp_path / "catalog.db", tmp_path / "boards.json", "notes")
    catalog = Catalog.open(tmp_path / "catalog.db", alone=True)
    name = next(method.name for method in catalog.methods() if method.origin_id == "POST /boards")
    bench, to = Bench(tmp_path / "records", (ACCOUNT,)), Boards()
    plan, ledger = do([(name, {"body": {"name": "plans"}})], to, catalog, bench)
    to.cards += cards
    stopped = carry(undo_steps(plan, ledger, catalog, bench.context("a1").accounts), to, Ledger())
    assert (stopped.role if stopped is not None else "") == ("guard" if cards else "")
    assert to.boards == ({"b1": "plans"} if cards else {})


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


# ---- for real


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    made = service()
    with serving(made, tmp_path):
        yield made


@pytest.fixture
def bench(notes: Notes, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "records", (account("notes", notes.url, ca_pem=notes.ca_pem, private=True),))


@pytest.fixture
async def runtime(sandbox_image: str, tmp_path: Path, catalog: Catalog) -> AsyncIterator[RestRuntime]:
    sandbox = DockerSandbox("tests-derived", scratch_dir=tmp_path / "scratch")
    gateway = GatewayClient(tmp_path / "gateway")
    try:
        yield RestRuntime(sandbox, gateway, catalog, Profile(limits=Limits(seconds=30)), Kept())
    finally:
        await gateway.stop()
        await sandbox.close()


async def run(runtime: RestRuntime, bench: Bench, name: str, arguments: dict[str, Any], id: str = "a1") -> Plan:
    action = calls((f"notes.{names(runtime.catalog)[name]}", arguments))
    plan = await runtime.assess(action, bench.context(id))
    await runtime.prepare(plan, bench.context(id))
    outcome = await runtime.execute(plan, bench.context(id))
    assert outcome.ok, outcome.summary
    return plan


async def take_back(runtime: RestRuntime, bench: Bench, plan: Plan, id: str = "a1", by: str = "u1") -> Any:
    revert = Revert(verb="undo", target=id)
    revert_plan = await runtime.assess_revert(revert, plan, bench.context(id))
    return await runtime.execute_revert(revert, revert_plan, plan, bench.context(id), bench.context(by))


REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("notes.post", {"body": {"title": "new", "text": "x"}}),
    "patch": ("notes.patch", {"id": "n1", "body": {"title": "new", "labels": []}}),
    "put": ("notes.put", {"id": "n1", "body": {"title": "new"}}),
    "delete": ("notes.delete", {"id": "n1"}),
    "archive": ("notes.archive.post", {"id": "n1"}),
    "unstar": ("user.starred.delete", {"owner": "o", "repo": "a"}),
}


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
    Ledger(sent=["undo-0-0"]).save(bench.context("u1").records)
    outcome = await runtime.execute_revert(revert, revert_plan, plan, bench.context("a1"), bench.context("u1"))
    assert [note["title"] for note in notes.notes.values()].count("one") == 1
    assert outcome.ok is keyed
    assert keyed or "could do it twice" in outcome.summary
