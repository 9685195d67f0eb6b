"""What `goex undo --task` may do unasked: each undo once, and nothing once it is over."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import goex.cli.undo_to
from goex.cli.follow import Follower
from goex.cli.main import INTERRUPTED
from goex.cli.output import Output
from goex.cli.task import undo_all
from goex.client import Client, Events, connect
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError
from policies.tasks import MOST_LINES
from tests.goex.web.conftest import daemon, shop, token
from tests.support import command
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide
from tests.support.page import status_of
from tests.support.person import QUESTION
from tests.support.waiting import until

__all__ = ["daemon", "shop", "token"]

ANY = json.dumps({"rows": {"any": True}})


def done_in_task(daemon: Daemon, token: str, times: int = 2) -> tuple[str, list[str]]:
    """A task in which that many updates were done: its id and theirs."""
    lines = [
        pb.Allowance(service="db", method="orders:update", account="shop", times=times, arguments_json=ANY),
        pb.Allowance(service="db", method="orders:select", account="shop"),
    ]
    task = Journey(daemon, pb.ExecuteRequest(task=pb.Task(title="Tidy", allows=lines)), token=token)
    assert task.approve().action.state == "done"
    done = []
    for number in range(times):
        update = f"UPDATE orders SET status = 'done {number}' WHERE id = {number % 2 + 1}"
        one = Journey(daemon, pb.ExecuteRequest(sql=pb.SqlProgram(database="shop", statements=update)), token=token)
        assert one.finished().action.state == "done"
        done.append(one.action_id)
    return task.action_id, done


def mine(daemon: Daemon) -> list[Any]:
    """The grants of the person's own that stand."""
    return [one for one in daemon.person("Grants", pb.GrantsRequest()).grants if one.agent == "person"]


def undone(daemon: Daemon, task: str, seen: list[pb.Approval], questions: int = 1) -> int:
    """Undo a task as the command does, its questions answered with yes. Returns the exit status."""

    def answer() -> None:
        for _ in range(questions):
            until(lambda: waiting(daemon))
            (asked,) = waiting(daemon)
            seen.append(asked)
            decide(daemon, asked)

    answers = threading.Thread(target=answer)
    answers.start()
    try:
        with connect(Paths.from_env(daemon.env), start=False) as client:
            return undo_all(client, task, False, Output(True))
    finally:
        answers.join()


def waiting(daemon: Daemon) -> list[pb.Approval]:
    return list(daemon.person("Approvals", pb.ApprovalsRequest()).approvals)


@pytest.mark.promise(92)
def test_each_undo_is_allowed_once_until_all_are_done(daemon: Daemon, shop: Path, token: str) -> None:
    task, done = done_in_task(daemon, token)
    seen: list[pb.Approval] = []
    assert undone(daemon, task, seen) == 0
    (question,) = seen
    assert [line for line in question.lines if "goex.undo" in line] == [
        f'{number}. goex.undo, once: target is among ["{id}"]' for number, id in enumerate(reversed(done), 1)
    ]
    assert status_of(shop) == status_of(shop, 2) == "new"
    assert not mine(daemon)


@pytest.mark.promise(92)
def test_of_more_undos_than_a_task_has_lines_each_is_allowed_once(daemon: Daemon, shop: Path, token: str) -> None:
    task, done = done_in_task(daemon, token, MOST_LINES + 1)
    seen: list[pb.Approval] = []
    assert undone(daemon, task, seen, questions=2) == 0
    assert [sum(f'once: target is among ["{id}"]' in line for one in seen for line in one.lines) for id in done] == [
        1
    ] * len(done)
    assert status_of(shop) == status_of(shop, 2) == "new"
    assert not mine(daemon)


@pytest.mark.promise(92)
def test_what_was_stopped_allows_nothing_any_more(daemon: Daemon, shop: Path, token: str) -> None:
    task, _ = done_in_task(daemon, token)
    with sqlite3.connect(shop) as other:
        other.execute("UPDATE orders SET status = 'somebody else' WHERE id = 2")
    assert undone(daemon, task, []) != 0
    assert status_of(shop, 2) == "somebody else"
    assert not mine(daemon)
    with sqlite3.connect(shop) as other:
        other.execute("UPDATE orders SET status = 'new'")


@pytest.mark.promise(92)
@pytest.mark.parametrize("how", [KeyboardInterrupt(), GoexError("The daemon went away.")])
def test_what_was_broken_off_allows_nothing_any_more(
    daemon: Daemon, shop: Path, token: str, how: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, done = done_in_task(daemon, token)
    stood = []

    def broken_off(*_: object) -> int:
        stood.extend(mine(daemon))
        raise how

    monkeypatch.setattr(goex.cli.undo_to, "each", broken_off)
    with pytest.raises(type(how)):
        undone(daemon, task, [])
    assert len(stood) == len(done)  # the control: they were allowed
    assert not mine(daemon)


@pytest.fixture(scope="module")
def many(daemon: Daemon, token: str) -> str:
    """A task of which the undos are asked about in two questions."""
    return done_in_task(daemon, token, MOST_LINES + 1)[0]


@pytest.mark.sampled(3)
@pytest.mark.promise(92)
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_is_allowed(daemon: Daemon, many: str, how: signal.Signals, stopped: bool) -> None:
    argv = [str(command.GOEX), "undo", "--task", many, "--json"]
    # A command that was stopped may take the signal by any of its threads.
    sent = (signal.SIGSTOP, how, signal.SIGCONT) if stopped else (how,)
    with subprocess.Popen(argv, env=daemon.env, stdout=subprocess.DEVNULL) as going:
        try:
            until(lambda: waiting(daemon))
            decide(daemon, waiting(daemon)[0])
            until(lambda: len(mine(daemon)) == MOST_LINES and waiting(daemon))  # the control: these are allowed
            for one in sent:
                going.send_signal(one)
            assert going.wait(300) == INTERRUPTED
        finally:
            going.kill()
    assert not mine(daemon)
    assert not waiting(daemon)


class Silent:
    """A stream in which nothing comes; a thread of its own takes a signal."""

    action_id = ""

    def __init__(self) -> None:
        self.ended, self.late = threading.Event(), False

    def __iter__(self) -> Iterator[pb.Event]:
        time.sleep(0.5)  # the main thread waits by then
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        self.late = not self.ended.wait(10)
        return iter(())

    def cancel(self) -> None:
        self.ended.set()


def test_a_signal_that_another_thread_takes_ends_the_wait() -> None:
    events = Silent()
    with pytest.raises(KeyboardInterrupt):
        Follower(cast(Client, None), cast(Events, events), Output(True)).run()
    assert not events.late


@pytest.mark.promise(92)
def test_a_terminal_that_is_closed_ends_what_is_allowed(daemon: Daemon, many: str) -> None:
    with daemon.terminal("undo", "--task", many) as terminal:
        terminal.expect(QUESTION)
        decide(daemon, waiting(daemon)[0])
        terminal.expect(QUESTION)  # the second
        assert len(mine(daemon)) == MOST_LINES
        terminal.hang_up()
        until(lambda: not mine(daemon))
        until(lambda: not waiting(daemon))
