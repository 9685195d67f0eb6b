"""A Docker engine of the tests' own, which may be broken, restarted, and given other runtimes.

Its data, state, socket and process id file are in one folder; it has no network and no packet filter, and shares
nothing with the machine's engine but the kernel. It is ended by its process id, also when a test fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import docker.errors
import requests.exceptions
from docker import APIClient

_SECONDS = 300.0  # that a start may take
_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def can_run() -> bool:
    """Whether this machine and user can have one."""
    return os.geteuid() == 0 and shutil.which("dockerd", path=_PATH) is not None


class PrivateEngine:
    """One engine below `folder`, whose path must be short (a socket is in it). `runtimes`: further ones, by name, as
    daemon.json has them; `options`: further ones for the command line."""

    def __init__(
        self, folder: Path, *, runtimes: Mapping[str, object] | None = None, options: Sequence[str] = ()
    ) -> None:
        self.folder, self.socket = folder, folder / "d.sock"
        self._runtimes, self._options = dict(runtimes or {}), tuple(options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def __enter__(self) -> PrivateEngine:
        self.folder.mkdir(mode=0o711, exist_ok=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers. Raises RuntimeError with the end of its log when it doesn't."""
        (self.folder / "daemon.json").write_text(json.dumps({"runtimes": self._runtimes}))
        command = ["dockerd", "--config-file", "daemon.json", "--data-root", "data", "--exec-root", "exec"]
        command += ["--pidfile", "pid", "--host", self.url, "--iptables=false", "--ip6tables=false", "--bridge=none"]
        made = [str(self.folder / part) if part in ("daemon.json", "data", "exec", "pid") else part for part in command]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*made, *self._options],
                env={**os.environ, "PATH": _PATH},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + _SECONDS
        while not self.answers():
            if time.monotonic() > until or self._process.poll() is not None:
                self.stop()
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it. What it still runs ends with it, unless it is killed."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def client(self, seconds: int = 60) -> APIClient:
        """A client of this engine."""
        return APIClient(base_url=self.url, version="auto", timeout=seconds)

    def answers(self) -> bool:
        try:
            client = self.client(5)
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError):
            return False
        client.close()
        return True

    def give(self, image_id: str) -> None:
        """Copy an image from the machine's engine, with its names."""
        theirs, ours = docker.from_env().api, self.client()
        try:
            names = theirs.inspect_image(image_id)["RepoTags"] or [image_id]
            for _ in ours.load_image(b"".join(theirs.get_image(names[0]))):
                pass
        finally:
            theirs.close()
            ours.close()
