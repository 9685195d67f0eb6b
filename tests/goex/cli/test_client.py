"""The client: what it checks before it connects, how errors arrive, and that it survives a restart."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import goex.client as client_module
from goex.cli import daemon_calls, rules
from goex.client import Client, NotRunning, Refused, connect, running, start_daemon
from goex.paths import Paths, UnsafePlace
from goex.rpc import goex_pb2 as pb
from policies.errors import ExitStatus, GoexError
from tests.goex.cli.fake import Fake, finished, serve, state
from tests.support.waiting import until


def test_the_daemons_own_words_arrive(paths: Paths, fake: Fake) -> None:
    with connect(paths, start=False) as client, pytest.raises(Refused) as caught:
        client.get("nope")
    assert caught.value.message == "There is no such action."
    assert caught.value.next_step == "See: goex log"
    assert (caught.value.code, caught.value.exit_status) == ("invalid", ExitStatus.USAGE)


def test_an_exit_status_that_we_dont_know_is_a_failure() -> None:
    assert Refused(pb.Problem(exit_status=77)).exit_status is ExitStatus.FAILED
    assert Refused(pb.Problem()).exit_status is ExitStatus.FAILED


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.UNAVAILABLE, ExitStatus.UNAVAILABLE),
        (grpc.StatusCode.DEADLINE_EXCEEDED, ExitStatus.UNAVAILABLE),
        (grpc.StatusCode.UNIMPLEMENTED, ExitStatus.UNSUPPORTED),
        (grpc.StatusCode.PERMISSION_DENIED, ExitStatus.DENIED),
        (grpc.StatusCode.INVALID_ARGUMENT, ExitStatus.USAGE),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ExitStatus.USAGE),
        (grpc.StatusCode.INTERNAL, ExitStatus.FAILED),
    ],
)
def test_every_status_of_the_transport_means_something(
    paths: Paths, fake: Fake, code: grpc.StatusCode, status: ExitStatus
) -> None:
    fake.failure = code
    with connect(paths, start=False) as client, pytest.raises(GoexError) as caught:
        client.actions()
    assert caught.value.exit_status is status
    assert caught.value.message


def test_without_a_daemon(paths: Paths) -> None:
    with pytest.raises(NotRunning, match="isn't running"):
        connect(paths, start=False)


def test_a_stale_socket_isnt_a_daemon(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(paths.user_socket))
    assert not running(paths.user_socket)


def test_an_open_folder_is_never_connected_to(paths: Paths, fake: Fake) -> None:
    paths.run_dir.chmod(0o755)
    with pytest.raises(UnsafePlace):
        connect(paths, start=False)
    paths.run_dir.chmod(0o700)
    connect(paths, start=False).close()


def test_somebody_who_accepts_and_says_nothing(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Client.ready
    monkeypatch.setattr(Client, "ready", lambda self, seconds: original(self, 0.5))
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(paths.user_socket))
        mute.listen()
        with pytest.raises(NotRunning, match="doesn't answer"):
            connect(paths, start=False)


def test_an_odd_folder_name_works(tmp_path: Path) -> None:
    odd = tmp_path / "a %41 ü"
    odd.mkdir(mode=0o700)
    paths = Paths.from_env({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(odd)})
    paths.create()
    # gRPC's server takes a path literally, so the odd name is the client's to spell.
    real = tmp_path / "u.sock"
    server = serve(real, Fake())
    real.rename(paths.user_socket)
    try:
        with connect(paths, start=False) as client:
            assert client.status().pid == 77
    finally:
        server.stop(0).wait()


def test_a_token_goes_with_every_call(paths: Paths, fake: Fake) -> None:
    with Client(paths.user_socket, token="goex_x") as client:
        client.call("Actions/Whoami", pb.WhoamiRequest(), pb.WhoamiReply)
    with Client(paths.user_socket) as client:
        client.call("Actions/Whoami", pb.WhoamiRequest(), pb.WhoamiReply)
    assert fake.metadata[0]["authorization"] == "Bearer goex_x"
    assert "authorization" not in fake.metadata[1]


def test_a_stream_attaches_again_after_a_restart(paths: Paths, fake: Fake) -> None:
    fake.scripts = [
        [state("received", "assess", "assessed"), grpc.StatusCode.UNAVAILABLE],
        [state("allowed", "run", "running")],  # ends without `finished`: the daemon was shut down
        [finished()],
    ]
    with connect(paths, start=False) as client:
        events = list(client.execute(pb.ExecuteRequest(intent="x")))
    assert [event.WhichOneof("what") for event in events] == ["state", "progress", "state", "progress", "finished"]
    assert [type(request).__name__ for request in fake.requests] == ["ExecuteRequest", "ActionId", "ActionId"]
    assert fake.requests[1].id == "ac-0001"


def test_a_request_is_never_sent_twice(paths: Paths, fake: Fake) -> None:
    fake.scripts = [[grpc.StatusCode.UNAVAILABLE], [finished()]]
    with connect(paths, start=False) as client, pytest.raises(NotRunning, match="before it said whether"):
        list(client.execute(pb.ExecuteRequest(intent="x")))
    assert len(fake.requests) == 1


def test_attaching_ends_some_time(paths: Paths, fake: Fake) -> None:
    fake.events = [state("received", "assess", "assessed"), grpc.StatusCode.UNAVAILABLE]
    with connect(paths, start=False) as client, pytest.raises(NotRunning, match="under way") as caught:
        list(client.execute(pb.ExecuteRequest(intent="x")))
    assert "goex show ac-0001" in caught.value.next_step


def test_other_errors_of_a_stream_arents_retried(paths: Paths, fake: Fake) -> None:
    fake.events = [state("received", "assess", "assessed"), grpc.StatusCode.PERMISSION_DENIED]
    with connect(paths, start=False) as client, pytest.raises(GoexError) as caught:
        list(client.execute(pb.ExecuteRequest(intent="x")))
    assert caught.value.exit_status is ExitStatus.DENIED
    assert len(fake.requests) == 1


def test_a_cancelled_stream_ends_quietly(paths: Paths, fake: Fake) -> None:
    fake.events = [state("assessed", "ask", "asking"), Fake.WAIT, finished()]
    with connect(paths, start=False) as client:
        events = client.execute(pb.ExecuteRequest(intent="x"))
        threading.Timer(0.2, events.cancel).start()
        assert [event.WhichOneof("what") for event in events] == ["state"]


# ---- starting the daemon: a program of the test's stands in for it


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(client_module, "DAEMON", ("-c", code))


ACCEPT = """
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind({path!r}); s.listen()
print(os.getsid(0) == os.getpid(), os.getcwd(), oct(os.umask(0)), os.isatty(0), flush=True)
time.sleep(20)
"""


def test_the_daemon_is_started_detached(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, ACCEPT.format(path=str(paths.user_socket)))
    said: list[str] = []
    pid = start_daemon(paths, progress=said.append, seconds=60)
    try:
        until(lambda: paths.log_file.read_text().endswith("\n"), "a line")
        assert paths.log_file.read_text() == "True / 0o77 False\n"
        assert stat.S_IMODE(paths.log_file.stat().st_mode) == 0o600
        assert said[0] == "Starting the daemon."
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_one_that_fails_shows_the_end_of_its_log(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.log_file.write_text("an older run\n")
    paths.log_file.chmod(0o600)
    stand_in(monkeypatch, "print('the disk is full', flush=True); raise SystemExit(8)")
    with pytest.raises(NotRunning, match="exit status 8") as caught:
        start_daemon(paths, seconds=60)
    assert caught.value.details == ("the disk is full",)
    assert str(paths.log_file) in caught.value.next_step


def test_one_that_lost_the_race_to_another_is_as_good(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "raise SystemExit(1)")
    with socket.socket(socket.AF_UNIX) as other:

        def come() -> None:
            other.bind(str(paths.user_socket))
            other.listen()

        threading.Timer(0.5, come).start()
        assert start_daemon(paths, seconds=60)


def test_one_that_never_comes_up_is_an_error_and_says_that_it_waits(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "import time; time.sleep(6)")
    said: list[str] = []
    with pytest.raises(NotRunning, match="isn't up in"):
        start_daemon(paths, progress=said.append, seconds=2.5)
    assert any("Waiting" in line for line in said)


def test_a_log_that_is_a_symlink_isnt_followed(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "print('x')")
    target = paths.state_dir / "target"
    paths.log_file.symlink_to(target)
    with pytest.raises(UnsafePlace, match=r"daemon\.log isn't a regular file"):
        start_daemon(paths, seconds=1)
    assert not target.exists()


def test_the_daemons_python_is_isolated() -> None:
    assert client_module.DAEMON[0] == "-I"


def test_what_takes_long_is_said_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the rules compares the whole of a large imported catalog."""
    said, heard, waits = list[str](), threading.Event(), dict[str, float]()

    class Slow:
        """A daemon that answers once it was said that it takes long."""

        @staticmethod
        def call(method: str, request: Any, reply: Any, *, seconds: float = 300.0) -> Any:
            waits[method] = seconds
            assert heard.wait(300)
            return reply()

    def progress(text: str) -> None:
        said.append(text)
        heard.set()

    client: Any = Slow()
    out: Any = SimpleNamespace(progress=progress)
    monkeypatch.setattr(daemon_calls, "_LONG", 0.0)
    assert rules.notes(client, out) == () and len(said) == 1
    assert "imported catalog" in said[0]
    monkeypatch.setattr(daemon_calls, "_LONG", 3600.0)
    rules._check(client, [], out)
    assert len(said) == 1  # control: what doesn't take long
    assert waits == {"Rules/InForce": 600.0, "Rules/CheckRules": 600.0}
