"""`[confine] recipients` holds whatever a call's arguments are named; without it each of these is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from policies.limits import NOT_CONFINED, Confinement
from policies.rules.cases import read
from policies.rules.facts import Situation
from policies.services import Risk
from tests.adversarial.recipient_attacks import ALLOWED, TRIED
from tests.goex.daemon.vault_calls import put
from tests.support.daemon import Daemon
from tests.support.journey import Journey

CATALOG = Catalog.bundled()
BOUNDS = Confinement(recipients=ALLOWED)

WITHIN: list[tuple[str, dict[str, Any]]] = [
    ("slack.chat.postMessage", {"channel": "#ops", "text": "x"}),
    ("slack.chat.delete", {"channel": "C0123456789", "ts": "1.2"}),
    ("gmail.users.messages.send", {"to": ["ann@example.org"], "subject": "x", "body": "x"}),
    ("gmail.users.drafts.create", {"to": ["eve@evil.example"], "subject": "x", "body": "x"}),
    ("gmail.users.messages.modify", {"id": "1", "addLabelIds": ["x"]}),
    ("gmail.users.settings.updateVacation", {"enableAutoReply": False}),
    (
        "google_calendar.events.insert",
        {"summary": "x", "start": {"date": "2026-01-05"}, "end": {"date": "2026-01-06"}},
    ),
    (
        "google_calendar.events.insert",
        {
            "calendarId": "primary",
            "summary": "x",
            "start": {"date": "2026-01-05"},
            "end": {"date": "2026-01-06"},
            "attendees": [{"email": "ann@example.org"}],
        },
    ),
    (
        "google_calendar.acl.insert",
        {"calendarId": "x", "role": "r", "scope": {"type": "user", "value": "a@example.org"}},
    ),
    (
        "google_drive.permissions.create",
        {"fileId": "1", "role": "reader", "type": "user", "emailAddress": "ann@example.org"},
    ),
    ("google_drive.permissions.create", {"fileId": "1", "role": "reader", "type": "domain", "domain": "example.org"}),
    ("google_drive.files.create", {"name": "x", "mimeType": "text/plain"}),
    ("google_drive.files.list", {}),
    ("github.comments.create", {"owner": "acme", "repo": "web", "issue_number": 1, "body": "x"}),
    ("spotify.create_playlist", {"name": "x"}),
]


def refusal(bounds: Confinement, method: str, arguments: dict[str, Any], catalog: Any = CATALOG) -> str:
    request, _, _ = read({"call": method, "arguments": arguments}, CATALOG)
    return bounds.refusal(request.plan, agent="bot", situation=Situation(), catalog=catalog)


@pytest.mark.promise(15)
@pytest.mark.parametrize("name", TRIED)
def test_refused(name: str) -> None:
    method, arguments, _ = TRIED[name]
    assert "recipients" in refusal(BOUNDS, method, arguments)


@pytest.mark.parametrize("name", TRIED)
def test_control(name: str) -> None:
    method, arguments, _ = TRIED[name]
    assert refusal(NOT_CONFINED, method, arguments) == ""


@pytest.mark.parametrize(("method", "arguments"), WITHIN)
def test_what_stays_within_the_bounds_is_not_refused(method: str, arguments: dict[str, Any]) -> None:
    assert refusal(BOUNDS, method, arguments) == ""


def test_every_bundled_method_that_changes_something_says_whom_it_reaches() -> None:
    methods = [method for service in CATALOG.services.values() for method in service.methods.values()]
    assert [one.id for one in methods if one.risk > Risk.READ and one.audience is None] == []


@pytest.mark.promise(15)
@pytest.mark.parametrize(("risk", "refused"), [(Risk.READ, False), (Risk.WRITE, True), (Risk.ADMIN, True)])
def test_a_method_that_says_nothing_may_only_read(risk: Risk, refused: bool) -> None:
    """As every imported method does: its arguments' names may hide anybody."""
    slack = CATALOG.service("slack")
    silent = replace(slack.methods["chat.postMessage"], audience=None, risk=risk)
    catalog = Catalog.of([replace(slack, methods={**slack.methods, "chat.postMessage": silent})])
    arguments = {"channel": "#ops", "text": "x"}
    assert ("isn't known" in refusal(BOUNDS, "slack.chat.postMessage", arguments, catalog)) is refused


@pytest.mark.promise(15)
@pytest.mark.docker
def test_an_agent_is_refused_unasked_by_the_daemon() -> None:
    request = pb.ExecuteRequest(
        calls=pb.Calls(
            calls=[
                pb.Call(
                    service="slack",
                    method="conversations.create",
                    arguments_json=json.dumps({"name": "the-secret"}),
                )
            ]
        )
    )
    with Daemon(config='[confine]\nrecipients = ["#ops"]\n') as daemon:
        put(daemon, "default")
        ended = Journey(daemon, request, token=daemon.add_agent("bot")).finished()
        assert (ended.action.state, "recipients" in ended.problem.message) == ("denied", True)
    with Daemon() as daemon:
        put(daemon, "default")
        journey = Journey(daemon, request, token=daemon.add_agent("bot"))
        assert journey.asked()
        journey.leave()
