"""Each end of an action tells an agent who decided, whether anything changed, and for whom the next step is."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide, problem, shell, undo

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    return daemon.add_agent("bot")


def got(daemon: Daemon, id: str, token: str) -> pb.Ending:
    found: pb.Ending = daemon.actions("Get", pb.ActionId(id=id), token=token).ending
    return found


def test_waits_with_a_deadline_then_is_done_and_undone(daemon: Daemon, folder: Path, token: str) -> None:
    journey = Journey(daemon, shell(folder, "echo hi > x; echo printed"), token=token)
    asked = journey.asked()
    waiting = got(daemon, journey.action_id, token)
    assert (waiting.status, waiting.changed, waiting.who) == ("waiting", "no", "person")
    assert waiting.deadline == asked.deadline
    assert f"Nothing has run. The person has until {asked.deadline[:19]}Z" in waiting.next
    decide(daemon, asked)
    done = journey.finished().action.ending
    assert (done.status, done.changed, done.undo, done.retry) == ("done", "yes", "exact", "no")
    assert got(daemon, journey.action_id, token) == done
    Journey(daemon, undo(journey.action_id), token=token).approve()
    undone = got(daemon, journey.action_id, token)
    assert (undone.status, undone.changed, undone.undo) == ("undone", "no", "none")


def test_a_denial_with_a_reason_lets_it_be_followed(daemon: Daemon, folder: Path, token: str) -> None:
    journey = Journey(daemon, shell(folder, "echo hi > x"), token=token)
    decide(daemon, journey.asked(), approve=False, reason="use the other folder")
    ended = journey.finished().action.ending
    assert (ended.status, ended.changed, ended.retry, ended.who) == ("denied", "no", "changed", "agent")
    assert ended.summary == "The person denied it: use the other folder."


def test_a_denial_without_one_sends_the_agent_to_the_user(daemon: Daemon, folder: Path, token: str) -> None:
    journey = Journey(daemon, shell(folder, "echo hi > x"), token=token)
    decide(daemon, journey.asked(), approve=False)
    ended = journey.finished().action.ending
    assert (ended.status, ended.retry, ended.who) == ("denied", "no", "person")


def test_no_answer_is_no_opinion(daemon: Daemon, folder: Path, token: str) -> None:
    ended = Journey(daemon, shell(folder, "echo hi > x", ask_seconds=1), token=token).finished().action.ending
    assert (ended.status, ended.changed, ended.retry, ended.who) == ("timed-out", "no", "later", "person")


def test_a_failure_after_a_change_offers_the_undo(daemon: Daemon, folder: Path, token: str) -> None:
    ended = Journey(daemon, shell(folder, "echo hi > part; exit 3"), token=token).approve().action.ending
    assert (ended.status, ended.changed, ended.undo, ended.who) == ("partial", "yes", "exact", "agent")


def test_a_folder_that_isnt_there_says_no_more_than_before(daemon: Daemon, folder: Path, token: str) -> None:
    view = Journey(daemon, shell(folder / "gone", "echo hi > x"), token=token).finished().action
    assert (view.state, view.ending.status, view.ending.changed) == ("failed", "failed", "no")
    assert "gone" not in view.ending.summary + view.ending.next


def test_the_persons_views_have_no_ending(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo hi > x"), person=True)
    assert not journey.approve().action.HasField("ending")


def test_a_key_makes_two_requests_one_action(daemon: Daemon, folder: Path, token: str) -> None:
    request = shell(folder, "echo once >> counted", key="deploy-1")
    first = Journey(daemon, request, token=token)
    first.approve()
    again = Journey(daemon, request, token=token)
    assert again.finished().action.state == "done"
    assert again.action_id == first.action_id
    assert (folder / "counted").read_text() == "once\n"
    with pytest.raises(grpc.RpcError) as refused:
        Journey(daemon, shell(folder, "echo twice >> counted", key="deploy-1"), token=token).finished()
    assert problem(refused.value).code == "invalid"


def test_a_key_is_its_agents_own(daemon: Daemon, folder: Path, token: str) -> None:
    request = shell(folder, "echo x > y", key="shared", ask_seconds=1)
    mine = Journey(daemon, request, token=token)
    mine.finished()
    theirs = Journey(daemon, request, token=daemon.add_agent("other"))
    theirs.finished()
    assert mine.action_id != theirs.action_id


def test_a_long_output_comes_in_pieces(daemon: Daemon, folder: Path, token: str) -> None:
    journey = Journey(daemon, shell(folder, "seq 1 20000"), token=token)
    journey.approve()
    text, offset = "", 0
    while True:
        request = pb.ResultRequest(id=journey.action_id, path="$.stdout", offset=offset)
        page = daemon.actions("Result", request, token=token)
        assert len(page.value_json) <= 7_000
        text += json.loads(page.value_json)
        if not (offset := page.next_offset):
            break
    assert text.startswith("1\n2\n")
    assert len(text) == page.total
    with pytest.raises(grpc.RpcError):
        daemon.actions("Result", pb.ResultRequest(id=journey.action_id), token=daemon.add_agent("reader"))


def test_a_brief_list_has_no_plans(daemon: Daemon, token: str) -> None:
    whole = daemon.actions("List", pb.ListRequest(), token=token)
    brief = daemon.actions("List", pb.ListRequest(brief=True), token=token)
    assert [one.id for one in brief.actions] == [one.id for one in whole.actions]
    assert all(one.ending.status and not one.request_json and not one.outcome_json for one in brief.actions)
