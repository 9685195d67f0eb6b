"""The `goex` command for a test: run to its end without a terminal, or started on one.

In a run of tests it is a fork of a process that has loaded it (`tests/support/forks.py`), wherever Python would start
with these variables as that one did; otherwise it is started as a person's is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.forks import Fork, ForkServer

GOEX = Path(sys.executable).with_name("goex")
# What Python reads at its start and forks do without. The keyring's is read by the keyring's library, later.
_READ_AT_START = ("PYTHON", "MALLOC_", "LD_", "LC_", "LANG")
_ALIKE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}

forks: ForkServer | None = None  # in a run of tests


def start(argv: Sequence[str], streams: Sequence[int], *, env: Mapping[str, str], folder: Path) -> Fork | None:
    """A fork on the terminal that these streams are; None where it has to be started."""
    if not _forkable(argv, env) or forks is None:
        return None
    return forks.start(streams, env=env, folder=folder, arguments=argv, terminal=True)


def run(
    argv: Sequence[str], *, env: Mapping[str, str], folder: Path, stdin: bytes = b"", seconds: float = 300.0
) -> subprocess.CompletedProcess[bytes]:
    """What it printed, and its exit status. Raises subprocess.TimeoutExpired."""
    if not _forkable(argv, env) or forks is None:
        return subprocess.run(
            argv, env=env, cwd=folder, input=stdin, capture_output=True, timeout=seconds, start_new_session=True
        )
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        fork = forks.start([each.fileno() for each in (given, out, err)], env=env, folder=folder, arguments=argv)
        try:
            status = fork.wait(seconds)
        except subprocess.TimeoutExpired:
            fork.kill()
            fork.wait()
            raise
        return subprocess.CompletedProcess(argv, status, _all(out.fileno()), _all(err.fileno()))


def piped(
    argv: Sequence[str], *, env: Mapping[str, str], folder: Path, err: int | None = None
) -> Fork | subprocess.Popen[bytes]:
    """It begins, with pipes for its streams, but for its errors where `err` is."""
    if not _forkable(argv, env) or forks is None:
        pipe = subprocess.PIPE
        errors = pipe if err is None else err
        return subprocess.Popen(
            argv, env=env, cwd=folder, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True
        )
    return forks.piped(env=env, folder=folder, arguments=argv, err=err)


def _forkable(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    read = {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}
    read.pop("PYTHON_KEYRING_BACKEND", None)
    return argv[0] == str(GOEX) and read.items() <= _ALIKE.items()


def _all(handle: int) -> bytes:
    return os.pread(handle, os.fstat(handle).st_size, 0)
