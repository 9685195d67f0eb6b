"""No text keeps the daemon from answering: an expression that looks at a text holds the whole process meanwhile.

Each is read by a process with a bound on its processor's time; its control, which reads as GoEx once did, is killed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.long_text_attacks import TRIES
from tests.adversarial.long_texts import LONG
from tests.support.daemon import Daemon

SECONDS, SECONDS_OF_CONTROL = 60.0, 0.5  # of the processor


def _read(*arguments: str, seconds: float) -> dict[str, str]:
    """How the process that read each of them ended, by its name."""
    command = [sys.executable, "-m", "tests.adversarial.long_texts", str(seconds), *arguments]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(line.split() for line in said.splitlines())


@pytest.fixture(scope="module")
def read() -> dict[str, str]:
    return _read(*LONG, seconds=SECONDS)


@pytest.fixture(scope="module")
def read_as_before() -> dict[str, str]:
    return _read("--without", *LONG, seconds=SECONDS_OF_CONTROL)


@pytest.mark.promise(16)
@pytest.mark.parametrize("name", TRIES)
def test_read_to_its_end(read: dict[str, str], name: str) -> None:
    assert read[name] == "0"


@pytest.mark.thorough
@pytest.mark.parametrize("name", TRIES)
def test_control(read_as_before: dict[str, str], name: str) -> None:
    assert read_as_before[name] == str(-signal.SIGPROF)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


@pytest.mark.promise(16)
@pytest.mark.parametrize("proposal", ["```" + "\t" * 190_000, '{"a": ' + '"\\' * 90_000])
def test_a_proposal_is_refused_and_the_daemon_goes_on(daemon: Daemon, proposal: str) -> None:
    token = daemon.add_agent(f"proposes-{len(proposal)}")
    with pytest.raises(grpc.RpcError) as refused:
        list(daemon.actions("Execute", pb.ExecuteRequest(proposal=proposal), token=token))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert daemon.person("Approvals", pb.ApprovalsRequest()) is not None
