"""What a program may call: no more than was found in it or named, held to what is written there."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.code.found_calls import ANY, FoundCall
from policies.actions import ANY_VALUE, OTHER_ARGUMENTS, UndoClass
from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.typed_json import from_json, to_json
from runtimes.code import path_templates
from runtimes.code.path_templates import form_of, template
from runtimes.code.permits import MOST_SETS, MOST_VALUES, Permit, callable_, permits
from runtimes.code.record import arguments_of, permits_of
from runtimes.code.run import placeholder
from runtimes.gateway.plan import GatewayPlan, MethodRule, SentRequest, Slot
from runtimes.gateway.plan_check import check_opening
from tests.runtimes.code.sending import sent
from tests.runtimes.code.support import CATALOG, DRIVE, GITHUB, SECOND, SLACK, plan, rules
from tests.runtimes.rest.support import account
from vault.lease import Lease
from vault.secret import Secret

POST = "slack.chat.postMessage"


def found(**fields: str) -> FoundCall:
    return FoundCall(method_id=POST, line=1, how="sdk", http="POST", fields=fields, body="json")


def one(*calls: FoundCall) -> Permit:
    made = permits(calls, (), {("slack", "work"): SLACK}, CATALOG)
    assert len(made) == 1
    return made[0]


def test_nothing_found_and_nothing_named_is_no_permit() -> None:
    assert permits((), (), {("slack", "work"): SLACK}, CATALOG) == ()
    made = plan("print('hello')")
    assert made.resolved["permits"] == []
    assert any("every request that it makes is refused" in line for line in made.lines)
    assert made.undo_class is UndoClass.NOTHING


def test_a_value_that_every_call_has_written_out_is_held_to() -> None:
    permit = one(found(channel="#a", text="x"), found(channel="#b", text="x"))
    assert permit.rule.fields["channel"] == ("#a", "#b")
    assert permit.rule.fields["text"] == ("x",)
    assert set(permit.rule.must) == {"channel", "text"}
    assert {"channel": "#b", "text": "x"} in permit.sets()
    assert len(permit.sets()) == 2


GMAIL = account("gmail", "https://gmail.googleapis.com/gmail/v1")
INBOX = """
from googleapiclient.discovery import build
gmail = build("gmail", "v1")
gmail.users().messages().list(userId="me", labelIds=%s).execute()
"""


@pytest.mark.parametrize(
    ("labels", "asked", "refusal"),
    [
        ("['INBOX']", "labelIds=INBOX", ""), ("['INBOX']", "labelIds=SPAM", "field"), ("['INBOX']", "", "field"),
        ("['INBOX']", "labelIds=INBOX&labelIds=SPAM", "field"),
        ("['INBOX', 'UNREAD']", "labelIds=INBOX&labelIds=UNREAD", ""),
    ],
)  # fmt: skip
def test_a_list_in_a_query_is_sent_item_by_item(labels: str, asked: str, refusal: str) -> None:
    made = plan(INBOX % labels, accounts=(GMAIL,))
    assert sent(made, GMAIL, f"GET /gmail/v1/users/me/messages?{asked}") == refusal
    held = permits_of(made)[0].held
    assert held.get("labelIds") == ((["INBOX"],) if "UNREAD" not in labels else None)


ADD = """
import asyncio
from slack_sdk.web.async_client import AsyncWebClient
asyncio.run(AsyncWebClient(token=t).reactions_add(channel=c(), name="eyes", timestamp=s()))
"""


def test_what_is_sent_without_a_body_is_in_the_query_whether_it_is_known_or_not() -> None:
    made = plan(ADD)
    asked = "POST /api/reactions.add?channel=C1&name=%s&timestamp=1.2"
    assert sent(made, SLACK, asked % "eyes") == "" and sent(made, SLACK, asked % "tada") == "field"


def test_one_call_with_an_unknown_value_frees_the_argument() -> None:
    unknown = FoundCall(
        method_id=POST, line=2, how="sdk", http="POST", fields={"text": "x"}, open=("channel",), body="json"
    )
    permit = one(found(channel="#a", text="x"), unknown)
    assert permit.rule.fields["channel"] == ()
    assert permit.rule.fields["text"] == ("x",)
    assert "channel" in permit.free
    assert "channel" not in permit.rule.must


def test_an_argument_that_some_calls_leave_out_needn_t_be_there_and_has_no_other_value() -> None:
    permit = one(found(channel="#a", text="x"), found(channel="#a", text="x", thread_ts="1.2"))
    assert permit.rule.fields["thread_ts"] == ("1.2",)
    assert "thread_ts" not in permit.rule.must
    assert permit.optional == ("thread_ts",)
    assert {"channel": "#a", "text": "x"} in permit.sets()


def test_what_no_call_has_may_not_stand_in_a_request() -> None:
    assert "thread_ts" in one(found(channel="#a", text="x")).rule.closed


def test_names_that_may_come_with_it_close_nothing() -> None:
    more = FoundCall(method_id=POST, line=2, how="sdk", http="POST", fields={"channel": "#a"}, open=(ANY,), body="json")
    permit = one(found(channel="#a", text="x"), more)
    assert permit.rule.closed == ()
    assert permit.rule.fields["text"] == ()
    assert permit.rule.fields["channel"] == ("#a",)


def test_a_method_that_was_named_is_held_to_nothing() -> None:
    made = rules(
        plan("import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': '#a'})")
    )
    assert list(made[POST]["fields"]["channel"]) == ["#a"]
    program = "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': '#a'})"
    named = [one["rule"] for one in plan(program, POST).resolved["permits"]]
    assert {rule["method"] for rule in named} == {"GET", "POST"}  # Slack takes either
    assert all(not any(rule["fields"].values()) and not rule["must"] and not rule["closed"] for rule in named)


def test_what_flows_through_unread_is_held_to_nothing() -> None:
    """A body of another kind (parts of a form with files) is streamed: nobody can hold its fields to anything."""
    parts = FoundCall(method_id=POST, line=1, how="url", http="POST", fields={"channel": "#a"}, body="any")
    permit = one(parts)
    assert permit.rule.body_format == "any"
    assert not any(permit.rule.fields.values())
    assert permit.rule.must == ()
    assert permit.rule.closed == ()
    assert permit.held == {}


def test_two_accounts_have_a_rule_each() -> None:
    made = permits((found(channel="#a"),), (), {("slack", "work"): SLACK, ("slack", "second"): SECOND}, CATALOG)
    assert [permit.rule.account for permit in made] == [("slack", "work"), ("slack", "second")]
    assert len({permit.rule.id for permit in made}) == 2


def test_an_address_outside_the_account_s_origins_has_no_permit() -> None:
    elsewhere = FoundCall(method_id=POST, line=1, how="url", http="POST", base="https://upload.example", body="json")
    assert permits((elsewhere,), (), {("slack", "work"): SLACK}, CATALOG) == ()


def test_a_method_that_isn_t_in_the_catalog_can_t_be_named() -> None:
    with pytest.raises(InvalidInput, match=r"no method .chat\.explode"):
        plan("print()", "slack.chat.explode")


def test_more_values_than_are_shown_free_the_argument() -> None:
    permit = one(*(found(channel=f"#c{n}", text="x") for n in range(MOST_VALUES + 1)))
    assert permit.rule.fields["channel"] == ()
    assert "channel" in permit.free


def test_a_slot_isn_t_another_method_s_word() -> None:
    """DELETE /files/{fileId} isn't DELETE /files/trash: the gateway is told the other's path."""
    made = rules(plan("print()", "google_drive.files.delete", accounts=(DRIVE,)))["google_drive.files.delete"]
    assert ["files", "trash"] in made["others"]
    assert made["path"] not in made["others"]


def test_a_name_of_several_segments_has_its_method_s_form() -> None:
    """GET /v1/{+name} is many methods of Google's: what they name tells them apart, and a rule holds to that."""
    pattern = "^projects/[^/]+/topics/[^/]+$"
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": pattern}}, "required": ["name"]}
    github = CATALOG.service("github")
    some = github.methods["issues.get"]
    got = replace(some, name="topics.get", path="/v1/{+name}", parameters=schema, locations={"name": "path"})
    catalog = Catalog.of([replace(github, methods={"topics.get": got})])
    made = plan("print()", "github.topics.get", accounts=(GITHUB,), catalog=catalog)
    permit = permits_of(made)[0]
    assert permit.rule.path == ("v1", "projects", Slot("name/1"), "topics", Slot("name/3"))
    passed = SentRequest(rule="rule-0", slots={"name/1": "p", "name/3": "t"}, query=())
    assert arguments_of(passed, permit, catalog)[0] == {"name": "projects/p/topics/t"}
    written = FoundCall(
        method_id="github.topics.get", line=1, how="url", http="GET", path={"name": "projects/p/topics/t"}
    )
    held = permits((written,), (), {("github", "work"): GITHUB}, catalog)[0]
    assert held.rule.path == ("v1", "projects", "p", "topics", "t")
    assert arguments_of(SentRequest(rule="rule-0", slots={}, query=()), held, catalog)[0] == {
        "name": "projects/p/topics/t"
    }
    odd = replace(written, path={"name": "projects/../topics/t"})
    assert permits((odd,), (), {("github", "work"): GITHUB}, catalog)[0].rule.path == permit.rule.path
    unknown = replace(got, parameters={"type": "object", "properties": {"name": {"type": "string"}}})
    assert template(unknown, {}) == ("v1", Slot("name", many=True))
    cancel = replace(got, path="/v1/{+name}:cancel", origin_id="x")
    assert template(cancel, {})[-1] == Slot("name/3", end=":cancel")
    assert template(replace(got, origin_id="x"), {})[-1] == Slot("name/3", verbs=False)


