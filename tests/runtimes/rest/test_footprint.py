"""Which actions of calls stand on which: by the ids that they used and were answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goex.engine.timeline import meeting
from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.actions import Plan
from runtimes.base import Footprint
from runtimes.rest.footprint import _above, footprint
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.undo import planned_steps
from runtimes.sandbox.contract import Profile
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.support import Bench, account, calls

ACCOUNTS = (account("slack", "https://slack.com/api"), account("github", "https://api.github.com"))
OPS = {"ok": True, "channel": "C0OPS"}


def answered(body: Any, status: int = 200, **more: Any) -> Answer:
    return Answer(status=status, well=status < 300, failed="", body=body, text="", **more)


def print_of(
    catalog: Catalog, tmp_path: Path, call: tuple[str, dict[str, Any]], body: Any, *, lost: bool = False
) -> Footprint:
    service = call[0].partition(".")[0]
    accounts = (*ACCOUNTS, account(service, f"https://{service}.example.org")) if service == "notes" else ACCOUNTS
    bench = Bench(tmp_path / "records", accounts)
    plan: Plan = assess_calls(calls(call), bench.context("a1"), catalog, Profile(), "sha256:x")
    call_record = CallRecord()
    for step in planned_steps(plan):
        if step.role == "call" and not step.read:
            call_record.sent.append(step.id)
        if not (lost and step.role == "call"):
            call_record.answers[step.id] = body if isinstance(body, Answer) else answered(body)
    return footprint(plan, call_record, catalog)


def stands_on(later: Footprint, earlier: Footprint) -> bool:
    return bool(meeting(later.writes, earlier.writes) or meeting(later.reads, earlier.writes))


def post(tmp_path: Path, ts: str, **more: str) -> Footprint:
    body = {**OPS, "ts": ts, "message": {"user": "U01", "text": "x"}}
    return print_of(
        Catalog.bundled(), tmp_path, ("slack.chat.postMessage", {"channel": "#ops", "text": "x", **more}), body
    )


def test_two_messages_are_independent_and_a_reply_is_not(tmp_path: Path) -> None:
    first, second = post(tmp_path, "1.1"), post(tmp_path, "2.2")
    assert first.writes == {"calls/slack/slack.com/1.1"}
    assert not stands_on(second, first) and not stands_on(first, second)
    reply = post(tmp_path, "3.3", thread_ts="1.1")
    assert stands_on(reply, first) and not stands_on(reply, second)


def test_a_deletion_stands_on_what_made_it(tmp_path: Path) -> None:
    first, second = post(tmp_path, "1.1"), post(tmp_path, "2.2")
    gone = print_of(Catalog.bundled(), tmp_path, ("slack.chat.delete", {"channel": "C0OPS", "ts": "1.1"}), OPS)
    assert stands_on(gone, first) and not stands_on(gone, second)


def test_a_new_channel_and_what_is_posted_there(tmp_path: Path) -> None:
    made = {"ok": True, "channel": {"id": "C0NEW", "name": "new", "creator": "U01"}}
    channel = print_of(Catalog.bundled(), tmp_path, ("slack.conversations.create", {"name": "new"}), made)
    assert channel.writes == {"calls/slack/slack.com/C0NEW"}
    body = {"ok": True, "channel": "C0NEW", "ts": "1.1"}
    there = print_of(Catalog.bundled(), tmp_path, ("slack.chat.postMessage", {"channel": "C0NEW", "text": "x"}), body)
    assert stands_on(there, channel)
    assert not stands_on(post(tmp_path, "2.2"), channel)


def test_what_isnt_known_is_all_of_it(tmp_path: Path) -> None:
    call = ("slack.chat.postMessage", {"channel": "#ops", "text": "x"})
    lost = print_of(Catalog.bundled(), tmp_path, call, OPS, lost=True)
    cut = print_of(Catalog.bundled(), tmp_path, call, answered(None, whole=False))
    silent = print_of(Catalog.bundled(), tmp_path, call, {"ok": True})
    for wide in (lost, cut, silent):
        assert "calls/slack/slack.com" in wide.writes
        assert stands_on(post(tmp_path, "1.1"), wide)
    bench = Bench(tmp_path / "records", ACCOUNTS)
    plan = assess_calls(calls(call), bench.context("a1"), Catalog.bundled(), Profile(), "sha256:x")
    assert footprint(plan, None, Catalog.bundled()).writes == {"calls/slack/slack.com"}


def test_a_refused_call_wrote_nothing(tmp_path: Path) -> None:
    call = ("slack.chat.postMessage", {"channel": "#ops", "text": "x"})
    assert not print_of(Catalog.bundled(), tmp_path, call, answered({"ok": False}, status=403)).writes


def test_a_list_reads_what_it_showed(tmp_path: Path) -> None:
    first, second = post(tmp_path, "1.1"), post(tmp_path, "2.2")
    shown = {"ok": True, "messages": [{"ts": "1.1", "text": "x"}]}
    read = print_of(Catalog.bundled(), tmp_path, ("slack.conversations.history", {"channel": "C0OPS"}), shown)
    assert not read.writes
    assert meeting(read.reads, first.writes) and not meeting(read.reads, second.writes)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "notes.json").write_text(json.dumps(document("notes")))
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


def test_paths_name_what_is_written(notes: Catalog, tmp_path: Path) -> None:
    names = {method.origin_id: method.id for method in notes.methods()}

    def made(id: str) -> dict[str, Any]:
        return {"id": id, "title": "x", "archived": False, "updated_at": "t"}

    def run(origin: str, arguments: dict[str, Any], body: Any) -> Footprint:
        return print_of(notes, tmp_path, (names[origin], arguments), body)

    first = run("POST /notes", {"body": {"title": "x"}}, answered(made("n1"), 201))
    second = run("POST /notes", {"body": {"title": "x"}}, answered(made("n2"), 201))
    patch = run("PATCH /notes/{id}", {"id": "n1", "body": {"title": "y"}}, made("n1"))
    other = run("PATCH /notes/{id}", {"id": "n2", "body": {"title": "y"}}, made("n2"))
    archive = run("POST /notes/{id}/archive", {"id": "n1"}, made("n1"))
    shared = run("POST /notes/{id}/share", {"id": "n1", "body": {"title": "x"}}, answered(None, 204))
    assert first.writes == patch.writes == archive.writes == {"calls/notes/notes.example.org/n1"}
    assert not stands_on(second, first) and not stands_on(other, patch)
    assert stands_on(patch, first) and stands_on(archive, patch) and stands_on(other, second)
    assert shared.writes == {"calls/notes/notes.example.org"}  # what sharing made isn't said


def test_names_with_slashes_reach_up_and_down() -> None:
    assert list(_above("projects/p/things/t")) == [
        "projects%2Fp%2Fthings%2Ft", "projects", "projects%2Fp", "projects%2Fp%2Fthings",
    ]  # fmt: skip
    assert "42" in set(_above("https://x.example/issues/42"))
    assert "" in set(_above("/reports/q1")), "the whole service: such paths are written in several ways"


@pytest.mark.parametrize(
    "text", ["https://x.example/issues/42 [1]", "https://x: see [here](y)/42/", "https://a.b℀c/42/"]
)
def test_a_text_that_only_begins_like_a_url_is_taken_apart_as_well(text: str) -> None:
    assert any("42" in name for name in list(_above(text))[1:])
