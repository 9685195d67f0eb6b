"""Back to a point, over real sockets and containers: what stands on what, whose actions, and what is kept for good."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, problem, shell, undo
from tests.support.person import QUESTION

pytestmark = pytest.mark.docker


def ran(daemon: Daemon, folder: Path, program: str, *, token: str = "", person: bool = True) -> str:
    """Run a program, with a yes; returns the action's id."""
    finished = Journey(daemon, shell(folder, program), token=token, person=person and not token).approve()
    assert finished.action.state == "done", finished
    return str(finished.action.id)


def way(daemon: Daemon, *, token: str = "", **asked: object) -> list[pb.WayStep]:
    request = pb.WayBackRequest(**{"verb": "undo", **asked})  # type: ignore[arg-type]
    socket = None if token else daemon.user_socket
    return list(daemon.actions("WayBack", request, token=token, socket=socket).steps)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def other(folder: Path) -> Path:
    """A second folder of the same owner."""
    made = folder.with_name("other")
    made.mkdir()
    made.chmod(0o777)
    return made


def test_a_terminal_goes_back_to_a_point_and_says_what_stays(daemon: Daemon, folder: Path, other: Path) -> None:
    first = ran(daemon, folder, "echo 1 > one.txt")
    read = ran(daemon, folder, "cat one.txt")
    elsewhere = ran(daemon, other, "echo 2 > two.txt")
    last = ran(daemon, folder, "cp one.txt three.txt")

    refused = Journey(daemon, undo(first), person=True).finished()
    assert refused.problem.code == "conflict" and f"goex undo --to {first}" in refused.problem.next_step
    assert [line.split(":")[0] for line in refused.problem.details] == [last]  # not what only looked
    assert names(folder) == ["one.txt", "three.txt"]

    shown = daemon.goex("undo", "--to", first, "--everyone", "--dry-run")
    order = [line.split()[2] for line in shown.stdout.splitlines()[1:]]
    assert order == [last, elsewhere, first] and read not in shown.stdout, shown.stdout

    with daemon.terminal("undo", "--to", first, "--everyone") as terminal:
        terminal.expect(r"Take back 3 actions \(yes or no\) \[no\]: ")
        terminal.type("yes")
        for number in range(3):
            terminal.expect(QUESTION)
            terminal.type("once")
            if number == 0:
                terminal.expect("passphrase[^:]*: ")
                terminal.type(APPROVAL_PASSPHRASE)
            terminal.expect("as it was before the action")
        assert terminal.wait() == 0
    assert names(folder) == [] and names(other) == []


def test_what_somebody_changed_since_stays_and_the_rest_goes_back(daemon: Daemon, folder: Path, other: Path) -> None:
    first, below = ran(daemon, folder, "echo 1 > one.txt"), ran(daemon, other, "echo 2 > two.txt")
    changed = ran(daemon, other, "cat two.txt > three.txt")
    (other / "three.txt").write_text("mine\n")
    with daemon.terminal("undo", "--to", first, "--everyone") as terminal:
        terminal.expect(r"Take back 3 actions \(yes or no\) \[no\]: ")
        terminal.type("yes")
        terminal.expect("Someone changed what this action had changed")
        terminal.expect(f"later actions may depend on it.*{changed}")
        terminal.expect(QUESTION)
        terminal.type("once")
        if terminal.expect("passphrase[^:]*: |as it was before the action")[0].startswith("passphrase"):
            terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect(f"1 of 3 taken back, {changed}, {below} not")
        assert terminal.wait() == 6
    assert names(folder) == [] and names(other) == ["three.txt", "two.txt"]
    assert (other / "three.txt").read_text() == "mine\n"


def test_an_independent_action_is_taken_back_out_of_order(daemon: Daemon, folder: Path, other: Path) -> None:
    first, second = ran(daemon, folder, "echo 1 > one.txt"), ran(daemon, other, "echo 2 > two.txt")
    assert Journey(daemon, undo(first), person=True).approve().action.state == "done"
    assert names(folder) == [] and names(other) == ["two.txt"]
    assert Journey(daemon, undo(second), person=True).approve().action.state == "done"


def test_the_person_may_disregard_what_came_later_but_not_what_is_there(daemon: Daemon, folder: Path) -> None:
    first, _ = ran(daemon, folder, "echo 1 > one.txt"), ran(daemon, folder, "echo 2 > two.txt")
    third = ran(daemon, folder, "echo 3 >> two.txt")
    (folder / "two.txt").write_text("theirs")
    journey = Journey(daemon, undo(third, regardless=True), person=True)
    assert journey.finished().problem.code == "conflict"  # what it changed isn't as it left it
    assert (folder / "two.txt").read_text() == "theirs"
    assert Journey(daemon, undo(first, regardless=True), person=True).approve().action.state == "done"
    assert names(folder) == ["two.txt"]


@pytest.mark.promise(62)
def test_an_agent_sees_its_own_way_alone(daemon: Daemon, folder: Path, other: Path) -> None:
    token = daemon.add_agent("way-one")
    mine, theirs = ran(daemon, folder, "echo 1 > one.txt", token=token), ran(daemon, other, "echo 2 > two.txt")
    assert [step.action.id for step in way(daemon, token=token, action_id=mine, everyone=True)] == [mine]
    for asked in ({"action_id": theirs}, {"action_id": "a-none"}):
        with pytest.raises(grpc.RpcError) as caught:
            way(daemon, token=token, **asked)
        assert "There is no action" in problem(caught.value).message
    with pytest.raises(grpc.RpcError) as caught:
        list(daemon.actions("Revert", undo(mine, regardless=True), token=token))
    assert problem(caught.value).code == "denied"


def test_a_watermark_keeps_all_until_then_with_one_answer(daemon: Daemon, folder: Path) -> None:
    ids = [ran(daemon, folder, f"echo {number} > {number}.txt") for number in range(3)]
    steps = way(daemon, verb="commit", action_id=ids[1], everyone=True)
    until = [step.action.id for step in steps]
    assert until[-2:] == ids[:2]
    finished = Journey(daemon, undo(ids[1], "commit", also=[ids[0]]), person=True).approve()
    assert finished.action.state == "done", finished
    states = [daemon.actions("Get", pb.ActionId(id=id), socket=daemon.user_socket).state for id in ids]
    assert states == ["committed", "committed", "done"]
    assert Journey(daemon, undo(ids[2]), person=True).approve().action.state == "done"
    assert names(folder) == ["0.txt", "1.txt"]


def test_redo_goes_forward_again_to_a_point(daemon: Daemon, folder: Path) -> None:
    ids = [ran(daemon, folder, f"echo {number} > {number}.txt") for number in range(2)]
    for id in reversed(ids):
        assert Journey(daemon, undo(id), person=True).approve().action.state == "done"
    order = [step.action.id for step in way(daemon, verb="redo", action_id=ids[0], everyone=True)]
    assert order == ids
    for id in order:
        assert Journey(daemon, undo(id, "redo"), person=True).approve().action.state == "done"
    assert names(folder) == ["0.txt", "1.txt"]


@pytest.mark.parametrize(
    "asked",
    [{}, {"action_id": "a-1", "moment": "2026-01-01T00:00:00Z"}, {"moment": "soon"}, {"verb": "forget", "moment": "x"}],
    ids=["no point", "two points", "no time", "no verb"],
)
def test_a_point_that_makes_no_sense_is_refused(daemon: Daemon, asked: dict[str, object]) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        way(daemon, **asked)
    assert problem(caught.value).next_step
