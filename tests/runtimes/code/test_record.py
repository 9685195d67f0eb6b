"""The record of what left, and what was refused: read back as it was written, and as undo needs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.actions import UndoClass
from policies.errors import Unsupported
from policies.reversions import NoReversions
from runtimes.code import record
from runtimes.code.record import Record, Sent, arguments_of, permits_of
from runtimes.code.refused import MOST, Refusals, method_at
from runtimes.code.run import Report, _Watch
from runtimes.code.undo import reversed_
from runtimes.gateway.plan import Exchange, Refusal, SentRequest
from tests.runtimes.code.support import CATALOG, DRIVE, GITHUB, SLACK, context, plan
from tests.runtimes.rest.support import DiskRecords

POST, CREATE = "slack.chat.postMessage", "github.issues.create"
MADE = plan("print()", POST, CREATE, accounts=(SLACK, GITHUB))
PERMITS = {permit.method_id: (place, permit) for place, permit in enumerate(permits_of(MADE))}


def passed(**changes: Any) -> SentRequest:
    return SentRequest(**{"rule": "rule-0", "slots": {}, "query": (), "body": {}, "size": 2, **changes})


def exchange(body: Any, status: int = 200, request: str = "rule-0#1") -> Exchange:
    return Exchange(request=request, status=status, well=200 <= status < 300, body=body)


def test_what_was_acted_on_is_the_paths_word_whatever_the_body_calls_so() -> None:
    permit = PERMITS[CREATE][1]
    body = {"title": "T", "owner": "victim", "repo": "other"}
    arguments, whole = arguments_of(passed(slots={"owner": "acme", "repo": "tool"}, body=body), permit, CATALOG)
    assert (arguments["owner"], arguments["repo"], whole) == ("acme", "tool", True)


def test_an_argument_that_stands_in_two_places_is_not_known() -> None:
    twice = passed(query=(("channel", "C1"),), body={"channel": "C2", "text": "x"})
    assert not arguments_of(twice, PERMITS[POST][1], CATALOG)[1]
    assert not arguments_of(passed(query=(("channel", "C1"), ("channel", "C2"))), PERMITS[POST][1], CATALOG)[1]


def test_arguments_are_those_that_the_catalog_knows_by_their_type() -> None:
    permit = PERMITS[CREATE][1]
    said = passed(slots={"owner": "acme", "repo": "tool"}, query=(("per_page", "5"),), body={"title": "T", "x": 1})
    arguments, whole = arguments_of(said, permit, CATALOG)
    assert arguments == {"owner": "acme", "repo": "tool", "title": "T"}
    assert whole


@pytest.mark.promise(57)
def test_a_body_with_a_file_in_it_was_not_read_whole() -> None:
    body = {"channel": "C1", "text": "x"}
    assert arguments_of(passed(body=body, file=True), PERMITS[POST][1], CATALOG) == (body, False)
    assert arguments_of(passed(body=body), PERMITS[POST][1], CATALOG) == (body, True)  # the control


def test_a_body_that_is_one_argument_is_taken_whole() -> None:
    permit = PERMITS[CREATE][1]
    github = CATALOG.service("github")
    method = github.methods["issues.create"]
    schema = {"type": "object", "properties": {"owner": {"type": "string"}, "issue": {"type": "object"}}}
    whole = replace(method, parameters=schema, locations={"owner": "path", "issue": "whole"})
    catalog = Catalog.of([replace(github, methods={**github.methods, "issues.create": whole})])
    said = passed(slots={"owner": "acme"}, body={"title": "T", "owner": "in the body"})
    arguments, _ = arguments_of(said, permit, catalog)
    assert arguments == {"owner": "acme", "issue": {"title": "T", "owner": "in the body"}}


@pytest.mark.parametrize(
    ("body", "size", "whole"), [({"a": 1}, 7, True), (None, 0, True), (None, 9, False), (None, -1, False)]
)
def test_what_wasn_t_read_is_known_not_to_be_whole(body: Any, size: int, whole: bool) -> None:
    assert arguments_of(passed(body=body, size=size), PERMITS[POST][1], CATALOG)[1] is whole


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    records = DiskRecords(tmp_path)
    sent = Sent(number=0, request="rule-0#1", permit=0, arguments={"channel": "C"}, whole=True)
    record.note_sent(records, sent)
    kept = record.load(records)
    assert kept is not None
    assert kept.sent == [sent]
    assert [one.number for one in kept.unsettled] == [0]
    answer = record.answer_of(
        exchange({"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}), PERMITS[POST][1], CATALOG
    )
    record.note_answer(records, 0, answer)
    kept = record.load(records)
    assert kept is not None
    assert kept.answers == {0: answer}
    assert kept.done(0)
    assert kept.unsettled == ()


def test_a_service_that_fails_with_status_200_did_not_do_it() -> None:
    answer = record.answer_of(exchange({"ok": False, "error": "x"}), PERMITS[POST][1], CATALOG)
    assert not answer.well
    assert not answer.doubtful


def test_a_server_that_broke_down_leaves_it_open() -> None:
    assert record.answer_of(exchange(None, 502), PERMITS[POST][1], CATALOG).doubtful


def test_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    records = DiskRecords(tmp_path)
    for number in range(3):
        record.note_sent(records, Sent(number=number, request="r", permit=0, arguments={"text": "secret"}, whole=True))
        record.note_answer(records, number, record.answer_of(exchange({"ok": True}), PERMITS[POST][1], CATALOG))
    record.forget(records)
    record.forget(records)
    assert record.load(records) is None
    assert all(b"secret" not in path.read_bytes() for path in tmp_path.iterdir())


def kept(*requests: tuple[str, Any], whole: bool = True) -> record.Record:
    made = record.Record()
    for number, (method, body) in enumerate(requests):
        place, permit = PERMITS[method]
        arguments = (
            {"owner": "acme", "repo": "tool", "title": "T"} if method == CREATE else {"channel": "C0OPS", "text": "x"}
        )
        made.sent.append(Sent(number=number, request="r", permit=place, arguments=arguments, whole=whole))
        if body is not None:
            made.answers[number] = record.answer_of(exchange(body), permit, CATALOG)
    return made


def test_only_what_went_well_is_reversed_and_newest_first() -> None:
    both = kept(
        (POST, {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}),
        (POST, {"ok": False, "error": "x"}),
        (POST, {"ok": True, "channel": "C0OPS", "ts": "1700000003.000100"}),
        (POST, None),
    )
    back = reversed_(MADE, both, context(SLACK, GITHUB), CATALOG, NoReversions())
    undone = [step.arguments["ts"] for step in back.steps if step.role == "undo"]
    assert undone == ["1700000003.000100", "1700000001.000100"]
    assert back.stuck == {}


def test_what_was_taken_back_isn_t_taken_back_again() -> None:
    one = kept((POST, {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}))
    one.undone = [0]
    assert reversed_(MADE, one, context(SLACK, GITHUB), CATALOG, NoReversions()).steps == ()


def test_an_account_that_is_gone_is_said() -> None:
    with pytest.raises(Unsupported, match="is gone"):
        reversed_(
            MADE,
            kept((POST, {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"})),
            context(GITHUB),
            CATALOG,
            NoReversions(),
        )


def test_an_answer_without_what_undo_needs_stops_all_of_it() -> None:
    back = reversed_(MADE, kept((POST, {"ok": True})), context(SLACK, GITHUB), CATALOG, NoReversions())
    assert set(back.stuck) == {0}


@pytest.mark.promise(57)
def test_a_request_whose_body_flowed_through_unread_stops_all_of_it() -> None:
    flowed = kept((POST, {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}), whole=False)
    back = reversed_(MADE, flowed, context(SLACK, GITHUB), CATALOG, NoReversions())
    assert back.steps == ()
    assert "unread" in back.stuck[0]


@pytest.mark.promise(65)
def test_what_may_have_overwritten_stops_all_of_it() -> None:
    """The undo of an insert would delete what was there before."""
    program = "h = {'Prefer': 'resolution=merge-duplicates'}"
    made = plan(program, POST, CREATE, accounts=(SLACK, GITHUB))
    posted = kept((POST, {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}))
    back = reversed_(made, posted, context(SLACK, GITHUB), CATALOG, NoReversions())
    assert back.steps == () and "the header Prefer" in back.stuck[0]


def test_the_same_refusal_is_counted_and_there_is_an_end_to_different_ones() -> None:
    found = Refusals()
    same = Refusal(reason="no", method="GET", target="https://a.example/x")
    assert [found.add(same) for _ in range(3)] == [True, False, False]
    for number in range(MOST * 2):
        found.add(Refusal(reason="no", method="GET", target=f"https://a.example/{number}"))
    assert len(found.told({}, CATALOG)) == MOST
    assert found.count == MOST * 2 + 3


@pytest.mark.parametrize(
    ("method", "target", "call"),
    [
        ("POST", "https://slack.com/api/chat.delete", "slack.chat.delete"),
        ("GET", "https://slack.com/api/chat.delete", ""),
        ("POST", "https://evil.example/api/chat.delete", ""),
        ("POST", "https://slack.com/other/chat.delete", ""),
        ("DELETE", "https://www.googleapis.com/drive/v3/files/trash", "google_drive.files.emptyTrash"),
        ("DELETE", "https://www.googleapis.com/drive/v3/files/abc", "google_drive.files.delete"),
        ("POST", "nonsense:// \u202e", ""),
    ],
)
def test_a_refused_request_is_named_as_the_catalog_has_it(method: str, target: str, call: str) -> None:
    accounts = {("slack", "work"): SLACK, ("google_drive", "work"): DRIVE}
    assert method_at(method, target, accounts, CATALOG) == call


def test_the_plan_of_these_tests_can_be_taken_back() -> None:
    assert MADE.undo_class is UndoClass.COMPENSATING


@pytest.mark.promise(57)
async def test_what_a_repeated_request_is_answered_with_is_kept_as_the_first_ones_answer(tmp_path: Path) -> None:
    """As a library does: the first answer is lost on the way, and the same is sent again with the same key."""
    records = DiskRecords(tmp_path)
    place, permit = PERMITS[POST]
    noted: list[str] = []
    own = replace(context(SLACK, records=records), note=lambda kind, facts: noted.append(kind))
    watch = _Watch({permit.rule.id: (place, permit)}, own, Record(), Report(), CATALOG, dry=False)
    for request in ("rule-0#1", "rule-0#2"):
        left = passed(rule=permit.rule.id, body={"channel": "C0OPS", "text": "x"}, keys=("goex-1",))
        await watch.sending(request, "POST https://slack.com/api/chat.postMessage", left)
        answer = exchange(
            {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100"}, 502 if request.endswith("1") else 200, request
        )
        await watch.answered(replace(answer, replayed=request.endswith("2")))
    kept = record.load(records)
    assert kept is not None and [one.keys for one in kept.sent] == [("goex-1",)] * 2
    assert [kept.done(one.number) for one in kept.sent] == [True, False]
    assert not kept.unsettled and noted == ["request", "answer"] * 2
    back = reversed_(MADE, kept, context(SLACK), CATALOG, NoReversions())
    assert not back.stuck
    assert {step.call for step in back.steps} == {0}


@pytest.mark.promise(57)
async def test_of_a_very_large_answer_what_undo_reads_is_kept(tmp_path: Path) -> None:
    records = DiskRecords(tmp_path)
    place, permit = PERMITS[POST]
    own = replace(context(SLACK, records=records), note=lambda kind, facts: None)
    watch = _Watch({permit.rule.id: (place, permit)}, own, Record(), Report(), CATALOG, dry=False)
    left = passed(rule=permit.rule.id, body={"channel": "C0OPS", "text": "x"})
    await watch.sending("rule-0#1", "POST https://slack.com/api/x", left)
    said = {"ok": True, "channel": "C0OPS", "ts": "1700000001.000100", "message": {"text": "x" * 400_000}}
    await watch.answered(exchange(said))
    kept = record.load(records)
    assert kept is not None and (kept.answers[0].whole, kept.answers[0].body) == (False, None)
    back = reversed_(MADE, kept, context(SLACK), CATALOG, NoReversions())
    assert [step.arguments["ts"] for step in back.steps if step.role == "undo"] == ["1700000001.000100"]
    assert not back.stuck
