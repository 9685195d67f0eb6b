"""Daemons without their two seconds of imports: one process loads `goex.daemon`, and each daemon is a fork of it.

A fork is a process of its own, with the environment, folder, output and session that it is given, and runs the same
`main`. What differs from `python -P -m goex.daemon` is what the kernel kept of the start: /proc/PID/cmdline and
/proc/PID/environ are the server's. Tests of those, and of memory, start their daemon afresh (`Daemon(fresh=True)`).

`python -P -m tests.support.forks FD` is the server. On the stream socket FD it gets, for each daemon, one message of
JSON with a socket as its rights; over that socket it answers with the daemon's process id and, when it has ended, with
its status as of `waitpid`, each a line.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOADED = (  # what `main` loads after it has taken the lock, and what the first call or action of its kind loads
    "goex.daemon.app",
    "goex.daemon.accounts_service",
    "goex.daemon.audit_service",
    "goex.daemon.databases_service",
    "goex.daemon.preview_calls",
    "goex.daemon.reversions_service",
    "goex.daemon.rules_service",
    "goex.daemon.undo_to",
    "goex.daemon.vault_service",
    "mapper.manifest",
    "runtimes.code.runtime",
    "runtimes.gateway.client",
    "runtimes.servers.runtime",
    "runtimes.sql.pair_policy",
    "runtimes.sql.runtime",
)
_LARGEST = 1 << 20


class Fork:
    """A daemon that the server started; of `subprocess.Popen` what tests need of it."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rb")
        if not (first := self._lines.readline()):
            raise RuntimeError("The process that forks daemons has ended; what it printed says why.")
        self.pid = int(first)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status (negative for a signal), or None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("goex.daemon", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._link], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._lines.readline()))
            self._lines.close()
            self._link.close()
        return self.returncode


class ForkServer:
    """The process that has loaded the daemon: started for the first one, ended with the context."""

    def __init__(self) -> None:
        self._ours: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours is not None and self._process is not None:
            self._ours.close()
            self._process.wait(60)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.support.forks", str(theirs.fileno())],
                env=kept | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return ours

    def start(self, *, env: Mapping[str, str], folder: Path, output: Path) -> Fork:
        """A daemon with this environment, in this folder, that writes to the end of this file."""
        if self._ours is None:
            self._ours = self._started()
        ours, theirs = socket.socketpair()
        with theirs:
            asked = json.dumps({"env": dict(env), "folder": str(folder), "output": str(output)})
            socket.send_fds(self._ours, [asked.encode()], [theirs.fileno()])
        return Fork(ours)


def serve(number: int) -> None:
    """Answer until the other end is closed. Returns in a process that is to become a daemon, and there alone."""
    asked = socket.socket(fileno=number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for a daemon
    while True:
        message, handles, _, _ = socket.recv_fds(asked, _LARGEST, 1)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asked.close()
            if _daemon(json.loads(message), socket.socket(fileno=handles[0])):
                return
            os._exit(0)
        os.close(handles[0])


def _daemon(asked: Any, link: socket.socket) -> bool:
    """Fork the daemon, and tell how it ended. True in the daemon."""
    pid = os.fork()
    if pid == 0:
        link.close()
        _become(asked["env"], asked["folder"], asked["output"])
        return True
    link.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # the run of tests has ended before
        link.sendall(f"{status}\n".encode())
    return False


def _become(env: Mapping[str, str], folder: str, output: str) -> None:
    os.setsid()
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for old, new in ((0, nothing), (1, written), (2, written)):
        os.dup2(new, old)
    os.closerange(3, 4096)
    os.environ.clear()
    os.environ.update(env)


if __name__ == "__main__":
    import gc
    import importlib

    gc.disable()
    for name in LOADED:
        importlib.import_module(name)
    from goex.daemon.main import main

    gc.freeze()
    gc.enable()
    serve(int(sys.argv[1]))
    main()
