"""A kill in every state of an action, for both runtimes and for undo: settled or unknown, nothing lost or doubled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.crash.daemons import kill_container
from tests.crash.rounds import CallsRounds, FilesRounds, Found, Moment, back, common, kill_at
from tests.services.synapse import Synapse
from tests.support.containers import WAIT, one_waits_with, owned
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide, shell

pytestmark = [pytest.mark.docker, pytest.mark.slow]

# Deeper moments within one state, by the number of journal rows; more of them in `make crash`.
SEED = 20_260_102
TRIES = 20


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(config=WAIT) as running:
        yield running


@pytest.fixture(scope="module")
def files(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> FilesRounds:
    folder = tmp_path_factory.mktemp("crash") / "work"
    folder.mkdir()
    return FilesRounds(daemon, folder)


@pytest.fixture(scope="module")
def calls(daemon: Daemon, synapse: Synapse) -> CallsRounds:
    return CallsRounds(daemon, synapse)


def some(states: Iterable[str]) -> list[Any]:
    """Those that are killed in by `make test`; the others are left to `make thorough`."""
    kept = ("allowed", "running")
    return [pytest.param(each, marks=[] if each in kept else pytest.mark.thorough) for each in states]


def killed_in(state: str, run: Callable[[Moment], Found]) -> None:
    """Rounds until one was killed in that state: some last a millisecond, and every round must end well anyway."""
    for _ in range(TRIES):
        found = run(Moment(state))
        assert found.problems == [], found
        if found.hit == state:
            return
    raise AssertionError(f"In {TRIES} rounds none was killed in state {state}.")


@pytest.mark.promise(61)
@pytest.mark.parametrize("state", some(FilesRounds.states))
def test_a_program_killed_in_every_state(files: FilesRounds, state: str) -> None:
    killed_in(state, files.execute)


@pytest.mark.promise(61)
def test_a_program_killed_in_a_container_that_waited(daemon: Daemon, tmp_path: Path) -> None:
    """The folder isn't root's, so its programs run there, and the second one where a container waited for it."""
    folder = tmp_path / "own"
    folder.mkdir()
    rounds = FilesRounds(daemon, owned(folder))
    for moment in (Moment("running", 7), Moment("running", 9)):
        rounds.run_and_take_back()
        one_waits_with(folder, daemon.run_dir)
        found = rounds.execute(moment)
        assert found.problems == [], found
    rounds.run_and_take_back()
    one_waits_with(folder, daemon.run_dir)
    outcome = kill_container(rounds, random.Random(SEED))
    assert outcome.problems == [], outcome


@pytest.mark.promise(61)
@pytest.mark.synapse
@pytest.mark.parametrize("state", some(CallsRounds.states))
def test_a_message_killed_in_every_state(calls: CallsRounds, state: str) -> None:
    killed_in(state, calls.execute)


@pytest.mark.promise(61)
@pytest.mark.parametrize("state", some(["received", "assessed", "allowed", "running"]))
def test_an_undo_of_files_killed_in_every_state(files: FilesRounds, state: str) -> None:
    killed_in(state, files.revert)


@pytest.mark.promise(61)
@pytest.mark.synapse
@pytest.mark.parametrize("state", some(["received", "assessed", "allowed", "running"]))
def test_an_undo_of_a_message_killed_in_every_state(calls: CallsRounds, state: str) -> None:
    killed_in(state, calls.revert)


@pytest.mark.thorough
@pytest.mark.synapse
def test_seeded_moments_while_it_runs(files: FilesRounds, calls: CallsRounds) -> None:
    dice = random.Random(SEED)
    for _ in range(8):
        for rounds in (files, calls):
            assert rounds.execute(Moment("running", dice.choice(rounds.depths[0]))).problems == []
            assert rounds.revert(Moment("running", dice.choice(rounds.depths[1]))).problems == []


def test_a_question_that_was_open_is_still_open(daemon: Daemon, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    action, hit, _ = kill_at(
        daemon, lambda: Journey(daemon, shell(folder, "echo 1 > a", detach=True)), Moment("asking")
    )
    assert hit == "asking"
    assert back(daemon, action) == "asking"
    follow = Journey(daemon, pb.ActionId(id=action), person=True)
    decide(daemon, follow.asked())
    assert follow.finished().action.state == "done"
    assert common(daemon) == []
