"""What a program may say that its way back wasn't made for: none is promised, or the gateway refuses it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Plan, UndoClass
from policies.reversions import NoReversions
from runtimes.code import record
from runtimes.code.plans import accounts_of, look
from runtimes.code.record import Record, Sent, permits_of
from runtimes.code.undo import reversed_
from runtimes.code.written_headers import Headers
from runtimes.gateway.admission import Admission, AskedHead, Ready
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import Exchange, GatewayPlan
from runtimes.gateway.request_headers import with_shown
from runtimes.gateway.rule_match import RulePolicy
from runtimes.rest.records import Answer
from tests.runtimes.code.sending import MARK, sent
from tests.runtimes.code.support import CATALOG, GITHUB, SLACK, code, context, plan
from tests.runtimes.rest.derived import ACCOUNT, made_catalog
from tests.runtimes.rest.support import account

ISSUE = "import requests\nrequests.post('https://api.github.com/repos/o/r/issues', json={'title': 't'}, headers=H)\n"
EVENTS = "https://www.googleapis.com/calendar/v3/calendars/primary/events"
CALENDAR = account("google_calendar", "https://www.googleapis.com/calendar/v3")
EVENT = {"summary": "T", "start": {"date": "2026-01-01"}, "end": {"date": "2026-01-02"}}
POSTED = {"channel": "C", "text": "t"}


def opened(made: Plan, *headers: str, kind: str = "application/json") -> str:
    return sent(made, GITHUB, "POST /repos/o/r/issues", {"title": "t"}, headers=headers, kind=kind)


def told(made: Plan) -> list[str]:
    return [line.strip() for line in made.lines if line.startswith("    ")]


def admitted(made: Plan, to: Account, target: str, *headers: str, action: str = "a") -> Ready:
    """A request with an empty body, as the gateway sends it."""
    rules = tuple(permit.rule for permit in permits_of(made))
    policy = RulePolicy(
        GatewayPlan(action_id=action, rules=rules, placeholders={MARK: (to.service, to.name)}, code=True)
    )
    lines = (
        f"POST {target} HTTP/1.1",
        f"Host: {rules[0].origin.host}",
        f"Authorization: Bearer {MARK}",
        *headers,
        "Content-Type: application/json",
        "Content-Length: 2",
    )
    asked = AskedHead(origin=rules[0].origin, head=parse_head("\r\n".join([*lines, "", ""]).encode()), target=target)
    found = policy.admit(asked)
    assert isinstance(found, Admission), found
    assert found.inspect
    return Ready(admission=found, sent=policy._sent_request(found, {}, 2))


def key_sent(made: Plan, action: str, key: str, name: str = "Idempotency-Key") -> str:
    ready = admitted(made, GITHUB, "/repos/o/r/issues", f"{name}: {key}", action=action)
    assert ready.sent is not None
    value = dict(ready.admission.headers)[name]
    assert (value in ready.sent.keys) is value.startswith("goex-")
    return value


@pytest.mark.promise(57)
def test_a_key_is_another_in_each_action() -> None:
    """For a key that was used before, the service answers with what is there already, which undo would delete."""
    made = plan(ISSUE, accounts=(GITHUB,))
    first = key_sent(made, "a-1", "invoice-7")
    assert "invoice-7" not in first and len(first) <= 40
    assert first == key_sent(made, "a-1", "invoice-7")  # a request that is sent again
    others = {key_sent(made, "a-2", "invoice-7"), key_sent(made, "a-1", "invoice-8")}
    others.add(key_sent(made, "a-1", "invoice-7", "X-Idempotency-Key"))
    assert len(others) == 3 and first not in others


@pytest.mark.promise(57)
@pytest.mark.parametrize("name", ["idempotency_key", "clientToken", "request_id"])
def test_a_key_in_the_body_leaves_no_way_back(name: str) -> None:
    method = CATALOG.service("slack").methods["chat.postMessage"]
    keyed = {**method.parameters, "properties": {**method.parameters["properties"], name: {"type": "string"}}}
    slack = CATALOG.service("slack")
    catalog = Catalog.of([replace(slack, methods={**slack.methods, method.name: replace(method, parameters=keyed)})])
    post = "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json=%s)"
    made = plan(post % {**POSTED, name: "k"}, catalog=catalog)
    assert made.undo_class is UndoClass.IRREVERSIBLE and f"for a {name} that was used before" in made.undo_text
    assert plan(post % POSTED, catalog=catalog).undo_class is UndoClass.COMPENSATING


@pytest.mark.promise(57)
def test_a_key_that_no_document_has_does_not_pass_in_a_body(tmp_path: Path) -> None:
    catalog = made_catalog(tmp_path)
    program = "import requests\nrequests.post('https://notes.example.org/notes', json={**note, 'title': 'a'})"
    made = plan(program, accounts=(ACCOUNT,), catalog=catalog)
    for name in ("idempotency_key", "clientRequestToken"):
        assert sent(made, ACCOUNT, "POST /notes", {"title": "a", name: "k"}) == "field"


@pytest.mark.promise(57)
@pytest.mark.parametrize(
    ("before", "key", "title", "replayed", "made", "unsettled"),
    [
        (201, "k", "t", True, {0}, set()),  # what the first one made is taken back once
        (0, "k", "t", True, {0}, set()),  # the first one's answer was lost: this is it
        (502, "k", "t", True, {0}, set()),
        (409, "k", "t", True, {0}, set()),
        (422, "other", "t", True, {1}, set()),  # no request of this action had that key
        (502, "k", "u", True, set(), {0, 1}),  # whose answer it is isn't known
        (201, "", "t", True, {0}, set()),  # by a key that isn't known, another action may have made it
        (502, "k", "t", False, {1}, {0}),
    ],
)
def test_an_answer_that_was_given_before_is_that_of_the_request_that_had_it(
    before: int, key: str, title: str, replayed: bool, made: set[int], unsettled: set[int]
) -> None:
    planned = plan(ISSUE, accounts=(GITHUB,))
    permit = permits_of(planned)[0]
    body = {"number": 12, "node_id": "I_12", "id": 12, "title": "t", "state": "open"}
    keys = ((key,) if key != "other" else ("k",), (key,) if key else ())
    kept = Record(
        sent=[
            Sent(number=number, request="", permit=0, arguments={"owner": "o", "repo": "r", "title": text}, whole=True,
                 keys=keys[number])
            for number, text in enumerate((title, "t"))
        ]
    )  # fmt: skip
    first = Exchange(request="rule-0#1", status=before, well=before == 201, body=body)
    again = Exchange(request="rule-0#2", status=201, well=True, body=body, replayed=replayed)
    for number, exchange in enumerate((first, again)):
        if exchange.status:
            answer = record.answer_of(exchange, permit, CATALOG)
            kept.answers.update(record.answers_of(kept, number, answer, replayed=exchange.replayed))
    assert {one.number for one in kept.sent if kept.done(one.number)} == made
    assert {one.number for one in kept.unsettled} == unsettled
    back = reversed_(planned, kept, context(GITHUB), CATALOG, NoReversions())
    assert len({step.call for step in back.steps}) == len(made) and not back.stuck


@pytest.mark.promise(57)
def test_an_answer_that_comes_late_changes_nothing_of_one_that_was_given_again() -> None:
    kept = Record(sent=[Sent(number=n, request="", permit=0, arguments={}, whole=True, keys=("k",)) for n in (0, 1)])
    well = Answer.of(Exchange(request="", status=201, well=True, body={}), ())
    kept.answers.update(record.answers_of(kept, 1, well, replayed=True))
    assert kept.done(0) and not kept.done(1)
    assert record.answers_of(kept, 0, replace(well, status=504, well=False), replayed=False) == {}


@pytest.mark.promise(57)
@pytest.mark.parametrize(
    ("name", "declared", "own"),
    [
        ("X-Request-Id", True, True),
        ("Request-Id", True, True),
        ("X-Deduplication-Id", True, True),
        ("Bank-Request-Id", False, True),
        ("X-Request-Id", False, False),
        ("Client-Request-Id", False, False),
    ],
)
def test_an_id_of_a_request_is_a_key_where_a_service_may_know_it_again(name: str, declared: bool, own: bool) -> None:
    github = CATALOG.service("github")
    method = github.methods["issues.create"]
    properties = {**method.parameters["properties"], name: {"type": "string"}}
    keyed = replace(
        method,
        parameters={**method.parameters, "properties": properties},
        locations={**method.locations, name: "header"},
    )
    catalog = Catalog.of([replace(github, methods={**github.methods, method.name: keyed})]) if declared else CATALOG
    made = plan(ISSUE, accounts=(GITHUB,), catalog=catalog)
    assert made.undo_class is UndoClass.COMPENSATING
    if not own:
        with pytest.raises(KeyError):
            key_sent(made, "a-1", "k", name)  # it names the request in a log, and isn't passed on
        return
    first = key_sent(made, "a-1", "k", name)
    assert first.startswith("goex-") and first == key_sent(made, "a-1", "k", name) != key_sent(made, "a-2", "k", name)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("header", "changing", "reading"),
    [
        ("X-Dry-Run: true", "header", ""),
        ("Slack-Account: acct_test", "header", ""),
        ("Content-Profile: staging", "header", ""),
        ("X-Goog-User-Project: p", "header", ""),
        ("Content-Profile: public", "", ""),
        ("X-Upsert: true", "header", ""),
        ("X-Upsert: false", "", ""),
        ("X-Audit-Log-Reason: c", "header", ""),
        ("X-Atlassian-Token: no-check", "", ""),
        ("X-Atlassian-Token: nocheck", "", ""),
        ("X-Atlassian-Token: abc", "credential", "credential"),
        ("X-CSRF-Token: no-check", "credential", "credential"),
        ("X-NewRelic-Id: c", "", ""),
        ("Uberctx-A: c", "", ""),
        ("X-Forwarded-For: 1.2.3.4", "", ""),
        ("HTTP-Referer: https://a", "", ""),
        ("X-Fern-Language: Python", "", ""),
        ("X-Airtable-Application-Id: app1", "", ""),
        ("GoCardless-Client-Library: x", "", ""),
        ("X-Stainless-Lang: python", "", ""),
        ("Sec-Fetch-Mode: cors", "", ""),
        ("X-Client-Info: supabase-js/2", "", ""),
        ("X-Goog-Api-Client: gl-python/3", "", ""),
        ("Stripe-Client-User-Agent: x", "", ""),
        ("X-Stripe-Client-Telemetry: x", "", ""),
        ("Traceparent: 00-1", "", ""),
        ("DNT: 1", "", ""),
        ("Cache-Control: no-cache", "", ""),
        ("Content-Range: bytes 0-1/9", "header", "header"),
    ],
)
def test_a_header_with_a_meaning_is_not_left_out_of_a_change(header: str, changing: str, reading: str) -> None:
    """What a person reads as a dry run would be a real one."""
    assert opened(plan(ISSUE, accounts=(GITHUB,)), header) == changing
    made = plan("import requests\nrequests.get('https://api.github.com/repos/o/r/issues')", accounts=(GITHUB,))
    assert sent(made, GITHUB, "GET /repos/o/r/issues", headers=[header]) == reading


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("query", "undo_class", "line", "passes"),
    [
        ("", UndoClass.COMPENSATING, "", {"": False}),
        ("?fields=summary", UndoClass.COMPENSATING, 'fields: "summary", or left out', {"?fields=summary": False}),
        ("?fields=id, summary", UndoClass.COMPENSATING, "", {"?fields=id,%20summary": False}),
        ("?fields=id,a(b)", UndoClass.IRREVERSIBLE, "", {"?fields=id,a(b)": False}),
        ("?fields=*", UndoClass.COMPENSATING, 'fields: "*", or left out', {"?fields=%2A": False}),
        ("?fields=' + it + '", UndoClass.IRREVERSIBLE, "fields: whatever the program makes it", {"?fields=a": False}),
    ],
)
def test_what_a_way_back_reads_in_the_answer_is_not_left_out(
    query: str, undo_class: UndoClass, line: str, passes: dict[str, bool]
) -> None:
    made = plan(f"import requests\nrequests.post('{EVENTS}{query}', json={EVENT})", accounts=(CALENDAR,))
    assert made.undo_class is undo_class
    assert not line or line in told(made)
    for target, refused in {**passes, "?fields=id,x": "whatever" not in line}.items():
        found = sent(made, CALENDAR, f"POST /calendar/v3/calendars/primary/events{target}", EVENT)
        assert bool(found) is refused, found
    masked = sent(
        made, CALENDAR, "POST /calendar/v3/calendars/primary/events", EVENT, headers=["X-Goog-FieldMask: summary"]
    )
    assert masked == ("header" if undo_class is UndoClass.COMPENSATING else "")


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("line", "undo_class", "refused"),
    [
        ("H = {}", UndoClass.COMPENSATING, "header"),
        ("H = {'Prefer': 'return=minimal'}", UndoClass.IRREVERSIBLE, ""),
        ("H = {'Prefer': 'return=headers-only'}", UndoClass.IRREVERSIBLE, ""),
    ],
)
def test_a_way_back_that_reads_the_answer_wants_one(line: str, undo_class: UndoClass, refused: str) -> None:
    made = plan(f"{line}\n{ISSUE}", accounts=(GITHUB,))
    assert made.undo_class is undo_class
    assert opened(made, "Prefer: return=minimal") == refused
    assert opened(made, "Prefer: return=representation") == ""


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("Accept: application/vnd.x.v9+json", 'Accept: "application/vnd.x.v9+json", or left out'),
        ("Accept: application/json; version=3.preview", 'Accept: "application/json;version=3.preview", or left out'),
        ("Content-Type: application/merge-patch+json", 'Content-Type: "application/merge-patch+json", or left out'),
        ("Content-Type: application/vnd.x.v9+json", 'Content-Type: "application/vnd.x.v9+json", or left out'),
    ],
)
def test_a_version_in_a_media_type_is_one_that_is_written_out(header: str, line: str) -> None:
    name, _, value = header.partition(": ")
    other, written = plan(ISSUE, accounts=(GITHUB,)), plan(f"H = {{'{name}': '{value}'}}\n{ISSUE}", accounts=(GITHUB,))
    for made, refused in ((other, "header"), (written, "")):
        if name == "Accept":
            assert opened(made, header) == refused
        else:
            assert opened(made, kind=value) == refused
    assert line in told(written) and written.undo_class is UndoClass.IRREVERSIBLE
    assert other.undo_class is UndoClass.COMPENSATING


@pytest.mark.parametrize(
    "header",
    [
        "Accept: */*", "Accept: application/json, text/plain;q=0.9, */*;q=0.1", "Accept: text/csv; charset=utf-8",
        "Accept: application/vnd.github+json", "Accept: image/png", "Accept: application/vnd.github.v3+json",
        "Accept: application/vnd.github.mercy-preview+json", "Accept: application/json;odata.metadata=minimal",
        "Accept: application/json;IEEE754Compatible=false", "Accept: text/html, *; q=.2, */*", "Accept: text/html;",
        "Accept: application/json; indent=2", "Accept: application/signed-exchange;v=b3;q=0.7",
    ],
)  # fmt: skip
def test_a_format_of_the_answer_passes(header: str) -> None:
    assert opened(plan(ISSUE, accounts=(GITHUB,)), header) == ""


@pytest.mark.parametrize("kind", ["application/vnd.github+json", "application/vnd.github.v3+json"])
def test_githubs_own_json_is_json(kind: str) -> None:
    made = plan(f"H = {{'Content-Type': '{kind}'}}\n{ISSUE}", accounts=(GITHUB,))
    assert opened(made, kind=kind) == "" and made.undo_class is UndoClass.COMPENSATING


def test_the_media_type_that_a_document_has_passes() -> None:
    slack = CATALOG.service("slack")
    method = replace(slack.methods["chat.postMessage"], media="application/merge-patch+json")
    catalog = Catalog.of([replace(slack, methods={**slack.methods, method.name: method})])
    program = f"import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={POSTED})"
    for known, refused in ((catalog, ""), (CATALOG, "header")):
        made = plan(program, catalog=known)
        kind = "application/merge-patch+json"
        assert sent(made, SLACK, "POST /api/chat.postMessage", POSTED, kind=kind) == refused
        assert made.undo_class is UndoClass.COMPENSATING


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("line", "header", "refused", "undo_class"),
    [
        ("SHOP_API_VERSION = '7'; H = {}", "X-GitHub-Api-Version: 7", "header", UndoClass.COMPENSATING),
        ("GITHUB_API_VERSION = '7'; H = {}", "X-GitHub-Api-Version: 7", "", UndoClass.IRREVERSIBLE),
        ("H = {'X-Restore-Version': '3'}", "X-Restore-Version: 3", "", UndoClass.IRREVERSIBLE),
        ("H = {'If-Version': '3'}", "If-Version: 3", "", UndoClass.IRREVERSIBLE),
        ("H = {'revision': '2024-10-15'}", "revision: 2024-10-15", "", UndoClass.IRREVERSIBLE),
        ("H = {'X-GitHub-Api-Version': '2022-11-28'}", "X-GitHub-Api-Version: 2022-11-28", "", UndoClass.COMPENSATING),
        ("H = {'X-GitHub-Api-Version': '2026-03-10'}", "X-GitHub-Api-Version: 2026-03-10", "", UndoClass.COMPENSATING),
        ("H = {'X-App-Version': '3'}", "X-App-Version: 3", "", UndoClass.COMPENSATING),
    ],
)
def test_no_way_back_is_promised_of_another_version(
    line: str, header: str, refused: str, undo_class: UndoClass
) -> None:
    made = plan(f"{line}\n{ISSUE}", accounts=(GITHUB,))
    assert opened(made, header) == refused
    assert made.undo_class is undo_class
    assert any(one.endswith('", or left out') for one in told(made)) is (undo_class is UndoClass.IRREVERSIBLE)


def test_a_version_that_is_called_after_another_service_is_meant_for_that_one() -> None:
    program = f"H = {{}}; slack_version = '9'\n{ISSUE}"
    assert plan(program, accounts=(GITHUB, SLACK)).undo_class is UndoClass.COMPENSATING
    program = f"H = {{'Slack-Version': '9'}}\n{ISSUE}"
    assert plan(program, accounts=(GITHUB, SLACK)).undo_class is UndoClass.COMPENSATING
    assert plan(program, accounts=(GITHUB,)).undo_class is UndoClass.IRREVERSIBLE


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    "line",
    [
        "APP_VERSION = '1.4.2'",
        "schema_version = '3'; release_version = '2'",
        "revision = 'abc'",
        "ctx.minimum_version = 'TLSv1_2'",
        "info = {'python_version': '3.11', 'revision': 'abc'}",
        "pod = {'apiVersion': 'v1', 'kind': 'Pod'}",
        "text = 'I would take return=minimal'",
        "prefer = 'dark'",
        "content_type = 'application/geo+json'",
        "names = {'en-US': 'English', 'pt-BR': 'Portuguese'}",
        "requests.get('https://x.example/a', headers={'Accept': 'application/vnd.api+json', 'X-App': 'bot'})",
        "requests.request('GET', 'https://x.example/' + f('('),\n  headers={\n    'Bank-Version': '7',\n  })",
    ],
)
def test_what_no_header_of_a_call_can_be_costs_no_way_back(line: str) -> None:
    made = plan(f"import requests\nH = {{}}\n{line}\n{ISSUE}", accounts=(GITHUB,))
    assert made.undo_class is UndoClass.COMPENSATING, made.undo_text
    assert not any("or left out" in one for one in told(made))
    for header in ("Schema-Version: 3", "Revision: abc", "Python-Version: 3.11", "X-App: bot", "Bank-Version: 7"):
        assert opened(made, header) == "header"


def test_a_version_that_a_variable_is_called_after_the_service_passes() -> None:
    for line, known in (("api_version = '2023-01-01'", True), ("github_version = '2023-01-01'", True)):
        made = plan(f"H = {{}}; {line}\n{ISSUE}", accounts=(GITHUB,))
        assert (made.undo_class is UndoClass.IRREVERSIBLE) is known


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("name", "passes"),
    [
        ("X-App", True),
        ("X-GitHub-Next-Global-Id", True),
        ("GitHub-Verified-Creators", True),
        ("X-Dry-Run", True),
        ("X-Http-Method", False),
        ("X-Amz-Date", False),
        ("X-Forwarded-Host", False),
        ("X-Original-Path", False),
        ("X-Rewritten-To", False),
        ("X-Custom-Url", False),
        ("X-My-Secret", False),
        ("Slack-Account", True),
        ("Client-Id", True),
        ("On-Behalf-Of", True),
        ("Content-Profile", True),
        ("Zotero-Write-Token", False),
        ("Reply-To", False),
        ("Content-Location", False),
        ("due-date", False),
    ],
)
def test_a_header_that_is_written_out_is_told_and_passes(name: str, passes: bool) -> None:
    made = plan(f"H = {{'{name}': 'true'}}\n{ISSUE}", accounts=(GITHUB,))
    assert (opened(made, f"{name}: true") == "") is passes
    assert opened(made, f"{name}: other") != ""
    assert (f'{name}: "true", or left out' in told(made)) is passes
    assert made.undo_class is (UndoClass.IRREVERSIBLE if passes else UndoClass.COMPENSATING)


def test_what_a_way_back_reads_is_added_to_a_list_of_fields() -> None:
    made = plan(f"import requests\nrequests.post('{EVENTS}?fields=id', json={EVENT})", accounts=(CALENDAR,))
    rule = permits_of(made)[0].rule
    target = admitted(made, CALENDAR, "/calendar/v3/calendars/primary/events?fields=id").admission.target
    fields = unquote(target.partition("?fields=")[2]).split(",")
    assert fields[0] == "id" and sorted(fields) == sorted({"id", *rule.shown}) and len(fields) > 1
    assert with_shown((("fields", "a(b"), ("q", "id")), rule) == (("fields", "a(b"), ("q", "id"))
    plain = permits_of(plan(ISSUE, accounts=(GITHUB,)))[0].rule
    assert plain.shown == () and with_shown((("fields", "id"),), plain) == (("fields", "id"),)


def test_a_services_own_list_in_one_header_passes() -> None:
    github = CATALOG.service("github")
    catalog = Catalog.of([replace(github, headers={**github.headers, "Anthropic-Beta": "a-1,b-2"})])
    made = plan(ISSUE, accounts=(GITHUB,), catalog=catalog)
    assert opened(made, "Anthropic-Beta: a-1,b-2") == opened(made, "Anthropic-Beta: a-1, b-2") == ""
    assert opened(made, "Anthropic-Beta: a-1,b-3") == "header"


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "piece",
    [
        "#" + "betas=[" * 28 + "\n", "betas=[", "betas=[a,", "betas=['x',", "a='x'\nbetas=[a, a, a]\n",
        "a='x'; x-version: a\n", "Prefer: '", "prefer:" + " " * 70 + "a", "aversion:" + " a" * 30, "accept: 'a/b, ",
        "x = process.env.x || ", "_" * 60 + "version=", "from (((", "f('https://x.example/",
        "f('https://x.example/'" + "(" * 40, "'X-A':'", "'a-" + "a-" * 30, "'X-A: ",
    ],
)  # fmt: skip
def test_a_program_is_gone_through_in_a_time_that_grows_as_it_does(piece: str) -> None:
    program = (piece * (200_000 // len(piece) + 1))[:195_000]
    begun = time.process_time()
    Headers.of(program, [("Bank-Version", "1")] * 64)
    assert time.process_time() - begun < 2


def test_a_program_is_gone_through_once_however_much_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = Headers.of

    def counted(program: str, found: Sequence[tuple[str, str]]) -> Headers:
        made.append(program)
        return real(program, found)

    monkeypatch.setattr(Headers, "of", counted)
    methods = ("slack.chat.postMessage", "slack.pins.add", "slack.users.list")
    action = code("print()", *methods)
    assert len(look(action, accounts_of(action, context(SLACK).accounts), CATALOG).permits) > 3
    assert len(made) == 1