def test_what_would_change_what_a_request_means_is_in_no_rule() -> None:
    """A document may well list such a parameter or header; the gateway would refuse the whole action for it."""
    slack = CATALOG.service("slack")
    method = slack.methods["chat.postMessage"]
    schema = {**method.parameters, "properties": {**method.parameters["properties"], "_method": {"type": "string"}}}
    headers = {"Authorization": "x", "X-Http-Method-Override": "DELETE", "Slack-Version": "1", "Slack-Team": "x"}
    methods = {**slack.methods, "chat.postMessage": replace(method, parameters=schema)}
    catalog = Catalog.of([replace(slack, headers=headers, methods=methods)])
    for permit in permits_of(plan("print()", POST, catalog=catalog)):
        assert "_method" not in {*permit.rule.query, *permit.rule.fields}
        assert permit.rule.headers == ("Slack-Team",)
        assert "Slack-Team" in permit.free  # the program may say another
        assert permit.rule.written == {"slackversion": ("1",)}


def test_a_need_says_what_is_held_that_more_may_come_and_which_program_it_is() -> None:
    program = "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': '#a'})"
    made = plan(program)
    need = next(need for need in made.needs if need.service == "slack")
    assert [dict(arguments) for arguments in need.arguments] == [
        {"channel": "#a", OTHER_ARGUMENTS: ANY_VALUE, "program_sha256": made.resolved["program_sha256"]}
    ]


