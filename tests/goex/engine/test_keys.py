"""Keys: the same request again is the same action, another one is refused, and no id can be worked out."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from goex.engine.core import Request
from goex.engine.keys import KeyTaken, KeyUnknown
from policies.actions import ApiCalls, Call
from policies.errors import InvalidInput
from policies.grants import ANONYMOUS
from policies.jsonvalue import canonical
from tests.goex.engine.conftest import ACTION, ASKER, Desk

WORDS = Request(intent="delete the old rows", key="k1", detach=True)
CALL = Call(service="slack", method="chat.postMessage", arguments={"channel": "#ops"}, account="work")
CALLS = Request(action=ApiCalls(calls=(CALL,)), key="k1", detach=True)
FILES = Request(action=ACTION, key="k1", detach=True)

OTHERS = {
    "database": (replace(WORDS, database="test"), replace(WORDS, database="production")),
    "folder": (WORDS, replace(WORDS, folder="/srv")),
    "services": (WORDS, replace(WORDS, code_services=("slack",))),
    "answer": (WORDS, replace(WORDS, answer="those of today")),
    "choice": (WORDS, replace(WORDS, choice=2)),
    "reads only": (replace(WORDS, reads_only=True), WORDS),
    "how long it is asked": (WORDS, replace(WORDS, ask_seconds=5)),
    "whether it outlives its client": (WORDS, replace(WORDS, detach=False)),
    "account": (CALLS, replace(CALLS, action=ApiCalls(calls=(replace(CALL, account="home"),)))),
    "dry run": (FILES, replace(FILES, action=replace(ACTION, preview="p-1"))),
}


async def test_a_key_stands_for_the_whole_request(desk: Desk) -> None:
    said = {}
    for name, requests in OTHERS.items():
        first, other = (replace(request, key=name) for request in requests)
        id = desk.engine.begin(first, desk.asker())
        assert desk.engine.keys.already(first, desk.asker()) == id, name
        try:
            said[name] = desk.engine.keys.already(other, desk.asker())
        except InvalidInput as error:
            said[name] = str(error)
    assert [name for name, text in said.items() if "another request" not in text] == [], said


async def test_a_request_comes_again_in_another_session_but_a_choice_is_of_its_own(desk: Desk) -> None:
    """Whoever reconnects sends it again; what was shown for a choice was shown in one session."""
    elsewhere = replace(desk.asker(), session="conn-2")
    id = desk.engine.begin(WORDS, desk.asker())
    assert desk.engine.keys.already(WORDS, elsewhere) == id
    chosen = replace(WORDS, choice=1, key="k2")
    id = desk.engine.begin(chosen, desk.asker())
    with pytest.raises(KeyUnknown, match=f"{id}, in another session"):  # with a fresh key it would run again
        desk.engine.keys.already(chosen, elsewhere)
    with pytest.raises(KeyTaken):
        desk.engine.keys.already(replace(chosen, choice=2), elsewhere)


async def test_of_an_agent_without_a_name_a_key_lasts_as_long_as_its_connection(desk: Desk) -> None:
    """Its session ends while the connection is there: nothing is begun anew then, nor is the old one its own."""
    first = replace(ASKER, agent=ANONYMOUS, connection="c1", session="conn-c1-anonymous-1")
    later, elsewhere = replace(first, session="conn-c1-anonymous-2"), replace(first, connection="c2")
    id = desk.engine.begin(WORDS, first)
    assert desk.engine.keys.already(WORDS, first) == id
    with pytest.raises(KeyUnknown, match=f"{id}, in another session"):
        desk.engine.keys.already(WORDS, later)
    assert desk.engine.keys.already(WORDS, elsewhere) == ""


def _noted_before(desk: Desk, key: str, asked: str) -> str:
    """What the version before noted of a request with a key."""
    id = desk.engine.keys.id(Request(key=key), desk.asker())
    with desk.core.journal.transaction() as transaction:
        row = {"id": id, "agent": ASKER.agent, "session": ASKER.session, "source": "a test", "intent": ""}
        desk.core.actions.create(transaction, **row, action=ACTION, detached=True, asked=asked)
    return id


async def test_keys_of_the_version_before_are_known_or_cant_be(desk: Desk) -> None:
    """Its hash was of what a request stood for when it came: of one that says all itself that is the same now."""
    id = _noted_before(desk, "k1", "2c3c917b1ddf39cac172b34bffe0a8fda17095e4bf61bb5f4f36f6d96b49920c")
    assert desk.engine.keys.already(WORDS, desk.asker()) == id
    id = _noted_before(desk, "k2", "d4b787682a21111b288a886b3a79610e5be70330ae59758949aa6667c30a4cb8")
    assert desk.engine.keys.already(replace(FILES, key="k2"), desk.asker()) == id
    for request in (Request(proposal="[]", key="k3"), Request(sent={"again": "a-0"}, key="k4")):
        id = _noted_before(desk, request.key, "0" * 64)
        with pytest.raises(KeyUnknown, match=id):
            desk.engine.keys.already(request, desk.asker())
    _noted_before(desk, "k5", "")
    with pytest.raises(KeyUnknown):
        desk.engine.keys.already(replace(WORDS, key="k5"), desk.asker())


async def test_each_has_keys_of_its_own(desk: Desk) -> None:
    desk.engine.begin(WORDS, desk.asker())
    strangers = [replace(ASKER, agent=ANONYMOUS, session=session) for session in ("conn-1", "conn-2")]
    ids = {desk.engine.begin(WORDS, each) for each in strangers}
    assert len(ids) == 2
    assert desk.engine.keys.already(WORDS, replace(ASKER, agent="other")) == ""
    # Nor is it told whether an earlier agent of this name used one.
    assert desk.engine.keys.already(WORDS, replace(ASKER, since="2026-01-01T00:00:00.000000Z")) == ""


async def test_an_id_cannot_be_worked_out_from_a_key(desk: Desk) -> None:
    id = desk.engine.begin(WORDS, desk.asker())
    for known in (["bot", "", "k1"], ["bot", "", "", "k1"]):
        assert id != f"a-{hashlib.sha256(canonical(known)).hexdigest()[:24]}"
