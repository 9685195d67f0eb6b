"""The command line against the fake daemon, in a home of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.paths import Paths
from tests.goex.cli.fake import Fake, serve
from tests.support import command

GOEX = (str(command.GOEX),)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
        "XDG_STATE_HOME": str(tmp_path / "s"),
        "XDG_RUNTIME_DIR": str(runtime),
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
        "TZ": "UTC",
    }


@pytest.fixture
def paths(env: dict[str, str]) -> Paths:
    made = Paths.from_env(env)
    made.create()
    return made


@pytest.fixture
def fake(paths: Paths) -> Iterator[Fake]:
    made = Fake()
    server = serve(paths.user_socket, made)
    yield made
    server.stop(0).wait()


class Ran:
    """What one run of the command left."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8")
        self.err = done.stderr.decode("utf-8")


class Goex:
    """The command, without a terminal."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    def __call__(self, *args: str, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
        folder = cwd or Path(self.env["HOME"])
        return Ran(command.run([*GOEX, *args], env=self.env, folder=folder, stdin=stdin, seconds=60))


@pytest.fixture
def goex(env: dict[str, str]) -> Goex:
    return Goex(env)


class Inside(Goex):
    """The command in this process: quick, and as far from a terminal."""

    def __call__(self, *args: str, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
        from typer.testing import CliRunner

        from goex.cli.main import named

        done = CliRunner(env=self.env).invoke(named(args), list(args), input=stdin, prog_name="goex")
        return Ran(subprocess.CompletedProcess(args, done.exit_code, done.stdout_bytes, done.stderr_bytes))


@pytest.fixture
def inside(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    # The desktop that the tests are run from isn't theirs.
    for name in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(env["HOME"])
    return Inside(env)
