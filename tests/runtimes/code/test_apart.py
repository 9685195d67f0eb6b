"""Methods of one address are told apart by what they send: a rule for one is none for the others."""

from __future__ import annotations

import json

import pytest

from policies.accounts import Account
from policies.actions import Plan
from policies.services import Method, Risk, Service
from runtimes.code.record import permits_of
from runtimes.code.same_address import apart
from runtimes.gateway.admission import Admission, AskedHead, No, Ready
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.rule_match import RulePolicy
from tests.runtimes.code.support import DRIVE, GITHUB, SLACK, plan

MARK = "xx-goex-mark-abcdefghijklmnopqrstuv"
BUILD = 'from googleapiclient.discovery import build\nd = build("drive", "v3")\n'
TRASH = "d.files().update(fileId='F1', body={'trashed': True}).execute()"
FILE = "/drive/v3/files/F1"
ISSUE = "/repos/a/b/issues/1"


def sent(made: Plan, account: Account, method: str, target: str, body: object = None) -> str:
    """What the gateway does with a request by the plan's rules: "" where it passes, else the refusal's kind."""
    rules = tuple(permit.rule for permit in permits_of(made))
    policy = RulePolicy(
        GatewayPlan(action_id="a-1", rules=rules, placeholders={MARK: (account.service, account.name)}, code=True)
    )
    data = b"" if body is None else json.dumps(body).encode()
    origin = rules[0].origin
    lines = [f"{method} {target} HTTP/1.1", f"Host: {origin.host}", f"Authorization: Bearer {MARK}"]
    if data:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    head = parse_head("\r\n".join([*lines, "", ""]).encode())
    admitted = policy.admit(AskedHead(origin=origin, head=head, target=target))
    if isinstance(admitted, No):
        return admitted.kind
    assert isinstance(admitted, Admission)
    if not admitted.inspect:
        return ""
    read = policy.read(admitted, data)
    assert isinstance(read, Ready | No)
    return read.kind if isinstance(read, No) else ""


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("made", "account", "target", "own", "others"),
    [
        (
            lambda: plan("pass", "google_drive.files.star", accounts=(DRIVE,)), DRIVE, FILE, {"starred": True},
            [{"trashed": True}, {"starred": True, "trashed": True}, {"starred": False}, {"name": "x"}, {},
             {"starred": True, "writersCanShare": True}, {"starred": True, "Trashed": True}],
        ),
        (
            lambda: plan(f"{BUILD}{TRASH}", accounts=(DRIVE,)),
            DRIVE, FILE, {"trashed": True},
            [{"trashed": False}, {"name": "x"}, {"trashed": True, "name": "x"}, {"trashed": True, "labels": {}}],
        ),
        (
            lambda: plan("pass", "google_drive.files.update", accounts=(DRIVE,)), DRIVE, FILE, {"name": "x"},
            [{"trashed": True}, {"name": "x", "trashed": True}, {"name": "x", "starred": True}],
        ),
        (
            lambda: plan("pass", "github.issues.close", accounts=(GITHUB,)), GITHUB, ISSUE, {"state": "closed"},
            [{"state": "open"}, {"title": "x"}, {"state": "closed", "title": "x"}, {"state": "closed", "labels": []}],
        ),
    ],
    ids=["named", "found", "update", "issue"],
)  # fmt: skip
def test_a_rule_for_one_method_is_none_for_another_of_its_address(
    made: object, account: Account, target: str, own: object, others: list[object]
) -> None:
    assert callable(made)
    one = made()
    assert sent(one, account, "PATCH", target, own) == ""
    assert {json.dumps(other): sent(one, account, "PATCH", target, other) for other in others} == {
        json.dumps(other): "field" for other in others
    }


def test_a_field_that_no_call_of_the_program_has_is_refused_also_where_the_catalog_has_none_of_it() -> None:
    call = "import slack_sdk\nslack_sdk.WebClient(token='x').chat_postMessage(channel='C1', text='x', made_up=1)\n"
    made = plan(call, accounts=(SLACK,))
    said = {"channel": "C1", "text": "x"}
    assert sent(made, SLACK, "POST", "/api/chat.postMessage", {**said, "made_up": 2}) == ""
    assert any("made_up: whatever the program makes it" in line for line in made.lines)
    assert sent(made, SLACK, "POST", "/api/chat.postMessage", {**said, "made_up": 2, "another": 1}) == "field"


@pytest.mark.parametrize(
    ("more", "allowed"),
    [(".get(fileId='F1')", ""), (".get(fileId='F1', alt='media')", "alt"), (".get(fileId='F1', **X)", "alt")],
    ids=["facts", "content", "unknown"],
)
def test_a_files_facts_are_not_its_content(more: str, allowed: str) -> None:
    made = plan(f"{BUILD}d.files(){more}.execute()\n", accounts=(DRIVE,))
    assert sent(made, DRIVE, "GET", f"{FILE}?alt=json") == ""
    assert sent(made, DRIVE, "GET", f"{FILE}?alt=media") == ("" if allowed else "field")
    assert any("alt: whatever the program makes it" in line for line in made.lines) == bool(allowed)


@pytest.mark.parametrize(("path", "shared"), [("/a/{b}/", True), ("/a/{+id}", False), ("/a", False)])
def test_one_address_has_many_spellings(path: str, shared: bool) -> None:
    """A slash at the end says nothing to most servers, and what a part of the path is called says nothing to any."""
    methods = {
        name: Method(service="s", name=name, description="", http="GET", path=where, parameters={}, locations={},
                     scopes=("read",), risk=Risk.READ)
        for name, where in (("own", "/a/{id}"), ("other", path))
    }  # fmt: skip
    service = Service(name="s", title="S", description="", base_url="", methods=methods, scopes={})
    assert apart(methods["own"], service).shared is shared
