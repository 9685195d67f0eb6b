"""Daemons, commands, readers of documents and looks at paths without imports: each is a fork of what has loaded them.

A fork is a process of its own, with the arguments, environment, folder, streams and session that it is given, and runs
the same `main`. What differs from a start is what the kernel kept of that: /proc/PID/cmdline and /proc/PID/environ are
the server's. Tests of those, and of memory, start what they test afresh (`Daemon(fresh=True)`). A passphrase that is
new in a forked daemon is stretched at the lowest cost that a vault accepts; what it costs a person is tested in vault/.
No container waits for a job there, where most are asked for one at most, unless its configuration is `containers.WAIT`.
Where GOEX_TEST_WITHOUT names defences, they are taken out of the fork, after all modules were loaded; where
GOEX_TEST_KILL_AT names a file, the daemon ends at the point that stands there (`tests.support.killed_daemon`).

`python -P -m tests.support.forks FD daemon|goex|reader|look` is the server. Over the stream socket FD it gets, for
each, a message of JSON with four handles as its rights: a socket and the three streams. Over that socket it answers
with the fork's process id and, when it has ended, with its status as of `waitpid`, each a line.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

ROOT = Path(__file__).parents[2]
Kind = Literal["daemon", "goex", "reader", "look"]
LOADED: dict[Kind, tuple[str, ...]] = {
    # What `main` loads after it has taken the lock, and what the first call or action of its kind loads.
    "daemon": (
        "cedarpy",
        "cryptography.x509.verification",
        "git",
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
        "mapper.techniques",
        "msgspec",
        "msgspec.json",
        "netrc",
        "runtimes.code.runtime",
        "runtimes.gateway.client",
        "runtimes.servers.runtime",
        "runtimes.sql.mariadb.session",
        "runtimes.sql.pair_policy",
        "runtimes.sql.postgres.session",
        "runtimes.sql.runtime",
        "runtimes.sql.sqlite.session",
        "vault.oauth.broker",
    ),
    # What most commands load when they begin.
    "goex": (
        "goex.cli.connect",
        "goex.cli.daemon_calls",
        "goex.cli.follow",
        "goex.cli.missing_accounts",
        "goex.cli.journal_table",
        "goex.cli.main",
        "goex.cli.secretinput",
        "goex.cli.vault_state",
        "goex.client",
        "goex.notify.notifier",
        "goex.rpc.accounts_pb2",
        "goex.rpc.audit_pb2",
        "goex.rpc.databases_pb2",
        "goex.rpc.passkeys_pb2",
        "goex.rpc.rules_pb2",
        "grpc._channel",
        "grpc.experimental",
        "mapper.importing.files",
        "mapper.manifest",
        "mapper.ranking.index_tables",
        "mapper.store.catalog_lists",
        "policies.grants",
        "rich.console",
        "rich.table",
        "runtimes.sandbox.images",
    ),
    "reader": ("mapper.importing.graphql_schema", "mapper.importing.readers"),
    "look": (),
}
# What one command alone loads: before the first of them is forked.
SERVERS: dict[str, tuple[str, ...]] = {
    "mcp": (
        "goex.http_connections",
        "goex.mcp.answerable",
        "goex.mcp.shares",
        "goex.mcp.transports",
        "mcp.server.stdio",
        "mcp.server.streamable_http_manager",
        "starlette.middleware",
        "uvicorn.config",
        "uvicorn.lifespan.off",
        "uvicorn.lifespan.on",
        "uvicorn.loops.auto",
    ),
    "web": ("goex.browser", "goex.web.server", "grpc.aio", "uvicorn.lifespan.off", "uvicorn.loops.auto"),
}
_LARGEST = 1 << 20


class Fork:
    """A process that the server started; of `subprocess.Popen` what tests need of it."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lines = link.makefile("rb")
        if not (first := self._lines.readline()):
            raise RuntimeError("The process that is forked has ended; what it printed says why.")
        self.pid = int(first)
        self.returncode: int | None = None
        self.stdin: BinaryIO | None = None  # for whoever starts one with pipes
        self.stdout: BinaryIO | None = None
        self.stderr: BinaryIO | None = None

    def poll(self) -> int | None:
        """Its exit status (negative for a signal), or None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may end at this moment
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
    """The process that has loaded the daemon or the command: started for the first one, ended with the context."""

    def __init__(self, kind: Kind = "daemon") -> None:
        self._kind = kind
        self._ours: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours is not None and self._process is not None:
            self._ours.close()
            self._process.wait(300)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.support.forks", str(theirs.fileno()), self._kind],
                env=kept
                | {
                    "LC_ALL": "C.UTF-8",
                    "OPENBLAS_NUM_THREADS": "1",  # threads aren't there in a fork
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": str(ROOT),
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return ours

    def start(
        self,
        streams: Sequence[int],
        *,
        env: Mapping[str, str],
        folder: Path,
        arguments: Sequence[str] = (),
        terminal: bool = False,
    ) -> Fork:
        """A process with these three streams, in a session of its own; `terminal`: theirs is the terminal of that."""
        if self._ours is None:
            self._ours = self._started()
        ours, theirs = socket.socketpair()
        with theirs:
            asked = {"env": dict(env), "folder": str(folder), "arguments": [*arguments], "terminal": terminal}
            socket.send_fds(self._ours, [json.dumps(asked).encode()], [theirs.fileno(), *streams])
        return Fork(ours)

    def piped(self, *, env: Mapping[str, str], folder: Path, arguments: Sequence[str], err: int | None = None) -> Fork:
        """A process with pipes for its streams, but for its errors where `err` is."""
        (given, stdin), (stdout, out) = os.pipe(), os.pipe()
        stderr, said = (None, err) if err is not None else os.pipe()
        with ExitStack() as theirs:
            for stream in (given, out, *(() if stderr is None else (said,))):
                theirs.callback(os.close, stream)
            fork = self.start((given, out, said), env=env, folder=folder, arguments=arguments)
        fork.stdin, fork.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        fork.stderr = None if stderr is None else os.fdopen(stderr, "rb")
        return fork


def start_reader(forks: ForkServer, memory: int) -> Fork:
    """What `mapper.importing.reader_process.start` does, by a fork of what has loaded the readers."""
    return forks.piped(env={}, folder=Path("/"), arguments=["reader", str(memory)], err=2)


def serve(number: int) -> None:
    """Answer until the other end is closed. Returns in a process that is to run `main`, and there alone."""
    asked = socket.socket(fileno=number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for a fork
    while True:
        message, handles, _, _ = socket.recv_fds(asked, _LARGEST, 4)
        if not message:
            os._exit(0)
        wanted = json.loads(message)
        _load_server(wanted["arguments"])
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asked.close()
            if _fork(wanted, socket.socket(fileno=handles[0]), handles[1:]):
                return
            os._exit(0)
        for handle in handles:
            os.close(handle)


def _load_server(arguments: Sequence[str]) -> None:
    if arguments[1:] and all(word.startswith("-") for word in arguments[2:3]):  # `goex mcp`, not `goex mcp list`
        for name in SERVERS.get(arguments[1], ()):
            importlib.import_module(name)


def _fork(asked: Any, link: socket.socket, streams: list[int]) -> bool:
    """Fork, and tell how that ended. True in the fork."""
    pid = os.fork()
    if pid == 0:
        link.close()
        _become(asked, streams)
        return True
    for stream in streams:
        os.close(stream)
    link.sendall(f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # the run of tests has ended before
        link.sendall(f"{status}\n".encode())
    return False


def _become(asked: Any, streams: list[int]) -> None:
    os.setsid()
    os.chdir(asked["folder"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 4096)
    if asked["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    sys.argv = asked["arguments"]
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        was = getattr(sys, name)
        buffering = 1 if number == 2 or os.isatty(number) else -1  # as at Python's start
        stream = os.fdopen(number, mode, buffering, was.encoding, was.errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _map() -> None:
    """Make what a process makes once of the services that come with GoEx, to map a request or to import a document."""
    from mapper.catalog import Catalog
    from mapper.embedded import EmbeddedProposer

    EmbeddedProposer(Catalog.bundled()).propose("send the slack message hello to #general")


def load(kind: Kind) -> Any:
    """The `main` of this kind, with all that it loads."""
    for name in LOADED[kind]:
        importlib.import_module(name)
    if kind in ("daemon", "goex"):
        _map()
    if kind == "goex":
        from goex.cli.main import main

        return main
    if kind == "reader":
        from mapper.importing import reader_process

        return reader_process.main
    if kind == "look":
        from goex.daemon import hook_paths

        return hook_paths.main
    from goex.config import Sandbox
    from goex.daemon.main import main
    from tests.support.passphrases import cheap_passphrases

    Sandbox.__init__.__kwdefaults__ = {**(Sandbox.__init__.__kwdefaults__ or {}), "waiting": 0}

    def cheaply() -> None:
        if os.environ.get("GOEX_TEST_WITHOUT"):
            from tests.adversarial.unsafe_daemon.forked import take_away

            take_away()
        if os.environ.get("GOEX_TEST_KILL_AT"):
            from tests.support.killed_daemon import watch

            watch()
        with cheap_passphrases():
            main()

    return cheaply


def end(main: Callable[[], object]) -> NoReturn:
    """As `sys.exit(main())`, but that what was loaded isn't taken apart: all of it is shared, and would be copied."""
    try:
        status = main()
    except SystemExit as asked:
        status = asked.code
    threading._shutdown()  # type: ignore[attr-defined]  # the interpreter's first step: other threads are waited for
    atexit._run_exitfuncs()
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    import gc

    gc.disable()
    main = load(next(kind for kind in LOADED if kind == sys.argv[2]))
    gc.freeze()
    gc.enable()
    serve(int(sys.argv[1]))
    kept = sys.modules["__main__"]  # what it holds lives on while another module takes its name, as in a command
    sys.modules["__main__"] = types.ModuleType("__main__")
    end(main)