values = st.sampled_from(["a", "b", "c"])
sample = st.dictionaries(st.sampled_from(["channel", "text", "thread_ts"]), values, max_size=3)


@settings(max_examples=60)
@given(st.lists(st.tuples(sample, st.sets(st.sampled_from(["channel", "text", ANY]))), min_size=1, max_size=4))
@example(
    [(dict.fromkeys(("channel", "text", "thread_ts"), one), set()) for one in "ab"]
    + [({"channel": "c"}, set()), ({}, set())]
)
def test_every_found_call_passes_and_what_is_shown_is_all_that_does(
    drawn: list[tuple[dict[str, str], set[str]]],
) -> None:
    """The sets that rules and grants look at hold each call that was found; and what the gateway is told is that."""
    calls = [
        FoundCall(method_id=POST, line=1, how="sdk", http="POST", body="json", open=tuple(sorted(open_)),
                  fields={name: value for name, value in fields.items() if name not in open_})
        for fields, open_ in drawn
    ]  # fmt: skip
    permit = one(*calls)
    sets = [canonical(each) for each in permit.sets()]
    shown = {name for each in permit.sets() for name in each}
    choices = [len(allowed) + (name in permit.optional) for name, allowed in permit.held.items()]
    assert shown == set(permit.held) or prod(choices) > MOST_SETS
    for call in calls:
        held = {name: value for name, value in call.fields.items() if name in shown}
        assert canonical(held) in sets
        assert not set(call.fields) & set(permit.closed)
        assert set(permit.rule.must) <= set(call.fields)
        for name, allowed in permit.rule.fields.items():
            assert not allowed or name not in call.fields or call.fields[name] in allowed
            assert not allowed or name not in call.open
    for name in shown.intersection(permit.rule.must):
        assert all(name in each for each in permit.sets())


