"""The daemon is killed around a task's count: no more is done than the person allowed, and no count goes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, scene
from tests.adversarial.test_tasks import line, post
from tests.support.journey import Journey

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def kill_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kill") / "at"


@pytest.fixture(scope="module")
def desk(sandbox_image: str, kill_at: Path) -> Iterator[Scene]:
    with scene(env={"GOEX_TEST_KILL_AT": str(kill_at)}) as made:
        yield made


def count(desk: Scene, id: str) -> tuple[int, int]:
    (found,) = [one for one in desk.daemon.person("Grants", pb.GrantsRequest(all=True)).grants
                if one.why == id and one.width == "task"]  # fmt: skip
    return found.uses, found.times


@pytest.mark.sampled(1)
@pytest.mark.promise(92)
@pytest.mark.parametrize(
    ("point", "used", "sent"),
    [("counted, not written", 0, 0), ("written, not sent", 1, 0), ("sent, no outcome", 1, 1)],
)
def test_a_killed_daemon_gives_no_count_back(desk: Scene, kill_at: Path, point: str, used: int, sent: int) -> None:
    desk.new_agent()
    given = pb.ExecuteRequest(task=pb.Task(allows=[line(times=2)], agent=desk.agent))  # which outlives its session
    task = Journey(desk.daemon, given, person=True)
    assert task.approve().action.state == "done"
    kill_at.write_text(point)
    with pytest.raises(grpc.RpcError):
        desk.ask(post()).finished()
    assert not kill_at.exists(), "it was killed there"
    desk.daemon.kill()
    desk.daemon.start()
    desk.daemon.unlock()
    assert count(desk, task.action_id) == (used, 2)
    assert len(desk.service.posted()) == sent
    for _ in range(2 - used):
        assert desk.unasked(post())
    assert not desk.unasked(post()), "what was counted stays counted"
    assert len(desk.service.posted()) == sent + 2 - used
    assert desk.daemon.goex("log", "--verify").returncode == 0
