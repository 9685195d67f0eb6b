"""What an agent is told of an undo: nothing that was read before the action, in any answer; the person is told all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.runtimes.rest.support import FakeSlack
from tests.support import mcp
from tests.support.daemon import Daemon
from tests.support.entries import Client
from tests.support.journey import Journey, as_the_person_sees, decide, shell, undo

pytestmark = [pytest.mark.docker, pytest.mark.promise(73)]
OLD, THEIRS = "acquisition-of-Initech", "somebody-elses-topic"


@pytest.fixture(scope="module")
def token(daemon: Daemon, slack: FakeSlack) -> str:
    """Of an agent that may change topics, and was never allowed to read one."""
    mcp.connect_fake_slack(daemon, slack)
    return daemon.add_agent("writes-only")


@pytest.fixture(scope="module")
def address(daemon: Daemon) -> Iterator[str]:
    with mcp.serving(daemon) as served:
        yield served


@pytest.fixture
def changed(daemon: Daemon, slack: FakeSlack, token: str) -> str:
    """An action that has changed a topic."""
    slack.channels["C0OPS"]["topic"] = {"value": OLD}
    arguments = json.dumps({"channel": "C0OPS", "topic": "mine"})
    call = pb.Call(service="slack", method="conversations.setTopic", arguments_json=arguments)
    journey = Journey(daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), token=token)
    assert journey.approve().action.state == "done"
    return journey.action_id


def looked_up(daemon: Daemon, token: str, action: str, target: str) -> list[Any]:
    """Whatever an agent can ask of a revert and of what it takes back."""
    found = [daemon.actions("Get", pb.ActionId(id=id), token=token) for id in (action, target)]
    followed = Journey(daemon, pb.ActionId(id=action), token=token)
    followed.finished()
    found += followed.seen
    found.append(daemon.actions("List", pb.ListRequest(), token=token))
    found.append(daemon.actions("WayBack", pb.WayBackRequest(verb="undo", action_id=target), token=token))
    found.append(daemon.actions("WayBack", pb.WayBackRequest(verb="redo", action_id=target), token=token))
    return found


async def over_mcp(address: str, token: str, action: str, target: str) -> list[Any]:
    wanted = [
        ("goex_wait", {"action": action, "seconds": 0}), ("goex_result", {"action": target}), ("goex_actions", {}),
        ("goex_preview", {"action": target, "verb": "undo"}), ("goex_preview", {"action": action}),
    ]  # fmt: skip
    found: list[Any] = [await mcp.call(address, token, name, arguments) for name, arguments in wanted]
    for part in ("", "/preview", "/result"):
        found.append(await mcp.post(address, token, "resources/read", {"uri": f"goex://action/{action}{part}"}))
    return found


async def test_an_undo_of_calls_shows_nothing_that_was_read(
    daemon: Daemon, slack: FakeSlack, token: str, address: str, changed: str
) -> None:
    preview = pb.PreviewRequest(revert=undo(changed))
    previewed = daemon.actions("Preview", preview, token=token)
    assert "conversations.setTopic" in str(previewed) and "from what was read before call 1" in str(previewed)
    journey = Journey(daemon, undo(changed), token=token)
    asked = journey.asked()
    while_asked = [daemon.actions("Get", pb.ActionId(id=journey.action_id), token=token), previewed]
    while_asked += await over_mcp(address, token, journey.action_id, changed)
    person = as_the_person_sees(daemon, asked)
    assert OLD in "\n".join(person.lines) and person.digest and not asked.digest
    decide(daemon, person)
    assert journey.finished().action.state == "done"
    assert slack.channels["C0OPS"]["topic"] == {"value": OLD}
    told = [*journey.seen, *while_asked, *looked_up(daemon, token, journey.action_id, changed)]
    told += await over_mcp(address, token, journey.action_id, changed)
    assert not [each for each in told if OLD in str(each) or person.digest in str(each)]
    at_the_person = daemon.actions("Get", pb.ActionId(id=journey.action_id), socket=daemon.user_socket)
    assert OLD in str(at_the_person.lines)


async def test_a_conflict_names_the_field_that_differs_alone(
    daemon: Daemon, slack: FakeSlack, token: str, address: str, changed: str
) -> None:
    slack.channels["C0OPS"]["topic"] = {"value": THEIRS}
    journey = Journey(daemon, undo(changed), token=token)
    ended = journey.approve()
    assert ended.problem.code == "conflict"
    assert "isn't what the action left (at $.channel.topic.value)" in ended.action.ending.summary
    told = [*journey.seen, *looked_up(daemon, token, journey.action_id, changed)]
    told += await over_mcp(address, token, journey.action_id, changed)
    assert not [each for each in told if THEIRS in str(each) or OLD in str(each)]
    at_the_person = daemon.call(daemon.user_socket, "Actions", "Watch", pb.ActionId(id=journey.action_id))
    (seen,) = [event.finished for event in at_the_person if event.HasField("finished")]
    assert any(THEIRS in line for line in seen.problem.details)


async def test_a_read_back_that_differs_tells_no_value(
    daemon: Daemon, slack: FakeSlack, token: str, address: str, changed: str
) -> None:
    """The service takes the undo and does something else: the outcome is partial."""

    def meddled(hit: Any) -> tuple[int, Any] | None:
        if hit.path.endswith("setTopic"):
            slack.channels["C0OPS"]["topic"] = {"value": THEIRS}
            return 200, {"ok": True, "channel": slack.channels["C0OPS"]}
        return None

    journey = Journey(daemon, undo(changed), token=token)
    asked = journey.asked()
    slack.override = meddled
    try:
        decide(daemon, asked)
        ended = journey.finished()
    finally:
        slack.override = lambda _: None
    assert ended.action.ending.status == "partial"
    assert "The read-back did not confirm it: slack.conversations.info" in ended.action.ending.summary
    told = [*journey.seen, *looked_up(daemon, token, journey.action_id, changed)]
    told += await over_mcp(address, token, journey.action_id, changed)
    assert not [each for each in told if THEIRS in str(each) or OLD in str(each)]


def test_an_undo_of_rows_shows_none(daemon: Daemon, token: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT)")
        made.execute("INSERT INTO notes VALUES (1, ?)", (OLD,))
    client = Client(daemon)
    client.add("shop", f"sqlite:///{file}")
    journey = client.sql("shop", "UPDATE notes SET said = 'mine' WHERE id = 1", token=token)
    assert journey.approve().action.state == "done"
    back = client.revert(journey.action_id, token=token)
    assert back.approve().action.state == "done"
    told = [*back.seen, *looked_up(daemon, token, back.action_id, journey.action_id)]
    assert not [each for each in told if OLD in str(each)]


def test_an_undo_in_a_folder_shows_no_content(daemon: Daemon, token: str, folder: Path) -> None:
    (folder / "diary").write_text(OLD)
    (folder / "diary").chmod(0o666)
    journey = Journey(daemon, shell(folder, "echo mine > diary"), token=token)
    assert journey.approve().action.state == "done"
    back = Journey(daemon, undo(journey.action_id), token=token)
    assert back.approve().action.state == "done"
    assert (folder / "diary").read_text() == OLD
    told = [*back.seen, *looked_up(daemon, token, back.action_id, journey.action_id)]
    assert not [each for each in told if OLD in str(each)]
