"""A real daemon for a test: the `goex` command, in a home of its own, with sockets of its own.

Rules: nothing of the machine's own GoEx is read or touched (HOME and every XDG variable point into a fresh folder,
and the keyring is one that refuses); the vault is keyed by a passphrase; the daemon is started, ended and killed as
a process, from outside. The folder is right below /tmp, because a socket's path has at most 107 bytes.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import grpc

from goex.rpc import goex_pb2 as pb
from tests.support import command
from tests.support.command import GOEX
from tests.support.forks import Fork, ForkServer
from tests.support.passphrases import cheap_passphrases
from tests.support.terminal import Terminal
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

DAEMON = [sys.executable, "-P", "-m", "goex.daemon"]  # as `goex daemon run` does, without its own start
VAULT_PASSPHRASE = "the vault's passphrase in tests"
APPROVAL_PASSPHRASE = "the approval passphrase in tests"

# What of the caller's environment a daemon may see. All else (tokens, XDG, GOEX_…) stays out.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "TMPDIR")


class DaemonError(AssertionError):
    """The daemon didn't start or end as it should. The text holds the end of its log."""


class Daemon:
    """One home and the daemon in it. A context manager: started on entry; ended, and all removed, on exit.

    `config` is the text of config.toml. `start` works again after `stop` and `kill`: the home stays. `in_memory`: what
    XDG_RUNTIME_DIR is for lies in memory, as it does wherever somebody logs in to a desktop, if there is place for it.
    `fresh`: it is started as a person's is, even where the run of tests has a process to fork daemons of. `home`: a
    folder that holds a state already; it goes with the daemon too.
    """

    forks: ForkServer | None = None  # in a run of tests

    def __init__(
        self,
        *,
        config: str = "",
        env: Mapping[str, str] | None = None,
        init: bool = True,
        in_memory: bool = False,
        fresh: bool = False,
        home: Path | None = None,
    ) -> None:
        self.home = home or Path(tempfile.mkdtemp(prefix="goex-t-", dir="/tmp"))
        self._init = init
        self._process: subprocess.Popen[bytes] | Fork | None = None
        # What Python and the allocator read at a process's start isn't read by a fork, which can take a defence away.
        # The keyring's backend is: by the process that asks the keyring.
        others = set(env or ()) - {"PYTHON_KEYRING_BACKEND"}
        read = [name for name in others if name.startswith(("PYTHON", "MALLOC_", "LD_"))]
        unsafe = read == ["PYTHONPATH"] and (env or {})["PYTHONPATH"].endswith("/adversarial/unsafe_daemon")
        self._fresh = fresh or (bool(read) and not unsafe)
        self._cheap = not fresh
        self._channels: dict[tuple[Path, str], grpc.Channel] = {}
        self.config_dir, self.state_dir, self.run_dir = (
            self.home / name / "goex" for name in ("config", "state", "run")
        )
        self._memory = None
        if in_memory and Path("/dev/shm").is_mount():
            self._memory = Path(tempfile.mkdtemp(prefix="goex-t-", dir="/dev/shm"))
        if self._memory is not None:
            self.run_dir = self._memory / "run" / "goex"
        for folder in (self.config_dir, self.state_dir, self.run_dir):
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        self.env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self.env |= {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.config_dir.parent),
            "XDG_STATE_HOME": str(self.state_dir.parent),
            "XDG_RUNTIME_DIR": str(self.run_dir.parent),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TERM": "xterm-256color",
            **(env or {}),
        }
        if config:
            self.configure(config)

    # Places.

    @property
    def agent_socket(self) -> Path:
        return self.run_dir / "agent.sock"

    @property
    def user_socket(self) -> Path:
        return self.run_dir / "user.sock"

    @property
    def log(self) -> Path:
        """What the daemon wrote to its standard output and error."""
        return self.home / "daemon.out"

    def configure(self, text: str) -> None:
        """Write config.toml (read at the next start)."""
        file = self.config_dir / "config.toml"
        file.write_text(text)
        file.chmod(0o600)

    # The process.

    @property
    def pid(self) -> int:
        if self._process is None:
            raise DaemonError("The daemon isn't running.")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, seconds: float = 300.0) -> None:
        """Start it and wait until it answers on both sockets. Raises DaemonError with the end of its output."""
        if self.running:
            return
        self._process = self._started()
        deadline = time.monotonic() + seconds
        while not (self._answers(self.user_socket) and self._answers(self.agent_socket)):
            if self._process.poll() is not None:
                raise DaemonError(f"The daemon ended with {self._process.returncode}.\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise DaemonError(f"The daemon didn't answer in {seconds:g} s.\n{self.tail()}")
            time.sleep(0.02)

    def _started(self) -> subprocess.Popen[bytes] | Fork:
        if self.forks is not None and not self._fresh:
            with Path(os.devnull).open("rb") as nothing, self.log.open("ab") as log:
                streams = (nothing.fileno(), log.fileno(), log.fileno())
                return self.forks.start(streams, env=self.env, folder=self.home, arguments=("goex.daemon",))
        with self.log.open("ab") as log:
            return subprocess.Popen(
                DAEMON,
                env=self.env,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, *, seconds: float = 300.0) -> int:
        """SIGTERM, and wait until it has drained. Returns its exit status. Raises DaemonError when it stays."""
        self.disconnect()
        if self._process is None:
            return 0
        process, self._process = self._process, None
        if process.poll() is None:
            process.terminate()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise DaemonError(f"The daemon didn't end in {seconds:g} s after SIGTERM.\n{self.tail()}") from None

    def kill(self) -> None:
        """SIGKILL: what a crash leaves is left. Calls under way aren't cancelled first."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        self.disconnect()

    def restart(self, *, unlock: bool = True, fresh: bool = False) -> None:
        """Stop it (in order), start it, from now on as a person's if it is to be `fresh`, and unlock its vault."""
        self.stop()
        self._fresh = fresh or self._fresh
        self.start()
        if unlock:
            self.unlock()

    def close(self) -> None:
        """End it and remove its home. Idempotent."""
        try:
            self.stop()
        finally:
            self._forget()

    def _forget(self) -> None:
        for folder in (self.home, self._memory):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Daemon:
        try:
            self.start()
            if self._init:
                self.init()
        except BaseException:
            self.kill()
            self._forget()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tail(self, most: int = 4000) -> str:
        """The end of what it said, on its output and in its own log."""
        said = ""
        for file in (self.log, self.state_dir / "daemon.log"):
            if file.exists():
                said += file.read_text(errors="replace")[-most:]
        return said.strip() or "It said nothing."

    # The vault.

    def init(self) -> None:
        """Make the vault, keyed by a passphrase; it is unsealed afterwards. Unless the daemon is to be as a person's in
        all, its passphrases cost little: a fork sees to that, and what is started is given a vault."""
        if self._fresh and self._cheap:
            with cheap_passphrases():
                Vault.create(
                    self.state_dir / "vault.db",
                    PassphraseProtector(Secret(VAULT_PASSPHRASE)),
                    Secret(APPROVAL_PASSPHRASE),
                ).seal()
            self.unlock()
            return
        self.person(
            "VaultInit",
            pb.VaultInitRequest(
                keyed_by="passphrase", passphrase=VAULT_PASSPHRASE, approval_passphrase=APPROVAL_PASSPHRASE
            ),
        )

    def unlock(self) -> None:
        self.person("VaultUnlock", pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE))

    def add_agent(self, name: str) -> str:
        """Name an agent; returns its token."""
        reply = self.person("AddAgent", pb.AddAgentRequest(name=name, passphrase=APPROVAL_PASSPHRASE))
        return str(reply.token)

    # The wire. A method's reply type is found by its name in the proto, so that each call is one line in a test.

    def person(self, method: str, request: Any, *, seconds: float = 300.0) -> Any:
        """One unary call of the Person service on user.sock. Raises grpc.RpcError."""
        return self.call(self.user_socket, "Person", method, request, seconds=seconds)

    def person_action(self, id: str) -> str:
        """The state of an action."""
        return str(self.call(self.user_socket, "Actions", "Get", pb.ActionId(id=id)).state)

    def actions(
        self, method: str, request: Any, *, token: str = "", socket: Path | None = None, seconds: float = 300.0
    ) -> Any:
        """One unary call of the Actions service, by default on agent.sock. Raises grpc.RpcError."""
        return self.call(socket or self.agent_socket, "Actions", method, request, token=token, seconds=seconds)

    def call(
        self, socket: Path, service: str, method: str, request: Any, *, token: str = "", seconds: float = 300.0
    ) -> Any:
        described = pb.DESCRIPTOR.services_by_name[service].methods_by_name[method]
        reply = getattr(pb, described.output_type.name)
        channel = self.channel(socket, token)
        kind = channel.unary_stream if described.server_streaming else channel.unary_unary
        call = kind(
            f"/goex.v1.{service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        return call(request, timeout=seconds, metadata=metadata)

    def channel(self, socket: Path, session: str = "") -> grpc.Channel:
        """A connection, kept until the daemon ends: a session lasts as long as its connection."""
        key = (socket, session)
        if key not in self._channels:
            self._channels[key] = self.connect(socket)
        return self._channels[key]

    def connect(self, socket: Path) -> grpc.Channel:
        """A connection of the caller's own, for it to close."""
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
        return grpc.insecure_channel(f"unix:{socket}", options=options)

    def disconnect(self) -> None:
        """Close every connection that was made here."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    # The command.

    def goex(self, *arguments: str, stdin: str = "", seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run `goex` without a terminal and return what it printed and its exit status."""
        done = command.run(
            [str(GOEX), *arguments], env=self.env, folder=self.home, stdin=stdin.encode(), seconds=seconds
        )
        out, err = (io.TextIOWrapper(io.BytesIO(data), "utf-8").read() for data in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def terminal(self, *arguments: str, shown: Callable[[str], None] | None = None) -> Terminal:
        """Run `goex` on a terminal of its own."""
        return Terminal([str(GOEX), *arguments], env=self.env, cwd=self.home, shown=shown)

    def _answers(self, socket: Path) -> bool:
        if not socket.exists():
            return False
        try:
            self.call(socket, "Actions", "Whoami", pb.WhoamiRequest(), seconds=5.0)
        except grpc.RpcError:
            self.disconnect()
            return False
        return True
