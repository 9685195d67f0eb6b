"""The queue as its clients have it: over the person's socket, from a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, problem, shell

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def running() -> Iterator[Daemon]:
    with Daemon(config="[ask]\nseconds = 3600\n") as daemon:
        daemon.person(
            "VaultPut",
            pb.VaultPutRequest(
                service="slack", account="work", secret=b"x", format="string", passphrase=APPROVAL_PASSPHRASE
            ),
        )
        yield daemon


@pytest.fixture
def daemon(running: Daemon) -> Iterator[Daemon]:
    """One in which nothing waits and nothing is granted."""
    yield running
    for approval in running.person("Approvals", pb.ApprovalsRequest(brief=True, duplicates=True)).approvals:
        running.person("Decide", pb.DecideRequest(approval_id=approval.id))
    grants = running.person("Grants", pb.GrantsRequest()).grants
    running.person("Revoke", pb.RevokeRequest(grant_ids=[grant.id for grant in grants]))
    for agent in running.person("ListAgents", pb.ListAgentsRequest()).agents:
        running.person("RemoveAgent", pb.RemoveAgentRequest(name=agent.name))


def post(text: str = "hi", **more: Any) -> pb.ExecuteRequest:
    arguments = json.dumps({"channel": "#ops", "text": text}, ensure_ascii=False)
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json=arguments)
    return pb.ExecuteRequest(**{"calls": pb.Calls(calls=[call]), "detach": True, **more})


def ask(daemon: Daemon, token: str, request: pb.ExecuteRequest | None = None) -> pb.Approval:
    journey = Journey(daemon, request or post(), token=token)
    asked = journey.asked()
    journey.leave()
    return asked


def pending(daemon: Daemon, **more: Any) -> list[pb.Approval]:
    return list(daemon.person("Approvals", pb.ApprovalsRequest(**more)).approvals)


def refusal(call: Any) -> pb.Problem:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return problem(caught.value)


def test_identical_requests_are_shown_once_with_their_number(daemon: Daemon) -> None:
    token = daemon.add_agent("bot")
    first, second = ask(daemon, token), ask(daemon, token)
    (shown,) = pending(daemon)
    assert (shown.id, shown.count, list(shown.same_as)) == (first.id, 2, [second.id])
    assert shown.question.payload and "Asked 2 times" in shown.question.notes[0]
    # The agent learns nothing of it: who else asks, and what was allowed before.
    assert not first.HasField("question") and not second.HasField("question")
    assert [one.id for one in pending(daemon, duplicates=True)] == [first.id, second.id]
    (alone,) = pending(daemon, approval_id=second.id)
    assert (alone.id, list(alone.same_as)) == (second.id, [first.id])


@pytest.mark.promise(22)
def test_what_is_cut_can_not_be_approved_from(daemon: Daemon) -> None:
    token = daemon.add_agent("bot")
    ask(daemon, token, post("x" * 5000))
    (brief,) = pending(daemon, brief=True)
    assert brief.brief and not brief.digest and not brief.needs and not brief.choices
    assert all(len(line) < 300 for line in brief.lines) and "more line" in brief.lines[-1]
    assert refusal(lambda: decide(daemon, brief, digest="")).code == "conflict"
    (whole,) = pending(daemon, approval_id=brief.id)
    assert any("x" * 5000 in line for line in whole.lines) and not whole.brief and whole.digest


@pytest.mark.promise(22)
def test_a_list_that_would_not_fit_is_cut_and_says_so(daemon: Daemon) -> None:
    """Else an agent with large requests would keep the person from seeing any."""
    token = daemon.add_agent("bot")
    for number in range(3):
        calls = [call for n in range(4) for call in post(f"{number}-{n}" + "\u200b" * 39_000).calls.calls]
        ask(daemon, token, post(calls=pb.Calls(calls=calls)))
    small = ask(daemon, daemon.add_agent("small"))
    reply = daemon.person("Approvals", pb.ApprovalsRequest())
    assert reply.left_out and len(reply.approvals) + reply.left_out == 4
    assert reply.ByteSize() < 4 * 2**20
    assert small.id in {one.id for one in reply.approvals}  # whose turn is the second
    assert len(pending(daemon, brief=True)) == 4


def test_the_order_is_by_turns_and_places_say_it(daemon: Daemon) -> None:
    one, other = daemon.add_agent("one"), daemon.add_agent("other")
    flood = [ask(daemon, one, post(str(number))) for number in range(4)]
    single = ask(daemon, other)
    listed = pending(daemon)
    assert single.id in [listed[0].id, listed[1].id]
    assert [each.id for each in listed if each.agent == "one"] == [each.id for each in flood]
    assert [each.place for each in listed] == [1, 2, 3, 4, 5]
    assert {each.waiting for each in listed} == {5}


def test_an_agent_is_not_told_how_many_others_wait(daemon: Daemon) -> None:
    one, other = daemon.add_agent("one"), daemon.add_agent("other")
    ask(daemon, one)
    told = ask(daemon, other)
    assert (told.place, told.waiting) == (0, 0)
    follow = Journey(daemon, pb.ActionId(id=told.action_id), person=True)
    seen = follow.asked()
    assert seen.place in (1, 2) and seen.waiting == 2
    follow.leave()


def test_watching_tells_of_twins_by_the_one_that_stands_for_them(daemon: Daemon) -> None:
    token = daemon.add_agent("bot")
    stream = daemon.person("WatchApprovals", pb.ApprovalsRequest())
    first = ask(daemon, token)
    assert (told := next(stream)).id == first.id and told.count == 1
    second = ask(daemon, token)
    assert (told := next(stream)).id == first.id and told.count == 2
    daemon.person("Decide", pb.DecideRequest(approval_id=first.id))
    assert ((told := next(stream)).id, told.state) == (first.id, "denied")
    assert ((told := next(stream)).id, told.state, told.count) == (second.id, "pending", 1)
    stream.cancel()


def test_an_agents_reason_is_escaped_and_bounded(daemon: Daemon) -> None:
    token = daemon.add_agent("bot")
    journey = Journey(daemon, post(detach=False), token=token)
    approval = journey.asked()
    reason = "\x1b[31m\u202e" + "x" * 5000
    decide(daemon, approval, approve=False, reason=reason)
    said = journey.finished().problem.message
    assert "\\u{1b}[31m\\u{202e}xxx" in said and "\x1b" not in said
    assert len(said) < 600 and "more characters" in said


def test_everything_of_an_agent_is_denied_at_once(daemon: Daemon) -> None:
    one, other = daemon.add_agent("one"), daemon.add_agent("other")
    mine = [ask(daemon, one, post(str(number % 2))) for number in range(5)]
    kept = ask(daemon, other)
    reply = daemon.person("DenyAll", pb.DenyAllRequest(agent="one", reason="too much"))
    assert set(reply.approval_ids) == {each.id for each in mine}
    assert [each.id for each in pending(daemon)] == [kept.id]
    view = daemon.actions("Get", pb.ActionId(id=mine[0].action_id), socket=daemon.user_socket)
    assert view.state == "denied"
    assert refusal(lambda: daemon.person("DenyAll", pb.DenyAllRequest())).code == "invalid"
    session = pending(daemon)[0].session
    assert list(daemon.person("DenyAll", pb.DenyAllRequest(session=session)).approval_ids) == [kept.id]


def test_a_session_grant_runs_its_twins_and_others_that_it_covers(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("bot")
    journeys = [Journey(daemon, shell(folder, f"echo {number % 2} >> ran"), token=token) for number in range(4)]
    questions = [journey.asked() for journey in journeys]
    first = pending(daemon)[0]
    reply = decide(daemon, first, width="session")
    assert set(reply.settled) == {question.id for question in questions} - {first.id}
    ends = [journey.finished() for journey in journeys]
    assert [end.action.state for end in ends] == ["done"] * 4, [end.problem.message for end in ends]
    assert sorted((folder / "ran").read_text().split()) == ["0", "0", "1", "1"]
    kinds = [row.kind for row in daemon.person("Log", pb.LogRequest(limit=200)).rows]
    assert kinds.count("covered") == 3
    (grant,) = daemon.person("Grants", pb.GrantsRequest()).grants
    assert grant.uses == 4 and grant.last_used and "any program" in " ".join(grant.words)


def test_always_with_these_arguments_runs_just_that_unasked(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("bot")
    journey = Journey(daemon, shell(folder, "echo 1 > a"), token=token)
    approval = journey.asked()
    assert list(approval.widths) == ["once", "session", "arguments", "permanent"]
    assert not approval.choices, "their words name the folder as it was resolved"
    shown = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=approval.id)).approvals[0]
    assert [choice.name for choice in shown.choices] == list(approval.widths)
    decide(daemon, approval, width="arguments")
    assert journey.finished().action.state == "done"
    assert Journey(daemon, shell(folder, "echo 1 > a"), token=token).finished().action.state == "done"
    assert ask(daemon, token, shell(folder, "echo 2 > a", detach=True)).state == "pending"


@pytest.mark.parametrize("width", ["session", "arguments", "permanent"])
def test_no_wider_yes_without_the_passphrase(daemon: Daemon, width: str) -> None:
    approval = ask(daemon, daemon.add_agent("bot"))
    assert refusal(lambda: decide(daemon, approval, width=width, passphrase="")).code == "presence"
    assert refusal(lambda: decide(daemon, approval, width="for-ever")).code == "invalid"
    assert [one.id for one in pending(daemon)] == [approval.id]


def test_revoking_takes_exactly_what_fits_all_that_is_named_and_at_once(daemon: Daemon, folder: Path) -> None:
    one, other = daemon.add_agent("one"), daemon.add_agent("other")
    for token in (one, other):
        Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("permanent")
    slack = ask(daemon, one)
    decide(daemon, slack, width="permanent")
    grants = {(grant.agent, grant.service) for grant in daemon.person("Grants", pb.GrantsRequest()).grants}
    assert grants == {("one", "files"), ("other", "files"), ("one", "slack")}
    reply = daemon.person("Revoke", pb.RevokeRequest(agent="one", service="files"))
    assert [(grant.agent, grant.service) for grant in reply.grants] == [("one", "files")]
    left = {(grant.agent, grant.service) for grant in daemon.person("Grants", pb.GrantsRequest()).grants}
    assert left == {("other", "files"), ("one", "slack")}
    assert ask(daemon, one, shell(folder, "echo 1 > a", detach=True)).state == "pending"  # in the running session
    assert Journey(daemon, shell(folder, "echo 1 > a"), token=other).finished().action.state == "done"
    assert not daemon.person("Revoke", pb.RevokeRequest(session="nobody's")).grants


def test_news_begin_with_nothing_and_leave_out_what_waits_already(daemon: Daemon) -> None:
    """Whoever lists what waits after that first one misses nothing."""
    token = daemon.add_agent("bot")
    ask(daemon, token, post("before"))
    watching = daemon.person("WatchApprovals", pb.ApprovalsRequest(brief=True, news=True))
    assert next(watching) == pb.Approval()
    after = ask(daemon, token, post("after"))
    assert next(watching).id == after.id
    daemon.person("Decide", pb.DecideRequest(approval_id=after.id))
    assert next(watching).state == "denied"
    watching.cancel()


def test_a_list_that_was_made_before_says_the_places_of_now(daemon: Daemon) -> None:
    token = daemon.add_agent("bot")
    first, second = ask(daemon, token, post("one")), ask(daemon, token, post("two"))
    assert [(one.id, one.place, one.count) for one in pending(daemon, brief=True)] == [
        (first.id, 1, 1),
        (second.id, 2, 1),
    ]
    ask(daemon, token, post("two"))
    assert [(one.id, one.place, one.count) for one in pending(daemon, brief=True)] == [
        (first.id, 1, 1),
        (second.id, 2, 2),
    ]
    daemon.person("Decide", pb.DecideRequest(approval_id=first.id))
    (left,) = pending(daemon, brief=True)
    assert (left.id, left.place, left.waiting, left.count) == (second.id, 1, 1, 2)
    assert not left.digest
    settled = {one.id: one.state for one in pending(daemon, brief=True, settled=True)}
    assert settled[first.id] == "denied"
