"""Which programs stand on which: as planned calls do, and on all of the service where something isn't known."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goex.engine.timeline import meeting
from policies.actions import Plan
from policies.typed_json import to_json
from runtimes.base import Footprint
from runtimes.code import footprint as footprints
from runtimes.code import record
from runtimes.code.footprint import footprint
from runtimes.code.record import Record, permits_of
from runtimes.code.run import Report, _Watch
from runtimes.gateway.plan import Exchange, SentRequest
from runtimes.rest.footprint import footprint as footprint_of_calls
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.undo import planned_steps
from runtimes.sandbox.contract import Profile
from tests.runtimes.code.support import CATALOG, GITHUB, SLACK, context, plan
from tests.runtimes.rest.support import Bench, DiskRecords, calls

HUB, CHAT = "calls/github/api.github.com", "calls/slack/slack.com"
_IN_PATH = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Left:
    """One request of a program: a method, its arguments, and what came of it (status 0: nothing came back)."""

    method: str
    arguments: Mapping[str, Any]
    answer: Any
    status: int = 200
    beside: tuple[tuple[str, Any], ...] = ()  # fields that the catalog doesn't have
    query: tuple[tuple[str, str], ...] = ()
    size: int = 9


def issue(number: int, repo: str = "tool") -> dict[str, Any]:
    return {"owner": "acme", "repo": repo, "issue_number": number}


def created(number: int, **more: Any) -> Left:
    body = {"id": 9000 + number, "number": number, "title": "T", "state": "open", "user": {"id": 1, "login": "ann"}}
    return Left("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"}, body, 201, **more)


def closed(number: int, **more: Any) -> Left:
    body = {"id": 9000 + number, "number": number, "state": "closed"}
    return Left("github.issues.close", issue(number), body, **{"beside": (("state", "closed"),), **more})


def commented(number: int, id: int) -> Left:
    return Left("github.comments.create", {**issue(number), "body": "x"}, {"id": id, "user": {"id": 1}}, 201)


def posted(ts: str, **more: str) -> Left:
    body = {"ok": True, "channel": "C0OPS", "ts": ts}
    return Left("slack.chat.postMessage", {"channel": "C0OPS", "text": "x", **more}, body)


def gone(repo: str) -> Left:
    return Left("github.repos.delete", {"owner": "acme", "repo": repo}, None, 204, size=0)


CHANGES = (
    "github.issues.create", "github.issues.close", "github.comments.create", "github.repos.delete", "github.stars.add",
    "slack.chat.postMessage", "slack.chat.delete",
)  # fmt: skip


@cache
def planned(*methods: str) -> Plan:
    return plan("print()", *methods, accounts=(SLACK, GITHUB))


def kept(made: Plan, *requests: Left) -> Record:
    """The record of a run in which these left."""
    permits = {permit.method_id: (place, permit) for place, permit in enumerate(permits_of(made))}

    async def run(folder: Path) -> Record:
        own = replace(context(SLACK, GITHUB, records=DiskRecords(folder)), note=lambda kind, facts: None)
        watch = _Watch(
            {permit.rule.id: (place, permit) for place, permit in permits.values()},
            own,
            Record(),
            Report(),
            CATALOG,
            dry=False,
        )
        for number, one in enumerate(requests):
            method, rule = CATALOG.method(one.method), permits[one.method][1].rule.id
            slots = {name: str(one.arguments[name]) for name in _IN_PATH.findall(method.path)}
            body = {name: value for name, value in one.arguments.items() if name not in slots} | dict(one.beside)
            known = body if one.size >= 0 and body else None
            sent = SentRequest(rule=rule, slots=slots, query=one.query, body=known, size=one.size if body else 0)
            await watch.sending(f"{rule}#{number}", "POST https://x.example/", sent)
            await watch.answered(
                Exchange(request=f"{rule}#{number}", status=one.status, well=200 <= one.status < 300, body=one.answer)
            )
        found = record.load(own.records)
        assert found is not None
        return found

    with TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder)))


def ran(*requests: Left, reads: Sequence[str] = ()) -> Footprint:
    """What a program wrote and read that sent these, and may have called `reads`."""
    made = planned(*CHANGES, *reads)
    return footprint(made, kept(made, *requests), CATALOG)


def as_calls(*requests: Left) -> Footprint:
    """The same as calls of one action."""
    with TemporaryDirectory() as folder:
        asked = calls(*((one.method, dict(one.arguments)) for one in requests))
        made = assess_calls(asked, Bench(Path(folder), (SLACK, GITHUB)).context("a1"), CATALOG, Profile(), "sha256:x")
    call_record = CallRecord(sent=[f"call-{number}" for number in range(len(requests))])
    for number, one in enumerate(requests):
        well = 200 <= one.status < 300
        call_record.answers[f"call-{number}"] = Answer(
            status=one.status, well=well, failed="", body=one.answer, text=""
        )
    for step in planned_steps(made):
        if step.role == "pre":
            call_record.answers[step.id] = Answer(status=200, well=True, failed="", body={}, text="")
    return footprint_of_calls(made, call_record, CATALOG)


def stands_on(later: Footprint, earlier: Footprint) -> bool:
    return bool(later.writes and (meeting(later.writes, earlier.writes) or meeting(later.reads, earlier.writes)))


@pytest.mark.promise(62)
def test_programs_on_different_issues_are_independent_and_on_the_same_one_are_not() -> None:
    first, second = ran(created(7)), ran(created(8))
    assert first.writes == {f"{HUB}/7"}
    assert not stands_on(second, first) and not stands_on(first, second)
    assert stands_on(ran(closed(7)), first) and stands_on(ran(commented(7, 55)), first)
    assert not stands_on(ran(closed(8)), first) and not stands_on(ran(commented(8, 55)), first)
    assert not stands_on(ran(closed(8), posted("1.1")), first)  # of several requests, none is about it
    assert stands_on(ran(closed(8), closed(7)), first)


@pytest.mark.promise(62)
def test_a_program_and_a_call_meet_as_two_calls_do() -> None:
    assert stands_on(as_calls(closed(7)), ran(created(7))) and stands_on(ran(closed(7)), as_calls(created(7)))
    assert not stands_on(as_calls(closed(8)), ran(created(7))) and not stands_on(ran(closed(8)), as_calls(created(7)))
    reply, other = ran(posted("3.3", thread_ts="1.1")), ran(posted("2.2"))
    assert stands_on(reply, as_calls(posted("1.1"))) and not stands_on(other, as_calls(posted("1.1")))


@pytest.mark.promise(62)
def test_what_is_around_a_thing_meets_it_as_with_calls() -> None:
    """A repository and what is in it, a comment and its issue."""
    starred = Left("github.stars.add", {"owner": "acme", "repo": "tool"}, None, 204, size=0)
    pairs = [
        (gone("tool"), starred), (created(7), starred), (gone("tool"), created(7)), (created(7), gone("tool")),
        (commented(7, 55), created(7)), (closed(7), commented(7, 55)), (gone("other"), starred),
    ]  # fmt: skip
    for later, earlier in pairs:
        as_two = stands_on(as_calls(later), as_calls(earlier))
        assert stands_on(ran(later), ran(earlier)) is as_two, (later, earlier)
    assert stands_on(ran(gone("tool")), ran(starred)) and stands_on(ran(created(7)), ran(gone("tool")))
    assert not stands_on(ran(gone("other")), ran(starred))


UNKNOWN = {
    "no answer": replace(closed(8), status=0, answer=None),
    "a server that broke down": replace(closed(8), status=502, answer=None),
    "an answer that doesn't say what was made": replace(created(8), answer={"id": 9008}),
    "an answer too large to keep": replace(created(8), answer={"number": 8, "body": "x" * 300_000}),
    "a body that flowed through unread": replace(created(8), size=-1),
    "a field that isn't an argument": created(8, beside=(("parent_issue_id", 7),)),
    "a fixed field with another value": closed(8, beside=(("state", "open"),)),
    "an argument that is said in two ways": closed(8, query=(("issue_number", "7"),)),
    "an argument that is said in two ways, in the body": closed(8, beside=(("state", "closed"), ("issue_number", 7))),
    "a parameter that isn't an argument": created(8, query=(("parent", "7"),)),
    "a value that no planned call has": Left("slack.chat.delete", {"channel": "C0OPS", "ts": 1.1}, {"ok": True}),
}


@pytest.mark.promise(62)
@pytest.mark.parametrize("request_", UNKNOWN.values(), ids=UNKNOWN)
def test_what_isn_t_known_is_all_of_the_service(request_: Left) -> None:
    found = ran(created(7), request_)
    whole = HUB if request_.method.startswith("github") else CHAT
    assert whole in found.writes and whole in found.reads
    assert stands_on(found, as_calls(created(9) if whole == HUB else posted("9.9")))
    assert stands_on(as_calls(closed(9) if whole == HUB else posted("9.9")), found)


@pytest.mark.promise(62)
def test_any_text_may_be_sent_and_an_argument_said_twice_alike() -> None:
    assert ran(posted("1.1", text="https://wiki.example [docs] look")).writes == {f"{CHAT}/1.1"}
    assert ran(closed(8, query=(("issue_number", "8"),))).writes == ran(closed(8)).writes != {HUB}


@pytest.mark.promise(62)
def test_a_record_of_an_older_goex_is_all_of_the_service() -> None:
    made = planned("github.issues.create")
    found = kept(made, created(7))
    old = [{name: value for name, value in to_json(one).items() if name != "more"} for one in found.sent]
    found.sent = [record.Sent(**one) for one in old]
    assert footprint(made, found, CATALOG).writes == {HUB}


def test_a_record_that_is_gone_is_all_that_the_program_may_have_called() -> None:
    made = planned("github.issues.create", "slack.users.list")
    assert footprint(made, None, CATALOG) == Footprint(reads=frozenset({HUB, CHAT}), writes=frozenset({HUB}))


def test_a_refused_request_wrote_nothing_and_one_that_may_have_read_read_all() -> None:
    refused = ran(replace(closed(7), status=404, answer={"message": "Not Found"}))
    assert not refused.writes and f"{HUB}/7" in refused.reads and HUB not in refused.reads
    odd = ran(replace(closed(7), beside=(("x", 1),), status=422, answer={"message": "x"}))
    assert not odd.writes and odd.reads == {HUB}
    looked = ran(created(7), reads=("slack.users.list",))
    assert looked.reads >= {CHAT, f"{HUB}/acme"} and HUB not in looked.reads and looked.writes == {f"{HUB}/7"}


def test_another_host_of_the_service_is_the_service_too() -> None:
    program = "import requests\nrequests.post('https://www.slack.com/api/chat.postMessage', json={'channel': C})\n"
    made = plan(program, accounts=(replace(SLACK, origins=(*SLACK.origins, SLACK.origins[0].parse(
        "https://www.slack.com"))),))  # fmt: skip
    assert {permit.rule.origin.host for permit in permits_of(made)} == {"www.slack.com"}
    found = footprint(made, kept(made, posted("1.1")), CATALOG)
    assert found.writes == {CHAT, "calls/slack/www.slack.com"}


def test_there_is_an_end_to_looking_at_them_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprints, "MOST", 2)
    assert ran(created(7), created(8)).writes == {f"{HUB}/7", f"{HUB}/8"}
    assert ran(created(7), created(8), closed(8)).writes == {HUB}


numbers = st.integers(1, 6)
known = st.one_of(
    st.builds(created, numbers),
    st.builds(closed, numbers),
    st.builds(commented, numbers, st.integers(50, 56)),
    st.builds(lambda n: posted(f"{n}.1"), numbers),
    st.builds(lambda n, m: posted(f"{n}.1", thread_ts=f"{m}.1"), numbers, numbers),
)


@pytest.mark.promise(62)
@settings(max_examples=25)
@given(st.lists(known, min_size=1, max_size=5))
def test_a_program_wrote_what_its_requests_would_have_written_as_calls(requests: list[Left]) -> None:
    program, planned_so = ran(*requests), as_calls(*requests)
    assert program.writes == planned_so.writes
    named = {name for one in requests for name in map(str, one.arguments.values())}
    assert {name.rpartition("/")[2] for name in program.reads} >= {name for name in named if name.isalnum()}
    assert program.reads <= planned_so.reads  # which look at what was there before, too


@pytest.mark.promise(62)
@settings(max_examples=25)
@given(st.lists(known, min_size=1, max_size=4), st.sampled_from(list(UNKNOWN.values())), st.data())
def test_what_is_not_known_of_one_request_hides_behind_no_other(
    requests: list[Left], unknown: Left, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(requests)))
    found = ran(*requests[:place], unknown, *requests[place:])
    alone = ran(*requests)
    assert (HUB if unknown.method.startswith("github") else CHAT) in found.writes
    assert found.writes >= alone.writes and found.reads >= alone.reads
