"""What an enemy tries who is near: under the person's own user, or with the files of the state folder."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from goex.daemon.acceptor import MOST_CONNECTIONS
from goex.journal.actions import Actions
from goex.journal.chain import Journal
from goex.journal.states import Event, State
from goex.rpc import goex_pb2 as pb
from policies.actions import Files
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide, problem, shell, undo
from tests.support.waiting import until


def refused(call: object) -> pb.Problem:
    with pytest.raises(grpc.RpcError) as caught:
        call()  # type: ignore[operator]
    return problem(caught.value)


def write(daemon: Daemon, statement: str, *values: object) -> int:
    """Change the state database behind the daemon's back; returns how many rows were changed."""
    database = sqlite3.connect(daemon.state_dir / "state.db", timeout=10)
    with database:
        changed = database.execute(statement, values).rowcount
    database.close()
    return changed


def read(daemon: Daemon, query: str, *values: object) -> list[tuple[object, ...]]:
    database = sqlite3.connect(daemon.state_dir / "state.db", timeout=10)
    found = database.execute(query, values).fetchall()
    database.close()
    return found


# ---- past the sockets

# In a network namespace of one's own an abstract address that another connection has is free.
SPOOF = """
import socket, sys, threading
address, target, front = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(front)
listener.listen(1)
near, _ = listener.accept()
far = socket.socket(socket.AF_UNIX)
far.bind("\\0" + address)
far.connect(target)
def pump(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
threading.Thread(target=pump, args=(near, far), daemon=True).start()
pump(far, near)
"""


def joined() -> set[str]:
    """The addresses of joined connections, as anybody sees them."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1][1:] for line in lines if " @goex-" in line}


@pytest.fixture
def namespace() -> Iterator[list[str]]:
    for command in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
        ):
            yield command
            return
    pytest.skip("This machine lets nobody make a network namespace.")


@pytest.mark.promise(10)
def test_nobody_takes_over_the_persons_connection(daemon: Daemon, namespace: list[str]) -> None:
    """Whoever reached gRPC itself from the address of the person's connection would be the person, presence and all."""
    before = joined()
    daemon.disconnect()
    daemon.person("Status", pb.StatusRequest())
    theirs = (joined() - before).pop()
    front = daemon.home / "spoofed.sock"
    target = daemon.run_dir / "grpc-user.sock"
    with subprocess.Popen(
        [*namespace, sys.executable, "-c", SPOOF, theirs, str(target), str(front)], stderr=subprocess.PIPE, text=True
    ) as spoofing:
        until(front.exists)
        with pytest.raises(grpc.RpcError):
            daemon.call(front, "Person", "Approvals", pb.ApprovalsRequest(), seconds=5)
        spoofing.kill()
        assert spoofing.stderr is not None
        assert "FileNotFoundError" in spoofing.stderr.read()


@pytest.mark.promise(10)
def test_only_the_public_sockets_have_names(daemon: Daemon) -> None:
    named = {path.name for path in daemon.run_dir.iterdir() if path.is_socket()}
    assert named == {"agent.sock", "user.sock"}


def test_agents_that_hold_every_connection_do_not_keep_the_person_out() -> None:
    with Daemon() as daemon:
        daemon.disconnect()
        held = []
        for _ in range(MOST_CONNECTIONS + 20):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(daemon.agent_socket))
            held.append(connection)
        time.sleep(0.5)
        assert daemon.person("Status", pb.StatusRequest()).vault == "unsealed"
        for connection in held:
            connection.close()
        until(lambda: answers(daemon))


def answers(daemon: Daemon) -> bool:
    try:
        return bool(daemon.actions("Whoami", pb.WhoamiRequest()).agent == "anonymous")
    except grpc.RpcError:
        daemon.disconnect()
        return False


# ---- the state database, while the daemon runs


