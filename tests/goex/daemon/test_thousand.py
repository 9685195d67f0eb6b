"""A thousand questions at once, two people answering all of them, and a daemon that is killed under them: each question
is settled once, none is lost, nothing runs twice. Real processes, real sockets, a real disk."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goex.engine.authorize import MOST_OF_AN_AGENT
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, shell
from tests.support.person import QUESTION
from tests.support.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAMS = 4  # of each agent: what runs takes a container each
AGENTS = ("one", "other")


@pytest.fixture
def asked() -> Iterator[Daemon]:
    with Daemon(config="[ask]\nseconds = 3600\n") as daemon:
        daemon.person(
            "VaultPut",
            pb.VaultPutRequest(
                service="slack", account="work", secret=b"x", format="string", passphrase=APPROVAL_PASSPHRASE
            ),
        )
        yield daemon


def message(number: int) -> pb.ExecuteRequest:
    call = pb.Call(
        service="slack", method="chat.postMessage", arguments_json=json.dumps({"channel": "#ops", "text": str(number)})
    )
    return pb.ExecuteRequest(calls=pb.Calls(calls=[call]), detach=True)


def fill(daemon: Daemon, folder: Path, each: int) -> dict[str, str]:
    """As many questions of each of two agents. Returns each one's action."""
    tokens = {agent: daemon.add_agent(agent) for agent in AGENTS}

    def ask(which: tuple[str, int]) -> tuple[str, str]:
        agent, number = which
        line = f"{agent}-{number}"
        request = shell(folder, f"echo {line} >> done", detach=True) if number < PROGRAMS else message(number)
        journey = Journey(daemon, request, token=tokens[agent])
        question = journey.asked()
        journey.leave()
        return question.id, journey.action_id

    wanted = [(agent, number) for number in range(each) for agent in AGENTS]
    with ThreadPoolExecutor(4) as pool:
        made = dict(pool.map(ask, wanted))
    for agent in AGENTS if each == MOST_OF_AN_AGENT else ():  # one more of each is refused
        over = Journey(daemon, message(10_000), token=tokens[agent]).finished()
        assert over.action.state == "denied" and f"{MOST_OF_AN_AGENT} requests" in over.problem.message
    return made


def approver(daemon: Daemon, side: str) -> subprocess.Popen[bytes]:
    out = daemon.home / side
    words = ["-m", "tests.support.approver", str(daemon.user_socket), APPROVAL_PASSPHRASE, side, str(out)]
    started = subprocess.Popen([sys.executable, *words], cwd=Path(__file__).parents[3])
    until(lambda: Path(f"{out}.ready").exists(), 60.0)
    return started


@pytest.mark.promise(17)
@pytest.mark.parametrize("each", [20, pytest.param(MOST_OF_AN_AGENT, marks=pytest.mark.thorough)])
def test_each_is_settled_once_and_none_runs_twice(asked: Daemon, folder: Path, each: int) -> None:
    daemon = asked
    made = fill(daemon, folder, each)
    assert len(made) == 2 * each

    # The prompt is open, and the daemon dies: the question is neither answered nor gone.
    with daemon.terminal("approve") as terminal:
        terminal.expect(f"{2 * each} requests wait for you", seconds=300)
        terminal.expect(QUESTION, seconds=300)
        daemon.kill()
        daemon.start()
        daemon.unlock()
        listed = daemon.person("Approvals", pb.ApprovalsRequest(brief=True)).approvals
        assert {one.id for one in listed} == made.keys()
        assert [one.place for one in listed] == list(range(1, 2 * each + 1))
        # Agents take turns all the way down, each in the order in which it asked.
        assert all(listed[n].agent != listed[n + 1].agent for n in range(0, 2 * each, 2))

    # Two people answer all of it at once, and the daemon dies once more under them.
    both = [approver(daemon, side) for side in ("front", "back")]
    pending = lambda: daemon.person("Status", pb.StatusRequest()).pending  # noqa: E731
    until(lambda: pending() < 1.2 * each, 120.0)
    daemon.kill()
    daemon.start()
    daemon.unlock()
    for process in both:
        assert process.wait(240) == 0

    answers = [json.loads((daemon.home / side).read_text()) for side in ("front", "back")]
    taken = Counter(id for each in answers for id, how in each.items() if how in ("yes", "no"))
    assert set(taken.values()) == {1}  # of two answers to one question at most one was taken
    # An answer that was on its way when the daemon died may have been taken without anybody hearing of it.
    assert len(made) - len(taken) <= 2
    # Between the start and the unlocking it says that the vault is sealed, and takes no answer.
    assert {how for side in answers for how in side.values()} - {"vault-sealed"} == {"yes", "no", "settled"}
    until(lambda: not _under_way(daemon), 120.0)

    with sqlite3.connect(daemon.state_dir / "state.db") as database:
        states = dict(database.execute("select id, state from approvals"))
        kinds = Counter(
            (action, kind)
            for action, kind in database.execute("select action_id, kind from journal where action_id != ''")
        )
        ended = dict(database.execute("select id, state from actions"))
    database.close()
    assert all(states[id] in ("approved", "denied") for id in made)
    for id, action in made.items():
        settled = kinds[action, "allow"] + kinds[action, "deny"]
        assert (settled <= 1) and (settled == 1 or states[id] == "approved"), (id, states[id], ended[action])
        assert kinds[action, "run"] <= 1
    lines = Counter((folder / "done").read_text().split()) if (folder / "done").exists() else Counter[str]()
    assert set(lines.values()) == {1}, lines  # nothing ran twice
    ran = [action for action in made.values() if ended[action] == "done"]
    assert len(ran) <= len(lines) <= len(AGENTS) * PROGRAMS
    assert daemon.person("VerifyLog", pb.VerifyLogRequest()).good


def _under_way(daemon: Daemon) -> bool:
    listed = daemon.actions("List", pb.ListRequest(limit=1000), socket=daemon.user_socket).actions
    return any(one.state in ("asking", "allowed", "prepared", "running") for one in listed)


@pytest.mark.promise(17)
def test_one_settled_before_a_kill_stays_settled_and_what_was_not_waits(asked: Daemon, folder: Path) -> None:
    daemon = asked
    token = daemon.add_agent("bot")
    journeys, questions = [], []
    for number in range(6):  # one after the other: their order is the queue's
        journeys.append(Journey(daemon, message(number % 2), token=token))
        questions.append(journeys[-1].asked())
    for journey in journeys:
        journey.leave()
    first = daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0]
    assert (first.count, len(first.same_as)) == (3, 2)
    request = pb.DecideRequest(approval_id=first.id, digest=first.digest, same_as=first.same_as[:1])
    assert list(daemon.person("Decide", request).settled) == [first.same_as[0]]
    os.kill(daemon.pid, 9)
    daemon.kill()
    daemon.start()
    daemon.unlock()
    left = daemon.person("Approvals", pb.ApprovalsRequest(duplicates=True)).approvals
    assert {one.id for one in left} == {one.id for one in questions} - {first.id, first.same_as[0]}
    # What was identical before the restart is so after it.
    assert [one.count for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals] == [3, 1]
