"""What a rule holds for beside the words in it: calls that are made again, and recipients however they are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.actions import Need, Plan, Revert, UndoClass
from policies.decisions import Ask, Deny, Request, decide
from policies.digest import digest
from policies.errors import InvalidInput
from policies.limits import Confinement
from policies.rules.audience import at_most_one_each, guessed_recipients, recipients_of
from policies.rules.book import RuleBook
from policies.rules.cases import outcome, read
from policies.rules.facts import Situation
from policies.services import Risk

CATALOG = Catalog.bundled()
POST = {"call": "slack.chat.postMessage", "arguments": {"channel": "#ops", "text": "x"}, "granted": ["chat:write"]}
MAIL = "gmail.users.messages.send"
NO_CALLS = '@id("no-posts") forbid (principal, action == Action::"call", resource == Method::"slack.chat.postMessage");'
NO_FILES = '@id("no-files") forbid (principal, action == Action::"files", resource);'
CALLS = '@id("posts") permit (principal, action == Action::"call", resource == Method::"slack.chat.postMessage");'


def came(rules: str, case: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    request, grants, now = read(case, CATALOG)
    return outcome(decide(request, grants, RuleBook.of({"a.cedar": rules}, CATALOG), now))[:2]


@pytest.mark.promise(13)
def test_a_call_that_is_forbidden_is_not_made_again_either() -> None:
    assert came(NO_CALLS, POST) == ("deny", ("no-posts",))
    assert came(NO_CALLS, {**POST, "kind": "redo"}) == ("deny", ("no-posts",))


def test_what_forbids_calls_leaves_the_way_back_open() -> None:
    assert came(NO_CALLS, {**POST, "kind": "undo"}) == ("allow", ())


def test_a_permit_to_call_permits_no_doing_again() -> None:
    assert came(CALLS, {**POST, "granted": [], "kind": "redo"}) == ("ask", ())


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("action", "resolved", "came_to"),
    [
        ("sql", {"schema_hash": "x"}, Deny),
        ("mongo", {"transactions": True}, Deny),
        ("mongo", {"schema_hash": "x"}, Ask),
        ("sql", {"transactions": True}, Ask),
        ("call", {"schema_hash": "x"}, Ask),
        ("call", {"transactions": True}, Ask),
    ],
)
def test_statements_that_are_forbidden_are_not_made_again_either(
    action: str, resolved: dict[str, Any], came_to: type
) -> None:
    need = Need(service="db", account="shop", scope="orders.delete", risk=Risk.DELETE, methods=("delete",))
    plan = Plan(
        action=Revert(verb="redo", target="a-1"),
        needs=(need,),
        undo_class=UndoClass.EXACT,
        undo_text="",
        resolved=resolved,
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=("again",),
        undo={},
    )
    rule = f'@id("no") forbid (principal, action == Action::"{action}", resource) when {{ context.risk_level > 1 }};'
    request = Request(agent="bot", session="s", digest=digest(plan, agent="bot"), plan=plan)
    found = decide(request, (), RuleBook.of({"a.cedar": rule}, CATALOG), datetime(2026, 1, 2, tzinfo=UTC))
    assert isinstance(found, came_to), found


def test_programs_that_are_forbidden_say_nothing_of_putting_their_files_back() -> None:
    """A redo of files runs no program: it brings back what was there."""
    case = {"folder": "/home/you/docs", "kind": "redo", "granted": ["files.write"]}
    assert came(NO_FILES, case) == ("allow", ())


def test_a_message_to_very_many_is_asked_for_again_when_it_is_sent_again() -> None:
    many = [f"p{number}@example.org" for number in range(21)]
    case = {
        "call": MAIL, "arguments": {"to": many, "body": "x"}, "kind": "redo", "undo": "compensating", "scope": "send",
        "granted": ["send"],
    }  # fmt: skip
    assert came("", case) == ("ask", ("many-recipients-ask",))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"recipients": [{"id": "U1"}, {"id": "U2"}]}, {"u1", "u2"}),
        ({"attendees": [{"email": "a@b.c", "displayName": "Bob"}]}, {"a@b.c"}),
        ({"attendees": [{"person": {"handle": "eve"}}]}, {"eve"}),
        ({"toRecipients": [{"emailAddress": {"name": "Ann", "address": "a@b.c"}}]}, {"a@b.c"}),
        ({"attendees": [{"email": "a@b.c", "login": "eve@d.e"}]}, {"a@b.c", "eve@d.e"}),
        ({"user_ids": [17, 18]}, {"17", "18"}),
        ({"user_id": 17, "count": 5}, {"17"}),
        ({"users": True}, set()),
    ],
)
def test_who_gets_something_however_it_is_written(arguments: dict[str, Any], found: set[str]) -> None:
    assert guessed_recipients(arguments)[0] >= found
    assert bool(guessed_recipients(arguments)[0]) == bool(found)


@pytest.mark.promise(13)
@pytest.mark.parametrize("to", ["ｅｖｅ＠ｄ．ｅ", "e\u200bve@d.e", "a@example.org，ＥＶＥ@d.e", "eve@d。e", "eve@d｡e"])
def test_a_recipient_is_forbidden_in_each_spelling_that_a_service_may_take_for_it(to: str) -> None:
    rule = '@id("no")\nforbid (principal, action, resource) when { context.recipients.contains("eve@d.e") };'
    case = {"call": MAIL, "arguments": {"to": to, "body": "x"}, "scope": "send", "granted": ["send"]}
    assert came(rule, case) == ("deny", ("no",))
    assert came(rule, {**case, "arguments": {"to": "ann@d.e", "body": "x"}})[0] != "deny"


BUCHER = ("eve@bücher.example", "eve@xn--bcher-kva.example")
FORBIDDEN = '@id("no")\nforbid (principal, action, resource) when { context.recipients.contains("%s") };'


def sends(to: Any) -> dict[str, Any]:
    return {"call": MAIL, "arguments": {"to": to, "body": "x"}, "scope": "send", "granted": ["send"]}


@pytest.mark.promise(13)
@pytest.mark.parametrize("named", BUCHER)
@pytest.mark.parametrize(
    "to",
    [*BUCHER, "Eve <eve@XN--Bcher-KVA.example>", "eve@BÜCHER。example", "eve@b\u00adücher.example",
     "eve@bu\u0308cher.example", ["ann@example.org", "eve@xn--bcher-kva.example."]],
)  # fmt: skip
def test_a_recipient_is_forbidden_in_each_spelling_of_its_host(named: str, to: Any) -> None:
    assert came(FORBIDDEN % named, sends(to)) == ("deny", ("no",))
    assert came(FORBIDDEN % named, sends("eve@bucher.example"))[0] != "deny"


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    ("named", "to"),
    [
        ("eve@xn--i-7iq.ws", "eve@i❤.ws"),
        ("eve@fass.example", "eve@faß.example"),
        ("eve@xn--fa-hia.example", "eve@faß.example"),
        ("josé@xn--bcher-kva.example", "josé@bücher.example"),
        ("@eve:xn--bcher-kva.example", "@eve:bücher.example"),
        ("@eve:bücher.example:8448", "@eve:xn--bcher-kva.example:8448"),
        ("xn--bcher-kva.example", "bücher.example"),
        ("eve@xn--foo-.example", "eve@xn--foo-.example"),
    ],
)
def test_a_host_is_one_in_letters_and_encoded(named: str, to: str) -> None:
    assert came(FORBIDDEN % named, sends(to)) == ("deny", ("no",))


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "to",
    ['"eve"@d.e', '"e\\ve"@d.e', "eve(at home (x))@d.e", "eve @ d.e", 'Eve <"eve"@d.e>', "eve@d.e.", "smtp:eve@d.e",
     "@x.y:eve@d.e", "eve(a,b)@d.e", "eve@(a; b)d.e", '"(1" <"eve"@d.e>', '"\\"(1" <eve(x)@d.e>',
     "mailto:eve%40d.e", "mailto:%22eve%22@d.e?cc=a@b.c", "a@b.c, (x eve@d.e", 'all: "eve"@d.e, a@b.c;'],
)  # fmt: skip
def test_a_recipient_is_forbidden_however_mail_may_be_addressed(to: str) -> None:
    assert came(FORBIDDEN % "eve@d.e", sends(to)) == ("deny", ("no",))
    assert came(FORBIDDEN % "eve@d.e", sends(to.replace("d.e", "e.d")))[0] != "deny"


@pytest.mark.parametrize("channel", ["#ops", "#büro", "straße", "#日本", "💡 ideas", "#v1.büro", "Jörg B. Müller"])
def test_what_is_no_host_has_one_spelling(channel: str) -> None:
    case = {"call": POST["call"], "arguments": {"channel": channel, "text": "x"}}
    name = channel.lower()
    rule = f'@id("yes") permit (principal, action, resource) when {{ ["{name}"].containsAll(context.recipients) }};'
    assert came(rule, case) == ("allow", ("yes",))
    request, _, _ = read(case, CATALOG)
    bounds = Confinement(recipients=(channel,))
    assert bounds.refusal(request.plan, agent="bot", situation=Situation(), catalog=CATALOG) == ""


@pytest.mark.promise(13)
@pytest.mark.parametrize("named", ["bücher.example", "xn--bcher-kva.example"])
def test_a_host_is_forbidden_in_each_spelling(named: str) -> None:
    rule = f'@id("no")\nforbid (principal, action, resource) when {{ context.hosts.contains("{named}") }};'
    assert came(rule, {**POST, "hosts": ["xn--bcher-kva.example"]}) == ("deny", ("no",))
    assert came(rule, {**POST, "hosts": ["bucher.example"]})[0] != "deny"


@pytest.mark.promise(13)
def test_a_permit_with_an_exception_has_it_in_each_spelling() -> None:
    rule = '@id("yes") permit (principal, action, resource) unless { context.recipients.contains("#ops") };'
    cases = {channel: {**POST, "arguments": {"channel": channel, "text": "x"}} for channel in ("#dev", "#ops", "＃ops")}
    assert {channel: permitted(rule, case) for channel, case in cases.items()} == {
        "#dev": ("yes",), "#ops": (), "＃ops": (),
    }  # fmt: skip


@pytest.mark.promise(13)
@pytest.mark.parametrize("sent", ["＃ops", "#ops\u200b", "#ｏps", "#ops，c2"])
def test_a_permit_by_recipients_is_met_by_what_is_sent_alone(sent: str) -> None:
    """What a service may read in another spelling forbids; somebody else may get it, so that it permits nothing."""
    rule = '@id("yes") permit (principal, action, resource) when { context.recipients.contains("#ops") };'
    cases = {channel: {**POST, "arguments": {"channel": channel, "text": "x"}} for channel in ("#ops", sent)}
    assert {channel: permitted(rule, case) for channel, case in cases.items()} == {"#ops": ("yes",), sent: ()}


def permitted(rule: str, case: dict[str, Any]) -> tuple[str, ...]:
    """Which rules permit a case, whatever else asks about it."""
    request, _, now = read(case, CATALOG)
    book = RuleBook.of({"a.cedar": rule}, CATALOG)
    return tuple(sorted({name for names in book.judge(request, now).permits.values() for name in names}))


@pytest.mark.promise(15)
@pytest.mark.parametrize(
    "bound", ["eve@bücher.example", "eve@xn--bcher-kva.example", "*@*.example", "*@bü*.example", "*"]
)
def test_whom_actions_are_confined_to_is_one_in_each_spelling_of_its_host(bound: str) -> None:
    refused = {to: confined(bound, to) for to in (*BUCHER, "eve@xn--foo-.example", "eve＠bücher.example")}
    assert refused == {
        **dict.fromkeys(refused, bound != "*"),
        **dict.fromkeys(BUCHER, False),
        "eve@xn--foo-.example": True,
    }


@pytest.mark.promise(15)
@pytest.mark.parametrize("to", ["eve@faß.example", "eve@b\u00adücher.exａmple.org", "eve@xn--bucher-.example"])
def test_nobody_is_reached_past_the_confinement_by_how_a_host_is_spelled(to: str) -> None:
    assert confined("*@bücher.example", to) and confined("*@faß.example", to)


def confined(bound: str, to: str) -> bool:
    """Whether a confinement refuses to send mail to somebody."""
    request, _, _ = read({"call": MAIL, "arguments": {"to": to, "body": "x"}}, CATALOG)
    bounds = Confinement(recipients=(bound,))
    return "recipients" in bounds.refusal(request.plan, agent="bot", situation=Situation(), catalog=CATALOG)


@pytest.mark.promise(13)
@pytest.mark.parametrize("value", [[{"id": "eve"}], 17, {"room": {"id": "eve"}}, "eve＠d.e，a@example.org"])
def test_nobody_is_reached_past_the_confinement_by_how_they_are_written(value: Any) -> None:
    request, _, _ = read({"call": MAIL, "arguments": {"to": value, "body": "x"}}, CATALOG)
    bounds = Confinement(recipients=("*@example.org",))
    assert "recipients" in bounds.refusal(request.plan, agent="bot", situation=Situation(), catalog=CATALOG)


def test_a_forbid_wins_over_a_rule_that_asks_for_want_of_knowing() -> None:
    """Who gets it is known only later, so a rule that looks at that asks; another forbids it all the same."""
    blind = (
        '@id("blind") @effect("ask") forbid (principal, action, resource) when { context.recipients.contains("x") };'
    )
    later = {**POST, "arguments": {"channel": {"$from": {"call": 0, "path": "$.id"}}, "text": "x"}}
    assert came(blind, later) == ("ask", ("blind",))
    assert came(f"{blind}\n{NO_CALLS}", later) == ("deny", ("no-posts",))


def test_a_permit_of_whole_arguments_isnt_met_by_those_that_are_known_so_far() -> None:
    whole = '@id("whole") permit (principal, action, resource) when { context.arguments == {"text": "x"} };'
    later = {"channel": {"$from": {"call": 0, "path": "$.id"}}, "text": "x"}
    assert came(whole, {**POST, "granted": [], "arguments": {"text": "x"}}) == ("allow", ("whole",))
    assert came(whole, {**POST, "granted": [], "arguments": later}) == ("ask", ())


def test_how_many_get_a_message_isnt_known_before_an_answer_says_it() -> None:
    later = {"to": {"$from": {"call": 0, "path": "$.everybody"}}, "body": "x"}
    case = {"call": MAIL, "arguments": later, "undo": "compensating", "scope": "send", "granted": ["send"]}
    assert came("", case) == ("ask", ("many-recipients-ask",))


LISTS = {"call": "slack.users.list"}
GARBAGE: dict[str, dict[str, Any]] = {
    "a key that means nothing": {**LISTS, "argumnets": {"limit": 1}},
    "a kind that there isn't": {**LISTS, "kind": "redu"},
    "a folder's kind of a call": {**LISTS, "kind": "files"},
    "a call's kind of a folder": {"folder": "/x", "kind": "call"},
    "a session that is a number": {**LISTS, "session": 3},
    "calls that are numbers": {"calls": [3]},
    "calls without a name": {"calls": [{}]},
    "arguments that are a number": {**LISTS, "arguments": 3},
    "arguments that are a list": {**LISTS, "arguments": [[1]]},
    "a rate without end": {**LISTS, "rate": {"minute": float("inf")}},
    "a rate in words": {**LISTS, "rate": {"minute": "many"}},
    "bounds that are a number": {**LISTS, "bounds": 3},
    "no such undo": {**LISTS, "undo": "later"},
    "hosts that are a number": {**LISTS, "hosts": 3},
    "no such day": {**LISTS, "at": "2026-02-30"},
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_case_that_says_nothing_clear_is_an_error_and_not_another_case(name: str) -> None:
    with pytest.raises(InvalidInput):
        read(GARBAGE[name], CATALOG)


def test_an_answer_that_fills_in_a_whole_object_may_name_anybody() -> None:
    """Not what fills in text, or a list of it, of which nothing says that it is who gets it."""
    answer = {"$from": 0, "path": "$.all"}
    properties: dict[str, Any] = {
        "event": {"type": "object", "properties": {"title": {"type": "string"}}},
        "closed": {"type": "object", "additionalProperties": False, "properties": {"title": {"type": "string"}}},
        "people": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"email": {"type": "string"}},
            },
        },
        "labels": {"type": "array", "items": {"type": "string"}},
        "text": {"type": "string"},
        "whatever": {},
    }
    for name, hidden in (
        ("event", 1), ("closed", 0), ("people", 1), ("labels", 0), ("text", 0), ("whatever", 1),
    ):  # fmt: skip
        method = replace(CATALOG.method(MAIL), parameters={"properties": properties}, audience=None)
        for filled in (answer, [answer]):
            found = recipients_of(CATALOG.service("gmail"), method, {name: filled})
            assert (found.names, found.later, found.known) == (frozenset(), hidden, False), name
    assert recipients_of(CATALOG.service("gmail"), method, {"event": {"title": "x"}}).later == 0


@pytest.mark.parametrize(
    ("method", "name", "is_one"),
    [
        ("slack.chat.postMessage", "channel", True),
        ("slack.conversations.invite", "users", False),
        ("google_drive.files.move", "addParents", False),
    ],
)
def test_one_text_may_name_many(method: str, name: str, is_one: bool) -> None:
    """So how many get something isn't known, where code or an answer fills it in."""
    assert at_most_one_each(CATALOG.method(method), {name: {"$from": 0, "path": "$.a"}}, 1) == is_one
