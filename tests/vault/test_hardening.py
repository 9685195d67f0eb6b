"""Other processes of the same user stay out of a hardened one's memory; each claim has its control."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from vault.hardening import Hardening, harden_process

NOBODY = 65534
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is shown here is Linux's"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def unprivileged() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # changing the user took it away; a program started by the user has it


def start(harden: bool, end: str = "") -> tuple[int, Path]:
    """A child of an unprivileged user, hardened or not, which waits or ends by a signal."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if end:  # of the control there is a core, and little in it
                Path("/proc/self/coredump_filter").write_text("0")
            unprivileged()
            done = harden_process() if harden else Hardening(untraceable=True, no_core=True)
            os.write(writing, b"1" if done == Hardening(untraceable=True, no_core=True) else b"0")
            if end:
                os.chdir(end)
                os.kill(os.getpid(), signal.SIGQUIT)
            signal.alarm(60)  # should nobody end it
            signal.pause()
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1)
    os.close(reading)
    if said != b"1":
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        pytest.fail("the process says that it isn't hardened")
    return pid, Path(f"/proc/{pid}")


def readable(path: Path) -> bool:
    """Whether another process of that user can read it."""
    reader = os.fork()
    if reader == 0:
        code = 1
        try:
            unprivileged()
            with path.open("rb") as file:
                if path.name == "mem":
                    first = path.with_name("maps").read_text().splitlines()[0]
                    file.seek(int(first.split("-")[0], 16))
                file.read(1)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0


@pytest.mark.promise(32)
@pytest.mark.parametrize("what", ["mem", "environ", "maps"])
def test_the_same_user_cant_read(what: str) -> None:
    open_pid, open_place = start(harden=False)
    hard_pid, hard_place = start(harden=True)
    try:
        control = readable(open_place / what)
        if not control and what == "mem":
            pytest.skip("this system forbids tracing altogether")
        assert control, "the control can't be read either: the test would show nothing"
        assert not readable(hard_place / what)
    finally:
        for pid in (open_pid, hard_pid):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.promise(32)
def test_no_core_is_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in (tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(parent.stat().st_mode | 0o011)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        pid, _ = start(harden=True, end=str(tmp_path))
        status = os.waitpid(pid, 0)[1]
        assert os.WTERMSIG(status) == signal.SIGQUIT
        assert not os.WCOREDUMP(status)
        assert not list(tmp_path.iterdir())
        pid, _ = start(harden=False, end=str(tmp_path))
        if not os.WCOREDUMP(os.waitpid(pid, 0)[1]):
            pytest.skip("this system writes no core files: there is no control")
        for core in tmp_path.iterdir():
            core.unlink()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_tolerant_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError("not here")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(resource, "setrlimit", refused)
    assert harden_process() == Hardening(untraceable=False, no_core=False)
