"""Calls to requests, without network: tables of what is sent, refused, needed, said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from policies.actions import ApiCalls, Plan, Revert, UndoClass
from policies.digest import digest
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, MissingValue, canonical
from policies.typed_json import from_json, to_json
from runtimes.gateway.plan import PlannedRequest, Ref
from runtimes.idempotency import action_key
from runtimes.rest.plan_text import step_lines
from runtimes.rest.planner import plan_calls
from runtimes.rest.plans import assess_calls, assess_redo
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import with_refs
from runtimes.rest.requests import bind, check_segment, check_values
from runtimes.rest.run import job_file
from runtimes.rest.steps import Step
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.derived import made_catalog
from tests.runtimes.rest.support import Bench, account, calls, declaring
from tests.runtimes.rest.test_hostile import WEIRD

CATALOG = Catalog.bundled()
ACCOUNTS = (
    account("slack", "https://slack.com/api"),
    account("github", "https://api.github.com"),
    account("matrix", "https://chat.example.org/base"),
)
BY_NAME = {(each.service, each.name): each for each in ACCOUNTS}
TITLE = ("github.issues.setTitle", {"owner": "acme", "repo": "tool", "issue_number": 7, "title": "T"})
LATER = (
    "github.issues.setTitle",
    {"owner": "acme", "repo": "tool", "issue_number": {"$from": 0, "path": "$.number"}, "title": "T"},
)


def requests(action: ApiCalls) -> list[PlannedRequest]:
    return [step.request for step in plan_calls(action, BY_NAME, CATALOG, "a1").steps]


def assess(action: ApiCalls, folder: Path, granted: frozenset[tuple[str, str, str]] = frozenset()) -> Plan:
    return assess_calls(action, Bench(folder, ACCOUNTS, granted=granted).context("a1"), CATALOG, Profile(), "sha256:x")


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("header", "value", "promised"),
    [
        ("Prefer", "resolution=merge-duplicates", False),
        ("Prefer", "return=representation", True),
        ("OpenAI-Beta", "assistants=v1", False),
        ("X-Upsert", "true", False),
        ("Slack-Version", "1", False),
        ("X-Request-Id", "r-1", True),
        ("If-None-Match", "*", True),
    ],
)
def test_a_header_that_may_ask_for_another_effect_leaves_no_way_back(header: str, value: str, promised: bool) -> None:
    """The undo of an insert would delete what was there before."""
    wanted = calls(("slack.chat.postMessage", {"channel": "C", "text": "t", header: value}))
    planned = plan_calls(wanted, BY_NAME, declaring(header), "a1").calls[0]
    assert planned.step.request.headers[header] == value
    assert (planned.undo is not None) is promised
    assert (f"its header {header} may ask for another effect" in planned.no_undo) is not promised


@pytest.mark.promise(65)
@pytest.mark.parametrize(("wanted", "promised"), [("return=minimal", False), ("return=representation", True)])
def test_a_way_back_that_reads_the_answer_wants_one(wanted: str, promised: bool) -> None:
    posting = calls(("slack.chat.postMessage", {"channel": "C", "text": "t", "Prefer": wanted}))
    planned = plan_calls(posting, BY_NAME, declaring("Prefer"), "a1").calls[0]
    assert (planned.undo is not None) is promised
    assert ("Prefer may leave out of the answer what it reads there" in planned.no_undo) is not promised


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("schema", "promised"),
    [
        ({"type": "string"}, False),
        ({"enum": ["overwrite", "keep"]}, False),
        ({"enum": ["overwrite"]}, True),
        ({"const": "overwrite"}, True),
    ],
)
def test_a_header_that_is_demanded_counts_unless_it_has_one_value(schema: JsonObject, promised: bool) -> None:
    """A document could call every header required."""
    slack = declaring("X-Write-Mode").service("slack")
    method = slack.methods["chat.postMessage"]
    required = [*method.parameters["required"], "X-Write-Mode"]
    properties = {**method.parameters["properties"], "X-Write-Mode": {"type": "string", **schema}}
    demanding = replace(method, parameters={**method.parameters, "properties": properties, "required": required})
    catalog = Catalog.of([replace(slack, methods={**slack.methods, "chat.postMessage": demanding})])
    wanted = calls(("slack.chat.postMessage", {"channel": "C", "text": "t", "X-Write-Mode": "overwrite"}))
    assert (plan_calls(wanted, BY_NAME, catalog, "a1").calls[0].undo is not None) is promised


@pytest.mark.promise(57)
def test_a_documents_own_key_is_ours_alone(tmp_path: Path) -> None:
    catalog = made_catalog(tmp_path, keyed=True)
    method = next(each for each in catalog.methods() if each.origin_id == "POST /notes")
    wanted = calls((method.id, {"body": {"title": "one"}}))
    at = {("notes", ""): account("notes", "https://notes.example.org")}
    (step,) = (planned.step for planned in plan_calls(wanted, at, catalog, "a1").calls)
    assert step.request.headers["Idempotency-Key"] == action_key("a1", 0)
    chosen = calls((method.id, {"body": {"title": "one"}, "Idempotency-Key": "k"}))
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        plan_calls(chosen, at, catalog, "a1")


@pytest.mark.promise(57)
def test_a_key_that_a_caller_chooses_leaves_no_way_back() -> None:
    """For a key that was used before, the service answers with what is there already, which undo would delete."""
    slack = declaring("X").service("slack")
    method = slack.methods["chat.postMessage"]
    for name in ("idempotency_key", "idempotencyKey", "client_token", "clientRequestToken", "requestId"):
        properties = {**method.parameters["properties"], name: {"type": "string"}}
        keyed = replace(method, parameters={**method.parameters, "properties": properties})
        catalog = Catalog.of([replace(slack, methods={**slack.methods, "chat.postMessage": keyed})])
        wanted = calls(("slack.chat.postMessage", {"channel": "C", "text": "t", name: "k"}))
        planned = plan_calls(wanted, BY_NAME, catalog, "a1").calls[0]
        assert planned.undo is None
        assert f"for a {name} that was used before" in planned.no_undo


def test_a_json_post() -> None:
    (request,) = requests(calls(("slack.chat.postMessage", {"channel": "#ops", "text": "hi"})))

    assert (request.id, request.method, str(request.origin)) == ("call-0", "POST", "https://slack.com")
    assert (request.base_path, request.path) == (("api",), ("chat.postMessage",))
    assert request.body == {"channel": "#ops", "text": "hi"}
    assert [(expect.op, expect.path, expect.value) for expect in request.expect] == [("equals", "$.ok", True)]
    assert request.attempts == 1


def test_a_read_with_a_query_and_defaults() -> None:
    (request,) = requests(calls(("slack.conversations.list", {"limit": 5})))

    assert request.query == {"limit": "5", "exclude_archived": "true"}
    assert request.body is None


def test_path_parameters_fixed_arguments_and_a_base_path() -> None:
    (request,) = requests(calls(("matrix.rooms.send", {"roomId": "!a/b:x", "body": "hi"})))

    key = action_key("a1", 0)
    assert request.base_path == ("base",)
    assert request.path == ("_matrix", "client", "v3", "rooms", "!a/b:x", "send", "m.room.message", key)
    assert request.body == {"body": "hi", "msgtype": "m.text"}


def test_a_pre_read_comes_before_its_call() -> None:
    made = requests(calls(TITLE, TITLE))

    assert [request.id for request in made] == ["pre-0", "call-0", "pre-1", "call-1"]
    assert [request.method for request in made] == ["GET", "PATCH"] * 2


def test_references_become_refs_in_the_path_the_body_and_the_pre_read() -> None:
    issue = ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"})
    made = requests(calls(issue, LATER))

    ref = Ref("call-0", "$.number")
    assert made[1].path == made[2].path == ("repos", "acme", "tool", "issues", ref)


def test_undo_refers_to_answers_pre_reads_and_requests() -> None:
    planned = plan_calls(calls(TITLE), BY_NAME, CATALOG, "a1").calls[0]

    assert planned.undo is not None
    assert [step.id for step in planned.undo.steps] == ["guard-0", "undo-0-0", "verify-0"]
    assert planned.undo.calls[0].arguments["title"] == Ref("pre-0", "$.title")
    assert planned.undo.calls[0].arguments["issue_number"] == 7
    assert planned.undo.guard is not None
    assert planned.undo.guard.request.expect[0].value == Ref("call-0", "$.title")
    assert planned.undo.verify is not None
    assert planned.undo.verify.request.attempts > 1
    assert planned.probe is not None
    assert planned.probe.request.optional


def test_what_may_be_absent_is_null_left_out_or_expected_to_be_absent() -> None:
    account_ = account("google_calendar", "https://www.googleapis.com/calendar/v3")
    wanted = calls(("google_calendar.events.patch", {"eventId": "event1", "location": "Here"}))
    plan = plan_calls(wanted, {("google_calendar", account_.name): account_}, CATALOG, "a1").calls[0]
    assert plan.undo is not None and plan.undo.verify is not None and plan.undo.guard is not None
    undo = plan.undo.calls[0]
    assert "sendUpdates" not in undo.arguments  # the request didn't say, so the undo doesn't
    assert undo.arguments["location"] == Ref("pre-0", "$.location", optional=True)
    assert from_json(Step, json.loads(canonical(to_json(undo))), "It") == undo
    before = {"etag": "1", "status": "confirmed", "start": {"date": "2026-05-08"}, "end": {"date": "2026-05-09"}}
    seen = {"pre-0": Answer(status=200, well=True, failed="", body=before, text="")}
    bound = bind(undo, seen, CATALOG, account_)
    assert bound.request.body["location"] is None and bound.request.body["start"] == before["start"]
    verify = bind(plan.undo.verify, seen, CATALOG, account_)
    assert [(e.path, e.op) for e in verify.request.expect][:3] == [
        ("$.summary", "absent"), ("$.description", "absent"), ("$.location", "absent"),
    ]  # fmt: skip
    with pytest.raises(MissingValue):  # an answer that wasn't kept whole may have had it
        bind(undo, {"pre-0": replace(seen["pre-0"], whole=False, body=None, captured=before)}, CATALOG, account_)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("github.issues.get", {"owner": "acme", "repo": "..", "issue_number": 1}),
        ("github.issues.get", {"owner": "acme", "repo": "a/../../user", "issue_number": 1}),
        ("github.issues.get", {"owner": ".", "repo": "tool", "issue_number": 1}),
        ("matrix.rooms.event", {"roomId": "!a:b", "eventId": "$x/../../../admin"}),
        ("matrix.rooms.event", {"roomId": "!a:b", "eventId": "$x\\..\\y"}),
        ("matrix.rooms.event", {"roomId": "!a:b", "eventId": "$x\n"}),
    ],
)
def test_what_could_leave_its_place_in_the_path_is_refused(method: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        requests(calls((method, arguments)))


@pytest.mark.parametrize(
    "bad",
    [
        {"$from": 1, "path": "$.number"},  # itself
        {"$from": 5, "path": "$.number"},
        {"$from": -1, "path": "$.number"},
        {"$from": True, "path": "$.number"},
        {"$from": 0},
        {"$from": 0, "path": "number"},
        {"$from": 0, "path": "$.number", "more": 1},
        {"$from": 0, "path": '$["\\q"]'},
        {"$ref": ["call-0", "$.number"]},
    ],
)
def test_what_is_no_reference_to_an_earlier_call_is_refused(bad: Any) -> None:
    first = ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"})
    with pytest.raises(InvalidInput):
        requests(calls(first, (LATER[0], {**LATER[1], "issue_number": bad})))


def test_the_arguments_as_a_whole_are_never_a_reference() -> None:
    """Else an answer would choose which arguments there are."""
    first = ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"})
    with pytest.raises(InvalidInput, match="stand for all arguments"):
        requests(calls(first, ("github.repos.list", {"$from": 0, "path": "$"})))


def test_a_path_that_json_cannot_spell_is_refused_as_input() -> None:
    with pytest.raises(InvalidInput, match="isn't a path"):
        with_refs({"$from": 0, "path": '$["\\q"]'}, 1)


def test_a_literal_that_looks_like_our_own_reference_is_refused() -> None:
    """In a value whose schema is open, `$ref` would read back as a reference."""
    step = plan_calls(calls(TITLE), BY_NAME, CATALOG, "a1").steps[1]
    for value in ({"$ref": ["call-0", "$"]}, [{"$ref": 1}], {"a": {"$ref": ["x", "y"], "b": 1}}):
        forged = Step(**{**{name: getattr(step, name) for name in step.__slots__}, "arguments": {"title": value}})
        with pytest.raises(InvalidInput, match=r"\$ref"):
            to_json(forged)


@pytest.mark.parametrize("kind", [kind for kind in WEIRD if kind != "float"])
def test_a_value_from_an_answer_must_fit_its_argument(kind: str) -> None:
    first = ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"})
    step = plan_calls(calls(first, LATER), BY_NAME, CATALOG, "a1").steps[-1]
    answer = Answer(status=201, well=True, failed="", body={"number": WEIRD[kind]}, text="")

    with pytest.raises(InvalidInput):
        check_values(step, {"call-0": answer}, CATALOG)


@pytest.mark.parametrize(
    "room", ["!a/b:x", "!a/../../admin:x", "!a\\..:x", "!" + "a" * 600 + ":x", "!a\n:x", {"$from": 0, "path": "$.x"}]
)
def test_a_text_from_an_answer_must_be_one_segment_of_the_path(room: Any) -> None:
    action = calls(
        ("matrix.rooms.create", {"name": "x"}),
        ("matrix.rooms.topic", {"roomId": {"$from": 0, "path": "$.room_id"}}),
    )
    step = plan_calls(action, BY_NAME, CATALOG, "a1").steps[-1]

    def check(value: Any) -> None:
        check_values(
            step, {"call-0": Answer(status=200, well=True, failed="", body={"room_id": value}, text="")}, CATALOG
        )

    check("!decent:x")
    with pytest.raises(InvalidInput):
        check(room)


def test_a_value_of_any_length_is_not_taken_where_the_schema_sets_no_bound() -> None:
    action = calls(
        ("slack.users.list", {}),
        ("slack.conversations.history", {"channel": "C0OPS1234", "oldest": {"$from": 0, "path": "$.ts"}}),
    )
    step = plan_calls(action, BY_NAME, CATALOG, "a1").steps[-1]

    def check(value: str) -> None:
        check_values(step, {"call-0": Answer(status=200, well=True, failed="", body={"ts": value}, text="")}, CATALOG)

    check("1.1")
    with pytest.raises(InvalidInput, match="70000"):
        check("1" * 70_000)


@pytest.mark.parametrize("value", [{"$from": 0, "path": "$.channel"}, {"a": 1}, "y" * 70_000, 5, None])
def test_a_value_from_an_answer_in_a_body_must_fit_too(value: Any) -> None:
    action = calls(
        ("slack.users.list", {}),
        ("slack.chat.postMessage", {"channel": {"$from": 0, "path": "$.channel"}, "text": "x"}),
    )
    step = plan_calls(action, BY_NAME, CATALOG, "a1").steps[-1]

    with pytest.raises(InvalidInput):
        check_values(
            step, {"call-0": Answer(status=200, well=True, failed="", body={"channel": value}, text="")}, CATALOG
        )


def test_a_decent_value_from_an_answer_passes() -> None:
    first = ("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"})
    step = plan_calls(calls(first, LATER), BY_NAME, CATALOG, "a1").steps[-1]
    answer = Answer(status=201, well=True, failed="", body={"number": 8}, text="")

    assert check_values(step, {"call-0": answer}, CATALOG)["issue_number"] == 8


@pytest.mark.parametrize(
    "text",
    ["../../admin", "a/b", "a\\b", "", ".", "..", "x\r\ny", "\0", "y" * 513, "a%2Fb", "a%255cb", "%2e%2e", "..;x"],
)
def test_a_text_from_an_answer_that_is_not_one_short_segment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        check_segment("here", text, foreign=True)


@given(st.text(min_size=1, max_size=40))
def test_no_segment_that_passes_holds_a_dot_segment_or_control(text: str) -> None:
    try:
        check_segment("here", text)
    except InvalidInput:
        return
    parts = text.replace("\\", "/").split("/")
    assert not {"", ".", ".."} & set(parts)
    assert not any(ord(char) < 32 or ord(char) == 127 for char in text)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (calls(("slack.users.list", {})), UndoClass.NOTHING),
        (calls(("slack.chat.postMessage", {"channel": "#ops", "text": "x"})), UndoClass.COMPENSATING),
        (calls(("slack.chat.delete", {"channel": "C0OPS1234", "ts": "1.1"})), UndoClass.IRREVERSIBLE),
        (calls(("slack.users.list", {}), TITLE), UndoClass.COMPENSATING),
        (calls(TITLE, ("slack.chat.delete", {"channel": "C0OPS1234", "ts": "1.1"})), UndoClass.IRREVERSIBLE),
    ],
)
def test_the_undo_class(action: ApiCalls, expected: UndoClass) -> None:
    assert plan_calls(action, BY_NAME, CATALOG, "a1").undo_class is expected


def test_what_cannot_be_taken_back_is_named_with_its_reason(tmp_path: Path) -> None:
    plan = assess(calls(TITLE, ("slack.chat.delete", {"channel": "C0OPS1234", "ts": "1.1"})), tmp_path)

    assert plan.undo_text == (
        "slack.chat.delete (call 2) can't be taken back: the message is gone, and posting it anew gives another one."
    )


def test_needs_cover_calls_pre_reads_undo_and_probes_with_the_least_scopes(tmp_path: Path) -> None:
    plan = assess(calls(TITLE), tmp_path)

    assert {(need.scope, need.why) for need in plan.needs} == {
        ("issues:write", "action"),
        ("issues:write", "pre-read"),
        ("issues:write", "read-back"),
        ("issues:write", "undo"),
        ("issues:write", "probe"),
    }
    (action,) = [need for need in plan.needs if need.why == "action"]
    assert action.arguments == (TITLE[1],)


def test_a_granted_scope_is_preferred(tmp_path: Path) -> None:
    plan = assess(calls(TITLE), tmp_path, frozenset({("github", "work", "public_repo")}))

    assert {need.scope for need in plan.needs} == {"public_repo"}


def test_a_scope_that_only_the_undo_needs_never_serves_the_action(tmp_path: Path) -> None:
    """messages.redact, which undo of the second call needs, would also let one read an event. Reading must not be
    granted by what deletes."""
    event = ("matrix.rooms.event", {"roomId": "!r:x", "eventId": "$e"})
    plan = assess(calls(event, ("matrix.rooms.send", {"roomId": "!r:x", "body": "hi"})), tmp_path)

    assert {need.scope for need in plan.required} == {"messages.read", "messages.write"}
    assert {need.scope for need in plan.needs if need.why == "undo"} == {"messages.redact"}


def test_doing_again_needs_no_way_back(tmp_path: Path) -> None:
    action = calls(("matrix.rooms.send", {"roomId": "!r:x", "body": "hi"}))
    context = Bench(tmp_path, ACCOUNTS).context("a1")
    plan = assess_calls(action, context, CATALOG, Profile(), "sha256:x")
    answer = Answer(status=200, well=True, failed="", body={"event_id": "$e"}, text="")
    call_record = CallRecord(sent=["call-0"], answers={"call-0": answer}, undone=[0])

    redo = assess_redo(Revert(verb="redo", target="a1"), plan, call_record, context, CATALOG, Profile(), "sha256:x")

    assert {need.scope for need in redo.required} == {"messages.write"}


def test_every_argument_stands_whole_on_its_own_line(tmp_path: Path) -> None:
    text = "a" * 30_000 + "\n2. slack.chat.delete as work → POST\x1b[31m\u202e"
    plan = assess(calls(("slack.chat.postMessage", {"channel": "#ops", "text": text})), tmp_path)

    assert plan.lines[0] == "slack.chat.postMessage as work → POST https://slack.com/api/chat.postMessage"
    assert plan.lines[1] == "    channel: #ops"
    assert plan.lines[3] == "    | " + "a" * 30_000
    assert plan.lines[4] == "    | 2. slack.chat.delete as work → POST\\u{1b}[31m\\u{202e}"
    assert not any(char in line for line in plan.lines for char in "\x1b\u202e\n")


@given(st.text(max_size=60))
def test_no_text_can_write_a_line_of_ours(text: str) -> None:
    (request,) = plan_calls(
        calls(("matrix.rooms.setTopic", {"roomId": "!a:b", "topic": text.replace("\0", "")})), BY_NAME, CATALOG, "a1"
    ).calls
    heading, *rest = step_lines(request.step)
    assert heading.startswith("matrix.rooms.setTopic as work → PUT ")
    assert all(line.startswith(("    roomId: ", "    topic:", "    | ")) for line in rest)
    assert not any(ord(char) < 32 and char != "\t" for line in rest for char in line)


def test_a_plan_survives_its_journal(tmp_path: Path) -> None:
    plan = assess(calls(("github.issues.create", {"owner": "acme", "repo": "tool", "title": "T"}), LATER), tmp_path)

    again = from_json(Plan, json.loads(canonical(to_json(plan))), "It")

    assert digest(again, agent="a") == digest(plan, agent="a")
    for key in ("steps", "probes"):
        made = [from_json(Step, value, "It") for value in plan.resolved[key]]
        assert [to_json(step) for step in made] == list(plan.resolved[key])
    assert made[0] == from_json(Step, again.resolved["probes"][0], "It")


def test_the_container_is_told_nothing_about_credentials() -> None:
    steps = plan_calls(calls(TITLE), BY_NAME, CATALOG, "a1").steps
    text = job_file(steps).decode()

    assert "secret" not in text.lower()
    assert "authorization" not in text.lower()
    assert "bearer" not in text.lower()


def test_keys_are_stable_and_differ_by_call_and_turn() -> None:
    keys = {action_key("a1", call, turn) for call in range(3) for turn in ("", "/undo", "redo-1", "redo-1/undo")}

    assert len(keys) == 12
    assert action_key("a1", 0) == action_key("a1", 0)
    assert all(len(key) <= 40 for key in keys)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (calls(), "1 to"),
        (calls(("slack.chat.nothing", {})), "no method"),
        (calls(("nothing.x", {})), "no service"),
        (calls(("slack.chat.postMessage", {"channel": "#ops"})), "text"),
        (calls(("slack.chat.postMessage", {"channel": "#ops", "text": 5})), "text"),
        (calls(("slack.users.list", {}), account="other"), "no account other"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(action: ApiCalls, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        requests(action)


def test_several_accounts_and_none_named_is_refused() -> None:
    two = {**BY_NAME, ("slack", "home"): account("slack", "https://slack.com/api", name="home")}
    with pytest.raises(InvalidInput, match="several accounts"):
        plan_calls(calls(("slack.users.list", {})), two, CATALOG, "a1")
    with pytest.raises(InvalidInput, match="no account of slack"):
        plan_calls(calls(("slack.users.list", {})), {}, CATALOG, "a1")


@pytest.mark.parametrize("value", [{"$any": True}, {"a": [{"$any": True}]}])
def test_an_argument_that_reads_as_any_value_is_not_taken(value: Any) -> None:
    """GoEx writes it where a program chooses a value; a grant would leave such an argument free."""
    with pytest.raises(InvalidInput, match=r"\$any"):
        with_refs({"blocks": value}, 1)
    assert with_refs({"blocks": {"$any": False}}, 1) == {"blocks": {"$any": False}}