@pytest.mark.promise(4)
@pytest.mark.docker
def test_the_passphrase_is_due_whatever_the_database_says(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo x > x"))
    approval = journey.asked()
    assert write(daemon, "update approvals set presence = 0 where id = ?", approval.id) == 1
    assert refused(lambda: decide(daemon, approval, passphrase="")).code == "presence"
    write(daemon, "update approvals set digest = ? where id = ?", "0" * 64, approval.id)
    assert refused(lambda: decide(daemon, approval)).code == "conflict"
    assert not list(folder.iterdir())
    journey.leave()


def test_a_step_keeps_the_name_that_the_action_came_with(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(b"k" * 32)
    actions = Actions(journal)
    with journal.transaction() as transaction:
        row = actions.create(
            transaction,
            id="a-1",
            agent="anonymous",
            session="s",
            intent="",
            action=Files(folder="/x", language="shell", program="true"),
            source="a test",
            detached=False,
        )
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.execute("update actions set agent = 'trusted', session = 'other', request = ''")
    database.close()
    with journal.transaction() as transaction:
        after = actions.step(transaction, row, Event.REJECT)
    assert (after.state, after.agent, after.session, after.request) == (State.FAILED, "anonymous", "s", row.request)
    journal.close()


# ---- once is once


@pytest.mark.promise(5)
@pytest.mark.docker
def test_a_yes_that_was_not_used_is_not_used_by_the_next_one(daemon: Daemon, folder: Path) -> None:
    """The same program again, after the first one failed between its approval and its run."""
    request = shell(folder, "echo x >> x")
    first = Journey(daemon, request)
    approval = first.asked()
    away = folder.with_name("away")
    folder.rename(away)
    decide(daemon, approval)
    assert first.finished().action.state == "denied"
    live = daemon.person("Grants", pb.GrantsRequest()).grants
    assert first.action_id not in [grant.why for grant in live]
    away.rename(folder)
    second = Journey(daemon, request)
    assert second.asked().digest == approval.digest
    second.leave()
    assert not list(folder.iterdir())


# ---- the state database, while the daemon is down


@pytest.mark.promise(7)
@pytest.mark.docker
def test_an_undo_that_was_not_allowed_is_not_finished_after_a_restart(folder: Path) -> None:
    """A revert that ran when the daemon died is finished without asking, so nobody may be able to say that one ran."""
    with Daemon() as daemon:
        done = Journey(daemon, shell(folder, "echo x > x"), person=True).approve().action.id
        asking = Journey(daemon, undo(done, detach=True), person=True)
        asking.asked()
        daemon.stop()
        assert write(daemon, "update actions set state = 'running' where id = ?", asking.action_id) == 1
        daemon.start()
        daemon.unlock()
        time.sleep(1)
        assert (folder / "x").exists()
        assert daemon.actions("Get", pb.ActionId(id=done), socket=daemon.user_socket).state == "done"
        assert "action-altered" in [row.kind for row in daemon.person("Log", pb.LogRequest()).rows]


@pytest.mark.promise(7)
@pytest.mark.docker
def test_a_past_that_was_altered_is_not_taken_back(folder: Path) -> None:
    with Daemon() as daemon:
        first = Journey(daemon, shell(folder, "echo x > x"), person=True).approve().action.id
        second = Journey(daemon, shell(folder, "echo y > y"), person=True).approve().action.id
        daemon.stop()
        plan, digest = read(daemon, "select plan, digest from actions where id = ?", first)[0]
        write(daemon, "update actions set plan = ?, digest = ? where id = ?", plan, digest, second)
        daemon.start()
        daemon.unlock()
        finished = Journey(daemon, undo(second), person=True).finished()
        assert finished.problem.code == "conflict", finished
        assert sorted(path.name for path in folder.iterdir()) == ["x", "y"]


@pytest.mark.promise(7)
@pytest.mark.docker
def test_a_revoked_grant_is_not_put_back_together_with_its_hash(folder: Path) -> None:
    """A row of an older copy has a good MAC, and the journal's hash over all rows can be made to fit it."""
    with Daemon() as daemon:
        token = daemon.add_agent("tamperer")
        Journey(daemon, shell(folder, "true"), token=token).approve("permanent")
        (grant,) = daemon.person("Grants", pb.GrantsRequest()).grants
        older = read(daemon, "select * from grants where id = ?", grant.id)[0]
        last = "select number, facts from journal where facts like '%\"ledger\"%' order by number desc limit 1"
        facts = str(read(daemon, last)[0][1])
        before = facts.split('"ledger":"')[1][:64]
        daemon.person("Revoke", pb.RevokeRequest(grant_ids=[grant.id]))
        daemon.stop()
        number, facts_now = read(daemon, last)[0]
        after = str(facts_now).split('"ledger":"')[1][:64]
        assert after != before
        write(daemon, "delete from grants where id = ?", grant.id)
        write(daemon, f"insert into grants values ({','.join('?' * len(older))})", *older)
        write(daemon, "update journal set facts = replace(facts, ?, ?) where number = ?", after, before, number)
        daemon.start()
        daemon.unlock()
        assert not daemon.person("Grants", pb.GrantsRequest()).grants
        assert "ledger-altered" in [row.kind for row in daemon.person("Log", pb.LogRequest()).rows]


@pytest.mark.docker
def test_a_session_grant_ends_when_the_daemon_is_killed(folder: Path) -> None:
    """The connection that it was given to is gone, and nobody was there to see it end."""
    with Daemon() as daemon:
        token = daemon.add_agent("session-holder")
        Journey(daemon, shell(folder, "echo 1 > a"), token=token).approve("session")
        assert len(daemon.person("Grants", pb.GrantsRequest()).grants) == 1
        daemon.kill()
        daemon.start()
        daemon.unlock()
        assert not daemon.person("Grants", pb.GrantsRequest()).grants


@pytest.mark.promise(30)
def test_an_older_vault_is_not_opened_when_the_journal_is_made_to_fit() -> None:
    with Daemon() as daemon:
        older = (daemon.state_dir / "vault.db").read_bytes()
        daemon.add_agent("someone")
        daemon.stop()
        (daemon.state_dir / "vault.db").write_bytes(older)
        write(daemon, "update journal set facts = '{\"generation\":0}' where facts like '%\"generation\"%'")
        daemon.start()
        # The vault knows which row the log had come to, and that one isn't there as it was.
        assert refused(daemon.unlock).code == "journal-behind"
        assert daemon.person("Status", pb.StatusRequest()).vault == "sealed"


def test_a_journal_that_is_swapped_before_it_is_unlocked_is_not_vouched_for(tmp_path: Path) -> None:
    key, state, head = b"k" * 32, tmp_path / "state.db", tmp_path / "journal.head"
    journal = Journal(state, head)
    journal.unlock(key)
    for _ in range(3):
        journal.append("note")
    journal.close()
    with sqlite3.connect(state) as database:
        cut = database.execute("select * from journal where number = 3").fetchone()
        database.execute("delete from journal where number = 3")
    opened = Journal(state, head)  # sees two rows
    with sqlite3.connect(state) as database:
        database.execute(f"insert into journal values ({','.join('?' * len(cut))})", cut)
    opened.unlock(key)
    assert opened.append("note") == 4
    assert opened.verify().good
    opened.close()


# ---- a sealed vault


@pytest.mark.docker
def test_what_was_approved_after_sealing_does_not_run(folder: Path) -> None:
    with Daemon() as daemon:
        journey = Journey(daemon, shell(folder, "echo x > x"))
        approval = journey.asked()
        daemon.person("VaultSeal", pb.VaultSealRequest())
        assert refused(lambda: decide(daemon, approval)).code == "vault-sealed"  # no passphrase can be checked
        assert not list(folder.iterdir())
        daemon.unlock()  # the control: the question is open, and it runs once it is answered
        decide(daemon, approval)
        assert journey.finished().action.state == "done"


# ---- of others


@pytest.mark.docker
def test_an_agent_cannot_tell_whether_anothers_undo_exists(daemon: Daemon, folder: Path) -> None:
    done = Journey(daemon, shell(folder, "true"), person=True).approve().action.id
    reverted = Journey(daemon, undo(done, "commit"), person=True).approve().action.id
    there = refused(lambda: list(daemon.actions("Revert", undo(reverted))))
    never = refused(lambda: list(daemon.actions("Revert", undo("a-000000000000"))))
    assert (there.code, there.message.replace(reverted, "")) == (
        never.code,
        never.message.replace("a-000000000000", ""),
    )


def test_the_arguments_of_all_calls_together_have_a_size(daemon: Daemon) -> None:
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json='{"text": "' + "x" * 600_000 + '"}')
    request = pb.ExecuteRequest(calls=pb.Calls(calls=[call, call]))
    assert "together" in refused(lambda: list(daemon.actions("Execute", request))).message
