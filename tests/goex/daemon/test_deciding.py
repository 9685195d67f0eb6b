"""Who decides, when, and what follows: everything here goes through real sockets to a real daemon and container."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, problem, shell, undo
from tests.support.waiting import until

pytestmark = pytest.mark.docker


def refused(call: object) -> pb.Problem:
    with pytest.raises(grpc.RpcError) as caught:
        call()  # type: ignore[operator]
    return problem(caught.value)


def test_an_action_is_run_undone_redone_and_committed(daemon: Daemon, folder: Path) -> None:
    (folder / "kept.txt").write_text("as it was")
    (folder / "kept.txt").chmod(0o666)
    done = Journey(daemon, shell(folder, "echo new > new.txt; echo changed > kept.txt"), person=True)
    finished = done.approve()
    assert finished.action.state == "done", finished
    every = ["received", "assessed", "asking", "allowed", "prepared", "running", "done"]
    rows = daemon.person("Log", pb.LogRequest(action_id=finished.action.id, limit=50)).rows
    assert [row.to for row in reversed(rows) if row.to] == every
    told = done.states()
    assert told == [state for state in every if state in told]
    assert {"asking", "running"} <= set(told), told
    assert (folder / "new.txt").read_text() == "new\n"

    id = finished.action.id
    assert Journey(daemon, undo(id), person=True).approve().action.state == "done"
    assert sorted(path.name for path in folder.iterdir()) == ["kept.txt"]
    assert (folder / "kept.txt").read_text() == "as it was"

    assert Journey(daemon, undo(id, "redo"), person=True).approve().action.state == "done"
    assert (folder / "kept.txt").read_text() == "changed\n"

    assert Journey(daemon, undo(id, "commit"), person=True).approve().action.state == "done"
    view = daemon.actions("Get", pb.ActionId(id=id), socket=daemon.user_socket)
    assert (view.state, view.can_undo, view.can_redo) == ("committed", False, False)
    assert refused(lambda: list(daemon.actions("Revert", undo(id), socket=daemon.user_socket))).code == "conflict"
    assert daemon.person("VerifyLog", pb.VerifyLogRequest()).good


def test_a_denial_carries_its_reason_and_runs_nothing(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    decide(daemon, journey.asked(), approve=False, reason="not \x1b[31mnow")
    finished = journey.finished()
    assert finished.action.state == "denied"
    assert "not \\u{1b}[31mnow" in finished.problem.message
    assert finished.problem.exit_status == 3
    assert not list(folder.iterdir())


@pytest.mark.promise(1)
def test_nobody_answers_and_that_is_a_no(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x", ask_seconds=1))
    approval = journey.asked()
    finished = journey.finished()
    assert (finished.action.state, finished.problem.exit_status) == ("denied", 4)
    assert refused(lambda: decide(daemon, approval)).code == "settled"
    assert not list(folder.iterdir())


@pytest.mark.promise(1)
def test_a_client_that_leaves_withdraws_its_question(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    journey.leave()
    until(
        lambda: daemon.actions("Get", pb.ActionId(id=journey.action_id), socket=daemon.user_socket).state == "withdrawn"
    )
    assert refused(lambda: decide(daemon, approval)).code == "settled"
    assert not list(folder.iterdir())


def test_a_detached_action_waits_without_its_client(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x", detach=True))
    approval = journey.asked()
    journey.leave()
    time.sleep(0.3)
    follow = Journey(daemon, pb.ActionId(id=journey.action_id), person=True)
    assert follow.asked().id == approval.id
    decide(daemon, approval)
    assert follow.finished().action.state == "done"
    assert (folder / "x").exists()


@pytest.mark.promise(5)
def test_of_two_answers_at_once_one_wins_and_it_runs_once(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x >> x"))
    approval = journey.asked()
    results: list[str] = []

    def one(yes: bool) -> None:
        try:
            decide(daemon, approval, approve=yes)
            results.append("won")
        except grpc.RpcError as error:
            results.append(problem(error).code)

    both = [threading.Thread(target=one, args=(yes,)) for yes in (True, False, True, False)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(results) == ["settled", "settled", "settled", "won"]
    state = journey.finished().action.state
    assert state in ("done", "denied")
    assert (folder / "x").exists() == (state == "done")


@pytest.mark.promise(2)
def test_a_yes_for_something_else_than_was_shown_is_refused(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    other = pb.Approval(id=approval.id, digest="0" * 64)
    assert refused(lambda: decide(daemon, other)).code == "conflict"
    assert refused(lambda: decide(daemon, approval, digest="")).code == "conflict"
    decide(daemon, approval, approve=False)
    assert not list(folder.iterdir())


@pytest.mark.promise(2)
def test_what_changed_after_it_was_shown_does_not_run(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "touch made"))
    approval = journey.asked()
    moved = folder.with_name("moved")
    folder.rename(moved)
    folder.mkdir()  # another folder under the same name: another inode
    decide(daemon, approval)
    finished = journey.finished()
    assert finished.action.state == "denied"
    assert "isn't what was approved" in finished.problem.message
    assert not list(folder.iterdir())
    assert not list(moved.iterdir())


# ---- presence


@pytest.mark.promise(4)
def test_approving_a_write_needs_the_approval_passphrase(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    assert refused(lambda: decide(daemon, approval, passphrase="")).code == "presence"
    wrong = refused(lambda: decide(daemon, approval, passphrase="something else"))
    assert (wrong.code, wrong.message) == ("presence", "That isn't the approval passphrase.")
    assert not list(folder.iterdir())
    decide(daemon, approval)  # the control: with it, it goes
    assert journey.finished().action.state == "done"


@pytest.mark.promise(4)
@pytest.mark.parametrize("what", ["agent", "account", "account removal"])
def test_what_lets_more_happen_needs_presence(daemon: Daemon, what: str) -> None:
    calls = {
        "agent": ("AddAgent", pb.AddAgentRequest(name="nobody")),
        "account": ("VaultPut", pb.VaultPutRequest(service="slack", secret=b"x")),
        "account removal": ("VaultRemove", pb.VaultRemoveRequest(service="slack", account="x")),
    }
    if what == "account removal":  # of one that isn't there that is said, and nothing is asked for
        assert refused(lambda: daemon.person(*calls[what])).code == "no-account"
        put = pb.VaultPutRequest(service="slack", account="x", secret=b"x", passphrase=APPROVAL_PASSPHRASE)
        daemon.person("VaultPut", put)
    method, request = calls[what]
    assert refused(lambda: daemon.person(method, request)).code == "presence"


def test_presence_is_not_remembered_without_a_terminal(daemon: Daemon) -> None:
    assert daemon.person("Present", pb.PresentRequest(passphrase=APPROVAL_PASSPHRASE)).seconds == 0
    assert refused(lambda: daemon.person("AddAgent", pb.AddAgentRequest(name="later"))).code == "presence"


# ---- grants


def test_a_session_grant_holds_for_its_session_alone(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("session-holder")
    assert Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("session").action.state == "done"
    again = Journey(daemon, shell(folder, "echo 2 > a"), token=token)
    assert again.finished().action.state == "done"
    assert "asking" not in again.states()
    daemon.disconnect()  # the session's connection ends, and the grant with it
    until(lambda: not daemon.person("Grants", pb.GrantsRequest()).grants)
    other = Journey(daemon, shell(folder, "echo 3 > a", ask_seconds=1), token=token)
    assert other.finished().action.state == "denied"


@pytest.mark.promise(6)
def test_a_permanent_grant_holds_until_it_is_revoked(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("permanent-holder")
    assert Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("permanent").action.state == "done"
    daemon.disconnect()
    assert Journey(daemon, shell(folder, "echo 2 > a"), token=token).finished().action.state == "done"
    grants = daemon.person("Grants", pb.GrantsRequest()).grants
    assert [(grant.agent, grant.width, grant.account) for grant in grants] == [
        ("permanent-holder", "permanent", str(folder))
    ]
    daemon.person("Revoke", pb.RevokeRequest(grant_ids=[grants[0].id]))
    denied = Journey(daemon, shell(folder, "echo 3 > a", ask_seconds=1), token=token).finished()
    assert denied.action.state == "denied"
    assert (folder / "a").read_text() == "2\n"


@pytest.mark.promise(6)
def test_a_bound_grant_holds_for_exactly_that_program(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("bound-holder")
    first = Journey(daemon, shell(folder, "echo 1 > a"), token=token)
    assert first.approve("permanent", bind_arguments=["program_sha256"]).action.state == "done"
    assert Journey(daemon, shell(folder, "echo 1 > a"), token=token).finished().action.state == "done"
    other = Journey(daemon, shell(folder, "echo 2 > a", ask_seconds=1), token=token).finished()
    assert other.action.state == "denied"
    daemon.person("Revoke", pb.RevokeRequest(agent="bound-holder"))


@pytest.mark.promise(5)
def test_a_once_grant_is_gone_after_it(daemon: Daemon, folder: Path) -> None:
    assert Journey(daemon, shell(folder, "echo 1 > a"), person=True).approve().action.state == "done"
    again = Journey(daemon, shell(folder, "echo 1 > a", ask_seconds=1), person=True).finished()
    assert again.action.state == "denied"


def test_an_agent_without_a_name_gets_once_grants_only(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo 1 > a"))
    approval = journey.asked()
    assert list(approval.widths) == ["once"]
    for width in ("session", "permanent"):
        assert refused(lambda width=width: decide(daemon, approval, width=width)).code == "invalid"
    decide(daemon, approval, approve=False)


def test_a_removed_agent_is_nobody(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("leaving")
    Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("permanent")
    daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="leaving"))
    with pytest.raises(grpc.RpcError) as caught:
        daemon.actions("Whoami", pb.WhoamiRequest(), token=token)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert not daemon.person("Grants", pb.GrantsRequest()).grants


# ---- over restarts


def test_a_question_survives_a_restart(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x", detach=True))
    approval = journey.asked()
    id = journey.action_id
    daemon.kill()
    daemon.start()
    daemon.unlock()
    assert [pending.id for pending in daemon.person("Approvals", pb.ApprovalsRequest()).approvals] == [approval.id]
    follow = Journey(daemon, pb.ActionId(id=id), person=True)
    decide(daemon, approval)
    assert follow.finished().action.state == "done"
    assert (folder / "x").exists()


def test_permanent_grants_and_agents_survive_a_restart(daemon: Daemon, folder: Path) -> None:
    token = daemon.add_agent("survivor")
    Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("permanent")
    daemon.kill()
    daemon.start()
    daemon.unlock()
    assert Journey(daemon, shell(folder, "echo 2 > a"), token=token).finished().action.state == "done"
    daemon.person("Revoke", pb.RevokeRequest(agent="survivor"))


TAMPERING = {
    "a grant is widened": "update grants set agent = 'anonymous'",
    "a grant is made permanent": "update grants set expires = ''",
    "a grant is put in": "insert into grants select 'g-forged', 'tamperer', service, account, scope, width, "
    "constraints, bounds, digest, session, created, expires, by, why, '', '', mac from grants limit 1",
    "a revocation is taken back": "update grants set revoked = ''",
    "an agent is put in": "insert into agents select 'forged', x'00', created, mac from agents limit 1",
    "an agent is renamed": "update agents set name = 'renamed'",
    "an agent is removed": "delete from agents",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(7)
@pytest.mark.parametrize("name", TAMPERING)
def test_whoever_can_write_the_database_can_not_write_a_grant(name: str, folder: Path) -> None:
    with Daemon() as daemon:
        token = daemon.add_agent("tamperer")
        for number in range(2):  # the second grant is for another folder, and is revoked
            own = folder.with_name(f"own-{number}")
            own.mkdir()
            os.chown(own, folder.stat().st_uid, folder.stat().st_gid)
            Journey(daemon, shell(own, "echo 1 > a"), token=token).approve("permanent")
        grants = daemon.person("Grants", pb.GrantsRequest()).grants
        daemon.person("Revoke", pb.RevokeRequest(grant_ids=[grants[0].id]))
        daemon.stop()
        with sqlite3.connect(daemon.state_dir / "state.db") as database:
            database.execute(TAMPERING[name])
        database.close()
        daemon.start()
        daemon.unlock()
        assert not daemon.person("Grants", pb.GrantsRequest()).grants
        assert not daemon.person("ListAgents", pb.ListAgentsRequest()).agents
        rows = daemon.person("Log", pb.LogRequest()).rows
        assert "ledger-altered" in [row.kind for row in rows]


@pytest.mark.promise(30)
def test_an_older_vault_put_back_is_not_opened() -> None:
    """Putting the whole file back would bring back a removed account, or an approval passphrase that was changed."""
    with Daemon() as daemon:
        older = (daemon.state_dir / "vault.db").read_bytes()
        daemon.add_agent("someone")  # proving presence is a write, too
        daemon.stop()
        newer = (daemon.state_dir / "vault.db").read_bytes()
        (daemon.state_dir / "vault.db").write_bytes(older)
        daemon.start()
        assert "put back" in refused(daemon.unlock).message
        assert daemon.person("Status", pb.StatusRequest()).vault == "sealed"
        (daemon.state_dir / "vault.db").write_bytes(newer)
        daemon.restart()
        assert daemon.person("Status", pb.StatusRequest()).vault == "unsealed"
