"""A server that speaks MongoDB's wire protocol, in pure Python (nx-27017). It isolates nothing and knows few types: it
is here for the wire alone. It keeps its data in a file, so that it can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from policies.accounts import Account
from policies.databases import SERVICE, Address


def find_binary() -> Path | None:
    """The command, beside the interpreter that runs the tests."""
    found = Path(sys.executable).parent / "nx-27017"
    return found if found.exists() else None


class Nx:
    """One server on loopback, on a port of its own, until the block ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="goex-nx-"))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port: int = taken.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        binary = find_binary()
        assert binary is not None
        self._process = subprocess.Popen(
            [
                *(str(binary), "--db", str(self.folder / "data.db"), "--host", "127.0.0.1", "-p", str(self.port)),
                *("--pid-file", str(self.folder / "pid"), "--log-file", str(self.folder / "log")),
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(self.folder)},
        )
        until = time.monotonic() + 300
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError("nx-27017 doesn't come up")

    def kill(self) -> None:
        """-9, and waited for."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/shop"

    def account(self, name: str = "shop") -> Account:
        """An entry for it, as `goex db add` makes it."""
        return Account(
            service=SERVICE,
            name=name,
            origins=(),
            base_url=Address.parse(self.url)[0].url,
            format="database",
            private=True,
        )
