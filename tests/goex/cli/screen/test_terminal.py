"""The screen on a real terminal, before a real daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.cli.screen.board import MOMENT
from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon, folder
from tests.goex.cli.screen.glass import Glass
from tests.runtimes.files.test_dryrun import all_of_it
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.journey import Journey, decide, shell

__all__ = ["daemon", "folder"]
pytestmark = pytest.mark.docker

LONG = "\n".join(f"echo line {number}" for number in range(60))


@pytest.fixture
def glass(daemon: Daemon) -> Iterator[Glass]:
    with opened(daemon) as made:
        yield made


def opened(daemon: Daemon, size: tuple[int, int] = (50, 120), **more: str) -> Glass:
    argv = [str(GOEX), "approve", "--screen"]
    return Glass(argv, env={**daemon.env, "TERM": "xterm-256color", **more}, cwd=daemon.home, size=size)


def selected(glass: Glass, id: str) -> None:
    """Go to that question, with the arrow keys, and wait as long as it must stand."""
    glass.until("wait")
    for _ in range(30):
        if id in glass.rest(0.3):
            break
        glass.press("\x1b[B")
    glass.until(id)
    glass.rest(MOMENT + 0.3)


def test_once_with_the_passphrase_runs_it_once(daemon: Daemon, folder: Path, glass: Glass) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    selected(glass, journey.asked().id)
    glass.press("o")
    glass.until("Allow it this once?")
    glass.rest(MOMENT + 0.2)
    glass.press("y")
    glass.until("Approval passphrase:")
    assert "this once (an agent without a name, delete)?" in glass.text
    glass.press(APPROVAL_PASSPHRASE + "\n")
    assert journey.finished().action.state == "done"
    glass.until("allowed this once")
    assert (folder / "made").read_text() == "done\n"
    assert APPROVAL_PASSPHRASE not in glass.raw
    glass.press("q")
    assert glass.terminal.wait() == 0


def test_a_wrong_passphrase_allows_nothing(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    id = journey.asked().id
    with opened(daemon) as glass:
        selected(glass, id)
        glass.press("o")
        glass.until("Allow it this once?")
        glass.rest(MOMENT + 0.2)
        glass.press("y")
        glass.until("Approval passphrase:")
        glass.press("wrong\n")
        glass.until(lambda _: glass.raw.count("Approval passphrase:") == 2)
        glass.press("\n")
        glass.until("nothing was changed")
        assert id in glass.text
    journey.leave()
    assert not list(folder.iterdir())


def test_ctrl_c_at_the_passphrase_allows_nothing(daemon: Daemon, folder: Path, glass: Glass) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    selected(glass, journey.asked().id)
    glass.press("o")
    glass.until("Allow it this once?")
    glass.rest(MOMENT + 0.2)
    glass.press("y")
    glass.until("Approval passphrase:")
    glass.press("\x03")
    glass.until("It was interrupted, so nothing was decided.")
    journey.leave()
    assert not list(folder.iterdir())


def test_deny_with_a_reason_reaches_the_agent(daemon: Daemon, folder: Path, glass: Glass) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    selected(glass, journey.asked().id)
    glass.press("d")
    glass.until("Deny it?")
    glass.press("not like this\r")
    finished = journey.finished()
    assert finished.action.state == "denied" and "not like this" in finished.problem.message
    glass.until("denied")


def test_what_was_not_seen_cannot_be_allowed(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, LONG))
    id = journey.asked().id
    with opened(daemon, (24, 80)) as glass:
        glass.until("echo line 1")
        glass.rest(MOMENT + 0.2)
        glass.press("o")
        glass.until("Read it to its end first")
        for _ in range(12):
            glass.press(" ")
            glass.rest(0.2)
        glass.until(id)
        glass.press("o")
        glass.until("Allow it this once?")
    journey.leave()


def test_what_is_settled_elsewhere_vanishes(daemon: Daemon, folder: Path, glass: Glass) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    approval = journey.asked()
    selected(glass, approval.id)
    decide(daemon, approval, approve=False)
    glass.until("settled elsewhere")
    glass.press("o")
    glass.rest(0.5)
    assert "Allow it" not in glass.text
    assert journey.finished().action.state == "denied"


def test_the_dry_run_is_shown_before_anything_is_decided(daemon: Daemon, folder: Path, glass: Glass) -> None:
    (folder / "kept.txt").write_text("as it was\n")
    (folder / "kept.txt").chmod(0o666)
    journey = Journey(daemon, shell(folder, "echo changed > kept.txt; echo hello"))
    before = all_of_it(folder)
    selected(glass, journey.asked().id)
    glass.press("y")
    glass.until("- │ as it was")
    assert "+ │ changed" in glass.text and "│ hello" in glass.text and "on a copy at" in glass.text
    assert all_of_it(folder) == before
    journey.leave()


def test_a_daemon_that_is_killed_is_waited_for(folder: Path, sandbox_image: str) -> None:
    with Daemon() as own:
        journey = Journey(own, shell(folder, "echo done > made", detach=True))
        id = journey.asked().id
        with opened(own) as glass:
            selected(glass, id)
            own.kill()
            glass.until("the daemon is away")
            glass.press("o")
            glass.until("nothing can be decided")
            own.start()
            own.unlock()
            glass.until(lambda text: "away" not in text.splitlines()[0])
            glass.until("1 waits for you")
            selected(glass, id)
            glass.press("d")
            glass.until("Deny it?")
            glass.press("\r")
            glass.until("denied")
        view = own.actions("List", pb.ListRequest(), socket=own.user_socket).actions[0]
        assert view.state == "denied"


@pytest.mark.promise(27)
def test_nothing_of_the_environment_presses_keys_or_logs(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    id = journey.asked().id
    log = daemon.home / "textual.log"
    told = {
        "TEXTUAL_PRESS": "end,wait:1500,o,wait:1500,y,d,enter",
        "TEXTUAL_LOG": str(log),
        "TEXTUAL_DRIVER": "nothing:Here",
        "TEXTUAL_SCREENSHOT": "1",
        "TEXTUAL": "debug,devtools",
    }
    with opened(daemon, **told) as glass:
        selected(glass, id)
        glass.rest(4)
        assert id in glass.text and "Allow it" not in glass.text
        glass.press("q")
        assert glass.terminal.wait() == 0
    assert not log.exists()
    assert daemon.person("Approvals", pb.ApprovalsRequest(approval_id=id)).approvals[0].state == "pending"
    journey.leave()


@pytest.mark.promise(27)
def test_what_was_typed_before_it_stood_there_is_thrown_away(daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo done > made"))
    id = journey.asked().id
    with opened(daemon) as glass:
        glass.press("oydddd\r\r")
        glass.until(id)
        glass.rest(1)
        assert "Deny it?" not in glass.text and "Allow it" not in glass.text
    assert daemon.person("Approvals", pb.ApprovalsRequest(approval_id=id)).approvals[0].state == "pending"
    journey.leave()


def test_the_terminal_is_left_as_it_was(daemon: Daemon) -> None:
    with opened(daemon) as glass:
        glass.until("GoEx")
        os.kill(glass.terminal.pid, signal.SIGINT)
        glass.press("\x03")
        glass.terminal.wait()
        assert "\x1b[?1049l" in glass.raw and "\x1b[?25h" in glass.raw


@pytest.mark.parametrize("how", ["pipes", "no controlling terminal", "dumb"])
def test_only_on_a_terminal_of_its_own(daemon: Daemon, how: str) -> None:
    argv = [str(GOEX), "approve", "--screen"]
    if how == "pipes":
        done = daemon.goex("approve", "--screen")
        code, said = done.returncode, done.stderr
    elif how == "dumb":
        with Glass(argv, env={**daemon.env, "TERM": "dumb"}, cwd=daemon.home, size=(24, 200)) as glass:
            code = glass.terminal.wait()
            said = glass.terminal.text
    else:
        here, there = os.openpty()
        process = subprocess.Popen(
            argv, env=daemon.env, stdin=there, stdout=there, stderr=there, start_new_session=True
        )
        os.close(there)
        code = process.wait(30)
        said = os.read(here, 65536).decode()
        os.close(here)
    assert code == 3
    assert "needs a terminal with a person at it" in said


def test_help_loads_nothing_heavy(daemon: Daemon) -> None:
    code = (
        "import sys; from goex.cli.main import app\n"
        "try: app(['--help'], standalone_mode=False)\n"
        "except SystemExit: pass\n"
        "assert not {'textual', 'rich.console', 'grpc'} & set(sys.modules), set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
