"""What actions are confined to, as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mapper.catalog import Catalog
from policies.actions import ApiCalls, Files, Mongo, Plan, Revert, Sql, UndoClass
from policies.grants import PERSON
from policies.limits import NOT_CONFINED, Confinement, described
from policies.rules.cases import read
from policies.rules.facts import Situation

CATALOG = Catalog.bundled()
FOLDERS = Confinement(folders=("/home/you/docs", "/srv/"))
HOSTS = Confinement(hosts=("slack.com", "*.example.org"))
PEOPLE = Confinement(recipients=("*@example.org", "#ops"))
DATA = Confinement(databases=("app", "test_*"), tables=("orders",), rows=100)
MAIL = "gmail.users.messages.send"


def invited(users: str) -> dict[str, Any]:
    return {"call": "slack.conversations.invite", "arguments": {"channel": "#ops", "users": users}}


def mailed(to: str) -> dict[str, Any]:
    return {"call": MAIL, "arguments": {"to": [to], "body": "x"}}


WITHIN: dict[str, tuple[Confinement, dict[str, Any]]] = {
    "no confinement": (NOT_CONFINED, {"folder": "/etc"}),
    "the folder itself": (FOLDERS, {"folder": "/home/you/docs"}),
    "below it": (FOLDERS, {"folder": "/home/you/docs/a/b"}),
    "below one with a slash": (FOLDERS, {"folder": "/srv/x"}),
    "a call, where folders are confined": (FOLDERS, {"call": "slack.users.list"}),
    "everything below /": (Confinement(folders=("/",)), {"folder": "/etc"}),
    "an allowed host": (HOSTS, {"call": "slack.users.list"}),
    "a host in letters": (
        Confinement(hosts=("BÜCHER.example",)),
        {"call": "slack.users.list", "hosts": ["xn--bcher-kva.example"]},
    ),
    "a host by pattern": (HOSTS, {"call": "slack.users.list", "hosts": ["api.example.org"]}),
    "files, where hosts are confined": (HOSTS, {"folder": "/x"}),
    "an allowed recipient": (PEOPLE, {"call": MAIL, "arguments": {"to": ["Bob <BOB@example.org>"], "body": "x"}}),
    "addresses in one text": (PEOPLE, invited("mailto:ann@example.org, Ann Lee <ann@example.org>")),
    "addresses with names of all sorts": (
        PEOPLE,
        invited(
            '"Lee, Ann" <ann@example.org>; \u0130brahim O\u2019Neil <io@example.org >,'
            " \u0905\u0928\u093f <a@example.org>"
        ),
    ),
    "an event that nobody is told of": (
        PEOPLE,
        {"call": "google_calendar.events.delete", "arguments": {"eventId": "e1", "sendUpdates": "none"}},
    ),
    "a channel": (PEOPLE, {"call": "slack.chat.postMessage", "arguments": {"channel": "#ops", "text": "x"}}),
    "nobody": (PEOPLE, {"call": "slack.users.list"}),
    "allowed tables": (
        DATA,
        {"folder": "/x", "databases": ["app", "test_1"], "tables": ["orders"], "bounds": {"rows": 100}},
    ),
    "no data at all": (DATA, {"folder": "/x"}),
    "the person takes back": (FOLDERS, {"folder": "/etc", "kind": "undo", "agent": PERSON}),
    "the person keeps": (FOLDERS, {"folder": "/etc", "kind": "commit", "agent": PERSON}),
}
OUTSIDE: dict[str, tuple[Confinement, dict[str, Any], str]] = {
    "another folder": (FOLDERS, {"folder": "/home/you"}, "isn't one of those"),
    "one that begins alike": (FOLDERS, {"folder": "/home/you/docsshop"}, "isn't one of those"),
    "the person, too": (FOLDERS, {"folder": "/etc", "agent": PERSON}, "isn't one of those"),
    "an agent takes back": (FOLDERS, {"folder": "/etc", "kind": "undo"}, "isn't one of those"),
    "the person does it again": (FOLDERS, {"folder": "/etc", "kind": "redo", "agent": PERSON}, "isn't one of those"),
    "another host": (
        HOSTS,
        {"call": "matrix.rooms.list", "hosts": ["matrix.org"]},
        "matrix.org isn't one",
    ),
    "a host that ends alike": (HOSTS, {"call": "slack.users.list", "hosts": ["slack.com.evil.example"]}, "hosts"),
    "the pattern's own domain": (HOSTS, {"call": "slack.users.list", "hosts": ["example.org"]}, "hosts"),
    "another recipient": (PEOPLE, {"call": MAIL, "arguments": {"to": ["eve@example.net"], "body": "x"}}, "recipients"),
    "one of several": (
        PEOPLE,
        {"call": MAIL, "arguments": {"to": ["a@example.org"], "bcc": ["eve@example.net"], "body": "x"}},
        "eve@example.net isn't one of the recipients",
    ),
    "one hidden in another's name": (
        PEOPLE,
        {"call": MAIL, "arguments": {"to": ["a@example.org <eve@example.net>"], "body": "x"}},
        "eve@example.net",
    ),
    "an id beside an address": (PEOPLE, invited("U0EVE,ann@example.org"), "u0eve isn't"),
    "an id behind an address": (PEOPLE, invited("ann@example.org U0EVE"), "u0eve isn't"),
    "an id in the place of a name": (PEOPLE, invited("U0EVE <ann@example.org>"), "u0eve isn't"),
    "an id on the line of an address": (PEOPLE, invited("U0EVE\r<ann@example.org>"), "u0eve isn't"),
    "an id in a name with a comma": (PEOPLE, invited('"Lee, U0EVE" <ann@example.org>'), "lee isn't"),
    "an id behind a tab": (Confinement(recipients=("#ops*",)), invited("#ops\tU0EVE"), "u0eve isn't"),
    "an address of another alphabet in the place of a name": (
        PEOPLE,
        invited("eve\uff20example.net <ann@example.org>"),
        "eve@example.net isn't",
    ),
    "an @ of another alphabet": (PEOPLE, invited("eve\uff20example.net,ann@example.org"), "eve@example.net isn't"),
    "a list of full width": (PEOPLE, invited("eve\uff20example.net\uff0cann@example.org"), "eve@example.net isn't"),
    "two @ in one word": (PEOPLE, mailed("eve@example.net|ann@example.org"), "eve@example.net|ann isn't"),
    "a route": (PEOPLE, mailed("@example.net:ann@example.org"), "@example.net:ann isn't"),
    "copies of an address's URL": (PEOPLE, mailed("mailto:eve@example.net?cc=ann@example.org"), "cc isn't"),
    "a URL that is encoded": (PEOPLE, mailed("mailto:eve%40example.net?cc=ann@example.org"), "cc isn't"),
    "nobody that a text names": (PEOPLE, invited(" , "), "isn't known"),
    "an empty list, as if there were none": (
        PEOPLE,
        {"call": "google_drive.files.copy", "arguments": {"fileId": "1AbC", "parents": []}},
        "isn't known",
    ),
    "guests who are told that they aren't any more": (
        PEOPLE,
        {
            "call": "google_calendar.events.patch",
            "arguments": {"eventId": "e1", "attendees": [{"email": "ann@example.org"}], "sendUpdates": "all"},
        },
        "isn't known",
    ),
    "guests of an event that is moved": (
        PEOPLE,
        {
            "call": "google_calendar.events.move",
            "arguments": {"eventId": "e1", "destination": "primary", "sendUpdates": "all"},
        },
        "isn't known",
    ),
    "guests of an event that is deleted": (
        PEOPLE,
        {"call": "google_calendar.events.delete", "arguments": {"eventId": "e1", "sendUpdates": "externalOnly"}},
        "isn't known",
    ),
    "one that an answer fills in": (
        PEOPLE,
        {"call": "slack.chat.postMessage", "arguments": {"channel": {"$from": 0, "path": "$.id"}, "text": "x"}},
        "isn't known before it runs",
    ),
    "another channel": (
        PEOPLE,
        {"call": "slack.chat.postMessage", "arguments": {"channel": "#all", "text": "x"}},
        "#all isn't",
    ),
    "another database": (DATA, {"folder": "/x", "databases": ["prod"], "tables": ["orders"]}, "prod isn't one"),
    "another table": (DATA, {"folder": "/x", "databases": ["app"], "tables": ["people"]}, "people isn't one"),
    "no table named": (DATA, {"folder": "/x", "databases": ["app"], "tables": []}, "doesn't say which tables"),
    "too many rows": (
        DATA,
        {"folder": "/x", "databases": ["app"], "tables": ["orders"], "bounds": {"rows": 101}},
        "more than the 100 rows",
    ),
    "rows that nobody bounded": (DATA, {"folder": "/x", "databases": ["app"], "tables": ["orders"]}, "100 rows"),
}


def plan_of(case: dict[str, Any]) -> tuple[Plan, str]:
    request, _, _ = read(case, CATALOG)
    return request.plan, request.agent


@pytest.mark.parametrize("name", WITHIN)
def test_within(name: str) -> None:
    confinement, case = WITHIN[name]
    plan, agent = plan_of(case)
    assert confinement.refusal(plan, agent=agent, situation=Situation(), catalog=CATALOG) == ""


@pytest.mark.promise(15)
@pytest.mark.parametrize("name", OUTSIDE)
def test_outside(name: str) -> None:
    confinement, case, says = OUTSIDE[name]
    plan, agent = plan_of(case)
    assert says in confinement.refusal(plan, agent=agent, situation=Situation(), catalog=CATALOG)


def test_a_session_of_an_agent_has_so_many_actions() -> None:
    plan, _ = plan_of({"call": "slack.users.list"})
    capped = Confinement(session_actions=3)
    for actions, refused in ((2, False), (3, True), (4, True)):
        situation = Situation(session_actions=actions)
        assert bool(capped.refusal(plan, agent="bot", situation=situation)) is refused
        assert capped.refusal(plan, agent=PERSON, situation=situation) == ""


def test_a_partition_that_is_used_through_its_parent_needs_no_place_of_its_own() -> None:
    plan, agent = plan_of({"database": "app", "scopes": ["orders:select"], "tables": ["orders", "orders_1"]})
    assert "orders_1" in DATA.refusal(plan, agent=agent, situation=Situation())
    through = replace(plan, resolved={**plan.resolved, "within": ["orders_1"]})
    assert DATA.refusal(through, agent=agent, situation=Situation()) == ""
    assert "orders isn't" in Confinement(tables=("orders_1",)).refusal(through, agent=agent, situation=Situation())


def test_what_is_confined_is_said() -> None:
    assert described(NOT_CONFINED) == {}
    assert described(Confinement(hosts=("a", "b"), rows=5)) == {"hosts": "a, b", "rows": "5"}


# ---- strict undo


def asks(standing: str = "unproven", *, undo_class: UndoClass = UndoClass.COMPENSATING, **more: Any) -> Plan:
    """A plan of two calls, a read and a change whose way back stands so."""
    steps = [
        {"call": 0, "role": "call", "service": "notes", "method": "get", "read": True},
        {"call": 1, "role": "call", "service": "notes", "method": "patch", "read": False},
    ]
    facts: dict[str, Any] = {
        "action": ApiCalls(calls=()),
        "needs": (),
        "undo_class": undo_class,
        "undo_text": "",
        "resolved": {"verb": "do", "steps": steps},
        "bounds": {},
        "catalog_hash": "",
        "image_id": "",
        "limits": {},
        "lines": (),
        "undo": {"calls": [{"call": 1, "standing": standing}]} if standing else {"calls": []},
    }
    return Plan(**{**facts, **more})


STRICT = Confinement(strict=True)
FILES = Files(folder="/x", language="shell", program="true")
MONGO = Mongo(database="shop", operations=('{"deleteMany": "orders", "filter": {}}',))
SQL = Sql(database="shop", statements="DELETE FROM orders")
REVERT: dict[str, Any] = {"resolved": {"verb": "undo", "steps": []}, "undo": {}}


@pytest.mark.promise(64)
@pytest.mark.parametrize(
    ("confinement", "agent", "plan", "says"),
    [
        (STRICT, "bot", asks("proven"), ""),
        (STRICT, "bot", asks(), "the way back of notes.patch isn't proven here"),
        (STRICT, PERSON, asks(), "isn't proven here"),
        (STRICT, "bot", asks("failed"), "isn't proven here"),
        (STRICT, "bot", asks("unbelieved"), "isn't proven here"),
        (STRICT, "bot", asks(""), "isn't proven here"),
        (STRICT, "bot", asks(undo_class=UndoClass.IRREVERSIBLE), "can't be taken back"),
        (STRICT, "bot", asks("", undo_class=UndoClass.NOTHING, resolved={"steps": []}), ""),
        (STRICT, "bot", asks("", action=Revert(verb="undo", target="a"), **REVERT), ""),
        (STRICT, "bot", asks(action=Revert(verb="redo", target="a")), "isn't proven here"),
        (STRICT, "bot", asks(undo_class=UndoClass.EXACT, action=FILES, resolved={}, undo={}), ""),
        (STRICT, "bot", asks(action=MONGO, resolved={}, undo={}), "can't be undone exactly"),
        (STRICT, "bot", asks(action=Revert(verb="redo", target="a"), resolved={}, undo={}), "can't be undone exactly"),
        (STRICT, "bot", asks(action=Revert(verb="undo", target="a"), resolved={}, undo={}), ""),
        (STRICT, "bot", asks(undo_class=UndoClass.EXACT, action=MONGO, resolved={}, undo={}), ""),
        (STRICT, "bot", asks(undo_class=UndoClass.NOTHING, action=MONGO, resolved={}, undo={}), ""),
        (STRICT, "bot", asks(action=SQL, resolved={"policy": "pairs"}, undo={"policy": "pairs"}), ""),
        (Confinement(strict_agents=("bot*",)), "bot-1", asks(action=MONGO, resolved={}, undo={}), "can't be undone"),
        (Confinement(strict_agents=("bot*",)), "helper", asks(action=MONGO, resolved={}, undo={}), ""),
        (Confinement(strict_agents=("bot*",)), "bot-1", asks(), "isn't proven here"),
        (Confinement(strict_agents=("bot*",)), "helper", asks(), ""),
        (Confinement(strict_agents=("bot*",)), PERSON, asks(), ""),
        (NOT_CONFINED, "bot", asks(), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_strict_undo(confinement: Confinement, agent: str, plan: Plan, says: str) -> None:
    found = confinement.refusal(plan, agent=agent, situation=Situation(), catalog=CATALOG)
    assert says in found if says else found == ""


def test_strict_undo_is_said() -> None:
    assert described(STRICT) == {"strict_undo": "everybody"}
    assert described(Confinement(strict_agents=("a", "b*"))) == {"strict_undo": "a, b*"}
