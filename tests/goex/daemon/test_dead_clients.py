"""A client that is killed takes its question with it, also when the daemon was killed with it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.freezing import freeze
from tests.support.journey import Journey
from tests.support.waiting import until

PATIENCE = 40.0  # seconds: less than the minute that a client has which may come back


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        running.person(
            "VaultPut",
            pb.VaultPutRequest(
                service="slack", account="work", secret=b"x", format="string", passphrase=APPROVAL_PASSPHRASE
            ),
        )
        yield running


def waiting(daemon: Daemon) -> set[str]:
    """The actions that are asked for."""
    found = daemon.person("Approvals", pb.ApprovalsRequest(brief=True, duplicates=True)).approvals
    return {approval.action_id for approval in found}


def asking(daemon: Daemon, text: str) -> tuple[subprocess.Popen[bytes], str]:
    """A client that waits for an answer, and the id of its action."""
    before = waiting(daemon)
    client = subprocess.Popen(
        [str(GOEX), "exec", "--call", "slack.chat.postMessage", "channel=#ops", f"text={text}"],
        env=daemon.env, cwd=daemon.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until(lambda: waiting(daemon) > before)
    (id,) = waiting(daemon) - before
    return client, id


def end(client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.wait()


def test_a_client_that_is_killed_is_gone_at_once(daemon: Daemon) -> None:
    client, id = asking(daemon, "killed")
    end(client)
    until(lambda: id not in waiting(daemon), seconds=PATIENCE)
    assert daemon.person_action(id) == "withdrawn"


def test_one_that_died_with_the_daemon_is_gone_at_once_and_one_that_lives_has_its_minute(daemon: Daemon) -> None:
    dead, gone = asking(daemon, "dead")
    alive, held = asking(daemon, "alive")
    try:
        freeze(alive.pid)  # it lives, and can't come back meanwhile
        daemon.kill()
        end(dead)
        daemon.start()
        daemon.unlock()
        until(lambda: gone not in waiting(daemon), seconds=PATIENCE)
        assert daemon.person_action(gone) == "withdrawn"
        assert held in waiting(daemon)
    finally:
        end(alive)


def test_the_person_who_looks_at_it_keeps_no_question_open(daemon: Daemon) -> None:
    """The control: the agent's own second look at it does."""
    token = daemon.add_agent("leaves")
    call = pb.Call(service="slack", method="chat.postMessage", arguments_json='{"channel": "#ops", "text": "left"}')
    asking = Journey(daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), token=token)
    asking.asked()
    again = Journey(daemon, pb.ActionId(id=asking.action_id), token=token)
    person = Journey(daemon, pb.ActionId(id=asking.action_id), person=True)
    again.asked()
    person.asked()
    asking.leave()
    time.sleep(1)
    assert daemon.person_action(asking.action_id) == "asking"
    again.leave()
    assert person.finished().action.state == "withdrawn"
