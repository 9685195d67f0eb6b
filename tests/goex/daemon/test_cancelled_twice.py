"""A running program that is cancelled twice: its end is recorded when nothing of it runs any more, and is undone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.containers import owned
from tests.support.daemon import Daemon
from tests.support.journey import Journey, decide

pytestmark = pytest.mark.docker

WRITES = """
import os, time
for k in range(4):
    if os.fork() == 0:
        os.setsid()
        while True:
            with open(f"f{k}", "w") as file:
                file.write(f"{time.monotonic_ns():020}" * 20)
print("on", flush=True)
time.sleep(50)
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


@pytest.mark.sampled(1)
@pytest.mark.promise(57)
@pytest.mark.promise(58)
@pytest.mark.parametrize("gaps", [(0.0,), (0.03,), (0.15,), (0.02, 0.05)], ids=str)
def test_nothing_is_written_after_the_end_and_undo_is_exact(
    daemon: Daemon, tmp_path: Path, gaps: tuple[float, ...]
) -> None:
    tmp_path.chmod(0o755)
    folder = tmp_path / "notes"
    folder.mkdir()
    owned(folder)
    token = daemon.add_agent(f"agent-{'-'.join(f'{gap * 1000:.0f}' for gap in gaps)}-{len(gaps)}")
    program = pb.FilesProgram(folder=str(folder), language="python", program=WRITES)
    journey = Journey(daemon, pb.ExecuteRequest(files=program), token=token)
    decide(daemon, journey.asked())
    journey.until("output")
    time.sleep(0.3)  # the writers write

    def cancel() -> None:
        daemon.actions("Cancel", pb.ActionId(id=journey.action_id), token=token)

    cancels = [threading.Thread(target=cancel) for _ in range(len(gaps) + 1)]
    for one, gap in zip(cancels, (*gaps, 0.0), strict=True):
        one.start()
        time.sleep(gap)
    for one in cancels:
        one.join()
    assert journey.finished().action.state in ("partial", "failed")
    left = {path.name: path.read_bytes() for path in folder.iterdir()}
    time.sleep(1.0)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == left, "it was written after its end"
    undo = pb.RevertRequest(action_id=journey.action_id, verb="undo")
    undone = Journey(daemon, undo, person=True).approve()
    assert undone.action.state == "done", undone
    assert not [*folder.iterdir()]