def test_rules_survive_the_journal() -> None:
    made = plan("print()", "github.issues.create", POST, accounts=(GITHUB, SLACK))
    for permit in permits_of(made):
        assert from_json(MethodRule, to_json(permit.rule), "It") == permit.rule


@pytest.mark.parametrize("name", sorted(CATALOG.services))
def test_the_gateway_takes_the_rules_of_every_method_that_comes_with_goex(name: str) -> None:
    service = CATALOG.service(name)
    mine = account(name, service.base_url or "https://chat.example.org/_matrix/client/v3")
    ids = [method.id for method in service.methods.values() if callable_(CATALOG, method.id)]
    for start in range(0, len(ids), 30):
        made = plan("print()", *ids[start : start + 30], accounts=(mine,))
        lease = Lease(
            action_id="a-1", account=mine, secret=Secret("a-secret-of-some-length"),
            expires=datetime.now(UTC) + timedelta(hours=1),
        )  # fmt: skip
        opened = GatewayPlan(
            action_id="a-1",
            rules=tuple(permit.rule for permit in permits_of(made)),
            placeholders={placeholder(service, (name, "work")): (name, "work")},
            code=True,
        )
        check_opening(opened, [lease], datetime.now(UTC))
        assert opened.rules


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, ("7", "-1"), ("comments", "7.json", "٧", "", "7\n", "1e3", "0x7")),
        ({"type": ["integer", "null"]}, ("7",), ("comments",)),
        ({"type": "number"}, ("7", "7.5"), ("nan", "7.5.1")),
        ({"type": "boolean"}, ("true",), ("True", "search")),
        ({"enum": ["open", "closed"]}, ("open",), ("all", "opened", "open.json")),
        ({"type": "string", "format": "uuid"}, ("123e4567-e89b-12d3-a456-426614174000",), ("batch", "123e4567")),
        ({"type": "string", "pattern": "^C[0-9A-Z]+$"}, ("C01",), ("archive", "C01\n")),
        ({"$ref": "#/$defs/number"}, ("7",), ("comments",)),
        ({"type": "string"}, ("7", "comments"), ()),
        ({}, ("anything",), ()),
    ],
)
def test_a_slot_is_held_to_its_type(schema: dict[str, Any], good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    method = replace(
        CATALOG.method("github.issues.get"),
        parameters={"properties": {"issue_number": schema}, "$defs": {"number": {"type": "integer"}}},
    )
    form = form_of(method, "issue_number")
    assert [value for value in good if form and not re.search(form, value)] == []
    assert [value for value in bad if re.search(form, value)] == []


def test_the_forms_of_a_rule_reach_the_gateway_as_they_were_shown() -> None:
    (permit,) = permits((), ("github.issues.get",), {("github", "work"): GITHUB}, CATALOG)
    (slot,) = [part for part in permit.rule.path if isinstance(part, Slot) and part.name == "issue_number"]
    assert slot.form
    assert from_json(MethodRule, to_json(permit.rule), "It") == permit.rule
    made = GatewayPlan(action_id="a", rules=(permit.rule,))
    assert from_json(GatewayPlan, to_json(made), "It") == made


@pytest.mark.promise(51)
def test_a_path_that_another_verb_has_is_not_an_id() -> None:
    service = CATALOG.service("github")
    get = service.methods["issues.get"]
    posted = replace(get, name="issues.bulk", http="POST", path="/repos/{owner}/{repo}/issues/bulk")
    catalog = SimpleNamespace(service=lambda name: SimpleNamespace(methods={"a": get, "b": posted}))
    (permit,) = permits((), ("github.issues.get",), {("github", "work"): GITHUB}, CATALOG)
    others = path_templates.without_others(permit.rule, get, catalog).others  # type: ignore[arg-type]
    assert [path[-1] for path in others] == ["bulk"]
