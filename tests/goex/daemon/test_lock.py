"""One daemon for a state folder; one that was killed doesn't stand in the way."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goex.daemon.main import AlreadyRunning, lock
from tests.support.daemon import DAEMON, Daemon

HOLDS = "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(float(sys.argv[2]))"  # noqa: E501


def held(path: Path, pid: int, seconds: float) -> subprocess.Popen[str]:
    """The lock, held by some process for so long, while the file names another."""
    path.write_text(f"{pid}\n")
    process = subprocess.Popen([sys.executable, "-c", HOLDS, path, str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline()
    return process


def test_a_daemon_that_runs_keeps_the_folder(tmp_path: Path) -> None:
    process = held(tmp_path / "daemon.pid", os.getpid(), 300)
    began = time.monotonic()
    with pytest.raises(AlreadyRunning, match=str(os.getpid())):
        lock(tmp_path / "daemon.pid")
    assert time.monotonic() - began < 150  # and not when the other one ends
    process.kill()
    process.wait()


def test_what_a_killed_daemon_had_started_holds_it_a_moment_longer(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    process = held(tmp_path / "daemon.pid", gone.pid, 0.8)
    handle = lock(tmp_path / "daemon.pid")
    assert (tmp_path / "daemon.pid").read_text() == f"{os.getpid()}\n"
    with (tmp_path / "daemon.pid").open() as other, pytest.raises(OSError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)
    process.wait()


def test_a_daemon_that_listens_elsewhere_keeps_the_folder(tmp_path: Path) -> None:
    with Daemon(init=False) as daemon:
        env = {**daemon.env, "XDG_RUNTIME_DIR": str(tmp_path)}
        second = subprocess.Popen(DAEMON, env=env, stderr=subprocess.PIPE, text=True)
        assert second.stderr is not None
        said = ""
        for line in second.stderr:
            said += line
            if "listening on" in line:
                second.kill()
        assert second.wait() == 8, said
        assert f"A daemon runs already for this state folder (process {daemon.pid})." in said
        assert f"another XDG_RUNTIME_DIR. Set the same, or end it with: kill {daemon.pid}" in said


def test_a_full_disk_keeps_no_daemon_from_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("goex.daemon.main.os.pwrite", full)
    handle = lock(tmp_path / "daemon.pid")
    with (tmp_path / "daemon.pid").open() as other, pytest.raises(OSError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)
