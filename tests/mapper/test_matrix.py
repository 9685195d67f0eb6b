"""The Matrix manifest against a real homeserver: each method does what it says, and each undo takes it back.

The few lines below send a call the way a runtime would, without any of a runtime's protection: what is tested here is
whether the manifest tells the truth about the server.
"""

from __future__ import annotations

import json
import secrets
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pytest

from mapper.catalog import Catalog
from mapper.templates import complete, expectations, fill, substitute
from policies.actions import Call
from policies.jsonvalue import MissingValue, find
from policies.services import CallTemplate, Method
from tests.services.synapse import Synapse

pytestmark = [pytest.mark.synapse, pytest.mark.slow]

CATALOG = Catalog.bundled()
MATRIX = CATALOG.service("matrix")


class Person:
    """A user who sends calls as the manifest describes them."""

    def __init__(self, server: Synapse, name: str) -> None:
        self.server = server
        self.token = server.register(name)
        self.id = f"@{name}:goex.test"

    def send(self, method: Method, arguments: dict[str, Any], key: str) -> tuple[int, Any]:
        whole = complete(method, arguments, key)
        path = "/".join(
            quote(str(whole[part[1:-1]]), safe="") if part.startswith("{") else part for part in method.path.split("/")
        )
        query = {name: whole[name] for name, place in method.locations.items() if place == "query" and name in whole}
        body = {name: whole[name] for name, place in method.locations.items() if place == "body" and name in whole}
        request = Request(
            f"{self.server.url}{path}{'?' + urlencode(query) if query else ''}",
            method=method.http,
            data=json.dumps(body).encode() if method.body == "json" else None,
            headers={MATRIX.placement.header: MATRIX.placement.format.replace("{secret}", self.token)},
        )
        try:
            with urlopen(request, timeout=300) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)

    def holds(self, template: CallTemplate, sources: dict[str, Any], key: str) -> tuple[bool, Any]:
        """Send a template; whether all that it expects holds, and the answer."""
        status, body = self.send(MATRIX.methods[template.method], fill(template.arguments, sources), key)
        expected = expectations(MATRIX, template)
        good = status < 400 or any(expect.op == "status" for expect in expected)
        for expect in expected:
            value = substitute(expect.value, lambda reference: find(sources[reference.source], reference.path))
            try:
                got, there = find(body, expect.path), True
            except MissingValue:
                got, there = None, False
            good = (
                good
                and {
                    "status": expect.op == "status" and status in (value or ()),
                    "equals": there and got == value,
                    "not_equals": not there or got != value,
                    "exists": there,
                    "absent": not there,
                }[expect.op]
            )
        return good, body

    def act(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Do it: validated, pre-read, sent, probed. The sources that templates are filled from."""
        call = CATALOG.validate(Call(service="matrix", method=name, arguments=arguments))
        method, key = MATRIX.methods[name], secrets.token_hex(8)
        sources: dict[str, Any] = {"request": complete(method, call.arguments, key), "action": {"key": key}}
        if method.undo is not None and method.undo.pre is not None:
            good, sources["pre"] = self.holds(method.undo.pre, sources, key)
            assert good, sources["pre"]
        status, sources["response"] = self.send(method, dict(call.arguments), key)
        assert status == 200, sources["response"]
        if method.probe is not None:
            assert self.holds(method.probe, sources, key)[0]
        return sources

    def guarded(self, name: str, sources: dict[str, Any]) -> bool:
        undo = MATRIX.methods[name].undo
        assert undo is not None and undo.guard is not None
        return self.holds(undo.guard, sources, "guard")[0]

    def take_back(self, name: str, sources: dict[str, Any]) -> None:
        """The guard holds, the undo runs, the read-back holds, and the guard holds no more."""
        undo = MATRIX.methods[name].undo
        assert undo is not None and undo.verify is not None
        assert self.guarded(name, sources)
        assert not self.holds(undo.verify, sources, "verify")[0]  # the read-back can fail
        for template in undo.calls:
            assert self.holds(template, {**sources, "action": {"key": secrets.token_hex(8)}}, secrets.token_hex(8))[0]
        assert self.holds(undo.verify, sources, "verify")[0]
        assert not self.guarded(name, sources)


@pytest.fixture(scope="module")
def ann(synapse: Synapse) -> Person:
    return Person(synapse, "mapper-ann")


@pytest.fixture(scope="module")
def ben(synapse: Synapse) -> Person:
    return Person(synapse, "mapper-ben")


@pytest.fixture
def room(synapse: Synapse, ann: Person) -> str:
    return synapse.create_room(ann.token, "Old name", public=True)


def test_sending_and_redacting(synapse: Synapse, ann: Person, room: str) -> None:
    sources = ann.act("rooms.send", roomId=room, body="hello $request.x")
    assert synapse.texts(ann.token, room) == ["hello $request.x"]
    ann.take_back("rooms.send", sources)
    assert synapse.texts(ann.token, room) == []


def test_a_message_that_was_redacted_or_edited_is_guarded(synapse: Synapse, ann: Person, room: str) -> None:
    gone = ann.act("rooms.send", roomId=room, body="one")
    synapse.redact(ann.token, room, gone["response"]["event_id"])
    assert not ann.guarded("rooms.send", gone)
    edited = ann.act("rooms.send", roomId=room, body="two")
    assert ann.guarded("rooms.send", edited)
    synapse.send(
        ann.token,
        room,
        "* three",
        **{
            "m.new_content": {"msgtype": "m.text", "body": "three"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": edited["response"]["event_id"]},
        },
    )
    assert not ann.guarded("rooms.send", edited)


def test_the_same_key_sends_once(synapse: Synapse, ann: Person, room: str) -> None:
    method = MATRIX.methods["rooms.send"]
    answers = [ann.send(method, {"roomId": room, "body": "once"}, "same-key") for _ in range(2)]
    assert answers[0] == answers[1] and synapse.texts(ann.token, room) == ["once"]


@pytest.mark.parametrize(("name", "argument"), [("rooms.setName", "name"), ("rooms.setTopic", "topic")])
def test_state_is_restored(ann: Person, room: str, name: str, argument: str) -> None:
    ann.act(name, roomId=room, **{argument: "Before"})
    sources = ann.act(name, roomId=room, **{argument: "After"})
    ann.take_back(name, sources)
    again = ann.act(name, roomId=room, **{argument: "After"})
    ann.act(name, roomId=room, **{argument: "Someone else's"})
    assert not ann.guarded(name, again)


def test_a_room_without_a_topic_can_get_one(ann: Person, room: str) -> None:
    sources = ann.act("rooms.setTopic", roomId=room, topic="First")
    assert sources["pre"]["errcode"] == "M_NOT_FOUND"


def test_joining(ann: Person, ben: Person, room: str) -> None:
    sources = ben.act("rooms.join", roomId=room)
    with pytest.raises(AssertionError):
        ben.act("rooms.join", roomId=room)  # in it already: the pre-read says so
    ben.take_back("rooms.join", sources)


def test_inviting_and_kicking(ann: Person, ben: Person, room: str) -> None:
    sources = ann.act("rooms.invite", roomId=room, user_id=ben.id)
    with pytest.raises(AssertionError):
        ann.act("rooms.invite", roomId=room, user_id=ben.id)  # an open invitation: undo would withdraw that one
    ann.take_back("rooms.invite", sources)
    accepted = ann.act("rooms.invite", roomId=room, user_id=ben.id)
    ben.act("rooms.join", roomId=room)
    assert not ann.guarded("rooms.invite", accepted)
    ann.act("rooms.kick", roomId=room, user_id=ben.id, reason="bye")


def test_creating(ann: Person, ben: Person) -> None:
    sources = ann.act("rooms.create", name="New", topic="T", invite=[ben.id])
    ann.take_back("rooms.create", sources)


def test_the_display_name(ann: Person) -> None:
    ann.act("profile.setDisplayName", userId=ann.id, displayname="Before")
    sources = ann.act("profile.setDisplayName", userId=ann.id, displayname="After")
    ann.take_back("profile.setDisplayName", sources)


def test_reads(synapse: Synapse, ann: Person) -> None:
    room = synapse.create_room(ann.token, "R", alias="mapper-reads", public=True)
    event = synapse.send(ann.token, room, "hi")
    assert ann.act("account.whoami")["response"]["user_id"] == ann.id
    assert room in ann.act("rooms.list")["response"]["joined_rooms"]
    assert "chunk" in ann.act("rooms.public", limit=3)["response"]
    assert ann.act("rooms.resolve", alias="#mapper-reads:goex.test")["response"]["room_id"] == room
    assert ann.id in ann.act("rooms.members", roomId=room)["response"]["joined"]
    assert ann.act("rooms.member", roomId=room, userId=ann.id)["response"]["membership"] == "join"
    assert ann.act("rooms.messages", roomId=room, limit=1)["response"]["chunk"][0]["content"]["body"] == "hi"
    assert ann.act("rooms.event", roomId=room, eventId=event)["response"]["content"]["body"] == "hi"
    assert ann.act("rooms.name", roomId=room)["response"]["name"] == "R"
    assert ann.act("profile.displayName", userId=ann.id)["response"]["displayname"]
    ann.act("rooms.redact", roomId=room, eventId=event, reason="x")
    ann.act("rooms.leave", roomId=room)
